"""The convex correction on products of hierarchies and on grids: above the truth, monotone, exact in doubles; the law by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import ball, precision
from holdfast.lattices.algebra import to_numpy
from holdfast.lattices.shapes import Levels
from holdfast.lattices.trees import Tree
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.coupling._coupling_compiled import exponents_at, move_sums
from holdfast.samplers.coupling._grid_compiled import grid_exponents, grid_sums, move_grid_sums
from holdfast.samplers.coupling.conditional import SweepUniform, coalesce
from holdfast.samplers.coupling.convex_correction import HEIGHT_BITS, KNOT_BITS, ConvexCorrection, heights_and_rises, log_theta, majorant
from holdfast.samplers.coupling.forms import GeneralForm, GridForm
from holdfast.samplers.coupling.mixture import mixture_for
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.testing import ALPHA, check_fit_categories
from holdfast.testing.fit import _score_categories

from ..lattice_points import counted, enumerated, summary

EPSILONS = [Fraction(1, 4), Fraction(1, 2), Fraction(1)]
UNEVEN = Levels((Tree(((2,), (2, 1))), Tree.plain(2)), ((0, 1), (1, 0)))
"""Two counties of two tracts and of one, by sex: county totals and the sex margin are kept; 6 cells, 3 free dimensions."""
ONE_WAY = Levels((Tree.plain(2), Tree.plain(3), Tree.plain(2)), ((0, 0, 1), (0, 1, 0), (1, 0, 0)))
"""2 x 3 x 2 with its three one-way margins; 7 free dimensions."""
SHAPES = {"uneven tree by two": UNEVEN, "2 x 3 x 2": ONE_WAY}
KNOWN = [[5, -5, -3, 3, -1, 1, 1, -1, -2, 2, 0, 0], [-3, 3, 1, 1, 1, -3, 0, 0, -1, -1, 2, 0]]


def stream(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("convex coupling")


def rows_of(shape: Levels) -> NDArray[np.int64]:
    rows = shape.matrix()
    assert rows is not None
    return rows


def form_of(name: str, epsilon: Fraction) -> GeneralForm:
    form = CouplingLaplace.of_rows(rows_of(SHAPES[name]), epsilon).form
    assert isinstance(form, GeneralForm)
    return form


def some_states(form: GeneralForm | GridForm, count: int, label: str) -> list[list[int]]:
    """States of all kinds: cells at the least atom, at far ones and between."""
    drawn = stream(label).take(count * form.cells).reshape(count, form.cells)
    return [[0 if w % 3 == 0 else int(w % 17) if w % 3 == 1 else int(w % 90) for w in row.tolist()] for row in drawn]


def precisions(form: GeneralForm, state: list[int]) -> list[Fraction]:
    """1 / s_i^2 of all coordinates, those drawn later eliminated first, in rationals: what the correction has to be above."""
    basis = to_numpy(form.basis).tolist()
    taus, m = [form.mixture.tau(j) for j in state], form.dimension
    gram = [[sum((row[i] * row[l] / tau for row, tau in zip(basis, taus, strict=True)), Fraction(0)) for l in range(m)] for i in range(m)]
    for i in range(m - 1, 0, -1):
        for a in range(i):
            for b in range(i):
                gram[a][b] -= gram[a][i] * gram[i][b] / gram[i][i]
    return [gram[i][i] for i in range(m)]


def test_the_height_is_convex_and_above_the_majorant() -> None:
    """At knots and between, and far beyond the last; nowhere much above."""
    heights, rises = heights_and_rises()
    assert all(a <= b for a, b in pairwise(rises))
    assert heights == [sum(rises[:k]) for k in range(len(heights))]
    with precision(80):
        for k in [*range(0, len(rises), 7), len(rises) - 1]:
            for part in (Fraction(0), Fraction(1, 3), Fraction(9, 10)) if k < len(rises) - 1 else (Fraction(0), Fraction(2000)):
                x, height = (k + part) / (1 << KNOT_BITS), (heights[k] + rises[k] * part) / (1 << HEIGHT_BITS)
                if x:
                    assert majorant(ball(x)) <= ball(height) <= majorant(ball(x)) + 2.0**-17


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_the_correction_is_above_the_truth(name: str, epsilon: Fraction) -> None:
    """Phi >= sum of H(1 / s^2) over all coordinates, s^2 in rationals; doubles and rationals of Phi agree."""
    form = form_of(name, epsilon)
    for state in [[0] * form.cells, *some_states(form, 3, "dominates")]:
        phi = form.convex.value(state)
        with precision(100):
            assert sum((log_theta(ball(x)) for x in precisions(form, state)), arb(0)) < ball(phi)
        value, error = form.convex.in_doubles(np.array(state))
        assert abs(Fraction(value) - phi) <= Fraction(error) < Fraction(1, 10**12)


FORMS: dict[str, GeneralForm | GridForm] = {
    "uneven tree by two": form_of("uneven tree by two", Fraction(1, 2)),
    "5 x 4": GridForm(5, 4, mixture_for(Fraction(1, 2), 20)),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_higher_state_gives_a_flatter_correction(name: str) -> None:
    """What monotony needs, in rationals: where other cells rise, every step from one atom to the next costs less or the same."""
    form, convex = FORMS[name], FORMS[name].convex

    def steps(exponents: list[Fraction]) -> NDArray[np.object_]:
        return np.diff(np.array(exponents, dtype=object))

    for low, other in zip(some_states(form, 3, "low"), some_states(form, 3, "high"), strict=True):
        high = [max(pair) for pair in zip(low, other, strict=True)]
        for cell in range(form.cells):
            assert (steps(convex.exponents(low, cell)) <= steps(convex.exponents(high, cell))).all()
            assert (steps(convex.exponents(high, cell)) <= steps(convex.flattest(cell))).all()
            assert (steps(convex.exponents(high, cell)) <= 0).all()


def by_hand(convex: ConvexCorrection, state: list[int]) -> list[Fraction]:
    """X_i, cell by cell."""
    found = [0] * convex.ends[0].size
    for cell, j in enumerate(state):
        for i, w in zip(*map(list, convex.column(cell)), strict=True):
            found[i] += int(w) * int(convex.inverses[min(j, convex.near - 1)])
    return [Fraction(value, 1 << convex.bits) for value in found]


def test_grid_squares_are_those_of_the_gram_schmidt_vectors() -> None:
    """Rounded up, by less than a unit of each factor: 1 at the cell, 1 / s^2 in its row, 1 / p^2 in its column, their product."""
    form = GridForm(5, 4, mixture_for(Fraction(1, 2), 20))
    unit = Fraction(1, 1 << 19)
    for cell in range(20):
        places, squares = form.convex.column(cell)
        assert [divmod(int(i), 3) for i in places] == [(i, j) for i in range(min(cell // 4 + 1, 4)) for j in range(min(cell % 4 + 1, 3))]
        for i, w in zip(places.tolist(), squares.tolist(), strict=True):
            true = Fraction(1, (1 if i // 3 == cell // 4 else 4 - i // 3) ** 2 * (1 if i % 3 == cell % 4 else 3 - i % 3) ** 2)
            assert true <= Fraction(w, 1 << 38) < true + 2 * unit + unit**2


def test_loops_on_a_basis_are_exact_in_sums_and_as_near_as_they_say_in_exponents() -> None:
    """Also after a cell has moved: nothing drifts."""
    form = form_of("2 x 3 x 2", Fraction(1))
    convex, found, last = form.convex, np.empty(form.convex.near), form.convex.near - 1
    for state in some_states(form, 3, "exact"):
        sums = convex.sums(state)
        for cell in range(form.cells):
            x = convex.inverses[min(state[cell], last)]
            error = exponents_at(cell, x, sums, convex.lists, convex.curve, found)
            for value, true in zip(found.tolist(), convex.exponents(state, cell), strict=True):
                assert abs(Fraction(value) - true) <= Fraction(error) < Fraction(1, 10**12)
            state[cell] = (state[cell] * 7 + 3) % 40
            move_sums(cell, convex.inverses[min(state[cell], last)] - x, convex.lists, sums)
            assert [Fraction(value, 1 << convex.bits) for value in sums.tolist()] == by_hand(convex, state)


@pytest.mark.parametrize(("rows", "columns", "window"), [(2, 2, 64), (5, 4, 64), (9, 7, 3), (8, 2, 2)])
def test_loops_on_a_grid_are_exact_in_sums_and_as_near_as_they_say_in_exponents(
    rows: int, columns: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.samplers.coupling.convex_correction.WINDOW", window)
    monkeypatch.setattr("holdfast.samplers.coupling.forms.WINDOW", window)
    form = GridForm(rows, columns, mixture_for(Fraction(1), rows * columns))
    convex, found, last = form.convex, np.empty(form.convex.near), form.convex.near - 1
    squares, sums = form.squares, np.empty((columns - 1, rows - 1), dtype=np.int64)
    for state in [[0] * form.cells, *some_states(form, 2, "exact grid")]:
        grid_sums(np.array(state), squares, convex.curve, *np.empty((2, columns), np.int64), sums)
        for cell in range(form.cells):
            x = convex.inverses[min(state[cell], last)]
            error = grid_exponents(cell % columns, cell // columns, x, sums, squares, convex.curve, found)
            for value, true in zip(found.tolist(), convex.exponents(state, cell), strict=True):
                assert abs(Fraction(value) - true) <= Fraction(error) < Fraction(1, 10**11)
            state[cell] = (state[cell] * 7 + 3) % 40
            move_grid_sums(cell % columns, cell // columns, convex.inverses[min(state[cell], last)] - x, squares, sums)
            assert sums.T.ravel().tolist() == convex.sums(state).tolist()
        assert [Fraction(value, 1 << convex.bits) for value in sums.T.ravel().tolist()] == by_hand(convex, state)


def test_the_sandwich_finds_the_state_of_the_ideal_chains() -> None:
    sampler, words = CouplingLaplace.of_rows(rows_of(UNEVEN), Fraction(1, 2)), stream("ideal")
    for own in sampler.take_words(3, words):
        ideal = coalesce(sampler.form, lambda cell, time, base=own.base: SweepUniform(words, base + cell, time))  # type: ignore[misc]
        assert sampler.variances(own, words) == ideal


def test_wider_errors_change_no_draw() -> None:
    for name in SHAPES:
        plain = CouplingLaplace.of_rows(rows_of(SHAPES[name]), Fraction(1, 2)).draw(3, stream("slack"))
        for slack in (2.0**-30, 2.0**-8):
            widened = CouplingLaplace.of_rows(rows_of(SHAPES[name]), Fraction(1, 2), slack=slack)
            assert np.array_equal(widened.draw(3, stream("slack")), plain)


def first_pair_law(epsilon: float, bins: Fraction, size: int) -> dict[int, float]:
    """The law of `summary` of the first two cells of ONE_WAY, all tables counted: six pairs of sums r1, r2, r3 and minus these, whose first
    cells add up to 0; Fourier transforms modulo `size` over those.
    """
    axis = np.fft.fftfreq(size, 1 / size).astype(np.int64)
    weight = np.exp(-epsilon * np.abs(axis))
    pair = np.fft.fft(weight * np.exp(-epsilon * np.abs(axis[:, None] - axis)), axis=1)  # by sum r and frequency
    law: dict[int, float] = {}
    at = np.arange(size)
    for r1 in range(size):
        r3 = (-r1 - at) % size
        others = (pair * pair[r3] * pair[-at % size] * pair[-r3 % size]).sum(axis=0) * pair[-r1 % size]
        mass = np.maximum(np.fft.ifft(others).real[-at % size], 0) * weight * np.exp(-epsilon * np.abs(axis[r1] - axis))
        keys = summary(np.stack([axis, axis[r1] - axis], axis=1), bins)
        for key, value in enumerate(np.bincount(keys, weights=mass)):
            if value > 0:
                law[key] = law.get(key, 0.0) + float(value)
    total = sum(law.values())
    return {key: value / total for key, value in law.items()}


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_law_on_an_uneven_tree_by_two(epsilon: Fraction) -> None:
    """Every table listed; power: an epsilon that is 10 % larger is seen."""
    rows, reach = rows_of(UNEVEN), int(20 / epsilon)
    z = CouplingLaplace.of_rows(rows, epsilon).draw(20_000, stream(f"uneven {epsilon}"))
    assert not (rows @ z.T).any()
    check_fit_categories(counted(z, epsilon), enumerated(rows, epsilon, reach), name=f"uneven tree by two at {epsilon}")
    wrong = enumerated(rows, epsilon, reach, slope=epsilon * Fraction(11, 10))
    assert _score_categories(counted(z, epsilon), wrong).p_value < ALPHA


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_law_on_one_way_margins_of_three_axes(epsilon: Fraction) -> None:
    """The first two cells; power: an epsilon that is 10 % larger is seen."""
    rows, size = rows_of(ONE_WAY), 256 if epsilon < Fraction(1, 2) else 128
    z = CouplingLaplace.of_rows(rows, epsilon).draw(20_000, stream(f"one way {epsilon}"))
    assert not (rows @ z.T).any()
    first = counted(z[:, :2], epsilon)
    check_fit_categories(first, first_pair_law(float(epsilon), epsilon, size), name=f"2 x 3 x 2 at {epsilon}")
    assert _score_categories(first, first_pair_law(1.1 * float(epsilon), epsilon, size)).p_value < ALPHA


def test_known_draws() -> None:
    """The same on every machine, until the format of the stream changes."""
    z = CouplingLaplace.of_rows(rows_of(ONE_WAY), Fraction(1, 2)).draw(2, stream("known answer"))
    assert z.tolist() == KNOWN


def test_the_law_in_short() -> None:
    """The uneven tree at epsilon 1; power: an epsilon that is a quarter larger is seen."""
    rows, epsilon = rows_of(UNEVEN), Fraction(1)
    found = counted(CouplingLaplace.of_rows(rows, epsilon).draw(3000, stream("short")), epsilon)
    check_fit_categories(found, enumerated(rows, epsilon, 20), name="uneven tree by two, in short")
    assert _score_categories(found, enumerated(rows, epsilon, 20, slope=Fraction(5, 4))).p_value < ALPHA
