"""The last parts of many labels, as a caller may hold them: integers, fixed-width byte strings, or a list of bytes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.randomness.arguments import describe
from holdfast.randomness.blocks import CHUNK_BYTES, Blocks, SharedCmac, compiled
from holdfast.randomness.labels import BLOCK_BYTES, LabelPart

_ALLOWED = "Give an array of integers, an array of NumPy type 'S', or a list of bytes (for text: [t.encode() for t in texts], text=True)."


class Items(Protocol):
    """n last parts of one type."""

    kind: bytes
    """The type byte of labels.py, the same for all."""

    def __len__(self) -> int: ...

    def part(self, row: int) -> LabelPart:
        """Item number `row`, as the single form of a label takes it."""

    def select(self, rows: NDArray[np.intp]) -> Items:
        """The items of these rows."""

    def tag(self, mac: SharedCmac, out: Blocks) -> bool:
        """out[i] = tag of header + item i. True if the items are known to differ from each other, False if that is still to be checked."""


def read_items(items: Any, text: bool) -> Items:
    """Choose the form; refuses what cannot be read without guessing."""
    array = items if isinstance(items, np.ndarray) else None
    if array is not None and array.ndim != 1:
        raise InvalidParameter(
            f"The items of a bulk call lie on one axis; found {describe(array)}. Pass items.ravel() and shape the result."
        )
    if array is not None and array.dtype.kind in "iu":
        if text:
            raise InvalidParameter(f"text=True is for items that are UTF-8 bytes; found {describe(array)}. Leave text out for integers.")
        return IntegerItems(array)
    if array is not None and array.dtype.kind == "S":
        return RowItems(np.ascontiguousarray(array), text)
    if isinstance(items, (list, tuple)) or (array is not None and array.dtype.kind == "O"):
        return ListItems(list(items), text)
    raise InvalidParameter(f"The items of a bulk call cannot be read; found {describe(items)}. {_ALLOWED}")


def _chunk_rows(row_blocks: int) -> int:
    """How many messages of this many blocks are processed together."""
    return max(1, CHUNK_BYTES // (4 * BLOCK_BYTES * row_blocks))


class IntegerItems:
    """Integers that fit in 64 bits signed."""

    kind = b"i"

    def __init__(self, values: NDArray[Any]) -> None:
        if values.dtype.kind == "u" and values.dtype.itemsize == 8 and len(values) and int(values.max()) >= 2**63:
            raise InvalidParameter(
                f"Integer items of a bulk call must be below 2^63; found {int(values.max())}. Open that label by itself with key.stream."
            )
        self._values: NDArray[np.int64] = np.ascontiguousarray(values, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._values)

    def part(self, row: int) -> LabelPart:
        return int(self._values[row])

    def select(self, rows: NDArray[np.intp]) -> IntegerItems:
        return IntegerItems(self._values[rows])

    def tag(self, mac: SharedCmac, out: Blocks) -> bool:
        mac.tag_integers(self._values, out)
        return bool(np.all(self._values[1:] > self._values[:-1]))


class RowItems:
    """A NumPy array of type 'S': each item ends where its trailing NUL bytes begin."""

    def __init__(self, rows: NDArray[np.bytes_], text: bool) -> None:
        self.kind = b"s" if text else b"b"
        self._rows = rows
        self._text = text

    def __len__(self) -> int:
        return len(self._rows)

    def part(self, row: int) -> LabelPart:
        content = bytes(self._rows[row])
        return content.decode("utf-8", "replace") if self._text else content

    def select(self, rows: NDArray[np.intp]) -> RowItems:
        return RowItems(self._rows[rows], self._text)

    def tag(self, mac: SharedCmac, out: Blocks) -> bool:
        row_blocks = max(1, -(-self._rows.dtype.itemsize // BLOCK_BYTES))
        chunk_rows = _chunk_rows(row_blocks)
        kernels = compiled(len(self))
        increasing = bool(kernels is not None or np.all(self._rows[1:] > self._rows[:-1]))
        buffer = np.empty((1 + min(chunk_rows, len(self)), row_blocks, 2), dtype=np.uint64)
        for low in range(0, len(self), chunk_rows):
            chunk = self._rows[low : low + chunk_rows]
            messages = buffer[1 : 1 + len(chunk)]  # row 0 keeps the last item of the chunk before, to compare with
            messages.reshape(len(chunk), -1).view(f"S{row_blocks * BLOCK_BYTES}")[:, 0] = chunk  # NumPy pads with zeros
            tags = out[low : low + len(chunk)]
            if kernels is None:
                mac.tag_messages(messages, np.strings.str_len(chunk).astype(np.int64), tags)
            else:
                compared = buffer[0 if low else 1 : 1 + len(chunk)]
                increasing = increasing and bool(kernels.rows_increase(compared.reshape(len(compared), -1)))
                buffer[0] = messages[-1]
                mac.tag_rows(messages, tags, kernels)
        return increasing


class ListItems:
    """A list of bytes of any lengths, trailing NUL bytes included."""

    def __init__(self, contents: list[Any], text: bool) -> None:
        self.kind = b"s" if text else b"b"
        self._text = text
        wrong = next((type(content).__name__ for content in contents if not isinstance(content, bytes)), None)
        if wrong is not None:
            raise InvalidParameter(f"A list of items must hold bytes only; found {wrong}. {_ALLOWED}")
        self._contents: list[bytes] = contents

    def __len__(self) -> int:
        return len(self._contents)

    def part(self, row: int) -> LabelPart:
        content = self._contents[row]
        return content.decode("utf-8", "replace") if self._text else content

    def select(self, rows: NDArray[np.intp]) -> ListItems:
        return ListItems([self._contents[row] for row in rows], self._text)

    def tag(self, mac: SharedCmac, out: Blocks) -> bool:
        lengths = np.fromiter(map(len, self._contents), dtype=np.int64, count=len(self))
        blocks = np.maximum(1, -(-lengths // BLOCK_BYTES))
        for row_blocks in np.unique(blocks).tolist():
            group = np.flatnonzero(blocks == row_blocks)  # one group per number of blocks: one long item does not widen all rows
            for low in range(0, len(group), _chunk_rows(row_blocks)):
                self._tag_rows(mac, group[low : low + _chunk_rows(row_blocks)], row_blocks * BLOCK_BYTES, lengths, out)
        return len(set(self._contents)) == len(self)

    def _tag_rows(self, mac: SharedCmac, rows: NDArray[np.intp], row_bytes: int, lengths: NDArray[np.int64], out: Blocks) -> None:
        joined = b"".join(self._contents[row].ljust(row_bytes, b"\0") for row in rows)
        messages = np.frombuffer(bytearray(joined), dtype=np.uint64).reshape(len(rows), -1, 2)
        tags = np.empty((len(rows), 2), dtype=np.uint64)
        mac.tag_messages(messages, lengths[rows], tags)
        out[rows] = tags
