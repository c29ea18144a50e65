"""A folder of images as rows to be: the prompt, model, repeat and slot each file stands for, and what is missing."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

from culturekit.core.digests import canonical_json, digest
from culturekit.core.errors import UsageError
from culturekit.generation.folder.folder_detection import (
    KnownPrompts,
    NameReading,
    Names,
    Naming,
    Prompt,
    absent_files,
    read_name,
)
from culturekit.generation.folder.folder_listing import (
    Listing,
    PictureFile,
    bare,
    folded,
    natural_order,
    shown,
    spaced,
    words_of,
)

UNMATCHED = "unmatched"
_MISSING = "missing"
_FAILED = "failed"
_LONGEST_ID = 80
_MOST_REPEATS = 65_535
_MOST_SLOTS = 255


class GridCell(NamedTuple):
    """A repeat and a slot; `clash` is the file, by its number, that stated the same ones before."""

    repeat: int | None
    slot: int | None
    clash: int | None = None


class _Grid:
    """The places of one prompt and model; a repeat has `slots` of them, more where names say so."""

    def __init__(self, slots: int) -> None:
        """Start with every place free."""
        self.slots = slots
        self.taken: dict[tuple[int, int], int] = {}
        self.next_free = 0

    def deal(self, stated: Sequence[Mapping[str, Any]]) -> list[GridCell]:
        """Give each file a place: first those whose names state one, then the others, in the order of the names."""
        dealt: dict[int, GridCell] = {}
        repeats_of: dict[Any, Iterator[int]] = defaultdict(lambda: iter(range(_MOST_REPEATS + 1)))
        slots_of: dict[Any, Iterator[int]] = defaultdict(lambda: iter(range(_MOST_SLOTS + 1)))
        for number, cells in enumerate(stated):
            repeat, slot = cells.get("repeat"), cells.get("slot")
            if repeat is None and slot is None:
                continue
            if repeat is None:  # the next one of the slot, as far as the table has room
                repeat = next(repeats_of[slot], None)
            elif slot is None:
                slot = next(slots_of[repeat], None)
            if repeat is None or slot is None:
                dealt[number] = GridCell(repeat, slot)
            else:
                first = self.taken.setdefault((repeat, slot), number)
                dealt[number] = GridCell(repeat, slot, None if first == number else first)
        return [dealt[number] if number in dealt else self.free(number) for number in range(len(stated))]

    def free(self, number: int) -> GridCell:
        while divmod(self.next_free, self.slots) in self.taken:
            self.next_free += 1
        slot = divmod(self.next_free, self.slots)
        if slot[0] > _MOST_REPEATS:
            return GridCell(None, None)
        self.taken[slot] = number
        return GridCell(*slot)

    def holes(self, repeats: int | None) -> Iterator[tuple[int, int]]:
        """List the repeats and slots without an image; without a stated number of repeats, of those that were begun."""
        begun = max((repeat for repeat, _ in self.taken), default=0) + 1
        every = product(range(begun if repeats is None else repeats), range(self.slots))
        return (slot for slot in every if slot not in self.taken)


@dataclass(frozen=True, slots=True)
class Layout:
    """What was stated of the images: the model, how many there should be, and from what numbers in names count.

    A stated `model` chooses among the models that names or the list tell of; `unnamed` is what images are called
    otherwise.
    """

    model: str | None = None
    unnamed: str = "folder"
    repeats: int | None = None
    slots: int | None = None
    first: int = 0

    @property
    def complete(self) -> bool:
        """Whether it was stated how many images there should be."""
        return self.repeats is not None or self.slots is not None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the images table to be; without a `status` its file is still to be imported.

    `dealt` is whether its repeat and slot were dealt out, as nothing states them.
    """

    cells: Mapping[str, Any]
    file: PictureFile | None = None
    source: str | None = None
    by: str = ""
    status: str = ""
    reason: str | None = None
    several: tuple[int, ...] = ()
    dealt: bool = False


@dataclass(frozen=True, slots=True)
class FolderPlan:
    """All rows, in the order of the names; and the pictures of models that were not asked for."""

    rows: tuple[Row, ...]
    other_models: Mapping[str, Sequence[str]] = field(default_factory=dict)
    clashes: int = 0

    def with_status(self, status: str) -> Iterator[Row]:
        """Give the rows of a status."""
        return (row for row in self.rows if row.status == status)


def plan_folder(
    listing: Listing, naming: Naming, known: KnownPrompts | None, layout: Layout, *, names: Names | None = None
) -> FolderPlan:
    """Give every picture its place, and every place that should have one and has none a row."""
    if known is None:
        for pattern in naming.patterns:
            if useless := [name for name in ("artifact", "artifact_id") if name in pattern.names]:
                raise UsageError(
                    f"the field {{{useless[0]}}} finds the prompt that names the artifact, and no prompts were given",
                    where=f"pattern {pattern.text}", hint="Add --prompts FILE.",
                )  # fmt: skip
    planner = _Planner(known, layout, names or Names())
    for file in sorted(listing.pictures, key=lambda file: natural_order(file.name)):
        planner.add(file, shown(file.name), read_name(file.name, naming, known))
    for listed in absent_files(naming, listing):
        label = naming.listed.label if naming.listed else ""
        hit = None if known is None else known.find(listed.fields)
        reading = NameReading(listed.fields, listed.cells, label, hit)
        planner.add(
            None, listed.name, reading, absent=f"listed in {label}, row {listed.line}, but there is no such file"
        )
    return planner.plan()


class _Planner:
    """Gathers what is said of files, then deals out repeats and slots."""

    def __init__(self, known: KnownPrompts | None, layout: Layout, names: Names) -> None:
        self.known = known
        self.layout = layout
        self.codes = {folded(name): code for code, called in names.countries.items() for name in (code, *called)}
        self.rows: list[Row] = []
        self.groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.models: set[str] = set()
        self.other_models: dict[str, list[str]] = defaultdict(list)

    def add(self, file: PictureFile | None, name: str, reading: NameReading, *, absent: str = "") -> None:
        """Add a file, or a row of a list that has none."""
        model_named = reading.cells.get("model") or reading.fields.get("model")
        stated = self.layout.model
        if stated is not None and model_named is not None and folded(str(model_named)) != folded(stated):
            self.other_models[str(model_named)].append(name)
            return
        model = str(stated or model_named or self.layout.unnamed)
        self.models.add(model)
        cells = {**reading.cells, **self.numbers(reading), "model": model, **self.prompt_cells(reading)}
        problem = self.number_problem(cells)
        row = Row(cells, file, name, reading.by)
        unmatched = reading.hit is not None and reading.hit.position is None
        if file is not None and file.problem:
            row = replace(row, status=_FAILED, reason=file.problem)
        elif reading.hit is not None and unmatched:
            row = replace(row, status=UNMATCHED, reason=reading.hit.reason, several=reading.hit.several)
        elif problem:
            row = replace(row, status=UNMATCHED, reason=problem)
        elif cells.get("status", "ok") != "ok":
            row = replace(row, status=str(cells["status"]), reason=str(cells.get("reason") or "so the list says"))
        elif absent:
            row = replace(row, status=_MISSING, reason=absent)
        if row.status == UNMATCHED or unmatched:
            row = replace(row, cells={**cells, "repeat": None, "slot": None})
        elif cells.get("prompt_id") is not None:
            self.groups[model, str(cells["prompt_id"])].append(len(self.rows))
        self.rows.append(row)

    def prompt_cells(self, reading: NameReading) -> dict[str, Any]:
        """Say which prompt a file answers: the table's, or what its name tells."""
        fields = reading.fields
        if self.known is not None:
            if reading.hit is None or reading.hit.position is None:
                return {}
            cells = _prompt_cells(self.known.prompts[reading.hit.position])
            return {**cells, "prompt_sent": reading.cells.get("prompt_sent") or cells["prompt_sent"]}
        text = fields.get("prompt")
        country = fields.get("country")
        verbatim = text if reading.cells or "prompt" not in fields else words_of(text or "")
        return {
            "prompt_id": fields.get("prompt_id") or (_id_of_text(text) if text else None),
            "prompt_sent": reading.cells.get("prompt_sent") or verbatim,
            "concept": fields.get("concept"),
            "country": self.codes.get(folded(country), country) if country else None,
        }

    def numbers(self, reading: NameReading) -> dict[str, Any]:
        """Read the numbers of a name; a seed too large for the column stays as a parameter."""
        found: dict[str, Any] = {
            what: int(reading.fields[what]) for what in ("repeat", "slot", "seed") if reading.fields.get(what)
        } | {what: reading.cells[what] for what in ("repeat", "slot", "seed") if what in reading.cells}
        for what in ("repeat", "slot"):
            if what in found:
                found[what] -= self.layout.first
        if found.get("seed", 0) >= 2**63:
            found["provider_params"] = canonical_json({"seed": str(found.pop("seed"))}).decode()
        return found

    def number_problem(self, cells: Mapping[str, Any]) -> str:
        """Say why a repeat or a slot cannot be one."""
        for what, most in (("repeat", _MOST_REPEATS), ("slot", _MOST_SLOTS)):
            number = cells.get(what)
            if number is not None and not 0 <= number <= most:
                first = self.layout.first
                return f"{what} {number + first} is not from {first} to {most + first}"
        return ""

    def plan(self) -> FolderPlan:
        """Deal out repeats and slots, and add a row for every image that should be there."""
        clashes = 0
        taken: dict[tuple[str, str], _Grid] = {}
        for key, members in self.groups.items():
            places = taken[key] = _Grid(self.layout.slots or 1)
            asked = [self.rows[member].cells for member in members]
            for member, (repeat, slot, clash) in zip(members, places.deal(asked), strict=True):
                row = self.rows[member]
                dealt = row.cells.get("repeat") is None and row.cells.get("slot") is None
                row = replace(row, cells={**row.cells, "repeat": repeat, "slot": slot}, dealt=dealt)
                if clash is not None and not row.reason:
                    clashes += 1
                    row = replace(row, reason=f"same repeat and slot as {self.rows[members[clash]].source}")
                self.rows[member] = row
        return FolderPlan(tuple(self.rows) + tuple(self.missing(taken)), dict(self.other_models), clashes)

    def missing(self, taken: Mapping[tuple[str, str], _Grid]) -> Iterator[Row]:
        """Give a row for each place that should have an image and has none."""
        if self.known is None or not self.layout.complete:
            return
        empty = _Grid(self.layout.slots or 1)
        for model in sorted(self.models or {self.layout.model or self.layout.unnamed}):
            for prompt in self.known.prompts:
                places = taken.get((model, prompt.prompt_id), empty)
                for repeat, slot in places.holes(self.layout.repeats):
                    cells = {**_prompt_cells(prompt), "model": model, "repeat": repeat, "slot": slot}
                    yield Row(cells, status=_MISSING, reason="no file for this prompt, repeat and slot")


def _prompt_cells(prompt: Prompt) -> dict[str, Any]:
    return {"prompt_id": prompt.prompt_id, "prompt_sent": prompt.text, "concept": prompt.concept,
            "country": prompt.country}  # fmt: skip


def _id_of_text(text: str) -> str:
    """Make an id of a prompt's text, for images whose prompts nobody gave."""
    slug = spaced(text).replace(" ", "-")
    whole = digest(bare(text) or text)[:10]
    return slug if 0 < len(slug) <= _LONGEST_ID else f"{slug[: _LONGEST_ID - 11]}-{whole}".strip("-")
