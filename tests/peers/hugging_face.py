"""What transformers' own code makes of a configuration, layer by layer.

The family's own model runs. It has no weights: every linear layer returns one vector for all tokens, so what a key
becomes depends on its position alone, and a decoder layer is its attention. Attention itself is replaced by a probe, which keeps
the keys, the scale and the mask. Each layer's frequencies are those of the model's rotary module that
reproduce its keys; a layer whose keys are alike at all positions has none.

  tests/peers/hugging_face.py config.json...
"""

import copy
import functools
import inspect
import itertools
import json
import os
import re
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

sys.modules.setdefault("torchao", None)  # which transformers would import, and wants another torch
import torch
import transformers
from transformers import masking_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

VERSION = transformers.__version__
torch.set_num_threads(1)
for layer in (torch.nn.Linear, torch.nn.Embedding):  # no weight is ever read
    layer.reset_parameters = lambda self: None
masking_utils.find_packed_sequence_indices = lambda *_: None  # gaps between positions part no sequences here

# What costs memory and has no say in positions.
SMALL = {
    "vocab_size": 64,
    "vocab_size_per_layer_input": 64,
    "hidden_size_per_layer_input": 0,
    "pad_token_id": 0,
    "intermediate_size": 16,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 1,
    "n_group": 1,
    "topk_group": 1,
    "ffn_hidden_size": 16,
}


class Refused(Exception):
    """transformers itself does not take the configuration."""


# --- a model without weights -----------------------------------------------------------------------


class Constant(torch.nn.Module):
    """A linear layer or an embedding that returns one vector for every token."""

    def __init__(self, width, seed):
        super().__init__()
        self.vector = torch.rand(width, generator=torch.Generator().manual_seed(seed), dtype=torch.float32) + 0.5
        self.weight = torch.empty(0)

    def forward(self, x, *_, **__):
        tokens = x.shape if x.dtype in (torch.int64, torch.int32) else x.shape[:-1]
        return self.vector.expand(*tokens, -1)


class Passing(torch.nn.Module):
    """What stands beside attention in a layer, and returns its input: alone, or with the router's scores."""

    def __init__(self, more):
        super().__init__()
        self.more = more

    def forward(self, x, *_, **__):
        return (x, *self.more) if self.more else x


@functools.cache
def source_of_forward(kind):
    return inspect.getsource(kind.forward)


def weightless(model):
    """Replaces what would need weights."""
    seed = 0  # of each vector, so that a model is the same in every run
    # Short convolutions mix neighbours (Inkling), which is no matter of what rotates.
    beside = ("mlp", "feed_forward", "block_sparse_moe", "moe", "ffn", "k_sconv", "v_sconv", "sconv")
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            seed += 1
            if isinstance(child, torch.nn.Linear):
                setattr(module, child_name, Constant(child.out_features, seed))
            elif isinstance(child, torch.nn.Embedding):
                setattr(module, child_name, Constant(child.embedding_dim, seed))
            elif child_name in beside:
                with_scores = re.search(
                    rf", *\w+ = self\.{child_name}\(", source_of_forward(type(module))
                ) or getattr(module, "is_moe_layer", False)
                setattr(module, child_name, Passing((None,) if with_scores else ()))


def restored(model, config):
    """Puts on the processor what a model made without memory lacks."""
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and parameter.is_meta:
                module._parameters[name] = torch.nn.Parameter(torch.ones(parameter.shape), requires_grad=False)
        if "Rotary" in type(module).__name__ and any(b.is_meta for b in module.buffers(recurse=False)):
            fresh = type(module)(getattr(module, "config", config))
            module.__dict__.update(fresh.__dict__)
            continue
        table = module._buffers.get("embed_positions")
        if table is not None and table.is_meta:  # the family's own function of its module
            make = sys.modules[type(module).__module__].create_sinusoidal_positions
            module._buffers["embed_positions"] = make(*table.shape)
        for name, buffer in list(module._buffers.items()):
            if buffer is not None and buffer.is_meta:
                module._buffers[name] = torch.zeros(buffer.shape, dtype=buffer.dtype)


# --- the probe -------------------------------------------------------------------------------------

records = []


def probe(module, query, key, value, attention_mask, *_, scaling=None, **kwargs):
    seen = isinstance(attention_mask, Mask)
    # What picks tokens adds to the mask that all layers have (deepseek_v32).
    mask = attention_mask if seen or attention_mask is None or not masks else masks[-1]
    scale = scale_of(module, query, key, scaling)
    record = {"module": module, "key": key.detach(), "scaling": scale, "measured": scaling == 1 != scale, "mask": mask}
    # Differential attention calls twice in a layer; ALBERT's layers are one module.
    if not (records and records[-1]["module"] is module and hasattr(module, "lambda_init")):
        records.append(record)
    batch, heads, tokens, _ = query.shape
    return torch.zeros(batch, tokens, heads, value.shape[-1], dtype=query.dtype), None


def scale_of(module, query, key, scaling):
    """The scale of q·k. Some code multiplies its queries first, behind their norm or with 1 as the scale."""
    if hasattr(module, "qk_scale_factor"):
        return scaling * module.qk_scale_factor
    if scaling != 1 or any("norm" in name for name, _ in module.named_children()):
        return scaling
    for states, names in ((query, ("q_proj", "query")), (key, ("k_proj", "key"))):
        layer = next((m for n in names if isinstance(m := getattr(module, n, None), Constant)), None)
        first = states[0, :, 0].flatten()
        if layer is not None and layer.vector.numel() == first.numel():
            ratio = first / layer.vector
            if torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-5):
                scaling *= float(ratio[0])
    return scaling


class Eager(torch.overrides.TorchFunctionMode):
    """Attention that a family writes out itself: the product of its queries and keys is the record."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function in (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__):
            query, key = args[:2]
            tokens = query.shape[-2]
            if query.dim() == 4 and key.dim() == 4 and tokens > 1 and result.shape[-2:] == (tokens, tokens):
                states = key.detach().transpose(-1, -2)
                records.append({"module": None, "key": states, "scaling": None, "measured": False, "mask": None})
        return result


FAR = 1 << 20  # a query far from both ends, as no window reaches it


masks = []  # of the run


class Mask:
    """A mask as the function that says who sees whom."""

    def __init__(self, function):
        zero = torch.tensor(0)

        def sees(q, k):
            return bool(function(zero, zero, torch.tensor(q), torch.tensor(k)))

        self.causal = not sees(FAR, FAR + 1)
        self.before = self.reach(lambda d: sees(FAR, FAR - d), FAR)
        self.after = 0 if self.causal else self.reach(lambda d: sees(FAR, FAR + d), FAR)
        # A window moves along with the query, a chunk ends where the next begins.
        first = FAR - (self.before or 0)
        self.chunked = self.before is not None and sees(FAR + 1, first)
        self.length = self.before is not None and 1 + (
            self.reach(lambda d: sees(first + d, first), FAR) if self.chunked else self.before
        )

    @staticmethod
    def reach(visible, most):
        """The largest distance that is visible, by bisection."""
        if visible(most):
            return None
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if visible(middle) else (low, middle)
        return low

    def __getitem__(self, _):
        return self

    def to(self, *_, **__):
        return self

    def __radd__(self, scores):
        return scores

    device = torch.device("cpu")
    dtype = torch.float32
    ndim = 4


def mask_probe(*_, mask_function=None, **kwargs):
    masks.append(Mask(mask_function))
    return masks[-1]


ALL_ATTENTION_FUNCTIONS.register("probe", probe)
ALL_MASK_ATTENTION_FUNCTIONS.register("probe", mask_probe)


# --- reading the probe ------------------------------------------------------------------------------


def rotations(model):
    """Every set of inverse frequencies of the model, with its amplitude."""
    found = []
    for module in model.modules():
        table = module._buffers.get("embed_positions")
        if table is not None:  # sines, then cosines, of each position (gptj, codegen)
            sin, cos = table[1].double().chunk(2)
            found.append(("", torch.atan2(sin, cos), 1.0))
        if "Rotary" not in type(module).__name__:
            continue
        for name in list(module._buffers) + [n for n in vars(module) if n.endswith("inv_freq")]:
            value = getattr(module, name)
            if not name.endswith("inv_freq") or "original" in name or not isinstance(value, torch.Tensor):
                continue
            label = name.removesuffix("inv_freq").strip("_")
            scale = getattr(module, f"{label}_attention_scaling", None) if label else None
            if scale is None:
                scale = getattr(module, "attention_scaling", 1.0)
            found.append((label, value.double().flatten(), float(scale)))
    return found


def is_rotated(key, plain, positions, frequencies, pairing, first):
    """Whether the frequencies rotate plain [head, channel], the key at position 0, into key [position, head, channel]."""
    dim = 2 * len(frequencies)
    angle = positions.double()[:, None, None] * frequencies
    if pairing == "halves":
        one, two = slice(first, first + dim // 2), slice(first + dim // 2, first + dim)
    else:
        one, two = slice(first, first + dim, 2), slice(first + 1, first + dim, 2)
    x, y = plain[:, one], plain[:, two]
    error = torch.hypot(
        key[..., one] - (x * angle.cos() - y * angle.sin()), key[..., two] - (x * angle.sin() + y * angle.cos())
    )
    rest = torch.ones(plain.shape[-1], dtype=torch.bool)
    rest[first : first + dim] = False
    # transformers forms angles in float.
    return bool((error <= torch.hypot(x, y) * (1e-4 + 3e-7 * angle.abs())).all()) and torch.allclose(
        key[..., rest], plain[:, rest].expand(len(positions), -1, -1), rtol=1e-5, atol=1e-5
    )


def rotation_of(key, plain, positions, sets):
    """The set that rotates a layer's keys; None: they are alike at all positions."""
    # Layers that nothing scales run out of float's numbers, at all positions alike.
    if torch.allclose(key, plain.expand_as(key), rtol=1e-6, atol=1e-6, equal_nan=True):
        return None
    for label, forth, scale in sets:
        dim = 2 * len(forth)
        if dim > plain.shape[-1]:
            continue
        for first in sorted({0, plain.shape[-1] - dim}):
            for pairing, frequencies in itertools.product(("halves", "interleaved"), (forth, -forth)):
                if is_rotated(key, plain, positions, frequencies, pairing, first):
                    return {
                        "label": label,
                        "pairing": pairing,
                        "first_dim": first,
                        "rotary_dim": dim,
                        "attention_factor": scale,
                        "inv_freq": frequencies.tolist(),
                    }
    return "unknown"


def forward(model, inputs):
    records.clear()
    masks.clear()
    with torch.no_grad(), Eager():
        model(**inputs)
    # Products beside the attention that the probe replaced are a recurrence's, and a residual's keys are layers.
    seen = [r for r in records if r["module"] is not None and "Residual" not in type(r["module"]).__name__]
    if not seen:
        return list(records)
    # Layers that run several times (Dory) are alike each time; one module for all layers (ALBERT) counts each time.
    first = list({id(record["module"]): record for record in reversed(seen)}.values())[::-1]
    return first if len(first) == getattr(model.config, "num_hidden_layers", None) else seen


def run(raw, length=None):
    """What transformers makes of config.json `raw`: [{rotation, window, causal, scaling}] by layer."""
    try:
        return _run(copy.deepcopy(raw), length)
    except Refused:
        raise
    except (Exception, SystemExit) as error:
        raise Refused(f"{type(error).__name__}: {str(error)[:160]}") from error


def with_floats(value):
    """What transformers' JSON has for numbers that JSON has none for."""
    if isinstance(value, dict):
        return (
            float(value["__float__"]) if set(value) == {"__float__"} else {k: with_floats(v) for k, v in value.items()}
        )
    return [with_floats(v) for v in value] if isinstance(value, list) else value


def made(config, attention):
    with torch.device("meta"):
        return transformers.AutoModel.from_config(config, dtype=torch.float32, attn_implementation=attention)


def _run(raw, length):
    raw = with_floats(raw)
    raw.pop("quantization_config", None)
    kind = raw.pop("model_type")
    config = transformers.AutoConfig.for_model(kind, **raw).get_text_config(decoder=True)
    for key, value in SMALL.items():
        if hasattr(config, key) and isinstance(getattr(config, key), (int, type(None))):
            setattr(config, key, value)
    parts = [config, *(getattr(config, name, None) for name in config.sub_configs)]
    if any(getattr(part, "is_encoder_decoder", False) for part in parts):
        raise Refused("has an encoder and a decoder")
    config._attn_implementation = "probe"
    try:
        model = made(config, "probe")
    except KeyError:  # its attention is written out, for whoever runs it
        model = made(config, "eager")
    weightless(model)
    restored(model, config)
    model.eval()
    last = (length or trained(config)) - 1
    if block := getattr(config, "index_block_size", None):  # positions of keys that are picked by blocks have no gaps
        last = min(last, block - 1)
    steps = sorted({p for p in (0, 1, 2, 3, 7, 29, 113, 512, 1999, 7919, 31337, 131071) if p < last} | {last})
    positions = torch.tensor(steps)
    ids = torch.zeros(1, len(steps), dtype=torch.int64)
    inputs = {"input_ids": ids, "position_ids": positions[None], "use_cache": False}
    still = forward(model, {**inputs, "position_ids": torch.zeros_like(positions)[None]})
    moved = forward(model, inputs)  # last, as the frequencies of a dynamic scaling are those of the last length
    sets = rotations(model)
    if not moved:
        raise Refused("has attention that the probe does not see")
    if moved[0]["module"] is None and len(moved) != getattr(config, "num_hidden_layers", len(moved)):
        raise Refused("writes out several products of queries and keys in a layer")
    layers = []
    for far, near in zip(moved, still):
        own = far["key"][0][:, : len(steps)]  # what stands behind is of several tokens each (deepseek_v4)
        key, plain = own.transpose(0, 1).double(), near["key"][0][:, 0].double()
        rotation = rotation_of(key, plain, positions, sets)
        scaling = far["scaling"]
        if far["measured"] and isinstance(rotation, dict):  # of queries and keys that were rotated
            scaling /= rotation["attention_factor"] ** 2
        usual = key.shape[-1] ** -0.5
        if far["measured"] and abs(scaling - usual) < 1e-6 * usual:
            scaling = usual  # but for what float rounded
        layers.append(
            {
                "rotation": rotation,
                "head_dim": key.shape[-1],
                "scaling": float(scaling) if scaling else None,
                **window_of(far["mask"]),
            }
        )
    return layers


def window_of(mask):
    if not isinstance(mask, Mask):
        return {"causal": None, "window": None}
    if mask.before is None:
        return {"causal": mask.causal, "window": None, "chunked": False, "after": mask.after}
    return {"causal": mask.causal, "window": mask.length, "chunked": mask.chunked, "after": mask.after}


def trained(config):
    """Within every trained length, so that what depends on the length is as constructed."""
    known = [
        getattr(config, "max_position_embeddings", None) or 2048,
        getattr(config, "original_max_position_embeddings", None),
    ]
    parameters = getattr(config, "rope_parameters", None) or {}
    for part in [parameters, *parameters.values()]:
        if isinstance(part, dict):
            known.append(part.get("original_max_position_embeddings"))
    return max(2, min(int(x) for x in known if isinstance(x, (int, float)) and x > 0))


def main():
    for path in sys.argv[1:]:
        with open(path) as file:
            raw = json.load(file)
        try:
            seen = []
            for index, layer in enumerate(run(raw)):
                r = layer.pop("rotation")
                if isinstance(r, dict):
                    r = {**r, "inv_freq": [r["inv_freq"][i] for i in (0, 1, -1)]}
                line = json.dumps({"rotation": r, **layer})
                if line not in seen:
                    seen.append(line)
                    print(path, index, line)
        except Refused as error:
            print(path, "refused:", error)


if __name__ == "__main__":
    main()
