"""What every law on the integers offers: draws, certified probabilities, moments and tails."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import RequestTooLarge
from holdfast.exact.balls import Enclosure, enclosure, precision
from holdfast.exact.parameters import exact_integer, sample_size
from holdfast.exact.segments import Arms, Segment
from holdfast.exact.sums import moment_sums
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import ArmsSource, WeightSource
from holdfast.exact.wide import WideSampler
from holdfast.randomness import NoiseKey, Words

NARROW_REACH = 1 << 16
"""Points on an arm above which a law is drawn by cells instead of one table."""
PRECISION_BITS = 384
"""Working precision of certified probabilities; enclosures are then far narrower than a double's last place."""


class Sampler(Protocol):
    """A prepared sampler: tables built, ready to turn words into draws."""

    @property
    def words_per_draw(self) -> int:
        """32-bit words for one draw (for one try where tries may fail)."""

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws."""

    def draw_into(self, out: NDArray[np.int64], words: Words) -> None:
        """Independent draws, filling an array."""


class IntegerLaw(ABC):
    """A probability law on the integers with exact parameters; immutable, equal when its parameters are."""

    def __init__(self, **parameters: object) -> None:
        self._parameters = parameters

    @property
    def parameters(self) -> dict[str, object]:
        """The exact parameters by name."""
        return dict(self._parameters)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in self._parameters.items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, IntegerLaw) and self._parameters == other._parameters

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self._parameters.items())))

    @abstractmethod
    def _prepare(self) -> Sampler:
        """Build this law's sampler."""

    @abstractmethod
    def pmf_bounds(self, k: int) -> Enclosure:
        """Certified enclosure of P[X = k]."""

    @abstractmethod
    def tail_bounds(self, k: int) -> Enclosure:
        """Certified enclosure of P[X >= k]."""

    @abstractmethod
    def mean_bounds(self) -> Enclosure:
        """Certified enclosure of E[X]."""

    @abstractmethod
    def variance_bounds(self) -> Enclosure:
        """Certified enclosure of Var[X]."""

    def pmf(self, k: int) -> float:
        """P[X = k], the float nearest to the certified enclosure's middle."""
        return self.pmf_bounds(k).nearest()

    def cdf_bounds(self, k: int) -> Enclosure:
        """Certified enclosure of P[X <= k]; for small upper tails `tail_bounds` keeps more digits."""
        lower, upper = self.tail_bounds(k + 1)
        return Enclosure(1 - upper, 1 - lower)

    def mean(self) -> float:
        """E[X], to the nearest float."""
        return self.mean_bounds().nearest()

    def variance(self) -> float:
        """Var[X], rounded up: error statements made from it are never too small."""
        return self.variance_bounds().up()

    def sampler(self) -> Sampler:
        """The prepared sampler, built once for equal laws."""
        return _prepared(self)

    def sample(self, n: int, key: NoiseKey | None = None, *, label: str = "") -> NDArray[np.int64]:
        """n independent draws as an int64 array.

        Guarantees:  exact law over uniform words. `key=None` draws a fresh secret key. With a key, equal keys and labels give equal
                     draws, and the same key object refuses to serve the same law and label twice.
        """
        n = sample_size(n)
        _check_memory(n)
        with NoiseKey.generate() if key is None else _Borrowed(key) as source, source.stream("law", repr(self), label) as words:
            return self.draw(n, words)

    def batches(self, n: int, key: NoiseKey | None = None, *, label: str = "", size: int = 1 << 20) -> Iterator[NDArray[np.int64]]:
        """The same n draws as `sample`, in arrays of at most `size`: for more draws than fit in memory."""
        n, size = sample_size(n), max(1, sample_size(size))
        _check_memory(size)
        with NoiseKey.generate() if key is None else _Borrowed(key) as source, source.stream("law", repr(self), label) as words:
            while n > 0:
                yield self.draw(min(size, n), words)
                n -= min(size, n)

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws from words the caller holds: for samplers built on this law."""
        return self.sampler().draw(sample_size(n), words)


class ArmsLaw(IntegerLaw):
    """A log-concave law given by arms: everything follows from them."""

    def __init__(self, arms: Arms, **parameters: object) -> None:
        super().__init__(**parameters)
        self.arms = arms

    def _prepare(self) -> Sampler:
        if self.arms.reach(45) > NARROW_REACH:
            return WideSampler(self.arms)
        return TableSampler(ArmsSource(self.arms))

    def pmf_bounds(self, k: int) -> Enclosure:
        place = self.arms.locate(exact_integer(k, "k"))
        if place is None:
            return Enclosure(Fraction(0), Fraction(0))
        with precision(PRECISION_BITS):
            segment, j = place
            return _probability(segment.weight(j) / self._total[0])

    def tail_bounds(self, k: int) -> Enclosure:
        k = exact_integer(k, "k")
        with precision(PRECISION_BITS):
            total = self._total[0]
            if k >= self.arms.anchor:
                return _probability(self._beyond(self.arms.right, k) / total)
            return _probability(1 - self._beyond(self.arms.left, k - 1) / total)

    def cdf_bounds(self, k: int) -> Enclosure:
        k = exact_integer(k, "k")
        if k >= self.arms.anchor:
            return super().cdf_bounds(k)
        with precision(PRECISION_BITS):
            return _probability(self._beyond(self.arms.left, k) / self._total[0])

    def mean_bounds(self) -> Enclosure:
        with precision(PRECISION_BITS):
            zero, one, _ = self._total
            return enclosure(self.arms.anchor + one / zero)

    def variance_bounds(self) -> Enclosure:
        with precision(PRECISION_BITS):
            zero, one, two = self._total
            shift = one / zero
            lower, upper = enclosure(two / zero - shift * shift)
            return Enclosure(max(lower, Fraction(0)), max(upper, Fraction(0)))

    @cached_property
    def _total(self) -> tuple[arb, arb, arb]:
        """Sums of w, (x - anchor) w and (x - anchor)^2 w over the whole law."""
        sums = [arb(0), arb(0), arb(0)]
        with precision(PRECISION_BITS):
            for segment in self.arms.left + self.arms.right:
                zero, one, two = moment_sums(segment, 0, None)
                offset = segment.start - self.arms.anchor
                sums[0] += zero
                sums[1] += offset * zero + segment.step * one
                sums[2] += offset * offset * zero + 2 * offset * segment.step * one + two
        return sums[0], sums[1], sums[2]

    @staticmethod
    def _beyond(arm: tuple[Segment, ...], k: int) -> arb:
        """Weight of the arm's points at k and further out."""
        return sum((moment_sums(segment, max((k - segment.start) * segment.step, 0), None)[0] for segment in arm), arb(0))


class TableLaw(IntegerLaw):
    """A law on finitely many points, given by a source of certified weights."""

    def __init__(self, source: WeightSource, **parameters: object) -> None:
        super().__init__(**parameters)
        self._source = source

    def _prepare(self) -> Sampler:
        return TableSampler(self._source)

    def pmf_bounds(self, k: int) -> Enclosure:
        first, chances = self._chances
        k = exact_integer(k, "k")
        return chances[k - first] if 0 <= k - first < len(chances) else Enclosure(Fraction(0), Fraction(0))

    def tail_bounds(self, k: int) -> Enclosure:
        first, chances = self._chances
        return _added(chances[max(exact_integer(k, "k") - first, 0) :])

    def mean_bounds(self) -> Enclosure:
        first, chances = self._chances
        return _added([_scaled(chance, first + i) for i, chance in enumerate(chances)])

    def variance_bounds(self) -> Enclosure:
        first, chances = self._chances
        mean = self.mean_bounds()
        middle, error = (mean.lower + mean.upper) / 2, (mean.upper - mean.lower) / 2
        # E (X - middle)^2 exceeds the variance by (mean - middle)^2, at most error^2
        second = _added([_scaled(chance, (first + i - middle) * (first + i - middle)) for i, chance in enumerate(chances)])
        return Enclosure(max(second.lower - error**2, Fraction(0)), second.upper)

    @cached_property
    def _chances(self) -> tuple[int, list[Enclosure]]:
        weights = self._source.fixed_weights(PRECISION_BITS, 0)
        low, high = sum(weights.lows), sum(weights.highs)
        return weights.first, [
            Enclosure(Fraction(a, high), min(Fraction(b, low), Fraction(1))) for a, b in zip(weights.lows, weights.highs, strict=True)
        ]


class _Borrowed:
    """A caller's key inside a `with` block: not closed at its end."""

    def __init__(self, key: NoiseKey) -> None:
        self._key = key

    def __enter__(self) -> NoiseKey:
        return self._key

    def __exit__(self, *_: object) -> None:
        return None


@lru_cache(maxsize=32)
def _prepared(law: IntegerLaw) -> Sampler:
    return law._prepare()


def _check_memory(n: int) -> None:
    try:
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not promised outside Linux
        memory_bytes = 1 << 36
    if 8 * n > memory_bytes // 2:
        raise RequestTooLarge(
            f"{n} draws need {8 * n / 2**30:.0f} GiB, more than half of this machine's memory. "
            "Use .batches(n, key), which yields them piece by piece."
        )


def _probability(value: arb) -> Enclosure:
    lower, upper = enclosure(value)
    return Enclosure(max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1)))


def _scaled(chance: Enclosure, factor: Fraction | int) -> Enclosure:
    ends = sorted((chance.lower * factor, chance.upper * factor))
    return Enclosure(Fraction(ends[0]), Fraction(ends[1]))


def _added(parts: list[Enclosure]) -> Enclosure:
    return Enclosure(sum((part.lower for part in parts), Fraction(0)), sum((part.upper for part in parts), Fraction(0)))


def _shown(value: object) -> str:
    return f"'{value}'" if isinstance(value, Fraction) else repr(value)
