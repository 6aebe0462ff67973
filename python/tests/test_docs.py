"""The blocks of Python in the docs run, and the code is in the form that ruff gives it."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_one_after_the_other(page, np, capsys):
    names: dict = {}
    for needs, block in re.findall(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", page.read_text(), re.S):
        if not needs or importlib.util.find_spec(needs):
            exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("notebook", sorted((ROOT / "python/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook, np, capsys):
    names: dict = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(notebook), "exec"), names)
            assert all(output["output_type"] != "error" for output in cell["outputs"])


def test_the_code_is_formatted():
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    if not ruff:
        pytest.skip("there is no ruff")
    subprocess.check_call([ruff, "check", "-q"], cwd=ROOT)
    subprocess.check_call([ruff, "format", "-q", "--check"], cwd=ROOT)
