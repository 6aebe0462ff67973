#!/usr/bin/env python3
"""What frequencies and magnitudes pictures and videos have that are larger than training showed, by the code of two checkouts, recorded in
tests/data/golden/axis_scalings.json.

  tests/peers/axis_scalings.py DYPE RIFLEX > tests/data/golden/axis_scalings.json      needs torch

DYPE is a checkout of github.com/wildminder/ComfyUI-DyPE (src/base.py, src/rope.py), RIFLEX of github.com/thu-ml/RIFLEx (riflex_utils.py).
Their cos and sin are floats: angles at position 1 give the frequencies to 1e-7.
"""

import json
import math
import subprocess
import sys
import types

import torch

torch.set_default_dtype(torch.float64)


def commit(checkout):
    return subprocess.run(
        ["git", "-C", checkout, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


def plain(theta, dim):
    return [theta ** (-2 * k / dim) for k in range(dim // 2)]


def by_dype(embed, axes_dim, theta, method, grid, trained, timestep, dynamic, anisotropic, step, start):
    """The frequency and the magnitude of every pair, of cos and sin at positions 0 and 1 of each axis."""
    made = embed(
        theta,
        axes_dim,
        method=method,
        yarn_alt_scaling=anisotropic,
        dype=dynamic,
        dype_scale=step[0],
        dype_exponent=step[1],
        base_patch_grid=trained,
        dype_start_sigma=start,
    )
    made.set_timestep(timestep)
    rows, columns = grid
    y = torch.arange(rows, dtype=torch.float64).repeat_interleave(columns)
    x = torch.arange(columns, dtype=torch.float64).repeat(rows)
    still = [torch.zeros_like(y)] * (len(axes_dim) - 2)
    at = torch.stack([*still, y, x], dim=-1)
    frequency, magnitude = [], []
    for axis, (cos, sin) in enumerate(made.get_components(at, torch.float64)):
        if at[:, axis].max() == 0:
            frequency += plain(theta, axes_dim[axis])
            magnitude += [1.0] * (axes_dim[axis] // 2)
            continue
        first, second = (int((at[:, axis] == p).nonzero()[0]) for p in (0, 1))
        frequency += torch.atan2(sin[second, ::2].double(), cos[second, ::2].double()).tolist()
        magnitude += torch.hypot(cos[first, ::2].double(), sin[first, ::2].double()).tolist()
    return frequency, magnitude


def dype_records(checkout):
    # The package's own __init__ asks for ComfyUI.
    package = types.ModuleType("src")
    package.__path__ = [f"{checkout}/src"]
    sys.modules["src"] = package
    from src.base import DyPEBasePosEmbed

    flux, z_image, qwen = ([16, 56, 56], 10000), ([32, 48, 48], 256), ([16, 56, 56], 10000)
    for (axes_dim, theta), method, grid, trained, timestep, dynamic, anisotropic, step, start in [
        *(
            case
            for t in (1.0, 0.6, 0.0)
            for case in (
                (flux, "ntk", (256, 256), 64, t, True, False, (2.0, 2.0), 1.0),
                (flux, "yarn", (256, 256), 64, t, True, False, (2.0, 2.0), 1.0),
                (flux, "vision_yarn", (256, 128), 64, t, True, False, (2.0, 2.0), 1.0),
                (z_image, "vision_yarn", (128, 192), 64, t, True, False, (1.5, 1.0), 0.8),
                (z_image, "yarn", (128, 192), 64, t, True, True, (2.0, 2.0), 1.0),
            )
        ),
        (flux, "ntk", (256, 128), 64, 1.0, False, False, (2.0, 2.0), 1.0),
        (flux, "yarn", (128, 128), 64, 1.0, False, False, (2.0, 2.0), 1.0),
        (flux, "yarn", (160, 96), 64, 1.0, False, True, (2.0, 2.0), 1.0),
        (qwen, "yarn", (250, 166), 83, 0.5, True, False, (2.0, 2.0), 1.0),
        (z_image, "ntk", (100, 64), 64, 0.3, True, False, (2.0, 2.0), 1.0),
    ]:
        each = [max(1.0, n / trained) for n in grid]
        still = [1.0] * (len(axes_dim) - 2)
        own = method == "vision_yarn" or anisotropic
        fields = {"axis_scaling": method, "axis_factor": still + (each if own else [max(each)] * 2)}
        if method != "ntk":
            fields["axis_length"] = [0.0] * len(still) + [float(trained)] * 2
        if anisotropic:
            fields["axis_magnitude"] = still + [0.1 * math.log(s) + 1 for s in each]
        if dynamic:
            fields["timestep"] = timestep
        fields |= {"step_scale": step[0], "step_exponent": step[1]}
        if method == "vision_yarn":
            fields["start"] = start
        frequency, magnitude = by_dype(
            DyPEBasePosEmbed,
            axes_dim,
            theta,
            method,
            grid,
            (trained, trained),
            timestep,
            dynamic,
            anisotropic,
            step,
            start,
        )
        yield {
            "axes_dim": axes_dim,
            "rope_theta": theta,
            "fields": fields,
            "frequency": frequency,
            "magnitude": magnitude,
        }


def riflex_records(checkout):
    sys.path.insert(0, checkout)
    from riflex_utils import get_1d_rotary_pos_embed_riflex

    for axes_dim, theta, k, length in (
        ([16, 56, 56], 256, 4, 66),
        ([44, 42, 42], 10000, 6, 41),
        ([16, 24, 24], 10000, 2, 25),
    ):
        cos, sin = get_1d_rotary_pos_embed_riflex(
            axes_dim[0], torch.tensor([0.0, 1.0]), theta=float(theta), use_real=True, k=k, L_test=length
        )
        frequency = torch.atan2(sin[1, ::2].double(), cos[1, ::2].double()).tolist()
        for dim in axes_dim[1:]:
            frequency += plain(theta, dim)
        yield {
            "axes_dim": axes_dim,
            "rope_theta": theta,
            "fields": {"axis_scaling": "riflex", "riflex_pair": k, "riflex_length": length},
            "frequency": frequency,
            "magnitude": [1.0] * len(frequency),
        }


def main():
    dype, riflex = sys.argv[1:]
    made = {
        "generator": f"tests/peers/axis_scalings.py: wildminder/ComfyUI-DyPE {commit(dype)}, thu-ml/RIFLEx {commit(riflex)}",
        "notes": "frequency [pair] in radians per position, magnitude [pair] on cos and sin, both to 1e-7: cos and sin are floats there",
        "records": [*dype_records(dype), *riflex_records(riflex)],
    }
    json.dump(made, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
