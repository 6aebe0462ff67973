"""What the command prints with --json, against docs/schemas."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

root = Path(__file__).parents[3]
schemas = {path.name: json.loads(path.read_text()) for path in (root / "docs/schemas").glob("*.schema.json")}
reports = sorted((root / "tests/data/reports/doctor").iterdir())
models = sorted(path.stem for path in (root / "models").glob("*.json"))


def printed(*words):
    made = subprocess.run(
        [sys.executable, "-m", "posenc", *words], capture_output=True, text=True, check=False, cwd=root
    )
    assert made.returncode in (0, 1), made.stderr
    return made.stdout


def check(name, text):
    schema = schemas[f"{name}.schema.json"]
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.parametrize("name", sorted(schemas))
def test_the_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schemas[name])


def test_lint_of_all_bundled_models():
    check("lint", printed("lint", *models, "--json"))


def test_each_line_of_a_fleet():
    for line in printed("lint", *models, "--jsonl").splitlines():
        check("lint-line", line)


@pytest.mark.parametrize("words", [("qwen3-8b", "llama-3.1-8b"), ("gpt-oss-20b", "--engines", "all")], ids=str)
def test_diff(words):
    check("diff", printed("diff", *words, "--json"))


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
