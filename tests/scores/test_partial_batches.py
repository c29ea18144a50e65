"""Images that are missing here and there: what is scored is full batches of what is there, and the rest is counted."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.schemas import QUALITY
from culturekit.metrics import vendi
from culturekit.scores.compare import ComparisonOptions, score_comparisons
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.scores.test_routes import NEAREST

COUNTRY = (0.0, 1.0, 0.0)
LABELS = ("continent", "country", "artifact")


def thinned(seed: int, share: float) -> pl.DataFrame:
    """Take images away at random; of one model a whole prompt."""
    gone = np.random.default_rng(seed).random(NEAREST.height) < share
    lost = (pl.col("model") == "b") & (pl.col("concept") == "art")
    return NEAREST.filter(~pl.Series(gone)).filter(~lost)


def by_hand(images: pl.DataFrame, *, partial: str) -> tuple[float, int]:
    """Average VS/8 over batches, repeats and prompts, one loop each."""
    prompts, entered = [], 0
    for _, prompt in images.sort("prompt_id").group_by("prompt_id", maintain_order=True):
        repeats = []
        for _, repeat in prompt.sort("repeat", "slot").group_by("repeat", maintain_order=True):
            if repeat.height == 8 or partial == "paper":
                repeats.append(vendi(repeat.select(LABELS), weights=COUNTRY) / 8)
                entered += repeat.height
        if repeats:
            prompts.append(float(np.mean(repeats)))
    return (float(np.mean(prompts)) if prompts else float("nan")), entered


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.02, 0.1, 0.4]), partial=st.sampled_from(["drop", "paper"]))
def test_scores_are_of_what_is_there_and_count_the_rest(seed: int, share: float, partial: str) -> None:
    images = thinned(seed, share)
    options = QvsOptions(kernels=(COUNTRY,), partial=partial)  # type: ignore[arg-type]
    for row in score_qvs(images, None, options=options).scores.iter_rows(named=True):
        own = images.filter(model=row["model"], concept=row["concept"])
        expected, entered = by_hand(own, partial=partial)
        assert row["value"] == pytest.approx(expected, nan_ok=True)
        assert (row["n"], json.loads(row["params"])["images_left_out"]) == (entered, own.height - entered)


def test_images_without_quality_leave_their_batch_out_of_qvs_and_are_not_in_the_mean_of_quality() -> None:
    one = NEAREST.filter(model="c", concept="art")
    quality = pl.DataFrame({"image_id": one["image_id"], "scorer": "s", "value": 0.5}, schema=QUALITY.schema)
    lacking = quality.filter(~pl.col("image_id").is_in(["c-art-0-1", "c-art-2-6"]))
    scores = score_qvs(one, lacking, options=QvsOptions(kernels=(COUNTRY,))).scores
    found = {row["metric"]: row for row in scores.iter_rows(named=True)}
    assert (found["quality"]["n"], found["quality"]["value"]) == (30, 0.5)
    assert (found["qvs"]["n"], json.loads(found["qvs"]["params"])["images_left_out"]) == (16, 16)
    assert (found["vs"]["n"], json.loads(found["vs"]["params"])["images_left_out"]) == (32, 0)


def test_models_are_compared_on_common_prompts_however_many_images_each_has() -> None:
    """Model b has no image of art; c has lost half of them and shows one country there: it is compared all the same."""
    art_of_c = (pl.col("model") == "c") & (pl.col("concept") == "art")
    images = thinned(0, 0.0).filter(~(art_of_c & (pl.col("repeat") > 1)))
    one_country = pl.when(art_of_c).then(pl.lit("BR")).otherwise(pl.col("country"))
    images = images.with_columns(country=one_country).with_columns(concept=pl.lit(None, pl.String))
    scored = score_qvs(images, None, options=QvsOptions(kernels=(COUNTRY,)))
    found = {}
    for row in score_comparisons(scored.values, options=ComparisonOptions(target="these")).scores.iter_rows(named=True):
        params = json.loads(row["params"])
        found[row["model"]] = (params["common"], params["left_out"], params["prompts"], row["n"])
    assert found["a - b"][:2] == (1, 1)
    assert found["a - c"][:2] == (2, 0)
    assert found["b - c"][:2] == (1, 1)
    means = dict(scored.scores.select("model", "value").iter_rows())
    cuisine = by_prompt(scored.values, "p-cuisine")
    difference = score_comparisons(scored.values, options=ComparisonOptions(target="these")).scores
    value = dict(difference.select("model", "value").iter_rows())["b - c"]
    assert value == pytest.approx(cuisine["b"] - cuisine["c"])
    assert value != pytest.approx(means["b"] - means["c"])


def by_prompt(values: pl.DataFrame, prompt: str) -> dict[str, float]:
    """Average the values of one prompt for each model."""
    return dict(values.filter(prompt_id=prompt).group_by("model").agg(pl.col("value").mean()).iter_rows())
