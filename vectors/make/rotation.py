"""cos and sin of far positions, rotations of explicit frequencies, and whole models: queries and keys as they enter the product."""

from mpmath import mp, mpf

from make.book import File, Test
from make.frequencies import explained, outcome, rope_of
from make.numbers import bfloat16, dot, float16, float32, grid
from make.rope import Rope, Turn, angle, frequencies

POSITIONS = [0, 1, 2, 3, *(2**k for k in range(2, 31)), 257, 2049, 10**6, 10**9]


def make_cos_sin() -> File:
    file = File(
        "cos_sin",
        "Frequencies as doubles, exactly, and whole positions: the cosine and the sine of position · frequency, times the factor.",
        "make/rotation.py: the product in 60 digits, its cosine rounded once",
        # Steps of the type about 1; in double what an angle of 10^9 loses where it is rounded to the nearest double.
        {"float64": (2.0**-22, 0), "float32": (1e-5, 0), "float16": (2.0**-11, 0), "bfloat16": (2.0**-8, 0)},
    )
    for base in (10000.0, 500000.0, 1000000.0):
        f = [float(x) for x in frequencies(Rope(16, 16, base))]
        for position in sorted(set(POSITIONS)):
            exact = [angle(position, x) for x in f]
            asked = {"inv_freq": f, "attention_factor": 1, "positions": [position]}
            test = Test(
                f"{int(base)}/{position}", asked, {"cos": [mp.cos(a) for a in exact], "sin": [mp.sin(a) for a in exact]}
            )

            def wrong(name, angles, test=test):
                test.wrong(name, cos=[mp.cos(mpf(a)) for a in angles], sin=[mp.sin(mpf(a)) for a in angles])

            wrong("angles_in_float32", [float32(mpf(float32(position)) * mpf(float32(x))) for x in f])
            # Products of floats differ by the order of their roundings: whoever is this near the right answer has made one.
            test.within["angles_in_float32"] = {name: [a * mpf(2) ** -22 for a in exact] for name in ("cos", "sin")}
            wrong("angles_in_bfloat16", [bfloat16(a) for a in exact])
            wrong("positions_in_bfloat16", [mpf(bfloat16(position)) * mpf(x) for x in f])
            wrong("frequencies_in_bfloat16", [mpf(bfloat16(x)) * position for x in f])
            wrong("frequencies_in_float16", [mpf(float16(x)) * position for x in f])
            if position <= 65504:
                wrong("angles_in_float16", [float16(a) for a in exact])
                wrong("positions_in_float16", [mpf(float16(position)) * mpf(x) for x in f])
            wrong("off_by_one", [angle(position + 1, x) for x in f])
            test.wrong("cos_sin_exchanged", cos=test.output["sin"], sin=test.output["cos"])
            file.add(test)
    factor = 1.3465735902799727  # YaRN ×32
    f = [float(x) for x in frequencies(Rope(16, 16, 10000.0))]
    for position in (0, 7, 4096):
        exact = [angle(position, x) for x in f]
        asked = {"inv_freq": f, "attention_factor": factor, "positions": [position]}
        test = Test(
            f"factor/{position}",
            asked,
            {"cos": [factor * mp.cos(a) for a in exact], "sin": [factor * mp.sin(a) for a in exact]},
        )
        test.wrong("factor_dropped", cos=[mp.cos(a) for a in exact], sin=[mp.sin(a) for a in exact])
        test.wrong("cos_sin_exchanged", cos=test.output["sin"], sin=test.output["cos"])
        file.add(test)
    return file


def heads(count: int, tokens: int, dim: int, seed: int) -> list:
    """[token][head][channel]"""
    values = iter(grid(count * tokens * dim, seed))
    return [[[next(values) for _ in range(dim)] for _ in range(count)] for _ in range(tokens)]


def turned(turn: Turn, x: list, positions: list) -> list:
    """positions [axis][token]"""
    return [[turn(head, [axis[t] for axis in positions]) for head in token] for t, token in enumerate(x)]


def by_head(turn: Turn, x: list) -> list:
    return [[turn(head, [h] * 3) for h, head in enumerate(token)] for token in x]


def scores(q: list, k: list) -> list:
    """[head][query][key] before the scale; each key head serves as many query heads."""
    each = len(q[0]) // len(k[0])
    return [[[dot(query[h], key[h // each]) for key in k] for query in q] for h in range(len(q[0]))]


def rotation_mistakes(
    test: Test, turn: Turn, q: list, k: list, positions: list, dim: int, whole: Turn | None, scored: bool
) -> None:
    def outputs(turned_q, turned_k):
        made = {"q": turned_q, "k": turned_k}
        return made | ({"scores": scores(turned_q, turned_k)} if scored else {})

    def wrong(name, tq, tk=None):
        test.wrong(name, **outputs(turned(tq, q, positions), turned(tk or tq, k, positions)))

    rotary = 2 * len(turn.frequency)
    if scored:
        wrong("frequencies_in_bfloat16", turn.but(frequency=[bfloat16(f) for f in turn.frequency]))
        wrong("angles_in_bfloat16", turn.but(rounded=bfloat16))
    wrong("wrong_pairing", turn.but(pairing="interleaved" if turn.pairing == "halves" else "halves"))
    wrong(
        "interleaved_table",
        turn.but(table="concatenated")
        if turn.pairing == "interleaved"
        else turn.but(pairing="interleaved", table="concatenated"),
    )
    wrong("backwards", turn.but(direction=-1))
    wrong("not_rotated", turn.but(times=0))
    wrong("rotated_twice", turn.but(times=2))
    wrong("off_by_one", turn.but(offset=1))
    test.wrong("head_index", **outputs(by_head(turn, q), by_head(turn, k)))
    if turn.factor != 1:
        wrong("factor_dropped", turn.but(factor=1))
        wrong("factor_on_queries_alone", turn, turn.but(factor=1))
        if rotary < dim:
            wrong("factor_on_all_channels", turn.but(factor_on_all=True))
    if rotary < dim:
        wrong("wrong_slice", turn.but(first_dim=0 if turn.first_dim else dim - rotary))
        if whole:
            wrong("whole_head", whole)
    if turn.axis_of_pair:
        swap = {1: 2, 2: 1}
        wrong("axes_exchanged", turn.but(axis_of_pair=[swap.get(a, a) for a in turn.axis_of_pair]))
        test.wrong(
            "text_positions_alone", **outputs(turned(turn, q, [positions[0]] * 3), turned(turn, k, [positions[0]] * 3))
        )
        sections = sorted(turn.axis_of_pair)
        if sections != turn.axis_of_pair:
            wrong("sections_contiguous", turn.but(axis_of_pair=sections))
        else:
            wrong("sections_interleaved", turn.but(axis_of_pair=interleaved([sections.count(a) for a in range(3)])))


def interleaved(sections: list[int]) -> list[int]:
    """Qwen3-VL's apply_interleaved_mrope: height takes pairs 1, 4, 7 … and width 2, 5, 8 … as far as their sections reach, time the rest."""
    pairs = sum(sections)
    made = [0] * pairs
    for axis in (1, 2):
        for r in range(axis, min(3 * sections[axis], pairs), 3):
            made[r] = axis
    return made


def make_rotate() -> File:
    file = File(
        "rotate",
        "Explicit frequencies, factor, pairing, slice and positions; queries [token][head][channel] and keys: both rotated, in the same layout.",
        "make/rotation.py",
        {"float64": (1e-11, 0), "float32": (3e-5, 0), "float16": (1.6e-2, 0), "bfloat16": (1.2e-1, 0)},
    )
    cases = []
    for pairing in ("halves", "interleaved"):
        cases += [
            (f"{pairing}/whole", 8, 8, 0, pairing, 1.0, None),
            (f"{pairing}/leading", 16, 8, 0, pairing, 1.0, None),
            (f"{pairing}/trailing", 16, 8, 8, pairing, 1.0, None),
        ]
        cases += [
            (f"{pairing}/factor", 8, 8, 0, pairing, 1.2079441541679836, None),
            (f"{pairing}/factor_trailing", 12, 8, 4, pairing, 1.2079441541679836, None),
        ]
        cases += [
            (f"{pairing}/sections", 16, 16, 0, pairing, 1.0, [0, 0, 1, 1, 1, 2, 2, 2]),
            (f"{pairing}/sections_interleaved", 16, 16, 0, pairing, 1.0, interleaved([3, 3, 2])),
        ]
    rows = {"prefill": [0, 1, 2], "decode": [37], "packed": [0, 1, 0, 1, 2]}
    grids = {"picture": [[4, 4, 4, 6], [4, 4, 5, 6], [4, 5, 4, 6]]}
    for seed, (name, dim, rotary, first, pairing, factor, axes) in enumerate(cases):
        f = [float(x) for x in frequencies(Rope(rotary, rotary, 10000.0))]
        for text, row in (grids if axes else rows).items():
            if text == "packed" and "whole" not in name:
                continue
            positions = row if axes else [row]
            q, k = heads(2, len(positions[0]), dim, 100 + seed), heads(1, len(positions[0]), dim, 200 + seed)
            turn = Turn([mpf(x) for x in f], pairing, first, mpf(factor), axes)
            asked = {
                "inv_freq": f,
                "attention_factor": factor,
                "pairing": pairing,
                "first_dim": first,
                "rotary_dim": rotary,
                "positions": positions if axes else row,
                "q": q,
                "k": k,
            }
            if axes:
                asked["axis_of_pair"] = axes
            test = Test(f"{name}/{text}", asked, {"q": turned(turn, q, positions), "k": turned(turn, k, positions)})
            whole = Turn(frequencies(Rope(dim, dim, 10000.0)), pairing, 0, mpf(factor)) if rotary < dim else None
            rotation_mistakes(test, turn, q, k, positions, dim, whole, scored=False)
            file.add(test)
    return file


SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "max_position_embeddings": 4096,
}
YARN = {
    "rope_type": "yarn",
    "factor": 8.0,
    "original_max_position_embeddings": 512,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}
SIXTEEN = {"head_dim": 16}
MODELS = {
    "llama": SIXTEEN | {"rope_theta": 10000.0},
    "llama/llama3": SIXTEEN
    | {
        "model_type": "llama",
        "rope_theta": 500000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 512,
        },
    },
    "llama/yarn": SIXTEEN | {"model_type": "llama", "rope_theta": 10000.0, "rope_scaling": YARN},
    "mistral": SIXTEEN | {"rope_theta": 1000000.0, "sliding_window": None},
    "qwen2": {"rope_theta": 1000000.0},
    "qwen3": SIXTEEN | {"rope_theta": 1000000.0},
    "gemma2": SIXTEEN | {"rope_theta": 10000.0, "query_pre_attn_scalar": 16, "sliding_window": 64},
    "gemma3_text": SIXTEEN
    | {
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "sliding_window": 64,
        "num_hidden_layers": 6,
        "sliding_window_pattern": 6,
        "query_pre_attn_scalar": 16,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "cohere": {"rope_theta": 10000.0},
    "olmo2": {"rope_theta": 500000.0},
    "starcoder2": {"rope_theta": 100000.0, "sliding_window": None},
    "stablelm": {"rope_theta": 10000.0, "partial_rotary_factor": 0.25},
    "gpt_neox": {"rotary_pct": 0.25, "rotary_emb_base": 10000.0},
    "phi": {"rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    "phi3/longrope": {
        "model_type": "phi3",
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 512,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0, 1.1, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0],
            "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        },
    },
    "glm4": SIXTEEN | {"rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    "granite": {"rope_theta": 10000.0},
    "smollm3": {"rope_theta": 2000000.0, "no_rope_layers": [1, 1, 1, 0]},
    "gpt_oss": SIXTEEN | {"rope_theta": 150000.0, "sliding_window": 64, "rope_scaling": YARN | {"truncate": False}},
    "gptj": {"n_embd": 32, "n_head": 2, "n_layer": 2, "n_positions": 512, "rotary_dim": 8},
    "deepseek_v3": {
        "rope_theta": 10000.0,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8,
        "v_head_dim": 8,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "rope_scaling": YARN | {"type": "yarn", "mscale": 1.0, "mscale_all_dim": 0.5},
    },
    "ernie4_5": SIXTEEN | {"rope_theta": 500000.0},
    "helium": SIXTEEN | {"rope_theta": 100000.0},
    "nemotron": SIXTEEN | {"rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    "qwen3_next": SIXTEEN | {"rope_theta": 10000000.0, "partial_rotary_factor": 0.25, "full_attention_interval": 4},
    "minimax": SIXTEEN | {"rope_theta": 10000000.0, "rotary_dim": 8, "layer_types": ["full_attention"] * 4},
    "persimmon": {"rope_theta": 25000.0, "partial_rotary_factor": 0.5},
    "seed_oss": SIXTEEN | {"rope_theta": 10000000.0},
    "qwen2_vl_text": {"rope_theta": 1000000.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}},
    "qwen3_vl_text": SIXTEEN
    | {
        "rope_theta": 5000000.0,
        "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [3, 3, 2]},
    },
}


def make_model(posenc: str) -> File:
    file = File(
        "model",
        "A small configuration of a real family, a layer, positions, queries and keys before rotation [token][head][channel]: both after it, and "
        "their products [head][query][key] before any scale. An engine that lays channels out otherwise than its family's own code answers with "
        "scores alone.",
        "make/rotation.py; pairing and slice are posenc explain's, which tests/peers compares with each family's own code",
        {"float64": (1e-10, 0), "float32": (4e-4, 0), "float16": (3e-1, 0), "bfloat16": (2.5, 0)},
    )
    for seed, (name, fields) in enumerate(MODELS.items()):
        config = {"model_type": name.split("/")[0]} | ({} if name == "gptj" else SMALL) | fields
        try:
            groups = explained(posenc, config, 0)
        except ValueError as error:
            print(f"model: {name} left out: {str(error)[:200]}")
            continue
        for group in groups:
            if group["stack"] not in ("text", "decoder") or group["mixer"] != "attention":
                continue
            plan = group["plan"]["rotate"]
            layer, dim = group["layers"][0], group["head_dim"]
            axes = plan["axis_of_pair"] if plan else None
            positions = [[2, 3, 21], [2, 4, 21], [2, 3, 21]] if axes else [[0, 5, 60]]
            q, k = heads(2, 3, dim, 300 + seed), heads(1, 3, dim, 400 + seed)
            asked = {"config": config, "layer": layer, "positions": positions if axes else positions[0], "q": q, "k": k}
            where = f"{name}/layer{layer}" if len(groups) > 1 else name
            if not plan:
                test = Test(where, asked, {"q": q, "k": k, "scores": scores(q, k)}, "no rotation in this layer (NoPE)")
                other = next(g["plan"]["rotate"] for g in groups if g["plan"]["rotate"])
                turn = Turn([mpf(x) for x in other["frequencies"][0]], other["pairing"], 0, mpf(other["amplitude"]))
                made = turned(turn, q, positions), turned(turn, k, positions)
                test.wrong("other_layers", q=made[0], k=made[1], scores=scores(*made))
                file.add(test)
                continue
            rope = rope_of(group, 0, config.get("max_position_embeddings", 0))
            made = outcome(rope)
            turn = Turn(made["inv_freq"], plan["pairing"], plan["first_dim"], made["attention_factor"], axes)
            out = turned(turn, q, positions), turned(turn, k, positions)
            heading = group["heading"].split(": ", 1)[-1]
            test = Test(where, asked, {"q": out[0], "k": out[1], "scores": scores(*out)}, heading)
            whole = (
                turn.but(frequency=frequencies(rope.but(rotary_dim=dim)), first_dim=0)
                if rope.kind == "default" and rope.rotary_dim < dim
                else None
            )
            rotation_mistakes(test, turn, q, k, positions, dim, whole, scored=True)

            def wrong(mistake, changed, test=test, turn=turn, q=q, k=k, positions=positions):
                made = outcome(changed)
                turn = turn.but(frequency=made["inv_freq"], factor=made["attention_factor"])
                rotated = turned(turn, q, positions), turned(turn, k, positions)
                test.wrong(mistake, q=rotated[0], k=rotated[1], scores=scores(*rotated))

            if rope.kind != "default":
                wrong("scaling_ignored", rope.but(scaling={"type": "default"}))
            if rope.base != 10000:
                wrong("base_default", rope.but(base=10000.0))
            if rope.rotary_dim < dim and rope.kind == "default":
                wrong("denominator", rope.but(exponent_dim=dim))
            file.add(test)
    return file


def make_rekey() -> File:
    file = File(
        "rekey",
        "Keys [token][head][channel] that stand rotated at `from`: the same keys rotated at `to`.",
        "make/rotation.py: the unrotated keys rotated at both",
        {"float64": (1e-11, 0), "float32": (3e-5, 0), "float16": (2.4e-2, 0), "bfloat16": (1.8e-1, 0)},
    )
    moves = {
        "shift_down": ([40, 41, 42], [30, 31, 32]),
        "shift_up": ([0, 1, 2], [100, 101, 102]),
        "merge": ([0, 1, 0, 1], [0, 1, 2, 3]),
        "stays": ([5, 6], [5, 6]),
    }
    for seed, (pairing, first, factor) in enumerate(
        [("halves", 0, 1.0), ("interleaved", 0, 1.0), ("halves", 4, 1.2079441541679836)]
    ):
        f = [float(x) for x in frequencies(Rope(8, 8, 10000.0))]
        turn = Turn([mpf(x) for x in f], pairing, first, mpf(factor))
        for name, (old, new) in moves.items():
            plain = heads(1, len(old), 8 + first, 500 + seed)
            cached = [[[float(c) for c in head] for head in token] for token in turned(turn, plain, [old])]
            step = turn.but(factor=mpf(1))
            moved = turned(step, cached, [[n - o for o, n in zip(old, new, strict=True)]])
            asked = {
                "inv_freq": f,
                "attention_factor": factor,
                "pairing": pairing,
                "first_dim": first,
                "rotary_dim": 8,
                "from": old,
                "to": new,
                "k": cached,
            }
            test = Test(f"{pairing}/{first}/{name}", asked, {"k": moved})
            test.wrong("not_moved", k=cached)
            test.wrong("moved_backwards", k=turned(step, cached, [[o - n for o, n in zip(old, new, strict=True)]]))
            test.wrong("rotated_anew", k=turned(step, cached, [new]))
            if factor != 1:
                test.wrong("factor_again", k=turned(turn, cached, [[n - o for o, n in zip(old, new, strict=True)]]))
            file.add(test)
    return file
