"""Rounded projection on products of hierarchies: all falls of the coins, shifts, the same draws by oracle and fast form."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Levels
from holdfast.laws import Rounded
from holdfast.randomness import NoiseKey
from holdfast.samplers.rounded_projection import RoundedLevels, WordCoins
from holdfast.samplers.table import choose
from holdfast.testing import ListedWords
from tests.samplers.levels_shapes import PLAIN, SMALL, all_rows, tree
from tests.samplers.test_rounded import enumerate_coins

TINY = {
    "AB and C": SMALL["2 x 2 x 2, AB and C"],
    "states and sexes": Levels((tree((2,), (2, 1)), PLAIN(2)), ((0, 1), (1, 0))),
    "one-way": Levels((PLAIN(2), PLAIN(2), PLAIN(2)), ((0, 0, 1), (0, 1, 0), (1, 0, 0))),
}


@pytest.mark.parametrize("name", TINY)
def test_unbiased_in_the_lattice_and_commuting_with_shifts_by_enumeration(name: str) -> None:
    """The exact law over all falls of the coins: its mean is the projection, and a shift by the lattice shifts it."""
    shape = TINY[name]
    sampler, rows, basis = RoundedLevels(shape, 1), all_rows(shape), shape.basis()
    gram = np.linalg.inv((basis.T @ basis).astype(np.float64))
    projection = basis @ gram @ basis.T
    rng = np.random.default_rng(3)
    for e in rng.integers(-3, 4, (6, shape.size)):
        law = enumerate_coins(lambda coin, e=e: sampler.round_one(e.tolist(), coin))  # type: ignore[misc]
        assert sum(law.values()) == 1
        assert not (rows @ np.array(list(law)).T).any()
        mean = [sum((p * z[i] for z, p in law.items()), Fraction(0)) for i in range(shape.size)]
        assert [float(value) for value in mean] == pytest.approx(projection @ e, abs=1e-12)
        assert not any(sum((int(a) * b for a, b in zip(row, mean, strict=True)), Fraction(0)) for row in rows)
        shift = basis @ rng.integers(-2, 3, shape.dimension)
        moved = enumerate_coins(lambda coin, e=e + shift: sampler.round_one(e.tolist(), coin))  # type: ignore[misc]
        assert moved == {tuple(a + int(b) for a, b in zip(z, shift, strict=True)): p for z, p in law.items()}
        # the rounding error's variance is at most a quarter of the squares of the Gram-Schmidt vectors
        spread = [sum(float(p) * (z[i] - float(mean[i])) ** 2 for z, p in law.items()) for i in range(shape.size)]
        assert (np.array(spread) <= shape.rounding_diagonal() / 4 + 1e-12).all()


@pytest.mark.parametrize("name", SMALL)
def test_the_fast_form_equals_the_oracle(name: str) -> None:
    shape = SMALL[name]
    sampler = RoundedLevels(shape, "1/4")
    noise = np.random.default_rng(1).integers(-9, 10, (4, shape.size))
    slow_words, fast_words = (NoiseKey.for_tests("rounded levels").stream(name) for _ in range(2))
    coin = WordCoins(slow_words)
    slow = [sampler.round_one(row, coin) for row in noise.tolist()]
    fast = sampler.round_fast(noise, fast_words)
    assert fast.tolist() == slow
    assert slow_words.position == fast_words.position
    assert not (all_rows(shape) @ fast.T).any()
    assert sampler.fits(9)
    assert not sampler.fits(2**60)


@pytest.mark.parametrize("extra", [0, 2**32 - 1])
def test_an_open_coin_is_settled_by_its_own_bits(extra: int) -> None:
    """Three counties: shares are thirds, and the word is the very cell that holds such a share."""
    shape = TINY["states and sexes"]
    sampler = RoundedLevels(shape, 1)
    noise = np.zeros((1, shape.size), dtype=np.int64)
    noise[0, 0] = 1
    seen: list[tuple[int, int]] = []

    def tails(numerator: int, denominator: int) -> bool:
        seen.append((numerator, denominator))
        return False

    sampler.round_one(noise[0].tolist(), tails)
    place = next(i for i, (a, b) in enumerate(seen) if a and (a << 32) % b)
    threshold = (seen[place][0] << 32) // seen[place][1]
    words = [2**32 - 1] * place + [threshold] + [2**32 - 1] * 8
    runs = []
    for fast in (False, True):
        listed = ListedWords(words, lambda i, depth: (extra,) * 4)
        runs.append(sampler.round_fast(noise, listed)[0].tolist() if fast else sampler.round_one(noise[0].tolist(), WordCoins(listed)))
    assert runs[0] == runs[1]
    falls = iter([False] * place + [extra == 0] + [False] * 8)
    assert runs[0] == sampler.round_one(noise[0].tolist(), lambda a, b: next(falls))


def test_what_is_refused_and_chosen() -> None:
    with pytest.raises(InvalidParameter):
        RoundedLevels(Levels((PLAIN(2), PLAIN(2)), ((1, 1),)), 1)
    assert isinstance(choose(TINY["one-way"], Rounded(Fraction(1))).noise, RoundedLevels)
