"""Selling one answer online: quota, fault, answer, damage, delivery, bill."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import orjson

from tests.llm.server.answers import Answer, Question, answer_to, fraction_of
from tests.llm.server.error_replies import Refused, error_body, fault_reply
from tests.llm.server.script import ANSWER_FAULTS, BODY_FAULTS, PLAIN_FAULTS, STATUS_FAULTS, TEXT_FAULTS, Fault, JobPlan
from tests.llm.server.service import Exchange, Record, Service
from tests.llm.server.wire import Departing, json_departing

# Writes an answer in a provider's protocol.
Encode: TypeAlias = Callable[[Question, Answer], dict[str, Any]]
_PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
_DEEP = 100_000
_JSON = ("content-type", "application/json")


def sell(exchange: Exchange, question: Question, encode: Encode) -> Departing:
    service, record, script = exchange.service, exchange.record, exchange.service.script
    service.asked(record, question)
    fault = service.schedule.fault(record, exchange.arrived.body)
    if fault is not None and refuses(fault):
        return refuse(service, record, fault)
    answer = answer_to(question, fault, script, service.model)
    whole = encode(question, answer)
    if fault is None or fault.kind not in BODY_FAULTS:
        departing = Departing(200, [_JSON], encoded(whole))
    elif fault.kind in PLAIN_FAULTS:
        departing = damaged(encoded(whole), fault, question.provider)
    else:
        departing = Departing(200, [_JSON], encoded(damaged_value(whole, fault)))
    departing.delay = service.latency(question)
    if fault is not None:
        departing = connection_fault(departing, fault)
    good = is_good(fault)
    departing.on_work = lambda: service.statistics.sold(question, answer, good=good, record=record)
    return service.finish(record, departing, fault.kind if fault is not None else "")


def refuses(fault: Fault) -> bool:
    return fault.kind in STATUS_FAULTS or fault.kind == "drop-before"


def refuse(service: Service, record: Record, fault: Fault) -> Departing:
    if fault.kind == "drop-before":
        return service.finish(record, Departing(delay=fault.delay, cut="before"), fault.kind)
    departing = fault_reply(record.provider, fault)
    departing.delay = fault.delay
    return service.finish(record, departing, fault.kind, fault)


def is_good(fault: Fault | None) -> bool:
    """Say whether a client gets something it can use, so that asking again would be buying twice."""
    if fault is None or fault.kind in {"none", "stall", "drip", "no-usage", "says"}:
        return True
    return fault.kind not in ANSWER_FAULTS | BODY_FAULTS | TEXT_FAULTS and not fault.kind.startswith("drop")


def connection_fault(departing: Departing, fault: Fault) -> Departing:
    if fault.kind == "drip" and fault.delay is not None:
        pieces = departing.pieces or [departing.body[at : at + 64] for at in range(0, len(departing.body), 64)]
        departing.pieces, departing.pace = pieces, fault.delay / max(1, len(pieces))
    else:
        departing.delay = None if fault.delay is None else (departing.delay or 0.0) + fault.delay
    if fault.kind in {"drop-inside", "drop-after"}:
        departing.cut = "inside" if fault.kind == "drop-inside" else "after"
    return departing


def encoded(value: Any) -> bytes:
    """Write JSON, also JSON that a careful encoder refuses to write."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def damaged(body: bytes, fault: Fault, provider: str) -> Departing:
    match fault.kind:
        case "broken-json":
            return Departing(200, [_JSON], body[: len(body) * 2 // 3])
        case "empty-body":
            return Departing(200, [_JSON], b"")
        case "html-page":
            return Departing(200, [("content-type", "text/html")], _PAGE)
        case "deep-envelope":
            depth = fault.size or _DEEP
            return Departing(200, [_JSON], b'{"choices":' + b"[" * depth + b"]" * depth + b"}")
        case _:
            return replace(fault_reply(provider, Fault("server-error", text=fault.text)), status=200)


def damaged_value(whole: dict[str, Any], fault: Fault) -> dict[str, Any]:
    """Damage the JSON around an answer, leaving it JSON of a kind."""
    match fault.kind:
        case "no-usage":
            whole.pop("usage", None)
            whole.pop("usageMetadata", None)
        case "no-choices":
            for name in {"choices", "candidates", "output", "data"} & whole.keys():
                whole[name] = []
        case "null-content":
            for choice in whole.get("choices") or ():
                choice["message"]["content"] = None
    return whole


PAGE = 20  # jobs that a list tells at most


@dataclass(frozen=True, slots=True)
class Line:
    """One request of a job; `problem` says why it cannot be worked on. `name` is its custom id or key."""

    name: str
    question: Question | None
    problem: str = ""
    metadata: Mapping[str, Any] | None = None

    @property
    def row(self) -> str:
        """The row that is asked about; a name may say where the server is, which is drawn anew in each run."""
        return self.name if self.question is None else self.question.row


def line_of(name: str, read: Callable[[], Question], metadata: Mapping[str, Any] | None = None) -> Line:
    """Read a line; a request that the model cannot take fails its line only."""
    try:
        return Line(name, read(), metadata=metadata)
    except Refused as refused:
        return Line(name, None, refused.message, metadata)


@dataclass(frozen=True, slots=True)
class LineResult:
    line: Line
    status: int
    body: Mapping[str, Any] | None
    name: str


State: TypeAlias = Literal["running", "completed", "expired", "failed", "cancelled"]


@dataclass(slots=True)
class Job:
    name: str
    provider: Literal["openai", "google"]
    plan: JobPlan
    created: float
    model: str
    endpoint: str
    source: str
    tag: Any
    lines: list[Line]
    state: State = "running"
    looks: int = 0
    ended: float = 0.0
    results: list[LineResult] = field(default_factory=list)
    undone: list[Line] = field(default_factory=list)
    output_file: str = ""
    error_file: str = ""

    @property
    def done(self) -> int:
        share = self.plan.share * min(1.0, self.looks / max(1, self.plan.polls))
        return int(len(self.lines) * share)

    @property
    def answered(self) -> int:
        return sum(result.status == 200 for result in self.results)


Told: TypeAlias = Callable[[Service, Job], dict[str, Any]]  # how a provider describes a job


def create(service: Service, told: Told, prefix: str, **parts: Any) -> Departing:
    """Make a job, count it, and say so, unless the plan has the connection cut before that."""
    made = service.statistics.jobs_made - service.first_job
    plan = service.script.jobs[made] if made < len(service.script.jobs) else service.script.job
    job = Job(name=service.storage.new_name(prefix), plan=plan, created=service.now(), **parts)
    service.storage.jobs[job.name] = job
    service.statistics.jobs_made += 1
    service.statistics.lines_made += sum(line.question is not None for line in job.lines)
    departing = json_departing(told(service, job))
    departing.cut = "after" if job.plan.unsaid else ""
    return departing


def found_job(exchange: Exchange, prefix: str) -> Job:
    """Find the job that a path names."""
    name, provider = prefix + exchange.groups["name"], exchange.record.provider
    job: Job | None = exchange.service.storage.jobs.get(name)
    if job is None or job.provider != provider:
        raise Refused("not-found", f"No batch found with id '{name}'.", code="not_found")
    return job


def listed(service: Service, provider: str) -> list[Job]:
    return [job for job in reversed(service.storage.jobs.values()) if job.provider == provider]


def ends_now(service: Service, job: Job, encode: Encode) -> bool:
    """Look at a job, which may end by that: jobs go on by being looked at, so that tests need not wait."""
    if job.state != "running":
        return False
    job.looks += 1
    if job.looks < job.plan.polls:
        return False
    share = 0.0 if job.plan.ends == "failed" else job.plan.share
    count = min(len(job.lines), math.ceil(share * len(job.lines)))
    drawn = sorted(range(len(job.lines)), key=lambda at: fraction_of(job.plan.salt, "done", job.lines[at].row))
    chosen = set(drawn[:count])
    job.undone = [line for at, line in enumerate(job.lines) if at not in chosen]
    sold = [_worked(service, line, encode) for at, line in enumerate(job.lines) if at in chosen]
    made = [result for result, _, _ in sold]
    job.results = arranged(made, job.plan)
    bodies = {(one.name, id(one.body)) for one in job.results}
    for result, answer, good in sold:
        if answer is not None and result.line.question is not None:  # good if its own body comes under its own name
            reached = (result.name, id(result.body)) in bodies
            service.statistics.sold(result.line.question, answer, good=good and reached)
    job.state, job.ended = job.plan.ends, service.now()
    return True


def arranged(results: list[LineResult], plan: JobPlan) -> list[LineResult]:
    """Arrange results as the plan has them: lost, twice, under wrong names, with each other's bodies, shuffled."""

    def drawn(what: str, result: LineResult, share: float) -> bool:
        return fraction_of(plan.salt, what, result.line.row) < share

    answered = [result for result in results if result.status == 200]
    swapped = [result for result in answered if drawn("swapped", result, plan.swapped)]
    if len(swapped) == 1:
        swapped = (swapped + [result for result in answered if result is not swapped[0]])[:2]
    bodies = {id(result): swapped[at - 1].body for at, result in enumerate(swapped)}
    given = []
    for result in results:
        if drawn("missing", result, plan.missing):
            continue
        name = f"{result.name}-unknown" if drawn("misnamed", result, plan.misnamed) else result.name
        given.append(LineResult(result.line, result.status, bodies.get(id(result), result.body), name))
        if drawn("duplicated", result, plan.duplicated):
            given.append(given[-1])
    if plan.shuffled:
        order = sorted(range(len(given)), key=lambda at: fraction_of(plan.salt, "shuffled", given[at].line.row, at))
        given = [given[at] for at in order]
    return given


def _worked(service: Service, line: Line, encode: Encode) -> tuple[LineResult, Answer | None, bool]:
    question = line.question
    if question is None:
        provider = "google" if line.metadata is not None else "openai"
        return LineResult(line, 400, error_body(provider, Refused("bad-request", line.problem)), line.name), None, False
    fault = service.line_fault(question)
    if fault is not None and fault.kind in STATUS_FAULTS:
        refused = Refused(fault.kind, fault.text)
        return LineResult(line, refused.status, error_body(question.provider, refused), line.name), None, False
    answer = answer_to(question, fault, service.script, service.model)
    body = encode(question, answer)
    if fault is not None and fault.kind == "error-in-200":
        body = error_body(question.provider, Refused("server-error", fault.text))
    elif fault is not None and fault.kind in BODY_FAULTS:
        body = damaged_value(body, fault)
    return LineResult(line, 200, body, line.name), answer, is_good(fault)
