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
import hugging_face


def default(kind):
    """config.json as transformers would save it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return {**json.loads(CONFIG_MAPPING[kind]().to_json_string(use_diff=False)), "model_type": kind}


def one(kind):
    try:
        raw = default(kind)
    except Exception as error:
        return kind, "no default", f"{type(error).__name__}: {str(error)[:100]}", []
    return kind, *compare.judge(raw)


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
            found[outcome].append(kind)
            print(json.dumps({"model_type": kind, "outcome": outcome, "why": why, "warnings": warnings}), flush=True)
    print(f"| of {len(kinds)} model types | |\n|---|---|")
    for outcome, names in found.items():
        print(f"| {outcome} | {len(names)} |")


if __name__ == "__main__":
    main()
