"""Corrected scores of an audit that is looked at on the way."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample
from culturekit.metrics.corrected.imputed_prompts import ImputedPrompts
from culturekit.metrics.corrected.looks import Goal, look_limits
from culturekit.scores.corrected import looked_at, score_corrected
from culturekit.scores.diversity import Correction, QvsOptions
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of

pytestmark = pytest.mark.usefixtures("imputed_in_few_rounds")

LOOKS = (50, 75, 100)
SHARES: dict[str, list[float]] = {"narrow": [1, 0, 0, 0, 0, 0], "some": [0.6, 0.2, 0.1, 0.1, 0, 0], "wide": [1 / 6] * 6}
OPTIONS = QvsOptions(kernels=((0.0, 1.0, 0.0), (1.0, 0.0, 0.0)))


def study(goal: Goal = "order") -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Three models far apart: matches, the sample with its looks, and what every image shows."""
    rng = np.random.default_rng(7)
    tables, found = [], dict[str, str | None]()
    for model, shares in SHARES.items():
        truth = [COUNTRIES[label] for label in rng.choice(6, p=shares, size=400)]
        tables.append(matches_of(mapped_with_error(truth, accuracy=0.85, rng=rng), model=model, prompts=4))
        found |= dict(zip(tables[-1]["image_id"].to_list(), truth, strict=True))
    matches = pl.concat(tables)
    return matches, audit_sample(matches, n=100, rng=rng, per="model", looks=LOOKS, goal=goal), audits_of(found)


def answered(sample: pl.DataFrame, truth: pl.DataFrame, looks: dict[str, int]) -> pl.DataFrame:
    """Give the answers up to a look of each model."""
    said = sample.filter(pl.col("look") <= pl.col("model").replace_strict(looks, return_dtype=pl.Int64))
    return truth.join(said.select("image_id"), on="image_id", how="semi")


def rows(scores: pl.DataFrame, metric: str) -> list[dict[str, Any]]:
    return [{**row, **json.loads(row["params"])} for row in scores.filter(metric=metric).iter_rows(named=True)]


def test_each_model_is_corrected_by_its_whole_looks_with_limits_that_hold_over_all() -> None:
    matches, sample, truth = study()
    audits = answered(sample, truth, {"narrow": 1, "some": 3, "wide": 2})
    scores = score_corrected(matches, audits, None, options=OPTIONS, sample=sample).scores
    reached = {row["model"]: (row["look"], row["audited"]) for row in rows(scores, "vs")}
    assert reached == {"narrow": (1, 50), "some": (3, 100), "wide": (2, 75)}

    seen = sample.filter(pl.col("look") <= 2)
    once = score_corrected(matches, audits, None, options=OPTIONS, sample=seen.drop("look", "goal")).scores
    factor = look_limits([0.5, 0.75, 1.0], alpha=0.05)[1] / ndtri(0.975)
    for kernel in ("country", "continent"):
        one, other = (
            next(row for row in rows(table, "vs") if (row["model"], row["kernel"]) == ("wide", kernel))
            for table in (scores, once)
        )
        assert one["value"] == other["value"]
        assert one["value"] - one["ci_low"] == pytest.approx(factor * (other["value"] - other["ci_low"]))


@pytest.mark.parametrize("goal", ["order", "top"])
def test_pairs_far_apart_are_settled_and_their_models_asked_no_more(goal: Goal) -> None:
    matches, sample, truth = study(goal)
    audits = answered(sample, truth, dict.fromkeys(SHARES, 1))
    scores = score_corrected(matches, audits, None, options=OPTIONS, sample=sample).scores
    found = {(row["model"], row["over"]): row for row in rows(scores, "vs_difference")}
    assert set(found) == {("narrow", "some"), ("narrow", "wide"), ("some", "wide")}
    assert found["narrow", "wide"]["state"] == "settled"
    for row in found.values():
        assert row["look"] == 1
        assert row["ci_low"] <= row["value"] <= row["ci_high"]
        assert (row["state"] in {"settled", "dropped"}) == (row["ci_high"] < 0)
    pairs, left = looked_at(matches, audits, sample, options=OPTIONS, correction=Correction())
    assert [pair.state for pair in pairs] == [row["state"] for row in found.values()]
    assert "wide" not in left
    assert ("narrow" in left) == (found["narrow", "some"]["state"] == "open")


def test_each_look_of_a_model_is_imputed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    imputed, begin = list[int](), ImputedPrompts.__init__

    def counted(*given: Any) -> None:
        imputed.append(1)
        begin(*given)

    monkeypatch.setattr(ImputedPrompts, "__init__", counted)
    matches, sample, truth = study()
    audits = answered(sample, truth, {"narrow": 1, "some": 3, "wide": 2})
    score_corrected(matches, audits, None, options=replace(OPTIONS, kernels=OPTIONS.kernels[:1]), sample=sample)
    assert len(imputed) == 1 + 3 + 2


def test_without_a_whole_look_nothing_is_corrected_and_the_reason_is_said() -> None:
    matches, sample, truth = study()
    few = answered(sample, truth, dict.fromkeys(SHARES, 1)).head(30)
    with pytest.raises(UsageError, match="no look of it is answered yet"):
        score_corrected(matches, few, None, options=OPTIONS, sample=sample)


def test_answers_that_wait_for_their_look_are_counted() -> None:
    matches, sample, truth = study()
    said = answered(sample, truth, dict.fromkeys(SHARES, 1))
    early = truth.join(sample.filter(look=2).head(3).select("image_id"), on="image_id", how="semi")
    found = score_corrected(matches, pl.concat([said, early]), None, options=OPTIONS, sample=sample)
    assert found.left_out["answers of looks that are not whole"] == 3
    assert {row["audited"] for row in rows(found.scores, "vs")} == {50}
    whole = score_corrected(matches, said, None, options=OPTIONS, sample=sample)
    assert whole.scores.equals(found.scores)
    assert "answers of looks that are not whole" not in whole.left_out


def test_a_sample_without_looks_is_scored_as_ever() -> None:
    matches, sample, truth = study()
    audits, plain = answered(sample, truth, dict.fromkeys(SHARES, 3)), sample.drop("look", "goal")
    scores = score_corrected(matches, audits, None, options=OPTIONS, sample=plain).scores
    assert rows(scores, "vs_difference") == []
    assert all("look" not in row for row in rows(scores, "vs"))
