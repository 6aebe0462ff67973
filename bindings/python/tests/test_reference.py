"""What is public has a sentence that says what it is."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import posenc


def modules():
    """Those whose names are public, as far as they can be imported here."""
    yield posenc
    for name in ("positions", "values", "torch", "hf"):
        try:
            yield importlib.import_module(f"posenc.{name}")
        except ImportError:
            continue


def public():
    """(name, what it is) of every public module, function, class and member of a class."""
    for module in modules():
        yield module.__name__, module
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                yield from (
                    (f"{module.__name__}.{name}.{member}", inspect.getattr_static(value, member))
                    for member in vars(value)
                    if not member.startswith("_")
                )


@pytest.mark.parametrize(("name", "value"), [pytest.param(*each, id=each[0]) for each in public()])
def test_what_is_public_has_a_sentence(name, value):
    if value is None or isinstance(value, (str, int, tuple)):  # kind and name of a scheme's class, defaults of fields
        return
    value = getattr(value, "__func__", value)
    said = (value.__doc__ or "").strip()
    if type(value).__name__ in ("nb_method", "nb_func"):
        said = said.partition("\n\n")[2]  # behind the signature
    assert said, f"{name} has no docstring"


def test_the_reference_has_signatures_and_no_warnings(tmp_path):
    pytest.importorskip("pdoc")
    script = Path(__file__).resolve().parents[3] / "cmake" / "reference" / "python.py"
    made = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert made.returncode == 0 and not made.stderr, made.stderr
    page = (tmp_path / "posenc.html").read_text()
    assert "(unknown)" not in page and 'id="Plan.rotate_"' in page
