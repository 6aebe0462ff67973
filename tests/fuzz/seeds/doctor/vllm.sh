vllm serve M --speculative-config '{"method":"mtp"}' --hf-overrides '{"rope_parameters":{"rope_type":"yarn","factor":4}}'
