"""What every chain offers, alone and in pairs.

A kernel is a map (state, words) -> (state, info), a coupled kernel (pair of states, words) -> (pair, info). Both are frozen values made
from public facts; all that changes is the state and the words. `step` is the exact transition, slow and obvious; `run` is many of them in
a compiled loop, with the same output from the same words.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.target import ChainTarget
from holdfast.randomness import Words

State: TypeAlias = NDArray[np.int64]
"""A kernel's own integers: the cells for Gibbs kernels, coordinates in a basis for Metropolis. Never written to in place by `step`."""


class Info(NamedTuple):
    """What steps did: how many were made, and how many proposals were taken (all of them in a Gibbs kernel)."""

    steps: int
    accepted: int


class StatePair(NamedTuple):
    """The states of two chains. Once identical they are one array and stay so."""

    first: State
    second: State


class CoupledInfo(NamedTuple):
    """How many coupled steps were made, and whether the chains are identical after the last."""

    steps: int
    identical: bool


class Kernel(Protocol):
    """Leaves the target's law unchanged and reaches all of the lattice; a transition has exactly the stated law over uniform words."""

    @property
    def name(self) -> str:
        """The word a user asks for it with."""

    @property
    def target(self) -> ChainTarget: ...

    @property
    def steps_per_sweep(self) -> int:
        """Steps that touch every free dimension about once."""

    @property
    def step_nanoseconds(self) -> int:
        """About how long a coupled step takes: for refusing what would take hours, nothing else."""

    def start(self, words: Words) -> State:
        """A state from the starting law, which sees no data."""

    def cells_of(self, state: State) -> NDArray[np.int64]:
        """The table z that the state stands for."""

    def step(self, state: State, words: Words) -> tuple[State, Info]:
        """One transition, every decision in integers and balls."""

    def run(self, state: State, steps: int, words: Words) -> tuple[State, Info]:
        """`step` so many times, compiled: the same states from the same words."""

    def couple(self) -> CoupledKernel:
        """Two chains of this kernel at once, made to meet."""


class CoupledKernel(Protocol):
    """Each chain alone moves by the kernel's law; together they tend to become identical, and then stay so."""

    @property
    def kernel(self) -> Kernel: ...

    def step(self, pair: StatePair, words: Words) -> tuple[StatePair, CoupledInfo]:
        """One coupled transition, every decision in integers and balls."""

    def run(self, pair: StatePair, most: int, words: Words) -> tuple[StatePair, CoupledInfo]:
        """At most so many steps, compiled; stops after the first step at which the chains are identical."""
