"""Group `answers`: real-valued answers under linear invariants. Road deaths, counties, errors beside closed forms, low-order bits."""

from __future__ import annotations

import csv
import json
import math
import os
import resource
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import holdfast as hf
from benchmarks.low_order_bits import ALLOWED, Attack, attack, floating, on_the_grid
from benchmarks.report import NOT_RUN, Bar, Report, Row, Table, number
from benchmarks.timing import Steps, fresh_interpreter, load, machine
from holdfast.channels import Facts, Law
from holdfast.errors import HoldfastWarning
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.randomness import NoiseKey
from holdfast.research.subspace import floating_form, read_query
from holdfast.research.subspace.spaces import InvariantSpace, linear_sensitivities
from holdfast.tables.measure import AnswerGrid

Floats = NDArray[np.float64]

CENSUS = "0.192"
"""4 in all, of which .16 for counties, of which .3 for the population: the budget of [GGY22] section 5.1."""
STATES = ("Illinois", "Texas", "Georgia", "Virginia", "Kentucky", "Missouri", "Kansas", "North Carolina", "Iowa", "Tennessee", "Nebraska")
"""Illinois, and the ten other states with most counties: the paper does not name its ten."""
DEATHS_FILE = "fars2015_state_hour_group.csv"
CELL_VARIANCE = Fraction(299, 336)
"""(13 / 14) (23 / 24): the diagonal of the projection."""
FREE_DEATHS = 20 * 13 * 23
KEPT_DEATHS = (hf.margin("state", "hour"), hf.margin("state", "group"))
SUCCESS = 1e-9
"""The p-value below which an attack has succeeded."""
DOUBT = 5.0
"""Standard errors beyond which a figure misses its closed form: 6 in 10 million figures do so by chance."""

DEATHS = ("steps of", "variance of a cell", "closed form", "standard errors away", "median run", "5 %", "95 %", "seconds", "peak MiB")
COUNTIES = ("state", "counties", "sd", "closed form", "third of smallest", "of middle", "of largest", "slope on log size", "t")
ERRORS = ("mechanism, form", "closed form", "measured", "standard error", "standard errors away", "projected / this")
BITS = ("publication", "trials", "attacker speaks", "right", "allowed by epsilon", "p-value")


def shared(name: str) -> Path:
    """A file of the shared data; HOLDFAST_SHARED names the folder that holds data/."""
    folder = os.environ.get("HOLDFAST_SHARED")
    return (Path(folder) if folder else Path(__file__).parents[2] / "shared") / "data" / name


def road_deaths(path: Path) -> tuple[hf.Universe, NDArray[np.int64]]:
    """The 20 states with most deaths x 14 groups (day and area) x 24 hours."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["top20"] == "1"]
    columns = {
        "state": list(dict.fromkeys(row["state_fips"] for row in rows)),
        "group": list(dict.fromkeys(f"{row['day']} {row['area']}" for row in rows)),
        "hour": [str(hour) for hour in range(24)],
    }
    place = {name: {code: i for i, code in enumerate(codes)} for name, codes in columns.items()}
    deaths = np.zeros(tuple(map(len, columns.values())), dtype=np.int64)
    for row in rows:
        deaths[place["state"][row["state_fips"]], place["group"][f"{row['day']} {row['area']}"], place["hour"][row["hour"]]] = row["deaths"]
    return hf.Universe.product(columns), deaths.ravel()


def release_deaths(universe: hf.Universe, true: NDArray[np.int64], places: int, run: int) -> NDArray[np.int64]:
    """Gaussian noise of variance 1, projected: what is published, in steps of 2^-places."""
    with warnings.catch_warnings():
        # On whole numbers a sensitivity of 1 is a promise for nobody with the same margins, and that is told; here the variance counts.
        warnings.simplefilter("ignore", HoldfastWarning)
        made = hf.answer(
            true,
            mechanism=hf.ProjectedGaussian(rho="1/2"),
            universe=universe,
            keep=KEPT_DEATHS,
            sensitivity=1,
            places=places,
            on_grid=True,
            key=NoiseKey.for_tests(f"bench deaths {places} {run}"),
        )
    return np.asarray(made.table.counts)


def measured(places: int) -> None:
    """Print seconds and peak memory of one release; run in an interpreter of its own."""
    universe, true = road_deaths(shared(DEATHS_FILE))
    clock = time.process_time()
    release_deaths(universe, true, places, 0)
    print(json.dumps([time.process_time() - clock, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def death_squares(path: Path, repetitions: int, places: int) -> Floats:
    """The squared error of every cell in so many releases, one a row."""
    universe, true = road_deaths(path)
    published = np.array([release_deaths(universe, true, places, run) for run in range(repetitions)])
    return np.asarray((np.ldexp(published.astype(np.float64), -places) - true) ** 2)


def deaths(path: Path, repetitions: int, steps: Sequence[int]) -> list[Row]:
    """The shape of the paper's table of WiFi connections, released so many times."""
    rows = []
    for places in steps:
        seconds, memory = json.loads(fresh_interpreter(f"from benchmarks.answers import measured; measured({places})", small_parent=True))
        squares = death_squares(path, repetitions, places)
        found, spread = float(squares.mean()), math.sqrt(2 * FREE_DEATHS / repetitions) / squares.shape[1]
        away = (found - float(CELL_VARIANCE)) / spread
        each = np.quantile(squares.mean(axis=1), (0.5, 0.05, 0.95))
        figures = [f"{found:.5f}", f"{float(CELL_VARIANCE):.5f}", f"{away:+.2f}", *(f"{variance:.3f}" for variance in each)]
        rows.append(
            Row(f"2^-{places}" if places else "1", [*figures, number(seconds), number(memory)], [Bar("standard errors", abs(away), DOUBT)])
        )
    return rows


def counties_of(path: Path, runs: int) -> Iterator[tuple[str, NDArray[np.int64], Floats]]:
    """(state, true populations of its counties, their errors in so many runs): projected Laplace of scale 2 / epsilon, the total kept."""
    with path.open(newline="") as file:
        listed = list(csv.DictReader(file))
    for state in STATES:
        own = [row for row in listed if row["state"] == state]
        true = np.array([int(row["pop2010"]) for row in own], dtype=np.int64)
        universe = hf.Universe.product({"county": [row["county_fips"] for row in own]})
        made = [
            hf.answer(
                true,
                mechanism=hf.ProjectedLaplace(epsilon=CENSUS),
                universe=universe,
                keep=[hf.total()],
                sensitivity=2,
                on_grid=True,
                key=NoiseKey.for_tests(f"bench {state} {run}"),
            ).table.counts
            for run in range(runs)
        ]
        yield state, true, (np.array(made) - true).astype(np.float64)


def log_sizes(true: NDArray[np.int64]) -> Floats:
    """Logarithms of populations less their mean."""
    size = np.log(true)
    return np.asarray(size - size.mean())


def _county_row(state: str, true: NDArray[np.int64], error: Floats) -> Row:
    n, a = len(true), math.exp(-float(Fraction(CENSUS)) / 2)
    closed = math.sqrt((1 - 1 / n) * 2 * a / (1 - a) ** 2)
    by_size = [float(part.mean()) for part in np.array_split(error[:, np.argsort(true)], 3, axis=1)]
    size = log_sizes(true)
    slopes = error @ size / (size @ size)
    slope, spread = float(slopes.mean()), closed / math.sqrt(len(error) * (size @ size))
    figures = [str(n), f"{math.sqrt((error**2).mean()):.2f}", f"{closed:.2f}", *(f"{mean:+.2f}" for mean in by_size), f"{slope:+.3f}"]
    return Row(state, [*figures, f"{slope / spread:+.2f}"], [Bar("t", abs(slope / spread), DOUBT)])


def error_rows(trials: int) -> list[Row]:
    """A linear query of 12 answers about 20 kinds of people, 2 of its sums kept: err = (n - n_c) c^2 Delta^2, in both forms."""
    random = np.random.default_rng(1)
    matrix = random.integers(0, 3, (12, 20)).tolist()
    histogram = random.integers(0, 50, 20)
    kept = [[1] * 12, [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]]
    values, query = read_query(matrix, histogram, keep=kept)
    epsilon, delta = "1/2", "1/1000000"
    mechanisms: list[SubspaceMechanism] = [
        hf.ProjectedLaplace(epsilon=epsilon),
        hf.ExtendedLaplace(epsilon=epsilon),
        hf.ProjectedGaussian(epsilon=epsilon, delta=delta),
        hf.ExtendedGaussian(epsilon=epsilon, delta=delta),
    ]
    first: dict[str, float] = {}
    rows = []
    for mechanism in mechanisms:
        floating = floating_form(mechanism, query)
        squares = ((floating.answers(values, trials, np.random.default_rng(2)) - values) ** 2).sum(axis=1)
        rows.append(_error_row(f"{mechanism.name}, float", floating.expected_squared_error, squares, first))
        law = Law(mechanism.channel(linear_facts(matrix, kept, mechanism)))
        with NoiseKey.for_tests(f"bench errors {mechanism.name}") as key:
            squares = (law.sample(trials, key).astype(np.float64) ** 2).sum(axis=1)
        rows.append(_error_row(f"{mechanism.name}, grid", float(law.covariance().diagonal().sum()), squares, first))
    return rows


def linear_facts(matrix: list[list[int]], kept: list[list[int]], mechanism: SubspaceMechanism) -> Facts:
    """Public facts of whole answers to a linear query."""
    sensitivities = linear_sensitivities(matrix, InvariantSpace(kept))
    l2_squared = sensitivities.projected_l2_squared if mechanism.of_projection else sensitivities.l2_squared
    said: dict[str, Any] = {"l1": sensitivities.l1} if mechanism.norm == "l1" else {"l2_squared": l2_squared}
    grid = AnswerGrid(0, **said, neighbours="replace-one", on_grid=True)
    universe = hf.Universe.product({"answer": [str(i) for i in range(len(matrix))]})
    return replace(Facts.of(universe, [hf.linear(kept)]), measure=grid)


def _error_row(name: str, closed: float | None, squares: Floats, first: dict[str, float]) -> Row:
    assert closed is not None
    found, spread = float(squares.mean()), float(squares.std(ddof=1)) / math.sqrt(len(squares))
    projected = first.setdefault(name.split("-")[1], closed)
    away = (found - closed) / spread
    bars = [Bar("standard errors", abs(away), DOUBT), Bar("projected / this", projected / closed, 1.0, at_least=True)]
    return Row(
        name,
        [number(closed), number(found), number(spread), f"{away:+.2f}", f"{projected / closed:.3f}"],
        bars[: 2 if "gaussian" in name else 1],
    )


def bits(trials: int) -> list[Row]:
    """Who was counted where, by the lowest bits of one published answer; epsilon 1, three answers with their total kept."""
    secrets = np.random.default_rng(3).integers(0, 2, 2 * trials)
    ways = {"floating point": floating, "grid of 2^-10": on_the_grid}
    return [_bits_row(name, trials, attack(way(secrets, 4), secrets), way is on_the_grid) for name, way in ways.items()]


def _bits_row(name: str, trials: int, found: Attack, protected: bool) -> Row:
    figures = [f"{trials:,}", f"{found.spoken:,}", f"{found.right:,}", f"{ALLOWED:.3f}", f"{found.p_value:.2g}"]
    return Row(name, figures, [Bar("p-value", found.p_value, SUCCESS, at_least=protected)])


def run(*, repetitions: int = 50, steps: Sequence[int] = (0, 10), runs: int = 10, trials: int = 20_000) -> Report:
    """Measure everything."""
    load_before = load()
    fars, census = shared(DEATHS_FILE), shared("county_pop_2010.csv")
    with Steps("answers", 4) as progress:
        of_deaths = deaths(fars, repetitions, steps) if fars.is_file() else []
        progress.done("answers: road deaths")
        of_counties = [_county_row(*found) for found in counties_of(census, runs)] if census.is_file() else []
        progress.done("answers: counties")
        of_errors = error_rows(trials)
        progress.done("answers: errors")
        of_bits = bits(trials)
        progress.done("answers: low-order bits")
    tables = (
        Table(
            "Road deaths, 20 states x 14 groups x 24 hours, both margins of every state kept: projected Gaussian of variance 1",
            DEATHS,
            of_deaths,
        ),
        Table(
            f"Counties, state totals kept: projected Laplace of scale 2 / {CENSUS}, mean errors of {runs} runs by size",
            COUNTIES,
            of_counties,
        ),
        Table("E|y - A x|^2 of a linear query of 12 answers, 2 sums kept", ERRORS, of_errors),
        Table("An attacker who looks at low-order bits", BITS, of_bits),
    )
    about = f"{machine()}; load {load_before} before, {load()} after"
    missing = [] if of_deaths and of_counties else [f"Road deaths or counties: {NOT_RUN}, no file of the shared data."]
    return Report("Benchmark group answers", about, tables, [*_notes(repetitions, trials), *missing])


def _notes(repetitions: int, trials: int) -> list[str]:
    return [
        f"Road deaths: {repetitions} releases by `hf.answer`. 740 independent sums leave 5,980 of 6,720 dimensions free, in 20 grids of 14 "
        "x 24; no dense matrix is made. The sum of all squared errors is chi-square in the continuous law, which gives the standard error. "
        "The paper's 0.88 (0.86 to 0.91) over 50 runs fits these variances of a run, not the standard deviations that it names. Seconds of "
        "processor time and peak memory: one release, plan, checks and card included, in an interpreter of its own.",
        "Counties: error is published less true population; the closed form is that of the projection before rounding. Slope: of errors on "
        "the logarithm of the population, t in standard errors of the closed form. [GGY22] found a significant negative slope in 11 of 48 "
        "states in the demonstration data of the Census Bureau. The paper does not name its ten states: these are the ten with most "
        "counties beside Illinois.",
        f"Errors: {trials:,} draws of the noise. The closed forms are (n - n_c) c^2 Delta^2 in floating point, and the trace of the "
        "lattice law's covariance on the grid, where a Gaussian is calibrated through zCDP and not analytically.",
        "Low-order bits: as many trials again teach the attacker. Which of two answers is true is a fair coin; under pure epsilon = 1 no "
        "guess is right with a probability above e / (1 + e), whatever it is made from. The p-value is that of so many right guesses under "
        "this bound.",
    ]
