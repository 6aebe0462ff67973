"""posenc.agree: what a trainer and an engine compute, from settings, lines, live modules and frequencies."""

import json
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

import posenc
import posenc.tools

np = pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[3]
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 40960, "rope_theta": 1000000}
VERL = {
    "actor_rollout_ref": {"model": {"path": "Qwen/Qwen3-8B", "override_config": {"rope_scaling": YARN}}},
    "data": {"max_prompt_length": 1024, "max_response_length": 60000},
}
NEMO = """
policy:
  model_name: Qwen/Qwen3-8B
  max_total_sequence_length: 65536
  hf_config_overrides:
    rope_scaling:
      rope_type: yarn
      factor: 2.0
      original_max_position_embeddings: 40960
      rope_theta: 1000000
"""
SLIME = "python3 train.py --use-rotary-position-embeddings --rotary-base {} --hf-checkpoint /root/Qwen3-8B --seq-length 8192"
TITAN = '[model]\nname = "qwen3"\nflavor = "8B"\n[training]\nseq_len = 8192\n'
VLLM = "vllm serve Qwen/Qwen3-8B --max-model-len {}"
SCALED = VLLM.format(65536) + " --hf-overrides '" + json.dumps({"rope_parameters": YARN}) + "'"


def severe(report):
    return {each.code for each in report.findings if each.severity != "note"}


@pytest.mark.parametrize(
    ("trainer", "engine", "agrees"),
    [
        (VERL, SCALED, True),
        (VERL, VLLM.format(40960), False),
        (NEMO, SCALED, True),
        (NEMO, "sglang", False),
        (SLIME.format(1000000), VLLM.format(8192), True),
        (SLIME.format(10000), VLLM.format(8192), False),
        (TITAN, VLLM.format(8192), True),
        (TITAN, "python -m sglang.launch_server --model-path Qwen/Qwen3-8B", True),
        (TITAN, SCALED, False),
        ("python -m verl.trainer.main_ppo data.max_prompt_length=1024 data.max_response_length=8192", "vllm", True),
    ],
    ids=str,
)
def test_settings_beside_a_line(trainer, engine, agrees):
    report = posenc.agree(trainer, engine, model="qwen3-8b")
    assert bool(report) == agrees, report
    assert ("Both compute the same positions" in report.verdict) == agrees
    assert agrees or "rope_scaling" in severe(report) or "rope_theta" in severe(report)


def test_settings_in_a_file(tmp_path):
    (tmp_path / "grpo.yaml").write_text(NEMO)
    assert posenc.agree(tmp_path / "grpo.yaml", SCALED, model="qwen3-8b")
    assert not posenc.agree(str(tmp_path / "grpo.yaml"), "vllm", model="qwen3-8b")
    (tmp_path / "ppo.json").write_text(json.dumps(VERL))
    assert posenc.agree(tmp_path / "ppo.json", SCALED, model="qwen3-8b")
    (tmp_path / "config.json").write_text(json.dumps(posenc.tools.bundled_config("qwen3-8b")))
    assert posenc.agree(tmp_path / "config.json", VLLM.format(8192))


def test_an_override_without_the_base_does_not_agree_with_anything():
    lost = NEMO.replace("      rope_theta: 1000000\n", "")
    assert severe(posenc.agree(lost, SCALED, model="qwen3-8b")) == {"theta_missing"}


def test_frequencies_beside_settings():
    exact = posenc.plan("qwen3-8b").inv_freq
    assert posenc.agree(TITAN, exact.astype(np.float32), model="qwen3-8b")
    report = posenc.agree(TITAN, exact / 2, model="qwen3-8b")
    assert not report and report.findings[0].layers == list(range(36))
    assert report.cannot_tell == [
        "frequencies alone do not show what cos and sin are multiplied by",
        "frequencies alone do not show which channels make a pair",
    ]
    assert severe(posenc.agree(TITAN, exact[:32], model="qwen3-8b")) == {"rotary_dim"}
    assert posenc.agree(exact, exact.astype(np.float32)) and not posenc.agree(exact, exact * 1.01)


def test_layers_that_rotate_differently():
    m = posenc.model("gemma-3-4b")
    kinds = [m.plan(layer=layer).inv_freq for layer in (0, 5)]
    assert posenc.agree("gemma-3-4b", kinds)
    report = posenc.agree("gemma-3-4b", kinds[:1])
    assert not report and 5 in report.findings[0].layers and 0 not in report.findings[0].layers


def test_tables():
    plan = posenc.model("llama-3.1-8b").plan()
    cos, sin = (each.reshape(4096, -1).astype(np.float32) for each in plan.cos_sin(np.arange(4096), halves=True))
    assert posenc.agree("llama-3.1-8b", (cos, sin), at=4096)
    assert not posenc.agree("llama-2-7b", (cos, sin), at=4096)
    assert not posenc.agree("llama-3.1-8b", (cos * 1.2, sin * 1.2), at=4096)
    assert severe(posenc.agree("llama-3.1-8b", (sin, cos), at=4096)) == {"exchanged"}


def test_what_is_no_side():
    with pytest.raises(posenc.Error, match="pass model="):
        posenc.agree(TITAN, VLLM.format(8192))
    with pytest.raises(posenc.Error, match="a side must be"):
        posenc.agree("hello there, world", "vllm", model="qwen3-8b")


def test_a_model_as_it_is_trained():
    trained = posenc.read_as("qwen3-8b", settings=NEMO)
    assert trained.plan(length=65536).attention_factor == pytest.approx(1 + 0.1 * np.log(2))
    again = pickle.loads(pickle.dumps(trained))
    assert again.plan(length=65536) == trained.plan(length=65536)


def test_the_example_starts_what_agrees(tmp_path):
    (tmp_path / "grpo.yaml").write_text(NEMO)
    example = [sys.executable, ROOT / "examples/agree_at_start.py", "qwen3-8b", tmp_path / "grpo.yaml"]
    good, bad = (
        subprocess.run([*example, line], capture_output=True, text=True) for line in (SCALED, VLLM.format(8192))
    )
    assert good.returncode == 0 and "Both compute the same positions" in good.stdout, good
    assert bad.returncode == 1 and "rope_scaling" in bad.stdout, bad


def test_it_is_quick():
    start = time.perf_counter()
    posenc.agree(VERL, SCALED, model="qwen3-8b")
    assert time.perf_counter() - start < 1


def test_a_live_model_beside_a_line():
    pytest.importorskip("transformers", minversion="5")
    torch = pytest.importorskip("torch")
    from live_models import built

    model = built("llama", rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    assert posenc.agree(model, "vllm serve x --max-model-len 512")
    report = posenc.agree(model, built("llama"))
    assert not report and "a live LlamaForCausalLM" in (report.trainer, report.engine)
    assert posenc.agree(model, model.model.rotary_emb.inv_freq.clone())
    model.model.rotary_emb.inv_freq.mul_(0.5)  # as it was never configured
    assert not posenc.agree(model, "vllm serve x --max-model-len 512")
    assert posenc.agree(model, model.model.rotary_emb.inv_freq.clone())
    model.model.to(torch.bfloat16)
    assert not posenc.agree(built("llama", rope_parameters={"rope_type": "default", "rope_theta": 5e5}), model)


def test_the_rotary_module_of_an_engine():
    torch = pytest.importorskip("torch")

    class Rotary(torch.nn.Module):  # as vLLM has one
        is_neox_style, base = True, 500000.0

        def __init__(self, plan):
            super().__init__()
            cos, sin = plan.cos_sin(torch.arange(8192)[None], dtype="float32", halves=True)
            self.register_buffer("cos_sin_cache", torch.cat((cos[0], sin[0]), -1))

    rotary = Rotary(posenc.model("llama-3.1-8b").plan())
    assert posenc.agree("llama-3.1-8b", rotary, at=8192)
    assert not posenc.agree("llama-2-7b", rotary, at=4096)
    rotary.is_neox_style = False
    assert "pairing" in severe(posenc.agree("llama-3.1-8b", rotary, at=8192))
