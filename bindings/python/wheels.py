#!/usr/bin/env python3
"""wheels.py DIST [PLATFORM...]: builds a wheel for each platform (or those named) by zig, and leaves it in DIST, checked. What a build
before this one compiled is kept in build/wheels/. The first platform is the machine's own: stubs are made by running its module.

zig's C++ library is libc++, by which nanobind cannot throw errors across two modules: so nanobind is linked into these wheels instead of
imported from nanobind-backend, which takes the stable ABI of Python 3.12."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import ziglang

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "wheels"
SOURCES = ROOT / "build" / "sources"
# The module, and in it the command, the page, the weights of its live model and the test vectors.
LARGEST = 9_000_000
ZIG = str(Path(ziglang.__file__).parent / "zig")
PYTHON = "cp312"
TOOLS = Path(sys.executable).parent
PARTS = ("hwy", "nlohmann_json", "CLI11", "fmt", "utf8proc")


@dataclass(frozen=True)
class Platform:
    target: str  # zig's
    tag: str

    @property
    def here(self) -> bool:
        """Whether this machine runs what is built for it."""
        return sys.platform == "linux" and self.target.startswith(f"{platform.machine()}-linux-gnu")


PLATFORMS = sorted(
    (
        Platform("x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64"),
        Platform("aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64"),
        Platform("x86_64-linux-musl", "musllinux_1_2_x86_64"),
        Platform("aarch64-linux-musl", "musllinux_1_2_aarch64"),
        Platform("x86_64-windows-gnu", "win_amd64"),
        Platform("aarch64-macos.11.0", "macosx_11_0_arm64"),
        Platform("x86_64-macos.11.0", "macosx_11_0_x86_64"),
    ),
    key=lambda at: not at.here,
)


def fail(rule: str, got: str, cure: str) -> None:
    sys.exit(f"wheels.py: {rule}, got {got}; {cure}")


def headers(windows: bool) -> Path:
    """Python's headers with a pyconfig.h for the platform: of a 64-bit Unix this machine's will do, as the limited API reads sizes
    of types from it and nothing else."""
    folder = BUILD / ("python-windows" if windows else "python-unix")
    shutil.copytree(sysconfig.get_path("include"), folder, dirs_exist_ok=True)
    ours = Path(__file__).parent / "pyconfig_windows.h" if windows else Path(sysconfig.get_config_h_filename())
    if (folder / "pyconfig.h").read_bytes() != ours.read_bytes():
        shutil.copy(ours, folder / "pyconfig.h")
    return folder


def import_library() -> Path:
    """python3.lib, by which a module for Windows finds the names of the limited API in python3.dll."""
    import abi3info

    made, names = BUILD / "python3.lib", BUILD / "python3.def"
    if not made.exists():
        lines = [each.name for each in abi3info.FUNCTIONS] + [f"{each.name} DATA" for each in abi3info.DATAS]
        names.write_text("LIBRARY python3.dll\nEXPORTS\n" + "".join(f"  {line}\n" for line in sorted(lines)))
        subprocess.run([ZIG, "dlltool", "-m", "i386:x86-64", "-d", str(names), "-l", str(made)], check=True)
    return made


def settings(at: Platform) -> dict[str, str]:
    """What scikit-build-core is told for a platform."""
    made = {
        "build-dir": str(BUILD / at.tag),
        "wheel.tags": f"{PYTHON}-abi3-{at.tag}",
        "wheel.py-api": PYTHON,
        "install.strip": "false",  # the machine's own would not know the others' files
        "cmake.toolchain-file": str(ROOT / "cmake" / "zig.cmake"),
    }
    define = {
        "ZIG": ZIG,
        "ZIG_TARGET": at.target,
        "FETCHCONTENT_TRY_FIND_PACKAGE_MODE": "NEVER",
        "POSENC_LINKED_NANOBIND": "ON",
        "POSENC_SMALL": "ON",
        "CCACHE": "CCACHE-NOTFOUND",  # a folder of objects for each platform is cache enough
    }
    own = BUILD / PLATFORMS[0].tag
    if not at.here:
        made["cmake.python-hints"] = "false"
        define |= {
            "Python_EXECUTABLE": sys.executable,
            "Python_INCLUDE_DIR": str(headers("windows" in at.target)),
            "POSENC_STUBS": str(own / "bindings" / "python"),
        }
        if "windows" in at.target:
            define["Python_SABI_LIBRARY"] = str(import_library())
    # What `make sources` has unpacked is not fetched; else the first platform fetches, and the others share it.
    if (SOURCES / "done").exists():
        define |= {f"FETCHCONTENT_SOURCE_DIR_{part.upper()}": str(SOURCES / part) for part in PARTS}
    elif not at.here:
        define |= {f"FETCHCONTENT_SOURCE_DIR_{part.upper()}": f"{own}/_deps/{part.lower()}-src" for part in PARTS}
    return made | {f"cmake.define.{name}": value for name, value in define.items()}


def run(what: str, command: list[str], log: Path) -> None:
    """Shows ninja's counter on a line, every half minute where nobody watches, and what was printed only if it fails."""
    began = said = time.monotonic()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with log.open("w") as out, subprocess.Popen(command, **pipes) as made:
        assert made.stdout
        for line in made.stdout:
            out.write(line)
            counted = re.search(r"\[\d+/\d+\]", line)
            now = time.monotonic()
            if counted and (sys.stdout.isatty() or now - said > 30):
                print(f"{what} {counted[0]}", end="\r" if sys.stdout.isatty() else "\n", flush=True)
                said = now
    if made.returncode != 0:
        print(log.read_text())
        fail(f"{what} must build", f"exit status {made.returncode}", f"the whole log is {log}")
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def check(wheel: Path) -> None:
    """A module good for every Python that the tag claims, the symbols of the tag's libc alone, and a size that PyPI's users bear."""
    run(f"{wheel.name} abi3audit", [str(TOOLS / "abi3audit"), "--strict", str(wheel)], BUILD / "abi3audit.log")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("_posenc.pyi", "values.pyi", "py.typed"):
        if f"posenc/{wanted}" not in names:
            fail(f"{wheel.name} must have posenc/{wanted}", "none", f"remove {BUILD} and build again")
    if wheel.stat().st_size > LARGEST:
        fail(
            f"{wheel.name} must have at most {LARGEST} bytes", str(wheel.stat().st_size), "look at what grew: unzip -lv"
        )


def check_libc(at: Platform, wheel: Path) -> None:
    """Every symbol is in the tag's glibc, and every library is the system's. (auditwheel repairs for its own machine alone.)"""
    shown = subprocess.run([TOOLS / "auditwheel", "show", wheel], capture_output=True, text=True).stdout
    found = re.search(r'following\s+platform\s+tag:\s+"(manylinux_2_(\d+)_\w+)"', shown)
    if not found or int(found[2]) > int(at.target.rsplit(".", 1)[1]):
        fail(
            f"{wheel.name} must keep its tag",
            found[1] if found else shown,
            "look for what needs a newer libc: objdump -T",
        )


def without_backend(wheel: Path) -> None:
    """Takes nanobind-backend out of what the wheel depends on."""
    tools = [sys.executable, "-m", "wheel"]
    folder = BUILD / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([*tools, "unpack", "-d", str(folder), str(wheel)], check=True, capture_output=True)
    (inside,) = folder.iterdir()
    (metadata,) = inside.glob("*.dist-info/METADATA")
    metadata.write_text(re.sub(r"Requires-Dist: nanobind-backend.*\n", "", metadata.read_text()))
    subprocess.run([*tools, "pack", "-d", str(wheel.parent), str(inside)], check=True, capture_output=True)


def build(at: Platform, dist: Path) -> Path:
    made = BUILD / f"{at.tag}.wheel"
    shutil.rmtree(made, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        str(ROOT),
        "--no-deps",
        "--no-build-isolation",
        "-v",
        "-w",
        str(made),
    ]
    for name, value in settings(at).items():
        command += ["-C", f"{name}={value}"]
    run(at.tag, command, BUILD / f"{at.tag}.log")
    (wheel,) = made.glob("*.whl")
    without_backend(wheel)
    if "linux-gnu" in at.target:
        check_libc(at, wheel)
    check(wheel)
    for old in dist.glob(f"posenc-*-{at.tag}.whl"):
        old.unlink()
    return Path(shutil.copy(wheel, dist))


def main() -> None:
    dist, *names = sys.argv[1:] or ["dist"]
    known = [at.tag for at in PLATFORMS]
    for name in names:
        if name not in known:
            fail("a platform must be one of " + ", ".join(known), name, "name one of these")
    if sys.version_info < (3, 12):
        fail("Python must be 3.12 or newer", platform.python_version(), "run it by a newer one")
    if not PLATFORMS[0].here:
        fail("the machine must be Linux on x86_64 or aarch64 with glibc", platform.platform(), "build there")
    BUILD.mkdir(parents=True, exist_ok=True)
    Path(dist).mkdir(parents=True, exist_ok=True)
    for at in PLATFORMS:
        if (
            names
            and at.tag not in names
            and not (at.here and not (BUILD / at.tag / "bindings/python/values.pyi").exists())
        ):
            continue
        wheel = build(at, Path(dist))
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
