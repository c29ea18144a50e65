"""The scores of CUBE: quality, diversity by mapping, in truth and corrected, their product, and bounds of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import Typed, kept
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, IMAGES, MATCHES, PROMPTS, QUALITY
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import checked, prompts_table, read_table
from culturekit.metrics.corrected.audit_gates import drawing_of, of_batches
from culturekit.metrics.corrected.looks import planned_looks
from culturekit.metrics.diversity.label_diversity import bounds_of_codes
from culturekit.metrics.diversity.labels import Weights
from culturekit.scores.catalog import describe
from culturekit.scores.diversity import (
    MEAN_QUALITY,
    NO_CORRECTION,
    Answer,
    Correction,
    ImageCollection,
    QvsOptions,
    answer_rows,
    collection_answers,
    image_collections,
    images_of_no_country,
    kernel_params,
    nearest_of,
    over_repeats,
    quality_by_scorer,
)
from culturekit.scores.family import Scored, scored, scored_in, scores, write_scored
from culturekit.scores.inputs import noted, tables_of_matches, traits_by_model

# From images and matches to how far mapped diversity can be off for images that were refused, or not told.


def score_bounds(matches: pl.DataFrame, images: pl.DataFrame, *, options: QvsOptions) -> Scored:
    """Score the worst and the best case of mapped diversity, where a model has unknown images for a concept.

    An image that was asked for and not made, that no artifact was found for, or of which the mapping abstained, is
    unknown; it is not left out. Batches are made of all images that were asked for, in order of their slots. Images
    that name no prompt and repeat have no bounds here.

    Returns:
        The metrics `vs_worst` and `vs_best`, with the share of unknown images in their params.
    """
    rows, unknown = asked_images(matches, images)
    answers = [
        answer
        for collection in image_collections(rows, replace(options, partial="drop"))
        if collection.repeats is not None and not unknown.isdisjoint(collection.images)
        for answer in bounded_answers(collection, unknown, options)
    ]
    return scored(*answer_rows(answers, options.benchmark))


def asked_images(matches: pl.DataFrame, images: pl.DataFrame) -> tuple[pl.DataFrame, frozenset[str]]:
    """Give every image asked for a row of matches, and name those that nobody can tell, which have no labels."""
    nearest = nearest_of(matches)
    checked(images, IMAGES)
    strangers = nearest.join(images, on="image_id", how="anti")
    if strangers.height:
        raise UsageError(
            f"{strangers.height} matches are of images that the table of images lacks",
            where=f"image {strangers['image_id'][0]!r}",
            hint="Give the images that were mapped.",
        )
    columns = ("model", "prompt_id", "concept", "repeat", "slot")
    asked = with_concept(images).select("image_id", *columns)
    found = nearest.filter(~pl.col("abstained") & pl.col("artifact").is_not_null())
    methods = nearest["method"].unique().sort().to_list() or ["none"]
    rows = asked.join(found.drop(columns), on="image_id", how="left", maintain_order="left").with_columns(
        pl.col("method").fill_null(methods[0]),
        pl.col("countries").fill_null([]),
        pl.col("rank").fill_null(1).cast(pl.UInt16),
        pl.col("score", "margin", "country_margin").fill_null(0.0).cast(pl.Float32),
        pl.col("abstained").fill_null(value=False),
    )
    unknown = asked.join(found, on="image_id", how="anti")["image_id"]
    return rows.select(list(MATCHES.columns)), frozenset(unknown.to_list())


def bounded_answers(images: ImageCollection, unknown: frozenset[str], options: QvsOptions) -> Iterator[Answer]:
    """Bound the diversity of one model and concept."""
    known = ~images.images.is_in(list(unknown)).to_numpy()
    shares = {"unknown": int((~known).sum()), "images": len(known)}
    entered = int(images.batches.present.sum())
    for q in options.orders:
        for weights in options.kernels:
            bounds = batch_bounds(images, known, weights=weights, q=q)
            params = {**kernel_params(images, weights, q, options), **shares}
            for metric, values in zip(("vs_worst", "vs_best"), bounds.T, strict=True):
                yield over_repeats(images, values, images.batches.rows[:, 0], (metric, params), entered, options)


def batch_bounds(
    images: ImageCollection, known: NDArray[np.bool_], *, weights: Weights, q: float
) -> NDArray[np.float64]:
    """Bound VS/N of each batch, float64 (n_batches, 2); batches of the same pattern are solved once."""
    rows = images.batches.rows
    bounds = np.empty((len(rows), 2))
    solved: dict[tuple[Any, ...], tuple[float, float]] = {}
    for number, batch in enumerate(rows):
        codes = images.codes[batch[known[batch]]]
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


# The kernel within a culture: inside one country, artifacts are all that can differ
ARTIFACT: Weights = (0.0, 0.0, 1.0)

# The version of scores with corrected diversity: how diversity bends is put right since 28, nothing drawn apart from
# labels since 29, intervals of kernels with artifacts are as cautious as others since 30, and a copied rater counts
# once since 31; pairs of looks are given up earlier since 32, a second instrument that is seldom right is left out
# since 33, and named only where it took part since 34; wrong answers about whole batches are other answers since 35
WITH_AUDITS = 35

ASSUMED = (
    "Corrected diversity takes the mapping to err alike under every prompt. Errors twice as frequent in a third of the "
    "prompts bias it by about .02; that was noticed in 3 to 25 of 100 audits of 150 images, and is noticed less often "
    "in smaller ones. Here a score rests on {}."
)


OF_BATCHES = (
    "Corrected diversity rests on whole batches, every image of which people looked at. Here a score rests on {}."
)

IN_LOOKS = (
    " The answers were looked at on the way (planned after {} images of each model); intervals hold at whichever look "
    "people stopped."
)

ONCE = Typed(once=True)


_MAPPING_PITFALLS = (
    "Labels come from a mapping of images to artifacts, and the mapping errs. A score of mapped labels is called "
    "mapped diversity; only a score adjusted by a human audit is called corrected. A worse encoder can raise the "
    "mapped diversity of a model that always shows the same. params.labels says which labels were used.",
    "VS/N depends on N: compare values of the same size only. The headline is size 8, as in the paper.",
    "A percentile bootstrap over images is broken for VS: resampling makes duplicates, duplicates lower diversity, "
    "and the interval lies below the truth. The intervals here are t intervals over repeats, stratified by prompt, "
    "and speak about these prompts.",
)

VS = describe(
    "vs",
    "Mapped diversity (Vendi score over batch size)",
    "VS/N with N = 8; VS = (sum of L_i^q)^(1/(1-q)), at q = 1 exp(-sum of L_i ln L_i), L_i the eigenvalues of "
    "K/N, k(i,j) = w1*[same continent] + w2*[same country] + w3*[same artifact]",
    paper=MEAN_QUALITY.paper,
    inputs=("matches: image_id, model, concept, prompt_id, repeat, slot, rank, artifact, country, continent, method",),
    pitfalls=(
        *_MAPPING_PITFALLS,
        "A picture that shows no culture has no label; under missing=distinct it is unlike every other and counts "
        "as diverse.",
    ),
    direction="higher",
)

QVS = describe(
    "qvs",
    "Quality-weighted mapped diversity",
    "qVS = mean of s(x) * VS/N, per batch of N = 8, then averaged like vs",
    paper=MEAN_QUALITY.paper,
    inputs=(*VS.inputs, "quality: image_id, scorer, value"),
    pitfalls=(
        *_MAPPING_PITFALLS,
        "It is a product: a dull model with handsome pictures and a diverse model with poor ones can tie. Read it "
        "beside quality and vs.",
        "It inherits the scale of the scorer: with HPS-v2 it cannot come near 1, with PickScore it lies above.",
    ),
    low=float("-inf"),
    high=float("inf"),
    direction="higher",
    licence=MEAN_QUALITY.licence,
)

_BOUNDS_PITFALLS = (
    *_MAPPING_PITFALLS,
    "The bounds know nothing of the images that are missing; they say how far these could move the score, not how far "
    "they do. They hold no sampling error of their own: the interval beside each is that of its mean over prompts.",
    "With several levels of labels the lowest value is the lowest among repeats of what a batch shows; with one level "
    "nothing lower is possible. The highest is exact for every kernel.",
)

VS_BEST = describe(
    "vs_best",
    "Mapped diversity if every unknown image were unlike all others",
    "VS/N of each batch with its unknown images as labels of their own; params: unknown of images",
    paper=MEAN_QUALITY.paper,
    inputs=("matches: as for vs, abstained", "images: image_id, model, prompt_id, concept, repeat, slot, status"),
    pitfalls=_BOUNDS_PITFALLS,
)

VS_WORST = describe(
    "vs_worst",
    "Mapped diversity if every unknown image showed what lowers it most",
    "least VS/N of each batch with its unknown images as repeats of one it shows; params: unknown of images",
    paper=MEAN_QUALITY.paper,
    inputs=VS_BEST.inputs,
    pitfalls=_BOUNDS_PITFALLS,
)

VS_DIFFERENCE = describe(
    "vs_difference",
    "Difference of the corrected diversity of two models",
    "a's corrected vs of countries - b's, at the look that settles the pair, or at the last one there was",
    paper="Lan and DeMets 1983; O'Brien and Fleming 1979",
    inputs=("matches", "audits", "sample, drawn for looks"),
    pitfalls=(
        "params.over is b, params.state says whether the pair is settled; two not told apart need not be equal. "
        "Where only the top was looked for, a model is dropped from the race, which says nothing of a pair.",
        "Its interval holds over all looks together; of all pairs, one is settled falsely at most as often as "
        "params.confidence leaves open.",
    ),
    low=-1.0,
    high=1.0,
    direction="higher",
)


def _settled(audits: Files, sample: Files, second: Files, correction: Correction, **_: object) -> None:
    """Reject options that have no effect without the answers of people."""
    idle = {"sample": sample, "second": second, "pool": correction.pool, "design": correction.design != "drawn"}
    if not audits and any(idle.values()):
        raise UsageError(
            "nothing is corrected where nobody answered", expected="audits, the answers of people",
            found=f"{', '.join(name for name, value in idle.items() if value)} without audits",
        )  # fmt: skip


def _with_audits(stage: Stage, given: Mapping[str, Any]) -> Stage:
    """Keep how scores are corrected, where they are; scores of even draws are known without their design."""
    options = {name: value for name, value in stage.options.items() if name != "correction"}
    if not given["audits"]:
        return replace(stage, options=options, seeds={})
    correction: Correction = given["correction"]
    usual = asdict(NO_CORRECTION)
    known = {
        name: value
        for name, value in kept(correction).items()
        if name not in {"design", "distinct"} or value != usual[name]
    }
    return replace(stage, version=WITH_AUDITS, options={**options, **known}, seeds={"correction": correction.seed})


@scores(
    "qvs", MEAN_QUALITY, QVS, VS, VS_BEST, VS_WORST, VS_DIFFERENCE, version=9, settle=_settled, amend=_with_audits,
    example="--matches matches/matches.parquet --out scores",
)  # fmt: skip
def qvs(
    work: Work,
    matches: Annotated[Files, Field(description="Table that `index map` wrote."), ONCE],
    quality: Annotated[Files, Field(description="Quality of the images; without it only VS is scored."), ONCE] = (
        Files()
    ),
    audits: Annotated[
        Files, Field(description="What people say that some of the images show; adds corrected diversity."), ONCE
    ] = Files(),
    sample: Annotated[
        Files,
        Field(
            description="What `score audit-sample` drew: answers about other images or to another drawing, and parts "
            "without answers, are then refused. Repeatable."
        ),
    ] = Files(),
    images: Annotated[
        Files,
        Field(description="All images asked for; those without a match, and abstained ones, then give bounds."),
        ONCE,
    ] = Files(),
    truth: Files = Files(),
    limits: Files = Files(),
    second: Annotated[
        Files,
        Field(
            description="Matches of the same images by another encoder, or tags: a second instrument, which makes "
            "corrected intervals narrower. Repeatable."
        ),
    ] = Files(),
    prompts: Annotated[
        Path | None,
        Field(description="Table of the prompts, for --within country."),
        Typed(after="within", needs="within=country"),
    ] = None,
    *,
    correction: Correction = NO_CORRECTION,
    options: QvsOptions = QvsOptions(),
) -> Outcome:
    """Score cultural diversity: quality, VS and qVS.

    Mapped and, with audits, corrected, over the five kernels.
    """
    # `truth` is what simulated models drew: there a culture-free image shows none of the artifacts, and all such
    # images are alike in that. `limits` are matches of pictures that show nothing or everything: floor and ceiling,
    # of which only the diversity is scored.
    rated = quality.together(QUALITY) if quality else None
    named = None if prompts is None else read_table(prompts_table(prompts, work.scratch), PROMPTS)
    countries = None if named is None else dict(named.select("prompt_id", "country").drop_nulls().iter_rows())
    mapped, drawn, ends = (tables_of_matches(files.places) for files in (matches, truth, limits))
    none_alike = replace(options, missing="equal")
    tables = [(table, rated, options) for table in mapped]
    tables += [(table, rated, none_alike) for table in drawn]
    tables += [(table, None, options) for table in ends]
    work.progress.begin(len(tables), "tables of matches")
    several = len({concept for table, *_ in tables for concept in table["concept"].unique()}) > 1
    found, left_out = [], Counter(without_quality(mapped, rated))
    for table, judged, how in tables:
        found.append(score_qvs(table, judged, options=how, countries=countries))
        left_out.update(found[-1].left_out)
        if several and table.height:  # also of a model that has images of one concept only: the others have more
            found.append(score_qvs(over_all_prompts(table), judged, options=how, countries=countries))
        work.progress.advance(1)
    if named is not None and options.within == "country":
        left_out.update(images_of_no_country(pl.concat(mapped), named))
    asked = [read_table(path, IMAGES) for path in images.places]
    if asked:
        found.append(score_bounds(pl.concat(mapped), pl.concat(map(with_concept, asked)), options=options))
    if audits:
        from culturekit.scores.corrected import score_corrected

        answers, copies = answers_of(audits, distinct=correction.distinct)
        sampled, other = samples_of(sample), second.together(MATCHES) if second else None
        found.append(
            score_corrected(
                pl.concat(mapped), answers, rated, options=options, correction=correction,
                sample=sampled, second=other,
            )
        )  # fmt: skip
        left_out.update({**copies, **found[-1].left_out})
    scores, values = pl.concat([each.scores for each in found]), pl.concat([each.values for each in found])
    answer = Scored(scores, values, dict(sorted(left_out.items())))
    outcome = write_scored(work, scored_in(work, lambda: answer))
    if audits:
        audited = pl.col("params").str.json_path_match("$.audited").cast(pl.Int64)
        counts = found[-1].scores.select(audited.alias("n"))["n"].drop_nulls().unique().sort().to_list()
        extremes = dict.fromkeys(f"{count:,}" for count in (*counts[:1], *counts[-1:]))
        rests_on = f"{' to '.join(extremes) or 'no'} audited images"
        whole = of_batches(sampled)
        assumed = OF_BATCHES.format(rests_on) if whole else ASSUMED.format(rests_on)
        if other is not None and not whole:
            methods = ", ".join(other["method"].unique().sort())
            assumed += f" A second instrument ({methods}) took part in the correction."
        if (looks := planned_looks(sampled)) is not None:
            assumed += IN_LOOKS.format(", ".join(map(str, looks[0])))
        caveat = f"{assumed} {outcome.notes.get('caveat', '')}".rstrip()
        outcome = replace(outcome, notes={**outcome.notes, "caveat": caveat})
    return noted(outcome, traits_by_model(asked)) if asked else outcome


def without_quality(mapped: Sequence[pl.DataFrame], quality: pl.DataFrame | None) -> Mapping[str, int]:
    """Count the images that a scorer of quality does not know."""
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


def answers_of(audits: Files, *, distinct: bool = False) -> tuple[pl.DataFrame, Mapping[str, int]]:
    """Read the answers of people, with the drawing they belong to and what none means where that is known.

    Those of copies are left out and counted, unless people who answer alike are `distinct`.
    """
    known = [*AUDITS.columns, *AUDITS.optional]
    tables = [read_table(path, AUDITS) for path in audits.places]
    whole = pl.concat([one.select(name for name in one.columns if name in known) for one in tables], how="diagonal")
    left_out: Counter[str] = Counter()
    if distinct:
        return whole, left_out
    from culturekit.scores.answers import without_copies

    none_of = pl.when(pl.col("none_of_these")).then(pl.lit("none"))
    shown = whole.with_columns(shown=pl.coalesce("artifact_id", "country", "continent", none_of))
    return without_copies(shown, "annotator", ["image_id"], ["shown"], left_out).drop("shown"), left_out


def samples_of(samples: Files) -> pl.DataFrame | None:
    """Read which images were drawn, each with the name of its drawing."""
    known = [*AUDIT_SAMPLE.columns, *AUDIT_SAMPLE.optional]
    tables = [read_table(path, AUDIT_SAMPLE) for path in samples.places]
    tables_read = [one.select(name for name in one.columns if name in known) for one in tables]
    named = [one.with_columns(drawing=pl.lit(drawing_of(one))) for one in tables_read]
    return pl.concat(named, how="diagonal") if named else None


def over_all_prompts(matches: pl.DataFrame) -> pl.DataFrame:
    """Take the prompts of all concepts together: their scores have no concept."""
    return matches.with_columns(concept=pl.lit(None, pl.String))


def with_concept(images: pl.DataFrame) -> pl.DataFrame:
    """Keep the declared columns of images and their concept; a table that does not say it has null there."""
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

    Within a repeat of a prompt, images ordered by slot make the batches. A score is averaged over the batches (quality:
    the images) of a repeat, then over repeats, then over prompts; the means of the repeats are its values. Images that
    name neither prompt nor repeat are one whole collection: `params` says `whole`, and its interval is a jackknife's,
    which is approximate. Where nothing can be scored, such as when no batch is complete, the value is NaN and `n` is 0.
    There is a score for each scorer of quality; without any, only diversity is scored. `countries` are those of the
    prompts that name one.

    Returns:
        Scores that conform to SCORES and values that conform to VALUES, both in the order of their keys; they do
        not depend on the order of the rows given.
    """
    scorers = quality_by_scorer(quality)
    groups = [(list(image_collections(matches, options)), options)]
    if options.within == "country":
        if not countries:
            raise UsageError(
                "no prompt names a country", hint="Give the table of prompts, and images of prompts that name one."
            )
        groups.append((list(image_collections(matches, options, countries)), replace(options, kernels=(ARTIFACT,))))
    answers = [
        answer for parts, how in groups for images in parts for answer in collection_answers(images, scorers, how)
    ]
    short = sum(len(images.batches.rows) == 0 for parts, _ in groups for images in parts)
    reason = f"model and concept of which no repeat has {options.size} images"
    return scored(*answer_rows(answers, options.benchmark), left_out={reason: short})
