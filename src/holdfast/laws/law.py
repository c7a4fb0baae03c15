"""A law of noise on a lattice: what is drawn, how, what it promises, and how far off it puts a count."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.kernels import usual_kernel
from holdfast.chains.sampler import EXACT_ONLY, ChainSampler, Wish, block_chains
from holdfast.chains.target import Decay
from holdfast.errors import NoExactSampler, NoMeeting, RequestTooLarge
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import sample_size
from holdfast.lattices import Lattice
from holdfast.lattices.blocks import Kind, Template
from holdfast.laws import tails
from holdfast.laws.covariance import Covariance, Part
from holdfast.privacy.estimated import check_can_weaken, weakened
from holdfast.privacy.guarantee import ChainFacts
from holdfast.randomness import NoiseKey
from holdfast.samplers.choose import Choice
from holdfast.samplers.independent import Independent
from holdfast.samplers.protocol import BlockSampler

if TYPE_CHECKING:
    from holdfast.privacy import Guarantee

Ints = NDArray[np.int64]

FREE_CHUNK = 1 << 16
"""Free cells are drawn in chunks of so many places of the universe's order, each from a stream of its own. Part of the stream's format."""
OVERFLOW_BITS = 200
"""Noise that could leave 2^61 with more than 2^-200 is refused (design rule 1)."""


@dataclass(frozen=True, eq=False)
class Task:
    """One piece of noise: its label, the cells it goes to (in the block's order), its sampler.

    Labels name a block by the codes of its first cell in the universe's order, free cells by the number of their chunk: an engine that
    draws blocks elsewhere, in another order or one at a time gets the same bytes.
    """

    label: tuple[str | int, ...]
    cells: Ints
    sampler: BlockSampler


@dataclass(frozen=True)
class SamplerGroup:
    """All blocks of one kind and sampler."""

    kind: Kind
    blocks: int
    cells: int
    sampler: str
    expected_tries: float | None
    """None for a chain, which throws nothing away."""
    why: str
    chain: dict[str, str | int] | None = None
    """What was estimated about a chain, as plain values; None for exact samplers."""

    def __str__(self) -> str:
        tail = "estimated" if self.expected_tries is None else f"{self.expected_tries:.3g} tries"
        return f"{self.blocks} {self.kind}, {self.cells} cells: {self.sampler} ({self.why}; {tail})"


@dataclass(frozen=True)
class SamplerPlan:
    """Which sampler draws what, decided before anything is drawn."""

    groups: tuple[SamplerGroup, ...]

    @property
    def status(self) -> str:
        return "exact" if all(group.chain is None for group in self.groups) else "estimated"

    def __str__(self) -> str:
        return "\n".join(map(str, self.groups))


WITHOUT_CHAINS = "Try GeneralizedGaussian or RoundedProjection, which are drawn exactly."

_PINNED = ("none", "fixed by the kept totals", 1.0)


def _chain_facts(number: int, chain: ChainSampler) -> ChainFacts:
    found = chain.assessment
    return ChainFacts(number, chain.cells, found.kernel, found.pairs, found.largest_sweeps, found.sweeps, found.eta, found.shapes)


def described(choice: Choice | None) -> dict[str, str | int] | None:
    """What was estimated about a chain, as plain values."""
    if choice is None or not isinstance(choice.sampler, ChainSampler):
        return None
    found = choice.sampler.assessment
    return {
        "kernel": found.kernel,
        "steps": found.steps,
        "sweeps": found.sweeps,
        "pairs": found.pairs,
        "lag": found.lag,
        "median_meeting": found.median,
        "largest_meeting": found.largest,
        "eta": str(found.eta),
    }


class LatticeLaw(ABC):
    """A law of integer noise z on the lattice L of moves that keep the totals; the release is y = x + z.

    Guarantees:  z lies in L, so every kept total holds as integers; E z = 0; the law depends on public facts only.
    """

    publishes_cells = True
    """False where cells are left out instead of noised."""

    def __init__(self, lattice: Lattice, guarantee: Guarantee, wish: Wish = EXACT_ONLY) -> None:
        self.lattice = lattice
        self.guarantee = guarantee
        self._wish = wish
        self._check_reach()
        self._choices = self._choose()  # impossible requests are refused here, before anything is drawn
        self._weaken()

    @property
    @abstractmethod
    def formula(self) -> str:
        """The law in one line."""

    @abstractmethod
    def _choice(self, template: Template) -> Choice:
        """The exact sampler for blocks of this shape."""

    @property
    def decay(self) -> Decay | None:
        """How weights fall with a block's energy; None for a law without weights, which no chain can draw."""
        return None

    @abstractmethod
    def _block_variance(self, template: Template) -> tuple[float, NDArray[np.float64] | None, str, float]:
        """(scale of the projection, matrix where that does not apply, basis, relative error) for blocks of this shape."""

    @abstractmethod
    def log_tail(self, t: float) -> float:
        """Natural logarithm of a bound of P[|z| >= t]."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def tail_bound(self, t: float) -> float:
        """An upper bound of P[|z| >= t], in the norm of the law (l1 for l1 Laplace, else l2); laws/tails.py.

        Where a chain draws it is that of the law aimed at.
        """
        value = float(np.exp(self.log_tail(float(t))))
        return min(1.0, float(np.nextafter(value, np.inf)))

    def _choose(self) -> dict[int, Choice]:
        """Per template in use its sampler; pinned blocks need none, free cells come in chunks. Blocks drawn by chains share eta evenly."""
        blocks = self.lattice.blocks
        numbers = np.bincount(blocks.template_of, minlength=len(blocks.templates))
        used = [i for i, template in enumerate(blocks.templates) if numbers[i] and template.kind != "pinned"]
        found = {i: self._exact_or_none(blocks.templates[i]) for i in used}
        exact = {i: choice for i, choice in found.items() if choice is not None}
        chained = [i for i in used if i not in exact]
        if not chained:
            return exact
        check_can_weaken(self.guarantee)  # before the assessment, which may take long
        eta = self._wish.eta / sum(int(numbers[i]) for i in chained)
        return exact | dict(zip(chained, self._chain_choices([blocks.templates[i] for i in chained], eta), strict=True))

    def _exact_or_none(self, template: Template) -> Choice | None:
        """The exact sampler; None where a chain is to take its place, as the user asked or allowed."""
        if self._wish.names_a_chain and template.kind != "free":
            return None
        try:
            return self._choice(template)
        except NoExactSampler:
            if self._wish.allow_estimated:
                return None
            raise

    def _chain_choices(self, templates: Sequence[Template], eta: Fraction) -> list[Choice]:
        asked = self._wish.names_a_chain
        wanted = tuple((self._wish.sampler if asked else usual_kernel(template), template) for template in templates)
        why = "asked for" if asked else "no exact sampler draws it in reasonable time"
        assert self.decay is not None  # only mechanisms whose law has weights take a wish
        try:
            return [Choice(chain, why) for chain in block_chains(wanted, self.decay, eta)]
        except NoMeeting as problem:
            raise NoMeeting(f"{problem} {WITHOUT_CHAINS}") from None

    def _chains(self) -> Iterator[tuple[int, ChainSampler]]:
        """(number of blocks, sampler) for everything that a chain draws."""
        numbers = np.bincount(self.lattice.blocks.template_of, minlength=len(self.lattice.blocks.templates))
        for i, choice in self._choices.items():
            if isinstance(choice.sampler, ChainSampler):
                yield int(numbers[i]), choice.sampler

    def _weaken(self) -> None:
        """A chain's estimated error enters the promise: blocks are drawn independently, so that their errors add."""
        chains = list(self._chains())
        if chains:
            eta = sum((number * chain.assessment.eta for number, chain in chains), Fraction(0))
            self.guarantee = weakened(self.guarantee, eta, tuple(_chain_facts(number, chain) for number, chain in chains))

    @cached_property
    def sampler(self) -> SamplerPlan:
        """Which sampler draws which blocks, why, and the expected number of tries."""
        blocks = self.lattice.blocks
        numbers = np.bincount(blocks.template_of, minlength=len(blocks.templates))
        merged: dict[tuple[Kind, str, str, int | None], list[float]] = {}
        chains: dict[int | None, dict[str, str | int] | None] = {None: None}
        for i, template in enumerate(blocks.templates):
            if not numbers[i]:
                continue
            choice = self._choices.get(i)
            name, why, tries = (choice.sampler.name, choice.why, choice.sampler.expected_tries) if choice else _PINNED
            chained = choice is not None and isinstance(choice.sampler, ChainSampler)
            if chained:
                chains[i] = described(choice)
            entry = merged.setdefault((template.kind, name, why, i if chained else None), [0, 0, 1.0])
            entry[0] += int(numbers[i])
            entry[1] += int(numbers[i]) * template.size
            entry[2] = max(entry[2], tries)
        groups = (
            SamplerGroup(kind, int(n), int(c), name, t if i is None else None, why, chains[i])
            for (kind, name, why, i), (n, c, t) in merged.items()
        )
        return SamplerPlan(tuple(groups))

    def tasks(self) -> Iterator[Task]:
        """Every piece of noise, block by block, then free cells chunk by chunk."""
        blocks = self.lattice.blocks
        kinds = [template.kind for template in blocks.templates]
        free = [np.zeros(0, dtype=np.int64)]
        for i, template in enumerate(blocks.template_of):
            if kinds[template] == "free":
                free.append(blocks[i].cells)
            elif kinds[template] != "pinned":
                cells = blocks[i].cells.ravel()
                yield Task(("block", self._cell_name(int(cells.min()))), cells, self._choices[int(template)].sampler)
        yield from self._free_tasks(np.sort(np.concatenate(free)))

    def _free_tasks(self, free: Ints) -> Iterator[Task]:
        if not len(free):
            return
        law = next(c.sampler for c in self._choices.values() if isinstance(c.sampler, Independent))
        for chunk in np.unique(free // FREE_CHUNK):
            low, high = np.searchsorted(free, (chunk * FREE_CHUNK, (chunk + 1) * FREE_CHUNK))
            yield Task(("free", int(chunk)), free[low:high], Independent(law.law, int(high - low)))

    def _cell_name(self, cell: int) -> str:
        """The cell's codes as a JSON list: injective, whatever the codes hold. A lattice from a matrix has numbers instead."""
        universe = self.lattice.universe
        return json.dumps([cell] if universe is None else list(universe.cell(cell).values()), ensure_ascii=False, separators=(",", ":"))

    def sample(self, n: int, key: NoiseKey | None = None, *, label: str = "") -> Ints:
        """n independent draws of the noise as int64, shape (n, cells).

        Guarantees:  exact law over uniform words (of a chain: its law after the steps it makes, near the one aimed at). `key=None` draws a
                     fresh secret key. Equal keys and labels give equal draws, and a key object refuses to serve the same law and label
                     twice.
        """
        n = sample_size(n)
        check_memory(n * self.lattice.cells)
        out = np.zeros((n, self.lattice.cells), dtype=np.int64)
        source = NoiseKey.generate() if key is None else key
        try:
            for task in self.tasks():
                with source.stream("law", repr(self), self._lattice_digest, label, *task.label) as words:
                    out[:, task.cells] = task.sampler.draw(n, words)
        finally:
            if key is None:
                source.close()
        return out

    @cached_property
    def _lattice_digest(self) -> str:
        blocks = self.lattice.blocks
        digest = hashlib.sha256(repr(blocks.templates).encode())
        for array in (blocks.order, blocks.starts, blocks.template_of):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def covariance(self) -> Covariance:
        """Covariance of the noise; see the object for what its figures are."""
        blocks = self.lattice.blocks
        parts = []
        for i, template in enumerate(blocks.templates):
            mine = np.flatnonzero(blocks.template_of == i)
            if template.kind == "pinned" or not len(mine):
                continue
            cells = np.stack([blocks[int(k)].cells.ravel() for k in mine])
            scale, matrix, basis, error = self._block_variance(template)
            shape = None if template.kind in ("free", "general") else template.shape
            rows = template.matrix() if template.kind == "one sum" else None
            signs = None if rows is None else np.sign(rows[0])
            parts.append(Part(cells, shape, scale, signs, matrix, basis, error))  # type: ignore[arg-type]
        return Covariance(self.lattice.cells, parts)

    def _check_reach(self) -> None:
        """Design rule 1: no draw leaves 64-bit integers, except with probability below 2^-200."""
        if tails.reach(self.log_tail, OVERFLOW_BITS) * max(self.lattice.cells, 2) > 1 << 61:
            raise RequestTooLarge(
                f"Noise of the law {self!r} could leave 64-bit integers on {self.lattice.cells} cells. Use less noise (a larger budget)."
            )
