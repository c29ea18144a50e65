import re

import pytest

from culturekit.kg.countries import countries
from culturekit.report.countries import HEIGHT, WIDTH, country_paths, equal_earth, projected

CAPITALS = {
    "BR": (-47.9, -15.8), "IN": (77.2, 28.6), "NG": (7.5, 9.1), "TR": (32.9, 39.9), "RU": (37.6, 55.8),
    "US": (-77.5, 38.9), "AU": (149.1, -35.3), "JP": (139.7, 35.8), "FR": (2.35, 48.9), "IT": (12.5, 41.9),
}  # fmt: skip


def crossings(path: str, x: float, y: float) -> int:
    """Count the edges of a path that a ray to the right of a point crosses."""
    count = 0
    for ring in re.findall(r"M([^Z]*)Z", path):
        points = [tuple(map(float, point.split())) for point in ring.split("L")]
        for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
            if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
                count += 1
    return count


@pytest.mark.parametrize("code", CAPITALS)
def test_a_capital_lies_in_its_country_and_in_no_other(code: str) -> None:
    x, y = projected(CAPITALS[code])
    inside = {other for other, path in country_paths().items() if crossings(path, x, y) % 2}
    assert inside == {code}


def test_the_projection_keeps_areas() -> None:
    def area(latitude: float) -> float:
        step = 0.01
        (left, low), (right, _) = equal_earth(-step, latitude), equal_earth(step, latitude)
        return (right - left) * (equal_earth(0, latitude + step)[1] - low)

    from math import cos, radians

    for latitude in (10.0, 35.0, 60.0, 80.0):
        assert area(latitude) / area(0.0) == pytest.approx(cos(radians(latitude + 0.005)), rel=1e-3)


def test_no_line_runs_across_the_map() -> None:
    for path in country_paths().values():
        for ring in re.findall(r"M([^Z]*)Z", path):
            across = [float(point.split()[0]) for point in ring.split("L")]
            assert max(abs(a - b) for a, b in zip(across, [*across[1:], across[0]], strict=True)) < WIDTH / 4


def test_land_lies_on_the_map_and_known_countries_are_there() -> None:
    heights = [float(y) for path in country_paths().values() for _, y in re.findall(r"([-0-9]+) ([-0-9]+)", path)]
    assert min(heights) >= -1
    assert max(heights) <= HEIGHT + 1
    assert set(countries()) - set(country_paths()) <= {"SG", "HK", "MO", "MT", "BH", "MV", "MU"}
