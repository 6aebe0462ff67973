"""What a configuration makes of the frequencies: real models and every kind of scaling, in old and new spellings."""

import json
import subprocess
from pathlib import Path

from mpmath import mpf

from make.book import File, Test
from make.numbers import bfloat16, double, flat, float16, float32
from make.rope import Rope, attention_factor, frequencies

ROOT = Path(__file__).resolve().parents[2]
NO_POSITION = [
    "_name_or_path",
    "architectures",
    "attention_bias",
    "attention_dropout",
    "auto_map",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "hidden_act",
    "hidden_activation",
    "initializer_range",
    "intermediate_size",
    "mlp_bias",
    "pretraining_tp",
    "rms_norm_eps",
    "tie_word_embeddings",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "use_cache",
    "vocab_size",
    "quantization_config",
    "vision_config",
    "audio_config",
    "embd_pdrop",
    "resid_pdrop",
    "attn_pdrop",
    "hidden_dropout",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "residual_dropout",
    "embedding_dropout",
    "norm_epsilon",
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "num_local_experts",
    "router_aux_loss_coef",
    "output_router_logits",
    "moe_intermediate_size",
    "first_k_dense_replace",
    "norm_topk_prob",
    "scoring_func",
    "topk_group",
    "topk_method",
    "n_group",
    "routed_scaling_factor",
    "seq_aux",
    "aux_loss_alpha",
    "moe_layer_freq",
    "task_specific_params",
    "summary_type",
    "unk_token_id",
    "sep_token_id",
    "image_token_id",
    "boi_token_index",
    "eoi_token_index",
    "image_token_index",
    "mm_tokens_per_image",
    "num_nextn_predict_layers",
]
SPELLINGS = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 4.0},
    "yarn": {"factor": 8.0, "original_max_position_embeddings": 4096},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "longrope": {
        "short_factor": [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0],
        "long_factor": [1.0, 1.5, 2.5, 4.0, 6.0, 8.0, 12.0, 16.0],
        "original_max_position_embeddings": 4096,
    },
}
SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 2,
    "rope_theta": 500000.0,
}


def cut(config: dict) -> dict:
    """The file without what no position depends on."""
    made = {}
    for key, value in config.items():
        if key in NO_POSITION or key.endswith("_token_id"):
            continue
        made[key] = cut(value) if key in ("text_config", "llm_config") else value
    return made


def explained(posenc: str, config: dict, length: int) -> list[dict]:
    """posenc's own reading of a file, whose frequencies are compared with those computed here."""
    command = [posenc, "explain", "-", "--json", *(["--at", str(length)] if length else [])]
    ran = subprocess.run(command, input=json.dumps(config), capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise ValueError(f"{ran.stderr.strip()}: {json.dumps(config)[:400]}")
    return json.loads(ran.stdout)["groups"]


def rope_of(group: dict, length: int, context: int) -> Rope:
    scheme, plan = group["scheme"], group["plan"]["rotate"]
    made = Rope(group["head_dim"], plan["rotary_dim"], scheme["rope_theta"], scheme["scaling"], length, context)
    ours = frequencies(made)
    stands = flat(plan["frequencies"])[: len(ours)]
    for mine, theirs in zip(ours, stands, strict=True):
        if abs(mine - mpf(theirs)) > abs(mine) * mpf(2) ** -48:
            raise ValueError(f"posenc has {theirs} where the formula gives {double(mine)}: {scheme}")
    if abs(attention_factor(made) - mpf(plan["amplitude"])) > mpf(2) ** -48:
        raise ValueError(f"posenc has the factor {plan['amplitude']}, the formula {double(attention_factor(made))}")
    return made


def outcome(rope: Rope) -> dict:
    return {"inv_freq": frequencies(rope), "attention_factor": attention_factor(rope)}


def spelled(config: dict) -> tuple[bool, bool]:
    """Whether the scaling's kind is spelled `type`, and whether rope_parameters holds all."""
    inner = config.get("text_config", config)
    scaling = inner.get("rope_scaling") or {}
    return "type" in scaling and "rope_type" not in scaling, "rope_parameters" in inner


def add_mistakes(test: Test, rope: Rope, config: dict, others: list[Rope]) -> None:
    s, kind = rope.scaling, rope.kind
    right = outcome(rope)
    plain = rope.but(scaling={"type": "default"})
    old, parameters = spelled(config)

    def wrong(name: str, changed: Rope) -> None:
        test.wrong(name, **outcome(changed))

    if rope.base != 10000:
        wrong("base_default", rope.but(base=10000.0))
    if parameters and (rope.base != 10000 or kind != "default"):
        wrong("rope_parameters_ignored", plain.but(base=10000.0))
    if rope.rotary_dim < rope.head_dim and kind == "default":
        wrong("denominator", rope.but(exponent_dim=rope.head_dim))
        wrong("partial_ignored", rope.but(rotary_dim=rope.head_dim))
    wrong("exponent_halved", rope.but(exponent_step=1))
    add_running_product(test, right["inv_freq"], rope)
    for dtype in (bfloat16, float16):
        test.wrong(f"frequencies_in_{dtype.__name__}", inv_freq=[dtype(x) for x in right["inv_freq"]])
    for other in others:
        if other.but(length=0, context=0) != rope.but(length=0, context=0):
            wrong("other_layers", other)
            if kind == "default" and other.kind in ("linear", "yarn"):
                wrong("scaling_everywhere", rope.but(scaling=other.scaling))
            break
    if kind == "default":
        return
    wrong("scaling_ignored", plain)
    if old:
        wrong("type_key_ignored", plain)
    if kind == "proportional":
        turning = int(rope.head_dim * s["partial_rotary_factor"])
        wrong("proportional_as_partial", plain.but(rotary_dim=turning))
        return
    if kind != "longrope":
        wrong("factor_inverted", rope.but(inverted=True))
    trained = s.get("original_max_position_embeddings")
    if kind in ("yarn", "llama3"):
        wrong("all_interpolated", rope.but(scaling={"type": "linear", "factor": rope.factor}))
    if kind in ("yarn", "llama3", "longrope") and rope.context and trained != rope.context:
        wrong("trained_length", rope.scaled_by(original_max_position_embeddings=rope.context, factor=rope.factor))
    if kind == "yarn":
        wrong("ramp_reversed", rope.but(reversed_ramp=True))
        wrong("betas_ignored", rope.scaled_by(beta_fast=32.0, beta_slow=1.0))
        if not s.get("truncate", True):
            wrong("truncate_ignored", rope.scaled_by(truncate=True))
    if kind in ("yarn", "longrope"):
        test.wrong("factor_dropped", attention_factor=mpf(1))
    if kind == "yarn":
        wrong("factor_rule", rope.scaled_by(attention_factor=None, mscale=None, mscale_all_dim=None))
        if s.get("mscale"):
            wrong("mscale_alone", rope.scaled_by(mscale_all_dim=1e-12))
    if kind == "llama3":
        wrong("smoothing_missing", rope.but(no_smoothing=True))
        wrong("bands_default", rope.scaled_by(low_freq_factor=1.0, high_freq_factor=4.0))
        wrong("factor_default", rope.scaled_by(factor=8.0))
    if kind == "longrope":
        wrong("other_list", rope.but(other_list=True))
        wrong("divisors_multiplied", rope.but(multiplied=True))
    if kind == "dynamic":
        wrong("never_grows", rope.but(length=0))
        wrong("always_grown", rope.but(length=int(s["max_position_embeddings"] * rope.factor)))
        wrong("exponent_plain", rope.but(plain_exponent=True))


def add_running_product(test: Test, exact: list, rope: Rope) -> None:
    """Each frequency as the one before it times θ^(−2/d) in float32: both round, so that the r-th is off by up to r·2⁻²³ of itself."""
    step, product, drifted = float32(mpf(rope.base) ** (mpf(-2) / rope.rotary_dim)), mpf(1), []
    for r, f in enumerate(exact):
        drifted.append(f * product / mpf(rope.base) ** (mpf(-2 * r) / rope.rotary_dim))
        product = mpf(float32(product * mpf(step)))
    test.wrong("frequencies_by_product", inv_freq=drifted)
    if len(exact) > 16:  # fewer multiplications stay within the tolerance
        test.within["frequencies_by_product"] = {
            "inv_freq": [(r + 4) * mpf(2) ** -23 * f for r, f in enumerate(exact)],
            "attention_factor": mpf(0),
        }


def add(file: File, posenc: str, name: str, config: dict, length: int, source: str) -> None:
    """A test for each kind of rotating layer of the text."""
    groups = [
        g
        for g in explained(posenc, config, length)
        if g["stack"] in ("text", "decoder") and g["plan"] and g["plan"]["rotate"]
    ]
    inner = config.get("text_config", config)
    context = inner.get("max_position_embeddings", 0)
    ropes = [rope_of(group, length, context) for group in groups]
    seen: list[Rope] = []
    for group, rope in zip(groups, ropes, strict=True):
        if rope in seen:
            continue
        seen.append(rope)
        layer = group["layers"][0]
        asked = {"config": config, "layer": layer, **({"length": length} if length else {})}
        where = f"/layer{layer}" if len(set(map(str, ropes))) > 1 else ""
        about = f"{group['heading'].split(': ', 1)[-1]}"
        test = Test(f"{name}{where}{f'/{length}' if length else ''}", asked, outcome(rope), about, source)
        add_mistakes(test, rope, config, ropes)
        file.add(test)


def spelled_scalings() -> list[tuple[str, dict, int]]:
    """Every kind of scaling in the words of transformers 4 (`type`, `rope_type`) and 5 (rope_parameters)."""
    made = []
    for kind, fields in SPELLINGS.items():
        lengths = {"dynamic": (4096, 10000), "longrope": (4096, 4097)}.get(kind, (0,))
        context = {"linear": 16384, "dynamic": 4096, "llama3": 65536}.get(kind, 32768)
        old = {"linear", "dynamic", "yarn"} & {kind}
        family = "phi3" if kind == "longrope" else "llama"
        for length in lengths:
            base = SMALL | {"model_type": family, "max_position_embeddings": context}
            if family == "phi3":
                base["original_max_position_embeddings"] = fields["original_max_position_embeddings"]
            if old:
                made.append((f"{kind}/type", base | {"rope_scaling": {"type": kind, **fields}}, length))
            made.append((f"{kind}/rope_type", base | {"rope_scaling": {"rope_type": kind, **fields}}, length))
            new = {key: value for key, value in base.items() if key != "rope_theta"}
            made.append(
                (
                    f"{kind}/rope_parameters",
                    new | {"rope_parameters": {"rope_type": kind, "rope_theta": 500000.0, **fields}},
                    length,
                )
            )
    wide = SMALL | {"hidden_size": 256, "head_dim": 64, "max_position_embeddings": 32768}
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096}
    for name, more in {
        "betas": {"beta_fast": 16.0, "beta_slow": 2.0},
        "truncate": {"truncate": False},
        "attention_factor": {"attention_factor": 1.5},
        "mscale": {"mscale": 1.0, "mscale_all_dim": 1.0},
        "mscale_ratio": {"mscale": 1.0, "mscale_all_dim": 0.5},
    }.items():
        made.append((f"yarn/{name}", wide | {"rope_scaling": yarn | more}, 0))
    bands = {
        "rope_type": "llama3",
        "factor": 16.0,
        "low_freq_factor": 2.0,
        "high_freq_factor": 8.0,
        "original_max_position_embeddings": 8192,
    }
    made.append(("llama3/bands", wide | {"rope_scaling": bands}, 0))
    layers = {
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_hidden_layers": 6,
    }
    nested = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    flat = {
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    }
    made.append(
        (
            "layer_types/flat",
            layers | {"layer_types": kinds, "sliding_window": 512, "max_position_embeddings": 131072} | flat,
            0,
        )
    )
    made.append(
        (
            "layer_types/nested",
            layers
            | {
                "layer_types": kinds,
                "sliding_window": 512,
                "max_position_embeddings": 131072,
                "rope_parameters": nested,
            },
            0,
        )
    )
    partial = {
        "model_type": "stablelm",
        "hidden_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "num_hidden_layers": 2,
        "max_position_embeddings": 4096,
    }
    made.append(("partial/flat", partial | {"rope_theta": 20000.0, "partial_rotary_factor": 0.25}, 0))
    made.append(
        (
            "partial/rope_parameters",
            partial
            | {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 0.25}},
            0,
        )
    )
    return made


def make(posenc: str) -> File:
    file = File(
        "frequencies",
        "A configuration, a layer and, where the rule asks it, the text's length: radians per position of each pair, and the factor on cos and sin.",
        "make/frequencies.py: the papers' formulae in 60 digits (make/rope.py), compared with posenc explain",
        {"float64": (1e-300, 1e-12), "float32": (1e-12, 2e-6), "float16": (1e-7, 2e-3), "bfloat16": (1e-12, 1.2e-2)},
    )
    for name, config, length in spelled_scalings():
        add(file, posenc, name, config, length, "transformers 4 and 5, modeling_rope_utils.py")
    folders = [ROOT / "models", ROOT / "tests" / "data" / "zoo"]
    seen = set()
    for path in sorted((p for folder in folders for p in folder.glob("*.json")), key=lambda p: p.name):
        name = path.stem
        if name in seen or name in ("index", "broken-llama-3.1-8b"):
            continue
        seen.add(name)
        config = cut(json.loads(path.read_text()))
        for length in {"phi-3.5-mini": (4096, 4097), "internlm2.5-7b": (32768, 100000), "minicpm3-4b": (32768,)}.get(
            name, (0,)
        ):
            try:
                add(file, posenc, name, config, length, "the model's config.json")
            except (ValueError, KeyError, TypeError) as error:
                print(f"frequencies: {name} left out: {str(error)[:300]}")
    return file
