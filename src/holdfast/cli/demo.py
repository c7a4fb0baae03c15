"""The embedded example: the main job on two small tables, from counts to verified folders.

Both tables are made up. The first is a 4 x 4 table of counties by education with both margins kept; the second a generated geography of
three levels with state totals kept. The noise comes from a fresh secret key: every run publishes other numbers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import OutputExists, OutputProblem
from holdfast.invariants import margin
from holdfast.invariants.constraints import Constraint
from holdfast.ledger.embedded import DEFAULT_NAME, ledger_in
from holdfast.ledger.state import state_folder
from holdfast.ledger.store import place_of
from holdfast.ledger.witness import Witness
from holdfast.mechanisms import GeneralizedGaussian, GeneralizedLaplace
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.publication.pipeline import release
from holdfast.publication.publication import Publication
from holdfast.research.synth import synthesize
from holdfast.tables import Table
from holdfast.verification.recompute import Verified
from holdfast.verification.verify import verify

COUNTIES = ("Ash", "Birch", "Cedar", "Dogwood")
EDUCATION = ("none", "primary", "secondary", "higher")
COUNTS = ((14, 31, 22, 3), (8, 25, 40, 17), (2, 11, 19, 30), (21, 9, 6, 1))
"""Made up; no one lives there."""

RELEASE_IDS = {"education": "demo-education", "geography": "demo-geography"}
"""By table. Others than the run file's, which the reader may try."""
MADE_UP = frozenset(RELEASE_IDS.items())
"""The releases that a demo makes in a ledger of its own."""

RUN_FILE = """\
[table]
source = "education.csv"
cells = ["county", "education"]
count = "adults"
public = true          # the list of cells is known to everyone: it does not depend on the counts

[keep]
margins = [["county"], ["education"]]

[release]
id = "education-demo"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"         # or "distance": this epsilon for each unit of l1 distance, twice as much for one person
"""


@dataclass(frozen=True)
class DemoRelease:
    """One of the two releases."""

    title: str
    release: Publication
    folder: Path
    verified: Verified


@dataclass(frozen=True)
class Demo:
    """What `holdfast demo` shows."""

    folder: Path
    parts: tuple[DemoRelease, ...]


def run_demo(output: Path | None = None) -> Demo:
    """Release both tables into a folder: `output`, which must be new, or one of its own in the system's place for temporary files.

    A folder that held an earlier demo and was deleted can be used again, unless its ledger had recorded a release that no demo made.
    """
    folder = _new_folder(output)
    try:
        witness = _witness_of(folder)
        try:
            return _fill_folder(folder)
        finally:
            with contextlib.suppress(OSError):  # then a later demo needs another folder
                witness.note_made_up(MADE_UP)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _witness_of(folder: Path) -> Witness:
    """What is remembered of the ledger that will be in this new folder: nothing but that of an earlier demo, which is forgotten."""
    witness = Witness.of(None, place_of(folder / DEFAULT_NAME))
    witness.forget_made_up()
    if witness.previous_id() is not None:
        raise OutputExists(
            f"{folder.name!r} is gone, and its ledger had recorded more than the demo's own releases. Choose another name for the demo's "
            "folder."
        )
    return witness


def _new_folder(output: Path | None) -> Path:
    if output is None:
        return Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        output.mkdir(parents=True)
    except FileExistsError:
        raise OutputExists(f"{output.name!r} already exists. Choose another name for the demo's folder.") from None
    except OSError as error:
        raise OutputProblem(f"{output.name!r} could not be created ({os.strerror(error.errno or 0)}). Choose another folder.") from None
    return output


def _fill_folder(folder: Path) -> Demo:
    (folder / "education.csv").write_text(_csv(), encoding="utf-8")
    (folder / "run.toml").write_text(RUN_FILE, encoding="utf-8")
    education = Table.from_counts(folder / "education.csv", cells=["county", "education"], count="adults", public=True, name="education")
    laplace = GeneralizedLaplace(epsilon="1/2", per="person")
    first = _part("Adults by county and education, both margins kept", education, [margin("county"), margin("education")], laplace, folder)
    people = synthesize(20_000, "demo", states=3).counts(level="tract")
    geography = Table.from_counts(people, cells=["state", "county", "tract"], count="count", public=True, name="geography")
    gaussian = GeneralizedGaussian(rho="1/100", per="person")
    second = _part("People by tract, state totals kept", geography, [margin("state")], gaussian, folder)
    return Demo(folder, (first, second))


def _part(title: str, table: Table, keep: list[Constraint], mechanism: Mechanism, folder: Path) -> DemoRelease:
    """Recorded beside the run file, as the command does it."""
    ledger = ledger_in(folder, None if state_folder() else folder)  # for an account without a home, its head is remembered beside it
    drawn = release(table, keep, mechanism, ledger=ledger, release_id=RELEASE_IDS[str(table.name)])
    place = drawn.save(folder / str(table.name))
    return DemoRelease(title, drawn, place, verify(place))


def _csv() -> str:
    rows = [f"{c},{e},{n}" for c, row in zip(COUNTIES, COUNTS, strict=True) for e, n in zip(EDUCATION, row, strict=True)]
    return "\n".join(["county,education,adults", *rows]) + "\n"
