"""Matches as anyone would compute them: every artifact of every image in plain Python, the oracle of the tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_batch import ChannelVectors


@dataclass(frozen=True)
class World:
    """An index in memory, and its artifacts' countries."""

    channels: Mapping[str, ChannelVectors]
    countries: Sequence[Sequence[str]]

    @property
    def count(self) -> int:
        return len(self.countries)


def channel_score(vectors: Vectors, query: NDArray[np.float32], aggregate: str) -> np.float32:
    scores = sorted(
        (float(np.float32(np.sum(query.astype(np.float64) * vector.astype(np.float64)))) for vector in vectors),
        reverse=True,
    )
    best = scores[:1] if aggregate == "max" else scores[:3]
    return np.float32(sum(best) / len(best))


def artifact_scores(
    world: World, query: NDArray[np.float32], aggregate: str, weights: Mapping[str, float], *,
    left_out: int | None = None,
) -> dict[int, np.float32]:  # fmt: skip
    """The score of every artifact that has a vector in a channel that counts."""
    scores = {}
    for artifact in range(world.count):
        total = weight = 0.0
        for name, channel in sorted(world.channels.items()):
            rows = np.flatnonzero(channel.owners == artifact).tolist()
            if name == "image" and left_out is not None:
                rows = [row for row in rows if row != left_out]
            if rows and weights.get(name, 0.0) > 0:
                total += weights[name] * float(channel_score(channel.vectors[rows], query, aggregate))
                weight += weights[name]
        if weight:
            scores[artifact] = np.float32(total / weight)
    return scores


def naive_rows(
    world: World, scores: Mapping[int, np.float32], k: int, *, lowest: float = -1.0
) -> list[tuple[int, np.float32, np.float32, np.float32]]:
    """Artifact, score, margin and country margin of the first k, from the scores of all."""
    order = sorted(scores, key=lambda artifact: (-scores[artifact], artifact))
    rows: list[tuple[int, Any, Any, Any]] = []
    for artifact in order[:k]:
        own = set(world.countries[artifact])
        others = [scores[other] for other in order if other != artifact]
        abroad = [scores[other] for other in order if other != artifact and not own & set(world.countries[other])]
        score = scores[artifact]
        floor = np.float32(lowest)
        rows.append((artifact, score, score - max(others, default=floor), score - max(abroad, default=floor)))
    return rows


def made_world(
    seed: int, *, artifacts: int = 12, dim: int = 6, channels: Sequence[str] = ("image",), kinds: int = 5,
    most: int = 5, codes: str = "ABCD",
) -> World:  # fmt: skip
    """A small world full of ties: vectors are drawn from few kinds, so that many are exactly equal."""
    numbers = np.random.default_rng(seed)
    pool = unit(numbers.normal(size=(kinds, dim)))
    made = {}
    for name in channels:
        counts = numbers.integers(1 if len(channels) == 1 else 0, most + 1, artifacts)
        owners = np.repeat(np.arange(artifacts), counts)
        owners = owners[np.lexsort((owners, numbers.integers(0, 3, artifacts)[owners]))]
        vectors = pool[numbers.integers(0, kinds, len(owners))]
        fresh = numbers.random(len(owners)) < 0.5
        vectors[fresh] = unit(numbers.normal(size=(int(fresh.sum()), dim)))
        made[name] = ChannelVectors(vectors, owners.astype(np.int64))
    countries = [
        sorted(numbers.choice(list(codes), size=numbers.integers(1, 3), replace=False).tolist())
        for _ in range(artifacts)
    ]
    return World(made, countries)


def unit(vectors: NDArray[np.float64]) -> Vectors:
    norms = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    made: Vectors = (vectors / norms).astype(np.float32)
    return made
