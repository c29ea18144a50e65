"""From the values behind scores to gaps between groups, stratified by country and corrected for their number."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Seed, check_options
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import PROMPTS
from culturekit.core.tables import read_table
from culturekit.metrics.statistics.comparisons import compare, group_gap
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Target
from culturekit.scores.catalog import CORRECTION, UNBOUNDED, VALUES_READ, describe
from culturekit.scores.compare import Found, correct_families
from culturekit.scores.family import (
    Confidence,
    Correction,
    Row,
    Scored,
    known_values,
    over_prompts,
    own_generator,
    parsed,
    scored,
    scores,
    statistic_row,
)
from culturekit.scores.image_levels import GroupsGiven, country_groups
from culturekit.scores.inputs import AnyValues

GapTarget: TypeAlias = Literal["auto", "population", "these"]

GROUP_COLUMN = "group"  # The scheme whose groups stand in the values themselves, such as those of prompts about people

LANGUAGE_COLUMN = "language"  # The scheme whose groups are the languages of prompts

NO_SCATTER = "a country with one prompt, or a prompt with one value, does not say how much it scatters"


GROUP_GAP = describe(
    "group_gap",
    "Gap between groups",
    "mean of group a - mean of group b; a group's mean is over its countries, of their means over prompts, of their "
    "means over images; t interval stratified by country",
    paper="CULTIVate, section 4 (Global North and South); Welch 1947; Holm 1979",
    inputs=(VALUES_READ, "a scheme: country -> group"),
    pitfalls=(
        "params.scheme is part of the number: schemes put countries into different groups, and leave some out.",
        "The countries are held fixed. The gap speaks about the countries named in params and says nothing of others "
        "in the same group.",
        "params.target says whether it speaks about other prompts of these countries, or about these prompts only.",
        CORRECTION,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)


GROUP_MEAN = describe(
    "group_mean",
    "Mean of prompts in one language",
    "mean over prompts in the language of their means over images; t interval over prompts, or over the values of each",
    paper="",
    inputs=(VALUES_READ, "prompts: prompt_id, language, pair_id"),
    pitfalls=("Names of artifacts that no speaker verified, or in English, are counted in `marks` of the prompts.",),
    low=-UNBOUNDED,
    high=UNBOUNDED,
)


@dataclass(frozen=True, slots=True)
class GapOptions:
    """Which gaps, and how; the seed is that of the permutations, where groups share their prompts."""

    scheme: Annotated[
        str,
        Field(
            description="cultivate (Global North and South), un-m49-region, un-m49-subregion, a scheme of --groups, "
            "group: the groups that stand in the values, or language: of the prompts."
        ),
    ]
    groups: GroupsGiven = None
    target: Annotated[
        GapTarget,
        Field(description="Speak about other prompts, about these only, or the first where 20 prompts allow it."),
    ] = "auto"
    correction: Correction = "holm"
    confidence: Confidence = CONFIDENCE
    seed: Seed = 0

    @property
    def sides(self) -> Mapping[str, str]:
        """The group of each country; none where the groups stand in the values."""
        known = self.scheme in {GROUP_COLUMN, LANGUAGE_COLUMN} and self.groups is None
        return {} if known else country_groups(self.scheme, self.groups)


def _with_sides(options: GapOptions, **_: object) -> dict[str, object]:
    """Keep the groups in the manifest, not the name of their file."""
    return {"options": replace(options, groups=options.sides)}


@scores(
    "gaps", GROUP_GAP, GROUP_MEAN, example="--values scores/values.parquet --scheme cultivate --out gaps",
    seeds={"permutations": "seed"}, settle=_with_sides,
)  # fmt: skip
def gaps(
    values: AnyValues,
    prompts: Annotated[
        Files, Field(description="Table of prompts in several languages, for the scheme language.")
    ] = Files(),
    *,
    options: GapOptions,
) -> Scored:
    """Score gaps between groups, or languages of prompts.

    On every score of every model; groups are stratified by country.
    """
    spoken = pl.concat([read_table(path, PROMPTS) for path in prompts.places], how="diagonal") if prompts else None
    return score_gaps(values.table(), options=options, prompts=spoken)


def score_gaps(values: pl.DataFrame, *, options: GapOptions, prompts: pl.DataFrame | None = None) -> Scored:
    """Compare every two groups on every score of every model.

    A group's mean is unweighted over its countries, of their means over prompts, of their means over images.
    Several concepts also make one gap over all prompts. Where the groups stand in the values and all prompts are
    asked of both, they are paired by prompt. Prompts in two languages are paired by what they ask for.

    Returns:
        Rows of the metric `group_gap`, `a - b` in the column group; of languages, of `group_mean` as well.
    """
    check_options(options)
    known, unknown = known_values(values)
    grouped = with_groups(known, options) if options.scheme != LANGUAGE_COLUMN else by_language(known, prompts)
    inside = grouped.filter(pl.col("side").is_not_null())
    found = [
        one_gap(score, a, b, options)
        for score in with_all_concepts(inside)
        for a, b in itertools.combinations(sorted(score["side"].unique()), 2)
    ]
    if not found:
        raise NothingScored(
            f"no score has values of two groups of the scheme {options.scheme!r}",
            expected=", ".join(sorted(set(options.sides.values()))) or "values with a group",
            found=f"countries {', '.join(sorted(known['country'].drop_nulls().unique())) or 'none'}",
        )
    rows = correct_families("group_gap", found, options.correction, NO_SCATTER)
    if options.scheme == LANGUAGE_COLUMN:
        rows += [language_mean(score, side, options) for score in with_all_concepts(inside)
                 for side in sorted(score["side"].unique())]  # fmt: skip
    return scored(rows, left_out={"unknown_value": unknown, "in_no_group": grouped.height - inside.height})


def with_groups(known: pl.DataFrame, options: GapOptions) -> pl.DataFrame:
    """Give each value its side; of values that stand under several scores of one metric the finest stays."""
    if options.scheme == GROUP_COLUMN:
        return known.with_columns(side=pl.col("group"), stratum=pl.col("country").fill_null(""))
    side = pl.col("country").replace_strict(dict(options.sides), default=None, return_dtype=pl.String)
    return known.with_columns(side=side, stratum=pl.col("country"))


def by_language(known: pl.DataFrame, prompts: pl.DataFrame | None) -> pl.DataFrame:
    """Give each value the language of its prompt, under the pair that the prompt belongs to."""
    if prompts is None:
        raise UsageError("the scheme language needs the prompts", hint="Give their table with --prompts.")
    pair = pl.coalesce("pair_id", "prompt_id") if "pair_id" in prompts.columns else pl.col("prompt_id")
    spoken = prompts.select("prompt_id", side="language", unit=pair)
    joined = known.join(spoken, on="prompt_id", how="left", maintain_order="left")
    return joined.with_columns(unit_id=pl.coalesce("unit", "unit_id"), stratum=pl.lit("")).drop("unit")


def language_mean(score: pl.DataFrame, side: str, options: GapOptions) -> Row:
    """Average a score over the prompts in one language."""
    row, here = score.row(0, named=True), score.filter(side=side)
    answer = over_prompts(here, confidence=options.confidence)
    params: dict[str, object] = {
        "metric": row["metric"], "of": parsed(row["params"]), "scheme": options.scheme,
        "prompts": here["unit_id"].n_unique(), "target": answer.target,
    }  # fmt: skip
    scope: dict[str, Any] = {name: row[name] for name in ("model", "benchmark", "concept")}
    return statistic_row("group_mean", **scope, country=None, group=side, answer=answer, params=params)


def with_all_concepts(inside: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Part values by score of a model, and once more over all concepts where there are several."""
    key = ("metric", "model", "benchmark", "params")
    yield from inside.partition_by(*key, "concept", maintain_order=True)
    for table in inside.partition_by(*key, maintain_order=True):
        if table["concept"].null_count() == 0 and table["concept"].n_unique() > 1:
            yield table.with_columns(concept=pl.lit(None, pl.String))


def one_gap(score: pl.DataFrame, a: str, b: str, options: GapOptions) -> Found:
    """Compare two groups on one score: prompt by prompt where the same prompts asked for both."""
    row = score.row(0, named=True)
    pair = score.filter(pl.col("side").is_in([a, b]))
    first, second = (pair.filter(pl.col("side") == side) for side in (a, b))
    units = first["unit_id"].to_numpy().astype(str), second["unit_id"].to_numpy().astype(str)
    shared = set(units[0]) & set(units[1])
    if options.scheme == LANGUAGE_COLUMN and shared:
        pair = pair.filter(pl.col("unit_id").is_in(list(shared)))
        first, second = (pair.filter(pl.col("side") == side) for side in (a, b))
        units = first["unit_id"].to_numpy().astype(str), second["unit_id"].to_numpy().astype(str)
    paired = options.scheme in {GROUP_COLUMN, LANGUAGE_COLUMN} and set(units[0]) == set(units[1])
    by_pairs = paired and options.scheme == LANGUAGE_COLUMN
    target = target_of(pair, options)
    if paired:
        key = [row[name] for name in ("metric", "model", "benchmark", "params", "concept")]
        answer = compare(
            first["value"].to_numpy(), second["value"].to_numpy(), clusters=units, target=target,
            confidence=options.confidence, rng=own_generator(options.seed, *key, a, b),
        )  # fmt: skip
    else:
        answer = group_gap(
            pair["value"].to_numpy(), groups=pair["side"].to_numpy().astype(str), first=a, second=b,
            countries=pair["stratum"].to_numpy().astype(str), prompts=pair["unit_id"].to_numpy().astype(str),
            target=target, confidence=options.confidence,
        )  # fmt: skip
    params: dict[str, object] = {
        "metric": row["metric"], "of": parsed(row["params"]), "scheme": options.scheme, "a": a, "b": b,
        "countries": {
            side: sorted(rows["country"].drop_nulls().unique()) for side, rows in ((a, first), (b, second))
        },
        "prompts": answer.common if by_pairs else answer.n, "paired": paired, "target": target,
    }  # fmt: skip
    scope: dict[str, Any] = {name: row[name] for name in ("model", "benchmark", "concept")}
    scope |= {"country": None, "group": f"{a} - {b}"}
    return Found((row["metric"], row["benchmark"], row["params"]), scope, params, answer)


def target_of(pair: pl.DataFrame, options: GapOptions) -> Target:
    """Say what a gap can speak about."""
    if options.target != "auto":
        return options.target
    prompts = pair.group_by("side", "stratum").agg(pl.col("unit_id").n_unique())["unit_id"].to_list()
    every = min(prompts) if options.scheme == LANGUAGE_COLUMN else sum(prompts)
    return "population" if every >= FEWEST_PROMPTS and min(prompts) > 1 else "these"
