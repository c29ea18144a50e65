"""The chain of hashes of a run: its stages and their files as they lie there, and what is found wrong with them."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import polars as pl

from culturekit.core.choices import ExportFormat
from culturekit.core.digests import (
    JOURNAL,
    MANIFEST,
    RUN_RECORD,
    InputRecord,
    Manifest,
    digest,
    digest_file,
    digest_tree,
    read_manifest,
)
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.inputs import RunRecord
from culturekit.core.roles import REPORT
from culturekit.core.run import RECIPE_RECORD
from culturekit.core.stage import key_stated
from culturekit.llm.journal import FILE as JOURNAL_FILE
from culturekit.release.card_facts import keys_behind

# `broken`: bytes or numbers are not what they are said to be; `finding`: a person has to look at it; `note`: what
# cannot be followed from here, and need not be.
Severity: TypeAlias = Literal["broken", "finding", "note"]

# Made again and equal; not made again, for a stated reason; not equal.
Verdict: TypeAlias = Literal["verified", "not verifiable", "wrong"]

# What reading a file that somebody changed can raise, or a stage that reads it.
_UNREADABLE = (
    CultureKitError, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError,
    pl.exceptions.PolarsError,
)  # fmt: skip

_BESIDE = (MANIFEST, RUN_RECORD, JOURNAL)  # lie in a stage folder and are no output of the stage
_STAGES_BEHIND = "the stages behind the release"  # what a card names as an input that is no file
_EXPORTED: Mapping[str, ExportFormat] = {".csv": "csv", ".jsonl": "jsonl"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: how bad, which check, where, what, and how it should have been."""

    severity: Severity
    check: str
    where: str
    problem: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        expected = f"; expected {self.expected}" if self.expected else ""
        found = f"{',' if expected else ';'} found {self.found}" if self.found else ""
        return f"{self.where}: {self.problem}{expected}{found}"


@dataclass(frozen=True, slots=True)
class ScoreVerdict:
    """What became of one row of a `scores` table: which row, what it scores, and whether it was made again."""

    folder: str
    row: int
    metric: str
    model: str
    concept: str | None
    country: str | None
    group: str | None
    params: str
    verdict: Verdict
    how: str


@dataclass(slots=True)
class Ledger:
    """Gathers findings and verdicts while the checks go on, and counts what was looked at."""

    findings: list[Finding] = field(default_factory=list)
    verdicts: list[ScoreVerdict] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def broken(self, check: str, where: str, problem: str, *, expected: object = "", found: object = "") -> None:
        """Say that something is not what it is said to be."""
        self.findings.append(Finding("broken", check, where, problem, str(expected), str(found)))

    def finding(self, check: str, where: str, problem: str, *, expected: object = "", found: object = "") -> None:
        """Say that a person has to look at something."""
        self.findings.append(Finding("finding", check, where, problem, str(expected), str(found)))

    def note(self, check: str, where: str, problem: str) -> None:
        """Say what cannot be followed from here."""
        self.findings.append(Finding("note", check, where, problem))

    def judge(self, folder: str, row: Mapping[str, Any], verdict: Verdict, how: str) -> None:
        """Say what became of a score; `row` has its number beside its columns."""
        columns = ("row", "metric", "model", "concept", "country", "group", "params")
        self.verdicts.append(ScoreVerdict(folder, verdict=verdict, how=how, **{name: row[name] for name in columns}))

    def count(self, what: str, number: int = 1) -> None:
        """Count what was looked at."""
        self.checked[what] += number

    @contextmanager
    def guarded(self, check: str, where: str) -> Iterator[None]:
        """Turn what a changed file raises into a finding, so that the other checks go on."""
        try:
            yield
        except _UNREADABLE as error:
            self.broken(check, where, f"could not be read as it should be ({type(error).__name__}: {error})")


@dataclass(frozen=True, slots=True)
class FinishedStage:
    """A stage folder: its name in the run, its manifest, and by role the places where its run found its inputs."""

    name: str
    folder: Path
    manifest: Manifest
    places: Mapping[str, Path]


@dataclass(slots=True)
class RunTree:
    """A run, or one stage folder standing alone.

    Attributes:
        root: the folder that was named.
        stages: by name.
        alone: whether the root is itself the stage folder.
        content: what files and stage folders hold now, by hash, as far as it was looked at.
    """

    root: Path
    stages: dict[str, FinishedStage]
    alone: bool
    content: dict[Path, InputRecord] = field(default_factory=dict)

    def record(self, path: Path) -> InputRecord | None:
        """Give what a file or a stage folder holds now, if it was hashed."""
        return self.content.get(path.resolve())


class _RecipeRecord(msgspec.Struct):
    """The part of a recipe record that names its stages."""

    stages: list[str]


def open_tree(root: Path, ledger: Ledger) -> RunTree:
    """Read the manifests of a run, or of one stage folder."""
    if not root.is_dir():
        raise UsageError("there is no such folder", where=str(root), expected="the folder of a run")
    alone = (root / MANIFEST).is_file()
    folders = [root] if alone else sorted(path for path in root.iterdir() if path.is_dir() and path.name[0] != ".")
    stages: dict[str, FinishedStage] = {}
    for folder in folders:
        if folder.is_symlink() and not alone:
            ledger.broken("folders", folder.name, "a link leads out of the run", found=folder.readlink())
            continue
        with ledger.guarded("folders", f"{folder.name}/{MANIFEST}"):
            manifest = read_manifest(folder)
            if manifest is None:
                ledger.finding("folders", folder.name, "not a finished stage", expected=f"a {MANIFEST} in it")
                continue
            _check_form(folder, manifest, ledger)
            stages[folder.name] = FinishedStage(folder.name, folder, manifest, _places_of(folder, manifest, ledger))
    if not alone:
        _look_beside(root, ledger)
        for name in sorted(set(stages) - _of_recipe(root, stages)):
            ledger.note("folders", name, "is of an earlier recipe, and no stage of this one reads it: not looked at")
            del stages[name]
    if not stages and not any(finding.severity == "broken" for finding in ledger.findings):
        raise UsageError("not the folder of a run", where=str(root), expected=f"folders with a {MANIFEST}, or one")
    ledger.count("finished stages", len(stages))
    return RunTree(root, stages, alone)


def _check_form(folder: Path, manifest: Manifest, ledger: Ledger) -> None:
    """Make sure that a manifest says nothing but what manifests say: reading it passes over all else."""
    there = msgspec.json.decode((folder / MANIFEST).read_bytes())
    if there != msgspec.json.decode(manifest.encode()):
        ledger.broken("chain", f"{folder.name}/{MANIFEST}", "says something that no manifest says")


def _of_recipe(root: Path, stages: Mapping[str, FinishedStage]) -> set[str]:
    """Name the stages of the recipe, and those that they read; all, where no recipe tells."""
    try:
        waiting = [*msgspec.json.decode((root / RECIPE_RECORD).read_bytes(), type=_RecipeRecord).stages, REPORT.form]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return set(stages)
    found: set[str] = set()
    while waiting:
        stage = stages.get(waiting.pop())
        if stage is not None and stage.name not in found:
            found.add(stage.name)
            waiting += [name for path in stage.places.values() for name in (path.name, path.parent.name)]
    return found


def _look_beside(root: Path, ledger: Ledger) -> None:
    """Look at what lies beside the stages: the recipe, and nothing else but what runs hide."""
    for path in sorted(root.iterdir()):
        if path.name.startswith(".") and path.name.endswith(".partial"):
            ledger.note("folders", path.name, "is a stage that was begun and not finished")
        elif path.is_file() and path.name != RECIPE_RECORD and not path.name.startswith("."):
            ledger.finding("folders", path.name, "lies beside the stages and is of none of them")


def _places_of(folder: Path, manifest: Manifest, ledger: Ledger) -> dict[str, Path]:
    """Read from the run record where inputs were; it is outside the hashes, so what lies there is hashed anew."""
    where = f"{folder.name}/{RUN_RECORD}"
    try:
        record = msgspec.json.decode((folder / RUN_RECORD).read_bytes(), type=RunRecord)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if manifest.inputs:
            ledger.finding("folders", where, f"the run record cannot be read ({error})")
        return {}
    places = {}
    for role, text in record.inputs.items():
        if "\0" in text + record.outside.get(role, ""):
            ledger.finding("folders", where, f"the place of {role!r} is one that no file can have")
            continue
        places[role] = record.place_of(folder, role)
    return places


def check_chain(tree: RunTree, ledger: Ledger) -> None:
    """Follow the chain from the outputs of each stage to the inputs of the next."""
    for stage in tree.stages.values():
        with ledger.guarded("chain", stage.name):
            _check_written(tree, stage, ledger)
            _check_journal(stage, ledger)
    for stage in tree.stages.values():
        with ledger.guarded("chain", stage.name):
            _check_inputs(tree, stage, ledger)


def _check_written(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hash what a stage wrote, and what decided its bytes; look for what it did not write."""
    manifest = stage.manifest
    for name in sorted({path.name for path in stage.folder.iterdir()} - {*manifest.outputs, *_BESIDE}):
        ledger.broken("chain", f"{stage.name}/{name}", "is in no manifest", expected="only what the stage wrote")
    for path in stage.folder.rglob("*"):
        if path.is_symlink():
            ledger.broken("chain", str(path.relative_to(stage.folder.parent)), "a link leads out of the stage's folder")
    found = {name: _check_output(tree, stage, name, ledger) for name in sorted(manifest.outputs)}
    content, where = digest({name: one.sha256 for name, one in manifest.outputs.items()}), f"{stage.name}/{MANIFEST}"
    if content != manifest.sha256:
        problem = "the hash of all outputs is not that of the hashes listed"
        ledger.broken("chain", where, problem, expected=content, found=manifest.sha256)
    key = key_stated(manifest, exports_of(manifest))
    ledger.count("keys worked out")
    if manifest.key != key:
        problem = "the key is not that of its inputs, options and seeds"
        ledger.broken("chain", where, problem, expected=key, found=manifest.key)
    tree.content[stage.folder.resolve()] = InputRecord(digest(found), manifest.stage, stage=manifest.stage)


def _check_output(tree: RunTree, stage: FinishedStage, name: str, ledger: Ledger) -> str:
    """Compare one output with its record: bytes, hash, number of files, number of rows; give its hash."""
    path, where, record = stage.folder / name, f"{stage.name}/{name}", stage.manifest.outputs[name]
    if not path.exists():
        ledger.broken("chain", where, "is gone", expected=f"SHA-256 {record.sha256}")
        return "gone"
    found, files, size = digest_tree(path) if path.is_dir() else (digest_file(path), 0, path.stat().st_size)
    tree.content[path.resolve()] = InputRecord(found, name, stage=stage.manifest.stage)
    ledger.count("files hashed", max(files, 1))
    if found != record.sha256:
        ledger.broken("chain", where, "is not what its stage wrote", expected=f"SHA-256 {record.sha256}", found=found)
    elif (files, size) != (record.files, record.bytes):
        stated = f"{record.files} files, {record.bytes} bytes"
        ledger.broken(
            "chain", where, "the manifest miscounts it", expected=f"{files} files, {size} bytes", found=stated
        )
    if path.suffix == ".parquet":
        with ledger.guarded("chain", where):
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            ledger.count("tables counted")
            counts = {stage.manifest.counts.get(path.stem, rows), rows if record.rows is None else record.rows}
            if counts != {rows}:
                ledger.broken("chain", where, "the manifest counts other rows", expected=rows, found=sorted(counts))
    return found


def _check_journal(stage: FinishedStage, ledger: Ledger) -> None:
    """Compare every reply that was paid for with its checksum; journals outlive runs, so no manifest lists them."""
    path, where = stage.folder / JOURNAL / JOURNAL_FILE, f"{stage.name}/{JOURNAL}/{JOURNAL_FILE}"
    if not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            pages = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            for number, checksum, raw in connection.execute("SELECT number, checksum, raw FROM replies"):
                ledger.count("replies of journals")
                if zlib.crc32(raw if isinstance(raw, bytes) else str(raw).encode()) != checksum:
                    ledger.broken("journal", where, f"reply {number} is not what came: its checksum differs")
    except sqlite3.Error as error:
        pages = [str(error)]
    if pages != ["ok"]:
        ledger.broken("journal", where, "the file is damaged", found="; ".join(pages[:3]))


def exports_of(manifest: Manifest) -> tuple[ExportFormat, ...]:
    """Name the forms in which tables were asked for besides Parquet; a stage may write such files by itself, too."""
    suffixes = {Path(name).suffix for name in manifest.outputs}
    found = tuple(sorted(form for suffix, form in _EXPORTED.items() if suffix in suffixes))
    return found if manifest.key == key_stated(manifest, found) else ()


def _check_inputs(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Find each input of a stage, by its place and then by its content, and hash what lies outside the run."""
    root, written = tree.root.resolve(), {record.sha256 for record in tree.content.values()}
    for role, record in sorted(stage.manifest.inputs.items()):
        where = f"{stage.name} <- {role}"
        ledger.count("inputs followed")
        path = stage.places.get(role)
        inside = path is not None and path.resolve().is_relative_to(root) and not tree.alone
        expected = f"SHA-256 {record.sha256}"
        if path is not None and path.exists():
            _follow(tree, stage, role, path, ledger)
        elif path is not None and not inside:
            problem = "lay outside this folder and is no longer there"
            ledger.finding("chain", where, problem, expected=expected, found=path)
        elif record.sha256 not in written and path is None and not record.stage:
            ledger.note("chain", where, "is named by its content and its run does not say where it lay")
        elif record.sha256 not in written:
            ledger.broken("chain", where, "no stage of the run wrote this input", expected=expected)


_IMAGES_OF_ANYBODY = "a folder of images"  # an input known by its pictures alone, also where a stage made the folder


def _follow(tree: RunTree, stage: FinishedStage, role: str, path: Path, ledger: Ledger) -> None:
    """Compare what lies where an input was with what the manifest says of it."""
    record, where = stage.manifest.inputs[role], f"{stage.name} <- {role}"
    known = tree.record(path)
    if record.name == _STAGES_BEHIND:
        found = digest(keys_behind(path))
    elif known is not None and record.name != _IMAGES_OF_ANYBODY:
        found = known.sha256
    elif path.is_dir() and (record.name == _IMAGES_OF_ANYBODY or not (path / MANIFEST).is_file()):
        ledger.note("chain", where, "is a folder named by the content of its images; it was not hashed here")
        return
    else:
        found, name = (_content_of(path), record.name) if path.is_dir() else (digest_file(path), path.name)
        tree.content[path.resolve()] = InputRecord(found, name, stage=record.stage)
    if found != record.sha256:
        problem, now = f"{stage.name} was not made from what lies there now", f"{path.parent.name}/{path.name}"
        ledger.broken("chain", where, problem, expected=f"SHA-256 {record.sha256}", found=f"{found} in {now}")


def _content_of(folder: Path) -> str:
    """Hash what a stage folder outside the run holds now, output by output as its manifest names them."""
    manifest = read_manifest(folder)
    paths = [] if manifest is None else [folder / name for name in sorted(manifest.outputs)]
    return digest({
        path.name: "gone" if not path.exists() else digest_tree(path)[0] if path.is_dir() else digest_file(path)
        for path in paths
    })  # fmt: skip


def fingerprint(tree: RunTree) -> str:
    """Hash all manifests of a run, and its recipe: whoever knows it knows that this is the run they were told of."""
    files = {name: stage.folder / MANIFEST for name, stage in sorted(tree.stages.items())}
    if not tree.alone and (tree.root / RECIPE_RECORD).is_file():
        files[RECIPE_RECORD] = tree.root / RECIPE_RECORD
    return digest({name: digest_file(path) for name, path in files.items()})
