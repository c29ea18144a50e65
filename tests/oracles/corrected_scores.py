"""Corrected VS and qVS, worked out again from matches and audits with the draws of the stated seed.

The estimators are those of the metrics: simulated truth, naive formulas and pinned numbers hold them in
tests/metrics/corrected. What is made of their answers is worked out here.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from culturekit.metrics.corrected.corrected_diversity import CorrectedImages
from tests.oracles.rater_errors import anchored, marks_of
from tests.oracles.tables import Answer, DiversityTables, Mean, RatedAnswer, assert_row, close, mean, t_answer
from tests.oracles.vendi import kernel_name, order_of

TOLERANCE = 1e-7

# Images of known quality that a qVS needs, and the share without it from which on that is marked
FEWEST_RATED, MOST_LACKING = 30, 0.2


class CorrectedScores:
    """Works out the correction of a model, concept and kernel once for all rows that speak of it."""

    def __init__(self, tables: DiversityTables, seed: int, design: str) -> None:
        """Take the tables, the seed of the draws, and how the audited images were chosen."""
        self.tables, self.seed, self.unknown = tables, seed, design == "unknown"
        self.nearest = pl.concat(list(tables.mapped)) if tables.mapped else pl.DataFrame()
        self.found: dict[tuple[Any, ...], tuple[RatedAnswer, int]] = {}
        self.drawn: dict[str | None, bool] = {}
        self.parts: dict[tuple[str, str | None], pl.DataFrame] = {}
        self.people: dict[str | None, pl.DataFrame] = {}

    def images(self, model: str, concept: str | None) -> pl.DataFrame:
        """Give the nearest matches of a model and concept."""
        if (model, concept) not in self.parts:
            of = pl.col("concept").eq_missing(pl.lit(concept, pl.String))
            self.parts[model, concept] = self.nearest.filter(pl.col("model") == model, of)
        return self.parts[model, concept]

    def of(self, row: Mapping[str, Any], concept: str | None, supposed: str = "") -> tuple[RatedAnswer, int]:
        """Correct one concept as a row says, by the answers as they are or would be."""
        about = row["about"]
        weights = tuple(float(weight) for weight in about["weights"])
        key: tuple[Any, ...] = (
            row["model"],
            concept,
            weights,
            about["q"],
            about["size"],
            about["pool"],
            about["confidence"],
        )
        images = self.images(row["model"], concept)
        said, gold = self.said(images, about["pool"]), self.gold(about["pool"])
        if supposed and (named := answers_if(supposed, said, weights)) is not None:
            key, said = (*key, supposed), named
        else:
            supposed = ""
        if key not in self.found:
            kept = pl.concat([self.kept(said, about["pool"]), gold], how="diagonal")
            of = (self.seed, row["model"], concept, supposed)
            self.found[key] = estimated(images, kept, of, weights, about)
        return self.found[key]

    def audits(self, pool: str | None) -> pl.DataFrame:
        """Give what the people of a pool said."""
        audits = self.tables.audits
        if audits is None:
            raise ValueError("no audits are behind a corrected score")
        if pool not in self.people:
            self.people[pool] = told_apart(audits if pool is None else audits.filter(pl.col("pool") == pool))
        return self.people[pool]

    def said(self, images: pl.DataFrame, pool: str | None) -> pl.DataFrame:
        """Give what they said of some images."""
        return self.audits(pool).join(images.select("image_id"), on="image_id", how="semi")

    def kept(self, said: pl.DataFrame, pool: str | None) -> pl.DataFrame:
        """Leave out images of which the form listed first what they are mapped to, if that drew people."""
        if pool not in self.drawn:
            self.drawn[pool] = anchored(self.audits(pool))
        return said.filter(~pl.col("offered_first").fill_null(value=False)) if self.drawn[pool] else said

    def gold(self, pool: str | None) -> pl.DataFrame:
        """Give what they said of gold items."""
        audits = self.audits(pool)
        return audits.filter(pl.col("gold").fill_null(value=False)) if "gold" in audits else audits.clear()

    def marks(self, images: pl.DataFrame, about: Mapping[str, Any]) -> list[str]:
        """Say what stands beside a number."""
        levels = zip(("artifact_id", "country", "continent"), reversed(about["weights"]), strict=True)
        column = next(name for name, weight in levels if weight > 0)
        return marks_of(images.partition_by("concept"), self.audits(about["pool"]), column, unknown=self.unknown)

    def answer(self, row: Mapping[str, Any], supposed: str = "") -> tuple[Answer, int, pl.DataFrame]:
        """Correct what a row speaks of: a concept, or all concepts, each counted by its number of prompts."""
        own = self.nearest.filter(pl.col("model") == row["model"])
        concepts = own["concept"].unique().sort().to_list()
        if row["concept"] is not None or concepts == [None]:
            images = self.images(row["model"], row["concept"])
            return *self.of(row, row["concept"], supposed), images
        parts = [(self.images(row["model"], concept)["prompt_id"].n_unique(), concept) for concept in concepts]
        total = sum(prompts for prompts, _ in parts)
        answers = [(prompts / total, *self.of(row, concept, supposed)) for prompts, concept in parts]
        value = math.fsum(share * one.value for share, one, _ in answers)
        lowest = 1 / int(row["about"]["size"])
        below = over_parts(
            [(share, one.value - one.low, (one.low > lowest) * (one.value - one.sure[0])) for share, one, _ in answers]
        )
        above = over_parts(
            [(share, one.high - one.value, (one.high < 1) * (one.sure[1] - one.value)) for share, one, _ in answers]
        )
        return Answer(value, value - below, value + above), sum(audited for *_, audited in answers), own

    def check(self, row: dict[str, Any]) -> None:
        """Work one row out and compare it."""
        answer, audited, images = self.answer(row)
        about, lacking = row["about"], 0
        if row["metric"] == "qvs":
            values = self.tables.quality.get(about["scorer"], {})
            known = [values[image] for image in images["image_id"] if image in values]
            assert len(known) >= FEWEST_RATED, f"the quality of too few images is known: {row}"
            answer, lacking = times_quality(answer, mean(known), float(about["confidence"])), images.height - len(known)
        said: dict[str, object] = {"audited": audited, "kernel": kernel_name(about["weights"])}
        told = self.said(images, about["pool"])
        said |= {key: count for key, count in left_out(told, about["weights"]).items() if count or key in about}
        said |= self.ends(row, told)
        if lacking or "images_left_out" in about:
            said["images_left_out"] = lacking
        marks = self.marks(images, about) + ["quality of a part"] * (lacking > MOST_LACKING * images.height)
        if marks or "marked" in about:
            said["marked"] = sorted(marks)
        assert_row(row, answer, images.height, said, tolerance=TOLERANCE)

    def ends(self, row: Mapping[str, Any], told: pl.DataFrame) -> dict[str, object]:
        """Work out what a diversity would be if all that nobody could tell were alike, or different."""
        stated = {name: row["about"].get(name) for name in SUPPOSED}
        if row["metric"] != "vs" or answers_if(SUPPOSED[0], told, row["about"]["weights"]) is None:
            return {name: None for name in SUPPOSED if name in row["about"]}
        found = {name: self.answer(row, name)[0].value for name in SUPPOSED}
        near = {name: close(stated[name], found[name], tolerance=TOLERANCE) for name in SUPPOSED}
        return {name: stated[name] if near[name] else found[name] for name in SUPPOSED}


def estimated(
    images: pl.DataFrame,
    audits: pl.DataFrame,
    of: tuple[object, ...],
    weights: Sequence[float],
    about: Mapping[str, Any],
) -> tuple[RatedAnswer, int]:
    """Ask the estimator; its draws are those of `of` and a level or kernel. Even draws are held elsewhere."""

    def generator(part: str) -> np.random.Generator:
        key = "\0".join(map(str, (*of, part)))
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))

    found = CorrectedImages(images, audits, rng=generator, design="unknown").vendi(
        (weights[0], weights[1], weights[2]), q=order_of(about["q"]), size=int(about["size"]),
        confidence=float(about["confidence"]),
    )  # fmt: skip
    return RatedAnswer(found.value, found.low, found.high, (found.sure_low, found.sure_high)), found.n


def over_parts(parts: Sequence[tuple[float, float, float]]) -> float:
    """Add distances of limits over concepts: what the draw leaves open in squares; all else, and to ends, as it is."""
    squares = math.fsum((share * min(sure, whole)) ** 2 for share, whole, sure in parts)
    raters = math.fsum(share * math.sqrt(max(whole**2 - sure**2, 0.0)) for share, whole, sure in parts)
    return math.sqrt(squares + raters**2)


def told_apart(audits: pl.DataFrame) -> pl.DataFrame:
    """Let none of these mean that no culture is shown: other meanings say nothing of an image."""
    if "none_means" not in audits.columns:
        return audits.with_columns(none_means=pl.lit(None, pl.String))
    nothing = pl.col("none_means").is_null() | (pl.col("none_means") == "no culture shown")
    return audits.with_columns(pl.col("none_of_these") & nothing)


def left_out(told: pl.DataFrame, weights: Sequence[float]) -> dict[str, int]:
    """Count the answers that say nothing of the closest level that a kernel looks at, and why."""
    levels = (("country_only", "artifact_id"), ("continent_only", "country"), ("no_continent", "continent"))
    wider, column = next(level for level, weight in zip(levels, reversed(weights), strict=True) if weight > 0)
    nothing = told.filter(~pl.col("none_of_these"), pl.col(column).is_null())
    untold = nothing.filter(pl.col("none_means").is_not_null()).height
    return {wider: nothing.height - untold, "cannot_tell": untold}


def times_quality(diversity: Answer, quality: Mean, confidence: float) -> Answer:
    """Multiply with a mean quality: half widths add in squares, each times the other factor."""
    limits = t_answer(quality, confidence)
    margin = limits.high - quality.value
    value = quality.value * diversity.value
    below = math.hypot(quality.value * (diversity.value - diversity.low), diversity.value * margin)
    above = math.hypot(quality.value * (diversity.high - diversity.value), diversity.value * margin)
    return Answer(value, value - below, value + above)


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
