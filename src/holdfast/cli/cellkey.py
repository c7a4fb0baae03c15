"""`holdfast cellkey`: design and check perturbation tables, and publish tables by the cell key method.

Each command imports what it needs: that takes 1.2 s, and `--help` and other commands do not wait for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.endings import mark_published, stands
from holdfast.cli.ledger import ledger_of_release, ledger_text
from holdfast.cli.parts import AsJson
from holdfast.display import split_names
from holdfast.errors import InvalidParameter

if TYPE_CHECKING:
    from holdfast.cellkey import PerturbationTable

app = typer.Typer(help="The cell key method: design, check, perturb. It gives no differential privacy guarantee.", no_args_is_help=True)

Kind = Annotated[str | None, typer.Option(help="Kind of file: json, ptable, sas, ons or superstar; by default what its first line shows.")]
Repeat = Annotated[int | None, typer.Option(help="How many last rows serve larger counts in turn, where the file does not say.")]
Threshold = Annotated[int | None, typer.Option(help="Publish 0 in place of every value below it, as ONS leaves such values out.")]
Mix = Annotated[bool, typer.Option("--mix", help="Mix cell keys before noise is looked up: gaps between tables then tell less.")]
Rescale = Annotated[
    bool,
    typer.Option(
        "--rescale",
        help="Fit the perturbation table to another number of cell keys. This changes the law of the noise; the new delta is printed.",
    ),
]
OtherNoise = Annotated[
    bool, typer.Option("--other-noise", help="Publish though earlier releases have another secret, column, rule or perturbation table.")
]
OtherRecords = Annotated[
    str | None,
    typer.Option("--other-records", help="Why these are other records than those of other data sets in the ledger; it is recorded."),
]


@app.command()
def design(
    epsilon: Annotated[str | None, typer.Option(help="Wanted epsilon for one cell and one answer, such as 0.5 or 1/2.")] = None,
    delta: Annotated[str | None, typer.Option(help="Wanted delta, such as 1e-4.")] = None,
    largest: Annotated[int | None, typer.Option("--max", help="Largest noise, where no epsilon and delta are given.")] = None,
    variance: Annotated[str | None, typer.Option(help="Variance of the noise, with --max.")] = None,
    js: Annotated[int, typer.Option(help="With --max: results 1 to js never occur.")] = 0,
    stay: Annotated[str | None, typer.Option(help="With --max: least probability that a count stays as it is, such as 0.5.")] = None,
    monotone: Annotated[bool, typer.Option("--monotone", help="With --max: chances do not fall from the lowest noise up to none.")] = False,
    allow_short: Annotated[bool, typer.Option("--allow-short", help="With --max: small counts may have less than the variance.")] = False,
    key_size: Annotated[str, typer.Option(help="Number of cell keys: 2^32, 4096, or 0.8 for decimals of 8 digits.")] = "2^32",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Perturbation table to write; an existing file is not touched.")
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of file to write: json, ptable, sas, ons or superstar.")] = "json",
    page: Annotated[Path | None, typer.Option(help="Page (HTML) to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find noise of maximum entropy with this (epsilon, delta), or with this range and variance, and write rows for all counts.

    For (epsilon, delta) the support is the smallest by Proposition 3 of [SC22]. Beside it: the best gamma on that support, the smallest
    support with any gamma, and a truncated discrete Laplace. Smaller counts have rows of largest entropy, and zeros stay zero.
    """
    from holdfast.cellkey import KeySpace, design_rows, write_table
    from holdfast.cellkey import design as find
    from holdfast.cellkey.check import check_design, check_table
    from holdfast.publication.cellkey import check_json, check_place, design_json, save_page
    from holdfast.wording.cellkey import check_screen, design_screen

    size = KeySpace.parse(key_size).size
    for path in (output, page):
        if path is not None:
            check_place(path)
    is_for_rows = any(given is not None for given in (largest, variance, stay)) or js or monotone or allow_short
    if epsilon is not None and delta is not None and not is_for_rows:
        made = check_design(find(epsilon, delta), size)
        checked, shown, fields = made.check, design_screen(made) + "\n", design_json(made)
    elif epsilon is None and delta is None and largest is not None and variance is not None:
        rows = design_rows(largest, variance, js=js, stay=stay, monotone=monotone, allow_short=allow_short)
        checked = check_table(rows.quantised(size), name=f"Design for noise up to {largest}, variance {variance}", law=rows)
        shown, fields = "", check_json(checked)
    else:
        raise InvalidParameter(
            "A design needs --epsilon and --delta, or --max and --variance. --js, --stay and the like go with --max. Give one pair."
        )
    if output is not None:
        write_table(checked.table, output, kind)  # type: ignore[arg-type]  # another kind is refused there
    if page is not None:
        save_page(checked, page)
    print(json.dumps(fields, indent=2) if as_json else shown + check_screen(checked))


@app.command()
def check(
    table: Annotated[Path, typer.Argument(help="A perturbation table.")],
    kind: Kind = None,
    repeat: Repeat = None,
    threshold: Threshold = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Page (HTML) to write; an existing file is not touched.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the noise of each count and the (epsilon, delta) of a perturbation table, as it is and with fewer keys."""
    from holdfast.cellkey.check import check_table
    from holdfast.publication.cellkey import check_json, save_page
    from holdfast.wording.cellkey import check_screen

    checked = check_table(_read(table, kind, repeat, threshold), name=table.name)
    if output is not None:
        save_page(checked, output)
    print(json.dumps(check_json(checked), indent=2) if as_json else check_screen(checked))
    if output is not None and not as_json:
        print(f"Read {output}")


@app.command()
def perturb(
    source: Annotated[Path, typer.Argument(help="Records, or cells with counts: .csv, .tsv, .parquet or .xlsx.")],
    tables: Annotated[
        list[str], typer.Option("--table", help="A table as name=column:column; repeat for more. `all=` is the total alone.")
    ],
    noise: Annotated[Path, typer.Option(help="The perturbation table.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; it must not exist.")],
    key: Annotated[str, typer.Option(help="Column of keys.")] = "record_key",
    keys: Annotated[str, typer.Option(help="What record keys are: 2^32, 2^64, 256, 4096, or 0.8 for decimals of 8 digits.")] = "2^32",
    modulus: Annotated[
        int,
        typer.Option(help="Sums of keys are taken modulo this, by default the number of record keys; for files of ONS that of the table."),
    ] = 0,
    mix: Mix = False,
    rescale: Rescale = False,
    id: Annotated[str | None, typer.Option(help="Column of identifiers; no two records may share one.")] = None,
    secret: Annotated[Path | None, typer.Option(help="File of RecordKeys: keys are made from --id, and no column of keys is read.")] = None,
    count: Annotated[str | None, typer.Option(help="Column of counts, where rows are cells with sums of keys.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of weights.")] = None,
    allow_similar_codes: Annotated[
        bool, typer.Option("--allow-similar-codes", help="Codes may differ in blanks, case or Unicode form only.")
    ] = False,
    kind: Kind = None,
    repeat: Repeat = None,
    threshold: Threshold = None,
    release_id: Annotated[str | None, typer.Option("--name", help="Id of the release; by default the name of the folder.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set in the ledger; by default the name of the file.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that records it; by default one beside the data, made if needed.")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Record it in no ledger.")] = False,
    other_noise: OtherNoise = False,
    other_records: OtherRecords = None,
    as_json: AsJson = False,
) -> None:
    """Publish tables whose cells have the noise of their records' keys: the same records, the same noise, always."""
    from holdfast.cellkey import CellKeys, KeySpace, RecordKeys, tabulate
    from holdfast.mechanisms import CellKey
    from holdfast.publication.booking import ChargedAccount, standing
    from holdfast.publication.cellkey import check_place
    from holdfast.publication.given_files import TABLES
    from holdfast.publication.pipeline import release
    from holdfast.wording.cellkey import published_screen, rescaled_sentences

    check_place(output)
    book = ledger_of_release(ledger, no_ledger, None, source.resolve().parent)
    if book is not None:
        book.check_witness()
    ptable = _read(noise, kind, repeat, threshold)
    rule = CellKeys.for_table(KeySpace.parse(keys), ptable, modulus=modulus, mixed=mix)
    fitted = ptable.rescaled(rule.size, allow_lost=False) if rescale else ptable
    mechanism = CellKey(table=fitted, keys=rule, weighted=weight is not None, other_noise=other_noise, other_records=other_records)
    made = tabulate(
        source,
        _tables(tables),
        mechanism,
        key=key,
        id=id,
        secret=None if secret is None else RecordKeys.load(secret),
        count=count,
        weight=weight,
        allow_similar_codes=allow_similar_codes,
    )
    name, account = release_id or output.name, dataset or source.stem
    charged = None if book is None else ChargedAccount(book, account)
    named = ledger_text(ledger, None, source.resolve().parent)
    stands(standing(charged, name, output, "the same command", named, needs_key=False))
    published = release(made, [], mechanism, ledger=book, release_id=name, dataset=account)
    try:
        published.save(output)
    except BaseException:
        published.give_up()
        raise
    mark_published()
    told = rescaled_sentences(ptable, fitted)
    if as_json:
        print(json.dumps({**json.loads((output / TABLES).read_bytes()), "text": [*told, *published.sentences]}, indent=2))
        return
    gaps = [gap.text for gap in published.gaps]
    cells = {table: len(one.table) for table, one in published.items()}
    print(published_screen(cells, [*gaps, *told, *published.sentences], published.entry, is_private=published.private))


def _read(path: Path, kind: str | None, repeat: int | None, threshold: int | None) -> PerturbationTable:
    from holdfast.cellkey import read_table

    table = read_table(path, kind, repeat=repeat)  # type: ignore[arg-type]  # another kind is refused there
    return table if threshold is None else table.with_threshold(threshold)


def _tables(given: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, columns = text.partition("=")
        if not equals or name in found or "," in columns:
            raise InvalidParameter(
                f"A table is written as name=column:column, with a name of its own. Got {text!r}. For example --table ages=region:age.",
                field="table",
            )
        found[name] = [column for column in split_names(columns) if column]
    return found
