"""Scores of dialects' pictures, of neutral ones beside each group's, and of which of two captions fits a picture."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import CONFIDENCE, PERMUTATIONS
from culturekit.core.declared import Seed, Typed, check_options, staged
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import CAPTIONS, IMAGES, QUALITY
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import checked, table_outcome
from culturekit.metrics.linguistic.human_tables import dialect_gap
from culturekit.metrics.linguistic.neutral_groups import LOGIT_SCALE, neutral_similarity, neutral_spread, question_pair
from culturekit.metrics.statistics.intervals import mean_interval, simple_mean
from culturekit.recipes.linguistic.prompts import BENCHMARK
from culturekit.scores.answers import answers_in, careful_answers, of_criterion, whose
from culturekit.scores.catalog import UNBOUNDED, describe
from culturekit.scores.family import (
    Confidence,
    Pair,
    Row,
    Scope,
    Scored,
    mean_rows,
    own_generator,
    parts_by_group,
    plain_row,
    prompted_images,
    scored,
    scores,
    statistic_row,
    value_rows,
)
from culturekit.scores.inputs import AnyImages, GroupedPrompts, NamedVectors, asked, one_identity

Vectors = NDArray[np.floating]

# What is said of several metrics.
PAPER = "Linguistic and Cultural Biases in Text-to-Image Generative Models (Cheung, Couture and Zhou 2023)"
CLIP = "that of the image-text encoder (CLIP: MIT)"
IMAGES_READ = "images: image_id, path, prompt_id, model"
PROMPTS_READ = "prompts: prompt_id, group, and the columns that pair prompts"
ANNOTATIONS_READ = "annotations: item_id, annotator, annotator_region, scheme, criterion, value, choice"
BY_PROMPT = (
    "The interval is t over prompts where there are at least 20, and speaks about other prompts; with fewer it holds "
    "the prompts fixed and is t over the images of each (params.target)."
)

CORRECT, YES, NO = "correct", "yes", "no"  # what people say of a picture
UNPAIRED = "gaps of which nobody looked at both of a pair of prompts"  # why a model has no gap by a measure

_OF_THE_SCORER = (
    "The scale is the scorer's own: CLIPScore at scale 1, as in the paper's table; its equation has 100.",
    "CLIP has read far more standard English: part of the gap is the judge's own.",
)

DIALECT_SCORE = describe(
    "dialect_score", "Score of a dialect's pictures",
    "mean over prompts of the dialect (group) of the mean of its pictures' params.of",
    paper=f"{PAPER}, section 3.1.2 and table 1",
    inputs=("quality: image_id, scorer, value", IMAGES_READ, PROMPTS_READ, ANNOTATIONS_READ),
    pitfalls=(*_OF_THE_SCORER, BY_PROMPT), low=-UNBOUNDED, high=UNBOUNDED, unit="score", licence=CLIP,
)  # fmt: skip
DIALECT_GAP = describe(
    "dialect_gap", "Gap between dialects",
    "mean over pairs of prompts of the standard dialect's score minus the other's (params.of: a scorer, or `correct`, "
    "the share of pictures that people call correct)",
    paper=f"{PAPER}, section 3.1.2 and table 1", inputs=DIALECT_SCORE.inputs,
    pitfalls=(
        "Only pairs that both dialects have enter; the interval is t over pairs, p (params.p) that of sign flips.",
        *_OF_THE_SCORER,
    ),
    low=-UNBOUNDED, high=UNBOUNDED, unit="difference", licence=CLIP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DialectGapOptions:
    """What to compare, and how; the seed is that of the permutations."""

    standard: Annotated[str, Field(description="Group of the prompts in the standard dialect.")] = "SAE"
    other: Annotated[str, Field(description="Group of their counterparts.")] = "AAE"
    pair: Pair = ("artifact_id", "template_id")
    scale: Annotated[
        float, Field(gt=0, description="What scores are divided by: 100 for CLIPScores at that scale.")
    ] = 1.0
    confidence: Confidence = CONFIDENCE
    resamples: Annotated[int, Field(ge=99, description="Permutations of each test.")] = PERMUTATIONS
    seed: Seed = 0
    benchmark: str = BENCHMARK


@scores(
    "dialects", DIALECT_GAP, DIALECT_SCORE, version=4, seeds={"permutations": "seed"},
    example="--images images/images.parquet --prompts prompts/prompts.parquet --quality quality/quality.parquet "
    "--out scores",
)  # fmt: skip
def dialects(
    work: Work,
    images: AnyImages,
    prompts: GroupedPrompts,
    quality: Annotated[
        Numbered, Field(description="Scores of the images, such as CLIPScores; repeat it for more than one.")
    ] = Numbered(),
    annotations: Annotated[
        Path | None, Field(description="Whether people call images correct (criterion correct, yes or no).")
    ] = None,
    *,
    options: DialectGapOptions,
) -> Scored:
    """Score the gap between pictures of two dialects.

    Paired by prompt. --pair: [artifact_id, template_id].
    """
    return score_dialects(
        images.together(IMAGES), asked(prompts, work.scratch), quality.together(QUALITY) if quality else None,
        None if annotations is None else answers_in(work, annotations, CORRECT), options=options,
    )  # fmt: skip


def score_dialects(
    images: pl.DataFrame, prompts: pl.DataFrame, quality: pl.DataFrame | None = None,
    annotations: pl.DataFrame | None = None, *, options: DialectGapOptions,
) -> Scored:  # fmt: skip
    """Compare the pictures of two dialects, groups of the prompts: by every scorer, and by every pool of people."""
    if quality is None and annotations is None:
        raise UsageError("there is nothing to compare dialects by", expected="quality, annotations, or both")
    check_options(options)
    if options.standard == options.other:
        raise UsageError("a dialect has no gap to itself", found=f"{options.standard!r} as standard and as other")
    left_out: Counter[str] = Counter()
    known = prompted_images(images, prompts, left_out, pair=options.pair)
    groups = prompts["group"].drop_nulls().unique().sort().to_list()
    missing = [dialect for dialect in (options.standard, options.other) if dialect not in groups]
    if missing:
        raise UsageError(
            f"no prompt is in {missing[0]!r}", expected=" or ".join(map(repr, groups)) or "prompts with groups",
            hint="Name the groups of the prompts with --standard and --other.",
        )  # fmt: skip
    spoken = known.filter(pl.col("group").is_in([options.standard, options.other]))
    left_out["images of other groups"] += known.height - spoken.height
    rows, values = [], []
    for name, pool, table in _measures(quality, annotations, options, left_out):
        judged = spoken.join(table, on="image_id", how="inner").sort("model", "image_id")
        unknown = table.join(images, on="image_id", how="anti")
        left_out[f"scores that are of no known image, by {name}"] += unknown.height
        if pool is None:
            left_out[f"images of both dialects without a score, by {name}"] += spoken.height - judged.height
        for model in judged.partition_by("model", maintain_order=True):
            for row, below in _dialect_rows(model, name, pool, options, left_out):
                rows.append(row)
                values += below
    if not rows:
        raise NothingScored(
            f"no picture of a prompt in {options.standard!r} or {options.other!r} has a score",
            found=f"{known.height} pictures, {spoken.height} of these groups",
        ).counting(left_out)
    if left_out[UNPAIRED] and not any(row["metric"] == "dialect_gap" for row in rows):
        raise NothingScored(
            "no prompt of one dialect has pictures of its twin in the other", found=f"{len(rows)} scores"
        ).counting(left_out)
    return scored(rows, values, left_out=left_out)


def _measures(
    quality: pl.DataFrame | None, annotations: pl.DataFrame | None, options: DialectGapOptions, left_out: Counter[str]
) -> Iterator[tuple[str, str | None, pl.DataFrame]]:
    """Give what pictures are compared by: its name, the pool it is of, and image_id and value."""
    if quality is not None:
        for part in checked(quality, QUALITY).sort("scorer").partition_by("scorer", maintain_order=True):
            finite = part.filter(pl.col("value").is_finite())
            left_out["scores that are no number"] += part.height - finite.height
            yield part["scorer"][0], None, finite.select("image_id", value=pl.col("value") / options.scale)
    if annotations is not None:
        verdicts = of_criterion(careful_answers(annotations, left_out), CORRECT)
        answer = pl.col("choice").str.strip_chars().str.to_lowercase()
        clear = verdicts.filter(answer.is_in([YES, NO])).with_columns(value=(answer == YES).cast(pl.Float64))
        left_out["verdicts that are neither yes nor no"] += verdicts.height - clear.height
        for pool in clear.sort("annotator_region").partition_by("annotator_region", maintain_order=True):
            means = pool.group_by("item_id").agg(pl.col("value").mean())
            yield CORRECT, pool["annotator_region"][0], means.rename({"item_id": "image_id"})


def _dialect_rows(
    judged: pl.DataFrame, name: str, pool: str | None, options: DialectGapOptions, left_out: Counter[str]
) -> Iterator[tuple[Row, list[pl.DataFrame]]]:
    """Make the scores of one model by one measure: each dialect's, and their gap."""
    params: dict[str, object] = {"of": name}
    if pool is not None:
        params |= whose(pool)
    elif options.scale != 1:
        params["scale"] = options.scale
    model, sides = judged["model"][0], {}
    for dialect in (options.standard, options.other):
        side = judged.filter(group=dialect)
        if side.height:
            sides[dialect] = side
            # A value stands under its pair, so that the other dialect's can be found.
            items = side.select(prompt_id="pair", item="image_id", value="value")
            of_dialect = Scope("dialect_score", model, options.benchmark, dialect)
            yield mean_rows(items, of_dialect, params, confidence=options.confidence)
    if len(sides) < 2:
        return
    if not set.intersection(*(set(side["pair"]) for side in sides.values())):
        left_out[UNPAIRED] += 1
        return
    found = dialect_gap(
        {dialect: side["value"].to_numpy() for dialect, side in sides.items()},
        {dialect: side["pair"].to_list() for dialect, side in sides.items()},
        standard=options.standard, other=options.other, confidence=options.confidence, resamples=options.resamples,
        rng=own_generator(options.seed, "dialect_gap", model, *params.values()),
    )  # fmt: skip
    about = {"a": options.standard, "b": options.other, "pairs": found.n, "left_out": found.left_out}
    yield statistic_row(
        "dialect_gap", model=model, benchmark=options.benchmark, answer=found.interval,
        params={**params, **about, "p": None if found.p != found.p else found.p},
        group=f"{options.standard} - {options.other}",
    ), []  # fmt: skip


NEUTRAL_SIMILARITY = describe(
    "neutral_similarity", "Likeness of neutral pictures and a group's",
    "mean over prompts of the mean cosine of all pairs of a neutral picture and a picture of the same prompt with the "
    "group named: a row of the heat map",
    paper=f"{PAPER}, section 3.2.3 and figure 4", inputs=("folder of vectors of images", IMAGES_READ, PROMPTS_READ),
    pitfalls=(
        "Cosines of an encoder have a narrow range of their own; read groups against each other.",
        "The interval is t over prompts.",
    ),
    low=-1.0, unit="cosine", licence=CLIP,
)  # fmt: skip
NEUTRAL_STD = describe(
    "neutral_std", "Unevenness of neutral pictures over groups (STD)",
    "mean over prompts of the population standard deviation over groups of neutral similarities",
    paper=f"{PAPER}, table 3 and figure 8", inputs=NEUTRAL_SIMILARITY.inputs,
    pitfalls=(
        "neutral_std_of_means, the spread of the heat map itself, averages out what differs between prompts.",
        "The interval is t over prompts.",
    ),
    direction="lower", unit="standard deviation", licence=CLIP,
)  # fmt: skip
NEUTRAL_MAD = describe(
    "neutral_mad", "Unevenness of neutral pictures over groups (MAD)",
    "mean over prompts of the mean absolute deviation over groups of neutral similarities", paper=f"{PAPER}, table 3",
    inputs=NEUTRAL_SIMILARITY.inputs,
    pitfalls=(
        "The paper's MAD column cannot come from the same six values as its STD: MAD is at least 0.577 of STD over "
        "six values, and the table has 0.27 to 0.41.",
        *NEUTRAL_STD.pitfalls,
    ),
    direction="lower", unit="mean absolute deviation", licence=CLIP,
)  # fmt: skip


_OF_THE_MAP = (
    "It is never above the mean of the prompts' own spreads, because what differs between prompts averages out.",
    "params.prompts_ranked lists prompts from the lowest STD to the highest.",
)
NEUTRAL_STD_OF_MEANS, NEUTRAL_MAD_OF_MEANS = (
    replace(metric, name=f"{metric.name}_of_means", title=f"Unevenness of the heat map ({kind})",
            formula=f"{spread} over groups of the mean neutral similarity", pitfalls=_OF_THE_MAP)
    for metric, kind, spread in ((NEUTRAL_STD, "STD", "population standard deviation"),
                                 (NEUTRAL_MAD, "MAD", "mean absolute deviation"))
)  # fmt: skip
QUESTION_SHARE = describe(
    "question_share", "Share of the first of two captions",
    "mean over prompts, of their pictures' mean, of the softmax share of params.first against params.second; cosines "
    "times params.logit_scale",
    paper=f"{PAPER}, section 3.4.2 and table 5",
    inputs=("folders of vectors of images and of captions", IMAGES_READ, PROMPTS_READ),
    pitfalls=(
        "Two wordings of one question give different answers: the paper's own pair (environment, setting) differs by "
        "up to 0.33. Report both.",
        "question_sd, which the paper prints beside it, is how far pictures lie apart, and no interval.",
        BY_PROMPT,
    ),
    licence=CLIP,
)  # fmt: skip
QUESTION_SD = describe(
    "question_sd", "Deviation of the share of the first of two captions",
    "sample standard deviation (ddof = 1) over pictures of question_share", paper=f"{PAPER}, table 5",
    inputs=QUESTION_SHARE.inputs, pitfalls=("It says how far pictures lie apart, not how certain their mean is.",),
    unit="standard deviation", licence=CLIP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NeutralOptions:
    """What to compare, and how; the encoder is what made the vectors, and `labels` whose view it is, as in params."""

    pair: Pair = ("artifact_id",)
    encoder: str = ""
    labels: str = ""
    confidence: Confidence = CONFIDENCE
    benchmark: str = BENCHMARK


def _with_encoder(vectors: NamedVectors, options: Any, **_: object) -> dict[str, Any]:  # noqa: ANN401 - of two kinds
    return {"options": replace(options, encoder=options.encoder or vectors.encoder)}


@scores(
    "neutral", NEUTRAL_MAD, NEUTRAL_MAD_OF_MEANS, NEUTRAL_SIMILARITY, NEUTRAL_STD, NEUTRAL_STD_OF_MEANS,
    example="--images images/images.parquet --prompts prompts/prompts.parquet --vectors vectors --out scores",
    settle=_with_encoder,
)  # fmt: skip
def neutral(
    work: Work, images: AnyImages, prompts: GroupedPrompts,
    vectors: Annotated[NamedVectors, Field(description="Folder of vectors of the images.")], *, options: NeutralOptions,
) -> Scored:  # fmt: skip
    """Score how pictures of neutral prompts resemble each group's.

    --pair: [artifact_id].
    """
    return score_neutral(images.together(IMAGES), asked(prompts, work.scratch), *vectors.vectors(), options=options)


def score_neutral(
    images: pl.DataFrame, prompts: pl.DataFrame, vectors: Vectors, ids: Sequence[str], *, options: NeutralOptions
) -> Scored:
    """Score how much pictures of prompts without a group resemble those of each group, by model.

    `vectors`, float (n, dim), belong to the images `ids`.
    """
    left_out: Counter[str] = Counter()
    known = _with_vectors(prompted_images(images, prompts, left_out, pair=options.pair), ids, left_out)
    rows, values = [], []
    for model in known.sort("model", "image_id").partition_by("model", maintain_order=True):
        beside = model.filter(pl.col("group").is_null())["pair"]  # groups of other prompts are another comparison's
        groups = sorted(model.filter(pl.col("pair").is_in(beside.implode()))["group"].drop_nulls().unique())
        table = _similarity_table(model, groups, vectors)
        left_out["prompts without pictures of every group"] += model["pair"].n_unique() - len(table)
        if table:
            found, below = _model_rows(model["model"][0], table, groups, options)
            rows += found
            values += below
    if not rows:
        raise NothingScored(
            "no prompt has pictures without a group and of every group",
            found=f"{known.height} pictures of {known['pair'].n_unique()} prompts, "
            f"groups {', '.join(known['group'].drop_nulls().unique().sort()) or 'none'}",
            hint="Name with --pair the columns of prompts that a neutral prompt shares with those of the groups.",
        ).counting(left_out)
    return scored(rows, values, left_out=left_out)


def _with_vectors(known: pl.DataFrame, ids: Sequence[str], left_out: Counter[str]) -> pl.DataFrame:
    """Add the row of each image's vector; images without one are left out and counted."""
    if len(set(ids)) < len(ids):
        raise UsageError("an id stands twice among the vectors", found=repr(Counter(ids).most_common(1)[0][0]))
    schema = {"image_id": pl.String, "row": pl.Int64}
    rows = pl.DataFrame({"image_id": list(ids), "row": range(len(ids))}, schema=schema)
    found = known.join(rows, on="image_id", how="inner")
    left_out["images without a vector"] += known.height - found.height
    return found


def _similarity_table(model: pl.DataFrame, groups: Sequence[str], vectors: Vectors) -> dict[str, list[float]]:
    """Compare the neutral pictures of each prompt with those of every group, (n_groups,) per pair."""
    table = {}
    for (pair,), pictures in sorted(model.partition_by("pair", as_dict=True).items()):
        by_group = pictures.partition_by("group", as_dict=True)
        if groups and {(None,), *((group,) for group in groups)} <= by_group.keys():
            neutral, *others = (np.asarray(vectors[by_group[(group,)]["row"].to_numpy()]) for group in (None, *groups))
            table[str(pair)] = [neutral_similarity(neutral, other) for other in others]
    return table


def _model_rows(
    model: str, table: dict[str, list[float]], groups: Sequence[str], options: NeutralOptions
) -> tuple[list[Row], list[pl.DataFrame]]:
    """Score one model: the heat map, the spread over groups, and the spread of the heat map."""
    params: dict[str, object] = {"encoder": options.encoder} if options.encoder else {}
    params |= {"groups": len(groups), **({"labels": options.labels} if options.labels else {})}
    spread = neutral_spread(list(table.values()), list(table))
    per_prompt = list(spread.per_prompt.values())
    columns: list[tuple[str, str | None, NDArray[np.float64]]] = [
        ("neutral_similarity", *column) for column in zip(groups, np.array([*table.values()]).T, strict=True)
    ]
    columns += [(f"neutral_{kind}", None, np.array([getattr(each, kind) for each in per_prompt]))
                for kind in ("std", "mad")]  # fmt: skip
    rows, values = list[Row](), list[pl.DataFrame]()
    for metric, group, numbers in columns:
        about = asdict(Scope(metric, model, options.benchmark, group))
        mean = simple_mean(np.sort(numbers))  # of one number per prompt: the interval speaks about other prompts
        answer = mean_interval(mean, n=len(numbers), target="population", confidence=options.confidence)
        rows.append(statistic_row(**about, answer=answer, params=params))
        below = pl.DataFrame({"item": list(table), "prompt_id": list(table), "value": numbers})
        values.append(value_rows(about, params, below))
    ranked = {**params, "prompts_ranked": list(spread.ranking)}
    for metric, value in (("neutral_std_of_means", spread.of_means.std), ("neutral_mad_of_means", spread.of_means.mad)):
        rows.append(plain_row(Scope(metric, model, options.benchmark), value, len(table), ranked))
    return rows, values


@staged("question-captions", "question-captions")
def question_captions_stage(work: Work, *, pairs: Sequence[tuple[str, str]]) -> Outcome:
    """Write the captions that pictures are asked about, each its own id."""
    texts = sorted({caption for pair in pairs for caption in pair})
    rows = [(text, text, "question", "", "en", 0, None) for text in texts]
    return table_outcome(work, CAPTIONS, pl.DataFrame(rows, schema=CAPTIONS.schema, orient="row"))


# Two wordings of one question; the paper names them and does not print its captions.
CAPTION_PAIRS = (("a traditional environment", "a modern environment"), ("a traditional setting", "a modern setting"))


def _caption_pair(text: str) -> tuple[str, str]:
    first, mark, second = (part.strip() for part in text.partition(" / "))
    if not (first and mark and second):
        raise UsageError("--question is two captions with a slash between", expected="FIRST / SECOND", found=repr(text))
    return first, second


@dataclass(frozen=True, slots=True)
class QuestionPairOptions:
    """What to ask, and how; the encoder is what made the vectors, as it stands in params."""

    pairs: Annotated[
        tuple[tuple[str, str], ...],
        Field(
            description="FIRST / SECOND: two captions; repeatable. [traditional and modern, an environment and a "
            "setting]"
        ),
        Typed("question", _caption_pair),
    ] = CAPTION_PAIRS
    logit_scale: Annotated[float, Field(description="What cosines are multiplied by before the softmax.")] = LOGIT_SCALE
    encoder: str = ""
    confidence: Confidence = CONFIDENCE
    benchmark: str = BENCHMARK

    def __post_init__(self) -> None:
        """Refuse a caption that is held against itself, and a question asked twice."""
        if any(first == second for first, second in self.pairs) or len(set(self.pairs)) < len(self.pairs):
            raise argument_error("pairs", "two captions that differ, each pair once", self.pairs)


@scores(
    "question-pairs", QUESTION_SD, QUESTION_SHARE, settle=_with_encoder,
    example="--images images/images.parquet --prompts prompts/prompts.parquet --vectors vectors --captions captions "
    "--out scores",
)  # fmt: skip
def question_pairs(
    work: Work, images: AnyImages, prompts: GroupedPrompts,
    vectors: Annotated[NamedVectors, Field(description="Folder of vectors of the images.")],
    captions: Annotated[NamedVectors, Field(description="Folder of vectors of the captions, ids the captions.")], *,
    options: QuestionPairOptions,
) -> Scored:  # fmt: skip
    """Score which of two captions fits pictures better, per group.

    Traditional or modern, for instance.
    """
    one_identity(vectors.folder, captions.folder)
    words, texts = captions.vectors()
    return score_question_pairs(
        images.together(IMAGES), asked(prompts, work.scratch), vectors.vectors(), dict(zip(texts, words, strict=True)),
        options=options,
    )  # fmt: skip


def score_question_pairs(
    images: pl.DataFrame, prompts: pl.DataFrame, vectors: tuple[Vectors, Sequence[str]],
    captions: Mapping[str, Vectors], *, options: QuestionPairOptions,
) -> Scored:  # fmt: skip
    """Score the share of the first caption of each pair, per model and group of prompts, and over all.

    `vectors` are float (n, dim) and the images they belong to; `captions` have theirs in the same space.
    """
    missing = [caption for pair in options.pairs for caption in pair if caption not in captions]
    if missing:
        raise UsageError("a caption has no vector", found=repr(missing[0]), expected=", ".join(map(repr, captions)))
    left_out: Counter[str] = Counter()
    known = _with_vectors(prompted_images(images, prompts, left_out), vectors[1], left_out)
    if not known.height:
        raise NothingScored("no picture has a vector", found=f"{len(vectors[1])} vectors").counting(left_out)
    rows, values = [], []
    pictures = np.asarray(vectors[0][known["row"].to_numpy()])
    for first, second in options.pairs:
        shares = question_pair(pictures, captions[first], captions[second], logit_scale=options.logit_scale)[:, 0]
        answered = known.with_columns(value=pl.Series(shares)).rename({"image_id": "item"})
        params: dict[str, object] = {"first": first, "second": second, "logit_scale": options.logit_scale}
        if options.encoder:
            params["encoder"] = options.encoder
        for part in parts_by_group(answered, item="item"):
            of_group = Scope("question_share", part["model"][0], options.benchmark, part["group"][0])
            row, below = mean_rows(part, of_group, params, confidence=options.confidence)
            rows.append(row)
            values += below
            if part.height > 1:
                deviation = float(np.sort(part["value"].to_numpy()).std(ddof=1))
                rows.append(plain_row(replace(of_group, metric="question_sd"), deviation, part.height, params))
    return scored(rows, values, left_out=left_out)
