"""What readers do with a publication, by its public law alone: the methods that a `Release` and a loaded folder share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.accuracy.interval_sets import Intervals, interval_of, intervals_of
from holdfast.accuracy.queries import LEVEL, Query
from holdfast.accuracy.simulated import Simulated, simulated_errors
from holdfast.display import count_of, html_table
from holdfast.publication.plots import Plot
from holdfast.publication.view import PublicationView, make_view
from holdfast.tables.frames import Frames
from holdfast.wording.catalogue import ENGLISH
from holdfast.wording.dispatch import describe

if TYPE_CHECKING:
    from holdfast.accuracy.error_laws import Ask
    from holdfast.accuracy.interval import Interval
    from holdfast.privacy import Guarantee
    from holdfast.publication.order import KeptRow
    from holdfast.publication.plan import Plan
    from holdfast.publication.released import ReleasedTable
    from holdfast.randomness import NoiseKey


class Readable(Frames):
    """A published table and the plan that says its law. Each method is one function elsewhere; none reads anything confidential."""

    if TYPE_CHECKING:  # fields of the dataclasses below it

        @property
        def plan(self) -> Plan: ...
        @property
        def table(self) -> ReleasedTable: ...
        @property
        def id(self) -> str: ...
        @property
        def private(self) -> bool: ...
        @property
        def guarantee(self) -> Guarantee: ...
        @property
        def kept_rows(self) -> Sequence[KeptRow]: ...

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: that of the published table."""
        return self.table.frame

    @property
    def language(self) -> str:
        """Language of its pages and figures."""
        return ENGLISH

    @property
    def area_map(self) -> bytes | None:
        """The map file of a loaded folder, where it has one."""
        return None

    @property
    def plot(self) -> Plot:
        """Figures of the published table and its noise, as SVG: `plot.error_by_level()` and the like."""
        return Plot(self.plan, self.table, self.language, self.area_map)

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
                `nonnegative` uses that counts are not below 0. method="simulated" takes draws of the law where more is known.
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
    ) -> Intervals:
        """As `interval`, for a query or a list of them, or for all sums of a margin by columns or levels of hierarchies (`by`). With
        simultaneous=True all of them hold together with probability `level`, else each does for itself.
        """
        asked = {"by": by, "simultaneous": simultaneous, "nonnegative": nonnegative}
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

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            *([] if self.private else [("Warning", "NOT PRIVATE: drawn with a test key")]),
            ("Cells", len(self.table)),
            ("Kept", f"{count_of(len(self.kept_rows), 'total')}, exactly"),
            *self.guarantee.overview().items(),
            ("Promise", describe(self.guarantee)),
        ]
        return html_table(f"Release {self.id}", rows, paragraphs=("Promise",))
