"""Quality, VS and qVS of mapped and true labels, worked out again from matches and quality."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.chain import FinishedStage, Ledger
from tests.oracles.averages import Answer, mean, of_population, of_these, t_answer
from tests.oracles.image_batches import Collection, collection_of, whole_answer
from tests.oracles.labelled_images import DiversityTables
from tests.oracles.score_rows import compare_row, wrong_row
from tests.oracles.vendi import kernel_name, kernel_of, order_of, vendi_of_kernels

HOW = "from the labels of its images: kernel written down, eigenvalues, mean of repeats and prompts, t interval"
HOW_QUALITY = "from the quality of its images: mean of repeats and prompts, t interval"
HOW_WHOLE = "from the labels of the whole collection; the jackknife with the same groups"

RepeatMeans = dict[tuple[str, int], float]  # The mean of each repeat of each prompt; NaN where it is not known


@dataclass(frozen=True, slots=True)
class Found:
    """What was worked out for one row: the answer, how many images went in, and the means of repeats."""

    answer: Answer
    entered: int
    repeats: RepeatMeans


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
        key = (row["model"], row["concept"], row["country"], kind_of(row), size, missing, partial)
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


def check_diversity(
    folder: str, rows: Sequence[dict[str, Any]], tables: DiversityTables, values: "ValuesByScore", ledger: Ledger
) -> None:
    """Work out every row of quality, vs and qvs with mapped or true labels."""
    scores = DiversityScores(tables)
    for row in rows:
        with ledger.guarded("scores", f"{folder} row {row['row']}"):
            check_row(folder, row, scores, values, ledger)


def kind_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Say where the labels of a score come from."""
    return row["about"]["labels"], row["about"].get("method")


# The means of repeats as they stand in the values table, by the columns that name a score
ValuesByScore = Mapping[tuple[Any, ...], RepeatMeans]


def check_row(folder: str, row: dict[str, Any], scores: DiversityScores, values: ValuesByScore, ledger: Ledger) -> None:
    """Work one row out and compare it."""
    about = row["about"]
    if row["metric"] == "quality":
        images = scores.collection(row, size=8, missing="distinct", partial="drop")
    else:
        size = 1 if about["size"] == "whole" else int(about["size"])
        images = scores.collection(row, size=size, missing=about["missing"], partial=about["partial"])
    if images is None:
        gone = ", ".join(scores.tables.missing)
        if gone:
            ledger.judge(folder, row, "not verifiable", f"inputs are not here: {gone}")
        else:
            wrong_row(
                folder, row, "no image is behind this score", expected="matches of it", found="none", ledger=ledger
            )
            ledger.judge(folder, row, "wrong", HOW)
        return
    if images.whole:
        quality = None if "scorer" not in about else images.quality(scores.tables.quality.get(about["scorer"], {}))
        answer, entered, said = whole_answer(row, images, quality)
        compare_row(folder, row, answer, entered, HOW_WHOLE, ledger, said=said, tolerance=1e-7)
        return
    found, said = worked_out(row, images, scores), {}
    if row["metric"] != "quality":
        said = {"images_left_out": len(images.images) - found.entered, "kernel": kernel_name(about["weights"])}
    how = HOW_QUALITY if row["metric"] == "quality" else HOW
    compare_row(folder, row, found.answer, found.entered, how, ledger, said=said)
    compare_values(folder, row, found.repeats, values, ledger)


def worked_out(row: Mapping[str, Any], images: Collection, scores: DiversityScores) -> Found:
    """Work out the score of images with prompts and repeats."""
    about = row["about"]
    quality = None
    if "scorer" in about:
        quality = images.quality(scores.tables.quality.get(about["scorer"], {}))
    if row["metric"] == "quality":
        assert quality is not None
        pairs = [(images.repeats[number], float(value)) for number, value in enumerate(quality)]
        return over_repeats(pairs, int(np.isfinite(quality).sum()), about)
    diversity = scores.batch_diversity(images, about["weights"], order_of(about["q"]))
    pairs, entered = [], 0
    for batch, score in zip(images.batches, diversity, strict=True):
        value = float(score)
        if quality is not None:
            value *= math.fsum(quality[number] for number in batch.images) / len(batch.images)
        pairs.append((batch.repeat, value))
        entered += 0 if math.isnan(value) else len(batch.images)
    every = dict.fromkeys(images.repeats, math.nan)
    found = over_repeats(pairs, entered, about, every=every)
    if quality is not None or math.isnan(found.answer.low):
        return found
    value, low, high = found.answer.value, max(found.answer.low, 1 / images.size), min(found.answer.high, 1.0)
    return replace(found, answer=Answer(value, min(low, value), max(high, value)))


def over_repeats(
    pairs: Sequence[tuple[tuple[str, int], float]],
    entered: int,
    about: Mapping[str, Any],
    *,
    every: Mapping[tuple[str, int], float] | None = None,
) -> Found:
    """Average values over each repeat, then over repeats and prompts; values that are NaN are left out."""
    repeats: RepeatMeans = dict(every or {})
    known: dict[tuple[str, int], list[float]] = {}
    for repeat, value in pairs:
        repeats.setdefault(repeat, math.nan)
        if not math.isnan(value):
            known.setdefault(repeat, []).append(value)
    repeats.update({repeat: mean(members).value for repeat, members in known.items()})
    prompts = by_prompt(repeats)
    if not prompts:
        return Found(Answer(math.nan, math.nan, math.nan), entered, repeats)
    average = of_population(prompts) if about["target"] == "population" else of_these(prompts)
    return Found(t_answer(average, float(about["confidence"])), entered, repeats)


def by_prompt(repeats: RepeatMeans) -> list[list[float]]:
    """Gather the means of repeats that are known, prompt by prompt."""
    prompts: dict[str, list[float]] = {}
    for (prompt, _), value in repeats.items():
        if not math.isnan(value):
            prompts.setdefault(prompt, []).append(value)
    return list(prompts.values())


def compare_values(
    folder: str, row: Mapping[str, Any], repeats: RepeatMeans, values: ValuesByScore, ledger: Ledger
) -> None:
    """Compare the means of repeats with those of the values table."""
    stated = values.get(tuple(row[name] for name in NAMES))
    ledger.count("values behind scores", len(repeats))
    if stated is None:
        wrong_row(folder, row, "values.parquet has no values of it", expected=f"{len(repeats)}", found=0, ledger=ledger)
        return
    if set(stated) != set(repeats):
        wrong_row(
            folder, row, "values.parquet has other repeats", expected=f"{len(repeats)}", found=f"{len(stated)}",
            ledger=ledger,
        )  # fmt: skip
        return
    for repeat, value in differing(repeats, stated):
        wrong_row(
            folder, row, f"its value in values.parquet for {repeat[0]}/{repeat[1]} is not what the tables give",
            expected=repr(value), found=repr(stated[repeat]), ledger=ledger,
        )  # fmt: skip
        return


def differing(repeats: RepeatMeans, stated: RepeatMeans) -> Iterator[tuple[tuple[str, int], float]]:
    """List the repeats whose means are not those stated."""
    for repeat, value in repeats.items():
        other = stated[repeat]
        if math.isnan(value) != math.isnan(other) or abs(value - other) > 1e-9:
            yield repeat, value


NAMES = ("metric", "model", "benchmark", "concept", "country", "group", "params")


def values_by_score(stage: FinishedStage) -> ValuesByScore:
    """Read the means of repeats behind each score."""
    found: dict[tuple[Any, ...], RepeatMeans] = {}
    path = stage.folder / "values.parquet"
    if not path.is_file():
        return found
    for *key, prompt, repeat, value in pl.read_parquet(path).select(*NAMES, "prompt_id", "repeat", "value").iter_rows():
        found.setdefault(tuple(key), {})[prompt, repeat] = math.nan if value is None else value
    return found
