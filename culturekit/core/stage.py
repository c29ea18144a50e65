"""A stage: what it is given to work with, finished inputs and options in, one folder out by one rename."""

import fcntl
import os
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from culturekit.core.atomic import copy_folder, remove_strays, sync_folder, write_atomically
from culturekit.core.choices import ExportFormat
from culturekit.core.digests import (
    JOURNAL,
    MANIFEST,
    RUN_RECORD,
    InputRecord,
    Manifest,
    digest,
    digest_file,
    read_manifest,
)
from culturekit.core.errors import FolderInUse, IntegrityError, UsageError
from culturekit.core.literal_keys import masked

# Under this name a stage counts rows that stay in its tables, but that a person has to look at.
QUARANTINED = "quarantined"

# Under this name a manifest notes, in sentences, what is not comparable between the models that were scored.
NOT_COMPARABLE = "not_comparable"

MARKED = "marked"  # Under this name a manifest notes what stands beside some of the scores, as it does in their params

# Under this name a release notes, by reason, the artifacts it took in although nobody kept them.
UNDER_REVIEW = "released_under_review"

# Under this name a manifest notes how many rows failed for reasons that pass: the next run tries these again.
TRY_AGAIN = "try_again"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps work items; the answers never depend on how many workers there are or on who did what."""

    @property
    def workers(self) -> int:
        """How many items can be in work at once."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items.

        `function` is importable by name and writes whatever it keeps atomically: an item may be
        worked on again after its worker was killed.
        """


class Progress(Protocol):
    """Hears how far a stage is; the caller decides how that looks."""

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""

    def advance(self, done: int) -> None:
        """Count units as done."""

    def tell(self, totals: str) -> None:
        """Say what has been found so far, in place of what was said before."""


class Quiet:
    """Progress that nobody looks at."""

    def begin(self, total: int, unit: str) -> None:
        """Pass over what there is to do."""

    def advance(self, done: int) -> None:
        """Pass over what is done."""

    def tell(self, totals: str) -> None:
        """Pass over what has been found."""


@dataclass(frozen=True, slots=True)
class Work:
    """The folders and the engine of one stage.

    `out` becomes the finished folder. `scratch` outlives a killed run and is gone when the stage is
    done: finished shards wait there. `in_run` tells that other stages of a run have been paid for before this one.
    `before` is the finished folder of the same stage some of whose rows are tried again.
    """

    inputs: Mapping[str, Path]
    out: Path
    scratch: Path
    engine: Engine
    progress: Progress
    in_run: bool = False
    before: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage says of its work in the manifest: totals, and drops by reason."""

    counts: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


class Ended(Protocol):
    """How a stage ended: its outcome, or the manifest of it."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Totals."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """What else is noted."""


def right(ended: Ended) -> int | None:
    """Count the rows that came out right, such as images that were made; None where a stage does not count them."""
    if (outcomes := ended.notes.get("outcomes")) is not None:
        return sum(int(outcomes.get(name, 0)) for name in ("ok", "repaired"))
    return ended.counts.get("ok")


# What a stage that asks a model would ask, and what that costs: said, and tried on a few rows, before it is done.


class Left(NamedTuple):
    """What is left to ask, and what it takes; None is what is not known."""

    requests: int | None = 0
    tokens: int | None = 0
    dollars: float | None = 0.0


class Announced(Protocol):
    """Something that a command says before a stage is done."""

    def lines(self) -> Iterator[str]:
        """Say it in words."""

    def as_data(self) -> dict[str, object]:
        """Give it as data."""


class AskedPlan(Announced, Protocol):
    """What a stage would ask."""

    @property
    def units(self) -> int:
        """What is asked about."""

    @property
    def left(self) -> Left:
        """What is left to ask."""


class Tried(Announced, Protocol):
    """What a pilot brought: a few rows of a stage, asked for before the rest."""

    @property
    def to_mend(self) -> str:
        """Why a person has to look at the replies before the rest is asked; empty where nobody has to."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a stage asks.

    Attributes:
        judge: who is asked, as a SPEC.
        unit: what is asked about.
        free: whether nobody is paid.
        plan: says what would be asked for a folder, after a pilot where there was one; nothing is sent.
        pilot: asks about so many units, where the stage will find the answers.
        ahead: whether it can be planned before what it reads is there.
        each: says what one of what is asked about costs in US dollars; None where that is not known.
        a_minute: requests that may be sent in a minute; None where nobody stated it.
    """

    judge: str
    unit: str
    free: bool
    plan: Callable[[Path, Any], AskedPlan]
    pilot: Callable[[Work, int], Tried] | None = None
    ahead: bool = False
    each: Callable[[], float] | None = None
    a_minute: float | None = None


# Bytes of a file up to which what an input holds is hashed each time: so much takes some hundredths of a second.
HASHED = 32 << 20

Json = object  # Anything canonical JSON can hold


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as data; `run` is the only thing in it that does anything.

    `name` is the folder's name in a run, `kind` what the stage is. `version` goes up when the same
    inputs and options begin to give other bytes. `expected` holds inputs, by role, to a SHA-256 that
    somebody published. `exports` names the forms in which tables are written besides Parquet. `trees` has, by
    role, what names an input that is no finished stage, such as a folder of images, by its content; it is told
    where the stage's folder will lie, and may keep notes beside it. `before` raises a UsageError where something that
    the stage needs, such as a key or a price, is missing: a run of many stages looks before the first. `asking` has
    the plan of a stage that asks a model. `in_run` tells that it is one of many stages of a run.
    """

    name: str
    kind: str
    version: int
    run: Callable[[Work], Outcome]
    inputs: Mapping[str, Path]
    options: Mapping[str, Json] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    packages: tuple[str, ...] = ("numpy", "polars")
    expected: Mapping[str, str] = field(default_factory=dict)
    exports: tuple[ExportFormat, ...] = ()
    trees: Mapping[str, Callable[[Path], InputRecord]] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    asking: Asking | None = None
    in_run: bool = False


def input_records(
    inputs: Mapping[str, Path], *, known: Mapping[str, InputRecord] = MappingProxyType({})
) -> dict[str, InputRecord]:
    """Name each input by content; what is known already is not hashed again."""
    return {role: known.get(role) or record_of(path) for role, path in sorted(inputs.items())}


def check_expected(stage: Stage, inputs: Mapping[str, InputRecord]) -> None:
    """Make sure that inputs are the ones that somebody published, where that was asked for."""
    for role, expected in stage.expected.items():
        if inputs[role].sha256 != expected.lower():
            raise IntegrityError(
                "not the file that was published", where=str(stage.inputs[role]),
                expected=f"SHA-256 {expected.lower()}", found=inputs[role].sha256,
                hint="Nothing was read from it. Fetch it again.",
            )  # fmt: skip


def record_of(path: Path) -> InputRecord:
    """Hash a file, and know a stage folder by the hashes in its manifest."""
    if path.is_dir():
        manifest = read_manifest(path)
        if manifest is None:
            raise UsageError("not a finished stage folder", where=str(path), expected="a folder with a manifest.json")
        check_content(path, manifest)
        return InputRecord(manifest.sha256, manifest.stage, stage=manifest.stage)
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    content = digest_file(path)
    manifest = read_manifest(path.parent)
    record = manifest.outputs.get(path.name) if manifest else None
    if record is not None and record.sha256 != content:
        raise changed(path)
    return InputRecord(content, path.name, stage=manifest.stage if manifest and record else "")


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Make sure that the files of a finished stage are there with the sizes its manifest lists."""
    for name, record in manifest.outputs.items():
        path = folder / name
        if not path.exists() or (path.is_file() and path.stat().st_size != record.bytes):
            raise changed(path)


def check_content(folder: Path, manifest: Manifest) -> None:
    """Make sure that the files of a finished stage are those its manifest lists; of large ones the sizes tell."""
    check_sizes(folder, manifest)
    for name, record in manifest.outputs.items():
        path = folder / name
        if path.is_file() and record.bytes <= HASHED and digest_file(path) != record.sha256:
            raise changed(path)


def changed(path: Path) -> IntegrityError:
    """Say that a file is not what its stage wrote."""
    return IntegrityError(
        "changed or removed since its stage finished",
        where=str(path),
        expected=f"the file that {path.parent / MANIFEST} lists",
        hint="Remove the folder, and the next run makes it again.",
    )


def key_of(stage: Stage, inputs: Mapping[str, InputRecord]) -> str:
    """Hash everything that decides the bytes of the result."""
    return _key(stage.kind, stage, inputs, stage.exports)


def key_stated(manifest: Manifest, exports: Iterable[str]) -> str:
    """Hash what decided the bytes of a finished stage, as its manifest says it."""
    return _key(manifest.stage, manifest, manifest.inputs, exports)


def _key(kind: str, of: Stage | Manifest, inputs: Mapping[str, InputRecord], exports: Iterable[str]) -> str:
    hashes = {role: record.sha256 for role, record in inputs.items()}
    decided = {"kind": kind, "version": of.version, "inputs": hashes, "options": of.options, "seeds": of.seeds}
    return digest({**decided, **({"exports": named} if (named := sorted(exports)) else {})})


# What a stage would take, as its plan says it: how many units, bytes, seconds, requests, tokens and dollars.


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage of a plan; None is what cannot be known before the stages in front have run.

    `lacks` is what this machine has to be given before a run, such as a key; `rests` is what the seconds rest on.
    """

    name: str
    state: str
    units: int | None = None
    unit: str = ""
    bytes: int | None = None
    seconds: float | None = None
    requests: int | None = 0
    tokens: int | None = 0
    dollars: float | None = 0.0
    lacks: str = ""
    rests: str = ""

    def as_data(self) -> dict[str, object]:
        """Give the stage as data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A stage in front of another, and how many units, such as images, it has or will have, as far as that is known."""

    stage: Stage
    units: int | None


@dataclass(frozen=True, slots=True)
class ToPlan:
    """A stage that is not done.

    Attributes:
        stage: what is to be done.
        state: how far it is.
        out: its folder.
        settled: whether all it reads is there and will stay as it is.
        ahead: the stages of the run that it reads, by the role of the input.
        paces: seconds that an encoder takes for a text or an image on this machine, by its SPEC and what it reads.
    """

    stage: Stage
    state: str
    out: Path
    settled: bool
    ahead: Mapping[str, Ahead]
    paces: Mapping[tuple[str, str], float] = field(default_factory=dict)


Slot: TypeAlias = Callable[[ToPlan], PlannedStage]  # Estimates how many images a stage makes, or what requests cost


# One run at a time in a folder; the second learns who the first is.

POLL_SECONDS = 0.2


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    host: str
    since: str
    command: str

    def __str__(self) -> str:
        """Name the run as its user would recognise it."""
        return f"process {self.pid} on {self.host}, since {self.since}: {self.command}"


@contextmanager
def hold(lock: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file for the length of a block; the kernel frees it when the process dies.

    A lock that somebody else holds is waited for, or refused with the holder's name.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = acquire(lock, wait=wait)
    try:
        os.ftruncate(descriptor, 0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        command = masked(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]))
        os.write(descriptor, msgspec.json.encode(Holder(os.getpid(), socket.gethostname(), since, command)))
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def acquire(lock: Path, *, wait: bool) -> int:
    """Open and lock the file, and make sure that the name still points to what was locked."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 10_000, 0)
            os.close(descriptor)
            if not wait:
                raise in_use(lock, holder) from None
            time.sleep(POLL_SECONDS)
            continue
        with suppress(FileNotFoundError):  # the last holder may have removed it
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)


def in_use(lock: Path, holder: bytes) -> FolderInUse:
    """Say which run holds the lock."""
    try:
        name = str(msgspec.json.decode(holder, type=Holder))
    except msgspec.DecodeError:
        name = "a run that is just starting"
    return FolderInUse(
        "another run is working here", where=str(lock.parent), found=name,
        hint="Wait for it (--wait does), stop it, or work in another folder.",
    )  # fmt: skip


# Seals: what vouches for files of an unfinished stage, so that a later run trusts no file that a power cut damaged.
#
# Whatever a seal names is on disk, name included, before the seal is; content that `whole_file` wrote is there
# already. A file that has another size or checksum than its seal says, for whatever reason, counts as not made.

SEAL = ".seal"
PIECE = 1 << 20


def seal(part: Path, others: Sequence[Path] = ()) -> None:
    """Vouch for a finished part and for other files that it speaks of; from here on they outlive a power cut."""
    seals = {os.path.relpath(path, part.parent): size_and_checksum(path) for path in (part, *others)}
    for folder in sorted({(part.parent / name).parent for name in seals}):
        sync_folder(folder)
    write_atomically(seal_path(part), msgspec.json.encode(seals))


def seal_pictures(part: Path, out: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Vouch for a part of a table of images, and for the files below `out` that its rows name."""
    seal(part, [out / row["path"] for row in rows if row["path"]])


def is_sealed(part: Path) -> bool:
    """Tell whether a part, and all that was sealed with it, is there as it was written."""
    try:
        seals = msgspec.json.decode(seal_path(part).read_bytes(), type=dict[str, tuple[int, int]])
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    folder = part.parent
    try:
        return part.name in seals and all(
            (folder / name).stat().st_size == size and size_and_checksum(folder / name) == (size, checksum)
            for name, (size, checksum) in seals.items()
        )
    except (FileNotFoundError, NotADirectoryError):
        return False


def seal_path(part: Path) -> Path:
    """Name the file that vouches for a part."""
    return part.with_name(part.name + SEAL)


def size_and_checksum(path: Path) -> tuple[int, int]:
    """Read a file for what it is known by."""
    size = checksum = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    return size, checksum


# Work in shards that leave a part file each: what an earlier, cut run has finished is not done again.


class HasPart(Protocol):
    """A work item that is done when its part file is there and sealed."""

    @property
    def part(self) -> Path:
        """What it writes."""


Shard = TypeVar("Shard", bound=HasPart)


def run_shards(
    work: Work,
    shards: Sequence[Shard],
    do: Callable[[Shard], int],
    *,
    size: Callable[[Shard], int],
    unit: str,
    mapper: Callable[[Callable[[Shard], int], Sequence[Shard]], Iterator[int]] | None = None,
) -> None:
    """Do the shards that are not done.

    Args:
        work: Whose progress hears of every shard.
        shards: All of them.
        do: Does one, seals its part and says how many units it was.
        size: Says how many units a shard is before it is done.
        unit: What the units are called.
        mapper: Who does them in place of the engine's workers.
    """
    todo = [shard for shard in shards if not is_sealed(shard.part)]
    total = sum(size(shard) for shard in shards)
    work.progress.begin(total, unit)
    work.progress.advance(total - sum(size(shard) for shard in todo))
    for done in (mapper or work.engine.map)(do, todo):
        work.progress.advance(done)


class Staging:
    """The hidden sibling in which a stage is built: `.NAME.partial` with `out`, `scratch` and the key.

    A killed run leaves it there; the next run of the same key goes on in it, any other starts afresh, but for the
    journal, which lies beside `out` while that is made again.
    """

    def __init__(self, final: Path, *, stage: str) -> None:
        """Name the folders; nothing is touched yet."""
        self.final = final
        self.stage = stage
        self.partial = final.with_name(f".{final.name}.partial")
        self.previous = final.with_name(f".{final.name}.previous")
        self.out = self.partial / "out"
        self.scratch = self.partial / "scratch"
        self.marker = self.partial / "key"
        self.kept = self.partial / JOURNAL

    def recover(self) -> None:
        """Finish or undo a publication that was cut between its two renames."""
        if not self.previous.exists():
            return
        if not self.final.exists():
            finished = self.out if (self.out / MANIFEST).exists() else self.previous
            finished.rename(self.final)
        shutil.rmtree(self.previous, ignore_errors=True)

    def check_free(self) -> None:
        """Refuse to replace anything but an older result of the same stage."""
        if not self.final.exists():
            return
        if not self.final.is_dir():
            raise UsageError("the output is a folder", where=str(self.final), found="a file of that name")
        manifest = read_manifest(self.final)
        if manifest is not None and manifest.stage != self.stage:
            raise UsageError(
                "the folder holds another finished stage", where=str(self.final),
                expected=f"a free place for {self.stage}", found=manifest.stage, hint="Choose another --out.",
            )  # fmt: skip
        if manifest is None and any(self.final.iterdir()):
            raise UsageError(
                "the folder has files that culturekit did not write", where=str(self.final),
                expected="a new, empty or finished stage folder", hint="Choose another --out.",
            )  # fmt: skip

    def open(self, key: str) -> bool:
        """Make the folders ready for a key; tell whether earlier work for the same key goes on."""
        goes_on = self.out.is_dir() and self.marker.exists() and self.marker.read_text(encoding="ascii") == key
        if goes_on:
            (self.out / MANIFEST).unlink(missing_ok=True)
        else:
            self.partial.mkdir(parents=True, exist_ok=True)
            self.clear()
            if not self.kept.exists() and (self.final / JOURNAL).is_dir():
                copy_folder(self.final / JOURNAL, self.kept)
            self.out.mkdir()
            self.scratch.mkdir()
            if self.kept.exists():
                self.kept.rename(self.out / JOURNAL)
                sync_folder(self.out)
            sync_folder(self.partial)
            write_atomically(self.marker, key.encode("ascii"))
        remove_strays(self.partial)
        return goes_on

    def clear(self) -> None:
        """Remove everything from the unfinished folder but its journal."""
        self.marker.unlink(missing_ok=True)
        if (self.out / JOURNAL).is_dir():
            (self.out / JOURNAL).rename(self.kept)
            sync_folder(self.partial)
        for path in self.partial.iterdir():
            if path.is_dir() and path != self.kept:
                shutil.rmtree(path)
            elif path != self.kept:
                path.unlink()
        sync_folder(self.partial)

    def discard(self) -> None:
        """Remove unfinished work, such as what a kill right after publishing left; a journal stays for the next run."""
        if not self.partial.is_dir():
            return
        self.clear()
        if not self.kept.exists():
            self.partial.rmdir()

    def publish(self, manifest: Manifest, run_record: bytes) -> None:
        """Put the finished folder in its place; the manifest is the last file written."""
        remove_strays(self.out)
        for folder in [path for path in self.out.rglob("*") if path.is_dir()]:
            sync_folder(folder)
        write_atomically(self.out / RUN_RECORD, run_record)
        write_atomically(self.out / MANIFEST, manifest.encode())
        sync_folder(self.out)
        if self.final.exists():
            self.final.rename(self.previous)
        self.out.rename(self.final)
        sync_folder(self.final.parent)
        shutil.rmtree(self.previous, ignore_errors=True)
        self.discard()


@contextmanager
def staging(final: Path, *, stage: str, wait: bool = False) -> Iterator[Staging]:
    """Hold a stage folder for one run."""
    with hold(final.with_name(f".{final.name}.lock"), wait=wait):
        staged = Staging(final, stage=stage)
        staged.recover()
        staged.check_free()
        yield staged
