"""Figures of a release: the same from its folder, well formed, with their numbers in words and in a table."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy.cell_laws import cell_probabilities
from holdfast.card.figure_facts import LIMITS
from holdfast.errors import InvalidParameter, InvalidRun, UnreadableInput, VerificationFailed
from holdfast.publication.maps import MapRequest
from holdfast.publication.plots import Plot
from holdfast.publication.publication import Publication
from holdfast.publication.report_facts import shares, sizes, spreads
from holdfast.publication.sums import Level, LevelSums, LevelUnits
from holdfast.report.figures.heat_map import shade_edges, shade_of
from holdfast.report.figures.svg import RAMP, Figure
from holdfast.runfiles.runfile import load_run
from tests.notebooks import notebook_page
from tests.running import Run

SVG = "{http://www.w3.org/2000/svg}"
CODES = {"area": ["a", "b & <c>", "d"], "sex": ["F", "M"]}
UNIVERSE = hf.Universe.product(CODES)
COUNTS = np.array([120, 3, 40, 55, 900, 7])
SQUARES = [((0, 0), "a"), ((1, 0), "b & <c>"), ((2, 0), "d"), ((0, 1), "elsewhere")]


@pytest.fixture(scope="module")
def release() -> Publication:
    table = hf.Table(UNIVERSE, COUNTS, name="people")
    return hf.release(
        table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests("plots"), release_id="plots"
    )


def geojson(path: Path, code: str = "id", places: Any = SQUARES) -> Path:
    def feature(place: tuple[float, float], name: str) -> dict[str, Any]:
        x, y = place
        ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
        return {"type": "Feature", "properties": {code: name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}

    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature(place, name) for place, name in places]}))
    return path


def all_figures(plot: Plot, folder: Path) -> dict[str, Figure]:
    path = folder / "map.geojson"
    path = path if path.exists() else geojson(path)
    names = ("error_by_level", "error_by_margin", "error_by_size", "relative_errors", "ranked", "heat_map", "noise")
    return {name: getattr(plot, name)() for name in names} | {"map": plot.map(path, "id")}


def test_a_folder_gives_the_same_bytes(release: Publication, tmp_path: Path) -> None:
    folder = release.save(tmp_path / "out")
    assert all_figures(release.plot, tmp_path) == all_figures(hf.load(folder).plot, tmp_path)


def test_figures_are_well_formed_and_say_what_they_show(release: Publication, tmp_path: Path) -> None:
    for name, figure in all_figures(release.plot, tmp_path).items():
        root = ElementTree.fromstring(figure.svg)
        wide, tall = (float(root.attrib[side]) for side in ("width", "height"))
        assert root.find(f"{SVG}title").text == figure.title, name  # type: ignore[union-attr]
        assert root.find(f"{SVG}desc").text == figure.text, name  # type: ignore[union-attr]
        assert len(figure.rows) > 0, name
        assert {len(row) for row in figure.rows} == {len(figure.header)}, name
        for box in root.iter(f"{SVG}rect"):
            x, y, width, height = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + width <= wide + 0.01, name
            assert 0 <= y <= y + height <= tall + 0.01, name
        assert figure._repr_svg_() == figure.svg
        assert "<details>" in notebook_page(figure)
        assert figure.caption


def test_a_figure_is_saved_once(release: Publication, tmp_path: Path) -> None:
    assert release.plot.noise().save(tmp_path / "noise.svg") == tmp_path / "noise.svg"
    assert ElementTree.parse(tmp_path / "noise.svg").getroot().tag == f"{SVG}svg"
    with pytest.raises(FileExistsError):
        release.plot.noise().save(tmp_path / "noise.svg")


@pytest.mark.parametrize("name", ["noise.png", "noise", 3])
def test_a_figure_is_saved_as_svg_only(release: Publication, tmp_path: Path, name: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"a name that ends in \.svg"):
        release.plot.noise().save(tmp_path / name if isinstance(name, str) else name)
    assert not any(tmp_path.iterdir())


def test_ranked_bars_are_the_published_numbers_with_intervals_of_the_law(release: Publication) -> None:
    """[-r, r] holds 95 % of the noise and [-(r - 1), r - 1] does not, by the law of a cell."""
    figure = release.plot.ranked()
    published = sorted(release.table.counts.tolist(), reverse=True)
    assert [int(row[1].replace(",", "")) for row in figure.rows] == published
    (shape,) = release.plan.drawing.channel.shapes()
    law = cell_probabilities(release.plan.drawing.channel.target, shape)
    assert law is not None
    found, half = release.interval(0, 0.95), len(law) // 2
    reach = int(found.high - found.published)
    assert math.fsum(law[half - reach : half + reach + 1]) >= 0.95 > math.fsum(law[half - reach + 1 : half + reach])
    assert [row[2] for row in figure.rows] == [f"{value - reach:,} to {value + reach:,}" for value in published]
    assert "by the law of the noise" in figure.caption


def test_intervals_without_a_law_say_that_they_are_normal() -> None:
    table = hf.Table(UNIVERSE, COUNTS)
    keep = [hf.margin("area"), hf.margin("sex")]
    made = hf.release(table, keep, hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests(1), release_id="g")
    assert "1.96 standard deviations" in made.plot.ranked("cells").caption
    assert "carry no noise" in made.plot.ranked("area").caption


def sums(values: list[float], deviations: list[float]) -> LevelSums:
    level, universe = Level("cells", ("a",)), hf.Universe.product({"a": [str(i) for i in range(len(values))]})
    return LevelSums(level, universe, None, np.array(values), np.array(deviations))


def test_shares_count_what_is_above_each_limit() -> None:
    """One number of each kind, on either side of each limit; what is at a limit is not above it."""
    values = [100.0] * 9 + [0.0, -4.0, 50.0]
    deviations = [4.0, 5.0, 6.0, 10.0, 11.0, 25.0, 26.0, 50.0, 51.0, 1.0, 1.0, 0.0]
    found = shares(sums(values, deviations))
    assert found is not None
    assert (found.exact, found.classes, found.numbers) == (1, (2, 2, 2, 2, 3), 12)
    brute = [sum(sd > limit * max(v, 0.0) for v, sd in zip(values, deviations, strict=True) if sd) for limit in LIMITS]
    assert [found.above(place) for place in range(len(LIMITS))] == brute
    assert shares(sums([1.0], [math.nan])) is None


def test_sizes_hold_every_number_once() -> None:
    found = sizes(sums([1.0, 9.0, 10.0, 99.0, 100.0, 0.0, -1.0, 5.0], [2.0] * 7 + [0.0]), whole=True)
    assert found is not None
    assert [(one.low, one.high, one.numbers) for one in found.classes] == [(1, 9, 2), (10, 99, 2), (100, 999, 1)]
    assert sum(bubble.numbers for bubble in found.bubbles) == 5
    assert {bubble.deviation for bubble in found.bubbles} == {2.0}
    assert (found.exact, found.not_positive) == (1, 2)
    assert sizes(sums([0.0], [1.0]), whole=True) is None


def test_shades_grow_with_the_number() -> None:
    for values in ([1.0], [1.0, 2.0], [5.0, 5.0], [-3.0, 0.0, 7.0], [float(k * k) for k in range(40)]):
        edges = shade_edges(values)
        shades = [shade_of(value, edges) for value in sorted(values)]
        assert shades == sorted(shades)
        assert 0 <= shades[0] <= shades[-1] < len(RAMP)
        assert len(values) < len(RAMP) or set(shades) == set(range(len(RAMP)))


def test_a_map_has_the_numbers_of_its_areas(release: Publication, tmp_path: Path) -> None:
    figure = release.plot.map(geojson(tmp_path / "m.geojson"), "id")
    by_area = release.table.counts.reshape(3, 2).sum(axis=1).tolist()
    assert [row[:2] for row in figure.rows] == [(c, f"{n:,}") for c, n in zip(CODES["area"], by_area, strict=True)] + [
        ("elsewhere", "none")
    ]
    assert len(list(ElementTree.fromstring(figure.svg).iter(f"{SVG}path"))) == 4
    fewer = release.plot.map(geojson(tmp_path / "n.geojson", places=SQUARES[:1]), "id")
    assert "2 units of the table have no area in the map file." in fewer.caption


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nothing", "no GeoJSON FeatureCollection"),
        ("{}", "no GeoJSON FeatureCollection"),
        ('{"type": "FeatureCollection", "features": []}', "no GeoJSON FeatureCollection"),
        ('{"type": "FeatureCollection", "features": [{"geometry": null}]}', "has no areas"),
        (
            '{"type": "FeatureCollection", "features": [{"geometry": {"type": "Polygon", "coordinates": [["x"]]}}]}',
            "coordinates are no pairs of numbers",
        ),
    ],
)
def test_a_bad_map_file_is_refused(content: str, words: str, release: Publication, tmp_path: Path) -> None:
    (tmp_path / "bad.geojson").write_text(content)
    with pytest.raises(UnreadableInput, match=words):
        release.plot.map(tmp_path / "bad.geojson", "id")


def test_requests_without_an_answer_are_refused(release: Publication, tmp_path: Path) -> None:
    path = geojson(tmp_path / "m.geojson")
    with pytest.raises(InvalidParameter, match=r"No area of the map has a property 'code'\. Properties: 'id'\."):
        release.plot.map(path, "code")
    with pytest.raises(InvalidParameter, match="No code of the map is a code of the table"):
        release.plot.map(geojson(tmp_path / "o.geojson", places=SQUARES[3:]), "id")
    with pytest.raises(UnreadableInput, match="could not be read"):
        release.plot.map(tmp_path / "none.geojson", "id")
    with pytest.raises(InvalidParameter, match="two of the columns area, sex"):
        release.plot.heat_map(["area"])
    with pytest.raises(InvalidParameter, match="number of bars from 1 to 100"):
        release.plot.ranked(most=0)
    with pytest.raises(InvalidParameter, match="There is no level 'town'"):
        release.plot.error_by_size("town")
    with pytest.raises(InvalidParameter, match=r"There is one kind of noise to draw: 0\. Got 7\."):
        release.plot.noise(7)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda plot: plot.noise(kind="x"), "Got 'x'"),
        (lambda plot: plot.map(3, 4), "needs a GeoJSON file"),
        (lambda plot: plot.map(), "needs a GeoJSON file"),
        (lambda plot: plot.map(None, None, 5), "level of a map is a name"),
        (lambda plot: plot.error_by_size(5), "A level is a name, or a list of columns"),
        (lambda plot: plot.ranked([5]), "A level is a name, or a list of columns"),
        (lambda plot: plot.heat_map(5), "list of two names"),
    ],
)
def test_what_is_no_name_is_refused_in_words(release: Publication, ask: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        ask(release.plot)


def test_a_table_of_one_cell_has_its_figure_of_sizes_and_no_heat_map() -> None:
    universe = hf.Universe.product({"state": ["a"]})
    one = hf.release(
        hf.Table(universe, np.array([1000])),
        [],
        hf.GeneralizedLaplace(epsilon=1, per="distance"),
        key=hf.NoiseKey.for_tests(1),
        release_id="o",
    )
    assert len(one.plot.error_by_size().rows) == 1
    with pytest.raises(InvalidParameter, match=r"by two columns\. This table has one: state\."):
        one.plot.heat_map()


def test_a_sum_without_noise_is_exact_in_words_as_in_the_table() -> None:
    """Regions N with two districts and S with one: the district of S is its region."""
    universe = hf.Universe.listed({"region": list("NNNNSS"), "district": list("aabbcc"), "sex": list("FMFMFM")})
    made = hf.release(
        hf.Table(universe, 100 + np.arange(6)),
        [hf.margin("region")],
        hf.GeneralizedGaussian(sigma_squared=9),
        key=hf.NoiseKey.for_tests(1),
        release_id="d",
    )
    figure = made.plot.error_by_level()
    (row,) = (row for row in figure.rows if row[0] == "district")
    assert row[2] == "exact"
    assert f"district: {row[3]} (exact to {row[4]})" in figure.text


def test_a_release_without_standard_deviations_has_no_figures_of_them() -> None:
    table = hf.Table(UNIVERSE, COUNTS)
    left_out = hf.release(table, [hf.total()], hf.Suppression(), release_id="s", ledger=None).plot
    bounded = hf.release(
        table, [hf.total()], hf.Conditional(epsilon="1", per="distance"), key=hf.NoiseKey.for_tests(1), release_id="c"
    ).plot
    for plot, name in itertools.product((left_out, bounded), ("error_by_level", "error_by_margin", "error_by_size", "relative_errors")):
        with pytest.raises(InvalidParameter, match=r"no standard deviations|leaves counts out"):
            getattr(plot, name)()
    assert "no intervals are shown" in bounded.ranked("cells").caption
    assert len(bounded.heat_map().rows) == 6
    with pytest.raises(InvalidParameter, match="leaves counts out"):
        left_out.ranked()
    with pytest.raises(InvalidParameter, match="This release has no noise to draw: it adds none"):
        left_out.noise()


class TestMapsInFolders:
    def test_the_report_has_the_map_and_verify_draws_it_again(self, release: Publication, tmp_path: Path) -> None:
        folder = release.save(tmp_path / "out", map=geojson(tmp_path / "m.geojson"), map_code="id")
        page = (folder / "report.html").read_text()
        assert 'id="map"' in page
        assert 'id="map"' not in (release.save(tmp_path / "without") / "report.html").read_text()
        plot = hf.load(folder).plot
        assert plot.map() == plot.map(tmp_path / "m.geojson", "id")
        with pytest.raises(InvalidParameter, match="needs a GeoJSON file"):
            hf.load(tmp_path / "without").plot.map()
        assert hf.verify(folder)
        public = json.loads((folder / "map.geojson").read_text())
        assert [feature["properties"] for feature in public["features"]] == [{"id": name} for _, name in SQUARES]

    def test_another_map_with_its_checksum_is_found_out(self, release: Publication, tmp_path: Path) -> None:
        folder = release.save(tmp_path / "out", map=geojson(tmp_path / "m.geojson"), map_code="id")
        for text, words in (
            ((folder / "map.geojson").read_text().replace("[2.0", "[2.5").replace("[2,", "[2.5,"), "report.html is not the page"),
            ('{"type": "FeatureCollection"}', "map.geojson is no map of this release"),
        ):
            (folder / "map.geojson").write_text(text)
            card = json.loads((folder / "card.json").read_text())
            card["files"]["map.geojson"] = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text.encode())}
            (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
            with pytest.raises(VerificationFailed, match=words):
                hf.verify(folder)

    def test_a_run_file_names_the_map(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        geojson(tmp_path / "areas.geojson")
        lines = ["area,sex,n", *(f"{a},{s},{n}" for (a, s), n in zip(itertools.product(CODES["area"], CODES["sex"]), COUNTS, strict=True))]
        Path("people.csv").write_text("\n".join(lines) + "\n")
        run = (
            '[table]\nsource = "people.csv"\ncells = ["area", "sex"]\ncount = "n"\n[keep]\ntotal = true\n[release]\nid = "m"\n'
            'mechanism = "generalized-laplace"\nepsilon = "1/2"\nper = "distance"\nledger = "none"\n'
        )
        Path("run.toml").write_text(run + 'map = "areas.geojson"\nmap_code = "id"\n')
        loaded = load_run("run.toml")
        assert loaded.map == MapRequest(tmp_path / "areas.geojson", "id", None)
        Path("run.toml").write_text(run + 'map = "areas.geojson"\n')
        with pytest.raises(InvalidRun, match="map goes with map_code"):
            load_run("run.toml")
        Path("run.toml").write_text(run + 'map = "none.geojson"\nmap_code = "id"\n')
        with pytest.raises(InvalidRun, match=r"none\.geojson"):
            load_run("run.toml")

    def test_a_map_that_does_not_fit_is_refused_before_anything_is_written(self, release: Publication, tmp_path: Path) -> None:
        for places, code, words in ((SQUARES[3:], "id", "No code of the map"), (SQUARES, "other", "has a property 'other'")):
            with pytest.raises(InvalidParameter, match=words):
                release.save(tmp_path / "out", map=geojson(tmp_path / "m.geojson", places=places), map_code=code)
        with pytest.raises(InvalidParameter, match="needs map_code"):
            release.save(tmp_path / "out", map=tmp_path / "m.geojson")
        with pytest.raises(InvalidParameter, match="go with a map"):
            release.save(tmp_path / "out", map_code="id")
        far = geojson(tmp_path / "far.geojson", places=[((1e300, 0), "a")])
        with pytest.raises(UnreadableInput, match="no pairs of numbers"):
            release.save(tmp_path / "out", map=far, map_code="id")
        assert not (tmp_path / "out").exists()


class TestNestedAreas:
    """County 001 is in two states: a map says which one by the codes of both, or is refused."""

    def made(self, states: list[str], counties: list[str]) -> Publication:
        pairs = [(*pair, sex) for pair in zip(states, counties, strict=True) for sex in ("F", "M")]
        columns = dict(zip(("state", "county", "sex"), map(list, zip(*pairs, strict=True)), strict=True))
        table = hf.Table(hf.Universe.listed(columns), np.arange(100, 100 + len(pairs)))
        return hf.release(
            table,
            [hf.margin("state")],
            hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
            key=hf.NoiseKey.for_tests("nested"),
            release_id="n",
        )

    def shown(self, release: Publication, folder: Path, codes: list[str], level: str | None = None) -> dict[str, str]:
        path = folder / f"{'-'.join(codes)}.geojson"
        figure = release.plot.map(geojson(path, places=[((k, 0), code) for k, code in enumerate(codes)]), "id", level)
        return {row[0]: row[1] for row in figure.rows}

    @pytest.mark.parametrize("level", [None, "county"])
    def test_the_code_of_both_columns(self, level: str | None, tmp_path: Path) -> None:
        release = self.made(["17", "17", "18"], ["001", "003", "001"])
        first, second, third = release.table.counts.reshape(3, 2).sum(axis=1).tolist()
        found = self.shown(release, tmp_path, ["17001", "17003", "18001", "19001"], level)
        assert found == {"17001": str(first), "17003": str(second), "18001": str(third), "19001": "none"}

    @pytest.mark.parametrize("level", [None, "county"])
    def test_half_a_code_is_refused(self, level: str | None, tmp_path: Path) -> None:
        release = self.made(["17", "17", "18"], ["001", "003", "001"])
        said = r"'001' of the map could mean several areas: codes of 'county' are unique within state\. Name with map_code .* '1[78]001'"
        with pytest.raises(InvalidParameter, match=said):
            self.shown(release, tmp_path, ["001", "003"], level)

    def test_two_areas_of_one_short_code_are_refused_and_of_a_full_one_drawn(self, tmp_path: Path) -> None:
        short, full = self.made(["17", "17", "18"], ["001", "003", "005"]), self.made(["17", "17", "18"], ["17001", "17003", "18005"])
        assert self.shown(short, tmp_path, ["001", "005"])["005"] == str(int(short.table.counts[4:].sum()))
        with pytest.raises(InvalidParameter, match="could mean several areas"):
            self.shown(short, tmp_path, ["001", "005", "001"])
        assert self.shown(full, tmp_path, ["17001", "18005", "17001"])["17001"] == str(int(full.table.counts[:2].sum()))  # an island

    def test_codes_of_other_columns_do_not_get_in_the_way(self, tmp_path: Path) -> None:
        table = hf.Table(hf.Universe.product({"area": ["F", "M", "X"], "sex": ["F", "M"]}), np.arange(6))
        release = hf.release(
            table, [], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests("two"), release_id="t"
        )
        assert self.shown(release, tmp_path, ["F", "M"], None)["F"] == str(int(release.table.counts[:2].sum()))

    def test_a_plan_refuses_it(self, tmp_path: Path, run: Run) -> None:
        (tmp_path / "t.csv").write_text("state,county,n\n17,001,5\n17,003,6\n18,001,7\n")
        geojson(tmp_path / "half.geojson", places=[((0, 0), "001")])
        (tmp_path / "run.toml").write_text(
            '[table]\nsource = "t.csv"\ncells = ["state", "county"]\ncount = "n"\n[keep]\n[release]\nid = "r"\nepsilon = "1"\n'
            'mechanism = "generalized-laplace"\nper = "person"\nmap = "half.geojson"\nmap_code = "id"\n'
        )
        ran = run("plan", str(tmp_path / "run.toml"), "--no-ledger")
        assert (ran.code, ran.out) == (2, "")
        assert "could mean several areas" in ran.err

    def test_it_is_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        release = self.made(["17", "17", "18"], ["001", "003", "001"])
        path = geojson(tmp_path / "half.geojson", places=[((0, 0), "001")])
        with pytest.raises(InvalidParameter, match="could mean several areas"):
            release.save(tmp_path / "out", map=path, map_code="id")
        assert not (tmp_path / "out").exists()


def test_proved_bounds_are_never_rounded_down() -> None:
    """The caption of these figures says that they are proved upper bounds."""
    counties = hf.Hierarchy.from_parents({code: "ab"[code in "yz"] for code in "vwxyz"}, levels=["state", "county"])
    universe = hf.Universe.product({"county": counties, "sex": ["F", "M"]})
    plan = hf.plan(universe, [hf.margin("state")], hf.GeneralizedGaussian(rho="1/10", levels={"state": "1/3", "county": "2/3"}))
    assert plan.expected_error.basis == "upper bound"
    units = LevelUnits(plan)
    for level, found in zip(units.levels, spreads(units, units.levels), strict=True):
        exact = units.deviations(level)
        largest, shown = float(exact.max()), found.largest
        assert shown is not None
        assert shown >= largest
        assert float(f"{shown:.3g}") == shown, "three digits, as pages show it"
