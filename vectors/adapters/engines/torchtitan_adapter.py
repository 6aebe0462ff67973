"""torchtitan: ComplexRoPE (neighbours, Llama's scaling, YaRN) and CosSinRoPE (halves, YaRN)."""

import torch
from protocol import head_dim, refuse, rope_settings, serve
from torchtitan.models.common.rope import ComplexRoPE, CosSinRoPE


def frequencies(asked):
    theta, scaling = rope_settings(asked["config"])
    whole, part = head_dim(asked["config"])
    refuse(whole == part, "the whole head alone")
    refuse(scaling["type"] in ("default", "llama3", "yarn"), "plain RoPE, Llama 3's scaling and YaRN alone")
    refuse(
        "mscale" not in scaling and "attention_factor" not in scaling,
        "the attention factor is in each model's softmax scale",
    )
    more = {}
    if scaling["type"] == "llama3":
        more = {"scaling": "llama", "scaling_factor": scaling["factor"]}
        more |= {
            key: scaling[key] for key in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
        }
    if scaling["type"] == "yarn":
        more = {
            "scaling": "yarn",
            "rope_factor": scaling["factor"],
            "original_seq_len": scaling["original_max_position_embeddings"],
        }
        more |= {key: scaling[key] for key in ("beta_fast", "beta_slow", "truncate") if key in scaling}
    rope = ComplexRoPE(ComplexRoPE.Config(dim=part, max_seq_len=2, theta=theta, **more))
    return {"inv_freq": rope.cache[1].angle()}


def rotate(asked):
    refuse("axis_of_pair" not in asked, "one axis alone")
    refuse(asked["attention_factor"] == 1, "the attention factor is in each model's softmax scale")
    refuse(asked["rotary_dim"] == len(asked["q"][0][0]), "the whole head alone")
    kind = ComplexRoPE if asked["pairing"] == "interleaved" else CosSinRoPE
    rope = kind(
        kind.Config(dim=asked["rotary_dim"], max_seq_len=max(asked["positions"]) + 1)
    )  # base 10000, as the tests have
    q, k = (torch.tensor(asked[name])[None] for name in ("q", "k"))
    q, k = rope(q, k, torch.tensor([asked["positions"]]))
    return {"q": q[0], "k": k[0]}


serve("torchtitan", {"frequencies": frequencies, "rotate": rotate})
