"""Low-order bits: noise in floating point tells who was counted where, with certainty now and then; on a grid there is nothing to see."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.low_order_bits import ALLOWED, PLACES, attack, classes, floating, on_the_grid
from holdfast.testing.fit import ALPHA, check_p_value

TRIALS = 40_000
"""20,000 teach the attacker, 20,000 are counted."""


def _secrets() -> np.ndarray:
    return np.random.default_rng(16).integers(0, 2, TRIALS)


@given(st.floats(-1e6, 1e6))
def test_a_small_sum_of_1_and_a_double_is_a_multiple_of_two_to_the_minus_53(z: float) -> None:
    """[theory T122] (a): 1 + z in (-1/2, 1/2) has no bit below 2^-53, whatever z is."""
    y = 1.0 + z
    assert abs(y) >= 0.5 or (y * 2.0**53).is_integer()


def test_in_floating_point_the_attacker_is_right_more_often_than_any_promise_allows() -> None:
    secrets = _secrets()
    published = floating(secrets, 1)
    telling = (np.abs(published[:, 0]) < 0.5) & (np.ldexp(published[:, 0], 53) % 1 != 0)
    assert telling.sum() > 500
    assert not secrets[telling].any()  # certainty: every one of them was counted in the second answer
    found = attack(published, secrets)
    assert found.p_value < ALPHA
    assert found.right > 0.99 * found.spoken


def test_on_the_grid_the_same_attacker_has_nothing_to_go_by() -> None:
    """False alarm: at most ALPHA, because each guess is right with probability ALLOWED at most."""
    secrets = _secrets()
    published = on_the_grid(secrets, 1)
    assert not (np.ldexp(published, PLACES) % 1).any()  # no bit below the grid
    cautious, bold = attack(published, secrets), attack(published, secrets, sure=0.5)
    for found in (cautious, bold):
        check_p_value(found.p_value, name="low-order bits on the grid", n=found.spoken, statistic=found.right)
    assert bold.spoken > TRIALS // 4  # it guesses, and stays within what is allowed


def test_the_attacker_sees_what_it_is_told_to_see() -> None:
    first, second = classes(np.array([0.375, 0.375 + 2.0**-54])), classes(np.array([0.375, 0.375]))
    assert first[0] != first[1]
    assert second[0] == second[1]
    assert 0.73 < ALLOWED < 0.74
