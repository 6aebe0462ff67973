"""Kills ranks of posenc.distributed.attend, as often as asked for, and counts how often every other rank said so in time.

    python bindings/python/tests/live_kills.py 100

Each run takes a strategy, 2 to 4 ranks, who dies and when by its number: SIGKILL comes from a timer, so that it falls anywhere in a
forward pass, a backward pass or between them. The others stay alive after their error: none is helped by one that ends.
"""

import os
import sys
import threading
import time

import torch
from gloo_ranks import die, failures_of, mesh_of, refusal

import posenc
from posenc import distributed

SECONDS, SLACK = 4, 3  # the group's timeout, and what a busy machine may take beside it
STRATEGIES = ("ring", "gather", "heads", "ring+heads")


def steps(rank, ranks, how, victim, delay):
    """Attends forward and back until there is an error."""
    group = mesh_of(2, 2, SECONDS) if how == "ring+heads" else None
    shares = distributed.layout("zigzag", 256, ranks)
    plan = posenc.plan(posenc.Rope(), head_dim=32, heads=8, kv_heads=4)
    q, k = (torch.randn(1, n, shares.size(rank), 32, requires_grad=True) for n in (8, 4))

    def forever():
        while True:
            distributed.attend(q, k, k, shares, plan, how=how, group=group).sum().backward()

    distributed.attend(q, k, k, shares, plan, how=how, group=group)
    start = time.monotonic()
    if rank == victim:
        threading.Timer(delay, die).start()
    said, took = refusal(forever), time.monotonic() - start - delay
    if said is None or "every rank must answer within the group's timeout" not in said:
        yield f"{how}: {said}"
    if took > SECONDS + SLACK:
        yield f"{how}: told {took:.1f} s after the end of rank {victim}"
    time.sleep(max(0.0, SECONDS + SLACK + 1 - took))


def main(runs):
    """How many of the runs failed."""
    bad = 0
    for run in range(runs):
        how = STRATEGIES[run % 4]
        ranks = 4 if how == "ring+heads" else 2 + run // 4 % 3
        victim, delay = run % ranks, 0.002 * (7 * run % 50)
        said = failures_of(steps, ranks, how, victim, delay, seconds=SECONDS, within=60, dying=(victim,))
        bad += bool(said)
        print(
            f"{run + 1} of {runs}: {how}, {ranks} ranks, {victim} dies after {delay:.3f} s: {said or 'well'}",
            flush=True,
        )
    print(f"{runs - bad} of {runs}: every other rank said so within {SECONDS} s, and {SLACK} s for a busy machine")
    return bad


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100) > 0)
