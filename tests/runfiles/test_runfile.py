"""Run files: what they say arrives exactly, and every mistake gets one message with file, line and field."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidRun
from holdfast.invariants import compile_rows
from holdfast.mechanisms import registry
from holdfast.mechanisms.keys import GOT, InvalidKey, Key, Reader, declare_shape
from holdfast.privacy.exchange import below_root
from holdfast.runfiles.runfile import Run, load_run
from holdfast.runfiles.sections import Document, keys_at

ROOT = Path(__file__).parents[2]

DESIGN = """\
[table]
source = "counties.csv"            # csv, parquet, or a database URL with a query
cells  = ["state", "county"]
count  = "population"              # leave out to tabulate records (then `universe`, `protect`, `max_records`)
[keep]
margins = [["state"]]
subsets = []                       # by code list, hierarchy node, or condition on a column of integer codes
[release]
id = "counties-2030-v1"
mechanism = "generalized-laplace"  # generalized-gaussian, rounded-projection, conditional, suppression
epsilon = "0.192"
per = "distance"                   # or "person"
"""
"""The example of the design."""

FILES = {
    "counties.csv": "state,county,population\n17,031,40\n17,043,12\n18,001,0\n",
    "people.csv": "county,sex,age,number\n17031,F,18,a\n17031,M,2,b\n18001,F,19,a\n17043,M,0,c\n",
    "county-codes.csv": "county\n17031\n17043\n18001\n",
    "counties.hrc": "17\n@17031\n@17043\n18\n@18001\n",
    "parents.csv": "county,state\n17031,17\n17043,17\n18001,18\n",
    "cells.csv": "sex,age\nF,18\nF,19\nM,0\nM,2\nM,18\n",
    "marriages.csv": "age,married,people\n14,no,9\n14,yes,0\n15,no,8\n15,yes,0\n16,no,8\n16,yes,1\n",
    "rates.csv": "region,town,rate\nnorth,a,0.5\nnorth,b,-1.25\nsouth,c,3/4\nsouth,d,0.25\n",
    "office-key.pem": "not read when the run file is\n",
}

RECORDS = """\
[table]
source = "people.csv"
cells = {county = ["17031", "17043", "18001"], sex = ["F", "M"]}
[keep]
[release]
id = "r"
mechanism = "suppression"
"""


def whole_number(least: int) -> Reader:
    """Reads a whole number of at least `least`."""

    @declare_shape({"type": "integer", "minimum": least})
    def read(key: Key, raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise InvalidKey(key.name, f"must be a whole number. Got {GOT}. Write {key.line}.")
        if raw < least:
            raise InvalidKey(key.name, f"is too small. Got {GOT}. Write {key.line}.")
        return raw

    return read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with small tables."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _listed_keys(run: Run) -> list[int] | None:
    keys = run.read_table().cell_keys
    return None if keys is None else [int(key) for key in keys]


@pytest.fixture
def load(folder: Path) -> Callable[[str], Run]:
    """Load a run file of this text."""

    def loaded(text: str) -> Run:
        path = folder / "run.toml"
        path.write_text(text, encoding="utf-8")
        return load_run(path)

    return loaded


def released(*lines: str) -> str:
    """The design's example with these lines for its mechanism; they begin at line 10."""
    return "\n".join([*DESIGN.splitlines()[:9], *lines]) + "\n"


class TestWhatIsSaid:
    def test_the_example_of_the_design(self, load: Callable[[str], Run]) -> None:
        run = load(DESIGN)
        assert (run.path.name, run.id, run.date, run.sign) == ("run.toml", "counties-2030-v1", None, None)
        assert (run.options, run.formats) == ({"epsilon": "0.192"}, None)
        assert run.keep == [hf.margin("state")]
        assert run.mechanism == hf.GeneralizedLaplace(epsilon="0.192", per="distance")
        table = run.read_table()
        assert (table.cells, table.count_name, table.protect, table.max_records) == (["state", "county"], "population", "person", 1)
        assert table.counts.tolist() == [40, 12, 0]

    def test_equal_files_give_equal_runs(self, load: Callable[[str], Run]) -> None:
        first = load(DESIGN)
        assert first == load(DESIGN)
        assert first != load(DESIGN.replace("0.192", "0.193"))
        with pytest.raises(AttributeError):
            first.id = "other"  # type: ignore[misc]

    def test_every_key_of_release(self, load: Callable[[str], Run], folder: Path) -> None:
        run = load(
            released('mechanism = "generalized-laplace"', "epsilon = 2", 'norm = "l2"', 'per = "distance"', 'sampler = "auto"')
            + 'date = 2030-04-01\nformats = ["csv"]\nsign = "office-key.pem"\n'
        )
        assert (run.date, run.formats, run.sign) == ("2030-04-01", ("csv",), folder / "office-key.pem")
        assert run.options == {"epsilon": "2", "norm": "l2", "sampler": "auto"}
        assert run.mechanism == hf.GeneralizedLaplace(epsilon=2, norm="l2", per="distance")
        assert load(released('mechanism = "suppression"', 'date = "2030-04-01"')).date == "2030-04-01"

    def test_every_constraint(self, load: Callable[[str], Run]) -> None:
        keep = """[keep]
total = true
margins = [["state"], ["state", "county"], ["state"]]
subsets = [{column = "county", codes = ["031"], by = ["state"]}, {where = "state >= 17"}, {column = "county", node = "03"}]
areas = [{column = "county", sets = {a = ["031", "043"], b = ["043"]}, by = ["state"]}]
linear = [{matrix = [[1, 1, 0], [0, 0, 2]], names = ["x", "y"], values = [52, 0]}]
[keep.identities]
total = 1000
margins = [{columns = ["county"], values = [600, 400]}]
[[keep.identities.subsets]]
where = "state = 18"
[[keep.identities.subsets]]
column = "county"
codes = ["031"]
values = 7
[[keep.identities.areas]]
column = "county"
sets = {a = ["031"], b = ["043"]}
values = [7, 8]
[release]
"""
        run = load(re.sub(r"\[keep\].*\[release\]\n", keep, DESIGN, flags=re.DOTALL))
        expected = [
            hf.total(),
            hf.margin("state"),
            hf.margin("state", "county"),
            hf.margin("state"),
            hf.subset("county", ["031"], by=["state"]),
            hf.subset("state >= 17"),
            hf.subset("county", node="03"),
            hf.areas("county", {"a": ["031", "043"], "b": ["043"]}, by=["state"]),
        ]
        assert run.keep[:8] == expected
        assert (run.keep[8].matrix, run.keep[8].names, run.keep[8].values) == ([[1, 1, 0], [0, 0, 2]], ("x", "y"), (52, 0))  # type: ignore[union-attr]
        assert run.keep[9:] == [
            hf.identity(hf.total(), 1000),
            hf.identity(hf.margin("county"), [600, 400]),
            hf.identity(hf.subset("state = 18"), 0),
            hf.identity(hf.subset("county", ["031"]), 7),
            hf.identity(hf.areas("county", {"a": ["031"], "b": ["043"]}), [7, 8]),
        ]

    def test_nothing_kept(self, load: Callable[[str], Run]) -> None:
        assert load(RECORDS).keep == []

    def test_the_source_is_never_shown(self, load: Callable[[str], Run]) -> None:
        url = "postgresql://office:hunter2@db.example/census"
        run = load(DESIGN.replace('"counties.csv"', f'"{url}"\nquery = "SELECT hunter3"'))
        assert "hunter" not in repr(run) + str(run) + repr(run._table) + run.description

    @pytest.mark.parametrize(
        ("lines", "description"),
        [
            (['mechanism = "suppression"'], "suppression"),
            (
                ['mechanism = "rounded-projection"', 'epsilon = "1/4"', 'per = "distance"'],
                "rounded projection: epsilon = 1/4, per unit of distance",
            ),
            (['mechanism = "generalized-gaussian"', "sigma_squared = 9"], "generalized gaussian: sigma_squared = 9"),
            (
                ['mechanism = "generalized-gaussian"', "epsilon = 1", 'delta = "1e-9"', 'per = "person"'],
                "generalized gaussian: epsilon = 1, delta = 1e-9, for one person of at most 1 record who changes cell",
            ),
        ],
        ids=["suppression", "protect", "sigma squared", "person"],
    )
    def test_description(self, lines: list[str], description: str, load: Callable[[str], Run]) -> None:
        assert load(released(*lines)).description == description


class TestReadTable:
    def test_paths_start_at_the_run_file(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        inner = folder / "data"
        inner.mkdir()
        (folder / "counties.csv").rename(inner / "counties.csv")
        (folder / "run.toml").write_text(DESIGN.replace("counties.csv", "data/counties.csv"))
        monkeypatch.chdir(folder)
        run = load_run("run.toml")
        assert run.path == Path("run.toml")
        monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))  # the folder is that of loading
        assert len(run.read_table()) == 3
        (folder / "run.toml").write_text(DESIGN.replace("counties.csv", str(inner / "counties.csv")))
        assert len(load_run(folder / "run.toml").read_table()) == 3

    @pytest.mark.parametrize(
        ("cells", "columns", "counts"),
        [
            ('cells = {county = ["17031", "17043", "18001"], sex = ["F", "M"]}', ["county", "sex"], [1, 1, 0, 1, 1, 0]),
            ('cells = {county = "county-codes.csv"}', ["county"], [2, 1, 1]),
            ('cells = {county = "counties.hrc"}', ["county"], [2, 1, 1]),
            ('cells = ["sex", "age"]\nuniverse = "cells.csv"', ["sex", "age"], [1, 1, 1, 1, 0]),
            ('cells = ["sex"]\nuniverse = "observed"', ["sex"], [2, 2]),
        ],
        ids=["codes", "file of codes", "tree", "listed", "observed"],
    )
    def test_records(self, cells: str, columns: list[str], counts: list[int], load: Callable[[str], Run]) -> None:
        text = re.sub(r"cells = .*", f'{cells}\nprotect = "resident"\nmax_records = 2\nid = "number"\nname = "People"', RECORDS)
        table = load(text).read_table()
        assert (table.cells, table.protect, table.max_records, table.name) == (columns, "resident", 2, "People")
        assert table.counts.tolist() == counts
        assert table.universe.support == ("observed" if "observed" in cells else "declared")

    def test_keys_of_records_and_cells(self, load: Callable[[str], Run], folder: Path) -> None:
        (folder / "people.csv").write_text("county,sex,rkey\n17031,F,4294967295\n17031,F,3\n18001,M,8\n")
        assert _listed_keys(load(RECORDS.replace("[keep]", 'record_key = "rkey"\n[keep]'))) == [2, 0, 0, 0, 0, 8]
        assert _listed_keys(load(RECORDS)) is None
        (folder / "counties.csv").write_text("state,county,population,ckey\n17,031,40,9\n17,043,12,4294967295\n18,001,0,0\n")
        assert _listed_keys(load(DESIGN.replace("[keep]", 'cell_key = "ckey"\n[keep]'))) == [9, 2**32 - 1, 0]

    def test_the_identifier_is_checked(self, load: Callable[[str], Run]) -> None:
        run = load(RECORDS.replace("[keep]", 'id = "number"\n[keep]'))
        with pytest.raises(hf.errors.TooManyRecords):
            run.read_table()

    @pytest.mark.parametrize(
        "tree",
        ['tree = "counties.hrc"', "prefixes = [2]", 'parents = "parents.csv", code = "county", parent = "state"'],
        ids=["tree", "prefixes", "parents"],
    )
    @pytest.mark.parametrize(
        "table",
        [
            'source = "people.csv"\ncells = {county = ["17031", "17043", "18001"]}',
            'source = "people.csv"\ncells = ["county"]\nuniverse = "county-codes.csv"',
            'source = "codes.csv"\ncells = ["county"]\ncount = "n"',
        ],
        ids=["codes", "listed", "counts"],
    )
    def test_hierarchies(self, tree: str, table: str, load: Callable[[str], Run], folder: Path) -> None:
        (folder / "codes.csv").write_text("county,n\n17031,1\n17043,2\n18001,3\n")
        text = f'[table]\n{table}\nhierarchies = {{county = {{{tree}, levels = ["state", "county"]}}}}\n'
        text += '[keep]\nsubsets = [{column = "county", node = "17"}]\n[release]\nid = "r"\nmechanism = "suppression"\n'
        run = load(text)
        universe = run.read_table().universe
        assert universe.hierarchies["county"].leaves("17") == ("17031", "17043")
        assert universe.hierarchies["county"].levels == ("state", "county")
        assert compile_rows(universe, run.keep).matrix().toarray().tolist() == [[1, 1, 0]]

    @pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
    def test_databases_in_the_folder(self, kind: str, load: Callable[[str], Run], folder: Path) -> None:
        (folder / "deep").mkdir()
        make = "CREATE TABLE t AS SELECT '17' AS state, '031' AS county, 5 AS population"
        if kind == "sqlite":
            connection = sqlite3.connect(folder / "deep" / "c.db")
            connection.execute(make)
            connection.commit()
            connection.close()
        else:
            import duckdb

            with duckdb.connect(str(folder / "deep" / "c.db")) as database:
                database.execute(make)
        tree = "hierarchies = {county = {prefixes = [2]}}"
        for url in (f"{kind}:///deep/c.db", f"{kind}:///{folder}/deep/c.db"):
            run = load(DESIGN.replace('"counties.csv"', f'"{url}"\nquery = "SELECT * FROM t"\n{tree}'))
            table = run.read_table()
            assert table.counts.tolist() == [5]
            assert table.universe.hierarchies["county"].leaves("03") == ("031",)


class TestPerPerson:
    """Exact conversions. One person of m records who changes cell: 2 m in l1, 2 m^2 in squared l2."""

    @staticmethod
    def per_distance(load: Callable[[str], Run], m: int, *lines: str) -> Any:
        """The mechanism of a run file for a table of at most m records a person, per unit of distance."""
        run = load(released(*lines).replace('count  = "population"', f'count = "population"\nmax_records = {m}'))
        return run.mechanism.for_distance(run.max_records)

    @pytest.mark.parametrize("m", [1, 2, 7])
    def test_pure_budgets_divide_by_the_l1_distance(self, m: int, load: Callable[[str], Run]) -> None:
        for made in (hf.GeneralizedLaplace, hf.RoundedProjection):
            lines = [f'mechanism = "{made.name}"', 'epsilon = "0.3"']
            assert self.per_distance(load, m, *lines, 'per = "person"') == made(epsilon=Fraction(3, 10) / (2 * m), per="distance")
            assert self.per_distance(load, m, *lines, 'per = "distance"') == made(epsilon=Fraction(3, 10), per="distance")

    @pytest.mark.parametrize("m", [1, 2, 7])
    def test_rho_divides_by_the_squared_l2_distance(self, m: int, load: Callable[[str], Run]) -> None:
        lines = ['mechanism = "generalized-gaussian"', 'rho = "1/3"']
        assert self.per_distance(load, m, *lines, 'per = "person"') == hf.GeneralizedGaussian(rho=Fraction(1, 6 * m * m), per="distance")
        assert self.per_distance(load, m, *lines, 'per = "distance"') == hf.GeneralizedGaussian(rho="1/3", per="distance")

    def test_sigma_squared_stays(self, load: Callable[[str], Run]) -> None:
        made = self.per_distance(load, 5, 'mechanism = "generalized-gaussian"', 'sigma_squared = "12.5"')
        assert made == hf.GeneralizedGaussian(sigma_squared="25/2")

    @pytest.mark.parametrize("m", [1, 3])
    def test_a_pair_is_calibrated_at_the_distance_of_one_person(self, m: int, load: Callable[[str], Run]) -> None:
        from holdfast.privacy.calibration import pair_sigma_squared

        lines = ['mechanism = "generalized-gaussian"', 'epsilon = "1/2"', 'delta = "1e-6"']
        expected = pair_sigma_squared("1/2", "1e-6", distance_squared=2 * m * m)
        assert self.per_distance(load, m, *lines, 'per = "person"') == hf.GeneralizedGaussian(sigma_squared=expected)
        assert self.per_distance(load, m, *lines, 'per = "distance"') == hf.GeneralizedGaussian(epsilon="1/2", delta="1e-6", per="distance")

    @pytest.mark.parametrize("m", [1, 2, 7])
    def test_the_l2_norm_rounds_down(self, m: int, load: Callable[[str], Run]) -> None:
        epsilon = self.per_distance(
            load, m, 'mechanism = "generalized-laplace"', 'epsilon = "0.3"', 'norm = "l2"', 'per = "person"'
        ).epsilon
        assert epsilon**2 * 2 * m * m <= Fraction(9, 100) < (epsilon * (1 + Fraction(1, 10**8))) ** 2 * 2 * m * m

    @given(st.fractions(min_value=Fraction(1, 10**60), max_value=10**60))
    def test_below_root(self, square: Fraction) -> None:
        if square > 0:
            root = below_root(square)
            assert root**2 <= square < (root * (1 + Fraction(1, 10**8))) ** 2

    @given(st.integers(1, 10**30), st.integers(1, 10**6))
    def test_below_root_of_a_square(self, root: int, scale: int) -> None:
        square = Fraction(root, scale) ** 2
        assert below_root(square) ** 2 <= square


class TestMechanism:
    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            (
                ['mechanism = "generalized-laplace"', 'epsilon = "1/4"', 'norm = "l2"', 'per = "person"'],
                hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="person"),
            ),
            (
                ['mechanism = "generalized-laplace"', "epsilon = 1", 'sampler = "line_gibbs"', 'eta = "1/50"', 'per = "distance"'],
                hf.GeneralizedLaplace(epsilon=1, sampler="line_gibbs", eta="1/50", per="distance"),
            ),
            (
                ['mechanism = "generalized-laplace"', "epsilon = 1", "allow_estimated = true", 'per = "person"'],
                hf.GeneralizedLaplace(epsilon=1, allow_estimated=True, per="person"),
            ),
            (['mechanism = "generalized-gaussian"', 'rho = "1/4"', 'per = "person"'], hf.GeneralizedGaussian(rho="1/4", per="person")),
            (['mechanism = "generalized-gaussian"', "sigma_squared = 4"], hf.GeneralizedGaussian(sigma_squared=4)),
            (
                ['mechanism = "generalized-gaussian"', "epsilon = 1", 'delta = "1e-9"', 'per = "person"'],
                hf.GeneralizedGaussian(epsilon=1, delta="1e-9", per="person"),
            ),
            (
                ['mechanism = "generalized-gaussian"', "epsilon = 1", 'delta = "1e-9"', 'per = "distance"', 'calibration = "paper"'],
                hf.GeneralizedGaussian(epsilon=1, delta="1e-9", calibration="paper", per="distance"),
            ),
            (['mechanism = "rounded-projection"', 'epsilon = "1/4"', 'per = "person"'], hf.RoundedProjection(epsilon="1/4", per="person")),
            (['mechanism = "suppression"'], hf.Suppression()),
        ],
        ids=lambda value: repr(value) if not isinstance(value, list) else "",
    )
    def test_is_what_python_would_make(self, lines: list[str], expected: Any, load: Callable[[str], Run]) -> None:
        assert load(released(*lines)).mechanism == expected

    def test_a_mechanism_from_elsewhere_is_one_row(self, load: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch) -> None:
        class Rounds(hf.Suppression):
            """With a key of its own."""

            name = "rounds"
            run_file_keys = (Key("rounds", whole_number(1), "3", required=True),)

            @classmethod
            def from_run_file(cls, values: Mapping[str, Any], per: Any) -> Any:
                return cls._from_checked(rounds=values["rounds"])

        monkeypatch.setitem(registry.MECHANISMS, "rounds", Rounds)
        assert load(released('mechanism = "rounds"', "rounds = 7")).mechanism.rounds == 7  # type: ignore[attr-defined]
        for value, told in (("0", "is too small. Got the whole number 0"), ('"7"', 'must be a whole number. Got "7"')):
            with pytest.raises(InvalidRun, match=rf"line 11, release\.rounds: {told}\. Write rounds = 3\."):
                load(released('mechanism = "rounds"', f"rounds = {value}"))
        with pytest.raises(InvalidRun, match=r'release\.rounds: this key is missing: mechanism = "rounds" needs it. Write rounds = 3\.'):
            load(released('mechanism = "rounds"'))
        with pytest.raises(InvalidRun, match=r"release\.rounds: this key does not belong to mechanism"):
            load(released('mechanism = "suppression"', "rounds = 7"))

    def test_a_mechanism_that_forgets_per_is_refused(self, load: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch) -> None:
        class Forgetful(hf.RoundedProjection):
            """Its budget is for one unit, whatever was asked for."""

            name = "forgetful"

            @classmethod
            def from_run_file(cls, values: Mapping[str, Any], per: Any) -> Any:
                return cls(epsilon=values["epsilon"], per="distance")

        monkeypatch.setitem(registry.MECHANISMS, "forgetful", Forgetful)
        lines = ['mechanism = "forgetful"', "epsilon = 1"]
        assert load(released(*lines, 'per = "distance"')).mechanism.per == "distance"
        with pytest.raises(InvalidRun, match=r'release\.per: mechanism = "forgetful" takes a budget per = "distance" only'):
            load(released(*lines, 'per = "person"'))
        with pytest.raises(InvalidRun, match=r'release\.per: this key is missing: .* Write per = "distance" \([^"]*\)\.$'):
            load(released(*lines))

    def test_an_unknown_mechanism_is_reported_before_its_keys(self, load: Callable[[str], Run]) -> None:
        with pytest.raises(InvalidRun, match=r"release\.mechanism: must be one of"):
            load(released('mechanism = "small-count-rounding"', "base = 3"))


class TestPage:
    PAGE = (ROOT / "docs" / "run-files.md").read_text(encoding="utf-8")
    EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)

    @pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
    def test_examples_load_and_fit_their_tables(self, text: str, load: Callable[[str], Run]) -> None:
        run = load(text)
        rows = compile_rows(run.read_table().universe, run.keep)
        assert len(rows.rows) >= len(run.keep)

    def test_structural_zeros_are_identities_of_single_cells(self, load: Callable[[str], Run]) -> None:
        run = load(next(text for text in self.EXAMPLES if "identities" in text))
        rows = compile_rows(run.read_table().universe, [s for s in run.keep if s.kind == "identity"]).matrix().toarray()
        assert rows.tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]]

    @pytest.mark.parametrize("section", [*Document.model_fields, "answer"])
    def test_every_key_is_documented(self, section: str) -> None:
        own = re.search(rf"^## `\[{section}\]`\n(.*?)(?=^## |\Z)", self.PAGE, re.DOTALL | re.MULTILINE)
        assert own is not None
        documented = {word for row in re.findall(r"^\| (`[^|]*) \|", own[1], re.MULTILINE) for word in re.findall(r"`(\w+)", row)}
        assert set(keys_at((section,))) <= documented

    def test_at_least_one_example_for_each_kind_of_table(self) -> None:
        assert len(self.EXAMPLES) >= 3
