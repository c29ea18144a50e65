"""Tasks and sheets: what annotators see of each item, with checks and repeated items among them."""

import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Annotated
from xml.etree import ElementTree

from pydantic import Field

from culturekit.core.declared import Typed
from culturekit.core.defaults import RATERS
from culturekit.core.digests import digest
from culturekit.core.errors import UsageError
from culturekit.people.items import Item
from culturekit.people.scheme import Criterion, Scheme, fixed_options
from culturekit.scores.answers import InRegion, OutOfRegion
from culturekit.scores.family import own_generator

# Names that tell nothing: of tasks, and of the files that annotators see.


def project_id(scheme: object, items: Sequence[str], options: object, *, seed: int) -> str:
    """Name a project by everything that decides its tasks."""
    return digest(["project", scheme, list(items), options, seed])[:12]


def task_id(project: str, *what: object, seed: int) -> str:
    """Name a task so that nobody can tell what it stands for."""
    return f"t{digest(['task', project, [str(part) for part in what], seed])[:20]}"


def drawn(count: int, *key: object, seed: int) -> list[int]:
    """Draw an order of so many things."""
    return [int(index) for index in own_generator(seed, *key).permutation(count)]


def content_of(data: object) -> str:
    """Hash what a task shows, wherever its pictures lie."""
    if not isinstance(data, dict):
        return digest(["no task"])
    return digest({str(key): plain(str(key), value) for key, value in data.items()})


def plain(key: str, value: object) -> object:
    """Leave of a picture's address the name of the file."""
    if key.startswith("picture_") and isinstance(value, str):
        return value.replace("\\", "/").rsplit("/", 1)[-1]
    return value


# Who is to judge what: slots of each item for annotators of its own region, and of others.

ANYWHERE = "anywhere"  # the region of annotators where nobody is more at home than others


@dataclass(frozen=True, slots=True)
class Quotas:
    """How many annotators judge an item."""

    inside: Annotated[InRegion, Typed("in-region")] = RATERS
    outside: Annotated[OutOfRegion, Typed("out-of-region")] = 0
    regions: Annotated[
        tuple[str, ...],
        Field(description="Where annotators are found; repeatable. [the regions of the items]"),
        Typed("region", gather=lambda names: tuple(sorted(set(names)))),
    ] = ()
    everywhere: Annotated[
        bool, Field(description="Annotators of all regions judge items that have no region, too, in turn.")
    ] = False


@dataclass(frozen=True, slots=True)
class Share:
    """Some items for annotators of one region, each of which so many of them judge."""

    region: str
    slots: int
    inside: bool | None
    items: tuple[Item, ...]


def shares(items: Sequence[Item], quotas: Quotas, *, seed: int, ranked: bool = False) -> list[Share]:
    """Give every item its annotators; `ranked` items stay in their order.

    Where items have no region, all slots are for annotators from anywhere, unless `everywhere` says else. Slots of
    other regions go round these from a drawn start, so that each region gets about as many.

    Raises:
        UsageError: there are no slots, or no other region to fill them.
    """
    if any(not region.strip() for region in quotas.regions):
        raise UsageError(
            "a region of annotators has no name", expected="--region with the name of one", found="a blank"
        )
    if quotas.inside + quotas.outside == 0:
        raise UsageError("nobody is to judge anything", expected="at least one annotator in or out of region")
    regions = sorted(set(quotas.regions) or {item.region for item in items if item.region is not None})
    wanted: dict[tuple[str, int, bool | None], list[Item]] = {}
    for number, index in enumerate(drawn(len(items), "slots", seed=seed)):
        item = items[index]
        for region, slots, inside in slots_of(item, regions, quotas, number):
            wanted.setdefault((region, slots, inside), []).append(item)
    ordered = sorted(wanted, key=lambda key: (key[0], str(key[2]), key[1]))
    rank = {item.item_id: index if ranked else 0 for index, item in enumerate(items)}
    return [
        Share(*key, tuple(sorted(wanted[key], key=lambda one: (rank[one.item_id], one.item_id)))) for key in ordered
    ]


def slots_of(item: Item, regions: Sequence[str], quotas: Quotas, number: int) -> list[tuple[str, int, bool | None]]:
    """Say how many annotators of which regions judge one item, the `number`-th of all."""
    if item.region is None and quotas.everywhere and regions:
        return [(region, count, None) for region, count in in_turn(regions, number, quotas.inside + quotas.outside)]
    if item.region is None:
        return [(ANYWHERE, quotas.inside + quotas.outside, None)]
    found: list[tuple[str, int, bool | None]] = []
    if quotas.inside:
        if item.region not in regions:
            raise UsageError(
                "no annotators are found in the region of an item", where=f"item {item.item_id!r}", found=item.region,
                expected=", ".join(regions), hint="Name it as a region of annotators too, or ask for none in region.",
            )  # fmt: skip
        found.append((item.region, quotas.inside, True))
    others = [region for region in regions if region != item.region]
    if quotas.outside and not others:
        raise UsageError(
            "there is no other region to find annotators in", where=f"item {item.item_id!r}", found=", ".join(regions),
            hint="Name regions of annotators, or ask for none out of region.",
        )  # fmt: skip
    return [*found, *((region, count, False) for region, count in in_turn(others, number, quotas.outside))]


def in_turn(regions: Sequence[str], number: int, slots: int) -> list[tuple[str, int]]:
    """Let the slots of items go round the regions; how many of those of the `number`-th item each region has."""
    return sorted(Counter(regions[(number * slots + slot) % len(regions)] for slot in range(slots)).items())


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
    trial: Sequence[Item] = ()
    queues: bool = False
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One screen.

    Attributes:
        task: its blinded name.
        places: the names of the pictures, in the order in which they stand.
        data: what the annotation tool gets; pictures by their blinded files.
        content: the hash of that.
        expected: the answers that a check asks for, or those that are right of a gold item or of a trial.
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
    order = range(len(share.items)) if project.ranked else drawn(len(share.items), "parts", *key, seed=project.seed)
    side = {True: "in", False: "out", None: "any"}[share.inside]
    parts = []
    for number, places in enumerate(sheets_of(project, share, order)):
        items = [share.items[index] for index in places]
        name = f"{share.region}-{side}-{share.slots}-{number + 1:02d}"
        parts.append(make_part(project, share, name, items, gold_of(project, key, number)))
    return parts


def trial_part(project: Project, region: str) -> Part:
    """Make the trial of a region: one sheet, which everybody there answers before any other."""
    name = f"{region}-trial"
    tasks = tuple(make_task(project, name, "trial", item, 0) for item in project.trial)
    order = tuple(drawn(len(tasks), "trial", region, seed=project.seed))
    return Part(name, Share(region, 1, None, tuple(project.trial)), tasks, (order,))


def sheets_of(project: Project, share: Share, order: Sequence[int]) -> list[Sequence[int]]:
    """Divide items in a drawn order into sheets, each of one look; in queues also of one concept and region."""
    if project.ranked:
        return [order[first : first + project.per_sheet] for first in range(0, len(order), project.per_sheet)]
    cells: dict[tuple[int, str], list[int]] = {}
    for index in order:
        item = share.items[index]
        queue = f"{item.about.get('concept')} {item.region}" if project.queues else ""
        cells.setdefault((item.look, queue), []).append(index)
    counts = {cell: -(-len(places) // project.per_sheet) for cell, places in cells.items()}
    return [cells[cell][number :: counts[cell]] for cell in sorted(cells) for number in range(counts[cell])]


def gold_of(project: Project, share: tuple[object, ...], number: int) -> list[Item]:
    """Take the gold items of one part; the parts of a share go round all of them."""
    order = drawn(len(project.gold), "gold", *share, seed=project.seed)
    first = number * project.gold_per_sheet
    return [project.gold[order[(first + index) % len(order)]] for index in range(project.gold_per_sheet)]


def make_part(project: Project, share: Share, name: str, items: Sequence[Item], gold: Sequence[Item]) -> Part:
    """Make the tasks of some items; those asked again are drawn, and the pictures beside checks."""
    seed, scheme = project.seed, project.scheme
    tasks = [make_task(project, name, "item", item, 0) for item in items]
    again = drawn(len(items), "again", name, seed=seed)[: min(project.repeats, len(items) // 3)]
    tasks += [make_task(project, name, "repeat", items[nth], 0, first=tasks[nth]) for nth in again]
    if scheme.checks:
        beside = drawn(len(items), "beside", name, seed=seed)
        for number in range(project.checks):
            tasks.append(make_task(project, name, "check", items[beside[number % len(beside)]], number))
    tasks += [make_task(project, name, "gold", item, 0) for item in gold]
    orders: tuple[tuple[int, ...], ...] = (tuple(range(len(tasks))),) * share.slots
    if not project.ranked:
        orders = tuple(order_of(tasks, len(items), again, name, slot, seed) for slot in range(share.slots))
    return Part(name, share, tuple(tasks), orders)


def make_task(project: Project, part: str, kind: str, item: Item, number: int, *, first: Task | None = None) -> Task:
    """Make one task; a repeated one stands as it stood the first time."""
    scheme, seed = project.scheme, project.seed
    name = task_id(project.name, part, kind, item.item_id, number, seed=seed)
    places = places_of(scheme, part, item, seed) if first is None else first.places
    # neither its model nor its prompt shows in the name of a picture
    images = [item.pictures[index] for index in places]
    files = tuple(f"{digest(['picture', project.name, image, seed])[:20]}.png" for image in images)
    check = scheme.checks[number % len(scheme.checks)] if kind == "check" else None
    offers = project.offers.get(item.item_id, {})
    data: dict[str, object] = {
        "task": name,
        "project": project.name,
        "note": "" if check is None else check.say,
        **{f"picture_{index + 1}": file for index, file in enumerate(files)},
        **item.texts,
        **{field: [listed(offer) for offer in options] for field, options in offers.items()},
    }
    if not files:
        data["subject"] = scheme.title
    right = item.known if kind in {"gold", "trial"} else None if check is None else check.answers
    expected = None if right is None else json.dumps(dict(sorted(right.items())))
    repeat_of = None if first is None else first.task
    return Task(name, kind, item, places, files, data, content_of(data), repeat_of, expected)


def listed(offer: Offer) -> dict[str, str]:
    """Write an option as Label Studio lists options of a task; what people read is HTML there."""
    return {"value": offer.code, "html": html.escape(offer.label)}


def places_of(scheme: Scheme, part: str, item: Item, seed: int) -> tuple[str, ...]:
    """Draw which picture stands where, among those whose places are drawn."""
    order = drawn(len(scheme.drawn), "places", part, item.item_id, seed=seed)
    others = iter([scheme.drawn[index] for index in order])
    return tuple(next(others) if name in scheme.drawn else name for name in scheme.pictures)


def order_of(
    tasks: Sequence[Task], items: int, again: Sequence[int], part: str, slot: int, seed: int
) -> tuple[int, ...]:
    """Draw the order of one slot: an item that comes again stands in the first third, its repeat in the last."""
    rng = own_generator(seed, "order", part, slot)
    others = [index for index in range(items) if index not in set(again)]
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


# A scheme as a Label Studio template, and sheets as the tasks it imports.


def subject_of(scheme: Scheme) -> str:
    """Name the tag that answers belong to: the first picture, or the text where there are none."""
    return "picture_1" if scheme.pictures else "subject"


def template(scheme: Scheme) -> str:
    """Write the labelling interface; whatever texts a scheme has, they are texts in it."""
    view = ElementTree.Element("View")
    add(view, "Header", value=scheme.title, size="3")
    guidelines = add(view, "Collapse")
    panel = add(guidelines, "Panel", value="How to answer")
    for number, paragraph in enumerate(scheme.guidelines, start=1):
        add(panel, "Text", name=f"guideline_{number}", value=paragraph)
    add(view, "Text", name="note", value="$note")
    row = add(view, "View", style="display:flex;flex-wrap:wrap;gap:1em")
    for index in range(1, len(scheme.pictures) + 1):
        side = add(row, "View")
        if len(scheme.pictures) > 1:
            add(side, "Header", value=f"Picture {index}", size="5")
        add(side, "Image", name=f"picture_{index}", value=f"$picture_{index}", zoom="true", maxWidth="512px")
    if not scheme.pictures:
        add(view, "Text", name="subject", value="$subject")
    add_fields(view, "all", scheme.shows, scheme)
    for criterion in scheme.criteria:
        add_question(view, criterion, scheme)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    """Put a tag into another."""
    return ElementTree.SubElement(parent, tag, {name: drawable(text) for name, text in attributes.items()})


def drawable(text: str) -> str:
    """Leave out the characters that XML cannot hold."""
    return "".join(
        c for c in text if c in "\t\n" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000 and ord(c) < 0xFFFE)
    )


def add_fields(parent: ElementTree.Element, prefix: str, names: Sequence[str], scheme: Scheme) -> None:
    """Show fields of the item, each under its heading."""
    for name in names:
        add(parent, "Header", value=scheme.fields[name], size="5")
        add(parent, "Text", name=f"{name}_for_{prefix}", value=f"${name}")


def add_question(view: ElementTree.Element, criterion: Criterion, scheme: Scheme) -> None:
    """Write one question, hidden until it is to be asked."""
    inside = view
    for name, values in criterion.when.items():
        inside = add(inside, "View", visibleWhen="choice-selected", whenTagName=name, whenChoiceValue=",".join(values))
    inside = add(inside, "View", style="margin-top:1em")
    add_fields(inside, criterion.name, criterion.shows, scheme)
    add(inside, "Header", value=criterion.question, size="4")
    shared = {"name": criterion.name, "toName": subject_of(scheme)}
    must = {"required": "true", "requiredMessage": "Please answer: " + criterion.question} if criterion.required else {}
    if criterion.type == "text":
        add(inside, "TextArea", **shared, **must, rows="3", maxSubmissions="1", editable="true")
        return
    listed = {"value": f"${criterion.options_from}"} if criterion.options_from else {}
    how = "multiple" if criterion.several else "single"
    line = "true" if criterion.type == "scale" else "false"
    choices = add(inside, "Choices", **shared, **must, **listed, choice=how, showInline=line)
    colours = {option.value: option.colour for option in criterion.options if option.colour}
    for value, label in fixed_options(criterion, scheme):
        swatch = f'<span style="background:{colours[value]};padding:0 1.5em"></span> ' if value in colours else ""
        add(choices, "Choice", value=value, html=swatch + escape(label))
    comment = criterion.comment
    if comment is None:
        return
    view = add(inside, "View", visibleWhen="choice-selected", whenTagName=criterion.name,  # until an answer asks for it
               whenChoiceValue=",".join(comment.when))  # fmt: skip
    add(view, "Header", value=comment.question, size="5")
    must = {"required": "true"} if comment.required else {}
    add(view, "TextArea", name=criterion.comment_name, toName=subject_of(scheme), rows="2", maxSubmissions="1",
        editable="true", **must)  # fmt: skip


def label_studio_tasks(parts: Sequence[Part], pictures_at: str) -> list[dict[str, object]]:
    """Write the tasks of some parts, each part in the order of its first slot."""
    tasks = [part.tasks[number] for part in parts for number in part.orders[0]]
    pictures = [{f"picture_{n}": pictures_at + file for n, file in enumerate(task.files, start=1)} for task in tasks]
    return [{"data": {**task.data, **addresses}} for task, addresses in zip(tasks, pictures, strict=True)]
