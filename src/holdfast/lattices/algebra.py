"""Exact linear algebra over the integers: bases of kernels, membership, coordinates.

Legend: A is k x d, its rows are the invariants; L = {z in Z^d : A z = 0}, of dimension m = d - rank A; B is d x m, its COLUMNS a basis
of L. Inside, every matrix is a flint.fmpz_mat: integers of any size, no floating point. What comes in may also be a NumPy array of
integers or a list of rows. Meant for a few hundred columns.

Many rows at once (`small_kernel_basis`): the Hermite form's basis (`kernel_basis`) has entries of thousands of bits on matrices of a few
hundred rows, and reducing it takes longer than all that follows. Kept sums have coefficients 0 and 1: nearly all unknowns can be eliminated
by pivots +-1.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from flint import fmpq_mat, fmpz, fmpz_mat, nmod_mat
from numpy.typing import NDArray

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.lattices.long_calls import long_call

Matrix: TypeAlias = "fmpz_mat | NDArray[Any] | Sequence[Sequence[int]]"
"""How a caller writes a matrix: flint's own, a two-dimensional NumPy array of integers, or a list of rows."""

_PRIME = 2**61 - 1

Vector: TypeAlias = "NDArray[Any] | Sequence[int]"
"""How a caller writes a vector of integers."""

Ints: TypeAlias = NDArray[np.int64]

LARGEST_ENTRY = 1 << 20
"""Entries up to which elimination goes on; what is left is solved by the Hermite form."""


def as_matrix(A: Matrix, name: str = "the matrix") -> fmpz_mat:
    """The matrix in flint's form.

    Given:       integers only; floats, NaN, bools, ragged rows and anything not two-dimensional are refused (checked).
    Guarantees:  the same integers, in a copy: changing one does not change the other.
    """
    if isinstance(A, fmpz_mat):
        return fmpz_mat(A)
    if isinstance(A, np.ndarray):
        if A.ndim != 2:
            raise InvalidParameter(f"{name} must have two dimensions. Got {A.ndim}. Give one row per invariant and one column per cell.")
        _check_dtype(A, name)
        if A.dtype.kind in "iu":
            return fmpz_mat(A.shape[0], A.shape[1], A.ravel().tolist())
        rows: list[Any] = A.tolist()
        return fmpz_mat(len(rows), A.shape[1], [_integer(entry, name) for row in rows for entry in row])
    rows = [_row(row, name) for row in A]
    if not rows:
        raise InvalidParameter(f"{name} has no rows, so its number of columns is unknown. Give a NumPy array of shape (0, columns).")
    columns = len(rows[0])
    for index, row in enumerate(rows):
        if len(row) != columns:
            raise InvalidParameter(
                f"{name} is ragged: row {index} has {len(row)} entries, row 0 has {columns}. Give every row one entry per column."
            )
    return fmpz_mat(len(rows), columns, [_integer(entry, name) for row in rows for entry in row])


def as_vector(z: Vector, name: str = "the vector") -> list[int]:
    """The vector as a list of Python ints; refuses what `as_matrix` refuses."""
    if isinstance(z, np.ndarray):
        if z.ndim != 1:
            raise InvalidParameter(f"{name} must have one dimension. Got {z.ndim}. Give one entry per cell.")
        _check_dtype(z, name)
    return [_integer(entry, name) for entry in _row(z, name)]


def to_numpy(A: fmpz_mat) -> NDArray[Any]:
    """The matrix as a NumPy array: int64 where every entry fits, else Python ints (dtype object). Never wraps around."""
    shape = (A.nrows(), A.ncols())
    entries = [int(entry) for entry in A.entries()]
    if all(-(2**63) <= entry < 2**63 for entry in entries):
        return np.array(entries, dtype=np.int64).reshape(shape)
    return np.array(entries, dtype=object).reshape(shape)


def rank(A: Matrix) -> int:
    """The rank of A over the rationals."""
    return _rank(as_matrix(A))


@long_call("echelon form")
def _rank(A: fmpz_mat) -> int:
    return int(A.rank())


def has_independent_columns(A: fmpz_mat) -> bool:
    """Whether the columns are seen to be independent modulo a prime, which is quick; then they are. False may be wrong."""
    rows, columns = A.nrows(), A.ncols()
    few = min(rows, 2 * columns)  # enough of them, mostly
    return rows >= columns and int(nmod_mat(few, columns, A.entries()[: few * columns], _PRIME).rank()) == columns


def independent_rows(A: Matrix) -> tuple[int, ...]:
    """Indices of a maximal independent set of rows, taken in order.

    Guarantees:  row i is listed iff it is no rational combination of rows 0..i-1; so of two rows that say the same the later one is the
                 redundant one. (The pivot columns of the echelon form of A^T.)
    """
    return pivot_columns(as_matrix(A).transpose())


@long_call("echelon form")
def pivot_columns(A: fmpz_mat) -> tuple[int, ...]:
    """Columns that are no rational combination of the columns before them."""
    echelon, _, dimension = A.rref()
    pivots: list[int] = []
    column = 0
    for row in range(int(dimension)):
        while echelon[row, column] == 0:
            column += 1
        pivots.append(column)
        column += 1
    return tuple(pivots)


@long_call("echelon form")
def echelon_form(A: fmpz_mat) -> tuple[fmpz_mat, fmpz]:
    """(the nonzero rows of the reduced echelon form times a denominator, that denominator)."""
    echelon, denominator, dimension = A.rref()
    return take_rows(echelon, range(int(dimension))), fmpz(denominator)


def kernel_basis(A: Matrix) -> fmpz_mat:
    """A basis of ALL integer solutions of A z = 0, as columns (d x m); not LLL-reduced, its entries may be long.

    Guarantees:  for every z in Z^d with A z = 0 there is one integer vector v with B v = z.
    Proof:       drop dependent rows; let T A^T = H be the Hermite form, T unimodular (d x d). H has rank k, so its last m rows are 0 and
                 A t = 0 for the last m rows t of T. Any z is an integer combination of the rows of T; if A z = 0, the coefficients of the
                 first k rows vanish, since the first k rows of H are independent.
    """
    return complement_and_kernel(as_matrix(A))[1]


@long_call("Hermite form")
def complement_and_kernel(A: fmpz_mat) -> tuple[fmpz_mat, fmpz_mat]:
    """(C, K) with [C | K] unimodular and the columns of K a basis of the kernel; the columns of C represent Z^d modulo the kernel."""
    # Independent rows first: flint's Hermite form with transform is many times faster on a matrix of full rank.
    rows = independent_rows(A)
    d = A.ncols()
    if not rows:
        return fmpz_mat(d, 0), identity(d)
    _, transform = take_rows(A, rows).transpose().hnf(True)
    return take_rows(transform, range(len(rows))).transpose(), take_rows(transform, range(len(rows), d)).transpose()


def reduced_basis(B: Matrix) -> fmpz_mat:
    """An LLL-reduced basis of the lattice that the columns of B generate.

    Given:       any generators; dependent columns are allowed and disappear.
    Guarantees:  the same lattice: LLL only ever adds integer multiples of one basis vector to another. How short the vectors are decides
                 about speed alone.
    """
    return _reduced_columns(as_matrix(B))


@long_call("short basis")
def _reduced_columns(B: fmpz_mat) -> fmpz_mat:
    generators = B.transpose()
    if generators.rank() < generators.nrows():
        generators = _hermite_rows(generators)
    if generators.nrows() == 0:
        return generators.transpose()
    return generators.lll().transpose()


def contains(A: Matrix, z: Vector) -> bool:
    """Whether A z = 0, i.e. adding z changes no invariant."""
    matrix = as_matrix(A)
    return bool((matrix * _column(z, matrix.ncols())).is_zero())


def coordinates(B: Matrix, z: Vector) -> tuple[int, ...]:
    """The integers v with B v = z.

    Given:       independent columns in B (checked).
    Guarantees:  B v = z as integers; z outside the lattice is refused, also when it lies in the span (rational v).
    """
    basis = as_matrix(B, "the basis")
    target = _column(z, basis.nrows())
    m = basis.ncols()
    rows = independent_rows(basis)
    if len(rows) < m:
        raise InvalidParameter(f"the basis has {m} columns of rank {len(rows)}. Give independent columns (reduced_basis removes the rest).")
    solution = fmpz_mat(0, 1)
    if m:
        # Over a common denominator q; where q > 1 the numerators solve B v = q z instead, so the check below refuses them.
        solution, _ = solve(take_rows(basis, rows), take_rows(target, rows))
    if basis * solution != target:
        raise InvalidParameter("the vector is not in the lattice: no integer coordinates exist. Give a vector that keeps every invariant.")
    return tuple(int(entry) for entry in solution.entries())


def same_lattice(B1: Matrix, B2: Matrix) -> bool:
    """Whether the columns of B1 and of B2 generate the same lattice (their Hermite forms agree; dependent columns are allowed)."""
    first, second = as_matrix(B1), as_matrix(B2)
    if first.nrows() != second.nrows():
        raise InvalidParameter(
            f"lattices live in different spaces: {first.nrows()} and {second.nrows()} rows. Compare bases over the same cells."
        )
    return bool(_hermite_rows(first.transpose()) == _hermite_rows(second.transpose()))


def determinant_squared(B: Matrix) -> int:
    """det(B^T B), the squared volume of a cell of the lattice; 1 for no columns, 0 iff the columns are dependent."""
    return _determinant_squared(as_matrix(B))


@long_call("echelon form")
def _determinant_squared(B: fmpz_mat) -> int:
    return int((B.transpose() * B).det())


def solve(A: fmpz_mat, C: fmpz_mat) -> tuple[fmpz_mat, int]:
    """(N, q) with A (N / q) = C for a square nonsingular A, in lowest terms: q >= 1 is 1 iff the solution is integral."""
    # The stubs say less than python-flint does: for integer matrices the solution is an fmpq_mat.
    numerator, denominator = cast("fmpq_mat", A.solve(C)).numer_denom()
    return numerator, int(denominator)


def identity(n: int) -> fmpz_mat:
    """The n x n identity."""
    result = fmpz_mat(n, n)
    for i in range(n):
        result[i, i] = 1
    return result


def take_rows(A: fmpz_mat, rows: Sequence[int]) -> fmpz_mat:
    """The named rows, in the named order."""
    table = A.tolist()
    return fmpz_mat(len(rows), A.ncols(), [entry for row in rows for entry in table[row]])


def block_diagonal(parts: Sequence[NDArray[Any]]) -> Ints:
    """A matrix with these along its diagonal."""
    out = np.zeros((sum(len(part) for part in parts), sum(part.shape[1] for part in parts)), dtype=np.int64)
    row = column = 0
    for part in parts:
        out[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return out


def largest_entry(A: fmpz_mat) -> int:
    """The largest absolute value; 0 for an empty matrix."""
    return max((abs(int(entry)) for entry in A.entries()), default=0)


@long_call("Hermite form")
def _hermite_rows(rows: fmpz_mat) -> fmpz_mat:
    """The nonzero rows of the Hermite form: one matrix for each lattice, whatever generates it."""
    return take_rows(rows.hnf(), range(int(rows.rank())))


def _column(z: Vector, length: int) -> fmpz_mat:
    entries = as_vector(z)
    if len(entries) != length:
        raise InvalidParameter(f"the vector has {len(entries)} entries, the lattice {length} cells. Give one entry per cell.")
    return fmpz_mat(length, 1, entries)


def _row(row: object, name: str) -> list[Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, (Sequence, np.ndarray)):
        raise InvalidParameter(f"{name} must hold rows of integers. Got {type(row).__name__}. Give lists of ints or a NumPy array.")
    return list(row)


def _check_dtype(array: NDArray[Any], name: str) -> None:
    # Looked at apart from the entries, so that an empty array of floats is refused too.
    if array.dtype.kind == "f":
        raise InexactParameter(f"{name} holds floats. Got dtype {array.dtype}. Convert to integers, checking that nothing is rounded.")
    if array.dtype.kind not in "iuO":
        raise InvalidParameter(f"{name} must hold integers. Got dtype {array.dtype}. Convert to integers.")


def _integer(entry: object, name: str) -> int:
    if isinstance(entry, fmpz):
        return int(entry)
    if isinstance(entry, (bool, np.bool_)):
        raise InvalidParameter(f"{name} must hold integers. Got a bool. Write 0 or 1.")
    if isinstance(entry, numbers.Integral):
        return int(entry)
    if isinstance(entry, numbers.Real) and not isinstance(entry, numbers.Rational):
        raise InexactParameter(f"{name} must hold integers. Got {entry!r}. Write an int; invariants with fractions can be scaled up.")
    raise InvalidParameter(f"{name} must hold integers. Got {type(entry).__name__}. Write ints.")


def small_kernel_basis(A: Ints) -> fmpz_mat:
    """A basis of ALL integer solutions of A z = 0, as columns.

    Guarantees:  as `kernel_basis`: for every z in Z^d with A z = 0 there is one integer vector v with B v = z.
    Proof:       adding multiples of a row to others keeps the solutions. With a pivot +-1 alone in its column, its row says what that
                 unknown is: an integer combination of the others, for any integers. So the solutions are one to one those of the rows
                 without pivot in the unknowns without pivot, of which `kernel_basis` has a basis.
    """
    matrix, pivots = _eliminate(np.array(A, dtype=np.int64))
    rows, columns = (list(pivots), list(pivots.values()))
    others = np.setdiff1d(np.arange(matrix.shape[1]), columns)
    rest = np.delete(matrix, rows, axis=0)[:, others]
    rest = rest[rest.any(axis=1)]
    own = kernel_basis(rest) if len(rest) else identity(len(others))
    signs: Ints = matrix[rows, columns]
    solved = as_matrix(-signs[:, None] * matrix[rows][:, others]) * own if rows else fmpz_mat(0, own.ncols())
    place = np.argsort(np.concatenate([np.array(columns, dtype=np.int64), others]))
    return take_rows(fmpz_mat(matrix.shape[1], own.ncols(), [*solved.entries(), *own.entries()]), place.tolist())


def _eliminate(matrix: Ints) -> tuple[Ints, dict[int, int]]:
    """(the rows after elimination, the pivot column of each row that has one): pivots are +-1 and alone in their columns."""
    pivots: dict[int, int] = {}
    while (place := _pivot(matrix, pivots)) is not None:
        row, column = place
        others = np.flatnonzero(matrix[:, column])
        others = others[others != row]
        changed = matrix[others] - (matrix[others, column] * matrix[row, column])[:, None] * matrix[row]
        if np.abs(changed).max(initial=0) > LARGEST_ENTRY:
            break
        matrix[others] = changed
        pivots[row] = column
    return matrix, pivots


def _pivot(matrix: Ints, pivots: dict[int, int]) -> tuple[int, int] | None:
    """An entry +-1 of the row with the fewest entries that has one, in the column with the fewest; rows that have a pivot are done."""
    filled = np.count_nonzero(matrix, axis=1)
    filled[list(pivots)] = 0
    counts = np.count_nonzero(matrix, axis=0)
    for row in np.argsort(filled, kind="stable").tolist():
        units = np.flatnonzero(np.abs(matrix[row]) == 1)
        if filled[row] and len(units):
            return row, int(units[np.argmin(counts[units])])
    return None
