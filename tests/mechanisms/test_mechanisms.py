"""Mechanisms: what their constructors take and refuse, and what they say of themselves."""

from __future__ import annotations

import dataclasses
import pickle
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.channels import Facts
from holdfast.errors import InexactParameter, InvalidParameter, NoExactSampler, RequestTooLarge
from holdfast.lattices import Lattice
from holdfast.laws import Gaussian, L1Laplace, Rounded
from holdfast.mechanisms import MECHANISMS as MECHANISM_TABLE
from holdfast.mechanisms import mechanism_class, register
from holdfast.privacy import Relation
from holdfast.wording.errors import has_long_tails, is_unbiased
from tests.laws.lattices import sigma_squared_of
from tests.snapshot_files import Snapshot

ANSWERS = [hf.ProjectedLaplace, hf.ExtendedLaplace, hf.ProjectedGaussian, hf.ExtendedGaussian]
WITH_EPSILON = [hf.GeneralizedLaplace, hf.RoundedProjection]
MECHANISMS: list[Any] = [
    hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
    hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"),
    hf.GeneralizedGaussian(rho="1/10", per="distance"),
    hf.GeneralizedGaussian(epsilon="1/4", delta="1e-5", calibration="simple", per="distance"),
    hf.RoundedProjection(epsilon="0.25", per="distance"),
    hf.Suppression(),
]


class TestExactNumbers:
    @pytest.mark.parametrize("mechanism", WITH_EPSILON)
    @pytest.mark.parametrize("given", [Fraction(1, 4), "1/4", "0.25", "25e-2", np.int64(1) * 1])
    def test_exact_ways_to_write_it(self, mechanism: Any, given: Any) -> None:
        assert mechanism(epsilon=given).epsilon == (1 if isinstance(given, np.int64) else Fraction(1, 4))

    @pytest.mark.parametrize("mechanism", WITH_EPSILON)
    def test_a_float_is_refused_with_the_string_to_write(self, mechanism: Any) -> None:
        with pytest.raises(InexactParameter, match=r"epsilon must be exact.*Write the string '0.1' instead"):
            mechanism(epsilon=0.1)

    @pytest.mark.parametrize("name", ["rho", "sigma_squared"])
    def test_a_float_is_refused_by_the_gaussian_too(self, name: str) -> None:
        with pytest.raises(InexactParameter, match=rf"{name} must be exact.*'0.1'"):
            hf.GeneralizedGaussian(**{name: 0.1})  # type: ignore[arg-type]
        with pytest.raises(InexactParameter, match=r"delta must be exact.*'1e-05'"):
            hf.GeneralizedGaussian(epsilon=1, delta=1e-5, per="distance")  # type: ignore[arg-type]

    @pytest.mark.parametrize("mechanism", WITH_EPSILON)
    @pytest.mark.parametrize("given", [0, "0", "0.000", "0/7"])
    def test_a_budget_of_zero_points_to_the_kept_totals_alone(self, mechanism: Any, given: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"greater than zero.*kept totals alone"):
            mechanism(epsilon=given)

    @pytest.mark.parametrize("mechanism", WITH_EPSILON)
    @pytest.mark.parametrize("given", [-1, "-1/4", "", "one", "1/0", "inf", "nan", True, None, [1], "1e999"])
    def test_what_is_no_budget(self, mechanism: Any, given: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"epsilon"):
            mechanism(epsilon=given)

    @pytest.mark.parametrize("delta", [0, 1, "1", "1.5", -1, "2"])
    def test_delta_lies_strictly_between_0_and_1(self, delta: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"delta must lie strictly between 0 and 1.*1e-10"):
            hf.GeneralizedGaussian(epsilon=1, delta=delta, per="distance")


class TestGaussianNeedsOneOfThree:
    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"rho": 1, "sigma_squared": 1},
            {"rho": 1, "epsilon": 1, "delta": "0.1"},
            {"epsilon": 1},
            {"delta": "0.1"},
            {"rho": 1, "delta": "0.1"},
        ],
        ids=str,
    )
    def test_anything_else_is_refused(self, given: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter, match=rf"exactly one of rho.*Got {', '.join(given) or 'none of them'}"):
            hf.GeneralizedGaussian(**given)

    def test_sigma_squared_of_rho(self) -> None:
        lattice = hf.Lattice(np.ones((1, 3), dtype=np.int64))
        assert hf.GeneralizedGaussian(rho="1/10", per="distance").law(lattice).target == Gaussian(Fraction(5))
        assert hf.GeneralizedGaussian(sigma_squared="7/2").law(lattice).target == Gaussian(Fraction(7, 2))
        assert sigma_squared_of(hf.GeneralizedGaussian(epsilon="1/4", delta="1/100000", per="distance"), lattice) <= 213

    def test_calibrations_are_ordered(self) -> None:
        rows = np.array([[1] * 4 + [0] * 12, *np.tile(np.eye(4, dtype=np.int64), 4)])
        lattice = hf.Lattice(rows)
        tight, simple, paper = (
            sigma_squared_of(hf.GeneralizedGaussian(epsilon="1/4", delta="1/100000", calibration=way, per="distance"), lattice)
            for way in ("tight", "simple", "paper")
        )
        assert tight <= simple
        assert 10 * tight <= paper


class TestWords:
    def test_unknown_words_are_refused_with_the_known_ones(self) -> None:
        with pytest.raises(InvalidParameter, match=r"norm must be one of 'l1', 'l2'. Got 'l3'"):
            hf.GeneralizedLaplace(epsilon=1, norm="l3")  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match=r"sampler must be one of 'auto', .*'line_gibbs', 'coupling_from_past'. Got 'fast'"):
            hf.GeneralizedLaplace(epsilon=1, sampler="fast")
        with pytest.raises(InvalidParameter, match=r"sampler must be one of 'auto'"):
            hf.GeneralizedGaussian(rho=1, sampler="klein", per="distance")
        with pytest.raises(InvalidParameter, match=r"calibration must be one of 'tight', 'simple', 'paper'. Got 'loose'"):
            hf.GeneralizedGaussian(epsilon=1, delta="0.1", calibration="loose", per="distance")  # type: ignore[arg-type]

    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
    def test_frozen_values(self, mechanism: Any) -> None:
        assert mechanism == pickle.loads(pickle.dumps(mechanism))
        assert hash(mechanism) == hash(pickle.loads(pickle.dumps(mechanism)))
        with pytest.raises(dataclasses.FrozenInstanceError):
            mechanism.epsilon = 2
        assert all(isinstance(value, str) for value in mechanism.parameters.values())

    def test_parameters_say_all_that_decides_the_law(self) -> None:
        assert [m.parameters for m in MECHANISMS] == [
            {"epsilon": "0.25", "per": "distance", "norm": "l1"},
            {"epsilon": "0.25", "per": "distance", "norm": "l2"},
            {"rho": "0.1", "per": "distance"},
            {"epsilon": "0.25", "delta": "1e-5", "per": "distance", "calibration": "simple"},
            {"epsilon": "0.25", "per": "distance"},
            {},
        ]


class TestPerPerson:
    """One person of m records who changes cell: 2 m in l1, 2 m^2 in squared l2."""

    @pytest.mark.parametrize("m", [1, 3, None])
    @pytest.mark.parametrize(
        "mechanism",
        [
            hf.GeneralizedLaplace(epsilon="1/2", per="person"),
            hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="person"),
            hf.GeneralizedGaussian(rho="1/3", per="person"),
            hf.GeneralizedGaussian(epsilon=1, delta="1e-6", per="person"),
            hf.RoundedProjection(epsilon="1/2", per="person"),
        ],
        ids=repr,
    )
    def test_the_law_is_that_of_the_converted_mechanism(self, mechanism: Any, m: int | None) -> None:
        lattice = hf.Lattice(np.ones((1, 3), dtype=np.int64))
        unit = mechanism.for_distance(m or 1)
        assert (mechanism.per, unit.per, unit.for_distance(7)) == ("person", "distance" if unit.has_budget else None, unit)
        law, expected = mechanism.law(lattice, max_records=m), unit.law(lattice, max_records=m)
        assert (repr(law), dataclasses.replace(law.guarantee, asked=unit.asked)) == (repr(expected), expected.guarantee)

    def test_the_promise_for_one_person_is_what_was_asked(self) -> None:
        lattice = hf.Lattice(np.ones((1, 3), dtype=np.int64))
        for mechanism, name in (
            (hf.GeneralizedLaplace(epsilon="1/2", per="person"), "epsilon"),
            (hf.GeneralizedGaussian(rho="1/3", per="person"), "rho"),
        ):
            cost = mechanism.law(lattice, max_records=3).guarantee.per_person()
            assert cost is not None
            assert getattr(cost, name) == getattr(mechanism, name)

    def test_rho_is_promised_as_given(self) -> None:
        mechanism, lattice = hf.GeneralizedGaussian(rho="1/7", per="distance"), hf.Lattice(np.ones((1, 3), dtype=np.int64))
        assert (mechanism.law(lattice).guarantee.rho, sigma_squared_of(mechanism, lattice)) == (Fraction(1, 7), Fraction(7, 2))

    @pytest.mark.parametrize("per", ["person", "distance"])
    def test_sigma_squared_is_for_nobody(self, per: str) -> None:
        with pytest.raises(InvalidParameter, match=r"sigma_squared is the noise itself and no budget. Leave per out"):
            hf.GeneralizedGaussian(sigma_squared=4, per=per)
        asked = hf.GeneralizedGaussian(sigma_squared=4).law(hf.Lattice([[1, 1]]), protect="household", max_records=3).guarantee.asked
        assert asked is not None
        assert asked.to_fields() == {"per": None, "parameters": {"sigma_squared": "4"}}

    @pytest.mark.parametrize(
        ("mechanism", "target"),
        [
            (hf.GeneralizedLaplace(epsilon=1), L1Laplace(Fraction(1, 6))),
            (hf.GeneralizedGaussian(rho=1), Gaussian(Fraction(9))),
            (hf.RoundedProjection(epsilon=1), Rounded(Fraction(1, 6))),
            (hf.Conditional(epsilon=1, lower=None), L1Laplace(Fraction(1, 6))),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("per", [None, "household"])
    def test_the_budget_is_for_what_the_table_protects(self, mechanism: Any, target: Any, per: str | None) -> None:
        facts = Facts(hf.Lattice([[1, 1]]), protect="household", max_records=3)
        channel = mechanism._with(per=per).channel(facts)
        assert channel.target == target
        assert channel.guarantee.asked is not None
        assert channel.guarantee.asked.per == "household"
        assert mechanism.for_facts(facts).parameters["per"] == "household"

    @pytest.mark.parametrize("made", [hf.GeneralizedLaplace, hf.RoundedProjection, hf.Conditional])
    def test_a_budget_for_another_unit_is_refused(self, made: Any) -> None:
        facts = Facts(hf.Lattice([[1, 1]]), protect="household", max_records=3)
        with pytest.raises(
            InvalidParameter, match=r"The table protects 'household', and the budget is for 'person'\. Write per='household'"
        ):
            made(epsilon=1, per="person").channel(facts)
        for wrong in ("", " ", 1, ["person"]):
            with pytest.raises(InvalidParameter, match="per says what the budget is for"):
                made(epsilon=1, per=wrong)

    def test_parameters_are_named(self) -> None:
        for made in (hf.GeneralizedLaplace, hf.RoundedProjection, hf.Conditional, hf.GeneralizedGaussian, *ANSWERS):
            with pytest.raises(TypeError, match="positional argument"):
                made(1)

    def test_what_needs_a_distance_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match=r"sampler='line_gibbs': a Markov chain needs.*per='distance'"):
            hf.GeneralizedGaussian(epsilon=1, delta="1e-6", sampler="line_gibbs", per="person")
        with pytest.raises(InvalidParameter, match=r"calibration='paper' goes with per='distance'"):
            hf.GeneralizedGaussian(epsilon=1, delta="1e-6", calibration="paper", per="person")

    @pytest.mark.parametrize(
        ("mechanism", "text", "parameters"),
        [
            (
                hf.GeneralizedLaplace(epsilon="1/2", per="person"),
                "GeneralizedLaplace(epsilon='1/2', per='person')",
                {"epsilon": "0.5", "per": "person", "norm": "l1"},
            ),
            (
                hf.GeneralizedGaussian(epsilon=1, delta="1e-9", per="person"),
                "GeneralizedGaussian(epsilon='1', delta='1e-9', per='person')",
                {"epsilon": "1", "delta": "1e-9", "per": "person"},
            ),
            (
                hf.GeneralizedLaplace(epsilon="0.192", norm="l2", sampler="metropolis", eta="1/50", per="distance"),
                "GeneralizedLaplace(epsilon='0.192', norm='l2', sampler='metropolis', eta='1/50', per='distance')",
                {"epsilon": "0.192", "per": "distance", "norm": "l2", "sampler": "metropolis", "eta_allowed": "0.02"},
            ),
            (hf.Suppression(), "Suppression()", {}),
        ],
        ids=["laplace", "gaussian", "chain", "suppression"],
    )
    def test_shown_as_asked(self, mechanism: Any, text: str, parameters: dict[str, str]) -> None:
        assert (repr(mechanism), mechanism.parameters) == (text, parameters)
        assert eval(text, vars(hf) | {text.split("(")[0]: type(mechanism)}) == mechanism


class TestRegistry:
    def test_every_mechanism_has_one_row(self) -> None:
        assert [mechanism_class(name).name for name in MECHANISM_TABLE] == list(MECHANISM_TABLE)
        assert register(hf.Suppression) is hf.Suppression

    def test_a_taken_name_is_refused(self) -> None:
        class Other(hf.Suppression):
            """Another class of the same name."""

        with pytest.raises(InvalidParameter, match=r"'suppression' is registered already, as Suppression. Give yours another name"):
            register(Other)
        with pytest.raises(InvalidParameter, match=r"no mechanism 'none such'. Mechanisms: generalized-laplace, "):
            mechanism_class("none such")

    def test_a_new_one_is_known_by_its_name(self) -> None:
        class New(hf.Suppression):
            """A new one."""

            name = "new"

        try:
            assert register(New) is mechanism_class("new")
        finally:
            del MECHANISM_TABLE["new"]


class TestImpossibleRequests:
    def test_a_large_grid_is_refused_by_laplace_with_the_alternatives(self) -> None:
        universe = hf.Universe.product({name: [str(i) for i in range(8)] for name in "abc"})
        lattice = hf.lattice(universe, [hf.margin("a", "b"), hf.margin("a", "c"), hf.margin("b", "c")])
        law = hf.GeneralizedLaplace(epsilon="1/4", per="distance").law(lattice)  # nothing is chosen yet
        with pytest.raises(NoExactSampler, match=r"8 x 8 x 8.*250 free.*GeneralizedGaussian.*RoundedProjection.* variance of a cell"):
            law.sample(1)
        assert hf.RoundedProjection(epsilon="1/4", per="distance").law(lattice).sampler.status == "exact"
        assert hf.GeneralizedGaussian(rho="1/10", per="distance").law(lattice).sampler.status == "exact"

    @pytest.mark.parametrize(
        "mechanism",
        [
            hf.GeneralizedLaplace(epsilon="1e-18", per="distance"),
            hf.GeneralizedGaussian(rho="1e-36", per="distance"),
            hf.RoundedProjection(epsilon="1e-18", per="distance"),
        ],
    )
    def test_noise_that_could_leave_64_bits_is_refused(self, mechanism: Any) -> None:
        with pytest.raises(RequestTooLarge, match=r"64-bit integers.*larger budget"):
            mechanism.law(hf.Lattice(np.ones((1, 3), dtype=np.int64)))


class TestNaturalMistakes:
    LAW = hf.GeneralizedLaplace(epsilon="1/2", per="distance").law(hf.Lattice([[1, 1, 1]]))
    UNIVERSE = hf.Universe.product({"a": ["x", "y"]})

    def test_no_draws_are_an_empty_array(self) -> None:
        for mechanism in (
            hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
            hf.GeneralizedGaussian(rho=1, per="distance"),
            hf.RoundedProjection(epsilon=1, per="distance"),
        ):
            assert mechanism.law(hf.Lattice([[1, 1, 1, 0]])).sample(0).shape == (0, 4)

    def test_arguments_of_a_law(self) -> None:
        with pytest.raises(InvalidParameter, match=r"key is a NoiseKey, or None.*Got int"):
            self.LAW.sample(3, 7)  # type: ignore[arg-type]
        for t in ("x", None, float("nan"), True):
            with pytest.raises(InvalidParameter, match=r"t must be a number"):
                self.LAW.tail_bound(t)  # type: ignore[arg-type]

    def test_a_table_has_a_lattice_and_no_law(self) -> None:
        table = hf.Table(self.UNIVERSE, np.array([1, 2]))
        assert hf.lattice(table, [hf.total()]).dimension == hf.lattice(self.UNIVERSE, [hf.total()]).dimension == 1
        for thing in (table, self.UNIVERSE, [[1, 1]]):
            with pytest.raises(InvalidParameter, match=r"hf\.lattice\("):
                hf.GeneralizedLaplace(epsilon="1/2", per="distance").law(thing)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match=r"A lattice needs a Table or a Universe.*Got list"):
            hf.lattice([hf.total()], table)  # type: ignore[arg-type]

    def test_a_plan_is_no_table(self) -> None:
        table = hf.Table(self.UNIVERSE, np.array([1, 2]))
        plan = hf.plan(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance"))
        with pytest.raises(InvalidParameter, match=r"\(table, keep, mechanism\).*Got Plan"):
            hf.release(plan, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), ledger=None)  # type: ignore[call-overload]

    def test_suppression_has_no_law(self) -> None:
        with pytest.raises(InvalidParameter, match=r"Suppression publishes no cells: it has no noise\."):
            hf.Suppression().law(hf.Lattice([[1, 1, 1]]))
        plan = hf.plan(self.UNIVERSE, [hf.total()], hf.Suppression())
        with pytest.raises(InvalidParameter, match=r"Suppression publishes no cells"):
            _ = plan.law
        assert plan.expected_error.basis == "exact"


class TestPromise:
    def test_identities_are_no_kept_totals(self) -> None:
        """They hold for every data set: they fix cells, and expose nothing ([theory T9])."""
        universe = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q"]})
        never = hf.identity(hf.subset("a = 'x' and b = 'p'"))
        law = hf.GeneralizedLaplace(epsilon=1, per="distance").law(hf.lattice(universe, [hf.margin("a"), never]))
        assert law.guarantee.exposed.kept_sums == 3
        assert law.guarantee.exposed.cells == 1
        assert law.guarantee.exposed.names == ("a=x, b=q",)
        alone = hf.GeneralizedLaplace(epsilon=1, per="distance").law(hf.lattice(universe, [never])).guarantee
        assert alone.exposed.kept_sums == 0
        assert alone.exposed.cells == 0
        assert alone.relation == Relation(same_totals=False, identities=True)
        assert law.guarantee.relation == Relation(identities=True)


class TestWordsOfTheRelation:
    def test_cells_that_occur_are_not_promised(self, snapshot: Snapshot) -> None:
        records = pa.table({"a": ["x", "x", "y"], "b": ["p", "q", "q"]})
        table = hf.Table.from_records(records, ["a", "b"], universe="observed")
        free = hf.plan(table, [], hf.GeneralizedLaplace(epsilon="1/2", per="distance")).guarantee
        assert free.relation == Relation(same_totals=False, same_cells=True)
        snapshot(hf.describe(free), "nothing is kept")
        kept = hf.plan(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance")).guarantee
        assert kept.relation == Relation(same_totals=True, same_cells=True)
        snapshot(hf.describe(kept), "the total is kept")

    def test_identities_alone_are_no_kept_totals(self, snapshot: Snapshot) -> None:
        universe = hf.Universe.product({"a": ["x", "y"]})
        words = hf.describe(
            hf.plan(universe, [hf.identity(hf.linear([[1, -1]]))], hf.GeneralizedLaplace(epsilon="1/2", per="distance")).guarantee
        )
        snapshot(words)
        assert "the kept totals are published" not in words
        assert "change a kept total" not in words

    def test_suppression_of_everything_speaks_of_no_noise(self, snapshot: Snapshot) -> None:
        universe = hf.Universe.product({"a": ["x", "y"]})
        words = hf.describe(hf.plan(universe, [], hf.Suppression()).guarantee)
        snapshot(words)
        assert "without noise" not in words

    def test_one_record_is_not_one_person(self, snapshot: Snapshot) -> None:
        people = pa.table({"a": ["x", "y"], "n": [3, 4]})
        table = hf.Table.from_counts(people, cells=["a"], count="n", public=True, max_records=None)
        made = hf.plan(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance")).guarantee
        assert made.protect == "record"
        snapshot(hf.describe(made))


class TestRegisteringChangesNothingThatIsThere:
    def test_a_row_of_another_mechanism_is_not_replaced(self) -> None:
        """Else GeneralizedLaplace would draw what a stranger's sampler draws, under its own promise."""
        from holdfast.lattices.shapes import Free
        from holdfast.laws import L1Laplace
        from holdfast.samplers.table import SAMPLERS

        class Stranger(hf.RoundedProjection):
            name = "stranger"

        before = dict(SAMPLERS)
        with pytest.raises(InvalidParameter, match=r"There is a sampler for \(Free, L1Laplace\) already"):
            register(Stranger, {(Free, L1Laplace): lambda shape, target: None})  # type: ignore[dict-item,return-value]
        assert before == SAMPLERS
        assert "stranger" not in MECHANISM_TABLE

    @pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a\n", 5])
    def test_a_name_is_a_word(self, name: Any) -> None:
        with pytest.raises(InvalidParameter):
            register(type("Stranger", (hf.RoundedProjection,), {"name": name}))

    @pytest.mark.parametrize("thing", [int, 5, None])
    def test_only_mechanisms_are_registered(self, thing: Any) -> None:
        with pytest.raises(InvalidParameter, match="takes a subclass of Mechanism"):
            register(thing)


@pytest.mark.parametrize("value", ["1e151", "1e-151", "1e400", "1e-400", "1/" + "3" * 160])
@pytest.mark.parametrize(
    "make",
    [
        lambda value: hf.GeneralizedLaplace(epsilon=value, per="distance"),
        lambda value: hf.RoundedProjection(epsilon=value, per="distance"),
        lambda value: hf.GeneralizedGaussian(rho=value, per="distance"),
        lambda value: hf.GeneralizedGaussian(sigma_squared=value),
        lambda value: hf.GeneralizedGaussian(epsilon=value, delta="1e-9", per="distance"),
    ],
)
def test_budgets_are_of_ordinary_size(make: Any, value: str) -> None:
    with pytest.raises(InvalidParameter, match="between 1e-150 and 1e150"):
        make(value)


@pytest.mark.parametrize("calibration", ["tight", "simple", "paper"])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.9999999"), ("40", "1e-6")])
def test_a_promise_with_delta_one_at_every_secret_is_refused_by_every_calibration(
    calibration: Literal["tight", "simple", "paper"], epsilon: str, delta: str
) -> None:
    with pytest.raises(InvalidParameter, match="allows a delta of 1"):
        hf.GeneralizedGaussian(epsilon=epsilon, delta=delta, calibration=calibration, per="distance").law(Lattice(np.array([[1, 1, 1]])))


def test_what_pages_may_say_of_the_noise() -> None:
    """Nobody says of a mechanism that it is unbiased, or has long tails, but the mechanism."""
    laplace = {"generalized-laplace", "rounded-projection", "projected-laplace", "extended-laplace"}
    gaussian = {"generalized-gaussian", "projected-gaussian", "extended-gaussian"}
    assert {name for name, made in MECHANISM_TABLE.items() if made.has_long_tails} == laplace
    assert {name for name, made in MECHANISM_TABLE.items() if made.is_unbiased} == laplace | gaussian
    assert [(is_unbiased(name), has_long_tails(name)) for name in ("conditional", "nobody knows it")] == [(False, False)] * 2
