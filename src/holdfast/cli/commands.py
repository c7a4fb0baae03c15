"""The `holdfast` command: arguments in, one library call, text or JSON out. Nothing is decided here.

Each command imports what it needs: loading everything takes 1.4 s more, and `--help` and refused arguments do not wait for it.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from holdfast import __version__
from holdfast.cli.cellkey import app as cellkey_app
from holdfast.cli.endings import mark_published, run_command, stands
from holdfast.cli.ledger import app as ledger_app
from holdfast.cli.ledger import ledger_of_release, ledger_text
from holdfast.cli.parts import AsJson, RunFile
from holdfast.cli.research import diagnose, synth
from holdfast.cli.starting import add_commands, answer_shell
from holdfast.display import step
from holdfast.errors import InvalidParameter, LedgerProblem, VerificationFailed, WouldBeRefused

if TYPE_CHECKING:
    from holdfast.accuracy.allocate import Allocation
    from holdfast.cli.demo import DemoRelease as DemoPart
    from holdfast.ledger import Ledger, NewLedger
    from holdfast.ledger.releases import Reservation
    from holdfast.ledger.values import PlannedCharge
    from holdfast.publication.booking import ChargedAccount
    from holdfast.publication.folder import Output
    from holdfast.publication.order import Beside as EarlierFolder
    from holdfast.publication.order import KeptRow, Order
    from holdfast.publication.plan import Plan
    from holdfast.runfiles.runfile import Run
    from holdfast.tables import Declarations
    from holdfast.tables import Table as HoldfastTable

app = typer.Typer(
    name="holdfast", help="Private count tables whose mandated totals hold exactly.", no_args_is_help=True, add_completion=False
)

app.add_typer(ledger_app, name="ledger")
app.add_typer(cellkey_app, name="cellkey")
add_commands(app)

Beside = Annotated[
    list[Path] | None,
    typer.Option("--with", help="The folder of an earlier release, to find what both expose together; repeat for more."),
]
Signer = Annotated[Path | None, typer.Option(help="The public key (PEM) that must have signed the card.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print each step to standard error. Can be given before or after the command.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a fault in Holdfast. Can be given before or after the command.")
    ] = False,
) -> None:
    """Private count tables whose mandated totals hold exactly."""


@app.command()
def demo(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New folder for the demo's files; by default a temporary one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Release two small made-up tables, end to end, in seconds."""
    from holdfast.cli.demo import run_demo
    from holdfast.wording.guarantee import promise_lines

    result = run_demo(output)
    if as_json:
        parts = [{"title": p.title, "folder": str(p.folder), "card": p.release.card.to_dict()} for p in result.parts]
        print(json.dumps({"folder": str(result.folder), "parts": parts}, indent=2))
        return
    console = Console(soft_wrap=True, highlight=False)
    first, second = result.parts
    console.print(_cross_table(first))
    console.print(*promise_lines(first.release.guarantee), sep="\n")
    console.print(f"{first.verified}\n")
    console.print(f"{second.title}: {len(second.release.table):,} cells.")
    console.print(*promise_lines(second.release.guarantee), sep="\n")
    console.print(f"{second.verified}\n")
    for part in result.parts:
        console.print(f"Report: {part.folder / 'report.html'}")
    installed = shutil.which("holdfast") is not None or Path(sys.argv[0]).name != "holdfast"  # after `make demo` it is in no PATH
    command = "holdfast" if installed else sys.argv[0]
    console.print(f"Try the first by hand: {command} release {result.folder / 'run.toml'} -o out")


def _cross_table(part: DemoPart) -> Table:
    """A released two-way table with its margins."""
    released = part.release.table
    rows, columns = (released.universe.codes[name] for name in released.universe.columns)
    counts = released.counts.reshape(len(rows), len(columns))
    table = Table(title=part.title, caption="Released counts. Row and column totals are the true ones, exactly.")
    for name in ("", *columns, "total"):
        table.add_column(name, justify="right")
    for name, row in zip(rows, counts.tolist(), strict=True):
        table.add_row(name, *map(str, row), str(sum(row)))
    table.add_row("total", *map(str, counts.sum(axis=0).tolist()), str(int(counts.sum())))
    return table


def make_plan(run: Run, table: HoldfastTable | Declarations, account: ChargedAccount | None = None, order: Order | None = None) -> Plan:
    """A plan, with signs of life; its module is loaded only by the commands that need it."""
    from holdfast.publication.order import Order
    from holdfast.publication.pipeline import plan_release

    with step("Planning"):
        made = plan_release(table, run.keep, run.mechanism, account, order or Order(run.id, disjoint=run.disjoint))
        made.expected_error  # noqa: B018  # may draw for seconds: now, while the sign is there
        return made


@app.command()
def plan(
    run_file: RunFile,
    ledger: Annotated[
        str | None, typer.Option(help="The ledger whose balance the price is compared with; by default the release's.")
    ] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Ignore the ledger.")] = False,
    target: Annotated[
        list[str] | None,
        typer.Option(help="A largest standard deviation, county=5 or county:sex=7.5: find the least rho and its shares; repeat for more."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show instead what each mechanism that works would give at the same budget.")
    ] = False,
    beside: Beside = None,
    as_json: AsJson = False,
) -> None:
    """Show what a release would do: kept, exposed, samplers, promise, expected error, price. No column of counts is read; nothing is
    written.
    """
    from holdfast.publication.folder import Output
    from holdfast.publication.history import with_earlier
    from holdfast.publication.order import Order
    from holdfast.publication.publication import check_extras
    from holdfast.runfiles.runfile import load_run
    from holdfast.wording.budget import limit_warnings
    from holdfast.wording.exposure import to_acknowledge_sentence
    from holdfast.wording.ledger import price_sentences

    run = load_run(run_file)
    with step("Reading the codes"):
        table = run.read_declarations()
    found = _allocate_budget(run, table, target) if target else None
    run = run if found is None else dataclasses.replace(run, mechanism=found.mechanism)
    if compare:
        _compare_mechanisms(run, table, as_json)
        return
    made = make_plan(run, table)
    check_extras(Output(Path("out"), view_base=run.view_base, map=run.map), made)  # what the release would refuse
    order = Order(run.id, disjoint=run.disjoint, beside=_read_earlier(beside))
    said, releases = _price(run, made, order, ledger, no_ledger)
    made = with_earlier(made, releases, order)
    refused = None if said is None else said.problem
    limited = refused is not None or (said is not None and said.balance is not None and said.balance.granted is not None)
    more = limit_warnings(made.guarantee, said is not None, limited)
    with step("Planning"):
        fields, text = (made.to_fields(), "") if as_json else ({}, str(made))
    if as_json:
        fields = fields if found is None else {"allocation": found.to_fields(), **fields}
        fields["warnings"] = [*fields["warnings"], *(warning.to_dict() for warning in more)]
        fields |= {"allow_exposed": run.allow_exposed, "price": said and said.to_fields(), "missing": run.missing_secret()}
        if refused is not None:
            raise WouldBeRefused(refused, details=fields)
        print(json.dumps(fields, indent=2))
        return
    if found is not None:
        print(f"{found}\n\n{found.to_paste}\n")
    print(*(f"WARNING    {warning.text}" for warning in more), text, sep="\n")
    if said is not None:
        print(f"Price      {price_sentences(said)}")
    if (missing := run.missing_secret()) is not None:
        print(f"Missing    {missing} The release is refused without it.")
    if (line := to_acknowledge_sentence(made.exposure.to_acknowledge, run.allow_exposed)) is not None:
        print(f"To write   {line}")
    elif missing is None and found is None and (said is None or said.problem is None):  # nothing stands in its way
        again = ["--resume"] if said is not None and said.begun else []
        print(f"Next       {_command(run_file, Path('out'), ledger, no_ledger, *again)}")
    if refused is not None:
        raise WouldBeRefused(f"The plan stands, and the release would be refused: {refused}")


def _compare_mechanisms(run: Run, table: Declarations | HoldfastTable, as_json: bool) -> None:
    """Print what each mechanism would give for the run's table and kept totals, at its budget."""
    from holdfast.publication.comparison import compare

    with step("Comparing mechanisms"):
        found = compare(table, run.keep, run.mechanism)
    print(json.dumps(dataclasses.asdict(found), indent=2) if as_json else found)


def _allocate_budget(run: Run, table: Declarations | HoldfastTable, targets: list[str]) -> Allocation:
    """The least budget for these targets, for the run's table, kept totals and `per`."""
    from holdfast.accuracy.allocate import allocate, check_divides, read_targets

    check_divides(run.mechanism)
    with step("Dividing the budget"):
        return allocate(table, run.keep, read_targets(targets), per=run.mechanism.per)


def _folder_of(run_file: Path) -> Path:
    """Where the run file is kept. A link to it stands for the file: else it would have a second ledger."""
    return run_file.resolve().parent


def _price(run: Run, plan: Plan, order: Order, ledger: str | None, no_ledger: bool) -> tuple[PlannedCharge | None, Iterable[Reservation]]:
    """(what the release would cost, against what its ledger has left, None where it uses none and needs none; the releases in it)."""
    from holdfast.publication.booking import ChargedAccount
    from holdfast.publication.pipeline import price, price_without_ledger, refused_price
    from holdfast.randomness.keys import secret_from_environment

    try:
        book = ledger_of_release(ledger, no_ledger, run.ledger, _folder_of(run.path), run.witness, read_only=True)
        order = dataclasses.replace(order, revises=_read_revised_rows(run))
    except (LedgerProblem, VerificationFailed, InvalidParameter) as problem:  # refused; a plan is worth having all the same
        return refused_price(plan, run.dataset, str(problem)), ()
    if book is None:
        return price_without_ledger(plan, run.dataset, order), ()
    account = ChargedAccount(book, run.dataset, secret_from_environment())
    return price(plan, account, order), account.ledger.account(run.dataset).releases.values()


def _read_earlier(folders: list[Path] | None) -> tuple[EarlierFolder, ...]:
    """Earlier releases, each verified and read from its folder."""
    if not folders:
        return ()
    from holdfast.verification.verify import load

    with step("Reading earlier releases"):
        return tuple(load(folder).as_earlier for folder in folders)


app.command()(diagnose)


@app.command()
def release(
    run_file: RunFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; it must not exist, or be empty.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a folder that holds another release.")] = False,
    ledger: Annotated[
        str | None,
        typer.Option(help="The ledger that records it: a file or a postgresql:// URL; by default one beside the run file, made if needed."),
    ] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Record it in no ledger; card and pages say so.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a release that was interrupted.")] = False,
    beside: Beside = None,
    as_json: AsJson = False,
) -> None:
    """Draw the noise and write the output folder: tables, kept totals, card, statement, report."""
    from holdfast.display import count_of
    from holdfast.publication.booking import check_recorded, standing
    from holdfast.publication.folder import Output, release_in
    from holdfast.publication.given_files import CARD
    from holdfast.publication.listings import EXPOSED_FILE
    from holdfast.publication.order import Order
    from holdfast.publication.pipeline import for_table
    from holdfast.runfiles.runfile import load_run
    from holdfast.wording.answers import rounded_totals_sentence
    from holdfast.wording.guarantee import guarantee_info, promise_lines
    from holdfast.wording.ledger import charged_sentence
    from holdfast.wording.samplers import long_draw_sentence

    run = load_run(run_file)
    account = _account(run, ledger_of_release(ledger, no_ledger, run.ledger, _folder_of(run_file), run.witness), resume)
    # an earlier release that cannot be read is refused before anything else is done
    said = (run.date, _read_revised_rows(run), run.allow_exposed, run.office, run.approver, run.disjoint)
    order = Order(run.id, *said, beside=_read_earlier(beside))
    check_recorded(order, account)
    with step("Reading the table"):
        table = run.read_table()
    made = make_plan(run, table, account, order)
    if told := long_draw_sentence(made.drawing.cell_draws):
        logging.getLogger("holdfast").info(told)  # where there is no terminal, no bar shows that it is alive
    named = () if account is None else ledger_text(ledger, run.ledger, _folder_of(run_file))
    command = _command(run_file, output, ledger, no_ledger, *(["--force"] if force else []))
    stands(standing(account, run.id, output, f"{command} --resume", named))
    made = for_table(made, table)  # what is told below is what the card says
    wanted = Output(output, run.formats, run.sign, force, run.formulas, run.view_base, run.map)
    before = release_in(output) if force else None
    replaced = None if resume and before == run.id else before  # a release that is resumed may be in place already
    entry = _carry_out(run, order, made, table, wanted, account, resume)
    mark_published()
    card = json.loads((output / CARD).read_bytes())
    exposed, warned = card["exposed"], card["warnings"]  # the values of the totals are public now
    if as_json:
        fields = {"folder": output.name, "id": run.id, "cells": len(table), "ledger": entry, "replaced": replaced, "exposed": exposed}
        fields["warnings"] = warned
        print(json.dumps({**fields, "guarantee": guarantee_info(made.guarantee).to_dict()}, indent=2))
        return
    kept = count_of(f"{sum(rows.count for rows in made.facts.kept.rows if rows.kind == 'kept'):,}", "kept total")
    measure = made.facts.measure
    exact = f". {rounded_totals_sentence(measure.step_text)}" if measure.round_totals else " exact."
    print(f"Released {run.id}: {len(table):,} cells, {kept}{exact}")
    for warning in warned:
        print(f"WARNING: {warning['text']}")
    if replaced is not None:
        print(f"It replaced the release {replaced} in {output}.")
    print(f"{exposed['text']} See {output / EXPOSED_FILE}." if exposed["cells"] else exposed["text"])
    print(*promise_lines(made.guarantee), sep="\n")
    print(charged_sentence(entry, [] if account is None else account.open_ledger().account(run.dataset).balances()))
    print(f"Read {output / 'report.html'}; check with: holdfast verify {output}")


def _command(run_file: Path, output: Path, ledger: str | None, no_ledger: bool, *more: str) -> str:
    """The command that makes this release, each option once however often it was typed. A URL may hold a password and is left out."""
    place = ["--no-ledger"] if no_ledger else [] if ledger is None else ["--ledger", "URL" if "://" in ledger else ledger]
    return shlex.join(["holdfast", "release", str(run_file), "-o", str(output), *place, *more])


def _account(run: Run, ledger: Ledger | NewLedger | None, resume: bool) -> ChargedAccount | None:
    """Where the release is charged; what the ledger refuses already is refused before the table is read."""
    from holdfast.ledger import Ledger
    from holdfast.mechanisms.requests import ChainMechanism
    from holdfast.publication.booking import ChargedAccount
    from holdfast.randomness.keys import secret_from_environment

    if resume and not isinstance(ledger, Ledger):
        raise LedgerProblem("There is no ledger to resume from. Name the one that the release was begun in with --ledger.")
    if ledger is None:
        return None
    account = ChargedAccount(ledger, run.dataset, secret_from_environment())
    account.check_id(run.id, resume)
    if isinstance(run.mechanism, ChainMechanism) and run.mechanism.request.names_a_chain:
        account.check_takes_estimates()
    return account


def _carry_out(
    run: Run, order: Order, plan: Plan, table: HoldfastTable, output: Output, account: ChargedAccount | None, resume: bool
) -> str | None:
    """Draw and publish, charged to this account if there is one; returns the ledger's entry."""
    from holdfast.publication.pipeline import carry_out

    if account is not None and not account.can_resume and account.ledger.account(run.dataset).grants:
        from holdfast.wording.ledger import NO_KEY, NO_STATE

        print(NO_KEY if account.secret is None else NO_STATE, file=sys.stderr)  # before anything is drawn
    return carry_out(plan, table, order, output, account, resume=resume)


def _read_revised_rows(run: Run) -> tuple[str, tuple[KeptRow, ...]] | None:
    from holdfast.verification.verify import published_rows

    if run.revises is None:
        return None
    earlier, rows = published_rows(run.revises, signer=run.revises_signer)
    return earlier, tuple(rows)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A published folder.")],
    against: Annotated[Path | None, typer.Option(help="A file of official totals (.csv, .parquet) to compare with.")] = None,
    signer: Signer = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if anything could not be compared.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a published folder from its files alone: checksums, signature, every kept total, and all that the card and the pages say.
    For cell key folders, check what can be checked.
    """
    from holdfast.verification.verify import verify as check

    found = check(folder, against, signer=signer, strict=strict)
    print(json.dumps(dataclasses.asdict(found), indent=2) if as_json else found)


@app.command()
def interval(
    folder: Annotated[Path, typer.Argument(help="A published folder; it is verified first.")],
    where: Annotated[
        list[str] | None, typer.Option(help="Which cells are added up: \"county = '17031' and age >= 18\". May be repeated.")
    ] = None,
    by: Annotated[list[str] | None, typer.Option(help="Every sum of a margin, by this column or level or by several: county:sex.")] = None,
    minus: Annotated[str | None, typer.Option(help="Subtract the cells that meet this condition: a difference.")] = None,
    over: Annotated[str | None, typer.Option(help="Divide by the cells that meet this condition: a ratio.")] = None,
    percent_of: Annotated[str | None, typer.Option(help="The same in percent.")] = None,
    level: Annotated[float, typer.Option(help="Probability, between 0 and 1.")] = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous/--each", help="All intervals hold at once with this probability, or each for itself.")
    ] = True,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="Use the fact that counts cannot be negative.")] = False,
    method: Annotated[str, typer.Option(help="auto; proved: without draws; or simulated: from draws alone.")] = "auto",
    signer: Signer = None,
    as_json: AsJson = False,
) -> None:
    """Say where true numbers lie, from a published folder alone: sums of cells, differences, ratios, percentages, whole margins."""
    from holdfast.cli.intervals import asked_intervals
    from holdfast.verification.verify import load
    from holdfast.wording.intervals import interval_lines

    published_folder = load(folder, signer=signer)
    others = {"minus": minus, "over": over, "percent_of": percent_of}
    how: Any = {"nonnegative": nonnegative, "method": method}
    found, cut = asked_intervals(published_folder, where or (), by or (), others, level, simultaneous, **how)
    fields = {**found.to_fields(), "nonnegative": cut} if as_json else {}
    print(json.dumps(fields, indent=2) if as_json else "\n".join(interval_lines(found.for_screen(cut))))


@app.command()
def view(
    folder: Annotated[Path, typer.Argument(help="A published folder; it is verified first.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Table to write (.csv, .parquet), and beside it a .json that says what it is.")
    ] = None,
    base: Annotated[int, typer.Option(help="Numbers are multiples of it: 1, 3, 5 or 10.")] = 1,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative/--allow-negative", help="Cut off at zero; else only round to the base.")
    ] = True,
    signer: Signer = None,
    as_json: AsJson = False,
) -> None:
    """Make counts for print from a published folder: not negative, additive, every kept total exact; biased, and says by how much."""
    from holdfast.verification.verify import load

    published_folder = load(folder, signer=signer)
    made = published_folder.view(nonnegative=nonnegative, base=base)
    fields = made.to_fields()
    written = [] if output is None else [path.name for path in made.save(output)]
    if as_json:
        print(json.dumps({**fields, "files": written}, indent=2))
        return
    print(made)
    if output is not None:
        print(f"Written: {' and '.join(written)}.")


@app.command()
def warm(as_json: AsJson = False) -> None:
    """Compile the fast loops and keep them for later runs."""
    from holdfast.cli.warm import warm as compile_loops

    seconds = compile_loops()
    print(json.dumps({"seconds": round(seconds, 1)}) if as_json else f"compiled loops ready ({seconds:.1f} s)")


app.command()(synth)


def main() -> None:
    """Entry point; cli/endings.py says how every command ends."""
    answer_shell()
    run_command(app)


if __name__ == "__main__":
    main()
