"""Lines of OpenAI batches: what goes into the input file, and what the files of results say."""

from collections.abc import Mapping

import msgspec

from culturekit.llm.batches.batch_client import BatchResult, Status
from culturekit.llm.client import FailureKind
from culturekit.llm.failures import failure_of
from culturekit.llm.reading.json_values import each_key_once

__all__ = ["request_line", "result_of"]

NOT_DONE: Mapping[str, FailureKind] = {"batch_expired": "timeout", "batch_cancelled": "timeout"}
"""Errors of rows that were never looked at."""


class Response(msgspec.Struct):
    """The reply to one line, its body untouched."""

    status_code: Status = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class Trouble(msgspec.Struct):
    """Why there is no reply to a line."""

    code: str | None = None
    message: str | None = None


class ResultLine(msgspec.Struct):
    """A line of an output or error file."""

    custom_id: str
    response: Response | None = None
    error: Trouble | None = None


def request_line(name: str, url: str, body: bytes) -> bytes:
    """Write the line of one request around its body."""
    head = msgspec.json.encode({"custom_id": name, "method": "POST", "url": url})
    return head[:-1] + b',"body":' + body + b"}\n"


def result_of(line: bytes) -> BatchResult | None:
    """Read a line of results; None where it cannot be read."""
    try:
        row = msgspec.json.decode(line, type=ResultLine)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not each_key_once(line):
        return None
    response, trouble = row.response, row.error
    if response is not None and response.status_code == 200:
        return BatchResult(row.custom_id, "reply", 200, bytes(response.body))
    if response is not None and response.status_code:
        failure = failure_of(response.status_code, {}, bytes(response.body))
        return BatchResult(row.custom_id, failure.kind, response.status_code, bytes(response.body), failure.detail)
    code = (trouble.code if trouble else None) or "no response and no error"
    detail = f"{code}: {(trouble.message if trouble else None) or ''}"
    return BatchResult(row.custom_id, NOT_DONE.get(code, "server"), 0, line.strip(), detail)
