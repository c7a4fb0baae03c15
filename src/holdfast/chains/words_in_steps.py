"""How chains read words: unbiased choices from one word, and compiled steps that hand over to the exact one where a word is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.exact.predicates import extra_integer
from holdfast.randomness import Words
from holdfast.randomness.words import EXTRA_WORDS

ALL_DONE, NEEDS_WORDS, LEFT_OPEN = 0, 1, 2
"""Why a compiled loop came back: all steps done (or chains met), too few words for another step, a word that doubles did not settle."""

CHUNK_WORDS = 1 << 15
FEW_WORDS = 8
"""Words a step takes in most kernels, or more than that: short runs ask for so many a step, and double it where that is too few."""

Loop: TypeAlias = Callable[[NDArray[np.uint32], int], tuple[int, int, int]]
"""(words, steps wanted) -> (steps done, words used by them, one of the three codes). It changes its state in place, whole steps only."""


def pick(choices: int, words: Words) -> int:
    """A uniform number below `choices` (at most 2^32): floor(U choices) for the uniform U that begins with the next word.

    Always one word, unlike `exact.UniformInteger`, which throws words away: a compiled step then finds its other words where `step` does.
    The word leaves it open where its cell crosses a border of two choices (probability below choices / 2^32): then bits of its own decide.
    """
    index = words.position
    cell, bits, depth = int(words.take(1)[0]), 32, 0
    while True:
        low, high = (cell * choices) >> bits, ((cell + 1) * choices - 1) >> bits
        if low == high:
            return low
        cell = (cell << (32 * EXTRA_WORDS)) | extra_integer(words, index, depth)
        bits += 32 * EXTRA_WORDS
        depth += 1


def run_steps(loop: Loop, exact_step: Callable[[], bool], steps: int, words: Words) -> int:
    """Up to `steps` steps by the loop, each one that it leaves open by `exact_step`; returns how many were made.

    Given:       `exact_step` makes one step from the loop's state, reading words itself, and says whether the run should stop there
                 (chains that met); the loop stops there of its own accord, with ALL_DONE and fewer steps.
    Guarantees:  the words are read as if every step had been made by `exact_step`: what the loop did not use is given back.
    """
    done, size = 0, min(CHUNK_WORDS, FEW_WORDS * (steps + 1))
    while done < steps:
        chunk = words.take(size)
        made, used, code = loop(chunk, steps - done)
        words.give_back(size - used)
        done += made
        if code == ALL_DONE:
            return done
        if code == LEFT_OPEN:
            done += 1
            if exact_step():
                return done
        elif made == 0 or size < CHUNK_WORDS:  # not even one step fits, or steps take more words than was thought
            size *= 2
    return done
