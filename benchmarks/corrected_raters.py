"""What raters who err do to corrected diversity: one to three of them, held by gold items or not, anchored or not.

    python benchmarks/corrected_raters.py                # 10 audits of four models by each kind of raters
    python benchmarks/corrected_raters.py --audits 200

Raters err as annotators do who confuse countries: a wrong answer is another country of the same continent three
times out of four. The model of the raters knows nothing of that. Anchored ones take the mapped label over in three of
ten cases where it is wrong and their form lists it first, which it does for half of the images.
"""

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from country_models import AUDITED, COUNTRIES, PARENTS, SIZE, audited, correct_counts, mapping, models
from numpy.typing import NDArray
from recording import record

from culturekit.metrics.corrected.audit_gates import LOWEST_AGREEMENT, anchoring_seen
from culturekit.metrics.corrected.audited_counts import rater_model
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts, Findings

CHOSEN = {"half in one": 2, "nearly one": 4, "by rank": 6, "four of twenty": 8}
ACCURACIES = (0.95, 0.9, 0.85, 0.8)
GOLD = 10
TAKEN_OVER = 0.3

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cell:
    """How many raters look at an image, how often each is right, the gold items of each, whether they are anchored."""

    raters: int
    accuracy: float
    gold: int
    anchored: bool


def answers(truth: Whole, mapped: Whole, first: NDArray[np.bool_], cell: Cell, rng: np.random.Generator) -> Whole:
    """Give what each rater says of each image, int64 (n_images, n_raters)."""
    said = np.repeat(truth[:, None], cell.raters, axis=1)
    wrong = rng.random(said.shape) >= cell.accuracy
    near = PARENTS[said] * (COUNTRIES // 5) + rng.integers(COUNTRIES // 5, size=said.shape)
    far = rng.integers(COUNTRIES, size=said.shape)
    other = np.where(rng.random(said.shape) < 0.75, near, far)
    other = np.where(other == said, (other + 1) % COUNTRIES, other)
    said = np.where(wrong, other, said)
    drawn = (first & (mapped != truth))[:, None] & (rng.random(said.shape) < TAKEN_OVER)
    return np.where(drawn, mapped[:, None], said) if cell.anchored else said


def audit(cell: Cell, errors: NDArray[np.float64], rng: np.random.Generator) -> tuple[list[AuditedCounts | None], bool]:
    """Audit four models by the same raters: counts to correct by, None where refused; and if anchoring was seen."""
    shares = models()
    counts = [audited(shares[model], errors, rng) for model in CHOSEN.values()]
    first = rng.random((len(counts), AUDITED)) < 0.5
    said = [
        answers(one.found.shown.argmax(axis=1), one.found.mapped, half, cell, rng)
        for one, half in zip(counts, first, strict=True)
    ]
    right = rng.binomial(cell.gold, cell.accuracy, cell.raters)
    if right.sum() < LOWEST_AGREEMENT * cell.gold * cell.raters:
        return [None] * len(counts), False
    same = np.concatenate([each == one.found.mapped[:, None] for one, each in zip(counts, said, strict=True)])
    seen = anchoring_seen(pl.DataFrame({
        "image_id": np.repeat(np.arange(len(same)), cell.raters), "offered_first": first.repeat(cell.raters),
        "as_mapped": same.ravel(),
    }))  # fmt: skip
    gold = np.stack([np.full(cell.raters, cell.gold), right], axis=1)
    kept = [~half if seen else np.ones_like(half) for half in first]
    return [settled(*each, gold) for each in zip(counts, said, kept, strict=True)], seen


def settled(counts: AuditedCounts, said: Whole, kept: NDArray[np.bool_], gold: Whole) -> AuditedCounts | None:
    """Put what the raters say in place of what images show; None where they disagree too often."""
    found, said = counts.found, said[kept]
    image, rater = np.indices(said.shape).reshape(2, -1)
    model = rater_model(image, rater, said.ravel(), labels=len(counts.labels), gold=gold)
    if model.agreement < LOWEST_AGREEMENT:
        return None
    return replace(
        counts, found=Findings(found.prompt[kept], found.mapped[kept], model.shares, model.right, model.doubt)
    )


def held(cell: Cell, diversity: ExpectedDiversity, runs: int) -> Iterator[tuple[int, float, float, float, bool]]:
    """Give model, value, low, high and whether anchoring was seen, for each interval that was not refused."""
    errors = mapping(0.85, "no drift")
    rng = np.random.default_rng([cell.raters, round(100 * cell.accuracy), cell.gold, cell.anchored])
    for _ in range(runs):
        found, seen = audit(cell, errors, rng)
        for model, counts in zip(CHOSEN.values(), found, strict=True):
            if counts is not None:
                answer = correct_counts(counts, diversity, rng=rng)
                yield model, answer.value, answer.low, answer.high, seen


def row_of(asked: tuple[Cell, int]) -> list[str]:
    """Write the line of one cell."""
    cell, runs = asked
    diversity = expected_diversity(size=SIZE, continent=0.0, country=1.0, q=1.0, parents=PARENTS.tolist())
    truth = diversity(models())
    found = list(held(cell, diversity, runs))
    told = [str(cell.raters), f"{cell.accuracy:.2f}", str(cell.gold), "yes" if cell.anchored else "no", str(runs)]
    refused = f"{1 - len(found) / (runs * len(CHOSEN)):.2f}"
    if len(found) < 0.1 * runs * len(CHOSEN):
        return [*told, refused, "-", "-", "-", "-"]
    bias = {model: np.mean([value - truth[model] for one, value, *_ in found if one == model]) for model, *_ in found}
    return [
        *told,
        refused,
        f"{np.mean([seen for *_, seen in found]):.2f}",
        f"{np.mean([low <= truth[model] <= high for model, _, low, high, _ in found]):.3f}",
        f"{max(bias.values(), key=abs):+.3f}",
        f"{np.mean([high - low for _, _, low, high, _ in found]):.3f}",
    ]


def cells() -> list[Cell]:
    """List who is simulated: all with gold items; without, three raters, and one, as a warning."""
    every = [
        Cell(raters, right, GOLD, drawn) for raters in (1, 2, 3) for right in ACCURACIES for drawn in (False, True)
    ]
    return [
        Cell(1, 1.0, 0, False),
        Cell(1, 0.9, 0, False),
        Cell(3, 0.95, 0, False),
        Cell(3, 0.9, 0, False),
        Cell(3, 1.0, 0, True),
        *every,
    ]


def main() -> int:
    """Cover the truth in every cell, on two processes, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=10, help="of four models each, by each kind of raters")
    asked = [(cell, parser.parse_args().audits) for cell in cells()]
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for row in pool.map(row_of, asked):
            rows.append(row)
            sys.stderr.write(f"{' '.join(row)}\n")
    head = [
        "raters", "right", "gold items", "anchored", "audits", "refused", "anchoring seen", "coverage of the others",
        "worst bias", "width",
    ]  # fmt: skip
    record(
        "corrected_raters",
        title=f"Corrected diversity by raters who err, {AUDITED} images of each of four models",
        command=" ".join(["python benchmarks/corrected_raters.py", *sys.argv[1:]]),
        table=[head, *rows],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
