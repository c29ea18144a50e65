"""From answers to questions about images, probabilities of yes and quality to scores per model."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.errors import NothingScored, UsageError
from culturekit.families.answers import DSG, VQASCORE, answer_matrix, own_answers
from culturekit.families.family import Family, check_choices, described, kept
from culturekit.families.family_stage import family_stage
from culturekit.families.handles.image_levels import MeanOptions, Rows, mean_rows, placed, target_of
from culturekit.families.handles.inputs import AnyImages, Numbered, roles_of
from culturekit.families.handles.vector_files import images_with_prompts
from culturekit.metrics.questions.graph_scores import Denominator, dsg_score
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.score_rows import Scored, scored
from culturekit.metrics.statistics.intervals import Target
from culturekit.records.choices import ANSWERED
from culturekit.records.schemas import JUDGMENTS, QUALITY, QUESTIONS
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table

__all__ = [
    "ASKED",
    "QuestionInput",
    "QuestionOptions",
    "QuestionReads",
    "questions",
    "score_questions",
]


@dataclass(frozen=True, slots=True)
class QuestionInput:
    """What is scored; at least one of judgments and quality.

    Attributes:
        images: conforms to IMAGES.
        judgments: conforms to JUDGMENTS. Of the task `dsg` the item is a question and the choice yes or no; of the
            task `vqascore` the value is P("Yes").
        questions: conforms to QUESTIONS; the task `dsg` needs it.
        quality: conforms to QUALITY.
    """

    images: pl.DataFrame
    judgments: pl.DataFrame | None = None
    questions: pl.DataFrame | None = None
    quality: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class QuestionReads:
    """Images and what was said of them; at least one of judgments and quality."""

    images: AnyImages
    judgments: Annotated[Numbered, Field(description="Judgments of the tasks dsg and vqascore; repeatable.")] = (
        Numbered()
    )
    questions: Annotated[
        Path | None, Field(description="Questions of each prompt and their parents, for the task dsg.")
    ] = None
    quality: Annotated[Numbered, Field(description="Quality of the images; repeatable.")] = Numbered()
    prompts: Annotated[
        Path | None, Field(description="Prompts of the images, where their tables lack country or concept.")
    ] = None

    def __post_init__(self) -> None:
        """Refuse images of which nothing was said."""
        if not self.judgments and not self.quality:
            raise UsageError("there is nothing to score", expected="--judgments or --quality")

    def tables(self, scratch: Path) -> QuestionInput:
        """Read all."""
        tables = [images_with_prompts(path, self.prompts, scratch) for path in self.images.places]
        return QuestionInput(
            images=pl.concat(tables, how="diagonal"),
            judgments=self.judgments.together(JUDGMENTS) if self.judgments else None,
            questions=None if self.questions is None else read_table(self.questions, QUESTIONS),
            quality=self.quality.together(QUALITY) if self.quality else None,
        )


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What to score, and how."""

    denominator: Annotated[
        Denominator,
        Field(description="DSG over all questions, or over those whose parents were answered yes."),
        Typed(needs="questions"),
    ] = "all"
    means: MeanOptions = MeanOptions(benchmark="questions")


def questions(given: QuestionReads, options: QuestionOptions, *, name: str = "scores") -> Stage:
    """Score images by answers to questions, VQAScore and quality.

    Answers make DSG; VQAScore is the probability of yes.
    """
    known = replace(options, means=options.means.known())

    def score(work: Work) -> Scored:
        return score_questions(given.tables(work.scratch), options=known)

    return family_stage("questions", roles_of(given), kept(known), score, version=2, name=name)


ASKED = Family(
    questions,
    metrics=described("dsg quality vqascore"),
    example="--images images/images.parquet --judgments judgments/judgments.parquet --questions questions.parquet "
    "--out scores",
)


def score_questions(given: QuestionInput, *, options: QuestionOptions) -> Scored:
    """Score each model by what was said of its images, each judge and scorer by itself.

    An image enters DSG only if every question of its prompt was answered. Judgments that failed, and answers that
    are neither yes nor no, answer nothing; images that lack an answer are counted, and stand in the values with none.

    Raises:
        UsageError: an option breaks its rule, tables do not conform, or (NothingScored) there is nothing to score.
    """
    check_choices(options)
    left_out: Counter[str] = Counter()
    made = given.images.filter(pl.col("status") == "ok") if "status" in given.images.columns else given.images
    ids = made["image_id"].to_list() if "image_id" in made.columns else []
    images = placed(ids, made, options.means, what="images", left_out=left_out)
    judgments = None if given.judgments is None else checked(given.judgments, JUDGMENTS)
    parts: list[Rows] = []
    if judgments is not None:
        parts += dsg_rows(images, judgments, given.questions, options, left_out)
        parts += vqa_rows(images, judgments, options, left_out)
    if given.quality is not None:
        parts += quality_rows(images, checked(given.quality, QUALITY), options, left_out)
    if not any(rows for rows, _ in parts):
        raise NothingScored.because(
            "there is nothing to score", left_out,
            expected=f"judgments of the tasks {DSG} or {VQASCORE}, or quality, of images in the table of images",
        )  # fmt: skip
    rows = [row for rows, _ in parts for row in rows]
    return scored(rows, [value for _, values in parts for value in values], left_out=left_out)


def dsg_rows(
    images: pl.DataFrame,
    judgments: pl.DataFrame,
    questions: pl.DataFrame | None,
    options: QuestionOptions,
    left_out: Counter[str],
) -> list[Rows]:
    """Score DSG, judge by judge."""
    rows = judgments.filter(task=DSG)
    if rows.is_empty():
        return []
    if questions is None:
        raise UsageError(f"judgments of the task {DSG} answer questions", expected="the table of questions")
    asked = checked(questions, QUESTIONS)
    answers = own_answers(rows, images, left_out)
    strays = answers.join(asked, on=("prompt_id", "question_id"), how="anti")
    left_out["answers to questions that the prompt does not have"] += strays.height
    return [
        dsg_of_judge(images, answers.filter(judge=judge), asked, str(judge), options, left_out)
        for judge in rows["judge"].unique().sort()
    ]


def dsg_of_judge(
    images: pl.DataFrame,
    answers: pl.DataFrame,
    asked: pl.DataFrame,
    judge: str,
    options: QuestionOptions,
    left_out: Counter[str],
) -> Rows:
    """Score the images that a judge was asked about."""
    seen = images.join(answers.select("image_id").unique(), on="image_id", how="semi")
    without = seen.join(asked, on="prompt_id", how="anti")
    left_out["images of prompts without questions"] += without.height
    values: dict[str, float] = {}
    for prompt in seen.join(asked, on="prompt_id", how="semi").sort("prompt_id").partition_by("prompt_id"):
        graph = asked.filter(prompt_id=prompt["prompt_id"][0]).sort("question_id")
        parents = dict(graph.select("question_id", "parents").iter_rows())
        names = prompt["image_id"].to_list()
        try:
            found = dsg_score(answer_matrix(answers, names, list(parents)), parents, denominator=options.denominator)
        except UsageError as error:
            error.where = f"questions of prompt {prompt['prompt_id'][0]!r}"
            raise
        values |= dict(zip(names, found.value.tolist(), strict=True))
        left_out["images with a question not answered"] += int((~found.answered).sum())
    table = pl.DataFrame(
        {"image_id": list(values), "value": list(values.values())}, schema={"image_id": pl.String, "value": pl.Float64}
    )
    params = {"judge": judge, "denominator": options.denominator}
    return rows_of(images, table.with_columns(pl.col("value").fill_nan(None)), DSG, params, options, left_out)


def vqa_rows(
    images: pl.DataFrame, judgments: pl.DataFrame, options: QuestionOptions, left_out: Counter[str]
) -> list[Rows]:
    """Average P("Yes"), judge by judge; several questions about an image are averaged first."""
    rows = judgments.filter(task=VQASCORE)
    wrong = rows.filter((pl.col("value") < 0) | (pl.col("value") > 1) | pl.col("value").is_nan())
    if wrong.height:
        row = wrong.sort("image_id").row(0, named=True)
        raise UsageError(
            "a VQAScore is a probability", where=f"image {row['image_id']!r}", expected="from 0 to 1",
            found=f"{row['value']}",
        )  # fmt: skip
    known = rows.join(images, on="image_id", how="semi")
    left_out["judgments of no known image"] += rows.height - known.height
    usable = pl.col("outcome").is_in(ANSWERED) & pl.col("value").is_not_null()
    left_out["judgments that failed"] += known.filter(~usable).height
    answers = []
    for judge in known["judge"].unique().sort():
        own = known.filter(judge=judge).sort("image_id", "item", "dimension")
        # One question that failed leaves the image out: a mean over the others would be of another set of questions.
        value = pl.when(usable.all()).then(pl.col("value").mean()).alias("value")
        means = own.group_by("image_id", maintain_order=True).agg(value)
        answers.append(rows_of(images, means, VQASCORE, {"judge": judge}, options, left_out))
    return answers


def quality_rows(
    images: pl.DataFrame, quality: pl.DataFrame, options: QuestionOptions, left_out: Counter[str]
) -> list[Rows]:
    """Average quality, scorer by scorer."""
    known = quality.join(images, on="image_id", how="semi")
    left_out["quality of no known image"] += quality.height - known.height
    finite = known.with_columns(value=pl.when(pl.col("value").is_finite()).then("value"))
    left_out["quality that is no number"] += finite["value"].null_count()
    return [
        rows_of(images, finite.filter(scorer=scorer), "quality", {"scorer": scorer}, options, left_out)
        for scorer in finite["scorer"].unique().sort()
    ]


def rows_of(
    images: pl.DataFrame,
    values: pl.DataFrame,
    metric: str,
    params: Mapping[str, object],
    options: QuestionOptions,
    left_out: Counter[str],
) -> Rows:
    """Average the values of images per model and level; images of which nothing was said are counted."""
    own = images.join(values.select("image_id", "value"), on="image_id", how="inner", maintain_order="left")
    left_out[f"images without {metric} by {params.get('judge') or params['scorer']}"] += images.height - own.height
    if own.is_empty():
        return [], []
    target: Target = target_of(own, options.means)
    return mean_rows(own, metric, options.means, params, target=target)
