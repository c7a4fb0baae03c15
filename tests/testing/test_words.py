from __future__ import annotations

import numpy as np
import pytest

from holdfast.randomness.words import Words
from holdfast.testing import ListedWords, WordsExhausted, all_words


def test_words_come_in_order_and_end():
    words: Words = ListedWords([5, 6, 7])
    assert words.take(2).tolist() == [5, 6]
    assert words.position == 2
    with pytest.raises(WordsExhausted, match="2 words were asked for, but 1 of the 3 listed are left"):
        words.take(2)
    assert words.take(1).tolist() == [7]
    assert words.take(0).size == 0


def test_take_into_and_give_back():
    words = ListedWords(np.arange(6, dtype=np.uint32))
    out = np.empty(4, dtype=np.uint32)
    words.take_into(out)
    assert out.tolist() == [0, 1, 2, 3]
    words.give_back(3)
    with pytest.raises(ValueError, match="left 1 to return"):
        words.give_back(2)
    assert words.take(5).tolist() == [1, 2, 3, 4, 5]


def test_what_is_handed_out_is_a_copy():
    words = ListedWords([1, 2])
    words.take(1)[0] = 9
    words.give_back(1)
    assert words.take(1)[0] == 1


def test_extra_bits_from_a_mapping_a_function_or_a_default():
    indices = np.array([1, 0], dtype=np.uint64)
    listed = ListedWords([0, 0], extra={(1, 0): (1, 2, 3, 4)}, default_extra=2**32 - 1)
    called = ListedWords([0, 0], extra=lambda index, depth: [index, depth, 0, 0])
    listed.take(2)
    called.take(2)
    assert listed.extra(indices, 0).tolist() == [[1, 2, 3, 4], [2**32 - 1] * 4]
    assert called.extra(indices, 7).tolist() == [[1, 7, 0, 0], [0, 7, 0, 0]]
    assert listed.extra(indices[:0], 0).shape == (0, 4)


def test_extra_bits_only_for_words_taken_and_only_four():
    words = ListedWords([0, 0], extra=lambda index, depth: [0, 0, 0])
    words.take(1)
    with pytest.raises(IndexError, match="Got index 1"):
        words.extra(np.array([1], dtype=np.uint64), 0)
    with pytest.raises(ValueError, match="Got 3 for index 0"):
        words.extra(np.array([0], dtype=np.uint64), 0)


@pytest.mark.parametrize("words", [[-1], [2**32], [0.5], [[1]]])
def test_only_words_are_listed(words):
    with pytest.raises(ValueError, match="Words are"):
        ListedWords(words)


def test_all_words_lists_every_tuple_once_in_order():
    rows = [tuple(row) for row in all_words(3, 2).tolist()]
    assert rows == [(x, y) for x in range(8) for y in range(8)]
    assert all_words(2, 1, shift=30).ravel().tolist() == [0, 1 << 30, 2 << 30, 3 << 30]
    assert all_words(5, 0).shape == (1, 0)


def test_all_words_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="too many to list"):
        all_words(16, 2)
    with pytest.raises(ValueError, match="32 bits"):
        all_words(8, 1, shift=25)
