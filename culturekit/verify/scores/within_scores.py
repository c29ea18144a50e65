"""Diversity within countries, worked out again: each country, and the means over them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, Mean, of_these, t_answer, together
from culturekit.verify.scores.diversity_scores import (
    DiversityScores,
    by_prompt,
    check_diversity,
    values_by_score,
    worked_out,
)
from culturekit.verify.scores.labelled_images import DiversityTables, diversity_tables
from culturekit.verify.scores.score_rows import compare_row, wrong_row

__all__ = ["check_within"]

HOW_MEAN = "from the labels of its images: mean of countries, each of prompts and repeats; variances added"
HOW_ABSENT = "no match of such an image is there"

Rows = Sequence[dict[str, Any]]


def check_within(tree: RunTree, stage: FinishedStage, rows: Rows, ledger: Ledger) -> None:
    """Work out every row of a stage of scores within countries."""
    tables = diversity_tables(tree, stage)
    means = [row for row in rows if row["about"].get("over") == "countries"]
    absent = [row for row in rows if row["about"].get("no_value")]
    scored = [row for row in rows if row["country"] is not None and not row["about"].get("no_value")]
    check_diversity(stage.name, scored, tables, values_by_score(stage), ledger)
    if tables.missing:
        return
    scores = DiversityScores(tables)
    for row in absent:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            check_absent(stage.name, row, scores, ledger)
    for row in means:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            check_mean(stage.name, row, rows, scores, tables, ledger)


def check_absent(folder: str, row: dict[str, Any], scores: DiversityScores, ledger: Ledger) -> None:
    """Make sure that there is nothing to score where no value stands."""
    behind = scores.rows_behind(row)
    wrong = behind.height > 0 or row["n"] != 0 or not math.isnan(row["value"])
    if wrong:
        wrong_row(
            folder, row, "a country without images has some, or a value", expected="neither",
            found=f"{behind.height} images, value {row['value']}", ledger=ledger,
        )  # fmt: skip
    ledger.judge(folder, row, "wrong" if wrong else "verified", HOW_ABSENT)


def check_mean(
    folder: str, row: dict[str, Any], rows: Rows, scores: DiversityScores, tables: DiversityTables, ledger: Ledger
) -> None:
    """Average the countries of a model again."""
    parts: list[Mean] = []
    entered, without = 0, []
    for country in countries_asked(row, scores, tables, rows):
        own = {**row, "country": country}
        about = row["about"]
        images = scores.collection(own, size=int(about["size"]), missing=about["missing"], partial=about["partial"])
        if images is None or not images.batches:
            without.append(country)
            continue
        found = worked_out(own, images, scores)
        prompts = by_prompt(found.repeats)
        if not prompts:
            without.append(country)
            continue
        parts.append(of_these(prompts))
        entered += found.entered
    answer = t_answer(together(parts), float(row["about"]["confidence"])) if parts else Answer(*[math.nan] * 3)
    said = {"countries": len(parts), "countries_without": sorted(without)}
    compare_row(folder, row, answer, entered, HOW_MEAN, ledger, said=said)


def countries_asked(row: Mapping[str, Any], scores: DiversityScores, tables: DiversityTables, rows: Rows) -> list[str]:
    """List the countries that a mean is over: those of the model's images, and those it is said to have none of."""
    behind = scores.rows_behind({**row, "country": None})
    place = pl.col("prompt_id").replace_strict(tables.countries, default=None, return_dtype=pl.String)
    shown = set(behind.select(place.alias("place"))["place"].drop_nulls()) if behind.height else set()
    said = {
        other["country"]
        for other in rows
        if other["about"].get("no_value") and (other["model"], other["concept"]) == (row["model"], row["concept"])
    }
    return sorted(shown | said)
