"""Markov chains on the lattice, and couplings that say how far they are from their law."""

from holdfast.chains.assessment import Assessment, assess, pilot
from holdfast.chains.kernels import KERNELS, kernel_for
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.meeting import Meetings, TotalVariationCurve, meeting_times
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import ListedMoves, Swaps
from holdfast.chains.protocol import CoupledInfo, CoupledKernel, Info, Kernel, StatePair
from holdfast.chains.target import ChainTarget, Decay

__all__ = [
    "KERNELS",
    "Assessment",
    "ChainTarget",
    "CoupledInfo",
    "CoupledKernel",
    "Decay",
    "Info",
    "Kernel",
    "LineGibbs",
    "ListedMoves",
    "Meetings",
    "Metropolis",
    "StatePair",
    "Swaps",
    "TotalVariationCurve",
    "assess",
    "kernel_for",
    "meeting_times",
    "pilot",
]
