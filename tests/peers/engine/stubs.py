"""Stands in for what an engine imports and this machine lacks: kernels, servers, metrics.

install(folder) lets every import that fails inside `folder` succeed with a module whose names are Nothing. What rotary
code needs is there in full: the engine's own files, torch and transformers.
"""

import importlib.abc
import importlib.machinery
import sys
import types


class Class(type):
    """The class of Nothing, so that the class itself can stand for a function, a decorator or a type."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __call__(cls, *args, **kwargs):
        if cls is not Nothing:
            return super().__call__(*args, **kwargs)
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else object.__new__(Nothing)

    def __or__(cls, other):
        return object

    def __ror__(cls, other):
        return object

    def __iter__(cls):
        return iter(())


class Nothing(metaclass=Class):
    def __init_subclass__(cls, **_):
        pass

    def __class_getitem__(cls, _):
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, *_):
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getitem__(self, _):
        return self

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Module(types.ModuleType):
    __path__ = []
    __file__ = "<nothing>"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder):
        self.folder = str(folder)
        self.made = set()

    def find_spec(self, name, path, target=None):
        frame = sys._getframe(1)
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        inside = frame and frame.f_code.co_filename.startswith(self.folder)
        if not inside and name.rpartition(".")[0] not in self.made:
            return None
        self.made.add(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def forgiving(function):
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            return None

    return wrapped


def install(folder):
    import torch

    sys.meta_path.append(Finder(folder))
    # Operators are registered by kernels that are not here.
    for name in ("impl", "define", "_register_fake"):
        setattr(torch.library.Library, name, forgiving(getattr(torch.library.Library, name)))
    torch.library.register_fake = lambda *_, **__: lambda function: function


def stand_in(name):
    sys.modules[name] = Module(name)
