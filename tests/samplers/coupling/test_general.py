"""Coupling from the past on any integer matrix: the compiled sandwich against the ideal chains, doubt, and the law by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import InternalError, InvalidParameter, NoExactSampler
from holdfast.exact.balls import enclosure, precision
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.coupling._coupling_compiled import nearest_whole
from holdfast.samplers.coupling.conditional import SweepUniform, coalesce
from holdfast.samplers.coupling.klein_step import DenseKlein
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.testing import ALPHA, check_fit_categories
from holdfast.testing.fit import _score_categories

from ..lattice_points import counted, enumerated, margin_rows

ROW = np.array([[3, 5, 7, 2]])
TWO_ROWS = np.array([[1, 2, 3, 1, 0], [0, 1, 1, 2, 1]])
HALF = Fraction(1, 2)


def stream(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("coupling")


@pytest.mark.parametrize(("rows", "epsilon"), [(ROW, HALF), (TWO_ROWS, Fraction(1)), (margin_rows((2, 3)), Fraction(1, 4))])
def test_the_sandwich_finds_the_state_of_the_ideal_chains(rows: NDArray[np.int64], epsilon: Fraction) -> None:
    sampler, words = CouplingLaplace.of_rows(rows, epsilon), stream("ideal")
    for own in sampler.take_words(2, words):
        ideal = coalesce(sampler.form, lambda cell, time, base=own.base: SweepUniform(words, base + cell, time))  # type: ignore[misc]
        assert sampler.variances(own, words) == ideal


@pytest.mark.parametrize("rows", [ROW, margin_rows((3, 3))])
def test_wider_errors_change_no_draw(rows: NDArray[np.int64]) -> None:
    """The sandwich goes further back, or asks for balls and more bits; the same words give the same z."""
    plain = CouplingLaplace.of_rows(rows, HALF).draw(3, stream("slack"))
    for slack in (2.0**-30, 2.0**-6):
        assert np.array_equal(CouplingLaplace.of_rows(rows, HALF, slack=slack).draw(3, stream("slack")), plain)


def test_no_error_is_narrow_enough_to_be_wrong() -> None:
    """A slack that makes doubles useless altogether: every step after the first sweep is decided by balls."""
    plain = CouplingLaplace.of_rows([[1, 1, 2]], 1).draw(4, stream("useless"))
    assert np.array_equal(CouplingLaplace.of_rows([[1, 1, 2]], 1, slack=0.2).draw(4, stream("useless")), plain)


@pytest.mark.parametrize("rows", [ROW, TWO_ROWS, margin_rows((3, 3))])
def test_the_chance_in_doubles_is_as_near_the_exact_one_as_it_says(rows: NDArray[np.int64]) -> None:
    sampler, words = CouplingLaplace.of_rows(rows, HALF), stream("chance")
    for own in sampler.take_words(6, words):
        made = sampler.make_try(own, words)
        with precision(160):
            exact = enclosure(sampler.chance(made.indices, made.proposal).log())
        assert abs(exact.nearest() - made.log_chance) <= made.error < 1e-8
        assert exact.upper <= 0


def test_rational_centres_give_the_same_law_of_the_accept_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a certificate fails rationals take over: the coordinates differ from those of doubles only where a threshold lies between."""
    rows = margin_rows((2, 3))
    plain = CouplingLaplace.of_rows(rows, HALF).draw(8, stream("rational"))
    monkeypatch.setattr("holdfast.samplers.coupling.klein_step.CENTRE_LOSS", -1.0)
    assert np.array_equal(CouplingLaplace.of_rows(rows, HALF).draw(8, stream("rational")), plain)


@pytest.mark.parametrize("rows", [ROW, margin_rows((3, 3))])
def test_finer_factors_take_over_where_doubles_are_too_coarse(rows: NDArray[np.int64]) -> None:
    """The coordinates come from other roundings of the same numbers: they differ only where a threshold lies between, which is rare."""
    plain = CouplingLaplace.of_rows(rows, HALF).draw(8, stream("fine"))
    finer = CouplingLaplace.of_rows(rows, HALF)
    assert isinstance(finer.klein, DenseKlein)
    finer.klein.most_off = -1.0
    assert np.array_equal(finer.draw(8, stream("fine")), plain)


def test_finer_factors_that_are_too_coarse_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 24 binary places in place of 256 nothing would bound the accept step."""
    sampler = CouplingLaplace.of_rows(ROW, HALF)
    assert isinstance(sampler.klein, DenseKlein)
    sampler.klein.most_off = -1.0
    monkeypatch.setattr("holdfast.samplers.coupling.klein_step.FINE_BITS", 24)
    with pytest.raises(InternalError, match="too coarse"):
        sampler.draw(1, stream("coarse"))


@pytest.mark.ordinary("one row")
@pytest.mark.parametrize(
    ("rows", "epsilon", "reach", "n"),
    [
        (ROW, HALF, 40, 4000),
        (TWO_ROWS, HALF, 30, 4000),
        (margin_rows((2, 3)), Fraction(1), 20, 4000),
        (margin_rows((3, 3)), Fraction(1), 12, 2500),
    ],
    ids=["one row", "two rows", "2 x 3", "3 x 3"],
)
def test_the_law_is_that_of_enumeration(rows: NDArray[np.int64], epsilon: Fraction, reach: int, n: int) -> None:
    z = CouplingLaplace.of_rows(rows, epsilon).draw(n, stream("fit"))
    assert not (rows @ z.T).any()
    check_fit_categories(counted(z, epsilon), enumerated(rows, epsilon, reach), name=f"coupling from the past, {rows.shape}")


def test_a_slightly_wrong_law_would_fail() -> None:
    """Power of the fits above: without the accept step, which keeps five tries of six, the law is seen to be wrong."""
    sampler, words = CouplingLaplace.of_rows(ROW, HALF), stream("power")
    kept: list[NDArray[np.int64]] = []
    while len(kept) < 9000:
        kept += [sampler.make_try(own, words).proposal.z for own in sampler.take_words(9000 - len(kept), words)]
    assert _score_categories(counted(np.array(kept), HALF), enumerated(ROW, HALF, 40)).p_value < ALPHA


def test_cells_left_out_or_pinned_are_refused() -> None:
    for rows in ([[1, 1, 0]], [[1, 1, 0], [0, 0, 1]]):
        with pytest.raises(InvalidParameter, match="leave out or pin"):
            CouplingLaplace.of_rows(rows, 1).draw(1, stream("pinned"))


@pytest.mark.parametrize(("largest", "epsilon"), [(10**3, Fraction(1, 128)), (10**5, Fraction(1, 4)), (10**7, Fraction(1))])
def test_rows_too_large_for_exact_sums_are_refused(largest: int, epsilon: Fraction) -> None:
    """Doubles hold sums of tau a a' of small integers alone; with larger ones an index that is wrong could be called certain."""
    row = [largest - e for e in range(0, 32, 2)]
    with pytest.raises(NoExactSampler, match="smaller integers"):
        CouplingLaplace.of_rows([row], epsilon).draw(1, stream("large entries"))


def test_a_centre_next_to_a_half_is_rounded_as_rationals_are() -> None:
    for centre in (0.5, 0.5 - 2.0**-54, -0.5, -0.5 - 2.0**-53, -0.5 + 2.0**-54, -(2.0**-60), 2.0**52 + 1, 7.5):
        assert nearest_whole(centre) == math.floor(Fraction(centre) + HALF)


def test_a_basis_without_hope_is_refused() -> None:
    """One vector of length 10^7 and a large epsilon: the correction would overflow."""
    with pytest.raises(NoExactSampler, match="too long"):
        CouplingLaplace.of_rows([[10**4 + 1, 10**4]], 4).draw(1, stream("long vectors"))


def test_a_chance_above_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The assertion has teeth: a correction that does not dominate trips it."""
    monkeypatch.setattr("holdfast.samplers.coupling.convex_correction.heights_and_rises", lambda: ([0, 0], [0, 0]))
    sampler = CouplingLaplace.of_rows(margin_rows((2, 2)), 1)
    with pytest.raises(InternalError, match="above 1"):
        sampler.draw(200, stream("teeth"))


def test_the_pilot_finds_the_acceptance_of_the_draws() -> None:
    sampler = CouplingLaplace.of_rows(ROW, HALF)
    exponents = sampler.pilot_exponents(300, stream("pilot"))
    assert 0.75 < float(np.exp(-exponents / 1024).mean()) < 0.9
    plain = sampler.pilot_exponents(4, stream("pilot"))
    assert isinstance(sampler.klein, DenseKlein)
    sampler.klein.most_off = -1.0  # doubles say nothing of these tries: balls do
    assert np.abs(sampler.pilot_exponents(4, stream("pilot")) - plain).max() <= 1
