"""What a rule for skin sees, and what people who named the tones of drawn pictures make of its answers."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.generation.simulated.portraits.face import LIGHTS, draw_face
from culturekit.metrics.corrected.audit_marks import ONE_RATER
from culturekit.metrics.linguistic.corrected_tones import MISSED, corrected_tones
from culturekit.metrics.linguistic.monk_scale import MONK_TONES
from culturekit.metrics.linguistic.skin_pixels import DETECTORS, Detector
from culturekit.metrics.linguistic.tone_histograms import SpreadKind
from culturekit.metrics.scoring.score_rows import Row, statistic_row

__all__ = ["ANSWERS", "KINDS", "NAMED", "SCALE", "WEIGHTS", "corrected_rows", "sees"]

SCALE = len(MONK_TONES)
WEIGHTS = [f"tone_{number}" for number in range(1, SCALE + 1)]
ANSWERS, NAMED = "answers", "named"
"""The column of how many people answered about a picture."""

KINDS: tuple[SpreadKind, ...] = ("std", "mad")

ANSWERED = 0.8
"""The share of drawn pictures that people have to look at before they put anything right."""

FACE, HALF = 48, 0.5
"""Pixels along each side of a face that a rule is tried on, and how much of its skin the rule has to find."""


def corrected_rows(
    part: pl.DataFrame, rule: pl.DataFrame, pool: str, sample: pl.DataFrame, left_out: Counter[str],
    *, detector: Detector, confidence: float, benchmark: str,
) -> Iterator[Row]:  # fmt: skip
    """Put the rule right by what a pool says of the pictures that were drawn for it, where enough of them were seen."""
    seen_part = pl.col(NAMED) / pl.col(ANSWERS)  # who saw nobody disagrees with who named a tone
    said = part.select("image_id", ANSWERS, pl.col(WEIGHTS).fill_null(0.0) * seen_part)
    model, group = part["model"][0], part["group"][0]
    every = rule.filter(pl.col("model") == model)
    every = every if group is None else every.filter(pl.col("group") == group)
    drawn = every.join(sample, on="image_id", how="semi")
    seen = drawn.select("image_id").join(said, on="image_id")
    left_out["answers about pictures that were not drawn"] += said.height - seen.height
    if seen.height < ANSWERED * drawn.height:
        left_out["tones not put right: too many of the drawn pictures have no answer"] += 1
        return
    people = every.select("image_id").join(seen, on="image_id", how="left", maintain_order="left")
    try:
        found = corrected_tones(
            every.select(pl.col(WEIGHTS).fill_null(0.0)).to_numpy(),
            people.select(pl.col(WEIGHTS).fill_null(float("nan"))).to_numpy(),
            answers=people[ANSWERS].fill_null(0).to_numpy(), confidence=confidence,
        )  # fmt: skip
    except UsageError as error:
        left_out[f"tones not put right: {error.problem}"] += 1
        return
    params = {"detector": detector, "labels": "corrected", "pool": pool, "people": found.people, "trust": found.trust,
              "sees": sees(detector), **({} if found.held else {"marked": [ONE_RATER], "missed": MISSED})}  # fmt: skip
    place = {"model": model, "benchmark": benchmark, "group": group}
    yield statistic_row("tone_std", answer=found.std, params=params, **place)
    yield statistic_row("tone_mad", answer=found.mad, params=params, **place)
    for number, share in enumerate(found.shares, start=1):
        yield statistic_row("tone_share", answer=share, params={**params, "tone": number}, **place)


@cache
def sees(detector: Detector) -> dict[str, object]:
    """Measure what a rule sees: Monk swatches, and at least half of the skin of faces of our own under five lights."""
    planes = np.ascontiguousarray(MONK_TONES.T)
    swatches = (np.flatnonzero(DETECTORS[detector](planes)) + 1).tolist()
    seen: Counter[int] = Counter()
    for tone in range(1, SCALE + 1):
        for light in LIGHTS.values():
            pixels, skin = draw_face(tone, size=FACE, light=light)
            seen[tone] += int(DETECTORS[detector](np.ascontiguousarray(pixels[skin].T)).mean() >= HALF)
    return {"swatches": swatches, "faces": seen.total(), "of_faces": SCALE * len(LIGHTS),
            "by_tone": [seen[tone] for tone in range(1, SCALE + 1)]}  # fmt: skip
