"""A publication view: released counts made non-negative, or multiples of a base, with every kept total exact and all sums additive.

A function of the published files alone, so it costs no budget. Cells whose kept totals do not cross are found from the top down
(views/tree.py): kept totals first, then the levels of the table in the order of its columns, then cells. Where two nested families of
totals cross, cells are found together (views/network.py); elsewhere they are searched for (views/crossing.py). What it does to small counts
on average is simulated from the public law ([theory T152]).
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from holdfast.card.parts import Bias, BiasInfo, ViewInfo
from holdfast.display import shorten, step
from holdfast.errors import HoldfastError, InvalidParameter, InvariantBroken, RequestTooLarge
from holdfast.invariants.rows import Kept, RowFamily
from holdfast.lattices import Lattice
from holdfast.laws import Reads
from holdfast.publication.given_files import CARD, TABLES
from holdfast.publication.plan import Plan
from holdfast.randomness import NoiseKey
from holdfast.tables import Universe
from holdfast.tables.columns import free_name
from holdfast.tables.formats import save_frame, table_format
from holdfast.tables.frames import Frames
from holdfast.views.crossing import check_searched, crossing_block, no_table
from holdfast.views.network import Network, Tell, check_network, two_families
from holdfast.views.tree import TopDown, nearest_multiple, refine_groups
from holdfast.wording.view import (
    SIZES,
    bias_sentence,
    moved_sentences,
    not_in_folder,
    size_name,
    totals_no_multiples,
    view_lines,
    view_sentence,
)

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

Ints = NDArray[np.int64]
Names = tuple[str, ...]
"""Columns and levels that cells are added up by."""

BASES = (1, 3, 5, 10)
VIEW, VIEW_FILE = "view", "view.json"
"""In an output folder: the tables have this name before their ending, and this file says what they are."""
NO_VIEW = f"{VIEW_FILE} does not belong to a publication view of this release"
LARGEST = 2**60
NAMED_TOTALS = 3
"""Totals that a refusal names."""
MOST_DRAWS, LEAST_DRAWS = 1_000, 10
"""Simulated releases behind a table of biases."""
SOLVED_A_SECOND = 100_000
"""Cells of a network that are solved in a second."""
DRAWN_CELLS, SOLVED_CELLS = 4_000_000, 20 * SOLVED_A_SECOND
"""Cells drawn for it, in all; and those of networks that are solved."""
SEARCH_COST, BLOCK_CELLS = 200, 50
"""A cell that is searched for takes as long as so many of a network; a block as long as so many cells, if it has fewer."""


class ViewMaker:
    """Makes views of tables with the kept totals of one plan."""

    def __init__(self, plan: Plan) -> None:
        facts = plan.facts
        self.kept: Kept = facts.kept
        self.levels = tuple(level_partitions(facts.universe))
        margins = {names: unit for names, unit in margin_partitions(self.kept) if unit.max() < len(unit) - 1}
        self.groups: dict[Names, Ints] = margins | dict(self.levels)
        """Cells that biases are given for together: by kept margins, where these cross, and by levels."""
        self._moves = moves = facts.moves
        root = np.full(len(facts.universe), -1, dtype=np.int64)
        self._has_free = any(shape.is_free for _, shape, _ in moves.blocks.used_shapes())
        # All free cells together are the first root: no total of theirs is kept.
        count = int(self._has_free)
        crossing: list[Ints] = []
        for number, shape, blocks in moves.blocks.used_shapes():
            cells = moves.blocks.cells_of(number)
            if shape.is_free:
                root[cells] = 0
            elif shape.is_plain_sum:
                root[cells] = count + np.arange(blocks)[:, None]
                count += blocks
            elif not shape.is_pinned:
                crossing += list(cells)
        self._cells = np.flatnonzero(root >= 0)
        self._tree = TopDown(root[self._cells], [unit[self._cells] for _, unit in self.levels]) if count else None
        self.searched: list[tuple[Ints, Any]] = []
        """Cells of blocks for which whole numbers may have to be searched for, and their kept rows."""
        self.arcs: Ints = np.zeros(0, dtype=np.int64)
        """Cells under two nested families of totals, which are found together."""
        self._network: Network | None = None
        if crossing:
            self._divide(crossing)

    def _divide(self, crossing: list[Ints]) -> None:
        """Tell blocks that are networks from others."""
        cells, lengths = np.concatenate(crossing), [len(block) for block in crossing]
        block_of = np.repeat(np.arange(len(crossing)), lengths)
        ends, odd = _families_over(self._moves, cells, block_of)
        is_arc = ~odd[block_of]
        self.arcs = cells[is_arc]
        self._network = Network(ends[0][is_arc], ends[1][is_arc]) if len(self.arcs) else None
        by_cell = self._moves.matrix.tocsc() if odd.any() else None
        self.searched = [(crossing[block], _rows_over(by_cell, crossing[block])) for block in np.flatnonzero(odd)]

    @property
    def has_multiples(self) -> bool:
        """Whether totals that are multiples of a base have a table of such multiples, whatever they are: all of them are a network."""
        cells = np.arange(len(self.kept.universe))
        return not _families_over(self._moves, cells, np.zeros(len(cells), dtype=np.int64))[1].any()

    @property
    def solver(self) -> str | None:
        """The solver that searches for cells: another one may find other views. None where nothing is searched for."""
        return solver_here() if self.searched else None

    def check_sizes(self) -> None:
        """Refuse blocks of which no view is made."""
        check_network(len(self.arcs))
        check_searched(max((len(cells) for cells, _ in self.searched), default=0))

    @property
    def solved_cells(self) -> int:
        """What one view takes beside the tree, in cells of a network."""
        return len(self.arcs) + SEARCH_COST * sum(max(len(cells), BLOCK_CELLS) for cells, _ in self.searched)

    def make_view(self, counts: Ints, base: int, *, nonnegative: bool, tell: Tell | None = None) -> Ints:
        """The view of published counts; InvariantBroken where it is not what it says, which would be a fault of ours. `tell` is called with
        (cells done, cells in all).
        """
        out = counts.copy()
        crossing = (self.arcs, *(cells for cells, _ in self.searched))
        if base > 1 or (nonnegative and any((counts[cells] < 0).any() for cells in crossing)):
            self.check_sizes()
        if self._tree is not None:
            own = counts[self._cells]
            roots = self._tree.sums(own)[0].copy()
            if self._has_free:
                roots[0] = nearest_multiple(int(roots[0]), base, nonnegative=nonnegative)
            if (roots % base).any() or (nonnegative and (roots < 0).any()):
                raise no_table(base)
            out[self._cells] = self._tree.make_cells(own, roots, base, nonnegative=nonnegative)
        if self._network is not None:
            out[self.arcs] = self._network.nearest_table(counts[self.arcs], base, nonnegative=nonnegative, tell=tell)
        for cells, rows in self.searched:
            out[cells] = crossing_block(rows, counts[cells], base, nonnegative=nonnegative)
        if (out % base).any():
            raise no_table(base)  # a cell that the totals fix is no multiple
        if not self.is_view(counts, out, base, nonnegative=nonnegative):
            raise InvariantBroken(
                "The publication view does not keep the totals, or is not the requested one. This is a fault in Holdfast."
            )
        return out

    def is_view(self, counts: Ints, view: Ints, base: int, *, nonnegative: bool) -> bool:
        """Whether a table has the totals of the counts, and is of multiples, and not negative where that was asked for."""
        same = all(np.array_equal(rows.totals(view), rows.totals(counts)) for rows in self.kept.rows)
        return same and not (view % base).any() and not (nonnegative and bool((view < 0).any()))


def _families_over(moves: Lattice, cells: Ints, block_of: Ints) -> tuple[tuple[Ints, Ints], NDArray[np.bool_]]:
    """(for each cell its smallest set in each of two nested families, -1 for none; for each block whether there are no two such families).

    Sets are the kept sums, each as far as it goes over one block; of other rows than sums there are no families.
    """
    from scipy.sparse import csr_array

    assert moves.kept is not None
    entries = moves.matrix.tocsc()[:, cells].tocoo()
    blocks = int(block_of.max()) + 1
    stated = np.concatenate([np.zeros(0, dtype=np.int64), *_numbers_of(moves.kept)])
    keys, number = np.unique(entries.row * blocks + block_of[entries.col], return_inverse=True)
    sets = csr_array((np.ones(len(number), dtype=np.int64), (number, entries.col)), shape=(len(keys), len(cells)))
    found = two_families(sets, stated[keys // blocks])
    odd = np.zeros(blocks, dtype=np.bool_)
    odd[keys[found.odd] % blocks] = True
    odd[block_of[entries.col[entries.data != 1]]] = True
    return found.smallest, odd


def _numbers_of(kept: Kept) -> Iterator[Ints]:
    """For every row a number, equal for those of one family, whose sets are disjoint."""
    count = 0
    for rows in kept.rows:
        own = np.zeros(rows.count, dtype=np.int64) if isinstance(rows, RowFamily) else np.arange(rows.count)
        yield count + own
        count += int(own.max(initial=-1)) + 1


def _rows_over(by_cell: Any, cells: Ints) -> Any:
    """The kept rows, of a sparse matrix, as far as they go over the cells of a block."""
    rows = by_cell[:, cells].tocsr()
    return rows[np.flatnonzero(np.diff(rows.indptr))]


def level_partitions(universe: Universe) -> Iterator[tuple[Names, Ints]]:
    """(names, unit of each cell) of the levels of a table in the order of its columns, the levels of a column's hierarchy before it; each
    splits the one before. Cells themselves are left out.
    """
    own = np.zeros(len(universe), dtype=np.int64)
    for place, column in enumerate(universe.columns):
        tree, codes = universe.hierarchies.get(column), universe.code_indices(column)
        units: list[tuple[str, Ints]] = []
        for name in () if tree is None else tree.levels:
            assert tree is not None
            home = {leaf: number for number, node in enumerate(tree.level(name)) for leaf in tree.leaves(node)}
            alone = len(home)  # a code under no unit of the level is one of its own
            found = np.array([home.get(code, alone + k) for k, code in enumerate(universe.codes[column])], dtype=np.int64)
            units.append((name, found[codes]))
        for name, unit in (*units, (column, codes.astype(np.int64))):
            finer = refine_groups(own, unit)
            if own.max() < finer.max() < len(universe) - 1:
                yield (*universe.columns[:place], name), finer
            own = finer


def margin_partitions(kept: Kept) -> Iterator[tuple[Names, Ints]]:
    """(names, unit of each cell) of every kept margin, which has no bias, and of the cells where two of them cross, which has most."""
    universe = kept.universe
    place: dict[str, tuple[int, int]] = {}
    for number, column in enumerate(universe.columns):
        tree = universe.hierarchies.get(column)
        place |= {name: (number, depth) for depth, name in enumerate((*(() if tree is None else tree.levels), column))}
    margins = [
        ((*rows.levels, *rows.columns), rows.group) for rows in kept.families if rows.form == "margin" and not (rows.group < 0).any()
    ]
    crossed = [((*one, *other), refine_groups(own, unit)) for (one, own), (other, unit) in combinations(margins, 2)]
    for names, unit in (*margins, *crossed):
        finest = {place[name][0]: name for name in sorted(names, key=place.__getitem__)}  # of the levels of a column the finest says it all
        if finest:
            yield tuple(finest.values()), unit


@dataclass(frozen=True, eq=False, repr=False)
class PublicationView(Frames):
    """Counts for print, made from a publication: biased, additive, kept totals exact. Never to be taken for the released counts.

    Guarantees:  whole numbers; multiples of `base`; zero or more where `nonnegative`; every kept total and identity as in the release,
                 as integers. A function of the published files.
    """

    release_id: str
    private: bool
    """False where the release was drawn with a test key: anyone can then recompute the noise."""
    released: PublishedTable
    counts: Ints
    """One number for each cell, in the order of the released table."""
    base: int
    nonnegative: bool
    _plan: Plan
    _maker: ViewMaker

    @property
    def column(self) -> str:
        """The name of its column of numbers: another one than that of the released counts."""
        name, taken = self.released.count_name, (*self.released.universe.columns, self.released.count_name)
        return free_name(f"{name}_view" if self.base == 1 else f"{name}_view_base_{self.base}", taken, name)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the table, coarse to fine. Their sums were fitted one after the other where kept totals do not cross."""
        return tuple(", ".join(names) for names, _ in self._maker.levels)

    @cached_property
    def draws(self) -> int:
        """Simulated releases behind `bias`; 0 where there is none."""
        if not self._has_law:
            return 0
        solved = self._maker.solved_cells
        room = min(DRAWN_CELLS / max(len(self.counts), self._plan.drawing.cell_draws), SOLVED_CELLS / max(solved, 1))
        return 0 if LEAST_DRAWS * solved > SOLVED_CELLS else int(min(MOST_DRAWS, max(LEAST_DRAWS, room)))

    @property
    def _has_law(self) -> bool:
        """Whether other releases can be drawn from a law that sees no data."""
        drawing = self._plan.drawing
        return drawing.channel.target.reads is Reads.NOTHING and drawing.is_exact

    @cached_property
    def bias(self) -> tuple[Bias, ...]:
        """What the view does on average, by level and size of the true sum: simulated from the public law, with this view (to the base of
        1) in the place of the true table. Empty where no law can be simulated.
        """
        if not self.draws:
            return ()
        truth = self._maker.make_view(self.released.counts, 1, nonnegative=True)
        sizes, sums = class_errors(self._plan, self._maker, truth, self.draws, self.base, nonnegative=self.nonnegative)
        labels = self.released.universe.labels
        return tuple(
            _bias(", ".join(names), ", ".join(map(labels.column, names)), size, units, column)
            for (names, size, units), column in zip(sizes, sums.T.tolist(), strict=True)
        )

    @property
    def level_changes(self) -> tuple[tuple[str, int], ...]:
        """(level, by how much a total of it differs at most from the released one) of the levels where any does."""
        change, labels = self.counts - self.released.counts, self.released.universe.labels
        most = ((names, int(np.abs(_sums(unit, change)).max())) for names, unit in self._maker.levels)
        return tuple((", ".join(map(labels.column, names)), largest) for names, largest in most if largest)

    @property
    def _sentence(self) -> str:
        kept, promised = bool(self._plan.facts.kept.rows), self._plan.guarantee.keyed is None
        return view_sentence(self.base, self.nonnegative, self.private, kept=kept, promised=promised)

    @cached_property
    def info(self) -> ViewInfo:
        """What goes into the file beside the table: what it is, what it was made of, its biases."""
        return ViewInfo(
            what="publication view",
            text=" ".join((self._sentence, *moved_sentences(self.level_changes))),
            release=self.release_id,
            test_key=not self.private,
            identity=self._plan.drawing.channel.identity,
            released_counts_sha256=hashlib.sha256(self.released.counts.astype("<i8").tobytes()).hexdigest(),
            column=self.column,
            base=self.base,
            nonnegative=self.nonnegative,
            levels=self.levels,
            solver=self._maker.solver,
            cells=len(self.counts),
            changed=int(np.count_nonzero(self.counts != self.released.counts)),
            bias=BiasInfo(text=bias_sentence(self.draws, self._has_law), draws=self.draws, lines=self.bias),
        )

    def file_problems(self, said: ViewInfo, *, same_text: bool) -> Iterator[str]:
        """What the file beside a table says otherwise than this view. Another version may word it otherwise."""
        made = self.info
        if not same_text:
            said = said.model_copy(update={"text": made.text, "bias": said.bias.model_copy(update={"text": made.bias.text})})
        for name in sorted(ViewInfo.model_fields):
            if getattr(said, name) != getattr(made, name):
                yield _does_not_follow(name)

    def holds_in(self, frame: Any) -> bool:
        """Whether a pyarrow.Table is this view."""
        import pyarrow as pa

        mine = self.frame
        if frame.column_names != mine.column_names or frame.num_rows != len(self):
            return False
        pairs = list(zip(frame.columns, mine.columns, strict=True))[:-1]
        codes = all(here.cast(pa.string()).equals(there.cast(pa.string())) for here, there in pairs)
        return codes and np.array_equal(frame.column(self.column).cast(pa.int64()).to_numpy(), self.counts)

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: codes, and the view under a name of its own."""
        import pyarrow as pa

        return self.released.universe.frame().append_column(self.column, pa.array(self.counts))

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the table to a .csv or .parquet file, and beside it, under the same name with .json, what it is. Existing files are
        refused.
        """
        target = Path(path)
        table_format(target)
        if any(os.path.lexists(target.parent / name) for name in (CARD, TABLES)):
            raise InvalidParameter(
                f"{target.name!r} would be written into a published folder, which has the files of its card only. Choose another place."
            )
        beside = target.with_suffix(".json")
        if os.path.lexists(beside):
            raise InvalidParameter(f"{beside.name!r} exists already and is not overwritten. Choose another name, or remove it first.")
        text = self.info.to_json()  # before anything is written
        with open(beside, "x", encoding="utf-8") as file:  # first: there is never a table that nothing explains
            file.write(text)
        try:
            save_frame(self.frame, target)
        except BaseException:
            beside.unlink()
            raise
        return target, beside

    def to_fields(self) -> dict[str, Any]:
        """What the file beside the table says, as plain values."""
        return self.info.to_dict()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.counts)

    def __str__(self) -> str:
        return "\n".join(view_lines(self.info))

    def __repr__(self) -> str:
        kind = "non-negative" if self.nonnegative else "signed"
        return f"PublicationView({len(self)} cells, {kind}, base {self.base}; biased, not the released counts)"


def make_view(
    plan: Plan, released: PublishedTable, release_id: str, private: bool, *, base: int = 1, nonnegative: bool = True
) -> PublicationView:
    """Make the view of a published table.

    Given:       counts of all cells, with or without a law that sees no data; a base of which every kept total is a multiple.
    """
    check_view(plan, base, nonnegative=nonnegative)
    if float(np.abs(released.counts.astype(np.float64)).sum()) > LARGEST:
        raise RequestTooLarge("Counts beyond 2^60 in all have no view: sums of rounded counts could leave 64-bit integers.")
    check_totals(plan.facts.kept, [rows.totals(released.counts) for rows in plan.facts.kept.rows], base)
    maker = ViewMaker(plan)
    with step("Making counts for print", len(released.counts)) as tell:
        counts = maker.make_view(released.counts, base, nonnegative=nonnegative, tell=tell)
    layout = plan.drawing.channel.layout
    if layout is not None and not layout.holds(counts):
        raise InvalidParameter(
            "The view would leave the bounds of the mechanism, within which the released counts are. Take the released counts as they are."
        )
    counts.setflags(write=False)
    return PublicationView(release_id, private, released, counts, base, nonnegative, plan, maker)


def solver_here() -> str:
    return f"scipy {version('scipy')}"


def _bias(level: str, label: str, size: str, units: int, sums: list[int]) -> Bias:
    """From the sums over the class in each simulated release: in whole numbers up to the last step, so that they are the same on every
    machine.
    """
    draws, total = len(sums), sum(sums)
    variance = Fraction(draws * sum(one * one for one in sums) - total * total, draws * (draws - 1))
    error = math.sqrt(variance / draws) / units
    mean, error = (float(f"{value:.6g}") for value in (total / (draws * units), error))
    return Bias(level=level, label=label, size=size, units=units, bias=mean, standard_error=error)


def _does_not_follow(name: str) -> str:
    return f"{VIEW_FILE}: {shorten(name)!r} does not follow from the table"


def form_problems(said: object) -> list[str]:
    """What keeps a value from being that of a view.json."""
    try:
        ViewInfo.model_validate(said)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        if any(not detail["loc"] or (detail["type"] == "missing" and len(detail["loc"]) == 1) for detail in found):
            return [NO_VIEW]
        return list(dict.fromkeys(_does_not_follow(str(detail["loc"][0])) for detail in found))
    return []


def made_again(said: ViewInfo, plan: Plan, released: PublishedTable, release_id: str, private: bool) -> PublicationView | None:
    """The view that a file says it is of; None where it says none that this release has."""
    try:
        return make_view(plan, released, release_id, private, base=said.base, nonnegative=said.nonnegative)
    except HoldfastError:
        return None


def check_view(plan: Plan, base: int, *, nonnegative: bool = True) -> None:
    """Refuse what there is no view of, whatever the totals are."""
    check_base(base)
    if not isinstance(nonnegative, bool):
        raise InvalidParameter(f"nonnegative is True or False. Got {nonnegative!r}.", field="nonnegative")
    if base == 1 and not nonnegative:
        raise InvalidParameter(
            "With nonnegative=False and base=1 there is nothing to change: take the released counts.", field="nonnegative"
        )
    plan.facts.measure.check_counts("These are real-valued answers, and a publication view is of counts.")
    if not plan.drawing.channel.target.publishes_cells:
        raise InvalidParameter("This release publishes no cells, only totals: they are exact, and there is nothing to make a view of.")


def check_base(base: int) -> None:
    if type(base) is not int or base not in BASES:  # 5.0 equals 5, and would be written as it is
        raise InvalidParameter(f"base is one of {', '.join(map(str, BASES))}. Got {base!r}.", field="base")


def check_folder_view(plan: Plan, base: int) -> None:
    """Refuse a view in the output folder that might fail once the noise is drawn; of kept totals what is known of them."""
    check_view(plan, base)
    if plan.facts.published_totals is not None:
        check_totals(plan.facts.kept, list(plan.facts.published_totals), base)
    reads, maker = plan.drawing.channel.target.reads, ViewMaker(plan)
    maker.check_sizes()
    if reads is not Reads.NOTHING or maker.searched or (base > 1 and not maker.has_multiples):
        raise InvalidParameter(not_in_folder(base, bounded=reads is not Reads.NOTHING), field="view_base")


def check_totals(kept: Kept, totals: list[Ints], base: int) -> None:
    """Refuse a base of which a kept total is no multiple, and say what can be done."""
    if all(not (values % base).any() for values in totals):
        return
    wrong = [
        (rows, int(row), int(values[row])) for rows, values in zip(kept.rows, totals, strict=True) for row in np.flatnonzero(values % base)
    ]
    named = [(rows.name(row, kept.universe.labels) or rows.constraint, total) for rows, row, total in wrong[:NAMED_TOTALS]]
    fitting = [other for other in BASES if not any((values % other).any() for values in totals)]
    raise InvalidParameter(totals_no_multiples(base, named, len(wrong), fitting), field="base")


def class_errors(
    plan: Plan, maker: ViewMaker, truth: Ints, draws: int, base: int, *, nonnegative: bool
) -> tuple[list[tuple[Names, str, int]], Ints]:
    """(names, size, units) of every size class of a true table that has units, and for each of so many simulated releases the sum, over
    the units of the class, of the view less the truth.
    """
    classes = list(_classes(maker, truth))
    out = np.empty((draws, len(classes)), dtype=np.int64)
    with NoiseKey.for_tests("bias of a view") as key, step("Simulating the bias", draws) as tell:
        done = 0
        while done < draws:
            number = int(min(draws - done, max(1, DRAWN_CELLS // len(truth))))
            for noise in plan.law.sample(number, key, label=f"view {done}"):
                error = maker.make_view(truth + noise, base, nonnegative=nonnegative) - truth
                out[done] = [error[cells].sum() for _, _, _, cells in classes]
                done += 1
                tell(done, draws)
    return [(names, size, units) for names, size, units, _ in classes], out


def _sums(unit: Ints, counts: Ints) -> Ints:
    """The sum of each unit."""
    sums = np.zeros(int(unit.max()) + 1, dtype=np.int64)
    np.add.at(sums, unit, counts)
    return sums


def _classes(maker: ViewMaker, truth: Ints) -> Iterator[tuple[Names, str, int, Ints]]:
    """(names, size, units, their cells) of every group of cells and size that has units."""
    for names, unit in (*maker.groups.items(), (("cell",), np.arange(len(truth)))):
        sums = _sums(unit, truth)
        for low, high in SIZES:
            inside = (sums >= low) & (True if high is None else sums <= high)
            if inside.any():
                yield names, size_name((low, high)), int(inside.sum()), np.flatnonzero(inside[unit])
