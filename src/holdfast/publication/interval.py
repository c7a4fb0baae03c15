"""How far a published number may be from the true one: an interval from draws of the public law, with nothing assumed of the truth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.sampler import ChainSampler
from holdfast.channels import Facts
from holdfast.channels.covariance import public_draws
from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.grid_rounding import displacement
from holdfast.laws import Reads
from holdfast.publication.plan import Plan
from holdfast.publication.queries import Query, coefficients
from holdfast.tables.grid import Grid

Ints = NDArray[np.int64]

DRAWS = 20_000
DOUBT = 1e-6
"""Probability, over the draws, that an interval covers the truth less often than its level says ([theory T112])."""
MOST_CELLS = 10**9
"""Cells drawn for one interval at most: about a minute."""
LARGEST = 2**53


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, both ends included: the true number lies there with probability `level` or more over the noise of the release.

    Guarantees:  whatever the true numbers are. The level itself is reached with probability 1 - doubt over the draws of the public law
                 that the ends come from. Where the query is a kept total, both ends are the true number; so they are for invariants of
                 answers, unless some were rounded to the grid (table.grid.moved on the card). Where answers are rounded to a grid, the
                 interval has room for what that can move.
    """

    low: Fraction | int
    high: Fraction | int
    level: float
    doubt: float = DOUBT

    def __repr__(self) -> str:
        return f"Interval({float(self.low):.6g} to {float(self.high):.6g}, level {self.level:g})"


def interval_of(plan: Plan, counts: Ints, query: Query, level: float) -> Interval:
    """The interval for a sum of true numbers, from their published ones and the plan.

    Given:       query as for hf.posterior: a cell's number, codes, or whole numbers, one for each cell; noise that sees no data, drawn
                 exactly. 0 < level < 1.
    Reference:   [theory T112].
    """
    if not isinstance(level, float | int) or not 0 < level < 1:
        raise InvalidParameter("level is a probability between 0 and 1, such as 0.95.", field="level")
    drawing = plan.drawing
    target = drawing.channel.target
    if not target.publishes_cells or target.reads is not Reads.NOTHING:
        raise InvalidParameter(
            "This release adds no noise of one law to its numbers: there is no interval that holds whatever they are. holdfast.posterior "
            "tells what follows from a prior."
        )
    if not drawing.is_exact:
        raise InvalidParameter("The noise was drawn by a Markov chain, whose draws depend on one another: no interval is proved for it.")
    wanted = coefficients(query, plan.facts.universe)
    rank = _rank(level)
    reach = int(np.partition(np.abs(_errors(drawing, wanted)), rank - 1)[rank - 1])
    here = sum(int(a) * int(b) for a, b in zip(wanted.tolist(), counts.tolist(), strict=True) if a)
    grid = plan.facts.grid
    if grid is None:
        return Interval(here - reach, here + reach, float(level))
    room = reach + _rounding(plan.facts, grid, wanted)
    return Interval((here - room) * grid.step, (here + room) * grid.step, float(level))


def _rounding(facts: Facts, grid: Grid, wanted: Ints) -> Fraction:
    """How far, in steps, the sum of the answers on the grid can be from that of the true answers."""
    return Fraction(0) if grid.on_grid else displacement(facts.lattice, wanted, totals_kept=not grid.moved)


def _rank(level: float) -> int:
    """The least r with P[Binomial(DRAWS, level) >= r] <= DOUBT."""
    from scipy.special import bdtrc

    ranks = np.arange(1, DRAWS + 1)
    enough = ranks[bdtrc(ranks - 1, DRAWS, level) <= DOUBT]
    if not len(enough):
        raise InvalidParameter(f"A level of {level} is too near 1 for {DRAWS:,} draws of the law. Ask for 0.999 or less.", field="level")
    return int(enough[0])


def _errors(drawing: Drawing, wanted: Ints) -> Ints:
    """Draws of the error of the query, from a public key: blocks in which it has no coefficient are left out."""
    out = np.zeros(DRAWS, dtype=np.float64)
    used = [(task, task.cells[wanted[task.cells].any(axis=1)]) for task in drawing.channel.tasks()]
    if sum(rows.size for _, rows in used) * DRAWS > MOST_CELLS:
        raise RequestTooLarge("This query goes over too many cells for an interval from draws. Ask about fewer cells.")
    for task, rows in used:
        sampler = drawing.choice(task.shape).noise
        assert not isinstance(sampler, ChainSampler)
        for cells in rows:
            names = ("interval", json.dumps(drawing.channel.target.fields), json.dumps(task.shape.fields), str(int(cells[0])))
            out += public_draws(sampler, names, DRAWS).astype(np.float64) @ wanted[cells].astype(np.float64)
    if np.abs(out).max(initial=0.0) >= LARGEST:
        raise RequestTooLarge(
            "The error of this query leaves the whole numbers of doubles. Ask about fewer cells, or smaller coefficients."
        )
    return out.astype(np.int64)
