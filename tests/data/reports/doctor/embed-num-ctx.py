import ollama
small = "the quick brown fox jumped over the lazy dog" # 9 tokens
tok2016 = small * 224
tok4032 = tok2016 * 2
# this succeeds
ollama.embed(model="snowflake-arctic-embed:137m", input=tok2016, truncate=False, options = {"num_ctx": 2048})
# this fails: input length exceeds maximum context length
ollama.embed(model="snowflake-arctic-embed:137m", input=tok4032, truncate=False, options = {"num_ctx": 4096})
