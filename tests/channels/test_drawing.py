"""Drawings: chosen once, pickled with what pilots and assessments found; and samplers that read what is confidential."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.chains import sampler as chain_sampler
from holdfast.chains.assessment import Assessment
from holdfast.chains.kernels import KERNELS
from holdfast.chains.sampler import chain_samplers
from holdfast.channels import Channel, Drawing, Facts, Law, choose_samplers
from holdfast.engines.local import bind
from holdfast.errors import InvalidParameter, InvariantBroken
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Grid, OneSum, Shape
from holdfast.laws import L1Laplace, Reads, Target
from holdfast.mechanisms.mechanism import promise
from holdfast.randomness import Words
from holdfast.samplers.choice import Choice, Reason
from holdfast.samplers.protocol import InputSampler, Ints
from holdfast.samplers.table import SAMPLERS, choose
from holdfast.tables import Declarations
from holdfast.tables.columns import CellKeySums
from tests.samplers.test_known_answers import DRAWN

from .cases import CASES, COUNTS, GRID, KEEPS, MECHANISMS, table

WHERE_PILOTS_ARE = ("laplace_rejection", "l2_laplace")


def drawn(drawing: Drawing) -> list[int]:
    return list(bind(drawing, table(), hf.NoiseKey.for_tests("pickled"), "pickled").draw().tolist())


@pytest.fixture
def _nothing_is_found_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in another process: nothing chosen is remembered, and whatever would be long fails."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("found again")

    choose.cache_clear()
    chain_sampler.known_samplers.clear()
    for module in WHERE_PILOTS_ARE:
        monkeypatch.setattr(f"holdfast.samplers.{module}.estimate_acceptance", fail)
    monkeypatch.setattr("holdfast.chains.sampler.assess_all", fail)
    monkeypatch.setattr("holdfast.channels.drawing.choose", fail)
    monkeypatch.setattr("holdfast.channels.drawing.chain_samplers", fail)
    yield
    choose.cache_clear()


PLANS: dict[tuple[str, str], tuple[bytes, list[int], str, Any]] = {}


@pytest.fixture(scope="module", autouse=True)
def _made_before() -> None:
    for keep, how in CASES:
        plan = hf.plan(GRID, KEEPS[keep], MECHANISMS[how])
        before = pickle.dumps(plan)
        PLANS[keep, how] = before, drawn(plan.drawing), str(plan.drawing.sampler_plan), plan.guarantee


@pytest.mark.usefixtures("_nothing_is_found_again")
@pytest.mark.parametrize(("keep", "how"), CASES)
def test_a_plan_is_pickled_with_its_samplers(keep: str, how: str) -> None:
    before, counts, samplers, guarantee = PLANS[keep, how]
    plan = pickle.loads(before)
    assert (str(plan.drawing.sampler_plan), plan.guarantee) == (samplers, guarantee)
    assert drawn(plan.drawing) == counts
    assert drawn(pickle.loads(pickle.dumps(plan)).drawing) == counts, "pickled after it drew"


SAMPLED: dict[str, tuple[bytes, bytes, float, list[list[int]]]] = {}


@pytest.fixture(scope="module", autouse=True)
def _sampled_before() -> None:
    for name, (shape, target) in DRAWN.items():
        choose.cache_clear()
        choice = choose(shape, target)
        fresh = pickle.dumps(choice)
        with hf.NoiseKey.for_tests("pickled").stream(name) as words:
            values = choice.noise.draw(2, words).tolist()
        SAMPLED[name] = fresh, pickle.dumps(choice), choice.noise.expected_tries, values


@pytest.mark.usefixtures("_nothing_is_found_again")
@pytest.mark.parametrize("name", DRAWN)
def test_every_sampler_is_pickled_with_what_its_pilot_found(name: str) -> None:
    fresh, used, tries, values = SAMPLED[name]
    for written in (fresh, used):
        sampler = pickle.loads(written).noise
        assert sampler.expected_tries == tries
        with hf.NoiseKey.for_tests("pickled").stream(name) as words:
            assert sampler.draw(2, words).tolist() == values


@pytest.mark.parametrize("name", KERNELS)
def test_every_chain_is_pickled_with_its_assessment(name: str) -> None:
    (chain,) = chain_samplers(((name, Grid((3, 3))),), L1Laplace(Fraction(1)), Fraction(3, 100))
    again = pickle.loads(pickle.dumps(chain))
    assert isinstance(chain.assessment, Assessment)
    assert (again.assessment.steps, again.assessment.eta) == (chain.assessment.steps, chain.assessment.eta)
    assert np.array_equal(again.assessment.meetings.times, chain.assessment.meetings.times)
    values = []
    for each in (chain, again):
        with hf.NoiseKey.for_tests("pickled").stream(name) as words:
            values.append(each.draw(2, words).tolist())
    assert values[0] == values[1]


def test_a_law_chooses_when_it_is_asked() -> None:
    law = MECHANISMS["laplace"].law(hf.lattice(GRID, KEEPS["grid"]))
    assert "drawing" not in vars(law)
    assert law.guarantee.kind == "pure"
    assert law.drawing is law.drawing


@dataclass(frozen=True)
class Pushed(Target):
    """A toy that reads counts: one is moved from the largest cell of each block to the smallest."""

    reads = Reads.COUNTS

    @property
    def fields(self) -> tuple[str | int, ...]:
        return ("toy that reads counts",)

    @property
    def formula(self) -> str:
        return "one is moved from the largest cell to the smallest"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return float("-inf") if t > 2 * lattice.cells else 0.0


class PushedWithKeys(Pushed):
    reads = Reads.CELL_KEYS


class Pusher:
    """Remembers what it was given."""

    name, expected_tries = "toy", 1.0

    def __init__(self, cells: int, lost: int = 0) -> None:
        self.cells, self.lost = cells, lost
        self.given: list[tuple[Ints, CellKeySums | None]] = []

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        self.given.append((counts.copy(), cell_keys))
        out = counts.copy()
        for row in out:
            row[row.argmax()] -= 1 + self.lost
            row[row.argmin()] += 1
        return out


def pushed(target: Target = Pushed()) -> Channel:  # noqa: B008
    facts = Facts.of(Declarations.of(table()), KEEPS["one sum"])
    return Channel(facts, target, promise(facts, "pure", "l1", epsilon=Fraction(1)))


class TestReadingCounts:
    """The contract of `InputSampler`."""

    @pytest.fixture
    def pusher(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pusher]:
        made = Pusher(3)
        rows: list[tuple[type[Shape], type[Target]]] = [(OneSum, Pushed), (OneSum, PushedWithKeys)]
        for row in rows:
            monkeypatch.setitem(SAMPLERS, row, lambda shape, _: Choice(made, Reason.OTHER))
        choose.cache_clear()
        yield made
        choose.cache_clear()

    def test_it_is_given_counts_and_what_it_returns_is_published(self, pusher: Pusher) -> None:
        made = drawn(choose_samplers(pushed()))
        assert made == [13, 3, 1, 7, 119, 6, 2, 9, 32]
        assert [given.tolist() for given, _ in pusher.given] == [[[14, 3, 0]], [[7, 120, 5]], [[1, 9, 33]]]
        assert all(keys is None for _, keys in pusher.given)

    def test_each_block_has_a_stream_of_its_own(self) -> None:
        """What one block reads says nothing about where another's words are."""
        assert [(task.label, task.cells.tolist()) for task in pushed().tasks()] == [
            (("blocks", 0), [[0, 1, 2]]),
            (("blocks", 3), [[3, 4, 5]]),
            (("blocks", 6), [[6, 7, 8]]),
        ]

    def test_totals_that_it_breaks_are_not_published(self, pusher: Pusher) -> None:
        pusher.lost = 1
        with pytest.raises(InvariantBroken, match=r"Nothing was written"):
            drawn(choose_samplers(pushed()))

    @pytest.mark.usefixtures("pusher")
    def test_cell_keys_must_be_there(self) -> None:
        assert pushed(PushedWithKeys()).needs_cell_keys
        with pytest.raises(InvalidParameter, match=r"reads cell keys, and the table has none"):
            drawn(choose_samplers(pushed(PushedWithKeys())))

    def test_cell_keys_come_in_the_order_of_the_counts(self, pusher: Pusher) -> None:
        keyed = hf.Table(GRID, COUNTS, cell_keys=np.where(COUNTS > 0, np.arange(9) + 100, 0))
        bind(choose_samplers(pushed(PushedWithKeys())), keyed, hf.NoiseKey.for_tests("keys"), "keys").draw()
        assert [keys.sums.tolist() for _, keys in pusher.given if keys is not None] == [
            [[100, 101, 0]],
            [[103, 104, 105]],
            [[106, 107, 108]],
        ]

    @pytest.mark.usefixtures("pusher")
    def test_it_has_no_law_of_its_own(self) -> None:
        with pytest.raises(InvalidParameter, match="depends on the counts"):
            Law(pushed())
        with pytest.raises(AssertionError, match="publishes from counts"):
            choose(OneSum(3), Pushed()).noise  # noqa: B018

    def test_the_two_protocols_are_told_apart(self) -> None:
        assert isinstance(Pusher(3), InputSampler)
        assert not any(isinstance(choose(*case).sampler, InputSampler) for case in DRAWN.values())
