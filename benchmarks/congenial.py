"""Figure 1 of [GM20]: how far four ways of publishing a 2 x 23 table are from it, in l1 and l2.

    python -m benchmarks.congenial [FIGURE.svg]     prints the table; writes the box plots

Twenty tables of independent counts from NumPy's negative_binomial(100, .95), mean 5.26, variance 5.54 (the paper's "NegBin(100, .05)"), 100
releases of each. Kept: the total, the women, people of voting age; counts of zero or more.

    raw, epsilon 1          two-sided geometric noise on every cell
    corrected, epsilon 1    the same releases, moved to the nearest table of numbers of zero or more with the kept totals (l2)
    conditional, .5         the noise at epsilon_0 = .5 given the kept totals and bounds: hf.Conditional at epsilon 1
    raw, .5                 two-sided geometric noise at epsilon .5

The distances say nothing about who is better: the four have different budgets, that of the corrected one is undetermined between tables
with other totals ([theory T60]).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import holdfast as hf
from holdfast.engines.local import run_task
from holdfast.research.baselines import nonnegative_l2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AGES = [f"{k:02d}" for k in range(23)]
MINORS = 4
"""Age groups below 18."""
WAYS = ("raw, epsilon 1", "corrected, epsilon 1", "conditional, .5", "raw, .5")
TABLES, RELEASES = 20, 100
SEED = 2020


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of every release: way x table x release."""

    l1: Floats
    l2: Floats

    def averages(self, norm: str) -> Floats:
        """Over the releases of each table: way x table. What the figure shows."""
        found: Floats = getattr(self, norm).mean(axis=2)
        return found


def universe() -> hf.Universe:
    return hf.Universe.product({"sex": ["F", "M"], "age": AGES})


def kept() -> list[hf.invariants.constraints.Constraint]:
    return [hf.margin("sex"), hf.subset("age", codes=AGES[MINORS:])]


def simulated_tables(tables: int = TABLES, seed: int = SEED) -> Ints:
    """The confidential tables of the paper's simulation, one a row."""
    return np.random.default_rng(seed).negative_binomial(100, 0.95, size=(tables, 2 * len(AGES))).astype(np.int64)


def distances(truth: Ints, releases: int = RELEASES, seed: int = SEED) -> Distances:
    """Of so many releases of each table, in each of the four ways."""
    rows = hf.lattice(universe(), kept())
    matrix = rows.matrix.toarray()
    drawing = hf.plan(universe(), kept(), hf.Conditional(epsilon=1, per="distance")).drawing
    (task,) = drawing.channel.tasks()
    errors = np.empty((len(WAYS), len(truth), releases, truth.shape[1]))
    with hf.NoiseKey.for_tests(seed) as key:
        for number, x in enumerate(truth):
            for way, scale in ((0, "1"), (3, "2")):
                drawn = hf.DiscreteLaplace(scale).sample(releases * x.size, key.derive("raw", scale, number))
                errors[way, number] = drawn.reshape(releases, -1)
            errors[1, number] = [nonnegative_l2(x + z, matrix, matrix @ x, epsilon=1).values - x for z in errors[0, number]]
            with key.stream("conditional", number) as words:
                published = run_task(drawing, task, np.repeat(x[task.cells], releases, axis=0), None, words)
            errors[2, number][:, task.cells[0]] = published - x[task.cells]
    return Distances(np.abs(errors).sum(axis=3), np.sqrt((errors**2).sum(axis=3)))


def figure(found: Distances) -> str:
    """Two rows of box plots as one SVG."""
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="640" height="420" font-family="sans-serif" font-size="12">']
    for panel, norm in enumerate(("l1", "l2")):
        averages, top = found.averages(norm), 20 + 200 * panel
        least, most = 0.0, float(averages.max()) * 1.05
        parts.append(f'<text x="10" y="{top}">average {norm} distance</text>')
        for way, (name, values) in enumerate(zip(WAYS, averages, strict=True)):
            ends = [float(np.quantile(values, q)) for q in (0, 0.25, 0.5, 0.75, 1)]
            low, first, middle, third, high = (140 + 480 * (end - least) / (most - least) for end in ends)
            y = top + 28 + 36 * way
            parts += [
                f'<text x="10" y="{y + 4}">{name}</text>',
                f'<path d="M{low:.1f} {y}H{first:.1f}M{third:.1f} {y}H{high:.1f}" stroke="black"/>',
                f'<rect x="{first:.1f}" y="{y - 10}" width="{third - first:.1f}" height="20" fill="#cde" stroke="black"/>',
                f'<path d="M{middle:.1f} {y - 10}V{y + 10}" stroke="black" stroke-width="2"/>',
                f'<text x="{high + 6:.1f}" y="{y + 4}">{ends[2]:.1f}</text>',
            ]
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str]) -> None:
    found = distances(simulated_tables())
    print(f"{'':22}{'l1':>8}{'l2':>8}   (medians over {TABLES} tables of averages over {RELEASES} releases)")
    for way, name in enumerate(WAYS):
        print(f"{name:22}{np.median(found.averages('l1')[way]):8.2f}{np.median(found.averages('l2')[way]):8.2f}")
    if arguments:
        Path(arguments[0]).write_text(figure(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
