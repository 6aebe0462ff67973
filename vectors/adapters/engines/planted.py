"""Mistakes planted in an engine: what its code is given, or what is made of its answer, is what that mistake makes of it. The engine's own
code runs. Each entry: the operation, a change of the question (None where the mistake changes nothing there), a change of the answer."""

import copy
import struct


def bfloat16(x):
    (bits,) = struct.unpack("I", struct.pack("f", x))
    return struct.unpack("f", struct.pack("I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]


def blocks(config):
    """The dictionaries of a configuration that hold a scaling, and those that hold θ."""
    inner = config.get("text_config", config)
    scaling = [inner[key] for key in ("rope_scaling", "rope_parameters") if inner.get(key)]
    nested = [v for block in scaling for v in block.values() if isinstance(v, dict)]
    return inner, scaling + nested


def of_config(change):
    def question(asked):
        asked = copy.deepcopy(asked)
        change(*blocks(asked["config"]))
        return asked

    return question


def of(**changes):
    """Fields of the question: a value, or a function of the field."""
    return lambda asked: {**asked, **{k: v(asked[k]) if callable(v) else v for k, v in changes.items() if k in asked}}


def default_base(inner, scaling):
    for block in (inner, *scaling):
        for key in ("rope_theta", "rotary_emb_base"):
            if key in block:
                block[key] = 10000.0


def without_scaling(inner, scaling):
    inner.pop("rope_scaling", None)
    for block in scaling:
        if "rope_theta" in block or "rope_type" in block:
            theta, part = block.get("rope_theta"), block.get("partial_rotary_factor")
            block.clear()
            block["rope_type"] = "default"
            block.update({k: v for k, v in (("rope_theta", theta), ("partial_rotary_factor", part)) if v is not None})


def each(**values):
    def change(_, scaling):
        for block in scaling:
            block.update({k: v for k, v in values.items() if k in block})

    return of_config(change)


def inverted(_, scaling):
    for block in scaling:
        if block.get("rope_type", block.get("type")) == "linear":
            block["factor"] = 1 / block["factor"]


def promised(inner, scaling):
    for block in scaling:
        if "original_max_position_embeddings" in block:
            block["original_max_position_embeddings"] = inner["max_position_embeddings"]


def without(*keys):
    return lambda asked: {k: v for k, v in asked.items() if k not in keys}


def moved(by):
    return of(
        positions=lambda p: [[t + by for t in row] for row in p] if isinstance(p[0], list) else [t + by for t in p]
    )


def same(asked):
    return asked


def other(pairing):
    return "interleaved" if pairing == "halves" else "halves"


def heads_for_tokens(asked):
    """Angles by the head: token t of the question is head t, and stands where its head's number says."""
    heads, _ = len(asked["q"][0]), len(asked["q"])
    turned = {name: [list(row) for row in zip(*asked[name], strict=False)] for name in ("q", "k")}
    pad = [turned["k"][0]] * (heads - len(turned["k"]))
    return {**asked, "q": turned["q"], "k": turned["k"] + pad, "positions": list(range(heads))}


def tokens_again(asked, answer):
    q = [list(row) for row in zip(*answer["q"], strict=False)]
    k = [list(row) for row in zip(*answer["k"][: len(asked["k"][0])], strict=False)]
    return {"q": q, "k": k}


def first_slice(asked):
    dim, rotary = len(asked["q"][0][0]), asked["rotary_dim"]
    return {**asked, "first_dim": 0 if asked["first_dim"] else dim - rotary}


PLANTED = {
    "base_default": ("frequencies", of_config(default_base), None),
    "scaling_ignored": ("frequencies", of_config(without_scaling), None),
    "betas_ignored": ("frequencies", each(beta_fast=32.0, beta_slow=1.0), None),
    "truncate_ignored": ("frequencies", each(truncate=True), None),
    "bands_default": ("frequencies", each(low_freq_factor=1.0, high_freq_factor=4.0), None),
    "trained_length": ("frequencies", of_config(promised), None),
    "factor_inverted": ("frequencies", of_config(inverted), None),
    "frequencies_in_bfloat16": (
        "frequencies",
        same,
        lambda _, a: {**a, "inv_freq": [bfloat16(f) for f in a["inv_freq"]]},
    ),
    "exponent_halved": ("frequencies", same, lambda _, a: {**a, "inv_freq": a["inv_freq"]}),
    "factor_dropped": ("frequencies", same, lambda _, a: {**a, "attention_factor": 1}),
    "cos_sin_exchanged": ("cos_sin", same, lambda _, a: {"cos": a["sin"], "sin": a["cos"]}),
    "positions_in_bfloat16": ("cos_sin", of(positions=lambda p: [int(bfloat16(t)) for t in p]), None),
    "off_by_one": ("rotate", moved(1), None),
    "wrong_pairing": ("rotate", of(pairing=other), None),
    "backwards": ("rotate", of(inv_freq=lambda f: [-x for x in f]), None),
    "not_rotated": ("rotate", same, lambda asked, _: {name: asked[name] for name in ("q", "k")}),
    "rotated_twice": ("rotate", of(inv_freq=lambda f: [2 * x for x in f], attention_factor=lambda a: a * a), None),
    "head_index": ("rotate", heads_for_tokens, tokens_again),
    "factor_on_queries_alone": ("rotate", same, lambda asked, a: {**a, "k": unscaled(asked, a["k"])}),
    "wrong_slice": ("rotate", first_slice, None),
    "moved_backwards": ("rekey", lambda asked: {**asked, "from": asked["to"], "to": asked["from"]}, None),
    "not_moved": ("rekey", lambda asked: {**asked, "to": asked["from"]}, None),
    "rotated_anew": ("rekey", of(**{"from": lambda p: [0] * len(p)}), None),
    "axes_exchanged": (
        "positions",
        same,
        lambda asked, a: {"positions": [a["positions"][i] for i in (0, 2, 1)]} if len(a["positions"]) == 3 else a,
    ),
    "slopes_reversed": ("bias", same, lambda _, a: {**a, "slopes": a["slopes"][::-1]} if "slopes" in a else a),
    "bias_sign": (
        "bias",
        same,
        lambda _, a: {"bias": [[[-x for x in row] for row in head] for head in a["bias"]]} if "bias" in a else a,
    ),
    "distance_transposed": ("bias", of(relative_positions=lambda r: [-x for x in r]), None),
    "buckets_of_other_direction": ("bias", of(bidirectional=lambda b: not b), None),
    "max_distance_default": ("bias", of(max_distance=128), None),
    "window_off_by_one": ("mask", of(window=lambda w: w + 1), None),
    "window_ignored": ("mask", without("window", "chunk"), None),
    "chunk_as_window": (
        "mask",
        lambda a: {
            **without("window", "chunk")(a),
            **({"window": a["chunk"]} if "chunk" in a else {"chunk": a["window"]} if "window" in a else {}),
        },
        None,
    ),
    "documents_mixed": ("mask", without("cu_seqlens"), None),
    "padding_seen": ("mask", without("keep"), None),
    "softcap_ignored": ("scores", without("softcap"), None),
    "scale_default": ("scores", of(scale=0.5), None),
    "sink_ignored": ("scores", without("sink"), None),
    "layout_exchanged": ("added", same, lambda _, a: {"vectors": [alternating(row) for row in a["vectors"]]}),
    "cosine_first": (
        "added",
        same,
        lambda _, a: {"vectors": [row[len(row) // 2 :] + row[: len(row) // 2] for row in a["vectors"]]},
    ),
}
del PLANTED["exponent_halved"]  # no change of a question or an answer makes it


def alternating(row):
    half = len(row) // 2
    return [x for pair in zip(row[:half], row[half:], strict=False) for x in pair]


def unscaled(asked, k):
    first, end = asked["first_dim"], asked["first_dim"] + asked["rotary_dim"]
    by = asked["attention_factor"]
    return [[[x / by if first <= c < end else x for c, x in enumerate(head)] for head in token] for token in k]
