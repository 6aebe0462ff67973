import mlx.core as mx

def rope_remap_positions(keys, old_pos, new_pos, base=10000.0):
    """Rotate already-RoPE'd keys from old_pos to new_pos."""
    half = keys.shape[-1] // 2
    inv_freq = 1.0 / (base ** (mx.arange(0, half, dtype=mx.float32) / half))
    delta = (new_pos - old_pos).astype(mx.float32)
    ang = delta[:, None] * inv_freq[None, :]
    cos, sin = mx.cos(ang), mx.sin(ang)
    x1, x2 = keys[..., :half], keys[..., half:]
    return mx.concatenate([x1 * cos - x2 * sin, x1 * sin + x2 * cos], axis=-1)
