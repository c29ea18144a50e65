"""What an audited image shows when several people looked at it (Dawid and Skene, one number per rater)."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["Answers", "shares_of_labels"]

Answers: TypeAlias = Mapping[str, Mapping[str, str]]
"""Image -> rater -> label."""

ROUNDS, SETTLED = 200, 1e-9


def shares_of_labels(answers: Answers, labels: Sequence[str]) -> dict[str, dict[str, float]]:
    """Give the chance of each label of each image: the share of its answers, settled by how good raters seem."""
    shares = {image: first_guess(said, labels) for image, said in sorted(answers.items())}
    if len(labels) == 1 or all(len(said) == 1 for said in answers.values()):
        return shares
    for _ in range(ROUNDS):
        accuracy = accuracies(answers, shares)
        prior = {label: math.fsum(own[label] for own in shares.values()) / len(shares) for label in labels}
        after = {image: posterior(answers[image], accuracy, prior, labels) for image in shares}
        moved = max(abs(after[image][label] - shares[image][label]) for image in shares for label in labels)
        shares = after
        if moved < SETTLED:
            break
    return shares


def first_guess(said: Mapping[str, str], labels: Sequence[str]) -> dict[str, float]:
    """Give the share of the answers of one image that each label has."""
    return {label: sum(answer == label for answer in said.values()) / len(said) for label in labels}


def accuracies(answers: Answers, shares: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Say how often each rater is right, as if two more answers had been right nine times in ten."""
    right: dict[str, list[float]] = {}
    for image in sorted(answers):
        for rater, label in answers[image].items():
            right.setdefault(rater, []).append(shares[image][label])
    return {rater: (math.fsum(each) + 1.8) / (len(each) + 2.0) for rater, each in right.items()}


def posterior(
    said: Mapping[str, str], accuracy: Mapping[str, float], prior: Mapping[str, float], labels: Sequence[str]
) -> dict[str, float]:
    """Give the chance of each label from the answers: wrong answers fall on other labels as often as these occur."""
    often = {label: max(prior[label], 1e-6) for label in labels}
    logs = {}
    for truth in labels:
        total = math.log(often[truth])
        for rater, answer in said.items():
            if answer == truth:
                total += math.log(accuracy[rater])
            else:
                wrong = math.log1p(-min(accuracy[rater], 1 - 1e-9))
                total += wrong + math.log(often[answer]) - math.log(max(1 - often[truth], 1e-6))
        logs[truth] = total
    top = max(logs.values())
    weights = {label: math.exp(log - top) for label, log in logs.items()}
    whole = math.fsum(weights.values())
    return {label: weight / whole for label, weight in weights.items()}
