"""Group `subspace`: squared error of noise shaped after prefix sums and ranges, beside spherical noise and beside a lower bound."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Steps, load, machine
from holdfast.errors import NoExactSampler
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared
from holdfast.research.subspace.correlated import split_factor, tighten_factor
from holdfast.research.subspace.design import information, optimal_covariance
from holdfast.research.subspace.knorm import KNorm
from holdfast.research.subspace.query import Changes, Query, prefix_sums, ranges, ranges_gram
from holdfast.research.subspace.spaces import InvariantSpace

EPSILON, DELTA = Fraction(1, 10), Fraction(1, 10**6)
SIZES = (16, 32, 64, 128, 256, 512)
SMALL = (4, 6, 8, 16, 64, 256)
Workload = Literal["prefix sums", "ranges"]
WORKLOADS: tuple[Workload, ...] = ("prefix sums", "ranges")

ERRORS = ("query", "spherical, projected", "extended", "split", "tightened", "optimal", "× split", "× tightened", "× optimal", "seconds")
BOUND = ("query", "split", "tightened", "optimal", "log²(n - n_c) log(1/delta)")
PURE = ("query", "projected Laplace", "K-norm", "K-norm, split")


@dataclass(frozen=True)
class Case:
    """Squared errors in units of c^2, the total kept and one record replaced."""

    name: str
    free: int
    projected: float
    extended: float
    split: float
    tightened: float
    optimal: float
    least: float
    seconds: float


def gram_of(workload: Workload, n: int) -> NDArray[np.int64]:
    """A^T A."""
    if workload == "ranges":
        return ranges_gram(n)
    matrix = prefix_sums(n)
    return np.asarray(matrix.T @ matrix)


def case(workload: Workload, n: int) -> Case:
    """One workload of n kinds. All answers but the total, which is the last one: inner products of columns are all that matters."""
    began = time.process_time()
    whole = gram_of(workload, n)
    answers = n if workload == "prefix sums" else n * (n + 1) // 2
    sizes, vectors = np.linalg.eigh((whole - 1).astype(np.float64))
    changes = Changes.of_matrix(np.sqrt(np.maximum(sizes, 0.0))[:, None] * vectors.T, "replace-one")
    factor = split_factor(changes)
    tight, best = tighten_factor(changes, factor), optimal_covariance(changes)
    farthest = int((np.diag(whole)[:, None] + np.diag(whole)[None, :] - 2 * whole).max())
    free = answers - 1
    return Case(
        f"{workload}, n = {n}",
        free,
        float(free * farthest),
        free * changes.largest_square(np.eye(changes.dimension)),
        float((factor**2).sum()),
        float((tight**2).sum()),
        best.trace,
        best.least,
        time.process_time() - began,
    )


def error_row(found: Case) -> Row:
    errors = (found.projected, found.extended, found.split, found.tightened, found.optimal)
    ratios = [found.projected / error for error in errors[2:]]
    bars = [Bar(f"× {name}", ratio, 1, at_least=True) for name, ratio in zip(("split", "tightened", "optimal"), ratios, strict=True)]
    return Row(found.name, [*map(number, errors), *map(number, ratios), number(found.seconds)], bars)


def bound_row(found: Case) -> Row:
    """Errors over what no (epsilon, delta)-private mechanism goes below."""
    c_squared = float(analytic_sigma_squared(EPSILON, DELTA, 1))
    over = [c_squared * information(EPSILON, DELTA) * error / found.least for error in (found.split, found.tightened, found.optimal)]
    claimed = math.log(found.free) ** 2 * math.log(1 / float(DELTA))
    return Row(found.name, [*map(number, over), number(claimed)], [Bar("split", over[0], claimed)])


def pure_row(workload: Workload, n: int) -> Row:
    """The same for pure promises: projected Laplace noise and K-norm noise, as far as their laws can be drawn exactly."""
    matrix = prefix_sums(n) if workload == "prefix sums" else ranges(n)
    query = Query.linear(matrix, InvariantSpace([[0] * (len(matrix) - 1) + [1]]))
    least = optimal_covariance(Changes.of(query)).least / information(EPSILON)
    laplace = 2 * float(query.l1 / EPSILON) ** 2 * query.invariants.free
    return Row(f"{workload}, n = {n}", [number(laplace / least), *(_knorm(query, split, least) for split in (False, True))])


def _knorm(query: Query, split: bool, least: float) -> str:
    try:
        law = KNorm(EPSILON, split=split).floating(query)
    except NoExactSampler:
        return "no exact draws"
    covariance = law.noise.covariance
    return number(float(np.trace(np.asarray(covariance))) / least)  # the noise is spread by orthonormal columns


def run(*, sizes: Sequence[int] = SIZES, small: Sequence[int] = SMALL) -> Report:
    """Compute everything; nothing here is random."""
    load_before = load()
    cases, pure = [], []
    with Steps("subspace", len(WORKLOADS) * (len(sizes) + len(small))) as progress:
        for workload in WORKLOADS:
            for n in sizes:
                cases.append(case(workload, n))
                progress.done(f"subspace: {workload}, n = {n}")
            for n in small:
                if workload == "prefix sums" or n <= 32:
                    pure.append(pure_row(workload, n))
                progress.done(f"subspace: K-norm, {workload}, n = {n}")
    tables = (
        Table("Squared error in units of c²", ERRORS, [error_row(found) for found in cases]),
        Table(f"Error over the lower bound, epsilon {EPSILON}, delta 10⁻⁶", BOUND, [bound_row(found) for found in cases]),
        Table(f"Error over the lower bound, epsilon {EPSILON}, pure", PURE, pure),
    )
    return Report("Benchmark group subspace", f"{machine()}; load {load_before} before, {load()} after", tables, _notes())


def _notes() -> list[str]:
    return [
        "The total is kept, one record is replaced by another. Errors are sums of squared errors over all answers, in units of c² (the "
        "variance of Gaussian noise for sensitivity 1), from covariances: no draws. × is the error of projected spherical noise over it.",
        "Split: the recursive split of the smallest ellipsoid, as the papers have it; tightened: the same shape scaled to the largest "
        "change; optimal: the least of any covariance, to one in a thousand. Seconds are of processor time, all three together.",
        f"Over the bound: error over what no ({EPSILON}, {DELTA})-private mechanism goes below (docs/theory, T102), computed numerically, "
        "with the analytic calibration of c². The last column is what the paper's Theorem 3.11 claims up to a constant, n counts answers; "
        "for the optimal covariance the ratio does not depend on the query.",
        f"Pure: the same at epsilon = {EPSILON}, delta = 0. Where the counts follow from the answers, as here, K-norm noise is Laplace "
        "noise on the counts. Its split needs facets of hulls, too many from n = 16 on; a chain could draw, but has no known error.",
    ]
