"""What is left of a promise when the noise only nearly has its law.

Legend: eta is a bound of the total variation distance between the law drawn from and the law the promise is about. It is the same for
every table, since the noise sees no data. A pair at distance r that was promised (e, d) then has (e, d + (1 + exp(e)) eta): both outputs
move by eta, one of them counted exp(e) times, and this is attained. With e = epsilon r the increments at every r >= 1 are covered by
adding (1 + exp(epsilon)) eta to the delta of [DGGY22] Definition 2 ([theory T29]); integer tables that differ are at least 1 apart.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_exact, round_up
from holdfast.privacy.guarantee import ChainFacts, Guarantee

DIGITS = 6


def added_delta(epsilon: Fraction, eta: Fraction) -> Fraction:
    """(1 + exp(epsilon)) eta, rounded up to six digits."""
    with precision(256):
        return round_up(enclosure((1 + ball(epsilon).exp()) * ball(eta)).upper, DIGITS)


def check_can_weaken(guarantee: Guarantee) -> None:
    """Refuse a promise that says nothing about noise which only nearly has its law."""
    if guarantee.kind == "zcdp" or guarantee.epsilon is None:
        raise InvalidParameter(
            "Noise drawn by a Markov chain has no zCDP promise: its error is a probability. Give epsilon and delta per unit of distance "
            '(in a run file with per = "distance") instead of rho or sigma_squared.'
        )


def weaken_guarantee(guarantee: Guarantee, eta: Fraction, chains: tuple[ChainFacts, ...]) -> Guarantee:
    """The promise of noise that is within eta of the law that `guarantee` is about, as far as was estimated.

    Given:       a pure or an (epsilon, delta) guarantee; `chains`, what eta rests on.
    Guarantees:  kind "approximate", status "estimated", never pure. There is no rho: total variation says nothing about Renyi divergences.
    """
    check_can_weaken(guarantee)
    assert guarantee.epsilon is not None
    added = added_delta(guarantee.epsilon, eta)
    delta = added + (guarantee.delta or 0)
    if delta >= 1:
        raise InvalidParameter(
            f"(1 + exp(epsilon)) eta = {format_exact(added)} leaves no promise at epsilon = {format_exact(guarantee.epsilon)}, "
            f"eta = {format_exact(eta)}. "
            "Use a smaller eta."
        )
    return replace(guarantee, kind="approximate", delta=delta, rho=None, eta=eta, status="estimated", chains=chains)
