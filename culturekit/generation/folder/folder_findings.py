"""What a person should look at before the images of a folder are scored, in words."""

from collections.abc import Iterator

from culturekit.generation.folder.folder_listing import Listing, unreadable_folders
from culturekit.generation.folder.folder_plan import FolderPlan

__all__ = ["findings_of", "general_part"]


def findings_of(plan: FolderPlan, listing: Listing, *, failed: int) -> list[str]:
    """List what did not come out clean; nothing when everything did."""
    return list(lines(plan, listing, failed))


def lines(plan: FolderPlan, listing: Listing, failed: int) -> Iterator[str]:
    """Write a line per kind of finding."""
    unmatched = list(plan.with_status("unmatched"))
    ambiguous = sum(bool(row.several) for row in unmatched)
    missing = list(plan.with_status("missing"))
    listed = sum(row.source is not None for row in missing)
    if len(unmatched) > ambiguous:
        yield f"{files(len(unmatched) - ambiguous)} found no prompt"
    if ambiguous:
        yield f"{files(ambiguous)} fit more than one prompt" if ambiguous > 1 else "1 file fits more than one prompt"
    if listed:
        yield f"{files(listed)} in the list {'is' if listed == 1 else 'are'} not in the folder"
    if len(missing) > listed:
        count = len(missing) - listed
        yield f"{count:,} image{' has' if count == 1 else 's have'} no file and should"
    if failed:
        yield f"{files(failed)} could not be read as a picture"
    if plan.clashes:
        yield f"{files(plan.clashes)} state{'s' if plan.clashes == 1 else ''} a repeat and a slot that another has"
    for name in unreadable_folders(listing):
        yield f"the folder {name or '.'!r} could not be looked into"


def files(count: int) -> str:
    """Count files."""
    return f"{count:,} file{'' if count == 1 else 's'}"


def general_part(reason: str) -> str:
    """Keep the general part of a reason."""
    return reason.partition(":")[0]
