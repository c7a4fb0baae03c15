"""Moves: what they are, that each is picked equally often, and that those which miss a direction are refused with it."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from math import comb, prod

import numpy as np
import pytest

from holdfast.chains import moves as moves_module
from holdfast.chains.moves import ListedMoves, Move, Swaps, moves_for
from holdfast.chains.target import ChainTarget
from holdfast.errors import InvalidParameter, NothingLeft, RequestTooLarge, UnreachableLattice
from holdfast.lattices import algebra
from holdfast.lattices.lattice import Lattice
from holdfast.lattices.shapes import Free, General, Grid, OneSum, Pinned
from holdfast.research.chains.lattices import check_generates, format_move, generating_rows, line_gibbs_on
from holdfast.testing import ListedWords
from tests.chains.lines import dense, every_move

VENN = np.array([[1, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 1, 1, 1]])
"""The seven regions of three overlapping sets."""


def grid_rows(shape: tuple[int, ...]) -> np.ndarray:
    """All sums along each axis of a grid."""
    cells = np.arange(prod(shape)).reshape(shape)
    rows = []
    for axis in range(len(shape)):
        for line in np.moveaxis(cells, axis, -1).reshape(-1, shape[axis]):
            rows.append(np.isin(cells.ravel(), line).astype(np.int64))
    return np.array(rows)


def key(move: Move, cells: int) -> tuple[int, ...]:
    vector = dense(move, cells)
    return tuple((vector * np.sign(vector[np.flatnonzero(vector)[0]])).tolist())


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 3), (2, 2)])
def test_swaps_are_all_different_keep_every_sum_and_generate_the_lattice(shape: tuple[int, ...]) -> None:
    swaps = Swaps(shape)
    every = [dense(move, swaps.cells) for move in every_move(swaps)]
    assert len({tuple(v) for v in every}) == len(every) == prod(comb(n, 2) for n in shape)
    rows = grid_rows(shape)
    assert not (rows @ np.array(every).T).any()
    assert algebra.same_lattice(np.array(every).T, generating_rows(swaps).T)
    check_generates(swaps, rows)
    check_generates(ListedMoves(np.array(every)), rows)
    assert swaps.dimension == len(generating_rows(swaps)) == algebra.rank(np.array(every))


def test_signs() -> None:
    row = np.array([[1, -1, 1, -1, -1]])
    swaps = Swaps((5,), row[0])
    assert not (row @ np.array([dense(m, 5) for m in every_move(swaps)]).T).any()
    check_generates(swaps, row)
    with pytest.raises(UnreachableLattice, match="changes a kept total"):
        check_generates(Swaps((5,)), row)


@pytest.mark.parametrize("swaps", [Swaps((5,)), Swaps((3, 4)), Swaps((2, 3, 2))])
@pytest.mark.parametrize("one_word", [True, False])
def test_every_direction_is_picked_by_the_same_number_of_words(swaps: Swaps, one_word: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One word in the middle of each of its equally likely cells, all combinations: each direction as often as any other."""
    if not one_word:
        monkeypatch.setattr(moves_module, "ONE_WORD_CHOICES", 0)
    sizes = [size for n in swaps.shape for size in ([n * (n - 1)] if one_word else [n, n - 1])]
    assert swaps.words_per_pick == len(sizes)
    counts: Counter[tuple[int, ...]] = Counter()
    for index in np.ndindex(*sizes):
        words = ListedWords([((2 * i + 1) << 31) // size for i, size in zip(index, sizes, strict=True)])
        counts[key(swaps.pick(words), swaps.cells)] += 1
        assert words.position == len(sizes)
    assert len(counts) == len(every_move(swaps))
    assert set(counts.values()) == {2 ** len(swaps.shape)}


def test_a_word_on_the_border_of_two_moves_is_settled_by_bits_of_its_own() -> None:
    listed = ListedMoves(np.eye(3, dtype=np.int64))
    border = (1 << 32) // 3
    picked = [int(listed.pick(ListedWords([border], default_extra=extra)).cells[0]) for extra in (0, 2**32 - 1)]
    assert picked == [0, 1]
    assert [int(listed.pick(ListedWords([border + side])).cells[0]) for side in (-1, 1)] == [0, 1]


def test_moves_of_shapes() -> None:
    grid = moves_for(Grid((3, 4)))
    assert isinstance(grid, Swaps)
    assert grid.shape == (3, 4)
    assert isinstance(moves_for(OneSum(6)), Swaps)
    signed = moves_for(OneSum(3, (1, -1, -1)))
    assert isinstance(signed, Swaps)
    check_generates(signed, [[1, -1, -1]])
    free = moves_for(Free(3))
    assert algebra.same_lattice(generating_rows(free).T, np.eye(3, dtype=np.int64))
    general = General(tuple(map(tuple, VENN.tolist())), (1,) * 7)
    check_generates(moves_for(general), VENN)
    with pytest.raises(NothingLeft):
        moves_for(Pinned(2))
    with pytest.raises(RequestTooLarge):
        moves_for(General.without_rows(10**6, 3))
    with pytest.raises(RequestTooLarge):
        moves_for(Free(10**6))


def test_moves_of_a_lattice() -> None:
    lattice = Lattice(VENN)
    moves = line_gibbs_on(ChainTarget.laplace(7, 1), lattice).moves
    assert moves.dimension == 4
    check_generates(moves, lattice)
    with pytest.raises(NothingLeft):
        line_gibbs_on(ChainTarget.laplace(2, 1), Lattice(np.eye(2, dtype=np.int64)))


def test_moves_that_miss_a_direction_are_refused_with_it() -> None:
    basis = np.array(Lattice(VENN).basis.T)
    with pytest.raises(UnreachableLattice, match=r"no sum of them gives .* at cell") as caught:
        check_generates(ListedMoves(basis[1:]), VENN)
    assert "Add this move" in str(caught.value)
    # the right dimension but every second point only
    doubled = basis.copy()
    doubled[0] *= 2
    with pytest.raises(UnreachableLattice, match="no sum of them gives"):
        check_generates(ListedMoves(doubled), VENN)
    # two multiples whose greatest common divisor is one do generate it
    check_generates(ListedMoves(np.vstack([doubled, 3 * basis[:1]])), VENN)


def test_a_move_outside_the_lattice_is_refused() -> None:
    basis = np.array(Lattice(VENN).basis.T)
    with pytest.raises(UnreachableLattice, match=r"changes a kept total: \+1 at cell 0\. "):
        check_generates(ListedMoves(np.vstack([basis, np.eye(1, 7, dtype=np.int64)])), VENN)
    with pytest.raises(InvalidParameter, match="7 cells"):
        check_generates(ListedMoves(basis), VENN[:, :6])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Swaps(()),
        lambda: Swaps((3, 1)),
        lambda: Swaps((3,), np.array([1, 2, 1])),
        lambda: Swaps((3,), np.array([1, 1])),
        lambda: ListedMoves(np.zeros((0, 3), dtype=np.int64)),
        lambda: ListedMoves(np.zeros((1, 3), dtype=np.int64)),
        lambda: ListedMoves(np.array([[1.0, -1.0]])),
        lambda: ListedMoves(np.array([[1 << 40, -1]])),
    ],
)
def test_refusals(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_long_moves_are_shown_in_short() -> None:
    assert format_move(np.array([1, 0, -2])) == "+1 at cell 0, -2 at cell 2"
    assert format_move(np.ones(20, dtype=np.int64)).endswith("and 8 further entries")


def test_moves_survive_a_pickle() -> None:
    for moves in (Swaps((3, 4)), Swaps((3,), np.array([1, -1, 1])), ListedMoves(VENN)):
        back = pickle.loads(pickle.dumps(moves))
        assert (generating_rows(back) == generating_rows(moves)).all()


def test_moves_keep_copies_of_what_they_were_given() -> None:
    signs, vectors = np.array([1, -1, 1]), np.array([[1, -1, 0], [0, 1, -1]])
    swaps, listed = Swaps((3,), signs), ListedMoves(vectors)
    signs *= -1
    vectors += 5
    assert swaps.signs is not None
    assert swaps.signs.tolist() == [1, -1, 1]
    assert listed.vectors.tolist() == [[1, -1, 0], [0, 1, -1]]
