"""Generated images beside real ones as sets of vectors: PRDC, Fréchet and kernel distance, and the inception score."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import Seed, Typed
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.stage import Work
from culturekit.metrics.realism.features import (
    RadiiCache,
    called,
    check_extractor,
    feature_sets,
    licence_of,
    unduplicated,
)
from culturekit.metrics.realism.manifolds import (
    balanced_sample,
    coverage_interval,
    mean_interval,
    neighbourhoods,
    share_interval,
)
from culturekit.metrics.realism.set_distances import frechet_distance, kernel_distance_interval, split_scores
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target
from culturekit.scores.catalog import UNBOUNDED, describe
from culturekit.scores.family import Row, Scored, own_generator, scored, scores, statistic_row, value_rows, with_reason
from culturekit.scores.image_levels import LEVELS, MeanOptions, Rows, cells_of, placed, prompts_of, target_of
from culturekit.scores.inputs import (
    ImageTables,
    LabelledVectors,
    ProbabilityFolders,
    VectorFolder,
    VectorFolders,
    images_with_prompts,
    one_identity_of_all,
)

# Equally many images of every model, and references that weigh the same, drawn by a seed.

OF_EACH_PROMPT = "of each prompt as many as the model with the fewest has"
OF_ALL = "as many as the model with the fewest has"


@dataclass(frozen=True, slots=True)
class Equal:
    """Images of which every model has as many, and how they were chosen."""

    images: pl.DataFrame  # those drawn, in the order they came
    left_out: int = 0  # how many were not
    # what params say of it; empty where there was nothing to draw
    params: dict[str, object] = field(default_factory=dict)
    least: str = ""  # the concept that has the fewest references, where that decided how many each concept gives


def equal_images(images: pl.DataFrame, *, seed: int, most: int | None = None) -> Equal:
    """Draw equally many images of every model: of each prompt as many as the model with the fewest has.

    So all models are scored on the same prompts, which weigh the same for each. Where images have no prompts, or no
    prompt is common to all models, as many are drawn as the smallest model has, whatever they are of. The draw of a
    model depends on no other model's images but through their number. Of `most` images of a model at most, prompts give
    as equally as they can.
    """
    models = images["model"].n_unique()
    if models < 2 and (most is None or images.height <= most):
        return Equal(images)
    known = images.with_columns(cell=pl.col("prompt_id"), order=shuffled(images, "model", seed))
    rule = OF_EACH_PROMPT
    quota = quotas(known, models)
    if quota is None:
        known, rule = known.with_columns(cell=pl.lit("")), OF_ALL
        quota = quotas(known, models)
        assert quota is not None
    params: dict[str, object] = {"equal": rule, "equal_seed": seed, "models": models}
    if most is not None and int(quota["quota"].sum()) > most:
        quota, params = evenly_capped(quota, most), {**params, "most": most}
    ranked = known.with_columns(place=pl.col("order").rank("ordinal").over("model", "cell"))
    kept = ranked.join(quota, on="cell", how="left", maintain_order="left").filter(
        pl.col("place") <= pl.col("quota").fill_null(0)
    )
    drawn = kept.select(images.columns)
    return Equal(drawn, images.height - drawn.height, params)


def evenly_capped(quota: pl.DataFrame, most: int) -> pl.DataFrame:
    """Lower what cells give to `most` in all: the largest first, and by one more in the last of the alphabet."""
    ordered = quota.sort("cell")
    wanted = ordered["quota"].to_numpy().astype(np.int64)
    low, high = 0, int(wanted.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(wanted, middle).sum() <= most else (low, middle - 1)
    given = np.minimum(wanted, low)
    given[np.flatnonzero(wanted > low)[: most - int(given.sum())]] += 1
    return ordered.with_columns(quota=pl.Series(given, dtype=pl.UInt32))


def quotas(images: pl.DataFrame, models: int) -> pl.DataFrame | None:
    """Count how many images of each cell every model has at least; None where that is none at all."""
    if images["cell"].null_count():
        return None
    counts = images.group_by("cell", "model").len()
    least = counts.group_by("cell").agg(quota=pl.col("len").min(), seen=pl.len()).filter(seen=models)
    return least.select("cell", "quota") if least.height else None


def shuffled(images: pl.DataFrame, by: str, seed: int) -> pl.Series:
    """Give each image a random number, group by group in the order of the ids."""
    order = images.select(by, "image_id").with_row_index("number").sort(by, "image_id")
    numbers = np.empty(images.height)
    for (group,), rows in order.group_by(by, maintain_order=True):
        numbers[rows["number"].to_numpy()] = own_generator(seed, "images", by, group).random(rows.height)
    return pl.Series("order", numbers)


def balanced_references(shown: pl.DataFrame, generated: pl.DataFrame, *, seed: int) -> Equal:
    """Draw equally many references of each concept that images were made for, spread evenly over countries.

    Within a concept countries take turns, each giving one of its references at random, until the number is reached.
    References without a concept cannot be balanced: then all are meant.
    """
    if shown["concept"].null_count() or generated["concept"].null_count():
        return Equal(shown)
    asked = shown.join(generated.select("concept").unique(), on="concept", how="semi", maintain_order="left")
    if asked.is_empty():
        return Equal(shown)
    least, each = asked.group_by("concept").len().sort("len", "concept").row(0)
    keys = pl.concat_str("concept", pl.col("country").fill_null(""), separator="\n")
    ordered = asked.with_columns(place=keys)
    ordered = ordered.with_columns(order=shuffled(ordered, "place", seed))
    ordered = ordered.with_columns(turn=pl.col("order").rank("ordinal").over("place"))
    ranked = ordered.sort("concept", "turn", "order", "image_id").with_columns(
        place_in_concept=pl.int_range(pl.len()).over("concept")
    )
    drawn = ranked.filter(pl.col("place_in_concept") < each).sort("image_id").select(shown.columns)
    params: dict[str, object] = {"references": "balanced", "per_concept": each, "seed": seed, "copies": "kept"}
    return Equal(drawn, shown.height - drawn.height, params, least)


# The images of one model in one cell beside real ones: all of these, or equally many from every cell.

KERNEL_TARGETS: Mapping[str, str] = {"population": "population", "these": "images"}

FEW_UNITS = f"fewer than {FEWEST_PROMPTS} prompts or images on a side"

NO_FRECHET_INTERVAL = "its bias depends on n, and resampled images would add to it"


@dataclass(frozen=True, slots=True)
class RealismMeans(MeanOptions):
    """How means are made, and the model that images are of where no table names it."""

    model: Annotated[str, Field(description="Whose images they are, where no table says it.")] = "images"


@dataclass(frozen=True, slots=True)
class RealismOptions:
    """What to score, and how; the seed is that of draws. Encoder and classifier stand in the params of scores."""

    k: Annotated[int, Field(ge=1, description="Neighbourhoods reach to the k-th neighbour.")] = 5
    splits: Annotated[int, Field(ge=1, description="Of the inception score."), Typed(needs="probs")] = 10
    means: RealismMeans = RealismMeans()
    per_cell: Annotated[
        int | None,
        Field(ge=1, description="Real images drawn of each object and place. [as many as the fewest have]"),
        Typed(after="groups", needs="by"),
    ] = None
    equal: Annotated[
        bool,
        Field(description="As many images of every model, drawn by --seed; or all that there are."),
        Typed("equal/--all"),
    ] = True
    most: Annotated[
        int | None, Field(ge=2, description="Images of a model at most, each prompt giving as many. [all]")
    ] = None
    balanced: Annotated[
        bool,
        Field(description="Equally many references of each object, over its countries in turn."),
        Typed("balanced"),
    ] = False
    fewest: Annotated[
        int,
        Field(ge=0, description="Images, real and generated, without which a cell of --by is left out."),
        Typed(needs="by"),
    ] = 0
    seed: Seed = 0
    encoder: Mapping[str, Any] = field(default_factory=dict)
    classifier: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """Images of a model, and the real images they are held against."""

    scope: Row  # model, and the columns of the level
    images: pl.DataFrame  # the generated ones, as `placed` gives them
    references: pl.DataFrame  # the real ones
    per_cell: int | None  # how many real ones were drawn of each cell; None where no level is meant
    # how the real ones were drawn where no level is meant; empty where all are meant
    params: Mapping[str, object] = field(default_factory=dict)


def cells_with_references(
    generated: pl.DataFrame,
    shown: pl.DataFrame,
    reals: NDArray[np.floating],
    fakes: NDArray[np.floating],
    whole: Equal,
    options: RealismOptions,
    left_out: Counter[str],
) -> Iterator[Cell]:
    """Give each model with the references of `whole`, then, at each level, each cell with balanced ones.

    References of `whole` that were drawn in equal numbers of each concept serve the level of concepts, too, and copies
    count there as they do over all. Where balanced ones are asked for, and no real image has a place, levels are left
    out and counted.
    """
    by = options.means.by
    for scope, images in cells_of(generated, ()):
        yield Cell(scope, images, whole.images, None, whole.params)
    if (
        options.balanced
        and shown.select(pl.all_horizontal(pl.col("concept", "country", "group").is_null()).all()).item()
    ):
        left_out["levels, as no real image says what it shows or where it is from"] += len(by)
        return
    if not by:
        return
    drawn, each, stated, parted = whole.images, None, whole.params, generated
    if not stated or set(by) != {("concept",)}:
        stated = {}
        usable = without_copies(shown, reals, "real images with the vector of another", left_out)
        parted = pl.concat([
            without_copies(images, fakes, "generated images with the vector of another of the model", left_out)
            for images in generated.partition_by("model", maintain_order=True)
        ])  # fmt: skip
        drawn, each = balanced(usable, parted, options, left_out)
    for scope, images in cells_of(parted, by):
        columns = [name for name in scope if name != "model"]
        if not columns:
            continue
        references = drawn.filter(pl.all_horizontal(pl.col(name) == scope[name] for name in columns))
        size = min(images.height, references.height)
        if size <= options.k:
            left_out[f"cells with at most {options.k} images, real or generated"] += 1
        elif size < options.fewest:
            left_out[f"cells with fewer than {options.fewest} images, real or generated"] += 1
        else:
            yield Cell(scope, images, references, each, stated)


def without_copies(
    images: pl.DataFrame, vectors: NDArray[np.floating], what: str, left_out: Counter[str]
) -> pl.DataFrame:
    """Leave out every image whose vector another one has too."""
    kept = images.filter(pl.Series(unduplicated(vectors[images["row"].to_numpy()]), dtype=pl.Boolean))
    left_out[what] += images.height - kept.height
    return kept


def balanced(
    shown: pl.DataFrame, generated: pl.DataFrame, options: RealismOptions, left_out: Counter[str]
) -> tuple[pl.DataFrame, int]:
    """Draw equally many references of every cell of the finest level that some model has images of."""
    names = {name for level in options.means.by for name in level}
    if shown["concept"].null_count() == 0 and generated["concept"].null_count() == 0:
        # Objects weigh the same in a region, also where regions are not parted by object.
        names.add("concept")
    columns = [column for name, column in LEVELS.items() if name in names]
    known = shown.filter(pl.all_horizontal(pl.col(columns).is_not_null()))
    left_out["real images that no level has a place for"] += shown.height - known.height
    asked = known.join(generated.select(columns).unique(), on=columns, how="semi", maintain_order="left")
    left_out["real images of cells without generated ones"] += known.height - asked.height
    if asked.is_empty():
        raise NothingScored(
            "no cell has both real and generated images",
            expected=f"the same {' and '.join(columns)} on both sides",
            found=f"{known.height} real images with a place, {generated.height} generated ones",
        ).counting(left_out)
    cells = asked.select(pl.concat_str(columns, separator=" / ")).to_series().to_list()
    drawn = asked[balanced_sample(cells, size=options.per_cell, rng=own_generator(options.seed, "references"))]
    return drawn, drawn.height // len(set(cells))


def cell_rows(
    cell: Cell,
    reals: NDArray[np.floating],
    fakes: NDArray[np.floating],
    options: RealismOptions,
    *,
    params: Mapping[str, object],
    target: Target,
    cache: RadiiCache,
) -> Rows:
    """Score the images of one model in one cell."""
    real, fake = reals[cell.references["row"].to_numpy()], fakes[cell.images["row"].to_numpy()]
    prompts = prompts_of(cell.images)
    target = "population" if prompts is None else target
    codes = np.arange(len(fake)) if prompts is None else np.unique(prompts, return_inverse=True)[1]
    groups = codes if target == "population" else np.arange(len(fake))
    scope = {**cell.scope, "benchmark": options.means.benchmark}
    try:
        found = neighbourhoods(real, fake, k=options.k, groups=groups, cache=cache)
    except UsageError as error:
        error.where = error.where or f"model {cell.scope['model']!r}"
        raise
    confidence = options.means.confidence
    strata = None if target == "population" else codes
    coverage = coverage_interval(found, strata=strata, groups=int(groups.max()) + 1, confidence=confidence)
    of_prompts: dict[str, Any] = {"clusters": prompts, "target": target, "confidence": confidence}
    inside, density = found.around_fake > 0, found.around_fake / found.k
    mean = mean_interval(density, **of_prompts)
    distance = kernel_distance_interval(fake, real, a_clusters=groups, confidence=confidence)
    if min(len(np.unique(groups)), len(real)) < FEWEST_PROMPTS:
        distance = replace(distance, low=np.nan, high=np.nan)
    of_fakes = {**params, "k": found.k, "target": target}
    of_reals = {**of_fakes, "n_fake": len(fake)}
    frechet, kernel = (
        {**params, "called": called(metric, options.encoder)} for metric in ("frechet_distance", "kernel_distance")
    )
    frechet |= {"n_fake": len(fake), "no_interval": NO_FRECHET_INTERVAL, **few_for(real, fake)}
    kernel["target"] = KERNEL_TARGETS[target]
    answers = {
        "prdc_precision": (share_interval(inside, **of_prompts), of_fakes),
        "prdc_density": (replace(mean, low=max(mean.low, 0.0)), of_fakes),
        "prdc_recall": (share_interval(found.recalled, confidence=confidence), {**of_reals, "target": "references"}),
        "prdc_coverage": (coverage, of_reals),
        "frechet_distance": (Interval(frechet_distance(real, fake), np.nan, np.nan, len(fake), target), frechet),
        "kernel_distance": (distance, with_reason(kernel, distance, FEW_UNITS)),
    }
    of_images = {
        "prdc_precision": (cell.images, inside), "prdc_density": (cell.images, density),
        "prdc_recall": (cell.references, found.recalled), "prdc_coverage": (cell.references, found.covered),
    }  # fmt: skip
    rows = [
        statistic_row(metric, **scope, answer=answer, params=stated) for metric, (answer, stated) in answers.items()
    ]
    values = [
        value_rows({**scope, "metric": metric}, answers[metric][1],
                   images.rename({"image_id": "item"}).with_columns(value=pl.Series(each).cast(pl.Float64)))
        for metric, (images, each) in of_images.items()
    ]  # fmt: skip
    return rows, values


def few_for(real: NDArray[np.floating], fake: NDArray[np.floating]) -> dict[str, object]:
    """Warn of sets with fewer images than dimensions: how such a set spreads is not known in all of them."""
    images, width = min(len(real), len(fake)), real.shape[1]
    few = f"{images:,} images, fewer than the {width:,} dimensions: not how a set spreads in all of them"
    return {"few_images": few} if images < width else {}


def params_of(cell: Cell, options: RealismOptions) -> dict[str, object]:
    """Say what every score of a cell depends on."""
    balanced = {"references": "balanced", "per_cell": cell.per_cell, "seed": options.seed, "copies": "left out"}
    scheme = {"scheme": options.means.scheme} if cell.scope.get("group") else {}
    whole = dict(cell.params) or {"references": "all", "copies": "kept"}
    return {
        "encoder": dict(options.encoder),
        "licence": licence_of(options.encoder),
        "n_real": cell.references.height,
        **(whole if cell.per_cell is None else {**balanced, **scheme}),
    }


logger = logging.getLogger(__name__)

BEYOND = "generated images beyond as many as every model has"

NO_INCEPTION_INTERVAL = "its bias depends on n, and its splits are not independent samples of prompts"


_VECTORS = (
    "two folders of vectors of one extractor: real and generated images",
    "images: image_id, model, prompt_id, and concept and country for levels",
)

_COMMON = (
    "The extractor decides. Features of Inception, CLIP and DINOv2 give different numbers and different rankings; "
    "params.encoder says which it was, and only scores of one encoder compare.",
    "Real images are no neutral ground: what the reference set lacks counts as unreal. params.n_real and "
    "params.references say what was compared with.",
)

_ON_FAKES = (
    "The interval holds the real images fixed. Under the target population it speaks about other prompts and needs 20 "
    "of them; under these, about other images of these prompts.",
)

_SIZE = (
    "It depends on how many images there are on both sides (params.n_real, params.n_fake), and on k: compare equal "
    "numbers only.",
)

_PR_PAPER = "Kynkäänniemi et al. 2019, Improved Precision and Recall Metric for Assessing Generative Models"

_PRDC_PAPER = "Naeem et al. 2020, Reliable Fidelity and Diversity Metrics for Generative Models"

_EXTRACTOR = "that of the extractor named in params.encoder"

# Describe one of the four numbers of PRDC
_share = partial(describe, inputs=_VECTORS, direction="higher", licence=_EXTRACTOR)

PRECISION = _share(
    "prdc_precision",
    "Precision",
    "share of generated images y with |y - x| < r(x) for some real x; r(x) is the distance from x to its k-th nearest "
    "real neighbour",
    paper=_PR_PAPER,
    pitfalls=(
        "One real outlier has a large neighbourhood, and whatever falls into it counts as real: read prdc_density "
        "beside it.",
        "r shrinks as real images are added: compare equal params.n_real only.",
        *_ON_FAKES,
        *_COMMON,
    ),
)

DENSITY = _share(
    "prdc_density",
    "Density",
    "mean over generated images of the number of real neighbourhoods that each lies in, over k",
    paper=_PRDC_PAPER,
    pitfalls=(
        "It is no share and may exceed 1: many images of the same common picture raise it.",
        *_ON_FAKES,
        *_COMMON,
    ),
    high=UNBOUNDED,
    unit="ratio",
)

RECALL = _share(
    "prdc_recall",
    "Recall",
    "share of real images x with |x - y| < r(y) for some generated y; r(y) is the distance from y to its k-th nearest "
    "generated neighbour",
    paper=_PR_PAPER,
    pitfalls=(
        "Scattered generated images have large neighbourhoods, so nonsense can have high recall: prdc_coverage cannot "
        "be raised that way.",
        *_SIZE,
        "The interval speaks about other real images like these, with the generated ones held fixed. How recall "
        "varies with the generated images it does not say: resampling them makes copies, and copies have radius zero.",
        *_COMMON,
    ),
)

COVERAGE = _share(
    "prdc_coverage",
    "Coverage of real images",
    "share of real images x with |x - y| < r(x) for some generated y",
    paper=_PRDC_PAPER,
    pitfalls=(
        "It is not the mean cosine that some call coverage.",
        *_SIZE,
        "The interval is a jackknife over prompts (target population) or images (these), the real images fixed. It is "
        "too wide rather than too narrow. A bootstrap would lie below the truth, since copies cover nothing new.",
        *_COMMON,
    ),
)

FRECHET = describe(
    "frechet_distance",
    "Fréchet distance (FID on Inception features)",
    "|mu_a - mu_b|^2 + tr(S_a) + tr(S_b) - 2 tr((S_a S_b)^(1/2)), covariances with ddof = 1",
    paper="Heusel et al. 2017, GANs Trained by a Two Time-Scale Update Rule Converge to a Local Nash Equilibrium",
    inputs=_VECTORS,
    pitfalls=(
        "It is biased upwards, by more the fewer images there are and the wider the features: compare equal "
        "params.n_fake and params.n_real only. With fewer images than dimensions most of the number is bias.",
        "There is no interval: the bias depends on n, and the images of a bootstrap resample, of which a third are "
        "missing and others doubled, have more of it. kernel_distance has no bias and has an interval.",
        "FID is the name for pool3 features of one Inception network after one way of resizing; with others this is a "
        "Fréchet distance, and another number.",
        *_COMMON,
    ),
    high=UNBOUNDED,
    direction="lower",
    unit="squared distance",
    licence=_EXTRACTOR,
)

KERNEL = describe(
    "kernel_distance",
    "Kernel distance (KID on Inception features)",
    "unbiased MMD^2 of the whole sets with k(x, y) = (x.y / dim + 1)^3",
    paper="Bińkowski et al. 2018, Demystifying MMD GANs",
    inputs=_VECTORS,
    pitfalls=(
        "Unbiased, it can be a little below 0. Some tables print it times 1,000.",
        "Code that averages over random subsets of 1,000 gives the same number with more noise; its spread over "
        "subsets is no standard error of the score.",
        "The interval is a jackknife over prompts (params.target population) or images, on both sides. Near 0 it is "
        "too wide rather than too narrow.",
        *_COMMON,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    direction="lower",
    unit="squared distance",
    licence=_EXTRACTOR,
)

INCEPTION = describe(
    "inception_score",
    "Inception score",
    "mean over splits of exp(mean over images of KL(p(y|x) || p(y))); p(y) the mean of the split",
    paper="Salimans et al. 2016, Improved Techniques for Training GANs",
    inputs=("a folder of class probabilities, ids being image ids", "images: image_id, model"),
    pitfalls=(
        "Classes are those of ImageNet: dishes, garments and buildings that it has no class for are scored by what "
        "they are mistaken for.",
        "It grows with the images per split; ten splits of 5,000 are customary. There is no interval: the values "
        "beside the score are its splits, whose standard deviation (ddof = 0) papers print behind a plus-minus sign.",
        "Splits are runs of images in order of their ids. Where ids follow prompts or objects, each split has few of "
        "them, and the score is too low.",
        "It never looks at real images.",
    ),
    low=1.0,
    high=UNBOUNDED,
    direction="higher",
    unit="effective classes",
    licence="that of the classifier named in params.encoder",
)


@scores(
    "realism", FRECHET, INCEPTION, KERNEL, COVERAGE, DENSITY, PRECISION, RECALL, version=4,
    example="--real real --fake vectors --images images/images.parquet --out scores",
    seeds={"references": "seed"},
    settle=lambda options, **_: {"options": replace(options, means=options.means.known())},
)  # fmt: skip
def realism(
    work: Work,
    real: Annotated[VectorFolder, Field(description="Folder of vectors of real images.")],
    fake: Annotated[
        VectorFolders, Field(description="Folder of vectors of generated images, ids their image ids; repeatable.")
    ],
    images: Annotated[
        ImageTables,
        Field(description="Table of generated images: model, prompt, country, object; repeatable. [one model]"),
    ] = ImageTables(),
    references: Annotated[
        Path | None, Field(description="Table of the real images; --by needs it."), Typed(needs="by balanced")
    ] = None,
    prompts: Annotated[
        Path | None,
        Field(description="Prompts of the images, where their table lacks country or object."),
        Typed(needs="images references"),
    ] = None,
    probs: Annotated[
        ProbabilityFolders,
        Field(description="Folder of class probabilities, as vectors; adds the inception score; repeatable."),
    ] = ProbabilityFolders(),
    *,
    options: RealismOptions = RealismOptions(),
) -> Scored:
    """Score images by how they lie among real ones.

    Precision, recall, density, coverage, Fréchet and kernel distance, and the inception score.
    """
    folders = [real.folder, *fake.places]
    encoder = one_identity_of_all(folders)
    check_extractor(encoder, where=", ".join(map(str, folders)))
    vectors = fake.vectors(work.scratch)
    assert vectors is not None
    data = RealismInput(
        real=real.vectors(),
        fake=vectors,
        images=images.table(prompts, work.scratch) if images else None,
        references=None if references is None else images_with_prompts(references, prompts, work.scratch),
        probs=probs.vectors(work.scratch),
    )
    return score_realism(data, options=replace(options, encoder=encoder, classifier=probs.encoder))


@dataclass(frozen=True, slots=True)
class RealismInput:
    """What realism is scored from."""

    real: LabelledVectors  # vectors of real images, ids their image ids
    fake: LabelledVectors  # vectors of generated images of any number of models
    # conforms to IMAGES: model, prompt, concept and country of the generated images; may be none
    images: pl.DataFrame | None = None
    references: pl.DataFrame | None = None  # the same of the real images; levels need it
    probs: LabelledVectors | None = None  # class probabilities of generated images, for the inception score


def score_realism(given: RealismInput, *, options: RealismOptions) -> Scored:
    """Score the images of every model against all real images, and at each level against as many of every cell.

    Images are taken in order of their ids, as many of every model unless `equal` is off. At a level copies count as
    nothing: of images with equal vectors, real or of one model, all are left out; the real ones are then drawn in
    equal numbers from every cell that some model made images for. A cell with too few images for k, or fewer than
    `fewest`, is left out and counted.
    """
    means = options.means
    left_out: Counter[str] = Counter()
    for side, one in (("real", given.real), ("generated", given.fake)):
        if not one.ids:
            raise NothingScored(
                f"there is no {side} image to score", expected="vectors of pictures", found="none",
                hint="Look at what the stages that took pictures in, and embedded them, left out.",
            )  # fmt: skip
    reals, fakes = feature_sets("real", given.real.vectors, "fake", given.fake.vectors)
    check_apart(given)
    shown, equal, whole = chosen(given, options, left_out)
    images = equal.images
    target = target_of(images, means)
    cache: RadiiCache = {}
    scores, values = [], []
    for cell in cells_with_references(images, shown, reals, fakes, whole, options, left_out):
        stated = params_of(cell, options) | equal.params
        rows, value_table = cell_rows(cell, reals, fakes, options, params=stated, target=target, cache=cache)
        scores += rows
        values += value_table
    few = sum('"few_images":' in row["params"] for row in scores)
    if few:
        logger.warning("%d Fréchet distances of fewer images than dimensions say little: few_images in params", few)
    if given.probs is not None:
        rows, value_table = class_rows(given.probs, given.images, options, left_out)
        scores += rows
        values += value_table
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
    generated = placed(given.fake.ids, given.images, means, what="generated vectors", left_out=left_out)
    if wants_places and given.references is None:
        raise UsageError(
            "levels and balanced references need to know where the real images belong",
            expected="a table of the real images",
        )
    places = given.references if wants_places else None
    shown = placed(given.real.ids, places, means, what="real vectors", left_out=left_out)
    for side, rows, ids in (("generated", generated, given.fake.ids), ("real", shown, given.real.ids)):
        check_known(rows, f"{side} vectors", ids)
    equal = equal_images(generated, seed=options.seed, most=options.most) if options.equal else Equal(generated)
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
    generated = placed(probs.ids, images, options.means, what="class probabilities", left_out=left_out)
    check_known(generated, "class probabilities", probs.ids)
    equal = equal_images(generated, seed=options.seed, most=options.most) if options.equal else Equal(generated)
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
        scope = {"model": cell["model"][0], "benchmark": options.means.benchmark, "metric": "inception_score"}
        answer = Interval(float(splits.mean()), np.nan, np.nan, cell.height, "these")
        rows.append(statistic_row(**scope, answer=answer, params=params))
        parts = pl.DataFrame({"item": [f"split {number}" for number in range(len(splits))], "value": splits})
        values.append(value_rows(scope, params, parts))
    return rows, values
