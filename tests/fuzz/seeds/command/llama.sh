CUDA_VISIBLE_DEVICES=0 ./build/bin/llama-server -m "x y.gguf" --rope-scaling yarn --rope-scale 4 \
  --yarn-orig-ctx 32768 --rope-freq-base 500000 --yarn-attn-factor 1.0 -ngl 99 -c 0
