vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000, "factor": 4.0, "original_max_position_embeddings": 32768}}'
