"""One screen about one data set, for people: at most 24 lines of at most 100 columns, also where there are many releases."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.lattices.exposure_facts import ReleaseExposure
from holdfast.privacy.ledger.account import Account
from holdfast.privacy.ledger.chain import Event
from holdfast.privacy.ledger.values import Grant, Reservation, amount
from holdfast.wording.exposure import exposed_sentences
from holdfast.wording.joint import together_sentences

WIDTH, HEIGHT = 100, 24
MAX_GRANTS = 4
MAX_RELEASES = 8
EXPOSED_LINES = 3
STATES = {"voided": "voided (refunded)", "voided-spent": "voided (spent)"}


def ledger_screen(account: Account, last: Event) -> str:
    """What was granted by whom and why, each release with cost and state, what is left and what is exposed; `last`: of the whole chain."""
    balance = account.balance()
    name, unit = balance.currency, balance.unit
    promise = "" if balance.epsilon is None else f" (epsilon = {amount(balance.epsilon, up=False)}, delta = {amount(balance.delta)})"
    granted, spent, left = amount(balance.granted, up=False), amount(balance.spent), amount(balance.left, up=False)
    share = int(100 * balance.left / balance.granted)
    lines = [
        f"Data set  {account.dataset}",
        f"Ledger    {last.ledger}, {last.seq} events",
        f"Granted   {name} = {granted} for one {unit} changing cell{promise}",
        *_grants(account.grants),
        "Releases" if account.releases else "Releases  none yet",
        *_releases(list(account.releases.values())),
        f"Spent     {name} = {spent} of {granted}",
        f"Left      {name} = {left} ({share} %)",
    ]
    lines += _exposed(account.releases.values(), max(HEIGHT - len(lines), EXPOSED_LINES))
    return "\n".join(fit(line, WIDTH) for line in lines)


def _grants(grants: list[Grant]) -> list[str]:
    hidden = len(grants) - MAX_GRANTS
    lines = [f"  ({hidden} earlier grants are not shown)"] if hidden > 0 else []
    for grant in grants[-MAX_GRANTS:]:
        legal = "" if grant.legal is None else f" ({clean(grant.legal)})"
        lines.append(f"  {day(grant.time)}  {grant}, by {fit(grant.approver, 24)}: {clean(grant.reason)}{legal}")
    return lines


def _releases(releases: list[Reservation]) -> list[str]:
    hidden = len(releases) - MAX_RELEASES
    lines = [f"  ({hidden} earlier releases are not shown; they are counted)"] if hidden > 0 else []
    shown = releases[-MAX_RELEASES:]
    column = max((min(width(clean(release.release_id)), 36) for release in shown), default=0)
    for release in shown:
        notes = _notes(release.facts)
        state = STATES.get(release.state, release.state)
        lines.append(f"  {day(release.time)}  {pad(release.release_id, column)}  {state:<17}  {release.charge}{notes}")
    return lines


def _notes(facts: Mapping[str, Any]) -> str:
    notes = []
    if facts.get("revision_of"):
        notes.append(f"revision of {facts['revision_of']}")
    if facts.get("disjoint_from"):
        notes.append(f"other cells than {', '.join(facts['disjoint_from'])}")
    return "".join(f"; {note}" for note in notes)


def exposed_text(releases: Iterable[Reservation]) -> str | None:
    """What the last release says of all together, what each exposes alone, what the others said, the later ones first. None: nothing.

    Where a release does not say, it is "not computed", never "nothing".
    """
    alone: dict[str, list[str]] = {}
    together: list[str] = []
    for release in (one for one in releases if one.state not in ("voided", "voided-spent")):
        said = _read_exposed(release)
        own = "Not computed: the ledger does not say." if said is None else exposed_sentences(said.alone)
        alone.setdefault(own, []).append(release.release_id)
        together = [*([] if said is None else together_sentences(said)), *together]
    texts = [*together[:1], *(f"{', '.join(names)}: {own}" for own, names in alone.items()), *together[1:]]
    return " ".join(dict.fromkeys(texts)) or None


def _read_exposed(release: Reservation) -> ReleaseExposure | None:
    """What the ledger holds of it; None where it holds nothing that this version understands."""
    try:
        return ReleaseExposure.from_fields(release.facts["exposed"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _exposed(releases: Iterable[Reservation], most_lines: int) -> list[str]:
    text = exposed_text(releases) or "nothing was published yet"
    wrapped = textwrap.wrap(clean(text), WIDTH - 10, max_lines=most_lines, placeholder=" ...") or [""]
    return [("Exposed   " if index == 0 else " " * 10) + line for index, line in enumerate(wrapped)]


def day(time: str) -> str:
    """The day of an ISO time, in ten columns; another text is cut there."""
    return pad(time[:10], 10)


def clean(text: str) -> str:
    """The text on one line, without characters that steer a screen or turn its direction."""
    joined = " ".join(text.split())
    return "".join("?" if unicodedata.category(letter)[0] == "C" else letter for letter in joined)


def width(text: str) -> int:
    """Columns on a screen: wide letters take two, marks that sit on others none."""
    return sum(0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def fit(text: str, columns: int) -> str:
    """The text in at most this many columns, its end cut where it is longer; leading blanks stay."""
    indent = text[: len(text) - len(text.lstrip(" "))]
    body = _keep_blanks(text)
    if width(indent + body) <= columns:
        return indent + body
    kept = indent
    for letter in body:
        if width(kept + letter) > columns - 3:
            break
        kept += letter
    return kept + "..."


def pad(text: str, columns: int) -> str:
    """The text in just this many columns."""
    fitted = fit(text, columns)
    return fitted + " " * (columns - width(fitted))


def _keep_blanks(text: str) -> str:
    """Our own lines are aligned with blanks; only what steers the screen is replaced."""
    return "".join("?" if unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029" else letter for letter in text.lstrip(" "))
