"""Answers as they would be if what nobody could tell all showed what most images show, or all different things."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

__all__ = ["SUPPOSED", "answers_if"]

SUPPOSED = ("if_alike", "if_different")
OWN_LABELS = 20
LEVELS = ("artifact_id", "country", "continent")


def answers_if(supposed: str, answers: pl.DataFrame, weights: Sequence[float]) -> pl.DataFrame | None:
    """Name what nobody told of images: what most show, or each of some number its own; None where all was told.

    `none_of_these` of the answers holds only of images that show no culture.
    """
    depth = next(place for place, weight in enumerate(reversed(weights)) if weight > 0)
    of_image: dict[str, list[dict[str, Any]]] = {}
    for row in answers.iter_rows(named=True):
        of_image.setdefault(row["image_id"], []).append(row)
    found = [row for row in answers.iter_rows(named=True) if row["none_of_these"] or row[LEVELS[depth]] is not None]
    placed = {row["image_id"] for row in found}
    untold = [image for image in sorted(of_image) if image not in placed]
    if not untold or not found:
        return None
    most = Counter((row["none_of_these"], *(row[level] or "" for level in LEVELS[depth:])) for row in found)
    usual = min(most, key=lambda said: (-most[said], said))
    alike = dict.fromkeys(LEVELS) | {level: said or None for level, said in zip(LEVELS[depth:], usual[1:], strict=True)}
    for number, image in enumerate(untold, start=1):
        if supposed == "if_alike":
            named = {**alike, "none_of_these": usual[0]}
        else:
            known = {
                level: max((row[level] for row in of_image[image] if row[level]), default=None) for level in LEVELS
            }
            if known["country"] and not known["continent"]:
                known["continent"] = f"(the continent of {known['country']})"
            own = f"(cannot tell {number % OWN_LABELS}) {known['continent']}"
            named = {**{level: known[level] or own for level in LEVELS}, "none_of_these": False}
        found += [{**row, **named} for row in of_image[image]]
    return pl.DataFrame(found, schema=answers.schema)
