"""The cell key method: noise looked up by a key that belongs to the records of a cell, the same in every table and on every day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

from holdfast.cellkey.formats import read_table
from holdfast.cellkey.keys import CellKeys, KeySpace
from holdfast.cellkey.perturb import check_empty_cells, fit_table, noise_facts
from holdfast.cellkey.published import FixedNoise
from holdfast.cellkey.table import PerturbationTable
from holdfast.channels import Channel, Facts
from holdfast.display import Json, read_as
from holdfast.errors import HoldfastError, InvalidParameter
from holdfast.exact.balls import float_up
from holdfast.laws import Keyed
from holdfast.mechanisms import keys
from holdfast.mechanisms.keys import InvalidKey, Key
from holdfast.mechanisms.mechanism import Mechanism, promise
from holdfast.privacy.guarantee import KeyedNoise
from holdfast.tables import Table
from holdfast.tables.columns import KEY_BITS

MAX_TEXT = 2**20
"""Characters of a perturbation table on a card: more than any in use has, and few enough that a hostile card is read in seconds."""
TABLE, MIX, OTHER_NOISE, OTHER_RECORDS = "perturbation_table", "mix", "other_noise", "other_records"
WEIGHTED = "weighted"
KEYS = ("keys", "modulus", "size")
"""The rule for cell keys on a card, where it is not that of 32 bits."""


def _read_table(key: Key, raw: object) -> PerturbationTable:
    if not isinstance(raw, str):
        raise InvalidKey(key.name, f"must be the name of a file. Got {keys.GOT}. Write {key.line}.")
    try:
        return read_table(raw)
    except HoldfastError as error:
        problem = str(error)
    raise InvalidKey(key.name, problem)


@dataclass(frozen=True, init=False, repr=False)
class CellKey(Mechanism):
    """Counts with the noise of their records' keys. No total can be kept: the list `keep` must be empty.

    Given:       table: the perturbation table. Its law must be the same with the number of cell keys, as it is with every multiple of
                 the table's. Else rescale it first, `table.rescaled(size)`, and look at what its epsilon_delta() says.
                 keys: what record keys are, by default of 32 bits; or how cell keys are made of them (`CellKeys`), by default as
                 `CellKeys.for_table` says. mix: cell keys go through a fixed public permutation before noise is looked up, so that gaps
                 between tables tell less. weighted: a cell is published as (count + noise) * mean weight, rounded to a whole number.
                 other_noise: publish though earlier releases in the ledger have another column of keys, rule or perturbation table.
                 other_records: why these are other records than those of other data sets in the ledger; the ledger records it.
    Guarantees:  the noise of a cell is a function of the set of its records: asking again tells nothing new.
    Not promised: differential privacy. The card has range and variance of the noise, and the (epsilon, delta) of one cell and one answer.
    """

    table: PerturbationTable
    rule: CellKeys
    weighted: bool
    other_noise: bool
    other_records: str | None

    name = "cell-key"
    has_budget = False
    run_file_keys = (
        Key(TABLE, keys.declare_shape({"type": "string"})(_read_table), '"noise.json"', required=True, is_file=True),
        Key(MIX, keys.boolean, "true"),
        Key(OTHER_NOISE, keys.boolean, "true"),
        Key(OTHER_RECORDS, keys.text, '"people who live abroad"'),
    )

    def __init__(
        self,
        *,
        table: PerturbationTable,
        keys: KeySpace | CellKeys | None = None,
        mix: bool = False,
        weighted: bool = False,
        other_noise: bool = False,
        other_records: str | None = None,
    ) -> None:
        if not isinstance(table, PerturbationTable):
            raise InvalidParameter(f"table is a PerturbationTable, such as hf.cellkey.read_table gives. Got {type(table).__name__}.")
        for name, value in ((MIX, mix), (WEIGHTED, weighted), (OTHER_NOISE, other_noise)):
            if not isinstance(value, bool):
                raise InvalidParameter(f"{name} must be True or False. Got {type(value).__name__}.", field=name)
        if other_records is not None and (not isinstance(other_records, str) or not other_records.strip()):
            raise InvalidParameter("other_records is a text that says why these are other records.", field=OTHER_RECORDS)
        check_empty_cells(table)
        if all(set(row.noise) == {0} for row in table.rows.values()):
            raise InvalidParameter("The perturbation table adds no noise to any count: every count would be published as it is.")
        rule = keys if isinstance(keys, CellKeys) else CellKeys.for_table(keys or KeySpace.bits(KEY_BITS), table)
        rule = replace(rule, mixed=rule.mixed or mix)
        fit_table(table, rule)
        self._set(table=table, rule=rule, weighted=weighted, other_noise=other_noise, other_records=other_records)
        if len(table_text(table)) > MAX_TEXT:
            raise InvalidParameter("The perturbation table is too long for a card, which has it in full. Use one of fewer rows.")

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: str | None) -> Self:
        given = {name: value for name, value in values.items() if name != TABLE}
        try:
            return cls(table=values[TABLE], **given)
        except InvalidParameter as error:
            problem = str(error)
        raise InvalidKey(TABLE, problem)

    @property
    def parameters(self) -> dict[str, str]:
        asked = {MIX: self.rule.mixed, WEIGHTED: self.weighted, OTHER_NOISE: self.other_noise}
        rule = dict(zip(KEYS, (self.rule.records.written, str(self.rule.modulus), str(self.rule.size)), strict=True))
        if replace(self.rule, mixed=False) == CellKeys.for_table(KeySpace.bits(KEY_BITS), self.table):
            rule = {}
        return {TABLE: table_text(self.table), **rule, **{name: "true" for name, value in asked.items() if value}}

    @property
    def shown_parameters(self) -> dict[str, str]:
        return {**self.parameters, TABLE: str(self.table)}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Json]) -> Self:
        try:
            rule = None
            if KEYS[0] in parameters:
                space, modulus, size = (read_as(str, parameters[name]) for name in KEYS)
                rule = CellKeys(KeySpace.parse(space), int(modulus), int(size))
            mix, weighted, other = (name in parameters for name in (MIX, WEIGHTED, OTHER_NOISE))
            made = cls(table=read_text(read_as(str, parameters[TABLE])), keys=rule, mix=mix, weighted=weighted, other_noise=other)
        except (InvalidParameter, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            made = None
        if made is None or made.parameters != parameters:
            raise InvalidParameter(f"No {cls.name} has these parameters. They may have been changed.")
        return made

    def fixed_noise(self, table: Table) -> FixedNoise:
        if table.key_sums is None:
            raise InvalidParameter("This mechanism reads cell keys, and the table has none. Name their column: record_key or cell_key.")
        return FixedNoise(noise_facts(self.rule, self.table, table.key_sums), self.other_noise, self.other_records)

    def make_channel(self, facts: Facts) -> Channel:
        if facts.lattice.rank:
            raise InvalidParameter(
                "The cell key method keeps no totals: every cell has the noise of its own records, and totals are cells of other tables. "
                "Leave keep empty, or use a mechanism that keeps totals.",
                field="keep",
            )
        target = Keyed(fit_table(self.table, self.rule), self.rule, self.weighted)
        return Channel(facts, target, promise(facts, "cell-key", "l1", keyed=_figures(target, self.other_noise)))


@lru_cache(maxsize=16)
def _figures(target: Keyed, other_noise: bool) -> KeyedNoise:
    """Figures of the noise, rounded up. Empty cells stay empty, so that count 0 has a figure of its own."""
    table = target.table
    whole = table.losses_in_use
    losses, shown = whole.above_zero or whole, whole.zero_shown
    rows = [row for row in table.rows.values() if row.count]
    values = [noise for row in rows for noise in row.noise]
    return KeyedNoise(
        first=rows[0].count,
        last=None if table.repeat else rows[-1].count,
        lowest=min(values),
        highest=max(values),
        variance=float_up(max(row.variance for row in rows)),
        least_result=table.least_result,
        lowest_result=table.lowest_result,
        epsilon=losses.plateau_epsilon,
        delta=losses.plateau_bounds.upper,
        zero_delta=None if shown is None else shown.upper,
        distance=target.rule.distance,
        weighted=target.weighted,
        other_noise=other_noise,
    )


def table_text(table: PerturbationTable) -> str:
    """A perturbation table on one line of JSON, in full and in one way: cards have it."""
    rows = [[row.count, [list(pair) for pair in zip(row.noise, row.upper, strict=True)]] for row in table.rows.values()]
    return json.dumps({"key_size": table.key_size, "repeat": table.repeat, "folds": table.folds, "rows": rows}, separators=(",", ":"))


def read_text(text: str) -> PerturbationTable:
    """What `table_text` wrote; InvalidParameter, ValueError, LookupError or TypeError where it did not."""
    if len(text) > MAX_TEXT:
        raise ValueError("a text too long for a perturbation table")
    said = json.loads(text)
    rows = {count: [(noise, upper) for noise, upper in row] for count, row in said["rows"]}
    return PerturbationTable.from_upper_bounds(rows, said["key_size"], repeat=said["repeat"], folds=said["folds"])
