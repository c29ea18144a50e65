"""What people say of an image is read to the last bit as it is scored: equally likely labels are drawn alike."""

import numpy as np
import polars as pl
import pytest

from culturekit.metrics.corrected.audited_counts import audited_counts
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, matches_of
from tests.oracles.corrected_labels import counted

CONTINENTS = (1.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_two_raters_who_disagree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [str(country) for country in rng.choice(COUNTRIES[: 2 + seed % 5], 60)]
    matches = matches_of(truth, prompts=3)
    ids = matches["image_id"].to_list()[:40]
    said = [{image: str(rng.choice(COUNTRIES[:4])) if rng.random() < 0.15 else country for image, country in
             zip(ids, truth, strict=False)} for _ in range(2)]  # fmt: skip
    audits = pl.concat([audits_of({**one}, annotator=name) for one, name in zip(said, "ab", strict=True)])
    scored = audited_counts(matches, audits, weights=CONTINENTS)
    again = counted(matches, audits, "continent")
    assert list(scored.labels) == again.labels
    assert (scored.found.shown.max(axis=1) < 1).any()
    assert (scored.found.shown == again.audit.shown).all()
