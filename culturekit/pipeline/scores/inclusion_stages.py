"""The stages of geographic inclusion: Task 1 and Task 2."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.family_stage import family_stage
from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.metrics.inclusion.task2_files import read_task2_file
from culturekit.metrics.inclusion.triplet_distances import Features
from culturekit.metrics.scoring.score_task1 import RealFeatures, Task1Options, score_task1
from culturekit.metrics.scoring.score_task2 import Task2Options, score_task2
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import DROPS, TASK1, TASK2
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["task1_stage", "task2_stage"]


def task1_stage(
    task1: Path,
    options: Task1Options,
    *,
    features: Mapping[str, Path] | None = None,
    real: tuple[str, Path] | None = None,
    k: int = 5,
    name: str = "scores",
) -> Stage:
    """Score annotations of triplets.

    Args:
        task1: a table of TASK1.
        options: what to score, and how.
        features: extractor -> folder of vectors of the images in the triplets.
        real: an extractor and its folder of vectors of all real images: the manifold of appeal.
        k: of the neighbours of real images.
        name: of the stage's folder.
    """
    features = features or {}
    folders = {**{f"features-{extractor}": path for extractor, path in features.items()}}
    if real is not None:
        folders["real"] = real[1]
    files = (("values", "vectors.npy"), ("ids", "ids.parquet"))
    inputs = {f"{role}-{part}": folder / file for role, folder in folders.items() for part, file in files}

    def score(_: Work) -> Scored:
        extractors = {extractor: vectors_by_image(path) for extractor, path in features.items()}
        manifold = None if real is None else RealFeatures(real[0], load_vectors(real[1])[0], k)
        return score_task1(read_table(task1, TASK1), extractors, manifold, options=options)

    settings = {**asdict(options), "k": k, "real": None if real is None else real[0]}
    return family_stage("task1", {"task1": task1, **inputs}, settings, score, name=name)


def vectors_by_image(folder: Path) -> Features:
    """Open a folder of vectors by the ids in it."""
    vectors, ids = load_vectors(folder)
    return dict(zip(ids, vectors, strict=True))


def task2_stage(
    task2: Path, options: Task2Options, *, sources: Mapping[str, str] | None = None, name: str = "scores"
) -> Stage:
    """Score annotations of single images: a table of TASK2, or a CSV file in the public layout."""
    settings = {**asdict(options), "sources": dict(sources or {})}
    return family_stage(
        "task2", {"task2": task2}, settings, lambda work: score_annotations(work, task2, options, sources), name=name
    )


def score_annotations(work: Work, path: Path, options: Task2Options, sources: Mapping[str, str] | None) -> Scored:
    """Read, score, and list the rows that could not be read beside the scores."""
    if path.suffix == ".parquet":
        if sources:
            raise UsageError("a table of Task 2 says itself who made an image", where=str(path))
        return score_task2(read_table(path, TASK2), options=options)
    file = read_task2_file(path, sources=sources)
    if file.drops.height:
        write_table(work.out, DROPS, file.drops)
    answer = score_task2(file.annotations, options=options)
    reasons = dict(file.drops.group_by("reason").agg(pl.len()).sort("reason").iter_rows())
    return Scored(answer.scores, answer.values, {**reasons, **answer.left_out})
