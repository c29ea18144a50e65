"""DSG's arithmetic: by hand, against a walk question by question, and what must hold of it."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.metrics import DSGScore, dsg_score

CHAIN: dict[str, list[str]] = {"plate": [], "food on it": ["plate"], "food is jollof": ["food on it"], "window": []}


def test_a_child_of_a_parent_answered_no_scores_zero_by_the_parents_own_answer() -> None:
    # No plate, yet food on it: that scores 0. Jollof's own parent was answered yes, so it scores 1.
    found = dsg_score([[0, 1, 1, 1]], CHAIN)
    assert found.scores.tolist() == [[0, 0, 1, 1]]
    assert found.valid.tolist() == [[True, False, True, True]]
    assert found.value.tolist() == [0.5]
    assert dsg_score([[0, 1, 1, 1]], CHAIN, denominator="valid").value.tolist() == [pytest.approx(2 / 3)]


def test_all_yes_is_one_and_all_no_is_zero_under_both_denominators() -> None:
    for denominator in ("all", "valid"):
        found = dsg_score([[1] * 4, [0] * 4], CHAIN, denominator=denominator)
        assert isinstance(found, DSGScore)
        assert found.value.tolist() == [1.0, 0.0]


def test_an_image_with_an_unanswered_question_has_no_score() -> None:
    found = dsg_score([[1.0, math.nan, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]], CHAIN)
    assert found.answered.tolist() == [False, True]
    assert math.isnan(found.value[0]) and found.value[1] == 0.75
    assert np.isnan(found.scores[0]).all()


def walk(answers: Any, parents: dict[str, list[str]], denominator: str) -> float:
    given = dict(zip(parents, answers, strict=True))
    counted = [name for name, above in parents.items() if denominator == "all" or all(given[one] for one in above)]
    good = [name for name, above in parents.items() if given[name] and all(given[one] for one in above)]
    return len(good) / len(counted)


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["all", "valid"]))
def test_a_walk_question_by_question_says_the_same(seed: int, number: int, denominator: Any) -> None:
    rng = np.random.default_rng(seed)
    # Parents among the questions before: a graph without circles, in any order.
    graph = {f"q{i}": [f"q{j}" for j in range(i) if rng.random() < 0.3] for i in range(number)}
    names = [f"q{i}" for i in rng.permutation(number)]
    parents = {name: graph[name] for name in names}
    answers = rng.integers(0, 2, size=(9, number))
    found = dsg_score(answers, parents, denominator=denominator).value
    assert found.tolist() == pytest.approx([walk(row, parents, denominator) for row in answers])
    assert (dsg_score(answers, parents).value <= found + 1e-12).all()
    order = rng.permutation(number)
    turned = {names[i]: parents[names[i]] for i in order}
    assert dsg_score(answers[:, order], turned, denominator=denominator).value.tolist() == pytest.approx(found.tolist())
    assert dsg_score(answers[::-1], parents, denominator=denominator).value.tolist() == found[::-1].tolist()
    # Without parents it is the share of yes.
    assert dsg_score(answers, dict.fromkeys(parents, ())).value.tolist() == pytest.approx(answers.mean(axis=1).tolist())


WRONG = [
    (
        [[1, 1]],
        {"a": ["b"], "b": ["a"]},
        "questions depend on each other in a circle; found 'a' -> 'b' -> 'a'|'b' -> 'a'",
    ),
    ([[1]], {"a": ["a"]}, "questions depend on each other in a circle"),
    ([[1]], {"a": ["c"]}, "question 'a' depends on one that is not there; expected one of 'a', found 'c'"),
    ([[1, 0]], {"a": []}, r"answers must be of shape \(n, 1\), a column per question"),
    ([[0.5]], {"a": []}, r"answers\[0, 0\] must be 1, 0 or NaN; found 0.5"),
    ([["yes"]], {"a": []}, "answers must be 1, 0 or NaN"),
    ([[]], {}, "there are no questions"),
]


@pytest.mark.parametrize(("answers", "parents", "message"), WRONG)
def test_wrong_questions_and_answers_are_named(answers: Any, parents: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dsg_score(answers, parents)
