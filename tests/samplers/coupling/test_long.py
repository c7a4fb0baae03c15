"""Coupling from the past at length: laws by enumeration at three epsilons, and agreement with long chains where nothing can be listed."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.moves import ListedMoves, Swaps
from holdfast.chains.target import ChainTarget
from holdfast.lattices.algebra import kernel_basis, reduced_basis, to_numpy
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.testing import ALPHA, check_fit_categories
from holdfast.testing.fit import _score_categories

from ...chains.test_agreement import Mean, chain, disagreements, exact
from ..lattice_points import counted, enumerated, margin_rows, summary

ROW = np.array([[3, 5, 7, 2]])
TWO_ROWS = np.array([[1, 2, 3, 1, 0], [0, 1, 1, 2, 1]])
EPSILONS = [Fraction(1, 4), Fraction(1, 2), Fraction(1)]
DRAWS = 20_000


def stream(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("long coupling")


def first_row_law(rows: int, columns: int, epsilon: float, bins: Fraction, size: int) -> dict[int, float]:
    """The law of `summary` of a grid's first row, every table counted: the others' sums by Fourier transforms modulo `size`."""
    axis = np.fft.fftfreq(size, 1 / size).astype(np.int64)
    free = np.meshgrid(*[axis] * (columns - 1), indexing="ij")
    vectors = np.stack([*free, -sum(free)], axis=-1).reshape(-1, columns)
    weight = np.exp(-epsilon * np.abs(vectors).sum(axis=1)).reshape([size] * (columns - 1))
    others = np.fft.ifftn(np.fft.fftn(weight) ** (rows - 1)).real
    masses = (weight * others).ravel()  # the law is symmetric, so x in place of -x
    law: dict[int, float] = defaultdict(float)
    keys = summary(vectors, bins)
    for key, mass in enumerate(np.bincount(keys, weights=np.maximum(masses, 0.0))):
        if mass > 0:
            law[key] += float(mass)
    total = sum(law.values())
    return {key: mass / total for key, mass in law.items()}


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize(("axes", "size"), [((2, 3), 256), ((3, 3), 256), ((3, 4), 128)])
def test_first_rows_of_grids(axes: tuple[int, int], size: int, epsilon: Fraction) -> None:
    """Power: an epsilon that is 10 % larger is seen."""
    z = CouplingLaplace.of_grid(axes, epsilon).draw(DRAWS, stream(f"rows {axes} {epsilon}"))
    assert not (margin_rows(axes) @ z.T).any()
    first = counted(z[:, : axes[1]], epsilon)
    check_fit_categories(first, first_row_law(*axes, float(epsilon), epsilon, size), name=f"first row of {axes} at {epsilon}")
    assert _score_categories(first, first_row_law(*axes, 1.1 * float(epsilon), epsilon, size)).p_value < ALPHA


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("rows", [ROW, TWO_ROWS], ids=["one row", "two rows"])
def test_matrices_that_are_not_unimodular(rows: NDArray[np.int64], epsilon: Fraction) -> None:
    """Power: an epsilon that is 10 % larger is seen."""
    z = CouplingLaplace.of_rows(rows, epsilon).draw(DRAWS, stream(f"matrix {rows.shape} {epsilon}"))
    reach = int(20 / epsilon)
    check_fit_categories(counted(z, epsilon), enumerated(rows, epsilon, reach), name=f"{rows.shape} at {epsilon}")
    wrong = enumerated(rows, epsilon, reach, slope=epsilon * Fraction(11, 10))
    assert _score_categories(counted(z, epsilon), wrong).p_value < ALPHA


@pytest.mark.long
@pytest.mark.parametrize(("axes", "epsilon", "draws", "records"), [((10, 10), "1/4", 6000, 400_000), ((20, 20), "1/2", 1600, 200_000)])
def test_grids_agree_with_long_chains(axes: tuple[int, int], epsilon: str, draws: int, records: int) -> None:
    cells, every = axes[0] * axes[1], (axes[0] - 1) * (axes[1] - 1)
    kernel = LineGibbs(ChainTarget.laplace(cells, epsilon), Swaps(axes))
    means = {
        "coupling from the past": exact(CouplingLaplace.of_grid(axes, epsilon), draws, 1, f"coupling {axes}"),
        "line_gibbs, swaps": chain(kernel, records, every, f"swaps {axes}"),
    }
    assert disagreements(means) == []
    assert disagreements({**means, "line_gibbs, swaps": Mean(*means["line_gibbs, swaps"]).times(1.02)})


@pytest.mark.long
def test_all_two_way_margins_of_a_cube_agree_with_a_long_chain() -> None:
    """3 x 3 x 3, 27 cells, rank 19."""
    basis = to_numpy(reduced_basis(kernel_basis(margin_rows((3, 3, 3)))))
    kernel = LineGibbs(ChainTarget.laplace(27, Fraction(1, 2)), ListedMoves(basis.T))
    means = {
        "coupling from the past": exact(CouplingLaplace.of_grid((3, 3, 3), Fraction(1, 2)), 8000, 1, "coupling cube"),
        "line_gibbs, basis": chain(kernel, 1_000_000, 8, "cube"),
    }
    assert disagreements(means) == []
    assert disagreements({**means, "line_gibbs, basis": Mean(*means["line_gibbs, basis"]).times(1.08)})
