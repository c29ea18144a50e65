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
         "params": f'{{"criterion":"relevance","labels":"{labels}"}}'}
        for model, value in values.items()
        for labels in ("people", "truth")
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={name: kind for name, kind in SCORES.schema.items() if name in rows[0]})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"c3": 3.5, "clip": 3.0, "random": 2.0}, "the pairs kept by C³ fit best."),
        ({"c3": 3.5, "clip": 3.45, "random": 2.0}, "by C³ and CLIP (A_IT) fit best: their intervals overlap."),
        ({"c3": 3.0, "clip": 3.0}, "fit best: their intervals overlap."),
    ],
)
def test_strategies_are_best_where_no_interval_reaches_theirs(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, float], said: str
) -> None:
    table = worth(**values).with_columns(country=pl.lit(None, pl.String), group=pl.lit(None, pl.String))
    told = table.with_columns(
        pl.col("params").str.json_path_match(f"$.{name}").alias(name) for name in ("criterion", "labels")
    )
    monkeypatch.setattr(page, "_scores_of", lambda run, role, *names: told if role == folders.WORTH else None)
    lines = list(page.verdict(RunFolders(Path(), ("a",), ())))
    assert [line.endswith(said) for line in lines[-2:]] == [True, True]
    assert lines[-1].startswith("In truth")
