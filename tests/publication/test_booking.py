"""A release through a ledger, step by step: what is charged and when, what is refused, what the card says."""

from __future__ import annotations

import copy
import errno
import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.engines.local import BoundRelease
from holdfast.errors import (
    BudgetExceeded,
    HoldfastError,
    IdenticalRelease,
    InvalidParameter,
    KeyMisuse,
    LedgerProblem,
    NoGrant,
    OtherInput,
    OutputExists,
    OutputProblem,
    WrongState,
)
from holdfast.privacy.ledger import Ledger
from holdfast.publication import booking, folder, pipeline
from holdfast.publication.booking import Account
from holdfast.publication.folder import Output, fill_folder, put_in_place
from holdfast.publication.order import Order
from holdfast.wording.ledger import ledger_screen
from tests.ledger.helpers import run_sql

DATA = "residents"
SECRET = b"the secret of the office"
UNIVERSE = hf.Universe.product({"area": ["a", "b"], "sex": ["F", "M"]})
COUNTS = np.array([5, 3, 2, 9])
KEEP = (hf.margin("area"),)
LAPLACE = hf.GeneralizedLaplace(epsilon="1/4")
"""Costs 1/2: a person who changes cell is at distance 2."""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOLDFAST_KEY", "HOLDFAST_KEY_FILE", "HOLDFAST_LEDGER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return a_ledger(tmp_path)


def a_ledger(folder: Path, kind: str = "pure", **budget: str) -> Ledger:
    made = Ledger.open(folder / "ledger.db", create=True)
    made.grant(DATA, kind=kind, approver="A. Chief", reason="the census", **(budget or {"epsilon": "3"}))  # type: ignore[arg-type]
    return made


def a_table(counts: Any = COUNTS, universe: hf.Universe = UNIVERSE, **options: Any) -> hf.Table:
    return hf.Table(universe, counts, name=DATA, **options)


def a_release(ledger: Ledger, name: str = "r1", mechanism: Any = LAPLACE, keep: Any = KEEP, table: hf.Table | None = None) -> Any:
    return hf.release(table or a_table(), keep, mechanism, ledger=ledger, release_id=name)


def files(place: Path) -> dict[str, bytes]:
    """Of a folder and all below it, without the ledger."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file() and "ledger.db" not in path.name}


def state(ledger: Ledger, name: str = "r1") -> str | None:
    held = ledger.reservation(DATA, name)
    return None if held is None else held.state


def spent(ledger: Ledger) -> Fraction:
    return ledger.balance(DATA).spent


def run(ledger: Ledger | None, folder: Path, name: str = "r1", **options: Any) -> str:
    """As the command line does it. Without a ledger the result is empty."""
    table = options.pop("table", a_table())
    plan = hf.plan(table, options.pop("keep", KEEP), options.pop("mechanism", LAPLACE))
    order = Order(name, revises=options.pop("revises", None))
    output = Output(folder, options.pop("formats", ("csv",)), sign=options.pop("sign", None), force=options.pop("force", False))
    secret = options.pop("secret", SECRET)
    account = None if ledger is None else Account(ledger, DATA, secret)
    return pipeline.carry_out(plan, table, order, output, account, **options) or ""


def stop(*_: object) -> None:
    raise KeyboardInterrupt


def interrupted(ledger: Ledger, folder: Path, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(ledger, folder, progress=stop, **options)


def fails(code: int) -> Callable[..., Any]:
    def step(*_: Any, **__: Any) -> Any:
        raise OSError(code, "said by the system")

    return step


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "ledger.db")


class TestStepByStep:
    def test_reserved_before_the_draw_and_closed_after_the_folder(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[tuple[str, str | None]] = []
        seal = hf.NoiseKey.seal

        def note(what: str, step: Callable[..., Any]) -> Callable[..., Any]:
            def noted(*given: Any, **more: Any) -> Any:
                seen.append((what, state(ledger)))
                return step(*given, **more)

            return noted

        monkeypatch.setattr(hf.NoiseKey, "seal", note("seal", seal))
        monkeypatch.setattr(BoundRelease, "draw", note("draw", BoundRelease.draw))
        for module, step in ((pipeline, "fill_folder"), (booking, "put_in_place")):
            monkeypatch.setattr(module, step, note(step, getattr(module, step)))
        monkeypatch.setenv("HOLDFAST_KEY", SECRET.decode())
        made = a_release(ledger)
        assert seen == [("seal", None), ("draw", "drawing")]
        assert state(ledger) == "drawing"
        assert spent(ledger) == Fraction(1, 2)
        assert made.save(tmp_path / "out") == tmp_path / "out"
        assert seen[2:] == [("fill_folder", "drawing"), ("put_in_place", "committed")]
        assert state(ledger) == "closed"
        assert spent(ledger) == Fraction(1, 2)
        assert [event.kind for event in ledger.events(DATA)][1:] == ["reserved", "drawing", "staged", "committed", "published", "closed"]
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        assert (held.sealed_key, held.input_digest) == (None, None)
        card = json.loads((tmp_path / "out" / "card.json").read_text())
        assert card["release"] == {"id": "r1", "date": None, "private": True, "ledger": held.head}
        assert card["software"] == held.facts["software"]
        assert left(tmp_path) == ["out"]
        hf.verify(tmp_path / "out")

    def test_unsaved_is_spent_and_publishes_nothing(self, ledger: Ledger, tmp_path: Path) -> None:
        a_release(ledger)
        assert state(ledger) == "drawing"
        assert spent(ledger) == Fraction(1, 2)
        with pytest.raises(WrongState, match="was begun and is drawing"):
            a_release(ledger)
        with pytest.raises(WrongState, match="its key was not sealed"):
            run(ledger, tmp_path / "out", resume=True)
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        assert ledger.void(held, "never saved") is False
        assert spent(ledger) == Fraction(1, 2)
        assert left(tmp_path) == []

    def test_no_copy_that_could_be_saved_unspent(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor a pickle that would hold the secret which seals keys."""
        monkeypatch.setenv("HOLDFAST_KEY", "a secret that is long enough")
        made = a_release(ledger)
        for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(LedgerProblem, match="cannot be pickled or copied"):
                duplicate(made)
        assert "a secret that is long enough" not in repr(vars(made))
        for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(LedgerProblem, match="cannot be pickled or copied"):
                duplicate(made.booking)

    def test_saved_once(self, ledger: Ledger, tmp_path: Path) -> None:
        """A refused place changes nothing, another one is taken, and a second copy is refused, wherever it is to go."""
        made = a_release(ledger)
        (tmp_path / "taken").mkdir()
        with pytest.raises(OutputExists):
            made.save(tmp_path / "taken")
        made.save(tmp_path / "out", formats=["csv"])
        for place in (tmp_path / "second", tmp_path / "taken" / "second"):
            with pytest.raises(IdenticalRelease, match=r"\(closed\)"):
                made.save(place)
        with pytest.raises(IdenticalRelease):
            a_release(ledger)
        assert left(tmp_path) == ["out", "taken"]
        assert left(tmp_path / "taken") == []
        assert spent(ledger) == Fraction(1, 2)

    def test_arguments(self, ledger: Ledger) -> None:
        for wrong in ({"release_id": None}, {"key": hf.NoiseKey.for_tests("x")}, {"table": hf.Table(UNIVERSE, COUNTS)}):
            given_arguments: dict[str, Any] = {"table": a_table(), "release_id": "r1", "ledger": ledger} | wrong
            with pytest.raises(InvalidParameter, match="needs release_id and dataset"):
                hf.release(keep=KEEP, mechanism=LAPLACE, **given_arguments)
        named = hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, LAPLACE, ledger=ledger, release_id="r1", dataset=DATA)
        assert named.entry is not None
        with pytest.raises(InvalidParameter, match="date"):
            hf.release(a_table(), KEEP, LAPLACE, ledger=ledger, release_id="r2", date="yesterday")
        with pytest.raises(InvalidParameter, match="Tables are written as"):
            run(ledger, Path("out"), "r2", formats=("xml",))
        assert state(ledger, "r2") is None


class TestWhatIsCharged:
    def test_without_a_grant_nothing_is_drawn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        empty = Ledger.open(tmp_path / "ledger.db", create=True)
        with pytest.raises(NoGrant, match="No budget was granted for the data set 'residents'"):
            a_release(empty)
        poor = a_ledger(tmp_path, epsilon="1/4")
        with pytest.raises(BudgetExceeded, match="Nothing was drawn or spent"):
            a_release(poor)
        with pytest.raises(BudgetExceeded):
            run(poor, tmp_path / "out")
        assert spent(poor) == 0
        assert left(tmp_path) == []

    def test_a_gaussian_charges_rho(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path, "approximate", epsilon="6", delta="1e-6")
        a_release(ledger, mechanism=hf.GeneralizedGaussian(rho="1/100"))
        assert spent(ledger) == Fraction(2, 100)  # squared distance 2
        tight = hf.GeneralizedGaussian(epsilon="1", delta="1e-7")
        made = a_release(ledger, "r2", tight)
        assert made.guarantee.rho is not None
        held = ledger.reservation(DATA, "r2")
        assert held is not None
        assert held.charge.kind == "zcdp"
        assert held.charge.rho == 2 * made.guarantee.rho
        assert spent(ledger) == Fraction(2, 100) + held.charge.rho
        a_release(ledger, "r3")  # pure epsilon e is rho e^2 / 2
        assert spent(ledger) == Fraction(2, 100) + held.charge.rho + Fraction(1, 8)

    def test_a_pure_budget_takes_no_gaussian(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerProblem, match="is pure"):
            a_release(ledger, mechanism=hf.GeneralizedGaussian(rho="1/100"))
        assert spent(ledger) == 0

    def test_another_unit_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerProblem, match="per 'person'"):
            a_release(ledger, table=a_table(unit="household"))
        with pytest.raises(LedgerProblem, match="per 'person'"):
            a_release(ledger, table=a_table(max_records=None))
        assert spent(ledger) == 0

    def test_more_records_cost_more(self, ledger: Ledger) -> None:
        a_release(ledger, table=a_table(max_records=3))
        assert spent(ledger) == Fraction(3, 2)

    def test_suppression_is_free_and_booked(self, ledger: Ledger, tmp_path: Path) -> None:
        a_release(ledger, mechanism=hf.Suppression()).save(tmp_path / "out")
        assert state(ledger) == "closed"
        assert spent(ledger) == 0
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["ledger"] is not None

    def test_disjoint_cells_cost_the_larger(self, ledger: Ledger) -> None:
        """Two tables of the same columns and codes that share no cell."""
        one = hf.Universe.listed({"area": ["a", "b"], "sex": ["F", "M"]})
        other = hf.Universe.listed({"area": ["a", "b"], "sex": ["M", "F"]})
        counts = np.array([1, 2])
        a_release(ledger, "one", keep=[hf.total()], table=a_table(counts, one))
        a_release(ledger, "other", hf.GeneralizedLaplace(epsilon="1/2"), [hf.total()], a_table(counts, other))
        held = ledger.reservation(DATA, "other")
        assert held is not None
        assert held.facts["disjoint_from"] == ["one"]
        assert spent(ledger) == 1
        a_release(ledger, "both")
        assert spent(ledger) == 2
        other_codes = hf.Universe.product({"area": ["c", "d"], "sex": ["F", "M"]})
        a_release(ledger, "unknown", table=a_table(universe=other_codes))  # code c may well lie in a: nothing says that it does not
        assert spent(ledger) == Fraction(5, 2)
        assert ledger.verify() == []

    def test_a_revision_charges_both_and_lists_what_changed(self, ledger: Ledger, tmp_path: Path) -> None:
        run(ledger, tmp_path / "first")
        from holdfast.publication.verify import published_rows

        revised = a_table(np.array([5, 4, 2, 9]))
        run(ledger, tmp_path / "second", "r2", table=revised, revises=published_rows(tmp_path / "first"))
        card = json.loads((tmp_path / "second" / "card.json").read_text())
        assert card["kept"]["revision"] == {"of": "r1", "changed": 1, "totals": ["area=a: 8 before, 9 now"]}
        assert spent(ledger) == 1
        assert "revision of r1" in ledger_screen(ledger.account(DATA), ledger.last_event())
        with pytest.raises(LedgerProblem, match="'elsewhere' is not in the account"):
            run(ledger, tmp_path / "third", "r3", revises=("elsewhere", ()))
        assert left(tmp_path) == ["first", "second"]

    @settings(max_examples=15)
    @given(st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["a", "b"])), min_size=3, max_size=12))
    def test_budgets_chosen_from_what_was_seen(self, tmp_path_factory: pytest.TempPathFactory, wishes: list[tuple[int, str]]) -> None:
        """Each budget depends on the counts released before: what is spent is their sum, and never more than was granted."""
        ledger = a_ledger(tmp_path_factory.mktemp("adaptive"), epsilon="2")
        total = Fraction(0)
        seen = 0
        for number, (wish, area) in enumerate(wishes):
            epsilon = Fraction(wish + seen % 7, 100)
            table = a_table()
            if total + 2 * epsilon <= 2:
                made = a_release(ledger, f"r{number}", hf.GeneralizedLaplace(epsilon=str(epsilon)), [hf.total()], table)
                total += 2 * epsilon
                seen = abs(int(made.table.counts["ab".index(area)]))
            else:
                with pytest.raises(BudgetExceeded):
                    a_release(ledger, f"r{number}", hf.GeneralizedLaplace(epsilon=str(epsilon)), [hf.total()], table)
            assert spent(ledger) == total <= 2
        assert ledger.verify() == []


class TestInterrupted:
    def test_stopped_while_drawing_and_resumed(self, ledger: Ledger, tmp_path: Path) -> None:
        interrupted(ledger, tmp_path / "out")
        assert state(ledger) == "drawing"
        assert left(tmp_path) == []
        with pytest.raises(WrongState, match="--resume to go on"):
            run(ledger, tmp_path / "out")
        with pytest.raises(WrongState, match="the secret that sealed its key was not given"):
            run(ledger, tmp_path / "out", resume=True, secret=None)
        with pytest.raises(KeyMisuse, match="cannot be opened with this secret"):
            run(ledger, tmp_path / "out", resume=True, secret=b"another secret of the office")
        assert state(ledger) == "drawing"
        entry = run(ledger, tmp_path / "out", resume=True)
        assert state(ledger) == "closed"
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["ledger"] == entry
        assert spent(ledger) == Fraction(1, 2)

    @pytest.mark.parametrize(
        "changed",
        [
            {"table": a_table(np.array([5, 3, 2, 10]))},
            {"table": a_table(np.array([3, 5, 2, 9]))},
            {"keep": (hf.margin("sex"),)},
            {"keep": (hf.margin("area"), hf.margin("sex"))},
            {"mechanism": hf.GeneralizedLaplace(epsilon="1/5")},
            {"mechanism": hf.GeneralizedGaussian(rho="1/100")},
            {"table": a_table(max_records=2)},
            {"table": a_table(unit="household")},
            {"table": a_table(universe=hf.Universe.product({"area": ["a", "c"], "sex": ["F", "M"]}))},
        ],
        ids=["count", "counts with the same totals", "kept", "kept more", "budget", "mechanism", "records", "unit", "cells"],
    )
    def test_other_input_is_refused(self, ledger: Ledger, tmp_path: Path, changed: dict[str, Any]) -> None:
        interrupted(ledger, tmp_path / "out")
        events = len(list(ledger.events()))
        with pytest.raises(OtherInput):
            run(ledger, tmp_path / "out", resume=True, **changed)
        assert left(tmp_path) == []
        assert len(list(ledger.events())) == events
        run(ledger, tmp_path / "out", resume=True)

    def test_another_version_of_the_streams_is_refused(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        interrupted(ledger, tmp_path / "out")
        monkeypatch.setattr(booking, "STREAM_VERSION", 99)
        with pytest.raises(OtherInput, match="another version of Holdfast"):
            run(ledger, tmp_path / "out", resume=True)

    def test_staged_is_only_renamed(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No secret and no draw are needed; in another place it is not found, and a changed folder is not taken."""
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "commit", stop)
            with pytest.raises(KeyboardInterrupt):
                run(ledger, tmp_path / "out", secret=None)
        assert state(ledger) == "staged"
        (staged,) = left(tmp_path)
        assert staged.startswith(".holdfast-unfinished-")
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        (tmp_path / "elsewhere").mkdir()
        with pytest.raises(OutputProblem, match="not beside 'out', or was changed"):
            run(ledger, tmp_path / "elsewhere" / "out", secret=None, resume=True)
        card = tmp_path / staged / "card.json"
        whole = card.read_bytes()
        card.write_bytes(whole + b" ")
        with pytest.raises(OutputProblem, match="not beside 'out', or was changed"):
            run(ledger, tmp_path / "out", secret=None, resume=True)
        card.write_bytes(whole)
        assert state(ledger) == "staged"
        run(ledger, tmp_path / "out", secret=None, resume=True)
        assert (tmp_path / "out" / "card.json").read_bytes() == whole
        assert left(tmp_path) == ["elsewhere", "out"]
        assert left(tmp_path / "elsewhere") == []

    def test_a_folder_that_appears_is_left_alone(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The spend is committed; the finished folder waits for another name in the same place."""

        def appear(*given: Any) -> None:
            (tmp_path / "out").mkdir(exist_ok=True)
            (tmp_path / "out" / "theirs").touch()
            put(*given)

        put = put_in_place
        monkeypatch.setattr(booking, "put_in_place", appear)
        with pytest.raises(OutputExists, match="appeared in the meantime"):
            run(ledger, tmp_path / "out")
        monkeypatch.undo()
        assert state(ledger) == "committed"
        run(ledger, tmp_path / "other", resume=True)
        assert left(tmp_path) == ["other", "out"]
        assert left(tmp_path / "out") == ["theirs"]

    def test_drawn_again_from_the_sealed_key_gives_the_same_bytes(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Interrupted when the folder was filled but not yet staged: all files come out as they were, the card too."""
        first: dict[str, bytes] = {}

        def filled(release: Any, temporary: Path, output: Output) -> None:
            fill_folder(release, temporary, output)
            first.update(files(temporary))
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "fill_folder", filled)
            interrupted(ledger, tmp_path / "out")
            assert first == {}  # stopped by the progress of the draw: nothing was written
            with pytest.raises(KeyboardInterrupt):
                run(ledger, tmp_path / "out", resume=True)
        assert (state(ledger), left(tmp_path)) == ("drawing", [])
        run(ledger, tmp_path / "out", resume=True)
        assert files(tmp_path / "out") == first != {}

    @pytest.mark.parametrize("step", ["stage", "commit", "publish", "close"])
    @pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, LedgerProblem])
    def test_a_step_whose_end_is_not_heard_of(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, done: bool, error: type[BaseException]
    ) -> None:
        """The ledger may have taken the step although this process saw an error (a lost connection, Ctrl-C). What is staged is never drawn
        again, so its folder must still be there: only the ledger knows.
        """
        take = getattr(Ledger, step)

        def lost(*given: Any) -> None:
            if done:
                take(*given)
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, step, lost)
            with pytest.raises(error):
                run(ledger, tmp_path / "out")
        places = ["drawing", "staged", "committed", "published", "closed"]
        reached = places[["stage", "commit", "publish", "close"].index(step) + done]
        assert state(ledger) == reached
        (folder,) = left(tmp_path)
        assert (folder == "out") == (step in ("publish", "close"))
        whole = files(tmp_path / folder)
        if reached != "drawing":
            monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        if reached == "closed":
            with pytest.raises(IdenticalRelease):
                run(ledger, tmp_path / "out", resume=True)
        else:
            run(ledger, tmp_path / "out", resume=True)
        assert (files(tmp_path / "out"), left(tmp_path)) == (whole, ["out"])
        assert (state(ledger), spent(ledger), ledger.verify()) == ("closed", Fraction(1, 2), [])

    def test_saved_again_after_an_error_of_the_ledger(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = a_release(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "stage", fails(errno.EIO))
            with pytest.raises(OSError, match="said by the system"):
                made.save(tmp_path / "out")
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "fill_folder", fails(errno.ENOSPC))
            with pytest.raises(OutputProblem):
                made.save(tmp_path / "out")
        assert left(tmp_path) == []
        made.save(tmp_path / "out")
        assert (left(tmp_path), state(ledger)) == (["out"], "closed")

    def test_what_is_staged_needs_no_signing_key(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "commit", stop)
            with pytest.raises(KeyboardInterrupt):
                run(ledger, tmp_path / "out")
        run(ledger, tmp_path / "out", resume=True, sign=tmp_path / "gone.pem")
        assert state(ledger) == "closed"

    def test_voided_before_the_draw_may_be_made_anew(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "start_drawing", stop)
            interrupted(ledger, tmp_path / "out")
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        assert held.state == "reserved"
        assert ledger.void(held, "stopped") is True
        assert spent(ledger) == 0
        run(ledger, tmp_path / "out")
        assert spent(ledger) == Fraction(1, 2)
        assert ledger.verify() == []

    def test_a_short_secret_is_refused_before_anything_is_reserved(self, ledger: Ledger, tmp_path: Path) -> None:
        with pytest.raises(InvalidParameter, match="at least 16 bytes"):
            run(ledger, tmp_path / "out", secret=b"short")
        assert state(ledger) is None


BOOKED = pytest.mark.parametrize("booked", [True, False], ids=["ledger", "no ledger"])
CHARGE = "Its charge stands in the ledger: go on with --resume"


class TestDisksAndPlaces:
    """The same with a ledger and without: a complete folder under its name, or nothing new at all."""

    @BOOKED
    @pytest.mark.parametrize(
        ("code", "said"), [(errno.ENOSPC, "disk is full"), (errno.EACCES, "permission is missing"), (errno.EIO, "system says")]
    )
    @pytest.mark.parametrize("where", ["save_frame", "_write", "_sync", "Path.chmod", "the last file", "the folder"])
    def test_what_cannot_be_written_leaves_nothing(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool, code: int, said: str, where: str
    ) -> None:
        def not_the_card(path: Path, content: bytes) -> None:
            if path.name == folder.CARD:
                raise OSError(code, "said by the system")
            path.write_bytes(content)

        with monkeypatch.context() as patch:
            if where == "the last file":
                patch.setattr(folder, "_write", not_the_card)
            elif where == "the folder":
                patch.setattr("pathlib.Path.mkdir" if booked else "tempfile.mkdtemp", fails(code))
            else:
                patch.setattr("pathlib.Path.chmod" if where == "Path.chmod" else f"holdfast.publication.folder.{where}", fails(code))
            with pytest.raises(OutputProblem, match=f"'out' could not be written.*{said}.*Nothing was left behind") as caught:
                run(ledger if booked else None, tmp_path / "out")
        assert (CHARGE in str(caught.value)) == booked
        assert left(tmp_path) == []
        assert (state(ledger), spent(ledger)) == (("drawing", Fraction(1, 2)) if booked else (None, 0))
        run(ledger if booked else None, tmp_path / "out", resume=booked)
        hf.verify(tmp_path / "out")
        assert (left(tmp_path), spent(ledger)) == (["out"], Fraction(1, 2) if booked else 0)

    def test_a_place_that_takes_no_lock_file(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = a_release(ledger)
        with monkeypatch.context() as patch:
            patch.setattr("os.open", fails(errno.EACCES))
            with pytest.raises(OutputProblem, match=f"permission is missing.*{CHARGE}"):
                made.save(tmp_path / "out")
        assert left(tmp_path) == []
        made.save(tmp_path / "out")
        assert state(ledger) == "closed"

    @BOOKED
    def test_a_name_that_cannot_be_given(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool) -> None:
        """Without a ledger nothing stays. With one the spend is committed, and the finished folder waits for its name."""
        with monkeypatch.context() as patch:
            patch.setattr("os.rename", fails(errno.EACCES))
            with pytest.raises(OutputProblem, match="permission is missing") as caught:
                run(ledger if booked else None, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        if not booked:
            assert left(tmp_path) == []
            return
        assert CHARGE in str(caught.value)
        assert "Nothing was left behind" not in str(caught.value)
        assert state(ledger) == "committed"
        (waiting,) = left(tmp_path)
        whole = files(tmp_path / waiting)
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        run(ledger, tmp_path / "out", resume=True)
        assert (files(tmp_path / "out"), left(tmp_path)) == (whole, ["out"])

    @BOOKED
    @pytest.mark.parametrize("at_once", [True, False], ids=["exchanged at once", "one after the other"])
    def test_force_exchanges_another_release(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool, at_once: bool
    ) -> None:
        """Until the spend is committed the old folder stands there, whole; in the end no part of it is left."""
        used = ledger if booked else None
        run(used, tmp_path / "out", "before")
        (tmp_path / "out" / "note.txt").write_text("beside the old release")
        before = files(tmp_path / "out")
        seen: list[bool] = []

        def noted(temporary: Path, output: Output) -> None:
            seen.append(files(tmp_path / "out") == before)
            if booked:
                assert state(ledger) == "committed"
            put_in_place(temporary, output)

        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "fill_folder", stop)
            with pytest.raises(KeyboardInterrupt):
                run(used, tmp_path / "out", force=True)
        assert (files(tmp_path / "out"), left(tmp_path)) == (before, ["out"])
        if not at_once:
            monkeypatch.setattr("ctypes.CDLL", lambda _: None)
        monkeypatch.setattr(booking, "put_in_place", noted)
        run(used, tmp_path / "out", force=True, resume=booked)
        assert seen == [True]
        assert left(tmp_path) == ["out"]
        assert left(tmp_path / "out") == ["card.json", "kept.csv", "report.html", "statement.html", "table.csv"]
        hf.verify(tmp_path / "out")
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["id"] == "r1"

    @BOOKED
    @pytest.mark.parametrize("problem", ["there already", "no place", "signing key", "format", "identical", "no release", "may not write"])
    def test_a_place_is_checked_before_anything_is_reserved_or_drawn(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool, problem: str
    ) -> None:
        place, options = tmp_path / "out", dict[str, Any]()
        if problem == "identical":
            hf.release(a_table(), KEEP, LAPLACE, release_id="r1").save(place)
        elif problem in ("there already", "no release"):
            place.mkdir()
        elif problem == "no place":
            place = tmp_path / "nowhere" / "out"
        elif problem == "signing key":
            options["sign"] = tmp_path / "gone.pem"
        elif problem == "format":
            options["formats"] = ("xml",)
        else:
            monkeypatch.setattr("os.access", lambda *_: False)
        options["force"] = problem in ("identical", "no release")
        before, events = files(tmp_path), len(list(ledger.events()))
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        monkeypatch.setattr(hf.NoiseKey, "generate", lambda: pytest.fail("a key was made"))
        with pytest.raises(HoldfastError) as caught:
            run(ledger if booked else None, place, **options)
        assert isinstance(caught.value, IdenticalRelease) == (problem == "identical")
        assert (state(ledger), len(list(ledger.events())), files(tmp_path)) == (None, events, before)


class TestCardsAndTheChain:
    def test_the_entry_on_the_card_is_in_the_chain(self, ledger: Ledger, tmp_path: Path) -> None:
        heads = [run(ledger, tmp_path / name, name) for name in ("r1", "r2")]
        assert ledger.verify(heads) == []

    def test_a_cut_tail_is_noticed(self, ledger: Ledger, tmp_path: Path) -> None:
        """A release removed as if it had never been: the chain alone does not show it, its card does."""
        first = run(ledger, tmp_path / "r1", "r1")
        second = run(ledger, tmp_path / "r2", "r2")
        run_sql(ledger, f"DELETE FROM holdfast_events WHERE seq >= {second.split(':')[1]}")
        assert ledger.verify() == []
        assert ledger.verify([first]) == []
        (problem,) = ledger.verify([first, second])
        assert "its tail was cut off" in problem
        third = run(ledger, tmp_path / "r3", "r3")
        assert ledger.verify([first, third]) == []
        (problem,) = ledger.verify([second])
        assert "the ledger was written anew" in problem


@pytest.mark.parametrize("content", [b"the secret of the office\n", None])
def test_where_the_secret_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> None:
    assert booking.secret_from_environment() is None
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "key"))
    if content is None:
        with pytest.raises(OutputProblem, match="HOLDFAST_KEY_FILE names cannot be read"):
            booking.secret_from_environment()
    else:
        (tmp_path / "key").write_bytes(content)
        assert booking.secret_from_environment() == SECRET
    monkeypatch.setenv("HOLDFAST_KEY", "another secret of the office")
    assert booking.secret_from_environment() == b"another secret of the office"


class TestNothingElseIsReplaced:
    """With force, only another release is ever replaced: at first, on resume, and where the folder changes in between."""

    def interrupted(self, place: Place, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(pipeline if step == "fill_folder" else booking, step, broken)
            with pytest.raises(RuntimeError, match="interrupted"):
                place.carry_out()

    @pytest.mark.parametrize("step", ["fill_folder", "put_in_place"])
    def test_a_resume_replaces_no_folder_that_is_no_release(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        place = Place(tmp_path)
        self.interrupted(place, monkeypatch, step)
        (tmp_path / "out").mkdir()
        (tmp_path / "out/thesis.txt").write_text("years of work")
        with pytest.raises(OutputExists, match="no release"):
            place.carry_out(resume=True, force=True)
        assert (tmp_path / "out/thesis.txt").read_text() == "years of work"
        (tmp_path / "out/thesis.txt").unlink()
        (tmp_path / "out").rmdir()
        place.carry_out(resume=True)
        hf.verify(tmp_path / "out")

    def test_a_resume_replaces_no_link(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = Place(tmp_path)
        self.interrupted(place, monkeypatch, "put_in_place")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OutputExists, match="is a link"):
            place.carry_out(resume=True, force=True)
        assert (tmp_path / "out").is_symlink()

    def test_a_staged_release_is_not_finished_under_another_plan(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = Place(tmp_path)
        self.interrupted(place, monkeypatch, "put_in_place")
        with pytest.raises(OtherInput):
            place.carry_out(resume=True, mechanism=hf.GeneralizedLaplace(epsilon="1/1000"))
        place.carry_out(resume=True)
        hf.verify(tmp_path / "out")


class Place:
    """A small release through a ledger of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger.open(folder / "ledger.sqlite", create=True)
        self.ledger.grant("towns", kind="pure", epsilon="10", approver="A", reason="test")
        self.table = hf.Table(hf.Universe.product({"r": ["n", "s"], "t": ["a", "b"]}), np.array([3, 4, 5, 6], dtype=np.int64))

    def carry_out(self, *, resume: bool = False, force: bool = False, mechanism: Any = None) -> None:
        made = hf.plan(self.table, [hf.margin("r")], mechanism or hf.GeneralizedLaplace(epsilon="1/4"))
        account = booking.Account(self.ledger, "towns", b"a secret of sixteen bytes or more")
        output = Output(self.folder / "out", force=force)
        pipeline.carry_out(made, self.table, Order("towns-1"), output, account, resume=resume)


def broken(*_: Any, **__: Any) -> None:
    raise RuntimeError("interrupted")
