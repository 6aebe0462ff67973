"""posenc.torch.RotaryEmbedding beside the modules of transformers that it stands in for."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from live_models import KEPT, PICTURES, V5, built, built_with_pictures, prompt  # noqa: E402

import posenc.hf as hf  # noqa: E402
import posenc.torch as pt  # noqa: E402
from posenc.hf.live import tower  # noqa: E402


def scaled(rope_type, **fields):
    said = {"rope_type": rope_type, **fields}
    return {"rope_parameters": {**said, "rope_theta": 1e4}} if V5 else {"rope_scaling": said, "rope_theta": 1e4}


LONG = {"short_factor": [1.0 + i / 20 for i in range(8)], "long_factor": [1.0 + i for i in range(8)]}
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
# Each with the style that its code takes.
CASES = {
    "plain": ("llama", {}, "cat"),
    "linear": ("llama", scaled("linear", factor=4.0), "cat"),
    "dynamic NTK": ("llama", {**scaled("dynamic", factor=4.0), "max_position_embeddings": 32}, "cat"),
    "YaRN": ("llama", scaled("yarn", factor=4.0, original_max_position_embeddings=64), "cat"),
    "Llama 3": ("llama", scaled("llama3", **LLAMA3), "cat"),
    "LongRoPE": (
        "phi3",
        {**(scaled("longrope", **LONG) if V5 else {"rope_scaling": {"type": "longrope", **LONG}, "rope_theta": 1e4}),
         "original_max_position_embeddings": 32, "max_position_embeddings": 128}, "cat",
    ),
    "a quarter of the channels": ("gpt_neox", {}, "cat"),
    "half of the channels": ("phi", {}, "cat"),
    "half of them, neighbours": ("glm", {}, "cat"),
    "neighbours": ("cohere", {}, "repeat"),
    "numbers once": ("gpt_oss", {}, "once"),
    "a part of the head, in DeepSeek's order": ("deepseek_v3", {}, "cat"),
    "M-RoPE in sections": ("qwen2_vl", {}, "by axes"),
    "M-RoPE of videos": ("qwen2_5_vl", {}, "by axes"),
    "M-RoPE interleaved": ("qwen3_vl", {}, "cat"),
}  # fmt: skip


def modules(family, said):
    """transformers' own and posenc's for the text of a small model, and its configuration."""
    model = built_with_pictures(family) if family in PICTURES else built(family, **said)
    own = next(module for name, module in hf.rotary_modules(model).items() if not tower(name))
    return own, pt.RotaryEmbedding(model.config)


def ids_of(tokens, axes):
    ids = torch.arange(tokens)[None].repeat(2, 1)
    return torch.stack([ids // (1 + axis) for axis in range(axes)]) if axes > 1 else ids


@pytest.mark.parametrize("tokens", [12, 48, 100])
@pytest.mark.parametrize("case", CASES)
def test_it_gives_what_the_module_of_transformers_gives(case, tokens):
    """Within the trained length and beyond it."""
    family, said, style = CASES[case]
    own, exact = modules(family, said)
    ids = ids_of(tokens, exact.plan().axes)
    theirs = own(torch.zeros(1), ids)
    if style == "by axes":  # transformers 4 and 5.0 leave the axes to the layers
        style = "axes" if theirs[0].dim() == 4 else "cat"
    assert pt.RotaryEmbedding.style_of(theirs, exact.plan(length=tokens), ids) == style
    exact.style = style
    for a, b in zip(theirs, exact(torch.zeros(1), ids), strict=True):
        assert a.shape == b.shape and (a - b).abs().max() < 2e-5


@KEPT
def test_a_text_that_is_short_again_has_its_own_angles_again():
    own, exact = modules("llama", CASES["dynamic NTK"][1])
    for tokens in (100, 12):
        for a, b in zip(own(torch.zeros(1), ids_of(tokens, 1)), exact(torch.zeros(1), ids_of(tokens, 1)), strict=True):
            assert (a - b).abs().max() < 2e-5


@pytest.mark.parametrize("case", ["plain", "neighbours", "M-RoPE in sections"])
def test_angles_of_other_devices_are_the_same(case):
    """By torch alone, as a compiled graph forms them too."""
    family, said, _ = CASES[case]
    _, exact = modules(family, said)
    plan = exact.plan()
    for ids in (ids_of(100, plan.axes), ids_of(100, 1)):
        made = pt._cos_sin_of(pt.frequencies(plan)[0], plan.attention_factor, ids, torch.float64)
        for a, b in zip(made, plan.cos_sin(ids, dtype=torch.float64, halves=True), strict=True):
            assert torch.allclose(a, b, atol=1e-12, rtol=0)


@pytest.mark.skipif(not V5, reason="of the newest transformers")
def test_a_patched_model_compiles_without_a_break():
    model = built("llama")
    with torch.no_grad(), hf.patch(model):
        expected = model.model(prompt()).last_hidden_state
        compiled = torch.compile(model.model.rotary_emb, fullgraph=True, backend="aot_eager")
        for a, b in zip(
            compiled(torch.zeros(1), ids_of(9, 1)), model.model.rotary_emb(torch.zeros(1), ids_of(9, 1)), strict=True
        ):
            assert torch.allclose(a, b, atol=1e-6)
        whole = torch.compile(model.model, backend="aot_eager")
        assert torch.allclose(whole(prompt()).last_hidden_state, expected, atol=1e-5)
