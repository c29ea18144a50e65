from pathlib import Path
from unittest import mock

import pytest

from culturekit.core.errors import UsageError
from culturekit.llm.client import Identity, Rate, Usage
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry, Reading
from culturekit.llm.ledger import journal_for, left_for, note_on_others, spent_elsewhere
from culturekit.llm.purse import check_price
from culturekit.llm.usage import picodollars
from tests.llm.fake_client import FakeClient


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://gpu-box/v1", "", "https://api.openai.com/v1"])
def test_a_model_without_a_known_price_is_not_asked_wherever_it_is(url: str) -> None:
    at = Identity("fake", url, "/ask", "fake-1")
    with pytest.raises(UsageError, match=r"price=0\.15/0\.60, or price=0/0"):
        check_price(FakeClient(rate=None, identity=at))
    check_price(FakeClient(rate=Rate(0.0, 0.0), identity=at))


def bought(stage: Path, *, run: str, usd: float, key: bytes, promised: float | None = None) -> None:
    """Journal one reply that cost something."""
    with Journal(stage / "journal") as journal:
        entry = Entry(key, run, 1, "online", 200, "reply", b"{}", b"{}", model="m")
        (number,) = journal.append_all([entry])
        journal.note(number, Reading("ok", Usage(1, 1), usd))
        if promised is not None:
            journal.remember(f"promised:{run}", str(picodollars(promised)).encode())


def test_what_other_stages_spent_in_their_last_run_is_taken_from_the_budget(tmp_path: Path) -> None:
    bought(tmp_path / "filter", run="first", usd=1.0, key=b"1" * 32)
    bought(tmp_path / "filter", run="second", usd=0.25, key=b"2" * 32)
    bought(tmp_path / "tag", run="only", usd=0.5, key=b"3" * 32)
    stages = [tmp_path / "filter", tmp_path / "tag", tmp_path / "not begun"]
    assert spent_elsewhere(stages) == 0.75
    assert left_for(2.0, stages) == 1.25
    assert left_for(0.5, stages) == 0.0
    assert left_for(None, stages) is None
    assert left_for(3.0, ()) == 3.0
    (tmp_path / "replies.csv").write_text("", encoding="utf-8")
    for budget in (1.0, None):
        with pytest.raises(
            UsageError, match=r"replies\.csv: a paid stage is a folder; expected its --out, found a file"
        ):
            left_for(budget, [tmp_path / "replies.csv"])


def test_a_sum_says_what_others_spent_of_its_budget(tmp_path: Path) -> None:
    bought(tmp_path / "filter", run="one", usd=1.0, key=b"1" * 32)
    bought(tmp_path / "tag", run="one", usd=0.5, key=b"2" * 32)
    said = note_on_others(2.0, [tmp_path / "filter", tmp_path / "tag"])
    assert said == "$1.500000 of $2 spent by filter and tag, which comes on top of all sums here"
    assert note_on_others(2.0, [tmp_path / "not begun"]) == ""


def test_what_was_promised_and_never_came_back_counts_as_spent(tmp_path: Path) -> None:
    bought(tmp_path / "filter", run="killed", usd=0.25, key=b"1" * 32, promised=0.75)
    assert left_for(1.0, [tmp_path / "filter"]) == 0.25


def test_the_journal_of_an_unfinished_stage_goes_before_that_of_the_finished_one(tmp_path: Path) -> None:
    bought(tmp_path / "filter", run="first", usd=1.0, key=b"1" * 32)
    bought(tmp_path / ".filter.partial/out", run="second", usd=0.5, key=b"2" * 32)
    assert journal_for(tmp_path / "filter") == tmp_path / ".filter.partial/out/journal/replies.sqlite"
    assert left_for(2.0, [tmp_path / "filter"]) == 1.5


def test_without_a_budget_nobody_adds_up_what_others_spent(tmp_path: Path) -> None:
    bought(tmp_path / "filter", run="only", usd=1.0, key=b"1" * 32)
    with mock.patch("culturekit.llm.ledger.spent_in_run", side_effect=AssertionError):
        assert left_for(None, [tmp_path / "filter"]) is None
        assert note_on_others(None, [tmp_path / "filter"]) == ""
