"""The pages of eight releases, one of each kind that a reader may meet, and of what goes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.publication.publication import Publication
from holdfast.report.cellkey import cellkey_html
from holdfast.research.chains.diagnose import diagnose
from tests.exposing import exposing
from tests.report.test_cellkey import CHECK, DESIGN

Pages = dict[str, str]
"""Name of a page -> its HTML."""

SAID: dict[str, Any] = {
    "date": "2030-04-01",
    "office": "Statistical Office of the Eastern Counties",
    "approver": "A. Chief, Director of Statistics",
}


def written(release: Publication, folder: Path, **how: Any) -> Pages:
    saved = release.save(folder / "out", **how)
    return {page: (saved / f"{page}.html").read_text(encoding="utf-8") for page in ("statement", "report")}


def real_table(shared_data: Path, name: str, cells: list[str], count: str) -> hf.Table:
    return hf.Table.from_counts(shared_data / f"{name}.csv", cells=cells, count=count)


def tracts(shared_data: Path, folder: Path) -> Pages:
    table = real_table(shared_data, "tract_pop_2010", ["state_fips", "county_fips", "tract_geoid"], "pop2010")
    mechanism = hf.GeneralizedGaussian(rho="1/10", per="person")
    key = hf.NoiseKey.for_tests("tracts")
    return written(exposing(hf.release, table, [hf.margin("county_fips")], mechanism, key=key, release_id="tracts-2010", **SAID), folder)


def four_by_four(shared_data: Path, folder: Path) -> Pages:
    """With a secret key, so that no banner is on its pages, and with a publication view."""
    table = real_table(shared_data, "fcsm_wp22_delinquent_children", ["county", "education"], "count")
    keep = [hf.margin("county"), hf.margin("education")]
    return written(
        exposing(hf.release, table, keep, hf.GeneralizedLaplace(epsilon="1/4", per="distance"), release_id="children", ledger=None, **SAID),
        folder,
        view_base=1,
    )


AIRPORTS = {"ATL": "Atlanta", "BOS": "Boston", "CLT": "Charlotte", "DFW": "Dallas/Fort Worth", "FLL": "Fort Lauderdale", "MIA": "Miami"}
CARRIERS = {"9E": "Endeavor Air", "AA": "American Airlines", "B6": "JetBlue Airways", "DL": "Delta Air Lines", "US": "US Airways"}


def flights(shared_data: Path, folder: Path) -> Pages:
    """With labels, of some codes only."""
    table = real_table(shared_data, "nycflights13_dest_hour_carrier", ["dest", "hour", "carrier"], "flights_2013")
    hours = {str(hour): f"{hour}:00 to {hour}:59" for hour in range(24)}
    table = table.with_labels(
        {"dest": AIRPORTS, "hour": hours, "carrier": CARRIERS}, {"dest": "Destination", "hour": "Hour", "carrier": "Carrier"}
    )
    keep = [hf.margin("dest", "hour"), hf.margin("dest", "carrier")]
    key = hf.NoiseKey.for_tests("flights")
    return written(
        exposing(hf.release, table, keep, hf.GeneralizedGaussian(rho="1/50", per="distance"), key=key, release_id="flights-2013", **SAID),
        folder,
    )


def suppression(shared_data: Path, folder: Path) -> Pages:
    table = real_table(shared_data, "fcsm_wp22_delinquent_children", ["county", "education"], "count")
    keep = [hf.margin("county"), hf.margin("education")]
    return written(exposing(hf.release, table, keep, hf.Suppression(), release_id="children-suppressed", ledger=None, **SAID), folder)


def chains(shared_data: Path, folder: Path) -> Pages:
    cells = hf.Universe.product({"county": list("ABCD"), "education": ["low", "medium", "high", "very high"]})
    table = hf.Table(cells, np.arange(16))
    keep = [hf.margin("county"), hf.margin("education")]
    mechanism = hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance")
    key = hf.NoiseKey.for_tests("chains")
    made = written(exposing(hf.release, table, keep, mechanism, key=key, release_id="chains", **SAID), folder)
    found = diagnose(table, keep, mechanism, pairs=60)
    found.save(folder / "diagnosis.html")
    return {**made, "diagnosis": (folder / "diagnosis.html").read_text(encoding="utf-8")}


def cell_key(shared_data: Path, folder: Path) -> Pages:
    return {"check": cellkey_html(CHECK), "design": cellkey_html(DESIGN)}


def conditional(shared_data: Path, folder: Path) -> Pages:
    cells = hf.Universe.product({"town": ["Aldham", "Brookfield", "Carrow", "Deal"], "sex": ["F", "M"]})
    table = hf.Table(cells, np.array([3, 0, 1, 0, 12, 9, 0, 2]))
    key = hf.NoiseKey.for_tests("towns")
    return written(
        exposing(hf.release, table, [hf.margin("sex")], hf.Conditional(epsilon="1/2", per="distance"), key=key, release_id="towns", **SAID),
        folder,
    )


def real_valued(shared_data: Path, folder: Path) -> Pages:
    release = exposing(
        hf.answer,
        [12.5, 7.25, 0.75, 20.5],
        keep=[[1, 1, 1, -1], [0, 0, 0, 1]],
        sensitivity="1/2",
        mechanism=hf.ProjectedLaplace(epsilon="1"),
        key=hf.NoiseKey.for_tests("answers"),
        release_id="answers",
        **SAID,
    )
    return written(release, folder)


RELEASES: Mapping[str, Callable[[Path, Path], Pages]] = {
    "tracts": tracts,
    "4 x 4": four_by_four,
    "flights": flights,
    "suppression": suppression,
    "chains": chains,
    "cell key": cell_key,
    "conditional": conditional,
    "real-valued": real_valued,
}
