#!/usr/bin/env python3
"""inspect.py CUOBJDUMP BINARY [spills]: registers, stack, instructions and loads of 16 bytes of each kernel, by architecture.

Exits 1 where a kernel keeps anything on a stack, takes more registers than it may, lacks the vectors that it is for, waits for the
kernel before it in the stream where it should not, or is not there. With the word `spills` what is on a stack is shown, not judged.
"""

import re
import subprocess
import sys

COUNTED = ("instructions", "loads", "stores", "registers", "stack", "waits", "products", "angles", "before")


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
            found.setdefault(key, dict.fromkeys(COUNTED, 0))
        elif match := re.search(r"REG:(\d+) STACK:(\d+).*LOCAL:(\d+)", line):
            found[key] |= {"registers": int(match[1]), "stack": int(match[2]) + int(match[3])}
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.]+)", line):
            one = found[key]
            one["instructions"] += 1
            one["products"] += match[1].startswith(("IMAD.HI", "DFMA"))
            one["before"] += one["waits"] == 0 and match[1].startswith(("STG", "ST."))
            if match[1].startswith("ACQBULK"):  # griddepcontrol.wait: where channels are copied, and where they rotate
                one["waits"] += 1
                one["angles"] = one["products"]
            one["loads"] += match[1].startswith(("LDG.E.128", "LD.E.128"))
            one["stores"] += match[1].startswith(("STG.E.128", "ST.E.128"))
            one["stack"] += match[1].startswith(("LDL", "STL"))
    return found


TEXTS = ("halves", "neighbours", "by elements", "special")
# What is loaded and stored by 16 bytes, at least, and the most registers: of four blocks of 128 threads on a multiprocessor, which
# rotations are, each thread may have 128 of 65,536, and of six 80.
VECTORS = {"halves": (2, 2), "neighbours": (2, 2), "sum": (1, 1), "bias": (0, 1)}
REGISTERS = {"rotate": 128}  # of others 80
EARLY_ANGLES = 32  # products of the polynomials: 4 pairs of 10 in float, 2 of 17 in double, 8 of 10 in 16 bits
TYPES = ("Half", "Double", "Single", "Bfloat16")
KERNELS = (
    len(TYPES) * (6 + 3 + 3) + 1
)  # rotations, of which two begin early as well; keys that move; sums, biases, parts of gradients; their sum


def name_of(mangled):
    """("Half, halves, early", "halves", the most registers) of a kernel of ours, else None"""
    if not (match := re.search(r"\d(rotate|rekey|sum|bias|part|parts)_kernel", mangled)):
        return None
    kind, rest = match[1], mangled[match.end() :]
    most = REGISTERS.get(kind, 80)
    number = re.match(r"INS0_\d+([A-Za-z0-9]+?)E", rest)
    moves = kind == "rekey" and "moved"
    if text := re.search(r"TextE(\d)E", rest):
        kind = TEXTS[int(text[1])]
    words = [number and next(t for t in TYPES if number[1].startswith(t)), kind, moves, "Lb1E" in rest and "early"]
    return ", ".join(word for word in words if word), kind, most


def main():
    wrong, count, archs = [], 0, set()
    may_spill = sys.argv[3:] == ["spills"]
    print(f"{'':8}{'kernel':34}{'registers':>10}{'stack':>7}{'instructions':>14}{'loads of 16 B':>15}{'stores':>8}")
    for (arch, mangled), one in sorted(kernels(*sys.argv[1:3]).items()):
        if not (known := name_of(mangled)):
            continue
        name, kind, most = known
        count += 1
        archs.add(arch)
        print(
            f"{arch:8}{name:34}{one['registers']:10}{one['stack']:7}{one['instructions']:14}"
            f"{one['loads']:15}{one['stores']:8}"
        )
        loads, stores = VECTORS.get(kind, (0, 0))
        spills = one["stack"] > 0 and not may_spill
        if spills or one["registers"] > most or one["loads"] < loads or one["stores"] < stores:
            wrong.append(f"{arch} {name}")
        # One that begins early has made its angles before it waits, and stored nothing; before sm_90 none can.
        early = "early" in name and arch != "sm_80"
        if (one["waits"] > 0) != early or (early and (one["angles"] < EARLY_ANGLES or one["before"] > 0)):
            wrong.append(f"{arch} {name}: waits {one['waits']} times, {one['angles']} products before")
    if wrong:
        sys.exit(
            "inspect.py: on a stack, of too many registers, without vectors, or waiting too early: " + "; ".join(wrong)
        )
    if not archs or count != KERNELS * len(archs):
        sys.exit(f"inspect.py: {count} kernels for {len(archs)} architectures, not {KERNELS} for each")


if __name__ == "__main__":
    main()
