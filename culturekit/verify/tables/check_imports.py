"""What people answered, held against the exports that it came from: no answer may be another, and none missing."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl

from culturekit.records.export_keys import LONGEST_RAW
from culturekit.storage.digests import canonical_json
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.people_answers import FLAGS
from culturekit.verify.tables.answer_tables import Rows, annotation_rows, check_rows, flags_of
from culturekit.verify.tables.audited_places import PLACE, as_given, audit_rows
from culturekit.verify.tables.export_answers import Given, HandedOut, given_in

__all__ = ["check_import"]

CHECK = "answers"
REGION = "annotator_region"
ABOUT = ("model", "concept", "country", "group", "prompt_id")


def check_import(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold all that a stage took over, and all that it set aside, against the exports."""
    folder = tree.source(stage, "project")
    roles = sorted((role for role in stage.manifest.inputs if role.startswith("export")), key=lambda x: (len(x), x))
    exports = [path for path in (tree.source(stage, role) for role in roles) if path is not None]
    if folder is None or len(exports) < len(roles):
        ledger.note(CHECK, stage.name, "the exports behind its answers are not here: not verifiable")
        return
    record = json.loads((folder / "project.json").read_bytes())
    scheme = record["scheme"]
    key = {row["task"]: row for row in pl.read_parquet(folder / "annotation_key.parquet").iter_rows(named=True)}
    project = HandedOut(record["project"], scheme, {each["name"]: each for each in scheme["criteria"]}, key)
    asked = [row for row in key.values() if row["kind"] == "item"]
    items: Rows = {(row["item_id"],): {name: row[name] for name in ABOUT} for row in asked}
    compare(stage, "rated_items", ("item_id",), items, ledger)
    given = list(given_in(exports, project))
    compare_set_aside(stage, given, ledger)
    answers = [one for one in given if not one.wrong and not one.passed_over]
    checks = check_rows(answers, project)
    compare(stage, "annotation_checks", ("task", "annotator", "criterion"), checks, ledger)
    flags = flags_of(answers, checks, scheme["filters"])
    rows = annotation_rows(answers, flags, project)
    compare(stage, "annotations", ("item_id", "annotator", "criterion"), rows, ledger)
    if (stage.folder / "audits.parquet").is_file():
        each = zip(answers, flags, strict=True)
        counted = [one for one, found in each if one.about["kind"] in {"item", "gold"} and not {*found} & {*FLAGS}]
        audits = pl.read_parquet(stage.folder / "audits.parquet")
        rows = audit_rows(audits, counted, project.questions, record.get("drawing"))
        for one in counted:
            rows[one.about["item_id"], one.person]["pool"] = stage.manifest.options["pool"] or one.about[REGION]
        compare(stage, "audits", ("image_id", "annotator"), rows, ledger)


def compare_set_aside(stage: FinishedStage, given: Sequence[Given], ledger: Ledger) -> None:
    """Hold what was set aside, and why, against what is wrong with each annotation."""
    table = pl.read_parquet(stage.folder / "quarantine.parquet")
    columns = ("task", "item_id", "annotator", "raw")
    stated: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in table.iter_rows(named=True):
        place = row["file"], row["task_number"], row["annotation_number"]
        stated[(place, *(row[name] for name in columns))].add(row["reason"])
    wrong = {
        (one.place, one.task, one.about.get("item_id"), one.person or None,
         canonical_json(one.found).decode()[:LONGEST_RAW]): one.wrong
        for one in given
        if one.wrong
    }  # fmt: skip
    for each in sorted(stated.keys() | wrong.keys(), key=lambda each: (each[0], str(each))):
        found, expected = stated.get(each, set()), wrong.get(each, set())
        if found != expected:
            where = f"{stage.name}/quarantine.parquet ({', '.join(map(str, each[0]))})"
            problem = "what is wrong with an answer is not why it was set aside"
            why = ", ".join(sorted(expected)) or "an answer that counts"
            ledger.broken(CHECK, where, problem, expected=why, found=", ".join(sorted(found)) or "not set aside")
    ledger.count("answers set aside compared with exports", len(wrong))


def compare(stage: FinishedStage, name: str, key: tuple[str, ...], wanted: Rows, ledger: Ledger) -> None:
    """Hold every row of a table against what was answered, and every answer against the table."""
    table = pl.read_parquet(stage.folder / f"{name}.parquet")
    stated = {tuple(row[part] for part in key): row for row in table.iter_rows(named=True)}
    for place in sorted(stated.keys() | wanted.keys()):
        where = f"{stage.name}/{name}.parquet ({', '.join(place)})"
        if place not in stated or place not in wanted:
            missing = "an answer of the exports is missing"
            ledger.broken(CHECK, where, missing if place in wanted else "nobody answered so")
            continue
        given = wanted[place]
        row = {column: None if value else value for column, value in given.items()} | stated[place]  # a column it lacks
        if wrong := [column for column, value in given.items() if not as_given(row[column], value)]:
            problem = "nobody named this place" if set(wrong) & set(PLACE) else "nobody answered so"
            told = [", ".join(f"{column} {each.get(column)!r}" for column in wrong) for each in (given, row)]
            ledger.broken(CHECK, where, problem, expected=told[0], found=told[1])
    ledger.count(f"rows of {name} compared with exports", len(stated))
