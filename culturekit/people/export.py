"""A project on disk: what is handed out, and the key that stays."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import orjson
import polars as pl
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from pydantic import Field

from culturekit.core.atomic import write_atomically
from culturekit.core.declared import Typed
from culturekit.core.digests import source_hash
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.pictures.picture_files import NoPicture, encoded
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.schemas import ANNOTATION_KEY
from culturekit.core.spreadsheet_cells import csv_text
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import write_drops, write_table
from culturekit.people.scheme import Scheme, fixed_options
from culturekit.people.tasks import (
    Item,
    Part,
    Project,
    Quotas,
    drawn,
    label_studio_tasks,
    make_parts,
    project_id,
    shares,
    subject_of,
    template,
    trial_part,
)

# Pictures as annotators get them: pixels and nothing else, under names that tell nothing.


@dataclass(frozen=True, slots=True)
class BarePicture:
    """A picture to copy: where it lies, the hash it must have, and where it goes."""

    image_id: str
    root: Path
    relative: str
    sha256: str
    to: Path


def copy_bare(picture: BarePicture) -> str | None:
    """Write the pixels of a picture again, as PNG: no text, date, format or profile of the file goes along.

    Returns why it could not be read, or None.
    """
    found = read_inside(picture.root, picture.relative, sha256=picture.sha256 or None)
    if isinstance(found, NoPicture):
        return str(found)
    write_atomically(picture.to, encoded(found.pixels))
    return None


# The tasks as one HTML page that works from a disk: it loads nothing but pictures, and runs only its own script.

CONTENT = re.compile(r'<script type="application/json" id="content">(.*?)</script>', re.DOTALL)


def page_of(scheme: Scheme, content: Mapping[str, object], *, served: bool = False) -> str:
    """Write the page; the policy in its head allows exactly the style and the script that it carries.

    A `served` one gives each answer to the server it came from, which hands out the sheets; others connect to nothing.
    """
    style, script = template_text("form.css"), template_text("form.js")
    policy = (
        f"default-src 'none'; script-src '{source_hash(script)}'; style-src '{source_hash(style)}'; "
        "img-src 'self' file:; base-uri 'none'; form-action 'none'" + ("; connect-src 'self'" if served else "")
    )
    # JSON in which nothing can end the element that holds it
    text = json.dumps({**content, "served": True} if served else content, ensure_ascii=True, separators=(",", ":"))
    page = page_template("form.html").render(
        scheme=scheme, style=Markup(style), script=Markup(script), policy=policy,
        content=Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")), served=served,
    )  # fmt: skip
    return page + "\n"


def content_in(page: str) -> dict[str, Any]:
    """Read from a page what its script was given."""
    found = CONTENT.search(page)
    if found is None:
        raise IntegrityError("not the form that `annotate export` wrote", expected="a page with its tasks in it")
    content: dict[str, Any] = json.loads(found[1])
    return content


def sheet_name(part: Part, slot: int) -> str:
    """Name the sheet of one slot of a part."""
    return f"{part.name}-{slot + 1}"


def content_of_form(project: Project, parts: Sequence[Part], completion: str) -> dict[str, object]:
    """Give everything the script needs: questions, tasks, and which sheet holds which tasks in which order.

    A number stands in place of each list of options, as many tasks share one. `completion` is the address that ends a
    Prolific study, shown after the answers were saved; empty for none.
    """
    scheme, lists, tasks = project.scheme, dict[str, int](), list[object]()
    sheets = []
    for part in parts:
        first = len(tasks)
        for task in part.tasks:
            short = {
                name: lists.setdefault(json.dumps(value), len(lists))
                for name, value in task.data.items()
                if isinstance(value, list)
            }
            tasks.append({**task.data, **short})
        sheets += [
            {"name": sheet_name(part, slot), "tasks": [first + index for index in order], "about": about(part)}
            for slot, order in enumerate(part.orders)
        ]
    return {
        "project": project.name, "scheme": scheme.name, "to": subject_of(scheme), "pictures": len(scheme.pictures),
        "fields": dict(scheme.fields), "shows": list(scheme.shows),
        "questions": [question(scheme, number) for number in range(len(scheme.criteria))], "tasks": tasks,
        "lists": [json.loads(text) for text in lists], "sheets": sheets, "completion": completion,
    }  # fmt: skip


# what the number of tasks is made of, in words for those who answer
KINDS = {"item": "to judge", "repeat": "shown again later", "check": "that check whether you read along",
         "gold": "whose answer is known",
         "trial": "to try out: most must be right before other answers count"}  # fmt: skip


def about(part: Part) -> str:
    """Say what the tasks of a part are."""
    counts = Counter(task.kind for task in part.tasks)
    return ", ".join(f"{counts[kind]:,} {words}" for kind, words in KINDS.items() if counts[kind])


def question(scheme: Scheme, number: int) -> dict[str, object]:
    """Describe one question for the script."""
    criterion = scheme.criteria[number]
    comment = criterion.comment
    # the ends of a scale are written beside it, not into its steps
    plain = criterion.type == "scale" and [(value, value) for value in criterion.fixed_values]
    options = plain or fixed_options(criterion, scheme)
    return {
        "name": criterion.name,
        "text": criterion.question,
        "type": criterion.type,
        "several": criterion.several,
        "options": [] if criterion.type == "text" else [list(pair) for pair in options],
        "ends": list(criterion.ends or ()),
        "levels": list(criterion.levels),
        "colours": {option.value: option.colour for option in criterion.options if option.colour},
        "open": criterion.open,
        "from": criterion.options_from,
        "alone": list(criterion.alone),
        "when": {name: list(values) for name, values in criterion.when.items()},
        "required": criterion.required,
        "shows": list(criterion.shows),
        "comment": None
        if comment is None
        else {"name": criterion.comment_name, "text": comment.question, "when": list(comment.when),
              "required": comment.required},
    }  # fmt: skip


@cache
def page_template(name: str) -> Template:
    """Compile a template of this package once; all that is put into it is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template_text(name))


def template_text(name: str) -> str:
    """Read a file of the page's template."""
    return files("culturekit").joinpath(f"people/templates/{name}").read_text(encoding="utf-8").strip()


HAND_OUT = "hand-out"  # the folder that annotators may see
PROJECT_FILE = "project.json"  # what the importer knows of a project besides its key: its name and its scheme
EVERYBODY_AT_HOME = Quotas()
MOST_TRIED = 1000  # people of one region who may take its trial in Label Studio
FILLED_IN = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How items become tasks."""

    quotas: Quotas = EVERYBODY_AT_HOME
    per_sheet: Annotated[int, Field(ge=1, le=1000, description="Most items of one sheet.")] = 40
    checks: Annotated[int, Field(ge=0, le=20, description="Attention checks in each sheet.")] = 2
    repeats: Annotated[
        int, Field(ge=0, le=100, description="Items that each sheet asks twice; of three items at most one.")
    ] = 3
    gold: Annotated[
        int,
        Field(ge=0, le=1000, description="Such items in each sheet, where --gold is given; audits need ten."),
        Typed("gold-per-sheet", needs="gold"),
    ] = 10
    trial: Annotated[
        int,
        Field(ge=0, le=100, description="Such items that everybody answers first, in a sheet of their own; three of "
              "four must be right, or as the scheme says."),
        Typed(needs="gold"),
    ] = 0  # fmt: skip
    queues: Annotated[bool, Field(description="Each sheet has items of one concept and region.")] = False
    pictures_at: Annotated[str, Field(description="How Label Studio addresses the pictures.")] = (
        "/data/local-files/?d=pictures/"
    )
    ranked: bool = False
    label_studio: bool = True
    form_at: Annotated[str, Field(description="Web address of the form; writes links for Prolific.")] = ""
    completion: Annotated[str, Field(description="Web address that ends a Prolific study."), Typed(needs="form-at")] = (
        ""
    )

    def __post_init__(self) -> None:
        """Refuse an address that is none."""
        for name, address in (("--form-at", self.form_at), ("--completion", self.completion)):
            parts = urlsplit(address)
            web = parts.scheme in {"http", "https"} and parts.netloc
            if address and (not web or any(c.isspace() or c in "<>\"'" for c in address)):
                raise UsageError(f"{name} is no web address", expected="https://HOST/PATH", found=repr(address))


def plan_project(
    items: Sequence[Item], scheme: Scheme, offers: Mapping[str, Any], options: ExportOptions, *, seed: int
) -> tuple[Project, list[Part]]:
    """Make all tasks of a project, gold items in each sheet; they depend on items, scheme, options and seed alone."""
    gold, items = [one for one in items if one.known is not None], [one for one in items if one.known is None]
    if not items:
        raise UsageError("there is nothing to judge", expected="images that were made and can be read", found="none")
    if gold and len(gold) < options.gold + options.trial:
        raise UsageError(
            "too few items are known for a trial and to be gold items of a sheet",
            expected=f"at least {options.gold + options.trial}, or another --gold-per-sheet or --trial",
            found=str(len(gold)),
        )  # fmt: skip
    order = drawn(len(gold), "trial", seed=seed) if options.trial else range(len(gold))
    trial, gold = [gold[index] for index in order[: options.trial]], [gold[index] for index in order[options.trial :]]
    plan = [options.quotas.inside, options.quotas.outside, list(options.quotas.regions), options.per_sheet]
    shown = [item.item_id for item in items]
    plan += ["everywhere"] if options.quotas.everywhere else []
    plan += ["queues"] if options.queues else []
    plan += ["ranked"] if options.ranked else []
    plan += [options.checks, options.repeats, *([options.gold, [one.item_id for one in gold]] if gold else [])]
    plan += ["trial", *(one.item_id for one in trial)] if trial else []
    name = project_id(scheme.as_asked(), shown, plan, seed=seed)
    project = Project(
        name, scheme, seed, options.per_sheet, options.checks, options.repeats, offers, gold,
        options.gold if gold else 0, trial, options.queues, options.ranked,
    )  # fmt: skip
    found = shares(items, options.quotas, seed=seed, ranked=options.ranked)
    trials = [trial_part(project, region) for region in sorted({share.region for share in found} if trial else ())]
    return project, [*trials, *(part for share in found for part in make_parts(project, share))]


def export_project(
    work: Work, items: Sequence[Item], images: Mapping[str, BarePicture], scheme: Scheme, offers: Mapping[str, Any],
    options: ExportOptions, left_out: Counter[str], *, seed: int, drawing: str = "",
) -> Outcome:  # fmt: skip
    """Write a project: `hand-out/` for annotators, and beside it the key, with the drawing that the items come from.

    A picture that cannot be read takes its items with it, and is counted; then the others are planned again.
    """
    out = work.out / HAND_OUT
    readable = items
    drops: dict[str, str] = {}
    for _ in range(2):
        project, parts = plan_project(readable, scheme, offers, options, seed=seed)
        failed = copy_pictures(work, out / "pictures", parts, images)
        if not failed:
            break
        drops |= failed
        readable = [item for item in items if not set(item.pictures.values()) & drops.keys()]
        for what, gold in (("picture", False), ("gold picture", True)):
            asked, left = (sum((one.known is not None) == gold for one in some) for some in (items, readable))
            if asked and not left:
                image, reason = min(drops.items())
                raise UsageError(
                    f"no {what} can be read", expected="pictures where their table, or the list of gold items, says",
                    found=f"{asked:,} that cannot, such as {image!r}: {reason}",
                )  # fmt: skip
    for reason in drops.values():
        left_out[reason.partition(":")[0]] += 1
    write_hand_out(out, project, parts, options)
    record = {"project": project.name, "scheme": scheme.model_dump(mode="json")}
    record |= {"drawing": drawing} if drawing else {}
    write_atomically(work.out / PROJECT_FILE, orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n")
    rows = [row for part in parts for row in rows_of(project, part)]
    key = pl.DataFrame(rows, schema=ANNOTATION_KEY.schema).sort(ANNOTATION_KEY.key)
    write_table(work.out, ANNOTATION_KEY, key)
    known = len(project.gold) + len(project.trial)
    counts = {"annotation_key": key.height, "items": len(readable) - known}
    counts["sheets"] = sum(part.share.slots for part in parts)
    if drops:
        write_drops(work.out, [(image, None, "annotate-export", reason, None) for image, reason in drops.items()])
        counts["drops"] = len(drops)
    return Outcome(counts, +left_out)


def copy_pictures(work: Work, folder: Path, parts: Sequence[Part], images: Mapping[str, BarePicture]) -> dict[str, str]:
    """Copy the pictures that tasks show; give those that could not be read, with the reason."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    wanted = {
        task.item.pictures[source]: folder / file
        for part in parts
        for task in part.tasks
        for source, file in zip(task.places, task.files, strict=True)
    }
    pictures = [replace(images[image], to=to) for image, to in sorted(wanted.items())]
    work.progress.begin(len(pictures), "pictures")
    failed = {}
    for picture, reason in zip(pictures, work.engine.map(copy_bare, pictures), strict=True):
        work.progress.advance(1)
        if reason is not None:
            failed[picture.image_id] = reason
    return failed


def write_hand_out(out: Path, project: Project, parts: Sequence[Part], options: ExportOptions) -> None:
    """Write what annotators and the annotation tool get."""
    page = page_of(project.scheme, content_of_form(project, parts, options.completion))
    write_atomically(out / "form.html", page.encode())
    if not options.label_studio:
        return
    studio = out / "label-studio"
    studio.mkdir(exist_ok=True)
    write_atomically(studio / "template.xml", template(project.scheme).encode())
    projects = []
    groups = itertools.groupby(parts, key=lambda part: (part.share.region, part.share.slots, part.share.inside,
                                                        part.tasks[0].kind == "trial"))  # fmt: skip
    for number, ((region, slots, _, trial), found) in enumerate(groups, start=1):
        tasks = label_studio_tasks(list(found), options.pictures_at)
        file = f"tasks-{number:02d}.json"
        write_atomically(studio / file, orjson.dumps(tasks, option=orjson.OPT_INDENT_2) + b"\n")
        title = f"{project.scheme.name} {region} {'trial' if trial else number}"
        most = MOST_TRIED if trial else slots
        projects.append({"title": title, "annotator_region": region, "tasks": file, "maximum_annotations": most})
    write_atomically(studio / "projects.json", orjson.dumps(projects, option=orjson.OPT_INDENT_2) + b"\n")
    if options.form_at:
        write_atomically(out / "prolific.csv", prolific_links(parts, options.form_at))


def rows_of(project: Project, part: Part) -> Iterator[dict[str, Any]]:
    """Write down the tasks of a part."""
    for task in part.tasks:
        offers = project.offers.get(task.item.item_id, {})
        meanings = {name: {offer.code: dict(offer.meaning) for offer in listed} for name, listed in offers.items()}
        yield {
            "task": task.task,
            "part": part.name,
            "kind": task.kind,
            "item_id": task.item.item_id,
            "repeat_of": task.repeat_of,
            "expected": task.expected,
            "annotator_region": part.share.region,
            "in_region": part.share.inside,
            "slots": part.share.slots,
            "pictures": [task.item.pictures[picture] for picture in task.places],
            "places": list(task.places),
            "files": list(task.files),
            "options": orjson.dumps(meanings, option=orjson.OPT_SORT_KEYS).decode(),
            "content": task.content,
            **{name: task.item.about.get(name) for name in ("model", "concept", "country", "group", "prompt_id")},
        }


def prolific_links(parts: Sequence[Part], form_at: str) -> bytes:
    """Write a table of sheets: the people who may take each, and the address to enter as the study's.

    One may take a sheet, or of a trial as many as its region has sheets.
    """
    joint = "&" if "?" in form_at else "?"
    slots = Counter[str]()
    for part in parts:
        slots[part.share.region] += part.share.slots
    rows = [
        {
            "sheet": (sheet := sheet_name(part, slot)), "annotator_region": part.share.region,
            "items": len(part.tasks),
            "places": slots[part.share.region] - 1 if part.tasks[0].kind == "trial" else 1,
            "url": f"{form_at}{joint}sheet={quote(sheet, safe='')}&{FILLED_IN}",
        }
        for part in parts
        for slot in range(part.share.slots)
    ]  # fmt: skip
    return csv_text(("sheet", "annotator_region", "items", "places", "url"), rows).encode()
