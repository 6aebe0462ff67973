"""What type checkers say of the package, of the code that its pages show, and of slips that they are to find."""

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import posenc

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(posenc.__file__).parent
NOTEBOOKS = sorted((ROOT / "bindings/python/notebooks").glob("*.ipynb"))
SETTINGS = ROOT / "pyproject.toml"
stubs = pytest.mark.skipif(not (PACKAGE / "_posenc.pyi").exists(), reason="the package was built without its stubs")


def page_code() -> str:
    """The blocks of docs/python.md whose packages are there, in a row."""
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", page, re.S)
    return "\n".join(code for needs, code in blocks if not needs or importlib.util.find_spec(needs))


def notebook_code(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """A folder of what is shown, a module each."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "page.py").write_text(page_code())
    for path in NOTEBOOKS:
        (folder / f"notebook_{path.stem}.py").write_text(notebook_code(path))
    return folder


@pytest.fixture(scope="session")
def mypy(tmp_path_factory):
    if not importlib.util.find_spec("mypy"):
        pytest.skip("there is no mypy")
    cache = tmp_path_factory.mktemp("mypy")

    def checked(*arguments, cwd=ROOT) -> str:
        how = ["--config-file", SETTINGS, "--cache-dir", cache, "--untyped-calls-exclude", "torch"]
        done = subprocess.run([sys.executable, "-m", "mypy", *how, *arguments], cwd=cwd, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return "" if done.returncode == 0 else done.stdout

    return checked


@pytest.fixture(scope="session")
def pyright():
    program = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if not program or not shutil.which("node"):
        pytest.skip("there is no pyright")

    def checked(folder) -> list[str]:
        done = subprocess.run(
            [program, "--pythonpath", sys.executable, "--outputjson", folder], capture_output=True, text=True
        )
        found = json.loads(done.stdout)["generalDiagnostics"]
        return [each["message"] for each in found if each["severity"] == "error"]

    return checked


@stubs
def test_mypy_takes_the_package(mypy):
    assert not mypy("-p", "posenc")


@stubs
def test_mypy_takes_what_is_shown(mypy, shown):
    assert not mypy("--strict", *sorted(shown.glob("*.py")))


@stubs
def test_pyright_takes_what_is_shown(pyright, shown):
    assert not pyright(shown)


SLIPS = {
    "posenc.Rope(thet=1e6)": "thet",
    "posenc.Rope().thetta": "thetta",
    "posenc.Rope().replace(thet=1e6)": "thet",
    "posenc.lint(m).findings[0].cude": "cude",
    "posenc.extend(m, 8).recomended": "recomended",
    "posenc.explain(m).gruops": "gruops",
    "posenc.lnit(m)": "lnit",
    "m.plan(lenght=8)": "lenght",
    "p.rotate(1.5)": "rotate",
    "posenc.plan(m, head_dim=8)": "plan",
    "posenc.plan(posenc.Rope(), layer=1)": "plan",
}
RIGHT = {
    "posenc.Rope(theta=1e6, scaling={'type': 'linear', 'factor': 2})": "Rope",
    "posenc.Rope().replace(theta=1e6)": "Rope",
    "p.rotate(np.ones((1, 2, 3, 8)))": "ndarray",
    "p.rotate(np.ones((1, 2, 3, 8)), np.ones((1, 1, 3, 8)))[1]": "ndarray",
    "posenc.attend(x, x, x, p)": "ndarray",
    "p.cos_sin(range(3))[0]": "ndarray",
    "posenc.t5_bucket(3)": "int",
    "posenc.lint(m).findings[0].layers": "list[int]",
    "posenc.identify(x, before=x).base": "float | None",
}
START = """import numpy as np
import posenc
m = posenc.model("qwen3-8b")
p = m.plan()
x = np.ones((1, 2, 3, 8))
"""


@pytest.fixture(scope="session")
def told(mypy, tmp_path_factory):
    """What mypy says of each slip and each right expression, by the line."""
    path = tmp_path_factory.mktemp("told") / "told.py"
    lines = [*SLIPS, *(f"reveal_type({code})" for code in RIGHT)]
    path.write_text(START + "\n".join(lines) + "\n")
    said: dict[str, str] = {}
    for number, text in re.findall(r"told\.py:(\d+): (.*)", mypy("--strict", path)):
        code = lines[int(number) - 1 - START.count("\n")]
        said[code] = said.get(code, "") + text
    return said


@stubs
@pytest.mark.parametrize("code", SLIPS)
def test_a_slip_is_an_error(told, code):
    assert "error" in told.get(code, "nothing") and SLIPS[code] in told[code]


@stubs
@pytest.mark.parametrize("code", RIGHT)
def test_a_result_has_its_type(told, code):
    text = told[f"reveal_type({code})"]
    assert "error" not in text and RIGHT[code] in text


# --- the stub and the binding ---------------------------------------------------------------------------------------


def written() -> dict[str, list[ast.FunctionDef]]:
    """The functions of the stub by their names, an entry for each overload."""
    found: dict[str, list[ast.FunctionDef]] = {}
    tree = ast.parse((PACKAGE / "_posenc.pyi").read_text())
    for scope in [tree, *(each for each in tree.body if isinstance(each, ast.ClassDef))]:
        for function in (each for each in scope.body if isinstance(each, ast.FunctionDef)):
            if any(ast.unparse(each).endswith(".setter") for each in function.decorator_list):
                continue
            name = f"{scope.name}.{function.name}" if isinstance(scope, ast.ClassDef) else function.name
            found.setdefault(name, []).append(function)
    return found


def parameters(signature: ast.FunctionDef) -> list[tuple[str, str | None]]:
    """Names and defaults."""
    told = signature.args
    places = [*told.posonlyargs, *told.args]
    defaults = [None] * (len(places) - len(told.defaults)) + [ast.unparse(each) for each in told.defaults]
    by_name = [
        (each.arg, value and ast.unparse(value)) for each, value in zip(told.kwonlyargs, told.kw_defaults, strict=True)
    ]
    return [*zip((each.arg for each in places), defaults, strict=True), *by_name]


def bound(name: str):
    """What nanobind knows of a function: its parameters, with their defaults."""
    real = posenc._posenc
    for part in name.split("."):
        real = vars(real)[part] if isinstance(real, type) else getattr(real, part)
    real = getattr(real, "fget", None) or getattr(real, "__func__", real)
    ((text, _doc, defaults),) = real.__nb_signature__
    for index, value in enumerate(defaults or ()):
        text = re.sub(rf"\\={index}\b|\\{index}\b", lambda _, value=value: repr(value), text)
    if text.startswith("def ("):
        text = "def _" + text[4:]
    return parameters(ast.parse(text + ": ...").body[0])


@stubs
@pytest.mark.parametrize("name", sorted(written()) if (PACKAGE / "_posenc.pyi").exists() else [])
def test_the_stub_has_the_parameters_of_the_binding(name):
    for overload in written()[name]:
        names = {parameter: default for parameter, default in bound(name)}
        for parameter, default in parameters(overload):
            assert parameter in names
            if default is not None:
                assert default == names[parameter]


@stubs
def test_no_public_function_takes_or_gives_an_object():
    text = (PACKAGE / "_posenc.pyi").read_text()
    vague = [line for line in text.splitlines() if re.search(r"(: |-> )(object|tuple|list|dict)\b(?!\[)", line)]
    assert [line for line in vague if "__eq__" not in line] == []


def exported() -> set[str]:
    """The names of every __all__ of the package."""
    names: set[str] = set(posenc.__all__)
    for path in PACKAGE.rglob("*.py"):
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__":
                names |= {part.value for part in ast.walk(each) if isinstance(part, ast.Constant)}
    return names


def public_functions():
    """The functions that pages name, and the methods of classes that they name."""
    names = exported()
    for path in sorted(PACKAGE.rglob("*.py")):
        for each in ast.parse(path.read_text()).body:
            if each.__class__ in (ast.FunctionDef, ast.ClassDef) and each.name in names:
                for function in [each] if isinstance(each, ast.FunctionDef) else each.body:
                    if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                        yield path.stem, function


def test_what_python_adds_is_annotated():
    bare = [
        f"{module}.{function.name}({each.arg})"
        for module, function in public_functions()
        for each in [*function.args.args, *function.args.kwonlyargs]
        if each.annotation is None and each.arg not in ("self", "cls")
    ]
    unsaid = [f"{module}.{function.name}" for module, function in public_functions() if function.returns is None]
    assert (bare, unsaid) == ([], [])
