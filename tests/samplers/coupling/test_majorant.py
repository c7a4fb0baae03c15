"""The convex majorant of the lattice correction: certified, compared with its two formulas, and shown to need its slope."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InternalError
from holdfast.exact.balls import ball, precision
from holdfast.samplers.coupling import convex_correction as room
from holdfast.samplers.coupling.convex_correction import KNEE, certify, log_theta, majorant
from holdfast.samplers.theta import log_theta3


def test_convexity_and_slope_are_certified() -> None:
    assert certify()


@pytest.mark.parametrize(("name", "wrong"), [("KNEE", Fraction(84, 10)), ("SLOPE", Fraction(44964, 1_000_000))])
def test_a_knee_behind_the_inflection_or_a_smaller_slope_is_not_certified(
    name: str, wrong: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    certify.cache_clear()
    monkeypatch.setattr(room, name, wrong)
    monkeypatch.setattr(room, "HALVINGS", 12)
    assert not certify()
    with pytest.raises(InternalError, match="nothing is drawn"):
        room.check_certified()
    certify.cache_clear()


def test_the_tangent_at_the_knee_would_be_below() -> None:
    """H' still grows there: with the slope of the tangent the line would pass below H."""
    with precision(128):
        slope, x = room.log_theta_derivatives(ball(KNEE))[0], ball(Fraction(844, 100))
        assert log_theta(ball(KNEE)) + slope * (x - ball(KNEE)) < log_theta(x) < majorant(x)


@given(st.fractions(Fraction(1, 20), 40), st.fractions(Fraction(1, 20), 40))
def test_it_is_above_increasing_and_convex(x: Fraction, y: Fraction) -> None:
    with precision(256):
        at_x, at_y, middle = (majorant(ball(point)) for point in (x, y, (x + y) / 2))
        assert not at_x < log_theta(ball(x))
        assert not 2 * middle > at_x + at_y
        assert x == y or (at_x < at_y) == (x < y)


@given(st.fractions(Fraction(1, 2), 40))
def test_both_formulas_of_the_correction_agree(x: Fraction) -> None:
    with precision(200):
        assert room.log_theta_by_definition(ball(x)).overlaps(room.log_theta_by_poisson(ball(x)))
    with precision(100):
        assert float(log_theta(ball(x)).mid()) == pytest.approx(float(log_theta3(float(1 / x))), abs=1e-13)


def test_a_wide_ball_across_the_knee_holds_both_sides() -> None:
    with precision(64):
        wide = majorant(arb(8).union(arb(9)))
        assert wide.contains(majorant(arb(8)))
        assert wide.contains(majorant(arb(9)))
