"""python -m make [--check] [POSENC]: writes vectors/*.json, or says what differs and exits with 1."""

import argparse
import json
import sys
from pathlib import Path

from make import frequencies, mistakes, rotation, rules, schemas
from make.book import save, text

VERSION = 1
HERE = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("posenc", help="the built command, whose reading of configurations is compared")
    parser.add_argument("--check", action="store_true", help="write nothing: exit 1 where a file differs")
    given = parser.parse_args()
    files = [
        frequencies.make(given.posenc),
        rotation.make_cos_sin(),
        rotation.make_rotate(),
        rotation.make_model(given.posenc),
        rotation.make_rekey(),
        rules.make_positions(),
        rules.make_bias(),
        rules.make_mask(),
        rules.make_scores(),
        rules.make_added(),
    ]
    named: set[str] = set()
    wanted = {HERE / "mistakes.json": json.dumps(mistakes.document(VERSION), ensure_ascii=False, indent=1) + "\n"}
    wanted |= {HERE / "schemas" / name: content for name, content in schemas.documents().items()}
    for file in files:
        document = file.json(VERSION)
        named |= {name for test in document["tests"] for name in test["mistakes"]}
        wanted[HERE / f"{file.operation}.json"] = text(document)
        print(
            f"{file.operation}: {len(document['tests'])} tests, {len(wanted[HERE / f'{file.operation}.json']) // 1000} kB"
        )
    unknown, unused = named - set(mistakes.MISTAKES), set(mistakes.MISTAKES) - named
    if unknown or unused:
        print(
            f"mistakes must be described and shown by a test, got no description of {sorted(unknown)}, no test of {sorted(unused)}"
        )
        return 1
    differing = [path.name for path, content in wanted.items() if not save(path, content, given.check)]
    if differing:
        print(("differs: " if given.check else "written: ") + ", ".join(differing))
    return 1 if given.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
