"""Tasks and sheets: what annotators see of each item, with checks and repeated items among them."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from culturekit.annotate.blinding import content_of, drawn, picture_file, task_id
from culturekit.annotate.items import Item
from culturekit.annotate.quotas import Share
from culturekit.annotate.scheme import Scheme
from culturekit.metrics.scoring.value_sets import own_generator

__all__ = ["Offer", "Part", "Project", "Task", "make_parts"]


@dataclass(frozen=True, slots=True)
class Offer:
    """An answer that one item offers: a code, what people read, and what it means (`choice`, and what goes with it)."""

    code: str
    label: str
    meaning: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Project:
    """What all tasks of an export share."""

    name: str
    scheme: Scheme
    seed: int
    per_sheet: int
    checks: int
    repeats: int
    offers: Mapping[str, Mapping[str, Sequence[Offer]]] = field(default_factory=dict)
    gold: Sequence[Item] = ()
    gold_per_sheet: int = 0
    queues: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One screen.

    Attributes:
        task: its blinded name.
        kind: `item`, `check`, `repeat` or `gold`.
        item: what is judged, or shown beside a check.
        places: the names of the pictures, in the order in which they stand.
        files: their blinded files.
        data: what the annotation tool gets; pictures by file name.
        content: the hash of that.
        repeat_of: the task that asked first.
        expected: the answers that a check asks for, or the labels that are right of a gold item.
    """

    task: str
    kind: str
    item: Item
    places: tuple[str, ...]
    files: tuple[str, ...]
    data: dict[str, object]
    content: str
    repeat_of: str | None = None
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The tasks that one annotator does in one go, and the order of each slot."""

    name: str
    share: Share
    tasks: tuple[Task, ...]
    orders: tuple[tuple[int, ...], ...]


def make_parts(project: Project, share: Share) -> list[Part]:
    """Cut a share into parts of about equal size, and put checks and repeats into each."""
    key = (share.region, share.slots, share.inside)
    order = drawn(len(share.items), "parts", *key, seed=project.seed)
    side = {True: "in", False: "out", None: "any"}[share.inside]
    parts = []
    for number, places in enumerate(sheets_of(project, share, order)):
        items = [share.items[place] for place in places]
        name = f"{share.region}-{side}-{share.slots}-{number + 1:02d}"
        parts.append(make_part(project, share, name, items, gold_of(project, key, number)))
    return parts


def sheets_of(project: Project, share: Share, order: Sequence[int]) -> list[Sequence[int]]:
    """Divide items in a drawn order into sheets; in queues each is of one concept and region."""
    cells: dict[str, list[int]] = {}
    for place in order:
        item = share.items[place]
        cells.setdefault(f"{item.about.get('concept')} {item.region}" if project.queues else "", []).append(place)
    counts = {cell: -(-len(places) // project.per_sheet) for cell, places in cells.items()}
    return [cells[cell][number :: counts[cell]] for cell in sorted(cells) for number in range(counts[cell])]


def gold_of(project: Project, share: tuple[object, ...], number: int) -> list[Item]:
    """Take the gold items of one part; the parts of a share go round all of them."""
    order = drawn(len(project.gold), "gold", *share, seed=project.seed)
    first = number * project.gold_per_sheet
    return [project.gold[order[(first + place) % len(order)]] for place in range(project.gold_per_sheet)]


def make_part(project: Project, share: Share, name: str, items: Sequence[Item], gold: Sequence[Item]) -> Part:
    """Make the tasks of some items; those asked again are drawn, and the pictures beside checks."""
    seed, scheme = project.seed, project.scheme
    tasks = [make_task(project, name, "item", item, 0) for item in items]
    again = drawn(len(items), "again", name, seed=seed)[: min(project.repeats, len(items) // 3)]
    tasks += [make_task(project, name, "repeat", items[place], 0, first=tasks[place]) for place in again]
    if scheme.checks:
        beside = drawn(len(items), "beside", name, seed=seed)
        for number in range(project.checks):
            tasks.append(make_task(project, name, "check", items[beside[number % len(beside)]], number))
    tasks += [make_task(project, name, "gold", item, 0) for item in gold]
    orders = tuple(order_of(tasks, len(items), again, name, slot, seed) for slot in range(share.slots))
    return Part(name, share, tuple(tasks), orders)


def make_task(project: Project, part: str, kind: str, item: Item, number: int, *, first: Task | None = None) -> Task:
    """Make one task; a repeated one stands as it stood the first time."""
    scheme, seed = project.scheme, project.seed
    name = task_id(project.name, part, kind, item.item_id, number, seed=seed)
    places = places_of(scheme, part, item, seed) if first is None else first.places
    files = tuple(picture_file(project.name, item.pictures[place], seed=seed) for place in places)
    check = scheme.checks[number % len(scheme.checks)] if kind == "check" else None
    offers = project.offers.get(item.item_id, {})
    data: dict[str, object] = {
        "task": name,
        "project": project.name,
        "note": "" if check is None else check.say,
        **{f"picture_{place + 1}": file for place, file in enumerate(files)},
        **item.texts,
        **{field: [listed(offer) for offer in options] for field, options in offers.items()},
    }
    if not files:
        data["subject"] = scheme.title
    right = item.known if kind == "gold" else None if check is None else check.answers
    expected = None if right is None else json.dumps(dict(sorted(right.items())))
    repeat_of = None if first is None else first.task
    return Task(name, kind, item, places, files, data, content_of(data), repeat_of, expected)


def listed(offer: Offer) -> dict[str, str]:
    """Write an option as Label Studio lists options of a task; what people read is HTML there."""
    return {"value": offer.code, "html": html.escape(offer.label)}


def places_of(scheme: Scheme, part: str, item: Item, seed: int) -> tuple[str, ...]:
    """Draw which picture stands where, among those whose places are drawn."""
    order = drawn(len(scheme.drawn), "places", part, item.item_id, seed=seed)
    others = iter([scheme.drawn[place] for place in order])
    return tuple(next(others) if name in scheme.drawn else name for name in scheme.pictures)


def order_of(
    tasks: Sequence[Task], items: int, again: Sequence[int], part: str, slot: int, seed: int
) -> tuple[int, ...]:
    """Draw the order of one slot: an item that comes again stands in the first third, its repeat in the last."""
    rng = own_generator(seed, "order", part, slot)
    others = [place for place in range(items) if place not in set(again)]
    rng.shuffle(others)
    third = max(items // 3 - len(again), 0)
    start = [*again, *others[:third]]
    end = [*others[third + items // 3 :], *range(items, items + len(again))]
    rng.shuffle(start)
    rng.shuffle(end)
    order = [*start, *others[third : third + items // 3], *end]
    for other in range(items + len(again), len(tasks)):
        order.insert(int(rng.integers(1, len(order) + 1)), other)
    return tuple(order)
