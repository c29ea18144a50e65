"""From the values behind scores to differences of models: paired by prompt, corrected for their number."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.defaults import CONFIDENCE, PERMUTATIONS
from culturekit.errors import NothingScored, UsageError
from culturekit.families.family import Confidence, Correction, Family, check_choices, described, kept
from culturekit.families.family_stage import scored_in, write_scored
from culturekit.families.handles.inputs import AnyValues, Numbered, roles_of
from culturekit.families.handles.made_alike import noted, traits_in
from culturekit.families.handles.mapped_alike import check_mapped_alike
from culturekit.generation.comparability import Traits, differ_in
from culturekit.metrics.arguments import argument_error, check_count
from culturekit.metrics.scoring.score_rows import Row, Scored, scored, statistic_row, value_rows, with_reason
from culturekit.metrics.scoring.value_sets import COUNTS, PLACE, known_values, own_generator, parsed
from culturekit.metrics.statistics import comparisons
from culturekit.metrics.statistics.comparisons import Comparison
from culturekit.metrics.statistics.corrections import corrected
from culturekit.metrics.statistics.intervals import Target
from culturekit.metrics.statistics.model_comparisons import compare_over_countries
from culturekit.records.schemas import VALUES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import Seed
from culturekit.storage.digests import canonical_json

__all__ = ["COMPARE", "CompareReads", "ComparisonOptions", "Found", "compare", "correct_families", "score_comparisons"]

NO_SCATTER = "too few prompts, or values of a prompt, to say how much they scatter"


@dataclass(frozen=True, slots=True)
class CompareReads:
    """Values behind scores, and the images of the models: what else two models differ in."""

    values: AnyValues
    images: Annotated[
        Numbered,
        Field(description="Images of the models, repeatable: differences then say what else differs, such as sizes."),
    ] = Numbered()


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


def compare(given: CompareReads, options: ComparisonOptions, *, name: str = "scores") -> Stage:
    """Compare every two models, paired by prompt.

    On every score that both have.
    """
    check_comparison(options)
    known = replace(options, ignore=(*COUNTS, *(one for one in options.ignore if one not in COUNTS)))

    def run(work: Work) -> Outcome:
        check_mapped_alike(given.values.places)
        found = scored_in(work, lambda: score_comparisons(given.values.table(), options=known))
        if not given.images:
            return write_scored(work, found)
        traits = traits_in(given.images.places)
        check_models(traits, found.scores["params"])
        scores = found.scores.with_columns(params=with_what_differs(found.scores["params"], traits))
        return noted(write_scored(work, replace(found, scores=scores)), traits)

    seeds = {"permutations": options.seed}
    packages = ("numpy", "polars", "scipy")
    return Stage(name, "score-compare", 1, run, roles_of(given), kept(known, but=("seed",)), seeds, packages=packages)


COMPARE = Family(
    compare,
    metrics=described("model_difference"),
    example="--values scores/values.parquet --out compared",
)


@dataclass(frozen=True, slots=True)
class Found:
    """A comparison made, before its p value is corrected.

    Attributes:
        family: the comparisons that are corrected together.
        place: model, benchmark, concept, country and group of its row.
        params: what was compared.
        answer: the comparison.
    """

    family: tuple[Any, ...]
    place: dict[str, Any]
    params: dict[str, object]
    answer: Comparison


def score_comparisons(values: pl.DataFrame, *, options: ComparisonOptions) -> Scored:
    """Compare every two models on every score that both have.

    A score stands for itself where its values name a country; the values of all countries together make one more
    comparison, in which each country counts the same. P values are corrected over all comparisons of one metric
    with the same benchmark and parameters: all pairs of models, concepts, countries and groups.

    Args:
        values: conforms to VALUES; of several models.
        options: how to compare.

    Returns:
        Rows of the metric `model_difference`, and as values the difference on each prompt, where paired.

    Raises:
        UsageError: the table does not conform, an option breaks its rule, or no two models share a score.
    """
    check_comparison(options)
    stated = {name for text in values["params"].unique() for name in parsed(text)}
    if strange := [name for name in options.ignore if name not in {*COUNTS, *stated}]:
        raise argument_error("ignore", f"parameters of the values, such as {', '.join(sorted(stated))}", strange[0])
    known, unknown = known_values(values, ignore=options.ignore)
    found, differences, apart = [], [], 0
    for score in with_all_countries(known):
        for first, second in pairs_of_models(score):
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
    for score in known.partition_by("metric", *PLACE, "params", maintain_order=True):
        yield score.with_columns(stratum=pl.lit(""))
    for scores in known.partition_by("metric", "benchmark", "concept", "group", "params", maintain_order=True):
        if scores["country"].null_count() == 0 and scores["country"].n_unique() > 1:
            yield scores.with_columns(
                unit_id=pl.concat_str("country", "unit_id", separator="\n"),
                stratum=pl.col("country"),
                country=pl.lit(None, pl.String),
            )


def pairs_of_models(score: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Take the models of a score two by two, in alphabetical order."""
    yield from itertools.combinations(score.sort("model").partition_by("model", maintain_order=True), 2)


def one_comparison(first: pl.DataFrame, second: pl.DataFrame, options: ComparisonOptions) -> Found:
    """Compare two models on one score."""
    row = first.row(0, named=True)
    a, b = row["model"], second["model"][0]
    key = [row[name] for name in ("metric", *PLACE, "params")]
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
    place = {"model": f"{a} - {b}", **{name: row[name] for name in PLACE}}
    return Found((row["metric"], row["benchmark"], row["params"]), place, params, answer)


def prompt_differences(found: Found, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Give the difference on each common prompt, as values."""
    means = [side.group_by("unit_id").agg(pl.col("value").sort().mean()).sort("unit_id") for side in (first, second)]
    joined = means[0].join(means[1], on="unit_id", suffix="_b").sort("unit_id")
    what = {key: found.params[key] for key in ("metric", "of", "a", "b", "target")}
    prompt = pl.col("unit_id").str.split("\n").list.last()
    values = joined.select(item="unit_id", prompt_id=prompt, value=pl.col("value") - pl.col("value_b"))
    return value_rows({"metric": "model_difference", **found.place}, what, values)


def correct_families(metric: str, found: Sequence[Found], correction: str, reason: str) -> list[Row]:
    """Correct p values within each family, and write the rows."""
    rows = []
    for one, own, size in in_families(found, correction):
        params: dict[str, object] = {
            **one.params,
            "p": None if math.isnan(one.answer.p) else one.answer.p,
            "p_corrected": None if math.isnan(own) else own,
            "correction": correction,
            "family": size,
        }
        params = with_reason(params, one.answer.interval, reason)
        rows.append(statistic_row(metric, answer=one.answer.interval, params=params, **one.place))
    return rows


def in_families(found: Sequence[Found], correction: str) -> Iterator[tuple[Found, float, int]]:
    """Give each comparison with its corrected p value and the size of its family, family by family."""
    families: dict[tuple[Any, ...], list[Found]] = {}
    for one in found:
        families.setdefault(one.family, []).append(one)
    for members in families.values():
        p = corrected([one.answer.p for one in members], correction=correction)
        yield from zip(members, p.tolist(), itertools.repeat(len(members)))


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
    return pl.Series("params", [widened(text, apart) for text, apart in zip(params.to_list(), rows, strict=True)])


def widened(params: str, apart: Sequence[str]) -> str:
    """Add what differs to the parameters of one row; nothing where all is alike."""
    return canonical_json({**msgspec.json.decode(params), "differ_in": apart}).decode() if apart else params
