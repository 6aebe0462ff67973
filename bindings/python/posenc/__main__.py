"""`python -m posenc`, and the command `posenc`."""

from __future__ import annotations

import signal
import sys

from ._posenc import run_command


def main() -> None:
    # As every program has them: Ctrl-C ends it at once, and so does a reader that has seen enough.
    for name in ("SIGINT", "SIGPIPE"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
