"""Scores of `linguistic`: groups, dialects, and tones of skin."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import SCORES, VALUES
from culturekit.metrics import (
    CATALOG,
    dialect_gap,
    likert_table,
    neutral_similarity,
    neutral_spread,
    question_pair,
    tone_histogram,
    tone_spread,
)
from culturekit.metrics import relevance_rates as rates_of_choices
from culturekit.metrics.linguistic.tone_histograms import corrected_tones
from culturekit.recipes.linguistic.scores import (
    DialectGapOptions,
    NeutralOptions,
    QuestionPairOptions,
    score_dialects,
    score_neutral,
    score_question_pairs,
)
from culturekit.recipes.linguistic.tones import ToneOptions, score_tones, sees
from culturekit.recipes.linguistic.tones import tones as tone_family
from culturekit.scores.family import Scored
from culturekit.scores.ratings import RatingOptions, score_ratings
from tests.recipes.linguistic.score_world import annotations, images, prompts, quality

GROUPS = ("Africa", "Asia and the Pacific", "Europe and Russia")


def spoken(pairs: int = 15) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, float]]:
    rng = np.random.default_rng(0)
    pictures, scores = [], {}
    for model in ("one", "two"):
        for pair in range(pairs):
            for group in ("SAE", "AAE", "Singlish"):
                for number in range(2):
                    image = f"{model}-{group}-{pair}-{number}"
                    pictures.append((image, model, f"{group}-{pair}"))
                    scores[image] = float(rng.normal(27 if group == "SAE" else 25, 2))
    asked = [
        (f"{group}-{pair}", group, f"pair {pair}") for pair in range(pairs) for group in ("SAE", "AAE", "Singlish")
    ]
    return images(pictures), prompts(asked), scores


def test_dialects_are_compared_per_model_at_scale_one() -> None:
    pictures, asked, scores = spoken()
    answer = score_dialects(pictures, asked, quality(scores), options=DialectGapOptions(scale=100))
    table = conforming(answer)
    assert answer.left_out == {"images of other groups": 60}
    for model in ("one", "two"):
        row = table.filter(metric="dialect_gap", model=model).row(0, named=True)
        sides = {
            group: {image: score / 100 for image, score in scores.items() if image.startswith(f"{model}-{group}-")}
            for group in ("SAE", "AAE")
        }
        expected = dialect_gap(
            {group: list(side.values()) for group, side in sides.items()},
            {group: [image.split("-")[2] for image in side] for group, side in sides.items()},
            rng=np.random.default_rng(0),
        )
        assert row["value"] == pytest.approx(expected.difference)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((expected.interval.low, expected.interval.high))
        assert row["group"] == "SAE - AAE"
        params = json.loads(row["params"])
        assert (params["of"], params["scale"], params["pairs"], params["left_out"]) == ("clip", 100, 15, 0)
        assert 0 < params["p"] < 0.05
        means = dict(table.filter(metric="dialect_score", model=model).select("group", "value").iter_rows())
        assert means["SAE"] - means["AAE"] == pytest.approx(row["value"])
    values = answer.values.filter(model="one", group="SAE")
    assert values["prompt_id"].unique().len() == 15
    assert score_dialects(
        pictures.reverse(), asked, quality(scores), options=DialectGapOptions(scale=100)
    ).scores.equals(table)


def test_people_judge_dialects_pool_by_pool() -> None:
    pictures, asked, scores = spoken(4)
    people = annotations(
        [(image, who, pool, "Yes" if "SAE" in image or pool == "IN" else "no") for image in scores
         for who, pool in (("a", "US"), ("b", "IN"))] + [("one-SAE-0-0", "c", "US", "perhaps")],
        criterion="correct", scheme="linguistic_dialect",
    )  # fmt: skip
    answer = score_dialects(pictures, asked, annotations=people, options=DialectGapOptions())
    gaps = conforming(answer).filter(metric="dialect_gap", model="one")
    found = {json.loads(params)["pool"]: value for params, value in gaps.select("params", "value").iter_rows()}
    assert found == {"US": 1.0, "IN": 0.0}
    assert answer.left_out["verdicts that are neither yes nor no"] == 1


def test_a_model_of_which_nobody_saw_both_of_a_pair_has_no_gap_and_the_others_do() -> None:
    pictures, asked, scores = spoken()
    one = {name: score for name, score in scores.items() if not name.startswith("two")}
    apart = {name: score for name, score in scores.items() if name.startswith("two")
             and (name.startswith("two-SAE") == (int(name.split("-")[2]) % 2 == 0))}  # fmt: skip
    answer = score_dialects(pictures, asked, quality(one | apart), options=DialectGapOptions())
    assert answer.scores.filter(metric="dialect_gap")["model"].to_list() == ["one"]  # all of them were refused
    assert answer.left_out["gaps of which nobody looked at both of a pair of prompts"] == 1
    with pytest.raises(UsageError, match="no prompt of one dialect has pictures of its twin in the other"):
        score_dialects(pictures, asked, quality(apart), options=DialectGapOptions())


def test_dialects_with_nothing_to_compare_are_a_mistake() -> None:
    pictures, asked, scores = spoken(2)
    known, how = (quality(scores), None), DialectGapOptions
    said = annotations([(image, "a", "US", "yes") for image in scores], criterion="monk_tone", scheme="other")
    for given, options, message in (
        ((None, None), how(), "nothing to compare dialects by"),
        ((quality({"x": 1.0}), None), how(), "no picture of a prompt in 'SAE' or 'AAE' has a score"),
        (known, how(standard="RP"), "no prompt is in 'RP'; expected 'AAE' or 'SAE' or 'Singlish'"),
        (known, how(other="SAE"), "a dialect has no gap to itself"),
        ((known[0], said), how(), "no annotation is of the criterion 'correct'; found monk_tone"),
        (known, how(pair=("noun",)), "prompts have no such column"),
        (known, how(pair=("concept",)), "no prompt has concept"),
        (known, how(scale=0), "scale must be a number above 0"),
    ):
        with pytest.raises(UsageError, match=message):
            score_dialects(pictures, asked, *given, options=options)


def test_scores_of_other_images_and_images_without_a_score_are_counted() -> None:
    pictures, asked, scores = spoken()
    half = {f"x{name}" if name.startswith("two") else name: score for name, score in scores.items()}
    half["one-SAE-0-0"] = float("nan")
    answer = score_dialects(pictures, asked, quality(half), options=DialectGapOptions(scale=100))
    assert set(answer.scores["model"]) == {"one"}  # nothing was said of the other
    assert answer.left_out == {
        "images of other groups": 60,
        "scores that are no number": 1,
        "scores that are of no known image, by clip": 90,
        "images of both dialects without a score, by clip": 61,
    }


def neutral_world(nouns: int = 6) -> tuple[pl.DataFrame, pl.DataFrame, np.ndarray, list[str]]:
    rows, asked = [], []
    for noun in range(nouns):
        for group in (None, *GROUPS):
            prompt = f"{noun} {group}"
            asked.append((prompt, group, f"noun {noun}"))
            rows += [(f"{prompt} {number}", "model", prompt) for number in range(3)]
    vectors = np.random.default_rng(0).normal(size=(len(rows), 5)) + 1
    return images(rows), prompts(asked), vectors, [image for image, _, _ in rows]


def test_neutral_pictures_are_compared_with_those_of_each_group() -> None:
    pictures, asked, vectors, ids = neutral_world()
    answer = score_neutral(pictures, asked, vectors, ids, options=NeutralOptions(encoder="clip"))
    scores = conforming(answer)
    rows = {image: row for row, image in enumerate(ids)}
    table = [
        [
            neutral_similarity(*(vectors[[rows[f"{noun} {side} {n}"] for n in range(3)]] for side in (None, group)))
            for group in GROUPS
        ]
        for noun in range(6)
    ]
    expected = neutral_spread(table, [f"noun {noun}" for noun in range(6)])
    heat = dict(scores.filter(metric="neutral_similarity").select("group", "value").iter_rows())
    assert [heat[group] for group in GROUPS] == pytest.approx(list(expected.heat))
    values = dict(scores.filter(pl.col("group").is_null()).select("metric", "value").iter_rows())
    assert values == pytest.approx({
        "neutral_std": expected.std, "neutral_mad": expected.mad,
        "neutral_std_of_means": expected.of_means.std, "neutral_mad_of_means": expected.of_means.mad,
    })  # fmt: skip
    params = json.loads(scores.filter(metric="neutral_std_of_means")["params"][0])
    assert params["prompts_ranked"] == list(expected.ranking)
    per_prompt = answer.values.filter(metric="neutral_std").sort("value")["item"].to_list()
    assert per_prompt == list(expected.ranking)
    order = np.random.default_rng(1).permutation(len(ids))
    again = score_neutral(
        pictures.reverse(), asked, vectors[order], [ids[row] for row in order], options=NeutralOptions(encoder="clip")
    )
    assert again.scores.equals(scores)


def test_prompts_that_lack_a_group_are_counted_and_none_left_is_a_mistake() -> None:
    pictures, asked, vectors, ids = neutral_world()
    fewer = pictures.filter(pl.col("prompt_id") != "0 Africa")
    answer = score_neutral(fewer, asked, vectors, ids, options=NeutralOptions())
    assert answer.left_out == {"prompts without pictures of every group": 1}
    assert set(answer.scores["n"]) == {5}
    with pytest.raises(UsageError, match="no prompt has pictures without a group and of every group"):
        score_neutral(pictures, asked, vectors, ids, options=NeutralOptions(pair=("text",)))
    with pytest.raises(UsageError, match="an id stands twice"):
        score_neutral(pictures, asked, vectors, [ids[0]] * len(ids), options=NeutralOptions())
    first = pl.col("group").is_first_distinct() & (pl.col("group") == "Africa")
    two = asked.with_columns(group=pl.when(first).then(pl.lit("africa")).otherwise("group"))
    with pytest.raises(UsageError, match=r"found .*, groups Africa, Asia and the Pacific, Europe and Russia, africa"):
        score_neutral(pictures, two, vectors, ids, options=NeutralOptions())


def test_question_pairs_are_scored_per_group() -> None:
    pictures, asked, vectors, ids = neutral_world()
    rng = np.random.default_rng(3)
    captions = {name: rng.normal(size=5) for name in ("old", "new")}
    options = QuestionPairOptions(pairs=(("old", "new"),), logit_scale=10)
    answer = score_question_pairs(pictures, asked, (vectors, ids), captions, options=options)
    scores = conforming(answer)
    shares = question_pair(vectors, captions["old"], captions["new"], logit_scale=10)[:, 0]
    for group in (None, *GROUPS):
        own = [value for image, value in zip(ids, shares, strict=True) if group is None or group in image]
        part = dict(scores.filter(pl.col("group").eq_missing(group)).select("metric", "value").iter_rows())
        assert part == pytest.approx({"question_share": np.mean(own), "question_sd": np.std(own, ddof=1)})
    row = scores.filter(metric="question_share", group="Africa").row(0, named=True)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert set(answer.values.filter(group="Africa")["params"]) == {row["params"]}
    for wrong in ((("old", "old"),), (("old", "new"), ("old", "new"))):
        with pytest.raises(UsageError, match="pairs must be two captions that differ, each pair once"):
            QuestionPairOptions(pairs=wrong)
    with pytest.raises(UsageError, match="a caption has no vector; expected 'old', 'new', found 'newer'"):
        score_question_pairs(
            pictures, asked, (vectors, ids), captions, options=QuestionPairOptions(pairs=(("old", "newer"),))
        )


def test_ratings_are_the_likert_table() -> None:
    rng = np.random.default_rng(0)
    pictures = images([(f"i{n}", "model", f"p{n % 4}") for n in range(16)])
    asked = prompts([(f"p{n}", ("Africa", "Europe")[n % 2], None) for n in range(4)])
    rated = [(f"i{n}", who, pool, float(rng.integers(1, 6))) for n in range(16)
             for who, pool in (("a", "US"), ("b", "US"), ("c", "IN"))]  # fmt: skip
    people = annotations(rated, criterion="cleanliness")
    answer = score_ratings(people, pictures, asked, options=RatingOptions())
    scores = conforming(answer).with_columns(pool=pl.col("params").str.json_path_match("$.pool"))
    groups = {f"i{n}": ("Africa", "Europe")[n % 2] for n in range(16)}
    labelled = people.with_columns(model=pl.lit("model"), group=pl.col("item_id").replace_strict(groups))
    for cell in likert_table(labelled).iter_rows(named=True):
        part = scores.filter(pool=cell["pool"], group=cell["group"])
        found = dict(part.select("metric", "value").iter_rows())
        expected = {"rating_mean": cell["mean"], "rating_sd": cell["sd"], "rating_within": cell["within"]}
        assert found == pytest.approx({name: value for name, value in expected.items() if value is not None})
    assert score_ratings(people.reverse(), pictures, asked, options=RatingOptions()).scores.equals(answer.scores)


def test_choices_are_the_relevance_rates_and_items_need_no_images() -> None:
    people = annotations(
        [("x", "a", "US", "yes"), ("x", "b", "US", "no"), ("y", "a", "US", "yes"), ("z", "a", "US", None)],
        criterion="relevance", scheme="cultivate",
    )  # fmt: skip
    answer = score_ratings(people, options=RatingOptions(scheme="cultivate"))
    scores = conforming(answer)
    found = {json.loads(params)["choice"]: value for params, value in scores.select("params", "value").iter_rows()}
    assert found == pytest.approx(dict(rates_of_choices(people).select("choice", "rate").iter_rows()))
    assert set(scores["model"]) == {"items"}
    assert answer.left_out == {"answers with neither a value nor a choice": 1}
    with pytest.raises(UsageError, match="scheme must be 'cultivate'; found 'other'"):
        score_ratings(people, options=RatingOptions(scheme="other"))
    pictures, asked, _ = spoken(2)
    with pytest.raises(UsageError, match=r"nobody answered anything; .*found .*annotations of no known image"):
        score_ratings(people, pictures, options=RatingOptions())
    with pytest.raises(UsageError, match="prompts say nothing without the images of them"):
        score_ratings(people, prompts=asked, options=RatingOptions())


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
    answer = score_tones(tones, pictures, asked, options=ToneOptions())
    again = score_tones(dict(reversed(tones.items())), pictures.reverse(), asked.reverse(), options=ToneOptions())
    assert (again.scores.equals(answer.scores), again.values.equals(answer.values)) == (True, True)
    scores = conforming(answer)
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
    row = conforming(answer).filter(metric="tone_std", group="SAE").row(0, named=True)
    assert row["ci_low"] is None
    assert "a single prompt" in json.loads(row["params"])["no_interval"]


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


def test_answers_about_something_else_are_refused_or_counted() -> None:
    tones, pictures, asked = world()
    with pytest.raises(UsageError, match="no picture has a skin tone"):
        score_tones({}, pictures, asked, options=ToneOptions())
    other = annotations([(image, "a", "US", 3) for image in tones], criterion="correct")
    with pytest.raises(UsageError, match="no annotation is of the criterion 'monk_tone'; found correct"):
        score_tones(tones, pictures, asked, other, options=ToneOptions())
    strange = annotations([(f"x{image}", "a", "US", 3) for image in tones], criterion="monk_tone")
    left_out = score_tones(tones, pictures, asked, strange, options=ToneOptions()).left_out
    assert left_out["pictures whose tones people named, and that are none of these"] == len(tones)
    with pytest.raises(UsageError, match="a sample puts nothing right without answers"):
        sample = Files([Path("audit_sample.parquet")])
        tone_family.stage(Numbered([Path("images.parquet")]), sample=sample, options=ToneOptions())
