"""The report in a real browser: it opens from file:// without a complaint and without asking for anything."""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from culturekit.report.render import render
from tests.report.pages import HOSTILE, hostile_page, page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
)  # fmt: skip

NOBODY = "not an origin"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]


def opened(path: Path, folder: Path) -> tuple[str, list[str], list[str]]:
    """Open a page; give its final HTML, what the console said, and the URLs that were asked for."""
    log = folder / "net.json"
    profile = folder / "profile"
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", f"--log-net-log={log}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    return done.stdout, console, asked_for_by_the_page(event.get("params", {}) for event in events)


def asked_for_by_the_page(requests: Iterable[dict[str, str]]) -> list[str]:
    """Leave out what the browser asks for on its own, which names no origin."""
    asked = {r["url"] for r in requests if "url" in r and r.get("initiator", NOBODY) != NOBODY}
    return sorted(url for url in asked if not url.startswith(("file:", "data:")))


def test_the_report_of_a_run_opens_without_errors_or_requests(small_run: Path, tmp_path: Path) -> None:
    dom, console, urls = opened(small_run / "report/report.html", tmp_path)
    assert console == []
    assert urls == []
    assert '<form class="filters" id="filters">' in dom, "the script ran and showed the filters"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_not_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "page.html").write_text(render(hostile_page(text)), encoding="utf-8")
    dom, _, urls = opened(tmp_path / "page.html", tmp_path)
    assert "<title>pwned" not in dom
    assert urls == []


def test_the_same_text_runs_where_nothing_stops_it(tmp_path: Path) -> None:
    """The positive control: this test would notice."""
    (tmp_path / "page.html").write_text(f"<title>safe</title><body>{HOSTILE[0]}", encoding="utf-8")
    assert "<title>pwned" in opened(tmp_path / "page.html", tmp_path)[0]


def test_a_request_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<img src='http://127.0.0.1:9/x.png'>", encoding="utf-8")
    assert opened(tmp_path / "page.html", tmp_path)[2] == ["http://127.0.0.1:9/x.png"]


def test_the_policy_alone_stops_a_script_that_escaping_missed(tmp_path: Path) -> None:
    text = render(page()).replace("</main>", f"{HOSTILE[0]}</main>")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    dom, console, _ = opened(tmp_path / "page.html", tmp_path)
    assert "<title>pwned" not in dom
    assert any("Content Security Policy" in line for line in console)
