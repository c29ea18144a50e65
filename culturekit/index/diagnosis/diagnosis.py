"""The instrument looked at: which references it recognises, which artifacts are near to everything, its ceiling."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.diagnosis.ceiling import ceiling_matches
from culturekit.index.diagnosis.comparison import Comparison, comparer, weights_for
from culturekit.index.diagnosis.hubs import hubs_of, neighbour_skew
from culturekit.index.diagnosis.recognition import recognition_of
from culturekit.index.folder.index_folder import OpenIndex, open_index
from culturekit.index.matching.calibration import held_out
from culturekit.index.matching.mapping_options import MappingOptions
from culturekit.index.matching.mapping_scopes import ANYWHERE
from culturekit.index.matching.mapping_shards import IMAGES_AT_ONCE, ranges
from culturekit.index.matching.match_margins import leads
from culturekit.records.schemas import HUBS, MATCHES, RECOGNITION
from culturekit.records.work import Outcome, Work
from culturekit.storage.seals import seal
from culturekit.storage.shard_runs import run_shards
from culturekit.storage.tables import merge_parts, read_table, save_parquet, write_table

__all__ = ["DiagnosisOptions", "diagnose"]


@dataclass(frozen=True, slots=True)
class DiagnosisOptions:
    """How the instrument is looked at.

    Attributes:
        size: images per batch of the ceiling, as in the scores that it stands beside.
        repeats: batches of the ceiling per concept.
    """

    size: Annotated[int, Field(ge=2)] = 8
    repeats: Annotated[int, Field(ge=1, le=65_535)] = 50


@dataclass(frozen=True, slots=True)
class HeldOutShard:
    """Rows `start:stop` of a table of references, to be matched with the index without their own vector."""

    comparison: Comparison
    shown: Path
    start: int
    stop: int
    part: Path


def diagnose(
    work: Work,
    folder: Path,
    matches: list[Path],
    mapping: MappingOptions,
    options: DiagnosisOptions,
    *,
    seed: int,
) -> Outcome:
    """Write `recognition`, `hubs`, and as `matches` those of the ceiling."""
    index = open_index(folder)
    found, why = held_out_matches(work, index, mapping)
    recognition = recognition_of(found, index.artifacts) if found.height else pl.DataFrame(schema=RECOGNITION.schema)
    write_table(work.out, RECOGNITION, recognition)
    ceiling = ceiling_matches(found, index.artifacts, size=options.size, repeats=options.repeats, seed=seed)
    write_table(work.out, MATCHES, ceiling)
    mapped = [read_table(path, MATCHES) for path in matches]
    hubs = pl.concat([hubs_of(table) for table in mapped]) if mapped else pl.DataFrame(schema=HUBS.schema)
    write_table(work.out, HUBS, hubs.unique(["model", "rank"], keep="first", maintain_order=True))
    indexed = int(np.unique(np.concatenate([one.owners for one in index.channels.values()])).size)
    skews = [neighbour_skew(table, indexed) for table in mapped]
    skew = {model: value for each in skews for model, value in each.items()}
    notes: dict[str, object] = {"neighbour_skew": dict(sorted(skew.items())), "mapping": asdict(mapping)}
    if why:
        notes["no_recognition"] = why
    counts = {"recognition": recognition.height, "hubs": hubs.height, "matches": ceiling.height}
    return Outcome({**counts, "references": found.height}, {}, notes)


def held_out_matches(work: Work, index: OpenIndex, mapping: MappingOptions) -> tuple[pl.DataFrame, str]:
    """Match references that are held out, or say why none can be.

    Returns:
        A row per reference: `shown`, the artifact it shows, and what it was mapped to.
    """
    comparison = Comparison(
        index.folder, mapping.aggregate, weights_for(index, mapping), mapping.concepts, mapping.countries, "numpy"
    )
    try:
        known = held_out(index, comparison, None)
    except UsageError as error:
        return pl.DataFrame(schema={"shown": pl.String, **MATCHES.schema}), error.problem
    shown = work.scratch / "held-out.parquet"
    save_parquet(known.rows, shown)
    shards = [
        HeldOutShard(comparison, shown, start, stop, work.scratch / f"held-out-{start:09d}.parquet")
        for start, stop in ranges(known.rows.height)
    ]
    run_shards(work, shards, match_held_out, size=lambda shard: shard.stop - shard.start, unit=known.kind)
    return merge_parts([shard.part for shard in shards], {}), ""


def match_held_out(shard: HeldOutShard) -> int:
    """Match a run of references, each without its own vector."""
    compared = comparer(shard.comparison)
    rows = pl.scan_parquet(shard.shown).slice(shard.start, shard.stop - shard.start).collect()
    own = rows["row"].to_numpy().astype(np.int64)
    lowest = compared.scope(ANYWHERE).lowest
    parts = []
    for start in range(0, rows.height, IMAGES_AT_ONCE):
        some = own[start : start + IMAGES_AT_ONCE]
        queries = compared.channels["image"].vectors[some]
        ranking = compared.rank(ANYWHERE, queries, count=2, left_out=some)
        nearest = compared.artifacts[ranking.artifacts[:, 0]]
        parts.append(
            nearest.select(
                "artifact_id",
                "artifact",
                "countries",
                country=pl.col("countries").list.first(),
                continent=pl.col("continents").list.first(),
                score=pl.Series(ranking.scores[:, 0]),
                margin=pl.Series(leads(ranking, 1, lowest=lowest)[:, 0]),
            )
        )
    shown = compared.artifacts["artifact_id"].gather(rows["artifact"])
    save_parquet(pl.concat(parts).with_columns(shown=shown), shard.part)
    seal(shard.part)
    return rows.height
