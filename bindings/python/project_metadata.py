"""What pyproject.toml asks for when a package is made: version and addresses as CMakeLists.txt has them, and README with links that hold
on a page of PyPI, where there is no repository around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def project() -> tuple[str, str]:
    """Version and home page."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r'project\(posenc VERSION ([0-9.]+)[^)]*HOMEPAGE_URL "([^"]+)"', text)
    if not found:
        raise RuntimeError("CMakeLists.txt must say project(posenc VERSION … HOMEPAGE_URL …)")
    return found[1], found[2]


def readme(version: str, home: str) -> str:
    """Links to files lead to those of this version's tag; a picture is taken as it is, not the page around it."""
    text = (ROOT / "README.md").read_text()
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)", rf"\1{home}/raw/v{version}/", text)
    return re.sub(r"(?<!!)(\[[^][]*\]\()(?!https?:|#)", rf"\1{home}/blob/v{version}/", text)


def dynamic_metadata(settings: Mapping[str, Any], project_so_far: Mapping[str, Any]) -> dict[str, Any]:
    version, home = project()
    return {
        "version": version,
        "readme": {"content-type": "text/markdown", "text": readme(version, home)},
        "urls": {
            "Homepage": home,
            "Documentation": f"{home}/blob/v{version}/docs/README.md",
            "Changelog": f"{home}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{home}/issues",
        },
    }
