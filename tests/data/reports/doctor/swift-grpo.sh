CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
NPROC_PER_NODE=8 \
swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen3-8B \
    --reward_funcs format \
    --train_type full \
    --loss_type bnpo \
    --torch_dtype bfloat16 \
    --dataset DATASET \
    --rope_scaling '{"type":"yarn","factor":3.0}' \
    --max_model_len 122880 \
    --max_length 120000 \
    --max_completion_length 2048 \
    --use_vllm true \
    --vllm_mode colocate \
    --vllm_max_model_len 122880 \
    --num_train_epochs 1
