"""JSON that others wrote: a key that stands twice, or a number beyond all bounds, is not taken for what it is not."""

import msgspec
import pytest

from culturekit.llm.clients import google_client, openai_client

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
