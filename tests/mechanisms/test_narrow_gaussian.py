"""A Gaussian much narrower than the shortest move, on a general block: its law and its promise are those of every other ([theory R7]), so
it is drawn and not refused. What it costs stands in rho.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import holdfast as hf
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import General
from holdfast.testing import check_fit_categories
from holdfast.testing.fit import ALPHA, chi_square_p_value

ROWS = np.array([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 1, 1]])
REACH = 5
"""Coefficients of a reduced basis up to this: every move of squared length below 20 or so is among them."""


def law_of(lattice: Lattice, sigma_squared: Fraction) -> dict[tuple[int, ...], float]:
    """P[z] over all moves with small coefficients; the others weigh less than 1e-12 of it at the variances used here (checked)."""
    basis = np.asarray(lattice.blocks.shapes[0].basis(), dtype=np.int64)
    weights, edge = {}, 0.0
    for v in itertools.product(range(-REACH, REACH + 1), repeat=basis.shape[1]):
        z = basis @ v
        weight = math.exp(-int(z @ z) / (2 * float(sigma_squared)))
        weights[tuple(z.tolist())] = weight
        edge += weight if max(map(abs, v)) == REACH else 0.0
    assert edge < 1e-9 * math.fsum(weights.values())
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


@pytest.fixture(scope="module")
def lattice() -> Lattice:
    made = Lattice(ROWS)
    assert isinstance(made.blocks.shapes[0], General)
    return made


@pytest.mark.parametrize("sigma_squared", ["1/10", "1/3", "1/2"])
def test_the_promise_holds_by_enumeration(lattice: Lattice, sigma_squared: str) -> None:
    """Renyi divergences between the law and itself shifted by a move l are at most alpha |l|^2 / (2 sigma_squared), for every order."""
    variance = Fraction(sigma_squared)
    guarantee = hf.GeneralizedGaussian(sigma_squared=sigma_squared).law(lattice).guarantee
    assert guarantee.rho == 1 / (2 * variance)
    basis = np.asarray(lattice.blocks.shapes[0].basis(), dtype=np.int64)
    coefficients = np.array(list(itertools.product(range(-8, 9), repeat=basis.shape[1])))  # the sum below peaks at -(alpha - 1) l
    z = (coefficients @ basis.T).astype(np.float64)
    squares = (z**2).sum(axis=1)
    order = np.argsort(squares, kind="stable")
    normaliser = logsumexp(-squares / (2 * float(variance)))
    for l, alpha in itertools.product(z[order[1:9]], (1.5, 2.0, 5.0)):
        exponents = -(alpha * squares + (1 - alpha) * ((z - l) ** 2).sum(axis=1)) / (2 * float(variance))
        divergence = (logsumexp(exponents) - normaliser) / (alpha - 1)
        assert 0 < divergence <= alpha * float(guarantee.rho) * float(l @ l) * (1 + 1e-12)


@pytest.mark.parametrize("sigma_squared", ["1/3", "1/2"])
def test_it_is_drawn_exactly(lattice: Lattice, sigma_squared: str) -> None:
    made: Any = hf.GeneralizedGaussian(sigma_squared=sigma_squared).law(lattice)
    law = law_of(lattice, Fraction(sigma_squared))
    ordered = dict(sorted(law.items(), key=lambda item: -item[1]))
    draws = [tuple(row) for row in made.sample(50_000, hf.NoiseKey.for_tests("narrow")).tolist()]
    counts = dict.fromkeys(ordered, 0)
    for z in draws:
        counts[z] += 1
    check_fit_categories(counts, ordered, name=f"narrow Gaussian on a general block, {sigma_squared}")
    other = law_of(lattice, Fraction(sigma_squared) * Fraction(21, 20))  # 5 % more variance would be noticed
    assert chi_square_p_value(list(counts.values()), [other[z] for z in ordered], len(draws)) < ALPHA


def test_the_tries_expected_are_those_of_the_law(lattice: Lattice) -> None:
    """The proved bound says nothing here (it is above 10^4); the pilot finds what the law gives, which is nearly one."""
    (group,) = hf.GeneralizedGaussian(sigma_squared="1/2000").law(lattice).sampler.groups
    assert group.expected_tries == 1.0
    assert not hf.GeneralizedGaussian(sigma_squared="1/2000").law(lattice).sample(100).any()
