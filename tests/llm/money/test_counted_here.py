"""Counts of tokens that a server states: believed where they can be true, counted here or charged in full elsewhere."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.client import Identity, Outgoing, Rate, Reply, Usage
from culturekit.llm.clients import google_client, openai_client
from culturekit.llm.prices import picodollars_of
from culturekit.llm.usage import MOST_TOKENS, Counts, fully_counted, stated_usage, too_few

RATE = Rate(0.15, 0.60, cached=0.075)
SAID = '{"id":"Q1","verdict":"keep"}'
ASKED = Outgoing(b'{"messages":"' + b"Is this a dish? " * 100 + b'"}', max_tokens=4_000)
WHO = Identity("openai", "http://127.0.0.1/v1", "/chat/completions", "judge-1")
SENT, CAME = 400, 12


def chat(usage: object) -> Usage:
    choice = {"message": {"content": SAID}, "finish_reason": "stop"}
    return counted(openai_client.read_completion(json.dumps({"choices": [choice], "usage": usage}).encode()))


def responses(usage: object) -> Usage:
    if isinstance(usage, dict):
        usage = {name.replace("prompt", "input").replace("completion", "output"): usage[name] for name in usage}
    output = [{"type": "message", "content": [{"type": "output_text", "text": SAID}]}]
    raw = json.dumps({"status": "completed", "output": output, "usage": usage}).encode()
    return counted(openai_client.read_response(raw))


def gemini(usage: object) -> Usage:
    if isinstance(usage, dict):
        thought = record(usage.get("completion_tokens_details")).get("reasoning_tokens")
        cached = record(usage.get("prompt_tokens_details")).get("cached_tokens")
        names = {"prompt_tokens": "promptTokenCount", "completion_tokens": "candidatesTokenCount"}
        usage = {names[name]: value for name, value in usage.items() if name in names}
        usage |= {"thoughtsTokenCount": thought, "cachedContentTokenCount": cached}
    candidate = {"content": {"parts": [{"text": SAID}]}, "finishReason": "STOP"}
    return counted(google_client.read(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()))


def record(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def counted(reply: Reply) -> Usage:
    return fully_counted(reply, ASKED, WHO).usage


PROTOCOLS = pytest.mark.parametrize("read", [chat, responses, gemini])
NO_COUNTS = [None, -5, 100.0, "100", True, [4], {"n": 4}, 0, MOST_TOKENS + 1, 10**8 + 1, 10**15, 2**64 - 1, 10**30]


@PROTOCOLS
def test_counts_that_can_be_true_are_believed(read: Any) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 100}, "completion_tokens_details": {"reasoning_tokens": 0}}
    usage = read({"prompt_tokens": SENT, "completion_tokens": CAME, "total_tokens": SENT + CAME, **details})
    assert usage == Usage(SENT, CAME, cached_tokens=100)
    assert not usage.doubt


@PROTOCOLS
@pytest.mark.parametrize("value", NO_COUNTS, ids=str)
def test_what_is_no_count_of_the_request_or_the_reply_is_counted_here(read: Any, value: object) -> None:
    usage = read({"prompt_tokens": value, "completion_tokens": CAME})
    assert usage.counted == "here" and usage.doubt
    assert 300 < usage.input_tokens < 1600 and usage.output_tokens == CAME
    usage = read({"prompt_tokens": SENT, "completion_tokens": value})
    assert (usage.counted, usage.input_tokens) == ("here", SENT)
    assert 0 < usage.output_tokens < len(SAID)


@pytest.mark.parametrize(
    ("value", "doubt"),
    [
        (None, f"0 tokens for a request of {len(ASKED.body)} bytes"),
        (10**18, "prompt_tokens is 1000000000000000000"),
        (10**18 + 1, "prompt_tokens is a number beyond all bounds"),
        (-(10**5000), "prompt_tokens is a number beyond all bounds"),
    ],
    ids=["none", "long", "too long", "endless"],
)
def test_why_a_count_is_doubted_is_said_with_the_count(value: object, doubt: str) -> None:
    stated = {"prompt_tokens": value, "completion_tokens": CAME}
    assert (
        counted(Reply(SAID, stated_usage(stated, SAID, sent="prompt_tokens", came="completion_tokens"))).doubt == doubt
    )


@PROTOCOLS
@pytest.mark.parametrize("usage", [None, {}, [400, 12], "free", 7, {"total": 412}], ids=str)
def test_no_counts_at_all_are_counted_here(read: Any, usage: object) -> None:
    assert read(usage).counted == "here"
    assert read(usage).input_tokens > 300
    assert 0 < read(usage).output_tokens < len(SAID)


@PROTOCOLS
@pytest.mark.parametrize("cached", [SENT + 1, 10**9, 10**18, -1, "all", 2.5, True, [1]], ids=str)
def test_cached_tokens_that_cannot_be_are_paid_in_full(read: Any, cached: object) -> None:
    usage = read({"prompt_tokens": SENT, "completion_tokens": CAME, "prompt_tokens_details": {"cached_tokens": cached}})
    assert (usage.input_tokens, usage.cached_tokens) == (SENT, 0)
    assert usage.doubt
    assert picodollars_of(usage, RATE) == SENT * 150_000 + CAME * 600_000


@pytest.mark.parametrize("read", [chat, responses])
@pytest.mark.parametrize("details", ["all", 7, [1], True, 0, ""], ids=str)
def test_details_that_are_none_change_no_price(read: Any, details: object) -> None:
    counts = {"prompt_tokens": SENT, "completion_tokens": CAME}
    usage = read({**counts, "prompt_tokens_details": details, "completion_tokens_details": details})
    assert usage == Usage(SENT, CAME)
    assert "details is" in usage.doubt
    assert not read({**counts, "prompt_tokens_details": None, "completion_tokens_details": None}).doubt


@pytest.mark.parametrize("read", [chat, responses])
def test_thought_that_is_not_among_the_output_comes_on_top(read: Any) -> None:
    counts = {"prompt_tokens": SENT, "completion_tokens": CAME, "completion_tokens_details": {"reasoning_tokens": 300}}
    usage = read(counts)
    assert (usage.output_tokens, usage.thinking_tokens) == (CAME + 300, 300)
    assert usage.doubt
    assert not read({**counts, "total_tokens": SENT + CAME + 300}).doubt


def test_a_total_without_what_was_sent_is_that_of_the_output() -> None:
    usage = Counts({}).usage(SAID, sent=None, came=CAME, thought=300, cached=0, total=CAME + 300)
    assert (usage.output_tokens, usage.doubt) == (CAME + 300, "")


def test_a_total_above_its_parts_is_not_believed_to_be_paid() -> None:
    usage = chat({"prompt_tokens": SENT, "completion_tokens": CAME, "total_tokens": 5_000})
    assert (usage.input_tokens, usage.output_tokens, usage.counted) == (SENT, CAME, "here")
    assert "5000 tokens in total" in usage.doubt
    assert not chat({"prompt_tokens": SENT, "completion_tokens": CAME, "total_tokens": 0}).doubt


def test_gemini_leaves_out_counts_of_none() -> None:
    raw = json.dumps({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": SENT}})
    assert google_client.read(raw.encode()).usage == Usage(SENT, 0)
    usage = {"promptTokenCount": SENT, "thoughtsTokenCount": 50, "totalTokenCount": SENT + 50}
    candidate = {"content": {}, "finishReason": "MAX_TOKENS"}
    read = google_client.read(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()).usage
    assert read == Usage(SENT, 50, 50)
    assert not read.doubt


def test_counts_that_are_far_too_small_are_not_believed() -> None:
    assert chat({"prompt_tokens": 1, "completion_tokens": CAME}).input_tokens > 300
    essay = " ".join(f"word {number}" for number in range(1000))
    choice = {"message": {"content": essay}, "finish_reason": "stop"}
    counts = {"prompt_tokens": SENT, "completion_tokens": 1, "total_tokens": SENT + 1}
    reply = openai_client.read_completion(json.dumps({"choices": [choice], "usage": counts}).encode())
    assert reply.usage.counted == "here"
    assert reply.usage.output_tokens > 1_000
    assert reply.usage.doubt == f"1 tokens for a reply of {len(essay)} characters"


def test_no_more_is_counted_here_than_was_asked_for() -> None:
    choice = {"message": {"content": "a b " * 100_000}, "finish_reason": "stop"}
    usage = counted(openai_client.read_completion(json.dumps({"choices": [choice], "usage": None}).encode()))
    assert usage.output_tokens == ASKED.max_tokens


@pytest.mark.parametrize(
    ("tokens", "text", "few"),
    [
        (100, " " * 10_000_000, False),
        (90, " " * 10_000, False),
        (1, "", False),
        (10, "ab" * 1_000, True),
        (0, "a", True),
    ],
)
def test_runs_of_one_character_take_few_tokens(tokens: int, text: str, few: bool) -> None:
    assert too_few(tokens, text) is few


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**15, 2**63, -(2**63), 2**64, 10**40])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(["cached_tokens", "n"]), below),
    max_leaves=4,
)
NAMES = [
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(NAMES), json_values) | json_values)
def test_whatever_a_server_counts_costs_something_and_fits_into_a_journal(usage: object) -> None:
    for read in (chat, responses, gemini):
        found = read(usage)
        assert 0 < found.input_tokens <= 2 * MOST_TOKENS
        assert 0 < found.output_tokens <= 2 * MOST_TOKENS
        assert 0 <= found.cached_tokens <= found.input_tokens
        assert 0 <= found.thinking_tokens <= found.output_tokens
        assert 0 < picodollars_of(found, RATE) < 2**63
