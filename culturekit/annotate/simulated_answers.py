"""Simulated people fill in a project, and their answers leave as any others do: in the format of an export."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from culturekit.annotate.label_studio import subject_of
from culturekit.annotate.scheme import Scheme
from culturekit.builders.judging.simulated_people import (
    AskedFor,
    Shown,
    SimulatedPeople,
    answers_of,
    is_careless,
    person_draws,
)
from culturekit.errors import UsageError

__all__ = ["SIMULATED", "simulated_export"]

SIMULATED = "simulated"
"""How the name of every simulated annotator begins."""

SCHEME = "cube"


def simulated_export(
    tasks: Sequence[Mapping[str, Any]],
    key: pl.DataFrame,
    scheme: Scheme,
    shown: Mapping[str, Shown],
    asked: Mapping[str, AskedFor],
    how: SimulatedPeople,
    *,
    seed: int,
) -> list[dict[str, Any]]:
    """Answer every slot of every task, checks and repeated items among them.

    Args:
        tasks: what the annotation tool shows: the tasks of the project.
        key: conforms to ANNOTATION_KEY.
        scheme: of the project; simulated people know only `cube`.
        shown: what each item truly shows.
        asked: what each prompt asked for.
        how: how people answer.
        seed: of what they answer.

    Returns:
        Tasks with annotations, as Label Studio exports them.
    """
    if scheme.name != SCHEME:
        raise UsageError("simulated people fill in one scheme only", expected=SCHEME, found=scheme.name)
    rows = {row["task"]: row for row in key.iter_rows(named=True)}
    exported = []
    for number, task in enumerate(sorted(tasks, key=lambda task: str(task["data"]["task"])), start=1):
        row = rows[task["data"]["task"]]
        about = shown.get(row["item_id"], Shown(None, None, None))
        meant = asked.get(row["prompt_id"], AskedFor(None, row["country"], None))
        annotations = list(annotations_of(row, about, meant, scheme, how, seed))
        exported.append({"id": number, "data": task["data"], "annotations": annotations})
    return exported


def annotations_of(
    row: Mapping[str, Any], shown: Shown, asked: AskedFor, scheme: Scheme, how: SimulatedPeople, seed: int
) -> Iterator[dict[str, Any]]:
    """Let every person of a task's slots answer it."""
    for slot in range(row["slots"]):
        person = f"{SIMULATED}-{row['part']}-{slot + 1}"
        careless = is_careless(person, how, seed=seed)
        answers = answers_of(
            person, row["annotator_region"], row["item_id"], shown, asked, how, seed=seed,
            again=row["kind"] != "item",
        )  # fmt: skip
        if row["kind"] == "check" and not careless:
            answers = {name: str(value) for name, value in orjson.loads(row["expected"]).items()}
        seconds = person_draws(person, row["task"], "seconds", seed=seed).uniform(8, 40)
        yield {
            "completed_by": person,
            "lead_time": round(seconds, 1),
            "was_cancelled": False,
            "result": [
                {"from_name": name, "to_name": subject_of(scheme), "type": "choices", "value": {"choices": [value]}}
                for name, value in answers.items()
            ],
        }
