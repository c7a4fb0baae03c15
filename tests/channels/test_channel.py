"""Tasks: every cell that moves once, and the same bytes in any order, alone or together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.channels import Channel, Facts, choose_samplers
from holdfast.channels.channel import FREE_CELLS, STREAM_CELLS
from holdfast.engines.local import BoundRelease, bind
from holdfast.errors import NothingLeft
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Free, General, Grid, OneSum, Pinned
from holdfast.tables import Declarations

from .cases import CASES, GRID, KEEPS, MECHANISMS, table

LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")


def channel(lattice: Lattice, mechanism: Any = LAPLACE) -> Channel:
    return mechanism.channel(Facts(lattice))  # type: ignore[no-any-return]


def many_blocks(blocks: int, cells: int) -> hf.Universe:
    return hf.Universe.product({"a": [f"a{i}" for i in range(blocks)], "b": [f"b{i}" for i in range(cells)]})


def bound(keep: str, how: str) -> BoundRelease:
    facts = Facts.of(Declarations.of(table()), KEEPS[keep])
    return bind(choose_samplers(MECHANISMS[how].channel(facts)), table(), hf.NoiseKey.for_tests("order"), "order")


@pytest.mark.parametrize("seed", range(20))
def test_tasks_cover_each_moving_cell_once(seed: int) -> None:
    """Random lattices of several kinds of blocks, interleaved; fixed cells are in no task."""
    generator = np.random.default_rng(seed)
    kinds = [np.ones((1, 3)), np.array([[1, 1, -1, -1]]), np.array([[2, -3, 1]]), np.eye(2), np.zeros((0, 2))]
    kinds.append(np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))]))
    chosen = [kinds[i] for i in generator.integers(len(kinds), size=12)]
    matrix = np.zeros((sum(len(rows) for rows in chosen), sum(rows.shape[1] for rows in chosen)), dtype=np.int64)
    row = column = 0
    for rows in chosen:
        matrix[row : row + len(rows), column : column + rows.shape[1]] = rows
        row, column = row + len(rows), column + rows.shape[1]
    lattice = Lattice(matrix[:, generator.permutation(matrix.shape[1])])
    moving = np.flatnonzero(np.asarray(lattice.basis).any(axis=1))
    for mechanism in (LAPLACE, hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance")):
        made = channel(lattice, mechanism)
        tasks = list(made.tasks())
        assert np.sort(np.concatenate([task.cells.ravel() for task in tasks])).tolist() == moving.tolist()
        assert len({task.label for task in tasks}) == len(tasks)
        counts: dict[Any, int] = {}
        for task in tasks:
            assert task.cells.shape[1] == task.shape.size
            assert not isinstance(task.shape, Pinned)
            counts[task.shape] = counts.get(task.shape, 0) + len(task.cells)
        assert counts == made.shapes()


@pytest.mark.parametrize(("keep", "how"), CASES)
def test_tasks_in_another_order_give_the_same_bytes(keep: str, how: str) -> None:
    forward, backward = bound(keep, how), bound(keep, how)
    assert len(forward.tasks) > 0
    assert replace(backward, tasks=backward.tasks[::-1]).draw().tolist() == forward.draw().tolist()


def test_one_task_alone_gives_the_same_bytes() -> None:
    """Of 500 blocks of 10 cells, which share streams by 204."""
    universe = many_blocks(500, 10)
    whole = hf.Table(universe, np.arange(5000) % 17)

    def start() -> BoundRelease:
        facts = Facts.of(Declarations.of(whole), [hf.margin("a")])
        return bind(choose_samplers(LAPLACE.channel(facts)), whole, hf.NoiseKey.for_tests("alone"), "alone")

    together = start().draw()
    assert (together != whole.counts).mean() > 0.5
    for number, task in enumerate(start().tasks):
        alone = start()
        drawn = replace(alone, tasks=(alone.tasks[number],)).draw()
        assert drawn[task.cells].tolist() == together[task.cells].tolist()
        assert (np.delete(drawn, task.cells.ravel()) == np.delete(whole.counts, task.cells.ravel())).all()


def test_small_blocks_share_streams() -> None:
    """20,000 blocks of 10 cells: 204 blocks a stream."""
    made = channel(hf.lattice(many_blocks(20_000, 10), [hf.margin("a")]))
    tasks = list(made.tasks())
    assert len(tasks) == 99
    assert all(task.cells.size <= STREAM_CELLS and task.shape == OneSum(10) for task in tasks)
    assert np.sort(np.concatenate([task.cells.ravel() for task in tasks])).tolist() == list(range(200_000))


def test_large_and_general_blocks_have_streams_of_their_own() -> None:
    """A general block's draw may take long: nobody waits for another's."""
    large = list(channel(hf.lattice(many_blocks(3, STREAM_CELLS // 2 + 1), [hf.margin("a")])).tasks())
    assert [len(task.cells) for task in large] == [1, 1, 1]
    general = list(channel(Lattice(np.kron(np.eye(4, dtype=np.int64), [[2, -3, 1]]))).tasks())
    assert [(type(task.shape), len(task.cells)) for task in general] == [(General, 1)] * 4


def test_labels_are_cell_numbers() -> None:
    """Part of the stream's format: of the first cell of the first block, and of the chunk of free cells."""
    universe = hf.Universe.product({"a": [str(i) for i in range(FREE_CELLS + 3)]})
    tasks = list(channel(hf.lattice(universe, [hf.subset("a", ["4", "7"]), hf.subset("a", ["1", "9"])])).tasks())
    assert [(task.label, type(task.shape), task.cells.shape) for task in tasks] == [
        (("blocks", 1), OneSum, (2, 2)),
        (("free", 0), Free, (FREE_CELLS - 4, 1)),
        (("free", 1), Free, (3, 1)),
    ]
    assert tasks[0].cells.tolist() == [[1, 9], [4, 7]]
    (whole,) = channel(
        hf.lattice(many_blocks(3, 3), [hf.margin("a")]), hf.GeneralizedLaplace(epsilon="1", norm="l2", per="distance")
    ).tasks()
    assert whole.label == ("whole",)


def test_how_blocks_were_found_does_not_matter() -> None:
    """Rows in another order: the same tasks."""
    rows = np.kron(np.eye(300, dtype=np.int64), np.ones((1, 10), dtype=np.int64))
    forward, backward = (list(channel(Lattice(rows[order])).tasks()) for order in (slice(None), slice(None, None, -1)))
    assert [(task.label, task.cells.tolist()) for task in forward] == [(task.label, task.cells.tolist()) for task in backward]


def test_suppression_has_no_task() -> None:
    made = hf.Suppression().channel(Facts.of(Declarations.of(table()), KEEPS["one sum"]))
    assert (list(made.tasks()), made.shapes()) == ([], {})
    assert choose_samplers(made).choices == {}


def test_where_all_is_fixed_there_is_nothing_to_promise() -> None:
    for name, mechanism in MECHANISMS.items():
        if "levels" not in name:  # which needs columns
            with pytest.raises(NothingLeft, match="nothing is left to protect"):
                channel(Lattice(np.eye(3, dtype=np.int64)), mechanism)
    for name in ("gaussian", "levels"):
        with pytest.raises(NothingLeft, match="nothing is left to protect"):
            MECHANISMS[name].channel(Facts.of(GRID, [hf.margin("a", "b")]))


def test_a_grid_of_several_axes_is_one_block() -> None:
    universe = hf.Universe.product({"a": list("xyz"), "b": list("pqr"), "c": list("st")})
    keep = [hf.margin("a", "b"), hf.margin("a", "c"), hf.margin("b", "c")]
    (task,) = channel(hf.lattice(universe, keep)).tasks()
    assert isinstance(task.shape, Grid)
    assert (sorted(task.shape.axes), task.cells.shape) == ([2, 3, 3], (1, 18))
