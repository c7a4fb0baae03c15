"""Run files: a release described in TOML, in the office's words. docs/run-files.md documents every key.

`load_run` reads the run file alone, and checks all that can be checked without the table. The confidential source is opened by
`run.read_table()` only. The file says whether a budget is for one person or one unit of distance; the mechanism converts it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from holdfast.errors import HoldfastError, InvalidHierarchy, InvalidParameter, InvalidRun
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import lattice
from holdfast.ledger.disjoint import Disjoint
from holdfast.ledger.embedded import NO_LEDGER
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.registry import MECHANISMS
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.publication.answer import declared_grid, on_the_grid, read_invariants
from holdfast.publication.maps import MapRequest, map_request
from holdfast.publication.order import UNNAMED
from holdfast.runfiles.checks import check_file, check_source, check_universe, constraints, mechanism_of, written_options
from holdfast.runfiles.messages import Problem, dotted_path, explain, parse_toml, quote, read_toml
from holdfast.runfiles.sections import (
    FOR_ANSWERS,
    AnswerDocument,
    AnswerSection,
    Document,
    ReleaseSection,
    TableSection,
    TreeSection,
    keys_at,
    section_keys,
)
from holdfast.tables import Declarations, Hierarchy, Table, Universe
from holdfast.tables.answers import read_answers
from holdfast.tables.databases import is_url
from holdfast.tables.labels import ColumnLabels, Labels, read_labels
from holdfast.tables.measure import AnswerGrid, reads_bits
from holdfast.tables.readers import is_table_name, open_source, read_codes, source_name
from holdfast.tables.sampling import read_sample_key
from holdfast.tables.text_files import Reading
from holdfast.wording.answers import for_answers_only, for_counts_only
from holdfast.wording.budget import who

Made = TypeVar("Made", Table, Declarations)

_FILE_URL = re.compile(r"\A((?:sqlite(?:\+\w+)?|duckdb):///)(?!/|:memory:|file:)(.+)\Z", re.IGNORECASE | re.DOTALL)
"""A database that is a file, named from the folder of the run file."""


@dataclass(frozen=True)
class Run:
    """What a run file says, checked. Public facts only: no count stands here, and the source is not shown.

    Given:       a file read by `load_run`.
    Guarantees:  parameters are exact; `written` are the mechanism's keys, each with its text as the file writes it. Paths start at the
                 folder of the run file.
    """

    path: Path
    id: str
    date: str | None
    office: str | None
    approver: str | None
    written: tuple[tuple[str, str], ...]
    mechanism: Mechanism
    """With its parameters as the file gives them, for what its `per` says."""
    formats: tuple[str, ...] | None
    formulas: str
    view_base: int | None
    """The base of the publication view that is written too; None for no view."""
    map: MapRequest | None
    """The map that the report has; None for no map."""
    sign: Path | None
    ledger: str | None = field(repr=False)
    """Where the run file says its ledger is: a file or a URL, or "none". Shown nowhere: a URL may hold a password."""
    witness: Path | None
    """A folder, beside the user's state folder, in which the ledger's head is remembered."""
    dataset: str
    """The account that is charged: by default the table's name, or the name of the source without its ending."""
    revises: Path | None
    """The folder of the earlier release of the same population that this one revises."""
    disjoint: Disjoint | None
    """Earlier releases of the data set with which this one shares no person, and why."""
    revises_signer: Path | None
    """The public key that must have signed that earlier release."""
    allow_exposed: int
    """How many cells may be published as they are because the kept totals fix them: none, unless the run file says so."""
    constraints: tuple[Constraint, ...]
    _folder: str = field(repr=False)
    _table: TableSection = field(repr=False)
    _answer: AnswerSection | None = field(default=None, repr=False)
    """Where the run is of real-valued answers; `_table` then says where they are."""

    @property
    def keep(self) -> list[Constraint]:
        """The constraints under [keep], in the order total, margins, subsets, areas, linear, identities."""
        return list(self.constraints)

    @property
    def options(self) -> dict[str, str]:
        """The mechanism's keys as the file writes them, such as {"epsilon": "0.192"}."""
        return dict(self.written)

    @property
    def max_records(self) -> int:
        """The most records one person may have, as the run file says."""
        return self._table.max_records

    @property
    def description(self) -> str:
        """The mechanism and its parameters in one line."""
        name = self.mechanism.name.replace("-", " ")
        said = ", ".join(f"{key} = {text}" for key, text in self.written)
        if not said:
            return name
        if not self.mechanism.has_budget:
            return f"{name}: {said}"
        if self.mechanism.per_distance:
            return f"{name}: {said}, per unit of distance"
        if self._answer is not None:
            return f"{name}: {said}, for one {self._table.protect}"
        records = "1 record" if self.max_records == 1 else f"{self.max_records} records"
        return f"{name}: {said}, for one {self._table.protect} of at most {records} {who(self._table.protect)} changes cell"

    def read_table(self) -> Table:
        """Read the confidential source. CONFIDENTIAL; errors are those of Table, and name file, column and row, never a value."""
        made = self._read(Table) if self._answer is None else self._blame_key(partial(self._read_answers, self._answer))
        return made.with_labels(self._labels(made.universe)) if self._table.labels else made

    def read_declarations(self) -> Declarations:
        """The table without its counts, for a plan: the columns of codes are read, and nothing where the universe is declared."""
        made = self._read(Declarations)
        if self._table.labels:
            made = replace(made, universe=made.universe.with_labels(self._labels(made.universe)))
        return made if self._answer is None else replace(made, measure=self._grid(self._answer, made.universe))

    def missing_secret(self) -> str | None:
        """What a release will need to sample records and does not find here; None where nothing is missing. No secret is kept."""
        if not isinstance(self._table, TableSection) or self._table.over != "sample":
            return None
        try:
            read_sample_key(None if self._table.sample_key is None else self._at(self._table.sample_key))
        except HoldfastError as error:
            return str(error)
        return None

    def _grid(self, said: AnswerSection, cells: Universe) -> AnswerGrid:
        """The grid of the answers, from what the file says: no answer is looked at."""
        mechanism = self.mechanism
        assert isinstance(mechanism, SubspaceMechanism)
        declared: dict[str, Any] = {"step": said.step, "on_grid": said.on_grid, "round_totals": said.round_totals}
        return declared_grid(lattice(cells, read_invariants(self.keep, len(cells))), mechanism, said.sensitivity, **declared)

    def _read_answers(self, said: AnswerSection) -> Table:
        table, data = said.table, self._data()
        reading = Reading(separator=table.separator, encoding=table.encoding, sheet=table.sheet)
        universe = None if table.universe is None else self._listed_universe(table.universe)
        trees = None if universe is not None else self._trees(lambda column: _codes_of(data, column, table.query, reading))
        cells, values = read_answers(
            data,
            said.cells,
            said.value,
            universe=universe,
            public=table.public,
            hierarchies=trees,
            allow_similar_codes=table.allow_similar_codes,
            query=table.query,
            reading=reading,
            binary=reads_bits(said.step, said.on_grid),
        )
        grid = self._grid(said, cells)
        return on_the_grid(values, lattice(cells, self.keep), grid, value=said.value, protect=said.protect, name=said.name)

    def _read(self, kind: type[Made]) -> Made:
        section, data = self._table, self._data()
        options: tuple[str, ...] = ("separator", "encoding", "sheet", "query_seconds")
        names = ("protect", "max_records", "name", "query", "allow_similar_codes", "allow_total_names", *options)
        common: dict[str, Any] = {name: getattr(section, name) for name in names}
        if section.count is not None:
            cells, count = section.cells, section.count
            assert isinstance(cells, list)
            common |= {"cell_key": section.cell_key, "public_columns": section.public_columns, "totals": section.totals}
            if section.universe is not None:
                common |= {"universe": self._listed_universe(section.universe)}
            else:
                how = Reading(**{name: common[name] for name in options})
                common |= {"hierarchies": self._trees(lambda column: self._cell_codes(data, column, how)), "public": section.public}
            return self._blame_key(lambda: kind.from_counts(data, cells, count, **common))
        common |= {"id": section.id, "record_key": section.record_key, "over": section.over, "sample_by": section.sample_by}
        common |= {"sample_key": None if section.sample_key is None else self._at(section.sample_key)}
        if isinstance(section.cells, dict):
            codes = {column: self._codes(column, given) for column, given in section.cells.items()}
            trees = self._trees(lambda column: codes[column])
            return self._blame_key(lambda: kind.from_records(data, codes, hierarchies=trees, **common))
        if section.universe == "observed":
            return self._blame_key(lambda: kind.from_records(data, section.cells, universe="observed", **common))
        assert section.universe is not None
        universe = self._listed_universe(section.universe)
        return self._blame_key(lambda: kind.from_records(data, universe=universe, **common))

    def _labels(self, cells: Universe) -> Labels:
        """What columns and codes are called; errors name the key."""
        try:
            return self._read_labels().fit_to(cells)
        except HoldfastError as error:
            error.field = f"{'table' if self._answer is None else 'answer'}.labels"
            raise

    def _read_labels(self) -> Labels:
        made = []
        for column, said in self._table.labels.items():
            if said.file is not None:
                assert said.label is not None
                code = said.code if isinstance(said.code, list) else [said.code or column]
                made.append(read_labels(self._at(said.file), column, code, said.label, said.name))
            else:
                made.append(ColumnLabels(column, said.name, codes={(code,): label for code, label in (said.codes or {}).items()}))
        return Labels(tuple(made))

    def _listed_universe(self, name: str) -> Universe:
        """The universe that a file lists."""
        path = self._at(name)
        trees = self._trees(lambda column: _codes_of(path, column, None))
        columns = list(self._table.cells)
        allow = {name: getattr(self._table, name) for name in ("allow_similar_codes", "allow_total_names")}
        return Universe.listed(path, columns, hierarchies=trees, **allow)

    def _cell_codes(self, data: str, column: str, reading: Reading) -> list[str]:
        """The codes of a column of the source, but those of total rows."""
        totals = self._table.totals.get(column, ())
        return [code for code in _codes_of(data, column, self._table.query, reading) if code not in totals]

    def _blame_key(self, read: Callable[[], Made]) -> Made:
        """What `read` gives; its error names the key of the run file that is to blame."""
        try:
            return read()
        except HoldfastError as error:
            column = (error.details or {}).get("column")
            named = (key for key in ("count", "cell_key", "id", "record_key") if column is not None and getattr(self._table, key) == column)
            error.field = f"table.{error.field or next(named, 'source' if column is None else 'cells')}"
            raise

    def _data(self) -> str:
        source = self._table.source
        return _FILE_URL.sub(lambda url: f"{url[1]}{self._at(url[2])}", source) if is_url(source) else self._at(source)

    def _at(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _codes(self, column: str, given: list[str] | str) -> Any:
        if isinstance(given, list):
            return given
        path = self._at(given)
        return Hierarchy.from_tree(Path(path)) if path.lower().endswith(".hrc") else _codes_of(path, column, None)

    def _trees(self, codes: Callable[[str], Iterable[str]]) -> dict[str, Hierarchy] | None:
        trees = {}
        for column, said in self._table.hierarchies.items():
            try:
                tree = self._tree(column, said, codes)
                trees[column] = tree.only(codes(column)) if said.shared else tree
            except (InvalidHierarchy, InvalidParameter) as error:
                field = dotted_path(("table", "hierarchies", column))
                raise type(error)(f"{field}: {error}", field=field) from None
        return trees or None

    def _tree(self, column: str, said: TreeSection, codes: Callable[[str], Iterable[str]]) -> Hierarchy:
        if said.tree is not None:
            return Hierarchy.from_tree(Path(self._at(said.tree)), levels=said.levels)
        if said.parents is not None:
            return Hierarchy.from_parents(self._at(said.parents), code=said.code, parent=said.parent, levels=said.levels)
        assert said.prefixes is not None
        return Hierarchy.from_prefixes(codes(column), said.prefixes, levels=said.levels)


def _levels(table: TableSection) -> list[str]:
    """The names that hierarchies give to their levels."""
    return [level for said in table.hierarchies.values() for level in said.levels or ()]


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read and check a run file; the confidential source is not opened.

    Guarantees:  whatever the file holds, the answer is a Run or InvalidRun with one message: file, line, field, what is wrong, what to do.
    """
    name = os.fsdecode(path)
    toml = ""
    try:
        if is_table_name(name) and os.path.isfile(name):
            raise Problem((), f"this is a table. A run file is needed: holdfast init {shlex.quote(name)}")
        toml = read_toml(name)
        return _run_of(name, toml)
    except Problem as problem:
        refusal = InvalidRun(problem.message(name, toml), field=dotted_path(problem.place) or None)
        refusal.text = problem.text
    # Outside of the handler: what Pydantic and tomllib quote must not travel along.
    raise refusal


def _run_of(name: str, toml: str) -> Run:
    document = _document(toml)
    folder = os.path.dirname(os.path.abspath(name))
    answer = document.answer if isinstance(document, AnswerDocument) else None
    table, release = document.table if isinstance(document, Document) else document.answer.table, document.release
    mechanism = mechanism_of(release, table, folder)
    if mechanism.takes_answers is (answer is None):
        said = for_answers_only if answer is None else for_counts_only
        raise Problem(("release", "mechanism"), said(mechanism.name))
    try:
        check_source(table, folder)
        check_universe(table, folder)
    except Problem as problem:
        raise (problem if answer is None else in_answer(problem)) from None
    if release.revises_signer is not None and release.revises is None:
        raise Problem(("release", "revises_signer"), "revises_signer goes with revises, the folder of the release that it signed.")
    for key in ("sign", "map", "revises_signer"):
        if (path := getattr(release, key)) is not None:
            check_file(("release", key), path, folder)
    return Run(
        path=Path(name),
        id=release.id,
        date=release.date,
        office=release.office,
        approver=release.approver,
        written=tuple(written_options(release).items()),
        mechanism=mechanism,
        formats=None if release.formats is None else tuple(release.formats),
        formulas=release.formulas,
        view_base=release.view_base,
        map=_map(release, folder),
        sign=None if release.sign is None else Path(folder, release.sign),
        ledger=None if release.ledger is None else _place(release.ledger, folder),
        witness=None if release.witness is None else Path(folder, release.witness),
        dataset=release.dataset or table.name or source_name(table.source) or UNNAMED,
        revises=None if release.revises is None else Path(folder, release.revises),
        disjoint=_disjoint(release, answer),
        revises_signer=None if release.revises_signer is None else Path(folder, release.revises_signer),
        allow_exposed=release.allow_exposed,
        constraints=tuple(constraints(document.keep, list(table.cells), _levels(table))),
        _folder=folder,
        _table=table,
        _answer=answer,
    )


def _disjoint(release: ReleaseSection, answer: AnswerSection | None) -> Disjoint | None:
    """The declaration that no person is in both; Problem where it cannot be made."""
    said, place = release.disjoint, ("release", "disjoint")
    if said is None:
        return None
    if answer is not None:
        raise Problem(place, "real-valued answers cannot be declared disjoint from other releases: their charges add up. Leave it out.")
    if release.id in said.releases:
        raise Problem((*place, "from"), f"{quote(release.id)} is this release itself. Leave it out.")
    try:
        return Disjoint(tuple(said.releases), said.because)
    except InvalidParameter as error:
        raise Problem((*place, "from"), str(error)) from None


def _map(release: ReleaseSection, folder: str) -> MapRequest | None:
    """The map of the report; Problem where keys are missing."""
    if (release.map is None) != (release.map_code is None) or (release.map is None and release.map_level is not None):
        raise Problem(("release", "map"), 'map goes with map_code, the property that holds the codes: map_code = "GEOID".')
    file = None if release.map is None else Path(folder, release.map)
    return map_request(file, release.map_code, release.map_level)


def _place(said: str, folder: str) -> str:
    """Where the run file says its ledger is; "none" is a word and not a file."""
    return said if said == NO_LEDGER or is_url(said) else os.path.join(folder, said)


def in_answer(problem: Problem) -> Problem:
    """Return the problem with [answer] in place of [table], and value in place of count."""
    place = tuple({"table": "answer", "count": "value"}.get(str(part), part) for part in problem.place)
    return Problem(place, problem.text, problem.line)


def _document(toml: str) -> Document | AnswerDocument:
    parsed = parse_toml(toml)
    if "answer" in parsed and "table" in parsed:
        raise Problem(("answer",), "a run file has [table] for counts, or [answer] for real-valued answers. Leave one of them out.")
    model: type[Document | AnswerDocument] = AnswerDocument if "answer" in parsed else Document
    release = parsed.get("release")
    known = keys_at(("release",))
    strange = []
    if isinstance(release, dict) and release.get("mechanism", "") in ("", *MECHANISMS):  # of an unknown mechanism no key is known
        strange = [key for key in release if key not in known]
    errors: list[Any] = [{"type": "extra_forbidden", "loc": ("release", key), "input": None} for key in strange]
    try:
        document = model.model_validate(parsed, context={FOR_ANSWERS: model is AnswerDocument})
        if not errors:
            return document
    except ValidationError as error:
        errors += error.errors(include_url=False)
    raise explain(errors, keys_at, section_keys(model), toml)


def _codes_of(data: str, column: str, query: str | None, reading: Reading | None = None) -> list[str]:
    """The distinct codes of a column, in the order of their first appearance."""
    with open_source(data, query, only=[column], reading=reading) as source:
        (codes,), _ = read_codes(source, [column])
    return [str(code) for code in codes.to_pylist()]
