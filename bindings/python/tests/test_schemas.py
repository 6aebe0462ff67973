"""What the command prints with --json, against docs/schemas."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import posenc

jsonschema = pytest.importorskip("jsonschema")

root = Path(__file__).parents[3]
schemas = {path.name: json.loads(path.read_text()) for path in (root / "docs/schemas").glob("*.schema.json")}
reports = sorted((root / "tests/data/reports/doctor").iterdir())
models = sorted(path.stem for path in (root / "models").glob("*.json"))
zoo = sorted(path for path in (root / "tests/data/zoo").glob("*.json") if path.name != "index.json")


def closed(schema):
    """The schema without the new keys that a later version may print: what is printed now is described."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(each) for key, each in schema.items()}
    if made.get("type") == "object" and "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def printed(*words):
    made = subprocess.run(
        [sys.executable, "-m", "posenc", *words], capture_output=True, text=True, check=False, cwd=root
    )
    assert made.returncode in (0, 1), made.stderr
    return made.stdout


def validator(name):
    return jsonschema.Draft202012Validator(closed(schemas[f"{name}.schema.json"]))


def check(name, text):
    validator(name).validate(json.loads(text))


@pytest.mark.parametrize("name", sorted(schemas))
def test_the_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schemas[name])


def test_lint_of_all_bundled_models():
    check("lint", printed("lint", *models, "--json"))


def test_each_line_of_a_fleet():
    for line in printed("lint", *models, "--jsonl").splitlines():
        check("lint-line", line)


@pytest.mark.parametrize("layout", ["zigzag:8", "ulysses:7", "sglang:4", "decode:4:block=16"])
def test_a_layout_of_ranks(layout):
    for name in models:
        check("lint", printed("lint", name, "--cp", layout, "--at", "4096", "--json"))
    for line in printed("lint", *models, "--cp", layout, "--at", "4096", "--jsonl").splitlines():
        check("lint-line", line)


def test_lines_of_a_stream(tmp_path):
    (tmp_path / "lines").write_text('gpt2\n{"model_type": "llama"\nqwen3-8b\n')
    for command in ("lint", "explain"):
        source = ("--from", str(tmp_path / "lines")) if command == "lint" else (str(tmp_path / "lines"),)
        lines = printed(command, *source, "--jsonl").splitlines()
        assert [json.loads(line)["line"] for line in lines] == [1, 2, 3]
        for line in lines:
            check(f"{command}-line", line)


@pytest.mark.parametrize("words", [("qwen3-8b", "llama-3.1-8b"), ("gpt-oss-20b", "--engines", "all")], ids=str)
def test_diff(words):
    check("diff", printed("diff", *words, "--json"))


def test_explain_of_all_bundled_models():
    asked = validator("explain")
    for name in models:
        asked.validate(posenc.model(name).to_dict())
    check("explain", printed("explain", "qwen2.5-7b-yarn4", "--at", "131072", "--json"))


@pytest.mark.parametrize("file", zoo, ids=lambda path: path.stem)
def test_explain_of_published_files(file):
    validator("explain").validate(posenc.model(file).to_dict())


def test_the_plan_of_every_scheme():
    example = {"integer": 4096, "number": 4, "numbers": [1 + r / 8 for r in range(32)], "integers": [8, 12, 12]}
    asked, made = validator("plan"), 0
    sizes = {"width": 64, "heads": 6, "head_dim": 64, "length": 128, "grid_height": 8, "grid_width": 8}
    for scheme in json.loads(printed("schemes", "--json")):
        if scheme["kind"] not in ("scheme", "scaling"):
            continue
        given = {field["name"]: example[field["kind"]] for field in scheme["fields"] if field["required"]}
        value = {"type": scheme["name"], **given}
        if scheme["kind"] == "scaling":
            value = {"type": "rope", "scaling": value}
        variants = [value] + [
            {**value, field["name"]: choice}
            for field in scheme["fields"]
            if scheme["kind"] == "scheme" and field["kind"] == "choice"
            for choice in field["choices"]
        ]
        for each in variants:
            try:
                plan = posenc.plan(each, **sizes)
            except posenc.Error:
                continue  # choices that need another field
            asked.validate(json.loads(plan.to_json()))
            made += 1
    assert made > 50


@pytest.mark.parametrize("size", ["4096x4096", "512x512", "1024x3072"])
def test_extend_of_a_picture(size):
    check("extend-picture", printed("extend", "tests/data/doctor/flux-1-dev.json", "--to", size, "--json"))


def test_extend_of_fractions():
    check("extend-picture", printed("extend", "tests/data/doctor/ltx-video.json", "--to", "257x704x1216", "--json"))


@pytest.mark.parametrize("name", models)
def test_precision_and_extend(name):
    for schema, words in [("precision", ()), ("extend", ("--to", "131072")), ("extend", ("--to", "1M", "--train"))]:
        made = subprocess.run(
            [sys.executable, "-m", "posenc", schema, name, *words, "--json"],
            capture_output=True,
            text=True,
            check=False,
            cwd=root,
        )
        if made.returncode != 2:  # a model without a rotation
            check(schema, made.stdout)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dumps")
    rng = np.random.default_rng(1)
    np.save(folder / "q.npy", rng.standard_normal((4, 128, 64), dtype=np.float32))
    np.save(folder / "noise.npy", rng.standard_normal((4, 128, 64), dtype=np.float32))
    printed("rotate", str(folder / "q.npy"), str(folder / "r.npy"), "--scheme", "rope", "--positions", "0:128")
    printed("table", str(folder / "pe.npy"), "--scheme", "sinusoidal", "--width", "64", "--positions", "0:128")
    angles = np.arange(256)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    np.save(folder / "cos.npy", np.cos(angles))
    np.save(folder / "sin.npy", np.sin(angles))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("--before", "q.npy", "--after", "r.npy"),
        ("--before", "q.npy", "--after", "r.npy", "--model", "llama-2-7b"),
        ("--before", "q.npy", "--after", "q.npy"),
        ("--before", "q.npy", "--after", "noise.npy"),
        ("--cos", "cos.npy", "--sin", "sin.npy"),
        ("--table", "pe.npy"),
        ("--table", "noise.npy"),
    ],
    ids=" ".join,
)
def test_identify(dumps, words):
    words = [str(dumps / word) if word.endswith(".npy") else word for word in words]
    made = subprocess.run(
        [sys.executable, "-m", "posenc", "identify", *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    if made.returncode != 2:
        check("identify", made.stdout)
        return
    assert "noise.npy" in words[-1], made.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("schemes",),
        ("models",),
        ("verify", "--group", "scaling"),
        ("slopes", "--heads", "12"),
        ("buckets", "--from=-300", "--to=300", "--bidirectional"),
        ("positions", "--packed", "0,3,8"),
        ("positions", "--mask", "0,0,1,1;1,1,1,1"),
        ("positions", "--grid", "2x3"),
        ("positions", "--ids", "1,151655,2", "--image_grid", "1x2x2"),
        ("link", "rope", "--m", "11"),
        ("link", "--model", "llama-3.1-8b"),
        ("bench", "rotate", "--length", "64"),
        ("bench", "attend", "--length", "64"),
    ],
    ids=" ".join,
)
def test_what_other_commands_print(words):
    check(words[0], printed(*words, "--json"))


def test_lab_base():
    check("lab-base", printed("lab", "base", "--length", "4096,8192", "--json"))


def test_every_command_that_prints_json_has_a_schema():
    """But those of lab that need a real model, and its training."""
    listed = printed("help")
    for line in listed.splitlines():
        command = line.split()[0] if line.startswith("  ") and line.strip() else ""
        if not command or command in ("posenc", "lab") or not line[2].isalpha():
            continue
        if "--json" in printed(command, "--help-all"):
            assert f"{command}.schema.json" in schemas, command


def test_bench_exactness():
    check("bench", printed("bench", "exactness", "--python", "none", "--json"))


@pytest.mark.parametrize("target", ["triton", "cuda", "pallas", "wgsl", "opencl", "c"])
def test_emit(target):
    check("emit", printed("emit", "llama-3.1-8b", "--to", target, "--json"))


@pytest.mark.parametrize("engine", ["vllm", "gguf", "ollama"])
def test_translate(engine):
    check("translate", printed("translate", "qwen3-8b", "--to", engine, "--json"))


def test_check_positions():
    check("check-positions", printed("check-positions", "0,1,2,3,4", "--cu_seqlens", "0,3,5", "--json"))


@pytest.mark.parametrize("file", reports, ids=lambda path: path.name)
def test_doctor_of_what_people_reported(file):
    made = subprocess.run(
        [sys.executable, "-m", "posenc", "doctor", file, "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    if made.returncode != 2:
        check("doctor", made.stdout)


def test_a_key_of_another_type_is_no_finding():
    schema = schemas["check-positions.schema.json"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({"findings": [{"code": 3}]})
