"""What the page of `c3` says first: nobody is best whose interval another reaches."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import SCORES
from culturekit.recipes.c3 import page
from culturekit.recipes.c3 import roles as folders
from culturekit.report.run_folders import RunFolders


def worth(**values: float) -> pl.DataFrame:
    """Scores of strategies, each .1 wide, in both labels."""
    rows = [
        {"metric": "rating_mean", "model": model, "value": value, "ci_low": value - 0.05, "ci_high": value + 0.05,
         "n": 9, "params": f'{{"criterion":"relevance","labels":"{labels}"}}'}
        for model, value in values.items()
        for labels in ("people", "truth")
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={name: kind for name, kind in SCORES.schema.items() if name in rows[0]})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"c3": 3.5, "clip": 3.0, "random": 2.0}, "surely better than all others"),
        (
            {"c3": 3.5, "clip": 3.45, "random": 2.0},
            "surely better than random; whether better than CLIP (A_IT) is open",
        ),
        ({"c3": 3.0, "clip": 3.0}, "but not surely better than the other"),
    ],
)
def test_strategies_are_best_where_no_interval_reaches_theirs(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, float], said: str
) -> None:
    table = worth(**values).with_columns(country=pl.lit(None, pl.String), group=pl.lit(None, pl.String))
    named = table.with_columns(
        pl.col("params").str.json_path_match(f"$.{name}").alias(name) for name in ("criterion", "labels")
    )
    monkeypatch.setattr(RunFolders, "scored", lambda run, role, *names: named if role == folders.WORTH else None)
    *_, stands, best, true = page.verdict(RunFolders(Path(), ("a",), ()))
    assert stands.startswith("Nobody has put the judge right")
    assert best.startswith("By people's ratings, C³ keeps the pairs that fit best (3.")
    assert best.endswith(f", {said}.")
    assert true == "The truth puts C³ first too."


def test_answers_that_put_nothing_right_are_said_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    none = pl.DataFrame(schema={**SCORES.schema, "labels": pl.String})
    monkeypatch.setattr(RunFolders, "scored", lambda run, role, *names: none if role == folders.JUDGED else None)
    (stands,) = page.verdict(RunFolders(Path(), ("a",), ()))
    assert stands.startswith("People's answers do not put the judge right yet (the notes say why):")


@pytest.mark.parametrize("values", [[0.5], [0.3, 0.3 + 1e-16, 0.3], [0.0, 0.25, 1.0]])
def test_scores_in_steps_are_all_counted_also_where_they_are_alike(values: list[float]) -> None:
    counts, edges = page.in_steps(pl.Series(values))
    assert counts.sum() == len(values)
    assert len(counts) == len(edges) - 1
    assert edges[0] == min(values)
