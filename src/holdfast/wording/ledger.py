"""One screen about one data set, for people: at most 24 lines of at most 100 columns, also where there are many releases.

Also the sentences about releases that were declared to share no person.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from holdfast.display import count_of
from holdfast.exact.formatting import format_amount
from holdfast.exposure.facts import ReleaseExposure
from holdfast.ledger.account import Account
from holdfast.ledger.chain import Event
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.units import ProtectedUnits
from holdfast.ledger.values import Balance, Grant, PlannedCharge, TakenBack
from holdfast.ledger.witness import Seen
from holdfast.wording.budget import join_names, recorded_sentence
from holdfast.wording.exposure import VALUES_LATER, structure_sentences
from holdfast.wording.joint import together_sentences

if TYPE_CHECKING:
    from holdfast.ledger.disjoint import Disjoint

NAMES_SHOWN = 5
ONE = "The ledger adds the two charges only if other releases that may share people with both connect them; else the larger sum counts."
"""What a declaration against one release changes. The pages of a publication say it in the words of their catalogue."""
SEVERAL = "The ledger adds the charge of this release to theirs only where further releases that may share people connect them."
"""What a declaration against several releases changes."""


def disjoint_sentences(declared: Disjoint, protected: str) -> str:
    """What is declared, what it changes, and why it is so. The reason stands last: it may hold any text."""
    one = len(declared.releases) == 1
    return (
        f"It is declared that no {protected} is both in this table and in {'that' if one else 'those'} of {short_list(declared.releases)}. "
        f"{ONE if one else SEVERAL} Reason given: {declared.because}"
    )


def short_list(names: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


WIDTH, HEIGHT = 100, 24
NO_LIMIT = "no limit"
MAX_GRANTS = 4
MAX_TAKEN_BACK = 1
MAX_RELEASES = 8
MAX_DISJOINT = 2
"""Declarations that are shown, each in place of a release; `--json` has all."""
EXPOSED_LINES = 3
STATES = {"closed": "published", "voided": "voided (refunded)", "voided-spent": "voided (spent)", "lost": "lost (charged)"}


def ledger_screen(account: Account, last: Event) -> str:
    """What was granted by whom and why, each release with cost and state, what is left and what is exposed; `last`: of the whole chain."""
    balances = account.balances()
    declared, several = _disjoint(account.releases.values()), len(balances) > 1
    back, left = _taken_back(account.taken_back), [_left_lines(balance, several) for balance in balances]
    units = [f"Units     {_contents(account.units)}"] if several else []
    whose = "what it protects" if several else f"one {balances[0].protect}"
    more = sum(map(len, left)) - 1 + 2 * (len(balances) - 1) + len(units)
    lines = [
        f"Data set  {account.dataset}",
        f"Ledger    {last.ledger}, {last.seq} events",
        *units,
        *_lines_under("Granted", [_grant_text(balance) for balance in balances]),
        *_grants(account.grants, MAX_GRANTS - len(back), several),
        *back,
        f"Releases  as requested: cost for {whose}" if account.releases else "Releases  none yet",
        *_releases(list(account.releases.values()), max(MAX_RELEASES - len(declared) - more, 1), several),
        *declared,
        *_lines_under("Spent", [f"{_spent(balance)}{_whose(balance, several)}{_apart(balance, ', and ')}" for balance in balances]),
        *_lines_under("Left", [line for lines in left for line in lines]),
        *(line for balance in balances for line in _secret(balance)),
    ]
    lines += _exposed_lines(account.releases.values(), max(HEIGHT - len(lines), EXPOSED_LINES))
    return "\n".join(fit(line, WIDTH) for line in lines)


def _lines_under(head: str, texts: list[str]) -> list[str]:
    """Lines under one word, which stands before the first."""
    return [f"{'' if number else head:<9} {text}" for number, text in enumerate(texts)]


def _grant_text(balance: Balance) -> str:
    name, granted = balance.currency, balance.granted
    promise = (
        ""
        if balance.epsilon is None
        else f" (epsilon = {format_amount(balance.epsilon, up=False)}, delta = {format_amount(balance.delta)})"
    )
    if granted is None:
        return f"nothing: no limit is set; charges are for one {balance.protect} changing cell"
    return f"{name} = {format_amount(granted, up=False)} for one {balance.protect} changing cell{promise}"


def _whose(balance: Balance, several: bool) -> str:
    return f" for one {balance.protect}" if several else ""


def _contents(units: ProtectedUnits) -> str:
    """What was declared, such as "household = {person = 8}": a household contains at most 8 persons."""
    pairs = {one: ", ".join(f"{name} = {number}" for name, number in members.items()) for one, members in units.contents.items()}
    return clean("; ".join(f"{container} = {{{members}}}" for container, members in pairs.items())) + " (contains at most)"


def _secret(balance: Balance) -> list[str]:
    """The charge for the closest tables that the kept totals allow, if that is more than one person's, and what a grant buys there."""
    if not balance.secret_is_more or balance.smallest_secret == 0:
        return []
    name, secret = balance.currency, balance.smallest_secret
    if secret is None:
        return [f"Pairs     where no {balance.protect} can change alone: more than that is spent; a release does not say how much"]
    buys = ""
    if balance.granted is not None and balance.spent:
        whole = balance.granted * secret / balance.spent
        buys = f"; the grant of {format_amount(balance.granted, up=False)} buys {format_amount(whole)} there"
    return [f"Pairs     where no {balance.protect} can change alone: {name} = {format_amount(secret)} spent{buys}"]


def price_sentences(planned: PlannedCharge) -> str:
    """What a release would cost, against what is left, for every unit of the account. Why it would be refused, the error says."""
    balance = planned.balance
    if planned.cost is None and planned.problem is not None:
        return "The release would be refused."
    sentences = [f"{_price(one)}." for one in (planned, *planned.others)]
    if planned.problem is not None:
        sentences.append("It would be refused.")
    elif planned.begun:
        sentences.append(BEGUN)
    elif not planned.resumable and balance is not None and balance.granted is not None:
        sentences.append(NO_KEY)
    return " ".join(sentences)


def _price(planned: PlannedCharge) -> str:
    """What a release would cost one unit, against what is left for it."""
    cost, name, balance = planned.cost, planned.currency, planned.balance
    said = (
        "not counted: an estimate, or noise of cell keys, has no number that could be added up"
        if cost is None
        else f"{name} = {format_amount(cost)} for one {planned.protect}"
    )
    if balance is None:
        held = f"nothing was granted to {planned.dataset!r} or spent on it yet"
    elif balance.granted is None:
        held = f"no limit is set for {planned.dataset!r}, {name} = {format_amount(balance.spent)} is spent"
    else:
        granted = format_amount(balance.granted, up=False)
        held = f"{format_amount(planned.left, up=False)} is left of {name} = {granted} granted to {planned.dataset!r}"
    return f"{said}; {held}"


BEGUN = "It was begun before: resume it with --resume, or give it up with `holdfast ledger void`."


NO_KEY = (
    "HOLDFAST_KEY is not set: if the release is interrupted while it is drawn, it cannot be resumed, and what it cost stays spent. "
    "Set HOLDFAST_KEY (or HOLDFAST_KEY_FILE) so that it can be resumed."
)


NO_STATE = (
    "There is no state folder for what it takes to resume: if the release is interrupted while it is drawn, it cannot be resumed, and "
    "what it cost stays spent. Set HOLDFAST_STATE to a folder of yours so that it can be resumed."
)


def compared_sentence(seen: Mapping[str, str | None], cards: int) -> str:
    """What a ledger was compared with, and with what it could not be."""
    known = [f"the mark in the {name} (event {head.split(':')[1]})" for name, head in seen.items() if head is not None]
    known += [count_of(cards, "card")] if cards else []
    unknown = [name for name, head in seen.items() if head is None]
    told = f"Compared with {' and '.join(known)}." if known else "Compared with nothing outside it: an older copy would not be noticed."
    return told + "".join(f" The {name} remembers nothing of it." for name in unknown)


def accepted_sentence(lost: Iterable[Seen]) -> str:
    """What was charged again when a restored ledger was accepted."""
    names = [f"{one.release_id!r} of {one.dataset!r} ({one.charge})" for one in lost]
    again = (
        "Grants that were lost must be made again; grants that were taken back after the copy was made stand, and must be taken back again."
    )
    if not names:
        return f"Accepted. No release that a witness saw was missing. {again}"
    return f"Accepted. Charged again, and their ids are used up: {'; '.join(names)}. {again}"


def _spent(balance: Balance) -> str:
    of = "" if balance.granted is None else f" of {format_amount(balance.granted, up=False)}"
    return f"{balance.currency} = {format_amount(balance.spent)}{of}"


def _apart(balance: Balance, start: str) -> str:
    """Releases that are recorded and not counted in what is spent; empty where there are none."""
    kinds = ((balance.estimated, "by Markov chains, which cannot be added up"), (balance.cell_key, "by cell keys, without a guarantee"))
    return "".join(f"{start}{count_of(number, 'release')} {what}" for number, what in kinds if number)


def _left_text(balance: Balance, left: Fraction) -> str:
    assert balance.granted is not None
    share = f" ({int(100 * left / balance.granted)} %)" if balance.granted else ""
    return f"{balance.currency} = {format_amount(left, up=False)}{share}"


def _left_lines(balance: Balance, several: bool) -> list[str]:
    """What is left. Where a declaration keeps charges apart, that depends on what a release declares: both ends are shown."""
    if balance.left is None or balance.left_undeclared is None:
        return []
    if balance.all_charges == balance.spent:
        return [f"{_left_text(balance, balance.left)}{_whose(balance, several)}"]
    whose = _whose(balance, several)
    return [
        f"{_left_text(balance, balance.left_undeclared)}{whose} for a release that declares nothing "
        f"(all charges: {format_amount(balance.all_charges)})",
        f"{_left_text(balance, balance.left)}{whose} for one that overlaps only the releases that cost most",
    ]


def balances_screen(balances: Iterable[Balance]) -> str:
    """One line for each data set: what was granted, what is spent, what is left."""
    rows, listed = [], list(balances)
    several = {one.dataset for one in listed for other in listed if one.dataset == other.dataset and one.protect != other.protect}
    for balance in listed:
        left = NO_LIMIT if balance.left_undeclared is None else f"{_left_text(balance, balance.left_undeclared)} left"
        if balance.left is not None and balance.all_charges != balance.spent:
            left += " if nothing is declared"
        whose = _whose(balance, balance.dataset in several)
        apart = f" ({others})" if (others := _apart(balance, ", ").removeprefix(", ")) else ""
        rows.append((balance.dataset, f"{_spent(balance)} spent{whose}, {left}; {count_of(balance.recorded, 'release')}{apart}"))
    column = max((min(width(clean(name)), 36) for name, _ in rows), default=0)
    lines: list[str] = []
    for name, text in rows:
        if width(clean(name)) > column:  # a name is what the next command needs: it is never cut
            lines += [clean(name), fit(f"{' ' * column}  {text}", WIDTH)]
        else:
            lines.append(fit(f"{pad(name, column)}  {text}", WIDTH))
    return "\n".join(lines) or "No budget was granted and no release recorded yet."


def new_dataset_sentence(others: tuple[str, ...]) -> str:
    """Say that a grant opened a new account beside those that the ledger has."""
    return f"New data set; the ledger also holds {short_list(tuple(repr(clean(name)) for name in others))}."


def charged_sentence(entry: str | None, balances: Sequence[Balance]) -> str:
    """Where a release was recorded, when it is done."""
    if entry is None or not balances:
        return recorded_sentence(None)
    units = f" for {join_names([balance.protect for balance in balances])}" if len(balances) > 1 else ""
    return f"Charged to {balances[0].dataset!r}{units}, ledger entry {entry}."


def _grants(grants: list[Grant], most: int, several: bool) -> list[str]:
    hidden = len(grants) - most
    lines = [f"  ({hidden} earlier grants are not shown)"] if hidden > 0 else []
    for grant in grants[-most:]:
        legal = "" if grant.legal is None else f" ({clean(grant.legal)})"
        whose = f" for one {clean(grant.protect)}" if several else ""
        lines.append(f"  {day(grant.time)}  grant {grant.seq}: {grant}{whose}, by {fit(grant.approver, 24)}: {clean(grant.reason)}{legal}")
    return lines


def _taken_back(given: list[TakenBack]) -> list[str]:
    hidden = len(given) - MAX_TAKEN_BACK
    lines = [f"  ({hidden} more grants were taken back before)"] if hidden > 0 else []
    shown = given[-MAX_TAKEN_BACK:]
    return lines + [
        f"  {day(one.time)}  grant {one.grant.seq} taken back: {one.grant}, by {fit(one.approver, 24)}: {clean(one.reason)}"
        for one in shown
    ]


def _disjoint(releases: Iterable[Reservation]) -> list[str]:
    """The last declarations that a release shares no person with others, and why."""
    found = [(release.release_id, declared) for release in releases if release.counts and (declared := release.facts.disjoint)]
    hidden = len(found) - MAX_DISJOINT
    more = f"({hidden} earlier declarations are not shown) " if hidden > 0 else ""
    return [
        f"Disjoint  {'' if place else more}{name} from {short_list(declared.releases)}: {clean(declared.because)}"
        for place, (name, declared) in enumerate(found[-MAX_DISJOINT:])
    ]


def _releases(releases: list[Reservation], most: int, several: bool) -> list[str]:
    hidden = len(releases) - most
    lines = [f"  ({hidden} earlier releases are not shown; they are counted)"] if hidden > 0 else []
    shown = releases[-most:]
    column = max((min(width(clean(release.release_id)), 36) for release in shown), default=0)
    for release in shown:
        asked = "" if release.facts.asked is None else f"{release.facts.asked}: "  # before what it costs
        whose = f" for one {clean(release.facts.protect)}" if several and release.facts.protect else ""
        state, notes = STATES.get(release.state, release.state), whose + _notes(release.facts)
        lines.append(f"  {day(release.time)}  {pad(release.release_id, column)}  {state:<17}  {asked}{release.charge}{notes}")
    return lines


def _notes(facts: ReleaseFacts) -> str:
    notes = []
    if facts.revision_of:
        notes.append(f"revision of {facts.revision_of}")
    if facts.other_records:
        notes.append(f"other records: {clean(facts.other_records)}")
    return "".join(f"; {note}" for note in notes)


def exposed_text(releases: Iterable[Reservation]) -> str | None:
    """What the last release says of all together, what each exposes alone, what the others said, the later ones first. None: nothing.

    Where a release does not say, it is "not computed", never "nothing".
    """
    alone: dict[str, list[str]] = {}
    together: list[str] = []
    later = False
    for release in (one for one in releases if one.state not in ("voided", "voided-spent")):
        said = _read_exposed(release)
        own = "Not computed: the ledger does not say." if said is None else structure_sentences(said.alone)
        later = later or (said is not None and not said.alone.values_known)
        alone.setdefault(own, []).append(release.release_id)
        together = [*([] if said is None else together_sentences(said)), *together]
    texts = [
        *together[:1],
        *(f"{', '.join(names)}: {own}" for own, names in alone.items()),
        *([VALUES_LATER] if later else []),
        *together[1:],
    ]
    return " ".join(dict.fromkeys(texts)) or None


def _read_exposed(release: Reservation) -> ReleaseExposure | None:
    """What the ledger holds of it; None where it holds nothing that this version understands."""
    try:
        return ReleaseExposure.from_fields(cast(Any, release.facts.exposed))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _exposed_lines(releases: Iterable[Reservation], most_lines: int) -> list[str]:
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
