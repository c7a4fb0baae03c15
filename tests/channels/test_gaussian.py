"""Which law draws Gaussian noise: the promise is kept, more budget is never refused, and the choice is part of the identity."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.channels import Channel, Facts, gaussian
from holdfast.channels.drawing import choose_samplers
from holdfast.channels.gaussian import MOST_TRIES
from holdfast.errors import InvalidParameter
from holdfast.laws import Gaussian, LevelGaussian, Sequential
from holdfast.privacy import zcdp_delta
from holdfast.privacy.guarantee import GaussianLaw
from holdfast.samplers.table import steps_of
from holdfast.testing import SteppedLaw, renyi_divergence
from tests.examples import examples

Keep = list[Any]


def universe_of(*lengths: int) -> hf.Universe:
    return hf.Universe.product({name: [str(i) for i in range(n)] for name, n in zip("abcdef", lengths, strict=False)})


def channel_of(universe: hf.Universe, keep: Keep, **asked: Any) -> Channel:
    per: dict[str, Any] = {} if "sigma_squared" in asked else {"per": "distance"}
    return hf.GeneralizedGaussian(**per, **asked).channel(Facts.of(universe, keep))


def law_of(channel: Channel) -> GaussianLaw:
    assert channel.guarantee.law is not None
    return channel.guarantee.law


def variance_of(channel: Channel) -> Fraction:
    """By how much all variances are multiplied, whichever law draws."""
    target = channel.target.of if isinstance(channel.target, Sequential) else channel.target
    if isinstance(target, LevelGaussian):
        return 1 / target.rho
    assert isinstance(target, Gaussian)
    return target.sigma_squared


TABLES: dict[str, tuple[hf.Universe, Keep, dict[str, Any]]] = {
    "one sum": (universe_of(7), [hf.total()], {}),
    "sums of two sizes": (hf.Universe.listed({"a": ["x"] * 3 + ["y"] * 40, "b": [str(i) for i in range(43)]}), [hf.margin("a")], {}),
    "grid": (universe_of(9, 12), [hf.margin("a"), hf.margin("b")], {}),
    "levels": (universe_of(3, 4, 3), [hf.margin("a"), hf.margin("b")], {}),
    "general": (universe_of(8), [hf.linear([[1, 1, 0, 1, 0, 0, 1, 0], [0, 1, 1, 0, 1, 0, 0, 2], [1, 0, 1, 0, 0, 3, 0, 1]])], {}),
    "shares": (universe_of(4, 3, 5), [hf.margin("a")], {"levels": {"a": {("b",): "1/4", "detailed": "3/4"}}}),
    "nothing kept": (universe_of(5), [], {}),
    "a sum and a grid": (
        hf.Universe.listed({"a": [*"aaabbbccc", *"xxxx"], "b": [*"abcabcabc", *"xxxx"], "cell": [str(i) for i in range(13)]}),
        [hf.margin("a"), hf.margin("b")],
        {},
    ),
}


@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=examples(15))
@given(rho=st.fractions(Fraction(1, 100), 50, max_denominator=1000), times=st.fractions(1, 30, max_denominator=100))
def test_the_budget_is_kept_and_more_of_it_never_refused(table: str, rho: Fraction, times: Fraction) -> None:
    """(1 + kappa) rho of what is drawn is at most what is promised, and that at most what was asked for; more budget is no more noise."""
    universe, keep, more = TABLES[table]
    before = None
    for budget in (rho, rho * times):
        for asked in ("auto", "sequential"):
            channel = channel_of(universe, keep, rho=budget, law=asked, **more)
            law, promised = law_of(channel), channel.guarantee.rho
            assert promised is not None
            assert (1 + law.kappa) * law.rho <= promised <= budget
            assert (law.kappa > 0) is isinstance(channel.target, Sequential) is (law.name == "sequential")
            if isinstance(channel.target, Sequential):
                own, target = channel.target.of, channel.target
                shapes = set(channel.shapes()) - target.by_lattice
                assert all(steps_of(shape, own, in_groups=shape in target.in_groups).kappa <= law.kappa for shape in shapes)
                assert target.in_groups == {shape for shape in shapes if steps_of(shape, own).cheapest().in_groups}
                assert not law.in_groups or target.in_groups
            assert choose_samplers(channel).is_exact
        least = channel_of(universe, keep, rho=budget, **more)
        assert variance_of(least) <= variance_of(channel) * Fraction(101, 100), "auto has the least noise, or nearly"
        assert before is None or variance_of(least) <= before * Fraction(101, 100)
        before = variance_of(least)


@pytest.mark.parametrize("table", TABLES)
def test_no_budget_is_too_large(table: str) -> None:
    """At 10^10 and above it was refused: less noise than samplers take would be none at all."""
    universe, keep, more = TABLES[table]
    variances = []
    for rho in (10**3, 10**7, 10**10, 10**15):
        channel = channel_of(universe, keep, rho=rho, **more)
        promised = channel.guarantee.rho
        assert promised is not None
        assert promised <= rho
        assert choose_samplers(channel).is_exact
        variances.append(variance_of(channel))
    assert variances == sorted(variances, reverse=True)


def test_the_lattice_law_is_taken_up_to_four_expected_tries() -> None:
    universe, keep, _ = TABLES["grid"]
    for sigma_squared in ("1/2", "1", "2", "10"):
        channel = channel_of(universe, keep, sigma_squared=sigma_squared)
        (shape,) = channel.shapes()
        tries = math.exp(steps_of(shape, Gaussian(Fraction(sigma_squared))).log_tries)
        if tries <= MOST_TRIES:
            assert isinstance(channel.target, Gaussian)
            assert law_of(channel).tries == pytest.approx(tries)
    assert isinstance(channel_of(universe, keep, sigma_squared=10).target, Gaussian)


def test_no_more_noise_than_the_law_that_was_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the lattice law takes long at the whole budget, it is drawn with a little more noise if the other law needs more still."""
    universe, keep, _ = TABLES["grid"]
    sequential = channel_of(universe, keep, rho=2, law="sequential")
    monkeypatch.setattr(gaussian, "MAX_CELL_TRIES", 5 * 108)
    found = channel_of(universe, keep, rho=2)
    law = law_of(found)
    assert isinstance(found.target, Gaussian)
    assert 1 < law.factor < law_of(sequential).factor
    assert law.tries is not None
    assert law.tries <= 5
    assert found.guarantee.rho is not None
    assert found.guarantee.rho < 2, "what was drawn costs less, and less is charged"


def test_blocks_drawn_by_the_lattice_law_have_no_price() -> None:
    """The price is the largest of the others': the smaller block is narrower here, and expects few tries."""
    universe, keep, _ = TABLES["sums of two sizes"]
    channel = channel_of(universe, keep, sigma_squared="1/8")
    forced = channel_of(universe, keep, sigma_squared="1/8", law="sequential")
    shapes = {shape.size: shape for shape in channel.shapes()}
    steps = {size: steps_of(shape, Gaussian(Fraction(1, 8))) for size, shape in shapes.items()}
    assert math.exp(steps[3].log_tries) <= MOST_TRIES < math.exp(steps[40].log_tries)
    assert law_of(forced).kappa >= max(own.kappa for own in steps.values())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gaussian, "MAX_CELL_TRIES", 1)
        mixed = channel_of(universe, keep, sigma_squared="1/8")
    assert isinstance(mixed.target, Sequential)
    assert mixed.target.by_lattice == {shapes[3]}
    assert steps[40].kappa <= law_of(mixed).kappa <= steps[40].kappa * Fraction(10001, 10000)
    assert law_of(mixed).blocks == 1
    assert law_of(mixed).size == 40
    drawn = choose_samplers(mixed)
    assert drawn.choice(shapes[3]).noise.expected_tries > 1
    assert drawn.choice(shapes[40]).noise.expected_tries == 1


def test_the_identity_names_the_law() -> None:
    universe, keep, _ = TABLES["sums of two sizes"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gaussian, "MAX_CELL_TRIES", 1)
        mixed = channel_of(universe, keep, sigma_squared="1/8")
    all_ways = [*(channel_of(universe, keep, sigma_squared="1/8", law=law) for law in ("lattice", "sequential")), mixed]
    assert len({channel.identity for channel in all_ways}) == 3
    wide = [channel_of(universe, keep, sigma_squared=9, law=law).identity for law in ("auto", "lattice")]
    assert wide[0] == wide[1], "the same law, however it was asked for"


@pytest.mark.parametrize("law", ["auto", "sequential"])
def test_epsilon_and_delta_go_through_zcdp(law: str) -> None:
    """The pair of one person, at squared distance 2, has the delta that (1 + kappa) rho gives."""
    universe, keep, _ = TABLES["grid"]
    channel = hf.GeneralizedGaussian(epsilon=5, delta="1e-6", law=law).channel(Facts.of(universe, keep))  # type: ignore[arg-type]
    found = law_of(channel)
    assert found.kappa > 0 or law == "auto"
    assert zcdp_delta(2 * (1 + found.kappa) * found.rho, 5) <= 1e-6
    assert channel.guarantee.rho is not None
    assert 2 * channel.guarantee.rho >= 2 * (1 + found.kappa) * found.rho


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sampler": "line_gibbs", "epsilon": 1, "delta": "1e-6", "per": "distance"}, "a Markov chain draws the lattice law"),
        ({"calibration": "paper", "epsilon": 1, "delta": "1e-6", "per": "distance"}, "proved for the lattice law"),
    ],
)
def test_what_the_sequential_law_does_not_go_with(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        hf.GeneralizedGaussian(law="sequential", **more)
    assert hf.GeneralizedGaussian(law="auto", **more).asked_law == "auto"


def test_the_law_is_written_as_it_was_asked_for() -> None:
    asked = hf.GeneralizedGaussian(rho="1/10", law="sequential")
    assert repr(asked) == "GeneralizedGaussian(rho='0.1', law='sequential')"
    assert hf.GeneralizedGaussian.from_parameters(asked.parameters) == asked
    assert "law" not in hf.GeneralizedGaussian(rho="1/10").parameters
    with pytest.raises(InvalidParameter, match="law must be one of 'auto', 'lattice', 'sequential'"):
        hf.GeneralizedGaussian(rho="1/10", law="fast")  # type: ignore[arg-type]


def test_zeros_are_drawn_where_leaving_them_out_needs_more_noise() -> None:
    """Holes in a product make a block whose cells have less noise given those before: it is never taken at a higher price."""
    universe, rng = universe_of(5, 4, 3), np.random.default_rng(1)
    keep: Keep = [hf.margin("a", "b"), hf.margin("b", "c"), hf.margin("a", "c")]
    for _ in range(5):
        counts = rng.integers(0, 2, 60) * rng.integers(0, 9, 60)
        table = hf.Table(universe, counts)
        mechanism = hf.GeneralizedGaussian(rho=1, law="sequential", per="distance")
        before, after = (law_of(plan.drawing.channel) for plan in plans(table, keep, mechanism))
        assert (after.factor, after.kappa) <= (before.factor, before.kappa)


def plans(table: hf.Table, keep: Keep, mechanism: Any) -> tuple[Any, Any]:
    """Without and with the values of the totals."""
    totals = [int(v) for rows in Facts.of(table, keep).kept.rows for v in rows.totals(table.counts)]
    return hf.plan(table, keep, mechanism), hf.plan(table, keep, mechanism, published_totals=totals)


@pytest.mark.parametrize("sigma_squared", ["1/5", "2/5", "1"])
def test_the_promise_holds_for_secrets_in_several_blocks(sigma_squared: str) -> None:
    """Divergences of both blocks add up to no more than what the promise says at the squared length of the secret."""
    universe = hf.Universe.listed({"a": ["x"] * 3 + ["y"] * 4, "b": [str(i) for i in range(7)]})
    channel = channel_of(universe, [hf.margin("a")], sigma_squared=sigma_squared, law="sequential")
    assert isinstance(channel.target, Sequential)
    promised = channel.guarantee.rho
    assert promised is not None
    variance = Fraction(sigma_squared)
    assert channel.target.in_groups == (frozenset() if variance < Fraction(1, 4) else frozenset(channel.shapes()))
    blocks = {n: stepped(n, variance, in_groups=bool(channel.target.in_groups)) for n in (3, 4)}
    for alpha in (Fraction(3, 2), Fraction(2), Fraction(16)):
        for secret in ({3: (1, -1, 0)}, {3: (1, 0, -1), 4: (0, 1, 0, -1)}, {3: (0, 1, -1), 4: (1, 1, -1, -1)}, {4: (0, 0, 1, -1)}):
            loss = sum(renyi_divergence(blocks[n], w[:-1], alpha).upper for n, w in secret.items())
            length = sum(entry**2 for w in secret.values() for entry in w)
            assert loss <= alpha * promised * length


def stepped(cells: int, sigma_squared: Fraction, *, in_groups: bool) -> SteppedLaw:
    """One sum, cell after cell: what is left of it is shared out evenly. So few cells are one group, or none."""
    left = [Fraction(cells - j) for j in range(cells - 1)]
    groups = (cells - 1,) if in_groups else ()
    return SteppedLaw(tuple(sigma_squared * (n - 1) / n for n in left), tuple((-1 / n,) * j for j, n in enumerate(left)), groups=groups)
