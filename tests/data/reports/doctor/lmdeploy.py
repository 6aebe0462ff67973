from lmdeploy import pipeline, PytorchEngineConfig
from lmdeploy.vl import load_image

pt_backend_config = PytorchEngineConfig(
    tp=1,
    cache_max_entry_count=0.8,
    session_len=8192,
)
pipe = pipeline('Qwen/Qwen2.5-VL-7B-Instruct', backend_config=pt_backend_config)
image = load_image('tiger.jpeg')
response = pipe(('Describe this image in detail.', image))
print(response)
# Response(text='... the tiger is lying in the gra', generate_token_len=512, input_token_len=1354, finish_reason='length')
