"""What raters who err do to corrected diversity: three of them per image, more or less often right.

    python benchmarks/corrected_raters.py            # 100 runs
    python benchmarks/corrected_raters.py --full     # 1,000 runs

Raters err as annotators do who confuse countries: a wrong answer is another country of the same continent three
times out of four. The model of the raters knows nothing of that.
"""

import sys
from dataclasses import replace

import numpy as np
from corrected_diversity import AUDITED, COUNTRIES, PARENTS, SIZE, audited, mapping, models
from numpy.typing import NDArray
from recording import record

from culturekit.metrics.corrected.audit_gates import LOWEST_AGREEMENT
from culturekit.metrics.corrected.audited_counts import AuditedCounts
from culturekit.metrics.corrected.corrected_diversity import correct_counts
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.corrected.raters import rater_model

RATERS = 3
CHOSEN = {"half in one": 2, "nearly one": 4, "by rank": 6, "four of twenty": 8}


def answers(truth: NDArray[np.int64], accuracy: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Give what each rater says of each image, int64 (n_images, RATERS)."""
    said = np.repeat(truth[:, None], RATERS, axis=1)
    wrong = rng.random(said.shape) >= accuracy
    near = PARENTS[said] * (COUNTRIES // 5) + rng.integers(COUNTRIES // 5, size=said.shape)
    far = rng.integers(COUNTRIES, size=said.shape)
    other = np.where(rng.random(said.shape) < 0.75, near, far)
    other = np.where(other == said, (other + 1) % COUNTRIES, other)
    return np.where(wrong, other, said)


def by_raters(
    counts: AuditedCounts, accuracy: float, rng: np.random.Generator
) -> tuple[AuditedCounts, AuditedCounts, float]:
    """Replace what images show by what raters say: by their model, by majority; and their agreement."""
    truth = counts.found.shown.argmax(axis=1)
    said = answers(truth, accuracy, rng)
    image = np.repeat(np.arange(len(truth)), RATERS)
    model = rater_model(image, np.tile(np.arange(RATERS), len(truth)), said.ravel(), labels=len(counts.labels))
    votes = np.zeros((len(truth), len(counts.labels)))
    np.add.at(votes, (image, said.ravel()), 1.0)
    ways = (model.shares, np.eye(len(counts.labels))[votes.argmax(axis=1)])
    modelled, majority = (replace(counts, found=replace(counts.found, shown=shown)) for shown in ways)
    return modelled, majority, model.agreement


def main() -> int:
    """Cover the truth by each way of reading the raters, and write the table."""
    full = "--full" in sys.argv
    runs = 1000 if full else 100
    diversity = expected_diversity(size=SIZE, continent=0.0, country=1.0, q=1.0, parents=PARENTS.tolist())
    shares, errors = models(), mapping(0.85, "no drift")
    truth = diversity(shares)
    table = [
        [
            "raters right",
            "pairs that agree",
            "coverage, modelled",
            "coverage, majority",
            "worst bias",
            "refused",
            "coverage of the others",
        ]
    ]
    for accuracy in (1.0, 0.95, 0.9, 0.85, 0.8):
        rng = np.random.default_rng(round(100 * accuracy))
        held, refused, agreements, standing = np.zeros(2), 0, [], []
        values = np.zeros((runs, len(CHOSEN)))
        for run in range(runs):
            for column, model in enumerate(CHOSEN.values()):
                counts = audited(shares[model], errors, rng)
                *ways, agreement = by_raters(counts, accuracy, rng)
                agreements.append(agreement)
                low = agreement < LOWEST_AGREEMENT
                refused += low
                for way, read in enumerate(ways):
                    answer = correct_counts(read, diversity, rng=rng)
                    held[way] += answer.low <= truth[model] <= answer.high
                    if way == 0 and not low:
                        standing.append(bool(answer.low <= truth[model] <= answer.high))
                    if way == 0:
                        values[run, column] = answer.value
        bias = np.abs(values.mean(axis=0) - truth[list(CHOSEN.values())]).max()
        total = runs * len(CHOSEN)
        table.append([
            f"{accuracy:.2f}", f"{np.mean(agreements):.2f}", f"{held[0] / total:.3f}", f"{held[1] / total:.3f}",
            f"{bias:.3f}", f"{refused / total:.2f}", f"{np.mean(standing):.3f}" if standing else "-",
        ])  # fmt: skip
    record(
        "corrected_raters",
        title=f"Corrected diversity with {RATERS} raters per image, {AUDITED} images, four models, {runs:,} runs",
        command=f"python benchmarks/corrected_raters.py{' --full' if full else ''}",
        table=table,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
