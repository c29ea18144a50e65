"""A vision model says what each image shows: the alternative to mapping by nearest vectors."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asking import AskPlan, wording
from culturekit.builders.country_names import NAMES, country_code, folded, without_accents
from culturekit.builders.shown_images import (
    EVERY_IMAGE,
    ID_LETTERS,
    AskedImages,
    ImageSample,
    ImagesToShow,
    Judge,
    Row,
    ShownImages,
    Verdict,
    drawn,
    looks,
    sample_note,
)
from culturekit.core.declared import Typed
from culturekit.core.package_data import shipped
from culturekit.core.schemas import CSPACE, IMAGES, MATCHES
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, space_table, write_table
from culturekit.index.folder.artifact_names import artifacts_of
from culturekit.kg.countries import WORLD, countries, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Image, Request
from culturekit.llm.models import quoted
from culturekit.llm.rows import Answered

TASK = "image.geo-tag"
MOST_NAMED = 5
REPLY_TOKENS = 512


class NamedArtifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An artifact that the image may show."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
    country: Annotated[str, msgspec.Meta(max_length=80)] | None
    sure: Annotated[int, msgspec.Meta(ge=0, le=100)]


class GeoTag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one image."""

    id: str
    shown: Literal["yes", "no", "unsure"]
    artifacts: Annotated[list[NamedArtifact], msgspec.Meta(max_length=MOST_NAMED)]


# The artifacts of a cultural space by name: what somebody said, reconciled with what is known.

# How reconciling ended: the artifact was found; no artifact is called so; several are, and the country does not decide;
# the country said is none of the artifact's; or there was nothing to reconcile with.
Reconciling: TypeAlias = Literal[
    "reconciled", "unknown name", "name of several", "country of another", "no space given"
]


@dataclass(frozen=True, slots=True)
class KnownArtifact:
    """An artifact of the cultural space, its countries in stated order with the continent of each."""

    artifact_id: str
    name: str
    concepts: tuple[str, ...]
    countries: tuple[str, ...]
    continents: tuple[str, ...]

    def country(self, *wanted: str | None) -> tuple[str, str]:
        """Choose the first wanted country that is one of its own, else its first; and give the continent."""
        chosen = next((code for code in wanted if code in self.countries), self.countries[0])
        return chosen, self.continents[self.countries.index(chosen)]


class KnownArtifacts:
    """All artifacts of a cultural space, found by name or alias."""

    def __init__(self, cspace: Path) -> None:
        """Read the space.

        Names are compared folded, and without accents only where that finds what folding does not.
        """
        columns = ("artifact_id", "artifact", "concepts", "countries", "continents")
        rows = artifacts_of(cspace).select(columns).iter_rows()
        self.artifacts = {key: KnownArtifact(key, name, *map(tuple, lists)) for key, name, *lists in rows}
        self.exact: dict[str, set[str]] = {}
        self.loose: dict[str, set[str]] = {}
        space = read_table(cspace, CSPACE)
        aliases = pl.col("aliases") if "aliases" in space.columns else pl.lit(None)
        for artifact_id, name, others in space.select("artifact_id", "name", aliases.alias("others")).iter_rows():
            for key in map(folded, (name, *(others or ()))):
                self.exact.setdefault(key, set()).add(artifact_id)
                self.loose.setdefault(without_accents(key), set()).add(artifact_id)

    def find(
        self, name: str, *, country: str | None, concept: str | None = None
    ) -> tuple[KnownArtifact | None, Reconciling]:
        """Find the one artifact that is meant; the concept tells apart what name and country do not.

        Where a known country was said, an artifact of other countries is another one.
        """
        key = folded(name)
        ids = self.exact.get(key) or self.loose.get(without_accents(key)) or set()
        called = [self.artifacts[artifact_id] for artifact_id in sorted(ids)]
        if not key or not called:
            return None, "unknown name"
        there = [artifact for artifact in called if country is None or country in artifact.countries]
        if not there:
            return None, "country of another"
        meant = there if len(there) == 1 else [artifact for artifact in there if concept in artifact.concepts]
        return (meant[0], "reconciled") if len(meant) == 1 else (None, "name of several")


CAVEAT = "What an image shows is a model's word; its scores are how sure it says it is, and calibrated by nothing."
UNRECONCILED = "No cultural space was given: the artifacts are named as the model named them, and have no ids."

METHOD = "vlm"
OF_THE_IMAGE = ("image_id", "model", "prompt_id", "concept", "repeat", "slot")


class Shown(NamedTuple):
    """An artifact that a model named, as its row says it, and `how` it was reconciled; `score` is how sure it is."""

    artifact_id: str | None = None
    artifact: str | None = None
    country: str | None = None
    countries: tuple[str, ...] = ()
    continent: str | None = None
    score: float = 0.0
    how: Reconciling = "no space given"

    @classmethod
    def of(cls, image: Mapping[str, Any], named: NamedArtifact, space: KnownArtifacts | None) -> Self:
        """Reconcile one name."""
        code, sure = country_code(named.country), named.sure / 100
        found, how = (None, "no space given") if space is None else space.find(
            named.name, country=code, concept=image.get("concept")
        )  # fmt: skip
        if found is not None:
            home, continent = found.country(image.get("country"), code)
            return cls(found.artifact_id, found.name, home, found.countries, continent, sure, how)
        known = countries().get(code or "")
        return cls(None, named.name, code, (code,) if code else (), known.continent if known else None, sure, how)


def reconciled(image: Mapping[str, Any], tag: GeoTag, space: KnownArtifacts | None) -> list[Shown]:
    """Reconcile what a model named, the surest first, each artifact once; nothing where it says that none is shown."""
    shown: dict[object, Shown] = {}
    for named in sorted(tag.artifacts if tag.shown != "no" else (), key=lambda named: -named.sure):
        one = Shown.of(image, named, space)
        shown.setdefault(one.artifact_id or (folded(one.artifact or ""), one.country), one)
    return list(shown.values())


def tag_rows(image: Mapping[str, Any], shown: Sequence[Shown], *, abstained: bool) -> Iterator[dict[str, Any]]:
    """Write the rows of an image, one where nothing was named.

    The score is how sure the model says it is, from 0 to 1. `margin` is its lead over the surest other artifact named,
    `country_margin` over the surest one named that is at home in none of the match's countries; what is not named
    counts as 0.
    """

    def lead(one: Shown, others: Iterable[Shown]) -> float:
        return one.score - max((other.score for other in others), default=0.0)

    for rank, one in enumerate(shown or [Shown()], start=1):
        elsewhere = (each for each in shown if each.countries and set(each.countries).isdisjoint(one.countries))
        cells = {name: image.get(name) for name in OF_THE_IMAGE} | one._asdict()
        cells |= {"rank": rank, "countries": list(one.countries), "abstained": abstained, "method": METHOD}
        cells |= {"margin": lead(one, (other for other in shown if other is not one))}
        yield {name: cell for name, cell in cells.items() if name != "how"} | {"country_margin": lead(one, elsewhere)}


class TagPlan(AskPlan):
    """What tagging takes; as data, images and those that cannot be shown have names of their own, too."""

    __slots__ = ()

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return {**AskPlan.as_data(self), "images": self.units, "unreadable": self.left_out}


def _rows_of(path: Path) -> pl.DataFrame:
    """List the images of a table, with the concept and country of their prompts where it has them."""
    images = read_table(path, IMAGES).sort("image_id")
    columns = ("image_id", "model", "prompt_id", "repeat", "slot", "path", "sha256", "status", "reason")
    return images.select(*columns, *(name for name in ("concept", "country") if name in images.columns))


@looks(
    "tag", "tag", words="geo_tag", task=TASK, version=2,
    decides=lambda given: {"sample": asdict(given["sample"])} if given["sample"].images else {},
    images=lambda given, _: [drawn(_rows_of(given["images"]), given["sample"])],
    packages=("babel", "msgspec", "pillow", "polars", "pycountry"), plans=TagPlan, again="Tag",
    reads=lambda _: {"country-names": shipped(NAMES), "world": shipped(WORLD), **country_files()},
    example=f"--images images/images.parquet --llm {quoted('vision')} --cspace cspace/cspace.parquet --out tags "
    "--budget 20",
)  # fmt: skip
def tag(
    by: Judge,
    images: ImagesToShow,
    cspace: Annotated[
        Path | None,
        Field(description="Cultural space whose artifacts the names are reconciled with. [names stay as said]"),
    ] = None,
    *,
    judge: Annotated[
        str,
        Field(description="Who looks at the images, as a SPEC: openai:MODEL, google:MODEL, replay:FOLDER."),
        Typed("llm"),
    ],
    sample: ImageSample = EVERY_IMAGE,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[str]:
    """Ask a vision model which artifact each image shows.

    It is the alternative to `index map`.
    """
    every = _rows_of(images)
    notice = sample_note(every, drawn(every, sample), sample)
    words, matches = wording("geo_tag"), list[dict[str, Any]]()
    answers, reconciling = Counter[str](), Counter[str]()
    space = cache(lambda: None if cspace is None else KnownArtifacts(space_table(cspace, by.scratch)))  # no plan has it

    def request(picture: Image, row: Row, question: str) -> Request:
        image_id = picture.sha256[:ID_LETTERS]  # its file's name and its prompt could tell
        return Request(TASK, words, {"id": image_id}, GeoTag, allowed={"id": (image_id,)}, images=(picture,),
                       max_tokens=REPLY_TOKENS)  # fmt: skip

    def verdicts(row: Row, question: str, answered: Answered) -> Sequence[Verdict]:
        reply = answered.value if isinstance(answered.value, GeoTag) else None
        shown = [] if reply is None else reconciled(row, reply, space())
        abstained = reply is None or reply.shown != "yes" or not shown
        matches.extend(tag_rows(row, shown, abstained=abstained))
        reconciling.update(one.how for one in shown)
        answers.update([] if reply is None else [reply.shown])
        sure = 100 * shown[0].score if shown else None
        return [Verdict(TASK, question, value=sure, choice=None if reply is None else reply.shown)]

    def write(work: Work) -> dict[str, int]:
        table = pl.DataFrame(matches, schema=MATCHES.schema)
        write_table(work.out, MATCHES, table)
        abstained = table.filter(pl.col("rank") == 1, pl.col("abstained")).height
        return {"matches": table.height, "abstained": abstained}

    def notes() -> dict[str, object]:
        how = {"shown": dict(sorted(answers.items())), "reconciling": dict(sorted(reconciling.items()))}
        return how | notice

    return AskedImages(
        ShownImages(images.parent, "tag"), by.model, lambda _: ("artifact",), request, verdicts,
        caveat=f"{CAVEAT} {UNRECONCILED}" if cspace is None else CAVEAT, notes=notes, write=write,
    )  # fmt: skip
