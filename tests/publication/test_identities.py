"""Identities are checked: on the table before anything is drawn or charged, and on the release by `verify`.

They were not: a table that breaks an identity was published exactly there, with "No cell is published exactly" beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import ContradictingTotals, InvalidConstraint, VerificationFailed
from holdfast.privacy import Ledger
from holdfast.runfiles.runfile import load_run
from tests.exposing import exposing
from tests.tables.reference import refused
from tests.verification.test_verify import change_table, read_card, with_right_checksums

UNIVERSE = hf.Universe.product({"age": ["14", "15", "16"], "sex": ["F", "M"], "married": ["no", "yes"]})
CHILDREN = hf.subset("age < 16 and married = 'yes'", by=["age", "sex", "married"])
KEEP: list[Any] = [hf.margin("age"), hf.identity(CHILDREN)]
WHOLE = np.array([7319465, 0, 5, 0, 6, 0, 7, 0, 8, 9, 1, 2])
BROKEN = np.array([7319464, 1, 5, 0, 6, 0, 7, 0, 8, 9, 1, 2])
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")

WRONG: dict[str, list[Any]] = {
    "zeros": KEEP,
    "one number": [hf.total(), hf.identity(CHILDREN, 3)],
    "numbers": [hf.total(), hf.identity(CHILDREN, [0, 1, 0, 0])],
    "margin": [hf.identity(hf.margin("sex"), [7319464, 13])],
    "total": [hf.identity(hf.total(), 7319466)],
    "areas": [hf.total(), hf.identity(hf.areas("age", {"young": ["14"], "old": ["15", "16"]}), [7319469, 33])],
    "linear, 0 by default": [hf.total(), hf.identity(hf.linear([[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0] * 11 + [1]]))],
    "linear, declared": [hf.total(), hf.identity(hf.linear([[0] * 11 + [1]], values=[3]))],
}


@pytest.mark.parametrize("case", WRONG)
def test_a_table_that_breaks_an_identity_is_refused_before_anything_is_drawn_or_charged(case, tmp_path: Path) -> None:
    key = hf.NoiseKey.for_tests(1)
    table = hf.Table(UNIVERSE, BROKEN, name="people")
    message = refused(ContradictingTotals, lambda: hf.release(table, WRONG[case], LAPLACE, key, release_id="x"), "7319464", "7319465")
    assert "identity(" in message
    assert "Nothing was drawn, and nothing was charged" in message
    ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
    ledger.grant("people", kind="pure", epsilon="100", approver="a", reason="b")
    refused(ContradictingTotals, lambda: hf.release(table, WRONG[case], LAPLACE, ledger=ledger, release_id="x"), "7319464")
    assert not ledger.account("people").releases


def test_the_message_is_the_same_whichever_sums_are_broken_and_by_how_much() -> None:
    others = [WHOLE.copy() for _ in range(4)]
    for place, (cell, count) in enumerate([(1, 1), (3, 4), (5, 700), (7, 12)]):
        others[place][cell] = count
    others.append(WHOLE + 1)
    messages = {refused(ContradictingTotals, lambda t=t: hf.release(hf.Table(UNIVERSE, t), KEEP, LAPLACE, ledger=None)) for t in others}  # type: ignore[misc]
    (message,) = messages
    assert not [name for name in ("age=", "14", "sex=") if name in message]


@pytest.mark.parametrize(
    "keep",
    [
        KEEP,
        [hf.total(), hf.identity(CHILDREN, [0, 0, 0, 0])],
        [hf.identity(hf.margin("sex"), [7319465 + 6 + 8 + 9, 5 + 7 + 1 + 2])],
        [hf.identity(hf.total(), int(WHOLE.sum()))],
        [hf.total(), hf.identity(hf.linear([[0, 1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0]]))],
    ],
    ids=["zeros", "numbers", "margin", "total", "linear"],
)
def test_a_table_that_has_the_values_is_released_and_the_release_has_them(keep, tmp_path: Path) -> None:
    made = hf.release(hf.Table(UNIVERSE, WHOLE), keep, LAPLACE, hf.NoiseKey.for_tests(2), release_id="x")
    assert hf.verify(made.save(tmp_path / "out")).cells == 12
    rows = made.plan.facts.kept.rows
    released = made.table.counts
    assert all(np.array_equal(r.totals(released), np.broadcast_to(np.array(r.values), r.count)) for r in rows if r.kind == "identity")


def test_an_identity_of_0_exposes_nothing_and_is_no_kept_total(tmp_path: Path) -> None:
    """Its cells take no noise and are known of every data set. They stood among the exposed ones, under "a kept total of 0"."""
    universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["x", "y"]})
    table = hf.Table(universe, np.array([0, 0, 1, 2, 3, 4]))
    keep: list[Any] = [hf.identity(hf.subset("a", ["1"]), values=0)]
    folder = hf.release(table, keep, LAPLACE, hf.NoiseKey.for_tests(5), release_id="x").save(tmp_path / "out")
    assert hf.verify(folder).cells == 6
    card = read_card(folder)
    assert (card["exposed"]["cells"], card["kept"]["zeros"]["cells"]) == (0, 2)
    assert len((folder / "exposed.csv").read_text().splitlines()) == 1
    assert card["kept"]["zeros"]["text"].startswith("2 cells lie under an identity of 0")
    assert "under a kept total of 0" not in (folder / "report.html").read_text()
    kept = hf.release(table, [*keep, hf.margin("b")], LAPLACE, hf.NoiseKey.for_tests(6), release_id="y").card
    assert (kept.exposed.cells, kept.kept.zeros.cells) == (0, 2)
    assert "under a kept total or identity of 0" in kept.kept.zeros.text


def test_values_that_a_kept_total_pins_beside_an_identity_of_0_are_exposed() -> None:
    """a=1 is 0 in every data set; the total of a=2 is 0 in this one, and tells it."""
    universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["x", "y"]})
    keep: list[Any] = [hf.identity(hf.subset("a", ["1"]), values=0), hf.subset("a", ["2"])]
    release = hf.release(hf.Table(universe, np.array([0, 0, 0, 0, 3, 4])), keep, LAPLACE, hf.NoiseKey.for_tests(7))
    assert release.exposure.cells.tolist() == [2, 3]
    assert release.card.kept.zeros.cells == 4


@pytest.mark.parametrize("keep", [[], [hf.subset("sex", ["M"])]], ids=["nothing kept", "a total kept"])
def test_the_promise_is_for_tables_that_satisfy_the_identities(keep: list[Any]) -> None:
    """Tables that break one are told apart with certainty, so that no sentence may promise them anything."""
    guarantee = hf.plan(UNIVERSE, [hf.identity(hf.subset("age", ["14"]), 12), *keep], LAPLACE).guarantee
    assert guarantee.relation.identities
    words = hf.describe(guarantee)
    assert "that satisfy the identities and differ only in" in words
    assert "is counted at all is protected." not in words
    assert ("in cells under no kept total and no identity" if keep else "is protected in cells under no identity") in words
    assert not hf.plan(UNIVERSE, keep, LAPLACE).guarantee.relation.identities


def test_verify_checks_identities_on_the_release(tmp_path: Path) -> None:
    folder = hf.release(hf.Table(UNIVERSE, WHOLE), KEEP, LAPLACE, hf.NoiseKey.for_tests(3), release_id="x").save(tmp_path / "out")

    def forged(frame: Any) -> Any:
        import pyarrow as pa

        counts = frame.column("count").to_pylist()
        counts[0], counts[1] = counts[0] - 1, counts[1] + 1  # no kept total changes
        return frame.set_column(3, "count", pa.array(counts, pa.int64()))

    change_table(folder, forged)
    with_right_checksums(folder)
    with pytest.raises(
        VerificationFailed, match=r"age=14, sex=F, married=yes: the table does not have the value that the identity declares"
    ):
        hf.verify(folder)


def test_the_card_says_the_values(tmp_path: Path) -> None:
    keep: list[Any] = [hf.total(), hf.identity(CHILDREN), hf.identity(hf.margin("sex"), [7319488, 15])]
    folder = hf.release(hf.Table(UNIVERSE, WHOLE), keep, LAPLACE, hf.NoiseKey.for_tests(4), release_id="x").save(tmp_path / "out")
    assert [given.get("values", "kept") for given in read_card(folder)["kept"]["definitions"]] == ["kept", 0, [7319488, 15]]


@pytest.mark.parametrize("constraint", [hf.total(), hf.margin("sex"), hf.margin("age", "sex")], ids=str)
def test_an_identity_over_a_margin_without_values_is_refused_as_a_kept_total(constraint) -> None:
    with pytest.raises(InvalidConstraint, match="without values this is a kept total"):
        hf.identity(constraint)


RUN = """
[table]
source = "people.csv"
cells = ["age", "married"]
count = "people"
[keep]
margins = [["married"]]
[keep.identities]
{0}
[release]
id = "x"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.mark.parametrize(
    ("identities", "holds"),
    [
        ("subsets = [{where = \"age < 16 and married = 'yes'\", by = ['age', 'married']}]", True),
        ("subsets = [{where = \"age < 17 and married = 'yes'\", by = ['age', 'married']}]", False),
        ("subsets = [{where = \"age < 17 and married = 'yes'\", values = 1}]", True),
        ("subsets = [{where = \"age < 17 and married = 'yes'\", by = ['age'], values = [0, 0, 1]}]", True),
        ("total = 41", True),
        ("total = 42", False),
        ("margins = [{columns = ['age'], values = [9, 8, 9, 15]}]", True),
        ("margins = [{columns = ['age'], values = [9, 8, 8, 16]}]", False),
        ("areas = [{column = 'age', sets = {young = ['14', '15']}, values = 17}]", True),
        ("areas = [{column = 'age', sets = {young = ['14', '15']}}]", False),
        ("linear = [{matrix = [[0, 1, 0, -1, 0, 0, 0, 0]]}]", True),
        ("linear = [{matrix = [[1, 0, 0, 0, 0, 0, 0, 0]]}]", False),
    ],
)
def test_identities_in_run_files(identities: str, holds: bool, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "age,married,people\n14,no,9\n14,yes,0\n15,no,8\n15,yes,0\n16,no,8\n16,yes,1\n17,no,12\n17,yes,3\n"
    )
    (tmp_path / "run.toml").write_text(RUN.format(identities))
    run = load_run(tmp_path / "run.toml")
    table = run.read_table()
    if holds:
        assert len(exposing(hf.release, table, run.keep, run.mechanism, ledger=None).table.counts) == 8
    else:
        refused(ContradictingTotals, lambda: exposing(hf.release, table, run.keep, run.mechanism, ledger=None))
