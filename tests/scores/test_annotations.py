"""What people say of images: agreement, correlation with metrics, careless answers, scales of ratings."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import ANNOTATIONS, IMAGES, PROMPTS, QUALITY, VALUES
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
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
from culturekit.people.aggregate import careful
from culturekit.scores.agreement import AgreementOptions, score_agreement
from culturekit.scores.answers import (
    CARELESS,
    FLAGS,
    NO_ENDS,
    Ends,
    automatic_values,
    careful_answers,
    pooled_ratings,
    read_answers,
)
from culturekit.scores.family import Scored
from culturekit.scores.judged import JudgedOptions, score_judged
from culturekit.scores.meta import MetaOptions, meta, score_meta
from culturekit.scores.ratings import RatingOptions, score_ratings
from tests.scores.picture_tables import image_table, match_table
from tests.scores.value_tables import annotations, conforming, judgments, params_of, values

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


GROUPS = {"DE": "GN", "FR": "GN", "IN": "GS", "NG": "GS", "BR": "GS"}
META_OPTIONS = MetaOptions(resamples=99)
METRIC = values()
RATINGS = annotations(
    {item: 1 + 3 * min(worth, 1.3) for item, worth in METRIC.select("item", "value").iter_rows()}, noise=0.6
)


def meta_scored(*, options: MetaOptions = META_OPTIONS, table: pl.DataFrame = METRIC, **sources: Any) -> Scored:
    answer = score_meta(table, options=options, **sources)
    conforming(answer.scores)
    return answer


def chosen(answer: Scored, metric: str, **conditions: object) -> dict[str, Any]:
    rows = [
        row
        for row in answer.scores.filter(pl.col("metric") == metric).iter_rows(named=True)
        if all({**row, **params_of(row), **params_of(row)["with"]}.get(key) == value
               for key, value in conditions.items())
    ]  # fmt: skip
    assert len(rows) == 1
    return rows[0]


def item_means(pool: str) -> dict[str, float]:
    own = RATINGS.filter(pl.col("annotator_region") == pool)
    return dict(own.group_by("item_id").agg(pl.col("value").mean()).rows())


@pytest.mark.parametrize(
    ("method", "function"), [("spearman", stats.spearmanr), ("kendall", stats.kendalltau), ("pearson", stats.pearsonr)]
)
def test_a_row_is_the_correlation_with_one_pool(method: str, function: Any) -> None:
    answer = meta_scored(annotations=RATINGS)
    for model in ("m1", "m2", "all"):
        own = METRIC if model == "all" else METRIC.filter(pl.col("model") == model)
        for pool in ("IN", "DE"):
            means = item_means(pool)
            row = chosen(answer, "human_correlation", model=model, pool=pool, method=method)
            expected = function(own["value"].to_list(), [means[item] for item in own["item"]]).statistic
            assert row["value"] == pytest.approx(expected)
            assert row["ci_low"] < row["value"] < row["ci_high"]
            assert row["n"] == own.height
            assert params_of(row)["prompts"] == 36
            assert params_of(row)["metric"] == "dialect_score"


def test_groups_of_countries_have_rows_of_their_own() -> None:
    options = MetaOptions(methods=("spearman",), scheme="cultivate", groups=GROUPS, resamples=99)
    answer = meta_scored(annotations=RATINGS, options=options)
    assert answer.scores.height == 3 * 2 * 3
    own = METRIC.filter(pl.col("model") == "m1", pl.col("country").is_in(["DE", "FR"]))
    means = item_means("IN")
    row = chosen(answer, "human_correlation", model="m1", pool="IN", group="GN")
    expected = stats.spearmanr(own["value"].to_list(), [means[item] for item in own["item"]]).statistic
    assert row["value"] == pytest.approx(expected)
    assert params_of(row)["scheme"] == "cultivate"


def test_metrics_are_correlated_with_each_other() -> None:
    other = METRIC.with_columns(metric=pl.lit("quality"), value=-pl.col("value"))
    answer = meta_scored(table=pl.concat([METRIC, other]), options=MetaOptions(methods=("kendall",), resamples=99))
    row = chosen(answer, "metric_correlation", model="all")
    assert (row["value"], row["ci_low"], row["ci_high"]) == (-1, -1, -1)
    assert (params_of(row)["metric"], params_of(row)["with"]["metric"]) == ("dialect_score", "quality")
    assert set(answer.scores["metric"]) == {"metric_correlation"}


def test_a_small_sample_has_no_interval_and_says_why() -> None:
    table = METRIC.filter(pl.col("country") == "IN")
    row = chosen(
        meta_scored(table=table, annotations=RATINGS), "human_correlation", model="m1", pool="IN", method="pearson"
    )
    assert row["ci_low"] is None
    assert params_of(row)["no_interval"] == "fewer than 10 prompts, or no scatter"
    assert row["n"] == 12


def test_an_item_under_two_scores_counts_once_and_order_does_not_matter() -> None:
    again = METRIC.with_columns(country=pl.lit(None, pl.String))
    options = MetaOptions(methods=("spearman",), resamples=49)
    once = meta_scored(annotations=RATINGS, options=options)
    twice = meta_scored(table=pl.concat([METRIC, again]), annotations=RATINGS, options=options)
    assert once.scores.equals(twice.scores)
    shuffled = meta_scored(
        table=METRIC.sample(fraction=1, shuffle=True, seed=1),
        annotations=RATINGS.sample(fraction=1, shuffle=True, seed=2),
        options=options,
    )
    assert once.scores.equals(shuffled.scores)


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(UsageError, match="no item has two scores to correlate"):
        meta_scored()
    with pytest.raises(UsageError, match=r"no metric can be held against people.*ratings, of items such as 'unseen'"):
        meta_scored(annotations=annotations({"unseen": 3.0}))
    with pytest.raises(UsageError, match="no metric can be held against people"):  # metrics alone would be left
        meta_scored(table=METRIC, annotations=annotations({"unseen": 3.0}))
    with pytest.raises(UsageError, match="methods must be at least one correlation"):
        meta_scored(annotations=RATINGS, options=MetaOptions(methods=()))


def test_the_quality_of_images_that_nothing_was_mapped_of_is_held_against_people(work: Work, tmp_path: Path) -> None:
    """Images of activities have no matches, and `--quality` asked for these."""
    names = RATINGS["item_id"].unique().sort().to_list()
    images = image_table([
        {"image_id": name, "model": "m", "prompt_id": f"p{place}", "repeat": 0, "slot": 0}
        for place, name in enumerate(names)
    ])  # fmt: skip
    means = item_means("IN")
    rated = [(name, "clip", 2 * means.get(name, 0.0)) for name in names]
    quality = write_table(tmp_path, QUALITY, pl.DataFrame(rated, schema=QUALITY.schema, orient="row"))
    stage = meta.stage(
        annotations=write_table(tmp_path, ANNOTATIONS, RATINGS), quality=Numbered([quality]),
        images=Numbered([write_table(tmp_path, IMAGES, images)]), options=META_OPTIONS,
    )  # fmt: skip
    stage.run(work)
    found = pl.read_parquet(work.out / "scores.parquet").filter(metric="human_correlation", model="m")
    rows = [(params_of(row), row["value"]) for row in found.iter_rows(named=True)]
    of_home = [value for about, value in rows if about["with"]["pool"] == "IN" and about["method"] == "spearman"]
    assert of_home == pytest.approx([1.0] * len(of_home))
    assert of_home


def match(
    image: str, country: str | None, *, prompt: str = "p", abstained: bool = False, rank: int = 1
) -> dict[str, Any]:
    return {
        "image_id": image, "model": "m", "prompt_id": prompt, "concept": "art", "repeat": 0, "slot": 0, "rank": rank,
        "margin": 0.25,
        "artifact_id": "Q1", "artifact": "a", "country": country, "countries": ["IN", "PK"] if country == "PK" else [],
        "continent": "Asia", "abstained": abstained,
    }  # fmt: skip


def prompt(prompt_id: str, country: str | None) -> dict[str, Any]:
    return {
        "prompt_id": prompt_id, "text": "t", "benchmark": "cube", "kind": "cube", "concept": "art", "country": country,
        "language": "en", "template_id": "t",
    }  # fmt: skip


ROWS = [
    match("home", "IN"), match("home", "JP", rank=2), match("away", "JP"), match("both", "PK"),
    match("unsure", "IN", abstained=True), match("open", "IN", prompt="q"), match("unrated", "IN"),
]  # fmt: skip


def looked_up_values(**more: Any) -> pl.DataFrame:
    prompts = pl.DataFrame([prompt("p", "IN"), prompt("q", None)], schema=PROMPTS.schema)
    quality = pl.DataFrame({"image_id": ["home", "away"], "scorer": ["s", "s"], "value": [0.9, 0.4]})
    return automatic_values(
        [quality.select(list(QUALITY.schema))],
        [match_table(ROWS)],
        more.get("prompts", prompts),
        items=["home", "away", "both", "unsure", "open"],
    )


def test_every_value_is_what_the_tables_say() -> None:
    """Two images have a quality; one is mapped elsewhere, one to two countries; one abstained; one has no country."""
    table = looked_up_values()
    assert VALUES.problems(table) == []
    found = {metric: dict(part.select("item", "value").iter_rows()) for (metric,), part in table.group_by("metric")}
    assert found["quality"] == {"home": 0.9, "away": 0.4}
    assert found["similarity"] == dict.fromkeys(("home", "away", "both", "unsure", "open"), 0.5)
    assert set(found["margin"].values()) == {0.25}
    assert found["mapped_as_asked"] == {"home": 1.0, "away": 0.0, "both": 1.0, "unsure": None}
    assert json.loads(table.filter(metric="quality")["params"][0]) == {"scorer": "s"}


def test_without_prompts_nothing_was_asked_for() -> None:
    assert "mapped_as_asked" not in set(looked_up_values(prompts=None)["metric"])


def said(item: str, who: str, choice: str, realism: float) -> list[dict[str, Any]]:
    shared = {"item_id": item, "annotator": who, "annotator_region": "IN", "in_region": True, "scheme": "cube",
              "text": None, "seconds": 9.0, "flags": []}  # fmt: skip
    return [
        {**shared, "criterion": "belongs", "value": None, "choice": choice},
        {**shared, "criterion": "realism", "value": realism, "choice": None},
    ]


SAID = (("home", "x", "yes", 5), ("away", "x", "no", 2), ("both", "x", "yes", 3), ("both", "y", "no", 3))
PEOPLE = pl.DataFrame([row for one in SAID for row in said(*one)], schema=ANNOTATIONS.schema)


def correlations(**options: Any) -> dict[tuple[str, ...], tuple[float, int]]:
    answer = score_meta(looked_up_values(), annotations=PEOPLE, options=MetaOptions(people_only=True, **options))
    found: dict[tuple[str, ...], tuple[float, int]] = {}
    for row in answer.scores.iter_rows(named=True):
        params = json.loads(row["params"])
        person = params["with"]
        found[params["metric"], person["criterion"], person.get("choice", ""), params["method"]] = (
            row["value"],
            row["n"],
        )
    return found


def test_the_share_of_a_choice_is_a_rating_where_it_is_asked_for() -> None:
    """Shares of yes are 1, 0 and a half; mapped as asked 1, 0 and 1: Pearson is 0.866."""
    assert not any(key[1] == "belongs" for key in correlations())
    found = correlations(choices=("yes",))
    value, images = found["mapped_as_asked", "belongs", "yes", "pearson"]
    assert value == pytest.approx(0.75**0.5)
    assert images == 3
    assert found["quality", "realism", "", "spearman"][0] == pytest.approx(1.0)


def test_on_the_level_of_prompts_images_of_a_prompt_are_one() -> None:
    assert correlations(level="prompt")["similarity", "realism", "", "pearson"][1] == 1
    with pytest.raises(UsageError, match="level must be"):
        correlations(level="country")


CAREFUL_ITEMS = 40


def answers(*, careless: bool) -> pl.DataFrame:
    """Three people who know, and, where wanted, two who tick the top of the scale whatever they see."""
    rows = []
    for item in range(CAREFUL_ITEMS):
        said = [float(1 + (item + (n == 2 and item % 5 == 0)) % 5) for n in range(3)]
        people: list[tuple[str, float, list[str]]] = [(f"p{n}", value, []) for n, value in enumerate(said)]
        if careless:
            people += [(f"c{n}", 5.0, [FLAGS[n % len(FLAGS)]]) for n in range(2)]
        rows += [
            {"item_id": f"i{item:02}", "annotator": name, "annotator_region": "FR", "in_region": True, "scheme": "s",
             "criterion": "c", "value": value, "choice": None, "text": None, "seconds": 9.0,
             "flags": [*flags, "recruitment:prolific"]}
            for name, value, flags in people
        ]  # fmt: skip
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def careful_values() -> pl.DataFrame:
    """What a judge says of the same items."""
    row = {"metric": "vqascore", "model": "m", "benchmark": "b", "params": "{}"}
    rows = [
        {**row, "item": f"i{item:02}", "prompt_id": f"i{item:02}", "value": (item * 7 % 11) / 10}
        for item in range(CAREFUL_ITEMS)
    ]
    return pl.DataFrame([{name: one.get(name) for name in VALUES.schema} for one in rows], schema=VALUES.schema)


SCORES: dict[str, Callable[[pl.DataFrame], Scored]] = {
    "ratings": lambda people: score_ratings(people, options=RatingOptions()),
    "agreement": lambda people: score_agreement(people, options=AgreementOptions(resamples=99)),
    "meta": lambda people: score_meta(careful_values(), annotations=people, options=MetaOptions(resamples=99)),
    "judged": lambda people: score_judged(
        careful_values(), people, None, options=JudgedOptions(criterion="c", lowest=1, highest=5)
    ),
}


@pytest.mark.parametrize("family", SCORES)
def test_careless_answers_change_no_score_and_are_counted(family: str) -> None:
    alone, among = SCORES[family](answers(careless=False)), SCORES[family](answers(careless=True))
    assert among.scores.equals(alone.scores)
    assert among.left_out.get(CARELESS) == 2 * CAREFUL_ITEMS
    assert CARELESS not in alone.left_out


@pytest.mark.parametrize("family", SCORES)
def test_scores_of_careless_people_alone_are_refused(family: str) -> None:
    nobody = answers(careless=True).filter(pl.col("annotator").str.starts_with("c"))
    with pytest.raises(UsageError, match=f"no answer counts.*80 {CARELESS}"):
        SCORES[family](nobody)


def test_a_flag_that_does_no_harm_is_taken_away_so_that_answers_count_from_there_on() -> None:
    kept, counts = careful(answers(careless=True), FLAGS[:1])
    assert {why: count for why, count in counts.items() if count} == {f"flagged {FLAGS[1]}": CAREFUL_ITEMS}
    left_out: Counter[str] = Counter()
    assert careful_answers(kept, left_out).height == kept.height == 4 * CAREFUL_ITEMS
    assert left_out[CARELESS] == 0
    assert kept["flags"].list.contains("recruitment:prolific").all()


def rated(*values: float, scheme: str = "cube", criterion: str = "realism") -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"item_id": f"i{n}", "annotator": "a", "annotator_region": "IN", "in_region": True, "scheme": scheme,
         "criterion": criterion, "value": value, "choice": None, "text": None, "seconds": 9.0, "flags": []}
        for n, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def test_ratings_off_the_scale_of_a_form_of_ours_are_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, ANNOTATIONS, rated(1, 5, 50))
    with pytest.raises(UsageError, match=r"1 ratings lie off their scale.*from 1 to 5.*50 for realism, by 'a' of 'i2'"):
        read_answers(path)


@pytest.mark.parametrize("people", [rated(1, 5, float("nan")), rated(50, scheme="own"), rated(50, criterion="own")])
def test_ratings_of_a_scale_that_is_not_known_are_taken(tmp_path: Path, people: pl.DataFrame) -> None:
    assert read_answers(write_table(tmp_path, ANNOTATIONS, people)).height == people.height


@pytest.mark.parametrize(
    ("people", "stated", "said"),
    [
        (rated(1, 50, scheme="own"), NO_ENDS, "realism of own: no form tells the scale; ratings from 1 to 50 count as"),
        (rated(1, 50, scheme="own"), (1, 50), ""),
        (rated(1, 0, scheme="own"), NO_ENDS, ""),
        (rated(1, 5), NO_ENDS, ""),
        (rated(1, 10, scheme="linguistic_dialect", criterion="monk_tone"), NO_ENDS, ""),
    ],
)
def test_ratings_whose_scale_nobody_states_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, people: pl.DataFrame, stated: Ends, said: str
) -> None:
    path = write_table(tmp_path, ANNOTATIONS, people)
    for _ in range(2):
        read_answers(path, stated=stated)
    assert said in caplog.text
    assert caplog.text.count("no form tells") == bool(said)


def test_ratings_off_a_stated_scale_are_refused() -> None:
    people = rated(1, 5, 0, scheme="own")
    with pytest.raises(UsageError, match=r"off their scale.*from 1 to 5.*found 0"):
        score_ratings(people, options=RatingOptions(lowest=1, highest=5))
    judged = pl.DataFrame(schema=VALUES.schema)
    with pytest.raises(UsageError, match=r"off their scale.*from 1 to 5.*found 0"):
        score_judged(judged, people, options=JudgedOptions(criterion="realism", lowest=1, highest=5))
    quality = pl.DataFrame(
        [{"metric": "quality", "model": "m", "benchmark": "b", "params": "{}", "item": "i0", "value": 21.0}]
    )
    quality = quality.with_columns(pl.lit(None).alias(name) for name in VALUES.schema if name not in quality.columns)
    with pytest.raises(UsageError, match="on the scale of its scorer has none in common with people"):
        score_judged(quality.select(list(VALUES.schema)).cast(VALUES.schema), rated(1, scheme="own"),  # type: ignore[arg-type]
                     options=JudgedOptions(criterion="realism"))  # fmt: skip
    with pytest.raises(UsageError, match="both, or none"):
        RatingOptions(lowest=1)
