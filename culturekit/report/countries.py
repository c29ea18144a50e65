"""Which countries the images of each model show."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
import polars as pl
import pycountry

from culturekit.core import roles
from culturekit.core.schemas import CSPACE, DISTRIBUTIONS, SCORES
from culturekit.kg.countries import countries
from culturekit.report.run_folders import RunFolders

# The countries of the world as SVG paths: Natural Earth at 1:110m, in the Equal Earth projection.
#
# The file is that of the npm package world-atlas 2.0.2; Natural Earth is in the public domain.

WIDTH, HEIGHT = 1000, 432
ANTARCTICA = "010"
NORTH = 83.7  # the map ends where land does, and in the south before Antarctica

SOUTH = -56.0

Point: TypeAlias = tuple[float, float]


@cache
def country_paths() -> Mapping[str, str]:
    """Give the path of each country on the map, by its two letters; of land that has none, under an empty name."""
    text = files("culturekit").joinpath("report/world/countries-110m.json").read_bytes()
    topology: dict[str, Any] = msgspec.json.decode(text)
    arcs = [decoded(arc, topology["transform"]) for arc in topology["arcs"]]
    paths: dict[str, str] = {}
    for country in topology["objects"]["countries"]["geometries"]:
        if country.get("id") != ANTARCTICA:
            code = code_of(country)
            paths[code] = paths.get(code, "") + "".join(path(ring, arcs) for ring in rings(country))
    return paths


def code_of(country: Mapping[str, Any]) -> str:
    """Find the two letters of a country by its ISO number."""
    found = pycountry.countries.get(numeric=country.get("id", ""))
    if found is not None:
        return str(found.alpha_2)
    return "XK" if country["properties"]["name"] == "Kosovo" else ""


def rings(country: Mapping[str, Any]) -> Iterator[Sequence[int]]:
    """List the rings of a country, holes included, as numbers of arcs."""
    polygons = [country["arcs"]] if country["type"] == "Polygon" else country["arcs"]
    for polygon in polygons:
        yield from polygon


def decoded(arc: Sequence[Sequence[int]], transform: Mapping[str, Sequence[float]]) -> list[Point]:
    """Turn the steps of an arc into degrees."""
    (wide, high), (left, bottom) = transform["scale"], transform["translate"]
    x = y = 0
    points = []
    for east, north in arc:
        x, y = x + east, y + north
        points.append((x * wide + left, y * high + bottom))
    return points


def path(ring: Sequence[int], arcs: Sequence[Sequence[Point]]) -> str:
    """Draw a ring; the number of an arc that is walked backwards is the complement of its own.

    A ring across the 180th meridian is drawn at both ends of the map, which cuts off what is too much.
    """
    points: list[Point] = []
    for number in ring:
        arc = arcs[number] if number >= 0 else arcs[~number][::-1]
        points += arc[1:] if points else arc
    whole = unbroken(points)
    east, west = max(x for x, _ in whole), min(x for x, _ in whole)
    turns = [0, *([-360] if east > 180 else []), *([360] if west < -180 else [])]
    return "".join(outline([(x + turn, y) for x, y in whole]) for turn in turns)


def unbroken(points: Sequence[Point]) -> list[Point]:
    """Let longitudes run on where they jump from one end of the map to the other."""
    whole, turn = [points[0]], 0
    for (before, _), (x, y) in pairwise(points):
        turn += -360 if x - before > 180 else 360 if x - before < -180 else 0
        whole.append((x + turn, y))
    return whole


def outline(points: Sequence[Point]) -> str:
    """Draw a closed line."""
    placed = [f"{x:.0f} {y:.0f}" for x, y in map(projected, points)]
    kept = [point for number, point in enumerate(placed) if number == 0 or point != placed[number - 1]]
    return f"M{'L'.join(kept)}Z" if len(kept) > 2 else ""


def projected(point: Point) -> Point:
    """Place a longitude and a latitude on the map."""
    scale = WIDTH / (2 * equal_earth(180, 0)[0])
    x, y = equal_earth(point[0], min(max(point[1], SOUTH), NORTH))
    return WIDTH / 2 + x * scale, (equal_earth(0, NORTH)[1] - y) * scale


def equal_earth(longitude: float, latitude: float) -> Point:
    """Project by Equal Earth (Savric, Patterson and Jenny 2018): areas stay what they are."""
    a1, a2, a3, a4 = 1.340264, -0.081106, 0.000893, 0.003796
    half = math.sqrt(3) / 2
    angle = math.asin(half * math.sin(math.radians(latitude)))
    squared = angle * angle
    sixth = squared**3
    slope = a1 + 3 * a2 * squared + sixth * (7 * a3 + 9 * a4 * squared)
    return (
        math.radians(longitude) * math.cos(angle) / (half * slope),
        angle * (a1 + a2 * squared + sixth * (a3 + a4 * squared)),
    )


@dataclass(frozen=True, slots=True)
class Share:
    """The share of images that show something, with its limits, and how many images that is."""

    value: float
    low: float | None
    high: float | None
    images: int


@dataclass(frozen=True, slots=True)
class CountryShares:
    """Which countries the images of each model were mapped to."""

    names: Mapping[str, str]  # of each country, by its code, in the order of the names
    models: tuple[str, ...]  # in the order of the page
    shares: Mapping[str, Mapping[str, Share]]  # by model and code
    images: Mapping[str, int]  # how many images each model made that were mapped
    available: Mapping[str, float]  # the share of each country in the artifacts that images are mapped to
    off_the_map: tuple[str, ...]  # countries too small for the map
    # by model and code, the shares that people's answers put right; of models that were audited
    corrected: Mapping[str, Mapping[str, Share]] = field(default_factory=dict)

    def leading(self, model: str) -> Mapping[str, Share]:
        """Give the shares of a model, corrected where people looked."""
        return self.corrected.get(model, self.shares[model])

    @property
    def intervals(self) -> bool:
        """Tell whether any share has limits."""
        return any(share.low is not None for model in self.models for share in self.leading(model).values())

    def never(self, model: str) -> int:
        """Count the countries that no image of a model was mapped to, and nobody saw."""
        return sum(share.value == 0 for share in self.leading(model).values())

    def most(self, model: str) -> str:
        """Name the country that most images of a model show."""
        shares = self.leading(model)
        return self.names[max(shares, key=lambda code: shares[code].value)]


def shares_in(run: RunFolders, models: Sequence[str]) -> CountryShares | None:
    """Collect the share of each country in the images of each model; None for a run that did not count them."""
    table = run.read(roles.SHOWN, DISTRIBUTIONS)
    if table is None:
        return None
    shown = over_all_concepts(table.filter(pl.col("level") == "country"))
    known = run.space()["country"].unique().to_list()
    mapped = shown["label"].drop_nulls().unique().to_list()
    seen = audited_shares(run)
    found = {code for shares in seen.values() for code in shares}
    names = country_names(run)
    codes = sorted({*known, *mapped, *found}, key=lambda code: names.get(code, code))
    cells = {(row["model"], row["label"]): share(row) for row in shown.to_dicts()}
    images = dict(shown.group_by("model").agg(pl.col("images").sum()).iter_rows())
    return CountryShares(
        names={code: names.get(code, code) for code in codes}, models=tuple(models),
        shares={
            model: {code: cells.get((model, code), Share(0.0, None, None, 0)) for code in codes} for model in models
        },
        images=images, available=available(run.space()),
        off_the_map=tuple(code for code in codes if code not in country_paths()),
        corrected={
            model: {code: seen[model].get(code, Share(0.0, None, None, 0)) for code in codes}
            for model in models
            if model in seen
        },
    )  # fmt: skip


def audited_shares(run: RunFolders) -> dict[str, dict[str, Share]]:
    """Read the share of each country in the images of each model, as people's answers put it right."""
    table = run.read(roles.AUDITED, SCORES)
    if table is None:
        return {}
    shown = over_all_concepts(table.filter(pl.col("metric") == "shown_share"))
    found: dict[str, dict[str, Share]] = {}
    for row in shown.to_dicts():
        found.setdefault(row["model"], {})[row["group"]] = Share(row["value"], row["ci_low"], row["ci_high"], row["n"])
    return found


def over_all_concepts(shown: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Keep the rows over all concepts; a model with one concept, or what `by` tells apart, has no others."""
    over_all = shown.filter(pl.col("concept").is_null())
    return pl.concat([over_all, shown.join(over_all, on=by or "model", how="anti")])


def share(row: dict[str, float | int | None]) -> Share:
    """Read a share from a row of the table."""
    return Share(float(row["share"] or 0), row["ci_low"], row["ci_high"], int(row["images"] or 0))


def available(space: pl.DataFrame) -> dict[str, float]:
    """Say which share of the artifacts is of each country: what a model would show that favours none."""
    counts = space.select("artifact_id", "country").unique().group_by("country").len()
    total = counts["len"].sum()
    return {code: number / total for code, number in counts.iter_rows()}


def country_names(run: RunFolders) -> dict[str, str]:
    """Name countries by their codes: as the cultural space does, others as lists of countries do."""
    known, space = {code: country.name for code, country in countries().items()}, run.read(roles.CSPACE, CSPACE)
    if space is None:
        return known
    named = space.select("country", "country_name").filter(pl.col("country_name") != "").unique("country")
    return {**known, **dict(named.iter_rows())}


# The artifacts that are shown most, and popular ones that are shown least.

SHOWN = 10


@dataclass(frozen=True, slots=True)
class ArtifactShares:
    """The share of an artifact in the images of each model; None where no image shows it."""

    name: str
    country: str | None
    popularity: float | None
    shares: tuple[Share | None, ...]


@dataclass(frozen=True, slots=True)
class Extremes:
    """Artifacts at both ends."""

    most: tuple[ArtifactShares, ...]  # those with the largest share in the images of some model, largest first
    least: tuple[ArtifactShares, ...]  # the most popular of those that the fewest images show
    artifacts: int  # names of artifacts there are to be shown
    never: tuple[int, ...]  # of them are never the nearest to an image of each model


def extremes_in(run: RunFolders, models: Sequence[str]) -> Extremes | None:
    """Collect both ends, over all concepts; None for a run that did not count what is shown."""
    table = run.read(roles.SHOWN, DISTRIBUTIONS)
    if table is None:
        return None
    shown = over_all_concepts(table.filter(pl.col("level") == "artifact", pl.col("label").is_not_null()))
    shown = shown.filter(pl.col("model").is_in(list(models)), pl.col("images") > 0)
    known = run.space().group_by("name").agg(pl.col("popularity").max(), pl.col("country").drop_nulls().min())
    cells = {(row["model"], row["label"]): share(row) for row in shown.to_dicts()}
    most = shown.group_by("label").agg(pl.col("share").max()).sort(["share", "label"], descending=[True, False])
    counts = shown.group_by("label").agg(pl.col("images").sum())
    least = known.join(counts, left_on="name", right_on="label", how="left").with_columns(pl.col("images").fill_null(0))
    least = least.sort(["images", "popularity", "name"], descending=[False, True, False], nulls_last=True)
    about, names = {row["name"]: row for row in known.to_dicts()}, country_names(run)

    def line(name: str) -> ArtifactShares:
        extreme = about.get(name, {"country": None, "popularity": None})
        return ArtifactShares(
            name, names.get(extreme["country"], extreme["country"]), extreme["popularity"],
            tuple(cells.get((model, name)) for model in models),
        )  # fmt: skip

    return Extremes(
        most=tuple(line(name) for name in most["label"].head(SHOWN)),
        least=tuple(line(name) for name in least["name"].head(SHOWN)), artifacts=known.height,
        never=tuple(sum((model, name) not in cells for name in about) for model in models),
    )  # fmt: skip
