"""How far models are apart in quality and faithfulness, prompt by prompt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.records.schemas import SCORES
from culturekit.report.faithfulness_judges import title_of
from culturekit.report.figures import Figure
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["Apart", "faithfulness_differences"]


@dataclass(frozen=True, slots=True)
class Apart:
    """How far the first model is above the second by one judge.

    Attributes:
        title: of the instrument.
        judge: who scored.
        first: the model with the larger score.
        second: the other.
        difference: on the common prompts.
        p: corrected for the number of comparisons; None where nothing says how much values scatter.
        common: prompts that both answered.
        left_out: prompts that only one answered.
    """

    title: str
    judge: str
    first: str
    second: str
    difference: Figure
    p: float | None
    common: int
    left_out: int


def faithfulness_differences(run: RunFolders, models: Sequence[str]) -> Iterator[Apart]:
    """Give the differences of every two models over all their prompts, judge by judge, the largest first."""
    table = run.read(roles.FAITHFULNESS_COMPARISON, SCORES)
    if table is None:
        return
    of = pl.Struct(dict.fromkeys(("judge", "scorer"), pl.String))
    params = pl.Struct(
        [
            pl.Field("of", of),
            *(pl.Field(name, pl.String) for name in ("a", "b", "metric")),
            *(pl.Field(name, pl.Int64) for name in ("common", "left_out")),
            pl.Field("p_corrected", pl.Float64),
        ]
    )
    rows = table.with_row_index("row").with_columns(p=pl.col("params").str.json_decode(params))
    over_all = rows.filter(pl.col("concept").is_null(), pl.col("country").is_null())
    found = [apart(row) for row in over_all.to_dicts() if {row["p"]["a"], row["p"]["b"]} <= set(models)]
    yield from sorted(found, key=lambda one: (one.title, one.judge, -one.difference.value, one.first, one.second))


def apart(row: dict[str, object]) -> Apart:
    """Read one comparison; the larger score stands first."""
    about: dict[str, object] = row["p"]  # type: ignore[assignment]
    of: dict[str, str | None] = about["of"]  # type: ignore[assignment]
    judge = of["judge"] or of["scorer"] or ""
    value, low, high = (row[name] for name in ("value", "ci_low", "ci_high"))
    first, second = str(about["a"]), str(about["b"])
    if isinstance(value, float) and value < 0:
        first, second, value = second, first, -value
        low, high = (None if end is None else -end for end in (high, low))  # type: ignore[operator]
    figure = Figure(value, low, high, row["n"], row["row"])  # type: ignore[arg-type]
    title = title_of(str(about["metric"]), judge)
    return Apart(title, judge, first, second, figure, about["p_corrected"], about["common"], about["left_out"])  # type: ignore[arg-type]
