"""Cuts a state file that llama_state_seq_save_file wrote down to its first layers, and eval-callback's text to two tensors.

    python cut.py state whole.state smollm2.state 2
    python cut.py text whole.txt smollm2.eval.txt 'Qcur-0|Kcur-0'

smollm2.state is of llama.cpp 0.3.36 (the version in llama-cpp-python), SmolLM2-135M-Instruct.Q4_1.gguf and token 260 (' the')
64 times; smollm2.eval.txt of llama-eval-callback -p 'the the the the the the the the' with the same file.
"""
import re
import struct
import sys
from pathlib import Path


def state(whole, layers):
    """[magic, version, tokens] [streams, cells, (position, 1, sequence)…, transposed, layers] keys… values…, rows as they are."""
    tokens = struct.unpack_from("<I", whole, 8)[0]
    at = 12 + 4 * tokens
    streams, cells = struct.unpack_from("<II", whole, at)
    assert streams == 1
    at += 8 + 12 * cells
    transposed, count = struct.unpack_from("<II", whole, at)
    assert transposed == 0
    out, at = whole[:at] + struct.pack("<II", 0, layers), at + 8
    for _ in ("keys", "values"):
        for layer in range(count):
            row = struct.unpack_from("<Q", whole, at + 4)[0]
            if layer < layers:
                out += whole[at : at + 12 + row * cells]
            at += 12 + row * cells
    return out


def text(whole, names):
    blocks = re.split(r"(?m)^(?=common_debug_cb_eval: )", whole)
    return "".join(block for block in blocks if re.match(rf"common_debug_cb_eval: +({names}) = ", block))


if __name__ == "__main__":
    kind, source, target, what = sys.argv[1:]
    if kind == "state":
        Path(target).write_bytes(state(Path(source).read_bytes(), int(what)))
    else:
        Path(target).write_text(text(Path(source).read_text(), what))
