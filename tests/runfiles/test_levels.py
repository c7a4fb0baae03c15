"""Shares for levels and margins on the command line: [[release.levels]] from plan to verified folder, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.exact.formatting import format_deviation
from tests.running import Ran

CELLS = [(county[0], county, sex) for county in ("A1", "A2", "A3", "B1", "B2") for sex in "FM"]
COUNTS = [40, 31, 12, 9, 0, 1, 70, 77, 5, 8]
PARENTS = "county,state\nA1,A\nA2,A\nA3,A\nB1,B\nB2,B\n"

NESTED = """\
[table]
source = "people.csv"
cells = ["state", "county", "sex"]
count = "people"
public = true
[keep]
margins = [["state"]]
[release]
id = "people"
mechanism = "generalized-gaussian"
rho = "1/10"
per = "distance"

[[release.levels]]
level = "state"
margin = "sex"
share = "1/5"

[[release.levels]]
level = "county"
margin = "total"
share = "3/10"

[[release.levels]]
level = "county"
share = "1/2"
"""
TREE = NESTED.replace('["state", "county", "sex"]', '["county", "sex"]').replace(
    "[keep]",
    '[table.hierarchies]\ncounty = {parents = "parents.csv", code = "county", parent = "state", levels = ["state", "own"]}\n[keep]',
)
SHARES = {"state": {"sex": "1/5"}, "county": {"total": "3/10", "detailed": "1/2"}}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table of counties in states by sex and a file of parents."""
    rows = [f"{state},{county},{sex},{n}\n" for (state, county, sex), n in zip(CELLS, COUNTS, strict=True)]
    (tmp_path / "people.csv").write_text("state,county,sex,people\n" + "".join(rows))
    (tmp_path / "parents.csv").write_text(PARENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", [NESTED, TREE], ids=["nested columns", "a hierarchy"])
def test_plan_release_verify(text: str, work: Path, run: Callable[..., Ran]) -> None:
    Path("run.toml").write_text(text)
    planned = run("plan", "run.toml")
    assert (planned.code, planned.err) == (0, "")
    made = run("release", "run.toml", "-o", "out")
    assert (made.code, made.err) == (0, "")
    checked = run("verify", "out")
    assert (checked.code, checked.err) == (0, "")
    with Path("out", "table.csv").open() as file:
        released = [int(row["people"]) for row in csv.DictReader(file)]
    assert sum(released[:6]) == sum(COUNTS[:6])
    assert sum(released[6:]) == sum(COUNTS[6:])


@pytest.mark.parametrize("text", [NESTED, TREE], ids=["nested columns", "a hierarchy"])
def test_the_plan_has_the_standard_deviation_of_every_level_and_margin(text: str, work: Path, run: Callable[..., Ran]) -> None:
    """As a table, and as fields, which are those of the same plan in Python and stand on the card."""
    Path("run.toml").write_text(text)
    printed = run("plan", "run.toml").out
    fields = json.loads(run("plan", "run.toml", "--json").out)
    levels = fields["expected_error"]["levels"]
    universe = hf.Universe.listed({name: [row[place] for row in CELLS] for place, name in enumerate(("state", "county", "sex"))})
    same = hf.plan(universe, [hf.margin("state")], hf.GeneralizedGaussian(rho="1/10", levels=SHARES, per="distance"))
    assert levels == same.to_fields()["expected_error"]["levels"]
    assert [(row["level"], row["margin"], row["units"]) for row in levels] == [
        (level, margin, units) for level, units in (("total", 1), ("state", 2), ("county", 5)) for margin in ("total", "sex")
    ]
    table = printed[printed.index("Levels  ") : printed.index("Promise  ")].splitlines()
    assert table[0].split() == ["Levels", "level", "margin", "units", "standard", "deviation,", "at", "most"]
    assert len(table) == 1 + len(levels)
    for line, row in zip(table[1:], levels, strict=True):
        assert line.split()[:3] == [row["level"], row["margin"], str(row["units"])]
        assert line.split()[3].rstrip(",") == ("0" if row["largest"] == 0 else format_deviation(row["median"], is_bound=True))
    assert run("release", "run.toml", "-o", "out").code == 0
    card = json.loads(Path("out", "card.json").read_text())
    assert card["expected_error"]["levels"] == levels
    assert "levels" in card["mechanism"]["parameters"]


def test_distances_that_are_fractions_are_exact_texts(work: Path, run: Callable[..., Ran]) -> None:
    """A person who stays in a state and keeps the sex moves by 2 (3/10 + 1/2); one who changes the sex alone by 2 (1/5 + 1/2)."""
    Path("run.toml").write_text(NESTED)
    guarantee = json.loads(run("plan", "run.toml", "--json").out)["guarantee"]
    assert Fraction(guarantee["smallest_secret"]["distance"]) == Fraction(7, 5)
    assert guarantee["per_person"]["distance"] == 2
    assert Fraction(guarantee["smallest_secret"]["rho"]) == Fraction(7, 50)


def test_rows_are_what_the_mapping_is_in_python(work: Path) -> None:
    from holdfast.runfiles.runfile import load_run

    text = NESTED.replace('"state"\nmargin = "sex"', '["state"]\nmargin = ["sex"]')
    Path("run.toml").write_text(text.replace('level = "county"', 'level = ["state", "county"]'))
    shares = {("state",): {"sex": "1/5"}, ("state", "county"): {"total": "3/10", "detailed": "1/2"}}
    assert load_run("run.toml").mechanism == hf.GeneralizedGaussian(rho="1/10", levels=shares, per="distance")


LAST = 'level = "county"\nshare = "1/2"'

# What is wrong; the run file; what the message says.
# fmt: off
WRONG: list[tuple[str, str, str]] = [
    ("a float", NESTED.replace('"1/2"', "0.5"),
     'line 14, release.levels: row 3: a share must be exact, .* Write share = "0.5"'),
    ("an unknown key", NESTED.replace('margin = "total"', 'margins = "total"'),
     "release.levels: row 2 has the unknown key 'margins'. Write "),
    ("a key of [release] below", f'{NESTED}\nper = "person"\n',
     r"Keys of \[release\] come before the first \[\[release.levels\]\]\."),
    ("no share", NESTED.replace('share = "1/2"', ""), "release.levels: row 3 needs level and share. Write "),
    ("no level", NESTED.replace(LAST, 'share = "1/2"'), "release.levels: row 3 needs level and share. Write "),
    ("a number as level", NESTED.replace(LAST, LAST.replace('"county"', "3")),
     "row 3: a level is a text or a list of columns. Write "),
    ("an empty margin", NESTED.replace('margin = "sex"', "margin = []"),
     "row 1: a margin is a text or a list of columns. Write "),
    ("no number", NESTED.replace('"1/2"', '"half"'), "row 3: the share of 'county' must be a decimal or rational number"),
    ("true", NESTED.replace('"1/2"', "true"), "row 3: the share of 'county' must be a number. Got a bool."),
    ("negative", NESTED.replace('"1/2"', '"-1/2"'), "row 3: the share of 'county' is negative"),
    ("no list", NESTED.partition("[[release")[0] + 'levels = {county = "1"}',
     r"must be a list of tables. Got a table. Write \[\[release.levels\]\]"),
    ("an empty list", NESTED.partition("[[release")[0] + "levels = []", "must be a list of tables. Got an empty list."),
    ("too little", NESTED.replace('"1/2"', '"1/3"'), "release.levels: the shares add up to 5/6, not to 1"),
    ("too much", NESTED.replace('"1/2"', '"1"'), "release.levels: the shares add up to 3/2, not to 1"),
    ("named twice", NESTED.replace('level = "county"\nshare', 'level = "county"\nmargin = "total"\nshare'),
     "is named twice"),
    ("not nested", NESTED.replace('"state"\nmargin = "sex"', '"sex"\nmargin = "total"'), "'county' is not nested in 'sex'"),
    ("no such level", NESTED.replace('level = "state"', 'level = "region"'),
     "there is no level 'region'. Known: 'state', 'county', 'sex', 'total'"),
    ("no such margin", NESTED.replace('margin = "sex"', 'margin = "income"'),
     "there is no column or level 'income' beside the units of 'state'"),
    ("on something kept", NESTED.replace('margin = "sex"', 'margin = "total"'),
     "state, total: 1/5 is a share on totals that are kept exactly"),
    ("nothing for the cells", NESTED.replace('"1/2"', '"0"').replace('"3/10"', '"4/5"'),
     "the finest level, 'county' by all other columns, needs"),
    ("only the states", NESTED.partition("[[release")[0] + '[[release.levels]]\nlevel = "state"\nshare = 1\n',
     "every unit of 'state' must have the same"),
    ("beside sigma_squared", NESTED.replace('rho = "1/10"\nper = "distance"', "sigma_squared = 5"), "this key divides rho"),
    ("another mechanism", NESTED.replace("gaussian", "laplace").replace("rho", "epsilon"), "does not belong to mechanism"),
]
# fmt: on


@pytest.mark.parametrize(("text", "words"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_cannot_be_is_refused_before_anything_is_written(text: str, words: str, work: Path, run: Callable[..., Ran]) -> None:
    Path("run.toml").write_text(text)
    before = sorted(path.name for path in work.iterdir())
    for command in (("plan", "run.toml"), ("release", "run.toml", "-o", "out")):
        ended = run(*command, "--json")
        assert ended.code not in (0, 70)
        found = json.loads(ended.out)
        assert found["code"] in ("invalid-run", "invalid-parameter")
        assert found["exit_code"] == ended.code
        assert re.search(words, found["message"]), found["message"]
    assert sorted(path.name for path in work.iterdir()) == before


# What is wrong with the tree of counties; the file of parents; the code of the error; what the message says.
# fmt: off
TREES: list[tuple[str, str, str, str]] = [
    ("a missing parent", PARENTS.replace("B2,B\n", ""), "invalid-hierarchy",
     "1 code of column 'county' is no leaf of its hierarchy: 'B2'"),
    ("two parents", PARENTS + "B2,A\n", "invalid-hierarchy", "Code 'B2' has two parents, 'B' and 'A'"),
    ("a level too few", PARENTS.replace("B1,B\nB2,B\n", "B1,\nB2,\n") + "A,north\n", "invalid-constraint",
     "level 'state' leaves out codes of 'county'"),
]
# fmt: on


@pytest.mark.parametrize(("parents", "code", "words"), [case[1:] for case in TREES], ids=[case[0] for case in TREES])
def test_trees_that_are_none_are_refused(parents: str, code: str, words: str, work: Path, run: Callable[..., Ran]) -> None:
    Path("parents.csv").write_text(parents)
    deep = '["state", "own"]' if code == "invalid-hierarchy" else '["region", "state", "own"]'
    Path("run.toml").write_text(TREE.replace('["state", "own"]', deep))
    ended = run("plan", "run.toml", "--json")
    found = json.loads(ended.out)
    assert (found["code"], ended.code == found["exit_code"]) == (code, True)
    assert words in found["message"]


def test_a_code_without_a_unit_at_a_level_with_a_share_is_refused(work: Path, run: Callable[..., Ran]) -> None:
    Path("parents.csv").write_text(PARENTS.replace("B1,B\nB2,B\n", "B1,\nB2,\n") + "A,north\n")
    Path("run.toml").write_text(
        TREE.replace('["state", "own"]', '["region", "state", "own"]').replace('margins = [["state"]]', "total = true")
    )
    found = json.loads(run("plan", "run.toml", "--json").out)
    assert found["code"] == "invalid-parameter"
    assert "code 'B1' of 'county' has no parent at level 'state'" in found["message"]
