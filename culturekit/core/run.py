"""A run: a folder with one folder a stage, found by what the stage does and for which model."""

import dataclasses
import logging
import os
import platform
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    import polars as pl

from culturekit.core.atomic import ONCE_MORE, explained_outside, remove_strays
from culturekit.core.digests import JOURNAL, RUN_RECORD, InputRecord, Manifest, describe_outputs, read_manifest
from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.core.inputs import RunRecord
from culturekit.core.plugins import carrying, in_use
from culturekit.core.roles import REAL_IMAGES, Role
from culturekit.core.schemas import SCORES
from culturekit.core.spreadsheet_cells import export_table
from culturekit.core.stage import (
    TRY_AGAIN,
    Engine,
    Outcome,
    Progress,
    Quiet,
    Slot,
    Stage,
    Staging,
    Work,
    check_expected,
    check_sizes,
    input_records,
    key_of,
    right,
    staging,
)
from culturekit.core.tables import read_table
from culturekit.version import VERSION

# Large inputs are hashed once: a file of the same place, size and time of change is the one hashed before.

WORTH_REMEMBERING = 64_000_000  # Bytes from which hashing takes longer than a reader would like to wait


def traces_of(inputs: Mapping[str, Path]) -> dict[str, tuple[int, int]]:
    """Note size and time of change of the large files among inputs."""
    sizes = {role: path.stat() for role, path in inputs.items() if path.is_file()}
    return {role: (s.st_size, s.st_mtime_ns) for role, s in sizes.items() if s.st_size >= WORTH_REMEMBERING}


def plugins_of_run(folders: Iterable[Path]) -> dict[str, str]:
    """Give the packages whose plugins were in use when stages were made, by what they bring."""
    found: dict[str, str] = {}
    for path in (folder / RUN_RECORD for folder in folders):
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found |= msgspec.json.decode(path.read_bytes(), type=RunRecord).plugins
    return found


def known_inputs(final: Path, inputs: Mapping[str, Path]) -> dict[str, InputRecord]:
    """Give the records of large inputs that have not changed since the stage in `final` finished."""
    manifest = read_manifest(final)
    if manifest is None:
        return {}
    try:
        before = msgspec.json.decode((final / RUN_RECORD).read_bytes(), type=RunRecord).traces
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    now = traces_of(inputs)
    return {role: manifest.inputs[role] for role in now if now[role] == before.get(role) and role in manifest.inputs}


def known_records(stage: Stage, final: Path) -> dict[str, InputRecord]:
    """Give the records of large inputs that have not changed, and of trees, which keep notes of their own."""
    return {**known_inputs(final, stage.inputs), **{role: name(final) for role, name in stage.trees.items()}}


RECIPE_RECORD = "recipe.json"  # The recipe as it was run, everything filled in: it lies beside the stage folders


@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a run, and what plans it; without that, it takes time alone, for each picture that it reads."""

    stage: Stage
    plan: Slot | None


@dataclass(frozen=True, slots=True)
class Others:
    """The folders of the other stages that share a budget, of those that join later too."""

    folder: Path
    folders: Sequence[Path]

    def __iter__(self) -> Iterator[Path]:
        return (folder for folder in self.folders if folder != self.folder)


def _column_of(name: str, values: Sequence[object]) -> "pl.Series":
    """Make a column of a parameter: of numbers, or of texts, JSON where it is no single value."""
    import polars as pl

    if all(isinstance(value, int | float | None) and not isinstance(value, bool) for value in values):
        return pl.Series(f"param_{name}", values, pl.Float64, strict=False)
    texts = [
        value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode() for value in values
    ]
    return pl.Series(f"param_{name}", texts, pl.String)


@dataclass(slots=True)
class Run:
    """The stages of a run by role: those that a recipe adds, or the folders of a finished run.

    Example:
        >>> scores = ck.Run("runs/cube").scores("scores")
        >>> scores.filter(metric="vs", param_kernel="country", param_labels="mapped").height > 0
        True

    Attributes:
        root: the folder of the run.
        models: that are evaluated, in the order of the recipe.
        stages: the names of the folders, each after what it reads.
        steps: what was added.
        shared: the folders of the stages that share a budget, by the name of the budget.
    """

    root: Path
    models: Sequence[str] = ()
    stages: Sequence[str] = ()
    steps: list[Step] = field(default_factory=list)
    shared: dict[str, list[Path]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = Path(self.root)

    def add(self, stage: Stage, role: Role, model: str = "", variant: str = "", *, plan: Slot | None = None) -> Path:
        """Add a stage, and give the table that others read from it; `plan` says what it takes besides time."""
        name = role.folder(model, variant)
        if name in self.stages:
            raise UsageError(
                f"two stages of this run would write the folder {name!r}", where=str(self.root),
                hint="Give a model or an instrument of the recipe another name.",
            )  # fmt: skip
        self.stages = (*self.stages, name)
        self.steps.append(Step(replace(stage, name=name, in_run=True), plan))
        return self.table(role, model, variant)

    def sharing(self, budget: str, folder: Path) -> Others:
        """Let a stage share a budget; what the others have spent is not there for it."""
        folders = self.shared.setdefault(budget, [])
        folders.append(folder)
        return Others(folder, folders)

    def folder(self, role: Role, model: str = "", variant: str = "") -> Path:
        """Name the folder of a role."""
        return self.root / role.folder(model, variant)

    def table(self, role: Role, model: str = "", variant: str = "", *, file: str = "") -> Path:
        """Name the main table of a role, or another file of its folder; the folder, where it is read as one."""
        name = file or (f"{role.holds}.parquet" if role.holds else "")
        return self.folder(role, model, variant) / name if name else self.folder(role, model, variant)

    def values_of(self, role: Role, model: str = "") -> Path:
        """Name the values behind the scores of a role."""
        return self.table(role, model, file="values.parquet")

    def has(self, role: Role, model: str = "", variant: str = "") -> bool:
        """Tell whether the run has such a stage."""
        return role.folder(model, variant) in self.stages

    def scores(self, stage: str = "*") -> "pl.DataFrame":
        """Read the scores of a finished run: rows with their stage and number, and `param_NAME` for each parameter."""
        import polars as pl

        found = [
            read_table(path, SCORES).with_columns(stage=pl.lit(path.parent.name)).with_row_index("row")
            for path in sorted(self.root.glob(f"{stage}/scores.parquet"))
        ]
        if not found:
            raise UsageError("there are no scores of such a stage", where=str(self.root), found=stage,
                             expected="a finished run, and the folder of a stage that scores")  # fmt: skip
        whole = pl.concat(found, how="diagonal").sort("stage", "row")
        params = [msgspec.json.decode(text, type=dict[str, Any]) for text in whole["params"]]
        names = sorted({name for each in params for name in each})
        return whole.with_columns(_column_of(name, [each.get(name) for each in params]) for name in names)

    def models_with(self, role: Role, variant: str = "") -> tuple[str, ...]:
        """List the models that have such a stage."""
        return tuple(model for model in self.models if self.has(role, model, variant))

    def by_model(self, role: Role, variant: str = "", *, file: str = "") -> dict[str, Path]:
        """Name the tables of all models that have one, by model."""
        return {model: self.table(role, model, variant, file=file) for model in self.models_with(role, variant)}

    def tables(self, role: Role, variant: str = "") -> dict[str, Path]:
        """Name the tables of all models that have one, by folder."""
        return {role.folder(model, variant): path for model, path in self.by_model(role, variant).items()}

    def every(self, role: Role, variant: str | None = None) -> dict[str, Path]:
        """Name the tables of all folders of a role by folder, those of real images among them, in their order."""
        found = {name: role.read(name, (*self.models, REAL_IMAGES)) for name in self.stages}
        return {name: self.table(role, *of) for name, of in found.items()
                if of is not None and (variant is None or of[1] == variant)}  # fmt: skip

    def variants(self, role: Role, model: str = "") -> list[str]:
        """List the variants of a role, in the order of the stages."""
        found = filter(None, (role.read(name, self.models) for name in self.stages))
        return [variant for owner, variant in found if owner == model]


# Run one stage, unless its finished folder already answers: nothing finished is replaced in silence.

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
        >>> from culturekit.core.stage import Outcome
        >>> from culturekit.core.stage import Stage
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
    with explained_outside(final), staging(final, stage=stage.kind, wait=wait) as staged:
        manifest = read_manifest(final)
        if manifest is not None and manifest.key != key:
            check_replacing(stage, final, manifest, inputs, replace=replace)
        before = None
        if fresh:
            staged.discard()
        elif manifest is not None and manifest.key == key:
            check_sizes(final, manifest)
            if not manifest.notes.get(TRY_AGAIN):
                staged.discard()
                return StageRun(stage.name, final, manifest, "reused", time.perf_counter() - started)
            before = final
        goes_on = staged.open(key) or before is not None
        logger.debug("%s %s in %s", "resuming" if goes_on else "starting", stage.name, final)
        work = Work(dict(stage.inputs), staged.out, staged.scratch, carrying(engine), progress, stage.in_run, before)
        manifest = build(stage, staged, inputs, key, work, started=started)
        return StageRun(stage.name, final, manifest, "resumed" if goes_on else "built", time.perf_counter() - started)


def build(
    stage: Stage, staged: Staging, inputs: Mapping[str, InputRecord], key: str, work: Work, *, started: float
) -> Manifest:
    """Do the work of a stage and publish it; what came to nothing does not replace what did not."""
    outcome = stage.run(work)
    if not isinstance(outcome, Outcome):
        raise UsageError(
            f"the stage {stage.name} answers with something else", expected="an Outcome", found=repr(outcome)
        )
    finished = read_manifest(staged.final)
    if right(outcome) == 0 and finished is not None and right(finished):
        staged.discard()
        raise UpstreamUnavailable(
            f"nothing of {stage.name} came out right, and what was finished stays", where=str(staged.final),
            found="; ".join(outcome.notes.get("findings", ())) or f"{sum(outcome.counts.values()):,} failures",
            hint=f"When what makes it works again, {ONCE_MORE}",
        )  # fmt: skip
    remove_strays(staged.out)  # of workers that were killed: the manifest must not count them
    for parquet in sorted(staged.out.glob("*.parquet")):
        for form in stage.exports:
            export_table(parquet, form)
    manifest = make_manifest(stage, staged.out, inputs, key, outcome)
    staged.publish(manifest, run_record(stage, staged.final, work.engine, time.perf_counter() - started))
    return manifest


def make_manifest(stage: Stage, out: Path, inputs: Mapping[str, InputRecord], key: str, outcome: Outcome) -> Manifest:
    """Describe a finished folder."""
    rows = {f"{name}.parquet": count for name, count in outcome.counts.items()}
    content, outputs = describe_outputs(out, rows)
    return Manifest(
        stage=stage.kind, version=stage.version, key=key, sha256=content, code={"culturekit": VERSION},
        packages={"python": platform.python_version(), **{name: version(name) for name in stage.packages}},
        inputs=inputs, options=stage.options, seeds=stage.seeds, counts=dict(sorted(outcome.counts.items())),
        drops=dict(sorted(outcome.drops.items())), notes=outcome.notes, outputs=outputs,
    )  # fmt: skip


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
        **({"plugins": plugins} if (plugins := in_use()) else {}),
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
            yield f"input {role} ({now.name}) has other content"
    for name, was, given in (("option", manifest.options, stage.options), ("seed", manifest.seeds, stage.seeds)):
        yield from changes(name, was, msgspec.json.decode(msgspec.json.encode(given)))  # as a manifest has it


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
    stage: Stage, final: Path, part: Callable[[Work], Result], *, engine: Engine, progress: Progress, wait: bool = False
) -> Result | None:
    """Do a part of a stage where its run will go on; None, and nothing is done, where the stage is finished."""
    inputs = input_records(stage.inputs, known=known_records(stage, final))
    check_expected(stage, inputs)
    key = key_of(stage, inputs)
    with explained_outside(final), staging(final, stage=stage.kind, wait=wait) as staged:
        manifest = read_manifest(final)
        if manifest is not None and manifest.key == key:
            return None
        staged.open(key)
        return part(Work(dict(stage.inputs), staged.out, staged.scratch, engine, progress, stage.in_run))
