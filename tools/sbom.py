"""List what a deployment installs: name, version, licence, hashes, as a CycloneDX 1.5 document on standard output.

Usage: python tools/sbom.py

Versions and hashes come from requirements/run.txt, licences from the installed packages. Nothing in it depends on the time or the machine.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "requirements" / "run.txt"
ELSEWHERE = "win32"
"""Requirements with this in their marker are not installed on Linux."""


def components(lock: str) -> list[dict[str, Any]]:
    """One entry for each locked package that Linux installs."""
    out = []
    for block in re.split(r"\n(?=\S)", lock.replace("\\\n", " ")):
        found = re.match(r"(\S+)==(\S+)(.*)", block, re.DOTALL)
        if not found or ELSEWHERE in found[3]:
            continue
        name, version = found[1], found[2]
        hashes = [{"alg": "SHA-256", "content": value} for value in sorted(re.findall(r"sha256:([0-9a-f]{64})", found[3]))]
        entry = {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        out.append({**entry, "licenses": [{"license": {"name": licence(name)}}], "hashes": hashes})
    return out


def licence(name: str) -> str:
    """What the installed package says of its licence."""
    try:
        said = metadata.metadata(name).json
    except metadata.PackageNotFoundError:
        return "not installed here"
    classified = [line.rsplit(" :: ", 1)[1] for line in said.get("classifier", []) if line.startswith("License ::")]
    text = said.get("license_expression") or ", ".join(classified) or str(said.get("license") or "not stated").strip().splitlines()[0]
    return str(text)


def document() -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "holdfast", "version": metadata.version("holdfast")}},
        "components": components(LOCK.read_text(encoding="utf-8")),
    }


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=2)
    print()
