"""The output folder: complete under its name, or not there at all."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError, IdenticalRelease, InvalidParameter, OutputExists, OutputProblem
from holdfast.publication import folder as folder_module
from holdfast.publication import publication
from holdfast.publication.folder import fill_folder
from holdfast.publication.publication import Publication

UNIVERSE = hf.Universe.product({"a": ["x", "y"], "b": ["p", "q", "r"]})


def a_release(release_id: str = "one", epsilon: str = "1/4") -> Publication:
    table = hf.Table(UNIVERSE, np.array([1, 2, 3, 4, 5, 6]))
    return hf.release(table, [hf.margin("a")], hf.GeneralizedLaplace(epsilon=epsilon, per="distance"), release_id=release_id, ledger=None)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


class TestWriting:
    def test_files(self, tmp_path: Path) -> None:
        place = a_release().save(tmp_path / "out")
        assert place == tmp_path / "out"
        assert sorted(content(place)) == [
            "card.json",
            "exposed.csv",
            "kept.csv",
            "report.html",
            "statement.html",
            "table.csv",
            "table.parquet",
        ]
        assert os.listdir(tmp_path) == ["out"]
        hf.verify(place)

    @pytest.mark.parametrize(("umask", "file", "folder"), [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750), (0o077, 0o600, 0o700)])
    def test_permissions_follow_the_umask(self, tmp_path: Path, umask: int, file: int, folder: int) -> None:
        made = a_release()
        before = os.umask(umask)
        try:
            place = made.save(tmp_path / "out")
        finally:
            os.umask(before)
        assert {oct(path.stat().st_mode & 0o777) for path in place.iterdir()} == {oct(file)}
        assert oct(place.stat().st_mode & 0o777) == oct(folder)

    @pytest.mark.parametrize("formats", [["csv"], ["parquet"], ("csv", "parquet"), "csv"])
    def test_formats(self, tmp_path: Path, formats: Any) -> None:
        place = a_release().save(tmp_path / "out", formats=formats)
        assert {name for name in content(place) if name.startswith("table.")} == {
            f"table.{name}" for name in ([formats] if isinstance(formats, str) else formats)
        }
        hf.verify(place)

    @pytest.mark.parametrize(("most", "formats", "written"), [(6, None, {"parquet", "csv"}), (5, None, {"parquet"}), (5, ["csv"], {"csv"})])
    def test_a_large_table_is_csv_only_where_that_is_asked_for(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        most: int,
        formats: Any,
        written: set[str],
    ) -> None:
        """It is said before anything is written; six cells are many here."""
        monkeypatch.setattr(folder_module, "MOST_CSV_CELLS", most)
        with caplog.at_level(logging.INFO, "holdfast"):
            place = a_release().save(tmp_path / "out", formats=formats)
        assert {name for name in content(place) if name.startswith("table.")} == {f"table.{name}" for name in written}
        said = [record.getMessage() for record in caplog.records if "written as Parquet alone" in record.getMessage()]
        assert len(said) == (written == {"parquet"})
        hf.verify(place)

    @pytest.mark.parametrize("formats", [[], ["xlsx"], ["csv", "json"], "json"])
    def test_unknown_formats_are_refused(self, tmp_path: Path, formats: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"parquet and csv"):
            a_release().save(tmp_path / "out", formats=formats)
        assert os.listdir(tmp_path) == []

    def test_kept_csv_quotes_what_needs_it(self, tmp_path: Path) -> None:
        codes = ['x,"y"', "line\nbreak", "", " 01", "\r", "\0", "NULL", "\ufeff"]
        for number, some in enumerate((codes[:4], codes)):
            universe = hf.Universe.product({"a": some, "b": ["1", "2"]}, allow_similar_codes=True)
            made = hf.release(
                hf.Table(universe, np.arange(len(universe))),
                [hf.margin("a")],
                hf.RoundedProjection(epsilon=1, per="distance"),
                ledger=None,
            )
            place = made.save(tmp_path / f"{number}")
            assert hf.verify(place, against=place / "kept.csv").official_totals == len(some)

    def test_a_column_name_that_readers_would_cut_off(self, tmp_path: Path) -> None:
        universe = hf.Universe.product({"a\0b": ["x", "y"]})
        with pytest.raises(OutputProblem, match=r"NUL"):
            hf.release(hf.Table(universe, np.arange(2)), [hf.total()], hf.RoundedProjection(epsilon=1, per="distance"), ledger=None).save(
                tmp_path / "out"
            )


class TestRefusals:
    def test_an_existing_folder_is_refused_and_left_as_it_is(self, tmp_path: Path) -> None:
        a_release().save(tmp_path / "out")
        before = content(tmp_path)
        with pytest.raises(OutputExists, match=r"'out' already exists and holds the release 'one'.*--force to replace it"):
            a_release("two").save(tmp_path / "out")
        with pytest.raises(IdenticalRelease, match=r"already holds the release 'one'"):
            a_release().save(tmp_path / "out")
        (tmp_path / "file").write_text("mine")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "thesis").write_text("mine")
        (tmp_path / "link").symlink_to("nowhere")
        (tmp_path / "empty").mkdir()
        (tmp_path / "to-empty").symlink_to("empty")
        for name in ("file", "other", "link", "to-empty"):  # --force is not offered where it would be refused
            for force in (False, True):
                with pytest.raises(OutputExists) as caught:
                    a_release().save(tmp_path / name, force=force)
                assert "--force" not in str(caught.value)
        assert {name: data for name, data in content(tmp_path).items() if name.startswith("out")} == before

    @pytest.mark.parametrize("force", [False, True])
    def test_an_empty_folder_can_be_used(self, tmp_path: Path, force: bool) -> None:
        (tmp_path / "out").mkdir()
        a_release().save(tmp_path / "out", force=force)
        assert hf.verify(tmp_path / "out").release_id == "one"
        assert os.listdir(tmp_path) == ["out"]

    @pytest.mark.parametrize("why", ["mounted", "of somebody else"])
    def test_an_empty_folder_that_no_rename_replaces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
        """Refused before anything is drawn: the rename would fail when the budget is spent."""
        (tmp_path / "out").mkdir()
        user = os.geteuid()
        if why == "mounted":
            monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == tmp_path / "out")
        else:
            monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        with pytest.raises(OutputExists, match="'out' already exists and holds no release"):
            a_release().save(tmp_path / "out")

    def test_a_folder_that_is_filled_meanwhile_is_left_as_it_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "out").mkdir()
        fill = fill_folder

        def meanwhile(*given: Any) -> None:
            fill(*given)
            (tmp_path / "out" / "thesis").write_text("mine")

        monkeypatch.setattr(publication, "fill_folder", meanwhile)
        with pytest.raises(OutputExists, match="appeared in the meantime"):
            a_release().save(tmp_path / "out")
        assert (tmp_path / "out" / "thesis").read_text() == "mine"

    def test_force_replaces_another_release(self, tmp_path: Path) -> None:
        a_release("one").save(tmp_path / "out")
        a_release("two").save(tmp_path / "out", force=True)
        assert hf.verify(tmp_path / "out").release_id == "two"
        a_release("two", "1/5").save(tmp_path / "out", force=True)  # another law
        assert os.listdir(tmp_path) == ["out"]

    def test_force_on_a_new_name_is_no_different(self, tmp_path: Path) -> None:
        made = a_release()
        assert hf.verify(made.save(tmp_path / "out", force=True)).release_id == made.id

    def test_force_without_the_system_call_that_swaps(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        a_release("one").save(tmp_path / "out")
        monkeypatch.setattr(folder_module, "_RENAME_EXCHANGE", 1 << 30)  # no flag the kernel knows: the call fails
        a_release("two").save(tmp_path / "out", force=True)
        assert hf.verify(tmp_path / "out").release_id == "two"
        assert os.listdir(tmp_path) == ["out"]

    def test_force_never_redraws_an_identical_release(self, tmp_path: Path) -> None:
        a_release().save(tmp_path / "out")
        before = content(tmp_path)
        with pytest.raises(IdenticalRelease, match=r"already holds the release 'one'.*second noisy copy"):
            a_release().save(tmp_path / "out", force=True)
        assert content(tmp_path) == before

    @pytest.mark.parametrize("card", [None, "", "{}", "[" * 10**5, "\udcff"])
    def test_force_never_replaces_what_is_no_release(self, tmp_path: Path, card: str | None) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("mine")
        if card is not None:
            (tmp_path / "out" / "card.json").write_text(card, errors="surrogateescape")
        before = content(tmp_path)
        with pytest.raises(OutputExists, match=r"holds no release that could be replaced"):
            a_release().save(tmp_path / "out", force=True)
        assert content(tmp_path) == before

    def test_force_does_not_replace_a_link(self, tmp_path: Path) -> None:
        a_release("one").save(tmp_path / "real")
        (tmp_path / "out").symlink_to("real")
        with pytest.raises(OutputExists, match=r"is a link"):
            a_release("two").save(tmp_path / "out", force=True)
        assert hf.verify(tmp_path / "out").release_id == "one"

    def test_a_missing_parent(self, tmp_path: Path) -> None:
        with pytest.raises(OutputProblem, match=r"should hold 'out' does not exist. Create it first"):
            a_release().save(tmp_path / "none" / "out")
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputProblem):
            a_release().save(tmp_path / "file" / "out")
        assert sorted(os.listdir(tmp_path)) == ["file"]

    def test_a_place_inside_a_published_folder(self, tmp_path: Path) -> None:
        """It was written, and the folder around it was no longer what its card says."""
        a_release().save(tmp_path / "out")
        with pytest.raises(OutputProblem, match="'in' would be inside the published folder 'out'"):
            a_release().save(tmp_path / "out" / "in")
        hf.verify(tmp_path / "out")

    def test_a_signing_key_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidParameter, match=r"signing key"):
            a_release().save(tmp_path / "out", sign=tmp_path / "none.pem")
        assert os.listdir(tmp_path) == []

    def test_another_writer_was_faster(self, tmp_path: Path) -> None:
        """Two writers at once: one folder, complete; the other writer is told."""
        releases = [a_release(f"r{i}") for i in range(4)]
        barrier, errors = threading.Barrier(len(releases)), []

        def write(made: Publication) -> None:
            barrier.wait()
            try:
                made.save(tmp_path / "out")
            except HoldfastError as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(made,)) for made in releases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [type(error) for error in errors] == [OutputExists] * 3
        assert hf.verify(tmp_path / "out").release_id in {"r0", "r1", "r2", "r3"}
        assert os.listdir(tmp_path) == ["out"]


SAVE = """
import resource, signal, sys
import numpy as np
import holdfast as hf
universe = hf.Universe.product({"a": ["x", "y"], "b": [str(i) for i in range(2000)]})
noise = hf.GeneralizedGaussian(rho=1, per="distance")
made = hf.release(hf.Table(universe, np.arange(4000)), [hf.margin("a")], noise, release_id=sys.argv[2], ledger=None)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for limit in map(int, sys.argv[3:]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        made.save(sys.argv[1], force=True)
        print("saved")
    except hf.errors.HoldfastError as error:
        print(error.exit_code, error)
"""


@pytest.mark.parametrize("there", [False, pytest.param(True, marks=pytest.mark.long)], ids=["new", "replacing"])
def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path, there: bool) -> None:
    """A limit on the size of files stands in for a full disk: writing fails in the middle, at each of the files."""
    if there:
        a_release("before").save(tmp_path / "out")
    before = content(tmp_path)
    sizes = ["0", "100", "5000", "12000", "20000", "40000"]
    run = subprocess.run(
        [sys.executable, "-c", SAVE, str(tmp_path / "out"), "new", *sizes], capture_output=True, text=True, timeout=100, check=True
    )
    lines = run.stdout.splitlines()
    assert len(lines) == len(sizes)
    assert all(line.startswith("9 'out' could not be written: the system says: File too large. Nothing was left behind.") for line in lines)
    assert content(tmp_path) == before


def test_a_full_disk_is_said_in_words() -> None:
    import errno

    for number, words in ((errno.ENOSPC, "disk is full"), (errno.EACCES, "permission is missing"), (errno.EROFS, "only be read")):
        assert words in str(folder_module.output_problem(OSError(number, "secret"), Path("/x/out")))
        assert "secret" not in str(folder_module.output_problem(OSError(number, "secret"), Path("/x/out")))


def test_a_parent_that_may_not_be_written_to(tmp_path: Path) -> None:
    """Root may write everywhere, so as root it is tried as another user, in a forked child."""
    made = a_release()
    made.save(tmp_path / "before")  # loads every module that is needed: the other user may not be able to
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    if os.geteuid() != 0:
        with pytest.raises(OutputProblem, match="permission is missing"):
            made.save(closed / "out")
        return
    for path in (tmp_path, *tmp_path.parents):
        if path == tmp_path or path.name.startswith(("pytest", "popen")):
            path.chmod(path.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setuid(65534)
            made.save(closed / "out")
        except OutputProblem as error:
            code = 9 if "permission is missing" in str(error) else 98
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert os.listdir(closed) == []
