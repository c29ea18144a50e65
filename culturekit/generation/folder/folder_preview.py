"""What a folder of images would become, without opening a picture: what maps, what does not, and what may be meant."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from culturekit.core.errors import counted
from culturekit.generation.folder.folder_detection import KnownPrompts, Naming, read_name
from culturekit.generation.folder.folder_listing import Listing, PictureFile
from culturekit.generation.folder.folder_plan import UNMATCHED, FolderPlan, Row
from culturekit.generation.folder.folder_run import findings_of, hash_file, other_kinds

_EXAMPLES = 5
_SHOWN_CELLS = {
    "prompt_id": "prompt_id", "prompt": "prompt_sent", "model": "model", "repeat": "repeat", "slot": "slot",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Preview:
    """What a dry run shows; examples are files with what they would stand for, or with a reason and prompts near it."""

    folder: str
    named_by: Mapping[str, int]
    guessed: bool
    prompts: int | None
    models: Mapping[str, int]
    pictures: int
    mapped: int
    without_prompt: int
    unmatched: int
    ambiguous: int
    not_to_be_opened: int
    missing: int
    duplicates: int
    of_other_models: Mapping[str, int]
    not_pictures: Mapping[str, int]
    examples: tuple[Mapping[str, Any], ...]
    unmatched_examples: tuple[Mapping[str, Any], ...]
    missing_examples: tuple[str, ...]
    duplicate_examples: tuple[tuple[str, ...], ...]
    hints: tuple[str, ...]
    findings: tuple[str, ...]

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)


def preview_of(listing: Listing, naming: Naming, plan: FolderPlan, known: KnownPrompts | None) -> Preview:
    """Count what would come of each file, with examples."""
    files = [row for row in plan.rows if row.file is not None]
    taken = [row for row in files if not row.status]
    unmatched = list(plan.with_status("unmatched"))
    missing = list(plan.with_status("missing"))
    same = _same_files(listing)
    mapped = [row for row in taken if row.cells.get("prompt_id") is not None]
    by = Counter(row.by for row in files if row.by and row.status != UNMATCHED)
    return Preview(
        folder=str(listing.root),
        named_by={name: by.get(name, 0) for name in naming.described()},
        guessed=naming.guessed,
        prompts=None if known is None else len(known.prompts),
        models=dict(sorted(Counter(str(row.cells["model"]) for row in files).items())),
        pictures=len(listing.pictures),
        mapped=len(mapped),
        without_prompt=len(taken) - len(mapped),
        unmatched=sum(not row.several for row in unmatched),
        ambiguous=sum(bool(row.several) for row in unmatched),
        not_to_be_opened=sum(bool(row.file and row.file.problem) for row in plan.rows),
        missing=len(missing),
        duplicates=sum(len(group) - 1 for group in same),
        of_other_models={model: len(names) for model, names in sorted(plan.other_models.items())},
        not_pictures={kind: len(names) for kind, names in other_kinds(listing).items()},
        examples=tuple(
            {"file": str(row.source)} | {shown: row.cells.get(cell) for shown, cell in _SHOWN_CELLS.items()}
            for row in _spread(mapped or taken)
        ),
        unmatched_examples=tuple(_unmatched_example(row, naming, known) for row in _spread(unmatched)),
        missing_examples=tuple(
            f"{row.source}: {row.reason}"
            if row.source is not None
            else f"{row.cells['prompt_id']}, repeat {row.cells['repeat']}, slot {row.cells['slot']}"
            for row in _spread(missing)
        ),
        duplicate_examples=tuple(tuple(group[:_EXAMPLES]) for group in same[:_EXAMPLES]),
        hints=tuple(hints(naming, plan, known)),
        findings=tuple(findings_of(plan, listing, failed=len(list(plan.with_status("failed"))))),
    )


def _spread(rows: Sequence[Row]) -> Sequence[Row]:
    """Take a few rows from all over."""
    return rows[:: max(1, -(-len(rows) // _EXAMPLES))]


def _unmatched_example(row: Row, naming: Naming, known: KnownPrompts | None) -> Mapping[str, Any]:
    """Show a file that found no prompt, with what may be meant."""
    nearest: list[str] = []
    if row.file is not None and known is not None:
        stem = row.file.name.rpartition("/")[2].rpartition(".")[0]
        nearest = [known.prompts[number].prompt_id for number in row.several] or known.nearest(
            read_name(row.file.name, naming, known).fields or {"prompt": stem}
        )
    return {"file": str(row.source), "reason": row.reason or "", "nearest": tuple(nearest)}


def _same_files(listing: Listing) -> list[list[str]]:
    """Find files with the same bytes; only those of the same size are read."""
    sizes: dict[int, list[PictureFile]] = defaultdict(list)
    for file in listing.pictures:
        if not file.problem:
            sizes[file.size].append(file)
    groups: dict[str, list[str]] = defaultdict(list)
    for files in sizes.values():
        if len(files) > 1:
            for file in files:
                groups[hash_file(listing.root, file).sha256].append(file.name)
    return sorted(sorted(names) for content, names in groups.items() if content and len(names) > 1)


def hints(naming: Naming, plan: FolderPlan, known: KnownPrompts | None) -> Iterator[str]:
    """Say what its user may want to know."""
    if known is None and not naming.described():
        yield "No prompts and no pattern are given: the images are taken in without a prompt. Add --prompts FILE."
    if naming.guessed and naming.described():
        yield "The way names are read was guessed. State it with pattern=... or manifest=... to be sure."
    if known is not None and not naming.described():
        yield "No pattern leads from these names to the prompts. State one, such as pattern={prompt}__{id}.png."
    if naming.listed is not None and naming.listed.unused:
        yield f"Columns of the list that say nothing here: {', '.join(naming.listed.unused[:10])}."
    for what in ("repeat", "slot"):
        numbers = [int(row.cells[what]) for row in plan.rows if row.file and row.cells.get(what) is not None]
        stated = any(what in pattern.names for pattern in naming.patterns)
        if stated and numbers and min(numbers) == 1:
            yield f"In the names {what}s run from 1 to {max(numbers)}; tables count from 0: first=1 shifts them."


def preview_lines(preview: Preview) -> Iterator[str]:
    """Write a preview for people."""
    yield f"{preview.folder}: {preview.pictures:,} pictures by name; nothing was opened, nothing was written"
    for way, count in preview.named_by.items():
        yield f"  {'guessed' if preview.guessed else 'named by':<18} {way}  ({counted(count, 'files')})"
    counts = {
        "mapped to a prompt": preview.mapped,
        "without a prompt": preview.without_prompt,
        "no prompt found": preview.unmatched,
        "more than one fits": preview.ambiguous,
        "not to be opened": preview.not_to_be_opened,
        "missing": preview.missing,
        "duplicates": preview.duplicates,
        **{f"of model {model}": count for model, count in preview.of_other_models.items()},
        **{f"no picture: {kind}": count for kind, count in preview.not_pictures.items()},
    }
    yield from (f"  {what:<24} {count:>9,}" for what, count in counts.items() if count or what.startswith("mapped"))
    yield from (f"  {f'model {model}':<24} {count:>9,}" for model, count in preview.models.items())
    sections = {
        "such as": [
            f"{one['file']} -> {one['prompt_id'] or 'no prompt'}"
            + ("" if one["repeat"] is None else f", repeat {one['repeat']}, slot {one['slot']}")
            + (f": {one['prompt']}" if one["prompt"] else "")
            for one in preview.examples
        ],
        "no prompt": [
            f"{one['file']}: {one['reason']}"
            + (f" (nearest: {'; '.join(one['nearest'][:3])})" if one["nearest"] else "")
            for one in preview.unmatched_examples
        ],
        "missing": preview.missing_examples,
        "the same bytes": [" = ".join(group) for group in preview.duplicate_examples],
    }
    for title, lines in sections.items():
        if lines:
            yield f"{title}:"
            yield from (f"  {line}" for line in lines)
    yield from preview.hints
