"""How often people are right, by gold items and by what others say of the same images, worked out answer by answer."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl
from scipy import special

NONE = "(none of these)"

Answers: TypeAlias = Mapping[str, Mapping[str, str]]  # Image -> rater -> label

Gold: TypeAlias = Mapping[str, tuple[int, int]]  # Rater -> gold items answered, and those answered rightly

ROUNDS, SETTLED, TAIL = 200, 1e-9, 0.025
FEWEST_HELD, FEWEST_COMPARED, CHANCE = 10, 15, 0.2
MOST_UNKNOWN = 0.1  # Share of answers, of which nobody knows how good they are, that is marked
# Right answers, and answers, that each rater is taken to have given before any is seen
BEFORE_RIGHT, BEFORE = 9.0, 10.0


@dataclass(frozen=True, slots=True)
class Raters:
    """The chance of each label of each image, in what share of images the likeliest is right, and the error of that."""

    shares: Mapping[str, Mapping[str, float]]
    right: float
    doubt: float


def gold_of(audits: pl.DataFrame, column: str) -> Gold:
    """Count the gold items that people answered on a level; an answer that says nothing of it does not count."""
    found: dict[str, tuple[int, int]] = {}
    for row in audits.filter(pl.col("gold").fill_null(value=False)).iter_rows(named=True) if "gold" in audits else ():
        label = NONE if row["none_of_these"] else row[column]
        if label is not None and tells(row, column):
            asked, right = found.get(row["annotator"], (0, 0))
            found[row["annotator"]] = asked + 1, right + (label == (row[f"known_{column}"] or NONE))
    return found


def tells(row: Mapping[str, object], column: str) -> bool:
    """Tell whether a level of a gold item is known: all of one that shows nothing, of others what is stated."""
    known = [row[f"known_{name}"] for name in ("artifact_id", "country", "continent")]
    return row[f"known_{column}"] is not None or not any(known)


def anchored(audits: pl.DataFrame) -> bool:
    """Tell whether what images were mapped to is named more often where the form lists it first than chance allows."""
    halves = halves_of(audits)
    if min(map(len, halves)) < FEWEST_COMPARED:
        return False
    more = statistics.fmean(halves[0]) - statistics.fmean(halves[1])
    error = math.sqrt(math.fsum(statistics.variance(half) / len(half) for half in halves))
    return more > 0 and more > statistics.NormalDist().inv_cdf(1 - CHANCE) * max(error, 1e-9)


def halves_of(audits: pl.DataFrame) -> list[list[float]]:
    """Give how often the mapped label was named of each image where the form listed it first, and where it did not."""
    if "offered_first" not in audits:
        return [[], []]
    answers: dict[tuple[bool, str], list[bool]] = {}
    for image, first, same in audits.select("image_id", "offered_first", "as_mapped").drop_nulls().iter_rows():
        answers.setdefault((first, image), []).append(same)
    return [[statistics.fmean(own) for (half, _), own in answers.items() if half == first] for first in (True, False)]


def marks_of(parts: Sequence[pl.DataFrame], audits: pl.DataFrame, column: str, *, unknown: bool) -> list[str]:
    """Say what stands beside a number of some parts: what nobody can check of design or raters, or what was left out.

    Args:
        parts: image_id: the images of each.
        audits: all that the people of the pool said, none told apart.
        column: the level that is looked at.
        unknown: nobody knows how the audited images were chosen.
    """
    found = {"design unknown": unknown}
    gold, draws = gold_of(audits, column), anchored(audits)
    compared = min(map(len, halves_of(audits))) >= FEWEST_COMPARED
    for part in parts:
        said = audits.join(part, on="image_id", how="semi")
        rows = [row for row in said.iter_rows(named=True) if not (draws and row.get("offered_first"))]
        found["anchored answers left out"] = found.get("anchored answers left out", False) or len(rows) < said.height
        first = [row.get("offered_first") for row in rows if row["pool"] != "simulated"]
        if sum(one is None or (one and not compared) for one in first) > MOST_UNKNOWN * len(first):
            found["anchoring not known"] = True
        if unheld(rows, gold, column) > MOST_UNKNOWN:
            found["one rater"] = True
        if said.filter("none_of_these", pl.col("none_means").is_null()).height:
            found["none not told apart"] = True
    return sorted(mark for mark, holds in found.items() if holds)


def unheld(rows: Sequence[Mapping[str, Any]], gold: Gold, column: str) -> float:
    """Give the share of answers about a level by raters of whom fewer than ten can be held against others' or gold."""
    placed = [(row["image_id"], row["annotator"]) for row in rows if row["none_of_these"] or row[column] is not None]
    people: dict[str, set[str]] = {}
    for image, rater in placed:
        people.setdefault(image, set()).add(rater)
    held = {rater: gold.get(rater, (0, 0))[0] for _, rater in placed}
    for image, rater in placed:
        held[rater] += len(people[image]) > 1
    return sum(held[rater] < FEWEST_HELD for _, rater in placed) / max(len(placed), 1)


def raters_of(answers: Answers, gold: Gold, labels: Sequence[str]) -> Raters:
    """Give the chance of each label of each image: the share of its answers, settled by how good raters seem."""
    shares = {image: first_guess(said, labels) for image, said in sorted(answers.items())}
    together = {image: said for image, said in answers.items() if len(said) > 1}
    people = {rater for said in answers.values() for rater in said}
    seen = sum(map(len, together.values())) + sum(gold[rater][0] for rater in people & gold.keys())
    if len(labels) == 1 or seen == 0:
        return Raters(shares, 1.0, 0.0)
    for _ in range(ROUNDS):
        accuracy = accuracies(together, shares, {rater: gold.get(rater, (0, 0)) for rater in people})
        prior = {label: math.fsum(own[label] for own in shares.values()) / len(shares) for label in labels}
        after = {image: posterior(answers[image], accuracy, prior, labels) for image in shares}
        moved = max(abs(after[image][label] - shares[image][label]) for image in shares for label in labels)
        shares = after
        if moved < SETTLED:
            break
    right = math.fsum(max(own.values()) for own in shares.values()) / len(shares)
    return Raters(shares, right, doubt_of(right, seen + BEFORE))


def doubt_of(right: float, seen: float) -> float:
    """Say how far below what is seen so many answers may be right, in standard errors of a normal law.

    Half an answer more is right, and half one wrong.
    """
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        tail = float(special.betainc(right * seen + 0.5, (1 - right) * seen + 0.5, middle))
        low, high = (middle, high) if tail < TAIL else (low, middle)
    return (right - high) / statistics.NormalDist().inv_cdf(1 - TAIL)


def first_guess(said: Mapping[str, str], labels: Sequence[str]) -> dict[str, float]:
    """Give the share of the answers of one image that each label has."""
    return {label: sum(answer == label for answer in said.values()) / len(said) for label in labels}


def accuracies(together: Answers, shares: Mapping[str, Mapping[str, float]], gold: Gold) -> dict[str, float]:
    """Say how often each rater is right of gold items and of images that others answered too."""
    right = {rater: [float(each[1])] for rater, each in gold.items()}
    asked = {rater: each[0] for rater, each in gold.items()}
    for image in sorted(together):
        for rater, label in together[image].items():
            right[rater].append(shares[image][label])
            asked[rater] += 1
    return {rater: (math.fsum(each) + BEFORE_RIGHT) / (asked[rater] + BEFORE) for rater, each in right.items()}


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
