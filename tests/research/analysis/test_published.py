"""What a reader may give: a release, a loaded one, or its folder. All say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast import research
from holdfast.errors import InvalidParameter
from holdfast.research.analysis.priors import Flat

TABLE = hf.Table(hf.Universe.product({"town": ["a", "b"], "sex": ["F", "M"]}), np.array([5, 3, 2, 9]))


def test_releases_loaded_ones_and_folders_answer_alike(tmp_path: Path) -> None:
    release = hf.release(
        TABLE, [hf.margin("town")], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), hf.NoiseKey.for_tests("towns"), release_id="towns"
    )
    folder = release.save(tmp_path / "out")
    loaded = hf.load(folder)
    drawn = [research.simulate(source, 5, key=hf.NoiseKey.for_tests("five")).tables for source in (release, loaded, folder)]
    drawn.append(loaded.simulate(5, key=hf.NoiseKey.for_tests("five")).tables)
    assert all(np.array_equal(drawn[0], again) for again in drawn)
    means = {float(research.posterior(source, Flat(), 0).mean) for source in (release, loaded, folder)}
    assert len(means) == 1


def test_priors_are_of_counts() -> None:
    release = hf.answer([1, 2, 3], sensitivity=1, mechanism=hf.ProjectedLaplace(epsilon=1), key=hf.NoiseKey.for_tests("answers"))
    for ask in (lambda: research.posterior(release, Flat(), 0), lambda: research.simulate(release, 3, Flat())):
        with pytest.raises(InvalidParameter, match="priors are of counts"):
            ask()


@pytest.mark.parametrize("given", [3, None, [], b"out"])
def test_what_is_no_release(given: Any) -> None:
    with pytest.raises(InvalidParameter, match="Give a release, or the folder it was saved in"):
        research.posterior(given, Flat(), 0)
