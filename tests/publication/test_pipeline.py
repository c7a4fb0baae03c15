"""One path from a plan to a folder: a release that is never changed, one card, the same bytes with a ledger and without."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import holdfast as hf
from holdfast.display import watching
from holdfast.engines.local import BoundRelease
from holdfast.errors import InvalidParameter
from holdfast.ledger import Ledger
from holdfast.publication import publication
from holdfast.publication.booking import ChargedAccount, Unbooked
from holdfast.publication.folder import Output
from holdfast.publication.order import Order
from holdfast.publication.pipeline import carry_out, draw
from holdfast.publication.publication import Publication
from holdfast.randomness.labels import Claims
from holdfast.tables import Table

DATA = "residents"
UNIVERSE = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"]})
COUNTS = np.array([1_234_567_891, 2_345_678_917, 3_456_789_013, 4_567_890_127, 5_678_901_239, 6_789_012_347])
"""So large that none of them stands anywhere by chance."""
KEEP = [hf.margin("area")]
LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
MECHANISMS = {
    "laplace": LAPLACE,
    "gaussian": hf.GeneralizedGaussian(rho="1/10", per="distance"),
    "rounded": hf.RoundedProjection(epsilon="1/2", per="distance"),
    "suppression": hf.Suppression(),
}
WIDE = {
    "laplace": hf.GeneralizedLaplace(epsilon="1/10000", per="distance"),
    "gaussian": hf.GeneralizedGaussian(rho="1/10000000", per="distance"),
    "rounded": hf.RoundedProjection(epsilon="1/10000", per="distance"),
    "suppression": hf.Suppression(),
}
"""So much noise that none is zero: a count that is found was not published."""
KEY = b"a secret key of 32 bytes exactly"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
    made.grant(DATA, kind="approximate", epsilon="9", delta="1e-6", approver="A. Chief", reason="the census")
    return made


@pytest.fixture
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fresh key is this one."""
    monkeypatch.setattr(hf.NoiseKey, "generate", lambda: hf.NoiseKey._open(KEY, True, Claims()))


def a_table() -> Table:
    return Table(UNIVERSE, COUNTS, name=DATA)


def a_release(mechanism: Any = LAPLACE, **options: Any) -> Publication:
    return hf.release(a_table(), KEEP, mechanism, release_id="r1", **{"ledger": None, **options})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class TestAReleaseIsNeverChanged:
    @pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Publication)])
    def test_its_fields_are_frozen(self, name: str) -> None:
        made = a_release()
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(made, name)

    def test_nor_what_it_says_of_itself(self) -> None:
        made = a_release()
        for name in ("id", "date", "entry", "guarantee", "card", "kept_rows", "anything"):
            with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
                setattr(made, name, None)

    def test_its_numbers_are_read_only(self) -> None:
        made = a_release()
        for values in (made.table.counts, *made.totals):
            with pytest.raises(ValueError, match="read-only"):
                values[0] = 0

    def test_saving_changes_nothing_that_it_says(self, ledger: Ledger, tmp_path: Path) -> None:
        for number, options in enumerate(({}, {"ledger": ledger})):
            made = a_release(**options)
            before = (made.card, made.kept_rows, made.entry, repr(made), made.table.counts.tolist())
            made.save(tmp_path / str(number))
            assert (made.card, made.kept_rows, made.entry, repr(made), made.table.counts.tolist()) == before

    def test_an_order_is_checked_when_it_is_made(self) -> None:
        for name, date in (("no/slash", None), ("r1", "yesterday"), ("r1", "2030-02-30")):
            with pytest.raises(InvalidParameter):
                Order(name, date)
        with pytest.raises(dataclasses.FrozenInstanceError):
            Order("r1").release_id = "r2"  # type: ignore[misc]


class TestOneCard:
    @pytest.mark.parametrize("booked", [True, False], ids=["ledger", "no ledger"])
    def test_it_is_built_once(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool) -> None:
        built: list[str] = []
        make_card = publication.make_card

        def counted(plan: Any, exposure: Any, about: Any, *others: Any) -> Any:
            built.append(about.id)
            return make_card(plan, exposure, about, *others)

        monkeypatch.setattr("holdfast.publication.publication.make_card", counted)
        made = a_release(ledger=ledger if booked else None)
        assert built == []
        first = made.card
        made.save(tmp_path / "out")
        assert made.card == first
        assert built == ["r1"]
        written = json.loads((tmp_path / "out" / "card.json").read_text())
        assert {**written, "files": {}} == first.to_dict()
        assert set(written["files"]) == {path.name for path in (tmp_path / "out").iterdir()} - {"card.json"}

    def test_it_is_never_changed(self) -> None:
        made = a_release()
        with pytest.raises(ValidationError):
            made.card.release.id = "another"
        assert made.card.kept.constraints == (str(KEEP[0]),)


class TestTheSameWithALedgerAndWithout:
    @pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
    @pytest.mark.usefixtures("same_key")
    def test_equal_keys_give_equal_bytes(self, ledger: Ledger, tmp_path: Path, mechanism: Any) -> None:
        """Only the entry of the ledger differs, on the card and on the pages made from it."""
        plan, output = hf.plan(a_table(), KEEP, mechanism), ("csv", "parquet")
        order = Order("r1", "2030-04-01")
        entry = carry_out(plan, a_table(), order, Output(tmp_path / "with", output), ChargedAccount(ledger, DATA))
        assert carry_out(plan, a_table(), order, Output(tmp_path / "without", output)) is None
        booked, unbooked = files(tmp_path / "with"), files(tmp_path / "without")
        assert booked.keys() == unbooked.keys()
        for name in ("table.csv", "table.parquet", "kept.csv"):
            assert booked[name] == unbooked[name]
        one, other = (json.loads(found["card.json"]) for found in (booked, unbooked))
        assert (one["release"].pop("ledger"), other["release"].pop("ledger")) == (entry, None)
        assert entry is not None
        assert one["release"].pop("ledger_text") != other["release"].pop("ledger_text")
        granted, nothing = one["release"].pop("grant"), other["release"].pop("grant")
        assert granted is not None
        assert nothing is None
        said = [[warning["kind"] for warning in card.pop("warnings")] for card in (one, other)]
        assert said == [[], [] if mechanism.name == "suppression" else ["no-limit"]]
        one.pop("files"), other.pop("files")
        assert one == other

    @pytest.mark.usefixtures("same_key")
    def test_step_by_step_is_what_carry_out_does(self, tmp_path: Path) -> None:
        """prepare, draw, save; hf.release and save; and all in one: the same folder."""
        plan, order = hf.plan(a_table(), KEEP, LAPLACE), Order("r1", allow_exposed=0)
        assert draw(plan, a_table(), order).save(tmp_path / "steps") == tmp_path / "steps"
        a_release().save(tmp_path / "saved", formats=Output(tmp_path).formats)
        carry_out(plan, a_table(), order, Output(tmp_path / "at once"))
        assert files(tmp_path / "steps") == files(tmp_path / "saved") == files(tmp_path / "at once")

    @pytest.mark.usefixtures("same_key")
    def test_a_plan_draws_again_what_it_drew(self) -> None:
        """A drawing is not changed by how a run goes; nor by a pickle."""
        plan = hf.plan(a_table(), KEEP, LAPLACE)
        drawn = [draw(made, a_table(), Order("r1")).table.counts.tolist() for made in (plan, plan, pickle.loads(pickle.dumps(plan)))]
        assert drawn[0] == drawn[1] == drawn[2] != COUNTS.tolist()

    @pytest.mark.parametrize("booked", [True, False], ids=["ledger", "no ledger"])
    def test_steps_are_told(self, ledger: Ledger, tmp_path: Path, booked: bool) -> None:
        """The bar of the draw stood at 0 while exposure was worked out, and writing showed nothing."""
        account = ChargedAccount(ledger, DATA) if booked else None
        keep = [hf.subset("area", ["a"]), hf.subset("area", ["b"])]
        seen: list[tuple[str, int, int]] = []
        plan = hf.plan(a_table(), keep, LAPLACE)
        with watching(lambda *told: seen.append(told)):
            carry_out(plan, a_table(), Order("r1"), Output(tmp_path / "out"), account)
        assert [told[1:] for told in seen if told[0] == "Drawing"] == [(0, 6), (4, 6), (6, 6), (6, 6)]
        assert list(dict.fromkeys(name for name, _, _ in seen)) == [
            "Finding cells that are 0",
            *(["Trying the samplers"] if booked else []),
            "Drawing",
            "Finding exposed cells",
            "Writing",
            "Writing the table",
            "Writing the pages",
        ]

    def test_a_key_of_the_users_is_refused_with_an_account(self, ledger: Ledger) -> None:
        with pytest.raises(InvalidParameter, match=r"fresh key of its own\. Leave key out"):
            draw(hf.plan(a_table(), KEEP, LAPLACE), a_table(), Order("r1"), ChargedAccount(ledger, DATA), key=hf.NoiseKey.for_tests("x"))
        assert ledger.reservation(DATA, "r1") is None

    def test_a_plan_for_another_table_is_refused_before_anything_is_reserved(self, ledger: Ledger, tmp_path: Path) -> None:
        other = Table(hf.Universe.product({"area": ["a", "b", "d"], "sex": ["F", "M"]}), COUNTS, name=DATA)
        for account in (None, ChargedAccount(ledger, DATA)):
            with pytest.raises(InvalidParameter, match="made for another table"):
                carry_out(hf.plan(a_table(), KEEP, LAPLACE), other, Order("r1"), Output(tmp_path / "out"), account)
        assert ledger.reservation(DATA, "r1") is None
        assert not (tmp_path / "out").exists()


def reachable(start: Any) -> Iterator[Any]:
    """Every object that can be reached from one by attributes and elements, but not through classes, functions and modules."""
    seen, waiting = set[int](), [start]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, type | ModuleType | FunctionType | BuiltinFunctionType | MethodType):
            continue
        seen.add(id(found))
        yield found
        waiting += gc.get_referents(found)
        if isinstance(found, np.ndarray) and found.dtype == object:
            waiting += found.ravel().tolist()


class TestNothingConfidentialStaysBehind:
    @pytest.mark.parametrize("mechanism", WIDE.values(), ids=WIDE)
    @pytest.mark.parametrize("saved", [True, False], ids=["saved", "as drawn"])
    @pytest.mark.usefixtures("same_key")
    def test_no_count_no_noise_and_no_key(self, tmp_path: Path, mechanism: Any, saved: bool) -> None:
        """Neither in what can be reached from a release, nor in its pickle, nor in what comes out of that."""
        made = a_release(mechanism)
        if saved:
            made.save(tmp_path / "out")
        pickled = pickle.dumps(made)
        again = pickle.loads(pickled)
        assert again.table.counts.tolist() == made.table.counts.tolist()
        assert again.card == made.card
        noise = made.table.counts - COUNTS
        assert noise.all()
        secret = [noise.astype("<i8").tobytes(), (-noise).astype("<i8").tobytes(), KEY]
        secret += [count.astype("<i8").tobytes() for count in COUNTS] + [str(count).encode() for count in COUNTS]
        assert not [value for value in secret if value in pickled]
        for start in (made, again):
            for found in reachable(start):
                assert not isinstance(found, BoundRelease | Table | hf.NoiseKey)
                if isinstance(found, np.ndarray) and found.dtype != object:
                    numbers = found.tobytes()
                    assert not [value for value in secret if value in numbers]
                elif type(found) is int:
                    assert found not in COUNTS
                elif isinstance(found, bytes):
                    assert KEY not in found

    def test_the_search_would_find_them(self) -> None:
        """The test above is worth something: what holds the table is noticed."""
        made = a_release()
        booking = Unbooked()
        booking.hidden = (lambda: None, {"deep": [a_table()]})  # type: ignore[attr-defined]
        wrong = dataclasses.replace(made, source=booking)
        assert any(isinstance(found, Table) for found in reachable(wrong))
        assert any(isinstance(found, np.ndarray) and COUNTS[0].tobytes() in found.tobytes() for found in reachable(wrong))

    def test_an_unbooked_release_is_copied(self, tmp_path: Path) -> None:
        made = a_release()
        for duplicate in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert duplicate.card == made.card
            with pytest.raises(dataclasses.FrozenInstanceError):
                duplicate.private = True  # type: ignore[misc]
        copy.deepcopy(made).save(tmp_path / "copy", formats=["csv"])
        made.save(tmp_path / "own", formats=["csv"])
        assert files(tmp_path / "copy") == files(tmp_path / "own")


@pytest.mark.parametrize(
    "revises",
    [("r1", ()), ("", ()), ("no/name", ()), ("r0", (("total", "total", 1.5),)), ("r0", (("total", 3),)), ("r0", None), "r0"],
    ids=["itself", "no name", "no file name", "half a person", "two columns", "no rows", "no pair"],
)
def test_revises_is_checked_before_anything_is_charged(ledger: Ledger, tmp_path: Path, revises: Any) -> None:
    """A card that could not be made was found out after the draw, with the charge spent."""
    made, account = hf.plan(a_table(), KEEP, LAPLACE), ChargedAccount(ledger, DATA, None)
    with pytest.raises(InvalidParameter, match=r"revise"):
        carry_out(made, a_table(), Order("r1", revises=revises), Output(tmp_path / "out"), account)
    assert not ledger.account(DATA).releases
