"""One score walked back: batches, one image of them, its match, the artifact, its path, the line of the dump."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.core.choices import NO_CULTURE
from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import manifest_of, recorded, upstream
from culturekit.core.schemas import AUDITS, IMAGES, MATCHES, PROMPTS, SCORES
from culturekit.core.tables import read_table
from culturekit.kg.store import DumpPosition
from culturekit.metrics.corrected.audit_gates import anchoring_seen, unanchored
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables, StageVerdict

# Finding one score by a reference that people can type.


def find_score(reference: Path | str) -> tuple[Path, dict[str, Any]]:
    """Find the score that a reference names, and the folder it lies in.

    A reference is a `scores.parquet`, a folder with one, or a run whose folders have some, and either `#ROW`, the row
    counted from 0, or `?column=value&...`, which must fit exactly one row. Conditions also look into the parameters;
    without one on `labels` the truth is left aside, and mapped scores where a corrected one fits;
    without one on `q` all orders but the main one, where that fits.

    Example:
        >>> folder, score = ck.find_score("runs/cube#0")
        >>> folder.name, score["n"] > 0
        ('scores', True)
    """
    reference = str(reference)
    location, hash_mark, number = reference.partition("#")
    location, _, query = location.partition("?")
    folder, *others = scores_folders(Path(location))
    scores = read_table(folder / "scores.parquet", SCORES).with_row_index("row")
    if hash_mark and others:
        raise UsageError(
            "this run has scores in several folders", where=reference,
            expected=f"{folder}#{number}, or a row of {', '.join(each.name for each in others)}",
        )  # fmt: skip
    if hash_mark:
        if not number.isdecimal() or int(number) >= scores.height:
            raise UsageError("no such row", where=reference, expected=f"#0 to #{scores.height - 1}")
        return folder, scores.row(int(number), named=True)
    every = [
        {**row, "folder": each.name} for each in (folder, *others)
        for row in read_table(each / "scores.parquet", SCORES).with_row_index("row").iter_rows(named=True)
    ]  # fmt: skip
    fitting = [row for row in every if fits(row, query)]
    if "labels=" not in query:
        fitting = [row for row in fitting if labels_of(row) != "truth"]
        fitting = [row for row in fitting if labels_of(row) == "corrected"] or fitting
    if "q=" not in query and len(fitting) > 1:
        main = manifest_of(folder).options.get("q", 1.0)
        fitting = [row for row in fitting if msgspec.json.decode(row["params"]).get("q") in (main, None)] or fitting
    if not fitting:
        raise nothing_fits(reference, query, every)
    if len(fitting) != 1:
        raise UsageError(
            "the reference must fit one score",
            where=reference,
            expected="more conditions, such as ?metric=vs&model=NAME&concept=NAME&kernel=artifact&labels=mapped",
            found=f"{len(fitting)} scores"
            + "".join(f"\n  {folder.parent / row['folder']}#{described(row)}" for row in fitting[:10]),
        )
    return folder.parent / fitting[0].pop("folder"), fitting[0]


def nothing_fits(reference: str, query: str, scores: Sequence[Mapping[str, Any]]) -> UsageError:
    """Name the conditions that no score meets, and what they could say instead."""
    every = [values_of(row) for row in scores]
    alone = [(key, value) for key, value in conditions(query) if all(str(row.get(key)) != value for row in every)]
    choices = [f"{key} {accepted(key, every)}" for key, _ in alone]
    return UsageError(
        "no score fits the reference",
        where=reference,
        expected="; ".join(choices) or "conditions that hold for one score together",
        found=", ".join(f"{key}={value}" for key, value in alone) or "0 scores",
    )


def accepted(key: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """List the values of a column, or say that there is no such column."""
    values = sorted({str(row[key]) for row in rows if key in row})
    return " or ".join(values) if values else "left out: scores have no such column"


def scores_folders(path: Path) -> list[Path]:
    """Find the folders of scores from a table, its folder, or the folder of a run; `scores` stands for its run."""
    for folder in (path.parent if path.suffix == ".parquet" else path, path / "scores"):
        if (folder / "scores.parquet").is_file():
            return [folder]
    if found := sorted(table.parent for table in path.glob("[!.]*/scores.parquet")):
        return found
    raise UsageError("there are no scores", where=str(path), expected="scores.parquet, or a run folder with scores")


def conditions(query: str) -> list[tuple[str, str]]:
    """Take the conditions of a reference apart."""
    return [(key, value) for key, _, value in (part.partition("=") for part in query.split("&"))] if query else []


def values_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give the columns of a score and, beside them, its parameters."""
    return {**msgspec.json.decode(row["params"]), **row}


def fits(row: Mapping[str, Any], query: str) -> bool:
    """Tell whether a score meets all conditions of a reference."""
    values = values_of(row)
    return all(str(values.get(key)) == value for key, value in conditions(query))


def labels_of(score: Mapping[str, Any]) -> object:
    """Tell whether a score is of mapped labels or of the truth."""
    return msgspec.json.decode(score["params"]).get("labels")


def described(row: Mapping[str, Any]) -> str:
    """Describe a score in a line of a list."""
    scope = " ".join(str(row[name]) for name in ("metric", "model", "concept", "country") if row[name] is not None)
    return f"{row['row']}  {scope} {row['params']} = {row['value']:.4f}"


# Behind a corrected score: what people said of which images, how much each counted, and the images it spoke for.

CELLS_SHOWN = 8  # Mapped labels that are told; `--json` has all


@dataclass(frozen=True, slots=True)
class Answer:
    """What one person said of an image: labels as far as they were named, or what none of them means."""

    annotator: str
    pool: str
    artifact_id: str | None
    country: str | None
    continent: str | None
    said: str


@dataclass(frozen=True, slots=True)
class MappedCell:
    """The images mapped to one label, how many of them people looked at, and what they said, most often first."""

    label: str
    images: int
    audited: tuple[str, ...]
    said: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class People:
    """The answers behind a corrected score.

    Attributes:
        images: of the score.
        weights: by audited image, for how many images of its concept it stands.
        cells: by mapped label, the most frequent first.
        answers: by audited image.
    """

    images: int
    weights: Mapping[str, float]
    cells: tuple[MappedCell, ...]
    answers: Mapping[str, tuple[Answer, ...]]

    def cell_of(self, image_id: str) -> MappedCell | None:
        """Find the images that an audited image speaks for."""
        return next((cell for cell in self.cells if image_id in cell.audited), None)


class AuditParams(msgspec.Struct):
    """What the parameters of a corrected score say of its people."""

    weights: tuple[float, float, float]
    labels: str = ""
    pool: str | None = None


def people_behind(folder: Path, score: Mapping[str, Any], matches: pl.DataFrame) -> People | None:
    """Gather the answers behind a score by its folder and its matches; None for a score that is not corrected."""
    if '"labels":"corrected"' not in score["params"] or '"weights"' not in score["params"]:
        return None
    params = msgspec.json.decode(score["params"], type=AuditParams)
    level = "artifact_id" if params.weights[2] > 0 else "country" if params.weights[1] > 0 else "continent"
    nearest = matches.filter(pl.col("rank") == 1)
    roles = [role for role in sorted(manifest_of(folder).inputs) if role.partition("-")[0] in {"audit", "audits"}]
    audits = pl.concat([read_table(upstream(folder, role), AUDITS) for role in roles], how="diagonal")
    audits = audits if params.pool is None else audits.filter(pool=params.pool)
    audits = unanchored(audits) if anchoring_seen(audits) else audits
    audits = audits.join(nearest.select("image_id"), on="image_id", how="semi").sort("image_id", "annotator")
    answers: dict[str, tuple[Answer, ...]] = {}
    for row in audits.iter_rows(named=True):
        labels = (row["artifact_id"], row["country"], row["continent"])
        named = row[level] or row["country"] or row["continent"] or "nothing"
        text = str((row.get("none_means") or NO_CULTURE) if row["none_of_these"] else named)
        answer = Answer(row["annotator"], row["pool"], *labels, text)
        answers[row["image_id"]] = (*answers.get(row["image_id"], ()), answer)
    audited = nearest.filter(pl.col("image_id").is_in(list(answers)))
    of_concept = dict(nearest.group_by("concept").len().iter_rows())
    seen_of_concept = dict(audited.group_by("concept").len().iter_rows())
    weights = {
        image: of_concept[concept] / seen_of_concept[concept]
        for image, concept in audited.select("image_id", "concept").iter_rows()
    }
    return People(nearest.height, weights, tuple(cells_of(nearest, answers, level)), answers)


def cells_of(nearest: pl.DataFrame, answers: Mapping[str, tuple[Answer, ...]], level: str) -> Iterator[MappedCell]:
    """Part images by what they are mapped to."""
    labelled = nearest.with_columns(label=pl.col(level).fill_null("nothing"))
    for part in sorted(labelled.partition_by("label"), key=lambda each: (-each.height, each["label"][0])):
        audited = [image for image in part["image_id"] if image in answers]
        counts = Counter(one.said for image in audited for one in answers[image])
        yield MappedCell(part["label"][0], part.height, tuple(audited), tuple(counts.most_common()))


def people_lines(people: People) -> Iterator[str]:
    """Tell whom a corrected score rests on."""
    weights = sorted(set(people.weights.values()))
    spans = f"{weights[0]:.1f}" if len(weights) == 1 else f"{weights[0]:.1f} to {weights[-1]:.1f}"
    yield f"people     looked at {len(people.answers):,} of these {people.images:,} images; each stands for {spans}"
    for cell in people.cells[:CELLS_SHOWN]:
        counts = ", ".join(f"{label} {count}" for label, count in cell.said) or "nobody looked"
        yield f"           {cell.images:,} mapped to {cell.label}, {len(cell.audited):,} looked at: {counts}"
    if len(people.cells) > CELLS_SHOWN:
        yield f"           and {len(people.cells) - CELLS_SHOWN:,} more labels"


MOST_COMMON = 5  # So many artifacts and countries are named of what is behind a score


NEAR = ("rank", "artifact_id", "artifact", "country", "score", "margin", "country_margin")  # of a row of matches


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An artifact near an image: how near, by how much it leads, and where the dump describes it."""

    rank: int
    artifact_id: str
    artifact: str
    country: str
    score: float
    margin: float
    country_margin: float
    place: DumpPosition | None


@dataclass(frozen=True, slots=True)
class Contributions:
    """All that is behind a score: how many images, of how many prompts, and what they were mapped to most often."""

    images: int
    prompts: int
    artifacts: tuple[tuple[str, str, int], ...]
    countries: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Trail:
    """Everything between a score and the line of the dump it rests on, for one of its images."""

    score: Mapping[str, Any]
    behind: Contributions
    batch: tuple[str, ...]
    image_id: str
    image: Path
    prompt: str
    neighbours: tuple[Neighbour, ...]
    evidence: ArtifactEvidence | None
    dump_place: DumpPosition | None
    dump_line: str | None
    verdicts: tuple[StageVerdict, ...] = ()
    people: People | None = None


def walk_back(folder: Path | str, score: Mapping[str, Any], *, image_id: str | None = None) -> Trail:
    """Walk a score back by one of its images: the one named, or the first; of a corrected score one that people saw.

    Example:
        >>> trail = ck.walk_back(folder, score)
        >>> trail.image.is_file(), trail.neighbours[0].rank
        (True, 1)
    """
    walk = Walk(Path(folder), score)
    return walk.trail(image_id or walk.image_ids[0])


def walk_images(folder: Path, score: Mapping[str, Any], *, count: int) -> list[Trail]:
    """Walk a score back by several of its images, as far apart as they come: from its first repeat to its last."""
    walk = Walk(folder, score)
    step = max(1, len(walk.image_ids) // count)
    return [walk.trail(image_id) for image_id in walk.image_ids[::step][:count]]


class Walk:
    """A score whose images are walked back; what several of them share is opened once."""

    def __init__(self, folder: Path, score: Mapping[str, Any]) -> None:
        """Find the matches behind the score."""
        self.score = score
        self.matches_folder, self.matches = matches_of(folder, score)
        self.people = people_behind(folder, score, self.matches)
        images: list[str] = self.matches["image_id"].unique(maintain_order=True).to_list()
        looked_at = {} if self.people is None else self.people.answers
        self.image_ids = [image for image in images if image in looked_at] or images
        self.dealt = "images" not in manifest_of(self.matches_folder).inputs  # references, dealt out as a ceiling
        index = upstream(self.matches_folder, "index") if self.dealt else self.matches_folder
        self.images_path = upstream(index, "references" if self.dealt else "images")
        self.images = read_table(self.images_path, IMAGES)
        self.counted = counted_of(self.matches)
        self.lines: dict[str, str] = {}

    @cached_property
    def tables(self) -> EvidenceTables:
        """Open the tables behind the cultural space."""
        inputs = manifest_of(self.matches_folder).inputs
        holder = self.matches_folder if "cspace" in inputs else upstream(self.matches_folder, "index")
        return EvidenceTables(upstream(holder, "cspace").parent)

    def trail(self, image_id: str) -> Trail:
        """Walk back by one image."""
        rows = self.matches.filter(pl.col("image_id") == image_id).sort("rank")
        if rows.is_empty():
            raise UsageError(
                "this image is not behind that score",
                found=repr(image_id),
                expected=", ".join(self.image_ids[:8]) + ", ...",
            )
        first = rows.row(0, named=True)
        part = self._references_of(first) if self.dealt else self.images.filter(image_id=image_id)
        image = part.row(0, named=True)
        file = self.images_path.parent / image["path"]
        if digest_file(file) != image["sha256"]:
            raise IntegrityError("the image is not the one its table describes", where=str(file))
        same_batch = self.matches.filter(
            pl.col("prompt_id").eq_missing(first["prompt_id"]), pl.col("repeat").eq_missing(first["repeat"])
        )
        named = [row for row in rows.iter_rows(named=True) if row["artifact_id"]]
        evidence = [self.evidence_of(row) for row in named]
        places = [about.path[-1].place if about and about.path else None for about in evidence]
        return Trail(
            score=self.score, behind=self.counted, batch=tuple(same_batch["image_id"].unique(maintain_order=True)),
            image_id=image_id, image=file, prompt=prompt_of(self.images_path.parent, image),
            neighbours=tuple(
                Neighbour(**{name: row[name] for name in NEAR}, place=where)
                for row, where in zip(named, places, strict=True)
            ),
            evidence=evidence[0] if evidence else None, dump_place=places[0] if places else None,
            dump_line=self.line_of(evidence[0]) if evidence else None,
            verdicts=self.tables.verdicts(evidence[0]) if evidence and evidence[0] else (), people=self.people,
        )  # fmt: skip

    def _references_of(self, match: Mapping[str, Any]) -> pl.DataFrame:
        """List the references of the artifact that a picture of the ceiling was mapped to."""
        prompts = read_table(upstream(upstream(self.matches_folder, "index"), "prompts"), PROMPTS)
        shows = prompts.filter(artifact_id=match["artifact_id"]).select("prompt_id")
        return self.images.filter(status="ok").join(shows, on="prompt_id", how="semi").sort("image_id")

    def evidence_of(self, match: Mapping[str, Any]) -> ArtifactEvidence | None:
        """Find why a matched artifact is one: in the concept asked for, where it is in that."""
        part = self.tables.space.filter(pl.col("artifact_id") == match["artifact_id"])
        concepts = part["concept"].unique().sort().to_list()
        concept = match["concept"] if match["concept"] in concepts else concepts[0]
        return self.tables.evidence_of([(match["artifact_id"], concept)]).get((match["artifact_id"], concept))

    def line_of(self, artifact: ArtifactEvidence | None) -> str | None:
        """Read the line of the dump that describes an artifact, each line once."""
        node = artifact.path[-1] if artifact and artifact.path else None
        if node is None or node.place is None:
            return None
        if node.qid not in self.lines:
            self.lines[node.qid] = self.tables.dump_line(node.place, node.qid)
        return self.lines[node.qid]


def counted_of(matches: pl.DataFrame) -> Contributions:
    """Count what is behind a score."""
    nearest = matches.filter(pl.col("rank") == 1)
    named = nearest.filter(pl.col("artifact_id").is_not_null())
    artifacts = named.group_by("artifact_id", "artifact").len().sort("len", "artifact_id", descending=[True, False])
    countries = named.group_by("country").len().sort("len", "country", descending=[True, False])
    return Contributions(
        nearest.height, nearest["prompt_id"].n_unique(), tuple(artifacts.head(MOST_COMMON).iter_rows()),
        tuple(countries.head(MOST_COMMON).iter_rows()),
    )  # fmt: skip


def is_mapped(folder: Path) -> bool:
    """Tell whether the scores of a folder come from what images were mapped to."""
    return any(recorded(folder, role).name == "matches.parquet" for role in manifest_of(folder).inputs)


def matches_of(folder: Path, score: Mapping[str, Any]) -> tuple[Path, pl.DataFrame]:
    """Find the matches a score was computed from: those of its model, concept, country and kind of labels."""
    for role in sorted(manifest_of(folder).inputs):
        path = upstream(folder, role)
        if path.name != "matches.parquet":
            continue
        matches = read_table(path, MATCHES).filter(
            pl.col("model") == score["model"], (pl.col("method") == "truth") == (labels_of(score) == "truth")
        )
        if score["concept"] is not None:
            matches = matches.filter(pl.col("concept") == score["concept"])
        if score["country"] is not None:
            matches = matches.join(images_of_country(folder, path.parent, score["country"]), on="image_id", how="semi")
        if not matches.is_empty():
            return path.parent, matches.sort("prompt_id", "repeat", "slot", "rank")
    raise IntegrityError("no table of matches is behind this score", where=str(folder), found=described(score))


def images_of_country(folder: Path, matches_folder: Path, country: str) -> pl.DataFrame:
    """List the images whose prompts name a country, by the prompts of the score or by the table of images."""
    images = read_table(upstream(matches_folder, "images"), IMAGES)
    prompts = upstream(folder, "prompts") if "prompts" in manifest_of(folder).inputs else None
    if prompts is not None and prompts.suffix == ".parquet":
        asked = read_table(prompts, PROMPTS).filter(pl.col("country") == country)
        return images.join(asked.select("prompt_id"), on="prompt_id", how="semi").select("image_id")
    if "country" not in images.columns:
        raise UsageError("the table of images does not say which country was asked for", where=str(matches_folder))
    return images.filter(pl.col("country") == country).select("image_id")


def prompt_of(images_folder: Path, image: Mapping[str, Any]) -> str:
    """Read the prompt an image was made from; what was sent, where the prompts are not known."""
    if "prompts" not in manifest_of(images_folder).inputs:
        return image["prompt_sent"] or ""
    prompts = read_table(upstream(images_folder, "prompts"), PROMPTS)
    return str(prompts.filter(pl.col("prompt_id") == image["prompt_id"])["text"][0])
