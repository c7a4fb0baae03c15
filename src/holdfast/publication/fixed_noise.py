"""Noise that the records fix, compared with that of earlier releases in a ledger: a second draw for the same records would tell more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.cellkey.published import FixedNoise, NoiseFacts
from holdfast.errors import LedgerProblem
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.values import text_of
from holdfast.wording.cellkey import other_noise_refusal, other_records_refusal


def with_noise(facts: ReleaseFacts, noise: FixedNoise) -> ReleaseFacts:
    """For the event that reserves the release; InvalidParameter where the ledger could not hold the reason."""
    said = None if noise.other_records is None else text_of(noise.other_records, "other_records")
    return replace(facts, noise=noise.facts.to_fields(), other_records=said)


def compare_noise(earlier: Sequence[Reservation], dataset: str, noise: FixedNoise) -> tuple[str, ...]:
    """In which parts the noise is another than that of earlier cell key releases in the ledger, where that is allowed; else LedgerProblem.

    A data set is only a name: the same records may be there under another one. So all of the ledger is compared, except data sets that were
    said to have other records, now or when a release was recorded after them.
    """
    standing: dict[str, list[Reservation]] = {}
    for release in earlier:
        if release.charge.kind == "cell-key" and release.state not in ("voided", "voided-spent"):
            standing.setdefault(release.dataset, []).append(release)
    own = standing.pop(dataset, [])
    parts = _differing(noise.facts, own)
    if parts and not noise.allowed:
        raise LedgerProblem(other_noise_refusal(dataset, parts))
    for name, others in standing.items():
        differing = _differing(noise.facts, others)
        if not differing or noise.other_records is not None or _are_told_apart(own, others) or _are_told_apart(others, own):
            continue
        if not noise.allowed:
            raise LedgerProblem(other_records_refusal(dataset, name, differing))
        parts += differing
    return tuple(name for name in noise.facts.to_fields() if name in parts)


def _differing(noise: NoiseFacts, releases: Sequence[Reservation]) -> list[str]:
    found = [release.facts.noise or {} for release in releases]
    return [name for name, value in noise.to_fields().items() if any(facts.get(name) != value for facts in found)]


def _are_told_apart(said: Sequence[Reservation], others: Sequence[Reservation]) -> bool:
    """Whether a release of one data set was recorded as of other records, when the other data set had one."""
    return bool(others) and any(release.facts.other_records is not None and release.seq > others[0].seq for release in said)
