"""The tasks as one HTML page that works from a disk: it loads nothing but pictures, and runs only its own script."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from culturekit.annotate.label_studio import fixed_options, subject_of
from culturekit.annotate.scheme import Scheme
from culturekit.annotate.tasks import Part, Project
from culturekit.errors import IntegrityError
from culturekit.storage.digests import source_hash

__all__ = ["content_in", "form_page", "page_of", "sheet_name"]

CONTENT = re.compile(r'<script type="application/json" id="content">(.*?)</script>', re.DOTALL)


def form_page(project: Project, parts: Sequence[Part], *, completion: str = "") -> str:
    """Write the page that works from a disk.

    Args:
        project: what all tasks share.
        parts: all of them; every slot is a sheet.
        completion: the address that ends a Prolific study, shown after the answers were saved; empty for none.
    """
    return page_of(project.scheme, content_of_form(project, parts, completion))


def page_of(scheme: Scheme, content: Mapping[str, object], *, served: bool = False) -> str:
    """Write the page; the policy in its head allows exactly the style and the script that it carries.

    A `served` one gives each answer to the server it came from, which hands out the sheets; others connect to nothing.
    """
    style, script = template_text("form.css"), template_text("form.js")
    policy = (
        f"default-src 'none'; script-src '{source_hash(script)}'; style-src '{source_hash(style)}'; "
        "img-src 'self' file:; base-uri 'none'; form-action 'none'" + ("; connect-src 'self'" if served else "")
    )
    page = template("form.html").render(
        scheme=scheme,
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        content=Markup(in_script({**content, "served": True} if served else content)),
        served=served,
    )
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
    """Give everything the script needs: questions, tasks, and which sheet holds which tasks in which order."""
    scheme = project.scheme
    starts: dict[str, int] = {}
    tasks: list[object] = []
    lists: dict[str, int] = {}
    for part in parts:
        starts[part.name] = len(tasks)
        tasks += [with_lists(task.data, lists) for task in part.tasks]
    sheets = [
        {"name": sheet_name(part, slot), "tasks": [starts[part.name] + place for place in order]}
        for part in parts
        for slot, order in enumerate(part.orders)
    ]
    return {
        "project": project.name,
        "scheme": scheme.name,
        "to": subject_of(scheme),
        "pictures": len(scheme.pictures),
        "fields": dict(scheme.fields),
        "shows": list(scheme.shows),
        "questions": [question(scheme, number) for number in range(len(scheme.criteria))],
        "tasks": tasks,
        "lists": [json.loads(text) for text in lists],
        "sheets": sheets,
        "completion": completion,
    }


def with_lists(data: Mapping[str, object], lists: dict[str, int]) -> dict[str, object]:
    """Put a number in place of each list of options; many tasks share one."""

    def short(value: object) -> object:
        return lists.setdefault(json.dumps(value), len(lists)) if isinstance(value, list) else value

    return {name: short(value) for name, value in data.items()}


def question(scheme: Scheme, number: int) -> dict[str, object]:
    """Describe one question for the script."""
    criterion = scheme.criteria[number]
    comment = criterion.comment
    return {
        "name": criterion.name,
        "text": criterion.question,
        "type": criterion.type,
        "several": criterion.several,
        "options": [] if criterion.type == "text" else [list(pair) for pair in plain_options(scheme, number)],
        "ends": list(criterion.ends or ()),
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


def plain_options(scheme: Scheme, number: int) -> list[tuple[str, str]]:
    """List the options of a question; the ends of a scale are written beside it, not into its steps."""
    criterion = scheme.criteria[number]
    if criterion.type == "scale":
        return [(value, value) for value in criterion.fixed_values]
    return fixed_options(criterion, scheme)


def in_script(value: object) -> str:
    """Write JSON so that nothing in it can end the element that holds it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def template(name: str) -> Template:
    """Compile a template of this package once; all that is put into it is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template_text(name))


def template_text(name: str) -> str:
    """Read a file of the page's template."""
    return files("culturekit").joinpath(f"annotate/templates/{name}").read_text(encoding="utf-8").strip()
