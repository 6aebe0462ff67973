"""What can be seen of a model of transformers without running it: its layers of attention, its tables of positions and
its rotary modules, made without memory. For what hugging_face.py cannot run: pictures, sound, an encoder beside a decoder.
"""

import collections
import importlib
import inspect
import pkgutil
import re

import hugging_face
import torch
import transformers
from transformers import PreTrainedModel

Refused = hugging_face.Refused

PROJECTIONS = "linear_q to_q att_proj Wq Wqkv q_proj query qkv query_proj q qkv_proj k_proj projection_query q_lin in_proj_weight c_attn wq query_key_value queries_keys_values keys_values".split()
# Attention to something else, or behind the layers: its keys are not those of the tokens.
OTHER = re.compile(
    r"cross|enc_attn|encoder_attn|encdec|temporal|(^|\.)head|pool|qformer|merger|x_attn|resampl|message|\bmit\b|aggregat"
    r"|downsample|connector|projector|adapter|gated|lm_head",
    re.I,
)
TABLE = re.compile(r"pos|wpe", re.I)
NO_TABLE = re.compile(
    r"position_ids|proj|post|norm|linear|dense|bias|compos|conv|rel|inv_freq|temporal|time|tile|gate$|token_type|entity"
    r"|cls|class|box|_h$|_w$|mid_|x_pos|y_pos|h_pos|w_pos|visual_|layout|decoder_pos",
    re.I,
)


def classes(config):
    """The models that take this configuration, the one that AutoModel takes first."""
    try:
        auto = transformers.models.auto.modeling_auto.MODEL_MAPPING[type(config)]
        yield auto[0] if isinstance(auto, tuple) else auto
    except Exception:
        pass
    package = importlib.import_module(type(config).__module__.rpartition(".")[0])
    for found in pkgutil.iter_modules(package.__path__):
        if not found.name.startswith("modeling_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for each in vars(module).values():
            if inspect.isclass(each) and issubclass(each, PreTrainedModel) and each.config_class is type(config):
                if "PreTrainedModel" not in each.__name__:
                    yield each


def made(config):
    """The largest of them: others leave parts out."""
    why = "no class of models takes it"
    largest, most = None, -1
    for each in classes(config):
        try:
            with torch.device("meta"):
                model = each(config)
        except ImportError as error:  # what it lacks, others would leave out
            raise Refused(str(error).split("\n")[1][:120]) from error
        except Exception as error:
            why = f"{each.__name__}: {type(error).__name__}: {str(error)[:120]}"
            continue
        if (size := sum(1 for _ in model.modules())) > most:
            largest, most = model, size
    if largest is None:
        raise Refused(why)
    return largest


def attentions(model):
    """Layers of attention of one shape: [(where, head_dim, layers)]; what is beside others' layers, only where it is all."""
    modules = [(n, m) for n, m in model.named_modules() if re.search(r"Attention\w*$|Attn$", type(m).__name__)]
    found = collections.Counter()
    for name, module in [(n, m) for n, m in modules if not OTHER.search(n)] or modules:
        if not any(hasattr(module, p) for p in PROJECTIONS):
            continue
        head_dim = next(
            (
                getattr(module, n)
                for n in ("head_dim", "attention_head_size", "d_kv", "key_value_proj_dim", "key_dim")
                if hasattr(module, n)
            ),
            None,
        )
        if head_dim is None:
            heads = getattr(module, "num_heads", None) or getattr(module, "num_attention_heads", None)
            width = getattr(module, "embed_dim", None) or getattr(module, "hidden_size", None)
            head_dim = width // heads if heads and width else None
        found[re.sub(r"\.\d+", "", name), head_dim] += 1
    return [(name, head_dim, count) for (name, head_dim), count in found.items()]


def tables(model):
    """[(rows, width)] of every table that is named for positions; rows and columns of patches are one behind the other."""
    found = []
    by_axis = [v for n, v in model.named_parameters() if n.endswith(("row_embedder.weight", "column_embedder.weight"))]
    if len(by_axis) == 2:
        found.append((len(by_axis[0]) + len(by_axis[1]), by_axis[0].shape[-1]))
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if (
            not TABLE.search(name)
            or NO_TABLE.search(name.replace("post_", ""))
            or value.dim() < 2
            or value.shape[-1] == 1
        ):
            continue
        rows = 1
        for size in value.shape[:-1]:
            rows *= size
        found.append((rows, value.shape[-1]))
    return found


def of(raw):
    raw = hugging_face.with_floats(dict(raw))
    kind = raw.pop("model_type")
    try:
        model = made(transformers.AutoConfig.for_model(kind, **raw))
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {str(error)[:120]}") from error
    return {
        "attention": attentions(model),
        "tables": tables(model),
        "sets": [s[1].tolist() for s in hugging_face.rotations(model) if not s[1].is_meta],
    }
