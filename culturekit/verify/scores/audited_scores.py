"""What an audit says by itself, counted again image by image from matches and answers."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer
from culturekit.verify.scores.corrected_scores import told_apart
from culturekit.verify.scores.labelled_images import located
from culturekit.verify.scores.rater_errors import anchored, marks_of
from culturekit.verify.scores.score_rows import compare_row

__all__ = ["check_audited"]

HOW = (
    "from matches and answers: images counted, Wilson's limits of each concept, what was mapped weighed as it foretells"
)
COLUMNS = {"continent": "continent", "country": "country", "artifact": "artifact_id"}
NOTHING = (None, "no culture shown")


@dataclass(frozen=True, slots=True)
class Looked:
    """An image people looked at: what it is mapped to, what they named, and the share of them who saw nothing."""

    mapped: str | None
    named: Sequence[str | None]
    nothing: float


@dataclass(frozen=True, slots=True)
class Part:
    """The images of a model and concept: their number, how often each label is mapped, and those looked at."""

    size: int
    mapped: Mapping[str | None, int]
    looked: Sequence[Looked]


def check_audited(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Count every share again."""
    found = tree.inputs_of(stage)
    if found is None:
        ledger.not_verifiable(stage.name, rows, "the matches or answers are not here")
        return
    tables: dict[str, list[pl.DataFrame]] = {"matches": [], "audit": [], "sample": []}
    for role, path in found.items():
        tables[role.partition("-")[0].replace("audits", "audit")].append(pl.read_parquet(path))
    matches = pl.concat(tables["matches"]).filter(pl.col("rank") == 1)
    said = located(pl.concat(tables["audit"], how="diagonal"), [matches])
    pool = stage.manifest.options.get("pool")
    said = said if pool is None else said.filter(pl.col("pool") == pool)
    kept = said.filter(~pl.col("offered_first").fill_null(value=False)) if anchored(said) else said
    unknown = stage.manifest.options.get("design") == "unknown"
    known: dict[tuple[str, str | None, str], Part] = {}
    for row in rows:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            told = {}
            if "marked" in row["about"] or stage.manifest.version > 2:  # scores of earlier versions have no marks
                level = COLUMNS[row["about"]["level"]]
                marks = marks_of(spoken_of(row, matches), told_apart(said), level, unknown=unknown)
                told["marked"] = marks or None
            check_row(stage.name, row, (matches, kept), known, ledger, told)


def check_row(
    folder: str,
    row: dict[str, Any],
    tables: tuple[pl.DataFrame, pl.DataFrame],
    known: dict[tuple[str, str | None, str], Part],
    ledger: Ledger,
    marks: Mapping[str, object],
) -> None:
    """Count one share again."""
    parts, level = [], row["about"]["level"]
    for images in spoken_of(row, tables[0]):
        key = (row["model"], images["concept"][0], level)
        if key not in known:
            known[key] = part_of(images, tables[1], COLUMNS[level])
        parts.append(known[key])
    confidence = float(row["about"]["confidence"])
    if row["metric"] == "shown_share":
        answer = helped(parts, row["group"], confidence)
    else:
        right = row["metric"] == "mapping_accuracy"
        answer = alone(
            [[agreeing(one, one.mapped) if right else one.nothing for one in part.looked] for part in parts],
            [part.size for part in parts],
            confidence,
        )
    told: dict[str, object] = {"audited": sum(len(part.looked) for part in parts), **marks}
    compare_row(folder, row, answer, sum(part.size for part in parts), HOW, ledger, said=told)


def spoken_of(row: Mapping[str, Any], matches: pl.DataFrame) -> list[pl.DataFrame]:
    """Give the images that a share is of, concept by concept: its own, or all of its model."""
    own = matches.filter(pl.col("model") == row["model"])
    every = own["concept"].unique().sort().to_list()
    concepts = [row["concept"]] if row["concept"] is not None or every == [None] else every
    return [own.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String))) for concept in concepts]


def part_of(images: pl.DataFrame, said: pl.DataFrame, column: str) -> Part:
    """Gather the answers about some images that name a level, or that nothing is shown."""
    mapped = dict(images.select("image_id", column).iter_rows())
    answers: dict[str, list[dict[str, Any]]] = {}
    for answer in said.iter_rows(named=True):
        nothing = answer["none_of_these"] and answer.get("none_means") in NOTHING
        if answer["image_id"] in mapped and (nothing or answer[column] is not None):
            answers.setdefault(answer["image_id"], []).append({**answer, "nothing": nothing})
    looked = []
    for image, own in answers.items():
        named = [None if one["nothing"] else one[column] for one in own]
        looked.append(Looked(mapped[image], named, sum(one["nothing"] for one in own) / len(own)))
    counts: dict[str | None, int] = {}
    for label in mapped.values():
        counts[label] = counts.get(label, 0) + 1
    return Part(len(mapped), counts, looked)


def agreeing(one: Looked, label: str | None) -> float:
    """Give the part of the answers about an image that name a label."""
    return sum(label is not None and name == label for name in one.named) / len(one.named)


def alone(parts: Sequence[Sequence[float]], sizes: Sequence[int], confidence: float) -> Answer:
    """Average parts by their images; Wilson's limits of each, their distances added in squares."""
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    value = down = up = 0.0
    for own, size in zip(parts, sizes, strict=True):
        weight, n, share = size / sum(sizes), len(own), math.fsum(own) / len(own)
        root = z * math.sqrt(share * (1 - share) * n + z * z / 4)
        low, high = (share * n + z * z / 2 - root) / (n + z * z), (share * n + z * z / 2 + root) / (n + z * z)
        value += weight * share
        down += (weight * (share - min(max(low, 0.0), share))) ** 2
        up += (weight * (max(min(high, 1.0), share) - share)) ** 2
    return Answer(value, max(value - math.sqrt(down), 0.0), min(value + math.sqrt(up), 1.0))


def helped(parts: Sequence[Part], label: str, confidence: float) -> Answer:
    """Estimate the share of a country from what people named, with what was mapped counted as far as it foretells."""
    pairs = [[(agreeing(one, label), float(one.mapped == label)) for one in part.looked] for part in parts]
    together = [pair for part in pairs for pair in part]
    middle = [math.fsum(pair[side] for pair in together) / len(together) for side in (0, 1)]
    both = math.fsum((y - middle[0]) * (p - middle[1]) for y, p in together)
    alike = math.fsum((p - middle[1]) ** 2 for _, p in together)
    trust = min(max(both / alike, 0.0), 1.0) if alike > 0 else 0.0
    total = sum(part.size for part in parts)
    value = variance = most = 0.0
    for part, own in zip(parts, pairs, strict=True):
        weight, rest = part.size / total, [y - trust * p for y, p in own]
        value += weight * (math.fsum(rest) / len(rest) + trust * part.mapped.get(label, 0) / part.size)
        variance += weight**2 * statistics.variance(rest) / len(rest)
        most = max(most, weight / len(rest))
    margin = statistics.NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance + most**2)
    value = min(max(value, 0.0), 1.0)
    return Answer(value, max(value - margin, 0.0), min(value + margin, 1.0))
