"""The recipe `geodiv`: prompts of entities in countries, images, answers about each, and the scores."""

from typing import Annotated, Literal

import polars as pl
from pydantic import AfterValidator

from culturekit import extend as ck
from geodiv.family import QUESTIONS, geodiv

ANSWERS, SCORES = ck.Role("answers-{model}", "judgments"), ck.Role("geodiv", "scores")


class GeoDiv(ck.AnyRecipe):
    """How a country looks in the images of models."""

    recipe: Literal["geodiv"]
    entities: tuple[str, ...] = ("house", "car", "kitchen")
    countries: tuple[str, ...] = ("IN", "JP", "NG", "US")
    images: ck.ImagePlan = ck.ImagePlan(slots=8)
    models: Annotated[tuple[ck.Model, ...], AfterValidator(ck.unique_names)]
    judge: Annotated[str, AfterValidator(ck.checked_spec(ck.CLIENTS))]


def prompts_of(recipe: GeoDiv) -> ck.Stage:
    """Write a prompt for each entity in each country."""
    common = {"benchmark": "geodiv", "kind": "geographic", "language": "en", "template_id": "geodiv"}

    def run(work: ck.Work) -> ck.Outcome:
        rows = [
            {**common, "prompt_id": f"{entity}-{iso}", "country": iso, "concept": entity,
             "text": f"A photo of a {entity} in {ck.countries()[iso].name}"}
            for entity in recipe.entities for iso in recipe.countries
        ]  # fmt: skip
        ck.write_table(work.out, ck.TABLES["prompts"], pl.DataFrame(rows, schema=ck.TABLES["prompts"].schema))
        return ck.Outcome({"prompts": len(rows)})

    options = {"entities": list(recipe.entities), "countries": list(recipe.countries)}
    return ck.Stage("prompts", "geodiv-prompts", 1, run, {}, options)


def wire(recipe: GeoDiv, run: ck.Run) -> None:
    """Add the stages."""
    run.add(prompts_of(recipe), ck.roles.PROMPTS)
    for model in recipe.models:
        images = ck.model_images(run, model, recipe.images, seed=recipe.seed)
        options = ck.JudgeOptions(ck.load_questions([str(QUESTIONS)]), recipe.judge)
        run.add(ck.judge_stage(ck.JudgeReads(images), options), ANSWERS, model.name)
    run.add(geodiv.stage(ck.Files(run.tables(ANSWERS)), ck.Files(run.tables(ck.roles.IMAGES))), SCORES)


GEODIV = ck.RecipeKind(GeoDiv, wire)
