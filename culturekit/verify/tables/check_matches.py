"""Matches, recomputed from the vectors: the nearest artifacts, their scores and margins, who abstained."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.labelled_images import asked_images
from culturekit.verify.tables.index_vectors import IndexVectors, Vectors, read_index, vectors_of

__all__ = ["LOWEST", "NearestArtifacts", "check_matches"]

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


CHECK = "matches"
AT_ONCE = 256
TOLERANCE = 2e-6
"""Scores and margins are float32: their last digits are left open."""

SHOWN = 3
"""Rows of a table that are shown as wrong; the others are counted."""


def check_matches(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare the matches of a mapping with what its vectors give."""
    if stage.manifest.options.get("adjustment"):
        ledger.note(CHECK, stage.name, "a correction for hubs was applied; its scores were not worked out again")
        return
    places = {role: tree.source(stage, role) for role in stage.manifest.inputs}
    index_folder, images_path = places["index"], places["images"]
    given = places.get("vectors", stage.folder)
    if index_folder is None or images_path is None or given is None:
        ledger.note(CHECK, stage.name, "its index, images or vectors are not here; nothing was worked out again")
        return
    matches = pl.read_parquet(stage.folder / "matches.parquet")
    images = asked_images([images_path], [places.get("prompts")])
    problems = list(coverage(stage, matches, images, given))
    compared = NearestArtifacts(read_index(index_folder), stage.manifest.options)
    problems += compared_rows(stage, matches, images, given, compared)
    problems += abstention(stage, matches)
    ledger.count("matches worked out", matches.height)
    for problem, expected, found in problems[:SHOWN]:
        ledger.broken(CHECK, f"{stage.name}/matches.parquet", problem, expected=expected, found=found)
    if len(problems) > SHOWN:
        ledger.broken(CHECK, f"{stage.name}/matches.parquet", f"and {len(problems) - SHOWN:,} more such differences")


Problem = tuple[str, object, object]


def coverage(
    stage: FinishedStage, matches: pl.DataFrame, images: Mapping[str, Mapping[str, Any]], given: Path
) -> Iterator[Problem]:
    """Compare which images are matched, and what the rows say of them, with the table of images."""
    ids, vectors = vectors_of(given)
    lost = set(pl.read_parquet(stage.folder / "drops.parquet")["key"])
    matched = set(matches["image_id"])
    wanted = {image for image, row in images.items() if row["status"] == "ok"} - lost
    if matched != wanted:
        yield "other images are matched than were made", f"{len(wanted):,}", f"{len(matched ^ wanted):,} differ"
    if not matched <= set(ids):
        yield "images are matched that have no vector", "a vector each", f"{len(matched - set(ids)):,} without"
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if len(norms) and float(np.abs(norms - 1).max()) > 1e-4:
        yield "the vectors of images are not of unit length", 1, f"{float(norms[np.abs(norms - 1).argmax()]):.6f}"
    for row in matches.unique(["image_id", "model", "prompt_id", "concept", "repeat", "slot"]).iter_rows(named=True):
        image = images.get(row["image_id"], {})
        for name in ("model", "prompt_id", "concept", "repeat", "slot"):
            if row[name] != image.get(name):
                yield f"{name} of image {row['image_id']} is not that of the images table", image.get(name), row[name]


def compared_rows(
    stage: FinishedStage,
    matches: pl.DataFrame,
    images: Mapping[str, Mapping[str, Any]],
    given: Path,
    compared: NearestArtifacts,
) -> Iterator[Problem]:
    """Work out the rows of all images, those of one place together."""
    ids, vectors = vectors_of(given)
    row_of = {image: row for row, image in enumerate(ids)}
    within = stage.manifest.options.get("within")
    places: dict[tuple[str | None, str | None], list[str]] = {}
    by_image = {str(image): rows.to_dicts() for (image,), rows in matches.sort("image_id", "rank").group_by("image_id")}
    for image in sorted(set(by_image) & set(row_of) & set(images)):
        concept = images[image]["concept"] if within in {"concept", "both"} else None
        country = images[image]["country"] if within in {"country", "both"} else None
        places.setdefault((concept, country), []).append(image)
    k = int(stage.manifest.options["k"])
    for (concept, country), members in places.items():
        allowed = compared.allowed(concept, country)
        for start in range(0, len(members), AT_ONCE):
            some = members[start : start + AT_ONCE]
            scores = compared.scores(vectors[[row_of[image] for image in some]], allowed)
            rows = [by_image[image] for image in some]
            yield from rows_differ(rows, scores, compared, k)
            for image, own in zip(some, rows, strict=True):
                yield from labels_differ(own, images[image], compared)


def rows_differ(
    rows: list[list[dict[str, Any]]], scores: NDArray[np.float64], compared: NearestArtifacts, k: int
) -> Iterator[Problem]:
    """Compare artifacts, scores and both margins of some images with what their vectors give."""
    number = compared.number
    ranked = -np.sort(-scores, axis=1)
    for place, own in enumerate(rows):
        want = min(k, int(np.isfinite(ranked[place]).sum()))
        if [row["rank"] for row in own] != list(range(1, want + 1)):
            yield f"image {own[0]['image_id']} has other ranks", f"1 to {want}", [row["rank"] for row in own]
            continue
        if len({row["artifact_id"] for row in own}) != len(own):
            yield f"image {own[0]['image_id']} names an artifact twice", "each once", own[0]["artifact_id"]
        for rank, row in enumerate(own):
            artifact = number.get(row["artifact_id"])
            if artifact is None:
                yield f"image {row['image_id']} is matched to what the index lacks", "an artifact", row["artifact_id"]
                continue
            first, mine = ranked[place, 0], scores[place, artifact]
            rival = ranked[place, 1] if ranked.shape[1] > 1 and np.isfinite(ranked[place, 1]) else LOWEST
            found = {
                "nearest artifact's score": (ranked[place, rank], mine),
                "score": (mine, row["score"]),
                "margin": (first - rival if rank == 0 else mine - first, row["margin"]),
                "country margin": (mine - compared.best_abroad(scores[place], artifact), row["country_margin"]),
            }
            for name, (expected, stated) in found.items():
                if not abs(expected - stated) <= TOLERANCE:
                    yield (
                        f"image {row['image_id']}, rank {row['rank']}: the {name} is not what the vectors give",
                        f"{expected:.7f}", f"{stated:.7f} ({row['artifact_id']})",
                    )  # fmt: skip
                    break


def labels_differ(own: list[dict[str, Any]], image: Mapping[str, Any], compared: NearestArtifacts) -> Iterator[Problem]:
    """Compare names, countries and continents with those of the index."""
    for row in own:
        if row["artifact_id"] not in compared.number:
            continue
        artifact = compared.index.artifacts[compared.number[row["artifact_id"]]]
        countries = artifact["countries"]
        limited = [country for country in countries if country in compared.within[1]]
        chosen = image["country"] if image["country"] in countries else (limited or countries or [None])[0]
        continent = artifact["continents"][countries.index(chosen)] if chosen in countries else None
        wanted = {
            "artifact": artifact["artifact"], "countries": countries, "country": chosen, "continent": continent,
        }  # fmt: skip
        for name, expected in wanted.items():
            if row[name] != expected:
                yield f"image {row['image_id']}, rank {row['rank']}: {name} is not the artifact's", expected, row[name]


def abstention(stage: FinishedStage, matches: pl.DataFrame) -> Iterator[Problem]:
    """Compare who abstained with the margin that the calibration chose."""
    threshold = -np.inf
    if stage.manifest.options.get("max_error") is not None:
        chosen = pl.read_parquet(stage.folder / "calibration.parquet").filter(pl.col("chosen"))
        threshold = float(chosen["threshold"][0]) if chosen.height else np.inf
    margins = dict(matches.filter(pl.col("rank") == 1).select("image_id", "margin").iter_rows())
    wrong = [
        image
        for image, abstained in matches.select("image_id", "abstained").iter_rows()
        if abstained != (not np.float32(margins[image]) >= np.float32(threshold))
    ]
    if wrong:
        yield f"image {wrong[0]} abstains, or not, against its margin", f"from {threshold} on", f"{len(wrong)} rows"
