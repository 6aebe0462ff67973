from chatlas import ChatOllama
chat = ChatOllama(model="gemma4")
chat.set_model_params(max_tokens=2048)
chat.chat("Explain the history of R in detail")
# finish_reason = 'length'
# tokens        = (23 input, 2048 output)
