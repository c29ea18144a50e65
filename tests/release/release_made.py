"""A small release as the pipeline leaves it, and a hand-written half with nothing left to fill in."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.run import StageRun
from culturekit.core.schemas import CSPACE, DROPS, KEPT
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.release.card_build import card_stage
from culturekit.release.card_hand import FIELDS_FILE, SECTIONS, TEXT_FILE
from tests.conftest import stage_here

REPOSITORY = Path(__file__).resolve().parents[2]

FIELDS = """\
name: small
title: "A small release: two countries"
version: "1.0.0"
published: 2026-11-21
summary: A release that tests build.
licence: {id: cc0-1.0, url: "https://creativecommons.org/publicdomain/zero/1.0/"}
languages: [en, "no"]
tags: [culture]
creators: [The people who test]
contact: tests@example.org
annotators: {who: Nobody but the tests, pay: They work for nothing}
citation: Tests 2026
changelog:
  - {version: "1.0.0", date: 2026-11-21, changes: [The first one]}
"""

ROWS: tuple[tuple[str, str, str, str, list[str]], ...] = (
    ("Q1", "Feijoada", "cuisine", "BR", ["Q2095", "Q9", "Q1"]), ("Q2", "Acarajé", "cuisine", "BR", ["Q2095", "Q2"]),
    ("LLM:moin-moin", "Moin moin", "cuisine", "NG", []), ("Q3", "Zuma Rock", "landmarks", "NG", ["Q570116", "Q3"]),
)  # fmt: skip


def space(rows: Sequence[tuple[str, str, str, str, list[str]]] = ROWS) -> pl.DataFrame:
    known = {"BR": "Brazil", "NG": "Nigeria"}
    table = [
        {"artifact_id": artifact, "qid": None if artifact.startswith("LLM:") else artifact, "name": name,
         "concept": concept, "subconcept": None, "country": country, "country_name": known.get(country, country),
         "continent": "South America" if country == "BR" else "Africa",
         "source": "llm" if artifact.startswith("LLM:") else "wikidata", "popularity": 1.0,
         "popularity_source": "sitelinks", "path": path}
        for artifact, name, concept, country, path in rows
    ]  # fmt: skip
    return pl.DataFrame(table, schema=CSPACE.schema)


def write_release(
    folder: Path, frame: pl.DataFrame | None = None, *, files: Mapping[str, str] | None = None, judge: str = "rules",
    notes: Mapping[str, object] | None = None,
) -> Path:  # fmt: skip
    """Write a dump's stage, a filter's, and the release itself, each with its manifest; give the release's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    dump = folder / "wikidata-20261102-all.json.gz"
    dump.write_bytes(b"not read by a card")
    finished(folder / "graph", "ingest", {"dump-0": dump}, lambda work: note(work, "graph.txt"))
    options = {"judge": judge, "model": judge, "wording": "5" * 64}
    finished(folder / "filter", "filter", {"graph": folder / "graph"}, keep, options)

    def release(work: Work) -> Outcome:
        table = space() if frame is None else frame
        write_table(work.out, CSPACE, table)
        write_table(work.out, DROPS, pl.DataFrame(schema=DROPS.schema))
        for name, text in (files or {}).items():
            (work.out / name).parent.mkdir(parents=True, exist_ok=True)
            (work.out / name).write_text(text, encoding="utf-8")
        return Outcome({"cspace": table.height, "drops": 0}, notes=notes or {})

    kept = {"kept": folder / "filter/kept.parquet"}
    finished(folder / "cspace", "release", kept, release, {"popularity": "sitelinks"})
    return folder / "cspace"


def keep(work: Work) -> Outcome:
    write_table(work.out, KEPT, pl.DataFrame(schema=KEPT.schema))
    return Outcome({"kept": 4}, {"not of the concept": 7, "no usable label": 12})


def note(work: Work, name: str) -> Outcome:
    (work.out / name).write_text("a graph", encoding="utf-8")
    return Outcome({"items": 4})


def finished(
    folder: Path, kind: str, inputs: Mapping[str, Path], run: Callable[[Work], Outcome],
    options: Mapping[str, Any] | None = None,
) -> StageRun:  # fmt: skip
    stage = Stage(folder.name, kind, 1, run, inputs, options or {})
    return stage_here(stage, folder)


def write_hand(folder: Path, *, fields: str = FIELDS, **sections: str) -> Path:
    folder.mkdir(parents=True)
    (folder / FIELDS_FILE).write_text(fields, encoding="utf-8")
    texts = {name: f"What the tests say about {name.lower()}." for name in SECTIONS}
    texts |= {name.replace("_", " "): text for name, text in sections.items()}
    text = "\n".join(f"## {name}\n\n{words}\n" for name, words in texts.items())
    (folder / TEXT_FILE).write_text(text, encoding="utf-8")
    return folder


def built(release: Path, hand: Path, out: Path) -> StageRun:
    return stage_here(card_stage(release, hand), out)


def copy_of(card: Path, to: Path) -> Path:
    shutil.copytree(card, to)
    return to
