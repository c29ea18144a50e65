"""Annotations by scheme, criterion and pool: who answered what, never merged over pools."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.digests import canonical_json
from culturekit.core.errors import NothingScored, check_choice
from culturekit.core.schemas import ANNOTATIONS, JUDGMENTS, MATCHES, PROMPTS, QUALITY, VALUES
from culturekit.metrics.statistics.pools import JudgeCalibration, calibrate_judge
from culturekit.scores.image_collections import checked, own_generator
from culturekit.scores.score_rows import Row, statistic_row, with_reason

ANSWERS_READ = "annotations: item_id, annotator, annotator_region, in_region, scheme, criterion, value, choice, flags"
"""What is said of `inputs` by metrics of answers."""

NEVER_MERGED = (
    "It belongs to one pool of annotators (params.pool). Pools are never merged: people of two regions see different "
    "things in one picture, and their mean is the view of neither.",
)
"""A pitfall of every score of a pool."""

# People's answers that count: those of who read along. Every score of answers begins here.

ATTENTION = "attention-failed"
INCONSISTENT = "inconsistent-repeats"
TOO_FAST = "too-fast"
FLAGS = (ATTENTION, INCONSISTENT, TOO_FAST)
"""The first two are an annotator's, in all that they answered; the last is an item's."""

CARELESS = "answers of people who did not read along"


def careful_answers(annotations: pl.DataFrame, left_out: Counter[str] | None = None) -> pl.DataFrame:
    """Keep the answers without a flag; the others are counted. `annotate aggregate --keep` takes flags away.

    Raises:
        UsageError: the table does not conform to ANNOTATIONS, or all its answers have flags.
    """
    table = checked(annotations, ANNOTATIONS)
    kept = table.filter(~pl.col("flags").list.eval(pl.element().is_in(FLAGS)).list.any())
    if kept.is_empty() and table.height:
        raise NothingScored(
            "no answer counts", expected="people who read along", found=f"{table.height:,} {CARELESS}",
            hint="annotation_checks.parquet says who missed what; `annotate aggregate --keep FLAG` lets answers count.",
        ).counting({CARELESS: table.height})  # fmt: skip
    if left_out is not None:
        left_out[CARELESS] += table.height - kept.height
    return kept


def of_criterion(answers: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Keep the answers to one question; where nobody has answered anything, there is none.

    Raises:
        UsageError: people answered others only.
    """
    asked = answers.filter(criterion=criterion)
    if asked.is_empty() and answers.height:
        found = ", ".join(answers["criterion"].unique().sort())
        raise NothingScored(f"no annotation is of the criterion {criterion!r}", found=found)
    return asked


PoolsBy: TypeAlias = Literal["region", "in-region", "recruitment"]
InRegion: TypeAlias = Annotated[int, Field(ge=0, le=50, description="Annotators of an item's own region.")]
OutOfRegion: TypeAlias = Annotated[int, Field(ge=0, le=50, description="Annotators of other regions.")]
"""How many people of either kind judge an item."""

POOLS_BY: tuple[PoolsBy, ...] = ("region", "in-region", "recruitment")

RECRUITMENT = "recruitment:"
"""How the flag begins that says where an annotator was found, such as `recruitment:prolific`."""

UNKNOWN = "unknown"

IN_WORDS = "answers in words to a question that others answered with numbers"


@dataclass(frozen=True, slots=True)
class PoolRatings:
    """The answers of one pool to one criterion.

    Attributes:
        scheme: of the form that was filled in.
        criterion: the question.
        pool: the name of the pool.
        answers: item, annotator, value, choice: sorted; either all have a value, or all have a choice only.
    """

    scheme: str
    criterion: str
    pool: str
    answers: pl.DataFrame

    @property
    def numeric(self) -> bool:
        """Tell whether answers are numbers, or choices among words."""
        return self.answers["value"].null_count() == 0

    def item_means(self, choice: str | None = None) -> dict[str, float]:
        """Average the answers to each item; of a choice, give the share that chose it."""
        score = pl.col("value") if choice is None else (pl.col("choice") == choice).cast(pl.Float64)
        means = self.answers.group_by("item_id").agg(score.sort().mean().alias("mean")).sort("item_id")
        return dict(means.iter_rows())

    def table(self) -> NDArray[np.float64]:
        """Give the answers item by item, (most answers, n_items), NaN where an item has fewer; choices as codes."""
        codes = pl.col("value") if self.numeric else pl.col("choice").rank("dense").cast(pl.Float64)
        items = self.answers.select("item_id", code=codes).sort("item_id", "code").group_by(
            "item_id", maintain_order=True
        ).agg("code")  # fmt: skip
        lists = items["code"].to_list()
        table = np.full((max(map(len, lists)), len(lists)), np.nan)
        for number, answers in enumerate(lists):
            table[: len(answers), number] = answers
        return table

    def of_annotators(self) -> NDArray[np.float64] | None:
        """Give the answers of two annotators to the items both answered, (2, n); None where there are not two."""
        names = sorted(self.answers["annotator"].unique())
        if len(names) != 2:
            return None
        codes = pl.col("value") if self.numeric else pl.col("choice").rank("dense").cast(pl.Float64)
        coded = self.answers.select("item_id", "annotator", code=codes)
        first, second = (coded.filter(pl.col("annotator") == name) for name in names)
        both = first.join(second, on="item_id", suffix="_b").sort("item_id")
        return both.select("code", "code_b").to_numpy().T if both.height else None


def pooled_ratings(
    annotations: pl.DataFrame, *, by: PoolsBy, left_out: Counter[str] | None = None
) -> tuple[list[PoolRatings], int]:
    """Part annotations by scheme, criterion and pool; count the answers that are neither a value nor a choice.

    Raises:
        UsageError: the table does not conform, or `by` is not one of its choices.
    """
    check_choice("by", by, POOLS_BY)
    known = pl.when(pl.col("value").is_finite()).then("value")
    table = careful_answers(annotations, left_out).with_columns(pool=pool_of(by), value=known)
    answered = table.filter(pl.col("value").is_not_null() | pl.col("choice").is_not_null())
    ordered = answered.sort("scheme", "criterion", "pool", "item_id", "annotator")
    return list(parts(ordered, Counter() if left_out is None else left_out)), table.height - answered.height


def parts(answered: pl.DataFrame, left_out: Counter[str]) -> Iterator[PoolRatings]:
    """Part answers; where a criterion has numbers, an answer in words only is not one of them."""
    for criterion in answered.partition_by("scheme", "criterion", maintain_order=True):
        numbers = criterion.drop_nulls("value")
        answers = numbers if numbers.height else criterion
        left_out[IN_WORDS] += criterion.height - answers.height
        for pool in answers.partition_by("pool", maintain_order=True):
            row = pool.row(0, named=True)
            yield PoolRatings(
                row["scheme"], row["criterion"], row["pool"], pool.select("item_id", "annotator", "value", "choice")
            )


def pool_of(by: PoolsBy) -> pl.Expr:
    """Say which pool an annotator belongs to."""
    if by == "region":
        return pl.col("annotator_region")
    if by == "in-region":
        inside = pl.when(pl.col("in_region")).then(pl.lit("in-region")).otherwise(pl.lit("out-of-region"))
        return pl.when(pl.col("in_region").is_null()).then(pl.lit(UNKNOWN)).otherwise(inside)
    flag = pl.col("flags").list.eval(pl.element().filter(pl.element().str.starts_with(RECRUITMENT))).list.first()
    return flag.str.strip_prefix(RECRUITMENT).fill_null(UNKNOWN)


# What machines say of single images, as values: quality, how near an image is to what it is mapped to, and to what.

FEW = "a single prompt, or fewer than ten for the agreement, or no scatter"


def judge_rows(
    judgments: pl.DataFrame, pools: Sequence[PoolRatings], *, seed: int, resamples: int, confidence: float, by: str
) -> tuple[list[Row], int]:
    """Hold each judge against each pool; count the numbers it gave of items that no person of any pool judged.

    A verdict belongs to a criterion where the task is the scheme and the item of the judgment the criterion.
    Several verdicts of a judge on one image are averaged. Verdicts of which none can be held are refused.
    """
    table = checked(judgments, JUDGMENTS)
    verdicts = (
        table.filter(pl.col("value").is_finite().fill_null(value=False))
        .group_by("judge", "task", "item", "image_id")
        .agg(pl.col("value").sort().mean(), pl.col("prompt_id").min())
        .sort("judge", "task", "item", "image_id")
    )
    rows: list[Row] = []
    matched = set()
    for judge in verdicts.partition_by("judge", "task", "item", maintain_order=True):
        name, task, item = judge.row(0)[:3]
        for pool in pools:
            if (pool.scheme, pool.criterion) != (task, item) or not pool.numeric:
                continue
            means = pool.item_means()
            both = judge.filter(pl.col("image_id").is_in(list(means)))
            matched |= {(name, task, item, image) for image in both["image_id"]}
            if both.height:
                record = calibrate_judge(
                    both["value"].to_numpy(),
                    [means[image] for image in both["image_id"]],
                    pool=pool.pool,
                    clusters=both.select(pl.coalesce("prompt_id", "image_id")).to_series().to_numpy().astype(str),
                    confidence=confidence,
                    resamples=resamples,
                    rng=own_generator(seed, name, task, item, pool.pool),
                )
                rows += list(record_rows(name, pool, record, by))
    if not rows:
        asked = list(dict.fromkeys(f"{pool.scheme}: {pool.criterion}" for pool in pools if pool.numeric))
        told = table.select(pl.format("{}: {}", "task", "item")).to_series().unique().sort().to_list()
        raise NothingScored(
            "no verdict of a judge is about what people answered",
            expected=f"numbers of their items, of a task and item such as {', '.join(asked[:3]) or 'none'}",
            found=", ".join(told[:3]) or "no verdicts",
        )
    return rows, verdicts.height - len(matched)


def record_rows(judge: str, pool: PoolRatings, record: JudgeCalibration, by: str) -> Iterator[Row]:
    """Write a calibration record as two rows; the judge stands in the column model."""
    params: dict[str, object] = {
        "scheme": pool.scheme,
        "criterion": pool.criterion,
        "pool": pool.pool,
        "pools_by": by,
        "level": record.level,
    }
    for metric, answer in (("judge_bias", record.interval), ("judge_agreement", record.agreement)):
        yield statistic_row(
            metric,
            model=judge,
            benchmark=pool.scheme,
            answer=answer,
            params=with_reason(params, answer, FEW),
            group=pool.pool,
        )


MAPPED_AS_ASKED = "mapped_as_asked"
"""1 where an image is mapped to the country that its prompt names, 0 where to another; not known where it abstained."""

OF_MATCHES = {"similarity": "score", "margin": "margin", "country_margin": "country_margin"}
"""Values that a match has, by their names here."""

ABOUT = ("item", "model", "prompt_id", "concept", "country")


def automatic_values(
    quality: Sequence[pl.DataFrame],
    matches: Sequence[pl.DataFrame],
    prompts: pl.DataFrame | None,
    *,
    items: Sequence[str],
) -> pl.DataFrame:
    """Put what machines say of some images into one table.

    Args:
        quality: each conforms to QUALITY; images that have no match have no model, and are left out.
        matches: each conforms to MATCHES, such as those of each model; the nearest counts.
        prompts: conforms to PROMPTS: the country that was asked for; without it nothing was.
        items: the images.

    Returns:
        Conforms to VALUES.
    """
    nearest = pl.concat([checked(table, MATCHES).select(list(MATCHES.schema)) for table in matches])
    nearest = nearest.filter(pl.col("rank") == 1, pl.col("image_id").is_in(list(items)))
    about = asked_for(nearest, prompts)
    scored = pl.concat(
        [checked(table, QUALITY).select("image_id", "scorer", "value") for table in quality] or [none_scored()]
    )
    rated = about.select(ABOUT).join(scored, left_on="item", right_on="image_id")
    params = {scorer: canonical_json({"scorer": scorer}).decode() for scorer in rated["scorer"].unique()}
    parts = [
        rated.select(*ABOUT, "value", metric=pl.lit("quality"),
                     params=pl.col("scorer").replace_strict(params, return_dtype=pl.String)
                     if params else pl.lit("{}")),
        *(about.select(*ABOUT, value=pl.col(column).cast(pl.Float64), metric=pl.lit(metric), params=pl.lit("{}"))
          for metric, column in OF_MATCHES.items()),
        about.filter(pl.col("country").is_not_null()).select(
            *ABOUT, value=as_asked(), metric=pl.lit(MAPPED_AS_ASKED), params=pl.lit("{}")
        ),
    ]  # fmt: skip
    whole = pl.concat([part.select(*ABOUT, "value", "metric", "params") for part in parts])
    filled = whole.with_columns(benchmark=pl.lit("cube"), group=pl.lit(None, pl.String), repeat=pl.lit(None, pl.UInt16))
    return filled.select(list(VALUES.schema)).sort(VALUES.key)


def asked_for(nearest: pl.DataFrame, prompts: pl.DataFrame | None) -> pl.DataFrame:
    """Say of each match which country its prompt names; what it was mapped to is `mapped_country`."""
    plain = nearest.rename({"image_id": "item", "country": "mapped_country"})
    if prompts is None:
        return plain.with_columns(country=pl.lit(None, pl.String))
    asked = checked(prompts, PROMPTS).select("prompt_id", "country")
    return plain.join(asked, on="prompt_id", how="left", maintain_order="left")


def as_asked() -> pl.Expr:
    """Tell whether the mapped country is the one asked for; an artifact of several countries counts for each."""
    same = (pl.col("mapped_country") == pl.col("country")) | pl.col("countries").list.contains(pl.col("country"))
    return pl.when(pl.col("abstained")).then(None).otherwise(same.cast(pl.Float64))


def none_scored() -> pl.DataFrame:
    """Give the scores of no image."""
    return pl.DataFrame(schema={"image_id": pl.String, "scorer": pl.String, "value": pl.Float64})
