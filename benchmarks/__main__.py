"""python -m benchmarks [GROUP]: measure, print, and write benchmarks/results/GROUP.md. Bars never fail the run; errors do, and in the
group `scale` a stage that is slower than on the page before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import answers, cellkey, chains, conditional, laplace, lattice, levels, noise, pages, release, scale, subspace
from benchmarks.report import Report

GROUPS: Mapping[str, Callable[[], Report]] = {
    "noise": noise.run,
    "lattice": lattice.run,
    "levels": levels.run,
    "release": release.run,
    "scale": scale.run,
    "pages": pages.run,
    "chains": chains.run,
    "laplace": laplace.run,
    "conditional": conditional.run,
    "cellkey": cellkey.run,
    "subspace": subspace.run,
    "answers": answers.run,
}
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None, groups: Mapping[str, Callable[[], Report]] = GROUPS, results: Path = RESULTS) -> None:
    """Run one group, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, print, and write benchmarks/results/GROUP.md.")
    parser.add_argument("group", nargs="?", default="all", choices=[*groups, "all"], help="the group to run (default: all)")
    chosen = parser.parse_args(arguments).group
    console = Console()
    for name in groups if chosen == "all" else [chosen]:
        report = groups[name]()
        results.mkdir(exist_ok=True)
        (results / f"{name}.md").write_text(report.markdown(), encoding="utf-8")
        report.show(console)


if __name__ == "__main__":
    main()
