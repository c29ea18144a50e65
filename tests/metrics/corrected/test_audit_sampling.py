"""The draw of an audit: even over prompts and mapped labels, whatever the sizes of prompts."""

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample
from tests.metrics.corrected.audits_by_hand import matches_of

LABELS = tuple(f"C{number:02d}" for number in range(24))


def images_of(prompts: int, each: int, seed: int) -> pl.DataFrame:
    """A model whose prompts are all mapped alike, to few labels often and to many seldom."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 25)
    countries = [LABELS[label] for label in rng.choice(24, p=shares / shares.sum(), size=prompts * each)]
    return matches_of(list(countries), prompts=prompts)


def distance(matches: pl.DataFrame, drawn: pl.DataFrame, column: str) -> float:
    """How far the drawn images' shares of a column lie from those of all images, in absolute values."""
    every = matches.group_by(column).agg(share=pl.len() / matches.height)
    some = matches.join(drawn.select("image_id"), on="image_id", how="semi")
    met = some.group_by(column).agg(met=pl.len() / some.height)
    return float(
        every.join(met, on=column, how="left").select((pl.col("share") - pl.col("met").fill_null(0)).abs().sum()).item()
    )


@pytest.mark.parametrize(
    ("prompts", "each", "n"), [(150, 40, 150), (24, 40, 120), (100, 8, 80), (3, 400, 150), (7, 30, 60)]
)
def test_the_draw_is_never_farther_from_all_images_than_a_plain_one(prompts: int, each: int, n: int) -> None:
    matches = images_of(prompts, each, seed=1)
    for column in ("country", "prompt_id"):
        drawn, plain = [], []
        for seed in range(25):
            drawn.append(distance(matches, audit_sample(matches, n=n, rng=np.random.default_rng(seed)), column))
            plain.append(distance(matches, matches.sample(n, seed=seed), column))
        assert np.mean(drawn) <= 1.05 * np.mean(plain)


def test_prompts_of_the_size_of_a_step_meet_every_label() -> None:
    matches = images_of(150, 40, seed=2)
    drawn = audit_sample(matches, n=150, rng=np.random.default_rng(0))
    common = matches["country"].value_counts().filter(pl.col("count") > 200)["country"].to_list()
    assert set(common) <= set(drawn["stratum"])
    assert drawn["prompt_id"].n_unique() > 100  # a plain draw meets 95


@pytest.mark.parametrize(("images", "n"), [(10, 4), (7, 3), (9, 9)])
def test_each_image_is_drawn_as_often_as_its_chance_says(images: int, n: int) -> None:
    matches = images_of(1, images, seed=3).with_columns(prompt_id=pl.Series([f"p{i % 3}" for i in range(images)]))
    times = dict.fromkeys(matches["image_id"].to_list(), 0)
    rng = np.random.default_rng(4)
    for _ in range(400):
        drawn = audit_sample(matches, n=n, rng=rng)
        assert drawn.height == n
        assert drawn["chance"].unique().to_list() == [pytest.approx(n / images)]
        for image in drawn["image_id"]:
            times[image] += 1
    error = (400 * n / images * (1 - n / images)) ** 0.5
    assert max(abs(each - 400 * n / images) for each in times.values()) <= 4 * error


def concepts_of(sizes: dict[str, int]) -> pl.DataFrame:
    """Images of one model, so many of each concept."""
    return pl.concat(
        images_of(1, size, seed=5).with_columns(
            concept=pl.lit(concept), image_id=pl.concat_str(pl.lit(concept), "image_id")
        )
        for concept, size in sizes.items()
    )


@pytest.mark.parametrize(
    ("n", "sizes", "drawn"),
    [
        (150, {"a": 160, "b": 160, "c": 160, "d": 160}, {"a": 38, "b": 38, "c": 37, "d": 37}),
        (150, {"a": 1000, "b": 100}, {"a": 120, "b": 30}),
        (50, {"a": 100, "b": 100, "c": 10}, {"a": 30, "b": 30, "c": 10}),
        (150, {"a": 90}, {"a": 90}),
        (100, {"a": 300, "b": 100}, {"a": 70, "b": 30}),
    ],
)
def test_images_of_a_model_are_shared_among_its_concepts(n: int, sizes: dict[str, int], drawn: dict[str, int]) -> None:
    matches = concepts_of(sizes)
    found = audit_sample(matches, n=n, rng=np.random.default_rng(0), per="model")
    placed = found.join(matches.select("image_id", "concept"), on="image_id")
    assert dict(placed["concept"].value_counts().iter_rows()) == drawn
    for concept, count in drawn.items():
        assert placed.filter(concept=concept)["chance"].unique().to_list() == [pytest.approx(count / sizes[concept])]


def test_of_each_concept_so_many_are_drawn_when_asked() -> None:
    matches = concepts_of({"a": 160, "b": 160, "c": 160, "d": 160})
    assert audit_sample(matches, n=150, rng=np.random.default_rng(0)).height == 600
    with pytest.raises(UsageError, match="per"):
        audit_sample(matches, n=150, rng=np.random.default_rng(0), per="cell")  # type: ignore[arg-type]
