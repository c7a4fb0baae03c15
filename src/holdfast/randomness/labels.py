"""Labels: the public names of streams, written as bytes so that no two labels share a writing.

A label is a tuple of parts, each str, bytes or int. Its encoding is header + item:

    header   4 bytes   length of the whole header, padding included
             4 bytes   lane (0 for a stream's words, r + 1 for its extra bits of depth r)
             4 bytes   number of parts
             for every part but the last: 1 type byte, 8 bytes length, content
             1 byte    type of the last part
             zeros up to a multiple of 16
    item     content of the last part, raw

All integers are big-endian. Content by type: 's' the UTF-8 bytes of a str; 'b' the bytes themselves; 'i' an int that fits in 64 bits, as
8 bytes two's complement; 'I' any other int, two's complement in as few bytes as hold it.

Injective: the first 4 bytes say where the header ends, so no header is a proper prefix of another and header + item splits in one way
only; inside the header every field has a fixed or a stated length; and each type's content determines the part. The item stands last
and unframed so that a million labels with a common prefix share one header, whole in 16-byte blocks, and a MAC can process it once.

Claims: what one key has handed out: which labels, up to which word, and how much in all. It is what makes "each word once" true.

Collision bounds. Let n be the number of tags made (one per stream, one more per lane of extra bits) and N the number of 16-byte keystream
blocks handed out. Tags behave as independent uniform 128-bit starting points, so two given blocks of different streams coincide with
probability 2^-128, and

    P[any two streams share a block]      <= min(n N, N^2 / 2) / 2^128   (the second also where a lane's blocks are scattered)
    advantage of AES as a permutation     <= N^2 / 2^129

With n <= MAX_STREAMS and N <= MAX_BLOCKS (so n N <= 2^64) they are at most 2^-61 each (the first 2^-64 without extra bits). Extra bits
count each time they are asked for, which can only overstate N. The count is kept per key object: another object opened from the same
secret starts again at zero.
"""

from __future__ import annotations

import reprlib
import threading
import weakref
from typing import TYPE_CHECKING

import numpy as np

from holdfast.errors import InvalidParameter, KeyExhausted, StreamReused

if TYPE_CHECKING:
    from holdfast.randomness.streams import Stream

LabelPart = str | bytes | int
Label = tuple[LabelPart, ...]

BLOCK_BYTES = 16
MAX_LANE = 2**32 - 1
_FRAME_LIMIT = 2**32


def encode_label(parts: Label, lane: int = 0) -> bytes:
    """The bytes of `parts` in `lane`: injective in both (module docstring). Refuses an empty label and parts of any other type."""
    kind, item = encode_part(_last_part(parts))
    return encode_header(parts[:-1], kind, lane) + item


def encode_header(prefix: Label, kind: bytes, lane: int = 0) -> bytes:
    """The header of every label (*prefix, x) whose last part x has the type byte `kind`; its length is a multiple of 16."""
    if not 0 <= lane <= MAX_LANE:
        raise InvalidParameter(f"A lane is one of 0 ... 2^32 - 1; found {lane}. Extra bits go to depth 2^32 - 2 at most.")
    body = bytearray()
    for part in prefix:
        part_kind, content = encode_part(part)
        body += part_kind + len(content).to_bytes(8, "big") + content
    body += kind
    header_bytes = -(-(12 + len(body)) // BLOCK_BYTES) * BLOCK_BYTES
    if header_bytes >= _FRAME_LIMIT:
        raise InvalidParameter(f"The parts of a label before the last hold {len(body)} bytes; use less than 4 GiB, for example a digest.")
    fields = header_bytes.to_bytes(4, "big") + lane.to_bytes(4, "big") + (len(prefix) + 1).to_bytes(4, "big")
    return (fields + body).ljust(header_bytes, b"\0")


def encode_part(part: LabelPart) -> tuple[bytes, bytes]:
    """(type byte, content) of one part."""
    if isinstance(part, str):
        try:
            return b"s", part.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidParameter(
                f"A label's text must be writable in UTF-8; character {error.start} of {reprlib.repr(part)} is a lone surrogate. "
                "Remove it, or give that part as bytes."
            ) from None
    if isinstance(part, bytes):
        return b"b", bytes(part)
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        return _encode_int(int(part))
    raise InvalidParameter(
        f"A label's parts are str, bytes or int (not bool); found {type(part).__name__}. Write it as one of these, for example str(part)."
    )


def show_label(parts: Label) -> str:
    """A label for an error message, shortened when long. Labels are public names."""
    return "(" + ", ".join(reprlib.repr(part) for part in parts) + ")"


def _last_part(parts: Label) -> LabelPart:
    if not parts:
        raise InvalidParameter('A label needs at least one part; found none. Name the stream, for example key.stream("table", 3).')
    return parts[-1]


def _encode_int(value: int) -> tuple[bytes, bytes]:
    if -(2**63) <= value < 2**63:
        return b"i", value.to_bytes(8, "big", signed=True)
    magnitude = value if value >= 0 else ~value
    return b"I", value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


MAX_STREAMS = 2**30
MAX_BLOCKS = 2**34
"""256 GiB of keystream."""

_WHAT_TO_DO = 'Open a subkey with key.derive("part 2") and continue with it, or use a new key.'


class Claim:
    """One open label: the next word it will hand out, and the object that hands it out, if that is still alive."""

    __slots__ = ("position", "stream")

    def __init__(self, position: int) -> None:
        self.position = position
        self.stream: weakref.ref[Stream] | None = None


class Claims:
    """The labels opened from one key, and the totals n and N of the module docstring.

    Guarantees: a tag is claimed at most once, except that `reclaim` passes a claim on at exactly the position it has reached. Safe to call
    from several threads.
    """

    __slots__ = ("_claimed", "_lock", "blocks", "children", "streams")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: dict[bytes, Claim] = {}
        self.streams = 0
        self.blocks = 0
        self.children: dict[bytes, Claims] = {}

    def claim(self, tag: bytes, position: int, label: Label) -> Claim:
        """Record that the label of `tag` is open from `position`; StreamReused if it ever was."""
        with self._lock:
            if tag in self._claimed:
                raise StreamReused(
                    f"The stream {show_label(label)} was opened before from this key; a second copy would repeat its words. "
                    "Use the first one, continue with key.resume(..., position=its position), or choose another label."
                )
            return self._record(tag, position)

    def reclaim(self, tag: bytes, position: int, label: Label) -> Claim:
        """Like `claim`, but take over an earlier claim whose stream is at exactly `position`, and close that stream."""
        with self._lock:
            old = self._claimed.get(tag)
            if old is not None and old.position != position:
                raise StreamReused(
                    f"The stream {show_label(label)} stands at word {old.position} and was asked to resume at word {position}, "
                    f"which would repeat or skip words. Resume at position={old.position}, or choose another label."
                )
            claim = self._record(tag, position)
        stream = None if old is None or old.stream is None else old.stream()
        if stream is not None:
            stream.close()
        return claim

    def charge_lane(self) -> None:
        """Count one further tag, that of a lane of extra bits; KeyExhausted beyond MAX_STREAMS."""
        with self._lock:
            self._count_stream()

    def charge_blocks(self, count: int) -> None:
        """Count `count` keystream blocks about to be handed out; KeyExhausted, and nothing counted, beyond MAX_BLOCKS."""
        with self._lock:
            if self.blocks + count > MAX_BLOCKS:
                raise KeyExhausted(
                    f"One key hands out at most {MAX_BLOCKS} blocks of 16 bytes, so that words repeat with probability below 2^-60; "
                    f"{self.blocks} are out and {count} more were asked for. {_WHAT_TO_DO}"
                )
            self.blocks += count

    def child(self, name: bytes) -> Claims:
        """The claims of the subkey `name`: the same object each time, so that deriving a subkey twice does not hand out words twice."""
        with self._lock:
            return self.children.setdefault(name, Claims())

    def _count_stream(self) -> None:
        if self.streams >= MAX_STREAMS:
            raise KeyExhausted(
                f"One key opens at most {MAX_STREAMS} streams (lanes of extra bits included), so that two overlap with probability "
                f"below 2^-60; {self.streams} are open. {_WHAT_TO_DO}"
            )
        self.streams += 1

    def _record(self, tag: bytes, position: int) -> Claim:
        self._count_stream()
        claim = self._claimed[tag] = Claim(position)
        return claim
