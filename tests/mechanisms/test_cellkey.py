"""The cell key method as a mechanism: one table or several have the same noise, a card says what it is and that nothing is promised."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, RecordKeys, write_table
from holdfast.errors import InvalidCount, InvalidParameter, InvalidRun, LedgerProblem, VerificationFailed
from holdfast.ledger import Charge, Ledger
from holdfast.runfiles.runfile import load_run
from holdfast.samplers.protocol import KeyLookup
from holdfast.tables.columns import CellKeySums
from holdfast.testing.words import ListedWords
from tests.cellkey.perturbing import perturb, release_tables
from tests.cellkey.test_formats import OURS
from tests.running import Run
from tests.snapshot_files import Snapshot

NOISE = PerturbationTable.from_probabilities(
    {1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/8", -1: "1/8", 0: "1/2", 1: "1/8", 2: "1/8"}}, 2**16
)
CODES = {"region": ["n", "s"], "town": ["A", "B", "C"]}
UNIVERSE = hf.Universe.product(CODES)
RECORDS = RecordKeys.for_tests("mechanism").add(
    pa.table({"id": list(range(60)), "region": ["n", "s", "s"] * 20, "town": ["A", "B", "A", "C", "B"] * 12}), "id", KeySpace.bits(32)
)
TABLE = hf.Table.from_records(RECORDS, cells=CODES, record_key="record_key", name="people")


def made(mechanism: hf.CellKey, **others: Any) -> Any:
    return hf.release(TABLE, [], mechanism, **{"release_id": "r", "ledger": None, **others})


@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.parametrize("table", [NOISE, NOISE.rescaled(2**32), PerturbationTable(NOISE.rows.values(), folds=False)])
def test_its_noise_is_that_of_several_tables(table: PerturbationTable, mix: bool) -> None:
    """Bit for bit, whichever way cell keys are made, and whatever the key of the release."""
    mechanism = hf.CellKey(table=table, mix=mix)
    published = perturb(RECORDS, {"t": UNIVERSE}, table, keys=mechanism.rule)["t"].column("count").to_pylist()
    assert made(mechanism).table.counts.tolist() == published == made(mechanism, release_id="again").table.counts.tolist()
    assert table is not NOISE or published != TABLE.counts.tolist()


def test_the_law_of_one_cell_by_enumeration_of_keys() -> None:
    """Every sum of keys that can be: the noise has the row's probabilities exactly, and an empty cell has none."""
    small = PerturbationTable(NOISE.rows.values(), folds=False).rescaled(2**8)
    lookup = KeyLookup(hf.plan(TABLE, [], hf.CellKey(table=small)).drawing.channel.target)  # type: ignore[arg-type]
    keys = np.arange(2**8, dtype=np.int64)[:, None] + 2**8 * 77
    for count in (0, 1, 2, 5):
        values = lookup.publish(np.full_like(keys, count), CellKeySums(keys), ListedWords([]))
        expected = small.row_of(count).probabilities if count else {0: Fraction(1)}
        assert {noise + count: chance * 2**8 for noise, chance in expected.items()} == Counter(values.ravel().tolist())


def test_figures_of_the_noise_and_no_promise() -> None:
    guarantee = hf.plan(TABLE, [], hf.CellKey(table=NOISE)).guarantee
    keyed, losses = guarantee.keyed, NOISE.epsilon_delta()
    assert keyed is not None
    assert (keyed.first, keyed.last, keyed.lowest, keyed.highest) == (1, None, -2, 2)
    assert keyed.variance == float(max(row.variance for row in NOISE.rows.values())) == 1.25
    assert (keyed.epsilon, keyed.delta, keyed.zero_delta) == (losses.plateau_epsilon, losses.plateau_bounds.upper, Fraction(3, 4))
    for promise in (guarantee.per_distance(), guarantee.per_person(), guarantee.cost(7)):
        assert promise is not None
        assert (promise.epsilon, promise.delta, promise.rho) == (0, 1, None)  # true of any two tables
    assert Charge.of(guarantee) == Charge("cell-key")
    assert "no differential privacy" in hf.describe(guarantee)
    with pytest.raises(InvalidParameter, match="no other, has figures"):
        replace(guarantee, keyed=None)


def test_what_is_said_in_place_of_a_promise(snapshot: Snapshot) -> None:
    snapshot(str(hf.plan(TABLE, [], hf.CellKey(table=NOISE, mix=True))), "plan")
    listed = hf.Table.from_records(RECORDS, cells=["town"], universe="observed", record_key="record_key")
    only = PerturbationTable.from_probabilities({count: {-1: "1/2", 1: "1/2"} for count in range(3, 40)}, 2**16, repeat=0)
    snapshot(hf.describe(hf.plan(listed, [], hf.CellKey(table=only, other_noise=True))), "some counts, observed cells, other noise")


def test_canonical_fields_are_a_digest_and_numbers() -> None:
    """They name the channel, and nothing written for people is in them."""
    target = hf.plan(TABLE, [], hf.CellKey(table=NOISE, mix=True)).drawing.channel.target
    name, digest, *numbers = target.fields
    assert (name, numbers) == ("cell-key", ["4294967296", "4294967296", "65536", 1])
    assert digest == "d8180f7a4c25d5a0ac278c842b0b373a6779a29921c86cdd09747abfb6442a77"


def test_parameters_are_read_back() -> None:
    rules: list[Any] = [
        KeySpace.bits(64),
        KeySpace.decimals(8),
        CellKeys(KeySpace(4096), 256),
        CellKeys(KeySpace.bits(32), 4294967291, 2**16),
    ]
    ruled = [
        hf.CellKey(table=NOISE.rescaled(CellKeys.for_table(r, NOISE).size if isinstance(r, KeySpace) else r.size), keys=r) for r in rules
    ]
    plain = hf.CellKey(table=NOISE), hf.CellKey(table=OURS.rescaled(2**32), mix=True, weighted=True, other_noise=True)
    assert "keys" not in plain[0].parameters
    for mechanism in (*plain, *ruled):
        again = hf.CellKey.from_parameters(mechanism.parameters)
        assert (again, again.parameters) == (mechanism, mechanism.parameters)
        for wrong in ("", "[]", "{}", mechanism.parameters["perturbation_table"].replace(":", ": ", 1), "/etc/passwd"):
            with pytest.raises(InvalidParameter, match="changed"):
                hf.CellKey.from_parameters({**mechanism.parameters, "perturbation_table": wrong})


@pytest.mark.parametrize("folds", ["[]", "{}", "1", "null", '"any text at all"'])
def test_a_card_holds_no_other_value_for_folds(folds: str) -> None:
    """A list could not be hashed, and a text of any length verified."""
    said = hf.CellKey(table=NOISE).parameters
    wrong = said["perturbation_table"].replace('"folds":true', f'"folds":{folds}')
    assert wrong != said["perturbation_table"]
    with pytest.raises(InvalidParameter, match="changed"):
        hf.CellKey.from_parameters({**said, "perturbation_table": wrong})


def test_a_row_of_a_count_that_no_table_has() -> None:
    with pytest.raises(InvalidParameter, match="2\\^62"):
        PerturbationTable.from_probabilities({1: {0: 1}, 2**63: {0: 1}}, repeat=0)


def test_the_statement_names_no_budget(tmp_path: Path) -> None:
    """Epsilon 0 on the page that is signed would read as perfect privacy; its delta is 1."""
    page = (made(hf.CellKey(table=NOISE)).save(tmp_path / "out") / "statement.html").read_text()
    assert "Dark: right guesses. No limit is promised." in page
    assert "Budget" not in page
    tiles = " ".join(re.sub(r"<[^>]*>", " ", page[page.index("What protects, and how far") :][:2000]).split())
    assert "A secret key Whoever has the keys of the records" in tiles
    assert "Noise -2 to 2 of counts 1 and above, with a variance of at most 1.25" in tiles
    assert "epsilon 1.1 with delta 0.25, for counts 1 and above that differ by one" in tiles
    assert "delta 0.75 for counts 0 and 1, whatever epsilon is" in tiles
    assert "epsilon 0 " not in tiles
    assert "NO DIFFERENTIAL PRIVACY IS PROMISED." in page


def test_a_view_promises_nothing_and_keeps_no_total() -> None:
    said = made(hf.CellKey(table=NOISE)).view(base=5).info.text
    assert "reveals no more" in said
    assert not {word for word in ("kept total", "promise", "budget") if word in said}


def test_what_is_said_of_exposed_cells() -> None:
    """Noise may be 0, and is where a cell is empty: no sentence says that no count is published as it is."""
    release = made(hf.CellKey(table=NOISE))
    assert release.card.exposed.text.startswith("No total is kept, so no total fixes a cell. Empty cells stay 0")
    assert "published exactly" not in str(release.plan)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="adds no noise to any count"):
        hf.CellKey(table=PerturbationTable.from_probabilities({1: {0: 1}, 2: {0: 1}}))
    with pytest.raises(InvalidParameter, match="keeps no totals"):
        hf.plan(TABLE, [hf.margin("region")], hf.CellKey(table=NOISE))
    with pytest.raises(InvalidParameter, match="noise to empty cells"):
        hf.CellKey(table=PerturbationTable.from_probabilities({0: {0: "1/2", 1: "1/2"}, 1: {0: 1}}))
    with pytest.raises(InvalidParameter, match="another law"):
        hf.CellKey(table=PerturbationTable.from_probabilities({1: {-1: "1/3", 0: "1/3", 1: "1/3"}}, 3))
    with pytest.raises(InvalidParameter, match="a PerturbationTable"):
        hf.CellKey(table={1: {0: 1}})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="mix must be"):
        hf.CellKey(table=NOISE, mix=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="says why"):
        hf.CellKey(table=NOISE, other_records=" ")
    with pytest.raises(InvalidParameter, match="cell_key"):
        hf.release(hf.Table(UNIVERSE, TABLE.counts), [], hf.CellKey(table=NOISE), ledger=None)


def test_input_without_a_row_or_with_small_keys_is_refused_before_the_charge(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "book.sqlite", create=True, needs_grants=False)
    only = PerturbationTable.from_probabilities({1: {0: 1}, 2: {-1: "1/2", 1: "1/2"}}, 2**16, repeat=0)
    with pytest.raises(InvalidCount, match="no row"):
        made(hf.CellKey(table=only), ledger=book)
    assert TABLE.cell_keys is not None
    low = hf.Table(UNIVERSE, TABLE.counts, cell_keys=TABLE.cell_keys % 256)
    with pytest.raises(InvalidCount, match="do not fill"):
        hf.release(low, [], hf.CellKey(table=NOISE), release_id="r", ledger=book)
    assert book.datasets() == []


def test_the_ledger_compares_noise_of_both_ways_to_publish(tmp_path: Path) -> None:
    """A folder of several tables and a release of one are the same noise, and another rule or table is not."""
    book = Ledger.open(tmp_path / "book.sqlite", create=True, needs_grants=False)
    release_tables(RECORDS, {"t": ["town"]}, NOISE, dataset="people", ledger=book, release_id="t").save(tmp_path / "t")
    made(hf.CellKey(table=NOISE), ledger=book).save(tmp_path / "one")
    with pytest.raises(LedgerProblem, match="another rule for cell keys:"):
        made(hf.CellKey(table=NOISE, mix=True), ledger=book, release_id="mixed")
    with pytest.raises(LedgerProblem, match="other records"):
        made(hf.CellKey(table=NOISE, mix=True), ledger=book, release_id="mixed", dataset="others")
    made(hf.CellKey(table=NOISE, mix=True, other_records="people abroad"), ledger=book, release_id="abroad", dataset="others")
    allowed = made(hf.CellKey(table=NOISE, mix=True, other_noise=True), ledger=book, release_id="mixed")
    assert any("two draws of noise" in sentence for sentence in allowed.card.guarantee.sentences)
    assert (book.balance("people").cell_key, book.balance("people").spent) == (3, Fraction(0))
    other = hf.Table.from_records(RECORDS.rename_columns(["id", "region", "town", "k"]), cells=CODES, record_key="k", name="people")
    with pytest.raises(LedgerProblem, match="column of keys"):
        hf.release(other, [], hf.CellKey(table=NOISE), release_id="k", ledger=book)


def test_a_limit_refuses_it(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "book.sqlite", create=True)
    book.grant("people", epsilon="1", approver="A", reason="test")
    with pytest.raises(LedgerProblem, match="no budget pays for it"):
        made(hf.CellKey(table=NOISE), ledger=book)


def test_a_folder_is_verified_and_loaded(tmp_path: Path) -> None:
    folder = made(hf.CellKey(table=NOISE)).save(tmp_path / "out")
    assert "promise" in hf.verify(folder).recomputed
    found = hf.load(folder)
    assert found.guarantee.keyed == hf.plan(TABLE, [], hf.CellKey(table=NOISE)).guarantee.keyed
    card = json.loads((folder / "card.json").read_text())
    assert (card["guarantee"]["kind"], card["guarantee"]["per_person"]["delta"]) == ("cell-key", "1")
    assert card["sampler"]["groups"][0]["sampler"] == "lookup by cell key"
    card["guarantee"]["keyed"]["variance"] = "0.25"
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n")
    with pytest.raises(VerificationFailed, match=r"guarantee\.keyed\.variance"):
        hf.verify(folder)


RUN = """
[table]
source = "people.parquet"
cells = {region = ["n", "s"], town = ["A", "B", "C"]}
record_key = "record_key"
[keep]
[release]
id = "by-key"
mechanism = "cell-key"
perturbation_table = "noise.json"
"""


def test_a_run_file(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(RECORDS, "people.parquet")
    write_table(NOISE, "noise.json")
    Path("run.toml").write_text(RUN)
    assert load_run("run.toml").mechanism == hf.CellKey(table=NOISE)
    shown = run("plan", "run.toml")
    assert (shown.code, "no differential privacy guarantee" in shown.out, "from -2 to 2" in shown.out) == (0, True, True)
    done = run("release", "run.toml", "-o", "out")
    assert (done.code, done.err) == (0, "")
    assert hf.load("out").table.counts.tolist() == made(hf.CellKey(table=NOISE)).table.counts.tolist()
    Path("bad.json").write_text("{}")
    refused = {
        "perturbation_table = 3": "must be the name of a file",
        'perturbation_table = "none.json"': "does not exist",
        'perturbation_table = "bad.json"': "no perturbation table",
        'perturbation_table = "noise.json"\nmix = "yes"': "must be true or false",
        'perturbation_table = "noise.json"\nother_records = ""': "a text that is not empty",
        'perturbation_table = "noise.json"\nper = "person"': "Leave it out",
    }
    for line, message in refused.items():
        Path("run.toml").write_text(RUN.replace('perturbation_table = "noise.json"', line))
        with pytest.raises(InvalidRun, match=message):
            load_run("run.toml")
