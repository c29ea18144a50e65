"""The countries of the world as SVG paths: Natural Earth at 1:110m, in the Equal Earth projection.

The file is that of the npm package world-atlas 2.0.2; Natural Earth is in the public domain.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
import pycountry

__all__ = ["HEIGHT", "WIDTH", "country_paths"]

WIDTH, HEIGHT = 1000, 432
ANTARCTICA = "010"
NORTH = 83.7
"""The map ends where land does, and in the south before Antarctica."""

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
    kept = [place for number, place in enumerate(placed) if number == 0 or place != placed[number - 1]]
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
