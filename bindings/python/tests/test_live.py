"""Live models as people run them: generating, wrapped, compiled, and not at all."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from live_models import CACHE, SCALED, built, codes, prompt  # noqa: E402

import posenc  # noqa: E402
import posenc.hf as hf  # noqa: E402

FAMILIES = ["llama", "gemma3_text", "gpt_oss", "qwen3", "phi3"]


@pytest.fixture
def llama():
    return built("llama", **SCALED)


# --- generating ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_healthy_model_that_generates_has_nothing(family):
    model, ids = built(family), prompt(16, 2)
    with hf.capture(model, layers="all") as seen:
        model.generate(ids, max_new_tokens=5, do_sample=False)
    assert seen.check().findings == [], str(seen.check())


def test_a_healthy_model_that_generates_behind_padding_has_nothing(llama):
    mask = torch.ones(2, 16, dtype=torch.long)
    mask[0, :5] = 0
    with hf.capture(llama, layers="all") as seen:
        llama.generate(prompt(16, 2), attention_mask=mask, max_new_tokens=5, do_sample=False)
    assert seen.check().findings == [], str(seen.check())


def test_every_step_of_a_text_is_seen(llama):
    with hf.capture(llama) as seen:
        llama.generate(prompt(16), max_new_tokens=5, do_sample=False, eos_token_id=None)
    assert [call["cached"] for call in seen.calls] == [0, 16, 17, 18, 19]


@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_a_cache_is_known_by_either_name(llama, name):
    if name == "cache" and CACHE != "cache":
        pytest.skip("transformers before 5.24 calls it past_key_values alone")
    ids = prompt()
    with torch.no_grad():
        cache = llama(ids[:, :12], use_cache=True)[CACHE]
        with hf.capture(llama) as seen:
            llama(ids[:, 12:], **{name: cache})
    assert seen.calls[0]["cached"] == 12 and seen.check().findings == []


def test_arguments_are_known_by_their_places(llama):
    mask = torch.ones(1, 24, dtype=torch.long)
    mask[0, :5] = 0
    with torch.no_grad(), hf.capture(llama) as seen:
        llama(prompt(), mask)
    assert seen.calls[0]["mask"] is not None


@pytest.mark.parametrize("family", FAMILIES)
def test_generation_is_the_same_patched(family):
    model, ids = built(family), prompt(12)
    before = model.generate(ids, max_new_tokens=8, do_sample=False)
    with hf.patch(model):
        assert torch.equal(model.generate(ids, max_new_tokens=8, do_sample=False), before)


# --- nothing seen -------------------------------------------------------------------------------------------------


def test_a_model_that_never_ran_is_not_right(llama):
    with hf.capture(llama) as seen:
        pass
    report = seen.check()
    assert not report.ok and codes(seen) == {"nothing_seen"}
    assert "was not called while it was watched" in str(report)


def test_a_copy_that_ran_is_another_model(llama):
    other = copy.deepcopy(llama)
    with torch.no_grad(), hf.capture(llama) as seen:
        other(prompt())
    assert codes(seen) == {"nothing_seen"}


def test_strict_raises_where_nothing_was_seen(llama):
    with hf.capture(llama) as seen:
        pass
    with pytest.raises(posenc.Error, match="nothing_seen"):
        seen.check(strict=True)


def test_a_model_whose_layers_show_nothing_is_not_right(llama, monkeypatch):
    with torch.no_grad(), hf.capture(llama) as seen:
        monkeypatch.setattr(llama, "forward", lambda *args, **kwargs: None)
        llama(prompt())
    assert codes(seen) == {"nothing_seen"}


# --- wrapped ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def group():
    """A group of one process."""
    if not torch.distributed.is_available():
        pytest.skip("PyTorch was built without torch.distributed")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def in_data_parallel(model):
    return torch.nn.DataParallel(model)


def in_ddp(model):
    return torch.nn.parallel.DistributedDataParallel(model)


def in_fsdp(model):
    return torch.distributed.fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"))


def in_fsdp2(model):
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    return torch.distributed.fsdp.fully_shard(model, mesh=mesh)


def in_an_average(model):
    return torch.optim.swa_utils.AveragedModel(model)


def compiled(model):
    return torch.compile(model, backend="eager")


WRAPPERS = [in_data_parallel, in_ddp, in_fsdp, in_fsdp2, in_an_average, compiled, lambda model: compiled(in_ddp(model))]
wrapped = pytest.mark.parametrize("wrap", WRAPPERS, ids=lambda wrap: wrap.__name__)


@wrapped
def test_a_wrapped_model_is_seen(llama, group, wrap):
    model = wrap(llama)
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        model(prompt())
    assert seen.rotary and seen.applied and seen.check().findings == []


@wrapped
def test_a_wrapped_model_is_probed(llama, group, wrap):
    assert hf.probe(wrap(llama)).ok


@wrapped
def test_a_bug_in_a_wrapped_model_is_found(llama, group, wrap):
    llama.model.rotary_emb.inv_freq *= 1.01
    model = wrap(llama)
    with torch.no_grad(), hf.capture(model) as seen:
        model(prompt())
    assert not seen.check().ok


@wrapped
def test_a_wrapped_model_is_explained(llama, group, wrap):
    assert posenc.model(wrap(llama)).plan() == posenc.model(llama).plan()


@wrapped
def test_a_wrapped_model_is_patched(llama, group, wrap):
    ids, model = prompt(), wrap(llama)
    with torch.no_grad():
        before = model(ids).logits
        with hf.patch(model) as patched:
            assert "replaced" in str(patched)
            assert torch.allclose(model(ids).logits, before, atol=1e-4)
        assert torch.equal(model(ids).logits, before)


def test_a_compiled_model_that_ran_before_is_seen(llama):
    model = compiled(llama)
    with torch.no_grad():
        model(prompt())
        with hf.capture(model) as seen:
            model(prompt())
    assert seen.rotary and seen.check().findings == []


def test_a_model_compiled_in_place_is_seen(llama):
    llama.compile(backend="eager")
    with torch.no_grad():
        llama(prompt())
        with hf.capture(llama) as seen:
            llama(prompt())
    assert seen.rotary and seen.check().findings == []
