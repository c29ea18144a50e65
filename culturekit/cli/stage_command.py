"""The command of a stage: its options, their help and their bounds are those that its function declares."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import typer

from culturekit.cli.options import REPLACE, Also, AsJson, EngineSpec, Out, Prices, Wait, Workers, spec_completer
from culturekit.cli.showing import progress_for
from culturekit.core.choices import ExportChoice, ExportFormat
from culturekit.core.declared import (
    SEVERAL,
    AskingCommand,
    Declared,
    StageCommand,
    declared,
    declared_as,
    is_group,
    options_among,
    options_of,
)
from culturekit.core.errors import UsageError, counted, counted_reason
from culturekit.core.inputs import Input
from culturekit.core.stage import MARKED, NOT_COMPARABLE, QUARANTINED

if TYPE_CHECKING:
    from culturekit.core.run import StageRun
    from culturekit.core.stage import Stage, Tried


MALFORMED = "malformed"  # How the reasons begin that set rows aside for a person to look at

# The share of malformed lines of a dump up to which they are told and are no finding, unless that is asked for.
BY_ACCIDENT = 0.001


EXPORTS: Mapping[ExportChoice | None, tuple[ExportFormat, ...]] = {
    None: (),
    "csv": ("csv",),
    "jsonl": ("jsonl",),
    "both": ("csv", "jsonl"),
}


def run_one(
    stage: "Stage",
    out: Path,
    *,
    wait: bool,
    as_json: bool,
    also: ExportChoice | None = None,
    workers: int | None = 1,
    engine: str = "local",
    fresh: bool = False,
    strict: bool = False,
) -> "StageRun":
    """Run a stage into a folder; leave with 1 when rows were set aside."""
    from culturekit.core.engines import engine_for
    from culturekit.core.run import run_stage

    pool = engine_for(engine, workers=workers, folder=out.parent)
    with stoppable(), progress_for(as_json=as_json) as progress, pool as at_work:
        progress.stage(stage.name)
        stage = replace(stage, exports=EXPORTS[also])
        run = run_stage(stage, out, engine=at_work, progress=progress, wait=wait, fresh=fresh, replace=REPLACE.get())
    print(json.dumps(as_data(run)) if as_json else line_about(run, width=0))
    for sentence in () if as_json else run.manifest.notes.get("summary", ()):
        print(sentence)
    for sentence in run.manifest.notes.get(NOT_COMPARABLE, ()):
        typer.echo(f"not comparable: {sentence}", err=True)
    if every := every_abstained(run):
        typer.echo(every, err=True)
        raise typer.Exit(1)
    leave_if_set_aside({"": run}, strict=strict, again=" The same command with --fresh asks about them once more.")
    return run


def leave_if_set_aside(runs: Mapping[str, "StageRun"], *, strict: bool, again: str = "") -> None:
    """Leave with 1 when rows of some stage wait for a person; the name of each begins what is said of it."""
    for few in filter(None, map(few_malformed, runs.values())):
        typer.echo(few, err=True)
    waiting = {name: run for name, run in runs.items() if set_aside(run, strict=strict)}
    for name, run in waiting.items():
        if findings := run.manifest.notes.get("findings"):
            typer.echo(f"{name}to be looked at: {'; '.join(findings)}", err=True)
        if QUARANTINED in run.manifest.counts:
            typer.echo(f"{name}{waiting_rows(run)}{again}", err=True)
    if waiting:
        raise typer.Exit(1)


@contextmanager
def stoppable() -> Iterator[None]:
    """Say what Ctrl-C leaves behind."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted: what was done is kept, and the same command goes on from there", err=True)
        raise


def tell(stage: "Stage", out: Path, *, pilot: int | None, wait: bool, as_json: bool) -> None:
    """Print what a stage would ask, after a pilot where one is wanted; leave with 1 where its replies are of no use."""
    if stage.asking is None:
        raise UsageError("nobody is asked", found=stage.name)
    tried = None if pilot is None else tried_first(stage, out, pilot, wait=wait, as_json=as_json)
    plan = stage.asking.plan(out, tried)
    if as_json:
        print(json.dumps({**plan.as_data(), **({} if tried is None else {"pilot": tried.as_data()})}))
    else:
        for line in (*(tried.lines() if tried else ()), *plan.lines()):
            print(line)
        print("nothing was sent" if tried is None else "the same command without --pilot asks about the rest")
    if tried is not None and tried.to_mend:
        typer.echo(tried.to_mend, err=True)
        raise typer.Exit(1)


def tried_first(stage: "Stage", out: Path, size: int, *, wait: bool, as_json: bool) -> "Tried":
    """Try a stage on a few rows; the answers lie where it will find them."""
    from culturekit.core.engines import LocalEngine
    from culturekit.core.run import run_part

    if stage.asking is None or stage.asking.pilot is None or stage.asking.free:
        judge = "" if stage.asking is None else stage.asking.judge
        raise UsageError("a pilot tells what a paid judge costs, and this one is free", found=judge)
    ask = stage.asking.pilot
    with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
        progress.stage("pilot")
        tried = run_part(stage, out, lambda work: ask(work, size), engine=engine, progress=progress, wait=wait)
    if tried is None:
        raise UsageError(f"nothing is left to try: the {stage.name} is done", where=str(out))
    return tried


def set_aside(run: "StageRun", *, strict: bool) -> bool:
    """Tell whether rows wait for a person: dropped as malformed, kept without an answer, or found to be odd."""
    malformed = malformed_rows(run) > 0 and (strict or not few_malformed(run))
    return malformed or bool(run.manifest.notes.get("findings")) or run.manifest.counts.get(QUARANTINED, 0) > 0


def malformed_rows(run: "StageRun") -> int:
    """Count what was dropped as malformed."""
    return sum(count for reason, count in run.manifest.drops.items() if reason.startswith(MALFORMED))


def few_malformed(run: "StageRun") -> str:
    """Tell of malformed lines that are few enough in a dump to be an accident; empty where there are none, or more."""
    lines, malformed = run.manifest.counts.get("lines", 0), malformed_rows(run)
    if run.manifest.stage != "ingest" or not 0 < malformed <= BY_ACCIDENT * lines:
        return ""
    return (
        f"{malformed:,} of {lines:,} lines {'is' if malformed == 1 else 'are'} malformed and left out "
        f"({malformed / lines:.4%}); up to {BY_ACCIDENT:.1%} is no finding, unless with --strict"
    )


def every_abstained(run: "StageRun") -> str:
    """Say what to do where no margin is shown to keep the stated error, so that every image abstains."""
    found = run.manifest.notes.get("abstention")
    if not found or found["met"]:
        return ""
    return (
        f"every image abstains: no margin is shown to keep the error at or below {found['max_error']:g} with "
        f"{found['references']:,} {found['calibrated_on']} of {found['artifacts']:,} artifacts. Add references, "
        "allow a larger --max-error, or name more known images with --calibration."
    )


def waiting_rows(run: "StageRun") -> str:
    """Say how many rows got no answer, why, and what to do about it."""
    outcomes = run.manifest.notes.get("outcomes", {})
    why = ", ".join(f"{count:,} {name}" for name, count in outcomes.items() if name not in {"ok", "repaired"})
    count = run.manifest.counts[QUARANTINED]
    rows = counted(count, "rows got no answer and", verb="wait")
    return f"{rows} for a person to look at: {why}."


def as_data(run: "StageRun") -> dict[str, object]:
    """Give a stage's end as data."""
    return {
        "stage": run.manifest.stage, "folder": str(run.folder), "state": run.state, "counts": dict(run.manifest.counts),
        "drops": dict(run.manifest.drops),
        **{name: note for name, note in run.manifest.notes.items() if name == MARKED}, "sha256": run.manifest.sha256,
        "seconds": round(run.seconds, 3),
    }  # fmt: skip


def line_about(run: "StageRun", *, width: int) -> str:
    """Say in one line how a stage ended."""
    counts = ", ".join(counted(count, name) for name, count in run.manifest.counts.items() if count)
    drops = ", ".join(counted_reason(count, reason) for reason, count in run.manifest.drops.items())
    left_out = f" (left out: {drops})" if drops else ""
    marks = ", ".join(run.manifest.notes.get(MARKED, ()))
    left_out += f" (marked: {marks})" if marks else ""
    name = run.name if width else str(run.folder)
    return f"{name:<{width}}  {run.state:<7}  {counts or 'nothing'}{left_out}  {run.seconds:.1f} s"


# Options that every stage has, by name: what is typed, and what it is where nothing is.
Flags: TypeAlias = dict[str, tuple[Any, Any]]

FLAGS: Flags = {
    "workers": (Workers, None),
    "engine": (EngineSpec, "local"),
    "also": (Also, None),
    "wait": (Wait, False),
    "as_json": (AsJson, False),
}


def command_function(declaration: StageCommand) -> Callable[..., None]:
    """Make the function behind a command: inputs, the folder to write, options, and the flags of all stages."""
    taken = list(declared(declaration.stage))
    first, last = flags_of_asking(declaration)
    flags = last | {name: flag for name, flag in FLAGS.items() if getattr(declaration, name, True)}

    def command(out: Path, **typed: Any) -> None:  # noqa: ANN401 - each option has its own type
        check_needs(options_among(taken), typed)
        inputs, flagged = ({name: typed.pop(name) for name in names} for names in (first, flags))
        inputs.pop("prices", None)  # used while it was read
        stage = built(declaration.stage, typed)
        if inputs.get("plan") or inputs.get("pilot"):
            tell(stage, out, pilot=inputs.get("pilot"), wait=flagged["wait"], as_json=flagged["as_json"])
        else:
            run_one(stage, out, **flagged)

    asked = taken[-1:] if isinstance(declaration, AskingCommand) else []  # how answers are bought is taken last
    parameters = [parameter(each) for each in in_order(options_among(each for each in taken if each not in asked))]
    ordered = [
        *(each for each in parameters if each.default is Parameter.empty),
        Parameter("out", Parameter.KEYWORD_ONLY, annotation=Out),
        *(each for each in parameters if each.default is not Parameter.empty),
        *parameters_of(first),
        *map(parameter, options_among(asked)),
        *parameters_of(flags),
    ]
    command.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in ordered}
    command.__name__, command.__doc__ = declaration.stage.__name__, declaration.stage.__doc__
    return command


def flags_of_asking(declaration: StageCommand) -> tuple[Flags, Flags]:
    """Give the flags that have a stage say what it would ask, and the one that has it ask again."""
    if not isinstance(declaration, AskingCommand):
        return {}, {}
    plan = Annotated[bool, typer.Option("--plan", help=declaration.plan)], False
    pilot = Annotated[int | None, typer.Option("--pilot", min=1, help=declaration.pilot)], None
    text = f"{declaration.again} again: no answer is bought twice, and what brought none is asked anew."
    fresh = Annotated[bool, typer.Option("--fresh", help=text)], False
    first = {"plan": plan, **({"pilot": pilot} if declaration.pilot else {}), "prices": (Prices, None)}
    return first, {"fresh": fresh}


def parameters_of(flags: Flags) -> Iterator[Parameter]:
    """Make options of flags."""
    for name, (kind, default) in flags.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def check_needs(options: Iterable[Declared], typed: Mapping[str, Any]) -> None:
    """Reject an option that has no effect without another."""
    for each in options:
        needs, value = each.typed.needs.split(), typed[each.option]
        if not needs or value in (None, typed_as(each)[1]) or any(is_typed(one, typed) for one in needs):
            continue
        raise UsageError(
            f"--{each.option.replace('_', '-')} has no effect alone",
            expected=" or ".join(f"--{one.replace('=', ' ')}" for one in needs),
        )


def is_typed(needed: str, typed: Mapping[str, Any]) -> bool:
    """Tell whether an option was typed, or `name=value` with that value, which may be one of several."""
    name, _, value = needed.partition("=")
    found = typed.get(name.replace("-", "_"))
    words = found if isinstance(found, list) else [found]
    return any(value in str(word).split(",") for word in words) if value else bool(found)


def spread_out(command: Callable[..., None]) -> Callable[..., None]:
    """Make options of the dataclasses that a command takes, one of each field."""
    taken = signature(command).parameters.values()
    groups = {each.name: each for each in (declared_as(one.name, one.annotation) for one in taken) if is_group(each)}

    @wraps(command)
    def spread(**typed: Any) -> None:  # noqa: ANN401 - each option has its own type
        check_needs((each for group in groups.values() for each in options_of(group)), typed)
        for name, group in groups.items():
            typed[name] = built(group.kind, {each.option: typed.pop(each.option) for each in options_of(group)})
        command(**typed)

    spaced = [map(parameter, options_of(groups[one.name])) if one.name in groups else [one] for one in taken]
    ordered = [each.replace(kind=Parameter.KEYWORD_ONLY) for group in spaced for each in group]
    spread.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    spread.__annotations__ = {each.name: each.annotation for each in ordered}
    return spread


def in_order(options: Iterable[Declared]) -> list[Declared]:
    """Put options in the order of the help."""
    found = list(options)
    for each in [each for each in found if each.typed.after]:
        found.remove(each)
        found.insert([other.option for other in found].index(each.typed.after) + 1, each)
    return found


def parameter(each: Declared) -> Parameter:
    """Make an option of a field."""
    kind, default = typed_as(each)
    option = option_of(each, each.help)
    return Parameter(each.option, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)


def unstated(cls: type, name: str) -> Any:  # noqa: ANN401 - as Typer types it
    """Make an option of a field for a command that asks whether it was typed: its help says what counts if not."""
    (each,) = (each for each in declared(cls) if each.name == name)
    return option_of(each, f"{each.help} [{each.default}]")


def option_of(each: Declared, help_text: str) -> Any:  # noqa: ANN401 - as Typer types it
    """Make an option with the bounds of a field."""
    names = [f"--{each.typed.name}"] if each.typed.name else []
    offered = spec_completer(each.typed.offers) if each.typed.offers else None
    bounds = each.bounds
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    return typer.Option(*names, help=help_text, min=low, max=high, autocompletion=offered)


def typed_as(each: Declared) -> tuple[Any, Any]:
    """Say what a field is on a command line, and what it is where nothing is typed."""
    kind = list[one_of(each)] if each.several else one_of(each)  # type: ignore[misc]
    if each.default is MISSING:
        return kind, Parameter.empty
    if each.several or is_handle(each):
        return kind | None, None
    if each.typed.once:
        return str, ",".join(each.default)
    return (kind | None if each.optional else kind), each.default


def one_of(each: Declared) -> Any:  # noqa: ANN401 - any type
    """Say what one value of an option is."""
    if is_handle(each):
        return Path
    if each.typed.read or each.typed.gather:
        return str
    return get_args(each.kind)[0] if get_origin(each.kind) in SEVERAL else each.kind


def is_handle(each: Declared) -> bool:
    """Tell whether a field takes a folder or a file as a handle."""
    read = each.typed.read or each.typed.gather
    return read is None and isinstance(each.kind, type) and issubclass(each.kind, Input)


def built(kind: Any, typed: Mapping[str, Any], default: Any = MISSING) -> Any:  # noqa: ANN401 - whatever is called
    """Call a dataclass, or a function, with what was typed; what was not is as in its default."""
    found: dict[str, Any] = {}
    for each in declared(kind):
        if is_group(each):
            inside = {one.option: typed[one.option] for one in options_of(each)}
            found[each.name] = built(each.kind, inside, each.default)
        elif each.help and typed.get(each.option) is not None:
            found |= values_of(each, typed[each.option])
    return kind(**found) if default is MISSING else replace(default, **found)


def values_of(each: Declared, typed: Any) -> dict[str, Any]:  # noqa: ANN401 - each option has its own type
    """Make the value of a field of what was typed, and that of another field where it takes the further values."""
    if each.typed.gather:
        return {each.name: each.typed.gather(typed)}
    if each.typed.once and not is_handle(each):
        return {each.name: tuple(word.strip() for word in typed.split(",")) if typed else ()}
    read = each.typed.read or (lambda text: text)
    value = tuple(map(read, typed)) if isinstance(typed, list) else read(typed)
    if each.typed.others:
        return {each.name: value[0], each.typed.others: value[1:]}
    if is_handle(each):
        return {each.name: each.kind((value,) if each.typed.once else value)}
    return {each.name: value}
