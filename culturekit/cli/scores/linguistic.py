"""`culturekit score tones`, `dialects`, `neutral`, `question-pairs` and `ratings`: linguistic and cultural biases."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Seed, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["dialects", "neutral", "question_pairs", "ratings", "tones"]

Detector: TypeAlias = Literal["ita", "dall-eval"]

Images = Annotated[list[Path], typer.Option(help="Table of images; repeat it for more than one.")]
Prompts = Annotated[Path, typer.Option(help="Table of their prompts, with the group of each.")]
Vectors = Annotated[Path, typer.Option(help="Folder of vectors of the images.")]
Pair = Annotated[
    list[str] | None,
    typer.Option(help="Column of prompts that a prompt shares with its counterparts; repeat it for more than one."),
]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")]


def tones(
    images: Images,
    out: Out,
    prompts: Annotated[Path | None, typer.Option(help="Their prompts: tones are scored per group, too.")] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="Tones that people named (criterion monk_tone), scored beside.")
    ] = None,
    detector: Annotated[
        Detector, typer.Option(help="Rule for skin: ita sees all tones; dall-eval, as published, cannot see dark skin.")
    ] = "ita",
    confidence: Confidence = 0.95,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score skin tones on the Monk scale: histogram, STD, MAD and mean, per model and group."""
    from culturekit.metrics.scoring.score_tones import ToneOptions
    from culturekit.pipeline.scores.linguistic_stages import LinguisticFiles, tone_stage

    files = LinguisticFiles(images=images, prompts=prompts, annotations=annotations)
    options = ToneOptions(detector=detector, confidence=confidence)
    run_one(
        tone_stage(files, options, detector), out, also=also, wait=wait, as_json=as_json, workers=workers, engine=engine
    )


def dialects(
    images: Images,
    prompts: Prompts,
    out: Out,
    quality: Annotated[
        list[Path] | None, typer.Option(help="Scores of the images, such as CLIPScores; repeat it for more than one.")
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="Whether people call images correct (criterion correct, yes or no).")
    ] = None,
    standard: Annotated[str, typer.Option(help="Group of the prompts in the standard dialect.")] = "SAE",
    other: Annotated[str, typer.Option(help="Group of their counterparts.")] = "AAE",
    pair: Pair = None,
    scale: Annotated[float, typer.Option(help="What scores are divided by: 100 for CLIPScores at that scale.")] = 1.0,
    confidence: Confidence = 0.95,
    resamples: Annotated[int, typer.Option(min=99, help="Permutations of each test.")] = 9999,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score the gap between pictures of two dialects, paired by prompt. --pair: [artifact_id, template_id]."""
    from culturekit.metrics.scoring.score_dialects import DialectOptions
    from culturekit.pipeline.scores.linguistic_stages import LinguisticFiles, dialect_stage

    files = LinguisticFiles(images=images, prompts=prompts, quality=quality or (), annotations=annotations)
    options = DialectOptions(
        standard=standard,
        other=other,
        pair=tuple(pair or ("artifact_id", "template_id")),
        scale=scale,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    run_one(dialect_stage(files, options), out, also=also, wait=wait, as_json=as_json)


def neutral(
    images: Images,
    prompts: Prompts,
    vectors: Vectors,
    out: Out,
    pair: Pair = None,
    confidence: Confidence = 0.95,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score how much pictures of neutral prompts resemble those of each group. --pair: [artifact_id]."""
    from culturekit.metrics.scoring.score_neutral import NeutralOptions
    from culturekit.pipeline.scores.ahead_stage import encoder_behind
    from culturekit.pipeline.scores.linguistic_stages import LinguisticFiles, neutral_stage

    files = LinguisticFiles(images=images, prompts=prompts, vectors=vectors)
    options = NeutralOptions(
        pair=tuple(pair or ("artifact_id",)), encoder=encoder_behind(vectors), confidence=confidence
    )
    run_one(neutral_stage(files, options), out, also=also, wait=wait, as_json=as_json)


def question_pairs(
    images: Images,
    prompts: Prompts,
    vectors: Vectors,
    captions: Annotated[Path, typer.Option(help="Folder of vectors of the captions, ids the captions.")],
    out: Out,
    question: Annotated[
        list[str] | None,
        typer.Option(
            help="FIRST / SECOND: two captions; repeatable. [traditional and modern, an environment and a setting]"
        ),
    ] = None,
    logit_scale: Annotated[float, typer.Option(help="What cosines are multiplied by before the softmax.")] = 100.0,
    confidence: Confidence = 0.95,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score which of two captions fits pictures better, per group: traditional or modern, for instance."""
    from culturekit.metrics.scoring.score_question_pairs import CAPTION_PAIRS, QuestionPairOptions
    from culturekit.pipeline.scores.ahead_stage import encoder_behind
    from culturekit.pipeline.scores.linguistic_stages import LinguisticFiles, question_pair_stage

    asked = tuple(caption_pair(text) for text in question) if question else CAPTION_PAIRS
    files = LinguisticFiles(images=images, prompts=prompts, vectors=vectors, captions=captions)
    options = QuestionPairOptions(
        pairs=asked, logit_scale=logit_scale, encoder=encoder_behind(vectors), confidence=confidence
    )
    run_one(question_pair_stage(files, options), out, also=also, wait=wait, as_json=as_json)


def ratings(
    annotations: Annotated[Path, typer.Option(help="What people answered.")],
    out: Out,
    images: Annotated[
        list[Path] | None, typer.Option(help="Table of the images rated: the model of each; repeatable.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help="Their prompts: the group of each.")] = None,
    scheme: Annotated[str | None, typer.Option(help="Only answers to this form. [all]")] = None,
    confidence: Confidence = 0.95,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score human ratings and choices: means with deviations over items, per pool, criterion and group."""
    from culturekit.metrics.scoring.score_ratings import RatingOptions
    from culturekit.pipeline.scores.linguistic_stages import LinguisticFiles, rating_stage

    files = LinguisticFiles(images=images or (), prompts=prompts, annotations=annotations)
    stage = rating_stage(files, RatingOptions(scheme=scheme, confidence=confidence))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


def caption_pair(text: str) -> tuple[str, str]:
    """Read two captions with a slash between them."""
    from culturekit.errors import UsageError

    first, mark, second = (part.strip() for part in text.partition(" / "))
    if not (first and mark and second):
        raise UsageError("--question is two captions with a slash between", expected="FIRST / SECOND", found=repr(text))
    return first, second
