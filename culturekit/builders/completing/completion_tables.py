"""The tables of a completion: the collection as it is now, every proposal, every round, and what was left out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from culturekit.builders.completing.completion_additions import ProposalRow
from culturekit.builders.completing.completion_rounds import CompletionRounds
from culturekit.builders.completing.completion_state import ADDED, Round
from culturekit.records.schemas import COMPLETED, PROPOSALS, ROUNDS
from culturekit.storage.table_slices import ROWS_PER_SLICE, TableSlices
from culturekit.storage.tables import write_frames, write_table

__all__ = ["drop_rows", "write_completed", "write_proposals", "write_rounds"]

FATES = (*ADDED, "known", "repeated", "refused", "left out")
"""How proposals end, in the order of the columns that count them."""

ADDED_COLUMNS = ("source", "round", "proposer", "gained")
GAINS = {
    "concept": pl.String(),
    "qid": pl.String(),
    "more": pl.List(pl.String()),
    "by_round": pl.UInt8(),
    "by": pl.String(),
    "isos": pl.List(pl.String()),
}


def write_completed(folder: Path, kept: TableSlices, new: pl.DataFrame, gains: pl.DataFrame) -> int:
    """Write the kept rows, some of them with more countries, and the new ones between them, in the order of the key."""
    optional = {name: column for name, column in kept.table.optional.items() if name not in ADDED_COLUMNS}
    table = replace(COMPLETED, optional=optional)
    names = [*COMPLETED.columns, *optional]
    written = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal written
        rest = with_columns(new, names)
        for frame in kept.slices():
            last = pl.lit(frame["concept"][-1]), pl.lit(frame["qid"][-1])
            comes = (pl.col("concept") < last[0]) | ((pl.col("concept") == last[0]) & (pl.col("qid") < last[1]))
            joined = pl.concat([with_gains(frame, gains).select(names), rest.filter(comes)]).sort("concept", "qid")
            rest = rest.filter(~comes)
            written += joined.height
            yield joined
        written += rest.height
        yield rest

    write_frames(folder, table, frames(), rows_per_group=ROWS_PER_SLICE)
    return written


def with_columns(new: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Give new rows the columns of the table, in the order of its key."""
    missing = [pl.lit([], dtype=pl.List(pl.String())).alias(name) for name in names if name not in new.columns]
    return new.with_columns(missing).select(names).sort("concept", "qid")


def with_gains(frame: pl.DataFrame, gains: pl.DataFrame) -> pl.DataFrame:
    """Add countries to kept rows; a table that was completed before keeps what it says of that."""
    blank = {
        "source": pl.lit("wikidata"),
        "round": pl.lit(0, dtype=pl.UInt8),
        "proposer": pl.lit(None, dtype=pl.String),
        "gained": pl.lit([], dtype=pl.List(pl.String())),
    }
    whole = frame.with_columns(value.alias(name) for name, value in blank.items() if name not in frame.columns)
    joined = whole.join(gains, on=["concept", "qid"], how="left", maintain_order="left")
    more, isos = (pl.col(name).fill_null([]) for name in ("more", "isos"))
    return joined.with_columns(
        country_qids=pl.col("country_qids").list.concat(more),
        gained=pl.col("gained").list.concat(isos),
        round=pl.coalesce("by_round", "round"),
        proposer=pl.coalesce("by", "proposer"),
    )


def write_proposals(folder: Path, proposals: Sequence[ProposalRow]) -> int:
    """Write every proposal as it was made."""
    rows = [
        (
            row.id, row.cell.concept.concept, row.cell.country.iso, row.round, row.position, row.name,
            row.proposal.other_names, row.proposal.kind, row.proposal.what, row.artifact_id, row.outcome,
            ": ".join(filter(None, (row.reason, row.detail))) or None,
        )
        for row in proposals
    ]  # fmt: skip
    write_table(folder, PROPOSALS, pl.DataFrame(rows, schema=PROPOSALS.schema, orient="row"))
    return len(rows)


def write_rounds(folder: Path, rounds: Sequence[Round], *, proposer: str) -> int:
    """Write what came of every question to the proposer."""
    rows = [
        (
            each.cell.concept.concept, each.cell.country.iso, each.number, proposer, each.outcome, each.counts.total(),
            *(each.counts[fate] for fate in FATES), each.taken_back, each.ended or None, each.raw,
        )
        for each in rounds
    ]  # fmt: skip
    write_table(folder, ROUNDS, pl.DataFrame(rows, schema=ROUNDS.schema, orient="row"))
    return len(rows)


def drop_rows(completion: CompletionRounds) -> list[tuple[str | None, ...]]:
    """List what was proposed and is not there, and replies that could not be used."""
    proposals = [
        (
            row.id,
            row.cell.concept.concept,
            "completion",
            row.reason,
            f"{row.name}: {row.detail}" if row.detail else row.name,
        )
        for row in completion.proposals
        if row.outcome not in {*ADDED, "known", "repeated"}
    ]
    replies = [
        (
            f"{each.cell.id}/{each.number}",
            each.cell.concept.concept,
            "completion",
            f"no proposals: {each.outcome}",
            None,
        )
        for each in completion.rounds
        if each.set_aside
    ]
    return [*proposals, *replies]
