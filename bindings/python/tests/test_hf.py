"""Live transformers models, small and random: nothing is found in healthy ones, every planted bug in the others."""

import copy
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import live_census  # noqa: E402
import live_planting  # noqa: E402
from live_bugs import BUGS  # noqa: E402
from live_models import CACHE, FAMILIES, INDEXED, KEPT, PICTURES, SCALED, V5, built, codes, picture, run  # noqa: E402

import posenc  # noqa: E402
import posenc.hf as hf  # noqa: E402


@pytest.fixture
def llama():
    return built("llama", **SCALED)


@pytest.mark.parametrize("family", [*FAMILIES, *PICTURES])
def test_healthy_models_have_nothing(family):
    """As they are, generating, with padding and a cache, packed, in 16 bits."""
    try:
        live_census.made(family)
    except (ValueError, KeyError, TypeError, AttributeError) as reason:
        pytest.skip(f"{family} of transformers {transformers.__version__}: {reason}")
    assert not live_census.healthy(family)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_in_every_family(name):
    found, missed = live_census.census(name)
    assert found and not missed


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
        cache = model(ids[:, :16], attention_mask=mask[:, :16], use_cache=True)[CACHE]
        model(ids[:, 16:], attention_mask=mask, **{CACHE: cache})
    assert seen.attended
    assert not codes(seen), str(seen.check())


@pytest.mark.parametrize("family", ["mistral", "gemma3_text", "gpt_oss"])
def test_healthy_generation_has_nothing(family):
    model = built(family, sliding_window=7)
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        model.generate(torch.randint(3, 50, (1, 12)), max_new_tokens=6, do_sample=False)
    assert not codes(seen), str(seen.check())


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
    """Within the trained length and beyond it: two of them depend on the length of the text."""
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


@pytest.mark.parametrize("family", [*FAMILIES, *PICTURES])
def test_a_patched_model_gives_the_same_logits(family):
    model = live_census.made(family)
    ids, inputs = picture(model) if family in PICTURES else (torch.randint(3, 50, (1, 40)), {})
    with torch.no_grad():
        before = model(ids, **inputs).logits
        with hf.patch(model) as patched:
            left = [each["left"] for each in patched.changes if each["left"]]
            assert patched.changes and all("tower" in why for why in left), str(patched)
            after = model(ids, **inputs).logits
        again = model(ids, **inputs).logits
    assert torch.allclose(before, after, atol=1e-4) and torch.equal(before, again)


@pytest.fixture
def emulated():
    """What a CUDA device computes, in a loop on the host."""
    pytest.importorskip("posenc_cuda", reason="posenc_cuda is not installed; make python builds it")
    return "emulated"


# Its function leaves pairs of neighbours in halves, which no plan says.
OWN_ORDER = ["deepseek_v3"]


@pytest.mark.parametrize("family", [*FAMILIES, *PICTURES])
def test_a_device_rotates_in_a_patched_model(family, emulated):
    model = live_census.made(family)
    ids, inputs = picture(model) if family in PICTURES else (torch.randint(3, 50, (1, 40)), {})
    with torch.no_grad():
        before = model(ids, **inputs).logits
        with hf.patch(model, backend=emulated) as patched:
            after = model(ids, **inputs).logits
        again = model(ids, **inputs).logits
    assert torch.allclose(before, after, atol=1e-4) and torch.equal(before, again)
    assert bool(patched.kernels.taken) == (family not in OWN_ORDER)


def test_a_device_rotates_padded_texts_and_has_their_gradients(llama, emulated):
    ids, mask = torch.randint(3, 50, (2, 12)), torch.ones(2, 12, dtype=torch.long)
    mask[0, :4] = 0

    def gradients():
        llama.zero_grad()
        llama(ids, attention_mask=mask, labels=ids).loss.backward()
        return [each.grad.clone() for each in llama.parameters()]

    before = gradients()
    with hf.patch(llama, backend=emulated) as patched:
        after = gradients()
    assert patched.kernels.taken
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(before, after, strict=True))


def test_a_device_rotates_step_by_step(llama, emulated):
    ids = torch.randint(3, 50, (1, 12))
    said = dict(max_new_tokens=8, do_sample=False, pad_token_id=0)
    expected = llama.generate(ids, **said)
    with hf.patch(llama, backend=emulated), hf.capture(llama) as seen:
        assert torch.equal(llama.generate(ids, **said), expected)
    assert not codes(seen)


def test_a_compiled_model_keeps_its_own_function(llama, emulated):
    ids = torch.randint(3, 50, (1, 12))
    with torch.no_grad(), hf.patch(llama, backend=emulated) as patched:
        compiled = torch.compile(lambda ids: llama(ids, use_cache=False).logits, backend="aot_eager")
        made = compiled(ids)
        assert not patched.kernels.taken
        assert torch.allclose(made, llama(ids).logits, atol=1e-5)


def test_two_patched_models_share_a_function(emulated):
    function = sys.modules["transformers.models.llama.modeling_llama"].apply_rotary_pos_emb
    one, other = hf.patch(built("llama"), backend=emulated), hf.patch(built("llama"), backend=emulated)
    one.unpatch()
    assert sys.modules["transformers.models.llama.modeling_llama"].apply_rotary_pos_emb is not function
    other.unpatch()
    assert sys.modules["transformers.models.llama.modeling_llama"].apply_rotary_pos_emb is function


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


def test_padding_that_is_counted_on_the_left_is_a_note(llama):
    mask = torch.tensor([[0, 0, 0, *[1] * 21]])
    seen, _ = run(llama, attention_mask=mask)
    findings = seen.check().findings
    assert findings and all(finding.severity == "note" for finding in findings)


def test_positions_that_start_again_in_a_second_chunk(llama):
    ids = torch.randint(3, 50, (1, 24))
    with torch.no_grad():
        cache = llama(ids[:, :12], use_cache=True)[CACHE]
    good, _ = run(llama, ids[:, 12:], **{CACHE: cache})
    assert not good.check().findings
    with torch.no_grad():
        cache = llama(ids[:, :12], use_cache=True)[CACHE]
    bad, _ = run(llama, ids[:, 12:], **{CACHE: cache}, position_ids=torch.arange(12)[None])
    assert bad.check().findings


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


# --- probe: the keys of a cache, where no function is seen


def hidden(model, made=None):
    """A model whose layers rotate by code of their own, which no tap knows by name."""
    own = live_planting.file_of(model).apply_rotary_pos_emb
    inline = (lambda *a, **o: own(*a, **o)) if made is None else (lambda q, k, cos, sin, **o: made(own, q, k, cos, sin))
    live_planting.rewritten(model, apply_rotary_pos_emb=inline)
    return model


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
        ("rotated_backwards", lambda own, q, k, cos, sin: own(q, k, cos, -sin)),
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


@pytest.mark.skipif(not V5, reason="transformers 4 has no such family")
@pytest.mark.parametrize("family", list(INDEXED))
def test_indexers_are_held_against_their_own_plans(family):
    model = built(family)
    seen, _ = run(model)
    assert seen.check().ok, str(seen.check())
    assert {record["part"] for record in seen.applied} == {"attention", "indexer"}
    code = sys.modules[type(model).__module__]
    names = ("apply_rotary_pos_emb", "apply_rotary_pos_emb_interleave")
    if not all(hasattr(code, name) for name in names):
        return
    both = [getattr(code, name) for name in names]
    # The two pairings exchanged, as engines have had them.
    try:
        for name, other in zip(names, reversed(both), strict=True):
            setattr(code, name, other)
        seen, _ = run(model)
    finally:
        for name, own in zip(names, both, strict=True):
            setattr(code, name, own)
    assert "pairing" in codes(seen) or "indexer_pairing" in codes(seen)


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


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt_oss", "phi", "cohere", "granite"])
def test_decoding_through_the_cache_gives_the_same_logits(family):
    model = built(family, **({"sliding_window": 7} if family in ("mistral", "gpt_oss") else {}))
    ids = torch.randint(3, 50, (2, 24))
    with torch.no_grad():
        expected = model(ids).logits
        with hf.decode(model) as decoder:
            parts = [decoder(part) for part in (ids[:, :16], ids[:, 16:17], ids[:, 17:])]
        assert torch.allclose(torch.cat(parts, 1), expected, atol=1e-4)
        assert torch.equal(model(ids).logits, expected)


DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}


def stretched(model, trained):
    """A model with dynamic NTK, trained on so many tokens as far as its configuration tells."""
    config = copy.deepcopy(model.config)
    theta = (config.rope_parameters if V5 else {"rope_theta": config.rope_theta})["rope_theta"]
    config.max_position_embeddings = trained
    if V5:
        config.rope_parameters = {**DYNAMIC, "rope_theta": theta}
    else:
        config.rope_scaling = DYNAMIC
    other = type(model)(config).eval()
    other.load_state_dict(model.state_dict())
    return other


class Anew(hf.Decoder):
    """The same by transformers' own rotary module and plain products: at each step every key is rotated anew."""

    def _attend(self, module, query, key, value, attention_mask, scaling=None, **_):
        file, (own, *_) = sys.modules[type(module).__module__], self._before.values()
        seen = self._caches.setdefault(module.layer_idx, [])
        seen.append((key, value))
        keys, values = (torch.cat(each, 2) for each in zip(*seen, strict=True))
        cos, sin = own(keys, torch.arange(self.length)[None])
        (keys, _), last = file.apply_rotary_pos_emb(keys, keys, cos, sin), slice(self.length - query.shape[2], None)
        query, _ = file.apply_rotary_pos_emb(query, query, cos[:, last], sin[:, last])
        keys, values = (each.repeat_interleave(query.shape[1] // each.shape[1], 1) for each in (keys, values))
        hidden = torch.ones(query.shape[2], self.length, dtype=torch.bool).triu(self.length - query.shape[2] + 1)
        logits = (query @ keys.transpose(2, 3) * scaling).masked_fill(hidden, float("-inf"))
        return (logits.softmax(-1) @ values).transpose(1, 2).contiguous(), None


def steps(decoder, ids, tokens):
    """The logits of some steps, each of the most likely token of the one before."""
    made = []
    with decoder:
        for _ in range(tokens):
            made.append(decoder(ids)[:, -1])
            ids = made[-1].argmax(-1)[:, None]
    return torch.stack(made)


def same_steps(model, ids, tokens) -> bool:
    ours, anew = (steps(kind(model), ids, tokens) for kind in (hf.Decoder, Anew))
    return bool((ours - anew).abs().max() < 2e-5 * anew.abs().max())


@KEPT
def test_decoding_under_dynamic_ntk_is_a_recompute():
    model = stretched(built("llama"), 16)
    assert same_steps(model, torch.randint(3, 50, (2, 12)), 12)


FETCHED = Path(__file__).resolve().parents[3] / "models" / "fetched" / "smollm2-135m"


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
    assert same_steps(stretched(model, 64), ids[:, :60], 12)
