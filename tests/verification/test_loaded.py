"""A publication as a reader has it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError, IdenticalRelease, InvalidParameter, VerificationFailed
from holdfast.mechanisms import Mechanism
from holdfast.publication.publication import Publication

UNIVERSE = hf.Universe.product({"town": ["a", "b"], "sex": ["F", "M"]})
TABLE = hf.Table(UNIVERSE, np.array([5, 3, 2, 9]))


@pytest.fixture(scope="module")
def release() -> Publication:
    return hf.release(
        TABLE,
        [hf.margin("town")],
        hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
        key=hf.NoiseKey.for_tests("loaded"),
        release_id="towns",
    )


@pytest.fixture(scope="module")
def folder(release: Publication, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.save(tmp_path_factory.mktemp("loaded") / "out")


def test_it_is_what_was_released(release: Publication, folder: Path) -> None:
    loaded = hf.load(folder)
    assert np.array_equal(loaded.table.counts, release.table.counts)
    assert loaded.table.frame.equals(release.table.frame)
    assert loaded.card.with_files({}) == release.card
    assert loaded.card.files
    assert (loaded.id, loaded.private, loaded.kept_rows) == ("towns", False, release.kept_rows)
    assert loaded.guarantee == release.guarantee
    assert repr(loaded) == repr(release)


def test_releases_and_folders_answer_alike(release: Publication, folder: Path) -> None:
    loaded = hf.load(folder)
    assert loaded.interval(0, 0.9) == release.interval(0, 0.9)
    drawn = [made.simulate(5, key=hf.NoiseKey.for_tests("five")).tables for made in (loaded, release)]
    assert np.array_equal(drawn[0], drawn[1])


def test_frames_of_other_libraries(folder: Path) -> None:
    import pandas
    import polars

    loaded = hf.load(folder)
    counts = loaded.table.counts.tolist()
    assert polars.DataFrame(loaded.table)["count"].to_list() == counts
    frame = loaded.table.frame.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["count"].tolist() == counts
    assert frame["town"].tolist() == ["a", "a", "b", "b"]


def test_it_pickles(folder: Path) -> None:
    loaded = hf.load(folder)
    again = pickle.loads(pickle.dumps(loaded))
    assert np.array_equal(again.table.counts, loaded.table.counts)
    assert again.interval(0, 0.9) == loaded.interval(0, 0.9)


def test_it_is_not_saved_a_second_time(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(IdenticalRelease, match=r"^'towns' was read from a folder, so it is published already\."):
        hf.load(folder).save(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_a_changed_folder_is_refused(release: Publication, tmp_path: Path) -> None:
    changed = release.save(tmp_path / "changed", formats=["csv"])
    path = changed / "table.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(VerificationFailed, match=r"table\.csv"):
        hf.load(changed)
    with pytest.raises(VerificationFailed, match=r"no readable card\.json"):
        hf.load(tmp_path)


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [(hf.Suppression(), "publishes no cells"), (hf.Conditional(epsilon=1, per="distance"), "under a prior only")],
    ids=["suppressed", "conditional"],
)
def test_what_has_no_noise_of_one_law_is_not_simulated(mechanism: Mechanism, said: str, tmp_path: Path) -> None:
    made = hf.release(TABLE, [hf.margin("town")], mechanism, key=hf.NoiseKey.for_tests("other"))
    loaded = hf.load(made.save(tmp_path / "out"))
    for ask in (lambda: loaded.simulate(3), lambda: made.simulate(3)):
        with pytest.raises(InvalidParameter, match=said):
            ask()
    with pytest.raises(HoldfastError):
        loaded.interval(0, 0.9)


def test_what_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match=r"A published folder is given by its path\. Got 3\."):
        hf.load(3)  # type: ignore[arg-type]
    given: Any
    for given in (3, None, [], b"out"):
        for ask in (hf.verify, hf.load):
            with pytest.raises(InvalidParameter, match="A published folder is given by its path"):
                ask(given)
    with pytest.raises(InvalidParameter, match="Official totals are a Table, or the path of a file"):
        hf.verify(tmp_path, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="public key"):
        hf.verify(tmp_path, signer=3)  # type: ignore[arg-type]
    (tmp_path / "table.csv").touch()
    for ask in (hf.verify, hf.load):
        with pytest.raises(
            VerificationFailed, match=r"^'table\.csv' is a file, not a folder\. Give the folder that `holdfast release` wrote\.$"
        ):
            ask(tmp_path / "table.csv")
        with pytest.raises(VerificationFailed, match=r"^There is no folder 'missing'\. Give the folder that `holdfast release` wrote\.$"):
            ask(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(VerificationFailed, match=r"'empty' has no readable card\.json"):
        hf.load(".")
