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
from typing import TYPE_CHECKING

from holdfast.errors import KeyExhausted, StreamReused
from holdfast.randomness.labels import Label, show_label

if TYPE_CHECKING:
    from holdfast.randomness.streams import Stream

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
