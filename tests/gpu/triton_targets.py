#!/usr/bin/env python3
"""triton_targets.py [CUOBJDUMP]: compiles posenc.triton's kernel for devices that are not there, as its calls would, and says what each
takes: registers, what is spilled (nothing may be), and of the bytes that a program asks memory for which share is the tensors' own.

A rotation in place reads and writes each element once, as a copy does: what it asks for besides are turns, 16 bytes a pair for each
program and one position a token, which the caches hold. Exits 1 where something is spilled, or where elements are asked for twice.
"""

import re
import subprocess
import sys
import tempfile

import torch
import triton
from triton.backends.compiler import GPUTarget

import posenc
from posenc import triton as pt
from posenc import triton_kernels

TARGETS = [
    GPUTarget("cuda", 80, 32),
    GPUTarget("cuda", 90, 32),
    GPUTarget("cuda", 100, 32),
    GPUTarget("hip", "gfx942", 64),
    GPUTarget("hip", "gfx1100", 32),
]


class Driver:
    """A device that compiles and never runs."""

    def __init__(self, target):
        self.target = target

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


def compiled(target, call):
    """What a call's launch compiles to."""
    made = []
    kernel = triton_kernels.rotate_kernel
    run = type(kernel).run
    triton.runtime.driver.set_active(Driver(target))
    kernel.device_caches.clear()  # which know devices by their number
    kernel.run = lambda *args, grid, warmup, **how: made.append(run(kernel, *args, grid=grid, warmup=True, **how))
    try:
        call()
    finally:
        del kernel.run
    return made[0]


def resources(made, cuobjdump):
    """(registers, bytes spilled)"""
    if "amdgcn" in made.asm:
        text = made.asm["amdgcn"]
        count = {name: int(number) for name, number in re.findall(r"\.(\w+):\s+(\d+)\n", text)}
        return count["vgpr_count"], 4 * (count["vgpr_spill_count"] + count["sgpr_spill_count"])
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        said = subprocess.run([cuobjdump, "-res-usage", file.name], check=True, capture_output=True, text=True)
    registers, stack, local = re.search(r"REG:(\d+) STACK:(\d+).*LOCAL:(\d+)", said.stdout + said.stderr).groups()
    return int(registers), int(stack) + int(local)


def asked_for(made):
    """Bytes that the text of a kernel asks memory for in all its threads, once through, of elements and of the rest."""
    text = made.asm["ttgir"]
    elements = rest = 0
    types = dict(re.findall(r"(%[\w#]+) = tt\.load .* : tensor<([\dx]+x!tt\.ptr<\w+>)", text))
    stored = re.findall(r"tt\.store .* : tensor<([\dx]+x!tt\.ptr<\w+>)", text)
    for tensor, of_load in [*((one, True) for one in types.values()), *((one, False) for one in stored)]:
        *shape, kind = tensor.split("x")
        count = 1
        for extent in shape:
            count *= int(extent)
        kind = re.search(r"<(\w+)>", tensor)[1]
        size = count * {"i64": 8, "i32": 4, "f32": 4, "f16": 2, "bf16": 2}[kind]
        if of_load and kind in ("i64", "i32"):
            rest += size
        else:
            elements += size
    return elements, rest


def calls():
    """(what it is called, a call, whether its share of the bytes is shown)"""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for pairing in ("halves", "interleaved"):
            plan = posenc.plan(posenc.Rope(pairing=pairing), head_dim=128, heads=32, kv_heads=8)
            for tokens in (8192, 1):
                q, k = (torch.zeros(tokens, heads, 128, dtype=dtype) for heads in (32, 8))
                ids = torch.zeros(tokens, dtype=torch.int64)
                yield (
                    f"{str(dtype)[6:]}, {pairing}, {'many tokens' if tokens > 1 else 'one token'}",
                    lambda q=q, k=k, ids=ids, plan=plan: pt.rotate_(q, k, ids, plan, layout="thd"),
                    True,
                )
    plan = posenc.plan(posenc.Rope(partial_rotary_factor=0.25), head_dim=256, heads=16, kv_heads=2)
    q, k, v = (torch.zeros(8192, heads, 256, dtype=torch.bfloat16) for heads in (16, 2, 2))
    norm = pt.Norm(torch.ones(256, dtype=torch.bfloat16), torch.ones(256, dtype=torch.bfloat16))
    pages = pt.Pages(
        *(torch.zeros(600, 16, 2, 256, dtype=torch.bfloat16) for _ in range(2)),
        v,
        slots=torch.zeros(8192, dtype=torch.int64),
    )
    yield (
        "bfloat16, a quarter, norm and pages",
        lambda: pt.rotate_(q, k, None, plan, layout="thd", norm=norm, pages=pages),
        False,
    )
    plan = posenc.plan(posenc.Rope(), head_dim=128, heads=32, kv_heads=8)
    q, k, v = (torch.zeros(8192, heads, 128, dtype=torch.bfloat16) for heads in (32, 8, 8))
    pages = pt.Pages(
        *(torch.zeros(600, 16, 8, 128, dtype=torch.bfloat16) for _ in range(2)),
        v,
        slots=torch.zeros(8192, dtype=torch.int64),
    )
    yield "bfloat16, halves, pages", lambda: pt.rotate_(q, k, None, plan, layout="thd", pages=pages), False


def main():
    cuobjdump = sys.argv[1] if len(sys.argv) > 1 else "cuobjdump"
    pt.INTERPRETED = True  # takes tensors of the CPU, which here stand for a device's
    faults = 0
    print(
        f"{'posenc.triton, Triton ' + triton.__version__:40}"
        + "".join(f"{target.arch!s:>12}" for target in TARGETS)
        + f"{'own bytes':>12}"
    )
    for name, call, shares in calls():
        row, own = "", None
        for target in TARGETS:
            made = compiled(target, call)
            registers, spilled = resources(made, cuobjdump)
            faults += spilled > 0
            row += f"{f'{registers}' if spilled == 0 else f'{registers}, {spilled} B spilled':>12}"
            if target.arch == 90 and shares:
                elements, rest = asked_for(made)
                own = elements / (elements + rest)
        print(f"{name:40}{row}{'' if own is None else f'{own:12.2f}'}", flush=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
