"""The posenc command that the package carries, run from Python."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ._posenc import Model
from .errors import Error

if TYPE_CHECKING:
    import subprocess


def program() -> list[str]:
    """What runs the posenc command that this package carries: the words before its own."""
    return [sys.executable, "-m", __package__]


def command(*arguments: str, stdin: bytes | None = None, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs the posenc command: `posenc.command("plot", "rope", "out.svg")`. Text in `.stdout` and `.stderr`; exit codes are
    0 good, 1 something wrong was found, 2 bad input."""
    import subprocess  # an import of posenc is to be quick

    # What lies in the working directory is not imported (from Python 3.11 on).
    apart = {**os.environ, "PYTHONSAFEPATH": "1"}
    ran = subprocess.run([*program(), *map(str, arguments)], input=stdin, capture_output=True, env=apart)
    done = subprocess.CompletedProcess(ran.args, ran.returncode, ran.stdout.decode(), ran.stderr.decode())
    if check and done.returncode == 2:
        said, _, rest = done.stderr.strip().removeprefix("posenc: ").rpartition("; see posenc ")
        raise Error((said or rest).replace(": --at: ", ": at: "))
    return done


def printed(*arguments: str, stdin: bytes | None = None) -> str:
    """What a command prints; bad input raises Error."""
    return command(*arguments, stdin=stdin, check=True).stdout


def page(name: str, of: Model, *flags: str) -> str:
    """What a command prints of a model."""
    if not of.source and not of.contents:
        rule = "the model must be read from a file, a name or a configuration"
        raise Error(
            f"posenc {name}: {rule}, got one as an engine runs it; its plans and to_dict() are there", name, rule
        )
    return printed(name, of.source or "-", *flags, stdin=of.contents or None)
