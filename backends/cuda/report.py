#!/usr/bin/env python3
"""report.py SPEED.jsonl [PEERS.jsonl] [--json GOALS.json]: the rows of a device and of its peers as one table, and which goals they hold.

Goals are of an H100 or H200, each beside an in-place scale of as many bytes in the same run:

- 32 + 8 heads of 128 channels, 65,536 tokens, bfloat16 and float32, both pairings: 0.95 of the scale, forwards and backwards
- with keys and values to a paged cache: 0.92
- 1 to 128 tokens, in a CUDA graph: at most 1.1 of the fastest peer's time
- at every shape, work and type: before every peer that does the same work

A row that is not there is a goal that was not measured. Exit code 0 whatever is missed: a speed is no fault of the numbers.
"""

import json
import sys
from pathlib import Path

KIND = ("work", "dtype", "pairing", "tokens")
COSINES = ("1e3", "1e5", "1e6", "1e7")
CARDS = ("H100", "H200")
DECODE = (1, 2, 4, 8, 16, 32, 64, 128)
MANY = 65_536
# (what it is called, work, least share of the scale)
LIMITS = (("rotation", "rotate", 0.95), ("backwards", "transpose", 0.95), ("with the append", "append", 0.92))
DECODE_AT_MOST = 1.1


def rows_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line.startswith("{")]


def kind(row):
    return tuple(row[field] for field in KIND)


class Measured:
    def __init__(self, speed, peers):
        self.device = next((row["device"] for row in speed if "device" in row), "")
        self.ours = {kind(row): row for row in speed if "us" in row}
        self.cosines = {row["dtype"]: row["cos_error"] for row in speed if row.get("work") == "cosines"}
        self.peers = {}
        self.errors = {}  # (peer, dtype) -> row
        self.notes = []
        for row in peers:
            if "us" in row:
                self.peers.setdefault(kind(row), []).append(row)
            if "wrong" in row or "absent" in row:
                self.notes.append(row)
            if "cos_error" in row:
                self.errors.setdefault((row["peer"], row["dtype"]), row)


def text(value):
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def cosines(errors):
    return [text((errors or {}).get(position)) for position in COSINES]


def table(measured):
    """Lines of a Markdown table: who, what, microseconds, share of the scale, errors of a cosine."""
    yield "| work | type, pairing | tokens | who | µs | of the scale | cos off at 10³ | 10⁵ | 10⁶ | 10⁷ |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for key, row in measured.ours.items():
        work, dtype, pairing, tokens = key
        what = [work, f"{dtype}, {pairing}", f"{tokens:,}"]
        shown = ["posenc", text(row["us"]), f"{row['scale_us'] / row['us']:.2f}", *cosines(measured.cosines.get(dtype))]
        yield "| " + " | ".join(what + shown) + " |"
        for peer in sorted(measured.peers.get(key, ()), key=lambda one: one["us"]):
            shown = [
                peer["peer"],
                text(peer["us"]),
                f"{row['scale_us'] / peer['us']:.2f}",
                *cosines(peer.get("cos_error")),
            ]
            yield "| " + " | ".join(what + shown) + " |"


def errors_alone(measured):
    """Of peers that were not timed: what their cosines are off by."""
    timed = {(row["peer"], row["dtype"]) for rows in measured.peers.values() for row in rows}
    left = {key: row for key, row in measured.errors.items() if key not in timed}
    if not left:
        return
    yield "| peer, not timed | type | cos off at 10³ | 10⁵ | 10⁶ | 10⁷ | |"
    yield "|---|---|---|---|---|---|---|"
    for (peer, dtype), row in sorted(left.items()):
        yield f"| {peer} | {dtype} | " + " | ".join(cosines(row["cos_error"])) + f" | {row['how']} |"


def goals(measured):
    """(goal, True, False or None where there is no row, what was found)"""
    for dtype in ("bfloat16", "float32"):
        for pairing in ("halves", "interleaved"):
            for name, work, least in LIMITS:
                row = measured.ours.get((work, dtype, pairing, MANY))
                found = row and row["scale_us"] / row["us"]
                goal = f"{name}, {dtype}, {pairing}: {least} of the in-place scale"
                yield goal, found and found >= least, found and f"{found:.3f}"
    for key, row in measured.ours.items():
        work, dtype, pairing, tokens = key
        rivals = [peer for peer in measured.peers.get(key, ()) if not peer["peer"].startswith("posenc")]
        if not rivals:
            continue
        fastest = min(rivals, key=lambda one: one["us"])
        ratio, ahead = row["us"] / fastest["us"], f"{work}, {dtype}, {pairing}, {tokens:,} tokens"
        found = f"{ratio:.2f} of {fastest['peer']}'s {fastest['us']:.3g} µs"
        if work == "rotate" and tokens in DECODE:
            yield f"{ahead}: at most {DECODE_AT_MOST} of the fastest peer", ratio <= DECODE_AT_MOST, found
        else:
            yield f"{ahead}: before every peer", ratio <= 1, found
    if not any(key[0] == "rotate" and key[3] in DECODE for key in measured.peers):
        yield f"1 to 128 tokens: at most {DECODE_AT_MOST} of the fastest peer", None, None


def main(words):
    to = words.index("--json") if "--json" in words else len(words)
    paths, json_path = words[:to], words[to + 1 :]
    if not 1 <= len(paths) <= 2:
        sys.exit(__doc__.splitlines()[0])
    measured = Measured(rows_of(paths[0]), rows_of(paths[1]) if len(paths) > 1 else [])
    print(f"device: {measured.device}\n")
    print("\n".join(table(measured)), "\n", sep="")
    alone = "\n".join(errors_alone(measured))
    print(alone, end="\n\n" if alone else "")
    for row in measured.notes:
        said = f"not timed: {row['absent']}" if "absent" in row else f"WRONG by {row['wrong']:.3g}, not timed"
        print(f"{row['peer']}{', ' + row['work'] if 'work' in row else ''}: {said}")
    judged = any(card in measured.device for card in CARDS)
    if not judged:
        print(f"goals: are of an H100 or H200, not of this device ({measured.device})")
    made, counts = [], {"held": 0, "missed": 0, "not measured": 0}
    for goal, holds, found in goals(measured):
        verdict = "not measured" if holds is None else "held" if holds else "missed"
        made.append({"goal": goal, "verdict": verdict if judged else "not judged", "found": found})
        counts[verdict] += 1
        if judged:
            print(f"goal {verdict:13}{goal}" + (f": {found}" if found else ""))
    if judged:
        print("goals: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if json_path:
        Path(json_path[0]).write_text(json.dumps({"device": measured.device, "goals": made}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
