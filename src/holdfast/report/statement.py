"""The statement: two printable pages on which a legal department signs off a release.

Page one says what is published, what is protected and what is not. Page two holds the exact parameters, how to check, and lines to sign.
"""

from __future__ import annotations

from holdfast.report.frame import Say, render
from holdfast.report.html import Html, code, items, join, name, names, number, paragraph, plural, sd_text, show, table, tag, text
from holdfast.report.page import (
    LIST_TELLS,
    UNIVERSE_WORDS,
    Card,
    cost_rows,
    error_is_known,
    exposed_names,
    is_bounded,
    is_suppressed,
    level_rows,
    moved_words,
    noun,
    parameter_words,
    release_frame,
    revision_words,
    status_words,
    step_of,
    table_name,
    without_noise,
)

# What is longer would not leave the rest of its page; the whole lists are in card.json.
SHOWN_STATEMENTS = 5
SHOWN_MARGINS = 4
SHOWN_LEVELS = 5
SHOWN_GROUPS = 4


def statement_html(card: Card) -> str:
    """The statement of a release, from its card.

    Given:       the card as plain values, in the shape of card.schema.json. `files` and `signature` are not read: the statement is made
                 before them.
    Guarantees:  a pure function of the card; every text in it is escaped; nothing is loaded from elsewhere.
    """
    title = f"Statement on release {card['release']['id']}"
    first = tag("section", _head(card), _published(card), _protected(card), _not_protected(card), class_="sheet")
    second = tag("section", _exact_parameters(card), _expected_error(card), _software(card), _check(card), _sign(), class_="sheet")
    return render("statement.html.j2", **release_frame(card, title), eyebrow=Say()("page.statement"), body=join(first, second))


def _head(card: Card) -> Html:
    release = card["release"]
    office = [] if release["office"] is None else [", ", name(release["office"])]
    approver = [] if release["approver"] is None else [" Approved by ", name(release["approver"]), "."]
    said = ["Table ", name(table_name(card)), *office, ", ", release["date"] or "no date given", ".", *approver, " Page 1 of 2."]
    return paragraph(*said, class_="subtitle")


def _published(card: Card) -> Html:
    given, kept = card["table"], card["kept"]
    lines = [
        join(
            f"{'A list' if is_suppressed(card) else f'One {noun(card)} for each'} of {plural(given['cells'], 'cell')}, named by ",
            names(given["columns"], 8),
            f". List of cells: {UNIVERSE_WORDS.get(given['universe'], given['universe'])}.",
        ),
        _kept_line(card),
        text(_other_counts(card)),
    ]
    if kept["identities"]:
        lines.append(join("Known of every data set beforehand, so nobody's secret: ", names(kept["identities"], SHOWN_STATEMENTS), "."))
    return join(tag("h2", "What is published, and what is kept exactly"), items(lines))


def _other_counts(card: Card) -> str:
    if is_suppressed(card):
        return "Counts that the kept totals fix stand in the table as they are; every other count is left out. No noise is added."
    if is_bounded(card):
        return (
            "Every other count is drawn at random around the true one, from a publicly known law (page 2). All counts lie within the "
            "public bounds, and so they are biased near them: on average they are drawn away from a bound."
        )
    if (step := step_of(card)) is not None:
        return (
            f"Every other value carries random noise of a publicly known law (page 2). All values are whole numbers of steps of {step}, "
            "and tell no more digits than that."
        )
    return "Every other count carries random noise: whole numbers of a publicly known law (page 2). A count may come out negative."


def _kept_line(card: Card) -> Html:
    kept = card["kept"]
    if not kept["totals"]:
        return text("No total is kept." if is_suppressed(card) else "No total is kept: every sum carries noise.")
    totals = f"{number(kept['totals'])} total{'' if kept['totals'] == 1 else 's'}"
    moved = moved_words(card)
    lead, rest = ("Kept", f". {moved}") if moved else ("Kept exactly", ".")
    return join(f"{lead}, without noise ({totals}, all in kept.csv): ", names(kept["statements"], SHOWN_STATEMENTS), rest)


def _protected(card: Card) -> Html:
    private = card["release"]["private"]
    warning = None if private else paragraph(tag("strong", "With a test key none of this holds."), " It would hold for a secret key.")
    max_records, unit = card["table"]["max_records"], card["guarantee"]["unit"]
    answers = card["guarantee"]["answers"]
    records = (
        "Neighbours whose invariants differ are not covered."
        if answers is not None
        else "It is for one record at a time: whoever has several is protected less."
        if max_records is None
        else f"A {unit} has at most {plural(max_records, 'record')} in the table."
    )
    return join(
        tag("h2", "What is protected"),
        warning,
        paragraph(card["guarantee"]["words"]),
        table("The promise in numbers", ("When", "The promise"), cost_rows(card)),
        paragraph(f"It holds between {card['guarantee']['relation']}. {records} Status: {card['guarantee']['status']}."),
    )


def _not_protected(card: Card) -> Html:
    lines = [
        text(_TOTALS if step_of(card) is None else _INVARIANTS),
        _exposed_line(card),
        text("Facts about groups. A table that is of any use shows them, and they may tell about a member of a group."),
        text("Anything outside this table: other tables, other files, what someone knows already."),
        text("Several releases from the same data: their promises add up, and what their kept totals expose together is exposed."),
    ]
    if card["guarantee"]["answers"] is not None:
        lines.append(text(_DECLARED))
    if not is_suppressed(card):
        lines.append(text("Anything, against someone who has the secret key of this release. The promise rests on it, and on the cipher."))
    if (changed := revision_words(card)) is not None:
        lines.insert(2, changed)
    if (told := LIST_TELLS.get(card["table"]["universe"])) is not None:
        lines.insert(2, text(told))
    return join(tag("h2", "What is not protected"), items(lines))


def _exposed_line(card: Card) -> Html:
    exposed = card["exposed"]
    pieces: list[str | None] = [exposed["words"], exposed_names(card)]
    if card["kept"]["zeros"]["cells"]:
        pieces.append(text(f" {card['kept']['zeros']['words']}"))
    return join(*pieces)


def _exact_parameters(card: Card) -> Html:
    mechanism, kept = card["mechanism"], card["kept"]
    leave = "leaves" if kept["independent"] == 1 else "leave"
    dimensions = f"{plural(kept['independent'], 'independent kept sum')} {leave} {plural(kept['free_dimensions'], 'free dimension')}"
    if kept["zeros"]["cells"]:
        dimensions += f"; cells left out of the draw: {number(kept['zeros']['cells'])}"
    rows = [
        ("Mechanism", text(f"{mechanism['name']}: {parameter_words(card)}")),
        ("Law of the noise", text(mechanism["law"])),
        ("Kept", text(dimensions)),
        ("Sampler", text(status_words(card))),
        *((f"Drawn: {group['kind']}", _group_line(group)) for group in card["sampler"]["groups"][:SHOWN_GROUPS]),
        *_more(card["sampler"]["groups"], SHOWN_GROUPS),
        ("Budget ledger", text(card["release"]["ledger_words"])),
    ]
    running = paragraph("Release ", name(card["release"]["id"]), ", table ", name(table_name(card)), ". Page 2 of 2.", class_="subtitle")
    return join(running, tag("h2", "Parameters"), table("How the noise is made and drawn", ("What", "Value"), rows))


def _group_line(group: Card) -> Html:
    return text(f"{group['sampler']}; {plural(group['blocks'], 'block')}, {plural(group['cells'], 'cell')}")


def _expected_error(card: Card) -> Html:
    error = card["expected_error"]
    if is_suppressed(card) or not error_is_known(card):
        return join(tag("h2", "Expected error"), paragraph(error["words"]))
    spread, zero = error["cell_standard_deviation"], without_noise(card)
    rows = [(f"One cell, {which}", sd_text(spread[which], zero)) for which in ("smallest", "median", "largest")]
    rows += [(name(margin["name"]), sd_text(margin["standard_deviation"], zero)) for margin in error["margins"][:SHOWN_MARGINS]]
    rows += _more(error["margins"], SHOWN_MARGINS)
    pairs = zip(level_rows(card), error["levels"], strict=True)
    units = [row for row, said in pairs if said["margin"] == "total" and said["level"] != "total"][-SHOWN_LEVELS:]  # the finest ones
    rows += [(join("Total of one of ", count, " units of the level ", level), spread) for level, _, count, spread in units]
    rows += [("Other levels and margins", "see card.json")] if len(units) < len(error["levels"]) else []
    caption = f"Standard deviation of the noise ({error['basis']})"
    return join(
        tag("h2", "Expected error"), paragraph(error["words"]), table(caption, (noun(card).capitalize(), "Standard deviation"), rows)
    )


def _software(card: Card) -> Html:
    versions = ", ".join(f"{key.replace('_', ' ')} {show(value)}" for key, value in card["software"].items())
    return join(tag("h2", "Software"), paragraph(versions, "."))


def _check(card: Card) -> Html:
    totals = (
        "each kept total over published counts is computed again and compared with kept.csv, the others are listed there"
        if is_suppressed(card)
        else "each kept total is computed again from the released counts and compared with kept.csv"
    )
    return join(
        tag("h2", "How to check"),
        paragraph(
            code("holdfast verify folder"),
            f" reads the published folder and needs no secret: {totals}, and every file is compared with its checksum in card.json.",
        ),
    )


def _sign() -> Html:
    rows = [tag("tr", tag("th", label, scope="row"), tag("td", "")) for label in ("Name", "Role", "Date", "Signature")]
    return join(tag("h2", "Sign-off"), tag("table", tag("caption", "Read and approved"), tag("tbody", *rows), class_="sign"))


def _more(rows: list[object], shown: int) -> list[tuple[str, str]]:
    return [(f"and {number(len(rows) - shown)} more", "see card.json")] if len(rows) > shown else []


_TOTALS = "The kept totals themselves, and whatever follows from them by arithmetic or by knowing that counts are not negative."
_DECLARED = (
    "Whoever can move the answers by more than is stated here. The sensitivity is declared, or computed from a query that is not "
    "published: no file shows that it is true."
)
_INVARIANTS = "The invariants themselves, and whatever follows from them by arithmetic."

_STYLE = """
@page { margin: 12mm 17mm; }
.sheet { border-bottom: 1px dashed #555; padding-bottom: 1em; margin-bottom: 1em; }
tbody th { min-width: 9em; }
.sign tbody th { padding-top: 1em; width: 9em; }
@media print {
  html { font-size: 9pt; line-height: 1.28; }
  h2 { margin-top: 0.8em; }
  p, ul, table { margin: 0.25em 0; }
  th, td { padding-top: 0.1em; padding-bottom: 0.1em; }
  .sheet { border: 0; padding: 0; margin: 0; page-break-after: always; break-after: page; }
  .sheet:last-child { page-break-after: auto; break-after: auto; }
}
"""
