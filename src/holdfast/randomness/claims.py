"""What one key has handed out: which labels, up to which word, and how much in all. It is what makes "each word once" true.

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

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import KeyExhausted, StreamReused
from holdfast.randomness.labels import Label, show_label

if TYPE_CHECKING:
    from holdfast.randomness.streams import Stream

MAX_STREAMS = 2**30
MAX_BLOCKS = 2**34
"""256 GiB of keystream."""

_WHAT_TO_DO = 'Open a subkey with key.derive("part 2") and go on with it, or use a new key.'


class Claim:
    """One label opened by itself: the next word it will hand out, and the object that hands it out, if that is still alive."""

    __slots__ = ("position", "stream")

    def __init__(self, position: int) -> None:
        self.position = position
        self.stream: weakref.ref[Stream] | None = None


class Claims:
    """The labels opened from one key, and the totals n and N of the module docstring.

    Guarantees: a tag is claimed at most once, in any mix of single and bulk claims, except that `reclaim` passes a single claim on at
    exactly the position it has reached. Safe to call from several threads.

    Bulk tags are kept unsorted as given. Their first halves are sorted only when a later claim has to be checked against them, into runs
    whose lengths at least double from one to the next, so that many bulk calls cost O(n log n) in all.
    """

    __slots__ = ("_bulk", "_lock", "_runs", "_single", "_unsorted", "_unsorted_single", "blocks", "children", "streams")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._single: dict[bytes, Claim] = {}
        self._bulk: list[NDArray[np.uint64]] = []
        self._unsorted: list[NDArray[np.uint64]] = []
        self._unsorted_single: list[bytes] = []
        self._runs: list[NDArray[np.uint64]] = []
        self.streams = 0
        self.blocks = 0
        self.children: dict[bytes, Claims] = {}

    def claim(self, tag: bytes, position: int, label: Label) -> Claim:
        """Record that the label of `tag` is open from `position`; StreamReused if it ever was."""
        with self._lock:
            if tag in self._single or self._in_bulk(tag):
                raise StreamReused(
                    f"The stream {show_label(label)} was opened before from this key; a second copy would repeat its words. "
                    "Use the first one, go on with key.resume(..., position=its position), or choose another label."
                )
            return self._record(tag, position)

    def reclaim(self, tag: bytes, position: int, label: Label) -> Claim:
        """Like `claim`, but an earlier single claim is taken over if it stands at exactly `position`; its stream is closed."""
        with self._lock:
            old = self._single.get(tag)
            if old is None and self._in_bulk(tag):
                raise StreamReused(
                    f"The stream {show_label(label)} was opened before in a bulk call; going on by itself could repeat its words. "
                    "Take more from that call's BulkStreams with take_more."
                )
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

    def claim_bulk(self, tags: NDArray[np.uint64], show: Callable[[int], str]) -> None:
        """Record all of `tags` (n, 2), known to differ from each other; StreamReused, and nothing recorded, if one is taken."""
        with self._lock:
            taken = self._first_taken(tags)
            if taken is not None:
                raise StreamReused(
                    f"The stream {show(taken)} was opened before from this key; a second copy would repeat its words. "
                    "Leave it out of this bulk call, or choose another prefix for it."
                )
            self._count_streams(len(tags))
            self._bulk.append(tags)
            self._unsorted.append(tags)

    def charge_streams(self, count: int) -> None:
        """Count `count` further tags (lanes of extra bits); KeyExhausted beyond MAX_STREAMS."""
        with self._lock:
            self._count_streams(count)

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

    def _count_streams(self, count: int) -> None:
        if self.streams + count > MAX_STREAMS:
            raise KeyExhausted(
                f"One key opens at most {MAX_STREAMS} streams (lanes of extra bits included), so that two overlap with probability "
                f"below 2^-60; {self.streams} are open and {count} more were asked for. {_WHAT_TO_DO}"
            )
        self.streams += count

    def _record(self, tag: bytes, position: int) -> Claim:
        self._count_streams(1)
        if tag not in self._single:
            self._unsorted_single.append(tag)
        claim = self._single[tag] = Claim(position)
        return claim

    def _in_bulk(self, tag: bytes) -> bool:
        if not self._bulk:
            return False
        self._sort_bulk()
        return self._is_taken(tag, np.frombuffer(tag, dtype=np.uint64))

    def _is_taken(self, tag: bytes, halves: NDArray[np.uint64]) -> bool:
        """Look in the runs for the first half; only when it is there (by chance about never) compare whole tags, one by one."""
        first, second = halves
        places = (int(np.searchsorted(run, first)) for run in self._runs)
        if not any(place < len(run) and run[place] == first for place, run in zip(places, self._runs, strict=True)):
            return False
        return tag in self._single or any(bool(np.any((tags[:, 0] == first) & (tags[:, 1] == second))) for tags in self._bulk)

    def _first_taken(self, tags: NDArray[np.uint64]) -> int | None:
        """Row of some tag claimed before, or None. Costs nothing when nothing was claimed before."""
        if not self._single and not self._bulk:
            return None
        self._sort_bulk()
        if self._unsorted_single:
            self._add_run(np.frombuffer(b"".join(self._unsorted_single), dtype=np.uint64)[::2])
            self._unsorted_single.clear()
        wanted = np.sort(tags[:, 0])  # in order, so that the searches below walk through memory instead of jumping
        for run in self._runs:
            places = np.searchsorted(run, wanted)
            places[places == len(run)] = 0
            for half in wanted[run[places] == wanted]:
                for row in np.flatnonzero(tags[:, 0] == half):
                    if self._is_taken(tags[row].tobytes(), tags[row]):
                        return int(row)
        return None

    def _sort_bulk(self) -> None:
        for tags in self._unsorted:
            if len(tags):
                self._add_run(tags[:, 0])
        self._unsorted.clear()

    def _add_run(self, halves: NDArray[np.uint64]) -> None:
        run = np.sort(halves)
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.sort(np.concatenate((self._runs.pop(), run)))
        self._runs.append(run)
