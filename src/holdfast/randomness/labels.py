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
"""

from __future__ import annotations

import reprlib

import numpy as np

from holdfast.errors import InvalidParameter

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
