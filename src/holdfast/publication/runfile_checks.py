"""What a run file must satisfy beyond the types of its keys: which keys go together, that its files are there, that budgets are budgets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from holdfast.errors import InvalidStatement
from holdfast.invariants import identity, margin, total
from holdfast.invariants.statements import Statement
from holdfast.publication.runfile_errors import Place, Problem, file_label, nearest, quoted
from holdfast.publication.runfile_sections import MECHANISMS, KeepSection, Number, ReleaseSection, StatementsSection, TableSection
from holdfast.tables.databases import is_url

_NEEDS_ONE = "give rho, or sigma_squared, or epsilon and delta"

_CHAINS = ("sampler", "allow_estimated", "eta")

_TAKES: dict[str, tuple[str, ...]] = {
    "generalized-laplace": ("epsilon", "norm", *_CHAINS),
    "generalized-gaussian": ("rho", "sigma_squared", "epsilon", "delta", "calibration", *_CHAINS),
    "rounded-projection": ("epsilon",),
    "suppression": (),
}
"""The keys that each mechanism takes beside `per`."""

assert tuple(_TAKES) == MECHANISMS


def check_source(table: TableSection, folder: str) -> None:
    """That the source is there, and that a query goes with a database and only with one."""
    if is_url(table.source):
        if table.query is None:
            raise Problem(("table", "query"), 'this key is missing: a database URL needs a query. Write query = "SELECT ... FROM ...".')
        return
    if table.query is not None:
        raise Problem(("table", "query"), "this key belongs to a database URL, and source is none. Leave it out.")
    check_file(("table", "source"), table.source, folder)


def check_file(place: Place, path: str, folder: str) -> None:
    """That a file is there; nothing is read."""
    full = os.path.join(folder, path)
    if not os.path.isfile(full):
        what = "is a folder" if os.path.isdir(full) else "is not there"
        raise Problem(place, f"{file_label(path)} {what}. Check the name; paths start at the folder of the run file.")


def check_universe(table: TableSection, folder: str) -> None:
    """Which keys go together, for counts and for records."""
    listed = isinstance(table.cells, list)
    for key, others in (("cell_key", (table.count, *table.cells)), ("record_key", (table.id, *table.cells))):
        name = getattr(table, key)
        if name is not None and name in others:
            raise Problem(("table", key), f"column {quoted(name)} is named twice. Name the column that holds the keys.")
    if table.count is not None:
        if not listed:
            raise Problem(("table", "cells"), 'with count, cells is a list of columns. Got a table. Write cells = ["state", "county"].')
        if table.count in table.cells:
            raise Problem(("table", "count"), f"column {quoted(table.count)} stands in cells too. Name the column that holds the counts.")
        for key, instead in (("universe", ""), ("id", ""), ("record_key", " The column with the key of each cell is cell_key.")):
            if getattr(table, key) is not None:
                raise Problem(
                    ("table", key), f"this key is for records, and count says that the source holds counts. Leave one out.{instead}"
                )
    elif table.cell_key is not None:
        raise Problem(
            ("table", "cell_key"),
            "this key is for counts, and without count the source holds records. Name the column with the key of each record: "
            f"record_key = {quoted(table.cell_key)}.",
        )
    elif listed and table.universe is None:
        raise Problem(
            ("table", "cells"),
            "the universe of records must be declared, and cells is only a list of columns. Declare the codes, such as "
            'cells = {sex = ["F", "M"]}, or add universe; if the source holds counts, name their column: count = "population".',
        )
    elif not listed and table.universe is not None:
        raise Problem(("table", "universe"), "cells declares the universe already. Leave universe out, or let cells be a list of columns.")
    if table.universe not in (None, "observed"):
        assert table.universe is not None
        check_file(("table", "universe"), table.universe, folder)
    if isinstance(table.cells, dict):
        for column, codes in table.cells.items():
            if isinstance(codes, str):
                check_file(("table", "cells", column), codes, folder)
    _check_trees(table, folder)


def _check_trees(table: TableSection, folder: str) -> None:
    for column, tree in table.hierarchies.items():
        place = ("table", "hierarchies", column)
        _check_columns(place, [column], list(table.cells))
        if table.universe == "observed":
            raise Problem(place, "an observed universe takes no hierarchies. Declare the codes under cells.")
        if isinstance(table.cells, dict) and str(table.cells[column]).lower().endswith(".hrc"):
            raise Problem(place, "cells gives this column a code tree already. Leave one of them out.")
        for key in ("tree", "parents"):
            path = getattr(tree, key)
            if path is not None:
                check_file((*place, key), path, folder)


def _check_columns(place: Place, names: Iterable[str], cells: list[str]) -> None:
    for name in names:
        if name not in cells:
            close = nearest(name, cells)
            raise Problem(place, f"cells has no column {quoted(name)}. {close}Columns: {', '.join(map(quoted, cells))}.")


def checked_options(release: ReleaseSection) -> dict[str, str]:
    """The mechanism's keys as the file writes them; refuses those that do not belong to it, and budgets that cannot be."""
    name, numbers = release.mechanism, release.numbers()
    words = {key: getattr(release, key) for key in ("norm", "calibration", "sampler") if getattr(release, key) is not None}
    if release.allow_estimated:
        words["allow_estimated"] = "true"
    for key in (*numbers, *words):
        if key not in _TAKES[name]:
            takes = f"It takes {', '.join(_TAKES[name])}" if _TAKES[name] else "It takes no parameters"
            raise Problem(("release", key), f'this key does not belong to mechanism = "{name}". {takes}. Leave {key} out.')
    if name == "generalized-gaussian":
        _check_gaussian(release, numbers)
    elif "epsilon" in _TAKES[name] and release.epsilon is None:
        raise Problem(("release", "epsilon"), f'this key is missing: mechanism = "{name}" needs it. Write epsilon = "0.25".')
    for key, number in numbers.items():
        _check_number(key, number)
    return {**{key: number.text for key, number in numbers.items()}, **words}


def _check_gaussian(release: ReleaseSection, numbers: Mapping[str, Number]) -> None:
    if "delta" in numbers and "epsilon" not in numbers:
        raise Problem(("release", "epsilon"), "this key is missing: delta goes with epsilon. Give both, or rho alone.")
    ways = [key for key in ("rho", "sigma_squared", "epsilon") if key in numbers]
    if len(ways) > 1:
        raise Problem(("release", ways[1]), f"{' and '.join(ways)} are given together, and each sets the noise: {_NEEDS_ONE}.")
    if not ways:
        raise Problem(("release", "rho"), f"the budget is missing: {_NEEDS_ONE}.")
    if ways == ["epsilon"] and "delta" not in numbers:
        advice = 'Add delta = "1e-9", or use rho; mechanism = "generalized-laplace" takes epsilon alone.'
        raise Problem(("release", "delta"), f"this key is missing: a Gaussian promises epsilon only together with delta. {advice}")
    if release.sampler not in (None, "auto") and (ways != ["epsilon"] or release.per != "unit"):
        told = 'a Markov chain needs a promise in epsilon and delta per unit of distance. Give both with per = "unit", or sampler = "auto".'
        raise Problem(("release", "sampler"), told)
    if release.calibration is not None and ways != ["epsilon"]:
        raise Problem(("release", "calibration"), "this key goes with epsilon and delta. Leave it out.")
    if release.calibration is not None and release.per == "person":
        told = 'this key goes with per = "unit": one person is at one distance, and the least noise for it is taken. Leave it out.'
        raise Problem(("release", "calibration"), told)


def _check_number(key: str, number: Number) -> None:
    place, value = ("release", key), number.value
    if value == 0 and key in ("epsilon", "rho"):
        raise Problem(
            place,
            'a budget of zero publishes nothing about the cells: use mechanism = "suppression", which publishes the kept totals alone.',
        )
    if key == "delta" and value == 0:
        raise Problem(
            place, 'must be greater than zero: no Gaussian reaches 0. Write delta = "1e-9", or use mechanism = "generalized-laplace".'
        )
    if key == "delta" and value >= 1:
        raise Problem(place, f'must be less than 1: a larger delta promises nothing. Got {number.text}. Write delta = "1e-9".')
    if key == "eta" and value >= 1:
        raise Problem(place, f'must be less than 1: it is a probability. Got {number.text}. Write eta = "1/1000".')
    if value <= 0:
        raise Problem(place, f"must be greater than zero. Got {number.text}.")


def statements(keep: KeepSection, cells: list[str]) -> list[Statement]:
    """The statements of [keep]; their columns must be among the cells."""
    made = _statements_of(keep, ("keep",), cells)
    if keep.identities is not None:
        made += [identity(statement) for statement in _statements_of(keep.identities, ("keep", "identities"), cells)]
    return made


def _statements_of(keep: StatementsSection, base: Place, cells: list[str]) -> list[Statement]:
    made: list[Statement] = [total()] if keep.total else []

    def add(place: Place, columns: Mapping[str, Iterable[str]], build: Callable[[], Statement]) -> None:
        for key, names in columns.items():
            _check_columns((*place, key) if key else place, names, cells)
        try:
            made.append(build())
            return
        except InvalidStatement as error:
            told = str(error)
        raise Problem(place, told)

    for number, columns in enumerate(keep.margins):
        add((*base, "margins", number), {"": columns}, lambda columns=columns: margin(*columns))  # type: ignore[misc]
    for number, said in enumerate(keep.subsets):
        column = [] if said.column is None else [said.column]
        add((*base, "subsets", number), {"column": column, "by": said.by}, said.statement)
    for number, named in enumerate(keep.areas):
        add((*base, "areas", number), {"column": [named.column], "by": named.by}, named.statement)
    for number, rows in enumerate(keep.linear):
        add((*base, "linear", number), {}, rows.statement)
    return made
