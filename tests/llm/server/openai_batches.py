"""OpenAI's files, uploaded as forms, read back, deleted; and its batches, made of such a file, looked at, listed."""

import time
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import orjson

from tests.llm.server.error_replies import Refused, parse_form
from tests.llm.server.jobs import PAGE, Job, Line, LineResult, create, ends_now, found_job, line_of, listed
from tests.llm.server.made_replies import Question
from tests.llm.server.openai_chat import chat_completion, chat_question, response, responses_question
from tests.llm.server.openai_image_making import image_question, writes_images
from tests.llm.server.openai_requests import Batch, check_chat, check_responses
from tests.llm.server.selling import Encode, encoded
from tests.llm.server.service import Exchange, Service
from tests.llm.server.shapes import Strict, fitting
from tests.llm.server.wire import Departing, json_departing

_PURPOSES = {"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}
_LARGEST = 200 * 1024 * 1024
_MOST_LINES = 50_000
_DAY = 86_400


def create_file(exchange: Exchange) -> Departing:
    """POST /files."""
    form = parse_form(exchange.arrived.headers.get("content-type", ""), exchange.arrived.body)
    for name in form.keys() - {"purpose", "file", "expires_after[anchor]", "expires_after[seconds]"}:
        raise Refused("bad-request", f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    if "file" not in form or form["file"].filename is None:
        raise Refused("bad-request", "'file' is a required property", param="file")
    purpose = form["purpose"].content.decode() if "purpose" in form else ""
    if purpose not in _PURPOSES:
        raise Refused("bad-request", f"{purpose!r} is not one of {sorted(_PURPOSES)} - 'purpose'", param="purpose")
    filename, content = form["file"].filename, form["file"].content
    if purpose == "batch" and not filename.endswith(".jsonl"):
        raise Refused("bad-request", f"Invalid file format. Batch API only supports .jsonl files, found {filename!r}.")
    if purpose == "batch" and len(content) > _LARGEST:
        raise Refused("too-large", f"A batch file may have at most {_LARGEST} bytes.")
    stored = exchange.service.storage.keep("file-", "openai", content, filename=filename, purpose=purpose)
    return json_departing({
        "id": stored.name, "object": "file", "bytes": len(stored.content), "created_at": stored.created,
        "filename": stored.filename, "purpose": stored.purpose, "status": "processed", "status_details": None,
        "expires_at": None,
    })  # fmt: skip


def file_content(exchange: Exchange) -> Departing:
    """GET /files/{name}/content."""
    return Departing(200, [("content-type", "application/octet-stream")], exchange.file().content)


def delete_file(exchange: Exchange) -> Departing:
    """DELETE /files/{name}."""
    name = exchange.file().name
    del exchange.service.storage.files[name]
    return json_departing({"id": name, "object": "file", "deleted": True})


class _RequestLine(Strict):
    custom_id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    method: Literal["POST"]
    url: str
    body: Any


def _read_lines(content: bytes, endpoint: str) -> list[Line]:
    """Read an input file; one that is wrong is refused as a whole, a body the model cannot take fails its line only."""
    lines = [orjson.loads(written) for written in content.splitlines()]
    for line in lines:
        fitting(_RequestLine, line)
    names = {line["custom_id"] for line in lines}
    alike = {(line["url"], line["body"].get("model")) for line in lines}
    if len(names) < len(lines) or len(alike) != 1 or next(iter(alike))[0] != endpoint or len(lines) > _MOST_LINES:
        raise Refused("bad-request", "The lines of a batch have names of their own, one endpoint and one model.")
    return [line_of(line["custom_id"], partial(_question, line["body"], endpoint)) for line in lines]


def _question(body: dict[str, Any], endpoint: str) -> Question:
    if endpoint == "/v1/images/generations":
        return image_question(body, "batch")
    chats = endpoint == "/v1/chat/completions"
    (check_chat if chats else check_responses)(body)
    return chat_question(body, "batch") if chats else responses_question(body, "batch")


def create_batch(exchange: Exchange) -> Departing:
    """POST /batches."""
    service, body = exchange.service, exchange.json()
    fitting(Batch, body)
    name, endpoint = body["input_file_id"], body["endpoint"]
    stored = service.storage.files.get(name)
    if stored is None or stored.provider != "openai" or stored.purpose != "batch":
        raise Refused("bad-request", f"No such File object of the purpose 'batch': {name}", param="input_file_id")
    lines = _read_lines(stored.content, endpoint)
    model = next((line.question.model for line in lines if line.question is not None), "")
    return create(
        service, _told, "batch_",
        provider="openai", model=model, endpoint=endpoint, source=name, tag=body.get("metadata"), lines=lines,
    )  # fmt: skip


def retrieve_batch(exchange: Exchange) -> Departing:
    """GET /batches/{name}."""
    job = _looked_at(exchange.service, found_job(exchange, ""))
    return json_departing(_told(exchange.service, job))


def list_batches(exchange: Exchange) -> Departing:
    """GET /batches, the newest first, a page at a time."""
    service, query = exchange.service, exchange.arrived.query
    limit = min(int(query.get("limit", "20")), PAGE)
    jobs = listed(service, "openai")
    names = [job.name for job in jobs]
    if "after" in query and query["after"] not in names:
        raise Refused("bad-request", f"No batch found with id '{query['after']}'.", param="after")
    start = names.index(query["after"]) + 1 if "after" in query else 0
    page = [_told(service, _looked_at(service, job)) for job in jobs[start : start + limit]]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return json_departing({"object": "list", "data": page, **ends, "has_more": start + limit < len(jobs)})


def _looked_at(service: Service, job: Job) -> Job:
    encode: Encode = chat_completion if job.endpoint == "/v1/chat/completions" else response
    if job.endpoint == "/v1/images/generations":
        encode = writes_images(service.script)
    if ends_now(service, job, encode) and job.state != "failed":
        job.output_file = _kept(service, job, "output", (one for one in job.results if one.status == 200), ())
        # the error file names those that were never reached too
        job.error_file = _kept(service, job, "error", (one for one in job.results if one.status != 200), job.undone)
    return job


def _kept(service: Service, job: Job, what: str, results: Iterable[LineResult], undone: Iterable[Line]) -> str:
    rows: list[dict[str, Any]] = []
    for one in results:
        name = one.line.question.digest[:32] if one.line.question is not None else one.line.name
        answer = {"status_code": one.status, "request_id": f"req_{name}", "body": one.body}
        rows.append({"id": f"batch_req_{name}", "custom_id": one.name, "response": answer, "error": None})
    why = "expired" if job.state == "expired" else "was cancelled"
    message = f"This request could not be executed before the batch {why}."
    for line in undone if job.state in {"expired", "cancelled"} else ():
        error = {"code": f"batch_{job.state}", "message": message}
        rows.append({"id": f"batch_req_{line.name[:32]}", "custom_id": line.name, "response": None, "error": error})
    if not rows:
        return ""
    content = b"".join(encoded(row) + b"\n" for row in rows)
    filename = f"{job.name}_{what}.jsonl"
    return service.storage.keep("file-", "openai", content, filename=filename, purpose="batch_output").name


def _told(service: Service, job: Job) -> dict[str, Any]:
    running = job.state == "running"
    state = "validating" if running and job.looks == 0 else "in_progress" if running else job.state
    wall = time.time() - service.now()
    created = int(wall + job.created)
    message = "The batch failed for a reason inside the service."
    errors = [{"code": "internal_error", "line": None, "message": message, "param": None}]
    return {
        "id": job.name,
        "object": "batch",
        "endpoint": job.endpoint,
        "model": job.model,
        "errors": {"object": "list", "data": errors} if job.state == "failed" else None,
        "input_file_id": job.source,
        "completion_window": "24h",
        "status": state,
        "output_file_id": job.output_file or None,
        "error_file_id": job.error_file or None,
        "created_at": created,
        "in_progress_at": created if job.looks else None,
        "expires_at": created + _DAY,
        "completed_at": int(wall + job.ended) if job.state == "completed" else None,
        "request_counts": {
            "total": len(job.lines) if job.looks else 0,
            "completed": job.done if running else job.answered,
            "failed": 0 if running else len(job.results) - job.answered,
        },
        "metadata": job.tag,
    }
