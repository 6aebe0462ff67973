swift sft --model Qwen/Qwen3-VL-4B-Instruct --train_type lora --max_length 32768 --truncation_strategy delete
