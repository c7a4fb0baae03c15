"""What a run file must satisfy beyond the types of its keys: which keys go together, that its files exist, what its mechanism says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from holdfast.channels import Facts
from holdfast.display import names_in, nearest
from holdfast.errors import InvalidConstraint
from holdfast.exact.formatting import format_short
from holdfast.invariants import identity, margin, total
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import Lattice
from holdfast.mechanisms.keys import GOT, InvalidKey, Key
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.registry import MECHANISMS, mechanism_class
from holdfast.privacy.parameters import DISTANCE
from holdfast.runfiles.messages import Place, Problem, file_label, of_key, quote
from holdfast.runfiles.sections import IdentitiesSection, KeepSection, MarginSection, ReleaseSection, TableSection
from holdfast.tables.databases import is_url
from holdfast.tables.text_files import file_trouble
from holdfast.wording.budget import who


def check_source(table: TableSection, folder: str) -> None:
    """Raise if the source does not exist, or if there is a query without a database or a database without a query."""
    if is_url(table.source):
        if table.source.lower().startswith(("http://", "https://")):
            raise Problem(("table", "source"), "must name a file or a database, and is a web address. Download the file, and name it here.")
        if table.query is None:
            raise Problem(("table", "query"), 'this key is missing: a database URL needs a query. Write query = "SELECT ... FROM ...".')
        return
    if table.query is not None:
        raise Problem(("table", "query"), "this key belongs to a database URL, and source is not a URL. Leave it out.")
    check_file(("table", "source"), table.source, folder)


def check_file(place: Place, path: str, folder: str) -> None:
    """Raise if the file does not exist; nothing is read."""
    trouble = file_trouble(os.path.join(folder, path))
    if trouble is not None:
        raise Problem(place, f"{file_label(path)} {trouble}. (Paths start at the folder of the run file.)")


def check_universe(table: TableSection, folder: str) -> None:
    """Which keys go together, for counts and for records."""
    listed = isinstance(table.cells, list)
    for key, others in (("cell_key", (table.count, *table.cells)), ("record_key", (table.id, *table.cells))):
        name = getattr(table, key)
        if name is not None and name in others:
            raise Problem(("table", key), f"column {quote(name)} is named twice. Name the column that holds the keys.")
    if table.count is not None:
        if not listed:
            raise Problem(("table", "cells"), 'with count, cells is a list of columns. Got a table. Write cells = ["state", "county"].')
        if table.count in table.cells:
            raise Problem(("table", "count"), f"column {quote(table.count)} is in cells too. Name the column that holds the counts.")
        if table.universe == "observed":
            raise Problem(
                ("table", "universe"),
                "observed cells are those that have records, and count says that the source holds counts. Name a file that lists the "
                'cells, such as universe = "cells.csv", or leave universe out.',
            )
        if table.universe is not None and table.public:
            raise Problem(("table", "public"), "universe declares the cells already. Leave public out.")
        for key, instead in (("id", ""), ("record_key", " The column with the key of each cell is cell_key."), ("sample_key", "")):
            if getattr(table, key) is not None:
                raise Problem(
                    ("table", key), f"this key is for records, and count says that the source holds counts. Leave one out.{instead}"
                )
    elif table.public:
        raise Problem(
            ("table", "public"),
            "this key is for counts: it says that the rows of the source are a public list of cells. For records declare the codes under "
            "cells, or name a file under universe. Leave public out.",
        )
    elif table.totals:
        raise Problem(("table", "totals"), "this key is for counts: a record is no total. Leave such rows out of the source.")
    elif table.public_columns:
        raise Problem(("table", "public_columns"), "this key is for counts: records have no public number for each cell. Leave it out.")
    elif table.cell_key is not None:
        raise Problem(
            ("table", "cell_key"),
            "this key is for counts, and without count the source holds records. Name the column with the key of each record: "
            f"record_key = {quote(table.cell_key)}.",
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
    _check_columns(("table", "totals"), table.totals, list(table.cells))
    _check_sample(table, folder)
    _check_trees(table, folder)
    _check_labels(table, folder)


def _check_sample(table: TableSection, folder: str) -> None:
    """Which keys go with over = "sample"."""
    if table.over != "sample":
        for key in ("sample_key", "sample_by"):
            if getattr(table, key):
                raise Problem(("table", key), f'this key goes with over = "sample". Write that line too, or leave {key} out.')
        return
    if table.id is None:
        raise Problem(("table", "over"), 'over = "sample" needs id, the column that identifies the person, and a source of records.')
    if table.record_key is not None:
        raise Problem(("table", "over"), 'over = "sample" and record_key do not go together: a cell\'s key is that of all its records.')
    if table.sample_key is not None:
        check_file(("table", "sample_key"), table.sample_key, folder)


def _check_labels(table: TableSection, folder: str) -> None:
    for column, said in table.labels.items():
        place = ("table", "labels", column)
        _check_columns(place, [column], list(table.cells))
        if isinstance(said.code, list):
            _check_columns((*place, "code"), said.code[:-1], list(table.cells))
        if said.file is not None:
            check_file((*place, "file"), said.file, folder)


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
            several, close = names_in(name, cells), nearest(name, cells)
            which = f"{close}One of the two is misspelt, here or under cells. " if close else ""
            which = f"Write each by itself: [{', '.join(map(quote, several))}]. " if several else which
            raise Problem(place, f"cells has no column {quote(name)}. {which}Columns: {', '.join(map(quote, cells))}.")


def mechanism_of(release: ReleaseSection, table: TableSection, folder: str) -> Mechanism:
    """The mechanism that is asked for; its own keys are read, and checked, by itself."""
    chosen = mechanism_class(release.mechanism)
    keys = {key.name: key for key in chosen.run_file_keys}
    for name in release.own:
        if name not in keys:
            takes = f"It takes {', '.join(keys)}" if keys else "It takes no parameters"
            homes = [quote(kind.name) for kind in MECHANISMS.values() if name in {key.name for key in kind.run_file_keys}]
            other = f", or take mechanism = {' or '.join(homes)}" if 0 < len(homes) <= 2 else ""
            text = f'this key does not belong to mechanism = "{chosen.name}". {takes}. Leave {name} out{other}.'
            raise Problem(("release", name), text)
    for key in keys.values():
        if key.required and key.name not in release.own:
            told = f'this key is missing: mechanism = "{chosen.name}" needs it. Write {key.line}.'
            raise Problem(("release", key.name), told)
    try:
        values = {name: keys[name].read(_place(keys[name], raw, folder)) for name, raw in release.own.items()}
        _check_known(release.per, table.protect)
        made = chosen.from_run_file(values, release.per or (table.protect if chosen.takes_answers else DISTANCE))
        if release.per is None and made.has_budget:
            raise InvalidKey("per", f"this key is missing: it says what the budget is for. {_lines_to_choose(chosen, values, table)}")
        _check_per(made, release.per, table.protect)
        return made
    except InvalidKey as error:
        problem = of_key(error, release.per if error.key == "per" else release.own.get(error.key))
    raise problem


def _place(key: Key, raw: object, folder: str) -> object:
    """The value of a key; the name of a file starts at the folder of the run file."""
    if not key.is_file or not isinstance(raw, str):
        return raw
    check_file(("release", key.name), raw, folder)
    return os.path.join(folder, raw)


def _check_known(per: str | None, protected: str) -> None:
    """Raise InvalidKey if `per` is neither what the table protects nor "distance"."""
    if per not in (None, protected, DISTANCE):
        raise InvalidKey(
            "per",
            f"must be one of {quote(protected)}, {quote(DISTANCE)}. Got {GOT}. The first is what protect says under [table].",
            (protected, DISTANCE),
        )


def _check_per(made: Mechanism, per: str | None, protected: str) -> None:
    """Raise if `per` is given without a budget, or if the mechanism has not taken it over."""
    if per is not None and not made.has_budget:
        given = "".join(f" with {name} = {value}" for name, value in made.shown_parameters.items())
        raise InvalidKey("per", f'this key says what a budget is for, and mechanism = "{made.name}"{given} has none. Leave it out.')
    if per is not None and made.per != per:
        only = made.per or protected
        raise InvalidKey("per", f'mechanism = "{made.name}" takes a budget per = "{only}" only. Write per = "{only}".')


def _lines_to_choose(chosen: type[Mechanism], values: Mapping[str, object], table: TableSection) -> str:
    """The lines that this mechanism takes with these keys, and what each would mean: what one unit costs, and what one person costs."""
    one = f"one {table.protect} {who(table.protect)} changes cell" + (
        "" if table.max_records == 1 else f" with {table.max_records} records"
    )
    lines = []
    for per in (table.protect, DISTANCE):
        with suppress(InvalidKey):
            made = chosen.from_run_file(values, per)
            if made.per == per:
                lines.append(f'per = "{per}" ({_meaning(made, one, table)})')
    return f"Write {' or '.join(lines)}."


def _meaning(made: Mechanism, one: str, table: TableSection) -> str:
    numbers = {} if made.asked is None else made.asked.numbers
    asked = _numbers(numbers)
    if not made.per_distance:
        return f"{asked} for {one}"
    # What a unit of distance costs a person follows from the promise, whatever the cells: the smallest lattice works.
    guarantee = made.channel(Facts(Lattice([[1, 1]]), protect=table.protect, max_records=table.max_records)).guarantee
    cost = guarantee.cost(guarantee.distance.person_moving(table.max_records))
    person = _numbers({name: getattr(cost, name) for name in numbers})
    squared = "squared " if "rho" in numbers else ""
    return f"{asked} for each unit of {squared}{guarantee.distance.distance} between two tables, so {person} for {one}"


def _numbers(values: Mapping[str, Fraction | float]) -> str:
    return ", ".join(f"{name} = {format_short(value)}" for name, value in values.items())


def written_options(release: ReleaseSection) -> dict[str, str]:
    """The mechanism's keys as the file writes them, in the mechanism's order."""
    own = {key.name: release.own[key.name] for key in mechanism_class(release.mechanism).run_file_keys if key.name in release.own}
    return {name: str(raw).lower() if isinstance(raw, bool) else str(raw).strip() for name, raw in own.items()}


def constraints(keep: KeepSection, cells: list[str], levels: Sequence[str] = ()) -> list[Constraint]:
    """The constraints of [keep]; their columns must be among the cells, those of margins and `by` may be levels of hierarchies."""
    made = _constraints_of(keep, ("keep",), cells, levels)
    if keep.identities is not None:
        made += _constraints_of(keep.identities, ("keep", "identities"), cells, levels)
    return made


def _constraints_of(keep: KeepSection | IdentitiesSection, base: Place, cells: list[str], levels: Sequence[str]) -> list[Constraint]:
    made: list[Constraint] = []
    identities = isinstance(keep, IdentitiesSection)

    def add(place: Place, columns: Mapping[str, Iterable[str]], build: Callable[[], Constraint], values: Any = None) -> None:
        for key, names in columns.items():
            _check_columns((*place, key) if key else place, names, cells if key == "column" else [*cells, *levels])
        try:
            made.append(identity(build(), values) if identities else build())
            return
        except InvalidConstraint as error:
            told = str(error)
        raise Problem(place, told)

    if keep.total is not None and keep.total is not False:
        add((*base, "total"), {}, total, keep.total)
    margins: Sequence[MarginSection | list[str]] = keep.margins
    for number, kept in enumerate(margins):
        place = (*base, "margins", number)
        if isinstance(kept, MarginSection):
            add(place, {"columns": kept.columns}, lambda columns=kept.columns: margin(*columns), kept.values)  # type: ignore[misc]
        else:
            add(place, {"": kept}, lambda columns=kept: margin(*columns))  # type: ignore[misc]
    for number, said in enumerate(keep.subsets):
        column = [] if said.column is None else [said.column]
        add((*base, "subsets", number), {"column": column, "by": said.by}, said.constraint, said.values)
    for number, named in enumerate(keep.areas):
        add((*base, "areas", number), {"column": [named.column], "by": named.by}, named.constraint, named.values)
    for number, rows in enumerate(keep.linear):
        add((*base, "linear", number), {}, rows.constraint)
    return made
