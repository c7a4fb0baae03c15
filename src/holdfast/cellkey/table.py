"""The table in which the cell key method looks noise up, in exact integers.

A row belongs to a count. It divides the keys 0, 1, ..., key_size - 1 into intervals, in order: the noise of an interval is given to the
keys from its lower bound up to, and without, its upper bound. With keys drawn uniformly the probability of a noise value is the length of
its intervals over key_size, so a table is an exact law and an exact rule at once. Decimal tables are the same with key_size 10^digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.loss import Losses, Pair
from holdfast.errors import InvalidCount, InvalidParameter
from holdfast.exact.parameters import Exact, exact_fraction, exact_integer
from holdfast.tables.columns import COUNT_LIMIT

LARGEST_KEY_SIZE = 1 << 64
"""Keys are 64-bit unsigned integers at most."""
LARGEST_THRESHOLD = 1000


@dataclass(frozen=True, slots=True)
class KeyInterval:
    """Cells of this count whose key is in [lower, upper) get this noise."""

    count: int
    noise: int
    lower: int
    upper: int


@dataclass(frozen=True)
class PerturbationRow:
    """The noise of one count: `noise[k]` for keys in [upper[k - 1], upper[k]), from 0 on; upper bounds increase strictly up to key_size.

    A noise value may have several intervals. Neighbouring intervals of the same noise are joined when a table is made.
    """

    count: int
    noise: tuple[int, ...]
    upper: tuple[int, ...]

    @property
    def key_size(self) -> int:
        return self.upper[-1]

    @property
    def intervals(self) -> Iterator[KeyInterval]:
        lower = 0
        for noise, upper in zip(self.noise, self.upper, strict=True):
            yield KeyInterval(self.count, noise, lower, upper)
            lower = upper

    @cached_property
    def probabilities(self) -> dict[int, Fraction]:
        """Noise value -> exact probability over uniform keys, by increasing noise; only what can happen."""
        keys: dict[int, int] = {}
        for part in self.intervals:
            keys[part.noise] = keys.get(part.noise, 0) + part.upper - part.lower
        return {noise: Fraction(keys[noise], self.key_size) for noise in sorted(keys)}

    @property
    def bias(self) -> Fraction:
        """Expected noise."""
        return sum((noise * chance for noise, chance in self.probabilities.items()), Fraction(0))

    @property
    def variance(self) -> Fraction:
        """Variance of the noise."""
        return sum((noise * noise * chance for noise, chance in self.probabilities.items()), Fraction(0)) - self.bias**2

    @property
    def results(self) -> dict[int, Fraction]:
        """Published value -> exact probability."""
        return {self.count + noise: chance for noise, chance in self.probabilities.items()}


class PerturbationTable:
    """Rows by count, for uniform keys 0, ..., key_size - 1.

    Given:       `rows`: each with the same key_size. `repeat`: how many of the last rows serve larger counts, in turn: 1 is the last row
                 for all of them, 250 a cycle of 250 rows, 0 none: larger counts are refused. `folds`: False for the tables of ONS, whose
                 cell keys are sums modulo key_size and are never folded; `CellKeys.for_table` goes by it.
    Guarantees:  every row's intervals fill the keys exactly once; lookups compare integers and are half-open.
    """

    def __init__(self, rows: Iterable[PerturbationRow], *, repeat: int = 1, folds: bool = True) -> None:
        found = sorted(rows, key=lambda row: row.count)
        if not found:
            raise InvalidParameter("A perturbation table needs at least one row. Give the noise of at least one count.")
        counts = [row.count for row in found]
        for row in found:
            _check_row(row)
            if row.key_size != found[0].key_size:
                raise InvalidParameter(
                    f"The rows of counts {counts[0]} and {row.count} end at keys {found[0].key_size} and {row.key_size}. "
                    "All rows of a table need the same key size."
                )
        if len(set(counts)) < len(counts):
            twice = next(a for a, b in pairwise(counts) if a == b)
            raise InvalidParameter(f"Count {twice} has two rows. Give each count one row.")
        if not isinstance(folds, bool):  # a card may hold any value there, and would be taken to say the same
            raise InvalidParameter("folds must be True or False.", field="folds")
        repeat = exact_integer(repeat, "repeat")
        if not 0 <= repeat <= len(counts) or (repeat and counts[-repeat:] != list(range(counts[-1] - repeat + 1, counts[-1] + 1))):
            raise InvalidParameter(
                f"repeat is the number of last rows that serve larger counts: from 0 to {len(counts)}, without gaps. Got {repeat}."
            )
        self.rows: Mapping[int, PerturbationRow] = {row.count: _join_equal_noise(row) for row in found}
        self.repeat = repeat
        self.folds = folds
        self.key_size = found[0].key_size

    @classmethod
    def from_intervals(
        cls, intervals: Iterable[KeyInterval | tuple[int, int, int, int]], key_size: int, *, repeat: int = 1, folds: bool = True
    ) -> Self:
        """From (count, noise, lower, upper), in any order. Empty intervals are left out; gaps and overlaps are refused."""
        size = check_key_size(key_size)
        by_count: dict[int, list[KeyInterval]] = {}
        for given in intervals:
            row = KeyInterval(*map(exact_integer_up_to_64_bits, astuple(given) if isinstance(given, KeyInterval) else given))
            by_count.setdefault(row.count, [])
            if row.lower < row.upper:
                by_count[row.count].append(row)
            elif row.lower > row.upper:
                raise InvalidParameter(f"An interval of count {row.count} ends at {row.upper}, before it begins at {row.lower}.")
        made = []
        for count, parts in by_count.items():
            parts.sort(key=lambda part: part.lower)
            end = 0
            for part in parts:
                if part.lower != end:
                    what = "overlap" if part.lower < end else "leave a gap"
                    raise InvalidParameter(
                        f"Two intervals of count {count} {what} at key {min(part.lower, end)}. Every key needs exactly one noise value."
                    )
                end = part.upper
            if end != size:
                raise InvalidParameter(f"The intervals of count {count} end at key {end}. They must end at the key size, {size}.")
            made.append(PerturbationRow(count, tuple(part.noise for part in parts), tuple(part.upper for part in parts)))
        return cls(made, repeat=repeat, folds=folds)

    @classmethod
    def from_probabilities(
        cls, rows: Mapping[int, Mapping[int, Exact]], key_size: int | None = None, *, repeat: int = 1, allow_lost: bool = False
    ) -> Self:
        """From count -> noise -> exact probability, in the order of increasing noise.

        Given:       without key_size the least common denominator is taken, and no probability is changed. With it, cumulative
                     probabilities times key_size are rounded up [SC22, (39)]; noise that is lost by this is refused unless allow_lost.
        """
        exact = {count: {noise: exact_fraction(row[noise], "probability") for noise in sorted(row)} for count, row in rows.items()}
        for count, row in exact.items():
            if any(chance < 0 for chance in row.values()) or sum(row.values()) != 1:
                raise InvalidParameter(
                    f"The probabilities of count {count} must be zero or more and add up to exactly 1. "
                    f"Their sum is {sum(row.values(), Fraction(0))}. Write them as exact decimals or fractions."
                )
        if key_size is None:
            size = check_key_size(math.lcm(*(chance.denominator for row in exact.values() for chance in row.values())))
        else:
            size = check_key_size(key_size)
        return cls.from_upper_bounds(
            {count: _ceilings(row, size) for count, row in exact.items()}, size, repeat=repeat, allow_lost=allow_lost
        )

    @classmethod
    def from_upper_bounds(
        cls,
        rows: Mapping[int, Sequence[tuple[int, int]]],
        key_size: int,
        *,
        repeat: int = 1,
        allow_lost: bool = False,
        folds: bool = True,
    ) -> Self:
        """From count -> (noise, upper bound) in the order of keys. A bound equal to the one before loses its noise: refused unless
        allow_lost."""
        size, intervals = check_key_size(key_size), []
        for count, row in rows.items():
            lower, lost = 0, []
            for noise, upper in row:
                if upper > lower:
                    intervals.append(KeyInterval(count, noise, lower, upper))
                elif upper == lower:
                    lost.append(noise)
                else:
                    raise InvalidParameter(f"The upper bounds of count {count} must not decrease. {upper} comes after {lower}.")
                lower = upper
            if lost and not allow_lost:
                raise InvalidParameter(
                    f"A key size of {size} is too small: at count {count} it loses the noise "
                    f"value{'s' if len(lost) > 1 else ''} {', '.join(map(str, lost[:8]))}{', ...' if len(lost) > 8 else ''}. "
                    "Take a larger key size, or less unequal probabilities.",
                    field="key_size",
                )
        return cls.from_intervals(intervals, size, repeat=repeat, folds=folds)

    @property
    def counts(self) -> tuple[int, ...]:
        """Counts that have a row of their own, increasing."""
        return tuple(self.rows)

    @property
    def intervals(self) -> Iterator[KeyInterval]:
        """All intervals, by count and key."""
        for row in self.rows.values():
            yield from row.intervals

    @property
    def lowest_result(self) -> int:
        """The smallest value that can be published of a count above 0; below zero means that a row takes more than its count."""
        return min((row.count + min(row.noise) for row in self.rows.values() if row.count), default=0)

    @property
    def least_result(self) -> int:
        """The smallest value above 0 that can be published of some count."""
        values = {row.count + noise for row in self.rows.values() for noise in row.noise}
        return min((value for value in values if value > 0), default=1)

    def row_of(self, count: int) -> PerturbationRow:
        """The row that serves this count. Not for confidential counts: the message of a refusal names the count."""
        place = self._serving(count)
        if place not in self.rows:
            raise InvalidParameter(f"Count {count} has no row. {self._describe_counts()}")
        return self.rows[place]

    def lookup(self, counts: NDArray[np.integer], keys: NDArray[np.integer], *, key_size: int | None = None) -> NDArray[np.int64]:
        """The noise of each cell, from its true count and its cell key.

        Given:       keys from 0 to key_size - 1, by default this table's. With another size the same rule is applied to the fraction
                     key / key_size, exactly: noise k where upper[k - 1] / self.key_size <= key / key_size < upper[k] / self.key_size.
        Guarantees:  integers only. Messages hold no count and no key.
        """
        if key_size is not None and check_key_size(key_size) != self.key_size:
            return self.rescaled(key_size).lookup(counts, keys)
        if len(counts) != len(keys):
            raise InvalidParameter("counts and keys must have the same length: one key a cell.")
        if len(counts) == 0:
            return np.zeros(0, np.int64)
        if not all(np.issubdtype(array.dtype, np.integer) for array in (counts, keys)):
            raise InvalidParameter("counts and keys must be arrays of integers.")
        if int(keys.min()) < 0 or int(keys.max()) >= self.key_size:
            raise InvalidCount(f"A cell key is outside the range of this table. Its keys are 0 to {self.key_size - 1}.")
        served = self._serving_all(counts)
        words = keys.astype(np.uint64)
        noise = np.empty(len(counts), np.int64)
        order = np.argsort(served, kind="stable")
        places, starts = np.unique(served[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for place, start, end in zip(places.tolist(), starts.tolist(), ends, strict=True):
            row = self.rows.get(place)
            if row is None:
                raise InvalidCount(f"A count has no row in this table. {self._describe_counts()}")
            last_keys = np.array([upper - 1 for upper in row.upper], np.uint64)  # the bound 2^64 itself is no 64-bit integer
            cells = order[start:end]
            noise[cells] = np.array(row.noise, np.int64)[np.searchsorted(last_keys, words[cells], side="left")]
        return noise

    def rescaled(self, key_size: int, *, allow_lost: bool = True) -> PerturbationTable:
        """The same rule for keys of another size: every bound b becomes ceil(b key_size / self.key_size) [SC22, (39)]."""
        size = check_key_size(key_size)
        bounds = {
            count: [(noise, -(-upper * size // self.key_size)) for noise, upper in zip(row.noise, row.upper, strict=True)]
            for count, row in self.rows.items()
        }
        return PerturbationTable.from_upper_bounds(bounds, size, repeat=self.repeat, allow_lost=allow_lost, folds=self.folds)

    def with_threshold(self, threshold: int) -> PerturbationTable:
        """The table that publishes 0 in place of every value below `threshold`, as ONS leaves such values out.

        Where empty cells are published as 0, a value that is left out and a 0 tell the same: some value below the threshold.
        """
        least = exact_integer(threshold, "threshold")
        if not 1 <= least <= LARGEST_THRESHOLD:
            raise InvalidParameter(f"threshold is a whole number from 1 to {LARGEST_THRESHOLD}. Got {least}.", field="threshold")
        counts = list(self.counts)
        while self.repeat and any(n + min(self.row_of(n).noise) < least for n in counts[-self.repeat :]):
            counts += range(counts[-1] + 1, counts[-1] + self.repeat + 1)  # rows in turn serve larger counts, which stay as they are
        rows = []
        for n in counts:
            row = self.row_of(n)
            rows.append(PerturbationRow(n, tuple(noise if n + noise >= least else -n for noise in row.noise), row.upper))
        return PerturbationTable(rows, repeat=self.repeat, folds=self.folds)

    def epsilon_delta(self) -> Losses:
        """Return how well two neighbouring counts can be distinguished: exact, for every pair that has rows, both ways.

        It is for one cell and one answer, over the draw of the keys. It does not compose and does not cover differences of tables.
        """
        last = self.counts[-1]
        pairs = [Pair(n, self.rows[n].results, self.rows[n + 1].results) for n in self.counts if n + 1 in self.rows]
        if self.repeat:  # further pairs beyond the last row are pairs of rows again, moved
            pairs.append(Pair(last, self._published_law(last), self._published_law(last + 1)))
        if not pairs:
            raise InvalidParameter("No two neighbouring counts have rows, so there is nothing to compare. Give rows, or repeat=1.")
        return Losses(tuple(pairs), is_open=self.repeat > 0, key_size=self.key_size)

    @property
    def losses_in_use(self) -> Losses:
        """The same with empty cells kept empty, as releases keep them, wherever count 1 has a row and count 0 no noise."""
        if 1 not in self.rows or 0 in self.rows:
            return self.epsilon_delta()
        empty = PerturbationRow(0, (0,), (self.key_size,))
        return PerturbationTable([empty, *self.rows.values()], repeat=self.repeat).epsilon_delta()

    def _published_law(self, count: int) -> dict[int, Fraction]:
        return {count + noise: chance for noise, chance in self.row_of(count).probabilities.items()}

    def _serving(self, count: int) -> int:
        last = self.counts[-1]
        return last - self.repeat + 1 + (count - last - 1) % self.repeat if count > last and self.repeat else count

    def _serving_all(self, counts: NDArray[np.integer]) -> NDArray[np.int64]:
        found = counts.astype(np.int64)
        if self.repeat:
            last = self.counts[-1]
            found = np.where(found > last, last - self.repeat + 1 + (found - last - 1) % self.repeat, found)
        return found

    def _describe_counts(self) -> str:
        more = " and above" if self.repeat else ""
        return f"The table has rows for {len(self.counts)} counts from {self.counts[0]} to {self.counts[-1]}{more}. Add the missing rows."

    def __eq__(self, other: object) -> bool:
        same = ("rows", "repeat", "folds")
        return isinstance(other, PerturbationTable) and all(getattr(self, name) == getattr(other, name) for name in same)

    def __hash__(self) -> int:
        return hash((tuple(self.rows.values()), self.repeat, self.folds))

    def __repr__(self) -> str:
        more = f" and above (repeat={self.repeat})" if self.repeat else ""
        rule = "" if self.folds else "; cell keys modulo the key size"
        return f"PerturbationTable(counts {self.counts[0]} to {self.counts[-1]}{more}; key size {self.key_size}{rule})"


def check_key_size(key_size: int) -> int:
    """A number of keys: an int from 1 to 2^64."""
    size = exact_integer_up_to_64_bits(key_size)
    if not 1 <= size <= LARGEST_KEY_SIZE:
        raise InvalidParameter(f"key_size must be from 1 to 2^64. Got {size}.", field="key_size")
    return size


def exact_integer_up_to_64_bits(value: int) -> int:
    """An int from -2^64 to 2^64; anything else is refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or abs(int(value)) > LARGEST_KEY_SIZE:
        raise InvalidParameter(f"Counts, noise, keys and key sizes are ints from -2^64 to 2^64. Got {type(value).__name__}.")
    return int(value)


def _ceilings(row: Mapping[int, Fraction], size: int) -> list[tuple[int, int]]:
    total, bounds = Fraction(0), []
    for noise, chance in row.items():
        total += chance
        if chance:
            bounds.append((noise, math.ceil(total * size)))
    return bounds


def _check_row(row: PerturbationRow) -> None:
    if not 0 <= row.count < COUNT_LIMIT:
        raise InvalidParameter(f"Counts are zero or more, and below 2^62. A row has the count {row.count}.")
    if not row.noise or len(row.noise) != len(row.upper):
        raise InvalidParameter(f"The row of count {row.count} needs one upper bound for each noise value, and at least one.")
    if any(lower >= upper for lower, upper in zip((0, *row.upper), row.upper, strict=False)):
        raise InvalidParameter(f"The upper bounds of count {row.count} must increase strictly from above 0: intervals must not overlap.")


def _join_equal_noise(row: PerturbationRow) -> PerturbationRow:
    noise: list[int] = []
    upper: list[int] = []
    for value, bound in zip(row.noise, row.upper, strict=True):
        if noise and noise[-1] == value:
            upper[-1] = bound
        else:
            noise.append(value)
            upper.append(bound)
    return PerturbationRow(row.count, tuple(noise), tuple(upper))
