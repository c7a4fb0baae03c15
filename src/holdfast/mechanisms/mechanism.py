"""What the mechanisms of this folder share: they are frozen, shown as they were asked for, and converted to one unit of distance once.

m          the most records one person may have (max_records; 1 where the promise is for one record)
distance   between two tables: one person who moves all records from one cell to another changes counts by 2 m in l1 and by 2 m^2 in
           squared l2

`promise` is the guarantee of their channels, with the public facts that a reader needs to judge it.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from holdfast.channels import Channel, Facts, Law
from holdfast.display import Json, shorten
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact
from holdfast.exposure.cells import known_by_identities
from holdfast.lattices import Lattice
from holdfast.lattices.norms import Norm, NormName, norm_of
from holdfast.mechanisms.keys import InvalidKey, Key
from holdfast.privacy.exchange import Exchange
from holdfast.privacy.guarantee import MAX_NAMES, Answers, Exposed, Guarantee, KeyedNoise, Kind, Relation, secrets_of
from holdfast.privacy.parameters import DISTANCE, Asked
from holdfast.tables.declarations import checked_protect

if TYPE_CHECKING:
    from holdfast.cellkey.published import FixedNoise
    from holdfast.tables import Table

MAX_NUMBER = 40
"""Characters that a number may take in a repr; `parameters` has all of them."""


class Mechanism(ABC):
    """A frozen value with exact parameters; `registry.register` makes it known to run files and cards.

    Given:       subclasses are frozen dataclasses without generated `__init__` and `__repr__`. Every argument of their constructor can be
                 read back from an attribute of the same name; the argument `law`, which is a method here, from `asked_law`.
    """

    name: ClassVar[str]
    """As in run files and cards, such as "generalized-laplace"."""
    run_file_keys: ClassVar[tuple[Key, ...]] = ()
    """The keys that the mechanism takes in a run file, beside those that every release has."""
    publishes_cells: ClassVar[bool] = True
    """False where cells that the kept totals do not fix are left out; the target of the channel must say the same."""
    takes_answers: ClassVar[bool] = False
    """Whether it is for real-valued answers (`hf.answer`), and not for tables of counts."""
    is_unbiased: ClassVar[bool] = False
    """True if its noise is zero on average in every cell, whatever the data: pages say so."""
    has_long_tails: ClassVar[bool] = False
    """True if its noise is made of Laplace noise, whose tails are longer than normal ones of the same standard deviation."""
    per: str | None = DISTANCE
    """What the budget is for: the name of what the table protects, None for that until the table is known, or "distance". A mechanism
    that takes a budget for what the table protects has a field of this name, and `_convert`."""

    @classmethod
    def from_run_file(cls, values: Mapping[str, object], per: str | None) -> Self:
        """The mechanism from values that the keys' readers have checked; raises InvalidKey where keys do not go together.

        By default every key is required, and is a field of the same name.

        Given:  per, as the run file says: the name of what its table protects, or "distance". A mechanism with a budget takes it over
                into its field `per`, or refuses what it does not support with InvalidKey("per", ...). The reader of run files refuses a
                mechanism that does neither. Where the file says nothing, per is one that it takes, and the reader then refuses a mechanism
                with a budget. None, where a card says nothing: what the table protects.
        """
        return cls._from_checked(**{key.name: values[key.name] for key in cls.run_file_keys}, per=per)

    @property
    def parameters(self) -> dict[str, str]:
        """Exact parameters as text, as they were asked for; named as in a run file, so that `from_parameters` reads them back. By default
        the numbers of the budget, or of the noise, and what they are for.
        """
        asked = self.asked
        return {} if asked is None else {name: format_exact(value) for name, value in asked.numbers.items()} | self._per_field

    @property
    def shown_parameters(self) -> dict[str, str]:
        """The parameters as a screen shows them: short."""
        return self.parameters

    def fixed_noise(self, table: Table) -> FixedNoise | None:
        """What fixes the noise of this table's records, where it is looked up and not drawn: the ledger compares it with earlier noise."""
        return None

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Json]) -> Self:
        """The mechanism that has these parameters; InvalidParameter where none has.

        Guarantees:  `from_parameters(p).parameters == p`: a card is read by it, and two ways to write one number would be two cards.
        """
        given = dict(parameters)
        per = given.pop("per", None)
        readers = {key.name: key for key in cls.run_file_keys}
        try:
            values = {name: readers[name].read(value) for name, value in cls._keys_of(given).items()}
            made = cls.from_run_file(values, read_per(per))
        except (InvalidKey, LookupError, InvalidParameter):
            made = None
        if made is None or made.parameters != parameters:
            raise InvalidParameter(f"No {cls.name} has these parameters. They may have been changed.")
        return made

    @classmethod
    def _keys_of(cls, parameters: dict[str, Json]) -> dict[str, Json]:
        """The keys of a run file that make these parameters."""
        return parameters

    @classmethod
    def at_budget(cls, budget: Exchange) -> Self | None:
        """The mechanism at this budget for what the table protects, as comparisons show it; None if it takes none.

        By default one whose run file must say epsilon and nothing else, or that has no keys at all.
        """
        required = [key.name for key in cls.run_file_keys if key.required]
        if cls.run_file_keys and required != ["epsilon"]:
            return None
        return cls.from_run_file({"epsilon": budget.epsilon} if required else {}, None)

    @abstractmethod
    def make_channel(self, facts: Facts) -> Channel:
        """What the mechanism does to these facts: pure and cheap. `channel` calls it, with `per` resolved by `for_facts`, and adds
        the request to its guarantee.
        """

    def channel(self, facts: Facts) -> Channel:
        """What the mechanism does to these facts. Samplers are chosen later, by `channels.choose_samplers`."""
        own = self.for_facts(facts)
        made = own.make_channel(facts)
        return replace(made, guarantee=replace(made.guarantee, asked=own.asked))

    def for_facts(self, facts: Facts) -> Self:
        """The mechanism with `per` naming what these facts protect, or "distance".

        Raise InvalidParameter if `per` names anything else: the budget would be for somebody whom the table does not protect.
        """
        if not self.has_budget or self.per_distance:
            return self
        if self.per not in (None, facts.protect, facts.protected):
            raise InvalidParameter(
                f"The table protects {shorten(facts.protected)!r}, and the budget is for {shorten(str(self.per))!r}. Write "
                f"per={shorten(facts.protected)!r}, or leave per out.",
                field="per",
            )
        return self._with(per=facts.protected)

    def law(self, lattice: Lattice, *, protect: str = "person", max_records: int | None = 1) -> Law:
        """The law of the noise on this lattice."""
        if not isinstance(lattice, Lattice):
            raise InvalidParameter(
                f"A law needs a lattice: hf.lattice(table or universe, [kept totals]), or hf.Lattice(matrix). Got {type(lattice).__name__}."
            )
        return Law(self.channel(Facts(lattice, protect=checked_protect(protect), max_records=max_records)))

    @property
    def asked(self) -> Asked | None:
        """What was asked for: the attributes epsilon, rho, delta, sigma_squared, as far as there are any. `channel` adds it."""
        given = {name: getattr(self, name, None) for name in ("epsilon", "rho", "delta", "sigma_squared")}
        return Asked(per=self.per if self.has_budget else None, **given) if any(given.values()) else None

    @property
    def has_budget(self) -> bool:
        """Whether a budget was given, which is for what the table protects or for one unit of distance."""
        return True

    @property
    def per_distance(self) -> bool:
        """Whether the budget is for one unit of distance, as in the papers."""
        return self.per == DISTANCE

    def for_distance(self, records: int) -> Self:
        """The same mechanism with its parameters for one unit of distance, where one person has at most so many records."""
        return self if self.per_distance or not self.has_budget else self._convert(records)

    def _convert(self, m: int) -> Self:
        """From one person of m records to one unit of distance; for mechanisms that take a budget for what the table protects."""
        raise InvalidParameter(f"{type(self).__name__} takes a budget for one unit of distance only. Use per='distance'.")

    @property
    def _per_field(self) -> dict[str, str]:
        return {} if self.per is None else {"per": self.per}

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _from_checked(cls, **fields: object) -> Self:
        """A mechanism with these fields, checked already."""
        made = object.__new__(cls)
        made._set(**fields)
        return made

    def _with(self, **fields: object) -> Self:
        """A copy with other fields, checked already."""
        made = copy.copy(self)
        made._set(**fields)
        return made

    def __repr__(self) -> str:
        arguments = inspect.signature(type(self)).parameters.items()
        given = [(name, getattr(self, "asked_law" if name == "law" else name), p.default) for name, p in arguments]
        return f"{type(self).__name__}({', '.join(f'{name}={_written(value)}' for name, value, default in given if value != default)})"


def read_per(value: object) -> str | None:
    """The argument `per`; raise InvalidParameter if it cannot be the name of what a table protects."""
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise InvalidParameter(
            f"per says what the budget is for: what the table protects, such as 'person', or 'distance'. Got {value!r}.", field="per"
        )
    return value


def _written(value: object) -> str:
    """As Python code; a number as p/q or as a decimal, whichever is shorter; of a long one the middle is left out."""
    return repr(shorten(min(str(value), format_exact(value), key=len), MAX_NUMBER) if isinstance(value, Fraction) else value)


def promise(
    facts: Facts,
    kind: Kind,
    distance: Norm | NormName,
    *,
    epsilon: Fraction | None = None,
    rho: Fraction | None = None,
    delta: Fraction | None = None,
    answers: Answers | None = None,
    keyed: KeyedNoise | None = None,
) -> Guarantee:
    """A guarantee of this kind and these exact parameters for each unit of distance.

    `answers`: where the facts are of real-valued answers; `keyed`: where noise is looked up by cell keys.
    """
    lattice, norm = facts.lattice, norm_of(distance)
    secrets = secrets_of(facts.moves, facts.protected, facts.records)
    if answers is not None:
        secrets = replace(secrets, person_can_be_added=False, reach={norm: answers.reach})
    known_sums, known = known_by_identities(lattice.kept)
    kept_sums = lattice.rank - known_sums
    universe = lattice.universe
    relation = Relation(
        same_totals=kept_sums > 0,
        same_cells=universe is not None and not universe.is_public,
        non_negative=facts.zeros is not None,
        identities=known_sums > 0,
    )
    fixed = np.setdiff1d(lattice.exposed_cells, known)
    names = tuple(str(i) if universe is None else universe.cell_name(i) for i in fixed[:MAX_NAMES].tolist())
    smallest, status = secrets.smallest(norm)
    return Guarantee(
        kind=kind,
        distance=norm,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        smallest_secret=smallest,
        smallest_secret_status=status,
        person=secrets.person(norm),
        person_can_be_added=secrets.person_can_be_added,
        protect=secrets.protect,
        max_records=secrets.max_records,
        relation=relation,
        exposed=Exposed(kept_sums=kept_sums, cells=len(fixed), names=names),
        answers=answers,
        keyed=keyed,
    )
