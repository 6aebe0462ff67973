llama-server --model DeepSeek-R1-0528-IQ4_XS.gguf \
--ctx-size 102400 --n-gpu-layers 62 -mla 3 -fa -ctk q8_0 -amb 1024 -fmoe -b 4096 -ub 4096
