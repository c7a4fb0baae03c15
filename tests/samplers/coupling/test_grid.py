"""Coupling from the past on grids: against the ideal chains, the algebra of one axis against rationals, the law by enumeration."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from holdfast.errors import InvalidParameter, NoExactSampler
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.coupling.conditional import SweepUniform, coalesce, gaussian_sum
from holdfast.samplers.coupling.convex_correction import log_theta
from holdfast.samplers.coupling.forms import GeneralForm, GridForm
from holdfast.samplers.coupling.klein_step import GridKlein, ideal_parameters
from holdfast.samplers.coupling.mixture import mixture_for
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.samplers.laplace_rejection import GridLaplace
from holdfast.testing import ALPHA, check_fit_categories, two_sample_p_value

from ..lattice_points import counted, enumerated, margin_rows

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
KNOWN = [[-1, -1, 0, 2, 1, 0, -1, 0, 0, 1, 1, -2], [-3, 0, 1, 2, 1, 0, 0, -1, 2, 0, -1, -1]]


def stream(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("grid coupling")


def some_states(form: GridForm, count: int, label: str) -> list[list[int]]:
    """States of all kinds: cells at the least atom, at far ones and between."""
    drawn = stream(label).take(count * form.cells).reshape(count, form.cells)
    return [[0 if w % 3 == 0 else int(w % 17) if w % 3 == 1 else int(w % 90) for w in row.tolist()] for row in drawn]


@pytest.mark.parametrize(("axes", "epsilon"), [((3, 2), Fraction(1)), ((3, 4), QUARTER)])
def test_the_sandwich_finds_the_state_of_the_ideal_chains(axes: tuple[int, int], epsilon: Fraction) -> None:
    sampler, words = CouplingLaplace.of_grid(axes, epsilon), stream("ideal")
    for own in sampler.take_words(2, words):
        ideal = coalesce(sampler.form, lambda cell, time, base=own.base: SweepUniform(words, base + cell, time))  # type: ignore[misc]
        assert sampler.variances(own, words) == ideal


def test_wider_errors_change_no_draw() -> None:
    plain = CouplingLaplace.of_grid((3, 4), HALF).draw(3, stream("slack"))
    for slack in (2.0**-30, 2.0**-8):
        assert np.array_equal(CouplingLaplace.of_grid((3, 4), HALF, slack=slack).draw(3, stream("slack")), plain)


def test_atoms_after_the_table_of_the_loops_are_found_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that leave out one atom in a hundred, in place of one in 2^62, give the same states; an open step there ends too."""
    plain = CouplingLaplace.of_grid((2, 2), HALF)
    words = stream("beyond")
    tries = [(own, plain.variances(own, words)) for own in plain.take_words(18, words)]
    monkeypatch.setattr("holdfast.samplers.coupling.forms.LEFT_OUT", 2.0**-6)
    for slack in (0.0, 2.0**-5):
        short = CouplingLaplace.of_grid((2, 2), HALF, slack=slack)
        assert isinstance(short.form, GridForm)
        assert short.form.atoms <= max(max(state) for _, state in tries)
        for own, state in tries:
            assert short.variances(own, words) == state


def test_conductances_and_determinants_are_those_of_the_matrix() -> None:
    """The graph's algebra against that of the rows, in rationals."""
    form = GridForm(4, 3, mixture_for(HALF, 12))
    rows = margin_rows((4, 3))[[3, 4, 5, 6, 0, 1]]  # sums over columns come first there; one of them follows from the others
    general = GeneralForm(tuple(tuple(int(entry) for entry in row) for row in rows), form.mixture)
    for state in some_states(form, 3, "algebra"):
        assert [form.conductance(state, e) for e in range(12)] == [general.conductance(state, e) for e in range(12)]
        with precision(100):
            assert form.log_determinant(state).overlaps(general.log_determinant(state))


@pytest.mark.parametrize(("rows", "columns", "window"), [(2, 2, 64), (4, 3, 64), (5, 5, 64), (6, 5, 2)])
def test_the_correction_is_above_the_truth(rows: int, columns: int, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phi >= sum of H(1 / s^2) over all coordinates, s^2 in rationals; doubles and balls of Phi agree."""
    monkeypatch.setattr("holdfast.samplers.coupling.convex_correction.WINDOW", window)
    form = GridForm(rows, columns, mixture_for(Fraction(1), rows * columns))
    zeros = [[0] * columns for _ in range(rows)]
    for state in [[0] * form.cells, *some_states(form, 3, "dominates")]:
        taus = [form.mixture.tau(j) for j in state]
        grid = [taus[i * columns : (i + 1) * columns] for i in range(rows)]
        with precision(100):
            truth = sum(
                (log_theta(ball(1 / ideal_parameters(grid, zeros, i, j)[1])) for i in range(rows - 1) for j in range(columns - 1)), arb(0)
            )
            phi = ball(form.convex.value(state))
            assert truth < phi
            value, error = form.convex.in_doubles(np.array(state))
            assert abs(enclosure(phi).nearest() - value) <= error


@pytest.mark.parametrize(("axes", "epsilon"), [((4, 4), Fraction(1, 20)), ((10, 10), QUARTER)])
def test_the_margin_costs_less_than_one_try_in_a_thousand(axes: tuple[int, int], epsilon: Fraction) -> None:
    """And doubles still meet both certificates."""
    sampler, words = CouplingLaplace.of_grid(axes, epsilon), stream("margin")
    assert sampler.klein.xi * sampler.form.dimension < 1 / 1000
    for own in sampler.take_words(5, words):
        assert sampler.make_try(own, words).error < 1e-8


def test_parameters_of_coordinates_are_as_near_the_ideal_as_certified() -> None:
    """Centres and stretched variances from the compiled loop against rationals."""
    sampler, words = CouplingLaplace.of_grid((5, 4), QUARTER), stream("parameters")
    assert isinstance(sampler.form, GridForm)
    assert isinstance(sampler.klein, GridKlein)
    xi = Fraction(sampler.klein.xi)
    for own in sampler.take_words(2, words):
        made = sampler.make_try(own, words)
        taus = [sampler.form.mixture.tau(j) for j in made.indices]
        grid = [taus[i * 4 : i * 4 + 4] for i in range(5)]
        table = made.proposal.z.reshape(5, 4).tolist()
        for n, (centre, variance) in enumerate(zip(made.proposal.centres, made.proposal.variances, strict=True)):
            ideal_centre, ideal = ideal_parameters(grid, table, *divmod(n, 3))
            assert ideal * (1 + xi * 3 / 4) <= Fraction(variance) <= ideal * (1 + xi * 5 / 4)
            assert (Fraction(centre) - ideal_centre) ** 2 <= Fraction(2, 5) * xi * xi * ideal


def test_rationals_take_over_where_a_certificate_fails() -> None:
    plain = CouplingLaplace.of_grid((3, 4), HALF).draw(5, stream("rational"))
    doubtful = CouplingLaplace.of_grid((3, 4), HALF)
    assert isinstance(doubtful.klein, GridKlein)
    doubtful.klein.tolerance = -1.0
    assert np.array_equal(doubtful.draw(5, stream("rational")), plain)


def test_the_chance_in_doubles_is_as_near_the_exact_one_as_it_says() -> None:
    sampler, words = CouplingLaplace.of_grid((4, 4), HALF), stream("chance")
    for own in sampler.take_words(5, words):
        made = sampler.make_try(own, words)
        with precision(160):
            exact = enclosure(sampler.chance(made.indices, made.proposal).log())
        assert abs(exact.nearest() - made.log_chance) <= made.error < 1e-8
        assert exact.upper <= 0


@pytest.mark.ordinary("3 x 3")
@pytest.mark.parametrize(
    ("axes", "epsilon", "reach", "n"),
    [((2, 3), Fraction(1), 20, 3000), ((3, 3), HALF, 22, 3000)],
    ids=["2 x 3 at 1", "3 x 3 at 1/2"],
)
def test_the_law_is_that_of_enumeration(axes: tuple[int, int], epsilon: Fraction, reach: int, n: int) -> None:
    z = CouplingLaplace.of_grid(axes, epsilon).draw(n, stream("fit"))
    assert not (margin_rows(axes) @ z.T).any()
    check_fit_categories(counted(z, epsilon), enumerated(margin_rows(axes), epsilon, reach), name=f"coupling from the past, {axes}")


def test_a_turned_grid_has_the_same_margins() -> None:
    z = CouplingLaplace.of_grid((3, 5), HALF).draw(20, stream("turned"))
    assert not (margin_rows((3, 5)) @ z.T).any()
    assert np.abs(z).sum() > 0


def test_four_by_four_agrees_with_rejection() -> None:
    """Sums of absolute values of exact draws by two methods that share nothing."""
    n = 1500
    ours = np.abs(CouplingLaplace.of_grid((4, 4), QUARTER).draw(n, stream("agree"))).sum(axis=1)
    theirs = np.abs(GridLaplace((4, 4), QUARTER).draw(n, stream("agree, rejection"))).sum(axis=1)
    assert two_sample_p_value(ours // 4, theirs // 4) > ALPHA
    assert two_sample_p_value(ours // 4, theirs // 4 + 2) < ALPHA  # eight of some forty more are seen


def test_three_by_three_agrees_with_rejection_where_epsilon_is_a_thousandth() -> None:
    """Sums of absolute values, some four thousand; a quarter more is seen."""
    epsilon, n = Fraction(1, 1000), 1500
    ours = np.abs(CouplingLaplace.of_grid((3, 3), epsilon).draw(n, stream("small epsilon"))).sum(axis=1)
    theirs = np.abs(GridLaplace((3, 3), epsilon).draw(n, stream("small epsilon, rejection"))).sum(axis=1)
    assert two_sample_p_value(ours // 200, theirs // 200) > ALPHA
    assert two_sample_p_value(ours // 200, theirs * 5 // 4 // 200) < ALPHA


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(1, 3), Fraction(7), Fraction(500)], ids=str)
def test_sums_over_the_integers_are_those_of_their_terms(variance: Fraction) -> None:
    with precision(128):
        for distance in (Fraction(0), Fraction(-1, 3), Fraction(1, 2)):
            plain = sum(((-ball((k - distance) ** 2 / (2 * variance))).exp() for k in range(-400, 401)), arb(0))
            found = gaussian_sum(distance, variance)
            assert abs(found - plain) < arb(2) ** -110 * plain
            assert found.rad() < arb(2) ** -110 * plain


def test_an_axis_whose_sums_doubles_cannot_hold_is_refused() -> None:
    """At epsilon 1/256 the widest atom has 2^53 units once it is taken some 200,000 times; the smaller epsilon, the sooner."""
    mixture = mixture_for(Fraction(1, 256), 40_000)
    assert len(GridForm(2, 20_000, mixture).tables[0]) == GridForm(2, 20_000, mixture).atoms
    with pytest.raises(NoExactSampler, match="shorter axes"):
        GridForm(2, 900_000, mixture).tables  # noqa: B018


def test_restarting_slow_tries_would_bias_the_law() -> None:
    """Why no try is capped: 2 x 2 at epsilon 1/2 has P[0] = tanh 1 = .7616; giving up where two sweeps do not meet makes 0 likelier."""
    sampler, words = CouplingLaplace.of_grid((2, 2), HALF), stream("restart")
    zeros, kept = 0, 0
    full = CouplingLaplace.of_grid((2, 2), HALF).draw(6000, stream("no restart"))
    while kept < 6000:
        for own in sampler.take_words(6000 - kept, words):
            ended, state, _ = sampler.form.back(own.first[-2:], np.full((2, 4), -1), 0.0)
            if ended != 0:
                continue
            made = sampler.weigh([int(j) for j in state], sampler.klein.propose(state, own.taken[4:-2], own.base + 4, words))
            if sampler.accepts(made, own, words):
                kept, zeros = kept + 1, zeros + int(not made.proposal.z.any())
    standard_error = (0.7616 * 0.2384 / 6000) ** 0.5
    assert abs(float((full == 0).all(axis=1).mean()) - np.tanh(1.0)) < 6.5 * standard_error
    assert zeros / kept - np.tanh(1.0) > 6.5 * standard_error


def test_a_sampler_pickles_and_draws_the_same() -> None:
    for sampler in (CouplingLaplace.of_grid((3, 4), HALF), CouplingLaplace.of_rows([[3, 5, 7, 2]], HALF)):
        drawn = sampler.draw(2, stream("pickle"))
        assert np.array_equal(pickle.loads(pickle.dumps(sampler)).draw(2, stream("pickle")), drawn)


def test_words_taken_depend_on_the_number_of_tries_alone() -> None:
    words = stream("words")
    sampler = CouplingLaplace.of_grid((3, 4), HALF)
    sampler.draw(10, words)
    assert words.position % sampler.words_per_try == 0
    assert words.position >= 10 * sampler.words_per_try


def test_nothing_free_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="fix every cell"):
        CouplingLaplace.of_grid((1, 4), HALF)
    with pytest.raises(InvalidParameter, match="fix every cell"):
        CouplingLaplace.of_rows([[1, 0], [0, 1]], HALF)


def test_known_draws() -> None:
    """The same on every machine, until the format of the stream changes."""
    z = CouplingLaplace.of_grid((3, 4), HALF).draw(2, stream("known answer"))
    assert z.tolist() == KNOWN
