"""Small annotation projects, people who answer them, and their form served for the length of a block."""

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from culturekit.core.digests import digest_bytes
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.run import StageRun
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.stage import Stage
from culturekit.core.tables import write_table
from culturekit.people.answer_desk import AnswerDesk, FormServer, open_desk
from culturekit.people.answers import AnswerJournal
from culturekit.people.export import ExportOptions
from culturekit.people.stages import ExportFiles, export_stage, import_stage
from tests.conftest import stage_here

Answers = Mapping[str, Any]
Answering = Callable[[dict[str, Any], int | str], Answers | None]


def image_row(image_id: str, model: str, prompt_id: str) -> dict[str, Any]:
    return {
        "image_id": image_id, "path": "", "prompt_id": prompt_id, "model": model, "model_version": None, "seed": 0,
        "seed_honoured": True, "repeat": 0, "slot": 0, "prompt_sent": None, "prompt_revised": None, "rewriter": "off",
        "safety": None, "requested_at": None, "provider_params": "{}", "sha256": "", "width": 8, "height": 6,
        "status": "ok", "reason": None,
    }  # fmt: skip


def write_images(folder: Path, rows: Sequence[dict[str, Any]], **columns: pl.Expr | pl.Series) -> Path:
    """Write pictures, each of one colour of its own, under names that tell the model; and more columns."""
    (folder / "files").mkdir(parents=True)
    written = []
    for number, row in enumerate(rows):
        colour = np.array([40 + 37 * number % 200, 90, 250 - 23 * number % 200], np.uint8)
        content = encoded(np.broadcast_to(colour, (row["height"], row["width"], 3)).copy())
        name = f"files/{row['model']}-{number}.png"
        (folder / name).write_bytes(content)
        written.append({**row, "path": name, "sha256": digest_bytes(content)})
    return write_table(folder, IMAGES, pl.DataFrame(written, schema=IMAGES.schema).with_columns(**columns))


def prompt_row(prompt_id: str, text: str, concept: str, country: str | None) -> dict[str, Any]:
    return {
        "prompt_id": prompt_id, "text": text, "negative_text": None, "benchmark": "cube", "kind": "cube",
        "concept": concept, "country": country, "group": None, "artifact_id": None, "language": "en",
        "template_id": "t",
    }  # fmt: skip


def write_prompts(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return write_table(folder, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))


def pictured(folder: Path, images: Iterable[str], *, text: str = "food", country: str = "IN") -> ExportFiles:
    """Write pictures, whose ids begin with their models, and the one prompt that they were made for."""
    pictures = write_images(folder / "images", [image_row(image, image.partition("-")[0], "p") for image in images])
    return ExportFiles([pictures], write_prompts(folder / "prompts", [prompt_row("p", text, "cuisine", country)]))


def run(stage: Stage, out: Path) -> StageRun:
    return stage_here(stage, out)


def export(
    out: Path, files: ExportFiles, scheme: str = "cube", *, seed: int = 1, shortlist: int = 12, **options: Any
) -> StageRun:
    return run(export_stage(files, scheme, ExportOptions(**options), shortlist=shortlist, seed=seed), out)


def import_files(out: Path, project: Path, *files: Path, pool: str | None = None) -> StageRun:
    return run(import_stage(project, files, pool=pool), out)


def answer_all(root: Path, people: Sequence[int | str], answer: Answering, *, pool: str | None = None) -> StageRun:
    """Let people answer all tasks of a project below a folder, and import that into `rated` beside it."""
    (root / "answers.json").write_bytes(orjson.dumps(labelled(studio_tasks(root / "project"), people, answer)))
    return import_files(root / "rated", root / "project", root / "answers.json", pool=pool)


def key_of(project: Path) -> dict[str, dict[str, Any]]:
    """Give what the tasks of a project stand for, by task."""
    rows = pl.read_parquet(project / "annotation_key.parquet").iter_rows(named=True)
    return {row["task"]: row for row in rows}


def by_key(project: Path, answer: Answering) -> Answering:
    """Answer by what a task stands for; what a task asks that tests care, as it asks."""
    key = key_of(project)

    def answered(data: dict[str, Any], person: int | str) -> Answers | None:
        row = key[data["task"]]
        return dict(orjson.loads(row["expected"])) if row["kind"] == "check" else answer(row, person)

    return answered


def studio_tasks(project: Path) -> list[dict[str, Any]]:
    """Give the tasks that Label Studio would import, of all its projects."""
    folder = project / "hand-out/label-studio"
    projects = orjson.loads((folder / "projects.json").read_bytes())
    return [task for one in projects for task in orjson.loads((folder / one["tasks"]).read_bytes())]


def form_tasks(project: Path) -> dict[str, Any]:
    page = (project / "hand-out/form.html").read_text(encoding="utf-8")
    start = page.index('id="content">') + len('id="content">')
    content: dict[str, Any] = orjson.loads(page[start : page.index("</script>", start)])
    return content


def result_of(answers: Answers, to_name: str = "picture_1") -> list[dict[str, Any]]:
    """Write answers as an annotation tool does; a tuple is a free text."""
    result = []
    for name, value in answers.items():
        if isinstance(value, tuple):
            kind, content = "textarea", {"text": list(value)}
        else:
            kind, content = "choices", {"choices": value if isinstance(value, list) else [str(value)]}
        entry = {"id": name, "from_name": name, "to_name": to_name, "type": kind, "origin": "manual", "value": content}
        result.append(entry)
    return result


def labelled(
    tasks: Sequence[dict[str, Any]], people: Sequence[int | str], answer: Answering, *, seconds: float = 20.0
) -> list[dict[str, Any]]:
    """Let people answer tasks as Label Studio exports it; None is no answer."""
    exported = []
    for number, task in enumerate(tasks, start=1):
        given = [(person, answer(task["data"], person)) for person in people]
        exported.append(
            {
                "id": number,
                "data": task["data"],
                "annotations": [
                    {
                        "id": number * 100 + index, "completed_by": person, "result": result_of(words),
                        "was_cancelled": False, "ground_truth": False, "lead_time": seconds,
                        "created_at": "2026-11-21T10:00:00Z",
                    }
                    for index, (person, words) in enumerate(given)
                    if words is not None
                ],
            }
        )  # fmt: skip
    return exported


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
