"""The repository for Hugging Face's `kernels`: loaded from a folder, and used by models of transformers, in Triton's interpreter where there
is no device."""

import importlib
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="triton is not installed")
transformers = pytest.importorskip("transformers")
kernels = pytest.importorskip("kernels", reason="kernels is not installed")

import posenc.torch as pt  # noqa: E402
import posenc.triton_kernels  # noqa: E402

DEVICE = "cpu" if posenc.triton_kernels.INTERPRETED else "cuda"
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("triton was imported before, not to be interpreted", allow_module_level=True)
MAKE = Path(__file__).resolve().parents[3] / "backends/hub/make.sh"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("hub") / "posenc-rotary"
    subprocess.run([str(MAKE), str(made)], check=True)
    return made


@pytest.fixture(scope="module")
def kernel(folder):
    return kernels.get_local_kernel(folder)


def tensor(*shape, dtype=torch.float32, seed=0):
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.to(dtype).to(DEVICE)


def angles(seq, rotary_dim):
    """Cosines and sines as transformers has them, each pair's twice."""
    frequency = 100.0 ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    each = torch.arange(seq, dtype=torch.float64)[None, :, None] * frequency
    both = torch.cat((each, each), -1).float().to(DEVICE)
    return both.cos(), both.sin()


def wanted(x, cos, sin, interleaved):
    """The rotation in double, of [batch, head, seq, channel]."""
    x, pairs = x.double(), cos.shape[-1] // 2
    c, s = (each[:, None, :, :pairs].double() for each in (cos, sin))
    turning, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    a, b = (turning[..., ::2], turning[..., 1::2]) if interleaved else turning.chunk(2, -1)
    a, b = a * c - b * s, a * s + b * c
    made = torch.stack((a, b), -1).flatten(-2) if interleaved else torch.cat((a, b), -1)
    return torch.cat((made, rest), -1)


@pytest.mark.parametrize("dtype, off", [(torch.float32, 2e-6), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("rotary_dim", [16, 8, 6])
@pytest.mark.parametrize("interleaved", [False, True])
def test_whole_heads_and_parts_of_them(kernel, dtype, off, rotary_dim, interleaved):
    apply = kernel.apply_rotary_interleaved_transformers if interleaved else kernel.apply_rotary_transformers
    q, k = tensor(2, 4, 5, 16, dtype=dtype), tensor(2, 2, 5, 16, dtype=dtype, seed=1)
    cos, sin = angles(5, rotary_dim)
    for made, x in zip(apply(q, k, cos, sin), (q, k), strict=True):
        assert made.dtype == dtype
        assert (made.double() - wanted(x, cos, sin, interleaved)).abs().max() <= off
    other, none = apply(q.transpose(1, 2), None, cos, sin, unsqueeze_dim=2)
    assert none is None and torch.equal(other.transpose(1, 2), apply(q, None, cos, sin)[0])


def test_the_gradient_is_the_rotation_back(kernel):
    q, (cos, sin) = tensor(1, 2, 5, 16).requires_grad_(), angles(5, 8)
    g = tensor(1, 2, 5, 16, seed=3)
    kernel.apply_rotary_transformers(q, None, cos, sin)[0].backward(g)
    assert (q.grad.double() - wanted(g, cos, -sin, False)).abs().max() < 2e-6
    torch.library.opcheck(torch.ops.posenc_rotary.turned.default, ([q], cos, sin, 1, False, False))


@pytest.mark.parametrize("case, rule", [
    ({"k": (1, 1, 3, 16)}, "k must have the tokens and channels of q"),
    ({"k": (1, 1, 5, 8)}, "k must have the tokens and channels of q"),
    ({"k": (2, 1, 5, 16)}, "k must have the tokens and channels of q"),
    ({"k": (1, 5, 16)}, "q and k must be of four axes"),
    ({"q": (1, 1, 2, 5, 16)}, "q and k must be of four axes"),
    ({"cos": (1, 2, 16)}, "cos and sin must be"),
    ({"cos": (1, 5, 32)}, "cos and sin must be"),
    ({"cos": (1, 5, 7)}, "cos and sin must be"),
    ({"cos": (1, 5, 0)}, "cos and sin must be"),
    ({"unsqueeze_dim": 0}, "unsqueeze_dim must be 1 or 2"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(kernel, case, rule):
    cos = tensor(*case.get("cos", (1, 5, 16)))
    q, k = tensor(*case.get("q", (1, 2, 5, 16))), tensor(*case.get("k", (1, 1, 5, 16)))
    with pytest.raises(ValueError, match=rule):
        kernel.apply_rotary_transformers(q, k, cos, cos, case.get("unsqueeze_dim", 1))


def test_types_and_gradients_that_do_not_fit_are_refused(kernel):
    q, (cos, sin) = tensor(1, 2, 5, 16), angles(5, 16)
    for given, rule in (
        ((q.double(), None, cos, sin), "float32, float16 or bfloat16"),
        ((q, q.half(), cos, sin), "must be alike"),
        ((q, None, cos.clone().requires_grad_(), sin), "must need no gradient"),
    ):
        with pytest.raises(ValueError, match=rule):
            kernel.apply_rotary_transformers(*given)


SIZES = {
    "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 50, "max_position_embeddings": 2**21, "pad_token_id": 0,
}  # fmt: skip


def model_of(name):
    torch.manual_seed(0)
    if name == "qwen3_5":
        config = transformers.Qwen3_5TextConfig(
            **SIZES, head_dim=16, layer_types=["full_attention"] * 2,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]},
        )  # fmt: skip
        made = transformers.Qwen3_5ForCausalLM(config)
    elif name == "glm":
        made = transformers.GlmForCausalLM(
            transformers.GlmConfig(**SIZES, head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 1e4,
                                                                          "partial_rotary_factor": 0.5})
        )  # fmt: skip
    else:
        made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    made.config._attn_implementation = "eager"
    return made.eval().to(DEVICE)


def modeling(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def logits(model, at=0):
    ids = torch.arange(at, at + TOKENS.shape[1])[None].to(DEVICE)
    with torch.no_grad():
        return model(TOKENS.to(DEVICE), position_ids=ids, use_cache=False).logits.double()


def dispatching(monkeypatch, name, layer_name):
    """transformers' own dispatch, which it has with the version of `kernels` that it asks for, on its function of a family; it lacks that of
    partial rotations altogether."""
    module = modeling(name)
    prefix = {"llama": "Llama", "glm": "Glm", "qwen3_5": "Qwen3_5"}[name]
    if not hasattr(module.apply_rotary_pos_emb, "kernel_layer_name"):
        monkeypatch.setattr(
            module, "apply_rotary_pos_emb", kernels.use_kernel_forward_from_hub(layer_name)(module.apply_rotary_pos_emb)
        )
        attention = getattr(module, f"{prefix}Attention")
        monkeypatch.setattr(attention, "__init__", attention.__init__)
        kernels.use_kernelized_func(module.apply_rotary_pos_emb)(attention)


@pytest.mark.parametrize("name, function", [
    ("llama", "apply_rotary_transformers"), ("qwen3_5", "apply_rotary_transformers"),
    ("glm", "apply_rotary_interleaved_transformers"),
])  # fmt: skip
def test_a_model_is_dispatched_to_it_by_name(folder, monkeypatch, name, function):
    layer_name = "rotary_pos_emb" if "interleaved" not in function else "rotary_pos_emb_interleaved"
    dispatching(monkeypatch, name, layer_name)
    model = model_of(name)
    before = logits(model)
    layer = kernels.LocalLayerRepository(folder, layer_name=function)
    with kernels.use_kernel_mapping({layer_name: {DEVICE: layer}}, inherit_mapping=False):
        kernels.kernelize(model, mode=kernels.Mode.INFERENCE, device=DEVICE, use_fallback=True)
    used = []
    with _Counting(torch.ops.posenc_rotary.turned, used):
        after = logits(model)
    assert len(used) == model.config.num_hidden_layers
    assert (after - before).abs().max() < 1e-5


class _Counting(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the calls of an operator."""

    def __init__(self, operator, calls):
        super().__init__()
        self.operator, self.calls = operator, calls

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is self.operator.default:
            self.calls.append(args)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name, function", [
    ("qwen3_5", "apply_rotary_transformers"), ("glm", "apply_rotary_interleaved_transformers"),
])  # fmt: skip
def test_partial_rotation_of_real_models(kernel, monkeypatch, name, function):
    """Near the beginning the logits are the eager model's; at position 10,000,000 the eager model's angles, which are floats, err, and
    with exact ones in their place the logits are those of the model in double."""
    model, module, at = model_of(name), modeling(name), 10_000_000
    near, far = logits(model), logits(model, at)
    monkeypatch.setattr(module, "apply_rotary_pos_emb", getattr(kernel, function))
    assert (logits(model) - near).abs().max() < 1e-5

    model.model.rotary_emb = pt.RotaryEmbedding(model.config)
    exact = logits(model, at)
    monkeypatch.undo()
    truth = logits(model.double(), at)
    assert (exact - truth).abs().max() < 1e-5
    assert (far - truth).abs().max() > 50 * (exact - truth).abs().max()
