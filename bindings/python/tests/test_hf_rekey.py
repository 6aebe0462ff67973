"""Caches of transformers whose tokens move, beside a fresh prefill of the tokens that stay, for small random models."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if not hasattr(transformers.DynamicCache(), "layers"):
    pytest.skip("the cache of this transformers has no layers", allow_module_level=True)

from live_models import CACHE, FAMILIES, SCALED, built, built_with_pictures  # noqa: E402

import posenc  # noqa: E402
import posenc.hf as hf  # noqa: E402
from posenc.hf import rekeying  # noqa: E402

TEXT = torch.randint(3, 50, (2, 24), generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def prefill(model, ids, **more):
    return model(ids, use_cache=True, **more)


def cached(model, ids, **more):
    return prefill(model, ids, **more)[CACHE]


def follow(model, cache, ids, first):
    """The logits of tokens behind those of a cache."""
    at = torch.arange(first, first + ids.shape[1])[None]
    return prefill(model, ids, position_ids=at, **{CACHE: cache}).logits


def off(a, b, layer=0) -> float:
    """The largest difference of two caches in one layer; of keys, and of values, which a latent cache rotates."""
    pairs = [(getattr(each.layers[layer], name) for each in (a, b)) for name in ("keys", "values")]
    return max((x - y).abs().max().item() for x, y in pairs)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_layer_is_a_fresh_prefills(family):
    """Cropped from the front, merged, and both with the first tokens kept."""
    try:
        model = built(family)
        whole = cached(model, TEXT)
    except (ValueError, KeyError, TypeError, AttributeError) as reason:
        pytest.skip(f"{family} of transformers {transformers.__version__}: {reason}")
    cropped = hf.rekey(whole, model, keep=range(7, 24))
    assert off(cropped, cached(model, TEXT[:, 7:])) < 1e-5
    assert (cropped.get_seq_length(), whole.get_seq_length()) == (17, 24)
    merged = hf.rekey([cached(model, TEXT[:, :10]), cached(model, TEXT[:, 10:])], model)
    assert off(merged, whole) < 1e-5
    kept = [0, 1, 2, *range(12, 24)]
    assert off(hf.rekey(whole, model, keep=kept), cached(model, TEXT[:, kept])) < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shift_of_all_changes_no_logit(family):
    """A rotation sees differences alone, so that every layer is right."""
    model = built(family)
    before = follow(model, cached(model, TEXT[:, :20]), TEXT[:, 20:], 20)
    moved = hf.rekey(cached(model, TEXT[:, :20]), model, to_positions=300)
    assert (follow(model, moved, TEXT[:, 20:], 320) - before).abs().max() < 1e-4


@pytest.mark.parametrize(
    "family, more",
    [
        ("llama", {}),
        ("gpt_neox", {}),
        ("qwen2", SCALED),
        ("gemma3_text", {}),
        ("deepseek_v3", {}),
        ("glm", {}),
        ("cohere2", {}),
    ],
)
def test_one_layer_goes_on_as_if_it_had_read_what_stays(family, more):
    """With one layer nothing of the tokens that left is in the keys of the others: logits are a fresh prefill's."""
    model = built(
        family,
        **{**more, "num_hidden_layers": 1, "layer_types": None}
        if family == "cohere2"
        else {**more, "num_hidden_layers": 1},
    )
    cropped = hf.rekey(cached(model, TEXT[:, :20]), model, keep=range(5, 20))
    logits = follow(model, cropped, TEXT[:, 20:], 15)
    assert (logits - prefill(model, TEXT[:, 5:]).logits[:, 15:]).abs().max() < 1e-5


def test_windows_hold_what_they_show():
    model = built("gemma3_text", sliding_window=7)
    whole = cached(model, TEXT)
    cropped = hf.rekey(whole, model, keep=range(7, 24))
    fresh = cached(model, TEXT[:, 7:])
    assert off(cropped, fresh) < 1e-5 and cropped.layers[0].keys.shape[-2] == 6
    assert cropped.layers[0].cumulative_length == fresh.layers[0].cumulative_length == 17
    assert off(hf.rekey([cached(model, TEXT[:, :10]), cached(model, TEXT[:, 10:])], model), whole) < 1e-5
    short = hf.rekey([cached(model, TEXT[:, :10]), cached(model, TEXT[:, 10:12])], model)
    assert off(short, cached(model, TEXT[:, :12])) < 1e-5
    with pytest.raises(posenc.Error, match="a window must still hold"):
        hf.rekey(whole, model, keep=range(10))


def test_batches_stand_where_their_masks_say():
    """Left padding: each sequence has positions of its own."""
    model = built("llama")
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[0, :5] = 0
    ids = (mask.cumsum(-1) - 1).clamp_min(0)
    whole = cached(model, TEXT, attention_mask=mask, position_ids=ids)
    moved = hf.rekey(whole, model, from_positions=ids, to_positions=ids + 100)
    fresh = cached(model, TEXT, attention_mask=mask, position_ids=ids + 100)
    assert (
        off(moved, fresh) < 1e-5
        and off(hf.rekey(moved, model, from_positions=ids + 100, to_positions=ids), whole) < 1e-5
    )


def test_pictures_move_on_three_axes():
    model = built_with_pictures("qwen2_vl")
    at = torch.stack([torch.arange(24), torch.arange(24) // 4, torch.arange(24) % 4])[:, None]
    whole = cached(model, TEXT, position_ids=at)
    moved = hf.rekey(whole, model, from_positions=at, to_positions=at + torch.tensor([9, 3, 1])[:, None, None])
    assert off(moved, cached(model, TEXT, position_ids=at + torch.tensor([9, 3, 1])[:, None, None])) < 1e-5


def test_sixteen_bits_are_rounded_once():
    model = built("llama", dtype=torch.bfloat16)
    whole = cached(model, TEXT)
    moved, fresh = hf.rekey(whole, model, keep=range(7, 24)), cached(model, TEXT[:, 7:])
    keys = fresh.layers[0].keys
    assert moved.layers[0].keys.dtype == torch.bfloat16
    assert off(moved, fresh) <= 2 * torch.finfo(torch.bfloat16).eps * keys.abs().max()


LONG = {
    "rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0 + i for i in range(8)],
    "original_max_position_embeddings": 16, "rope_theta": 1e4,
}  # fmt: skip


def test_a_rotation_that_the_length_changes_changes_with_it():
    model = built("phi3", rope_parameters=LONG, max_position_embeddings=64, original_max_position_embeddings=16)
    whole, fresh = cached(model, TEXT), cached(model, TEXT[:, 12:])
    assert off(hf.rekey(whole, model, keep=range(12, 24)), fresh) < 1e-5


# --- the gate, and what runs show -----------------------------------------------------------------------------------

SMALL = dict(vocab_size=50, hidden_size=64, num_hidden_layers=1, bos_token_id=1, eos_token_id=2, pad_token_id=0)
KINDS = {
    "rotation": ("exact", lambda: built("llama", num_hidden_layers=1)),
    "part of the head": ("exact", lambda: built("gpt_neox", num_hidden_layers=1)),
    "neighbours": ("exact", lambda: built("glm", num_hidden_layers=1)),
    "yarn": ("exact", lambda: built("qwen2", **SCALED, num_hidden_layers=1)),
    "bases by layer, windows": ("exact", lambda: built("gemma3_text", sliding_window=30)),
    "latent attention": ("exact", lambda: built("deepseek_v3", num_hidden_layers=1)),
    "layers without": ("exact", lambda: built("smollm3")),
    "biases by distance": ("exact", lambda: small(transformers.BloomConfig(n_head=4, n_layer=1, **SMALL))),
    "a learned table": ("never", lambda: small(transformers.GPT2Config(n_head=4, n_embd=64, n_positions=64, **SMALL))),
    "a learned table with an offset": (
        "never",
        lambda: small(transformers.OPTConfig(num_attention_heads=4, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=64, **SMALL)),
    ),
    "sinusoids": ("never", lambda: small(transformers.XGLMConfig(attention_heads=4, d_model=64, ffn_dim=64, num_layers=1, max_position_embeddings=64, **SMALL))),
}  # fmt: skip


def small(config):
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_is_what_a_run_shows(kind, monkeypatch):
    """Where keys may move those of the first layer are a fresh prefill's; where not they are others, however they are turned."""
    verdict, make = KINDS[kind]
    model = make()
    assert {group.verdict for group in posenc.reuse(model)} == {verdict}
    whole, fresh = cached(model, TEXT), cached(model, TEXT[:, 7:])
    if verdict != "exact":
        with pytest.raises(posenc.Error, match="embeddings"):
            hf.rekey(whole, model, keep=range(7, 24))
        monkeypatch.setattr(rekeying, "_allowed", lambda said: None)
    difference = off(hf.rekey(whole, model, keep=range(7, 24)), fresh)
    assert difference < 1e-5 if verdict == "exact" else difference > 1e-3
    if kind == "biases by distance" or model.config.num_hidden_layers > 1:
        return  # BLOOM takes no ids; deeper layers hold what their tokens read of those that left
    # And the logits of what comes behind, beside those of a prompt of the tokens that stay.
    cropped = hf.rekey(cached(model, TEXT[:, :20]), model, keep=range(7, 20))
    logits = follow(model, cropped, TEXT[:, 20:], 13)
    difference = (logits - prefill(model, TEXT[:, 7:]).logits[:, 13:]).abs().max()
    assert difference < 1e-5 if verdict == "exact" else difference > 1e-4


def test_chunks_of_absolute_position_show_other_tokens():
    """Keys are right, and at another place a token sees others: what the gate refuses is the text that comes of it."""
    config = transformers.Llama4TextConfig(
        **{**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32, "intermediate_size_mlp": 32},
        attention_chunk_size=8, num_local_experts=1, moe_layers=[], no_rope_layers=[1], layer_types=["chunked_attention"],
    )  # fmt: skip
    model = small(config)
    assert "chunks begin" in posenc.reuse(model)[0].why
    with pytest.raises(posenc.Error, match="chunks begin"):
        hf.rekey(cached(model, TEXT), model, keep=range(3, 24))


def test_what_does_not_move_is_told():
    model = built("llama")
    whole = cached(model, TEXT)
    static = transformers.StaticCache(config=model.config, max_cache_len=32)
    with pytest.raises(posenc.Error, match="StaticLayer"):
        hf.rekey(static, model)
    with pytest.raises(posenc.Error, match="holds tokens"):
        hf.rekey(transformers.DynamicCache(), model)
    with pytest.raises(posenc.Error, match="ascending"):
        hf.rekey(whole, model, keep=[3, 2])
    with pytest.raises(posenc.Error, match="as many as"):
        hf.rekey(whole, model, to_positions=[3, 2])
    hybrid = transformers.Qwen3NextConfig(
        **{
            **SMALL,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "num_hidden_layers": 4,
            "intermediate_size": 32,
        }
    )
    with pytest.raises(posenc.Error, match="recurrence"):
        hf.rekey(whole, hybrid)
