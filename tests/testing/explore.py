"""Samplers run on every string of bits, or on every path of choices, in place of chance: certified bounds of each probability.

`explore_bits` shows that a sampler turns fair bits into its law, as far as few bits go. `explore_choices` goes much further one layer up:
a test makes what lies beneath (a coin, a proposal) ask a `Path`, so that only the algorithm above it is enumerated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from heapq import heappop, heappush
from typing import TypeVar

from flint import arb, ctx

from holdfast.testing.words import FairBits, ListedWords, WordsExhausted

Value = TypeVar("Value", bound=Hashable)
Bracket = tuple[dict[Value, Fraction], dict[Value, Fraction]]

PRECISION_BITS = 256
"""Precision of the balls that hold masses."""


class PrefixBits(FairBits):
    """The first bits of an infinite string, given by the test; WordsExhausted where the sampler wants more."""

    def __init__(self, value: int, length: int) -> None:
        super().__init__(ListedWords([]))
        self._pool, self._left = value, length


def explore_bits(draw: Callable[[FairBits], Value], depth: int) -> Bracket[Value]:
    """Bounds of each probability from every bit string of at most `depth` bits, longer ones being left open."""
    lower: Counter[Value] = Counter()  # in units of 2^-depth
    unsettled, tree = 0, [(0, 0)]
    while tree:
        value, length = tree.pop()
        try:
            lower[draw(PrefixBits(value, length))] += 1 << (depth - length)
        except WordsExhausted:
            if length < depth:
                tree += [(2 * value, length + 1), (2 * value + 1, length + 1)]
            else:
                unsettled += 1
    assert lower.total() + unsettled == 1 << depth
    return {k: Fraction(m, 1 << depth) for k, m in lower.items()}, {k: Fraction(m + unsettled, 1 << depth) for k, m in lower.items()}


class Undecided(Exception):
    """A sampler came to a choice beyond the path laid down for it; `weights` are the probabilities of what it can choose."""

    def __init__(self, weights: list[arb]) -> None:
        self.weights = weights


class Restarted(Exception):
    """A rejection sampler began its second round, which is like the first and independent of it."""


class Path(FairBits):
    """Choices laid down one after the other, in place of what is random; a call of `below` starts a round of rejection sampling."""

    def __init__(self, choices: tuple[int, ...]) -> None:
        super().__init__(ListedWords([]))
        self.left = list(reversed(choices))
        self.rounds = 0

    def choose(self, weights: list[arb]) -> int:
        """The next choice laid down, a place in `weights`."""
        if not self.left:
            raise Undecided(weights)
        return self.left.pop()

    def start_round(self, weights: list[arb]) -> int:
        """The same for the choice that every round of rejection sampling begins with."""
        self.rounds += 1
        if self.rounds == 2:
            raise Restarted
        return self.choose(weights)

    def bits(self, count: int) -> int:
        return self.choose([1 / arb(1 << count)] * (1 << count))

    def below(self, bound: int) -> int:
        return self.start_round([1 / arb(bound)] * bound)


def choose_coin(p: arb, bits: FairBits) -> bool:
    """A coin of this probability as one choice; what a test puts in the place of a sampler's own coin."""
    assert isinstance(bits, Path)
    return bool(bits.choose([1 - p, p]))


def explore_choices(draw: Callable[[FairBits], Value], runs: int) -> Bracket[Value]:
    """Bounds of each probability from so many paths of choices, the likeliest first; certified, since masses are balls.

    A round that ends in rejection is followed by a like one, so the law is that of a round given that it ends in a value.
    """
    accepted: dict[Value, arb] = {}
    rejected = arb(0)
    paths: list[tuple[float, tuple[int, ...], arb]] = [(-1.0, (), arb(1))]
    with ctx.workprec(PRECISION_BITS):
        while paths and runs > 0:
            runs -= 1
            _, path, mass = heappop(paths)
            try:
                value = draw(Path(path))
                accepted[value] = accepted.get(value, arb(0)) + mass
            except Restarted:
                rejected += mass
            except Undecided as choice:
                shares = [(mass * weight, (*path, place)) for place, weight in enumerate(choice.weights) if weight != 0]
                for share, longer in shares:
                    heappush(paths, (-float(share.mid()), longer, share))
        total = sum(accepted.values(), start=arb(0))
        unsettled = 1 - total - rejected
        lower = {k: enclosure(mass / (total + unsettled))[0] for k, mass in accepted.items()}
        return lower, {k: enclosure((mass + unsettled) / total)[1] for k, mass in accepted.items()}


def enclosure(value: arb) -> tuple[Fraction, Fraction]:
    """The two ends of a ball, as fractions."""
    with ctx.workprec(2 * PRECISION_BITS):  # the ends are rounded outwards to the precision of the moment
        ends = [value.lower().fmpq(), value.upper().fmpq()]
    return Fraction(int(ends[0].p), int(ends[0].q)), Fraction(int(ends[1].p), int(ends[1].q))
