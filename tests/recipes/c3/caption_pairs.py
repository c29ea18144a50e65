"""A small collection of captioned pictures of the simulated world, drawn, translated, selected and rated."""

from pathlib import Path

import polars as pl

from culturekit.builders.captions.caption_files import translate
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.core.schemas import PROMPTS, SELECTED
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.people.export import ExportOptions
from culturekit.people.stages import ANSWERS_FILE, ExportFiles, export_stage, import_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.c3.pairs import captioned_images_stage, pair_items_stage, worth_stage
from culturekit.recipes.c3.world import (
    alt_texts_stage,
    collection_prompts_stage,
    image_truth_stage,
    pair_truth_stage,
    simulated_ratings_stage,
)
from tests.recipes.built import built, stored

PEOPLE = SimulatedPeople(scatter=0.3, careless=0)
CAPTIONS = ("hand drums in a bamboo garden", "a qipao dress and a porcelain teapot, toasting in turn", "a samovar")
DIALS = "simulated-scenes?knows=0.5&invents=0.1&exaggerates=0.5&size=128"


def pair_world(root: Path) -> Path:
    """Make every folder that what is worth follows from; strategies keep three of four pairs, or the first ten."""
    asked = built(collection_prompts_stage(country="CN"), root / "collection-prompts") / "prompts.parquet"
    web = built(generate_stage(asked, ImagePlan(), backend=DIALS, model="web", seed=3), root / "collection")
    images = web / "images.parquet"
    texts = built(alt_texts_stage(images, names=0.7, wrong=0.3, seed=3), root / "alt-texts") / "captions.parquet"
    told = (
        built(translate.stage(texts, translator="simulated:translator?omits=0.3&invents=0.2"), root / "translated")
        / "translations.parquet"
    )
    truth = built(pair_truth_stage(images, told), root / "pair-truth") / "values.parquet"
    ids = sorted(pl.read_parquet(told)["id"])
    selected = stored(root / "selected", SELECTED, [
        {"strategy": strategy, "item": item, "rank": rank, "value": float(-rank), "missing": [],
         "kept": rank % 4 > 0 if strategy == "random" else rank <= 10}
        for strategy in ("random", "c3")
        for rank, item in enumerate(ids, start=1)
    ])  # fmt: skip
    items = built(pair_items_stage(images, told, count=30, seed=3), root / "pairs-to-rate") / "pair_items.parquet"
    forms = export_stage(ExportFiles([images], items=items), "c3_captions", ExportOptions(Quotas(2, 0)), shortlist=3,
                         seed=3)  # fmt: skip
    project = built(forms, root / "to-rate")
    said = built(simulated_ratings_stage(project, truth, PEOPLE, seed=3), root / "answers") / ANSWERS_FILE
    answers = built(import_stage(project, [said], pool=None), root / "rated") / "annotations.parquet"
    built(worth_stage(selected, answers, truth), root / "worth")
    prompts = stored(root / "prompts", PROMPTS, [
        {"prompt_id": f"c-{number}", "text": text, "country": "CN", "concept": "stereotyping", "benchmark": "c3",
         "kind": "caption", "language": "en", "template_id": "caption"} for number, text in enumerate(CAPTIONS)
    ])  # fmt: skip
    drawn = built(generate_stage(prompts, ImagePlan(slots=2), backend=DIALS, model="m", seed=3), root / "images")
    built(image_truth_stage([drawn / "images.parquet"], prompts), root / "truth")
    built(captioned_images_stage(drawn / "images.parquet", prompts), root / "captioned")
    return root
