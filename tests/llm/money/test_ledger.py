"""The ledger equals what the replies reported, in whatever stage, run, mode and outcome they lie."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.llm.client import Rate, Usage
from culturekit.llm.journal import Entry, Journal, Mode, Reading
from culturekit.llm.ledger import (
    JournalPlace,
    journal_for,
    journals_below,
    latest_exchanges,
    left_for,
    note_on_others,
    read_ledger,
    spent_elsewhere,
)
from culturekit.llm.prices import cost_of, picodollars_of
from culturekit.llm.usage import picodollars

RATE = Rate(0.15, 0.6, cached=0.075)
MODES: tuple[Mode, ...] = ("online", "batch")


def entry(key: int, *, kind: str = "reply", mode: Mode = "online", model: str = "m") -> Entry:
    return Entry(key.to_bytes(32, "big"), "run", 1, mode, 200, kind, b"{}", b'{"q":%d}' % key, model=model)


def bought(folder: Path, replies: Sequence[tuple[str, Usage, Mode]]) -> None:
    with Journal(folder) as journal:
        numbers = journal.append_all([entry(key, mode=mode) for key, (_, _, mode) in enumerate(replies)])
        for number, (outcome, usage, mode) in zip(numbers, replies, strict=True):
            journal.note(number, Reading(outcome, usage, cost_of(usage, RATE, mode=mode)))


usages = st.builds(
    lambda fresh, out, thinking, cached: Usage(fresh + cached, out + thinking, thinking, cached),
    *[st.integers(0, 10**7)] * 4,
)


OUTCOMES = ["ok", "repaired", "refused", "truncated", "invalid"]


@settings(max_examples=25, deadline=None)
@given(replies=st.lists(st.tuples(st.sampled_from(OUTCOMES), usages, st.sampled_from(MODES)), max_size=20))
def test_sums_are_exact(replies: list[tuple[str, Usage, Mode]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("run") / "journal"
    bought(folder, replies)
    ledger = read_ledger([JournalPlace("filter", folder / "replies.sqlite", finished=True)])
    assert ledger.total.requests == len(replies)
    for name in ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens"):
        assert getattr(ledger.total, name) == sum(getattr(usage, name) for _, usage, _ in replies)
    assert ledger.total.picodollars == sum(picodollars_of(usage, RATE, mode=mode) for _, usage, mode in replies)
    by_line = {(line.outcome, line.mode): line.requests for line in ledger.lines}
    assert by_line == Counter((outcome, mode) for outcome, _, mode in replies)


def test_what_the_sums_do_not_hold_is_counted_apart(tmp_path: Path) -> None:
    with Journal(tmp_path / "filter/journal") as journal:
        kinds = ["reply", "reply", "reply", "timeout", "connection", "busy", "reply"]
        numbers = journal.append_all([entry(key, kind=kind) for key, kind in enumerate(kinds)])
        journal.note(numbers[0], Reading("ok", Usage(10, 2), 0.5))
        journal.note(numbers[1], Reading("ok", Usage(10, 2, counted="here"), 0.25))
        journal.note(numbers[2], Reading("ok", Usage(10, 2), None))
    ledger = read_ledger(journals_below([tmp_path]))
    total = ledger.total
    assert (total.requests, total.input_tokens, total.usd) == (7, 30, 0.75)
    assert (total.counted_here, total.unpriced, total.unread, total.perhaps_billed) == (1, 1, 1, 2)
    assert {line.outcome for line in ledger.lines} == {"ok", "timeout", "connection", "busy", "unread"}
    assert {line.stage for line in ledger.lines} == {"filter"}


def test_models_have_lines_of_their_own(tmp_path: Path) -> None:
    with Journal(tmp_path / "filter/journal") as journal:
        journal.append_all([entry(1, model="a"), entry(2, model="b"), entry(3, model="b")])
        found = journal.found([entry(key).key for key in (1, 2, 3)], run="run")
        assert [found[entry(key).key][0].model for key in (1, 2, 3)] == ["a", "b", "b"]
    ledger = read_ledger(journals_below([tmp_path]))
    assert [(line.model, line.requests) for line in ledger.lines] == [("a", 1), ("b", 2)]


def test_of_a_finished_and_an_unfinished_folder_of_a_stage_the_later_journal_counts(tmp_path: Path) -> None:
    usage: tuple[str, Usage, Mode] = ("ok", Usage(10, 1), "online")
    bought(tmp_path / "filter/journal", [usage])
    bought(tmp_path / ".filter.partial/out/journal", [usage, usage])
    bought(tmp_path / ".judge.partial/journal", [usage])
    bought(tmp_path / ".judge.previous/journal", [usage])
    places = journals_below([tmp_path])
    assert [(place.stage, place.finished) for place in places] == [("filter", False), ("judge", False)]
    assert read_ledger(places).total.requests == 3
    for name in ("filter", "judge"):
        (place,) = journals_below([tmp_path / name])
        assert (place.stage, place.finished) == (name, False)
    assert len(journals_below([tmp_path, tmp_path / "filter"])) == 2


def test_a_folder_without_a_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no journal of replies lies below"):
        journals_below([tmp_path])
    with pytest.raises(UsageError, match="there is no such folder"):
        journals_below([tmp_path / "nowhere"])


def test_the_log_gives_the_last_ones_in_order_and_by_outcome(tmp_path: Path) -> None:
    replies: list[tuple[str, Usage, Mode]] = [(("ok", "refused")[key % 2], Usage(key, 1), "online") for key in range(9)]
    bought(tmp_path, replies)
    path = tmp_path / "replies.sqlite"
    assert [exchange.number for exchange in latest_exchanges(path, limit=3)] == [7, 8, 9]
    refused = list(latest_exchanges(path, outcome="refused", limit=2))
    assert [exchange.request for exchange in refused] == [b'{"q":5}', b'{"q":7}']
    assert [exchange.usage for exchange in refused] == [Usage(5, 1), Usage(7, 1)]
    assert list(latest_exchanges(path, outcome="blocked", limit=2)) == []


def spend(stage: Path, run: str, usd: float, key: int, *, promised: float | None = None) -> None:
    """Journal one reply that cost something."""
    with Journal(stage / "journal") as journal:
        (number,) = journal.append_all([replace(entry(key), run=run)])
        journal.note(number, Reading("ok", Usage(1, 1), usd))
        if promised is not None:
            journal.remember(f"promised:{run}", str(picodollars(promised)).encode())


def test_what_other_stages_spent_in_their_last_run_is_taken_from_the_budget_and_said(tmp_path: Path) -> None:
    stages = [tmp_path / "filter", tmp_path / "tag", tmp_path / "not begun"]
    spend(stages[0], "first", 1.0, 1)
    spend(stages[0], "second", 0.25, 2)
    spend(stages[1], "only", 0.5, 3)
    assert spent_elsewhere(stages) == 0.75
    assert [left_for(budget, stages) for budget in (2.0, 0.5, None)] == [1.25, 0.0, None]
    assert left_for(3.0, ()) == 3.0
    said = note_on_others(2.0, stages[:2])
    assert said == "$0.750000 of $2 spent by filter and tag, which comes on top of all sums here"
    assert note_on_others(2.0, stages[2:]) == ""
    with mock.patch("culturekit.llm.ledger.spent_in_run", side_effect=AssertionError):
        assert left_for(None, stages) is None, "without a budget nobody adds up what others spent"
        assert note_on_others(None, stages) == ""
    (tmp_path / "replies.csv").write_text("", encoding="utf-8")
    expected = r"replies\.csv: a paid stage is a folder; expected its --out, found a file"
    for budget in (1.0, None):
        with pytest.raises(UsageError, match=expected):
            left_for(budget, [tmp_path / "replies.csv"])


def test_what_was_promised_and_never_came_back_counts_as_spent(tmp_path: Path) -> None:
    spend(tmp_path / "filter", "killed", 0.25, 1, promised=0.75)
    assert left_for(1.0, [tmp_path / "filter"]) == 0.25


def test_the_journal_of_an_unfinished_stage_goes_before_that_of_the_finished_one(tmp_path: Path) -> None:
    spend(tmp_path / "filter", "first", 1.0, 1)
    spend(tmp_path / ".filter.partial/out", "second", 0.5, 2)
    assert journal_for(tmp_path / "filter") == tmp_path / ".filter.partial/out/journal/replies.sqlite"
    assert left_for(2.0, [tmp_path / "filter"]) == 1.5
