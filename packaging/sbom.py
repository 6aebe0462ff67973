#!/usr/bin/env python3
"""sbom.py OUT.cdx.json: what a release is made of, as CycloneDX 1.6: the libraries inside the command and the wheels, by the archives of
cmake/dependencies.cmake, and what the playground has inside, by web/licenses.mjs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LICENSES = {"hwy": "Apache-2.0", "nlohmann_json": "MIT", "CLI11": "BSD-3-Clause", "fmt": "MIT", "utf8proc": "MIT"}


def component(name: str, version: str, license: str, purl: str, sha256: str = "") -> dict[str, object]:
    made: dict[str, object] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    made["licenses"] = [{"license": {"id": license}}]
    if sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return made


def compiled() -> list[dict[str, object]]:
    text = (ROOT / "cmake" / "dependencies.cmake").read_text()
    made = []
    for name, archive, url, sha256 in re.findall(r"set\(archive_(\w+) (\S+) (\S+)\s+(\w{64})\)", text):
        if name == "GTest":  # of the tests alone
            continue
        owner, repository = url.split("/")[3:5]
        version = re.search(r"-([0-9.]+)\.tar", archive)[1]
        made.append(component(name, version, LICENSES[name], f"pkg:github/{owner}/{repository}@v{version}", sha256))
    return made


def in_the_page() -> list[dict[str, object]]:
    listed = subprocess.run([ROOT / "web" / "licenses.mjs"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^={72}\n(\S+) (\S+): (\S+)$", listed, re.MULTILINE)
    return [
        component(name, version, license, f"pkg:npm/{name.replace('@', '%40')}@{version}")
        for name, version, license in found
    ]


def main() -> None:
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    import project_metadata

    version, home = project_metadata.project()
    posenc = component("posenc", version, "Apache-2.0", f"pkg:generic/posenc@{version}")
    posenc |= {"type": "application", "externalReferences": [{"type": "website", "url": home}]}
    parts = compiled() + in_the_page()
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": posenc},
        "components": parts,
        "dependencies": [{"ref": posenc["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    Path(sys.argv[1]).write_text(json.dumps(made, indent=1) + "\n")
    print(f"{sys.argv[1]}: {len(parts)} libraries")


if __name__ == "__main__":
    main()
