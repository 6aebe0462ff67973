"""The mathematics of rotary embeddings in exact numbers, written from the papers and apart from posenc's C++."""

from dataclasses import dataclass, field, replace
from typing import Any

from mpmath import mp, mpf


@dataclass(frozen=True)
class Rope:
    """What a model's file comes down to; `scaling` as `posenc explain --json` names its fields."""

    head_dim: int
    rotary_dim: int
    base: float
    scaling: dict[str, Any] = field(default_factory=lambda: {"type": "default"})
    length: int = 0
    context: int = 0
    exponent_dim: int = 0  # 0: the channels that rotate
    exponent_step: int = 2
    # Deviations, each a mistake that some engine has made.
    reversed_ramp: bool = False
    no_smoothing: bool = False
    plain_exponent: bool = False
    other_list: bool = False
    multiplied: bool = False
    inverted: bool = False

    def but(self, **changes) -> "Rope":
        return replace(self, **changes)

    def scaled_by(self, **changes) -> "Rope":
        return replace(self, scaling={**self.scaling, **changes})

    @property
    def kind(self) -> str:
        return self.scaling["type"]

    @property
    def factor(self):
        s = self.scaling
        if s.get("factor") is not None:
            return mpf(s["factor"])
        trained = s.get("original_max_position_embeddings") or s.get("max_position_embeddings")
        return mpf(s["max_position_embeddings"]) / trained if s.get("max_position_embeddings") else mpf(1)


def powers(rope: Rope, base=None) -> list:
    """b^(−2r/d), 2104.09864 §3.2.2."""
    b, d = mpf(rope.base if base is None else base), rope.exponent_dim or rope.rotary_dim
    return [b ** (-mpf(rope.exponent_step * r) / d) for r in range(rope.rotary_dim // 2)]


def stretched_base(rope: Rope, by):
    """NTK-aware: b·s^(d/(d − 2)), so that the slowest pair is interpolated by s and the fastest is not."""
    d = mpf(rope.rotary_dim)
    return mpf(rope.base) * mpf(by) ** (1 if rope.plain_exponent else d / (d - 2))


def ramp(rope: Rope) -> list:
    """YaRN (2309.00071 §3.2, as its authors' code has it): how much of each pair is interpolated."""
    s, d = rope.scaling, mpf(rope.rotary_dim)
    trained = mpf(s["original_max_position_embeddings"])

    def pair(turns):
        return d * mp.log(trained / (2 * mp.pi * mpf(turns))) / (2 * mp.log(rope.base))

    low, high = pair(s["beta_fast"]), pair(s["beta_slow"])
    if s.get("truncate", True):
        low, high = mp.floor(low), mp.ceil(high)
    low, high = max(low, mpf(0)), min(high, d - 1)
    if low == high:
        high += mpf(1) / 1000
    made = [min(max((r - low) / (high - low), mpf(0)), mpf(1)) for r in range(rope.rotary_dim // 2)]
    return [1 - x for x in made] if rope.reversed_ramp else made


def frequencies(rope: Rope) -> list:
    s, by = rope.scaling, rope.factor
    if rope.inverted:
        by = 1 / by
    f = powers(rope)
    match rope.kind:
        case "default":
            return f
        case "linear":  # position interpolation, 2306.15595
            return [x / by for x in f]
        case "ntk":
            return powers(rope, stretched_base(rope, by))
        case "dynamic":
            trained, length = mpf(s["max_position_embeddings"]), max(rope.length, s["max_position_embeddings"])
            return powers(rope, stretched_base(rope, by * length / trained - (by - 1)))
        case "yarn":
            return [x / by * t + x * (1 - t) for x, t in zip(f, ramp(rope), strict=True)]
        case "llama3":
            low, high = mpf(s["low_freq_factor"]), mpf(s["high_freq_factor"])
            made = []
            for x in f:
                turns = mpf(s["original_max_position_embeddings"]) * x / (2 * mp.pi)
                if high == low or rope.no_smoothing:
                    t = mpf(1 if turns >= high else 0)
                else:
                    t = min(max((turns - low) / (high - low), mpf(0)), mpf(1))
                made.append(x / by * (1 - t) + x * t)
            return made
        case "longrope":  # 2402.13753
            far = rope.length > s["original_max_position_embeddings"]
            divisors = s["long_factor" if far != rope.other_list else "short_factor"]
            return [x * mpf(d) if rope.multiplied else x / mpf(d) for x, d in zip(f, divisors, strict=True)]
        case "proportional":  # Gemma 4: the whole head's exponents, the first part of its pairs
            turning = int(rope.head_dim * s["partial_rotary_factor"] // 2)
            return [x / by if r < turning else mpf(0) for r, x in enumerate(f)]
    raise ValueError(f"no formula for {rope.kind}")


def attention_factor(rope: Rope):
    """On cos and sin of queries and keys."""
    s = rope.scaling
    if rope.kind not in ("yarn", "longrope"):
        return mpf(1)
    if s.get("attention_factor") is not None:
        return mpf(s["attention_factor"])
    by = rope.factor
    if by <= 1:
        return mpf(1)
    if rope.kind == "longrope":
        far = rope.length > s["original_max_position_embeddings"]
        side = s.get("long_mscale" if far else "short_mscale")
        if side is not None:
            return mpf(side)
        return mp.sqrt(1 + mp.log(by) / mp.log(s["original_max_position_embeddings"]))

    def grown(m):
        return mpf(m) / 10 * mp.log(by) + 1

    if s.get("mscale") and s.get("mscale_all_dim"):
        return grown(s["mscale"]) / grown(s["mscale_all_dim"])
    return grown(1)


def angle(position, frequency):
    return mpf(position) * mpf(frequency)


@dataclass(frozen=True)
class Turn:
    """How a head's channels rotate: which make pairs, by which angles, times what."""

    frequency: list
    pairing: str = "halves"
    first_dim: int = 0
    factor: Any = 1
    axis_of_pair: list[int] | None = None
    direction: int = 1
    offset: int = 0
    times: int = 1
    table: str = "same"  # "concatenated": the table is laid out for halves whatever the pairing
    factor_on_all: bool = False
    rounded: Any = None  # what a narrow type makes of an angle

    def but(self, **changes) -> "Turn":
        return replace(self, **changes)

    def channels(self, r: int) -> tuple[int, int]:
        half = len(self.frequency)
        a, b = (r, r + half) if self.pairing == "halves" else (2 * r, 2 * r + 1)
        return self.first_dim + a, self.first_dim + b

    def angle(self, r: int, at: list) -> Any:
        axis = self.axis_of_pair[r] if self.axis_of_pair else 0
        made = angle(self.direction * (at[axis] + self.offset), self.frequency[r])
        return mpf(self.rounded(made)) if self.rounded else made

    def __call__(self, x: list, at: list) -> list:
        """One head's vector of a token that stands at `at`, a position for each axis."""
        for _ in range(self.times):
            made = [mpf(v) * (self.factor if self.factor_on_all else 1) for v in x]
            for r in range(len(self.frequency)):
                a, b = self.channels(r)
                if self.table == "concatenated":  # channel c takes the angle of pair c mod half
                    half = len(self.frequency)
                    angles = [self.angle((c - self.first_dim) % half, at) for c in (a, b)]
                else:
                    angles = [self.angle(r, at)] * 2
                va, vb = mpf(x[a]), mpf(x[b])
                made[a] = self.factor * (va * mp.cos(angles[0]) - vb * mp.sin(angles[0]))
                made[b] = self.factor * (vb * mp.cos(angles[1]) + va * mp.sin(angles[1]))
            x = made
        return x
