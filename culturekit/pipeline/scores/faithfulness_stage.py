"""The stage that scores how faithful images are to their prompts: DSG, VQAScore and quality, and what stands beside."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.family_stage import write_scored
from culturekit.families.vector_files import images_with_prompts
from culturekit.metrics.scoring.answer_tables import answer_counts, question_rates
from culturekit.metrics.scoring.score_questions import QuestionInput, QuestionOptions, score_questions
from culturekit.records.schemas import ANSWER_COUNTS, JUDGMENTS, QUALITY, QUESTION_RATES, QUESTIONS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table, write_table

__all__ = ["faithfulness_stage", "scorer_label"]


def faithfulness_stage(
    images: Mapping[str, Path],
    options: QuestionOptions,
    *,
    judgments: Mapping[str, Path],
    quality: Mapping[str, Path],
    questions: Path | None = None,
    prompts: Path | None = None,
    name: str = "faithfulness",
) -> Stage:
    """Score all models together; files stand under the names of the folders they are from."""
    single = {"questions": questions, "prompts": prompts}
    return Stage(
        name,
        "score-faithfulness",
        1,
        lambda work: score(
            work, list(images.values()), list(judgments.values()), list(quality.values()), questions, prompts, options
        ),
        {**images, **judgments, **quality, **{role: path for role, path in single.items() if path is not None}},
        asdict(options),
        packages=("numpy", "polars", "scipy"),
    )


def score(
    work: Work,
    images: Sequence[Path],
    judgments: Sequence[Path],
    quality: Sequence[Path],
    questions: Path | None,
    prompts: Path | None,
    options: QuestionOptions,
) -> Outcome:
    """Read, score, and count beside the scores how judgments ended and how each question was answered."""
    given = QuestionInput(
        images=placed_images(images, prompts, work.scratch),
        judgments=judged(judgments) if judgments else None,
        questions=None if questions is None else read_table(questions, QUESTIONS),
        quality=labelled_quality(quality) if quality else None,
    )
    scored = write_scored(work, score_questions(given, options=options, required=False))
    counts = dict(scored.counts)
    if given.judgments is not None:
        table = answer_counts(given.images, given.judgments)
        write_table(work.out, ANSWER_COUNTS, table)
        counts["answer_counts"] = table.height
    if given.judgments is not None and given.questions is not None:
        rates = question_rates(given.images, given.judgments, given.questions)
        write_table(work.out, QUESTION_RATES, rates)
        counts["question_rates"] = rates.height
    return Outcome(counts, scored.drops, scored.notes)


def placed_images(paths: Sequence[Path], prompts: Path | None, scratch: Path) -> pl.DataFrame:
    """Read the images of all models with the concept and country of their prompts."""
    images = pl.concat([images_with_prompts(path, prompts, scratch) for path in paths], how="diagonal")
    missing = [pl.lit(None, pl.String).alias(name) for name in ("concept", "country") if name not in images.columns]
    return images.with_columns(missing)


def judged(paths: Sequence[Path]) -> pl.DataFrame:
    """Read judgments of several stages as one table."""
    return pl.concat([read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in paths])


def labelled_quality(paths: Sequence[Path]) -> pl.DataFrame:
    """Read quality of several stages as one table; a scorer is named with the encoder that it compares by."""
    tables = [
        read_table(path, QUALITY).select(list(QUALITY.schema)).with_columns(scorer=pl.lit(label, pl.String))
        for path in paths
        for label in [scorer_label(path)]
    ]
    whole = pl.concat(tables)
    twice = whole.filter(pl.struct("scorer", "image_id").is_duplicated())
    if twice.height:
        raise UsageError(
            "two scorers have the same name and encoder",
            where=", ".join(map(str, paths)),
            found=str(twice["scorer"][0]),
            hint="Name each scorer once; scorers of the same name differ by the folder of their weights.",
        )
    return whole


def scorer_label(path: Path) -> str:
    """Name the scorer of a table of quality, with the encoder and the weights that its manifest names."""
    manifest = read_manifest(path.parent)
    parameters = {} if manifest is None else manifest.notes.get("parameters", {})
    rows = read_table(path, QUALITY)["scorer"]
    name = str(parameters.get("name") or (rows[0] if len(rows) else "unknown"))
    encoder, weights = parameters.get("encoder"), str(parameters.get("weights", ""))[:8]
    return f"{name}:{encoder}@{weights}" if encoder else name
