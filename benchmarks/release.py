"""Group `release`: exact draws under kept totals, how they grow, real tables from file to verified folder, and the whole command."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import metadata
from itertools import count, islice
from pathlib import Path

from benchmarks import release_cases as cases
from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Call, Steps, best_of, fresh_interpreter, load, machine
from holdfast.randomness import NoiseKey

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
GRIDS = ((100, 100), (1000, 1000), (100, 100, 100))
GROWS = (((10**6,), (10**7,)), ((1000, 1000), (3000, 3000)))
"""A pair of sizes for one sum and one for grids."""
MOST_COMMAND = 5
ABSENT = "absent"

PARTS = ("read", "plan", "release", "write", "verify")
REAL = ("table", "cells", "kept totals", "noise", *(f"{part} s" for part in PARTS), "all s", "without read s")
COMMAND = ("command", "wall s", "CPU s", "imports wall s", "imports CPU s", "× imports", "CPU × imports")
IMPORTS = "import numpy, pyarrow, duckdb, numba"

_CHILD = """
import json, shutil, time
import holdfast as hf
from holdfast.publication.order import Order
from holdfast.publication.pipeline import draw

def publish(path, folder):
    marks = [time.perf_counter()]
    table = hf.Table.from_counts(path, {cells!r}, {count!r})
    marks.append(time.perf_counter())
    plan = hf.plan(table, [hf.margin({keep!r})], hf.{mechanism})
    fields = plan.to_fields()
    marks.append(time.perf_counter())
    drawn = draw(plan, table, Order("bench"))
    marks.append(time.perf_counter())
    drawn.save(folder)
    marks.append(time.perf_counter())
    found = hf.verify(folder)
    marks.append(time.perf_counter())
    shutil.rmtree(folder)
    return found, [after - before for before, after in zip(marks, marks[1:])]

publish({warm!r}, {folder!r})
found, seconds = publish({path!r}, {folder!r})
print(json.dumps([found.cells, found.totals, seconds]))
"""

_RUN_FILE = """\
[table]
source = "counties.csv"
cells = ["state_fips", "county_fips"]
count = "pop2010"
public = true

[keep]
margins = [["state_fips"]]

[release]
id = "{name}"
allow_exposed = 1
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@dataclass(frozen=True)
class RealCase:
    """A file of the shared data, the margin kept, the mechanism; no file: no path."""

    name: str
    path: Path | None
    cells: Sequence[str]
    keep: str
    mechanism: str

    @property
    def noise(self) -> str:
        name, _, budget = self.mechanism.removesuffix(", per='distance')").removeprefix("Generalized").partition("(")
        return f"{name}, {budget.replace('=', ' ')}".replace("'", "")

    def program(self, folder: Path) -> str:
        """A program that releases a few rows of the file, to load libraries, and then, timed, the file."""
        assert self.path is not None
        few = folder / f"few rows of {self.path.name}"
        with self.path.open(encoding="utf-8") as lines:
            few.write_text("".join(islice(lines, 200)), encoding="utf-8")
        given = {"cells": list(self.cells), "count": "pop2010", "keep": self.keep, "mechanism": self.mechanism}
        return _CHILD.format(**given, warm=str(few), path=str(self.path), folder=str(folder / "published"))


def real_cases() -> list[RealCase]:
    """Counties under state totals, tracts under county totals; pure, and with as much Gaussian noise as the demo has."""
    counties, tracts = _shared("county_pop_2010.csv"), _shared("tract_pop_2010.csv")
    mechanisms = ("GeneralizedLaplace(epsilon='1/4', per='distance')", "GeneralizedGaussian(rho='1/200', per='distance')")
    return [
        *(RealCase("counties of 2010", counties, ("state_fips", "county_fips"), "state_fips", made) for made in mechanisms),
        *(RealCase("tracts of 2010", tracts, ("state_fips", "county_fips", "tract_geoid"), "county_fips", made) for made in mechanisms),
    ]


def _shared(name: str) -> Path | None:
    shared = os.environ.get("HOLDFAST_SHARED")
    path = (Path(shared) if shared else Path(__file__).parents[2] / "shared") / "data" / name
    return path if path.is_file() else None


def publish(case: RealCase, rounds: int, folder: Path, done: Call) -> Row:
    """From the file to a verified folder, by parts; the round with the least time in all."""
    if case.path is None:
        done()
        return Row(case.name, (ABSENT, "", case.noise, *[""] * (len(REAL) - 4)))
    program = case.program(folder)
    runs = [json.loads(fresh_interpreter(program)) for _ in range(rounds)]
    done()
    cells, totals, seconds = min(runs, key=lambda run: sum(run[2]))
    times = (*seconds, sum(seconds), sum(seconds[1:]))
    return Row(case.name, (f"{cells:,}", f"{totals:,}", case.noise, *(f"{value:.3f}" for value in times)))


class Command:
    """The whole `holdfast release` as a process of its own, and a process that only imports what it builds on.

    Python keeps its bytecode in a folder of ours: whether it may beside the source depends on how the package was installed.
    """

    def __init__(self, counties: Path, folder: Path) -> None:
        self._folder = folder
        shutil.copyfile(counties, folder / "counties.csv")
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment = {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self._numbers = count()
        self.processor: dict[str, list[float]] = {"release": [], "imports": []}

    def release(self) -> None:
        number = next(self._numbers)  # an id is drawn once: every release has a new one, recorded in the ledger beside the run file
        output = f"out {number}"
        (self._folder / "run.toml").write_text(_RUN_FILE.replace("{name}", f"bench-{number}"), encoding="utf-8")
        self._run("release", "-m", "holdfast.cli.commands", "release", "run.toml", "-o", output)
        shutil.rmtree(self._folder / output)

    def imports(self) -> None:
        self._run("imports", "-c", IMPORTS)

    def _run(self, name: str, *arguments: str) -> None:
        before = _children_seconds()
        subprocess.run([sys.executable, *arguments], cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL, check=True)
        self.processor[name].append(_children_seconds() - before)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(rounds: int, folder: Path, done: Call) -> Row:
    """The command on the county file against the imports, in turns, after one run of each that fills the caches."""
    counties, name = _shared("county_pop_2010.csv"), "`holdfast release`, counties of 2010"
    if counties is None:
        done()
        return Row(name, (ABSENT, *[""] * (len(COMMAND) - 2)), (Bar("× imports", None, MOST_COMMAND),))
    contender = Command(counties, folder)
    calls: Mapping[str, Call] = {"release": contender.release, "imports": contender.imports}
    best_of(1, calls)
    best = best_of(rounds, calls, clock=time.perf_counter)
    done()
    processor = {which: min(seconds) for which, seconds in contender.processor.items()}
    ratio, ratio_processor = best["release"] / best["imports"], processor["release"] / processor["imports"]
    times = (best["release"], processor["release"], best["imports"], processor["imports"])
    figures = (*(f"{value:.3f}" for value in times), number(ratio), number(ratio_processor))
    return Row(name, figures, (Bar("× imports", ratio, MOST_COMMAND),))


def run(
    *,
    sizes: Sequence[int] = SIZES,
    grids: Sequence[tuple[int, ...]] = GRIDS,
    grows: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = GROWS,
    rounds: int = 15,
    real_rounds: int = 3,
    command_rounds: int = 7,
    draws: int = cases.SMALL_DRAWS,
) -> Report:
    """Measure everything; files are made in a temporary folder that is removed."""
    load_before = load()
    one_sum, grid, real = cases.one_sum_settings(sizes), cases.grid_settings(grids), real_cases()
    pairs = _growth_settings(grows)
    total = len(one_sum) + len(grid) + len(pairs) + len(real) + 1 + len(cases.SMALL_TABLES)
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as made,
        Steps("release", total) as steps,
        NoiseKey.for_tests("bench") as key,
    ):

        def done(what: str) -> Callable[[], None]:
            return lambda: steps.done(f"release: {what}")

        folder = Path(made)
        # Processes of their own first: what this one holds later could slow them down.
        whole = command(command_rounds, folder, done("the whole command"))
        published = [publish(case, real_rounds, folder, done(case.name)) for case in real]
        cases.warm(key.derive("warm"))
        sums = [cases.measure(setting, rounds, key, done(setting.name)) for setting in one_sum]
        tables = [cases.measure(setting, rounds, key, done(setting.name)) for setting in grid]
        growing = key.derive("growth")
        grown = [cases.growth(small, large, rounds, growing, done(f"{small.name}, growth")) for small, large in pairs]
        small = [cases.small_laplace(table, rounds, draws, key, done(table.name)) for table in cases.SMALL_TABLES]
    shown = (
        Table("One kept total", cases.HEADERS, sums),
        Table("Grids, sums along every axis kept", cases.HEADERS, tables),
        Table("Growth", cases.GROWTH, grown),
        Table("From file to verified folder", REAL, published),
        Table("The whole command", COMMAND, [whole]),
        Table("Laplace on small tables, epsilon 1/4", cases.SMALL, small),
    )
    packages = ", ".join(f"{package} {metadata.version(package)}" for package in ("duckdb", "pyarrow", "scipy"))
    about = f"{machine()}; {packages}; load {load_before} before, {load()} after"
    return Report("Benchmark group release", about, shown, _notes(rounds, real_rounds, command_rounds, draws))


def _growth_settings(
    grows: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
) -> list[tuple[cases.Setting, cases.Setting]]:
    """Both laws for one sum, the Gaussian for grids."""
    out = []
    for small, large in grows:
        made = [cases.Setting("Gaussian", Fraction(100), small, 20)]
        if len(small) == 1:
            made.insert(0, cases.Setting("Laplace", Fraction(1, 4), small, 5))
        out += [(setting, replace(setting, shape=large)) for setting in made]
    return out


def _notes(rounds: int, real_rounds: int, command_rounds: int, draws: int) -> list[str]:
    return [
        f"Draws: one thread for every contender. Contenders of a row run in turns; each figure is processor time, the best of {rounds} "
        f"rounds ({cases.fewer(rounds, cases.MANY_CELLS + 1)} above {cases.MANY_CELLS:,} cells). × is our time over the other's, so less "
        f"is better. Bars hold from {cases.JUDGED_CELLS:,} cells up; blocks below {cases.CALL_CELLS:,} cells are drawn several times a "
        "call.",
        "ours: `sampler.draw(1, words)`, one draw of the whole block, per cell, of the prepared sampler that a release would choose; "
        "allocating the result, and keystream from an open stream, are included. independent: `DiscreteLaplace(1/epsilon)` or "
        "`DiscreteGaussian(sigma_squared)`, `.draw(cells, words)` likewise. NumPy: `np.rint(default_rng().normal(0, scale, cells))"
        ".astype(np.int64)`, neither exact nor secret, with scale 1/epsilon or sigma.",
        "first: choosing the sampler and its first draw, once; compiled code is loaded beforehand, tables of independent laws may be there "
        f"from rows before. `{cases.REFUSED}`: Holdfast refuses the law on this block before drawing, so there is nothing to time.",
        "Growth: as many cells drawn in small blocks as in one large block, in turns; × per cell is the time of a cell in the large block "
        f'over one in the small. The bar of {cases.MOST_PER_CELL:g} is our own reading of "linearly". Beside it the same for independent '
        "draws, which shows what fresh memory alone costs.",
        f"From file to verified folder: wall time, the best of {real_rounds} processes by their sum; each has loaded libraries by "
        "releasing the first rows of the file, and loads compiled code where the whole file needs it. read: `Table.from_counts`. plan: "
        "`hf.plan` with all its figures. release: drawing, adding, checking every total. write: `save`, synced to disk. verify: "
        "`hf.verify`. Counties under state totals, tracts under county totals, from the shared data; "
        f"`{ABSENT}` where there is none (HOLDFAST_SHARED names the folder that holds data/).",
        "The whole command: `holdfast release run.toml -o out` on the county file (epsilon 1/2 a person) against "
        f'`python -c "{IMPORTS}"`, each a process of its own, in turns; the best of {command_rounds}, wall time for the bar, processor '
        "time (all threads) beside it. Both run once before, which fills Numba's cache and a folder for Python's bytecode.",
        f"Small tables: `law.sample({draws:,})` under a new label each round, streams opened, per draw; draw(1): one call of its sampler "
        f"on an open stream. Means are over all {(rounds + 1) * draws:,} draws, s.e. their standard errors, exact the values "
        "of [theory T52]; no bar.",
    ]
