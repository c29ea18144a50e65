"""From two tables of matches of the same images to both routes' scores side by side, and how far the routes agree."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.declared import Typed
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import DISAGREEMENTS, JUDGMENTS, MATCHES, QUALITY, SCORES, VALUES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import checked, write_table
from culturekit.metrics.diversity.labels import LEVELS, STANDARD_KERNELS, spell
from culturekit.metrics.statistics.chance_corrected import equal_share, kappa_interval
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.catalog import describe
from culturekit.scores.diversity import Kernels, QvsOptions, Within, nearest_of, weights_of
from culturekit.scores.family import (
    Row,
    Scored,
    params_without,
    scored,
    scored_in,
    scores,
    statistic_row,
    with_reason,
    write_scored,
)
from culturekit.scores.inputs import check_apart, check_countries
from culturekit.scores.qvs import QVS, VS, over_all_prompts, score_qvs, without_quality
from culturekit.scores.stability import RANKING_STABILITY, score_stability

NO_SCATTER = "a single batch, or batches that all agree alike: nothing says how much the routes' agreement scatters"
ONE_LABEL = "both routes give one and the same label to every image: chance alone would agree"
UNSCORED = "common images without a label by one of the routes: no diversity is scored of them"
NOTHING_COMMON = "no image for which both routes name a label of this level"


# What two routes say of the same images: the nearest artifact and a model's tag, side by side.

# The label, on every level, of images of which a judge says that they show no artifact: they are alike in that
NONE_SHOWN = "(none shown)"

# What a route says of an image: a label; a label it is not sure of, or none; that nothing is shown; nothing at all
OUTCOMES = ("named", "abstained", "none shown", "no answer")

READ = ("ok", "repaired")  # Outcomes of judgments whose reply could be read

IMAGE_KEY = ("model", "prompt_id", "concept", "repeat", "slot")


@dataclass(frozen=True, slots=True)
class Route:
    """What one route says of images."""

    name: str  # its method, such as `nearest` or `vlm`
    images: pl.DataFrame  # the nearest match of each image, and the column `said`, one of OUTCOMES

    @property
    def labelled(self) -> pl.DataFrame:
        """The images that have a label to be scored by; where none is shown, that is the label."""
        none = pl.col("said") == "none shown"
        labels = [pl.when(none).then(pl.lit(NONE_SHOWN)).otherwise(pl.col(level)).alias(level) for level in LEVELS]
        return self.images.with_columns(labels).drop_nulls("artifact")


def read_route(matches: pl.DataFrame, judgments: pl.DataFrame | None, *, name: str) -> Route:
    """Read one route: its matches, and what the judge said, where there was one.

    Only judgments tell an image that is said to show nothing from one about which there is no answer; without them
    an image without a label counts as one about which nothing is known.
    """
    nearest = nearest_of(matches)
    methods = nearest["method"].unique().sort().to_list()
    if len(methods) > 1:
        raise UsageError(f"route {name} has several methods", expected="one", found=", ".join(methods))
    unlabelled = pl.col("artifact").is_null()
    answer = (
        pl.when(unlabelled & (pl.col("choice") == "no"))
        .then(pl.lit("none shown"))
        .when(unlabelled & pl.col("choice").is_null())
        .then(pl.lit("no answer"))
        .when(pl.col("abstained") | unlabelled)
        .then(pl.lit("abstained"))
        .otherwise(pl.lit("named"))
    )
    table = nearest.join(choices(judgments), on="image_id", how="left").with_columns(said=answer).drop("choice")
    return Route(methods[0] if methods else name, table.sort("image_id"))


def choices(judgments: pl.DataFrame | None) -> pl.DataFrame:
    """Give what the judge chose for each image, where its reply could be read."""
    if judgments is None:
        return pl.DataFrame(schema={"image_id": pl.String, "choice": pl.String})
    read = checked(judgments, JUDGMENTS).filter(pl.col("outcome").is_in(READ))
    one = read.select("image_id", "choice").drop_nulls("choice")
    if one["image_id"].is_duplicated().any():
        raise UsageError("judgments say several things of one image", hint="Give the judgments of this route only.")
    return one


def common_images(a: Route, b: Route) -> pl.DataFrame:
    """Put what two routes say of the images that both have side by side.

    Returns:
        image_id, model, prompt_id, concept, repeat, slot, and for both `said_` and the three labels, such as
        `country_a`, in the order of the images.
    """
    columns = ["image_id", *LEVELS, "said"]
    joined = a.images.select(*IMAGE_KEY, *columns).join(
        b.images.select(*columns, **{f"{name}_other": name for name in IMAGE_KEY}), on="image_id", suffix="_b"
    )
    apart = joined.filter(pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_other")) for name in IMAGE_KEY))
    if apart.height:
        raise UsageError(
            f"{apart.height} images stand elsewhere in the two tables",
            where=f"image {apart['image_id'][0]!r}",
            expected="the same model, prompt, concept, repeat and slot in both",
            hint="Map and tag the same table of images, with the same prompts.",
        )
    named = {name: f"{name}_a" for name in (*LEVELS, "said")}
    return joined.rename(named).drop([f"{name}_other" for name in IMAGE_KEY]).sort("image_id")


def side_by_side(common: pl.DataFrame, level: str) -> pl.DataFrame:
    """Take the images for which both routes name a label of a level, spelled alike: `a`, `b` and `batch`.

    `label_a` and `label_b` are spelled as they came.
    """
    both = common.filter((pl.col("said_a") == "named") & (pl.col("said_b") == "named"))
    known = both.drop_nulls([f"{level}_a", f"{level}_b"])
    repeat = pl.col("repeat").cast(pl.String)
    batch = pl.when(pl.col("prompt_id").is_null() | pl.col("repeat").is_null()).then(pl.col("image_id"))
    return known.select(
        pl.col(f"{level}_a").alias("label_a"),
        pl.col(f"{level}_b").alias("label_b"),
        spelled(known[f"{level}_a"]).alias("a"),
        spelled(known[f"{level}_b"]).alias("b"),
        batch.otherwise(pl.concat_str("prompt_id", repeat, separator="\n")).alias("batch"),
    )


def spelled(labels: pl.Series) -> pl.Series:
    """Write labels without differences of case, spaces and composition."""
    spellings = {label: spell(label) for label in labels.unique()}
    return labels.replace_strict(spellings, return_dtype=pl.String) if spellings else labels.cast(pl.String)


def counted(common: pl.DataFrame) -> Mapping[str, int]:
    """Count what each route says of common images, such as `abstained_a`."""
    found = {side: Counter(common[f"said_{side}"].to_list()) for side in ("a", "b")}
    return {f"{outcome.replace(' ', '_')}_{side}": found[side][outcome] for side in ("a", "b") for outcome in OUTCOMES}


# The scores of two routes, side by side.

_ROUTES = ("matches: image_id, model, concept, rank, continent, country, artifact, abstained, of two routes",)

_ROUTE_PITFALLS = (
    "Two routes that agree can be wrong in the same way: agreement is no accuracy. Only an audit by people tells.",
    "n are the images for which both routes name a label of the level; params count those of which a route abstained, "
    "said that nothing is shown, or got no answer, and the images that both routes have (common).",
)

ROUTE_AGREEMENT = describe(
    "route_agreement",
    "Agreement of two routes",
    "share of images to which two routes (params.between) give the same label of params.level; Wilson's interval for "
    "as many independent images as scatter like the batches",
    paper="Wilson 1927; Cameron, Gelbach and Miller 2011",
    inputs=_ROUTES,
    pitfalls=(*_ROUTE_PITFALLS, "Where a model shows mostly one country, routes agree by chance: read route_kappa."),
    low=0.0,
    direction="higher",
    unit="share",
)

ROUTE_KAPPA = describe(
    "route_kappa",
    "Agreement of two routes beyond chance",
    "Cohen's kappa of the labels of params.level by two routes (params.between); t interval from the jackknife over "
    "batches",
    paper="Cohen 1960; Efron and Stein 1981",
    inputs=_ROUTES,
    pitfalls=(*_ROUTE_PITFALLS, "It is low where nearly all labels are the same: read route_agreement beside it."),
    direction="higher",
    low=-1.0,
    unit="coefficient",
)


@dataclass(frozen=True, slots=True)
class RouteOptions(QvsOptions):
    """How both are scored; `within` is not looked at."""

    kernels: Annotated[
        Kernels,
        Typed(
            "kernel",
            weights_of,
            help="Weights of continent, country and artifact, or a name; repeatable. [the five named ones]",
        ),
    ] = tuple(STANDARD_KERNELS.values())
    within: Within = "none"


@scores(
    "routes", QVS, RANKING_STABILITY, ROUTE_AGREEMENT, ROUTE_KAPPA, VS, version=3, folder="routes",
    example="--a matches/matches.parquet --b tags/matches.parquet --judgments tags/judgments.parquet --out routes",
    settle=lambda a, b, **_: check_apart("a route", [*a.places, *b.places]),
)  # fmt: skip
def routes(
    work: Work,
    a: Annotated[Files, Field(description="Matches of one route, as `index map` writes; one table or several.")],
    b: Annotated[Files, Field(description="Matches of the other route, as `tag` writes; one table or several.")],
    judgments: Annotated[
        Files, Field(description="Judgments beside the tags: they tell what shows nothing from what got no answer.")
    ] = Files(),
    quality: Annotated[Files, Field(description="Quality of the images; with it qVS is scored.")] = Files(),
    *,
    options: RouteOptions = RouteOptions(),
) -> Outcome:
    """Score two routes on the images that both know.

    Side by side, and how far they agree image by image.
    """
    parted = pl.DataFrame(schema=DISAGREEMENTS.schema)

    def score() -> Scored:
        nonlocal parted
        one, other = a.together(MATCHES), b.together(MATCHES)
        check_countries(one, other, where=[*a.places, *b.places])
        found = score_routes(
            one,
            other,
            quality=quality.together(QUALITY) if quality else None,
            judgments=judgments.together(JUDGMENTS) if judgments else None,
            options=options,
        )
        parted = found.disagreements
        return found.scored

    outcome = write_scored(work, scored_in(work, score))
    write_table(work.out, DISAGREEMENTS, parted)
    return replace(outcome, counts={**outcome.counts, "disagreements": parted.height})


@dataclass(frozen=True, slots=True)
class Routes:
    """The scores of two routes, how far they agree, and where they part."""

    scored: Scored  # vs and qvs of each route, agreement and kappa, stability of the ranking
    disagreements: pl.DataFrame  # conforms to DISAGREEMENTS


def score_routes(
    a: pl.DataFrame,
    b: pl.DataFrame,
    *,
    quality: pl.DataFrame | None = None,
    judgments: pl.DataFrame | None = None,
    options: QvsOptions,
) -> Routes:
    """Score what two routes say of the images that both know, and compare the routes image by image.

    Diversity is scored on the same images for both, those that have a label by both: of the images that a judge gave no
    answer about, neither route's label enters. Images that a judge says show nothing are alike in that. With judgments
    it is told what shows nothing from what got no answer.

    Returns:
        `vs` and `qvs` of each route, `route_agreement` and `route_kappa` per model, concept and level, and
        `ranking_stability` between the routes; values are the means of repeats.
    """
    one, other = read_route(a, judgments, name="a"), read_route(b, judgments, name="b")
    if one.name == other.name:
        one, other = replace(one, name=f"{one.name} a"), replace(other, name=f"{other.name} b")
    common = common_images(one, other)
    if common.is_empty():
        raise NothingScored("the routes have no image in common", expected="two tables of matches of the same images")
    labelled = one.labelled.join(other.labelled, on="image_id", how="semi")
    left_out = {
        f"images that only {one.name} has": one.images.height - common.height,
        f"images that only {other.name} has": other.images.height - common.height,
        UNSCORED: common.height - labelled.height,
        **without_quality([a], quality),
    }
    scored_both = [side_scores(route, one, other, quality, options) for route in (one, other)]
    between, short = (one.name, other.name), scored_both[0].left_out
    stability = score_stability({name: plain(part.scores) for name, part in zip(between, scored_both, strict=True)})
    rows = list(agreement_rows(common, one, other, between, options))
    agreement = scored(rows, left_out={})
    tables = [part.scores for part in scored_both] + [stability.scores, agreement.scores]
    answer = Scored(
        pl.concat(tables).sort(SCORES.key, maintain_order=True),
        pl.concat([part.values for part in scored_both]).sort(VALUES.key, maintain_order=True),
        {reason: count for reason, count in {**left_out, **short, **stability.left_out}.items() if count},
    )
    return Routes(answer, disagreements(common))


def side_scores(route: Route, one: Route, other: Route, quality: pl.DataFrame | None, options: QvsOptions) -> Scored:
    """Score one route on the images that have a label by both."""
    ids = one.labelled.join(other.labelled, on="image_id", how="semi").select("image_id")
    images = route.labelled.join(ids, on="image_id", how="semi")
    matches = images.with_columns(method=pl.lit(route.name)).select(list(MATCHES.schema))
    parts = [score_qvs(matches, quality, options=options)]
    if matches["concept"].n_unique() > 1:
        parts.append(score_qvs(over_all_prompts(matches), quality, options=options))
    diversity = pl.col("metric") != "quality"
    return Scored(
        pl.concat([part.scores.filter(diversity) for part in parts]),
        pl.concat([part.values.filter(diversity) for part in parts]),
        parts[0].left_out,
    )


def plain(scores: pl.DataFrame) -> pl.DataFrame:
    """Drop from the parameters of scores where their labels come from, so that two routes' scores are one score."""
    texts = scores["params"].unique().to_list()
    without = {text: params_without(text, ["labels"]) for text in texts}
    return scores.with_columns(pl.col("params").replace_strict(without, return_dtype=pl.String)) if texts else scores


def agreement_rows(
    common: pl.DataFrame, one: Route, other: Route, between: tuple[str, str], options: QvsOptions
) -> Iterator[Row]:
    """Compare the routes image by image, for each model and concept, and each model over its concepts."""
    for model, concept, images in parts_of(common):
        here = {"model": model} if concept is None else {"model": model, "concept": concept}
        heights = [route.images.filter(**here).height for route in (one, other)]
        about = {
            "between": list(between),
            "confidence": options.confidence,
            "common": images.height,
            "images_a": heights[0],
            "images_b": heights[1],
            **counted(images),
        }
        for level in LEVELS:
            yield from level_rows(images, level, model, concept, about, options)


def parts_of(common: pl.DataFrame) -> Iterator[tuple[str, str | None, pl.DataFrame]]:
    """Part common images by model and concept, and where there are several concepts each model's over all of its."""
    several = common["concept"].n_unique() > 1
    for images in common.sort("model").partition_by("model", maintain_order=True):
        model = images["model"][0]
        concepts = images.sort("concept").partition_by("concept", maintain_order=True)
        yield from ((model, part["concept"][0], part) for part in concepts if part["concept"][0] is not None)
        if several or concepts[0]["concept"][0] is None:
            yield model, None, images


def level_rows(
    images: pl.DataFrame, level: str, model: str, concept: str | None, about: dict[str, object], options: QvsOptions
) -> Iterator[Row]:
    """Say how often two routes name the same label of a level, and how much of that is beyond chance."""
    pairs = side_by_side(images, level)
    params: dict[str, object] = {**about, "level": level, "batches": pairs["batch"].n_unique()}
    nothing = Interval(math.nan, math.nan, math.nan, 0, "population")
    share, kappa = nothing, nothing
    if pairs.height:
        a, b, batch = (pairs[name].to_numpy() for name in ("a", "b", "batch"))
        share = equal_share(a.astype(str), b.astype(str), batches=batch.astype(str), confidence=options.confidence)
        kappa = kappa_interval(a.astype(str), b.astype(str), batches=batch.astype(str), confidence=options.confidence)
    for metric, answer in (("route_agreement", share), ("route_kappa", kappa)):
        reason = NOTHING_COMMON if not pairs.height else ONE_LABEL if math.isnan(answer.value) else NO_SCATTER
        yield statistic_row(
            metric,
            model=model,
            benchmark=options.benchmark,
            answer=answer,
            params=with_reason(params, answer, reason),
            concept=concept,
        )


def disagreements(common: pl.DataFrame) -> pl.DataFrame:
    """Count which label the one route gives where the other gives another, and the share of the images compared."""
    tables = [pl.DataFrame(schema=DISAGREEMENTS.schema)]
    for model, concept, images in parts_of(common):
        for level in LEVELS:
            pairs = side_by_side(images, level)
            apart = pairs.filter(pl.col("a") != pl.col("b")).group_by("a", "b")
            found = apart.agg(pl.col("label_a", "label_b").min(), images=pl.len()).with_columns(
                model=pl.lit(model), concept=pl.lit(concept, pl.String), level=pl.lit(level),
                share=pl.col("images") / max(pairs.height, 1),
            )  # fmt: skip
            tables.append(found.select(pl.col(name).cast(dtype) for name, dtype in DISAGREEMENTS.schema.items()))
    return pl.concat(tables).sort(DISAGREEMENTS.key, maintain_order=True)
