"""What every law on the integers offers: draws, certified probabilities, moments and tails."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.display import shorten
from holdfast.errors import PrecisionExhausted, RequestTooLarge
from holdfast.exact.balls import Enclosure, enclose_until
from holdfast.exact.parameters import exact_integer, sample_size
from holdfast.exact.segments import Arms, Segment
from holdfast.exact.sums import Moments, moment_sums
from holdfast.exact.table import Sampler as Sampler
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import ArmsSource
from holdfast.exact.wide import WideSampler
from holdfast.randomness import NoiseKey, Words

NARROW_REACH = 1 << 16
"""Points on an arm above which a law is drawn by cells instead of one table."""
PRECISIONS = (384, 1024, 4096, 16384)
"""Bits tried in turn until an enclosure is far narrower than a double's last place."""
RELATIVE_WIDTH = Fraction(1, 2**60)
TINY = Fraction(1, 2**60_000)
"""Below this a probability is enclosed, not measured."""


class NamedLaw(Protocol):
    """A law whose name labels a stream."""

    @property
    def stream_name(self) -> str:
        """The law with all its parameters."""


class IntegerLaw(ABC):
    """A probability law on the integers with exact parameters; immutable, equal when its parameters are."""

    def __init__(self, **parameters: object) -> None:
        self._parameters = parameters

    @property
    def parameters(self) -> dict[str, object]:
        """The exact parameters by name."""
        return dict(self._parameters)

    @property
    def stream_name(self) -> str:
        """The law with all its parameters in full: labels its stream, so that different laws never share words."""
        return self._written(_show)

    def __repr__(self) -> str:
        return self._written(lambda value: shorten(_show(value), 42))

    def _written(self, show: Callable[[object], str]) -> str:
        parameters = ", ".join(f"{name}={show(value)}" for name, value in self._parameters.items() if value is not None)
        return f"{type(self).__name__}({parameters})"

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
        return _sampler_of(self)

    def sample(self, n: int, key: NoiseKey | None = None, *, label: str = "") -> NDArray[np.int64]:
        """n independent draws as an int64 array.

        Guarantees:  exact law over uniform words. `key=None` draws a fresh secret key. With a key, equal keys and labels give equal
                     draws, and the same key object refuses to serve the same law and label twice.
        """
        n = sample_size(n)
        check_memory(n)
        with law_words(self, key, label) as words:
            return self.draw(n, words)

    def batches(self, n: int, key: NoiseKey | None = None, *, label: str = "", size: int = 1 << 20) -> Iterator[NDArray[np.int64]]:
        """The same n draws as `sample`, in arrays of at most `size`: for more draws than fit in memory."""
        n, size = sample_size(n), max(1, sample_size(size))
        check_memory(size)
        with law_words(self, key, label) as words:
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
        segment, j = place
        return _clip(self._narrow(lambda: segment.weight(j) / self._total()[0]))

    def tail_bounds(self, k: int) -> Enclosure:
        k = exact_integer(k, "k")
        if k >= self.arms.anchor:
            return _clip(self._narrow(lambda: self._beyond(self.arms.right, k) / self._total()[0]))
        return _clip(self._narrow(lambda: 1 - self._beyond(self.arms.left, k - 1) / self._total()[0]))

    def cdf_bounds(self, k: int) -> Enclosure:
        k = exact_integer(k, "k")
        if k >= self.arms.anchor:
            return super().cdf_bounds(k)
        return _clip(self._narrow(lambda: self._beyond(self.arms.left, k) / self._total()[0]))

    def mean_bounds(self) -> Enclosure:
        spread = self.variance_bounds().upper

        def mean() -> arb:
            zero, one, _ = self._total()
            return self.arms.anchor + one / zero

        # The mean may be 0: its enclosure is narrow against the spread instead.
        return self._narrow(mean, lambda bounds: (bounds.upper - bounds.lower) ** 2 <= RELATIVE_WIDTH**2 * spread)

    def variance_bounds(self) -> Enclosure:
        def variance() -> arb:
            zero, one, two = self._total()
            return two / zero - (one / zero) * (one / zero)

        lower, upper = self._narrow(variance)
        return Enclosure(max(lower, Fraction(0)), max(upper, Fraction(0)))

    def _narrow(self, value: Callable[[], arb], is_narrow: Callable[[Enclosure], bool] | None = None) -> Enclosure:
        """Enclose a number, raising the precision until it is narrow (relative to itself by default) or certainly tiny."""
        bounds, is_enough = enclose_until(value, PRECISIONS, is_narrow or _is_narrow_or_tiny)
        if is_enough and bounds is not None:
            return bounds
        if bounds is None or is_narrow is None:
            raise PrecisionExhausted(
                f"A property of {self!r} could not be enclosed to {RELATIVE_WIDTH.denominator.bit_length() - 1} bits. "
                "Draws are not affected. Use parameters of a more ordinary size."
            )
        return bounds

    def _total(self) -> Moments:
        """Sums of w, (x - anchor) w and (x - anchor)^2 w over the whole law, at the current precision."""
        bits = ctx.prec
        if bits not in self._totals:
            sums = [arb(0), arb(0), arb(0)]
            for segment in self.arms.left + self.arms.right:
                zero, one, two = moment_sums(segment, 0, None)
                offset = segment.start - self.arms.anchor
                sums[0] += zero
                sums[1] += offset * zero + segment.step * one
                sums[2] += offset * offset * zero + 2 * offset * segment.step * one + two
            self._totals[bits] = (sums[0], sums[1], sums[2])
        return self._totals[bits]

    @cached_property
    def _totals(self) -> dict[int, Moments]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Without the sums, whose balls cannot be pickled: no draw needs them, and they are made again when asked for."""
        return {name: value for name, value in self.__dict__.items() if name != "_totals"}

    @staticmethod
    def _beyond(arm: tuple[Segment, ...], k: int) -> arb:
        """Weight of the arm's points at k and further out."""
        return sum((moment_sums(segment, max((k - segment.start) * segment.step, 0), None)[0] for segment in arm), arb(0))


@contextmanager
def law_words(law: NamedLaw, key: NoiseKey | None, label: str) -> Iterator[Words]:
    """The words of one law and label: from the caller's key, which stays open, or from a fresh secret one, which is erased at the end."""
    source = NoiseKey.generate() if key is None else key
    try:
        with source.stream("law", law.stream_name, label) as words:
            yield words
    finally:
        if key is None:
            source.close()


@lru_cache(maxsize=32)
def _sampler_of(law: IntegerLaw) -> Sampler:
    return law._prepare()


def check_memory(n: int) -> None:
    """Refuse n int64 values that would take more than half of the machine's memory."""
    try:
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not promised outside Linux
        memory_bytes = 1 << 36
    if 8 * n > memory_bytes // 2:
        raise RequestTooLarge(
            f"{n} draws need {8 * n >> 30} GiB, more than half of this machine's memory. "
            "Use .batches(n, key), which yields them piece by piece."
        )


def _clip(bounds: Enclosure) -> Enclosure:
    """A probability lies between 0 and 1 whatever the enclosure says."""
    return Enclosure(max(bounds.lower, Fraction(0)), min(max(bounds.upper, Fraction(0)), Fraction(1)))


def _show(value: object) -> str:
    return f"'{value}'" if isinstance(value, Fraction) else repr(value)


def _is_narrow_or_tiny(bounds: Enclosure) -> bool:
    size = max(abs(bounds.lower), abs(bounds.upper))
    return bounds.upper - bounds.lower <= RELATIVE_WIDTH * size or size <= TINY
