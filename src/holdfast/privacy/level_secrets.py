"""What kept totals leave to protect where levels and margins are measured: distances in the shares of the budget.

The distance of two tables is D(v) = sum over measured margins of share |margin of v|_2^2, v their difference ([theory R18]). One count
more or less is at distance 1; a person who moves all of m records, at 2 m^2 or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

from holdfast.lattices.shapes.units import Units, every_pattern
from holdfast.privacy.guarantee import Found

Measured: TypeAlias = tuple[int, int, Fraction]
"""(level, mask, share)."""
Vector: TypeAlias = tuple[int, int]
"""(level, mask): a margin of the units of a level."""

MOST_FAMILIES = 4096
"""Sets of margins that are looked at for the lower bound of the smallest secret."""


def person_distance(units: Units, measured: Sequence[Measured]) -> Fraction | None:
    """How far one record can move the table without a kept total showing it; None where it cannot.

    Two cells lie in one unit down to some level and differ on some axes. All such pairs are at the same distance: twice the shares of the
    margins that tell them apart.
    """
    found = [
        2 * sum((share for level, mask, share in measured if level > deepest or mask & apart), Fraction(0))
        for deepest, apart in every_pattern(units)
        if not any(level > deepest or any(mask & apart for mask in family) for level, family in enumerate(units.kept) if family)
    ]
    return max(found, default=None)


def smallest_distance(units: Units, measured: Sequence[Measured]) -> tuple[Fraction, Found]:
    """(the distance of the two nearest tables with the same kept totals, whether that is proved exact or is a lower bound).

    From above: swaps, which are contrasts on some axes and between two units, or none. From below: a margin that is not zero is an
    integer table without the sums that are zero, so its square is at least 2 to the fewest axes of such a table ([theory R20]).
    """
    kept = [(level, mask) for level, family in enumerate(units.kept) for mask in family]
    swaps = [_swap(measured, kept, deepest, axes) for deepest, axes in _contrasts(units)]
    above = min(cost for cost in swaps if cost is not None)
    below = min((_least(units, measured, [*kept, *zero]) for zero in _zero_families(measured)), default=Fraction(0))
    return (above, "exact") if above == below else (max(below, _finest(units, measured)), "lower bound")


def _contrasts(units: Units) -> Iterator[tuple[int | None, int]]:
    """(level down to which two units are one, or None where only one unit changes; axes)."""
    for mask in units.masks:
        yield None, mask
        for level in range(units.levels):
            assert units.tree is not None
            if max(units.tree.children[level]) > 1:
                yield level, mask


def _swap(measured: Sequence[Measured], kept: Sequence[Vector], deepest: int | None, axes: int) -> Fraction | None:
    """The distance of a swap; None where a kept total shows it."""

    def vanishes(level: int, mask: int) -> bool:
        return (deepest is not None and level <= deepest) or bool(axes & ~mask)

    if not all(vanishes(level, mask) for level, mask in kept):
        return None
    size = 2 ** (axes.bit_count() + (deepest is not None))
    return sum((share * size for level, mask, share in measured if not vanishes(level, mask)), Fraction(0))


def _zero_families(measured: Sequence[Measured]) -> Iterator[list[Vector]]:
    """Every set of measured margins that can be zero together: with a margin, all coarser ones. Nothing where there are too many."""
    vectors = sorted({(level, mask) for level, mask, _ in measured}, key=lambda v: (v[0] + v[1].bit_count(), v))
    families: list[frozenset[Vector]] = [frozenset()]
    for vector in vectors:
        coarser = {other for other in vectors if other != vector and _is_below(other, vector)}
        families += [family | {vector} for family in families if coarser <= family]
        if len(families) > MOST_FAMILIES:
            return
    yield from (list(family) for family in families if vectors[-1] not in family)


def _least(units: Units, measured: Sequence[Measured], zero: Sequence[Vector]) -> Fraction:
    """A lower bound of D over tables whose measured margins are zero exactly in `zero`, and nowhere else; 4^20 where there is none."""
    total = Fraction(0)
    for level, mask, share in measured:
        if (level, mask) in zero:
            continue
        sizes = [
            2 ** (sub.bit_count() + (step > 0))
            for step in range(level + 1)
            for sub in range(mask + 1)
            if sub & mask == sub and (step == 0 or _branches(units, step)) and not any(_is_below((step, sub), v) for v in zero)
        ]
        if not sizes:
            return Fraction(4**20)
        total += share * int(min(sizes))
    return Fraction(total)


def _finest(units: Units, measured: Sequence[Measured]) -> Fraction:
    """The finest table's share of the shortest move."""
    share = sum((share for level, mask, share in measured if (level, mask) == (units.levels, units.masks[-1])), Fraction(0))
    shortest: int = min(2 ** mask.bit_count() for mask in units.masks if mask not in units.kept[-1])
    return share * int(shortest)


def _branches(units: Units, level: int) -> bool:
    assert units.tree is not None
    return units.tree.branches(level)


def _is_below(a: Vector, b: Vector) -> bool:
    return a[0] <= b[0] and a[1] & b[1] == a[1]
