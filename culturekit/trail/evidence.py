"""Why an artifact is in the cultural space: its path of statements, each with its line of the dump."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.digests import JOURNAL, canonical_json, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import manifest_of, recorded, upstream
from culturekit.core.schemas import CSPACE, KEPT, STARTS
from culturekit.core.tables import read_table
from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.countries import number_of_item
from culturekit.kg.dump.entities import LARGEST, Item, Malformed, decode
from culturekit.kg.dump.read_dump import read_line
from culturekit.kg.store import DumpPosition, GraphTables, ItemFacts
from culturekit.llm.journal import FILE
from culturekit.llm.ledger import Exchange, latest_exchanges, question_of, shown_text

# What models said of an artifact: the verdict in a table of a stage, the question, and the reply in its journal.

SHOWN_LETTERS = 600
MOST_EXCHANGES = 1000


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply as it came, by its number in a journal, and the data that it was asked about."""

    journal: str
    number: int
    outcome: str
    question: Mapping[str, Any]
    reply: str


JUDGING = ("filter", "completion", "settle", "review")  # The stages that decide what is in a cultural space
REVIEWED = ("review:", "rejected in review")  # How the reasons begin that a review gives


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
    judge = manifest.options.get("judge")
    unstored = "" if (folder / JOURNAL / FILE).is_file() else f"there is no journal in {folder.name}"
    if isinstance(judge, str):
        unstored = f"{judge} answers for nothing and says the same again: no reply is stored"
    if manifest.stage in {"filter", "settle"}:
        for row in filter_rows(folder, artifact_id, concept):
            if row["reason"] != manifest.notes.get("rule", row["reason"]):
                continue  # another judge said it
            asked = row["reason"].startswith("judge ")
            replies = last_replies(folder, [(artifact_id, None)], concept) if asked and not unstored else ()
            yield StageVerdict(folder.name, row["verdict"], reason_text(row), replies, unstored if asked else "")
        return
    for row in proposals_of(folder, artifact_id, concept):
        cell = f"{row['concept']}/{row['country']}"
        replies = () if unstored else last_replies(folder, [(cell, row["round"]), (row["proposal_id"], None)], concept)
        reason = f"proposed for {row['country']} in round {row['round']} as {row['name']!r}"
        detail = f": {row['detail']}" if row["detail"] else ""
        yield StageVerdict(folder.name, row["outcome"], reason + detail, replies, unstored)


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
    from_graph = [folder for folder in sorted(beside) if graph_behind(folder) == content]
    found = [folder for folder in from_graph if manifest_of(folder).stage in JUDGING]
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
        yield f"verdict    {verdict.verdict}, by {verdict.stage}: {shown_text(verdict.reason, longest=SHOWN_LETTERS)}"
        if verdict.unstored:
            yield f"  reply    {verdict.unstored}"
        for reply in verdict.replies:
            yield f"  asked    {shown_text(canonical_json(reply.question).decode(), longest=SHOWN_LETTERS)}"
            text = shown_text(reply.reply, longest=SHOWN_LETTERS)
            yield f"  answered {reply.journal} entry {reply.number} ({reply.outcome}): {text}"
        if not verdict.replies and not verdict.unstored and verdict.reason.startswith("judge "):
            yield "  reply    none is in the journal"


PUBLISHED = "published"  # The role of the file in the manifest of a cultural space that was taken in as it was

# Bytes of a dump up to which it is held against its SHA-256 before a line of it is shown, some two seconds; of a larger
# one the line alone is held against the graph, as it always is.
HASHED = 2_000_000_000

SHOWN = 200  # Characters of a wrong line that are quoted

CLASS_PROPERTIES = ("P31", "P279")
COUNTRY_PROPERTIES = ("P495", "P17")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: what an item says of another."""

    property: str
    value: str
    value_label: str
    rank: str


@dataclass(frozen=True, slots=True)
class PathNode:
    """An item on the path from a root: what it says of the one before it, and where the dump says so."""

    qid: str
    label: str
    said: tuple[Statement, ...]
    place: DumpPosition | None


@dataclass(frozen=True, slots=True)
class ArtifactEvidence:
    """The path that made an item an artifact, and the countries it states; empty for what a model completed.

    `published` is the file that says so, where the cultural space was taken in as somebody released it.
    """

    artifact_id: str
    name: str
    concept: str
    path: tuple[PathNode, ...]
    countries: tuple[Statement, ...]
    published: str = ""


class EvidenceTables:
    """The tables behind a cultural space, found from it stage by stage."""

    def __init__(self, cspace_folder: Path) -> None:
        """Open the cultural space, what the filter kept, and the graph; of a published space nothing lies behind it."""
        self.space = read_table(cspace_folder / "cspace.parquet", CSPACE)
        inputs = manifest_of(cspace_folder).inputs
        self.published = inputs[PUBLISHED].name if PUBLISHED in inputs else ""
        if self.published:
            return
        kept_path = upstream(cspace_folder, "kept")
        self.judging = tuple(judging_stages(cspace_folder))
        of_candidates = next((one for one in self.judging if "candidates" in manifest_of(one).inputs), kept_path.parent)
        candidates_folder = upstream(of_candidates, "candidates").parent
        self.graph = upstream(candidates_folder, "graph")
        self.kept = read_table(kept_path, KEPT)
        self.tables = GraphTables(self.graph)

    def verdicts(self, artifact: ArtifactEvidence) -> tuple[StageVerdict, ...]:
        """Collect what models said of an artifact; of a published space nobody knows."""
        return () if self.published else verdicts_on(self.judging, artifact.artifact_id, artifact.concept)

    def dump_line(self, position: DumpPosition, qid: str) -> str:
        """Read the line of the dump that describes an item; it must say of it what the graph says."""
        file = recorded(self.graph, position.role)
        if not file.exists() or file.stat().st_size <= HASHED:
            file = upstream(self.graph, position.role)
        path = self.graph / "starts.parquet"
        starts = (
            read_table(path, STARTS).filter(pl.format("dump-{}", "file") == position.role) if path.exists() else None
        )
        line = read_line(file, member=position.member, offset=position.offset, starts=starts)
        if not self.says_the_same(line, number_of_item(qid)):
            raise IntegrityError(
                "the dump is not the one that the graph was made from", where=str(position),
                expected=f"what the graph says of {qid}", found=line[:SHOWN],
            )  # fmt: skip
        return line

    def says_the_same(self, line: str, number: int) -> bool:
        """Tell whether a line of the dump says of an item what the graph has of it; targets may be redirected."""
        alone = np.array([number], np.uint32)
        label = self.tables.items_of(alone)["label"].to_list()
        stated = self.tables.statements_of(alone, ENTITY_STATEMENTS, ranks="all", ended="keep")
        try:
            item = decode(line.encode(), languages=tuple(manifest_of(self.graph).options["languages"]))
        except Malformed:
            return False
        if not isinstance(item, Item) or (item.number, [item.label]) != (number, label):
            return False
        kept = (s for s in item.statements if s.position <= LARGEST)
        statements = sorted((s.property, s.position, s.snak, s.rank, s.qualified, s.ended) for s in kept)
        return statements == stated.select("property", "position", "snak", "rank", "qualified", "ended").rows()

    def evidence_of(self, artifacts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ArtifactEvidence]:
        """Collect the evidence of artifacts, each an (artifact_id, concept)."""
        if self.published:
            return {(qid, concept): self.stated(qid, concept) for qid, concept in sorted(set(artifacts))}
        wanted = pl.DataFrame(sorted(set(artifacts)), schema={"qid": pl.String, "concept": pl.String}, orient="row")
        rows = self.kept.join(wanted, on=["qid", "concept"], how="semi")
        numbers = sorted({int(qid[1:]) for row in rows.to_dicts() for qid in [*row["path"], *row["country_qids"]]})
        facts, stated = self.tables.facts(numbers), self.statements_by(np.array(numbers, np.uint32))
        return {(row["qid"], row["concept"]): self.evidence(row, facts, stated) for row in rows.to_dicts()}

    def stated(self, artifact_id: str, concept: str) -> ArtifactEvidence:
        """Give what a published space says of an artifact: its name, and the QIDs of its path."""
        rows = self.space.filter(pl.col("artifact_id") == artifact_id, pl.col("concept") == concept).sort("country")
        row = rows.row(0, named=True)
        path = tuple(PathNode(qid, row["name"] if qid == row["qid"] else qid, (), None) for qid in row["path"])
        return ArtifactEvidence(artifact_id, row["name"], concept, path, (), self.published)

    def statements_by(self, numbers: NDArray[np.uint32]) -> dict[str, list[Statement]]:
        """List what items say with the properties that make paths and countries."""
        rows = self.tables.statements_of(numbers, (*CLASS_PROPERTIES, *COUNTRY_PROPERTIES), ranks="all", ended="keep")
        rows = rows.filter(pl.col("value").is_not_null())
        labels = self.tables.labels(rows["value"])
        stated: dict[str, list[Statement]] = {}
        for number, name, value, rank in rows.select("number", "property", "value", "rank").iter_rows():
            stated.setdefault(f"Q{number}", []).append(Statement(name, f"Q{value}", labels[value] or f"Q{value}", rank))
        return stated

    def evidence(
        self, row: Mapping[str, Any], facts: Mapping[int, ItemFacts], statements: Mapping[str, Sequence[Statement]]
    ) -> ArtifactEvidence:
        """Put the evidence of one artifact together."""
        labels = self.tables.labels(int(qid[1:]) for qid in row["path"])
        path = []
        for before, qid in zip([None, *row["path"]], row["path"], strict=False):
            about = tuple(s for s in statements.get(qid, ()) if s.property in CLASS_PROPERTIES and s.value == before)
            known = facts.get(int(qid[1:]))
            path.append(PathNode(qid, labels[int(qid[1:])] or qid, about, known.place if known else None))
        stated = tuple(s for s in statements.get(row["qid"], ()) if s.property in COUNTRY_PROPERTIES)
        return ArtifactEvidence(row["qid"], row["label"], row["concept"], tuple(path), stated)
