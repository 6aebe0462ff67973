"""`python -m posenc`, and the command `posenc`: the program that the package carries, in place of this one."""

from __future__ import annotations

import os
import sys

# Not from .program: the program needs nothing that the package imports.
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "posenc")


def main() -> None:
    if os.name == "nt":  # where execv ends this process at once, and a shell does not wait for the other
        import subprocess

        sys.exit(subprocess.call([PROGRAM + ".exe", *sys.argv[1:]]))
    os.execv(PROGRAM, ["posenc", *sys.argv[1:]])


if __name__ == "__main__":
    main()
