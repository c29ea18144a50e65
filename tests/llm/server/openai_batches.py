"""OpenAI's batches: made of an uploaded file, looked at, listed, cancelled."""

import time
from typing import Any

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.job_runs import cancel, look_at, next_plan, register
from tests.llm.server.jobs import Job
from tests.llm.server.openai_batch_lines import error_lines, output_lines, read_lines
from tests.llm.server.openai_chat import chat_completion
from tests.llm.server.openai_image_making import writes_images
from tests.llm.server.openai_requests import check_batch
from tests.llm.server.openai_responses import response
from tests.llm.server.selling import Encode
from tests.llm.server.service import Service
from tests.llm.server.wire import Departing, json_departing

__all__ = ["cancel_batch", "create_batch", "list_batches", "retrieve_batch"]

_DAY = 86_400
_KNOWN = {"/v1/chat/completions", "/v1/responses", "/v1/images/generations"}


def create_batch(exchange: Exchange) -> Departing:
    """POST /batches."""
    service = exchange.service
    body = json_body(exchange)
    check_batch(body)
    if body["endpoint"] not in _KNOWN:
        raise Refused("bad-request", f"This server has no {body['endpoint']}.", param="endpoint")
    stored = service.storage.files.get(body["input_file_id"])
    if stored is None or stored.provider != "openai":
        raise Refused("bad-request", f"No such File object: {body['input_file_id']}", param="input_file_id")
    if stored.purpose != "batch":
        raise Refused("bad-request", "The input file must have the purpose 'batch'.", param="input_file_id")
    lines, problems = read_lines(stored.content, body["endpoint"])
    job = Job(
        name=service.storage.new_name("batch_"),
        provider="openai",
        plan=next_plan(service),
        created=service.now(),
        model=next((line.question.model for line in lines if line.question is not None), ""),
        endpoint=body["endpoint"],
        source=stored.name,
        tag=body.get("metadata"),
        lines=[] if problems else lines,
        problems=problems,
    )
    register(service, job)
    departing = json_departing(_told(service, job))
    departing.cut = "after" if job.plan.unsaid else ""
    return departing


def retrieve_batch(exchange: Exchange) -> Departing:
    """GET /batches/{name}."""
    return json_departing(_told(exchange.service, _looked_at(exchange.service, _found(exchange))))


def cancel_batch(exchange: Exchange) -> Departing:
    """POST /batches/{name}/cancel."""
    job = _found(exchange)
    if job.state not in {"running", "cancelling"}:
        raise Refused("conflict", f"Cannot cancel a batch with status '{job.state}'.")
    cancel(job)
    return json_departing(_told(exchange.service, job))


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
    running = job.state in {"running", "cancelling"}
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
    running = job.state in {"running", "cancelling"}
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
        "finalizing_at": ended if job.state == "completed" else None,
        "completed_at": ended if job.state == "completed" else None,
        "failed_at": ended if job.state == "failed" else None,
        "expired_at": ended if job.state == "expired" else None,
        "cancelling_at": ended if job.state == "cancelled" else None,
        "cancelled_at": ended if job.state == "cancelled" else None,
        "request_counts": {
            "total": len(job.lines) if job.looks else 0,
            "completed": int(len(job.lines) * job.progress()) if running else answered,
            "failed": 0 if running else len(job.results) - answered,
        },
        "usage": _usage(job) if job.sold.replies else None,
        "metadata": job.tag,
    }


def _usage(job: Job) -> dict[str, Any]:
    sold = job.sold
    return {
        "input_tokens": sold.input_tokens,
        "input_tokens_details": {"cached_tokens": sold.cached_tokens},
        "output_tokens": sold.output_tokens,
        "output_tokens_details": {"reasoning_tokens": sold.thinking_tokens},
        "total_tokens": sold.input_tokens + sold.output_tokens,
    }


def _errors(job: Job) -> dict[str, Any]:
    problems = job.problems or [(0, job.plan.reason, "The batch failed for a reason inside the service.")]
    data = [{"code": code, "line": line or None, "message": message, "param": None} for line, code, message in problems]
    return {"object": "list", "data": data}


def _encode(service: Service, endpoint: str) -> Encode:
    if endpoint == "/v1/images/generations":
        return writes_images(service.script)
    return chat_completion if endpoint == "/v1/chat/completions" else response
