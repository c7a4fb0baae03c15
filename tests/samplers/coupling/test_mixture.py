"""The mixture for the cell law: certified at every integer, exact dyadic atoms, a tail without end."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, arb_mat

from holdfast.errors import NoExactSampler
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.samplers.coupling import mixture as mixture_module
from holdfast.samplers.coupling.mixture import (
    EXCESS_ERROR,
    LEFT_OUT_BITS,
    UNIT,
    Fit,
    Mixture,
    Programme,
    Vertex,
    fit_for,
    fit_mixture,
    mixture_for,
    solution,
    suggested_vertices,
)

EPSILONS = [Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(4)]


def excess_term_by_term(mixture: Mixture, k: int, atoms: int) -> arb:
    """log(f(k) exp(epsilon k)) by adding up so many atoms and nothing else."""
    total = arb(0)
    for j in range(atoms):
        tau = ball(mixture.tau(j))
        mass = mixture.head_masses[j] if j < mixture.head else None
        density = ball(mixture.step * mixture.epsilon) / (2 * arb.pi() * tau).sqrt() * (-ball(mixture.epsilon**2) * tau / 2).exp()
        total += (ball(mass) if mass is not None else density) * (-arb(k * k) / (2 * tau)).exp()
    return total.log() + ball(mixture.epsilon) * k


@pytest.mark.parametrize("epsilon", [*EPSILONS, *(pytest.param(Fraction(1, n), marks=pytest.mark.long) for n in (256, 1000, 1024))])
def test_the_loss_bounds_the_ratio_at_every_integer(epsilon: Fraction) -> None:
    mixture = mixture_for(epsilon, 100)
    wanted = float(fit_for(100).delta)
    assert 0 < mixture.loss < 1.2 * wanted
    assert float(np.abs(mixture.excess_table).max()) < 1.2 * wanted
    with precision(160):
        for k in (0, 1, 2, 7, mixture.reach // 2, mixture.reach, mixture.reach + 1, 2 * mixture.reach):
            found = mixture.excess(k)
            assert -found <= ball(mixture.loss)
            expected = mixture.excess_table[k] if k <= mixture.reach else 0.0
            error = EXCESS_ERROR if k <= mixture.reach else mixture.far_error
            assert abs(found - arb(expected)) < error


def test_the_balls_agree_with_a_plain_sum() -> None:
    mixture = mixture_for(Fraction(1, 2), 9)
    with precision(128):
        for k in (0, 3, 40, 150):
            assert abs(mixture.excess(k) - excess_term_by_term(mixture, k, 2000)) < 1e-30
        assert mixture.excess(-5).overlaps(mixture.excess(5))


def test_without_the_tail_the_law_would_fail_far_out() -> None:
    """A mixture cut at 100 / epsilon^2 is as good at small k and worthless at large k: the tail must not end."""
    mixture = mixture_for(Fraction(1), 9)
    atoms = mixture.head + math.ceil((100 - mixture.cut) / mixture.step)
    with precision(128):
        assert abs(excess_term_by_term(mixture, 20, atoms)) < 2e-4
        assert excess_term_by_term(mixture, 200, atoms) < -10
        assert abs(mixture.excess(200)) < mixture.far_error


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_atoms_are_dyadic_rising_and_exact_in_doubles(epsilon: Fraction) -> None:
    mixture = mixture_for(epsilon, 10_000)
    taus = [mixture.tau(j) for j in range(mixture.atoms)]
    assert all(low < high for low, high in pairwise(taus))
    assert all(mass > 0 for mass in mixture.head_masses)
    assert all((tau / UNIT).denominator == 1 and Fraction(float(tau)) == tau for tau in taus)
    assert taus[-1] / UNIT * 2**20 < 2**53, "sums of 2^20 atoms are exact"
    assert [Fraction(tau) for tau in mixture.taus] == taus
    with precision(200):
        left, total = mixture.weight_from(mixture.atoms), sum((mixture.weight(j) for j in range(mixture.atoms)), arb(0))
        assert left < total * arb(2) ** -LEFT_OUT_BITS
        j = mixture.head + 3
        assert (mixture.weight(j + 1) / mixture.weight(j)).overlaps(mixture.ratio)
        assert (mixture.weight_from(j) - mixture.weight_from(j + 1)).overlaps(mixture.weight(j))
        for j in (0, 5, mixture.head, mixture.atoms - 1):
            weight = enclosure(mixture.weight(j))
            assert weight.nearest() == mixture.weights[j]
            assert (mixture.mass(j) * ball(mixture.tau(j)).sqrt()).overlaps(mixture.weight(j))


def test_a_wrong_head_is_found_out() -> None:
    """Nothing of the linear programme is trusted: one mass halved shows in the loss."""
    mixture = mixture_for(Fraction(1, 2), 9)
    masses = list(mixture.head_masses)
    masses[4] /= 2
    assert replace(mixture, head_masses=tuple(masses)).loss > 100 * mixture.loss


def test_the_smallest_variance_is_as_large_as_the_cusp_allows() -> None:
    taus = {epsilon: float(mixture_for(epsilon, 100).tau(0)) for epsilon in EPSILONS}
    assert all(0.1 < tau < 0.35 for tau in taus.values())
    assert list(taus.values()) == sorted(taus.values(), reverse=True)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1025), Fraction(5)])
def test_an_epsilon_out_of_range_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(NoExactSampler, match="epsilon between"):
        mixture_for(epsilon, 9)


def test_the_vertex_is_proved_and_no_other_one_is() -> None:
    """The solver only suggests: a vertex with another atom or another tight row is not taken."""
    epsilon, fit = Fraction(1), fit_for(9)
    mixture = mixture_for(epsilon, 9)
    with precision(128):
        wanted, _ = mixture_module.programme(epsilon, mixture_module.candidates(epsilon, mixture.step), mixture.step, fit)
        columns, rows = next(suggested_vertices(wanted))
        vertex = Vertex.at(wanted, columns, rows)
        assert vertex is not None
        assert vertex.is_the_only_solution
        assert vertex.neighbour() is None
        assert len(vertex.x) == mixture.head
        loose = next(r for r in range(wanted.matrix.nrows()) if r not in rows)
        spare = next(j for j in range(wanted.matrix.ncols()) if j not in columns)
        for others in ((columns, [loose, *rows[1:]]), ([spare, *columns[1:]], rows), (columns[1:], rows[1:])):
            other = Vertex.at(wanted, *others)
            assert other is None or not other.is_the_only_solution


def test_pivots_go_from_a_neighbour_of_the_solution_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maximise 3 x + 2 y over x + y <= 4, x + 3 y <= 9, x <= 3: the solution is (3, 1), and doubles are made to suggest other vertices."""
    wanted = Programme(arb_mat([[1, 1], [1, 3], [1, 0]]), [arb(4), arb(9), arb(3)], [arb(-3), arb(-2)])
    for corner in (([1], [1]), ([0], [2]), ([0, 1], [0, 1]), ([0, 1], [0, 2])):  # (0, 3), (3, 0), (1.5, 2.5), (3, 1)
        monkeypatch.setattr("holdfast.samplers.coupling.mixture.suggested_vertices", lambda _, corner=corner: iter([corner]))
        found = solution(wanted)
        assert found is not None
        assert {column: float(value.mid()) for column, value in found.items()} == {0: 3.0, 1: 1.0}


def test_a_programme_of_two_solutions_or_none_is_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """x + y <= 1 with equal costs has an edge of solutions; without a bound there is none."""
    monkeypatch.setattr("holdfast.samplers.coupling.mixture.suggested_vertices", lambda _: iter([([0], [0])]))
    assert solution(Programme(arb_mat([[1, 1]]), [arb(1)], [arb(-1), arb(-1)])) is None
    assert solution(Programme(arb_mat([[1, -1]]), [arb(1)], [arb(-1), arb(-1)])) is None


def test_masses_do_not_depend_on_the_digits_of_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    before = mixture_for(Fraction(1, 2), 9)
    monkeypatch.setattr(mixture_module, "VERTEX_BITS", 200)
    fit_mixture.cache_clear()
    assert mixture_for(Fraction(1, 2), 9) == before


def test_the_head_is_the_same_on_every_machine() -> None:
    """Which draw belongs to which words depends on it: a known answer."""
    mixture = mixture_for(Fraction(1), 9)
    assert [int(tau / UNIT) for tau in mixture.head_taus[:4]] == [871, 959, 4424, 4867]
    assert [float(mass) for mass in mixture.head_masses[:4]] == [
        0.21939106839772649,
        0.3656344228602393,
        0.14096720122461193,
        0.08651775753060065,
    ]


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(NoExactSampler, match="none was found"):
        fit_mixture(Fraction(1), Fit(Fraction(1, 10**9), Fraction(3, 4)))


def test_a_mixture_is_made_once() -> None:
    assert mixture_for(Fraction(1, 4), 50) is mixture_for(Fraction(1, 4), 60)
    assert mixture_for(Fraction(1, 4), 50) != mixture_for(Fraction(1, 4), 5000)
