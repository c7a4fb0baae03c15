"""Universes: numbering, grouping, product detection, and what makes two of them equal."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import DuplicateCells, EmptyTable, InvalidCode, InvalidParameter, RequestTooLarge, UnknownColumn
from holdfast.tables import Hierarchy, Universe
from holdfast.tables import cells as cells_module
from tests.tables.reference import as_columns, codes, refused, rows_of, slow_groups

NESTED = {"state": ["01", "01", "02", "02"], "county": ["001", "003", "001", "005"]}

small_rows = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", "d"])] * width), min_size=1, max_size=20, unique=True)
)


def names_of(rows: list[tuple[str, ...]]) -> list[str]:
    return [f"k{place}" for place in range(len(rows[0]))]


class TestProduct:
    def test_last_column_is_fastest(self) -> None:
        universe = Universe.product({"sex": ["F", "M"], "age": ["0-4", "85+", "5"]})
        assert rows_of(universe.frame(), ["sex", "age"]) == list(itertools.product(["F", "M"], ["0-4", "85+", "5"]))
        assert len(universe) == 6
        assert universe.is_product
        assert universe.is_in_order
        assert universe.support == "declared"
        assert universe.codes == {"sex": ("F", "M"), "age": ("0-4", "85+", "5")}
        assert universe.code_indices("age").tolist() == [0, 1, 2, 0, 1, 2]
        assert universe.cell_name(4) == "sex=M, age=85+"

    def test_a_hierarchy_stands_for_its_leaves(self) -> None:
        tree = Hierarchy.from_tree("A\n@A1\n@A2\nB")
        universe = Universe.product({"area": tree})
        assert universe.codes["area"] == ("A1", "A2", "B")
        assert universe.hierarchies == {"area": tree}

    @pytest.mark.parametrize(
        ("declared", "kind", "words"),
        [
            ({}, EmptyTable, "at least one column"),
            ({"sex": []}, EmptyTable, "'sex' has no codes"),
            ({"sex": ["F", "M", "F"]}, InvalidCode, "'F' of column 'sex' is declared twice"),
            ({"sex": [1, 2]}, InvalidCode, "Got int"),
            ({"sex": ["F", None]}, InvalidCode, "Got NoneType"),
            ({"sex": "FM"}, InvalidCode, "Got one text"),
            ({"sex": ["\ud800"]}, InvalidCode, "not valid Unicode"),
            ({f"k{i}": ["a", "b"] for i in range(37)}, RequestTooLarge, "2\\^36"),
        ],
    )
    def test_wrong_declarations(self, declared, kind, words) -> None:
        with pytest.raises(kind, match=words):
            Universe.product(declared)

    def test_a_huge_product_costs_nothing_until_used(self) -> None:
        universe = Universe.product({f"k{i}": ["a", "b"] for i in range(36)})
        assert len(universe) == 2**36
        assert universe.locate(dict.fromkeys(universe.columns, "b")) == 2**36 - 1
        assert len(universe.digest()) == 64


class TestListed:
    @given(small_rows)
    def test_keeps_rows_and_order(self, rows) -> None:
        names = names_of(rows)
        universe = Universe.listed(as_columns(rows, names))
        assert rows_of(universe.frame(), names) == rows
        for place, name in enumerate(names):
            assert universe.codes[name] == tuple(dict.fromkeys(row[place] for row in rows))

    @given(small_rows)
    def test_locate_and_cell_are_inverse(self, rows) -> None:
        universe = Universe.listed(as_columns(rows, names_of(rows)))
        assert [universe.locate(universe.cell(place)) for place in range(len(rows))] == list(range(len(rows)))
        columns = [np.concatenate([universe.code_indices(name), [0]]).astype(np.int32) for name in universe.columns]
        assert universe.find(columns)[:-1].tolist() == list(range(len(rows)))

    @given(small_rows)
    def test_product_is_detected_in_any_order(self, rows) -> None:
        names = names_of(rows)
        universe = Universe.listed(as_columns(rows, names))
        full = list(itertools.product(*(universe.codes[name] for name in names)))
        assert universe.is_product == (sorted(full) == sorted(rows))
        assert universe.is_in_order == (full == rows)

    def test_the_order_of_a_product_matters_for_in_order_only(self) -> None:
        universe = Universe.listed({"a": ["x", "y", "x", "y"], "b": ["1", "1", "2", "2"]})
        assert universe.is_product
        assert not universe.is_in_order

    def test_duplicates_are_refused_with_rows(self) -> None:
        message = refused(DuplicateCells, lambda: Universe.listed({"a": ["x", "y", "z", "y", "x"], "b": ["1", "2", "1", "2", "2"]}))
        assert "rows 2 and 4" in message

    def test_missing_codes_are_refused_with_row(self) -> None:
        assert "column 'a', row 2 of" in refused(InvalidCode, lambda: Universe.listed(pa.table({"a": ["x", None]})))

    def test_a_tuple_that_is_not_listed(self) -> None:
        universe = Universe.listed(NESTED)
        with pytest.raises(InvalidCode, match="combination is not listed"):
            universe.locate({"state": "01", "county": "005"})
        with pytest.raises(InvalidCode, match="no code '1'"):
            universe.locate({"state": "1", "county": "005"})
        with pytest.raises(UnknownColumn, match="one code for each of state, county"):
            universe.locate({"state": "01"})
        assert universe.find([np.array([0, 1], np.int32), np.array([2, 2], np.int32)]).tolist() == [-1, 3]

    @given(st.lists(st.tuples(*[st.text(alphabet='ab,= "\n', max_size=6)] * 2), min_size=1, max_size=30, unique=True))
    def test_cell_names_tell_all_cells_apart(self, rows) -> None:
        universe = Universe.listed(as_columns(rows, ["a", "b"]), allow_similar_codes=True)
        assert len({universe.cell_name(cell) for cell in range(len(rows))}) == len(rows)

    def test_cell_names_quote_what_could_be_mistaken(self) -> None:
        """Before, both were called "a=1, b=2, b=3"."""
        universe = Universe.listed({"a": ["1, b=2", "1"], "b": ["3", "2, b=3"]})
        assert [universe.cell_name(cell) for cell in range(2)] == ['a="1, b=2", b=3', 'a=1, b="2, b=3"']

    def test_wrong_arguments(self) -> None:
        universe = Universe.listed(NESTED)
        with pytest.raises(UnknownColumn, match="no column 'tract'"):
            universe.code_indices("tract")
        with pytest.raises(InvalidParameter, match="named twice"):
            universe.group(["state", "state"])
        with pytest.raises(InvalidParameter, match="from 0 to 3"):
            universe.cell_name(4)
        with pytest.raises(EmptyTable):
            Universe.listed({"a": []})
        with pytest.raises(InvalidParameter, match="differ in length"):
            Universe.listed({"a": ["x"], "b": []})


class TestGroup:
    @given(small_rows, st.data())
    def test_agrees_with_the_slow_version(self, rows, data) -> None:
        universe = Universe.listed(as_columns(rows, names_of(rows)))
        columns = data.draw(st.lists(st.sampled_from(universe.columns), unique=True))
        indices = [universe.code_indices(name).tolist() for name in columns]
        expected, names = slow_groups(list(zip(*indices, strict=True)) if columns else [()] * len(rows))
        groups, found = universe.group(columns)
        assert groups.tolist() == expected
        assert [tuple(row) for row in found.tolist()] == names
        assert groups.dtype == np.int64
        assert found.dtype == np.int32

    @pytest.mark.parametrize("limit", [1, 5, 40])
    def test_radices_beyond_64_bits(self, limit, monkeypatch) -> None:
        """With a tiny limit every path through the ranks is taken; then with true sizes."""
        monkeypatch.setattr(cells_module, "_KEY_LIMIT", limit)
        rows = [tuple(f"{(i * 7919 + j * i) % 11}" for j in range(4)) for i in range(60)]
        self.check(list(dict.fromkeys(rows)))

    def test_thirty_columns_of_many_codes(self) -> None:
        rows = [tuple(f"{(i * (j + 3)) % 97}" for j in range(30)) for i in range(97)]  # 97^30 > 2^63
        self.check(rows)

    def test_keys_that_would_wrap_around(self) -> None:
        """Without ranks in between, 2^31 * 2^31 * 2^31 leaves 64 bits and cells that differ in the first column fall together."""
        draws = np.random.default_rng(7)
        parts = [draws.choice(np.array([0, 3, 4, 8, 2**31 - 1], dtype=np.int32), size=500) for _ in range(3)]
        ranks, number = cells_module.rank_rows(parts, [2**31] * 3, 500)
        expected, names = slow_groups(list(zip(*(part.tolist() for part in parts), strict=True)))
        assert ranks.tolist() == expected
        assert number == len(names)
        distinct = [np.array(part, dtype=np.int32) for part in zip(*names, strict=True)]
        assert cells_module.find_rows(distinct, [2**31] * 3, parts).tolist() == expected

    @staticmethod
    def check(rows: list[tuple[str, ...]]) -> None:
        universe = Universe.listed(as_columns(rows, names_of(rows)))
        indices = [universe.code_indices(name) for name in universe.columns]
        groups, names = universe.group(universe.columns)
        expected, slow_names = slow_groups(list(zip(*(given.tolist() for given in indices), strict=True)))
        assert groups.tolist() == expected
        assert [tuple(row) for row in names.tolist()] == slow_names
        order = np.arange(len(rows))[::-1]
        assert universe.find([given[order] for given in indices]).tolist() == order.tolist()
        absent = [given[order].copy() for given in indices]
        absent[-1] = (absent[-1] + 1) % universe.code_count(universe.columns[-1])
        known = {tuple(row): place for place, row in enumerate(np.stack(indices, axis=1).tolist())}
        assert universe.find(absent).tolist() == [known.get(tuple(row), -1) for row in np.stack(absent, axis=1).tolist()]

    def test_sorted_and_shuffled_many_cells_agree(self) -> None:
        """Sparse keys: the sorted rows take the linear path, the shuffled ones the sorting path."""
        n = 20_000
        keys = np.sort(np.random.default_rng(5).choice(10**6, size=n, replace=False))
        parts = [(keys // 1000).astype(np.int32), (keys % 1000).astype(np.int32)]
        shuffled = np.random.default_rng(6).permutation(n)
        ranks, number = cells_module.rank_rows(parts, [1000, 1000], n)
        again, same = cells_module.rank_rows([part[shuffled] for part in parts], [1000, 1000], n)
        assert number == same == n
        assert np.array_equal(ranks, np.arange(n))
        assert np.array_equal(again, shuffled)


class TestIdentity:
    def test_how_cells_were_given_makes_no_difference(self) -> None:
        product = Universe.product({"a": ["x", "y"], "b": ["1", "2"]})
        listed = Universe.listed({"a": ["x", "x", "y", "y"], "b": ["1", "2", "1", "2"]})
        assert product == listed
        assert hash(product) == hash(listed)
        sliced = Universe.listed(pa.table({"a": ["?", "x", "x", "y", "y"], "b": ["?", "1", "2", "1", "2"]}).slice(1))
        assert sliced.digest() == product.digest()

    @given(small_rows, small_rows)
    def test_equal_only_if_all_is(self, one, other) -> None:
        first, second = (Universe.listed(as_columns(rows, names_of(rows))) for rows in (one, other))
        assert (first == second) == (one == other)

    @given(st.lists(codes, min_size=1, max_size=4, unique=True), st.lists(codes, min_size=1, max_size=4, unique=True))
    def test_codes_do_not_run_together(self, one, other) -> None:
        first, second = (Universe.product({"a": given}, allow_similar_codes=True) for given in (one, other))
        assert (first == second) == (one == other)

    def test_column_names_and_the_limits_of_codes_count(self) -> None:
        assert Universe.product({"a": ["xy", "z"]}) != Universe.product({"a": ["x", "yz"]})
        assert Universe.product({"a": ["x"]}) != Universe.product({"b": ["x"]})
        assert Universe.product({"a": ["x"]}) != "a"

    def test_pickle_and_repr(self) -> None:
        universe = Universe.listed(NESTED)
        again = pickle.loads(pickle.dumps(universe))
        assert again == universe
        assert again.cell_name(3) == "state=02, county=005"
        assert repr(universe) == "Universe(4 cells by state, county; listed cells; declared)"
        assert "01" not in repr(universe.codes)

    def test_indices_cannot_be_written(self) -> None:
        for universe in (Universe.listed(NESTED), Universe.product({"state": ["01", "02"]})):
            indices = universe.code_indices("state")
            with pytest.raises(ValueError, match="read-only"):
                indices[0] = 1
            with pytest.raises(ValueError, match="WRITEABLE"):
                indices.setflags(write=True)
            with pytest.raises(AttributeError):
                universe.support = "observed"  # type: ignore[misc]


class TestHierarchies:
    def test_leaves_must_be_the_codes(self) -> None:
        tree = Hierarchy.from_prefixes(["0101", "0102", "0201"], [2])
        assert Universe.product({"a": ["0201", "0101", "0102"]}, hierarchies={"a": tree}).hierarchies == {"a": tree}
        with pytest.raises(UnknownColumn, match="column 'b'"):
            Universe.product({"a": ["0201"]}, hierarchies={"b": tree})


@given(st.lists(st.integers(1, 10), min_size=1, max_size=3), st.data())
def test_full_products_are_counted_as_their_rows_would_be(sizes: list[int], data: st.DataObject) -> None:
    """Groups and their codes, and the cells that have some codes, told by strides: as by looking at every row."""
    universe = Universe.product({f"k{place}": [str(code) for code in range(size)] for place, size in enumerate(sizes)})
    rows = list(itertools.product(*map(range, sizes)))
    places = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    named = [tuple(row[place] for place in places) for row in rows]
    groups, codes_of = universe.group([universe.columns[place] for place in places])
    distinct = sorted(set(named))
    assert [tuple(names) for names in codes_of.tolist()] == distinct
    assert groups.tolist() == [distinct.index(name) for name in named]
    assert (groups.dtype.name, codes_of.dtype.name) == ("int64", "int32")
    for place, size in enumerate(sizes):
        chosen = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        assert universe.cells_having(universe.columns[place], chosen).tolist() == [bool(chosen[row[place]]) for row in rows]
