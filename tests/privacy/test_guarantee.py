"""Guarantees: what each kind promises at each distance, rounded up, and in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.channels import Facts
from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.exact.balls import precision
from holdfast.lattices import Lattice
from holdfast.lattices.norms import L1, L2
from holdfast.mechanisms.mechanism import promise
from holdfast.privacy import ChainFacts, Exposed, Guarantee, Relation, zcdp_epsilon
from holdfast.privacy.parameters import Asked
from holdfast.wording import describe
from holdfast.wording.budget import budget_why
from holdfast.wording.guarantee import guarantee_info, guarantee_sentences
from tests.examples import examples
from tests.notebooks import notebook_page
from tests.privacy.reference import real
from tests.snapshot_files import Snapshot

CHAINS = (ChainFacts(blocks=1, cells=9, kernel="metropolis", pairs=3_000_000, largest_sweeps=5, sweeps=10, eta=Fraction(1, 10**6)),)


def pure(**changes: Any) -> Guarantee:
    plain: dict[str, Any] = {"kind": "pure", "distance": "l1", "epsilon": Fraction(1, 4), "smallest_secret": 2, "person": 2}
    return Guarantee(**plain | changes)


def zcdp(**changes: Any) -> Guarantee:
    plain: dict[str, Any] = {"kind": "zcdp", "distance": "l2", "rho": Fraction(1, 10), "smallest_secret": 2, "person": 2}
    return Guarantee(**plain | changes)


def approximate(**changes: Any) -> Guarantee:
    plain: dict[str, Any] = {"kind": "approximate", "distance": "l2", "epsilon": Fraction(1, 4), "delta": Fraction(1, 10**5)}
    return Guarantee(**plain | {"smallest_secret": 2, "person": 2} | changes)


def test_pure_costs_are_exact_multiples() -> None:
    promise = pure().per_person()
    assert promise is not None
    assert (promise.epsilon, promise.delta, promise.rho) == (Fraction(1, 2), 0, Fraction(1, 8))
    assert pure().per_distance().epsilon == Fraction(1, 4)
    grid = pure(smallest_secret=4, person=None)
    assert grid.per_person() is None
    assert grid.per_smallest_secret().epsilon == 1


def test_pure_in_l2_rounds_the_root_up() -> None:
    promise = pure(distance="l2").per_person()
    assert promise is not None
    assert isinstance(promise.epsilon, float)
    assert Fraction(promise.epsilon) ** 2 >= Fraction(1, 16) * 2
    assert Fraction(math.nextafter(promise.epsilon, 0)) ** 2 < Fraction(1, 16) * 2
    assert promise.rho == Fraction(1, 16)
    assert pure(distance="l2", smallest_secret=4, person=None).per_smallest_secret().epsilon == Fraction(1, 2)


def test_zcdp_costs_grow_with_the_square() -> None:
    promise = zcdp().per_person()
    assert promise is not None
    assert promise.rho == Fraction(1, 5)
    assert promise.epsilon == zcdp_epsilon("1/5", "1e-10")
    at_millionth = zcdp().per_person(delta="1e-6")
    assert at_millionth is not None
    assert (at_millionth.epsilon, at_millionth.delta) == (zcdp_epsilon("1/5", "1e-6"), Fraction(1, 10**6))
    assert zcdp(distance="l1").cost(3).rho == Fraction(9, 10)


def test_the_per_person_pair_of_an_approximate_promise_in_l1() -> None:
    """(2 epsilon, (1 + e^epsilon) delta), from [theory T34]."""
    promise = approximate(distance="l1").per_person()
    assert promise is not None
    assert promise.epsilon == Fraction(1, 2)
    with precision(200):
        truth = (1 + (real(1) / 4).exp()) / 10**5
        assert real(Fraction(promise.delta)) >= truth
        assert real(Fraction(math.nextafter(math.nextafter(float(promise.delta), 0), 0))) < truth
    assert approximate().per_distance().delta == Fraction(1, 10**5)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=500),
    st.integers(min_value=1, max_value=60).map(lambda k: Fraction(1, 2**k)),
    st.integers(min_value=1, max_value=200),
    st.sampled_from(["l1", "l2"]),
)
@settings(max_examples=examples(100))
def test_approximate_costs_are_definition_2_rounded_up(epsilon: Fraction, delta: Fraction, value: int, distance: str) -> None:
    promise = approximate(epsilon=epsilon, delta=delta, distance=distance).cost(value)
    with precision(600):
        r = arb(value) if distance == "l1" else arb(value).sqrt()
        cost = real(epsilon) * r
        allowed = real(delta) * (cost.exp() - 1) / (real(epsilon).exp() - 1)
        assert real(Fraction(promise.epsilon)) >= cost.lower()
        assert real(Fraction(promise.epsilon)) <= cost * real("1.000000000000001")
        if allowed > 1:
            assert promise.delta == 1
        else:
            assert real(Fraction(promise.delta)) >= allowed.lower()
            assert real(Fraction(promise.delta)) <= allowed * real("1.000000000000001")


def test_an_overflowing_delta_is_one() -> None:
    assert approximate(epsilon=Fraction(10**50)).cost(10**9).delta == 1.0


def test_words_for_one_person(snapshot: Snapshot) -> None:
    text = describe(pure())
    snapshot(text)
    assert "LITTLE IS PROTECTED" not in text
    assert "\n" not in text


def test_words_when_no_person_can_change_alone(snapshot: Snapshot) -> None:
    snapshot(describe(pure(smallest_secret=4, person=None)))
    snapshot(describe(pure(smallest_secret=4, person=None, smallest_secret_status="lower bound")), "the smallest secret is a lower bound")


def test_words_of_the_census_value_warn(snapshot: Snapshot) -> None:
    text = describe(zcdp(rho=Fraction(542, 339) ** 2 / 2))
    snapshot(text)
    assert "LITTLE IS PROTECTED" in text
    assert "LITTLE IS PROTECTED" not in describe(zcdp(rho=Fraction(1, 100)))


def test_words_of_an_estimate_with_exposed_cells(snapshot: Snapshot) -> None:
    names = tuple(f"cell {i}" for i in range(30))
    made = approximate(
        person=8, max_records=2, protect="household", exposed=Exposed(5, 30, names), eta="1e-6", status="estimated", chains=CHAINS
    )
    text = describe(made)
    snapshot(text)
    assert "estimate and not a proof" in text
    assert "cell 10" not in text


def test_words_where_people_may_come_and_go(snapshot: Snapshot) -> None:
    snapshot(describe(pure(smallest_secret=1, person_can_be_added=True, exposed=Exposed(1))), "some totals are kept")
    nothing_kept = describe(pure(smallest_secret=1, person_can_be_added=True, relation=Relation(same_totals=False)))
    snapshot(nothing_kept, "no totals are kept")
    assert "kept totals" not in nothing_kept
    only = describe(pure(smallest_secret=1, person=1, person_can_be_added=True, exposed=Exposed(1)))
    snapshot(only, "people only come and go")
    snapshot(describe(approximate(delta=Fraction(9, 10))), "a delta of 1")


@given(st.fractions(min_value=Fraction(1, 1000), max_value=30, max_denominator=1000), st.integers(min_value=1, max_value=3))
@settings(max_examples=examples(50))
def test_a_warning_exactly_above_odds_of_99_to_1(epsilon: Fraction, records: int) -> None:
    text = describe(pure(epsilon=epsilon, person=2 * records, max_records=records))
    assert ("LITTLE IS PROTECTED" in text) == (math.exp(epsilon * 2 * records) > 99)


@pytest.mark.parametrize("made", [pure(), pure(distance="l2"), zcdp(), approximate(), pure(smallest_secret=4, person=None)])
def test_fields_are_json_and_exact(made: Guarantee) -> None:
    fields = guarantee_info(made).to_dict()
    assert json.loads(json.dumps(fields)) == fields
    for name, text in fields["parameters"].items():
        assert Fraction(text) == getattr(made, name)
    for name, one in (("per_distance", made.per_distance()), ("smallest_secret", made.per_smallest_secret())):
        for parameter in ("epsilon", "delta"):
            written, held = Fraction(fields[name][parameter]), getattr(one, parameter)
            assert written >= Fraction(held), "text must not promise more than the number"
            assert written == held if isinstance(held, Fraction) else written <= Fraction(held) * (1 + Fraction(1, 10**11))
    assert (fields["per_person"] is None) == (made.person is None)
    assert fields["relation_fields"] == {
        "same_totals": True,
        "same_cells": False,
        "non_negative": False,
        "within_bounds": False,
        "identities": False,
    }
    words = {"relation": "tables with the same kept totals", "status_note": "", "why": budget_why(made), "text": describe(made)}
    assert fields == {**fields, **words, "sentences": guarantee_sentences(made)}


@pytest.mark.parametrize("cells", [2, 9])
def test_sentences_are_a_list_without_what_stands_elsewhere(cells: int) -> None:
    """No name of a cell, whatever it looks like; put together, and with the names and the budget, they are the paragraph."""
    names = ("a=1", "b=St. Louis). They fix nothing (")
    made = pure(exposed=Exposed(cells=cells, names=names), asked=Asked(per="person", epsilon=Fraction(1, 2)))
    sentences, rest = guarantee_sentences(made), describe(made)
    assert f"They fix {cells} cells, which are published without noise." in sentences
    assert not any(name in said for said in sentences for name in names)
    for said in sentences:
        before, found, after = rest.partition(said)
        assert found, said
        rest = before + after
    told = "By name" if cells == 2 else "Among them"
    assert rest.split() == f"Requested: epsilon = 0.5 for one person who changes cell. {told}: {'; '.join(names)}.".split()


def test_from_the_facts_of_a_lattice() -> None:
    grid = Lattice(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]))
    made = promise(Facts(grid), "zcdp", "l2", rho=Fraction(1, 8))
    assert (made.smallest_secret, made.person, made.rho) == (4, None, Fraction(1, 8))
    assert made.per_smallest_secret().rho == Fraction(1, 2)
    total = Facts(Lattice(np.array([[1, 1, 1]])), protect="household", max_records=2)
    assert promise(total, "pure", "l1", epsilon=Fraction(1)).person == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "zcdp", "epsilon": None, "rho": 0}, "budget of zero publishes nothing"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"delta": Fraction(1, 2)}, "Leave delta out"),
        ({"rho": 1}, "Leave rho out"),
        ({"kind": "gaussian"}, "kind must be one of"),
        ({"distance": "l3"}, "distance must be one of"),
        ({"status": "sure"}, "status must be one of"),
        ({"kind": "approximate", "delta": "1e-9", "status": "estimated", "chains": CHAINS}, "needs eta"),
        ({"kind": "approximate", "delta": "1e-9", "status": "estimated", "eta": "1e-9"}, "needs eta.* and the chains that eta rests on"),
        ({"status": "estimated", "eta": "1e-9", "chains": CHAINS}, "no pure promise"),
        ({"chains": CHAINS}, "not exact"),
        ({"smallest_secret": 4}, "Write person=None"),
        ({"smallest_secret": 0}, "smallest_secret must be a whole number"),
        ({"person": 0}, "person must be a whole number"),
        ({"max_records": 0}, "max_records must be a whole number"),
    ],
)
def test_bad_guarantees_get_clear_errors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        pure(**changes)


@pytest.mark.parametrize("delta", [0, 1])
def test_delta_of_a_guarantee_lies_strictly_between_zero_and_one(delta: int) -> None:
    with pytest.raises(InvalidParameter, match="delta must lie strictly between 0 and 1"):
        approximate(delta=delta)
    with pytest.raises(InvalidParameter, match="delta must lie strictly between 0 and 1"):
        zcdp().per_person(delta=delta)


def test_floats_are_refused() -> None:
    with pytest.raises(InexactParameter, match=r"'0\.25'"):
        pure(epsilon=0.25)
    with pytest.raises(InexactParameter, match=r"'1\.5'"):
        pure().cost(1.5)  # type: ignore[arg-type]


def test_guarantees_are_values() -> None:
    assert pure() == pure(epsilon="0.25")
    assert hash(pure()) == hash(pure())
    with pytest.raises(AttributeError):
        pure().epsilon = Fraction(1)  # type: ignore[misc]


def test_a_screen_shows_fields() -> None:
    for made in (pure(), pure(distance="l2"), zcdp(), approximate(eta="1e-6", status="estimated", chains=CHAINS)):
        assert len(repr(made)) <= 2 * 140
        assert repr(made).startswith("Guarantee(one person: ")
        asked = replace(made, asked=Asked(per="distance", epsilon=Fraction(1, 4)))
        assert repr(asked).startswith("Guarantee(asked: epsilon = 0.25 per distance; one person: ")
    assert "one person: epsilon = 0.5; one unit of l1: epsilon = 0.25; kind: pure; " in repr(pure())
    page = notebook_page(pure(protect="<b>household</b>"))
    assert "<b>" not in page
    assert "one &lt;b&gt;household&lt;/b&gt;" in page
    assert page.count("<tr>") == 6


def test_norms_go_by_name_too() -> None:
    assert pure(distance="l2") == pure(distance=L2) != pure(distance=L1)
