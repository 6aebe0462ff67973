"""The doctor from Python: the same findings as the command's."""

import json
import subprocess
import sys

import pytest

import posenc

YARN = {
    "model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 32768, "rope_theta": 1e6, "vocab_size": 10,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
}  # fmt: skip


def test_diff():
    other = {**YARN, "rope_theta": 1e4}
    report = posenc.diff(YARN, other)
    assert not report and not report.ok
    assert report.findings[0].code == "rope_theta" and report.findings[0].expected == "1000000"
    assert "rope_theta" in str(report) and "<table>" in report._repr_html_()
    assert posenc.diff(YARN, YARN)
    dynamic = {**YARN, "max_position_embeddings": 65536, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}
    assert posenc.diff(dynamic, engine="llama.cpp", at=131072).findings
    assert posenc.diff(YARN, log="print_info: freq_base_train = 10000.0\n").findings
    assert posenc.diff("llama-3.1-8b", YARN, engine="vllm").findings
    with pytest.raises(TypeError, match="one of"):
        posenc.diff(YARN)
    with pytest.raises(TypeError, match="one of"):
        posenc.diff(YARN, log="", command="")


def test_the_doctor_takes_words():
    report = posenc.doctor("llama-2-7b", "gibberish after 4k tokens in transformers")
    assert [each.kind for each in report.evidence] == ["model", "symptom"]
    assert report.findings[0].code == "beyond_context"
    assert report.verdict.endswith("It begins where you saw it.")


def test_doctor(tmp_path):
    config, log = tmp_path / "config.json", tmp_path / "server.log"
    config.write_text(json.dumps({**YARN, "rope_theta": 1e4}))
    log.write_text("print_info: freq_base_train = 10000.0\n")
    report = posenc.doctor(YARN, config, log, "vllm serve m --max-model-len 262144", at=131072, engine="vllm")
    assert [each.kind for each in report.evidence] == ["model", "model", "log", "command"]
    assert not report and str(report).startswith(report.verdict) and report.verdict in report._repr_html_()
    base = next(each for each in report.findings if each.code == "rope_theta" and each.where == str(config))
    assert (base.expected, base.found, base.severity) == ("1000000", "10000", "error") and base.layers == [0, 1]
    assert posenc.doctor("qwen3-8b") and posenc.doctor(posenc.model("qwen3-8b")).ok
    assert posenc.doctor("nowhere").evidence[0].kind == "unusable"
    assert posenc.doctor(b"FROM x\nPARAMETER num_ctx 8192\n").evidence[0].kind == "modelfile"
    with pytest.raises(posenc.Error, match="evidence"):
        posenc.doctor()


COMMAND = "llama-server -m x.gguf --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072"


def test_what_a_command_line_makes_of_a_model(np):
    started = posenc.read_as("qwen3-8b", command=COMMAND)
    (rope,) = started.schemes()
    assert rope.scaling == posenc.Yarn(factor=4, original_max_position_embeddings=32768)
    report = posenc.diff("qwen3-8b", command=COMMAND)
    assert report and report.findings[0].code == "rope_scaling"  # as Qwen publishes it
    assert not posenc.diff("qwen3-8b", command="llama-server -m x.gguf --rope-scale 2 -c 8192")
    told = posenc.translate("qwen3-8b", "vllm", command=COMMAND)
    assert '"yarn"' in told.target and "131072" in told.target and "read back" in str(told)
    with pytest.raises(posenc.Error, match="must be a number, got 128k"):
        posenc.diff("qwen3-8b", command="llama-server -c 128k")


def test_a_model_as_an_engine_runs_it():
    config = {**YARN, "rope_scaling": {**YARN["rope_scaling"], "attn_factor": 0.5}}
    exact, served = posenc.plan(config), posenc.read_as(config, "sglang")
    assert served.plan().attention_factor == pytest.approx(exact.attention_factor / 2)
    assert any("attn_factor" in sentence for _, sentence in served.notes)
    assert served.to_dict()["groups"]
    with pytest.raises(posenc.Error, match="got one as an engine runs it"):
        str(posenc.explain(served))
    with pytest.raises(TypeError, match="an engine, a command= or settings="):
        posenc.read_as(config)


def test_lint_and_mend(tmp_path):
    config = {**YARN, "rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 8192}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    report = posenc.lint(tmp_path / "config.json")
    said = json.loads(posenc.command("lint", str(tmp_path / "config.json"), "--json").stdout)
    assert [f["code"] for f in said["findings"]] == [f.code for f in report.findings]
    assert any(finding.code == "factor_missing" for finding in report.findings)
    mended, findings = posenc.mend(config)
    assert mended["rope_scaling"]["factor"] == 4 and findings


def test_translate_and_extend():
    assert "yarn" in posenc.translate(YARN, "vllm").target
    plan = posenc.extend("qwen2.5-7b" if "qwen2.5-7b" in {m["name"] for m in posenc.bundled_models()} else YARN, 131072)
    assert plan.recommended and plan.options
    with pytest.raises(posenc.Error, match="engine"):
        posenc.translate(YARN, "nothing")
    assert {"vllm", "llama.cpp"} <= {engine["name"] for engine in posenc.engines()}
    assert posenc.bundled_config("llama-3.1-8b")["rope_theta"] == 500000


def test_identify(np, rng):
    plan = posenc.plan(posenc.Rope(theta=5e5, pairing="interleaved"), head_dim=32)
    q = rng.standard_normal((4, 64, 32))
    found = posenc.identify(plan.rotate(q), before=q)
    assert found.verdict == "rotation" and found.pairing == "interleaved"
    same = np.repeat(rng.standard_normal((4, 1, 32)), 128, axis=1)
    assert posenc.identify(plan.rotate(same), repeated=True).pairing == "interleaved"


def test_identify_beside_a_model(np, rng):
    model = posenc.model("llama-3.1-8b")
    q = rng.standard_normal((4, 64, 128))
    assert not posenc.identify(model.plan().rotate(q), before=q, model=model).beside_model
    other = posenc.plan(posenc.Rope(theta=1e4), head_dim=128)
    assert posenc.identify(other.rotate(q), before=q, model=model).beside_model


def test_identify_tables(np):
    cos, sin = posenc.plan(posenc.Rope(theta=5e5), head_dim=64).cos_sin(seq=64, dtype="float32")
    table = posenc.identify_table(cos, sin)
    assert table.columns == "concatenated" and table.base == pytest.approx(5e5, rel=1e-3)
    waves = posenc.plan(posenc.Sinusoidal(), width=64).position_vectors(seq=64, dtype="float64")
    assert posenc.identify_vectors(waves).sinusoidal
    assert not posenc.identify_vectors(np.random.default_rng(1).standard_normal((64, 64))).sinusoidal


def test_what_an_adapter_was_trained_with():
    settings = "model: base\nrope_scaling: linear\ncutoff_len: 131072\n"
    assert posenc.diff(YARN, settings=settings).findings


def test_positions_of_an_engine(np):
    mask = [[0, 0, 1, 1, 1]]
    expected = posenc.positions.from_mask(mask)
    keep = np.array(mask, np.uint8)
    assert posenc.check_positions([[0, 0, 0, 1, 2]], expected, keep=keep)
    wrong = posenc.check_positions([[0, 1, 2, 3, 4]], expected, keep=keep)
    assert not wrong and wrong.findings


def test_claims_and_precision():
    assert posenc.verify("4b").rows[0].agrees
    report = posenc.precision("llama-3.1-8b", at=8192)
    assert report.groups[0].engines[0].angles and "Hugging Face" in str(report)


def test_the_command():
    said = subprocess.run([sys.executable, "-m", "posenc", "--version"], capture_output=True, text=True)
    assert said.stdout == f"posenc {posenc.__version__}\n"
    assert posenc.command("--help").returncode == 0
    assert "posenc" in posenc.command("rotate").stderr
    with pytest.raises(posenc.Error, match="there is no such file or folder"):
        posenc.command("explain", "/nowhere", check=True)
