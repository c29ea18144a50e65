"""DSG's arithmetic: questions that depend on each other, and the score of an image from its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import float_array

Denominator: TypeAlias = Literal["all", "valid"]


@dataclass(frozen=True, slots=True)
class DSGScore:
    """Scores of images from the answers to one set of questions.

    Attributes:
        value: float64, (n,): the score of each image; NaN where a question was not answered.
        scores: float64, (n, questions): of each question, 1 or 0; NaN as for the image.
        valid: bool, (n, questions): whether no parent of the question was answered no.
        answered: bool, (n,): whether every question was answered.
    """

    value: NDArray[np.float64]
    scores: NDArray[np.float64]
    valid: NDArray[np.bool_]
    answered: NDArray[np.bool_]


def check_questions(parents: Mapping[str, Sequence[str]]) -> None:
    """Refuse questions whose parents are unknown, or that depend on themselves.

    Args:
        parents: question -> the questions that must be answered yes before it means anything.
    """
    if not parents:
        raise UsageError("there are no questions")
    for question, above in parents.items():
        for parent in above:
            if parent not in parents:
                raise UsageError(
                    f"question {question!r} depends on one that is not there",
                    expected=f"one of {', '.join(sorted(map(repr, parents)))}",
                    found=repr(parent),
                )
    try:
        TopologicalSorter(dict(parents)).prepare()
    except CycleError as error:
        circle = " -> ".join(map(repr, error.args[1]))
        raise UsageError("questions depend on each other in a circle", found=circle) from error


def dsg_score(
    answers: ArrayLike, parents: Mapping[str, Sequence[str]], *, denominator: Denominator = "all"
) -> DSGScore:
    """Score images by the answers to a graph of questions (Cho et al. 2024, Davidsonian Scene Graph).

    A question counts 1 if it was answered yes and none of its parents was answered no. What counts is the parents'
    own answer: a grandparent answered no leaves a question alone whose parent was answered yes. The score is the mean
    over all questions, or over those without such a parent.

    Args:
        answers: (n, questions), in the order of `parents`: 1 or True for yes, 0 or False for no, NaN for none.
        parents: question -> its parents.
        denominator: `all` questions, or the `valid` ones, those whose parents were all answered yes.

    Returns:
        One score per image. An image with an unanswered question has none: counting it as no would
        blame the image for the judge.

    Raises:
        UsageError: an argument breaks its rule, a parent is unknown, or questions depend on each other in a circle.
    """
    check_choice("denominator", denominator, ("all", "valid"))
    check_questions(parents)
    given = answer_rows(answers, questions=len(parents))
    number_of = {question: number for number, question in enumerate(parents)}
    valid = np.ones(given.shape, np.bool_)
    for question, above in parents.items():
        for parent in above:
            valid[:, number_of[question]] &= given[:, number_of[parent]] != 0
    answered = np.asarray(np.isfinite(given).all(axis=1))
    scores = np.where(answered[:, None], np.where(valid, given, 0.0), np.nan)
    counted = valid.sum(axis=1) if denominator == "valid" else np.full(len(given), len(parents))
    # A graph without circles has questions without parents: some are always valid.
    return DSGScore(scores.sum(axis=1) / counted, scores, valid, answered)


def answer_rows(answers: ArrayLike, *, questions: int) -> NDArray[np.float64]:
    """Read answers as 1, 0 and NaN."""
    given = float_array("answers", "1, 0 or NaN, (n, questions)", answers)
    if given.ndim != 2 or given.shape[1] != questions:
        raise argument_error("answers", f"of shape (n, {questions}), a column per question", f"shape {given.shape}")
    odd = np.argwhere(~(np.isnan(given) | np.isin(given, (0, 1))))
    if len(odd):
        row, column = map(int, odd[0])
        raise argument_error(f"answers[{row}, {column}]", "1, 0 or NaN", float(given[row, column]))
    return given


# VQAScore's arithmetic: the probability of "Yes" from what a model says of its next token.

Share: TypeAlias = Literal["yes-no", "given", "vocabulary"]


def vqa_score(
    logits: ArrayLike, *, yes: Sequence[int] = (0,), no: Sequence[int] = (1,), of: Share = "yes-no"
) -> NDArray[np.float64]:
    """Give P("Yes") of each question (Lin et al. 2024, VQAScore).

    Logits and log probabilities are both welcome, since they differ by a constant per row; only `of="vocabulary"`
    needs log probabilities. Several tokens may say yes, such as "Yes" and "yes": their probabilities add up. Where
    an API lists only the likeliest tokens, -inf stands for a token that is not listed.

    Args:
        logits: float, (n, tokens).
        yes: the columns of tokens that say yes.
        no: the columns of tokens that say no.
        of: what the probability is a share of: yes and no tokens only; all tokens given, so that other
            words take their part; or the whole `vocabulary`: log probabilities are taken as they are.

    Returns:
        float64, (n,), in [0, 1].

    Raises:
        UsageError: an argument breaks its rule, or a row has neither yes nor no.
    """
    check_choice("of", of, ("yes-no", "given", "vocabulary"))
    rows = token_rows(logits)
    check_columns(rows.shape[1], yes, no)
    if of == "vocabulary":
        return summed(rows, yes)
    columns = [*yes, *no] if of == "yes-no" else list(range(rows.shape[1]))
    highest = rows[:, columns].max(axis=1, keepdims=True)
    if np.isneginf(highest).any():
        row = int(np.argmax(np.isneginf(highest[:, 0])))
        raise argument_error(f"logits[{row}]", "a row with a finite token among those that count", rows[row].tolist())
    weights = np.exp(rows - highest)
    return np.asarray(weights[:, list(yes)].sum(axis=1) / weights[:, columns].sum(axis=1))


def token_rows(logits: ArrayLike) -> NDArray[np.float64]:
    """Read one row of numbers per question; -inf is a token of probability 0."""
    rows = float_array("logits", "numbers, (n, tokens)", logits)
    if rows.ndim != 2:
        raise argument_error("logits", "a row of numbers per question, (n, tokens)", f"shape {rows.shape}")
    odd = np.argwhere(np.isnan(rows) | np.isposinf(rows))
    if len(odd):
        row, column = map(int, odd[0])
        raise argument_error(f"logits[{row}, {column}]", "a number, or -inf", float(rows[row, column]))
    return rows


def check_columns(width: int, yes: Sequence[int], no: Sequence[int]) -> None:
    """Refuse columns that are not there, or that say both."""
    for name, columns in (("yes", yes), ("no", no)):
        if not columns or any(not 0 <= column < width for column in columns) or len(set(columns)) < len(columns):
            raise argument_error(name, f"columns from 0 to {width - 1}, each once", list(columns))
    both = set(yes) & set(no)
    if both:
        raise UsageError("a token says yes or no, not both", found=f"column {min(both)} in yes and in no")


def summed(logprobs: NDArray[np.float64], yes: Sequence[int]) -> NDArray[np.float64]:
    """Add the probabilities of the yes tokens as they are."""
    total = np.exp(logprobs).sum(axis=1)
    wrong = np.flatnonzero((logprobs > 0).any(axis=1) | (total > 1 + 1e-3))
    if len(wrong):
        row = int(wrong[0])
        raise argument_error(f"logits[{row}]", "log probabilities, summing to at most 1", logprobs[row].tolist())
    return np.asarray(np.minimum(np.exp(logprobs[:, list(yes)]).sum(axis=1), 1.0))
