from trl import GRPOConfig, GRPOTrainer
training_args = GRPOConfig(
    use_vllm = True,
    learning_rate = 1e-4,
    per_device_train_batch_size = 2,
    gradient_accumulation_steps = 2,
    num_generations = 4,
    max_prompt_length = 1024,
    max_completion_length = 4096,
    max_steps = 10000,
    save_steps = 100,
    max_grad_norm = 0.1,
    report_to = "none",
    output_dir = "/mnt/e/UnslothPackage/unsloth_Demo/Unsloth_Outputs/GRPO",
)
