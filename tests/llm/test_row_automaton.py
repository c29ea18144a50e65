import json
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from culturekit.llm.client import Failure, Reply, Request
from culturekit.llm.rows import OUTCOMES, Answered, Row, failed, heard
from tests.llm.fake_client import Verdict

REQUEST = Request("test", "Judge.", {"id": "Q1"}, Verdict, {"id": ("Q1",)})
GOOD = Reply(json.dumps({"id": "Q1", "verdict": "keep"}))
BAD = Reply("no JSON at all")

events = st.one_of(
    st.just(GOOD),
    st.just(BAD),
    st.just(Reply(json.dumps({"id": "Q2", "verdict": "keep"}))),
    st.sampled_from([Reply("", stop=stop) for stop in ("length", "refusal", "blocked", "unreadable")]),
    st.sampled_from(
        [Failure(kind, "", status=500) for kind in ("busy", "server", "timeout", "connection", "rejected", "blocked")]
    ),
)


def step(row: Row, event: Reply | Failure, *, tries: int, charged: bool = True) -> Row | Answered:
    if isinstance(event, Failure):
        return failed(row, event, tries=tries, charged=charged)
    return heard(row, event, tries=tries, charged=charged)


@given(st.lists(events, min_size=13, max_size=13), st.integers(1, 6))
def test_every_row_ends_in_one_outcome_and_within_its_tries(happened: list[Reply | Failure], tries: int) -> None:
    now: Row | Answered = Row(REQUEST)
    used = 0
    for event in happened:
        if isinstance(now, Answered):
            break
        used += 1
        now = step(now, event, tries=tries)
    assert isinstance(now, Answered)
    assert used <= 2 * tries
    assert now.outcome in OUTCOMES
    assert (now.value is not None) == (now.outcome in {"ok", "repaired"})
    if now.value is not None:
        assert now.value == Verdict("Q1", "keep")


@given(st.lists(events, max_size=13))
def test_what_is_not_charged_never_exhausts(happened: list[Reply | Failure]) -> None:
    now: Row | Answered = Row(REQUEST)
    for event in happened:
        if isinstance(now, Answered):
            break
        now = step(now, event, tries=1, charged=False)
    assert not isinstance(now, Answered) or now.outcome != "exhausted"


def test_a_reply_that_is_no_answer_is_repaired_once() -> None:
    row = heard(Row(REQUEST), BAD, tries=6)
    assert isinstance(row, Row)
    assert row.repairing
    assert "no JSON at all" not in row.request.instructions
    assert step(row, GOOD, tries=6) == Answered("repaired", Verdict("Q1", "keep"), raw=GOOD.text)
    again = step(row, BAD, tries=6)
    assert isinstance(again, Answered)
    assert (again.outcome, again.raw) == ("invalid", BAD.text)


def test_the_repair_has_tries_of_its_own() -> None:
    row: Row | Answered = Row(REQUEST, tries=5)
    assert isinstance(row, Row)
    row = heard(row, BAD, tries=6)
    assert isinstance(row, Row)
    assert row.tries == 0


def test_the_stops_of_a_model_are_the_outcomes_they_are_called_by() -> None:
    ended = {"refusal": "refused", "blocked": "blocked", "length": "truncated"}
    for stop, outcome in ended.items():
        answered = heard(Row(REQUEST), Reply("I", stop=stop), tries=6)  # type: ignore[arg-type]
        assert isinstance(answered, Answered)
        assert answered.outcome == outcome
    assert set(get_args(Reply.__annotations__["stop"])) <= {*ended, "end", "unreadable"}


def test_an_exhausted_row_says_what_failed_last() -> None:
    answered = failed(Row(REQUEST, tries=5), Failure("server", "secret text", status=503), tries=6)
    assert isinstance(answered, Answered)
    assert answered.outcome == "exhausted"
    assert answered.detail == "6 tries; the last: the server failed (status 503)"
