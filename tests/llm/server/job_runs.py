"""Running batch jobs: when they end, what becomes of each line, what it is billed."""

from collections.abc import Mapping
from typing import Any

from tests.llm.server.answers import Answer, answer_to
from tests.llm.server.error_replies import Refused, error_body
from tests.llm.server.jobs import Job, Line, LineResult, arranged, reaching
from tests.llm.server.made_replies import Question
from tests.llm.server.schedule import Circumstances
from tests.llm.server.script import BODY_FAULTS, STATUS_FAULTS, Fault, JobPlan
from tests.llm.server.selling import Encode, damaged_value, is_good
from tests.llm.server.service import Service


def next_plan(service: Service) -> JobPlan:
    """Give the plan of the job that is made next."""
    made = service.statistics.jobs_made - service.first_job
    return service.script.jobs[made] if made < len(service.script.jobs) else service.script.job


def register(service: Service, job: Job) -> None:
    """Keep a new job and count it."""
    service.storage.jobs[job.name] = job
    service.statistics.made([line.question.digest for line in job.lines if line.question is not None])


def look_at(service: Service, job: Job, encode: Encode) -> Job:
    """Look at a job, which may end by that: jobs go on by being looked at, so that tests need not wait."""
    if job.state == "running" and job.due(service.now()):
        _end(service, job, encode, job.plan.ends, 0.0 if job.plan.ends == "failed" else job.plan.share)
    return job


def _end(service: Service, job: Job, encode: Encode, ends: Any, share: float) -> None:
    done, job.undone = job.chosen(share)
    sold = [_worked(service, line, encode) for line in done]
    made = [result for result, _, _ in sold]
    job.results = arranged(made, job.plan)
    reached = reaching(made, job.results)
    for result, answer, good in sold:
        if answer is not None and result.line.question is not None:
            service.statistics.sold_line(result.line.question, answer, good=good and result.name in reached)
    job.state, job.ended = ends, service.now()


def _worked(service: Service, line: Line, encode: Encode) -> tuple[LineResult, Answer | None, bool]:
    question = line.question
    if question is None:
        refused = Refused("bad-request", line.problem)
        provider = "google" if line.metadata is not None else "openai"
        return LineResult(line, 400, error_body(provider, refused), line.name), None, False
    fault = _fault_of(service, question)
    if fault is not None and fault.kind in STATUS_FAULTS:
        refused = Refused(fault.kind, fault.text)
        return LineResult(line, refused.status, error_body(question.provider, refused), line.name), None, False
    answer = answer_to(question, fault, service.script, service.model)
    body = encode(question, answer)
    assert isinstance(body, dict)
    return LineResult(line, 200, _body(body, fault, question), line.name), answer, is_good(fault)


def _fault_of(service: Service, question: Question) -> Fault | None:
    service.attempts[question.row] += 1
    service.lines += 1
    fault = service.schedule.fault(
        Circumstances(
            operation="batch-line",
            provider=question.provider,
            mode="batch",
            row=question.row,
            attempt=service.attempts[question.row],
            number=service.lines,
            at=service.now(),
            model=question.model,
            body=question.user.encode("utf-8", "replace"),
        )
    )
    if fault is not None:
        service.statistics.struck(fault.kind)
    return fault


def _body(body: dict[str, Any], fault: Fault | None, question: Question) -> Mapping[str, Any]:
    if fault is None or fault.kind not in BODY_FAULTS:
        return body
    if fault.kind == "error-in-200":
        return error_body(question.provider, Refused("server-error", fault.text))
    return damaged_value(body, fault)
