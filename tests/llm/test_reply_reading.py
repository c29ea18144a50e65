import msgspec
from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.client import Request
from culturekit.llm.reply_reading import ParseFailure, read_reply


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    note: str


REQUEST = Request("t", "i", {"id": "Q1"}, Note, {"id": ("Q1",)})


def test_exactly_the_keys_and_values_asked_for_are_an_answer() -> None:
    assert read_reply(REQUEST, ' {"note":"anything","id":"Q1"} ') == Note("Q1", "anything")


@given(st.text(max_size=60) | st.from_regex(r'\{"id":"Q[12]","[a-z]{1,4}":[0-9"]{1,4}\}', fullmatch=True))
def test_any_text_is_an_answer_or_a_failure_that_keeps_the_raw_text(text: str) -> None:
    answer = read_reply(REQUEST, text)
    if isinstance(answer, ParseFailure):
        assert answer.raw == text
    else:
        assert isinstance(answer, Note)
        assert answer.id == "Q1"


def test_a_failure_says_what_is_wrong() -> None:
    codes = [read_reply(REQUEST, text) for text in ("x", '{"id":"Q1"}', '{"id":"Q2","note":""}')]
    assert [failure.code for failure in codes if isinstance(failure, ParseFailure)] == [
        "not a JSON object of the shape asked for",
        "not a JSON object of the shape asked for",
        "a value of id that is not allowed",
    ]
