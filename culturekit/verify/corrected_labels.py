"""Corrected diversity of continents and countries: post-stratified shares, less the bias of estimating them."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.averages import Answer
from culturekit.verify.batch_chances import mean_diversity
from culturekit.verify.corrected_batches import BatchesAgain, resampled, too_few_images
from culturekit.verify.raters import shares_of_labels
from culturekit.verify.student import t_quantile

__all__ = ["NONE", "CorrectionOf", "corrected_labels", "only_continent"]

NONE = "(none of these)"
DRAWS = 300
FEWEST = 3
"""A mapped label of which fewer images were audited is pooled with others."""

DOUBT = 1.0
"""Imagined findings that are added to each cell when its scatter is drawn."""

STRONGEST = 1.2
"""No skewness beyond this is corrected for."""

BLOCK = 8_192
"""Rows of shares worked on at a time."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CorrectionOf:
    """What is corrected, and the key of its draws."""

    weights: tuple[float, float, float]
    q: float
    size: int
    confidence: float
    seed: int
    model: str
    concept: str | None

    def generator(self) -> np.random.Generator:
        """Make the generator that the draws of this model, concept and kernel come from."""
        key = f"{self.seed}\0{self.model}\0{self.concept}\0{self.weights}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))


@dataclass(frozen=True, slots=True)
class Counts:
    """Labels and the continent of each, images by prompt and mapped label, audited ones by mapped label and finding."""

    labels: list[str]
    parents: list[int]
    mapped: Array
    audit: Array
    audited: int


def corrected_labels(images: pl.DataFrame, audits: pl.DataFrame, of: CorrectionOf) -> tuple[Answer, int]:
    """Give the corrected diversity of one model and concept, and how many images were audited."""
    counts = counted(images, audits, "country" if of.weights[1] > 0 else "continent")
    outer, inner = (of.weights[0], of.weights[1]) if of.weights[1] > 0 else (0.0, 1.0)

    def diversity(shares: Array) -> Array:
        flat = shares.reshape(-1, shares.shape[-1])
        each = np.concatenate(
            [
                mean_diversity(part, counts.parents, continent=outer, country=inner, q=of.q, size=of.size)
                for part in np.array_split(flat, range(BLOCK, len(flat), BLOCK))
            ]
        )
        return np.asarray(each.reshape(shares.shape[:-1]).mean(axis=-1))

    cells = cells_of(counts)
    findings = np.array([counts.audit[members].sum(axis=0) for members in cells])
    leaning = leanings(counts, cells)
    inside = np.array([[row[members].sum() for members in cells] for row in counts.mapped])
    inside /= inside.sum(axis=1, keepdims=True)
    doubted = (findings + DOUBT * leaning) / (findings.sum(axis=1) + DOUBT)[:, None]
    if too_few_images(images, of.size):
        answer = of_batches(images, counts, cells, (findings, doubted), of)
        return answer, counts.audited
    plain = float(diversity(inside @ (findings / findings.sum(axis=1)[:, None])))
    known = float(diversity(inside @ doubted))
    drawn = diversity(drawn_again(counts, inside, findings, doubted, of.generator()))
    return with_limits(plain - (float(drawn.mean()) - known), drawn, counts.audited - len(cells), of), counts.audited


def with_limits(value: float, drawn: Array, freedom: int, of: CorrectionOf) -> Answer:
    """Keep a value and its limits within what is possible."""
    value = min(max(value, 1 / of.size), 1.0)
    low, high = skewed(value, drawn, max(freedom, 1), of.confidence)
    return Answer(value, max(1 / of.size, low), min(1.0, high))


def of_batches(
    images: pl.DataFrame,
    counts: Counts,
    cells: Sequence[Sequence[int]],
    found: tuple[Array, Array],
    of: CorrectionOf,
) -> Answer:
    """Correct prompts with few images by the batches that these make."""
    findings, doubted = found
    column = "country" if of.weights[1] > 0 else "continent"
    cell_of = {counts.labels[label]: number for number, members in enumerate(cells) for label in members}
    batches = BatchesAgain(images.with_columns(label=pl.col(column).fill_null(NONE)).rows(named=True), cell_of, of.size)
    rng = of.generator()
    again = np.stack(
        [findings_again(row, chances, rng) for row, chances in zip(findings, doubted, strict=True)], axis=1
    )
    inside = batches.agreement()[0]
    alike = inside.mean() + resampled(inside, DRAWS, rng)
    plain = findings / findings.sum(axis=1)[:, None]
    about = (counts.parents, of.weights, of.q)
    means, usual = batches.drawn_values((plain, doubted, again), alike, about, rng)
    drawn = means[:, 2] + batches.other_images(usual, DRAWS, rng)
    value = float(means[:, 0].mean() - (means[:, 2].mean() - means[:, 1].mean()))
    return with_limits(value, drawn, counts.audited - len(cells), of)


def counted(images: pl.DataFrame, audits: pl.DataFrame, column: str) -> Counts:
    """Count what was mapped and what was found, label by label."""
    own = set(images["image_id"])
    answers: dict[str, dict[str, str]] = {}
    parents: dict[str, str] = {NONE: NONE}
    for said in audits.filter(pl.col("image_id").is_in(list(own))).iter_rows(named=True):
        if column == "country" and only_continent(said):
            continue
        label = NONE if said["none_of_these"] else said[column]
        answers.setdefault(said["image_id"], {})[said["annotator"]] = label
        parents.setdefault(label, said["continent"] or NONE)
    for label, continent in images.select(label=pl.col(column).fill_null(NONE), parent="continent").iter_rows():
        parents.setdefault(label, continent or NONE)
    labels = sorted(parents)
    prompts = sorted({prompt or "" for prompt in images["prompt_id"]})
    mapped = np.zeros((len(prompts), len(labels)))
    label_of: dict[str, str] = {}
    for image, prompt, label in images.select("image_id", "prompt_id", pl.col(column).fill_null(NONE)).iter_rows():
        mapped[prompts.index(prompt or ""), labels.index(label)] += 1
        label_of[image] = label
    audit = np.zeros((len(labels), len(labels)))
    for image, shares in shares_of_labels(answers, labels).items():
        for label, share in shares.items():
            if share > 1e-9:
                audit[labels.index(label_of[image]), labels.index(label)] += share
    continents = sorted(set(parents.values()))
    return Counts(labels, [continents.index(parents[label]) for label in labels], mapped, audit, len(answers))


def only_continent(said: Mapping[str, Any]) -> bool:
    """Tell whether an answer names a continent and no country: of countries it says nothing."""
    return not said["none_of_these"] and said["country"] is None and said["continent"] is not None


def cells_of(counts: Counts) -> list[list[int]]:
    """Part the mapped labels: each that the audit met often enough is a cell, and the others are one together."""
    met = counts.audit.sum(axis=1)
    cells = [[label] for label in range(len(met)) if met[label] >= FEWEST]
    rest = [label for label in range(len(met)) if met[label] < FEWEST]
    if cells and met[rest].sum() < 2:
        least = min(range(len(cells)), key=lambda number: met[cells[number][0]])
        cells[least] = sorted(cells[least] + rest)
        return cells
    return [*cells, rest]


def leanings(counts: Counts, cells: Sequence[Sequence[int]]) -> Array:
    """Say what one more finding in each cell would be expected to be, from how the whole audit agrees and errs."""
    total = counts.audit.sum()
    agree = (np.trace(counts.audit) + 0.5) / (total + 1)
    errors = counts.audit.sum(axis=0) - np.diagonal(counts.audit) + 1 / len(counts.labels)
    rows = []
    for members in cells:
        own = np.zeros(len(counts.labels))
        own[members] = counts.mapped.sum(axis=0)[members]
        own = own / own.sum() if own.sum() > 0 else own
        expected = agree * own + (1 - agree) * errors / errors.sum()
        rows.append(expected / expected.sum())
    return np.array(rows)


def drawn_again(counts: Counts, inside: Array, findings: Array, doubted: Array, rng: np.random.Generator) -> Array:
    """Draw the images of each prompt and the findings of each cell again: shares, (draws, prompts, labels)."""
    totals = [int(row.sum()) for row in counts.mapped]
    weights = [rng.multinomial(n, row, size=DRAWS) / n for n, row in zip(totals, inside, strict=True)]
    shares = np.zeros((DRAWS, len(totals), len(counts.labels)))
    for cell, chances in enumerate(doubted):
        again = findings_again(findings[cell], chances, rng)
        for prompt, weight in enumerate(weights):
            shares[:, prompt, :] += weight[:, cell][:, None] * again
    return shares


def findings_again(found: Array, chances: Array, rng: np.random.Generator) -> Array:
    """Draw the findings of one cell again, one less than there are: (draws, labels)."""
    times = max(round(float(found.sum())) - 1, 1)
    return np.asarray(rng.multinomial(times, chances / chances.sum(), size=DRAWS) / times)


def skewed(value: float, drawn: Array, freedom: int, confidence: float) -> tuple[float, float]:
    """Give a t interval, put right for skewness by the inverse of Hall's cubic."""
    error = float(drawn.std(ddof=1))
    if error == 0:
        return value, value
    away = drawn - drawn.mean()
    skew = float((away**3).mean() / (away**2).mean() ** 1.5)
    skew = min(max(skew, -STRONGEST), STRONGEST)
    t = t_quantile(float(freedom), confidence)

    def inverse(point: float) -> float:
        return point if abs(skew) < 1e-3 else 3 / skew * (math.cbrt(1 + skew * (point - skew / 6)) - 1)

    return value - error * inverse(t), value - error * inverse(-t)
