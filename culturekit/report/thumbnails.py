"""Images as evidence: the first batch of every model and concept, with what each is nearest to."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from culturekit.core import roles
from culturekit.core.atomic import write_atomically
from culturekit.core.digests import digest_bytes
from culturekit.core.pictures.picture_files import NoPicture, read_bytes_inside
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.report.countries import country_names
from culturekit.report.run_folders import Figure, RunFolders, figure, plain
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables

# Small copies of pictures, which the page links to: what is small already is copied, the rest is scaled down.

NO_COPY = "picture that cannot be read, or is not the one of its table"  # why a grey picture stands in the place of one

LARGEST_SIDE = 192  # pixels; twice what the page shows, for dense screens

JPEG_QUALITY = 82


@dataclass(frozen=True, slots=True)
class Copied:
    """A picture to be copied: where it lies below the run, where its small copy goes, and the hash its table states."""

    root: Path
    source: str
    target: Path
    sha256: str | None = None


def copies(root: Path, thumbnails: Mapping[str, str], folder: Path) -> list[Copied]:
    """List the pictures to copy into a folder, by name, with what the tables of their stages say of them."""
    copied: dict[str, str] = {}
    for stage in {source.partition("/")[0] for source in thumbnails.values()}:
        if (table := root / stage / f"{IMAGES.name}.parquet").is_file():
            copied |= {
                f"{stage}/{path}": sha256 for path, sha256 in read_table(table, IMAGES)["path", "sha256"].iter_rows()
            }
    return [Copied(root, source, folder / name, copied.get(source)) for name, source in sorted(thumbnails.items())]


def thumbnail_name(image_id: str, width: int | None, height: int | None) -> str:
    """Name the copy of a picture: what has to be scaled becomes a JPEG."""
    small = width is not None and height is not None and max(width, height) <= LARGEST_SIDE
    return f"{plain(image_id)}.{'png' if small else 'jpg'}"


def small_copy(wanted: Copied) -> bool:
    """Write the small copy of a picture; a grey one, and False, where there is none to be read, or another."""
    content = read_bytes_inside(wanted.root, wanted.source)
    if isinstance(content, NoPicture) or (wanted.sha256 and digest_bytes(content) != wanted.sha256):
        write_atomically(wanted.target, encoded(nothing(), wanted.target))
        return False
    if wanted.target.suffix == ".png":
        write_atomically(wanted.target, content)
        return True
    found = picture_from(content)
    readable = not isinstance(found, NoPicture)
    picture = nothing() if isinstance(found, NoPicture) else Image.fromarray(found.pixels)
    picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE), Image.Resampling.LANCZOS)
    write_atomically(wanted.target, encoded(picture, wanted.target))
    return readable


def write_copies(work: Work, wanted: Sequence[Copied]) -> dict[str, int]:
    """Write small copies of pictures, and count those of which there is none."""
    work.progress.begin(len(wanted), "thumbnails")
    for folder in {each.target.parent for each in wanted}:
        folder.mkdir(parents=True, exist_ok=True)
    unread = 0
    for read in work.engine.map(small_copy, wanted):
        unread += not read
        work.progress.advance(1)
    return {NO_COPY: unread} if unread else {}


def nothing() -> Image.Image:
    """Make the picture that stands where there is none."""
    return Image.new("RGB", (16, 16), (128, 128, 128))


def encoded(picture: Image.Image, target: Path) -> bytes:
    """Encode a picture in the format that its name says."""
    held = io.BytesIO()
    if target.suffix == ".png":
        picture.save(held, "PNG")
    else:
        picture.save(held, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return held.getvalue()


# What each image of a model was mapped to, in one table; images that were not made or not mapped are in it too.

OF_IMAGE = ("image_id", "path", "width", "height", "prompt_id", "concept", "repeat", "slot", "status")
OF_MATCH = ("image_id", "artifact_id", "artifact", "country", "score", "margin", "abstained")


@dataclass(frozen=True, slots=True)
class Tile:
    """An image of a mosaic: its thumbnail, and what it was mapped to, or None where the mapping abstained."""

    image_id: str
    thumbnail: str
    artifact: str | None
    score: float | None
    margin: float | None


def looks_of(run: RunFolders, model: str) -> pl.DataFrame:
    """Join the images of a model with the artifact each is nearest to."""
    nearest = run.matches(model).filter(pl.col("rank") == 1).select(OF_MATCH)
    images = run.images(model).select(OF_IMAGE)
    return images.join(nearest, on="image_id", how="left").with_columns(
        mapped=pl.col("artifact_id").is_not_null() & ~pl.col("abstained").fill_null(value=True)
    )


def tile(model: str, row: dict[str, Any], thumbnails: dict[str, str]) -> Tile:
    """Describe an image; `thumbnails` learns which picture to copy under which name."""
    mapped = bool(row["mapped"])
    return Tile(
        image_id=row["image_id"], thumbnail=thumbnail_of(model, row, thumbnails),
        artifact=row["artifact"] if mapped else None, score=row["score"], margin=row["margin"],
    )  # fmt: skip


def thumbnail_of(model: str, image: Mapping[str, Any], thumbnails: dict[str, str]) -> str:
    """Name the thumbnail of a model's image, and note which picture it is a copy of."""
    name = thumbnail_name(image["image_id"], image["width"], image["height"])
    thumbnails[name] = f"{roles.IMAGES.folder(model)}/{image['path']}"
    return name


def reference_of(artifact_id: str, references: Mapping[str, tuple[str, str]], thumbnails: dict[str, str]) -> str | None:
    """Name the thumbnail of a reference picture, where there is one, and note which picture it is a copy of."""
    if artifact_id not in references:
        return None
    name, source = references[artifact_id]
    thumbnails[name] = source
    return name


def shown_by(run: RunFolders) -> pl.DataFrame | None:
    """Say of each reference picture which artifact it shows: the truth, or what its name says."""
    references, prompts = run.read(roles.REFERENCES, IMAGES), run.read(roles.REFERENCE_PROMPTS, PROMPTS)
    if references is None or "truth_artifact_id" in references.columns:
        return references
    if prompts is None:
        return None
    named = prompts.select("prompt_id", truth_artifact_id="artifact_id")
    return references.join(named, on="prompt_id", how="left", maintain_order="left")


def reference_pictures(run: RunFolders) -> dict[str, tuple[str, str]]:
    """Find a reference picture of each artifact: the name of its thumbnail, and its path."""
    references = shown_by(run)
    if references is None:
        return {}
    first = references.filter(pl.col("status") == "ok").sort("image_id")
    first = first.unique("truth_artifact_id", keep="first", maintain_order=True)
    return {
        row["truth_artifact_id"]: (
            thumbnail_name(row["image_id"], row["width"], row["height"]),
            f"{roles.REFERENCES.folder()}/{row['path']}",
        )
        for row in first.iter_rows(named=True)
        if row["truth_artifact_id"] is not None
    }


# The scores prompt by prompt, where models differ most, and one level below them the images of each.

PROMPTS_SHOWN = 200  # the others stand in `values.parquet`

PER_MODEL = 8  # images of one prompt that are shown of each model: its first repeat

IMAGES_SHOWN = 10_000  # images shown in all; prompts beyond have their scores only


@dataclass(frozen=True, slots=True)
class PromptLine:
    """The mapped score of each model on one prompt and how many batches that is; None for a model without any.

    `corrected` is there where the prompt is the only one of its concept: of others people saw too few images.
    """

    prompt_id: str
    text: str
    concept: str | None
    scores: tuple[tuple[float, int] | None, ...]
    corrected: tuple[Figure | None, ...] = ()


def prompt_lines(run: RunFolders, models: Sequence[str], *, kernel: str) -> Iterator[PromptLine]:
    """Give the diversity of each model on each prompt, those first on which models differ most."""
    right = {model: corrected_prompts(run, model, kernel) for model in models}
    values = run.values().filter(
        pl.col("metric") == "vs", pl.col("model").is_in(list(models)), pl.col("kernel") == kernel,
        pl.col("labels") == "mapped", pl.col("prompt_id").is_not_null(), pl.col("value").is_not_null(),
    )  # fmt: skip
    means = values.group_by("prompt_id", "model").agg(
        pl.col("value").mean(), pl.col("item").n_unique().alias("n"), pl.col("concept").drop_nulls().first()
    )
    spread = (pl.col("value").max() - pl.col("value").min()).alias("spread")
    order = means.group_by("prompt_id").agg(spread, pl.col("concept").drop_nulls().first())
    texts = run.prompts()
    for prompt, _, concept in order.sort(["spread", "prompt_id"], descending=[True, False]).head(PROMPTS_SHOWN).rows():
        prompt_texts = {
            model: (mean, n) for model, mean, n in means.filter(prompt_id=prompt).select("model", "value", "n").rows()
        }
        yield PromptLine(
            prompt, texts.get(prompt, prompt), concept, tuple(prompt_texts.get(model) for model in models),
            tuple(right[model].get(prompt) for model in models),
        )  # fmt: skip


def corrected_prompts(run: RunFolders, model: str, kernel: str) -> dict[str, Figure]:
    """Give the corrected diversity of each prompt of a model that is the only one of its concept."""
    scores = run.headline_scores().filter(metric="vs", labels="corrected", kernel=kernel, model=model)
    pairs = run.matches(model).select("concept", "prompt_id").unique() if scores.height else pl.DataFrame()
    found = {}
    for (concept,), part in pairs.group_by("concept") if pairs.height else ():
        known = figure(scores, concept=None if concept is None else str(concept), country=None)
        if part.height == 1 and known is not None:
            found[str(part["prompt_id"][0])] = known
    return found


@dataclass(frozen=True, slots=True)
class PromptImages:
    """The images of a prompt that are shown, by model, and how many there are of each."""

    prompt_id: str
    text: str
    concept: str | None
    models: tuple[tuple[str, tuple[Tile, ...], int], ...]


def prompt_images(
    prompts: Sequence[PromptLine], looks: Mapping[str, pl.DataFrame], thumbnails: dict[str, str]
) -> Iterator[PromptImages]:
    """Give the images of the prompts on the page; `thumbnails` learns which pictures to copy under which names."""
    shown = prompts[: IMAGES_SHOWN // (PER_MODEL * max(len(looks), 1))]
    chosen: dict[tuple[str, str], tuple[tuple[Tile, ...], int]] = {}
    names = [prompt.prompt_id for prompt in shown]
    for model, table in looks.items():
        finished = table.filter(pl.col("status") == "ok", pl.col("prompt_id").is_in(names))
        ordered = finished.sort("prompt_id", "repeat", "slot", "image_id")
        for (prompt_id,), part in ordered.group_by("prompt_id", maintain_order=True):
            first = part.head(PER_MODEL).to_dicts()
            chosen[str(prompt_id), model] = (tuple(tile(model, row, thumbnails) for row in first), part.height)
    for prompt in shown:
        models = tuple((model, *chosen[key]) for model in looks if (key := (prompt.prompt_id, model)) in chosen)
        if models:
            yield PromptImages(prompt.prompt_id, prompt.text, prompt.concept, models)


# The artifacts that a model's images are most often mapped to, with the images, as one can look at them.

ARTIFACTS = 6  # of each model; the table of matches has all

TILES = 6


@dataclass(frozen=True, slots=True)
class Mosaic:
    """An artifact, a reference picture of it, and images mapped to it, from the most to the least similar."""

    artifact_id: str
    artifact: str
    country: str | None
    images: int  # how many images of the model are mapped to it
    share: float  # of the images of the model that are mapped to anything
    score: float  # the median similarity of its images
    margin: float | None  # by how much, in the middle, it leads over the next artifact
    reference: str | None
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class MosaicModel:
    """What became of a model's images, and the artifacts they are most often mapped to."""

    model: str
    asked: int  # images that were asked for
    missing: int  # of them were not made, or could not be read
    abstained: int  # of them the mapping said nothing
    mapped: int  # of them were mapped
    artifacts: int  # to so many different artifacts
    mosaics: tuple[Mosaic, ...]

    @property
    def unmapped(self) -> float | None:
        """The share of the images asked for that are mapped to nothing; None where none was asked for."""
        return None if not self.asked else 1 - self.mapped / self.asked


def mosaic_of(
    run: RunFolders, looks: Mapping[str, pl.DataFrame], references: Mapping[str, tuple[str, str]],
    thumbnails: dict[str, str],
) -> Iterator[MosaicModel]:  # fmt: skip
    """Give the mosaics of each model, in the order of the models given."""
    names = country_names(run)
    for model, table in looks.items():
        ok = table.filter(pl.col("status") == "ok")
        mapped = ok.filter(pl.col("mapped"))
        counted = artifacts_of(mapped)
        yield MosaicModel(
            model=model, asked=table.height, missing=table.height - ok.height, abstained=ok.height - mapped.height,
            mapped=mapped.height, artifacts=counted.height,
            mosaics=tuple(
                Mosaic(
                    artifact_id=row["artifact_id"], artifact=row["artifact"],
                    country=names.get(row["country"], row["country"]), images=row["images"],
                    share=row["images"] / mapped.height, score=row["score"], margin=row["margin"],
                    reference=reference_of(row["artifact_id"], references, thumbnails),
                    tiles=tuple(tiles(model, mapped.filter(pl.col("artifact_id") == row["artifact_id"]), thumbnails)),
                )
                for row in counted.head(ARTIFACTS).to_dicts()
            ),
        )  # fmt: skip


def artifacts_of(mapped: pl.DataFrame) -> pl.DataFrame:
    """List the artifacts that images of a model are mapped to, most images first."""
    counted = mapped.group_by("artifact_id").agg(
        pl.len().alias("images"), pl.col("artifact", "country").first(), pl.col("score", "margin").median()
    )
    return counted.sort(["images", "artifact_id"], descending=[True, False])


def tiles(model: str, mapped: pl.DataFrame, thumbnails: dict[str, str]) -> Iterator[Tile]:
    """Choose images from the most to the least similar, evenly, so that the doubtful ones are seen too."""
    ordered = mapped.sort(["score", "image_id"], descending=[True, False])
    chosen = sorted({int(index) for index in np.linspace(0, ordered.height - 1, min(TILES, ordered.height))})
    for row in ordered[chosen].to_dicts():
        yield tile(model, row, thumbnails)


SHOTS = 8
NEAREST = 3


@dataclass(frozen=True, slots=True)
class Near:
    """An artifact near an image, with a reference picture of it."""

    artifact_id: str
    artifact: str
    country: str
    score: float
    margin: float
    thumbnail: str | None


@dataclass(frozen=True, slots=True)
class Shot:
    """An image as evidence: what it was asked for, what it is nearest to, what it really shows."""

    image_id: str
    model: str
    concept: str
    thumbnail: str
    prompt: str
    nearest: tuple[Near, ...]
    truth_known: bool
    truth: str | None
    evidence: ArtifactEvidence | None


def collect_shots(run: RunFolders, thumbnails: dict[str, str]) -> Iterator[Shot]:
    """Give the shots of a run; `thumbnails` learns which pictures to copy under which names."""
    tables = EvidenceTables(run.folder(roles.CSPACE))
    prompts = run.prompts()
    space = run.space()
    looks = reference_pictures(run)
    for model in run.models:
        finished = run.images(model).filter(status="ok").sort("concept", "prompt_id", "repeat", "slot")
        shown = finished.group_by("concept", maintain_order=True).head(SHOTS)
        matches = run.matches(model).filter(pl.col("image_id").is_in(shown["image_id"].implode()))
        evidence = tables.evidence_of(wanted(matches, space))
        for image in shown.iter_rows(named=True):
            rows = matches.filter(pl.col("image_id") == image["image_id"], pl.col("rank") <= NEAREST).sort("rank")
            yield Shot(
                image_id=image["image_id"], model=model, concept=image["concept"] or "",
                thumbnail=thumbnail_of(model, image, thumbnails),
                prompt=prompts.get(image["prompt_id"], image["prompt_sent"] or ""),
                nearest=tuple(
                    Near(**row, thumbnail=reference_of(row["artifact_id"], looks, thumbnails))
                    for row in rows.select("artifact_id", "artifact", "country", "score", "margin").to_dicts()
                ),
                truth_known=model in run.truthful, truth=true_name(space, image.get("truth_artifact_id")),
                evidence=evidence_of(rows, image, evidence),
            )  # fmt: skip


def wanted(matches: pl.DataFrame, space: pl.DataFrame) -> list[tuple[str, str]]:
    """List the artifacts nearest to some image, in each concept they belong to."""
    nearest = matches.filter(pl.col("rank") == 1)["artifact_id"].drop_nulls().unique()
    rows = space.filter(pl.col("artifact_id").is_in(nearest.implode())).select("artifact_id", "concept").unique()
    return sorted(rows.iter_rows())


def true_name(space: pl.DataFrame, artifact_id: str | None) -> str | None:
    """Name the artifact that an image really shows; None when it shows none."""
    if artifact_id is None:
        return None
    names = space.filter(pl.col("artifact_id") == artifact_id)["name"]
    return artifact_id if names.is_empty() else str(names[0])


def evidence_of(
    rows: pl.DataFrame, image: Mapping[str, Any], evidence: Mapping[tuple[str, str], ArtifactEvidence]
) -> ArtifactEvidence | None:
    """Choose the evidence of the nearest artifact, in the image's concept where it belongs to it."""
    if rows.is_empty():
        return None
    found = {concept: shown for (qid, concept), shown in evidence.items() if qid == rows["artifact_id"][0]}
    return found.get(image["concept"]) or next(iter(found.values()), None)
