"""Probabilities bracketed by enumeration: no statistics, no seeds.

Run a sampler on every first word of b bits, once with all later bits 0 and once with all later bits 1. If the sampler is monotone in its
bit string, equal answers settle that word: whatever bits follow, the answer stays. Counting settled words bounds every probability from
below; adding the words that could still reach a value bounds it from above.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)
Bounds = tuple[dict[int, Fraction], dict[int, Fraction]]


def bracket_inverse_cdf(lows: Sequence[int | None], highs: Sequence[int | None] | None = None) -> Bounds:
    """Lower and upper bounds of P[X = k] from the answers for all first words, in increasing order of the word.

    lows[w] and highs[w] are the answers for word w followed by zeros and followed by ones; None stands for "not known", and is then
    bounded by the neighbours. One list alone means: an integer is settled, None is not.

    Given:       the sampler never decreases with its bit string (trusted; that the answers given never decrease is checked). For one
                 that never increases, reverse both lists and exchange them.
    Guarantees:  lower[k] <= P[X = k] <= upper[k] for every k from one below the smallest settled value to one above the largest; a value
                 between them that no word reaches is there too.
    """
    highs = lows if highs is None else highs
    if len(lows) != len(highs) or not lows:
        raise ValueError(f"There must be one low and one high answer per word. Got {len(lows)} and {len(highs)}.")
    for name, answers in (("followed by zeros", lows), ("followed by ones", highs)):
        _check_monotone(name, answers)
    # A missing answer lies between its neighbours': the largest before it, the smallest after it.
    smallest, largest = _fill(lows), _fill(highs[::-1])[::-1]
    return _count(list(zip(smallest, largest, strict=True)))


def _fill(answers: Sequence[int | None]) -> list[int | None]:
    """Each unknown answer replaced by the last known one before it, if there is one."""
    filled: list[int | None] = []
    for answer in answers:
        filled.append(filled[-1] if answer is None and filled else answer)
    return filled


def _check_monotone(name: str, answers: Sequence[int | None]) -> None:
    known = [answer for answer in answers if answer is not None]
    for before, after in pairwise(known):
        if before > after:
            raise AssertionError(f"The answers for words {name} are not monotone: {before} comes before {after}.")


def _count(ranges: list[tuple[int | None, int | None]]) -> Bounds:
    for low, high in ranges:
        if low is not None and high is not None and low > high:
            raise AssertionError(f"One word gives {low} followed by zeros and {high} followed by ones: not monotone.")
    settled = Counter(low for low, high in ranges if low is not None and low == high)
    if not settled:
        raise ValueError("No word settles a value. Use words of more bits.")
    keys = range(min(settled) - 1, max(settled) + 2)
    reach = Counter(settled)
    for low, high in ranges:
        if low is None or low != high:
            first = keys[0] if low is None else max(low, keys[0])
            last = keys[-1] if high is None else min(high, keys[-1])
            reach.update(range(first, last + 1))
    size = len(ranges)
    return {k: Fraction(settled[k], size) for k in keys}, {k: Fraction(reach[k], size) for k in keys}


def check_brackets(
    lower: Mapping[Value, Fraction], upper: Mapping[Value, Fraction], pmf_bounds: Callable[[Value], tuple[Fraction, Fraction]]
) -> None:
    """Raise AssertionError unless lower[k] <= p(k) <= upper[k] is proved for every key, p(k) being known through a certified enclosure.

    An enclosure that straddles a bracket's end proves nothing and fails too: compute it more precisely.
    """
    if not lower or lower.keys() != upper.keys():
        raise ValueError("Lower and upper bounds must be given for the same values, at least one.")
    for k in lower:
        least, most = pmf_bounds(k)
        if not lower[k] <= least <= most <= upper[k]:
            raise AssertionError(
                f"P[X = {k}] is between {float(least)!r} and {float(most)!r}, "
                f"but enumeration gives {float(lower[k])!r} to {float(upper[k])!r}: the sampler does not follow this law."
            )
