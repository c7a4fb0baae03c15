"""`hf.release` and `hf.answer` are as safe as the command: recorded where nothing is said, under a name, with no cell exposed unsaid. What
they give can be taken to pandas, polars and Arrow, as can what a reader loads.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.errors import IdenticalRelease, InvalidParameter, LedgerProblem, NotAcknowledged, WrongState
from holdfast.ledger import Ledger
from holdfast.ledger.embedded import DEFAULT_NAME
from holdfast.publication.publication import Publication
from tests.notebooks import notebook_page
from tests.running import Run

LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
CSV = "state,county,people\nA,1,5\nA,2,0\nA,3,2\nB,1,1\nB,2,0\n"
ONE_COUNTY = CSV + "C,4,4\n"
KEEP = [hf.margin("state")]
ANSWER: dict[str, Any] = {"keep": [[1, 1, 1]], "sensitivity": "1/2", "mechanism": hf.ProjectedLaplace(epsilon="1")}
RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
[keep]
margins = [["state"]]
[release]
id = "r1"
mechanism = "generalized-laplace"
epsilon = "1/4"
per = "distance"
"""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "counties.csv").write_text(CSV)
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_table(text: str = CSV) -> hf.Table:
    Path("counties.csv").write_text(text)
    return hf.Table.from_counts("counties.csv", ["state", "county"], "people", public=True)


def released(**options: Any) -> Publication:
    return hf.release(a_table(), KEEP, LAPLACE, **options)


def answered(**options: Any) -> Publication:
    return hf.answer([12.5, 7.25, 0.75], **ANSWER, **options)


BOTH = pytest.mark.parametrize("make", [released, answered])


class TestRecorded:
    @BOTH
    def test_in_the_working_directory_where_nothing_is_said(self, make: Any, work: Path) -> None:
        made = make(release_id="r1")
        assert made.entry is not None
        made.save("out")
        ledger = Ledger.open(work / DEFAULT_NAME)
        dataset = "counties" if make is released else "unnamed"
        assert [(one.release_id, one.state) for one in ledger.account(dataset).releases.values()] == [("r1", "closed")]
        with pytest.raises(IdenticalRelease, match="already holds the release 'r1'"):
            make(release_id="r1")

    def test_the_command_and_python_share_ledger_and_account(self, run: Run) -> None:
        released(release_id="r1").save("out")
        assert run("release", "run.toml", "-o", "again").code == IdenticalRelease.exit_code
        Path("run.toml").write_text(RUN.replace('"r1"', '"r2"'))
        assert run("release", "run.toml", "-o", "again").code == 0
        assert [one.release_id for one in Ledger.open(DEFAULT_NAME).account("counties").releases.values()] == ["r1", "r2"]

    @BOTH
    def test_a_name_is_needed_and_nothing_is_left_without_it(self, make: Any, work: Path) -> None:
        with pytest.raises(InvalidParameter, match="release_id is missing") as caught:
            make()
        assert caught.value.field == "release_id"
        assert not (work / DEFAULT_NAME).exists()

    @BOTH
    @pytest.mark.parametrize("options", [{"ledger": None}, {"key": hf.NoiseKey.for_tests(1)}], ids=["none", "test key"])
    def test_nothing_is_recorded_where_that_is_said_or_the_key_is_for_tests(self, make: Any, options: Any, work: Path) -> None:
        assert make(**options).entry is None
        assert not (work / DEFAULT_NAME).exists()

    def test_a_key_of_ones_own_and_a_ledger_do_not_go_together(self, work: Path) -> None:
        with hf.NoiseKey.generate() as key:
            with pytest.raises(InvalidParameter, match="draws a fresh key of its own"):
                released(release_id="r1", key=key)
            assert released(key=key, ledger=None).entry is None
        book = Ledger.open(work / "own.sqlite", create=True, needs_grants=False)
        with pytest.raises(InvalidParameter, match="draws a fresh key of its own"):
            released(release_id="r1", key=hf.NoiseKey.for_tests(1), ledger=book)
        assert book.datasets() == []

    @pytest.mark.parametrize("ledger", ["ledger.sqlite", "none", "", 5, Path("ledger.sqlite")])
    def test_what_is_no_ledger(self, ledger: Any, work: Path) -> None:
        with pytest.raises(InvalidParameter, match="ledger is 'embedded'"):
            released(release_id="r1", ledger=ledger)
        assert sorted(path.name for path in work.iterdir()) == ["counties.csv", "run.toml"]

    def test_the_environment_names_it_as_for_the_command(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_LEDGER", str(work / "office.sqlite"))
        with pytest.raises(LedgerProblem):
            released(release_id="r1")  # one that is named must be there
        Ledger.open(work / "office.sqlite", create=True, needs_grants=False)
        assert released(release_id="r1").entry is not None
        assert not (work / DEFAULT_NAME).exists()
        monkeypatch.setenv("HOLDFAST_LEDGER", "none")
        assert released().entry is None

    def test_the_account(self) -> None:
        cases: list[tuple[hf.Table, dict[str, Any], str]] = [
            (a_table(), {}, "counties"),
            (a_table().with_labels({"state": {"A": "Alder"}}), {}, "counties"),
            (a_table(), {"dataset": "people"}, "people"),
            (hf.Table(a_table().universe, a_table().counts, name="census"), {}, "census"),
            (hf.Table(a_table().universe, a_table().counts), {}, "unnamed"),
        ]
        for number, (table, options, _) in enumerate(cases):
            hf.release(table, KEEP, LAPLACE, release_id=f"r{number}", **options)
        book = Ledger.open(DEFAULT_NAME)
        assert [book.reservation(dataset, f"r{number}") is not None for number, (*_, dataset) in enumerate(cases)] == [True] * len(cases)


class TestUnsaved:
    """A notebook whose cell is run again before save(): it was told to use --resume, which Python does not have."""

    @BOTH
    def test_a_release_that_was_drawn_and_not_saved(self, make: Any) -> None:
        made = make(release_id="r1")
        dataset = "counties" if make is released else "unnamed"
        with pytest.raises(WrongState) as caught:
            make(release_id="r1")
        said = str(caught.value)
        assert said.startswith("The release 'r1' was drawn but not saved. Call save() on what hf.release returned.")
        assert f"its charge stays spent: void it with `holdfast ledger void {dataset} r1 --reason ...` (in Python Ledger.void)" in said
        made.save("out")
        with pytest.raises(IdenticalRelease):
            make(release_id="r1")

    def test_what_is_said_to_do_works(self, run: Run) -> None:
        released(release_id="r1")
        done = run("ledger", "void", "counties", "r1", "--reason", "the notebook was closed")
        assert (done.code, "its charge stays spent" in done.out) == (0, True)
        with pytest.raises(IdenticalRelease):
            released(release_id="r1")
        assert released(release_id="r2").entry is not None

    def test_an_interrupted_save_is_called_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = released(release_id="r1")
        with monkeypatch.context() as stopped:
            stopped.setattr(Ledger, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                made.save("out")
        with pytest.raises(WrongState, match=r"was drawn, and its save was interrupted. Call save\(\) again"):
            released(release_id="r1")
        made.save("out")
        assert hf.verify("out").release_id == "r1"

    def test_a_second_save_says_that_it_is_published(self, run: Run) -> None:
        made = released(release_id="r1")
        made.save("out")
        for folder in ("out", "again"):
            with pytest.raises(IdenticalRelease, match=r"^The release 'r1' is already published.*copy the folder it was saved in.$"):
                made.save(folder)
        assert not Path("again").exists()
        given_up = released(release_id="r2")
        assert run("ledger", "void", "counties", "r2", "--reason", "a mistake").code == 0
        with pytest.raises(IdenticalRelease, match="'r2' was voided in the ledger, so it is not written"):
            given_up.save("again")

    def test_help_says_so(self) -> None:
        said = inspect.getdoc(hf.release) or ""
        assert "The release is charged now. Call save(), or the charge is lost" in said
        example = (inspect.getdoc(hf) or "").split("\n\n")[1]
        assert example in said

    def test_a_mechanism_that_is_none(self) -> None:
        with pytest.raises(InvalidParameter, match=r"^A release needs a mechanism.* Got str"):
            hf.release(a_table(), KEEP, "laplace", release_id="r1")  # type: ignore[call-overload]


class TestExposed:
    def test_a_fixed_cell_is_refused_with_the_words_of_the_command(self, work: Path, run: Run) -> None:
        table = a_table(ONE_COUNTY)
        with pytest.raises(NotAcknowledged) as caught:
            hf.release(table, KEEP, LAPLACE, release_id="r1")
        assert not (work / DEFAULT_NAME).exists()
        said = run("release", "run.toml", "-o", "out").err
        before, _, after = str(caught.value).partition(" To publish it")
        assert before in said
        assert after in said
        made = hf.release(table, KEEP, LAPLACE, release_id="r1", allow_exposed=1)
        assert made.card.release.allow_exposed == 1

    @BOTH
    @pytest.mark.parametrize("number", [None, "any", -1, True, 1.0])
    def test_a_number_must_be_said(self, make: Any, number: Any, work: Path, run: Run) -> None:
        """None allowed any number, which no run file can say."""
        with pytest.raises(InvalidParameter, match="allow_exposed is a number of cells"):
            make(release_id="r1", allow_exposed=number)
        assert not (work / DEFAULT_NAME).exists()
        Path("run.toml").write_text(f"{RUN}allow_exposed = {json.dumps(number)}\n")
        assert run("release", "run.toml", "-o", "out").code != 0

    def test_answers_that_are_kept_are_counted(self) -> None:
        with pytest.raises(NotAcknowledged, match="The true count of 1 cell"):
            hf.answer([1, 2, 3], **{**ANSWER, "keep": [[1, 0, 0]]}, ledger=None)
        assert hf.answer([1, 2, 3], **{**ANSWER, "keep": [[1, 0, 0]]}, ledger=None, allow_exposed=1).table.exposed.sum() == 1


def everything(work: Path) -> dict[str, Any]:
    made, real = released(key=hf.NoiseKey.for_tests(1)), answered(key=hf.NoiseKey.for_tests(1))
    loaded = hf.load(made.save(work / "out"))
    own = {"table": a_table(), "release": made, "released table": made.table, "loaded": loaded, "loaded table": loaded.table}
    answers = {"answer": real, "loaded answer": hf.load(real.save(work / "answers"))}
    return {**own, **answers, "view": made.view(), "intervals": loaded.intervals(by="county")}


class TestFrames:
    def test_every_table_comes_as_pandas_polars_and_arrow(self, work: Path) -> None:
        for name, one in everything(work).items():
            arrow = one.to_arrow()
            assert isinstance(arrow, pa.Table), name
            assert arrow.equals(one.frame), name
            pandas, polars = one.to_pandas(), one.to_polars()
            assert isinstance(pandas, pd.DataFrame), name
            assert isinstance(polars, pl.DataFrame), name
            assert list(pandas.columns) == polars.columns == arrow.column_names, name
            assert pandas.to_dict("records") == polars.to_dicts() == arrow.to_pylist(), name

    def test_large_counts_beside_missing_ones_stay_whole(self) -> None:
        counts = np.array([2**60 + 1, 5, 3], dtype=np.int64)
        table = hf.Table(hf.Universe.listed({"a": ["x", "y", "y"], "b": ["1", "2", "3"]}), counts)
        made = hf.release(table, [hf.margin("a")], hf.Suppression(), ledger=None, allow_exposed=1)
        assert made.to_pandas()["count"].tolist() == [2**60 + 1, pd.NA, pd.NA]
        assert made.to_polars()["count"].to_list() == [2**60 + 1, None, None]

    @pytest.mark.parametrize("package", ["pandas", "polars"])
    def test_a_package_that_is_missing_is_named(self, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        made = released(key=hf.NoiseKey.for_tests(1))
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InvalidParameter, match=f"to_{package} needs the package {package}, which is not installed"):
            getattr(made, f"to_{package}")()
        assert made.to_arrow().num_rows == 5

    def test_pages_for_notebooks(self, work: Path) -> None:
        found = everything(work)
        assert notebook_page(found["release"]) == notebook_page(found["loaded"])
        assert notebook_page(found["answer"]) == notebook_page(found["loaded answer"])
        assert "NOT PRIVATE" in notebook_page(found["loaded"])
        shown = notebook_page(found["loaded table"])
        assert shown == notebook_page(found["released table"])
        assert f">{found['release'].table.counts[0]}</td>" in shown
        assert all(notebook_page(found[name]).endswith(notebook_page(found[name].table)) for name in ("release", "loaded", "answer"))
        planned = notebook_page(found["release"].plan)
        assert "Standard deviation" in planned
        assert "Published count" not in planned
        assert "counts" in notebook_page(found["table"])  # which are confidential, and not shown

    def test_codes_are_escaped_and_few_cells_are_shown(self) -> None:
        universe = hf.Universe.product({"a": [f"<b>{number}" for number in range(13)]})
        made = hf.release(hf.Table(universe, np.arange(13)), [hf.total()], LAPLACE, key=hf.NoiseKey.for_tests(1))
        shown = notebook_page(made.table)
        assert "<b>" not in shown
        assert "&lt;b&gt;5" in shown
        assert "&lt;b&gt;6" not in shown
        assert "The first 6 of 13 rows" in shown


def test_modules_of_the_room_do_not_import_each_other_in_a_circle() -> None:
    """Imports inside functions count; those for types alone do not."""
    folder = Path(hf.__file__).with_name("publication")
    graph = {path.stem: imports(ast.parse(path.read_text(encoding="utf-8"))) for path in folder.glob("*.py")}
    while leaves := [name for name, named in graph.items() if not named & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert graph == {}


def imports(tree: ast.AST) -> set[str]:
    """The modules of the room that are imported when something runs."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            room, _, name = node.module.partition("holdfast.publication")
            if not room and name.startswith("."):
                found.add(name.removeprefix("."))
            elif not room and not name and node.module == "holdfast.publication":
                found |= {alias.name for alias in node.names}
        found |= imports(node)
    return found
