"""A publication view: released counts made non-negative, or multiples of a base, with every kept total exact and all sums additive.

A function of the published files alone, so it costs no budget. Cells whose kept totals do not cross are found from the top down
(views/tree.py): kept totals first, then the levels of the table in the order of its columns, then cells; the others block by block
(views/crossing.py). What it does to small counts on average is simulated from the public law ([theory T152]).
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from holdfast.card.parts import Bias, BiasInfo, ViewInfo
from holdfast.display import shorten
from holdfast.errors import HoldfastError, InvalidParameter, InvariantBroken, RequestTooLarge
from holdfast.invariants.rows import Kept
from holdfast.laws import Reads
from holdfast.publication.given_files import CARD, TABLES
from holdfast.publication.plan import Plan
from holdfast.randomness import NoiseKey
from holdfast.tables import Universe
from holdfast.tables.columns import free_name
from holdfast.tables.formats import save_frame, table_format
from holdfast.tables.frames import Frames
from holdfast.views.crossing import check_size, crossing_block, no_table
from holdfast.views.tree import TopDown, nearest_multiple, refine_groups
from holdfast.wording.view import SIZES, bias_sentence, not_in_folder, size_name, totals_no_multiples, view_lines, view_sentence

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

Ints = NDArray[np.int64]

BASES = (1, 3, 5, 10)
VIEW, VIEW_FILE = "view", "view.json"
"""In an output folder: the tables have this name before their ending, and this file says what they are."""
NO_VIEW = f"{VIEW_FILE} does not belong to a publication view of this release"
_SOLVER = re.compile(r"scipy [0-9A-Za-z.+]{1,40}")
LARGEST = 2**60
NAMED_TOTALS = 3
"""Totals that a refusal names."""
MOST_DRAWS, LEAST_DRAWS = 1_000, 10
"""Simulated releases behind a table of biases."""
DRAWN_CELLS, SOLVED_CELLS = 4_000_000, 10_000
"""Cells drawn for it, in all; and those that the solver looks at, of which 10,000 take a second."""
BLOCK_CELLS = 50
"""A block costs the solver as much as so many cells, if it has fewer."""


class ViewMaker:
    """Makes views of tables with the kept totals of one plan."""

    def __init__(self, plan: Plan) -> None:
        facts = plan.facts
        self.kept: Kept = facts.kept
        self.levels = tuple(level_partitions(facts.universe))
        self._moves = moves = facts.moves
        root = np.full(len(facts.universe), -1, dtype=np.int64)
        self._crossing: list[tuple[Ints, Any]] = []
        self._searched = 0
        """Cells of the largest block for which corners of a linear program need not be whole."""
        self._has_free = any(shape.is_free for _, shape, _ in moves.blocks.used_shapes())
        # All free cells together are the first root: no total of theirs is kept.
        count = int(self._has_free)
        for number, shape, blocks in moves.blocks.used_shapes():
            cells = moves.blocks.cells_of(number)
            if shape.is_free:
                root[cells] = 0
            elif shape.is_plain_sum:
                root[cells] = count + np.arange(blocks)[:, None]
                count += blocks
            elif not shape.is_pinned:
                by_cell = moves.matrix.tocsc()
                self._crossing += [(block, _rows_over(by_cell, block)) for block in cells]
                if not shape.is_network:
                    self._searched = max(self._searched, shape.size)
        self._cells = np.flatnonzero(root >= 0)
        self._tree = TopDown(root[self._cells], [unit[self._cells] for _, unit in self.levels]) if count else None

    @property
    def has_multiples(self) -> bool:
        """Whether totals that are multiples of a base have a table of such multiples, whatever they are: each cell is a difference of
        totals, or lies under a sum that is one.
        """
        shapes = [shape for _, shape, _ in self._moves.blocks.used_shapes()]
        return not self._crossing and not self.kept.linear and all(shape.size == 1 for shape in shapes if shape.is_pinned)

    @property
    def solver(self) -> str | None:
        """The solver that finds cells whose kept totals cross: another one may find other views. None where there are no such cells."""
        return solver_here() if self._crossing else None

    @property
    def searches(self) -> bool:
        """Whether counts of zero or more may have to be searched for: under rows and columns a linear program always finds them."""
        return self._searched > 0

    def check_sizes(self) -> None:
        """Refuse blocks that the solver does not take."""
        check_size(max((len(cells) for cells, _ in self._crossing), default=0), self._searched)

    @property
    def solved_cells(self) -> int:
        """What one view costs the solver, in cells: those whose kept totals cross."""
        return sum(max(len(cells), BLOCK_CELLS) for cells, _ in self._crossing)

    def make_view(self, counts: Ints, base: int, *, nonnegative: bool) -> Ints:
        """The view of published counts; InvariantBroken where it is not what it says, which would be a fault of ours."""
        out = counts.copy()
        if base > 1 or (nonnegative and any((counts[cells] < 0).any() for cells, _ in self._crossing)):
            self.check_sizes()
        if self._tree is not None:
            own = counts[self._cells]
            roots = self._tree.sums(own)[0].copy()
            if self._has_free:
                roots[0] = nearest_multiple(int(roots[0]), base, nonnegative=nonnegative)
            if (roots % base).any() or (nonnegative and (roots < 0).any()):
                raise no_table(base)
            out[self._cells] = self._tree.make_cells(own, roots, base, nonnegative=nonnegative)
        for cells, rows in self._crossing:
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


def _rows_over(by_cell: Any, cells: Ints) -> Any:
    """The kept rows, of a sparse matrix, as far as they go over the cells of a block."""
    rows = by_cell[:, cells].tocsr()
    return rows[np.flatnonzero(np.diff(rows.indptr))]


def level_partitions(universe: Universe) -> Iterator[tuple[str, Ints]]:
    """(name, unit of each cell) of the levels of a table in the order of its columns, the levels of a column's hierarchy before it; each
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
                yield ", ".join((*universe.columns[:place], name)), finer
            own = finer


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
        return tuple(name for name, _ in self._maker.levels)

    @property
    def level_labels(self) -> tuple[str, ...] | None:
        """What the levels are called; None where the table has no labels."""
        universe = self.released.universe
        if not universe.labels.columns:
            return None
        called: dict[str, str] = {}
        for place, column in enumerate(universe.columns):
            tree, above = universe.hierarchies.get(column), universe.columns[:place]
            names = {name: name for name in (() if tree is None else tree.levels)} | {column: universe.labels.column(column)}
            called |= {", ".join((*above, name)): ", ".join((*map(universe.labels.column, above), label)) for name, label in names.items()}
        return tuple(called[name] for name in self.levels)

    @cached_property
    def draws(self) -> int:
        """Simulated releases behind `bias`; 0 where there is none."""
        if not self._has_law:
            return 0
        solved = self._maker.solved_cells
        room = min(DRAWN_CELLS / max(len(self.counts), self._plan.drawing.cell_draws), SOLVED_CELLS / max(solved, 1))
        return 0 if solved > SOLVED_CELLS else int(min(MOST_DRAWS, max(LEAST_DRAWS, room)))

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
        return tuple(_bias(*of_class, column) for of_class, column in zip(sizes, sums.T.tolist(), strict=True))

    @cached_property
    def info(self) -> ViewInfo:
        """What goes into the file beside the table: what it is, what it was made of, its biases."""
        return ViewInfo(
            what="publication view",
            text=view_sentence(self.base, self.nonnegative, self.private),
            release=self.release_id,
            test_key=not self.private,
            identity=self._plan.drawing.channel.identity,
            released_counts_sha256=hashlib.sha256(self.released.counts.astype("<i8").tobytes()).hexdigest(),
            column=self.column,
            base=self.base,
            nonnegative=self.nonnegative,
            levels=self.levels,
            level_labels=self.level_labels,
            solver=self._maker.solver,
            cells=len(self.counts),
            changed=int(np.count_nonzero(self.counts != self.released.counts)),
            bias=BiasInfo(text=bias_sentence(self.draws, self._has_law), draws=self.draws, lines=self.bias),
        )

    def file_problems(self, said: ViewInfo, *, same_text: bool, same_software: bool) -> Iterator[str]:
        """What the file beside a table says otherwise than this view. Another version may word it otherwise; where kept totals cross,
        another solver may find another view, with other biases: then these must have the right form.
        """
        made, same_view = self.info, self._is_from_here(said, same_software)
        if not same_text:
            said = said.model_copy(update={"text": made.text, "bias": said.bias.model_copy(update={"text": made.bias.text})})
        for name in sorted(ViewInfo.model_fields):
            if getattr(said, name) != getattr(made, name) and (same_view or not _may_be(name, said, made)):
                yield _does_not_follow(name)

    def _is_from_here(self, said: ViewInfo, same_software: bool) -> bool:
        """Whether the view that a file is about was found as this one was."""
        return not self._maker.solved_cells or (same_software and said.solver == self._maker.solver)

    def holds_in(self, frame: Any, said: ViewInfo, *, same_software: bool) -> bool:
        """Whether a pyarrow.Table is this view; where kept totals cross and other software made it, whether it could be."""
        import pyarrow as pa

        mine = self.frame
        if frame.column_names != mine.column_names or frame.num_rows != len(self):
            return False
        counts = frame.column(self.column).cast(pa.int64()).to_numpy()
        pairs = list(zip(frame.columns, mine.columns, strict=True))[:-1]
        codes = all(here.cast(pa.string()).equals(there.cast(pa.string())) for here, there in pairs)
        if self._is_from_here(said, same_software):
            return codes and np.array_equal(counts, self.counts)
        changed = int(np.count_nonzero(counts != self.released.counts))
        return (
            codes and said.changed == changed and self._maker.is_view(self.released.counts, counts, self.base, nonnegative=self.nonnegative)
        )

    def frame_with(self, frame: Any) -> Any:
        """This view with the counts of another table that `holds_in` found to be one."""
        mine = self.frame
        last = mine.num_columns - 1
        return mine.set_column(last, self.column, frame.column(self.column).cast(mine.column(last).type))

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
    counts = maker.make_view(released.counts, base, nonnegative=nonnegative)
    layout = plan.drawing.channel.layout
    if layout is not None and not layout.holds(counts):
        raise InvalidParameter(
            "The view would leave the bounds of the mechanism, within which the released counts are. Take the released counts as they are."
        )
    counts.setflags(write=False)
    return PublicationView(release_id, private, released, counts, base, nonnegative, plan, maker)


def solver_here() -> str:
    return f"scipy {version('scipy')}"


def is_solver(said: object) -> bool:
    """Whether a file names a solver, and says no more: then kept totals cross."""
    return isinstance(said, str) and _SOLVER.fullmatch(said) is not None


def _bias(level: str, size: str, units: int, sums: list[int]) -> Bias:
    """From the sums over the class in each simulated release: in whole numbers up to the last step, so that they are the same on every
    machine.
    """
    draws, total = len(sums), sum(sums)
    variance = Fraction(draws * sum(one * one for one in sums) - total * total, draws * (draws - 1))
    error = math.sqrt(variance / draws) / units
    mean, error = (float(f"{value:.6g}") for value in (total / (draws * units), error))
    return Bias(level=level, size=size, units=units, bias=mean, standard_error=error)


def _may_be(name: str, said: ViewInfo, made: ViewInfo) -> bool:
    """Whether a field could be that of a view that another solver found. How many cells changed is compared with the table itself."""
    return name == "changed" or (name == "solver" and is_solver(said.solver)) or (name == "bias" and _alike(said.bias, made.bias))


def _alike(said: BiasInfo, made: BiasInfo) -> bool:
    """Whether biases have the form of those of another view of the same table: as many draws, and at every level as many units."""
    units, expected = Counter[str](), Counter[str]()
    for counter, info in ((units, said), (expected, made)):
        for line in info.lines:
            counter[line.level] += line.units
    sizes = set(map(size_name, SIZES))
    return (said.text, said.draws, units) == (made.text, made.draws, expected) and all(line.size in sizes for line in said.lines)


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
    """Refuse a view in the output folder that might fail once the noise is drawn. The kept totals of the plan are known."""
    check_view(plan, base)
    assert plan.facts.published_totals is not None
    check_totals(plan.facts.kept, list(plan.facts.published_totals), base)
    reads, maker = plan.drawing.channel.target.reads, ViewMaker(plan)
    if reads is not Reads.NOTHING or maker.searches or (base > 1 and not maker.has_multiples):
        raise InvalidParameter(not_in_folder(base, bounded=reads is not Reads.NOTHING), field="view_base")
    maker.check_sizes()


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
) -> tuple[list[tuple[str, str, int]], Ints]:
    """(level, size, units) of every size class of a true table that has units, and for each of so many simulated releases the sum, over
    the units of the class, of the view less the truth.
    """
    classes = list(_classes(maker, truth))
    out = np.empty((draws, len(classes)), dtype=np.int64)
    with NoiseKey.for_tests("bias of a view") as key:
        done = 0
        while done < draws:
            number = int(min(draws - done, max(1, DRAWN_CELLS // len(truth))))
            for noise in plan.law.sample(number, key, label=f"view {done}"):
                error = maker.make_view(truth + noise, base, nonnegative=nonnegative) - truth
                out[done] = [error[cells].sum() for _, _, _, cells in classes]
                done += 1
    return [(level, size, units) for level, size, units, _ in classes], out


def _classes(maker: ViewMaker, truth: Ints) -> Iterator[tuple[str, str, int, Ints]]:
    """(level, size, units, their cells) of every level and size that has units."""
    for level, unit in (*maker.levels, ("cell", np.arange(len(truth)))):
        sums = np.zeros(int(unit.max()) + 1, dtype=np.int64)
        np.add.at(sums, unit, truth)
        for low, high in SIZES:
            inside = (sums >= low) & (True if high is None else sums <= high)
            if inside.any():
                yield level, size_name((low, high)), int(inside.sum()), np.flatnonzero(inside[unit])
