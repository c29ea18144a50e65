"""Models compared and ranked by corrected diversity: limits, false alarms, and ranks that hold."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import SCORES
from culturekit.core.tables import write_table
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.compare import difference_of, ranks, score_ranks
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.verify.test_command import made, verdicts

Z = 1.959964


def score_rows(answers: Sequence[tuple[float, float, float]], *, kernel: str = "country") -> pl.DataFrame:
    rows = [
        {"metric": "vs", "model": f"m{number}", "benchmark": "cube", "concept": "art", "value": value, "ci_low": low,
         "ci_high": high, "n": 100, "unit": "share",
         "params": json.dumps({"labels": "corrected", "kernel": kernel, "confidence": 0.95, "audited": 100 + number})}
        for number, (value, low, high) in enumerate(answers)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCORES.schema)


def ranks_of(scores: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    found = score_ranks(scores).scores.filter(metric="model_rank")
    return {row["model"]: (row["value"], row["ci_low"], row["ci_high"]) for row in found.iter_rows(named=True)}


def test_what_stands_beside_a_score_stands_beside_what_it_is_compared_in(tmp_path: Path) -> None:
    scores = score_rows([(0.8, 0.78, 0.82), (0.5, 0.45, 0.55), (0.2, 0.18, 0.22)])
    marked = pl.col("params").str.replace('"audited"', '"marked": ["one rater"], "audited"', literal=True)
    (tmp_path / "in").mkdir()
    one = scores.with_columns(params=pl.when(pl.col("model") == "m1").then(marked).otherwise("params"))
    write_table(tmp_path / "in", SCORES, one)
    done = culturekit("score", "ranks", "--scores", tmp_path / "in/scores.parquet", "--out", tmp_path / "out")
    assert "(marked: one rater)" in done.stdout
    found = pl.read_parquet(tmp_path / "out/scores.parquet")
    said = {
        row["model"]: json.loads(row["params"]).get("marked", [])
        for row in found.filter(metric="model_difference").iter_rows(named=True)
    }
    assert said == {"m0 - m1": ["one rater"], "m0 - m2": [], "m1 - m2": ["one rater"]}
    ranked = found.filter(metric="model_rank")["params"]  # a rank is one among all models
    assert [json.loads(params)["marked"] for params in ranked] == [["one rater"]] * 3


def test_a_difference_takes_the_limits_that_it_depends_on() -> None:
    first, second = Interval(0.6, 0.5, 0.9, 100, "these"), Interval(0.3, 0.3, 0.34, 50, "these")
    found, p = difference_of(first, second, confidence=0.95)
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - np.hypot(0.1, 0.04))
    assert found.high == pytest.approx(0.6)
    assert 0 < p < 0.05
    assert difference_of(second, first, confidence=0.95)[1] == pytest.approx(p)
    assert difference_of(first, first, confidence=0.95)[1] == 1.0


def test_ranks_say_which_models_cannot_be_told_apart() -> None:
    scores = score_rows([(0.8, 0.78, 0.82), (0.5, 0.45, 0.55), (0.48, 0.43, 0.53), (0.2, 0.18, 0.22)])
    assert ranks_of(scores) == {"m0": (1, 1, 1), "m1": (2, 2, 3), "m2": (3, 2, 3), "m3": (4, 4, 4)}


def test_other_kernels_and_mapped_scores_are_not_mixed_in() -> None:
    mapped = score_rows([(0.9, 0.9, 0.9), (0.1, 0.1, 0.1)]).with_columns(
        params=pl.col("params").str.replace("corrected", "mapped")
    )
    both = pl.concat([score_rows([(0.5, 0.4, 0.6), (0.6, 0.5, 0.7)]), mapped])
    assert ranks_of(both) == {"m0": (2, 1, 2), "m1": (1, 1, 2)}
    with pytest.raises(UsageError, match="nothing can be ranked"):
        score_ranks(mapped)
    with pytest.raises(UsageError, match="twice"):
        score_ranks(pl.concat([both, both]))


def test_equal_models_raise_false_alarms_as_seldom_as_stated_and_ranks_hold_the_truth() -> None:
    rng = np.random.default_rng(0)
    errors = np.array([0.01, 0.02, 0.03, 0.04, 0.05])  # unequal instruments
    alarms, held, runs = 0, 0, 300
    truth = np.array([0.4, 0.4, 0.45, 0.5, 0.6])
    for _ in range(runs):
        equal = 0.5 + errors * rng.standard_normal(5)
        limits = [(value, value - Z * error, value + Z * error) for value, error in zip(equal, errors, strict=True)]
        alarms += any((low, high) != (1, 5) for _, low, high in ranks_of(score_rows(limits)).values())
        seen = truth + errors * rng.standard_normal(5)
        limits = [(value, value - Z * error, value + Z * error) for value, error in zip(seen, errors, strict=True)]
        held += all(
            low <= 1 + (truth > truth[int(model[1:])]).sum() <= high
            for model, (_, low, high) in ranks_of(score_rows(limits)).items()
        )
    assert alarms / runs <= 0.05
    assert held / runs >= 0.95


SCORES_SEEN = ((0.8, 0.78, 0.82), (0.5, 0.45, 0.55), (0.48, 0.43, 0.53))


def ranked(tmp_path: Path) -> Path:
    """Rank three models of a finished table of scores."""
    (tmp_path / "scores").mkdir()
    table = write_table(tmp_path / "scores", SCORES, score_rows(SCORES_SEEN))
    return made(ranks.stage(Numbered([table])), tmp_path / "ranks")


def test_every_difference_and_rank_is_recomputed(tmp_path: Path) -> None:
    answer = verify_run(ranked(tmp_path))
    assert [str(finding) for finding in answer.findings] == []
    assert verdicts(answer) == {"verified"}
    found = pl.read_parquet(tmp_path / "ranks/scores.parquet")
    assert dict(found["metric"].value_counts().iter_rows()) == {"model_difference": 3, "model_rank": 3}
