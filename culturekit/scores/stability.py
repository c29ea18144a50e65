"""From scores by several instruments to how far these agree on the order of the models."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field
from scipy import stats

from culturekit.core.declared import Typed
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import SCORES
from culturekit.core.tables import checked, read_table
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.catalog import describe
from culturekit.scores.family import (
    COUNTS,
    SCOPE,
    Row,
    Scored,
    check_ranges,
    params_without,
    parsed,
    scored,
    scores,
    statistic_row,
)
from culturekit.scores.inputs import check_apart

ALL_MODELS = "all"
STABLE = 0.8  # Kendall's tau below which a ranking of models is called not stable

ROUNDING = 1e-9  # Five models of which two change places have a tau of 4/5, which is reckoned as .7999999999999999

OF_INSTRUMENT = (*COUNTS, "method", "encoder")  # Parameters that say which instrument made a score, not what was scored

FEW = "fewer than three models have both scores"
ALIKE = "all models have one value by an instrument"


def named_tables(texts: Sequence[str]) -> Files:
    """Read NAME=FILE, each name once."""
    named = [text.partition("=") for text in texts]
    wrong = [text for text, (name, sign, path) in zip(texts, named, strict=True) if not (name and sign and path)]
    if wrong or len({name for name, _, _ in named}) < len(named):
        found = ", ".join(wrong) or "a name given twice"
        raise UsageError("tables of scores have names", expected="NAME=FILE, each name once", found=found)
    check_apart("a ranking", [Path(path) for _, _, path in named])
    return Files({name: Path(path) for name, _, path in named})


RANKING_STABILITY = describe(
    "ranking_stability",
    "Stability of a ranking of models",
    "Kendall's tau-b of the models' values of params.metric by two instruments (params.between): encoders or channels "
    "that mapped the same images",
    paper="Kendall 1945",
    inputs=("scores: metric, model, benchmark, concept, country, group, params, value",),
    pitfalls=(
        "Below 0.8 (params.stable is false) the order of the models depends on the encoder: tell no order.",
        "With few models tau has few values: of four models a single exchange makes it 0.67. It has no interval.",
        "Two encoders trained on the same pictures can agree in the same error.",
    ),
    low=-1.0,
    direction="higher",
    unit="coefficient",
)


@scores(
    "stability", RANKING_STABILITY, version=3,
    example="--scores clip=scores/scores.parquet --scores siglip=others/scores.parquet --out stability",
    amend=lambda stage, _: replace(stage, options={"instruments": sorted(stage.inputs)}),
)  # fmt: skip
def stability(
    scores: Annotated[
        Files,
        Field(description="NAME=FILE: a table of scores under the name of what mapped the images; at least two."),
        Typed(gather=named_tables),
    ],
) -> Scored:
    """Correlate rankings of models by encoders or channels.

    Every two of them; below .8 a ranking is not stable.
    """
    return score_stability({name: read_table(path, SCORES) for name, path in sorted(scores.files("scores").items())})


def score_stability(scores: Mapping[str, pl.DataFrame]) -> Scored:
    """Correlate the rankings of models by every two instruments, score by score.

    Returns:
        `ranking_stability`: Kendall's tau-b of the models' values, with the names of the two instruments in params.
        No interval: the models are not a sample of anything. Of fewer than three models there is no ranking to speak
        of, nor where an instrument gives all models one value, and the score is counted as left out.
    """
    if len(scores) < 2:
        raise UsageError("a ranking is compared with another", expected="at least two tables of scores")
    known = {name: checked(frame, SCORES) for name, frame in scores.items()}
    for frame in known.values():
        check_ranges(frame)
    tables = {name: rankings(frame) for name, frame in known.items()}
    rows: list[Row] = []
    left_out = Counter({FEW: 0, ALIKE: 0})
    for (first, one), (second, other) in itertools.combinations(tables.items(), 2):
        for key in sorted(set(one) & set(other)):
            models = sorted(set(one[key]) & set(other[key]))
            if len(models) < 3:
                left_out[FEW] += 1
            elif any(len({side[key][model] for model in models}) == 1 for side in (one, other)):
                left_out[ALIKE] += 1
            else:
                rows.append(stability_row(key, (first, second), models, one[key], other[key]))
    return scored(rows, left_out=left_out)


def rankings(scores: pl.DataFrame) -> dict[tuple[str | None, ...], dict[str, float]]:
    """Gather the known value of each model under what was scored, whatever the instrument."""
    found: dict[tuple[str | None, ...], dict[str, float]] = {}
    for row in scores.filter(pl.col("value").is_finite()).iter_rows(named=True):
        if parsed(row["params"]).get("labels") in {"truth", "corrected"}:  # no instrument measured it
            continue
        key = (row["metric"], *(row[name] for name in SCOPE), params_without(row["params"], OF_INSTRUMENT))
        found.setdefault(tuple("" if part is None else part for part in key), {})[row["model"]] = row["value"]
    return found


def stability_row(
    key: tuple[str | None, ...],
    between: tuple[str, str],
    models: list[str],
    one: Mapping[str, float],
    other: Mapping[str, float],
) -> Row:
    """Correlate two rankings of the same models."""
    metric, benchmark, concept, country, group, params = (part or None for part in key)
    tau = float(stats.kendalltau([one[model] for model in models], [other[model] for model in models]).statistic)
    about = {**parsed(params or "{}"), "metric": metric, "between": sorted(between), "stable": tau >= STABLE - ROUNDING}
    scope = {"benchmark": benchmark or "", "concept": concept, "country": country, "group": group}
    answer = Interval(tau, math.nan, math.nan, len(models), "these")
    return statistic_row("ranking_stability", model=ALL_MODELS, answer=answer, params=about, **scope)  # type: ignore[arg-type]
