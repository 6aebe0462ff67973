/opt/llm/llama.cpp/build/bin/llama-server \
  --model /mnt/models/qwen2.5-coder-32b-instruct-q4_k_m/Qwen2.5-Coder-32B-Instruct-Q4_K_M.gguf \
  --ctx-size 16384 \
  --n-predict 1024 \
  --threads 16 \
  --parallel 1 \
  --n-gpu-layers 80
