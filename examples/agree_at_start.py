"""A check at the start of a reinforcement learning job: the engine that generates rotates as the trainer does, or nothing starts.

python examples/agree_at_start.py qwen3-8b grpo.yaml 'vllm serve Qwen/Qwen3-8B --max-model-len 65536'

A launcher that has both at hand calls posenc.agree itself, with live modules in the place of files:

    posenc.agree(trainer_model, engine_rotary.cos_sin_cache.chunk(2, -1))
"""

import sys

import posenc


def main(model: str, trainer: str, engine: str) -> int:
    """0 where the job may start."""
    report = posenc.agree(trainer, engine, model=model)
    print(f"trainer  {report.trainer}\nengine   {report.engine}\n\n{report}")
    for missing in report.cannot_tell:
        print(f"not told: {missing}")
    return 0 if report.ok else 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
