"""The one place where a whole table of confidential counts meets noise: run every task in memory, then check every kept total.

One stream serves one noise vector of one release of one data set. The subkey binds the identifier of the release, the channel's identity
(target, universe, kept constraints) and a keyed digest of all input: the same key with other data, or another channel, gives independent
noise, never the same noise twice. Input is digested task by task, so that an engine that holds only some blocks can do its part.

`run_task`, and the checks of a whole table before the first task and after the last, are what every engine does alike.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Thread

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Channel, Drawing, Facts, Task
from holdfast.display import step
from holdfast.errors import ContradictingTotals, InvalidParameter, InvariantBroken, OutsideBounds, RequestTooLarge, StreamReused
from holdfast.exact.compiled import expecting
from holdfast.invariants.rows import broken_constraints
from holdfast.laws import Reads
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.protocol import InputSampler
from holdfast.tables import Table
from holdfast.tables.columns import COUNT_LIMIT, CellKeySums
from holdfast.tables.machine import processors

logger = logging.getLogger(__name__)
"""It tells that a draw begins, and nothing of how it goes: times, tries and words are confidential."""

Ints = NDArray[np.int64]

THREADED_CELLS = 1 << 20
"""Cells from which all processors draw."""


def run_task(drawing: Drawing, task: Task, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
    """Return what is published of a task's blocks, one a row. CONFIDENTIAL input."""
    sampler = drawing.choice(task.shape).sampler
    if isinstance(sampler, InputSampler):
        return sampler.publish(counts, cell_keys, words)
    return counts + sampler.draw(len(task.cells), words)


def check_input(channel: Channel, counts: Ints, cell_keys: CellKeySums | None = None) -> None:
    """Raise if the law is not made for the true table. The message holds no value; the refusal reveals that the table is outside."""
    if channel.layout is not None and not channel.layout.holds(counts):
        raise OutsideBounds(
            "The table does not lie within the bounds of this mechanism. Correct the table, or give wider bounds: the message does not "
            "say where, because that would tell counts. Nothing was drawn, and nothing was charged."
        )
    channel.target.check_input(counts, cell_keys)


def check_published(channel: Channel, counts: Ints, published: Ints) -> None:
    """Check what must hold between input and output: every kept total and identity, as integers. A fault of ours would show here."""
    if published.max(initial=0) >= COUNT_LIMIT or published.min(initial=0) <= -COUNT_LIMIT:
        raise RequestTooLarge("A released count would leave 2^62. Use less noise (a larger budget).")
    for rows in channel.facts.kept.rows:
        if not np.array_equal(rows.totals(published), rows.totals(counts)):
            raise InvariantBroken(f"{rows.constraint} did not come out exactly. Nothing was written. Please report this.")
    if channel.layout is not None and not channel.layout.holds(published):
        raise InvariantBroken("A published count left its bounds. Nothing was written. Please report this.")
    if channel.facts.zeros is not None and published[channel.facts.zeros.cells].any():
        raise InvariantBroken("A cell under a kept total of 0 did not come out as 0. Nothing was written. Please report this.")


def run_all(tasks: Iterable[Task], run: Callable[[Task], int], threads: int, tell: Callable[[int], None]) -> None:
    """Run every task, in so many threads, this one among them; `tell` what they have done together. The first failure ends all of them,
    and so does a signal, each thread after the task at hand.
    """
    left, failures, done = iter(tasks), list[BaseException](), [0] * threads

    def work(number: int) -> None:
        for task in left:
            if failures:
                return
            try:
                done[number] += run(task)
            except BaseException as failure:
                failures.append(failure)
            if number == 0:
                tell(sum(done))

    helpers = [Thread(target=copy_context().run, args=(work, number)) for number in range(1, threads)]
    try:
        for helper in helpers:
            helper.start()
        work(0)
        for helper in helpers:
            helper.join()
    except BaseException as failure:  # a signal between two tasks
        failures.append(failure)
        raise
    if failures:
        raise failures[0]


@dataclass(frozen=True, eq=False)
class BoundRelease:
    """A key bound to one release of one data set, before a word of noise is drawn. CONFIDENTIAL: it holds the input and the subkey."""

    drawing: Drawing
    table: Table = field(repr=False)
    tasks: tuple[Task, ...] = field(repr=False)
    subkey: NoiseKey
    input_digest: str = field(repr=False)
    """Keyed digest of the whole input: kept only where an interrupted release is to be resumed, and only until it is done."""

    def draw(self) -> Ints:
        """What is published, with every kept total of the input; or an error and nothing. The subkey is closed.

        Guarantees:  every task's noise follows its law over the key's words and is forgotten; integers throughout; no word is used twice.
        """
        counts = self.table.counts
        keys = self.table.key_sums if self.drawing.channel.needs_cell_keys else None  # a target gets what it declares, and no more
        published = counts.copy()
        logger.debug("Drawing %d cells in %d tasks", len(published), len(self.tasks))
        loops = expecting(sum(task.cells.size for task in self.tasks)) if self.tasks else nullcontext()

        def run(task: Task) -> int:
            given = None if keys is None else keys.of(task.cells)
            with self.subkey.stream(*task.label) as words:
                published[task.cells] = run_task(self.drawing, task, counts[task.cells], given, words)
            return task.cells.size

        reads_nothing = self.drawing.channel.target.reads is Reads.NOTHING  # samplers that read counts may keep what they made of them
        threads = processors() if reads_nothing and len(published) >= THREADED_CELLS else 1
        with self.subkey, loops, step("Drawing", len(published)) as tell:
            run_all(self.tasks, run, threads, lambda done: tell(done, len(published)))
        check_published(self.drawing.channel, counts, published)
        return published


def bind(drawing: Drawing, table: Table, key: NoiseKey, release_id: str) -> BoundRelease:
    """Bind a key to this release: identifier, channel and input all enter the subkey. Nothing is drawn yet."""
    channel = drawing.channel
    facts = channel.facts
    if table.universe is not facts.universe and table.universe != facts.universe:
        raise InvalidParameter("The plan was made for another table: its universe differs. Make a plan for this table.")
    if channel.needs_cell_keys and table.key_sums is None:
        raise InvalidParameter("This mechanism reads cell keys, and the table has none. Name their column: record_key or cell_key.")
    _check_declared(facts, table.counts)
    check_input(channel, table.counts, table.key_sums if channel.needs_cell_keys else None)
    if facts.zeros is not None and table.counts[facts.zeros.cells].any():
        raise InvalidParameter("The plan was made for other totals: it leaves out cells that are not 0 here. Make a plan for this table.")
    tasks = channel.tasks()
    digest = _input_digest(table, tasks, key, (release_id, channel.identity), with_keys=channel.needs_cell_keys)
    return BoundRelease(drawing, table, tasks, key.derive("release", release_id, channel.identity, digest), digest)


def _check_declared(facts: Facts, counts: Ints) -> None:
    """Values that constraints declare, identities among them, are those of the table; the message names the constraint and nothing else."""
    for number, rows in broken_constraints(facts.kept, counts):
        stated = f"identity({rows.constraint})" if rows.kind == "identity" else rows.constraint
        raise ContradictingTotals(
            f"The table does not have the values that {stated} declares (constraint {number} of those kept). Correct the table, or the "
            "constraint. Nothing was drawn, and nothing was charged."
        )


def _input_digest(table: Table, tasks: tuple[Task, ...], key: NoiseKey, names: tuple[str, str], *, with_keys: bool) -> str:
    """HMAC of the whole input under a key of this release: per task over its label and input, combined in the order of the labels, with
    the fixed cells last.
    """
    try:
        with key.stream("input digest", *names) as words:
            secret = words.take(8).tobytes()
    except StreamReused:
        raise StreamReused(
            f"This key has already drawn the release {names[0]!r} with this law and these kept totals. A second draw would publish a "
            "second noisy copy. Use a new key and a new release identifier."
        ) from None
    fixed = np.ones(len(table.counts), dtype=np.bool_)
    parts = []
    for task in tasks:
        label = json.dumps(task.label).encode() + b"\0"  # JSON holds no NUL: the label ends here
        part = hmac.new(secret, label, "sha256")
        for piece in _input_of(table, task.cells, with_keys):
            part.update(piece)
        parts.append((label, part.digest()))
        fixed[task.cells] = False
    whole = hmac.new(secret, b"whole", "sha256")
    for _, digest in sorted(parts):
        whole.update(digest)
    for piece in _input_of(table, np.flatnonzero(fixed), with_keys):
        whole.update(piece)
    return whole.hexdigest()


def _input_of(table: Table, cells: Ints, with_keys: bool) -> Iterator[bytes]:
    """What is digested of a task: its length follows from the task, so that no two inputs share a digest."""
    yield np.ascontiguousarray(table.counts[cells], dtype="<i8").tobytes()
    if with_keys:
        assert table.key_sums is not None
        yield table.key_sums.of(cells).to_bytes()
