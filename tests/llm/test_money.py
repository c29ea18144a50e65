"""Prices, budgets, and sums that are exact."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from culturekit.core.digests import canonical_json
from culturekit.core.errors import ConfigError, MissingDependency, UpstreamUnavailable, UsageError
from culturekit.llm import prices
from culturekit.llm.client import Identity, Image, Outgoing, Rate, Reply, Usage
from culturekit.llm.clients import google_client, openai_client
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.price_update import update_prices
from culturekit.llm.prices import (
    PriceList,
    check_alive,
    configured_prices,
    cost_of,
    image_sizes,
    known_prices,
    parse_price,
    picodollars_of,
    price_of,
    rate_of,
    worst_cost,
)
from culturekit.llm.purse import check_asking
from culturekit.llm.usage import (
    MOST_TOKENS,
    Budget,
    Counts,
    dollars,
    estimate,
    fully_counted,
    image_bound,
    image_estimate,
    input_bound,
    stated_usage,
    too_few,
)
from tests.llm.fake_client import FakeClient


def identity(provider: str, model: str) -> Identity:
    return Identity(provider, "https://example.org", "chat", model)


def test_a_snapshot_costs_what_its_model_costs_unless_it_has_a_line() -> None:
    small, large = price_of("gpt-4o-mini-2024-07-18"), price_of("gpt-4o-2024-05-13")
    assert small is not None and (small.input, small.output, small.cached) == (0.15, 0.60, 0.075)
    assert large is not None and large.input == 5.0
    assert rate_of(identity("google", "models/gemini-2.0-flash-001")) == rate_of(identity("google", "gemini-2.0-flash"))


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-mini-tuned", "ft:gpt-4o-mini-2024-07-18:us::1", "gpt-4o-mini-2024", "", "my-model", "gemini-2.0-flash"],
)
def test_a_price_nobody_knows_is_not_guessed(model: str) -> None:
    assert rate_of(identity("openai", model)) is None


def test_every_line_is_dated_and_has_its_source() -> None:
    assert len({(price.provider, price.model) for price in known_prices()}) == len(known_prices()) > 20
    for price in known_prices():
        assert price.source.startswith("https://")
        assert price.cached is None or price.cached < price.input <= price.output


def listed(*, tokens: int = 100, batch: float = 0.5, dollars: float = 1.0) -> PriceList:
    own = {"input": dollars, "output": dollars, "cached": None}
    images = {"m": {"low": {"1K": tokens}}}
    prices = {"source": "-", "date": "2026-01-01", "batch": batch, "models": {"m": own}, "images": images}
    return PriceList.model_validate({"openai": prices, "google": prices})


def test_a_list_of_prices_is_held_to_what_can_be_true() -> None:
    assert listed(tokens=1, batch=1.0, dollars=0.0).providers["openai"].batch == 1.0
    assert listed(tokens=999_999, dollars=99_999.99).providers["google"].images["m"]["low"]["1K"] == 999_999
    wrong: list[Any] = [{"tokens": 0}, {"tokens": 1_000_000}, {"batch": 0.0}, {"batch": 1.01}]
    for stated in [*wrong, {"dollars": -0.01}, {"dollars": 100_000.0}]:
        with pytest.raises(ValidationError):
            listed(**stated)


def test_a_stated_price_is_read_or_refused() -> None:
    for text, rate in (("0.15/0.60", (0.15, 0.6)), (" 1/2 ", (1.0, 2.0)), ("0/0", (0.0, 0.0)), (".5/10.", (0.5, 10.0))):
        assert (parse_price(text).input, parse_price(text).output) == rate
    none = ["", "0.15", "a/b", "1/2/3", "-1/2", "nan/1", "1e3/2", "inf/inf", "100000/1", f"1/{'9' * 400}"]
    for text in none:
        with pytest.raises(UsageError, match="a price cannot be read"):
            parse_price(text)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(0, 10**6)), max_size=30))
def test_costs_are_exact_and_add_up(counts: list[tuple[int, int, int]]) -> None:
    rate = Rate(0.15, 0.6, cached=0.075)
    usages = [Usage(fresh + cached, out, cached_tokens=cached) for fresh, out, cached in counts]
    exact = sum(150_000 * fresh + 600_000 * out + 75_000 * cached for fresh, out, cached in counts)
    assert sum(picodollars_of(usage, rate) for usage in usages) == exact


@pytest.mark.parametrize("cached", [101, 10**9, 10**30, -1, -(10**9)])
def test_no_more_is_cached_than_was_sent_and_no_cost_is_negative(cached: int) -> None:
    rate = Rate(0.15, 0.6, cached=0.075)
    least, most = picodollars_of(Usage(100, 10, cached_tokens=100), rate), picodollars_of(Usage(100, 10), rate)
    assert least <= picodollars_of(Usage(100, 10, cached_tokens=cached), rate) <= most
    assert picodollars_of(Usage(-100, -10, cached_tokens=cached), rate) == 0
    assert cost_of(Usage(-100, -10), rate, mode="batch") == 0.0


def test_a_batch_costs_its_share_and_discounts_are_not_multiplied() -> None:
    rate, usage = Rate(2.0, 8.0, batch=0.5, cached=0.5), Usage(1_000_000, 500_000, cached_tokens=400_000)
    assert cost_of(usage, rate) == 0.6 * 2 + 0.4 * 0.5 + 4
    assert cost_of(usage, rate, mode="batch") == 3.0
    assert worst_cost(rate, input_tokens=10**6, output_tokens=10**6) == 10.0


def test_a_budget_counts_what_was_spent_before_and_to_the_last_fraction() -> None:
    budget = Budget(1.0)
    budget.settle(0.0, 0.7)
    assert budget.reserve(0.1) and budget.reserve(0.1) and budget.reserve(0.1)
    assert not budget.reserve(1e-12)
    budget.settle(0.1, 0.04)
    assert budget.limit is not None and dollars(budget.limit - budget.used - budget.aside) == 0.06
    assert Budget(None).reserve(1e9)
    assert not Budget(0.0).reserve(1e-9)
    for none in (float("nan"), float("inf"), -0.01):
        with pytest.raises(UsageError, match="amount of US dollars"):
            Budget(none)


# Prices that can be renewed, and models that end: read from several files, held against a day that a test sets.
OFFICIAL = "https://api.openai.com/v1"
OURS = """
openai:
  source: https://example.org/prices
  date: "2026-11-20"
  models:
    gpt-9: {input: 1, output: 4, shuts: "2027-03-01", instead: gpt-10}
    gpt-4o: {input: 2, output: 9}
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(prices, "_warned", set())


def on(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setenv("CULTUREKIT_TODAY", day)


def chat(model: str, base_url: str = OFFICIAL) -> Identity:
    return Identity("openai", base_url, "/chat/completions", model)


ENDS = {"2026-06-25": "gemini-3-pro-image-preview", "2026-10-23": "gpt-image-1", "2026-12-01": "gpt-image-1.5"}
ENDS |= {"2027-01-14": "gpt-4o-mini", "2026-12-11": "o3"}


@pytest.mark.parametrize("day", ENDS)
def test_the_shipped_list_knows_when_models_end(day: str) -> None:
    found = price_of(ENDS[day])
    assert found is not None and found.shuts == day and found.instead


def test_a_model_is_refused_from_the_day_on_which_it_is_shut_unless_somebody_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on(monkeypatch, "2026-10-22")
    check_alive(chat("gpt-4"))
    on(monkeypatch, "2026-10-23")
    check_alive(chat("gpt-4", "http://127.0.0.1:8000/v1"))  # a server elsewhere may call its model as it likes
    with pytest.raises(UsageError, match="gpt-4 was shut on 2026-10-23") as refused:
        check_alive(chat("gpt-4"))
    assert "gpt-5.6-sol" in str(refused.value) and "--go-on" in refused.value.hint
    with pytest.raises(UsageError, match="was shut"):
        check_alive(Identity("openai-images", OFFICIAL, "/images/generations", "gpt-image-1"))
    with pytest.raises(UsageError, match="was shut"):
        check_alive(chat("gpt-4-turbo-2024-04-09"))
    assert "was shut" not in caplog.text
    check_alive(chat("o1"), go_on=True)
    assert "o1 was shut on 2026-10-23" in caplog.text
    check_alive(Identity("google-images", "https://generativelanguage.googleapis.com", "", "gemini-2.5-flash-image"))
    assert "may be shut: 2026-10-02 was the earliest day" in caplog.text


def test_a_client_that_could_not_be_asked_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MissingDependency, match="OPENAI_API_KEY"):
        check_asking(CLIENTS.make("openai:gpt-4o-mini"))
    on(monkeypatch, "2026-11-28")
    with pytest.raises(UsageError, match="o1 was shut on 2026-10-23"):  # before its key is looked for
        check_asking(CLIENTS.make("openai:o1"))
    with pytest.raises(UsageError, match=r"the price of fake-1 is not known.*price=0\.15/0\.60, or price=0/0"):
        check_asking(FakeClient(rate=None))
    check_asking(FakeClient(rate=Rate(0.0, 0.0)))
    check_asking(CLIENTS.make("rules"))


@pytest.mark.parametrize(("day", "warned"), [("2026-11-14", 0), ("2026-11-15", 1), ("2027-01-13", 1)])
def test_sixty_days_before_there_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, day: str, warned: int
) -> None:
    on(monkeypatch, day)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            check_alive(chat("gpt-4o"))
    assert caplog.text.count("gpt-4o is shut on 2027-01-14; gpt-6-luna takes its place") == warned


def test_the_users_files_win_line_by_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = price_of("gpt-4o-mini")
    configured_prices().parent.mkdir(parents=True)
    configured_prices().write_text(OURS)
    ours, mine = price_of("gpt-4o"), price_of("gpt-9")
    assert ours is not None and (ours.input, ours.source, ours.date) == (2, "https://example.org/prices", "2026-11-20")
    assert mine is not None and (mine.shuts, mine.instead) == ("2027-03-01", "gpt-10")
    assert price_of("gpt-4o-mini") == before
    chosen = tmp_path / "chosen.yaml"
    chosen.write_text(OURS.replace("{input: 2, output: 9}", "{input: 3, output: 9}"))
    monkeypatch.setenv("CULTUREKIT_PRICES", str(chosen))
    most = price_of("gpt-4o")
    assert most is not None and most.input == 3


def test_a_day_that_is_none_and_a_file_of_prices_that_is_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "soon")
    with pytest.raises(UsageError, match="CULTUREKIT_TODAY is no day"):
        check_alive(chat("gpt-4"))
    monkeypatch.setenv("CULTUREKIT_PRICES", "nowhere.yaml")
    with pytest.raises(UsageError, match=r"no such file of prices.*nowhere\.yaml"):
        known_prices()


def test_an_update_in_our_own_form_says_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(OURS)
    renewed = update_prices(str(tmp_path / "ours.yaml"))
    assert renewed.new == ["gpt-9: 1 in, 4 out, shuts 2027-03-01"]
    assert len(renewed.changed) == 1 and "input 2.5 -> 2.0" in renewed.changed[0]
    again = update_prices(str(tmp_path / "ours.yaml"))
    assert (again.new, again.changed, again.alike) == ([], [], 2)
    assert "nothing to write" in "\n".join(again.lines())


def entry(sent: float, came: float, provider: str = "openai", mode: str = "chat", **more: object) -> dict[str, object]:
    costs = {"input_cost_per_token": sent / 1e6, "output_cost_per_token": came / 1e6}
    return {"litellm_provider": provider, "mode": mode, **costs, **more}


def test_the_list_of_litellm_is_read(tmp_path: Path) -> None:
    source = tmp_path / "litellm.json"
    listed = {
        "gpt-4o": entry(2.5, 10, cache_read_input_token_cost=1.25e-6),
        "gpt-8": entry(0.3, 7, deprecation_date="2028-01-01", source="https://example.org/gpt-8"),
        "gemini/gemini-9-image": entry(
            0.5, 3, "gemini", "image_generation", output_cost_per_image_token=6e-5, output_cost_per_image=0.0672
        ),
        "gpt-image-8": entry(5, 30, mode="image_generation"),
        "xhigh/1024-x-1024/gpt-image-8": {"litellm_provider": "openai", "output_cost_per_image": 0.3},
        "gpt-image-1-mini": entry(2, 8, mode="image_generation", cache_read_input_token_cost=2e-7),
        "low/1024-x-1024/gpt-image-1-mini": {"litellm_provider": "openai", "output_cost_per_image": 0.9},
        "low/99-x-99/gpt-image-1-mini": {"litellm_provider": "openai", "output_cost_per_image": 0.08},
        "gemma-of-a-test": entry(0, 0, "gemini"),
        "azure/gpt-8": entry(99, 99, "azure"),
        "gemini-8-vertex": entry(1, 2, "vertex_ai-language-models", deprecation_date="2026-01-01"),
        "text-embedding-9": entry(1, 0, mode="embedding"),
        "sample_spec": {"litellm_provider": "one of"},
    }
    source.write_text(json.dumps(listed))
    renewed = update_prices(str(source))
    assert renewed.alike == 2 and renewed.left_out == 2
    eight, picture, known = price_of("gpt-8"), price_of("gemini-9-image"), price_of("gpt-4o")
    assert eight is not None and (eight.input, eight.output, eight.shuts) == (0.3, 7.0, "2028-01-01")
    assert (eight.source, eight.date) == ("https://example.org/gpt-8", "2026-01-15")
    assert picture is not None and picture.output == 60.0
    assert image_sizes("gemini-9-image", provider="google") == {"standard": {"1K": 1120}}
    assert image_sizes("gpt-image-8", provider="openai") == {"xhigh": {"1024x1024": 10_000}}
    mini = image_sizes("gpt-image-1-mini", provider="openai")
    assert (mini["low"]["1024x1024"], mini["low"]["99x99"], mini["high"]["1024x1024"]) == (625, 10_000, 4500)
    assert price_of("gemma-of-a-test") is None, "0 is what nobody looked up"
    vertex = price_of("gemini-8-vertex")
    assert vertex is not None and vertex.shuts is None
    assert known is not None and known.shuts == "2027-01-14"


NO_LISTS = ["{}", "[1, 2]", "openai: {models: {m: {input: 1}}}", '{"a": {"litellm_provider": "x"}}']


@pytest.mark.parametrize("content", [*NO_LISTS, OURS.replace("2027-03-01", "2027-02-30")])
def test_what_is_no_list_of_prices_is_refused_and_nothing_is_written(tmp_path: Path, content: str) -> None:
    (tmp_path / "wrong").write_text(content)
    with pytest.raises((UsageError, ConfigError), match="2027-02-30" if content.startswith("\nopenai") else None):
        update_prices(str(tmp_path / "wrong"))
    with pytest.raises(UsageError, match="no such list"):
        update_prices("nowhere.json")
    with pytest.raises(UpstreamUnavailable, match=r"127\.0\.0\.1:9"):
        update_prices("http://127.0.0.1:9/prices.json")
    assert not configured_prices().exists()


OPENAI = "https://api.openai.com/v1"


def seen_by(model: str, provider: str = "openai", url: str = OPENAI) -> Identity:
    return Identity(provider, url, "chat", model)


def image(width: int, height: int) -> Image:
    return Image(b"x", "image/png", hashlib.sha256(b"x").hexdigest(), width, height)


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_bound_is_above_one_token_for_each_byte_of_text(system: str, user: str) -> None:
    body = canonical_json({"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]})
    per_message = 8
    assert input_bound(Outgoing(body), seen_by("m")) >= len((system + user).encode()) + 3 * per_message
    assert estimate(Outgoing(body)) <= input_bound(Outgoing(body), seen_by("m"))


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4o-2024-08-06", (512, 512), 255),
        ("gpt-4o", (513, 512), 425),
        ("gpt-4o-mini", (1024, 1024), 2833 + 4 * 5667),
        ("gpt-4.1", (1024, 1024), 85 + 4 * 170),
        ("gpt-5", (1024, 1024), 70 + 4 * 140),
        ("o1", (1024, 1024), 75 + 4 * 150),
        ("o3", (1024, 1024), 75 + 4 * 150),
        ("gpt-4.1-mini", (1024, 1024), 1659),
        ("gpt-4.1-mini", (4000, 4000), 2489),
        ("gpt-5-mini-2025-08-07", (32, 32), 2),
    ],
)
def test_published_examples_of_openai(model: str, size: tuple[int, int], tokens: int) -> None:
    assert image_estimate(image(*size), seen_by(model)) == tokens
    assert image_bound(image(*size), seen_by(model)) >= tokens


@pytest.mark.parametrize(("size", "tokens"), [((384, 384), 258), ((960, 540), 1548), ((385, 385), 4 * 258)])
def test_published_examples_of_google(size: tuple[int, int], tokens: int) -> None:
    assert image_estimate(image(*size), seen_by("gemini-2.5-flash", "google", "")) == tokens


@given(
    st.integers(1, 9000), st.integers(1, 9000), st.sampled_from(["gpt-4o", "gpt-4o-mini", "o4-mini", "gpt-5", "new"])
)
def test_the_bound_of_an_image_is_never_below_the_formula(width: int, height: int, model: str) -> None:
    for who in (seen_by(model), seen_by(model, url="http://127.0.0.1:8000/v1"), seen_by("gemini-3", "google", "")):
        assert image_bound(image(width, height), who) >= image_estimate(image(width, height), who)


def test_a_model_that_is_not_known_may_bill_as_much_as_any() -> None:
    known = [image_bound(image(64, 64), seen_by(model)) for model in ("gpt-4o", "gpt-4o-mini", "o1", "gpt-4.1-nano")]
    assert image_bound(image(64, 64), seen_by("new")) >= max(known) == 2833 + 8 * 5667
    here = seen_by("new", url="http://127.0.0.1:8000/v1")
    assert image_bound(image(3080, 3080), here) == (3080 // 14) ** 2, "a server of one's own may cut as finely as any"


def test_other_scripts_take_more_tokens_a_character() -> None:
    def tokens(text: str) -> int:
        return estimate(Outgoing(canonical_json(text)))

    assert (
        tokens("a soup of rice noodles" * 20)
        < tokens("суп из рисовой лапши!!" * 20)
        < tokens("米粉湯以及其他許多亞洲的菜餚和飲料品" * 20)
    )
    assert tokens("𒀀" * 100) > 100
    assert estimate(Outgoing(("a" * 420 + "é" * 160).encode())) == 200


RATE = Rate(0.15, 0.60, cached=0.075)
SAID = '{"id":"Q1","verdict":"keep"}'
ASKED = Outgoing(b'{"messages":"' + b"Is this a dish? " * 100 + b'"}', max_tokens=4_000)
WHO = Identity("openai", "http://127.0.0.1/v1", "/chat/completions", "judge-1")
SENT, CAME = 400, 12


def completion_usage(usage: object) -> Usage:
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


PROTOCOLS = pytest.mark.parametrize("read", [completion_usage, responses, gemini])
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


@pytest.mark.parametrize("read", [completion_usage, responses])
@pytest.mark.parametrize("details", ["all", 7, [1], True, 0, ""], ids=str)
def test_details_that_are_none_change_no_price(read: Any, details: object) -> None:
    counts = {"prompt_tokens": SENT, "completion_tokens": CAME}
    usage = read({**counts, "prompt_tokens_details": details, "completion_tokens_details": details})
    assert usage == Usage(SENT, CAME)
    assert "details is" in usage.doubt
    assert not read({**counts, "prompt_tokens_details": None, "completion_tokens_details": None}).doubt


@pytest.mark.parametrize("read", [completion_usage, responses])
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
    usage = completion_usage({"prompt_tokens": SENT, "completion_tokens": CAME, "total_tokens": 5_000})
    assert (usage.input_tokens, usage.output_tokens, usage.counted) == (SENT, CAME, "here")
    assert "5000 tokens in total" in usage.doubt
    assert not completion_usage({"prompt_tokens": SENT, "completion_tokens": CAME, "total_tokens": 0}).doubt


def test_gemini_leaves_out_counts_of_none() -> None:
    raw = json.dumps({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": SENT}})
    assert google_client.read(raw.encode()).usage == Usage(SENT, 0)
    usage = {"promptTokenCount": SENT, "thoughtsTokenCount": 50, "totalTokenCount": SENT + 50}
    candidate = {"content": {}, "finishReason": "MAX_TOKENS"}
    read = google_client.read(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()).usage
    assert read == Usage(SENT, 50, 50)
    assert not read.doubt


def test_counts_that_are_far_too_small_are_not_believed() -> None:
    assert completion_usage({"prompt_tokens": 1, "completion_tokens": CAME}).input_tokens > 300
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
    for read in (completion_usage, responses, gemini):
        found = read(usage)
        assert 0 < found.input_tokens <= 2 * MOST_TOKENS
        assert 0 < found.output_tokens <= 2 * MOST_TOKENS
        assert 0 <= found.cached_tokens <= found.input_tokens
        assert 0 <= found.thinking_tokens <= found.output_tokens
        assert 0 < picodollars_of(found, RATE) < 2**63
