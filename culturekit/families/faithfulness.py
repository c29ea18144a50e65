"""How faithful images are to their prompts: DSG, VQAScore and quality, how judgments ended, and what is missing."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.answers import answer_counts, question_rates
from culturekit.families.family import kept
from culturekit.families.family_stage import scored_in, write_scored
from culturekit.families.handles.inputs import roles_of
from culturekit.families.questions import QuestionOptions, QuestionReads, score_questions
from culturekit.records.schemas import ANSWER_COUNTS, QUALITY, QUESTION_RATES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table, write_table

__all__ = ["faithfulness"]


def faithfulness(given: QuestionReads, options: QuestionOptions, *, name: str = "faithfulness") -> Stage:
    """Score all models together; files stand under the names of the folders they are from."""
    known = replace(options, means=options.means.known())
    return Stage(
        name,
        "score-faithfulness",
        2,
        lambda work: score(work, given, known),
        roles_of(given),
        kept(known),
        packages=("numpy", "polars", "scipy"),
    )


def score(work: Work, given: QuestionReads, options: QuestionOptions) -> Outcome:
    """Read, score, and count beside the scores how judgments ended and how each question was answered."""
    tables = given.tables(work.scratch)
    missing = [name for name in ("concept", "country") if name not in tables.images.columns]
    images = tables.images.with_columns(pl.lit(None, pl.String).alias(name) for name in missing)
    quality = labelled_quality(given.quality.places) if given.quality else None
    data = replace(tables, images=images, quality=quality)
    scored = write_scored(work, scored_in(work, lambda: score_questions(data, options=options)))
    counts = dict(scored.counts)
    if data.judgments is not None:
        table = answer_counts(images, data.judgments)
        write_table(work.out, ANSWER_COUNTS, table)
        counts["answer_counts"] = table.height
    if data.judgments is not None and data.questions is not None:
        rates = question_rates(images, data.judgments, data.questions)
        write_table(work.out, QUESTION_RATES, rates)
        counts["question_rates"] = rates.height
    return Outcome(counts, scored.drops, scored.notes)


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
