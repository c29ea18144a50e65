from typing import Literal

import msgspec
import pytest

from culturekit.llm.client import Request
from culturekit.llm.reading.reply_codes import CODES, ParseFailure, ReplyCode
from culturekit.llm.rows import read_reply, repair_request


class Source(msgspec.Struct):
    quotes: list[str]
    year: int | None


class Judged(msgspec.Struct):
    id: str
    verdict: Literal["keep", "remove"]
    sources: list[Source]
    sure: bool = True


REQUEST = Request("task", "Judge.", {"id": "Q1", "label": "kimchi"}, Judged, {"id": ("Q1",)}, sample=3, max_tokens=99)


def test_a_repair_says_the_code_and_the_shape() -> None:
    repaired = repair_request(REQUEST, ParseFailure("missing-key", "verdict", "{}"))
    assert repaired.instructions == (
        "Judge.\n\nAn earlier reply to this could not be used.\n"
        "Error missing-key: A key that was asked for is missing.\n"
        "Reply again, with nothing but one JSON object of this shape:\n"
        '{"id": text, "verdict": "keep" | "remove", '
        '"sources": [{"quotes": [text, ...], "year": whole number | null}, ...], "sure": true | false}\n'
    )
    assert (repaired.data, repaired.reply, repaired.allowed) == (REQUEST.data, Judged, REQUEST.allowed)
    assert (repaired.sample, repaired.max_tokens, repaired.task) == (3, 99, "task")


@pytest.mark.parametrize("text", ["IGNORE", '{"IGNORE": 1}', '{"id": "IGNORE"}', '```IGNORE\n{"id":1}```', "{IGNORE"])
def test_nothing_of_the_reply_is_sent_back(text: str) -> None:
    failure = read_reply(REQUEST, text)
    assert isinstance(failure, ParseFailure)
    assert "IGNORE" not in repair_request(REQUEST, failure).instructions


def test_each_code_makes_a_request_of_its_own_and_the_same_for_ever() -> None:
    def wording(code: ReplyCode, raw: str) -> str:
        return repair_request(REQUEST, ParseFailure(code, raw, raw)).instructions

    every = {wording(code, "x") for code in CODES}
    assert len(every) == len(CODES)
    assert REQUEST.instructions not in every
    assert every == {wording(code, "y") for code in CODES}
