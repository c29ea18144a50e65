"""From annotations to agreement and divergence: recomputed by hand, pool by pool."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import VALUES
from culturekit.metrics import (
    calibrate_judge,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
    pool_divergence,
    rating_counts,
    unanimous_agreement,
)
from culturekit.scores.agreement import AgreementOptions, score_agreement
from culturekit.scores.answers import pooled_ratings
from culturekit.scores.family import Scored
from tests.scores.value_tables import annotations, conforming, judgments, params_of

ITEMS = {f"i{number:02}": 1.5 + number % 4 for number in range(24)}
OPTIONS = AgreementOptions(resamples=199)


def scored(table: pl.DataFrame, verdicts: pl.DataFrame | None = None, options: AgreementOptions = OPTIONS) -> Scored:
    answer = score_agreement(table, verdicts, options=options)
    conforming(answer.scores)
    assert VALUES.problems(answer.values) == []
    return answer


def rows_of(answer: Scored, metric: str) -> dict[str | None, dict[str, Any]]:
    rows = answer.scores.filter(pl.col("metric") == metric)
    return {row["group"]: row for row in rows.iter_rows(named=True)}


def test_each_pool_has_its_own_agreement() -> None:
    table = annotations(ITEMS)
    answer = scored(table)
    for pool in ("DE", "IN"):
        own = table.filter(pl.col("annotator_region") == pool).sort("annotator", "item_id")
        ratings = own["value"].to_numpy().reshape(3, 24)
        counts = rating_counts(own["item_id"].to_list(), own["value"].to_list())
        for metric, expected in (
            ("krippendorff_alpha", krippendorff_alpha(ratings, level="ordinal")),
            ("fleiss_kappa", fleiss_kappa(counts)),
            ("pairwise_agreement", pairwise_agreement(counts)),
            ("unanimous_agreement", unanimous_agreement(counts)),
        ):
            row = rows_of(answer, metric)[pool]
            assert row["value"] == pytest.approx(expected), metric
            assert row["ci_low"] < row["value"] < row["ci_high"], metric
            assert (row["n"], row["model"], row["benchmark"]) == (24, "people", "cultivate")
            params = params_of(row)
            assert (params["criterion"], params["pool"], params["annotators"]) == ("faithfulness", pool, 3)
    assert rows_of(answer, "cohen_kappa") == {}
    assert set(answer.scores["group"]) == {"DE", "IN", "DE - IN"}
    assert params_of(rows_of(answer, "krippendorff_alpha")["IN"])["level"] == "ordinal"


def test_divergence_is_reported_with_its_correction() -> None:
    table = annotations(ITEMS, pools={"IN": 0.0, "DE": -1.0, "NG": 0.0})
    answer = scored(table)
    differences = rows_of(answer, "pool_difference")
    assert set(differences) == {"DE - IN", "DE - NG", "IN - NG"}
    means = [
        dict(table.filter(pl.col("annotator_region") == pool).group_by("item_id").agg(pl.col("value").mean()).rows())
        for pool in ("DE", "IN")
    ]
    expected = pool_divergence(*means, resamples=199, rng=np.random.default_rng(0))
    row = differences["DE - IN"]
    assert (row["value"], row["ci_low"]) == pytest.approx(
        (expected.difference.difference, expected.difference.interval.low)
    )
    assert row["value"] == pytest.approx(-0.8, abs=0.3)
    assert params_of(row)["family"] == 3
    assert params_of(row)["p_corrected"] >= params_of(row)["p"]
    assert rows_of(answer, "pool_correlation")["DE - IN"]["value"] == pytest.approx(expected.correlation.value)
    per_item = answer.values.filter(pl.col("metric") == "pool_difference", pl.col("group") == "DE - IN")
    assert per_item["value"].mean() == pytest.approx(row["value"])


def test_choices_are_nominal_and_diverge_choice_by_choice() -> None:
    table = annotations(ITEMS, choices=True)
    answer = scored(table)
    assert params_of(rows_of(answer, "krippendorff_alpha")["IN"])["level"] == "nominal"
    rows = answer.scores.filter(pl.col("metric") == "pool_difference").iter_rows(named=True)
    by_choice = {params_of(row)["choice"]: row["value"] for row in rows}
    assert by_choice["yes"] == pytest.approx(-by_choice["no"])
    assert by_choice["yes"] < 0


def test_names_are_no_categories_to_compare_pools_by() -> None:
    named = pl.when(pl.col("choice") == "yes").then(pl.format("picture {}", "item_id")).otherwise("choice")
    many = {f"i{number:02}": 1.5 + number % 4 for number in range(120)}
    answer = scored(annotations(many, choices=True).with_columns(choice=named))
    assert answer.left_out["pools_compared_by_no_choice_of_too_many"] == 1
    assert rows_of(answer, "pool_difference") == {}
    alpha = rows_of(answer, "krippendorff_alpha")["IN"]
    assert alpha["ci_low"] < alpha["value"] < alpha["ci_high"]


def test_two_annotators_have_cohens_kappa() -> None:
    table = annotations(ITEMS, raters=2)
    own = table.filter(pl.col("annotator_region") == "IN").sort("annotator", "item_id")["value"].to_list()
    assert rows_of(scored(table), "cohen_kappa")["IN"]["value"] == pytest.approx(cohen_kappa(own[:24], own[24:]))


def test_pools_may_be_of_place_or_recruitment() -> None:
    table = annotations(ITEMS)
    inside = scored(table, options=AgreementOptions(by="in-region", resamples=99))
    assert set(rows_of(inside, "fleiss_kappa")) == {"in-region", "out-of-region"}
    found = scored(table, options=AgreementOptions(by="recruitment", resamples=99))
    assert set(rows_of(found, "fleiss_kappa")) == {"panel", "street", "unknown"}
    nobody = table.with_columns(in_region=pl.lit(None, pl.Boolean))
    assert {pool.pool for pool in pooled_ratings(nobody, by="in-region")[0]} == {"unknown"}


def test_few_items_have_no_interval_and_say_why() -> None:
    answer = scored(annotations(dict(list(ITEMS.items())[:9])))
    row = rows_of(answer, "krippendorff_alpha")["IN"]
    assert row["ci_low"] is None
    assert "fewer than 10 items" in params_of(row)["no_interval"]
    single = scored(annotations({"i1": 3.0}, raters=1))
    assert np.isnan(rows_of(single, "pairwise_agreement")["IN"]["value"])
    assert rows_of(single, "pairwise_agreement")["IN"]["n"] == 0


def test_order_and_names_of_annotators_do_not_matter() -> None:
    table = annotations(ITEMS)
    answer = scored(table)
    assert answer.scores.equals(scored(table.sample(fraction=1, shuffle=True, seed=3)).scores)
    renamed = table.with_columns(annotator=pl.col("annotator").str.replace("-0", "-zero"))
    assert answer.scores.equals(scored(renamed).scores)


def test_answers_in_words_only_are_counted() -> None:
    table = annotations(ITEMS)
    here = pl.col("item_id") == "i03"
    silent = table.with_columns(value=pl.when(here).then(None).otherwise("value"))
    assert scored(silent).left_out == {"neither_value_nor_choice": 6}
    worded = silent.with_columns(
        value=pl.col("value").fill_null(float("nan")), choice=pl.when(here).then(pl.lit("five"))
    )
    words = "answers in words to a question that others answered with numbers"
    assert scored(worded).left_out == {words: 6}
    with pytest.raises(UsageError, match="nobody answered anything"):
        scored(table.with_columns(value=pl.lit(None, pl.Float64)))


def test_verdicts_about_something_else_are_refused() -> None:
    verdicts = judgments({"i01": 3.0}).with_columns(task=pl.lit("extract"))
    with pytest.raises(UsageError, match=r"no verdict of a judge .*such as cultivate: faithfulness, found extract: "):
        scored(annotations(ITEMS), verdicts)


def test_judges_are_held_against_each_pool() -> None:
    table = annotations(ITEMS)
    verdicts = {item: min(5.0, worth + 0.5) for item, worth in ITEMS.items()} | {"unseen": 3.0}
    answer = scored(table, judgments(verdicts))
    bias = rows_of(answer, "judge_bias")
    assert set(bias) == {"DE", "IN"}
    assert answer.left_out["judgment_without_people"] == 1
    means = dict(
        table.filter(pl.col("annotator_region") == "IN").group_by("item_id").agg(pl.col("value").mean()).rows()
    )
    shared = sorted(ITEMS)
    expected = calibrate_judge(
        [verdicts[item] for item in shared], [means[item] for item in shared], pool="IN",
        clusters=[f"p{number // 2}" for number in range(24)], resamples=99, rng=np.random.default_rng(0),
    )  # fmt: skip
    row = bias["IN"]
    assert (row["model"], row["n"]) == ("j1", 48)
    assert (row["value"], row["ci_low"]) == pytest.approx((expected.bias, expected.interval.low))
    assert bias["DE"]["value"] > row["value"] + 0.5
    assert rows_of(answer, "judge_agreement")["IN"]["value"] == pytest.approx(expected.agreement.value)
