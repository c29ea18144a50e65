"""Run one stage, unless its finished folder already answers: nothing finished is replaced in silence."""

import dataclasses
import logging
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from culturekit.errors import UsageError
from culturekit.recipe_plugins import carrying
from culturekit.records.work import Engine, Outcome, Progress, Quiet, Work
from culturekit.stages.known_inputs import known_records, traces_of
from culturekit.stages.stage import Stage, check_expected, check_sizes, input_records, key_of
from culturekit.storage.atomic import remove_strays
from culturekit.storage.manifest import JOURNAL, InputRecord, Manifest, describe_outputs, read_manifest
from culturekit.storage.spreadsheet_cells import export_table
from culturekit.storage.stage_folder import Staging, staging
from culturekit.storage.system_errors import explained_outside
from culturekit.version import VERSION

__all__ = ["StageRun", "run_part", "run_stage"]

logger = logging.getLogger(__name__)

SHOWN = 5
LONGEST = 60
ABSENT = object()


@dataclasses.dataclass(frozen=True, slots=True)
class StageRun:
    """How a stage ended: its manifest, and whether the work was there already or went on from a cut run."""

    name: str
    folder: Path
    manifest: Manifest
    state: str
    seconds: float


def run_stage(
    stage: Stage,
    final: Path | str,
    *,
    engine: Engine,
    progress: Progress = Quiet(),  # noqa: B008 - it holds nothing
    wait: bool = False,
    fresh: bool = False,
    replace: bool = False,
) -> StageRun:
    """Make sure that a folder holds the finished stage.

    `fresh` does all work again. What was finished from other inputs is an error, unless it may be replaced.

    Example:
        >>> from culturekit.records.work import Outcome
        >>> from culturekit.stages.stage import Stage
        >>> def count(work):
        ...     rows = ck.read_table(work.inputs["cspace"], "cspace").height
        ...     (work.out / "rows.txt").write_text(str(rows))
        ...     return Outcome({"rows": rows})
        >>> stage = Stage("rows", "rows", 1, count, {"cspace": "runs/cube/cspace/cspace.parquet"})
        >>> with ck.LocalEngine(1) as engine:
        ...     run = ck.run_stage(stage, "rows", engine=engine)
        >>> run.state, list(run.manifest.counts)
        ('built', ['rows'])
    """
    started, final = time.perf_counter(), Path(final)
    stage = dataclasses.replace(stage, inputs={role: Path(path) for role, path in stage.inputs.items()})
    inputs = input_records(stage.inputs, known=known_records(stage, final))
    check_expected(stage, inputs)
    key = key_of(stage, inputs)
    with explained_outside(final), staging(final, stage=stage.kind, wait=wait) as place:
        manifest = read_manifest(final)
        if manifest is not None and manifest.key != key:
            check_replacing(stage, final, manifest, inputs, replace=replace)
        if fresh:
            place.discard()
        elif manifest is not None and manifest.key == key:
            check_sizes(final, manifest)
            place.discard()
            return StageRun(stage.name, final, manifest, "reused", time.perf_counter() - started)
        goes_on = place.open(key)
        logger.debug("%s %s in %s", "resuming" if goes_on else "starting", stage.name, final)
        manifest = build(stage, place, inputs, key, engine=engine, progress=progress, started=started)
        return StageRun(stage.name, final, manifest, "resumed" if goes_on else "built", time.perf_counter() - started)


def build(
    stage: Stage,
    place: Staging,
    inputs: Mapping[str, InputRecord],
    key: str,
    *,
    engine: Engine,
    progress: Progress,
    started: float,
) -> Manifest:
    """Do the work of a stage and publish it."""
    work = Work(dict(stage.inputs), place.out, place.scratch, carrying(engine), progress, stage.in_run)
    outcome = stage.run(work)
    if not isinstance(outcome, Outcome):
        raise UsageError(
            f"the stage {stage.name} answers with something else", expected="an Outcome", found=repr(outcome)
        )
    remove_strays(place.out)  # of workers that were killed: the manifest must not count them
    for parquet in sorted(place.out.glob("*.parquet")):
        for form in stage.exports:
            export_table(parquet, form)
    manifest = make_manifest(stage, place.out, inputs, key, outcome)
    place.publish(manifest, run_record(stage, place.final, engine, time.perf_counter() - started))
    return manifest


def make_manifest(stage: Stage, out: Path, inputs: Mapping[str, InputRecord], key: str, outcome: Outcome) -> Manifest:
    """Describe a finished folder."""
    rows = {f"{name}.parquet": count for name, count in outcome.counts.items()}
    content, outputs = describe_outputs(out, rows)
    return Manifest(
        stage=stage.kind,
        version=stage.version,
        key=key,
        sha256=content,
        code={"culturekit": VERSION},
        packages={"python": platform.python_version(), **{name: version(name) for name in stage.packages}},
        inputs=inputs,
        options=stage.options,
        seeds=stage.seeds,
        counts=dict(sorted(outcome.counts.items())),
        drops=dict(sorted(outcome.drops.items())),
        notes=outcome.notes,
        outputs=outputs,
    )


def run_record(stage: Stage, final: Path, engine: Engine, seconds: float) -> bytes:
    """Note what may differ between two runs that give the same bytes."""
    record = {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "workers": engine.workers,
        "inputs": {role: os.path.relpath(path, final) for role, path in sorted(stage.inputs.items())},
        "outside": {
            role: str(path.resolve())
            for role, path in sorted(stage.inputs.items())
            if not path.resolve().is_relative_to(final.parent.resolve())
        },
        "traces": traces_of(stage.inputs),
    }
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def check_replacing(
    stage: Stage, final: Path, manifest: Manifest, inputs: Mapping[str, InputRecord], *, replace: bool
) -> None:
    """Refuse to put a stage in the place of one that was made from something else; with `replace`, say that it is.

    A new version of the stage, or another form of its tables, is made from the same and may take the place.
    """
    differences = list(what_differs(stage, manifest, inputs))
    if not differences:
        return
    more = f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
    found = "; ".join(differences[:SHOWN]) + more
    if not replace:
        raise UsageError(
            "the finished folder was made from something else", where=str(final), expected=f"the same {stage.kind}",
            found=found, hint="It stays as it is. Choose another --out, or replace it with --replace.",
        )  # fmt: skip
    journal = final / JOURNAL
    paid = f" The replies it paid for stay in {journal}." if journal.is_dir() else ""
    logger.warning("%s is made again and replaces what was finished: %s.%s", final, found, paid)


def what_differs(stage: Stage, manifest: Manifest, inputs: Mapping[str, InputRecord]) -> Iterator[str]:
    """Name each input, option and seed that is another one than when the folder was made."""
    for role in sorted({*manifest.inputs, *inputs}):
        before, now = manifest.inputs.get(role), inputs.get(role)
        if before is None or now is None:
            yield f"input {role} {'was not there' if before is None else 'is gone'}"
        elif before.sha256 != now.sha256:
            yield f"input {role} ({now.name}) has other content: {before.sha256[:12]} -> {now.sha256[:12]}"
    yield from changes("option", manifest.options, as_in_json(stage.options))
    yield from changes("seed", manifest.seeds, as_in_json(stage.seeds))


def as_in_json(value: object) -> Any:  # noqa: ANN401 - anything JSON can hold
    """Give a value as a manifest has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def changes(name: str, before: object, now: object) -> Iterator[str]:
    """Name each value that differs, by its path."""
    if before == now:
        return
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from changes(f"{name} {key}", before.get(key, ABSENT), now.get(key, ABSENT))
    else:
        yield f"{name}: {shown(before)} -> {shown(now)}"


def shown(value: object) -> str:
    """Write a value so that a line stays a line."""
    text = "not there" if value is ABSENT else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


Result = TypeVar("Result")


def run_part(
    stage: Stage,
    final: Path,
    part: Callable[[Work], Result],
    *,
    engine: Engine,
    progress: Progress,
    wait: bool = False,
) -> Result | None:
    """Do a part of a stage where its run will go on; None, and nothing is done, where the stage is finished."""
    inputs = input_records(stage.inputs, known=known_records(stage, final))
    check_expected(stage, inputs)
    key = key_of(stage, inputs)
    with explained_outside(final), staging(final, stage=stage.kind, wait=wait) as place:
        manifest = read_manifest(final)
        if manifest is not None and manifest.key == key:
            return None
        place.open(key)
        return part(Work(dict(stage.inputs), place.out, place.scratch, engine, progress, stage.in_run))
