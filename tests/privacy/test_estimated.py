"""What a chain's error does to a promise: enumerated, then at every distance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.lattices.norms import L1, L2
from holdfast.privacy import ChainFacts, Guarantee
from holdfast.privacy.estimated import added_delta, weaken_guarantee
from holdfast.wording import describe
from tests.snapshot_files import Snapshot

PURE = Guarantee(kind="pure", distance=L1, epsilon=Fraction(1, 4), smallest_secret=2, person=2)
PAIR = Guarantee(
    kind="approximate", distance=L2, epsilon=Fraction(1, 4), delta=Fraction(1, 10**6), rho=Fraction(1), smallest_secret=2, person=2
)

CHAINS = (ChainFacts(blocks=2, cells=9, kernel="line_gibbs", pairs=6000, largest_sweeps=20, sweeps=40, eta=Fraction(1, 2000)),)

etas = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 100))
epsilons = st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=1000)


class TestAddedDelta:
    @given(epsilons, etas)
    def test_is_rounded_up_by_less_than_one_in_a_hundred_thousand(self, epsilon: Fraction, eta: Fraction) -> None:
        true = (1 + math.exp(epsilon)) * float(eta)
        assert true * (1 - 1e-12) <= float(added_delta(epsilon, eta)) <= true * (1 + 1.01e-5)

    @given(epsilons, etas, st.integers(min_value=1, max_value=12))
    def test_covers_every_distance_from_one_on(self, epsilon: Fraction, eta: Fraction, r: int) -> None:
        """Definition 2 scales delta by (e^(eps r) - 1) / (e^eps - 1); at distance r the error adds (1 + e^(eps r)) eta."""
        e = float(epsilon)
        scaled = float(added_delta(epsilon, eta)) * math.expm1(e * r) / math.expm1(e)
        assert scaled >= (1 + math.exp(e * r)) * float(eta) * (1 - 1e-9)

    def test_is_attained(self) -> None:
        """Two laws on five points with ratio exactly e^eps, each moved by eta the worst way: delta is (1 + e^eps) eta, not less."""
        ratio, eta = Fraction(3, 2), Fraction(1, 50)  # e^eps = 3/2
        p = [Fraction(3, 5), Fraction(2, 5)]
        q = [Fraction(2, 5), Fraction(3, 5)]
        assert max(a / b for a, b in zip(p, q, strict=True)) == ratio
        moved_p, moved_q = [p[0] + eta, p[1] - eta], [q[0] - eta, q[1] + eta]
        delta = max(Fraction(0), moved_p[0] - ratio * moved_q[0])
        assert delta == (1 + ratio) * eta


class TestWeakened:
    def test_pure_becomes_approximate_and_estimated(self, snapshot: Snapshot) -> None:
        found = weaken_guarantee(PURE, Fraction(1, 1000), CHAINS)
        assert (found.kind, found.status, found.rho) == ("approximate", "estimated", None)
        assert found.eta == Fraction(1, 1000)
        assert found.epsilon == PURE.epsilon
        assert found.delta == added_delta(Fraction(1, 4), Fraction(1, 1000)) == Fraction("0.00228403")
        assert found.parameters == {"epsilon": "0.25", "delta": "0.00228403", "eta": "0.001"}
        assert found.chains == CHAINS
        snapshot(describe(found))

    def test_a_pair_keeps_its_delta_and_gains_one(self) -> None:
        found = weaken_guarantee(PAIR, Fraction(1, 1000), CHAINS)
        assert found.delta == Fraction(1, 10**6) + added_delta(Fraction(1, 4), Fraction(1, 1000))
        assert found.rho is None

    @given(st.lists(etas, min_size=2, max_size=2, unique=True))
    def test_more_error_promises_less(self, two: list[Fraction]) -> None:
        found = [weaken_guarantee(PURE, eta, CHAINS).cost(2).delta for eta in sorted(two)]
        assert all(a <= b for a, b in pairwise(found))

    def test_zcdp_is_refused_with_what_to_write(self) -> None:
        zcdp = Guarantee(kind="zcdp", distance=L2, rho=Fraction(1, 10), smallest_secret=2, person=2)
        with pytest.raises(InvalidParameter, match=r"no zCDP promise.*Give epsilon and delta"):
            weaken_guarantee(zcdp, Fraction(1, 1000), CHAINS)

    def test_what_leaves_no_promise_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="leaves no promise"):
            weaken_guarantee(PURE, Fraction(1, 2), CHAINS)

    def test_eta_goes_with_an_estimate_only(self) -> None:
        with pytest.raises(InvalidParameter, match="eta is the error of a law that is not exact"):
            Guarantee(kind="approximate", distance=L1, epsilon=1, delta="1e-3", eta="1e-3", smallest_secret=2, person=2)  # type: ignore[arg-type]
