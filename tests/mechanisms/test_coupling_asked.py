"""`sampler="coupling_from_past"`: an exact sampler asked for by name, and no chain anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.channels import Facts
from holdfast.errors import InvalidParameter
from holdfast.lattices import Lattice
from holdfast.mechanisms.keys import InvalidKey
from holdfast.mechanisms.registry import mechanism_class
from holdfast.samplers.coupling.sampler import CouplingLaplace
from tests.publication.bookings import a_ledger, a_release

ASKED = hf.GeneralizedLaplace(epsilon="1/4", sampler="coupling_from_past", per="distance")
KEEP = [hf.margin("a"), hf.margin("b")]


def lattice() -> Lattice:
    """A 3 x 3 table, a total over two cells, a free cell and a pinned one, in one matrix."""
    grid = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))]).astype(np.int64)
    rows = np.zeros((8, 13), dtype=np.int64)
    rows[:6, :9] = grid
    rows[6, 9:11] = 1
    rows[7, 12] = 1
    return Lattice(rows)


def test_it_draws_what_has_more_than_one_total_and_nothing_else() -> None:
    """Pinned cells take no noise, and free cells and single totals have samplers that throw nothing away."""
    law = ASKED.law(lattice())
    samplers = {group.kind: group.sampler for group in law.sampler.groups}
    assert samplers["grid"] == "grid 3 x 3: coupling from the past"
    assert {kind for kind, name in samplers.items() if "coupling" in name} == {"grid"}
    assert set(samplers) == {"grid", "one sum", "free", "exposed"}
    draws = law.sample(50, hf.NoiseKey.for_tests("asked"))
    assert all(law.lattice.contains(z) for z in draws)
    assert draws[:, 11].any()
    assert not draws[:, 12].any()


def test_the_promise_is_the_exact_one() -> None:
    found = ASKED.law(lattice()).guarantee
    assert (found.kind, found.status, found.eta, found.chains) == ("pure", "exact", None, ())
    assert found == hf.GeneralizedLaplace(epsilon="1/4", per="distance").law(lattice()).guarantee


def test_another_sampler_is_another_channel() -> None:
    """Equal identities draw equal noise from equal keys."""
    facts = Facts(lattice())
    assert ASKED.channel(facts).identity != hf.GeneralizedLaplace(epsilon="1/4", per="distance").channel(facts).identity


def test_parameters_say_it_and_are_read_back() -> None:
    assert ASKED.parameters == {"epsilon": "0.25", "per": "distance", "norm": "l1", "sampler": "coupling_from_past"}
    assert mechanism_class("generalized-laplace").from_parameters(ASKED.parameters) == ASKED
    assert "coupling_from_past" in repr(ASKED)


def test_only_for_the_l1_law() -> None:
    with pytest.raises(InvalidParameter, match="draws the l1 law"):
        hf.GeneralizedLaplace(epsilon="1/4", norm="l2", sampler="coupling_from_past", per="distance")
    with pytest.raises(InvalidKey, match="draws the l1 law"):
        hf.GeneralizedLaplace.from_run_file({"epsilon": ASKED.epsilon, "norm": "l2", "sampler": "coupling_from_past"}, "distance")
    with pytest.raises(InvalidParameter, match="sampler must be one of"):
        hf.GeneralizedGaussian(rho=1, sampler="coupling_from_past", per="distance")


def test_cells_under_a_total_of_zero_are_left_out_and_the_rest_is_drawn_as_asked() -> None:
    universe = hf.Universe.product({"a": list("wxyz"), "b": list("tuvw")})
    counts = np.full((4, 4), 9)
    counts[3] = 0
    made = hf.release(hf.Table(universe, counts.ravel()), KEEP, ASKED, key=hf.NoiseKey.for_tests("zeros"))
    samplers = [choice.sampler for choice in made.plan.drawing.choices.values()]
    assert [type(sampler) for sampler in samplers] == [CouplingLaplace]
    assert not made.table.counts.reshape(4, 4)[3].any()


def test_a_ledger_with_a_limit_takes_it(tmp_path: Path) -> None:
    """Chains have no sum, and are refused there; this is exact."""
    made = a_release(a_ledger(tmp_path), mechanism=hf.GeneralizedLaplace(epsilon="1/2", sampler="coupling_from_past", per="person"))
    assert made.card.sampler.status == "exact"
    assert made.card.mechanism.parameters["sampler"] == "coupling_from_past"
