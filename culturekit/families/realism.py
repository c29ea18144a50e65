"""Generated images beside real ones as sets of vectors: PRDC, Fréchet and kernel distance, and the inception score."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import NothingScored, UsageError
from culturekit.families.family import Family, described, kept
from culturekit.families.family_stage import family_stage
from culturekit.families.handles.image_levels import Rows, placed, target_of
from culturekit.families.handles.inputs import ImageTables, ProbabilityFolders, VectorFolder, VectorFolders, roles_of
from culturekit.families.handles.vector_files import LabelledVectors, images_with_prompts, one_identity_of_all
from culturekit.families.realism_cells import RealismOptions, cell_rows, cells_with_references, params_of
from culturekit.metrics.realism.extractors import check_extractor, licence_of
from culturekit.metrics.realism.features import check_same_width, feature_rows
from culturekit.metrics.realism.neighbours import RadiiCache
from culturekit.metrics.realism.set_distances import split_scores
from culturekit.metrics.scoring.equal_images import Equal, balanced_references, equal_images
from culturekit.metrics.scoring.score_rows import Scored, scored, statistic_row, value_rows
from culturekit.metrics.statistics.intervals import Interval
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import Typed

__all__ = ["REALISM", "RealismInput", "RealismReads", "realism", "score_realism"]

logger = logging.getLogger(__name__)

BEYOND = "generated images beyond as many as every model has"

NO_INCEPTION_INTERVAL = "its bias depends on n, and its splits are not independent samples of prompts"


@dataclass(frozen=True, slots=True)
class RealismReads:
    """Vectors of real and of generated images, and what is known of these."""

    real: Annotated[VectorFolder, Field(description="Folder of vectors of real images.")]
    fake: Annotated[
        VectorFolders, Field(description="Folder of vectors of generated images, ids their image ids; repeatable.")
    ]
    images: Annotated[
        ImageTables,
        Field(description="Table of generated images: model, prompt, country, object; repeatable. [one model]"),
    ] = ImageTables()
    references: Annotated[
        Path | None, Field(description="Table of the real images; --by needs it."), Typed(needs="by balanced")
    ] = None
    prompts: Annotated[
        Path | None,
        Field(description="Prompts of the images, where their table lacks country or object."),
        Typed(needs="images references"),
    ] = None
    probs: Annotated[
        ProbabilityFolders,
        Field(description="Folder of class probabilities, as vectors; adds the inception score; repeatable."),
    ] = ProbabilityFolders()


def realism(given: RealismReads, options: RealismOptions, *, name: str = "scores") -> Stage:
    """Score images by how they lie among real ones.

    Precision, recall, density, coverage, Fréchet and kernel distance, and the inception score.
    """
    options = replace(options, means=options.means.known())

    def score(work: Work) -> Scored:
        folders = [given.real.folder, *given.fake.places]
        encoder = one_identity_of_all(folders)
        check_extractor(encoder, where=", ".join(map(str, folders)))
        fake = given.fake.vectors(work.scratch)
        assert fake is not None
        images, real = given.images, given.references
        data = RealismInput(
            real=given.real.vectors(),
            fake=fake,
            images=images.table(given.prompts, work.scratch) if images else None,
            references=None if real is None else images_with_prompts(real, given.prompts, work.scratch),
            probs=given.probs.vectors(work.scratch),
        )
        return score_realism(data, options=replace(options, encoder=encoder, classifier=given.probs.encoder))

    settings, seeds = kept(options, but=("seed",)), {"references": options.seed}
    return family_stage("realism", roles_of(given), settings, score, version=4, seeds=seeds, name=name)


REALISM = Family(
    realism,
    metrics=described(
        "frechet_distance inception_score kernel_distance prdc_coverage prdc_density prdc_precision prdc_recall"
    ),
    example="--real real --fake vectors --images images/images.parquet --out scores",
)


@dataclass(frozen=True, slots=True)
class RealismInput:
    """What realism is scored from.

    Attributes:
        real: vectors of real images, ids their image ids.
        fake: vectors of generated images of any number of models.
        images: conforms to IMAGES: model, prompt, concept and country of the generated images; may be none.
        references: the same of the real images; levels need it.
        probs: class probabilities of generated images, for the inception score.
    """

    real: LabelledVectors
    fake: LabelledVectors
    images: pl.DataFrame | None = None
    references: pl.DataFrame | None = None
    probs: LabelledVectors | None = None


def score_realism(given: RealismInput, *, options: RealismOptions) -> Scored:
    """Score the images of every model against all real images, and at each level against as many of every cell.

    Images are taken in order of their ids, as many of every model unless `equal` is off. At a level copies count as
    nothing: of images with equal vectors, real or of one model, all are left out; the real ones are then drawn in
    equal numbers from every cell that some model made images for. A cell with too few images for k, or fewer than
    `fewest`, is left out and counted.

    Raises:
        UsageError: an option breaks its rule, or vectors, ids and tables do not belong together.
    """
    means = options.means
    left_out: Counter[str] = Counter()
    for side, one in (("real", given.real), ("generated", given.fake)):
        if not one.ids:
            raise NothingScored(
                f"there is no {side} image to score", expected="vectors of pictures", found="none",
                hint="Look at what the stages that took pictures in, and embedded them, left out.",
            )  # fmt: skip
    reals, fakes = feature_rows("real", given.real.vectors), feature_rows("fake", given.fake.vectors)
    check_same_width(("real", reals), ("fake", fakes))
    check_apart(given)
    shown, equal, whole = chosen(given, options, left_out)
    made = equal.images
    target = target_of(made, means)
    cache: RadiiCache = {}
    scores, values = [], []
    for cell in cells_with_references(made, shown, reals, fakes, whole, options, left_out):
        told = params_of(cell, options) | equal.params
        rows, behind = cell_rows(cell, reals, fakes, options, params=told, target=target, cache=cache)
        scores += rows
        values += behind
    few = sum('"few_images":' in row["params"] for row in scores)
    if few:
        logger.warning("%d Fréchet distances of fewer images than dimensions say little: few_images in params", few)
    if given.probs is not None:
        rows, behind = class_rows(given.probs, given.images, options, left_out)
        scores += rows
        values += behind
    return scored(scores, values, left_out=left_out)


def check_apart(given: RealismInput) -> None:
    """Refuse an image that is held against itself: the same id with the same vector on both sides."""
    rows = {name: row for row, name in enumerate(given.real.ids)}
    both = [(row, rows[name]) for row, name in enumerate(given.fake.ids) if name in rows]
    same = [fake for fake, real in both if np.array_equal(given.fake.vectors[fake], given.real.vectors[real])]
    if same:
        raise UsageError(
            f"{len(same):,} images are both real and generated", found=f"{given.fake.ids[same[0]]!r}, with one vector",
            expected="other images on either side", hint="Is the folder of the real images given twice?",
        )  # fmt: skip


def chosen(given: RealismInput, options: RealismOptions, left_out: Counter[str]) -> tuple[pl.DataFrame, Equal, Equal]:
    """Place all images: the real ones, the generated ones that are scored, and the real ones they are held against."""
    means, wants_places = options.means, bool(options.means.by) or options.balanced
    made = placed(given.fake.ids, given.images, means, what="generated vectors", left_out=left_out)
    if wants_places and given.references is None:
        raise UsageError(
            "levels and balanced references need to know where the real images belong",
            expected="a table of the real images",
        )
    places = given.references if wants_places else None
    shown = placed(given.real.ids, places, means, what="real vectors", left_out=left_out)
    for side, rows, ids in (("generated", made, given.fake.ids), ("real", shown, given.real.ids)):
        check_known(rows, f"{side} vectors", ids)
    equal = equal_images(made, seed=options.seed, most=options.most) if options.equal else Equal(made)
    left_out[BEYOND] += equal.left_out
    whole = balanced_references(shown, equal.images, seed=options.seed) if options.balanced else Equal(shown)
    each = whole.params.get("per_concept")
    left_out[f"real images, as each concept gives as many as {whole.least} has: {each}"] += whole.left_out
    return shown, equal, whole


def check_known(rows: pl.DataFrame, what: str, ids: Sequence[str]) -> None:
    """Refuse vectors of which none is of an image in the table of images."""
    if rows.is_empty():
        raise NothingScored(
            f"there are no images to score: no {what} are of a known image", expected="ids of the table of images",
            found=f"ids such as {min(ids)!r}" if ids else "none",
        )  # fmt: skip


def class_rows(
    probs: LabelledVectors, images: pl.DataFrame | None, options: RealismOptions, left_out: Counter[str]
) -> Rows:
    """Score what a classifier said of each model's images, in order of their ids; the values are the splits'."""
    made = placed(probs.ids, images, options.means, what="class probabilities", left_out=left_out)
    check_known(made, "class probabilities", probs.ids)
    equal = equal_images(made, seed=options.seed, most=options.most) if options.equal else Equal(made)
    rows, values = [], []
    for cell in equal.images.partition_by("model", maintain_order=True):
        if cell.height < options.splits:
            left_out[f"models with fewer than {options.splits} images, the splits of the inception score"] += 1
            continue
        splits = split_scores(probs.vectors[cell["row"].to_numpy()], splits=options.splits)
        params = {
            "encoder": dict(options.classifier), "licence": licence_of(options.classifier), "splits": options.splits,
            "n_fake": cell.height, "no_interval": NO_INCEPTION_INTERVAL, **equal.params,
        }  # fmt: skip
        place = {"model": cell["model"][0], "benchmark": options.means.benchmark, "metric": "inception_score"}
        answer = Interval(float(splits.mean()), np.nan, np.nan, cell.height, "these")
        rows.append(statistic_row(**place, answer=answer, params=params))
        parts = pl.DataFrame({"item": [f"split {number}" for number in range(len(splits))], "value": splits})
        values.append(value_rows(place, params, parts))
    return rows, values
