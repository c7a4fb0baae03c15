"""Targets: integer energies, bounds, what is refused."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chains.target import ChainTarget, Decay
from holdfast.errors import HoldfastError, InvalidParameter
from holdfast.exact.balls import precision

tables = st.lists(st.integers(-50, 50), min_size=3, max_size=3).map(lambda z: np.array(z, dtype=np.int64))


@given(tables)
def test_the_usual_targets(z: np.ndarray) -> None:
    assert ChainTarget.laplace(3, "1/4").energy(z) == abs(z).sum()
    assert ChainTarget.laplace(3, "1/4", "l2").energy(z) == (z * z).sum() == ChainTarget.gaussian(3, 8).energy(z)
    assert ChainTarget.gaussian(3, 8).decay.rate == Fraction(1, 16)


def test_ratios_of_weights_are_what_they_say() -> None:
    with precision(100):
        assert arb(-5).exp().overlaps(Decay("absolute", Fraction(1, 2)).ratio(13, 3))
        assert (-(arb(13).sqrt() - arb(3).sqrt()) / 2).exp().overlaps(Decay("norm", Fraction(1, 2)).ratio(13, 3))
        rational = Decay("squares", Fraction(1), Fraction(2, 3))
        assert (arb(2) / 3 * arb(2) / 3).overlaps(rational.ratio(5, 3))
    assert rational.exact_ratio(5, 3) == Fraction(4, 9)
    assert rational.rate_double == pytest.approx(math.log(1.5), rel=1e-15)
    with pytest.raises(InvalidParameter, match="rational base"):
        Decay("absolute", Fraction(1)).exact_ratio(2, 1)


def test_bounds() -> None:
    target = ChainTarget.laplace(2, 1).within(lower=[-1, 0], upper=[4, 0])
    assert target.allows(np.array([4, 0]))
    assert not target.allows(np.array([-2, 0]))
    assert not target.allows(np.array([0, 1]))
    assert target.within().allows(np.array([99, 99]))


def test_a_target_survives_a_pickle() -> None:
    target = ChainTarget.laplace(3, "1/4").within(lower=[-1, -1, -1])
    back = pickle.loads(pickle.dumps(target))
    assert back.decay == target.decay
    assert back.upper is None
    assert (back.lower == -1).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChainTarget.laplace(3, 0),
        lambda: ChainTarget.laplace(3, 0.25),  # type: ignore[arg-type]
        lambda: ChainTarget.laplace(2, 1).within(upper=[0.5, 1.0]),
        lambda: ChainTarget.laplace(2, 1).within(upper=[[1, 1]]),
        lambda: ChainTarget.laplace(2, 1).within(upper=[1 << 31, 0]),
        lambda: ChainTarget.laplace(2, 1).within(lower=[1, 0]),
        lambda: ChainTarget.laplace(2, 1).within(upper=[0, -1]),
        lambda: ChainTarget.laplace(2, 1).within(upper=[0]),
        lambda: Decay("norm", Fraction(1), Fraction(1, 2)),
        lambda: Decay("absolute", Fraction(1), Fraction(3, 2)),
    ],
)
def test_refusals(make: Callable[[], object]) -> None:
    with pytest.raises(HoldfastError):
        make()


def test_the_rate_of_a_rational_base_is_a_double_within_one_rounding() -> None:
    """A base near 1 loses its digits in a double, its logarithm must not; bases and rates beyond all doubles give 0 or inf."""
    near = Fraction(1) - Fraction(1, 10**12)
    # -log(1 - x) = x + x^2 / 2 + x^3 / 3 + ..., what follows being below x^4
    x = 1 - near
    exact = x + x**2 / 2 + x**3 / 3
    assert abs(Fraction(Decay("absolute", Fraction(1), near).rate_double) - exact) <= exact / 2**52
    tiny = Decay("absolute", Fraction(1), 1 - Fraction(1, 10**120)).rate_double
    assert abs(Fraction(tiny) * 10**120 - 1) <= Fraction(1, 2**52)
    assert Decay("absolute", Fraction(1), Fraction(1, 10**400)).rate_double == pytest.approx(400 * math.log(10), rel=1e-15)
    assert Decay("absolute", Fraction(10**400)).rate_double == math.inf
    assert Decay("absolute", Fraction(1, 10**400)).rate_double == 0


def test_a_target_keeps_copies_of_what_it_was_given() -> None:
    upper = np.array([1, 2, 3])
    target = ChainTarget(Decay("absolute", Fraction(1)), 3, None, upper)
    upper += 7  # still free to change
    assert target.upper is not None
    assert target.upper.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        target.upper[0] = 9


def test_a_rate_that_is_not_positive_is_refused() -> None:
    for rate in (Fraction(0), Fraction(-1)):
        with pytest.raises(InvalidParameter, match="greater than zero"):
            Decay("absolute", rate)
