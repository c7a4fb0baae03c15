"""A release by each law of Gaussian noise, from run file to verified folder; and what a forger may not change."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import VerificationFailed
from holdfast.ledger.values import Charge
from holdfast.runfiles.runfile import load_run
from tests.verification.test_verify_mutations import changes, forge, leaves, with_change

UNIVERSE = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M", "X"], "age": ["0", "1", "2", "3"]})
TABLE = hf.Table(UNIVERSE, np.arange(36) * 7 % 31 + 2)
KEEP: list[Any] = [hf.margin("area", "sex"), hf.margin("area", "age")]
LEVELS = {"area": {("sex",): "1/4", "detailed": "3/4"}}
MECHANISMS: dict[str, Any] = {
    "lattice": hf.GeneralizedGaussian(rho="1/4", law="lattice"),
    "sequential": hf.GeneralizedGaussian(rho=2, law="sequential"),
    "auto": hf.GeneralizedGaussian(rho=900),
    "levels": hf.GeneralizedGaussian(rho=2, law="sequential", levels=LEVELS),
    "pair": hf.GeneralizedGaussian(epsilon=3, delta="1e-9", law="sequential"),
    "noise": hf.GeneralizedGaussian(sigma_squared="1/2", law="sequential"),
}


def keep_of(name: str) -> list[Any]:
    return [hf.margin("area")] if name == "levels" else KEEP


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("laws")
    key = hf.NoiseKey.for_tests
    return {
        name: hf.release(TABLE, keep_of(name), mechanism, key=key(name), release_id=name, ledger=None).save(place / name)
        for name, mechanism in MECHANISMS.items()
    }


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_release_says_its_law_and_verifies(folders: dict[str, Path], name: str) -> None:
    hf.verify(folders[name])
    card = json.loads((folders[name] / "card.json").read_text())
    law, plan = card["guarantee"]["law"], hf.plan(TABLE, keep_of(name), MECHANISMS[name])
    assert name == "auto" or law["name"] == ("lattice" if name == "lattice" else "sequential")
    assert law["text"] in str(plan)
    promised = plan.guarantee.rho
    assert promised is not None
    assert (1 + Fraction(law["kappa"])) * Fraction(law["rho"]) <= promised
    assert promised <= (1 + Fraction(law["kappa"])) * Fraction(law["rho"]) * Fraction(1001, 1000)
    assert Charge.of(plan.guarantee).rho == promised * plan.guarantee.replacing
    statement = (folders[name] / "statement.html").read_text()
    assert ("the sequential law" in statement) is (law["name"] == "sequential")
    assert ("or each group of cells," in statement) is law["in_groups"] is ("as a group" in law["text"])
    assert law["in_groups"] or name != "noise", "lines of four cells at a variance of 1/2 or more but for their sums"
    assert ("times the variance that the lattice law would have at this budget" in statement) is (
        law["name"] == "sequential" and law["factor"] != "1"
    )
    assert "kappa" not in statement, "lawyers read it"
    assert card["mechanism"]["law"].startswith("one cell after the other") is (law["name"] == "sequential")


@pytest.mark.parametrize("name", ["sequential", "lattice", "auto", "noise"])
def test_a_forged_law_is_found(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    """Every field of the law, one at a time, pages made to suit; and the law that was asked for."""
    folder = Path(shutil.copytree(folders[name], tmp_path / name))
    card = json.loads((folder / "card.json").read_text())
    forged = [(("guarantee", "law", *path), other) for path, value in leaves(card["guarantee"]["law"]) for other in changes(value)]
    forged += [(("guarantee", "law", "name"), other) for other in ("lattice", "sequential") if other != card["guarantee"]["law"]["name"]]
    forged += [(("guarantee", "law"), None), (("guarantee", "law", "kappa"), "0"), (("guarantee", "law", "kappa"), "0.0001")]
    asked = MECHANISMS[name].asked_law
    forged += [(("mechanism", "parameters", "law"), other) for other in ("lattice", "sequential") if other != asked]
    for path, other in forged:
        changed = with_change(card, path, other)
        if changed == card:
            continue
        forge(folder, changed, None, pages=False)
        with pytest.raises(VerificationFailed):
            hf.verify(folder)
    for file in folders[name].iterdir():
        shutil.copy(file, folder / file.name)
    hf.verify(folder)


def test_a_run_file_asks_for_a_law(tmp_path: Path) -> None:
    rows = "\n".join(",".join([*cell.values(), "5"]) for cell in (UNIVERSE.cell(i) for i in range(36)))
    (tmp_path / "t.csv").write_text(f"area,sex,age,n\n{rows}\n")
    text = (
        '[table]\nsource = "t.csv"\ncells = ["area", "sex", "age"]\ncount = "n"\npublic = true\nprotect = "person"\n[keep]\n'
        'margins = [["area", "sex"]]\n[release]\nid = "r"\nmechanism = "generalized-gaussian"\nrho = "2"\nper = "person"\nlaw = "{law}"\n'
    )
    path = tmp_path / "run.toml"
    for law in ("auto", "lattice", "sequential"):
        path.write_text(text.replace("{law}", law))
        assert load_run(path).mechanism.asked_law == law  # type: ignore[attr-defined]
    path.write_text(text.replace("{law}", "fast"))
    with pytest.raises(hf.errors.HoldfastError, match="law"):
        load_run(path)


def test_the_laws_of_one_key_differ() -> None:
    """One key object, one release: the law is in the subkey. Many draws of either have the same second moments, nearly."""
    drawn = {}
    for law in ("lattice", "sequential"):
        found = hf.GeneralizedGaussian(sigma_squared=4, law=law).law(hf.lattice(UNIVERSE, KEEP))
        with hf.NoiseKey.for_tests("one") as key:
            drawn[law] = found.sample(200, key)
    assert not np.array_equal(drawn["lattice"], drawn["sequential"])


def test_cells_of_any_width_are_drawn() -> None:
    """Standard deviations from 0.7 to 5, and far below: no budget is refused, and a draw has the law's totals."""
    codes = {name: [str(i) for i in range(30)] for name in "abc"}
    universe, keep = hf.Universe.product(codes), [hf.margin("a", "b"), hf.margin("b", "c"), hf.margin("a", "c")]
    table = hf.Table(universe, np.full(27_000, 3))
    for deviation in ("0.7", "1", "2", "5", "1/10"):
        mechanism = hf.GeneralizedGaussian(sigma_squared=Fraction(deviation) ** 2)
        release = hf.release(table, keep, mechanism, key=hf.NoiseKey.for_tests(1), ledger=None)
        assert release.plan.drawing.sampler_plan.status == "exact"
        tries = [group.expected_tries for group in release.plan.drawing.sampler_plan.groups]
        assert all(t is not None and t * 27_000 <= 10**9 for t in tries)
