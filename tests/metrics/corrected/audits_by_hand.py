"""Matches and audits of models whose true labels are known."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core.schemas import AUDITS
from culturekit.metrics import audit_sample
from culturekit.metrics.corrected import audit_sampling as audit_forecast
from culturekit.metrics.corrected import imputed_prompts
from tests.scores.picture_tables import match_table

CONTINENT = {"JP": "Asia", "IN": "Asia", "FR": "Europe", "IT": "Europe", "NG": "Africa", "US": "America"}
COUNTRIES = tuple(sorted(CONTINENT))


@contextmanager
def few_rounds() -> Iterator[None]:
    """Impute in few rounds, and simulate few audits, where nothing is shown about how near the numbers come."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit_forecast, "TIMES", 1)
        for name in ("SETTLING", "KEPT"):
            patched.setattr(imputed_prompts, name, 12)
        yield


def matches_of(
    countries: list[str | None], *, model: str = "m", prompts: int = 1, artifacts: list[str] | None = None
) -> pl.DataFrame:
    """Nearest matches of a model's images, numbered; an image without a country is mapped to nothing."""
    rows = [
        {
            "image_id": f"{model}-{number:06d}", "model": model, "prompt_id": f"p{number % prompts}",
            "concept": "cuisine", "repeat": number // 8, "slot": number % 8,
            **dict.fromkeys(
                ("artifact_id", "artifact"), artifacts[number] if artifacts else country and f"dish of {country}"
            ),
            "country": country, "countries": [country] if country else [],
            "continent": CONTINENT.get(country or ""), "abstained": country is None,
        }
        for number, country in enumerate(countries)
    ]  # fmt: skip
    return match_table(rows)


def audits_of(
    truth: dict[str, str | None],
    *,
    annotator: str = "ann",
    pool: str = "people",
    artifacts: dict[str, str] | None = None,
) -> pl.DataFrame:
    """One rater's answers: the country an image shows, or None for none of these."""
    rows = [
        {
            "image_id": image,
            "pool": pool,
            "annotator": annotator,
            "artifact_id": artifacts[image] if artifacts else country and f"dish of {country}",
            "country": country,
            "continent": CONTINENT.get(country or ""),
            "none_of_these": country is None,
        }
        for image, country in truth.items()
    ]
    return pl.DataFrame(rows, schema=AUDITS.schema, orient="row")


def shown_by(matches: pl.DataFrame, truth: Sequence[str | None]) -> dict[str, str | None]:
    """Say by its id what each image shows."""
    return dict(zip(matches["image_id"].to_list(), truth, strict=True))


def audited(
    matches: pl.DataFrame, shown: Mapping[str, str | None], *, n: int, rng: np.random.Generator
) -> pl.DataFrame:
    """Draw images for an audit, and let one rater say what each shows."""
    drawn = audit_sample(matches, n=n, rng=rng)["image_id"].to_list()
    return audits_of({image: shown[image] for image in drawn})


def mapped_with_error(truth: list[str | None], *, accuracy: float, rng: np.random.Generator) -> list[str | None]:
    """What a mapping makes of true countries: right as often as `accuracy`, else any country."""
    guesses: NDArray[np.int64] = rng.integers(len(COUNTRIES), size=len(truth))
    right = rng.random(len(truth)) < accuracy
    return [
        country if is_right and country is not None else COUNTRIES[guess]
        for country, is_right, guess in zip(truth, right, guesses, strict=True)
    ]
