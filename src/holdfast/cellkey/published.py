"""What is public of tables by the cell key method: how cell keys were made, what fixes the noise, how far apart the tables are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Rescaled:
    """A perturbation table that was fitted to another number of keys, and its delta at epsilon = 1 after and before."""

    before: int
    after: int
    delta: float
    delta_before: float


@dataclass(frozen=True)
class Settings:
    """How cell keys were made, and for how many the perturbation table is; `distance` of cell keys from uniform."""

    record_keys: str
    modulus: int
    size: int
    mixed: bool
    distance: Fraction
    table_key_size: int
    weighted: bool = False
    rescaled: Rescaled | None = None


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


@dataclass(frozen=True)
class Gap:
    """How far the cells of one published table are from adding up to another; from published counts alone, so it is public."""

    fine: str
    coarse: str
    cells: int
    unequal: int
    largest: int
    mean: Fraction
    """Mean absolute difference."""


@dataclass(frozen=True)
class ListedTable:
    """One table of a folder."""

    name: str
    file: str
    cells: int


@dataclass(frozen=True)
class PublishedTables:
    """What a folder of tables says of itself, but for its checksums.

    ledger:       the entry under which it is recorded; None where no ledger was used.
    other_noise:  the parts of `NoiseFacts` in which earlier releases have other noise.
    """

    release_id: str
    dataset: str
    private: bool
    settings: Settings
    tables: tuple[ListedTable, ...]
    gaps: tuple[Gap, ...]
    ledger: str | None = None
    other_noise: tuple[str, ...] = ()
