"""The made-up population: areas nest, integers add up, rows repeat, shapes are those of a census."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import compute, csv, parquet

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.research.synth import _CODES, CHUNK, LEVELS, Population, _children, _divide, cells_for, synthesize

WIDTHS = {"state": 2, "county": 5, "tract": 11, "block": 15}
COLUMNS = ["person_id", "household_id", *LEVELS, "age", "sex", "gq"]


@pytest.fixture(scope="module")
def town() -> Population:
    return synthesize(3_000, seed="town")


@pytest.fixture(scope="module")
def country() -> Population:
    """Two streams' worth of people, so that areas cross from one batch into the next."""
    return synthesize(CHUNK + 500_000, seed=5)


@pytest.fixture(scope="module")
def persons(country: Population) -> pa.Table:
    return country.records().read_all().unify_dictionaries()


def codes_of(table: pa.Table, *columns: str) -> list[tuple[str, ...]]:
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def numbers(column: pa.ChunkedArray) -> Any:
    return column.combine_chunks().to_numpy(zero_copy_only=False)


def first_of_each(column: pa.ChunkedArray, width: int) -> Any:
    return numbers(column.take(np.arange(0, len(column), width))).astype(str)


def rows_digest(table: pa.Table) -> str:
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    return hashlib.sha256("\n".join(",".join(map(str, row)) for row in rows).encode()).hexdigest()


@pytest.mark.parametrize("arguments", [{}, {"states": 99}, {"states": 1}, {"blocks": 1}, {"states": 7, "blocks": 7}, {"blocks": 20_000}])
def test_each_area_lies_in_one_area_of_every_level_above(arguments: dict[str, int]) -> None:
    population = synthesize(40_000, **arguments)
    table = population.counts("block")
    for level, area in arguments.items():
        assert population.areas(level.removesuffix("s")) == area
    for level in LEVELS:
        found = set(table[level].to_pylist())
        assert len(found) == population.areas(level)
        assert {len(code) for code in found} == {WIDTHS[level]}
        assert all(code.isdecimal() for code in found)
    for above, level in itertools.pairwise(LEVELS):
        assert all(code.startswith(parent) for parent, code in codes_of(table, above, level))
    assert table["block"].to_pylist() == sorted(set(table["block"].to_pylist()))


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=30), st.integers(0, 200), st.integers(1, 20))
def test_children_fit_into_the_codes_there_are(weights: list[int], more: int, room: int) -> None:
    total = min(len(weights) + more, len(weights) * room)
    children = _children(total, np.array(weights), room)
    assert children.sum() == total
    assert children.min() >= 1
    assert children.max() <= room


@given(
    st.lists(
        st.tuples(st.integers(0, 10**10), st.lists(st.integers(0, 2**20) | st.integers(0, 2**40), min_size=1, max_size=8).filter(any)),
        min_size=1,
        max_size=8,
    )
)
def test_parts_add_up_to_the_total_of_each_parent(families: list[tuple[int, list[int]]]) -> None:
    parent = np.repeat(np.arange(len(families)), [len(weights) for _, weights in families])
    parts = _divide(np.array([total for total, _ in families]), np.concatenate([weights for _, weights in families]), parent)
    assert parts.min() >= 0
    for number, (total, weights) in enumerate(families):
        own = parts[parent == number]
        assert own.sum() == total
        assert all(part == 0 for part, weight in zip(own, weights, strict=True) if weight == 0)
        if max(sum(weights) for _, weights in families) < 2**31:
            assert all(abs(part - total * weight / sum(weights)) <= 1.001 for part, weight in zip(own, weights, strict=True))


@pytest.mark.parametrize("by", [(), ("sex",), ("gq", "age_group"), ("voting_age", "sex", "gq")])
def test_totals_agree_across_levels(country: Population, by: tuple[str, ...]) -> None:
    width = int(np.prod([len(_CODES[column]) for column in by], dtype=int))
    for above, level in itertools.pairwise(LEVELS):
        high, low = country.counts(above, by), country.counts(level, by)
        assert len(low) == country.areas(level) * width
        codes, parent = np.unique(first_of_each(low[above], width), return_inverse=True)
        summed = np.zeros((len(codes), width), dtype=np.int64)
        np.add.at(summed, parent, low["count"].to_numpy().reshape(-1, width))
        assert codes.tolist() == first_of_each(high[above], width).tolist()
        assert (summed.ravel() == high["count"].to_numpy()).all()
        assert summed.sum() == country.people


@pytest.mark.ordinary("state", "county", "tract", "by1-block")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("by", [("sex", "age"), ("gq",), ()])
def test_counts_are_the_counted_records(country: Population, persons: pa.Table, level: str, by: tuple[str, ...]) -> None:
    cells = [level, *by]
    counted = persons.group_by(cells).aggregate([([], "count_all")]).rename_columns([*cells, "count"])
    table = country.counts(level, by).select([*cells, "count"])
    table = table.filter(compute.greater(table["count"], 0))
    as_text = pa.schema([*((name, pa.string()) for name in cells), ("count", pa.int64())])
    order = [(name, "ascending") for name in cells]
    assert table.cast(as_text).sort_by(order).equals(counted.cast(as_text).sort_by(order))


def test_every_combination_has_one_row_in_the_order_of_the_codes(town: Population) -> None:
    table = town.counts("tract", by=("sex", "gq"))
    tracts = list(dict.fromkeys(table["tract"].to_pylist()))
    assert codes_of(table, "tract", "sex", "gq") == list(itertools.product(tracts, "FM", "01234567"))
    assert table.column_names == ["state", "county", "tract", "sex", "gq", "count"]
    assert town.counts("county", by="sex").equals(town.counts("county", by=["sex"]))


def test_derived_columns_follow_the_age(town: Population) -> None:
    ages = town.counts("state", by=("age",)).group_by("age").aggregate([("count", "sum")])
    for column, ends in (("age_group", range(5, 95, 5)), ("voting_age", [18])):
        found = town.counts("state", by=(column,)).group_by(column).aggregate([("count", "sum")])
        bins = Counter[int]()
        for age, count in codes_of(ages, "age", "count_sum"):
            bins[sum(int(str(age).rstrip("+")) >= end for end in ends)] += int(count)
        assert found["count_sum"].to_pylist() == [bins[place] for place in range(len(_CODES[column]))]


def test_records_have_the_promised_columns_and_codes(country: Population, persons: pa.Table) -> None:
    assert persons.column_names == COLUMNS
    assert len(persons) == country.people
    assert len(list(country.records())) == 2
    assert numbers(persons["person_id"]).tolist() == list(range(country.people))
    for column in ("age", "sex", "gq"):
        assert set(compute.unique(persons[column].cast(pa.string())).to_pylist()) == set(_CODES[column])


def test_a_household_lives_in_one_block_and_is_named_after_its_first_member(persons: pa.Table) -> None:
    household, person = numbers(persons["household_id"]), numbers(persons["person_id"])
    blocks = persons["block"].combine_chunks().indices.to_numpy()
    gq = numbers(persons["gq"].cast(pa.string())).astype(int)
    assert (np.diff(household) >= 0).all()
    assert (household[household] == household).all()
    assert (blocks == blocks[household]).all()
    assert (gq == gq[household]).all()
    assert (household[gq > 0] == person[gq > 0]).all()


def test_households_and_ages_are_plausible(persons: pa.Table) -> None:
    gq = numbers(persons["gq"].cast(pa.string())).astype(int)
    age = np.char.rstrip(numbers(persons["age"].cast(pa.string())).astype(str), "+").astype(int)
    sizes = np.bincount(np.unique(numbers(persons["household_id"])[gq == 0], return_counts=True)[1])
    assert 2.5 < (sizes * np.arange(len(sizes))).sum() / sizes.sum() < 2.7
    assert len(sizes) - 1 >= 7
    assert sizes[1:].min() > 0
    assert 0.20 < (age < 18).mean() < 0.30
    assert 0.10 < (age >= 65).mean() < 0.22
    heads = numbers(persons["household_id"]) == numbers(persons["person_id"])
    assert age[heads & (gq == 0)].min() >= 18
    assert age[gq == 3].min() >= 62
    assert age[gq == 5].max() <= 25
    assert age[gq == 2].max() < 21
    assert 0.47 < compute.mean(compute.equal(persons["sex"].cast(pa.string()), "M")).as_py() < 0.53


@pytest.mark.parametrize("seed", range(5))
def test_sizes_are_heavy_tailed_and_group_quarters_rare(seed: int) -> None:
    population = synthesize(2_000_000, seed)
    counties = population.counts("county")["count"].to_numpy()
    assert counties.max() > 5 * np.median(counties)
    assert counties.mean() > 1.5 * np.median(counties)
    assert 0.2 < (population.block_people == 0).mean() < 0.4
    in_group_quarters = population.block_gq_people.sum() / population.people
    assert 0.01 < in_group_quarters < 0.05
    assert (population.block_gq_people > 0).mean() < 0.05
    assert (population.block_gq_people <= population.block_people).all()


@pytest.mark.parametrize("people", [0, 1, 2, 39, 40, 41, 999, 12_345])
def test_exactly_so_many_people(people: int) -> None:
    population = synthesize(people)
    assert population.people == people
    assert sum(batch.num_rows for batch in population.records()) == people
    for level in LEVELS:
        table = population.counts(level, by=("sex", "voting_age"))
        assert sum(table["count"].to_pylist()) == people
        assert len(table) == 4 * population.areas(level)


def test_nobody_at_all_still_has_a_geography_and_columns() -> None:
    empty = synthesize(0, states=3, blocks=50)
    assert empty.records().read_all().column_names == COLUMNS
    assert [empty.areas(level) for level in ("state", "block")] == [3, 50]
    assert empty.counts("block", by="sex")["count"].to_pylist() == [0] * 100


def test_cells_and_memory_grow_linearly() -> None:
    per_cell = []
    for cells in (1_000, 10_000, 100_000, 1_000_000):
        table = cells_for(cells)
        assert cells <= len(table) < cells + 38
        assert table.column_names == [*LEVELS, "sex", "age_group", "count"]
        per_cell.append(table.nbytes / len(table))
    assert max(per_cell) < 30
    assert len(cells_for(1)) == 38
    assert len(cells_for(77, by=())) == 77


def test_people_grow_with_their_areas() -> None:
    sizes = [tuple(synthesize(people).areas(level) for level in LEVELS) for people in (10**4, 10**5, 10**6)]
    assert sizes == [(3, 15, 30, 250), (7, 50, 192, 2_500), (12, 158, 1_042, 25_000)]


def test_rows_are_the_same_on_every_machine_and_in_every_version(town: Population, country: Population) -> None:
    """Golden: the rows of FORMAT "holdfast synth 1". Another digest needs another FORMAT."""
    assert rows_digest(town.records().read_all()) == "2898f255b232288745ed689a34151143a67dc077c64affdf861c565def2711c1"
    assert rows_digest(town.counts("block", by=("age_group", "sex"))) == "8e2b6dcc531b48a88c66c800d7a602e002f4da8594b569f79b0afd875dcd1285"
    assert (
        rows_digest(country.counts("state", by=("gq", "age", "sex"))) == "b964e3e4be57c476464ecc7de0d90fbf64398b1d195c93a6d52dd5ef0d39558d"
    )


def test_seeds_and_sizes_give_different_people_and_equal_ones_the_same(town: Population) -> None:
    digests = {rows_digest(synthesize(3_000, seed).records().read_all()) for seed in (1, 2, -1, "", "a", "town", "1 ")}
    assert len(digests) == 7
    assert rows_digest(town.records().read_all()) in digests
    assert rows_digest(synthesize(3_000, 1).counts()) == rows_digest(synthesize(np.int64(3_000), "1").counts())  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_hold_the_same_rows_and_codes_as_text(town: Population, tmp_path: Path, suffix: str) -> None:
    for what, table in (("records", town.records().read_all()), ("counts", town.counts("tract", ("sex",)))):
        path = town.save(tmp_path / f"{what}{suffix}", what, level="tract", by=("sex",))
        if suffix == ".csv":
            as_text = csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS[2:], pa.string()))
            found = csv.read_csv(path, convert_options=as_text)
        else:
            found = parquet.read_table(path)
        assert found.column_names == table.column_names
        assert rows_digest(found) == rows_digest(table)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"counts{suffix}", f"records{suffix}"]


def test_origins_are_counted_beside_the_rest_and_change_nothing(town: Population) -> None:
    """Golden, as the rows above; every row's other codes are those without origins."""
    by = ("voting_age", "hispanic", "race")
    found = town.counts("tract", by=by)
    assert rows_digest(found) == "7ee4875e072c213d2fa536490477a2a8ab44ef30cca6eec2201d80d492170713"
    assert len(found) == 16 * 2 * 2 * 63
    counts = found["count"].to_numpy().reshape(16, 2, 2, 63)
    assert np.array_equal(counts.sum(axis=(2, 3)).ravel(), town.counts("tract", by=("voting_age",))["count"].to_numpy())
    assert np.array_equal(counts.sum(axis=1).ravel(), town.counts("tract", by=("hispanic", "race"))["count"].to_numpy())
    assert 400 < counts[:, :, 1].sum() < 750  # of 3,000
    alone = [k for k, code in enumerate(found["race"].unique().to_pylist()) if code.count("1") == 1]
    assert 2_600 < counts[..., alone].sum() < 2_950


def test_files_of_equal_arguments_have_equal_bytes(town: Population, tmp_path: Path) -> None:
    one, two = town.save(tmp_path / "1.csv", "records"), synthesize(3_000, "town").save(str(tmp_path / "2.csv"), "records")
    assert one.read_bytes() == two.read_bytes()
    assert one.read_text().splitlines()[0] == ",".join(COLUMNS)


def test_an_existing_file_stays_and_a_failure_leaves_nothing(town: Population, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.csv").write_text("mine")
    with pytest.raises(InvalidParameter, match=r"'old\.csv'.*choose another name"):
        town.save(tmp_path / "old.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidParameter, match="not overwritten"):
        town.save(tmp_path / "dangling.csv")
    with pytest.raises(InvalidParameter, match="folder"):
        town.save(tmp_path / "none" / "new.csv")
    with pytest.raises(InvalidParameter, match="end in"):
        town.save(tmp_path / "new.xlsx")
    with pytest.raises(InvalidParameter, match="'people'"):
        town.save(tmp_path / "new.csv", "people")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Population, "_batch", broken)
    with pytest.raises(OSError, match="disk full"):
        town.save(tmp_path / "new.parquet", "records")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling.csv", "old.csv"]
    assert (tmp_path / "old.csv").read_text() == "mine"


@pytest.mark.parametrize("people", [-1, True, 1.0, "5", None])
def test_people_must_be_a_whole_number(people: int) -> None:
    with pytest.raises(InvalidParameter, match=r"people must be .* Got .*\. Write "):
        synthesize(people)


@pytest.mark.parametrize("exponent", [11, 400, 5000])
def test_absurd_sizes_are_refused_at_once(exponent: int) -> None:
    people = 10**exponent
    with pytest.raises(RequestTooLarge, match=r"people must be from 0 to 10,000,000,000\. Got .*\. Write "):
        synthesize(people)
    with pytest.raises(RequestTooLarge, match="n_cells"):
        cells_for(people)


@pytest.mark.parametrize(
    "arguments", [{"states": 0}, {"states": 100}, {"blocks": 0}, {"states": 5, "blocks": 4}, {"blocks": 10**9}, {"states": 2.0}]
)
def test_impossible_numbers_of_areas_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter, match=r"(states|blocks) must be .* Got "):
        synthesize(100, **arguments)


@pytest.mark.parametrize("seed", [1.0, None, True, b"x", 1 << 5000])
def test_other_seeds_are_refused(seed: int) -> None:
    with pytest.raises(InvalidParameter, match=r"seed must be .* Got .* Write "):
        synthesize(1, seed)


def test_unknown_levels_and_columns_are_refused(town: Population) -> None:
    with pytest.raises(InvalidParameter, match=r"one of state, county, tract, block\. Got 'village'\. Write"):
        town.counts("village")
    with pytest.raises(InvalidParameter, match="Got 'village'"):
        town.areas("village")
    with pytest.raises(InvalidParameter, match=r"out of age, sex, gq, age_group, voting_age, hispanic, race\. Got 'income'\. "):
        town.counts("block", by=("income",))
    with pytest.raises(InvalidParameter, match="different columns"):
        cells_for(10, by=("sex", "sex"))
    with pytest.raises(RequestTooLarge, match="the number of cells"):
        synthesize(10_000_000, blocks=2_000_000).counts("block", by=("age", "sex", "gq"))


def test_the_summary_gives_sizes(town: Population) -> None:
    assert repr(town) == "<Population of 3,000 made-up people, seed 'town'; state: 2, county: 8, tract: 16, block: 75>"
