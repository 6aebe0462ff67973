"""The doctor, as the commands of the same names: what deserves a look in a file, where models and engines differ, which
convention a dump shows. Each returns a Report."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import _posenc
from ._posenc import Plan
from .models import Model, read
from .reports import Report


def program() -> str:
    """The path of the posenc command that this package carries."""
    return str(Path(__file__).parent / "bin" / "posenc")


def command(*arguments: str, stdin: bytes | None = None, check: bool = False) -> subprocess.CompletedProcess:
    """Runs the posenc command: `posenc.command("plot", "rope", "out.svg")`. Text in `.stdout` and `.stderr`; exit codes are
    0 good, 1 something wrong was found, 2 bad input."""
    done = subprocess.run([program(), *map(str, arguments)], input=stdin, capture_output=True)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    if check and done.returncode == 2:
        from .errors import Error

        raise Error(done.stderr.strip().removeprefix("posenc: "))
    return done


def page(name: str, of: Model, *flags: str) -> str:
    """What a command prints of a model."""
    return command(name, of.source or "-", *flags, stdin=of.contents or None, check=True).stdout


def diff(expected, found=None, *, at: int = 0, engine: str | None = None, log: str | None = None) -> Report:
    """Where position is treated differently: two models, a model and what an engine makes of it (`engine="vllm"`), or a
    model and what an engine printed at its start (`log=` text). at: the length to compare for; 0: the context."""
    a = read(expected)
    if (found is not None) + (engine is not None) + (log is not None) != 1:
        raise TypeError("posenc.diff takes one of: a second model, engine=, log=")
    if found is not None:
        return Report(_posenc.diff_json(a, read(found), at), "diff")
    if engine is not None:
        return Report(_posenc.engine_diff_json(a, engine, at), "diff")
    return Report(_posenc.log_diff_json(a, log, at), "diff")


def plan_diff(expected: Plan, found: Plan, at: int) -> Report:
    """Plan.same_as."""
    return Report(_posenc.plan_diff_json(expected, found, at), "same_as")


def lint(of, *, at: int = 0, engines=()) -> Report:
    """What deserves a look in a model's file. engines: those that it is for; without, what any does otherwise is a warning."""
    return Report(_posenc.lint_json(read(of), [engines] if isinstance(engines, str) else list(engines), at), "lint")


def mend(config) -> tuple[dict, list]:
    """A configuration with what leaves no choice mended, and what was mended."""
    import json

    from .reports import Finding

    text, mended = _posenc.mend_json(config if isinstance(config, str) else json.dumps(config))
    return json.loads(text), [Finding(each) for each in json.loads(mended)]


def translate(of, to: str, *, at: int = 0) -> Report:
    """A model's rotation in an engine's own words (`to="vllm"`, "llama.cpp", "transformers@4"): `.target`, and what is lost."""
    m, flags = read(of), ["--to", to, *(["--at", str(at)] if at else [])]
    return Report(_posenc.translate_json(m, to, at), "translate", lambda: page("translate", m, *flags))


def extend(of, to: int, *, engine: str = "transformers", trained: int = 0, training: bool = False) -> Report:
    """A plan for a context of `to` tokens: every scaling with what it does, the recommended one, and an engine's words."""
    m, flags = read(of), ["--to", str(to), "--engine", engine]
    flags += ["--trained", str(trained)] if trained else []
    flags += ["--train"] if training else []
    return Report(_posenc.extend_json(m, to, engine, trained, training), "extend", lambda: page("extend", m, *flags))


def identify(after, *, before=None, position_ids=None, repeated: bool = False) -> Report:
    """Which channels an engine rotated together, and by which angles: queries or keys [head, seq, dim] after rotation and
    before it, or after it alone where every token was the same one (repeated=True)."""
    return Report(_posenc.identify_json(after, before, position_ids, repeated), "identify")


def check_positions(found, expected, *, keep=None) -> Report:
    """Where an engine's ids [axes, batch, seq] are not those of a rule (`posenc.positions.from_mask(mask)`), and by which slip."""
    return Report(_posenc.check_positions_json(found, expected, keep), "check_positions")


def precision(of, *, at: int = 0, layer: int | None = None) -> Report:
    """How far off angles are that engines form in float, by position."""
    m = read(of)
    flags = ["--at", str(at)] if at else []
    flags += ["--layer", str(layer)] if layer is not None else []
    return Report(page("precision", m, "--json", *flags), "precision", lambda: page("precision", m, *flags))


def verify(claim: str | None = None, *, text: str | None = None, group: str | None = None) -> Report:
    """What public introductions claim about positional encodings, each claim computed anew."""
    flags = [f"--{name}={value}" for name, value in (("claim", claim), ("text", text), ("group", group)) if value]
    return Report(
        command("verify", "--json", *flags, check=True).stdout,
        "verify",
        lambda: command("verify", *flags, check=True).stdout,
    )


def engines() -> list[dict]:
    """Every engine's profile: name, title, version, source."""
    return [dict(zip(("name", "title", "version", "source"), each, strict=True)) for each in _posenc.engines()]


def schemes() -> list[dict]:
    """Every scheme, scaling and content scheme with its fields."""
    import json

    return json.loads(_posenc.schemes_json())
