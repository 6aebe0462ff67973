"""Bugs that people reported, each planted in a live model the way it came about; live_census.py counts which are found."""

import inspect
from typing import NamedTuple
from unittest.mock import patch

import torch
from live_models import CACHE, PICTURES, SCALED, picture, prompt, run
from live_planting import (
    OTHER,
    attention,
    buffers,
    file_of,
    handed,
    in_style,
    mask_of,
    masked,
    mixed,
    of_layers,
    pairing,
    pairs_of,
    plans,
    rotary,
    rotating,
    skip,
    style,
    unscaled,
    usual,
    with_angles,
)  # fmt: skip

import posenc
import posenc.hf as hf
from posenc.hf.live import rotates


class Bug(NamedTuple):
    """How a bug is planted: `plant(model, undo)` returns what was seen of the model that has it, and `undo` is an ExitStack."""

    report: str
    codes: set
    plant: object
    build: dict | None = None
    families: tuple = ()  # of those alone


BUGS: dict[str, Bug] = {}


def bug(name, report, *names, build=None, families=()):
    def kept(plant):
        BUGS[name] = Bug(report, set(names), plant, build, families)
        return plant

    return kept


# --- frequencies


@bug("frequencies cast to bfloat16 with the model", "Automodel 2549", "inv_freq_dtype")
def _(model, undo):
    rotary(model) or skip("it has no frequencies of its own")
    return run(model.to(torch.bfloat16))[0]


@bug(
    "the scaling is never applied",
    "unsloth 6197, mlx-vlm 1710, sglang 26187, exllamav2 704",
    "scaling_lost",
    build=SCALED,
)
def _(model, undo):
    free = unscaled(model) or skip("it has no scaling")
    for module in rotary(model):
        for name in buffers(module):
            buffer = getattr(module, name)
            match = [each for each in free if each.shape == buffer.shape and not torch.allclose(each, buffer, atol=0)]
            setattr(module, name, match[0].clone() if match else buffer)
    return run(model)[0]


@bug("another base", "sfllm 32, vllm-ascend 6612, llama.cpp 11008", "rope_theta", "frequencies")
def _(model, undo):
    for module in rotary(model) or skip("no module makes its angles"):
        for name in buffers(module):
            setattr(module, name, getattr(module, name) ** 1.2)
    return run(model)[0]


@bug("one base for every kind of layers", "atlas 276, mlx-vlm 1709", "rope_theta", "rotation", "frequencies")
def _(model, undo):
    first, *others = [(module, name) for module in rotary(model) for name in buffers(module)]
    if all(torch.equal(getattr(*each), getattr(*first)) for each in others):
        skip("its layers have one base")
    for module, name in others:
        setattr(module, name, getattr(*first).clone())
    return run(model)[0]


DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}


DYNAMIC = (
    {"rope_parameters": {**DYNAMIC, "rope_theta": 1e4}}
    if "rope_parameters" in SCALED
    else {"rope_scaling": DYNAMIC, "rope_theta": 1e4}
)


@bug("the base that a longer text grew is left to the next", "transformers 25306, transformers 46624", "rope_theta", "frequencies",
     build={**DYNAMIC, "max_position_embeddings": 16})  # fmt: skip
def _(model, undo):
    if not any(plan.valid for plan in plans(model)):
        skip("it takes no dynamic scaling")
    run(model, prompt(48))
    grown = [(module, name, getattr(module, name).clone()) for module in rotary(model) for name in buffers(module)]

    def left(own, x, ids, *rest, **more):
        for each in grown:
            setattr(*each)
        return inspect.unwrap(own)(own.__self__, x, ids, *rest, **more)  # without what would reset them

    with_angles(model, left)
    return run(model, prompt(12))[0]


@bug("the attention factor is dropped", "sglang 31232, vllm 48351", "attention_factor", build=SCALED)
def _(model, undo):
    if all(plan.attention_factor == 1 for plan in plans(model)):
        skip("it has no factor")
    for module in rotary(model):
        for name in [name for name in vars(module) if name.endswith("attention_scaling")]:
            setattr(module, name, 1.0)
    return run(model)[0]


# --- angles and ids


@bug("ids are counted in bfloat16", "openvino 29556, UNI-D2 6", "cos_sin")
def _(model, undo):
    with_angles(model, lambda own, x, ids, *rest, **more: own(x, ids.bfloat16().to(ids.dtype), *rest, **more))
    return run(model, prompt(400))[0]


@bug("the values of the ids are ignored", "Automodel 2377", "ids_ignored")
def _(model, undo):
    with_angles(
        model, lambda own, x, ids, *rest, **more: own(x, torch.arange(ids.shape[-1]).expand_as(ids), *rest, **more)
    )
    return run(model)[0]


@bug("each chunk begins at 0", "mlx-vlm 1621", "offset_lost")
def _(model, undo):
    cache = model(prompt()[:, :12], use_cache=True)[CACHE]
    if cache is None:
        skip("it has no cache")
    return run(model, prompt()[:, 12:], **{CACHE: cache}, position_ids=torch.arange(12)[None])[0]


@bug("one row of ids serves a padded batch", "unsloth 3699, reasoning-from-scratch 33", "row_shared")
def _(model, undo):
    mask = torch.tensor([[0] * 5 + [1] * 19, [1] * 24])
    ids = (mask.cumsum(-1) - 1).clamp_min(0)[:1].expand(2, -1)
    return run(model, prompt(batch=2), attention_mask=mask, position_ids=ids)[0]


@bug("ids go on behind padding on the right", "transformers 48161", "offset")
def _(model, undo):
    mask = torch.tensor([[1] * 18 + [0] * 6])
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        cache = model(prompt(), attention_mask=mask, use_cache=True)[CACHE]
        after = torch.cat((mask, torch.ones(1, 1, dtype=torch.long)), -1)
        model(prompt(1), attention_mask=after, **{CACHE: cache}, position_ids=torch.tensor([[24]]))
    return seen


@bug(
    "padding moves some tokens and not others",
    "transformers 22161, nnsight 673",
    "offset_from",
    "differs",
    "padding_counted",
)
def _(model, undo):
    mask = torch.tensor([[1] * 10 + [0] * 5 + [1] * 9])
    return run(model, attention_mask=mask)[0]


@bug("packed sequences are counted on", "Megatron-Bridge 1776, Megatron-LM 453, torchtitan 2559", "packing_ignored")
def _(model, undo):
    bounds = torch.tensor([0, 10, 24], dtype=torch.int32)
    return run(model, cu_seq_lens_q=bounds, cu_seq_lens_k=bounds, position_ids=torch.arange(24)[None])[0]


@bug("some layers take positions plus one", "efficient-transformers 1250", "offset")
def _(model, undo):
    (module, *_), given = rotary(model) or skip("no module makes its angles"), []

    def shifted(layer, args, kwargs):
        if not isinstance(kwargs.get("position_embeddings"), tuple):
            skip("its layers are not handed cos and sin")
        made = [module.forward(torch.zeros(1), torch.arange(1, 25)[None], *kind) for kind in kinds]
        given.append(min(made, key=lambda each: (each[0] - kwargs["position_embeddings"][0]).abs().mean()))
        return args, {**kwargs, "position_embeddings": given[-1]}

    kinds = [(kind,) for kind in getattr(module, "layer_types", [])] or [()]
    layer = next(layer for layer, plan in enumerate(of_layers(model)) if plan.rotates)
    attention(model)[layer].register_forward_pre_hook(shifted, with_kwargs=True)
    seen = run(model)[0]
    return seen if given else skip("its layers are not handed cos and sin")


# --- rotations


@bug("rotated twice", "maxtext 4616", "rotated_twice")
def _(model, undo):
    def twice(own, q, k, cos, sin, *rest, **more):
        return own(*own(q, k, cos, sin, *rest, **more), cos, sin, *rest, **more)

    return rotating(model, undo, twice)


@bug("not rotated", "ferrox 65", "not_rotated", "rotation")
def _(model, undo):
    return rotating(model, undo, lambda own, q, k, *rest, **more: (q, k))


@bug("the other pairing", "lattice 96, SharpInference 7, tiny-vllm 4, nanochat 264", "pairing")
def _(model, undo):
    def other(own, q, k, cos, sin, *rest, unsqueeze_dim=1, **more):
        usual(own, q, k, cos, sin)
        c, s = pairs_of(cos), pairs_of(sin)
        return tuple(mixed(x, c, s, OTHER[pairing(model)], unsqueeze_dim) for x in (q, k))

    return rotating(model, undo, other)


@bug(
    "a table for one pairing, a rotation of the other",
    "ERNIE-Image 6, how-to-train-your-gpt 7, vjepa2 15",
    "not_a_rotation",
    "rotation",
)
def _(model, undo):
    def confused(own, q, k, cos, sin, *rest, **more):
        usual(own, q, k, cos, sin)
        own_style = style(cos)
        return own(q, k, *(in_style(pairs_of(each), OTHER[own_style]) for each in (cos, sin)), *rest, **more)

    return rotating(model, undo, confused)


@bug("rotated backwards", "identify's own", "rotated_backwards")
def _(model, undo):
    return rotating(model, undo, lambda own, q, k, cos, sin, *rest, **more: own(q, k, cos, -sin, *rest, **more))


@bug("rotated by the head and not by the token", "open_lm 4", "not_a_rotation", "rotation")
def _(model, undo):
    def by_head(own, q, k, cos, sin, *rest, **more):
        usual(own, q, k, cos, sin)
        c, s = (pairs_of(each) for each in (cos, sin))
        return tuple(mixed(x, c[:, : x.shape[1]], s[:, : x.shape[1]], pairing(model), 2) for x in (q, k))

    return rotating(model, undo, by_head)


@bug("half of the channels rotate", "llama.cpp 12957, mlx-lm 1698", "rotary_dim", "rotation")
def _(model, undo):
    def half(own, q, k, cos, sin, *rest, unsqueeze_dim=1, **more):
        usual(own, q, k, cos, sin)
        count = q.shape[-1] // 2
        c, s = (pairs_of(each)[..., ::2] for each in (cos, sin))
        return tuple(
            torch.cat((mixed(x[..., :count], c, s, pairing(model), unsqueeze_dim), x[..., count:]), -1) for x in (q, k)
        )

    return rotating(model, undo, half)


@bug("a layer without positions rotates", "ferrox 65", "rotated")
def _(model, undo):
    if all(plan.rotates for plan in of_layers(model)):
        skip("all of its layers rotate")
    for layer, plan in zip(attention(model), of_layers(model), strict=True):
        if not plan.rotates:
            hasattr(layer, "use_rope") or hasattr(layer, "is_sliding") or hasattr(layer, "sliding_window") or skip(
                "by code of its own"
            )
            for name in ("use_rope", "is_sliding"):
                if hasattr(layer, name):
                    setattr(layer, name, True)
            if getattr(layer, "sliding_window", 0) is None:
                layer.sliding_window = 4096
    return run(model)[0]


@bug("a fused kernel of another package", "Liger, kernels of the hub", "replaced")
def _(model, undo):
    module = file_of(model)
    names = [name for name in vars(module) if rotates(name)] or skip("its file has no function that rotates")

    def of_another(own):
        fused = lambda *args, **more: own(*args, **more)  # noqa: E731
        fused.__module__ = "liger_kernel.transformers.rope"
        return fused

    for name in names:
        undo.enter_context(patch.object(module, name, of_another(getattr(module, name))))
    return run(model)[0]


# --- attention


@bug("the attention is given queries from before their rotation", "vllm-omni 2791", "not_rotated")
def _(model, undo):
    kept = []
    rotating(model, undo, lambda own, q, k, *rest, **more: kept.append(q) or own(q, k, *rest, **more))
    return handed(
        model, undo, lambda q: kept[-1] if kept[-1].shape == q.shape else skip("it rotates parts of its queries")
    )


@bug("queries rotated again on their way to the attention", "maxtext 4616", "rotated_twice")
def _(model, undo):
    (plan, *_) = plans(model)
    if plan.rotary_dim != plan.head_dim:
        skip("parts of its heads rotate")
    seen = run(model)[0]
    if not seen.applied or not seen.attended or seen.attended[0]["queries"] is None:
        skip("its attention is code of its own")
    if not torch.equal(seen.attended[0]["queries"], seen.applied[0]["after"][0]):
        skip("it normalizes its queries behind the rotation")
    return handed(model, undo, lambda q: plan.rotate(q.contiguous()))


@bug("logits are scaled otherwise", "ferrox 65, sglang 31232", "logits")
def _(model, undo):
    for layer in attention(model):
        layer.scaling = getattr(layer, "scaling", None) or skip("it has no scale of its own")
        layer.scaling *= 1.2
    return run(model)[0]


@bug("a layer lost its window", "quic 1250, gemma.cpp 986", "window", build={"sliding_window": 7})
def _(model, undo):
    if not any(group.window == 7 for group in posenc.model(model).groups):
        skip("it has no window")
    whole = torch.full((24, 24), torch.finfo(torch.float32).min).triu(1)[None, None]
    masked(model, lambda kwargs: whole.to(mask_of(kwargs).dtype) if mask_of(kwargs).dtype != torch.bool else whole == 0)
    return run(model)[0]


@bug("queries see what comes later", "mask dropped", "causal")
def _(model, undo):
    masked(
        model,
        lambda kwargs: (
            torch.ones_like(mask_of(kwargs))
            if mask_of(kwargs).dtype == torch.bool
            else torch.zeros_like(mask_of(kwargs))
        ),
    )
    return run(model)[0]


@bug("queries see padding", "nnsight 673", "padding")
def _(model, undo):
    def without(kwargs):
        mask = mask_of(kwargs)
        mask = mask.clone()
        mask[..., :3] = mask[..., -1:, -1:]
        causal = torch.ones(24, 24, dtype=torch.bool).tril()
        return mask.where(causal, mask[..., :1, -1:])

    masked(model, without)
    return run(model, attention_mask=torch.tensor([[0, 0, 0, *[1] * 21]]))[0]


@bug("keys are cached before their rotation", "mlx-lm 1507", "cached_keys")
def _(model, undo):
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    kept, done = [], []
    rotating(model, undo, lambda own, q, k, *rest, **more: kept.append(k) or own(q, k, *rest, **more))

    def unrotated(update):
        def updated(self, keys, values, *args, **kwargs):
            if kept[-1].shape != keys.shape:
                skip("it joins its keys afterwards")
            done.append(self)
            update(self, kept[-1], values, *args, **kwargs)
            return keys, values

        return updated

    for kind in (DynamicLayer, DynamicSlidingWindowLayer):
        undo.enter_context(patch.object(kind, "update", unrotated(kind.update)))
    if not any(plan.rotates for plan in of_layers(model)):
        skip("it does not rotate")
    seen = run(model, use_cache=True)[0]
    return seen if done else skip("it has a cache of its own")


# --- pictures among text

PICTURED = tuple(PICTURES)


@bug(
    "rows and columns of a picture are exchanged",
    "vllm-omni 1784, MNN 4133",
    "cos_sin",
    "axes_exchanged",
    families=PICTURED,
)
def _(model, undo):
    with_angles(model, lambda own, x, ids, *rest, **more: own(x, ids[[0, 2, 1]], *rest, **more))
    return run(model, picture(model)[0], **picture(model)[1])[0]


@bug("a picture is counted as text", "LlamaFactory 10589", "flat", families=PICTURED)
def _(model, undo):
    ids, inputs = picture(model)
    return run(model, ids, **inputs, position_ids=torch.arange(ids.shape[1]).expand(3, 1, -1))[0]


@bug("text behind a picture goes on elsewhere", "transformers 45381, vllm-omni 4443", "grid_advance", families=PICTURED)
def _(model, undo):
    ids, inputs = picture(model)
    given = torch.as_tensor(
        posenc.positions.vision(ids[0].numpy(), inputs["image_grid_thw"].numpy(), image_token_id=40)[0].numpy()
    )
    given = given.clone()
    given[:, :, 9:] += 2
    return run(model, ids, **inputs, position_ids=given)[0]


@bug(
    "every id of a text with pictures is off by one",
    "vllm 16878",
    "grid_advance",
    "offset",
    "offset_from",
    families=PICTURED,
)
def _(model, undo):
    ids, inputs = picture(model)
    given = torch.as_tensor(
        posenc.positions.vision(ids[0].numpy(), inputs["image_grid_thw"].numpy(), image_token_id=40)[0].numpy()
    )
    given = given.clone()
    given[:, :, 3:] += 1
    return run(model, ids, **inputs, position_ids=given)[0]
