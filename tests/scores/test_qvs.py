"""Diversity from tables to scores: recomputed by hand, bounded, of what is there, and within countries."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.schemas import DISTRIBUTIONS, MATCHES, QUALITY, SCORES, VALUES
from culturekit.metrics import CATALOG, STANDARD_KERNELS, Metric, qvs, vendi, vendi_bounds, vendi_jackknife
from culturekit.scores.compare import ComparisonOptions, score_comparisons
from culturekit.scores.distribution import label_distributions
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import qvs as qvs_family
from culturekit.scores.qvs import score_bounds, score_qvs, without_quality
from culturekit.scores.within import NO_BATCH, NO_IMAGES, score_within
from tests.scores.picture_tables import image_table, match_table
from tests.scores.test_routes import NEAREST

DEFAULT = QvsOptions()


def match_rows(
    *, model: str = "m1", concept: str | None = "cuisine", prompts: int = 2, repeats: int = 3, slots: int = 8,
    method: str = "nearest", seed: int = 0,
) -> list[dict[str, Any]]:  # fmt: skip
    """Draw the nearest and the second nearest match of some images."""
    rng = np.random.default_rng(seed)
    rows = []
    for prompt, repeat, slot, rank in itertools.product(range(prompts), range(repeats), range(slots), (1, 2)):
        artifact = int(rng.zipf(1.6)) % 30
        rows.append({
            "image_id": f"{model}/{concept}/{prompt}/{repeat}/{slot}", "model": model, "prompt_id": f"p{prompt}",
            "concept": concept, "repeat": repeat, "slot": slot, "rank": rank, "artifact_id": f"Q{artifact}",
            "artifact": f"x{artifact}", "country": f"K{artifact % 9}", "countries": [f"K{artifact % 9}"],
            "continent": f"c{artifact % 4}", "abstained": bool(rng.random() < 0.2), "method": method,
        })  # fmt: skip
    return rows


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


def test_labels_are_counted_for_each_concept_and_over_all() -> None:
    matches = match_table(match_rows() + match_rows(concept="art", seed=2))
    table = label_distributions(matches)
    assert DISTRIBUTIONS.problems(table) == []
    for concept in ("art", "cuisine", None):
        own = matches.filter(rank=1) if concept is None else matches.filter(rank=1, concept=concept)
        for level in ("continent", "country", "artifact"):
            found = table.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)), level=level)
            assert dict(found.select("label", "images").iter_rows()) == Counter(own[level])


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


ARTIFACT = QvsOptions(kernels=((0.0, 0.0, 1.0),), size=4)


def images_of(rows: list[dict[str, Any]], *, refused: set[str]) -> pl.DataFrame:
    """The images behind some matches."""
    kept = ("image_id", "model", "prompt_id", "concept", "repeat", "slot")
    return image_table([
        {**{name: row[name] for name in kept}, "country": None,
         "status": "refused" if row["image_id"] in refused else "ok"}
        for row in rows if row["rank"] == 1
    ])  # fmt: skip


def world(*, refused: int = 0, abstained: int = 0) -> tuple[pl.DataFrame, pl.DataFrame, list[dict[str, Any]]]:
    """Two prompts, three repeats, four slots; of each repeat the first images are refused, the next not told."""
    rows = match_rows(slots=4, seed=3)
    gone = {row["image_id"] for row in rows if row["slot"] < refused}
    for row in rows:
        row["abstained"] = refused <= row["slot"] < refused + abstained
    return match_table([row for row in rows if row["image_id"] not in gone]), images_of(rows, refused=gone), rows


def values_of(scores: pl.DataFrame) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in scores.iter_rows(named=True)}


def test_each_batch_is_bounded_and_averaged() -> None:
    matches, images, rows = world(refused=1, abstained=1)
    answer = score_bounds(matches, images, options=ARTIFACT)
    assert SCORES.problems(answer.scores) == []
    expected = []
    for prompt in ("p0", "p1"):
        for repeat in range(3):
            known = [
                (row["continent"], row["country"], row["artifact"])
                for row in rows
                if (row["rank"], row["prompt_id"], row["repeat"]) == (1, prompt, repeat) and row["slot"] >= 2
            ]
            expected.append(vendi_bounds(known, unknown=2, weights=(0, 0, 1)))
    lows, highs = zip(*expected, strict=True)
    found = values_of(answer.scores)
    assert found["vs_worst"] == pytest.approx(sum(lows) / 6 / 4)
    assert found["vs_best"] == pytest.approx(sum(highs) / 6 / 4)
    params = json.loads(answer.scores["params"][0])
    assert (params["unknown"], params["images"]) == (12, 24)
    assert set(answer.scores["metric"]) <= set(CATALOG)
    assert set(answer.scores["n"]) == {24}


def test_where_all_is_known_there_is_nothing_to_bound() -> None:
    matches, images, _ = world()
    assert score_bounds(matches, images, options=ARTIFACT).scores.is_empty()


def test_matches_of_other_images_are_refused() -> None:
    matches, images, _ = world(refused=1)
    with pytest.raises(UsageError, match="the table of images lacks"):
        score_bounds(matches, images.head(3), options=ARTIFACT)


def test_an_image_without_any_artifact_is_unknown_too() -> None:
    matches, images, _ = world(refused=1)
    none = matches.with_columns(
        **{name: pl.lit(None, MATCHES.schema[name]) for name in ("artifact_id", "artifact", "country", "continent")}
    )
    found = values_of(score_bounds(none, images, options=ARTIFACT).scores)
    assert (found["vs_worst"], found["vs_best"]) == (0.25, 1.0)


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


OPTIONS = QvsOptions(size=2)
PROMPTS = pl.DataFrame(
    [
        ("in-1", "within-country", "art", "IN"), ("in-2", "within-country", "art", "IN"),
        ("br-1", "within-country", "art", "BR"), ("ng-1", "within-country", "art", "NG"),
        ("open", "underspecified", "art", None), ("jp-cube", "cube", "art", "JP"),
    ],
    {"prompt_id": pl.String, "kind": pl.String, "concept": pl.String, "country": pl.String},
    orient="row",
)  # fmt: skip


def matches(shown: dict[tuple[str, str], list[str]]) -> pl.DataFrame:
    """Make matches: of each model and prompt, repeats as words, a letter for the artifact of each image."""
    rows = [
        {"image_id": f"{model}-{prompt}-{repeat}-{slot}", "model": model, "prompt_id": prompt, "concept": "art",
         "repeat": repeat, "slot": slot, "artifact_id": letter, "artifact": letter, "country": "IN",
         "continent": "Asia"}
        for (model, prompt), repeats in shown.items()
        for repeat, letters in enumerate(repeats)
        for slot, letter in enumerate(letters)
    ]  # fmt: skip
    return match_table(rows)


SHOWN = matches(
    {
        ("a", "in-1"): ["xx", "xy"], ("a", "in-2"): ["xy", "xy"], ("a", "br-1"): ["xx", "xy"],
        ("a", "ng-1"): ["xy", "xy"],
        ("b", "in-1"): ["xy", "xy"], ("b", "br-1"): ["x"], ("b", "open"): ["xy", "xx"],
    }
)  # fmt: skip


def rows_of(model: str) -> dict[str | None, dict[str, object]]:
    found = score_within(SHOWN, PROMPTS, options=OPTIONS)
    assert SCORES.problems(found.scores) == []
    assert VALUES.problems(found.values) == []
    return {row["country"]: row for row in found.scores.filter(model=model).to_dicts()}


def test_countries_are_those_of_score_qvs() -> None:
    named = {prompt: country for prompt, country in PROMPTS.select("prompt_id", "country").iter_rows() if country}
    other = score_qvs(
        SHOWN, None, options=QvsOptions(size=2, within="country", kernels=((0.0, 0.0, 1.0),)), countries=named
    )
    assert other.scores["country"].n_unique() > 2
    for row in other.scores.drop_nulls("country").to_dicts():
        found = rows_of(str(row["model"]))[row["country"]]
        assert found["n"] == row["n"]
        assert found["value"] == pytest.approx(row["value"], nan_ok=True)
        assert found["ci_low"] == pytest.approx(row["ci_low"])


def test_the_mean_weighs_countries_the_same_and_adds_their_variances() -> None:
    found = rows_of("a")
    values = {"IN": ((0.5 + 1) / 2 + 1) / 2, "BR": 0.75, "NG": 1.0}
    assert {country: found[country]["value"] for country in values} == pytest.approx(values)
    assert found[None]["value"] == pytest.approx(sum(values.values()) / 3)
    per_prompt = 0.25**2 * 2 / 2  # of the repeats (0.5, 1): s² / 2
    parts = [per_prompt / 4, per_prompt, 0.0]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 + parts[1] ** 2)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts)) / 3
    assert found[None]["ci_high"] == pytest.approx(sum(values.values()) / 3 + half)
    assert found[None]["n"] == 16
    assert json.loads(str(found[None]["params"]))["countries"] == 3


def test_countries_with_too_few_images_are_said() -> None:
    found = rows_of("b")
    assert set(found) == {None, "IN", "BR", "NG"}
    assert found["BR"]["n"] == 0
    assert math.isnan(float(str(found["BR"]["value"])))
    assert json.loads(str(found["NG"]["params"]))["no_value"] == NO_IMAGES
    told = json.loads(str(found[None]["params"]))
    assert told["countries_without"] == ["BR", "NG"]
    assert found[None]["value"] == pytest.approx(1.0)
    assert score_within(SHOWN, PROMPTS, options=OPTIONS).left_out == {
        NO_IMAGES: 1, NO_BATCH: 1, "images of prompts that name no country": 4
    }  # fmt: skip


def test_images_of_unknown_prompts_are_counted() -> None:
    known = PROMPTS.filter(pl.col("prompt_id") != "in-2")
    unknown = "images of prompts that the table of prompts does not have"
    assert score_within(SHOWN, known, options=OPTIONS).left_out[unknown] == 4
    with pytest.raises(UsageError, match=f"no image is of a prompt that names a country.*found 25 {unknown}"):
        score_within(SHOWN, PROMPTS.filter(prompt_id="jp-cube"), options=OPTIONS)


def test_several_concepts_are_scored_together_too() -> None:
    food = pl.when(pl.col("prompt_id") == "in-2").then(pl.lit("food")).otherwise("concept")
    parted = score_within(SHOWN.with_columns(concept=food), PROMPTS.with_columns(concept=food), options=OPTIONS).scores
    whole, columns = score_within(SHOWN, PROMPTS, options=OPTIONS).scores, ("model", "country", "value", "n")
    assert set(parted["concept"]) == {"art", "food", None}
    assert parted.filter(pl.col("concept").is_null()).select(columns).equals(whole.select(columns))


def test_several_orders_have_a_mean_each() -> None:
    found = score_within(SHOWN, PROMPTS, options=QvsOptions(size=2, other_orders=(math.inf,))).scores
    means = found.filter(pl.col("country").is_null(), model="a")
    assert sorted(str(json.loads(text)["q"]) for text in means["params"]) == ["1.0", "inf"]
