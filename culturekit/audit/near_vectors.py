"""Artifacts of an index whose vectors nearly agree."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.records.schemas import ARTIFACTS
from culturekit.storage.tables import read_table

__all__ = ["NEAR", "near_pairs"]

NEAR = 0.98
"""The cosine from which two artifacts are worth a look."""

ROWS_AT_ONCE = 2_000


def near_pairs(folder: Path) -> dict[tuple[str, str], float]:
    """Find pairs of artifacts of one country and concept whose mean vectors have a cosine of NEAR or more."""
    vectors, ids = load_vectors(folder)
    means = mean_vectors(np.asarray(vectors, np.float32), ids)
    cells: dict[tuple[str, str], list[str]] = {}
    artifacts = read_table(folder / "artifacts.parquet", ARTIFACTS)
    for artifact, concepts, countries in artifacts.select("artifact_id", "concepts", "countries").iter_rows():
        for concept in concepts if artifact in means else ():
            for country in countries:
                cells.setdefault((concept, country), []).append(artifact)
    return {pair: cosine for members in cells.values() for pair, cosine in near_within(members, means)}


def mean_vectors(vectors: NDArray[np.float32], ids: list[str]) -> dict[str, NDArray[np.float32]]:
    """Give each artifact the mean of its vectors, at unit length; vectors are float32 (n, dim)."""
    names, place = np.unique(np.array(ids, dtype=object).astype(str), return_inverse=True)
    sums = np.zeros((len(names), vectors.shape[1]), np.float32)
    np.add.at(sums, place, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    units = sums / np.where(lengths > 0, lengths, 1)
    return {str(name): unit for name, unit in zip(names, units, strict=True)}


def near_within(members: list[str], means: dict[str, NDArray[np.float32]]) -> Iterator[tuple[tuple[str, str], float]]:
    """Compare the artifacts of one country and concept."""
    members = sorted(set(members))
    matrix = np.stack([means[name] for name in members])
    for begin in range(0, len(members), ROWS_AT_ONCE):
        cosines = matrix[begin : begin + ROWS_AT_ONCE] @ matrix.T
        for row, column in zip(*np.nonzero(cosines >= NEAR), strict=True):
            if begin + int(row) < int(column):
                yield (members[begin + int(row)], members[int(column)]), float(cosines[row, column])
