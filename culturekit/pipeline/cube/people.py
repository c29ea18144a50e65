"""What models and people say of the images of a run: whether they show what was asked for, and how people rate them."""

from functools import partial
from pathlib import Path

import polars as pl

from culturekit.builders.judging.image_judge import WeighOptions, WeighReads
from culturekit.builders.judging.question_answers import AnswerOptions, AnswerReads
from culturekit.builders.judging.question_graph import GraphOptions
from culturekit.config.faithfulness import Faithfulness
from culturekit.config.recipe import Recipe
from culturekit.families.faithfulness import faithfulness
from culturekit.families.handles.image_levels import MeanOptions
from culturekit.families.handles.inputs import Files, Numbered, ValueTables
from culturekit.families.judged import JudgedReads, judged
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.families.questions import QuestionOptions, QuestionReads
from culturekit.index.raters.score_pictures import QualityOptions
from culturekit.pipeline.cube.counts import prompt_count
from culturekit.pipeline.cube.scores import compared
from culturekit.pipeline.cube.space import asking
from culturekit.pipeline.parts.ratings import ratings
from culturekit.pipeline.planning.slots import asks
from culturekit.pipeline.steps.quality_stage import QualityReads, quality_stage
from culturekit.pipeline.steps.question_stages import GraphReads, answers_stage, graphs_stage, vqascore_stage
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["wire_faithfulness", "wire_people"]

BY = (("concept",), ("country",))
"""The levels besides all prompts of a model."""


def wire_faithfulness(recipe: Recipe, run: Run) -> None:
    """Ask whether images show what their prompts ask for: questions and answers, probabilities, further scorers."""
    wanted = recipe.faithfulness
    if wanted is None:
        return
    if wanted.questions is not None:
        options = GraphOptions(wanted.questions, recipe.images.kinds)
        stage = graphs_stage(GraphReads(run.table(roles.PROMPTS)), options, asking(recipe, run, roles.QUESTIONS))
        count = partial(prompt_count, recipe, run, recipe.images.kinds)
        run.add(stage, roles.QUESTIONS, plan=asks(count=count, requests=count))
    for model in run.models:
        looks(recipe, run, wanted, model)
    shown(recipe, run, wanted)
    compared(recipe, run, roles.FAITHFULNESS, roles.FAITHFULNESS_COMPARISON)


def looks(recipe: Recipe, run: Run, wanted: Faithfulness, model: str) -> None:
    """Have the images of a model looked at: a request for each image and question, one for each image, or none."""
    images, prompts, limit = run.table(roles.IMAGES, model), run.table(roles.PROMPTS), wanted.per_prompt
    count, each = (partial(number, recipe, run, wanted) for number in (looked_at, questions_to_ask))
    if wanted.answers is not None:
        given, options = AnswerReads(images, run.table(roles.QUESTIONS)), AnswerOptions(wanted.answers, limit)
        stage = answers_stage(given, options, asking(recipe, run, roles.ANSWERS, model))
        run.add(stage, roles.ANSWERS, model, plan=asks(count=count, requests=each))
    if wanted.vqascore is not None:
        weighing = WeighOptions(wanted.vqascore, wanted.of, limit)
        stage = vqascore_stage(WeighReads(images, prompts), weighing, asking(recipe, run, roles.VQASCORE, model))
        run.add(stage, roles.VQASCORE, model, plan=asks(count=count, requests=count))
    for number, scorer in enumerate(wanted.scorers, start=1):
        stage = quality_stage(QualityReads(images, prompts), QualityOptions(scorer))
        run.add(stage, roles.SCORER, model, str(number))


def questions_to_ask(recipe: Recipe, run: Run, wanted: Faithfulness) -> int | None:
    """Count the questions about the images of a model, once they are written: a request for each image and question."""
    asked = run.table(roles.QUESTIONS)
    if not asked.is_file() or looked_at(recipe, run, wanted) is None:
        return None
    return pl.read_parquet(asked, columns=["prompt_id"]).height * per_prompt(recipe, wanted)


def looked_at(recipe: Recipe, run: Run, wanted: Faithfulness) -> int | None:
    """Count the images of a model that are looked at."""
    prompts = prompt_count(recipe, run, recipe.images.kinds)
    return None if prompts is None else prompts * per_prompt(recipe, wanted)


def per_prompt(recipe: Recipe, wanted: Faithfulness) -> int:
    """Count the images of a model and prompt that are looked at."""
    made = recipe.images.repeats * recipe.images.slots
    return made if wanted.per_prompt is None else min(made, wanted.per_prompt)


def shown(recipe: Recipe, run: Run, wanted: Faithfulness) -> None:
    """Score all models together; the quality that stands in qVS is a scorer beside the others."""
    judgments: dict[str, Path] = {}
    quality: dict[str, Path] = {}
    for model in run.models:
        judges = [role for role in (roles.ANSWERS, roles.VQASCORE) if run.has(role, model)]
        judgments |= {role.folder(model): run.table(role, model) for role in judges}
        quality[roles.QUALITY.folder(model)] = run.table(roles.QUALITY, model)
        for variant in run.variants(roles.SCORER, model):
            quality[roles.SCORER.folder(model, variant)] = run.table(roles.SCORER, model, variant)
    given = QuestionReads(
        Numbered(run.tables(roles.IMAGES)),
        Numbered(judgments),
        run.table(roles.QUESTIONS) if run.has(roles.QUESTIONS) else None,
        Numbered(quality),
        run.table(roles.PROMPTS),
    )
    scores = recipe.scores
    means = MeanOptions(BY, scheme="", groups={}, confidence=scores.confidence, benchmark=scores.benchmark)
    run.add(faithfulness(given, QuestionOptions(wanted.denominator, means)), roles.FAITHFULNESS)


def wire_people(recipe: Recipe, run: Run) -> None:
    """Let people rate images, hold metrics of single images against them, and put judges right by them."""
    asked = recipe.annotations
    rated = None if asked is None else ratings(run, asked, seed=recipe.seed)
    if asked is None or rated is None:
        return
    given = MetaReads(
        ValueTables([run.values_of(roles.FAITHFULNESS)] if run.has(roles.FAITHFULNESS) else []),
        rated,
        quality=Numbered(list(run.tables(roles.QUALITY).values())),
        matches=Numbered(list(run.tables(roles.MATCHES).values())),
        prompts=run.table(roles.PROMPTS),
    )
    options = MetaOptions(
        asked.choices, people_only=True, by=asked.pools, confidence=asked.confidence, resamples=asked.resamples,
        seed=recipe.seed,
    )  # fmt: skip
    run.add(meta(given, options), roles.META)
    if asked.judged is not None:
        drawn = Files([run.table(roles.RATED_SAMPLE)] if asked.project is None and run.has(roles.RATED_SAMPLE) else [])
        people = JudgedReads(ValueTables([run.values_of(roles.FAITHFULNESS)]), rated, drawn)
        run.add(judged(people, asked.judged, required=False), roles.JUDGED)
