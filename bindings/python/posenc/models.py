"""Models: read from files, names, dicts, configurations and live modules; compiled and explained."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, overload

from . import _posenc
from ._posenc import Model, Plan
from .errors import Warning
from .program import page
from .reports import Keys, Record
from .values import Value, of_dict, of_value

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from .types import ModelSource

    Angles: TypeAlias = Literal["exact", "hf_float", "ggml_float"]
    Stack: TypeAlias = Literal["text", "encoder", "decoder", "vision", "audio"]
    Part: TypeAlias = Literal["attention", "indexer"]


def model(x: ModelSource) -> Model:
    """What a model's files say about position.

    x: a folder, config.json, params.json or .gguf file, a bundled name (`bundled_models()`) or a well-known one (`published_models()`, "Qwen/Qwen3-32B"), a config as a dict or as JSON
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


def bare(x: Any) -> Any:
    """A live model without what wraps it: torch.compile, DataParallel, DDP, FSDP, an average of weights."""
    while "_orig_mod" in getattr(x, "_modules", ()) or not hasattr(x, "config"):
        inner = getattr(x, "_orig_mod", None) or getattr(x, "module", None)
        if inner is None:
            return x
        x = inner
    return x


def read(x: Any) -> Model:
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
        x = bare(x)
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


def _plain(value: object) -> str:
    """What a configuration may hold beside JSON's types: dtypes, by their names."""
    return str(value).removeprefix("torch.")


def _reread(source: str, contents: bytes, name: str) -> Model:
    """A model that was pickled: its text came along, a path or bundled name did not."""
    return _posenc.read_path(source) if source else _posenc.read_bytes(contents, name)


def _reduced(of: Model) -> tuple[Any, ...]:
    """How a model is pickled; what an engine makes of one, as posenc.read_as with its arguments."""
    made = getattr(of, "_made", None)
    return made or (_reread, (of.source, of.contents, of.name))


@overload
def plan(
    scheme: Value | dict[str, Any],
    *,
    head_dim: int = 0,
    heads: int = 0,
    kv_heads: int = 0,
    width: int = 0,
    length: int = 0,
    grid_height: int = 0,
    grid_width: int = 0,
    angles: Angles = "exact",
) -> Plan: ...


@overload
def plan(
    scheme: ModelSource,
    *,
    layer: int | None = None,
    stack: Stack = "text",
    group: int | None = None,
    length: int = 0,
    angles: Angles = "exact",
    part: Part = "attention",
) -> Plan: ...


def plan(scheme: Value | ModelSource, **geometry: Any) -> Plan:
    """A scheme (`posenc.Rope(...)`, or as JSON has it, `{"type": "rope"}`), or a model's, as tables and numbers.

    Of a scheme: head_dim and width in channels, heads, kv_heads, length in tokens, grid_height and grid_width in patches, and
    angles "exact", "hf_float" or "ggml_float": whose arithmetic forms them. Of a model: layer, stack, group, length, angles,
    and part "indexer" for what picks the keys.
    Raises posenc.Error where the scheme needs a size that was not given.
    """
    if isinstance(scheme, dict) and "type" in scheme and "model_type" not in scheme:
        scheme = of_dict(scheme)
    if isinstance(scheme, Value):
        return _posenc.plan(scheme._value, **geometry)
    return read(scheme).plan(**geometry)


class Explanation(Keys):
    """What a model does about position: as text the command's page, in notebooks a page with its picture, as data the
    documented JSON (docs/json.md) with attributes for keys."""

    groups: list[Record]
    """of layers that treat position alike"""
    warnings: list[Record]
    """code and message"""
    family: str
    known_family: bool
    context: int
    """tokens"""
    trained_context: int
    asked: int | None
    """the length that it is for"""
    dtype: str
    origin: str
    words: list[str]
    cache_bytes_per_token: int
    cache_bytes: int
    files: list[Record]

    def __init__(self, of: Model, at: int, layer: int | None) -> None:
        import json

        self.model, self._at, self._layer = of, at, layer
        self._json = of.explain_json(at, layer)
        super().__init__(json.loads(self._json))

    def to_json(self) -> str:
        """The documented JSON, as text."""
        return self._json

    def __str__(self) -> str:
        flags = ["--at", str(self._at)] if self._at else []
        flags += ["--layer", str(self._layer)] if self._layer is not None else []
        return page("explain", self.model, *flags)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from . import display

        return display.explanation_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draws the wavelengths of every group of layers with matplotlib, and returns the Axes."""
        from . import display

        return display.plot_explanation(self, ax)


def explain(of: ModelSource, *, at: int = 0, layer: int | None = None) -> Explanation:
    """What a model's files mean about position: for a length (`at` tokens, 0 as constructed), one layer or all."""
    return Explanation(read(of), at, layer)


def reuse(of: ModelSource) -> list[Record]:
    """Whether a model's cached keys may stand at other positions (posenc.rekey), group of layers by group: stack, layers,
    verdict ("exact", "unrotated only", "never"), why, and moves, what must move along. It is about each layer's own keys: those
    of deeper layers also hold what their tokens read of the tokens before them (docs/cache.md)."""
    import json

    return [Record(each) for each in json.loads(_posenc.reuse_json(read(of)))]


def judge_layout(of: ModelSource, cp: str, *, at: int = 0, machine: str = "h100") -> Record:
    """Whether a model survives a text of `at` tokens (0: its context) that is shared out among ranks as `cp` says: "zigzag:8",
    "round_robin:4:block=64", "ulysses:8", "megatron:8", or a job's command line, YAML, TOML or JSON. verdict ("survives",
    "unknown", "breaks"), groups of layers with reasons and needs, work of each rank, bytes that it sends, and best, the layout
    that suits (docs/context_parallel.md). seconds and efficiency are predicted for a machine: "h100", "a100", "core", or
    "h100:far_bytes=2.5e10". Takes milliseconds. Raises posenc.Error for words that share nothing out, and an unknown machine."""
    import json

    return Record(json.loads(_posenc.layout_json(read(of), cp, at, machine)))


def bundled_models() -> list[dict[str, str]]:
    """Real configurations that travel with the library: name, about, origin, source."""
    import json

    listed: list[dict[str, str]] = json.loads(_posenc.models_json(False))
    return listed


def published_models() -> list[dict[str, str]]:
    """Well-known models, of which what their config.json says of position travels with the library: `model("Qwen/Qwen3-32B")`
    and a command line that names one need no file. The fields of bundled_models()."""
    import json

    listed: list[dict[str, str]] = json.loads(_posenc.models_json(True))
    return listed


# What the extension module's Model asks for.


def _groups(of: Model) -> list[Record]:
    return explain(of).groups


def _warnings(of: Model) -> list[Record]:
    return explain(of).warnings


def _schemes(of: Model, group: int) -> list[Value]:
    return [of_value(value) for value in of.group_schemes(group)]


def _said(of: Model) -> str:
    return f"<posenc.Model {of.name}: {of.family}, {of.group_count} groups of layers>"
