"""General blocks by classes of equal columns: every point by its law, all falls of the coins, projections, and what large blocks cost."""

from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.lattices import algebra
from holdfast.lattices.shapes import General
from holdfast.laws import Gaussian, Rounded
from holdfast.randomness import NoiseKey
from holdfast.samplers.choice import Reason
from holdfast.samplers.classes import ClassGaussian, RoundedClasses
from holdfast.samplers.rounded_projection import WordCoins
from holdfast.samplers.table import choose
from holdfast.tables import Universe
from holdfast.testing import check_fit, fit_p_value, fits
from tests.samplers.test_klein import Enumerated
from tests.samplers.test_rounded import enumerate_coins

OVERLAP = General(((1, 0, 1), (0, 1, 1)), (2, 1, 2))
"""Two overlapping sets, in each two cells or one of its own, and two in both."""
SHAPES = {"two overlapping area systems": OVERLAP, "coefficients": General(((1, 2, 0), (0, 1, -1)), (1, 2, 2))}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 4), Fraction(3, 2), Fraction(10**6)], ids=str)
def test_the_same_draws_without_floats(name: str, sigma_squared: Fraction) -> None:
    import holdfast.samplers._levels_compiled  # noqa: F401  # so that the fast form is taken

    sampler = ClassGaussian(SHAPES[name], sigma_squared)
    slow_words, fast_words = (NoiseKey.for_tests("classes").stream(name) for _ in range(2))
    slow, fast = sampler.draw_slowly(6, slow_words), sampler.draw(6, fast_words)
    assert np.array_equal(slow, fast)
    assert slow_words.position == fast_words.position
    assert not (SHAPES[name].listed_matrix() @ fast.T).any()


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_every_point_of_small_cases(name: str) -> None:
    """A variance 4 % off is seen. In the first case the accept step of the cells matters at sigma_squared 3/10: without it the law fails.
    In the other nearly all class totals are 0 there, and its share cannot be seen.
    """
    sigma_squared, shape, draws = Fraction(3, 10), SHAPES[name], 60_000
    basis = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(shape.listed_matrix())))
    law = Enumerated(basis, sigma_squared)
    sampler = ClassGaussian(shape, sigma_squared)
    z = sampler.draw(draws, NoiseKey.for_tests("classes law").stream(name))
    check_fit(law.places(z), law.pmf, name=f"classes, {name}")
    assert not fits((z**2).sum(axis=1), law.shells(sigma_squared * Fraction(26, 25)))
    words = NoiseKey.for_tests("classes law").stream(name, "one coin")
    lenient = sampler.inside.draw_given(sampler.totals.draw(draws, words), words)[0]
    assert name == "coefficients" or fit_p_value(law.places(lenient), law.pmf) < 1e-9


@pytest.mark.parametrize("name", SHAPES)
def test_rounding_is_unbiased_and_commutes_with_shifts_by_enumeration(name: str) -> None:
    shape = SHAPES[name]
    sampler, rows, basis = RoundedClasses(shape, 1), shape.listed_matrix(), shape.basis()
    rng = np.random.default_rng(5)
    for e in rng.integers(-3, 4, (5, shape.size)):
        law = enumerate_coins(lambda coin, e=e: sampler.round_one(e.tolist(), coin))  # type: ignore[misc]
        assert sum(law.values()) == 1
        assert not (rows @ np.array(list(law)).T).any()
        mean = [float(sum((p * z[i] for z, p in law.items()), Fraction(0))) for i in range(shape.size)]
        assert mean == pytest.approx(shape.project(e[None].astype(np.float64))[0], abs=1e-9)
        shift = basis @ rng.integers(-2, 3, shape.dimension)
        moved = enumerate_coins(lambda coin, e=e + shift: sampler.round_one(e.tolist(), coin))  # type: ignore[misc]
        assert moved == {tuple(int(a) + int(b) for a, b in zip(z, shift, strict=True)): p for z, p in law.items()}
        spread = [sum(float(p) * (z[i] - mean[i]) ** 2 for z, p in law.items()) for i in range(shape.size)]
        assert (np.array(spread) <= shape.rounding_diagonal() / 4 + 1e-9).all()
        words = [NoiseKey.for_tests("rounded classes").stream(name) for _ in range(2)]
        assert sampler.round(e[None], words[0])[0].tolist() == sampler.round_one(e.tolist(), WordCoins(words[1]))


@pytest.mark.parametrize("name", SHAPES)
def test_projections_by_classes_are_those_of_the_basis(name: str) -> None:
    shape = SHAPES[name]
    basis = shape.basis().astype(np.float64)
    projection = basis @ np.linalg.inv(basis.T @ basis) @ basis.T
    assert shape.project(np.eye(shape.size)) == pytest.approx(projection, abs=1e-9)
    assert shape.projection_diagonal() == pytest.approx(np.diag(projection), abs=1e-9)
    products = shape.gram_schmidt_products(np.eye(shape.size))
    assert (products**2).sum(axis=1) == pytest.approx(shape.rounding_diagonal(), abs=1e-9)
    asked = np.concatenate([shape.listed_matrix(), np.eye(shape.size, dtype=np.int64)])
    assert shape.are_fixed(asked).tolist() == (~(asked @ shape.basis()).any(axis=1)).tolist()


def districts() -> tuple[Universe, list[hf.invariants.constraints.Constraint]]:
    """3,000 tracts in 20 counties and, across these, 12 school districts."""
    tracts = [f"{i:04d}" for i in range(3000)]
    counties = {f"county {c}": [t for i, t in enumerate(tracts) if i % 20 == c] for c in range(20)}
    schools = {f"district {d}": [t for i, t in enumerate(tracts) if (i // 250) == d] for d in range(12)}
    return Universe.product({"tract": tracts}), [hf.areas("tract", counties), hf.areas("tract", schools)]


@pytest.mark.long
def test_tracts_under_counties_and_districts_across_need_the_pairs_only(caplog: pytest.LogCaptureFixture) -> None:
    """2,969 free dimensions, refused before; 240 classes leave 209, which is said before it is prepared."""
    made = hf.lattice(*districts())
    ((_, shape, _),) = made.blocks.used_shapes()
    assert isinstance(shape, General)
    assert (made.dimension, shape.class_dimension, len(shape.class_sizes)) == (3000 - 31, 240 - 31, 240)
    with caplog.at_level(logging.INFO, logger="holdfast"):
        law = hf.GeneralizedGaussian(sigma_squared=20).law(made)
        z = law.sample(1, NoiseKey.for_tests("districts"))[0]
    assert "209 free dimensions is prepared, once: about 1 seconds" in caplog.text
    assert made.contains(z)
    assert choose(shape, Gaussian(Fraction(20))).reason is choose(shape, Rounded(Fraction(1))).reason is Reason.CLASSES
    assert law.covariance().diagonal().mean() == pytest.approx(20 * made.dimension / made.cells)
    assert law.covariance().of(made.matrix[[0]].toarray()[0]) == 0
    rounded = hf.RoundedProjection(epsilon=1, per="distance").law(made)
    assert made.contains(rounded.sample(1, NoiseKey.for_tests("districts"))[0])
    assert rounded.covariance().basis == "upper bound"
