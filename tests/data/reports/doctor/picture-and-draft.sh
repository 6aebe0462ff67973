./build/bin/llama-cli -hf ggml-org/Qwen2.5-VL-7B-Instruct-GGUF:Q8_0 -hfd Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0  -p "what is in this image" --image photo.jpeg
