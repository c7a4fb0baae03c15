"""The one-sum Laplace draw in plain Python: slow, obvious, and bit for bit what the compiled loop gives.

It is the oracle of one_sum_laplace.py and its path for few cells in a process that has not loaded Numba.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb

from holdfast.exact.predicates import is_below
from holdfast.exact.table import TableSampler
from holdfast.randomness.words import Words

ONE_WORD_BOUND = 1 << 30
"""Up to this bound a cell and a weight are read from one word, above from two."""

_WHOLE = 1 << 32


def one_sum_laplace_oracle(
    cells: int,
    geometric: TableSampler,
    accept_probability: Callable[[int], Callable[[], arb]],
    words: Words,
    one_word_bound: int = ONE_WORD_BOUND,
) -> list[int]:
    """One draw of P[z] proportional to exp(-epsilon |z|_1), sum of z = 0.

    Given:       the table of the geometric law of that epsilon, and for a total its probability of being accepted (one_sum_laplace.py).
                 `one_word_bound` is another number in tests only.
    Guarantees:  exact; the same words in the same order as the compiled loop.
    """
    other: list[int] | None = None
    while True:
        proposal = draw_geometrics(cells, geometric, words)
        if accepts(accept_probability(sum(proposal)), words):
            break
        other = proposal
    if other is None:
        other = draw_geometrics(cells, geometric, words)
    move_total(other, sum(proposal), words, one_word_bound)
    return [g - h for g, h in zip(proposal, other, strict=True)]


def draw_geometrics(cells: int, geometric: TableSampler, words: Words) -> list[int]:
    """Independent geometric values, one word each."""
    places = np.arange(words.position, words.position + cells)
    values: list[int] = (geometric.first + geometric.index(words.take(cells), places, words)).tolist()
    return values


def accepts(probability: Callable[[], arb], words: Words) -> bool:
    """A coin of this probability: one word, and more bits of it where it leaves the question open."""
    index = words.position
    return is_below(int(words.take(1)[0]), 32, probability, words, index)


def move_total(stars: list[int], target: int, words: Words, one_word_bound: int) -> None:
    """Turn a uniform composition of its total into one of the target, one star at a time, in place."""
    total, largest = sum(stars), max(stars)
    gain = 1 if total < target else 0
    step = 1 if total < target else -1
    while total != target:
        cell = weighted_cell(stars, gain, largest + gain, words, one_word_bound)
        stars[cell] += step
        largest = max(largest, stars[cell])
        total += step


def weighted_cell(stars: list[int], gain: int, bound: int, words: Words, one_word_bound: int) -> int:
    """A cell with probability proportional to stars + gain, none of which exceeds the bound: uniform cells until one is kept."""
    while True:
        place = uniform_place(len(stars), bound, words, one_word_bound)
        if place is not None and place[1] < stars[place[0]] + gain:
            return place[0]


def uniform_place(cells: int, bound: int, words: Words, one_word_bound: int) -> tuple[int, int] | None:
    """A uniform pair (cell below cells, number below bound), or None for words of an incomplete last round."""
    if cells * bound <= one_word_bound:
        joint = multiply_word(cells * bound, words)
        return None if joint is None else divmod(joint, bound)
    cell, number = multiply_word(cells, words), multiply_word(bound, words)
    return None if cell is None or number is None else (cell, number)


def multiply_word(size: int, words: Words) -> int | None:
    """floor(word size / 2^32), uniform below size once words whose remainder is below 2^32 mod size are thrown away (None)."""
    value, rest = divmod(int(words.take(1)[0]) * size, _WHOLE)
    return None if rest < _WHOLE % size else value
