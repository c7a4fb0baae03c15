"""What a release promises, as a value: kind, exact parameters, for which pairs of tables, for whom, and how sure it is.

Legend: r is the distance of two tables with the same kept totals. What a pair at distance r is promised:

    pure          epsilon r
    zcdp          rho r^2, and (epsilon, delta) from it by Proposition 7 of [CKS20] at a delta of the reader's choice
    approximate   (epsilon r, delta (e^(epsilon r) - 1) / (e^epsilon - 1)), [DGGY22] Definition 2
    cell-key      (0, 1), which is true of any two tables: no differential privacy

Distances are exact: the l1 distance itself, or the SQUARE of the l2 distance. Whatever is not rational is a float rounded up.
These are facts; the sentences about them are made in holdfast.wording.

What kept totals leave to protect is a fact of the lattice: the nearest other table, and whether one person can change without a kept total
showing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from html import escape
from typing import Literal, TypeAlias, get_args

from holdfast.display import shorten, step_text
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_exact, format_short
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction
from holdfast.lattices import Lattice
from holdfast.lattices.norms import DISTANCES, L1, L2, LEVELS, Norm, norm_of
from holdfast.privacy.conversions import zcdp_epsilon
from holdfast.privacy.parameters import Asked, at_least_one, budget, not_negative, probability

Found: TypeAlias = Literal["exact", "lower bound"]


@dataclass(frozen=True)
class Secrets:
    """Public facts about pairs of tables with the same kept totals.

    smallest_l1, smallest_l2_squared: the smallest distance of two such tables, each with how it was found.
    person_can_move_alone:  whether moving one person to another cell can leave every kept total as it is. Exact for max_records = 1; for
                            more, True where it is not ruled out, so that a person is charged too much rather than too little.
    person_can_be_added:    whether there are cells under no kept sum, so that someone may come or go unseen by the totals.
    """

    smallest_l1: int
    smallest_l2_squared: int
    l1_status: Found
    l2_squared_status: Found
    person_can_move_alone: bool
    person_can_be_added: bool
    protect: str = "person"
    max_records: int = 1
    reach: Mapping[Norm, int] | None = None
    """For real-valued answers: how far one person can move them, by norm; squared for l2."""

    @property
    def status(self) -> Found:
        """ "exact" where both lengths are."""
        return "exact" if self.l1_status == self.l2_squared_status == "exact" else "lower bound"

    def smallest(self, norm: Norm) -> tuple[int, Found]:
        """(the smallest distance, squared for l2; how it was found)."""
        return {L1: (self.smallest_l1, self.l1_status), L2: (self.smallest_l2_squared, self.l2_squared_status)}[norm]

    def person(self, norm: Norm) -> int | None:
        """How far one person can move the table, squared for l2; None where no person can change alone."""
        if self.reach is not None:
            return self.reach[norm] if self.reach[norm] >= self.smallest(norm)[0] else None
        if self.person_can_move_alone:
            return norm.person_moving(self.max_records)
        return norm.person_adding(self.max_records) if self.person_can_be_added else None


def secrets_of(lattice: Lattice, protect: str = "person", max_records: int = 1) -> Secrets:
    """What a lattice of moves leaves to protect.

    Given:       max_records >= 1: the records that one person (or what `protect` names) may have; moving them all changes the table by
                 at most 2 max_records in l1.
    Guarantees:  see Secrets; from the kept constraints and the universe alone, never from counts. NothingLeft where no move is left.
    """
    max_records = at_least_one(max_records, "max_records")
    l1, l2 = lattice.shortest("l1"), lattice.shortest("l2")
    if l1.value > L1.person_moving(max_records) or l2.value > L2.person_moving(max_records):
        can_move = False  # further than one person can reach; lower bounds prove it too
    elif max_records > 1:  # several records may move together along longer moves: not ruled out
        can_move = True
    else:
        can_move = lattice.one_can_move()
    return Secrets(l1.value, l2.value, l1.status, l2.status, can_move, lattice.free_cells > 0, protect, max_records)


Kind: TypeAlias = Literal["pure", "zcdp", "approximate", "cell-key"]
Status: TypeAlias = Literal["exact", "estimated"]
AnswersNorm: TypeAlias = Literal["l1", "l2 squared"]

DEFAULT_DELTA = Fraction(1, 10**10)
"""The delta at which a zCDP promise is also given as (epsilon, delta), where neither the reader nor who asked for it named one."""
MAX_NAMES = 10
"""Names of exposed cells that are listed; the number of all is always given."""
ALLOWS: dict[Kind, tuple[str, ...]] = {"approximate": ("rho",)}
"""A Gaussian calibrated to (epsilon, delta) is zCDP as well: its rho can be given with them, and composes better."""
NEEDS: dict[Kind, tuple[str, ...]] = {"pure": ("epsilon",), "zcdp": ("rho",), "approximate": ("epsilon", "delta"), "cell-key": ()}


@dataclass(frozen=True)
class Exposed:
    """What is published as it is: public facts only.

    kept_sums: independent sums that are kept; cells: cells they fix; names: some of those cells (the first ten are held).
    """

    kept_sums: int = 0
    cells: int = 0
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Public columns of the table that bounds come from."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names)[:MAX_NAMES])


@dataclass(frozen=True)
class Relation:
    """Which pairs of tables a promise covers: those that agree in what is published as it is.

    same_totals: in the kept totals; same_cells: in the list of cells, which came with the data and was not declared public.
    non_negative: that no count is negative, where the noise leaves out cells that a total of 0 then makes 0 ([theory R21]).
    within_bounds: both lie within the bounds that the publication is conditioned on.
    identities: both satisfy what was declared to hold for every data set.
    """

    same_totals: bool = True
    same_cells: bool = False
    non_negative: bool = False
    within_bounds: bool = False
    identities: bool = False

    def to_fields(self) -> dict[str, bool]:
        return asdict(self)


@dataclass(frozen=True)
class ChainFacts:
    """Blocks of one shape that a Markov chain draws, and the coupled pairs that its number of sweeps rests on.

    All `pairs` met within largest_sweeps; so many shapes were assessed together; eta is the estimated error of one block.
    """

    blocks: int
    cells: int
    """Of one block."""
    kernel: str
    pairs: int
    largest_sweeps: int
    sweeps: int
    eta: Fraction
    shapes: int = 1


@dataclass(frozen=True)
class Conditioning:
    """What a law that is conditioned on kept totals, and on inequalities where there are any, costs.

    rate:   of the law, for each unit of distance; the promise is for (1 + gamma) times as much.
    gamma:  for all tables with the same kept totals and within the bounds, whatever their counts.
    basis:  how gamma is known: equalities (there are no inequalities), default (it is never above 1), or what was proved beyond.
    """

    rate: Fraction
    gamma: Fraction
    basis: str
    blocks: int = 0
    """Blocks that have noise; of these, as far as structure and bounds tell without the values of totals:"""
    disrupted: int = 0
    """in which two tables are further apart than one person can move,"""
    destroyed: int = 0
    """in which there is one table only ([GM20] section 5.1)."""


LawName: TypeAlias = Literal["lattice", "sequential"]
AskedLaw: TypeAlias = Literal["auto", "lattice", "sequential"]


@dataclass(frozen=True)
class GaussianLaw:
    """Which law of Gaussian noise is drawn, and what it costs: (1 + kappa) rho for each unit of distance ([theory R22]).

    rho:     of the lattice law with the same form.
    kappa:   0 for the lattice law; else the largest of the blocks that are drawn by the sequential law.
    factor:  how many times the variances are those that the whole budget buys under the lattice law, at least 1.
    tries:   a bound of the expected tries of a block drawn by the lattice law; None where nobody asked.
    blocks:  drawn by the sequential law; `size`: cells of the one that decides kappa.
    least:   the smallest variance of a number of it, given those drawn before; `cells`: how many have it.
    in_groups:  whether the last cells of its lines are kept or drawn anew together.
    """

    asked: AskedLaw
    name: LawName
    rho: Fraction
    kappa: Fraction = Fraction(0)
    factor: Fraction = Fraction(1)
    tries: float | None = None
    blocks: int = 0
    size: int = 0
    least: Fraction | None = None
    cells: int = 0
    in_groups: bool = False


@dataclass(frozen=True)
class Answers:
    """Where real-valued answers are published: whole numbers of steps, and a unit of distance is one step.

    norm:         what the next two are: an l1 distance, or the SQUARE of an l2 distance.
    sensitivity:  how far one person can move the answers, in values.
    reach:        the same on the grid, in steps: what it costs to bring answers to the grid is in it ([theory T110]).
    replacing:    the reach of one person replaced by another, which a ledger charges: more than `reach` where neighbours add or remove.
    on_grid:      whether the answers of every data set are on the grid, so that nothing is rounded.
    neighbours:   which data sets differ in one person: replace-one, add-remove, or declared by whoever gave the sensitivity.
    """

    step: Fraction
    norm: AnswersNorm
    sensitivity: Fraction
    reach: int
    replacing: int
    on_grid: bool
    neighbours: str

    def to_fields(self) -> dict[str, str | int | bool]:
        """What a card has; the words beside them say `replacing` where it differs."""
        said = {name: value for name, value in asdict(self).items() if name != "replacing"}
        return {**said, "step": step_text(self.step), "sensitivity": format_exact(self.sensitivity)}


@dataclass(frozen=True)
class KeyedNoise:
    """Noise that is looked up by cell keys, and not drawn: figures of its law over the draw of record keys, for one cell and one answer.

    first, last:      counts that have noise; last is None where larger ones have it too.
    lowest, highest:  the range of the noise. variance: the largest of any count.
    least_result:     the smallest count above 0 that can be published. lowest_result: the smallest one, negative ones included.
    epsilon, delta:   bounds for two counts from `first` on that differ by one; no larger epsilon has a smaller delta.
    zero_delta:       the delta between counts 0 and 1, whatever epsilon, since empty cells stay empty; None where count 1 has no noise.
    distance:         of cell keys from uniform, which adds (1 + e^epsilon) times as much to delta.
    weighted:         whether counts with noise were multiplied by the mean weight of their records: the figures do not hold then.
    other_noise:      whether earlier tables of the same records may have other noise.
    """

    first: int
    last: int | None
    lowest: int
    highest: int
    variance: float
    least_result: int
    lowest_result: int
    epsilon: float
    delta: Fraction
    zero_delta: Fraction | None
    distance: Fraction
    weighted: bool = False
    other_noise: bool = False


@dataclass(frozen=True)
class Promise:
    """What two tables at one distance are promised.

    epsilon, delta:  the pair is (epsilon, delta)-indistinguishable. A Fraction is exact, a float is rounded up. delta is 0 for pure.
    rho:             the pair is rho-zCDP; None where no rho is known.
    """

    kind: Kind
    epsilon: Fraction | float
    delta: Fraction | float
    rho: Fraction | None

    @classmethod
    def pure(cls, epsilon: Exact) -> Promise:
        value = not_negative(epsilon, "epsilon")
        return Promise("pure", value, Fraction(0), value * value / 2)

    @classmethod
    def zcdp(cls, rho: Exact) -> Promise:
        value = budget(rho, "rho")
        return Promise("zcdp", zcdp_epsilon(value, DEFAULT_DELTA), DEFAULT_DELTA, value)

    @classmethod
    def approximate(cls, epsilon: Exact, delta: Exact) -> Promise:
        return Promise("approximate", not_negative(epsilon, "epsilon"), probability(delta, "delta"), None)

    def to_fields(self) -> dict[str, str | None]:
        """JSON-ready; a number that is not exact is a decimal rounded up."""
        return {
            "kind": self.kind,
            "epsilon": format_exact(self.epsilon),
            "delta": format_exact(self.delta),
            "rho": None if self.rho is None else format_exact(self.rho),
        }

    def __str__(self) -> str:
        """The numbers of its kind, for people."""
        if self.kind == "cell-key":
            return "no differential privacy"
        names = {"pure": ("epsilon",), "zcdp": ("rho", "epsilon", "delta"), "approximate": ("epsilon", "delta")}[self.kind]
        return ", ".join(f"{name} = {format_short(getattr(self, name))}" for name in names)


@dataclass(frozen=True, kw_only=True, repr=False)
class Guarantee:
    """A promise about every pair of tables in the relation.

    Given:       the parameters of its kind (pure: epsilon; zcdp: rho; approximate: epsilon, delta), exact, for each unit of `distance`;
                 smallest_secret and person as the l1 distance or the SQUARED l2 distance. `person` is how far one person can move the
                 table, None where no person can change alone.
    Guarantees:  cost(d) bounds from above what the release reveals about any pair of tables in the relation at distance d.
    Reference:   [DGGY22] Definition 2; [CKS20] Proposition 7; [theory T33], [theory T34].
    """

    kind: Kind
    distance: Norm
    """The norm; its name is taken too."""
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    smallest_secret: int | Fraction
    smallest_secret_status: Found = "exact"
    person: int | Fraction | None
    person_can_be_added: bool = False
    protect: str = "person"
    max_records: int = 1
    relation: Relation = Relation()
    exposed: Exposed = field(default_factory=Exposed)
    status: Status = "exact"
    eta: Fraction | None = None
    """For "estimated": the total variation error that `delta` accounts for (estimated.py)."""
    chains: tuple[ChainFacts, ...] = ()
    """What eta rests on."""
    conditioning: Conditioning | None = None
    """Where the law is conditioned (mechanisms/conditional.py)."""
    law: GaussianLaw | None = None
    """The law of generalized Gaussian noise that no chain draws (channels/gaussian.py)."""
    answers: Answers | None = None
    """Where real-valued answers are published (mechanisms/subspace.py)."""
    keyed: KeyedNoise | None = None
    """For "cell-key", which promises no differential privacy: figures of the noise (mechanisms/cellkey.py)."""
    asked: Asked | None = None
    """What was asked for. Given: where it is an (epsilon, delta) for one person, that is proved for the pair at that distance."""
    key_is_shared: bool = False
    """Whether several agents hold the key of the noise (engines/distributed.py): each of them can take all of it off again."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", norm_of(self.distance, "distance", DISTANCES))
        for name, allowed in (("kind", Kind), ("status", Status), ("smallest_secret_status", Found)):
            value, names = getattr(self, name), get_args(allowed)
            if value not in names:
                raise InvalidParameter(f"{name} must be one of {', '.join(map(repr, names))}. Got {value!r}.")
        for name in ("epsilon", "rho", "delta"):
            self._read_parameter(name)
        for name in ("smallest_secret", "max_records", *(() if self.person is None else ("person",))):
            if self.distance == LEVELS and name != "max_records":
                positive_fraction(getattr(self, name), name)
            elif exact_integer(getattr(self, name), name) < 1:
                raise InvalidParameter(f"{name} must be a whole number, 1 or more. Got {getattr(self, name)}.")
        if self.person is not None and self.smallest_secret > self.person:
            raise InvalidParameter(
                f"person = {self.person} is nearer than the smallest secret, {self.smallest_secret}: then no {self.protect} can change "
                "alone. Write person=None."
            )
        if (self.kind == "cell-key") is (self.keyed is None):
            raise InvalidParameter("A guarantee of kind 'cell-key', and no other, has figures of keyed noise.")
        self._check_status()

    def _check_status(self) -> None:
        if self.status == "exact":
            if self.eta is not None or self.chains:
                raise InvalidParameter("eta is the error of a law that is not exact. Leave it out, or write status='estimated'.")
            return
        if self.kind == "pure":
            raise InvalidParameter(
                "A law that is not exact has no pure promise: its error is a probability. Write kind='approximate' and a delta."
            )
        if self.eta is None or not self.chains:
            raise InvalidParameter("An estimated guarantee needs eta, its total variation error, and the chains that eta rests on.")
        object.__setattr__(self, "eta", probability(self.eta, "eta"))

    def _read_parameter(self, name: str) -> None:
        value = getattr(self, name)
        if name not in NEEDS[self.kind]:
            if value is not None and name in ALLOWS.get(self.kind, ()):
                object.__setattr__(self, name, budget(value, name))
                return
            if value is not None:
                raise InvalidParameter(f"A guarantee of kind {self.kind!r} has {' and '.join(NEEDS[self.kind])}. Leave {name} out.")
            return
        if value is None:
            raise InvalidParameter(f"A guarantee of kind {self.kind!r} needs {' and '.join(NEEDS[self.kind])}. {name} is missing.")
        # Pure with epsilon 0 is the promise of what depends on the kept totals alone: suppression.
        reader = probability if name == "delta" else not_negative if self.kind == "pure" else budget
        object.__setattr__(self, name, reader(value, name))

    def cost(self, distance: Exact, *, delta: Exact | None = None) -> Promise:
        """What two tables at this distance are promised, rounded up.

        Given:  the l1 distance, or the squared l2 distance, greater than zero and exact; delta is used for zCDP only (by default the one
                asked for, else 1e-10).
        """
        value = positive_fraction(distance, "distance")
        if self.kind == "cell-key":
            return Promise("cell-key", Fraction(0), Fraction(1), None)
        squared, length = self.distance.squared_length(value), self.distance.length(value)
        if self.kind == "zcdp":
            assert self.rho is not None
            asked, rho = self.asked, self.rho * squared
            default = DEFAULT_DELTA if asked is None or asked.delta is None else asked.delta
            chosen = default if delta is None else probability(delta, "delta")
            if asked is not None and asked.is_pair_for_person and asked.delta == chosen and value == self.moving:
                assert asked.epsilon is not None
                return Promise("zcdp", asked.epsilon, chosen, rho)
            return Promise("zcdp", zcdp_epsilon(rho, chosen), chosen, rho)
        assert self.epsilon is not None
        epsilon = self.epsilon * length if length is not None else _root_up(self.epsilon**2 * squared)
        if self.kind == "pure":  # pure e is e^2/2-zCDP for that pair, and e^2 is rational also where e is not
            return Promise("pure", epsilon, Fraction(0), self.epsilon**2 * squared / 2)
        assert self.delta is not None
        delta_there = self.delta if squared == 1 else _delta_at(self.epsilon, self.delta, squared)
        return Promise("approximate", epsilon, delta_there, None if self.rho is None else self.rho * squared)

    @property
    def moving(self) -> int:
        """How far one person who changes is at most, squared for l2: all records to another cell; for answers, their reach."""
        return self.distance.person_moving(self.max_records) if self.answers is None else self.answers.reach

    @property
    def replacing(self) -> int:
        """How far one person replaced by another is at most, squared for l2: what a ledger charges, whoever the neighbours are."""
        return self.moving if self.answers is None else self.answers.replacing

    @property
    def only_added(self) -> bool:
        """Whether one person can come or go unseen by the kept totals, and not move."""
        return self.person_can_be_added and self.person == self.distance.person_adding(self.max_records)

    @property
    def costs_nothing(self) -> bool:
        """Whether what is published is the same for all tables of the relation: suppression."""
        return self.epsilon == 0

    @property
    def secret_differs(self) -> bool:
        """Whether the smallest secret is at another distance than one person."""
        return self.person != self.smallest_secret

    def per_distance(self, *, delta: Exact | None = None) -> Promise:
        """At distance 1: the parameters of the papers."""
        return self.cost(1, delta=delta)

    def per_person(self, *, delta: Exact | None = None) -> Promise | None:
        """For one person (or what is protected) changing all of their records; None where no person can change alone."""
        return None if self.person is None else self.cost(self.person, delta=delta)

    def per_smallest_secret(self, *, delta: Exact | None = None) -> Promise:
        """For the two closest tables that the kept totals allow. If smallest_secret_status is "lower bound", they may be farther apart."""
        return self.cost(self.smallest_secret, delta=delta)

    @property
    def parameters(self) -> dict[str, str]:
        """Those of its kind, for each unit of distance, exact."""
        return {n: format_exact(v) for n in ("epsilon", "rho", "delta", "eta") if (v := getattr(self, n)) is not None}

    def overview(self) -> dict[str, str]:
        """The fields that a screen shows, without sentences; first the budget as requested."""
        person = self.per_person()
        same = [name for name, value in self.relation.to_fields().items() if value]
        return {
            **({} if self.asked is None else {"asked": str(self.asked)}),
            f"one {self.protect}": "none can change alone" if person is None else str(person),
            f"one unit of {self.distance}": str(self.per_distance()),
            **({"smallest secret": str(self.per_smallest_secret())} if self.secret_differs else {}),
            "kind": self.kind,
            "relation": ", ".join(same) or "all tables",
            "exposed cells": str(self.exposed.cells),
            "status": self.status,
            **({"against": "outsiders only"} if self.key_is_shared else {}),
            **({} if self.eta is None else {"eta": format_exact(self.eta)}),
        }

    def __repr__(self) -> str:
        return f"Guarantee({shorten('; '.join(f'{name}: {value}' for name, value in self.overview().items()), 220)})"

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in self.overview().items())
        return f"<table>{''.join(rows)}</table>"


def _root_up(value: Fraction) -> float:
    """The square root as a float, rounded up."""
    with precision(256):
        return enclosure(ball(value).sqrt()).up()


def _delta_at(epsilon: Fraction, delta: Fraction, squared: Fraction) -> float:
    """delta (e^(epsilon r) - 1) / (e^epsilon - 1) rounded up, at most 1; `squared` is r^2."""
    with precision(256):
        one, far = ball(epsilon), ball(epsilon) * ball(squared).sqrt()
        ratio = (far - one).exp() * (-far).expm1() / (-one).expm1()  # this way round only a true overflow is one
        value = ball(delta) * ratio
        return min(enclosure(value).up(), 1.0) if value < 2 else 1.0  # not below 2 also where it overflowed
