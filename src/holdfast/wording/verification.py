"""What a check of a published folder found, for the reader. No free text of a card is repeated here: it could pose as ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.display import count_of, shorten
from holdfast.wording.cellkey_losses import NO_GUARANTEE

UNSIGNED = (
    "Not signed. Fields that cannot be recomputed, such as names, labels, date and ledger entry, could have been changed: only a signature "
    "protects them."
)
DECLARED = (
    "Taken as declared: the sensitivity of the answers, which data sets are neighbours, and whether answers were rounded (on_grid). The "
    "promise is computed from them, and no file here shows that they are true."
)

KEYED = "Not checked, since it needs the records and their keys: that counts are the true ones with the noise of their keys."

_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")


def other_version_phrase(version: object) -> str:
    """What is not compared where a card names another version of Holdfast, which is repeated where it is one."""
    said = f"version {version}" if isinstance(version, str) and _VERSION.fullmatch(version) else "another version"
    return f"sentences and pages, which the card says {said} of Holdfast made; they could say anything. Verify with that version"


def strict_sentence(left: Sequence[str]) -> str:
    """Why a check that was to compare everything fails."""
    return f"Not everything was compared, as strict asks for: {'; '.join(left)}."


def signature_sentence(signed_by: str | None, unchecked_key: str | None) -> str:
    """Who signed, as far as it is known: a key that the reader did not name may be anyone's."""
    if signed_by is not None:
        return f"Signed by {signed_by}, the key that you named."
    if unchecked_key is not None:
        return (
            f"Carries a signature by an unchecked key, {unchecked_key}: anyone can make one. Name the key that the office publishes "
            "elsewhere with --signer."
        )
    return UNSIGNED


@dataclass(frozen=True)
class Checked:
    """What was checked of a folder and found in order."""

    release_id: str
    cells: int
    files: int
    private: bool
    recomputed: tuple[str, ...]
    """What was made again and found equal."""
    totals: int = 0
    """Kept totals."""
    tables: int = 1
    keyed: bool = False
    """Whether noise was looked up by cell keys."""
    signed_by: str | None = None
    """The key that signed the card, where the reader named it as the signer's; else None."""
    unchecked_key: str | None = None
    """A key whose signature the card carries, and of which nobody said whose it is."""
    official_totals: int | None = None
    suppressed: bool = False
    left: tuple[str, ...] = ()
    """What could not be made again, and why."""
    only_signed: tuple[str, ...] = ()
    """Fields of the card that follow from nothing else: only a signature protects them."""
    declared: tuple[str, ...] = ()
    """Fields that the promise of real-valued answers was computed from, and that no file of the folder shows: taken as they are."""


def verified_sentences(found: Checked) -> list[str]:
    """What was checked of a release and found in order."""
    kept, cells = count_of(f"{found.totals:,}", "kept total"), count_of(f"{found.cells:,}", "cell")
    add = "adds" if found.totals == 1 else "add"
    totals = f"{kept} listed." if found.suppressed else f"{kept} {add} up over {cells}." if found.totals else f"{cells}, no kept total."
    says = "the card says" if found.tables == 1 else f"the cards of {count_of(found.tables, 'table')} say"
    lines = [
        f"Release {found.release_id}: {found.files} files as {says}, {totals}",
        f"Recomputed and equal: {', '.join(found.recomputed)}.",
        *([KEYED, NO_GUARANTEE] if found.keyed else []),
        *([DECLARED] if found.declared else []),
        *(f"Not compared: {text}." for text in found.left),
    ]
    if found.official_totals is not None:
        lines.append(f"{found.official_totals:,} official totals agree.")
    lines.append(signature_sentence(found.signed_by, found.unchecked_key))
    if not found.private:
        lines.append("NOT PRIVATE: the noise came from a test key.")
    return lines


def name_phrase(text: str) -> str:
    """A name from a folder that others made, in quotes and on one line."""
    return repr(shorten(text))
