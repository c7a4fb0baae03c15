"""How a command ended: what to do about each kind of error, and what the ledger has recorded after a stop."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

WHAT_TO_DO = {
    "holdfast": "Read the message.",
    "invalid-parameter": "Write what the message says.",
    "inexact-parameter": "Write the number as the text that the message shows.",
    "request-too-large": "Ask for less at a time, or for smaller noise.",
    "key-misuse": "Open one key for one release, and neither copy nor pickle it.",
    "stream-reused": "Use another label, or resume at the right place.",
    "key-closed": "Open a new key.",
    "forked-key": "Open the key in the process that uses it.",
    "key-exhausted": "Derive a subkey.",
    "precision-exhausted": "Use parameters of ordinary size. Draws are not affected.",
    "invalid-table": "Correct the file, column and row that the message names.",
    "unreadable-input": "Correct the file, line, constraint or key that the message names.",
    "unknown-column": "Write the name as the source has it; the message lists names that are close.",
    "invalid-code": "Cast codes to text at the source, so that 01 stays 01, or declare the code.",
    "invalid-count": "Correct the row that is named, or cast the column to whole numbers.",
    "duplicate-cells": "Add such rows up, or name all columns that tell cells apart.",
    "empty-table": "Check the file or the query.",
    "outside-universe": "Declare these codes or cells, or recode the records.",
    "too-many-records": 'Raise max_records, which needs more noise, or count a sample of each person\'s records: over = "sample".',
    "out-of-scope": "Count records without weights, or use hf.answer for real-valued answers.",
    "confidential-table": "Save the table to a file and protect that file.",
    "invalid-constraint": "Name columns and codes that exist; the message shows them.",
    "contradicting-totals": "Correct the declared values that the message names.",
    "nothing-left": "Keep fewer totals, or publish without noise.",
    "outside-bounds": "Correct the table, or give wider bounds.",
    "no-table-within": "Correct the bounds or the totals that the message names.",
    "not-acknowledged": "Look at the cells, then write the line that the message shows, or keep fewer totals.",
    "invalid-hierarchy": "Correct the codes that the message names.",
    "invalid-run": "Correct the field and line of the run file that are named.",
    "no-exact-sampler": "Take one of the alternatives that the message names.",
    "chain-problem": "Use an exact sampler, or another chain.",
    "unreachable-lattice": "Use another chain, or an exact sampler.",
    "no-meeting": "Allow more steps, or use another kernel.",
    "output-problem": "Make room or get the rights, and run the command again.",
    "output-exists": "Choose another name; the message says whether --force can replace what is there.",
    "identical-release": "Use the folder as it is, or give the release a new id.",
    "verification-failed": "Do not use the folder; ask its publisher.",
    "invariant-broken": "Please report it. Nothing was written.",
    "ledger-problem": "Check which ledger is named, and what the message says of it.",
    "would-be-refused": "Look at the plan and the reason that the message gives; grant more, ask for less, or take another id.",
    "no-grant": "Grant a budget with holdfast ledger grant.",
    "budget-exceeded": "Grant more, or ask for less.",
    "wrong-state": "See where the release stands with holdfast ledger show.",
    "other-input": "Resume with the same data and the same version, or void the release.",
    "ledger-broken": "Compare the ledger with copies and with published cards.",
    "witness-mismatch": "Put the latest copy of the ledger back; or accept the restore, which charges what may have been lost.",
    "no-witness": "Name a folder that lasts: witness = ... under [release], HOLDFAST_WITNESS or HOLDFAST_STATE.",
    "wrong-use": "Run the command with --help.",
    "stopped": "Do what the message says about the ledger, or run the command again.",
    "terminated": "Do what the message says about the ledger, or run the command again.",
    "after-publication": "Do not release it again: use the folder, and do what the message says.",
    "message-not-written": "Make room, or write elsewhere; the message says what stands.",
    "out-of-memory": "Do what the message says about the ledger; use a machine with more memory, or a smaller table.",
    "internal-error": "Please report it, with the traceback that --debug shows. Read it first.",
}
"""By the code of an error. docs/errors.md lists the same; a test compares them."""


class Stands(NamedTuple):
    """What is true of a command that ended early."""

    sentence: str
    published: bool = False


NOTHING_BEGUN = "Nothing was charged, and nothing was left behind."

NOTHING_CHARGED = "Nothing was charged, and nothing of the release was left behind."
"""Where there is a ledger, which may have been made for this release."""

PUBLISHED = "The release is published."
PUBLISHED_UNCHARGED = "The release is published, and charged to no ledger."

UNKNOWN = "The state of the ledger could not be read. See: holdfast ledger show"

UNWRITTEN = "Nothing was written to the ledger."
MADE = "The ledger was made."
GRANTED = "The grant is in the ledger."
DECLARED = "The units are declared, and the ledger says so."
TAKEN_BACK = "The grant was taken back, and the ledger says so."
ACCEPTED = "The restore was accepted, and the ledger says so."
VOIDED = "The release was given up, and the ledger says so."


def standing_sentences(state: str | None, resumable: bool, resume: str, dataset: str, release_id: str, ledger: Sequence[str] = ()) -> str:
    """What is true of a release that was stopped, from its state in the ledger. `resumable`: the command `resume` can. `ledger`: the words
    with which `holdfast ledger` finds it from here.
    """
    void = f"{shlex.join(['holdfast', 'ledger', 'void', dataset, release_id])} --reason {shlex.join(['...', *ledger])}"
    if state is None or state == "voided":
        return NOTHING_CHARGED
    if state in ("published", "closed"):
        rest = "" if state == "closed" else f" Close its entry with: {resume}"
        return f"The release is published, and its charge is in the ledger.{rest}"
    if state in ("staged", "committed"):
        return f"The release is charged and complete, and not yet under its name. Publish it with: {resume}"
    if state == "reserved":
        able = (
            f"Resume it with: {resume} Or take it back with: {void}" if resumable else f"It cannot be resumed without HOLDFAST_KEY: {void}"
        )
        return f"The charge is reserved in the ledger; nothing was drawn or published. {able}"
    able = (
        f"Resume it with: {resume} (the same noise is drawn)"
        if resumable
        else f"It cannot be resumed, because HOLDFAST_KEY was not set: give it up with {void} and take a new id"
    )
    return f"The release is charged in the ledger; nothing was published. {able}"


UNTOLD = "What the command had to say could not be written: standard output is full or closed."
STOPPED_AFTER = "The command was stopped while it was saying so."
MEMORY = "Memory ran out."
LAST_LINE = b"holdfast: Memory ran out, or worse, and what stands could not be found out. See: holdfast ledger show\n"
LAST_LINE_PUBLISHED = b"holdfast: The release is published. Memory ran out, or worse, while that was being said.\n"


def after_sentences(failed: str, stands: str) -> str:
    """Say that a release is published and that something failed after that."""
    return f"Published, but: {failed} {stands}"


def unclosed_sentences(problem: str, resumable: bool) -> str:
    """A release is published, and its entry in the ledger could not be closed."""
    rest = " When that is fixed, run the command again with --resume; nothing is drawn again." if resumable else ""
    return f"The release is published, and its charge is in the ledger. Its entry could not be closed: {problem}{rest}"


def removed_sentence(name: str) -> str:
    """Say that the remains of a killed run beside the output were removed."""
    return f"Removed {name!r}, which a killed run had left. It was not published."


def left_over_sentence(name: str, replaced: bool) -> str:
    """Say that the remains of a killed run beside the output were not removed."""
    if replaced:
        return f"A killed run left {name!r}: it holds the release that was being replaced. Give it its name again, or remove it."
    return f"A killed run left {name!r}, and it could not be removed, or belongs to another user. It was not published. Remove it."


SECRET_ELSEWHERE = (
    "The second secret of this release is in the state folder of the machine or user that began it. It is destroyed when a release is next "
    "made with this ledger there."
)


def unsaved_sentences(dataset: str, release_id: str, is_complete: bool) -> str:
    """Explain what to do with a release that Python is asked to draw and that was begun before. `is_complete`: its folder was written."""
    if is_complete:
        return (
            f"The release {release_id!r} was drawn, and its save was interrupted. Call save() again on what hf.release returned, with the "
            "same folder. If that is gone, finish it with `holdfast release RUN_FILE --resume` and a run file that says the same."
        )
    command = shlex.join(["holdfast", "ledger", "void", dataset, release_id])
    return (
        f"The release {release_id!r} was drawn but not saved. Call save() on what hf.release returned. If that is gone, its charge stays "
        f"spent: void it with `{command} --reason ...` (in Python Ledger.void), and use a new release_id. If the command began it, resume "
        "it with `holdfast release RUN_FILE --resume`."
    )


def already_over(release_id: str, state: str) -> str:
    """Explain why a release that was drawn is not written: it is published, or was given up."""
    if state.startswith("voided"):
        return f"The release {release_id!r} was voided in the ledger, so it is not written. Release under a new id."
    return f"The release {release_id!r} is already published. It is not written a second time: copy the folder it was saved in."


def not_resumable(release_id: str, is_sealed: bool, is_secret_given: bool) -> str:
    """Explain why a release cannot be resumed, and what becomes of its charge."""
    if not is_sealed:
        why = "its key was not sealed"
    elif not is_secret_given:
        why = "the secret that sealed its key was not given. Give HOLDFAST_KEY (or HOLDFAST_KEY_FILE) as it was"
    else:
        why = (
            "the second secret that sealed its key is not in the state folder. Resume it on the machine, and as the user, that began it, "
            "with the same HOLDFAST_STATE"
        )
    return (
        f"The release {release_id!r} cannot be resumed: {why}. Or give it up with `holdfast ledger void`: what was reserved stays spent if "
        "drawing had begun."
    )


def fault_sentence(kind: str, place: str | None, published: bool = False) -> str:
    """What is said of an exception that nobody foresaw; its own text is left out, since it may quote the data. A command that has published
    is not to be run again.
    """
    where = "" if place is None else f" at {place}"
    again = "Please" if published else "Run the command again with --debug for the traceback, and please"
    return f"This is a fault in Holdfast: {kind}{where}. {again} report it."
