"""The permutation of cell keys: a permutation for every number of keys, the same for ever, and the law of a cell stays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, RecordKeys
from holdfast.cellkey.keys import mix_keys, slow_mixed
from tests.cellkey.paper_prime import BIG_PRIME
from tests.cellkey.perturbing import perturb

KNOWN = {
    256: [128, 132, 142],
    100000000: [58923902, 98866445, 81273897],
    4294967296: [3702104948, 2806291155, 25908134],
    18446744073709551616: [14189811275725748494, 7848621272312046274, 17496317567097711195],
}


@pytest.mark.parametrize("size", [*range(2, 130), 255, 256, 257, 1000, 4096, 10**4])
def test_every_key_comes_out_once(size: int) -> None:
    assert sorted(mix_keys(np.arange(size, dtype=np.uint64), size).tolist()) == list(range(size))


@given(st.sampled_from([2, 3, 256, 10**8, 2**32, BIG_PRIME, 10**18, 2**64 - 59, 2**64]), st.data())
def test_agrees_with_the_slow_version(size: int, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
    assert mix_keys(np.array(keys, np.uint64), size).tolist() == [slow_mixed(key, size) for key in keys]


def test_never_changes() -> None:
    """Records would get other noise. These are of the first version."""
    keys = np.array([0, 1, 2], np.uint64)
    assert {size: mix_keys(keys, size).tolist() for size in (256, 10**8, 2**32, 2**64)} == KNOWN


def test_the_given_keys_stay() -> None:
    keys = np.arange(5, dtype=np.uint64)
    mix_keys(keys, 8)
    assert keys.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rule", [CellKeys(KeySpace(256), mixed=True), CellKeys(KeySpace.bits(32), size=2**8, mixed=True)])
def test_rules_mix_after_folding(rule: CellKeys) -> None:
    frame = RecordKeys.for_tests("mixed").add(pa.table({"id": [f"p{n}" for n in range(60)], "a": [*"xyz"] * 20}), "id", rule.records)
    table = PerturbationTable.from_upper_bounds({1: [(noise, noise + 1) for noise in range(256)]}, 256)  # noise is the key
    made = perturb(frame, {"a": ["a"]}, table, keys=rule)
    plain = CellKeys(rule.records, size=256)
    for code, count in zip("xyz", made["a"].column("count").to_pylist(), strict=True):
        keys = [row["record_key"] for row in frame.to_pylist() if row["a"] == code]
        assert count - 20 == rule.of(keys) == slow_mixed(plain.of(keys), 256)
