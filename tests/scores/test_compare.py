"""From values to differences of models: recomputed by hand, whatever the order of the rows."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import VALUES
from culturekit.core.tables import write_table
from culturekit.generation.comparability import Traits
from culturekit.metrics import compare, holm
from culturekit.scores.compare import ComparisonOptions, check_models, compare_runs, score_comparisons
from culturekit.scores.family import Scored
from tests.scores.value_tables import as_values, conforming, only_row, params_of, values

OPTIONS = ComparisonOptions(resamples=499)


def scored(table: pl.DataFrame, options: ComparisonOptions = OPTIONS) -> Scored:
    answer = score_comparisons(table, options=options)
    conforming(answer.scores)
    assert VALUES.problems(answer.values) == []
    return answer


def test_a_row_is_the_comparison_of_one_score() -> None:
    table = values()
    answer = scored(table)
    row = only_row(answer.scores, country="IN")
    params = params_of(row)
    a, b = (table.filter(pl.col("country") == "IN", pl.col("model") == model) for model in ("m1", "m2"))
    expected = compare(
        a["value"].to_numpy(),
        b["value"].to_numpy(),
        clusters=(a["prompt_id"].to_list(), b["prompt_id"].to_list()),
        rng=np.random.default_rng(0),
    )
    assert (row["metric"], row["model"], row["unit"]) == ("model_difference", "m1 - m2", "difference")
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx(
        (expected.difference, expected.interval.low, expected.interval.high)
    )
    assert params["p"] == expected.p
    assert (params["metric"], params["of"], params["a"], params["b"]) == ("dialect_score", {"tau": 0.52}, "m1", "m2")
    assert (params["common"], params["left_out"], params["prompts"], row["n"]) == (6, 0, 6, 24)
    assert row["value"] == pytest.approx(-0.2, abs=0.1)


def test_the_difference_is_that_of_the_scores_over_all_countries() -> None:
    table = values().filter(~((pl.col("country") == "NG") & pl.col("prompt_id").str.contains("[345]$")))
    row = only_row(scored(table).scores, country=None)
    means = (
        table.group_by("model", "country", "prompt_id").agg(pl.col("value").mean())
        .group_by("model", "country").agg(pl.col("value").mean())
        .group_by("model").agg(pl.col("value").mean()).sort("model")["value"]
    )  # fmt: skip
    assert row["value"] == pytest.approx(means[0] - means[1])
    assert row["ci_low"] < row["value"] < row["ci_high"] < 0
    assert params_of(row)["prompts"] == 33


def test_p_values_are_corrected_over_pairs_and_countries_of_one_score() -> None:
    table = values(models={"m1": 0, "m2": 0.02, "m3": 0.03})
    other = values(models={"m1": 0, "m2": 0.02}, metric="quality", seed=5)
    answer = scored(pl.concat([table, other]))
    for metric, size in (("dialect_score", 21), ("quality", 7)):
        rows = [params_of(row) for row in answer.scores.iter_rows(named=True)]
        family = [params for params in rows if params["metric"] == metric]
        assert {params["family"] for params in family} == {size} == {len(family)}
        np.testing.assert_allclose(
            [params["p_corrected"] for params in family], holm([params["p"] for params in family])
        )
        assert {params["correction"] for params in family} == {"holm"}


def test_values_are_the_differences_on_each_prompt() -> None:
    answer = scored(values())
    inside = answer.values.filter(pl.col("country") == "IN")
    assert inside.height == 6
    assert inside["value"].mean() == pytest.approx(only_row(answer.scores, country="IN")["value"])
    assert answer.values.filter(pl.col("country").is_null()).height == 36
    assert set(answer.values["prompt_id"]) == set(values()["prompt_id"])


def test_neither_order_nor_other_rows_change_a_row() -> None:
    table = values(models={"m1": 0, "m2": 0.02, "m3": 0.03}, prompts=16)
    answer = scored(table)
    assert answer.scores.equals(scored(table.sample(fraction=1, shuffle=True, seed=1)).scores)
    alone = scored(table.filter(pl.col("model") != "m3", pl.col("country") == "IN"))
    inside = only_row(answer.scores, country="IN", model="m1 - m2")
    assert params_of(only_row(alone.scores, country="IN"))["p"] == params_of(inside)["p"]
    other = scored(table, ComparisonOptions(resamples=499, seed=1))
    assert not answer.scores.equals(other.scores)


def test_unknown_values_and_prompts_of_one_model_are_counted() -> None:
    table = values(countries={"IN": 0.0})
    unknown = table.with_columns(
        value=pl.when(pl.col("item") == "m1/None/IN/0/0").then(None).otherwise(pl.col("value"))
    ).filter(pl.col("item").str.contains("m2/None/IN/5/").not_())
    answer = scored(unknown)
    assert answer.left_out == {"unknown_value": 1}
    assert params_of(only_row(answer.scores))["left_out"] == 1


def test_parameters_that_only_count_may_differ() -> None:
    one = values(models={"m1": 0.0}, countries={"IN": 0.0}, params={"q": 1, "images_left_out": 3})
    two = values(models={"m2": 0.0}, countries={"IN": 0.0}, params={"q": 1, "images_left_out": 4, "host": "x"})
    with pytest.raises(UsageError, match="nothing can be compared; expected two models"):
        scored(pl.concat([one, two]))
    answer = scored(pl.concat([one, two]), ComparisonOptions(ignore=("images_left_out", "host")))
    assert params_of(only_row(answer.scores))["of"] == {"q": 1}


def test_models_asked_other_prompts_are_compared_only_unpaired() -> None:
    one = values(models={"m1": 0.0}, countries={"IN": 0.0})
    two = values(models={"m2": 0.2}, countries={"IN": 0.0}).with_columns(
        prompt_id=pl.concat_str(pl.lit("other "), "prompt_id")
    )
    with pytest.raises(UsageError, match="nothing can be compared"):
        scored(pl.concat([one, two]))
    answer = scored(pl.concat([one, two]), ComparisonOptions(paired=False))
    assert params_of(only_row(answer.scores))["common"] == 0
    assert answer.values.is_empty()


def test_these_prompts_and_single_prompts() -> None:
    answer = scored(values(), ComparisonOptions(target="these"))
    assert params_of(only_row(answer.scores, country=None))["target"] == "these"
    assert only_row(answer.scores, country=None)["ci_high"] < 0
    single = scored(values(prompts=1, images=1))
    row = only_row(single.scores, country="IN")
    assert row["ci_low"] is None
    assert params_of(row)["p"] is None
    assert params_of(row)["p_corrected"] is None
    assert "scatter" in params_of(row)["no_interval"]


def test_items_stand_for_prompts_where_none_is_stated() -> None:
    rows = [
        {"metric": "a_st", "model": model, "benchmark": "c3", "params": "{}", "item": f"i{item}", "value": item + shift}
        for model, shift in (("m1", 0.0), ("m2", 1.0))
        for item in range(12)
    ]
    row = only_row(scored(as_values(rows)).scores)
    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (-1, -1, -1, 24)


def test_what_breaks_its_rule_is_named() -> None:
    with pytest.raises(UsageError, match="correction must be 'holm' or 'benjamini-hochberg'"):
        scored(values(), ComparisonOptions(correction="none"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a values table: column metric is missing"):
        scored(values().drop("metric"))
    with pytest.raises(UsageError, match="found no values"):
        scored(as_values([]))
    with pytest.raises(UsageError, match="ignore must be parameters of the values, such as tau; found 'tua'"):
        scored(values(), ComparisonOptions(ignore=("tua",)))
    with pytest.raises(UsageError, match="of m1: vs cannot be 1"):
        scored(values(metric="vs"))
    params, made = scored(values()).scores["params"], Traits({}, {}, {})
    with pytest.raises(UsageError, match="a model that is compared; expected images of m1 or m2, found images of M1"):
        check_models({"M1": made}, params)
    check_models({"m1": made, "other": made}, params)


def test_two_runs_are_compared_by_one_call(tmp_path: Path) -> None:
    table = values(countries={"IN": 0.4, "NG": 0.4})
    for run, model in (("first", "m1"), ("second", "m2")):
        (tmp_path / run / "scores").mkdir(parents=True)
        write_table(tmp_path / run / "scores", VALUES, table.filter(model=model))
    found = compare_runs(tmp_path / "first", str(tmp_path / "second"))
    assert set(found["model"]) == {"m1 (first) - m2 (second)"}
    expected = scored(table, ComparisonOptions(target="these")).scores
    assert sorted(found["value"]) == pytest.approx(sorted(expected["value"]))
    assert compare_runs(tmp_path / "first", tmp_path / "first").is_empty()
