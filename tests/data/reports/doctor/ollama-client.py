completion = self.llm_client.chat(model=self.model, messages=[
    {"role": "system", "content": self.context},
    {"role": "user", "content": question}
    ],
    options=dict(temperature=temperature, n_ctx=n_ctx)
)
