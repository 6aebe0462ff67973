llama-server -m x.gguf --override-kv llama.rope.scaling.type=str:yarn,llama.rope.scaling.factor=float:4,llama.rope.scaling.original_context_length=int:8192 --yarn-beta-fast 16 -c 65536
