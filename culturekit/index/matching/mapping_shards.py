"""The work items of a mapping: images to match, references to calibrate on, artifacts whose hubness is learned."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import save_array
from culturekit.core.defaults import BLOCKS_PER_SHARD, MATCHES_PER_SHARD
from culturekit.core.schemas import MATCHES
from culturekit.core.stage_folder import seal
from culturekit.core.tables import save_parquet
from culturekit.index.encoder import Vectors
from culturekit.index.matching.comparison import ANYWHERE, Comparison, Place, comparer, hubness
from culturekit.index.matching.match_batch import Matched, leads

IMAGES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class MatchShard:
    """Rows `start:stop` of a table of images and of their vectors, to be matched.

    `threshold` is the margin from which on an image does not abstain.
    """

    comparison: Comparison
    images: Path
    vectors: Path
    start: int
    stop: int
    k: int
    threshold: float
    method: str
    part: Path


@dataclass(frozen=True, slots=True)
class TrialShard:
    """Rows `start:stop` of a table of pictures that show known artifacts, to see how they are matched.

    Their vectors are rows of the index's image channel, which are left out, or those of `vectors`.
    """

    comparison: Comparison
    shown: Path
    vectors: Path | None
    start: int
    stop: int
    part: Path


@dataclass(frozen=True, slots=True)
class HubShard:
    """The `size` artifacts in some blocks of an index, to learn from a bank of images how near they are to all."""

    comparison: Comparison
    bank: Path
    first: int
    size: int
    part: Path


def match_shard(shard: MatchShard) -> int:
    """Match a run of images and write their rows."""
    compared = comparer(shard.comparison)
    images = pl.scan_parquet(shard.images).slice(shard.start, shard.stop - shard.start).collect()
    vectors: Vectors = np.load(shard.vectors, mmap_mode="r", allow_pickle=False)
    shape = (images.height, shard.k)
    matched = Matched(np.full(shape, -1, np.int64), *np.zeros((3, *shape), np.float32))
    for place, rows in _in_places(images):
        found = compared.match(place, vectors[images["row"].to_numpy()[rows]], k=shard.k)
        for name in ("artifacts", "scores", "margins", "country_margins"):
            getattr(matched, name)[rows] = getattr(found, name)
    table = _match_table(
        images,
        matched,
        compared.artifacts,
        countries=shard.comparison.countries,
        threshold=shard.threshold,
        method=shard.method,
    )
    save_parquet(table, shard.part)
    seal(shard.part)
    return images.height


def try_shard(shard: TrialShard) -> int:
    """Match a run of pictures that show known artifacts; write the nearest artifact of each, its score and margin."""
    compared = comparer(shard.comparison)
    shown = pl.scan_parquet(shard.shown).slice(shard.start, shard.stop - shard.start).collect()
    kept_rows = None if shard.vectors is not None else shown["row"].to_numpy().astype(np.int64)
    vectors: Vectors = (
        compared.channels["image"].vectors
        if shard.vectors is None
        else np.load(shard.vectors, mmap_mode="r", allow_pickle=False)
    )
    nearest, (scores, margins) = np.zeros(shown.height, np.int64), np.zeros((2, shown.height), np.float32)
    for place, rows in _in_places(shown):
        queries = vectors[shown["row"].to_numpy()[rows]]
        found = compared.rank(place, queries, count=2, left_out=None if kept_rows is None else kept_rows[rows])
        nearest[rows], scores[rows] = found.artifacts[:, 0], found.scores[:, 0]
        margins[rows] = leads(found, 1, lowest=compared.adjusted(compared.scope(place)).lowest)[:, 0]
    tried = {"artifact": shown["artifact"], "nearest": nearest, "score": scores, "margin": margins}
    save_parquet(pl.DataFrame(tried), shard.part)
    seal(shard.part)
    return shown.height


def find_hubs(shard: HubShard) -> int:
    """Learn how near some artifacts are to a bank of images."""
    compared = comparer(shard.comparison)
    scope, how = compared.scope(ANYWHERE), shard.comparison.adjustment
    bank: Vectors = np.load(shard.bank, mmap_mode="r", allow_pickle=False)
    blocks = list(scope.blocks())[shard.first : shard.first + BLOCKS_PER_SHARD]
    values = [hubness(scope, bank, how, begin, end) for begin, end in blocks] if how is not None else []
    save_array(shard.part, np.concatenate(values))
    seal(shard.part)
    return sum(end - begin for begin, end in blocks)


def _in_places(images: pl.DataFrame) -> Iterator[tuple[Place, NDArray[np.int64]]]:
    """Part images by the place they are compared in, no more than are compared at once."""
    numbered = images.select("in_concept", "in_country").with_row_index("at")
    for (concept, country), part in numbered.group_by(["in_concept", "in_country"], maintain_order=True):
        rows = part["at"].to_numpy().astype(np.int64)
        place: Place = (None if concept is None else str(concept), None if country is None else str(country))
        for start in range(0, len(rows), IMAGES_AT_ONCE):
            yield place, rows[start : start + IMAGES_AT_ONCE]


def ranges(count: int) -> Iterator[tuple[int, int]]:
    """Cut rows into runs, a shard each."""
    for start in range(0, count, MATCHES_PER_SHARD):
        yield start, min(start + MATCHES_PER_SHARD, count)


def _match_table(
    images: pl.DataFrame,
    matched: Matched,
    artifacts: pl.DataFrame,
    *,
    countries: Sequence[str],
    threshold: float,
    method: str,
) -> pl.DataFrame:
    """Write out the matches of some images.

    A match's country is the prompt's where it is among the artifact's, else the first of the artifact's that was
    asked for with `countries`, else the artifact's first.

    Args:
        images: image_id, model, prompt_id, concept, country, repeat and slot of each.
        matched: their matches, in the same order.
        artifacts: ARTIFACTS, by number.
        countries: those that the mapping was limited to; empty when it was not.
        threshold: the margin from which on an image does not abstain.
        method: what the rows say of how they came about.
    """
    row, rank = np.nonzero(matched.artifacts >= 0)
    number = matched.artifacts[row, rank]
    shown = artifacts[number]
    asked = zip(shown["countries"].to_list(), images["country"].gather(row), strict=True)
    chosen = pl.Series([_place_of(codes, code, countries) for codes, code in asked], dtype=pl.Int64)
    shown = shown.with_columns(place=chosen)
    kept = matched.margins[:, 0] >= np.float32(threshold)
    columns = images.select("image_id", "model", "prompt_id", "concept", "repeat", "slot")[row].hstack(
        shown.select(
            "artifact_id",
            "artifact",
            "countries",
            country=pl.col("countries").list.get(pl.col("place"), null_on_oob=True),
            continent=pl.col("continents").list.get(pl.col("place"), null_on_oob=True),
        )
    )
    return columns.with_columns(
        rank=pl.Series(rank + 1, dtype=pl.UInt16),
        score=pl.Series(matched.scores[row, rank]),
        margin=pl.Series(matched.margins[row, rank]),
        country_margin=pl.Series(matched.country_margins[row, rank]),
        abstained=pl.Series(~kept[row]),
        method=pl.lit(method),
    ).select(list(MATCHES.columns))


def _place_of(codes: list[str], asked: str | None, limited: Sequence[str]) -> int:
    """Find which of an artifact's countries a match stands for, by its place among them."""
    if asked in codes:
        return codes.index(asked)
    return next((place for place, code in enumerate(codes) if code in limited), 0)
