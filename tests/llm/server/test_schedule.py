"""Quotas, over time told by hand and by real clients."""

import asyncio
from typing import Any

import msgspec
import openai
import pytest
from google.genai import errors
from hypothesis import given
from hypothesis import strategies as st

import tests.llm.server
from tests.llm.server import Fault, JobPlan, Quota, Rule, Script, When, running_server, script_from_json
from tests.llm.server.conversations import ask_google, ask_openai, google_talk, openai_client
from tests.llm.server.schedule import Circumstances, QuotaWindow, Schedule
from tests.llm.server.script import CONNECTION_FAULTS, FAULT_KINDS


def _struck(when: When, *, times: int | None = None, **seen: Any) -> bool:
    circumstances = Circumstances(**{"operation": "chat", "provider": "openai", "row": "Q1", **seen})
    return Schedule(Script(rules=(Rule(Fault("busy"), when, times),))).fault(circumstances) is not None


@pytest.mark.parametrize(
    ("when", "fits", "does_not"),
    [
        (When(rows=("Q1", "Q2")), {"row": "Q2"}, {"row": "Q3"}),
        (When(row_matches="^Q1"), {"row": "Q10"}, {"row": "Q21"}),
        (When(attempts=(2, 3)), {"attempt": 3}, {"attempt": 4}),
        (When(attempts=(2, None)), {"attempt": 99}, {"attempt": 1}),
        (When(requests=(10, 20)), {"number": 20}, {"number": 21}),
        (When(every=5), {"number": 10}, {"number": 11}),
        (When(since=1.5, until=2.5), {"at": 1.5}, {"at": 2.5}),
        (When(operations=("batches.create",)), {"operation": "batches.create"}, {"operation": "batches.get"}),
        (When(providers=("google",)), {"provider": "google"}, {"provider": "openai"}),
        (When(models=("small",)), {"model": "small"}, {"model": "large"}),
        (When(modes=("batch",)), {"mode": "batch"}, {"mode": "online"}),
        (When(contains="naïve"), {"body": "a naïve label".encode()}, {"body": b"a label"}),
    ],
)
def test_a_condition_fits_and_does_not(when: When, fits: dict[str, Any], does_not: dict[str, Any]) -> None:
    if when.modes == ("batch",):
        when = msgspec.structs.replace(when, modes=("batch", "batch"))
    assert _struck(when, **fits)
    assert not _struck(when, **does_not)


def test_a_share_of_the_rows_is_the_same_share_each_time() -> None:
    when = When(share=0.3, salt="a")
    struck = [_struck(when, row=f"Q{at}") for at in range(2000)]
    assert struck == [_struck(when, row=f"Q{at}") for at in range(2000)]
    assert 0.25 < sum(struck) / 2000 < 0.35
    assert struck != [_struck(When(share=0.3, salt="b"), row=f"Q{at}") for at in range(2000)]


def test_the_first_rule_that_fits_wins_and_is_used_up() -> None:
    script = Script(
        rules=(
            Rule(Fault("none"), When(rows=("Q9",))),
            Rule(Fault("busy"), times=2),
            Rule(Fault("unavailable"), When(rows=("Q1",))),
        )
    )
    schedule = Schedule(script)

    def kind(row: str) -> str | None:
        fault = schedule.fault(Circumstances("chat", "openai", row=row))
        return fault.kind if fault is not None else None

    assert [kind(row) for row in ("Q9", "Q1", "Q2", "Q1", "Q2")] == [None, "busy", "busy", "unavailable", None]


_rules = st.builds(
    Rule,
    then=st.builds(
        Fault,
        kind=st.sampled_from(sorted(FAULT_KINDS)),
        hint=st.sampled_from(["none", "retry-after", "retry-info"]),
        wait=st.floats(0, 60),
        delay=st.none() | st.floats(0, 5),
    ),
    when=st.builds(When, rows=st.tuples(st.text()), share=st.floats(0, 1), attempts=st.just((1, 2))),
    times=st.none() | st.integers(0, 5),
)


@given(
    st.builds(
        Script,
        rules=st.tuples(_rules, _rules),
        quota=st.none() | st.builds(Quota, requests=st.floats(1, 1000)),
        jobs=st.tuples(st.builds(JobPlan, share=st.floats(0, 1), ends=st.sampled_from(["expired", "failed"]))),
    )
)
def test_a_script_is_the_same_after_json(script: Script) -> None:
    assert script_from_json(msgspec.json.encode(script)) == script


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"rules": [{"then": {"kind": "bussy"}}]}', "no fault is called 'bussy'"),
        ('{"rules": [{"then": {"kind": "busy", "waits": 1}}]}', "waits"),
        ('{"latencies": 1}', "latencies"),
        ('{"rules": [{"then": {"kind": "stall"}, "when": {"modes": ["batch"]}}]}', "a connection can"),
    ],
)
def test_a_mistake_in_a_script_is_named(text: str, word: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=word):
        script_from_json(text)


def test_the_script_in_the_documentation_is_one() -> None:
    documentation = tests.llm.server.__doc__ or ""
    written = documentation[documentation.index('    {"rules"') :].split("\n\n", 1)[0]
    script = script_from_json(written)
    assert [rule.then.kind for rule in script.rules] == ["unavailable", "busy", "stall", "says", "server-error"]
    assert script.jobs[0].unsaid


def test_faults_of_connections_are_none_of_lines() -> None:
    for kind in CONNECTION_FAULTS:
        with pytest.raises(ValueError, match="a line of a batch"):
            Rule(Fault(kind), When(modes=("batch",)))


def test_a_rule_is_not_used_up_by_what_its_fault_cannot_touch() -> None:
    schedule = Schedule(Script(rules=(Rule(Fault("wrong-id"), times=1), Rule(Fault("drop-inside"), times=1))))
    listing = Circumstances("batches.list", "openai", asks=False)
    line = Circumstances("batch-line", "openai", mode="batch")
    kinds = [fault.kind for seen in (listing, listing, line, line) if (fault := schedule.fault(seen)) is not None]
    assert kinds == ["drop-inside", "wrong-id"]


def test_a_window_slides() -> None:
    window = QuotaWindow(Quota(requests=2, period=10))
    assert window.ask(0, 1).granted
    assert window.ask(4, 1).granted
    refused = window.ask(5, 1)
    assert (refused.granted, refused.wait, refused.kind) == (False, 5, "requests")
    assert not window.ask(9.9, 1).granted
    assert window.ask(10, 1).granted
    assert window.ask(10, 1).wait == 4


def test_a_window_of_tokens_says_when_enough_is_free() -> None:
    window = QuotaWindow(Quota(tokens=100, period=10))
    assert window.ask(0, 40).granted
    assert window.ask(3, 40).granted
    refused = window.ask(5, 80)
    assert (refused.wait, refused.kind, refused.tokens_left) == (8, "tokens", 20)
    assert window.ask(13, 80).granted


def test_a_bucket_fills_up_evenly() -> None:
    bucket = QuotaWindow(Quota(requests=60, period=60, kind="bucket", burst=0.05))
    assert [bucket.ask(0, 0).granted for _ in range(4)] == [True, True, True, False]
    assert bucket.ask(0.5, 0).wait == pytest.approx(0.5)
    assert bucket.ask(1.0, 0).granted


@given(st.lists(st.tuples(st.floats(0.01, 3), st.integers(1, 30)), max_size=60), st.sampled_from(["window", "bucket"]))
def test_no_period_is_ever_given_more_than_the_quota(steps: list[tuple[float, int]], kind: str) -> None:
    quota = Quota(requests=5, tokens=50, period=10, kind=kind)  # type: ignore[arg-type]
    window, now = QuotaWindow(quota), 0.0
    granted: list[tuple[float, int]] = []
    for step, tokens in steps:
        now += step
        told = window.ask(now, tokens)
        if told.granted:
            granted.append((now, tokens))
        else:
            assert 0 < told.wait <= 10
    most = 1 if kind == "window" else 2  # a bucket gives what it holds, and what flows in meanwhile
    for start, _ in granted:
        within = [tokens for at, tokens in granted if start <= at < start + 10]
        assert len(within) <= 5 * most
        assert sum(within) <= 50 * most


@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=40))
def test_whoever_waits_as_told_is_let_in(steps: list[float]) -> None:
    window, now = QuotaWindow(Quota(requests=3, tokens=20, period=5)), 0.0
    for step in steps:
        now += step
        told = window.ask(now, 7)
        if not told.granted:
            now += told.wait + 1e-9
            assert window.ask(now, 7).granted


def test_clients_are_told_by_headers_and_by_retry_info() -> None:
    async def talk() -> None:
        script = Script(quota=Quota(requests=2, tokens=1_000_000))
        with running_server(script) as server:
            async with openai_client(server) as client:
                for _ in range(2):
                    await ask_openai(client, "Q1")
                with pytest.raises(openai.RateLimitError) as caught:
                    await ask_openai(client, "Q1")
            headers = caught.value.response.headers
            assert 55_000 < int(headers["retry-after-ms"]) <= 60_000
            assert headers["x-ratelimit-limit-requests"] == "2"
            assert headers["x-ratelimit-remaining-requests"] == "0"
            assert server.stats()["faults"] == {"quota": 1}
            assert server.stats()["busy_share"] == pytest.approx(1 / 3)
        async with google_talk(script) as (server, google):
            for _ in range(2):
                await ask_google(google, "Q1")
            with pytest.raises(errors.ClientError) as refused:
                await ask_google(google, "Q1")
            kinds = [one["@type"].rsplit(".", 1)[-1] for one in refused.value.details["error"]["details"]]
            assert kinds == ["QuotaFailure", "RetryInfo"]

    asyncio.run(talk())
