"""The lines of OpenAI's batch files: those that come in, and those that go out."""

from typing import Any

import orjson

from tests.llm.server.error_replies import Refused
from tests.llm.server.jobs import Job, Line, LineResult
from tests.llm.server.openai_chat import chat_question
from tests.llm.server.openai_image_making import check_image, image_question
from tests.llm.server.openai_requests import check_chat, fitting
from tests.llm.server.openai_response_requests import check_responses
from tests.llm.server.openai_responses import responses_question
from tests.llm.server.questions import Question
from tests.llm.server.selling import encoded
from tests.llm.server.shapes import anything, fields, one_of, text

__all__ = ["error_lines", "output_lines", "read_lines"]

_MOST_LINES = 50_000
_LINE = fields(
    {"custom_id": text(512, least=1), "method": one_of("POST"), "url": text(), "body": anything},
    required=("custom_id", "method", "url", "body"),
)
Problem = tuple[int, str, str]
"""Line number, code, message."""


def read_lines(content: bytes, endpoint: str) -> tuple[list[Line], list[Problem]]:
    """Read an input file; problems fail the whole job, as a body the model cannot take fails its line only."""
    lines, problems = [], []
    seen: set[str] = set()
    models: set[str] = set()
    for number, written in enumerate(content.splitlines(), 1):
        if not written.strip():
            continue
        try:
            line = orjson.loads(written)
            fitting(_LINE, line)
        except ValueError:
            problems.append((number, "invalid_json_line", "This line is not parseable as valid JSON."))
            continue
        except Refused as refused:
            problems.append((number, "invalid_request", refused.message))
            continue
        problem = _line_problem(line, endpoint, seen, models)
        if problem:
            problems.append((number, *problem))
        else:
            lines.append(_line(line, endpoint))
    if not lines and not problems:
        problems.append((1, "empty_file", "The input file is empty."))
    if len(lines) > _MOST_LINES:
        problems.append((_MOST_LINES + 1, "too_many_lines", f"There are more than {_MOST_LINES} requests."))
    return lines, problems


def _line_problem(line: dict[str, Any], endpoint: str, seen: set[str], models: set[str]) -> tuple[str, str] | None:
    if line["custom_id"] in seen:
        return "duplicate_custom_id", f"The custom_id {line['custom_id']!r} for this request is a duplicate."
    seen.add(line["custom_id"])
    if line["url"] != endpoint:
        return "mismatched_endpoint", f"The URL {line['url']!r} is not the endpoint of the batch, {endpoint!r}."
    models.add(str(line["body"].get("model")) if isinstance(line["body"], dict) else "")
    if len(models) > 1:
        return "mismatched_model", "All requests of a batch must be for the same model."
    return None


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
    if body.get("stream"):
        raise Refused("bad-request", "Streaming is not supported in the Batch API.", param="stream")
    return chat_question(body, "batch") if chats else responses_question(body, "batch")


def output_lines(job: Job) -> bytes:
    """Write the file of the lines that were answered."""
    return _file(_line_told(result) for result in job.results if result.status == 200)


def error_lines(job: Job) -> bytes:
    """Write the file of the lines that failed, and of those never reached where the plan tells of them."""
    failed = [_line_told(result) for result in job.results if result.status != 200]
    if job.plan.rest_told and job.state in {"expired", "cancelled"}:
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
