"""What a folder should say, made again from the part of it that everything else follows from.

Read:     the codes and counts of the table, the kept totals, and of the card: constraints, mechanism with its exact parameters, what is
          declared of the table, what only the office can say (ONLY_SIGNED), and how the pairs of a chain met.
Made:     guarantee, exposure, samplers, standard deviations, identity, every sentence, the pages. No chain is run to assess it again;
          figures from draws of the public law come from a public key and are drawn again.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.card.card import Card
from holdfast.card.figure_facts import AreasFacts
from holdfast.card.parts import ViewInfo, measure_of
from holdfast.chains.assessment import Said
from holdfast.channels import Facts
from holdfast.errors import HoldfastError, InvalidParameter
from holdfast.exposure.facts import TogetherFacts
from holdfast.invariants.rows import Kept
from holdfast.lattices import Lattice, lattice
from holdfast.mechanisms.registry import mechanism_class
from holdfast.publication.listings import EXPOSED_FILE, KEPT_FILE, STRUCTURE, exposed_csv, kept_csv, read_together, shown_rows
from holdfast.publication.maps import folder_areas
from holdfast.publication.order import KeptRow, software
from holdfast.publication.plan import decide_exposure, exposure_after, prepare
from holdfast.publication.publication import Folder, Publication, PublishedTable, make_card
from holdfast.publication.report_facts import report_facts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from holdfast.tables import Hierarchy, Universe
from holdfast.wording.guarantee import is_paragraph_of
from holdfast.wording.verification import Checked, verified_sentences

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ONLY_SIGNED = (
    "release.id",
    "release.tables",
    "release.table_name",
    "release.date",
    "release.office",
    "release.approver",
    "release.test_key",
    "release.ledger",
    "release.grant",
    "release.disjoint",
    "release.signer",
    "release.allow_exposed",
    "exposed.together",
    "table.name",
    "table.universe",
    "table.hierarchies",
    "table.labels",
    "kept.revision",
    "software",
    "sampler.groups.chain.lag",
    "sampler.groups.chain.largest_meeting",
    "sampler.groups.chain.median_meeting",
)
"""Fields that follow from nothing else in the folder (of table.universe: whether the list was declared or given with the table). The pages
show most of them; a forger who changes a field and regenerates the pages is caught only by a signature. docs/releases.md has this list."""
DECLARED = tuple(f"table.grid.{name}" for name in ("l1", "l2_squared", "neighbours", "on_grid", "round_totals"))
"""Fields of real-valued answers that the promise is computed from and no file of the folder shows. A change of one alone is noticed, since
the promise then does not follow; changed with the budget they make another release, of the same noise and a better promise."""

SENTENCES = frozenset({"text", "ledger_text", "relation", "status_note", "why", "basis"})
"""Fields in words: another version may say the same differently."""
MAX_SOLVED_CELLS = 1_000
"""A Smith form of more cells would take long."""
SHOWN = 60
"""Characters of a value that a message shows."""
LAST_DIGIT = 1e-5
"""Cards have six digits: one unit in the last of them is at most this part of a number. Two machines may round apart by so much."""


@dataclass(frozen=True)
class Verified(Checked):
    """What `verify` returns: what was checked of a folder and found in order."""

    only_signed: tuple[str, ...] = ONLY_SIGNED

    def __str__(self) -> str:
        return "\n".join(verified_sentences(self))


def is_same_version(card: Card) -> bool:
    """Whether this very version of Holdfast made the folder: then every word of it should be the same."""
    return card.software["holdfast"] == software()["holdfast"]


def is_same_software(card: Card) -> bool:
    """Whether every version is the same: then every digit should be, too."""
    return dict(card.software) == software()


def card_problems(again: Publication, solution: Ints | None) -> Iterator[str]:
    """Fields that do not follow from the rest."""
    given = again.card
    said = given.to_dict()
    made = make_card(again.plan, again.exposure, given.release, given.kept.revision, given.software).to_dict()
    for name in ("files", "signature", *(() if solution is not None else ("exposed",))):
        del made[name], said[name]
    if given.release.allow_exposed not in (None, fixed := again.exposure.to_acknowledge):
        yield f"card.json: release.allow_exposed is {given.release.allow_exposed}; the kept totals fix {fixed} cells"
    if given.release.disjoint is not None and given.release.ledger is None:
        yield "card.json: release.disjoint names releases of a ledger; release.ledger names none"
    for path, here, there in _differences(said, made, ()):
        if not _may_differ(given, path, here, there):
            one, other = _show_difference(here, there)
            yield f"card.json: {'.'.join(map(str, path))} is {one}; the rest of the folder gives {other}"
    asked = None if given.guarantee.asked is None else given.guarantee.asked.text
    if not is_paragraph_of(again.guarantee, given.guarantee.text, asked, given.guarantee.sentences):
        yield "card.json: guarantee.text is not what the card requests, its guarantee.sentences and the names of exposed cells"


def _may_differ(card: Card, path: tuple[str | int, ...], here: Any, there: Any) -> bool:
    if not is_same_version(card) and SENTENCES.intersection(map(str, path)):
        return True
    return not is_same_software(card) and _is_number(here) and _is_number(there) and math.isclose(here, there, rel_tol=LAST_DIGIT)


def bounds_problems(again: Publication, solution: Ints | None) -> Iterator[str]:
    """Published counts that the bounds of the mechanism do not allow."""
    layout = again.plan.drawing.channel.layout
    if layout is not None and solution is not None and not layout.holds(solution):
        yield "the published counts do not lie within the bounds of the mechanism"


def table_problems(again: Publication, solution: Ints | None, given: Iterator[Any]) -> Iterator[str]:
    """Columns beside codes and counts that are not as they should be, from pieces of these columns."""
    zeros = again.plan.facts.zeros
    if zeros is not None and (wrong := int(np.count_nonzero(again.table.counts[zeros.cells]))):
        yield f"{wrong} counts under a kept total of 0 are not 0"
    row, wrong_entries = 0, [0, 0]
    for piece in given:
        _, *made = again.table.values_of(row, row + piece.num_rows)
        for place, (here, there) in enumerate(zip(piece.columns, made, strict=True)):
            wrong_entries[place] += _wrong_entries(here.combine_chunks(), there, is_same_software(again.card))
        row += piece.num_rows
    names = [again.table.deviation_name, *([] if solution is None else [again.table.exposed_name])]
    for name, wrong in zip(names, wrong_entries, strict=False):
        if wrong:
            yield f"{wrong} entries of the column {name!r} do not follow from the card"


def _wrong_entries(here: Any, there: Any, same_software: bool) -> int:
    import pyarrow as pa

    if here.equals(there):
        return 0
    given, made = here.to_pylist(), there.to_pylist()
    if pa.types.is_floating(there.type) and not same_software:
        near = (a == b or (None not in (a, b) and math.isclose(a, b, rel_tol=LAST_DIGIT)) for a, b in zip(given, made, strict=True))
        return sum(not same for same in near)
    return sum(a != b for a, b in zip(given, made, strict=True))


def exposed_problems(again: Publication, solution: Ints | None, said: bytes) -> Iterator[str]:
    """exposed.csv; of a suppressed table too large to solve, the cells that the structure fixes."""
    if solution is not None:
        right = exposed_csv(again.exposure, solution, again.table.count_name, again.table.measure, marked=again.card.marks_formulas) == said
    else:
        listed = csv.reader(io.StringIO(said.decode(), newline=""))
        right = sum(line[-2:] == [STRUCTURE, ""] for line in listed) == len(again.exposure.fixed)
    if not right:
        yield f"{EXPOSED_FILE} is not what the kept totals expose"


def kept_problems(again: Publication, said: bytes) -> Iterator[str]:
    """kept.csv, whose totals were read and found right."""
    if kept_csv(again.plan.facts.kept, again.totals, again.table.measure, marked=again.card.marks_formulas) != said:
        yield f"{KEPT_FILE} is not written as Holdfast writes it"


def read_areas(again: Publication, area_map: bytes) -> AreasFacts | None:
    """The areas of the folder's map; None where the file is no map of this release, or holds more than outlines and codes."""
    try:
        return folder_areas(area_map, again.plan, again.table)
    except HoldfastError:
        return None


def page_problems(
    again: Publication, pages: dict[str, bytes], areas: AreasFacts | None = None, view: ViewInfo | None = None
) -> Iterator[str]:
    """Pages that are not what this version makes of the card, with the map of the folder and what view.json says, if there are any."""
    kept_rows = shown_rows(again.kept_rows, again.plan.facts.kept, again.table.measure)
    made = {
        "statement.html": statement_html(again.card, view),
        "report.html": report_html(again.card, kept_rows, report_facts(again.plan, again.table, areas, view)),
    }
    for name, page in made.items():
        if pages[name] != page.encode():
            yield f"{name} is not the page that follows from the card, or another build of this version of Holdfast made it"


def recompute(folder: Folder, universe: Universe, counts: Ints, published: Bools) -> tuple[Publication, Ints | None]:
    """(what this folder should hold, a table with the published totals), from a card whose kept totals were found to add up.
    The table is None where cells are suppressed and there are too many to find one: then what the values of the totals expose is not
    known. Raises HoldfastError where the card cannot be that of any release.
    """
    card, said = folder.card, folder.card.table
    constraints = card.kept.read_constraints()
    trees = {tree.column: Hierarchy(dict(tree.parents), tree.levels) for tree in said.hierarchies}
    cells = replace(universe, support=said.universe, labels=said.read_labels()).with_hierarchies(trees)
    columns = {column.name: np.array(column.values, dtype=np.int64) for column in said.public_columns}
    for name, values in columns.items():
        if len(values) != len(cells):
            raise InvalidParameter(f"The public column {name!r} has {len(values)} values for {len(cells)} cells.")
    declared = (said.protect, said.max_records, said.count, said.name)
    facts = Facts(lattice(cells, constraints), constraints, *declared, columns=columns, measure=measure_of(said.grid), over=said.over)
    mechanism = mechanism_class(card.mechanism.name).from_parameters(card.mechanism.parameters)
    chains = [Said(c.lag, c.median_meeting, c.largest_meeting) for group in card.sampler.groups if (c := group.chain) is not None]
    if mechanism.publishes_cells:  # what the totals make 0 takes no noise
        facts = replace(facts, published_totals=tuple(rows.totals(counts) for rows in facts.kept.rows))
    plan = prepare(facts, mechanism, said=chains)
    totals = _listed_totals(facts.kept, folder.kept_rows)
    if not mechanism.publishes_cells:
        plan = decide_exposure(plan, totals)
    solution = counts if mechanism.publishes_cells else _some_table(facts.lattice, plan.facts.published_totals or ())
    exposure = plan.exposure if solution is None else exposure_after(plan.drawing.channel, totals, solution)
    if card.exposed.together is not None:  # of earlier releases nothing is at hand: what the folder says of them is taken as it is
        said_together = TogetherFacts(**dict(card.exposed.together))
        exposure = replace(exposure, together=read_together(folder.exposed, cells, said_together, marked=card.marks_formulas))
    shown = None if mechanism.publishes_cells else published
    table = PublishedTable(cells, counts, said.count, plan.deviations, shown, exposure.cells, facts.measure)
    return Publication(plan, table, tuple(totals), exposure, card.release, card.kept.revision, folder), solution


def _listed_totals(kept: Kept, listed: Sequence[KeptRow]) -> list[Ints]:
    """One array for each entry of the kept rows: kept totals as they are listed, identities as they are declared."""
    totals, out = iter(listed), []
    for rows in kept.rows:
        known = rows.values if isinstance(rows.values, tuple) else [rows.values or 0] * rows.count
        values = [next(totals)[2] for _ in range(rows.count)] if rows.kind == "kept" else known
        out.append(np.array(values, dtype=np.int64))
        out[-1].setflags(write=False)
    return out


def _some_table(moves: Lattice, totals: Sequence[Ints]) -> Ints | None:
    """Any integer table with these kept totals: U A V = D gives A (V D^-1 U t) = t. None where the table is too large for that."""
    if moves.cells > MAX_SOLVED_CELLS:
        return None
    values = [int(total) for given in totals for total in given]
    U, D, V = moves.smith()
    turned = [sum(int(U[i, j]) * value for j, value in enumerate(values)) for i in range(U.nrows())]
    rank = moves.rank
    if any(turned[rank:]) or any(turned[i] % int(D[i, i]) for i in range(rank)):
        raise ValueError("no table of whole numbers has these totals")
    scaled = [turned[i] // int(D[i, i]) for i in range(rank)]
    return np.array([sum(int(V[i, j]) * scaled[j] for j in range(rank)) for i in range(moves.cells)], dtype=np.int64)


def _differences(here: Any, there: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """(where, in one, in the other) of the leaves in which two nested values differ."""
    if isinstance(here, dict) and isinstance(there, dict) and here.keys() == there.keys():
        for name in here:
            yield from _differences(here[name], there[name], (*path, name))
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from _differences(one, other, (*path, place))
    elif here != there or isinstance(here, bool) != isinstance(there, bool):
        yield path, here, there


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _show_difference(here: Any, there: Any) -> tuple[str, str]:
    """Two values that differ; of long ones the part around the first difference."""
    texts = repr(here), repr(there)
    same = next((at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts)))
    start = max(0, same - SHOWN // 2) if max(map(len, texts)) > SHOWN else 0
    one, other = (f"{'...' * (start > 0)}{text[start : start + SHOWN]}{'...' * (len(text) > start + SHOWN)}" for text in texts)
    return one, other
