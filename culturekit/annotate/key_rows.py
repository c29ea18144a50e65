"""The key of a project: what its blinded tasks stand for."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import polars as pl

from culturekit.annotate.tasks import Part, Project, Task
from culturekit.records.schemas import ANNOTATION_KEY

__all__ = ["key_table"]


def key_table(project: Project, parts: Sequence[Part]) -> pl.DataFrame:
    """Write down every task."""
    rows = [row for part in parts for row in rows_of(project, part)]
    return pl.DataFrame(rows, schema=ANNOTATION_KEY.schema).sort(ANNOTATION_KEY.key)


def rows_of(project: Project, part: Part) -> Iterator[dict[str, Any]]:
    """Write down the tasks of a part."""
    for task in part.tasks:
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
            "pictures": [task.item.pictures[place] for place in task.places],
            "places": list(task.places),
            "files": list(task.files),
            "options": orjson.dumps(meanings(project, task), option=orjson.OPT_SORT_KEYS).decode(),
            "content": task.content,
            **{name: task.item.about.get(name) for name in ("model", "concept", "country", "group", "prompt_id")},
        }


def meanings(project: Project, task: Task) -> dict[str, dict[str, dict[str, str]]]:
    """Tell what the codes of a task's options mean."""
    offers = project.offers.get(task.item.item_id, {})
    return {name: {offer.code: dict(offer.meaning) for offer in listed} for name, listed in offers.items()}
