"""Form J of the correction: for every lattice a bound of the lattice correction that is a sum over cells.

Legend: b*_i are the Gram-Schmidt vectors of a basis, each orthogonal to those drawn later; g_i = 1 / |b*_i|^2; Ht the convex majorant
(majorant.py). Drawing coordinate i has 1 / s_i^2 <= sum_f (b*_if)^2 / tau_f, a mean of the numbers 1 / (g_i tau_f) with weights
g_i (b*_if)^2 that add up to 1. So by convexity

    sum_i H(1 / s_i^2) <= sum_f phi_f(tau_f),   phi_f(t) = sum_i g_i (b*_if)^2 Ht(1 / (g_i t)).      [theory T172]

Any larger phi_f does as well: the table has doubles at or above it, which are then phi by definition.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.gram_schmidt import GramSchmidt
from holdfast.samplers.coupling.majorant import majorant_doubles
from holdfast.samplers.coupling.mixture import Mixture

Doubles = NDArray[np.float64]
FLAT = Fraction(4)
TINY = 2.0**-100
"""H(1 / x) < 2^-100 for x >= FLAT: 2 exp(-8 pi^2) (1 + ...) < 10^-33."""


def product_table(orthogonal: GramSchmidt, mixture: Mixture) -> Doubles:
    """phi_f(tau_j), shape (cells, atoms of the table); falls in j."""
    d, m, taus = orthogonal.cells, orthogonal.dimension, [mixture.tau(j) for j in range(mixture.atoms)]
    shares = np.empty((d, m))
    heights = np.full((m, len(taus)), TINY)
    for i, square in enumerate(orthogonal.squared_lengths):
        vector, scale = orthogonal.integral_vectors[i], orthogonal.determinants[i]
        shares[:, i] = [float(Fraction(int(entry) ** 2, scale * scale) / square) for entry in vector]
        steep = [tau for tau in taus if tau / square < FLAT]
        heights[i, : len(steep)] = np.maximum(majorant_doubles([square / tau for tau in steep]), TINY)
    # Products and sums of positive numbers, each right to 2^-51: together off by less than (m + 8) 2^-51.
    table = (shares @ heights) * (1 + (m + 16) * 2.0**-51)
    return np.asarray(np.maximum.accumulate(table[:, ::-1], axis=1)[:, ::-1])
