"""No label twice, and no more keystream than the collision bounds allow."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import KeyExhausted, StreamReused
from holdfast.randomness import NoiseKey, labels
from tests.randomness.vaults import vault_of


@given(st.lists(st.integers(0, 12), max_size=12))
def test_a_label_is_refused_exactly_when_it_was_opened_before(calls):
    key = NoiseKey.for_tests(1)
    opened: set[int] = set()
    for number in calls:
        if number in opened:
            with pytest.raises(StreamReused, match=rf"\('a', {number}\) was opened before"):
                key.stream("a", number)
        else:
            key.stream("a", number)
            opened.add(number)
    assert vault_of(key).claims.streams == len(opened)


def test_the_limits_give_the_stated_bounds():
    n, N = labels.MAX_STREAMS, labels.MAX_BLOCKS
    assert n * N <= 2**68
    assert N * N // 2 <= 2 ** (128 - 61)
    assert N * 16 == 256 * 2**30


def test_streams_are_counted_and_limited(monkeypatch):
    monkeypatch.setattr(labels, "MAX_STREAMS", 3)
    key = NoiseKey.for_tests(1)
    stream = key.stream("a")
    stream.take(1)
    stream.extra(np.array([0, 0], dtype=np.uint64), 0)
    key.stream("b")
    with pytest.raises(KeyExhausted, match=r"at most 3 streams.*3 are open.*key.derive"):
        key.stream("c")
    for use in (lambda: stream.extra(np.array([0], dtype=np.uint64), 1), lambda: key.resume("c", position=1)):
        with pytest.raises(KeyExhausted):
            use()
    stream.extra(np.array([0], dtype=np.uint64), 0)
    key.derive("part 2").stream("c")


def test_blocks_are_counted_and_limited(monkeypatch):
    monkeypatch.setattr(labels, "MAX_BLOCKS", 10)
    key = NoiseKey.for_tests(1)
    book, stream = vault_of(key).claims, key.stream("a")
    for count, blocks in ((1, 1), (3, 1), (1, 2), (6, 3), (0, 3)):
        stream.take(count)
        assert book.blocks == blocks
    stream.give_back(0)
    stream.extra(np.array([0, 1], dtype=np.uint64), 0)
    assert book.blocks == 5
    key.stream("b").take(13)
    assert book.blocks == 9
    with pytest.raises(KeyExhausted, match=r"at most 10 blocks.*9 are out and 2 more.*key.derive"):
        stream.take(6)
    assert (stream.position, book.blocks) == (11, 9)
    stream.take(5)
    with pytest.raises(KeyExhausted):
        stream.take(1)


def test_words_given_back_are_not_counted_twice():
    key = NoiseKey.for_tests(1)
    stream = key.stream("a")
    for _ in range(50):
        stream.take(8)
        stream.give_back(8)
    assert vault_of(key).claims.blocks == 2


def test_threads_cannot_open_one_label_twice():
    key, opened, refused = NoiseKey.for_tests(1), [], []

    def open_all():
        for number in range(300):
            try:
                opened.append(key.stream(number).label)
            except StreamReused:
                refused.append(number)

    threads = [threading.Thread(target=open_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(opened) == [(number,) for number in range(300)]
    assert len(refused) == 900
