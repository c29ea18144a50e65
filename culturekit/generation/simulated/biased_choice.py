"""What a simulated model draws when it is asked: a known distribution over the artifacts of a CSpace."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass

import polars as pl

from culturekit.errors import UsageError
from culturekit.generation.backend import ImageRequest
from culturekit.generation.simulated.attraction import Pool, Row, rows_of
from culturekit.generation.simulated.canvas import Numbers

__all__ = ["CHOICE_NUMBERS", "Bias", "BiasedChoice"]

CHOICE_NUMBERS = 3
"""How many numbers decide a choice: whether the model slips into a habit, whether it favours, and which row."""


@dataclass(frozen=True, slots=True)
class Bias:
    """How a choice departs from what is asked for; the backend's options say what the fields mean."""

    temperature: float
    favour: str
    favour_strength: float
    collapse: float
    modes: int
    error: float


class BiasedChoice:
    """Chooses the row of a CSpace that answers a request."""

    def __init__(self, cspace: pl.DataFrame, bias: Bias) -> None:
        """Sort the rows by concept and by artifact."""
        self.bias = bias
        self.of_concept: dict[str, list[Row]] = defaultdict(list)
        self.of_artifact: dict[str, list[Row]] = defaultdict(list)
        self.pools: dict[tuple[str, str | None, bool], Pool | None] = {}
        self.modes: dict[tuple[str, str | None], list[Row]] = {}
        for row in rows_of(cspace):
            self.of_concept[row.concept].append(row)
            self.of_artifact[row.artifact_id].append(row)
        if bias.favour and bias.favour not in cspace["country"]:
            raise UsageError(
                f"the CSpace has no artifact of the favoured country {bias.favour!r}",
                expected=" or ".join(cspace["country"].unique().sort()),
            )

    def choose(self, request: ImageRequest, numbers: Numbers) -> Row | None:
        """Choose by CHOICE_NUMBERS numbers; None where the CSpace has nothing of what is asked for."""
        if request.artifact_id is not None:
            return self.specified(request.artifact_id, request, numbers)
        return self.under_specified(request.concept, request.country, numbers) if request.concept else None

    def specified(self, artifact_id: str, request: ImageRequest, numbers: Numbers) -> Row | None:
        """Take the artifact that is asked for, or by mistake another one of its concept."""
        rows = self.of_artifact.get(artifact_id)
        if not rows:
            return None
        rows = [row for row in rows if row.concept == request.concept] or rows
        asked = next((row for row in rows if row.country == request.country), rows[0])
        slip, _, pick = numbers
        return self.another(asked, pick) if slip < self.bias.error else asked

    def another(self, asked: Row, pick: float) -> Row:
        """Choose evenly among the rows of a concept's other artifacts; where there is none, make no mistake."""
        rows = self.of_concept[asked.concept]
        own = [row.place for row in self.of_artifact[asked.artifact_id] if row.concept == asked.concept]
        if len(own) == len(rows):
            return asked
        place = int(pick * (len(rows) - len(own)))
        for skipped in sorted(own):
            place += place >= skipped
        return rows[place]

    def under_specified(self, concept: str, country: str | None, numbers: Numbers) -> Row | None:
        """Draw from the biased distribution over the rows of a concept, of one country where it is named."""
        slip, favour, pick = numbers
        if slip < self.bias.collapse:
            modes = self.modes_of(concept, country)
            return modes[int(pick * len(modes))] if modes else None
        pool = self.pool_of(concept, country, favoured=favour < self.bias.favour_strength)
        return pool.draw(pick) if pool else None

    def pool_of(self, concept: str, country: str | None, *, favoured: bool) -> Pool | None:
        """Give what is drawn from; of the favoured country only, where it has anything to offer."""
        key = (concept, country, favoured)
        if key not in self.pools:
            rows = self.rows_of(concept, country)
            if favoured:
                rows = [row for row in rows if row.country == self.bias.favour] or rows
            self.pools[key] = Pool(rows, self.bias.temperature) if rows else None
        return self.pools[key]

    def modes_of(self, concept: str, country: str | None) -> list[Row]:
        """Give the few rows that a collapsed model draws, always the same."""
        key = (concept, country)
        if key not in self.modes:
            self.modes[key] = sorted(self.rows_of(concept, country), key=shuffled)[: self.bias.modes]
        return self.modes[key]

    def rows_of(self, concept: str, country: str | None) -> list[Row]:
        """Give the rows of a concept, of one country where it is named."""
        return [row for row in self.of_concept.get(concept, ()) if country in (None, row.country)]


def shuffled(row: Row) -> bytes:
    """Give a key that orders rows by nothing that matters."""
    return hashlib.sha256(f"mode {row.artifact_id} {row.country}".encode()).digest()
