"""litgpt: build_rope_cache and apply_rope, with the settings of its own conversion of configurations' blocks."""

import torch
from litgpt.model import apply_rope, build_rope_cache
from protocol import head_dim, refuse, rope_settings, serve


def extra(scaling):
    """litgpt.config's rope_adjustments of a block."""
    if scaling["type"] == "default":
        return None
    refuse(scaling["type"] in ("linear", "llama3", "yarn"), "linear, Llama 3 and YaRN alone")
    made = {"factor": scaling["factor"]}
    if scaling["type"] == "llama3":
        made |= {"low_freq_factor": scaling["low_freq_factor"], "high_freq_factor": scaling["high_freq_factor"]}
    if scaling["type"] == "yarn":
        made |= {"beta_fast": scaling.get("beta_fast", 32.0), "beta_slow": scaling.get("beta_slow", 1.0)}
        made |= {key: scaling[key] for key in ("mscale", "mscale_all_dim", "truncate") if key in scaling}
    if scaling["type"] != "linear":
        made["original_max_seq_len"] = scaling["original_max_position_embeddings"]
    return made


def frequencies(asked):
    theta, scaling = rope_settings(asked["config"])
    _, part = head_dim(asked["config"])
    cos, sin = build_rope_cache(2, part, base=theta, extra_config=extra(scaling))
    half = part // 2
    factor = float(torch.hypot(cos[0, 0], sin[0, 0]))
    return {"inv_freq": torch.atan2(sin[1, :half], cos[1, :half]), "attention_factor": factor}


def rotate(asked):
    refuse(asked["pairing"] == "halves", "halves alone")
    refuse(asked["first_dim"] == 0 and "axis_of_pair" not in asked, "the first channels of one axis alone")
    at = torch.tensor(asked["positions"])[:, None] * torch.tensor(asked["inv_freq"], dtype=torch.float32).repeat(2)
    cos, sin = at.cos()[None] * asked["attention_factor"], at.sin()[None] * asked["attention_factor"]
    part, out = asked["rotary_dim"], {}
    for name in ("q", "k"):
        x = torch.tensor(asked[name]).transpose(0, 1)[None]
        out[name] = torch.cat((apply_rope(x[..., :part], cos, sin), x[..., part:]), dim=-1)[0].transpose(0, 1)
    return out


serve("litgpt", {"frequencies": frequencies, "rotate": rotate})
