"""From values to differences of models and gaps of groups: recomputed by hand, whatever the order of the rows."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import VALUES
from culturekit.core.tables import write_table
from culturekit.generation.comparability import Traits
from culturekit.kg.countries import countries
from culturekit.metrics import compare, group_gap, holm
from culturekit.metrics.statistics.intervals import Mean
from culturekit.scores.compare import ComparisonOptions, check_models, compare_runs, score_comparisons
from culturekit.scores.family import Scored, equal_means
from culturekit.scores.gaps import GapOptions, score_gaps
from culturekit.scores.image_levels import SHIPPED, country_groups, read_groups
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


GROUPS = {"DE": "GN", "FR": "GN", "IN": "GS", "NG": "GS", "BR": "GS"}
GAPS_OPTIONS = GapOptions("cultivate", GROUPS)


def gaps_scored(table: pl.DataFrame, options: GapOptions = GAPS_OPTIONS) -> Scored:
    answer = score_gaps(table, options=options)
    conforming(answer.scores)
    return answer


def test_a_row_is_the_gap_of_one_score_of_one_model() -> None:
    table = values()
    answer = gaps_scored(table)
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
    row = only_row(gaps_scored(values(prompts=3)).scores, model="m1")
    assert params_of(row)["target"] == "these"
    assert row["ci_low"] is not None
    forced = only_row(
        gaps_scored(values(prompts=3), GapOptions("cultivate", GROUPS, target="population")).scores, model="m1"
    )
    assert params_of(forced)["target"] == "population"
    uneven = values().filter((pl.col("country") != "NG") | pl.col("prompt_id").str.ends_with("/0"))
    assert params_of(only_row(gaps_scored(uneven).scores, model="m1"))["target"] == "these"
    single = only_row(gaps_scored(values(prompts=1, images=1)).scores, model="m1")
    assert single["ci_low"] is None
    assert "scatter" in params_of(single)["no_interval"]


def test_several_concepts_also_make_one_gap_and_all_are_corrected_together() -> None:
    answer = gaps_scored(values(concepts=("dance", "food")))
    assert set(answer.scores["concept"].to_list()) == {"dance", "food", None}
    params = [params_of(row) for row in answer.scores.iter_rows(named=True)]
    assert [each["family"] for each in params] == [6] * 6
    np.testing.assert_allclose([each["p_corrected"] for each in params], holm([each["p"] for each in params]))


def test_every_two_groups_of_a_scheme() -> None:
    groups = {"DE": "Europe", "FR": "Europe", "IN": "Asia", "JP": "Asia", "NG": "Africa", "BR": "Americas"}
    answer = gaps_scored(values(models={"m1": 0.0}), GapOptions("un-m49-region", groups))
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
    paired, apart = (only_row(gaps_scored(grouped(shared=shared), options).scores) for shared in (True, False))
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
    assert gaps_scored(table).scores.equals(gaps_scored(table.sample(fraction=1, shuffle=True, seed=2)).scores)


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(UsageError, match="no score has values of two groups of the scheme 'cultivate'"):
        gaps_scored(values(countries={"IN": 0.0, "NG": 0.0}))
    with pytest.raises(UsageError, match="expected values with a group, found countries DE"):
        gaps_scored(values(countries={"DE": 0.0}), GapOptions("group"))
    with pytest.raises(UsageError, match="target must be 'auto' or 'population' or 'these'; found 'all'"):
        gaps_scored(values(), GapOptions("cultivate", GROUPS, target="all"))  # type: ignore[arg-type]


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


def test_cultivate_has_the_sixteen_countries_of_the_paper() -> None:
    groups = country_groups("cultivate")
    north = sorted(country for country, group in groups.items() if group == "GN")
    south = sorted(country for country, group in groups.items() if group == "GS")
    assert north == ["DE", "ES", "FR", "IT", "US"]
    assert south == ["BR", "CN", "ID", "IN", "IR", "MX", "NG", "NP", "PH", "TR", "ZA"]


def test_every_country_has_a_region_and_a_subregion() -> None:
    regions, subregions = country_groups("un-m49-region"), country_groups("un-m49-subregion")
    assert set(regions) == set(subregions) == set(countries())
    assert set(regions.values()) == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
    assert (regions["TR"], subregions["TR"]) == ("Asia", "Western Asia")
    assert (regions["MX"], subregions["MX"]) == ("Americas", "Latin America and the Caribbean")


def test_the_shipped_schemes_are_those_that_are_named() -> None:
    for scheme in SHIPPED:
        assert country_groups(scheme)
    with pytest.raises(UsageError, match="no scheme 'undp' of country groups; expected cultivate or un-m49-region"):
        country_groups("undp")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_ones_own_keeps_norway(tmp_path: Path) -> None:
    yaml = written(tmp_path / "own.yaml", "nordic:\n  north: [NO, IS]\n  other:\n    - DE\nsize:\n  large: [US]\n")
    table = written(
        tmp_path / "own.csv", "scheme,group,country,note\nnordic,north,NO,x\nnordic,north,IS,\nnordic,other,DE,\n"
    )
    assert read_groups(yaml)["nordic"] == read_groups(table)["nordic"] == {"NO": "north", "IS": "north", "DE": "other"}
    assert country_groups("size", yaml) == {"US": "large"}
    with pytest.raises(UsageError, match=r"own.yaml: there is no scheme 'cultivate'.*expected nordic or size"):
        country_groups("cultivate", yaml)


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        ("a.yaml", "s:\n  g: [Norway]\n  h: [DE, NO]\n  i: [NO]\n", ["a.yaml:2: a country is an ISO 3166-1 alpha-2",
         "a.yaml:4: NO is in two groups of s: h and i"]),
        ("a.yaml", "s:\n  g: DE\n", ["a.yaml:2: s.g: write scheme, then group, then a list of countries"]),
        ("a.yaml", "- DE\n", ["write scheme, then group, then a list of countries"]),
        ("a.yaml", "s: [DE]\n", ["s: write scheme, then group, then a list of countries"]),
        ("a.csv", "scheme,group,country\ns,g,de\n", ["a.csv:2: a country is an ISO 3166-1 alpha-2 code"]),
    ],
)  # fmt: skip
def test_every_mistake_is_listed_with_its_line(tmp_path: Path, name: str, text: str, messages: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_groups(written(tmp_path / name, text))
    for message in messages:
        assert message in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_groups(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="there is no such YAML file"):
        read_groups(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="lacks the column group; expected scheme, group, country"):
        read_groups(written(tmp_path / "a.csv", "scheme,country\ns,DE\n"))
    with pytest.raises(UsageError, match="groups are read from YAML or CSV"):
        read_groups(written(tmp_path / "a.txt", ""))
    (tmp_path / "b.csv").write_bytes(b"scheme,group,country\n\xff\n")
    with pytest.raises(UsageError, match="not in UTF-8"):
        read_groups(tmp_path / "b.csv")


@pytest.mark.parametrize("line", ["mine, ,BR", ",A,BR"])
def test_a_group_without_a_name_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_groups(written(tmp_path / "groups.csv", f"scheme,group,country\nmine,A,FR\n{line}\n"))
    assert "groups.csv:3: the scheme or the group of BR has no name" in str(refused.value.problems[0])


def test_independent_means_count_alike_with_the_freedom_of_welch_and_satterthwaite() -> None:
    means = [Mean(0.2, 0.01, 5), Mean(0.5, 0.04, 8), Mean(0.8, 0.0225, 20)]
    found = equal_means(means, n=90, confidence=0.9)
    freedom = 0.0725**2 / (0.01**2 / 5 + 0.04**2 / 8 + 0.0225**2 / 20)
    margin = stats.t(freedom).ppf(0.95) * math.sqrt(0.0725) / 3
    assert found.value == pytest.approx(0.5)
    assert found.n == 90
    assert (found.low, found.high) == pytest.approx((0.5 - margin, 0.5 + margin))


def test_means_without_scatter_have_no_width_and_no_means_no_value() -> None:
    found = equal_means([Mean(0.2, 0.0, 5), Mean(0.4, 0.0, 5)], n=2, confidence=0.9)
    assert (found.low, found.value, found.high) == pytest.approx((0.3, 0.3, 0.3))
    assert math.isnan(equal_means([], n=0, confidence=0.9).value)
