#!/usr/bin/env python3
"""llama-quantize, out of a wheel that needs no compiler (cyllama), by its own words.

evidence/lab/peers/llama_quantize.py --allow-requantize IN.gguf OUT.gguf q4_k_m
"""

import argparse

import cyllama.llama.llama_cpp as llama

FILE_TYPES = {"f16": 1, "q8_0": 7, "q4_k_m": 15}  # llama.h's LLAMA_FTYPE_MOSTLY_*


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("made")
    parser.add_argument("type", choices=FILE_TYPES)
    parser.add_argument("--allow-requantize", action="store_true", help="of a model that is quantized already")
    given = parser.parse_args()
    wanted = llama.LlamaModelQuantizeParams()
    wanted.ftype, wanted.allow_requantize = FILE_TYPES[given.type], given.allow_requantize
    llama.model_quantize(given.model, given.made, wanted)


if __name__ == "__main__":
    main()
