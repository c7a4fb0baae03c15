"""What fixes the noise of the cell key method, and what was said of earlier noise: public, for the ledger."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class NoiseFacts:
    """What fixes the noise of a set of records, which the ledger compares.

    The fingerprint of the secret, which is not known for a column of keys; the name of the column of keys, or of the identifiers that keys
    were made from; the rule for cell keys; and a digest of the perturbation table's law and bounds, whatever file they were read from.
    Whether a column of the same name still holds the same values is not compared.
    """

    secret: str
    column: str
    rule: str
    table: str

    def to_fields(self) -> dict[str, str]:
        """For the ledger."""
        return asdict(self)


@dataclass(frozen=True)
class FixedNoise:
    """Noise that the records fix, and what was said of earlier noise.

    allowed:        whether it may be other noise than that of earlier releases.
    other_records:  why these are other records than those of other data sets in the ledger; None where nobody said so.
    """

    facts: NoiseFacts
    allowed: bool = False
    other_records: str | None = None
