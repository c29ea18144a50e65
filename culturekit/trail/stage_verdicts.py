"""What models said of an artifact: the verdict in a table of a stage, the question, and the reply in its journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.errors import IntegrityError, UsageError
from culturekit.llm.journal_file import FILE
from culturekit.llm.ledger import Exchange, latest_exchanges, question_of, shown_text
from culturekit.storage.digests import canonical_json
from culturekit.storage.manifest import JOURNAL, read_manifest
from culturekit.trail.upstream import manifest_of, recorded, upstream

__all__ = [
    "StageVerdict",
    "StoredReply",
    "exchanges_about",
    "judging_stages",
    "stages_beside",
    "verdict_lines",
    "verdicts_on",
]

SHOWN = 600
MOST_EXCHANGES = 1000


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply as it came, by its number in a journal, and the data that it was asked about."""

    journal: str
    number: int
    outcome: str
    question: Mapping[str, Any]
    reply: str


JUDGING = ("filter", "completion", "review")
"""The stages that decide what is in a cultural space."""

REVIEWED = ("review:", "rejected in review")
"""How the reasons begin that a review gives."""


@dataclass(frozen=True, slots=True)
class StageVerdict:
    """What a stage made of an artifact, why, and the replies behind that; `unstored` says why there are none."""

    stage: str
    verdict: str
    reason: str
    replies: tuple[StoredReply, ...]
    unstored: str = ""


def judging_stages(folder: Path) -> Iterator[Path]:
    """Give the stages that decided what is in a table, the last first: reviews, a completion, the filter."""
    manifest = manifest_of(folder)
    if manifest.stage == "release":
        for role in sorted(role for role in manifest.inputs if role.startswith("kept")):
            yield from judging_stages(upstream(folder, role).parent)
    elif manifest.stage in JUDGING:
        yield folder
        if manifest.stage != "filter" and manifest.inputs["kept"].stage:
            yield from judging_stages(upstream(folder, "kept").parent)


def verdicts_on(stages: Sequence[Path], artifact_id: str, concept: str) -> tuple[StageVerdict, ...]:
    """Collect what each stage made of an artifact, the first stage first."""
    return tuple(verdict for folder in reversed(stages) for verdict in verdicts_in(folder, artifact_id, concept))


def verdicts_in(folder: Path, artifact_id: str, concept: str) -> Iterator[StageVerdict]:
    """Give the verdict of a filter or of people, or what became of each proposal of a completion."""
    manifest = manifest_of(folder)
    if manifest.stage not in JUDGING:
        raise UsageError(
            "no stage that judges candidates", where=str(folder), expected=f"a folder of {' or '.join(JUDGING)}",
            found=f"the stage {manifest.stage}",
        )  # fmt: skip
    if manifest.stage == "review":
        for row in filter_rows(folder, artifact_id, concept):
            if row["reason"].startswith(REVIEWED):
                yield StageVerdict(folder.name, row["verdict"], reason_text(row), (), "people decided")
        return
    told = told_by(folder, manifest.options.get("judge"))
    if manifest.stage == "filter":
        for row in filter_rows(folder, artifact_id, concept):
            asked = row["reason"].startswith("judge ")
            replies = last_replies(folder, [(artifact_id, None)], concept) if asked and not told else ()
            yield StageVerdict(folder.name, row["verdict"], reason_text(row), replies, told if asked else "")
        return
    for row in proposals_of(folder, artifact_id, concept):
        cell = f"{row['concept']}/{row['country']}"
        replies = () if told else last_replies(folder, [(cell, row["round"]), (row["proposal_id"], None)], concept)
        reason = f"proposed for {row['country']} in round {row['round']} as {row['name']!r}"
        detail = f": {row['detail']}" if row["detail"] else ""
        yield StageVerdict(folder.name, row["outcome"], reason + detail, replies, told)


def told_by(folder: Path, judge: object) -> str:
    """Say why a stage has no stored replies; empty where it has a journal of its judge."""
    if isinstance(judge, str):
        return f"{judge} answers for nothing and says the same again: no reply is stored"
    return "" if (folder / JOURNAL / FILE).is_file() else f"there is no journal in {folder.name}"


def filter_rows(folder: Path, artifact_id: str, concept: str) -> Iterator[dict[str, Any]]:
    """Find an item among the kept and the dropped."""
    kept = pl.scan_parquet(folder / "kept.parquet").filter(pl.col("qid") == artifact_id, pl.col("concept") == concept)
    yield from kept.select("verdict", "reason", detail=pl.lit(None, pl.String)).collect().to_dicts()
    drops = pl.scan_parquet(folder / "drops.parquet").filter(pl.col("key") == artifact_id, pl.col("concept") == concept)
    yield from drops.select("reason", "detail", verdict=pl.lit("remove")).collect().to_dicts()


def reason_text(row: Mapping[str, Any]) -> str:
    """Write a reason with its detail."""
    return f"{row['reason']}: {row['detail']}" if row["detail"] else str(row["reason"])


def proposals_of(folder: Path, artifact_id: str, concept: str | None = None) -> list[dict[str, Any]]:
    """Find the proposals that a completion took to mean an artifact."""
    path = folder / "proposals.parquet"
    if not path.is_file():
        return []
    rows = pl.scan_parquet(path).filter(pl.col("artifact_id") == artifact_id)
    wanted = rows if concept is None else rows.filter(pl.col("concept") == concept)
    return wanted.sort("round", "position").collect().to_dicts()


def last_replies(folder: Path, asked: Sequence[tuple[str, int | None]], concept: str) -> tuple[StoredReply, ...]:
    """Give the last reply to each question of a stage: its id, and the round where one id is asked in several.

    A candidate is asked about once a country; all of these are told.
    """
    path, model = folder / JOURNAL / FILE, manifest_of(folder).options.get("model")
    found: dict[tuple[str, int | None], dict[object, StoredReply]] = {}
    for exchange, question in asked_about(path, [row for row, _ in asked]):
        for row, number in asked:
            of_round = number is None or question.get("round") == number
            if exchange.model == model and question["id"] == row and of_round and question.get("concept") == concept:
                reply = exchange.reply.decode("utf-8", "replace")
                journal = f"{folder.name}/{JOURNAL}"
                stored = StoredReply(journal, exchange.number, exchange.outcome, question, reply)
                found.setdefault((row, number), {})[question.get("country") if number is None else None] = stored
    return tuple(reply for key in asked for reply in found.get(key, {}).values())


def asked_about(path: Path, rows: Sequence[str]) -> Iterator[tuple[Exchange, Mapping[str, Any]]]:
    """Give the exchanges whose question is about one of some rows, in the order in which they came."""
    for exchange in latest_exchanges(path, limit=MOST_EXCHANGES, mentions=rows):
        question = question_of(exchange.request)
        if question.get("id") in rows:
            yield exchange, question


def exchanges_about(path: Path, artifact_id: str, *, outcome: str, limit: int) -> list[Exchange]:
    """Give the last exchanges of a journal about an artifact: its own row, and its proposals in a completion."""
    proposals = proposals_of(path.parent.parent, artifact_id)
    rounds = {(f"{row['concept']}/{row['country']}", row["round"]) for row in proposals}
    rows = {artifact_id, *(row["proposal_id"] for row in proposals)}
    found = []
    for exchange, question in asked_about(path, [*sorted(rows), *sorted(cell for cell, _ in rounds)]):
        is_about = question["id"] in rows or (question["id"], question.get("round")) in rounds
        if is_about and outcome in {"", exchange.outcome}:
            found.append(exchange)
    return found[-limit:]


def stages_beside(graph: Path) -> list[Path]:
    """Find the filters and completions beside a graph that were made from it, completions first."""
    content = manifest_of(graph).sha256
    beside = (path for path in graph.absolute().parent.iterdir() if path.is_dir() and not path.name.startswith("."))
    made = [folder for folder in sorted(beside) if graph_behind(folder) == content]
    found = [folder for folder in made if manifest_of(folder).stage in JUDGING]
    return sorted(found, key=lambda folder: manifest_of(folder).stage == "filter")


def graph_behind(folder: Path) -> str:
    """Give the hash of the graph that a filter or a completion comes from; empty where that cannot be told."""
    above = {"completion": "kept", "filter": "candidates"}
    try:
        manifest = read_manifest(folder)
        while manifest is not None and manifest.stage in above:
            folder = recorded(folder, above[manifest.stage]).parent
            manifest = read_manifest(folder)
    except (IntegrityError, OSError):
        return ""
    return manifest.inputs["graph"].sha256 if manifest is not None and manifest.stage == "extract" else ""


def verdict_lines(verdicts: Sequence[StageVerdict]) -> Iterator[str]:
    """Tell verdicts, each with what was asked and answered."""
    for verdict in verdicts:
        yield f"verdict    {verdict.verdict}, by {verdict.stage}: {shown_text(verdict.reason, longest=SHOWN)}"
        if verdict.unstored:
            yield f"  reply    {verdict.unstored}"
        for reply in verdict.replies:
            yield f"  asked    {shown_text(canonical_json(reply.question).decode(), longest=SHOWN)}"
            text = shown_text(reply.reply, longest=SHOWN)
            yield f"  answered {reply.journal} entry {reply.number} ({reply.outcome}): {text}"
        if not verdict.replies and not verdict.unstored and verdict.reason.startswith("judge "):
            yield "  reply    none is in the journal"
