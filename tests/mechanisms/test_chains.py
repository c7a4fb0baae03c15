"""Chains asked for by a mechanism: what is promised, what is drawn, what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.chains.assessment import confidence_factor
from holdfast.chains.sampler import ChainSampler
from holdfast.errors import HoldfastError, InexactParameter, InvalidParameter, NoExactSampler, NoMeeting, RequestTooLarge
from holdfast.lattices import Lattice
from holdfast.privacy.estimated import added_delta
from holdfast.randomness import NoiseKey
from holdfast.samplers.table import choose

KERNELS = ("metropolis", "line_gibbs")
ETA = Fraction(3, 100)
"""The least number of pairs: assessments stay quick."""


def grids(blocks: int, rows: int = 3, columns: int = 3) -> Lattice:
    """Several tables of kept rows and columns side by side."""
    one = np.vstack([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]).astype(np.int64)
    return Lattice(np.kron(np.eye(blocks, dtype=np.int64), one))


class TestPromise:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_an_estimate_with_its_error_and_the_delta_it_adds(self, kernel: str) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/4", sampler=kernel, eta=ETA, per="distance").law(grids(1))
        found = law.guarantee
        assert (found.kind, found.status, found.epsilon, found.eta) == ("approximate", "estimated", Fraction(1, 4), ETA)
        assert found.delta == added_delta(Fraction(1, 4), ETA)
        assert [(chain.blocks, chain.cells, chain.kernel, chain.pairs) for chain in found.chains] == [(1, 9, kernel, 100)]
        assert law.sampler.status == "estimated"
        (group,) = law.sampler.groups
        assert group.expected_tries is None
        assert group.assessment is not None
        assert (group.assessment.kernel, group.assessment.pairs, group.assessment.eta) == (kernel, 100, ETA)
        assert group.sampler == f"{kernel}, {group.assessment.sweeps} sweeps"

    def test_errors_of_blocks_add_and_share_what_is_allowed(self) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="3/100", per="distance").law(grids(2))
        (group,) = law.sampler.groups
        assert group.assessment is not None
        assert (group.assessment.pairs, group.assessment.eta) == (200, Fraction(3, 200))
        assert law.guarantee.eta == Fraction(3, 100)

    def test_several_shapes_share_one_confidence(self) -> None:
        """A 3 x 3 table beside a total over two cells: each shape needs ln(40) = 3.689 pairs for every 3 that it would need alone."""
        both = np.zeros((7, 11), dtype=np.int64)
        both[:6, :9] = np.asarray(grids(1).matrix.todense())
        both[6, 9:] = 1
        law = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="6/100", per="distance").law(Lattice(both))
        assert confidence_factor(2) == Fraction(3689, 1000)
        pairs = 123  # 3.689 / 0.03, rounded up
        found = [group.assessment for group in law.sampler.groups]
        assert [each and (each.pairs, each.eta) for each in found] == [(pairs, Fraction(3689, 123_000))] * 2
        assert law.guarantee.eta == 2 * Fraction(3689, 123_000)
        assert sorted((chain.blocks, chain.cells, chain.shapes) for chain in law.guarantee.chains) == [(1, 2, 2), (1, 9, 2)]
        assert "for all 2 shapes of blocks together" in hf.describe(law.guarantee)

    def test_a_gaussian_adds_to_its_delta(self) -> None:
        mechanism = hf.GeneralizedGaussian(epsilon=1, delta="1e-6", sampler="line_gibbs", eta=ETA, per="distance")
        found = mechanism.law(grids(1)).guarantee
        assert found.delta == Fraction(1, 10**6) + added_delta(Fraction(1), ETA)
        assert (found.kind, found.rho, found.status) == ("approximate", None, "estimated")

    def test_free_cells_stay_exact(self) -> None:
        """Two cells under one total, one under none: the second is drawn independently, and no error is counted for it."""
        law = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta=ETA, per="distance").law(Lattice(np.array([[1, 1, 0]])))
        assert {group.kind: group.assessment is None for group in law.sampler.groups} == {"one sum": False, "free": True}
        assert law.guarantee.eta == ETA

    def test_where_everything_is_free_nothing_is_estimated(self) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", per="distance").law(Lattice(np.zeros((1, 3), dtype=np.int64)))
        assert (law.guarantee.kind, law.guarantee.status, law.sampler.status) == ("pure", "exact", "exact")

    def test_the_l2_norm_is_drawn_whole(self) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/2", norm="l2", sampler="line_gibbs", eta=ETA, per="distance").law(grids(1, 2, 3))
        assert law.guarantee.status == "estimated"
        draws = law.sample(20, NoiseKey.for_tests("whole"))
        assert all(law.lattice.contains(z) for z in draws)
        assert law.covariance().diagonal().min() > 0

    def test_parameters_name_the_chain(self) -> None:
        assert hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", per="distance").parameters == {
            "epsilon": "0.25", "per": "distance", "norm": "l1", "sampler": "line_gibbs", "eta_allowed": "0.001"
        }  # fmt: skip
        assert hf.GeneralizedLaplace(epsilon="1/4", per="distance").parameters == {"epsilon": "0.25", "per": "distance", "norm": "l1"}
        assert hf.GeneralizedLaplace(epsilon="1/4", allow_estimated=True, per="distance").sampler == "auto"
        assert "eta_allowed" in hf.GeneralizedGaussian(rho=1, allow_estimated=True, per="distance").parameters


class TestDraws:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_lie_in_the_lattice_and_follow_the_key(self, kernel: str) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/4", sampler=kernel, eta=ETA, per="distance").law(grids(2))
        draws = law.sample(10, NoiseKey.for_tests("a"))
        assert all(law.lattice.contains(z) for z in draws)
        assert np.array_equal(draws, law.sample(10, NoiseKey.for_tests("a")))
        assert not np.array_equal(draws, law.sample(10, NoiseKey.for_tests("b")))
        assert not np.array_equal(draws[:, :9], draws[:, 9:])  # each block from words of its own

    def test_expected_error_is_near_that_of_exact_draws(self) -> None:
        """Both are estimates with stated standard errors; 6.5 of them together, two-sided below 1e-10 for a normal law."""
        exact = hf.GeneralizedLaplace(epsilon="1/4", per="distance").law(grids(1)).covariance()
        chain = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta=ETA, per="distance").law(grids(1)).covariance()
        errors = [covariance.relative_error for covariance in (exact, chain)]
        ratio = chain.diagonal()[0] / exact.diagonal()[0]
        assert abs(ratio - 1) < 6.5 * math.hypot(*errors)


class TestAuto:
    @pytest.fixture(autouse=True)
    def _little_patience(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rejection is refused on a 4 x 4 table already; at 12 x 12, where it really is, an assessment takes half a minute."""
        monkeypatch.setattr("holdfast.samplers.choice.MAX_CELL_TRIES", 300)
        choose.cache_clear()

    def test_never_takes_a_chain_unless_allowed(self) -> None:
        with pytest.raises(NoExactSampler, match="allow_estimated = true"):
            hf.GeneralizedLaplace(epsilon="1/4", per="distance").law(grids(1, 4, 4)).sample(1)

    def test_takes_one_only_where_no_exact_sampler_will_do(self) -> None:
        """A grid too large for rejection beside a total over two cells: the first by a chain, the second exactly."""
        both = np.zeros((9, 18), dtype=np.int64)
        both[:8, :16] = np.asarray(grids(1, 4, 4).matrix.todense())
        both[8, 16:] = 1
        law = hf.GeneralizedLaplace(epsilon="1/4", allow_estimated=True, eta=ETA, per="distance").law(Lattice(both))
        kernels = {group.kind: group.assessment and group.assessment.kernel for group in law.sampler.groups}
        assert kernels == {"grid": "line_gibbs", "one sum": None}
        assert law.guarantee.eta == ETA

    @pytest.mark.long
    def test_the_same_for_the_l2_norm(self) -> None:
        with pytest.raises(NoExactSampler, match="allow_estimated = true"):
            hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance").law(grids(1, 4, 4)).sample(1)
        law = hf.GeneralizedLaplace(epsilon="1/4", norm="l2", allow_estimated=True, eta=ETA, per="distance").law(grids(1, 4, 4))
        (group,) = law.sampler.groups
        assert group.assessment is not None
        assert group.assessment.kernel == "line_gibbs"

    def test_stays_exact_where_it_can(self) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/4", allow_estimated=True, per="distance").law(grids(1))
        assert (law.sampler.status, law.guarantee.kind) == ("exact", "pure")


class TestRefused:
    def test_zcdp_with_a_chain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything is assessed."""
        monkeypatch.setattr("holdfast.channels.drawing.chain_samplers", lambda *_: pytest.fail("assessed"))
        with pytest.raises(InvalidParameter, match=r"no zCDP promise.*epsilon and delta"):
            hf.GeneralizedGaussian(rho="1/10", sampler="line_gibbs", eta=ETA, per="distance").law(grids(1)).sample(1)

    def test_chains_that_do_not_meet(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise NoMeeting("No pair met.")

        monkeypatch.setattr("holdfast.channels.drawing.chain_samplers", refuse)
        with pytest.raises(NoMeeting, match=r"No pair met\. Drawn exactly here, as was tried: .*GeneralizedGaussian.*RoundedProjection"):
            hf.GeneralizedLaplace(epsilon="1/2000", sampler="line_gibbs", eta=ETA, per="distance").law(grids(1, 20, 20)).sample(1)

    @pytest.mark.parametrize(("error", "name"), [(NoMeeting, "metropolis"), (RequestTooLarge, "line_gibbs")])
    def test_the_same_law_is_drawn_without_one(self, error: type[Exception], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who named a chain that is refused was not told that it was not needed."""

        def refuse(*_: object) -> None:
            raise error("No chain.")

        monkeypatch.setattr("holdfast.channels.drawing.chain_samplers", refuse)
        mechanism = hf.GeneralizedLaplace(epsilon="1/4", sampler=name, eta=ETA, per="distance")
        with pytest.raises(
            error, match=r'^No chain\. No chain is needed: sampler = "auto" draws this law exactly here\. Leave sampler out\.$'
        ):
            mechanism.law(grids(1)).sample(1)
        assert hf.GeneralizedLaplace(epsilon="1/4", per="distance").law(grids(1)).sampler.status == "exact"

    def test_a_promise_that_is_left_empty_says_so_too(self) -> None:
        mechanism = hf.GeneralizedLaplace(epsilon="30", sampler="line_gibbs", eta=ETA, per="distance")
        with pytest.raises(InvalidParameter, match=r'leaves no promise at .* No chain is needed: sampler = "auto"'):
            mechanism.law(grids(1)).sample(1)

    def test_a_kernel_that_is_not_there_names_those_that_are(self) -> None:
        with pytest.raises(InvalidParameter, match=r"sampler must be one of 'auto', 'metropolis', 'line_gibbs', .* Got 'block_gibbs'"):
            hf.GeneralizedLaplace(epsilon="1/4", sampler="block_gibbs", per="distance")

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"eta": 0.001}, InexactParameter),
            ({"eta": "0"}, InvalidParameter),
            ({"eta": 1}, InvalidParameter),
            ({"allow_estimated": "yes"}, InvalidParameter),
        ],
    )
    def test_wishes_that_cannot_be(self, arguments: dict[str, object], error: type[HoldfastError]) -> None:
        with pytest.raises(error):
            hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", per="distance", **arguments)  # type: ignore[arg-type]

    def test_a_ledger_books_an_estimate_without_an_amount(self) -> None:
        from holdfast.ledger.values import Charge

        guarantee = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta=ETA, per="distance").law(grids(1)).guarantee
        charge = Charge.of(guarantee)
        assert (charge.kind, charge.epsilon, charge.rho) == ("estimated", None, None)


def test_a_chain_is_prepared_once_for_all_blocks_of_a_shape() -> None:
    law = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="3/100", per="distance").law(grids(2))
    samplers = [law.drawing.choice(task.shape).sampler for task in law.channel.tasks()]
    assert samplers[0] is samplers[-1]
    assert all(isinstance(sampler, ChainSampler) for sampler in samplers)


class TestALargeEta:
    """An eta of 1/2 silently became 0.03: no fewer than 100 pairs are ever coupled."""

    def test_more_than_the_least_pairs_leave_open_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match=r"eta = 1/2 is more than the 3/100 .* Write eta = '3/100' or less"):
            _ = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="1/2", per="distance").law(grids(1)).guarantee

    def test_blocks_share_it_so_that_it_may_be_larger(self) -> None:
        asked = Fraction(6, 100)
        assert hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta=asked, per="distance").law(grids(2)).guarantee.eta == asked
        with pytest.raises(InvalidParameter, match="3/50"):
            _ = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="7/100", per="distance").law(grids(2)).guarantee

    def test_where_exact_samplers_draw_everything_it_does_not_matter(self) -> None:
        law = hf.GeneralizedLaplace(epsilon="1/4", allow_estimated=True, eta="1/2", per="distance").law(Lattice(np.array([[1, 1, 1]])))
        assert law.guarantee.status == "exact"
