"""The one-sum Laplace sampler: pieces enumerated exactly, the compiled loop against its oracle, then fits that a law 1 % off fails."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import gammaln

from holdfast.errors import InvalidParameter, PrecisionExhausted
from holdfast.exact import Geometric
from holdfast.exact.balls import enclosure, precision
from holdfast.randomness import NoiseKey
from holdfast.samplers import _one_sum_compiled as compiled
from holdfast.samplers import one_sum_laplace
from holdfast.samplers.one_sum_laplace import MANY_DRAWS, OneSumLaplace, one_sum_laplace_oracle
from holdfast.samplers.protocol import BlockSampler
from holdfast.testing import ALPHA, ListedWords, check_brackets, check_fit, check_fit_categories, chi_square_p_value, fits
from tests.examples import examples
from tests.testing.explore import Path, Undecided, choose_coin, explore_choices

QUARTER, ONE, THREE = Fraction(1, 4), Fraction(1), Fraction(3)


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


# --- the pieces, exactly ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [2, 3])
def test_moved_stars_keep_every_composition_equally_likely(cells, monkeypatch) -> None:
    """`move_total` itself, run on every path of choices with rational chances, from every total below 6 to every total below 6."""

    class Fork(Exception):
        pass

    def law_of_moves(start: tuple[int, ...], target: int) -> dict[tuple[int, ...], Fraction]:
        law: dict[tuple[int, ...], Fraction] = {}
        open_paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
        while open_paths:
            path, mass = open_paths.pop()
            left = list(path)
            weights: list[int] = []

            def choose(stars, gain, bound, words, one_word_bound, left=left, weights=weights):
                assert max(stars) + gain <= bound
                if left:
                    return left.pop(0)
                weights.extend(value + gain for value in stars)
                raise Fork

            monkeypatch.setattr(one_sum_laplace, "weighted_cell", choose)
            stars = list(start)
            try:
                one_sum_laplace.move_total(stars, target, ListedWords([]), 1 << 30)
                law[tuple(stars)] = law.get(tuple(stars), Fraction(0)) + mass
            except Fork:
                open_paths += [((*path, i), mass * Fraction(w, sum(weights))) for i, w in enumerate(weights) if w]
        return law

    for total, target in product(range(6), repeat=2):
        starts = list(compositions(total, cells))
        mixed: dict[tuple[int, ...], Fraction] = {}
        for start in starts:
            for end, mass in law_of_moves(start, target).items():
                mixed[end] = mixed.get(end, Fraction(0)) + mass / len(starts)
        count = math.comb(target + cells - 1, target)
        assert mixed == dict.fromkeys(compositions(target, cells), Fraction(1, count))


@pytest.mark.parametrize("one_word_bound", [1 << 30, 1])
def test_every_word_gives_each_cell_and_number_equally_often(one_word_bound, monkeypatch) -> None:
    """Words of five bits, all pairs of them: pairs (cell, number) that are kept come equally often, for every shape."""
    monkeypatch.setattr(one_sum_laplace, "_WHOLE", 32)
    for cells, bound in product(range(1, 6), repeat=2):
        counts: dict[tuple[int, int], int] = {}
        for pair in product(range(32), repeat=2):
            place = one_sum_laplace.uniform_place(cells, bound, ListedWords(list(pair)), one_word_bound)
            if place is not None:
                counts[place] = counts.get(place, 0) + 1
        assert counts.keys() == set(product(range(cells), range(bound)))
        assert len(set(counts.values())) == 1


@pytest.mark.parametrize(("cells", "gain"), [(2, 0), (3, 0), (3, 1)])
def test_a_cell_is_chosen_in_proportion_to_its_weight(cells, gain, monkeypatch) -> None:
    """Over all (cell, number) of one round the chosen cells come as often as their weights say; the other rounds start again."""

    class Again(Exception):
        pass

    for stars in product(range(4), repeat=cells):
        for bound in range(max(stars) + gain, 6):
            chosen = [0] * cells
            for pair in product(range(cells), range(bound)):
                places = [pair]

                def next_place(*_, places=places):
                    if not places:
                        raise Again
                    return places.pop()

                monkeypatch.setattr(one_sum_laplace, "uniform_place", next_place)
                try:
                    chosen[one_sum_laplace.weighted_cell(list(stars), gain, bound, ListedWords([]), 1)] += 1
                except Again:
                    continue
            assert chosen == [value + gain for value in stars]


@pytest.mark.parametrize(("cells", "epsilon"), [(2, Fraction(2)), (3, THREE)])
def test_all_likely_paths_bracket_the_law(cells, epsilon, monkeypatch) -> None:
    """The oracle from beginning to end, geometric values, verdicts and stars being choices of certified probability."""
    sampler = OneSumLaplace(cells, epsilon)
    with precision(256):
        a = (-arb(epsilon.numerator)).exp()
        chances = [(1 - a) * a**k for k in range(6)] + [a**6]

    def draw_geometrics(count, geometric, path) -> list[int]:
        values = []
        for _ in range(count):
            value = path.choose(chances)
            if value == 6:
                raise Undecided([])  # left open for good: mass neither here nor there
            values.append(value)
        return values

    def weighted_cell(stars, gain, bound, path, one_word_bound) -> int:
        weights = [value + gain for value in stars]
        return int(path.choose([arb(w) / sum(weights) for w in weights]))

    monkeypatch.setattr(one_sum_laplace, "draw_geometrics", draw_geometrics)
    monkeypatch.setattr(one_sum_laplace, "accepts", lambda probability, path: choose_coin(probability(), path))
    monkeypatch.setattr(one_sum_laplace, "weighted_cell", weighted_cell)

    def draw(path) -> tuple[int, ...]:
        assert isinstance(path, Path)
        return tuple(one_sum_laplace_oracle(cells, sampler.table, sampler.accept_probability, path))  # type: ignore[arg-type]

    lower, upper = explore_choices(draw, 10_000)
    with precision(200):
        a2 = (-arb(2 * epsilon.numerator)).exp()
        # Vectors with |z|_1 = 2 r > 0: two on two cells, 6 r on three (a hexagon).
        shell = (lambda r: 2) if cells == 2 else (lambda r: 6 * r)
        total = 1 + sum((shell(r) * a2**r for r in range(1, 60)), arb(0)) + arb(0, 2.0**-200)

        def chance(z: tuple[int, ...]) -> tuple[Fraction, Fraction]:
            return enclosure(a2 ** (sum(map(abs, z)) // 2) / total)

        check_brackets(lower, upper, chance)
    assert upper[(0,) * cells] - lower[(0,) * cells] < Fraction(1, 100)
    assert len(lower) > 6


@pytest.mark.parametrize(("cells", "epsilon"), [(2, ONE), (3, QUARTER), (25, QUARTER), (7, THREE), (1000, ONE), (2, Fraction(1, 100))])
def test_tabled_verdicts_are_the_floors_of_the_ratio(cells, epsilon) -> None:
    """The table goes by a recurrence; here by binomials: NB(T) / NB(mode), and no total has more than the mode."""
    sampler = OneSumLaplace(cells, epsilon)
    mode = sampler.mode
    first, verdicts = sampler.tabled_verdicts
    assert first + len(verdicts) > mode >= first
    with precision(1000):
        a = (-arb(epsilon.numerator) / epsilon.denominator).exp()
        for total in {
            *range(first, first + len(verdicts), max(1, len(verdicts) // 50)),
            mode,
            mode + 1,
            max(mode - 1, 0),
        }:
            ratio = arb(math.comb(total + cells - 1, total)) / math.comb(mode + cells - 1, mode) * a ** (total - mode)
            assert ratio <= 1
            if total == mode:
                assert verdicts[total - first] == 1 << 32
            else:
                lower, upper = enclosure(ratio * arb(2) ** 32)
                assert math.floor(lower) == math.floor(upper) == verdicts[total - first]
            assert sampler.accept_probability(total)().overlaps(ratio)


def test_expected_tries_are_those_of_the_law() -> None:
    for cells, epsilon in ((2, ONE), (3, QUARTER), (25, QUARTER), (400, ONE), (10, Fraction(1, 50))):
        a = math.exp(-epsilon)
        sums = np.arange(int(60 * cells / epsilon))
        logs = gammaln(sums + cells) - gammaln(cells) - gammaln(sums + 1) - float(epsilon) * sums + cells * math.log1p(-a)
        weights = np.exp(logs)
        true = weights.max() / (weights**2).sum()
        assert OneSumLaplace(cells, epsilon).expected_tries == pytest.approx(true, rel=1e-3)
    assert OneSumLaplace(1, ONE).expected_tries == 1
    assert OneSumLaplace(10**7, QUARTER).expected_tries == pytest.approx(math.sqrt(2), rel=1e-3)


# --- the compiled loop against the oracle ----------------------------------------------------------------------------------------------


def oracle_rows(sampler: OneSumLaplace, n: int, words) -> NDArray[np.int64]:
    assert sampler.table is not None
    rows = [
        one_sum_laplace_oracle(sampler.cells, sampler.table, sampler.accept_probability, words, sampler.one_word_bound) for _ in range(n)
    ]
    return np.array(rows, dtype=np.int64)


def adverse_words(sampler: OneSumLaplace, count: int, seed: int) -> ListedWords:
    """Random words, many of them equal to thresholds of cells or verdicts, whose extra bits often equal the finer thresholds too."""
    assert sampler.table is not None
    rng = np.random.default_rng(seed)
    table = sampler.table
    verdicts = sampler.tabled_verdicts[1]
    near = np.concatenate([table.high.astype(np.int64)[:8], verdicts[verdicts < 1 << 32]])
    chosen = np.where(rng.random(count) < 0.3, rng.choice(near, count), rng.integers(0, 1 << 32, count))

    def extra(index: int, depth: int) -> list[int]:
        own = np.random.default_rng([seed, index, depth])
        first = int(own.choice(table.thresholds[:8])) & 0xFFFFFFFF if own.random() < 0.5 else int(own.integers(0, 1 << 32))
        return [first, *own.integers(0, 1 << 32, 3).tolist()]

    return ListedWords(chosen.astype(np.uint32), extra)


@settings(max_examples=examples(60), deadline=None)
@given(
    cells=st.integers(2, 12),
    epsilon=st.sampled_from([Fraction(1, 50), Fraction(1, 10), QUARTER, ONE, THREE]),
    seed=st.integers(0, 2**32),
    buffer_words=st.sampled_from([2, 3, 7, 64, 1 << 14]),
    narrow_limit=st.sampled_from([2, 5, 255]),
    one_word_bound=st.sampled_from([1, 20, 1 << 30]),
    tabled=st.booleans(),
)
def test_loop_and_oracle_agree_on_adverse_words(cells, epsilon, seed, buffer_words, narrow_limit, one_word_bound, tabled) -> None:
    """Open cells, open verdicts, words that run out anywhere, values that outgrow a byte, two words a star: same draws, same position."""
    sampler = OneSumLaplace(cells, epsilon)
    sampler.buffer_words, sampler.narrow_limit, sampler.one_word_bound = buffer_words, narrow_limit, one_word_bound
    slow, fast = adverse_words(sampler, 60_000, seed), adverse_words(sampler, 60_000, seed)
    expected = oracle_rows(sampler, 6, slow)
    sampler._draws = MANY_DRAWS if tabled else 0
    assert np.array_equal(sampler.draw(6, fast), expected)
    assert fast.position == slow.position


def test_adverse_words_do_meet_every_kind_of_stop() -> None:
    reasons = set()
    run = compiled.run

    class Watch:
        def __getattr__(self, name):
            return getattr(compiled, name)

        def run(self, *arguments):
            reason = run(*arguments)
            reasons.add(reason)
            return reason

    for narrow_limit, adverse in ((255, True), (2, False)):
        sampler = OneSumLaplace(6, ONE)
        sampler.narrow_limit = narrow_limit
        chosen = [adverse_words(sampler, 60_000, 1) if adverse else NoiseKey.for_tests("stops").stream("words") for _ in range(2)]
        out = np.empty((40, 6), dtype=np.int64)
        assert sampler.table is not None
        sampler.draw_compiled(Watch(), sampler.table, out, chosen[0])  # type: ignore[arg-type]
        assert np.array_equal(out, oracle_rows(sampler, 40, chosen[1]))
    assert reasons == {compiled.DONE, compiled.WANTS_WORDS, compiled.OPEN_CELL, compiled.OPEN_VERDICT, compiled.TOO_LARGE}


@pytest.mark.parametrize(
    ("cells", "epsilon"), [(2, QUARTER), (3, THREE), (25, QUARTER), (300, ONE), (40, Fraction(1, 30)), (5, Fraction(1, 10**5))]
)
def test_many_draws_are_single_draws_in_turn_whatever_the_buffer(cells, epsilon) -> None:
    """Also for the way with bars (the last)."""
    results, positions = [], []
    for buffer_words in (3, 100, 1 << 14):
        sampler = OneSumLaplace(cells, epsilon)
        sampler.buffer_words = buffer_words
        for pieces in ([12], [1] * 6 + [6]):
            with NoiseKey.for_tests("one sum in pieces").stream("words") as words:
                results.append(np.concatenate([sampler.draw(n, words) for n in pieces]))
                positions.append(words.position)
    assert all(np.array_equal(result, results[0]) for result in results)
    assert len(set(positions)) == 1


def test_cold_and_warm_processes_draw_the_same(monkeypatch) -> None:
    sampler = OneSumLaplace(9, QUARTER)
    with NoiseKey.for_tests("cold").stream("words") as words:
        warm = sampler.draw(50, words)
    monkeypatch.setattr(one_sum_laplace, "loops_for", lambda module, cells, threshold: None)
    with NoiseKey.for_tests("cold").stream("words") as words:
        assert np.array_equal(sampler.draw(50, words), warm)


def test_geometric_values_come_from_the_table_of_their_law() -> None:
    """The quick table says what the full one says, for a narrow and a wide law."""
    for epsilon in (QUARTER, Fraction(1, 100)):
        sampler = OneSumLaplace(20_000, epsilon)
        with NoiseKey.for_tests("quick").stream("words") as words:
            chunk = words.take(20_000)
        table = sampler.table
        assert table is not None
        scratch = np.empty((2, 20_000), dtype=sampler._quick.dtype)
        count, total = compiled.fill(chunk, 0, scratch, 1, 0, 20_000, sampler._quick, table.direct, table.high, table.low, table.shift)
        expected = Geometric(1 / epsilon).sampler().draw(20_000, ListedWords(chunk))
        assert np.array_equal(scratch[1, :count], expected[:count])
        assert total == expected[:count].sum()
        assert count > 19_000


# --- goodness of fit -------------------------------------------------------------------------------------------------------------------


def z_law(cells: int, epsilon: float) -> dict[int, float]:
    """The whole law on 2 or 3 cells, as {z_1 * 4096 + z_2: probability}; missing mass below e^-35."""
    reach = int(20 / epsilon) + 2
    law = {}
    for first in range(-reach, reach + 1):
        for second in range(-reach, reach + 1) if cells == 3 else (-first,):
            weight = math.exp(-epsilon * (abs(first) + abs(second) + abs(first + second)))
            law[first * 4096 + second] = weight
    total = math.fsum(law.values())
    return {key: weight / total for key, weight in law.items()}


def z_keys(draws: NDArray[np.int64]) -> NDArray[np.int64]:
    return draws[:, 0] * 4096 + draws[:, 1]


def signed_counts(cells: int, reach: int) -> NDArray[np.float64]:
    """counts[p, q]: vectors of so many cells whose positive entries sum to p and negative ones to -q."""
    counts = np.zeros((reach + 1, reach + 1))
    counts[0, 0] = 1
    for _ in range(cells):
        # A cell adds k > 0 to p, or to q, or nothing.
        up, down = np.zeros_like(counts), np.zeros_like(counts)
        up[1:] = np.cumsum(counts, axis=0)[:-1]
        down[:, 1:] = np.cumsum(counts, axis=1)[:, :-1]
        counts = counts + up + down
    return counts


def summary_law(cells: int, epsilon: float) -> dict[int, float]:
    """The law of (z_1, half of |z|_1), as {half * 4096 + z_1: probability}."""
    reach = int(35 / epsilon) + 8
    rest = signed_counts(cells - 1, reach)
    law = {}
    for half in range(reach + 1):
        for first in range(-half, half + 1):
            law[half * 4096 + first] = rest[half - max(first, 0), half - max(-first, 0)] * math.exp(-2 * epsilon * half)
    total = math.fsum(law.values())
    return {key: weight / total for key, weight in law.items()}


def summary_keys(draws: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.abs(draws).sum(axis=1) // 2 * 4096 + draws[:, 0])


def draw_many(cells: int, epsilon: Fraction, n: int, label: str) -> NDArray[np.int64]:
    with NoiseKey.for_tests("one sum").stream(label, cells, str(epsilon)) as words:
        return OneSumLaplace(cells, epsilon).draw(n, words)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [QUARTER, ONE, THREE], ids=str)
@pytest.mark.parametrize("cells", [2, 3, 5])
def test_small_blocks_follow_the_enumerated_law(cells, epsilon) -> None:
    """And not the law whose epsilon is 1 % off, on either side."""
    law, keys = (summary_law, summary_keys) if cells == 5 else (z_law, z_keys)
    n = {QUARTER: 4_000_000, ONE: 2_000_000, THREE: 8_000_000}[epsilon]
    draws = draw_many(cells, epsilon, n, "fit")
    assert not draws.sum(axis=1).any()
    seen, times = np.unique(keys(draws), return_counts=True)
    counts = dict(zip(seen.tolist(), times.tolist(), strict=True))
    check_fit_categories(counts, law(cells, float(epsilon)), name=f"one-sum Laplace, {cells} cells, epsilon {epsilon}")
    for off in (0.99, 1.01):
        wrong = law(cells, off * float(epsilon))
        assert counts.keys() <= wrong.keys()
        assert chi_square_p_value([counts.get(key, 0) for key in wrong], list(wrong.values()), n) < ALPHA


def mutant(cells: int, epsilon: float, n: int, wrong_step: str) -> NDArray[np.int64]:
    """The same algorithm in NumPy with stars added (or taken away) without regard to the weights; "none" is the right one."""
    rng = np.random.default_rng(5)
    sums = np.arange(int(40 * cells / epsilon))
    logs = gammaln(sums + cells) - gammaln(sums + 1) - epsilon * sums
    proposals = rng.geometric(1 - math.exp(-epsilon), (2 * n + 1000, cells)) - 1
    accepted = proposals[rng.random(len(proposals)) < np.exp(logs - logs.max())[proposals.sum(axis=1)]][:n]
    stars = rng.geometric(1 - math.exp(-epsilon), (n, cells)) - 1
    while True:
        gap = accepted.sum(axis=1) - stars.sum(axis=1)
        rows = np.flatnonzero(gap)
        if not len(rows):
            return np.asarray(accepted - stars)
        up = gap[rows, None] > 0
        weights = np.where(up, stars[rows] + 1, stars[rows]).astype(float)
        if wrong_step == "added":
            weights = np.where(up, 1.0, weights)
        if wrong_step == "taken":
            weights = np.where(up, weights, np.minimum(weights, 1.0))
        shares = np.cumsum(weights, axis=1)
        cell = (rng.random((len(rows), 1)) * shares[:, -1:] >= shares).sum(axis=1)
        stars[rows, cell] += np.where(up[:, 0], 1, -1)


@pytest.mark.long
@pytest.mark.parametrize(("cells", "epsilon"), [(2, 0.25), (3, 0.25), (5, 0.25), (3, 1.0), (5, 1.0)])
def test_the_fits_see_stars_moved_without_their_weights(cells, epsilon) -> None:
    law, keys = (summary_law, summary_keys) if cells == 5 else (z_law, z_keys)
    expected, n = law(cells, epsilon), 100_000 if epsilon < 1 else 300_000
    assert fits(keys(mutant(cells, epsilon, n, "none")), expected)
    assert not fits(keys(mutant(cells, epsilon, n, "added")), expected)
    assert not fits(keys(mutant(cells, epsilon, n, "taken")), expected)


def half_law(cells: int, epsilon: float) -> NDArray[np.float64]:
    """P[|z|_1 = 2 r]: choose i positive and j negative cells, split r among each."""
    halves = np.arange(1, int(cells / epsilon) + 200)[:, None, None]
    i, j = np.arange(1, cells)[None, :, None], np.arange(1, cells)[None, None, :]
    with np.errstate(invalid="ignore"):
        ways = gammaln(cells + 1) - gammaln(i + 1) - gammaln(j + 1) - gammaln(np.maximum(cells - i - j, -0.5) + 1)
    split = np.where(i <= halves, gammaln(halves) - gammaln(i) - gammaln(np.maximum(halves - i, 0) + 1), -np.inf)
    logs = np.where(i + j <= cells, ways + split + np.swapaxes(split, 1, 2) - 2 * epsilon * halves, -np.inf)
    weights = np.concatenate([[1.0 / np.exp(logs.max())], np.exp(logs - logs.max()).sum(axis=(1, 2))])
    return np.asarray(weights / weights.sum())


def cell_law(cells: int, epsilon: float) -> NDArray[np.float64]:
    """P[z_1 = k], k = -reach..reach: weight of k times that of a sum -k over the other cells, as differences of equal-shape sums."""
    reach = int(40 / epsilon)
    sums = np.arange(int(4 * cells / epsilon) + 40 * reach)
    logs = gammaln(sums + cells - 1) - gammaln(cells - 1) - gammaln(sums + 1) - epsilon * sums
    weights = np.exp(logs - logs.max())
    other = np.array([weights[: len(weights) - k] @ weights[k:] for k in range(reach + 1)])
    k = np.arange(-reach, reach + 1)
    law = np.exp(-epsilon * np.abs(k)) * other[np.abs(k)]
    return np.asarray(law / law.sum())


@pytest.mark.long
def test_larger_blocks_have_the_exact_law_of_a_cell_and_of_the_norm() -> None:
    """And not those of an epsilon 2 % off (a cell) or 1 % off (the norm)."""
    cells, epsilon = 40, QUARTER
    draws = draw_many(cells, epsilon, 1_000_000, "larger")
    assert not draws.sum(axis=1).any()
    halves = np.abs(draws).sum(axis=1) // 2
    for name, values, law, off in (("a cell", draws[:, 17].copy(), cell_law, 1.02), ("half the norm", halves, half_law, 1.01)):
        right, wrong = law(cells, 0.25), law(cells, 0.25 * off)
        offset = -(len(right) // 2) if name == "a cell" else 0
        check_fit(values, right, offset=offset, name=f"one-sum Laplace, {cells} cells, {name}")
        assert not fits(values, wrong, offset=-(len(wrong) // 2) if name == "a cell" else 0)


@pytest.mark.long
def test_wide_laws_go_by_bars_and_follow_the_law() -> None:
    """epsilon = 1/20000 on three cells: z_1 in steps of 2000 against its law, and not against a law 20 % off."""
    cells, epsilon, n = 3, Fraction(1, 20_000), 4_000
    sampler = OneSumLaplace(cells, epsilon)
    assert sampler.table is None
    with NoiseKey.for_tests("one sum").stream("wide") as words:
        draws = sampler.draw(n, words)
    assert not draws.sum(axis=1).any()

    def stepped(rate: float) -> dict[int, float]:
        # z_1 = k leaves exp(-rate |k|) times the weight of z_2 + z_3 = -k, which is (|k| + coth rate) exp(-rate |k|).
        k = np.abs(np.arange(-600_000, 602_000, dtype=np.float64))
        weights = (k + 1 / math.tanh(rate)) * np.exp(-2 * rate * k)
        mass = weights.reshape(-1, 2000).sum(axis=1) / weights.sum()
        return {i - 300: float(p) for i, p in enumerate(mass)}

    values = draws[:, 0] // 2000
    check_fit(values, stepped(float(epsilon)), name="one-sum Laplace with bars, 3 cells, epsilon 1/20000")
    assert not fits(values, stepped(float(epsilon) * 1.2))


# --- the rest --------------------------------------------------------------------------------------------------------------------------


def test_large_blocks_sum_to_zero_and_have_the_right_size() -> None:
    """A block of 300,000 cells at two epsilons; mean |z| within six standard errors of that of independent cells, 2 / (e^eps - e^-eps)."""
    for epsilon in (QUARTER, Fraction(1, 100)):
        z = draw_many(300_000, epsilon, 1, "large")[0]
        assert z.sum() == 0
        rate = float(epsilon)
        mean, variance = 1 / math.sinh(rate), 2 * math.exp(-rate) / (1 - math.exp(-rate)) ** 2
        assert abs(np.abs(z).mean() - mean) < 6 * math.sqrt((variance - mean**2) / len(z))


def test_protocol_and_edges() -> None:
    sampler: BlockSampler = OneSumLaplace(1, ONE)
    assert sampler.cells == 1
    assert sampler.name
    assert np.array_equal(sampler.draw(3, ListedWords([])), np.zeros((3, 1)))
    assert OneSumLaplace(4, ONE).draw(0, ListedWords([])).shape == (0, 4)
    with NoiseKey.for_tests("edges").stream("words") as words:
        assert not OneSumLaplace(4, Fraction(1000)).draw(5, words).any()
        assert not OneSumLaplace(4, Fraction(10) ** 300).draw(5, words).any()
        assert OneSumLaplace(4, Fraction(1, 10**12)).draw(2, words).sum() == 0
    copied = pickle.loads(pickle.dumps(OneSumLaplace(4, QUARTER)))
    with NoiseKey.for_tests("copied").stream("a") as here, NoiseKey.for_tests("copied").stream("a") as there:
        assert np.array_equal(copied.draw(9, here), OneSumLaplace(4, QUARTER).draw(9, there))
    assert repr(OneSumLaplace(4, QUARTER)) == "OneSumLaplace(cells=4, epsilon=1/4)"


@pytest.mark.parametrize(
    ("cells", "epsilon"), [(0, ONE), (-3, ONE), (3, Fraction(0)), (3, Fraction(-1)), (10**6, Fraction(1, 10**14)), (2**31, ONE)]
)
def test_what_cannot_be_drawn_is_refused(cells, epsilon) -> None:
    with pytest.raises(InvalidParameter):
        OneSumLaplace(cells, epsilon)


def test_values_beyond_thirty_bits_are_refused_not_wrapped() -> None:
    sampler = OneSumLaplace(3, ONE)
    with pytest.raises(PrecisionExhausted):
        sampler._widen(np.zeros((2, 3), dtype=np.int32), 7)


def test_exactly_the_words_of_the_incomplete_round_are_thrown_away() -> None:
    """Three cells and numbers below five: 2^32 = 1 modulo 15, so the remainder 0 is thrown away and the remainder 1 is kept."""
    row, kept = np.full(3, 5, dtype=np.uint8), pow(15, -1, 2**32)
    for word, position in ((0, 1), (kept, 0)):
        found = compiled.find_with_one(np.array([word], dtype=np.uint32), 0, row, np.int64(3), np.int64(5), np.int64(0))
        assert found == (position, 3 * word >> 32 if position == 0 else -1)
