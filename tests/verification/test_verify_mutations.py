"""Every single field of a card, changed alone: `verify` says so, or only a signature could. So does every cell and every page.

The forger here is a good one: checksums fit the changed files, and the pages are made again to suit the changed card.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.card.card import Card
from holdfast.errors import HoldfastError, VerificationFailed
from holdfast.ledger import Ledger
from holdfast.publication.booking import ChargedAccount
from holdfast.publication.folder import Output
from holdfast.publication.order import Order
from holdfast.publication.pipeline import carry_out
from holdfast.publication.report_facts import report_facts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from holdfast.tables.measure import AnswerGrid
from holdfast.verification.recompute import DECLARED, ONLY_SIGNED
from holdfast.verification.verify import published_rows
from tests.exposing import exposing
from tests.verification.test_verify import write_keys

UNIVERSE = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"], "age": ["young", "old"]})
COUNTS = np.array([11, 22, 33, 44, 55, 66, 77, 88, 0, 0, 99, 5])
ONE_AREA = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M", "X"]})
KEEP: list[Any] = [hf.margin("area", "sex"), hf.margin("area", "age")]
THREE_WAY: list[Any] = [hf.margin("area", "sex"), hf.margin("area", "age"), hf.margin("sex", "age")]
SMALL: list[Any] = [hf.margin("area"), hf.subset("area", ["a"], by=["sex"])]
NINE = hf.Table(ONE_AREA, np.arange(10, 100, 10), name="nine", max_records=3)
TWELVE = hf.Table(UNIVERSE, COUNTS, protect="household")
TREE = hf.Hierarchy.from_parents({"a": "north", "b": "north", "c": "south"}, levels=["region", "own"])
IN_REGIONS = hf.Table(hf.Universe.product({"area": TREE, "sex": ["F", "M", "X"]}), np.arange(10, 100, 10))
BEDS = hf.Table(ONE_AREA, np.arange(9), public_columns={"beds": np.repeat([1, 2, 3], 3)})
LISTED = hf.Table.from_counts(pa.table({"area": ["a", "a", "b"], "sex": ["F", "M", "F"], "n": [3, 4, 5]}), cells=["area", "sex"], count="n")
RATES = hf.Table(ONE_AREA, np.arange(-4, 5), count="rate", measure=AnswerGrid(Fraction(1, 8), l1=Fraction(2)))

RELEASES: dict[str, tuple[hf.Table, list[Any], Any]] = {
    "laplace": (TWELVE, KEEP, hf.GeneralizedLaplace(epsilon="1/2", per="household")),
    "gaussian": (NINE, [hf.margin("area")], hf.GeneralizedGaussian(epsilon="1/2", delta="1e-6", per="distance")),
    "sequential": (NINE, [hf.margin("area")], hf.GeneralizedGaussian(rho=9, law="sequential", per="person")),
    "zcdp": (TWELVE, [hf.total(), hf.identity(hf.subset("area = 'c' and sex = 'F'"))], hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "rounded": (TWELVE, THREE_WAY, hf.RoundedProjection(epsilon="1/2", per="distance")),
    "suppression": (NINE, SMALL, hf.Suppression()),
    "chain": (
        NINE,
        [hf.margin("area"), hf.margin("sex")],
        hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance"),
    ),
    "levels": (
        IN_REGIONS,
        [hf.margin("region")],
        hf.GeneralizedGaussian(rho="1/10", levels={"region": {"sex": "1/4"}, "area": "3/4"}, per="distance"),
    ),
    "conditional": (
        BEDS,
        [hf.margin("area")],
        hf.Conditional(
            epsilon="1/2", upper="99 beds", rows=[hf.at_most(hf.subset("sex", ["F"], by=["area"]), "80 beds")], gamma="best", per="distance"
        ),
    ),
    "answers": (RATES, [hf.margin("area")], hf.ProjectedLaplace(epsilon="1/2")),
    "listed": (LISTED, [hf.margin("area")], hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance")),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """A folder of each mechanism without a ledger, and one charged to a ledger, signed, dated, a revision; with what its figures show."""
    place = tmp_path_factory.mktemp("folders")
    drawn = {
        name: exposing(hf.release, table, keep, mechanism, key=hf.NoiseKey.for_tests(name), release_id=name)
        for name, (table, keep, mechanism) in RELEASES.items()
    }
    made = {name: (one.save(place / name), report_facts(one.plan, one.table)) for name, one in drawn.items()}
    ledger = Ledger.open(place / "ledger.db", create=True, needs_grants=True)
    ledger.grant("nine", kind="approximate", epsilon="90", delta="1e-6", approver="A. Chief", reason="the census")
    plan, private = (
        hf.plan(NINE, [hf.margin("area")], hf.GeneralizedLaplace(epsilon="1/10", per="distance")),
        write_keys(place, "office", 1)[0],
    )
    earlier, rows = published_rows(made["gaussian"][0])
    order = Order("booked", "2030-04-01", (earlier, tuple(rows)))
    carry_out(plan, NINE, Order("gaussian"), Output(place / "first"), ChargedAccount(ledger, "nine", None))
    carry_out(plan, NINE, order, Output(place / "booked", sign=private), ChargedAccount(ledger, "nine", None))
    again = hf.load(place / "booked")
    return {**made, "booked": (place / "booked", report_facts(again.plan, again.table))}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every single value of a card, empty lists and objects among them."""
    if isinstance(value, dict | list) and value:
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, name))
    else:
        yield path, value


def changes(value: Any) -> list[Any]:
    """Other values of the same kind, as a careful forger would choose them."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [float(f"{value * 1.00002:.6g}") if value else 0.5]
    if isinstance(value, list):
        return [["something"]]
    if isinstance(value, dict):
        return [{"something": 1}]
    if value is None:
        return ["a", 1]
    number = re.fullmatch(r"(.*?)([0-9])([^0-9]*)", value, re.DOTALL)
    other = {"exact": "estimated", "declared": "as listed", "pure": "zcdp", "l1": "l2", "kept": "identity"}
    if value in other:
        return [other[value]]
    if number is not None:
        return [f"{number[1]}{(int(number[2]) + 1) % 10}{number[3]}"]
    return [f"{value}-indeed"]


def with_change(card: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = json.loads(json.dumps(card))
    inner = made
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return dict(made)


def forge(folder: Path, card: dict[str, Any], charts: Any, pages: bool = True) -> None:
    """Write the card, with pages and checksums that suit it where the card can have any."""
    if pages:
        with open(folder / "kept.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        kept = [(row[0], row[1], row[-1] if "." in row[-1] else int(row[-1])) for row in rows]
        with contextlib.suppress(
            HoldfastError, TypeError, ValueError, AttributeError, ZeroDivisionError
        ):  # a card that no page can be made of
            bare = Card.model_validate({**card, "files": {}, "signature": None})
            (folder / "statement.html").write_text(statement_html(bare))
            (folder / "report.html").write_text(report_html(bare, kept, charts))
        for name in card["files"] if isinstance(card["files"], dict) else ():
            data = (folder / name).read_bytes() if (folder / name).is_file() else b""
            if name.endswith(".html"):
                card["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def is_only_signed(path: tuple[Any, ...]) -> bool:
    named = ".".join(str(part) for part in path if not isinstance(part, int))
    return any(named == field or named.startswith(f"{field}.") for field in ONLY_SIGNED)


QUICK = ("laplace",)
"""Those that `make test` changes field by field; the others are in the long group."""


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in (*RELEASES, "booked")])
def test_every_field_changed_alone_is_reported_or_listed_as_only_signed(
    folders: dict[str, tuple[Path, Any]], tmp_path: Path, name: str
) -> None:
    original, charts = folders[name]
    folder = Path(shutil.copytree(original, tmp_path / name))
    card = json.loads((folder / "card.json").read_text())
    if name == "booked":  # the signature would report everything: what is left without one?
        forge(folder, with_change(card, ("release", "date"), "2030-04-02"), charts)
        with pytest.raises(VerificationFailed, match="the signature does not fit"):
            hf.verify(folder)
        card = with_change(with_change(card, ("signature",), None), ("release", "signer"), None)
    forge(folder, card, charts)
    hf.verify(folder)
    originals = {path.name: path.read_bytes() for path in folder.iterdir()}
    missed, tried = [], 0
    for path, value in leaves(card):
        for other in changes(value):
            tried += 1
            forge(folder, with_change(card, path, other), charts, pages=path[0] != "files")
            try:
                hf.verify(folder)
            except HoldfastError:
                pass
            else:
                missed.append(path)
            for file, data in originals.items():
                (folder / file).write_bytes(data)
    assert [path for path in missed if not is_only_signed(path)] == []
    assert tried > 80
    assert ("release", "id") in missed  # the list is not longer than it must be


def with_right_checksums(folder: Path) -> None:
    card = json.loads((folder / "card.json").read_text())
    for name in card["files"]:
        data = (folder / name).read_bytes()
        card["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    "name", [pytest.param("laplace", marks=pytest.mark.long), "rounded", pytest.param("suppression", marks=pytest.mark.long)]
)
def test_every_entry_of_the_table_and_of_the_kept_totals_changed_alone_is_reported(
    folders: dict[str, tuple[Path, Any]], tmp_path: Path, name: str
) -> None:
    """With one format only: the other one would report it too. Codes, counts, standard deviations, totals and their names."""
    table, keep, mechanism = RELEASES[name]
    folder = exposing(hf.release, table, keep, mechanism, key=hf.NoiseKey.for_tests(name), release_id=name).save(
        tmp_path / "csv", formats=["csv"]
    )
    hf.verify(folder)
    for file in ("table.csv", "kept.csv", "exposed.csv"):
        with open(folder / file, encoding="utf-8", newline="") as opened:
            rows = list(csv.reader(opened))
        original = {path.name: path.read_bytes() for path in folder.iterdir()}
        places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
        for i, j in places:
            text = rows[i][j]
            other = f"{text} indeed" if not re.fullmatch(r"-?[0-9.]+", text) else str(int(text) + 1) if "." not in text else f"{text}1"
            changed = [[*row] for row in rows]
            changed[i][j] = "3" if not text else other
            with open(folder / file, "w", encoding="utf-8", newline="") as opened:
                csv.writer(opened, lineterminator="\n").writerows(changed)
            with_right_checksums(folder)
            with pytest.raises(VerificationFailed):
                hf.verify(folder)
            for before, data in original.items():
                (folder / before).write_bytes(data)
    hf.verify(folder)


@pytest.mark.parametrize("page", ["statement.html", "report.html"])
@pytest.mark.parametrize("name", ["laplace", "chain", "suppression"])
def test_a_word_on_a_page_is_reported(folders: dict[str, tuple[Path, Any]], tmp_path: Path, name: str, page: str) -> None:
    folder = Path(shutil.copytree(folders[name][0], tmp_path / name))
    text = (folder / page).read_text()
    (folder / page).write_text(text.replace("differential privacy", "perfect privacy", 1))
    with_right_checksums(folder)
    with pytest.raises(VerificationFailed, match=f"{page} is not the page that follows from the card, or another build of this version"):
        hf.verify(folder)


def test_a_field_that_only_a_signature_protects_still_shows_on_the_old_pages(folders: dict[str, tuple[Path, Any]], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["laplace"][0], tmp_path / "laplace"))
    card = json.loads((folder / "card.json").read_text())
    forge(folder, with_change(card, ("release", "id"), "another"), None, pages=False)
    with pytest.raises(VerificationFailed, match="is not the page that follows from the card"):
        hf.verify(folder)


def test_pages_and_sentences_of_another_version_are_not_compared_but_their_fields_are(
    folders: dict[str, tuple[Path, Any]], tmp_path: Path
) -> None:
    original, charts = folders["gaussian"]
    folder = Path(shutil.copytree(original, tmp_path / "gaussian"))
    card = with_change(json.loads((folder / "card.json").read_text()), ("software", "holdfast"), "0.0.9")
    forge(folder, with_change(card, ("expected_error", "text"), "Said in other words."), charts)
    found = hf.verify(folder)
    assert found.recomputed == ("promise", "exposure", "samplers", "standard deviations")
    said = "sentences and pages, which the card says version 0.0.9 of Holdfast made; they could say anything. Verify with that version"
    assert found.left == (said,)
    assert f"Not compared: {said}.\n" in str(found)
    with pytest.raises(
        VerificationFailed, match="Not everything was compared, as strict asks for: sentences and pages, which the card says"
    ):
        hf.verify(folder, strict=True)
    forge(folder, with_change(card, ("guarantee", "parameters", "epsilon"), "1/4"), charts)
    with pytest.raises(VerificationFailed, match=r"guarantee\.parameters\.epsilon is '1/4'; the rest of the folder gives '0\.5'"):
        hf.verify(folder)


@pytest.mark.parametrize("said", ["[" * 100_000, 5, "{}"], ids=["deep", "number", "no list"])
def test_shares_that_are_none_are_reported_as_such(folders: dict[str, tuple[Path, Any]], tmp_path: Path, said: Any) -> None:
    """The first raised RecursionError, the second was reported as TypeError."""
    folder = tmp_path / "forged"
    shutil.copytree(folders["levels"][0], folder)
    card = json.loads((folder / "card.json").read_text())
    card["mechanism"]["parameters"]["levels"] = said
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(VerificationFailed, match="No generalized-gaussian has these parameters"):
        hf.verify(folder)


def test_a_missing_signature_is_an_error_where_the_card_names_a_signer(folders: dict[str, tuple[Path, Any]], tmp_path: Path) -> None:
    original, charts = folders["booked"]
    folder = Path(shutil.copytree(original, tmp_path / "booked"))
    card = json.loads((folder / "card.json").read_text())
    assert card["release"]["signer"] == card["signature"]["public_key"]
    forge(folder, with_change(card, ("signature",), None), charts)
    with pytest.raises(VerificationFailed, match="the card is not signed, although it names a signer"):
        hf.verify(folder)


def test_the_longest_meeting_of_a_chain_is_free_only_within_its_whole_sweeps(folders: dict[str, tuple[Path, Any]], tmp_path: Path) -> None:
    """Twice its steps, rounded up to sweeps, are the steps of the chain: a change by a sweep is reported."""
    original, charts = folders["chain"]
    folder = Path(shutil.copytree(original, tmp_path / "chain"))
    card = json.loads((folder / "card.json").read_text())
    chain = card["sampler"]["groups"][0]["chain"]
    sweep = chain["steps"] // chain["sweeps"]
    for change in (sweep, -sweep):
        forge(folder, with_change(card, ("sampler", "groups", 0, "chain", "largest_meeting"), chain["largest_meeting"] + change), charts)
        with pytest.raises(VerificationFailed):
            hf.verify(folder)


def test_no_chain_is_assessed_again(folders: dict[str, tuple[Path, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a chain was assessed")

    monkeypatch.setattr("holdfast.chains.sampler.assess_all", refused)
    assert "how the coupled chains met" in str(hf.verify(folders["chain"][0]))


def test_what_only_a_signature_protects_is_said_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs" / "releases.md").read_text(encoding="utf-8")
    assert [field for field in (*ONLY_SIGNED, *DECLARED) if f"`{field}`" not in text] == []


def test_a_sensitivity_that_is_declared_again_with_its_budget_verifies_and_is_said_to_be_taken_as_declared(tmp_path: Path) -> None:
    """The same noise, with epsilon 1/128: "Recomputed and equal: promise" alone would mislead."""
    laws = set()
    for name, sensitivity, epsilon in (("true", "1/2", "1"), ("again", "1/256", "1/128")):
        table = hf.Table(
            ONE_AREA, RATES.counts, count="rate", measure=AnswerGrid(Fraction(1, 65536), l1=Fraction(sensitivity), on_grid=True)
        )
        made = hf.release(table, [hf.margin("area")], hf.ProjectedLaplace(epsilon=epsilon), key=hf.NoiseKey.for_tests(1), release_id=name)
        found = hf.verify(made.save(tmp_path / name))
        assert found.declared == DECLARED
        assert "Taken as declared: the sensitivity of the answers, which data sets are neighbours, and whether" in str(found)
        laws.add(str(made.plan.law))
    assert laws == {"Law(rounded projection 1/32768; 9 cells, 6 free dimensions)"}


def test_counts_have_nothing_declared_beside_what_is_signed(folders: dict[str, tuple[Path, Any]]) -> None:
    found = hf.verify(folders["laplace"][0])
    assert found.declared == ()
    assert "declared" not in str(found)
