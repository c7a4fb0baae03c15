"""A release: what it holds, what it never holds, and that twins cannot be told apart."""

from __future__ import annotations

import gc
import pickle
import types
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.card.card import Card
from holdfast.errors import InvalidParameter
from holdfast.publication.order import Order
from holdfast.publication.pipeline import draw
from holdfast.publication.publication import Publication, PublishedTable
from tests.exposing import exposing
from tests.notebooks import notebook_page
from tests.publication.twin_reports import with_the_numbers_of

UNIVERSE = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q", "r"]})
COUNTS = np.array([70000000001, 3, 0, 7, 120, 5, 1, 9, 33])
TWIN = COUNTS + np.array([-2, 1, 1, 3, -5, 2, 0, 0, 0])  # the same sums over b
KEEP = [hf.margin("a")]
MECHANISMS: dict[str, Any] = {
    "laplace": hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
    "l2 laplace": hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"),
    "gaussian": hf.GeneralizedGaussian(rho="1/100", per="distance"),
    "calibrated": hf.GeneralizedGaussian(epsilon="1/4", delta="1e-5", per="distance"),
    "rounded": hf.RoundedProjection(epsilon="1/4", per="distance"),
    "suppression": hf.Suppression(),
}


def a_release(mechanism: Any = MECHANISMS["laplace"], counts: Any = COUNTS, keep: Any = KEEP) -> Publication:
    return exposing(hf.release, hf.Table(UNIVERSE, counts, name="t"), keep, mechanism, key=hf.NoiseKey.for_tests("release"), release_id="r")


def reachable(start: object) -> Iterator[object]:
    """Every object that can be reached from another, modules and code left aside."""
    seen, waiting = {id(start)}, [start]
    while waiting:
        one = waiting.pop()
        yield one
        for other in gc.get_referents(one):
            if id(other) not in seen and not isinstance(other, type | types.ModuleType | types.FunctionType | types.CodeType):
                seen.add(id(other))
                waiting.append(other)


class TestNothingConfidentialStays:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_no_true_counts_and_no_noise_can_be_reached(self, name: str, tmp_path: Path) -> None:
        made = a_release(MECHANISMS[name])
        assert made.card
        made.save(tmp_path / "out")
        noise = made.table.counts - COUNTS
        for one in reachable(made):
            assert not isinstance(one, hf.Table | hf.NoiseKey)
            if isinstance(one, np.ndarray) and one.dtype.kind in "iuf" and one.size == len(COUNTS):
                assert not np.array_equal(one.ravel(), COUNTS)
                assert name == "suppression" or not np.array_equal(one.ravel(), noise)

    @pytest.mark.parametrize("name", MECHANISMS)
    def test_a_pickle_holds_public_things_only(self, name: str) -> None:
        made = a_release(MECHANISMS[name])
        text = pickle.dumps(made)
        noise = made.table.counts - COUNTS
        assert COUNTS.tobytes() not in text
        assert int(COUNTS[0]).to_bytes(8, "little") not in text
        assert name == "suppression" or noise.tobytes() not in text
        back = pickle.loads(text)
        assert back.card == made.card
        assert back.kept_rows == made.kept_rows
        assert back.table.counts.tolist() == made.table.counts.tolist()

    def test_the_table_given_is_not_changed(self) -> None:
        table = hf.Table(UNIVERSE, COUNTS)
        hf.release(table, KEEP, MECHANISMS["laplace"], ledger=None)
        assert table.counts.tolist() == COUNTS.tolist()

    def test_printing_shows_no_count(self) -> None:
        made = a_release()
        assert (
            repr(made)
            == "Publication('r', 9 cells, GeneralizedLaplace(epsilon='1/4', per='distance'), not recorded in a ledger, NOT PRIVATE)"
        )
        assert repr(made.table) == "PublishedTable(9 cells by a, b)"


class TestKeptTotals:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_they_are_those_of_the_table(self, name: str) -> None:
        keep = [hf.total(), hf.margin("a"), hf.subset("b", ["p", "q"]), hf.identity(hf.subset("a = 'z' and b = 'p'"), 1)]
        if name == "l2 laplace":
            keep = keep[1:2]
        made = a_release(MECHANISMS[name], keep=keep)
        totals = {key: total for _, key, total in made.kept_rows}
        assert totals["a=x"] == 70000000004
        assert totals["a=z"] == 43
        if len(keep) > 1:
            assert totals == {
                "total": int(COUNTS.sum()),
                "a=x": 70000000004,
                "a=y": 132,
                "a=z": 43,
                "subset(b in [p, q])": int(COUNTS.reshape(3, 3)[:, :2].sum()),
            }
            assert made.card.kept.totals == 5
        assert made.table.counts.dtype == np.int64
        assert not made.table.counts.flags.writeable

    def test_nested_geography(self) -> None:
        universe = hf.Universe.listed({"state": list("AAABBC"), "county": list("123124")})
        table = hf.Table(universe, np.array([5, 0, 2, 9, 9, 4]))
        made = hf.release(table, [hf.margin("state")], MECHANISMS["laplace"], ledger=None, allow_exposed=1)
        assert [total for _, _, total in made.kept_rows] == [7, 18, 4]
        assert made.table.counts[5] == 4  # a state of one county
        assert made.card.exposed.names == ("state=C, county=4",)
        assert made.private


class TestSuppression:
    def test_only_cells_that_the_totals_fix_are_published(self) -> None:
        made = a_release(MECHANISMS["suppression"], keep=[hf.margin("a"), hf.subset("a = 'x' and b = 'p'")])
        assert made.table.frame.column("count").to_pylist() == [70000000001] + [None] * 8
        assert made.table.published.tolist() == [True] + [False] * 8
        assert made.private
        assert [row[2] for row in made.kept_rows] == [70000000004, 132, 43, 70000000001]

    def test_twins_publish_the_same(self) -> None:
        first, second = (a_release(MECHANISMS["suppression"], counts) for counts in (COUNTS, TWIN))
        assert first.table.frame.equals(second.table.frame)
        assert first.kept_rows == second.kept_rows


class TestTwins:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_all_but_the_released_counts_is_the_same(self, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """[theory T54]: two tables with equal kept totals and one test key."""
        folders = [a_release(MECHANISMS[name], counts).save(tmp_path / f"{i}") for i, counts in enumerate((COUNTS, TWIN))]
        assert capfd.readouterr() == ("", "")
        first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
        assert sorted(first) == sorted(second)
        same = {file for file in first if first[file] == second[file]}
        if name == "suppression":
            assert same == set(first)
            return
        assert same == {"kept.csv", "exposed.csv", "statement.html"}
        assert with_the_numbers_of(*folders) == second["report.html"]
        cards = [Card.from_json(files["card.json"].decode()).to_dict() for files in (first, second)]
        for card in cards:
            for file in ("table.csv", "table.parquet", "report.html"):  # other numbers may have another length
                assert card["files"][file].pop("sha256")
                assert card["files"][file].pop("bytes")
        assert cards[0] == cards[1]

    def test_the_card_is_known_before_the_draw(self) -> None:
        """A card made from the twin's plan and a table of zeros: no count enters but the kept totals."""
        made = a_release()
        plan = hf.plan(hf.Table(UNIVERSE, TWIN, name="t"), KEEP, MECHANISMS["laplace"], published_totals=np.concatenate(made.totals))
        zeros = PublishedTable(UNIVERSE, np.zeros(9, dtype=np.int64), "count", None, None, plan.exposure.cells)
        assert made.card == replace(made, plan=plan, table=zeros, exposure=plan.exposure).card

    def test_what_is_shown_of_plan_and_table_is_the_same(self) -> None:
        one, other = (hf.Table(UNIVERSE, counts, name="t") for counts in (COUNTS, TWIN))
        assert notebook_page(one) == notebook_page(other)
        assert repr(one) == repr(other)
        plans = [hf.plan(table, KEEP, MECHANISMS["laplace"]) for table in (one, other)]
        assert notebook_page(plans[0]) == notebook_page(plans[1])
        assert (repr(plans[0]), str(plans[0])) == (repr(plans[1]), str(plans[1]))
        assert plans[0].to_fields() == plans[1].to_fields()
        assert pickle.dumps(plans[0]) == pickle.dumps(plans[1])
        releases = [a_release(counts=counts) for counts in (COUNTS, TWIN)]
        one_page, other_page = (notebook_page(release).partition("</table>")[0] for release in releases)
        assert one_page == other_page, "all but the rows, which hold released counts"


class TestFrozen:
    def test_a_release_is_never_changed(self) -> None:
        made = a_release()
        for name in ("plan", "table", "totals", "exposure", "order", "private", "booking"):
            with pytest.raises(FrozenInstanceError):
                setattr(made, name, None)
        with pytest.raises(ValueError, match="read-only"):
            made.table.counts[0] = 5

    def test_what_the_totals_expose_is_known_after_the_draw(self) -> None:
        """An empty row, its total kept: the plan does not know it, the release lists its cells, and the plan is left as it is."""
        counts = COUNTS * np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
        made = a_release(counts=counts)
        assert made.plan.exposure.cells_exposed_by_totals.tolist() == []
        assert made.exposure.cells_exposed_by_totals.tolist() == [0, 1, 2]
        assert made.card.exposed.names == ("a=x, b=p", "a=x, b=q", "a=x, b=r")
        assert made.plan.to_fields()["exposed"]["cells"] == 0

    def test_the_card_names_what_was_drawn(self) -> None:
        made = a_release()
        assert made.card.mechanism.identity == made.plan.drawing.channel.identity
        again = a_release(MECHANISMS["laplace"], TWIN)
        other = a_release(hf.GeneralizedLaplace(epsilon="1/5", per="distance"))
        assert again.card.mechanism.identity == made.card.mechanism.identity != other.card.mechanism.identity


class TestTestKeys:
    def test_the_card_and_the_pages_say_that_nothing_is_private(self, tmp_path: Path) -> None:
        folder = a_release().save(tmp_path / "out")
        assert Card.from_json((folder / "card.json").read_text()).release.test_key is True
        for page in ("statement.html", "report.html"):
            assert "not private" in (folder / page).read_text().lower()
        assert "NOT PRIVATE" in str(hf.verify(folder))

    def test_a_fresh_key_says_nothing_of_the_kind(self, tmp_path: Path) -> None:
        folder = hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, MECHANISMS["laplace"], ledger=None).save(tmp_path / "out")
        assert Card.from_json((folder / "card.json").read_text()).release.test_key is False
        for page in ("statement.html", "report.html"):
            assert "not private" not in (folder / page).read_text().lower()

    def test_fresh_keys_differ(self) -> None:
        table = hf.Table(UNIVERSE, COUNTS)
        runs = [hf.release(table, KEEP, MECHANISMS["gaussian"], ledger=None).table.counts.tolist() for _ in range(2)]
        assert runs[0] != runs[1]  # equal with probability below 10^-5 for six free cells of standard deviation 7


class TestPublishedTable:
    def test_columns_have_names_of_their_own(self) -> None:
        universe = hf.Universe.product({"standard_deviation": ["1", "2"], "n_standard_deviation": ["1", "2"]})
        made = hf.release(hf.Table(universe, np.arange(4), count="n"), [], MECHANISMS["laplace"], ledger=None)
        assert made.table.frame.column_names == ["standard_deviation", "n_standard_deviation", "n", "n_n_standard_deviation", "exposed"]

    def test_the_frame(self) -> None:
        made = a_release()
        assert made.table.frame.column_names == ["a", "b", "count", "standard_deviation", "exposed"]
        assert made.table.frame.column("count").to_pylist() == made.table.counts.tolist()
        assert made.table.standard_deviations is not None
        assert len(set(made.table.standard_deviations)) == 1


class TestBadInput:
    @pytest.mark.parametrize("name", ["", "a b", ".hidden", "a/b", "x" * 101, "é", 5, "a\n"])
    def test_identifiers(self, name: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"release identifier"):
            hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, MECHANISMS["laplace"], release_id=name, ledger=None)

    @pytest.mark.parametrize("date", ["", "today", "2030-02-30", "2030-4-1", "20300401", 2030, "2030-01-01\n"])
    def test_dates_are_checked_before_the_draw(self, date: Any) -> None:
        with hf.NoiseKey.for_tests("dates") as key:
            with pytest.raises(InvalidParameter, match=r"2030-04-01"):
                hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, MECHANISMS["laplace"], key=key, date=date)
            assert (
                hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, MECHANISMS["laplace"], key=key, date="2030-02-28").about.date == "2030-02-28"
            )

    @pytest.mark.parametrize("table", [UNIVERSE, COUNTS, None])
    def test_what_is_no_table(self, table: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"\(table, keep, mechanism\).*a Table"):
            hf.release(table, KEEP, MECHANISMS["laplace"], ledger=None)

    @pytest.mark.parametrize("key", ["secret", 5, b"x" * 32])
    def test_what_is_no_key(self, key: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"key is a NoiseKey") as caught:
            hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, MECHANISMS["laplace"], key=key)
        assert "secret" not in str(caught.value)

    def test_a_plan_for_another_table(self) -> None:
        other = hf.Table(hf.Universe.product({"a": ["x", "y"]}), np.array([1, 2]))
        with pytest.raises(InvalidParameter, match=r"plan was made for another table"):
            draw(hf.plan(UNIVERSE, KEEP, MECHANISMS["laplace"]), other, Order())
