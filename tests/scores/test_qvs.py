"""From tables to scores: each value recomputed by hand, whatever the order of the rows."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.schemas import MATCHES, QUALITY, SCORES, VALUES
from culturekit.metrics import CATALOG, STANDARD_KERNELS, Metric, qvs, vendi, vendi_jackknife
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import qvs as qvs_family
from culturekit.scores.qvs import score_qvs, without_quality

DEFAULT = QvsOptions()


def match_rows(
    *,
    model: str = "m1",
    concept: str | None = "cuisine",
    prompts: int = 2,
    repeats: int = 3,
    slots: int = 8,
    method: str = "nearest",
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Draw the nearest and the second nearest match of some images."""
    rng = np.random.default_rng(seed)
    rows = []
    for prompt in range(prompts):
        for repeat in range(repeats):
            for slot in range(slots):
                for rank in (1, 2):
                    artifact = int(rng.zipf(1.6)) % 30
                    rows.append(
                        {
                            "image_id": f"{model}/{concept}/{prompt}/{repeat}/{slot}",
                            "model": model,
                            "prompt_id": f"p{prompt}",
                            "concept": concept,
                            "repeat": repeat,
                            "slot": slot,
                            "rank": rank,
                            "artifact_id": f"Q{artifact}",
                            "artifact": f"x{artifact}",
                            "country": f"K{artifact % 9}",
                            "countries": [f"K{artifact % 9}"],
                            "continent": f"c{artifact % 4}",
                            "score": 0.5,
                            "margin": 0.1,
                            "country_margin": 0.1,
                            "abstained": bool(rng.random() < 0.2),
                            "method": method,
                        }
                    )
    return rows


def match_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Make a table that conforms."""
    frame = pl.DataFrame(rows, schema=MATCHES.schema)
    assert MATCHES.problems(frame) == []
    return frame


def quality_table(matches: pl.DataFrame, *, scorer: str = "hps", seed: int = 1) -> pl.DataFrame:
    """Draw a quality for each image."""
    images = matches["image_id"].unique().sort()
    values = np.random.default_rng(seed).uniform(0.2, 0.4, len(images))
    return pl.DataFrame({"image_id": images, "scorer": [scorer] * len(images), "value": values}, schema=QUALITY.schema)


def scored(matches: pl.DataFrame, quality: pl.DataFrame | None = None, options: QvsOptions = DEFAULT) -> pl.DataFrame:
    """Score, and hold the answer against the declaration of the table."""
    answer = score_qvs(matches, quality, options=options)
    assert SCORES.problems(answer.scores) == []
    assert VALUES.problems(answer.values) == []
    return answer.scores


def params_of(scores: pl.DataFrame) -> list[dict[str, Any]]:
    return [json.loads(text) for text in scores["params"]]


def batch_labels(rows: list[dict[str, Any]], prompt: int, repeat: int) -> list[tuple[str, str, str]]:
    """Take the labels of one repeat, in the order of its slots."""
    mine = [row for row in rows if (row["prompt_id"], row["repeat"], row["rank"]) == (f"p{prompt}", repeat, 1)]
    return [(row["continent"], row["country"], row["artifact"]) for row in sorted(mine, key=lambda row: row["slot"])]


def test_the_parameters_say_how_it_was_computed() -> None:
    matches = match_table(match_rows())
    scores = scored(matches, quality_table(matches), QvsOptions(kernels=((0.5, 0.5, 0.0),), q=math.inf))
    said = dict(zip(scores["metric"], scores["params"], strict=True))
    assert said["quality"] == '{"confidence":0.95,"labels":"mapped","scorer":"hps","target":"these"}'
    assert said["vs"] == (
        '{"confidence":0.95,"images_left_out":0,"kernel":"hierarchical","labels":"mapped","method":"nearest",'
        '"missing":"distinct","partial":"drop","q":"inf","size":8,"target":"these","weights":[0.5,0.5,0.0]}'
    )
    assert json.loads(said["qvs"]) == {**json.loads(said["vs"]), "scorer": "hps"}
    odd = scored(matches, None, QvsOptions(kernels=((0.2, 0.3, 0.5),), q=2))
    assert params_of(odd)[0]["kernel"] is None
    assert params_of(odd)[0]["q"] == 2.0


def test_every_model_concept_and_kernel_has_its_rows() -> None:
    rows = [
        row
        for number, (model, concept) in enumerate(
            [("m1", "art"), ("m1", "cuisine"), ("m1", None), ("m2", "art"), ("m2", None)]
        )
        for row in match_rows(model=model, concept=concept, seed=number)
    ]
    matches = match_table(rows)
    quality = pl.concat([quality_table(matches, scorer=scorer) for scorer in ("hps", "pick")])
    scores = scored(matches, quality, QvsOptions(benchmark="mine"))
    counts = scores.group_by("model", "concept", "metric").len().sort("model", "concept", "metric").rows()
    per_group = [("quality", 2), ("qvs", 10), ("vs", 5)]
    groups = [("m1", None), ("m1", "art"), ("m1", "cuisine"), ("m2", None), ("m2", "art")]
    assert counts == [(*group, *counted) for group in groups for counted in per_group]
    assert set(scores["benchmark"]) == {"mine"}
    assert {entry["kernel"] for entry in params_of(scores) if "kernel" in entry} == set(STANDARD_KERNELS)
    assert scores["country"].null_count() == scores["group"].null_count() == len(scores)


def test_without_quality_there_is_diversity_only() -> None:
    assert set(scored(match_table(match_rows()))["metric"]) == {"vs"}


@pytest.mark.parametrize("whole", [False, True])
def test_the_order_of_the_rows_does_not_matter(whole: bool) -> None:
    rows = match_rows(slots=11) + match_rows(model="m2", concept=None, slots=11, seed=4)
    matches = match_table(rows)
    if whole:
        matches = matches.with_columns(prompt_id=pl.lit(None, pl.String), repeat=pl.lit(None, pl.UInt16))
    quality = quality_table(matches)
    expected = scored(matches, quality)
    for seed in range(3):
        shuffled = matches.sample(fraction=1, shuffle=True, seed=seed)
        other = scored(shuffled, quality.sample(fraction=1, shuffle=True, seed=seed))
        assert other.rows() == expected.rows()


def test_only_the_nearest_match_counts() -> None:
    matches = match_table(match_rows())
    assert scored(matches).equals(scored(matches.filter(pl.col("rank") == 1)))


def test_without_prompts_the_whole_collection_is_scored() -> None:
    rows = [{**row, "prompt_id": None, "repeat": None, "slot": None} for row in match_rows(slots=7)]
    matches = match_table(rows)
    quality = quality_table(matches)
    scores = scored(matches, quality)
    labels = matches.filter(pl.col("rank") == 1).select("continent", "country", "artifact")
    value_of = quality.sort("image_id")["value"].to_list()
    assert {"quality", "vs", "qvs"} <= set(scores["metric"])
    for row in scores.rows(named=True):
        params = json.loads(row["params"])
        assert (row["n"], params["target"]) == (42, "population")
        if row["metric"] == "quality":
            low, high = stats.t.interval(0.95, 41, loc=np.mean(value_of), scale=stats.sem(value_of))
            assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx((np.mean(value_of), low, high))
            continue
        assert (params["size"], params["images_left_out"]) == ("whole", 0)
        assert params["interval"] == "jackknife, approximate"
        assert row["ci_low"] < params["bias_corrected"] < row["ci_high"]
        if row["metric"] == "vs":
            alone = vendi_jackknife(labels, weights=params["weights"], rng=np.random.default_rng(0))
            ours = (42 * params["bias_corrected"], 42 * row["ci_low"], 42 * row["ci_high"])
            assert ours == pytest.approx((alone.value, alone.low, alone.high), rel=1e-9)
        expected = qvs(labels, value_of, weights=params["weights"])
        assert row["value"] == pytest.approx(expected.value if row["metric"] == "qvs" else expected.diversity)


def test_a_single_repeat_has_a_value_but_no_interval() -> None:
    scores = scored(match_table(match_rows(repeats=1)))
    assert scores["value"].is_finite().all()
    assert scores["ci_low"].null_count() == scores["ci_high"].null_count() == len(scores)


def test_the_values_are_the_means_of_repeats_and_average_to_the_score() -> None:
    rows = match_rows(slots=16)
    matches = match_table(rows)
    quality = quality_table(matches).filter(~pl.col("image_id").str.starts_with("m1/cuisine/1/2/"))
    answer = score_qvs(matches, quality, options=DEFAULT)
    assert set(answer.values["item"]) == {f"p{prompt}/{repeat}" for prompt in range(2) for repeat in range(3)}
    key = ["metric", "model", "concept", "params"]
    by_prompt = answer.values.group_by(*key, "prompt_id").agg(pl.col("value").mean())
    means = by_prompt.group_by(key).agg(pl.col("value").mean().alias("mean"))
    joined = answer.scores.join(means, on=key, validate="1:1")
    assert joined.height == answer.scores.height == 11
    np.testing.assert_allclose(joined["mean"], joined["value"], rtol=1e-12)
    unknown = answer.values.filter(pl.col("value").is_null())
    assert set(unknown["item"]) == {"p1/2"}
    assert set(unknown["metric"]) == {"quality", "qvs"}
    one = answer.values.filter(pl.col("item") == "p0/1", pl.col("metric") == "vs")
    for row in one.rows(named=True):
        labels = batch_labels(rows, 0, 1)
        weights = json.loads(row["params"])["weights"]
        expected = np.mean([vendi(part, weights=weights) / 8 for part in (labels[:8], labels[8:])])
        assert row["value"] == pytest.approx(expected, abs=1e-12)
        assert (row["prompt_id"], row["repeat"]) == ("p0", 1)


def test_several_orders_are_scored_beside_each_other() -> None:
    matches = match_table(match_rows())
    together = scored(matches, quality_table(matches), QvsOptions(q=1, other_orders=(0.1, math.inf)))
    for q in (1.0, 0.1, math.inf):
        alone = scored(matches, quality_table(matches), QvsOptions(q=q))
        said = "inf" if math.isinf(q) else q
        part = together.filter(pl.Series([entry.get("q", said) == said for entry in params_of(together)]))
        assert part.equals(alone)


def test_no_matches_give_no_scores() -> None:
    assert scored(match_table([])).height == 0


# What is scored of mapped labels; differences need the looks of an audit
OF_LABELS = [metric.name for metric in qvs_family.metrics if metric.name != "vs_difference"]


def test_the_catalogue_describes_what_is_written() -> None:
    matches = match_table(match_rows())
    scores = scored(matches, quality_table(matches))
    assert set(scores["metric"]) == set(OF_LABELS) - {"vs_best", "vs_worst"}
    for row in scores.rows(named=True):
        metric = CATALOG[row["metric"]]
        assert metric.unit == row["unit"]
        assert metric.low <= row["value"] <= metric.high
    assert any(option.name == "size" for option in QvsOptions.__dataclass_fields__.values())
    assert f"N = {DEFAULT.size}" in CATALOG["vs"].formula


@pytest.mark.parametrize("name", OF_LABELS)
def test_a_catalogue_entry_is_complete(name: str) -> None:
    metric = CATALOG[name]
    assert isinstance(metric, Metric)
    assert metric.name == name
    assert metric.low < metric.high
    assert metric.direction in ("higher", "lower", "neither")
    assert all((metric.title, metric.formula, metric.unit, metric.paper, metric.inputs, metric.pitfalls))
    if name != "quality":
        assert "mapped diversity" in metric.title.lower()
        assert any("bootstrap" in pitfall for pitfall in metric.pitfalls)
        assert any("corrected" in pitfall for pitfall in metric.pitfalls)


def one_unplaced(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Take the prompt of one image away."""
    return match_table([{**row, "prompt_id": None} if row["image_id"].endswith("0/0/0") else row for row in rows])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scored(match_table(match_rows()).drop("artifact")), "not a matches table: column artifact is missing"),
        (lambda: scored(pl.concat([match_table(match_rows())] * 2)), "rows repeat the key (image_id, rank)"),
        (
            lambda: scored(match_table(match_rows()).filter((pl.col("rank") == 2) | (pl.col("slot") > 0))),
            "an image has matches, and none of rank 1; expected the nearest match of every image, found 6 images",
        ),
        (lambda: scored(one_unplaced(match_rows())), "1 of 48 images lack a prompt or a repeat"),
        (
            lambda: scored(match_table(match_rows(prompts=1) + match_rows(prompts=3, method="tagger")[96:])),
            "labelled by 2 methods; expected one method, found nearest, tagger",
        ),
        (
            lambda: scored(match_table(match_rows()), pl.DataFrame({"image_id": ["i"]})),
            "not a quality table: column scorer is missing",
        ),
        (
            lambda: scored(
                match_table(match_rows()), pl.DataFrame([("i", "hps", math.nan)], schema=QUALITY.schema, orient="row")
            ),
            "scorer 'hps': the quality of 1 images is not finite; expected a number for each image, found nan for",
        ),
        (
            lambda: scored(
                match_table(match_rows()), pl.DataFrame([("i", "embedded", 58.0)], schema=QUALITY.schema, orient="row")
            ),
            "scorer 'embedded', image 'i': the quality of 1 images lies off the scale of its scorer; expected from 0",
        ),
        (lambda: scored(match_table([]), None, QvsOptions(kernels=((1, 1, 1),))), "weights must be three numbers"),
        (lambda: scored(match_table([]), None, QvsOptions(kernels=((1, 0, 0),) * 2)), "kernels must be triples"),
        (lambda: scored(match_table([]), None, QvsOptions(q=0)), "q must be a number above 0"),
        (lambda: scored(match_table([]), None, QvsOptions(other_orders=(2, -1))), "q must be a number above 0"),
        (lambda: scored(match_table([]), None, QvsOptions(other_orders=(1,))), "other_orders must be orders other"),
        (lambda: scored(match_table([]), None, QvsOptions(target="all")), "target must be 'these' or 'population'"),  # type: ignore[arg-type]
        (lambda: scored(match_table([]), None, QvsOptions(within="city")), "within must be 'none' or 'country'"),  # type: ignore[arg-type]
        (lambda: scored(match_table([]), None, QvsOptions(within="country")), "no prompt names a country"),
        (lambda: scored(match_table([]), None, QvsOptions(confidence=95)), "confidence must be between 0 and 1"),
        (lambda: scored(match_table(match_rows()), None, QvsOptions(target="population")), "at least 20 prompts"),
        (lambda: scored(match_table([]), None, QvsOptions(size=0)), "size must be a whole number of at least 1"),
        (lambda: scored(match_table([]), None, QvsOptions(missing="no")), "missing must be 'distinct' or 'equal'"),  # type: ignore[arg-type]
        (lambda: scored(match_table([]), None, QvsOptions(partial="no")), "partial must be 'drop' or 'paper'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_scored_is_said(call: Callable[[], pl.DataFrame], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


def test_what_has_no_complete_batch_is_counted_and_not_only_nan() -> None:
    answer = score_qvs(match_table(match_rows(slots=5)), None, options=DEFAULT)
    scores = answer.scores
    assert scores["value"].is_nan().all()
    assert set(scores["n"]) == {0}
    assert scores["ci_low"].null_count() == len(scores)
    assert {entry["images_left_out"] for entry in params_of(scores)} == {30}
    assert answer.left_out == {"model and concept of which no repeat has 8 images": 1}
    assert score_qvs(match_table(match_rows()), None, options=DEFAULT).left_out == {}


def test_images_that_a_scorer_does_not_know_are_counted_and_other_images_refused() -> None:
    matches = match_table(match_rows())
    quality = quality_table(matches)
    assert without_quality([matches], quality) == {}
    known = quality.sort("image_id")["image_id"].head(10).implode()
    ten = quality.filter(pl.col("image_id").is_in(known))
    assert without_quality([matches], ten) == {"no quality by hps": quality.height - 10}
    others = quality.with_columns(pl.format("other-{}", "image_id").alias("image_id"))
    with pytest.raises(UsageError, match="a scorer of quality knows no image of the matches"):
        without_quality([matches], others)
