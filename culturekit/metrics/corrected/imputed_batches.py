"""Corrected diversity where a prompt has few images: its own batches, with labels drawn for what each image shows.

A prompt of 8 images is too small to be taken for its shares: labels drawn from them with replacement repeat an image,
and look too much alike. Here the batches are those that the images make. Each image is given a label, drawn from what
the audit found of its mapped label and from what the other images of its batch show, many times over, and the
batches are scored.
"""

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.audited_counts import AuditedCounts
from culturekit.metrics.corrected.image_batches import ImageBatches
from culturekit.metrics.corrected.poststratified import DOUBT, cells_of, drawn_findings, findings_of
from culturekit.metrics.corrected.prompt_likeness import likeness_of
from culturekit.metrics.corrected.skewed_interval import skewed_limits
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["ImputedLabels", "correct_batches"]

BEFORE = 5
"""Rounds in which the labels of a batch settle until the first is scored."""

BLOCK = 8_192
"""Batches scored at a time."""


class ImputedLabels:
    """Labels of all images under several findings at once, drawn anew round by round (Gibbs sampling)."""

    def __init__(self, of_image: NDArray[np.int64], *, findings: int, labels: int) -> None:
        """Begin with no labels.

        Args:
            of_image: int64, (n_batches, size): the cell of each image.
            findings: under how many findings labels are drawn side by side.
            labels: how many labels there are.
        """
        self.of_image = of_image
        self.tally = np.zeros((findings, len(of_image), labels))
        self.begins = (np.arange(findings * len(of_image)) * labels).reshape(findings, -1)
        self.labels = np.full((*of_image.shape[::-1], findings), -1).T

    def draw(
        self, findings: NDArray[np.float64], pull: NDArray[np.float64], chances: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Draw every image's label again, given the others of its batch: int64 (n_findings, n_batches, size).

        Args:
            findings: float64, (n_findings, n_cells, n_labels): what the images of each cell show.
            pull: float64, (n_findings, n_labels): what each other image with a label adds to its odds.
            chances: float64, (n_batches, size): uniform numbers, the same under all findings.
        """
        flat = self.tally.reshape(-1)
        for place, (cells, chance) in enumerate(zip(self.of_image.T, chances.T, strict=True)):
            own = self.labels[..., place]
            if own[0, 0] >= 0:
                flat[self.begins + own] -= 1
            sums = np.cumsum(findings[:, cells] * (1 + self.tally * pull[:, None]), axis=-1)
            self.labels[..., place] = (sums > chance[:, None] * sums[..., -1:]).argmax(axis=-1)
            flat[self.begins + self.labels[..., place]] += 1
        return self.labels.copy()


def correct_batches(
    counts: AuditedCounts,
    batches: ImageBatches,
    *,
    confidence: float = 0.95,
    rng: np.random.Generator,
    draws: int,
) -> Interval:
    """Correct by the audit: the mean diversity of the batches, less the bias of estimated findings.

    The same uniform numbers give each image its label under the findings, under the doubted ones and under each
    draw around these, so that their differences are not those of chance. One draw of labels is behind each drawn
    value: what it scatters is what the mapped labels leave open about these images.
    """
    cells = cells_of(counts)
    of_image = cells.of_label[batches.mapped]
    likeness = likeness_of(batches, of_image)
    usual = float(likeness.inside.mean())
    fixed = [findings_of(cells), findings_of(cells, doubt=DOUBT)]
    again = drawn_findings(cells, draws=draws, rng=rng)
    inside = usual + others(likeness.inside, draws=draws, rng=rng)
    findings = np.stack([np.stack([*fixed, drawn]) for drawn in again])
    pulls = [likeness.pull(each, usual) for each in fixed]
    pull = np.stack(
        [np.stack([*pulls, likeness.pull(drawn, alike)]) for drawn, alike in zip(again, inside.tolist(), strict=True)]
    )
    values, of_batch = drawn_values(batches, of_image, findings, pull, rng=rng)
    plain, known, drawn_mean = values.mean(axis=0)
    lowest = 1 / batches.size
    value = float(np.clip(plain - (drawn_mean - known), lowest, 1.0))
    scattered = values[:, 2] + other_images(batches, of_batch, draws=draws, rng=rng)
    freedom = max(counts.audited - len(cells.found), 1)
    low, high = skewed_limits(value, scattered, freedom=freedom, confidence=confidence, lowest=lowest, highest=1.0)
    return Interval(value, low, high, counts.audited, "these")


def drawn_values(
    batches: ImageBatches,
    of_image: NDArray[np.int64],
    findings: NDArray[np.float64],
    pull: NDArray[np.float64],
    *,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw labels and score the batches, draw by draw.

    Args:
        batches: the images.
        of_image: int64, (n_batches, size): the cell of each image.
        findings: float64, (draws, 3, n_cells, n_labels): as found, doubted, and drawn again.
        pull: float64, (draws, 3, n_labels): what each other image with a label adds to its odds.
        rng: draws labels.

    Returns:
        The mean over prompts, float64 (draws, 3), and the usual score of each batch, float64 (n_batches,).
    """
    imputed = ImputedLabels(of_image, findings=findings.shape[1], labels=findings.shape[-1])
    means, totals = [], np.zeros(len(of_image))
    for block in blocks(len(findings), len(of_image)):
        labels = []
        for draw in block:
            for _ in range(BEFORE if draw == 0 else 1):
                found = imputed.draw(findings[draw], pull[draw], rng.random(of_image.shape))
            labels.append(found)
        scores = batches.scores(np.stack(labels))
        means.append(batches.over_prompts(scores))
        totals += scores[:, 1].sum(axis=0)
    return np.concatenate(means), totals / len(findings)


def blocks(draws: int, batches: int) -> list[range]:
    """Part the draws so that few batches are scored at a time, and not too few."""
    step = max(BLOCK // (3 * batches), 1)
    return [range(start, min(start + step, draws)) for start in range(0, draws, step)]


def other_images(
    batches: ImageBatches, scores: NDArray[np.float64], *, draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw batches again, float64 (draws,): by how much the mean would differ for other images of the prompts.

    Within a prompt of several batches these are drawn. A prompt with a single one cannot tell how it scatters: such
    prompts are drawn among themselves, which holds their differences against them and makes intervals wider.
    """
    of_prompt = np.bincount(batches.prompts)
    alone = scores[(of_prompt == 1)[batches.prompts]]
    difference = others(alone, draws=draws, rng=rng) * len(alone)
    for prompt in np.flatnonzero(of_prompt > 1):
        difference += others(scores[batches.prompts == prompt], draws=draws, rng=rng)
    return np.asarray(difference / len(of_prompt))


def others(values: NDArray[np.float64], *, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw one value less than there are, for the plain bootstrap scatters too little; give means less the mean."""
    count = len(values)
    if count < 2:
        return np.zeros(draws)
    again = rng.multinomial(count - 1, np.full(count, 1 / count), size=draws) / (count - 1)
    return np.asarray(again @ values - values.mean())
