"""Live transformers models, small and random: nothing is found in healthy ones, every planted bug in the others."""

import inspect
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import posenc  # noqa: E402
import posenc.hf as hf  # noqa: E402

SIZES = dict(
    vocab_size=50, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
V5 = transformers.__version__ >= "5"
SCALED = {"rope_parameters": {**YARN, "rope_theta": 1e6}} if V5 else {"rope_scaling": YARN, "rope_theta": 1e6}
# What each family needs besides.
FAMILIES = {
    "llama": {}, "mistral": {}, "qwen2": {}, "qwen3": {}, "gemma": {}, "gemma2": {}, "gemma3_text": dict(num_hidden_layers=6),
    "phi": {}, "phi3": {}, "olmo": {}, "olmo2": {}, "olmo3": dict(num_hidden_layers=4, rope_theta=5e5), "smollm3": dict(num_hidden_layers=4), "stablelm": {},
    "starcoder2": {}, "granite": {}, "cohere": {}, "cohere2": dict(num_hidden_layers=4), "glm": {}, "glm4": {},
    "mixtral": dict(num_local_experts=2), "qwen2_moe": dict(num_experts=2, num_experts_per_tok=1),
    "qwen3_moe": dict(num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16),
    "gpt_oss": dict(num_local_experts=2, num_experts_per_tok=1), "gpt_neox": dict(rotary_pct=0.25), "persimmon": {},
    "helium": {}, "nemotron": {}, "ernie4_5": {}, "hunyuan_v1_dense": {}, "seed_oss": {}, "exaone4": dict(num_hidden_layers=4),
    "arcee": {}, "apertus": {}, "bitnet": {}, "diffllama": {}, "olmoe": dict(num_experts=2, num_experts_per_tok=1),
    "granitemoe": dict(num_local_experts=2, num_experts_per_tok=1), "lfm2": dict(layer_types=["full_attention"] * 2),
    "dots1": dict(n_routed_experts=2, num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=16, first_k_dense_replace=2),
    "minimax": dict(num_local_experts=2, layer_types=["full_attention"] * 2),
    "deepseek_v3": dict(num_key_value_heads=4, head_dim=8, q_lora_rank=32, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=2,
                        num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=16, first_k_dense_replace=2),
}  # fmt: skip


def built(family, **more):
    torch.manual_seed(0)
    dtype = more.pop("dtype", torch.float32)
    config = transformers.AutoConfig.for_model(family, **{**SIZES, **FAMILIES[family], **more})
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=dtype).eval()


def run(model, ids=None, **inputs):
    ids = torch.randint(3, 50, (1, 24), generator=torch.Generator().manual_seed(1)) if ids is None else ids
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        out = model(ids, **inputs)
    return seen, out


@pytest.fixture
def llama():
    return built("llama", **SCALED)


@pytest.mark.parametrize("family", FAMILIES)
def test_healthy_models_have_nothing(family):
    try:
        model = built(family)
    except (ValueError, KeyError, TypeError, AttributeError) as reason:
        pytest.skip(f"{family} of transformers {transformers.__version__}: {reason}")
    seen, _ = run(model)
    report = seen.check()
    assert report.ok, str(report)
    assert seen.applied, "nothing was seen"


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(
    "family", ["mistral", "gemma2", "gemma3_text", "gpt_oss", "cohere2", "olmo3", "exaone4", "llama"]
)
def test_healthy_windows_with_padding_and_a_cache_have_nothing(family, implementation):
    model = built(family, sliding_window=7)
    if implementation == "sdpa":
        try:
            model.set_attn_implementation("sdpa")
        except ValueError as reason:
            pytest.skip(str(reason))
    ids = torch.randint(3, 50, (2, 24))
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[0, :5] = 0
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        cache = model(ids[:, :16], attention_mask=mask[:, :16], use_cache=True).past_key_values
        model(ids[:, 16:], attention_mask=mask, past_key_values=cache)
    assert seen.attended
    assert not codes(seen), str(seen.check())


@pytest.mark.parametrize("family", ["mistral", "gemma3_text", "gpt_oss"])
def test_healthy_generation_has_nothing(family):
    model = built(family, sliding_window=7)
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        model.generate(torch.randint(3, 50, (1, 12)), max_new_tokens=6, do_sample=False)
    assert not codes(seen), str(seen.check())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["llama", "cohere", "gemma3_text", "gpt_neox", "deepseek_v3"])
def test_healthy_models_of_16_bits_have_nothing(family, dtype):
    report = run(built(family, dtype=dtype))[0].check()
    assert report.ok, str(report)


SCALINGS = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 4.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
    "llama3": {
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
    },
    "longrope": {
        "short_factor": [1.0] * 8, "long_factor": [1.0 + i for i in range(8)], "original_max_position_embeddings": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("tokens", [12, 48])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_healthy_scalings_have_nothing(scaling, tokens):
    """Within the trained length and beyond it: two of them go by the length of the text."""
    said = {"rope_type": scaling, **SCALINGS[scaling]}
    said = {"rope_parameters": {**said, "rope_theta": 1e4}} if V5 else {"rope_scaling": said, "rope_theta": 1e4}
    if scaling == "longrope" and not V5:  # which wants these three and no more
        said["rope_scaling"] = {
            "type": scaling,
            **{name: SCALINGS[scaling][name] for name in ("short_factor", "long_factor")},
        }
    length = 16 if scaling == "dynamic" else 64
    family = "phi3" if scaling == "longrope" else "llama"
    model = built(family, **said, max_position_embeddings=length, original_max_position_embeddings=16)
    report = run(model, torch.randint(3, 50, (1, tokens)))[0].check()
    assert report.ok, str(report)


@pytest.mark.parametrize("family", ["llama", "cohere", "gemma3_text", "glm", "gpt_neox", "phi3"])
def test_a_patched_model_gives_the_same_logits(family):
    model = built(family)
    ids = torch.randint(3, 50, (1, 40))
    with torch.no_grad():
        before = model(ids).logits
        with hf.patch(model) as patched:
            assert patched.changes and not any(each["left"] for each in patched.changes), str(patched)
            after = model(ids).logits
        again = model(ids).logits
    assert torch.allclose(before, after, atol=1e-4) and torch.equal(before, again)


def codes(seen):
    return {finding.code for finding in seen.check().findings if finding.severity == "error"}


def test_frequencies_cast_to_bfloat16(llama):
    llama.to(torch.bfloat16)
    seen, _ = run(llama)
    assert "inv_freq_dtype" in codes(seen)
    with hf.patch(llama):
        assert not codes(run(llama)[0])


def test_a_lost_scaling(llama):
    rotary = llama.model.rotary_emb
    rotary.inv_freq = 1 / 1e6 ** (torch.arange(0, 16, 2) / 16)
    assert "scaling_lost" in codes(run(llama)[0])
    with pytest.raises(posenc.Error, match="scaling_lost"):
        run(llama)[0].check(strict=True)


def test_another_base():
    model = built("llama")
    model.model.rotary_emb.inv_freq = 1 / 5e5 ** (torch.arange(0, 16, 2) / 16)
    report = run(model)[0].check()
    assert report.findings[0].code == "rope_theta" and "500000" in report.findings[0].message


def test_a_lost_attention_factor(llama):
    llama.model.rotary_emb.attention_scaling = 1.0
    assert "attention_factor" in codes(run(llama)[0])


def test_padding_that_is_counted(llama):
    mask = torch.tensor([[0, 0, 0, *[1] * 21]])
    seen, _ = run(llama, attention_mask=mask)
    findings = seen.check().findings
    assert findings and all(finding.severity == "note" for finding in findings)
    ids = torch.arange(24)[None].clone()
    ids[0, 10:] += 5
    assert codes(run(llama, attention_mask=torch.ones(1, 24, dtype=torch.long), position_ids=ids)[0])


def test_positions_that_start_again_in_a_second_chunk(llama):
    ids = torch.randint(3, 50, (1, 24))
    with torch.no_grad():
        cache = llama(ids[:, :12], use_cache=True).past_key_values
    good, _ = run(llama, ids[:, 12:], past_key_values=cache)
    assert not good.check().findings
    with torch.no_grad():
        cache = llama(ids[:, :12], use_cache=True).past_key_values
    bad, _ = run(llama, ids[:, 12:], past_key_values=cache, position_ids=torch.arange(12)[None])
    assert bad.check().findings


def module_of(model):
    """The file that a model's attention is written in."""
    return sys.modules[type(model.model.layers[0].self_attn).__module__]


def rewritten(model, **names):
    """A model whose layers' code takes other functions by these names than its file has, as a file of another would."""
    for layer in model.model.layers:
        attention = layer.self_attn
        forward = inspect.unwrap(type(attention).forward)
        copy = types.FunctionType(
            forward.__code__, {**forward.__globals__, **names}, None, forward.__defaults__, forward.__closure__
        )
        copy.__kwdefaults__ = forward.__kwdefaults__
        attention.forward = types.MethodType(copy, attention)
    return model


def attended(model, made):
    """What is seen of a model that hands other queries to its attention than its layers rotated."""
    module = module_of(model)

    class Handed:
        def __getitem__(self, name):
            return lambda layer, q, *a, **o: module.ALL_ATTENTION_FUNCTIONS[name](layer, made(q), *a, **o)

        def get_interface(self, name, default):
            return default if name == "eager" else self[name]

    rewritten(
        model,
        ALL_ATTENTION_FUNCTIONS=Handed(),
        eager_attention_forward=lambda layer, q, *a, **o: module.eager_attention_forward(layer, made(q), *a, **o),
        apply_rotary_pos_emb=lambda *a, **o: module.apply_rotary_pos_emb(*a, **o),
    )
    return codes(run(model)[0])


def planted(model, monkeypatch, made):
    module = module_of(model)
    own = module.apply_rotary_pos_emb
    monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda *a, **k: made(own, *a, **k))
    return codes(run(model)[0])


def test_rotated_twice(llama, monkeypatch):
    assert "rotated_twice" in planted(
        llama, monkeypatch, lambda own, q, k, *cs, **o: own(*own(q, k, *cs, **o), *cs, **o)
    )


def test_not_rotated(llama, monkeypatch):
    assert "not_rotated" in planted(llama, monkeypatch, lambda own, q, k, *cs, **o: (q, k))


def test_the_other_pairing(llama, monkeypatch):
    def neighbours(own, q, k, cos, sin, unsqueeze_dim=1):
        c, s = (
            each[..., : each.shape[-1] // 2].repeat_interleave(2, -1).unsqueeze(unsqueeze_dim) for each in (cos, sin)
        )
        return tuple(x * c + torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2) * s for x in (q, k))

    assert "pairing" in planted(llama, monkeypatch, neighbours)


def test_rotated_backwards(llama, monkeypatch):
    assert "rotation" in planted(llama, monkeypatch, lambda own, q, k, cos, sin, **o: own(q, k, cos, -sin, **o))


def test_local_layers_that_rotate_as_global_ones(monkeypatch):
    model = built("gemma3_text")
    rotary = model.model.rotary_emb
    if V5:
        rotary.sliding_attention_inv_freq = rotary.full_attention_inv_freq.clone()
    else:
        model.model.rotary_emb_local.inv_freq = rotary.inv_freq.clone()
    assert {"rope_theta", "rotation"} & codes(run(model)[0])


def test_a_layer_that_should_not_rotate(monkeypatch):
    model = built("smollm3")
    for layer in model.model.layers:
        layer.self_attn.use_rope = 1
    assert "rotated" in codes(run(model)[0])


def test_queries_from_before_their_rotation(llama, monkeypatch):
    module = module_of(llama)
    rotate, kept = module.apply_rotary_pos_emb, []
    monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda q, *a, **k: kept.append(q) or rotate(q, *a, **k))
    assert attended(llama, lambda q: kept[-1]) == {"not_rotated"}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_queries_rotated_again_on_their_way_to_the_attention(llama, implementation):
    llama.set_attn_implementation(implementation)
    plan = posenc.model(llama).plan()
    assert attended(llama, plan.rotate) == {"rotated_twice"}


def test_logits_scaled_otherwise(llama):
    for layer in llama.model.layers:
        layer.self_attn.scaling *= 1.2
    report = run(llama)[0].check()
    assert [finding.code for finding in report.findings] == ["logits"] * 2 and report.findings[0].found == "1.2/√16"


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_window_that_a_layer_lost(implementation):
    model = built("mistral", sliding_window=7)
    model.set_attn_implementation(implementation)
    assert not codes(run(model)[0])
    model.config.sliding_window = None  # which masks are made by
    seen = hf.capture(model, layers="all")
    seen.said = posenc.model(built("mistral", sliding_window=7))
    with torch.no_grad(), seen:
        model(torch.randint(3, 50, (1, 24)))
    (first, *_) = seen.check().findings
    assert (first.code, first.expected, first.found) == ("window", "7", "none")


def test_queries_that_see_what_comes_later(llama, monkeypatch):
    module = module_of(llama)
    monkeypatch.setattr(module, "create_causal_mask", lambda *a, **k: torch.zeros(1, 1, 24, 24))
    assert codes(run(llama)[0]) == {"causal"}


def test_queries_that_see_padding(llama, monkeypatch):
    module = module_of(llama)
    own = module.create_causal_mask
    monkeypatch.setattr(module, "create_causal_mask", lambda *a, **k: own(*a, **{**k, "attention_mask": None}))
    seen, _ = run(llama, attention_mask=torch.tensor([[0, 0, 0, *[1] * 21]]))
    assert codes(seen) == {"padding"}


def test_keys_cached_before_their_rotation(llama, monkeypatch):
    from transformers.cache_utils import DynamicLayer

    module = module_of(llama)
    rotate, kept = module.apply_rotary_pos_emb, []
    update = DynamicLayer.update
    monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda q, k, *a, **o: kept.append(k) or rotate(q, k, *a, **o))

    def unrotated(self, keys, values, *args, **kwargs):
        update(self, kept[-1], values, *args, **kwargs)
        return keys, values

    monkeypatch.setattr(DynamicLayer, "update", unrotated)
    assert codes(run(llama, use_cache=True)[0]) == {"cached_keys"}


# --- probe: the keys of a cache, where no function is seen


def hidden(model, made=None):
    """A model whose layers rotate by code of their own, which no tap knows by name."""
    own = module_of(model).apply_rotary_pos_emb
    inline = (lambda *a, **o: own(*a, **o)) if made is None else (lambda q, k, cos, sin, **o: made(own, q, k, cos, sin))
    return rewritten(model, apply_rotary_pos_emb=inline)


def test_a_probe_of_a_healthy_model_has_nothing(llama):
    assert hf.probe(hidden(llama)).ok


def test_a_probe_needs_no_function_to_be_seen(llama):
    notes = run(hidden(llama))[0].check().findings
    assert [each.code for each in notes] == ["not_seen"]
    assert not hf.probe(llama).findings


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("not_rotated", lambda own, q, k, cos, sin: (q, k)),
        ("rotated_twice", lambda own, q, k, cos, sin: own(*own(q, k, cos, sin), cos, sin)),
        ("rotation", lambda own, q, k, cos, sin: own(q, k, cos, -sin)),
        ("rotation", lambda own, q, k, cos, sin: own(q, k, cos.roll(1, -1), sin.roll(1, -1))),
    ],
)
def test_a_probe_finds_what_hidden_code_does(code, made):
    report = hf.probe(hidden(built("llama"), made))
    assert {each.code for each in report.findings} == {code}, str(report)


@pytest.mark.parametrize(
    "family", ["llama", "gemma3_text", "gpt_oss", "gpt_neox", "deepseek_v3", "cohere", "phi3", "glm"]
)
def test_probes_of_healthy_families_have_nothing(family):
    report = hf.probe(built(family))
    assert report.ok, str(report)


def test_a_function_that_somebody_replaced(llama, monkeypatch):
    module = __import__(type(llama.model.layers[0].self_attn).__module__, fromlist=["x"])
    own = module.apply_rotary_pos_emb

    def fused(q, k, cos, sin, unsqueeze_dim=1):
        return own(q, k, cos, sin, unsqueeze_dim)

    fused.__module__ = "liger_kernel.transformers.rope"
    monkeypatch.setattr(module, "apply_rotary_pos_emb", fused)
    seen, _ = run(llama)
    (finding,) = seen.check().findings
    assert finding.code == "replaced" and finding.severity == "note" and "liger_kernel" in finding.found


def test_generation_is_the_same_with_posencs_rotary(llama):
    ids = torch.randint(3, 50, (1, 10))
    before = llama.generate(ids, max_new_tokens=10, do_sample=False)
    with hf.patch(llama):
        assert torch.equal(llama.generate(ids, max_new_tokens=10, do_sample=False), before)


@pytest.mark.parametrize("family", ["llama", "qwen3", "mistral", "gemma3_text", "gpt_oss", "phi3"])
def test_posencs_attention_gives_the_same_logits(family):
    model = built(family, **({"sliding_window": 7} if family in ("mistral", "gemma3_text", "gpt_oss") else {}))
    ids = torch.randint(3, 50, (2, 24))
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[0, :5] = 0
    with torch.no_grad():
        before = model(ids, attention_mask=mask).logits
        hf.use_attention(model)
        after = model(ids, attention_mask=mask).logits
    shown = mask.bool()
    assert torch.allclose(before[shown], after[shown], atol=1e-4)
    loss = model(ids, attention_mask=mask, labels=ids).loss
    loss.backward()
    assert model.lm_head.weight.grad is not None


FETCHED = Path(__file__).resolve().parents[2] / "models" / "fetched" / "smollm2-135m"


@pytest.mark.skipif(not FETCHED.exists(), reason="make models fetches SmolLM2-135M")
def test_a_real_model():
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    name = next(FETCHED.glob("*.gguf")).name
    model = transformers.AutoModelForCausalLM.from_pretrained(FETCHED, gguf_file=name, dtype=torch.float32).eval()
    ids = torch.randint(5, 4000, (1, 64), generator=torch.Generator().manual_seed(1))
    seen, out = run(model, ids)
    assert not seen.check().findings and len(seen.applied) == 30
    with torch.no_grad(), hf.patch(model):
        hf.use_attention(model)
        logits = model(ids).logits
        assert (logits - out.logits).abs().max() < 1e-5 * out.logits.abs().max()
        ours = model.generate(ids, max_new_tokens=12, do_sample=False)
    model.set_attn_implementation("sdpa")
    assert torch.equal(ours, model.generate(ids, max_new_tokens=12, do_sample=False))
