"""Scores of diversity worked out again: what a finished stage says against formulas that share nothing with it."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.chain import Ledger, RunTree, check_chain, open_tree
from tests.oracles.corrected_scores import CorrectedScores
from tests.oracles.tables import (
    Answer,
    Collection,
    DiversityTables,
    Repeat,
    assert_row,
    collection_of,
    diversity_tables,
    mean,
    of_population,
    of_these,
    read_rows,
    t_answer,
)
from tests.oracles.vendi import kernel_name, kernel_of, order_of, vendi_of_kernels


class DiversityScores:
    """Works scores out from the tables of one stage; what several rows share is computed once."""

    def __init__(self, tables: DiversityTables) -> None:
        """Take the tables."""
        self.tables = tables
        self.collections: dict[tuple[Any, ...], Collection] = {}
        self.diversity: dict[tuple[Any, ...], NDArray[np.float64]] = {}

    def rows_behind(self, row: Mapping[str, Any]) -> pl.DataFrame:
        """Give the nearest matches that a score is of; floor and ceiling stand under names of their own."""
        truth = (pl.col("method") == "truth") == (row["about"]["labels"] == "truth")
        tables = [*self.tables.mapped, *self.tables.truth, *self.tables.limits]
        own = [table.filter(pl.col("model") == row["model"], truth) for table in tables]
        if "method" in row["about"]:
            own = [table.filter(pl.col("method") == row["about"]["method"]) for table in own]
        own = [table for table in own if table.height]
        if row["concept"] is not None:
            own = [table.filter(pl.col("concept") == row["concept"]) for table in own]
        behind = pl.concat(own) if own else pl.DataFrame()
        if row["country"] is not None and behind.height:
            place = pl.col("prompt_id").replace_strict(self.tables.countries, default=None, return_dtype=pl.String)
            behind = behind.filter(place == row["country"])
        return behind

    def collection(self, row: Mapping[str, Any], *, size: int, missing: str, partial: str) -> Collection | None:
        """Give the images behind a row, in batches."""
        about = row["about"]
        key = (
            row["model"],
            row["concept"],
            row["country"],
            about["labels"],
            about.get("method"),
            size,
            missing,
            partial,
        )
        if key not in self.collections:
            rows = self.rows_behind(row)
            if rows.is_empty():
                return None
            self.collections[key] = collection_of(rows, size=size, missing=missing, partial=partial)
        return self.collections[key]

    def batch_diversity(self, images: Collection, weights: Sequence[float], q: float) -> NDArray[np.float64]:
        """Give VS over `size` of each batch."""
        key = (id(images), tuple(weights), q)
        if key not in self.diversity:
            scores = np.empty(len(images.batches))
            for length in sorted({len(batch.images) for batch in images.batches}):
                which = [number for number, batch in enumerate(images.batches) if len(batch.images) == length]
                rows = np.array([images.batches[number].images for number in which])
                kernels = kernel_of(images.codes[rows], weights)
                scores[which] = vendi_of_kernels(kernels, q) / images.size
            self.diversity[key] = scores
        return self.diversity[key]

    def check(self, row: dict[str, Any]) -> None:
        """Work one row out and compare it; whole collections have no repeats to average."""
        about = row["about"]
        if about.get("size") == "whole":
            return
        usual = {"size": 8, "missing": "distinct", "partial": "drop"}
        how = {name: about.get(name, value) for name, value in usual.items()}
        images = self.collection(row, **how)
        assert images is not None, f"no image is behind {row}"
        if not images.repeats:
            return
        quality = None
        if "scorer" in about:
            quality = images.quality(self.tables.quality.get(about["scorer"], {}))
        if row["metric"] == "quality":
            assert quality is not None
            pairs = [(images.repeats[number], float(value)) for number, value in enumerate(quality)]
            assert_row(row, over_repeats(pairs, about), int(np.isfinite(quality).sum()), {})
            return
        diversity = self.batch_diversity(images, about["weights"], order_of(about["q"]))
        pairs, entered = [], 0
        for batch, score in zip(images.batches, diversity, strict=True):
            value = float(score)
            if quality is not None:
                value *= math.fsum(quality[number] for number in batch.images) / len(batch.images)
            pairs.append((batch.repeat, value))
            entered += 0 if math.isnan(value) else len(batch.images)
        answer = over_repeats(pairs, about)
        if quality is None and not math.isnan(answer.low):
            low, high = max(answer.low, 1 / images.size), min(answer.high, 1.0)
            answer = Answer(answer.value, min(low, answer.value), max(high, answer.value))
        said = {"images_left_out": len(images.images) - entered, "kernel": kernel_name(about["weights"])}
        assert_row(row, answer, entered, said)


def over_repeats(pairs: Sequence[tuple[Repeat, float]], about: Mapping[str, Any]) -> Answer:
    """Average values over each repeat, then over repeats and prompts; values that are NaN are left out."""
    repeats: dict[Repeat, list[float]] = {}
    for repeat, value in pairs:
        if not math.isnan(value):
            repeats.setdefault(repeat, []).append(value)
    prompts: dict[str, list[float]] = {}
    for (prompt, _), values in repeats.items():
        prompts.setdefault(prompt, []).append(mean(values).value)
    if not prompts:
        return Answer(math.nan, math.nan, math.nan)
    average = (of_population if about["target"] == "population" else of_these)(list(prompts.values()))
    return t_answer(average, float(about["confidence"]))


def scored_again(folder: Path) -> list[dict[str, Any]]:
    """Work every row of the scores of a stage out again, and make sure that each is what the formulas give."""
    ledger = Ledger()
    tree: RunTree = open_tree(folder, ledger)
    check_chain(tree, ledger)
    assert [str(finding) for finding in ledger.findings] == []
    (stage,) = tree.stages.values()
    tables, options = diversity_tables(stage), stage.manifest.options
    plain = DiversityScores(tables)
    corrected = CorrectedScores(tables, int(options.get("seed", 0)), options.get("design", "drawn"))
    rows = [row for row in read_rows(folder / "scores.parquet") if row["metric"] in {"quality", "vs", "qvs"}]
    assert rows
    for row in rows:
        (corrected if row["about"].get("labels") == "corrected" else plain).check(row)
    return rows
