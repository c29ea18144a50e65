"""Tasks and sheets: what annotators see of each item, with checks and repeated items among them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import polars as pl
from pydantic import Field

from culturekit.builders.country_names import country_code, folded
from culturekit.core.atomic import raise_system_error
from culturekit.core.choices import RATERS
from culturekit.core.declared import Typed
from culturekit.core.digests import digest, digest_file
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.spreadsheet_cells import read_csv_texts
from culturekit.core.tables import read_table
from culturekit.generation.folder.folder_list import FILE_COLUMNS, Row, bounded, name_problem, plain_name, rows_of
from culturekit.kg.countries import countries
from culturekit.people.scheme import Criterion, Scheme, fixed_options
from culturekit.scores.answers import InRegion, OutOfRegion
from culturekit.scores.family import own_generator

ABSENT = "image not made or not known"
OF_IMAGE = ("model", "concept", "country", "group", "prompt_id")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to judge.

    Attributes:
        item_id: under which its ratings stand; of a single image, its id.
        pictures: image ids by the name of the picture in the scheme.
        texts: the fields of the item, by name.
        region: where an annotator is at home in it; None for nowhere.
        about: model, concept, country, group and prompt_id, for the tables.
        known: of a gold item, the labels that are right, none where it shows no culture; None of any other item.
        look: before which look at the answers it is judged; 0 where nobody looks on the way.
    """

    item_id: str
    pictures: Mapping[str, str]
    texts: Mapping[str, str]
    region: str | None
    about: Mapping[str, str | None]
    known: Mapping[str, str] | None = None
    look: int = 0


def items_of_images(
    images: pl.DataFrame, prompts: pl.DataFrame | None, scheme: Scheme, left_out: Counter[str]
) -> list[Item]:
    """Make an item of every image that was made, in the order of the ids; what is left out is counted.

    An image's own concept and country stand in for its prompt's, and its own prompt where there is no table of them.
    """
    if len(scheme.pictures) != 1:
        raise UsageError(
            f"the scheme {scheme.name} shows {len(scheme.pictures)} pictures at once",
            expected="a table of items, one column per picture: --items",
        )
    finished = images.filter(status="ok").sort("image_id")
    left_out[ABSENT] += images.height - finished.height
    known = {} if prompts is None else {row["prompt_id"]: row for row in prompts.iter_rows(named=True)}
    items = []
    for image in finished.iter_rows(named=True):
        name, prompt = image["image_id"], known.get(image["prompt_id"], {})
        scope = {part: prompt.get(part) or image.get(part) for part in ("concept", "country", "group")}
        text = prompt.get("text") or image.get("prompt_sent")
        shown = {"prompt": text, "meaning": prompt.get("meaning") or prompt.get("artifact_id") or text, **scope}
        about = {**scope, "model": image["model"], "prompt_id": image["prompt_id"]}
        region = shown.get(scheme.region) if scheme.region else None
        items.append(Item(name, {scheme.pictures[0]: name}, texts_of(shown, scheme, name), region, about))
    return items


def items_of_rows(rows: pl.DataFrame, images: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make an item of every row: `item_id` (or `triplet_id`), an image id per picture, and the fields.

    The column of a picture is called as the scheme calls it, or that with `_id` behind. Columns model, concept,
    country, group and prompt_id say what the item is; what is missing comes from its first picture.
    """
    key = next((name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns), None)
    if key is None:
        raise UsageError("the table of items has no ids", expected="a column item_id", found=", ".join(rows.columns))
    columns = {name: column_of(name, rows) for name in scheme.pictures}
    finished = {row["image_id"]: row for row in images.filter(status="ok").iter_rows(named=True)}
    items = []
    table = rows.with_columns(pl.col(key).cast(pl.String)).sort(key)
    repeated = table.filter(pl.col(key).is_duplicated() | pl.col(key).is_null())
    if repeated.height:
        raise UsageError("an item has no id of its own", expected="ids that differ", found=repr(repeated[key][0]))
    for row in table.iter_rows(named=True):
        pictures = {name: str(row[column]) for name, column in columns.items()}
        if any(image not in finished for image in pictures.values()):
            left_out[ABSENT] += 1
            continue
        first = finished[next(iter(pictures.values()))] if pictures else {}
        about = {name: text_or_none(row.get(name) or first.get(name)) for name in OF_IMAGE}
        text = row.get("prompt") or first.get("prompt_sent")
        known = {**about, "prompt": text, "meaning": text, **row}
        region = text_or_none(known.get(scheme.region)) if scheme.region else None
        items.append(Item(row[key], pictures, texts_of(known, scheme, row[key]), region, about))
    return items


def column_of(picture: str, rows: pl.DataFrame) -> str:
    """Find the column that names a picture."""
    for name in (f"{picture}_id", picture):
        if name in rows.columns:
            return name
    raise UsageError(
        f"the table of items does not say which image is the {picture}",
        expected=f"a column {picture} or {picture}_id", found=", ".join(rows.columns),
    )  # fmt: skip


def texts_of(known: Mapping[str, Any], scheme: Scheme, item_id: str) -> dict[str, str]:
    """Read the fields that a scheme shows."""
    found = {name: text_or_none(known.get(name)) for name in scheme.fields}
    missing = [name for name, text in found.items() if text is None]
    if missing:
        raise UsageError(
            f"the scheme {scheme.name} shows what an item does not have", where=f"item {item_id!r}",
            expected=", ".join(missing), hint="Give --prompts, or --items with these columns.",
        )  # fmt: skip
    return {name: text for name, text in found.items() if text is not None}


def text_or_none(value: object) -> str | None:
    """Read a cell as text."""
    if value is None or value == "":
        return None
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def read_rows(path: Path) -> pl.DataFrame:
    """Read a table of items that the user, or a stage, wrote; every cell of a CSV file is text."""
    if not path.is_file():
        raise UsageError("there is no such table of items", where=str(path))
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return read_csv_texts(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("not a readable table of items", where=str(path), found=str(error)) from error


# Gold items: pictures of which it is known what they show, put among the others so that raters can be held to them.

SEVERAL = "known picture of an artifact of several countries, or of none in the space"
LABELS = ("artifact_id", "country", "continent")


def gold_items(pictures: pl.DataFrame, space: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make an item of every known picture, in the order of the ids.

    Of `truth_artifact_id` and `truth_country` the first is null where only the country is known, both where a picture
    shows no culture; an artifact of several countries needs both.
    """
    if "truth_artifact_id" not in pictures.columns:
        raise UsageError(
            "nobody knows what these pictures show",
            expected="gold pictures with a column truth_artifact_id, or a list with image, artifact, country",
            found=", ".join(pictures.columns),
        )
    if len(scheme.pictures) != 1 or scheme.fields:
        raise UsageError(
            f"the scheme {scheme.name} shows more than one picture", expected="a scheme without fields for gold items"
        )
    places = space.select("artifact_id", "concept", "country", "continent").unique().sort(pl.all()).to_dicts()
    concepts = sorted({known_place["concept"] for known_place in places})
    found = []
    for row in pictures.filter(status="ok").sort("image_id").iter_rows(named=True):
        known_place = place_of(row, places)
        if known_place is None:
            left_out[SEVERAL] += 1
            continue
        drawn = concepts[int(own_generator(0, "concept", row["image_id"]).integers(len(concepts)))]
        about = {"model": row["model"], "concept": known_place.get("concept") or row.get("concept") or drawn}
        known = {name: str(known_place[name]) for name in LABELS if name in known_place}
        found.append(Item(row["image_id"], {scheme.pictures[0]: row["image_id"]}, {}, None, about, known))
    return found


def place_of(row: Mapping[str, Any], places: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """Find where what a picture shows belongs in the space: nowhere if it shows no culture, None if not clear."""
    country = row.get("truth_country")
    if row["truth_artifact_id"] is None:
        return {} if country is None else of_country(country, places)
    found = [
        known
        for known in places
        if known["artifact_id"] == row["truth_artifact_id"] and (country is None or known["country"] == country)
    ]
    return found[0] if len({(known["country"], known["continent"]) for known in found}) == 1 else None


def of_country(country: str, places: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Give a country, in the space or not, and where it lies."""
    found = {known["continent"] for known in places if known["country"] == country}
    lies_in = min(found, default=None) or (countries()[country].continent if country in countries() else None)
    return {"country": country} | ({} if lies_in is None else {"continent": lies_in})


def lookalikes(item: Item, items: Sequence[Item], near: Mapping[str, Sequence[str]], seed: int) -> list[str]:
    """Let a gold item that was not mapped be mapped as another picture is, what it shows among that."""
    excluded = [item.known["artifact_id"]] if item.known and "artifact_id" in item.known else []
    others = [one.item_id for one in items if one.about["concept"] == item.about["concept"]]
    lists = [near[one] for one in others if one in near]
    alike = [one for one in lists if set(excluded) <= set(one)] or lists
    if not alike:
        return excluded
    chosen = alike[int(own_generator(seed, "lookalikes", item.item_id).integers(len(alike)))]
    return list(dict.fromkeys([*excluded, *chosen]))


# Gold pictures that a user lists: files beside the list, and the artifact or country that each is known to show.

COLUMNS = ("artifact", "country")
SCHEMA = {
    name: pl.String()
    for name in ("image_id", "path", "sha256", "status", "model", "truth_artifact_id", "truth_country")
}  # fmt: skip

KnownPlace = Mapping[str, str]


def listed_files(path: Path) -> list[Path]:
    """Name the pictures of a list that are there; a table of images knows the hashes of its own."""
    if path.suffix == ".parquet":
        return []
    names = (str(row[file_column(row, path)]) for _, row in rows_of(path) if set(COLUMNS) <= set(row))
    files = (path.parent / plain_name(name) for name in names if not name_problem(name))
    return [file for file in files if file.is_file()]


def known_pictures(path: Path, space: pl.DataFrame, prompts: Path | None = None) -> pl.DataFrame:
    """Read a table of images, or a list of files with the name or id of an artifact, a country, or neither.

    Of a list the id of a picture is its file's name; a row without artifact and country shows no culture. `prompts`
    name what images show that do not say it themselves.

    Raises:
        ConfigError: all problems of a list, each with its line.
    """
    if path.suffix == ".parquet":
        pictures = read_table(path, IMAGES)
        if "truth_artifact_id" in pictures.columns or prompts is None:
            return pictures
        named = read_table(prompts, PROMPTS).select("prompt_id", truth_artifact_id="artifact_id").drop_nulls()
        return pictures.join(named, on="prompt_id", maintain_order="left")
    places = space.select("artifact_id", "name", "country").unique().sort(pl.all()).to_dicts()
    problems: list[Problem] = []
    found: dict[str, tuple[str | None, ...]] = {}
    for line, row in rows_of(path):
        name = str(row[file_column(row, path)] or "")
        known = shown(row, places)
        problem = file_problem(name, path.parent, found) or (known if isinstance(known, str) else "")
        if problem:
            problems.append(Problem(problem, str(path), line))
        elif not isinstance(known, str):
            file = plain_name(name)
            found[file] = file, file, digest_file(path.parent / file), "ok", "gold", *known
    if problems:
        raise ConfigError(bounded(problems, str(path)))
    return pl.DataFrame(list(found.values()), schema=SCHEMA, orient="row")


def file_column(row: Row, path: Path) -> str:
    """Find the column of the files; those of what they show must be there too."""
    column = next((name for name in FILE_COLUMNS if name in row), None)
    if column is None or not set(COLUMNS) <= set(row):
        raise UsageError(
            "the list does not say what gold pictures show", where=str(path),
            expected="columns image, artifact, country; both cells empty for no culture", found=", ".join(row),
        )  # fmt: skip
    return column


def file_problem(name: str, folder: Path, found: Mapping[str, object]) -> str:
    """Say why a picture cannot be taken; an empty text where it can."""
    if not name:
        return "names no file"
    if problem := name_problem(name):
        return problem
    if plain_name(name) in found:
        return f"{name!r} is listed already"
    return "" if (folder / plain_name(name)).is_file() else f"there is no file {name!r} beside the list"


def shown(row: Row, places: Sequence[KnownPlace]) -> tuple[str | None, str | None] | str:
    """Give the artifact and the country that a row names, or say what is wrong with it."""
    artifact, note = (str(row.get(name) or "").strip() for name in COLUMNS)
    country = country_code(note) if note else None
    if note and country is None:
        return f"unknown country {note!r}: expected its name or its code"
    if not artifact:
        return None, country
    named = [one for one in places if artifact == one["artifact_id"] or folded(artifact) == folded(one["name"])]
    ids = sorted({one["artifact_id"] for one in named if country in (None, one["country"])})
    if len(ids) == 1 and (country or len({one["country"] for one in named}) == 1):
        return ids[0], country
    if ids:
        return f"{artifact!r} is several artifacts, or one of several countries: give the id, and the country"
    where = f" of {note}" if named else ""
    return f"the space has no artifact {artifact!r}{where}: leave the cell empty, and the country alone is asked"


# Names that tell nothing: of tasks, and of the files that annotators see.


def project_id(scheme: object, items: Sequence[str], options: object, *, seed: int) -> str:
    """Name a project by everything that decides its tasks."""
    return digest(["project", scheme, list(items), options, seed])[:12]


def drawn(count: int, *key: object, seed: int) -> list[int]:
    """Draw an order of so many things."""
    return [int(index) for index in own_generator(seed, *key).permutation(count)]


def content_of(data: object) -> str:
    """Hash what a task shows, wherever its pictures lie: of an address the name of the file."""
    if not isinstance(data, dict):
        return digest(["no task"])
    pictures = {key: text for key, text in data.items() if str(key).startswith("picture_") and isinstance(text, str)}
    names = {key: text.replace("\\", "/").rsplit("/", 1)[-1] for key, text in pictures.items()}
    return digest({str(key): value for key, value in (data | names).items()})


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
    name = f"t{digest(['task', project.name, [part, kind, item.item_id, str(number)], seed])[:20]}"
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
        **{
            field: [{"value": offer.code, "html": escape(offer.label)} for offer in options]
            for field, options in offers.items()
        },
    }
    if not files:
        data["subject"] = scheme.title
    right = item.known if kind in {"gold", "trial"} else None if check is None else check.answers
    expected = None if right is None else json.dumps(dict(sorted(right.items())))
    repeat_of = None if first is None else first.task
    return Task(name, kind, item, places, files, data, content_of(data), repeat_of, expected)


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
