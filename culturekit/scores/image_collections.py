"""The images of one model and one concept: their labels, their quality, their repeats and batches."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.digests import canonical_json, digest
from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES, MATCHES, PROMPTS, QUALITY, VALUES
from culturekit.core.table import PERSONS, Table, check_slots
from culturekit.core.tables import check_rows
from culturekit.metrics.diversity.batch_diversity import (
    GROUPS,
    Batches,
    BatchScorer,
    Partial,
    cut_batches,
    jackknife,
    jackknife_groups,
    scorer_of_batches,
)
from culturekit.metrics.diversity.kernel_diversity import Weights, check_weights, counting_levels
from culturekit.metrics.diversity.label_spectra import effective_numbers
from culturekit.metrics.diversity.labels import LEVELS, LabelClasses, Missing, code_labels, combined
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target, half_width, interval, simple_mean
from culturekit.scores.catalog import describe, scale_of
from culturekit.scores.score_rows import (
    Repeats,
    Row,
    check_ranges,
    mean_over_repeats,
    no_interval,
    repeats_in,
    statistic_row,
    value_rows,
)

MEAN_QUALITY = describe(
    "quality",
    "Quality",
    "mean of s(x), over the images of a repeat, then repeats, then prompts",
    paper="Kannen et al. 2024, Beyond Aesthetics: Cultural Competence in Text-to-Image Models (CUBE), section 5",
    inputs=("matches: image_id, model, concept, prompt_id, repeat", "quality: image_id, scorer, value"),
    pitfalls=(
        "The scale is the scorer's own: HPS-v2 lies near 0.2 to 0.35 and is no probability, PickScore near 20. Values "
        "of two scorers cannot be compared.",
        "Scorers judge looks, and prefer what they were trained on; none of them knows whether a picture is right "
        "about a culture.",
    ),
    low=float("-inf"),
    high=float("inf"),
    direction="higher",
    licence="that of the scorer named in params.scorer",
)


# What labels are called, by the method that gave them; all others are `mapped`
LABEL_KINDS = {"truth": "truth", "vlm": "tagged"}


@dataclass(frozen=True, slots=True)
class ImageCollection:
    """The images of one model and concept, ordered by prompt, repeat and slot."""

    model: str  # the model's name
    concept: str | None  # the concept, or None
    country: str | None  # the country that the prompts name, where collections are made of such prompts; else None
    method: str  # how the images were labelled; `truth` where the simulator said what it drew
    images: pl.Series  # str, (n_images,): image ids
    codes: NDArray[np.int64]  # int64, (n_images, 3): labels as codes, for continent, country, artifact
    batches: Batches  # which images make which batch; a collection without repeats is one batch
    repeats: Repeats | None  # None where the images name neither prompt nor repeat

    @property
    def label_kind(self) -> str:
        """`truth` for labels that are known, `tagged` for those that a model named, `mapped` for nearest artifacts."""
        return LABEL_KINDS.get(self.method.partition(" ")[0], "mapped")

    def quality(self, scores: pl.DataFrame) -> NDArray[np.float64]:
        """Look up a quality table of one scorer, float64 (n_images,), NaN where it lacks an image."""
        wanted = pl.DataFrame({"image_id": self.images})
        found = wanted.join(scores, on="image_id", how="left", maintain_order="left")
        return found["value"].to_numpy().astype(np.float64)

    def scorer(self) -> BatchScorer:
        """Give the function that computes VS/N of each batch from weights and order."""
        return scorer_of_batches(dict(enumerate(self.codes.T)), self.batches)


def image_collections(
    matches: pl.DataFrame, *, missing: Missing, size: int, partial: Partial, countries: Mapping[str, str] | None = None
) -> Iterator[ImageCollection]:
    """Take the nearest match of each image, and part the images by model and concept, in alphabetical order.

    With `countries`, of prompts, only images of these prompts are taken, and parted by country too.
    """
    nearest = nearest_of(matches).with_columns(place=pl.lit(None, pl.String))
    if countries is not None:
        place = pl.col("prompt_id").replace_strict(dict(countries), default=None, return_dtype=pl.String)
        nearest = nearest.with_columns(place=place).drop_nulls("place")
    ordered = nearest.sort("model", "concept", "place", "prompt_id", "repeat", "slot", "image_id")
    for images in ordered.partition_by("model", "concept", "place", maintain_order=True):
        codes = code_labels(images.select(LEVELS), missing=missing, normalize=True)
        repeats = repeats_of(images)
        yield ImageCollection(
            model=images["model"][0],
            concept=images["concept"][0],
            country=images["place"][0],
            method=only_method(images),
            images=images["image_id"],
            codes=codes,
            batches=one_batch(len(codes)) if repeats is None else cut_batches(repeats.of_row, size, partial),
            repeats=repeats,
        )


def nearest_of(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the nearest match of each image; an image whose nearest is not there is a mistake."""
    table = checked(matches, MATCHES)
    nearest = table.filter(pl.col("rank") == 1)
    beheaded = table.join(nearest, on="image_id", how="anti")
    if beheaded.height:
        raise UsageError(
            "an image has matches, and none of rank 1", expected="the nearest match of every image",
            found=f"{beheaded['image_id'].n_unique():,} images without, such as {beheaded['image_id'].min()!r}",
        )  # fmt: skip
    check_slots(nearest)
    return nearest


def images_of_no_country(matches: pl.DataFrame, prompts: pl.DataFrame) -> dict[str, int]:
    """Count the images that belong to no country: of prompts that no table knows, and of prompts that name none."""
    named = {"prompt_id": pl.String, "country": pl.String}
    images = matches.select("image_id", "prompt_id").unique("image_id")
    known = images.join(prompts.select(pl.col(name).cast(kind) for name, kind in named.items()), on="prompt_id")
    return {
        "images of prompts that the table of prompts does not have": images.height - known.height,
        "images of prompts that name no country": known["country"].null_count(),
    }


def checked(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Keep the declared columns of a table, or say in which ways it does not conform."""
    known = frame.select(name for name in frame.columns if name in table.columns)
    problems = table.problems(known)
    if problems:
        raise UsageError(f"not a {table.name} table: {'; '.join(problems)}")
    if PERSONS & table.columns.keys():  # what people said; other tables are looked at when they are read
        check_rows(known, table, table.name)
    return known


def only_method(images: pl.DataFrame) -> str:
    """Give the method that labelled the images of one model and concept; several would be two measurements in one."""
    method, *others = images["method"].unique().sort().to_list()
    if others:
        raise UsageError(
            f"images of one model and concept are labelled by {len(others) + 1} methods", where=place_of(images),
            expected="one method", found=", ".join([method, *others]),
            hint="Score the matches of each method on their own.",
        )  # fmt: skip
    return str(method)


def place_of(images: pl.DataFrame) -> str:
    """Name the model and concept of some images in an error."""
    return f"model {images['model'][0]!r}, concept {images['concept'][0]!r}"


def one_batch(images: int) -> Batches:
    """Put all images into one batch."""
    return Batches(np.arange(images)[None, :], np.ones((1, images), np.bool_))


def repeats_of(images: pl.DataFrame) -> Repeats | None:
    """Find the repeats of ordered images; None when no image has both a prompt and a repeat."""
    placed = images.filter(pl.col("prompt_id").is_not_null() & pl.col("repeat").is_not_null()).height
    if placed == 0:
        return None
    if placed < images.height:
        raise UsageError(
            f"{images.height - placed} of {images.height} images lack a prompt or a repeat",
            where=place_of(images),
            expected="both for all images of a model and concept, or for none",
            hint="Without them only the diversity of the whole collection can be computed.",
        )
    return repeats_in(images)


def quality_by_scorer(quality: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    """Part a quality table by scorer, in alphabetical order; no table gives no scorers."""
    if quality is None:
        return {}
    table = checked(quality, QUALITY)
    unusable = table.filter(~pl.col("value").is_finite())
    if unusable.height:
        raise UsageError(
            f"the quality of {unusable.height} images is not finite", where=f"scorer {unusable['scorer'][0]!r}",
            expected="a number for each image", found=f"{unusable['value'][0]} for image {unusable['image_id'][0]!r}",
        )  # fmt: skip
    found = {rows["scorer"][0]: rows for rows in table.sort("scorer").partition_by("scorer")}
    for scorer, rows in found.items():
        ends = scale_of(scorer)
        beyond = rows.filter(~pl.col("value").is_between(*ends)) if ends else rows.clear()
        if ends and beyond.height:
            raise UsageError(
                f"the quality of {beyond.height} images lies off the scale of its scorer",
                where=f"scorer {scorer!r}, image {beyond['image_id'][0]!r}",
                expected=f"from {ends[0]:g} to {ends[1]:g}", found=f"{beyond['value'][0]:g}",
                hint="On another scale it is another scorer: give it a name of its own.",
            )  # fmt: skip
    return {scorer: rows.select("image_id", "value") for scorer, rows in found.items()}


# One score of a collection, over its repeats or of the whole, and its rows.

Values = NDArray[np.float64]

NO_REPEATS = np.empty(0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A score before it is written down."""

    images: ImageCollection  # what was scored
    metric: str  # its name in the catalogue
    params: Mapping[str, object]  # how it was scored
    interval: Interval  # the value and its limits
    entered: int  # how many images went in
    # float64, (n_repeats,): the mean of each repeat, NaN where it has none; empty without repeats
    repeats: NDArray[np.float64]

    def place(self, benchmark: str) -> dict[str, str | None]:
        """Say where it stands."""
        images = self.images
        about = {"model": images.model, "concept": images.concept, "country": images.country}
        return {"metric": self.metric, "benchmark": benchmark, **about}


def over_repeats(
    images: ImageCollection,
    values: Values,
    firsts: NDArray[np.int64],
    what: tuple[str, Mapping[str, object]],
    entered: int,
    *,
    target: Target,
    confidence: float,
) -> Answer:
    """Average values, (n,), over each repeat, then over repeats, then over prompts.

    Args:
        images: with repeats.
        values: NaN is a value that is not known.
        firsts: int64, (n,): the number of an image that a value comes from, whose repeat it belongs to.
        what: the metric and its parameters.
        entered: how many images went in.
        target: what the interval speaks about.
        confidence: of the interval.
    """
    if images.repeats is None:
        raise ValueError("a whole collection has no repeats")
    of_value = images.repeats.of_row[firsts]
    answer, means = mean_over_repeats(values, of_value, images.repeats, target=target, confidence=confidence)
    return Answer(images, *what, answer, entered, means)


def answer_rows(answers: Sequence[Answer], benchmark: str) -> tuple[list[Row], list[pl.DataFrame]]:
    """Write scores, and the means of the repeats that they were averaged from."""
    rows, values = [], []
    for each in answers:
        place = each.place(benchmark)
        answer = replace(each.interval, n=each.entered)
        rows.append(statistic_row(**place, answer=answer, params=each.params))  # type: ignore[arg-type]
        if each.images.repeats is not None:
            values.append(value_rows(place, each.params, each.images.repeats.values(each.repeats)))
    return rows, values


def whole_quality(
    images: ImageCollection, values: Values, params: Mapping[str, object], *, confidence: float
) -> Answer:
    """Average the quality over the images, with a t interval over them."""
    known = values[np.isfinite(values)]
    params = {**params, "target": "population"}
    if not len(known):
        return Answer(images, "quality", params, no_interval("population"), 0, NO_REPEATS)
    mean = simple_mean(known)
    margin = half_width(mean, confidence=confidence)
    answer = Interval(mean.value, mean.value - margin, mean.value + margin, len(known), "population")
    return Answer(images, "quality", params, answer, len(known), NO_REPEATS)


def whole_diversity(
    images: ImageCollection,
    value: float,
    quality: Values | None,
    what: tuple[str, Mapping[str, object]],
    *,
    confidence: float,
) -> Answer:
    """Give VS/N of the whole collection, times the mean quality where that is given.

    The interval is around the value whose bias the jackknife corrected, which stands in the parameters.
    """
    metric, params = what
    entered = len(images.codes) if math.isfinite(value) else 0
    weights, q = check_weights(params["weights"]), float(params["q"])  # type: ignore[arg-type]
    corrected = no_interval("population")
    if entered > 1:
        # The draw parts the images at random, always in the same way: their order is that of their ids.
        groups = jackknife_groups(len(images.codes), GROUPS, np.random.default_rng(0))
        score = WholeScore(images.codes, weights, q, quality)
        corrected = jackknife(score, groups, confidence=confidence)
    said = {
        "interval": "jackknife, approximate",
        "bias_corrected": corrected.value if math.isfinite(corrected.value) else None,
        "target": "population",
    }
    answer = Interval(value, corrected.low, corrected.high, entered, "population")
    return Answer(images, metric, {**params, **said}, answer, entered, NO_REPEATS)


class WholeScore:
    """VS over the number of all images, times the mean quality of those that are kept."""

    def __init__(self, codes: NDArray[np.int64], weights: Weights, q: float, quality: Values | None) -> None:
        """Number the classes of the images once."""
        levels = counting_levels(weights)
        self.weights, self.q, self.quality = [weights[level] for level in levels], q, quality
        _, firsts, self.member = np.unique(
            combined([codes[:, level] for level in levels]), return_index=True, return_inverse=True
        )
        self.labels = codes[firsts][:, levels]

    def __call__(self, kept: NDArray[np.bool_]) -> float:
        """Score the images that are kept, bool (n_images,)."""
        counts = np.bincount(self.member[kept], minlength=len(self.labels))
        classes = LabelClasses(self.labels[counts > 0], counts[counts > 0])
        score = effective_numbers(classes, self.weights, [self.q])[0] / len(kept)
        return score if self.quality is None else score * float(self.quality[kept].mean())


# The values behind scores, ready to be compared: which belong together, and what was not known.

# The columns that say where a value belongs, besides metric, model and params
PLACE = ("benchmark", "concept", "country", "group")

# Parameters that count what a score left out; scores that differ in them only are the same score
COUNTS = ("images_left_out",)


def known_values(values: pl.DataFrame, *, ignore: Sequence[str] = COUNTS) -> tuple[pl.DataFrame, int]:
    """Check values, leave out those that are not known, and count these.

    Of params the keys to ignore are dropped. The column `unit_id` is the prompt of a value, or its item where no
    prompt is stated: what a comparison resamples and pairs.
    """
    table = checked(values, VALUES)
    check_ranges(table)
    known = table.filter(pl.col("value").is_finite().fill_null(value=False))
    texts = known["params"].unique().to_list()
    plain = {text: params_without(text, ignore) for text in texts}
    known = known.with_columns(
        pl.col("params").replace_strict(plain, return_dtype=pl.String) if plain else pl.col("params"),
        unit_id=pl.coalesce("prompt_id", "item"),
    )
    return known.sort(*VALUES.key), table.height - known.height


def params_without(params: str, keys: Sequence[str]) -> str:
    """Drop keys from params."""
    kept = {key: value for key, value in parsed(params).items() if key not in keys}
    return canonical_json(kept).decode()


def parsed(params: str) -> dict[str, Any]:
    """Read params as JSON."""
    try:
        return msgspec.json.decode(params.encode(), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(
            "the params of a score cannot be read", expected='a JSON object such as {"q":1.0}', found=repr(params[:80])
        ) from error


def own_generator(seed: int, *key: object) -> np.random.Generator:
    """Make the generator of one row: it depends on the seed and the row's own key, not on what else is computed."""
    return np.random.default_rng([seed, int(digest([str(part) for part in key])[:16], 16)])


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

    So all models are scored on the same prompts, which weigh the same for each. Where images have no prompts, or
    no prompt is common to all models, as many are drawn as the smallest model has, whatever they are of.

    Args:
        images: with model, prompt_id and image_id, each image once.
        seed: of the draw; that of a model depends on no other model's images but through their number.
        most: images of a model at most; prompts then give as equally as they can.
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


def balanced_references(shown: pl.DataFrame, made: pl.DataFrame, *, seed: int) -> Equal:
    """Draw equally many references of each concept that images were made for, spread evenly over countries.

    Within a concept countries take turns, each giving one of its references at random, until the number is reached.
    References without a concept cannot be balanced: then all are meant.
    """
    if shown["concept"].null_count() or made["concept"].null_count():
        return Equal(shown)
    asked = shown.join(made.select("concept").unique(), on="concept", how="semi", maintain_order="left")
    if asked.is_empty():
        return Equal(shown)
    least, each = asked.group_by("concept").len().sort("len", "concept").row(0)
    place = pl.concat_str("concept", pl.col("country").fill_null(""), separator="\n")
    ordered = asked.with_columns(place=place)
    ordered = ordered.with_columns(order=shuffled(ordered, "place", seed))
    ordered = ordered.with_columns(turn=pl.col("order").rank("ordinal").over("place"))
    ranked = ordered.sort("concept", "turn", "order", "image_id").with_columns(
        place_in_concept=pl.int_range(pl.len()).over("concept")
    )
    drawn = ranked.filter(pl.col("place_in_concept") < each).sort("image_id").select(shown.columns)
    params: dict[str, object] = {"references": "balanced", "per_concept": each, "seed": seed, "copies": "kept"}
    return Equal(drawn, shown.height - drawn.height, params, least)


# The values of one score, item by item: what is correlated with another.

SERIES = ("metric", "params")


@dataclass(frozen=True, slots=True)
class Series:
    """One score of many items: what it is, and item, value, and for a metric also model, unit_id and country."""

    about: dict[str, object]
    items: pl.DataFrame


def metric_series(known: pl.DataFrame) -> list[Series]:
    """Give each metric, with its parameters, as a series; an item that stands under several scores counts once."""
    once = known.sort("country", "concept", nulls_last=True).unique(
        [*SERIES, "benchmark", "model", "item"], keep="first", maintain_order=True
    )
    series = []
    ordered = once.sort(*SERIES, "benchmark", "model", "item")
    for part in ordered.partition_by(*SERIES, "benchmark", maintain_order=True):
        row = part.row(0, named=True)
        about = {"metric": row["metric"], "params": parsed(row["params"]), "benchmark": row["benchmark"]}
        series.append(Series(about, part.select("model", "item", "unit_id", "country", "value")))
    return series


def items_of(series: Sequence[Series]) -> set[str]:
    """Gather the items of all."""
    return {item for one in series for item in one.items["item"]}


# Images with the group of their prompt and the pair that it belongs to, and means over such prompts.


@dataclass(frozen=True, slots=True)
class Place:
    """Where a score stands: its metric, model, benchmark and group."""

    metric: str
    model: str
    benchmark: str
    group: str | None = None


def prompted_images(
    images: pl.DataFrame, prompts: pl.DataFrame | None, left_out: Counter[str], *, pair: Sequence[str] = ()
) -> pl.DataFrame:
    """Give the images that were made: image_id, model, prompt_id, group and, where asked for, `pair`.

    Args:
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS; without it images have no group.
        left_out: counts to add to.
        pair: the columns of prompts that a prompt shares with its counterparts of other groups.
    """
    table = checked(images, IMAGES)
    made = table.filter(status="ok").select("image_id", "model", "prompt_id").sort("image_id")
    left_out["images not made"] += table.height - made.height
    if prompts is None:
        return made.with_columns(group=pl.lit(None, pl.String))
    asked = checked(prompts, PROMPTS)
    unknown = [name for name in pair if name not in PROMPTS.columns]
    if unknown:
        raise UsageError("prompts have no such column", found=", ".join(unknown), expected=", ".join(PROMPTS.columns))
    named = asked.select("prompt_id", "group", *([pl.concat_str(pair, separator=" | ").alias("pair")] if pair else []))
    if pair:
        named = named.filter(pl.col("pair").is_not_null())
        if not named.height:
            raise UsageError(
                f"no prompt has {' and '.join(pair)}, so none has a counterpart",
                hint="Name the columns that prompts of one pair share.",
            )
    known = made.join(named, on="prompt_id", how="inner").sort("image_id")
    left_out["images of no known prompt"] += made.height - known.height
    return known


def parts_by_group(pictures: pl.DataFrame, *, item: str = "image_id") -> Iterator[pl.DataFrame]:
    """Part pictures by model, and a model's by group; its whole comes first, with the group null."""
    for model in pictures.sort("model", item).partition_by("model", maintain_order=True):
        yield model.with_columns(group=pl.lit(None, pl.String))
        groups = model.filter(pl.col("group").is_not_null()).sort("group", item)
        yield from groups.partition_by("group", maintain_order=True)


def over_prompts(values: pl.DataFrame, *, confidence: float) -> Interval:
    """Average prompt_id, item and value over images and then over prompts; an image without a prompt is its own."""
    keyed = values.with_columns(unit_id=pl.coalesce("prompt_id", "item"))
    units = keyed["unit_id"].n_unique()
    return interval(
        keyed["value"].to_numpy(),
        prompts=keyed["unit_id"].to_list(),
        repeats=keyed["item"].to_list(),
        target="population" if units >= FEWEST_PROMPTS else "these",
        confidence=confidence,
    )


def mean_rows(
    values: pl.DataFrame, place: Place, params: Mapping[str, object], *, confidence: float
) -> tuple[Row, list[pl.DataFrame]]:
    """Make the score that is the mean of some values, and the rows of these.

    Args:
        values: item, prompt_id (may be null) and value, at least one row.
        place: where the score stands.
        params: how it was computed; `target` is added.
        confidence: of the interval.
    """
    answer = over_prompts(values, confidence=confidence)
    params = {**params, "target": answer.target}
    about = asdict(place)
    behind = value_rows(about, params, values.sort("item").select("item", "prompt_id", "value"))
    return statistic_row(**about, answer=answer, params=params), [behind]


def plain_row(place: Place, value: float, n: int, params: Mapping[str, object]) -> Row:
    """Make a score that describes the numbers beside it and has no interval of its own."""
    answer = Interval(value, math.nan, math.nan, n, "these")
    return statistic_row(**asdict(place), answer=answer, params=params)
