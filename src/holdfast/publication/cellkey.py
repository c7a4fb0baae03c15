"""A check or a design of perturbation tables as JSON, and its page."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path

from holdfast.cellkey.check import Check, DesignCheck
from holdfast.cellkey.loss import Losses
from holdfast.errors import OutputExists, OutputProblem
from holdfast.publication.folder import output_problem
from holdfast.report.cellkey import cellkey_html
from holdfast.wording.cellkey import check_sentences, key_size_text, missed_sentence
from holdfast.wording.cellkey_losses import counts_text


def check_json(check: Check) -> dict[str, object]:
    """A check as JSON has it, with its sentences."""
    pairs = {"all": check.losses, "from_1": check.above_zero, "design": check.before}
    return {
        "name": check.name,
        "table": asdict(check.figures),
        "losses": {name: None if losses is None else _losses_json(losses) for name, losses in pairs.items()},
        "rows": [asdict(row) for row in check.rows],
        **{"more_rows": check.more_rows, "curves": check.curves},
        "key_sizes": [
            {"key_size": size.key_size, "lost": size.lost, **_losses_json(size.losses), "curve": size.curve, "text": key_size_text(size)}
            for size in check.key_sizes
        ],
        "text": check_sentences(check),
    }


def _losses_json(losses: Losses) -> dict[str, object]:
    return {
        "counts": counts_text(losses),
        "worst": losses.worst.at_least,
        "plateau": losses.plateau,
        "plateau_epsilon": losses.plateau_epsilon,
    }


def design_json(made: DesignCheck) -> dict[str, object]:
    """A design as JSON has it, with the check of its table."""
    others = ("best", "smallest", "laplace")
    own = {field.name: getattr(made, field.name) for field in fields(made) if field.name not in (*others, "check")}
    return {
        **own,
        "others": {name: asdict(getattr(made, name)) for name in others},
        "missed": None if made.check.missed is None else missed_sentence(made.check.missed),
        "check": check_json(made.check),
    }


def save_page(check: Check, path: Path) -> None:
    """Write the page of a check; an existing file is left as it is."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(cellkey_html(check))
        taken = False
    except FileExistsError:
        taken = True
    except OSError as error:
        raise output_problem(error, path) from None
    if taken:
        raise OutputExists(f"{path.name!r} exists and is left as it is. Choose another name.")


def check_place(folder: Path) -> None:
    """Refuse a folder or file that could not be written, before anything is read."""
    if os.path.lexists(folder):
        raise OutputExists(f"{folder.name!r} already exists. Choose another name.")
    if not folder.absolute().parent.is_dir():
        raise OutputProblem(f"The folder that should hold {folder.name!r} does not exist. Create it first.")
