"""Scores of skin tones: histogram, spread, warnings, groups and people."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import SCORES, VALUES
from culturekit.metrics import CATALOG, tone_histogram, tone_spread
from culturekit.metrics.linguistic.tone_histograms import corrected_tones
from culturekit.recipes.linguistic.tones import ToneOptions, score_tones, sees
from culturekit.recipes.linguistic.tones import tones as tone_family
from culturekit.scores.family import Scored
from tests.recipes.linguistic.score_world import annotations, images, prompts


def conforming(answer: Scored) -> pl.DataFrame:
    assert SCORES.problems(answer.scores) == []
    assert VALUES.problems(answer.values) == []
    assert set(answer.scores["metric"]) <= set(CATALOG)
    return answer.scores


def world(*, pairs: int = 12, per: int = 3, seed: int = 0) -> tuple[dict[str, int | None], pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    rows, tones = [], {}
    for pair in range(pairs):
        for group in ("SAE", "AAE"):
            for number in range(per):
                image = f"{group}-{pair}-{number}"
                rows.append((image, "model", f"{group}-{pair}"))
                tones[image] = None if rng.random() < 0.1 else int(rng.integers(1, 11))
    asked = [(f"{group}-{pair}", group, f"pair {pair}") for pair in range(pairs) for group in ("SAE", "AAE")]
    return tones, images(rows), prompts(asked)


def test_scores_are_those_of_the_histogram_per_group_and_over_all() -> None:
    tones, pictures, asked = world()
    scores = conforming(score_tones(tones, pictures, asked, options=ToneOptions()))
    for group, own in (("SAE", "SAE"), ("AAE", "AAE"), (None, "")):
        seen = [tone for image, tone in tones.items() if image.startswith(own) and tone is not None]
        histogram, spread = tone_histogram(seen), tone_spread(tone_histogram(seen))
        part = scores.filter(pl.col("group").eq_missing(group))
        shares = part.filter(metric="tone_share").with_columns(tone=pl.col("params").str.json_path_match("$.tone"))
        assert shares.sort(pl.col("tone").cast(pl.Int64))["value"].to_numpy() == pytest.approx(histogram)
        assert shares["value"].sum() == pytest.approx(1)
        for metric, value in (("tone_std", spread.std), ("tone_mad", spread.mad)):
            row = part.filter(metric=metric).row(0, named=True)
            assert row["value"] == pytest.approx(value)
            assert row["ci_low"] < row["ci_high"]
            assert json.loads(row["params"]) == {
                "detector": "ita", "images_left_out": sum(t is None for i, t in tones.items() if i.startswith(own)),
                "sees": sees("ita"),
            }  # fmt: skip


def test_the_warning_travels_with_every_number_of_the_published_rule() -> None:
    tones, pictures, asked = world()
    answer = score_tones(tones, pictures, asked, options=ToneOptions(detector="dall-eval"))
    for params in [*conforming(answer)["params"], *answer.values["params"]]:
        assert "cannot see dark skin" in json.loads(params)["warning"]
    assert all("cannot see dark skin" in " ".join(CATALOG[name].pitfalls) for name in set(answer.scores["metric"]))


def test_values_are_what_the_mean_tone_is_the_mean_of() -> None:
    tones, pictures, asked = world(pairs=25, per=1)
    tones = {image: tone or 5 for image, tone in tones.items()}
    answer = score_tones(tones, pictures, asked, options=ToneOptions())
    row = conforming(answer).filter(metric="mean_tone", group="AAE").row(0, named=True)
    values = answer.values.filter(metric="mean_tone", group="AAE")
    assert row["params"] == values["params"][0]
    assert row["value"] == pytest.approx(values["value"].mean())
    assert dict(values.select("item", "value").iter_rows()) == {i: t for i, t in tones.items() if i.startswith("AAE")}
    assert json.loads(row["params"])["target"] == "population"


def test_people_are_pools_and_share_a_picture_among_their_tones() -> None:
    _, pictures, asked = world(pairs=1, per=2)
    people = annotations(
        [
            ("SAE-0-0", "a", "US", 2), ("SAE-0-0", "b", "US", 4), ("SAE-0-1", "a", "US", None),
            ("SAE-0-1", "b", "US", 9), ("SAE-0-0", "c", "IN", 1), ("AAE-0-0", "a", "US", 11), ("x", "a", "US", 1),
        ],
        criterion="monk_tone",
    )  # fmt: skip
    answer = score_tones({}, pictures, asked, people, options=ToneOptions())
    scores = conforming(answer).filter(group="SAE", metric="tone_share")
    found = {
        (json.loads(row["params"])["pool"], json.loads(row["params"])["tone"]): row["value"]
        for row in scores.iter_rows(named=True) if row["value"]
    }  # fmt: skip
    assert found == {("IN", 1): 1.0, ("US", 2): 0.25, ("US", 4): 0.25, ("US", 9): 0.5}
    assert answer.left_out["malformed: tones that are not 1 to 10"] == 1


def test_who_saw_nobody_counts_against_a_tone_where_people_put_the_rule_right() -> None:
    tones, pictures, asked = world()
    seen = [image for image, tone in tones.items() if tone is not None]
    second = {image: None if place % 3 == 0 else tones[image] for place, image in enumerate(seen)}
    said = [(image, who, "US", tone) for who, own in (("a", tones), ("b", second)) for image, tone in own.items()
            if image in second]  # fmt: skip
    drawn = pictures.filter(pl.col("image_id").is_in(seen)).select(
        "image_id", "model", "prompt_id", concept=pl.lit("c"), stratum=pl.lit("s"), chance=pl.lit(1.0)
    )
    people = annotations(said, criterion="monk_tone")
    scores = conforming(score_tones(tones, pictures, asked, people, drawn, options=ToneOptions()))
    named = np.full((len(tones), 10), np.nan)
    rule = np.zeros((len(tones), 10))
    for row, (image, tone) in enumerate(tones.items()):
        if tone is not None:
            rule[row, tone - 1], named[row] = 1, 0
            named[row, tone - 1] = 0.5 if second[image] is None else 1  # it was 1: two people, it said, had named it
    answers = np.where(np.isnan(named).any(axis=1), 0, 2)
    expected = corrected_tones(rule, named, answers=answers)
    about = pl.col("params").str
    found = scores.filter(about.json_path_match("$.labels") == "corrected", pl.col("group").is_null())
    std = found.filter(metric="tone_std").row(0, named=True)
    assert (std["ci_low"], std["ci_high"]) == pytest.approx((expected.std.low, expected.std.high))


def test_one_prompt_has_no_interval_and_says_why() -> None:
    tones, pictures, asked = world(pairs=1)
    scores = conforming(score_tones(tones, pictures, asked, options=ToneOptions()))
    row = scores.filter(metric="tone_std", group="SAE").row(0, named=True)
    assert row["ci_low"] is None
    assert "a single prompt" in json.loads(row["params"])["no_interval"]


def test_order_does_not_matter() -> None:
    tones, pictures, asked = world()
    options = ToneOptions()
    answer = score_tones(tones, pictures, asked, options=options)
    again = score_tones(dict(reversed(tones.items())), pictures.reverse(), asked.reverse(), options=options)
    assert again.scores.equals(answer.scores)
    assert again.values.equals(answer.values)


def test_pictures_without_skin_everywhere_are_a_mistake() -> None:
    _, pictures, asked = world(pairs=1)
    with pytest.raises(UsageError, match="no picture has a skin tone"):
        score_tones({}, pictures, asked, options=ToneOptions())


def test_answers_about_something_else_are_refused_or_counted() -> None:
    tones, pictures, asked = world()
    other = annotations([(image, "a", "US", 3) for image in tones], criterion="correct")
    with pytest.raises(UsageError, match="no annotation is of the criterion 'monk_tone'; found correct"):
        score_tones(tones, pictures, asked, other, options=ToneOptions())
    strange = annotations([(f"x{image}", "a", "US", 3) for image in tones], criterion="monk_tone")
    left_out = score_tones(tones, pictures, asked, strange, options=ToneOptions()).left_out
    assert left_out["pictures whose tones people named, and that are none of these"] == len(tones)
    with pytest.raises(UsageError, match="a sample puts nothing right without answers"):
        sample = Files([Path("audit_sample.parquet")])
        tone_family.stage(Numbered([Path("images.parquet")]), sample=sample, options=ToneOptions())
