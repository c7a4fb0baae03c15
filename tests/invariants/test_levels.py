"""Levels of hierarchies by name: the sums are those of the units, on cards they are written in full, and what is no level is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidConstraint, InvalidHierarchy, InvalidRun
from holdfast.invariants import compile_rows
from holdfast.invariants.constraints import constraint_of, definition
from holdfast.invariants.rows import RowFamily
from holdfast.runfiles.runfile import load_run
from holdfast.tables import Hierarchy, Table, Universe

REGIONS = {"01": "north", "02": "north", "03": "south"}
AGES = {"0-17": "minor", "18-64": "adult", "65+": "adult"}


def people() -> Universe:
    return Universe.product(
        {
            "county": Hierarchy.from_parents(REGIONS, levels=["region", "county"]),
            "sex": ["F", "M"],
            "age": Hierarchy.from_parents(AGES, levels=["adult or not", "age group"]),
        }
    )


def listed_sums(universe: Universe, constraint: hf.invariants.constraints.Constraint) -> dict[str, tuple[int, ...]]:
    (rows,) = compile_rows(universe, [constraint]).rows
    assert isinstance(rows, RowFamily)
    return {rows.name(row): tuple(np.flatnonzero(rows.group == row).tolist()) for row in range(rows.count)}


def test_a_margin_at_levels_has_one_sum_for_every_combination_of_units() -> None:
    universe = people()
    cells = [universe.cell(i) for i in range(len(universe))]
    expected: dict[str, tuple[int, ...]] = {}
    for i, cell in enumerate(cells):
        name = f"region={REGIONS[cell['county']]}, adult or not={AGES[cell['age']]}, sex={cell['sex']}"
        expected[name] = (*expected.get(name, ()), i)
    assert listed_sums(universe, hf.margin("region", "sex", "adult or not")) == expected


def test_a_level_is_what_the_areas_of_its_units_are() -> None:
    universe = people()
    level = compile_rows(universe, [hf.margin("region", "sex")]).matrix().toarray()
    areas = compile_rows(universe, [hf.areas("county", {"north": ["01", "02"], "south": ["03"]}, by=["sex"])]).matrix().toarray()
    assert np.array_equal(level, areas)


def test_subsets_go_by_levels() -> None:
    universe = people()
    found = listed_sums(universe, hf.subset("age", ["65+"], by=["region"]))
    assert list(found) == ["subset(age in [65+]) by region: region=north", "subset(age in [65+]) by region: region=south"]
    assert [len(cells) for cells in found.values()] == [4, 2]


def test_a_column_goes_before_a_level_of_its_name() -> None:
    tree = Hierarchy.from_parents(REGIONS, levels=["sex", "county"])
    universe = Universe.product({"county": tree, "sex": ["F", "M"]})
    assert list(listed_sums(universe, hf.margin("sex"))) == ["sex=F", "sex=M"]


@pytest.mark.parametrize(
    "constraint", [hf.margin("region", "sex"), hf.subset("age", ["65+"], by=["region"]), hf.subset("age = '65+'", by=["region"])]
)
def test_a_card_needs_no_tree(constraint: hf.invariants.constraints.Constraint) -> None:
    universe = people()
    plain = Universe.product({column: list(universe.codes[column]) for column in universe.columns})
    told = json.loads(json.dumps(definition(constraint, universe)))
    again = constraint_of(told)
    assert np.array_equal(compile_rows(plain, [again]).matrix().toarray(), compile_rows(universe, [constraint]).matrix().toarray())
    assert list(compile_rows(plain, [again]).names()) == list(compile_rows(universe, [constraint]).names())
    assert definition(again, plain) == told
    told["levels"][0]["units"][0][1].append("03")
    with pytest.raises(InvalidConstraint, match="twice"):
        compile_rows(plain, [constraint_of(told)])


def test_constraints_without_levels_are_written_as_before() -> None:
    assert definition(hf.margin("sex"), people()) == {"type": "margin", "kind": "kept", "columns": ["sex"]}


@pytest.mark.parametrize(
    ("universe", "name", "match"),
    [
        (people(), "conty", r"there is no column 'conty'\. Did you mean 'county'\? The table has"),
        (people(), "nation", "Levels of its hierarchies: region, county, adult or not, age group"),
        (Universe.product({"county": Hierarchy.from_parents(REGIONS), "sex": ["F", "M"]}), "0", "there is no column '0'"),
        (
            Universe.product({c: Hierarchy.from_parents({f"{c}1": f"{c}r"}, levels=["region", c]) for c in ("home", "work")}),
            "region",
            "home and work",
        ),
        (
            Universe.product({"county": Hierarchy({"north": None, "01": "north", "03": None}, ["region", "county"]), "sex": ["F", "M"]}),
            "county",
            None,
        ),
    ],
)
def test_what_is_no_level_is_refused_with_what_there_is(universe: Universe, name: str, match: str | None) -> None:
    if match is None:  # a column of that name
        assert compile_rows(universe, [hf.margin(name)])
        return
    with pytest.raises(InvalidConstraint, match=match):
        compile_rows(universe, [hf.margin(name)])


def test_a_level_that_leaves_codes_out_is_refused() -> None:
    tree = Hierarchy({"north": None, "n1": "north", "01": "n1", "03": None}, ["region", "district", "county"])
    with pytest.raises(InvalidConstraint, match="leaves out codes of 'county', such as '03'"):
        compile_rows(Universe.product({"county": tree}), [hf.margin("district")])


@pytest.mark.parametrize("constraint", [hf.margin("state"), hf.margin("state", "sex"), hf.subset("sex", ["F"], by=["state"])])
def test_a_code_whose_parent_is_missing_is_no_unit_of_the_level_it_stands_at(constraint: hf.invariants.constraints.Constraint) -> None:
    """The exact total of county c3 was kept as one of a state."""
    parents = {"c1": "A", "c2": "A", "A": "R", "c3": "R", "c4": "R"}
    universe = Universe.product({"county": Hierarchy.from_parents(parents, levels=["region", "state", "county"]), "sex": ["F", "M"]})
    with pytest.raises(InvalidConstraint, match="code 'c3' of 'county' has no unit at level 'state'"):
        compile_rows(universe, [constraint])
    assert list(listed_sums(universe, hf.margin("region"))) == ["region=R"]
    told = Hierarchy.from_parents({**parents, "c3": "B", "c4": "B", "B": "R"}, levels=["region", "state", "county"])
    assert list(listed_sums(universe.with_hierarchies({"county": told}), hf.margin("state"))) == ["state=A", "state=B"]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Hierarchy.from_parents([("01", "north"), ("01", "south")]), "two parents"),
        (lambda: Hierarchy.from_parents(REGIONS).only(["99"]), "none of the table's codes"),
        (lambda: Universe.product({"county": ["01", "04"]}, hierarchies={"county": Hierarchy.from_parents(REGIONS)}), "no leaf of"),
    ],
)
def test_trees_that_do_not_fit_are_refused(make: object, match: str) -> None:
    with pytest.raises(InvalidHierarchy, match=match):
        make()  # type: ignore[operator]


def test_a_tree_that_many_tables_share_is_cut_to_one_table() -> None:
    shared = Hierarchy.from_parents({**REGIONS, "04": "west"}, levels=["region", "county"])
    cut = shared.only(["03", "01"])
    assert cut.nodes == ("north", "01", "south", "03")
    assert cut.levels == ("region", "county")


def test_codes_that_are_left_of_a_deeper_tree_are_not_units_of_the_level_above() -> None:
    shared = Hierarchy.from_parents({"c1": "A", "A": "R", "c3": "R", "c4": "R"}, levels=["region", "state", "county"])
    cut = shared.only(["c3", "c4"])
    assert cut.levels == ("region", "county")
    with pytest.raises(InvalidConstraint, match="there is no column 'state'"):
        compile_rows(Universe.product({"place": cut}), [hf.margin("state")])


def test_run_files_name_levels_and_share_a_file_of_codes(tmp_path: Path) -> None:
    (tmp_path / "geo.csv").write_text("county,region\n01,north\n02,north\n03,south\n77,west\n", encoding="utf-8")
    (tmp_path / "counts.csv").write_text(
        "county,sex,n\n" + "".join(f"{c},{s},{i}\n" for i, (c, s) in enumerate((c, s) for c in ("01", "02", "03") for s in "FM")),
        encoding="utf-8",
    )
    (tmp_path / "run.toml").write_text(
        """
[table]
source = "counts.csv"
cells = ["county", "sex"]
count = "n"
public = true

[table.hierarchies]
county = {parents = "geo.csv", code = "county", parent = "region", levels = ["region", "county"], shared = true}

[keep]
margins = [["region"], ["region", "sex"]]

[release]
id = "levels"
mechanism = "generalized-gaussian"
sigma_squared = "4"
""",
        encoding="utf-8",
    )
    run = load_run(tmp_path / "run.toml")
    table = run.read_table()
    assert isinstance(table, Table)
    made = hf.lattice(table, run.keep)
    assert (made.rank, made.dimension) == (4, 2)
    wrong = (tmp_path / "run.toml").read_text(encoding="utf-8").replace('[["region"]', '[["regions"]')
    (tmp_path / "wrong.toml").write_text(wrong, encoding="utf-8")
    with pytest.raises(InvalidRun, match="regions"):
        load_run(tmp_path / "wrong.toml")
