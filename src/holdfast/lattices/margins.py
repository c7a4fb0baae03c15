"""Margins kept on a full product of axes: the smallest secret in closed form, no Smith form needed ([theory T3]), and whether they can be
looked at cell by cell at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import prod

from holdfast.invariants.constraints import Constraint, Margin
from holdfast.lattices import components, levels
from holdfast.lattices.reduction import largest_sets
from holdfast.tables import Universe


def smallest_secret(sizes: Mapping[str, int], margins: Iterable[Sequence[str]]) -> int | None:
    """2^t, t the size of the smallest set of axes inside no kept margin: the l1 length and the squared l2 length of the shortest move.

    None where every set is inside a margin: no move is left. Axes of size one take part in no move and are left out.
    """
    axes = [axis for axis, size in sizes.items() if size > 1]
    kept = [set(margin) for margin in margins]
    for t in range(len(axes) + 1):
        if any(not any(set(chosen) <= margin for margin in kept) for chosen in combinations(axes, t)):
            return int(2**t)
    return None


def check_margins(universe: Universe, stated: Constraint | Sequence[Constraint]) -> None:
    """Refuse margins of a full product that cannot be looked at, before they are compiled."""
    if isinstance(stated, Constraint) or not universe.is_product or not all(isinstance(one, Margin) for one in stated):
        return
    columns = {frozenset(one.columns) for one in stated if isinstance(one, Margin)}
    sizes = {column: universe.code_count(column) for column in universe.columns}
    if not frozenset().union(*columns) <= sizes.keys():  # levels of hierarchies, or mistakes
        return
    varied = {column for column, size in sizes.items() if size > 1}
    _check_largest(sizes, largest_sets(own & varied for own in columns))


def _check_largest(sizes: Mapping[str, int], largest: Collection[frozenset[str]]) -> None:
    """RequestTooLarge where `find_blocks` would come to it in the end: decided from the columns alone, before thousands of margins are
    looked at cell by cell.

    Given:       margins of which none goes by all the columns of another; `sizes` of the axes.
    Proof:       cells that agree on the columns of all margins are linked with each other and with no others. So a component has the other
                 axes, which are a product; margins on it are told apart by their other columns, and its cells by all columns of margins. It
                 is a grid where the margins leave out each axis once.
    """
    common = frozenset.intersection(*largest) if largest else frozenset()
    axes = {name: size for name, size in sizes.items() if size > 1 and name not in common}
    own = [margin & axes.keys() for margin in largest]
    if len(own) <= components.FEW_FAMILIES or 2 ** len(axes) <= levels.MOST_VECTORS:
        return
    told = frozenset().union(*own)
    is_grid = told == axes.keys() and sum(len(axes) - len(margin) for margin in own) == len(axes)
    if is_grid or prod(axes[name] for name in told) <= components.LARGEST_SEARCHED:
        return
    sums = sum(prod(axes[name] for name in margin) for margin in own)
    components.check_gram(min(sums, prod(axes.values())))
