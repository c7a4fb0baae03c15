"""What `verify` returns: what was checked of a folder and found in order."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.verification.recompute import ONLY_SIGNED
from holdfast.wording.verification import cell_key_sentences, verified_sentences


@dataclass(frozen=True)
class Verified:
    """What was checked and found in order."""

    release_id: str
    cells: int
    files: int
    private: bool
    recomputed: tuple[str, ...]
    """What was made again and found equal."""
    totals: int = 0
    """Kept totals."""
    signed_by: str | None = None
    """The key that signed the card, where the reader named it as the signer's; else None."""
    unchecked_key: str | None = None
    """A key whose signature the card carries, and of which nobody said whose it is."""
    official_totals: int | None = None
    suppressed: bool = False
    left: tuple[str, ...] = ()
    """What could not be made again, and why."""
    only_signed: tuple[str, ...] = ONLY_SIGNED
    """Fields of the card that follow from nothing else: only a signature protects them."""
    declared: tuple[str, ...] = ()
    """Fields that the promise of real-valued answers was computed from, and that no file of the folder shows: taken as they are."""

    def __str__(self) -> str:
        return "\n".join(verified_sentences(self))


@dataclass(frozen=True)
class VerifiedCellKeys(Verified):
    """What was checked of tables by the cell key method. They promise no differential privacy, keep no totals and carry no signature."""

    tables: int = 0
    only_signed: tuple[str, ...] = ()
    method: str = "cell keys"

    def __str__(self) -> str:
        return "\n".join(cell_key_sentences(self, self.tables))
