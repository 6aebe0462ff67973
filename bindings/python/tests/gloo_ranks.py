"""Processes that are the ranks of a gloo group: forked from one that has read torch, so that a test of eight costs no eight imports."""

import multiprocessing
import os
import signal
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

import posenc

_starting = multiprocessing.get_context("forkserver")
_read_once = ["torch", "torch.distributed", "posenc.distributed_torch", "gloo_ranks"]


def preload(*modules):
    """What ranks need not read each for itself, where none was started yet."""
    _read_once.extend(each for each in modules if each not in _read_once)
    _starting.set_forkserver_preload(_read_once)


preload()


def _one(target, rank, ranks, place, seconds, failures, dying, more):
    torch.set_num_threads(1)
    store = dist.FileStore(str(place), ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=seconds))
    try:
        for failure in target(rank, ranks, *more) or ():
            failures.put(f"rank {rank} of {ranks}: {failure}"[:2000])
        if dying:
            os._exit(0)  # a group cannot be taken down without the one that is gone
        dist.destroy_process_group()
    except Exception as error:
        failures.put(f"rank {rank} of {ranks}: {type(error).__name__}: {error}"[:2000])
        raise


def failures_of(target, ranks, *more, seconds=60, within=300, dying=()):
    """What target(rank, ranks, *more), which may yield sentences, says of each rank. Ranks of `dying` are expected to end by
    SIGKILL; a rank that has not ended `within` seconds is one failure more."""
    failures = _starting.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        started = [
            _starting.Process(
                target=_one, args=(target, rank, ranks, Path(folder) / "ranks", seconds, failures, dying, more)
            )
            for rank in range(ranks)
        ]
        for each in started:
            each.start()
        last, said = time.monotonic() + within, []
        while any(each.is_alive() for each in started) and time.monotonic() < last:
            while not failures.empty():
                said.append(failures.get())
            time.sleep(0.01)
        for rank, each in enumerate(started):
            if each.is_alive():
                said.append(f"rank {rank} of {ranks} has not ended in {within} s")
                each.kill()
            each.join()
            expected = -signal.SIGKILL if rank in dying else 0
            if each.exitcode != expected and not said:
                said.append(f"rank {rank} of {ranks} ended with {each.exitcode}")
        while not failures.empty():
            said.append(failures.get())
    return said


def mesh_of(ring, heads, seconds=60):
    """A mesh of ring · heads ranks whose groups have a timeout: those of init_device_mesh have torch's 30 minutes, whatever
    init_process_group was told."""
    ranks = torch.arange(ring * heads).view(ring, heads)
    groups = []
    for lists in (ranks.T.tolist(), ranks.tolist()):
        made = [dist.new_group(each, timeout=timedelta(seconds=seconds)) for each in lists]
        groups.append(next(each for each, held in zip(made, lists, strict=True) if dist.get_rank() in held))
    return DeviceMesh.from_group(groups, "cpu", mesh=ranks, mesh_dim_names=("ring", "heads"))


def die():
    """As a rank does that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def refusal(call):
    """The sentence of the posenc.Error that a call raises; None where it goes through."""
    try:
        call()
    except posenc.Error as error:
        return str(error)
    return None
