#!/usr/bin/env python3
"""llama.cpp's server, out of a wheel that needs no compiler (xllamacpp), by llama-server's flags.

evidence/lab/peers/llama_server.py -m MODEL.gguf --port 8080 -c 1536
evidence/lab/peers/llama_server.py -m MODEL.gguf --port 8080 --rope-scaling yarn --rope-freq-scale 0.25 --yarn-orig-ctx 8192
"""

import argparse
import signal
import sys

import xllamacpp


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-c", "--ctx-size", type=int, default=0)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-np", "--parallel", type=int, default=1)
    parser.add_argument("--rope-scaling", choices=("none", "linear", "yarn"))
    parser.add_argument("--rope-freq-base", type=float)
    parser.add_argument("--rope-freq-scale", type=float)
    parser.add_argument("--yarn-orig-ctx", type=int)
    given = parser.parse_args()

    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.hostnames, params.port = [given.host], given.port
    params.n_ctx, params.n_parallel, params.n_gpu_layers = given.ctx_size, given.parallel, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    params.ui = params.fit_params = False
    if given.rope_scaling:
        kinds = xllamacpp.llama_rope_scaling_type
        params.rope_scaling_type = getattr(kinds, "LLAMA_ROPE_SCALING_TYPE_" + given.rope_scaling.upper())
    for name in ("rope_freq_base", "rope_freq_scale", "yarn_orig_ctx"):
        if getattr(given, name) is not None:
            setattr(params, name, getattr(given, name))
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    sys.exit(main())
