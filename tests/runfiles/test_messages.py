"""Every mistake in a run file gets one message with file, line and field; nothing in a file leads to anything but a Run or InvalidRun."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.errors import InvalidRun
from holdfast.runfiles.runfile import Run, load_run
from tests.runfiles.test_runfile import DESIGN, FILES, RECORDS, released


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with small tables."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str) -> Run:
    """Load a run file of this text."""
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return load_run(path)


@pytest.fixture
def refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """The message for a run file of this text."""
    monkeypatch.chdir(folder)

    def message(text: str) -> str:
        Path("run.toml").write_text(text, encoding="utf-8")
        with pytest.raises(InvalidRun) as caught:
            load_run("run.toml")
        assert caught.value.__context__ is None  # nothing that quotes the file travels along
        return str(caught.value)

    return message


ANSWER = """\
[answer]
source = "counties.csv"
cells = ["state", "county"]
value = "population"
sensitivity = "1"
public = true
[keep]
margins = [["state"]]
[release]
id = "rates"
mechanism = "projected-gaussian"
"""
LAPLACE = ['mechanism = "generalized-laplace"']
GAUSSIAN = ['mechanism = "generalized-gaussian"']

# One case per entry: what it is, the text of the run file, how the message begins after the name of the file.
# fmt: off
WRONG: list[tuple[str, str, str]] = [
    # [table]
    ("unknown key", DESIGN.replace("source", "souce"),
     "line 2, table.souce: there is no such key. Did you mean source? Keys of table: source, "),
    ("another word", RECORDS.replace("[keep]", 'person = "x"\n[keep]'),
     "line 4, table.person: there is no such key. Did you mean id?"),
    ("key of another section", DESIGN + "allow_similar_codes = true\n",
     "line 13, release.allow_similar_codes: there is no such key. It belongs to [table]: move it there."),
    ("no source", DESIGN.replace("source", "#"),
     'line 1, table.source: this key is missing. Write source = "counties.csv".'),
    ("source type", DESIGN.replace('"counties.csv"', "3"),
     "line 2, table.source: must be a text in double quotes. Got the whole number 3. "),
    ("source list", DESIGN.replace('"counties.csv"', "['a']"),
     "line 2, table.source: must be a text in double quotes. Got a list. "),
    ("source empty", DESIGN.replace('"counties.csv"', '" "'),
     "line 2, table.source: must name a file. Got an empty text."),
    ("no such file", DESIGN.replace('"counties.csv', '"x/count.csv'),
     "line 2, table.source: file 'count.csv' does not exist. Check the name and the folder. (Paths start at"),
    ("a folder", DESIGN.replace('"counties.csv"', '"."'),
     "line 2, table.source: file '.' is a folder. "),
    ("url without query", DESIGN.replace('"counties.csv"', '"sqlite:///a.db"'),
     "line 1, table.query: this key is missing: a database URL needs"),
    ("query without url", DESIGN.replace("[keep]", 'query = "x"\n[keep]'),
     "line 5, table.query: this key belongs to a database URL, and source is"),
    ("no cells", DESIGN.replace("cells ", "#"),
     "line 1, table.cells: this key is missing. "),
    ("cells text", DESIGN.replace('["state", "county"]', '"state"'),
     'line 3, table.cells: must be a list of columns, or a table of codes for each column. Got "state". '),
    ("cells number", DESIGN.replace('"county"]', "1]"),
     "line 3, table.cells: must be a list of columns, or a table of codes for each column. Got a list with the whole number 1."
     " "),
    ("cells empty", DESIGN.replace('["state", "county"]', "[]"),
     "line 3, table.cells: must name at least one column. "),
    ("cells twice", DESIGN.replace('"county"]', '"state"]'),
     'line 3, table.cells: column "state" is named twice. '),
    ("cells declared with count", RECORDS.replace("[keep]", 'count = "n"\n[keep]'),
     "line 3, table.cells: with count, cells is a list of columns. "),
    ("count in cells", DESIGN.replace('"population"', '"county"'),
     'line 4, table.count: column "county" is in cells too. '),
    ("count type", DESIGN.replace('"population"', "true"),
     'line 4, table.count: must be a text in double quotes. Got true. Write count = "population".'),
    ("universe with count", DESIGN.replace("[keep]", 'universe = "observed"\n[keep]'),
     "line 5, table.universe: observed cells are those that have records, "),
    ("universe as a table", DESIGN.replace("[keep]", '[table.universe]\nsex = ["F", "M"]\n[keep]'),
     'line 5, table.universe: must be a text in double quotes. Got a table. Write universe = "observed", or a file that lists the '
     'cells: universe = "cells.csv"; codes stand under [table.cells].'),
    ("id with count", DESIGN.replace("[keep]", 'id = "n"\n[keep]'),
     "line 5, table.id: this key is for records, "),
    ("record_key with count", DESIGN.replace("[keep]", 'record_key = "rkey"\n[keep]'),
     "line 5, table.record_key: this key is for records, and count says that the source holds counts. Leave one out. The column "
     "with the key of each cell is cell_key."),
    ("cell_key without count", RECORDS.replace("[keep]", 'cell_key = "key"\n[keep]'),
     'line 4, table.cell_key: this key is for counts, and without count the source holds records. Name the column with the key '
     'of each record: record_key = "key".'),
    ("cell_key is the count", DESIGN.replace("[keep]", 'cell_key = "population"\n[keep]'),
     'line 5, table.cell_key: column "population" is named twice. '),
    ("cell_key in cells", DESIGN.replace("[keep]", 'cell_key = "county"\n[keep]'),
     'line 5, table.cell_key: column "county" is named twice. '),
    ("record_key in cells", RECORDS.replace("[keep]", 'record_key = "sex"\n[keep]'),
     'line 4, table.record_key: column "sex" is named twice. '),
    ("record_key is the id", RECORDS.replace("[keep]", 'id = "number"\nrecord_key = "number"\n[keep]'),
     'line 5, table.record_key: column "number" is named twice. '),
    ("record_key type", RECORDS.replace("[keep]", "record_key = 1\n[keep]"),
     'line 4, table.record_key: must be a text in double quotes. Got the whole number 1. Write record_key = "rkey".'),
    ("records undeclared", DESIGN.replace("count ", "#"),
     "line 3, table.cells: the universe of records must be declared, "),
    ("universe twice", RECORDS.replace("[keep]", 'universe = "observed"\n[keep]'),
     "line 4, table.universe: cells declares the universe already. "),
    ("universe missing", DESIGN.replace("count  =", "universe ="),
     "line 4, table.universe: file 'population' does not exist. "),
    ("codes empty", RECORDS.replace('["F", "M"]', "[]"),
     'line 3, table.cells.sex: column "sex" needs a list of codes, each a text. Got an empty list. '),
    ("codes numbers", RECORDS.replace('["F", "M"]', "[1.5]"),
     'line 3, table.cells.sex: column "sex" needs a list of codes, each a text. Got a list with the float 1.5. '),
    ("codes nowhere", RECORDS.replace('["F", "M"]', '"x.csv"'),
     "line 3, table.cells.sex: file 'x.csv' does not exist. "),
    ("codes of no kind", RECORDS.replace('["F", "M"]', '"x.txt"'),
     'line 3, table.cells.sex: column "sex" needs a list of codes, or a file of codes (.csv, .tsv, .parquet, .xlsx or .hrc). Got "x.txt".'),
    ("cells no columns", re.sub("cells = .*", "cells = {}", RECORDS),
     "line 3, table.cells: must declare at least one column. "),
    ("max_records zero", RECORDS.replace("[keep]", "max_records = 0\n[keep]"),
     "line 4, table.max_records: is too small. Got the whole number 0. Write max_records = 1."),
    ("max_records huge", RECORDS.replace("[keep]", "max_records = 2147483648\n[keep]"),
     "line 4, table.max_records: is too large. "),
    ("a web address", DESIGN.replace('"counties.csv"', '"https://x.org/t.csv"'),
     "line 2, table.source: must name a file or a database, and is a web address. Download the file, and name it here."),
    ("max_records in quotes", RECORDS.replace("[keep]", 'max_records = "2"\n[keep]'),
     'line 4, table.max_records: must be a whole number. Got "2". Write max_records = 2, without quotes.'),
    ("public in quotes", DESIGN.replace("[keep]", 'public = "true"\n[keep]'),
     'line 5, table.public: must be true or false. Got "true". Write public = true, without quotes.'),
    ("max_records float", RECORDS.replace("[keep]", "max_records = 1.0\n[keep]"),
     "line 4, table.max_records: must be a whole number. Got the float 1.0. "),
    ("tree of no column", DESIGN.replace("[keep]", "[table.hierarchies]\nconty = {prefixes = [1]}\n[keep]"),
     'line 6, table.hierarchies.conty: cells has no column "conty". Did you mean county? One of the two is misspelt'),
    ("tree two ways", DESIGN.replace("[keep]", 'hierarchies.county = {prefixes = [1], tree = "a.hrc"}\n[keep]'),
     "line 5, table.hierarchies.county: give one of tree"),
    ("tree half", DESIGN.replace("[keep]", 'hierarchies.county = {parents = "parents.csv", code = "a"}\n[keep]'),
     "line 5, table.hierarchies.county: parents, code and parent go together"),
    ("tree missing", DESIGN.replace("[keep]", 'hierarchies.county = {tree = "a.hrc"}\n[keep]'),
     "line 5, table.hierarchies.county.tree: file 'a.hrc' does not exist. "),
    ("tree key", DESIGN.replace("[keep]", "hierarchies.county = {prefix = [1]}\n[keep]"),
     "line 5, table.hierarchies.county.prefix: there is no such key. Did you mean prefixes? Keys of table.hierarchies.county: "
     "tree, "),
    ("tree given twice", re.sub("cells = .*", 'cells = {county = "counties.hrc"}\nhierarchies = {county = {prefixes = [2]}}', RECORDS),
     "line 4, table.hierarchies.county: cells gives this column a code tree already. "),
    ("tree observed", re.sub("cells = .*", 'cells = ["county"]\nuniverse = "observed"\nhierarchies = {county = {prefixes = [2]}}', RECORDS),
     "line 5, table.hierarchies.county: an observed universe takes no hierarchies. "),
    # [keep]
    ("margin without brackets", DESIGN.replace('[["state"]]', '["state"]'),
     'line 6, keep.margins[0]: must be a list. Got "state". Write margins = [["state"]].'),
    ("margin as one text", DESIGN.replace('[["state"]]', '["state:county"]'),
     'line 6, keep.margins[0]: must be a list. Got "state:county". Write margins = [["state", "county"]].'),
    ("margin of two columns in one text", DESIGN.replace('[["state"]]', '[["state x county"]]'),
     'line 6, keep.margins[0]: cells has no column "state x county". Write each by itself: ["state", "county"]. '),
    ("margin empty", DESIGN.replace('[["state"]]', '[["state"],\n []]'),
     "line 7, keep.margins[1]: must not be empty. Got an empty list. "),
    ("margin of no column", DESIGN.replace('[["state"]]', '[["stat"]]'),
     'line 6, keep.margins[0]: cells has no column "stat". Did you mean state? One of the two is misspelt, here or under cells. '),
    ("margin twice a column", DESIGN.replace('[["state"]]', '[["state", "state"]]'),
     "line 6, keep.margins[0]: margin names a column twice: state, state. "),
    ("total", DESIGN.replace("[keep]", '[keep]\ntotal = "yes"'),
     'line 6, keep.total: must be true or false. Got "yes". Write total = true.'),
    ("keep key", DESIGN.replace("margins", "margin"),
     "line 6, keep.margin: there is no such key. Did you mean margins? Keys of keep: total, margins, subsets, areas, linear, "
     "identities."),
    ("totals of keep", DESIGN.replace("[keep]", "[keep]\ntotals = true"),
     "line 6, keep.totals: there is no such key. Did you mean total = true, or totals under [table]?"),
    ("subset key", DESIGN.replace("subsets = []", 'subsets = [\n  {where = "state = 1"},\n  {colum = "a"},\n]'),
     "line 9, keep.subsets[1].colum: there is no such key. Did you mean column? Keys of keep.subsets[1]: column, codes, node, "
     "where, by, values."),
    ("subset nothing", DESIGN.replace("subsets = []", "subsets = [{}]"),
     "line 7, keep.subsets[0]: give column with codes or node, or where: "),
    ("subset both", DESIGN.replace("subsets = []", 'subsets = [{column = "state", codes = ["1"], node = "a"}]'),
     "line 7, keep.subsets[0]: give one of codes, node and where, "),
    ("subset column alone", DESIGN.replace("subsets = []", 'subsets = [{column = "state"}]'),
     "line 7, keep.subsets[0]: give one of codes, node and where, "),
    ("subset by", DESIGN.replace("subsets = []", 'subsets = [{where = "a = 1",\nby = ["x"]}]'.replace("\n", " ")),
     'line 7, keep.subsets[0].by: cells has no column "x". Columns: '),
    ("subset codes", DESIGN.replace("subsets = []", 'subsets = [{column = "state", codes = [17]}]'),
     "line 7, keep.subsets[0].codes[0]: must be a text in double quotes. Got the whole number 17. "),
    ("subset code twice", DESIGN.replace("subsets = []", 'subsets = [{column = "state", codes = ["1", "1"]}]'),
     "line 7, keep.subsets[0]: codes name a code twice. "),
    ("areas sets", DESIGN.replace("subsets = []", 'areas = [{column = "state", sets = {}}]'),
     "line 7, keep.areas[0].sets: must not be empty. "),
    ("areas column", DESIGN.replace("subsets = []", '[[keep.areas]]\nsets = {a = ["1"]}\n[[keep.areas]]\ncolumn = "x"\nsets = {a = ["1"]}'),
     "line 7, keep.areas[0].column: this key is missing. "),
    ("areas of no column",
     DESIGN.replace("subsets = []", "".join(f'[[keep.areas]]\ncolumn = "{name}"\nsets = {{a = ["1"]}}\n' for name in ("state", "x"))),
     'line 11, keep.areas[1].column: cells has no column "x". '),
    ("linear ragged", DESIGN.replace("subsets = []", "linear = [{matrix = [[1], [1, 2]]}]"),
     "line 7, keep.linear[0]: matrix has rows of different lengths. "),
    ("linear names", DESIGN.replace("subsets = []", 'linear = [{matrix = [[1]], names = ["a", "b"]}]'),
     "line 7, keep.linear[0]: names has 2 entries for 1 rows. "),
    ("linear float", DESIGN.replace("subsets = []", "linear = [{matrix = [[1.0]]}]"),
     "line 7, keep.linear[0].matrix[0][0]: must be a whole number. Got the float 1.0. "),
    ("identities", DESIGN.replace("subsets = []", "identities = {margins = [{columns = ['x'], values = 0}]}"),
     'line 7, keep.identities.margins[0].columns: cells has no column "x". '),
    ("identity over a margin without values", DESIGN.replace("subsets = []", "identities = {margins = [['county']]}"),
     "line 7, keep.identities.margins[0]: an identity has public values, the same in every data set; without them this margin is a kept "
     "total. "),
    ("identity over the total without a value", DESIGN.replace("subsets = []", "identities = {total = true}"),
     "line 7, keep.identities.total: an identity has a public value, the same in every data set; without one this is a kept total. "),
    ("values of an identity", DESIGN.replace("subsets = []", "identities = {subsets = [{where = 'state = 1', values = '3'}]}"),
     'line 7, keep.identities.subsets[0].values: must be a whole number, or a list with one for each sum. Got "3". '),
    ("values of kept totals", DESIGN.replace("subsets = []", "subsets = [{where = 'state = 1', values = 3}]"),
     "line 5, keep: values belong to identities: kept totals are those of the table. "),
    ("identities key", DESIGN.replace("subsets = []", "identities = {identities = {}}"),
     "line 7, keep.identities.identities: there is no such key. "),
    # [release]
    ("no id", DESIGN.replace("id =", "# ="),
     'line 8, release.id: this key is missing. Write id = "counties-2030-v1".'),
    ("id with a blank", DESIGN.replace("counties-2030-v1", "a b"),
     "line 9, release.id: must be a text of up to 100 letters, digits, '.', '_' or '-', the first a letter or digit. "
     'Got "a b". '),
    ("id as a path", DESIGN.replace("counties-2030-v1", "../a"),
     "line 9, release.id: must be a text of up to 100 letters"),
    ("id number", DESIGN.replace('"counties-2030-v1"', "7"),
     "line 9, release.id: must be a text of up to 100 letters"),
    ("date", released(*LAPLACE, "epsilon = 1", 'date = "2030-02-30"'),
     'line 12, release.date: must be a day of the calendar, as year-month-day. Got "2030-02-30". '),
    ("date and time", released(*LAPLACE, "epsilon = 1", "date = 2030-02-01T00:00:00"),
     "line 12, release.date: must be a day of the calendar, as year-month-day. Got the time 2030-02-01T00:00:00. "),
    ("no mechanism", released("epsilon = 1"),
     'line 8, release.mechanism: this key is missing. Write mechanism = "generalized-laplace".'),
    ("mechanism", DESIGN.replace("-laplace", "-laplac"),
     'line 10, release.mechanism: must be one of "generalized-laplace", "generalized-gaussian", "rounded-projection", '
     '"conditional", "suppression", "cell-key". '
     'Got "generalized-laplac". Did you mean generalized-laplace?'),
    ("mechanism unbuilt", DESIGN.replace("generalized-laplace", "topdown"),
     'line 10, release.mechanism: must be one of "generalized-laplace", "generalized-gaussian", "rounded-projection", '
     '"conditional", "suppression", "cell-key". Got "topdown".'),
    ("per", DESIGN.replace('"distance"', '"persons"'),
     'line 12, release.per: must be one of "person", "distance". Got "persons". The first is what protect says under [table]. Did you mean '
     "person?"),
    ("per list", DESIGN.replace('"distance"', "[]"),
     'line 12, release.per: must be a text in double quotes. Got an empty list.'),
    ("no per", released(*LAPLACE, "epsilon = 1"),
     'line 10, release.per: this key is missing: it says what the budget is for. Write per = "person" (epsilon = 1 for one person '
     'who changes cell) or per = "distance" (epsilon = 1 for each unit of l1 distance between two tables, so epsilon = 2 for one person '
     "who changes cell)."),
    ("no per with rho", released(*GAUSSIAN, "rho = 1").replace('"population" ', '"population"\nmax_records = 3\nprotect = "household" #'),
     'line 12, release.per: this key is missing: it says what the budget is for. Write per = "household" (rho = 1 for one '
     'household that changes cell with 3 records) or per = "distance" (rho = 1 for each unit of squared l2 distance between two tables, so '
     "rho = 18 for one household that changes cell with 3 records)."),
    ("no per with a chain", released(*GAUSSIAN, "epsilon = 1", 'delta = "1e-6"', 'sampler = "line_gibbs"'),
     'line 10, release.per: this key is missing: it says what the budget is for. Write per = "distance" (epsilon = 1, delta = 1e-6 for '
     "each unit of l2 distance between two tables, so epsilon = 1.42, delta = 1.82e-6 for one person who changes cell)."),
    ("per for suppression", released('mechanism = "suppression"', 'per = "person"'),
     'line 11, release.per: this key says what a budget is for, and mechanism = "suppression" has none. Leave it out.'),
    ("per for sigma_squared", released(*GAUSSIAN, "sigma_squared = 4", 'per = "distance"'),
     'line 12, release.per: this key says what a budget is for, and mechanism = "generalized-gaussian" with sigma_squared = 4 has none. '),
    ("norm", released(*LAPLACE, "epsilon = 1", 'norm = "L1"'),
     'line 12, release.norm: must be one of "l1", "l2". Got "L1". Did you mean l1?'),
    ("float", DESIGN.replace('"0.192"', "0.250"),
     'line 11, release.epsilon: must be exact, because privacy depends on it. Got the float 0.250. Write epsilon = "0.250".'),
    ("float with exponent", released(*GAUSSIAN, "epsilon = 1", "delta = 1e-6"),
     'line 12, release.delta: must be exact, because privacy depends on it. Got the float 1e-6. Write delta = "1e-6".'),
    ("float infinite", DESIGN.replace('"0.192"', "inf"),
     "line 11, release.epsilon: must be a finite exact number. Got the float inf. "),
    ("number as a word", DESIGN.replace('"0.192"', '"small"'),
     'line 11, release.epsilon: must be a decimal or rational number of ordinary length, such as "0.25", "1/4" or "1e-10". Got'
     ' "small".'),
    ("number over zero", DESIGN.replace('"0.192"', '"1/0"'),
     "line 11, release.epsilon: must be a decimal or rational number"),
    ("number as a list", DESIGN.replace('"0.192"', "[1]"),
     "line 11, release.epsilon: must be an exact number"),
    ("number as a bool", DESIGN.replace('"0.192"', "true"),
     "line 11, release.epsilon: must be an exact number"),
    ("number too long", DESIGN.replace('"0.192"', "9" * 500),
     "line 11, release.epsilon: must be a decimal or rational number of ordinary length"),
    ("no epsilon", released(*LAPLACE),
     'line 8, release.epsilon: this key is missing: mechanism = "generalized-laplace" needs it. '),
    ("epsilon zero", DESIGN.replace('"0.192"', '"0"'),
     'line 11, release.epsilon: a budget of zero publishes nothing about the cells: use mechanism = "suppression", which '
     "publishes the kept totals alone."),
    ("rho zero", released(*GAUSSIAN, "rho = 0"),
     'line 11, release.rho: a budget of zero publishes nothing about the cells: use mechanism = "suppression", '),
    ("epsilon negative", DESIGN.replace('"0.192"', '"-1/4"'),
     "line 11, release.epsilon: must be greater than zero. Got -1/4."),
    ("sigma_squared zero", released(*GAUSSIAN, "sigma_squared = 0"),
     "line 11, release.sigma_squared: must be greater than zero. Got 0."),
    ("rho negative", released(*GAUSSIAN, "rho = -2"),
     "line 11, release.rho: must be greater than zero. Got -2."),
    ("delta zero", released(*GAUSSIAN, "epsilon = 1", "delta = 0"),
     "line 12, release.delta: must be greater than zero: no Gaussian reaches 0. "),
    ("delta one", released(*GAUSSIAN, "epsilon = 1", "delta = 1"),
     "line 12, release.delta: must be less than 1: a larger delta promises nothing. Got 1. "),
    ("delta negative", released(*GAUSSIAN, "epsilon = 1", 'delta = "-0.1"'),
     "line 12, release.delta: must be greater than zero. Got -0.1."),
    ("two budgets", released(*GAUSSIAN, "rho = 1", "epsilon = 1"),
     "line 12, release.epsilon: rho and epsilon are given together, and each sets the noise: give rho, or sigma_squared, or "
     "epsilon and delta."),
    ("three budgets", released(*GAUSSIAN, "rho = 1", "epsilon = 1", "sigma_squared = 1"),
     "line 13, release.sigma_squared: rho and sigma_squared and epsilon are given together"),
    ("decimal comma", released(*LAPLACE, 'epsilon = "1,5"'),
     'line 11, release.epsilon: must be a decimal or rational number of ordinary length, such as "0.25", "1/4" or "1e-10". Got "1,5". '
     'Write epsilon = "1.5", with a point.'),
    ("budget of another mechanism", released(*LAPLACE, "rho = 1"),
     'line 11, release.rho: this key does not belong to mechanism = "generalized-laplace". It takes epsilon, norm, sampler, '
     "allow_estimated, eta. Leave rho out"),
    ("per of nobody", released(*LAPLACE, "epsilon = 1", 'per = "household"'),
     'line 12, release.per: must be one of "person", "distance". Got "household". The first is what protect says under [table].'),
    ("path with backslashes", DESIGN.replace('"counties.csv"', '"C:\\data\\t.csv"'),
     "line 2: this is not TOML: unescaped"),
    ("no budget", released(*GAUSSIAN),
     "line 10, release.rho: the budget is missing: give rho, or sigma_squared, or epsilon and delta."),
    ("no delta", released(*GAUSSIAN, "epsilon = 1"),
     "line 10, release.delta: this key is missing: a Gaussian promises epsilon only together with delta. "),
    ("chain with rho", released(*GAUSSIAN, "rho = 1", 'sampler = "line_gibbs"'),
     'line 12, release.sampler: a Markov chain needs a promise in epsilon and delta per unit of distance. '),
    ("chain per person", released(*GAUSSIAN, "epsilon = 1", 'delta = "1e-6"', 'sampler = "line_gibbs"', 'per = "person"'),
     'line 13, release.sampler: a Markov chain needs a promise in epsilon and delta per unit of distance. '),
    ("unknown sampler", released(*LAPLACE, "epsilon = 1", 'sampler = "fast"'),
     "line 12, release.sampler: "),
    ("eta above one", released(*LAPLACE, "epsilon = 1", 'sampler = "line_gibbs"', "eta = 2"),
     "line 13, release.eta: must be less than 1: it is a probability. "),
    ("delta alone", released(*GAUSSIAN, 'delta = "0.1"'),
     "line 10, release.epsilon: this key is missing: delta goes with epsilon. "),
    ("delta for Laplace", released(*LAPLACE, "epsilon = 1", 'delta = "0.1"'),
     'line 12, release.delta: this key does not belong to mechanism = "generalized-laplace". It takes epsilon, norm, sampler, '
     'allow_estimated, eta. '
     "Leave delta out."),
    ("budget for suppression", released('mechanism = "suppression"', "epsilon = 1"),
     'line 11, release.epsilon: this key does not belong to mechanism = "suppression". It takes no parameters. '),
    ("norm for Gaussian", released(*GAUSSIAN, "rho = 1", 'norm = "l2"'),
     "line 12, release.norm: this key does not belong to"),
    ("calibration for rho", released(*GAUSSIAN, "rho = 1", 'calibration = "tight"'),
     "line 12, release.calibration: this key goes with epsilon and delta. "),
    ("calibration per person", released(*GAUSSIAN, "epsilon = 1", 'delta = "0.1"', 'calibration = "tight"', 'per = "person"'),
     'line 13, release.calibration: this key goes with per = "distance": '),
    ("formats", released(*LAPLACE, "epsilon = 1", 'formats = ["csv", "excel"]'),
     'line 12, release.formats[1]: must be one of "parquet", "csv". Got "excel".'),
    ("formats none", released(*LAPLACE, "epsilon = 1", "formats = []"),
     "line 12, release.formats: must not be empty. "),
    ("formats twice", released(*LAPLACE, "epsilon = 1", 'formats = ["csv", "csv"]'),
     "line 12, release.formats: a format is named twice. "),
    ("sign", released(*LAPLACE, "epsilon = 1", 'sign = "key.pem"', 'per = "person"'),
     "line 12, release.sign: file 'key.pem' does not exist. "),
    ("release key", DESIGN.replace("epsilon", "epsilom"),
     "line 11, release.epsilom: there is no such key. Did you mean epsilon? Keys of release: id, date, office, approver, mechanism, "),
    ("one word of a mechanism", DESIGN.replace("generalized-laplace", "laplace"),
     'line 10, release.mechanism: must be one of "generalized-laplace", "generalized-gaussian", "rounded-projection", "conditional", '
     '"suppression", "cell-key". Got "laplace". Did you mean generalized-laplace?'),
    ("one word of a mechanism for answers", ANSWER.replace("projected-gaussian", "laplace"),
     'line 11, release.mechanism: must be one of "projected-laplace", "projected-gaussian", "extended-laplace", "extended-gaussian". '
     'Got "laplace". Did you mean projected-laplace or extended-laplace?'),
    # the whole file
    ("a key of very many parts", DESIGN + "a" + ".a" * 20_000 + " = 1\n",
     "this is not TOML: nested too deep. "),
    ("a unit that a terminal would obey", DESIGN.replace("[keep]", 'protect = "per\\u001bson"\n[keep]', 1),
     "line 5, table.protect: must be a text on one line"),
    ("a distance is nobody", DESIGN.replace("[keep]", 'protect = "distance"\n[keep]', 1),
     'line 5, table.protect: "distance" names nobody: per = "distance" is a budget for one unit of distance. Write protect = "person".'),
    ("per another unit", DESIGN.replace("[keep]", 'protect = "household"\n[keep]', 1).replace('per = "distance"', 'per = "person"'),
     'line 13, release.per: must be one of "household", "distance". Got "person".'),
    ("the word for it before", DESIGN.replace("[keep]", 'unit = "person"\n[keep]', 1),
     "line 5, table.unit: there is no such key. Did you mean protect?"),
    ("unknown section", DESIGN.replace("[keep]", "[kep]"),
     "line 5, kep: there is no such section. Did you mean [keep]? Sections: [table], [keep], [release]."),
    ("a section more", DESIGN + "[budget]\n",
     "line 13, budget: there is no such section. Sections: "),
    ("key outside of a section", "epsilon = 1\n" + DESIGN,
     "line 1, epsilon: there is no such section. epsilon stands in [release]: move it below that line. "),
    ("missing section", re.sub(r"\[keep\].*\[release\]", "[release]", DESIGN, flags=re.DOTALL),
     "keep: this section is missing. Write [keep], and leave it empty if no total is to be kept."),
    ("missing sections", "",
     "table: this section is missing. "),
    ("section as a value", "table = 3\n" + DESIGN[DESIGN.index("[keep]") :],
     "line 1, table: must be a table. Got the whole number 3. "),
    ("section as a list", DESIGN.replace("[table]", "[[table]]"),
     "line 1, table: must be a table. Got a list. "),
    ("no TOML", DESIGN.replace('"counties-2030-v1"', "counties"),
     "line 9: this is not TOML: invalid value at column 6. Put texts in double quotes, lists in brackets; yes is true."),
    ("cut short", DESIGN + 'x = "a',
     "this is not TOML: "),
    ("end of document", DESIGN + "x = [1,",
     "this is not TOML: "),
    ("key twice", DESIGN + 'per = "distance"\n',
     "line 13: this is not TOML: cannot overwrite a value at column "),
    ("too deep", "x = " + "[" * 5000,
     "this is not TOML: nested too deep. "),
    ("too many digits", "x = " + "9" * 5000,
     "this is not TOML: invalid value. "),
]
# fmt: on


class TestWhatIsRefused:
    @pytest.mark.parametrize(("text", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
    def test_one_message_with_file_line_and_field(self, text: str, message: str, refused: Callable[[str], str]) -> None:
        got = refused(text)
        assert got.startswith(("run.toml, " if message.startswith(("line ", "keep: ", "table: ")) else "run.toml: ") + message)
        assert "\n" not in got

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("absent.toml", "absent.toml: the run file does not exist. Check the name and the folder."),
            ("people.csv", "people.csv: this is a table. A run file is needed: holdfast init people.csv"),
            (".", ".: this is a folder. Name the run file in it."),
            ("latin.toml", "latin.toml: the run file is not UTF-8. Save it as UTF-8."),
            ("a\0b", "a\0b: the run file cannot be opened. Check the name, the folder and the rights."),
        ],
        ids=["absent", "table", "folder", "not UTF-8", "no name"],
    )
    def test_no_run_file(self, name: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        Path("latin.toml").write_bytes("name = 'Zürich'".encode("latin-1"))
        with pytest.raises(InvalidRun) as caught:
            load_run(name)
        assert str(caught.value) == message

    def test_a_byte_order_mark_and_windows_line_ends(self, folder: Path) -> None:
        (folder / "run.toml").write_bytes(b"\xef\xbb\xbf" + DESIGN.replace("\n", "\r\n").encode())
        assert load_run(folder / "run.toml").id == "counties-2030-v1"
        (folder / "run.toml").write_bytes(b"\xef\xbb\xbf" + DESIGN.replace("\n", "\r\n").replace('"0.192"', "0.1").encode())
        with pytest.raises(InvalidRun, match=r"line 11, release\.epsilon"):
            load_run(folder / "run.toml")

    @pytest.mark.parametrize(
        "text",
        [
            DESIGN.replace('"counties.csv"', '"postgresql//me:hunter2@host/db"'),
            DESIGN.replace('"counties.csv"', '"postgresql://me:hunter2@host/db"'),
            DESIGN.replace('"counties.csv"', '["postgresql://me:hunter2@host/db"]'),
            DESIGN.replace('"counties.csv"', '"host=x password=hunter2"'),
            DESIGN.replace("source", 'query = "hunter2"\nsource'),
            DESIGN.replace("source", 'password = "hunter2"\nsource'),
            DESIGN.replace("source", "query = ['hunter2']\nsource"),
            DESIGN.replace('"counties-2030-v1"', '"postgresql://me:hunter2@host/db"'),
            DESIGN.replace('"distance"', '"me:hunter2@host"'),
            DESIGN.replace("[keep]", '"postgresql://me:hunter2@host/db" = 1\n[keep]'),
            'source = "postgresql://me:hunter2@host/db"\n' + DESIGN,
            DESIGN.replace('"counties.csv"', '"postgresql://me:hunter2@host/db'),
        ],
    )
    def test_passwords_stay_out(self, text: str, refused: Callable[[str], str]) -> None:
        assert "hunter2" not in refused(text)

    def test_a_password_stays_out_of_reading(self, folder: Path) -> None:
        run = written(folder, DESIGN.replace('"counties.csv"', '"oracle://me:hunter2@host/db"\nquery = "SELECT 1"'))
        with pytest.raises(hf.errors.UnreadableInput) as caught:
            run.read_table()
        assert "hunter2" not in str(caught.value)

    def test_counts_are_not_read(self, refused: Callable[[str], str], folder: Path) -> None:
        (folder / "counties.csv").write_bytes(b"\xff not a table")
        written(folder, DESIGN)
        assert "table" not in refused(DESIGN.replace('"0.192"', "-1"))
