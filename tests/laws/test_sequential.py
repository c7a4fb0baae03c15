"""The price of a step by its definition, and what the sequential law says of itself."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.lattices.shapes import Free, OneSum
from holdfast.laws import Gaussian, LevelGaussian, Sequential, kappa_bound
from tests.examples import examples
from tests.samplers.test_known_answers import UNITS, WEIGHTED

CHECKED = {"1/8": 1.00537, "1/5": 0.3169, "1/4": 0.1440, "3/10": 0.0638, "2/5": 0.0118, "1/2": 0.00204, "63/100": 1.98e-4,
           "4/5": 8.8e-6, "1": 2.1e-7, "63/50": 1.6e-9, "2": 1.1e-15}  # fmt: skip


def variance_at(v: float, c: float) -> float:
    k = np.arange(-60, 62)
    weights = np.exp(-((k - c) ** 2) / (2 * v))
    mean = (k * weights).sum() / weights.sum()
    return float(((k - mean) ** 2 * weights).sum() / weights.sum())


@pytest.mark.parametrize("v", CHECKED)
def test_check_values(v: str) -> None:
    assert float(kappa_bound(Fraction(v))) == pytest.approx(CHECKED[v], rel=0.03)


@settings(max_examples=examples(60), deadline=None)
@given(st.fractions(Fraction(1, 60), 2, max_denominator=1000), st.floats(0, 1))
def test_no_centre_has_a_larger_variance_and_the_middle_has_it(v: Fraction, c: float) -> None:
    price = 1 + float(kappa_bound(v))
    assert variance_at(float(v), c) <= price * float(v) * (1 + 1e-12)
    assert variance_at(float(v), 0.5) >= price * float(v) * (1 - 1e-7)


def test_it_falls_and_ends_at_its_least() -> None:
    found = [kappa_bound(Fraction(k, 40)) for k in range(1, 200)]
    assert all(a >= b for a, b in itertools.pairwise(found))
    assert found[-1] == kappa_bound(Fraction(10**6)) == Fraction(1, 10**30)
    for v in (Fraction(1, 10**6), Fraction(1, 10**400)):  # beyond what a double holds
        assert kappa_bound(v) * v == pytest.approx(0.25, rel=1e-5)


def test_it_has_a_label_of_its_own_and_no_weights() -> None:
    made, other = Sequential(Gaussian(Fraction(7, 2)), Fraction(1, 100)), Sequential(Gaussian(Fraction(7, 2)))
    assert made.fields == other.fields == ("sequential", "gaussian", "7/2")
    assert made.fields != made.of.fields
    assert "one cell after the other" in made.formula


def test_variances_are_raised_a_little_or_left_to_draws() -> None:
    small, large = Sequential(Gaussian(Fraction(2)), Fraction(1, 10**9)), Sequential(Gaussian(Fraction(1, 4)), Fraction(1))
    found = small.block_variance(OneSum(4))
    assert found is not None
    assert 2 < found.scale < 2 * (1 + 1e-6)
    assert found.basis == "upper bound"
    assert large.block_variance(OneSum(4)) is None
    free = large.block_variance(Free(1))
    assert free is not None
    assert free.basis == "exact"
    weighted = Sequential(WEIGHTED, Fraction(1, 10**9)).block_variance(UNITS)
    plain = WEIGHTED.block_variance(UNITS)
    assert weighted is not None
    assert weighted.form is not None
    assert plain.form is not None
    assert weighted.form.diagonal() == pytest.approx(plain.form.diagonal(), rel=1e-6)
    assert (weighted.form.of(np.eye(UNITS.size)) >= plain.form.of(np.eye(UNITS.size))).all()


@pytest.mark.parametrize("of", [Gaussian(Fraction(3, 10)), LevelGaussian(Fraction(1), ((0, 0, Fraction(1)),))])
def test_tails_are_bounds_that_fall(of: Gaussian | LevelGaussian) -> None:
    lattice = hf.lattice(hf.Universe.product({"a": list("xyz")}), [hf.total()])
    law = Sequential(of, kappa_bound(Fraction(1, 8)))
    found = [law.log_tail(lattice, t) for t in range(1, 60)]
    assert found[0] == 0.0
    assert all(a >= b for a, b in itertools.pairwise(found))
    assert found[-1] < -50
    assert all(value >= of.log_tail(lattice, t) for t, value in enumerate(found, 1))
