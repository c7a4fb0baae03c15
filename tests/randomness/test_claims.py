"""No label twice in any mix of single and bulk calls, and no more keystream than the collision bounds allow."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import KeyExhausted, StreamReused
from holdfast.randomness import NoiseKey, claims

CALLS = st.lists(st.one_of(st.integers(0, 12), st.lists(st.integers(0, 12), max_size=5, unique=True)), max_size=12)


@given(CALLS)
def test_a_label_is_refused_exactly_when_it_was_opened_before(calls):
    key = NoiseKey.for_tests(1)
    opened: set[int] = set()
    for call in calls:
        wanted = {call} if isinstance(call, int) else set(call)
        if wanted & opened:
            with pytest.raises(StreamReused, match="opened before"):
                open_labels(key, call)
        else:
            open_labels(key, call)
            opened |= wanted
    assert key._vault.claims.streams == len(opened)


def open_labels(key, call):
    return key.stream("a", call) if isinstance(call, int) else key.streams("a", items=np.array(call, dtype=np.int64))


def test_the_error_of_a_bulk_call_names_the_label():
    key = NoiseKey.for_tests(1)
    key.streams("a", items=np.arange(1000))
    with pytest.raises(StreamReused, match=r"\('a', 999\)"):
        key.streams("a", items=np.arange(999, 3000))
    with pytest.raises(StreamReused, match=r"\('a', 5\).*take_more"):
        key.resume("a", 5, position=0)
    key.stream("b", "é")
    with pytest.raises(StreamReused, match=r"\('b', 'é'\)"):
        key.streams("b", items=np.array([b"x", "é".encode()]), text=True)


def test_equal_first_halves_are_no_collision_and_equal_tags_are():
    """By chance a 64-bit half repeats about never, so the full comparison is reached only with made-up tags."""
    book = claims.Claims()
    book.claim_bulk(np.array([[5, 1], [6, 1]], dtype=np.uint64), str)
    book.claim_bulk(np.array([[5, 2], [7, 1]], dtype=np.uint64), str)
    single = np.array([5, 3], dtype=np.uint64).tobytes()
    book.claim(single, 0, ("x",))
    for taken in ([5, 1], [5, 2], [5, 3], [7, 1]):
        with pytest.raises(StreamReused, match="stream 1 was"):
            book.claim_bulk(np.array([[5, 9], taken], dtype=np.uint64), str)
        with pytest.raises(StreamReused):
            book.claim(np.array(taken, dtype=np.uint64).tobytes(), 0, ("x",))
    book.claim_bulk(np.array([[5, 9]], dtype=np.uint64), str)


def test_runs_stay_few_when_bulk_calls_are_many():
    book = claims.Claims()
    for number in range(300):
        book.claim_bulk(np.array([[number, 0], [number + 1000, 0]], dtype=np.uint64), str)
    assert len(book._runs) <= 10
    assert sum(len(run) for run in book._runs) >= 598


def test_the_limits_give_the_stated_bounds():
    n, N = claims.MAX_STREAMS, claims.MAX_BLOCKS
    assert n * N <= 2**68
    assert N * N // 2 <= 2 ** (128 - 61)
    assert N * 16 == 256 * 2**30


def test_streams_are_counted_and_limited(monkeypatch):
    monkeypatch.setattr(claims, "MAX_STREAMS", 5)
    key = NoiseKey.for_tests(1)
    stream = key.stream("a")
    stream.take(1)
    stream.extra(np.array([0, 0], dtype=np.uint64), 0)
    with pytest.raises(KeyExhausted, match=r"at most 5 streams.*2 are open and 4 more.*key.derive"):
        key.streams("b", items=np.arange(4))
    bulk = key.streams("b", items=np.arange(3))
    for use in (lambda: key.stream("c"), lambda: stream.extra(np.array([0], dtype=np.uint64), 1), lambda: key.resume("c", position=1)):
        with pytest.raises(KeyExhausted):
            use()
    bulk.take(1)
    with pytest.raises(KeyExhausted):
        bulk.extra(np.array([0]), np.array([0]), 0)
    stream.extra(np.array([0], dtype=np.uint64), 0)
    key.derive("part 2").stream("c")


def test_blocks_are_counted_and_limited(monkeypatch):
    monkeypatch.setattr(claims, "MAX_BLOCKS", 10)
    key = NoiseKey.for_tests(1)
    book, stream = key._vault.claims, key.stream("a")
    for count, blocks in ((1, 1), (3, 1), (1, 2), (6, 3), (0, 3)):
        stream.take(count)
        assert book.blocks == blocks
    stream.give_back(0)
    stream.extra(np.array([0, 1], dtype=np.uint64), 0)
    assert book.blocks == 5
    bulk = key.streams("b", items=np.arange(2))
    bulk.take(3)
    assert book.blocks == 7
    bulk.take(1)
    assert book.blocks == 7
    bulk.take_more(np.array([1]), 5)
    assert book.blocks == 9
    before = bulk.positions
    with pytest.raises(KeyExhausted, match=r"at most 10 blocks.*9 are out and 2 more.*key.derive"):
        bulk.take(4)
    with pytest.raises(KeyExhausted):
        stream.take(6)
    assert (stream.position, bulk.positions.tolist(), book.blocks) == (11, before.tolist(), 9)
    stream.take(5)
    with pytest.raises(KeyExhausted):
        stream.take(1)


def test_words_given_back_are_not_counted_twice():
    key = NoiseKey.for_tests(1)
    stream = key.stream("a")
    for _ in range(50):
        stream.take(8)
        stream.give_back(8)
    assert key._vault.claims.blocks == 2


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
