"""A stream is named by canonical fields alone: names and exact numbers that are never changed, nothing that is written for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.chains import sampler as chain_sampler
from holdfast.channels import Facts
from holdfast.laws import (
    ConditionalGaussian,
    ConditionalLaplace,
    Gaussian,
    L1Laplace,
    L2Laplace,
    LevelGaussian,
    Reads,
    Rounded,
    Suppressed,
    Target,
)
from holdfast.samplers.table import SAMPLERS, choose

from .cases import CASES, GRID, KEEPS, MECHANISMS, released, sampled


def everything() -> dict[tuple[str, str], Any]:
    return {(keep, how): (released(KEEPS[keep], MECHANISMS[how]), sampled(KEEPS[keep], MECHANISMS[how])) for keep, how in CASES}


def forget() -> None:
    """Nothing chosen, piloted or assessed before is used again."""
    choose.cache_clear()
    chain_sampler.known_samplers.clear()


@pytest.fixture(scope="module")
def as_they_are() -> dict[tuple[str, str], Any]:
    forget()
    return everything()


def classes_of_the_package() -> list[type]:
    loaded = [module for name, module in sys.modules.items() if name == "holdfast" or name.startswith("holdfast.")]
    found = {value for module in loaded for value in vars(module).values() if isinstance(value, type)}
    return [value for value in found if value.__module__.startswith("holdfast.")]


@pytest.fixture
def renamed() -> Iterator[list[type]]:
    """Every class of the package under another name."""
    classes = classes_of_the_package()
    names = [(each.__name__, each.__qualname__) for each in classes]
    for number, each in enumerate(classes):
        each.__name__ = each.__qualname__ = f"Renamed{number}"
    forget()
    yield classes
    for each, (name, full) in zip(classes, names, strict=True):
        each.__name__, each.__qualname__ = name, full
    forget()


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Formulas, names of samplers, and every repr and str of the package."""
    for target in (ConditionalGaussian, ConditionalLaplace, L1Laplace, L2Laplace, Gaussian, LevelGaussian, Rounded, Suppressed):
        monkeypatch.setattr(target, "formula", "reworded")
    samplers: set[Any] = {type(choose(*case).sampler) for case in samplers_used()}
    assert len(samplers) >= 10
    for sampler in samplers:
        if "name" in vars(sampler):
            monkeypatch.setattr(sampler, "name", property(lambda _: "reworded") if isinstance(sampler.name, property) else "reworded")
    for each in classes_of_the_package():
        if issubclass(each, Enum | BaseException):
            continue
        for method in ("__repr__", "__str__"):
            if method in vars(each):
                monkeypatch.setattr(each, method, lambda _: "reworded")
    forget()
    yield
    monkeypatch.undo()
    forget()


def test_no_class_name_enters_the_noise(as_they_are: dict[tuple[str, str], Any], renamed: list[type]) -> None:
    """Pilots, assessments, releases and samples are made anew."""
    assert len(renamed) > 200
    assert L1Laplace.__name__.startswith("Renamed")
    assert everything() == as_they_are


@pytest.mark.usefixtures("reworded")
def test_nothing_written_for_people_enters_the_noise(as_they_are: dict[tuple[str, str], Any]) -> None:
    assert repr(L1Laplace(Fraction(1))) == L1Laplace(Fraction(1)).formula == "reworded"
    assert everything() == as_they_are


def samplers_used() -> list[tuple[Any, Target]]:
    used = []
    for keep, how in CASES:
        channel = MECHANISMS[how].channel(Facts.of(GRID, KEEPS[keep]))
        if not channel.request.names_a_chain:
            used += [(shape, channel.target) for shape in channel.shapes()]
    drawn = {target for _, target in SAMPLERS if target.reads is not Reads.CELL_KEYS}  # what is looked up by keys takes no words
    assert {type(target) for _, target in used} >= {target for target in drawn if target.__module__.startswith("holdfast.")}
    return used


def test_a_mechanism_of_another_class_with_the_same_target_draws_the_same(as_they_are: dict[tuple[str, str], Any]) -> None:
    class Other(hf.GeneralizedLaplace):
        """The same target under another class."""

        name = "other"

    mechanism = Other(epsilon="1/2", per="distance")
    assert identity(mechanism, KEEPS["grid"]) == identity(MECHANISMS["laplace"], KEEPS["grid"])
    assert sampled(KEEPS["grid"], mechanism) == as_they_are["grid", "laplace"][1]


def identity(mechanism: Any, keep: list[Any], universe: hf.Universe = GRID) -> str:
    return str(mechanism.channel(Facts.of(universe, keep)).identity)


ROWS = [[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]]
OTHER_CODES = hf.Universe.product({"a": ["x", "y", "w"], "b": ["p", "q", "r"]})
OTHER_COLUMN = hf.Universe.product({"a": ["x", "y", "z"], "c": ["p", "q", "r"]})
CHANGES: dict[str, tuple[Any, list[Any], hf.Universe]] = {
    "as it is": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("a")], GRID),
    "epsilon": (hf.GeneralizedLaplace(epsilon="1/3", per="distance"), [hf.margin("a")], GRID),
    "a little epsilon": (hf.GeneralizedLaplace(epsilon=Fraction(1, 2) + Fraction(1, 10**12), per="distance"), [hf.margin("a")], GRID),
    "norm": (hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance"), [hf.margin("a")], GRID),
    "law": (hf.RoundedProjection(epsilon="1/2", per="distance"), [hf.margin("a")], GRID),
    "gaussian": (hf.GeneralizedGaussian(sigma_squared="1/2"), [hf.margin("a")], GRID),
    "constraints": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("b")], GRID),
    "the same lattice by other constraints": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.linear(ROWS)], GRID),
    "a redundant constraint": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("a"), hf.total()], GRID),
    "codes": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("a")], OTHER_CODES),
    "columns": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("a")], OTHER_COLUMN),
    "chain": (hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance"), [hf.margin("a")], GRID),
    "another chain": (hf.GeneralizedLaplace(epsilon="1/2", sampler="metropolis", eta="3/100", per="distance"), [hf.margin("a")], GRID),
    "eta": (hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="4/100", per="distance"), [hf.margin("a")], GRID),
    "chain allowed": (hf.GeneralizedLaplace(epsilon="1/2", allow_estimated=True, eta="3/100", per="distance"), [hf.margin("a")], GRID),
    "units of a": (
        hf.GeneralizedGaussian(rho="1/18", levels={"a": {"total": "1/3", "detailed": "2/3"}}, per="distance"),
        [hf.total()],
        GRID,
    ),
    "units of b": (
        hf.GeneralizedGaussian(rho="1/18", levels={"b": {"total": "1/3", "detailed": "2/3"}}, per="distance"),
        [hf.total()],
        GRID,
    ),
}


def test_every_change_of_what_is_drawn_is_another_stream() -> None:
    assert len({identity(*change) for change in CHANGES.values()}) == len(CHANGES)
    noises = {
        name: (released(keep, mechanism, universe), sampled(keep, mechanism, universe))
        for name, (mechanism, keep, universe) in CHANGES.items()
    }
    assert len({str(made) for made, _ in noises.values()}) == len(CHANGES)
    # A law knows the lattice and the universe alone: other constraints with the same moves are the same law.
    same = {name for name, (_, drawn) in noises.items() if drawn == noises["as it is"][1]}
    assert same == {"as it is", "the same lattice by other constraints", "a redundant constraint"}
    assert len({str(drawn) for _, drawn in noises.values()}) == len(CHANGES) - 2


def test_what_is_only_said_is_no_part_of_it() -> None:
    """The unit's name, the table's, and how a budget was written: one target, one identity."""
    first = identity(hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("a")])
    for mechanism in (
        hf.GeneralizedLaplace(epsilon="0.5", per="distance"),
        hf.GeneralizedLaplace(epsilon=1, per="person"),
        hf.GeneralizedLaplace(epsilon="1/2", eta="1/7", per="distance"),
    ):
        assert identity(mechanism, [hf.margin("a")]) == first
    facts = Facts(hf.lattice(GRID, [hf.margin("a")]), (hf.margin("a"),), protect="household", count_name="n", name="another")
    assert hf.GeneralizedLaplace(epsilon="1/2", per="distance").channel(facts).identity == first


def test_the_identity_stays_as_it_is() -> None:
    """Part of the stream's format: a change needs a new IDENTITY_VERSION."""
    assert (
        identity(hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("a")])
        == "e3c221f98e4440759c51f0dffe8b3cc4206595442325054ae492c1a630132a67"
    )
    assert (
        hf.GeneralizedGaussian(sigma_squared="7/2").law(hf.Lattice([[1, 1, 1]])).channel.identity
        == "dd5976e723d96433b197576d1bcf8bc7a3019025aa52d72dcf26fccb290b51ba"
    )


def test_the_order_of_areas_is_part_of_the_identity() -> None:
    """It decides which words make which noise, so that equal identities must mean equal orders."""
    universe = hf.Universe.product({"a": [str(i) for i in range(7)]})
    sets = {"A": ["0", "1", "2", "3"], "B": ["2", "3", "4", "5"], "C": ["3", "4", "6"]}
    made = [
        hf.GeneralizedLaplace(epsilon="1/2", per="distance").channel(Facts.of(universe, [hf.areas("a", {k: sets[k] for k in order})]))
        for order in ("ABC", "CBA")
    ]
    assert made[0].identity != made[1].identity
    assert made[0].facts.definitions != made[1].facts.definitions


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_equal_identities_draw_equal_noise_however_the_rows_were_given(norm: Any) -> None:
    rows = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0]]
    first, second = (hf.GeneralizedLaplace(epsilon="1/2", norm=norm, per="distance").law(hf.Lattice(given)) for given in (rows, rows[::-1]))
    assert first.channel.identity == second.channel.identity
    drawn = [law.sample(50, hf.NoiseKey.for_tests("rows")).tolist() for law in (first, second)]
    assert drawn[0] == drawn[1]


def test_lattices_too_large_to_list_have_identities_of_their_own() -> None:
    generator = np.random.default_rng(0)
    first, second = (Facts(hf.Lattice(generator.integers(-1, 2, size=(12, 900)))).digest for _ in range(2))
    assert first != second
