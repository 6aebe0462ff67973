class Rotary(nn.Module):
    def __init__(self, dim, max_position_embeddings=2048, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def tables(self, seq_len):
        t = torch.arange(seq_len).type_as(self.inv_freq)
        return torch.outer(t, self.inv_freq).cos()
