"""Many labelled streams at once: the words of `NoiseKey.stream`, byte for byte, at about the cost of one long stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, KeyClosed, KeyMisuse, StreamReused
from holdfast.randomness.arguments import check_count, check_depth, check_indices, check_out
from holdfast.randomness.blocks import CHUNK_BYTES, Blocks, SharedCmac, as_bytes, compiled, counter_blocks, encrypt_blocks, words_in_place
from holdfast.randomness.items import Items, read_items
from holdfast.randomness.labels import BLOCK_BYTES, Label, LabelPart, encode_header, show_label
from holdfast.randomness.vault import NotCopied, Vault
from holdfast.randomness.words import EXTRA_WORDS

_BLOCK_WORDS = 4
_WORD_BYTES = 4
_PIECE_WORDS = 1 << 16
"""Longer rows are made in pieces of this many words, so that scratch memory stays small."""


class BulkStreams(NotCopied):
    """The streams of the labels (*prefix, items[i]), i = 0 ... n - 1. Opened by NoiseKey.streams.

    Guarantees: row i of what `take`, `take_more` and `extra` return is what the single stream of label i would give at the same position;
    each word of each stream is handed out once. Closed with its key. Not for use from several threads at once.
    """

    __slots__ = ("__weakref__", "_cipher", "_items", "_positions", "_prefix", "_tags", "_vault")

    def __init__(self, vault: Vault, prefix: Label, items: Any, text: bool) -> None:
        vault.check()
        self._vault = vault
        self._prefix = prefix
        self._items: Items = read_items(items, text)
        self._cipher: CipherContext | None = vault.keystream_blocks()
        self._positions: int | NDArray[np.uint64] = 0  # one number while all streams stand at the same word
        self._tags, distinct = self._make_tags(self._items, 0)
        if not distinct:
            self._check_distinct()
        vault.claims.claim_bulk(self._tags, self._show)
        vault.close_with(self)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def positions(self) -> NDArray[np.uint64]:
        """For each stream the index of the next word it will give; read-only."""
        positions = self._positions
        array = np.full(len(self), positions, dtype=np.uint64) if isinstance(positions, int) else positions.copy()
        array.flags.writeable = False
        return array

    def take(self, words_per_stream: int) -> NDArray[np.uint32]:
        """The next words of every stream, shape (n, words_per_stream)."""
        out = np.empty((len(self), check_count(words_per_stream)), dtype=np.uint32)
        self.take_into(out)
        return out

    def take_into(self, out: NDArray[np.uint32]) -> None:
        """The next out.shape[1] words of every stream, written into a contiguous array of shape (n, words)."""
        self._check()
        if len(check_out(out, 2)) != len(self):
            raise InvalidParameter(f"These are {len(self)} streams and the array has {len(out)} rows. Give it one row for each stream.")
        words = out.shape[1]
        start = self._positions
        self._charge(np.asarray(start, dtype=np.uint64), words, len(self))
        self._positions = start + words if isinstance(start, int) else start + np.uint64(words)
        self._fill(self._tags, start, out)

    def take_more(self, which: NDArray[np.integer[Any]], words: int) -> NDArray[np.uint32]:
        """The next `words` words of the streams `which` (indices, each at most once), shape (len(which), words)."""
        self._check()
        rows = self._rows(which)
        words = check_count(words)
        if len(np.unique(rows)) != len(rows):
            raise InvalidParameter(
                f"take_more reads each stream once; found {len(rows) - len(np.unique(rows))} repeated indices. Ask for more words instead."
            )
        if isinstance(self._positions, int):
            self._positions = np.full(len(self), self._positions, dtype=np.uint64)
        start = self._positions[rows]
        self._charge(start, words, len(rows))
        self._positions[rows] = start + np.uint64(words)
        out = np.empty((len(rows), words), dtype=np.uint32)
        self._fill(self._tags[rows], start, out)
        return out

    def extra(self, which: NDArray[np.integer[Any]], indices: NDArray[np.uint64], depth: int) -> NDArray[np.uint32]:
        """For each pair (stream which[k], word indices[k] already taken from it) 128 further bits, shape (len, 4); see Words.extra."""
        self._check()
        rows, wanted, depth = self._rows(which), check_indices(indices), check_depth(depth)
        if len(rows) != len(wanted):
            raise InvalidParameter(
                f"extra pairs streams with word indices; found {len(rows)} streams and {len(wanted)} indices. Give as many of each."
            )
        positions = self._positions if isinstance(self._positions, int) else self._positions[rows]
        if np.any(wanted >= np.asarray(positions, dtype=np.uint64)):
            raise InvalidParameter(
                "Extra bits belong to words already taken, and an index is at or beyond its stream's position. Take the word first."
            )
        items = self._items.select(rows)
        if not np.array_equal(self._make_tags(items, 0)[0], self._tags[rows]):
            raise KeyMisuse(
                "The items array was changed after its streams were opened, so their names are lost. Keep it unchanged, or pass a copy."
            )
        self._vault.claims.charge_streams(len(rows))
        self._vault.claims.charge_blocks(len(rows))
        tags, _ = self._make_tags(items, depth + 1)
        out = np.empty((len(rows), EXTRA_WORDS), dtype=np.uint32)
        self._fill_blocks(tags, wanted, out)
        return out

    def close(self) -> None:
        """Drop the cipher. Reading again raises KeyClosed."""
        self._cipher = None

    def __repr__(self) -> str:
        return f"BulkStreams({len(self)} labels {show_label((*self._prefix, '...'))}{', closed' if self._cipher is None else ''})"

    def _check(self) -> None:
        self._vault.check()
        if self._cipher is None:
            raise KeyClosed(
                f"The streams {show_label((*self._prefix, '...'))} were closed. Open them from a key that stays open while they are read."
            )

    def _show(self, row: int) -> str:
        part: LabelPart = self._items.part(row)
        return show_label((*self._prefix, part))

    def _make_tags(self, items: Items, lane: int) -> tuple[Blocks, bool]:
        mac = SharedCmac(self._vault.mac_blocks(), self._vault.cmac(), encode_header(self._prefix, items.kind, lane))
        tags = np.empty((len(items), 2), dtype=np.uint64)
        return tags, items.tag(mac, tags)

    def _check_distinct(self) -> None:
        """StreamReused if two tags are equal. Equal first halves are about never chance, so whole tags are sorted only then."""
        halves = np.sort(self._tags[:, 0])
        if not np.any(halves[1:] == halves[:-1]):
            return
        order = np.lexsort((self._tags[:, 1], self._tags[:, 0]))
        ordered = self._tags[order]
        equal = np.flatnonzero(np.all(ordered[1:] == ordered[:-1], axis=1))
        if len(equal):
            raise StreamReused(
                f"The items of a bulk call must differ, each names one stream; found {len(equal)} repeated, "
                f"for example {self._show(int(order[equal[0]]))}. "
                "Number the repetitions, or pass each item once."
            )

    def _rows(self, which: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        rows = check_indices(which)
        if len(rows) and int(rows.max()) >= len(self):
            raise InvalidParameter(f"There are streams 0 ... {len(self) - 1}; found index {int(rows.max())}. Pass positions in items.")
        return rows.astype(np.intp)

    def _charge(self, start: NDArray[np.uint64], words: int, streams: int) -> None:
        """Count the blocks that hold words start ... start + words - 1 of each stream, a block already begun not again."""
        end = start + np.uint64(words)
        blocks = (end + np.uint64(3)) // np.uint64(_BLOCK_WORDS) - (start + np.uint64(3)) // np.uint64(_BLOCK_WORDS)
        self._vault.claims.charge_blocks(int(blocks.sum()) if blocks.ndim else int(blocks) * streams)

    def _fill(self, tags: Blocks, start: int | NDArray[np.uint64], out: NDArray[np.uint32]) -> None:
        """out[i] = words start[i], start[i] + 1, ... of the stream of tags[i]; one `start` may serve all (and then costs no array)."""
        words = out.shape[1]
        if not out.size:
            return
        if isinstance(start, int) and start % _BLOCK_WORDS == 0 and words % _BLOCK_WORDS == 0:
            self._fill_blocks(tags, start // _BLOCK_WORDS, out)
            return
        piece_words = min(words, _PIECE_WORDS)
        rows = max(1, CHUNK_BYTES // (_WORD_BYTES * piece_words))
        for low in range(0, len(out), rows):
            chunk = tags[low : low + rows]
            starts = np.full(len(chunk), start, dtype=np.uint64) if isinstance(start, int) else start[low : low + rows]
            for left in range(0, words, piece_words):
                self._fill_unaligned(chunk, starts + np.uint64(left), out[low : low + rows, left : left + piece_words])

    def _fill_unaligned(self, tags: Blocks, starts: NDArray[np.uint64], out: NDArray[np.uint32]) -> None:
        """The same for few rows of few words that begin or end inside blocks: make whole blocks aside and copy the words wanted."""
        words = out.shape[1]
        skips = (starts % np.uint64(_BLOCK_WORDS)).astype(np.intp)
        blocks = -(-(int(skips.max()) + words) // _BLOCK_WORDS)
        whole = np.empty((len(out), blocks * _BLOCK_WORDS), dtype=np.uint32)
        self._fill_blocks(tags, starts // np.uint64(_BLOCK_WORDS), whole)
        out[:] = np.take_along_axis(whole, skips[:, None] + np.arange(words), axis=1)

    def _fill_blocks(self, tags: Blocks, first_block: int | NDArray[np.uint64], out: NDArray[np.uint32]) -> None:
        """out[i] = whole blocks first_block[i], first_block[i] + 1, ... of the stream of tags[i]."""
        assert self._cipher is not None
        if not out.size:
            return
        blocks = out.shape[1] // _BLOCK_WORDS
        row_bytes = blocks * BLOCK_BYTES
        rows = min(len(out), max(1, CHUNK_BYTES // row_bytes))
        kernels = compiled(len(self))
        fill_counters = counter_blocks if kernels is None else kernels.counter_blocks
        counters = np.empty((rows, blocks, 2), dtype=np.uint64)
        firsts = np.full(rows, first_block, dtype=np.uint64) if isinstance(first_block, int) else first_block
        source, target = as_bytes(counters), as_bytes(out)
        for low in range(0, len(out), rows):
            count = min(rows, len(out) - low)
            first = firsts[:count] if isinstance(first_block, int) else firsts[low : low + count]
            fill_counters(tags[low : low + count], first, counters[:count])
            encrypt_blocks(self._cipher, source[: count * row_bytes], target, low * row_bytes)
        words_in_place(out)
