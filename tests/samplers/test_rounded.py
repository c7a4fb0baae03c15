"""All rounded projections: unbiased and private by exact enumeration, shifts, margins, the same draws by oracle and fast form, fits."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from math import exp, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.lattices import algebra
from holdfast.randomness import NoiseKey
from holdfast.samplers import rounded_projection
from holdfast.samplers.nearest_plane import NearestPlane
from holdfast.samplers.protocol import BlockSampler
from holdfast.samplers.rounded_projection import Coin, RoundedGrid, RoundedGrid2, RoundedOneSum, RoundedSampler, WordCoins
from holdfast.testing import ListedWords, check_fit_categories, fits

Vector = tuple[int, ...]


def differences(n: int) -> NDArray[Any]:
    return np.eye(n, n - 1, dtype=np.int64) - np.eye(n, n - 1, k=-1, dtype=np.int64)


def grid_basis(shape: tuple[int, ...]) -> NDArray[Any]:
    basis = np.ones((1, 1), dtype=np.int64)
    for size in shape:
        basis = np.kron(basis, differences(size))
    return basis


LARGE = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis([[2, -3, 1, 0], [0, 1, 2, -3]])))
SAMPLERS: dict[str, tuple[RoundedSampler, NDArray[Any]]] = {
    "one sum of 2": (RoundedOneSum(2, 1), differences(2)),
    "one sum of 3": (RoundedOneSum(3, 1), differences(3)),
    "one sum of 5": (RoundedOneSum(5, "1/3"), differences(5)),
    "controlled 2 x 2": (RoundedGrid2((2, 2), 1), grid_basis((2, 2))),
    "controlled 2 x 3": (RoundedGrid2((2, 3), 1), grid_basis((2, 3))),
    "controlled 3 x 3": (RoundedGrid2((3, 3), "1/4"), grid_basis((3, 3))),
    "grid 4": (RoundedGrid((4,), 1), grid_basis((4,))),
    "grid 3 x 3": (RoundedGrid((3, 3), "1/4"), grid_basis((3, 3))),
    "grid 2 x 2 x 2": (RoundedGrid((2, 2, 2), 1), grid_basis((2, 2, 2))),
    "grid 2 x 3 x 2": (RoundedGrid((2, 3, 2), "1/4"), grid_basis((2, 3, 2))),
    "plane, one sum of 3": (NearestPlane(differences(3), 1), differences(3)),
    "plane, free cells": (NearestPlane(np.eye(2, dtype=np.int64), 1), np.eye(2, dtype=np.int64)),
    "plane, large numbers": (NearestPlane(LARGE, "1/4"), LARGE),
    "plane, 2 x 3": (NearestPlane(grid_basis((2, 3)), 1), grid_basis((2, 3))),
}


class Beyond(Exception):
    """A coin was thrown that the path does not lay down."""


def enumerate_coins(run: Callable[[Coin], list[int]]) -> dict[Vector, Fraction]:
    """The exact law of what `run` returns, over all falls of its coins."""
    law: dict[Vector, Fraction] = defaultdict(Fraction)
    paths: list[list[tuple[bool, Fraction]]] = [[]]
    while paths:
        path = paths.pop()
        left = list(path)

        def coin(numerator: int, denominator: int, left: list[tuple[bool, Fraction]] = left, path: Any = path) -> bool:
            assert 0 <= numerator <= denominator
            if numerator in (0, denominator):
                return numerator == denominator
            if not left:
                p = Fraction(numerator, denominator)
                paths.extend([[*path, (True, p)], [*path, (False, 1 - p)]])
                raise Beyond
            return left.pop(0)[0]

        try:
            law[tuple(run(coin))] += prod((p for _, p in path), start=Fraction(1))
        except Beyond:
            continue
    return law


def rounding_law(sampler: RoundedSampler, noise: Vector) -> dict[Vector, Fraction]:
    return enumerate_coins(lambda coin: sampler.round_one(list(noise), coin))


def projection(basis: NDArray[Any], noise: Vector) -> list[Fraction]:
    """B (B^T B)^-1 B^T e, by solving exactly."""
    B = algebra.as_matrix(basis)
    gram = B.transpose() * B
    solution, denominator = algebra.solve(gram, B.transpose() * algebra.as_matrix([[value] for value in noise]))
    moved = B * solution
    return [Fraction(int(moved[i, 0]), int(denominator)) for i in range(B.nrows())]


def noises(cells: int, count: int, name: str) -> list[Vector]:
    words = NoiseKey.for_tests("rounded").stream(name)
    return [tuple(row) for row in RoundedOneSum(cells, "1/3").law.draw(count * cells, words).reshape(count, cells).tolist()]


@pytest.mark.parametrize("name", SAMPLERS)
def test_rounding_is_unbiased_and_stays_in_the_lattice(name: str) -> None:
    sampler, basis = SAMPLERS[name]
    for noise in noises(sampler.cells, 12, name):
        law = rounding_law(sampler, noise)
        assert sum(law.values()) == 1
        mean = [sum((p * z[i] for z, p in law.items()), Fraction(0)) for i in range(sampler.cells)]
        assert mean == projection(basis, noise)
        for z in law:
            algebra.coordinates(basis, z)  # raises outside the lattice


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name.startswith(("controlled", "one sum"))])
def test_controlled_rounding_moves_every_cell_by_less_than_one(name: str) -> None:
    sampler, basis = SAMPLERS[name]
    for noise in noises(sampler.cells, 12, name):
        target = projection(basis, noise)
        assert all(abs(value - u) < 1 for z in rounding_law(sampler, noise) for value, u in zip(z, target, strict=True))


@pytest.mark.parametrize("name", SAMPLERS)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_rounding_commutes_with_shifts_by_the_lattice(name: str, data: st.DataObject) -> None:
    sampler, basis = SAMPLERS[name]
    noise = np.array(data.draw(st.lists(st.integers(-50, 50), min_size=sampler.cells, max_size=sampler.cells)))
    v = np.array(data.draw(st.lists(st.integers(-1000, 1000), min_size=basis.shape[1], max_size=basis.shape[1])))
    shift = basis @ v
    words = [NoiseKey.for_tests("shift").stream(name) for _ in range(4)]
    plain, moved = sampler.round(noise[None], words[0])[0], sampler.round((noise + shift)[None], words[1])[0]
    assert np.array_equal(moved, plain + shift)
    assert words[0].position == words[1].position
    coins = [WordCoins(words[2]), WordCoins(words[3])]
    assert sampler.round_one(noise.tolist(), coins[0]) == plain.tolist()
    assert sampler.round_one((noise + shift).tolist(), coins[1]) == moved.tolist()


def loss_is_bounded(sampler: RoundedSampler, moves: list[Vector], reach: int) -> bool:
    """Whether P[y | x] <= a^-|v| P[y | x + v] for all y and moves v, a = exp(-epsilon) being replaced by 1/2.

    Both sides are summed over the same t = x + e in a box around x = 0: what the mechanism sees. If the rounding commutes with shifts the
    inequality holds term by term, so the box costs nothing.
    """
    a = Fraction(1, 2)
    laws: dict[Vector, dict[Vector, Fraction]] = {}

    def output(x: Vector) -> dict[Vector, Fraction]:
        out: dict[Vector, Fraction] = defaultdict(Fraction)
        for t in product(range(-reach, reach + 1), repeat=sampler.cells):
            e = tuple(p - q for p, q in zip(t, x, strict=True))
            if e not in laws:
                laws[e] = rounding_law(sampler, e)
            for z, p in laws[e].items():
                out[tuple(p + q for p, q in zip(x, z, strict=True))] += a ** sum(map(abs, e)) * p
        return out

    home = output((0,) * sampler.cells)
    for v in moves:
        away, factor = output(v), (1 / a) ** sum(map(abs, v))
        if any(p > factor * away.get(y, Fraction(0)) for y, p in home.items()):
            return False
    return True


PRIVATE = {
    "one sum of 2": (RoundedOneSum(2, 1), differences(2), 4),
    "one sum of 3": (RoundedOneSum(3, 1), differences(3), 3),
    "controlled 2 x 2": (RoundedGrid2((2, 2), 1), grid_basis((2, 2)), 2),
    "grid 2 x 2": (RoundedGrid((2, 2), 1), grid_basis((2, 2)), 2),
    "plane, one sum of 3": (NearestPlane(differences(3), 1), differences(3), 3),
}


@pytest.mark.ordinary("one sum", "controlled")
@pytest.mark.parametrize("name", PRIVATE)
def test_pure_privacy_by_enumeration(name: str) -> None:
    sampler, basis, reach = PRIVATE[name]
    moves = [tuple((basis @ v).tolist()) for v in product(range(-1, 2), repeat=basis.shape[1]) if any(v)]
    assert loss_is_bounded(sampler, moves, reach)
    # Rounding to 2L is unbiased too and uses nothing but the kept totals, yet it publishes x modulo 2.
    doubled = NearestPlane(2 * basis, 1)
    assert all(
        sum(p * z[0] for z, p in rounding_law(doubled, e).items()) == projection(basis, e)[0] for e in noises(sampler.cells, 3, name)
    )
    assert not loss_is_bounded(doubled, moves, reach)


@pytest.mark.parametrize("name", ["grid 3 x 3", "grid 2 x 2 x 2", "grid 2 x 3 x 2"])
def test_the_grid_recursion_is_nearest_plane_in_the_order_of_cells(name: str) -> None:
    """The basis of differences vanishes before its first cell; taken backwards, the last direction decides the first cell."""
    sampler, basis = SAMPLERS[name]
    plane = NearestPlane(basis[:, ::-1], 1)
    for noise in noises(sampler.cells, 6, name):
        assert rounding_law(sampler, noise) == rounding_law(plane, noise)


@pytest.mark.ordinary("one sum", "controlled", "grid 4", "2 x 2 x 2", "plane")
@pytest.mark.parametrize("name", SAMPLERS)
def test_plain_and_fast_forms_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, _ = SAMPLERS[name]
    fast_words, plain_words = (NoiseKey.for_tests("forms").stream(name) for _ in range(2))
    fast = sampler.draw(700, fast_words)
    monkeypatch.setattr(type(sampler), "worth_compiling", lambda self, cells: False)
    assert np.array_equal(sampler.draw(700, plain_words), fast)
    assert fast_words.position == plain_words.position


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (4, 1, 3), (7, 11), (13, 4, 2), (2, 2, 2, 3)])
def test_forms_agree_and_sums_vanish_on_other_grids(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[type[RoundedGrid] | type[RoundedGrid2]] = [RoundedGrid, RoundedGrid2] if len(shape) == 2 else [RoundedGrid]
    for kind in kinds:
        sampler = kind(shape, "1/5")
        with monkeypatch.context() as patch:
            patch.setattr(kind, "worth_compiling", lambda self, cells: True)
            fast = sampler.draw(20, NoiseKey.for_tests("grids").stream(0))
            patch.setattr(kind, "worth_compiling", lambda self, cells: False)
            assert np.array_equal(sampler.draw(20, NoiseKey.for_tests("grids").stream(0)), fast)
        for axis in range(1, len(shape) + 1):
            assert not fast.reshape(20, *shape).sum(axis=axis).any()


def test_a_long_rounding_stops_for_signals_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One table of many cells was one compiled call, which answers none; in many calls it gives the same from the same words."""
    sampler = RoundedGrid2((7, 11), "1/5")
    calls: list[None] = []
    plain = rounded_projection.run_with_coins

    def counted(*given: Any) -> int:
        calls.append(None)
        return plain(*given)

    at_once, in_steps = (NoiseKey.for_tests("steps").stream(0) for _ in range(2))
    noise = np.random.default_rng(0).integers(-9, 10, size=(3, 77))
    whole = sampler.round_fast(noise, at_once)
    monkeypatch.setattr(rounded_projection, "MOST_MOVED", np.int64(10))
    monkeypatch.setattr(rounded_projection, "run_with_coins", counted)
    assert np.array_equal(sampler.round_fast(noise, in_steps), whole)
    assert in_steps.position == at_once.position
    assert len(calls) > 3 * 77 // 10


@pytest.mark.parametrize("verdict", [False, True])
def test_open_coins_read_extra_bits_of_their_word(verdict: bool) -> None:
    """Words equal to floor(2^32 a / b) leave a coin of a / b open; extra bits all zero or all one settle it."""
    extra = 0 if verdict else 2**32 - 1
    third = 2**32 // 3

    def run(sampler: RoundedSampler, noise: list[int], words: list[int]) -> list[int]:
        fast = sampler.round_fast(np.array([noise]), ListedWords(words, default_extra=extra))[0].tolist()
        assert fast == sampler.round_one(noise, WordCoins(ListedWords(words, default_extra=extra)))
        return list(fast)

    # The first cell's coin is 1/3; then either none is left to lower or a coin of 1/2 comes, whose word 0 says yes.
    assert run(RoundedOneSum(3, 1), [1, 0, 0], [third, 0, 0]) == ([0, 0, 0] if verdict else [1, -1, 0])
    # e_0 - (sum)/3 = 2/3, rounded at the last direction of the basis; then 1/2 or so.
    run(NearestPlane(differences(3), 1), [1, 0, 0], [third, 2**31])
    run(NearestPlane(differences(3), 1), [1, 0, 0], [2 * 2**32 // 3, 2**31])
    run(RoundedGrid((3,), 1), [1, 0, 0], [2 * 2**32 // 3, 2**31, 0])
    run(RoundedGrid2((3, 3), 1), [1, 0, 0, 0, 0, 0, 0, 0, 0], [third] * 9)
    run(RoundedGrid2((3, 3), 1), [1, 0, 0, 0, 0, 0, 0, 0, 0], [2**32 * 4 // 9, 2**32 // 5, third] * 3)


def test_an_open_coin_with_nothing_left_is_not_below() -> None:
    """A coin of 1/2 and the word 2^31: U >= 1/2 whatever follows."""
    for sampler in (RoundedGrid2((2, 2), 1), NearestPlane(np.eye(4, dtype=np.int64), 1)):
        words = ListedWords([2**31] * 4)
        assert sampler.round_fast(np.array([[2, 0, 0, 0]]), words).tolist() == [
            sampler.round_one([2, 0, 0, 0], WordCoins(ListedWords([2**31] * 4)))
        ]


def test_numbers_beyond_64_bits_go_through_python_integers() -> None:
    noise = np.array([[2**61, -(2**60), 5, 17, 3, 2]])
    for sampler in (RoundedOneSum(6, 1), RoundedGrid2((2, 3), 1), RoundedGrid((3, 2), 1), NearestPlane(differences(6), 1)):
        assert not sampler.fits(2**61)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(sampler), "worth_compiling", lambda self, cells: True)
            rounded = sampler.round(noise, NoiseKey.for_tests("long").stream(0))[0]
        assert sum(rounded.tolist()) == 0


def one_sum_law(epsilon: float, reach: int) -> dict[Vector, float]:
    """z for three cells: every e in a box, every set to lower."""
    e = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.exp(-epsilon * np.abs(e).sum(axis=1))
    quotient, rest = np.divmod(e.sum(axis=1), 3)
    law: dict[Vector, float] = defaultdict(float)
    for r in range(3):
        chosen = [np.isin(np.arange(3), cells).astype(np.int64) for cells in combinations(range(3), r)]
        for lowered in chosen:
            z = (e - quotient[:, None])[rest == r] - lowered
            for key, weight in zip(map(tuple, z.tolist()), (weights[rest == r] / len(chosen)).tolist(), strict=True):
                law[key] += weight
    return _normalised(law)


def two_by_two_law(epsilon: float, reach: int) -> dict[Vector, float]:
    """z = k (1, -1, -1, 1), k a neighbour of s / 4, s the alternating sum of four independent cells: a sum of them, by symmetry."""
    cell = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
    cell /= cell.sum()
    sums = np.convolve(np.convolve(cell, cell), np.convolve(cell, cell))
    law: dict[Vector, float] = defaultdict(float)
    for s, p in zip(range(-4 * reach, 4 * reach + 1), sums.tolist(), strict=True):
        down, rest = divmod(s, 4)
        law[(down, -down, -down, down)] += p * (4 - rest) / 4
        law[(down + 1, -down - 1, -down - 1, down + 1)] += p * rest / 4
    return _normalised(law)


def large_numbers_law(epsilon: float, reach: int) -> dict[Vector, float]:
    """Every e in a box, every fall of the oracle's coins."""
    sampler = NearestPlane(LARGE, 3)
    law: dict[Vector, float] = defaultdict(float)
    for e in product(range(-reach, reach + 1), repeat=4):
        weight = exp(-epsilon * sum(map(abs, e)))
        if weight < 1e-14:
            continue  # together below 1e-10
        for z, p in rounding_law(sampler, e).items():
            law[z] += weight * float(p)
    return _normalised(law)


def _normalised(law: dict[Vector, float]) -> dict[Vector, float]:
    total = sum(law.values())
    return {z: law[z] / total for z in sorted(law, key=lambda z: (sum(abs(value) for value in z), z))}


FITS: dict[str, tuple[Callable[[Any], RoundedSampler], Callable[[float, int], dict[Vector, float]], int, int, Fraction]] = {
    "one sum of 3": (lambda epsilon: RoundedOneSum(3, epsilon), one_sum_law, 1, 24, Fraction(51, 50)),
    "controlled 2 x 2": (lambda epsilon: RoundedGrid2((2, 2), epsilon), two_by_two_law, 1, 30, Fraction(51, 50)),
    "grid 2 x 2": (lambda epsilon: RoundedGrid((2, 2), epsilon), two_by_two_law, 1, 30, Fraction(51, 50)),
    "plane, large numbers": (lambda epsilon: NearestPlane(LARGE, epsilon), large_numbers_law, 3, 8, Fraction(153, 50)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FITS)
def test_fit_against_the_enumerated_law_and_power(name: str) -> None:
    """Two per cent in epsilon must be noticed."""
    make, law_of, epsilon, reach, wrong = FITS[name]
    law = law_of(float(epsilon), reach)
    n = 400_000

    draws = make(epsilon).draw(n, NoiseKey.for_tests("fit").stream(name))
    offset = int(np.abs(draws).max())
    keys, first, number = np.unique(draws @ (2 * offset + 1) ** np.arange(draws.shape[1]), return_index=True, return_counts=True)
    counts = dict(zip(map(tuple, draws[first].tolist()), number.tolist(), strict=True))
    assert len(counts) == len(keys)
    last = list(law)[-1]
    for z in [z for z in counts if z not in law]:  # beyond the box: below 1e-9 of the mass
        counts[last] = counts.get(last, 0) + counts.pop(z)
    check_fit_categories(counts, law, name=f"rounded projection, {name}")
    sizes: dict[int, float] = defaultdict(float)
    for z, p in law.items():
        sizes[sum(map(abs, z))] += p
    stretched = np.abs(make(wrong).draw(n, NoiseKey.for_tests("fit").stream(name))).sum(axis=1)
    assert not fits(stretched[stretched <= max(sizes)], sizes)


COVARIANCE_N = 100_000


@pytest.mark.parametrize("kind", [RoundedGrid2, RoundedGrid])
def test_covariance_of_a_four_by_four_table(kind: Any) -> None:
    """Variance along a direction is that of the projection plus something between 0 and (1/4) sum <b*_i, direction>^2 ([theory R1]0).

    The mean of n squares of known mean 0 misses its expectation by more than 7 of its standard deviations with probability about 1e-12; 19
    directions, two sides. For controlled rounding a single cell's rounding variance is f (1 - f) <= 1/4.
    """
    epsilon = Fraction(1, 4)
    sampler = kind((4, 4), epsilon)
    draws = sampler.draw(COVARIANCE_N, NoiseKey.for_tests("covariance").stream(kind.__name__))
    a = exp(-float(epsilon))
    cell_variance = 2 * a / (1 - a) ** 2
    centre = np.eye(4) - 0.25
    projector = np.kron(centre, centre)
    q, r = np.linalg.qr(grid_basis((4, 4))[:, ::-1].astype(np.float64))
    stars = q * np.diag(r)
    directions = [
        *np.eye(16),
        np.kron([1, -1, 0, 0], [1, -1, 0, 0]),
        np.kron([1, 1, -1, -1], [1, -1, 1, -1]),
        np.kron([0, 0, 1, -1], [0, 0, 1, -1]),
    ]
    for place, direction in enumerate(directions):
        squares = (draws @ direction) ** 2
        mean, deviation = float(squares.mean()), float(squares.std()) / COVARIANCE_N**0.5
        least = cell_variance * float(direction @ projector @ direction)
        most = 0.25 * float(((stars.T @ direction) ** 2).sum())
        if kind is RoundedGrid2:
            most = 0.25 * float(np.abs(direction).sum()) ** 2 if place >= 16 else 0.25
        assert least - 7 * deviation <= mean <= least + most + 7 * deviation


def test_every_class_is_a_block_sampler() -> None:
    samplers: list[BlockSampler] = [RoundedOneSum(4, 1), RoundedGrid2((2, 2), 1), RoundedGrid((2, 2), 1), NearestPlane(differences(4), 1)]
    for sampler in samplers:
        assert sampler.cells == 4
        assert sampler.expected_tries == 1
        assert sampler.name == "projection and unbiased rounding"
        assert sampler.draw(0, NoiseKey.for_tests("none").stream(0)).shape == (0, 4)


def test_small_first_draws_do_not_load_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, rounded_projection._MODULE, raising=False)
    assert rounded_projection.compiled_for(100) is None
    assert rounded_projection.compiled_for(10**4) is not None


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one cell"):
        RoundedOneSum(0, 1)
    with pytest.raises(InexactParameter):
        RoundedOneSum(3, 0.1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="two-way"):
        RoundedGrid2((2, 2, 2), 1)
    with pytest.raises(InvalidParameter, match="one axis or more"):
        RoundedGrid((3, 0), 1)
    with pytest.raises(InvalidParameter, match="at least one column"):
        NearestPlane(np.zeros((3, 0), dtype=np.int64), 1)
