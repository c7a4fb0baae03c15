"""Draws against their certified law: goodness of fit, against the slow oracles too, and shown to fail on a wrong law."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import StreamReused
from holdfast.exact import DiscreteGaussian, DiscreteLaplace, Geometric, compiled
from holdfast.exact.law import IntegerLaw
from holdfast.randomness import NoiseKey
from holdfast.research import oracles
from holdfast.research.laws import Bernoulli, BernoulliExp, Computable, UniformInteger, Weighted
from holdfast.testing import ALPHA, check_fit, check_fit_categories, fit_p_value, fits, two_sample_p_value
from holdfast.testing.words import FairBits

DRAWS = 10_000_000
"""A variance 1 % off adds about DRAWS / 20,000 = 500 to the statistic: enough to stand out of the noise of a thousand bins at ALPHA."""

# A proven library was once biased only for parameters whose numerator and denominator share a factor before reduction.
RATIONALS = ["1/3", "6/4", "7/3", "100/10", "25/2", "3", "49/7", "1000/999", "17/5"]

NARROW: list[IntegerLaw] = [
    *(DiscreteLaplace(scale) for scale in RATIONALS),
    *(DiscreteGaussian(sigma_squared) for sigma_squared in RATIONALS),
    *(DiscreteGaussian(s, c) for s, c in product(["2/3", "25/2", "100"], ["1/2", "-7/3", "99/100", "12345678901"])),
    DiscreteLaplace(10, tilt="1/20"),
    DiscreteLaplace(3, lower=-2, upper=9, tilt=1),
    DiscreteLaplace(3, lower=-2, upper=9, tilt="-1"),
    DiscreteGaussian(20, "1/3", lower=-1),
    DiscreteGaussian(20, lower=12),
    DiscreteGaussian(20, "5/2", upper=3, tilt="1/9"),
    Geometric("7/2"),
    Geometric(5, upper=4),
    Weighted({-3: "1/9", 0: 2, 1: "3/7", 7: 1}),
    Bernoulli("2/7"),
    BernoulliExp("6/4"),
    UniformInteger(-7, 12),
]


@pytest.mark.ordinary("='7/3')", "'25/2', center='-7/3'", "tilt='1/", "lower=12", "'7/2'", "Weighted", "Bernoulli", "Uniform")
@pytest.mark.parametrize("law", NARROW, ids=repr)
def test_draws_follow_the_certified_law(law: IntegerLaw) -> None:
    values = law.sample(DRAWS, NoiseKey.for_tests("fit"))
    check_fit(values, law.pmf, offset=int(np.median(values)), name=repr(law))


@pytest.mark.ordinary("sigma_squared='25/2'", "scale='7/3'", "Geometric", "Bernoulli")
@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (DiscreteGaussian("25/2"), DiscreteGaussian(Fraction(25, 2) * Fraction(101, 100))),
        (DiscreteGaussian(100), DiscreteGaussian(101)),
        (DiscreteGaussian(10**4, "1/3"), DiscreteGaussian(10**4 * Fraction(99, 100), "1/3")),
        (DiscreteLaplace(10), DiscreteLaplace(Fraction(1005, 100))),
        (DiscreteLaplace("7/3"), DiscreteLaplace(Fraction(7, 3) * Fraction(1005, 1000))),
        (DiscreteGaussian(30, "1/3"), DiscreteGaussian(30, "5/12")),
        (Geometric(5), Geometric("101/20")),
        (Bernoulli("1/3"), Bernoulli("101/300")),
    ],
    ids=repr,
)
def test_a_law_one_percent_off_fails(law: IntegerLaw, wrong: IntegerLaw) -> None:
    """Power of the test above, with as many draws: a variance 1 % off (a centre off by 1/12, a coin off by 1 %) is rejected."""
    values = law.sample(DRAWS, NoiseKey.for_tests("power"))
    assert fits(values, law.pmf)
    assert not fits(values, wrong.pmf)


def binned(law: IntegerLaw, edges: list[int], values: NDArray[np.int64]) -> tuple[dict[int, int], dict[int, float]]:
    """Counts and certified chances of the ranges between edges (each edge begins a range), both tails included."""
    beyond = [1.0, *(law.tail_bounds(edge).nearest() for edge in edges), 0.0]
    chances = {i: beyond[i] - beyond[i + 1] for i in range(len(edges) + 1)}
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    return dict(enumerate(counts.tolist())), chances


WIDE = [
    (DiscreteGaussian(10**12), 10**6),
    (DiscreteGaussian(10**18, "1/3"), 10**9),
    (DiscreteGaussian(10**9), 31_623),
    (DiscreteLaplace(10**6), 10**6),
    (DiscreteGaussian(10**12, lower=-(10**5)), 10**6),
    (DiscreteLaplace(10**6, tilt=Fraction(1, 2 * 10**6)), 10**6),
    (DiscreteLaplace(10**6, lower=-(10**6), upper=4 * 10**6, tilt=Fraction(2, 10**6)), 10**6),
]


@pytest.mark.ordinary("sigma_squared='1000000000')", "scale='1000000')", "lower=-1000000,")
@pytest.mark.parametrize(("law", "unit"), WIDE, ids=lambda value: repr(value))
def test_wide_draws_follow_the_certified_law(law: IntegerLaw, unit: int) -> None:
    values = law.sample(DRAWS, NoiseKey.for_tests("wide fit"))
    edges = [i * unit // 12 for i in range(-48, 60) if 0.0002 < law.tail_bounds(i * unit // 12).nearest() < 0.9998]
    assert len(edges) > 20
    counts, chances = binned(law, edges, values)
    check_fit_categories(counts, chances, name=repr(law))
    # the low bits: uniform inside cells up to the slope, which eight residues at this size cannot see
    low = np.bincount(values % 8, minlength=8)
    check_fit_categories(dict(enumerate(low.tolist())), dict.fromkeys(range(8), 0.125), name=f"low bits of {law!r}")


@pytest.mark.parametrize("factor", [Fraction(101, 100), pytest.param(Fraction(99, 100), marks=pytest.mark.long)])
def test_a_wide_law_one_percent_off_fails(factor: Fraction) -> None:
    values = DiscreteGaussian(10**12).sample(DRAWS, NoiseKey.for_tests("wide power"))
    edges = [i * 10**6 // 12 for i in range(-40, 41)]
    from holdfast.testing.fit import _score_categories

    assert _score_categories(*binned(DiscreteGaussian(10**12), edges, values)).p_value >= ALPHA
    assert _score_categories(*binned(DiscreteGaussian(10**12 * factor), edges, values)).p_value < ALPHA


@pytest.mark.long
@pytest.mark.parametrize("parameter", RATIONALS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "quantile"])
def test_fast_draws_agree_with_the_papers_own_algorithms(kind: str, parameter: str) -> None:
    fast: IntegerLaw = DiscreteGaussian(parameter) if kind == "gaussian" else DiscreteLaplace(parameter)
    slow = {"laplace": oracles.discrete_laplace, "gaussian": oracles.discrete_gaussian, "quantile": oracles.double_geometric_quantile}[kind]
    bits = FairBits(NoiseKey.for_tests("oracle").stream(kind, parameter))
    old = [slow(Fraction(parameter), bits) for _ in range(10_000)]
    new = fast.sample(200_000, NoiseKey.for_tests("two samples"))
    assert two_sample_p_value(old, new) >= ALPHA


@pytest.mark.long
@pytest.mark.parametrize("center", ["1/3", "-7/2", "99/100"])
def test_moving_centres_agree_with_the_slow_rejection(center: str) -> None:
    bits = FairBits(NoiseKey.for_tests("oracle").stream("center", center))
    old = [oracles.discrete_gaussian_centered(Fraction(5, 2), Fraction(center), bits) for _ in range(10_000)]
    assert two_sample_p_value(old, DiscreteGaussian("5/2", center).sample(200_000, NoiseKey.for_tests("center"))) >= ALPHA


def test_the_oracle_comparison_has_power() -> None:
    wrong = DiscreteLaplace(3).sample(10_000, NoiseKey.for_tests(1))
    assert two_sample_p_value(wrong, DiscreteLaplace("7/2").sample(200_000, NoiseKey.for_tests(2))) < ALPHA


@pytest.mark.parametrize("law", [DiscreteGaussian(7), DiscreteGaussian(10**12), UniformInteger(0, 10**9), Bernoulli("1/3")], ids=repr)
def test_streaming_gives_the_same_draws(law: IntegerLaw) -> None:
    whole = law.sample(20_000, NoiseKey.for_tests(3))
    pieces = list(law.batches(20_000, NoiseKey.for_tests(3), size=777))
    assert {len(piece) for piece in pieces[:-1]} == {777}
    assert np.array_equal(np.concatenate(pieces), whole)


def test_small_draws_do_not_load_numba_and_large_ones_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    law = DiscreteGaussian(100)
    monkeypatch.setattr(compiled, "WARM_THRESHOLD", 10**9)
    monkeypatch.setattr(compiled, "COLD_THRESHOLD", 10**9)
    assert compiled.compiled_for(10**6) is None
    by_numpy = law.sample(200_000, NoiseKey.for_tests(5))
    monkeypatch.setattr(compiled, "WARM_THRESHOLD", 1)
    monkeypatch.setattr(compiled, "COLD_THRESHOLD", 1)
    assert compiled.compiled_for(10) is not None
    assert np.array_equal(law.sample(200_000, NoiseKey.for_tests(5)), by_numpy)


def test_keys_and_labels_decide_the_draws() -> None:
    law = DiscreteGaussian(100)
    key = NoiseKey.for_tests(1)
    first = law.sample(50, key)
    with pytest.raises(StreamReused):
        law.sample(50, key)
    other_label = law.sample(50, key, label="second vector")
    other_law = DiscreteGaussian(101).sample(50, key)
    assert np.array_equal(first, DiscreteGaussian("100").sample(50, NoiseKey.for_tests(1)))
    assert not np.array_equal(first, other_label)
    assert not np.array_equal(first, other_law)
    assert not np.array_equal(law.sample(50), law.sample(50)), "without a key every call draws fresh noise"


def test_a_borrowed_key_stays_open_and_draws_are_int64() -> None:
    key = NoiseKey.for_tests(9)
    values = DiscreteLaplace(2).sample(10, key)
    assert values.dtype == np.int64
    assert values.shape == (10,)
    assert len(DiscreteLaplace(3).sample(10, key)) == 10


def test_computable_laws_of_one_name_are_not_mixed_up() -> None:
    def law(*odds: int) -> Computable:
        return Computable("same name", 0, 1, lambda k: arb(odds[k]))

    first, second = law(1, 9), law(9, 1)
    assert first != second
    means = [made.sample(10_000, NoiseKey.for_tests(1)).mean() for made in (first, second)]
    assert means[0] > 0.85
    assert means[1] < 0.15


def test_laws_are_values() -> None:
    assert DiscreteLaplace("6/4") == DiscreteLaplace("3/2")
    assert hash(DiscreteLaplace("6/4")) == hash(DiscreteLaplace("3/2"))
    assert DiscreteLaplace(2) != DiscreteLaplace(2, upper=5)
    assert DiscreteLaplace(2) != Geometric(2)
    assert repr(DiscreteGaussian("100", "1/3", lower=0)) == "DiscreteGaussian(sigma_squared='100', center='1/3', lower=0)"
    assert DiscreteGaussian(4).sampler() is DiscreteGaussian("4").sampler()
    assert fit_p_value(DiscreteGaussian(4).sample(1000, NoiseKey.for_tests(4)), DiscreteGaussian(4).pmf) > 1e-6
