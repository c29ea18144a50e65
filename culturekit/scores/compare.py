"""From the values behind scores to differences of models: paired by prompt, corrected for their number."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.core.choices import CONFIDENCE, PERMUTATIONS
from culturekit.core.declared import Seed, check_choices
from culturekit.core.digests import canonical_json
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import SCORES, VALUES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table
from culturekit.generation.comparability import Traits, differ_in
from culturekit.index.matching.comparison import check_mapped_alike
from culturekit.metrics.arguments import check_count
from culturekit.metrics.statistics import comparisons
from culturekit.metrics.statistics.comparisons import Comparison, compare_over_countries, corrected
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target
from culturekit.scores.catalog import CORRECTION, UNBOUNDED, VALUES_READ, describe
from culturekit.scores.family import (
    COUNTS,
    SCOPE,
    Confidence,
    Correction,
    Row,
    Scored,
    check_ranges,
    known_values,
    own_generator,
    parsed,
    scored,
    scored_in,
    scores,
    statistic_row,
    value_rows,
    with_reason,
    write_scored,
)
from culturekit.scores.inputs import AnyValues, noted, traits_in

NO_SCATTER = "too few prompts, or values of a prompt, to say how much they scatter"


MODEL_DIFFERENCE = describe(
    "model_difference",
    "Difference of two models",
    "mean over common prompts of (a's mean on the prompt - b's); over several countries, of the countries' means; "
    "p by sign flips of the prompts' differences",
    paper="paired permutation test: Fisher 1935; Holm 1979; Benjamini and Hochberg 1995",
    inputs=(VALUES_READ,),
    pitfalls=(
        "params.metric and params.of say which score is compared; its own direction says which sign is good.",
        "Only common prompts enter. params.left_out counts the others; where it is large, the two models answered "
        "different questions.",
        "With k common prompts no p value can be below 2/2^k: five prompts never show a difference at 0.05. "
        "target=these asks about other images of these prompts instead.",
        CORRECTION,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)

MODEL_RANK = describe(
    "model_rank",
    "Rank of a model",
    "1 + models with a higher value; from 1 + models surely above it to models - models surely below it, where surely "
    "is a corrected p value of their difference below 1 - confidence",
    paper="Holm 1979; limits of differences: Zou and Donner 2008; ranks: Mohamad, Goeman and van Zwet 2022",
    inputs=("scores whose labels are corrected, with intervals",),
    pitfalls=(
        "All ranks of a score hold the truth together, as often as the intervals of the scores do.",
        "Models whose ranks overlap cannot be told apart with these audits; more labels may tell them apart.",
        "Audits that share the errors of their raters are not independent, and no difference knows of that.",
    ),
    low=1.0,
    high=UNBOUNDED,
    direction="lower",
    unit="rank",
)


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How models are compared; the seed is that of the permutations."""

    paired: Annotated[bool, Field(description="Compare prompt with prompt, or all prompts with all.")] = True
    target: Annotated[
        Target, Field(description="Speak about other prompts like these, or about these prompts only.")
    ] = "population"
    correction: Correction = "holm"
    confidence: Confidence = CONFIDENCE
    resamples: Annotated[int, Field(ge=99, description="Permutations of each test.")] = PERMUTATIONS
    ignore: Annotated[
        tuple[str, ...], Field(description="Parameter in which compared scores may differ; repeatable.")
    ] = COUNTS
    seed: Seed = 0


def _settled(options: ComparisonOptions, **_: object) -> dict[str, object]:
    """Refuse options that break their rules, and ignore what only counts."""
    check_comparison(options)
    others = (one for one in options.ignore if one not in COUNTS)
    return {"options": replace(options, ignore=(*COUNTS, *others))}


@scores(
    "compare", MODEL_DIFFERENCE, example="--values scores/values.parquet --out compared",
    seeds={"permutations": "seed"}, settle=_settled,
)  # fmt: skip
def compare(
    work: Work,
    values: AnyValues,
    images: Annotated[
        Numbered,
        Field(description="Images of the models, repeatable: differences then say what else differs, such as sizes."),
    ] = Numbered(),
    *,
    options: ComparisonOptions = ComparisonOptions(),
) -> Outcome:
    """Compare every two models, paired by prompt.

    On every score that both have.
    """
    check_mapped_alike(values.places)
    found = scored_in(work, lambda: score_comparisons(values.table(), options=options))
    if not images:
        return write_scored(work, found)
    traits = traits_in(images.places)
    check_models(traits, found.scores["params"])
    table = found.scores.with_columns(params=with_what_differs(found.scores["params"], traits))
    return noted(write_scored(work, replace(found, scores=table)), traits)


@dataclass(frozen=True, slots=True)
class Found:
    """A comparison made, before its p value is corrected."""

    family: tuple[Any, ...]  # the comparisons that are corrected together
    scope: dict[str, Any]  # model, benchmark, concept, country and group of its row
    params: dict[str, object]  # what was compared
    answer: Comparison  # the comparison


def score_comparisons(values: pl.DataFrame, *, options: ComparisonOptions) -> Scored:
    """Compare every two models on every score that both have.

    A score stands for itself where its values name a country; the values of all countries together make one more
    comparison, in which each country counts the same. P values are corrected over all comparisons of one metric
    with the same benchmark and parameters: all pairs of models, concepts, countries and groups.

    Returns:
        Rows of the metric `model_difference`, and as values the difference on each prompt, where paired.
    """
    check_comparison(options)
    stated = {name for text in values["params"].unique() for name in parsed(text)}
    if strange := [name for name in options.ignore if name not in {*COUNTS, *stated}]:
        raise argument_error("ignore", f"parameters of the values, such as {', '.join(sorted(stated))}", strange[0])
    known, unknown = known_values(values, ignore=options.ignore)
    found, differences, apart = [], [], 0
    for score in with_all_countries(known):
        models = score.sort("model").partition_by("model", maintain_order=True)
        for first, second in itertools.combinations(models, 2):
            shared = first.join(second, on="unit_id", how="semi").height
            if options.paired and not shared:
                apart += 1
                continue
            found.append(one_comparison(first, second, options))
            if options.paired:
                differences.append(prompt_differences(found[-1], first, second))
    if not found:
        raise NothingScored(
            "nothing can be compared",
            expected="two models with values of one score on the same prompts",
            found=f"models {', '.join(sorted(known['model'].unique()))}" if known.height else "no values",
        )
    rows = correct_families("model_difference", found, options.correction, NO_SCATTER)
    table = pl.concat(differences) if differences else pl.DataFrame(schema=VALUES.schema)
    return scored(rows, table, left_out={"unknown_value": unknown, "no_common_prompt": apart})


def check_comparison(options: ComparisonOptions) -> None:
    """Refuse options that break their rules, before any work is done."""
    check_choices(options)
    check_count("resamples", options.resamples)


def with_all_countries(known: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Part values by score, and once more without countries where there are several and none of them is "all"."""
    for score in known.partition_by("metric", *SCOPE, "params", maintain_order=True):
        yield score.with_columns(stratum=pl.lit(""))
    for table in known.partition_by("metric", "benchmark", "concept", "group", "params", maintain_order=True):
        if table["country"].null_count() == 0 and table["country"].n_unique() > 1:
            yield table.with_columns(
                unit_id=pl.concat_str("country", "unit_id", separator="\n"),
                stratum=pl.col("country"),
                country=pl.lit(None, pl.String),
            )


def one_comparison(first: pl.DataFrame, second: pl.DataFrame, options: ComparisonOptions) -> Found:
    """Compare two models on one score."""
    row = first.row(0, named=True)
    a, b = row["model"], second["model"][0]
    key = [row[name] for name in ("metric", *SCOPE, "params")]
    sides = [(side["value"].to_numpy(), side["unit_id"].to_numpy().astype(str)) for side in (first, second)]
    settings: dict[str, Any] = {
        "paired": options.paired,
        "target": options.target,
        "confidence": options.confidence,
        "resamples": options.resamples,
        "rng": own_generator(options.seed, *key, a, b),
    }
    if row["stratum"]:
        countries = (first["stratum"].to_numpy().astype(str), second["stratum"].to_numpy().astype(str))
        answer = compare_over_countries(
            sides[0][0], sides[1][0], clusters=(sides[0][1], sides[1][1]), countries=countries, **settings
        )
    else:
        answer = comparisons.compare(sides[0][0], sides[1][0], clusters=(sides[0][1], sides[1][1]), **settings)
    params = {
        "metric": row["metric"],
        "of": parsed(row["params"]),
        "a": a,
        "b": b,
        "paired": options.paired,
        "target": options.target,
        "common": answer.common,
        "left_out": answer.left_out,
        "prompts": answer.n,
    }
    scope = {"model": f"{a} - {b}", **{name: row[name] for name in SCOPE}}
    return Found((row["metric"], row["benchmark"], row["params"]), scope, params, answer)


def prompt_differences(found: Found, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Give the difference on each common prompt, as values."""
    means = [side.group_by("unit_id").agg(pl.col("value").sort().mean()).sort("unit_id") for side in (first, second)]
    joined = means[0].join(means[1], on="unit_id", suffix="_b").sort("unit_id")
    what = {key: found.params[key] for key in ("metric", "of", "a", "b", "target")}
    prompt = pl.col("unit_id").str.split("\n").list.last()
    values = joined.select(item="unit_id", prompt_id=prompt, value=pl.col("value") - pl.col("value_b"))
    return value_rows({"metric": "model_difference", **found.scope}, what, values)


def correct_families(metric: str, found: Sequence[Found], correction: str, reason: str) -> list[Row]:
    """Correct p values within each family, and write the rows."""
    rows = []
    for one, part, size in in_families(found, correction):
        params: dict[str, object] = {
            **one.params,
            "p": None if math.isnan(one.answer.p) else one.answer.p,
            "p_corrected": None if math.isnan(part) else part,
            "correction": correction,
            "family": size,
        }
        params = with_reason(params, one.answer.interval, reason)
        rows.append(statistic_row(metric, answer=one.answer.interval, params=params, **one.scope))
    return rows


def in_families(found: Sequence[Found], correction: str) -> Iterator[tuple[Found, float, int]]:
    """Give each comparison with its corrected p value and the size of its family, family by family."""
    families: dict[tuple[Any, ...], list[Found]] = {}
    for one in found:
        families.setdefault(one.family, []).append(one)
    for members in families.values():
        p = corrected([one.answer.p for one in members], correction=correction)
        yield from zip(members, p.tolist(), itertools.repeat(len(members)))


def compare_runs(first: Path | str, second: Path | str, *, stage: str = "scores", seed: int = 0) -> pl.DataFrame:
    """Compare every model of one finished run with every model of another, on every score that both have.

    Prompts that both answered are compared in pairs. Models are called `NAME (RUN)`.

    Example:
        >>> ck.compare_runs("runs/cube", "runs/cube").height
        0
    """
    roots = [Path(first), Path(second)]
    if roots[0].resolve() == roots[1].resolve():
        return pl.DataFrame(schema=SCORES.schema)
    names = [root.name if roots[0].name != roots[1].name else str(root) for root in roots]
    values = [
        read_table(root / stage / "values.parquet", VALUES).with_columns(pl.col("model") + f" ({name})")
        for root, name in zip(roots, names, strict=True)
    ]
    prompts = set(values[0]["prompt_id"].drop_nulls()) & set(values[1]["prompt_id"].drop_nulls())
    target: Target = "population" if len(prompts) >= FEWEST_PROMPTS else "these"
    found = score_comparisons(pl.concat(values), options=ComparisonOptions(target=target, seed=seed)).scores
    sides = [set(each["model"]) for each in values]
    pairs = [{*model.split(" - ", 1)} for model in found["model"]]
    return found.filter(pl.Series([all(pair & side for side in sides) for pair in pairs], dtype=pl.Boolean))


def check_models(traits: Mapping[str, Traits], params: pl.Series) -> None:
    """Refuse images of which no model is compared: they would say that nothing else differs."""
    models = {parsed(text)[side] for text in params for side in ("a", "b")}
    if not models & set(traits):
        raise UsageError(
            "none of the images is of a model that is compared", expected=f"images of {' or '.join(sorted(models))}",
            found=f"images of {', '.join(sorted(traits))}",
        )  # fmt: skip


def with_what_differs(params: pl.Series, traits: Mapping[str, Traits]) -> pl.Series:
    """Add to the parameters of each difference what the images of its two models differ in."""
    known: dict[tuple[str, str], list[str]] = {}
    rows = []
    for about in params.str.json_decode(pl.Struct({"a": pl.String, "b": pl.String})).to_list():
        pair = (about["a"], about["b"])
        if pair not in known:
            both = [traits[name] for name in pair if name in traits]
            known[pair] = differ_in(*both) if len(both) == len(pair) else []
        rows.append(known[pair])
    return pl.Series("params", [
        canonical_json({**msgspec.json.decode(text), "differ_in": apart}).decode() if apart else text
        for text, apart in zip(params.to_list(), rows, strict=True)
    ])  # fmt: skip


# Models compared and ranked by corrected diversity: differences from the intervals of both, and limits for each rank.
#
# The audits of two models are independent, so each limit of a difference takes the distances of the two limits that
# it depends on, in squares (Zou and Donner 2008: no normal shape is assumed, and no clipped limit is looked at).

# Parameters of corrected scores that say something of one model's audit; without them the scores are the same
OF_EACH_AUDIT = (
    "audited",
    "marked",
    "country_only",
    "continent_only",
    "no_continent",
    "cannot_tell",
    "if_alike",
    "if_different",
)


@scores(
    "ranks", MODEL_DIFFERENCE, MODEL_RANK, version=2, folder="ranks",
    example="--scores scores/scores.parquet --out ranks",
)  # fmt: skip
def ranks(
    scores: Annotated[Numbered, Field(description="Table of scores with corrected ones; repeat it for more than one.")],
    *,
    correction: Correction = "holm",
) -> Scored:
    """Rank models by corrected diversity, as far as it carries.

    Every two models are compared, and each has the ranks that it may have.
    """
    check_mapped_alike(scores.places)
    tables = [read_table(path, SCORES).select(list(SCORES.schema)) for path in scores.places]
    return score_ranks(pl.concat(tables), correction=correction)


def score_ranks(scores: pl.DataFrame, *, correction: str = "holm") -> Scored:
    """Compare and rank the models of each corrected score.

    P values are corrected over all pairs of models and all concepts of a score. Models that are not surely apart may
    have each other's ranks; how sure is the confidence of the intervals. Rows whose labels are not corrected, or that
    have no interval, are not looked at.
    """
    found: list[Found] = []
    groups: list[tuple[list[dict[str, Any]], list[Found]]] = []
    for rows in same_scores(scores):
        pairs = [pair_of(first, second) for first, second in itertools.combinations(rows, 2)]
        found += pairs
        groups.append((rows, pairs))
    if not found:
        raise NothingScored(
            "nothing can be ranked",
            expected="two models with one score whose labels are corrected, with intervals",
            found=f"{scores.height} scores of {scores['model'].n_unique()} models",
        ).counting({})  # a run of one model lacks nothing
    differences = correct_families("model_difference", found, correction, "")
    surely = {id(one): p for one, p, _ in in_families(found, correction)}
    ranked = [row for rows, pairs in groups for row in rank_rows(rows, pairs, surely, correction)]
    return scored([*differences, *ranked])


def same_scores(scores: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Give the rows of each corrected score that two models or more have, in the order of the models."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    check_ranges(scores)
    known = scores.filter(pl.col("value").is_finite()).sort("metric", "model", *SCOPE, "params")
    for row in known.iter_rows(named=True):
        params = parsed(row["params"])
        if params.get("labels") != "corrected" or row["ci_low"] is None or row["ci_high"] is None:
            continue
        of = {name: value for name, value in params.items() if name not in OF_EACH_AUDIT}
        key = (row["metric"], *(row[name] for name in SCOPE), canonical_json(of).decode())
        groups.setdefault(key, []).append({**row, "of": of, "marked": params.get("marked", [])})
    for rows in groups.values():
        models = [row["model"] for row in rows]
        if len(set(models)) < len(models):
            raise UsageError(
                "a model has one corrected score twice", found=max(models, key=models.count), expected="it once"
            )
        if len(rows) > 1:
            yield rows


def pair_of(first: dict[str, Any], second: dict[str, Any]) -> Found:
    """Compare two models on one score."""
    sides = [Interval(row["value"], row["ci_low"], row["ci_high"], row["n"], "these") for row in (first, second)]
    interval, p = difference_of(sides[0], sides[1], confidence=float(first["of"]["confidence"]))
    names = {"a": first["model"], "b": second["model"], **marks_of(first, second)}
    params: dict[str, object] = {"metric": first["metric"], "of": first["of"], **names, "target": "these"}
    scope = {"model": f"{first['model']} - {second['model']}", **{name: first[name] for name in SCOPE}}
    family = (first["metric"], first["benchmark"], canonical_json(first["of"]))
    return Found(family, scope, params, Comparison(interval.value, interval, p, p, 2, 2, 0))


def marks_of(*rows: dict[str, Any]) -> dict[str, list[str]]:
    """Say what stands beside scores: it stands beside what is said of them together."""
    marks = sorted({mark for row in rows for mark in row["marked"]})
    return {"marked": marks} if marks else {}


def difference_of(first: Interval, second: Interval, *, confidence: float) -> tuple[Interval, float]:
    """Give the difference of two independent estimates with its limits, and the p value of there being none.

    The half width on the side of zero is taken to grow with the confidence as that of a normal distribution does.
    """
    from scipy.special import ndtr, ndtri

    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    side = below if value > 0 else above
    quantile = float(ndtri((1 + confidence) / 2))
    p = (0.0 if value else 1.0) if side == 0 else 2 * float(ndtr(-quantile * abs(value) / side))
    return Interval(value, value - below, value + above, first.n + second.n, "these"), p


def rank_rows(
    rows: Sequence[dict[str, Any]], pairs: Sequence[Found], surely: dict[int, float], correction: str
) -> Iterator[Row]:
    """Rank the models of one score: first is the most diverse."""
    above: dict[str, int] = dict.fromkeys((row["model"] for row in rows), 0)
    below = dict(above)
    alpha = 1 - float(rows[0]["of"]["confidence"])
    for pair in pairs:
        if surely[id(pair)] < alpha:
            names = str(pair.params["a"]), str(pair.params["b"])
            better, worse = names if pair.answer.difference > 0 else names[::-1]
            above[worse] += 1
            below[better] += 1
    for row in rows:
        rank = 1 + sum(other["value"] > row["value"] for other in rows)
        low, high = 1 + above[row["model"]], len(rows) - below[row["model"]]
        params = {"metric": row["metric"], "of": row["of"], "models": len(rows), "correction": correction}
        params |= marks_of(*rows)
        answer = Interval(float(rank), float(low), float(high), row["n"], "these")
        scope = {name: row[name] for name in SCOPE}
        yield statistic_row("model_rank", answer=answer, params=params, model=row["model"], **scope)
