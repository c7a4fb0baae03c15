"""A publication: the table with noise, its card, and what readers do with them by the public law alone.

`hf.release` gives one that was drawn and is still to be saved, `hf.load` one that was read from its folder.

Its card is made once, from the plan, what its totals expose, and what the office says.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.interval_sets import Intervals, interval_of, intervals_of
from holdfast.accuracy.queries import LEVEL, Query
from holdfast.accuracy.simulated import Simulated, simulated_errors
from holdfast.card.card import (
    SCHEMA_VERSION,
    Card,
    DisjointInfo,
    GrantInfo,
    LabelInfo,
    PublicColumn,
    ReleaseInfo,
    Revision,
    TableInfo,
    TreeInfo,
)
from holdfast.card.parts import GridInfo
from holdfast.channels import Law
from holdfast.display import Watcher, html_table, shorten, step, watching
from holdfast.errors import IdenticalRelease, InvalidParameter
from holdfast.exposure import Exposure
from holdfast.exposure.joint import PublishedTotals
from holdfast.privacy import Guarantee
from holdfast.publication.booking import Booking
from holdfast.publication.folder import MOST_CSV_CELLS, Output, check_output, fill_folder
from holdfast.publication.listings import name_totals
from holdfast.publication.maps import check_folder_map, map_request
from holdfast.publication.order import Beside, KeptRow, Order
from holdfast.publication.plan import Plan, exposed_info
from holdfast.publication.plots import Plot
from holdfast.publication.rows import rows_html
from holdfast.publication.view import PublicationView, check_folder_view, make_view
from holdfast.tables import Universe
from holdfast.tables.columns import arrow_numbers, free_name
from holdfast.tables.formats import GROUP_ROWS, Formulas, formula_columns, save_pieces
from holdfast.tables.frames import Frames
from holdfast.tables.measure import COUNTS, Measure
from holdfast.wording.budget import key_warnings, limit_warnings, recorded_sentence
from holdfast.wording.catalogue import ENGLISH
from holdfast.wording.dispatch import describe
from holdfast.wording.formats import formulas_warning, no_csv_sentence

if TYPE_CHECKING:
    from holdfast.accuracy.error_laws import Ask
    from holdfast.accuracy.interval import Interval
    from holdfast.publication.tables import Publications
    from holdfast.randomness import NoiseKey

logger = logging.getLogger(__name__)

MAX_CHANGED = 100
"""Changed totals of a revision that are listed; all are counted."""


def release_info(order: Order, private: bool, booking: Booking) -> ReleaseInfo:
    """What a card says of a release that was just drawn, before it is signed and written."""
    return ReleaseInfo(
        id=order.release_id,
        tables=(),
        table_name=None,
        date=order.date,
        office=order.office,
        approver=order.approver,
        test_key=not private,
        ledger=booking.entry,
        grant=None if booking.grant is None else GrantInfo.model_validate(booking.grant.to_fields()),
        disjoint=None if order.disjoint is None else DisjointInfo.of(order.disjoint),
        ledger_text=recorded_sentence(booking.entry),
        signer=None,
        allow_exposed=order.allow_exposed,
        language=ENGLISH,
        formulas="as they are",
    )


def make_card(plan: Plan, exposure: Exposure, about: ReleaseInfo, revision: Revision | None, software: Mapping[str, str | int]) -> Card:
    """All fields of card.json but checksums and signature, of a plan whose totals expose so much: public facts, with what only the office
    can say. `verify` makes it again from a folder. Software versions are those when the release began.
    """
    info = plan.info
    limits = limit_warnings(plan.guarantee, about.ledger is not None, about.grant is not None or about.test_key)
    return Card(
        schema_version=SCHEMA_VERSION,
        release=about.model_copy(update={"ledger_text": recorded_sentence(about.ledger)}),
        warnings=(*key_warnings(about.test_key), *info.warnings, *limits),
        table=_table_info(plan, info.counted),
        kept=info.kept.model_copy(update={"revision": revision}),
        exposed=exposed_info(exposure, plan.guarantee),
        mechanism=info.mechanism,
        sampler=info.sampler,
        guarantee=info.guarantee,
        expected_error=info.expected_error,
        software=dict(software),
        files={},
        signature=None,
    )


def _table_info(plan: Plan, counted: str | None) -> TableInfo:
    facts, universe = plan.facts, plan.facts.universe
    return TableInfo(
        name=facts.name,
        columns=universe.columns,
        count=facts.count_name,
        cells=len(universe),
        universe=universe.support,
        universe_digest=f"sha256:{universe.digest()}",
        protect=facts.protect,
        max_records=facts.max_records,
        over=facts.over,
        counted=counted,
        public_columns=tuple(PublicColumn(name=name, values=facts.columns[name].tolist()) for name in plan.guarantee.exposed.columns),
        hierarchies=tuple(
            TreeInfo(column=column, levels=tree.levels, parents=tuple((code, tree.parent(code)) for code in tree.nodes))
            for column, tree in universe.hierarchies.items()
        ),
        labels=tuple(map(LabelInfo.of, universe.labels.columns)),
        grid=GridInfo.of(facts.measure),
    )


def compare_revision(earlier: str, before: Iterable[KeptRow], now: Iterable[KeptRow]) -> Revision:
    """Kept totals that differ from those of the release that this one revises: both are published, so the differences are exposed."""
    known = {(constraint, name): total for constraint, name, total in before}
    changed = [(n, known[s, n], t) for s, n, t in now if (s, n) in known and known[s, n] != t]
    totals = tuple(f"{n}: {old} before, {new} now" for n, old, new in changed[:MAX_CHANGED])
    return Revision(of=earlier, changed=len(changed), totals=totals)


SD_COLUMN = "standard_deviation"
EXPOSED_COLUMN = "exposed"


def value_columns(columns: Sequence[str], count_name: str) -> tuple[str, str, str]:
    """The columns of a published table after its codes: count, standard deviation, exposed."""
    taken = (*columns, count_name)
    deviation = free_name(SD_COLUMN, taken, count_name)
    return count_name, deviation, free_name(EXPOSED_COLUMN, (*taken, deviation), count_name)


class PublishedTable(Frames):
    """Released counts, one for each cell of the universe, in its order. Counts may be negative: cutting them off would bias every sum.

    Of real-valued answers `counts` are in steps of the grid that is the `measure`, and `values` what they stand for.
    """

    def __init__(
        self,
        universe: Universe,
        counts: NDArray[np.int64],
        count_name: str,
        deviations: NDArray[np.float64] | None,
        published: NDArray[np.bool_] | None,
        exposed: NDArray[np.int64],
        measure: Measure = COUNTS,
    ) -> None:
        self.universe = universe
        self.count_name = count_name
        self.measure = measure
        self._counts = counts
        self._counts.setflags(write=False)
        self._deviations = deviations
        self._published = published
        self._exposed = np.zeros(len(universe), dtype=np.bool_)
        self._exposed[exposed] = True
        self._exposed.setflags(write=False)

    @property
    def cells(self) -> list[str]:
        """The names of the columns of codes."""
        return list(self.universe.columns)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The released counts, read-only; of cells that are not published (suppression) the entry is 0."""
        return self._counts

    @property
    def values(self) -> NDArray[np.float64]:
        """The released numbers as doubles; answers are exact up to 2^53 steps of their grid, and `frame` has them as decimals."""
        return self.measure.floats(self._counts)

    @property
    def standard_deviations(self) -> NDArray[np.float64] | None:
        """Standard deviations of the noise in each count; None if they depend on the data, nan where not estimated."""
        return self._deviations

    @property
    def published(self) -> NDArray[np.bool_]:
        """Which cells have a published count: all of them, unless cells were suppressed."""
        return np.ones(len(self), dtype=np.bool_) if self._published is None else self._published

    @property
    def exposed(self) -> NDArray[np.bool_]:
        """Which cells' true counts follow from the published totals, so that anyone can compute them; exposed.csv says why."""
        return self._exposed

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: codes, released count, standard deviation, whether the true count is exposed."""
        return next(self.pieces(len(self)))

    def pieces(self, rows: int = GROUP_ROWS) -> Iterator[Any]:
        """The same in tables of so many rows that follow one another."""
        import pyarrow as pa

        given = [(self.universe.code_indices(column), self.universe.code_array(column)) for column in self.universe.columns]
        for low in range(0, len(self), rows):
            high = min(low + rows, len(self))
            own = ((indices[low:high].astype(np.int32, copy=False), codes) for indices, codes in given)
            columns = [pa.DictionaryArray.from_arrays(arrow_numbers(indices), codes) for indices, codes in own]
            yield pa.Table.from_arrays([*columns, *self.values_of(low, high)], names=self._column_names)

    @property
    def _column_names(self) -> list[str]:
        return [*self.universe.columns, *value_columns(self.universe.columns, self.count_name)]

    def values_of(self, low: int, high: int) -> tuple[Any, Any, Any]:
        """Released counts, standard deviations and marks of the cells from `low` to `high`, as Arrow columns."""
        import pyarrow as pa

        rows = slice(low, high)
        shown = None if self._published is None else self._published[rows]
        deviations = np.full(high - low, np.nan) if self._deviations is None else self._deviations[rows]
        known = ~np.isnan(deviations)
        valid = None if shown is None and known.all() else known & self.published[rows]
        column = arrow_numbers(deviations if known.all() else np.where(known, deviations, 0.0), valid)  # under a missing value is nothing
        bits = pa.py_buffer(np.packbits(self._exposed[rows], bitorder="little"))
        exposed = pa.Array.from_buffers(pa.bool_(), high - low, [None, bits])
        return self.measure.column(self._counts[rows], shown), column, exposed

    @property
    def deviation_name(self) -> str:
        """The name of the column of standard deviations."""
        return value_columns(self.universe.columns, self.count_name)[1]

    @property
    def exposed_name(self) -> str:
        """The name of the column that says which cells are exposed."""
        return value_columns(self.universe.columns, self.count_name)[2]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a .csv or .parquet file, whole or not at all; an existing file is refused."""
        save_pieces(self.pieces(), path)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.universe)

    def __repr__(self) -> str:
        return f"PublishedTable({len(self)} cells by {', '.join(self.universe.columns)})"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        return rows_html(self)


@dataclass(frozen=True, eq=False)
class Folder:
    """What was read of a published folder, and verified."""

    card: Card
    kept_rows: Sequence[KeptRow]
    digest: str
    """SHA-256 of its card."""
    exposed: bytes
    """The content of exposed.csv."""
    area_map: bytes | None
    """The map file, where there is one."""


@dataclass(frozen=True, eq=False, repr=False)
class Publication(Frames):
    """A published table and the plan that says its law; it is never changed. It holds no true count and no noise. All of it is public once
    it is saved, except the `source` of one that was drawn: the account it is charged to and the secret that seals its key.

    `table` exports Arrow, so that polars and DuckDB read it as it is; it has to_pandas(), to_polars() and to_arrow().
    """

    plan: Plan
    table: PublishedTable
    totals: tuple[NDArray[np.int64], ...]
    """The published totals, one array for each entry of the plan's kept rows."""
    exposure: Exposure
    """What the totals give away, by their structure, and by their values where a table with these totals is known."""
    about: ReleaseInfo
    """What only the office can say of it, and how it was recorded."""
    revision: Revision | None
    source: Booking | Folder
    """The account of a release that was drawn here; or the folder that it was read from."""

    @property
    def id(self) -> str:
        return self.about.id

    @property
    def private(self) -> bool:
        """False where a test key was used: anyone can then recompute the noise."""
        return not self.about.test_key

    @property
    def entry(self) -> str | None:
        """The entry of the ledger under which it was charged; None where no ledger was used."""
        return self.about.ledger

    @property
    def law(self) -> Law:
        return self.plan.law

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.guarantee

    @cached_property
    def kept_rows(self) -> Sequence[KeptRow]:
        """(constraint, name, total) of every kept total: they equal the true ones."""
        if isinstance(self.source, Folder):
            return self.source.kept_rows
        return name_totals(self.plan.facts.kept, self.totals)

    @property
    def as_earlier(self) -> Beside:
        """What a later release of the data set asks of this one, which was read from its folder."""
        if not isinstance(self.source, Folder):
            raise InvalidParameter(f"{self.id!r} was drawn here. Save it, and give it as hf.load reads it from its folder.")
        facts, values = self.plan.facts, tuple(total for _, _, total in self.kept_rows)
        totals = PublishedTotals(self.id, facts.universe, tuple(facts.constraints), values if facts.measure.nonnegative else None)
        return Beside(totals, self.source.digest, facts.measure.whole)

    @cached_property
    def card(self) -> Card:
        """The card: as it was read, or made once of the rest, then without checksums of files, which `save` adds."""
        if isinstance(self.source, Folder):
            return self.source.card
        return make_card(self.plan, self.exposure, self.about, self.revision, self.source.software)

    @property
    def booking(self) -> Booking:
        """The account of a release that is to be saved; IdenticalRelease for one that was read from a folder."""
        if isinstance(self.source, Folder):
            raise IdenticalRelease(f"{self.id!r} was read from a folder, so it is published already. Copy that folder instead.")
        return self.source

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: that of the published table."""
        return self.table.frame

    @property
    def plot(self) -> Plot:
        """Figures of the published table and its noise, as SVG: `plot.error_by_level()` and the like."""
        area_map = self.source.area_map if isinstance(self.source, Folder) else None
        return Plot(self.plan, self.table, self.about.language, area_map)

    def interval(
        self,
        query: Query,
        level: float = LEVEL,
        *,
        minus: Query | None = None,
        over: Query | None = None,
        percent_of: Query | None = None,
        nonnegative: bool = False,
        method: Ask = "auto",
    ) -> Interval:
        """Where a true number lies, with probability `level` (0.95) or more over the noise: from the public law, whatever the true
        numbers are.

        Given:  query: a cell's number, codes such as {"state": "17"} for the sum of all cells with them, a condition such as "age >= 18",
                or whole numbers, one for each cell. `minus`, `over`, `percent_of`: another query, for a difference, a ratio, a percentage.
                `nonnegative` uses that counts are not below 0. method="proved" takes no draws; "simulated" takes draws where more is known.
                Noise that sees no data, drawn exactly; sums that the kept totals give are exact under every mechanism.
        """
        return interval_of(
            self.plan.drawing,
            self.table.counts,
            query,
            level,
            minus=minus,
            over=over,
            percent_of=percent_of,
            nonnegative=nonnegative,
            method=method,
        )

    def intervals(
        self,
        queries: Query | Sequence[Query] | None = None,
        level: float = LEVEL,
        *,
        by: str | Sequence[str] | None = None,
        simultaneous: bool = True,
        nonnegative: bool = False,
        method: Ask = "auto",
        progress: Watcher | None = None,
    ) -> Intervals:
        """As `interval`, for a query or a list of them, or for all sums of a margin by columns or levels of hierarchies (`by`), over the
        cells that meet a condition if one is given too. With simultaneous=True all of them hold together with probability `level`, else
        each does for itself. `progress` is called with (name of a step, done, in all).
        """
        asked = {"by": by, "simultaneous": simultaneous, "nonnegative": nonnegative}
        with watching(progress):
            return intervals_of(self.plan.drawing, self.table.counts, queries, level, method=method, **asked)  # type: ignore[arg-type]

    def simulate(self, n: int, *, key: NoiseKey | None = None) -> Simulated:
        """What n other releases of the same table would add to its true counts: draws of the public law, which sees no data.
        `holdfast.research.simulate` takes a prior, and then gives published counts.
        """
        return simulated_errors(self.plan.drawing, n, key)

    def view(self, *, nonnegative: bool = True, base: int = 1) -> PublicationView:
        """Counts for print: zero or more, multiples of `base` (1, 3, 5 or 10), additive at every level, every kept total exact. From
        published numbers alone, and biased: its `bias` says by how much.
        """
        return make_view(self.plan, self.table, self.id, self.private, base=base, nonnegative=nonnegative)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        formats: Iterable[str] | None = None,
        sign: str | os.PathLike[str] | None = None,
        force: bool = False,
        formulas: Formulas = "warn",
        view_base: int | None = None,
        map: str | os.PathLike[str] | None = None,
        map_code: str | None = None,
        map_level: str | None = None,
    ) -> Path:
        """Write the output folder, whole or not at all; an existing one is refused. `formats` are "parquet" and "csv"; where none are
        named both, and above 10,000,000 cells Parquet alone. `sign` is an Ed25519 private key in PEM. Codes that a
        spreadsheet would run are written as they are, with a warning, or with formulas="mark" after an apostrophe. `view_base` adds a
        publication view to this base, in files of their own. `map`: a GeoJSON file whose property `map_code` holds the codes of a level,
        for the report. What was read from a folder is published already, and refused.
        """
        booking = self.booking
        asked = (map, map_code, map_level)
        areas = None if all(part is None for part in asked) else map_request(*asked)
        output = Output(
            Path(folder),
            (formats,) if isinstance(formats, str) else None if formats is None else tuple(formats),
            None if sign is None else Path(sign),
            force,
            formulas,
            view_base,
            areas,
        )
        booking.check_unpublished()
        check_writable(output, self.plan, self.id)
        complete(booking, output, self)
        return output.folder

    def fill(self, temporary: Path, output: Output) -> None:
        """Write all files into an empty folder."""
        fill_folder(self, temporary, output)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies, which hold what is public. One charged to a ledger is refused."""
        if isinstance(self.source, Booking):
            self.source.check_copy()
        return self.__dict__

    def __repr__(self) -> str:
        recorded = "not recorded in a ledger" if self.entry is None else "recorded in a ledger"
        private = "" if self.private else ", NOT PRIVATE"
        mechanism = shorten(repr(self.plan.mechanism), 110)
        return f"Publication({shorten(self.id)!r}, {len(self.table)} cells, {mechanism}, {recorded}{private})"

    def _repr_html_(self) -> str:
        """Warnings, kept totals and the promise, then the first rows: the same of a release and of its folder."""
        rows: list[tuple[str, object]] = [
            *(("Warning", warning.text) for warning in self.card.warnings),
            ("Cells", f"{len(self.table):,}"),
            ("Kept", self.plan.kept_text),
            *self.guarantee.overview().items(),
            ("Promise", describe(self.guarantee)),
        ]
        return html_table(f"Release {self.id}", rows, paragraphs=("Promise", "Warning")) + rows_html(self.table)


def check_writable(output: Output, plan: Plan, release_id: str) -> None:
    """Raise if the output cannot be written or already holds this very release: before anything is drawn."""
    facts = plan.facts
    if output.formulas == "warn" and (risky := formula_columns(facts.universe, (facts.count_name,))):
        logger.warning("%s", formulas_warning(risky))
    cells = len(facts.universe)
    if output.formats is None and "csv" not in output.formats_of(cells):
        logger.info("%s", no_csv_sentence(cells, MOST_CSV_CELLS))
    check_output(output, (*facts.universe.columns, facts.count_name), release_id, plan.drawing.channel.identity)
    check_extras(output, plan)


def check_extras(output: Output, plan: Plan) -> None:
    """Raise if a view or a map is asked for that could not be made."""
    if output.view_base is not None:
        check_folder_view(plan, output.view_base)
    if output.map is not None:
        check_folder_map(plan, output.map)


def complete(booking: Booking, output: Output, release: Publication | Publications | None) -> str | None:
    """Write the folder whole, commit the spend, and give the folder its name: from drawn on, one process at a time. Returns the ledger's
    entry. `release`: None where the folder was staged before.
    """
    with booking.exclusive_folder(output) as temporary:
        try:
            if not booking.is_staged:
                assert release is not None
                with step("Writing"):
                    release.fill(temporary, output)
        except OSError as error:
            raise booking.output_failure(error, output) from None
        if not booking.is_staged:
            booking.stage(temporary)
        booking.commit(temporary, output)
        try:
            booking.rename(temporary, output)
        except OSError as error:
            raise booking.output_failure(error, output) from None
    booking.close()
    return booking.entry
