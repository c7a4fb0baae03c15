"""Standard deviations that a plan prints: against every outcome of the rounding, against long runs, and zero where a sum is kept."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import holdfast as hf
from holdfast.channels import covariance
from holdfast.lattices import Lattice
from holdfast.lattices.shapes.plain import zero_sum_basis
from holdfast.laws import families
from holdfast.laws.families import fraction_variance, grid_laplace_variance
from holdfast.samplers.rounded_projection import RoundedGrid, RoundedSampler, project
from holdfast.testing.fit import ALPHA, check_p_value
from holdfast.wording.errors import basis_phrase

OVERLAPPING = np.array([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 1, 1]])


def grid_lattice(*axes: int) -> Lattice:
    """All sums along each axis kept."""
    columns = [f"axis {k}" for k in range(len(axes))]
    universe = hf.Universe.product({column: [str(i) for i in range(n)] for column, n in zip(columns, axes, strict=True)})
    return hf.lattice(universe, [hf.margin(*rest) for rest in itertools.combinations(columns, len(axes) - 1)])


def covariance_by_all_branches(sampler: RoundedGrid) -> Any:
    """E[w w^T], w = z - P e, over every rounding in fractions.

    The rounding sees P e modulo L, which is one of det(B^T B) classes: that of e is B^+ e modulo one. The law of the class is found by
    adding up two-sided geometric noise cell by cell; a representative of each class is rounded in all ways that can happen.
    """
    basis = zero_sum_basis(sampler.shape)
    gram = basis.T @ basis
    order = round(np.linalg.det(gram))
    coordinates = np.rint(np.linalg.inv(gram) * order).astype(np.int64) @ basis.T % order
    rate = math.exp(-float(sampler.epsilon))
    geometric = {k: rate ** abs(k) * (1 - rate) / (1 + rate) for k in range(-60, 61)}
    law: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {(0,) * len(gram): (1.0, ())}
    for cell in range(sampler.cells):
        steps: dict[tuple[int, ...], tuple[float, int]] = {}
        for k, chance in geometric.items():
            key = tuple((k * coordinates[:, cell] % order).tolist())
            steps[key] = (steps.get(key, (0.0, k))[0] + chance, steps.get(key, (0.0, k))[1])
        after: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {}
        for (old, (mass, noise)), (step, (chance, k)) in itertools.product(law.items(), steps.items()):
            key = tuple((a + b) % order for a, b in zip(old, step, strict=True))
            before, known = after.get(key, (0.0, (*noise, k)))
            after[key] = (before + mass * chance, known)
        law = after
    assert len(law) == order
    out = np.zeros((sampler.cells, sampler.cells))
    for mass, noise in law.values():
        u = project(np.array([noise], dtype=np.int64), sampler.shape).ravel() / sampler.cells
        for z, share in outcomes(sampler, list(noise)):
            out += mass * float(share) * np.outer(z - u, z - u)
    return out


def outcomes(sampler: RoundedSampler, noise: list[int]) -> list[tuple[list[int], Fraction]]:
    """Every rounding of this noise with its probability: coins are answered in all ways that can happen."""
    found: list[tuple[list[int], Fraction]] = []
    pending: list[list[bool]] = [[]]
    while pending:
        answers = pending.pop()
        share, asked = Fraction(1), 0

        def coin(a: int, b: int, answers: list[bool] = answers) -> bool:
            nonlocal share, asked
            if a in (0, b):
                return a == b
            asked += 1
            if asked > len(answers):
                raise IndexError
            share *= Fraction(a, b) if answers[asked - 1] else 1 - Fraction(a, b)
            return answers[asked - 1]

        try:
            z = sampler.round_one(noise, coin)
        except IndexError:
            pending += [[*answers, True], [*answers, False]]
            continue
        found.append((z, share))
    return found


@pytest.mark.parametrize("axes", [(2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 2, 2)])
@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_what_rounding_adds_is_what_all_branches_add(axes: tuple[int, ...], epsilon: str) -> None:
    """Exact with one free dimension; else seven standard errors of the figures, which are given with them."""
    law = hf.RoundedProjection(epsilon=epsilon, per="distance").law(grid_lattice(*axes))
    found = law.covariance()
    (part,) = found.shapes
    true = covariance_by_all_branches(RoundedGrid(part.shape.axes, epsilon))  # a block may have its axes in another order
    cells = part.cells[0]
    assert part.rounding is not None
    if axes == (2, 2, 2):
        assert (found.basis, found.cell_basis) == ("exact", "exact")
        assert np.abs(part.rounding.dense() - true).max() < 1e-12
        return
    added = found.diagonal()[cells] - part.scale_diagonal
    assert (np.abs(added - true.diagonal()) < 7 * found.cell_error * found.diagonal()[cells]).all()
    assert 0 < found.cell_error < 0.02
    queries = [np.eye(len(true))[0], np.arange(len(true)) % 3, np.arange(len(true)) % 2]
    for query in map(np.asarray, queries):
        off = abs(part.rounding.of(query[None].astype(np.float64)) - query @ true @ query)
        assert off <= 7 * found.relative_error * float(query @ true @ query) + 1e-12


@pytest.mark.parametrize("axes", [(3,), (7,), (2, 2), (2, 3)])
@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_the_closed_form_of_a_fraction_is_the_sum_over_all_residues(axes: tuple[int, ...], epsilon: str) -> None:
    """E[f (1 - f)] from the law of the cell's projection modulo one, by adding up two-sided geometric noise cell by cell."""
    cells, rate = math.prod(axes), math.exp(-float(Fraction(epsilon)))
    law = np.eye(1, cells)[0]
    for cell in np.ndindex(*axes):
        multiple = math.prod(n - 1 if i == 0 else -1 for n, i in zip(axes, cell, strict=True))
        shifted = [rate ** abs(k) * (1 - rate) / (1 + rate) * np.roll(law, multiple * k % cells) for k in range(-100, 101)]
        law = np.sum(shifted, axis=0)
    f = np.arange(cells) / cells
    assert fraction_variance(axes, Fraction(epsilon)) == pytest.approx(float((law * f * (1 - f)).sum()), rel=1e-11)


@pytest.mark.parametrize("axes", [(2, 3, 2), (2, 2, 3), (3, 3, 3), (3, 4)])
def test_rounded_projection_on_grids_has_the_deviations_of_a_long_run(axes: tuple[int, ...]) -> None:
    """Cells of a grid of three axes are not alike: by up to 40 % one number for all of them was wrong. Seven standard errors of a long run
    and of the figure itself are never reached by chance (1e-11 for all cells together).
    """
    law = hf.RoundedProjection(epsilon="3", per="distance").law(grid_lattice(*axes))
    found = law.covariance()
    draws = law.sample(200_000, hf.NoiseKey.for_tests("long run")).astype(np.float64)
    squares = draws**2
    error = squares.std(axis=0) / math.sqrt(len(draws)) + found.cell_error * found.diagonal()
    assert (np.abs(squares.mean(axis=0) - found.diagonal()) < 7 * error).all()
    assert found.cell_basis == ("exact" if len(axes) == 2 else "estimated")
    assert found.cell_error < 0.02
    query = np.arange(len(found.diagonal())) % 5
    sums = (draws @ query) ** 2
    error_of_sum = sums.std() / math.sqrt(len(draws)) + found.relative_error * found.of(query)
    assert abs(sums.mean() - found.of(query)) < 7 * error_of_sum
    assert found.of(query) == pytest.approx(float(query @ found.dense() @ query), rel=0.1 if len(axes) == 2 else 1e-9)


def test_the_old_way_of_one_number_for_all_cells_is_far_off() -> None:
    """What the test above must tell apart: its bars are narrower than the difference between cells."""
    diagonal = hf.RoundedProjection(epsilon="3", per="distance").law(grid_lattice(3, 3, 3)).covariance().diagonal()
    assert math.sqrt(diagonal.max() / diagonal.mean()) > 1.1


@pytest.mark.parametrize("cells", [2, 3, 8])
@pytest.mark.parametrize("epsilon", ["1/2", "2", "4"])
def test_one_sum_is_exact(cells: int, epsilon: str) -> None:
    law = hf.RoundedProjection(epsilon=epsilon, per="distance").law(Lattice(np.ones((1, cells), dtype=np.int64)))
    found = law.covariance()
    assert found.basis == "exact"
    squares = law.sample(200_000, hf.NoiseKey.for_tests("one sum")).astype(np.float64) ** 2
    assert (np.abs(squares.mean(axis=0) - found.diagonal()) < 7 * squares.std(axis=0) / math.sqrt(len(squares))).all()


def test_general_blocks_have_the_deviations_of_a_long_run() -> None:
    law = hf.RoundedProjection(epsilon="2", per="distance").law(Lattice(OVERLAPPING))
    found = law.covariance()
    squares = law.sample(200_000, hf.NoiseKey.for_tests("general")).astype(np.float64) ** 2
    error = squares.std(axis=0) / math.sqrt(len(squares)) + found.cell_error * found.diagonal()
    assert (np.abs(squares.mean(axis=0) - found.diagonal()) < 7 * error).all()
    assert found.cell_error < 0.02


def test_large_grids_have_a_bound_that_is_never_too_small() -> None:
    law = hf.RoundedProjection(epsilon="1", per="distance").law(grid_lattice(40, 40, 40))
    found = law.covariance()
    assert found.basis == "upper bound"
    squares = law.sample(20, hf.NoiseKey.for_tests("large")).astype(np.float64) ** 2
    assert squares.mean() < found.diagonal().mean() < 1.2 * squares.mean()


@pytest.mark.parametrize(
    "mechanism",
    [
        hf.GeneralizedGaussian(rho="1/10", per="distance"),
        hf.RoundedProjection(epsilon="1/2", per="distance"),
        hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
    ],
    ids=["gaussian", "rounded", "laplace"],
)
def test_a_kept_sum_has_no_deviation_at_all(mechanism: Any) -> None:
    """It showed 2.8e-15 or 4e-08 for general blocks: now integers decide that a combination is kept."""
    found = mechanism.law(Lattice(OVERLAPPING)).covariance()
    for row in (*OVERLAPPING, OVERLAPPING.sum(axis=0), 3 * OVERLAPPING[0] - 5 * OVERLAPPING[2]):
        assert found.of(row) == 0.0
    assert found.of(np.eye(7)[0]) > 0
    grid = mechanism.law(grid_lattice(3, 3)).covariance()
    assert [grid.of(row) for row in grid_lattice(3, 3).matrix.toarray()] == [0.0] * 6


def test_a_plan_of_a_general_block_shows_zero_for_a_kept_margin() -> None:
    universe = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"], "age": ["1", "2", "3"]})
    keep: list[Any] = [hf.margin("area"), hf.margin("sex"), hf.subset("age", ["1", "2"], by=["area"])]
    plan = hf.plan(universe, keep, hf.GeneralizedGaussian(rho="1/10", per="distance"))
    assert {name: deviation for name, deviation in plan.expected_error.margins if name != "age"} == {None: 0.0, "area": 0.0, "sex": 0.0}
    age = dict(plan.expected_error.margins)["age"]
    assert age is not None
    assert age > 0


def test_where_a_chain_draws_the_figures_are_said_to_be_those_of_its_aim() -> None:
    mechanism = hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance")
    found = mechanism.law(Lattice(np.array([[1, 1, 1]]))).covariance()
    assert (found.basis, found.of_target) == ("exact", True)
    assert repr(found) == f"Covariance(3 cells, exact, of the law that a chain aims at, relative error {found.relative_error:.1e})"
    assert not hf.GeneralizedLaplace(epsilon="1/2", per="distance").law(Lattice(np.array([[1, 1, 1]]))).covariance().of_target


def test_an_estimate_says_how_far_off_it_may_be() -> None:
    universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["1", "2"], "c": ["1", "2"]})
    margins: list[Any] = [hf.margin("a", "b"), hf.margin("a", "c"), hf.margin("b", "c")]
    said = hf.plan(universe, margins, hf.RoundedProjection(epsilon=1, per="distance")).to_fields()["expected_error"]
    assert said["basis"].startswith("estimated from draws of the public law, standard error 0.")
    assert 0 < said["relative_error"] < 0.01


def test_cells_that_a_norm_does_not_tell_apart_have_one_variance() -> None:
    """In l2 the whole lattice is drawn together. Estimates of cells that are alike were told as a range, which was chance alone."""
    universe = hf.Universe.product({"town": ["a", "b"], "sex": ["F", "M"]})
    plan = hf.plan(universe, [hf.margin("town")], hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance"))
    assert plan.covariance is not None
    found = plan.covariance.dense()
    steps = np.arange(-80, 81)  # z = (p, -p, q, -q)
    p, q = np.meshgrid(steps, steps)
    weights = np.exp(-np.sqrt(2 * p**2 + 2 * q**2) / 2)
    variance = float((weights * p**2).sum() / weights.sum())
    pair = np.array([[1, -1], [-1, 1]])
    assert np.array_equal(found, found[0, 0] * np.kron(np.eye(2), pair))
    assert abs(found[0, 0] / variance - 1) < 5 * plan.covariance.relative_error < 0.1
    error = plan.expected_error
    assert error.smallest == error.median == error.largest
    assert dict(error.margins) == pytest.approx({None: 0.0, "town": 0.0, "sex": (2 * found[0, 0]) ** 0.5})


REGIONS = np.array([[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 1, 0, 1, 0]])
"""Districts N1 and N2 of a region and a region S alone, by sex: the regions and the sexes are kept."""


def test_cells_that_kept_rows_do_not_tell_apart_have_one_variance_that_of_an_enumeration() -> None:
    found = hf.GeneralizedLaplace(epsilon="1/2", per="distance").law(Lattice(REGIONS)).covariance()
    steps = np.arange(-50, 51)
    a, b, s = (values.ravel() for values in np.meshgrid(steps, steps, steps))
    z = np.stack([a, b, -s - a, s - b, s, -s])
    assert not (REGIONS @ z).any()
    weights = np.exp(-np.abs(z).sum(axis=0) / 2)
    exact = (z * weights) @ z.T / weights.sum()
    estimate, variances = found.dense(), np.diag(exact)
    assert len(set(np.diag(estimate)[:4])) == len(set(np.diag(estimate)[4:])) == 1  # once six different figures
    assert np.allclose(REGIONS @ estimate, 0)
    assert found.basis == "estimated"
    assert abs(variances[0] / variances[4] - 1) > 10 * found.relative_error  # pooling all six would be seen
    assert np.abs(np.diag(estimate) / variances - 1).max() < 5 * found.relative_error < 0.15
    assert np.abs(estimate - exact).max() < 5 * found.relative_error * variances.max()


def test_a_rough_estimate_has_three_digits_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 draws: once six digits, "to about 3 %"."""
    monkeypatch.setattr(covariance, "PILOT_DRAWS", 200)
    universe = hf.Universe.product({"a": ["0", "1", "2"], "b": ["0", "1"], "c": ["0", "1"]})
    plan = hf.plan(universe, [hf.margin(column) for column in "abc"], hf.GeneralizedLaplace(epsilon="1/2", per="distance"))
    assert plan.covariance is not None
    assert plan.deviations is not None
    share = plan.covariance.cell_error / 2
    assert share > 0.01
    error, said = plan.expected_error, plan.to_fields()["expected_error"]
    numbers = [*plan.deviations.tolist(), *(value for _, value in error.margins if value is not None)]
    assert numbers == [float(f"{value:.3g}") for value in numbers]
    assert f"its standard deviation is about {error.median:g} for a typical cell" in said["text"]
    assert said["basis"] == basis_phrase("estimated", share, True)


def test_shown_deviations_are_as_far_off_as_their_standard_error_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """250 estimates of a deviation that is known, as a plan shows them, each from draws of its own. The power: two digits, as before."""
    known = grid_laplace_variance((3, 3), Fraction(1, 4))
    assert known is not None
    monkeypatch.setattr(families, "grid_laplace_variance", lambda axes, epsilon: None)
    columns = {column: ["0", "1", "2"] for column in "ab"}
    mechanism = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
    plan = hf.plan(hf.Universe.product(columns), [hf.margin("a"), hf.margin("b")], mechanism)
    real, z = covariance.public_draws, np.empty((250, 2))
    for number in range(len(z)):
        own = str(number)
        monkeypatch.setattr(covariance, "public_draws", lambda sampler, label, count, own=own: real(sampler, (*label, own), 2000))
        for name in ("covariance", "deviations"):
            plan.__dict__.pop(name, None)
        assert plan.covariance is not None
        assert plan.deviations is not None
        shown, share = float(plan.deviations[0]), plan.covariance.cell_error / 2
        assert 0.01 < share < 0.02
        z[number] = [(value / known[0] ** 0.5 - 1) / share for value in (shown, float(f"{shown:.2g}"))]
    stated, rounded = (z**2).sum(axis=0)
    check_p_value(float(chi2.sf(stated, len(z))), name="shown deviations", n=len(z), statistic=stated)
    assert chi2.sf(rounded, len(z)) < ALPHA


def test_cheap_draws_fill_a_budget_that_unlike_shapes_share(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    real = covariance.public_draws

    def counted(sampler: Any, label: Any, count: int) -> Any:
        counts.append(count)
        return real(sampler, label, 100)

    monkeypatch.setattr(covariance, "public_draws", counted)
    monkeypatch.setattr(covariance, "PILOT_DRAWS", 10**9)
    monkeypatch.setattr(covariance, "cell_draws", lambda sampler: 1_000.0)
    two = np.kron(np.eye(2, dtype=np.int64), REGIONS)
    two[3, 6] = 2  # a block of another shape
    for rows in (REGIONS, two):
        hf.GeneralizedLaplace(epsilon="1/2", per="distance").law(Lattice(rows)).covariance()
    assert counts == [30_000, 15_000, 15_000]  # once 5,000 each


def test_figures_of_estimates_are_readable() -> None:
    assert basis_phrase("estimated", 0.1, True) == "estimated from draws of the public law, standard error 10 %"
    assert basis_phrase("estimated", 0.0123, True) == "estimated from draws of the public law, standard error 1.3 %"
    universe = hf.Universe.product({"a": ["0", "1", "2"], "b": ["0", "1", "2"]})
    words = hf.plan(universe, [hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon=20, norm="l2", per="distance")).to_fields()[
        "expected_error"
    ]["text"]
    assert "too small to be estimated: in every draw of the public law it was 0" in words


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_noise_that_no_draw_had_is_not_said_to_be_none(norm: Any) -> None:
    universe = hf.Universe.product({"a": ["0", "1", "2"], "b": ["0", "1", "2"]})
    table = hf.Table(universe, np.arange(9))
    release = hf.release(
        table,
        [hf.margin("a"), hf.margin("b")],
        hf.GeneralizedLaplace(epsilon=20, norm=norm, per="distance"),
        key=hf.NoiseKey.for_tests("rare"),
    )
    assert release.table.standard_deviations is not None
    assert np.isnan(release.table.standard_deviations).all()
    said = release.plan.to_fields()["expected_error"]
    assert set(said["cell_standard_deviation"].values()) == {None}
    assert "too small to be estimated" in said["text"]
