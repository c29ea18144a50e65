"""Scores of Task 1, Task 2 and the survey, against the functions they rest on."""

import json
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    appeal_and_similarity,
    appeal_in_manifold,
    closer_rates,
    in_region_rates,
    survey_themes,
    task2_agreement,
    triplet_agreement,
)
from culturekit.metrics.inclusion.triplet_distances import binned_choices
from culturekit.recipes.inclusion.scores import RealFeatures, TaskOptions, score_survey, score_task1, score_task2
from tests.metrics.inclusion.task_worlds import VOTES, codes, drawn_task1, drawn_task2
from tests.recipes.linguistic.test_tones import conforming


def unpacked(scores: pl.DataFrame, metric: str) -> list[dict[str, Any]]:
    return [{**row, **json.loads(row["params"])} for row in scores.filter(metric=metric).iter_rows(named=True)]


def test_in_region_rates_stand_by_source_region_and_object() -> None:
    table = pl.concat([drawn_task2(), drawn_task2(seed=1, source="ldm")])
    answer = score_task2(table, options=TaskOptions(least=0))
    scores = conforming(answer)
    rows = unpacked(scores, "in_region_rate")
    expected = in_region_rates(table, by=("source", "region"))
    found = {
        (r["model"], r["group"], r["side"], r["target"]): (r["value"], r["n"]) for r in rows if r["by"] == ["region"]
    }
    assert found == {tuple(row[:4]): row[4:] for row in expected.iter_rows()}
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in rows)
    by_object = [row for row in rows if row["by"] == ["object"]]
    assert {(row["concept"], row["group"]) for row in by_object} == {("bag", None)}
    values = answer.values.filter(metric="in_region_rate", group="Africa", model="real")
    means = values.group_by("params").agg(pl.col("value").mean())
    known = dict(
        scores.filter(metric="in_region_rate", group="Africa", model="real").select("params", "value").iter_rows()
    )
    assert dict(means.iter_rows()) == pytest.approx(known)
    assert score_task2(table.sample(fraction=1, shuffle=True, seed=0), options=TaskOptions(least=0)).scores.equals(
        scores
    )


def test_agreement_of_task2_stands_with_kappa() -> None:
    table = drawn_task2()
    scores = conforming(score_task2(table, options=TaskOptions(least=0)))
    expected = task2_agreement(table, by=("source", "region"))
    for metric, column in (
        ("location_agreement", "pairwise"), ("location_unanimity", "unanimous"), ("location_kappa", "kappa"),
    ):  # fmt: skip
        found = {(r["group"], r["criterion"]): r["value"] for r in unpacked(scores, metric) if r["pairs"] == "all"}
        known = {(r["region"], r["question"]): r[column] for r in expected.iter_rows(named=True)}
        assert found == pytest.approx({key: value for key, value in known.items() if value is not None})


def test_consistency_is_pool_by_pool() -> None:
    table = drawn_task2(source="ldm")
    scores = conforming(score_task2(table))
    by_region = [row for row in unpacked(scores, "object_seen") if row["by"] == ["region"]]
    assert by_region
    for row in by_region:
        own = table.filter(region=row["group"], annotator_loc=row["pool"])
        assert row["value"] == pytest.approx(own["shown"].mean())


def test_unreliable_annotators_are_left_out_and_counted() -> None:
    table = drawn_task2()
    blind = table.with_columns(
        shown=pl.when(pl.col("annotator_id") == "af0").then(pl.lit(value=False)).otherwise(pl.lit(value=True))
    )
    answer = score_task2(blind)
    gone = blind.filter(annotator_id="af0").height
    assert answer.left_out["annotations of unreliable annotators"] == gone
    assert answer.scores.filter(metric="in_region_rate").height > 0
    nobody = table.with_columns(shown=pl.lit(value=False))
    with pytest.raises(UsageError, match="no annotation is left to score"):
        score_task2(nobody)


def features(table: pl.DataFrame, *, seed: int, dim: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    ids = sorted({*table["reference_id"], *table["first_id"], *table["second_id"]})
    return {image: rng.normal(size=dim) for image in ids}


def test_task1_stands_by_source_region_and_location() -> None:
    table = drawn_task1()
    extractors = {"clip": features(table, seed=1), "inception": features(table, seed=2)}
    real = np.random.default_rng(3).normal(size=(40, 3))
    answer = score_task1(table, extractors, RealFeatures("clip", real, 2), bins=5, options=TaskOptions(least=0))
    scores = conforming(answer)
    inside = partial(appeal_in_manifold, table, real, extractors["clip"], k=2)
    for metric, column, cell, expected in (
        ("appeal_with_similarity", "region", "group", appeal_and_similarity(table)),
        ("appeal_in_manifold", "region", "group", inside()),
        ("appeal_in_manifold", "object", "concept", inside(by=("source", "object", "annotator_loc"))),
    ):
        found = {(r["model"], r[cell], r["pool"]): (r["value"], r["n"]) for r in unpacked(scores, metric) if r[cell]}
        known = {(r["source"], r[column], r["annotator_loc"]): (r["share"], r["n"])
                 for r in expected.iter_rows(named=True)}  # fmt: skip
        assert found == known
    assert unpacked(scores, "appeal_in_manifold")[0]["k"] == 2
    for by in (("annotator_loc",), ("annotator_loc", "region")):
        found_rates = {
            (r["extractor"], r["pool"], r["group"], r["bin"]): (r["value"], r["n"])
            for r in unpacked(scores, "closer_choice_rate") if (r["group"] is None) == ("region" not in by)
        }  # fmt: skip
        assert found_rates == {
            (r["extractor"], r["annotator_loc"], r.get("region"), r["bin"]): (r["rate"], r["n"])
            for r in closer_rates(table, extractors, bins=5, by=by).iter_rows(named=True)
        }  # fmt: skip
    agreement = triplet_agreement(table, by=("source", "region"))
    found_all = {
        (r["model"], r["group"], r["criterion"]): r["value"]
        for r in unpacked(scores, "location_agreement") if r["pairs"] == "all" and "reference_source" not in r
    }  # fmt: skip
    assert found_all == pytest.approx(
        {(r["source"], r["region"], r["criterion"]): r["pairwise"] for r in agreement.iter_rows(named=True)}
    )
    by_reference = triplet_agreement(table, by=("source", "region", "reference_source"))
    assert {
        (r["model"], r["group"], r["reference_source"], r["criterion"]): r["value"]
        for r in unpacked(scores, "location_agreement") if "reference_source" in r
    } == pytest.approx(
        {(r["source"], r["region"], r["reference_source"], r["criterion"]): r["pairwise"]
         for r in by_reference.iter_rows(named=True)}
    )  # fmt: skip
    counted: dict[tuple[object, ...], list[bool]] = {}
    for r in binned_choices(table, extractors, bins=5).drop_nulls(["similar_id", "appealing_id"]).iter_rows(named=True):
        key = r["extractor"], r["annotator_loc"], r["bin"], "closer" if r["closer"] else "further"
        counted.setdefault(key, []).append(r["similar_id"] == r["appealing_id"])
    assert {
        (r["extractor"], r["pool"], r["bin"], r["chosen"]): (r["value"], r["n"])
        for r in unpacked(scores, "appeal_by_distance")
    } == {key: (pytest.approx(sum(same) / len(same)), len(same)) for key, same in counted.items()}
    assert {row["pool"] for row in unpacked(scores, "location_agreement") if row["pairs"] == "across"} == {
        "Africa", "Europe", "SouthEastAsia",
    }  # fmt: skip


def test_choices_and_kinds_that_triplets_do_not_have_are_refused() -> None:
    table, options = drawn_task1(), TaskOptions(least=0)
    for column in ("similar_id", "appealing_id"):
        with pytest.raises(
            UsageError, match=rf"row 1 and .*{column} is neither first_id nor second_id.*found {column} 'first'"
        ):
            score_task1(table.with_columns(pl.lit("first").alias(column)), options=options)
    with pytest.raises(UsageError, match=r"combo has other words.*expected A or B or C or D or E, found combo 'a'"):
        score_task1(table.with_columns(pl.col("combo").str.to_lowercase()), options=options)


@pytest.mark.parametrize("column", ["object_regions", "background_regions"])
def test_regions_ticked_under_another_name_are_refused(column: str) -> None:
    table = drawn_task2().with_columns(pl.col(column).list.eval(pl.element().replace({"af": "Africa"})))
    with pytest.raises(UsageError, match=f"{column} must be lists of codes such as af, eu, sea, na; found 'Africa'"):
        score_task2(table, options=TaskOptions(least=0))  # nobody saw the region: a rate of 0


def test_photographs_are_called_real() -> None:
    with pytest.raises(UsageError, match=r"names of source that cannot be told apart.*found 'real' and 'Real'"):
        score_task2(drawn_task2().with_columns(source=pl.lit("Real")))


def test_task1_needs_no_features_and_says_what_the_manifold_needs() -> None:
    table = drawn_task1()
    scores = conforming(score_task1(table, options=TaskOptions(least=0)))
    assert set(scores["metric"]) == {"appeal_with_similarity", "location_agreement", "location_unanimity"}
    with pytest.raises(UsageError, match="the manifold needs the features of generated images"):
        score_task1(table, real=RealFeatures("clip", np.eye(3), 1), options=TaskOptions(least=0))
    with pytest.raises(UsageError, match="no annotation is left"):
        score_task1(table.clear())


def test_the_survey_has_kappas_for_all_codes_and_shares_for_those_kept() -> None:
    table = codes(VOTES)
    answer = score_survey(table)
    scores = conforming(answer)
    themes = survey_themes(table)
    kappas = {row["code"]: row["value"] for row in unpacked(scores, "theme_kappa")}
    assert kappas == pytest.approx(dict(themes.kappas.drop_nulls("kappa").select("code", "kappa").iter_rows()))
    shares = {(row["code"], row["group"]): (row["value"], row["n"]) for row in unpacked(scores, "theme_share")}
    assert shares == {(r["code"], r["location"]): (r["share"], r["n"]) for r in themes.shares.iter_rows(named=True)}
    assert answer.left_out == {
        "codes that coders do not agree on": 2,
        "codes of which coders say the same of every response, so that kappa is not known": 1,
    }
    assert answer.values.height == 6
