"""Lines of Gemini batches: a key beside each request, and beside each response, in a file or within the job."""

from collections.abc import Mapping

import msgspec

from culturekit.llm.batches.batch_client import BatchResult, Status
from culturekit.llm.client import FailureKind
from culturekit.llm.failures import failure_of
from culturekit.llm.reading.json_values import decoded

__all__ = ["error_of", "inline_requests", "request_line", "result_of"]

KEY = "key"

NOT_DONE: Mapping[int, FailureKind] = {
    1: "timeout",
    4: "timeout",
    8: "busy",
    10: "server",
    13: "server",
    14: "server",
}
"""Codes of google.rpc that may pass: cancelled, deadline, exhausted, aborted, internal, unavailable."""

STATUS_OF = {3: 400, 5: 404, 7: 403, 9: 400, 11: 400, 16: 401}
"""The others, as the status that they have over HTTP."""


class Trouble(msgspec.Struct):
    """The status of a request that failed."""

    code: Status = 0
    message: str = ""


NOTHING = msgspec.Raw(b"null")


class ResultLine(msgspec.Struct):
    """A line of a file of results, or an element of inline results, its response untouched."""

    key: str | None = None
    metadata: Mapping[str, str] | None = None
    response: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING


class RequestLine(msgspec.Struct):
    """A line of an input file, its request untouched."""

    key: str
    request: msgspec.Raw


def request_line(name: str, body: bytes) -> bytes:
    """Write the line of one request around its body."""
    return b'{"key":' + msgspec.json.encode(name) + b',"request":' + body + b"}\n"


def inline_requests(lines: bytes) -> list[object]:
    """Make of lines what goes inline: the key moves into the metadata."""
    rows = msgspec.json.Decoder(RequestLine).decode_lines(lines)
    return [{"request": msgspec.json.decode(row.request), "metadata": {KEY: row.key}} for row in rows]


def result_of(line: bytes) -> BatchResult | None:
    """Read a line or an element of results; None where it cannot be read or has no key."""
    row: ResultLine | None = decoded(line, ResultLine)
    if row is None:
        return None
    name = row.key or (row.metadata or {}).get(KEY)
    if name is None:
        return None
    if bytes(row.response) != b"null":
        return BatchResult(name, "reply", 200, bytes(row.response))
    return error_of(name, bytes(row.error))


def error_of(name: str, raw: bytes) -> BatchResult:
    """Read why a request has no response; its code is one of google.rpc, or one of HTTP."""
    try:
        trouble = msgspec.json.decode(raw, type=Trouble)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return BatchResult(name, "server", 0, raw, "neither a response nor an error")
    status = STATUS_OF.get(trouble.code, trouble.code)
    if trouble.code in NOT_DONE or status < 400:
        kind = NOT_DONE.get(trouble.code, "server")
        return BatchResult(name, kind, status, raw, trouble.message)
    failure = failure_of(status, {}, msgspec.json.encode({"error": {"code": status, "message": trouble.message}}))
    return BatchResult(name, failure.kind, status, raw, failure.detail)
