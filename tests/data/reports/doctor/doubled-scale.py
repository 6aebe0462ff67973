class DynamicNTKScalingRoPE(nn.Module):
    def __init__(self, dims, max_position_embeddings=2048, traditional=False, base=10000, scale=1.0):
        super().__init__()
        self.max_position_embeddings = max_position_embeddings
        self.original_base = base
        self.dims = dims
        self.traditional = traditional
        self.scale = scale

    def __call__(self, x, offset: int = 0):
        seq_len = x.shape[1] + offset
        if seq_len > self.max_position_embeddings:
            base = self.original_base * (
                (self.scale * seq_len / self.max_position_embeddings) - (self.scale - 1)
            ) ** (self.dims / (self.dims - 2))
        else:
            base = self.original_base
        return mx.fast.rope(x, self.dims, traditional=self.traditional, base=base, scale=self.scale, offset=offset)

class Attention(nn.Module):
    def __init__(self, args):
        rope_scale = (
            1 / args.rope_scaling["factor"]
            if args.rope_scaling is not None and args.rope_scaling["rope_type"] == "linear"
            else 2.0
        )
        self.rope = DynamicNTKScalingRoPE(
            head_dim,
            max_position_embeddings=args.max_position_embeddings,
            traditional=args.rope_traditional,
            base=args.rope_theta,
            scale=rope_scale,
        )
