"""A model of which most replies are of no use is not asked to the end, and nothing is bought twice."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import UnusableReplies
from culturekit.core.stage import Work
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Failure, Reply, Request
from culturekit.llm.rows import LOOKED_AT, OUTCOMES, Answered, ReplyWatch, Row, failed, heard
from tests.builders.paid_judge import PaidJudge
from tests.llm.fake_client import Verdict
from tests.llm.questions import question

ROWS = 300
CONCURRENCY = 4


def kept(qid: str) -> str:
    return json.dumps({"id": qid, "verdict": "keep"})


WAYS: dict[str, Callable[[str], str | Failure | Reply]] = {
    "invented ids": lambda qid: kept("Q999999"),
    "prose": lambda qid: "I would keep it.",
    "cut": lambda qid: Reply('{"id":', stop="length"),
    "refused": lambda qid: Reply("I cannot.", stop="refusal"),
    "rejected": lambda qid: Failure("rejected", "no such schema", status=400),
}


def requests_about(rows: int) -> list[Request]:
    qids = [f"Q{number}" for number in range(1, rows + 1)]
    return [question(data={"id": qid, "label": f"dish {qid}"}, allowed={"id": (qid,)}) for qid in qids]


def ask(work: Work, judge: PaidJudge, **options: object) -> list[Answered]:
    llm = replace(LlmOptions(concurrency=CONCURRENCY), **options)  # type: ignore[arg-type]
    return list(answers(judge, requests_about(ROWS), work=work, llm=llm))


@pytest.mark.parametrize("way", WAYS)
def test_replies_of_no_use_end_a_run_after_twenty_rows(work: Work, way: str) -> None:
    judge = PaidJudge(WAYS[way])
    with pytest.raises(UnusableReplies, match="of the first 20 rows") as caught:
        ask(work, judge)
    assert caught.value.exit_code == 3
    assert len(judge.sent) == LOOKED_AT
    again = PaidJudge(WAYS[way])
    with pytest.raises(UnusableReplies):
        ask(work, again)
    assert not again.sent, "what is known to be of no use is bought again"


def test_with_go_on_the_rest_is_asked_and_nothing_is_bought_twice(work: Work) -> None:
    stopped, went_on = PaidJudge(WAYS["refused"]), PaidJudge(WAYS["refused"])
    with pytest.raises(UnusableReplies):
        ask(work, stopped)
    ended = ask(work, went_on, go_on=True)
    assert [answered.outcome for answered in ended] == ["refused"] * ROWS
    assert (stopped.sent + went_on.sent).total() == ROWS


def test_a_model_that_becomes_useless_is_noticed_later_too(work: Work) -> None:
    judge = PaidJudge(lambda qid: kept(qid) if int(qid[1:]) <= 40 else "no")
    with pytest.raises(UnusableReplies):
        ask(work, judge)
    assert len(judge.sent) < 100


def test_half_of_the_replies_is_enough(work: Work) -> None:
    judge = PaidJudge(lambda qid: kept(qid) if int(qid[1:]) % 2 else Reply("", stop="refusal"))
    assert len(ask(work, judge)) == ROWS


def test_few_rows_are_asked_to_the_end(work: Work) -> None:
    judge = PaidJudge(WAYS["prose"])
    ended = list(answers(judge, requests_about(LOOKED_AT - 1), work=work, llm=LlmOptions()))
    assert len(ended) == LOOKED_AT - 1
    last = list(answers(judge, requests_about(LOOKED_AT), work=work, llm=LlmOptions(concurrency=64)))
    assert len(last) == LOOKED_AT, "nothing was left to save"


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "```json\r\n{}```", "\n```JSON  \n{}\n```  \n"])
def test_a_fence_round_an_answer_is_taken_off_and_counted(work: Work, fence: str) -> None:
    judge, watch = PaidJudge(lambda qid: fence.replace("{}", kept(qid))), ReplyWatch()
    ended = list(answers(judge, requests_about(30), work=work, llm=LlmOptions(), watch=watch))
    assert {(one.outcome, one.detail) for one in ended} == {("ok", "fenced")}
    assert judge.sent.total() == 30
    assert watch.notes() == {"fenced": 30}
    assert all(one.raw.strip().startswith("```") for one in ended)


def test_what_stands_in_a_fence_is_read_as_strictly_as_without(work: Work) -> None:
    judge = PaidJudge(lambda qid: f"```json\n{kept('Q999999')}\n```")
    ended = list(answers(judge, requests_about(3), work=work, llm=LlmOptions()))
    assert {(one.outcome, one.detail) for one in ended} == {("invalid", "unknown-id")}


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


def ended(happened: list[Reply | Failure], **options: Any) -> tuple[Row | Answered, int]:
    """Let things happen to a row until it ends; give how many it took."""
    now: Row | Answered = Row(REQUEST)
    for used, event in enumerate(happened):
        if isinstance(now, Answered):
            return now, used
        now = failed(now, event, **options) if isinstance(event, Failure) else heard(now, event, **options)
    return now, len(happened)


@given(st.lists(events, min_size=13, max_size=13), st.integers(1, 6))
def test_every_row_ends_in_one_outcome_and_within_its_tries(happened: list[Reply | Failure], tries: int) -> None:
    free, _ = ended(happened, tries=1, charged=False)
    assert not isinstance(free, Answered) or free.outcome != "exhausted", "what is not charged never exhausts"
    now, used = ended(happened, tries=tries)
    assert isinstance(now, Answered)
    assert used <= 2 * tries
    assert now.outcome in OUTCOMES
    assert (now.value is not None) == (now.outcome in {"ok", "repaired"})
    if now.value is not None:
        assert now.value == Verdict("Q1", "keep")


def test_a_reply_that_is_no_answer_is_repaired_once() -> None:
    row = heard(Row(REQUEST, tries=5), BAD, tries=6)
    assert isinstance(row, Row)
    assert row.repairing and row.tries == 0, "the repair has tries of its own"
    assert "no JSON at all" not in row.request.instructions
    assert heard(row, GOOD, tries=6) == Answered("repaired", Verdict("Q1", "keep"), raw=GOOD.text)
    again = heard(row, BAD, tries=6)
    assert isinstance(again, Answered)
    assert (again.outcome, again.raw) == ("invalid", BAD.text)


def test_the_stops_of_a_model_are_the_outcomes_they_are_called_by() -> None:
    ends = {"refusal": "refused", "blocked": "blocked", "length": "truncated"}
    for stop, outcome in ends.items():
        answered = heard(Row(REQUEST), Reply("I", stop=stop), tries=6)  # type: ignore[arg-type]
        assert isinstance(answered, Answered)
        assert answered.outcome == outcome
    assert set(get_args(Reply.__annotations__["stop"])) <= {*ends, "end", "unreadable"}


def test_an_exhausted_row_says_what_failed_last() -> None:
    answered = failed(Row(REQUEST, tries=5), Failure("server", "secret text", status=503), tries=6)
    assert answered == Answered("exhausted", detail="6 tries; the last: the server failed (status 503)")
