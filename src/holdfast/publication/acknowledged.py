"""True counts are published only where someone said how many: before anything is drawn or charged.

Counted are the cells that the kept totals fix whatever their values are. Identities fix cells too, and expose nothing, so these are not
counted. What the values of the totals pin is known after the draw only: it is counted apart, on card, pages and in exposed.csv.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from holdfast.errors import NotAcknowledged
from holdfast.exposure import Exposure
from holdfast.publication.listings import fixed_csv
from holdfast.wording.exposure import not_acknowledged_sentences

FIELD = "release.allow_exposed"


def check_acknowledged(exposure: Exposure, allowed: int | None, beside: Path | None = None, *, marked: bool = False) -> None:
    """Raise NotAcknowledged if the kept totals fix another number of cells than is allowed.

    Given:       `allowed`, None for any number; the folder that would be written, beside which the list of the cells goes, with formulas
                 marked if so.
    Guarantees:  depends on the kept constraints and the list of cells alone. The list holds codes, no counts; no other file is touched.
    """
    cells = len(exposure.fixed)
    if allowed is None or cells == allowed:
        return
    listed = None if beside is None or not cells else _write_list(beside, fixed_csv(exposure, marked=marked))
    told = not_acknowledged_sentences(cells, allowed, exposure.complete, listed)
    raise NotAcknowledged(told, field=FIELD, details={"exposed": cells, "allowed": allowed, "list": listed})


def _write_list(folder: Path, content: bytes) -> str | None:
    """The name of a file with this content: `out-exposed.csv` beside `out`, or with a number where another file has that name."""
    for number in itertools.count(1):
        path = folder.absolute().with_name(f"{folder.name}-exposed{'' if number == 1 else f'-{number}'}.csv")
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            return path.name
        except FileExistsError:
            if path.is_file() and path.read_bytes() == content:
                return path.name
        except OSError:
            return None
    raise AssertionError
