"""Code trees: three ways in, one tree; every broken tree is refused with the code or line at fault."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidHierarchy, InvalidParameter, UnreadableInput
from holdfast.tables import Hierarchy, Table
from tests.tables.reference import ODD_CODES

HRC = "A\n@A1\n@A2\n@@A21\n@@A22\nB\n"

odd = st.lists(st.sampled_from([code for code in ODD_CODES if code and "\n" not in code]), min_size=2, max_size=8, unique=True)


class TestFromTree:
    def test_an_hrc_text(self) -> None:
        tree = Hierarchy.from_tree(HRC)
        assert tree.nodes == ("A", "A1", "A2", "A21", "A22", "B")
        assert tree.leaves() == ("A1", "A21", "A22", "B")
        assert tree.leaves("A") == ("A1", "A21", "A22")
        assert tree.leaves("A2") == ("A21", "A22")
        assert tree.leaves("B") == ("B",)
        assert [tree.parent(code) for code in tree.nodes] == [None, "A", "A", "A2", "A2", None]
        assert tree.levels == ("0", "1", "2")
        assert tree.level(0) == tree.level("0") == ("A", "B")
        assert tree.level(1) == ("A1", "A2")
        assert "A21" in tree
        assert "C" not in tree

    @pytest.mark.parametrize(
        "given",
        [
            HRC.replace("\n", "\r\n"),
            "\ufeff" + HRC + "\n\n",
            HRC.split("\n"),
            [("", "A"), ("@", "A1"), ("@", "A2"), ("@@", "A21"), ("@@", "A22"), ("", "B")],
        ],
    )
    def test_other_forms_of_the_same(self, given) -> None:
        assert Hierarchy.from_tree(given) == Hierarchy.from_tree(HRC)

    def test_sdc_hierarchies_with_total_and_separator(self) -> None:
        tree = Hierarchy.from_tree("@;Total\n@@;A\n@@@;.a;1\n@@; B \n", separator=";", levels=["all", "broad", "fine"])
        assert tree.level("all") == ("Total",)
        assert tree.level("broad") == ("A", " B ")
        assert tree.leaves("Total") == (".a;1", " B ")

    def test_other_lead_strings(self) -> None:
        assert Hierarchy.from_tree("@x\n--@y\n----z", lead="--").leaves("@x") == ("z",)

    def test_a_file(self, tmp_path) -> None:
        (tmp_path / "nace.hrc").write_bytes(("\ufeff" + HRC).replace("A22", "Æ 22").encode())
        assert Hierarchy.from_tree(tmp_path / "nace.hrc").leaves("A2") == ("A21", "Æ 22")
        assert Hierarchy.from_tree(str(tmp_path / "nace.hrc")).leaves("A2") == ("A21", "Æ 22")
        (tmp_path / "latin.hrc").write_bytes(b"\xc6\n")
        with pytest.raises(UnreadableInput, match=r"'latin\.hrc' is not UTF-8"):
            Hierarchy.from_tree(tmp_path / "latin.hrc")
        with pytest.raises(UnreadableInput, match=r"'no\.hrc' cannot be opened"):
            Hierarchy.from_tree("no.hrc")

    @given(odd)
    def test_codes_stay_as_they_are(self, given_codes) -> None:
        tree = Hierarchy.from_tree([given_codes[0], *(f"@{code}" for code in given_codes[1:])])
        assert tree.nodes == tuple(given_codes)
        assert tree.leaves(given_codes[0]) == tuple(given_codes[1:])

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("A\n@@A1", "Line 2 of the code tree is at level 2, after a line at level 0"),
            ("@A\nB", "Line 2 .* level -1"),
            ("@@A\n", "Line 1 .* level 1"),
            ("A\n@A1\nB\n@A1", "'A1' has two parents, 'A' and 'B' \\(line 4"),
            ("A\n@A1\n@A1", "'A1' is listed twice \\(line 3"),
            ("A\n@A", "'A' has two parents, the top and 'A'"),
            ("", "no codes"),
        ],
    )
    def test_broken_trees(self, text, words) -> None:
        with pytest.raises(InvalidHierarchy, match=words):
            Hierarchy.from_tree(text)

    def test_wrong_arguments(self) -> None:
        with pytest.raises(InvalidHierarchy, match=r"Line 1 .* no ';'"):
            Hierarchy.from_tree("@A", separator=";")
        with pytest.raises(InvalidHierarchy, match=r"Line 1 .* '@' only"):
            Hierarchy.from_tree([("x", "A")])
        with pytest.raises(InvalidParameter, match="lead string"):
            Hierarchy.from_tree("A", lead="")
        with pytest.raises(InvalidParameter, match="has 3 levels"):
            Hierarchy.from_tree(HRC, levels=["a", "b"])
        tree = Hierarchy.from_tree(HRC)
        with pytest.raises(InvalidParameter, match="no code 'a'"):
            tree.leaves("a")
        with pytest.raises(InvalidParameter, match="no level 3"):
            tree.level(3)


class TestFromPrefixes:
    def test_states_counties_tracts(self) -> None:
        tree = Hierarchy.from_prefixes(["01001020100", "01003000000", "02001000000"], [2, 5, 11], levels=["state", "county", "tract"])
        assert tree.level("state") == ("01", "02")
        assert tree.level("county") == ("01001", "01003", "02001")
        assert tree.leaves("01") == ("01001020100", "01003000000")
        assert tree == Hierarchy.from_prefixes(["01001020100", "01003000000", "02001000000"], [2, 5], levels=["state", "county", "tract"])

    @pytest.mark.parametrize(
        ("given", "lengths", "kind", "words"),
        [
            (["011", "01"], [2], InvalidHierarchy, "also prefixes of others: '01'"),
            (["011", "0"], [2], InvalidHierarchy, "'0' has 1 characters"),
            (["011", "011"], [2], InvalidHierarchy, "'011' is listed twice"),
            (["011"], [2, 2], InvalidParameter, "increase"),
            (["011"], [0, 2], InvalidParameter, "positive"),
            (["011"], [], InvalidParameter, "positive"),
        ],
    )
    def test_wrong_arguments(self, given, lengths, kind, words) -> None:
        with pytest.raises(kind, match=words):
            Hierarchy.from_prefixes(given, lengths)

    def test_the_counties(self, shared_data) -> None:
        table = Table.from_counts(shared_data / "county_pop_2010.csv", ["state_fips", "county_fips"], "pop2010")
        by_prefix = Hierarchy.from_prefixes(table.universe.codes["county_fips"], [2, 5])
        by_column = Hierarchy.from_parents(shared_data / "county_pop_2010.csv", code="county_fips", parent="state_fips")
        assert by_prefix == by_column
        assert len(by_prefix.level(0)) == 51
        assert len(by_prefix.leaves("48")) == 254


class TestFromParents:
    def test_mapping_pairs_and_frame_agree(self) -> None:
        pairs = [("a1", "a"), ("b1", "b"), ("a1", "a"), ("a2", "a"), ("a", None)]
        tree = Hierarchy.from_parents(dict(pairs))
        assert tree.nodes == ("b", "b1", "a", "a1", "a2")
        assert Hierarchy.from_parents(pairs) == tree
        frame = pa.table({"code": [code for code, _ in pairs], "up": [up for _, up in pairs]})
        assert Hierarchy.from_parents(frame, code="code", parent="up") == tree

    @pytest.mark.parametrize(
        ("pairs", "words"),
        [
            ([("a", "b"), ("b", "c"), ("c", "a")], "cycle: 'a' under 'b' under 'c' under 'a'"),
            ([("x", "a"), ("a", "b"), ("b", "a"), ("y", None)], "cycle: 'a' under 'b' under 'a'"),
            ([("a", "a")], "cycle: 'a' under 'a'"),
            ([("001", "01"), ("001", "02")], "'001' has two parents, '01' and '02'"),
            ([(1, "a")], "Got int"),
            ([("1", 2)], "Got int"),
        ],
    )
    def test_broken_trees(self, pairs, words) -> None:
        with pytest.raises(InvalidHierarchy, match=words):
            Hierarchy.from_parents(pairs)

    def test_a_parent_that_is_no_code_is_named(self) -> None:
        with pytest.raises(InvalidHierarchy, match="Code 'a' lies under 'x', which is not a code of the tree"):
            Hierarchy({"a": "x", "b": None})

    def test_columns_need_both_names_and_codes(self) -> None:
        with pytest.raises(InvalidParameter, match="both names"):
            Hierarchy.from_parents({}, code="a")
        with pytest.raises(InvalidHierarchy, match="missing in column 'code'"):
            Hierarchy.from_parents(pa.table({"code": ["a", None], "up": ["x", "x"]}), code="code", parent="up")

    @given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
    def test_any_tree(self, choices) -> None:
        """Node i hangs below one of the nodes before it; leaves under a node are those that lead up to it."""
        parents = {"0": None} | {str(i): str(choice % i) for i, choice in enumerate(choices, start=1)}
        tree = Hierarchy.from_parents(parents)

        def above(code: str) -> set[str]:
            up = parents[code]
            return {code} | (above(up) if up is not None else set())

        inner = set(parents.values())
        leaves = [code for code in parents if code not in inner]
        assert sorted(tree.leaves()) == sorted(leaves)
        for node in parents:
            assert sorted(tree.leaves(node)) == sorted(leaf for leaf in leaves if node in above(leaf))
            assert node in tree.level(len(above(node)) - 1)


class TestLeaves:
    def test_must_be_the_codes_of_the_column(self) -> None:
        tree = Hierarchy.from_tree(HRC)
        tree.check_leaves("nace", ["B", "A22", "A21", "A1"])
        with pytest.raises(InvalidHierarchy, match=r"2 codes of column 'nace' are no leaves .*'A2', 'Z'"):
            tree.check_leaves("nace", ["B", "A22", "A21", "A1", "Z", "A2"])
        with pytest.raises(InvalidHierarchy, match=r"1 leaf of the hierarchy is no code of column 'nace': 'B'"):
            tree.check_leaves("nace", ["A22", "A21", "A1"])

    def test_a_table_checks_its_trees(self) -> None:
        frame = pa.table({"nace": ["A1", "A21"], "n": [1, 2]})
        with pytest.raises(InvalidHierarchy, match="2 leaves"):
            Table.from_counts(frame, ["nace"], "n", hierarchies={"nace": Hierarchy.from_tree(HRC)})

    def test_pickle(self) -> None:
        tree = Hierarchy.from_tree(HRC)
        assert pickle.loads(pickle.dumps(tree)) == tree
        assert hash(pickle.loads(pickle.dumps(tree))) == hash(tree)
        assert repr(tree) == "Hierarchy(6 codes, 4 leaves, levels 0, 1, 2)"
