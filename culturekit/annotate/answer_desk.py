"""Who gets which sheet of a project, and what becomes of each answer: checked as an import does, and then kept."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.annotate.answer_journal import AnswerJournal
from culturekit.annotate.export import HAND_OUT
from culturekit.annotate.exported_answers import read_exports
from culturekit.annotate.exported_json import TaskRecord
from culturekit.annotate.form import content_in, page_of
from culturekit.annotate.importing import read_project
from culturekit.annotate.scheme import Scheme
from culturekit.errors import UsageError

__all__ = ["AnswerDesk", "open_desk"]

LONGEST_NAME = 120


@dataclass(slots=True)
class AnswerDesk:
    """Hands out sheets and takes answers, from several people at once.

    Attributes:
        page: the form, as it is served.
        pictures: the files that it shows, by name.
        project: what all tasks belong to.
        scheme: how the answers are checked.
        key: what the tasks stand for, a table of one row each.
        sheets: the tasks of each sheet, in the order in which sheets are handed out.
        journal: where answers are kept.
        holders: who was given each sheet.
        counts: how many people answered each task.
        aside: what else those who answer are told of the whole.
    """

    page: str
    pictures: Mapping[str, Path]
    project: str
    scheme: Scheme
    key: Mapping[str, pl.DataFrame]
    sheets: Mapping[str, tuple[str, ...]]
    journal: AnswerJournal
    holders: dict[str, set[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    aside: str = ""
    busy: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Take up what was answered before."""
        for entry in self.journal.answers.values():
            self.note(entry)

    def note(self, entry: Mapping[str, Any]) -> None:
        """Count an answer that is new, and who works on its sheet."""
        self.counts[entry["data"]["task"]] += 1
        self.holders.setdefault(entry["meta"]["sheet"], set()).add(entry["annotations"][0]["completed_by"]["email"])

    @property
    def people(self) -> list[str]:
        """Those who have answered something."""
        with self.busy:  # others answer while this is counted
            return sorted({person for person, _ in self.journal.answers})

    @property
    def wanted(self) -> int:
        """Count the answers that fill all sheets."""
        return sum(map(len, self.sheets.values()))

    @property
    def answered(self) -> int:
        """Count the answers that there are, of each task no more than are wanted."""
        wanted = Counter(task for tasks in self.sheets.values() for task in tasks)
        return sum(min(self.counts[task], count) for task, count in wanted.items())

    @property
    def tests_people(self) -> bool:
        """Tell whether known pictures are among those to look at."""
        return any((row["kind"] == "gold").any() for row in self.key.values())

    @property
    def together(self) -> str:
        """Say how far everybody has come."""
        with self.busy:
            people, answered = len(self.people), self.answered
        who = "person" if people == 1 else "people"
        return f"{answered:,} of {self.wanted:,} answers by {people} {who}{self.aside}"

    def begin(self, asked: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
        """Give somebody the sheet to go on with, and what they answered of it; None where nothing is left for them."""
        name = asked.get("annotator") if isinstance(asked, dict) else None
        name = " ".join(name.split()) if isinstance(name, str) else ""
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise UsageError("this is no name", expected=f"1 to {LONGEST_NAME} characters", found=repr(name[:200]))
        with self.busy:
            person = self.known_as(name)
            sheet = self.sheet_for(person)
            if sheet is not None:
                self.holders.setdefault(sheet, set()).add(person)
            tasks = () if sheet is None else self.sheets[sheet]
            said = {
                task: self.journal.answers[person, task] for task in tasks if (person, task) in self.journal.answers
            }
            answered = {task: entry["annotations"][0] for task, entry in said.items()}
            return {"annotator": person, "sheet": sheet, "answered": answered, "together": self.together}

    def known_as(self, name: str) -> str:
        """Give a name as it was first written: who writes it in other letters is no other person."""
        known = {person.casefold(): person for holders in self.holders.values() for person in holders}
        return known.get(name.casefold(), name)

    def sheet_for(self, person: str) -> str | None:
        """Choose a sheet: one that was begun, else one that nobody has, else one that somebody left unfinished.

        Nobody sees an item twice but where it is asked again: two sheets of the same items are for two people.
        """
        left = [sheet for sheet in self.sheets if not self.finished(sheet, person)]
        free = [sheet for sheet in left if not any(self.finished(sheet, one) for one in self.holders.get(sheet, ()))]
        begun = [sheet for sheet in left if person in self.holders.get(sheet, ())]
        return min(begun or free, key=lambda sheet: len(self.holders.get(sheet, ())), default=None)

    def finished(self, sheet: str, person: str) -> bool:
        """Tell whether somebody has answered all tasks of a sheet."""
        return all((person, task) in self.journal.answers for task in self.sheets[sheet])

    def take(self, entry: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
        """Keep an answer, unless an import would set it aside; what was said before to the same task gives way."""
        task = TaskRecord("", 1, entry).data.get("task")
        key = self.key.get(str(task), next(iter(self.key.values())).clear())
        taken = read_exports([TaskRecord("", 1, entry)], key, self.project, self.scheme)
        mistakes = [f"{row['field']}: {row['reason']}".removeprefix(": ") for row in taken.quarantine]
        if len(taken.good) != 1 or mistakes:
            raise UsageError("the answer is not saved", found="; ".join(mistakes) or "not one answer")
        meta, person = entry.get("meta"), entry["annotations"][0]["completed_by"]
        sheet = meta.get("sheet") if isinstance(meta, dict) else None
        name = person.get("email") if isinstance(person, dict) else None
        with self.busy:
            if task not in self.sheets.get(str(sheet), ()) or name not in self.holders.get(str(sheet), ()):
                raise UsageError("the answer is not saved", expected="an answer of somebody who was given its sheet")
            new = (name, task) not in self.journal.answers
            self.journal.append(entry)
            if new:
                self.note(entry)
            return {"together": self.together}


def open_desk(project: Path, journal: AnswerJournal) -> AnswerDesk:
    """Open the desk of a project that was exported; the first sheets of all items come before second ones."""
    name, scheme, key = read_project(project)
    content = content_in((project / HAND_OUT / "form.html").read_text(encoding="utf-8"))
    tasks = [task["task"] for task in content["tasks"]]
    sheets = {sheet["name"]: tuple(tasks[place] for place in sheet["tasks"]) for sheet in content["sheets"]}
    ordered = sorted(sheets, key=lambda sheet: int(sheet.rpartition("-")[2]))
    return AnswerDesk(
        page_of(scheme, content, served=True),
        {path.name: path for path in (project / HAND_OUT / "pictures").iterdir()},
        name,
        scheme,
        {row["task"][0]: row for row in key.partition_by("task")},
        {sheet: sheets[sheet] for sheet in ordered},
        journal,
    )
