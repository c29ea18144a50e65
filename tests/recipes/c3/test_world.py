"""Captioned pictures of the simulated world: what is true of them, who rates them, what a selection is worth."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.generation.simulated.scenes.scenes_backend import LANGUAGE, all_named, named_in, spoken, understood
from culturekit.recipes.c3.world import alt_text, image_truth, pair_truth, ratings_of
from tests.recipes.c3.caption_pairs import PEOPLE, pair_world

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
    assert len(named) == said
    assert named <= {"bamboo garden", "hand drums", "samovar"}


def test_wrong_captions_name_what_is_not_shown() -> None:
    faulty = [all_named(named_in(alt_text(SCENE, str(n), names=1, wrong=0.5, seed=1))) for n in range(60)]
    right = sum(len(named & {"bamboo garden", "hand drums", "samovar"}) for named in faulty) / 180
    assert 0.35 < right < 0.65


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
