import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from culturekit.core.digests import digest_bytes
from culturekit.core.errors import BudgetReached, ConfigError, CultureKitError, MissingDependency, UsageError
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.generation.picture_store import PictureStore
from culturekit.generation.runner import ImagePlan, derive_seed
from culturekit.generation.services.image_client import IMAGE_SERVICES, Made
from culturekit.generation.services.paid_runner import Fetched, FetchLimits, Refused, address_at, fetched, plan_images
from culturekit.generation.services.service_client import _changed, _filled, _found
from culturekit.llm import dispatch
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.ledger import journals_below, latest_exchanges, read_ledger
from tests.command_line import culturekit
from tests.faults.kill_and_resume import environment
from tests.generation.folder.folder_worlds import TEXTS, prompts
from tests.generation.services.image_service import (
    FILE,
    KEY,
    Seller,
    as_json,
    base64_of,
    picture,
    ready,
    running_service,
    service_file,
)
from tests.generation.services.paid_images import buy, images_of
from tests.llm.server import RunningServer, Script, running_server
from tests.llm.server.answers import picture_bytes
from tests.llm.server.script import Pictures
from tests.llm.server.wire import HEADER, dripping

ROOT = Path(__file__).parents[3]

PROMPTS = len(TEXTS)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_IMAGES_KEY", KEY)


@pytest.fixture
def service() -> Iterator[Seller]:
    with running_service() as running:
        yield running


def jobs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("journal/jobs/[!.]*.json"))  # one that is being written begins with a dot


def test_a_job_is_submitted_polled_and_fetched_and_its_row_says_all(tmp_path: Path, service: Seller) -> None:
    buy(service_file(tmp_path, service.url), tmp_path, plan=ImagePlan(slots=2))
    rows = read_table(tmp_path / "out/images.parquet", IMAGES)
    assert set(rows["status"]) == {"ok"}
    assert rows.height == len(service.sold) == 2 * PROMPTS
    for row in rows.iter_rows(named=True):
        assert row["seed"] == derive_seed(3, row["prompt_id"], row["repeat"], row["slot"])
        drawn = picture(row["seed"], 16, 24)
        assert (tmp_path / "out" / row["path"]).read_bytes() == drawn, "it stays as it came"
        assert row["source_sha256"] == digest_bytes(drawn)
        assert (row["width"], row["height"], row["seed_honoured"], row["rewriter"]) == (16, 24, None, "on")
        assert row["prompt_revised"].startswith("drawn as ")
        assert json.loads(row["provider_params"]) == {"steps": 4, "size": "16x24", "n": 1}
    assert {body["prompt"] for body in service.sold} == set(TEXTS.values())
    assert min(service.polled.values()) == 2
    assert jobs(tmp_path) == [], "what the journal has is let go"
    calls = [headers["idempotency-key"] for method, _, headers in service.asked if method == "POST"]
    assert len(set(calls)) == len(calls), "each call has a name of its own"


def test_a_picture_is_fetched_without_the_key_and_the_key_stands_nowhere(tmp_path: Path, service: Seller) -> None:
    service.polling = lambda number, look: as_json({"status": "Pending", "echo": f"x-key: {KEY}"}) if look < 2 else None
    buy(service_file(tmp_path, service.url), tmp_path)
    fetched = [headers for _, path, headers in service.asked if path.startswith("/pictures")]
    assert len(fetched) == PROMPTS
    assert not any(KEY in str(headers) for headers in fetched)
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in kept)


def test_a_job_cut_before_its_result_is_polled_and_not_bought_again(tmp_path: Path, service: Seller) -> None:
    seller, backend = service, service_file(tmp_path, service.url)
    seller.polling = lambda number, look: as_json({"error": {"message": "come back later"}}, 403)
    with pytest.raises(CultureKitError, match="come back later"):
        buy(backend, tmp_path, llm=LlmOptions(concurrency=2))
    bought = len(seller.sold)
    assert 0 < bought == len(jobs(tmp_path))
    plan = plan_images(prompts(tmp_path / "prompts", None), ImagePlan(), backend=backend, seed=3, out=tmp_path / "out")
    assert plan.bought == bought, "a plan knows what is under way"
    seller.polling = lambda number, look: None
    buy(backend, tmp_path)
    assert len(seller.sold) == PROMPTS, "no job was bought twice"
    assert set(images_of(tmp_path)["status"]) == {"ok"}
    assert jobs(tmp_path) == []
    assert read_ledger(journals_below([tmp_path / "out"])).total.usd == pytest.approx(0.04 * PROMPTS)


@pytest.mark.slow
def test_a_process_killed_before_its_result_buys_nothing_twice(tmp_path: Path, service: Seller) -> None:
    """The jobs that it had bought are asked after by the next process."""
    seller, backend = service, service_file(tmp_path, service.url)
    seller.polling = lambda number, look: as_json({"status": "Pending"})
    words = [sys.executable, "-m", "culturekit", "generate", "--backend", backend, "--out", str(tmp_path / "out"),
             "--prompts", str(prompts(tmp_path / "prompts", None)), "--concurrency", "2"]  # fmt: skip
    with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while len(jobs(tmp_path)) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert len(jobs(tmp_path)) == len(seller.sold) == 2
    seller.polling = lambda number, look: None
    subprocess.run(words, env=environment(), check=True, capture_output=True)
    assert len(seller.sold) == PROMPTS
    assert set(images_of(tmp_path)["status"]) == {"ok"}
    assert jobs(tmp_path) == []


def test_a_submission_that_is_left_while_under_way_is_kept_when_it_comes(tmp_path: Path, service: Seller) -> None:
    arrived, answering = threading.Event(), threading.Event()

    def slow(body: dict[str, Any]) -> None:
        arrived.set()
        assert answering.wait(60)

    service.submitting = slow
    client = IMAGE_SERVICES.make(service_file(tmp_path, service.url))
    client.keep_in(tmp_path / "journal")
    asked = client.compose(Request("images", "", {"prompt": "a dish", "negative": "", "seed": 5}, Made, sample=5))

    async def left() -> None:
        sending = asyncio.create_task(client.send(asked))
        await asyncio.to_thread(arrived.wait, 60)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        answering.set()
        await client.close()

    asyncio.run(left())
    while not jobs(tmp_path):
        time.sleep(0.01)
    assert b'"Ready"' in asyncio.run(client.send(asked))
    assert len(service.sold) == 1


def test_a_job_that_takes_longer_than_a_try_is_asked_after_again(tmp_path: Path, service: Seller) -> None:
    """The second look would come after the time of a try."""
    backend = service_file(tmp_path, service.url, poll={**FILE["poll"], "every": 1000.0})
    buy(f"{backend}?timeout=30", tmp_path)
    assert len(service.sold) == PROMPTS
    assert set(service.polled.values()) == {2}
    assert set(images_of(tmp_path)["status"]) == {"ok"}


def test_a_failing_poll_is_repeated_and_a_hint_to_wait_heeded(tmp_path: Path, service: Seller) -> None:
    def shaky(number: int, look: int) -> Any:
        return {
            1: as_json({"detail": "not yet known"}, 404),
            2: as_json({}, 429, **{"Retry-After": "0"}),
            3: (502, {}, b"<html>bad gateway</html>"),
            4: (200, {}, b"not JSON"),
        }.get(look)

    service.polling = shaky
    buy(service_file(tmp_path, service.url), tmp_path)
    assert len(service.sold) == PROMPTS
    assert set(images_of(tmp_path)["status"]) == {"ok"}


def test_refused_failed_and_rejected_jobs_are_rows_fresh_asks_again(tmp_path: Path, service: Seller) -> None:
    seller, names = service, sorted(TEXTS)
    odd = {TEXTS[names[0]]: "moderated", TEXTS[names[1]]: "failing", TEXTS[names[2]]: "rejected"}

    def submitting(body: dict[str, Any]) -> Any:
        return as_json({"error": "prompt too long"}, 422) if odd.get(body["prompt"]) == "rejected" else None

    def polling(number: int, look: int) -> Any:
        kind = odd.get(seller.sold[number]["prompt"])
        before = sum(body["prompt"] == seller.sold[number]["prompt"] for body in seller.sold[: number + 1])
        if kind == "moderated":
            return as_json({"status": "Content Moderated", "details": {"reason": "a crown"}})
        return as_json({"status": "Error"}) if kind == "failing" and before == 1 else None

    seller.submitting, seller.polling = submitting, polling
    backend = service_file(tmp_path, service.url)
    buy(backend, tmp_path)
    rows = {row["prompt_id"]: row for row in images_of(tmp_path).iter_rows(named=True)}
    assert [rows[name]["status"] for name in names[:3]] == ["filtered", "ok", "failed"]
    assert rows[names[0]]["safety"] == "Content Moderated: a crown"
    assert "prompt too long" in rows[names[2]]["reason"]
    counts = [sum(body["prompt"] == TEXTS[name] for body in seller.sold) for name in names]
    assert counts == [1, 2, 0, *[1] * (PROMPTS - 3)], "a job that failed is submitted once more"
    odd.clear()
    buy(backend, tmp_path, fresh=True)
    assert set(images_of(tmp_path)["status"]) == {"ok"}
    again = [sum(body["prompt"] == TEXTS[name] for body in seller.sold) for name in names]
    assert again == [2, 2, 1, *[1] * (PROMPTS - 3)]


def test_pictures_as_base64_and_from_a_last_address(tmp_path: Path, service: Seller) -> None:
    """Services that answer at once, as Ideogram and Seedream do, and those whose result has an address of its own."""
    service.submitting = lambda body: as_json({"data": [{"image": base64_of(body["seed"]), "fine": True}]})
    at_once = service_file(
        tmp_path / "at-once", service.url, poll=None, result={"images": "data[*].image", "safe": "data[*].fine"},
        submit={**FILE["submit"], "keep": {}},
    )  # fmt: skip
    buy(at_once, tmp_path / "at-once")
    rows = images_of(tmp_path / "at-once")
    for row in rows.iter_rows(named=True):
        assert (tmp_path / "at-once/out" / row["path"]).read_bytes() == picture(row["seed"], 8, 8)
    service.submitting = lambda body: as_json({"data": [{"image": base64_of(1), "fine": False}]})
    buy(at_once, tmp_path / "at-once", plan=ImagePlan(slots=2))
    assert images_of(tmp_path / "at-once")["status"].to_list() == ["ok", "filtered"] * PROMPTS
    seller = Seller(polling=lambda number, look: as_json({"state": 2}) if look == 1 else None)
    with running_service(seller) as other:
        polling = {**FILE["poll"], "status": "state", "done": ["2"], "url": "/jobs/{number}"}
        submit = {**FILE["submit"], "keep": {"number": "number"}}
        numbered = service_file(
            tmp_path / "apart", other.url, poll=polling, submit=submit,
            result={"images": "result.sample", "url": "/jobs/{number}"},
        )  # fmt: skip
        seller.submitting = lambda body: as_json({"number": len(seller.sold)})
        buy(numbered, tmp_path / "apart")
    assert set(images_of(tmp_path / "apart")["status"]) == {"ok"}
    assert set(seller.polled.values()) == {2}


def test_a_budget_and_a_plan_reckon_with_the_price_of_the_file(tmp_path: Path, service: Seller) -> None:
    backend = service_file(tmp_path, service.url)
    table = prompts(tmp_path / "prompts", None)
    plan = plan_images(table, ImagePlan(), backend=backend, seed=3, out=tmp_path / "out")
    assert plan.images == PROMPTS
    assert [plan.usd, plan.most] == pytest.approx([0.16, 0.16])
    assert plan.source == "the service's page, 2026-11-01"
    with pytest.raises(BudgetReached):
        buy(backend, tmp_path, llm=LlmOptions(budget=0.1))
    assert len(service.sold) == 2
    buy(f"{backend}?image_price=0.01", tmp_path, llm=LlmOptions(budget=0.11))
    assert len(service.sold) == PROMPTS
    with pytest.raises(UsageError, match=r"is not known.*image_price=0\.04.* or as price: in the file"):
        plan_images(
            table, ImagePlan(), backend=service_file(tmp_path, service.url, price=None), seed=3, out=tmp_path / "out"
        )
    with pytest.raises(UsageError, match="cannot be asked in batches"):
        buy(service_file(tmp_path, service.url), tmp_path, llm=LlmOptions(batch=True))


def test_a_wrong_path_to_the_picture_costs_nothing(
    tmp_path: Path, service: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "retry_wait", lambda *given, **named: 0.0)
    service.looks = 1
    wrong = service_file(tmp_path, service.url, result={"images": "result.smaple"})
    texts = {"p1": "a dish"}
    buy(wrong, tmp_path, texts=texts)
    (row,) = images_of(tmp_path).iter_rows(named=True)
    assert row["status"] == "failed"
    assert len(service.sold) == 1, "the same job is looked at again"
    buy(service_file(tmp_path, service.url), tmp_path, texts=texts)
    assert images_of(tmp_path)["status"].to_list() == ["ok"]
    assert len(service.sold) == 1


def test_the_key_goes_to_the_service_and_to_hosts_of_the_file_only(tmp_path: Path, service: Seller) -> None:
    service.submitting = lambda body: as_json({"id": "1", "polling_url": "https://elsewhere.example/jobs/1"})
    with pytest.raises(UsageError, match=r"elsewhere\.example, which is not its own.*hosts:"):
        buy(service_file(tmp_path, service.url), tmp_path)
    assert all(method == "POST" for method, _, _ in service.asked)


def test_bad_and_no_keys_are_named(tmp_path: Path, service: Seller, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = service_file(tmp_path, service.url)
    monkeypatch.setenv("TINY_IMAGES_KEY", "another-key-0123456789")
    with pytest.raises(UsageError, match="key") as wrong:
        buy(backend, tmp_path)
    assert "another-key" not in f"{wrong.value}"
    assert service.sold == []
    monkeypatch.delenv("TINY_IMAGES_KEY")
    with pytest.raises(MissingDependency, match="there is no key") as missing:
        buy(backend, tmp_path)
    assert "TINY_IMAGES_KEY" in f"{missing.value}"
    monkeypatch.setenv("TINY_IMAGES_KEY", KEY)
    far = IMAGE_SERVICES.make(service_file(tmp_path, "http://far.example"))
    with pytest.raises(UsageError, match="anybody on the way can read"):
        far.ready()


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    wrong = {**FILE, "base_url": "http://127.0.0.1:1", "pol": 1, "price": -1, "result": {"images": "data..url"}}
    path.write_text(yaml.safe_dump(wrong))
    with pytest.raises(ConfigError) as caught:
        IMAGE_SERVICES.make(f"service:{path}")
    for words in ("did you mean 'poll'", "price", "no path such as result.sample"):
        assert words in str(caught.value)
    submit = {**FILE["submit"], "body": {"prompt": "{promt}"}}
    path.write_text(yaml.safe_dump({**FILE, "base_url": "http://127.0.0.1:1", "submit": submit}))
    with pytest.raises(ConfigError, match=r"submit\.body names \{promt\}"):
        IMAGE_SERVICES.make(f"service:{path}")


@pytest.mark.parametrize("changed", [
    {"headers": {"Authorization": "Bearer 0123456789abcdef"}},
    {"body": {"prompt": "{prompt}", "api_key": "0123456789abcdef"}}, {"url": "/v1/tiny?key=0123456789abcdef"},
])  # fmt: skip
def test_a_key_that_is_written_out_is_refused_and_not_repeated(tmp_path: Path, changed: dict[str, Any]) -> None:
    backend = service_file(tmp_path, "https://far.example", submit={**FILE["submit"], **changed})
    with pytest.raises(ConfigError, match="written out") as caught:
        IMAGE_SERVICES.make(backend)
    assert "0123456789abcdef" not in str(caught.value)


def test_sizes_are_sent_where_the_file_names_them(tmp_path: Path, service: Seller) -> None:
    buy(service_file(tmp_path, service.url), tmp_path, plan=ImagePlan(size="32x8"))
    assert {(body["width"], body["height"]) for body in service.sold} == {(32, 8)}
    fixed = service_file(tmp_path, service.url, submit={**FILE["submit"], "body": {"prompt": "{prompt}"}})
    with pytest.raises(UsageError, match="not for us to choose"):
        IMAGE_SERVICES.make(fixed, size="32x8")
    with pytest.raises(UsageError, match="has to be told a size"):
        IMAGE_SERVICES.make(service_file(tmp_path, service.url, size=None))


def test_another_body_is_another_image_and_another_price_is_not(tmp_path: Path, service: Seller) -> None:
    buy(service_file(tmp_path, service.url), tmp_path)
    cheaper = buy(service_file(tmp_path, service.url, price=0.01, rpm=100), tmp_path)
    assert (cheaper.state, len(service.sold)) == ("reused", PROMPTS)
    body = {**FILE["submit"]["body"], "steps": 8}
    buy(service_file(tmp_path, service.url, submit={**FILE["submit"], "body": body}), tmp_path)
    assert len(service.sold) == 2 * PROMPTS


def test_the_command_plans_buys_and_shows_what_was_said(tmp_path: Path, service: Seller) -> None:
    backend, table = service_file(tmp_path, service.url), prompts(tmp_path / "prompts", None)
    asked = ("generate", "--backend", backend, "--prompts", str(table), "--out", str(tmp_path / "out"), "--model", "m")
    assert "0.16 USD" in culturekit(*asked, "--plan", ends=0).stdout
    assert culturekit(*asked, "--budget", "1").returncode == 0
    (journal,) = journals_below([tmp_path / "out"])
    exchanges = list(latest_exchanges(journal.path, limit=9))
    assert len(exchanges) == PROMPTS
    assert all(b'"Ready"' in exchange.reply for exchange in exchanges)
    assert ready(0, "")[0] == 200


def test_values_of_a_body_are_what_they_are_in_json(tmp_path: Path, service: Seller) -> None:
    stated = (
        """{prompt: "a {prompt}", steps: 4, strength: 0.5, raw: true, style: null, version: '"1.0"', list: [1, x]}"""
    )
    path = Path(service_file(tmp_path, service.url).removeprefix("service:"))
    file = yaml.safe_load(path.read_text())
    file["submit"]["body"], file["size"] = "BODY", None
    path.write_text(yaml.safe_dump(file).replace("body: BODY", f"body: {stated}"))
    buy(f"service:{path}", tmp_path, texts={"p1": "dish"})
    (sold,) = service.sold
    assert sold == {
        "prompt": "a dish", "steps": 4, "strength": 0.5, "raw": True, "style": None, "version": "1.0", "list": [1, "x"],
    }  # fmt: skip


def test_a_form_has_a_part_for_each_key(tmp_path: Path, service: Seller) -> None:
    body = {"text_prompt": "{prompt}", "seed": "{seed}", "colours": ["red", 2]}
    service.submitting = lambda body: as_json({"data": [{"url": f"{service.url}/pictures/0"}]})
    backend = service_file(
        tmp_path, service.url, poll=None, size=None, result={"images": "data[*].url"},
        submit={"url": "/v1/generate", "encoding": "multipart", "body": body},
    )  # fmt: skip
    text = "Crème brûlée — 抹茶\r\n--line"
    service.draw = lambda number: picture(1, 4, 4)  # type: ignore[method-assign]
    buy(backend, tmp_path, texts={"p1": text})
    (sold,) = service.sold
    assert sold == {"text_prompt": text, "seed": str(derive_seed(3, "p1", 0, 0)), "colours": '["red",2]'}
    assert images_of(tmp_path)["status"].to_list() == ["ok"]


def test_the_files_of_the_examples_are_services() -> None:
    files = sorted((ROOT / "examples/services").glob("*.yaml"))
    assert [path.name for path in files] == ["flux.yaml", "ideogram.yaml", "seedream.yaml"]
    for path in files:
        client = IMAGE_SERVICES.make(f"service:{path}?image_price=0.05")
        question = Request("images", "", {"prompt": "x", "negative": "", "seed": 2**31 + 5}, Made)
        sent = json.loads(client.compose(question).body)
        assert (sent["prompt"], sent.get("seed", 5)) == ("x", 5)
        assert "{" not in str(list(sent.values()))


def test_templates_and_paths() -> None:
    known = {"prompt": 'a {seed} of "rice"', "seed": 7}
    assert _filled({"p": "{prompt}!", "s": "{seed}", "l": ["{seed}", 1]}, known) == {
        "p": 'a {seed} of "rice"!', "s": 7, "l": [7, 1],
    }  # fmt: skip
    body = {"data": [{"url": "a"}, {"url": "b"}, {}], "n": {"m": 3}}
    assert _found(body, "data[*].url") == ["a", "b"]
    assert _found(body, "data[1].url") == ["b"]
    assert _found(body, "n.m") == [3]
    assert _found(body, "n.x") == _found(body, "") == _found(body, "data[9].url") == []
    assert _changed(body, "data[1].url", str.upper)["data"][:2] == [{"url": "a"}, {"url": "B"}]
    assert body["data"][1] == {"url": "b"}, "what was given stays"  # type: ignore[index]


DIGEST = "ab" * 32

QUICK = FetchLimits(bytes=50_000, seconds=60.0, tries=2, pause=0.01)


def fetch(server: RunningServer, store: PictureStore, *, limits: FetchLimits = QUICK) -> Fetched:
    return fetched(f"{server.url}/pictures/{DIGEST}/0?signed=secret", store, base_url=server.openai_url, limits=limits)


@pytest.fixture
def store(tmp_path: Path) -> PictureStore:
    return PictureStore(tmp_path / "pictures")


def test_a_picture_is_fetched_once(store: PictureStore) -> None:
    with running_server() as server:
        came = fetch(server, store)
        assert store.get(came.sha256) == picture_bytes(DIGEST, 0, Pictures())
        server.follow(Script(pictures=Pictures(status=410)))
        assert fetch(server, store) == came


def test_a_busy_host_is_asked_again(store: PictureStore) -> None:
    with running_server(Script(pictures=Pictures(busy=1))) as server:
        assert fetch(server, store).sha256
    with running_server(Script(pictures=Pictures(busy=9))) as server:
        came = fetched(f"{server.url}/pictures/{'cd' * 32}/0", store, base_url=server.openai_url, limits=QUICK)
    assert "status 503" in came.reason
    assert "--fresh" in came.reason


@pytest.mark.parametrize(("pictures", "reason"), [
    (Pictures(status=404), "status 404"), (Pictures(status=403), "status 403"),
    (Pictures(type="text/html; charset=utf-8"), "no picture but text/html"),
    (Pictures(type="image/svg+xml"), "no picture but image/svg"), (Pictures(padding=60_000), "more than 50,000 bytes"),
    (Pictures(form="torn", side=400), "could not be reached"),
    (Pictures(moves="/pictures/x/0"), "sent on more than 3 times"),
    (Pictures(moves="ftp://example.org/x.png"), "not https://"),
])  # fmt: skip
def test_what_is_not_a_picture_is_not_kept(store: PictureStore, pictures: Pictures, reason: str) -> None:
    with running_server(Script(pictures=pictures)) as server:
        came = fetch(server, store)
    assert reason in came.reason
    assert "secret" not in came.reason
    assert not came.sha256
    assert not list(store.folder.rglob("*"))


PICTURE = HEADER + b"image/png\r\nContent-Length: 40000\r\n"


@pytest.mark.parametrize("begin", [b"", HEADER, PICTURE + b"\r\n", PICTURE + b"Connection: close\r\n\r\n"])
def test_a_slow_host_is_left(store: PictureStore, begin: bytes) -> None:
    with dripping(begin) as url:
        came = fetched(url, store, base_url="http://127.0.0.1:1/v1", limits=FetchLimits(seconds=0.5, tries=1))
    assert "TimeoutError" in came.reason


PUBLIC = "https://api.openai.com/v1"


@pytest.mark.parametrize("url", [
    "https://127.0.0.1/x.png", "https://localhost/x.png", "https://10.1.2.3/x.png", "https://192.168.0.1:8443/x.png",
    "https://169.254.169.254/latest/meta-data", "https://[::1]/x.png", "https://[::ffff:10.0.0.1]/x.png",
    "https://[fe80::1]/x.png", "https://0.0.0.0/x.png", "https://2130706433/x.png", "https://100.64.0.1/x.png",
    "https://224.0.0.1/x.png", "http://93.184.216.34/x.png", "file:///etc/passwd",
    "https://user:word@93.184.216.34/x.png", "https://93.184.216.34/x.png\r\nHost: other", "https://[bad/x.png", "",
])  # fmt: skip
def test_no_address_leads_inwards(url: str) -> None:
    with pytest.raises(Refused):
        address_at(url, base_url=PUBLIC)


def test_a_private_number_is_refused_and_the_number_that_was_checked_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 443)) for number in ("93.184.216.34", "10.0.0.7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: numbers)
    with pytest.raises(Refused, match="private"):
        address_at("https://pictures.example.org/x.png", base_url=PUBLIC)
    numbers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: numbers)
    found = address_at("https://pictures.example.org/x.png?a=b", base_url=PUBLIC)
    assert (found.number, found.host, found.path) == ("93.184.216.34", "pictures.example.org", "/x.png?a=b")


def test_a_service_in_a_private_network_may_name_itself_and_nobody_else() -> None:
    base = "http://10.0.0.5:8000/v1"
    assert address_at("http://10.0.0.5:8000/files/x.png", base_url=base).number == "10.0.0.5"
    for url in ("http://10.0.0.5:22/x", "https://10.0.0.6/x.png", "http://127.0.0.1:8000/x.png"):
        with pytest.raises(Refused):
            address_at(url, base_url=base)
