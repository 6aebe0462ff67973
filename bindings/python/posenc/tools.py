"""The doctor, as the commands of the same names: what deserves a look in a file, where models and engines differ, which
convention a dump shows. Each returns a Report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _posenc
from ._posenc import Plan, Positions
from .errors import Error
from .models import Model, read
from .probing import probe as probe
from .program import command as command
from .program import page, printed
from .reports import (
    Diagnosis,
    Difference,
    Extension,
    Finding,
    Identification,
    Precision,
    Report,
    Translation,
    VectorIdentification,
    Verification,
)

if TYPE_CHECKING:
    from .models import Part
    from .types import ArrayLike, ModelSource, PositionIds


def diff(
    expected: ModelSource,
    found: ModelSource | None = None,
    *,
    at: int = 0,
    engine: str | None = None,
    log: str | None = None,
    command: str | None = None,
    settings: str | None = None,
) -> Difference:
    """Where position is treated differently: two models (as one engine runs both: `engine=` beside), a model and what an engine
    makes of it (`engine="vllm"`), what an engine printed at its start (`log=` text), what a command line of llama.cpp, vLLM or
    SGLang makes of it (`command="vllm serve …"`), or what an adapter was trained with (`settings=` text of its trainer's YAML).
    at: the length to compare for; 0: the context."""
    a = read(expected)
    if (found is not None or engine is not None) + sum(each is not None for each in (log, command, settings)) != 1:
        raise TypeError("posenc.diff takes one of: a second model, engine= or both, log=, command=, settings=")
    if settings is not None:
        return Difference(_posenc.settings_diff_json(a, settings), "diff")
    if log is not None:
        return Difference(_posenc.log_diff_json(a, log, at), "diff")
    if command is not None:
        return Difference(_posenc.command_diff_json(a, command, at), "diff")
    if engine is None:
        return Difference(_posenc.diff_json(a, read(found), at), "diff")
    if found is not None:
        return Difference(_posenc.engine_pair_diff_json(a, read(found), engine, at), "diff")
    return Difference(_posenc.engine_diff_json(a, engine, at), "diff")


def doctor(*evidence: ModelSource, at: int = 0, engine: str | Sequence[str] = ()) -> Diagnosis:
    """What is wrong with position, from whatever there is: models as posenc.model() takes them, paths of files and folders,
    logs, command lines, a Modelfile, a trainer's YAML, printed inv_freq as text. The first model is what should run; all else
    is a run of it. `.verdict` is the answer in a sentence, `.evidence` how each was taken, and the report is true where nothing
    is wrong."""

    def piece(x: Any) -> Any:
        if isinstance(x, Model) or (isinstance(x, str) and "\n" not in x and not x.lstrip().startswith("{")):
            return x
        if isinstance(x, os.PathLike):
            return os.fspath(x)
        if isinstance(x, str):
            return "text", x.encode()
        if isinstance(x, (bytes, bytearray, memoryview)):
            return "bytes", bytes(x)
        return read(x)

    return Diagnosis(_posenc.doctor_json([piece(each) for each in evidence], _names(engine), at), "doctor")


def read_as(
    of: ModelSource,
    engine: str | None = None,
    *,
    command: str | None = None,
    settings: str | None = None,
    at: int = 0,
) -> Model:
    """The model that an engine computes (`engine="vllm"`), that a command line of llama.cpp, vLLM or SGLang starts, or that a trainer
    trains (settings= text of its YAML, TOML or command line): its plans are that program's. `.notes` has what an engine does otherwise
    than the file says, as (kind, sentence)."""
    if sum(each is not None for each in (engine, command, settings)) != 1:
        raise TypeError("posenc.read_as takes an engine, a command= or settings=")
    m = read(of)
    if settings is not None:
        reading = _posenc.read_trainer(m, settings)
    else:
        reading = _posenc.read_as(m, engine, at) if engine is not None else _posenc.read_command(m, command or "")
    made = reading[0]
    vars(made).update(_notes=reading[1], _made=(_read_again, (m, engine, command, at, settings)))
    return made


def _read_again(of: Model, engine: str | None, command: str | None, at: int, settings: str | None = None) -> Model:
    """A model of read_as that was pickled."""
    return read_as(of, engine, command=command, settings=settings, at=at)


def plan_diff(expected: Plan, found: Plan, at: int) -> Report:
    """Plan.same_as."""
    return Report(_posenc.plan_diff_json(expected, found, at), "same_as")


def _names(engine: str | Sequence[str]) -> list[str]:
    return [engine] if isinstance(engine, str) else list(engine)


def lint(of: ModelSource, *, at: int = 0, engine: str | Sequence[str] = ()) -> Report:
    """What deserves a look in a model's file. engine: one or several that it is for; without, what any does otherwise is a warning."""
    return Report(_posenc.lint_json(read(of), _names(engine), at), "lint")


def mend(config: str | dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """A configuration, as a dict or JSON text, with what leaves no choice mended, and what was mended."""
    import json

    text, mended = _posenc.mend_json(config if isinstance(config, str) else json.dumps(config))
    return json.loads(text), [Finding(each) for each in json.loads(mended)]


def translate(of: ModelSource, to: str, *, at: int = 0, command: str | None = None) -> Translation:
    """A model's rotation in an engine's own words (`to="vllm"`, "llama.cpp", "transformers@4"): `.target`, and what is lost.
    command: what this command line of llama.cpp, vLLM or SGLang makes of the model."""
    m, flags = read(of), ["--to", to, *(["--at", str(at)] if at else [])]
    made, length = m, at
    if command is not None:
        flags += ["--command", command]
        made, _, _, asked = _posenc.read_command(m, command)
        length = at or asked
    return Translation(_posenc.translate_json(made, to, length), "translate", partial(page, "translate", m, *flags))


def _tokens(length: int | str) -> int:
    """A length as the command takes it too: "128k" (131,072), "1M", "1e6"."""
    if isinstance(length, int):
        return length
    units = {"k": 1024, "m": 1024**2}
    digits, unit = (length[:-1], units[length[-1:].lower()]) if length[-1:].lower() in units else (length, 1)
    try:
        exact = float(digits) * unit
        if exact == int(exact):
            return int(exact)
    except (ValueError, OverflowError):
        pass
    rule, cure = "the length must be a whole number of tokens", "write it like 131072, '128k' or '1e6'"
    raise Error(f"extend: {rule}, got {length!r}; {cure}", "extend", rule, repr(length), cure)


def extend(
    of: ModelSource, to: int | str, *, engine: str = "transformers", trained: int = 0, training: bool = False
) -> Extension:
    """A plan for a context of `to` tokens (131072, or "128k"): every scaling with what it does, the recommended one, and an engine's words."""
    m, to = read(of), _tokens(to)
    flags = ["--to", str(to), "--engine", engine]
    flags += ["--trained", str(trained)] if trained else []
    flags += ["--train"] if training else []
    return Extension(
        _posenc.extend_json(m, to, engine, trained, training), "extend", partial(page, "extend", m, *flags)
    )


def identify(
    after: ArrayLike,
    *,
    before: ArrayLike | None = None,
    position_ids: PositionIds | None = None,
    repeated: bool = False,
    model: ModelSource | None = None,
    layer: int = 0,
    part: Part | None = None,
) -> Identification:
    """Which channels an engine rotated together, and by which angles: queries or keys [head, seq, dim] after rotation and
    before it, or after it alone where every token was the same one (repeated=True). model: what its layer does otherwise is
    `.beside_model`. part: whose queries or keys they are, the heads' or those of the indexer that picks keys; None: as their
    width tells."""
    of = None if model is None else read(model)
    return Identification(_posenc.identify_json(after, before, position_ids, repeated, of, layer, part), "identify")


def identify_table(cos: ArrayLike, sin: ArrayLike) -> Identification:
    """What tables of cosines and sines [position, pair or channel] are made of: base, scaling, layout, and the type they were kept in."""
    return Identification(_posenc.identify_table_json(cos, sin), "identify")


def identify_vectors(values: ArrayLike) -> VectorIdentification:
    """What a table of vectors [position, channel] that are added to embeddings is made of: waves, with base and layout, or learned."""
    return VectorIdentification(_posenc.identify_vectors_json(values), "identify")


def check_positions(
    found: ArrayLike | Sequence[Any], expected: Positions, *, keep: ArrayLike | Sequence[Any] | None = None
) -> Report:
    """Where an engine's ids [axes, batch, seq] are not those of a rule (`posenc.positions.from_mask(mask)`), and by which slip."""
    return Report(_posenc.check_positions_json(found, expected, keep), "check_positions")


def precision(of: ModelSource, *, at: int = 0, layer: int | None = None) -> Precision:
    """How far off angles are that engines form in float, by position."""
    m = read(of)
    flags = ["--at", str(at)] if at else []
    flags += ["--layer", str(layer)] if layer is not None else []
    return Precision(page("precision", m, "--json", *flags), "precision", partial(page, "precision", m, *flags))


def verify(claim: str | None = None, *, text: str | None = None, group: str | None = None) -> Verification:
    """What public introductions claim about positional encodings, each claim computed anew."""
    flags = [f"--{name}={value}" for name, value in (("claim", claim), ("text", text), ("group", group)) if value]
    return Verification(printed("verify", "--json", *flags), "verify", partial(printed, "verify", *flags))


def bundled_config(name: str) -> dict[str, Any]:
    """The config.json of a bundled model."""
    import json

    config: dict[str, Any] = json.loads(_posenc.bundled_config(name))
    return config


def engines() -> list[dict[str, str]]:
    """Every engine's profile: name, title, version, source."""
    return [dict(zip(("name", "title", "version", "source"), each, strict=True)) for each in _posenc.engines()]


def schemes() -> list[dict[str, Any]]:
    """Every scheme, scaling and content scheme with its fields."""
    return [each for each in _listed() if each["kind"] not in ("feature", "room")]


def rooms() -> list[dict[str, Any]]:
    """Every place of the library that computes with plans: the features of plans that it takes, ignores and refuses."""
    return [each for each in _listed() if each["kind"] == "room"]


def _listed() -> list[dict[str, Any]]:
    import json

    listed: list[dict[str, Any]] = json.loads(_posenc.schemes_json())
    return listed
