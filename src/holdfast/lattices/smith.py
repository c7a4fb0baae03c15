"""Smith normal form with both transforms. flint gives the form alone; the transforms are built here on its Hermite form and LLL.

Legend: A is k x d of rank r, m = d - r; U A V = D; U is k x k and V is d x d, both unimodular. The LAST m COLUMNS of V are a basis of
L = {z in Z^d : A z = 0} (not its rows).
"""

from __future__ import annotations

from typing import NamedTuple

from flint import fmpz_mat

from holdfast.lattices.algebra import Matrix, as_matrix, complement_and_kernel, identity, largest_entry, reduced_basis, solve, take_rows
from holdfast.lattices.long_calls import long_call


class Smith(NamedTuple):
    """U A V = D with U, V unimodular and D diagonal, 0 <= d_1 | d_2 | ... (zeros last)."""

    U: fmpz_mat
    D: fmpz_mat
    V: fmpz_mat


def smith(A: Matrix) -> Smith:
    """The Smith normal form of A with transforms whose kernel part is LLL-reduced.

    Given:       any integer matrix, zero and dependent rows included.
    Guarantees:  U A V = D, |det U| = |det V| = 1 and D equal to flint's own form, all checked as integers before returning; the last m
                 columns of V are an LLL-reduced basis of the kernel lattice.
    Method:      [C | K] unimodular with A K = 0 (`complement_and_kernel`); the row Hermite form of A C leaves a nonsingular r x r matrix;
                 row and column Hermite forms in turn make that diagonal, and 2 x 2 steps make each entry divide the next. K may be
                 replaced by any basis of the kernel, and multiples of K added to the other columns, without changing A V.
    """
    return _smith(as_matrix(A))


@long_call("Smith form")
def _smith(matrix: fmpz_mat) -> Smith:
    complement, kernel = complement_and_kernel(matrix)
    kernel = reduced_basis(kernel)
    r = complement.ncols()
    core, U = (matrix * complement).hnf(True) if r else (fmpz_mat(matrix.nrows(), 0), identity(matrix.nrows()))
    left, diagonal, right = _smith_nonsingular(take_rows(core, range(r)))
    # Multiplying by diag(left, 1) touches the first r rows only.
    U = _stack(left * take_rows(U, range(r)), take_rows(U, range(r, matrix.nrows())))
    V = _beside(_reduce_modulo(complement * right, kernel), kernel)
    D = fmpz_mat(matrix.nrows(), matrix.ncols())
    for i, entry in enumerate(diagonal):
        D[i, i] = entry
    result = Smith(U, D, V)
    check_smith(matrix, result)
    return result


def _smith_nonsingular(G: fmpz_mat) -> tuple[fmpz_mat, list[int], fmpz_mat]:
    """(U, diagonal, V) with U G V = the diagonal, for a square nonsingular G.

    Ends: one round makes the corner entry the gcd of its row, a divisor of what it was; when it no longer changes it divides its row and
    column, which the round then clears, and the rest is a smaller matrix.
    """
    U, V = identity(G.nrows()), identity(G.nrows())
    while not G.is_diagonal():
        G, step = G.hnf(True)
        U = step * U
        transposed, step = G.transpose().hnf(True)
        G, V = transposed.transpose(), V * step.transpose()
    diagonal = [int(G[i, i]) for i in range(G.nrows())]
    signs = [-1 if entry < 0 else 1 for entry in diagonal]
    rows = [[sign * int(entry) for entry in row] for sign, row in zip(signs, U.tolist(), strict=True)]
    columns = [[int(entry) for entry in column] for column in V.transpose().tolist()]
    diagonal = [abs(entry) for entry in diagonal]
    _make_divide(diagonal, rows, columns)
    n = len(diagonal)
    flat_columns = [entry for column in columns for entry in column]
    return fmpz_mat(n, n, [entry for row in rows for entry in row]), diagonal, fmpz_mat(n, n, flat_columns).transpose()


def _make_divide(diagonal: list[int], rows: list[list[int]], columns: list[list[int]]) -> None:
    """Replace pairs (a, b) of the diagonal by (gcd, lcm) until each entry divides the next, keeping the transforms' rows and columns.

    With g = gcd(a, b) = x a + y b:  [x, y; -b/g, a/g] diag(a, b) [1, -y b/g; 1, x a/g] = diag(g, a b/g), both factors of determinant 1.
    """
    for i in range(len(diagonal)):
        for j in range(i + 1, len(diagonal)):
            a, b = diagonal[i], diagonal[j]
            if b % a == 0:
                continue
            g, x, y = _extended_gcd(a, b)
            rows[i], rows[j] = _combine(rows[i], rows[j], x, y), _combine(rows[i], rows[j], -(b // g), a // g)
            columns[i], columns[j] = _combine(columns[i], columns[j], 1, 1), _combine(columns[i], columns[j], -y * (b // g), x * (a // g))
            diagonal[i], diagonal[j] = g, a // g * b


def _extended_gcd(a: int, b: int) -> tuple[int, int, int]:
    """(g, x, y) with g = gcd(a, b) = x a + y b, for positive a and b."""
    x, x_next, y, y_next = 1, 0, 0, 1
    while b:
        quotient, remainder = divmod(a, b)
        a, b = b, remainder
        x, x_next = x_next, x - quotient * x_next
        y, y_next = y_next, y - quotient * y_next
    return a, x, y


def _combine(first: list[int], second: list[int], a: int, b: int) -> list[int]:
    return [a * s + b * t for s, t in zip(first, second, strict=True)]


def _reduce_modulo(C: fmpz_mat, K: fmpz_mat) -> fmpz_mat:
    """C minus an integer combination of the columns of K that makes it short: Babai's rounding of K's coefficients in C.

    Any integers would be correct; these keep the entries in check. Where C is no longer than K nothing is gained, so nothing is done.
    """
    if C.ncols() == 0 or K.ncols() == 0 or largest_entry(C) <= largest_entry(K):
        return C
    K_transposed = K.transpose()
    numerator, q = solve(K_transposed * K, K_transposed * C)
    rounded = [(2 * int(entry) + q) // (2 * q) for entry in numerator.entries()]
    return C - K * fmpz_mat(K.ncols(), C.ncols(), rounded)


def _stack(top: fmpz_mat, bottom: fmpz_mat) -> fmpz_mat:
    return fmpz_mat(top.nrows() + bottom.nrows(), top.ncols(), [*top.entries(), *bottom.entries()])


def _beside(left: fmpz_mat, right: fmpz_mat) -> fmpz_mat:
    return _stack(left.transpose(), right.transpose()).transpose()


def check_smith(A: fmpz_mat, result: Smith) -> None:
    """Raise AssertionError unless the result is what `smith` promises: a mistake here is ours, and must not reach a release."""
    U, D, V = result
    if U * A * V != D:
        raise AssertionError("Smith form: U A V differs from D")
    if abs(int(U.det())) != 1 or abs(int(V.det())) != 1:
        raise AssertionError("Smith form: a transform is not unimodular")
    if A.snf() != D:
        raise AssertionError("Smith form: the diagonal differs from flint's")
