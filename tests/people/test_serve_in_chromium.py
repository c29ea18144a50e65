"""From a run to a corrected report in three commands, with two people in browsers and a server that is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.people.answers import answers_in
from tests.chromium import Tab, needs_chromium, somebody
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.people.projects import key_of
from tests.people.serving import right_answer
from tests.recipes.cube.test_served_audit import truth_of

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]

# People look at a picture for five seconds; these do not
UNHURRIED = "{ const now = Date.now; let looks = 0; Date.now = () => now() + 5000 * ++looks; }"

RECIPE = (SMALL, "--set", "images.repeats=5")
AUDIT = ("--images", "40", "--people", "1")


@contextmanager
def served(run: Path, *more: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the command, and give it with the address that it prints."""
    words = [sys.executable, "-m", "culturekit", "annotate", "serve", str(run), *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def person_at(tmp_path: Path, name: str) -> Iterator[Tab]:
    (tmp_path / name).mkdir()
    with somebody(tmp_path / name) as page:
        page.ask("Page.addScriptToEvaluateOnNewDocument", source=UNHURRIED)
        yield page


def heading(page: Tab) -> str:
    return str(page.run("document.getElementById('heading').textContent"))


def text_of(page: Tab, part: str) -> str:
    return str(page.run(f"document.getElementById('{part}').textContent"))


def begin(page: Tab, address: str, name: str) -> None:
    """Open the address, type a name, and press Enter."""
    page.go(address)
    page.run("document.getElementById('annotator').focus()")
    page.type(name)
    page.press("Enter", text="\r")
    page.until("document.getElementById('start').hidden")


def choose(page: Tab, run: Path, truth: dict[str, Any]) -> str:
    """Answer what is shown as it truly is, or as a check asks, and give the task."""
    shown = page.run("document.querySelector('#pictures img').getAttribute('src')").removeprefix("pictures/")
    stated = text_of(page, "note")
    rows = [row for row in key_of(run / "to-audit").values() if shown in row["files"]]
    row = next(row for row in rows if (row["kind"] == "check") == bool(stated))
    for value in right_answer(row, truth).values():
        page.run(f"document.querySelector('fieldset:not([hidden]) input[value=\"{value}\"]').click()")
    return str(row["task"])


def go_on(page: Tab) -> None:
    """Press Next, and wait until the next picture, or the end, or a problem is there."""
    before = heading(page)
    page.run("document.getElementById('next').click()")
    page.until(
        f"document.getElementById('heading').textContent !== {before!r} || !document.getElementById('end').hidden"
        " || document.getElementById('problem').textContent"
    )


def finish(page: Tab, run: Path, truth: dict[str, Any]) -> None:
    while not page.run("document.getElementById('more').hidden"):
        while page.run("document.getElementById('end').hidden"):
            choose(page, run, truth)
            go_on(page)
        page.run("document.getElementById('more').click()")
        page.until("!document.getElementById('work').hidden || document.getElementById('more').hidden")


def test_three_commands_two_people_and_a_killed_server(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert culturekit("run", *RECIPE, "--workdir", run).returncode == 0
    truth, journal = truth_of(run), run / "to-audit/journal/answers.jsonl"
    with person_at(tmp_path, "ana") as ana, person_at(tmp_path, "bo") as bo:
        with served(run, *AUDIT) as (process, address):
            begin(ana, address, "Ana")
            begin(bo, address, "Bo")
            for page in (ana, ana, bo):
                choose(page, run, truth)
                go_on(page)
            assert (heading(ana)[0], heading(bo)[0]) == ("3", "2")
            assert {person for person, _ in answers_in(journal)} == {"Ana", "Bo"}
            assert text_of(bo, "together").startswith("3 of ")
            assert (ana.said, bo.said) == ([], [])
            icon = address.replace(address.split("/", 3)[3], "favicon.ico")
            assert [url for url in ana.asked + bo.asked if not url.startswith(address) and url != icon] == []
            bo.go(address.replace(address.split("/")[3], "guessed"))
            assert "Open the address that" in bo.run("document.body.textContent")
            assert bo.run("document.querySelectorAll('form, img').length") == 0
            bo.ask("Page.navigate", url=address.replace("127.0.0.1", "127.0.0.2"))
            bo.until("location.protocol === 'chrome-error:'")
            process.kill()
            process.wait()
            lost = choose(ana, run, truth)
            go_on(ana)
            assert text_of(ana, "problem").startswith("The server does not answer")
        assert ("Ana", lost) not in answers_in(journal)
        with served(run, *AUDIT) as (process, address):
            begin(ana, address, "ana")
            assert heading(ana)[0] == "3"
            assert text_of(ana, "together").startswith("3 of ")
            ana.run("document.getElementById('back').click()")
            ana.until("document.getElementById('heading').textContent.startsWith('2')")
            assert ana.run("document.querySelectorAll('#questions input:checked').length") >= 1
            begin(bo, address, "Bo")
            finish(bo, run, truth)
            begin(ana, address, "Ana")
            finish(ana, run, truth)
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
            assert process.stdout is not None
            wanted = sum(1 for row in key_of(run / "to-audit").values())
            assert process.stdout.read().strip() == f"{wanted} of {wanted} answers by 2 people"
    done = culturekit("run", *RECIPE, "--workdir", run)
    assert done.returncode == 0, done.stderr
    scores = pl.read_parquet(run / "scores/scores.parquet")
    corrected = scores.filter(pl.col("params").str.json_path_match("$.labels") == "corrected", metric="vs")
    assert set(corrected["model"]) == {"broad", "empty", "narrow"}
    assert "corrected" in (run / "report/report.html").read_text(encoding="utf-8")
    assert culturekit("verify", run).returncode == 0
