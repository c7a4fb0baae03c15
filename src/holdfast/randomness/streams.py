"""One labelled stream, read word by word or by the megabyte; what callers pass is checked first."""

from __future__ import annotations

import sys
import weakref
from types import TracebackType
from typing import Any, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, KeyClosed
from holdfast.randomness.labels import MAX_LANE, Claim, Label, show_label
from holdfast.randomness.vault import NotCopied, Vault, counter_bytes
from holdfast.randomness.words import EXTRA_WORDS

PIECE_BYTES = 1 << 16
"""Keystream is made in pieces of this size: large enough to hide the cost of a call, small enough that the zeros stay in cache."""

_ZEROS = memoryview(bytes(PIECE_BYTES))
_WORD_BYTES = 4
_BLOCK_WORDS = 4


def check_count(count: int) -> int:
    """A number of words: an int >= 0."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
        raise InvalidParameter(f"A number of words is an int of at least 0; found {count!r}. Pass how many 32-bit words are wanted.")
    return int(count)


def check_depth(depth: int) -> int:
    """A depth of extra bits: an int from 0 to 2^32 - 2."""
    if not isinstance(depth, (int, np.integer)) or isinstance(depth, bool) or not 0 <= depth < MAX_LANE:
        raise InvalidParameter(f"A depth is an int from 0 to 2^32 - 2; found {depth!r}. Ask for depth 0 first, then 1, 2, ...")
    return int(depth)


def check_indices(indices: NDArray[Any]) -> NDArray[np.uint64]:
    """Integers >= 0 on one axis, as uint64. An empty list is allowed whatever its type."""
    array = np.asarray(indices)
    if array.ndim != 1 or (array.dtype.kind not in "ui" and array.size):
        raise InvalidParameter(
            f"Indices are integers on one axis; found {describe(array)}. Pass for example np.array([0, 5], dtype=np.uint64)."
        )
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        raise InvalidParameter(f"Indices count from 0; found {int(array.min())}. Pass the index of a word already taken.")
    return np.ascontiguousarray(array, dtype=np.uint64)


def check_out(out: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A writable contiguous uint32 array on one axis."""
    is_array = isinstance(out, np.ndarray) and out.dtype == np.uint32 and out.ndim == 1
    if not is_array or not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidParameter(
            f"Words are written into a writable contiguous uint32 array with 1 axis; found {describe(out)}. Make one with np.empty."
        )
    return out


def describe(value: object) -> str:
    """Type, shape and layout of a value, never its content."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    notes = ("" if value.flags.c_contiguous else ", not contiguous") + ("" if value.flags.writeable else ", read-only")
    return f"an array of {value.dtype} with shape {value.shape}{notes}"


def counter_blocks(tag: int, numbers: NDArray[np.uint64]) -> NDArray[Any]:
    """The counter blocks tag + number mod 2^128, two big-endian halves for each number."""
    high, low = divmod(tag, 2**64)
    halves = np.empty((len(numbers), 2), dtype=">u8")
    sums = numbers + np.uint64(low)
    halves[:, 1] = sums
    halves[:, 0] = np.where(sums < numbers, np.uint64((high + 1) % 2**64), np.uint64(high))
    return halves


class Stream(NotCopied):
    """The words of one label, in order, each once (implements `words.Words`). Opened by NoiseKey.stream and NoiseKey.resume.

    Not for use from several threads at once. Closed with its key, or by `close`, or when the label is resumed elsewhere; `position` and
    `label` stay readable.
    """

    __slots__ = (
        "__weakref__",
        "_block_cipher",
        "_charged_blocks",
        "_cipher",
        "_cipher_position",
        "_claim",
        "_closed",
        "_extra_blocks",
        "_label",
        "_lanes",
        "_last_take",
        "_tag",
        "_vault",
    )

    def __init__(self, vault: Vault, label: Label, tag: bytes, claim: Claim) -> None:
        self._vault = vault
        self._label = label
        self._tag = int.from_bytes(tag, "big")
        self._claim = claim
        self._closed = False
        self._charged_blocks = claim.position // _BLOCK_WORDS  # blocks before this one are paid for
        self._cipher: CipherContext | None = None
        self._cipher_position = -1  # the word at which the cipher stands; -1 for nowhere
        self._block_cipher: CipherContext | None = None
        self._lanes: dict[int, int] = {}
        self._last_take = 0
        self._extra_blocks = 0
        claim.stream = weakref.ref(self)
        vault.close_with(self)

    @property
    def label(self) -> Label:
        """The public name of this stream."""
        return self._label

    @property
    def position(self) -> int:
        """Index of the next word that `take` will return."""
        return self._claim.position

    @property
    def bytes_read(self) -> int:
        """Keystream used: 4 bytes for each word before `position` and 16 for each index given to `extra`."""
        return _WORD_BYTES * self.position + 16 * self._extra_blocks

    def take(self, count: int) -> NDArray[np.uint32]:
        """The next `count` words."""
        out = np.empty(check_count(count), dtype=np.uint32)
        self._fill(out)
        return out

    def take_into(self, out: NDArray[np.uint32]) -> None:
        """The next `len(out)` words, written into a contiguous array."""
        self._fill(check_out(out))

    def give_back(self, count: int) -> None:
        """Return the last `count` words unread: they will be handed out again. Never more than the last `take` returned."""
        self._check()
        if check_count(count) > self._last_take:
            raise InvalidParameter(
                f"At most the {self._last_take} words left of the last take can be given back; found {count}. Give back before taking more."
            )
        self._claim.position -= count
        self._last_take -= count

    def extra(self, indices: NDArray[np.uint64], depth: int) -> NDArray[np.uint32]:
        """For each word index (already taken) 128 further bits, shape (len(indices), 4); depth 0, 1, 2, ... gives new bits each.

        A function of (label, index, depth) only: asking again gives the same bits.
        """
        self._check()
        wanted, depth = check_indices(indices), check_depth(depth)
        if len(wanted) and int(wanted.max()) >= self.position:
            raise InvalidParameter(
                f"Extra bits belong to words already taken, before {self.position}; found index {int(wanted.max())}. Take the word first."
            )
        self._vault.claims.charge_blocks(len(wanted))
        if self._block_cipher is None:
            self._block_cipher = self._vault.keystream_blocks()
        keystream = self._block_cipher.update(counter_blocks(self._lane_tag(depth), wanted).tobytes())
        self._extra_blocks += len(wanted)
        return np.frombuffer(keystream, dtype="<u4").astype(np.uint32).reshape(-1, EXTRA_WORDS)

    def close(self) -> None:
        """Drop the cipher. Reading again raises KeyClosed; `position` and `label` remain."""
        self._closed = True
        self._cipher = self._block_cipher = None
        self._lanes.clear()
        self._tag = 0

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Stream({show_label(self._label)}, position={self.position}{', closed' if self._closed else ''})"

    def _check(self) -> None:
        self._vault.check()
        if self._closed:
            raise KeyClosed(
                f"The stream {show_label(self._label)} was closed at word {self.position}. "
                f"Go on with key.resume(..., position={self.position})."
            )

    def _fill(self, out: NDArray[np.uint32]) -> None:
        """Write the next len(out) words.

        The position moves before the words are made: if something interrupts, they count as handed out and the cipher is set anew next
        time.
        """
        self._check()
        start, end = self.position, self.position + len(out)
        self._charge_until(-(-end // _BLOCK_WORDS))
        cipher = self._cipher_at(start)
        self._cipher_position = -1
        self._claim.position = end
        self._last_take = len(out)
        if len(out):
            target = out.data.cast("B")
            for low in range(0, len(target), PIECE_BYTES):
                piece = target[low : low + PIECE_BYTES]
                cipher.update_into(_ZEROS[: len(piece)], piece)
            if sys.byteorder != "little":
                out.byteswap(inplace=True)
        self._cipher_position = end

    def _charge_until(self, block: int) -> None:
        if block > self._charged_blocks:
            self._vault.claims.charge_blocks(block - self._charged_blocks)
            self._charged_blocks = block

    def _cipher_at(self, position: int) -> CipherContext:
        """The CTR cipher, standing at word `position`."""
        if self._cipher is not None and self._cipher_position == position:
            return self._cipher
        block, skip = divmod(position, _BLOCK_WORDS)
        if self._cipher is None:
            self._cipher = self._vault.keystream(self._tag, block)
        else:
            self._cipher.reset_nonce(counter_bytes(self._tag, block))
        if skip:
            self._cipher.update(_ZEROS[: skip * _WORD_BYTES])
        return self._cipher

    def _lane_tag(self, depth: int) -> int:
        if depth not in self._lanes:
            self._vault.claims.charge_lane()
            self._lanes[depth] = int.from_bytes(self._vault.tag(self._label, depth + 1), "big")
        return self._lanes[depth]
