python -m sglang.launch_server  ...  --json-model-override-args '{
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32768
        }
    }'
