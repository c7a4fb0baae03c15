"""What `verify` returns: what was checked of a folder and found in order."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.verification.recompute import ONLY_SIGNED
from holdfast.wording.verification import Checked, cell_key_sentences, verified_sentences


@dataclass(frozen=True)
class Verified(Checked):
    """What was checked and found in order."""

    only_signed: tuple[str, ...] = ONLY_SIGNED

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
