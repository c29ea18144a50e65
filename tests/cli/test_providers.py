"""What commands say of this machine and of providers: keys, packages, models that end, prices, journals."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from culturekit.cli import doctor_command
from culturekit.cli.doctor_command import KEYS, Check, keys, packages, problem_with
from culturekit.core.errors import UsageError
from culturekit.llm import price_update, prices
from culturekit.llm.client import Identity, Usage
from culturekit.llm.journal import Entry, Journal, Reading
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.generation.folder.folder_worlds import prompts
from tests.loopback import served


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def test_the_command_looks_at_everything(tmp_path: Path) -> None:
    answer = culturekit("doctor", "--workdir", tmp_path / "not/yet/there", "--json")
    data = json.loads(answer.stdout)
    assert answer.returncode == (0 if data["ok"] else 1)
    assert {check["group"] for check in data["checks"]} == {"core", "extras", "devices", "keys", "data", "machine"}
    text = culturekit("doctor", "--workdir", tmp_path).stdout
    assert "machine" in text
    assert text.rstrip().endswith("broken")


def test_a_key_is_told_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-quite-secret-1234567890")
    monkeypatch.setenv("HF_TOKEN", "  ")
    monkeypatch.setenv("GOOGLE_API_KEY", "abc123 ")
    found = {check.name: check for check in keys()}
    assert found["OPENAI_API_KEY"].level == "ok"
    assert "secret" not in str(found)
    assert "abc123" not in str(found)
    assert found["HF_TOKEN"].level == "broken"
    assert found["GOOGLE_API_KEY"].level == "broken"
    assert found["GEMINI_API_KEY"].level == "absent"


def extras() -> dict[str, Check]:
    return {check.name: check for check in packages()}


def with_versions(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str]) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(doctor_command, "version", version)


def test_an_extra_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with_versions(monkeypatch, {"openai": "2.1", "google-genai": "2.0.0"})
    found = extras()
    assert found["llm"].level == "ok"
    assert found["embed"].level == "absent"
    assert found["embed"].hint == "pip install -c constraints.txt 'culturekit[embed]'"
    assert found["packages"].level == "broken"
    assert "numpy is not installed" in found["packages"].found


def test_a_package_that_is_too_old_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    with_versions(
        monkeypatch, {"openai": "1.9", "google-genai": "2.0.0", "faiss-cpu": "1.10", "faiss-gpu-cuvs": "1.10"}
    )
    found = extras()
    assert found["llm"].level == "broken"
    assert "openai 1.9 is older than 2" in found["llm"].found
    assert found["search"].level == "broken"
    assert problem_with("openai>=1.2") is None
    assert problem_with("openai>=1.10") == "openai 1.9 is older than 1.10"


DEAD = '  - {name: gpt, backend: "openai:gpt-image-1?quality=low"}\n'
SOURCE = """
openai:
  source: https://example.org/prices
  date: "2026-11-20"
  models:
    gpt-image-1: {input: 5, output: 20, shuts: "2027-11-20", instead: gpt-image-2}
"""


@pytest.fixture(autouse=True)
def late_november(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULTUREKIT_TODAY", "2026-11-28")
    monkeypatch.setattr(prices, "_warned", set())
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def generating(folder: Path, backend: str, *more: str | Path, ends: int = 0) -> "CompletedProcess[str]":
    files = ("--prompts", prompts(folder), "--out", folder / "o")
    return culturekit("generate", "--backend", backend, *files, "--plan", *more, ends=ends)


def recipe_with(line: str, folder: Path) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8").replace("diagnosis:", f"{line}diagnosis:"), encoding="utf-8")
    return path


@pytest.mark.parametrize(("words", "model", "gone_on"), [
    ("generate --backend openai:gpt-image-1?quality=low --prompts PROMPTS --out o --plan", "gpt-image-1", True),
    ("generate --backend openai:gpt-image-1?quality=low --prompts PROMPTS --out o", "gpt-image-1", False),
    ("plan SMALL --workdir run --set references.backend=openai:gpt-image-1?quality=low", "gpt-image-1", True),
    ("questions build --prompts PROMPTS --llm openai:o1 --plan --out q", "o1", False),
])  # fmt: skip
def test_a_model_that_is_shut_is_refused_unless_told_to_go_on(
    tmp_path: Path, words: str, model: str, gone_on: bool
) -> None:
    typed = words.replace("PROMPTS", str(prompts(tmp_path))).replace("SMALL", str(SMALL)).split()
    assert f"{model} was shut on 2026-10-23; " in culturekit(*typed, cwd=tmp_path, ends=2).stderr
    if gone_on:
        culturekit(*typed, "--go-on", cwd=tmp_path, ends=0)


def test_generate_warns_once_of_a_model_that_is_shut_soon(tmp_path: Path) -> None:
    answer = generating(tmp_path, "openai:gpt-image-1.5?quality=low")
    assert answer.stderr.count("gpt-image-1.5 is shut on 2026-12-01") == 1


def test_a_recipe_with_a_model_that_is_shut_is_not_planned_unless_told_to_go_on(tmp_path: Path) -> None:
    recipe, workdir = recipe_with(DEAD, tmp_path), tmp_path / "run"
    assert "was shut on 2026-10-23" in culturekit("plan", recipe, "--workdir", workdir, ends=2).stderr
    culturekit("plan", recipe, "--workdir", workdir, "--go-on", ends=0)
    culturekit("run", recipe, "--workdir", workdir, "--until", "graph", ends=0)  # what is not run is not looked at
    assert "was shut on 2026-10-23" in culturekit("run", recipe, "--workdir", workdir, ends=2).stderr


def test_a_preview_says_what_a_judge_costs_by_the_prices_that_win(tmp_path: Path) -> None:
    culturekit("run", SMALL, "--workdir", tmp_path / "run", "--until", "graph", ends=0)
    words = ("kg", "preview", "--graph", tmp_path / "run/graph", "--roots", "landmarks", "--json", "--llm")
    (tmp_path / "mine.yaml").write_text(SOURCE.replace("gpt-image-1", "gpt-9"))
    culturekit(*words, "openai:o1", ends=2)
    culturekit(*words, "openai:o1", "--go-on", ends=0)
    data = json.loads(culturekit(*words, "openai:gpt-9", "--prices", tmp_path / "mine.yaml").stdout)
    assert data[0]["cost"]["price"] > 0
    assert json.loads(culturekit(*words, "openai:gpt-9").stdout)[0]["cost"]["price"] is None


def test_a_file_of_prices_wins_for_one_command(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(SOURCE)
    answer = generating(tmp_path, "openai:gpt-image-1?quality=low", "--prices", mine, "--json")
    assert json.loads(answer.stdout)["source"] == "https://example.org/prices, 2026-11-20"
    listed = json.loads(culturekit("llm", "prices", "gpt-image-1", "--prices", mine, "--json").stdout)
    assert listed[0]["output"] == 20
    assert json.loads(culturekit("llm", "prices", "gpt-image-1", "--json").stdout)[0]["output"] == 40
    culturekit("llm", "prices", "--prices", tmp_path / "none.yaml", ends=2)


def test_an_update_is_told_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "mine.yaml").write_text(SOURCE)
    done = culturekit("llm", "prices", "update", tmp_path / "mine.yaml")
    changed = "changed  gpt-image-1: output 40.0 -> 20.0, cached 1.25 -> None, shuts 2026-10-23 -> 2027-11-20"
    assert changed in done.stdout
    assert (tmp_path / "config/culturekit/prices.yaml").is_file()
    assert "2027-11-20" in culturekit("llm", "prices", "gpt-image-1").stdout


def test_images_of_an_unknown_model_and_any_quality_are_planned_with_a_stated_price(tmp_path: Path) -> None:
    unknown = generating(tmp_path, "openai:gpt-image-9?quality=max&size=3000x1000&price=5/30", "--json")
    assert json.loads(unknown.stdout)["each"] == pytest.approx(7050 * 30 / 1e6)
    generating(tmp_path, "google:gemini-9-image?aspect_ratio=1:8&image_size=8K&price=1/60")
    ended = generating(tmp_path, "openai:gpt-image-9?quality=max", ends=2)
    assert "or price=IN/OUT per million tokens" in ended.stderr
    assert "or price=5/30, as listed, per million" in generating(tmp_path, "openai:gpt-image-2.5-flare", ends=2).stderr


class Lists(BaseHTTPRequestHandler):
    """The lists of models of both providers, to whoever has the key; Google's has two pages."""

    def do_GET(self) -> None:
        keys = (self.headers.get("Authorization"), self.headers.get("x-goog-api-key"))
        body: dict[str, object] | None = None
        if self.path == "/v1/models" and keys[0] == "Bearer sk-of-a-test":
            ids = {"gpt-5.4": None, "gpt-4o-2024-08-06": "2027-01-14", "gpt-4o": "2027-01-14", "gpt-5.2": "2026-12-20"}
            body = {"data": [{"id": name, "object": "model", "shutdown_date": day} for name, day in ids.items()]}
        elif self.path.startswith("/v1beta/models") and keys[1] == "goog-of-a-test":
            last = "pageToken=p%202" in self.path
            body = {"models": [{"name": f"models/{'gemini-2.5-flash-image' if last else 'gemini-2.5-flash'}"}]}
            body |= {} if last else {"nextPageToken": "p 2"}
        content = json.dumps(body or {"error": "no"}).encode()
        self.send_response(200 if body else 401)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *parts: object) -> None:
        """Say nothing."""


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with served(Lists) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        yield url


def found_by_doctor(*more: str | Path) -> dict[str, tuple[str, str]]:
    checks = json.loads(culturekit("doctor", "--json", *more).stdout)["checks"]
    return {one["name"]: (one["level"], one["found"]) for one in checks if one["group"] == "models"}


def test_the_doctor_asks_both_providers(lists: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.setenv("GEMINI_API_KEY", "goog-of-a-test")
    found = found_by_doctor("--models", "--recipe", recipe_with(DEAD, tmp_path))
    assert found["openai:gpt-5.4"] == ("ok", "alive")
    assert found["openai:gpt-4o"] == ("ok", "shuts on 2027-01-14; gpt-6-luna takes its place")
    assert found["openai:gpt-5.2"] == ("ok", "shuts on 2026-12-20; the list of prices does not say so")
    assert found["openai:gpt-5.2-pro"] == ("absent", "not listed")
    assert found["openai:o1"] == ("absent", "shut on 2026-10-23; gpt-5.6-sol takes its place")
    assert found["openai:gpt-image-1"][0] == "broken", "the recipe needs it"
    assert found["google:gemini-2.5-flash-image"] == ("ok", "alive")
    assert found["google:gemini-2.5-flash"][1].startswith("shuts on 2026-12-01")


def test_a_run_asks_in_time(lists: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(price_update, "_looked_up", set())
    identity = Identity("openai", f"{lists}/v1", "/chat/completions", "gpt-5.2")
    price_update.check_listed(identity)
    assert caplog.text == "", "without a key nobody is asked"
    monkeypatch.setattr(price_update, "_looked_up", set())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    price_update.check_listed(identity)
    price_update.check_listed(identity)
    assert caplog.text.count("gpt-5.2: shuts on 2026-12-20; the list of prices does not say so, says openai") == 1
    monkeypatch.setenv("CULTUREKIT_TODAY", "2026-12-21")
    monkeypatch.setattr(price_update, "_looked_up", set())
    with pytest.raises(UsageError, match=r"openai has shut gpt-5.2; expected a model that answers"):
        price_update.check_listed(identity)
    monkeypatch.setattr(price_update, "_looked_up", set())
    price_update.check_listed(identity, go_on=True)
    price_update.check_listed(replace(identity, base_url="https://example.org/v1", model="mine"))  # of somebody else


def test_the_doctor_names_missing_and_wrong_keys(lists: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = found_by_doctor("--models", "--recipe", recipe_with(DEAD, tmp_path))
    assert found["openai"][0] == "absent" and found["openai"][1].startswith("not asked: there is no key")
    assert found["openai:gpt-image-1"] == ("broken", "shut: 2026-10-23, by the list of prices")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-wrong-one")
    level, words = found_by_doctor("--models")["openai"]
    assert level == "broken" and "sk-a-wrong-one" not in words


def test_the_doctor_warns_of_models_of_recipe_judge_and_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = found_by_doctor
    soon = '  - {name: gpt, backend: "openai:gpt-image-1.5?quality=low"}\n'
    assert words() == {}
    assert words("--recipe", recipe_with(soon, tmp_path)) == {
        "openai:gpt-image-1.5": ("absent", "shuts soon: 2026-12-01, by the list of prices")
    }
    assert words("--recipe", recipe_with(DEAD, tmp_path))["openai:gpt-image-1"][0] == "broken"
    elsewhere = DEAD.replace("quality=low", "base_url=http://127.0.0.1:1/v1&image_price=0")
    assert words("--recipe", recipe_with(elsewhere, tmp_path)) == {}, "its names are its own affair"
    warned = culturekit("doctor", "--judge", "openai:gpt-4o").stderr
    assert "gpt-4o is shut on 2027-01-14" in warned, "before it is asked"
    assert words("--judge", "openai:gpt-4o") == {
        "openai:gpt-4o": ("absent", "shuts soon: 2027-01-14, by the list of prices")
    }
    monkeypatch.setenv("CULTUREKIT_TODAY", "2027-01-10")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    mine = tmp_path / "mine.yaml"
    mine.write_text(SOURCE.replace("gpt-image-1:", "gpt-image-2:").replace("2027-11-20", "2027-01-09"))
    assert words("--prices", mine) == {"openai:gpt-image-2": ("absent", "shut: 2027-01-09, by the list of prices")}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with Journal(tmp_path / "filter/journal") as journal:
        replies = (b'{"verdict":"keep"}', "\x1b[2Jgone \u202e\u200b".encode(), b"\xff" + b"z" * 3_000)
        asked = [bytes([key]) * 32 for key in range(3)], [b'{"label":"Q%d"}' % key for key in range(3)]
        numbers = journal.append_all([
            Entry(key, "one", 1, "online", 200, "reply", reply, request, model="gpt-4o-mini")
            for key, request, reply in zip(*asked, replies, strict=True)
        ])  # fmt: skip
        for number, outcome in zip(numbers, ("ok", "refused", "invalid"), strict=True):
            journal.note(number, Reading(outcome, Usage(1_000, 10, 4, 100), 0.000156))
    return tmp_path


def printed(*arguments: str) -> str:
    return culturekit("llm", *arguments, ends=0).stdout


def test_the_log_shows_what_left_and_came_and_cannot_steer_a_terminal(run: Path) -> None:
    text = printed("log", str(run))
    assert [line.split()[:2] for line in text.splitlines()[::3]] == [["filter", f"#{number}"] for number in (1, 2, 3)]
    assert '  answered  {"verdict":"keep"}' in text
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b[2Jgone \\u202e\\u200b" in text
    assert "1,000 tokens in, 10 out" in text and "0.000156 USD" in text
    assert re.search(r"answered  \\xffz+ \.\.\. 1,004 more characters", text)


def test_the_log_by_outcome_and_as_json_or_how_exchanges_ended(run: Path) -> None:
    lines = printed("log", str(run / "filter"), "--outcome", "invalid", "--limit", "1", "--json").splitlines()
    (data,) = map(json.loads, lines)
    assert data["outcome"] == "invalid"
    assert data["reply"] == "\\xff" + "z" * 3_000
    assert data["usage"]["thinking_tokens"] == 4
    done = culturekit("llm", "log", run, "--outcome", "refusal", ends=0)
    assert (done.stdout, done.stderr) == ("", "no such exchange; those that are there ended invalid, ok, refused\n")


def test_cost_adds_up(run: Path) -> None:
    data = json.loads(printed("cost", str(run), "--json"))
    assert [line["outcome"] for line in data["lines"]] == ["invalid", "ok", "refused"]
    assert data["total"]["usd"] == 0.000468
    assert data["total"]["input_tokens"] == 3_000
    assert "0.000468" in printed("cost", str(run)).splitlines()[-1]


def test_prices_say_when_and_where(run: Path) -> None:
    (price,) = json.loads(printed("prices", "gpt-4o-mini-2024-07-18", "--json"))
    assert (price["input"], price["output"]) == (0.15, 0.6)
    text = printed("prices")
    assert "gemini-2.5-flash" in text and "from https://" in text
    assert "no price of llama is known" in culturekit("llm", "prices", "llama", ends=2).stderr
