"""C³ of captions from the vectors behind it, statistics of captions from their texts, ratings from the answers."""

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, of_population, of_these, t_answer
from culturekit.verify.scores.people_answers import FLAGS
from culturekit.verify.scores.score_rows import close, compare_row
from culturekit.verify.tables.index_vectors import vectors_of

__all__ = ["check_c3", "check_caption_stats", "check_rating_scores"]

FEWEST = 20
"""Units from which an interval speaks about others like them."""

TERMS = {"c3_text": ("source", "target"), "c3_object": ("objects", "target"), "c3_image": ("image", "image_target")}
"""Each vector of the first role is held against those of the second."""

Cells = dict[tuple[Any, ...], dict[str, float]]
"""Values by item, by the cell that they are of."""


def check_c3(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Compare every caption with its original, its image and its objects once more, cosine by cosine."""
    said: dict[str, dict[str, list[NDArray[np.float64]]]] = {}
    for role in ("source", "target", "objects", "image", "image_target"):
        if f"{role}-vectors" not in stage.manifest.inputs:
            continue
        path = tree.source(stage, f"{role}-vectors")
        if path is None or tree.source(stage, f"{role}-ids") is None:
            ledger.not_verifiable(stage.name, rows, "the vectors are not here")
            return
        said[role] = by_item(path.parent)
    items = {item for role in ("target", "image_target") for item in said.get(role, ())}
    found: Cells = {("c3",): {}, **{(term,): {} for term in TERMS}}
    for item in items:
        terms = {
            term: fitting(said[one][item], said[other][item])
            for term, (one, other) in TERMS.items()
            if item in said.get(one, ()) and item in said.get(other, ())
        }
        if terms:
            terms["c3"] = math.fsum(terms.values())
        for term, value in terms.items():
            found[(term,)][item] = value
    every = stated_values(stage, lambda row, _: (row["metric"],))
    stated = {cell: own for cell, own in every.items() if cell in found}  # others are held against values alone
    compare_values(stage, stated, {cell: {**dict.fromkeys(items, math.nan), **own} for cell, own in found.items()},
                   ledger)  # fmt: skip
    confidence = float(stage.manifest.options["confidence"])
    for row in rows:
        own = found.get((row["metric"],))
        if own is None:
            continue
        units = [[value] for _, value in sorted(own.items())]
        answer = t_answer(of_population(units), confidence) if len(units) >= FEWEST else limitless(units)
        compare_row(stage.name, row, answer, len(units), "from the vectors: cosines of each caption", ledger)


def by_item(folder: Path) -> dict[str, list[NDArray[np.float64]]]:
    """Read the vectors of each item at length 1; ITEM#k is one of several of an item."""
    found = defaultdict(list)
    for name, vector in zip(*vectors_of(folder), strict=True):
        item, _, place = name.rpartition("#")
        exact = vector.astype(np.float64)
        found[item if item and place.isdecimal() else name].append(exact / np.linalg.norm(exact))
    return found


def fitting(sides: Sequence[NDArray[np.float64]], others: Sequence[NDArray[np.float64]]) -> float:
    """Average over some vectors how like each is to the one that is most like it."""
    return statistics.fmean(max(float(np.dot(side, other)) for other in others) for side in sides)


def limitless(units: Sequence[Sequence[float]]) -> Answer:
    """Average too few units for limits; none at all have no mean either."""
    value = of_population(units).value if units else math.nan
    return Answer(value, math.nan, math.nan)


def stated_values(stage: FinishedStage, cell: Callable[[dict[str, Any], dict[str, Any]], tuple[Any, ...]]) -> Cells:
    """Read the values beside scores by their cells; what is missing is NaN."""
    found: Cells = defaultdict(dict)
    for row in pl.read_parquet(stage.folder / "values.parquet").iter_rows(named=True):
        value = math.nan if row["value"] is None else float(row["value"])
        found[cell(row, json.loads(row["params"]))][row["item"]] = value
    return found


def compare_values(stage: FinishedStage, stated: Cells, found: Cells, ledger: Ledger) -> None:
    """Hold values against those that were recomputed."""
    where = f"{stage.name}/values.parquet"
    for cell in sorted(stated.keys() | {cell for cell, own in found.items() if own}, key=str):
        one, other = stated.get(cell, {}), found.get(cell, {})
        for item in sorted(one.keys() ^ other.keys()):
            ledger.broken("scores", where, f"has a value too many or too few: {cell}, {item}")
        for item in sorted(one.keys() & other.keys()):
            if not close(one[item], other[item]):
                ledger.broken("scores", where, f"{cell}, {item} is another value", expected=other[item],
                              found=one[item])  # fmt: skip
        ledger.count("values recomputed", len(one))


def check_rating_scores(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Average ratings once more, item by item, and say how far items, and people of one item, lie apart."""
    said = dict(ratings_by_cell(tree, stage) or ())
    if not said:
        return
    means: Cells = {
        cell: {item: statistics.fmean(numbers) for (item, _), numbers in own.items()} for cell, own in said.items()
    }
    stated = stated_values(stage, lambda row, about: (row["model"], row["benchmark"], row["group"], about["criterion"],
                                                      about["pool"], row["metric"]))  # fmt: skip
    shown = {cell[:-1]: own for cell, own in stated.items() if cell[-1] == "rating_mean"}
    compare_values(stage, shown, means, ledger)
    for row in rows:
        about = row["about"]
        own = said.get((row["model"], row["benchmark"], row["group"], about["criterion"], about["pool"]))
        if own is None or not row["metric"].startswith("rating_"):
            continue
        answer = OF_RATINGS[row["metric"]](own, float(stage.manifest.options["confidence"]))
        compare_row(stage.name, row, answer, len(own), "from the answers, item by item", ledger)


Rated = Mapping[tuple[str, str], Sequence[float]]
"""Ratings by item and prompt; an item without a prompt is its own."""


def ratings_by_cell(tree: RunTree, stage: FinishedStage) -> Iterator[tuple[tuple[Any, ...], Rated]] | None:
    """Give the ratings of each model, form, group, criterion and pool; None where what they follow from is not here."""
    paths = tree.inputs_of(stage)
    if paths is None:
        return None
    tables = {role: pl.read_parquet(path) for role, path in paths.items()}
    pictures = [table for role, table in tables.items() if role.startswith("images")]
    groups = dict(tables["prompts"].select("prompt_id", "group").iter_rows()) if "prompts" in tables else None
    places = {
        one["image_id"]: (one["model"], None if groups is None else groups[one["prompt_id"]], one["prompt_id"])
        for table in pictures
        for one in table.select("image_id", "model", "prompt_id", "status").iter_rows(named=True)
        if one["status"] == "ok" and (groups is None or one["prompt_id"] in groups)
    }
    said: dict[tuple[Any, ...], dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in tables["annotations"].iter_rows(named=True):
        place = places.get(row["item_id"]) if pictures else ("items", None, row["item_id"])
        counts = row["value"] is not None and math.isfinite(row["value"]) and not set(row["flags"]) & set(FLAGS)
        if place is None or not counts or stage.manifest.options.get("scheme") not in (None, row["scheme"]):
            continue
        model, group, prompt = place
        cell = (model, row["scheme"], group, row["criterion"], row["annotator_region"])
        said[cell][row["item_id"], prompt].append(row["value"])
    return iter(said.items())


def mean_rating(own: Rated, confidence: float) -> Answer:
    """Average over prompts."""
    prompts: dict[str, list[float]] = defaultdict(list)
    for (_, prompt), numbers in sorted(own.items()):
        prompts[prompt].append(statistics.fmean(numbers))
    units = list(prompts.values())
    return t_answer(of_population(units) if len(units) >= FEWEST else of_these(units), confidence)


def between_items(own: Rated, _: float) -> Answer:
    """Give the deviation of the items' means."""
    return Answer(statistics.stdev([statistics.fmean(numbers) for numbers in own.values()]), math.nan, math.nan)


def within_items(own: Rated, _: float) -> Answer:
    """Average the deviations of the ratings of one item."""
    several = [statistics.stdev(numbers) for numbers in own.values() if len(numbers) > 1]
    return Answer(statistics.fmean(several), math.nan, math.nan)


OF_RATINGS = {"rating_mean": mean_rating, "rating_sd": between_items, "rating_within": within_items}


def check_caption_stats(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Count captions, words and objects once more, of captions that are a table."""
    source, objects = tree.source(stage, "captions"), tree.source(stage, "objects")
    missing = {"objects", "no-objects"} & stage.manifest.inputs.keys()
    if source is None or source.suffix != ".parquet" or any(tree.source(stage, role) is None for role in missing):
        ledger.note("captions", stage.name, "its captions are no table, or not here")
        return
    of_caption: Counter[str] = Counter()
    none: set[str] = set()
    if objects is not None:
        of_caption.update(pl.read_parquet(objects)["item"])
    if (drops := tree.source(stage, "no-objects")) is not None:
        none = set(pl.read_parquet(drops).filter(reason="no object")["key"])
    told: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for row in pl.read_parquet(source).iter_rows(named=True):
        words = sum(any(letter.isalpha() or letter.isnumeric() for letter in word) for word in row["text"].split())
        counted = of_caption[row["id"]] if row["id"] in of_caption or row["id"] in none else None
        for category in filter(None, ("all", row.get("category"))):
            told[category].append((words, counted))
    for row in pl.read_parquet(stage.folder / "caption_stats.parquet").iter_rows(named=True):
        own = told.pop(row["category"], [])
        lengths, counts = [one for one, _ in own] or [0], [one for _, one in own if one is not None]
        found = {
            "captions": len(own), "words": statistics.fmean(lengths), "fewest": min(lengths), "most": max(lengths),
            "counted": len(counts), "objects": statistics.fmean(counts) if counts else None,
        }  # fmt: skip
        for column, value in found.items():
            if not close(row[column], value):
                ledger.broken("captions", f"{stage.name}/caption_stats.parquet ({row['category']})",
                              f"{column} is another number", expected=value, found=row[column])  # fmt: skip
        ledger.count("statistics of captions counted again")
    for category in sorted(told):
        ledger.broken("captions", f"{stage.name}/caption_stats.parquet", f"has no row of {category!r}")
