"""The one place where confidential counts meet noise: draw and add, block by block, then check every kept total.

One stream serves one noise vector of one release of one data set. The subkey binds the identifier of the release, the law with its exact
parameters, universe and kept statements, and a keyed digest of all counts: the same key with other data, or another law, gives independent
noise, never the same noise twice. Counts are digested task by task, so that an engine that holds only some blocks can do its part.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ContradictingTotals, InvariantBroken, RequestTooLarge, StreamReused
from holdfast.exact.compiled import expecting
from holdfast.laws.law import LatticeLaw, Task
from holdfast.publication.definitions import definition
from holdfast.publication.frame import PublicFrame
from holdfast.randomness import NoiseKey

Ints = NDArray[np.int64]
Progress = Callable[[int, int], None]

LARGEST = 1 << 62


@dataclass(frozen=True, eq=False)
class Bound:
    """A key bound to one release of one data set, before a word of noise is drawn. CONFIDENTIAL: it holds the counts and the subkey."""

    frame: PublicFrame
    counts: Ints = field(repr=False)
    tasks: list[Task] = field(repr=False)
    subkey: NoiseKey
    input_digest: str = field(repr=False)
    """Keyed digest of all counts: kept only where an interrupted release is to be resumed, and only until it is done."""

    def draw(self, progress: Progress | None = None) -> Ints:
        """y = x + z with every kept total of x, or an error and nothing; the subkey is closed.

        Guarantees:  z follows the law exactly over the key's words and is forgotten; integers throughout; no word is used twice.
        """
        released = self.counts.copy()
        done = 0
        with self.subkey, expecting(sum(len(task.cells) for task in self.tasks)):
            for task in self.tasks:
                with self.subkey.stream(*task.label) as words:
                    released[task.cells] += task.sampler.draw(1, words)[0]
                done += len(task.cells)
                if progress is not None:
                    progress(done, len(released))
        _check(self.frame, self.counts, released)
        return released


def bind(frame: PublicFrame, law: LatticeLaw, counts: Ints, key: NoiseKey, release_id: str) -> Bound:
    """Bind a key to this release: identifier, law, universe, kept statements and counts all enter the subkey. Nothing is drawn yet."""
    _check_declared(frame, counts)
    names = [release_id, law.formula, repr(law), frame.universe.digest(), _statements_digest(frame)]
    tasks = list(law.tasks())
    digest = _input_digest(counts, tasks, key, names)
    return Bound(frame, counts, tasks, key.derive("release", *names, digest), digest)


def _check_declared(frame: PublicFrame, counts: Ints) -> None:
    """Values that statements declare are those of the table; the message names the row, not what was found."""
    for rows in frame.kept.linear:
        if rows.values is None:
            continue
        wrong = np.flatnonzero(rows.totals(counts) != np.array(rows.values, dtype=np.int64))
        if len(wrong):
            raise ContradictingTotals(
                f"linear(): the table does not have the value declared for {rows.name(int(wrong[0]))!r} ({len(wrong)} such rows). "
                "Correct the values or the table. Nothing was drawn."
            )


def _statements_digest(frame: PublicFrame) -> str:
    said = [definition(statement, frame.universe) for statement in frame.statements]
    return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _input_digest(counts: Ints, tasks: list[Task], key: NoiseKey, names: list[str]) -> str:
    """HMAC of all counts under a key of this release: per task over its label and counts, combined in the order of the labels, with the
    fixed cells last.
    """
    try:
        with key.stream("input digest", *names) as words:
            secret = words.take(8).tobytes()
    except StreamReused:
        raise StreamReused(
            f"This key has already drawn the release {names[0]!r} with this law and these kept totals. A second draw would publish a "
            "second noisy copy. Use a new key and a new release identifier."
        ) from None
    parts = []
    drawn = np.zeros(len(counts), dtype=np.bool_)
    for task in tasks:
        label = json.dumps(task.label, ensure_ascii=False).encode()
        parts.append((label, hmac.digest(secret, label + b"\0" + counts[task.cells].astype("<i8").tobytes(), "sha256")))
        drawn[task.cells] = True
    parts.sort()
    whole = hmac.new(secret, b"whole", "sha256")
    for _, digest in parts:
        whole.update(digest)
    whole.update(counts[~drawn].astype("<i8").tobytes())
    return whole.hexdigest()


def _check(frame: PublicFrame, counts: Ints, released: Ints) -> None:
    """Every kept total and identity, as integers. The noise of a lattice law keeps them; this is where a fault of ours would show."""
    if released.max(initial=0) >= LARGEST or released.min(initial=0) <= -LARGEST:
        raise RequestTooLarge("A released count would leave 2^62. Use less noise (a larger budget).")
    for rows in frame.kept.rows:
        if not np.array_equal(rows.totals(released), rows.totals(counts)):
            raise InvariantBroken(f"{rows.statement} did not come out exactly. Nothing was written. Please report this.")
