"""The scores of CUBE: quality, diversity by mapping, in truth and corrected, their product, and bounds of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, roles_of
from culturekit.core.layouts import prompts_table
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, IMAGES, MATCHES, PROMPTS, QUALITY
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Typed
from culturekit.core.tables import read_table
from culturekit.core.work import Outcome, Work
from culturekit.metrics.corrected.audit_gates import drawing_of
from culturekit.metrics.diversity.kernel_diversity import Weights
from culturekit.metrics.diversity.label_diversity import bounds_of_codes
from culturekit.scores.corrected import (
    NO_CORRECTION,
    Correction,
    QvsOptions,
    collection_answers,
    kernel_params,
    score_corrected,
)
from culturekit.scores.family import Family, described, scored_in, write_scored
from culturekit.scores.image_collections import (
    Answer,
    ImageCollection,
    answer_rows,
    checked,
    image_collections,
    images_of_no_country,
    nearest_of,
    over_repeats,
    quality_by_scorer,
)
from culturekit.scores.inputs import tables_of_matches
from culturekit.scores.provenance import noted, traits_by_model
from culturekit.scores.score_rows import Scored, scored

# From images and matches to how far mapped diversity can be off for images that were refused, or not told.


@dataclass(frozen=True, slots=True)
class AskedImages:
    """All images that were asked for, as rows of matches, and which of them nobody can tell."""

    rows: pl.DataFrame
    unknown: frozenset[str]


def score_bounds(matches: pl.DataFrame, images: pl.DataFrame, *, options: QvsOptions) -> Scored:
    """Score the worst and the best case of mapped diversity, where a model has unknown images for a concept.

    An image that was asked for and not made, that no artifact was found for, or of which the mapping abstained, is
    unknown; it is not left out. Batches are made of all images that were asked for, in order of their slots. Images
    that name no prompt and repeat have no bounds here.

    Args:
        matches: conforms to MATCHES; only the nearest match of an image counts.
        images: conforms to IMAGES: every image asked for, also those that were refused.
        options: the kernels, the order, the size of a batch, and of what the interval speaks.

    Returns:
        The metrics `vs_worst` and `vs_best`, with the share of unknown images in their params.

    Raises:
        UsageError: a table does not conform, or an option breaks its rule.
    """
    asked = asked_images(matches, images)
    answers = [
        answer
        for collection in image_collections(asked.rows, missing=options.missing, size=options.size, partial="drop")
        if collection.repeats is not None and not asked.unknown.isdisjoint(collection.images)
        for answer in bounded_answers(collection, asked.unknown, options)
    ]
    return scored(*answer_rows(answers, options.benchmark))


def asked_images(matches: pl.DataFrame, images: pl.DataFrame) -> AskedImages:
    """Give every image asked for a row; one that is unknown has no labels."""
    nearest = nearest_of(matches)
    checked(images, IMAGES)
    strangers = nearest.join(images, on="image_id", how="anti")
    if strangers.height:
        raise UsageError(
            f"{strangers.height} matches are of images that the table of images lacks",
            where=f"image {strangers['image_id'][0]!r}",
            hint="Give the images that were mapped.",
        )
    place = ("model", "prompt_id", "concept", "repeat", "slot")
    concepts = pl.col("concept") if "concept" in images.columns else pl.lit(None, pl.String).alias("concept")
    asked = images.select("image_id", "model", "prompt_id", concepts, "repeat", "slot")
    found = nearest.filter(~pl.col("abstained") & pl.col("artifact").is_not_null())
    methods = nearest["method"].unique().sort().to_list() or ["none"]
    rows = asked.join(found.drop(place), on="image_id", how="left", maintain_order="left").with_columns(
        pl.col("method").fill_null(methods[0]),
        pl.col("countries").fill_null([]),
        pl.col("rank").fill_null(1).cast(pl.UInt16),
        pl.col("score", "margin", "country_margin").fill_null(0.0).cast(pl.Float32),
        pl.col("abstained").fill_null(value=False),
    )
    unknown = asked.join(found, on="image_id", how="anti")["image_id"]
    return AskedImages(rows.select(list(MATCHES.columns)), frozenset(unknown.to_list()))


def bounded_answers(images: ImageCollection, unknown: frozenset[str], options: QvsOptions) -> Iterator[Answer]:
    """Bound the diversity of one model and concept."""
    told = ~images.images.is_in(list(unknown)).to_numpy()
    shares = {"unknown": int((~told).sum()), "images": len(told)}
    for q in options.orders:
        for weights in options.kernels:
            bounds = batch_bounds(images, told, weights=weights, q=q)
            params = {**kernel_params(images, weights, q, options), **shares}
            for metric, values in zip(("vs_worst", "vs_best"), bounds.T, strict=True):
                yield bound_answer(images, metric, values, params, options)


def batch_bounds(
    images: ImageCollection, told: NDArray[np.bool_], *, weights: Weights, q: float
) -> NDArray[np.float64]:
    """Bound VS/N of each batch, float64 (n_batches, 2); batches of the same pattern are solved once."""
    rows = images.batches.rows
    bounds = np.empty((len(rows), 2))
    solved: dict[tuple[Any, ...], tuple[float, float]] = {}
    for number, batch in enumerate(rows):
        codes = images.codes[batch[told[batch]]]
        key = pattern(codes)
        if (key, len(batch)) not in solved:
            solved[key, len(batch)] = bounds_of_codes(codes, len(batch) - len(codes), weights=weights, q=q)
        bounds[number] = solved[key, len(batch)]
    return np.asarray(bounds / max(rows.shape[1], 1))


def pattern(codes: NDArray[np.int64]) -> tuple[Any, ...]:
    """Say which labels of a batch are equal, whatever they are."""
    numbers: list[dict[int, int]] = [{} for _ in codes.T]
    return tuple(
        tuple(seen.setdefault(code, len(seen)) for code in column.tolist())
        for seen, column in zip(numbers, codes.T, strict=True)
    )


def bound_answer(
    images: ImageCollection, metric: str, values: NDArray[np.float64], params: dict[str, object], options: QvsOptions
) -> Answer:
    """Average a bound over batches, repeats and prompts."""
    entered = int(images.batches.present.sum())
    return over_repeats(
        images,
        values,
        images.batches.rows[:, 0],
        (metric, params),
        entered,
        target=options.target,
        confidence=options.confidence,
    )


ARTIFACT: Weights = (0.0, 0.0, 1.0)
"""The kernel within a culture: inside one country, artifacts are all that can differ."""

WITH_AUDITS = 30
"""The version of scores with corrected diversity: how diversity bends is put right since 28, nothing drawn
apart from labels since 29, and intervals of kernels with artifacts are as cautious as others since 30."""

ASSUMED = (
    "Corrected diversity takes the mapping to err alike under every prompt. Errors twice as frequent in a third of the "
    "prompts bias it by about .02; that was noticed in 3 to 25 of 100 audits of 150 images, and is noticed less often "
    "in smaller ones. Here a score rests on {}."
)


ONCE = Typed(once=True)


@dataclass(frozen=True, slots=True)
class QvsReads:
    """What images show, and what is known of them.

    `truth` is what simulated models drew. `limits` are matches of pictures that show nothing or everything: floor and
    ceiling, of which only the diversity is scored.
    """

    matches: Annotated[Files, Field(description="Table that `index map` wrote."), ONCE]
    quality: Annotated[Files, Field(description="Quality of the images; without it only VS is scored."), ONCE] = Files()
    audits: Annotated[
        Files, Field(description="What people say that some of the images show; adds corrected diversity."), ONCE
    ] = Files()
    sample: Annotated[
        Files,
        Field(
            description="What `score audit-sample` drew: answers about other images or to another drawing, and parts "
            "without answers, are then refused. Repeatable."
        ),
    ] = Files()
    images: Annotated[
        Files,
        Field(description="All images asked for; those without a match, and abstained ones, then give bounds."),
        ONCE,
    ] = Files()
    truth: Files = Files()
    limits: Files = Files()
    prompts: Annotated[
        Path | None,
        Field(description="Table of the prompts, for --within country."),
        Typed(after="within", needs="within=country"),
    ] = None


def qvs(
    given: QvsReads, correction: Correction = NO_CORRECTION, options: QvsOptions = QvsOptions(), *, name: str = "scores"
) -> Stage:
    """Score cultural diversity: quality, VS and qVS.

    Mapped and, with audits, corrected, over the five kernels.
    """
    idle = {"sample": given.sample, "pool": correction.pool, "design": correction.design != "drawn"}
    if not given.audits and any(idle.values()):
        raise UsageError(
            "nothing is corrected where nobody answered", expected="audits, the answers of people",
            found=f"{', '.join(name for name, value in idle.items() if value)} without audits",
        )  # fmt: skip
    settings, seeds = kept(options), {}
    if given.audits:
        but = ("design",) if correction.design == "drawn" else ()  # scores of even draws are known without it
        settings, seeds = {**settings, **kept(correction, but=but)}, {"correction": correction.seed}
    return Stage(
        name,
        "score-qvs",
        WITH_AUDITS if given.audits else 9,  # limits lie where scores can since 9 and 17
        lambda work: score(work, given, correction, options),
        roles_of(given),
        settings,
        seeds,
        packages=("numpy", "polars", "scipy"),
    )


QVS = Family(
    qvs,
    metrics=described("quality qvs vs vs_best vs_worst"),
    example="--matches matches/matches.parquet --out scores",
)


def score(work: Work, given: QvsReads, correction: Correction, options: QvsOptions) -> Outcome:
    """Score every table of matches together with the quality of its images.

    In truth a culture-free image shows none of the artifacts, and all such images are alike in that.
    """
    quality = given.quality.together(QUALITY) if given.quality else None
    prompts = None if given.prompts is None else read_table(prompts_table(given.prompts, work.scratch), PROMPTS)
    countries = None if prompts is None else countries_of(prompts)
    mapped, truth, limits = (tables_of_matches(files.places) for files in (given.matches, given.truth, given.limits))
    none_alike = replace(options, missing="equal")
    tables = [(table, quality, options) for table in mapped]
    tables += [(table, quality, none_alike) for table in truth]
    tables += [(table, None, options) for table in limits]
    work.progress.begin(len(tables), "tables of matches")
    several = len({concept for table, *_ in tables for concept in table["concept"].unique()}) > 1
    found, left_out = [], Counter(without_quality(mapped, quality))
    for table, judged, how in tables:
        found.append(score_qvs(table, judged, options=how, countries=countries))
        left_out.update(found[-1].left_out)
        if several and table.height:  # also of a model that has images of one concept only: the others have more
            found.append(score_qvs(over_all_prompts(table), judged, options=how, countries=countries))
        work.progress.advance(1)
    if prompts is not None and options.within == "country":
        left_out.update(images_of_no_country(pl.concat(mapped), prompts))
    images = [read_table(path, IMAGES) for path in given.images.places]
    if images:
        found.append(score_bounds(pl.concat(mapped), pl.concat(map(with_concepts, images)), options=options))
    if given.audits:
        people = answers_of(given.audits), samples_of(given.sample)
        found.append(
            score_corrected(
                pl.concat(mapped), people[0], quality, options=options, correction=correction, sample=people[1]
            )
        )
        left_out.update(found[-1].left_out)
    scores, values = pl.concat([each.scores for each in found]), pl.concat([each.values for each in found])
    answer = Scored(scores, values, dict(sorted(left_out.items())))
    outcome = write_scored(work, scored_in(work, lambda: answer))
    if given.audits:
        caveat = " ".join(
            [ASSUMED.format(images_audited(found[-1].scores)), str(outcome.notes.get("caveat", ""))]
        ).rstrip()
        outcome = replace(outcome, notes={**outcome.notes, "caveat": caveat})
    return noted(outcome, traits_by_model(images))


def images_audited(scores: pl.DataFrame) -> str:
    """Say on how many audited images scores rest."""
    told = scores.select(pl.col("params").str.json_path_match("$.audited").cast(pl.Int64))["params"]
    counts = told.drop_nulls().unique().sort().to_list()
    ends = dict.fromkeys(f"{count:,}" for count in (*counts[:1], *counts[-1:]))
    return f"{' to '.join(ends) or 'no'} audited images"


def without_quality(mapped: Sequence[pl.DataFrame], quality: pl.DataFrame | None) -> Mapping[str, int]:
    """Count the images that a scorer of quality does not know.

    Raises:
        UsageError: it knows none of them: the table is of other images.
    """
    none = pl.DataFrame(schema={"image_id": pl.String})
    images = pl.concat([none, *(table.select("image_id") for table in mapped)]).unique()
    unknown = dict[str, int]()
    for scorer, known in quality_by_scorer(quality).items():
        count = images.join(known, on="image_id", how="anti").height
        if count == images.height > 0:
            raise UsageError(
                "a scorer of quality knows no image of the matches",
                where=scorer,
                expected=f"quality of these images, such as {images['image_id'].min()!r}",
                found=f"only of others, such as {known['image_id'].min()!r}",
            )
        unknown[f"no quality by {scorer}"] = count
    return {reason: count for reason, count in unknown.items() if count}


def answers_of(audits: Files) -> pl.DataFrame:
    """Read the answers of people, with the drawing they belong to and what none means where that is known."""
    known = [*AUDITS.columns, *AUDITS.optional]
    tables = [read_table(path, AUDITS) for path in audits.places]
    return pl.concat([one.select(name for name in one.columns if name in known) for one in tables], how="diagonal")


def samples_of(samples: Files) -> pl.DataFrame | None:
    """Read which images were drawn, each with the name of its drawing."""
    tables = [read_table(path, AUDIT_SAMPLE).select(list(AUDIT_SAMPLE.schema)) for path in samples.places]
    return pl.concat([one.with_columns(drawing=pl.lit(drawing_of(one))) for one in tables]) if tables else None


def countries_of(prompts: pl.DataFrame) -> dict[str, str]:
    """Say which country each prompt names; those that name none are left out."""
    return dict(prompts.select("prompt_id", "country").drop_nulls().iter_rows())


def over_all_prompts(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the prompts of all concepts together: their scores have no concept."""
    return matches.with_columns(concept=pl.lit(None, pl.String))


def with_concepts(images: pl.DataFrame) -> pl.DataFrame:
    """Keep what bounds read of images; a table that does not say their concept has null there."""
    missing = [] if "concept" in images.columns else [pl.lit(None, pl.String).alias("concept")]
    return images.with_columns(missing).select(*IMAGES.columns, "concept")


def score_qvs(
    matches: pl.DataFrame,
    quality: pl.DataFrame | None,
    *,
    options: QvsOptions,
    countries: Mapping[str, str] | None = None,
) -> Scored:
    """Score each model on each concept.

    Within a repeat of a prompt, images ordered by slot make the batches. A score is averaged over the
    batches (quality: the images) of a repeat, then over repeats, then over prompts; the means of the repeats
    are its values. Images that name neither prompt nor repeat are one whole collection: `params` says `whole`,
    and its interval is a jackknife's, which is approximate. Where nothing can be scored, such as when no batch is
    complete, the value is NaN and `n` is 0.

    Args:
        matches: conforms to MATCHES; only the nearest match of an image counts.
        quality: conforms to QUALITY, one set of rows per scorer; without it only diversity is scored.
        options: what to score, and how.
        countries: of the prompts that name one; needed to score within countries.

    Returns:
        Scores that conform to SCORES and values that conform to VALUES, both in the order of their keys; they do
        not depend on the order of the rows given.

    Raises:
        UsageError: a table does not conform, or an option breaks its rule.
    """
    scorers = quality_by_scorer(quality)
    groups = [(list(collections(matches, options, None)), options)]
    if options.within == "country":
        if not countries:
            raise UsageError(
                "no prompt names a country", hint="Give the table of prompts, and images of prompts that name one."
            )
        inside = replace(options, kernels=(ARTIFACT,))
        groups.append((list(collections(matches, options, countries)), inside))
    answers = [
        answer for parts, how in groups for images in parts for answer in collection_answers(images, scorers, how)
    ]
    short = sum(len(images.batches.rows) == 0 for parts, _ in groups for images in parts)
    reason = f"model and concept of which no repeat has {options.size} images"
    return scored(*answer_rows(answers, options.benchmark), left_out={reason: short})


def collections(
    matches: pl.DataFrame, options: QvsOptions, countries: Mapping[str, str] | None
) -> Iterator[ImageCollection]:
    """Part the images into what is scored together."""
    return image_collections(
        matches, missing=options.missing, size=options.size, partial=options.partial, countries=countries
    )
