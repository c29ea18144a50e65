"""JSON that others wrote: a key that stands twice, or a number beyond all bounds, is not taken for what it is not."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.client import Failure
from culturekit.llm.clients import google_client, openai_client
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


TWICE = [
    (b'"usage":', b'"usage":{"prompt_tokens":1,"completion_tokens":1},"usage":'),
    (b'"choices":', b'"choices":[],"choices":'),
    (b'"choices":', b'"\\u0063hoices":[], "choices":'),
    (b'"content":', b'"content" : "no","content":'),
    (b'"prompt_tokens":', b'"prompt_tokens":9,"prompt_tokens":'),
    (b'"odd":', b'"odd":{"a":1,"a":2},"more":'),
]


@pytest.mark.parametrize(("place", "instead"), TWICE)
def test_a_key_that_stands_twice_around_the_answer_is_refused_as_within_it(place: bytes, instead: bytes) -> None:
    counts = {"prompt_tokens": 90, "completion_tokens": 12}
    choice = {"index": 0, "message": {"content": "{}"}, "finish_reason": "stop"}
    raw = msgspec.json.encode({"odd": ":", "choices": [choice], "usage": counts, "model": "m"})
    assert openai_client.read_completion(raw).stop == "end"
    reply = openai_client.read_completion(raw.replace(place, instead, 1))
    assert (reply.stop, reply.detail, reply.text) == ("unreadable", "a key stands twice in it", "")


def test_other_protocols_refuse_a_key_that_stands_twice_too() -> None:
    output = [{"type": "message", "content": [{"type": "output_text", "text": "{}"}]}]
    for read, body, key in (
        (openai_client.read_response, {"status": "completed", "output": output}, b'"status":'),
        (google_client.read, {"candidates": [{"content": {"parts": [{"text": "{}"}]}}]}, b'"candidates":'),
    ):
        raw = msgspec.json.encode(body)
        assert read(raw).stop == "end"
        assert read(raw.replace(key, key + b"null," + key, 1)).detail == "a key stands twice in it"


def test_a_line_of_a_batch_with_a_key_twice_or_an_impossible_status_is_none() -> None:
    good = b'{"custom_id":"a","response":{"status_code":200,"body":{}}}'
    assert openai_client.result_of(good) is not None
    for place, instead in ((b'"custom_id"', b'"custom_id":"b","custom_id"'), (b"200", b"9" * 30), (b"200", b"-200")):
        assert openai_client.result_of(good.replace(place, instead)) is None
    good = b'{"key":"a","error":{"code":13,"message":"no"}}'
    found = google_client.result_of(good)
    assert found is not None and found.kind == "server"
    assert google_client.result_of(good.replace(b'"key"', b'"key":"b","key"')) is None
    beyond = google_client.result_of(good.replace(b"13", b"%d" % 10**30))
    assert beyond is not None and (beyond.kind, beyond.status) == ("server", 0)
