"""Schemes and scalings as values: `Rope(theta=1e6, scaling=Yarn(factor=4, original_max_position_embeddings=32768))`.

The classes are the library's own list, made when this module is read: a new scheme is here without a line.
"""

from __future__ import annotations

from typing import Any

from . import _posenc
from .errors import Error


class Value:
    """A scheme, scaling or content scheme with its fields. Fields are keywords, by every name and alias that files use."""

    kind: str
    name: str
    __slots__ = ("_value",)

    def __init__(self, **fields):
        self._value = _posenc.make_value(self.kind, self.name, _plain(fields))

    @property
    def title(self) -> str:
        """What it is called in full."""
        return self._value.title

    @property
    def formula(self) -> str:
        """Its mathematics in a line."""
        return self._value.formula

    @property
    def paper(self) -> str:
        """Its number at arXiv; empty where there is none."""
        return self._value.paper

    def fields(self) -> dict:
        """Every field with its value, defaults among them."""
        return {
            name: of_value(field) if isinstance(field, _posenc.Value) else field
            for name, field in self._value.fields().items()
        }

    def table(self, name: str) -> Any:
        """A tensor of a scheme that reads the content, in float64; None where it was not given."""
        return self._value.table(name)

    def replace(self, **fields) -> Value:
        """The same with other fields."""
        return of_value(self._value.replace(_plain(fields)))

    def __getattr__(self, name):
        if not name.startswith("_"):
            fields = self.fields()
            if name in fields:
                return fields[name]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self.fields())}")

    def __dir__(self):
        return [*super().__dir__(), *self.fields()]

    def __eq__(self, other) -> bool:
        return isinstance(other, Value) and self._value.same_as(other._value)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self):
        return _rebuilt, (type(self).__name__, self._said())

    def _said(self) -> dict:
        """The fields that are not as they were by default, which may be a value that none may be set to."""
        usual = _defaults[type(self)]
        return {name: field for name, field in self.fields().items() if usual[name] != field}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={field!r}' for name, field in self._said().items())})"

    def _repr_html_(self) -> str:
        from . import display

        return display.value_html(self)


def _plain(fields: dict) -> dict:
    return {name: getattr(field, "_value", field) for name, field in fields.items()}


def _rebuilt(name: str, fields: dict) -> Value:
    return globals()[name](**fields)


def of_value(value: _posenc.Value) -> Value:
    """Python's class around one of the extension module's values."""
    made = object.__new__(_classes[value.kind, value.name])
    made._value = value
    return made


def of_dict(said: dict) -> Value:
    """A scheme as JSON has it: its type beside its fields."""
    named = {name: made for (kind, name), made in _classes.items() if kind == "scheme"}
    if said["type"] not in named:
        rule, cure = "type must be a scheme's name", f"one of: {', '.join(named)}"
        raise Error(f"plan: {rule}, got {said['type']!r}; {cure}", "plan", rule, repr(said["type"]), cure)
    return named[said["type"]](**{name: field for name, field in said.items() if name != "type"})


_classes: dict[tuple[str, str], type[Value]] = {}
_defaults: dict[type[Value], dict] = {}


def _made(class_name: str, kind: str, name: str) -> type[Value]:
    made = type(class_name, (Value,), {"kind": kind, "name": name, "__slots__": (), "__module__": __name__})
    _classes[kind, name] = made
    return made


__all__ = ["Value"]
for _class, _kind, _name in _posenc.value_classes():
    globals()[_class] = _made(_class, _kind, _name)
    __all__.append(_class)
for _class in _classes.values():
    _default = _class()
    _class.__doc__ = f"{_default.title}: {_default.formula}" + (f" (arXiv {_default.paper})" if _default.paper else "")
    _defaults[_class] = _default.fields()
