#!/usr/bin/env python3
"""Takes the default configuration of every model_type that transformers knows, and says how posenc reads it: as
transformers' own code does, otherwise, or not at all. Prints the table of docs/families.md.

  tests/peers/census.py                    all of them; a quarter of an hour
  tests/peers/census.py --only 'gemma.*'   by name, each with what was found
"""

import argparse
import collections
import json
import multiprocessing
import re

import compare


# Defaults that contradict themselves (heads that do not divide the width, sections that do not fill what rotates, no base), and
# a value by which they do not.
HALF = {"rope_parameters.partial_rotary_factor": 0.5}
MENDED = {
    "aya_vision": {"vision_config.num_attention_heads": 16},
    "cohere_compass": {"text_config.rope_parameters.rope_theta": 50000.0},
    "cohere_compass_text": {"rope_parameters.rope_theta": 50000.0},
    "glm4_moe": {"head_dim": 128},
    "glm4v_text": HALF,
    "glm_image_text": HALF,
    "glm4v_moe_text": {"head_dim": 128},
    "glm4v_moe": {"text_config.head_dim": 128},
    **{kind: {f"text_config.{key}": value for key, value in HALF.items()} for kind in ("glm46v", "glm4v", "glm_image", "glmga")},
    "qwen3_omni_moe": {"thinker_config.text_config.head_dim": 128, "talker_config.text_config.head_dim": 128},
    "qwen3_omni_moe_thinker": {"text_config.head_dim": 128},
    "qwen3_omni_moe_text": {"head_dim": 128},
    "qwen3_omni_moe_talker_text": {"head_dim": 128},
    "qwen4_exp": {"text_config.rope_parameters.partial_rotary_factor": 0.25},
    "qwen4_exp_text": {"rope_parameters.partial_rotary_factor": 0.25},
}


def mend(raw, kind):
    for path, value in MENDED.get(kind, {}).items():
        *outer, key = path.split(".")
        part = raw
        for name in outer:
            part[name] = part.get(name) or {}
            part = part[name]
        part[key] = value
    return raw


def default(kind):
    """config.json as transformers would save it, mended where it contradicts itself."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    raw = {**json.loads(CONFIG_MAPPING[kind]().to_json_string(use_diff=False)), "model_type": kind}
    if "prediction_length" in raw and raw["prediction_length"] is None:  # models of time series cannot be without
        raw["prediction_length"] = 24
    return mend(raw, kind)


def one(kind):
    try:
        raw = default(kind)
    except Exception as error:
        return kind, "no default", f"{type(error).__name__}: {str(error)[:100]}", []
    return kind, *compare.judge(raw)


WORDS = {
    compare.AGREE: "agree, layer by layer",
    compare.WARNED: "agree, layer by layer, with a warning",
    compare.BUILT: "agree in layers, heads and tables",
    compare.BUILT_WARNED: "agree in layers, heads and tables, with a warning",
    compare.POSENC_ACCEPTS: "explained, and transformers does not make its own default",
    compare.ACCEPTS_WARNED: "explained with a warning, and transformers does not make its own default",
    compare.WRONG_WARNED: "differ, with a warning",
    compare.WRONG: "**differ in silence**",
    "no default": "transformers has no default",
}


def print_table(count, found):
    """Outcomes by number and by name, and what is refused by its reason."""
    print(f"| of {count} model types | | |\n|---|---|---|")
    for outcome, words in WORDS.items():
        names = " ".join(sorted(kind for kind, _ in found[outcome]))
        print(f"| {words} | {len(found[outcome])} | {names} |")
    refused = found[compare.BOTH_REFUSE] + found[compare.POSENC_REFUSES]
    reasons = collections.defaultdict(list)
    for kind, why in refused:
        reasons[reason(why)].append(kind)
    print(f"\n| of {len(refused)} refused, the reason | | |\n|---|---|---|")
    for each, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"| {each} | {len(names)} | {' '.join(sorted(names))} |")


def reason(why):
    """posenc's own, without the value and the path."""
    ours = why.split(" | ")[0]
    rule, _, cure = ours.partition(", got ")
    if "is known and not covered" in rule or "has no attention" in rule:
        return cure.partition("; ")[2]
    return "the class's own default contradicts itself: widths that heads do not divide, sections that do not fill a head"


def main():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="a pattern of model_type")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    kinds = [k for k in sorted(CONFIG_MAPPING_NAMES) if re.fullmatch(options.only or ".*", k)]
    found = collections.defaultdict(list)
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=40) as pool:
        for kind, outcome, why, warnings in pool.imap_unordered(one, kinds, chunksize=4):
            found[outcome].append((kind, why))
            print(json.dumps({"model_type": kind, "outcome": outcome, "why": why, "warnings": warnings}), flush=True)
    print_table(len(kinds), found)


if __name__ == "__main__":
    main()
