"""From what a judge says of all items, and people of a random part of them, to means without the judge's errors."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Typed
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import Files
from culturekit.metrics.corrected.audit_gates import Design
from culturekit.metrics.corrected.judged_means import MOST_GRADES, judged_mean, marked_items, marks_of_answers
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval
from culturekit.scores.answers import (
    Ends,
    PoolsBy,
    Refusals,
    careful_answers,
    check_ends,
    check_offered,
    check_on_scale,
    common_range,
    pool_of,
    read_answers,
)
from culturekit.scores.diversity import Distinct
from culturekit.scores.faithfulness import DSG_SCORE, VQASCORE
from culturekit.scores.family import Confidence, Row, Scored, known_values, parsed, scored, scores, statistic_row
from culturekit.scores.inputs import AnyValues
from culturekit.scores.qvs import samples_of

Alike: TypeAlias = Literal["items", "prompts", "countries"]

KEY = ("metric", "model", "benchmark", "params", "concept", "country", "group")

# How the reasons begin for which people's answers put a score right in nothing
REFUSED = "scores of a pool not corrected: "

ROUNDING = 1e-9

# Metrics whose values are not of items that people could be asked about; `score qvs` corrects them itself
NOT_MEANS = ("vs", "qvs")


@dataclass(frozen=True, slots=True)
class JudgedOptions:
    """Which answers put the judge right, and how."""

    criterion: Annotated[str, Field(description="The question of the form that asks people what the judge was asked.")]
    scheme: Annotated[str | None, Field(description="Only answers to this form. [all]")] = None
    choice: Annotated[
        str | None, Field(description="An answer in words that counts 1, such as yes; all others count 0.")
    ] = None
    lowest: Annotated[
        float | None, Field(description="The lowest rating that people could give, which counts 0. [as it is]")
    ] = None
    highest: Annotated[
        float | None, Field(description="The highest rating that they could give, which counts 1. [as it is]")
    ] = None
    metrics: Annotated[
        tuple[str, ...], Field(description="Only the values of this metric; repeatable. [all]"), Typed("metric")
    ] = ()
    alike: Annotated[
        Alike, Field(description="What weighs the same in a mean: each item, each prompt, or each country.")
    ] = "items"
    by: Annotated[PoolsBy, Field(description="What makes a pool of annotators."), Typed("pools")] = "in-region"
    design: Annotated[
        Design, Field(description="Answered items were drawn evenly, which is checked; unknown takes others.")
    ] = "drawn"
    confidence: Confidence = CONFIDENCE

    @property
    def ends(self) -> Ends:
        """The stated scale."""
        return self.lowest, self.highest

    @property
    def step(self) -> float | None:
        """From one grade of a stated scale to the next; None for yes and no, and for finer scales."""
        grades = 0.0 if self.lowest is None or self.highest is None else self.highest - self.lowest
        return 1 / grades if 2 <= grades < MOST_GRADES else None

    def __post_init__(self) -> None:
        """Refuse a scale with one end, one that is upside down, and one for words."""
        check_ends(self.ends)
        if self.lowest is not None and self.choice is not None:
            raise argument_error("choice", "without lowest and highest: words are no ratings", self.choice)


# Means of other families' values are put right too; these are described there.
@scores(
    "judged", DSG_SCORE, VQASCORE, version=6, folder="judged",
    example="--values scores/values.parquet --annotations annotations.parquet --criterion faithfulness "
    "--lowest 1 --highest 5 --out judged",
)  # fmt: skip
def judged(
    values: AnyValues,
    annotations: Annotated[Path, Field(description="What people answered about some of the same items.")],
    sample: Annotated[
        Files, Field(description="What was drawn for people: answers about other items are then refused.")
    ] = Files(),
    *,
    distinct: Distinct = False,
    options: JudgedOptions,
) -> Scored:
    """Put means of what a judge says right by people.

    They answered about a random part of the same items.
    """
    check_offered(annotations, options.criterion, options.choice, options.ends)
    people = read_answers(annotations, stated=options.ends, distinct=distinct)
    return score_judged(values.table(), people, samples_of(sample), options=options)


def score_judged(
    values: pl.DataFrame, annotations: pl.DataFrame, sample: pl.DataFrame | None = None, *, options: JudgedOptions
) -> Scored:
    """Score what the judge says alone, and put right by each pool of people.

    Values that stand under countries only make a score over all of these as well.
    """
    known, unknown = known_values(values)
    reasons, refused = Counter({"values that are no number": unknown}), Refusals()
    pools = answers_by_pool(annotations, options, reasons)
    rows = list[Row]()
    for cell in cells_of(known, options):
        about = parsed(cell["params"][0])
        found: list[Row] = []
        for pool, answers in pools.items():
            try:
                found += rows_of(cell, about, pool, answers, sample, options)
            except UsageError as error:
                refused.note(error, *(cell[name][0] for name in ("model", "concept", "country")), f"pool {pool}")
        rows += {(row["params"],): row for row in found}.values()
    left_out = {**reasons, **refused.left_out(REFUSED)}
    if not rows:
        wanted = "answers about a random part of the items of the values"
        nothing = refused.refusal("people's answers put no score right", "{} scores".format, expected=wanted)
        raise nothing.counting(left_out)
    return scored(rows, left_out=left_out)


def answers_by_pool(
    annotations: pl.DataFrame, options: JudgedOptions, left_out: Counter[str]
) -> Mapping[str, pl.DataFrame]:
    """Give each pool's answers to the question as image_id, annotator and value, on the judge's scale."""
    table = careful_answers(annotations, left_out).filter(criterion=options.criterion)
    if options.scheme is not None:
        table = table.filter(scheme=options.scheme)
    schemes = table["scheme"].unique().sort().to_list()
    if len(schemes) != 1:
        raise (UsageError if schemes else NothingScored)(
            f"answers to the question {options.criterion!r} are to be of one form",
            expected="a criterion of the annotations" if not schemes else "scheme= with one of them",
            found=", ".join(schemes) or ", ".join(annotations["criterion"].unique().sort()),
        )
    check_on_scale(table, options.ends)
    rated = table.with_columns(pool=pool_of(options.by), value=number_of(options))
    finite = rated.filter(pl.col("value").is_finite()).sort("pool", "item_id", "annotator")
    if (finite if options.choice is None else finite.filter(choice=options.choice)).is_empty():
        raise NothingScored(
            f"no answer to {options.criterion!r} counts as a number, or 1",
            expected="ratings, or choice= with an answer that people gave",
            found=", ".join(table["choice"].drop_nulls().unique().sort()) or "neither ratings nor choices",
        )
    parts = finite.select("pool", "annotator", "value", image_id="item_id").partition_by("pool", maintain_order=True)
    return {part["pool"][0]: part for part in parts}


def number_of(options: JudgedOptions) -> pl.Expr:
    """Say what an answer counts."""
    if options.choice is not None:
        return (pl.col("choice") == options.choice).cast(pl.Float64)
    if options.lowest is None or options.highest is None:
        return pl.col("value")
    return (pl.col("value") - options.lowest) / (options.highest - options.lowest)


def cells_of(known: pl.DataFrame, options: JudgedOptions) -> Iterator[pl.DataFrame]:
    """Give the values of each score in the order of their items, with the country of each as `place` and its weight.

    The countries of a score that stands under countries only, or the one there is, make a score together as well.
    """
    means = known.filter(~pl.col("metric").is_in(NOT_MEANS))
    places = means.drop_nulls("country").group_by("model", "item").agg(place=pl.col("country").min())
    means = means.join(places, on=("model", "item"), how="left", maintain_order="left")
    if missing := sorted(set(options.metrics) - set(means["metric"])):
        raise NothingScored(
            "there are no values of a metric", found=", ".join(missing),
            expected=" or ".join(means["metric"].unique().sort()),
        )  # fmt: skip
    asked = means.filter(pl.col("metric").is_in(options.metrics)) if options.metrics else means
    score = [name for name in KEY if name != "country"]
    together = [
        part.with_columns(country=pl.lit(None, pl.String))
        for part in asked.sort(*score).partition_by(score, maintain_order=True)
        if part["country"].null_count() == 0
    ]
    of_prompt = 1 / pl.len().over("place", "unit_id")
    of_country = of_prompt / pl.col("unit_id").n_unique().over("place")
    weights: Mapping[Alike, pl.Expr] = {"items": pl.lit(1.0), "prompts": of_prompt, "countries": of_country}
    for cell in [*asked.sort(*KEY, "item").partition_by(KEY, maintain_order=True), *together]:
        yield cell.sort("item").with_columns(weight=weights[options.alike])


def rows_of(
    cell: pl.DataFrame,
    about: Mapping[str, object],
    pool: str,
    answers: pl.DataFrame,
    sample: pl.DataFrame | None,
    options: JudgedOptions,
) -> Iterator[Row]:
    """Write one score twice: as the judge has it, and put right by a pool."""
    items = cell.select("prompt_id", "value", "weight", "unit_id", image_id="item", country="place")
    low, high = common_range(cell["metric"][0])
    marked = marked_items(items, answers, sample=sample, design=options.design, step=options.step, span=high - low)
    check_range(marked, low, high)
    population = about.get("target") == "population"
    prompts = marked.drop_nulls("people")["unit_id"].n_unique()
    if population and prompts < FEWEST_PROMPTS:
        raise UsageError("people marked items of too few prompts", expected=str(FEWEST_PROMPTS), found=str(prompts))
    found = judged_mean(
        marked["value"].to_numpy(),
        marked["people"].fill_null(float("nan")).to_numpy(),
        weights=marked["weight"].to_numpy(),
        chances=marked["chance"].fill_null(1.0).to_numpy(),
        clusters=marked["unit_id"].to_list() if population else None,
        confidence=options.confidence,
    )
    of_items = answers.join(items.select("image_id"), on="image_id", how="semi")
    marks = marks_of_answers(of_items, options.design)
    told_of = {**about, "target": found.corrected.target, "confidence": options.confidence, "alike": options.alike}
    people: dict[str, object] = {"criterion": options.criterion, "pool": pool, "pools_by": options.by,
                                 "people": found.alone.n, "trust": found.trust}  # fmt: skip
    people |= ({"choice": options.choice} if options.choice else {}) | ({"marked": marks} if marks else {})
    scope = {name: cell[name][0] for name in KEY if name != "params"}
    yield statistic_row(**scope, answer=within(found.judged, low, high), params={**told_of, "labels": "judged"})
    corrected = within(found.corrected, low, high)
    yield statistic_row(**scope, answer=corrected, params={**told_of, **people, "labels": "corrected"})


def check_range(answers: pl.DataFrame, low: float, high: float) -> None:
    """Refuse what judge or people say that does not lie in the range of the metric."""
    for column, who in (("value", "what the judge says is"), ("people", "people's ratings are")):
        values = answers[column].drop_nulls().to_numpy()
        if values.min() < low - ROUNDING or values.max() > high + ROUNDING:
            raise UsageError(
                f"{who} not on the scale of the metric", expected=f"from {low:g} to {high:g}",
                found=f"from {values.min():g} to {values.max():g}",
                hint="Say which ratings people could give: lowest and highest.",
            )  # fmt: skip


def within(answer: Interval, low: float, high: float) -> Interval:
    """Keep value and limits inside the range of the metric."""
    value, below, above = (min(max(number, low), high) for number in (answer.value, answer.low, answer.high))
    return replace(answer, value=value, low=below, high=above)
