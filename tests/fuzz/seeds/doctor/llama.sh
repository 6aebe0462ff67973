llama-server -m m.gguf -c 65536 -np 4 -gan 4 -gaw 1024 -md d.gguf -cd 4096
