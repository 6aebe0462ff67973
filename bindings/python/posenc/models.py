"""Models: read from files, names, dicts, configurations and live modules; compiled and explained."""

from __future__ import annotations

import os
import warnings

from . import _posenc
from ._posenc import Model, Plan
from .errors import Warning
from .program import page
from .values import Value, of_value


def model(x) -> Model:
    """What a model's files say about position.

    x: a folder, config.json, params.json or .gguf file, a bundled name (`bundled_models()`), a config as a dict or as JSON
    text, the bytes of such a file, a transformers configuration, or a module that has one as `.config`.
    Raises posenc.Error with the rule, the value and the cure where a file is not what it should be, and warns with
    posenc.Warning of what deserves a look in it.
    """
    if isinstance(x, Model):
        return x
    made = read(x)
    for code, message in made.file_warnings:
        warnings.warn(Warning(message, code), stacklevel=2)
    return made


def read(x) -> Model:
    """model() without its warnings, for those who show them otherwise."""
    if isinstance(x, Model):
        return x
    if isinstance(x, (bytes, bytearray, memoryview)):
        return _posenc.read_bytes(bytes(x), "model")
    if isinstance(x, str) and x.lstrip().startswith("{"):
        return _posenc.read_bytes(x.encode(), "config.json")
    if isinstance(x, (str, os.PathLike)):
        return _posenc.read_path(os.fspath(x))
    name = None
    if not isinstance(x, dict):
        config = getattr(x, "config", x)  # of a module
        name = type(x).__name__ if config is not x else getattr(config, "_name_or_path", None)
        if not hasattr(config, "to_dict"):
            raise TypeError(
                "posenc.model takes a path, a bundled name, a dict, JSON, bytes, a transformers configuration or a "
                f"module that has one, got {type(x).__name__}"
            )
        x = config.to_dict()
    import json

    return _posenc.read_bytes(json.dumps(x, default=_plain).encode(), name or "config.json")


def _plain(value):
    """What a configuration may hold beside JSON's types: dtypes, by their names."""
    return str(value).removeprefix("torch.")


def _reread(source: str, contents: bytes, name: str) -> Model:
    """A model that was pickled: its text came along, a path or bundled name did not."""
    return _posenc.read_path(source) if source else _posenc.read_bytes(contents, name)


def _reduced(of: Model) -> tuple:
    """How a model is pickled; what an engine makes of one, as posenc.read_as with its arguments."""
    made = getattr(of, "_made", None)
    return made or (_reread, (of.source, of.contents, of.name))


def plan(scheme, **geometry) -> Plan:
    """A scheme (`posenc.Rope(...)`), or a model's, as tables and numbers.

    Of a scheme: head_dim, heads, kv_heads, width, length, grid_height, grid_width, and angles "exact", "hf_float" or
    "ggml_float". Of a model: layer, stack, group, length, angles.
    """
    if isinstance(scheme, Value):
        return _posenc.compile_plan(scheme._value, **geometry)
    return read(scheme).plan(**geometry)


class Explanation:
    """What a model does about position: as text the command's page, in notebooks a page with its picture, as data the
    documented JSON (docs/json.md) with attributes for keys."""

    def __init__(self, of: Model, at: int, layer: int | None) -> None:
        self.model, self._at, self._layer = of, at, layer
        self._json = of.explain_json(at, layer)
        self._data = None

    def to_json(self) -> str:
        return self._json

    def to_dict(self) -> dict:
        import json

        return json.loads(self._json)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if self._data is None:
            from .reports import Record

            self._data = Record(self.to_dict())
        return getattr(self._data, name)

    def __str__(self) -> str:
        flags = ["--at", str(self._at)] if self._at else []
        flags += ["--layer", str(self._layer)] if self._layer is not None else []
        return page("explain", self.model, *flags)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from . import display

        return display.explanation_html(self)

    def plot(self, ax=None):
        """Draws the wavelengths of every group of layers with matplotlib, and returns the Axes."""
        from . import display

        return display.plot_explanation(self, ax)


def explain(of, *, at: int = 0, layer: int | None = None) -> Explanation:
    """What a model's files mean about position: for a length (`at` tokens, 0 as constructed), one layer or all."""
    return Explanation(read(of), at, layer)


def bundled_models() -> list[dict]:
    """Real configurations that travel with the library: name, about, origin, source."""
    import json

    return json.loads(_posenc.models_json())


# What the extension module's Model asks for.


def _groups(of: Model):
    return explain(of).groups


def _warnings(of: Model):
    return explain(of).warnings


def _schemes(of: Model, group: int):
    return [of_value(value) for value in of.group_schemes(group)]


def _said(of: Model) -> str:
    return f"<posenc.Model {of.name}: {of.family}, {of.group_count} groups of layers>"
