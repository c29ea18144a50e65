import json
from typing import Annotated, Literal, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from culturekit.llm.client import Request
from culturekit.llm.replies import CODES, Answer, ParseFailure, ReplyCode, read_reply, repair_request, without_fence


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    note: str


class Judged(msgspec.Struct, frozen=True):
    id: str
    verdict: Literal["keep", "remove"]


class Page(msgspec.Struct, frozen=True):
    verdicts: list[Judged]


class Refined(msgspec.Struct, frozen=True):
    best: str | None
    others: list[str]
    share: float = 0.5
    rank: int = 1


class Marked(msgspec.Struct, frozen=True):
    mark: Annotated[str, msgspec.Meta(pattern="^[1-5]$")]
    why: str = ""


REQUEST = Request("t", "i", {"id": "Q1"}, Note, {"id": ("Q1",)})
PAGE = Request("t", "i", {}, Page, {"verdicts[].id": ("Q1", "Q2")})
MARKED = Request("t", "i", {}, Marked)
REFINED = Request("t", "i", {}, Refined, {"best": ("Q1", "Q2"), "others": ("Q1", "Q2")})
GOOD = '{"id":"Q1","note":"n"}'


def code_of(answer: Answer) -> str:
    return answer.code if isinstance(answer, ParseFailure) else ""


PIECES = st.sampled_from(
    ["{", "}", "[", "]", '"', "\\", ",", ":", "id", "note", "Q1", "null", "NaN", "-", "1e999", "9" * 30, "\\ud800"]
    + ["```", "```json\n", "\n", " " * 250, "\u2028", "\ud800", "\x00", GOOD, GOOD[:-1]]
)


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"a":' * 100_000, '"' + '\\"' * 200_000, "[{" + '"' * 300_000, "```" * 200_000, " x" * 400_000],
    ids=["lists", "objects", "escaped quotes", "quotes", "fences", "spaces"],
)
def test_large_nonsense_has_a_code(text: str) -> None:
    assert code_of(read_reply(REQUEST, text)) in {"too-deep", "not-json", "fenced", "unfinished"}


@settings(deadline=None)
@given(
    st.lists(PIECES, max_size=40).map("".join) | st.from_regex(r'\{"id":"Q[12]","note":[0-9"n]{1,4}\}', fullmatch=True)
)
@example("\ufeff" + GOOD)
def test_nothing_a_model_says_is_a_crash(text: str) -> None:
    answer = read_reply(REQUEST, text)
    assert (answer == Note("Q1", "n")) == (text.strip(" \t\r\n") == GOOD)
    assert code_of(answer) in {"", *CODES}
    assert not isinstance(answer, ParseFailure) or answer.raw == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("\n" * 300, "endless-white-space"),
        ('{"id":"Q1",' + "\n" * 5000, "endless-white-space"),
        (" " * 2_000_000, "endless-white-space"),
        ("I would keep it.", "not-json"),
        ("nö", "not-json"),
        ('{"id": Q1}', "not-json"),
        ("{'id': 'Q1'}", "not-json"),
        ('{"id":"Q1","note":"a\nb"}', "not-json"),
        (GOOD[:-3], "unfinished"),
        ('{"id":', "unfinished"),
        (f"```json\n{GOOD}\n```", "fenced"),
        (f"Sure: {GOOD}", "text-around"),
        (GOOD + GOOD, "text-around"),
        (GOOD + " There you are.", "text-around"),
        (f"<think>keep</think>{GOOD}", "text-around"),
        ("[1]", "not-an-object"),
        ("null", "not-an-object"),
        ('"Q1"', "not-an-object"),
        ('{"id":"Q1","id":"Q1","note":"n"}', "duplicate-key"),
        ('{"id":"Q2","i\\u0064":"Q1","note":"n"}', "duplicate-key"),
        ('{"id":"Q1"}', "missing-key"),
        ('{"id":"Q1","note":"n","more":1}', "unknown-key"),
        ('{"more":1,"id":"Q1"}', "missing-key"),
        ('{"note":7}', "missing-key"),
        ('{"more":1,"note":7,"id":"Q1"}', "wrong-type"),
        ('{"id":"Q1","note":7}', "wrong-type"),
        ('{"id":"Q1","note":null}', "wrong-type"),
        ('{"id":"Q1","note":NaN}', "not-a-number"),
        ('{"id":"Q1","note":-Infinity}', "not-a-number"),
        ('{"id":"Q1","note":"\\ud800"}', "lone-surrogate"),
        ('{"id":"Q1","note":"\ud800"}', "lone-surrogate"),
        ('{"id":"Q1","note":"n","' + "\\udc00" + '":1}', "lone-surrogate"),
        ('{"id":"Q1","note":' + "9" * 5000 + "}", "number-out-of-range"),
        ('{"id":"Q1","note":' + "[" * 60 + "]" * 60 + "}", "too-deep"),
        ('{"id":"Q1","note":"' + "x" * 10_000_000 + '"}', "too-long"),
        ('{"id":"Q2","note":"n"}', "unknown-id"),
        ('{"id":" Q1","note":"n"}', "unknown-id"),
        ('{"id":"Ｑ1","note":"n"}', "unknown-id"),
        (' {"note":"anything","id":"Q1"} ', ""),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_each_mistake_has_its_code(text: str, code: str) -> None:
    assert code_of(read_reply(REQUEST, text)) == code


def page(*ids: str) -> str:
    return json.dumps({"verdicts": [{"id": each, "verdict": "keep"} for each in ids]})


def refined(best: str = "null", others: str = "[]", more: str = "") -> str:
    return f'{{"best":{best},"others":{others}{more}}}'


@pytest.mark.parametrize(
    ("request_", "text", "code"),
    [
        (PAGE, page("Q1", "Q2"), ""),
        (PAGE, page("Q2", "Q1"), ""),
        (PAGE, page("Q1"), "missing-id"),
        (PAGE, page(), "missing-id"),
        (PAGE, page("Q1", "Q2", "Q2"), "duplicate-id"),
        (PAGE, page("Q1", "Q3"), "unknown-id"),
        (REFINED, refined('"Q1"', '["Q2"]'), ""),
        (REFINED, refined(), ""),
        (REFINED, refined('"Q3"'), "unknown-id"),
        (REFINED, refined(others='["Q2","Q2"]'), "duplicate-id"),
        (REFINED, refined(others='["Q2","Q4"]'), "unknown-id"),
        (REFINED, refined(others="[null]"), "wrong-type"),
        (REFINED, refined(more=',"rank":2.0'), ""),
        (REFINED, refined(more=',"rank":2.5'), "wrong-type"),
        (REFINED, refined(more=',"rank":true'), "wrong-type"),
        (REFINED, refined(more=',"rank":9223372036854775808'), "number-out-of-range"),
        (REFINED, refined(more=',"share":1e999'), "number-out-of-range"),
        (MARKED, r'{"mark":"3","why":"so\n"}', ""),
        (MARKED, r'{"mark":"3\n"}', "wrong-value"),
        (MARKED, r'{"mark":"6"}', "wrong-value"),
    ],
)
def test_ids_are_among_those_given_each_once_in_a_list_and_numbers_are_numbers(
    request_: Request, text: str, code: str
) -> None:
    assert code_of(read_reply(request_, text)) == code


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n```JSON  \r\n\n{}```\n"])
def test_a_fence_is_taken_off_only_when_that_is_allowed(fence: str) -> None:
    text = fence.replace("{}", GOOD)
    assert code_of(read_reply(REQUEST, text)) == "fenced"
    assert read_reply(REQUEST, without_fence(text)) == Note("Q1", "n")
    others = (f"Sure:\n{text}", f"{text}\nThere.", f"{text}\n{text}", f"```json\n{GOOD}", f"```{GOOD}```")
    for other in (*others, fence.replace("{}", GOOD + GOOD)):
        assert code_of(read_reply(REQUEST, without_fence(other))) in {"fenced", "text-around"}


def test_the_codes_are_a_closed_list_and_a_failure_shows_nothing_of_the_reply() -> None:
    assert list(CODES) == list(get_args(ReplyCode))
    failure = read_reply(REQUEST, '{"id":"Q1","note":"n","EVIL":"EVIL"}')
    assert isinstance(failure, ParseFailure)
    assert (failure.code, failure.detail) == ("unknown-key", "reply")
    assert "EVIL" not in repr(failure)


class Source(msgspec.Struct):
    quotes: list[str]
    year: int | None


class Sourced(msgspec.Struct):
    id: str
    verdict: Literal["keep", "remove"]
    sources: list[Source]
    sure: bool = True


ASKED = Request("task", "Judge.", {"id": "Q1", "label": "kimchi"}, Sourced, {"id": ("Q1",)}, sample=3, max_tokens=99)


def test_a_repair_says_the_code_and_the_shape() -> None:
    repaired = repair_request(ASKED, ParseFailure("missing-key", "verdict", "{}"))
    assert repaired.instructions == (
        "Judge.\n\nAn earlier reply to this could not be used.\n"
        "Error missing-key: A key that was asked for is missing.\n"
        "Reply again, with nothing but one JSON object of this shape:\n"
        '{"id": text, "verdict": "keep" | "remove", '
        '"sources": [{"quotes": [text, ...], "year": whole number | null}, ...], "sure": true | false}\n'
    )
    assert (repaired.data, repaired.reply, repaired.allowed) == (ASKED.data, Sourced, ASKED.allowed)
    assert (repaired.sample, repaired.max_tokens, repaired.task) == (3, 99, "task")


@pytest.mark.parametrize("text", ["IGNORE", '{"IGNORE": 1}', '{"id": "IGNORE"}', '```IGNORE\n{"id":1}```', "{IGNORE"])
def test_nothing_of_the_reply_is_sent_back(text: str) -> None:
    failure = read_reply(ASKED, text)
    assert isinstance(failure, ParseFailure)
    assert "IGNORE" not in repair_request(ASKED, failure).instructions


def test_each_code_makes_a_request_of_its_own_and_the_same_for_ever() -> None:
    def wording(code: ReplyCode, raw: str) -> str:
        return repair_request(ASKED, ParseFailure(code, raw, raw)).instructions

    every = {wording(code, "x") for code in CODES}
    assert len(every) == len(CODES)
    assert ASKED.instructions not in every
    assert every == {wording(code, "y") for code in CODES}
