"""Quotas, over time told by hand and by real clients."""

import asyncio

import openai
import pytest
from google.genai import errors
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.server import Quota, Script, running_server
from tests.llm.server.conversations import ask_google, ask_openai, google_talk, openai_client
from tests.llm.server.quota_windows import QuotaWindow


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
