"""How unlike images look, worked out again: cosines from vectors, means of distances from the table of pairs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.diversity_scores import compare_values, over_repeats, values_by_score
from culturekit.verify.scores.score_rows import compare_row

__all__ = ["check_spread"]

HOW_COSINE = "from the vectors of its images: all cosines of each batch written down, mean of repeats and prompts"
HOW_PAIRS = "from the distances of pairs, which a model measured: mean of repeats and prompts, t interval"

Pairs = list[tuple[tuple[str, int], float]]


def check_spread(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out every row of a stage of spread scores."""
    missing = [role for role in stage.manifest.inputs if tree.source(stage, role) is None]
    if missing:
        ledger.not_verifiable(stage.name, rows, f"inputs are not here: {', '.join(missing)}")
        return
    images = images_of(tree, stage)
    places = vectors_of(tree, stage)
    tables = [pl.read_parquet(path) for _, path in tree.sources_of(stage, "pair_distances.parquet")]
    distances = pl.concat(tables) if tables else None
    values = values_by_score(stage)
    for row in rows:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            if row["metric"] == "mean_cosine":
                pairs = cosines(images, places, row)
                how = HOW_COSINE
            else:
                pairs = measured(distances, row) if distances is not None else []
                how = HOW_PAIRS
            size = int(row["about"]["size"])
            found = over_repeats(pairs, size * len(pairs), row["about"])
            compare_row(stage.name, row, found.answer, found.entered, how, ledger)
            compare_values(stage.name, row, found.repeats, values, ledger)


def images_of(tree: RunTree, stage: FinishedStage) -> pl.DataFrame:
    """Read where images stand; the concept of a prompt fills in what a table does not say."""
    names = ["image_id", "model", "prompt_id", "repeat", "slot", "concept"]
    tables = [pl.read_parquet(path) for _, path in tree.sources_of(stage, "images.parquet")]
    whole = pl.concat([table.select(name for name in names if name in table.columns) for table in tables],
                      how="diagonal")  # fmt: skip
    if "concept" not in whole.columns:
        whole = whole.with_columns(concept=pl.lit(None, pl.String))
    prompts = tree.source(stage, "prompts")
    if prompts is not None and prompts.suffix == ".parquet":
        asked = dict(pl.read_parquet(prompts).select("prompt_id", "concept").iter_rows())
        said = pl.col("prompt_id").replace_strict(asked, default=None, return_dtype=pl.String)
        whole = whole.with_columns(concept=pl.coalesce("concept", said))
    return whole


def vectors_of(tree: RunTree, stage: FinishedStage) -> dict[str, Any]:
    """Give the vector of each image."""
    found: dict[str, Any] = {}
    folders = {path.parent for _, path in tree.sources_of(stage, "vectors.npy")}
    for folder in sorted(folders):
        vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        for row, name in pl.read_parquet(folder / "ids.parquet").select("row", "id").iter_rows():
            found[name] = vectors[row]
    return found


def of_row(table: pl.DataFrame, row: Mapping[str, Any]) -> pl.DataFrame:
    """Keep what a score is of."""
    own = table.filter(pl.col("model") == row["model"])
    return own if row["concept"] is None else own.filter(pl.col("concept") == row["concept"])


def cosines(images: pl.DataFrame, vectors: Mapping[str, Any], row: Mapping[str, Any]) -> Pairs:
    """Average all cosines of each full batch."""
    size = int(row["about"]["size"])
    pairs: Pairs = []
    own = of_row(images, row).drop_nulls(["prompt_id", "repeat"]).filter(pl.col("image_id").is_in(list(vectors)))
    ordered = own.sort("prompt_id", "repeat", "slot", "image_id")
    for (prompt, repeat), rows in ordered.group_by("prompt_id", "repeat", maintain_order=True):
        names = rows["image_id"].to_list()
        for start in range(0, len(names) - size + 1, size):
            batch = np.array([vectors[name] for name in names[start : start + size]], np.float64)
            lengths = np.sqrt((batch * batch).sum(axis=1))
            table = (batch @ batch.T) / np.outer(lengths, lengths)
            pairs.append(((str(prompt), int(str(repeat))), math.fsum(table.ravel().tolist()) / size**2))
    return pairs


def measured(distances: pl.DataFrame, row: Mapping[str, Any]) -> Pairs:
    """Take the distances of full batches by the measure of the row."""
    about = row["about"]
    own = of_row(distances, row).filter(
        pl.col("images") == int(about["size"]), pl.col("measure") == str(about["measure"]["name"])
    )
    return [
        ((prompt, repeat), value) for prompt, repeat, value in own.select("prompt_id", "repeat", "distance").iter_rows()
    ]
