"""The encoding of labels: injective, prefix-free, and exactly as documented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.randomness.labels import MAX_LANE, encode_header, encode_label, encode_part, show_label

# Small alphabets and shared fragments, so that near-collisions ("ab","c" / "a","bc"; 1 / b"\0...\1" / "1") are common.
PARTS = st.one_of(
    st.text(alphabet="ab\0é", max_size=4),
    st.binary(max_size=4),
    st.binary(min_size=8, max_size=9),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, "1", b"1", 1]),
)
LABELS = st.lists(PARTS, min_size=1, max_size=4).map(tuple)
LANES = st.sampled_from([0, 1, 2, 256, MAX_LANE])


def typed(label):
    return tuple((type(part), part) for part in label)


def header_of(encoded: bytes) -> bytes:
    return encoded[: int.from_bytes(encoded[:4], "big")]


@given(LABELS, LANES, LABELS, LANES)
def test_different_labels_or_lanes_have_different_encodings(one, lane_one, two, lane_two):
    same = typed(one) == typed(two) and lane_one == lane_two
    assert (encode_label(one, lane_one) == encode_label(two, lane_two)) == same


@given(LABELS, LANES, LABELS, LANES)
def test_no_header_is_a_proper_prefix_of_another(one, lane_one, two, lane_two):
    first, second = header_of(encode_label(one, lane_one)), header_of(encode_label(two, lane_two))
    assert first == second or not second.startswith(first)


@given(LABELS, LANES)
def test_the_encoding_can_be_read_back(label, lane):
    assert decode(encode_label(label, lane)) == (typed(label), lane)


def decode(encoded: bytes):
    """A reader written from the docstring: what it returns without loss proves injectivity on that input."""
    header, item = header_of(encoded), encoded[len(header_of(encoded)) :]
    assert len(header) % 16 == 0
    lane, count = int.from_bytes(header[4:8], "big"), int.from_bytes(header[8:12], "big")
    at, parts = 12, []
    for _ in range(count - 1):
        kind, length = header[at : at + 1], int.from_bytes(header[at + 1 : at + 9], "big")
        parts.append(decode_part(kind, header[at + 9 : at + 9 + length]))
        at += 9 + length
    parts.append(decode_part(header[at : at + 1], item))
    assert not any(header[at + 1 :])
    return tuple(parts), lane


def decode_part(kind: bytes, content: bytes):
    if kind == b"s":
        return str, content.decode()
    if kind == b"b":
        return bytes, content
    assert kind == (b"i" if len(content) == 8 else b"I")
    return int, int.from_bytes(content, "big", signed=True)


def test_written_out_by_hand():
    header = bytes.fromhex("00000020 00000005 00000002") + b"s" + (2).to_bytes(8, "big") + b"ab" + b"i"
    assert encode_label(("ab", -2), 5) == header.ljust(32, b"\0") + b"\xff" * 7 + b"\xfe"


@pytest.mark.parametrize(
    ("value", "content"), [(2**63, "008000000000000000"), (-(2**63) - 1, "ff7fffffffffffffff"), (2**72, "01" + "00" * 9)]
)
def test_large_integers_use_as_few_bytes_as_hold_them(value, content):
    assert encode_part(value) == (b"I", bytes.fromhex(content))


@pytest.mark.parametrize("part", [True, False, 1.0, None, ("a",), bytearray(b"a")])
def test_other_types_are_refused(part):
    with pytest.raises(InvalidParameter, match=f"found {type(part).__name__}"):
        encode_label(("a", part))


def test_an_empty_label_is_refused():
    with pytest.raises(InvalidParameter, match="at least one part"):
        encode_label(())


def test_a_lone_surrogate_is_named_in_one_error():
    with pytest.raises(InvalidParameter, match=r"character 1 .* lone surrogate") as caught:
        encode_label(("a\ud800b",))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("lane", [-1, MAX_LANE + 1])
def test_lanes_outside_four_bytes_are_refused(lane):
    with pytest.raises(InvalidParameter, match=str(lane)):
        encode_header((), b"s", lane)


def test_long_labels_are_shortened_in_messages():
    assert show_label(("table", 7, b"x")) == "('table', 7, b'x')"
    assert len(show_label(("x" * 1000,))) < 50
