"""How often people who live in a region, and people who do not, see that region in its images."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import polars as pl

from culturekit.core.digests import digest
from culturekit.core.errors import UsageError, argument_error
from culturekit.core.schemas import SURVEY_CODES
from culturekit.metrics.statistics.chance_corrected import fleiss_kappa

# Regions, as many as a study has, under the codes that answers have for them.

# Letters of a region's name -> its code in the study's own files; another region's code is its letters
REGION_CODES: Mapping[str, str] = MappingProxyType(
    {"africa": "af", "af": "af", "europe": "eu", "eu": "eu", "southeastasia": "sea", "sea": "sea"}
)

NO_REGION = ("", "na", "none", "nan", "null")  # How files say that an image was made without a region in its prompt

NOWHERE = "na"  # What is ticked for none of the regions, or where that cannot be determined


def region_code(name: str) -> str | None:
    """Give the code of a region, however its words are written and put together; None where no region is named.

    It is made of the letters and digits of ASCII that the name has without its accents, or else of its hash.
    """
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", name.casefold()) if letter.isalnum())
    letters = plain if plain.isascii() else f"r{digest(plain)[:8]}"
    return None if letters in NO_REGION else REGION_CODES.get(letters, letters)


def with_region_codes(task: pl.DataFrame) -> pl.DataFrame:
    """Add `own` and `home`, the codes of an image's region and of where its annotator is; an image may have none."""
    for column in (name for name in ("object_regions", "background_regions") if name in task.columns):
        ticked = sorted(set(task[column].explode().drop_nulls()))
        strange = [code for code in ticked if code != NOWHERE and region_code(code) != code]
        if strange:
            raise argument_error(column, f"lists of codes such as af, eu, sea, {NOWHERE}", strange[0])
    codes = {}
    for name in sorted({*task["region"].drop_nulls().unique(), *task["annotator_loc"].unique()}):
        code = region_code(name)
        if code is None:
            raise argument_error("region and annotator_loc", "the name of a region", repr(name))
        codes[name] = code
    region, home = (pl.col(name).replace_strict(codes, return_dtype=pl.String) for name in ("region", "annotator_loc"))
    return task.with_columns(own=region, home=home)


# What an image's region can be read from, and the column with the regions that were ticked for it
TARGETS = {"object": "object_regions", "background": "background_regions"}

SIDES = ("in", "out")


def in_region_rates(task2: pl.DataFrame, *, by: Sequence[str] = ("region",)) -> pl.DataFrame:
    """Give the share of all annotations that name the image's own region, by side of the annotator.

    The denominator is every annotation of that side: those that tick no region count, and so do those that do not see
    the object at all. Images whose prompt named no region have no own region and are left out.

    Args:
        task2: conforms to TASK2, as `read_task2` gives it.
        by: columns that part the annotations, such as `region`, `object` or `source`; may be none.

    Returns:
        The columns of `by`, then `side` (`in`: the annotator is in the image's region, or `out`), `target` (`object`
        or `background`), `rate` and `n`, the annotations; sorted by these. Cells without annotations have no row.

    Raises:
        UsageError: a column is missing, or a region has no name.
    """
    answers = representation_answers(task2, by=by)
    keys = [*by, "side", "target"]
    rates = answers.group_by(keys).agg(rate=pl.col("names").cast(pl.Float64).mean(), n=pl.len().cast(pl.UInt64))
    return rates.sort(keys).select(*keys, "rate", "n")


def representation_answers(task2: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Write two rows per annotation, for object and background: `side`, and whether it `names` the own region."""
    check_columns("task2", task2, (*by, "img_path", "region", "annotator_id", "annotator_loc", *TARGETS.values()))
    coded = with_region_codes(task2).filter(pl.col("own").is_not_null())
    side = pl.when(pl.col("own") == pl.col("home")).then(pl.lit(SIDES[0])).otherwise(pl.lit(SIDES[1]))
    return pl.concat(
        coded.with_columns(side=side, target=pl.lit(target), names=pl.col(column).list.contains(pl.col("own")))
        for target, column in TARGETS.items()
    )


def consistency_and_representation(
    task2: pl.DataFrame, *, by: Sequence[str] = ("source", "annotator_loc")
) -> pl.DataFrame:
    """Give, side by side, how often the object is seen and how often the image's own region is.

    Returns:
        The columns of `by`, then `consistency` (the share of annotations that see the object), `object` and
        `background` (the shares that name the own region in each), and `n`; sorted. Images without an own region are
        left out of all three, so that the shares speak of the same images.

    Raises:
        UsageError: a column is missing, or a region has no name.
    """
    check_columns("task2", task2, (*by, "shown", "region", "annotator_loc", *TARGETS.values()))
    coded = with_region_codes(task2).filter(pl.col("own").is_not_null())
    shares = {
        "consistency": pl.col("shown"),
        **{target: pl.col(column).list.contains(pl.col("own")) for target, column in TARGETS.items()},
    }
    means = [named.cast(pl.Float64).mean().alias(name) for name, named in shares.items()]
    cells = coded.group_by(by).agg(*means, pl.len().cast(pl.UInt64).alias("n")) if by else coded.select(
        *means, pl.len().cast(pl.UInt64).alias("n")
    )  # fmt: skip
    return cells.sort(by) if by else cells


def check_columns(name: str, frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a frame that lacks a column, or in which the columns to part by are named twice."""
    missing = sorted(set(columns) - set(frame.columns))
    if missing:
        raise argument_error(name, f"a frame with the columns {', '.join(missing)}", ", ".join(frame.columns))


# Themes in what annotators answered to a survey: which ones coders agree on, and who mentions them.

LEAST_KAPPA = 0.6  # Codes on which coders agree less are discarded; the paper's own table keeps those that round to it

CODERS = 3


@dataclass(frozen=True, slots=True)
class Themes:
    """What coders found.

    Attributes:
        kappas: code, kappa (null where every answer is the same), kept; in the order of kappa, highest first.
        votes: response_id, location, topic, code, present: the majority, for the codes kept.
        shares: topic, location, code, share, n (responses): how many mention a theme, for the codes kept.
    """

    kappas: pl.DataFrame
    votes: pl.DataFrame
    shares: pl.DataFrame


def survey_themes(codes: pl.DataFrame, *, least: float = LEAST_KAPPA, coders: int = CODERS) -> Themes:
    """Keep the codes that coders agree on, decide by majority, and give shares by the location of respondents.

    Args:
        codes: conforms to SURVEY_CODES: every coder has read every response for every code.
        least: the Fleiss' kappa that a code must reach. A code that no response has, or all have, has no kappa and is
            not kept: it tells nobody apart.
        coders: how many read each response; an odd number, so that there is a majority.

    Raises:
        UsageError: a column is missing, or a response was not read by so many coders.
    """
    if coders < 2 or coders % 2 == 0:
        raise argument_error("coders", "an odd number of at least 3", coders)
    check_columns("codes", codes, tuple(SURVEY_CODES.columns))
    keys = ["response_id", "location", "topic", "code"]
    counts = (
        codes.group_by(keys).agg(yes=pl.col("present").sum().cast(pl.Int64), read=pl.len().cast(pl.Int64)).sort(keys)
    )
    short = counts.filter(pl.col("read") != coders)
    if short.height:
        row = short.row(0, named=True)
        raise UsageError(
            f"{short.height} responses were not read by {coders} coders for a code",
            where=f"response {row['response_id']!r}, code {row['code']!r}",
            expected=str(coders),
            found=str(row["read"]),
        )
    kappas = kappa_table(counts, least)
    kept = kappas.filter("kept")["code"]
    votes = counts.filter(pl.col("code").is_in(kept.implode())).select(*keys, present=pl.col("yes") * 2 > coders)
    columns = ["topic", "location", "code"]
    shares = votes.group_by(columns).agg(share=pl.col("present").mean(), n=pl.len().cast(pl.UInt64)).sort(columns)
    return Themes(kappas, votes, shares)


def kappa_table(counts: pl.DataFrame, least: float) -> pl.DataFrame:
    """Give the kappa of each code over all responses."""
    rows = [
        {
            "code": part["code"][0],
            "kappa": fleiss_kappa(part.select("yes", no=pl.col("read") - pl.col("yes")).to_numpy()),
        }
        for part in counts.partition_by("code", maintain_order=True)
    ]
    table = pl.DataFrame(rows, schema={"code": pl.String, "kappa": pl.Float64})
    known = table.with_columns(pl.col("kappa").fill_nan(None))
    kept = (pl.col("kappa") >= least).fill_null(value=False)
    return known.with_columns(kept=kept).sort(["kappa", "code"], descending=[True, False], nulls_last=True)


# How often annotators agree: on triplets (more similar, more appealing) and on single images (Task 2).

# What annotators compare two images by, and the column with their choice
CRITERIA = {"similarity": "similar_id", "appeal": "appealing_id"}

# What Task 2 asks: is the object shown; do the object, and the background, name the image's own region
QUESTIONS = ("shown", *TARGETS)

LOCATION = "annotator_loc"

Row: TypeAlias = dict[str, Any]


def triplet_agreement(task1: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Measure how often annotators of the same triplet choose the same image.

    Where `by` names `annotator_loc`, the annotators of each location are a pool of their own: rows `within` compare
    them with each other, rows `across` compare each of them with the annotators elsewhere. Without it, rows `all`
    compare every annotator with every other, which is what the paper plots; with one annotator per location that is
    agreement between locations, and never within one.

    Args:
        task1: conforms to TASK1.
        by: columns that part the annotations, such as `source`, `region` and `annotator_loc`; may be none.

    Returns:
        The columns of `by`, then `criterion` (`similarity` or `appeal`), `pairs` (`all`, `within` or `across`),
        `pairwise` (the mean over triplets of the share of pairs that agree), `unanimous` (the share of triplets on
        which all pairs agree) and `n` (triplets with at least one pair). Sorted; rows with no triplet are left out.
    """
    answers = task1_answers(task1, by=by)
    items = item_agreement(answers, by=by, item="triplet_id", question="criterion")
    return summed_up(items, [*by, "criterion", "pairs"])


def task2_agreement(task2: pl.DataFrame, *, by: Sequence[str] = ("region",)) -> pl.DataFrame:
    """Measure how often annotators of the same image give the same answer, as `triplet_agreement` does.

    Args:
        task2: conforms to TASK2. An image without an own region counts for `shown` only.
        by: columns that part the annotations, such as `region`, `object` and `annotator_loc`.

    Returns:
        The columns of `by`, then `question` (`shown`, `object` or `background`), `pairs`, `pairwise`, `unanimous`,
        `kappa` (Fleiss' kappa; null across pools, and where it is not defined) and `n` (images). Sorted.

    Raises:
        UsageError: a column is missing, or a region has no name.
    """
    answers = task2_answers(task2, by=by)
    items = item_agreement(answers, by=by, item="img_path", question="question")
    table = summed_up(items, [*by, "question", "pairs"])
    kappas = [kappa_of(answers, row, by) if row["pairs"] != "across" else None for row in table.iter_rows(named=True)]
    return table.with_columns(kappa=pl.Series(kappas, dtype=pl.Float64)).select(pl.exclude("n"), "n")


def task1_answers(task1: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Write one row per annotation and criterion that was answered: the `choice`."""
    check_columns("task1", task1, (*by, "triplet_id", "annotator_id", LOCATION, *CRITERIA.values()))
    return pl.concat(
        task1.filter(pl.col(column).is_not_null()).with_columns(criterion=pl.lit(criterion), choice=pl.col(column))
        for criterion, column in CRITERIA.items()
    )


def task2_answers(task2: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Write one row per annotation and question that has an answer: the `choice`, yes or no."""
    check_columns("task2", task2, (*by, "img_path", "annotator_id", LOCATION, "shown", "region", *TARGETS.values()))
    coded = with_region_codes(task2)
    placed = coded.filter(pl.col("own").is_not_null())
    parts = [coded.with_columns(question=pl.lit("shown"), choice=pl.col("shown").cast(pl.String))]
    parts += [
        placed.with_columns(question=pl.lit(target), choice=pl.col(column).list.contains(pl.col("own")).cast(pl.String))
        for target, column in TARGETS.items()
    ]
    return pl.concat(parts)


def item_agreement(answers: pl.DataFrame, *, by: Sequence[str], item: str, question: str) -> pl.DataFrame:
    """Give the share of agreeing pairs of each item: the columns of `by`, the item, the question, `pairs`, `share`."""
    keys = [*dict.fromkeys([*by, question, item])]
    if LOCATION not in by:
        return with_shares(votes(answers, keys), "all")
    inside = votes(answers, keys)
    elsewhere = [name for name in keys if name != LOCATION]
    return pl.concat([with_shares(inside, "within"), across(inside, votes(answers, elsewhere), keys, elsewhere)])


def votes(answers: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Count answers and equal answers: `total` and `count` per choice."""
    counted = answers.group_by(*keys, "choice").agg(count=pl.len().cast(pl.Int64))
    return counted.with_columns(total=pl.col("count").sum().over(keys))


def with_shares(counted: pl.DataFrame, pairs: str) -> pl.DataFrame:
    """Give the share of pairs of different annotators who agree; items with one annotator are left out."""
    keys = [name for name in counted.columns if name not in ("choice", "count", "total")]
    agreeing = (pl.col("count") * (pl.col("count") - 1)).sum() / (pl.col("total") * (pl.col("total") - 1)).first()
    several = counted.filter(pl.col("total") > 1)
    return several.group_by(keys).agg(share=agreeing).with_columns(pairs=pl.lit(pairs)).select(*keys, "pairs", "share")


def across(inside: pl.DataFrame, everybody: pl.DataFrame, keys: Sequence[str], shared: Sequence[str]) -> pl.DataFrame:
    """Give the share of pairs of one annotator here and one elsewhere who agree."""
    both = inside.join(everybody, on=[*shared, "choice"], suffix="_all", nulls_equal=True)
    others = (pl.col("total_all") - pl.col("total")).first()
    agreeing = (pl.col("count") * (pl.col("count_all") - pl.col("count"))).sum()
    shares = both.group_by(keys).agg(agreeing=agreeing, pairs_made=pl.col("total").first() * others)
    met = shares.filter(pl.col("pairs_made") > 0)
    return met.select(*keys, pairs=pl.lit("across"), share=pl.col("agreeing") / pl.col("pairs_made"))


def summed_up(items: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Average items: shares are sorted first, so that the order of the rows does not matter."""
    share = pl.col("share").sort()
    table = items.group_by(keys).agg(pairwise=share.mean(), unanimous=(share == 1).mean(), n=pl.len().cast(pl.UInt64))
    return table.sort(keys, nulls_last=True)


def kappa_of(answers: pl.DataFrame, row: Row, by: Sequence[str]) -> float | None:
    """Compute Fleiss' kappa of the answers in one cell."""
    cell = answers.filter([pl.col(name).eq_missing(row[name]) for name in (*by, "question")])
    yes = pl.col("choice") == "true"
    counts = cell.group_by("img_path").agg(yes=yes.sum(), no=(~yes).sum()).sort("img_path")
    kappa = fleiss_kappa(counts.select("yes", "no").to_numpy())
    return None if math.isnan(kappa) else kappa
