"""From a drawn release to its folder: written whole, the spend committed, then given its name. `Release.save` and `carry_out` end here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.publication.booking import Booking
from holdfast.publication.folder import Output, check_output, fill_folder
from holdfast.publication.maps import check_folder_map
from holdfast.publication.plan import Plan
from holdfast.publication.view import check_folder_view
from holdfast.tables.formulas import formula_columns
from holdfast.wording.formulas import formulas_warning

if TYPE_CHECKING:
    from holdfast.publication.release import Release

logger = logging.getLogger(__name__)


def publish(release: Release, output: Output) -> Path:
    """Write the folder, whole or not at all, commit the spend, and give the folder its name."""
    release.booking.check_unpublished()
    check_writable(output, release.plan, release.id)
    complete(release.booking, output, release)
    return output.folder


def check_writable(output: Output, plan: Plan, release_id: str) -> None:
    """Raise if the output cannot be written or already holds this very release: before anything is drawn."""
    facts = plan.facts
    if output.formulas == "warn" and (risky := formula_columns(facts.universe, (facts.count_name,))):
        logger.warning("%s", formulas_warning(risky))
    check_output(output, (*facts.universe.columns, facts.count_name), release_id, plan.drawing.channel.identity)
    check_folder_view(plan, output.view_base)
    check_folder_map(plan, output.map)


def complete(booking: Booking, output: Output, release: Release | None) -> str | None:
    """From drawn on, one process at a time."""
    with booking.exclusive_folder(output) as temporary:
        try:
            if not booking.is_staged:
                assert release is not None
                fill_folder(release, temporary, output)
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
