"""The sections of a run file as Pydantic models: names and types of all keys, the same as in Python."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from holdfast.card.parts import IDENTIFIER_PATTERN, is_day
from holdfast.errors import InvalidParameter
from holdfast.invariants import areas, linear, subset
from holdfast.invariants.constraints import Areas, Linear, Subset
from holdfast.ledger.disjoint import MAX_BECAUSE, check_because
from holdfast.ledger.values import MAX_NAME, name_of
from holdfast.mechanisms.keys import GOT, InvalidKey, Key, exact_number
from holdfast.mechanisms.registry import MECHANISMS
from holdfast.privacy.parameters import DISTANCE
from holdfast.publication.order import IDENTIFIER_RULE, is_identifier
from holdfast.publication.view import BASES
from holdfast.runfiles.messages import Place, not_one_of, quote, refuse, show_found
from holdfast.tables.declarations import MAX_RECORDS, NOBODY
from holdfast.tables.formats import FORMATS, FORMULAS
from holdfast.tables.labels import LABEL_FORM, MAX_LABEL, check_label
from holdfast.tables.measure import read_step
from holdfast.tables.sampling import OVER
from holdfast.tables.text_files import MAX_QUERY_SECONDS, SEPARATORS, is_encoding

SENSITIVITY = Key("sensitivity", exact_number(), '"1"', required=True)


def _release_id(value: object) -> str:
    if not isinstance(value, str) or not is_identifier(value):
        refuse(f'must be a text of {IDENTIFIER_RULE}. Got {show_found(value)}. Write id = "counties-2030-v1".')
    return value


def _date(value: object) -> str:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    if not isinstance(value, str) or not is_day(value):
        refuse(f'must be a day of the calendar, as year-month-day. Got {show_found(value)}. Write date = "2030-04-01".')
    return value


def _line(value: object) -> str:
    try:
        return name_of(value, "this")
    except InvalidParameter:
        refuse(f"must be a text on one line, not empty and of at most {MAX_NAME} characters. Got {show_found(value)}.")


def _because(value: object) -> str:
    try:
        check_because(value)
    except InvalidParameter:
        refuse(
            f"must say in words why no person is in both tables: a text on one line, of at most {MAX_BECAUSE} characters, without control "
            f"characters. Got {show_found(value)}."
        )
    return str(value)


def _protect(value: object) -> str:
    name = _line(value)
    if name == DISTANCE:
        refuse(f'"{DISTANCE}" names nobody: per = "{DISTANCE}" is a budget for one unit of distance. Write protect = "person".')
    if name.strip().lower() in NOBODY:
        refuse(f'names nobody whose privacy could be promised. Got {show_found(value)}. Write protect = "person".')
    return name


FOR_ANSWERS = "for answers"
"""In the context of a validation: whether the run file has [answer] in place of [table]."""


@dataclass(frozen=True, eq=False)
class _Listed:
    """In the schema of run files: one of these, as they are when it is made."""

    choices: Collection[str | int]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"enum": list(self.choices)}


@dataclass(frozen=True, eq=False)
class _Suggested:
    """In the schema of run files: one of these, which editors complete, or another text."""

    choices: Collection[str]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"enum": list(self.choices)}, handler(core)]}


def _mechanism(value: object, info: ValidationInfo) -> str:
    """The name of a mechanism; a refusal lists those that the run file may name, for counts or for answers."""
    if not isinstance(value, str) or value not in MECHANISMS:
        for_answers = bool(info.context and info.context[FOR_ANSWERS])
        refuse(not_one_of(value, [name for name, one in MECHANISMS.items() if one.takes_answers is for_answers]))
    return value


def _one_of(choices: Collection[str]) -> Any:
    """One of the names in a registry, which may grow after this file was imported."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            refuse(not_one_of(value, list(choices)))
        return value

    return Annotated[str, PlainValidator(check, json_schema_input_type=str), _Listed(choices)]


def _separator(value: object) -> str:
    if not isinstance(value, str) or value not in SEPARATORS:
        refuse(not_one_of(value, list(SEPARATORS)))
    return value


def _encoding(value: object) -> str:
    if not isinstance(value, str) or not is_encoding(value):
        refuse(f'must be the name of a text encoding. Got {show_found(value)}. Write encoding = "windows-1252".')
    return value


def _sensitivity(value: object) -> Fraction:
    """An exact number above zero: how far one person can move the answers."""
    try:
        return Fraction(exact_number()(SENSITIVITY, value))
    except InvalidKey as error:
        refuse(error.message.replace(GOT, show_found(value)))


def _step(value: object) -> Fraction:
    """The step of a grid."""
    try:
        return read_step(value, subject="")
    except InvalidParameter as error:
        refuse(str(error))


def _cells(value: object) -> list[str] | dict[str, list[str] | str]:
    if isinstance(value, dict):
        if not value:
            refuse('must declare at least one column. Got an empty table. Write cells = {sex = ["F", "M"]}.')
        return {column: _codes(column, codes) for column, codes in value.items()}
    if not isinstance(value, list) or not all(isinstance(column, str) for column in value):
        refuse(
            f'must be a list of columns, or a table of codes for each column. Got {_show_mixed(value)}. Write cells = ["state", "county"].'
        )
    if not value:
        refuse('must name at least one column. Got an empty list. Write cells = ["state", "county"].')
    if len(set(value)) < len(value):
        twice = next(column for place, column in enumerate(value) if column in value[:place])
        refuse(f"column {quote(twice)} is named twice. Name each once.")
    return value


def _codes(column: str, codes: object) -> list[str] | str:
    if isinstance(codes, str):
        if not codes.lower().endswith((".csv", ".tsv", ".gz", ".parquet", ".xlsx", ".hrc")):
            refuse(
                f"column {quote(column)} needs a list of codes, or a file of codes (.csv, .tsv, .parquet, .xlsx or .hrc). "
                f"Got {show_found(codes)}. Write {quote(column)} = {_as_texts([codes])}.",
                column,
            )
        return codes
    if not isinstance(codes, list) or not codes or not all(isinstance(code, str) for code in codes):
        refuse(
            f"column {quote(column)} needs a list of codes, each a text. Got {_show_mixed(codes)}. "
            f"Write {quote(column)} = {_as_texts(codes)}.",
            column,
        )
    return codes


def _as_texts(codes: object) -> str:
    """The list as it is to be written: its whole numbers as texts, as far as a line holds them; else an example."""
    if not isinstance(codes, list) or not codes or not all(type(code) is int for code in codes):
        return '["01", "02"]'
    shown = [quote(str(code)) for code in codes[:4]] + ["..."] * (len(codes) > 4)
    return f"[{', '.join(shown)}]"


def _totals(value: object) -> dict[str, list[str]]:
    """Codes of total rows, by column; a single code needs no list."""
    made = {column: [codes] if isinstance(codes, str) else codes for column, codes in value.items()} if isinstance(value, dict) else {}
    if not made or not all(isinstance(codes, list) and codes and all(isinstance(code, str) for code in codes) for codes in made.values()):
        refuse(f'must name codes of total rows by column. Got {show_found(value)}. Write totals = {{sex = "_T"}}.')
    return made


def _show_mixed(value: object) -> str:
    """What was found; in a list, the first item that is no text."""
    wrong = [item for item in value if not isinstance(item, str)] if isinstance(value, list) else []
    return f"a list with {show_found(wrong[0])}" if wrong else show_found(value)


def _path(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        refuse("must name a file. Got an empty text.")
    return value


def _view_base(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in BASES:
        refuse(f"must be one of {', '.join(map(str, BASES))}. Got {show_found(value)}. Write view_base = 1, or leave it out.")
    return value


def _each_once(formats: list[str]) -> list[str]:
    if len(set(formats)) < len(formats):
        refuse("a format is named twice. Name each once.")
    return formats


def _values(value: object) -> object:
    """One whole number for all sums, or a list with one for each."""
    whole = [value] if not isinstance(value, list) else value
    if not whole or not all(isinstance(item, int) and not isinstance(item, bool) for item in whole):
        refuse(f"must be a whole number, or a list with one for each sum. Got {show_found(value)}. Write values = 0.")
    return value


def _identity_total(value: object) -> object:
    if isinstance(value, bool):
        refuse(
            "an identity has a public value, the same in every data set; without one this is a kept total. Write its value, such as "
            "total = 1000, or move the line to [keep]."
        )
    return value


def _identity_margin(value: object) -> object:
    if isinstance(value, list):
        refuse(
            "an identity has public values, the same in every data set; without them this margin is a kept total. Write "
            'margins = [{columns = ["sex"], values = [500, 500]}], or move it to [keep].'
        )
    return value


def _label(value: object) -> str:
    try:
        check_label(value)
    except InvalidParameter:
        refuse(f"must be {LABEL_FORM}. Got {show_found(value)}.")
    return str(value)


def _code_columns(value: object) -> str | list[str]:
    """One column of a codes file, or several whose codes together have a label."""
    if isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(column, str) for column in value)):
        return value
    refuse(f'must be a column, or a list of columns. Got {show_found(value)}. Write code = "county", or code = ["state", "county"].')


Texts = Annotated[list[str], Field(min_length=1)]
OneLine = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Label = Annotated[str, PlainValidator(_label, json_schema_input_type=Annotated[str, Field(min_length=1, max_length=MAX_LABEL)])]
Values = Annotated[Any, PlainValidator(_values, json_schema_input_type=int | list[int])]
PathText = Annotated[str, BeforeValidator(_path)]


class Section(BaseModel):
    """Names that are not known are refused, and values are never converted from one type to another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class TreeSection(Section):
    """One entry of hierarchies: a file with an indented tree, prefix lengths, or a file of codes and parents."""

    tree: PathText | None = None
    prefixes: Annotated[list[int], Field(min_length=1)] | None = None
    parents: PathText | None = None
    code: str | None = None
    parent: str | None = None
    levels: Texts | None = None
    shared: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> TreeSection:
        if [self.tree, self.prefixes, self.parents].count(None) != 2:
            refuse('give one of tree = "file.hrc", prefixes = [2, 5] and parents = "file.csv".')
        if (self.parents is None) != (self.code is None) or (self.parents is None) != (self.parent is None):
            refuse('parents, code and parent go together: parents = "counties.csv", code = "county", parent = "state".')
        return self


class LabelsSection(Section):
    """One entry of labels: what a column and its codes are called, said here or in a codes file."""

    name: Label | None = None
    codes: Annotated[dict[str, Label], Field(min_length=1)] | None = None
    file: PathText | None = None
    code: Annotated[str | list[str], PlainValidator(_code_columns, json_schema_input_type=str | Texts)] | None = None
    label: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> LabelsSection:
        if self.codes is not None and self.file is not None:
            refuse("codes and file both give labels. Leave one of them out.")
        if (self.file is None) != (self.label is None):
            refuse('file and label go together: file = "counties.csv", label = "name".')
        if self.code is not None and self.file is None:
            refuse("code names a column of a codes file, and file is missing. Add it, or leave code out.")
        if self.name is None and self.codes is None and self.file is None:
            refuse('give name, codes or file: {name = "Sex", codes = {F = "women", M = "men"}}.')
        return self


class TableSection(Section):
    """[table]: the arguments of Table.from_counts (with count) or Table.from_records (without)."""

    source: PathText = Field(repr=False)
    query: str | None = Field(default=None, repr=False)
    separator: Annotated[str, PlainValidator(_separator), _Listed(SEPARATORS)] | None = None
    encoding: Annotated[str, PlainValidator(_encoding, json_schema_input_type=str)] | None = None
    sheet: str | None = None
    query_seconds: Annotated[int, Field(ge=1, le=MAX_QUERY_SECONDS)] | None = None
    cells: Annotated[Any, PlainValidator(_cells, json_schema_input_type=Texts | dict[str, Texts | str])]
    count: str | None = None
    cell_key: str | None = None
    public_columns: list[str] = []
    universe: PathText | None = None
    public: bool = False
    allow_similar_codes: bool = False
    totals: Annotated[dict[str, list[str]], PlainValidator(_totals, json_schema_input_type=dict[str, str | Texts])] = {}
    allow_total_names: bool = False
    protect: Annotated[str, PlainValidator(_protect, json_schema_input_type=OneLine)] = "person"
    max_records: Annotated[int, Field(ge=1, le=MAX_RECORDS)] = 1
    id: str | None = None
    over: _one_of(OVER) = "refuse"  # type: ignore[valid-type]
    sample_key: PathText | None = None
    sample_by: list[str] = []
    record_key: str | None = None
    name: Annotated[str, PlainValidator(_line, json_schema_input_type=OneLine)] | None = None
    hierarchies: dict[str, TreeSection] = {}
    labels: dict[str, LabelsSection] = {}


class AnswerSection(Section):
    """[answer], in place of [table]: real-valued answers, one row for each. The arguments of hf.answer."""

    source: PathText = Field(repr=False)
    query: str | None = Field(default=None, repr=False)
    separator: Annotated[str, PlainValidator(_separator), _Listed(SEPARATORS)] | None = None
    encoding: Annotated[str, PlainValidator(_encoding, json_schema_input_type=str)] | None = None
    sheet: str | None = None
    cells: Annotated[list[str], PlainValidator(_cells, json_schema_input_type=Texts)]
    value: str
    sensitivity: Annotated[Fraction, PlainValidator(_sensitivity, json_schema_input_type=str | int)]
    step: Annotated[Fraction, PlainValidator(_step, json_schema_input_type=str | int)] | None = None
    on_grid: bool = False
    round_totals: bool = False
    universe: PathText | None = None
    public: bool = False
    allow_similar_codes: bool = False
    protect: Annotated[str, PlainValidator(_protect, json_schema_input_type=OneLine)] = "person"
    name: Annotated[str, PlainValidator(_line, json_schema_input_type=OneLine)] | None = None
    hierarchies: dict[str, TreeSection] = {}
    labels: dict[str, LabelsSection] = {}

    @property
    def table(self) -> TableSection:
        """The same as a table whose counts are the values: what its cells are is said and checked alike."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name in TableSection.model_fields}
        return TableSection(**own, count=self.value, allow_total_names=True)  # their sensitivity was declared, total rows included


class SubsetSection(Section):
    """One entry of subsets: codes or a node of a column, or a condition."""

    column: str | None = None
    codes: Texts | None = None
    node: str | None = None
    where: str | None = None
    by: list[str] = []
    values: Values = None

    @model_validator(mode="after")
    def _one_way(self) -> SubsetSection:
        if (self.where is None) == (self.column is None):
            refuse('give column with codes or node, or where: {column = "age", codes = ["85+"]} or {where = "age >= 18"}.')
        if [self.where, self.codes, self.node].count(None) != 2:
            refuse("give one of codes, node and where, and column with the first two.")
        return self

    def constraint(self) -> Subset:
        if self.where is not None:
            return subset(self.where, by=self.by)
        assert self.column is not None
        return subset(self.column, self.codes, node=self.node, by=self.by)


class AreasSection(Section):
    """One entry of areas: named sets of codes of one column."""

    column: str
    sets: Annotated[dict[str, Texts], Field(min_length=1)]
    by: list[str] = []
    values: Values = None

    def constraint(self) -> Areas:
        return areas(self.column, self.sets, by=self.by)


class LinearSection(Section):
    """One entry of linear: rows of whole numbers, one for each cell in the table's order."""

    matrix: Annotated[list[Annotated[list[int], Field(min_length=1)]], Field(min_length=1)]
    names: list[str] | None = None
    values: list[int] | None = None

    @model_validator(mode="after")
    def _fits(self) -> LinearSection:
        if len({len(row) for row in self.matrix}) > 1:
            refuse("matrix has rows of different lengths. Give each row one whole number for each cell.")
        for what, given in (("names", self.names), ("values", self.values)):
            if given is not None and len(given) != len(self.matrix):
                refuse(f"{what} has {len(given)} entries for {len(self.matrix)} rows. Give one for each row.")
        return self

    def constraint(self) -> Linear:
        return linear(self.matrix, self.names, self.values)


class MarginSection(Section):
    """One entry of margins under identities: columns, and the values that their sums have in every data set."""

    columns: Texts
    values: Values


class IdentitiesSection(Section):
    """What holds for every data set: sums with public values, 0 where none are given."""

    total: Annotated[int | None, BeforeValidator(_identity_total)] = None
    margins: list[Annotated[MarginSection, BeforeValidator(_identity_margin)]] = []
    subsets: list[SubsetSection] = []
    areas: list[AreasSection] = []
    linear: list[LinearSection] = []


class KeepSection(Section):
    """[keep]: what is published exactly, in the words of the Python functions; under identities what holds for every data set."""

    total: bool = False
    margins: list[Texts] = []
    subsets: list[SubsetSection] = []
    areas: list[AreasSection] = []
    linear: list[LinearSection] = []
    identities: IdentitiesSection | None = None

    @model_validator(mode="after")
    def _no_values(self) -> KeepSection:
        if any(said.values is not None for said in self.subsets) or any(named.values is not None for named in self.areas):
            refuse(
                "values belong to identities: kept totals are those of the table. Leave values out, or move the entry to keep.identities."
            )
        return self


class DisjointSection(Section):
    """[release.disjoint]: releases of the data set with which this one shares no person, and why."""

    releases: Texts = Field(alias="from")
    because: Annotated[str, PlainValidator(_because, json_schema_input_type=Annotated[str, Field(min_length=1, max_length=MAX_BECAUSE)])]


class ReleaseSection(Section):
    """[release]: the mechanism, and what is written. All other keys are the mechanism's own."""

    model_config = ConfigDict(extra="allow")

    id: Annotated[str, PlainValidator(_release_id, json_schema_input_type=Annotated[str, Field(pattern=f"^{IDENTIFIER_PATTERN}$")])]
    date: (
        Annotated[str, PlainValidator(_date, json_schema_input_type=Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")])] | None
    ) = None
    office: Annotated[str, PlainValidator(_line, json_schema_input_type=OneLine)] | None = None
    approver: Annotated[str, PlainValidator(_line, json_schema_input_type=OneLine)] | None = None
    mechanism: Annotated[str, PlainValidator(_mechanism, json_schema_input_type=str), _Listed(MECHANISMS)]
    per: Annotated[str, Field(min_length=1, max_length=MAX_NAME), _Suggested(("person", DISTANCE))] | None = None
    formats: Annotated[list[_one_of(FORMATS)], Field(min_length=1), AfterValidator(_each_once)] | None = None  # type: ignore[valid-type]
    formulas: _one_of(FORMULAS) = "warn"  # type: ignore[valid-type]
    view_base: Annotated[int, PlainValidator(_view_base), _Listed(BASES)] | None = None
    map: PathText | None = None
    map_code: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = None
    map_level: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = None
    sign: PathText | None = None
    ledger: PathText | None = None
    witness: PathText | None = None
    dataset: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = None
    revises: PathText | None = None
    disjoint: DisjointSection | None = None
    revises_signer: PathText | None = None
    allow_exposed: Annotated[int, Field(ge=0)] = 0

    @property
    def own(self) -> dict[str, object]:
        """The mechanism's keys, as in the file."""
        return dict(self.model_extra or {})


class Document(Section):
    """A run file."""

    table: TableSection
    keep: KeepSection
    release: ReleaseSection


class AnswerDocument(Section):
    """A run file of real-valued answers."""

    answer: AnswerSection
    keep: KeepSection
    release: ReleaseSection


SECTIONS: dict[str, type[Section]] = {
    "margins": MarginSection,
    "subsets": SubsetSection,
    "areas": AreasSection,
    "linear": LinearSection,
    "hierarchies": TreeSection,
    "labels": LabelsSection,
    "identities": IdentitiesSection,
    "table": TableSection,
    "answer": AnswerSection,
    "keep": KeepSection,
    "release": ReleaseSection,
    "disjoint": DisjointSection,
}
"""By the key that holds them."""


def keys_at(place: Place) -> Sequence[str]:
    """The known keys of the table at this place."""
    model = next((SECTIONS[part] for part in reversed(place) if part in SECTIONS), Document)
    own = [key.name for made in MECHANISMS.values() for key in made.run_file_keys] if model is ReleaseSection else []
    return [*(field.alias or name for name, field in model.model_fields.items()), *dict.fromkeys(own)]


def section_keys(document: type[Document | AnswerDocument] = Document) -> dict[str, Sequence[str]]:
    """The keys of every section."""
    return {section: keys_at((section,)) for section in document.model_fields}
