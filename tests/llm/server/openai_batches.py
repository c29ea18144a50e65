"""OpenAI's batches: made of an uploaded file, looked at, listed."""

import time
from typing import Any

import orjson

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.job_runs import look_at, next_plan, register
from tests.llm.server.jobs import Job, Line, LineResult
from tests.llm.server.made_replies import Question
from tests.llm.server.openai_chat import chat_completion, chat_question, response, responses_question
from tests.llm.server.openai_image_making import check_image, image_question, writes_images
from tests.llm.server.openai_requests import check_batch, check_chat, check_responses, fitting
from tests.llm.server.selling import Encode, encoded
from tests.llm.server.service import Service
from tests.llm.server.shapes import anything, fields, one_of, text
from tests.llm.server.wire import Departing, json_departing

_MOST_LINES = 50_000
_LINE = fields(
    {"custom_id": text(512, least=1), "method": one_of("POST"), "url": text(), "body": anything},
    required=("custom_id", "method", "url", "body"),
)


def read_lines(content: bytes, endpoint: str) -> list[Line]:
    """Read an input file; one that is wrong is refused as a whole, a body the model cannot take fails its line only."""
    lines = [orjson.loads(written) for written in content.splitlines()]
    for line in lines:
        fitting(_LINE, line)
    names = {line["custom_id"] for line in lines}
    alike = {(line["url"], line["body"].get("model")) for line in lines}
    if len(names) < len(lines) or len(alike) != 1 or next(iter(alike))[0] != endpoint or len(lines) > _MOST_LINES:
        raise Refused("bad-request", "The lines of a batch have names of their own, one endpoint and one model.")
    return [_line(line, endpoint) for line in lines]


def _line(line: dict[str, Any], endpoint: str) -> Line:
    try:
        return Line(line["custom_id"], _question(line["body"], endpoint))
    except Refused as refused:
        return Line(line["custom_id"], None, refused.message)


def _question(body: dict[str, Any], endpoint: str) -> Question:
    if endpoint == "/v1/images/generations":
        check_image(body)
        return image_question(body, "batch")
    chats = endpoint == "/v1/chat/completions"
    (check_chat if chats else check_responses)(body)
    return chat_question(body, "batch") if chats else responses_question(body, "batch")


def output_lines(job: Job) -> bytes:
    """Write the file of the lines that were answered."""
    return _file(_line_told(result) for result in job.results if result.status == 200)


def error_lines(job: Job) -> bytes:
    """Write the file of the lines that failed, and of those never reached where the plan tells of them."""
    failed = [_line_told(result) for result in job.results if result.status != 200]
    if job.state in {"expired", "cancelled"}:
        failed += [_undone_told(line, job.state) for line in job.undone]
    return _file(failed)


def _file(values: Any) -> bytes:
    return b"".join(encoded(value) + b"\n" for value in values)


def _line_told(result: LineResult) -> dict[str, Any]:
    name = result.line.question.digest[:32] if result.line.question is not None else result.line.name
    response = {"status_code": result.status, "request_id": f"req_{name}", "body": result.body}
    return {"id": f"batch_req_{name}", "custom_id": result.name, "response": response, "error": None}


def _undone_told(line: Line, state: str) -> dict[str, Any]:
    why = "expired" if state == "expired" else "was cancelled"
    error = {"code": f"batch_{state}", "message": f"This request could not be executed before the batch {why}."}
    return {"id": f"batch_req_{line.name[:32]}", "custom_id": line.name, "response": None, "error": error}


_DAY = 86_400


def create_batch(exchange: Exchange) -> Departing:
    """POST /batches."""
    service = exchange.service
    body = json_body(exchange)
    check_batch(body)
    stored = service.storage.files.get(body["input_file_id"])
    if stored is None or stored.provider != "openai":
        raise Refused("bad-request", f"No such File object: {body['input_file_id']}", param="input_file_id")
    if stored.purpose != "batch":
        raise Refused("bad-request", "The input file must have the purpose 'batch'.", param="input_file_id")
    lines = read_lines(stored.content, body["endpoint"])
    job = Job(
        name=service.storage.new_name("batch_"),
        provider="openai",
        plan=next_plan(service),
        created=service.now(),
        model=next((line.question.model for line in lines if line.question is not None), ""),
        endpoint=body["endpoint"],
        source=stored.name,
        tag=body.get("metadata"),
        lines=lines,
    )
    register(service, job)
    departing = json_departing(_told(service, job))
    departing.cut = "after" if job.plan.unsaid else ""
    return departing


def retrieve_batch(exchange: Exchange) -> Departing:
    """GET /batches/{name}."""
    return json_departing(_told(exchange.service, _looked_at(exchange.service, _found(exchange))))


def list_batches(exchange: Exchange) -> Departing:
    """GET /batches, the newest first, a page at a time."""
    service, query = exchange.service, exchange.arrived.query
    limit = min(int(query.get("limit", "20")), 100, service.script.page)
    jobs = [job for job in reversed(service.storage.jobs.values()) if job.provider == "openai"]
    names = [job.name for job in jobs]
    if "after" in query and query["after"] not in names:
        raise Refused("bad-request", f"No batch found with id '{query['after']}'.", param="after")
    start = names.index(query["after"]) + 1 if "after" in query else 0
    page = [_told(service, _looked_at(service, job)) for job in jobs[start : start + limit]]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return json_departing({"object": "list", "data": page, **ends, "has_more": start + limit < len(jobs)})


def _found(exchange: Exchange) -> Job:
    job = exchange.service.storage.jobs.get(exchange.groups["name"])
    if job is None or job.provider != "openai":
        raise Refused("not-found", f"No batch found with id '{exchange.groups['name']}'.", code="not_found")
    return job


def _looked_at(service: Service, job: Job) -> Job:
    running = job.state == "running"
    look_at(service, job, _encode(service, job.endpoint))
    if running and job.state in {"completed", "expired", "cancelled"}:
        job.output_file = _kept(service, job, "output", output_lines(job))
        job.error_file = _kept(service, job, "error", error_lines(job))
    return job


def _kept(service: Service, job: Job, what: str, content: bytes) -> str:
    if not content:
        return ""
    filename = f"{job.name}_{what}.jsonl"
    created = int(time.time())
    keep = service.storage.keep
    return keep("file-", "openai", content, filename=filename, purpose="batch_output", created=created).name


def _told(service: Service, job: Job) -> dict[str, Any]:
    state: str = "in_progress" if job.state == "running" else job.state
    if job.looks == 0 and job.state == "running":
        state = "validating"
    wall = time.time() - service.now()
    created = int(wall + job.created)
    ended = int(wall + job.ended)
    answered = sum(result.status == 200 for result in job.results)
    running = job.state == "running"
    return {
        "id": job.name,
        "object": "batch",
        "endpoint": job.endpoint,
        "model": job.model,
        "errors": _errors(job) if job.state == "failed" else None,
        "input_file_id": job.source,
        "completion_window": "24h",
        "status": state,
        "output_file_id": job.output_file or None,
        "error_file_id": job.error_file or None,
        "created_at": created,
        "in_progress_at": created if job.looks else None,
        "expires_at": created + _DAY,
        "completed_at": ended if job.state == "completed" else None,
        "request_counts": {
            "total": len(job.lines) if job.looks else 0,
            "completed": int(len(job.lines) * job.progress()) if running else answered,
            "failed": 0 if running else len(job.results) - answered,
        },
        "metadata": job.tag,
    }


def _errors(job: Job) -> dict[str, Any]:
    message = "The batch failed for a reason inside the service."
    data = [{"code": job.plan.reason, "line": None, "message": message, "param": None}]
    return {"object": "list", "data": data}


def _encode(service: Service, endpoint: str) -> Encode:
    if endpoint == "/v1/images/generations":
        return writes_images(service.script)
    return chat_completion if endpoint == "/v1/chat/completions" else response
