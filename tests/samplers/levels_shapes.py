"""Small products of hierarchies, and their rows written from the definition; nothing of the samplers is used."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes import Levels
from holdfast.lattices.trees import Tree

PLAIN = Tree.plain


def tree(*children: tuple[int, ...]) -> Tree:
    return Tree(children)


SMALL: dict[str, Levels] = {
    "2 x 3 x 2, one-way": Levels((PLAIN(2), PLAIN(3), PLAIN(2)), ((0, 0, 1), (0, 1, 0), (1, 0, 0))),
    "2 x 2 x 2, AB and C": Levels((PLAIN(2), PLAIN(2), PLAIN(2)), ((0, 0, 1), (1, 1, 0))),
    "(county, adult), (region, sex)": Levels((tree((2,), (2, 1)), tree((2,), (1, 2)), PLAIN(2)), ((1, 0, 1), (2, 1, 0))),
    "uneven tree of two levels x 2": Levels((tree((2,), (3, 1)), PLAIN(2)), ((0, 1), (1, 0))),
    "two uneven trees, total and middle": Levels((tree((2,), (2, 1)), tree((2,), (1, 2))), ((0, 1), (1, 0))),
    "tree of three levels x 2, kept in the middle": Levels((tree((2,), (1, 2), (2, 1, 2)), PLAIN(2)), ((0, 1), (2, 0))),
    "tree of three levels x 3, kept at two": Levels((tree((2,), (2, 1), (1, 2, 1)), PLAIN(3)), ((1, 1), (2, 0))),
    "single children": Levels((tree((2,), (1, 2), (1, 2, 1)), tree((2,), (1, 2))), ((0, 2), (1, 1), (2, 0))),
}


def all_rows(shape: Levels) -> NDArray[np.int64]:
    """Every kept sum, dependent ones too, place by place."""
    rows = []
    cells = list(product(*(range(n) for n in shape.axes)))
    units = [[own.unit_of(level).tolist() for level in range(own.depth + 1)] for own in shape.trees]
    for t in shape.kept:
        names = [tuple(units[k][t[k]][place] for k, place in enumerate(cell)) for cell in cells]
        rows += [[int(name == one) for name in names] for one in sorted(set(names))]
    return np.array(rows, dtype=np.int64)


def uneven(rng: Any, depth: int) -> Tree:
    """A tree with one to three children to a unit, two or more at the top."""
    units = int(rng.integers(2, 4))
    children: list[tuple[int, ...]] = [(units,)]
    for _ in range(depth - 1):
        children.append(tuple(int(n) for n in rng.integers(1, 4, units)))
        units = sum(children[-1])
    return Tree(tuple(children))
