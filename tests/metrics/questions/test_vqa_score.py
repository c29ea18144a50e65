"""VQAScore's arithmetic: against SciPy's softmax, identities, tokens that are not listed."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.metrics import vqa_score


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


WRONG = [
    ({"logits": [[0.1, math.nan]]}, r"logits\[0, 1\] must be a number, or -inf; found nan"),
    ({"logits": [0.1, 0.2]}, "logits must be a row of numbers per question"),
    ({"logits": [["yes"]]}, "logits must be numbers"),
    ({"yes": []}, "yes must be columns from 0 to 1, each once"),
    ({"no": [2]}, "no must be columns from 0 to 1, each once; found \\[2\\]"),
    ({"no": [0]}, "a token says yes or no, not both; found column 0 in yes and in no"),
    ({"of": "all"}, "of must be 'yes-no' or 'given' or 'vocabulary'"),
    ({"of": "vocabulary"}, r"logits\[0\] must be log probabilities, summing to at most 1"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_wrong_arguments_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"logits": [[0.1, -0.2]], **change}
    with pytest.raises(UsageError, match=message):
        vqa_score(arguments.pop("logits"), **arguments)
