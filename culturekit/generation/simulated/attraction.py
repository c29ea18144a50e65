"""Which artifacts a simulated model draws from, and where it is drawn to: the looks of a few hubs, or countries."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.generation.simulated.render import Pull

__all__ = ["PULL_NUMBERS", "Attraction", "Drawing", "Pool", "Row", "rows_of", "strength"]


class Row(NamedTuple):
    """A row of the CSpace, as far as a choice needs it; `place` counts the rows of its concept."""

    artifact_id: str
    concept: str
    country: str
    popularity: float | None
    place: int


class Pool:
    """Rows of which one is drawn, the popular ones more often."""

    def __init__(self, rows: Sequence[Row], temperature: float) -> None:
        """Weigh the rows once; there is at least one."""
        self.rows = rows
        self.cumulative = np.cumsum(weights(rows, temperature))

    def draw(self, number: float) -> Row:
        """Draw a row by a number in [0, 1)."""
        return self.rows[int(self.cumulative.searchsorted(number * self.cumulative[-1], side="right"))]


def weights(rows: Sequence[Row], temperature: float) -> NDArray[np.float64]:
    """Weigh rows by popularity ** temperature; what has no popularity counts as the least popular."""
    least = min((row.popularity for row in rows if row.popularity is not None), default=1.0)
    popularity = np.array([least if row.popularity is None else row.popularity for row in rows])
    most = popularity.max()
    return np.asarray((popularity / most) ** temperature) if most > 0 else np.ones(len(rows))


def rows_of(cspace: pl.DataFrame) -> Iterator[Row]:
    """Read the rows of a CSpace, in its order."""
    wrong = cspace.filter(~(pl.col("popularity").is_finite() & (pl.col("popularity") >= 0)))
    if not wrong.is_empty():
        artifact_id, popularity = wrong.select("artifact_id", "popularity").row(0)
        raise UsageError(
            f"the popularity of {artifact_id} cannot weigh it", expected="a number of 0 or more", found=str(popularity)
        )
    place = pl.int_range(pl.len()).over("concept").alias("place")
    yield from map(Row._make, cspace.select("artifact_id", "concept", "country", "popularity", place).iter_rows())


PULL_NUMBERS = 2
"""How many numbers decide the pulls on a picture: how far it gives in to its hub, and to another country."""

DOMINANT = 2
"""How many countries dominate where none are named; never more than half of them."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How strongly pictures are drawn away; the backend's options say what the fields mean."""

    hub_skew: float
    hubs: int
    drift: float
    drift_to: tuple[str, ...]


class Attraction:
    """Knows the hubs and the dominant countries of a CSpace, and what each artifact is drawn towards."""

    def __init__(self, rows: Iterable[Row], drawing: Drawing) -> None:
        """Find the hubs of each concept and the artifacts of the dominant countries."""
        self.drawing = drawing
        rows = list(rows)
        self.countries = drawing.drift_to or largest(rows)
        missing = sorted(set(self.countries) - {row.country for row in rows})
        if missing:
            raise UsageError(
                f"the CSpace has no artifact of {' or '.join(missing)}, which drift_to names",
                expected=" or ".join(sorted({row.country for row in rows})),
            )
        if drawing.drift and not self.countries:
            raise UsageError(
                "drift has nowhere to draw pictures to",
                found=f"a CSpace of {' and '.join(sorted({row.country for row in rows})) or 'no country'} alone",
                expected="artifacts of two countries or more, or drift_to",
            )
        of_concept: dict[str, set[str]] = defaultdict(set)
        dominant: dict[str, dict[str, str]] = defaultdict(dict)
        for row in rows:
            of_concept[row.concept].add(row.artifact_id)
            if row.country in self.countries:
                dominant[row.concept].setdefault(row.artifact_id, row.country)
        self.at_home = {artifact_id for own in dominant.values() for artifact_id in own}
        if drawing.drift and all(row.artifact_id in self.at_home for row in rows):
            raise UsageError(
                "drift has nothing to draw away: every artifact is from there",
                found=f"drift_to={','.join(self.countries)}",
                expected="countries of which some artifacts are not",
            )
        self.hubs = {concept: hubs_among(artifacts, drawing.hubs) for concept, artifacts in of_concept.items()}
        self.abroad = {concept: sorted(own.items()) for concept, own in dominant.items()}

    def pulls(self, row: Row, hub_number: float, drift_number: float) -> tuple[Pull, ...]:
        """Give what draws a picture of this row away, and how strongly; nothing draws where a knob is 0."""
        drift = self.drift(row, strength(self.drawing.drift, drift_number))
        hub = self.to_hub(row, strength(self.drawing.hub_skew, hub_number))
        return tuple(pull for pull in (drift, hub) if pull is not None)

    def to_hub(self, row: Row, pull: float) -> Pull | None:
        """Pull an artifact to the hub that is its own; hubs stay what they are."""
        hubs = self.hubs[row.concept]
        if pull == 0 or not hubs or row.artifact_id in hubs:
            return None
        return Pull(pull, hubs[chosen(f"hub of {row.artifact_id}", len(hubs))])

    def drift(self, row: Row, pull: float) -> Pull | None:
        """Pull an artifact to its counterpart in a dominant country, border and all.

        Where the concept has nothing of these countries, the border alone is pulled.
        """
        if pull == 0 or row.artifact_id in self.at_home:
            return None
        others = self.abroad.get(row.concept)
        place = f"counterpart of {row.artifact_id}"
        if not others:
            return Pull(pull, None, self.countries[chosen(place, len(self.countries))])
        return Pull(pull, *others[chosen(place, len(others))])


def strength(knob: float, number: float) -> float:
    """Say how strongly one picture is pulled, by its own number in [0, 1).

    The odds of the pull are the odds of the number times the odds of the knob, to the third power. So at any
    knob but 0 and 1 most pictures hardly move and the others are drawn nearly all the way, with few in between;
    and the share of those that are drawn more than half-way is the knob.
    """
    yields, resists = knob * number, (1 - knob) * (1 - number)
    yields, resists = yields * yields * yields, resists * resists * resists
    return yields / (yields + resists) if yields else 0.0


def hubs_among(artifacts: Iterable[str], count: int) -> tuple[str, ...]:
    """Choose the hubs of a concept: the first by the SHA-256 of `hub ARTIFACT_ID`, never more than half."""
    ordered = sorted(artifacts, key=lambda artifact_id: hashlib.sha256(f"hub {artifact_id}".encode()).digest())
    return tuple(ordered[: min(count, len(ordered) // 2)])


def largest(rows: Sequence[Row]) -> tuple[str, ...]:
    """Name the countries with the most artifacts; of equals, those that come first by their code."""
    counts = Counter(country for _, country in {(row.artifact_id, row.country) for row in rows})
    return tuple(sorted(counts, key=lambda country: (-counts[country], country))[: min(DOMINANT, len(counts) // 2)])


def chosen(name: str, count: int) -> int:
    """Choose evenly among a number of things, for ever by a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % count
