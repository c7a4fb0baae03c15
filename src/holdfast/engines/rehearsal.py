"""Before budget is reserved: everything that the draw needs is loaded, compiled and tried, on words that are thrown away.

What is missing, what cannot be compiled and what does not fit into memory is found here, where nothing was charged yet. No count is read.
"""

from __future__ import annotations

from holdfast.chains.sampler import ChainSampler
from holdfast.channels import Drawing
from holdfast.display import step
from holdfast.exact.compiled import expecting
from holdfast.lattices.shapes import Grid, OneSum, Shape
from holdfast.laws import Target
from holdfast.randomness import NoiseKey
from holdfast.samplers.protocol import BlockSampler, InputSampler
from holdfast.samplers.table import choose
from holdfast.tables.machine import check_memory

CELLS = 1 << 13
"""Cells of a rehearsal: enough for every loop to be called."""
MOST_CELLS = 1 << 17
"""Cell tries up to which a block is drawn as it is; a larger one is drawn smaller."""
BYTES_A_CELL = 40
"""Memory that a draw takes at least: counts, published counts, a task's cells, its noise and words."""
SMALL_ONE_SUM, SMALL_AXIS = 5000, 20


@step("Trying the samplers")
def rehearse(drawing: Drawing) -> None:
    """Draw a little with every kind of sampler of this drawing, from the words of a test key.

    Guarantees:  what is drawn is forgotten. Errors of the samplers, of the compiler and for want of memory come from here, before a charge.
    """
    cells = len(drawing.channel.facts.universe)
    check_memory(
        BYTES_A_CELL * cells, f"A draw of {cells:,} cells", "Close other programs, or use a machine with more. Nothing was charged."
    )
    tried: set[tuple[type, bool]] = set()
    with NoiseKey.for_tests("rehearsal") as key, expecting(cells):
        for number, (shape, blocks) in enumerate(drawing.channel.shapes().items()):
            sampler = drawing.choice(shape).sampler
            kind = (type(sampler), shape.size * (sampler.expected_tries or 1.0) > MOST_CELLS)
            if kind not in tried:
                tried.add(kind)
                with key.stream("rehearsal", number) as words:
                    small = _small(sampler, shape, drawing.channel.target, too_large=kind[1])
                    if isinstance(small, ChainSampler):
                        small.kernel.run(small.kernel.start(words), 1, words)
                    elif small is not None:
                        small.draw(max(1, min(blocks, CELLS // small.cells)), words)  # a small draw loads no compiled loops


def _small(sampler: BlockSampler | InputSampler, shape: Shape, target: Target, *, too_large: bool) -> BlockSampler | None:
    """A sampler of the same kind that is quick; None where there is none, or where it would need counts."""
    if isinstance(sampler, InputSampler):
        return None
    if not too_large or isinstance(sampler, ChainSampler) or shape.is_free:
        return sampler
    if shape.is_one_sum:
        return choose(OneSum(min(shape.size, SMALL_ONE_SUM)), target).noise
    if shape.keeps_axis_sums:
        return choose(Grid(tuple(min(length, SMALL_AXIS) for length in shape.axes)), target).noise
    return None
