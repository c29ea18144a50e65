"""Diversity within countries: each country as `score qvs` has it, means with added variances, nothing dropped."""

import json
import math

import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.schemas import MATCHES, SCORES, VALUES
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from culturekit.scores.within import NO_BATCH, NO_IMAGES, score_within

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
         "repeat": repeat, "slot": slot, "rank": 1, "artifact_id": letter, "artifact": letter, "country": "IN",
         "countries": ["IN"], "continent": "Asia", "score": 1.0, "margin": 1.0, "country_margin": 1.0,
         "abstained": False, "method": "nearest"}
        for (model, prompt), repeats in shown.items()
        for repeat, letters in enumerate(repeats)
        for slot, letter in enumerate(letters)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=MATCHES.schema)
    assert MATCHES.problems(frame) == []
    return frame


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


def test_several_orders_have_a_mean_each() -> None:
    found = score_within(SHOWN, PROMPTS, options=QvsOptions(size=2, other_orders=(math.inf,))).scores
    means = found.filter(pl.col("country").is_null(), model="a")
    assert sorted(str(json.loads(text)["q"]) for text in means["params"]) == ["1.0", "inf"]


def test_images_of_open_prompts_alone_are_refused() -> None:
    with pytest.raises(UsageError, match="names a country"):
        score_within(SHOWN.filter(prompt_id="open"), PROMPTS, options=OPTIONS)
