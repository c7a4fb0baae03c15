"""Draw and add: streams, labels and digests as they are for good, and every kept total exact.

The numbers in KNOWN protect the stream format: equal keys, identifiers and data give these bytes in every later version. They may change
only together with STREAM_VERSION.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.channels import Drawing, Facts, Task, choose_samplers
from holdfast.channels import channel as channel_module
from holdfast.display import watching
from holdfast.engines.local import BoundRelease, bind
from holdfast.errors import ContradictingTotals, InvalidParameter, StreamReused
from holdfast.randomness.vault import STREAM_VERSION
from holdfast.samplers.choice import Choice, Reason
from tests.examples import examples
from tests.exposing import exposing

GRID = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q", "r"]})
COUNTS = np.array([14, 3, 0, 7, 120, 5, 1, 9, 33])
GENERAL = [[2, -3, 1, 0, 0, 0, 0, 0, 0], [0, 1, 2, -3, 0, 0, 0, 0, 0]]
KEEPS: dict[str, list[Any]] = {
    "one sum": [hf.margin("a")],
    "grid": [hf.margin("a"), hf.margin("b")],
    "free": [],
    "general": [hf.linear(GENERAL)],
}
MECHANISMS: dict[str, Any] = {
    "laplace": hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
    "gaussian": hf.GeneralizedGaussian(sigma_squared=9),
    "rounded": hf.RoundedProjection(epsilon="1/2", per="distance"),
}
KNOWN: dict[tuple[str, str], list[int]] = {
    ("one sum", "laplace"): [15, 4, -2, 7, 119, 6, 1, 10, 32],
    ("one sum", "gaussian"): [15, 5, -3, 5, 120, 7, -1, 10, 34],
    ("one sum", "rounded"): [8, 2, 7, 8, 121, 3, -5, 8, 40],
    ("grid", "laplace"): [15, 3, -1, 6, 120, 6, 1, 9, 33],
    ("grid", "gaussian"): [16, 3, -2, 7, 119, 6, -1, 10, 34],
    ("grid", "rounded"): [15, 1, 1, 4, 123, 5, 3, 8, 32],
    ("free", "laplace"): [14, 1, 1, 4, 119, 5, -3, 5, 33],
    ("free", "gaussian"): [12, 4, 2, 10, 117, 3, -2, 6, 32],
    ("free", "rounded"): [14, 2, 1, 7, 119, 5, 0, 8, 32],
    ("general", "laplace"): [14, 3, 0, 7, 120, 5, 9, 10, 31],
    ("general", "gaussian"): [12, 1, -2, 5, 117, 8, 3, 7, 34],
    ("general", "rounded"): [13, 2, -1, 6, 119, 4, -1, 10, 35],
}
KNOWN_CHUNKS = [12, 2, 1, 7, 120, 5, -5, 11, 32]
KNOWN_VERSION = 6
"""The stream version of all known answers here: both change, or none."""


def a_drawing(mechanism: Any, keep: list[Any], universe: hf.Universe = GRID) -> Drawing:
    return choose_samplers(mechanism.channel(Facts.of(universe, keep)))


def the_tasks(mechanism: Any, keep: list[Any], universe: hf.Universe = GRID) -> list[Task]:
    return list(mechanism.channel(Facts.of(universe, keep)).tasks())


def released(mechanism: Any, keep: list[Any], counts: Any = COUNTS, seed: str = "draw", **named: Any) -> list[int]:
    table = hf.Table(named.pop("universe", GRID), np.asarray(counts))
    return list(exposing(hf.release, table, keep, mechanism, key=hf.NoiseKey.for_tests(seed), **named).table.counts.tolist())


def test_known_answers_are_those_of_this_stream_version() -> None:
    assert STREAM_VERSION == KNOWN_VERSION


@pytest.mark.parametrize(("shape", "name"), KNOWN)
def test_known_answers(shape: str, name: str) -> None:
    assert released(MECHANISMS[name], KEEPS[shape], release_id="known") == KNOWN[shape, name]


def test_known_answer_of_a_lattice_drawn_whole() -> None:
    made = released(hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance"), KEEPS["one sum"], release_id="known")
    assert made == [14, -4, 7, 6, 119, 7, 1, 13, 29]


def test_known_answer_of_free_cells_in_two_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same format with chunks of 6 places instead of 65,536, cells of blocks in between."""
    monkeypatch.setattr(channel_module, "FREE_CELLS", 6)
    assert released(MECHANISMS["laplace"], [hf.subset("a", ["y"])], release_id="known") == KNOWN_CHUNKS


def by_hand(universe: hf.Universe, keep: list[Any], mechanism: Any, counts: Any, key: hf.NoiseKey, release_id: str) -> Any:
    """The documented format, task by task, in reverse order; of the engine only the digest of the input is taken."""
    drawing = a_drawing(mechanism, keep, universe)
    twin = hf.NoiseKey.for_tests("hand")
    digest = bind(drawing, hf.Table(universe, counts), twin, release_id).input_digest
    subkey = key.derive("release", release_id, drawing.channel.identity, digest)
    out = counts.copy()
    for task in reversed(list(drawing.channel.tasks())):
        sampler: Any = drawing.choice(task.shape).sampler
        with subkey.stream(*task.label) as words:
            out[task.cells] += sampler.draw(len(task.cells), words)
    return out


@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_block_by_block_by_hand_gives_the_same_bytes(keep: list[Any], mechanism: Any) -> None:
    made = by_hand(GRID, keep, mechanism, COUNTS, hf.NoiseKey.for_tests("hand"), "r1")
    assert made.tolist() == released(mechanism, keep, seed="hand", release_id="r1")


class TestLabels:
    def test_small_blocks_of_one_shape_share_a_stream_named_by_their_first_cell(self) -> None:
        (task,) = the_tasks(MECHANISMS["laplace"], [hf.margin("a")])
        assert task.label == ("blocks", 0)
        assert task.cells.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        two = the_tasks(MECHANISMS["laplace"], [hf.subset("a", ["y"]), hf.subset("a = 'z' and b != 'p'")])
        found = {task.label: task.cells.tolist() for task in two}
        assert found == {("blocks", 3): [[3, 4, 5]], ("blocks", 7): [[7, 8]], ("free", 0): [[0], [1], [2], [6]]}

    def test_so_many_cells_to_a_stream(self) -> None:
        size = channel_module.STREAM_CELLS
        assert size == 1 << 11  # part of the format
        universe = hf.Universe.product({"a": [str(i) for i in range(size)], "b": ["1", "2"]})
        tasks = the_tasks(MECHANISMS["laplace"], [hf.margin("a")], universe)
        assert [(task.label, task.cells.shape) for task in tasks] == [(("blocks", 0), (size // 2, 2)), (("blocks", size), (size // 2, 2))]

    def test_codes_are_no_part_of_a_label(self) -> None:
        """Quotes, commas or letters of any script in codes cannot make two labels one: labels are numbers of cells."""
        codes = ['x","y', "x", 'y"', "", "\\", "é"]
        universe = hf.Universe.product({"a": codes, "b": ["1", "2"]})
        keep = [hf.subset("a", [code]) for code in codes[:2]] + [hf.linear([[0] * 4 + [1, 2, 3, 0, 0, 0, 0, 0]])]
        labels = [task.label for task in the_tasks(MECHANISMS["gaussian"], keep, universe)]
        assert labels == [("blocks", 0), ("blocks", 4), ("free", 0)]

    def test_free_cells_go_by_chunks_of_the_universe(self) -> None:
        size = channel_module.FREE_CELLS
        assert size == 1 << 16  # part of the format
        universe = hf.Universe.product({"a": [str(i) for i in range(size + 3)]})
        tasks = the_tasks(MECHANISMS["laplace"], [hf.subset("a", ["0", "1"])], universe)
        assert [(task.label, task.cells.size) for task in tasks] == [(("blocks", 0), 2), (("free", 0), size - 2), (("free", 1), 3)]

    def test_every_cell_that_moves_is_in_one_task_and_labels_differ(self) -> None:
        for keep in KEEPS.values():
            for mechanism in MECHANISMS.values():
                tasks = the_tasks(mechanism, keep)
                cells = np.concatenate([task.cells.ravel() for task in tasks])
                assert len(np.unique(cells)) == len(cells)
                fixed = Facts.of(GRID, keep).lattice.exposed_cells
                assert sorted([*cells.tolist(), *np.asarray(fixed).tolist()]) == list(range(9))
                assert len({task.label for task in tasks}) == len(tasks)

    def test_but_another_list_of_cells_is_another_release(self) -> None:
        """The subkey names the universe with its order: a permuted table gets independent noise, never the same noise moved."""
        order = [3, 4, 5, 0, 1, 2, 6, 7, 8]
        moved = hf.Universe.listed({"a": list("yyyxxxzzz"), "b": list("pqr") * 3})
        first = np.array(released(MECHANISMS["laplace"], KEEPS["one sum"])) - COUNTS
        second = np.array(released(MECHANISMS["laplace"], KEEPS["one sum"], COUNTS[order], universe=moved)) - COUNTS[order]
        assert second.tolist() != first[order].tolist()


class TestOneStreamForOneNoiseVector:
    def test_the_same_key_object_draws_a_release_once(self) -> None:
        table = hf.Table(GRID, COUNTS)
        with hf.NoiseKey.for_tests("once") as key:
            hf.release(table, [hf.margin("a")], MECHANISMS["laplace"], key=key, release_id="one")
            with pytest.raises(StreamReused, match=r"already drawn the release 'one'.*new key and a new release identifier"):
                hf.release(table, [hf.margin("a")], MECHANISMS["laplace"], key=key, release_id="one")
            other = hf.Table(GRID, COUNTS[::-1].copy())
            with pytest.raises(StreamReused):
                hf.release(other, [hf.margin("a")], MECHANISMS["laplace"], key=key, release_id="one")
            hf.release(table, [hf.margin("a")], MECHANISMS["laplace"], key=key, release_id="two")

    def test_equal_keys_give_equal_bytes(self) -> None:
        assert released(MECHANISMS["gaussian"], [hf.margin("b")]) == released(MECHANISMS["gaussian"], [hf.margin("b")])

    @pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
    def test_other_data_get_other_noise(self, mechanism: Any) -> None:
        """With the same noise the difference of two releases would be the difference of the tables."""
        other = COUNTS + np.array([1, -1, 0, 0, 0, 0, 0, 0, 0])
        difference = np.array(released(mechanism, [hf.margin("a")], other)) - released(mechanism, [hf.margin("a")])
        assert difference.tolist() != (other - COUNTS).tolist()
        assert np.count_nonzero(difference[3:]) > 0  # blocks that did not change move too

    def test_a_fixed_cell_enters_the_digest_too(self) -> None:
        keep = [hf.margin("a"), hf.subset("a = 'x' and b = 'p'")]
        other = COUNTS + np.array([1, 0, 0, 0, 0, 0, 0, 0, 0])
        mechanism = MECHANISMS["laplace"]
        assert (np.array(released(mechanism, keep, other)) - other).tolist() != (np.array(released(mechanism, keep)) - COUNTS).tolist()

    def test_identifier_law_and_kept_totals_give_other_noise(self) -> None:
        runs = [
            released(MECHANISMS["laplace"], [hf.margin("a")], release_id="one"),
            released(MECHANISMS["laplace"], [hf.margin("a")], release_id="two"),
            released(hf.GeneralizedLaplace(epsilon="1/3", per="distance"), [hf.margin("a")], release_id="one"),
            released(MECHANISMS["rounded"], [hf.margin("a")], release_id="one"),
            released(MECHANISMS["laplace"], [hf.margin("a"), hf.total()], release_id="one"),
            released(MECHANISMS["laplace"], [hf.margin("a")], seed="other", release_id="one"),
        ]
        assert len({tuple(run) for run in runs}) == len(runs)


def test_what_is_bound_to_a_key_shows_no_count_and_no_digest() -> None:
    with hf.NoiseKey.for_tests("shown") as key:
        bound = bind(a_drawing(MECHANISMS["laplace"], [hf.margin("a")]), hf.Table(GRID, COUNTS), key, "r1")
        assert "120" not in repr(bound)
        assert bound.input_digest not in repr(bound)
        bound.subkey.close()


def test_the_subkey_is_closed_after_the_draw_and_after_an_error() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    drawing = a_drawing(MECHANISMS["laplace"], [hf.margin("a")])
    with hf.NoiseKey.for_tests("closed") as key:
        done = bind(drawing, hf.Table(GRID, COUNTS), key, "r1")
        done.draw()
        stopped = bind(drawing, hf.Table(GRID, COUNTS), key, "r2")
        with pytest.raises(KeyboardInterrupt), watching(stop):
            stopped.draw()
        for bound in (done, stopped):
            with pytest.raises(hf.errors.HoldfastError):
                bound.draw()


def test_a_table_of_other_cells_is_refused() -> None:
    other = hf.Universe.product({"a": ["x", "y", "w"], "b": ["p", "q", "r"]})
    with hf.NoiseKey.for_tests("other") as key:
        with pytest.raises(InvalidParameter, match="The plan was made for another table"):
            bind(a_drawing(MECHANISMS["laplace"], []), hf.Table(other, COUNTS), key, "r1")
        same = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q", "r"]})  # equal, another object
        bind(a_drawing(MECHANISMS["laplace"], []), hf.Table(same, COUNTS), key, "r1").subkey.close()


class TestDeclaredValues:
    def test_values_that_are_not_the_tables_are_refused_before_the_draw(self) -> None:
        rows = [[1, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0, 0]]
        assert sum(released(MECHANISMS["laplace"], [hf.linear(rows, values=[17, 7])])[:2]) == 17
        with hf.NoiseKey.for_tests("declared") as key:
            with pytest.raises(ContradictingTotals, match=r"values that linear declares .constraint 1 of") as caught:
                hf.release(hf.Table(GRID, COUNTS), [hf.linear(rows, ["first", "second"], [17, 8])], MECHANISMS["laplace"], key=key)
            assert "7" not in str(caught.value)
            hf.release(hf.Table(GRID, COUNTS), [hf.linear(rows, ["first", "second"], [17, 7])], MECHANISMS["laplace"], key=key)


@st.composite
def requests(draw: st.DrawFn) -> tuple[hf.Universe, np.ndarray[Any, Any], list[Any]]:
    """A small table and constraints over it."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=1, max_size=3))
    columns = "abc"[: len(sizes)]
    universe = hf.Universe.product({c: [f"{c}{i}" for i in range(n)] for c, n in zip(columns, sizes, strict=True)})
    counts = np.array(draw(st.lists(st.integers(0, 50) | st.just(2**40), min_size=len(universe), max_size=len(universe))))
    column = st.sampled_from(columns)
    chosen = st.lists(column, min_size=1, max_size=2, unique=True)
    one = st.one_of(
        st.just(hf.total()),
        chosen.map(lambda names: hf.margin(*names)),
        column.map(lambda c: hf.subset(c, [f"{c}0"])),
        column.map(lambda c: hf.areas(c, {"one": [f"{c}0", f"{c}1"], "two": [f"{c}1"]})),
        column.map(lambda c: hf.identity(hf.subset(c, [f"{c}1"]), int(counts[universe.code_indices(c) == 1].sum()))),
        st.lists(st.sampled_from([0, 0, 1, 2, -3]), min_size=len(universe), max_size=len(universe))
        .filter(any)
        .map(lambda r: hf.linear([r])),
    )
    return universe, counts.astype(np.int64), draw(st.lists(one, max_size=3))


@given(requests(), st.sampled_from(list(MECHANISMS)), st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_every_kept_total_is_exact(request: tuple[hf.Universe, Any, list[Any]], name: str, seed: int) -> None:
    universe, counts, keep = request
    mechanism = MECHANISMS[name]
    try:
        facts = Facts.of(universe, keep)
        drawing = choose_samplers(mechanism.channel(facts))
    except hf.errors.NothingLeft:
        return
    with hf.NoiseKey.for_tests(seed) as key:
        made = bind(drawing, hf.Table(universe, counts), key, "any").draw()
    assert made.dtype == np.int64
    matrix = facts.kept.matrix().toarray().astype(object)
    assert (matrix @ made.astype(object) == matrix @ counts.astype(object)).all()
    fixed = facts.lattice.exposed_cells
    assert made[fixed].tolist() == counts[fixed].tolist()
    assert facts.lattice.contains(made - counts)


def test_released_counts_may_be_negative() -> None:
    assert min(released(MECHANISMS["laplace"], [], np.zeros(9, dtype=np.int64))) < 0


def test_progress_counts_cells_up_to_all_that_are_drawn() -> None:
    seen: list[tuple[str, int, int]] = []
    keep = [hf.subset("a", ["y"]), hf.subset("a = 'z' and b != 'p'")]
    hf.release(hf.Table(GRID, COUNTS), keep, MECHANISMS["laplace"], progress=lambda *told: seen.append(told), ledger=None)
    assert [told[1:] for told in seen if told[0] == "Drawing"] == [(0, 9), (2, 9), (5, 9), (9, 9), (9, 9)]


class Wrong:
    """A sampler that forgets the kept total: all its noise goes one way."""

    name, expected_tries = "wrong", 1.0

    def __init__(self, noise: list[int]) -> None:
        self.cells, self._noise = len(noise), noise

    def draw(self, n: int, words: object) -> Any:
        return np.array([self._noise], dtype=np.int64)


class TestTheLastCheck:
    """A fault in a sampler stops the release; no law of ours can reach this, so the sampler is put there by hand."""

    KEPT: ClassVar[dict[str, Any]] = {
        "total": hf.total(),
        "subset": hf.subset("a", ["a0", "a1"]),
        "linear": hf.linear([[2, -3, 1]]),
        "identity": hf.identity(hf.total(), 18),
    }

    def bound(self, constraint: Any, noise: list[int]) -> BoundRelease:
        universe = hf.Universe.product({"a": ["a0", "a1", "a2"]})
        drawing = a_drawing(hf.GeneralizedGaussian(rho=1, per="distance"), [constraint], universe)
        made = bind(drawing, hf.Table(universe, np.array([5, 6, 7])), hf.NoiseKey.for_tests("last"), "any")
        task = replace(made.tasks[0], cells=np.arange(3)[None, :])
        wrong = Choice(Wrong(noise), Reason.OTHER)
        return replace(made, tasks=(task,), drawing=replace(drawing, choices=dict.fromkeys(drawing.choices, wrong)))

    @pytest.mark.parametrize("kept", KEPT)
    def test_a_total_that_is_off_by_one_is_refused(self, kept: str) -> None:
        with pytest.raises(hf.errors.InvariantBroken, match=r"did not come out exactly\. Nothing was written") as caught:
            self.bound(self.KEPT[kept], [1, 0, 0]).draw()
        assert not {"5", "6", "7", "18", "19"} & set(str(caught.value).split())

    def test_noise_that_keeps_the_total_passes(self) -> None:
        assert self.bound(hf.total(), [1, 0, -1]).draw().tolist() == [6, 6, 6]

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_count_that_leaves_62_bits_is_refused(self, sign: int) -> None:
        with pytest.raises(hf.errors.RequestTooLarge, match="less noise"):
            self.bound(hf.total(), [sign * 2**62, -sign * 2**62, 0]).draw()
