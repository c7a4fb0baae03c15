"""Cells that a release fixes together with earlier ones: in the plan, counted by allow_exposed, on card and pages and in exposed.csv."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter, NotAcknowledged, VerificationFailed
from holdfast.ledger import Ledger
from holdfast.publication.publication import Publication
from holdfast.tables.hierarchy import Hierarchy
from tests.running import Run

LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
TOWNS = hf.Universe.product({"town": ["a", "b", "c"]})
TREE = Hierarchy({"N": None, "a": "N", "b": "N", "S": None, "c": "S", "d": "S"}, ["region", "place"])
PLACES = hf.Universe.product({"place": TREE, "sex": ["F", "M"]})
ALL_BUT_ONE = [hf.subset("town", ["a", "b"])]

RUN = """\
[table]
source = "towns.csv"
cells = ["town"]
count = "people"
[keep]
{keep}
[release]
id = "{name}"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""
SENTENCE = "Together the kept totals of 'whole' and 'parts' fix 1 cell that none of them fixes alone: town=c."


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.db", create=True)


def release(
    ledger: Ledger | None, folder: Path, keep: list[Any], counts: list[int], universe: hf.Universe = TOWNS, **options: Any
) -> Publication:
    table = hf.Table(universe, np.array(counts, dtype=np.int64), name="towns")
    made = hf.release(table, keep, LAPLACE, ledger=ledger, release_id=folder.name, **options)
    made.save(folder)
    return made


def lines(folder: Path) -> list[str]:
    return (folder / "exposed.csv").read_text().splitlines()


def test_the_job_of_two_releases_as_a_walk(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One release keeps the total, the other all cells but one: plan, refusal, card, pages and exposed.csv say so."""
    monkeypatch.chdir(tmp_path)
    Path("towns.csv").write_text("town,people\na,3\nb,4\nc,5\n")
    Path("whole.toml").write_text(RUN.format(keep="total = true", name="whole"))
    Path("parts.toml").write_text(RUN.format(keep='subsets = [{ column = "town", codes = ["a", "b"] }]', name="parts"))
    assert run("release", "whole.toml", "-o", "whole").code == 0
    planned = run("plan", "parts.toml").out
    assert SENTENCE in planned
    assert "No cell is fixed" not in planned
    assert "the values were not given." in planned
    assert "Advice     The folders of the earlier releases have the values of their totals: name them by --with FOLDER" in planned
    assert "--with FOLDER" not in run("plan", "parts.toml", "--with", "whole").out
    assert "To write   allow_exposed = 1 under [release], before a release" in planned
    refused = run("release", "parts.toml", "-o", "parts")
    assert refused.code == 6
    assert SENTENCE in refused.err
    assert Path("parts-exposed.csv").read_text() == '"town"\n"c"\n'
    with open("parts.toml", "a") as file:
        file.write("allow_exposed = 1\n")
    done = run("release", "parts.toml", "-o", "parts", "--with", "whole")
    assert done.code == 0
    assert SENTENCE in done.out
    assert lines(Path("parts")) == ['"town","people","why","with"', '"c",5,"structure","whole"']
    card = json.loads(Path("parts/card.json").read_text())["exposed"]
    assert (card["cells"], card["by_structure"], card["together"]["releases"], card["together"]["by_structure"]) == (1, 0, ["whole"], 1)
    for page in ("statement.html", "report.html"):
        text = Path("parts", page).read_text()
        assert "that none of them fixes alone: town c" in text
        assert "No cell is published exactly" not in text
    assert run("verify", "parts").code == 0


def test_a_count_stands_in_the_list_only_where_published_values_tell_it(ledger: Ledger, tmp_path: Path) -> None:
    release(ledger, tmp_path / "whole", [hf.total()], [3, 4, 5])
    made = release(ledger, tmp_path / "parts", ALL_BUT_ONE, [3, 4, 5], allow_exposed=1)
    assert lines(tmp_path / "parts")[1:] == ['"c",,"structure","whole"']
    assert (
        "Which cells the published values expose was not computed" in made.card.exposed.text
        or "Not all values of 'whole'" in made.card.exposed.text
    )
    assert "--with" not in made.card.to_json(), "a card has no commands"
    assert made.table.exposed.tolist() == [False, False, True]
    again = hf.load(tmp_path / "parts")
    assert again.exposure.cells.tolist() == [2]


@pytest.mark.parametrize("with_ledger", [True, False])
def test_values_of_earlier_releases_pin_cells_together(ledger: Ledger, tmp_path: Path, with_ledger: bool) -> None:
    """(1, 1, 0, 0): the total and {p, q} pin two zeros, the earlier {q, r} the rest."""
    place = ledger if with_ledger else None
    line = hf.Universe.product({"cell": list("pqrs")})
    release(place, tmp_path / "first", [hf.subset("cell", ["q", "r"])], [1, 1, 0, 0], line)
    before = hf.load(tmp_path / "first")
    made = release(place, tmp_path / "second", [hf.total(), hf.subset("cell", ["p", "q"])], [1, 1, 0, 0], line, beside=[before])
    assert lines(tmp_path / "second")[1:] == [
        '"p",1,"values","first"',
        '"q",1,"values","first"',
        '"r",0,"values",""',
        '"s",0,"values",""',
    ]
    assert made.card.exposed.together is not None
    assert made.card.exposed.cells == 4
    hf.verify(tmp_path / "second")


@pytest.mark.parametrize("bad_first", [True, False])
def test_a_folder_of_other_data_does_not_switch_off_what_the_others_pin(tmp_path: Path, bad_first: bool) -> None:
    """The folder is named; the cells that the honest one pins stay counted."""
    line = hf.Universe.product({"cell": list("pqrs")})
    release(None, tmp_path / "first", [hf.subset("cell", ["q", "r"])], [1, 1, 0, 0], line)
    release(None, tmp_path / "other", [hf.total()], [5, 7, 0, 0], line)
    beside = [hf.load(tmp_path / name) for name in (("other", "first") if bad_first else ("first", "other"))]
    keep = [hf.total(), hf.subset("cell", ["p", "q"])]
    made = release(None, tmp_path / "second", keep, [1, 1, 0, 0], line, beside=beside)
    exposed = made.card.exposed
    assert exposed.cells == 4
    assert "The published values of 'other' contradict those of the others and were left out" in exposed.text
    assert "values of 'first'" not in exposed.text
    hf.verify(tmp_path / "second")


@pytest.mark.parametrize("bad_first", [True, False])
def test_of_folders_that_contradict_each_other_alone_those_count_that_pin_more(tmp_path: Path, bad_first: bool) -> None:
    """{p, q} is 5 in one and 4 in the other, and this release has a total of 5: with the first, r and s are 0."""
    line = hf.Universe.product({"cell": list("pqrs")})
    for name, counts in (("first", [3, 2, 0, 0]), ("other", [3, 1, 0, 1])):
        release(None, tmp_path / name, [hf.subset("cell", ["p", "q"])], counts, line)
    beside = [hf.load(tmp_path / name) for name in (("other", "first") if bad_first else ("first", "other"))]
    exposed = release(None, tmp_path / "second", [hf.total()], [3, 2, 0, 0], line, beside=beside).card.exposed
    assert exposed.cells == 2
    assert "values of 'other' contradict" in exposed.text
    hf.verify(tmp_path / "second")


def test_the_first_sentence_holds_where_cells_are_pinned_with_others_only(tmp_path: Path) -> None:
    """{p, q} and the total are 5 each: together they pin r and s, and neither pins anything alone."""
    line = hf.Universe.product({"cell": list("pqrs")})
    release(None, tmp_path / "first", [hf.subset("cell", ["p", "q"])], [3, 2, 0, 0], line)
    made = release(None, tmp_path / "second", [hf.total()], [3, 2, 0, 0], line, beside=[hf.load(tmp_path / "first")])
    exposed = made.card.exposed
    assert (exposed.cells, exposed.by_structure, exposed.by_values) == (2, 0, 0)
    assert exposed.text.startswith("This release alone publishes no cell exactly. Together the kept totals")
    for page in ("statement.html", "report.html"):
        assert "No cell is published exactly" not in (tmp_path / "second" / page).read_text()
    hf.verify(tmp_path / "second")


def test_levels_are_joined_too(ledger: Ledger, tmp_path: Path) -> None:
    """Regions by sex, then places but one by sex: what is left of each region is one place."""
    counts = [1, 2, 3, 4, 5, 6, 7, 8]
    release(ledger, tmp_path / "regions", [hf.margin("region", "sex")], counts, PLACES)
    keep = [hf.subset("place", ["a"], by=["sex"]), hf.subset("place", ["c"], by=["sex"])]
    with pytest.raises(NotAcknowledged) as refused:
        release(ledger, tmp_path / "places", keep, counts, PLACES)
    assert (refused.value.details or {})["exposed"] == 8
    made = release(ledger, tmp_path / "places", keep, counts, PLACES, allow_exposed=8, beside=[hf.load(tmp_path / "regions")])
    assert made.card.exposed.by_structure == 4
    assert '"b","F",3,"structure","regions"' in lines(tmp_path / "places")
    hf.verify(tmp_path / "places")


def test_twins_give_equal_refusals_and_equal_public_texts(tmp_path: Path) -> None:
    """Two tables with the same kept totals: nothing that is said of exposure tells them apart."""
    said = []
    for counts in ([3, 4, 5], [5, 2, 5]):
        place = tmp_path / str(counts[0])
        place.mkdir()
        ledger = Ledger.open(place / "ledger.db", create=True)
        release(ledger, place / "whole", [hf.total()], counts)
        with pytest.raises(NotAcknowledged) as refused:
            release(ledger, place / "parts", ALL_BUT_ONE, counts, beside=[hf.load(place / "whole")])
        made = release(ledger, place / "parts", ALL_BUT_ONE, counts, allow_exposed=1, beside=[hf.load(place / "whole")])
        said.append((str(refused.value), (place / "parts" / "exposed.csv").read_bytes(), made.card.exposed))
    assert said[0] == said[1]


class TestFolders:
    def test_a_folder_that_the_ledger_did_not_record_is_refused(self, ledger: Ledger, tmp_path: Path) -> None:
        release(ledger, tmp_path / "whole", [hf.total()], [3, 4, 5])
        (tmp_path / "other").mkdir()
        release(None, tmp_path / "other" / "whole", [hf.total()], [3, 4, 6])
        with pytest.raises(VerificationFailed, match="is not the one that the ledger recorded"):
            release(ledger, tmp_path / "parts", ALL_BUT_ONE, [3, 4, 5], beside=[hf.load(tmp_path / "other" / "whole")])
        assert ledger.reservation("towns", "parts") is None

    def test_a_folder_that_was_changed_or_is_missing_is_refused(self, tmp_path: Path, run: Run) -> None:
        release(None, tmp_path / "whole", [hf.total()], [3, 4, 5])
        (tmp_path / "towns.csv").write_text("town,people\na,3\nb,4\nc,5\n")
        keep = 'subsets = [{ column = "town", codes = ["a", "b"] }]'
        (tmp_path / "parts.toml").write_text(RUN.format(keep=keep, name="parts"))
        kept = tmp_path / "whole" / "kept.csv"
        kept.write_text(kept.read_text().replace("12", "13"))
        for folder, why in (("whole", "kept.csv was changed"), ("none", "There is no folder 'none'")):
            ran = run("plan", tmp_path / "parts.toml", "--with", tmp_path / folder)
            assert ran.code != 0
            assert why in ran.err

    def test_a_release_drawn_here_or_named_twice_is_refused(self, tmp_path: Path) -> None:
        made = release(None, tmp_path / "whole", [hf.total()], [3, 4, 5])
        before = hf.load(tmp_path / "whole")
        for beside, why in (([made], "was drawn here"), ([before, before], "is named twice")):
            with pytest.raises(InvalidParameter, match=why):
                hf.plan(TOWNS, ALL_BUT_ONE, LAPLACE, beside=beside)

    def test_rows_of_exposed_csv_that_were_made_up_are_found(self, ledger: Ledger, tmp_path: Path) -> None:
        """A cell more in the list than the card counts."""
        release(ledger, tmp_path / "whole", [hf.total()], [3, 4, 5])
        release(ledger, tmp_path / "parts", ALL_BUT_ONE, [3, 4, 5], allow_exposed=1)
        forged = tmp_path / "forged"
        shutil.copytree(tmp_path / "parts", forged)
        listed = (forged / "exposed.csv").read_bytes() + b'"b",4,"values","whole"\n'
        (forged / "exposed.csv").write_bytes(listed)
        with pytest.raises(VerificationFailed, match=r"exposed\.csv"):
            hf.verify(forged)
