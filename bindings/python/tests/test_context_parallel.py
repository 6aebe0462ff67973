"""posenc.distributed.attend over gloo: forward and backward are those of one process; what one rank has wrong, all say."""

import importlib
import os
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed")
if not hasattr(os, "fork"):
    pytest.skip("ranks are forked", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
from gloo_ranks import die, failures_of, mesh_of, refusal  # noqa: E402
from some_plans import DIM, PLANS, with_tables  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

import posenc  # noqa: E402
from posenc import distributed  # noqa: E402

TOKENS, HEADS = 37, 8
BOUNDS = [0, 5, 6, 21, TOKENS]
MASKS = ({}, {"window": 9}, {"chunk": 10}, {"prefix": 7}, {"causal": False})
MOST = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 0.02, torch.bfloat16: 0.1}
STRATEGIES = {"ring": "zigzag", "gather": "striped", "heads": "contiguous", "ring+heads": "zigzag"}  # beside a layout


def group_of(how, ranks, seconds=60):
    """All ranks; of ring+heads a mesh, whose first dimension is the ring."""
    ring = next(each for each in (2, 3, 1) if ranks % each == 0)
    return mesh_of(ring, ranks // ring, seconds) if how == "ring+heads" else None


def plan_of(scheme, kv_heads=HEADS):
    return posenc.plan(scheme, head_dim=DIM, heads=HEADS, kv_heads=kv_heads, length=64)


def farthest(a, b):
    """Absolute, but where numbers are above 1."""
    return max([0.0, *((a.double() - b).abs() / b.abs().clamp(min=1)).flatten().tolist()])


def differences(
    rank, shares, how, group, plan, dtype, *, kv_heads=HEADS, whole=None, keep=None, sink=False, by=None, **mask
):
    """How far outputs and gradients of a rank are from those of one process."""
    torch.manual_seed(0)
    *given, gradient = (
        torch.randn(2, n, TOKENS, DIM, dtype=torch.float64).to(dtype) for n in (HEADS, kv_heads, kv_heads, HEADS)
    )
    sinks = torch.linspace(0, 1, HEADS, dtype=torch.float64).to(dtype) if sink else None
    what = dict(mask, position_ids=whole, key_position_ids=whole, keep=keep)
    what["sink_logits"] = None if sinks is None else sinks.double()
    exact = [each.double() for each in given]
    expected = posenc.attend(*exact, plan, **what)
    exact_by = posenc.attend_backward(
        *exact, gradient.double(), plan, parameters=["sink_logits"] if sink else [], **what
    )

    own = torch.from_numpy(shares.indices(rank)).long()
    mine = [each[:, :, own].clone().requires_grad_() for each in given]
    if sinks is not None:
        sinks.requires_grad_()
    made = distributed.attend(
        *mine, shares, plan, how=how, group=group, whole=whole, sink_logits=sinks,
        keep=None if keep is None else keep[:, own], by=by, **mask,
    )  # fmt: skip
    made.backward(gradient[:, :, own])
    assert made.dtype == dtype
    off = [farthest(made.detach(), expected[:, :, own])]
    off += [farthest(each.grad, exact_by[letter][:, :, own]) for each, letter in zip(mine, "qkv", strict=True)]
    if sinks is not None:
        total = sinks.grad.double()
        dist.all_reduce(total)
        off.append(farthest(total, exact_by["sink_logits"]) / TOKENS)
    return off


def every_call(rank, ranks):
    """(what, keywords) of the calls that are compared."""
    rope, alibi = plan_of(posenc.Rope()), plan_of(posenc.Alibi())
    all_of_it = ranks == 4 or "POSENC_RANKS" in os.environ
    for how, name in STRATEGIES.items():
        group = group_of(how, ranks)
        shares = distributed.layout(name, TOKENS, ranks)

        def call(what, plan, dtype=torch.float32, *, shares=shares, how=how, group=group, **more):
            return f"{how}, {what}", {
                "shares": shares,
                "how": how,
                "group": group,
                "plan": plan,
                "dtype": dtype,
                **more,
            }

        for mask in MASKS if all_of_it else MASKS[:2]:
            yield call(f"RoPE, {mask}", rope, torch.float64, sink="window" in mask, **mask)
            yield call(f"ALiBi, {mask}", alibi, **mask)
        for plan in PLANS if all_of_it else ():
            yield call(plan, PLANS[plan](heads=HEADS, kv_heads=HEADS, length=64))
        for dtype in (torch.float16, torch.bfloat16):
            yield call(str(dtype), rope, dtype, sink=True)
        for kv_heads in {"heads": (ranks,), "ring+heads": (4, 2)}.get(how, (2, 1)):
            if HEADS % kv_heads == 0 and (how != "ring+heads" or kv_heads >= group.size(1)):
                yield call(f"{kv_heads} key heads", plan_of(posenc.Rope(), kv_heads), kv_heads=kv_heads)
        keep = torch.ones(2, TOKENS, dtype=torch.bool)
        keep[0, 30:] = keep[1, :4] = False
        yield call("padding", rope, keep=keep)
        packed, documents = posenc.positions.packed(BOUNDS), distributed.layout("by-document", BOUNDS, ranks)
        yield call("packed", rope, shares=documents, whole=packed)
        yield call("packed, window", alibi, shares=documents, whole=packed, window=4)
        axes = plan_of(posenc.Rope(mrope_section=[2, 3, 3]))
        ids = torch.stack([torch.arange(TOKENS), torch.arange(TOKENS) // 2, torch.arange(TOKENS) % 5])[:, None]
        yield call("three axes", axes, whole=posenc.positions.ids(ids.numpy()))


def _as_one_process(rank, ranks):
    for what, how in every_call(rank, ranks):
        off = differences(rank, **how)
        if not max(off) < MOST[how["dtype"]]:
            yield f"{what}: {off}"


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_outputs_and_gradients_are_those_of_one_process(ranks):
    assert not failures_of(_as_one_process, ranks)


def _by_flex(rank, ranks, strategies):
    # FlexAttention has a backward pass on the CPU, in eager mode, and refuses it.
    flex_attention = importlib.import_module("torch.nn.attention.flex_attention")
    flex_attention._validate_device = lambda *_: None
    torch._dynamo.config.recompile_limit = 1000  # for as many score_mods
    for what, how in every_call(rank, ranks):
        if how["how"] not in strategies:
            continue
        how["dtype"] = torch.float32 if how["dtype"] == torch.float64 else how["dtype"]
        off = differences(rank, by="flex", **how)
        if not max(off) < MOST[how["dtype"]]:
            yield f"{what}: {off}"


@pytest.mark.parametrize("ranks, strategies", [(3, ["gather", "heads"]), (4, ["ring"]), (2, ["ring+heads"])])
def test_flex_attention_is_as_the_kernels_are(ranks, strategies):
    pytest.importorskip("torch.nn.attention.flex_attention")
    assert not failures_of(_by_flex, ranks, strategies)


def _by_flex_or_not(rank, ranks):
    shares, plan = distributed.layout("zigzag", TOKENS, ranks), plan_of(posenc.Rope())
    q, k, v = (torch.randn(1, HEADS, shares.size(rank), DIM) for _ in range(3))
    calls = {
        "by must be None, 'kernels' or 'flex'": {"by": "flash"},
        "FlexAttention takes no scheme that reads the content": {
            "by": "flex", "how": "gather", "scheme": posenc.StickBreaking(),
        },
        "ranks must agree": {"by": "flex" if rank else "kernels"},
        "vectors by distance that are added to the output": {
            "by": "flex", "plan": with_tables(posenc.Shaw(max_distance=5), "key", "value", heads=HEADS, kv_heads=HEADS, length=64),
        },
    }  # fmt: skip
    for words, how in calls.items():
        said = refusal(lambda: distributed.attend(q, k, v, shares, **{"plan": plan, **how}))  # noqa: B023
        if said is None or words not in said:
            yield f"{words}: {said}"


def test_what_flex_attention_does_not_say_all_ranks_say():
    pytest.importorskip("torch.nn.attention.flex_attention")
    assert not failures_of(_by_flex_or_not, 2)


# --- schemes that read the content ---------------------------------------------------------------------------------


def contents():
    """(scheme with its own tables, tables of tokens)."""
    made = torch.Generator().manual_seed(3)

    def drawn(*shape):
        return torch.rand(2, HEADS, TOKENS, *shape, dtype=torch.float64, generator=made)

    fire = {"hidden_weight": torch.randn(3), "hidden_bias": torch.randn(3), "output_weight": torch.randn(HEADS, 3)}
    keys = torch.nn.functional.normalize(drawn(DIM) - 0.5, dim=-1)
    return [
        (posenc.Fire(**fire, output_bias=torch.randn(HEADS)), {}),
        (posenc.Cope(embeddings=torch.randn(8, DIM)), {}),
        (posenc.StickBreaking(), {}),
        (posenc.Forgetting(), {"log_gates": -drawn()}),
        (posenc.Wall(), {"channel_gates": -drawn(DIM)}),
        (posenc.Path(), {"w": keys, "beta": drawn()}),
        (posenc.GrapeAp(), {"p_queries": drawn(8), "p_keys": drawn(8)}),
    ]


def _content(rank, ranks):
    torch.manual_seed(0)
    q, k, v, gradient = (torch.randn(2, HEADS, TOKENS, DIM, dtype=torch.float64) for _ in range(4))
    shares, plan = distributed.layout("zigzag", TOKENS, ranks), plan_of(posenc.NoPe())
    own = torch.from_numpy(shares.indices(rank)).long()
    for scheme, tables in contents():
        whole = scheme.replace(**tables)
        expected = posenc.attend(q, k, v, plan, scheme=whole)
        by = posenc.attend_backward(q, k, v, gradient, plan, scheme=whole, parameters=list(tables))
        mine = [each[:, :, own].clone().requires_grad_() for each in (q, k, v, *tables.values())]
        made = distributed.attend(
            *mine[:3], shares, plan, how="gather", scheme=scheme, tables=dict(zip(tables, mine[3:], strict=True))
        )
        made.backward(gradient[:, :, own])
        off = [farthest(made.detach(), expected[:, :, own])]
        off += [farthest(a.grad, by[n][:, :, own]) for a, n in zip(mine, ("q", "k", "v", *tables), strict=True)]
        if not max(off) < 1e-11:
            yield f"{scheme.name}: {off}"
        said = refusal(lambda: distributed.attend(*mine[:3], shares, plan, scheme=scheme))  # noqa: B023
        if said is None or "take how='gather'" not in said:
            yield f"{scheme.name}: {said}"


def test_schemes_that_read_the_content_gather():
    assert not failures_of(_content, 3)


# --- errors -------------------------------------------------------------------------------------------------------

WRONG = {
    "tokens": "rank 3: q must have the 8 tokens",
    "dtype": "rank 3: k must be of q's dtype",
    "keyword": "rank 3: no such keyword as windows",
    "heads": "must agree",
    "plan": "must agree",
    "table": "must agree",
    "window": "must agree",
    "layout": "must agree",
    "positions": "must agree",
    "all of another dtype": "must agree",
    "padding": "must agree",
    "no positions": "rank 3: TypeError",
    "tables": "rank 3: tables are those of a scheme=",
    "length": "rank 0: the plan must hold for the whole text's length",
}


def _one_is_wrong(rank, ranks):
    for how in STRATEGIES:
        group = group_of(how, ranks)
        for wrong, says in WRONG.items():
            here = rank == ranks - 1
            tokens = 32 if wrong != "length" else 80
            shares = distributed.layout("striped" if wrong == "layout" and here else "zigzag", tokens, ranks)
            size = shares.size(rank) + (wrong == "tokens" and here)
            heads = 4 if wrong == "heads" and here else HEADS
            q = torch.randn(
                1, heads, size, DIM, dtype=torch.float16 if wrong.startswith("all of") and here else torch.float32
            )
            k = q.double() if wrong == "dtype" and here else q
            scheme = posenc.Rope(rope_theta=5e5 if wrong == "plan" and here else 1e4)
            if wrong == "length":
                scheme = posenc.Rope(scaling=posenc.DynamicNtk(factor=2, max_position_embeddings=64))
            plan = posenc.plan(scheme, head_dim=DIM, heads=heads, length=64)
            if wrong == "table":
                table = torch.zeros(heads, 8)
                table[0, 0] = here
                plan = posenc.plan(posenc.T5(num_buckets=8), head_dim=DIM, heads=heads).with_table("bias", table)
            mask = {"window": 5 if wrong == "window" and here else 6}
            if wrong == "keyword" and here:
                mask = {"windows": 6}
            whole = posenc.positions.range(int(here), tokens) if wrong == "positions" else None
            if wrong == "no positions" and here:
                whole = list(range(tokens))
            keep = torch.ones(1, size) if wrong == "padding" and here else None
            if wrong == "tables" and here:
                mask["tables"] = {"log_gates": q[..., 0]}
            said = refusal(
                lambda: distributed.attend(q, k, q, shares, plan, how=how, group=group, whole=whole, keep=keep, **mask)  # noqa: B023
            )
            if said is None or says not in said or not said.startswith("distributed.attend: "):
                yield f"{how}, {wrong}: {said}"


def test_one_error_is_that_of_all():
    assert not failures_of(_one_is_wrong, 4)


def test_a_strategy_that_is_none_and_a_mesh_that_does_not_suit():
    assert not failures_of(_unsuited, 2)


def _unsuited(rank, ranks):
    shares, q = distributed.layout("zigzag", 8, ranks), torch.randn(1, 1, 4, DIM)
    for how, group, says in (
        ("tree", None, "one of: ring"),
        ("ring+heads", None, "a DeviceMesh of two dimensions"),
        ("ring", init_device_mesh("cpu", (1, 2)), "a group of one dimension"),
        ("heads", None, "a key head for each of the 2 ranks"),
    ):
        said = refusal(lambda: distributed.attend(q, q, q, shares, how=how, group=group))  # noqa: B023
        if said is None or says not in said:
            yield f"{how}: {said}"


def _module(rank, ranks):
    shares, mesh = distributed.layout("zigzag", TOKENS, ranks), init_device_mesh("cpu", (ranks,))
    plan = plan_of(posenc.Rope())
    layer = distributed.PosencAttention(plan, how="heads", group=mesh, window=9)
    q = torch.randn(1, HEADS, TOKENS, DIM, generator=torch.Generator().manual_seed(1))
    own = torch.from_numpy(shares.indices(rank))
    mine = q[:, :, own]
    if not torch.equal(layer(mine, mine, mine, shares), posenc.attend(q, q, q, plan, window=9)[:, :, own]):
        yield "other bits than one process"
    if repr(layer) != "PosencAttention(how='heads', window=9)":
        yield repr(layer)


def test_the_module_over_a_mesh_has_the_bits_of_one_process_by_heads():
    assert not failures_of(_module, 2)


# --- a rank that dies -----------------------------------------------------------------------------------------------


def _one_dies(rank, ranks, how, victim, seconds):
    group = group_of(how, ranks, seconds)
    shares = distributed.layout("contiguous", TOKENS, ranks)
    q = torch.randn(1, HEADS, shares.size(rank), DIM, requires_grad=True)
    made = distributed.attend(q, q, q, shares, how=how, group=group)
    dist.barrier()
    if rank == victim:
        die()
    said = refusal(lambda: [made.sum().backward(), distributed.attend(q, q, q, shares, how=how, group=group)])
    if said is None or "every rank must answer within the group's timeout" not in said:
        yield f"{how}: {said}"
    time.sleep(seconds)  # none is helped by the end of another


@pytest.mark.parametrize("how", ["ring", "ring+heads"])
def test_a_rank_that_dies_is_an_error_of_the_others(how):
    assert not failures_of(_one_dies, 4, how, 2, 4, seconds=4, within=60, dying=(2,))
