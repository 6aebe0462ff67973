python3 -m verl.trainer.main_ppo \
    data.max_prompt_length=1024 \
    data.max_response_length=4000 \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-Math-7B
