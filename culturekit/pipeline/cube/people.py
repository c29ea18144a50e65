"""What models and people say of the images of a run: whether they show what was asked for, and how people rate them."""

from functools import partial
from pathlib import Path

import polars as pl

from culturekit.config.faithfulness import Faithfulness
from culturekit.config.recipe import Recipe
from culturekit.families.faithfulness import faithfulness
from culturekit.families.handles.image_levels import MeanOptions
from culturekit.families.handles.inputs import Numbered, ValueTables
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.families.questions import QuestionOptions, QuestionReads
from culturekit.index.raters.score_pictures import QualityOptions
from culturekit.pipeline.cube.counts import prompt_count
from culturekit.pipeline.cube.scores import compared
from culturekit.pipeline.cube.space import asking
from culturekit.pipeline.parts.ratings import ratings
from culturekit.pipeline.planning.slots import asks
from culturekit.pipeline.steps.quality_stage import QualityReads, quality_stage
from culturekit.pipeline.steps.question_stages import answers_stage, graphs_stage, plan_answers, plan_graphs
from culturekit.pipeline.steps.vqascore_stage import plan_vqascore, vqascore_stage
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
        questions(recipe, run, wanted.questions)
    for model in run.models:
        if wanted.answers is not None:
            answers(recipe, run, wanted, wanted.answers, model)
        if wanted.vqascore is not None:
            probabilities(recipe, run, wanted, wanted.vqascore, model)
        for number, scorer in enumerate(wanted.scorers, start=1):
            given = QualityReads(run.table(roles.IMAGES, model), run.table(roles.PROMPTS))
            run.add(quality_stage(given, QualityOptions(scorer)), roles.SCORER, model, str(number))
    shown(recipe, run, wanted)
    compared(recipe, run, roles.FAITHFULNESS, roles.FAITHFULNESS_COMPARISON)


def questions(recipe: Recipe, run: Run, writer: str) -> None:
    """Turn the prompts that images are made from into questions: one request each."""
    prompts, kinds, out = run.table(roles.PROMPTS), recipe.images.kinds, run.folder(roles.QUESTIONS)
    stage = graphs_stage(prompts, writer, kinds=kinds, llm=asking(recipe, run, but=out))
    exact = partial(plan_graphs, prompts, writer, kinds=kinds, batch=recipe.llm.batch)
    count = partial(prompt_count, recipe, run, kinds)
    run.add(stage, roles.QUESTIONS, plan=asks(writer, exact, "prompts", count=count, requests=count))


def answers(recipe: Recipe, run: Run, wanted: Faithfulness, judge: str, model: str) -> None:
    """Answer the questions about the images of a model: a request for each image and question."""
    images, asked, out = run.table(roles.IMAGES, model), run.table(roles.QUESTIONS), run.folder(roles.ANSWERS, model)
    stage = answers_stage(images, asked, judge, per_prompt=wanted.per_prompt, llm=asking(recipe, run, but=out))
    exact = partial(plan_answers, images, asked, judge, per_prompt=wanted.per_prompt, batch=recipe.llm.batch)

    def requests() -> int | None:
        if not asked.is_file() or looked_at(recipe, run, wanted) is None:
            return None
        return pl.read_parquet(asked, columns=["prompt_id"]).height * per_prompt(recipe, wanted)

    count = partial(looked_at, recipe, run, wanted)
    slot = asks(judge, exact, "images", count=count, requests=requests)
    run.add(stage, roles.ANSWERS, model, plan=slot)


def probabilities(recipe: Recipe, run: Run, wanted: Faithfulness, judge: str, model: str) -> None:
    """Ask how probable yes is, for each image of a model: one request each."""
    images, prompts, out = run.table(roles.IMAGES, model), run.table(roles.PROMPTS), run.folder(roles.VQASCORE, model)
    limit, llm = wanted.per_prompt, asking(recipe, run, but=out)
    stage = vqascore_stage(images, judge, prompts=prompts, of=wanted.of, per_prompt=limit, llm=llm)
    exact = partial(plan_vqascore, images, judge, prompts=prompts, per_prompt=limit, batch=recipe.llm.batch)
    count = partial(looked_at, recipe, run, wanted)
    slot = asks(judge, exact, "images", count=count, requests=count)
    run.add(stage, roles.VQASCORE, model, plan=slot)


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
    """Let people rate images, and hold metrics of single images against them; faithfulness has its own."""
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
