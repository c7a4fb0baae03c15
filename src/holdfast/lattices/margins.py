"""Margins kept on a full product of axes: the smallest secret in closed form, no Smith form needed ([theory T3])."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations


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
