"""One stream: any sequence of calls reads the same words, and extra bits are a function of (label, index, depth)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter, KeyClosed
from holdfast.randomness import NoiseKey, Words
from holdfast.randomness.labels import Claim
from holdfast.randomness.streams import PIECE_BYTES, Stream, counter_blocks
from holdfast.randomness.vault import start_ecb
from tests.randomness.vaults import secrets_of, vault_of

PIECE_WORDS = PIECE_BYTES // 4
LONG = NoiseKey.for_tests(1).stream("s").take(4 * PIECE_WORDS)


def fresh() -> Stream:
    return NoiseKey.for_tests(1).stream("s")


def block_by_ecb(key: NoiseKey, tag: int, number: int) -> list[int]:
    """Keystream block `number` from `tag`, by one AES call and Python's own arithmetic."""
    block = start_ecb(secrets_of(key)[2]).update(((tag + number) % 2**128).to_bytes(16, "big"))
    return [int.from_bytes(block[i : i + 4], "little") for i in range(0, 16, 4)]


SIZES = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2 * PIECE_WORDS), st.just(PIECE_WORDS)), max_size=6)


@given(SIZES, st.booleans())
def test_any_sizes_read_the_same_words(sizes, into):
    stream, pieces = fresh(), []
    for size in sizes:
        if into:
            piece = np.empty(size, dtype=np.uint32)
            stream.take_into(piece)
        else:
            piece = stream.take(size)
        pieces.append(piece)
        assert stream.position == sum(len(p) for p in pieces)
    words = np.concatenate([np.empty(0, np.uint32), *pieces])
    expected = LONG if len(words) <= len(LONG) else fresh().take(len(words))
    assert np.array_equal(words, expected[: len(words)])


@given(st.lists(st.tuples(st.integers(0, 40), st.lists(st.integers(0, 40), max_size=3)), max_size=8))
def test_given_back_words_come_again(steps):
    stream = fresh()
    for size, returned in steps:
        start = stream.position
        assert np.array_equal(stream.take(size), LONG[start : start + size])
        left = size
        for count in returned:
            if count > left:
                with pytest.raises(InvalidParameter, match=f"At most the {left} words"):
                    stream.give_back(count)
            else:
                stream.give_back(count)
                left -= count
            assert stream.position == start + left


@given(st.integers(0, 70), st.integers(0, 9))
def test_resume_reads_on_from_any_position(position, size):
    resumed = NoiseKey.for_tests(1).resume("s", position=position)
    assert resumed.position == position
    assert np.array_equal(resumed.take(size), LONG[position : position + size])


def test_words_are_the_blocks_of_the_tag():
    key = NoiseKey.for_tests(1)
    tag = int.from_bytes(vault_of(key).tag(("s",), 0), "big")
    assert LONG[:8].tolist() == block_by_ecb(key, tag, 0) + block_by_ecb(key, tag, 1)


@pytest.mark.parametrize("distance", [1, 2, 3, 2**64 - 1, 2**64])
def test_the_counter_wraps_at_128_bits(distance):
    key, tag = NoiseKey.for_tests(1), 2**128 - distance
    start = max(0, distance - 2)
    expected = [word for i in range(4) for word in block_by_ecb(key, tag, start + i)]
    stream = Stream(vault_of(key), ("wrap",), tag.to_bytes(16, "big"), Claim(4 * start))
    assert stream.take(9).tolist() == expected[:9]
    stream.give_back(6)
    assert stream.take(13).tolist() == expected[3:]


@given(st.one_of(st.integers(0, 2**128 - 1), st.sampled_from([2**128 - 2, 2**64 - 2, 2**64 - 1, 0])), st.lists(st.integers(0, 2**64 - 1)))
def test_counter_blocks_add_with_carry(tag, numbers):
    expected = b"".join(((tag + number) % 2**128).to_bytes(16, "big") for number in numbers)
    assert counter_blocks(tag, np.array(numbers, dtype=np.uint64)).tobytes() == expected


def test_extra_bits_are_blocks_of_their_lane():
    key = NoiseKey.for_tests(1)
    stream = key.stream("s")
    stream.take(100)
    for depth in (0, 1, 5):
        tag = int.from_bytes(vault_of(key).tag(("s",), depth + 1), "big")
        got = stream.extra(np.array([3, 99, 0, 3], dtype=np.uint64), depth)
        assert got.dtype == np.uint32
        assert got.tolist() == [block_by_ecb(key, tag, index) for index in (3, 99, 0, 3)]


def test_extra_does_not_move_the_stream_and_does_not_depend_on_what_was_read():
    one, two = fresh(), fresh()
    one.take(10)
    first = one.extra(np.array([7], dtype=np.uint64), 0)
    two.take(1000)
    assert np.array_equal(two.extra(np.array([5, 7], dtype=np.uint64), 0)[1:], first)
    assert np.array_equal(one.take(5), LONG[10:15])


def test_bytes_read_counts_words_and_extra_blocks():
    stream = fresh()
    stream.take(10)
    stream.give_back(3)
    stream.extra(np.array([0, 1], dtype=np.uint64), 0)
    assert stream.bytes_read == 4 * 7 + 16 * 2


def test_extra_refuses_words_not_taken_and_what_is_no_index():
    stream = fresh()
    stream.take(5)
    with pytest.raises(InvalidParameter, match="before 5; found index 5"):
        stream.extra(np.array([4, 5], dtype=np.uint64), 0)
    for indices in (np.array([-1]), np.array([0.0]), np.array([[0]]), np.array([True])):
        with pytest.raises(InvalidParameter):
            stream.extra(indices, 0)
    wrong_depths: list[Any] = [-1, 2**32 - 1, True, 0.0]
    for depth in wrong_depths:
        with pytest.raises(InvalidParameter, match="depth"):
            stream.extra(np.array([0], dtype=np.uint64), depth)
    assert stream.extra(np.empty(0, dtype=np.uint64), 0).shape == (0, 4)


@pytest.mark.parametrize("count", [-1, 1.0, True, None])
def test_take_refuses_what_is_no_count(count):
    with pytest.raises(InvalidParameter, match="number of words"):
        fresh().take(count)


def test_take_into_refuses_other_arrays_and_reads_nothing():
    stream, read_only = fresh(), np.empty(4, np.uint32)
    read_only.flags.writeable = False
    wrong: list[Any] = [np.empty(4, np.int32), np.empty(8, np.uint32)[::2], np.empty((2, 2), np.uint32), read_only, [0, 0]]
    for out in wrong:
        with pytest.raises(InvalidParameter, match="contiguous uint32"):
            stream.take_into(out)
    assert stream.position == 0


def test_take_into_writes_nothing_beside_its_array():
    around = np.full(PIECE_WORDS + 10, 7, dtype=np.uint32)
    fresh().take_into(around[3 : 3 + PIECE_WORDS + 2])
    assert around[:3].tolist() == [7] * 3
    assert around[-5:].tolist() == [7] * 5
    assert np.array_equal(around[3:-5], LONG[: PIECE_WORDS + 2])


@pytest.mark.parametrize("returned", [0, 2, 5])
def test_an_interrupted_read_counts_as_read_and_can_be_given_back(returned):
    class Interrupted:
        """The real cipher, stopped once after it has moved on."""

        def __init__(self, cipher):
            self.cipher, self.stops = cipher, 1

        def update_into(self, data, out):
            done = self.cipher.update_into(data, out)
            if self.stops:
                self.stops = 0
                raise KeyboardInterrupt
            return done

        def __getattr__(self, name):
            return getattr(self.cipher, name)

    stream = fresh()
    stream.take(3)
    stream._cipher = Interrupted(stream._cipher)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        stream.take(5)
    assert stream.position == 8
    stream.give_back(returned)
    assert np.array_equal(stream.take(4), LONG[8 - returned : 12 - returned])


def test_a_closed_stream_keeps_its_name_and_position_only():
    with fresh() as stream:
        stream.take(6)
    assert (stream.label, stream.position) == (("s",), 6)
    assert repr(stream) == "Stream(('s'), position=6, closed)"
    for use in (lambda: stream.take(0), lambda: stream.give_back(0), lambda: stream.extra(np.zeros(1, np.uint64), 0), stream.__enter__):
        with pytest.raises(KeyClosed, match="position=6"):
            use()


def test_a_stream_is_words():
    def first(words: Words) -> int:
        return int(words.take(1)[0])

    assert first(fresh()) == LONG[0]
