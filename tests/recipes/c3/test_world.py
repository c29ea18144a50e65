"""Captioned pictures of the simulated world: what is true of them, who rates them, what a selection is worth."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.captions.caption_files import translate
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.core.schemas import PROMPTS, SELECTED
from culturekit.generation.runner import ImagePlan
from culturekit.generation.simulated.scenes.scenes_backend import LANGUAGE, all_named, named_in, spoken, understood
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.people.export import ExportOptions
from culturekit.people.stages import ANSWERS_FILE, ExportFiles, export_stage, import_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.c3.pairs import captioned_images_stage, pair_items_stage, worth_stage
from culturekit.recipes.c3.world import (
    alt_text,
    alt_texts_stage,
    collection_prompts_stage,
    image_truth,
    image_truth_stage,
    pair_truth,
    pair_truth_stage,
    ratings_of,
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


SCENE = {
    "country": "CN",
    "shown": {"background": ["bamboo garden"], "objects": ["hand drums", "samovar"], "attire": [], "interaction": [],
              "spatial": []},
    "stereotypes": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pair_world(tmp_path_factory.mktemp("pairs"))


def test_a_picture_deserves_what_it_shows_of_its_caption() -> None:
    deserved = image_truth("hand drums and a qipao dress in a bamboo garden", SCENE)
    assert deserved["object_presence"] == pytest.approx(2 / 3)
    assert deserved["semantic_consistency"] == pytest.approx(4 / 6)
    assert deserved["cultural_appropriateness"] == 0  # the samovar is of elsewhere, and nobody asked for it
    overdone = image_truth("a samovar", {**SCENE, "stereotypes": {"red dragon": 1.0, "panda": 1.0}})
    assert overdone["cultural_appropriateness"] == 0.5
    assert image_truth("nothing that is known", SCENE)["object_presence"] == 0


def test_a_translation_deserves_what_it_says_of_caption_and_picture() -> None:
    source = spoken("A photo of hand drums, qipao dress")
    deserved = pair_truth(source, "A photo of hand drums, brass tuba", SCENE)
    assert deserved["adequacy"] == pytest.approx(1 / 2)
    assert deserved["relevance"] == pytest.approx(2 / 5)
    assert deserved["context"] == pytest.approx(1 / 3)
    assert deserved["cultural_appropriateness"] == 0.5


@pytest.mark.parametrize(("names", "wrong", "said"), [(1.0, 0.0, 3), (0.0, 0.0, 0)])
def test_a_caption_of_the_web_names_what_it_is_dialled_to(names: float, wrong: float, said: int) -> None:
    text = alt_text(SCENE, "image", names=names, wrong=wrong, seed=1)
    named = all_named(named_in(text))
    shown = {"bamboo garden", "hand drums", "samovar"}
    assert len(named) == said
    assert named <= shown
    faulty = [all_named(named_in(alt_text(SCENE, str(n), names=1, wrong=0.5, seed=1))) for n in range(60)]
    assert 0.35 < sum(len(each & shown) for each in faulty) / 180 < 0.65


def test_people_rate_around_what_is_deserved() -> None:
    def rated(value: float) -> list[float]:
        row = {"item_id": "i", "kind": "item"}
        known = {("i", "relevance"): value}
        people = (
            ratings_of(f"p{n}", row, criteria=["relevance"], deserved=known, how=PEOPLE, seed=1) for n in range(200)
        )
        return [float(person["relevance"]) for person in people]

    assert sum(rated(2.4)) / 200 == pytest.approx(2.4, abs=0.15)
    assert set(rated(5.0)) <= {4.0, 5.0}


def test_captions_are_in_another_language_and_translated_back(world: Path) -> None:
    texts = pl.read_parquet(world / "alt-texts/captions.parquet")
    assert set(texts["language"]) == {LANGUAGE}
    assert not any(all_named(named_in(text)) for text in texts["text"])
    told = dict(pl.read_parquet(world / "translated/translations.parquet").select("id", "text").iter_rows())
    share = [len(all_named(named_in(told[key])) & all_named(named_in(understood(text)))) for key, text in
             texts.select("id", "text").iter_rows()]  # fmt: skip
    assert sum(share) > 0
    assert pl.read_parquet(world / "alt-texts/rights.parquet")["licence"].unique().to_list() == ["CC0-1.0"]


def test_the_worth_of_a_selection_is_the_mean_over_what_it_keeps(world: Path) -> None:
    scores = pl.read_parquet(world / "worth/scores.parquet").with_columns(
        **{name: pl.col("params").str.json_path_match(f"$.{name}") for name in ("criterion", "labels")}
    )
    truth = pl.read_parquet(world / "pair-truth/values.parquet").with_columns(
        criterion=pl.col("params").str.json_path_match("$.criterion")
    )
    deserved = dict(truth.filter(criterion="relevance").select("item", "value").iter_rows())
    kept = pl.read_parquet(world / "selected/selected.parquet").filter("kept", strategy="c3")["item"]
    row = scores.filter(model="c3", criterion="relevance", labels="truth").row(0, named=True)
    assert row["value"] == pytest.approx(sum(deserved[item] for item in kept) / len(kept))
    assert row["n"] == 10
    rated = scores.filter(model="random", criterion="relevance", labels="people").row(0, named=True)
    assert rated["ci_low"] < rated["value"] < rated["ci_high"]
    assert 20 <= rated["n"] < 27  # of 27 that are kept: 30 of 36 were drawn for people
