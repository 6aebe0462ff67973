"""The operators of posenc.torch on a CUDA device, by posenc-cuda: rotation with its gradient, in place, and with keys and values
written to a paged cache. Positions, slots and plan ids are read on the device, and work goes into PyTorch's current stream, so that
calls stand in CUDA graphs. Tensors on the CPU go the same way through the emulated grid, which is how all this is tested."""

from __future__ import annotations

import torch

from . import cuda
from .errors import Error

WHERE = "posenc.torch"
DTYPES = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


def _refused(rule: str, got, where: str = WHERE) -> Error:
    return Error(f"{where}: {rule}, got {got}", where, rule, str(got))


# --- tensors as posenc-cuda takes them ---------------------------------------------------------------------------


def _tensor(x, axes, like):
    """A view of x, which must lie where `like` does."""
    _must_lie(x, like)
    if x.dtype not in DTYPES:
        raise _refused("tensors must be of float64, float32, float16 or bfloat16", x.dtype)
    shape, stride = x.shape, x.stride()
    return cuda.module.Tensor(
        x.data_ptr(),
        DTYPES[x.dtype],
        [1 if axis < 0 else shape[axis] for axis in axes],
        [0 if axis < 0 else stride[axis] for axis in axes],
    )


def _must_lie(x, like, where: str = WHERE) -> None:
    if x.device != like.device:
        raise _refused(f"tensors of a call must lie on one device, {like.device}", x.device, where)


def _dense(numbers, dtypes, shape, name: str, like, where: str = WHERE):
    """Integers of one of the types (else of the first), dense, in a shape that theirs grows to by broadcasting."""
    if not isinstance(numbers, torch.Tensor):
        raise _refused(f"{name} must be a tensor", type(numbers).__name__, where)
    _must_lie(numbers, like, where)
    fits = len(numbers.shape) <= len(shape) and all(
        have in (1, want) for have, want in zip(numbers.shape[::-1], shape[::-1], strict=False)
    )
    whole = not (numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool)
    if not fits or not whole or numbers.shape[-1:] != shape[-1:]:
        raise _refused(
            f"{name} must be integers {list(shape)}, or their last axes",
            f"{numbers.dtype} {list(numbers.shape)}",
            where,
        )
    if numbers.dtype not in dtypes:
        numbers = numbers.to(dtypes[0])
    return numbers.expand(shape).contiguous()


class _Call:
    """One call's place (backend, ordinal, stream) and the integers that it reads there, which live as long as this."""

    def __init__(self, q, layout: str, plans: str) -> None:
        letters = cuda.letters_of(layout, q.dim(), WHERE)
        self.q, self.axes = q, [letters.find(letter) for letter in "bhsd"]
        self.lent: list[torch.Tensor] = []
        batch, _, seq, _ = self.axes
        self.rows = (1 if batch < 0 else q.shape[batch], q.shape[seq])
        there = q.device.type == "cuda"
        self.stream = torch.cuda.current_stream(q.device).cuda_stream if there else 0
        place = ("device", q.device.index) if there else ("emulated", 0)
        self.rotations = cuda.needed(WHERE, place[0]).rotations(plans, *place, self.stream)
        self.position_axes = int(plans.split(" ", 5)[4])

    def tensor(self, x):
        return None if x is None else _tensor(x, self.axes, self.q)

    def integers(self, numbers, dtypes, shape, name: str) -> int:
        """The address of integers; 0 where there are none."""
        if numbers is None:
            return 0
        self.lent.append(_dense(numbers, dtypes, shape, name, self.q))
        return self.lent[-1].data_ptr()

    def plan_ids(self, numbers) -> int:
        return self.integers(numbers, [torch.int32], self.rows, "plan_ids")

    def positions(self, position_ids, first: int, cu_seqlens, cached):
        if position_ids is not None:
            kinds = [torch.int64, torch.int32]
            ids = self.integers(position_ids, kinds, (self.position_axes, *self.rows), "position_ids")
            short = self.lent[-1].dtype == torch.int32
            return cuda.module.Positions(short_ids=ids) if short else cuda.module.Positions(ids=ids)
        if cu_seqlens is None:
            return cuda.module.Positions(first)
        texts = cu_seqlens.numel() - 1
        bounds = self.integers(cu_seqlens, [torch.int32], (texts + 1,), "cu_seqlens")
        before = self.integers(cached, [torch.int32], (texts,), "cached")
        return cuda.module.Positions(cu_seqlens=bounds, cached=before, texts=texts)


# --- what the operators do --------------------------------------------------------------------------------------


def _rotate(x, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout, transposed):
    out = torch.empty_like(x)
    _run(x, None, out, None, plans, (position_ids, first, cu_seqlens, cached), plan_ids, layout, transposed)
    return out


def _rotate_(q, k, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout):
    _run(q, k, q, k, plans, (position_ids, first, cu_seqlens, cached), plan_ids, layout, False)


def _run(q, k, q_out, k_out, plans, positions, plan_ids, layout, transposed):
    call = _Call(q, layout, plans)
    call.rotations.rotate(
        call.tensor(q),
        call.tensor(k),
        call.tensor(q_out),
        call.tensor(k_out),
        call.positions(*positions),
        action="transpose" if transposed else "forward",
        plan_ids=call.plan_ids(plan_ids),
        stream=call.stream,
    )


PAGES = {"NHD": [0, 2, 1, 3], "HND": [0, 1, 2, 3]}  # where page, head, token in page and channel are


def _rotate_append_(
    q, k, v, key_cache, value_cache, slots, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout, cache_layout, keep_k
):  # fmt: skip
    if cache_layout not in PAGES or key_cache.dim() != 4 or value_cache.dim() != 4:
        raise _refused(
            "caches must be [page, token, kv_head, head_dim] (NHD) or [page, kv_head, token, head_dim] (HND)",
            f"{cache_layout} {list(key_cache.shape)}",
        )
    call = _Call(q, layout, plans)
    call.rotations.rotate_and_append(
        call.tensor(q),
        call.tensor(k),
        call.tensor(v),
        call.tensor(q),
        None if keep_k else call.tensor(k),
        *(_tensor(each, PAGES[cache_layout], q) for each in (key_cache, value_cache)),
        call.integers(slots, [torch.int64], call.rows, "slots"),
        call.positions(position_ids, first, cu_seqlens, cached),
        plan_ids=call.plan_ids(plan_ids),
        stream=call.stream,
    )


# --- the operators ----------------------------------------------------------------------------------------------

_WHERE = "str plans, Tensor? position_ids, int first, Tensor? cu_seqlens, Tensor? cached, Tensor? plan_ids, str layout"


def _operators():
    from torch.library import custom_op

    rotate = custom_op(
        "posenc::device_rotate", _rotate, mutates_args=(), schema=f"(Tensor x, {_WHERE}, bool transposed) -> Tensor"
    )
    rotate_ = custom_op(
        "posenc::device_rotate_",
        _rotate_,
        mutates_args=("q", "k"),
        schema=f"(Tensor(a!) q, Tensor(b!)? k, {_WHERE}) -> ()",
    )
    append_ = custom_op(
        "posenc::device_rotate_append_",
        _rotate_append_,
        mutates_args=("q", "k", "key_cache", "value_cache"),
        schema="(Tensor(a!) q, Tensor(b!) k, Tensor v, Tensor(c!) key_cache, Tensor(d!) value_cache, Tensor slots, "
        f"{_WHERE}, str cache_layout, bool keep_k) -> ()",
    )
    rotate.register_fake(lambda x, *rest: torch.empty_like(x))
    rotate_.register_fake(lambda *_: None)
    append_.register_fake(lambda *_: None)

    def saved(ctx, inputs, output):
        _x, ctx.plans, position_ids, ctx.first, cu_seqlens, cached, plan_ids, ctx.layout, ctx.transposed = inputs
        ctx.save_for_backward(position_ids, cu_seqlens, cached, plan_ids)

    def backward(ctx, gradient):
        position_ids, cu_seqlens, cached, plan_ids = ctx.saved_tensors
        back = not ctx.transposed
        of_x = rotate(gradient, ctx.plans, position_ids, ctx.first, cu_seqlens, cached, plan_ids, ctx.layout, back)
        return (of_x, *[None] * 8)

    rotate.register_autograd(backward, setup_context=saved)
    return rotate, rotate_, append_


HAS_OPERATORS = hasattr(torch, "library") and hasattr(torch.library, "custom_op")
if HAS_OPERATORS:
    rotate, rotate_, rotate_append_ = _operators()
else:
    rotate_, rotate_append_ = _rotate_, _rotate_append_
