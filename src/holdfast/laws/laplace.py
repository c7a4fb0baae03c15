"""The generalized Laplace law on a lattice."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.sampler import EXACT_ONLY, ChainSampler, SamplerRequest, whole_chain
from holdfast.chains.target import Decay
from holdfast.errors import NoExactSampler
from holdfast.lattices import Lattice
from holdfast.lattices.blocks import Template
from holdfast.laws import moments, tails
from holdfast.laws.covariance import Covariance, Part
from holdfast.laws.law import Ints, LatticeLaw, SamplerGroup, SamplerPlan, Task, described
from holdfast.randomness import Words
from holdfast.samplers.choose import Choice, affordable, laplace_choice

if TYPE_CHECKING:
    from holdfast.privacy import Guarantee
    from holdfast.samplers.l2_laplace import L2Laplace


_WHOLE = -1
"""In the place of a template's number: the lattice taken whole."""


class LaplaceLaw(LatticeLaw):
    """Law:         P[z] proportional to exp(-epsilon |z|_1) for z in L.
    Guarantees:  pure privacy: tables x, x' with equal kept totals give outputs within a factor exp(epsilon |x - x'|_1). No invariant at
                 all gives independent two-sided geometric noise.
    Reference:   [DGGY22] Definition 9; math.md R4, R8.
    """

    norm: Literal["l1", "l2"] = "l1"

    def __init__(self, lattice: Lattice, epsilon: Fraction, guarantee: Guarantee, request: SamplerRequest = EXACT_ONLY) -> None:
        self.epsilon = epsilon
        super().__init__(lattice, guarantee, request)

    def __repr__(self) -> str:
        return f"LaplaceLaw(epsilon='{self.epsilon}', norm='{self.norm}')"

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-{self.epsilon} |z|_{self.norm[1]}) over all integer tables z that change no kept total"

    def log_weight(self, z: Any) -> float:
        """-epsilon |z|, or -infinity where z is not in the lattice; the normaliser is left out."""
        if not self.lattice.contains(z):
            return -math.inf
        return -float(self.epsilon) * self._length(np.asarray(z))

    def _length(self, z: NDArray[Any]) -> float:
        return float(np.abs(z).sum())

    def log_tail(self, t: float) -> float:
        return tails.laplace_log_tail(self.lattice.dimension, self.epsilon, t)

    def _choice(self, template: Template) -> Choice:
        return laplace_choice(template, self.epsilon)

    @property
    def decay(self) -> Decay:
        return Decay("absolute" if self.norm == "l1" else "norm", self.epsilon)

    def _block_variance(self, template: Template) -> tuple[float, NDArray[np.float64] | None, str, float]:
        if template.kind == "free":
            return moments.free_laplace_variance(self.epsilon), None, "exact", 1e-14
        if template.kind == "one sum":
            cell, error = moments.one_sum_laplace_variance(template.size, self.epsilon)
            return cell * template.size / (template.size - 1), None, "exact", error
        sampler = self._choices[self.lattice.blocks.templates.index(template)].sampler
        name = f"{self!r} on {template!r}"
        if template.kind == "grid":
            cell, error = moments.estimated_variance(sampler, name)
            return cell / math.prod(1 - 1 / n for n in template.shape), None, "estimated", error
        matrix, error = moments.estimated_covariance(sampler, name)
        return 0.0, matrix, "estimated", error


class L2LaplaceLaw(LaplaceLaw):
    """Law:         P[z] proportional to exp(-epsilon |z|_2) for z in L. It never factorises: the lattice is drawn whole.
    Guarantees:  pure privacy, epsilon per unit of l2 distance.
    Reference:   [DGGY22] Definition 9; math.md R8.
    """

    norm = "l2"

    def _length(self, z: NDArray[Any]) -> float:
        return float(np.sqrt((z.astype(np.float64) ** 2).sum()))

    @cached_property
    def _moving(self) -> Ints:
        return np.setdiff1d(np.arange(self.lattice.cells), self.lattice.exposed_cells)

    @cached_property
    def _whole(self) -> L2Laplace:
        from holdfast.samplers.l2_laplace import L2Laplace, proposal_epsilon_for

        weaker = proposal_epsilon_for(self.epsilon, len(self._moving))
        tasks = list(LaplaceLaw(self.lattice, weaker, self.guarantee).tasks())

        def proposal(n: int, words: Words) -> Ints:
            out = np.zeros((n, self.lattice.cells), dtype=np.int64)
            for task in tasks:
                out[:, task.cells] = task.sampler.draw(n, words)
            return np.ascontiguousarray(out[:, self._moving])

        tries = max((task.sampler.expected_tries for task in tasks), default=1.0)
        return L2Laplace(len(self._moving), proposal, weaker, self.epsilon, proposal_tries=tries)

    def _choose(self) -> dict[int, Choice]:
        if self._request.names_a_chain:
            return {_WHOLE: Choice(self._whole_chain(self._request.sampler), "asked for")}
        try:
            return {_WHOLE: affordable(lambda: self._whole, "a small lattice taken whole", f"{len(self._moving)} cells", "l2 Laplace")}
        except NoExactSampler:
            if not self._request.allow_estimated:
                raise
            return {_WHOLE: Choice(self._whole_chain("line_gibbs"), "no exact sampler draws it in reasonable time")}

    def _whole_chain(self, name: str) -> ChainSampler:
        rows = tuple(tuple(map(int, row)) for row in self.lattice.basis[self._moving])
        return whole_chain(name, rows, self.decay, self._request.eta)

    def _chains(self) -> Iterator[tuple[int, ChainSampler]]:
        sampler = self._choices[_WHOLE].sampler
        if isinstance(sampler, ChainSampler):
            yield 1, sampler

    @cached_property
    def sampler(self) -> SamplerPlan:
        choice = self._choices[_WHOLE]
        chain = described(choice)
        tries = choice.sampler.expected_tries if chain is None else None
        return SamplerPlan((SamplerGroup("general", 1, len(self._moving), choice.sampler.name, tries, choice.why, chain),))

    def tasks(self) -> Iterator[Task]:
        yield Task(("whole", json.dumps(self.norm)), self._moving, self._choices[_WHOLE].sampler)

    def covariance(self) -> Covariance:
        matrix, error = moments.estimated_covariance(self._choices[_WHOLE].sampler, f"{self!r} on {self._lattice_digest}")
        return Covariance(self.lattice.cells, [Part(self._moving[None, :], None, 0.0, None, matrix, "estimated", error)])
