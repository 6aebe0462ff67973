#!/usr/bin/env python3
"""Queries and keys of a few heads of a real model on a sentence, small enough for the playground's panel `heads`.

  evidence/lab/pack_heads.py MODEL.gguf      writes web/src/assets/heads.json and heads.bin (needs: pip install numpy gguf)

`posenc lab dump` gives them unrotated, in the GGUF's order of channels, whose rotated pairs are neighbours. A number is kept in
8 bits, times a power of two for each channel, which moves a logit by up to 0.4 and a weight by up to 0.07.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import gguf
import numpy

ROOT = Path(__file__).resolve().parents[2]
POSENC = ROOT / "build/release/posenc"
ASSETS = ROOT / "web/src/assets/heads"
TEXT = (
    "When the old man came home, the dog ran to the door and barked, because the old man always had a bone in his coat."
    " Today the old man had no bone, and the dog went to sleep by the door."
)
SECOND = " Today"  # where the second sentence begins
# Found over all 270 heads of SmolLM2-135M on this text: the largest share of weight on the token before, on the first token, and
# on the token that followed when the same one stood there before.
HEADS = {
    (16, 0): "looks at the token before",
    (18, 8): "rests on the first token, a sink",
    (17, 5): "looks at what followed last time",
    (5, 6): "looks at the same token last time",
}


def posenc(*arguments):
    return subprocess.run([POSENC, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def words_of(model, ids):
    reader = gguf.GGUFReader(model)
    field = reader.fields["tokenizer.ggml.tokens"]
    return [bytes(field.parts[field.data[i]]).decode().replace("Ġ", " ").replace("Ċ", "\n") for i in ids]


def packed(numbers):
    """[token][channel] -> each channel's power of two, and whole numbers of 8 bits."""
    powers = numpy.ceil(numpy.log2(abs(numbers).max(0) / 127)).astype(int)
    whole = numpy.clip(numpy.rint(numbers / 2.0**powers), -127, 127).astype(numpy.int8)
    return powers.tolist(), whole.tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    model = parser.parse_args().model
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text(TEXT)
        words = words_of(model, json.loads(posenc("lab", "tokens", model, text, "--json"))["tokens"])
        heads, numbers = [], b""
        for (layer, head), does in HEADS.items():
            dump = Path(folder, "dump.npy")
            powers, of_layer = {}, 0
            for what, more in (("q", ["--queries"]), ("k", [])):
                posenc("lab", "dump", model, text, "--layer", layer, "--before", dump, *more)
                every = numpy.load(dump)
                of_layer = of_layer or len(every)  # several heads of queries share one of keys
                powers[what], whole = packed(every[head * len(every) // of_layer])
                numbers += whole
            heads.append({"layer": layer, "head": head, "does": does, "powers": powers})
    explained = json.loads(posenc("explain", model, "--json"))
    group = explained["groups"][0]
    told = {
        "model": "SmolLM2-135M",
        "trained": explained["context"],
        "rope_theta": group["scheme"]["rope_theta"],
        "head_dim": group["head_dim"],
        "second": words.index(SECOND),
        "words": words,
        "heads": heads,
    }
    ASSETS.with_suffix(".json").write_text(json.dumps(told, separators=(",", ":"), ensure_ascii=False) + "\n")
    ASSETS.with_suffix(".bin").write_bytes(numbers)


main()
