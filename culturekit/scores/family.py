"""A family of scores: the rows and values it is written with, and its declaration by one function."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, is_dataclass, replace
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    get_type_hints,
    overload,
)

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import StageCommand, declared, is_group, stage_of_function
from culturekit.core.digests import canonical_json, digest
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import roles_among
from culturekit.core.plugins import Plugin, hold, shown
from culturekit.core.schemas import IMAGES, PROMPTS, SCORES, VALUES
from culturekit.core.stage import MARKED, Outcome, Stage, Work
from culturekit.core.tables import checked, read_table, write_table
from culturekit.metrics.corrected.audit_gates import MARKS
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Mean, Target, half_width, interval
from culturekit.scores.catalog import CATALOG, Metric, register

# From values to means over repeats, to an interval, to rows of scores and of values; and values read again.

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Repeats:
    """The repeats that some ordered rows, such as images or batches, belong to."""

    of_row: NDArray[np.int64]  # int64, (n_rows,) and sorted: the number of each row's repeat
    prompts: NDArray[np.str_]  # str, (n_repeats,): the prompt of each repeat
    numbers: NDArray[np.int64]  # int64, (n_repeats,): which repeat of that prompt it is

    def values(self, means: NDArray[np.float64]) -> pl.DataFrame:
        """Give the mean of each repeat as a value; its item is the prompt, a slash, the repeat."""
        rows = pl.DataFrame({"prompt_id": self.prompts, "repeat": self.numbers, "value": means})
        return rows.with_columns(item=pl.format("{}/{}", "prompt_id", "repeat"))


def repeats_in(rows: pl.DataFrame) -> Repeats:
    """Number the repeats of rows in order of prompt_id and repeat."""
    keys = rows.select("prompt_id", "repeat")
    each = keys.unique(maintain_order=True)
    return Repeats(
        of_row=keys.to_struct().rle_id().to_numpy().astype(np.int64),
        prompts=np.array(each["prompt_id"].to_list(), np.str_),
        numbers=each["repeat"].to_numpy().astype(np.int64),
    )


def mean_over_repeats(
    values: NDArray[np.float64], repeat: NDArray[np.int64], repeats: Repeats, *, target: Target, confidence: float
) -> tuple[Interval, NDArray[np.float64]]:
    """Average values, (n,), over each repeat, then over repeats, then over prompts.

    A value that is not known is NaN; `repeat`, int64 (n,), is the number of the repeat that each belongs to.

    Returns:
        The mean with its limits, `n` counting the values known, and the mean of each repeat, NaN where it has none.
    """
    known, count = np.isfinite(values), len(repeats.prompts)
    counts = np.bincount(repeat[known], minlength=count)
    sums = np.bincount(repeat[known], weights=values[known], minlength=count)
    means = np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)
    seen = np.flatnonzero(counts)
    if not len(seen):
        return no_interval(target), means
    prompts, numbers = repeats.prompts[seen], repeats.numbers[seen]
    found = interval(means[seen], prompts=prompts, repeats=numbers, target=target, confidence=confidence)
    return replace(found, n=int(known.sum())), means


def equal_means(means: Sequence[Mean], *, n: int, confidence: float) -> Interval:
    """Average independent means, each weighing the same, as of countries; the variance is that of these alone.

    Degrees of freedom are after Welch and Satterthwaite.
    """
    if not means:
        return no_interval("these")
    value = float(np.mean([mean.value for mean in means]))
    total = math.fsum(mean.variance for mean in means)
    margin = total
    if total > 0:
        shares = [(mean.variance / total) ** 2 / mean.freedom for mean in means if mean.variance > 0]
        margin = half_width(Mean(value, total / len(means) ** 2, 1 / math.fsum(shares)), confidence=confidence)
    return Interval(value, value - margin, value + margin, n, "these")


def no_interval(target: Target) -> Interval:
    """Say that nothing is known."""
    return Interval(math.nan, math.nan, math.nan, 0, target)


def statistic_row(
    metric: str, *, model: str, benchmark: str, answer: Interval, params: Mapping[str, object], unit: str | None = None,
    **scope: str | None,
) -> Row:  # fmt: skip
    """Write one score; a limit that is not known is null. The unit of a metric of ours is in the catalogue."""
    return {
        "metric": metric,
        "model": model,
        "benchmark": benchmark,
        **scope,
        "params": canonical_json(dict(params)).decode(),
        "value": answer.value,
        "ci_low": None if math.isnan(answer.low) else answer.low,
        "ci_high": None if math.isnan(answer.high) else answer.high,
        "n": answer.n,
        "unit": unit or CATALOG[metric].unit,
    }


def with_reason(params: dict[str, object], answer: Interval, reason: str) -> dict[str, object]:
    """Say in params why there is no interval, where there is none."""
    return {**params, "no_interval": reason} if math.isnan(answer.low) else params


def value_rows(scope: Mapping[str, str | None], params: Mapping[str, object], values: pl.DataFrame) -> pl.DataFrame:
    """Write the values behind one score: item and value, prompt_id and repeat where there are; NaN becomes null."""
    texts = {"concept": None, "country": None, "group": None, **scope, "params": canonical_json(dict(params)).decode()}
    missing = {name: None for name in ("prompt_id", "repeat") if name not in values.columns}
    return values.with_columns(
        *(pl.lit(text, pl.String).alias(name) for name, text in {**texts, **missing}.items()),
        pl.col("value").cast(pl.Float64).fill_nan(None),
    ).select(pl.col(name).cast(dtype) for name, dtype in VALUES.schema.items())


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores with intervals, and what they are made of."""

    scores: pl.DataFrame  # conforms to SCORES, in the order of its key
    values: pl.DataFrame  # conforms to VALUES, in the order of its key; empty where no single items were scored
    left_out: Mapping[str, int]  # what did not enter a score, counted by reason


def scored(
    scores: Iterable[Row],
    values: Iterable[Row | pl.DataFrame] | pl.DataFrame = (),
    *,
    left_out: Mapping[str, int] | None = None,
) -> Scored:
    """Put rows and tables of rows into tables, in the order of their keys; a column that a row lacks is null.

    What was left out is named in the order of its reasons; those for which nothing was are not.
    """
    parts = [values] if isinstance(values, pl.DataFrame) else list(values)
    tables = [part.select(list(VALUES.schema)) for part in parts if isinstance(part, pl.DataFrame)]
    rows = pl.DataFrame([part for part in parts if not isinstance(part, pl.DataFrame)], schema=VALUES.schema)
    score_table = pl.DataFrame(list(scores), schema=SCORES.schema, orient="row").sort(SCORES.key, maintain_order=True)
    value_table = pl.concat([rows, *tables]).sort(VALUES.key, maintain_order=True)
    check_ranges(value_table)
    check_ranges(score_table)
    return Scored(
        score_table, value_table, {reason: count for reason, count in sorted((left_out or {}).items()) if count}
    )


ROUNDING = 1e-6  # By so much arithmetic in float32 may pass a bound


def check_ranges(table: pl.DataFrame) -> None:
    """Refuse a number that its metric cannot be; metrics of other packages are held to theirs elsewhere."""
    known = [CATALOG[name] for name in table["metric"].unique() if name in CATALOG]
    low, high = (
        pl.col("metric").replace_strict(ends, default=None, return_dtype=pl.Float64)
        for ends in ({each.name: each.low for each in known}, {each.name: each.high for each in known})
    )
    beyond = (pl.col("value") < low - ROUNDING) | (pl.col("value") > high + ROUNDING)
    outside = table.filter(pl.col("value").is_finite(), beyond)
    if outside.height:
        row = outside.row(0, named=True)
        metric = CATALOG[row["metric"]]
        raise UsageError(
            f"{metric.name} cannot be {row['value']:g}",
            where=f"item {row['item']!r} of {row['model']}" if "item" in row else f"the score of {row['model']}",
            expected=f"from {metric.low:g} to {metric.high:g}",
            found=f"{outside.height:,} such numbers",
            hint="What it is made of is on another scale, or stands in another column.",
        )


# The values behind scores, ready to be compared: which belong together, and what was not known.

# The columns that say where a value belongs, besides metric, model and params
SCOPE = ("benchmark", "concept", "country", "group")

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


# Images with the group of their prompt and the pair that it belongs to, and means over such prompts.


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a score stands: its metric, model, benchmark and group."""

    metric: str
    model: str
    benchmark: str
    group: str | None = None


def prompted_images(
    images: pl.DataFrame, prompts: pl.DataFrame | None, left_out: Counter[str], *, pair: Sequence[str] = ()
) -> pl.DataFrame:
    """Give the images that were made: image_id, model, prompt_id, group and, where asked for, `pair`.

    Without prompts images have no group. `pair` names the columns that a prompt shares with its counterparts of other
    groups.
    """
    table = checked(images, IMAGES)
    finished = table.filter(status="ok").select("image_id", "model", "prompt_id").sort("image_id")
    left_out["images not made"] += table.height - finished.height
    if prompts is None:
        return finished.with_columns(group=pl.lit(None, pl.String))
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
    known = finished.join(named, on="prompt_id", how="inner").sort("image_id")
    left_out["images of no known prompt"] += finished.height - known.height
    return known


def parts_by_group(pictures: pl.DataFrame, *, item: str = "image_id") -> Iterator[pl.DataFrame]:
    """Part pictures by model, and a model's by group; its whole comes first, with the group null."""
    for model in pictures.sort("model", item).partition_by("model", maintain_order=True):
        yield model.with_columns(group=pl.lit(None, pl.String))
        groups = model.filter(pl.col("group").is_not_null()).sort("group", item)
        yield from groups.partition_by("group", maintain_order=True)


def parts_by_concept(rows: pl.DataFrame) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Part rows by model and concept, with where they stand; a model of several concepts also stands as a whole."""
    for (model,), part in rows.sort("model", "concept").group_by("model", maintain_order=True):
        concepts = part.partition_by("concept", maintain_order=True)
        yield from (({"model": model, "concept": each["concept"][0]}, each) for each in concepts)
        if len(concepts) > 1:
            yield {"model": model, "concept": None}, part


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
    values: pl.DataFrame, scope: Scope, params: Mapping[str, object], *, confidence: float
) -> tuple[Row, list[pl.DataFrame]]:
    """Make the score that is the mean of some values, and the rows of these.

    There is at least one value: item, prompt_id (may be null) and value. The `target` is added to params.
    """
    answer = over_prompts(values, confidence=confidence)
    params = {**params, "target": answer.target}
    about = asdict(scope)
    value_table = value_rows(about, params, values.sort("item").select("item", "prompt_id", "value"))
    return statistic_row(**about, answer=answer, params=params), [value_table]


def plain_row(scope: Scope, value: float, n: int, params: Mapping[str, object]) -> Row:
    """Make a score that describes the numbers beside it and has no interval of its own."""
    answer = Interval(value, math.nan, math.nan, n, "these")
    return statistic_row(**asdict(scope), answer=answer, params=params)


# What families share, and how one is declared.

Confidence: TypeAlias = Annotated[float, Field(ge=0.5, le=0.9999, description="Of the intervals.")]
Correction: TypeAlias = Annotated[
    Literal["holm", "benjamini-hochberg"], Field(description="How p values are corrected for their number.")
]
Pair: TypeAlias = Annotated[
    tuple[str, ...],
    Field(description="Column of prompts that a prompt shares with its counterparts; repeat it for more than one."),
]


@dataclass(frozen=True, slots=True)
class Family(StageCommand):
    """A family of scores, as the command line, the documentation and a recipe find it."""

    metrics: tuple[Metric, ...] = field(kw_only=True)  # that it writes
    check: str = ""  # what packages for earlier versions named; `verify` makes scores again, and reads it nowhere


P = ParamSpec("P")


class Scores(Family, Generic[P]):
    """A family that one function declares: what the function takes is what the stage and the command take."""

    __slots__ = ()

    if TYPE_CHECKING:
        stage: Callable[P, Stage]


class _Declaring(Protocol):
    """Makes a family of a function; what the stage works in, where the function takes it, is no option."""

    @overload
    def __call__(self, function: Callable[Concatenate[Work, P], Scored | Outcome], /) -> Scores[P]: ...
    @overload
    def __call__(self, function: Callable[P, Scored | Outcome], /) -> Scores[P]: ...


def scores(
    name: str,
    *metrics: Metric,
    example: str,
    version: int = 1,
    kind: str = "",
    folder: str = "scores",
    seeds: Mapping[str, str] = MappingProxyType({}),
    packages: tuple[str, ...] = ("numpy", "polars", "scipy"),
    settle: Callable[..., Mapping[str, Any] | None] | None = None,
    amend: Callable[[Stage, Mapping[str, Any]], Stage] | None = None,
    workers: bool = False,
    engine: bool = False,
) -> _Declaring:
    """Declare a family of scores by the function that makes them.

    Its positional parameters are inputs, the keyword-only ones options. Those with a description are options of the
    command, whose help is the docstring; all are kept in the manifest, except seeds. The fields of the parameter
    `options`, a dataclass, are kept as options themselves. A parameter `work` is what the stage works in.

    Args:
        name: of the command, and of the kind of the stage after `score-`.
        metrics: that it writes.
        example: what follows the command in an example that works.
        version: of the stage.
        kind: of the stage, where it is another.
        folder: the name of the stage outside a run.
        seeds: the options that are seeds, by what the manifest calls them.
        packages: whose versions the manifest tells.
        settle: is given everything when the stage is made, may refuse it, and may say what takes its place.
        amend: changes the stage that was made of everything given.
        workers: whether the work is divided among processes.
        engine: whether these may be those of a cluster.
    """

    def declare(function: Callable[..., Scored | Outcome]) -> Scores[Any]:
        parameters = signature(function).parameters.values()
        reads = [one.name for one in parameters if one.kind is Parameter.POSITIONAL_OR_KEYWORD and one.name != "work"]

        def stage_made(given: dict[str, Any]) -> Stage:
            given |= (settle(**given) if settle else None) or {}
            settings = _flat({key: value for key, value in given.items() if key not in reads})
            drawn = {role: settings.pop(option) for role, option in seeds.items()}
            if settings.get("distinct") is False:
                del settings["distinct"]  # scores that nobody says it of are known without it
            run = _run_of(function, given)
            inputs = roles_among({one: given[one] for one in reads})
            stage = Stage(folder, kind or f"score-{name}", version, run, inputs, settings, drawn, packages=packages)
            return amend(stage, given) if amend else stage

        stage = stage_of_function(function, stage_made, without="work")
        if function.__module__.startswith("culturekit."):  # those of other packages are held to what they declare
            register(*metrics)
        return Scores(stage, example, workers, engine, metrics=metrics)

    return declare


def _run_of(function: Callable[..., Any], given: Mapping[str, Any]) -> Callable[[Work], Outcome]:
    """Call a function when there is work to do; where it gives scores, these are written."""
    works, gives = "work" in signature(function).parameters, get_type_hints(function)["return"]

    def run(work: Work) -> Outcome:
        calling: Callable[[], Any] = partial(function, *[work] * works, **given)
        outcome: Outcome = calling() if gives is Outcome else write_scored(work, scored_in(work, calling))
        return outcome

    return run


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give options as a manifest keeps them: the fields of `options` as options themselves."""
    plain = {name: asdict(value) if is_dataclass(value) else value for name, value in options.items()}  # type: ignore[arg-type]
    return {**{name: value for name, value in plain.items() if name != "options"}, **plain.get("options", {})}


# A stage that scores one family of metrics: tables in, scores and the values behind them out.


def family_stage(
    family: str,
    inputs: Mapping[str, Path],
    options: Mapping[str, object],
    score: Callable[[Work], Scored],
    *,
    version: int = 1,
    seeds: Mapping[str, int] | None = None,
    name: str = "scores",
    packages: tuple[str, ...] = ("numpy", "polars", "scipy"),
) -> Stage:
    """Describe the stage; `score` reads the inputs and computes, and is called only when there is work to do.

    Where it can score nothing, a command refuses, and a run goes on: `scored_in`.
    """
    return Stage(
        name,
        f"score-{family}",
        version,
        lambda work: write_scored(work, scored_in(work, lambda: score(work))),
        dict(inputs),
        dict(options),
        dict(seeds or {}),
        packages=packages,
    )


def scored_in(work: Work, score: Callable[[], Scored]) -> Scored:
    """Score; where nothing can be scored, a command refuses tables that do not belong together.

    A run goes on without these scores, and says why: its images are made and paid, and people may answer later.
    """
    try:
        answer = score()
        if not answer.scores.height and not work.in_run:
            raise NothingScored(
                "nothing could be scored",
                expected="tables of one run, whose ids occur in each other",
                found="; ".join(f"{reason}: {count:,}" for reason, count in answer.left_out.items()) or "no rows",
            )
    except NothingScored as nothing:
        if not work.in_run:
            raise
        left_out = {nothing.problem: 1} if nothing.left_out is None else nothing.left_out
        write_table(work.out, VALUES, pl.DataFrame(schema=VALUES.schema))  # stages behind it read them
        return scored([], left_out=left_out)
    return answer


def write_scored(work: Work, answer: Scored) -> Outcome:
    """Write `scores.parquet`, and `values.parquet` where single items were scored; say what stands beside scores."""
    write_table(work.out, SCORES, answer.scores)
    counts = {"scores": answer.scores.height}
    if answer.values.height:
        write_table(work.out, VALUES, answer.values)
        counts["values"] = answer.values.height
    marks = [mark for mark in MARKS if answer.scores["params"].str.contains(f'"{mark}"', literal=True).any()]
    notes = {MARKED: marks, "caveat": " ".join(MARKS[mark] for mark in marks)} if marks else {}
    return Outcome(counts, answer.left_out, notes)


# A family that another package brings: its scores are what it declares, and depend on its state.

_ROUNDING = 1e-9  # By so much a family of another package may pass a bound


def held_family(family: Family, plugin: Plugin) -> Family:
    """Hold a family to what families are; its errors are those of its package."""
    with plugin.blamed(answering="what it reads"):
        taken = [(family.stage.__name__, each) for each in declared(family.stage)]
        within = [(one.kind.__name__, each) for _, one in taken if is_group(one) for each in declared(one.kind)]
        for where, each in [*within, *taken]:
            described = each.help or each.default is not MISSING or is_group(each)
            hold(bool(described), "Annotated[..., Field(description=...)] of each", f"{where}.{each.name} without")

    @wraps(family.stage)
    def stage(*given: Any, **named: Any) -> Stage:  # noqa: ANN401 - what it reads, and its options
        with plugin.blamed(answering="a stage"):
            scoring = family.stage(*given, **named)
            hold(isinstance(scoring, Stage), "a Stage", shown(scoring))
            hold(scoring.kind.startswith("score-"), "a kind score-NAME", repr(scoring.kind))
        options = {**scoring.options, "metric_plugin": plugin.made_of()}
        return replace(scoring, run=held_run(scoring.run, family, plugin), options=options)

    return replace(family, stage=stage)


def held_run(run: Callable[[Work], Outcome], family: Family, plugin: Plugin) -> Callable[[Work], Outcome]:
    """Run it, and look at the scores that it wrote."""
    metrics = {metric.name: metric for metric in family.metrics}

    def scored(work: Work) -> Outcome:
        with plugin.blamed(answering="its stage"):
            outcome = run(work)
            hold(isinstance(outcome, Outcome), "an Outcome", shown(outcome))
            for row in read_table(work.out / f"{SCORES.name}.parquet", SCORES).iter_rows(named=True):
                hold_row(row, metrics)
            return outcome

    return scored


def hold_row(row: dict[str, Any], metrics: dict[str, Metric]) -> None:
    """Make sure that a score is one that was declared, in the range that was declared."""
    name, value = row["metric"], row["value"]
    hold(name in metrics, f"scores of {' or '.join(metrics)}", repr(name))
    low, high = metrics[name].low, metrics[name].high
    fits = math.isnan(value) or low - _ROUNDING <= value <= high + _ROUNDING
    hold(fits, f"{name} from {low:g} to {high:g}", f"{value!r}")
    limits = (row["ci_low"], row["ci_high"])
    if None not in limits:
        hold(limits[0] <= limits[1], f"an interval of {name} whose lower limit is below the upper", f"{limits}")
