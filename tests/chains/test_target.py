"""Targets: integer energies that stand for the weights asked for, bounds, what is refused."""

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
from holdfast.research.chains.lattices import target_of_forms

FORMS = np.array([[1, 0, 0], [0, 1, -1], [1, 1, 1]])
WEIGHTS = [Fraction(1, 4), Fraction(3, 10), Fraction(7)]

tables = st.lists(st.integers(-50, 50), min_size=3, max_size=3).map(lambda z: np.array(z, dtype=np.int64))


@given(tables)
def test_forms_with_rational_weights_give_exactly_the_exponent_asked_for(z: np.ndarray) -> None:
    values = [int(v) for v in FORMS @ z]
    absolute = target_of_forms("absolute", FORMS, WEIGHTS)
    assert absolute.decay.rate * absolute.energy(z) == sum(w * abs(v) for w, v in zip(WEIGHTS, values, strict=True))
    squares = target_of_forms("squares", FORMS, WEIGHTS)
    assert squares.decay.rate * squares.energy(z) == sum(w * v * v for w, v in zip(WEIGHTS, values, strict=True))
    norm = target_of_forms("norm", FORMS, WEIGHTS)
    assert norm.decay.rate**2 * norm.energy(z) == sum(w * v * v for w, v in zip(WEIGHTS, values, strict=True))


@given(tables)
def test_the_usual_targets(z: np.ndarray) -> None:
    assert ChainTarget.laplace(3, "1/4").energy(z) == abs(z).sum()
    assert ChainTarget.laplace(3, "1/4", "l2").energy(z) == (z * z).sum() == ChainTarget.gaussian(3, 8).energy(z)
    assert ChainTarget.gaussian(3, 8).decay.rate == Fraction(1, 16)
    eye = ChainTarget(Decay("absolute", Fraction(1)), 3, np.eye(3, dtype=np.int64))
    assert eye.energy(z) == ChainTarget.laplace(3, 1).energy(z)
    assert (eye.values(z) == z).all()


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
    target = target_of_forms("absolute", FORMS, WEIGHTS).within(lower=[-1, -1, -1])
    back = pickle.loads(pickle.dumps(target))
    assert back.decay == target.decay
    assert (back.forms == FORMS).all()
    assert back.upper is None
    assert (back.lower == -1).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChainTarget.laplace(3, 0),
        lambda: ChainTarget.laplace(3, 0.25),  # type: ignore[arg-type]
        lambda: ChainTarget(Decay("absolute", Fraction(1)), 3, FORMS[:, :2]),
        lambda: ChainTarget(Decay("absolute", Fraction(1)), 3, FORMS, np.array([1, 2])),
        lambda: ChainTarget(Decay("absolute", Fraction(1)), 3, FORMS, np.array([1, 2, 0])),
        lambda: ChainTarget(Decay("absolute", Fraction(1)), 3, FORMS * 0.5),  # type: ignore[arg-type]
        lambda: ChainTarget(Decay("absolute", Fraction(1)), 3, FORMS << 31),
        lambda: ChainTarget.laplace(2, 1).within(lower=[1, 0]),
        lambda: ChainTarget.laplace(2, 1).within(upper=[0, -1]),
        lambda: ChainTarget.laplace(2, 1).within(upper=[0]),
        lambda: target_of_forms("norm", np.eye(2, dtype=np.int64), [Fraction(1, 1 << 40), Fraction(1, 3 << 40)]),
        lambda: target_of_forms("absolute", np.eye(2, dtype=np.int64), [1, 1 << 31]),
        lambda: target_of_forms("absolute", np.eye(2, dtype=np.int64), [1, 1 << 70]),
        lambda: Decay("norm", Fraction(1), Fraction(1, 2)),
        lambda: Decay("absolute", Fraction(1), Fraction(3, 2)),
    ],
)
def test_refusals(make: Callable[[], object]) -> None:
    with pytest.raises(HoldfastError):
        make()


def test_factors_of_a_norm_go_into_multipliers_up_to_the_largest() -> None:
    """Weights 1 / q and 2 / q: multipliers q and 2 q, which are refused once they reach 2^31, not wrapped."""
    q = (1 << 30) - 1
    target = target_of_forms("norm", np.eye(2, dtype=np.int64), [Fraction(1, q), Fraction(2, q)])
    assert target.multipliers is not None
    assert target.multipliers.tolist() == [q, 2 * q]
    with pytest.raises(InvalidParameter, match="below 2\\^31"):
        target_of_forms("norm", np.eye(2, dtype=np.int64), [Fraction(1, q + 1), Fraction(2, q + 1)])


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
    whole = np.arange(12).reshape(4, 3)
    multipliers, upper = np.array([1, 2, 3, 4]), np.array([1, 2, 3])
    target = ChainTarget(Decay("absolute", Fraction(1)), 3, whole[:], multipliers, None, upper)
    for array in (whole, multipliers, upper):
        array += 7  # still free to change
    assert target.forms is not None
    assert target.multipliers is not None
    assert target.upper is not None
    assert target.forms[0].tolist() == [0, 1, 2]
    assert target.multipliers.tolist() == [1, 2, 3, 4]
    assert target.upper.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        target.upper[0] = 9


def test_a_rate_that_is_not_positive_is_refused() -> None:
    for rate in (Fraction(0), Fraction(-1)):
        with pytest.raises(InvalidParameter, match="greater than zero"):
            Decay("absolute", rate)
