"""Numba kernels of the bulk streams. Imported only by blocks.compiled, so that Numba is loaded when it pays and not before.

Each kernel gives the bytes of its NumPy counterpart in blocks.py and items.py (tested). Blocks are little-endian memory here. Every literal
is a uint64: Numba turns uint64 with a signed literal into a float.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

_EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
_EVEN_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_LOW_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_TOP_BITS = np.uint64(0x8080808080808080)
_PADDING = np.uint64(0x80)
_ZERO, _8, _16, _32 = np.uint64(0), np.uint64(8), np.uint64(16), np.uint64(32)


@numba.njit(cache=True, inline="always")
def _swapped(x: np.uint64) -> np.uint64:
    x = ((x & _EVEN_BYTES) << _8) | ((x >> _8) & _EVEN_BYTES)
    x = ((x & _EVEN_PAIRS) << _16) | ((x >> _16) & _EVEN_PAIRS)
    return (x << _32) | (x >> _32)


@numba.njit(cache=True)
def counter_blocks(tags: NDArray[np.uint64], first_block: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """As blocks.counter_blocks."""
    for i in range(tags.shape[0]):
        high_memory = tags[i, 0]
        low = _swapped(tags[i, 1])
        start = low + first_block[i]
        last = start + np.uint64(out.shape[1])
        if start >= low and last >= start:  # no carry inside this row: all but about 2^-32 of them
            for j in range(out.shape[1]):
                out[i, j, 0] = high_memory
                out[i, j, 1] = _swapped(start + np.uint64(j))
        else:
            high = _swapped(high_memory)
            for j in range(out.shape[1]):
                offset = first_block[i] + np.uint64(j)
                total = low + offset
                out[i, j, 0] = _swapped(high + np.uint64(total < offset))
                out[i, j, 1] = _swapped(total)


@numba.njit(cache=True, inline="always")
def _padding_after(x: np.uint64) -> np.uint64:
    """0x80 in the byte after the last one other than NUL, byte 0 being the lowest; 0 if that byte is the eighth. x is not 0.

    Smear every byte downwards, so that exactly the bytes up to the last used one are not NUL; mark them 0x80; the pad is where the marks
    shifted up by one byte differ from the marks.
    """
    x |= x >> _8
    x |= x >> _16
    x |= x >> _32
    marks = (((x & _LOW_SEVEN) + _LOW_SEVEN) | x) & _TOP_BITS
    return ((marks << _8) | _PADDING) ^ marks


@numba.njit(cache=True)
def rows_increase(messages: NDArray[np.uint64]) -> bool:
    """True if messages[0], messages[1], ... (rows, words) strictly increase as strings of bytes."""
    for i in range(1, messages.shape[0]):
        word = 0
        while word < messages.shape[1] and messages[i, word] == messages[i - 1, word]:
            word += 1
        if word == messages.shape[1] or _swapped(messages[i, word]) < _swapped(messages[i - 1, word]):
            return False
    return True


@numba.njit(cache=True)
def finish_rows(
    messages: NDArray[np.uint64],
    header_state: NDArray[np.uint64],
    whole_key: NDArray[np.uint64],
    padded_key: NDArray[np.uint64],
    blocks: NDArray[np.int64],
) -> None:
    """As blocks.SharedCmac.finish_messages on (rows, words), the length of a message being where its trailing NUL bytes begin."""
    for i in range(messages.shape[0]):
        word = messages.shape[1] - 1
        while word >= 0 and messages[i, word] == _ZERO:
            word -= 1
        blocks[i] = (word + 2) // 2
        if word < 0:
            continue
        padding = _padding_after(messages[i, word])
        messages[i, word] |= padding
        even = word - word % 2
        if padding == _ZERO and word % 2 == 1:
            messages[i, even] ^= whole_key[0]
            messages[i, even + 1] ^= whole_key[1]
        else:
            if padding == _ZERO:
                messages[i, even + 1] = _PADDING
            messages[i, even] ^= padded_key[0]
            messages[i, even + 1] ^= padded_key[1]
        messages[i, 0] ^= header_state[0]
        messages[i, 1] ^= header_state[1]


@numba.njit(cache=True)
def gather_round(
    messages: NDArray[np.uint64], number: int, blocks: NDArray[np.int64], tags: NDArray[np.uint64], states: NDArray[np.uint64]
) -> int:
    """Into `states`, one after the other: tags[i] xor block `number` of message i, for the rows with more blocks than that; how many."""
    count = 0
    for i in range(messages.shape[0]):
        if blocks[i] > number:
            states[count, 0] = tags[i, 0] ^ messages[i, 2 * number]
            states[count, 1] = tags[i, 1] ^ messages[i, 2 * number + 1]
            count += 1
    return count


@numba.njit(cache=True)
def scatter_round(states: NDArray[np.uint64], number: int, blocks: NDArray[np.int64], tags: NDArray[np.uint64]) -> None:
    """Undo the order of gather_round: tags[i] = the next row of `states`, for the rows with more blocks than `number`."""
    count = 0
    for i in range(tags.shape[0]):
        if blocks[i] > number:
            tags[i, 0] = states[count, 0]
            tags[i, 1] = states[count, 1]
            count += 1
