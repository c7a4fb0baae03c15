"""A publication view in the output folder: asked for in the run file or in Python, checked by verify, and made by `holdfast view`."""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter, RequestTooLarge, VerificationFailed
from holdfast.publication import view
from holdfast.publication.publication import Publication
from holdfast.views import crossing as view_crossing
from holdfast.views import network
from tests.report.cards import Page
from tests.running import Run
from tests.snapshot_files import Snapshot
from tests.verification.test_verify_mutations import with_right_checksums

COUNTS = np.array([0, 5, 10, 5, 0, 20, 5, 15, 0])
TOWNS = hf.Universe.product({"county": ["A", "B", "C"], "age": ["0", "18", "65"]})
LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")


def released(keep: Any = None, mechanism: Any = LAPLACE, key: str = "view") -> Publication:
    kept = [hf.margin("county")] if keep is None else keep
    return hf.release(hf.Table(TOWNS, COUNTS), kept, mechanism, key=hf.NoiseKey.for_tests(key), release_id="towns")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released().save(tmp_path_factory.mktemp("saved") / "out", view_base=5)


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "out"))


def test_the_folder_holds_the_view_under_names_of_its_own(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} >= {"table.csv", "view.csv", "view.parquet", "view.json"}
    made = released().view(base=5)
    assert json.loads((folder / "view.json").read_text()) == made.to_fields()
    assert pq.read_table(folder / "view.parquet").column("count_view_base_5").to_pylist() == made.counts.tolist()
    found = hf.verify(folder)
    assert "publication view" in found.recomputed
    assert np.array_equal(hf.load(folder).view(base=5).counts, made.counts)


def test_the_pages_tell_of_the_view_and_its_biases(folder: Path) -> None:
    said = json.loads((folder / "view.json").read_text())
    report, statement = (Page((folder / name).read_text(encoding="utf-8")).text for name in ("report.html", "statement.html"))
    assert "The folder also has a publication view (files named view, base 5)" in statement
    assert said["text"] in report
    assert said["bias"]["text"] in report
    assert said["bias"]["lines"], "there are biases to look for"
    for line in said["bias"]["lines"]:
        kept = line["bias"] == line["standard_error"] == 0
        bias = "none -" if kept else f"{line['bias']:+.3f} {line['standard_error']:.3f}"
        assert f"{line['level']} {line['size']} {line['units']:,} {bias}" in report
    assert "none -" in report, "kept totals"


def test_pages_that_keep_silent_about_the_view_are_reported(folder: Path, tmp_path: Path) -> None:
    silent = released().save(tmp_path / "silent")
    for name in ("report.html", "statement.html"):
        shutil.copy(silent / name, folder / name)
    with_right_checksums(folder)
    with pytest.raises(VerificationFailed, match=r"statement\.html is not the page .* report\.html is not the page"):
        hf.verify(folder)


def test_without_a_base_there_is_none(tmp_path: Path) -> None:
    folder = released().save(tmp_path / "out")
    assert not [path.name for path in folder.iterdir() if path.name.startswith("view")]
    for name in ("report.html", "statement.html"):
        assert "publication view" not in (folder / name).read_text(encoding="utf-8")
    assert "publication view" not in hf.verify(folder).recomputed


def raised(text: str) -> str:
    """The table with a five moved from the first cell of its last county to another."""
    *lines, first, second, third = text.splitlines()
    cells = [line.rsplit(",", 1) for line in (first, second, third)]
    most = max(range(3), key=lambda place: int(cells[place][1]))
    cells[most][1] = str(int(cells[most][1]) - 5)
    cells[most - 1][1] = str(int(cells[most - 1][1]) + 5)
    return "\n".join([*lines, *(",".join(cell) for cell in cells)]) + "\n"


class TestTampered:
    """Each time with checksums made to suit."""

    def test_another_view_with_the_same_totals(self, folder: Path) -> None:
        (folder / "view.csv").write_text(raised((folder / "view.csv").read_text()))
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=r"view\.csv is not the view that follows from the table"):
            hf.verify(folder)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("text", "These are the true counts."),
            ("solver", "none"),
            ("solver", "scipy 0.0"),
            ("release", "other"),
            ("changed", 0),
            ("more", 1),
            ("bias", None),
            ("column", "count"),
        ],
    )
    def test_what_stands_beside_it(self, folder: Path, field: str, value: Any) -> None:
        said = json.loads((folder / "view.json").read_text())
        (folder / "view.json").write_text(json.dumps({**said, field: value}, indent=2, ensure_ascii=False) + "\n")
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=rf"view\.json: '{field}' does not follow from the table"):
            hf.load(folder)

    def test_a_solver_that_was_not_needed_lets_no_bias_pass(self, folder: Path) -> None:
        said = json.loads((folder / "view.json").read_text())
        lies = {"solver": "scipy 0.0", "changed": 0, "bias": {**said["bias"], "text": "This view is unbiased.", "lines": []}}
        (folder / "view.json").write_text(json.dumps({**said, **lies}, indent=2, ensure_ascii=False) + "\n")
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed) as caught:
            hf.verify(folder)
        assert [name for name in lies if f"view.json: '{name}' does not follow" in str(caught.value)] == list(lies)

    @pytest.mark.parametrize(
        "said", ["[]", '{"base": 2, "nonnegative": true}', '{"base": true, "nonnegative": true}', '{"base": 3, "nonnegative": true}']
    )
    def test_no_view_of_this_release(self, folder: Path, said: str) -> None:
        (folder / "view.json").write_text(said)
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=r"view\.json does not belong to a publication view of this release"):
            hf.verify(folder)

    @pytest.mark.parametrize(
        ("name", "text", "told"),
        [
            ("view.json", "{", r"view\.json cannot be read"),
            ("view.csv", '"county","age"\n"A","0"\n', r"view\.csv is not the view"),
            ("view.csv", '"county"\n"A"\n', r"view\.csv is not the view"),
            ("view.parquet", "PAR1", r"view\.parquet cannot be read"),
        ],
    )
    def test_files_of_another_kind(self, folder: Path, name: str, text: str, told: str) -> None:
        (folder / name).write_text(text)
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=told):
            hf.verify(folder)

    def test_another_view_under_crossing_totals(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No software or solver is an excuse: the view of a network is the same everywhere."""
        monkeypatch.setattr(view, "MOST_DRAWS", 10)
        crossing = released([hf.margin("county"), hf.margin("age")], hf.GeneralizedGaussian(sigma_squared=9))
        folder = crossing.save(tmp_path / "out", formats=["csv"], view_base=1)
        assert json.loads((folder / "view.json").read_text())["solver"] is None
        text = (folder / "view.csv").read_text().splitlines()
        numbers = np.array([int(line.rsplit(",", 1)[1]) for line in text[1:]]).reshape(3, 3)
        pairs = combinations(np.argwhere(numbers > 0), 2)
        low, high = next(pair for pair in pairs if (pair[0] != pair[1]).all())  # a swap along two rows and two columns keeps all totals
        for (row, column), step in (((0, 0), -1), ((1, 1), -1), ((0, 1), 1), ((1, 0), 1)):
            numbers[(low, high)[row][0], (low, high)[column][1]] += step
        lines = [",".join([line.rsplit(",", 1)[0], str(number)]) for line, number in zip(text[1:], numbers.ravel(), strict=True)]
        (folder / "view.csv").write_text("\n".join([text[0], *lines]) + "\n")
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=r"view\.csv is not the view that follows from the table"):
            hf.verify(folder)

    def test_a_table_that_nothing_explains(self, folder: Path) -> None:
        (folder / "view.json").unlink()
        card = json.loads((folder / "card.json").read_text())
        del card["files"]["view.json"]
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        with pytest.raises(VerificationFailed, match=r"the card does not list view\.json"):
            hf.verify(folder)


class TestRefusedBeforeTheDraw:
    def test_totals_that_are_no_multiples(self, tmp_path: Path) -> None:
        with pytest.raises(
            InvalidParameter,
            match=r"25 \(county=B\), 20 \(county=C\) are no multiples of 3\. What can be done: take a base that fits \(1, 5\)",
        ):
            released().save(tmp_path / "out", view_base=3)
        assert not (tmp_path / "out").exists()

    def test_bases(self, tmp_path: Path) -> None:
        for base in (7, 5.0, np.int64(5)):
            with pytest.raises(InvalidParameter, match="base is one of 1, 3, 5, 10"):
                released().save(tmp_path / "out", view_base=base)  # type: ignore[arg-type]

    def test_crossing_totals_have_a_view_to_any_base_that_fits(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(view, "MOST_DRAWS", 10)
        crossing = released([hf.margin("county"), hf.margin("age")], hf.GeneralizedGaussian(sigma_squared=9))
        for base in (1, 5):
            folder = crossing.save(tmp_path / f"out{base}", view_base=base)
            assert hf.verify(folder).private is False
            made = pq.read_table(folder / "view.parquet").columns[-1].to_numpy().reshape(3, 3)
            assert made.min() >= 0
            assert not (made % base).any()
            assert made.sum(axis=1).tolist() == COUNTS.reshape(3, 3).sum(axis=1).tolist()
            assert made.sum(axis=0).tolist() == COUNTS.reshape(3, 3).sum(axis=0).tolist()
        monkeypatch.setattr(network, "MOST_CELLS", 8)
        with pytest.raises(RequestTooLarge, match=r"Kept totals cross over 9 cells.* keep totals that do not cross"):
            crossing.save(tmp_path / "large", view_base=1)

    def test_totals_that_are_not_rows_and_columns_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The search may take very long, or find nothing: said before anything is drawn."""
        monkeypatch.setattr(view, "MOST_DRAWS", 10)
        cube = hf.Universe.product({"a": ["0", "1", "2"], "b": ["0", "1", "2"], "c": ["0", "1", "2"]})
        keep = [hf.margin("a", "b"), hf.margin("a", "c"), hf.margin("b", "c")]
        noise = hf.GeneralizedGaussian(sigma_squared=9)
        made = hf.release(hf.Table(cube, np.arange(27) % 4), keep, noise, key=hf.NoiseKey.for_tests("cube"), release_id="cube")
        with pytest.raises(InvalidParameter, match="only a search finds whole numbers, so a view is not written with the release"):
            made.save(tmp_path / "out", view_base=1)
        assert not (tmp_path / "out").exists()
        assert (made.table.counts < 0).any()
        assert (made.view().counts >= 0).all()
        monkeypatch.setattr(view_crossing, "MOST_SEARCHED", 26)
        with pytest.raises(RequestTooLarge, match="cross in three ways or more over 27 cells"):
            made.view()

    def test_noise_that_reads_counts(self, tmp_path: Path) -> None:
        bounded = released(mechanism=hf.Conditional(epsilon="1/2", lower=0, per="distance"))
        with pytest.raises(InvalidParameter, match="the noise depends on the true counts, so a view is not written with the release"):
            bounded.save(tmp_path / "out", view_base=1)


RUN = """\
[table]
source = "towns.csv"
cells = ["county", "age"]
count = "people"
public = true
[keep]
margins = [["county"]]

[release]
id = "towns"
mechanism = "generalized-laplace"
epsilon = "1/4"
per = "distance"
ledger = "none"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [
        f"{county},{age},{count}" for (county, age), count in zip(((c, a) for c in "ABC" for a in ("0", "18", "65")), COUNTS, strict=True)
    ]
    (tmp_path / "towns.csv").write_text("\n".join(["county,age,people", *rows]) + "\n")
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_file_asks_for_it(work: Path, run: Run) -> None:
    (work / "run.toml").write_text(RUN + "view_base = 5\n")
    assert run("release", "run.toml", "-o", "out").code == 0
    assert json.loads((work / "out" / "view.json").read_text())["base"] == 5
    assert run("verify", "out").code == 0


@pytest.mark.parametrize("said", ["2", "true", '"5"', "0.5"])
def test_a_run_file_with_another_base(work: Path, run: Run, said: str) -> None:
    (work / "run.toml").write_text(RUN + f"view_base = {said}\n")
    ended = run("plan", "run.toml")
    assert ended.code != 0
    assert "release.view_base" in ended.err
    assert "must be one of 1, 3, 5, 10" in ended.err


KEPT_CROSSING = (
    RUN.replace('margins = [["county"]]', 'margins = [["county"], ["age"]]')
    .replace('mechanism = "generalized-laplace"\nepsilon = "1/4"', 'mechanism = "generalized-gaussian"\nsigma_squared = "9"')
    .replace('per = "distance"\n', "")
)


def test_a_run_file_under_crossing_totals(work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MOST_DRAWS", 10)
    (work / "run.toml").write_text(KEPT_CROSSING + "view_base = 5\n")
    assert run("plan", "run.toml").code == 0
    assert run("release", "run.toml", "-o", "out").code == 0
    assert run("verify", "out").code == 0


def test_plan_refuses_the_view_that_release_refuses(work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was accepted by `plan`, and refused by `release`; a folder without it was refused by `view` once the budget was spent."""
    monkeypatch.setattr(network, "MOST_CELLS", 8)
    (work / "run.toml").write_text(KEPT_CROSSING + "view_base = 1\n")
    refused = run("plan", "run.toml")
    assert refused.code != 0
    assert "Kept totals cross over 9 cells, and counts for print are made of 8 at most. Leave view_base out" in refused.err
    assert run("release", "run.toml", "-o", "out").err == refused.err
    assert not (work / "out").exists()


def test_a_run_file_with_a_base_that_does_not_fit_draws_nothing(work: Path, run: Run) -> None:
    (work / "run.toml").write_text(RUN.replace('ledger = "none"\n', "") + "view_base = 3\n")
    ended = run("release", "run.toml", "-o", "out")
    assert ended.code != 0
    assert "are no multiples of 3. What can be done: take a base that fits (1, 5)" in ended.err
    assert sorted(path.name for path in work.iterdir()) == ["run.toml", "towns.csv"]  # no output, and no ledger with a charge


def test_the_command_prints_and_writes_a_view(work: Path, run: Run, snapshot: Snapshot) -> None:
    released().save(work / "out")
    ended = run("view", "out", "-o", "view.csv")
    assert ended.code == 0
    snapshot(ended.out)
    assert (work / "view.csv").read_text().splitlines()[0] == '"county","age","count_view"'
    assert json.loads((work / "view.json").read_text()) == released().view().to_fields()
    again = run("view", "out", "-o", "view.csv")
    assert again.code != 0
    assert "exists already" in again.err


def test_the_command_for_machines(work: Path, run: Run) -> None:
    released().save(work / "out")
    said = json.loads(run("view", "out", "--base", "5", "--json").out)
    assert said == {**released().view(base=5).to_fields(), "files": []}
    signed = json.loads(run("view", "out", "--base", "5", "--allow-negative", "--json").out)
    assert signed["nonnegative"] is False
    refused = run("view", "out", "--base", "3", "--json")
    assert refused.code != 0
    assert "are no multiples of 3" in refused.out + refused.err


def test_the_command_makes_no_view_of_a_tampered_folder(work: Path, run: Run) -> None:
    released().save(work / "out")
    with open(work / "out" / "kept.csv", "a", encoding="utf-8") as file:
        file.write("x\n")
    ended = run("view", "out", "-o", "view.csv")
    assert ended.code != 0
    assert "kept.csv has" in ended.err
    assert not (work / "view.csv").exists()


def test_a_view_is_not_written_into_a_published_folder(work: Path, run: Run) -> None:
    folder = released().save(work / "out")
    ended = run("view", "out", "-o", "out/view.csv")
    assert ended.code == 2
    assert "'view.csv' would be written into a published folder" in ended.err
    with pytest.raises(InvalidParameter, match="Choose another place"):
        hf.load(folder).view().save(folder / "other.parquet")
    assert hf.verify(folder).cells == 9
