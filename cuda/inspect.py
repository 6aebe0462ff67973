#!/usr/bin/env python3
"""inspect.py CUOBJDUMP BINARY: registers, stack, instructions and loads of 16 bytes of each kernel, by architecture.

Exits 1 where a kernel keeps anything on a stack, takes more than 128 registers, or lacks the vectors that it is for.
"""

import re
import subprocess
import sys


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kernels(cuobjdump, binary):
    """(architecture, mangled name) -> {"registers", "stack", "instructions", "vectors"}"""
    found, key, arch = {}, None, ""
    for line in printed(cuobjdump, "-sass", "-res-usage", binary).splitlines():
        if match := re.search(r"arch = (sm_\d+)", line):
            arch = match[1]
        elif match := re.search(r"Function\s*:?\s*(\S+?):?$", line):
            key = (arch, match[1])
            found.setdefault(key, {"instructions": 0, "loads": 0, "stores": 0, "registers": 0, "stack": 0})
        elif match := re.search(r"REG:(\d+) STACK:(\d+).*LOCAL:(\d+)", line):
            found[key] |= {"registers": int(match[1]), "stack": int(match[2]) + int(match[3])}
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.]+)", line):
            one = found[key]
            one["instructions"] += 1
            one["loads"] += match[1].startswith("LDG.E.128")
            one["stores"] += match[1].startswith("STG.E.128")
            one["stack"] += match[1].startswith(("LDL", "STL"))
    return found


TEXTS = ("halves", "neighbours", "by elements", "special")
# What is loaded and stored by 16 bytes, at least.
VECTORS = {"halves": (2, 2), "neighbours": (2, 2), "sum": (1, 1), "bias": (0, 1)}


def name_of(mangled):
    """("Half, halves", "halves") of a kernel of ours, else None"""
    if not (
        match := re.search(
            r"\d(rotate|sum|bias|part|parts)_kernel(?:INS0_\d+(\w+?)E(?:LNS1_4TextE(\d)E)?E)?E", mangled
        )
    ):
        return None
    kind = TEXTS[int(match[3])] if match[3] else match[1]
    return ", ".join(word for word in (match[2], kind) if word), kind


def main():
    wrong = []
    print(f"{'':8}{'kernel':34}{'registers':>10}{'stack':>7}{'instructions':>14}{'loads of 16 B':>15}{'stores':>8}")
    for (arch, mangled), one in sorted(kernels(*sys.argv[1:3]).items()):
        if not (known := name_of(mangled)):
            continue
        name, kind = known
        print(
            f"{arch:8}{name:34}{one['registers']:10}{one['stack']:7}{one['instructions']:14}"
            f"{one['loads']:15}{one['stores']:8}"
        )
        loads, stores = VECTORS.get(kind, (0, 0))
        if one["stack"] or one["registers"] > 128 or one["loads"] < loads or one["stores"] < stores:
            wrong.append(f"{arch} {name}")
    if wrong:
        sys.exit("inspect.py: on a stack, above 128 registers, or without vectors: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
