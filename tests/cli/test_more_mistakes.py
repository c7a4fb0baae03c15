"""More mistakes that people made, in run files, input files, commands and Python: each message says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError, HoldfastWarning
from tests.cli.test_mistakes import FRAME, LAPLACE, ROWS, RUN, a_table, work
from tests.running import Ran

__all__ = ["work"]  # the fixture


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"1/2"', '"50%"', 'Got "50%". Write epsilon = "0.25".'),
        ('id = "r1"', 'id = "r1"\nid = "r2"', "The key or section is there twice: leave one out."),
        ('"r1"', "“r1”", 'The line has curly quotes: write straight ones, ".'),
        ('"r1"', '"r1', "A closing quote is missing."),
        ('"t.csv"', '"C:\\Users\\me\\t.csv"', "Write paths with /, or in single quotes."),
        ('["town", "sex"]', '["town" "sex"]', "A comma between two items, or the bracket at the end, is missing."),
        ('id = "r1"', 'id = "r1"\ndate = "2030-02-30"', "must be a day of the calendar, as year-month-day."),
        ('id = "r1"', 'id = "r1"\nbounds = [0, 9]', 'Did you mean lower and upper, of mechanism = "conditional"?'),
        (
            "public = true",
            "public = true\nhierarchies = {town = {prefixes = [9]}}",
            "table.hierarchies.town: Code '01001' has 5 characters",
        ),
        ("public = true", 'public = true\nhierarchies = {town = {prefixes = [2], levels = ["state"]}}', "the codes of the column last."),
    ],
)
def test_a_run_file(work: Path, run: Callable[..., Ran], old: str, new: str, said: str) -> None:
    assert old in RUN
    Path("run.toml").write_text(RUN.replace(old, new))
    ran = run("plan", "run.toml")
    assert ran.code != 0
    assert said in ran.err


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ("[1, 2, 3]", 'run.toml, line 4, table.cells.age: column "age" needs a list of codes, each a text.'),
        ("[1, 2, 3]", 'Write "age" = ["1", "2", "3"].'),
        ('"0-9"', 'Got "0-9". Write "age" = ["01", "02"].'),
    ],
)
def test_codes_of_records(work: Path, run: Callable[..., Ran], codes: str, said: str) -> None:
    head = f'[table]\nsource = "t.csv"\n[table.cells]\nage = {codes}\n'
    Path("run.toml").write_text(head + RUN[RUN.index("[keep]") :])
    assert said in run("plan", "run.toml").err


def test_a_codes_file_with_another_column(work: Path, run: Callable[..., Ran]) -> None:
    Path("ages.csv").write_text("code\n0\n1\n")
    rest = RUN[RUN.index("[keep]") :].replace('[["town"]]', "[]")
    Path("run.toml").write_text('[table]\nsource = "t.csv"\n[table.cells]\nage = "ages.csv"\n' + rest)
    ran = run("plan", "run.toml")
    assert ran.code == 5
    assert "It was read as one column, and the name in its first line is another." in ran.err
    assert "line break" not in ran.err


def test_a_code_tree_that_begins_below_the_top(work: Path, run: Callable[..., Ran]) -> None:
    Path("town.hrc").write_text("@@01001\n@02002\n")
    Path("run.toml").write_text(RUN.replace("public = true", 'public = true\nhierarchies = {town = {tree = "town.hrc"}}'))
    ran = run("plan", "run.toml")
    assert "table.hierarchies.town: Line 1 of the code tree is at level 1. The first line is at the top: no lead, or one." in ran.err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", ROWS.encode("utf-16-le"), 'for UTF-16 write encoding = "utf-16-le"'),
        ("t.csv", b"PK\x03\x04" + bytes(range(256)) * 4, "'t.csv' has NUL bytes in its first line"),
        ("t.parquet", ROWS.encode(), "'t.parquet' is not a Parquet file."),
    ],
)
def test_a_file_of_another_kind(work: Path, run: Callable[..., Ran], name: str, content: bytes, said: str) -> None:
    Path(name).write_bytes(content)
    Path("run.toml").write_text(RUN.replace("t.csv", name))
    ran = run("release", "run.toml", "-o", "out")
    assert ran.code == 5
    assert said in ran.err
    assert not Path("out").exists()


def test_the_encoding_that_the_refusal_names_works(work: Path, run: Callable[..., Ran]) -> None:
    Path("t.csv").write_bytes(ROWS.encode("utf-16-le"))
    Path("run.toml").write_text(RUN.replace("count =", 'encoding = "utf-16-le"\ncount ='))
    assert run("plan", "run.toml").code == 0


@pytest.mark.parametrize(
    ("codes", "said"),
    [(["1.00E+11", "x"], "numbers in powers of ten: '1.00E"), (["1001.0", "1002.0"], "codes like decimals"), (["1.0", "1.1"], None)],
)
def test_codes_that_a_program_spoilt(codes: list[str], said: str | None, recwarn: pytest.WarningsRecorder) -> None:
    frame = pd.DataFrame({"town": codes, "n": [1, 2]})
    with pytest.warns(HoldfastWarning, match=said) if said else pytest.warns(HoldfastWarning) as told:
        hf.Table.from_counts(frame, cells=["town"], count="n", public=True)
        if said is None:
            import warnings

            warnings.warn("none", HoldfastWarning, stacklevel=1)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("diagnose", "run.toml", "--pairs", "1.5"), "Invalid value for '--pairs': write a whole number in digits, such as 1000."),
        (("diagnose", "run.toml", "-o", "page.pdf"), "The page is HTML. Got the name 'page.pdf'. Write one that ends in .html."),
        (("ledger", "void", "r1"), "Missing argument 'release_id'. It takes dataset, then release_id."),
        (("ledger", "verify", "nofolder"), "There is no file or folder 'nofolder'."),
        (("synth", "s.csv", "--by", "gender"), "Got 'gender'. Write each once, as it is here."),
        (("completion",), "Choose from: bash, zsh, fish."),
        (("completion", "powershell"), "Invalid value for 'shell': 'powershell' is not one of"),
        (("plan", "run.toml", "--ledger", "no.sqlite"), "make one with the command holdfast ledger create"),
        (("release", "run.toml", "-o", "out", "--ledger", "no.sqlite"), "make one with the command holdfast ledger create"),
    ],
)
def test_commands(work: Path, run: Callable[..., Ran], arguments: tuple[str, ...], said: str) -> None:
    if arguments[:2] == ("ledger", "verify"):
        assert run("ledger", "create").code == 0
    ran = run(*arguments)
    assert ran.code != 0
    assert said in " ".join(ran.err.split())
    assert not Path("page.pdf").exists()


def test_a_view_without_an_ending(work: Path, run: Callable[..., Ran]) -> None:
    assert run("release", "run.toml", "-o", "out").code == 0
    assert "Got a name without an ending." in run("view", "out", "-o", "print").err


TWO = hf.Universe.product({"a": ["x", "y"]})


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: hf.Table.from_counts(FRAME.groupby(["sex", "age"])["n"].sum(), cells=["sex"], count="n"), ".reset_index()"),
        (lambda: hf.Table.from_counts(FRAME[["sex", "n", "n"]], cells=["sex"], count="n"), "more than one column 'n'. Give each column"),
        (lambda: hf.Table.from_counts({"sex": ["F"], "n": [1]}, cells=["sex"], count="n"), "pandas.DataFrame(...) makes a frame of a dict"),
        (lambda: hf.Table(TWO, np.array([1, 2, 3])), "Got int64 with the shape (3,)."),
        (lambda: hf.Table(TWO, np.array([1.0, 2.0])), "Got float64 with the shape (2,)."),
        (lambda: hf.Table(TWO, [1, 2]), "Got list: write np.array(..., dtype=np.int64)."),  # type: ignore[arg-type]
        (lambda: hf.plan(a_table(), {"margins": ["sex"]}, LAPLACE), "Kept totals come as a list"),  # type: ignore[dict-item]
        (lambda: hf.release(a_table(), [], LAPLACE, release_id="a", ledger="l.sqlite"), "hf.privacy.Ledger.open(path)"),  # type: ignore[call-overload]
    ],
)
def test_python(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        mistake()
    assert said in str(caught.value)


def test_a_comparison_says_why_a_mechanism_is_refused_and_proposes_nothing(work: Path, run: Callable[..., Ran]) -> None:
    """Its table shows what the same budget gives elsewhere: "Drawn exactly here" was repeated in every refusal."""
    rows = [f"{a},{b},5" for a in range(20) for b in range(20)]
    Path("t.csv").write_text("\n".join(["a,b,n", *rows]))
    text = RUN.replace('["town", "sex"]', '["a", "b"]').replace('[["town"]]', '[["a"], ["b"]]').replace('"1/2"', '"1/1000"')
    Path("run.toml").write_text(text)
    ran = run("plan", "run.toml", "--compare")
    assert ran.code == 0, ran.err
    assert "generalized-laplace (asked): refused." in ran.out
    assert "Drawn exactly here" not in ran.out


def test_a_refusal_names_numbers_that_can_be_copied() -> None:
    """It read sigma_squared = 320000000000000000/7999999982112961. The variance goes up, an epsilon down."""
    universe = hf.Universe.product({name: list(map(str, range(30))) for name in "ab"})
    with pytest.raises(HoldfastError) as caught:
        hf.plan(universe, [hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon="0.44721359", norm="l2", per="distance"))
    assert 'sigma_squared = "10.0001"' in str(caught.value)
    assert hf.plan(universe, [hf.margin("a"), hf.margin("b")], hf.GeneralizedGaussian(sigma_squared="10.0001")).drawing.is_exact


def test_margins_of_several_columns_are_named_as_targets_are(work: Path, run: Callable[..., Ran]) -> None:
    rows = [f"{town},{sex},{age},5" for town in "AB" for sex in "FM" for age in "012"]
    Path("t.csv").write_text("\n".join(["town,sex,age,n", *rows]))
    shares = '\n[[release.levels]]\nlevel = "town"\nshare = "1"\n'
    text = RUN.replace('["town", "sex"]', '["town", "sex", "age"]').replace('[["town"]]', "[]").replace("laplace", "gaussian")
    Path("run.toml").write_text(text.replace('epsilon = "1/2"', 'rho = "1/2"') + shares)
    planned = run("plan", "run.toml")
    assert planned.code == 0, planned.err
    assert "town   sex:age" in planned.out
    targeted = run("plan", "run.toml", "--target", "town:sex:age=5")
    assert targeted.code == 0, targeted.err
