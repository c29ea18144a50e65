"""A folder of images imported at once: shards through the engine, one table, an account of everything found."""

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

import msgspec
import polars as pl

from culturekit.core.atomic import machine_fails, write_atomically
from culturekit.core.choices import COPIES_PER_SHARD, PictureFormat, PromptKind
from culturekit.core.digests import InputRecord, digest, digest_bytes, digest_file
from culturekit.core.errors import IntegrityError, UsageError, counted
from culturekit.core.pictures.picture_files import NoPicture, read_bytes_inside
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.registry import Spec, parse_spec
from culturekit.core.schemas import CSPACE, IMAGES, PROMPTS
from culturekit.core.stage import Outcome, Stage, Work, run_shards, seal_pictures
from culturekit.core.tables import (
    check_rows,
    merge_parts,
    prompts_table,
    read_table,
    save_parquet,
    space_table,
    write_drops,
    write_table,
)
from culturekit.generation.backend import BACKENDS, FOLDER
from culturekit.generation.folder.folder_detection import (
    KnownPrompts,
    Names,
    Naming,
    find_list,
    guessed,
    naming_of,
    stated_list,
)
from culturekit.generation.folder.folder_listing import (
    Listing,
    PictureFile,
    list_folder,
    parse_patterns,
    shown,
    unreadable_folders,
)
from culturekit.generation.folder.folder_plan import UNMATCHED, FolderPlan, Layout, Row, plan_folder
from culturekit.generation.picture_store import brought_in, linked, statuses_of
from culturekit.kg.countries import countries, country_files

# A folder of images named by its content; what has been hashed once, at the same size and time, is remembered.

WORTH_REMEMBERING = 64_000_000  # bytes of a folder from which hashing it takes longer than a reader would like to wait
_FILES_AT_ONCE = 16_384
_MOST_THREADS = 8
_State: TypeAlias = tuple[bytes, int, int]  # name, size and time of change of a file


def hashed(listing: Listing, memory: Path) -> Listing:
    """Add the hash of every picture; of a large folder they are kept in a file, so that what is cut goes on."""
    remembered = sum(file.size for file in listing.pictures) >= WORTH_REMEMBERING
    known = _read_memory(memory) if remembered else {}
    noted: dict[_State, str] = {}
    done: list[PictureFile] = []

    def one(file: PictureFile) -> PictureFile:
        sha256 = known.get(_state_of(file))
        return replace(file, sha256=sha256) if sha256 else hash_file(listing.root, file)

    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(listing.pictures), _FILES_AT_ONCE):
            done += threads.map(one, listing.pictures[start : start + _FILES_AT_ONCE])
            new = {_state_of(file): file.sha256 for file in done[start:] if file.sha256}
            noted |= new
            if remembered and not new.keys() <= known.keys():
                _write_memory(memory, known | noted)
    if remembered and noted != known:
        _write_memory(memory, noted)
    return replace(listing, pictures=tuple(done))


def content_of(listing: Listing) -> str:
    """Hash what a folder holds: names and bytes of its pictures, and the names of everything else."""
    return digest(
        {
            "pictures": [[shown(file.name), file.sha256 or file.problem] for file in listing.pictures],
            "others": [[shown(other.name), other.reason] for other in listing.others],
        }
    )


def hash_file(root: Path, file: PictureFile) -> PictureFile:
    """Add the hash of a file, or why it cannot be read; one that is not to be opened stays as it is."""
    if file.problem:
        return file
    try:
        with (root / file.name).open("rb") as opened:
            if not _unchanged(opened.fileno(), file):
                raise _changed_meanwhile(root, file.name)
            return replace(file, sha256=hashlib.file_digest(opened, "sha256").hexdigest())
    except FileNotFoundError as error:
        raise _changed_meanwhile(root, file.name) from error
    except OSError as error:
        if machine_fails(error):
            raise
        return replace(file, problem=f"file cannot be read: {error.strerror}")


def _state_of(file: PictureFile) -> _State:
    return os.fsencode(file.name), file.size, file.changed


def _changed_meanwhile(root: Path, name: str) -> IntegrityError:
    """Say that somebody else is at work in the folder."""
    return IntegrityError(
        "the folder of images changed while it was read",
        where=str(root),
        found=f"another file, or none, at {shown(name)!r}",
        hint="Wait until nothing writes there, and run the same command again: it goes by what the folder holds then.",
    )


def _read_memory(path: Path) -> dict[_State, str]:
    """Read what was noted; a memory that cannot be read is none."""
    try:
        notes = msgspec.msgpack.decode(path.read_bytes(), type=list[tuple[bytes, int, int, str]])
    except (OSError, msgspec.DecodeError):
        return {}
    return {(name, size, changed): sha256 for name, size, changed, sha256 in notes}


def _write_memory(path: Path, noted: Mapping[_State, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.msgpack.encode([(*state, sha256) for state, sha256 in noted.items()]))


# Importing the pictures of a folder: each read once, copied as it is or written again, or a row with the reason.

# what stands of an image of which nobody says more; all else is empty
_DEFAULTS: Mapping[str, Any] = {
    "path": "", "rewriter": "unknown", "provider_params": "{}", "sha256": "", "width": 0, "height": 0,
}  # fmt: skip


def _image_id_of(row: Row) -> str:
    """Name an image: the same file under the same name and model has the same id, wherever the folder lies."""
    model = row.cells["model"]
    if row.source is None:
        return digest([model, row.cells["prompt_id"], row.cells["repeat"], row.cells["slot"], "missing"])[:16]
    return digest([model, row.source, row.file.sha256 if row.file else ""])[:16]


def _table_row(row: Row, duplicate_of: str | None) -> dict[str, Any]:
    """Write a row as the table has it; what only reading the picture tells is still to come."""
    return {
        **_DEFAULTS, **row.cells, "image_id": _image_id_of(row), "status": row.status, "reason": row.reason,
        "source": row.source, "source_sha256": (row.file and row.file.sha256) or None, "duplicate_of": duplicate_of,
    }  # fmt: skip


def _duplicates_of(plan: FolderPlan) -> dict[int, int]:
    """Find files with the same bytes: for each further one, by its place among the rows, the place of the first."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for index, row in enumerate(plan.rows):
        if row.file is not None and row.file.sha256:
            original = first.setdefault(row.file.sha256, index)
            if original != index:
                found[index] = original
    return found


# how a file that can stay as it is comes into the new folder: as a second name of the same file, or as a copy
Taking: TypeAlias = Literal["link", "copy"]
_FOLDER_OPTIONAL = ("concept", "country", "source", "source_sha256", "duplicate_of")
# the columns of an images table made from a folder
_FOLDER_SCHEMA: Mapping[str, pl.DataType] = {
    **IMAGES.schema,
    **{name: IMAGES.optional[name].dtype for name in _FOLDER_OPTIONAL},
}


@dataclass(frozen=True, slots=True)
class Handling:
    """How files are copied, and in which format the others are written again; the first decides no byte."""

    files: Taking = "link"
    format: PictureFormat = "png"


@dataclass(frozen=True, slots=True)
class _Shard:
    """A run of pictures, as a work item: the rows to be, each with the image whose bytes it repeats."""

    root: Path
    out: Path
    part: Path
    handling: Handling
    pictures: Sequence[tuple[Row, str | None]]


def take_shard(shard: _Shard) -> int:
    """Import the pictures of a shard, then write its part of the table."""
    rows = [_table_row(row, original) for row, original in shard.pictures]
    for (row, _), cells in zip(shard.pictures, rows, strict=True):
        cells |= _taken(row, cells["image_id"], shard)
    save_parquet(pl.DataFrame(rows, schema=_FOLDER_SCHEMA), shard.part)
    seal_pictures(shard.part, shard.out, rows)
    return len(rows)


def _taken(row: Row, image_id: str, shard: _Shard) -> dict[str, Any]:
    """Import one picture; give what its row says of it.

    Raises:
        IntegrityError: the file is no longer the one that was hashed.
    """
    file = row.file
    assert file is not None
    path = shard.root / file.name
    content = read_bytes_inside(shard.root, file.name)
    if not _unchanged(path, file):
        raise _changed_meanwhile(shard.root, file.name)
    if isinstance(content, NoPicture):
        return {"status": "failed", "reason": str(content)}
    if digest_bytes(content) != file.sha256:
        raise _changed_meanwhile(shard.root, file.name)
    picture = picture_from(content)
    if isinstance(picture, NoPicture):
        return {"status": "failed", "reason": str(picture)}

    def link(to: Path) -> bool:
        if shard.handling.files == "copy" or not linked(path, to):
            return False
        if not _unchanged(to, file):
            raise _changed_meanwhile(shard.root, file.name)
        return True

    stem = f"files/{image_id[:2]}/{image_id}"
    cells = brought_in(content, picture, stem, shard.out, shard.handling.format, link=link)
    return {**cells, "reason": "; ".join(filter(None, [row.reason, cells["reason"]])) or None}


def _unchanged(path: Path | int, file: PictureFile) -> bool:
    """Tell whether a file still has the size and the time that it was listed with."""
    try:
        state = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    return (state.st_size, state.st_mtime_ns) == (file.size, file.changed)


def findings_of(plan: FolderPlan, listing: Listing, *, failed: int) -> Iterator[str]:
    """Write a line per kind of what did not come out clean; nothing when everything did."""
    unmatched = list(plan.with_status("unmatched"))
    ambiguous = sum(bool(row.several) for row in unmatched)
    missing = list(plan.with_status("missing"))
    listed = sum(row.source is not None for row in missing)
    if not listing.pictures:
        yield "the folder holds no picture"
    if len(unmatched) > ambiguous:
        yield f"{counted(len(unmatched) - ambiguous, 'files')} found no prompt"
    if ambiguous:
        yield f"{counted(ambiguous, 'files', verb='fit')} more than one prompt"
    if listed:
        yield f"{counted(listed, 'files in the list', verb='are')} not in the folder"
    if len(missing) > listed:
        yield f"{counted(len(missing) - listed, 'images', verb='have')} no file and should"
    if failed:
        yield f"{counted(failed, 'files')} could not be read as a picture"
    if plan.clashes:
        yield f"{counted(plan.clashes, 'files', verb='state')} a repeat and a slot that another has"
    for name in unreadable_folders(listing):
        yield f"the folder {name or '.'!r} could not be looked into"


_SAMPLES = 5


def take_folder(work: Work, listing: Listing, naming: Naming, plan: FolderPlan, handling: Handling) -> Outcome:
    """Import all pictures of a planned folder, and write the table that lists them."""
    check_rows(pl.DataFrame({"model": [str(row.cells["model"]) for row in plan.rows]}), IMAGES, str(listing.root))
    same = _duplicates_of(plan)
    rows = [
        (row, _image_id_of(plan.rows[same[index]]) if index in same else None) for index, row in enumerate(plan.rows)
    ]
    imported = [(row, original) for row, original in rows if row.file is not None and not row.status]
    root = listing.root.resolve()
    shards = [
        _Shard(root, work.out, work.scratch / f"images-{start:09d}.parquet", handling,
               imported[start : start + COPIES_PER_SHARD])
        for start in range(0, len(imported), COPIES_PER_SHARD)
    ]  # fmt: skip
    run_shards(work, shards, take_shard, size=lambda shard: len(shard.pictures), unit="images")
    without = pl.DataFrame([_table_row(row, original) for row, original in rows if row.status], schema=_FOLDER_SCHEMA)
    images = pl.concat([merge_parts([shard.part for shard in shards], _FOLDER_SCHEMA), without])
    table = _pictures_first(images, [_image_id_of(row) for row in plan.rows if row.dealt])
    write_table(work.out, IMAGES, table)
    counts, drops, notes = _account(table, listing, naming, plan, same)
    of_others = [(name, model) for model, names in plan.other_models.items() for name in names]
    no_rows: list[tuple[str | None, ...]] = [
        (shown(other.name), None, "folder", other.reason, None) for other in listing.others
    ]
    no_rows += [(name, None, "folder", "of another model", model) for name, model in of_others]
    reasons = write_drops(work.out, no_rows)
    moved = table.join(images.select("image_id", before="repeat"), on="image_id").filter(status="ok")
    if count := moved.filter(pl.col("repeat").ne_missing(pl.col("before"))).height:
        notes["moved_to_fill_batches"] = count
    return Outcome({**counts, "drops": sum(reasons.values())}, {**drops, **reasons}, notes)


def _pictures_first(images: pl.DataFrame, dealt: Sequence[str]) -> pl.DataFrame:
    """Deal the places of a prompt that nothing states out again: first to its pictures, then to what is none.

    One picture that cannot be read would else leave the batch of seven others incomplete.
    """
    free = pl.col("image_id").is_in(pl.Series(dealt, dtype=pl.String).implode())
    keys, slots = ["model", "prompt_id"], ["repeat", "slot"]
    some = images.filter(free)
    places = some.sort(*keys, *slots, nulls_last=True).select(slots)
    holders = some.sort(*keys, pl.col("status") != "ok", *slots, nulls_last=True).with_columns(*places)
    return pl.concat([images.filter(~free), holders])


def _account(
    images: pl.DataFrame, listing: Listing, naming: Naming, plan: FolderPlan, same: Mapping[int, int]
) -> tuple[dict[str, int], dict[str, int], dict[str, object]]:
    """Give counts, drops by status, and the notes that stand in the manifest."""
    ok, others = statuses_of(images)
    failures = Counter(reason.partition(":")[0] for reason in images.filter(pl.col("status") == "failed")["reason"])
    notes: dict[str, object] = {
        "naming": {
            "by": naming.described(),
            "guessed": naming.guessed,
            "files": dict(sorted(Counter(row.by for row in plan.rows if row.by and row.status != UNMATCHED).items())),
        },
        "not_pictures": {kind: names[:_SAMPLES] for kind, names in other_kinds(listing).items()},
        "duplicates": _duplicate_groups(plan, same),
        "unmatched": [row.source for row in plan.with_status(UNMATCHED)][:_SAMPLES],
        "failures": dict(sorted(failures.items())),
        "columns_not_used": list(naming.listed.unused) if naming.listed else [],
        "findings": list(findings_of(plan, listing, failed=others.get("failed", 0))),
    }
    counts = {"images": images.height, "ok": ok, "duplicates": len(same)}
    return counts, others, {name: note for name, note in notes.items() if note}


def other_kinds(listing: Listing) -> dict[str, list[str]]:
    """Sort what is no picture by kind, the extension mostly."""
    found: dict[str, list[str]] = defaultdict(list)
    for other in listing.others:
        found[other.reason].append(shown(other.name))
    return dict(sorted(found.items()))


def _duplicate_groups(plan: FolderPlan, same: Mapping[int, int]) -> dict[str, object]:
    """Say how many files repeat the bytes of another, and which."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, original in same.items():
        groups[original].append(index)
    first = list(groups.items())[:_SAMPLES]
    samples = [[str(plan.rows[index].source) for index in [one, *places[:_SAMPLES]]] for one, places in first]
    return {"files": len(same), "of": len(groups), "samples": samples} if groups else {}


@dataclass(frozen=True, slots=True)
class Options:
    """How the files of a folder are named, and how they are taken over.

    A pattern has these fields:

    - `{prompt_id}`: the id; characters that file names cannot hold may be replaced.
    - `{prompt}`: the text, case, spaces, punctuation and accents aside; also cut, where only one prompt begins so.
    - `{artifact}`, `{artifact_id}`, `{concept}`, `{country}`, `{group}`: what the prompt names; a country as code or
      name.
    - `{model}`: with `--model` only its images are taken.
    - `{repeat}`, `{slot}`, `{seed}`: numbers; `{id}`: what tells images apart; `{_}`: anything.

    Without an extension, or with `.*`, any counts. A brace as such is written twice. A pattern is compared with the
    last parts of a path; one that begins with `/` begins at the folder. `{prompt}`, `{prompt_id}` and `{artifact}` take
    as much as they can. What names do not say is dealt out in their order, `img2` before `img10`.

    A list is CSV, TSV, JSON, JSON lines or Parquet, with these columns:

    - `path`, `file_name` or `file`, within the folder;
    - `prompt_id`, or `prompt` or `text`, or `concept` (`object`), `country`, `group` (`region`), `artifact`,
      `artifact_id`;
    - `model`, `model_version`, `seed`, `seed_honoured`, `repeat`, `slot`, `prompt_sent`, `prompt_revised`, `rewriter`,
      `safety`, `requested_at`, `provider_params`;
    - `status` (`refused`, `filtered`) and `reason`, for an image that was never made.

    Attributes:
        pattern: What the parts of a name mean, such as `{prompt}__{id}.png`; several with `|` between
            them, of which the first that leads to a prompt counts.
        manifest: A list of the files, in the folder or from where the command runs.
        files: Whether a file that can stay as it is becomes a second name of the same file, or a copy.
        first: From what number names count repeats and slots.
    """

    pattern: str = ""
    manifest: str = ""
    files: Taking = "link"
    first: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0

    def __post_init__(self) -> None:
        """Refuse a pattern that cannot be read."""
        parse_patterns(self.pattern)


def folder_of(spec: Spec) -> Path:
    """Give the folder that a SPEC names, if it is there."""
    root = Path(spec.target).expanduser()
    if spec.target and root.is_dir():
        return root
    near = sorted(path.name for path in root.parent.glob("*/") if path.name.casefold() == root.name.casefold())
    raise UsageError(
        "there is no such folder of images" if spec.target else "the folder backend needs a folder",
        where=str(spec),
        expected="folder:DIR, a folder that is there",
        found="a file" if spec.target and root.is_file() else "",
        hint=f"Did you mean {near[0]!r}?" if near else "",
    )


def make(spec: Spec) -> NoReturn:
    """Refuse to answer requests: a folder is imported whole, with everything in it that answers none."""
    raise UsageError(
        "a folder of images is imported, not asked",
        where=str(spec),
        hint="Import it with: culturekit generate --backend folder:DIR --out DIR",
    )


# The stage from a folder of images that exist already to an images table.


@dataclass(slots=True)
class ImageFolder:
    """A folder of images and how its files are named; looked into when it is needed, and then once."""

    root: Path
    options: Options
    prompts: Path | None
    layout: Layout
    kinds: tuple[PromptKind, ...] = ()
    cspace: Path | None = None
    read: tuple[Listing, Naming] | None = field(default=None, init=False)

    @property
    def list_path(self) -> Path | None:
        """The list that says what the files are, stated or found in the folder."""
        if self.options.manifest:
            return stated_list(self.root, self.options.manifest)
        return None if self.options.pattern else find_list(self.root)

    def listing(self) -> tuple[Listing, Naming]:
        """List the folder, nothing hashed yet."""
        naming = naming_of(self.root, pattern=self.options.pattern, manifest=self.options.manifest)
        path, beside = self.list_path, ""
        if path is not None and path.resolve().is_relative_to(self.root.resolve()):
            beside = path.resolve().relative_to(self.root.resolve()).as_posix()
        return list_folder(self.root, listed=naming.listed.files if naming.listed else (), leave_out=beside), naming

    def record(self, final: Path) -> InputRecord:
        """Name the folder by the content of its images."""
        if final.resolve().is_relative_to(self.root.resolve()):
            raise UsageError(
                "the output lies in the folder of images itself", where=str(final),
                expected=f"a place outside {self.root}", hint="Choose another --out.",
            )  # fmt: skip
        listing, naming = self.listing()
        listing = hashed(listing, final.with_name(f".{final.name}.hashes"))
        self.read = listing, naming
        return InputRecord(content_of(listing), "a folder of images")

    def known(self, scratch: Path) -> tuple[KnownPrompts | None, Names]:
        """Read the prompts, and what countries and artifacts are called."""
        called = {c.iso: (c.name, c.adjective, c.iso3) for c in countries().values()}
        artifacts: dict[str, list[str]] = {}
        if self.cspace is not None:
            space = read_table(space_table(self.cspace, scratch), CSPACE).select("artifact_id", "name").unique()
            artifacts = dict(space.sort("artifact_id", "name").group_by("artifact_id").agg("name").iter_rows())
        names = Names(called, artifacts)
        if self.prompts is None:
            return None, names
        table = read_table(prompts_table(self.prompts, scratch), PROMPTS)
        if self.kinds:
            table = table.filter(pl.col("kind").is_in(list(self.kinds)))
        return KnownPrompts(table, names), names

    def plan(self, scratch: Path) -> tuple[Listing, Naming, FolderPlan, KnownPrompts | None]:
        """Say what each file stands for; `scratch` is a folder for tables made from public files."""
        listing, naming = self.read or self.listing()
        known, names = self.known(scratch)
        naming = guessed(naming, listing, known)
        return listing, naming, plan_folder(listing, naming, known, self.layout, names=names), known

    def take(self, work: Work, form: PictureFormat) -> Outcome:
        """Do the work of the stage."""
        listing, naming, plan, _ = self.plan(work.scratch)
        return take_folder(work, listing, naming, plan, Handling(self.options.files, form))


def image_folder(
    backend: str,
    prompts: Path | None,
    *,
    model: str | None = None,
    repeats: int | None = None,
    slots: int | None = None,
    kinds: tuple[PromptKind, ...] = (),
    cspace: Path | None = None,
) -> ImageFolder:
    """Describe a folder by its SPEC and what is stated of its images."""
    BACKENDS.check(backend)
    spec = parse_spec(backend)
    options = spec.read(Options)
    layout = Layout(model, repeats=repeats, slots=slots, first=options.first)
    folder = ImageFolder(folder_of(spec), options, prompts, layout, kinds)
    if prompts is not None and ("{artifact}" in options.pattern or folder.list_path is not None):
        folder.cspace = cspace
    return folder


def stage_of(folder: ImageFolder, *, form: PictureFormat = "png") -> Stage:
    """Take in the images of a folder."""
    path = folder.list_path
    trees: dict[str, Callable[[Path], InputRecord]] = {"folder": folder.record}
    if path is not None:  # named by its content, whatever else lies beside it
        trees["list"] = lambda _: InputRecord(digest_file(path), path.name)
    tables = {"list": path, "prompts": folder.prompts, "cspace": folder.cspace}
    inputs = {role: table for role, table in tables.items() if table is not None}
    options = {"backend": FOLDER, "pattern": folder.options.pattern, **asdict(folder.layout)}
    return Stage(
        "images", "generate", 2, partial(folder.take, form=form),
        {"folder": folder.root, **country_files(), **inputs}, {**options, "kinds": list(folder.kinds), "format": form},
        packages=("numpy", "pillow", "polars"), trees=trees,
    )  # fmt: skip
