"""What is timed, and the published formula of it in double."""

from dataclasses import dataclass

BASE = 10000.0
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass
class Case:
    name: str
    op: str
    heads: int
    length: int
    dtype: str = "float32"
    pairing: str = "halves"
    head_dim: int = 128

    @property
    def bytes(self):
        elements = self.heads * self.length * self.head_dim
        return elements * BYTES[self.dtype] * (1 if self.op == "table" else 2)

    def shape(self):
        if self.op == "table":
            return f"{self.length} x {self.heads * self.head_dim}"
        return f"{self.heads} x {self.length} x {self.head_dim}"

    def title(self):
        return f"{self.op} {self.name} {self.shape()} {self.dtype} {self.pairing}"


def frequencies(np, dim):
    return BASE ** (-np.arange(0, dim, 2) / dim)


def input_of(np, case):
    """[tokens][heads][head_dim] in float32: one block of random tokens, over and over."""
    block = min(case.length, 1024)
    tokens = np.random.default_rng(0).random((block, case.heads, case.head_dim), dtype=np.float32) * 2 - 1
    return np.resize(tokens, (case.length, case.heads, case.head_dim))


def expected(np, case, rows):
    if case.op == "table":
        angle = np.outer(rows, frequencies(np, case.heads * case.head_dim))
        return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    x = input_of(np, case)[rows].astype(np.float64)
    angle = np.outer(rows, frequencies(np, case.head_dim))[:, None, :]
    half = case.head_dim // 2
    a, b = (x[..., :half], x[..., half:]) if case.pairing == "halves" else (x[..., 0::2], x[..., 1::2])
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    if case.pairing == "halves":
        return np.concatenate(turned, axis=-1)
    return np.stack(turned, axis=-1).reshape(x.shape)
