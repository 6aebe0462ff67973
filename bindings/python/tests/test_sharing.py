"""Models of transformers that train over gloo ranks: losses, gradients and weights are those of one process."""

import copy
import itertools
import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed")
transformers = pytest.importorskip("transformers", minversion="5")
if not hasattr(os, "fork"):
    pytest.skip("ranks are forked", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
from gloo_ranks import failures_of, mesh_of, preload, refusal  # noqa: E402
from live_models import built, built_with_pictures  # noqa: E402

from posenc import distributed  # noqa: E402

preload("transformers.models.llama.modeling_llama", "transformers.models.qwen3.modeling_qwen3", "live_models")

TOKENS, STEPS = 45, 20
LAYOUTS = {"ring": "zigzag", "heads": "contiguous", "gather": "striped", "ring+heads": "zigzag"}  # beside a strategy


def batch(step):
    """Two texts that can be learned, one of them padded."""
    ids = 3 + (7 * torch.arange(TOKENS) + torch.tensor([[step], [step + 5]])) % 40
    mask, labels = torch.ones_like(ids), ids.clone()
    mask[0, 40:] = 0
    labels[0, 40:] = -100
    return ids, labels, mask


def trained(model, loss_of, steps):
    """Losses of all steps, and the gradients of the first."""
    optimizer, losses, first = torch.optim.AdamW(model.parameters(), lr=2e-3), [], []
    for step in range(steps):
        optimizer.zero_grad()
        losses.append(loss_of(*batch(step)))
        if not first:
            first = [each.grad.clone() for each in model.parameters()]
        optimizer.step()
    return losses, first


def whole(model):
    def loss_of(ids, labels, mask):
        loss = model(input_ids=ids, labels=labels, attention_mask=mask, use_cache=False).loss
        loss.backward()
        return loss.item()

    return loss_of


def of_ranks(model, shared):
    def loss_of(ids, labels, mask):
        text = shared.share(ids, labels, attention_mask=mask)
        loss = model(**text, use_cache=False).loss
        loss.backward()
        shared.sum_gradients()
        return shared.sum(loss).item()

    return loss_of


def farthest(ours, theirs):
    return max(
        (a - b).abs().max().item() / b.abs().max().clamp(min=1e-3).item() for a, b in zip(ours, theirs, strict=True)
    )


def _train(rank, ranks, family, strategies, steps):
    made = built(family, num_attention_heads=8, num_key_value_heads=4, head_dim=8).train()
    alone = copy.deepcopy(made)
    told = [trained(alone, whole(alone), steps) if rank == 0 else None]
    dist.broadcast_object_list(told)
    expected, gradients = told[0]
    if not expected[-1] < expected[0] - 0.02 * steps:
        yield f"{family} learns nothing: {expected}"
    for how in strategies:
        model = copy.deepcopy(made)
        group = mesh_of(2, ranks // 2) if how == "ring+heads" else None
        with distributed.context_parallel(model, how=how, group=group, layout=LAYOUTS[how]) as shared:
            losses, first = trained(model, of_ranks(model, shared), steps)
        off = max(abs(a - b) for a, b in zip(losses, expected, strict=True)), farthest(first, gradients)
        if "POSENC_TELL" in os.environ and rank == 0:
            print(family, how, steps, "losses and gradients are off by", *off, "losses", expected[0], losses[-1])
        if not max(off) < 2e-5:
            yield f"{family} {how}: losses and gradients are off by {off}"
        if model.config._attn_implementation != "eager":
            yield "the model is not as it was"


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_twenty_steps_on_four_ranks_have_the_losses_of_one_process(family):
    assert not failures_of(_train, 4, family, ["ring", "heads"], STEPS)


def test_four_steps_by_gathering_and_by_both():
    assert not failures_of(_train, 4, "llama", ["gather", "ring+heads"], 4)


# --- packed texts, windows, sinks, three axes --------------------------------------------------------------------


def _one_step(rank, ranks, layout, models):
    bounds = [0, 9, 10, 31, TOKENS]
    packed = torch.cat([torch.arange(b - a) for a, b in itertools.pairwise(bounds)])[None]
    axes = torch.stack([torch.arange(TOKENS), torch.arange(TOKENS) // 2, torch.arange(TOKENS) % 7])[:, None]
    for family in models:
        model = (built_with_pictures(family) if "vl" in family else built(family)).train()
        given, alone = {}, {}
        if layout == "by-document":
            given, alone = {"cu_seqlens": bounds}, {"position_ids": packed}
        elif "vl" in family:
            given = alone = {"position_ids": axes}
        ids = torch.randint(3, 40, (1, TOKENS), generator=torch.Generator().manual_seed(2))
        expected = model(input_ids=ids, labels=ids, use_cache=False, **alone).loss
        expected.backward()
        gradients = [each.grad.clone() for each in model.parameters() if each.grad is not None]
        model.zero_grad()
        for how in ("ring", "heads"):
            with distributed.context_parallel(model, how=how, layout=layout) as shared:
                loss = model(**shared.share(ids, ids, **given), use_cache=False).loss
                loss.backward()
                shared.sum_gradients()
                loss = shared.sum(loss)
            ours = [each.grad for each in model.parameters() if each.grad is not None and each.grad.any()]
            theirs = [each for each in gradients if each.any()]
            off = [(loss - expected).abs().item(), farthest(ours, theirs)]
            if not max(off) < 2e-5:
                yield f"{family}, {layout}, {how}: loss and gradients are off by {off}"
            model.zero_grad()


def test_packed_texts():
    assert not failures_of(_one_step, 2, "by-document", ["llama"])


def test_windows_sinks_and_three_axes():
    assert not failures_of(_one_step, 2, "zigzag", ["gemma3_text", "gpt_oss", "qwen2_5_vl"])


# --- wrapped by DDP, with checkpoints -------------------------------------------------------------------------------


def _wrapped(rank, ranks):
    ids, labels, mask = batch(0)
    made = built("llama").train()
    alone = copy.deepcopy(made)
    whole(alone)(ids, labels, mask)
    expected = [each.grad for each in alone.parameters()]
    for checkpoints in (False, True):
        model = copy.deepcopy(made)
        if checkpoints:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        with distributed.context_parallel(model) as shared:
            wrapped = torch.nn.parallel.DistributedDataParallel(model)
            loss = wrapped(**shared.share(ids, labels, attention_mask=mask), use_cache=False).loss
            (loss * ranks).backward()  # DDP averages
        off = farthest([each.grad for each in model.parameters()], expected)
        if not off < 2e-5:
            yield f"checkpoints {checkpoints}: gradients are off by {off}"


def test_under_ddp_and_with_checkpoints():
    assert not failures_of(_wrapped, 2)


# --- what is refused --------------------------------------------------------------------------------------------


def _refused(rank, ranks):
    def training(family, **more):
        model = built(family, **more).train()

        def run():
            with distributed.context_parallel(model) as shared:
                ids = batch(0)[0]
                model(**shared.share(ids, ids), use_cache=False)

        return run

    dynamic = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    for what, call, says in (
        ("dropout", training("llama", attention_dropout=0.1), "neither softcap nor dropout"),
        ("softcap", training("gemma2"), "neither softcap nor dropout"),
        ("dynamic NTK", training("llama", rope_parameters=dynamic, max_position_embeddings=40), "a rank's own length"),
    ):
        said = refusal(call)
        if said is None or says not in said:
            yield f"{what}: {said}"


def test_what_would_not_be_the_same_is_refused():
    assert not failures_of(_refused, 2)
