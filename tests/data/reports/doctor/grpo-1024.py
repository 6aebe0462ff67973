model, tokenizer = FastLanguageModel.from_pretrained("Qwen/Qwen2.5-3B-Instruct", max_seq_length=1024, fast_inference=True)
training_args = GRPOConfig(
    use_vllm=True,
    max_prompt_length=256,
    max_completion_length=512,
)
