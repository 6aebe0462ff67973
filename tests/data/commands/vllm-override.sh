docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.33.0 --model Qwen/Qwen2.5-7B-Instruct \
  --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}' \
  --max-model-len 131072
