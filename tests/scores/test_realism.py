"""Realism of models with unequal images, references that weigh the same, and what distances may be called."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics.realism.features import called, check_extractor, licence_of
from culturekit.metrics.realism.set_distances import frechet_distance
from culturekit.scores.inputs import LabelledVectors
from culturekit.scores.realism import (
    RealismInput,
    RealismMeans,
    RealismOptions,
    balanced_references,
    equal_images,
    score_realism,
)
from tests.scores.picture_tables import image_table, pictured

UNEQUAL = {"a": {"p": 12, "q": 12}, "b": {"p": 12, "q": 7}, "c": {"p": 9, "q": 12}}
PORTED = {"name": "inception features", "revision": "TensorFlow 2015-12-05, ported"}


def real(n: int = 40, *, concepts: tuple[str | None, ...] = ("art",)) -> tuple[pl.DataFrame, LabelledVectors]:
    """Draw real images: of the first concept half as many as of the others, of the country FR many."""
    rows = [
        {"image_id": f"real-{number}", "model": "real", "concept": concepts[number % len(concepts)],
         "country": "FR" if number % 5 else "IN"}
        for number in range(n)
    ]  # fmt: skip
    vectors = np.random.default_rng(9).normal(size=(n, 6)).astype(np.float32)
    return image_table(rows), LabelledVectors(vectors, [str(row["image_id"]) for row in rows])


def scores(given: RealismInput, **options: Any) -> pl.DataFrame:
    return score_realism(given, options=replace(RealismOptions(k=3), **options)).scores


def given(counts: dict[str, dict[str, int]]) -> RealismInput:
    images, vectors = pictured(counts)
    references, shown = real()
    return RealismInput(shown, vectors, images, references)


def test_an_image_that_is_real_and_generated_is_refused() -> None:
    one = given(UNEQUAL)
    with pytest.raises(UsageError, match="40 images are both real and generated"):
        score_realism(replace(one, fake=one.real, images=None), options=RealismOptions(k=3))
    named = LabelledVectors(one.real.vectors + 1, one.real.ids)  # numbered alike, and other pictures
    assert score_realism(replace(one, fake=named, images=None), options=RealismOptions(k=3)).scores.height


def test_no_photograph_at_all_is_said_in_words() -> None:
    one = given(UNEQUAL)
    with pytest.raises(UsageError, match="there is no real image to score"):
        score_realism(replace(one, real=LabelledVectors(one.real.vectors[:0], [])), options=RealismOptions(k=3))


def test_every_model_has_the_number_of_the_one_with_fewest() -> None:
    images, _ = pictured(UNEQUAL)
    equal = equal_images(images, seed=4)
    assert dict(Counter(equal.images.select("model", "prompt_id").iter_rows())) == {
        (model, prompt): {"p": 9, "q": 7}[prompt] for model in "abc" for prompt in "pq"
    }
    assert equal.left_out == images.height - 48
    assert equal.images["image_id"].to_list() == [
        one for one in images["image_id"] if one in set(equal.images["image_id"])
    ]
    assert equal.images.equals(equal_images(images.sample(fraction=1.0, shuffle=True, seed=1), seed=4).images.sort(
        pl.col("image_id").replace_strict({one: number for number, one in enumerate(images["image_id"])})
    ))  # fmt: skip
    other = equal_images(images, seed=5).images
    assert other.height == equal.images.height
    assert not other.equals(equal.images)


@pytest.mark.parametrize(("most", "wanted"), [(16, (9, 7)), (15, (8, 7)), (12, (6, 6)), (5, (3, 2)), (2, (1, 1))])
def test_no_more_are_drawn_than_wanted_and_prompts_give_alike(most: int, wanted: tuple[int, int]) -> None:
    images, _ = pictured(UNEQUAL)
    equal = equal_images(images, seed=4, most=most)
    counts = Counter(equal.images.select("model", "prompt_id").iter_rows())
    assert {(counts[model, "p"], counts[model, "q"]) for model in "abc"} == {wanted}
    assert equal.params.get("most") == (None if most == 16 else most)
    alone = equal_images(images.filter(model="a"), seed=4, most=most).images
    assert alone.height == most


def test_models_without_a_common_prompt_have_the_smallest_number() -> None:
    images, _ = pictured({"a": {"p": 9}, "b": {"q": 5}})
    equal = equal_images(images, seed=0)
    assert dict(Counter(equal.images["model"])) == {"a": 5, "b": 5}
    assert equal.params["equal"] == "as many as the model with the fewest has"
    bare = images.with_columns(prompt_id=pl.lit(None, pl.String))
    assert dict(Counter(equal_images(bare, seed=0).images["model"])) == {"a": 5, "b": 5}
    assert equal_images(images.filter(model="a"), seed=0).params == {}


def test_a_distance_of_fewer_images_than_dimensions_says_so(caplog: pytest.LogCaptureFixture) -> None:
    data = given({"a": {"p": 6}, "b": {"p": 6}})
    told = scores(data).filter(metric="frechet_distance")["params"].str.json_path_match("$.few_images")
    assert (told.null_count(), caplog.records) == (2, [])
    wide = replace(data, real=widened(data.real), fake=widened(data.fake))
    told = scores(wide).filter(metric="frechet_distance")["params"].str.json_path_match("$.few_images")
    assert set(told) == {"6 images, fewer than the 7 dimensions: not how a set spreads in all of them"}
    assert [record.getMessage()[:22] for record in caplog.records] == ["2 Fréchet distances of"]


def widened(given: LabelledVectors) -> LabelledVectors:
    return replace(given, vectors=np.hstack([given.vectors, given.vectors[:, :1] ** 2]))


def test_the_distances_are_those_of_the_images_drawn() -> None:
    data = given(UNEQUAL)
    table = scores(data)
    assert table.filter(metric="frechet_distance")["n"].to_list() == [16, 16, 16]
    assert data.images is not None
    drawn = equal_images(data.images, seed=0).images
    place = {name: row for row, name in enumerate(data.fake.ids)}
    for model in "abc":
        rows = sorted(place[name] for name in drawn.filter(model=model)["image_id"])
        wanted = frechet_distance(data.real.vectors, data.fake.vectors[rows])
        found = table.filter(metric="frechet_distance", model=model)
        assert found["value"].item() == pytest.approx(wanted, rel=1e-9)
        told = json.loads(found["params"].item())
        assert (told["n_fake"], told["equal_seed"]) == (16, 0)
        assert told["no_interval"]
        assert found["ci_low"].item() is None
    assert scores(data, equal=False).filter(metric="frechet_distance")["n"].to_list() == [24, 19, 21]


def test_density_is_never_said_to_be_below_nothing() -> None:
    data = given({"a": {"p": 12, "q": 12}})
    far = replace(data.fake, vectors=data.fake.vectors + np.linspace(0, 9, 24, dtype=np.float32)[:, None])
    (row,) = scores(replace(data, fake=far)).filter(metric="prdc_density").rows(named=True)
    assert 0 < row["value"] < row["ci_high"]
    assert row["ci_low"] == 0.0  # it was below


def test_references_weigh_the_same_by_concept_and_take_turns_by_country() -> None:
    references, _ = real(60, concepts=("art", "food", "food"))
    made, _ = pictured({"a": {"p": 4}}, concept="art")
    two = pl.concat([made, made.with_columns(concept=pl.lit("food"), image_id=pl.lit("x") + pl.col("image_id"))])
    drawn = balanced_references(references, two, seed=3)
    assert dict(Counter(drawn.images["concept"])) == {"art": 20, "food": 20}
    food = Counter(drawn.images.filter(concept="food")["country"])
    assert food["IN"] == min(references.filter(concept="food", country="IN").height, 10)
    assert drawn.params["per_concept"] == 20
    alone = balanced_references(references, made, seed=3)
    assert set(alone.images["concept"]) == {"art"}
    unplaced = references.with_columns(concept=pl.lit(None, pl.String))
    assert balanced_references(unplaced, made, seed=3).images.equals(unplaced)


def test_concepts_with_too_few_images_are_counted() -> None:
    data = given({"a": {"p": 12}, "b": {"p": 12}})
    by = RealismMeans(by=(("concept",),))
    enough = score_realism(data, options=RealismOptions(k=3, balanced=True, fewest=12, means=by))
    assert enough.scores.filter(metric="frechet_distance", concept="art").height == 2
    few = score_realism(data, options=RealismOptions(k=3, balanced=True, fewest=13, means=by))
    assert few.scores.filter(pl.col("concept").is_not_null()).is_empty()
    assert few.left_out["cells with fewer than 13 images, real or generated"] == 2


def test_references_are_balanced_without_levels_too() -> None:
    images, vectors = pictured({"a": {"p": 12}, "b": {"p": 12}})
    references, shown = real(60, concepts=("art", "food", "food"))
    data = RealismInput(shown, vectors, images, references)
    told = [json.loads(text) for text in scores(data, balanced=True).filter(metric="frechet_distance")["params"]]
    assert {(one["n_real"], one["per_concept"]) for one in told} == {(20, 20)}
    told = [json.loads(text) for text in scores(data).filter(metric="frechet_distance")["params"]]
    assert {(one["n_real"], one["references"]) for one in told} == {(60, "all")}


def test_the_concept_with_the_fewest_real_images_is_named_where_it_costs_the_others() -> None:
    images, vectors = pictured({"a": {"p": 12}, "b": {"p": 12}})
    images = images.with_columns(
        concept=pl.when(pl.col("image_id").cum_count() % 2 == 0).then(pl.lit("art")).otherwise(pl.lit("food"))
    )
    references, shown = real(60, concepts=("art", "food", "food"))
    data = RealismInput(shown, vectors, images, references)
    left_out = score_realism(data, options=RealismOptions(k=3, balanced=True)).left_out
    assert left_out["real images, as each concept gives as many as art has: 20"] == 20


def test_real_images_without_a_place_are_scored_over_all() -> None:
    data = given({"a": {"p": 12}, "b": {"p": 12}})
    assert data.references is not None
    bare = replace(data, references=data.references.with_columns(concept=pl.lit(None, pl.String), country=None))
    by = RealismMeans(by=(("concept",),))
    found = score_realism(bare, options=RealismOptions(k=3, balanced=True, means=by))
    assert set(found.scores["concept"]) == {None}
    assert any("levels" in reason for reason in found.left_out)
    with pytest.raises(UsageError, match="no cell has both"):
        score_realism(bare, options=RealismOptions(k=3, means=by))


def test_the_inception_score_is_of_the_images_drawn_or_left_out() -> None:
    data = given(UNEQUAL)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(5), size=len(data.fake.ids)).astype(np.float32)
    with_probs = replace(data, probs=LabelledVectors(probabilities, data.fake.ids))
    told = scores(with_probs, splits=4).filter(metric="inception_score")
    assert told["n"].to_list() == [16, 16, 16]
    assert all("no_interval" in json.loads(text) for text in told["params"])
    others = replace(data, probs=LabelledVectors(probabilities, [f"other-{name}" for name in data.fake.ids]))
    with pytest.raises(UsageError, match=r"no class probabilities are of a known image.*ids such as 'other-"):
        scores(others, splits=4)
    few = score_realism(with_probs, options=RealismOptions(k=3, splits=17))
    assert few.scores.filter(metric="inception_score").is_empty()
    assert few.left_out["models with fewer than 17 images, the splits of the inception score"] == 3


@pytest.mark.parametrize(
    ("encoder", "fid", "kid"),
    [
        (PORTED, "FID", "KID"),
        ({"name": "embedded"}, "Fréchet distance on embedded", "Kernel distance on embedded"),
        ({"name": "inception"}, "Fréchet distance on inception", "Kernel distance on inception"),
        ({}, "Fréchet distance on unknown", "Kernel distance on unknown"),
    ],
)
def test_only_pool3_of_inception_gives_a_fid(encoder: dict[str, str], fid: str, kid: str) -> None:
    assert (called("frechet_distance", encoder), called("kernel_distance", encoder)) == (fid, kid)
    table = scores(given(UNEQUAL), encoder=encoder)
    told = [json.loads(text) for text in table.filter(metric="frechet_distance")["params"]]
    assert {one["called"] for one in told} == {fid}
    assert {one["licence"] for one in told} == {licence_of(encoder)}


def test_torchvisions_weights_are_told_from_the_published_ones() -> None:
    other = called("frechet_distance", {**PORTED, "revision": "torchvision"})
    assert other.startswith("FID with torchvision")
    assert "Apache" in licence_of(PORTED)
    assert "BSD" in licence_of({"name": "inception features", "revision": "torchvision"})
    assert licence_of({"name": "embedded"}) == "no weights"
    assert "say nothing" in licence_of({"name": "transformers"})


@pytest.mark.parametrize("name", ["inception", "inception probabilities"])
def test_unit_vectors_and_probabilities_of_inception_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="give=features") as found:
        check_extractor({"name": name}, where="folder")
    assert "folder" in str(found.value)
    check_extractor(PORTED, where="folder")
