"""From values to gaps between groups: recomputed by hand, whatever the order of the rows."""

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import compare, group_gap, holm
from culturekit.scores.family import Scored
from culturekit.scores.gaps import GapOptions, score_gaps
from tests.scores.value_tables import conforming, only_row, params_of, values

GROUPS = {"DE": "GN", "FR": "GN", "IN": "GS", "NG": "GS", "BR": "GS"}
OPTIONS = GapOptions("cultivate", GROUPS)


def scored(table: pl.DataFrame, options: GapOptions = OPTIONS) -> Scored:
    answer = score_gaps(table, options=options)
    conforming(answer.scores)
    return answer


def test_a_row_is_the_gap_of_one_score_of_one_model() -> None:
    table = values()
    answer = scored(table)
    assert answer.left_out == {"in_no_group": 24}
    row = only_row(answer.scores, model="m1")
    params = params_of(row)
    inside = table.filter(pl.col("model") == "m1", pl.col("country").is_in(list(GROUPS)))
    expected = group_gap(
        inside["value"].to_numpy(), groups=[GROUPS[country] for country in inside["country"]], first="GN", second="GS",
        countries=inside["country"].to_list(), prompts=inside["prompt_id"].to_list(),
    )  # fmt: skip
    assert (row["metric"], row["group"], row["country"]) == ("group_gap", "GN - GS", None)
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx(
        (expected.difference, expected.interval.low, expected.interval.high)
    )
    assert row["value"] == pytest.approx(0.6, abs=0.1)
    assert params["p"] == pytest.approx(expected.p)
    assert params["scheme"] == "cultivate"
    assert params["countries"] == {"GN": ["DE", "FR"], "GS": ["BR", "IN", "NG"]}
    assert (params["prompts"], params["target"], row["n"]) == (30, "population", 60)


def test_with_few_prompts_a_gap_speaks_about_these() -> None:
    row = only_row(scored(values(prompts=3)).scores, model="m1")
    assert params_of(row)["target"] == "these"
    assert row["ci_low"] is not None
    forced = only_row(
        scored(values(prompts=3), GapOptions("cultivate", GROUPS, target="population")).scores, model="m1"
    )
    assert params_of(forced)["target"] == "population"
    uneven = values().filter((pl.col("country") != "NG") | pl.col("prompt_id").str.ends_with("/0"))
    assert params_of(only_row(scored(uneven).scores, model="m1"))["target"] == "these"
    single = only_row(scored(values(prompts=1, images=1)).scores, model="m1")
    assert single["ci_low"] is None
    assert "scatter" in params_of(single)["no_interval"]


def test_several_concepts_also_make_one_gap_and_all_are_corrected_together() -> None:
    answer = scored(values(concepts=("dance", "food")))
    assert set(answer.scores["concept"].to_list()) == {"dance", "food", None}
    params = [params_of(row) for row in answer.scores.iter_rows(named=True)]
    assert [each["family"] for each in params] == [6] * 6
    np.testing.assert_allclose([each["p_corrected"] for each in params], holm([each["p"] for each in params]))


def test_every_two_groups_of_a_scheme() -> None:
    groups = {"DE": "Europe", "FR": "Europe", "IN": "Asia", "JP": "Asia", "NG": "Africa", "BR": "Americas"}
    answer = scored(values(models={"m1": 0.0}), GapOptions("un-m49-region", groups))
    assert answer.scores["group"].sort().to_list() == [
        "Africa - Americas", "Africa - Asia", "Africa - Europe", "Americas - Asia", "Americas - Europe",
        "Asia - Europe",
    ]  # fmt: skip
    assert answer.left_out == {}


def grouped(*, shared: bool) -> pl.DataFrame:
    """Values of prompts that name people of a group; both groups get the same prompts, or each its own."""
    parts = [
        values(models={"m1": shift}, countries={"US": 0.0}, prompts=12, seed=1).with_columns(
            group=pl.lit(group), country=pl.lit(None, pl.String),
            item=pl.concat_str("item", pl.lit(group)),
            prompt_id=pl.col("prompt_id") if shared else pl.concat_str("prompt_id", pl.lit(group)),
        )
        for group, shift in (("Hispanic", 0.0), ("white", 0.3))
    ]  # fmt: skip
    return pl.concat(parts)


def test_groups_that_stand_in_the_values_are_paired_where_prompts_are() -> None:
    options = GapOptions("group")
    paired, apart = (only_row(scored(grouped(shared=shared), options).scores) for shared in (True, False))
    assert (params_of(paired)["paired"], params_of(apart)["paired"]) == (True, False)
    assert paired["value"] == pytest.approx(apart["value"]) == pytest.approx(-0.3)
    table = grouped(shared=True)
    sides = [table.filter(pl.col("group") == group)["value"].to_numpy() for group in ("Hispanic", "white")]
    expected = compare(*sides, clusters=np.repeat(np.arange(12), 2), rng=np.random.default_rng(0))
    assert paired["ci_low"] == pytest.approx(expected.interval.low)
    assert paired["ci_high"] - paired["ci_low"] < apart["ci_high"] - apart["ci_low"]
    assert params_of(paired)["countries"] == {"Hispanic": [], "white": []}


def test_the_order_of_rows_does_not_matter() -> None:
    table = values(concepts=("dance", "food"))
    assert scored(table).scores.equals(scored(table.sample(fraction=1, shuffle=True, seed=2)).scores)


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(UsageError, match="no score has values of two groups of the scheme 'cultivate'"):
        scored(values(countries={"IN": 0.0, "NG": 0.0}))
    with pytest.raises(UsageError, match="expected values with a group, found countries DE"):
        scored(values(countries={"DE": 0.0}), GapOptions("group"))
    with pytest.raises(UsageError, match="target must be 'auto' or 'population' or 'these'; found 'all'"):
        scored(values(), GapOptions("cultivate", GROUPS, target="all"))  # type: ignore[arg-type]


def test_languages_are_compared_by_pairs_of_prompts() -> None:
    table = values(models={"m1": 0.0}, countries={"DE": 1.0, "FR": 1.2}, prompts=12)
    spoken = {each: "zh" if each.startswith("None/FR") else "en" for each in table["prompt_id"].unique()}
    empty = {"text": "x", "benchmark": "b", "kind": "k", "template_id": "t", "negative_text": None, "concept": None,
             "country": None, "group": None, "artifact_id": None}  # fmt: skip
    prompts = pl.DataFrame(
        [{**empty, "prompt_id": one, "language": two, "pair_id": one[-2:]} for one, two in spoken.items()]
    )
    answer = score_gaps(table, options=GapOptions("language"), prompts=prompts)
    conforming(answer.scores)
    gap = only_row(answer.scores.filter(metric="group_gap"), model="m1")
    means = table.group_by("country").agg(pl.col("value").mean()).sort("country")["value"]
    assert (gap["group"], params_of(gap)["paired"], params_of(gap)["prompts"]) == ("en - zh", True, 12)
    assert gap["value"] == pytest.approx(means[0] - means[1])
    assert dict(answer.scores.filter(metric="group_mean").select("group", "value").iter_rows()) == {
        "en": pytest.approx(means[0]), "zh": pytest.approx(means[1])
    }  # fmt: skip
    with pytest.raises(UsageError, match="needs the prompts"):
        score_gaps(table, options=GapOptions("language"))
