"""VQAScore's arithmetic: the probability of "Yes" from what a model says of its next token."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice

__all__ = ["Share", "vqa_score"]

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
    try:
        rows = np.asarray(logits, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error("logits", "numbers, (n, tokens)", logits) from error
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
