"""Shares for levels: a table shaped like one for redistricting, drawn once, its error by level beside the closed form.

State, 20 counties, 400 tracts, 1,200 block groups, 6,000 blocks, by group quarters, voting age, hispanic and race: 2,016 numbers a unit.
The population is made up; the state's total is kept. Shares and rho are about those of a published census: each weight is 10^4 / the
variance that one of its measurements had, rounded. Errors are root mean squares over all units and numbers.
"""

from __future__ import annotations

import itertools
import json
import resource
import time
from fractions import Fraction
from typing import Any

import numpy as np

import holdfast as hf
from benchmarks.report import Bar, Row, Table, number
from benchmarks.timing import best_of, fresh_interpreter
from holdfast.channels.layout import LevelLayout
from holdfast.lattices.shapes import Units
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, LevelGaussian, Sequential
from holdfast.randomness import NoiseKey
from holdfast.research.synth import synthesize
from holdfast.samplers.table import choose

UNITS = {"state": 1, "county": 20, "tract": 400, "group": 1_200, "block": 6_000}
BY = ("gq", "voting_age", "hispanic", "race")
BOTH = ("hispanic", "race")
WEIGHTS: dict[str, dict[Any, int]] = {
    "state": {BOTH: 26, "detailed": 504},
    "county": {"total": 2128, BOTH: 19, "detailed": 513},
    "tract": {"total": 1637, BOTH: 2020, "detailed": 504},
    "group": {"total": 3257, BOTH: 2016, "detailed": 2463},
    "block": {"total": 1, BOTH: 5, "detailed": 991},
}
WHOLE = sum(weight for margins in WEIGHTS.values() for weight in margins.values())
SHARES = {level: {margin: Fraction(weight, WHOLE) for margin, weight in margins.items()} for level, margins in WEIGHTS.items()}
VARIANCE = 10**4
"""Of a measurement of weight one."""
RHO = Fraction(WHOLE, 2 * VARIANCE)

INSIDE = {"total": (1, 2, 3), " x ".join(BOTH): (1, 2), " x ".join(BY): ()}
"""Margins that are shown, with the axes that are summed: group quarters, voting age, hispanic by race."""

HEADERS = ("level", "units", "margin", "measured alone", "closed form", "in one draw")
TIMES = ("step", "wall s", "CPU s")


TRACTS = {"state": 51, "county": 3_143, "tract": 73_057}
"""A census' numbers of units; which lies where is made up. State totals are kept; counties and tracts have half of rho each."""
HALVES = LevelGaussian(Fraction(1, 400), ((1, 0, Fraction(1, 2)), (0, 0, Fraction(1, 2))))
MANY_LEAVES = 10**7
MOST_DRAW, MOST_PLANNED, MOST_MANY = 0.05, 0.5, 2.0
TRACT_HEADERS = ("leaves", "step", "seconds")
SIX_HEADERS, MOST_SIX = ("what", "cells", "step", "CPU s", "ns/cell"), 1.5


def tract_table(units: dict[str, int] = TRACTS, many: int = MANY_LEAVES, rounds: int = 3) -> Table:
    """Tracts under counties under states: plan with the first draw, and draws that are prepared, here and of one large state."""
    universe = hf.Universe.product({"tract": geography(units)})
    mechanism = hf.GeneralizedGaussian(rho=HALVES.rho, levels={"county": "1/2", "tract": "1/2"}, per="distance")
    large = choose(one_state(many), HALVES).noise
    numbers = itertools.count()

    def planned() -> Any:
        law = hf.plan(universe, [hf.margin("state")], mechanism).law
        law.sample(1, hf.NoiseKey.for_tests(next(numbers)))
        return law

    def draw_large() -> Any:
        with hf.NoiseKey.for_tests(next(numbers)).stream("large") as words:
            return large.draw(1, words)

    law = planned()
    draw_large()
    best = best_of(rounds, {"both": planned, "draw": lambda: law.sample(1, hf.NoiseKey.for_tests(next(numbers))), "large": draw_large})
    told = [
        (units["tract"], "prepared draw", best["draw"], MOST_DRAW),
        (units["tract"], "plan and draw", best["both"], MOST_PLANNED),
        (many, "prepared draw, one state", best["large"], MOST_MANY),
    ]
    rows = [Row(f"{leaves:,}", (step, f"{seconds:.3f}"), (Bar("s", seconds, most),)) for leaves, step, seconds, most in told]
    return Table("Half of rho for counties, half for tracts", TRACT_HEADERS, rows)


def six_columns(sizes: tuple[int, ...] = (10**5, 10**6, 10**7)) -> Table:
    """Plan and first draw, with shares for levels of six columns and with levels of them kept; processor time of one run each."""
    rows = []
    for kind in ("shares for levels", "kept levels, sequential law"):
        least: dict[str, float] = {}
        for cells in sizes:
            found = json.loads(fresh_interpreter(f"from benchmarks.levels_weighted import measured_six; measured_six({cells}, {kind!r})"))
            for step, seconds in found["steps"]:
                per_cell = seconds / found["cells"] * 1e9
                bars = (Bar("per cell", per_cell / least[step], MOST_SIX),) if cells > sizes[1] else ()
                least[step] = per_cell
                rows.append(Row(kind, (f"{found['cells']:,}", step, f"{seconds:.2f}", number(per_cell)), bars))
    return Table("Six columns of levels", SIX_HEADERS, rows)


def measured_six(cells: int, kind: str) -> None:
    """Plan a table of about so many cells and draw it twice; print the processor time of each step as JSON."""

    def tree(name: str, groups: int, each: int) -> hf.Hierarchy:
        above: dict[str, str | None] = {f"{name} {i}": None for i in range(groups)}
        above |= {f"{name} {i}.{j}": f"{name} {i}" for i in range(groups) for j in range(each)}
        return hf.Hierarchy(above, levels=[f"{name} group", f"own {name}"])

    side = max(2, round((cells / 2400) ** 0.5))
    trees: dict[str, Any] = {"place": tree("place", side, side), "age": tree("age", 5, 2), "school": tree("school", 3, 2)}
    universe = hf.Universe.product({**trees, "sex": ["F", "M"], "born": list("abcd"), "work": list("abcde")})
    steps, began = [], time.process_time()
    if kind == "shares for levels":
        shares: dict[str, Any] = {
            "place group": {("sex", "age"): "1/8", ("school", "born"): "1/8"},
            "own place": {"total": "1/4", ("age", "sex"): "1/4", "detailed": "1/4"},
        }
        keep, mechanism = [hf.margin("place group")], hf.GeneralizedGaussian(rho="1/10", levels=shares, per="distance")
    else:
        keep = [hf.margin("place group"), hf.margin("age group", "sex"), hf.margin("school group"), hf.margin("born"), hf.margin("work")]
        mechanism = hf.GeneralizedGaussian(rho="1/50", per="distance")
    channel = hf.plan(universe, keep, mechanism).drawing.channel
    steps.append(("plan", time.process_time() - began))
    assert isinstance(channel.target, LevelGaussian | Gaussian)
    target = channel.target if isinstance(channel.target, LevelGaussian) else Sequential(channel.target)
    blocks = [(choose(shape, target).noise, count) for shape, count in channel.shapes().items()]
    for step in ("first draw", "prepared draw"):
        began = time.process_time()
        with NoiseKey.for_tests("six").stream(step) as words:
            for sampler, count in blocks:
                sampler.draw(count, words)
        steps.append((step, time.process_time() - began))
    print(json.dumps({"cells": len(universe), "steps": steps}))


def one_state(leaves: int) -> Units:
    """One total kept, a county for about a thousand leaves, of uneven sizes."""
    counties = max(2, leaves // 1000)
    sizes = 1 + np.random.default_rng(2).multinomial(leaves - counties, [1 / counties] * counties)
    return Units(Tree(((counties,), tuple(sizes.tolist()))), (), ((0,), (), ()))


def tables() -> tuple[Table, Table]:
    """(seconds of each step and peak memory, standard deviations by level and margin), from an interpreter of its own."""
    found = json.loads(fresh_interpreter("from benchmarks.levels_weighted import measured; measured()", small_parent=True))
    steps = [Row(name, (f"{wall:.2f}", f"{processor:.2f}")) for name, wall, processor in found["steps"]]
    steps.append(Row("peak memory", (f"{found['peak'] / 2**30:.2f} GiB", "")))
    errors = [Row(level, (f"{units:,}", margin, *map(_shown, values))) for level, units, margin, *values in found["errors"]]
    return Table(f"A table for redistricting, {found['cells']:,} cells", TIMES, steps), Table("Its standard deviations", HEADERS, errors)


def measured(units: dict[str, int] = UNITS, people: int = 240_000) -> None:
    """Make the population, plan, draw, release; print it as JSON."""
    steps: list[tuple[str, float, float]] = []
    began = time.perf_counter(), time.process_time()

    def done(name: str) -> None:
        nonlocal began
        now = time.perf_counter(), time.process_time()
        steps.append((name, now[0] - began[0], now[1] - began[1]))
        began = time.perf_counter(), time.process_time()

    population = synthesize(people, "redistricting", states=1, blocks=units["block"])
    counts = population.counts("block", by=BY).column("count").to_numpy()
    codes = {column: population.counts("state", by=[column]).column(column).combine_chunks().dictionary.to_pylist() for column in BY}
    tree = geography(units)
    table = hf.Table(hf.Universe.product({"block": tree, **codes}), counts)
    done("population")
    mechanism = hf.GeneralizedGaussian(rho=RHO, levels=SHARES, per="distance")
    plan = hf.plan(table, [hf.total()], mechanism)
    channel = plan.drawing.channel
    assert isinstance(channel.layout, LevelLayout) and isinstance(channel.target, LevelGaussian)  # noqa: PT018
    closed = {(level, margin): (len(all_units), _mean(all_units)) for level, margin, all_units in channel.layout.deviations(channel.target)}
    done("plan, with all standard deviations")
    plan.law.sample(1, hf.NoiseKey.for_tests("first"))
    done("first draw")
    noise = plan.law.sample(1, hf.NoiseKey.for_tests("second"))[0]
    done("prepared draw")
    del plan, channel
    release = hf.release(table, [hf.total()], mechanism, key=hf.NoiseKey.for_tests("third"), release_id="redistricting")
    done("release in memory, planned anew")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert int(release.table.counts.sum()) == int(counts.sum())
    errors = [
        (level, closed[level, margin][0], margin, alone(level, margin), closed[level, margin][1], spread(noise, tree, level, margin))
        for level in units
        for margin in INSIDE
    ]
    print(json.dumps({"steps": steps, "cells": len(table), "peak": peak, "errors": errors}))


def alone(level: str, margin: str) -> float | None:
    """The standard deviation of a measurement by itself; None where there is none."""
    names: dict[str, Any] = dict(zip(INSIDE, ("total", BOTH, "detailed"), strict=True))
    weight = WEIGHTS[level].get(names[margin])
    return None if weight is None else (VARIANCE / weight) ** 0.5


def _shown(value: float | None) -> str:
    return "" if value is None else number(value)


def spread(noise: Any, tree: hf.Hierarchy, level: str, margin: str) -> float:
    """The root mean square of a margin's noise over the units of a level."""
    by_block = noise.reshape(len(tree.leaves()), 8, 2, 126)
    summed = by_block.sum(axis=INSIDE[margin]) if INSIDE[margin] else by_block
    sizes = [len(tree.leaves(unit)) for unit in tree.level("own" if level == "block" else level)]
    found = np.add.reduceat(summed, np.cumsum([0, *sizes[:-1]]), axis=0)
    return _mean(found.astype(np.float64))


def _mean(values: Any) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


def geography(units: dict[str, int]) -> hf.Hierarchy:
    """Units of five levels, uneven: every unit has a child, the others go anywhere."""
    rng, parents, above = np.random.default_rng(1), dict[str, str | None](), [""]
    for level, count in units.items():
        sizes = 1 + rng.multinomial(count - len(above), [1 / len(above)] * len(above))
        names = [f"{level} {number}" for number in range(count)]
        parents |= dict(zip(names, np.repeat(np.array(above, dtype=object), sizes).tolist(), strict=True))
        above = names
    return hf.Hierarchy({code: parent or None for code, parent in parents.items()}, levels=[*list(units)[:-1], "own"])
