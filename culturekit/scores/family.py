"""A family of scores is declared by one function: what it reads, its options, the scores, and the metrics they have."""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, is_dataclass, replace
from functools import partial, wraps
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from pkgutil import iter_modules
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

import polars as pl
from pydantic import Field

from culturekit.core.declared import StageCommand, declared, is_group, stage_of_function
from culturekit.core.errors import NothingScored
from culturekit.core.inputs import roles_among
from culturekit.core.plugins import Plugin, hold, shown
from culturekit.core.schemas import SCORES, VALUES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import MARKED, Outcome, Work
from culturekit.metrics.corrected.audit_gates import MARKS
from culturekit.scores import catalog
from culturekit.scores.catalog import Metric, register
from culturekit.scores.score_rows import Scored, scored

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

        def made(given: dict[str, Any]) -> Stage:
            given |= (settle(**given) if settle else None) or {}
            settings = _flat({key: value for key, value in given.items() if key not in reads})
            drawn = {role: settings.pop(option) for role, option in seeds.items()}
            if settings.get("distinct") is False:
                del settings["distinct"]  # scores that nobody says it of are known without it
            run = _run_of(function, given)
            inputs = roles_among({one: given[one] for one in reads})
            stage = Stage(folder, kind or f"score-{name}", version, run, inputs, settings, drawn, packages=packages)
            return amend(stage, given) if amend else stage

        stage = stage_of_function(function, made, without="work")
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


def described(names: str) -> tuple[Metric, ...]:
    """Give the descriptions of metrics of ours that do not stand beside their family yet."""
    modules = [import_module(f"{catalog.__name__}.{one.name}") for one in iter_modules(catalog.__path__)]
    known = {one.name: one for module in modules for one in vars(module).values() if isinstance(one, Metric)}
    found = tuple(known[name] for name in names.split())
    register(*found)
    return found


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


def answers_in(work: Work, annotations: Path, criterion: str) -> pl.DataFrame:
    """Read people's answers; where none to a question counts, a run has none, and scores what else it can."""
    from culturekit.scores.answers import careful_answers, of_criterion, read_answers

    answers = read_answers(annotations)
    try:
        of_criterion(careful_answers(answers), criterion)
    except NothingScored:
        if not work.in_run:
            raise
        return answers.clear()
    return answers


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

ROUNDING = 1e-9  # By so much arithmetic may pass a bound


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
    fits = math.isnan(value) or low - ROUNDING <= value <= high + ROUNDING
    hold(fits, f"{name} from {low:g} to {high:g}", f"{value!r}")
    limits = (row["ci_low"], row["ci_high"])
    if None not in limits:
        hold(limits[0] <= limits[1], f"an interval of {name} whose lower limit is below the upper", f"{limits}")
