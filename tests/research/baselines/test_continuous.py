"""Continuous noise given totals: laws by fit, [GGY22] Theorem 4.2 without rounding, and no way into a release."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter, NoExactSampler
from holdfast.research.baselines import ContinuousConditional, l2
from holdfast.testing.fit import check_fit, fits

ROWS = np.array([[1, 1, 1, 0], [0, 0, 1, 1]])


def projection(rows: np.ndarray) -> list[list[Fraction]]:
    """I - A^T (A A^T)^-1 A in fractions: the covariance of a projected spherical Gaussian of variance 1."""
    A = [[Fraction(int(a)) for a in row] for row in rows]
    gram = [[sum((a * b for a, b in zip(r, s, strict=True)), Fraction(0)) for s in A] for r in A]
    solved = solve(gram, A)
    d = rows.shape[1]
    return [[Fraction(int(i == j)) - sum((A[k][i] * solved[k][j] for k in range(len(A))), Fraction(0)) for j in range(d)] for i in range(d)]


def solve(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    table = [[*a, *b] for a, b in zip(left, right, strict=True)]
    for i in range(len(table)):
        pivot = next(r for r in range(i, len(table)) if table[r][i])
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [v / table[i][i] for v in table[i]]
        for r in range(len(table)):
            if r != i:
                table[r] = [a - table[r][i] * b for a, b in zip(table[r], table[i], strict=True)]
    return [row[len(left) :] for row in table]


def conditional_covariance(variances: list[Fraction], moves: np.ndarray) -> list[list[Fraction]]:
    """Of independent Gaussians given that they are a move z = B v: density exp(-v^T B^T D^-1 B v / 2), covariance B (B^T D^-1 B)^-1 B^T."""
    B = [[Fraction(int(b)) for b in row] for row in moves]
    m = len(B[0])
    precision = [[sum((row[i] * row[j] / v for row, v in zip(B, variances, strict=True)), Fraction(0)) for j in range(m)] for i in range(m)]
    turned = solve(precision, [[row[i] for row in B] for i in range(m)])
    return [[sum((row[i] * turned[i][j] for i in range(m)), Fraction(0)) for j in range(len(B))] for row in B]


class TestProjectionAndConditioning:
    """[GGY22] Theorem 4.2."""

    @pytest.mark.parametrize(
        "rows", [np.ones((1, 3), dtype=int), ROWS, np.array([[1, -2, 3, 0], [0, 1, 1, 5]])], ids=["sum", "two", "signs"]
    )
    def test_a_spherical_gaussian_gives_one_law(self, rows: np.ndarray) -> None:
        """Both are centred Gaussians; their covariances are equal as fractions."""
        moves = hf.Lattice(rows).basis
        assert conditional_covariance([Fraction(1)] * rows.shape[1], moves) == projection(rows)

    def test_a_gaussian_that_is_not_spherical_gives_two(self) -> None:
        """Variances 1, 1, 4 under one total: (P D P) is not the conditional covariance."""
        D, P = [Fraction(1), Fraction(1), Fraction(4)], projection(np.ones((1, 3)))
        projected = [[sum((P[i][k] * D[k] * P[k][j] for k in range(3)), Fraction(0)) for j in range(3)] for i in range(3)]
        assert conditional_covariance(D, hf.Lattice([[1, 1, 1]]).basis) != projected

    def test_laplace_gives_two(self) -> None:
        """Two cells: projecting doubles the variance that conditioning has, and drawn tables show it."""
        projected = np.array([l2(u, [[1, 1]], [0]).values[0] for u in np.random.default_rng(3).laplace(size=(8_000, 2))])
        edges = np.arange(41) / 4
        tails = np.exp(-2 * edges) / 2  # conditioned: density exp(-2 |u|)
        right = [*(tails[:-1] - tails[1:]), tails[-1]]
        law = np.array([*right[::-1], *right])
        conditioned = ContinuousConditional(1).sample([0, 0], [[1, 1]], 20_000, seed=4)[:, 0]
        check_fit(_bins(conditioned), law, offset=-41, name="continuous Laplace given a total of two cells")
        assert not fits(_bins(projected), law, offset=-41)


def _bins(u: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.floor(u * 4), -41, 40).astype(np.int64))


class TestContinuousConditional:
    def test_totals_and_bounds_hold(self) -> None:
        x = np.array([3.0, 0.0, 2.0, 5.0])
        drawn = ContinuousConditional("1/2").sample(x, ROWS, 500, seed=1, lower=0, upper=6)
        assert drawn.shape == (500, 4)
        assert np.allclose(drawn @ ROWS.T, ROWS @ x)
        assert drawn.min() >= 0
        assert drawn.max() <= 6

    def test_a_bounded_line_follows_its_density(self) -> None:
        """Two cells, total 4, both at least 0, from (1, 3): density exp(-2 epsilon |u - 1|) on [0, 4]; twelve bins by integration."""
        drawn = ContinuousConditional("1/4").sample([1, 3], [[1, 1]], 40_000, seed=5, lower=0)[:, 0]
        primitive = np.array([np.sign(t) * (1 - np.exp(-abs(t) / 2)) for t in np.linspace(0, 4, 13) - 1])
        law = np.diff(primitive) / (primitive[-1] - primitive[0])
        bins = np.minimum((drawn * 3).astype(np.int64), 11)
        check_fit(bins, law, name="continuous Laplace given a total and bounds")
        assert not fits(bins, np.full(12, 1 / 12))
        wrong = np.exp(-0.6 * np.abs(np.linspace(0, 4, 13)[:-1] + 1 / 6 - 1))
        assert not fits(bins, wrong / wrong.sum())

    def test_two_pivots_follow_the_density(self) -> None:
        """One free dimension with two rows over three cells: z = (t, -t, t), density exp(-3 epsilon |t|)."""
        drawn = ContinuousConditional(1).sample([0, 0, 0], [[1, 1, 0], [0, 1, 1]], 20_000, seed=6)
        assert np.allclose(drawn[:, 0], drawn[:, 2])
        tails = np.exp(-3 * np.arange(41) / 4) / 2
        right = [*(tails[:-1] - tails[1:]), tails[-1]]
        check_fit(_bins(drawn[:, 0]), np.array([*right[::-1], *right]), offset=-41, name="continuous Laplace with two rows")

    def test_it_is_no_mechanism(self) -> None:
        law = ContinuousConditional("1/4")
        assert law.status == "floating point"
        assert not hasattr(law, "guarantee")
        table = hf.Table(hf.Universe.product({"sex": ["F", "M"]}), np.array([3, 4]))
        with pytest.raises(InvalidParameter, match="needs a mechanism"):
            hf.plan(table, [hf.total()], law)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="needs a mechanism"):
            hf.release(table, [hf.total()], law, ledger=None)  # type: ignore[call-overload]

    def test_weights(self) -> None:
        assert ContinuousConditional("1/2").log_weight([1, 3], [2, 2]) == -1

    def test_bounds_that_exclude_the_table_are_refused_without_a_value(self) -> None:
        with pytest.raises(InvalidParameter, match="outside the bounds") as refusal:
            ContinuousConditional("1/2").sample([1, 917], [[1, 1]], 10, seed=1, upper=5)
        assert "917" not in str(refusal.value)

    def test_a_narrow_case_is_given_up(self) -> None:
        with pytest.raises(NoExactSampler, match="Too few"):
            ContinuousConditional("1/1000").sample(np.zeros(400), np.ones((1, 400)), 10_000, seed=1, lower=0)
