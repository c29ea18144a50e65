"""DSG's and VQAScore's arithmetic: by hand, against walks and SciPy's softmax."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.metrics import DSGScore, dsg_score, vqa_score

CHAIN: dict[str, list[str]] = {"plate": [], "food on it": ["plate"], "food is jollof": ["food on it"], "window": []}


def test_a_child_of_a_parent_answered_no_scores_zero_by_the_parents_own_answer() -> None:
    # No plate, yet food on it: that scores 0. Jollof's own parent was answered yes, so it scores 1.
    found = dsg_score([[0, 1, 1, 1]], CHAIN)
    assert isinstance(found, DSGScore)
    assert found.scores.tolist() == [[0, 0, 1, 1]]
    assert found.valid.tolist() == [[True, False, True, True]]
    assert found.value.tolist() == [0.5]
    assert dsg_score([[0, 1, 1, 1]], CHAIN, denominator="valid").value.tolist() == [pytest.approx(2 / 3)]


def test_an_image_with_an_unanswered_question_has_no_score() -> None:
    found = dsg_score([[1.0, math.nan, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]], CHAIN)
    assert found.answered.tolist() == [False, True]
    assert found.valid.all()  # no parent was answered no
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


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(-500, 500))
def test_it_is_scipys_softmax(seed: int, shift: float) -> None:
    from scipy.special import expit, log_softmax, softmax

    logits = np.random.default_rng(seed).normal(size=(10, 7)) * 20
    found = vqa_score(logits, yes=[2], no=[5])
    assert found.tolist() == pytest.approx(expit(logits[:, 2] - logits[:, 5]).tolist(), rel=1e-9)
    assert vqa_score(logits, yes=[2], no=[5], of="given").tolist() == pytest.approx(
        softmax(logits, axis=1)[:, 2].tolist()
    )
    several = vqa_score(logits, yes=[0, 2], no=[1, 5], of="yes-no")
    assert several.tolist() == pytest.approx(softmax(logits[:, [0, 2, 1, 5]], axis=1)[:, :2].sum(axis=1).tolist())
    # Logits and log probabilities differ by a constant per row.
    logprobs = log_softmax(logits, axis=1)
    assert vqa_score(logprobs + shift, yes=[2], no=[5]).tolist() == pytest.approx(found.tolist(), rel=1e-7)
    whole = vqa_score(logprobs, yes=[2], no=[5], of="vocabulary")
    assert whole.tolist() == pytest.approx(np.exp(logprobs[:, 2]).tolist())
    assert (whole <= found + 1e-12).all()
    assert (vqa_score(logits, yes=[5], no=[2]) + found).tolist() == pytest.approx([1.0] * 10)


def test_by_default_the_first_column_says_yes_and_the_second_no() -> None:
    assert vqa_score([[0.0, 0.0], [math.log(3), 0.0], [1000.0, -1000.0]]).tolist() == pytest.approx([0.5, 0.75, 1.0])


def test_a_token_that_is_not_listed_has_no_probability() -> None:
    assert vqa_score([[-1.0, -math.inf], [-math.inf, -1.0]]).tolist() == [1.0, 0.0]
    found = vqa_score([[math.log(0.6), -math.inf]], of="vocabulary")
    assert found.tolist() == pytest.approx([0.6])
    assert vqa_score([[-math.inf, -math.inf, 0.0]], of="given").tolist() == [0.0]
    with pytest.raises(UsageError, match=r"logits\[1\] must be a row with a finite token among those that count"):
        vqa_score([[0.0, 0.0, 0.0], [-math.inf, -math.inf, 0.0]])
