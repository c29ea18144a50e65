"""A text-to-image model with known bias: what it draws, how often, and what each picture truly shows."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import numpy as np
import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import read_table
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Numbers, Pull, Subject, draw

_Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


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
    favour_strength: _Share | None = None
    collapse: _Share = 0.0
    modes: Annotated[int, msgspec.Meta(ge=1)] = 2
    error: _Share = 0.0
    noise: _Share = 0.0
    confusability: _Share = 0.0
    hub_skew: _Share = 0.0
    hubs: Annotated[int, msgspec.Meta(ge=1)] = 3
    drift: _Share = 0.0
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
    def dominant(self) -> tuple[str, ...]:
        """The countries that pictures drift to, where they are named."""
        return tuple(dict.fromkeys(code.strip() for code in self.drift_to.split(",") if code.strip()))


# Which artifacts a simulated model draws from, and where it is drawn to: the looks of a few hubs, or countries.


class Row(NamedTuple):
    """A row of the CSpace, as far as a choice needs it; `position` counts the rows of its concept."""

    artifact_id: str
    concept: str
    country: str
    popularity: float | None
    position: int


class Pool:
    """Rows of which one is drawn, the popular ones more often."""

    def __init__(self, rows: Sequence[Row], temperature: float) -> None:
        """Weigh the rows once; there is at least one."""
        self.rows = rows
        least = min((row.popularity for row in rows if row.popularity is not None), default=1.0)
        popularity = np.array([least if row.popularity is None else row.popularity for row in rows])
        most = popularity.max()
        self.cumulative = np.cumsum(np.asarray((popularity / most) ** temperature) if most > 0 else np.ones(len(rows)))

    def draw(self, number: float) -> Row:
        """Draw a row by a number in [0, 1)."""
        return self.rows[int(self.cumulative.searchsorted(number * self.cumulative[-1], side="right"))]


def rows_of(cspace: pl.DataFrame) -> Iterator[Row]:
    """Read the rows of a CSpace, in its order."""
    wrong = cspace.filter(~(pl.col("popularity").is_finite() & (pl.col("popularity") >= 0)))
    if not wrong.is_empty():
        artifact_id, popularity = wrong.select("artifact_id", "popularity").row(0)
        raise UsageError(
            f"the popularity of {artifact_id} cannot weigh it", expected="a number of 0 or more", found=str(popularity)
        )
    number = pl.int_range(pl.len()).over("concept").alias("place")
    yield from map(Row._make, cspace.select("artifact_id", "concept", "country", "popularity", number).iter_rows())


# how many numbers decide the pulls on a picture: how far it gives in to its hub, and to another country
_PULL_NUMBERS = 2
_DOMINANT = 2  # how many countries dominate where none are named; never more than half of them


class Attraction:
    """Knows the hubs and the dominant countries of a CSpace, and what each artifact is drawn towards."""

    def __init__(self, rows: Iterable[Row], options: Options) -> None:
        """Find the hubs of each concept and the artifacts of the dominant countries."""
        self.options = options
        rows = list(rows)
        # Else those with the most artifacts; of equals, those that come first by their code.
        counts = Counter(country for _, country in {(row.artifact_id, row.country) for row in rows})
        largest = sorted(counts, key=lambda country: (-counts[country], country))
        self.countries = options.dominant or tuple(largest[: min(_DOMINANT, len(counts) // 2)])
        missing = sorted(set(self.countries) - {row.country for row in rows})
        if missing:
            raise UsageError(
                f"the CSpace has no artifact of {' or '.join(missing)}, which drift_to names",
                expected=" or ".join(sorted({row.country for row in rows})),
            )
        if options.drift and not self.countries:
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
        self.at_home = {artifact_id for artifacts in dominant.values() for artifact_id in artifacts}
        if options.drift and all(row.artifact_id in self.at_home for row in rows):
            raise UsageError(
                "drift has nothing to draw away: every artifact is from there",
                found=f"drift_to={','.join(self.countries)}",
                expected="countries of which some artifacts are not",
            )
        # The hubs of a concept are the first by the SHA-256 of `hub ARTIFACT_ID`, never more than half.
        self.hubs = {
            concept: tuple(
                sorted(artifacts, key=lambda one: _hashed(f"hub {one}"))[: min(options.hubs, len(artifacts) // 2)]
            )
            for concept, artifacts in of_concept.items()
        }
        self.abroad = {concept: sorted(artifacts.items()) for concept, artifacts in dominant.items()}

    def pulls(self, row: Row, hub_number: float, drift_number: float) -> tuple[Pull, ...]:
        """Give what draws a picture of this row away, and how strongly; nothing draws where a knob is 0."""
        drift = self.drift(row, strength(self.options.drift, drift_number))
        hub = self.to_hub(row, strength(self.options.hub_skew, hub_number))
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
        seed_name = f"counterpart of {row.artifact_id}"
        if not others:
            return Pull(pull, None, self.countries[chosen(seed_name, len(self.countries))])
        return Pull(pull, *others[chosen(seed_name, len(others))])


def strength(knob: float, number: float) -> float:
    """Say how strongly one picture is pulled, by its own number in [0, 1).

    The odds of the pull are the odds of the number times the odds of the knob, to the third power. So at any
    knob but 0 and 1 most pictures hardly move and the others are drawn nearly all the way, with few in between;
    and the share of those that are drawn more than half-way is the knob.
    """
    yields, resists = knob * number, (1 - knob) * (1 - number)
    yields, resists = yields * yields * yields, resists * resists * resists
    return yields / (yields + resists) if yields else 0.0


def chosen(name: str, count: int) -> int:
    """Choose evenly among a number of things, for ever by a name."""
    return int.from_bytes(_hashed(name)[:8], "big") % count


def _hashed(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


# how many numbers decide a choice: whether the model slips into a habit, whether it favours, and which row
CHOICE_NUMBERS = 3


class BiasedChoice:
    """Chooses the row of a CSpace that answers a request."""

    def __init__(self, cspace: pl.DataFrame, options: Options) -> None:
        """Sort the rows by concept and by artifact."""
        self.bias = options
        self.of_concept: dict[str, list[Row]] = defaultdict(list)
        self.of_artifact: dict[str, list[Row]] = defaultdict(list)
        self.pools: dict[tuple[str, str | None, bool], Pool | None] = {}
        self.modes: dict[tuple[str, str | None], list[Row]] = {}
        for row in rows_of(cspace):
            self.of_concept[row.concept].append(row)
            self.of_artifact[row.artifact_id].append(row)
        if options.favour and options.favour not in cspace["country"]:
            raise UsageError(
                f"the CSpace has no artifact of the favoured country {options.favour!r}",
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
        excluded = [row.position for row in self.of_artifact[asked.artifact_id] if row.concept == asked.concept]
        if len(excluded) == len(rows):
            return asked
        index = int(pick * (len(rows) - len(excluded)))
        for skipped in sorted(excluded):
            index += index >= skipped
        return rows[index]

    def under_specified(self, concept: str, country: str | None, numbers: Numbers) -> Row | None:
        """Draw from the biased distribution over the rows of a concept, of one country where it is named."""
        slip, favour, pick = numbers
        if slip < self.bias.collapse:
            key = (concept, country)
            if key not in self.modes:
                shuffled = sorted(
                    self.rows_of(concept, country), key=lambda row: _hashed(f"mode {row.artifact_id} {row.country}")
                )
                self.modes[key] = shuffled[: self.bias.modes]
            modes = self.modes[key]
            return modes[int(pick * len(modes))] if modes else None
        pool = self.pool_of(concept, country, favoured=favour < (self.bias.favour_strength or 0.0))
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

    def rows_of(self, concept: str, country: str | None) -> list[Row]:
        """Give the rows of a concept, of one country where it is named."""
        return [row for row in self.of_concept.get(concept, ()) if country in (None, row.country)]


# which numbers of a seed decide the drawing; the first is for culture-free pictures, the last for pulls
_DRAWN = slice(1 + CHOICE_NUMBERS, 1 + CHOICE_NUMBERS + DRAWING_NUMBERS)


class _SimulatedBackend:
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
        numbers = [
            np.random.default_rng(request.seed % 2**64).random(_DRAWN.stop + _PULL_NUMBERS) for request in requests
        ]
        chosen = [self.choose(request, stream) for request, stream in zip(requests, numbers, strict=True)]
        shown = [index for index, subject in enumerate(chosen) if not isinstance(subject, Failure)]
        drawn = draw(
            [subject for subject in chosen if not isinstance(subject, Failure)],
            np.array([numbers[index][_DRAWN] for index in shown]).reshape(-1, DRAWING_NUMBERS),
            size=size,
            confusability=self.options.confusability,
        )
        pictures = iter(drawn)
        return [
            subject
            if isinstance(subject, Failure)
            else Picture(
                next(pictures),
                seed_honoured=True,
                truth_artifact_id=subject.artifact_id if subject else None,
                truth_country=subject.country if subject else None,
            )
            for subject in chosen
        ]

    def choose(self, request: ImageRequest, numbers: Numbers) -> Subject | Failure | None:
        """Decide what to draw; None is a culture-free picture."""
        row = self.choice.choose(request, numbers[1 : 1 + CHOICE_NUMBERS])
        if row is None:
            named = {"artifact": request.artifact_id, "concept": request.concept, "country": request.country}
            asked = ", ".join(f"{what} {name!r}" for what, name in named.items() if name)
            asked = asked or "it names neither artifact nor concept"
            return Failure("failed", f"the CSpace has nothing for this prompt: {asked}")
        if numbers[0] < self.options.noise:
            return None
        return Subject(row.artifact_id, row.country, self.attraction.pulls(row, *numbers[_DRAWN.stop :].tolist()))


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
    return _SimulatedBackend(options, BiasedChoice(space, options), Attraction(rows_of(space), options))
