from pathlib import Path

import pytest

from tests.faults.evaluation_kills import evaluation, kill_and_count

pytest.importorskip("openai")


def test_a_killed_evaluation_ends_in_the_same_bytes_and_buys_no_more_twice_than_was_under_way(tmp_path: Path) -> None:
    given = evaluation(tmp_path, repeats=1, references=1, sample="all")
    result = kill_and_count(tmp_path, given, kills=2, seed=4, longest=8.0)
    assert result.kills == 2
    assert result.different == []
    assert result.files > 200
    assert result.bought_twice <= result.most_twice


@pytest.mark.slow
def test_thirty_kills_of_an_evaluation_of_sampled_images(tmp_path: Path) -> None:
    given = evaluation(tmp_path, repeats=8, references=2, sample="32")
    result = kill_and_count(tmp_path, given, kills=30, seed=9, longest=20.0)
    assert result.kills == 30
    assert result.different == []
    assert result.bought_twice <= result.most_twice
