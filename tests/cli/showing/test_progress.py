"""The line that says how far a command is: it fits every terminal, and a log is never silent for long."""

import io
import json
import re
from dataclasses import dataclass

import pytest
from rich.console import Console

from culturekit.cli.showing import LINE_SECONDS, QUIET_SECONDS, BarProgress, LineProgress, progress_for

SPENT = "$0.0386, 1,234 tokens/s, 16 at once, held for 12 s"


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("width", range(60, 201, 7))
@pytest.mark.parametrize("name", ["filter", "vqascore-a-model-with-a-long-name-of-its-own-that-goes-on-and-on"])
def test_count_money_and_time_stay_on_a_line_of_any_width(width: int, name: str) -> None:
    clock = Clock()
    progress = BarProgress(Console(file=io.StringIO(), width=width), clock=clock)
    progress.stage(name)
    progress.begin(300_184, "candidates to be asked about")
    progress.tell(SPENT)
    progress.advance(120_012)
    clock.now += 3600.0
    line = progress.line(width)
    assert len(line) <= width
    for part in ("120,012/300,184", "$0.0386", "90 min left"):
        assert part in line
    wide = progress.line(200)
    assert all(part in wide for part in ("candidates", "33/s", "1,234 tokens/s", "16 at once"))


def test_a_terminal_shows_one_line_that_it_can_hold() -> None:
    held = io.StringIO()
    with BarProgress(Console(file=held, width=80, force_terminal=True)) as progress:
        progress.stage("filter")
        progress.begin(184, "candidates")
        progress.tell(SPENT)
        progress.advance(12)
    shown = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in held.getvalue().splitlines()]
    assert any("12/184" in line and "$0.0386" in line for line in shown)
    assert max(map(len, "\n".join(shown).replace("\r", "\n").splitlines())) <= 80


def test_a_log_hears_of_a_stage_that_counts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = LineProgress(as_json=False, clock=clock)
    progress.stage("complete")
    clock.now += QUIET_SECONDS - 1
    progress.speak_after(QUIET_SECONDS)
    assert capsys.readouterr().err == ""
    clock.now += 1
    progress.speak_after(QUIET_SECONDS)
    assert capsys.readouterr().err == "complete: at work for 30 s\n"
    progress.begin(8, "questions of round 1")
    clock.now += LINE_SECONDS
    progress.tell("$0.0100, 5 tokens/s")
    assert capsys.readouterr().err == "complete: 0 of 8 questions of round 1, after 5 s; $0.0100, 5 tokens/s\n"
    progress.advance(1)
    clock.now += 55
    progress.speak_after(QUIET_SECONDS)
    printed = capsys.readouterr().err
    assert printed == "complete: 1 of 8 questions of round 1, 1/min, 7 min left; $0.0100, 5 tokens/s\n"


def test_nothing_is_foretold_from_the_first_of_many_units() -> None:
    """A site of 4,112 thumbnails said that 2.2 hours were left while its processes began; it took 47 seconds."""
    progress = LineProgress(as_json=False, clock=Clock())
    progress.begin(4112, "thumbnails")
    progress.done = 1
    assert progress.line(2.0) == ": 1 of 4,112 thumbnails"
    assert progress.line(7.0) == ": 1 of 4,112 thumbnails, after 7 s"
    progress.done = 10
    assert progress.line(2.0).endswith("left")


def test_lines_for_machines_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = LineProgress(as_json=True, clock=clock)
    progress.stage("filter")
    progress.begin(184, "candidates")
    clock.now += LINE_SECONDS
    progress.tell(SPENT)
    state = json.loads(capsys.readouterr().err)
    assert (state["done"], state["total"], state["found"], state["seconds_left"]) == (0, 184, SPENT, None)


def test_outside_a_terminal_something_looks_after_the_silence() -> None:
    with progress_for(as_json=False) as progress:
        assert isinstance(progress, LineProgress)
        assert progress.beating.is_alive()
    assert not progress.beating.is_alive()
