"""How many images of a finished run people would have to look at, for corrected scores of a certain width."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.captions.caption_files import USUAL_CAPTION
from culturekit.builders.space.space_files import count_of_kinds
from culturekit.config.kinds import AnyRecipe, wired
from culturekit.core import roles
from culturekit.core.choices import ANSWERS_PER_HOUR, RATERS, PromptKind
from culturekit.core.declared import Seed
from culturekit.core.digests import read_manifest
from culturekit.core.errors import ConfigError, MissingDependency, Problem, UsageError, check_choice
from culturekit.core.inputs import Files, manifest_of, upstream
from culturekit.core.registry import parse_spec
from culturekit.core.run import known_records
from culturekit.core.schemas import AUDITS, MATCHES, RECOGNITION
from culturekit.core.stage import (
    TRY_AGAIN,
    Ahead,
    Asking,
    Engine,
    Left,
    PlannedStage,
    Progress,
    Quiet,
    Slot,
    Stage,
    ToPlan,
    input_records,
    key_of,
)
from culturekit.core.tables import read_table
from culturekit.generation.folder.folder_listing import list_folder
from culturekit.generation.runner import ImagePlan, known_pace
from culturekit.generation.stages.generate_stage import run_pilot
from culturekit.index.embedding.embedding import seconds_for_one
from culturekit.llm.ledger import journal_for
from culturekit.metrics.corrected.audit_gates import MARKS, ONE_RATER, closest_level, marks_of
from culturekit.metrics.corrected.audit_sampling import (
    AuditForecast,
    BatchForecast,
    audit_forecast,
    batch_forecast,
    images_for,
)
from culturekit.metrics.corrected.audited_counts import audited_counts
from culturekit.metrics.corrected.corrected_diversity import vendi_corrected
from culturekit.metrics.diversity.labels import STANDARD_KERNELS, Weights
from culturekit.report.report_stage import folders_of
from culturekit.report.run_folders import RunFolders
from culturekit.scores.qvs import answers_of

ASSUMED = 0.8  # How often a mapping is taken to be right where neither a first audit nor a diagnosis tells

FIRST = "first audit"

BATCH = 8  # Images of a batch where a run has no diversity that says how many


@dataclass(frozen=True, slots=True)
class AuditWish:
    """What is wanted of an audit."""

    width: Annotated[
        float, Field(ge=0.001, le=1, description="Of the interval of each model's corrected diversity.")
    ] = 0.05
    kernel: Annotated[
        str, Field(description="Diversity that is meant: country, continent, hierarchical, artifact or uniform.")
    ] = "country"
    accuracy: Annotated[
        float | None,
        Field(ge=0.01, le=1, description="How often the mapping is right. [by the run's audit, diagnosis, else 0.8]"),
    ] = None
    per_hour: Annotated[float, Field(ge=1, description="Answers that one person gives in an hour.")] = ANSWERS_PER_HOUR
    people: Annotated[int, Field(ge=1, le=50, description="People who look at every image.")] = RATERS
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The audit of a model: how many images, how wide the interval is then, and with half and twice as many; hours."""

    model: str
    images: int
    of: int
    width: float
    half: float | None
    twice: float | None
    hours: float
    reached: bool


def audit_plan(
    root: Path, wish: AuditWish, *, pilot: Path | None = None, progress: Progress = Quiet(),  # noqa: B008
) -> tuple[list[AuditPlan], str, list[str], dict[str, float]]:  # fmt: skip
    """Plan the audit of each model of a run; say what the plan takes to be known, and how a first audit is marked.

    Last, by what part intervals of the first audit are as wide with each other instrument of the run as second.
    """
    check_choice("kernel", wish.kernel, tuple(STANDARD_KERNELS))
    weights = STANDARD_KERNELS[wish.kernel]
    of_artifacts = weights[2] > 0
    if of_artifacts and (pilot is not None or wish.accuracy is not None):
        raise UsageError(
            "whole batches, which kernels with artifacts need, are foretold by the mapped ones alone",
            expected="neither --audits nor --accuracy", found=f"--kernel {wish.kernel}",
        )  # fmt: skip
    if pilot is not None and wish.accuracy is not None:
        raise UsageError("a first audit says how often the mapping is right", expected="--audits or --accuracy")
    run = folders_of(root)
    size = run.size if run.has(roles.SCORES) else BATCH
    first, accuracy, source = None, None, "the diversity of batches scatters as the mapped one does"
    if pilot is not None:
        first, source = read_table(pilot, AUDITS), f"{FIRST}: {pilot}"
    elif not of_artifacts:
        first, accuracy, source = known_of(run, wish, weights)
    plans, marks = [], set[str]()
    progress.begin(len(run.models), "models")
    for number, model in enumerate(run.models):
        rng = np.random.default_rng([wish.seed, number])
        matches = run.matches(model)
        forecast: AuditForecast | BatchForecast
        if of_artifacts:
            forecast = batch_forecast(matches, weights=weights, size=size, rng=rng)
        else:
            forecast = audit_forecast(matches, weights=weights, size=size, accuracy=accuracy, pilot=first, rng=rng)
        if first is not None:
            nearest = matches.filter(pl.col("rank") == 1)
            marks |= set(marks_of(nearest, first, None, "drawn", closest_level(weights)[1]))
        width_at = cache(forecast.width)
        least, most = forecast.least(), forecast.images
        images = images_for(width_at, wish.width, least=least, most=most)
        images = min(-(-images // size) * size, most) if of_artifacts else images
        half, twice = (width_at(n) if least <= n <= most else None for n in (images // 2, images * 2))
        hours = images * wish.people / wish.per_hour
        width = width_at(images)
        plans.append(AuditPlan(model, images, most, width, half, twice, hours, width <= wish.width))
        progress.advance(1)
    narrower = {} if first is None else with_second(run, first, wish.kernel, size, wish.seed)
    return plans, source, [mark for mark in MARKS if mark in marks], narrower


def with_second(run: RunFolders, answers: pl.DataFrame, kernel: str, size: int, seed: int) -> dict[str, float]:
    """Say what part of the width of a first audit is left with each other instrument as second, over all models.

    Nothing is said where one instrument alone, or the two, cannot be corrected: then there are no widths to compare.
    """
    names = run.variants(roles.MATCHES_BY, run.models[0])

    def width(images: pl.DataFrame, second: pl.DataFrame | None) -> float:
        rng = np.random.default_rng(seed)
        found = vendi_corrected(images, answers, weights=kernel, size=size, second=second, rng=rng)
        return found.high - found.low

    def widths(others: Mapping[str, pl.DataFrame]) -> float | None:
        try:
            return sum(width(part, others.get(model)) for model, images in parts.items() for part in images)
        except UsageError:
            return None

    parts = {model: run.matches(model).partition_by("concept") for model in run.models} if names else {}
    alone, found = widths({}), {}
    for name in names if alone else ():
        others = {model: read_table(path, MATCHES) for model, path in run.by_model(roles.MATCHES_BY, name).items()}
        both = widths(others) if set(others) == set(parts) else None
        if both is not None and alone:
            found[name] = both / alone
    return found


def known_of(run: RunFolders, wish: AuditWish, weights: Weights) -> tuple[pl.DataFrame | None, float | None, str]:
    """Give the answers that corrected the scores of a run, or else how often its mapping is right, and who says so."""
    folder, scored = run.folder(roles.SCORES), run.found(roles.SCORES)
    tables = [role for role in scored.inputs if role.startswith("audit")] if scored else []
    if wish.accuracy is None and tables:
        answers, _ = answers_of(Files({role: upstream(folder, role) for role in tables}))
        try:
            for model in run.models:
                for images in run.matches(model).filter(pl.col("rank") == 1).partition_by("concept"):
                    audited_counts(images, answers, weights=weights)
        except UsageError as error:
            return None, *accuracy_of(run, None, f"; answers of this run tell nothing: {error.problem}")
        return answers, None, f"{FIRST}: that of this run"
    return None, *accuracy_of(run, wish.accuracy)


def accuracy_of(run: RunFolders, stated: float | None, more: str = "") -> tuple[float, str]:
    """Say how often the mapping is right, and who says so; `more` is said too."""
    if stated is not None:
        return stated, f"the mapping is right in {stated:.0%}, as stated"
    known = run.read(roles.DIAGNOSIS, RECOGNITION)
    counts = (
        None if known is None else known.filter(pl.col("country").is_not_null()).select("shown", "recognised").sum()
    )
    if counts is None or not counts["shown"][0]:
        return ASSUMED, f"the mapping is taken to be right in {ASSUMED:.0%}: no diagnosis tells; see --accuracy{more}"
    found = max(counts["recognised"][0] / counts["shown"][0], 0.01)
    return (
        found,
        f"the mapping is right in {found:.0%} of held-out references; of generated images it may be less{more}",
    )


def audit_plan_lines(
    root: Path, plans: list[AuditPlan], source: str, marks: list[str], narrower: Mapping[str, float], wish: AuditWish
) -> Iterator[str]:
    """Say a plan in words."""
    yield f"{'model':<20} {'images':>7} {'of':>8} {'width':>7} {'half':>7} {'twice':>7} {'hours':>7}"
    for plan in plans:
        half, twice = ("" if width is None else f"{width:.3f}" for width in (plan.half, plan.twice))
        yield (
            f"{plan.model:<20} {plan.images:>7,} {plan.of:>8,} {plan.width:>7.3f} {half:>7} {twice:>7} "
            f"{plan.hours:>7.1f}{'' if plan.reached else '  not reached'}"
        )
    yield (
        f"Width of the 95 % interval of corrected diversity (kernel {wish.kernel}); the concepts of a model share its "
        f"images. Half, twice: with half and twice as many; blank: too few, or more than there are. Hours: of all "
        f"{wish.people} people, at {wish.per_hour:g} answers."
    )
    measured = source.startswith(FIRST) and ONE_RATER not in marks
    people = "err as there" if measured else "are taken to be right: only a first audit of several people tells more"
    yield f"Simulated: {source}. People {people}."
    yield from (f"Marked: {mark}. {MARKS[mark]}" for mark in marks)
    for name, part in narrower.items():
        saved = f"about {part * part:.0%} of these images do" if part < 1 else "it saves no images"
        yield f"With {name} as second instrument (audit.second) its intervals are {part:.2f} as wide: {saved}."
    if plans:
        most = max(plan.images for plan in plans)
        people = "" if wish.people == RATERS else f" --people {wish.people}"
        whole = " --drawing batches" if STANDARD_KERNELS[wish.kernel][2] > 0 else ""
        if whole:
            yield "Single images correct kernels with artifacts from 20 of each prompt on; whole batches from 12 on."
        yield f"Next: culturekit annotate serve {shlex.quote(str(root))} --images {most}{people}{whole}"


def as_data(plans: list[AuditPlan], source: str, marks: list[str], narrower: Mapping[str, float]) -> dict[str, object]:
    """Give a plan as data."""
    return {"models": [asdict(plan) for plan in plans], "source": source, "marked": marks, "second": dict(narrower)}


HOURLY = 8.0  # US dollars, what one study (CULTIVate, on Prolific) paid


def people_line(answers: Mapping[str, int], *, per_hour: float, hourly: float) -> str:
    """Say what answers, by what they are about, take of people's time and money."""
    parts = " and ".join(f"{count:,} {about}" for about, count in answers.items())
    every = sum(answers.values())
    hours = every / per_hour
    return (f"People: {every:,} answers, {parts}: about {hours:,.0f} hours at {per_hour:g} an hour, "
            f"${hours * hourly:,.0f} at ${hourly:g} an hour")  # fmt: skip


# What a run would be refused for: found before its first stage, hours before it is the turn of those that lack it.


def waits(stage: Stage, undone: set[Path]) -> bool:
    """Tell whether a stage reads what is still to be made."""
    return any(path in undone or path.parent in undone for path in stage.inputs.values())


def state_of(stage: Stage, folder: Path, undone: set[Path]) -> str:
    """Tell whether a stage is done, cut off, out of date, or not begun."""
    manifest = read_manifest(folder)
    begun = folder.with_name(f".{folder.name}.partial").joinpath("key").is_file()
    if waits(stage, undone):
        return "cut off" if begun else "to do" if manifest is None else "to check again"
    if manifest is not None and manifest.key == key_of(
        stage, input_records(stage.inputs, known=known_records(stage, folder))
    ):
        return "to try again" if manifest.notes.get(TRY_AGAIN) else "done"
    return "cut off" if begun else "to do" if manifest is None else "out of date"


def refusals(stages: Sequence[Stage], workdir: Path) -> list[tuple[UsageError, list[str]]]:
    """Find what is missing, each once, with the stages that need it.

    A finished stage needs nothing any more; one that is next, and was asked for replies before, may have all of them.
    """
    missing: dict[str, tuple[UsageError, list[str]]] = {}
    for index, stage in enumerate(stages):
        try:
            stage.before()
        except UsageError as error:
            if needs_it(stages[:index], stage, workdir):
                missing.setdefault(str(error), (error, []))[1].append(stage.name)
    return list(missing.values())


def needs_it(earlier: Sequence[Stage], stage: Stage, workdir: Path) -> bool:
    """Tell whether a stage is still to be done, and would not find out at once."""
    undone: set[Path] = set()
    for one in earlier:
        if state_of(one, workdir / one.name, undone) != "done":
            undone.add(workdir / one.name)
    if state_of(stage, workdir / stage.name, undone) == "done":
        return False
    return bool(undone) or journal_for(workdir / stage.name) is None


# What stands beside the stages of a run and plans them: counts of work, and what would be asked or bought.

Count: TypeAlias = Callable[[], int | None]  # Counts what a stage works on, as far as that can be known now

Prompts: TypeAlias = Callable[[Sequence[PromptKind]], int | None]
"""Counts the prompts of some kinds, as far as that can be known now."""

EMBEDDED = "embedded"  # The encoder and the scorer that come with culturekit: how long they take is known

# What seconds rest on: those that follow are of one core, as benchmarks of this package found them.
MEASURED, PILOT, STATED = "one core at measured rates", "a pilot on this machine", "the requests a minute (rpm) stated"

SECONDS_PER_UNIT = {"ingest": 8.0e-7, "generate": 2.5e-3, "index": 1.1e-3, "map": 1.3e-3, "quality": 8.0e-4}
"""Per byte of dump, or per image: `python benchmarks/stage_rates.py`."""

SECONDS_PER_PAIR = {"score-c3": 4.0e-5, "select": 5.0e-6}
"""Of captions and pictures, with vectors of 768 and 512 numbers: `python benchmarks/c3_filtering.py`."""

SECONDS_EMBEDDED = {
    ("letters", "texts"): 6.0e-5, ("simulated", "texts"): 5.0e-5,
    ("simulated", "images"): 3.5e-3, (EMBEDDED, "images"): 1.1e-3,
}  # fmt: skip
"""Per text or image, by the encoder without weights: `python benchmarks/c3_scale.py`."""

SECONDS_ANSWERED = {"captions": 4.0e-5, "images": 4.0e-4}
"""Of the simulated models, about a caption or an image: the same script."""

SECONDS_PER_BYTE = 8.0e-8
"""Of a picture file from a folder, to decode it: a PNG of 512 pixels takes about 40 ms, a simulated one 0.3."""

LOOKED_AT = {"index": "references"}
"""The role of the pictures that a kind of stage looks at, where that is not `images`."""

MODEL_OPTIONS = ("encoder", "scorer")
"""The options that say who looks at pictures: of the stage, or of the index that it looks them up in."""

DECODING = {"generate", "index", "map", "quality"}  # Kinds of stages that decode every picture

PILOTED = 32  # Texts, or pictures, on which an encoder is timed

BYTES_PER_UNIT = {
    "ingest": 0.5, "generate": 4_900.0, "index": 1_300.0, "map": 1_400.0, "quality": 20.0,
    "embed": 3_100.0,  # of 768 numbers; while they are made, twice as much lies beside them
}  # fmt: skip
"""Written per byte of dump, or per image: the same script."""


def unknown(*_: object) -> int | None:
    """Count nothing before the stages in front have run."""
    return None


def looks(plan: ToPlan) -> PlannedStage:
    """Plan a stage that takes time alone, for each picture of a stage in front that it reads."""
    pictures = plan.ahead.get(LOOKED_AT.get(plan.stage.kind, "images"))
    return PlannedStage(plan.stage.name, plan.state) if pictures is None else timed(plan, pictures.units)


def works(count: Count, unit: str = "images") -> Slot:
    """Plan a stage that takes time alone, for so many units."""
    return lambda plan: timed(plan, count(), unit)


def timed(plan: ToPlan, units: int | None, unit: str = "images") -> PlannedStage:
    """Say how long so many units take, and what is written of them, where that is known."""
    size = scaled(units, BYTES_PER_UNIT.get(plan.stage.kind))
    seconds, rests = seconds_of(plan, units)
    return PlannedStage(plan.stage.name, plan.state, units, unit, bytes=size, seconds=seconds, rests=rests)


def asks(*, count: Count = unknown, requests: Count = unknown) -> Slot:
    """Plan a stage: where it asks a model, exactly once what it reads is there; before that are counts."""

    def planned(plan: ToPlan) -> PlannedStage:
        asking = plan.stage.asking
        if asking is None:
            return makes()(plan) if plan.stage.kind == "generate" else looks(plan)
        units = count()
        if asking.ahead or (plan.settled and all(path.exists() for path in plan.stage.inputs.values())):
            found = asking.plan(plan.out, None)
            units, left = found.units, found.left
        else:
            dollars = None if units is None or asking.each is None else units * asking.each()
            left = Left() if asking.free else Left(requests(), None, dollars)
        seconds, rests = seconds_asked(asking, units, left.requests)
        return PlannedStage(plan.stage.name, plan.state, units, asking.unit, None, seconds, *left, rests=rests)

    return planned


def seconds_asked(asking: Asking, units: int | None, requests: int | None) -> tuple[float | None, str]:
    """Say how long answers take at least, and what that rests on: of a real model only the limit of requests tells."""
    if asking.a_minute is not None and requests is not None:
        return 60 * requests / asking.a_minute, STATED
    rate = SECONDS_ANSWERED.get(asking.unit) if asking.free and parse_spec(asking.judge).name == "simulated" else None
    return (None, "") if units is None or rate is None else (units * rate, MEASURED)


def makes(prompts: Prompts = unknown) -> Slot:
    """Plan images, those of a folder as many as it has; `prompts` counts prompts before their table is there."""

    def planned(plan: ToPlan) -> PlannedStage:
        stage = plan.stage
        if "folder" in stage.trees:
            return timed(plan, len(list_folder(stage.inputs["folder"]).pictures), "pictures")
        images, table = made_by(stage), stage.inputs["prompts"]

        def count() -> int | None:
            asked = count_of_kinds(table, images.kinds) if table.is_file() else prompts(images.kinds)
            return None if asked is None else asked * images.repeats * images.slots

        return timed(plan, count()) if stage.asking is None else asks(count=count, requests=count)(plan)

    return planned


def made_by(stage: Stage) -> ImagePlan:
    """Read what a stage makes from its options."""
    known = {field.name: stage.options[field.name] for field in fields(ImagePlan) if field.name in stage.options}
    return ImagePlan(**known)  # type: ignore[arg-type]


def seconds_of(plan: ToPlan, units: int | None) -> tuple[float | None, str]:
    """Say how long a stage takes, and what that rests on; of a model or an encoder with weights only a pilot can tell.

    An encoder or a scorer with weights takes as long as they are large: nobody knows before they have run.
    """
    kind, stages = plan.stage.kind, [plan.stage, *(one.stage for one in plan.ahead.values())]
    if units is None:
        return None, ""
    if kind in SECONDS_PER_PAIR:
        return units * SECONDS_PER_PAIR[kind], MEASURED
    if kind == "generate" and "weights" in plan.stage.options:
        return scaled(units, known_pace(plan.out)), PILOT
    encoder = next(
        (str(one.options[name]) for one in stages for name in MODEL_OPTIONS if name in one.options), EMBEDDED
    )
    if (what := embedded_by(plan.stage)) in plan.paces:
        return units * plan.paces[what], PILOT
    if kind == "embed":
        return scaled(units, SECONDS_EMBEDDED.get((parse_spec(what[0]).name, what[1]))), MEASURED
    if kind not in SECONDS_PER_UNIT or parse_spec(encoder).name != EMBEDDED:
        return None, ""
    bytes_each = max(map(picture_bytes, stages)) if kind in DECODING else 0.0
    return scaled(units, SECONDS_PER_UNIT[kind] + SECONDS_PER_BYTE * bytes_each), MEASURED


def embedded_by(stage: Stage) -> tuple[str, str]:
    """Name the encoder of a stage that embeds, and what it reads."""
    if stage.kind not in {"embed", "index"}:
        return "", ""
    reads_texts = any(role.startswith("texts") for role in stage.inputs)
    return str(stage.options["encoder"]), "texts" if reads_texts else "images"


def picture_bytes(stage: Stage) -> float:
    """Say how large picture files are on average, where a stage takes them from a folder; else they are small."""
    if "folder" not in stage.trees:
        return 0.0
    sizes = [file.size for file in list_folder(stage.inputs["folder"]).pictures]
    return sum(sizes) / max(len(sizes), 1)


def scaled(units: int | None, rate: float | None) -> int | None:
    """Multiply, where both are known, and round up."""
    return None if units is None or rate is None else int(units * rate) + 1


# What a run would do, told without doing it: stages, bytes, requests, tokens, cost, minutes.


def plan_recipe(
    recipe: AnyRecipe, workdir: Path, *, paces: Mapping[tuple[str, str], float] = MappingProxyType({})
) -> list[PlannedStage]:
    """Plan every stage, with the `paces` of encoders that a pilot found; nothing is sent and nothing is written.

    Raises:
        ConfigError: a run would be refused, and not only for what this machine lacks, such as a key.
    """
    planned: list[PlannedStage] = []
    undone: set[Path] = set()
    coming: dict[Path, Ahead] = {}
    steps = wired(recipe, workdir).steps
    lacks = lacking([step.stage for step in steps], workdir)
    for step in steps:
        stage, folder = step.stage, workdir / step.stage.name
        state = state_of(stage, folder, undone)
        if state == "done":
            planned.append(PlannedStage(stage.name, state))
            coming[folder] = Ahead(stage, manifest_of(folder).counts.get("images"))
            continue
        settled = not undone or state != "to do"
        undone.add(folder)
        ahead = {
            role: coming[source]
            for role, path in stage.inputs.items()
            for source in (path, path.parent)
            if source in coming
        }
        one = (step.plan or asks())(ToPlan(stage, state, folder, settled, ahead, paces))
        planned.append(replace(one, lacks=lacks.get(stage.name, "")))
        coming[folder] = Ahead(stage, planned[-1].units)
    return planned


def lacking(stages: Sequence[Stage], workdir: Path) -> dict[str, str]:
    """Say what stages lack on this machine, by their names; whatever else a run would be refused for is raised."""
    found = refusals(stages, workdir)
    wrong = [
        Problem(str(error), ", ".join(names)) for error, names in found if not isinstance(error, MissingDependency)
    ]
    if wrong:
        raise ConfigError(wrong)
    return {name: str(error) for error, names in found for name in names}


def plan_lines(steps: Sequence[PlannedStage]) -> Iterator[str]:
    """Write a plan as a table."""
    wide = max([20, *(len(step.name) for step in steps)])
    head = f"{'work':>18} {'MB':>8} {'minutes':>8} {'requests':>9} {'tokens':>13} {'USD':>8}"
    yield f"{'stage':<{wide}} {'state':<14} {head}"
    for step in [*steps, total_of(steps)]:
        work = "" if step.units is None else f"{step.units:,} {step.unit}"
        size = "" if step.bytes is None else f"{step.bytes / 1e6:,.1f}"
        minutes = "" if step.seconds is None else f"{step.seconds / 60:,.2f}"
        requests = "" if step.requests is None else f"{step.requests:,}"
        tokens = "" if step.tokens is None else f"{step.tokens:,}"
        dollars = "" if step.dollars is None else f"{step.dollars:,.2f}"
        yield (
            f"{step.name:<{wide}} {step.state:<14} {work:>18} {size:>8} {minutes:>8} "
            f"{requests:>9} {tokens:>13} {dollars:>8}"
        )
    yield "A blank is what cannot be known before the stages in front of it have run. Nothing was sent or written."
    yield f"Minutes: {MEASURED}; --pilot times models and encoders with weights; `?rpm=` of a SPEC tells of one asked."
    for rests in (PILOT, STATED):
        if named := [step.name for step in steps if step.rests == rests and step.seconds is not None]:
            yield f"From {rests}: {', '.join(named)}"
    for lacks, alike in groupby(sorted((step.lacks, step.name) for step in steps if step.lacks), itemgetter(0)):
        yield f"A run would be refused: {', '.join(name for _, name in alike)}: {lacks}"
    unknown = [step.name for step in steps if step.dollars is None]
    if unknown:
        yield f"The total lacks the dollars of {', '.join(unknown)}: plan again when more stages have run."


def total_of(steps: Sequence[PlannedStage]) -> PlannedStage:
    """Add up what is known of all stages; the state says whether that is everything."""

    def added(name: str) -> float:
        return sum(getattr(step, name) or 0 for step in steps)

    known = all(None not in (step.requests, step.tokens, step.dollars) for step in steps)
    return PlannedStage(
        "total", "all" if known else "at least", bytes=round(added("bytes")), seconds=added("seconds"),
        requests=round(added("requests")), tokens=round(added("tokens")), dollars=added("dollars"),
    )  # fmt: skip


def embeds_with_weights(stage: Stage) -> bool:
    """Tell whether a stage embeds with an encoder of which only a pilot can say how long it takes."""
    encoder, of = embedded_by(stage)
    return bool(encoder) and (parse_spec(encoder).name, of) not in SECONDS_EMBEDDED


def pilot_encoders(
    recipe: AnyRecipe, workdir: Path, *, on_start: Callable[[str], None] = lambda _: None
) -> dict[tuple[str, str], float]:
    """Time the encoders with weights on a few usual texts, or on pictures of noise; on a CPU by one core."""
    stages = [step.stage for step in wired(recipe, workdir).steps if embeds_with_weights(step.stage)]
    paces: dict[tuple[str, str], float] = {}
    for stage in stages:
        if (what := embedded_by(stage)) not in paces:
            on_start(stage.name)
            paces[what] = seconds_for_one(*what, [f"{USUAL_CAPTION} {number}" for number in range(PILOTED)])
    return paces


def pilot_models(
    recipe: AnyRecipe, workdir: Path, *, engine: Engine, progress: Progress,
    on_start: Callable[[str], None] = lambda _: None,
) -> list[str]:  # fmt: skip
    """Make two images of each model with weights, where the run will find them; name the stages that had any left."""
    every = [step.stage for step in wired(recipe, workdir).steps]
    generating = [stage for stage in every if stage.kind == "generate"]
    stages = [stage for stage in generating if "weights" in stage.options]
    if not stages and not any(map(embeds_with_weights, every)):
        raise UsageError(
            "a pilot times models that run on this machine, and the recipe has none",
            found=", ".join(
                str(one.options["backend"]) for one in generating if one.options["model"] in recipe.evaluated
            ),
        )
    tried = []
    for stage in stages:
        prompts = stage.inputs["prompts"]
        if not prompts.is_file():
            raise UsageError(
                "a pilot needs the prompts, which are not built yet", where=str(prompts),
                hint="Run the recipe with --until prompts first.",
            )  # fmt: skip
        on_start(stage.name)
        out, seed = workdir / stage.name, stage.seeds["images"]
        if run_pilot(prompts, made_by(stage), stage, out, seed=seed, engine=engine, progress=progress) is not None:
            tried.append(stage.name)
    return tried
