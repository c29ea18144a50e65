import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.client import Failure
from culturekit.llm.failures import LONGEST_MESSAGE, error_of, failure_of


def openai(**parts: object) -> bytes:
    return json.dumps({"error": {"message": "it said no", "type": "x", "param": None, "code": None} | parts}).encode()


def google(code: int, status: str, *details: dict[str, Any], message: str = "it said no") -> bytes:
    error = {"code": code, "message": message, "status": status, "details": list(details)}
    return json.dumps({"error": error}).encode()


INFO = "type.googleapis.com/google.rpc.ErrorInfo"

NO_KEY = google(400, "INVALID_ARGUMENT", {"@type": INFO, "reason": "API_KEY_INVALID"})
OLD_FORM = google(400, "INVALID_ARGUMENT", message="API key not valid. Pass one.")
INNER = {"code": "ResponsibleAIPolicyViolation"}
SETTING = openai(code="unsupported_value", param="temperature")
CASES: dict[str, tuple[int, bytes, str, str]] = {
    "a wrong key": (401, openai(code="invalid_api_key"), "fatal", "key was refused"),
    "a wrong key at Google": (400, NO_KEY, "fatal", "key"),
    "an old form of that": (400, OLD_FORM, "fatal", "key"),
    "no permission": (403, google(403, "PERMISSION_DENIED"), "fatal", "may not use"),
    "no model": (404, openai(code="model_not_found"), "fatal", "model's name"),
    "no model as 400": (400, openai(code="model_not_found"), "fatal", "model's name"),
    "no page": (404, b"<html>nothing here</html>", "fatal", "base_url"),
    "no money": (429, openai(code="insufficient_quota", type="insufficient_quota"), "fatal", "credit"),
    "no money by type": (429, openai(type="insufficient_quota"), "fatal", "credit"),
    "a hard limit": (400, openai(code="billing_hard_limit_reached"), "fatal", "credit"),
    "payment required": (402, b"", "fatal", "credit"),
    "too many": (429, openai(code="rate_limit_exceeded", type="requests"), "busy", ""),
    "too many at Google": (429, google(429, "RESOURCE_EXHAUSTED"), "busy", ""),
    "too many, wordless": (429, b"", "busy", ""),
    "overloaded": (529, b"", "busy", ""),
    "policy": (400, openai(code="content_policy_violation"), "blocked", ""),
    "policy by a filter": (400, openai(code="content_filter", innererror=INNER), "blocked", ""),
    "policy by an inner code": (400, openai(innererror=INNER), "blocked", ""),
    "policy as 403": (403, openai(code="content_policy_violation"), "blocked", ""),
    "a flagged prompt": (400, openai(code="invalid_prompt"), "blocked", ""),
    "too long": (400, openai(code="context_length_exceeded"), "rejected", ""),
    "a bad schema": (400, openai(param="response_format"), "rejected", ""),
    "a setting not taken": (400, SETTING, "fatal", "Leave this option out"),
    "too large": (413, b"", "rejected", ""),
    "not processable": (422, b'{"detail":[{"msg":"bad"}]}', "rejected", ""),
    "a wrong place": (400, google(400, "FAILED_PRECONDITION"), "fatal", "from here"),
    "internal": (500, openai(type="server_error"), "server", ""),
    "unavailable": (503, google(503, "UNAVAILABLE"), "server", ""),
    "a gateway": (502, b"<html>", "server", ""),
    "a slow gateway": (504, b"", "timeout", ""),
    "a slow request": (408, b"", "timeout", ""),
    "a conflict": (409, openai(), "server", ""),
    "moved": (308, b"", "fatal", "another address"),
    "created": (201, b"{}", "server", ""),
    "no money said by a broken server": (500, openai(code="insufficient_quota"), "server", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_becomes_a_kind_and_advice(name: str) -> None:
    status, body, kind, advice = CASES[name]
    failure = failure_of(status, {"retry-after": "7"}, body)
    assert failure.kind == kind
    assert advice in failure.detail
    assert failure.raw == body
    assert failure.status == status
    assert failure.wait == (7.0 if kind in {"busy", "server", "timeout"} else None)
    assert "it said no" in failure.detail or b"it said no" not in body


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (openai(code=429), "busy"),
        (openai(code="rate_limit_exceeded"), "busy"),
        (openai(type="server_error"), "server"),
        (openai(code=502), "server"),
        (openai(code="insufficient_quota"), "fatal"),
        (google(429, "RESOURCE_EXHAUSTED"), "busy"),
        (b'{"error":"model is loading"}', "server"),
    ],
)
def test_an_error_inside_a_200_is_taken_at_its_word(body: bytes, kind: str) -> None:
    error = error_of(json.loads(body))
    assert error is not None
    assert failure_of(200, {}, body, within=error).kind == kind


WORDS = st.sampled_from(["error", "code", "type", "details", "message", "innererror", "@type", "x"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.integers(100, 599), json_values | st.binary(max_size=20))
def test_no_body_is_too_strange(status: int, value: object) -> None:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    failure = failure_of(status, {"retry-after": "x", "date": "y", "retry-after-ms": "-1"}, body)
    assert isinstance(failure, Failure)
    assert failure.wait is None
    assert failure.detail.isprintable()


@given(st.text())
def test_a_message_is_one_short_line_without_tricks(message: str) -> None:
    detail = failure_of(400, {}, openai(message=message)).detail
    assert detail.isprintable()
    assert len(detail) <= LONGEST_MESSAGE + 60
