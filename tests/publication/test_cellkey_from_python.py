"""Tables by the cell key method from Python are recorded and compared as those of the command: one path, one ledger, one draw of noise."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.cellkey import KeySpace, PerturbationTable, Perturbed, RecordKeys, perturb, write_table
from holdfast.errors import InvalidCode, InvalidParameter, LedgerProblem, OutputExists
from holdfast.ledger import Ledger
from holdfast.ledger.releases import ReleaseFacts
from holdfast.publication.cellkey import save_perturbed
from tests.running import Run

NOISE = PerturbationTable.from_probabilities({1: {0: "1/2", 1: "1/2"}, 2: {-1: "1/4", 0: "1/2", 1: "1/4"}}, 2**16)
SECRET = RecordKeys.for_tests("python")
TABLES: dict[str, Any] = {"ages": ["region", "age"], "all": []}
COMMAND = ("cellkey", "perturb", "people.csv", "--table", "ages=region,age", "--table", "all=", "--noise", "noise.json")
WITH_SECRET = (*COMMAND, "--id", "id", "--secret", "secret.json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(7)
    lines = [f"p{place},{rng.choice('NSEW')},{rng.randrange(9)}" for place in range(400)]
    Path("people.csv").write_text("\n".join(["id,region,age", *lines]) + "\n", encoding="utf-8")
    write_table(NOISE, "noise.json")
    SECRET.save("secret.json")
    return tmp_path


def make(secret: RecordKeys = SECRET, **more: Any) -> Perturbed:
    return perturb("people.csv", TABLES, NOISE, id="id", secret=secret, **more)


def facts(release_id: str) -> ReleaseFacts:
    held = Ledger.open("holdfast-ledger.sqlite").reservation("people", release_id)
    assert held is not None
    assert held.state == "closed"
    return held.facts


def test_what_is_saved_is_what_the_command_writes(run: Run) -> None:
    """The same files and the same facts in the ledger: neither takes the other for other noise."""
    assert run(*WITH_SECRET, "-o", "by-command").code == 0
    assert save_perturbed(make(), "by-python").release_id == "by-python"
    assert facts("by-python") == facts("by-command")
    assert sorted(path.name for path in Path("by-python").iterdir()) == ["ages.csv", "all.csv", "cellkey.json", "report.html"]
    for name in ("ages.csv", "all.csv"):
        assert Path("by-python", name).read_bytes() == Path("by-command", name).read_bytes()
    cards = [json.loads(Path(folder, "cellkey.json").read_text(encoding="utf-8")) for folder in ("by-python", "by-command")]
    assert [card["release"].pop("id") for card in cards] == ["by-python", "by-command"]
    assert [card["release"].pop("ledger") is not None for card in cards] == [True, True]
    assert [card.pop("files").keys() for card in cards] == [{"ages.csv", "all.csv", "report.html"}] * 2
    assert cards[0] == cards[1]
    assert hf.verify("by-python").release_id == "by-python"
    assert run(*WITH_SECRET, "-o", "again").code == 0


def test_a_second_draw_of_noise_is_refused(run: Run) -> None:
    """It was noticed by the command alone."""
    save_perturbed(make(), "out")
    other = make(SECRET.derive("other"))
    for dataset in (None, "others"):
        with pytest.raises(LedgerProblem, match="another secret of the record keys"):
            save_perturbed(other, "again", dataset=dataset)
        assert not Path("again").exists()
    SECRET.derive("other").save("other.json")
    done = run(*("other.json" if word == "secret.json" else word for word in WITH_SECRET), "-o", "again")
    assert (done.code, "another secret of the record keys" in done.err) == (12, True)
    keyed = perturb(SECRET.add("people.csv", "id", KeySpace.bits(32)), TABLES, NOISE)
    with pytest.raises(LedgerProblem, match="another secret of the record keys"):
        save_perturbed(keyed, "again", dataset="people")  # whose keys a column holds is not known
    save_perturbed(other, "again", other_noise=True)
    assert "HAVE OTHER NOISE" in Path("again/report.html").read_text(encoding="utf-8")
    save_perturbed(make(SECRET.derive("third")), "third", dataset="others", other_records="people abroad")
    assert Ledger.open("holdfast-ledger.sqlite").balance("others").cell_key == 1


def test_names_and_ledgers() -> None:
    made = make()
    save_perturbed(made, "out", release_id="r1", dataset="census", ledger=None)
    assert not Path("holdfast-ledger.sqlite").exists()
    book = Ledger.open("book.sqlite", create=True, needs_grants=False)
    save_perturbed(made, "two", release_id="r1", dataset="census", ledger=book)
    assert book.balance("census").cell_key == 1
    with pytest.raises(LedgerProblem, match="'r1'"):
        save_perturbed(made, "three", release_id="r1", dataset="census", ledger=book)
    with pytest.raises(OutputExists):
        save_perturbed(made, "two", ledger=book)
    with pytest.raises(InvalidParameter, match="ledger is 'embedded'"):
        save_perturbed(made, "three", ledger="book.sqlite")  # type: ignore[arg-type]
    assert not Path("holdfast-ledger.sqlite").exists()
    save_perturbed(perturb(SECRET.add("people.csv", "id", KeySpace.bits(32)), TABLES, NOISE), "four")
    assert Ledger.open("holdfast-ledger.sqlite").datasets() == ["unnamed"]


def test_tables_that_perturb_did_not_make() -> None:
    """Nothing would be compared with earlier ones."""
    with pytest.raises(InvalidParameter, match="what fixes their noise"):
        save_perturbed(replace(make(), noise=None), "out")
    assert not Path("holdfast-ledger.sqlite").exists()


def test_keys_from_identifiers() -> None:
    """As with the keys added before; the identifiers are named, and neither they nor keys are published."""
    before = perturb(SECRET.add("people.csv", "id", KeySpace.bits(32)), TABLES, NOISE)
    assert {name: table.to_pydict() for name, table in make().tables.items()} == {
        name: table.to_pydict() for name, table in before.tables.items()
    }
    assert (make().is_private, make(RecordKeys.generate()).is_private, before.is_private) == (False, True, True)
    with pytest.raises(InvalidParameter, match="id is missing"):
        perturb("people.csv", TABLES, NOISE, secret=SECRET)
    for column in ("id", "record_key"):
        with pytest.raises(InvalidCode, match="holds keys"):
            perturb("people.csv", {"t": [column]}, NOISE, id="id", secret=SECRET)
    table = hf.Table.from_records("people.csv", ["region"], universe="observed")
    with pytest.raises(InvalidParameter, match="no identifiers"):
        perturb(table, {"t": ["region"]}, NOISE, id="id", secret=SECRET)
