python3 -m vllm.entrypoints.openai.api_server --model M --rope-scaling '{"type": "dynamic", "factor": 2.0}' --rope-theta=1e6 --max-model-len 32k
