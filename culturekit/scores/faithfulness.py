"""How faithful images are to their prompts: DSG, VQAScore and quality, how judgments ended, and what is missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import ANSWERED
from culturekit.core.declared import Typed, check_choices
from culturekit.core.digests import read_manifest
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import ANSWER_COUNTS, JUDGMENTS, QUALITY, QUESTION_RATES, QUESTIONS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import checked, read_table, write_table
from culturekit.metrics.questions import Denominator, dsg_score
from culturekit.metrics.statistics.intervals import Target
from culturekit.scores.catalog import describe
from culturekit.scores.diversity import MEAN_QUALITY
from culturekit.scores.family import Scored, scored, scored_in, scores, write_scored
from culturekit.scores.image_levels import MeanOptions, Rows, mean_rows, placed, target_of
from culturekit.scores.inputs import AnyImages, images_with_prompts

# What judges answered about images: read, put into a matrix, and counted beside the scores.

DSG, VQA = "dsg", "vqascore"  # The tasks of the judgments: answers to a prompt's questions, and the probability of yes

NOT_YES_OR_NO = "neither yes nor no"


def own_answers(rows: pl.DataFrame, images: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Give judge, image_id, prompt_id, question_id and answer (1, 0, null) of what was asked about known images.

    The prompt is the image's: a judgment need not repeat it.
    """
    known = rows.drop("prompt_id").join(images.select("image_id", "prompt_id"), on="image_id", how="inner")
    left_out["judgments of no known image"] += rows.height - known.height
    usable = pl.col("outcome").is_in(ANSWERED)
    answers = known.select(
        "judge",
        "image_id",
        "prompt_id",
        question_id="item",
        answer=pl.when(usable).then(yes_or_no()).cast(pl.Float64),
        failed=~usable,
    )
    left_out["judgments that failed"] += int(answers["failed"].sum())
    unclear = answers.filter(~pl.col("failed") & pl.col("answer").is_null())
    left_out["answers that are neither yes nor no"] += unclear.height
    twice = answers.filter(pl.struct("judge", "image_id", "question_id").is_duplicated())
    if twice.height:
        row = twice.sort("image_id", "question_id").row(0, named=True)
        raise UsageError(
            "a judge answers a question about an image once",
            found=f"{row['judge']!r} on question {row['question_id']!r} of image {row['image_id']!r} several times",
        )
    return answers


def answer_matrix(answers: pl.DataFrame, images: list[str], questions: list[str]) -> NDArray[np.float64]:
    """Put answers into a row per image and a column per question; NaN where there is none."""
    rows, columns = ({name: number for number, name in enumerate(names)} for names in (images, questions))
    matrix = np.full((len(rows), len(columns)), np.nan)
    part = answers.filter(pl.col("image_id").is_in(images), pl.col("question_id").is_in(questions))
    for image, question, answer in part.select("image_id", "question_id", "answer").iter_rows():
        matrix[rows[image], columns[question]] = np.nan if answer is None else answer
    return matrix


def answer_counts(images: pl.DataFrame, judgments: pl.DataFrame) -> pl.DataFrame:
    """Count how the judgments of each model's images ended, task by task, over all concepts and for each."""
    part = judgments.join(images.select("image_id", "model", "concept"), on="image_id", how="inner")
    unclear = (pl.col("task") == DSG) & pl.col("outcome").is_in(ANSWERED) & yes_or_no().is_null()
    part = part.with_columns(outcome=pl.when(unclear).then(pl.lit(NOT_YES_OR_NO)).otherwise("outcome"))
    cell = ("model", "task", "judge", "outcome")
    counted = (
        pl.len().cast(pl.UInt64).alias("judgments"),
        pl.col("image_id").n_unique().cast(pl.UInt64).alias("images"),
    )
    every = part.group_by(cell).agg(counted).with_columns(concept=pl.lit(None, pl.String))
    parted = part.filter(pl.col("concept").is_not_null()).group_by(*cell, "concept").agg(counted)
    columns = list(ANSWER_COUNTS.schema)
    return pl.concat([every.select(columns), parted.select(columns)])


def question_rates(images: pl.DataFrame, judgments: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Count how often each question was answered yes about the images of each model, and how often a parent with no.

    `failed` are images about which the answer was no, or was yes although a parent was answered no: what the question
    asks for is missing there. `rate` is their share of the images with an answer.
    """
    replies = judgments.filter(task=DSG).select(
        "judge", "image_id", question_id="item", yes=pl.when(pl.col("outcome").is_in(ANSWERED)).then(yes_or_no())
    )
    part = replies.join(images.select("image_id", "model", "prompt_id", "concept"), on="image_id", how="inner")
    asked = part.join(questions, on=("prompt_id", "question_id"), how="inner")
    keys = ("judge", "image_id", "question_id")
    above = asked.select(*keys, parent="parents").explode("parent").drop_nulls("parent")
    answers = part.select("judge", "image_id", parent="question_id", parent_yes="yes")
    void = above.join(answers, on=("judge", "image_id", "parent"), how="left").group_by(keys).agg(
        void=(~pl.col("parent_yes")).fill_null(False).any()
    )  # fmt: skip
    whole = asked.join(void, on=keys, how="left").with_columns(pl.col("void").fill_null(False))
    of_question = ("judge", "model", "prompt_id", "question_id")
    counts = whole.group_by(of_question).agg(
        pl.col("text", "kind", "concept").first(),
        images=pl.len().cast(pl.UInt64),
        yes=counted(pl.col("yes").fill_null(False)),
        no=counted((~pl.col("yes")).fill_null(False)),
        unanswered=counted(pl.col("yes").is_null()),
        void=counted(pl.col("void")),
        failed=counted(pl.col("yes").is_not_null() & (~pl.col("yes").fill_null(False) | pl.col("void"))),
    )
    answered = pl.col("yes") + pl.col("no")
    rate = pl.when(answered > 0).then(pl.col("failed") / answered)
    return counts.with_columns(rate=rate).select(list(QUESTION_RATES.schema))


def yes_or_no() -> pl.Expr:
    """Read a choice as true or false; null for what is neither."""
    answer = pl.col("choice").str.strip_chars().str.to_lowercase()
    return pl.when(answer.is_in(["yes", "no"])).then(answer == "yes")


def counted(condition: pl.Expr) -> pl.Expr:
    """Count rows for which a condition holds."""
    return condition.cast(pl.UInt64).sum()


# From answers to questions about images, probabilities of yes and quality to scores per model.


@dataclass(frozen=True, slots=True)
class QuestionInput:
    """What is scored; at least one of judgments and quality."""

    images: pl.DataFrame  # conforms to IMAGES
    # conforms to JUDGMENTS. Of the task `dsg` the item is a question and the choice yes or no; of the task `vqascore`
    # the value is P("Yes")
    judgments: pl.DataFrame | None = None
    questions: pl.DataFrame | None = None  # conforms to QUESTIONS; the task `dsg` needs it
    quality: pl.DataFrame | None = None  # conforms to QUALITY


_INTERVAL = (
    "The interval is t over prompts under the target population, which needs 20 prompts, and over images within "
    "prompts under these. It does not speak about other judges, and how wrong the judge is stands in no interval."
)

DSG_SCORE = describe(
    "dsg",
    "Davidsonian scene graph score",
    "mean over images of (questions answered yes whose parents were all answered yes) / (all questions, or "
    "under params.denominator valid those whose parents were all answered yes)",
    paper="Cho et al. 2024, Davidsonian Scene Graph: Improving Reliability in Fine-grained Evaluation for T2I "
    "Generation",
    inputs=(
        "judgments, task dsg: image_id, judge, item (the question), choice (yes or no), outcome",
        "questions: prompt_id, question_id, parents",
        "images: image_id, model, prompt_id",
    ),
    pitfalls=(
        "Two models stand behind it, one that wrote the questions and one that answered them. A judge that does not "
        "know a dish or a garment answers no, and the picture is blamed.",
        "A question whose parent was answered no counts 0, by the parent's own answer: what hangs below a missing "
        "object is lost with it. The valid denominator asks only how well the rest is shown, and rewards leaving much "
        "out.",
        "An image with an unanswered question has no score; the manifest counts them.",
        _INTERVAL,
    ),
    direction="higher",
    licence="that of the judge named in params.judge",
)

VQASCORE = describe(
    "vqascore",
    "VQAScore",
    'mean over images of P("Yes" | image, "Does this figure show {text}?")',
    paper="Lin et al. 2024, Evaluating Text-to-Visual Generation with Image-to-Text Generation",
    inputs=("judgments, task vqascore: image_id, judge, value, outcome", "images: image_id, model, prompt_id"),
    pitfalls=(
        'P("Yes") is a model\'s confidence, not the share of people who would say yes; two judges are on two scales.',
        "What the probability is a share of matters: of yes and no alone it is larger than of the whole vocabulary.",
        _INTERVAL,
    ),
    direction="higher",
    unit="probability",
    licence=DSG_SCORE.licence,
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


_Judgments: TypeAlias = Annotated[Numbered, Field(description="Judgments of the tasks dsg and vqascore; repeatable.")]
_Questions: TypeAlias = Annotated[
    Path | None, Field(description="Questions of each prompt and their parents, for the task dsg.")
]
_Quality: TypeAlias = Annotated[Numbered, Field(description="Quality of the images; repeatable.")]
_Prompts: TypeAlias = Annotated[
    Path | None, Field(description="Prompts of the images, where their tables lack country or concept.")
]


def _settled(judgments: Numbered, quality: Numbered, options: QuestionOptions, **_: object) -> dict[str, object]:
    """Refuse images of which nothing was said."""
    if not judgments and not quality:
        raise UsageError("there is nothing to score", expected="--judgments or --quality")
    return {"options": replace(options, means=options.means.known())}


@scores(
    "questions", DSG_SCORE, MEAN_QUALITY, VQASCORE, version=2, settle=_settled,
    example="--images images/images.parquet --judgments judgments/judgments.parquet --questions questions.parquet "
    "--out scores",
)  # fmt: skip
def questions(
    work: Work,
    images: AnyImages,
    judgments: _Judgments = Numbered(),
    questions: _Questions = None,
    quality: _Quality = Numbered(),
    prompts: _Prompts = None,
    *,
    options: QuestionOptions = QuestionOptions(),
) -> Scored:
    """Score images by answers to questions, VQAScore and quality.

    Answers make DSG; VQAScore is the probability of yes.
    """
    data = tables_of(images, judgments, questions, prompts, work.scratch)
    rated = quality.together(QUALITY) if quality else None
    return score_questions(replace(data, quality=rated), options=options)


@scores(
    "faithfulness", DSG_SCORE, MEAN_QUALITY, VQASCORE, version=2, settle=_settled, folder="faithfulness", example=""
)  # fmt: skip
def faithfulness(
    work: Work,
    images: AnyImages,
    judgments: _Judgments = Numbered(),
    questions: _Questions = None,
    quality: _Quality = Numbered(),
    prompts: _Prompts = None,
    *,
    options: QuestionOptions = QuestionOptions(),
) -> Outcome:
    """Score all models of a run together.

    Beside the scores stands how judgments ended and how each question was answered; a scorer of quality is named with
    the encoder that it compares by.
    """
    data = tables_of(images, judgments, questions, prompts, work.scratch)
    missing = [name for name in ("concept", "country") if name not in data.images.columns]
    completed = data.images.with_columns(pl.lit(None, pl.String).alias(name) for name in missing)
    data = replace(data, images=completed, quality=labelled_quality(quality.places) if quality else None)
    outcome = write_scored(work, scored_in(work, lambda: score_questions(data, options=options)))
    beside = []
    if data.judgments is not None:
        beside.append((ANSWER_COUNTS, answer_counts(completed, data.judgments)))
        if data.questions is not None:
            beside.append((QUESTION_RATES, question_rates(completed, data.judgments, data.questions)))
    for table, rows in beside:
        write_table(work.out, table, rows)
    return replace(outcome, counts={**outcome.counts, **{table.name: rows.height for table, rows in beside}})


def tables_of(
    images: Numbered, judgments: Numbered, questions: Path | None, prompts: Path | None, scratch: Path
) -> QuestionInput:
    """Read images and what judges said of them."""
    return QuestionInput(
        images=pl.concat([images_with_prompts(path, prompts, scratch) for path in images.places], how="diagonal"),
        judgments=judgments.together(JUDGMENTS) if judgments else None,
        questions=None if questions is None else read_table(questions, QUESTIONS),
    )


def score_questions(given: QuestionInput, *, options: QuestionOptions) -> Scored:
    """Score each model by what was said of its images, each judge and scorer by itself.

    An image enters DSG only if every question of its prompt was answered. Judgments that failed, and answers that
    are neither yes nor no, answer nothing; images that lack an answer are counted, and stand in the values with none.
    """
    check_choices(options)
    left_out: Counter[str] = Counter()
    finished = given.images.filter(pl.col("status") == "ok") if "status" in given.images.columns else given.images
    ids = finished["image_id"].to_list() if "image_id" in finished.columns else []
    images = placed(ids, finished, options.means, what="images", left_out=left_out)
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
            expected=f"judgments of the tasks {DSG} or {VQA}, or quality, of images in the table of images",
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
    rows = judgments.filter(task=VQA)
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
        part = known.filter(judge=judge).sort("image_id", "item", "dimension")
        # One question that failed leaves the image out: a mean over the others would be of another set of questions.
        value = pl.when(usable.all()).then(pl.col("value").mean()).alias("value")
        means = part.group_by("image_id", maintain_order=True).agg(value)
        answers.append(rows_of(images, means, VQA, {"judge": judge}, options, left_out))
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
    part = images.join(values.select("image_id", "value"), on="image_id", how="inner", maintain_order="left")
    left_out[f"images without {metric} by {params.get('judge') or params['scorer']}"] += images.height - part.height
    if part.is_empty():
        return [], []
    target: Target = target_of(part, options.means)
    return mean_rows(part, metric, options.means, params, target=target)


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
