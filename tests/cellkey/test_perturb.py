"""Tables by the cell key method: consistent whatever is done to the records, and nothing confidential in what leaves."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Table, Universe
from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, RecordKeys
from holdfast.cellkey.perturb import rounded_ratio
from holdfast.errors import (
    EmptyTable,
    HoldfastError,
    InvalidCode,
    InvalidCount,
    InvalidParameter,
    OutOfScope,
    OutsideUniverse,
    TooManyRecords,
    UnknownColumn,
)
from tests.cellkey.paper_prime import BIG_PRIME
from tests.cellkey.perturbing import ALMOST_SILENT, perturb, release_tables

THIRD = Fraction(1, 3)
PTABLE = PerturbationTable.from_probabilities(
    {1: {-1: THIRD, 0: THIRD, 1: THIRD}, 2: {-2: Fraction(1, 8), -1: Fraction(1, 4), 0: Fraction(1, 4), 1: Fraction(3, 8)},
     3: {v: Fraction(1, 7) for v in range(-3, 4)}}, 2**16)  # fmt: skip
SPACES = [KeySpace.bits(32), KeySpace.bits(64), KeySpace.decimals(8), KeySpace.bits(16)]
TABLES = {"ab": ["a", "b"], "a": ["a"], "b": ["b"], "all": []}
KEYS = RecordKeys.for_tests("perturb")
SECRET = "4294967297"


def people(count: int = 400, space: KeySpace = SPACES[0], seed: int = 1) -> Any:
    rng = random.Random(seed)
    frame = pa.table(
        {
            "id": [f"p{place}" for place in range(count)],
            "a": [rng.choice("xyz") for _ in range(count)],
            "b": [str(rng.randrange(60)) for _ in range(count)],
            "w": [f"{rng.randrange(1, 400)}.{rng.randrange(100):02d}" for _ in range(count)],
        }
    )
    return KEYS.add(frame, "id", space, name="rkey")


def cells_of(frame: Any) -> dict[tuple[str, ...], int]:
    *codes, counts = (frame.column(name).to_pylist() for name in frame.column_names)
    return dict(zip(zip(*codes, strict=True), counts, strict=True)) if codes else {(): counts[0]}


def slow(frame: Any, columns: list[str], rule: CellKeys, ptable: PerturbationTable = PTABLE) -> dict[tuple[str, ...], int]:
    """The definition: one cell after the other, in Python's integers and fractions."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in frame.to_pylist():
        key = rule.records.read(str(row["rkey"]))
        groups.setdefault(tuple(row[column] for column in columns), []).append(key)
    out = {}
    for cell, keys in groups.items():
        at = Fraction(rule.of(keys), rule.size)
        row = ptable.row_of(len(keys))
        noise = next(noise for noise, upper in zip(row.noise, row.upper, strict=True) if at < Fraction(upper, ptable.key_size))
        if len(keys) + noise:
            out[cell] = len(keys) + noise
    return out


def refused(kind: type[HoldfastError], call: Any, *hidden: str) -> str:
    with pytest.raises(kind) as caught:
        call()
    for text in (SECRET, *hidden):
        assert text not in str(caught.value)
    return str(caught.value)


class TestDefinition:
    @pytest.mark.parametrize("space", SPACES, ids=str)
    def test_agrees_with_the_slow_version(self, space: KeySpace) -> None:
        frame = people(space=space)
        rule = CellKeys.for_table(space, PTABLE)
        ptable = PTABLE.rescaled(rule.size) if rule.size % PTABLE.key_size else PTABLE
        made = perturb(frame, TABLES, ptable, key="rkey", keys=space, id="id")
        for name, columns in TABLES.items():
            assert cells_of(made[name]) == slow(frame, columns, rule)

    @pytest.mark.parametrize("rule", [CellKeys(SPACES[0], 4294967291, 2**8), CellKeys(SPACES[0], 2**8)], ids=["prime, XOR", "modulo"])
    def test_other_rules(self, rule: CellKeys) -> None:
        frame = people()
        ptable = PTABLE.rescaled(2**8)
        made = perturb(frame, {"ab": ["a", "b"]}, ptable, key="rkey", keys=rule)
        assert cells_of(made["ab"]) == slow(frame, ["a", "b"], rule, ptable)

    def test_files(self, tmp_path: Path) -> None:
        frame = people(space=KeySpace.decimals(8))
        ptable = PTABLE.rescaled(10**8)
        expected = perturb(frame, TABLES, ptable, key="rkey", keys=KeySpace.decimals(8))
        pq.write_table(frame, tmp_path / "people.parquet")
        lines = [",".join(frame.column_names), *(",".join(map(str, row.values())) for row in frame.to_pylist())]
        (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name in ("people.parquet", "people.csv"):
            made = perturb(tmp_path / name, TABLES, ptable, key="rkey", keys=KeySpace.decimals(8))
            assert {name: cells_of(made[name]) for name in TABLES} == {name: cells_of(expected[name]) for name in TABLES}
        whole = people()
        pq.write_table(whole, tmp_path / "whole.parquet")  # integer keys: read in place
        made = perturb(tmp_path / "whole.parquet", TABLES, PTABLE, key="rkey")
        assert cells_of(made["ab"]) == slow(whole, ["a", "b"], CellKeys.for_table(SPACES[0], PTABLE))


class TestConsistent:
    """What is published for a set of records does not depend on how it is asked for."""

    @settings(max_examples=10)
    @given(st.permutations(range(60)), st.integers(1, 59))
    def test_shuffled_split_and_joined(self, order: list[int], cut: int) -> None:
        frame = people(60)
        expected = {name: cells_of(table) for name, table in perturb(frame, TABLES, PTABLE, key="rkey").items()}
        shuffled = frame.take(pa.array(order))
        parts = [shuffled.slice(0, cut), shuffled.slice(cut)]
        rekeyed = [KEYS.add(part.drop_columns(["rkey"]), "id", SPACES[0], name="rkey") for part in parts]
        made = perturb(pa.concat_tables(rekeyed), TABLES, PTABLE, key="rkey")
        assert {name: cells_of(table) for name, table in made.items()} == expected

    def test_the_same_records_in_other_tables(self) -> None:
        """A cell keeps its count when the table has other columns, other cells, another order, or only some of the records."""
        frame = people()
        whole = cells_of(perturb(frame, {"t": ["a", "b"]}, PTABLE, key="rkey")["t"])
        turned = cells_of(perturb(frame, {"t": ["b", "a"]}, PTABLE, key="rkey")["t"])
        assert {(a, b): count for (b, a), count in turned.items()} == whole
        only = frame.filter(pa.compute.equal(frame.column("a"), "x"))
        assert cells_of(perturb(only, {"t": ["b"]}, PTABLE, key="rkey")["t"]) == {(b,): n for (a, b), n in whole.items() if a == "x"}
        single = only.append_column("one", pa.array(["1"] * only.num_rows))
        regions = perturb(frame, {"a": ["a"]}, PTABLE, key="rkey")["a"]
        assert cells_of(perturb(single, {"t": ["one"]}, PTABLE, key="rkey")["t"]) == {("1",): cells_of(regions)[("x",)]}

    def test_counts_with_keys_are_added_up(self) -> None:
        """Finer cells with sums of keys give the same margins as the records."""
        frame = people()
        expected = perturb(frame, TABLES, PTABLE, key="rkey")
        table = Table.from_records(frame, {"a": ["x", "y", "z"], "b": [str(n) for n in range(60)]}, record_key="rkey")
        made = perturb(table, TABLES, PTABLE)
        listed = table.frame.append_column("key", pa.array(table.cell_keys))
        of_counts = perturb(listed, TABLES, PTABLE, key="key", count="count")
        texts = pa.table([column.cast(pa.string()) for column in listed.columns], names=listed.column_names)
        of_texts = perturb(texts, TABLES, PTABLE, key="key", count="count")
        for name in TABLES:
            assert cells_of(made[name]) == cells_of(of_counts[name]) == cells_of(of_texts[name]) == cells_of(expected[name])

    @pytest.mark.parametrize("rule", [CellKeys(SPACES[0], BIG_PRIME), CellKeys(SPACES[0], BIG_PRIME, 2**16)])
    def test_sums_are_not_taken_modulo_another_number_again(self, rule: CellKeys) -> None:
        """Sums modulo 2^32 and then a prime would give the same records other noise than they have from their own keys."""
        frame = people()
        table = Table.from_records(frame, {"a": ["x", "y", "z"]}, record_key="rkey")
        listed = table.frame.append_column("key", pa.array(table.cell_keys))
        ptable = PTABLE.rescaled(rule.size)
        assert "would get other noise" in refused(InvalidParameter, lambda: perturb(table, {"a": ["a"]}, ptable, keys=rule))
        assert "would get other noise" in refused(
            InvalidParameter, lambda: perturb(listed, {"a": ["a"]}, ptable, key="key", count="count", keys=rule)
        )
        of_prime = Counter[str]()
        for row in frame.to_pylist():
            of_prime[row["a"]] += row["rkey"]
        sums = pa.array([of_prime[a] % BIG_PRIME for a in "xyz"])
        listed = listed.set_column(2, "key", sums)
        said = CellKeys(KeySpace(BIG_PRIME), size=rule.size)
        made = perturb(listed, {"a": ["a"]}, ptable, key="key", count="count", keys=said)
        assert cells_of(made["a"]) == cells_of(perturb(frame, {"a": ["a"]}, ptable, key="rkey", keys=rule)["a"])

    @pytest.mark.parametrize("rule", [CellKeys(SPACES[1], size=2**16), CellKeys(KeySpace(2**16)), KeySpace(2**16)])
    def test_the_keys_of_a_table_are_of_32_bits(self, rule: CellKeys | KeySpace) -> None:
        table = Table.from_records(people(), {"a": ["x", "y", "z"]}, record_key="rkey")
        assert "sums of keys (2^32)" in refused(InvalidParameter, lambda: perturb(table, {"a": ["a"]}, PTABLE, keys=rule))

    def test_a_divisor_serves_records_and_sums(self) -> None:
        frame = people()
        table = Table.from_records(frame, {"a": ["x", "y", "z"]}, record_key="rkey")
        rule = CellKeys(SPACES[0], 2**16)
        made = perturb(table, {"a": ["a"]}, PTABLE, keys=rule)
        assert cells_of(made["a"]) == cells_of(perturb(frame, {"a": ["a"]}, PTABLE, key="rkey", keys=rule)["a"])


class TestCells:
    def test_declared_cells_are_all_listed(self) -> None:
        frame = people()
        codes = {"a": ["z", "y", "x", "none"]}
        made = perturb(frame, {"a": codes, "listed": Universe.product(codes)}, PTABLE, key="rkey")
        assert made["a"].column("a").to_pylist() == ["z", "y", "x", "none"]
        assert cells_of(made["a"])[("none",)] == 0
        assert cells_of(made["a"]) == cells_of(made["listed"])

    def test_a_cell_wiped_to_zero_looks_like_one_that_never_was(self) -> None:
        frame = people(2000, seed=4)
        wiped = PerturbationTable.from_probabilities({n: {-n: Fraction(1, 2), 0: Fraction(1, 2)} for n in range(1, 40)}, 2**16)
        made = perturb(frame, {"ab": ["a", "b"]}, wiped, key="rkey")["ab"]
        present = len({(row["a"], row["b"]) for row in frame.to_pylist()})
        assert 0 < made.num_rows < present
        assert 0 not in made.column("count").to_pylist()

    def test_a_code_that_was_left_out_is_nowhere(self) -> None:
        """Twins: records with a code that is published as 0, and the same records without them, give the same bytes."""
        wiped = PerturbationTable.from_probabilities({1: {-1: 1}, 2: {0: 1}}, 2**16)
        frame = people(100)
        rare = people(1).set_column(1, "a", pa.array(["hidden-code"])).set_column(0, "id", pa.array(["other"]))
        pair = [release_tables(one, {"a": ["a"]}, wiped, key="rkey") for one in (frame, pa.concat_tables([frame, rare]))]
        made = [pickle.dumps((one["a"].table, one["a"].plan.facts)) for one in pair]
        assert pair[0]["a"].table.frame.column("a").to_pylist() == ["x", "y", "z"]
        assert b"hidden-code" not in made[1]
        assert made[0] == made[1]
        assert "hidden-code" not in str(list(pair[1]["a"].table.frame.to_pandas()["a"].array))

    def test_any_list_of_columns_is_a_list(self) -> None:
        """Cells are declared by codes alone; else cells that occur would be listed with 0."""
        wiped = PerturbationTable.from_probabilities({n: {-n: Fraction(1, 2), 0: Fraction(1, 2)} for n in range(1, 40)}, 2**16)
        frame = people(2000, seed=4)
        expected = cells_of(perturb(frame, {"t": ["a", "b"]}, wiped, key="rkey")["t"])
        assert 0 not in expected.values()
        for listed in (np.array(["a", "b"]), pd.Index(["a", "b"]), {"a": 1, "b": 2}.keys(), ("a", "b")):
            assert cells_of(perturb(frame, {"t": listed}, wiped, key="rkey")["t"]) == expected
        for unordered in ({"a", "b"}, frozenset("ab")):
            assert "no order" in refused(InvalidParameter, partial(perturb, frame, {"t": unordered}, wiped, key="rkey"))

    def test_noise_in_empty_cells_is_refused(self) -> None:
        ptable = PerturbationTable.from_probabilities({0: {0: Fraction(1, 2), 1: Fraction(1, 2)}, 1: {0: 1}}, 4)
        assert "no key" in refused(InvalidParameter, lambda: perturb(people(), {"a": ["a"]}, ptable, key="rkey"))

    def test_gaps_are_told(self) -> None:
        made = release_tables(people(), TABLES, PTABLE, key="rkey")
        gaps = {(gap.fine, gap.coarse): gap for gap in made.gaps}
        assert set(gaps) == {("ab", "a"), ("ab", "b"), ("ab", "all"), ("a", "all"), ("b", "all")}
        tables = perturb(people(), TABLES, PTABLE, key="rkey")
        fine: Counter[tuple[str, ...]] = Counter()
        for (a, _), count in cells_of(tables["ab"]).items():
            fine[(a,)] += count
        differences = [abs(fine[cell] - count) for cell, count in cells_of(tables["a"]).items()]
        gap = gaps[("ab", "a")]
        assert (gap.cells, gap.unequal) == (3, sum(one > 0 for one in differences))
        assert (gap.largest, gap.mean) == (max(differences), str(Fraction(sum(differences), 3)))
        assert gap.largest > 0

    def test_a_column_named_count(self) -> None:
        frame = people().rename_columns(["id", "count", "b", "w", "rkey"])
        made = perturb(frame, {"t": ["count"]}, PTABLE, key="rkey")["t"]
        assert made.column_names == ["count", "published_count"]
        frame = frame.rename_columns(["id", "count", "published_count", "w", "rkey"])
        made = perturb(frame, {"t": ["count", "published_count"]}, PTABLE, key="rkey")["t"]
        assert made.column_names == ["count", "published_count", "published_published_count"]


class TestWeights:
    def test_weighted_counts_are_exact(self) -> None:
        frame = people()
        plain = cells_of(perturb(frame, {"a": {"a": ["x", "y", "z"]}}, PTABLE, key="rkey")["a"])
        expected = {}
        for (a,), count in plain.items():
            weights = [Fraction(row["w"]) for row in frame.to_pylist() if row["a"] == a]
            expected[(a,)] = round(count * sum(weights) / len(weights))
        decimals = frame.set_column(3, "w", frame.column("w").cast(pa.decimal128(20, 4)))
        whole = frame.set_column(3, "w", pa.array([1] * frame.num_rows))
        for one in (frame, decimals):
            made = perturb(one, {"a": {"a": ["x", "y", "z"]}}, PTABLE, key="rkey", weight="w")
            assert cells_of(made["a"]) == expected
        assert cells_of(perturb(whole, {"a": ["a"]}, PTABLE, key="rkey", weight="w")["a"]) == plain

    def test_the_epsilon_and_delta_of_counts_do_not_hold(self) -> None:
        """By enumeration: two records of weight 100, and the same with one of weight 250. What may be published has one value in common."""
        ptable = PerturbationTable.from_probabilities({n: {v: Fraction(1, 4) for v in (-1, 0, 1, 2)} for n in (1, 2)}, 256)
        assert ptable.epsilon_delta().delta(1) == 0.25
        published: list[set[int]] = []
        for weights in ([100, 100], [100, 100, 250]):
            seen = set()
            for key in range(0, 256, 16):
                frame = pa.table({"k": [key] + [0] * (len(weights) - 1), "w": weights})
                made = perturb(frame, {"t": []}, ptable, key="k", keys=KeySpace(256), weight="w")["t"]
                seen |= set(made.column("count").to_pylist())
            published.append(seen)
        assert published == [{100, 200, 300, 400}, {300, 450, 600, 750}]
        # 300 alone is in both, with a chance of 1/4 on each side, so that delta is 3/4 for every epsilon.
        more_or_none: list[dict[str, Any]] = [{"weight": "w"}, {}]
        weighted, plain = (release_tables(people(), TABLES, PTABLE, key="rkey", **more) for more in more_or_none)
        assert any("does not hold" in sentence for sentence in weighted.sentences)
        assert not any("weight" in sentence for sentence in plain.sentences)
        assert "before weights" in weighted["a"].card.expected_error.text

    @given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
    def test_rounding(self, numerator: int, denominator: int) -> None:
        assert rounded_ratio(numerator, denominator) == round(Fraction(numerator, denominator))

    def test_refused(self) -> None:
        floats = people().set_column(3, "w", pa.array([1.5] * 400))
        refused(OutOfScope, lambda: perturb(floats, TABLES, PTABLE, key="rkey", weight="w"))
        bad = people().set_column(3, "w", pa.array(["1.5"] * 399 + ["1.1234567"]))
        assert "row 400" in refused(InvalidCount, lambda: perturb(bad, TABLES, PTABLE, key="rkey", weight="w"), "1.1234567")

    def test_weighted_counts_beyond_64_bits(self) -> None:
        huge = people(5).set_column(3, "w", pa.array(["9" * 18] * 5))
        message = refused(InvalidCount, lambda: perturb(huge, {"all": []}, PTABLE, key="rkey", weight="w"), "9" * 18)
        assert "weights in a larger unit" in message


class TestPublic:
    def test_nothing_confidential_leaves(self) -> None:
        frame = people()
        made = release_tables(frame, TABLES, PTABLE, key="rkey")
        assert b"rkey" not in pickle.dumps(made)  # what is pickled is all there is; the name of the column goes to the ledger
        assert repr(made).startswith("Publications('ab' (")

    def test_twins(self) -> None:
        """Two populations with the same published counts give the same object, byte by byte, though keys and counts differ."""
        records = [KEYS.derive(name).add(people().drop_columns(["rkey"]), "id", SPACES[0]) for name in "kl"]
        made = [release_tables(each, TABLES, ALMOST_SILENT, release_id="r") for each in records]
        assert [one.card for one in made[0].values()] == [one.card for one in made[1].values()]
        assert pickle.dumps([one.table for one in made[0].values()]) == pickle.dumps([one.table for one in made[1].values()])


class TestRefused:
    def test_keys_out_of_range(self) -> None:
        for bad in (SECRET, "-1", "1.5", "", None):
            keys = [str(key) for key in people(5).column("rkey").to_pylist()]
            frame = people(5).set_column(4, "rkey", pa.array([*keys[:3], bad, keys[4]]))
            message = refused(InvalidCount, partial(perturb, frame, TABLES, PTABLE, key="rkey"))
            assert "column 'rkey', row 4" in message
        numbers = people(5).set_column(4, "rkey", pa.array([1, 2, int(SECRET), 3, 4]))
        assert "row 3" in refused(InvalidCount, lambda: perturb(numbers, TABLES, PTABLE, key="rkey"))
        decimals = people(5).set_column(4, "rkey", pa.array([Decimal("0.5")] * 4 + [Decimal("1.5")]))
        ptable = PTABLE.rescaled(10**8)
        assert "row 5" in refused(InvalidCount, lambda: perturb(decimals, TABLES, ptable, key="rkey", keys=KeySpace.decimals()))

    def test_keys_that_do_not_fill_their_space(self) -> None:
        """Keys of 8 bits declared as 32 bits: every cell would get the noise of the lowest keys."""
        frame = people(400, KeySpace(256))
        words = "do not fill 0 to 4294967295"
        assert words in refused(InvalidCount, lambda: perturb(frame, TABLES, PTABLE, key="rkey"))
        assert words in refused(
            InvalidCount, lambda: perturb(frame, TABLES, PTABLE, key="rkey", keys=CellKeys(SPACES[0], BIG_PRIME, 2**16))
        )
        high = frame.set_column(4, "rkey", pa.array([2**32 - 1 - key for key in frame.column("rkey").to_pylist()], pa.uint32()))
        assert words in refused(InvalidCount, lambda: perturb(high, TABLES, PTABLE, key="rkey"))
        fitting = PTABLE.rescaled(256)
        assert perturb(frame, TABLES, fitting, key="rkey", keys=KeySpace(256))["all"].num_rows == 1
        table = Table.from_records(frame, {"a": ["x", "y", "z"], "b": [str(n) for n in range(60)]}, record_key="rkey")
        assert words in refused(InvalidCount, lambda: perturb(table, TABLES, PTABLE))
        listed = table.frame.append_column("key", pa.array(table.cell_keys))
        assert words in refused(InvalidCount, lambda: perturb(listed, TABLES, PTABLE, key="key", count="count"))

    def test_empty_cells_are_no_sign_of_keys_that_do_not_fill(self) -> None:
        listed = pa.table({"a": ["x", *(f"e{n}" for n in range(500))], "n": [9] + [0] * 500, "k": [2**31] + [0] * 500})
        assert perturb(listed, {"a": ["a"]}, PTABLE, key="k", count="n")["a"].num_rows == 1

    def test_identifiers_twice(self) -> None:
        frame = people(5).set_column(0, "id", pa.array([SECRET, "b", "c", SECRET, "d"]))
        message = refused(TooManyRecords, lambda: perturb(frame, TABLES, PTABLE, key="rkey", id="id"))
        assert "more than 1 record. Give every record an identifier of its own" in message
        assert "max_records" not in message

    def test_similar_codes(self) -> None:
        frame = people(60).set_column(1, "a", pa.array(["x", "X", "y"] * 20))
        for table in (["a"], {"a": ["x", "X", "y"]}):
            ask = partial(perturb, frame, {"t": table}, PTABLE, key="rkey")
            assert "--allow-similar-codes" in refused(InvalidCode, ask)
            assert ask(allow_similar_codes=True)["t"].num_rows == 3

    def test_a_count_with_no_row(self) -> None:
        ptable = PerturbationTable.from_probabilities({n: {0: "1/2", 1: "1/2"} for n in (1, 2)}, 4, repeat=0)
        refused(InvalidCount, lambda: perturb(people(), TABLES, ptable, key="rkey"))

    def test_a_table_that_would_lose_noise(self) -> None:
        rare = PerturbationTable.from_probabilities({1: {0: Fraction(2**16 - 1, 2**16), 1: Fraction(1, 2**16)}}, 2**16)
        assert "too small" in refused(InvalidParameter, lambda: perturb(people(), TABLES, rare, key="rkey", keys=CellKeys(SPACES[0], 2**8)))

    @pytest.mark.parametrize("keys", [KeySpace(256), KeySpace.decimals(8), CellKeys(SPACES[0], BIG_PRIME)], ids=str)
    def test_a_table_whose_law_would_change(self, keys: KeySpace | CellKeys) -> None:
        """The table that was checked has 2^32 keys; with another number of cell keys its noise follows another law."""
        checked = PerturbationTable.from_probabilities({1: {-1: THIRD, 0: THIRD, 1: THIRD}}, 2**32)
        rule = keys if isinstance(keys, CellKeys) else CellKeys(keys)
        fitted = checked.rescaled(rule.size)
        assert fitted.epsilon_delta().delta(1) != checked.epsilon_delta().delta(1)
        frame = people(space=rule.records)
        message = refused(InvalidParameter, lambda: perturb(frame, TABLES, checked, key="rkey", keys=keys))
        assert f"table.rescaled({rule.size})" in message
        assert perturb(frame, TABLES, fitted, key="rkey", keys=keys)["all"].num_rows == 1

    def test_a_multiple_of_the_keys_is_the_same_law(self) -> None:
        for size in (2**16, 2**32, 3 * 2**16):
            assert PTABLE.rescaled(size).epsilon_delta().curve([0, 1]) == PTABLE.epsilon_delta().curve([0, 1])
        frame = people(space=KeySpace(3 * 2**16))
        rule = CellKeys(KeySpace(3 * 2**16))
        assert cells_of(perturb(frame, {"a": ["a"]}, PTABLE, key="rkey", keys=rule)["a"]) == slow(frame, ["a"], rule)

    def test_names_and_columns(self) -> None:
        frame = people(5)
        for name in ("", "../x", ".x", "a b", "x" * 101):
            refused(InvalidParameter, partial(perturb, frame, {name: ["a"]}, PTABLE, key="rkey"))
        refused(InvalidParameter, lambda: perturb(frame, {}, PTABLE, key="rkey"))
        refused(InvalidParameter, lambda: perturb(frame, {"t": "a"}, PTABLE, key="rkey"))
        refused(UnknownColumn, lambda: perturb(frame, {"t": ["q"]}, PTABLE, key="rkey"))
        refused(InvalidCode, lambda: perturb(frame, {"t": ["rkey"]}, PTABLE, key="rkey"))
        assert "'a' twice" in refused(InvalidParameter, lambda: perturb(frame, {"t": ["a", "b", "a"]}, PTABLE, key="rkey"))
        texts = frame.set_column(4, "rkey", frame.column("rkey").cast(pa.string()))
        for column in ("rkey", "id", "w"):
            ask = partial(perturb, texts, {"t": ["a", column]}, PTABLE, key="rkey", id="id", weight="w")
            assert f"names column {column!r}, which holds keys" in refused(InvalidCode, ask)
        refused(InvalidParameter, lambda: perturb(Table.from_records(frame, ["a"], universe="observed"), {"t": ["a"]}, PTABLE))

    def test_records(self) -> None:
        frame = people(5)
        refused(EmptyTable, lambda: perturb(frame.slice(0, 0), {"t": ["a"]}, PTABLE, key="rkey"))
        refused(EmptyTable, lambda: perturb(frame.slice(0, 0), {"t": []}, PTABLE, key="rkey"))
        refused(OutsideUniverse, lambda: perturb(frame, {"t": {"a": ["x"]}}, PTABLE, key="rkey"))
        missing = frame.set_column(1, "a", pa.array(["x", None, "x", "y", "z"]))
        refused(InvalidCode, lambda: perturb(missing, {"t": ["a"]}, PTABLE, key="rkey"))

    def test_counts(self) -> None:
        read = partial(perturb, tables={"t": ["a"]}, noise=PTABLE, key="k", count="n")
        for bad in ([1, -1], ["1", "-1"], ["1", "9" * 19], [1, 2**62]):
            message = refused(InvalidCount, partial(read, pa.table({"a": ["x", "y"], "n": bad, "k": [1, 1]})), "9" * 19)
            assert "This is not a count: column 'n', row 2" in message
        both = pa.table({"a": ["x", "x"], "n": [2**61, 2**61], "k": [2**31, 1]})
        assert "add up to more than" in refused(InvalidCount, lambda: read(both))
        large = pa.table({"a": pa.array(["x"], pa.large_string()), "n": pa.array([str(2**62 - 1)], pa.large_string()), "k": [2**31]})
        assert cells_of(read(large)["t"])[("x",)] > 2**61
        assert "row 2" in refused(InvalidCount, lambda: read(pa.table({"a": ["x", "y"], "n": [1, -1], "k": [1, 1]})))
        assert "empty cell" in refused(InvalidCount, lambda: read(pa.table({"a": ["x", "y"], "n": [1, 0], "k": [1, 1]})))
        assert cells_of(read(pa.table({"a": ["x", "y"], "n": [4, 0], "k": [1, 0]}))["t"]) == {("x",): 4 + int(PTABLE.row_of(4).noise[0])}
