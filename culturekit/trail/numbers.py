"""Any score walked back: the values it is a mean of, their images, prompts, the replies of judges, people's answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from culturekit.core.digests import JOURNAL, digest_file, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import manifest_of, recorded, upstream
from culturekit.core.roles import REAL_IMAGES
from culturekit.core.schemas import (
    ACTIVITIES,
    ANNOTATIONS,
    CAPTIONS,
    IMAGES,
    JUDGMENTS,
    PROMPTS,
    QUALITY,
    TRIPLETS,
    VALUES,
)
from culturekit.core.table import Table
from culturekit.core.tables import scan_table
from culturekit.llm.journal import FILE
from culturekit.llm.ledger import latest_exchanges, shown_text
from culturekit.trail.evidence import SHOWN_LETTERS

PICTURES, REPLIES, ANSWERS, EXCHANGES = 4, 8, 12, 2  # So many of each are shown of one item
TRUE = "truth"  # How the roles of inputs begin that say what images truly show
LANGUAGE = "language"  # The scheme of gaps whose groups are the languages of prompts
SIMULATED = "simulated-"  # How the kinds of stages begin that stand for people

PLACES = ("model", "metric", "country", "concept", "group")


@dataclass(frozen=True, slots=True)
class Seen:
    """An image behind a value."""

    image_id: str
    path: Path
    prompt_id: str | None
    prompt: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge was asked about an image, and its reply as it was stored; or a number that a scorer gave."""

    stage: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What one person answered."""

    stage: str
    annotator: str
    region: str
    criterion: str
    said: str


@dataclass(frozen=True, slots=True)
class Item:
    """One of the values that a score is a mean of, and all that it came from; `sources` are pages and captions."""

    name: str
    value: float
    images: tuple[Seen, ...]
    replies: tuple[Reply, ...]
    answers: tuple[Answered, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberTrail:
    """A score, the folder of the values behind it, how many these are, some of them, and the stages on the way."""

    score: Mapping[str, Any]
    values: Path
    count: int
    items: tuple[Item, ...]
    stages: tuple[tuple[str, str], ...]


class NumberWalk:
    """The scores of one folder, walked back; tables of the stages above are opened once, and held against hashes."""

    def __init__(self, folder: Path, tables: dict[tuple[Path, str], pl.DataFrame] | None = None) -> None:
        """Find the stages above, the nearest first; `tables` may be shared among folders of a run."""
        self.folder = folder.resolve()
        self.above: dict[Path, tuple[Path, str]] = {}
        self.tables = {} if tables is None else tables
        self.kinds: dict[str, list[tuple[Path, pl.DataFrame]]] = {}
        self.known_sources: dict[str, tuple[str, ...]] = {}
        row = [self.folder]
        while row:
            row = [stage for each in row for stage in self._inputs(each)]

    def _inputs(self, folder: Path) -> Iterator[Path]:
        """List the stages that a stage reads, those that are new; `above` learns where each was read.

        What images truly show is followed from scores of it alone: simulated people, whose inputs end here, know it.
        """
        manifest = manifest_of(folder)
        for role in () if manifest.stage.startswith(SIMULATED) else sorted(manifest.inputs):
            path = recorded(folder, role)
            stage = path if path.is_dir() else path.parent
            known = stage in self.above or stage == self.folder or (role.startswith(TRUE) and folder != self.folder)
            if not known and read_manifest(stage) is not None:
                self.above[stage] = (folder, role)
                yield stage

    def read(self, stage: Path, table: Table) -> pl.DataFrame | None:
        """Read a table of a stage, held against the hash that its manifest states; None where it has none."""
        path, key = stage / f"{table.name}.parquet", (stage, table.name)
        if key not in self.tables:
            if not path.is_file():
                return None
            stated = manifest_of(stage).outputs.get(path.name)
            if stated is None or digest_file(path) != stated.sha256:
                raise IntegrityError("the table is not the one its stage wrote", where=str(path))
            if stage in self.above:
                upstream(*self.above[stage])
            self.tables[key] = scan_table(path, table).collect()  # as its stage wrote it, so its rows were checked
        return self.tables[key]

    def each(self, table: Table) -> list[tuple[Path, pl.DataFrame]]:
        """List every table of a kind, that of the nearest stage first."""
        if table.name not in self.kinds:
            found = ((stage, self.read(stage, table)) for stage in (self.folder, *self.above))
            self.kinds[table.name] = [(stage, there) for stage, there in found if there is not None]
        return self.kinds[table.name]

    def trail(self, score: Mapping[str, Any], *, image_id: str | None = None, count: int = 1) -> NumberTrail:
        """Walk a score back by the value of one image, or by some values from the highest to the lowest."""
        stage, values = self.values_behind(score)
        chosen = values.sort("value", "item", descending=[True, False], nulls_last=True)
        if image_id is not None:
            chosen = chosen.filter(pl.col("item").str.contains(image_id, literal=True))
            if chosen.is_empty():
                raise UsageError("this image is not behind that score", found=repr(image_id),
                                 expected=", ".join(values["item"].head(8)) + ", ...")  # fmt: skip
        places = sorted({int(index) for index in np.linspace(0, chosen.height - 1, min(count, chosen.height))})
        items = tuple(self.item(row, score) for row in chosen[places].iter_rows(named=True))
        stages = tuple((folder.name, manifest_of(folder).stage) for folder in self.above)
        return NumberTrail(score, stage, values.height, items, stages)

    def values_behind(self, score: Mapping[str, Any]) -> tuple[Path, pl.DataFrame]:
        """Find the values that a score is made from: of its own folder, or of the nearest above."""
        true, params = '"labels":"truth"' in score["params"], _flat(score["params"])
        found = [(stage, values) for stage, values in self.each(VALUES)
                 if values.height and (true or not self.above.get(stage, ("", ""))[1].startswith(TRUE))]  # fmt: skip
        if not found:
            raise UsageError(
                "this score is not of images", where=str(self.folder), found=str(score["metric"]),
                expected="a score with values.parquet in its folder or above; these are walked back to images, replies "
                "of judges, people's answers, prompts and pages",
            )  # fmt: skip
        metrics = [metric for metric in (params.get("metric"), score["metric"]) if metric]

        def misses(values: pl.DataFrame) -> int:
            part = values.filter(pl.col("metric").is_in(metrics))
            return 2 * part.is_empty() + (score["model"] not in (values if part.is_empty() else part)["model"])

        fewest = min(misses(values) for _, values in found)
        best = [each for each in found if misses(each[1]) == fewest]
        kind = manifest_of(best[0][0]).stage
        alike = [each for each in best if manifest_of(each[0]).stage == kind]
        chosen = fitting(pl.concat([values for _, values in alike]), score)
        if params.get("scheme") == LANGUAGE:
            spoken = [key for key, row in self.prompts.items() if row["language"] in (score["group"], *pair_of(params))]
            chosen = chosen.filter(pl.col("prompt_id").is_in(spoken))
        return alike[0][0], chosen

    def item(self, row: Mapping[str, Any], score: Mapping[str, Any]) -> Item:
        """Gather what is known of one value."""
        name, _, by = row["item"].partition(" by ")
        images = tuple(self.images(name, row))
        ids = [name, *(image.image_id for image in images)]
        prompts = dict.fromkeys(filter(None, (image.prompt_id for image in images)))
        criterion = _flat(score["params"]).get("criterion")
        answers = tuple(self.answers(ids, by, criterion))[:ANSWERS]
        for prompt in prompts:
            if prompt not in self.known_sources:
                self.known_sources[prompt] = tuple(self.sources(prompt))
        sources = tuple(line for prompt in prompts for line in self.known_sources[prompt])
        return Item(name, row["value"], images[:PICTURES], tuple(self.replies(ids))[:REPLIES], answers, sources)

    @cached_property
    def pictures(self) -> dict[str, tuple[Path, dict[str, Any]]]:
        """All images above, by their ids; of copies the nearest."""
        found: dict[str, tuple[Path, dict[str, Any]]] = {}
        for stage, table in self.each(IMAGES):
            finished = table.filter(status="ok").select(
                "image_id", "path", "sha256", "prompt_id", "prompt_sent", "model"
            )
            found |= {row["image_id"]: (stage, row) for row in finished.to_dicts() if row["image_id"] not in found}
        return found

    def images(self, name: str, row: Mapping[str, Any]) -> Iterator[Seen]:
        """Find the images of a value: its own, those of its triplet, or those of its prompt or noun."""
        ids = [name] if name in self.pictures else [
            image for _, table in self.each(TRIPLETS) for of_triplet in table.filter(triplet_id=name).to_dicts()
            for image in (of_triplet["reference_id"], of_triplet["first_id"], of_triplet["second_id"])
        ]  # fmt: skip
        if not ids:
            nouns = [key for key, prompt in self.prompts.items() if prompt["artifact_id"] == name]
            wanted = {name, row["prompt_id"], *nouns}
            models = str(row["model"]).split(" - ")
            of_model: dict[str, list[str]] = {}
            for key, (_, image) in sorted(self.pictures.items()):
                if image["prompt_id"] in wanted and (image["model"] in models or models == ["all"]):
                    of_model.setdefault(image["model"], []).append(key)
            ids = [key for image_ids in of_model.values() for key in image_ids[: max(1, PICTURES // len(of_model))]]
        for key in ids[:PICTURES]:
            if key in self.pictures:
                stage, image = self.pictures[key]
                path = stage / image["path"]
                if not path.is_file() or digest_file(path) != image["sha256"]:
                    raise IntegrityError("the image is not the one its table describes", where=str(path))
                yield Seen(key, path, image["prompt_id"], self.prompt(image))

    @cached_property
    def prompts(self) -> dict[str, dict[str, Any]]:
        """All prompts above, by their ids."""
        found: dict[str, dict[str, Any]] = {}
        for _, table in self.each(PROMPTS):
            found |= {row["prompt_id"]: row for row in table.to_dicts() if row["prompt_id"] not in found}
        return found

    def prompt(self, image: Mapping[str, Any]) -> str:
        """Read the prompt of an image; what was sent, where the prompts are not known."""
        known = self.prompts.get(image["prompt_id"])
        return str(known["text"]) if known else image["prompt_sent"] or ""

    def replies(self, ids: Sequence[str]) -> Iterator[Reply]:
        """Give what judges said of images, each reply once, and what scorers measured."""
        for stage, table in self.each(JUDGMENTS):
            rows = table.filter(pl.col("image_id").is_in(ids), pl.col("raw") != "")
            about = pl.concat_str("task", pl.coalesce("dimension", "item"), separator=" ")
            for task, raw in rows.select(about, "raw").unique(maintain_order=True).iter_rows():
                yield Reply(stage.name, task, raw)
        for stage, table in self.each(QUALITY):
            for scorer, value in table.filter(pl.col("image_id").is_in(ids)).select("scorer", "value").iter_rows():
                yield Reply(stage.name, scorer, f"{value:.4g}")

    def answers(self, ids: Sequence[str], by: str, criterion: object) -> Iterator[Answered]:
        """Give people's answers about items from the nearest stage that has any, of a criterion where one is scored."""
        for stage, table in self.each(ANNOTATIONS):
            about = table.filter(pl.col("item_id").is_in(ids))
            about = about.filter(annotator=by) if by else about
            about = about if criterion not in about["criterion"] else about.filter(criterion=criterion)
            answer = pl.coalesce("choice", "text", pl.col("value").round(4).cast(pl.String))
            columns = ("annotator", "annotator_region", "criterion")
            if not about.is_empty():
                for row in about.select(*columns, answer).iter_rows():
                    yield Answered(stage.name, *(str(cell) for cell in row))
                return

    def sources(self, prompt_id: str) -> Iterator[str]:
        """Say what a prompt came from: a page and what it says, a caption and who proposed it, replies in journals."""
        asked = self.prompts.get(prompt_id, {})
        for _, activities in self.each(ACTIVITIES) if asked.get("activity") else ():
            found = activities.filter(country=asked["country"], activity=asked["activity"])
            for page in found.drop_nulls("title").to_dicts():
                yield f"page {page['url'] or page['title']} (revision {page['revision']}): “{page['quote']}”"
        for stage, captions in self.each(CAPTIONS):
            for row in captions.filter(id=prompt_id).to_dicts()[:1]:
                yield f"caption {row['id']} of {stage.name}: round {row['round']}, by {row['proposer']}"
        for stage in self.above:
            if (path := stage / JOURNAL / FILE).is_file():
                for each in latest_exchanges(path, limit=EXCHANGES, mentions=[prompt_id]):
                    text = shown_text(each.reply.decode("utf-8", "replace"), longest=SHOWN_LETTERS)
                    yield f"reply {each.number} in {stage.name}/{JOURNAL} ({each.outcome}): {text}"


def pair_of(params: Mapping[str, Any]) -> tuple[object, object]:
    """Name the two groups that a gap lies between; nobody where it is of one."""
    return params.get("a"), params.get("b")


def fitting(values: pl.DataFrame, score: Mapping[str, Any]) -> pl.DataFrame:
    """Keep the values that a score is about, by its columns and its parameters, as far as they tell values apart."""
    parameters = _flat(score["params"])
    wanted: dict[str, tuple[object, ...]] = {name: (score[name],) for name in PLACES}
    wanted["metric"] = (parameters.get("metric"), score["metric"])
    wanted["group"] = (score["group"], *pair_of(parameters))
    wanted["model"] = (score["model"], *str(score["model"]).split(" - "))
    if score["model"] not in values["model"]:
        values = values.filter(pl.col("model") != REAL_IMAGES)
    for name, accepted in wanted.items():
        known = [value for value in accepted if value is not None]
        alike = values.filter(pl.col(name).is_in(known) if known else pl.col(name).is_null())
        values = values if alike.is_empty() else alike
    every: dict[str, int] = {}  # how many parameters of the values the score contradicts
    for params in values["params"].unique().sort():
        every[params] = sum(name in parameters and parameters[name] != value for name, value in _flat(params).items())
    fewest = min(every.values(), default=0)
    return values.filter(pl.col("params").is_in([params for params, number in every.items() if number == fewest]))


def _flat(params: str) -> dict[str, Any]:
    """Read parameters, those of what was compared among them."""
    flat: dict[str, Any] = msgspec.json.decode(params)
    within = (flat.get("of"), flat.get("params"))
    return {**{name: value for each in within if isinstance(each, dict) for name, value in each.items()}, **flat}


def number_lines(trail: NumberTrail) -> Iterator[str]:
    """Tell a trail from the values behind a score down to images, replies, answers and pages."""
    yield f"behind     {trail.count:,} values of {trail.values.name}, by {len(trail.stages)} stages"
    for item in trail.items:
        yield f"value      {item.value:.4f}  {item.name}"
        for image in item.images:
            yield f"  image    {image.image_id}  {image.path}"
            yield f"  prompt   {shown_text(image.prompt, longest=SHOWN_LETTERS)}"
        for reply in item.replies:
            yield f"  reply    {reply.stage}, {reply.about}: {shown_text(reply.text, longest=SHOWN_LETTERS)}"
        for answer in item.answers:
            text = shown_text(answer.said, longest=SHOWN_LETTERS)
            yield f"  said     {answer.annotator} ({answer.region}), {answer.criterion}: {text}"
        for source in item.sources:
            yield f"  source   {shown_text(source, longest=SHOWN_LETTERS)}"
