"""People's answers: which a form offered, which count, and those of each pool; pools are never merged."""

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.digests import canonical_json, read_manifest
from culturekit.core.errors import CultureKitError, NothingScored, UsageError, argument_error, check_choice, counted
from culturekit.core.package_data import shipped, shipped_names
from culturekit.core.schemas import ANNOTATIONS, JUDGMENTS, MATCHES, PROMPTS, QUALITY, RATERS, VALUES
from culturekit.core.stage import Work
from culturekit.core.tables import checked, read_table
from culturekit.core.yaml_source import read_yaml
from culturekit.metrics.realism.clip_scores import YesBucket
from culturekit.metrics.statistics.chance_corrected import copied_raters
from culturekit.metrics.statistics.pools import JudgeCalibration, calibrate_judge
from culturekit.scores.catalog import CATALOG
from culturekit.scores.family import Row, own_generator, statistic_row, with_reason

# What a form offered: what people answered, and what is said of it, is held against that.

# The lowest and the highest rating that people could give; none where that is not known
Ends: TypeAlias = tuple[float | None, float | None]

NO_ENDS: Ends = (None, None)

Offered: TypeAlias = Mapping[str, Sequence[str]]  # The answers to each question, in order

logger = logging.getLogger(__name__)

SHIPPED = "people/schemes"


def read_answers(annotations: Path, *, stated: Ends = NO_ENDS, distinct: bool = False) -> pl.DataFrame:
    """Read what people answered; a rating off the scale of its form is refused, and copied answers have a flag.

    The form stands beside answers that were imported, or is one of ours, by the name of its scheme. Where neither it
    nor anybody else states the scale, it is said which ratings are taken as they are.
    """
    table, beside, known = read_table(annotations, ANNOTATIONS), offered_beside(annotations), dict[str, Offered]()
    for scheme, criterion in table.select("scheme", "criterion").unique().sort("scheme", "criterion").iter_rows():
        form = beside or known.setdefault(scheme, offered_by(scheme))
        rated = table.filter(scheme=scheme, criterion=criterion)
        where, ends = f"{annotations}, {criterion} of {scheme}", scale_of(form.get(criterion, ()))
        check_on_scale(rated, ends, where=where)
        given = rated["value"].filter(rated["value"].is_finite()).unique().to_list()
        if NO_ENDS == ends == stated and not set(given) <= {0.0, 1.0}:
            _warn_once(where, min(given), max(given))
    return copies_flagged(table, distinct=distinct)


@cache
def _warn_once(where: str, low: float, high: float) -> None:
    logger.warning("%s: no form tells the scale; ratings from %g to %g count as they are", where, low, high)


def check_on_scale(answers: pl.DataFrame, ends: Ends, *, where: str = "") -> None:
    """Refuse a rating below the lowest or above the highest that people could give, where these are known."""
    lowest, highest = ends
    if lowest is None or highest is None:
        return
    off = answers.filter(pl.col("value").is_finite(), ~pl.col("value").is_between(lowest, highest))
    if off.height:
        row = off.sort(ANNOTATIONS.key).row(0, named=True)
        raise UsageError(
            f"{off.height:,} ratings lie off their scale", where=where, expected=f"from {lowest:g} to {highest:g}",
            found=f"{row['value']:g} for {row['criterion']}, by {row['annotator']!r} of {row['item_id']!r}",
            hint="Mend these, or take them out.",
        )  # fmt: skip


def check_ends(ends: Ends) -> None:
    """Refuse a scale with one end, and one that is upside down."""
    lowest, highest = ends
    if (lowest is None) != (highest is None):
        raise argument_error("lowest and highest", "both, or none", ends)
    if lowest is not None and highest is not None and not lowest < highest:
        raise argument_error("lowest", "below highest", ends)


def check_offered(annotations: Path, criterion: str, choice: str | None, ends: Ends) -> None:
    """Refuse another scale than that of the form, and a choice that it did not offer: these would shift means.

    What the form offered stands, in order, beside the answers that were imported; of others it is not known.
    """
    offered = offered_beside(annotations).get(criterion, ())
    if not offered:
        return
    if choice is not None and choice not in offered:
        raise UsageError(
            "the form did not offer the choice that is to count 1", expected=" or ".join(offered), found=repr(choice)
        )
    lowest, highest = ends
    if lowest is not None and [f"{lowest:g}", f"{highest:g}"] != [offered[0], offered[-1]]:
        raise UsageError(
            "the scale that is stated is not the form's",
            expected=f"the ends of {', '.join(offered)}",
            found=f"from {lowest:g} to {highest:g}",
        )


def common_range(metric: str) -> tuple[float, float]:
    """Give the range of a metric that people can be asked about."""
    if metric not in CATALOG:
        raise UsageError("a metric of another package has no range that is known here", found=metric)
    low, high = CATALOG[metric].low, CATALOG[metric].high
    if math.isinf(low) and math.isinf(high):
        raise UsageError("a metric on the scale of its scorer has none in common with people", found=metric)
    return low, high


def offered_beside(annotations: Path) -> Offered:
    """Give the answers to each question of the form that stands beside answers; nothing where none does."""
    manifest = read_manifest(annotations.parent)
    answers = {} if manifest is None else manifest.notes.get("answers", {})
    return answers if isinstance(answers, Mapping) else {}


def offered_by(scheme: str) -> Offered:
    """Give the ends of each scale of a form of ours; nothing of other forms."""
    if scheme not in shipped_names(SHIPPED, ".yaml"):
        return {}
    form: Any = read_yaml(shipped(f"{SHIPPED}/{scheme}.yaml")).value
    return {one["name"]: (one["low"], one["high"]) if one["type"] == "scale" else
            [option.get("number", "") for option in one.get("options", ())] for one in form["criteria"]}  # fmt: skip


def scale_of(offered: Sequence[str]) -> Ends:
    """Read the ends of a scale, beside which words may be offered, such as `none`; words alone have none."""
    numbers = [float(one) for one in offered if re.fullmatch(r"-?\d+(\.\d+)?", str(one))]
    return (min(numbers), max(numbers)) if numbers else NO_ENDS


# Why numbers could not be had: counted by reason, with the first case of each told whole.


class Refusals:
    """Gathers what was refused, case by case."""

    def __init__(self) -> None:
        """Begin with nothing refused."""
        self.counts: Counter[str] = Counter()
        self.cases: dict[str, str] = {}
        self.hint = ""

    def note(self, error: CultureKitError, *whose: str | None) -> None:
        """Count a refusal; `whose` numbers it concerns is said of the first of its kind."""
        self.counts[error.problem] += 1
        details = [
            f"expected {error.expected}" if error.expected else "",
            f"found {error.found}" if error.found else "",
        ]
        case = ": ".join(
            filter(None, (", ".join(filter(None, (*whose, error.where))), ", ".join(filter(None, details))))
        )
        self.cases.setdefault(error.problem, f"{error.problem} ({case})" if case else error.problem)
        self.hint = self.hint or error.hint

    def left_out(self, prefix: str) -> dict[str, int]:
        """Count by reason, as manifests do."""
        return {f"{prefix}{self.cases[why]}": self.counts[why] for why in sorted(self.counts)}

    def refusal(self, problem: str, counted: Callable[[int], str], *, expected: str = "") -> NothingScored:
        """Say that nothing could be had, with every reason."""
        found = "; ".join(f"{self.cases[why]}: {counted(self.counts[why])}" for why in self.counts)
        return NothingScored(problem, expected=expected, found=found or "nothing", hint=self.hint)


# Answers of people that say yes or no, and how often they say yes, as rows.

YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


def yes_or_no() -> pl.Expr:
    """Read an answer from the value (1 or 0) or the choice (yes or no); null for anything else."""
    choice = pl.col("choice").str.strip_chars().str.to_lowercase()
    return (
        pl.when(pl.col("value").is_in([0.0, 1.0]))
        .then(pl.col("value") == 1)
        .when(choice.is_in(YES))
        .then(statement=True)
        .when(choice.is_in(NO))
        .then(statement=False)
        .otherwise(None)
    )


def bucket_row(bucket: YesBucket) -> Row:
    """Write a bucket; a limit that is not known is null."""
    return {
        "low": bucket.low,
        "score": bucket.score,
        "rate": bucket.rate,
        "ci_low": None if np.isnan(bucket.ci_low) else bucket.ci_low,
        "ci_high": None if np.isnan(bucket.ci_high) else bucket.ci_high,
        "images": bucket.images,
        "answers": bucket.answers,
    }


# What is said of `inputs` by metrics of answers
ANSWERS_READ = "annotations: item_id, annotator, annotator_region, in_region, scheme, criterion, value, choice, flags"

# A pitfall of every score of a pool
NEVER_MERGED = (
    "It belongs to one pool of annotators (params.pool). Pools are never merged: people of two regions see different "
    "things in one picture, and their mean is the view of neither.",
)

TRUTH = "truth"  # the pool, and the labels of scores, of what simulated pictures truly show


def whose(pool: str) -> dict[str, object]:
    """Say in params whose answers a score is of: a pool's, or the truth."""
    return {"labels": TRUTH} if pool == TRUTH else {"pool": pool}


# People's answers that count: those of who read along. Every score of answers begins here.

ATTENTION = "attention-failed"
INCONSISTENT = "inconsistent-repeats"
TOO_FAST = "too-fast"
TRIAL_FAILED = "trial-failed"
COPIED = "copied"
# All but `too-fast`, which is an item's, are an annotator's, in all that they answered
FLAGS = (ATTENTION, INCONSISTENT, TOO_FAST, TRIAL_FAILED, COPIED)

# Flags that do no harm: whose answers a copy has, and that somebody says that people who answer alike are several
SAME_AS, SEVERAL = "same-as:", "distinct"


def copies_flagged(answers: pl.DataFrame, *, distinct: bool = False) -> pl.DataFrame:
    """Flag the answers of people who are copies of others, unless somebody says that they are several."""
    if distinct:
        more = pl.when(pl.lit(value=True)).then(pl.lit([SEVERAL], pl.List(pl.String)))
        return answers.with_columns(flags=pl.col("flags").list.set_union(more))
    asked = answers.filter(~pl.col("flags").list.contains(SEVERAL), ~pl.col("flags").list.contains(COPIED))
    kind = pl.concat_str("scheme", "criterion", separator="\0")
    copies = copied_raters(
        asked.select("annotator", "seconds", criterion=kind, question=pl.concat_str("item_id", kind, separator="\0"),
                     said=pl.coalesce(pl.col("value").cast(pl.String), "choice"))
    )  # fmt: skip
    if not copies:
        return answers
    of = pl.col("annotator").replace_strict(copies, default=None, return_dtype=pl.String)
    flags = pl.col("flags").list.concat(pl.concat_list(pl.lit(COPIED), SAME_AS + of))
    return answers.with_columns(flags=pl.when(of.is_not_null()).then(flags).otherwise("flags"))


def without_copies(
    table: pl.DataFrame, person: str, item: Sequence[str], columns: Sequence[str], left_out: Counter[str]
) -> pl.DataFrame:
    """Leave out the answers of copies from a table with a row for each person and item, and count them."""
    texts = [
        (pl.col(name).list.sort().list.join("|") if table.schema[name] == pl.List else pl.col(name).cast(pl.String))
        for name in columns
    ]
    question = pl.concat_str(item, separator="\0", ignore_nulls=True).alias("question")
    asked = table.select(pl.col(person).alias("annotator"), question, *texts)
    rows = asked.unpivot(columns, index=["annotator", "question"], variable_name="criterion", value_name="said")
    rows = rows.with_columns(question=pl.concat_str("question", "criterion", separator="\0"))
    copies = copied_raters(rows.with_columns(seconds=pl.lit(None, pl.Float64)))
    for copy, whose in copies.items():
        left_out[f"answers of {copy}, who answers as {whose} does: one person unless --distinct"] += table.filter(
            pl.col(person) == copy
        ).height
    return table.filter(~pl.col(person).is_in(list(copies)))


CARELESS = "answers of people who did not read along"


def careful_answers(annotations: pl.DataFrame, left_out: Counter[str] | None = None) -> pl.DataFrame:
    """Keep the answers without a flag; the others are counted. `annotate aggregate --keep` takes flags away."""
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
    """Keep the answers to one question; where nobody has answered anything, there is none."""
    asked = answers.filter(criterion=criterion)
    if asked.is_empty() and answers.height:
        found = ", ".join(answers["criterion"].unique().sort())
        raise NothingScored(f"no annotation is of the criterion {criterion!r}", found=found)
    return asked


PoolsBy: TypeAlias = Literal["region", "in-region", "recruitment"]
InRegion: TypeAlias = Annotated[int, Field(ge=0, le=50, description="Annotators of an item's own region.")]
# How many people of either kind judge an item
OutOfRegion: TypeAlias = Annotated[int, Field(ge=0, le=50, description="Annotators of other regions.")]

POOLS_BY: tuple[PoolsBy, ...] = ("region", "in-region", "recruitment")

# How the flag begins that says where an annotator was found, such as `recruitment:prolific`
RECRUITMENT = "recruitment:"

UNKNOWN = "unknown"

IN_WORDS = "answers in words to a question that others answered with numbers"


@dataclass(frozen=True, slots=True)
class PoolRatings:
    """The answers of one pool to one criterion."""

    scheme: str  # of the form that was filled in
    criterion: str  # the question
    pool: str  # the name of the pool
    answers: pl.DataFrame  # item, annotator, value, choice: sorted; either all have a value, or all have a choice only

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
    """Part annotations by scheme, criterion and pool; count the answers that are neither a value nor a choice."""
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
        items = table.select(pl.format("{}: {}", "task", "item")).to_series().unique().sort().to_list()
        raise NothingScored(
            "no verdict of a judge is about what people answered",
            expected=f"numbers of their items, of a task and item such as {', '.join(asked[:3]) or 'none'}",
            found=", ".join(items[:3]) or "no verdicts",
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


# 1 where an image is mapped to the country that its prompt names, 0 where to another; not known where it abstained
MAPPED_AS_ASKED = "mapped_as_asked"

# Values that a match has, by their names here
OF_MATCHES = {"similarity": "score", "margin": "margin", "country_margin": "country_margin"}

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
    none = pl.DataFrame(schema={"image_id": pl.String, "scorer": pl.String, "value": pl.Float64})
    scored = pl.concat([none, *(checked(table, QUALITY).select(none.columns) for table in quality)])
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


def answers_in(work: Work, annotations: Path, criterion: str) -> pl.DataFrame:
    """Read people's answers; where none to a question counts, a run has none, and scores what else it can."""
    answers = read_answers(annotations)
    try:
        of_criterion(careful_answers(answers), criterion)
    except NothingScored:
        if not work.in_run:
            raise
        return answers.clear()
    return answers


STATUS = ("person", "region", "items", "answers", "count", "checks", "repeats", "gold", "agree", "minutes", "why not")
NAMED = 5  # people who are named one by one on a first screen

Rows = Sequence[Mapping[str, Any]]


def raters_of(
    answers: pl.DataFrame, checks: pl.DataFrame, quarantine: pl.DataFrame, *, keep: Sequence[str] = (),
) -> pl.DataFrame:  # fmt: skip
    """Write a row for everybody who answered anything.

    Returns:
        Conforms to RATERS.
    """
    answer = pl.coalesce(pl.col("value").cast(pl.String), "choice")
    question = ("item_id", "scheme", "criterion")
    shared = answers.with_columns(said=answer).with_columns(
        asked=pl.when(answer.is_not_null()).then(pl.len().over(*question) - 1),
        alike=pl.when(answer.is_not_null()).then(pl.len().over(*question, "said") - 1),
    )
    tables = {"answers": shared, "checks": checks, "aside": quarantine.drop_nulls("annotator")}
    by_person = {name: table.partition_by("annotator", as_dict=True) for name, table in tables.items()}
    names = sorted({str(name) for parts in by_person.values() for (name,) in parts})
    harmful = {flag for flag in FLAGS if flag not in keep}
    rows = [_row(name, {kind: parts.get((name,)) for kind, parts in by_person.items()}, harmful) for name in names]
    return pl.DataFrame(rows, schema=RATERS.schema).sort(RATERS.key)


def _row(name: str, tables: Mapping[str, pl.DataFrame | None], harmful: set[str]) -> dict[str, Any]:
    given, looked = tables["answers"], tables["checks"]
    answers = [] if given is None else given.to_dicts()
    flags = sorted({flag for row in answers for flag in row["flags"] if flag in FLAGS})
    held = [] if looked is None else looked.to_dicts()
    asked_of = {kind: _held([row for row in held if row["kind"] == kind]) for kind in ("check", "repeat", "gold")}
    asked = sum(row["asked"] or 0 for row in answers)
    timed = {row["item_id"]: row["seconds"] for row in answers if row["seconds"] is not None}
    aside = Counter() if tables["aside"] is None else Counter(
        reason for *_, reason in tables["aside"].select("file", "task_number", "annotation_number", "reason").unique(
            ["file", "task_number", "annotation_number"], keep="first", maintain_order=True).iter_rows()
    )  # fmt: skip
    same_as = next(
        (flag.removeprefix(SAME_AS) for row in answers for flag in row["flags"] if flag.startswith(SAME_AS)), None
    )
    row = {
        "annotator": name,
        "annotator_region": next((each["annotator_region"] for each in answers or ()), None),
        "items": len({each["item_id"] for each in answers}),
        "answers": len(answers),
        "counted": sum(harmful.isdisjoint(each["flags"]) for each in answers),
        "quarantined": aside.total(),
        "checks": asked_of["check"][0], "checks_failed": asked_of["check"][1],
        "repeats": asked_of["repeat"][0], "repeats_unlike": asked_of["repeat"][1],
        "gold": asked_of["gold"][0], "gold_right": asked_of["gold"][0] - asked_of["gold"][1],
        "agreement": sum(each["alike"] or 0 for each in answers) / asked if asked else None,
        "minutes": sum(timed.values()) / 60 if timed else None,
        "same_as": same_as,
    }  # fmt: skip
    return {**row, "why": None if row["counted"] else _why(row, [flag for flag in flags if flag in harmful], aside)}


def _held(rows: Rows) -> tuple[int, int]:
    """Count the tasks of a kind, and those of which an answer did not hold."""
    return len({row["task"] for row in rows}), len({row["task"] for row in rows if row["held"] is False})


def _why(row: Mapping[str, Any], flags: Sequence[str], aside: Counter[str]) -> str:
    """Say why nothing of somebody's answers counts."""
    reasons = {
        ATTENTION: f"failed {row['checks_failed']} of {counted(row['checks'], 'attention checks')}",
        INCONSISTENT: f"answered {row['repeats_unlike']} of {counted(row['repeats'], 'repeated items')} otherwise",
        TOO_FAST: "answered faster than anybody can look",
        TRIAL_FAILED: "failed the trial",
        COPIED: f"gave the same answers as {row['same_as'] or 'somebody else'}",
    }
    reasons_given = [reasons[flag] for flag in flags]
    if aside:
        most, _ = aside.most_common(1)[0]
        reasons_given.append(f"{counted(row['quarantined'], 'answers')} in quarantine ({most})")
    return "; ".join(reasons_given) or "answered checks and repeats only"


def who_counted(raters: pl.DataFrame) -> str:
    """Say who counts and who does not, and what now rests on one person; nothing where all count, and are several."""
    rows = raters.to_dicts()
    kept, dropped = [row for row in rows if row["counted"]], [row for row in rows if not row["counted"]]
    lost = {row["annotator_region"] for row in dropped}
    alone = sorted(
        home for home in {row["annotator_region"] for row in kept} & lost
        if sum(row["annotator_region"] == home for row in kept) == 1
    )  # fmt: skip
    if not rows or not (dropped or len(kept) == 1):
        return ""
    names = f": {', '.join(row['annotator'] for row in kept)}" if 0 < len(kept) <= NAMED else ""
    left_out = [f"{row['annotator']} ({row['why']})" for row in dropped[:NAMED]]
    left_out += [f"and {len(dropped) - NAMED} more, whom raters.parquet names"] * (len(dropped) > NAMED)
    people = "person" if len(rows) == 1 else "people"
    sentences = [f"{len(rows)} {people} answered, and {len(kept)} of them count{'s' * (len(kept) == 1)}{names}."]
    sentences += [f"Left out: {', '.join(left_out)}."] if dropped else []
    if len(kept) == 1:
        sentences.append("Every score of people's answers rests on one person.")
    elif alone:
        sentences.append(f"What people of {', '.join(alone)} say rests on one person each.")
    return " ".join(sentences)


def status_line(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Write how one person did, in the columns of `STATUS`."""

    def of(good: int, all_of_them: int) -> str:
        return f"{good}/{all_of_them}" if all_of_them else "-"

    agree, minutes = row["agreement"], row["minutes"]
    return (
        row["annotator"], row["annotator_region"] or "-", str(row["items"]), str(row["answers"]), str(row["counted"]),
        of(row["checks"] - row["checks_failed"], row["checks"]),
        of(row["repeats"] - row["repeats_unlike"], row["repeats"]), of(row["gold_right"], row["gold"]),
        "-" if agree is None else f"{agree:.0%}", "-" if minutes is None else f"{minutes:.0f}", row["why"] or "",
    )  # fmt: skip
