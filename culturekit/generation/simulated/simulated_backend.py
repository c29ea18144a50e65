"""A text-to-image model with known bias: what it draws, how often, and what each picture truly shows."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.simulated.attraction import PULL_NUMBERS, Attraction, Drawing, Pool, Row, rows_of
from culturekit.generation.simulated.canvas import Numbers
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Subject, draw
from culturekit.records.schemas import CSPACE
from culturekit.registry import Spec
from culturekit.storage.tables import read_table

__all__ = ["CHOICE_NUMBERS", "Bias", "BiasedChoice", "Options", "make"]

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


DRAWN = slice(1 + CHOICE_NUMBERS, 1 + CHOICE_NUMBERS + DRAWING_NUMBERS)
"""Which numbers of a seed decide the drawing; the first is for culture-free pictures, the last for pulls."""

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Options:
    """The knobs of a simulated model.

    Attributes:
        temperature: An under-specified prompt gets an artifact with a chance in proportion to
            popularity ** temperature; 0 is even, 1 proportional, more is sharper.
        favour: A country, as an ISO code.
        favour_strength: How often an under-specified prompt is answered from that country only, where it
            has anything to offer.
        collapse: How often an under-specified prompt is answered, whatever is favoured, with one of
            `modes` fixed artifacts of its concept.
        modes: How many those are.
        error: How often a prompt that names an artifact is answered with another one of its concept.
        noise: How often any prompt is answered with a culture-free picture.
        confusability: How alike artifacts and countries look: 0 not at all, 1 altogether.
        hub_skew: How strongly pictures are drawn towards the look of a few hubs, artifacts of the same
            concept: about this share of them look more like their hub than like what they show.
        hubs: How many artifacts of a concept are hubs: those that come first by the SHA-256 of
            `hub ARTIFACT_ID`, but never more than half.
        drift: How strongly pictures of artifacts of other countries are drawn towards the look of a few
            countries, border and emblem; about this share look more like an artifact from there.
        drift_to: These countries, as ISO codes with commas; without it the two with the most artifacts.
        size: Pixels along each side.
        cspace: Path of the CSpace table.
    """

    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0
    favour: str = ""
    favour_strength: Share | None = None
    collapse: Share = 0.0
    modes: Annotated[int, msgspec.Meta(ge=1)] = 2
    error: Share = 0.0
    noise: Share = 0.0
    confusability: Share = 0.0
    hub_skew: Share = 0.0
    hubs: Annotated[int, msgspec.Meta(ge=1)] = 3
    drift: Share = 0.0
    drift_to: str = ""
    size: Annotated[int, msgspec.Meta(ge=16, le=1024)] = 64
    cspace: str = ""

    def __post_init__(self) -> None:
        """Refuse a strength that has nothing to favour, and a favourite without strength."""
        if self.favour_strength and not self.favour:
            raise ValueError("favour_strength needs favour, the ISO code of a country")
        if self.favour and self.favour_strength is None:
            raise ValueError("favour needs favour_strength, from 0 to 1: without it nothing is favoured")

    @property
    def bias(self) -> Bias:
        """What bears on the choice of an artifact."""
        return Bias(self.temperature, self.favour, self.favour_strength or 0.0, self.collapse, self.modes, self.error)

    @property
    def drawing(self) -> Drawing:
        """What draws pictures away from what they show."""
        countries = tuple(dict.fromkeys(code.strip() for code in self.drift_to.split(",") if code.strip()))
        return Drawing(self.hub_skew, self.hubs, self.drift, countries)


class SimulatedBackend:
    """Draws artifacts of a CSpace; a request's seed decides everything that its prompt leaves open."""

    version: str | None = "simulated-1"
    knows_truth = True

    def __init__(self, options: Options, choice: BiasedChoice, attraction: Attraction) -> None:
        """Take the knobs, what chooses artifacts by them, and what draws pictures away from these."""
        self.options = options
        self.choice = choice
        self.attraction = attraction

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request with a picture and the truth about it; the pictures are squares, all of one size."""
        size = next((request.width for request in requests if request.width), self.options.size)
        if not 16 <= size <= 1024 or any((request.height or size) != size for request in requests):
            return [Failure("failed", "simulated models draw squares of 16 to 1,024 pixels") for _ in requests]
        numbers = [numbers_of_seed(request.seed) for request in requests]
        chosen = [self.choose(request, own) for request, own in zip(requests, numbers, strict=True)]
        shown = [place for place, subject in enumerate(chosen) if not isinstance(subject, Failure)]
        drawn = draw(
            [subject for subject in chosen if not isinstance(subject, Failure)],
            np.array([numbers[place][DRAWN] for place in shown]).reshape(-1, DRAWING_NUMBERS),
            size=size,
            confusability=self.options.confusability,
        )
        pictures = iter(drawn)
        return [subject if isinstance(subject, Failure) else picture_of(subject, next(pictures)) for subject in chosen]

    def choose(self, request: ImageRequest, numbers: Numbers) -> Subject | Failure | None:
        """Decide what to draw; None is a culture-free picture."""
        row = self.choice.choose(request, numbers[1 : 1 + CHOICE_NUMBERS])
        if row is None:
            return Failure("failed", f"the CSpace has nothing for this prompt: {asked_for(request)}")
        if numbers[0] < self.options.noise:
            return None
        return Subject(row.artifact_id, row.country, self.attraction.pulls(row, *numbers[DRAWN.stop :].tolist()))


def numbers_of_seed(seed: int) -> Numbers:
    """Draw the numbers that decide a picture: whether it is culture-free, the choice, the drawing, the pulls."""
    return np.random.default_rng(seed % 2**64).random(DRAWN.stop + PULL_NUMBERS)


def picture_of(subject: Subject | None, pixels: Pixels) -> Picture:
    """Put a drawing and the truth about it together."""
    if subject is None:
        return Picture(pixels, seed_honoured=True)
    return Picture(pixels, seed_honoured=True, truth_artifact_id=subject.artifact_id, truth_country=subject.country)


def asked_for(request: ImageRequest) -> str:
    """Say what a request names, for its failure."""
    named = {"artifact": request.artifact_id, "concept": request.concept, "country": request.country}
    return (
        ", ".join(f"{what} {name!r}" for what, name in named.items() if name) or "it names neither artifact nor concept"
    )


def make(spec: Spec, *, cspace: Path | None = None) -> ImageBackend:
    """Make the backend that a SPEC describes; its own `cspace` goes before the one of the run."""
    options = spec.read(Options, such_as="cspace=PATH")
    path = Path(options.cspace) if options.cspace else cspace
    if path is None:
        raise UsageError(
            "the simulated backend draws artifacts of a CSpace and has none",
            where=str(spec),
            hint="Add the option cspace=PATH, the path of a cspace.parquet.",
        )
    space = read_table(path, CSPACE)
    return SimulatedBackend(options, BiasedChoice(space, options.bias), Attraction(rows_of(space), options.drawing))
