import json
import re
from pathlib import Path

import pytest

from culturekit.llm.client import Usage
from culturekit.llm.journal import Entry, Journal, Reading
from tests.command_line import culturekit


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


def test_the_log_by_outcome_and_as_json(run: Path) -> None:
    lines = printed("log", str(run / "filter"), "--outcome", "invalid", "--limit", "1", "--json").splitlines()
    (data,) = map(json.loads, lines)
    assert data["outcome"] == "invalid"
    assert data["reply"] == "\\xff" + "z" * 3_000
    assert data["usage"]["thinking_tokens"] == 4


def test_a_log_of_nothing_says_how_exchanges_ended(run: Path) -> None:
    done = culturekit("llm", "log", run, "--outcome", "refusal", ends=0)
    assert done.stdout == ""
    assert done.stderr == "no such exchange; those that are there ended invalid, ok, refused\n"


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
