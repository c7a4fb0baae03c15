"""Chains within bounds: moves that reach every table, what they are for which bounds, and the error of a chain for all tables."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import ListedMoves
from holdfast.chains.target import ChainTarget, Decay, Ints
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.shapes import Bounded, General, Grid, OneSum
from holdfast.randomness import NoiseKey, Words
from holdfast.research.chains.bounded import (
    BoundedChain,
    NarrowLineGibbs,
    bounded_chain,
    distances,
    elementary_moves,
    first_table,
    fits_into,
    grid_cycles,
    worst_distance,
)
from holdfast.research.chains.lattices import generating_rows
from holdfast.samplers.bounded_block import BoundedBlock
from tests.chains.lines import dense, every_move
from tests.chains.rational import RationalMetropolis
from tests.chains.transitions import transitions
from tests.samplers.bounded_cases import Point, fibre, grid_sums, law

HALF = Fraction(1, 2)
PINNED = Bounded(Grid((3, 3)), 0, tuple(1 if i % 4 == 0 else None for i in range(9)))
"""A 3 x 3 table whose cells on the diagonal are at most 1."""


def stream(*label: str) -> Words:
    return NoiseKey.for_tests("bounded chains").stream(*label)


def connected(points: list[Point], moves: Ints) -> bool:
    """Whether steps by multiples of the moves, within the points, lead from the first to all others."""
    left, waiting = set(points), [points[0]]
    left.discard(points[0])
    while waiting:
        here = np.array(waiting.pop())
        for move in moves:
            for sign in (1, -1):
                there = tuple((here + sign * move).tolist())
                if there in left:
                    left.discard(there)
                    waiting.append(there)
    return not left


def three_way(size: int) -> Ints:
    """All two-way margins of a cube."""
    cells = np.arange(size**3).reshape((size,) * 3)
    kept = [
        np.isin(cells, cells.take(i, axis=a).take(j, axis=b))
        for a, b in ((0, 0), (0, 1), (1, 1))
        for i, j in product(range(size), repeat=2)
    ]
    return np.array([k.ravel() for k in kept], dtype=np.int64)


class TestElementaryMoves:
    @pytest.mark.parametrize(("axes", "count"), [((2, 2), 1), ((2, 4), 6), ((3, 3), 15), ((3, 4), 42)], ids=str)
    def test_those_of_a_grid_are_its_cycles(self, axes: tuple[int, int], count: int) -> None:
        found = elementary_moves(grid_sums(*axes))
        assert len(found) == count
        assert {tuple(z) for z in found.tolist()} == {tuple(z) for z in grid_cycles(*axes).tolist()}

    @pytest.mark.parametrize("kept", [[[2, 3, 3, 2]], [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], [[1, 2, 3]]], ids=str)
    def test_every_short_move_has_one_that_fits_into_it_and_they_have_none(self, kept: list[list[int]]) -> None:
        """By enumeration of all moves in a box."""
        found = elementary_moves(np.array(kept))
        both = np.concatenate([found, -found])
        box = np.array(list(product(range(-3, 4), repeat=len(kept[0]))))
        moves = box[(box @ np.array(kept).T == 0).all(axis=1) & box.any(axis=1)]
        assert all(fits_into(both, z).any() for z in moves)
        assert all(fits_into(both, z).sum() == 1 for z in both)

    def test_too_many_are_refused(self) -> None:
        with pytest.raises(RequestTooLarge, match="elementary moves"):
            elementary_moves(grid_sums(5, 5))


class TestReach:
    def test_a_pinned_diagonal_no_longer_cuts_the_tables_apart(self) -> None:
        """The only moves are cycles through three rows: swaps reach nothing, the chain's moves all."""
        shape = Bounded(Grid((3, 3)), 0, tuple(0 if i % 4 == 0 else None for i in range(9)))
        table = (0, 1, 2, 2, 0, 1, 1, 2, 0)
        points = fibre(BoundedBlock.of(shape), table)
        chain = bounded_chain(shape, np.array(table), HALF)
        assert (len(points), chain.moves) == (4, "elementary moves")
        assert isinstance(chain.kernel, LineGibbs)
        assert connected(points, generating_rows(chain.kernel.moves))
        assert not connected(points, np.array([z for z in grid_cycles(3, 3) if abs(z).sum() == 4]))

    @pytest.mark.parametrize(
        ("shape", "table", "kind"),
        [
            (Bounded(OneSum(4), 0, 3), (1, 0, 3, 2), "swaps"),
            (Bounded(OneSum(4, (1, 1, -1, -1)), 0, 2), (1, 0, 2, 1), "swaps"),
            (Bounded(Grid((3, 3)), 0, None), (1, 0, 2, 0, 1, 0, 1, 1, 0), "swaps"),
            (Bounded(Grid((3, 3)), None, 2), (1, 0, 2, 0, 1, 0, 1, 2, 0), "swaps"),
            (Bounded(Grid((2, 4)), 0, 2), (1, 0, 2, 0, 1, 0, 1, 1), "swaps"),
            (PINNED, (1, 0, 2, 3, 1, 0, 0, 2, 1), "elementary moves"),
            (Bounded(General(((1, 0, 1, 2), (0, 1, 1, 1)), (1, 2, 1, 1)), 0, 3), (1, 0, 2, 1, 1), "elementary moves"),
        ],
        ids=lambda value: value if isinstance(value, str) else None,
    )
    def test_every_table_is_reached(self, shape: Bounded, table: Point, kind: str) -> None:
        chain = bounded_chain(shape, np.array(table), HALF)
        points = [p for p in fibre(BoundedBlock.of(shape), table) if max(map(abs, p)) < 5]
        assert chain.moves == kind
        assert chain.status == "estimated for this table only"
        assert isinstance(chain.kernel, LineGibbs)
        every = np.array([dense(move, shape.size) for move in every_move(chain.kernel.moves)])
        assert len(points) > 1
        assert connected(points, every)

    def test_three_way_margins_with_zeros(self) -> None:
        """A 3 x 3 x 3 table with all two-way margins and cells of zero: basic moves leave tables out, and so does a basis; the chain's one
        step reaches every table that is found by listing them all.
        """
        kept = three_way(3)
        i, j, k = np.indices((3, 3, 3))
        table = np.where((i + j + k) % 3 == 2, 0, 1)
        table[0, 0, 0] = 0
        point = tuple(table.ravel().tolist())
        points = sorted(fibre(BoundedBlock.plain(kept), point))
        shape = Bounded(General(tuple(map(tuple, BoundedBlock.plain(kept).kept_matrix[independent(kept)].tolist())), (1,) * 27), 0, None)
        chain = bounded_chain(shape, np.array(point), HALF)
        assert len(points) > 20
        assert chain.moves == "all moves"
        assert isinstance(chain.kernel, Metropolis)
        assert not connected(points, chain.kernel.basis.T)
        fractions = RationalMetropolis(
            ChainTarget(Decay("absolute", Fraction(1), Fraction(1, 2)), 27).within(
                -np.array(point), np.max(points, axis=0) - np.array(point)
            ),
            chain.kernel.basis,
            jump_base=Fraction(1, 2),
        )
        reached = transitions(fractions, np.zeros(8, dtype=np.int64))
        assert sum(reached.values()) == 1
        assert sorted(tuple((np.array(point) + fractions.basis @ np.array(v)).tolist()) for v, mass in reached.items() if mass) == points

    def test_inequalities_among_cells_are_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="bounds of cells only"):
            bounded_chain(Bounded(OneSum(3), 0, None, ((1, 1, 0),), (1,)), np.array([1, 1, 1]), HALF)


def independent(kept: Ints) -> list[int]:
    from holdfast.lattices import algebra

    return list(algebra.independent_rows(algebra.as_matrix(kept)))


class TestError:
    table = (1, 0, 2, 3, 1, 0, 0, 2, 1)

    def chain(self) -> tuple[BoundedChain, list[Point]]:
        return bounded_chain(PINNED, np.array(self.table), HALF), fibre(BoundedBlock.of(PINNED), self.table)

    def test_it_falls_with_the_steps_and_bounds_what_each_table_has(self) -> None:
        chain, points = self.chain()
        assert isinstance(chain.kernel, LineGibbs)
        moves, start = generating_rows(chain.kernel.moves), first_table(points)
        found = [worst_distance(points, moves, HALF, start, steps) for steps in (0, 1, 20, 200)]
        assert found == sorted(found, reverse=True)
        assert found[0] > 0.9
        assert found[-1] < 1e-6
        block = BoundedBlock.of(PINNED)
        assert found[0] == pytest.approx(max(1 - law(block, x, HALF)[start] for x in points), abs=1e-9)

    def test_one_step_is_that_of_the_kernel(self) -> None:
        """In fractions, from the kernel's own list of transitions."""
        _, points = self.chain()
        x = np.array(points[5])
        span = np.abs(np.array(points) - x).max(axis=0)
        moves = grid_cycles(3, 3)
        exact = LineGibbs(
            ChainTarget(Decay("absolute", Fraction(1), Fraction(3, 5)), 9).within(np.maximum(-x, -span), np.minimum(span, upper_of(x))),
            ListedMoves(moves),
        )
        start = first_table(points)
        after = transitions(exact, np.array(start) - x)
        weights = {y: Fraction(3, 5) ** int(abs(np.array(y) - x).sum()) for y in points}
        total = sum(weights.values())
        wanted = sum(abs(after.get(tuple((np.array(y) - x).tolist()), Fraction(0)) - w / total) for y, w in weights.items()) / 2
        rate = Fraction(float(-np.log(0.6)))
        assert distances(points, moves, rate, start, 1)[5] == pytest.approx(float(wanted), abs=1e-12)

    @pytest.mark.parametrize("rate", [10, 60])
    def test_lines_far_from_the_table_keep_their_law_at_every_rate(self, rate: int) -> None:
        """Weights of doubles are zero from exp(-745) on, and a line of zeros has no law. Three cells and their total, in fractions: every
        table's distance after two steps.
        """
        total, moves = 8, [(1, -1, 0), (1, 0, -1), (0, 1, -1)]
        points = [(a, b, total - a - b) for a in range(total + 1) for b in range(total + 1 - a)]
        start, decay = first_table(points), Fraction(math.exp(-rate))
        found = distances(points, np.array(moves), Fraction(rate), start, 2)
        for x, distance in list(zip(points, found, strict=True))[::4]:
            weights = {y: decay ** (sum(abs(a - b) for a, b in zip(x, y, strict=True))) for y in points}
            now = {start: Fraction(1)}
            for _ in range(2):
                after: dict[Point, Fraction] = {}
                for y, mass in now.items():
                    for move in moves:
                        line = [
                            z
                            for k in range(-total, total + 1)
                            if (z := (y[0] + k * move[0], y[1] + k * move[1], y[2] + k * move[2])) in weights
                        ]
                        whole = sum(weights[z] for z in line)
                        for z in line:
                            after[z] = after.get(z, Fraction(0)) + mass * weights[z] / whole / len(moves)
                now = after
            whole = sum(weights.values())
            wanted = sum(abs(now.get(y, Fraction(0)) - weight / whole) for y, weight in weights.items()) / 2
            assert distance == pytest.approx(float(wanted), abs=1e-12)
        assert worst_distance(points, np.array(moves), Fraction(rate), start, 2) >= max(found)

    def test_too_large_a_fibre_is_refused(self) -> None:
        with pytest.raises(RequestTooLarge, match="5000"):
            worst_distance([(i, -i) for i in range(6000)], np.array([[1, -1]]), HALF, (0, 0), 1)


def upper_of(x: Ints) -> Ints:
    return np.array([1 - v if i % 4 == 0 else 99 for i, v in enumerate(x.tolist())])


class TestNarrowBounds:
    kernel = NarrowLineGibbs(ChainTarget.laplace(9, "1/2").within(lower=[-3, 0, -2, -1, -5, 0, -1, -4, -2]), ListedMoves(grid_cycles(3, 3)))

    def test_the_loop_makes_the_steps_and_a_wider_band_changes_nothing(self) -> None:
        assert self.kernel.is_short
        words = [stream("short") for _ in range(3)]
        state, slow = self.kernel.start(words[0]), self.kernel.start(words[0])
        state, _ = self.kernel.run(state, 150, words[0])
        for _ in range(150):
            slow, _ = self.kernel.step(slow, words[1])
        wide, _ = NarrowLineGibbs(self.kernel.target, self.kernel.moves, band=2.0**-6).run(self.kernel.start(words[2]), 150, words[2])
        assert np.array_equal(state, slow)
        assert np.array_equal(state, wide)
        assert words[0].position == words[1].position == words[2].position

    def test_the_trace_records_energy_first_cell_and_partial_sum(self) -> None:
        one, two = stream("trace"), stream("trace")
        state, record = self.kernel.trace(self.kernel.start(one), 5, 7, one)
        z = self.kernel.start(two)
        for row in record:
            z, _ = self.kernel.run(z, 7, two)
            assert row.tolist() == [int(abs(z).sum()), int(z[0]), int(z[self.kernel.quadrant].sum())]
        assert np.array_equal(z, state)
