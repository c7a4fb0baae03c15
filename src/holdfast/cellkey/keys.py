"""Keys of records and of cells, in exact integers.

A record key is a whole number from 0 to size - 1. Decimals in [0, 1) with d digits are the same thing: whole numbers over 10^d, so that a
sum of thousands of them never crosses a bound by rounding. A cell's key is the sum of its records' keys modulo some number, folded by XOR
where the perturbation table has fewer keys. A sum does not depend on the order of its terms: the same records give the same key in every
table.

Before noise is looked up, cell keys go through a fixed public permutation (`mixed`). The key of a total is the sum of its parts' keys, and
in a perturbation table noise rises with the key. So the gap between a total and its parts tells about the noise (`gap_attack`). A
permutation that scatters neighbouring keys leaves every cell key as uniform as it was, so that the law of one cell's noise is the same, and
takes that order away.

Four rounds of shift, multiplication and addition modulo a power of two, each of which can be undone; for other numbers of keys they are
repeated until the result is one of the keys. The permutation is part of what fixes the noise of records: it must never change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.table import PerturbationTable, exact_integer_up_to_64_bits
from holdfast.errors import InvalidCount, InvalidParameter
from holdfast.exact.formatting import format_up
from holdfast.tables.columns import CellKeySums as CellKeySums  # for rooms that see no table

if TYPE_CHECKING:
    from typing import Self

LARGEST_SIZE = 2**64
LEAST_DIGITS, MOST_DIGITS = 1, 18
"""Decimal keys of peers have 5 to 20 digits, 8 by default; 10^18 is the largest power of ten whose sums we reduce in 64 bits."""

UNLIKELY_BITS = 40
"""Keys whose like has a chance below 2^-40 are not taken for uniform."""
LARGEST_DISTANCE = Fraction(1, 2**16)
"""Largest distance from uniform. With 2^32 record keys and the prime above it is below 2^-28; a prime far above the number of record
keys gives all small cells the same noise."""

_SIZE_TEXT = re.compile(r"0\.(?P<digits>[0-9]{1,2})|(?P<base>[0-9]{1,20})(\^(?P<power>[0-9]{1,2}))?")

ROUNDS = 4
_STEP = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio, odd; multiples of it by odd numbers are odd, and so can be undone as factors."""


@dataclass(frozen=True)
class KeySpace:
    """Whole numbers from 0 to size - 1; with `digits` they are written as decimals in [0, 1) and size is 10^digits."""

    size: int
    digits: int | None = None

    def __post_init__(self) -> None:
        size = self.size
        if isinstance(size, bool) or not isinstance(size, int) or not 2 <= size <= LARGEST_SIZE:
            raise InvalidParameter("A number of keys is an int from 2 to 2^64.", field="size")
        if self.digits is not None and size != 10**self.digits:
            raise InvalidParameter(f"Decimals of {self.digits} digits are 10^{self.digits} keys. Got {size}. Use KeySpace.decimals.")

    @classmethod
    def bits(cls, bits: int) -> Self:
        """Integers of 8, 32 or 64 bits, or any other number up to 64."""
        count = exact_integer_up_to_64_bits(bits)
        if not 1 <= count <= 64:
            raise InvalidParameter(f"Keys have 1 to 64 bits. Got {count}.", field="bits")
        return cls(2**count)

    @classmethod
    def decimals(cls, digits: int = 8) -> Self:
        """Decimals in [0, 1) with this many digits after the point."""
        count = exact_integer_up_to_64_bits(digits)
        if not LEAST_DIGITS <= count <= MOST_DIGITS:
            raise InvalidParameter(f"Decimal keys have {LEAST_DIGITS} to {MOST_DIGITS} digits. Got {count}.", field="digits")
        return cls(10**count, count)

    @classmethod
    def parse(cls, text: str) -> Self:
        """As the command line and files write it: "2^32", "4096", or "0.8" for decimals of 8 digits."""
        found = _SIZE_TEXT.fullmatch(text)
        if found is not None and found["digits"] is not None:
            return cls.decimals(int(found["digits"]))
        if found is not None:
            size: int = int(found["base"]) ** int(found["power"] or 1)
            return cls(size)
        raise InvalidParameter(f'A number of keys is written as "2^32", "4096", or "0.8" for decimals of 8 digits. Got {text!r}.')

    @property
    def written(self) -> str:
        """As `parse` reads it."""
        return str(self) if self.digits is None else f"0.{self.digits}"

    @property
    def is_power_of_two(self) -> bool:
        return self.size & (self.size - 1) == 0

    def __str__(self) -> str:
        if self.digits is not None:
            return f"decimals of {self.digits} digits"
        return f"2^{self.size.bit_length() - 1}" if self.is_power_of_two else str(self.size)

    def read(self, key: str) -> int:
        """One key from its text, exactly: plain digits; for decimals "0.5", ".25000000" or "0", with no more digits than declared.

        The message of a refusal does not hold the key.
        """
        whole, point, part = key.partition(".")
        digits = whole + part
        plain = digits.isascii() and digits.isdigit()
        if self.digits is None:
            if plain and not point and (key == "0" or key[0] != "0") and len(key) <= 20 and int(key) < self.size:
                return int(key)
        elif plain and whole in ("", "0") and (part or not point) and len(part) <= self.digits:
            return int(part.ljust(self.digits, "0"))
        raise InvalidCount(self.rule)

    @property
    def rule(self) -> str:
        """What a key must be, for messages."""
        if self.digits is None:
            return f"A key is a whole number from 0 to {self.size - 1} in plain digits: no sign, point, blank, separator or leading zero."
        return f"A key is a decimal from 0 to below 1 with at most {self.digits} digits after the point, such as 0.25: no sign or exponent."


@dataclass(frozen=True)
class CellKeys:
    """How a cell's key is made of its records' keys: their sum modulo `modulus`, then folded by XOR to `size` where that is smaller, then
    `mixed` by a fixed public permutation if that is asked for.

    Law:         records' keys uniform and independent on `records`: then the cell key of any cell with a record is uniform on
                 0, ..., size - 1, up to a total variation distance of at most `distance`.
    Given:       modulus: by default records.size; a divisor of it, or a prime as `bigN` of [SC22, (36)]. size: by default the modulus, else
                 a power of two below it, and the modulus a power of two or a prime.
    Refused:     a prime with which cell keys are farther than 2^-16 from uniform, such as one far above the number of record keys.
    Guarantees:  exact integers. distance is 0 unless the modulus is a prime that does not divide the number of record keys.

    Folding [SC22, (37)]: the sum is cut into pieces of log2(size) bits, from the low end, and they are XORed: four bytes for size 2^8, two
    halves for 2^16, the sum itself for 2^32. (The paper leaves open whether pieces are summed or the sum is cut; this is the second.)
    Mixing is ours. It keeps the law of a cell's key, and makes gaps between tables tell less: see `mixed`.
    """

    records: KeySpace
    modulus: int = 0
    size: int = 0
    mixed: bool = False

    def __post_init__(self) -> None:
        modulus = exact_integer_up_to_64_bits(self.modulus) or self.records.size
        size = exact_integer_up_to_64_bits(self.size) or modulus
        object.__setattr__(self, "modulus", modulus)
        object.__setattr__(self, "size", size)
        if not 2 <= modulus <= LARGEST_SIZE or (self.records.size % modulus and not _is_prime(modulus)):
            raise InvalidParameter(
                f"Sums of keys are taken modulo the number of record keys ({self.records.size}), a divisor of it, or a prime up to 2^64. "
                f"Got {modulus}. With another number cell keys would be far from uniform.",
                field="modulus",
            )
        if size != modulus and (not 2 <= size < modulus or size & (size - 1) or not (modulus & (modulus - 1) == 0 or _is_prime(modulus))):
            raise InvalidParameter(
                f"Cell keys are folded to a power of two below the modulus ({modulus}), which must be a power of two or a prime. "
                f"Got {size}. Leave the size out to take the sum as it is, or rescale the perturbation table to {modulus} keys.",
                field="size",
            )
        self._check_distance()

    def _check_distance(self) -> None:
        if self.distance > LARGEST_DISTANCE:
            raise InvalidParameter(
                f"With {self.records.size} record keys and sums modulo {self.modulus}, cell keys would be far from uniform: their distance "
                f"is up to {format_up(self.distance, 3)}, and at most 2^-16 is allowed. Some noise would be far more frequent than the "
                "perturbation table says. Leave modulus and size out, or take a modulus that divides the number of record keys.",
                field="modulus",
            )

    @classmethod
    def for_table(cls, records: KeySpace, table: PerturbationTable, *, modulus: int = 0, mixed: bool = False) -> Self:
        """Return the usual rule for these record keys and this perturbation table, the one place where it is decided.

        A table that does not fold (`table.folds`, as read from a file of ONS) takes the sum modulo the number of its keys, where that
        divides the number of record keys. Any other folds if both numbers are powers of two and the table has fewer keys, else takes the
        sum itself. `modulus`: sums are taken modulo this instead, and folded to the table's keys where these are fewer.
        """
        size = table.key_size
        if modulus:
            return cls(records, modulus, size if size < modulus else 0, mixed)
        if not table.folds and records.size % size == 0:
            return cls(records, size, mixed=mixed)
        is_folded = size < records.size and records.is_power_of_two and size & (size - 1) == 0
        return cls(records, size=size if is_folded else 0, mixed=mixed)

    @property
    def distance(self) -> Fraction:
        """The most by which the law of a cell key differs from uniform, in total variation, if records' keys are uniform.

        One record: M keys modulo p, with M = q p + t, hit t residues q + 1 times and the others q times. A sum of more is no farther from
        uniform. Folding p values of b bits loses nothing but the 2^b - p values that are missing. Any (epsilon, delta) of a perturbation
        table holds with delta + (1 + e^epsilon) distance [theory T90].
        """
        return distance_from_uniform(self.records.size, self.modulus, self.size)

    def of(self, keys: Iterable[int]) -> int:
        """The key of a cell with these records, in Python's integers: the slow version, and the definition."""
        total = 0
        for key in keys:
            if not 0 <= key < self.records.size:
                raise InvalidCount(f"This is not a record key. {self.records.rule}")
            total += key
        folded = folded_sum(total, self.modulus, self.size)
        return slow_mixed(folded, self.size) if self.mixed else folded

    def check_sums(self, given: CellKeySums) -> None:
        """Refuse sums of other keys, and sums modulo a number that the modulus does not divide: the same records would get another key
        than from their own keys.
        """
        if given.space != str(self.records) or given.modulus % self.modulus:
            raise InvalidParameter(
                f"The cells have sums of keys ({given.space}) modulo {given.modulus}. The rule is for sums of keys ({self.records}) modulo "
                f"{self.modulus}: the same records would get other noise than from their own keys. Give records, or say what the keys are "
                "with keys=.",
                field="keys",
            )

    def cell_keys(self, given: CellKeySums) -> NDArray[np.uint64]:
        """The keys of cells with these sums, in the same shape."""
        sums = given.sums.astype(np.uint64)
        return self.fold((sums if given.modulus == self.modulus else sums % np.uint64(self.modulus)).ravel()).reshape(sums.shape)

    def fold(self, sums: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Cell keys from sums that are already taken modulo the modulus."""
        folded = self._fold_sums(sums)
        return mix_keys(folded, self.size) if self.mixed else folded

    def _fold_sums(self, sums: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if self.size == self.modulus:
            return sums
        bits = self.size.bit_length() - 1
        folded, rest = np.zeros_like(sums), sums.copy()
        for _ in range(0, (self.modulus - 1).bit_length(), bits):
            folded ^= rest & np.uint64(self.size - 1)
            rest >>= np.uint64(bits)
        return folded

    def sum_sql(self, key: str) -> str:
        """SQL for the sum of `key`, a column of unsigned integers, over a group, modulo the modulus, as UBIGINT. Sums are of 128 bits."""
        return f"(sum({key}) % {self.modulus}::HUGEINT)::UBIGINT"


def distance_from_uniform(records: int, modulus: int, size: int) -> Fraction:
    """`CellKeys.distance`, for any numbers, the refused ones included [theory T90]."""
    often, left = divmod(records, modulus)
    one = left * (Fraction(often + 1, records) - Fraction(1, modulus))
    return one if size == modulus else one + 1 - Fraction(modulus, 2 ** (modulus - 1).bit_length())


def folded_sum(total: int, modulus: int, size: int) -> int:
    """`CellKeys.of` from the sum of the keys, for any numbers."""
    value, folded = total % modulus, 0
    if size == modulus:
        return value
    while value:
        folded ^= value % size
        value //= size
    return folded


def do_not_fill(largest: int, members: int, size: int) -> bool:
    """Whether so many keys, of which this is the largest, are no draw of uniform keys below `size`: proved to have a chance below 2^-40.

    The chance is ((largest + 1) / size)^members. Keys of fewer bits than declared are found by it, as soon as there are a few. Counted from
    the other end, with size - 1 - smallest, it finds keys that all lie high.
    """
    from flint import arb

    return bool(members * (arb(size) / arb(largest + 1)).log() > UNLIKELY_BITS * arb(2).log())


def _is_prime(number: int) -> bool:
    from flint import fmpz

    return bool(fmpz(number).is_prime())


def mix_keys(keys: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """The keys 0, ..., size - 1 permuted, for many at once."""
    bits = (size - 1).bit_length()
    out = _rounds(keys, bits)
    while len(outside := np.flatnonzero(out > np.uint64(size - 1))):
        out[outside] = _rounds(out[outside], bits)
    return out


def _rounds(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    mask, shift = np.uint64(2**bits - 1), np.uint64(max(bits // 2, 1))
    out = keys.astype(np.uint64)
    for factor, term in _constants():
        out ^= out >> shift
        out *= np.uint64(factor)  # modulo 2^64, and so modulo every smaller power of two
        out += np.uint64(term)
        out &= mask
    return out


def slow_mixed(key: int, size: int) -> int:
    """The same for one key in Python's integers: the definition."""
    bits = (size - 1).bit_length()
    while True:
        for factor, term in _constants():
            key ^= key >> max(bits // 2, 1)
            key = (key * factor + term) % 2**bits
        if key < size:
            return key


def _constants() -> list[tuple[int, int]]:
    return [((2 * number + 1) * _STEP % 2**64, (number + 1) * _STEP % 2**64) for number in range(ROUNDS)]
