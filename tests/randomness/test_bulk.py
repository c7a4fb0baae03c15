"""Bulk streams: byte for byte the single form, by NumPy and by compiled kernels alike."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter, KeyMisuse, StreamReused
from holdfast.randomness import NoiseKey, _bulk_compiled, blocks, bulk, items
from holdfast.randomness.vault import start_cmac, start_ecb

PATHS = ("numpy", "compiled")
PREFIXES = st.lists(st.one_of(st.text(max_size=20), st.binary(max_size=20), st.integers()), max_size=3).map(tuple)
CONTENT = st.one_of(
    st.binary(max_size=40), st.text(alphabet="aé\0", max_size=10).map(str.encode), st.sampled_from([b"", b"x" * 16, b"x" * 32])
)


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    """Run a test with the kernels on and with the kernels off."""
    use(request.param, monkeypatch)
    return request.param


def use(path, monkeypatch):
    for module in (bulk, items):
        monkeypatch.setattr(module, "compiled", lambda labels: _bulk_compiled if path == "compiled" else None)


def check_equal_to_single(prefix, given_items, parts, text=False, words=(4, 3, 8)):
    """Open parts one by one and given_items at once: words in three calls, more words of some, extra bits."""
    many = NoiseKey.for_tests(1).streams(*prefix, items=given_items, text=text)
    key = NoiseKey.for_tests(1)
    single = [key.stream(*prefix, part) for part in parts]
    assert len(many) == len(single)
    for count in words:
        assert np.array_equal(many.take(count), [stream.take(count) for stream in single])
    odd = np.arange(1, len(single), 2)
    assert np.array_equal(many.take_more(odd, 3), np.array([single[i].take(3) for i in odd], dtype=np.uint32).reshape(-1, 3))
    assert np.array_equal(many.take(6), [stream.take(6) for stream in single])
    assert many.positions.tolist() == [stream.position for stream in single]
    which = np.arange(len(single)).repeat(2)
    indices = (np.arange(len(which)) * 7 % 15).astype(np.uint64)
    for depth in (0, 2):
        expected = [single[row].extra(indices[[k]], depth)[0] for k, row in enumerate(which)]
        assert np.array_equal(many.extra(which, indices, depth), np.array(expected, dtype=np.uint32).reshape(-1, 4))


def with_both_paths(check):
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            use(path, patch)
            check()


@settings(max_examples=40, deadline=None)
@given(PREFIXES, st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8, unique=True))
def test_integers_equal_single(prefix, values):
    with_both_paths(lambda: check_equal_to_single(prefix, np.array(values, dtype=np.int64), values))


@settings(max_examples=40, deadline=None)
@given(PREFIXES, st.lists(CONTENT, min_size=1, max_size=8, unique=True))
def test_lists_of_bytes_equal_single(prefix, contents):
    with_both_paths(lambda: check_equal_to_single(prefix, contents, contents))


@settings(max_examples=40, deadline=None)
@given(PREFIXES, st.lists(CONTENT.map(lambda c: c.rstrip(b"\0")), min_size=1, max_size=8, unique=True), st.integers(0, 9))
def test_fixed_width_bytes_equal_single(prefix, contents, spare):
    array = np.array(contents, dtype=f"S{max(map(len, contents)) + spare}")
    with_both_paths(lambda: check_equal_to_single(prefix, array, contents))


@settings(max_examples=25, deadline=None)
@given(PREFIXES, st.lists(st.text(max_size=12).filter(lambda t: not t.endswith("\0")), min_size=1, max_size=6, unique=True))
def test_text_equals_single(prefix, texts):
    encoded = [text.encode() for text in texts]
    with_both_paths(lambda: check_equal_to_single(prefix, np.array(encoded, dtype="S"), texts, text=True))
    with_both_paths(lambda: check_equal_to_single(prefix, encoded, texts, text=True))


def test_every_length_from_0_to_40(path):
    contents = [bytes(range(1, length + 1)) for length in range(41)]
    check_equal_to_single(("p",), np.array(contents), contents)
    check_equal_to_single(("p",), np.array(contents, dtype=object), contents)


@pytest.mark.parametrize("dtype", ["i1", "u2", ">i4", "i8", "u8", ">i8"])
def test_integer_types_name_the_same_labels(path, dtype):
    check_equal_to_single(("p",), np.array([5, 0, 127], dtype=dtype), [5, 0, 127])


def test_several_chunks(path, monkeypatch):
    for module in (blocks, bulk, items):
        monkeypatch.setattr(module, "CHUNK_BYTES", 256)
    monkeypatch.setattr(bulk, "_PIECE_WORDS", 8)
    texts = [b"%d" % (i**3) for i in range(50)]
    check_equal_to_single(("p",), np.arange(50) ** 5, [i**5 for i in range(50)], words=(4, 3, 40, 37))
    check_equal_to_single(("p",), np.array(texts), texts, words=(3, 36))
    check_equal_to_single(("p",), texts, texts, words=(64,))
    wide = [b"x" * i + b"y" for i in range(45)]
    check_equal_to_single(("p",), np.array(wide), wide)


def test_both_paths_agree_on_many_labels():
    """Enough labels that the library loads the kernels by itself."""
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 2**62, blocks.COMPILED_FROM)
    for array in (numbers, numbers.astype("S")):
        results = []
        for path in (*PATHS, "chosen"):
            with pytest.MonkeyPatch.context() as patch:
                if path != "chosen":
                    use(path, patch)
                results.append(NoiseKey.for_tests(2).streams("n", items=array).take(8))
        assert np.array_equal(results[0], results[1])
        assert np.array_equal(results[0], results[2])


@settings(deadline=None)  # the first call may compile
@given(st.lists(st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 2**64 - 9)), min_size=1, max_size=4), st.integers(1, 8))
def test_counter_blocks_add_with_carry(rows, count):
    check_counters(rows, count)


def test_counter_blocks_at_the_carries():
    check_counters([(2**128 - 2, 0), (2**64 - 2, 0), (2**64 - 1, 2**64 - 9), (2**128 - 1, 2**64 - 9), (2**64 - 4, 0), (0, 0)], 4)


def check_counters(rows, count):
    tags = np.frombuffer(b"".join(tag.to_bytes(16, "big") for tag, _ in rows), dtype=np.uint64).reshape(-1, 2)
    first = np.array([start for _, start in rows], dtype=np.uint64)
    expected = b"".join(((tag + start + j) % 2**128).to_bytes(16, "big") for tag, start in rows for j in range(count))
    for fill in (blocks.counter_blocks, _bulk_compiled.counter_blocks):
        out = np.empty((len(rows), count, 2), dtype=np.uint64)
        fill(tags, first, out)
        assert out.tobytes() == expected


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=40).map(lambda h: h[: len(h) // 16 * 16]), st.lists(CONTENT, max_size=6))
def test_bulk_cmac_equals_the_library(key, header, contents):
    tags = np.empty((len(contents), 2), dtype=np.uint64)
    mac = blocks.SharedCmac(start_ecb(key), start_cmac(key), header)
    items.ListItems(contents, False).tag(mac, tags)
    for content, tag in zip(contents, tags, strict=True):
        whole = start_cmac(key)
        whole.update(header + content)
        assert tag.tobytes() == whole.finalize()


def test_repeated_items_are_refused_with_the_item(path):
    for array, shown in (
        (np.array([1, 2, 3, 2]), r"\('p', 2\)"),
        (np.array([1, 2, 2]), r"\('p', 2\)"),
        (np.array([b"b", b"a", b"b"]), r"\('p', b'b'\)"),
        (np.array([b"a", b"a"]), r"\('p', b'a'\)"),
        (np.array([b"", b""]), r"\('p', b''\)"),
        ([b"b", b"", b"b"], r"\('p', b'b'\)"),
    ):
        key = NoiseKey.for_tests(1)
        with pytest.raises(StreamReused, match=f"found 1 repeated, for example {shown}"):
            key.streams("p", items=array)
        assert key._vault.claims.streams == 0


def test_repeated_items_are_found_across_chunks(path, monkeypatch):
    monkeypatch.setattr(items, "CHUNK_BYTES", 256)
    rows = [b"%02d" % i for i in range(20)]
    for at in range(1, 20):
        with pytest.raises(StreamReused):
            NoiseKey.for_tests(1).streams(items=np.array([*rows[:at], rows[at - 1], *rows[at:]]))
    assert len(NoiseKey.for_tests(1).streams(items=np.array(rows))) == 20


def test_distinct_items_in_any_order_are_accepted(path):
    rng = np.random.default_rng(1)
    numbers = rng.permutation(1000)
    assert len(NoiseKey.for_tests(1).streams(items=numbers)) == 1000
    assert len(NoiseKey.for_tests(1).streams(items=numbers.astype("S"))) == 1000


def test_equal_halves_alone_do_not_count_as_repeated():
    streams = NoiseKey.for_tests(1).streams(items=np.arange(3))
    streams._tags = np.array([[1, 2], [1, 3], [4, 2]], dtype=np.uint64)
    streams._check_distinct()
    streams._tags[1, 1] = 2
    with pytest.raises(StreamReused):
        streams._check_distinct()


def test_increasing_rows_are_recognised_as_numpy_compares_them():
    rng = np.random.default_rng(2)
    for width in (1, 8, 9, 16, 17, 33):
        for _ in range(50):
            rows = rng.integers(0, 3, (3, width), dtype=np.uint8).view(f"S{width}")[:, 0]
            rows = np.sort(rows) if rng.random() < 0.5 else rows
            padded = np.zeros((3, -(-width // 16) * 16), dtype=np.uint8)
            padded[:, :width] = rows.view(np.uint8).reshape(3, width)
            assert _bulk_compiled.rows_increase(padded.view(np.uint64)) == bool(np.all(rows[1:] > rows[:-1]))


def test_take_into_fills_the_array_given_and_nothing_else(path):
    around = np.full(50, 7, dtype=np.uint32)
    NoiseKey.for_tests(1).streams("p", items=np.arange(5)).take_into(around[3:43].reshape(5, 8))
    assert around[:3].tolist() == [7] * 3
    assert around[43:].tolist() == [7] * 7
    assert np.array_equal(around[3:43].reshape(5, 8), NoiseKey.for_tests(1).streams("p", items=np.arange(5)).take(8))
    streams = NoiseKey.for_tests(1).streams("p", items=np.arange(5))
    wrong: list[Any] = [
        np.empty((4, 8), np.uint32),
        np.empty((5, 8), np.int32),
        np.empty((5, 16), np.uint32)[:, ::2],
        np.empty(40, np.uint32),
    ]
    for out in wrong:
        with pytest.raises(InvalidParameter):
            streams.take_into(out)
    assert not streams.positions.any()


@pytest.mark.parametrize("empty", [np.empty(0, np.int64), np.empty(0, "S5"), []])
def test_no_labels_at_all(path, empty):
    streams = NoiseKey.for_tests(1).streams("p", items=empty)
    assert streams.take(5).shape == (0, 5)
    assert streams.take_more(np.empty(0, np.intp), 4).shape == (0, 4)
    assert streams.extra(np.empty(0, np.intp), np.empty(0, np.uint64), 0).shape == (0, 4)


def test_positions_cannot_be_written():
    streams = NoiseKey.for_tests(1).streams("p", items=np.arange(3))
    streams.take_more(np.array([1]), 2)
    assert streams.positions.tolist() == [0, 2, 0]
    with pytest.raises(ValueError, match="read-only"):
        streams.positions[0] = 5


@pytest.mark.parametrize(
    ("wrong", "text", "match"),
    [
        (np.array([True]), False, "bool"),
        (np.array([1.0]), False, "float64"),
        (np.array(["a"]), True, "<U1"),
        (np.zeros((2, 2), np.int64), False, "one axis"),
        (np.array([2**63], dtype=np.uint64), False, "below 2\\^63"),
        (np.arange(3), True, "text=True"),
        (["a"], True, "found str"),
        ([b"a", 1], False, "found int"),
        (b"abc", False, "found bytes"),
        (range(3), False, "found range"),
    ],
)
def test_other_items_are_refused(wrong, text, match):
    with pytest.raises(InvalidParameter, match=match):
        NoiseKey.for_tests(1).streams("p", items=wrong, text=text)


def test_indices_are_checked():
    streams = NoiseKey.for_tests(1).streams("p", items=np.arange(3))
    streams.take(4)
    for which in (np.array([3]), np.array([-1]), np.array([0.0]), np.array([1, 0, 1])):
        with pytest.raises(InvalidParameter):
            streams.take_more(which, 1)
    for rows, indices in (([0], [4]), ([0, 1], [0]), ([3], [0])):
        with pytest.raises(InvalidParameter):
            streams.extra(np.array(rows), np.array(indices, dtype=np.uint64), 0)
    streams.take_more(np.array([1]), 1)
    streams.extra(np.array([1]), np.array([4], dtype=np.uint64), 0)
    with pytest.raises(InvalidParameter):
        streams.extra(np.array([0]), np.array([4], dtype=np.uint64), 0)


def test_items_changed_behind_our_back_are_noticed():
    numbers = np.arange(3)
    streams = NoiseKey.for_tests(1).streams("p", items=numbers)
    streams.take(1)
    numbers[1] = 7
    with pytest.raises(KeyMisuse, match="changed"):
        streams.extra(np.array([1]), np.array([0], dtype=np.uint64), 0)
    assert streams.extra(np.array([0]), np.array([0], dtype=np.uint64), 0).shape == (1, 4)


def test_small_calls_do_not_load_numba():
    code = (
        "import sys, numpy as np; from holdfast.randomness import NoiseKey, blocks; key = NoiseKey.for_tests(1);"
        "key.streams('a', items=np.arange(blocks.COMPILED_FROM - 1)).take(1); assert 'numba' not in sys.modules;"
        "key.streams('b', items=np.arange(blocks.COMPILED_FROM)).take(1); assert 'numba' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
