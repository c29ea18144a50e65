"""A small world of dishes that is taken from dump to cultural space, with anything about it changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders import asking
from culturekit.builders.filtering.cspace_filter import filter_candidates, questions_about
from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.choices import Included
from culturekit.core.digests import digest_bytes
from culturekit.core.schemas import CANDIDATES, KEPT
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.dump.ingest import IngestOptions, ingest_stage
from culturekit.kg.exchange.extract_stage import extract_stage
from culturekit.kg.store import GraphTables
from culturekit.llm.client import Client
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.journal import key_of
from culturekit.people.candidate_review import ReviewFiles, review_stage
from tests.conftest import stage_here

BRAZIL, JAPAN, ITALY = "Q155", "Q17", "Q38"
DISH, STEW, DRINK = "Q1000", "Q1001", "Q2000"

FAR = "openai:judge-1"

Statements = Mapping[str, Sequence[str]]


def statements(kind: str, *countries: str) -> Statements:
    """A thing of a class, from countries."""
    return {"P31": [kind], "P495": list(countries)}


ITEMS: Mapping[str, tuple[str, Statements]] = {
    DISH: ("dish", {}),
    STEW: ("stew", {"P279": [DISH]}),
    DRINK: ("drink", {}),
    "Q1": ("Feijoada", statements(STEW, BRAZIL)),
    "Q2": ("Moqueca", statements(STEW, BRAZIL)),
    "Q3": ("Sushi", statements(DISH, JAPAN)),
    "Q4": ("Udon", statements(DISH, JAPAN)),
    "Q5": ("Caipirinha", statements(DRINK, BRAZIL)),
    "Q6": ("Risotto", statements(DISH, ITALY)),
    "Q7": ("Polenta", statements(DISH, ITALY)),
    "Q8": ("Pizza", statements(DISH, ITALY, BRAZIL)),
}


@dataclass(frozen=True)
class Completion:
    """What a completion proposed of Brazil: identifiers with what became of them, and what decided that."""

    outcomes: Mapping[str, str]
    propose: str = "name what is missing"
    verify: str = "check it"
    model: str = "far-1"


@dataclass(frozen=True)
class World:
    """What a run is made from.

    `verdicts` are what the judge says of items whatever he is told, `keyed` what he says of an item when he is told so,
    as item, instructions and verdict.
    """

    items: Mapping[str, tuple[str, Statements]] = field(default_factory=lambda: ITEMS)
    roots: tuple[tuple[str, str | None], ...] = ((DISH, None),)
    hops: int = 4
    countries: tuple[str, ...] | None = None
    verdicts: Mapping[str, str] = field(default_factory=dict)
    wording: str | None = None
    keyed: tuple[tuple[str, str, str], ...] = ()
    completion: Completion | None = None
    include: Included | None = None
    decisions: Mapping[str, str] | None = None

    def with_item(self, qid: str, label: str, said: Statements) -> "World":
        """The same world, one line of its dump another."""
        return replace(self, items={**self.items, qid: (label, said)})

    @property
    def concept(self) -> Concept:
        """The root config."""
        roots = tuple(Root(qid=qid, label=self.items[qid][0], subconcept=sub) for qid, sub in self.roots)
        return Concept(concept="cuisine", hops=self.hops, roots=roots, countries=self.countries or "all")


def make_run(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch, judge: str | None = None) -> Path:
    """Run the stages from the dump to the cultural space in a folder."""
    folder.mkdir(parents=True)
    dump = folder / "dump.json"
    dump.write_text("\n".join(document(qid, *said) for qid, said in world.items.items()), encoding="utf-8")
    with monkeypatch.context() as words:
        if world.wording is not None:
            words.setattr(asking, "_shipped_wording", lambda name: world.wording)
        concepts = [world.concept]
        done(ingest_stage([dump], IngestOptions()), folder)
        done(extract_stage(folder / "graph", concepts), folder)
        replies = folder / "replies.jsonl"
        said = [*lines(world), *keyed_lines(folder, world)]
        replies.write_text("\n".join(json.dumps(line) for line in said), encoding="utf-8")
        spec = judge or f"replay:{replies}?miss=default&client={FAR}"
        table = folder / "candidates/candidates.parquet"
        done(filter_candidates.stage(table, folder / "graph", roots=(world.concept,), judge=spec), folder)
        kept = folder / "filter/kept.parquet"
        if world.completion is not None:
            done(completion_of(kept, world.completion), folder)
            kept = folder / "completion/completed.parquet"
        if world.decisions is not None:
            sheet = folder / "sheet.csv"
            rows = [f"{qid},cuisine,{word}" for qid, word in world.decisions.items()]
            sheet.write_text("\n".join(["qid,concept,decision", *rows]), encoding="utf-8")
            done(review_stage(kept, ReviewFiles((sheet,), by="Ada", on="2026-11-22")), folder)
            kept = folder / "review/kept.parquet"
        done(release_stage([kept], ReleaseOptions(tuple(concepts), include=world.include)), folder)
    return folder


def done(stage: Stage, folder: Path) -> None:
    stage_here(stage, folder / stage.name)


def completion_of(kept: Path, completion: Completion) -> Stage:
    """A completion in the shape of the real one: its table of all rows, and what became of each proposal."""

    def run(work: Work) -> Outcome:
        rows = read_table(kept, KEPT)
        blank = rows.head(1).with_columns(country_qids=pl.lit([BRAZIL]), roots=pl.lit([DISH]))
        new = [
            blank.with_columns(qid=pl.lit(name), label=pl.lit(name.removeprefix("LLM:")), path=pl.lit([name]))
            for name, outcome in completion.outcomes.items()
            if outcome == "added"
        ]
        pl.concat([rows, *new]).sort("concept", "qid").write_parquet(work.out / "completed.parquet")
        said = [
            {
                "concept": "cuisine", "country": "BR", "artifact_id": name if outcome == "added" else None, "round": 1,
                "name": name.removeprefix("LLM:"), "outcome": outcome,
            }
            for name, outcome in completion.outcomes.items()
        ]  # fmt: skip
        said += [{**row, "round": 2, "outcome": "repeated"} for row in said if row["outcome"] == "added"]
        table = pl.DataFrame(said).with_columns(detail=pl.lit(None, pl.String))
        table.write_parquet(work.out / "proposals.parquet")
        return Outcome()

    words = {"cspace.propose": completion.propose, "cspace.verify": completion.verify}
    hashes = {task: digest_bytes(text.encode()) for task, text in words.items()}
    options = {"judge": completion.model, "model": completion.model, "wordings": hashes}
    return Stage("completion", "completion", 1, run, {"kept": kept}, options)


def lines(world: World) -> list[dict[str, object]]:
    """The judge's replies: keep, but for what the world says."""
    own: list[dict[str, object]] = [
        {"task": "cspace.filter", "id": qid, "reply": {"id": qid, "verdict": verdict}}
        for qid, verdict in world.verdicts.items()
    ]
    return [{"task": "cspace.filter", "reply": {"id": "${id}", "verdict": "keep"}}, *own]


def keyed_lines(folder: Path, world: World) -> list[dict[str, object]]:
    """Replies to questions as they are asked with certain instructions."""
    client = CLIENTS.make(FAR)
    assert isinstance(client, Client)
    rows = {row["qid"]: row for row in read_table(folder / "candidates/candidates.parquet", CANDIDATES).to_dicts()}
    source = pl.DataFrame({name: [[q for row in rows.values() for q in row[name]]] for name in ("p31", "p279")})
    classes = GraphTables(folder / "graph").class_names([source])
    found: list[dict[str, object]] = []
    for qid, instructions, verdict in world.keyed:
        questions = replace(questions_about([world.concept], classes), instructions=instructions)
        for asked in questions.about(rows[qid], world.concept):
            key = key_of(client.identity, client.compose(asked)).hex()
            found.append({"key": key, "reply": {"id": qid, "verdict": verdict}})
    return found


def document(qid: str, label: str, said: Statements) -> str:
    """A line of a dump."""
    claims = {
        name: [
            {
                "mainsnak": {"snaktype": "value", "property": name, "datavalue": {"value": {"id": value}}},
                "rank": "normal",
            }
            for value in values
        ]
        for name, values in said.items()
    }
    labels = {"en": {"language": "en", "value": label}}
    return json.dumps({"id": qid, "type": "item", "labels": labels, "claims": claims or []})
