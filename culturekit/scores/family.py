"""What a family of scores declares: its metrics, the stage that scores them, and options that are said once."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import polars as pl
from pydantic import Field
from pydantic.fields import FieldInfo

from culturekit.core.errors import NothingScored
from culturekit.core.schemas import SCORES, VALUES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import PLAIN, StageCommand, Typed
from culturekit.core.tables import write_table
from culturekit.core.work import MARKED, Outcome, Work
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.corrected.audit_gates import MARKS
from culturekit.scores.catalog import CATALOG, Metric
from culturekit.scores.form_answers import read_answers
from culturekit.scores.inputs import Files
from culturekit.scores.rating_pools import careful_answers, of_criterion
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
    """A family of scores, as the command line, the documentation and a recipe find it.

    Attributes:
        metrics: that it writes.
        check: what packages for earlier versions named; `verify` makes scores again, and reads it nowhere.
    """

    metrics: tuple[Metric, ...] = field(kw_only=True)
    check: str = ""


SEVERAL = (tuple, Sequence)
"""Kinds of a field that is typed any number of times."""

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a dataclass with what it declares: its type without None, whether None is one, and its rules."""

    name: str
    kind: Any
    optional: bool
    default: Any
    field_info: FieldInfo | None
    typed: Typed = PLAIN

    @property
    def help(self) -> str:
        """What `--help` says of it; a field of which nothing is said is no option."""
        return self.typed.help or (self.field_info.description if self.field_info else "") or ""

    @property
    def option(self) -> str:
        """Its name among the arguments of a command."""
        return (self.typed.name.partition("/")[0] or self.name).replace("-", "_")

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that it takes, where they are few."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def several(self) -> bool:
        """Whether an option takes any number of values, or of files."""
        if self.typed.once:
            return False
        repeated = bool(self.typed.others or self.typed.gather) or get_origin(self.kind) in SEVERAL
        return repeated or (isinstance(self.kind, type) and issubclass(self.kind, Files))

    @property
    def bounds(self) -> dict[str, float]:
        """Its bounds, by their names in pydantic: ge, gt, le, lt."""
        rules = [] if self.field_info is None else self.field_info.metadata
        return {name: getattr(rule, name) for rule in rules for name in BOUNDS if hasattr(rule, name)}


BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "of at least"),
    "gt": (operator.gt, "above"),
    "le": (operator.le, "of at most"),
    "lt": (operator.lt, "below"),
}


def declared(cls: type) -> Iterator[Declared]:
    """Give the fields of a dataclass in their order."""
    hints = get_type_hints(cls, include_extras=True)
    for each in fields(cls):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        yield declared_as(each.name, hints[each.name], default)


def declared_as(name: str, kind: Any, default: Any = MISSING) -> Declared:  # noqa: ANN401 - any type, any value
    """Read what an annotation declares."""
    told, typed = None, PLAIN
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        told = next((note for note in notes if isinstance(note, FieldInfo)), None)
        typed = next((note for note in notes if isinstance(note, Typed)), PLAIN)
    kinds = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    known = [one for one in kinds if one is not NoneType]
    return Declared(name, known[0], NoneType in kinds, default, told, typed)


def rules_of(cls: type, name: str) -> FieldInfo:
    """Give bounds and help of an option, for a key of a recipe that says the same."""
    (found,) = (each.field_info for each in declared(cls) if each.name == name)
    if found is None:
        raise TypeError(f"{cls.__name__}.{name} declares nothing")
    return found


def dataclasses_of(command: StageCommand) -> list[type]:
    """Give the dataclasses that a stage takes: of what it reads, and of options where there are some."""
    hints = get_type_hints(command.stage)
    return [hints[each.name] for each in signature(command.stage).parameters.values() if each.kind in POSITIONAL]


def options_in(*kinds: Any) -> Iterator[Declared]:  # noqa: ANN401 - any dataclass
    """Give the fields that are options; those of a dataclass within another stand in its place."""
    for each in (each for kind in kinds for each in declared(kind)):
        if is_group(each):
            yield from options_of(each)
        elif each.help:
            yield each


def options_of(group: Declared) -> Iterator[Declared]:
    """Give the options of a dataclass within another."""
    only = group.typed.only
    return (each for each in options_in(group.kind) if not only or each.name in only)


def is_group(each: Declared) -> bool:
    """Tell whether a field holds options of its own."""
    return isinstance(each.kind, type) and is_dataclass(each.kind) and any(True for _ in options_in(each.kind))


def check_options(options: object) -> None:
    """Refuse options that break a rule which their fields declare."""
    check_choices(options)
    for each, value in stated(options):
        for name, bound in each.bounds.items():
            if not BOUNDS[name][0](value, bound):
                rules = " and ".join(f"{BOUNDS[rule][1]} {limit:g}" for rule, limit in each.bounds.items())
                raise argument_error(each.name, f"a number {rules}", value)


def check_choices(options: object) -> None:
    """Refuse a word that is none of those which a field takes, also one of several."""
    for each, value in stated(options):
        several = get_origin(each.kind) in SEVERAL
        kind = get_args(each.kind)[0] if several else each.kind
        if get_origin(kind) is Literal:
            for word in value if several else (value,):
                check_choice(each.name, word, get_args(kind))


def stated(options: object) -> Iterator[tuple[Declared, Any]]:
    """Give the fields of options that have a value, with it."""
    for each in declared(type(options)):
        value = getattr(options, each.name)
        if value is not None or not each.optional:
            yield each, value


def kept(options: Any, *, but: tuple[str, ...] = ()) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    """Give options as a manifest keeps them; `but` names those that stand elsewhere, such as seeds."""
    return {name: value for name, value in asdict(options).items() if name not in but}


def described(names: str) -> tuple[Metric, ...]:
    """Give the descriptions of metrics of ours, by their names with spaces between."""
    return tuple(CATALOG[name] for name in names.split())


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
