"""The scores of all artifacts for some images: every product of vectors, then the best of each artifact."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.verify.tables.index_vectors import IndexVectors, Vectors

__all__ = ["LOWEST", "NearestArtifacts"]

LOWEST = -1.0
"""What an artifact without any rival leads over: no cosine is lower."""

Scores = NDArray[np.float64]


class NearestArtifacts:
    """An index as a mapping compares with it: its channels by weight, how vectors of an artifact count, which count."""

    def __init__(self, index: IndexVectors, options: Mapping[str, Any]) -> None:
        """Take an index and the options of a mapping."""
        weights = options.get("weights") or dict.fromkeys(index.channels, 1.0)
        self.weights = {name: float(weight) for name, weight in weights.items() if weight}
        self.index, self.best_only = index, options.get("aggregate", "max") == "max"
        self.within: tuple[Sequence[str], Sequence[str]] = (
            options.get("concepts") or (),
            options.get("countries") or (),
        )
        self.number = {row["artifact_id"]: place for place, row in enumerate(index.artifacts)}
        self.vectors = {name: index.channels[name][0].astype(np.float64) for name in self.weights}
        countries = [set(row["countries"]) for row in index.artifacts]
        names = sorted(set().union(*countries))
        has = [[name in own for name in names] for own in countries]
        self.has = np.array(has, np.bool_).reshape(len(countries), len(names))
        self.abroad: dict[bytes, NDArray[np.bool_]] = {}

    def allowed(self, concept: str | None, country: str | None) -> NDArray[np.bool_]:
        """Tell which artifacts images of a place are compared with."""
        concepts, countries = self.within
        return np.array(
            [
                (concept is None or concept in row["concepts"])
                and (country is None or country in row["countries"])
                and (not concepts or bool(set(concepts) & set(row["concepts"])))
                and (not countries or bool(set(countries) & set(row["countries"])))
                for row in self.index.artifacts
            ]
        )

    def scores(self, images: Vectors, allowed: NDArray[np.bool_]) -> Scores:
        """Give the score of each artifact for each image, (images, artifacts); -inf for one that does not count."""
        total = np.zeros((len(images), len(self.index.artifacts)))
        weights = np.zeros(len(self.index.artifacts))
        for name, weight in self.weights.items():
            products = images.astype(np.float64) @ self.vectors[name].T
            scores, known = self.of_artifacts(products, self.index.channels[name][1])
            total[:, known] += weight * scores[:, known]
            weights[known] += weight
        out = np.full(total.shape, -np.inf)
        some = (weights > 0) & allowed
        out[:, some] = total[:, some] / weights[some]
        return out

    def of_artifacts(self, products: Scores, owners: NDArray[np.int64]) -> tuple[Scores, NDArray[np.bool_]]:
        """Make one score of the vectors of each artifact: the best, or the mean of the best three."""
        count = len(self.index.artifacts)
        scores, known = np.full((len(products), count), -np.inf), np.zeros(count, np.bool_)
        order = np.argsort(owners, kind="stable")
        artifacts, first = np.unique(owners[order], return_index=True)
        for artifact, rows in zip(artifacts.tolist(), np.split(order, first[1:]), strict=True):
            own = products[:, rows]
            scores[:, artifact] = own.max(axis=1) if self.best_only else np.sort(own, axis=1)[:, -3:].mean(axis=1)
            known[artifact] = True
        return scores, known

    def best_abroad(self, scores: Scores, artifact: int) -> float:
        """Give the best of an image's scores, (artifacts,), among artifacts that share no country with one."""
        places = self.has[artifact].tobytes()
        if places not in self.abroad:
            self.abroad[places] = ~(self.has & self.has[artifact]).any(axis=1)
        rivals = self.abroad[places].copy()
        rivals[artifact] = False
        best = float(scores[rivals].max(initial=-np.inf))
        return LOWEST if best == -np.inf else best
