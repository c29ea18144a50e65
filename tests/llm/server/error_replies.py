"""Replies that say no, in the shape each provider gives them."""

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import msgspec

from tests.llm.server.script import STATUS_FAULTS, Fault
from tests.llm.server.wire import Departing, json_departing

# OpenAI's type and code, and Google's status, of each fault with a status.
_NAMES: dict[str, tuple[str, str | None, str]] = {
    "busy": ("requests", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
    "insufficient-quota": ("insufficient_quota", "insufficient_quota", "RESOURCE_EXHAUSTED"),
    "server-error": ("server_error", None, "INTERNAL"),
    "unavailable": ("server_error", "server_overloaded", "UNAVAILABLE"),
    "gateway-timeout": ("server_error", None, "DEADLINE_EXCEEDED"),
    "unauthorized": ("invalid_request_error", "invalid_api_key", "UNAUTHENTICATED"),
    "key-invalid": ("invalid_request_error", "invalid_api_key", "INVALID_ARGUMENT"),
    "forbidden": ("invalid_request_error", "unsupported_country_region_territory", "PERMISSION_DENIED"),
    "not-found": ("invalid_request_error", "model_not_found", "NOT_FOUND"),
    "bad-request": ("invalid_request_error", None, "INVALID_ARGUMENT"),
    "content-policy": ("invalid_request_error", "content_policy_violation", "INVALID_ARGUMENT"),
    "moderation": ("image_generation_user_error", "moderation_blocked", "INVALID_ARGUMENT"),
    "too-large": ("invalid_request_error", "request_too_large", "INVALID_ARGUMENT"),
}


class Refused(Exception):
    """A request that the provider would not take; `kind` is one of the faults with a status."""

    def __init__(self, kind: str, message: str = "", *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.code = code

    @property
    def status(self) -> int:
        return STATUS_FAULTS[self.kind][0]


def error_body(provider: str, refused: Refused, details: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    kind, code, status = _NAMES[refused.kind]
    message = refused.message or f"{STATUS_FAULTS[refused.kind][1].capitalize()}."
    if provider == "google":
        if refused.kind == "key-invalid":
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            details = [{**info, "domain": "googleapis.com"}]
        error: dict[str, Any] = {"code": refused.status, "message": message, "status": status}
        return {"error": {**error, "details": details} if details else error}
    return {"error": {"message": message, "type": kind, "param": refused.param, "code": refused.code or code}}


def error_reply(provider: str, refused: Refused) -> Departing:
    return json_departing(error_body(provider, refused), refused.status)


def fault_reply(provider: str, fault: Fault) -> Departing:
    refused = Refused(fault.kind, fault.text)
    details = _google_details(fault) if provider == "google" and fault.kind != "forbidden" else None
    reply = json_departing(error_body(provider, refused, details), refused.status)
    if fault.hint == "retry-after-date":
        reply.headers.append(("retry-after", formatdate(math.ceil(time.time() + fault.wait), usegmt=True)))
    elif fault.hint in {"retry-after", "retry-after-ms"}:  # never less than `wait`
        unit = 1000 if fault.hint == "retry-after-ms" else 1
        reply.headers.append((fault.hint, str(math.ceil(fault.wait * unit))))
    if provider == "openai" and fault.kind == "insufficient-quota":
        reply.headers.append(("x-should-retry", "false"))
    return reply


def _google_details(fault: Fault) -> list[dict[str, Any]] | None:
    details: list[dict[str, Any]] = []
    if fault.kind in {"busy", "insufficient-quota"}:
        per = "Day" if fault.kind == "insufficient-quota" else "Minute"
        violation = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_paid_tier_requests",
            "quotaId": f"GenerateRequestsPer{per}PerProjectPerModel",
        }
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
    if fault.hint == "retry-info":
        delay = f"{math.ceil(fault.wait * 1000) / 1000:g}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return details or None


_NAME = re.compile(r'\bname="([^"]*)"')
_FILENAME = re.compile(r'\bfilename="([^"]*)"')


@dataclass(frozen=True, slots=True)
class _FormPart:
    filename: str | None
    content: bytes


def parse_form(content_type: str, body: bytes) -> dict[str, _FormPart]:
    found = re.search(r'boundary="?([^";]+)', content_type)
    if not content_type.startswith("multipart/form-data") or found is None:
        raise Refused("bad-request", f"expected multipart/form-data, found {content_type!r}")
    parts = {}
    for chunk in body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = chunk.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        named = head.decode("utf-8", "replace")
        name, filename = _NAME.search(named), _FILENAME.search(named)
        if name is not None:
            parts[name[1]] = _FormPart(filename[1] if filename else None, content.removesuffix(b"\r\n"))
    return parts


_SAID = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_FIELDS = {
    "Object contains unknown": ("Unknown parameter", "unknown_parameter"),
    "Object missing required": ("Missing required parameter", "missing_required_parameter"),
}


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a request; a field that is not listed is a mistake of the client."""


def fitting(kind: Any, body: Any) -> None:
    """Hold a body against a struct."""
    try:
        msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        found = _SAID.fullmatch(str(error))
        assert found is not None
        what, path = found.groups(default="")
        problem, _, field = what.partition(" field `")
        said, code = _FIELDS.get(problem, (what, "invalid_type" if ", got" in what else "invalid_value"))
        where = ".".join(filter(None, (path, field.rstrip("`"))))
        raise Refused("bad-request", f"{said}: '{where}'.", param=where, code=code) from None


def nodes(node: Any, where: str, depth: int = 1) -> Iterator[tuple[Any, str, int]]:
    """Yield each node of a schema with its place, and in how many objects and lists it is."""
    yield node, where, depth
    if not isinstance(node, dict):
        return
    for group in ("properties", "$defs", "definitions"):
        for name, part in (node.get(group) or {}).items():
            yield from nodes(part, f"{where}.{group}.{name}", depth + (group == "properties"))
    for word in ("items", "additionalProperties"):
        if not isinstance(node.get(word, False), bool):
            yield from nodes(node[word], f"{where}.{word}", depth + 1)
    for word in ("anyOf", "oneOf", "prefixItems"):
        for at, part in enumerate(node.get(word) or ()):
            yield from nodes(part, f"{where}.{word}[{at}]", depth)
