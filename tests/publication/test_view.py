"""Publication views: nearest parts against full enumeration, 50 random tables, the tracts, and biases against releases of known truths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

import holdfast as hf
from holdfast.display import watching
from holdfast.errors import InvalidParameter, RequestTooLarge, VerificationFailed
from holdfast.publication import view as module
from holdfast.publication.view import BASES, ViewMaker, class_errors, level_partitions
from holdfast.testing.fit import ALPHA, check_p_value, two_sample_p_value
from holdfast.views import crossing as view_crossing
from holdfast.views.crossing import crossing_block
from holdfast.views.tree import Step, nearest_multiple, nearest_parts
from holdfast.wording.view import bias_rows
from tests.examples import examples

Ints = NDArray[np.int64]


def compositions(total: int, parts: int, least: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(least, total - least * (parts - 1) + 1):
        for rest in compositions(total - first, parts - 1, least):
            yield (first, *rest)


class TestNearestParts:
    """[theory T150]: against every way to divide a sum."""

    @given(
        st.lists(st.lists(st.integers(-4, 6), min_size=1, max_size=3), min_size=1, max_size=3),
        st.lists(st.integers(0, 6), min_size=3, max_size=3),
        st.sampled_from(BASES),
        st.booleans(),
    )
    @settings(max_examples=examples(80), deadline=None)
    def test_no_other_parts_are_nearer(self, nodes: list[list[int]], units: list[int], base: int, nonnegative: bool) -> None:
        sizes = [len(parts) for parts in nodes]
        step = Step(np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(nodes)), sizes))
        given_units = np.array(units[: len(nodes)])
        found = nearest_parts(np.concatenate(nodes).astype(np.int64), step, given_units, base, nonnegative=nonnegative)
        for parts, wanted, own in zip(nodes, given_units.tolist(), np.split(found, step.starts[1:]), strict=True):
            assert own.sum() == wanted
            assert not nonnegative or own.min() >= 0
            everything = compositions(wanted, len(parts), 0 if nonnegative else -12)
            least = min(sum((base * u - c) ** 2 for u, c in zip(other, parts, strict=True)) for other in everything)
            assert sum((base * int(u) - c) ** 2 for u, c in zip(own, parts, strict=True)) == least

    def test_what_is_not_negative_and_adds_up_stays(self) -> None:
        values = np.array([3, 0, 7, 2**40])
        step = Step(np.array([0]), np.zeros(4, dtype=np.int64))
        assert nearest_parts(values, step, values.sum(keepdims=True), 1, nonnegative=True).tolist() == values.tolist()

    def test_ties_go_to_the_parts_that_stand_first(self) -> None:
        step = Step(np.array([0]), np.zeros(4, dtype=np.int64))
        assert nearest_parts(np.array([5, 5, 5, -2]), step, np.array([13]), 1, nonnegative=True).tolist() == [5, 4, 4, 0]

    @pytest.mark.parametrize(("value", "near"), [(-3, 0), (4, 0), (5, 0), (6, 10), (15, 20), (25, 20), (10**18 + 6, 10**18 + 10)])
    def test_a_sum_that_is_not_kept_goes_to_the_nearest_multiple(self, value: int, near: int) -> None:
        assert nearest_multiple(value, 10, nonnegative=True) == near


ROWS_AND_COLUMNS = csr_array(np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]]))


class TestCrossing:
    """[theory T153]: against every table of two rows and three columns, as if they were no network."""

    @given(
        st.lists(st.integers(0, 3), min_size=6, max_size=6),
        st.lists(st.integers(-4, 4), min_size=2, max_size=2),
        st.sampled_from([1, 3, 5]),
    )
    @settings(max_examples=examples(40), deadline=None)
    def test_no_table_costs_less(self, truth: list[int], moves: list[int], base: int) -> None:
        a, b = moves
        values = base * np.array(truth) + np.array([a, b, -a - b, -a, -b, a + b])
        found = crossing_block(ROWS_AND_COLUMNS, values, base, nonnegative=True)
        assert (ROWS_AND_COLUMNS @ found == ROWS_AND_COLUMNS @ values).all()
        assert found.min() >= 0
        assert not (found % base).any()
        others = [other for other in tables_of(values, base) if min(other) >= 0]
        assert cost(found.tolist(), values, base) == min(cost(other, values, base) for other in others)

    def test_where_corners_are_no_whole_numbers_they_are_searched_for(self) -> None:
        # Cells are the edges of two triangles and of a bridge between them, totals are over the edges at a corner: the only move is
        # (1, -1, 1, -2, 1, -1, 1). The linear program would go half of it, to a bridge of 0.
        rows = np.zeros((6, 7), dtype=np.int64)
        for edge, ends in enumerate([(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 5), (5, 3)]):
            rows[list(ends), edge] = 1
        assert crossing_block(csr_array(rows), np.array([3, 3, 3, -1, 3, 3, 3]), 1, nonnegative=True).tolist() == [2, 4, 2, 1, 2, 4, 2]

    def test_totals_that_are_multiples_may_have_no_table_of_multiples(self) -> None:
        pairs = csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
        with pytest.raises(InvalidParameter, match=r"No table of multiples of 10 has the kept totals of this release\. Take base=1"):
            crossing_block(pairs, np.array([5, 5, 5]), 10, nonnegative=True)
        with pytest.raises(InvalidParameter, match="No table of multiples of 3"):
            crossing_block(pairs, np.array([3, 3, 4]), 3, nonnegative=True)

    def test_a_block_of_too_many_cells_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(view_crossing, "MOST_SEARCHED", 5)
        with pytest.raises(RequestTooLarge, match=r"in three ways or more over 6 cells.*keep two nested families"):
            crossing_block(ROWS_AND_COLUMNS, np.array([-1, 2, 2, 3, 3, 3]), 1, nonnegative=True)


def tables_of(values: Ints, base: int) -> Iterator[list[int]]:
    """Every table of multiples with these margins, of zero or more."""
    rows, columns = (values.reshape(2, 3).sum(axis=axis) // base for axis in (1, 0))
    for a, b in product(range(int(rows[0]) + 1), repeat=2):
        top = [a, b, int(rows[0]) - a - b]
        yield [base * u for u in (*top, *(int(c) - u for c, u in zip(columns, top, strict=True)))]


def cost(table: list[int], values: Ints, base: int) -> float:
    """Squares of distances, straight between 0, 1, 2, 4, 8, ... units from the start."""
    total = 0.0
    for number, value in zip(table, values.tolist(), strict=True):
        start = max((2 * value + base) // (2 * base), 0)
        steps, sign = abs(number // base - start), 1 if number // base > start else -1
        done = 0
        while done < steps:
            end = max(2 * done, 1)
            there, here = (base * (start + sign * at) - value for at in (end, done))
            total += (min(end, steps) - done) * (there**2 - here**2) / (end - done)
            done = end
    return total


def random_release(seed: int) -> tuple[hf.Table, Any]:
    """A table of one of five kinds, its counts multiples of 30, and a release of it with a test key."""
    random = np.random.default_rng(seed)
    kind = ("total", "nested", "margins", "areas", "free")[seed % 5]
    towns = [f"{county}{number}" for county in "ABC" for number in range(int(random.integers(2, 5)))]
    trees = {"town": hf.Hierarchy.from_prefixes(towns, [1], levels=["county", "town"])}
    universe = hf.Universe.product({"town": towns, "sex": ["F", "M"], "age": ["0", "18", "65"]}, hierarchies=trees)
    keep: dict[str, list[Any]] = {
        "total": [hf.total()],
        "nested": [hf.margin("county"), hf.margin("town"), hf.subset("age", codes=["0"], by=["town"])],
        "margins": [hf.margin("county"), hf.margin("town", "sex"), hf.margin("age")],
        "areas": [hf.margin("county", "sex"), hf.subset("age", codes=["18", "65"]), hf.subset("age", codes=["0", "18"])],
        "free": [hf.margin("sex")] if seed % 2 else [],
    }
    counts = 30 * random.poisson(0.7, len(universe))
    table = hf.Table(universe, counts)
    shares = {"county": "1/2", "town": {("sex", "age"): "1/2"}}
    levels = hf.GeneralizedGaussian(rho="1/100", levels=shares, per="distance") if kind == "total" and seed % 2 else None
    mechanism = levels or hf.GeneralizedGaussian(sigma_squared=int(random.integers(4, 900)))
    return table, hf.release(table, keep[kind], mechanism, key=hf.NoiseKey.for_tests(f"view {seed}"))


@pytest.mark.ordinary("1")  # 14 seeds, two or more of each kind
@pytest.mark.parametrize("seed", range(50))
def test_views_of_random_tables_keep_totals_add_up_and_are_not_negative(seed: int) -> None:
    table, release = random_release(seed)
    released = release.table.counts
    for base in (1, BASES[1 + seed % 3]):
        view = release.view(base=base)
        assert view.counts.dtype == np.int64
        assert view.counts.min() >= 0
        assert not (view.counts % base).any()
        for rows in release.plan.facts.kept.rows:
            assert np.array_equal(rows.totals(view.counts), rows.totals(table.counts))  # those of the true table
        if base == 1 and released.min() >= 0:
            assert np.array_equal(view.counts, released)
        again = release.view(base=base)
        assert np.array_equal(view.counts, again.counts)
    signed = release.view(nonnegative=False, base=3)
    assert np.abs(signed.counts - released).sum() <= np.abs(release.view(base=3).counts - released).sum()
    assert all(np.array_equal(rows.totals(signed.counts), rows.totals(table.counts)) for rows in release.plan.facts.kept.rows)


def test_sums_of_levels_are_the_released_ones_where_none_is_negative() -> None:
    """From the top down: what is cut off in a cell is taken from its own county, and no county total moves."""
    codes = [f"{county}{number:02}" for county in "AB" for number in range(20)]
    trees = {"town": hf.Hierarchy.from_prefixes(codes, [1], levels=["county", "town"])}
    universe = hf.Universe.product({"town": codes, "sex": ["F", "M"]}, hierarchies=trees)
    table = hf.Table(universe, np.arange(80) % 7)
    release = hf.release(table, [hf.total()], hf.GeneralizedGaussian(sigma_squared=9), key=hf.NoiseKey.for_tests("levels"))
    view, released = release.view(), release.table.counts
    assert view.levels == ("county", "town")
    county, town = (unit for _, unit in level_partitions(universe))
    assert released.min() < 0
    assert np.array_equal(np.bincount(county, view.counts), np.bincount(county, released))
    by_town = np.bincount(town, released)
    assert by_town.min() < 0  # a town is cut off too: then other towns of its county pay
    assert np.abs(np.bincount(town, view.counts) - np.maximum(by_town, 0)).max() <= 2


def test_levels_are_told_from_columns_and_hierarchies() -> None:
    codes = ["A1", "A2", "B1", "C"]
    uneven = hf.Hierarchy({"A": None, "A1": "A", "A2": "A", "B": None, "B1": "B", "C": None}, levels=["county", "town"])
    universe = hf.Universe.product({"town": codes, "sex": ["F", "M"], "age": ["0", "1"]}, hierarchies={"town": uneven})
    found = {", ".join(names): unit.reshape(4, 4).tolist() for names, unit in level_partitions(universe)}
    assert list(found) == ["county", "town", "town, sex"]
    assert [row[0] for row in found["county"]] == [0, 0, 1, 2]
    assert found["town, sex"] == [[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]]


def test_the_tracts(shared_data: Path) -> None:
    columns = ["state_fips", "county_fips", "tract_geoid"]
    table = hf.Table.from_counts(shared_data / "tract_pop_2010.csv", cells=columns, count="pop2010", public=True)
    release = hf.release(
        table, [hf.margin("state_fips")], hf.GeneralizedLaplace(epsilon="1/100", per="distance"), key=hf.NoiseKey.for_tests("tracts")
    )
    view = release.view()
    (states,) = release.plan.facts.kept.rows
    assert len(view) == 73_057
    assert release.table.counts.min() < 0 <= view.counts.min()
    assert np.array_equal(states.totals(view.counts), states.totals(table.counts))
    assert view.levels == ("state_fips", "state_fips, county_fips")


SMALL = hf.Universe.product({"town": list("abcdef"), "age": list("012345")})
TRUTH = np.array([0, 0, 1, 4, 9, 30] * 6)
NUMBER = 400


def agreement(base: int, mechanism: Any, made: Any, simulated_by: Any = None) -> list[tuple[str, float]]:
    """(size, p-value) of the hypothesis that errors by size class are of one law: as simulated from the published files of a release, and
    of real releases of the table that stood in for its truth, each drawn and made into a view by itself.
    """
    keep = [hf.margin("town")]
    first = hf.release(hf.Table(SMALL, TRUTH * base), keep, simulated_by or mechanism, key=hf.NoiseKey.for_tests("first"))
    truth = first.view().counts
    classes, simulated = class_errors(first.plan, ViewMaker(first.plan), truth, NUMBER, base, nonnegative=True)
    errors = []
    for number in range(NUMBER):
        release = hf.release(hf.Table(SMALL, truth), keep, mechanism, key=hf.NoiseKey.for_tests(f"known truth {number}"))
        errors.append(made(release, base) - truth)
    bounds = {"0": (0, 0), "1 to 9": (1, 9), "10 to 99": (10, 99), "100 to 499": (100, 499)}
    found = []
    for place, (names, size, units) in enumerate(classes):
        if names == ("cell",):
            inside = (truth >= bounds[size][0]) & (truth <= bounds[size][1])
            assert inside.sum() == units
            found.append((size, two_sample_p_value(simulated[:, place], np.array(errors)[:, inside].sum(axis=1))))
    return found


LAPLACE = hf.GeneralizedLaplace(epsilon="1/3", per="distance")


@pytest.mark.long
@pytest.mark.parametrize("base", [1, 5])
def test_biases_agree_with_releases_of_a_known_truth(base: int) -> None:
    found = agreement(base, LAPLACE, lambda release, base: release.view(base=base).counts)
    assert [size for size, _ in found] == ["0", "1 to 9", "10 to 99", *(["100 to 499"] if base == 5 else [])]
    for size, p_value in found:
        check_p_value(p_value, name=f"bias of views to the base of {base}, size {size}", n=2 * NUMBER, statistic=0.0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "simulated_by"),
    [
        (lambda release, _: np.maximum(release.table.counts, 0), None),  # cut off, and nobody pays
        (lambda release, base: release.view(base=base).counts, hf.GeneralizedLaplace(epsilon="1/6", per="distance")),
    ],
)
def test_another_view_or_law_would_be_seen(made: Any, simulated_by: Any) -> None:
    assert min(p_value for _, p_value in agreement(1, LAPLACE, made, simulated_by)) < ALPHA


def test_the_table_of_biases_is_the_mean_over_simulated_releases() -> None:
    release = hf.release(hf.Table(SMALL, TRUTH), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("bias"))
    view = release.view()
    classes, sums = class_errors(release.plan, ViewMaker(release.plan), view.counts, view.draws, 1, nonnegative=True)
    assert view.draws == module.MOST_DRAWS
    assert [((line.level,), line.size, line.units) for line in view.bias] == classes
    for line, own in zip(view.bias, (sums / [units for _, _, units in classes]).T, strict=True):
        assert line.bias == pytest.approx(own.mean(), rel=1e-5, abs=1e-12)
        assert line.standard_error == pytest.approx(own.std(ddof=1) / view.draws**0.5, rel=1e-5)
    smallest, *_, largest = (line for line in view.bias if line.level == "cell")
    assert smallest.size == "0"
    assert smallest.bias > 10 * smallest.standard_error  # small counts rise
    assert largest.bias < -10 * largest.standard_error  # and large ones pay
    towns = [line for line in view.bias if line.level == "town"]
    assert all(line.bias == line.standard_error == 0 for line in towns)  # kept totals have none


def test_biases_are_told_for_kept_margins_and_where_they_cross() -> None:
    keep = [hf.margin("town"), hf.margin("age")]
    wide = hf.Universe.product({"town": list("abc"), "sex": ["F", "M"], "age": ["0", "18"]})
    release = hf.release(
        hf.Table(wide, np.array([0, 0, 0, 40, 0, 0, 0, 40, 30, 0, 30, 0])),
        keep,
        hf.GeneralizedGaussian(sigma_squared=9),
        key=hf.NoiseKey.for_tests("told"),
    )
    steps: list[tuple[str, int, int]] = []
    with watching(lambda *told: steps.append(told)):
        lines = release.view().bias
    assert {line.level for line in lines} == {"town", "age", "town, age", "town, sex", "cell"}
    assert all(line.bias == line.standard_error == 0 for line in lines if line.level in ("town", "age"))
    assert any(line.bias > 10 * line.standard_error for line in lines if line.level == "town, age")
    assert {name for name, _, _ in steps} == {"Making counts for print", "Simulating the bias"}
    assert all(step[1] == step[2] for step in (steps[-1], next(own for own in reversed(steps) if own[0] == "Making counts for print")))


def test_how_far_totals_that_are_not_kept_moved_is_said() -> None:
    """Kept totals cross: a county loses its released total, although it had a share of the budget."""
    wide = hf.Universe.product({"county": list("abcdef"), "age": [str(age) for age in range(8)]})
    truth = np.where(np.arange(48) < 40, 0, 60)
    law = hf.GeneralizedGaussian(rho="1/100", levels={"county": {"total": "9/10", "detailed": "1/10"}})
    view = hf.release(hf.Table(wide, truth), [hf.margin("age")], law, key=hf.NoiseKey.for_tests("moved")).view()
    moved = np.abs((view.counts - view.released.counts).reshape(6, 8).sum(axis=1)).max()
    assert moved > 20
    assert f"a released one by up to {moved:,} (county): take these from the released table." in view.info.text
    tree = hf.release(hf.Table(wide, truth + 500), [hf.margin("county")], LAPLACE, key=hf.NoiseKey.for_tests("moved")).view()
    assert "Totals that are not kept" not in tree.info.text


def test_a_class_whose_mean_never_changes_has_no_bias_and_is_not_said_to_be_exact() -> None:
    """All cells under kept totals in one size class: their errors add up to zero in every draw, though each has some."""
    truth = np.full(36, 300)
    release = hf.release(hf.Table(SMALL, truth), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("even"))
    view = release.view()
    assert (view.counts != truth).any()
    (cells,) = (line for line in view.bias if line.level == "cell")
    assert (cells.units, cells.bias, cells.standard_error) == (36, 0, 0)
    assert ("cell", "100 to 499", "36", "none", "-") in bias_rows(view.info)


class TestWhatIsRefused:
    RELEASE = hf.release(hf.Table(SMALL, TRUTH), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("refused"))

    @pytest.mark.parametrize("base", [0, 2, 4, -1, 5.5, "5", True, None, 1.0, np.int64(1)])
    def test_bases(self, base: Any) -> None:
        with pytest.raises(InvalidParameter, match="base is one of 1, 3, 5, 10"):
            self.RELEASE.view(base=base)

    def test_a_sign_that_is_no_truth_value(self) -> None:
        with pytest.raises(InvalidParameter, match=r"nonnegative is True or False\. Got 1"):
            self.RELEASE.view(nonnegative=1)  # type: ignore[arg-type]

    def test_nothing_to_change(self) -> None:
        with pytest.raises(InvalidParameter, match="there is nothing to change: take the released counts"):
            self.RELEASE.view(nonnegative=False)

    def test_counts_that_sums_could_overflow(self) -> None:
        large = hf.release(hf.Table(SMALL, TRUTH + 2**56), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("large"))
        with pytest.raises(RequestTooLarge, match=r"Counts beyond 2\^60 in all have no view"):
            large.view()
        fewer = hf.release(hf.Table(SMALL, TRUTH + 2**54), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("large"))
        assert np.array_equal(fewer.view().counts, fewer.table.counts)

    def test_totals_that_are_no_multiples_are_named_with_what_can_be_done(self) -> None:
        with pytest.raises(InvalidParameter) as caught:
            self.RELEASE.view(base=5)
        assert str(caught.value) == (
            "Kept totals stay exact, and sums of multiples of 5 are multiples of 5; but 44 (town=a), 44 (town=b), 44 (town=c) and 3 more "
            "are no multiples of 5. What can be done: take a base of 1, which always fits; or round what you print of the view and say "
            "that it does not add up; or keep other totals in the next release."
        )
        assert caught.value.field == "base"
        release = hf.release(hf.Table(SMALL, 3 * TRUTH), [hf.total()], LAPLACE, key=hf.NoiseKey.for_tests("refused"))
        with pytest.raises(
            InvalidParameter, match=r"but 792 \(total.*\) is no multiple of 5\. What can be done: take a base that fits \(1, 3\)"
        ):
            release.view(base=5)

    def test_suppression_and_answers(self) -> None:
        made = hf.release(hf.Table(SMALL, TRUTH), [hf.margin("town")], hf.Suppression(), ledger=None)
        with pytest.raises(InvalidParameter, match="publishes no cells"):
            made.view()
        answered = hf.answer(
            [0.5, 0.25],
            keep=[],
            sensitivity="1",
            mechanism=hf.ProjectedLaplace(epsilon=1),
            step="1/16",
            on_grid=True,
            release_id="a",
            ledger=None,
        )
        with pytest.raises(InvalidParameter, match="a publication view is of counts"):
            answered.view()


def test_a_release_within_bounds_has_a_view_and_no_bias() -> None:
    mechanism = hf.Conditional(epsilon="1/2", lower=0, per="distance")
    release = hf.release(hf.Table(SMALL, 5 * TRUTH), [hf.margin("town")], mechanism, key=hf.NoiseKey.for_tests("bounds"))
    view = release.view(base=5)
    assert view.draws == 0
    assert view.bias == ()
    assert "depends on the true counts" in view.to_fields()["bias"]["text"]
    assert np.array_equal(release.view().counts, release.table.counts)  # they are not negative


def test_a_reader_makes_the_same_view_of_the_folder(tmp_path: Path) -> None:
    release = hf.release(hf.Table(SMALL, TRUTH), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("folder"))
    release.save(tmp_path / "out")
    ours, theirs = release.view(), hf.load(tmp_path / "out").view()
    assert np.array_equal(ours.counts, theirs.counts)
    assert ours.info == theirs.info
    with open(tmp_path / "out" / "table.csv", "a", encoding="utf-8") as file:
        file.write("a,0,1,1,false\n")
    with pytest.raises(VerificationFailed, match=r"table\.csv has"):
        hf.load(tmp_path / "out")


def test_a_folder_with_a_view_of_levels_is_verified(tmp_path: Path) -> None:
    """The code trees were not on the card: a reader's view had no county, and `verify` refused the publisher's."""
    towns = ["A1", "A2", "B1", "B2", "B3"]
    tree = hf.Hierarchy.from_prefixes(towns, [1], levels=["county", "town"])
    wide = hf.Universe.product({"town": towns, "sex": ["F", "M"]}, hierarchies={"town": tree})
    table = hf.Table(wide, np.arange(10) % 4)
    release = hf.release(
        table, [hf.margin("sex")], hf.GeneralizedGaussian(sigma_squared=9), key=hf.NoiseKey.for_tests("tree"), release_id="t"
    )
    folder = release.save(tmp_path / "out", view_base=1)
    assert "publication view" in hf.verify(folder).recomputed
    assert hf.load(folder).view().info == release.view().info


def test_files_are_labelled(tmp_path: Path) -> None:
    release = hf.release(hf.Table(SMALL, 5 * TRUTH), [hf.margin("town")], LAPLACE, key=hf.NoiseKey.for_tests("files"))
    view = release.view(base=5)
    table, beside = view.save(tmp_path / "print.csv")
    assert (table.name, beside.name) == ("print.csv", "print.json")
    head, first = table.read_text().splitlines()[:2]
    assert head == '"town","age","count_view_base_5"'  # no column of it has the name of the released counts
    assert first == f'"a","0",{view.counts[0]}'
    assert "These are not the released counts, and they are biased" in beside.read_text()
    with pytest.raises(InvalidParameter, match=r"'print\.json' exists already"):
        view.save(tmp_path / "print.parquet")
    (tmp_path / "print.json").unlink()
    with pytest.raises(InvalidParameter, match=r"'print\.csv' exists already"):
        view.save(tmp_path / "print.csv")
    assert not (tmp_path / "print.json").exists()
    with pytest.raises(InvalidParameter, match=r"The folder for 'v\.csv' does not exist"):
        view.save(tmp_path / "none" / "v.csv")
    assert repr(view) == "PublicationView(36 cells, non-negative, base 5; biased, not the released counts)"


@pytest.mark.long
def test_the_biases_on_the_page_are_those_of_the_tracts(shared_data: Path) -> None:
    """From the published files, and from the true table: docs/publication-view.md has both."""
    columns = ["state_fips", "county_fips", "tract_geoid"]
    table = hf.Table.from_counts(shared_data / "tract_pop_2010.csv", cells=columns, count="pop2010", public=True)
    release = hf.release(
        table, [hf.margin("state_fips")], hf.GeneralizedLaplace(epsilon="1/100", per="distance"), key=hf.NoiseKey.for_tests("tracts")
    )
    view = release.view()
    classes, sums = class_errors(release.plan, ViewMaker(release.plan), table.counts, view.draws, 1, nonnegative=True)
    true = {size: mean / units for (names, size, units), mean in zip(classes, sums.mean(axis=0), strict=True) if names == ("cell",)}
    said = {line.size: line for line in view.bias if line.level == "cell"}
    page = (Path(__file__).parents[2] / "docs" / "publication-view.md").read_text(encoding="utf-8")
    for size, line in said.items():
        digits = 2 if size == "500 or more" else 1
        assert f"| {size} | {line.bias:+.{digits}f} | {true[size]:+.{digits}f} |" in page
    assert f"{said['0'].units} instead of {int((table.counts == 0).sum())} here" in page
