"""Labels of columns and codes: pages and screens say them, data files keep the codes, verify makes the pages again with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy.queries import coefficients, query_label
from holdfast.channels import Facts
from holdfast.errors import HoldfastError, InvalidCode, InvalidParameter, UnknownColumn, VerificationFailed
from holdfast.invariants.constraints import constraint_of
from holdfast.publication.publication import Publication
from holdfast.publication.sums import Level, LevelUnits, level_title
from holdfast.runfiles.runfile import load_run
from holdfast.tables import Declarations
from holdfast.tables.labels import ColumnLabels, Labels, read_labels
from holdfast.wording.exposure import kept_texts

CELLS = [(state, county, sex, age) for state, county in (("17", "031"), ("17", "189"), ("51", "191")) for sex in "FM" for age in ("a", "b")]
RUN = """\
[table]
source = "people.csv"
cells = ["state", "county", "sex", "age"]
count = "people"
public = true
[table.labels]
state = {codes = {17 = "Illinois", 51 = "Virginia"}}
county = {name = "County", file = "counties.csv", code = ["state", "fips"], label = "title"}
sex = {name = "Sex", codes = {F = "women", M = "men"}}
age = {codes = {a = "18 to 24"}}
[keep]
margins = [["state"]]
[release]
id = "people"
mechanism = "generalized-laplace"
epsilon = "1"
per = "person"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    rows = "".join(f"{','.join(codes)},{30 + 7 * place}\n" for place, codes in enumerate(CELLS))
    (tmp_path / "people.csv").write_text("state,county,sex,age,people\n" + rows)
    (tmp_path / "counties.csv").write_text(
        "state,fips,title\n17,031,Cook County\n17,189,Washington County\n51,191,Washington County\n02,013,Aleutians East\n"
    )
    (tmp_path / "run.toml").write_text(RUN)
    return tmp_path


def _released(work: Path, labelled: bool = True) -> Publication:
    if not labelled:
        head, _, tail = RUN.partition("[table.labels]")
        (work / "run.toml").write_text(head + tail[tail.index("[keep]") :])
    run = load_run(work / "run.toml")
    return hf.release(run.read_table(), run.keep, run.mechanism, key=hf.NoiseKey.for_tests("labels"), release_id=run.id)


def test_pages_say_labels_and_data_files_keep_codes(work):
    release = _released(work)
    release.save(work / "out")
    report, statement = ((work / "out" / f"{name}.html").read_text() for name in ("report", "statement"))
    assert "Illinois, Washington County, men, 18 to 24" in report
    assert "Virginia, Washington County: " in report
    assert "age b" in report  # a code without a label is called by column and code
    assert "County" in statement
    assert "Sex" in statement
    plain = _released(work, labelled=False)
    plain.save(work / "plain")
    for name in ("table.csv", "table.parquet", "kept.csv", "exposed.csv"):
        assert (work / "out" / name).read_bytes() == (work / "plain" / name).read_bytes()
    mine, theirs = release.card, plain.card
    assert (mine.mechanism, mine.table.universe_digest) == (theirs.mechanism, theirs.table.universe_digest)


def test_a_folder_is_verified_and_read_with_its_labels(work):
    release = _released(work)
    release.save(work / "out")
    loaded = hf.load(work / "out")
    assert loaded.plan.facts.universe.labels == release.plan.facts.universe.labels
    assert loaded.plan.facts.universe.cell_name(2) == "Illinois, Cook County, men, 18 to 24"
    assert loaded.plot.ranked("cells").rows == release.plot.ranked("cells").rows
    assert loaded.plot.heat_map(["sex", "age"]).svg == release.plot.heat_map(["sex", "age"]).svg


def test_a_changed_label_is_found_by_the_pages(work):
    _released(work).save(work / "out")
    card = json.loads((work / "out" / "card.json").read_text())
    assert card["table"]["labels"][2] == {"column": "sex", "name": "Sex", "by": ["sex"], "codes": [[["F"], "women"], [["M"], "men"]]}
    card["table"]["labels"][2]["codes"][0][1] = "men"
    (work / "out" / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(VerificationFailed, match=r"report\.html is not the page"):
        hf.verify(work / "out")


def test_a_plan_has_the_labels_without_a_count(work):
    made = load_run(work / "run.toml").read_declarations()
    assert made.universe.cell_name(0) == "Illinois, Cook County, women, 18 to 24"
    assert made.universe.labels.column("county") == "County"


def test_names_of_units_and_levels(work):
    release = _released(work)
    plan, universe = release.plan, release.plan.facts.universe
    county = LevelUnits(plan, release.table).sums(Level("county", ("state", "county")))
    assert county.name(0) == "Illinois, Cook County"
    assert county.name(2) == "Virginia, Washington County"
    assert county.codes(0) == {"state": "17", "county": "031"}
    assert level_title(universe, county.level) == "County"
    both = Level("sex x age", ("sex", "age"))
    assert level_title(universe, both) == "Sex x age"
    assert LevelUnits(plan, release.table).sums(both).name(0) == "women, 18 to 24"
    assert LevelUnits(plan, release.table).sums(Level("county", ("county",))).name(0) == "031"  # without its state it has no name


def test_equal_labels_of_two_codes_are_told_apart():
    table = hf.Table(hf.Universe.product({"town": ["1", "2", "3"]}), np.array([5, 6, 7]))
    named = table.with_labels({"town": {"1": "Springfield", "2": "Springfield", "3": "Salem"}}, {"town": "Town"})
    assert [named.universe.cell_name(cell) for cell in range(3)] == ["Springfield (1)", "Springfield (2)", "Salem"]
    assert named.counts is table.counts
    assert table.universe.cell_name(0) == "town=1"
    assert named.universe == table.universe  # the same cells


def test_exposed_cells_are_named_by_their_labels():
    cells = hf.Universe.listed({"county": ["1", "1", "2"], "sex": ["F", "M", "F"]})
    table = hf.Table(cells, np.array([5, 6, 7])).with_labels({"county": {"2": "Bath"}, "sex": {"F": "women"}})
    plan = hf.plan(table, [hf.margin("county")], hf.GeneralizedLaplace(epsilon="1", per="distance"))
    assert plan.to_fields()["exposed"]["names"] == ["Bath, women"]
    assert "Bath, women" in hf.describe(plan)


def test_answers_have_labels_too(work):
    answer = RUN.replace("[table", "[answer").replace('count = "people"', 'value = "people"\nsensitivity = "1"\nstep = "1/4096"')
    (work / "run.toml").write_text(answer.replace("generalized-laplace", "projected-laplace"))
    run = load_run(work / "run.toml")
    assert run.read_declarations().universe.cell_name(0) == "Illinois, Cook County, women, 18 to 24"
    assert run.read_table().universe.labels == run.read_declarations().universe.labels
    (work / "run.toml").write_text((work / "run.toml").read_text().replace('F = "women"', 'W = "women"'))
    with pytest.raises(InvalidCode) as refused:
        load_run(work / "run.toml").read_table()
    assert refused.value.field == "answer.labels"


@pytest.mark.parametrize("change", [{"by": ["age"]}, {"name": " Sex"}, {"codes": [[["F"], "two\nlines"]]}, {"codes": [["F", "women"]]}])
def test_a_card_with_labels_that_are_none_is_refused_in_words(work, change):
    _released(work).save(work / "out")
    card = json.loads((work / "out" / "card.json").read_text())
    card["table"]["labels"][2] |= change
    (work / "out" / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(HoldfastError, match=r"label|Label"):
        hf.verify(work / "out")


def test_a_label_of_a_run_file_that_turns_the_text_round_is_refused_for_that(work):
    (work / "run.toml").write_text(RUN.replace('"women"', r'"wo\u202emen"'))
    with pytest.raises(HoldfastError, match=r"without characters that do not print, such as control or direction marks\. Got "):
        load_run(work / "run.toml")


def test_long_names_stand_whole_above_their_bars(work):
    labelled = _released(work).plot.ranked("cells")
    assert ">Illinois, Washington County, women, 18 to 24</text>" in labelled.svg
    assert "…" not in labelled.svg


def test_long_names_of_rows_are_whole_where_columns_leave_room():
    cells = hf.Universe.product({"county": ["1", "2"], "sex": ["F", "M"]})
    names = {"1": "Washington County, Illinois", "2": "Washington County, Virginia"}
    table = hf.Table(cells, np.array([81, 79, 41, 39])).with_labels({"county": names})
    figure = hf.release(
        table, [hf.margin("county")], hf.GeneralizedLaplace(epsilon="1", per="distance"), key=hf.NoiseKey.for_tests("rows")
    ).plot.heat_map()
    assert [f">{name}</text>" in figure.svg for name in names.values()] == [True, True]


def test_a_map_matches_codes_and_shows_labels(work, tmp_path):
    square = [[[0, 0], [1, 0], [1, 1], [0, 0]]]
    features = [
        {"type": "Feature", "properties": {"geoid": code}, "geometry": {"type": "Polygon", "coordinates": square}}
        for code in ("031", "189", "191")
    ]
    (tmp_path / "map.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    figure = _released(work).plot.map(tmp_path / "map.geojson", "geoid", "county")
    assert "Cook County" in str(figure.rows)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('F = "women"', 'W = "women"', "no code 'W'"),
        ('code = ["state", "fips"]', 'code = ["fips", "state"]', 'no column "fips"'),
        ("counties.csv", "nowhere.csv", "nowhere.csv"),
        (', label = "title"', "", "go together"),
        ('"women"', '"women "', "one line"),
        ("sex = {name", "gender = {name", 'no column "gender"'),
    ],
)
def test_wrong_labels_are_refused_with_their_place(work, old, new, said):
    (work / "run.toml").write_text(RUN.replace(old, new, 1))
    with pytest.raises(HoldfastError, match=said) as refused:
        load_run(work / "run.toml").read_declarations()
    assert str(refused.value.field).startswith("table.labels")


def test_wrong_labels_in_python(tmp_path):
    universe = hf.Universe.product({"sex": ["F", "M"]})
    with pytest.raises(UnknownColumn, match="'age'"):
        universe.with_labels(Labels.of({"age": {"1": "one"}}))
    with pytest.raises(InvalidParameter, match="one line"):
        Labels.of({"sex": {"F": "two\nlines"}})
    (tmp_path / "codes.csv").write_text("sex,label\nF,women\nF,girls\n")
    with pytest.raises(InvalidCode, match=r"'F' has two labels .*, such as 'women' and 'girls'\. .* name both: code = "):
        read_labels(tmp_path / "codes.csv", "sex", ["sex"], "label")
    (tmp_path / "codes.csv").write_text("sex,label\n1,women\n")
    with pytest.raises(InvalidCode, match="No code with a label"):
        universe.with_labels(Labels((read_labels(tmp_path / "codes.csv", "sex", ["sex"], "label"),)))
    with pytest.raises(InvalidParameter, match="the last"):
        ColumnLabels("sex", by=("sex", "age"))


class TestIntervals:
    """What readers ask for is called by labels on the screen, and by both for machines."""

    def test_names_of_queries(self, work):
        universe = _released(work).plan.facts.universe
        named = {
            "county = '031'": "Illinois, Cook County",  # labels of counties go by states
            "county = '031' and sex = 'F'": "Illinois, Cook County, women",
            "state = '51'": "Virginia",
            "sex = 'F' and age in ('a', 'b')": "women",
            "age = 'b' and sex != 'F'": "men, age=b",
            "age = 'b'": None,  # has no label
            "state = '17' or sex = 'F'": None,  # no codes say which cells these are
            "sex = 'F' or sex = 'M'": None,  # all cells
        }
        for query, label in named.items():
            assert query_label(coefficients(query, universe), universe) == label
        assert query_label(2 * coefficients("sex = 'F'", universe), universe) is None
        assert query_label(coefficients(2, universe), universe) == "Illinois, Cook County, men, 18 to 24"

    def test_a_few_codes_are_named_and_many_are_not(self):
        universe = hf.Universe.product({"town": list("abcdef")})
        table = hf.Table(universe, np.arange(6)).with_labels({"town": {code: code.upper() for code in "abcdef"}})
        for codes, label in (("abc", "A or B or C"), ("abcd", None)):
            assert query_label(coefficients({"town": list(codes)}, universe), table.universe) == label

    def test_a_unit_of_a_higher_level_is_named_and_not_what_lies_in_it(self):
        towns = {"a": "N", "b": "N", "c": "N", "d": "S", "e": "S"}
        rows = [(region, town, sex) for town, region in towns.items() for sex in "FM"]
        columns = dict(zip(("region", "town", "sex"), map(list, zip(*rows, strict=True)), strict=True))
        words = {"N": "North", "S": "South"}, {"a": "Ash", "b": "Birch", "c": "Cedar", "d": "Dale", "e": "Elm"}, {"F": "women", "M": "men"}
        universe = hf.Universe.listed(columns).with_labels(Labels.of(dict(zip(columns, words, strict=True))))
        named = {
            "region = 'N' and sex = 'F'": "North, women",
            "region = 'S'": "South",
            "town in ('a', 'b', 'c')": "North",
            "town = 'a' and sex = 'M'": "Ash, men",
            "town in ('a', 'b')": "Ash or Birch",
            "town in ('c', 'd')": "Cedar or Dale",
        }
        for query, label in named.items():
            assert query_label(coefficients(query, universe), universe) == label
        tree = hf.Hierarchy({"N": None, "S": None, **towns}, ["region", "town"])
        product = hf.Universe.product({"town": list(towns), "sex": ["F", "M"]}, hierarchies={"town": tree})
        labels = {"N": "North", "a": "Ash", "d": "Dale"}
        by_level = product.with_labels(Labels.of({"town": labels, "sex": {"F": "women", "M": "men"}}))
        levels = {"N": "North, women", "S": "Dale or town=e, women"}  # S has no label
        for region, label in levels.items():
            assert query_label(coefficients({"region": region, "sex": "F"}, by_level), by_level) == label

    def test_a_label_in_place_of_a_code_is_refused_with_the_code(self, work, run):
        _released(work).save(work / "out")
        universe = _released(work).plan.facts.universe
        said = {
            "state = 'Illinois'": "'Illinois' is the label of code '17' of column state. Write the code.",
            "state = '51' or state != 'Illinois'": "'Illinois' is the label of code '17' of column state. Write the code.",
            "sex in ('M', 'women')": "'women' is the label of code 'F' of column sex. Write the code.",
            "county = 'Washington County'": "'Washington County' is the label of codes '189', '191' of column county. Write the code.",
        }
        for query, sentence in said.items():
            with pytest.raises(InvalidParameter) as refused:
                coefficients(query, universe)
            assert str(refused.value).endswith(f"cannot be used: {sentence}")
            made = run("interval", str(work / "out"), "--where", query)
            assert made.code == 2
            assert " ".join(sentence.split()) in " ".join(made.err.split())
        with pytest.raises(InvalidParameter, match=r"^'women' is the label of code 'F' of column sex\. Write the code\.$"):
            coefficients({"sex": "women"}, universe)
        with pytest.raises(InvalidParameter, match="'Ohio' is not a code of the column 'state'"):
            coefficients("state = 'Ohio'", universe)
        swapped = hf.Universe.product({"sex": ["F", "M"]}).with_labels(Labels.of({"sex": {"F": "M", "M": "F"}}))
        assert coefficients("sex = 'F'", swapped).tolist() == [1, 0]  # a code goes before a label

    def test_margins_by_columns_and_levels(self, work):
        release = _released(work)
        found = release.intervals(by=["state", "county", "sex"])
        assert found.labels is not None
        assert found.labels[:3] == ("Illinois, Cook County, women", "Illinois, Cook County, men", "Illinois, Washington County, women")
        assert release.intervals(by="county").labels == (None, None, None)  # without its state a county has no name
        frame = found.frame
        assert frame.column_names[:5] == ["state", "county", "sex", "label", "published"]
        assert found.to_fields()["intervals"][0]["codes"] == {"state": "17", "county": "031", "sex": "F"}
        tree = hf.Hierarchy({"N": None, "S": None, "a": "N", "b": "N", "c": "S"}, ["region", "place"])
        towns = hf.Table(hf.Universe.product({"town": ["a", "b", "c"]}, hierarchies={"town": tree}), np.array([5, 6, 7]))
        named = towns.with_labels({"town": {"N": "North", "a": "Ash"}})
        made = hf.release(named, [hf.total()], hf.GeneralizedLaplace(epsilon="1", per="distance"), key=hf.NoiseKey.for_tests("levels"))
        assert made.intervals(by="region").labels == ("North", None)
        assert made.intervals(by=["region", "town"]).labels == ("North, Ash", "North, town=b", None)

    def test_the_command(self, work, run, snapshot):
        _released(work).save(work / "out")
        for asked in (
            ["interval", str(work / "out"), "--where", "county = '031' and sex = 'F'", "--percent-of", "county = '031'"],
            ["interval", str(work / "out"), "--by", "state", "--by", "sex"],
            ["view", str(work / "out")],
        ):
            snapshot(run(*asked).out, " ".join((asked[0], *asked[2:])))
        made = json.loads(run("interval", str(work / "out"), "--where", "state = '17'", "--json").out)["intervals"][0]
        assert (made["name"], made["label"]) == ("state = '17'", "Illinois")

    def test_views_have_the_names_of_levels_beside_the_columns(self, work):
        release = _released(work)
        fields = release.view().to_fields()
        assert fields["levels"] == ["state", "state, county", "state, county, sex"]
        called = {line["level"]: line["label"] for line in fields["bias"]["lines"]}
        assert [called[level] for level in fields["levels"]] == ["state", "state, County", "state, County, Sex"]
        plain = _released(work, labelled=False).view().to_fields()["bias"]["lines"]
        assert all(line["label"] == line["level"] for line in plain)
        with pytest.raises(InvalidParameter, match=r"Illinois"):
            release.view(base=5)


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (hf.total(), "the whole table"),
        (hf.margin("county"), "by County"),
        (hf.margin("state", "sex", "age"), "by state, Sex and age"),
        (hf.subset("sex", ["F"], by=["county"]), "Sex women, by County"),
        (hf.subset("county", node="17"), "County under Illinois"),
        (hf.subset("age = 'b'", by=["state"]), "cells with age = 'b', by state"),
        (hf.areas("county", {"North": ["17031"], "South": ["17043", "18001"]}, by=["sex"]), "2 areas of County (North, South), by Sex"),
        (hf.linear([[1] * 12]), "a sum with coefficients"),
        (hf.linear([[1] * 12, [0] * 11 + [1]]), "2 sums with coefficients"),
    ],
    ids=str,
)
def test_constraints_in_words(constraint, words):
    tree = hf.Hierarchy.from_prefixes(["17031", "17043", "18001"], [2], levels=["state", "county"])
    codes = {"county": ["17031", "17043", "18001"], "sex": ["F", "M"], "age": ["a", "b"]}
    table = hf.Table(hf.Universe.product(codes, hierarchies={"county": tree}), np.arange(12))
    named = table.with_labels({"sex": {"F": "women"}, "county": {"17": "Illinois"}}, {"county": "County", "sex": "Sex"})
    facts = Facts.of(Declarations.of(named), [constraint])
    assert kept_texts(facts.constraints, named.universe.labels) == [words]
    assert kept_texts(map(constraint_of, facts.definitions), named.universe.labels) == [words]  # from a card
    assert kept_texts(facts.constraints, named.universe.labels, "identity") == []


def test_constraints_on_pages_and_in_plans(work):
    release = _released(work)
    assert [line for line in str(release.plan).splitlines() if line.startswith(("Table", "Kept"))] == [
        "Table      12 cells by state, County, Sex, age (declared)",
        "Kept       by state: 2 totals, 2 independent; 10 free dimensions",
    ]
    release.save(work / "out")
    for page in ("report.html", "statement.html"):
        text = (work / "out" / page).read_text()
        assert "margin(" not in text
        assert "by state" in text
