"""What corrected diversity costs: 100 replicates of a model with a million images, 150 of them audited.

python benchmarks/corrected_speed.py
"""

import sys
import time

import numpy as np
import polars as pl
from country_models import AUDITED, PARENTS, SIZE, audited, correct_counts, mapping, models
from recording import record

from culturekit.core.schemas import AUDITS
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import expected_diversity

REPLICATES, IMAGES = 100, 1_000_000


def replicates(continent: float, country: float) -> float:
    """Give the CPU seconds of 100 corrections, each with its own audit and draws."""
    rng = np.random.default_rng(0)
    diversity = expected_diversity(size=SIZE, continent=continent, country=country, q=1.0, parents=PARENTS.tolist())
    shares, errors = models(), mapping(0.85, "no drift")
    audits = [audited(shares[number % 10], errors, rng, images=IMAGES) for number in range(REPLICATES)]
    start = time.process_time()
    for counts in audits:
        correct_counts(counts, diversity, rng=rng)
    return time.process_time() - start


def tables() -> tuple[float, float]:
    """Give the CPU seconds of drawing the sample and of one correction, from tables of a million matches."""
    rng = np.random.default_rng(1)
    label = rng.choice(20, size=IMAGES)
    names = pl.Series([f"C{number:02d}" for number in range(20)])
    matches = pl.DataFrame({
        "image_id": pl.int_range(IMAGES, eager=True).cast(pl.String), "model": "m", "concept": "cuisine",
        "prompt_id": "p", "rank": pl.Series(np.ones(IMAGES, np.uint16)), "country": names.gather(label),
        "continent": names.gather(label // 4), "artifact_id": None,
    })  # fmt: skip
    start = time.process_time()
    sample = audit_sample(matches, n=AUDITED, rng=rng)
    drawn = time.process_time() - start
    audits = matches.join(sample, on="image_id", how="semi").select(
        "image_id", "country", "continent", pool=pl.lit("p"), annotator=pl.lit("a"),
        artifact_id=pl.lit(None, pl.String), none_of_these=pl.lit(False),
    ).select(list(AUDITS.columns))  # fmt: skip
    start = time.process_time()
    vendi_corrected(matches, audits, weights=(0.0, 1.0, 0.0), rng=rng)
    return drawn, time.process_time() - start


def main() -> int:
    """Time everything and write the table."""
    drawn, corrected = tables()
    table = [["what", "CPU seconds", "goal"]]
    for name, (continent, country) in {"country": (0.0, 1.0), "hierarchical": (0.5, 0.5)}.items():
        seconds = replicates(continent, country)
        goal = "120" if name == "country" else ""
        table.append([f"{REPLICATES:,} replicates, {name} kernel", f"{seconds:.1f}", goal])
    table.append([f"one correction from a table of {IMAGES:,} matches", f"{corrected:.2f}", ""])
    table.append([f"drawing the sample from a table of {IMAGES:,} matches", f"{drawn:.2f}", ""])
    record(
        "corrected_speed",
        title=f"Corrected diversity, {IMAGES:,} images, {AUDITED} audited",
        command="python benchmarks/corrected_speed.py",
        table=table,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
