"""An installation that can only be read, no home, no cache: a release works, or is refused before anything is charged.

    python -m tests.faults.bare [CASE ...]

Root, who may write anywhere, gives that right up for it (setpriv).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from holdfast.ledger import Ledger
from tests.faults import common
from tests.faults.common import ROOT, RUN

CELLS = 140_000
"""So many that loops are compiled for them."""
GAUSSIAN = ('mechanism = "generalized-laplace"\nepsilon = "1/2"', 'mechanism = "generalized-gaussian"\nrho = "1/10"')
CASES = ("no home", "a home that cannot be written", "a cache that cannot be written", "a cache that is a file", "no witness")
MEMORY_ONLY = ("in every process", "compiled in memory")
"""What is said where compiled loops cannot be kept: there is no folder for them, or it turns out not to be of use."""


class Bare:
    """A copy of the package that cannot be written, and a place to work in."""

    def __init__(self, folder: Path) -> None:
        self.site, self.closed, self.work = folder / "site", folder / "closed", folder / "work"
        shutil.copytree(ROOT / "src" / "holdfast", self.site / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
        self.closed.mkdir()
        (folder / "file").write_text("no folder")
        for path in (*self.site.rglob("*"), self.site, self.closed):
            path.chmod(path.stat().st_mode & ~0o222)

    def environment(self, case: str) -> dict[str, str]:
        closed = str(self.closed)
        made = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.site), "HOLDFAST_KEY": common.SECRET, "HOME": f"{closed}/none"}
        if case == "a home that cannot be written":
            made["HOME"] = closed
        elif case == "a cache that cannot be written":
            made["NUMBA_CACHE_DIR"] = f"{closed}/cache"
        elif case == "a cache that is a file":
            made["NUMBA_CACHE_DIR"] = f"{self.closed.parent}/file"
        return made

    def holdfast(self, case: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        rights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        words = [*rights, sys.executable, "-m", "holdfast", *arguments]
        return subprocess.run(words, cwd=self.work, env=self.environment(case), capture_output=True, text=True, timeout=300, check=False)

    def wrong(self, case: str) -> list[str]:
        """A release in this case: what is not as it must be."""
        shutil.rmtree(self.work, ignore_errors=True)
        rows = "".join(f"{number % 7},{number},{number % 11}\n" for number in range(CELLS))
        witness = "" if case == "no witness" else 'witness = "witness"\n'
        common.lay_out(self.work, RUN.replace("allow_exposed = 1\n", "").replace(*GAUSSIAN) + witness)
        (self.work / "counties.csv").write_text(f"state,county,people\n{rows}")
        (self.work / "witness").mkdir()
        done = self.holdfast(case, *common.RELEASE)
        place = self.work / "holdfast-ledger.sqlite"
        if case == "no witness":
            charged = place.exists() and Ledger.open(place).account(common.DATA).releases
            found = [] if done.returncode == 12 and not charged else [f"not refused before it was charged: {done.returncode}"]
            return [f"{case}: {problem}" for problem in found]
        found = [] if done.returncode == 0 else [f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"]
        if not any(words in done.stderr for words in MEMORY_ONLY):
            found.append("it was not said that loops are compiled in memory")
        if not found and self.holdfast(case, "verify", "out").returncode != 0:
            found.append("the output does not verify")
        return [f"{case}: {problem}" for problem in found]


def run(cases: tuple[str, ...] = CASES) -> dict[str, Any]:
    """Each case in a place of its own."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(Path(folder))
        wrong = [problem for case in cases for problem in bare.wrong(case)]
        bare.site.chmod(0o755)
        for path in bare.site.rglob("*"):
            path.chmod(0o755)
    return {"cases": len(cases), "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(run(tuple(sys.argv[1:]) or CASES)))
