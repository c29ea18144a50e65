"""People who audit simulated images: they know what was drawn, and err as often as they are told to."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.choices import NO_CULTURE
from culturekit.core.schemas import AUDITS

_POOL = "simulated"
# artifact, country and continent; all three are None for a picture of nothing
_Labels: TypeAlias = tuple[str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class SimulatedRaters:
    """How many label each image, and how often one of them is right; an error names any other artifact."""

    raters: Annotated[int, Field(ge=1, le=100)] = 1
    accuracy: Annotated[float, Field(gt=0, le=1)] = 1.0


def simulated_audits(
    truth: pl.DataFrame, space: pl.DataFrame, images: Sequence[str], how: SimulatedRaters, *, seed: int
) -> pl.DataFrame:
    """Label images as people would who know what was drawn.

    Args:
        truth: MATCHES of the method `truth`.
        space: CSPACE, from which an error is drawn.
        images: which to label.
        how: how many raters, and how good.
        seed: of their errors; an image's labels do not depend on which others are labelled.

    Returns:
        AUDITS of the pool `simulated`.
    """
    shown = truth.filter(pl.col("image_id").is_in(list(images))).sort("image_id")
    places = space.select("artifact_id", "country", "continent").unique().sort("artifact_id", "country").rows()
    rows = [row for image in shown.iter_rows(named=True) for row in _labels_of(image, places, how, seed)]
    return pl.DataFrame(rows, schema={**AUDITS.schema, "none_means": pl.String()}).sort(AUDITS.key)


def _labels_of(
    image: dict[str, Any], places: Sequence[_Labels], how: SimulatedRaters, seed: int
) -> Iterator[dict[str, Any]]:
    """Give what each rater says of one image."""
    true: _Labels = (image["artifact_id"], image["country"], image["continent"])
    for number in range(how.raters):
        annotator = f"{_POOL}-{number + 1}"
        label = true
        key = hashlib.sha256(f"{seed}\0{annotator}\0{image['image_id']}".encode()).digest()
        numbers = np.random.default_rng(int.from_bytes(key[:16], "big"))
        if numbers.random() >= how.accuracy:
            others: list[_Labels] = [labels for labels in places if labels[0] != true[0]]
            label = others[int(numbers.integers(len(others)))] if others else (None, None, None)
        artifact, country, continent = label
        yield {
            "image_id": image["image_id"],
            "pool": _POOL,
            "annotator": annotator,
            "artifact_id": artifact,
            "country": country,
            "continent": continent,
            "none_of_these": artifact is None,
            "none_means": NO_CULTURE if artifact is None else None,
        }
