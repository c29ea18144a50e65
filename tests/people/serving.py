"""A served form for the length of a block, and what a browser would send it."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from culturekit.people.answer_desk import AnswerDesk, FormServer, open_desk
from culturekit.people.answers import AnswerJournal
from tests.people.projects import Answers, form_tasks, key_of, result_of


@contextmanager
def desk_of(project: Path, journal: Path) -> Iterator[AnswerDesk]:
    with AnswerJournal(journal) as opened:
        yield open_desk(project, opened)


@contextmanager
def serving(project: Path, journal: Path) -> Iterator[FormServer]:
    with desk_of(project, journal) as desk, FormServer(desk) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(address: str, body: object = None, *, host: str | None = None) -> tuple[int, bytes]:
    """Get an address, or post to it; give status and content."""
    request = urllib.request.Request(address, None if body is None else orjson.dumps(body))
    if host is not None:
        request.add_header("Host", host)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def entry(project: Path, sheet: str, task: str, person: str, answers: Answers, *, seconds: float = 20.0) -> Any:
    data = next(data for data in with_lists(project) if data["task"] == task)
    annotation = {
        "id": 1, "completed_by": {"id": 0, "email": person, "first_name": "", "last_name": ""},
        "result": result_of(answers), "was_cancelled": False, "ground_truth": False,
        "created_at": "2026-11-21T10:00:00Z", "updated_at": "2026-11-21T10:00:00Z", "lead_time": seconds,
    }  # fmt: skip
    return {"id": 1, "annotations": [annotation], "data": data, "meta": {"sheet": sheet}}


def with_lists(project: Path) -> list[dict[str, Any]]:
    """Give the tasks of a form, with the lists that several share in their places."""
    content = form_tasks(project)
    return [
        {name: content["lists"][value] if isinstance(value, int) else value for name, value in task.items()}
        for task in content["tasks"]
    ]


def answer_sheet(desk: AnswerDesk, project: Path, person: str, answers: Mapping[str, Answers]) -> str | None:
    """Take the next sheet for somebody, and answer all of it: items as said, checks as they ask."""
    sheet: str | None = desk.begin({"annotator": person})["sheet"]
    key = key_of(project)
    if sheet is None:
        return None
    for task in desk.sheets[sheet]:
        desk.take(entry(project, sheet, task, person, right_answer(key[task], answers)))
    return sheet


def right_answer(row: Mapping[str, Any], answers: Mapping[str, Answers]) -> Answers:
    """Answer an item as said, a check as it asks, and a gold item as it is known to be."""
    expected: dict[str, str] = orjson.loads(row["expected"] or "{}")
    if row["kind"] == "gold":
        return {"shows": "country", "country": expected["country"]} if expected else {"shows": "none"}
    return expected or answers[row["item_id"]]
