    def forward(self, hidden, position_ids):
        cos, sin = self.rotary_emb(value_states, seq_len=position_ids[0, -1].item() + 1)
