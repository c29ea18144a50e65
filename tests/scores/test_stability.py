"""Rankings of models by several instruments."""

import json
import math

import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.schemas import SCORES
from culturekit.metrics import CATALOG
from culturekit.scores.stability import score_stability


def scores(
    values: dict[str, float], *, metric: str = "vs", concept: str | None = "cuisine", **params: object
) -> pl.DataFrame:
    """One score of each model."""
    rows = [
        {
            "metric": metric, "model": model, "benchmark": "cube", "concept": concept, "params": json.dumps(params),
            "value": value, "n": 10, "unit": "share",
        }
        for model, value in values.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCORES.schema)


ONE = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0.35}
OTHER = {"a": 0.2, "b": 0.1, "c": 0.5, "d": 0.6, "e": 0.7}


def test_tau_is_that_of_the_common_models() -> None:
    answer = score_stability({"clip": scores(ONE), "siglip": scores({**OTHER, "f": 0.0})}).scores
    assert SCORES.problems(answer) == []
    expected = stats.kendalltau(list(ONE.values()), list(OTHER.values())).statistic
    assert answer["value"].to_list() == [pytest.approx(expected)]
    params = json.loads(answer["params"][0])
    assert (params["between"], params["metric"], params["stable"]) == (["clip", "siglip"], "vs", False)
    assert (answer["n"][0], answer["concept"][0]) == (5, "cuisine")
    assert answer["metric"][0] in CATALOG


def test_the_same_ranking_is_stable_and_the_opposite_is_not() -> None:
    falling = {model: 1 - value for model, value in ONE.items()}
    answer = score_stability({"a": scores(ONE), "b": scores(ONE), "c": scores(falling)}).scores
    found = {tuple(json.loads(row["params"])["between"]): row for row in answer.iter_rows(named=True)}
    assert [found[pair]["value"] for pair in (("a", "b"), ("a", "c"), ("b", "c"))] == pytest.approx([1, -1, -1])
    assert json.loads(found["a", "b"]["params"])["stable"] is True


def test_only_scores_of_the_same_thing_are_compared() -> None:
    one = pl.concat([scores(ONE, q=1, labels="mapped"), scores(ONE, q=2, labels="mapped"), scores(ONE, labels="truth")])
    other = pl.concat([scores(OTHER, q=2, labels="mapped"), scores(OTHER, labels="truth"), scores(OTHER, concept=None)])
    answer = score_stability({"x": one, "y": other}).scores
    assert [json.loads(params)["q"] for params in answer["params"]] == [2]


def test_how_the_images_were_labelled_does_not_part_them() -> None:
    one, other = scores(ONE, method="nearest", images_left_out=0), scores(OTHER, method="vlm", images_left_out=3)
    assert score_stability({"x": one, "y": other}).scores.height == 1


def test_few_models_are_counted_as_left_out() -> None:
    two = {"a": 0.1, "b": 0.2, "c": math.nan}
    answer = score_stability({"x": scores(ONE), "y": scores(two)})
    assert answer.scores.is_empty()
    assert answer.left_out == {"fewer than three models have both scores": 1}


def test_an_instrument_that_finds_all_models_alike_ranks_none() -> None:
    answer = score_stability({"x": scores(ONE), "y": scores(dict.fromkeys(ONE, 0.5))})
    assert answer.scores.is_empty()  # tau was not a number there
    assert answer.left_out == {"all models have one value by an instrument": 1}


def test_params_that_are_no_json_object_are_explained() -> None:
    broken = scores(ONE).with_columns(params=pl.lit("[]"))
    with pytest.raises(UsageError, match=r"the params of a score cannot be read; expected a JSON object.*found '\[\]'"):
        score_stability({"x": broken, "y": scores(ONE)})


def test_one_table_is_refused() -> None:
    with pytest.raises(UsageError, match="compared with another"):
        score_stability({"x": scores(ONE)})
