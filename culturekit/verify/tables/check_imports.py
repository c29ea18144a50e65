"""What people answered, held against the exports that it came from: no answer may be another, and none missing."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pycountry

from culturekit.records.none_of_these import CANNOT_TELL, NO_CULTURE, NOT_IN_LIST
from culturekit.storage.digests import digest
from culturekit.storage.package_data import shipped
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_import"]

CHECK = "answers"
MEANS = {"none": NO_CULTURE, "cannot_tell": CANNOT_TELL, "not_in_list": NOT_IN_LIST}
SOME_CODE = "??"
"""The country of a text that is no English name of one: any code, or the text itself."""

PLACE = ("artifact_id", "country", "continent")
Choice: TypeAlias = tuple[str, str, str, str]
"""Item, annotator, question, and what was chosen, rated or written."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one person answered to one task: codes, or a text, by question."""

    about: Mapping[str, Any]
    person: str
    chosen: Mapping[str, list[str]]
    seconds: float | None


def check_import(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold every answer in the tables of a stage against the exports, and every answer in those against the tables.

    Which answers were set aside the stage says itself: they stand in its quarantine.
    """
    project = tree.source(stage, "project")
    roles = sorted((role for role in stage.manifest.inputs if role.startswith("export")), key=lambda x: (len(x), x))
    exports = [path for path in (tree.source(stage, role) for role in roles) if path is not None]
    if project is None or len(exports) < len(roles):
        ledger.note(CHECK, stage.name, "the exports behind its answers are not here: not verifiable")
        return
    record = json.loads((project / "project.json").read_bytes())
    questions = {each["name"]: each for each in record["scheme"]["criteria"]}
    key = {row["task"]: row for row in pl.read_parquet(project / "annotation_key.parquet").iter_rows(named=True)}
    answers = list(taken_over(exports, key, aside_of(stage)))
    compare_choices(stage, answers, questions, ledger)
    if (stage.folder / "audits.parquet").is_file():
        careless = careless_people(stage, answers, record["scheme"].get("filters", {}))
        counted = [one for one in answers if one.about["kind"] in {"item", "gold"} and not careless(one)]
        compare_audits(stage, counted, questions, record.get("drawing"), ledger)


def aside_of(stage: FinishedStage) -> set[tuple[str, int, int]]:
    """Say which answers were set aside: file, task and annotation by number."""
    path = stage.folder / "quarantine.parquet"
    columns = ("file", "task_number", "annotation_number")
    return set(pl.read_parquet(path).select(columns).iter_rows()) if path.is_file() else set()


def taken_over(
    exports: Sequence[Path], key: Mapping[str, Mapping[str, Any]], aside: set[tuple[str, int, int]]
) -> Iterator[Answer]:
    """Read who answered what, without what was passed over or set aside."""
    names = Counter(path.name for path in exports)
    for number, path in enumerate(exports, start=1):
        file = path.name if names[path.name] == 1 else f"{number}:{path.name}"
        for task, entry in enumerate(entries_of(path), start=1):
            data = entry.get("data") if isinstance(entry, dict) else None
            about = key.get(str(data.get("task"))) if isinstance(data, dict) else None
            for place, one in enumerate(entry.get("annotations") or () if about is not None else (), start=1):
                if (file, task, place) not in aside and isinstance(one, dict) and not one.get("was_cancelled"):
                    chosen = {name: codes for name, codes in map(chosen_in, one.get("result") or ()) if codes}
                    yield Answer(about or {}, signed(one.get("completed_by")), chosen, one.get("lead_time"))


def entries_of(path: Path) -> list[Any]:
    """Read the tasks of an export; of a journal the last answer of everybody to each."""
    if path.suffix != ".jsonl":
        return list(json.loads(path.read_bytes()))
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    return list({(one["annotations"][0]["completed_by"]["email"], one["data"]["task"]): one for one in lines}.values())


def chosen_in(result: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Read the codes that one question was answered by, or the text that was written."""
    value = result.get("value", {})
    text = value.get("text", "")
    written = (text if isinstance(text, str) else "\n".join(text)).strip()
    rated = [str(value["rating"])] if "rating" in value else []
    return str(result.get("from_name")), list(value.get("choices") or rated or ([written] if written else []))


def signed(person: object) -> str:
    """Name who answered as tables do: of an address a hash."""
    if isinstance(person, dict):
        person = person.get("email") or person.get("username") or person.get("id")
    name = str(person).strip()
    return f"annotator-{digest(name.casefold())[:12]}" if "@" in name else name


def meaning(question: Mapping[str, Any], code: str, about: Mapping[str, Any]) -> str:
    """Say what a code stands for: an offer of the item, a picture, a number, or itself."""
    if question.get("options_from") is not None:
        return str(json.loads(about["options"]).get(question["options_from"], {}).get(code, {}).get("choice"))
    if question["type"] in {"picture", "pictures"} and code.isdigit() and 0 < int(code) <= len(about["pictures"]):
        return str(about["pictures"][int(code) - 1])
    return f"{float(code):g}" if question["type"] == "scale" else code


def compare_choices(
    stage: FinishedStage, answers: Sequence[Answer], questions: Mapping[str, Mapping[str, Any]], ledger: Ledger
) -> None:
    """Hold the table of answers against those that were given, item by item and person by person."""
    given = Counter[Choice](
        (one.about["item_id"], one.person, name, meaning(questions[name], code, one.about))
        for one in answers
        if one.about["kind"] == "item"
        for name, codes in one.chosen.items()
        if name in questions
        for code in codes
    )
    table = pl.read_parquet(stage.folder / "annotations.parquet")
    stated = Counter[Choice](choice for row in table.iter_rows(named=True) for choice in stated_in(row))
    for odd, problem in (
        (stated - given, "nobody answered so"),
        (given - stated, "an answer of the exports is missing"),
    ):
        for item, person, name, said in sorted(odd):
            ledger.broken(CHECK, f"{stage.name}/annotations.parquet ({item}, {person}, {name})", problem, found=said)
    ledger.count("answers compared with exports", stated.total())


def stated_in(row: Mapping[str, Any]) -> Iterator[Choice]:
    """Read what a row of the table says was chosen; of an option that was not taken, nothing."""
    name, _, option = row["criterion"].partition("/")
    rated = None if option or row["value"] is None else f"{row['value']:g}"
    said = row["choice"] if row["choice"] is not None else rated if rated is not None else row["text"]
    if said is not None and not (option and row["choice"] is None):
        yield row["item_id"], row["annotator"], name, said


def careless_people(
    stage: FinishedStage, answers: Sequence[Answer], filters: Mapping[str, Any]
) -> Callable[[Answer], bool]:
    """Tell which answers do not count: too fast ones, and those of people who failed checks or contradict themselves.

    Of checks the exports tell; how repeated answers compare, the stage.
    """
    failed: dict[str, set[str]] = {}
    for one in answers:
        if one.about["kind"] == "check":
            asked = json.loads(one.about["expected"])
            if any(" | ".join(sorted(one.chosen.get(name, ()))) != wanted for name, wanted in asked.items()):
                failed.setdefault(one.person, set()).add(one.about["task"])
    checks = pl.read_parquet(stage.folder / "annotation_checks.parquet").filter(pl.col("kind") == "repeat")
    apart = checks.drop_nulls("held").group_by("annotator").agg(apart=(~pl.col("held")).mean())
    out = {person for person, tasks in failed.items() if len(tasks) > filters.get("attention_failures", 0)}
    out |= set(apart.filter(pl.col("apart") > filters.get("inconsistent_share", 0.34))["annotator"])
    fastest = filters.get("fewest_seconds", 3.0)
    return lambda one: one.person in out or (one.seconds is not None and one.seconds < fastest)


def compare_audits(
    stage: FinishedStage,
    answers: Sequence[Answer],
    questions: Mapping[str, Mapping[str, Any]],
    drawing: str | None,
    ledger: Ledger,
) -> None:
    """Hold every row of the audits against the answer it comes from: place, what none means, and what was offered."""
    given: dict[tuple[str, str], dict[str, Any]] = {}
    for one in answers:
        given.setdefault((one.about["item_id"], one.person), {**audited(one, questions), "drawing": drawing})
    table = pl.read_parquet(stage.folder / "audits.parquet")
    stated = {(row["image_id"], row["annotator"]): row for row in table.iter_rows(named=True)}
    lies_in: dict[str, set[str | None]] = {}
    for row in stated.values():
        lies_in.setdefault(row["country"] or "", set()).add(row["continent"])
    for pair in sorted(given.keys() | stated.keys()):
        where = f"{stage.name}/audits.parquet ({', '.join(pair)})"
        if pair not in stated or pair not in given:
            ledger.broken(
                CHECK, where, f"{'an answer of the exports is missing' if pair in given else 'nobody answered so'}"
            )
            continue
        row, wanted = stated[pair], given[pair]
        wrong = [name for name, value in wanted.items() if not as_given(row.get(name), value)]
        if "continent" not in wanted and row["country"] is not None and len(lies_in[row["country"]]) > 1:
            wrong.append("continent")
        if wrong:
            problem = "nobody named this place" if set(wrong) & set(PLACE) else "nobody answered so"
            found = ", ".join(f"{name} {row.get(name)!r}" for name in wrong)
            expected = ", ".join(f"{name} {wanted.get(name, 'as elsewhere')!r}" for name in wrong)
            ledger.broken(CHECK, where, problem, expected=expected, found=found)
    ledger.count("audited places compared with exports", table.height)


def as_given(stated: object, given: object) -> bool:
    """Tell whether a cell is what was answered; a column that a table lacks says nothing, or that it is not so."""
    if isinstance(given, str) and given.startswith(SOME_CODE):
        return stated == given[len(SOME_CODE) :] or bool(re.fullmatch("[A-Z]{2}", str(stated)))
    return stated == given or (stated is None and given is False)


def audited(one: Answer, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
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
