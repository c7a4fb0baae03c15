"""The law of the noise, for researchers: a view on a channel whose noise sees no data."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.channels.channel import Channel, Ints
from holdfast.channels.covariance import Covariance, covariance_of
from holdfast.channels.drawing import Drawing, SamplerPlan, choose_samplers
from holdfast.display import shorten
from holdfast.errors import InvalidParameter
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import real_number, sample_size
from holdfast.lattices import Lattice
from holdfast.laws import Reads, Target
from holdfast.privacy.guarantee import Guarantee
from holdfast.randomness import NoiseKey


class Law:
    """The law of integer noise z on the lattice L of moves that keep the totals; the release is y = x + z.

    Given:       a channel whose noise sees no data. Samplers are chosen when a draw, the guarantee or the covariance is first asked for:
                 what cannot be drawn is refused then, and a chain is assessed then.
    Guarantees:  z lies in L, so every kept total holds as integers; E z = 0; the law depends on public facts only.
    """

    def __init__(self, channel: Channel) -> None:
        if not channel.target.publishes_cells:
            raise InvalidParameter("Suppression publishes no cells: it has no noise.")
        if channel.target.reads is not Reads.NOTHING:
            raise InvalidParameter("What this mechanism publishes depends on the counts: it adds no noise of one law.")
        self.channel = channel
        self.lattice: Lattice = channel.facts.moves
        self.target: Target = channel.target
        """What is drawn, as a value with its exact parameters."""

    @classmethod
    def of_drawing(cls, drawing: Drawing) -> Law:
        """The law of a channel whose samplers are chosen already."""
        made = cls(drawing.channel)
        made.__dict__["drawing"] = drawing
        return made

    @cached_property
    def drawing(self) -> Drawing:
        """The channel with its samplers."""
        return choose_samplers(self.channel)

    @property
    def guarantee(self) -> Guarantee:
        return self.drawing.guarantee

    @property
    def sampler(self) -> SamplerPlan:
        """Which sampler draws which blocks, why, and the expected number of tries."""
        return self.drawing.sampler_plan

    def __repr__(self) -> str:
        fields = shorten(" ".join(map(str, self.target.fields)), 120)
        return f"Law({fields}; {self.lattice.cells} cells, {self.lattice.dimension} free dimensions)"

    def log_weight(self, z: Any) -> float:
        """Logarithm of the weight of a move, without the normaliser; -infinity where z is not in the lattice."""
        if not self.lattice.contains(z):
            return -math.inf
        weight = self.target.log_weight(np.asarray(z))
        if weight is None:
            raise InvalidParameter("This law has no closed form, and so no weights.")
        return weight

    def log_tail(self, t: float) -> float:
        """Natural logarithm of a bound of P[|z| >= t]."""
        return self.target.log_tail(self.lattice, real_number(t, "t"))

    def tail_bound(self, t: float) -> float:
        """An upper bound of P[|z| >= t], in the norm of the law (l1 for l1 Laplace, else l2); laws/families.py.

        Where a chain draws it is that of the law aimed at.
        """
        return min(1.0, float(np.nextafter(float(np.exp(self.log_tail(t))), np.inf)))

    def covariance(self) -> Covariance:
        """Covariance of the noise; see the object for what its figures are."""
        return covariance_of(self.drawing)

    def sample(self, n: int, key: NoiseKey | None = None, *, label: str = "") -> Ints:
        """n independent draws of the noise as int64, shape (n, cells).

        Guarantees:  exact law over uniform words (of a chain: its law after the steps it makes, near the one aimed at). `key=None` draws a
                     fresh secret key. Equal keys and labels give equal draws, and a key object refuses to serve the same law and label
                     twice.
        """
        n = sample_size(n)
        if key is not None and not isinstance(key, NoiseKey):
            raise InvalidParameter(f"key is a NoiseKey, or None for a fresh one. Got {type(key).__name__}.")
        check_memory(n * self.lattice.cells)
        out = np.zeros((n, self.lattice.cells), dtype=np.int64)
        if n == 0:
            return out
        source = NoiseKey.generate() if key is None else key
        try:
            for task in self.channel.tasks():
                sampler = self.drawing.choice(task.shape).noise
                with source.stream("law", self.channel.identity, label, *task.label) as words:
                    drawn = sampler.draw(n * len(task.cells), words)
                out[:, task.cells.ravel()] = drawn.reshape(n, -1)
        finally:
            if key is None:
                source.close()
        return out
