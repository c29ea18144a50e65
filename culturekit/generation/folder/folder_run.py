"""A folder of images imported at once: shards through the engine, one table, an account of everything found."""

import hashlib
import io
import os
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import polars as pl
from PIL import Image

from culturekit.core.atomic import machine_fails, write_atomically
from culturekit.core.choices import PictureFormat
from culturekit.core.counting import counted
from culturekit.core.defaults import COPIES_PER_SHARD
from culturekit.core.digests import digest, digest_bytes
from culturekit.core.errors import IntegrityError
from culturekit.core.pictures.picture_files import NoPicture, encoded, read_bytes_inside
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.schemas import IMAGES
from culturekit.core.stage_folder import run_shards, seal_pictures
from culturekit.core.tables import check_rows, merge_parts, save_parquet, write_drops, write_table
from culturekit.core.work import Outcome, Work
from culturekit.generation.folder.folder_detection import Naming
from culturekit.generation.folder.folder_listing import Listing, PictureFile, shown, unreadable_folders
from culturekit.generation.folder.folder_plan import UNMATCHED, FolderPlan, Row
from culturekit.generation.picture_store import linked, placed, statuses_of

# A folder of images named by its content; what has been hashed once, at the same size and time, is remembered.

WORTH_REMEMBERING = 64_000_000  # bytes of a folder from which hashing it takes longer than a reader would like to wait
_FILES_AT_ONCE = 4_096
_SECONDS_BETWEEN_NOTES = 20.0
_MOST_THREADS = 8


class Noted(msgspec.Struct, array_like=True, frozen=True):
    """A file as it was when it was hashed."""

    name: bytes
    size: int
    changed: int
    sha256: str


_Memory = Mapping[str, Noted]


def hashed(listing: Listing, memory: Path | None = None) -> Listing:
    """Add the hash of every picture; `memory` is a file in which hashes are kept for the next time.

    Hashing that is cut goes on where it was, as far as the memory had been written.
    """
    if memory is not None and sum(file.size for file in listing.pictures) < WORTH_REMEMBERING:
        memory = None
    known = {} if memory is None else _read_memory(memory)
    done: list[PictureFile] = []
    fresh, spoke = False, time.monotonic()
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(listing.pictures), _FILES_AT_ONCE):
            some = listing.pictures[start : start + _FILES_AT_ONCE]
            before = [_noted_hash(file, known) for file in some]
            hashes = iter(
                threads.map(hash_file, [(listing.root, f) for f, h in zip(some, before, strict=True) if not h])
            )
            for file, noted in zip(some, before, strict=True):
                found = noted or next(hashes)
                done.append(replace(file, problem=found[1:]) if found[0] == "!" else replace(file, sha256=found))
            fresh = fresh or not all(before)
            if memory is not None and fresh and time.monotonic() - spoke > _SECONDS_BETWEEN_NOTES:
                _write_memory(memory, done)
                spoke = time.monotonic()
    if memory is not None and (fresh or len(known) != len(done)):
        _write_memory(memory, done)
    return replace(listing, pictures=tuple(done))


def content_of(listing: Listing) -> str:
    """Hash what a folder holds: names and bytes of its pictures, and the names of everything else."""
    return digest(
        {
            "pictures": [[shown(file.name), file.sha256 or file.problem] for file in listing.pictures],
            "others": [[shown(other.name), other.reason] for other in listing.others],
        }
    )


def _noted_hash(file: PictureFile, known: _Memory) -> str:
    """Give the hash of a file that has not changed since it was noted; a file not to be opened has none to find."""
    if file.problem:
        return f"!{file.problem}"
    note = known.get(file.name)
    return note.sha256 if note is not None and (note.size, note.changed) == (file.size, file.changed) else ""


def hash_file(place: tuple[Path, PictureFile]) -> str:
    """Hash a file; one that cannot be read gives an exclamation mark and the reason."""
    root, file = place
    try:
        with (root / file.name).open("rb") as opened:
            state = os.fstat(opened.fileno())
            if (state.st_size, state.st_mtime_ns) != (file.size, file.changed):
                raise _changed_meanwhile(root, file.name)
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise _changed_meanwhile(root, file.name) from error
    except OSError as error:
        if machine_fails(error):
            raise
        return f"!file cannot be read: {error.strerror}"


def _changed_meanwhile(root: Path, name: str) -> IntegrityError:
    """Say that somebody else is at work in the folder."""
    return IntegrityError(
        "the folder of images changed while it was read",
        where=str(root),
        found=f"another file, or none, at {shown(name)!r}",
        hint="Wait until nothing writes there, and run the same command again: it goes by what the folder holds then.",
    )


def _read_memory(path: Path) -> _Memory:
    """Read what was noted; a memory that cannot be read is none."""
    try:
        notes = msgspec.msgpack.decode(path.read_bytes(), type=list[Noted])
    except (OSError, msgspec.DecodeError):
        return {}
    return {os.fsdecode(note.name): note for note in notes}


def _write_memory(path: Path, files: Sequence[PictureFile]) -> None:
    """Note the files hashed so far."""
    notes = [Noted(os.fsencode(f.name), f.size, f.changed, f.sha256) for f in files if f.sha256]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.msgpack.encode(notes))


# Importing the pictures of a folder: each read once, copied as it is or written again, or a row with the reason.

# what stands of an image of which nobody says more; all else is empty
_DEFAULTS: Mapping[str, Any] = {
    "path": "",
    "rewriter": "unknown",
    "provider_params": "{}",
    "sha256": "",
    "width": 0,
    "height": 0,
}


def _image_id_of(row: Row) -> str:
    """Name an image: the same file under the same name and model has the same id, wherever the folder lies."""
    model = row.cells["model"]
    if row.source is None:
        return digest([model, row.cells["prompt_id"], row.cells["repeat"], row.cells["slot"], "missing"])[:16]
    return digest([model, row.source, row.file.sha256 if row.file else ""])[:16]


def _table_row(row: Row, *, duplicate_of: str | None = None) -> dict[str, Any]:
    """Write a row as the table has it; what only reading the picture tells is still to come."""
    return {
        **_DEFAULTS,
        **row.cells,
        "image_id": _image_id_of(row),
        "status": row.status,
        "reason": row.reason,
        "source": row.source,
        "source_sha256": row.file.sha256 if row.file and row.file.sha256 else None,
        "duplicate_of": duplicate_of,
    }


def _duplicates_of(plan: FolderPlan) -> dict[int, int]:
    """Find files with the same bytes: for each further one, by its place among the rows, the place of the first."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for place, row in enumerate(plan.rows):
        if row.file is not None and row.file.sha256:
            original = first.setdefault(row.file.sha256, place)
            if original != place:
                found[place] = original
    return found


def _label_of(row: Row) -> str:
    """Call a row by its file, for people."""
    return row.source if row.source is not None else shown(str(row.cells["prompt_id"]))


# how a file that can stay as it is comes into the new folder: as a second name of the same file, or as a copy
Taking: TypeAlias = Literal["link", "copy"]
_SUFFIXES = {"JPEG": "jpg", "TIFF": "tif"}
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
class _Intake:
    """A picture to import: its row to be, and the image whose bytes it repeats."""

    row: Row
    duplicate_of: str | None


@dataclass(frozen=True, slots=True)
class _Shard:
    """A run of pictures, as a work item."""

    root: Path
    out: Path
    part: Path
    handling: Handling
    pictures: tuple[_Intake, ...]


def take_shard(shard: _Shard) -> int:
    """Import the pictures of a shard, then write its part of the table."""
    rows = []
    for intake in shard.pictures:
        row = _table_row(intake.row, duplicate_of=intake.duplicate_of)
        rows.append({**row, **_taken(intake.row, row["image_id"], shard)})
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
        return failed(content)
    if digest_bytes(content) != file.sha256:
        raise _changed_meanwhile(shard.root, file.name)
    picture = picture_from(content)
    if isinstance(picture, NoPicture):
        return failed(picture)
    changed = picture.changed or other_colours(content, picture.format)
    form = shard.handling.format if changed else _SUFFIXES.get(picture.format, picture.format.lower())
    relative = f"files/{image_id[:2]}/{image_id}.{form}"
    to = shard.out / relative
    if changed:
        content = encoded(picture.pixels, shard.handling.format)
        placed(content, to)
    else:
        _take_over(content, file, to, shard)
    height, width, _ = picture.pixels.shape
    reasons = [*filter(None, [row.reason]), *changed]
    return {
        "path": relative,
        "sha256": digest_bytes(content),
        "width": width,
        "height": height,
        "status": "ok",
        "reason": "; ".join(reasons) or None,
    }


def other_colours(content: bytes, form: str) -> tuple[str, ...]:
    """Say in words what a picture is stored as that shows as it is, but not as three colours: grey, a palette."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=[form]) as opened:
                return () if opened.mode == "RGB" else (f"{opened.mode} to RGB",)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return (f"{form} written anew",)


def _take_over(content: bytes, file: PictureFile, to: Path, shard: _Shard) -> None:
    """Link a file that can stay as it is, or write its bytes."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if shard.handling.files == "copy" or not linked(shard.root / file.name, to):
        placed(content, to)
    elif not _unchanged(to, file):
        raise _changed_meanwhile(shard.root, file.name)


def _unchanged(path: Path, file: PictureFile) -> bool:
    """Tell whether a file still has the size and the time that it was listed with."""
    try:
        state = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    return (state.st_size, state.st_mtime_ns) == (file.size, file.changed)


def failed(why: NoPicture) -> dict[str, Any]:
    """Say why there is no picture."""
    return {"status": "failed", "reason": f"{why.reason}: {why.detail}" if why.detail else why.reason}


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
        count = len(missing) - listed
        yield f"{counted(count, 'images', verb='have')} no file and should"
    if failed:
        yield f"{counted(failed, 'files')} could not be read as a picture"
    if plan.clashes:
        yield f"{counted(plan.clashes, 'files', verb='state')} a repeat and a slot that another has"
    for name in unreadable_folders(listing):
        yield f"the folder {name or '.'!r} could not be looked into"


_ROWS_AT_ONCE = 10_000
_SAMPLES = 5


def take_folder(work: Work, listing: Listing, naming: Naming, plan: FolderPlan, handling: Handling) -> Outcome:
    """Import all pictures of a planned folder, and write the table that lists them."""
    check_rows(pl.DataFrame({"model": [str(row.cells["model"]) for row in plan.rows]}), IMAGES, str(listing.root))
    same = _duplicates_of(plan)
    originals = {place: _image_id_of(plan.rows[original]) for place, original in same.items()}
    intakes = [
        _Intake(row, originals.get(place))
        for place, row in enumerate(plan.rows)
        if row.file is not None and not row.status
    ]
    shards = [
        _Shard(
            listing.root.resolve(),
            work.out,
            work.scratch / f"images-{start:09d}.parquet",
            handling,
            tuple(intakes[start : start + COPIES_PER_SHARD]),
        )
        for start in range(0, len(intakes), COPIES_PER_SHARD)
    ]
    run_shards(work, shards, take_shard, size=lambda shard: len(shard.pictures), unit="images")
    images = pl.concat([merge_parts([shard.part for shard in shards], _FOLDER_SCHEMA), *_without_file(plan, originals)])
    placed = _pictures_first(images, [_image_id_of(row) for row in plan.rows if row.dealt])
    write_table(work.out, IMAGES, placed)
    done = _outcome(placed, write_drops(work.out, others(listing, plan)), listing, naming, plan, same)
    moved = placed.join(images.select("image_id", before="repeat"), on="image_id").filter(status="ok")
    count = moved.filter(pl.col("repeat").ne_missing(pl.col("before"))).height
    return done if count == 0 else replace(done, notes={**done.notes, "moved_to_fill_batches": count})


def _pictures_first(images: pl.DataFrame, dealt: Sequence[str]) -> pl.DataFrame:
    """Deal the places of a prompt that nothing states out again: first to its pictures, then to what is none.

    One picture that cannot be read would else leave the batch of seven others incomplete.
    """
    free = pl.col("image_id").is_in(pl.Series(dealt, dtype=pl.String).implode())
    keys, place = ["model", "prompt_id"], ["repeat", "slot"]
    some = images.filter(free)
    places = some.sort(*keys, *place, nulls_last=True).select(place)
    holders = some.sort(*keys, pl.col("status") != "ok", *place, nulls_last=True).with_columns(*places)
    return pl.concat([images.filter(~free), holders])


def _without_file(plan: FolderPlan, originals: Mapping[int, str]) -> Iterator[pl.DataFrame]:
    """Give the rows that get no file in the new folder, some at a time."""
    places = [place for place, row in enumerate(plan.rows) if row.status]
    for start in range(0, len(places), _ROWS_AT_ONCE):
        some = places[start : start + _ROWS_AT_ONCE]
        rows = [_table_row(plan.rows[place], duplicate_of=originals.get(place)) for place in some]
        yield pl.DataFrame(rows, schema=_FOLDER_SCHEMA)


def others(listing: Listing, plan: FolderPlan) -> list[tuple[str | None, ...]]:
    """List everything that is no row, and why."""
    return [
        *((shown(other.name), None, "folder", other.reason, None) for other in listing.others),
        *(
            (name, None, "folder", "of another model", model)
            for model, names in plan.other_models.items()
            for name in names
        ),
    ]


def _outcome(
    images: pl.DataFrame,
    drops: Mapping[str, int],
    listing: Listing,
    naming: Naming,
    plan: FolderPlan,
    same: Mapping[int, int],
) -> Outcome:
    """Give the account that stands in the manifest."""
    made, others = statuses_of(images)
    failures = Counter(reason.partition(":")[0] for reason in images.filter(pl.col("status") == "failed")["reason"])
    notes: dict[str, object] = {
        "naming": {
            "by": naming.described(),
            "guessed": naming.guessed,
            "files": dict(sorted(Counter(row.by for row in plan.rows if row.by and row.status != UNMATCHED).items())),
        },
        "not_pictures": {kind: names[:_SAMPLES] for kind, names in other_kinds(listing).items()},
        "duplicates": _duplicate_groups(plan, same),
        "unmatched": [row.source for row in plan.with_status("unmatched")][:_SAMPLES],
        "failures": dict(sorted(failures.items())),
        "columns_not_used": list(naming.listed.unused) if naming.listed else [],
        "findings": list(findings_of(plan, listing, failed=others.get("failed", 0))),
    }
    counts = {"images": images.height, "drops": sum(drops.values()), "ok": made, "duplicates": len(same)}
    return Outcome(counts, {**others, **drops}, {name: note for name, note in notes.items() if note})


def other_kinds(listing: Listing) -> dict[str, list[str]]:
    """Sort what is no picture by kind, the extension mostly."""
    found: dict[str, list[str]] = defaultdict(list)
    for other in listing.others:
        found[other.reason].append(shown(other.name))
    return dict(sorted(found.items()))


def _duplicate_groups(plan: FolderPlan, same: Mapping[int, int]) -> dict[str, object]:
    """Say how many files repeat the bytes of another, and which."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, original in same.items():
        groups[original].append(place)
    if not groups:
        return {}
    samples = [
        [str(plan.rows[place].source) for place in [original, *places[:_SAMPLES]]]
        for original, places in islice(groups.items(), _SAMPLES)
    ]
    return {"files": len(same), "of": len(groups), "samples": samples}
