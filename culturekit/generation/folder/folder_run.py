"""A folder of images imported at once: shards through the engine, one table, an account of everything found."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import polars as pl

from culturekit.counting import counted
from culturekit.defaults import COPIES_PER_SHARD
from culturekit.generation.folder.folder_intake import (
    FOLDER_SCHEMA,
    Handling,
    Intake,
    Shard,
    duplicates_of,
    image_id_of,
    table_row,
    take_shard,
)
from culturekit.generation.folder.folder_listing import Listing, shown, unreadable_folders
from culturekit.generation.folder.folder_naming import Naming
from culturekit.generation.folder.folder_plan import UNMATCHED, FolderPlan
from culturekit.generation.image_rows import statuses_of
from culturekit.records.schemas import IMAGES
from culturekit.records.work import Outcome, Work
from culturekit.storage.shard_runs import run_shards
from culturekit.storage.tables import check_names, merge_parts, write_drops, write_table

__all__ = ["findings_of", "other_kinds", "take_folder"]


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


ROWS_AT_ONCE = 10_000
SAMPLES = 5


def take_folder(work: Work, listing: Listing, naming: Naming, plan: FolderPlan, handling: Handling) -> Outcome:
    """Import all pictures of a planned folder, and write the table that lists them."""
    check_names(pl.DataFrame({"model": [str(row.cells["model"]) for row in plan.rows]}), str(listing.root))
    same = duplicates_of(plan)
    originals = {place: image_id_of(plan.rows[original]) for place, original in same.items()}
    intakes = [
        Intake(row, originals.get(place))
        for place, row in enumerate(plan.rows)
        if row.file is not None and not row.status
    ]
    shards = [
        Shard(
            listing.root.resolve(),
            work.out,
            work.scratch / f"images-{start:09d}.parquet",
            handling,
            tuple(intakes[start : start + COPIES_PER_SHARD]),
        )
        for start in range(0, len(intakes), COPIES_PER_SHARD)
    ]
    run_shards(work, shards, take_shard, size=lambda shard: len(shard.pictures), unit="images")
    images = pl.concat([merge_parts([shard.part for shard in shards], FOLDER_SCHEMA), *without_file(plan, originals)])
    placed = pictures_first(images, [image_id_of(row) for row in plan.rows if row.dealt])
    write_table(work.out, IMAGES, placed)
    done = outcome(placed, write_drops(work.out, others(listing, plan)), listing, naming, plan, same)
    moved = placed.join(images.select("image_id", before="repeat"), on="image_id").filter(status="ok")
    count = moved.filter(pl.col("repeat").ne_missing(pl.col("before"))).height
    return done if count == 0 else replace(done, notes={**done.notes, "moved_to_fill_batches": count})


def pictures_first(images: pl.DataFrame, dealt: Sequence[str]) -> pl.DataFrame:
    """Deal the places of a prompt that nothing states out again: first to its pictures, then to what is none.

    One picture that cannot be read would else leave the batch of seven others incomplete.
    """
    free = pl.col("image_id").is_in(pl.Series(dealt, dtype=pl.String).implode())
    keys, place = ["model", "prompt_id"], ["repeat", "slot"]
    some = images.filter(free)
    places = some.sort(*keys, *place, nulls_last=True).select(place)
    holders = some.sort(*keys, pl.col("status") != "ok", *place, nulls_last=True).with_columns(*places)
    return pl.concat([images.filter(~free), holders])


def without_file(plan: FolderPlan, originals: Mapping[int, str]) -> Iterator[pl.DataFrame]:
    """Give the rows that get no file in the new folder, some at a time."""
    places = [place for place, row in enumerate(plan.rows) if row.status]
    for start in range(0, len(places), ROWS_AT_ONCE):
        some = places[start : start + ROWS_AT_ONCE]
        rows = [table_row(plan.rows[place], duplicate_of=originals.get(place)) for place in some]
        yield pl.DataFrame(rows, schema=FOLDER_SCHEMA)


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


def outcome(
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
        "not_pictures": {kind: names[:SAMPLES] for kind, names in other_kinds(listing).items()},
        "duplicates": duplicate_groups(plan, same),
        "unmatched": [row.source for row in plan.with_status("unmatched")][:SAMPLES],
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


def duplicate_groups(plan: FolderPlan, same: Mapping[int, int]) -> dict[str, object]:
    """Say how many files repeat the bytes of another, and which."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, original in same.items():
        groups[original].append(place)
    if not groups:
        return {}
    samples = [named(plan, group) for group in islice(groups.items(), SAMPLES)]
    return {"files": len(same), "of": len(groups), "samples": samples}


def named(plan: FolderPlan, group: tuple[int, list[int]]) -> list[str]:
    """Name the files of a group, a few."""
    original, places = group
    return [str(plan.rows[place].source) for place in [original, *places[:SAMPLES]]]
