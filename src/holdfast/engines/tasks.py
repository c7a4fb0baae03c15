"""One task with its counts, and the checks of a whole table before the first task and after the last: what every engine does alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Channel, Drawing, Task
from holdfast.errors import InvariantBroken, OutsideBounds, RequestTooLarge
from holdfast.randomness import Words
from holdfast.samplers.protocol import InputSampler
from holdfast.tables.columns import COUNT_LIMIT, CellKeySums

Ints = NDArray[np.int64]


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
