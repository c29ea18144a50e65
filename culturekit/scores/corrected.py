"""From matches and audits to corrected diversity, beside the mapped one."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from culturekit.builders.country_names import country_code
from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError, counted
from culturekit.core.schemas import AUDITS, MATCHES
from culturekit.core.table import folded_name
from culturekit.core.tables import checked
from culturekit.metrics.corrected.audit_gates import (
    FEW_RATED,
    SUPPOSED,
    answers_about,
    answers_if,
    closest_level,
    in_places,
    marks_of,
    of_batches,
    unplaced_answers,
)
from culturekit.metrics.corrected.audited_counts import RatedInterval, over_concepts
from culturekit.metrics.corrected.corrected_diversity import CorrectedImages
from culturekit.metrics.corrected.looks import (
    Estimate,
    Pair,
    look_limits,
    open_models,
    planned_looks,
    settled_pairs,
    whole_looks,
)
from culturekit.metrics.diversity.labels import STANDARD_KERNELS, Weights, check_weights, kernel_name
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.answers import Refusals
from culturekit.scores.diversity import NO_CORRECTION, PAIRS_ORDER, Correction, QvsOptions, quality_by_scorer
from culturekit.scores.family import Row, Scored, scored, statistic_row

# The answers of an audit as scores take them: places by their codes, and counted where they are about other images.


def checked_answers(audits: pl.DataFrame, matches: pl.DataFrame) -> pl.DataFrame:
    """Accept a table of answers; refuse names where the matches have codes, which would be labels of their own.

    What is named alone lies where the matches have it.
    """
    answers = checked(audits, AUDITS)
    answers = answers.with_columns(audits[name] for name in AUDITS.optional if name in audits.columns)
    artifacts = matches.select("artifact_id", "artifact").drop_nulls("artifact_id").unique().sort(pl.all()).rows()
    ids, codes = {artifact for artifact, _ in artifacts}, set(matches["country"])
    named = {folded_name(name): artifact for artifact, name in artifacts if name} | {
        folded_name(one): one for one in ids
    }

    def id_of(name: str) -> str | None:
        return named.get(folded_name(name)) or named.get(folded_name(name.rstrip("/").rpartition("/")[2]))

    for column, known, code in (("country", codes, country_code), ("artifact_id", ids, id_of)):
        for name in answers[column].drop_nulls().unique().sort():
            if name not in known and code(name) not in (None, name):
                raise UsageError(
                    f"an audit names what its column {column} has codes for",
                    where=f"image {answers.filter(pl.col(column) == name)['image_id'][0]!r}",
                    expected=str(code(name)),
                    found=repr(name),
                    hint="Answers that name one place in two ways would look like two.",
                )
    check_placed(answers, matches)
    return in_places(answers, matches)


SHIFTED = 1e-6  # How seldom answers that stand where they belong would seem to belong a row away


def check_placed(answers: pl.DataFrame, matches: pl.DataFrame) -> None:
    """Refuse artifacts in countries that are none of their own, and answers that fit the images a row away better."""
    from scipy.stats import binomtest

    listed_in = matches.select("artifact_id", "countries").explode("countries").drop_nulls().unique()
    listed = dict(listed_in.group_by("artifact_id").agg("countries").iter_rows())
    for row, (artifact, country) in enumerate(answers.select("artifact_id", "country").iter_rows(), start=1):
        if country is not None and country not in listed.get(artifact, [country]):
            raise UsageError(
                "an audit has an artifact in a country that is none of its own", where=f"audits, row {row:,}",
                expected=" or ".join(sorted(listed[artifact])), found=f"{artifact!r} in {country!r}",
                hint="Were the cells of a column moved by a row?",
            )  # fmt: skip
    mapped = dict(matches.select("image_id", "country").iter_rows())
    here = answers.select(
        "country", mapped=pl.col("image_id").replace_strict(mapped, default=None, return_dtype=pl.String)
    )
    fits = here["country"] == here["mapped"]
    for rows in (-1, 1):
        moved = here["country"].shift(rows) == here["mapped"]
        better, worse = int((moved & ~fits).sum()), int((fits & ~moved).sum())
        if better > worse and binomtest(better, better + worse, alternative="greater").pvalue < SHIFTED:
            raise UsageError(
                "answers of an audit stand a row away from their images", where="audits",
                expected="answers that name what images are mapped to as often as those of the next row, at least",
                found=f"{better:,} that would do so a row {'up' if rows < 0 else 'down'}, {worse:,} only as they are",
                hint="Sort the sheet again with the images beside their answers.",
            )  # fmt: skip


def answers_about_others(audits: pl.DataFrame, matches: pl.DataFrame) -> Mapping[str, int]:
    """Count the answers about images that were not mapped; gold items are none of them."""
    others = audits.join(matches.select("image_id").unique(), on="image_id", how="anti")
    if "gold" in others.columns:
        others = others.filter(~pl.col("gold").fill_null(value=False))
    return {"answers about images that are not among the matches": others.height} if others.height else {}


# Corrected diversity.

KERNELS = "kernels of models and concepts"  # What reasons are counted of: no images

# How the reasons begin for which a kernel of a model and concept was left out
NOT_CORRECTED = "kernels not corrected: "


# Images of known quality below which there is no corrected qVS: the mean quality of fewer is not known to hold
FEWEST_RATED = 30

# Why a product with a quality was left out
UNRATED = f"qvs not corrected: the quality of fewer than {FEWEST_RATED} images is known"

# Share of images of known quality below which corrected qVS is marked: as with audits, those that lack it are seldom
# like the others
LEAST_RATED = 0.8


@dataclass(frozen=True, slots=True)
class Study:
    """What people answered about the images of models, and what is asked of that.

    `sample` says which images were drawn, and `second`, MATCHES, what another instrument says of the images; both are
    None where there is no such table.
    """

    audits: pl.DataFrame
    sample: pl.DataFrame | None
    second: pl.DataFrame | None
    scorers: Mapping[str, pl.DataFrame]
    options: QvsOptions
    correction: Correction


def score_corrected(
    matches: pl.DataFrame,
    audits: pl.DataFrame,
    quality: pl.DataFrame | None,
    *,
    options: QvsOptions,
    correction: Correction = NO_CORRECTION,
    sample: pl.DataFrame | None = None,
    second: pl.DataFrame | None = None,
) -> Scored:
    """Correct the diversity of each model on each concept, and of each model over its concepts.

    A model and concept whose audit cannot carry a correction is left out, and counted by reason. With quality there is
    a corrected qvs for each scorer. Kernels with artifacts are corrected at q = 2, whatever the order, others at the
    first order only. Where the sample was drawn for looks, each model is corrected by those that are whole, and pairs
    of models have a row of their own. `second` maps the same images by another instrument.
    """
    nearest = checked(matches, MATCHES).filter(pl.col("rank") == 1)
    answers, scorers, reasons = checked_answers(audits, nearest), quality_by_scorer(quality), Refusals()
    models = nearest.sort("model", "concept", "image_id").partition_by("model", maintain_order=True)
    study, waiting = Study(answers, sample, second, scorers, options, correction), dict[str, int]()
    if planned_looks(sample) is None:
        rows = [row for images in models for row in model_rows(images, study, reasons)]
    else:
        looks = Looks(models, study, reasons)
        rows, waiting = list(looks.rows()), looks.waiting()
    if not rows and correction.required:
        raise reasons.refusal("no model could be corrected", partial(counted, many=KERNELS))
    products = sum({"qvs": 1, "vs": -len(scorers)}.get(row["metric"], 0) for row in rows)
    left_out = {
        **reasons.left_out(NOT_CORRECTED),
        UNRATED: -products,
        **waiting,
        **answers_about_others(answers, nearest),
    }
    return scored(rows, left_out=left_out)


def model_rows(images: pl.DataFrame, study: Study, reasons: Refusals) -> Iterator[Row]:
    """Make the rows of one model, each kernel on each concept and then over all concepts."""
    concepts = images.partition_by("concept", maintain_order=True)
    pool = study.correction.pool
    asked = {"pool": pool} | ({"drawing": "batches"} if of_batches(study.sample) else {})
    correcting = [Correcting(part, study) for part in concepts]
    for kernel in study.options.kernels:
        weights = check_weights(kernel)
        found = []
        for part, one in zip(concepts, correcting, strict=True):
            try:
                found.append((part, one.corrected(weights), one.second_used(weights)))
            except UsageError as error:
                reasons.note(error, part["model"][0], part["concept"][0], f"kernel {kernel_name(weights)}")
        unplaced = [unplaced_answers(answers_about(part, study.audits, pool), weights) for part, *_ in found]
        for (part, (answer, ends), second), without in zip(found, unplaced, strict=True):
            beside = {**asked, **second, **without, **ends, **marked([part], study, weights)}
            yield from rows_of(part, part["concept"][0], answer, weights, study, beside)
        if len(found) == len(concepts) > 1:
            sizes = [part["prompt_id"].n_unique() for part in concepts]
            answers = [answer for _, answer, _ in found]
            second = {key: name for *_, used in found for key, name in used.items()}
            overall = over_concepts(
                list(zip(sizes, (answer for answer, _ in answers), strict=True)), study.options.size
            )
            ends = ends_over(sizes, answers)
            beside = {**asked, **second, **total_of(unplaced), **ends, **marked(concepts, study, weights)}
            yield from rows_of(images, None, overall, weights, study, beside)


NOT_WHOLE = "not corrected: no look of it is answered yet"


class Looks:
    """The looks of an audit: each model is corrected by those that are answered, and pairs by all up to the last.

    Intervals of models hold over all looks: whoever stops at one does not make them lie.
    """

    def __init__(self, models: Sequence[pl.DataFrame], study: Study, reasons: Refusals) -> None:
        """Take the images of each model, and what people answered about images of a sample that has looks."""
        planned = planned_looks(study.sample)
        assert planned is not None and study.sample is not None
        self.study, self.sample, self.confidence = study, study.sample, study.options.confidence
        self.reasons, (self.planned, self.goal) = reasons, planned
        self.models = {images["model"][0]: images for images in models}
        self.whole = whole_looks(self.sample, study.audits["image_id"])
        self.last: dict[tuple[str, int], list[Row]] = {}
        self.limits = look_limits([count / self.planned[-1] for count in self.planned], alpha=1 - self.confidence)

    def up_to(self, look: int) -> Study:
        """Give the part of the sample and of the answers that a look sees; answers about no drawn image stay."""
        later = self.sample.filter(pl.col("look") > look).select("image_id")
        audits = self.study.audits.join(later, on="image_id", how="anti")
        return replace(self.study, audits=audits, sample=self.sample.filter(pl.col("look") <= look))

    def waiting(self) -> dict[str, int]:
        """Count the answers that wait until their look is whole."""
        whole = pl.col("model").replace_strict(self.whole, return_dtype=pl.Int64)
        unseen = self.sample.filter(pl.col("look") > whole)
        later = self.study.audits.join(unseen, on="image_id", how="semi").height
        return {"answers of looks that are not whole": later} if later else {}

    def rows(self) -> Iterator[Row]:
        """Make the rows of every model at its last look, and of the pairs."""
        for model, images in self.models.items():
            look = self.whole.get(model, 0)
            if not look:
                self.reasons.note(UsageError(NOT_WHOLE), model, "all concepts", "every kernel")
                continue
            factor = float(self.limits[look - 1]) / self.margin
            rows = list(model_rows(images, self.up_to(look), self.reasons))
            named = [(row, json.loads(row["params"])["kernel"]) for row in rows if row["metric"] == "vs"]
            self.last[model, look] = [row for row, kernel in named if kernel == "country"]
            for one in rows:
                yield held_over_looks(one, factor, look=look, looks=self.planned)
        yield from (self.row(pair) for pair in self.pairs())

    @property
    def margin(self) -> float:
        """How many standard errors an interval of one look reaches."""
        from scipy.special import ndtri

        return float(ndtri((1 + self.confidence) / 2))

    def estimates(self, look: int) -> dict[str, Estimate]:
        """Give the diversity of countries of each model that has answered a look."""
        found, only = {}, replace(self.study.options, kernels=(STANDARD_KERNELS["country"],))
        for model, images in self.models.items():
            if self.whole.get(model, 0) >= look:
                study = replace(self.up_to(look), scorers={}, options=only)
                rows = self.last.get((model, look)) or list(model_rows(images, study, Refusals()))
                overall = [row for row in rows if row["concept"] is None] or rows
                if len(overall) == 1 and overall[0]["ci_low"] is not None:
                    one, error = overall[0], (overall[0]["ci_high"] - overall[0]["ci_low"]) / 2 / self.margin
                    found[model] = Estimate(one["value"], error, json.loads(one["params"])["audited"])
        return found

    def pairs(self) -> list[Pair]:
        """Say of each pair whether the looks so far settle which model shows more countries."""
        looks = [self.estimates(look) for look in range(1, max(self.whole.values(), default=0) + 1)]
        return settled_pairs(looks, self.planned, goal=self.goal, confidence=self.confidence)

    def row(self, pair: Pair) -> Row:
        """Write the difference of two models."""
        params = {
            "kernel": "country", "labels": "corrected", "over": pair.second, "state": pair.state, "goal": self.goal,
            "look": pair.look, "looks": self.planned, "confidence": self.confidence,
        }  # fmt: skip
        answer = Interval(pair.difference, pair.low, pair.high, self.planned[pair.look - 1], "these")
        return statistic_row(
            "vs_difference", model=pair.first, benchmark=self.study.options.benchmark, answer=answer, params=params
        )


def looked_at(
    matches: pl.DataFrame, audits: pl.DataFrame, sample: pl.DataFrame, *, options: QvsOptions, correction: Correction
) -> tuple[list[Pair], list[str]]:
    """Say of each pair of models what the looks so far settle, and about which models people are to be asked on."""
    nearest = checked(matches, MATCHES).filter(pl.col("rank") == 1).sort("model", "concept", "image_id")
    study = Study(checked_answers(audits, nearest), sample, None, {}, options, correction)
    looks = Looks(nearest.partition_by("model", maintain_order=True), study, Refusals())
    pairs = looks.pairs()
    return pairs, open_models(pairs, list(looks.models), looks.goal)


def held_over_looks(row: Row, factor: float, *, look: int, looks: Sequence[int]) -> Row:
    """Widen an interval so that it holds at whichever look people stop."""
    params = {**json.loads(row["params"]), "look": look, "looks": list(looks)}
    low, high = (row["value"] + factor * (row[end] - row["value"]) for end in ("ci_low", "ci_high"))
    if row["metric"] == "vs":
        low, high = max(low, 1 / params["size"]), min(high, 1.0)
    return {**row, "params": canonical_json(params).decode(), "ci_low": low, "ci_high": high}


def marked(parts: Sequence[pl.DataFrame], study: Study, weights: Weights) -> dict[str, list[str]]:
    """Say what stands beside numbers of some parts of a model's images; nothing where all can be checked."""
    how, level = study.correction, closest_level(weights)[1]
    found = {mark for part in parts for mark in marks_of(part, study.audits, how.pool, how.design, level)}
    return {"marked": sorted(found)} if found else {}


class Correcting:
    """The images of one model and concept: kernels of one level share what is imputed."""

    def __init__(self, images: pl.DataFrame, study: Study) -> None:
        """Take the images, and what a second instrument says of them."""
        self.images, self.study = images, study
        self.second = matches_about(study.second, images)
        self.by: dict[str, CorrectedImages] = {}

    def corrected(self, weights: Weights) -> tuple[RatedInterval, dict[str, float]]:
        """Correct a kernel, also as if all images that nobody could tell were alike, or different."""
        audits = self.study.audits
        about_these = answers_about(self.images, audits, self.study.correction.pool)
        others = audits.join(self.images.select("image_id"), on="image_id", how="anti")
        supposed = {name: answers_if(name, about_these, weights) for name in SUPPOSED}
        return self.vendi("", audits, weights), {
            name: self.vendi(name, pl.concat([answers, others], how="diagonal"), weights).value
            for name, answers in supposed.items()
            if answers is not None
        }

    def vendi(self, supposed: str, answers: pl.DataFrame, weights: Weights) -> RatedInterval:
        """Correct a kernel by some answers: what is supposed of the others depends on the level it looks at."""
        name, (options, how) = f"{supposed}\0{closest_level(weights)[0]}", (self.study.options, self.study.correction)
        if name not in self.by:
            self.by[name] = CorrectedImages(
                self.images, answers, rng=lambda part: self.draws(f"{supposed}\0{part}"), pool=how.pool,
                sample=self.study.sample, design=how.design, second=self.second,
            )  # fmt: skip
        q = options.q if of_batches(self.study.sample) else order_of(weights, options.q)
        return self.by[name].vendi(weights, q=q, size=options.size, confidence=options.confidence)

    def second_used(self, weights: Weights) -> dict[str, str]:
        """Name the second instrument, where a kernel was corrected by it, too."""
        levels = self.by[f"\0{closest_level(weights)[0]}"].levels.values()
        if self.second is None or all(counts.instruments is None for counts, _ in levels):
            return {}
        return {"second": str(self.second["method"][0])}

    def draws(self, part: str) -> np.random.Generator:
        """Give the draws of a part of the work."""
        key = f"{self.study.correction.seed}\0{self.images['model'][0]}\0{self.images['concept'][0]}\0{part}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))


def total_of(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add counts by name."""
    return {name: sum(one.get(name, 0) for one in counts) for name in sorted({name for one in counts for name in one})}


def order_of(weights: Weights, q: float) -> float:
    """Give the order at which an audit of single images can correct a kernel."""
    return PAIRS_ORDER if weights[2] > 0 else q


def matches_about(second: pl.DataFrame | None, images: pl.DataFrame) -> pl.DataFrame | None:
    """Take what a second instrument says of a model's images; None where it says nothing of any."""
    found = None if second is None else second.join(images.select("image_id"), on="image_id", how="semi")
    return None if found is None or found.is_empty() else found


def ends_over(sizes: Sequence[int], parts: Sequence[tuple[Interval, Mapping[str, float]]]) -> dict[str, float]:
    """Average what values would be under suppositions; a concept of which people could tell all has its value."""
    names = [name for name in SUPPOSED if any(name in ends for _, ends in parts)]
    return {
        name: sum(size * ends.get(name, answer.value) for size, (answer, ends) in zip(sizes, parts, strict=True))
        / sum(sizes)
        for name in names
    }


def rows_of(
    images: pl.DataFrame,
    concept: str | None,
    answer: Interval,
    weights: Weights,
    study: Study,
    beside: Mapping[str, Any],
) -> Iterator[Row]:
    """Write the corrected diversity, and for each scorer its product with the quality, where that is known.

    `n` counts the images that a score speaks about, `params.audited` those that people looked at.
    """
    batches, options = "drawing" in beside, study.options
    q = options.q if batches else order_of(weights, options.q)
    params: dict[str, object] = {
        "kernel": kernel_name(weights),
        "weights": list(weights),
        "q": "inf" if math.isinf(q) else q,
        "size": options.size,
        "labels": "corrected",
        "form": "average pairs" if weights[2] > 0 and not batches else "mean of batches",
        "method": "audit",
        "audited": answer.n,
        "confidence": options.confidence,
        **beside,
    }
    write = partial(statistic_row, model=images["model"][0], benchmark=options.benchmark, concept=concept)
    answer = replace(answer, n=images.height)
    yield write("vs", answer=answer, params=params)
    for scorer, values in study.scorers.items():
        rated = images.join(values, on="image_id", how="inner")["value"]
        if rated.len() < FEWEST_RATED:
            continue
        about = {name: value for name, value in params.items() if name not in SUPPOSED}
        missing = {"images_left_out": images.height - rated.len()} if rated.len() < images.height else {}
        if rated.len() < LEAST_RATED * images.height:
            about["marked"] = sorted([*beside.get("marked", ()), FEW_RATED])
        product = times_quality(answer, rated, options.confidence)
        yield write("qvs", answer=product, params={**about, **missing, "scorer": scorer})


def times_quality(diversity: Interval, quality: pl.Series, confidence: float) -> Interval:
    """Multiply diversity and mean quality; their relative half widths add in squares."""
    from scipy.special import stdtrit

    values, mean = quality.to_numpy(), float(quality.to_numpy().mean())
    margin = float(stdtrit(len(values) - 1, (1 + confidence) / 2) * values.std(ddof=1)) / math.sqrt(len(values))
    below = math.hypot(mean * (diversity.value - diversity.low), diversity.value * margin)
    above = math.hypot(mean * (diversity.high - diversity.value), diversity.value * margin)
    return replace(diversity, value=(value := mean * diversity.value), low=value - below, high=value + above)
