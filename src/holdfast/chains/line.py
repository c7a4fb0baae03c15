"""The exact law of t when a table z may move along one direction: z + t u, t an integer.

The energy along a line is convex in t (and so is its square root), hence the law is log-concave: from the mode outwards each weight is at
most as large, against the one before, as that one was against its own. A geometric series therefore bounds what is left of a tail.

This is the slow, certain way: every weight is a ball, the draw an inverse distribution function on one 32-bit word with extra bits of its
own where the word leaves it open. The compiled loops compute the same function of the word in doubles and hand over to this where a word
comes near a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.chains.target import Decay
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import fixed_point, precision
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import FixedWeights, ListedSource, WeightSource
from holdfast.randomness import Words

LONGEST_LINE = 1 << 20
"""Points of a line that carry mass; wider ones are refused: their windows would be slow to sum."""
KINDS = {"absolute": 0, "squares": 1, "norm": 2}
TOO_LARGE = 3
"""What a compiled loop says of a state that leaves the limit; beside the codes of words_in_steps.py."""


@dataclass(frozen=True)
class Line:
    """Law:  P[t] proportional to the weight of energy(t), first <= t <= last (None: no end). Implements `weights.WeightSource`."""

    decay: Decay
    values: tuple[int, ...]
    """z_i for the cells that the direction changes."""
    steps: tuple[int, ...]
    """u_i, none zero."""
    constant: int
    """Energy of the other cells: matters under a root only."""
    first: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        if self.first is not None and self.last is not None and self.first > self.last:
            raise InvalidParameter("A line ends before it begins: its table lies outside the target's bounds. Start within them.")

    def energy(self, t: int) -> int:
        moved = [v + t * s for v, s in zip(self.values, self.steps, strict=True)]
        return self.constant + sum(map(abs, moved) if self.decay.kind == "absolute" else (v * v for v in moved))

    def mode(self) -> int:
        """The smallest t of least energy."""
        low = min((-v) // s for v, s in zip(self.values, self.steps, strict=True))
        high = max(-(v // s) for v, s in zip(self.values, self.steps, strict=True))
        low, high = self._clip(low), self._clip(high)
        while low < high:
            middle = (low + high) // 2
            if self.energy(middle + 1) >= self.energy(middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _clip(self, t: int) -> int:
        if self.first is not None:
            t = max(t, self.first)
        return t if self.last is None else min(t, self.last)

    def exact_weights(self) -> dict[int, Fraction]:
        """Weight of every t against that of the mode, as fractions: for a rational base and a line with two ends."""
        assert self.first is not None
        assert self.last is not None
        least = self.energy(self.mode())
        return {t: self.decay.exact_ratio(self.energy(t), least) for t in range(self.first, self.last + 1)}

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        if self.decay.base is not None and self.first is not None and self.last is not None:
            weights = self.exact_weights()
            return ListedSource(self.first, list(weights.values())).fixed_weights(bits, guard)
        working = bits + guard + 64
        mode = self.mode()
        with precision(working + 64):
            right = self._arm(mode, 1, working, working - bits - guard)
            left = self._arm(mode, -1, working, working - bits - guard)
        lows = [low for low, _ in reversed(left[0])] + [1 << working] + [low for low, _ in right[0]]
        highs = [high for _, high in reversed(left[0])] + [1 << working] + [high for _, high in right[0]]
        return FixedWeights(mode - len(left[0]), lows, highs, (0, left[1]), (0, right[1]))

    def _arm(self, mode: int, direction: int, working: int, enough: int) -> tuple[list[tuple[int, int]], int]:
        """Weights beyond the mode in one direction, in units of 2^-working, and a bound of what follows, below 2^enough units."""
        least, before = self.energy(mode), 1 << working
        out: list[tuple[int, int]] = []
        end = self.last if direction > 0 else self.first
        t = mode
        while end is None or t != end:
            t += direction
            low, high = fixed_point(self.decay.ratio(self.energy(t), least), working)
            if high < before and high * before <= (before - high) << enough:  # w r / (1 - r) with r = w / before; and w itself
                return out, -(-high * before // (before - high))
            out.append((low, high))
            before = max(low, 1)
            if len(out) > LONGEST_LINE:
                raise RequestTooLarge(
                    f"A move of the chain could go further than {LONGEST_LINE} steps. Use a larger epsilon, or less noise."
                )
        return out, 0


def draw_point(law: WeightSource, words: Words) -> int:
    """One draw of an integer law by inverse distribution function: one word, and extra bits of that word where it leaves it open."""
    return int(TableSampler(law).draw(1, words)[0])


def limit_message(limit: int) -> str:
    """Why a state that reached the limit is refused."""
    return f"A cell of the chain reached {limit} in absolute value, beyond which energies may not fit 64 bits. Use less noise."
