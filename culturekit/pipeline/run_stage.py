"""Run one stage, unless its finished folder already answers."""

import logging
import os
import platform
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from culturekit.pipeline.known_inputs import known_records, traces_of
from culturekit.pipeline.made_otherwise import check_replacing
from culturekit.records.work import Engine, Outcome, Progress, Quiet, Work
from culturekit.stages.stage import Stage, check_expected, check_sizes, input_records, key_of
from culturekit.storage.atomic import remove_strays
from culturekit.storage.exports import export_table
from culturekit.storage.manifest import InputRecord, Manifest, describe_outputs, read_manifest
from culturekit.storage.stage_folder import Staging, staging
from culturekit.storage.system_errors import explained_outside
from culturekit.version import VERSION

__all__ = ["StageRun", "run_stage"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageRun:
    """How a stage ended: its manifest, and whether the work was there already or went on from a cut run."""

    name: str
    folder: Path
    manifest: Manifest
    state: str
    seconds: float


def run_stage(
    stage: Stage,
    final: Path,
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
        ...     rows = ck.read_table(work.inputs["cspace"], ck.TABLES["cspace"]).height
        ...     (work.out / "rows.txt").write_text(str(rows))
        ...     return Outcome({"rows": rows})
        >>> stage = Stage("rows", "rows", 1, count, {"cspace": Path("runs/cube/cspace/cspace.parquet")})
        >>> with ck.LocalEngine(1) as engine:
        ...     run = ck.run_stage(stage, Path("rows"), engine=engine)
        >>> run.state, list(run.manifest.counts)
        ('built', ['rows'])
    """
    started = time.perf_counter()
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
    work = Work(dict(stage.inputs), place.out, place.scratch, engine, progress)
    outcome = stage.run(work)
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
