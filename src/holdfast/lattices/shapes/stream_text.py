"""The text by which streams of today's version name a shape."""

from __future__ import annotations

from itertools import groupby

from holdfast.lattices.shapes.general import General
from holdfast.lattices.shapes.one_sum import OneSum
from holdfast.lattices.shapes.shape import Shape


def stream_text(shape: Shape) -> str:
    """A fixed text: it labels random streams, so that every change of it changes noise. The next stream version uses `Shape.fields`."""
    rows = sizes = rank = None
    if isinstance(shape, General):
        rows, rank = shape.rows, shape.general_rank
        sizes = None if rows is None else shape.class_sizes
    elif isinstance(shape, OneSum) and shape.signs is not None:
        runs = [(sign, len(list(cells))) for sign, cells in groupby(shape.signs)]
        rows, sizes = (tuple(sign for sign, _ in runs),), tuple(length for _, length in runs)
    return f"Template(kind={shape.name!r}, shape={shape.axes!r}, rows={rows!r}, class_sizes={sizes!r}, general_rank={rank!r})"
