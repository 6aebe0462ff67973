#!/usr/bin/env python3
"""Queries and keys rotated by angles that content says, by the authors' own modules on random weights, recorded in
tests/data/golden/content_angles.json with what their projections said.

  tests/peers/content_angles.py CHECKOUTS > tests/data/golden/content_angles.json

needs torch and einops. CHECKOUTS holds selective-rope, GRAPE and repo (of github.com/timurcarstensen, model-architectures and
SakanaAI) and mamba_ssm (PyPI's source package). RePo's fork of transformers is not imported: its functions are. What asks for triton is stood in for: selective RoPE's convolution and its division by the
length are torch's here, and Mamba-3 has a plain function beside its kernel.
"""

import ast
import json
import pathlib
import sys
import types

import torch
import torch.nn.functional as F

from content import module_of, numbers, random, stub

BATCH, HEADS, TOKENS, HEAD_DIM, WIDTH = 1, 2, 9, 8, 16


class ShortConvolution(torch.nn.Conv1d):
    """A causal convolution of each channel by itself, with flash-linear-attention's arguments."""

    def __init__(self, hidden_size, kernel_size, bias, activation, dtype):
        super().__init__(hidden_size, hidden_size, kernel_size, groups=hidden_size, bias=bias, dtype=dtype)
        assert activation is None

    def forward(self, x, cache=None, output_final_state=False, cu_seqlens=None):
        padded = F.pad(x.transpose(1, 2), (self.kernel_size[0] - 1, 0))
        return super().forward(padded).transpose(1, 2), None


def record(name, q, k, rotated, said, gate=None, **more):
    made = {"name": name, **more, "q": numbers(q), "k": numbers(k)}
    made |= {"said": numbers(said), "said_shape": [said.shape[2], said.shape[3]]}
    if gate is not None:
        made |= {"gate": numbers(gate), "gate_shape": [gate.shape[2], gate.shape[3]]}
    return made | {"q_f32": numbers(rotated[0]), "k_f32": numbers(rotated[1])}


def selective(rotary, name, **options):
    module = rotary.SelectiveRoPE(HEAD_DIM, WIDTH, HEADS, **options)
    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.data = 0.7 * random(*parameter.shape)
    x = random(BATCH, TOKENS, WIDTH)
    q, k = random(2, BATCH, TOKENS, HEADS, HEAD_DIM)
    rotated = module(q, k, x)[:2]
    by_head = F.normalize(x.reshape(BATCH, TOKENS, HEADS, -1), dim=-1).reshape(x.shape)
    said, _ = module.apply_conv(module.phi_proj(by_head).transpose(1, 2), False)
    if module.use_bias:
        said = said + module.phi_bias.exp()
    gate = None
    if module.use_gate:
        gate = module.phase_gate_proj(by_head).reshape(BATCH, TOKENS, HEADS, -1)
    return record(name, q, k, rotated, said, gate)


def mamba3(step, name, rope_fraction, interleaved):
    q, k = random(2, BATCH, TOKENS, HEADS, HEAD_DIM)
    angles = random(BATCH, TOKENS, 1, int(HEAD_DIM * rope_fraction) // 2)
    time = random(BATCH, TOKENS, HEADS, 1)
    state = torch.zeros(BATCH, HEADS, angles.shape[3])
    rotated = [], []
    for t in range(TOKENS):  # as it decodes
        q_t, k_t, state = step(
            q[:, t : t + 1],
            k[:, t : t + 1],
            state,
            angles[:, t].expand(-1, HEADS, -1),
            F.softplus(time[:, t, :, 0]),
            rotate_pairwise=interleaved,
        )
        rotated[0].append(q_t)
        rotated[1].append(k_t)
    both = [torch.cat(each, 1) for each in rotated]
    return record(name, q, k, both, angles, time, rope_fraction=rope_fraction, interleaved=interleaved)


def grape(module, name, of_heads):
    rotary = module.MSGRAPEContextType1(
        HEADS, HEAD_DIM, share_freq_across_heads=not of_heads, cache_dtype=torch.float32
    )
    if of_heads:
        rotary.log_freq.data = random(*rotary.log_freq.shape)
    attention = module.CausalSelfAttention.__new__(module.CausalSelfAttention)
    torch.nn.Module.__init__(attention)
    attention.omega_proj = torch.nn.Identity()
    q, k = random(2, BATCH, TOKENS, HEADS, HEAD_DIM)
    said = random(BATCH, TOKENS, HEADS if of_heads else 1)
    rotated = rotary.rotate(q, k, attention._cumulative_phase(said))
    frequencies = [float(f"{x:.9g}") for x in rotary.freq[: HEADS if of_heads else 1].flatten().tolist()]
    return record(name, q, k, rotated, said.unsqueeze(-1), frequencies=frequencies)


def functions_of(path, names):
    """These functions and methods of a file whose imports lack here, run as they stand."""
    wanted = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef) and n.name in names]
    room = {"torch": torch, "F": F}
    for each in wanted:
        each.decorator_list = []
    exec(compile(ast.Module(wanted, []), str(path), "exec"), room)
    return types.SimpleNamespace(**{name: room[name] for name in names})


def repo(file, name):
    """Of a text that reaches to positions of some hundreds, either sign."""
    module = functions_of(
        file, ("rotate_half", "apply_rotary_pos_emb", "from_positions", "dynamic_position_encoding_swigluex_multihead")
    )
    inv_freq = 500000 ** -(torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    rotary = types.SimpleNamespace(inv_freq=inv_freq, attention_scaling=1.0)
    attention = types.SimpleNamespace(pe_gen_func=lambda at: module.from_positions(rotary, at))
    for part, shape in (("gate_map", (2, WIDTH)), ("content_map", (2, WIDTH)), ("final_map", (HEADS, 2))):
        linear = torch.nn.Linear(shape[1], shape[0], bias=False)
        linear.weight.data = (10 if part == "final_map" else 1) * random(*shape)
        setattr(attention, part, linear)
    x = random(BATCH, TOKENS, WIDTH)
    q, k = random(2, BATCH, TOKENS, HEADS, HEAD_DIM)
    at, (cos, sin) = module.dynamic_position_encoding_swigluex_multihead(attention, x, None, dynamic_pe_pdrop=None)
    rotated = module.apply_rotary_pos_emb(q.transpose(1, 2), k.transpose(1, 2), cos, sin)
    said = at.reshape(BATCH, HEADS, TOKENS, 1).transpose(1, 2)
    return record(name, q, k, [each.transpose(1, 2) for each in rotated], said)


def main():
    torch.manual_seed(2026)
    checkouts = pathlib.Path(sys.argv[1])
    stub("fla")
    stub("fla.modules")
    stub("fla.modules.convolution", ShortConvolution=ShortConvolution)
    stub("fla.modules.l2norm", l2_norm=lambda x: F.normalize(x, dim=-1))
    rotary = module_of(checkouts / "selective-rope/src/selective_rope/modules/rotary.py")
    mamba = checkouts / "mamba_ssm/mamba_ssm/ops/triton/mamba3/mamba3_mimo_rotary_step.py"
    stub("mamba_ssm")
    step = module_of(mamba).apply_rotary_qk_inference_reference
    context = module_of(checkouts / "GRAPE/model/llama-mha-grape-m-ctx.py")
    records = [
        selective(rotary, "selective_rope"),
        selective(rotary, "selective_rope with a gate of heads and a bias", use_gate=True, use_bias=True),
        selective(rotary, "selective_rope with a gate of pairs", use_gate=True, gate_parametrization="gla"),
        mamba3(step, "mamba3", 0.5, True),
        mamba3(step, "mamba3 of the whole head", 1.0, True),
        mamba3(step, "mamba3 of halves", 0.5, False),
        mamba3(step, "mamba3 of the whole head in halves", 1.0, False),
        grape(context, "grape_m", False),
        grape(context, "grape_m of heads", True),
        repo(checkouts / "repo/transformers/src/transformers/models/olmo2/modeling_olmo2.py", "repo"),
    ]
    print(
        json.dumps(
            {
                "generator": "selective-rope 9d06c33, mamba_ssm 2.3.2, GRAPE 73b2231, repo 1508a73, torch "
                + torch.__version__,
                "notes": "tests/peers/content_angles.py; tensors [batch, heads, tokens, ...]",
                "batch": BATCH,
                "heads": HEADS,
                "tokens": TOKENS,
                "head_dim": HEAD_DIM,
                "records": records,
            },
            separators=(",", ":"),
        )
    )


if __name__ == "__main__":
    main()
