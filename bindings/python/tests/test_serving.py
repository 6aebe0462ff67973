"""Drop-ins for servers beside their own code, where it is installed, and beside a small reference of the same interface in double."""

import importlib.util
import math
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from posenc.serving import lmcache, rotations, sglang  # noqa: E402

HEADS = 2


class Rotary:
    """What vLLM and SGLang have of a rotation: a table of cosines and sines, and how channels are paired."""

    def __init__(
        self, head_size, rotary_dim, frequencies, *, neox=True, amplitude=1.0, rows=4096, dtype=torch.float32, **more
    ):
        self.head_size, self.rotary_dim, self.is_neox_style = head_size, rotary_dim, neox
        self.frequencies, self.amplitude = torch.as_tensor(frequencies, dtype=torch.float64), amplitude
        angles = torch.arange(rows, dtype=torch.float64)[:, None] * self.frequencies
        self.cos_sin_cache = (torch.cat([angles.cos(), angles.sin()], -1) * amplitude).to(dtype)
        vars(self).update(more)

    def rotated(self, x, positions, back=False):
        """[tokens, heads, channels] in double, of the first rotary_dim channels, on one axis or by mrope_section."""
        at = torch.atleast_2d(positions).double()
        pairs = len(self.frequencies)
        section = getattr(self, "mrope_section", None)
        axes = [0] * pairs
        if section and getattr(self, "mrope_interleaved", False):
            for axis in (1, 2):
                axes[axis : 3 * section[axis] : 3] = [axis] * section[axis]
        elif section:
            axes = [axis for axis, count in enumerate(section) for _ in range(count)]
        angles = at[axes].T * self.frequencies
        cos, sin = angles.cos()[:, None] * self.amplitude, angles.sin()[:, None] * self.amplitude
        if back:
            cos, sin = cos / self.amplitude**2, -sin / self.amplitude**2
        part, rest = x.double()[..., : self.rotary_dim], x.double()[..., self.rotary_dim :]
        a, b = part.chunk(2, -1) if self.is_neox_style else (part[..., ::2], part[..., 1::2])
        turned = (a * cos - b * sin, b * cos + a * sin)
        part = torch.cat(turned, -1) if self.is_neox_style else torch.stack(turned, -1).flatten(-2)
        return torch.cat([part, rest], -1)

    def __call__(self, positions, q, k):
        return tuple(
            self.rotated(x.reshape(len(x), -1, self.head_size), positions).to(x.dtype).reshape(x.shape) for x in (q, k)
        )


def powers(base, rotary_dim):
    return [base ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2)]


KINDS = {
    "halves": lambda: Rotary(64, 64, powers(1e4, 64), base=1e4),
    "neighbours": lambda: Rotary(64, 64, powers(1e4, 64), neox=False, base=1e4),
    "part of the head": lambda: Rotary(80, 32, powers(1e4, 32), base=1e4),
    "another scaling": lambda: Rotary(64, 64, [f / (1 + i) for i, f in enumerate(powers(5e5, 64))], amplitude=1.2),
    "a table of 16 bits": lambda: Rotary(64, 64, powers(1e6, 64), dtype=torch.bfloat16, base=1e6),
    "three axes in runs": lambda: Rotary(64, 64, powers(1e6, 64), base=1e6, mrope_section=[8, 12, 12]),
    "three axes in turn": lambda: Rotary(64, 64, powers(5e6, 64), base=5e6, mrope_section=[12, 10, 10], mrope_interleaved=True),
}  # fmt: skip


def positions_of(rotary, seed, count, most=4000):
    axes = 3 if getattr(rotary, "mrope_section", None) else 0
    made = torch.randint(0, most, (axes or 1, count), generator=torch.Generator().manual_seed(seed))
    return made if axes else made[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rotary_module_is_read_from_its_table(kind):
    rotary = KINDS[kind]()
    plan = rotations.plan_of(rotary)
    x, at = torch.randn(9, HEADS, rotary.head_size, dtype=torch.float64), positions_of(rotary, 1, 9)
    found = plan.rotate(x, position_ids=rotations.as_ids(at), layout="shd")
    # By powers of its base, or by a table whose floats were rounded.
    tolerance = 1e-11 if hasattr(rotary, "base") else 5e-3
    assert (found - rotary.rotated(x, at) * (plan.attention_factor / rotary.amplitude)).abs().max() < tolerance
    assert plan.attention_factor == pytest.approx(rotary.amplitude, abs=4e-3)


def test_a_module_without_a_table_is_told():
    with pytest.raises(posenc.Error, match="cos_sin_cache"):
        rotations.plan_of(types.SimpleNamespace(is_neox_style=True))
    rotary = KINDS["halves"]()
    rotary.mrope_section = [1, 2, 3]
    with pytest.raises(posenc.Error, match="share out"):
        rotations.plan_of(rotary)


# --- SGLang ---------------------------------------------------------------------------------------------------------


class Pool:
    def __init__(self, layers, head_size, dtype=torch.float32):
        generator = torch.Generator().manual_seed(5)
        self.layer_num, self.dtype = layers, dtype
        self.k_buffer, self.v_buffer = (
            [torch.randn(40, HEADS, head_size, generator=generator).to(dtype) for _ in range(layers)] for _ in range(2)
        )


OLD_LOCS, NEW_LOCS = torch.arange(3, 12), torch.arange(20, 29).flip(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_keys_are_copied_and_turned(kind, dtype):
    rotary = KINDS[kind]()
    pool = Pool(3, rotary.head_size, dtype)
    raw = [each[OLD_LOCS].double() for each in pool.k_buffer]
    old, new = positions_of(rotary, 1, 9), positions_of(rotary, 2, 9)
    for layer, keys in enumerate(raw):
        pool.k_buffer[layer][OLD_LOCS] = rotary.rotated(keys, old).to(dtype)
    stood = [each.clone() for each in pool.k_buffer]
    sglang.copy_kv_with_rope_correction(pool, rotary, OLD_LOCS, NEW_LOCS, old, new, [False, True])
    for layer in (0, 2):
        wanted = rotary.rotated(rotary.rotated(stood[layer][OLD_LOCS], old, back=True), new)
        off = (pool.k_buffer[layer][NEW_LOCS].double() - wanted).abs().max()
        exact = {torch.float64: 1e-10, torch.float32: 3e-6, torch.bfloat16: 3e-2}[dtype]
        assert off < (exact if hasattr(rotary, "base") else max(exact, 1e-2))
        assert torch.equal(pool.v_buffer[layer][NEW_LOCS], pool.v_buffer[layer][OLD_LOCS])
        assert torch.equal(pool.k_buffer[layer][OLD_LOCS], stood[layer][OLD_LOCS])
    assert not pool.k_buffer[1][NEW_LOCS].any() and not pool.v_buffer[1][NEW_LOCS].any()


def test_sixteen_bits_are_rounded_once():
    """There the unrotated keys are rounded between the two rotations, and cosines to the pool's type."""
    rotary, pool = KINDS["halves"](), Pool(1, 64, torch.bfloat16)
    old, new = positions_of(rotary, 1, 9), positions_of(rotary, 2, 9)
    stood = pool.k_buffer[0].clone()
    sglang.copy_kv_with_rope_correction(pool, rotary, OLD_LOCS, NEW_LOCS, old, new)
    wanted = rotary.rotated(rotary.rotated(stood[OLD_LOCS], old, back=True), new)
    half_step = 2.0**-8 * wanted.abs() + 1e-6
    assert ((pool.k_buffer[0][NEW_LOCS].double() - wanted).abs() <= half_step).all()


def test_layers_have_rotations_of_their_own():
    near, far = KINDS["halves"](), Rotary(64, 64, powers(1e6, 64), base=1e6)
    pool = Pool(3, 64, torch.float64)
    stood = [each.clone() for each in pool.k_buffer]
    old, new = torch.arange(100, 109), torch.arange(7, 16)
    sglang.copy_kv_with_rope_correction(pool, [near, None, far], OLD_LOCS, NEW_LOCS, old, new)
    for layer, rotary in ((0, near), (2, far)):
        wanted = rotary.rotated(rotary.rotated(stood[layer][OLD_LOCS], old, back=True), new)
        assert (pool.k_buffer[layer][NEW_LOCS] - wanted).abs().max() < 1e-11
    assert torch.equal(pool.k_buffer[1][NEW_LOCS], stood[1][OLD_LOCS])


def test_longrope_has_two_tables():
    short, long = Rotary(64, 64, powers(1e4, 64), rows=64), Rotary(64, 64, [f / 8 for f in powers(1e4, 64)], rows=512)
    both = types.SimpleNamespace(
        is_neox_style=True, rotary_dim=64, original_max_position_embeddings=64,
        long_short_cos_sin_cache=torch.cat([short.cos_sin_cache, long.cos_sin_cache]),
    )  # fmt: skip
    pool = Pool(1, 64, torch.float64)
    stood, old, new = pool.k_buffer[0].clone(), torch.arange(40, 49), torch.arange(300, 309)
    with pytest.raises(posenc.Error, match="two tables"):
        sglang.copy_kv_with_rope_correction(pool, both, OLD_LOCS, NEW_LOCS, old, new)
    sglang.copy_kv_with_rope_correction(pool, both, OLD_LOCS, NEW_LOCS, old, new, old_length=49, new_length=309)
    wanted = long.rotated(short.rotated(stood[OLD_LOCS], old, back=True), new)
    assert (pool.k_buffer[0][NEW_LOCS] - wanted).abs().max() < 1e-3  # of float32's tables


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="this torch has no float8")
@pytest.mark.parametrize("stored", ["float8_e4m3fn", "uint8"])
def test_pools_of_8_bits(stored):
    rotary, pool = KINDS["halves"](), Pool(1, 64, torch.float8_e4m3fn)
    stood = pool.k_buffer[0].double()
    if stored == "uint8":
        pool.k_buffer, pool.v_buffer = ([each.view(torch.uint8) for each in x] for x in (pool.k_buffer, pool.v_buffer))
    old, new = torch.arange(100, 109), torch.arange(7, 16)
    sglang.copy_kv_with_rope_correction(pool, rotary, OLD_LOCS, NEW_LOCS, old, new)
    found = pool.k_buffer[0].view(torch.float8_e4m3fn)[NEW_LOCS].double()
    wanted = rotary.rotated(rotary.rotated(stood[OLD_LOCS], old, back=True), new)
    assert ((found - wanted).abs() <= (wanted.abs() * 2.0**-4).clamp_min(2.0**-10) + 1e-6).all()
    pool.dtype = torch.float8_e5m2
    pool.k_buffer = [each.view(torch.uint8) for each in pool.k_buffer]
    with pytest.raises(posenc.Error, match="float8_e5m2"):
        sglang.copy_kv_with_rope_correction(pool, rotary, OLD_LOCS, NEW_LOCS, old, new)


class Latents:
    """A pool of DeepSeek's: [slot, 1, latent and rotated channels] in a layer."""

    start_layer = 0

    def __init__(self, layers, latent, rotated):
        self.latent = latent
        self.kv_buffer = [torch.randn(40, 1, latent + rotated, dtype=torch.float64) for _ in range(layers)]

    def get_mla_kv_buffer(self, layer, locs):
        return self.kv_buffer[layer.layer_id][locs].split([self.latent, self.kv_buffer[0].shape[-1] - self.latent], -1)

    def set_mla_kv_buffer(self, layer, locs, latent, rotated):
        self.kv_buffer[layer.layer_id][locs] = torch.cat([latent, rotated], -1)


def test_latents_move_their_rotated_part():
    rotary, pool = Rotary(64, 64, powers(1e4, 64), neox=False, base=1e4), Latents(3, 512, 64)
    layers = [types.SimpleNamespace(layer_id=i) for i in range(3)]
    stood, old, new = [each.clone() for each in pool.kv_buffer], torch.arange(100, 109), torch.arange(7, 16)
    sglang.copy_mla_kv_with_rope_correction(pool, layers, rotary, OLD_LOCS, NEW_LOCS, old, new, [True])
    assert not pool.kv_buffer[0][NEW_LOCS].any()
    for layer in (1, 2):
        latent, rotated = stood[layer][OLD_LOCS].split([512, 64], -1)
        wanted = torch.cat([latent, rotary.rotated(rotary.rotated(rotated, old, back=True), new)], -1)
        assert (pool.kv_buffer[layer][NEW_LOCS] - wanted).abs().max() < 1e-11


def test_what_cannot_be_copied_is_told():
    rotary, pool, at = KINDS["halves"](), Pool(1, 64), torch.arange(9)
    with pytest.raises(posenc.Error, match="as many"):
        sglang.copy_kv_with_rope_correction(pool, rotary, OLD_LOCS, NEW_LOCS, at, at[:8])
    pool.index_k_with_scale_buffer = [torch.zeros(1)]
    with pytest.raises(posenc.Error, match="indexer"):
        sglang.copy_kv_with_rope_correction(pool, rotary, OLD_LOCS, NEW_LOCS, at, at)
    assert sglang.as_long_tensor([1, 2], "cpu").dtype == torch.long and len(sglang.as_long_tensor(None, "cpu")) == 0


# --- LMCache --------------------------------------------------------------------------------------------------------

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("shape", ["flat", "heads"])
def test_chunks_move_in_place(neox, shape):
    fused = lmcache.get_fused_rope(64, 64, 4096, 1e4, neox)
    rotary = Rotary(64, 64, powers(1e4, 64), neox=neox)
    k, old, new = torch.randn(9, 2, 64), torch.arange(9), torch.arange(100, 109)
    stood = rotary.rotated(k, old).float()
    given = stood.clone() if shape == "heads" else stood.reshape(9, -1).clone()
    made = fused(old, new, given)
    assert made.shape == (9, 128) and made.data_ptr() == given.data_ptr()
    assert (made.reshape(9, 2, 64) - rotary.rotated(k, new)).abs().max() < 1e-6


@pytest.mark.parametrize(
    "words, channels",
    [
        (dict(head_size=80, rotary_dim=32), 32),
        (dict(head_size=128, rotary_dim=128, partial_rotary_factor=0.25), 32),
        (dict(head_size=64, rotary_dim=64, rope_scaling=YARN), 64),
        (dict(head_size=64, rotary_dim=64, rope_scaling={"type": "linear", "factor": 4.0}), 64),
        (dict(head_size=64, rotary_dim=64, rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}), 64),
        (dict(head_size=64, rotary_dim=64, rope_scaling={"rope_type": "dynamic", "factor": 2.0}), 64),
        (dict(head_size=64, rotary_dim=64, rope_scaling={"rope_type": "deepseek_yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}), 64),
    ],
    ids=["part", "factor", "yarn", "linear", "llama3", "dynamic", "deepseek"],
)  # fmt: skip
def test_what_is_refused_there_moves(words, channels):
    assert lmcache.validate_rope_params(max_position=4096, base=1e4, **words)
    fused = lmcache.get_fused_rope(max_position=4096, base=1e4, **words)
    assert fused.plan.rotary_dim == channels
    k = torch.randn(9, 2, words["head_size"], dtype=torch.float64)
    old, new = torch.arange(50, 59), torch.arange(1000, 1009)
    stood = fused.plan.rotate(k, position_ids=old, layout="shd")
    wanted = fused.plan.rotate(k, position_ids=new, layout="shd")
    assert (fused(old, new, stood).reshape(k.shape) - wanted).abs().max() < 1e-12


def test_pictures_move_on_three_axes():
    scaling = {"rope_type": "mrope", "mrope_section": [8, 12, 12]}
    fused, rotary = lmcache.get_fused_rope(64, 64, 4096, 1e6, rope_scaling=scaling), KINDS["three axes in runs"]()
    k, old, new = torch.randn(9, 2, 64, dtype=torch.float64), positions_of(rotary, 1, 9), positions_of(rotary, 2, 9)
    made = fused(old, new, rotary.rotated(k, old))
    assert (made.reshape(k.shape) - rotary.rotated(k, new)).abs().max() < 1e-11


def test_a_scaling_that_nobody_knows_is_none(caplog):
    assert lmcache.get_fused_rope(64, 64, 4096, 1e4, rope_scaling={"rope_type": "spiral"}) is None
    assert "spiral" in caplog.text


def test_a_rotation_is_taken_back():
    rotary = KINDS["part of the head"]()
    back = lmcache.BasicReverseRope(rotary, 32, True)
    q, k, at = torch.randn(9, 4 * 80), torch.randn(9, 2 * 80), torch.arange(40, 49)
    found = back(at, *rotary(at, q, k))
    assert all((a - b).abs().max() < 1e-5 for a, b in zip(found, (q, k), strict=True))


# --- beside their own code ------------------------------------------------------------------------------------------


def theirs(package, path):
    """A file of a package that is installed, without its others, which take a GPU."""
    found = importlib.util.find_spec(package)
    file = Path(found.submodule_search_locations[0], path) if found and found.submodule_search_locations else None
    if file is None or not file.exists():
        pytest.skip(f"{package} is not installed, or has no {path}")
    spec = importlib.util.spec_from_file_location("theirs", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_as_sglangs_own():
    own = theirs("sglang", "srt/mem_cache/fuzzy_match/rope_correction.py")

    def turn(x, cos, sin, neox, sign=1):
        cos, sin = cos[:, None].to(x.dtype), sign * sin[:, None].to(x.dtype)
        a, b = x.chunk(2, -1) if neox else (x[..., ::2], x[..., 1::2])
        parts = (a * cos - b * sin, b * cos + a * sin)
        return torch.cat(parts, -1) if neox else torch.stack(parts, -1).flatten(-2)

    hooks = {"apply_rotary_emb": turn, "reverse_rotary_emb": lambda *of: turn(*of, sign=-1)}
    for kind in ("halves", "neighbours", "part of the head"):
        rotary = KINDS[kind]()
        old, new = positions_of(rotary, 1, 9), positions_of(rotary, 2, 9)
        pools = [Pool(2, rotary.head_size), Pool(2, rotary.head_size)]
        own.copy_kv_with_rope_correction(pools[0], rotary, OLD_LOCS, NEW_LOCS, old, new, [True], **hooks)
        sglang.copy_kv_with_rope_correction(pools[1], rotary, OLD_LOCS, NEW_LOCS, old, new, [True], **hooks)
        for name in ("k_buffer", "v_buffer"):
            for a, b in zip(*(getattr(pool, name) for pool in pools), strict=True):
                assert (a - b).abs().max() < 5e-6


def test_as_lmcaches_own(monkeypatch):
    """Its kernel and vLLM's rotation are put in, as they take a GPU."""
    vllm = types.ModuleType("vllm.model_executor.layers.rotary_embedding")
    vllm.get_rope = lambda **words: Rotary(
        words["head_size"], words["head_size"], powers(words["rope_parameters"]["rope_theta"], words["head_size"]), neox=words["is_neox_style"]
    )  # fmt: skip
    kernels = types.ModuleType("lmcache.c_ops")

    def fused(old, new, k, head_size, table, neox):
        rotary = Rotary(head_size, head_size, powers(1e4, head_size), neox=neox)
        k.copy_(rotary.rotated(rotary.rotated(k, old, back=True), new))

    kernels.rotary_embedding_k_fused = fused
    logging = types.ModuleType("lmcache.logging")
    logging.init_logger = lambda name: lmcache.logger
    root = importlib.util.find_spec("lmcache")
    if root is None:
        pytest.skip("lmcache is not installed")
    parent = types.ModuleType("lmcache")
    parent.__path__ = list(root.submodule_search_locations)
    parent.torch_device_type, parent.c_ops, parent.device_ops = "cpu", kernels, kernels
    for module in (parent, kernels, logging, vllm):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("vllm", "vllm.model_executor", "vllm.model_executor.layers"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    file = Path(root.submodule_search_locations[0], "v1/compute/positional_encoding.py")
    if not file.exists():
        pytest.skip("this lmcache has no positional_encoding.py")
    spec = importlib.util.spec_from_file_location("theirs", file)
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    for neox in (True, False):
        a, b = own.get_fused_rope(64, 64, 4096, 1e4, neox), lmcache.get_fused_rope(64, 64, 4096, 1e4, neox)
        k, old, new = torch.randn(9, 128), torch.arange(9), torch.arange(100, 109)
        assert (a(old, new, k.clone()) - b(old, new, k.clone())).abs().max() < 1e-6
        back = [each.BasicReverseRope(a.rope, 64, neox) for each in (own, lmcache)]
        for mine, yours in zip(*(each(new, k, k) for each in back), strict=True):
            assert (mine - yours).abs().max() < 2e-6
    assert own.get_fused_rope(64, 32, 4096, 1e4) is None and lmcache.get_fused_rope(64, 32, 4096, 1e4) is not None


def test_what_turns_elsewhere_turns_alike():
    """The path of devices, on the CPU: torch's own operations."""
    for kind in KINDS:
        rotary = KINDS[kind]()
        plan, x = rotations.plan_of(rotary), torch.randn(9, HEADS, rotary.head_size, dtype=torch.float64)
        old, new = positions_of(rotary, 1, 9), positions_of(rotary, 2, 9)
        here = rotations.moved(x, plan, old, plan, new)
        assert (rotations.turned(x, plan, old, plan, new) - here).abs().max() < 1e-12
    assert math.isfinite(here.sum())
