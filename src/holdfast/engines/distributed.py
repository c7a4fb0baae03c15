"""Several agents, each with a part of the table, publish together: all kept totals hold exactly, and no agent needs another's numbers.

The agents share the plan, which is public, and one secret key. Noise reads no data, so each of them draws the same noise for every block
that its cells lie in, and adds its own part of it. Nobody sees the whole input: it cannot enter the subkey, as it does where one party
draws (local.py). So the key must be a fresh one for every release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Drawing
from holdfast.engines.local import check_published, run_task
from holdfast.errors import InvalidParameter, RequestTooLarge, StreamReused
from holdfast.laws import Reads
from holdfast.privacy.guarantee import Guarantee
from holdfast.randomness import NoiseKey
from holdfast.tables.columns import COUNT_LIMIT

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AgentPart:
    """What one agent publishes: its cells with noise, and the promise that all parts together make."""

    cells: Ints
    values: Ints
    guarantee: Guarantee = field(repr=False)


def publish_part(
    drawing: Drawing, cells: Sequence[int] | Ints, values: Sequence[int] | Ints, *, key: NoiseKey, release_id: str
) -> AgentPart:
    """One agent's part of a release: its true numbers in, its published numbers out.

    Given:       `drawing`, of a plan that every agent makes alike; `cells`, the agent's cells by their number in the universe, each agent
                 other ones; `values`, one whole number for each, on a grid in steps of it; `key`, the secret that the agents share, made
                 for this release and used for no other.
    Guarantees:  the parts of all agents have every kept total exactly, and the law of the noise is the plan's. Against outsiders the
                 promise is the plan's; against an agent there is none, as `guarantee.key_is_shared` says.
    Reference:   [theory T121]; [GGY22] section 4.
    """
    channel = drawing.channel
    if not isinstance(key, NoiseKey):
        raise InvalidParameter(f"key is the NoiseKey that all agents share, made for this release. Got {type(key).__name__}.", field="key")
    if not channel.facts.measure.on_grid:
        raise InvalidParameter(
            "This plan rounds answers to the grid, which needs all of them at once. Make the plan with on_grid=True, and only where the "
            "numbers of every agent are multiples of the step whatever the data.",
            field="on_grid",
        )
    own, true = _read(cells, values, channel.facts.lattice.cells)
    if channel.target.reads is not Reads.NOTHING or channel.facts.zeros is not None:
        raise InvalidParameter("This noise depends on numbers of other agents: only noise that reads no data can be drawn by each of them.")
    noise = np.zeros(channel.facts.lattice.cells, dtype=np.int64)
    mine = np.zeros(len(noise), dtype=np.bool_)
    mine[own] = True
    try:
        with key.derive("part of a release", release_id, channel.identity) as subkey:
            for task in channel.tasks():
                if not mine[task.cells].any():
                    continue
                with subkey.stream(*task.label) as words:
                    noise[task.cells] = run_task(drawing, task, noise[task.cells], None, words)
    except StreamReused:
        raise StreamReused(
            "This key has drawn noise for these blocks before. Every release takes a fresh key, and an agent gives all its cells at once."
        ) from None
    check_published(channel, np.zeros_like(noise), noise)
    if int(np.abs(noise[own]).max()) + max(map(abs, true)) >= COUNT_LIMIT:
        raise RequestTooLarge("A published number would leave 2^62. Give smaller numbers, or use less noise (a larger budget).")
    return AgentPart(own, np.array(true, dtype=np.int64) + noise[own], replace(drawing.guarantee, key_is_shared=True))


def _read(cells: Sequence[int] | Ints, values: Sequence[int] | Ints, size: int) -> tuple[Ints, list[int]]:
    own, true = np.asarray(cells), np.asarray(values)
    if own.dtype.kind not in "iu" or own.ndim != 1 or not len(own) or own.min() < 0 or own.max() >= size or len(np.unique(own)) < len(own):
        raise InvalidParameter(f"An agent names one cell or more, each once, by its number from 0 to {size - 1}.")
    if true.dtype.kind not in "iu" or true.shape != own.shape:
        raise InvalidParameter(
            f"An agent gives one whole number for each of its {len(own)} cells, in steps of the grid where there is one. Rounding to the "
            "grid needs all answers: numbers between its points cannot be rounded by their owners without telling the kept totals."
        )
    return own.astype(np.int64), [int(value) for value in true]
