"""reference.py OUT: the API reference as pages, OUT/posenc.html the first, by pdoc. What pdoc warns of is an error.

What the extension module has comes from its stubs, which have the signatures; what Python adds to its classes, from these.
"""

import __future__

import importlib.util
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pdoc

import posenc
import posenc.positions
import posenc.values


def stubs():
    """_posenc.pyi as a module."""
    path = Path(posenc.__file__).parent / "_posenc.pyi"
    module = ModuleType("posenc._posenc")
    # A stub may name a class above its definition.
    exec(compile(path.read_text(), path, "exec", flags=__future__.annotations.compiler_flag), vars(module))
    return module


def from_stub(stub, real, module: str):
    """The stub of a class or function under its public module, with what Python added to it."""
    stub.__module__ = module
    if isinstance(real, type):
        for name, value in vars(real).items():
            if name not in vars(stub) and not name.startswith("_"):
                setattr(stub, name, value)
    return stub


def main() -> None:
    warnings.simplefilter("error")
    written = stubs()
    names = {real: name for name, real in vars(posenc._posenc).items() if callable(real) and hasattr(written, name)}
    for module in (posenc._posenc, posenc, posenc.positions):
        for name, value in vars(written).items():  # what signatures name
            vars(module).setdefault(name, value)
    for module in (posenc, posenc.positions):
        for name in module.__all__:
            real = getattr(module, name)
            setattr(module, name, real)  # where it was only to be had by asking
            if real in names:
                setattr(module, name, from_stub(getattr(written, names[real]), real, module.__name__))
    pages = ["posenc"]  # with what __all__ names, positions too
    if importlib.util.find_spec("torch"):
        pages += ["posenc.torch", "posenc.serving"]
        if importlib.util.find_spec("transformers"):
            pages.append("posenc.hf")
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text=f"posenc {posenc.__version__}")
    pdoc.pdoc(*pages, output_directory=Path(sys.argv[1]))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # nanobind would tell that pdoc keeps its classes
