"""What is usual takes a shorter way; it leads to the same place."""

import json
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.clients import google_client, openai_client
from culturekit.llm.clients import google_client as google_lines
from culturekit.llm.clients import openai_client as openai_batches
from culturekit.llm.clients.openai_client import any_completion, plain_completion
from culturekit.llm.replies import plain_object, read_json
from culturekit.llm.untrusted import PLAIN, cleaned, is_plain, plainly_written, written

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["", "a b", "pâté", "寿司", "<b>", '"', "a\\b", "ㅤ", "क्षेत्र", "a\u200db", "[x]"]
)
VALUES = TEXTS | st.none() | st.lists(TEXTS, max_size=3) | st.integers() | st.booleans()


def test_every_character_that_passes_as_plain_is_sent_as_it_is() -> None:
    plain = [character for character in map(chr, range(sys.maxunicode + 1)) if is_plain(character)]
    assert len(plain) > 100_000
    assert not [each for each in plain if written(cleaned({"a": each})) != f'{{"a":"{each}"}}']
    assert PLAIN.fullmatch("ㅤ") is not None
    assert not is_plain("ㅤ")


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_plain_data_is_written_as_any_data_is(data: dict[str, object]) -> None:
    if body := plainly_written(data):
        assert body == written(cleaned(data))


def test_plain_data_takes_the_short_way() -> None:
    assert plainly_written({"id": "Q1", "label": "pâté de foie", "classes": ["dish", "寿司"], "description": None})
    assert not plainly_written({"label": "x" * 8_001})
    assert not plainly_written({"label": "a<b"})


REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "model": st.none() | st.text(max_size=4),
        "system_fingerprint": st.none() | st.just("fp"),
        "choices": st.lists(
            st.fixed_dictionaries(
                {"message": st.fixed_dictionaries({"content": st.none() | st.text(max_size=5)},
                                                  optional={"refusal": st.none() | st.just("no")})},
                optional={"finish_reason": st.sampled_from(["stop", "length", "content_filter", None])},
            ), max_size=2),
        "usage": st.none() | st.fixed_dictionaries(
            {"prompt_tokens": st.integers(-1, 9) | st.booleans(), "completion_tokens": st.integers(0, 9)},
            optional={"prompt_tokens_details": st.sampled_from([None, {"cached_tokens": 2}, {"cached_tokens": None}]),
                      "completion_tokens_details": st.none() | st.just({"reasoning_tokens": 3}) | st.just({})},
        ),
    },
)  # fmt: skip


@given(REPLIES)
def test_the_usual_reply_is_read_as_any_is(body: dict[str, object]) -> None:
    raw = msgspec.json.encode(body)
    reply = plain_completion(raw)
    assert reply is None or reply == any_completion(raw)


def test_the_usual_reply_takes_the_short_way() -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 1}}
    choice = {"index": 0, "message": {"role": "assistant", "content": "{}", "refusal": None}, "finish_reason": "stop"}
    assert plain_completion(msgspec.json.encode({"choices": [choice], "usage": usage, "model": "m"})) is not None


OBJECTS = st.dictionaries(st.text("ab", max_size=2), st.text('ab"\\ ', max_size=4), max_size=3).map(json.dumps)


@given(OBJECTS | st.from_regex(r'\s?\{("[ab]" ?: ?"[ab\\"]{0,2}",?){0,3}\}', fullmatch=True))
def test_a_plain_object_is_read_as_any_is(text: str) -> None:
    plain = plain_object(text)
    if plain is None:
        return
    longer = text + " " * 2_000  # too long for the short way
    assert plain_object(longer) is None
    assert read_json(longer) == plain


def test_no_key_stands_twice_in_a_plain_object() -> None:
    assert plain_object('{"a":"b","a":"c"}') is None
    assert plain_object('{"id": "Q1", "verdict": "keep"}') == {"id": "Q1", "verdict": "keep"}


TWICE = [
    (b'"usage":', b'"usage":{"prompt_tokens":1,"completion_tokens":1},"usage":'),
    (b'"choices":', b'"choices":[],"choices":'),
    (b'"choices":', b'"\\u0063hoices":[], "choices":'),
    (b'"content":', b'"content" : "no","content":'),
    (b'"prompt_tokens":', b'"prompt_tokens":9,"prompt_tokens":'),
    (b'"odd":', b'"odd":{"a":1,"a":2},"more":'),
]


@pytest.mark.parametrize(("place", "instead"), TWICE, ids=[instead.decode() for _, instead in TWICE])
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
    assert openai_batches.result_of(good) is not None
    assert openai_batches.result_of(good.replace(b'"custom_id"', b'"custom_id":"b","custom_id"')) is None
    assert openai_batches.result_of(good.replace(b"200", b"%d" % 10**30)) is None
    assert openai_batches.result_of(good.replace(b"200", b"-200")) is None
    good = b'{"key":"a","error":{"code":13,"message":"no"}}'
    found = google_lines.result_of(good)
    assert found is not None and found.kind == "server"
    assert google_lines.result_of(good.replace(b'"key"', b'"key":"b","key"')) is None
    beyond = google_lines.result_of(good.replace(b"13", b"%d" % 10**30))
    assert beyond is not None and (beyond.kind, beyond.status) == ("server", 0)
