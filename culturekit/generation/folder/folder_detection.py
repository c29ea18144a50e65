"""How the files of a folder are named, found out where nobody said it: a list in it, or the pattern that fits.

Nothing is taken on trust: a pattern counts by how many names it leads to a prompt, and the dry run shows it.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from culturekit.errors import UsageError
from culturekit.generation.folder.folder_list import read_list
from culturekit.generation.folder.folder_listing import Listing
from culturekit.generation.folder.folder_naming import Naming
from culturekit.generation.folder.folder_patterns import Pattern, parse_pattern, parse_patterns
from culturekit.generation.folder.folder_prompts import KnownPrompts

__all__ = ["CANDIDATES", "find_list", "naming_of"]

FORMS = ("csv", "jsonl", "tsv", "json", "parquet")
LIST_NAMES = ("images.parquet", *(f"{stem}.{form}" for stem in ("metadata", "manifest") for form in FORMS))

CANDIDATES = tuple(
    parse_pattern(text)
    for field in ("{prompt_id}", "{prompt}")
    for text in (
        field, f"{field}__{{id}}", f"{field}_{{id}}", f"{field}-{{id}}", f"{field} {{id}}", f"{field}.{{id}}",
        f"{{id}}__{field}", f"{{id}}_{field}", f"{{id}}-{field}", f"{{id}} {field}",
        f"{{id}}-{{seed}}-{field}", f"{field}/{{_}}", f"{field}/{{_}}/{{_}}",
    )
)  # fmt: skip
"""What is tried, the first of equals first."""

SAMPLE = 1_000
MOST_PATTERNS = 3


def naming_of(root: Path, *, pattern: str, manifest: str) -> Naming:
    """Take what was stated; where nothing was, a list that lies in the folder."""
    try:
        patterns = parse_patterns(pattern)
    except ValueError as error:
        raise UsageError(str(error), expected="such as {model}/{prompt}__{id}") from error
    if manifest:
        path = stated_list(root, manifest)
        return Naming(patterns, read_list(path, label=manifest))
    if patterns:
        return Naming(patterns)
    found = find_list(root)
    if found is None:
        return Naming(guessed=True)
    try:
        return Naming((), read_list(found, label=found.name), guessed=True)
    except UsageError as error:
        error.hint = f"{error.hint} State pattern=... to go by the names and not by {found.name}.".strip()
        raise


def stated_list(root: Path, manifest: str) -> Path:
    """Find a list in the folder, or else from where the command runs."""
    inside, here = root / manifest, Path(manifest)
    if inside.is_file() or here.is_file():
        return inside if inside.is_file() else here
    raise UsageError(
        "there is no such list of images",
        where=manifest,
        expected=f"a file in {root} or here",
        hint="manifest= names a CSV, TSV, JSON, JSON lines or Parquet file.",
    )


def find_list(root: Path) -> Path | None:
    """Find a list by its name; what another program calls a manifest is none."""
    for name in LIST_NAMES:
        path = root / name
        if path.is_file() and not (name == "manifest.json" and is_stage_manifest(path)):
            return path
    return None


def is_stage_manifest(path: Path) -> bool:
    """Tell the manifest of a stage of ours from a list of images."""
    try:
        held = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError:
        return False
    return isinstance(held, dict) and {"stage", "key", "outputs"} <= held.keys()


def guessed(naming: Naming, listing: Listing, known: KnownPrompts | None) -> Naming:
    """Find the patterns that lead most names to a prompt; without prompts no name can be right or wrong."""
    if known is None or naming.patterns or naming.listed is not None:
        return naming
    step = max(1, len(listing.pictures) // SAMPLE)
    names = [file.name for file in listing.pictures[::step]]
    chosen: list[Pattern] = []
    while names and len(chosen) < MOST_PATTERNS:
        fits = [(fitting(pattern, names, known), pattern) for pattern in CANDIDATES if pattern not in chosen]
        best, pattern = max(fits, key=lambda pair: len(pair[0]))
        if not best:
            break
        chosen.append(pattern)
        names = [name for name in names if name not in best]
    return Naming(tuple(chosen), guessed=True)


def fitting(pattern: Pattern, names: Sequence[str], known: KnownPrompts) -> set[str]:
    """Give the names that a pattern leads to one prompt."""
    return {
        name
        for name in names
        if any(
            fields is not None and known.find(fields).place is not None
            for fields in (pattern.fields(name), pattern.fields(name, otherwise=True))
        )
    }
