"""Two lines of a grid given their column sums: independent integer laws given their sum, drawn by splitting sums.

Legend: two rows i and k of a table are to be drawn again, everything else kept. Then every column sum S_j = z_ij + z_kj is kept, and the
sum T of row i. With x_j the new z_ij, the rows have weight prod_j w_j(x_j) given sum_j x_j = T, where w_j(x) is the weight of the energy
|x| + |S_j - x| (or x^2 + (S_j - x)^2), within the bounds of both cells. Each w_j is log-concave.

A group A of columns has sums W_A(c), the weight of all x_A with total c: a convolution of the w_j. To share a total c between two groups,
P[A gets a] is proportional to W_A(a) W_B(c - a). Sharing until every group is one column draws all the x_j, one word a share; in which
order groups are formed does not change the law, and a coupling uses that (coupled_block.py).

This is the slow, certain way: weights are integers with a lower and an upper bound, what was cut off is bounded by geometric series, and a
share is drawn by certified thresholds. For rational weights and finite bounds all of it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from flint import fmpz_poly

from holdfast.chains.line import Line, draw_point
from holdfast.chains.pairing import Joint, draw_maximal, draw_quantile, maximal_joint, normalised, quantile_joint
from holdfast.chains.target import Decay
from holdfast.exact.weights import FixedWeights
from holdfast.randomness import Words

Group: TypeAlias = tuple[int, ...]
"""Columns, in the order in which they are drawn."""
Values: TypeAlias = tuple[int, ...]
"""x_j for every column."""


@dataclass(frozen=True)
class Share:
    """The total of `whole` is shared between `part` and `rest`; in a coupling by the quantile pairing, or by the maximal one."""

    whole: Group
    part: Group
    rest: Group
    is_maximal: bool = False


def one_by_one(pieces: Sequence[Group]) -> list[Share]:
    """Shares that give every piece its total, the first piece first, then a piece's own columns, first column first."""
    out: list[Share] = []
    for place, piece in enumerate(pieces):
        rest = tuple(column for later in pieces[place + 1 :] for column in later)
        if rest:
            out.append(Share(piece + rest, piece, rest))
        if len(piece) > 1:
            out.extend(one_by_one([(column,) for column in piece]))
    return out


@dataclass(frozen=True)
class Sums:
    """Bounds of W_A(first + i) in some unit, and of all that is left out of them: sum_c (W_A(c) - lows) is at most that of the listed
    points plus `missing`."""

    first: int
    lows: fmpz_poly
    highs: fmpz_poly
    missing: int

    @property
    def is_exact(self) -> bool:
        return self.missing == 0 and bool(self.lows == self.highs)

    def times(self, other: Sums, working: int) -> Sums:
        """The sums of both groups together, rounded outwards to about `working` bits unless exact."""
        first, lows, highs = self.first + other.first, self.lows * other.lows, self.highs * other.highs
        if self.is_exact and other.is_exact:
            return Sums(first, lows, highs, 0)
        mine, others = int(self.highs(1)), int(other.highs(1))
        missing = self.missing * (others + other.missing) + mine * other.missing
        shift = max(0, max(int(c).bit_length() for c in highs.coeffs()) - working)
        return Sums(
            first,
            fmpz_poly([int(c) >> shift for c in lows.coeffs()]),
            fmpz_poly([-(-int(c) >> shift) for c in highs.coeffs()]),
            -(-missing >> shift),
        )


@dataclass(frozen=True)
class PairOfRows:
    """The columns of two lines: column j has the law of x_j alone, whose `first` and `last` are the bounds of both its cells."""

    columns: tuple[Line, ...]
    _sums: dict[tuple[Group, int], Sums] = field(default_factory=dict, compare=False, repr=False)
    _listed: dict[Group, dict[int, Fraction]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, decay: Decay, sums: Sequence[int], firsts: Sequence[int | None], lasts: Sequence[int | None]) -> PairOfRows:
        """Columns of these sums S_j, with first_j <= x_j <= last_j."""
        ends = zip(sums, firsts, lasts, strict=True)
        return cls(tuple(Line(decay, (0, s), (1, -1), (1, 1), 0, first, last) for s, first, last in ends))

    def sums(self, group: Group, working: int) -> Sums:
        """W of a group to about `working` bits of its largest value."""
        start = len(group)
        while start > 0 and (start == len(group) or (group[start:], working) in self._sums):
            start -= 1
        for place in range(start, -1, -1):  # the longest suffix not known yet comes first
            key = group[place:], working
            if key not in self._sums:
                column = self._column(group[place], working)
                self._sums[key] = column if place == len(group) - 1 else column.times(self._sums[group[place + 1 :], working], working)
        return self._sums[group, working]

    def _column(self, column: int, working: int) -> Sums:
        weights = self.columns[column].fixed_weights(working, 0)
        missing = weights.left_tail[1] + weights.right_tail[1]
        return Sums(weights.first, fmpz_poly(weights.lows), fmpz_poly(weights.highs), missing)

    def listed(self, group: Group) -> dict[int, Fraction]:
        """W of a group as fractions: for a rational base and finite bounds."""
        if group not in self._listed:
            weights = self.columns[group[0]].exact_weights()
            if len(group) > 1:
                rest = self.listed(group[1:])
                out: dict[int, Fraction] = {}
                for x, a in weights.items():
                    for c, b in rest.items():
                        out[x + c] = out.get(x + c, Fraction(0)) + a * b
                weights = out
            self._listed[group] = weights
        return self._listed[group]

    def listed_share(self, share: Share, total: int) -> dict[int, Fraction]:
        """P[part gets a] as fractions."""
        part, rest = self.listed(share.part), self.listed(share.rest)
        return normalised({a: weight * rest[total - a] for a, weight in part.items() if total - a in rest})


class ShareLaw:
    """Law:  P[part gets a] proportional to W_part(a) W_rest(total - a). Implements `weights.WeightSource`."""

    def __init__(self, rows: PairOfRows, share: Share, total: int) -> None:
        self._rows, self._share, self._total = rows, share, total

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        spare = 64
        while True:
            weights = self.bounds(bits + guard + spare)
            low, high = sum(weights.lows), sum(weights.highs) + weights.right_tail[1]
            if low == high or (low > 0 and (high - low) << (bits + guard) <= low):
                return _without_far_ends(weights, low >> (bits + guard + 1)) if low < high else weights
            spare *= 2  # the total is far from where most of the weight lies: what was cut off must be smaller still

    def bounds(self, working: int) -> FixedWeights:
        part, rest = self._rows.sums(self._share.part, working), self._rows.sums(self._share.rest, working)
        # All that any point lacks, and all points beyond the list, together: sum_a W_part(a) W_rest(total - a) is at most
        # (sum of all W_part) (sum of all W_rest), and the same holds for what was cut off either.
        missing = part.missing * (int(rest.highs(1)) + rest.missing) + int(part.highs(1)) * rest.missing
        part_lows, part_highs = _padded(part)
        rest_lows, rest_highs = _padded(rest)
        first = max(part.first, self._total - rest.first - len(rest_highs) + 1)
        last = min(part.first + len(part_highs) - 1, self._total - rest.first)
        lows, highs = [], []
        for a in range(first, last + 1):
            i, j = a - part.first, self._total - a - rest.first
            lows.append(part_lows[i] * rest_lows[j])
            highs.append(part_highs[i] * rest_highs[j] + missing)
        return FixedWeights(first, lows, highs, (0, missing), (0, missing))


def _padded(sums: Sums) -> tuple[list[int], list[int]]:
    """Coefficients as lists of one length: polynomials drop zeros at their end."""
    highs = [int(c) for c in sums.highs.coeffs()]
    lows = [int(c) for c in sums.lows.coeffs()]
    return lows + [0] * (len(highs) - len(lows)), highs


def _without_far_ends(weights: FixedWeights, allowed: int) -> FixedWeights:
    """The same with points of both ends moved into the tails, each tail at most `allowed`: fewer thresholds to compute."""
    start, left = 0, weights.left_tail[1]
    while start < len(weights.highs) - 1 and left + weights.highs[start] <= allowed:
        left += weights.highs[start]
        start += 1
    stop, right = len(weights.highs), weights.right_tail[1]
    while stop > start + 1 and right + weights.highs[stop - 1] <= allowed:
        right += weights.highs[stop - 1]
        stop -= 1
    return FixedWeights(weights.first + start, weights.lows[start:stop], weights.highs[start:stop], (0, left), (0, right))


def draw_alone(rows: PairOfRows, shares: Sequence[Share], total: int, words: Words) -> Values:
    """x_j for every column; one word a share."""
    totals = {shares[0].whole: total}
    for share in shares:
        part = draw_point(ShareLaw(rows, share, totals[share.whole]), words)
        totals[share.part], totals[share.rest] = part, totals[share.whole] - part
    return tuple(totals[(column,)] for column in range(len(rows.columns)))


def draw_together(
    first: PairOfRows, second: PairOfRows, shares: Sequence[Share], totals: tuple[int, int], words: Words
) -> tuple[Values, Values]:
    """The same for two pairs of rows; one word a share, three where the pairing is maximal."""
    known = {shares[0].whole: totals}
    for share in shares:
        x, y = known[share.whole]
        draw = draw_maximal if share.is_maximal else draw_quantile
        a, b = draw(ShareLaw(first, share, x), ShareLaw(second, share, y), words)
        known[share.part], known[share.rest] = (a, b), (x - a, y - b)
    columns = [known[(column,)] for column in range(len(first.columns))]
    return tuple(x for x, _ in columns), tuple(y for _, y in columns)


def list_alone(rows: PairOfRows, shares: Sequence[Share], total: int) -> dict[Values, Fraction]:
    """The law of `draw_alone` as fractions."""
    found = [({shares[0].whole: total}, Fraction(1))]
    for share in shares:
        longer = []
        for totals, mass in found:
            for part, chance in rows.listed_share(share, totals[share.whole]).items():
                longer.append(({**totals, share.part: part, share.rest: totals[share.whole] - part}, mass * chance))
        found = longer
    out: dict[Values, Fraction] = {}
    for totals, mass in found:
        values = tuple(totals[(column,)] for column in range(len(rows.columns)))
        out[values] = out.get(values, Fraction(0)) + mass
    return out


def list_together(
    first: PairOfRows, second: PairOfRows, shares: Sequence[Share], totals: tuple[int, int]
) -> dict[tuple[Values, Values], Fraction]:
    """The law of `draw_together` as fractions."""
    found = [({shares[0].whole: totals}, Fraction(1))]
    for share in shares:
        longer = []
        for known, mass in found:
            x, y = known[share.whole]
            pairing = maximal_joint if share.is_maximal else quantile_joint
            joint: Joint = pairing(first.listed_share(share, x), second.listed_share(share, y))
            for (a, b), chance in joint.items():
                longer.append(({**known, share.part: (a, b), share.rest: (x - a, y - b)}, mass * chance))
        found = longer
    out: dict[tuple[Values, Values], Fraction] = {}
    for known, mass in found:
        columns = [known[(column,)] for column in range(len(first.columns))]
        key = tuple(x for x, _ in columns), tuple(y for _, y in columns)
        out[key] = out.get(key, Fraction(0)) + mass
    return out
