"""What people answered, held against the exports that it came from: no answer may be another, and none missing."""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl
import pycountry

from culturekit.records.export_keys import LONGEST_RAW
from culturekit.records.none_of_these import CANNOT_TELL, NO_CULTURE, NOT_IN_LIST
from culturekit.storage.digests import canonical_json
from culturekit.storage.package_data import shipped
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.people_answers import FLAGS
from culturekit.verify.tables.answer_tables import Rows, annotation_rows, check_rows, flags_of
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


MEANS = {"none": NO_CULTURE, "cannot_tell": CANNOT_TELL, "not_in_list": NOT_IN_LIST}
SOME_CODE = "??"
"""The country of a text that is no English name of one: any code, or the text itself."""

PLACE = ("artifact_id", "country", "continent")


def audit_rows(
    table: pl.DataFrame, answers: Sequence[Given], questions: Mapping[str, Mapping[str, Any]], drawing: str | None
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Say what each answer says of an image: place, what none means, and what was offered.

    A country that was typed and that the lists lack lies on one continent, whichever the table says first.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in answers:
        found.setdefault((one.about["item_id"], one.person), {**audited(one, questions), "drawing": drawing})
    if any(given["offered_first"] is not None for given in found.values()):  # where it is not listed, it is not first
        for given in found.values():
            given["offered_first"] = bool(given["offered_first"]) if not given["gold"] else None
    lies_in: dict[str | None, str | None] = {}
    for row in table.iter_rows(named=True):
        given = found.get((row["image_id"], row["annotator"]), {"continent": None})
        if "continent" not in given:
            given["continent"] = lies_in.setdefault(row["country"], row["continent"])
    return found


def as_given(stated: object, given: object) -> bool:
    """Tell whether a cell is what was answered."""
    if isinstance(given, str) and given.startswith(SOME_CODE):
        return stated == given[len(SOME_CODE) :] or bool(re.fullmatch("[A-Z]{2}", str(stated)))
    return bool(stated == given)


def audited(one: Given, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Say what an answer says of an image; without its continent where a country was typed that the lists lack."""
    offers = json.loads(one.about["options"])
    said: dict[str, Any] = {}
    for name, codes in one.chosen.items():
        listed = questions.get(name, {}).get("options_from")
        if listed is not None:
            said |= offers.get(listed, {}).get(codes[0], {})
    shows = one.chosen.get("shows", [""])[0]
    typed = typed_country(one.chosen.get("place", [""])[0]) if shows == "not_in_list" else None
    known = offers.get("countries", {}).get(typed)
    said |= {"country": typed, **({} if known is None else {"continent": known["continent"]})} if typed else {}
    nowhere = not said or (shows == "not_in_list" and "country" not in said)
    apart = any(option["value"] == "cannot_tell" for option in questions["shows"].get("options") or ())
    listed = {offer["mapped"] for offer in offers.get("artifacts", {}).values() if "mapped" in offer}
    gold = one.about["kind"] == "gold"
    shown = json.loads(one.about["expected"]) if gold else {}
    return {
        **{name: said.get(name) for name in PLACE if name != "continent" or known is not None or not typed},
        "none_of_these": nowhere,
        "none_means": MEANS.get(shows) if nowhere and apart else None,
        "gold": gold,
        **{f"known_{name}": shown.get(name) for name in PLACE},
        "offered_first": "first" in listed if listed else None,
        "as_mapped": "mapped" in said if listed else None,
    }


def typed_country(text: str) -> str | None:
    """Give the code of a typed country, or what may stand for a text that names none in English."""
    plain = plainly(text)
    return country_names().get(plain) or country_names().get(bare(plain)) or (SOME_CODE + plain if plain else None)


def plainly(text: str) -> str:
    """Write a name in small letters, with one space between words."""
    kept = (c if unicodedata.category(c)[0] in "LNM" else " " for c in unicodedata.normalize("NFKC", text).casefold())
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


def bare(text: str) -> str:
    """Leave accents out."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@cache
def country_names() -> Mapping[str, str]:
    """List the names that countries go by in English, and their codes."""
    kinds = ("alpha_2", "alpha_3", "name", "common_name", "official_name")
    named = [(getattr(each, kind, ""), each.alpha_2) for each in pycountry.countries for kind in kinds]
    for line in shipped("builders/country_names.tsv").read_text(encoding="utf-8").splitlines():
        code, usual = line.split("\t")
        named += [(name, code) for name in usual.split("; ")]
    plain = {plainly(name): code for name, code in named if name}
    return {bare(name): code for name, code in plain.items()} | plain
