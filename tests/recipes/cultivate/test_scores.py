"""Scores of `cultivate`: equations by hand, the ladder of means, gaps, and what is not scored."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.schemas import DESCRIPTOR_MATCHES, EXAGGERATIONS, SCORES, VALUES
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.metrics import (
    CATALOG,
    align,
    calibrate_tau,
    descriptor_diversity,
    exaggeration,
    faithfulness,
    hallucination,
    interval,
    semantic_diversity,
)
from culturekit.metrics.ahead.matching import DEFAULT_TAU
from culturekit.metrics.statistics.intervals import Interval, Target, mean_of_means, simple_mean
from culturekit.recipes.cultivate.scores import AheadOptions, AheadScores, ahead, how_scored, rungs, score_ahead
from culturekit.scores.compare import ComparisonOptions, score_comparisons
from culturekit.scores.gaps import GapOptions, score_gaps
from tests.recipes.cultivate.ahead_world import DIMENSIONS, World, image_row, judgment_row, world
from tests.scores.value_tables import params_of

OPTIONS = AheadOptions(real="real", groups={"FR": "GN", "IN": "GS", "NG": "GS"}, scheme="cultivate")


def scored(drawn: World, options: AheadOptions = OPTIONS, *, stereotypes: bool = True) -> AheadScores:
    """Score, and hold the answer against the declarations of the tables."""
    answer = score_ahead(drawn.tables(stereotypes=stereotypes), options=options)
    for table, frame in (
        (SCORES, answer.scored.scores),
        (VALUES, answer.scored.values),
        (DESCRIPTOR_MATCHES, answer.descriptors),
        (EXAGGERATIONS, answer.exaggerations),
    ):
        assert table.problems(frame) == []
    return answer


class ByHand:
    """The scores of images and prompts, one at a time, from the array functions."""

    def __init__(self, drawn: World) -> None:
        self.unit = dict(zip(drawn.ids, drawn.vectors / np.linalg.norm(drawn.vectors, axis=1)[:, None], strict=True))
        self.asked: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row in drawn.descriptors:
            self.asked[row["prompt_id"]][row["dimension"]].append(row["token"])
        self.said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row in drawn.extracted:
            self.said[row["image_id"]][row["dimension"]] += [row["item"]] if row["item"] else []
        self.stereotyped: dict[str, dict[str, float]] = defaultdict(dict)
        for row in drawn.stereotypes:
            self.stereotyped[row["image_id"]][row["item"]] = row["value"]
        self.images = drawn.images
        self.country = {row["prompt_id"]: row["country"] for row in drawn.prompts}

    def n_ref(self, prompt: str) -> dict[str, int]:
        return {dimension: len(tokens) for dimension, tokens in self.asked[prompt].items()}

    def similarities(self, image: Mapping[str, Any]) -> dict[str, Any]:
        """The similarities of an image by dimension, each pair on its own."""
        asked, said = self.asked[image["prompt_id"]], self.said[image["image_id"]]
        return {
            dimension: np.array([[self.unit[p] @ self.unit[r] for r in asked[dimension]] for p in said[dimension]])
            for dimension in DIMENSIONS
            if said[dimension]
        }

    def exag(self, image: Mapping[str, Any]) -> float:
        country = self.country[image["prompt_id"]]
        real = [
            list(self.stereotyped[other["image_id"]].values())
            for other in self.images
            if other["model"] == "real" and self.country[other["prompt_id"]] == country
        ]
        scores = [list(self.stereotyped[image["image_id"]].values())]
        return float(exaggeration(scores, np.mean(real, axis=0))[0])


def value(answer: AheadScores, metric: str, model: str, *, country: str | None = None, group: str | None = None) -> Any:
    """Give the row of one score."""
    scores = answer.scored.scores.filter(metric=metric, model=model)
    kept = [row for row in scores.rows(named=True) if (row["country"], row["group"]) == (country, group)]
    assert len(kept) == 1
    return kept[0]


def items(answer: AheadScores, metric: str, model: str) -> dict[str, float]:
    rows = answer.scored.values.filter(metric=metric, model=model)
    return dict(rows.select("item", "value").iter_rows())


@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
@pytest.mark.parametrize("tau", [0.3, 0.52])
def test_each_image_has_the_scores_of_its_own_similarities(
    aggregate: Literal["dimension", "pooled"], tau: float
) -> None:
    drawn = world()
    answer, hand = scored(drawn, replace(OPTIONS, aggregate=aggregate, tau=tau)), ByHand(drawn)
    for image in drawn.images:
        similarities, n_ref = hand.similarities(image), hand.n_ref(image["prompt_id"])
        expected = {
            "align": align(similarities, n_ref, tau=tau, aggregate=aggregate),
            "hal": hallucination(similarities, n_ref, tau=tau, aggregate=aggregate),
            "empty": 1 - len(similarities) / len(DIMENSIONS),
        }
        if image["model"] != "real":
            expected["exag"] = hand.exag(image)
            expected["faith"] = float(faithfulness(expected["align"], expected["hal"], expected["exag"]))
        for metric, number in expected.items():
            found = items(answer, metric, image["model"])[image["image_id"]]
            assert found == pytest.approx(number, abs=1e-9), metric


@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
def test_each_prompt_has_the_diversity_of_its_images(aggregate: Literal["dimension", "pooled"]) -> None:
    """Pooled, SDIV was .306 for .150: it was averaged over dimensions all the same."""
    drawn = world(seed=1)
    answer, hand = scored(drawn, replace(OPTIONS, aggregate=aggregate, tau=0.52)), ByHand(drawn)
    for model in ("ann", "bob", "real"):
        for prompt in hand.country:
            own = [row for row in drawn.images if (row["model"], row["prompt_id"]) == (model, prompt)]
            images, n_ref = [hand.similarities(image) for image in own], hand.n_ref(prompt)
            ddiv = descriptor_diversity(images, n_ref, tau=0.52)
            sdiv = semantic_diversity(images, n_ref, tau=0.52, aggregate=aggregate)
            together = {
                name: np.concatenate([image[name] for image in images if name in image])
                for name in {name for image in images for name in image}
            }
            alone = [align(image, n_ref, tau=0.52, aggregate=aggregate) for image in images]
            equation = align(together, n_ref, tau=0.52, aggregate=aggregate) - sum(alone) / len(alone)
            assert sdiv == pytest.approx(equation, abs=1e-9, nan_ok=True)
            assert items(answer, "ddiv", model)[prompt] == pytest.approx(ddiv, abs=1e-9)
            assert items(answer, "sdiv", model)[prompt] == pytest.approx(sdiv, abs=1e-9)


@pytest.mark.parametrize("metric", ["align", "hal", "exag", "faith", "empty", "ddiv", "sdiv"])
def test_the_ladder_takes_unweighted_means_at_each_step(metric: str) -> None:
    answer = scored(world(seed=2))
    rows = answer.scored.values.filter(metric=metric, model="ann")
    prompts = {key: float(part["value"].to_numpy().mean()) for (key,), part in rows.group_by("prompt_id")}
    france, india, nigeria = (prompts["p0"] + prompts["p1"]) / 2, prompts["p2"], (prompts["p3"] + prompts["p4"]) / 2
    assert value(answer, metric, "ann", country="FR")["value"] == pytest.approx(france, abs=1e-12)
    assert value(answer, metric, "ann", country="IN")["value"] == pytest.approx(india, abs=1e-12)
    assert value(answer, metric, "ann", group="GN")["value"] == pytest.approx(france, abs=1e-12)
    assert value(answer, metric, "ann", group="GS")["value"] == pytest.approx((india + nigeria) / 2, abs=1e-12)
    assert value(answer, metric, "ann")["value"] == pytest.approx((france + india + nigeria) / 3, abs=1e-12)
    assert value(answer, metric, "ann")["n"] == rows.height


def test_values_stand_under_the_score_of_their_country() -> None:
    answer = scored(world(seed=3))
    keys = ["metric", "model", "benchmark", "country", "group", "params"]
    named = answer.scored.values.join(answer.scored.scores, on=keys, nulls_equal=True, how="anti")
    assert named.height == 0
    assert answer.scored.values["country"].null_count() == 0
    assert answer.scored.values.filter(metric="align")["repeat"].unique().sort().to_list() == [0, 1, 2]


def test_few_prompts_speak_about_themselves_and_a_prompt_of_one_image_about_nothing() -> None:
    answer = scored(world(seed=4))
    row = value(answer, "align", "ann", country="FR")
    rows = answer.scored.values.filter(metric="align", model="ann", country="FR")
    held = interval(rows["value"].to_list(), prompts=rows["prompt_id"].to_list(), repeats=rows["repeat"].to_list())
    assert json.loads(row["params"])["target"] == "these"
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(held.low), pytest.approx(held.high))
    assert value(answer, "ddiv", "ann")["ci_low"] is None
    once = scored(world(seed=4, repeats=1))
    assert value(once, "align", "ann")["ci_low"] is None
    assert once.scored.scores.filter(pl.col("metric").is_in(["ddiv", "sdiv"])).height == 0


def test_many_prompts_speak_about_their_population() -> None:
    places = {f"p{number:02}": ("FR", "IN")[number % 2] for number in range(24)}
    drawn = world(seed=5, countries=dict(places))
    answer = scored(drawn)
    for metric in ("align", "ddiv"):
        row = value(answer, metric, "ann")
        rows = answer.scored.values.filter(metric=metric, model="ann")
        means = rows.group_by("country", "prompt_id").agg(pl.col("value").mean()).sort("country", "prompt_id")
        wide = interval(means["value"].to_list(), prompts=means["country"].to_list(), repeats=list(range(means.height)))
        assert json.loads(row["params"])["target"] == "population"
        assert (row["ci_low"], row["ci_high"]) == (pytest.approx(wide.low), pytest.approx(wide.high))
        few = value(answer, metric, "ann", country="FR")
        assert (json.loads(few["params"])["target"], few["ci_low"]) == ("population", None)
    asked = value(scored(drawn, replace(OPTIONS, target="these")), "align", "ann")
    assert json.loads(asked["params"])["target"] == "these"
    assert asked["value"] == pytest.approx(value(answer, "align", "ann")["value"], abs=1e-12)


def test_the_params_say_how_and_the_catalogue_knows_each_metric() -> None:
    answer = scored(world(), replace(OPTIONS, encoder="minilm"))
    assert {"align", "hal", "faith", "exag"} <= set(answer.scored.scores["metric"])
    for row in answer.scored.scores.rows(named=True):
        metric, params = CATALOG[row["metric"]], json.loads(row["params"])
        assert metric.unit == row["unit"]
        assert metric.low <= row["value"] <= metric.high
        assert ("scheme" in params) == (row["group"] is not None)
        if row["metric"] in ("align", "hal", "faith"):
            assert (params["tau"], params["extractor"], params["encoder"]) == (0.52, "vlm", "minilm")
        if row["metric"] in ("exag", "faith"):
            assert (params["scorer"], params["reduce"]) == ("vqa", "mean")


def test_tau_can_be_found_from_real_images() -> None:
    drawn = world(seed=8)
    hand = ByHand(drawn)
    real = [hand.similarities(image) for image in drawn.images if image["model"] == "real"]
    answer = scored(drawn, replace(OPTIONS, quantile=0.75))
    assert answer.tau == pytest.approx(calibrate_tau(real), abs=1e-7)
    assert json.loads(value(answer, "align", "ann")["params"])["tau"] == answer.tau


def test_the_threshold_of_other_scores_can_be_taken_over(tmp_path: Path, work: Work) -> None:
    found = scored(world(seed=8), replace(OPTIONS, quantile=0.75))
    like = write_table(tmp_path, SCORES, found.scored.scores)
    assert how_scored(like) == (found.tau, "dimension")
    assert found.tau != DEFAULT_TAU
    given = world(seed=9).stored(tmp_path / "world")
    stage = ahead.stage(**given, options=replace(OPTIONS, quantile=0.75, encoder="e"), like=like)
    assert stage.inputs["like"] == like
    assert (stage.options["tau"], stage.options["quantile"]) == (None, None)
    stage.run(work)
    assert how_scored(work.out / "scores.parquet") == (found.tau, "dimension")


def test_without_described_real_images_a_run_goes_on_and_a_command_refuses(tmp_path: Path, work: Work) -> None:
    like = write_table(tmp_path, SCORES, pl.DataFrame(schema=SCORES.schema))
    given = world().stored(tmp_path / "world", stereotypes=False)
    nobody = ahead.stage(**given, options=replace(OPTIONS, real="nobody", quantile=0.5))
    unscored = ahead.stage(**given, options=OPTIONS, like=like)
    for stage, why in (nobody, "no image of the model 'nobody'"), (unscored, "has an ALIGN"):
        with pytest.raises(NothingScored, match=why):
            stage.run(work)
        assert any(why in reason for reason in stage.run(replace(work, in_run=True)).drops)
        assert read_table(work.out / "descriptor_matches.parquet", DESCRIPTOR_MATCHES).is_empty()


@pytest.mark.parametrize("prompt", ["p0", "p1", "p2", "p3", "p4"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_descriptors_say_how_well_they_were_met(prompt: str, dimension: str) -> None:
    drawn = world(seed=9)
    answer, hand = scored(drawn), ByHand(drawn)
    own = [row["image_id"] for row in drawn.images if (row["model"], row["prompt_id"]) == ("ann", prompt)]
    rows = answer.descriptors.filter(model="ann", prompt_id=prompt, dimension=dimension)
    asked, said = hand.asked[prompt][dimension], {name: hand.said[name][dimension] for name in own}
    references = {row["token"]: row for row in rows.filter(side="reference").rows(named=True)}
    assert set(references) == set(asked)
    for token, row in references.items():
        best = [max(float(hand.unit[p] @ hand.unit[token]) for p in tokens) for tokens in said.values() if tokens]
        assert row["images"] == len(own)
        assert row["covered"] == pytest.approx(sum(each >= 0.52 for each in best) / len(own))
        assert row["similarity"] == (pytest.approx(np.mean(best), abs=1e-6) if best else None)
    counts = [token for tokens in said.values() for token in tokens]
    predicted = rows.filter(side="predicted")
    assert dict(predicted.select("token", "images").iter_rows()) == {token: counts.count(token) for token in counts}
    for row in predicted.rows(named=True):
        nearest = max(float(hand.unit[row["token"]] @ hand.unit[token]) for token in asked)
        assert (row["similarity"], row["covered"]) == (pytest.approx(nearest, abs=1e-6), float(nearest >= 0.52))


def test_stereotypes_say_by_how_much_they_are_overdone() -> None:
    drawn = world(seed=10)
    answer, hand = scored(drawn), ByHand(drawn)
    row = answer.exaggerations.filter(model="ann", country="FR", token="beret").row(0, named=True)
    of_model = {
        model: [
            hand.stereotyped[image["image_id"]]["beret"]
            for image in drawn.images
            if image["model"] == model and hand.country[image["prompt_id"]] == "FR"
        ]
        for model in ("real", "ann")
    }
    assert row["real_mean"] == pytest.approx(np.mean(of_model["real"]))
    assert row["excess"] == pytest.approx(np.mean([max(0.0, f - row["real_mean"]) for f in of_model["ann"]]))
    assert row["images"] == 6
    assert set(answer.exaggerations["model"]) == {"ann", "bob"}


def without(rows: list[dict[str, Any]], **fixed: Any) -> list[dict[str, Any]]:
    return [row for row in rows if any(row[name] != wanted for name, wanted in fixed.items())]


def asked(prompt: str, dimension: str, token: str) -> dict[str, Any]:
    about = {"style": "neutral", "necessity": "optional", "proposers": ["a"]}
    return {"prompt_id": prompt, "dimension": dimension, "token": token, **about}


def renamed(rows: list[dict[str, Any]], before: str, after: str) -> list[dict[str, Any]]:
    return [{**row, "dimension": after if row.get("dimension") == before else row.get("dimension")} for row in rows]


def told_otherwise() -> dict[str, World]:
    """Say what a world says in another order, in other letters, twice, or with another name of a dimension."""
    drawn = world(seed=7)
    said = [{**row, "item": f"  {row['item'].upper()} "} for row in drawn.extracted if row["item"]]
    asked = [{**row, "token": row["token"].replace(" ", "\u00a0 ")} for row in drawn.descriptors]
    shouted = [name.upper() for name in drawn.ids]
    both = np.concatenate([drawn.vectors[::-1], drawn.vectors])
    sides = ("descriptors", "extracted")
    setting: dict[str, Any] = {side: renamed(getattr(drawn, side), "background", "Setting") for side in sides}
    return {
        **{f"in order {seed}": drawn.shuffled(seed) for seed in range(5)},
        "equal when normalised": replace(drawn, extracted=drawn.extracted + said,
                                         descriptors=drawn.descriptors + asked),
        "an id that is the phrase goes first": replace(drawn, ids=[*shouted, *drawn.ids], vectors=both),
        "an id that becomes the phrase": replace(drawn, ids=shouted),
        **{f"setting, in {side}": replace(drawn, **{side: rows}) for side, rows in setting.items()},
    }  # fmt: skip


@pytest.mark.parametrize("how", told_otherwise())
def test_a_world_told_otherwise_has_the_same_scores(how: str) -> None:
    first, other = scored(world(seed=7)), scored(told_otherwise()[how])
    assert first.scored.scores.equals(other.scored.scores)
    assert first.scored.values.equals(other.scored.values)
    assert first.descriptors.equals(other.descriptors)
    assert first.exaggerations.equals(other.exaggerations)
    assert first.scored.left_out == other.scored.left_out


def test_what_is_not_scored_is_counted_by_reason() -> None:
    drawn = world(seed=12)
    silent = without(drawn.stereotypes, image_id="real/p0/2")
    nothing = [judgment_row("ann/p1/0", "", task="extract", dimension=dimension) for dimension in DIMENSIONS]
    drawn = replace(
        drawn,
        descriptors=[*drawn.descriptors, asked("p4", "spatial", "thing 5")],
        images=[
            *drawn.images,
            image_row("failed", model="ann", prompt_id="p0", repeat=7, status="blocked"),
            image_row("stray", model="ann", prompt_id="p9", repeat=7),
            image_row("unread", model="ann", prompt_id="p0", repeat=8),
            image_row("refused", model="ann", prompt_id="p0", repeat=9),
            image_row("in part", model="ann", prompt_id="p0", repeat=7),
        ],
        extracted=[
            *without(drawn.extracted, image_id="ann/p1/0"),
            *nothing,
            judgment_row("refused", "", task="extract", dimension="attire", outcome="refused"),
            judgment_row("in part", "", task="extract", dimension="attire", outcome="truncated"),
            judgment_row("in part", "thing 1", task="extract", dimension="objects"),
            judgment_row("ann/p0/0", "thing 3", task="extract", dimension="spatial"),
        ],
        stereotypes=[
            *without(without(silent, image_id="ann/p0/0", item="beret"), image_id="ann/p0/1"),
            *(
                judgment_row(name, item, task="stereotype", judge="vqa", outcome="refused")
                for name in ("ann/p0/1", "real/p0/2")
                for item in ("beret", "baguette")
            ),
        ],
    )
    people = len({(row["prompt_id"], row["token"]) for row in drawn.descriptors if row["dimension"] == "people"})
    answer = scored(drawn)
    assert answer.scored.left_out == {
        "images not made": 1, "images of no known prompt": 1, "images not described": 1,
        "images the extractor failed on": 1, "dimensions of scored images the extractor failed on": 1,
        "images not asked about stereotypes": 3, "images without a score of every stereotype": 3,
        "predictions in a dimension without references": 1, "references the extractor cannot see: people": people,
    }  # fmt: skip
    assert {"refused", "unread", "failed", "stray"}.isdisjoint(answer.scored.values["item"])
    assert "ann/p0/0" in items(answer, "align", "ann")
    assert {"ann/p0/0", "ann/p0/1"}.isdisjoint(items(answer, "faith", "ann"))
    flagged = [items(answer, metric, "ann")["ann/p1/0"] for metric in ("align", "hal", "empty")]
    assert flagged == [0.0, 0.0, 1.0], "an image that says nothing is not left out"


@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
def test_a_dimension_without_an_answer_is_missing_and_the_image_stays(
    aggregate: Literal["dimension", "pooled"],
) -> None:
    """One dimension that was cut off cost the whole image, and rich pictures are cut off most."""
    drawn = world()
    lost = {("ann/p0/0", "attire"), ("bob/p3/1", "objects")}
    rows = [row for row in drawn.extracted if (row["image_id"], row["dimension"]) not in lost]
    cut = [judgment_row(image, "", task="extract", dimension=name, outcome="truncated") for image, name in lost]
    answer, hand = scored(replace(drawn, extracted=[*rows, *cut]), replace(OPTIONS, aggregate=aggregate)), ByHand(drawn)
    for image, dimension in lost:
        row = next(each for each in drawn.images if each["image_id"] == image)
        left = {name: count for name, count in hand.n_ref(row["prompt_id"]).items() if name != dimension}
        known = {name: found for name, found in hand.similarities(row).items() if name != dimension}
        for metric, by_hand in (("align", align), ("hal", hallucination)):
            expected = by_hand(known, left, tau=DEFAULT_TAU, aggregate=aggregate)
            assert items(answer, metric, row["model"])[image] == pytest.approx(expected, abs=1e-9)
    assert answer.scored.left_out["dimensions of scored images the extractor failed on"] == 2
    assert len(items(answer, "align", "ann")) == len(items(answer, "align", "real"))
    both = {name: [image for image in drawn.images if (image["model"], image["prompt_id"]) == ("ann", "p0")
                   and (image["image_id"], name) not in lost] for name in DIMENSIONS}  # fmt: skip
    gains = []
    for name, images in both.items():
        n_ref = {name: hand.n_ref("p0")[name]}
        alone = [{name: found[name]} if name in (found := hand.similarities(image)) else {} for image in images]
        gains.append(semantic_diversity(alone, n_ref, tau=DEFAULT_TAU, extractor_dimensions=[name]) * n_ref[name])
    sizes = [hand.n_ref("p0")[name] for name in both]
    parts = [gain / size for gain, size in zip(gains, sizes, strict=True)]
    expected = sum(gains) / sum(sizes) if aggregate == "pooled" else sum(parts) / len(parts)
    assert items(answer, "sdiv", "ann")["p0"] == pytest.approx(expected, abs=1e-9)


def test_an_extractor_can_be_said_to_have_people() -> None:
    drawn = world(seed=13)
    wide = scored(drawn, replace(OPTIONS, extractor_dimensions=(*DIMENSIONS, "people")))
    assert value(wide, "empty", "ann")["value"] > value(scored(drawn), "empty", "ann")["value"]
    assert not any("people" in reason for reason in wide.scored.left_out)
    gone = replace(drawn, descriptors=without(drawn.descriptors, dimension="attire"))
    assert scored(gone, replace(OPTIONS, extractor_dimensions=("setting", "objects"))).scored.scores.height


def test_prompts_without_a_country_are_one_stratum_or_are_left_out() -> None:
    nowhere = scored(world(seed=15, countries={"p0": None, "p1": None}), replace(OPTIONS, real=None), stereotypes=False)
    assert set(nowhere.scored.scores["country"]) == {None}
    assert value(nowhere, "align", "ann")["n"] == 6
    assert nowhere.scored.values.filter(metric="align", model="ann").height == 6
    without_stereotypes = {"align", "hal", "empty", "ddiv", "sdiv"}  # neither exaggeration nor faithfulness
    assert (set(nowhere.scored.scores["metric"]), nowhere.exaggerations.height) == (without_stereotypes, 0)
    mixed = scored(world(seed=15, countries={"p0": "FR", "p1": None}), replace(OPTIONS, real=None), stereotypes=False)
    assert value(mixed, "align", "ann")["n"] == 3
    assert mixed.scored.left_out["images of prompts without a country"] == 9
    drawn = world()
    elsewhere = replace(drawn, extracted=[{**row, "image_id": f"x{row['image_id']}"} for row in drawn.extracted])
    nothing = scored(elsewhere, replace(OPTIONS, real=None), stereotypes=False)
    assert nothing.scored.scores.height == nothing.scored.values.height == nothing.descriptors.height == 0
    assert nothing.scored.left_out["images not described"] == 45
    assert not math.isnan(nothing.tau)


def test_countries_outside_the_scheme_are_in_no_group() -> None:
    answer = scored(world(), replace(OPTIONS, groups={"FR": "GN"}))
    assert set(answer.scored.scores["group"]) == {None, "GN"}
    assert value(answer, "align", "ann")["n"] == 15
    (told,) = (reason for reason in answer.scored.left_out if reason.startswith("images of countries in no group"))
    assert told == "images of countries in no group of cultivate, which stand in no group's score: IN, NG"


def changed(rows: list[dict[str, Any]], place: int, **changes: Any) -> list[dict[str, Any]]:
    return [{**row, **changes} if number == place else row for number, row in enumerate(rows)]


def broken() -> list[Any]:
    drawn = world()
    zero = np.where(np.arange(40)[:, None] == drawn.ids.index("thing 5"), 0, drawn.vectors)
    two = changed(drawn.extracted, 0, judge="other")
    no_dimension = [*drawn.extracted, judgment_row("ann/p0/0", "x", task="extract")]
    nowhere = [{**row, "prompt_id": f"x{row['prompt_id']}"} for row in drawn.images]
    clothes = renamed(drawn.descriptors, "attire", "clothes")
    return [
        (drawn, {"tau": 3.0}, "tau must be a number between -1 and 1"),
        (drawn, {"aggregate": "sum"}, "aggregate must be 'dimension' or 'pooled'"),
        (drawn, {"target": "all"}, "target must be 'these' or 'population'"),
        (drawn, {"reduce": "sum"}, "reduce must be 'mean' or 'max'"),
        (drawn, {"real": None}, "real must be the model whose images are real, because stereotypes"),
        (drawn, {"real": "nobody"}, "no stereotype score of a real image.*'nobody'"),
        (drawn, {"real": "nobody", "quantile": 0.5}, "tau is a quantile over real images"),
        (replace(drawn, extracted=two), {}, "must come from one judge.*other, vlm"),
        (replace(drawn, extracted=drawn.stereotypes), {}, "must come from one judge.*no judgment of that task"),
        (replace(drawn, extracted=no_dimension), {}, "an extracted descriptor has no dimension"),
        (replace(drawn, ids=["else", *drawn.ids[1:]]), {}, "1 of 40 phrases have no vector.*'thing 0'.*Encode them"),
        (replace(drawn, ids=drawn.ids[1:]), {}, "vectors and ids do not belong together"),
        (replace(drawn, vectors=zero), {}, "the phrase 'thing 5': a vector must be finite"),
        (replace(drawn, images=nowhere), {}, "there is no image to score.*prompts such as"),
        (replace(drawn, descriptors=without(drawn.descriptors, dimension="attire")), {},
         "attire was extracted and has no reference in any prompt"),
        (replace(drawn, descriptors=clothes), {}, "clothes has references and was not extracted"),
    ]  # fmt: skip


@pytest.mark.parametrize(("drawn", "options", "message"), broken())
def test_what_cannot_be_scored_is_explained(drawn: World, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        scored(drawn, replace(OPTIONS, **options))

    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)


# Differences and gaps computed from the values are those of the scores.


@pytest.fixture(scope="module")
def ahead_scored() -> AheadScores:
    return scored(world())


def test_a_difference_is_that_of_the_scores(ahead_scored: AheadScores) -> None:
    rows = score_comparisons(ahead_scored.scored.values, options=ComparisonOptions(resamples=99)).scores
    overall = [row for row in rows.iter_rows(named=True) if row["country"] is None]
    assert {params_of(row)["metric"] for row in overall} >= {"align", "hal", "exag", "faith", "ddiv", "sdiv"}
    for row in overall:
        params = params_of(row)
        a, b = (value(ahead_scored, params["metric"], params[side])["value"] for side in ("a", "b"))
        assert row["value"] == pytest.approx(a - b), params


def test_a_gap_is_that_of_the_scores(ahead_scored: AheadScores) -> None:
    rows = score_gaps(ahead_scored.scored.values, options=GapOptions("cultivate", OPTIONS.groups)).scores
    assert rows.height >= 12
    for row in rows.iter_rows(named=True):
        metric = params_of(row)["metric"]
        north, south = (value(ahead_scored, metric, row["model"], group=group)["value"] for group in ("GN", "GS"))
        assert row["value"] == pytest.approx(north - south), metric


def placed_items(places: dict[str, str | None], *, images: int = 4, seed: int = 0) -> pl.DataFrame:
    """Draw values of images of prompts, each in a country."""
    rng = np.random.default_rng(seed)
    rows = [
        (prompt, country, f"{prompt}/{n}", rng.random()) for prompt, country in places.items() for n in range(images)
    ]
    return pl.DataFrame(rows, schema=["prompt_id", "country", "item", "value"], orient="row").with_columns(
        pl.col("country").cast(pl.String)
    )


def climbed(
    values: pl.DataFrame, groups: dict[str, str] | None = None, *, target: Target = "population",
    prompt_items: bool = False,
) -> dict[tuple[str | None, str | None], Interval]:  # fmt: skip
    found = rungs(values, groups or {}, target=target, confidence=0.95, prompt_items=prompt_items)
    return {(country, group): answer for country, group, answer in found}


def prompt_means(values: pl.DataFrame, country: str) -> list[float]:
    return values.filter(country=country).group_by("prompt_id").agg(pl.col("value").mean())["value"].to_list()


def test_one_country_has_scipys_t_interval_over_prompts() -> None:
    values = placed_items({f"p{n}": "FR" for n in range(25)})
    means = prompt_means(values, "FR")
    low, high = stats.t.interval(0.95, 24, loc=np.mean(means), scale=stats.sem(means))
    for place in ((None, None), ("FR", None)):
        answer = climbed(values)[place]
        assert [answer.low, answer.high] == pytest.approx([low, high])
        assert (answer.n, answer.target) == (100, "population")
    equal = climbed(placed_items({f"p{n}": "FR" if n % 2 else "IN" for n in range(24)}).with_columns(value=pl.lit(0.1)))
    assert {equal[None, None].low, equal[None, None].value, equal[None, None].high} == {0.1}, "of width zero"


def test_two_countries_have_welchs_interval() -> None:
    """The half width of a mean of two means is half of that of their difference, which scipy gives."""
    values = placed_items({f"p{n}": "FR" if n < 8 else "IN" for n in range(30)})
    answer = climbed(values, {"FR": "x", "IN": "x"})[None, "x"]
    welch = stats.ttest_ind(prompt_means(values, "FR"), prompt_means(values, "IN"), equal_var=False)
    limits = welch.confidence_interval(0.95)
    assert answer.high - answer.low == pytest.approx((limits.high - limits.low) / 2)
    assert answer.value == pytest.approx(
        (np.mean(prompt_means(values, "FR")) + np.mean(prompt_means(values, "IN"))) / 2
    )


@pytest.mark.parametrize(
    ("places", "target", "images"),
    [
        ({f"p{n}": "FR" for n in range(19)}, "population", 3),
        ({f"p{n}": "FR" if n else "IN" for n in range(25)}, "population", 3),
        ({f"p{n}": "FR" for n in range(5)}, "these", 1),
    ],
)
def test_where_the_numbers_do_not_say_there_is_no_interval(
    places: dict[str, str | None], target: Target, images: int
) -> None:
    answer = climbed(placed_items(places, images=images), target=target)[None, None]
    assert math.isnan(answer.low)
    assert not math.isnan(answer.value)


def test_combining_the_means_of_strata_is_stratified_sampling() -> None:
    """The variance of a mean of independent means is the sum of theirs over their number squared."""
    rng = np.random.default_rng(3)
    strata = [rng.normal(size=n) for n in (5, 9, 30)]
    found = mean_of_means([simple_mean(stratum) for stratum in strata])
    variances = np.array([np.var(stratum, ddof=1) / len(stratum) for stratum in strata])
    assert found.variance == pytest.approx(variances.sum() / 9)
    satterthwaite = variances.sum() ** 2 / (variances**2 / [4, 8, 29]).sum()
    assert found.freedom == pytest.approx(satterthwaite)
