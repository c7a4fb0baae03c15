"""AES on arrays of 16-byte blocks: encryption into a caller's memory, counter blocks, CMAC over many messages with one common beginning.

Blocks are arrays of uint64 whose last axis has length 2. They are memory, not numbers: byte 0 of the block is byte 0 of the first uint64,
on every machine. Only counter arithmetic reads them as numbers, big-endian.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext
from cryptography.hazmat.primitives.cmac import CMAC
from numpy.typing import NDArray

from holdfast.randomness.labels import BLOCK_BYTES

Blocks = NDArray[np.uint64]

CHUNK_BYTES = 1 << 18
"""Work is done in chunks whose blocks fill about this much: they stay in the second-level cache between one step and the next."""

COMPILED_FROM = 20_000
"""Number of labels from which Numba is loaded; below it NumPy does the same, unless the compiled kernels are there already."""

_COMPILED_NAME = "holdfast.randomness._bulk_compiled"
_DOUBLING_CONSTANT = 0x87  # SP 800-38B, 5.3: x^128 = x^7 + x^2 + x + 1


def compiled(labels: int) -> ModuleType | None:
    """The compiled kernels when they pay for `labels` labels, else None: then use the NumPy functions here, which give the same bytes."""
    if sys.byteorder != "little":
        return None  # the kernels read blocks as little-endian memory
    loaded = sys.modules.get(_COMPILED_NAME)
    if loaded is not None or labels < COMPILED_FROM or importlib.util.find_spec("numba") is None:
        return loaded
    return importlib.import_module(_COMPILED_NAME)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The memory of a contiguous array, byte by byte; writable if the array is."""
    return array.data.cast("B") if array.size else memoryview(bytearray())  # cast refuses arrays without elements


def encrypt_blocks(cipher: CipherContext, source: memoryview, out: memoryview, at: int) -> None:
    """out[at : at + len(source)] = AES of each block of `source`."""
    end = at + len(source)
    # For ECB, update_into insists on 15 bytes more than it writes; where the output ends before that, the last chunk is copied instead.
    if end + BLOCK_BYTES - 1 <= len(out):
        cipher.update_into(source, out[at : end + BLOCK_BYTES - 1])
    else:
        out[at:end] = cipher.update(source)


def words_in_place(words: NDArray[np.uint32]) -> None:
    """Keystream memory to the values it stands for: little-endian words."""
    if sys.byteorder != "little":
        words.byteswap(inplace=True)


def counter_blocks(tags: Blocks, first_block: NDArray[np.uint64], out: Blocks) -> None:
    """out[i, j] = tags[i] + first_block[i] + j mod 2^128, tags read as big-endian numbers; shapes (m, 2), (m,), (m, blocks, 2).

    Given that first_block[i] + blocks <= 2^64.
    """
    low = _big_endian(tags[:, 1])
    steps: NDArray[np.uint64] = np.arange(out.shape[1], dtype=np.uint64)
    offsets = first_block[:, None] + steps
    sums: NDArray[np.uint64] = low[:, None] + offsets
    carries = sums < offsets
    out[:, :, 0] = tags[:, :1]
    out[:, :, 1] = _big_endian(sums)
    if carries.any():  # about one row in 2^32
        rows = np.flatnonzero(carries.any(axis=1))
        high: NDArray[np.uint64] = np.add(_big_endian(tags[rows, :1]), carries[rows], dtype=np.uint64)
        out[rows, :, 0] = _big_endian(high)


def _big_endian(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """From memory read as native numbers to the big-endian numbers it holds, or back."""
    return values.byteswap() if sys.byteorder == "little" else values


def cmac_subkeys(cipher: CipherContext) -> tuple[bytes, bytes]:
    """K1 (last block whole) and K2 (last block padded) of SP 800-38B, section 6.1, for AES-ECB under the MAC key."""
    first = _doubled(cipher.update(bytes(BLOCK_BYTES)))
    return first, _doubled(first)


def _doubled(block: bytes) -> bytes:
    shifted = int.from_bytes(block, "big") << 1
    reduced = (shifted ^ _DOUBLING_CONSTANT if shifted >> 128 else shifted) % 2**128
    return reduced.to_bytes(BLOCK_BYTES, "big")


def _pair(block: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(block, dtype=np.uint64)


class SharedCmac:
    """AES-CMAC of header + item for many items: the header, a multiple of 16 bytes, is processed once.

    Equal to CMAC of the concatenation for every item, the empty one too: there the header's last block (or, without a header, the padding)
    is the message's last block, so that tag is a single value computed apart.
    """

    def __init__(self, cipher: CipherContext, cmac: CMAC, header: bytes) -> None:
        assert len(header) % BLOCK_BYTES == 0
        self._cipher = cipher
        self._whole_key, self._padded_key = (_pair(key) for key in cmac_subkeys(cipher))
        state = bytes(BLOCK_BYTES)
        for start in range(0, len(header), BLOCK_BYTES):
            state = cipher.update((_pair(state) ^ _pair(header[start : start + BLOCK_BYTES])).tobytes())
        self._header_state = _pair(state)
        whole = cmac.copy()
        whole.update(header)
        self._empty_item_tag = _pair(whole.finalize())

    def tag_integers(self, values: NDArray[np.int64], out: Blocks) -> None:
        """out[i] = tag of the item that is values[i] as 8 bytes big-endian."""
        constant = self._header_state ^ self._padded_key ^ _pair(bytes(8) + b"\x80" + bytes(7))
        rows = CHUNK_BYTES // (4 * BLOCK_BYTES)
        states = np.empty((min(rows, len(values)), 2), dtype=np.uint64)
        states[:, 1] = constant[1]
        target = as_bytes(out)
        for low in range(0, len(values), rows):
            chunk = values[low : low + rows]
            np.bitwise_xor(chunk.astype(">i8").view(np.uint64), constant[0], out=states[: len(chunk), 0])
            encrypt_blocks(self._cipher, as_bytes(states[: len(chunk)]), target, low * BLOCK_BYTES)

    def tag_messages(self, messages: Blocks, lengths: NDArray[np.int64], out: Blocks) -> None:
        """out[i] = tag of message i, its first lengths[i] bytes; messages (m, blocks, 2) are zero after that, and are overwritten."""
        blocks = -(-lengths // BLOCK_BYTES)
        whole = lengths % BLOCK_BYTES == 0
        padded = np.flatnonzero(~whole)
        messages.view(np.uint8).reshape(len(messages), -1)[padded, lengths[padded]] = 0x80
        filled = np.flatnonzero(lengths)
        for half in (0, 1):
            keys = np.where(whole, self._whole_key[half], self._padded_key[half])
            messages[filled, blocks[filled] - 1, half] ^= keys[filled]
            messages[:, 0, half] ^= self._header_state[half]
        encrypt_blocks(self._cipher, as_bytes(np.ascontiguousarray(messages[:, 0])), as_bytes(out), 0)
        for number in range(1, messages.shape[1]):
            active = np.flatnonzero(blocks > number)
            states = out[active] ^ messages[active, number]
            chained = np.empty_like(states)
            encrypt_blocks(self._cipher, as_bytes(states), as_bytes(chained), 0)
            out[active] = chained
        out[lengths == 0] = self._empty_item_tag

    def tag_rows(self, messages: Blocks, out: Blocks, kernels: ModuleType) -> None:
        """The same, compiled, for messages that end where their trailing NUL bytes begin."""
        blocks = np.empty(len(messages), dtype=np.int64)
        words = messages.reshape(len(messages), -1)
        kernels.finish_rows(words, self._header_state, self._whole_key, self._padded_key, blocks)
        first = words if words.shape[1] == 2 else np.ascontiguousarray(messages[:, 0])
        encrypt_blocks(self._cipher, as_bytes(first), as_bytes(out), 0)
        states, chained = np.empty_like(out), np.empty_like(out)
        for number in range(1, messages.shape[1]):
            count = kernels.gather_round(words, number, blocks, out, states)
            encrypt_blocks(self._cipher, as_bytes(states[:count]), as_bytes(chained), 0)
            kernels.scatter_round(chained, number, blocks, out)
        if not blocks.all():
            out[blocks == 0] = self._empty_item_tag
