"""Matrix algorithms that run long inside one call of a library: estimated before, refused with the figure, and run where they can be ended.

flint answers no signal before it is done. So a call that is estimated to take more than a moment is made in a child process: Ctrl-C ends
the child at once, and a child that takes too much memory does not take us with it. Short calls stay here: a child takes about half a second
to begin. What goes to the child are matrices of kept sums, which are public; no count and no key.

Legend: r = min(rows, columns), n = max(rows, columns), b the bits of the largest entry, B those of the largest minor. B decides: matrices
of kept sums of 0 and 1 have minors near 1, however many rows they have; 350 random rows of 31 bits have minors of 12,000 bits.
"""

from __future__ import annotations

import copyreg
import ctypes
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from flint import fmpz, fmpz_mat

from holdfast.errors import RequestTooLarge

Kind: TypeAlias = Literal["echelon form", "Hermite form", "short basis", "orthogonal basis", "Smith form"]
F = TypeVar("F", bound=Callable[..., Any])

MOMENT = 0.3
"""Estimated seconds from which a child does it."""
MOST_SECONDS = 300.0
"""Estimated seconds from which it is refused."""
FEW_PRODUCTS, SMALL_WORK = 20_000, 500_000
"""r^2 n, and r^2 n (1 + b / 64), up to which nothing is estimated: milliseconds."""
SOME_ROWS = 150
"""Rows from which the size of minors is estimated."""
_CHILD = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from holdfast.lattices.long_calls import serve; serve()"
_PR_SET_PDEATHSIG = 1

_is_child = False


def long_call(kind: Kind) -> Callable[[F], F]:
    """Decorates a function of a matrix, and perhaps of more, that may run long inside flint."""

    def decorate(function: F) -> F:
        @wraps(function)
        def wrapper(matrix: fmpz_mat, *rest: Any) -> Any:
            if _is_child:
                return function(matrix, *rest)
            seconds = check_affordable(kind, matrix)
            if seconds < MOMENT:
                return function(matrix, *rest)
            return in_child(function.__module__, function.__qualname__, matrix, *rest)

        return wrapper  # type: ignore[return-value]

    return decorate


def check_affordable(kind: Kind, matrix: fmpz_mat) -> float:
    """The estimated seconds; RequestTooLarge with the figure where they are too many."""
    seconds = estimated_seconds(kind, matrix)
    if seconds > MOST_SECONDS:
        raise RequestTooLarge(
            f"The {kind} of a matrix of {matrix.nrows():,} x {matrix.ncols():,} whole numbers of up to {_bits(matrix)} bits would take "
            f"about {seconds / 60:,.0f} minutes, which is refused. Keep fewer totals, smaller coefficients, or sums of 0 and 1."
        )
    return seconds


def estimated_seconds(kind: Kind, matrix: fmpz_mat) -> float:
    """About how long it takes on one core of 2020; 0 where it is no time. It decides about a refusal and a child, and no result.

    Fitted to random matrices of up to 31 bits and 200 rows, and to sums of 0 and 1 over up to 1,700 cells.
    """
    r, n = sorted((matrix.nrows(), matrix.ncols()))
    if r * r * n < FEW_PRODUCTS:
        return 0.0
    bits = _bits(matrix)
    if r * r * n * (1 + bits / 64) < SMALL_WORK:
        return 0.0
    if kind == "short basis":  # vectors that are short already cost little
        vectors, length = matrix.ncols(), matrix.nrows()
        mean = sum(max(map(_size, vector), default=0) for vector in matrix.transpose().tolist()) / vectors
        return float(vectors**2 * length * (2.5e-8 + 2.6e-9 * mean))
    if kind == "orthogonal basis":
        m, length = matrix.ncols(), matrix.nrows()
        return 1e-10 * m * m * (m + length) * (64 + m * (bits + 1))
    of_minors = 64 + minor_bits(matrix, bits)
    if kind == "echelon form":
        return 3e-11 * r * r * n * of_minors
    hermite = 1e-12 * r * r * n * float(of_minors**1.7)
    return hermite if kind == "Hermite form" else 5 * hermite


def minor_bits(matrix: fmpz_mat, bits: int) -> float:
    """About the bits of a large minor of largest size: the product of the pivots of an elimination in floating point, the largest entry
    first. Of many rows it looks at some.
    """
    table = matrix.tolist() if matrix.nrows() <= matrix.ncols() else matrix.transpose().tolist()
    chosen = table[:: -(-len(table) // SOME_ROWS)]
    scale = max(0, bits - 500)  # so that doubles hold them
    left = np.array([[float(int(entry) >> scale) for entry in row] for row in chosen])
    found, least = 0.0, 1e-9 * np.abs(left).max(initial=0.0)
    while left.size:
        row, column = np.unravel_index(int(np.abs(left).argmax()), left.shape)
        pivot = left[row, column]
        if abs(pivot) <= least:
            break
        found += float(np.log2(abs(pivot))) + scale
        others = np.delete(left, row, axis=0)
        left = np.delete(others - np.outer(others[:, column] / pivot, left[row]), column, axis=1)
    return max(0.0, found) * len(table) / len(chosen)


def _bits(matrix: fmpz_mat) -> int:
    entries = matrix.entries()
    return int(max(max(entries), -min(entries))).bit_length() if entries else 0


def _size(entry: fmpz) -> int:
    return abs(int(entry)).bit_length()


def in_child(module: str, name: str, *arguments: Any) -> Any:
    """What a function of ours gives, made in a child process that ends with us and with whatever is raised here.

    Where no child can be started it is made here.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}  # no secret goes along
    given = pickle.dumps(_import_path()) + pickle.dumps((module, name, arguments))
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-c", _CHILD],  # -I: nothing is imported from the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",  # where nobody else can put settings for a library to find
        )
    except (OSError, ValueError, TypeError):
        return _find(module, name).__wrapped__(*arguments)
    try:
        answer, _ = child.communicate(given)
    finally:
        child.kill()
        child.wait()
    if not answer:
        raise RequestTooLarge(
            "A long calculation with the kept totals was ended by the system, perhaps for want of memory. Keep fewer totals, or use a "
            "machine with more."
        )
    is_made, result = pickle.loads(answer)
    if not is_made:
        raise result
    return result


def _import_path() -> list[str]:
    """Where the child imports from: as we do, but not from the current folder, into which others may have put modules."""
    here = os.getcwd()
    found = [os.path.abspath(entry) for entry in sys.path if entry]
    return [*(entry for entry in found if entry != here), str(Path(__file__).parents[2])]


def serve() -> None:
    """The child's side: one call, read from standard input, answered on standard output."""
    global _is_child
    _is_child = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the child too; its parent ends it
    prctl = getattr(ctypes.CDLL(None), "prctl", None)  # of Linux
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    module, name, arguments = pickle.load(sys.stdin.buffer)
    try:
        answer = (True, _find(module, name)(*arguments))
    except Exception as error:
        answer = (False, error)
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.buffer.flush()


def _find(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _matrix(rows: int, columns: int, entries: list[int]) -> fmpz_mat:
    return fmpz_mat(rows, columns, entries)


copyreg.pickle(fmpz, lambda number: (fmpz, (int(number),)))
copyreg.pickle(fmpz_mat, lambda matrix: (_matrix, (matrix.nrows(), matrix.ncols(), [int(entry) for entry in matrix.entries()])))
