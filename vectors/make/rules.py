"""What is no rotation: ids of tokens, biases by distance, masks, scores, and vectors that are added."""

import itertools
import math

from mpmath import mp, mpf

from make.book import File, Test
from make.numbers import dot, grid

EXACT = {"float64": (0, 0), "float32": (0, 0), "float16": (0, 0), "bfloat16": (0, 0)}


# --- ids of tokens ---------------------------------------------------------------------------------


def counted(row: list[int], cached: int) -> list[int]:
    """A real token stands behind the real ones before it; padding gets 0, which is compared nowhere."""
    made, seen = [], 0
    for t, real in enumerate(row):
        if t >= cached:
            made.append(seen if real else None)
        seen += bool(real)
    return made


def mrope(tokens: list[int], grids: list[list[int]], image: int, merge: int) -> list[list[int]]:
    """Qwen2-VL's get_rope_index (2409.12191 §2.1) for pictures: text counts t = h = w, a picture starts at the next free position, and text
    goes on past the larger of its sides."""
    rows: list[list[int]] = [[], [], []]
    t, free, pictures = 0, 0, iter(grids)
    while t < len(tokens):
        if tokens[t] != image:
            for row in rows:
                row.append(free)
            t, free = t + 1, free + 1
            continue
        frames, height, width = next(pictures)
        high, wide = height // merge, width // merge
        for f in range(frames):
            for y in range(high):
                for x in range(wide):
                    for row, at in zip(rows, (f, y, x), strict=True):
                        row.append(free + at)
        t += frames * high * wide
        free += max(high, wide)
    return rows


def make_positions() -> File:
    file = File(
        "positions",
        "Where each token stands. Of a padding mask, of packed documents, of a prompt in chunks, of a token behind a cache, of text with pictures "
        "(M-RoPE: rows t, h, w). null is padding, whose id is nobody's business.",
        "make/rules.py, compared with posenc positions",
        EXACT,
    )
    masks = {
        "left": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]],
        "right": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]],
        "both": [[0, 1, 1, 1, 0]],
        "none": [[1, 1, 1, 1]],
    }
    for name, rows in masks.items():
        test = Test(f"mask/{name}", {"mask": rows, "cached": 0}, {"positions": [counted(row, 0) for row in rows]})
        blind = [[t if real else None for t, real in enumerate(row)] for row in rows]
        if name in ("left", "both"):
            test.wrong("padding_counted", positions=blind)
        test.wrong(
            "off_by_one", positions=[[None if p is None else p + 1 for p in row] for row in test.output["positions"]]
        )
        file.add(test)
    for name, rows, cached in (
        ("left", [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], 4),
        ("right", [[1, 1, 1, 0, 1], [1, 1, 1, 1, 1]], 4),
        ("none", [[1, 1, 1, 1, 1, 1]], 5),
    ):
        test = Test(
            f"decode/{name}", {"mask": rows, "cached": cached}, {"positions": [counted(row, cached) for row in rows]}
        )
        test.wrong("cache_ignored", positions=[list(range(len(row) - cached)) for row in rows])
        test.wrong(
            "one_too_far", positions=[[None if p is None else p + 1 for p in row] for row in test.output["positions"]]
        )
        if name != "none":
            test.wrong("padding_counted", positions=[list(range(cached, len(row))) for row in rows])
        file.add(test)
    for bounds in ([0, 3, 8], [0, 1, 2, 6], [0, 5]):
        ids = [t for a, b in itertools.pairwise(bounds) for t in range(b - a)]
        test = Test(f"packed/{'-'.join(map(str, bounds))}", {"cu_seqlens": bounds}, {"positions": [ids]})
        if len(bounds) > 2:
            test.wrong("packing_ignored", positions=[list(range(bounds[-1]))])
        test.wrong("off_by_one", positions=[[p + 1 for p in ids]])
        file.add(test)
    for chunks in ([3, 3, 2], [4, 1, 1], [5]):
        whole = list(range(sum(chunks)))
        test = Test(
            f"chunks/{'-'.join(map(str, chunks))}",
            {"chunks": chunks},
            {"positions": [whole]},
            "a prompt is prefilled so many tokens at a time",
        )
        if len(chunks) > 1:
            test.wrong("restart_at_chunks", positions=[[t for c in chunks for t in range(c)]])
        test.wrong("off_by_one", positions=[[t + 1 for t in whole]])
        file.add(test)
    image, merge = 9, 2
    for name, grids in {"one": [[1, 4, 6]], "two": [[1, 4, 4], [1, 2, 6]], "tall": [[1, 8, 2]]}.items():
        tokens = [1, 2]
        for frames, height, width in grids:
            tokens += [image] * (frames * height * width // merge**2) + [3]
        rows = mrope(tokens, grids, image, merge)
        test = Test(
            f"mrope/{name}",
            {"input_ids": tokens, "image_grid_thw": grids, "image_token_id": image, "spatial_merge_size": merge},
            {"positions": rows},
        )
        test.wrong("images_as_text", positions=[list(range(len(tokens)))] * 3)
        test.wrong("axes_exchanged", positions=[rows[0], rows[2], rows[1]])
        late = [list(row) for row in rows]
        for t, token in enumerate(tokens):
            if token != image and t > 1:
                for row in late:
                    row[t] = t
        test.wrong("text_after_image", positions=late)
        coarse = [[t, at, side] for t, at, side in zip(*rows, strict=True)]
        unmerged = [
            [c[0], c[0] + (c[1] - c[0]) * merge, c[0] + (c[2] - c[0]) * merge] if tokens[i] == image else c
            for i, c in enumerate(coarse)
        ]
        test.wrong("merge_ignored", positions=[list(row) for row in zip(*unmerged, strict=True)])
        file.add(test)
    for name, row in {"roberta": [5, 6, 7, 1, 1], "left": [1, 1, 5, 6]}.items():
        offset, padding = 2, 1
        right = [
            1 + counted([t != padding for t in row], 0)[i] + 1 if t != padding else padding for i, t in enumerate(row)
        ]
        test = Test(
            f"learned/{name}",
            {"input_ids": [row], "padding_idx": padding},
            {"positions": [right]},
            "rows of RoBERTa's table: the first word reads row padding_idx + 1, padding row padding_idx",
        )
        test.wrong(
            "padding_row", positions=[[p - offset if t != padding else p for p, t in zip(right, row, strict=True)]]
        )
        test.wrong("padding_counted", positions=[[i + offset if t != padding else padding for i, t in enumerate(row)]])
        file.add(test)
    return file


# --- biases by distance ----------------------------------------------------------------------------


def slopes(heads: int) -> list:
    """ALiBi (2108.12409) as its authors' code has it."""
    whole = 2 ** (heads.bit_length() - 1)
    made = [mpf(2) ** (-mpf(8) * (h + 1) / whole) for h in range(whole)]
    return made + [mpf(2) ** (-mpf(8) * (2 * h + 1) / (2 * whole)) for h in range(heads - whole)]


def bucket(relative: int, both: bool, buckets: int, furthest: int, linear: bool = False) -> int:
    """T5 (1910.10683, its code): relative = key − query."""
    made = 0
    if both:
        buckets //= 2
        made += buckets if relative > 0 else 0
        distance = abs(relative)
    else:
        distance = max(-relative, 0)
    exact = buckets // 2
    if distance < exact:
        return made + distance
    if linear:
        return made + min(distance, buckets - 1)
    far = exact + int(math.log(distance / exact) / math.log(furthest / exact) * (buckets - exact))
    return made + min(far, buckets - 1)


def make_bias() -> File:
    file = File(
        "bias",
        "ALiBi's slopes and what they add to logits [head][query][key]; the bucket of T5's table for each relative position.",
        "make/rules.py",
        {"float64": (1e-13, 1e-13), "float32": (1e-7, 1e-6), "float16": (1e-4, 2e-3), "bfloat16": (1e-4, 1e-2)},
    )
    for heads in (1, 2, 4, 6, 8, 12, 32, 40, 71):
        right = slopes(heads)
        test = Test(f"slopes/{heads}", {"kind": "alibi", "heads": heads}, {"slopes": right})
        test.wrong(
            "slopes_of_power_of_two",
            slopes=slopes(1 << (heads - 1).bit_length())[:heads] if heads & (heads - 1) else right,
        )
        test.wrong("slopes_reversed", slopes=right[::-1])
        file.add(test)
    for heads, first, count in ((8, 4, 4), (12, 6, 6), (32, 8, 8)):
        test = Test(
            f"slopes/{heads}/rank{first}",
            {"kind": "alibi", "heads": heads, "first_head": first, "local_heads": count},
            {"slopes": slopes(heads)[first : first + count]},
            "a rank's heads under tensor parallelism",
        )
        test.wrong("slopes_of_local_heads", slopes=slopes(count))
        file.add(test)
    for heads, queries, keys in ((4, [0, 1, 2], [0, 1, 2]), (6, [5], [0, 1, 2, 3, 4, 5])):
        right = [[[-m * (q - k) if k <= q else None for k in keys] for q in queries] for m in slopes(heads)]
        test = Test(
            f"alibi/{heads}/{len(queries)}",
            {"kind": "alibi", "heads": heads, "queries": queries, "keys": keys},
            {"bias": right},
            "0 at the query itself; keys that a causal mask hides are not compared",
        )
        test.wrong("bias_sign", bias=[[[None if b is None else -b for b in row] for row in head] for head in right])
        if heads & (heads - 1):
            grown = slopes(8)[:heads]
            test.wrong(
                "slopes_of_power_of_two",
                bias=[[[-m * (q - k) if k <= q else None for k in keys] for q in queries] for m in grown],
            )
        file.add(test)
    relatives = [
        -1000,
        -300,
        -200,
        -129,
        -100,
        -64,
        -33,
        -20,
        -17,
        -9,
        -8,
        -7,
        -1,
        0,
        1,
        7,
        8,
        9,
        17,
        40,
        100,
        128,
        300,
    ]
    for both, buckets, furthest in ((True, 32, 128), (False, 32, 128), (True, 64, 256), (False, 32, 512)):
        asked = {
            "kind": "t5",
            "bidirectional": both,
            "num_buckets": buckets,
            "max_distance": furthest,
            "relative_positions": relatives,
        }
        test = Test(
            f"t5/{'both' if both else 'causal'}/{buckets}/{furthest}",
            asked,
            {"buckets": [bucket(r, both, buckets, furthest) for r in relatives]},
        )
        test.wrong("distance_transposed", buckets=[bucket(-r, both, buckets, furthest) for r in relatives])
        test.wrong("buckets_of_other_direction", buckets=[bucket(r, not both, buckets, furthest) for r in relatives])
        test.wrong("buckets_linear", buckets=[bucket(r, both, buckets, furthest, linear=True) for r in relatives])
        if furthest != 128:
            test.wrong("max_distance_default", buckets=[bucket(r, both, buckets, 128) for r in relatives])
        file.add(test)
    return file


# --- masks -----------------------------------------------------------------------------------------


def make_mask() -> File:
    file = File(
        "mask",
        "Which keys a query sees: visible [query][key], 1 or 0. Queries are the last tokens of the keys.",
        "make/rules.py",
        EXACT,
    )

    def add(name, queries, keys, shown, about="", **fields):
        asked = {"queries": queries, "keys": keys, **fields}
        first = keys - queries
        table = lambda f: [[int(f(first + q, k)) for k in range(keys)] for q in range(queries)]  # noqa: E731
        test = Test(name, asked, {"visible": table(shown)}, about)
        return file.add(test), table, first

    for queries, keys in ((5, 5), (2, 6), (1, 4)):
        test, table, first = add(f"causal/{queries}of{keys}", queries, keys, lambda q, k: k <= q, causal=True)
        test.wrong("causal_lost", visible=table(lambda q, k: True))
        if first:
            test.wrong("aligned_to_start", visible=table(lambda q, k, first=first: k <= q - first))
    for queries, keys, window in ((8, 8, 3), (1, 10, 4), (8, 8, 1)):
        test, table, _ = add(
            f"window/{queries}of{keys}/{window}",
            queries,
            keys,
            lambda q, k, w=window: q - w < k <= q,
            "a window of w shows the query and the w − 1 keys before it",
            causal=True,
            window=window,
        )
        test.wrong("window_off_by_one", visible=table(lambda q, k, w=window: q - w <= k <= q))
        test.wrong("window_ignored", visible=table(lambda q, k: k <= q))
        test.wrong("causal_lost", visible=table(lambda q, k, w=window: q - w < k))
        test.wrong("chunk_as_window", visible=table(lambda q, k, w=window: q // w == k // w and k <= q))
    test, table, _ = add(
        "chunk/8of8/3",
        8,
        8,
        lambda q, k: q // 3 == k // 3 and k <= q,
        "Llama 4: a token sees what came before it in its own chunk",
        causal=True,
        chunk=3,
    )
    test.wrong("chunk_as_window", visible=table(lambda q, k: q - 3 < k <= q))
    test.wrong("window_ignored", visible=table(lambda q, k: k <= q))
    test, table, _ = add(
        "sinks/8of8/3",
        8,
        8,
        lambda q, k: (q - 3 < k or k < 2) and k <= q,
        "the first tokens stay in sight (StreamingLLM, 2309.17453)",
        causal=True,
        window=3,
        sink_tokens=2,
    )
    test.wrong("sinks_hidden", visible=table(lambda q, k: q - 3 < k <= q))
    test.wrong("window_ignored", visible=table(lambda q, k: k <= q))
    of = [0, 0, 0, 1, 1, 2, 2, 2]
    test, table, _ = add(
        "packed/3-2-3", 8, 8, lambda q, k: of[q] == of[k] and k <= q, causal=True, cu_seqlens=[0, 3, 5, 8]
    )
    test.wrong("documents_mixed", visible=table(lambda q, k: k <= q))
    keep = [0, 0, 1, 1, 1, 1]
    test, table, _ = add("padding/left", 4, 6, lambda q, k: keep[k] and k <= q, causal=True, keep=keep)
    test.wrong("padding_seen", visible=table(lambda q, k: k <= q))
    return file


# --- scores ----------------------------------------------------------------------------------------


def probabilities(q, k, at, scale, softcap, warm, sink, capped_first=False) -> list:
    """[query][key]: the softmax over the keys up to the query's place."""
    made = []
    for i, query in enumerate(q):
        row = []
        for key in k[: i + 1 + len(k) - len(q)]:
            z = dot(query, key) * warm(at[i])
            if softcap and capped_first:
                z = softcap * mp.tanh(z / softcap) * scale
            else:
                z *= scale
                z = softcap * mp.tanh(z / softcap) if softcap else z
            row.append(mp.exp(z))
        whole = sum(row) + (mp.exp(mpf(sink)) if sink is not None else 0)
        made.append([x / whole for x in row] + [mpf(0)] * (len(k) - len(row)))
    return made


def make_scores() -> File:
    file = File(
        "scores",
        "Rotated queries and keys of a head [token][channel], queries the last tokens: the causal softmax [query][key] under the scale, cap, "
        "temperature by position and learned sink.",
        "make/rules.py",
        {"float64": (1e-12, 0), "float32": (3e-6, 0), "float16": (4e-3, 0), "bfloat16": (3e-2, 0)},
    )
    values = iter(grid(4 * 4 * 2, 77))
    q = [[next(values) / 2 for _ in range(4)] for _ in range(3)]
    k = [[next(values) / 2 for _ in range(4)] for _ in range(4)]
    at = [1, 2, 3]
    far = [8190, 8191, 65535]
    plain = {"q": q, "k": k, "head_dim": 4}
    none = lambda p: mpf(1)  # noqa: E731

    def add(name, positions, scale, about="", **fields):
        a = fields.get("temperature", {}).get("scale", 0)
        length = fields.get("temperature", {}).get("length", 1)
        warm = (lambda p: 1 + mpf(a) * mp.log(mp.floor(mpf(p + 1) / length) + 1)) if a else none
        cold = (lambda p: 1 + mpf(a) * mp.log(mp.floor(mpf(p) / length) + 1)) if a else none
        given = {"scale": mpf(scale), "softcap": fields.get("softcap", 0), "warm": warm, "sink": fields.get("sink")}
        make = lambda **changed: probabilities(q, k, positions, **(given | changed))  # noqa: E731
        test = Test(name, plain | {"positions": positions, "scale": scale, **fields}, {"probabilities": make()}, about)
        if scale != 0.5:
            test.wrong("scale_default", probabilities=make(scale=mpf(0.5)))
        if given["softcap"]:
            test.wrong("softcap_ignored", probabilities=make(softcap=0))
            test.wrong("softcap_before_scale", probabilities=make(capped_first=True))
        if a:
            test.wrong("temperature_ignored", probabilities=make(warm=none))
            test.wrong("temperature_from_zero", probabilities=make(warm=cold))
        if given["sink"] is not None:
            test.wrong("sink_ignored", probabilities=make(sink=None))
        file.add(test)

    add("plain", at, 0.5)
    add("query_pre_attn_scalar", at, 0.25, "Gemma: 1/√query_pre_attn_scalar")
    add("softcap", at, 0.5, "Gemma 2", softcap=2.0)
    add("softcap/scaled", at, 0.25, "Gemma 2", softcap=1.0)
    add("temperature/near", at, 0.5, "Llama 4", temperature={"scale": 0.1, "length": 8192})
    add("temperature/far", far, 0.5, "Llama 4", temperature={"scale": 0.1, "length": 8192})
    add("sink", at, 0.5, "gpt-oss", sink=0.75)
    add("sink/strong", at, 0.25, "gpt-oss", sink=3.0)
    return file


# --- vectors that are added ------------------------------------------------------------------------


def waves(
    width: int,
    positions: list[int],
    base: float,
    layout: str,
    first: str = "sin",
    ends: bool = False,
    channel: bool = False,
) -> list:
    pairs = (width + 1) // 2
    by = mpf(pairs - 1 if ends else pairs)
    made = []
    for p in positions:
        s = [mp.sin(p * mpf(base) ** (-r / by)) for r in range(pairs)]
        c = [mp.cos(p * mpf(base) ** (-(r + (mpf(1) / 2 if channel else 0)) / by)) for r in range(pairs)]
        one, two = (s, c) if first == "sin" else (c, s)
        made.append(one + two if layout == "concatenated" else [x for pair in zip(one, two, strict=True) for x in pair])
    return made


def make_added() -> File:
    file = File(
        "added",
        "Sinusoids that are added to embeddings (1706.03762): vectors [position][channel].",
        "make/rules.py",
        {"float64": (1e-12, 0), "float32": (3e-6, 0), "float16": (1e-3, 0), "bfloat16": (8e-3, 0)},
    )
    for width, positions, base, layout, ends in (
        (8, [0, 1, 2, 50], 10000.0, "interleaved", False),
        (8, [0, 1, 2, 50], 10000.0, "concatenated", False),
        (16, [0, 3, 7], 10000.0, "concatenated", True),
        (6, [1, 2, 10], 100.0, "interleaved", False),
    ):
        asked = {
            "width": width,
            "positions": positions,
            "base": base,
            "layout": layout,
            "spacing": "ends" if ends else "width",
        }
        test = Test(
            f"{layout}/{width}/{asked['spacing']}/{int(base)}",
            asked,
            {"vectors": waves(width, positions, base, layout, ends=ends)},
            "tensor2tensor's spacing: the exponent is divided by d/2 − 1" if ends else "",
        )
        other = "concatenated" if layout == "interleaved" else "interleaved"
        test.wrong("layout_exchanged", vectors=waves(width, positions, base, other, ends=ends))
        test.wrong("cosine_first", vectors=waves(width, positions, base, layout, "cos", ends))
        test.wrong("exponent_by_channel", vectors=waves(width, positions, base, layout, ends=ends, channel=True))
        test.wrong(
            "spacing_of_width" if ends else "spacing_of_ends",
            vectors=waves(width, positions, base, layout, ends=not ends),
        )
        test.wrong("off_by_one", vectors=waves(width, [p + 1 for p in positions], base, layout, ends=ends))
        if base != 10000.0:
            test.wrong("base_default", vectors=waves(width, positions, 10000.0, layout, ends=ends))
        file.add(test)
    return file
