"""What the adapters of this folder share: the loop that reads requests, and the words of configurations."""

import json
import os
import sys
from importlib.metadata import version


class Unsupported(Exception):
    """The engine has no such thing; the message says what."""


def serve(package, operations, dtype="float32"):
    for line in sys.stdin:
        request = json.loads(line)
        name = request["operation"]
        answer = {"id": request["id"]}
        if name == "hello":
            answer |= {"name": package, "version": version(package), "dtype": dtype}
        elif name not in operations:
            answer["unsupported"] = f"{package} has no {name} of its own"
        else:
            try:
                answer["output"] = answered(operations[name], name, request["input"])
            except Unsupported as why:
                answer["unsupported"] = str(why) or "not there"
            except Exception as error:  # whatever the engine throws is its answer
                answer["error"] = f"{type(error).__name__}: {str(error)[:300]}"
        print(json.dumps(answer), flush=True)


def answered(operation, name, asked):
    where, question, change = planted() if "PLANT" in os.environ else (None, None, None)
    if where != name:
        return {key: plain(value) for key, value in operation(asked).items()}
    made = {key: plain(value) for key, value in operation(question(asked)).items()}
    return change(asked, made) if change else made


def planted():
    from planted import PLANTED

    return PLANTED[os.environ["PLANT"]]


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def refuse(unless, why):
    if not unless:
        raise Unsupported(why)


def rope_settings(config):
    """(θ, the scaling block) of a configuration in any spelling."""
    inner = config.get("text_config", config)
    block = inner.get("rope_parameters") or inner.get("rope_scaling") or {}
    refuse(not any(isinstance(v, dict) for v in block.values()), "one set of frequencies for all layers")
    theta = block.get("rope_theta", inner.get("rope_theta", inner.get("rotary_emb_base", 10000.0)))
    scaling = {k: v for k, v in block.items() if k not in ("rope_theta", "partial_rotary_factor")}
    kind = scaling.pop("rope_type", scaling.pop("type", "default"))
    return theta, {"type": kind, **scaling}


def head_dim(config):
    inner = config.get("text_config", config)
    refuse("hidden_size" in inner and inner["model_type"] != "chatglm", "a configuration in words of its own")
    refuse("kv_lora_rank" not in inner, "latent attention is the model's own code")
    refuse(
        "layer_types" not in inner and "sliding_window_pattern" not in inner and "rope_local_base_freq" not in inner,
        "one set of frequencies for all layers",
    )
    whole = inner.get("head_dim") or inner["hidden_size"] // inner["num_attention_heads"]
    part = inner.get(
        "partial_rotary_factor",
        (inner.get("rope_parameters") or {}).get("partial_rotary_factor", inner.get("rotary_pct", 1)),
    )
    return whole, inner.get("rotary_dim") or int(whole * part)
