"""The blocks of Python in the docs run, and the code is in the form that ruff gives it."""

import ast
import importlib.util
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import posenc

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_one_after_the_other(page, np, capsys):
    names: dict = {}
    for needs, block in re.findall(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", page.read_text(), re.S):
        if not needs or importlib.util.find_spec(needs):
            exec(compile(block, str(page), "exec"), names)


def shown(source: str, names: dict, capsys):
    """What a cell prints, and the value of its last line."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        body, last = [*body, last], None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return capsys.readouterr().out, value


def alike(a: str, b: str) -> bool:
    """The same words, wherever lines end, and the same numbers but for last digits, which differ between processors."""
    a, b = (" ".join(text.split()) for text in (a, b))
    number = r"[-+]?\d[\d,]*\.?\d*(?:e[-+]\d+)?"
    numbers = [[float(each.replace(",", "")) for each in re.findall(number, text)] for text in (a, b)]
    same = re.sub(number, "#", a) == re.sub(number, "#", b)
    return same and all(math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-9) for x, y in zip(*numbers, strict=True))


@pytest.mark.parametrize(
    "notebook", sorted((ROOT / "bindings/python/notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_notebooks_show_what_they_compute(notebook, np, capsys, monkeypatch):
    """Where not: bindings/python/notebooks/execute.py runs them again."""
    monkeypatch.setenv("COLUMNS", "100")
    names: dict = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed, value = shown("".join(cell["source"]), names, capsys)
        kept = {output["output_type"]: output for output in cell["outputs"]}
        assert alike("".join(kept.pop("stream", {}).get("text", [])), printed)
        result = kept.pop("execute_result", None)
        assert not kept and (result is None) == (value is None)
        if result:
            assert alike("".join(result["data"]["text/html"]), value._repr_html_())
            assert alike("".join(result["data"]["text/plain"]), repr(value))


def test_examples_of_the_site_run(tmp_path, monkeypatch):
    """The lines that docs/site/pages.py writes on the page of each scheme and scaling; the C++ is read by a compiler."""
    command = shutil.which("posenc", path=str(Path(sys.executable).parent))
    monkeypatch.setenv("POSENC", command)
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/site/pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    schemes, _ = pages.described()
    structs = pages.structs()
    snippets = [pages.snippets(scheme, structs[scheme["name"]]) for scheme in schemes]
    assert len(snippets) > 35
    for each in snippets:
        exec(each["python"], {"posenc": posenc})
    compiler = shutil.which("g++")
    if compiler:
        source = tmp_path / "all.cc"
        source.write_text(
            "#include <posenc/posenc.h>\n"
            + "".join(f"void f{i}() {{ {each['cpp']} }}\n" for i, each in enumerate(snippets))
        )
        subprocess.check_call([compiler, "-std=c++23", "-fsyntax-only", "-I", ROOT / "include", source])


def test_the_code_is_formatted():
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    if not ruff:
        pytest.skip("there is no ruff")
    subprocess.check_call([ruff, "check", "-q"], cwd=ROOT)
    subprocess.check_call([ruff, "format", "-q", "--check"], cwd=ROOT)
