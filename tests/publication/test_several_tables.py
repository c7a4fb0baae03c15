"""Several tables by the cell key method are one release, from Python as from the command: one path, one ledger, one draw of noise."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.cellkey import KeySpace, PerturbationTable, RecordKeys, tabulate, write_table
from holdfast.errors import (
    IdenticalRelease,
    InvalidCode,
    InvalidParameter,
    LedgerProblem,
    OtherInput,
    OutputExists,
    OutputProblem,
    VerificationFailed,
)
from holdfast.ledger import Ledger
from holdfast.ledger.releases import ReleaseFacts
from holdfast.publication.publication import Publication
from holdfast.publication.tables import Publications
from tests.cellkey.perturbing import release_tables
from tests.running import Run

NOISE = PerturbationTable.from_probabilities({1: {0: "1/2", 1: "1/2"}, 2: {-1: "1/4", 0: "1/2", 1: "1/4"}}, 2**16)
SECRET = RecordKeys.for_tests("python")
TABLES: dict[str, Any] = {"ages": ["region", "age"], "all": []}
COMMAND = ("cellkey", "perturb", "people.csv", "--table", "ages=region:age", "--table", "all=", "--noise", "noise.json")
WITH_SECRET = (*COMMAND, "--id", "id", "--secret", "secret.json")
FILES = {"card.json", "exposed.csv", "kept.csv", "report.html", "statement.html", "table.csv", "table.parquet"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(7)
    lines = [f"p{place},{rng.choice('NSEW')},{rng.randrange(9)}" for place in range(400)]
    Path("people.csv").write_text("\n".join(["id,region,age", *lines]) + "\n", encoding="utf-8")
    write_table(NOISE, "noise.json")
    SECRET.save("secret.json")
    return tmp_path


def make(release_id: str = "out", secret: RecordKeys = SECRET, ledger: Any = "embedded", **more: Any) -> Publications:
    return release_tables("people.csv", TABLES, NOISE, id="id", secret=secret, release_id=release_id, ledger=ledger, **more)


def held(release_id: str, dataset: str = "people") -> Any:
    return Ledger.open("holdfast-ledger.sqlite").reservation(dataset, release_id)


def facts(release_id: str) -> ReleaseFacts:
    found = held(release_id)
    assert found.state == "closed"
    return found.facts  # type: ignore[no-any-return]


def test_what_is_saved_is_what_the_command_writes(run: Run) -> None:
    """The same files and the same facts in the ledger: neither takes the other for other noise."""
    assert run(*WITH_SECRET, "-o", "by-command").code == 0
    made = make("by-python")
    made.save("by-python")
    assert facts("by-python") == facts("by-command")
    assert {str(path.relative_to("by-python")) for path in Path("by-python").rglob("*") if path.is_file()} == {
        "tables.json",
        *(f"{table}/{name}" for table in TABLES for name in FILES),
    }
    for name in ("ages/table.csv", "ages/table.parquet", "all/table.csv", "all/kept.csv"):
        assert Path("by-python", name).read_bytes() == Path("by-command", name).read_bytes()
    lists = [json.loads(Path(folder, "tables.json").read_text(encoding="utf-8")) for folder in ("by-python", "by-command")]
    assert [said.pop("release") for said in lists] == ["by-python", "by-command"]
    assert [said.pop("ledger") for said in lists] == [made.entry, held("by-command").head]
    assert [[table.pop("card") for table in said["tables"]] for said in lists].count([]) == 0
    assert lists[0] == lists[1]
    found = hf.verify("by-python")
    assert (found.release_id, found.tables, found.private) == ("by-python", 2, False)
    assert run(*WITH_SECRET, "-o", "again").code == 0


def test_each_page_names_its_table_and_no_file_calls_the_release_private() -> None:
    make(ledger=None, secret=RecordKeys.generate()).save("out")
    titles = {
        re.findall(r"<title>([^<]*)</title>", Path("out", table, f"{page}.html").read_text(encoding="utf-8"))[0]
        for table in TABLES
        for page in ("statement", "report")
    }
    assert titles == {f"{page} on table {table} of release out" for table in TABLES for page in ("Statement", "Report")}
    for said in (Path("out/tables.json"), *Path("out").glob("*/card.json")):
        text = said.read_text(encoding="utf-8")
        assert '"private"' not in text
        assert '"test_key": false' in text


def test_weighted_tables_show_no_epsilon_on_the_statement() -> None:
    """One record changes a weighted count by its weight: the figures are those of numbers of records."""
    rows = [f"{line},2" if place else f"{line},w" for place, line in enumerate(Path("people.csv").read_text(encoding="utf-8").splitlines())]
    Path("people.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    make(ledger=None, weight="w").save("weighted")
    make(ledger=None).save("plain")
    pages = [Path(folder, "ages/statement.html").read_text(encoding="utf-8") for folder in ("plain", "weighted")]
    assert ["One cell and one answer" in page for page in pages] == [True, False]
    assert [", before weights, with a variance of at most" in page for page in pages] == [False, True]


def test_one_charge_for_all_tables() -> None:
    make().save("out")
    balance = Ledger.open("holdfast-ledger.sqlite").balance("people")
    assert (balance.cell_key, balance.spent) == (1, Fraction(0))
    assert facts("out").others["tables"] == ["ages", "all"]


def test_tables_are_read_from_the_folder() -> None:
    made = make()
    made.save("out")
    for name, table in made.items():
        for found in (hf.load("out", table=name), hf.load(Path("out") / name)):
            assert found.table.counts.tolist() == table.table.counts.tolist()
            assert found.card.release == table.card.release
    with pytest.raises(VerificationFailed, match=r"holds several tables: ages, all\."):
        hf.load("out")
    with pytest.raises(InvalidParameter, match="'none' is not a table of this release"):
        hf.load("out", table="none")


def test_a_second_draw_of_noise_is_refused(run: Run) -> None:
    make().save("out")
    other = SECRET.derive("other")
    for dataset in (None, "others"):
        with pytest.raises(LedgerProblem, match="another secret of the record keys"):
            make("again", other, dataset=dataset)
    other.save("other.json")
    done = run(*("other.json" if word == "secret.json" else word for word in WITH_SECRET), "-o", "again")
    assert (done.code, "another secret of the record keys" in done.err) == (12, True)
    keyed = SECRET.add("people.csv", "id", KeySpace.bits(32))
    with pytest.raises(LedgerProblem, match="another secret of the record keys"):
        release_tables(keyed, TABLES, NOISE, dataset="people", release_id="k", ledger="embedded")  # whose keys a column holds is not known
    allowed = make("again", other, other_noise=True)
    assert any("two draws of noise" in sentence for sentence in allowed.sentences)
    make("third", SECRET.derive("third"), dataset="others", other_records="people abroad").save("third")
    assert Ledger.open("holdfast-ledger.sqlite").balance("others").cell_key == 1


def test_names_and_ledgers() -> None:
    make("r1", dataset="census", ledger=None).save("out")
    assert not Path("holdfast-ledger.sqlite").exists()
    book = Ledger.open("book.sqlite", create=True, needs_grants=False)
    make("r1", dataset="census", ledger=book).save("two")
    assert book.balance("census").cell_key == 1
    with pytest.raises(IdenticalRelease, match="'r1'"):
        make("r1", dataset="census", ledger=book)
    with pytest.raises(OutputExists):
        make("r2", ledger=book).save("two")
    with pytest.raises(InvalidParameter, match="ledger is 'embedded'"):
        make("r3", ledger="book.sqlite")
    assert not Path("holdfast-ledger.sqlite").exists()
    release_tables(SECRET.add("people.csv", "id", KeySpace.bits(32)), TABLES, NOISE, release_id="four", ledger="embedded")
    assert Ledger.open("holdfast-ledger.sqlite").datasets() == ["unnamed"]


def test_keys_from_identifiers() -> None:
    """As with the keys added before; the identifiers are named, and neither they nor keys are published."""
    made = make(ledger=None)
    before = release_tables(SECRET.add("people.csv", "id", KeySpace.bits(32)), TABLES, NOISE)
    assert [one.table.counts.tolist() for one in made.values()] == [one.table.counts.tolist() for one in before.values()]
    assert (made.private, make(secret=RecordKeys.generate(), ledger=None).private, before.private) == (False, True, True)
    with pytest.raises(InvalidParameter, match="id is missing"):
        release_tables("people.csv", TABLES, NOISE, secret=SECRET)
    for column in ("id", "record_key"):
        with pytest.raises(InvalidCode, match="holds keys"):
            release_tables("people.csv", {"t": [column]}, NOISE, id="id", secret=SECRET)
    table = hf.Table.from_records("people.csv", ["region"], universe="observed")
    with pytest.raises(InvalidParameter, match="no cell keys"):
        release_tables(table, {"t": ["region"]}, NOISE, id="id", secret=SECRET)


def test_what_is_no_release_of_several_tables() -> None:
    mechanism = hf.CellKey(table=NOISE)
    tables = tabulate("people.csv", TABLES, mechanism, id="id", secret=SECRET)
    with pytest.raises(InvalidParameter, match="Only the cell key method"):
        hf.release(tables, [], hf.GeneralizedLaplace(epsilon="1"), ledger=None)
    with pytest.raises(InvalidParameter, match="keeps no totals"):
        hf.release(tables, [hf.margin("region")], mechanism, ledger=None)
    for name in ("tables.json", "card.json"):  # a folder of that name would be taken for the card of all tables
        with pytest.raises(InvalidParameter, match="name of its folder"):
            hf.release({name: tables["ages"]}, [], mechanism, ledger=None)
    with pytest.raises(InvalidParameter, match="given by name"):
        hf.release({}, [], mechanism, ledger=None)
    other = tabulate("people.csv", TABLES, mechanism, id="id", secret=SECRET.derive("other"))
    with pytest.raises(InvalidParameter, match="other columns or secrets"):
        hf.release({**tables, "all": other["all"]}, [], mechanism, ledger=None)
    with pytest.raises(InvalidParameter, match="weights where weighted=True"):
        hf.release(tables, [], hf.CellKey(table=NOISE, weighted=True), ledger=None)
    with pytest.raises(InvalidParameter, match="release_id is missing"):
        hf.release(tables, [], mechanism)
    for more in ({"key": hf.NoiseKey.for_tests("k")}, {"allow_exposed": 1}, {"disjoint": {"from": ["a"], "because": "b"}}):
        with pytest.raises(InvalidParameter, match="take no key"):
            hf.release(tables, [], mechanism, release_id="r", **more)
    with pytest.raises(InvalidParameter, match="is a Table"):
        hf.release({"ages": 3}, [], mechanism, ledger=None)  # type: ignore[dict-item]
    with pytest.raises(InvalidParameter, match="one of a release of several"):
        hf.release(tables, [], mechanism, ledger=None)["ages"].save("ages")


def test_one_table_of_any_keys_is_an_ordinary_release() -> None:
    """What `tabulate` makes goes alone, too, with whatever keys it has."""
    mechanism = hf.CellKey(table=NOISE, keys=KeySpace.bits(64))
    tables = tabulate("people.csv", TABLES, mechanism, id="id", secret=SECRET)
    several = hf.release(tables, [], mechanism, ledger=None)
    alone = hf.release(tables["ages"], [], mechanism, ledger=None, release_id="alone")
    assert alone.table.counts.tolist() == several["ages"].table.counts.tolist()
    assert not alone.private
    assert hf.load(alone.save("alone")).card.mechanism.parameters["keys"] == "2^64"
    hf.release(tables["ages"], [], mechanism, release_id="recorded", dataset="people").save("recorded")  # test keys, in the ledger
    assert facts("recorded").noise is not None
    with pytest.raises(VerificationFailed, match=r"tables\.json is missing"):
        hf.load("alone", table="ages")
    with pytest.raises(InvalidParameter, match="would get other noise"):
        hf.release(tables["ages"], [], hf.CellKey(table=NOISE), ledger=None)


class Killed(BaseException):
    """In place of SIGKILL: nothing is cleaned up after it, as far as a test can."""


STEPS = {
    "fill": "reserved",
    "start_drawing": "reserved",
    "stage": "drawing",
    "commit": "staged",
    "rename": "committed",
    "publish": "committed",
    "close": "published",
}


@pytest.mark.parametrize("step", STEPS)
def test_stopped_at_every_step_it_is_gone_on_with(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole or not at all, never without its entry; and the same lines again publish it, under the same entry."""

    def stop(*_: object, **__: object) -> None:
        raise Killed

    place = {
        "fill": (Publications, "fill"),
        "rename": (None, "holdfast.publication.booking.put_in_place"),
    }.get(step, (Ledger, step))
    made = make()
    with monkeypatch.context() as stopped:
        stopped.setattr(place[1], stop) if place[0] is None else stopped.setattr(place[0], place[1], stop)
        with pytest.raises(Killed):
            made.save("out")
    assert held("out").state == STEPS[step]
    is_there = step in ("publish", "close")
    assert Path("out").exists() == is_there
    assert not is_there or hf.verify("out").tables == 2
    again = make()
    assert again.entry == made.entry
    again.save("out")
    assert held("out").state == "closed"
    assert hf.verify("out").tables == 2
    assert not [name for name in os.listdir() if name.startswith(".holdfast-unfinished")]


def test_another_release_does_not_go_on_with_it() -> None:
    make()
    assert held("out").state == "reserved"
    for other in ({"secret": SECRET.derive("other")}, {"mix": True}, {"other_noise": True}):
        with pytest.raises(OtherInput, match="begun with another"):
            make(**other)


def test_a_failure_to_write_leaves_nothing_and_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    made = make()
    with monkeypatch.context() as stopped:
        stopped.setattr("holdfast.publication.folder.save_pieces", full)
        with pytest.raises(OutputProblem, match="the disk is full"):
            made.save("out")
    assert not Path("out").exists()
    assert not [name for name in os.listdir() if name.startswith(".holdfast-unfinished")]
    made.save("out")
    assert facts("out")


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        said = json.loads((folder / "tables.json").read_text())
        change(said)
        (folder / "tables.json").write_text(json.dumps(said, indent=2) + "\n")

    return edit


def test_a_staged_folder_that_was_changed_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise Killed

    made = make()
    with monkeypatch.context() as stopped:
        stopped.setattr(Ledger, "commit", stop)
        with pytest.raises(Killed):
            made.save("out")
    (unfinished,) = [Path(name) for name in os.listdir() if name.startswith(".holdfast-unfinished") and not name.endswith(".lock")]
    kept = Path(shutil.copytree(unfinished, "kept"))
    for change in (
        lambda place: (place / "ages" / "table.csv").write_text("region,age,count\n"),
        lambda place: (place / "more").mkdir(),
        lambda place: shutil.rmtree(place / "all"),
        _edit(lambda said: said["tables"].pop()),
    ):
        shutil.rmtree(unfinished)
        shutil.copytree(kept, unfinished)
        change(unfinished)
        with pytest.raises(OutputProblem, match="was changed"):
            make().save("out")
        assert not Path("out").exists()
    shutil.rmtree(unfinished)
    shutil.copytree(kept, unfinished)
    make().save("out")
    assert isinstance(hf.load("out", table="ages"), Publication)
