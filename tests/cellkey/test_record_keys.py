"""Record keys: a keyed function of the identifier, the same in bulk as one by one, on every day and in every subset."""

from __future__ import annotations

import copy
import pickle
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, ncx2

from holdfast.cellkey.keys import CellKeys, KeySpace
from holdfast.cellkey.record_keys import BATCH, RecordKeys
from holdfast.errors import InvalidCode, InvalidParameter, KeyMisuse, OutputExists, TooManyRecords, UnreadableInput
from holdfast.randomness import NoiseKey
from holdfast.testing import ALPHA, check_fit, fits
from holdfast.testing.fit import TAIL_FACTOR

SPACES = [
    KeySpace.bits(32),
    KeySpace.bits(64),
    KeySpace(256),
    KeySpace(4096),
    KeySpace.decimals(8),
    KeySpace.decimals(18),
    KeySpace(1000003),
]
SHORT_SECRET = '{"kind": "holdfast record keys", "version": 1, "private": true, "secret": "4711"}'
UNIFORM = [1 / 256] * 256
SECRET = "person-4711-secret"

KNOWN_32 = [3426780873, 31848572, 3035639775]
KNOWN_8 = [79415042, 47761503, 402643]
KNOWN_FINGERPRINT = "4b05abb5254461a5"


@pytest.fixture(scope="module")
def keys() -> RecordKeys:
    return RecordKeys.for_tests("tests/cellkey")


class TestKeys:
    @pytest.mark.parametrize("space", SPACES, ids=str)
    def test_in_bulk_as_one_by_one(self, keys: RecordKeys, space: KeySpace) -> None:
        texts = [f"{'é' * (size % 3)}{'x' * size}{size}" for size in (*range(0, 70), 500)]  # one block of the cipher, and many
        assert keys.keys(texts, space).tolist() == [keys.slow_key(text, space) for text in texts]

    @given(st.lists(st.text(min_size=1, max_size=40), unique=True, max_size=30))
    def test_any_text(self, texts: list[str]) -> None:
        keys, space = RecordKeys.for_tests(2), KeySpace.bits(64)
        assert keys.keys(texts, space).tolist() == [keys.slow_key(text, space) for text in texts]

    def test_never_changes(self, keys: RecordKeys) -> None:
        """Keys of records live for decades: these numbers must never change."""
        names = ["p1", "p2", "0123456789abcdef"]
        assert keys.keys(names, KeySpace.bits(32)).tolist() == KNOWN_32
        assert keys.keys(names, KeySpace.decimals(8)).tolist() == KNOWN_8
        assert keys.fingerprint == KNOWN_FINGERPRINT

    def test_survives_reordering_subsets_and_batches(self, keys: RecordKeys) -> None:
        texts = [f"p{place}" for place in range(BATCH + 1000)]
        space = KeySpace.bits(32)
        whole = keys.keys(texts, space)
        order = np.random.default_rng(3).permutation(len(texts))
        assert np.array_equal(keys.keys([texts[place] for place in order], space), whole[order])
        assert np.array_equal(keys.keys(texts[::97], space), whole[::97])
        chunked = pa.chunked_array([pa.array(texts[:5]), pa.array([], pa.string()), pa.array(texts).slice(5)])
        assert np.array_equal(keys.keys(chunked, space), whole)
        encoded = pa.array(texts).dictionary_encode()
        assert np.array_equal(keys.keys(encoded, space), whole)

    def test_integers_are_their_digits(self, keys: RecordKeys) -> None:
        space = KeySpace.bits(32)
        assert keys.keys(pa.array([7, 12]), space).tolist() == keys.keys(["7", "12"], space).tolist()
        assert keys.keys(["7"], space) != keys.keys(["007"], space)

    def test_which_identifiers_are_the_same(self, keys: RecordKeys) -> None:
        """Text, character by character: as `RecordKeys.add` says."""
        others = ["7", "07", "7 ", " 7", "７", "Ren\u00e9", "Rene\u0301", "rené"]
        made = keys.add(pa.table({"id": others}), "id", KeySpace.bits(64)).column("record_key").to_pylist()
        assert len(set(made)) == len(others)
        assert keys.add(pa.table({"id": [7]}), "id", KeySpace.bits(64)).column("record_key").to_pylist() == made[:1]
        assert all(words in str(RecordKeys.add.__doc__) for words in ('"07"', '"7 "', "accented"))

    def test_keys_of_another_size_tell_nothing_about_these(self, keys: RecordKeys) -> None:
        """Once, 8-bit keys were the low bytes of 32-bit keys: whoever had the one knew a byte of the other."""
        names = [f"p{place}" for place in range(64_000)]
        wide = keys.keys(names, KeySpace.bits(32)).astype(np.int64)
        narrow = keys.keys(names, KeySpace(256)).astype(np.int64)
        assert np.count_nonzero(wide % 256 == narrow) < len(names) // 100
        check_fit((wide - narrow) % 256, UNIFORM, name="32-bit keys less 8-bit keys of the same records")
        assert not fits((wide - wide % 256) % 256, UNIFORM)  # as it was
        assert keys.keys(names[:9], KeySpace(10**8)).tolist() == keys.keys(names[:9], KeySpace.decimals(8)).tolist()

    def test_other_secrets_and_names_give_other_keys(self, keys: RecordKeys) -> None:
        space = KeySpace.bits(64)
        made = [keys, RecordKeys.for_tests(1), RecordKeys.generate(), keys.derive("households"), keys.derive("households", 2030)]
        assert len({int(one.keys(["p1"], space)[0]) for one in made}) == len(made)
        assert len({one.fingerprint for one in made}) == len(made)

    def test_no_records(self, keys: RecordKeys) -> None:
        assert keys.keys([], KeySpace.bits(32)).tolist() == []


class TestUniform:
    RECORDS = 256 * 2000

    def cell_keys(self, keys: RecordKeys, rule: CellKeys, members: int) -> np.ndarray:
        found = keys.keys(pa.array(np.arange(self.RECORDS)), rule.records).reshape(-1, members)
        sums = np.array([sum(row) % rule.modulus for row in found.tolist()], np.uint64)
        return rule.fold(sums).astype(np.int64)

    @pytest.mark.parametrize(
        "rule", [CellKeys(KeySpace.bits(32), size=2**8), CellKeys(KeySpace(256)), CellKeys(KeySpace.bits(32), 4294967291, 2**8)], ids=str
    )
    def test_cell_keys_are_uniform(self, keys: RecordKeys, rule: CellKeys) -> None:
        """Cells of four records, 128,000 of them over 256 keys; for the power of this see the next test."""
        check_fit(self.cell_keys(keys, rule, 4), UNIFORM, name=f"cell keys, {rule}")

    def test_keys_that_are_six_in_a_hundred_off_would_be_seen(self, keys: RecordKeys) -> None:
        """Even keys 6 % too rare, odd ones 6 % too frequent: such a law passes with a probability below 1e-6, by the noncentral
        chi-square law of the statistic; and a sample of it does not pass.
        """
        found = self.cell_keys(keys, CellKeys(KeySpace(256)), 4)
        largest_passed = float(chi2.isf(ALPHA / TAIL_FACTOR, 255))
        assert ncx2.cdf(largest_passed, 255, len(found) * 0.06**2) < 1e-6
        moved = np.random.default_rng(5).random(len(found)) < 0.06
        assert not fits(np.where(moved & (found % 2 == 0), found + 1, found), UNIFORM)
        assert fits(found, UNIFORM)


class TestFrames:
    def test_a_column_of_keys_is_added(self, keys: RecordKeys) -> None:
        frame = pa.table({"id": ["a", "b"], "sex": ["F", "M"]})
        made = keys.add(frame, "id", KeySpace.bits(32))
        assert made.column_names == ["id", "sex", "record_key"]
        assert made.column("record_key").to_pylist() == keys.keys(["a", "b"], KeySpace.bits(32)).tolist()
        assert made.column("record_key").type == pa.uint32()

    def test_decimals_are_text_with_all_digits(self, keys: RecordKeys) -> None:
        names = [f"p{place}" for place in range(300)]
        space = KeySpace.decimals(8)
        column = keys.add(pa.table({"id": names}), "id", space, name="rkey").column("rkey").to_pylist()
        assert [space.read(text) for text in column] == keys.keys(names, space).tolist()
        assert {len(text) for text in column} == {10}
        assert any(text.startswith("0.0") for text in column)

    def test_files(self, keys: RecordKeys, tmp_path: Path) -> None:
        (tmp_path / "people.csv").write_text("id,sex\n007,F\n8,M\n", encoding="utf-8")
        made = keys.add(tmp_path / "people.csv", "id", KeySpace(4096))
        assert made.column("record_key").to_pylist() == keys.keys(["007", "8"], KeySpace(4096)).tolist()

    def test_refused_without_showing_an_identifier(self, keys: RecordKeys) -> None:
        space = KeySpace.bits(32)
        cases = [
            (TooManyRecords, [SECRET, "b", SECRET], "same identifier"),
            (TooManyRecords, [SECRET, None], "no identifier"),
            (TooManyRecords, [SECRET, ""], "no identifier"),
            (InvalidCode, [SECRET * 1000, "b"], "longer than"),
        ]
        for kind, names, words in cases:
            with pytest.raises(kind, match=words) as caught:
                keys.add(pa.table({"id": names}), "id", space)
            assert SECRET not in str(caught.value)
        with pytest.raises(InvalidCode, match="has type double"):
            keys.add(pa.table({"id": [1.5]}), "id", space)
        with pytest.raises(InvalidParameter, match="exists"):
            keys.add(pa.table({"id": ["a"], "record_key": ["x"]}), "id", space)
        with pytest.raises(InvalidCode, match="must be text"):
            keys.keys([1, 2], space)
        with pytest.raises(InvalidParameter, match="up to 2\\^63"):
            keys.keys(["a"], KeySpace(2**64 - 1))


class TestSecret:
    def test_saved_and_loaded(self, keys: RecordKeys, tmp_path: Path) -> None:
        private = RecordKeys.generate()
        for made in (keys, private):
            path = tmp_path / f"{made.fingerprint}.json"
            made.save(path)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            again = RecordKeys.load(path)
            assert again.fingerprint == made.fingerprint
            assert again.is_private == made.is_private
            assert again.keys(["p1"], KeySpace.bits(64)) == made.keys(["p1"], KeySpace.bits(64))
            with pytest.raises(OutputExists):
                made.save(path)
            path.chmod(0o640)
            with pytest.raises(KeyMisuse, match="can be read or changed by others"):
                RecordKeys.load(path)

    @pytest.mark.parametrize("content", ["", "{}", "[1]", SHORT_SECRET])
    def test_other_files_are_refused_without_being_shown(self, content: str, tmp_path: Path) -> None:
        path = tmp_path / "keys.json"
        path.write_text(content, encoding="ascii")
        path.chmod(0o600)
        with pytest.raises(UnreadableInput) as caught:
            RecordKeys.load(path)
        assert "4711" not in str(caught.value)
        with pytest.raises(UnreadableInput, match="cannot be opened"):
            RecordKeys.load(tmp_path / "none.json")

    def test_not_shown_copied_or_pickled(self) -> None:
        made = RecordKeys.generate()
        secret = made._master.hex()
        assert secret not in repr(made)
        assert secret not in str(made)
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(KeyMisuse, match="save"):
                attempt(made)
        with pytest.raises(KeyMisuse):
            RecordKeys()

    def test_is_no_noise_key(self) -> None:
        assert not isinstance(RecordKeys.generate(), NoiseKey)
        assert not hasattr(RecordKeys, "stream")
