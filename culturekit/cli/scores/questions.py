"""`culturekit score questions`: what judges and scorers said of images, per model."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.scores.levels import By, Groups, Scheme, Target, mean_options
from culturekit.cli.stages import run_one

__all__ = ["questions"]

Denominator: TypeAlias = Literal["all", "valid"]


def questions(
    images: Annotated[list[Path], typer.Option(help="Table of images; repeat it for more than one.")],
    out: Out,
    judgments: Annotated[
        list[Path] | None, typer.Option(help="Judgments of the tasks dsg and vqascore; repeatable.")
    ] = None,
    asked: Annotated[
        Path | None, typer.Option("--questions", help="Questions of each prompt and their parents, for the task dsg.")
    ] = None,
    quality: Annotated[list[Path] | None, typer.Option(help="Quality of the images; repeatable.")] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the images, where their tables lack country or concept.")
    ] = None,
    denominator: Annotated[
        Denominator, typer.Option(help="DSG over all questions, or over those whose parents were answered yes.")
    ] = "all",
    by: By = None,
    scheme: Scheme = "un-m49-subregion",
    groups: Groups = None,
    target: Target = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score images by answers to questions (DSG), the probability of yes (VQAScore), and quality."""
    from culturekit.errors import UsageError
    from culturekit.metrics.scoring.score_questions import QuestionOptions
    from culturekit.pipeline.scores.questions_stage import QuestionFiles, questions_stage

    if not judgments and not quality:
        raise UsageError("there is nothing to score", expected="--judgments or --quality")
    means = mean_options(by, scheme, groups, target, benchmark="questions")
    files = QuestionFiles(images, judgments or (), quality or (), asked, prompts)
    run_one(questions_stage(files, QuestionOptions(denominator, means)), out, also=also, wait=wait, as_json=as_json)
