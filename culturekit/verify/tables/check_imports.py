"""What people answered, held against the exports that it came from: no answer may have become another."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_import"]

CHECK = "answers"

Chosen: TypeAlias = Mapping[str, list[str]]
"""What one person chose for one task, by question."""

Place: TypeAlias = tuple[str | None, str | None]
"""An artifact and a country."""


def check_import(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Find an answer in the exports for every answer in the tables of a stage that took them in."""
    project = tree.source(stage, "project")
    exports = [tree.source(stage, role) for role in sorted(stage.manifest.inputs) if role.startswith("export")]
    if project is None or None in exports:
        ledger.note(CHECK, stage.name, "the exports behind its answers are not here: not verifiable")
        return
    criteria = json.loads((project / "project.json").read_bytes())["scheme"]["criteria"]
    questions = {each["name"]: each for each in criteria}
    key = {row["task"]: row for row in pl.read_parquet(project / "annotation_key.parquet").iter_rows(named=True)}
    said: dict[tuple[str, str], Counter[str]] = {}
    places: dict[str, Counter[Place]] = {}
    for task, chosen in (each for path in exports if path is not None for each in chosen_in(path)):
        about = key.get(task)
        if about is None or about["kind"] not in {"item", "gold"}:
            continue
        offers = json.loads(about["options"])
        for name, codes in chosen.items():
            if name in questions and codes:
                meant = meaning(questions[name], codes[0], about, offers)
                said.setdefault((about["item_id"], name), Counter())[meant] += 1
        places.setdefault(about["item_id"], Counter())[place_of(chosen, questions, offers)] += 1
    compare_choices(stage, said, ledger)
    compare_places(stage, places, ledger)


def chosen_in(path: Path) -> Iterator[tuple[str, Chosen]]:
    """Read who chose what: of a journal the last answer of everybody to each task."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        entries = list(
            {(one["annotations"][0]["completed_by"]["email"], one["data"]["task"]): one for one in lines}.values()
        )
    else:
        entries = json.loads(path.read_bytes())
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("data"), dict):
            continue  # the import set it aside
        for one in entry.get("annotations") or ():
            results = one.get("result") if isinstance(one, dict) else None
            found = [each for each in results or () if isinstance(each, dict) and isinstance(each.get("value"), dict)]
            yield (
                str(entry["data"].get("task")),
                {str(each.get("from_name")): list(each["value"].get("choices") or ()) for each in found},
            )


def meaning(question: Mapping[str, Any], code: str, about: Mapping[str, Any], offers: Mapping[str, Any]) -> str:
    """Say what a code stands for: an offer of the item, a picture, or itself."""
    if question.get("options_from") is not None:
        return str(offers.get(question["options_from"], {}).get(code, {}).get("choice"))
    if question["type"] == "picture" and code.isdigit() and 0 < int(code) <= len(about["pictures"]):
        return str(about["pictures"][int(code) - 1])
    return code


def place_of(chosen: Chosen, questions: Mapping[str, Any], offers: Mapping[str, Any]) -> Place:
    """Say which artifact and country an answer names."""
    told: dict[str, str] = {}
    for name, codes in chosen.items():
        listed = questions.get(name, {}).get("options_from")
        if listed is not None and codes:
            told |= offers.get(listed, {}).get(codes[0], {})
    return told.get("artifact_id"), told.get("country")


def compare_choices(stage: FinishedStage, said: Mapping[tuple[str, str], Counter[str]], ledger: Ledger) -> None:
    """Hold every single choice of the table of answers against those that were given."""
    table = pl.read_parquet(stage.folder / "annotations.parquet").drop_nulls("choice")
    single = table.filter(~pl.col("criterion").str.contains("/", literal=True))
    for item, criterion, choices in single.group_by("item_id", "criterion").agg("choice").sort("item_id").iter_rows():
        more = Counter(choices) - said.get((item, criterion), Counter())
        if more:
            where = f"{stage.name}/annotations.parquet ({item}, {criterion})"
            ledger.broken(CHECK, where, "nobody answered so", found=", ".join(sorted(more)))
    ledger.count("answers compared with exports", single.height)


def compare_places(stage: FinishedStage, places: Mapping[str, Counter[Place]], ledger: Ledger) -> None:
    """Hold every place of the audits, where there are some, against those that were named or typed."""
    path = stage.folder / "audits.parquet"
    if not path.is_file():
        return
    rows = pl.read_parquet(path)
    for item, named in rows.group_by("image_id").agg(pl.struct("artifact_id", "country")).sort("image_id").iter_rows():
        given = places.get(item, Counter())
        typed = given[None, None]  # no place of the lists: none, or a country that was typed
        more = Counter((one["artifact_id"], one["country"]) for one in named) - given
        odd = [place for place in more.elements() if place[0] is not None or place[1] is None]
        if odd or more.total() > typed:
            ledger.broken(
                CHECK,
                f"{stage.name}/audits.parquet ({item})",
                "nobody named this place",
                found=repr(min(map(str, more))),
            )
    ledger.count("audited places compared with exports", rows.height)
