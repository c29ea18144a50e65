"""Who gets which sheet of a project, and what becomes of each answer: checked as an import does, and then kept."""

import hmac
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.core.atomic import system_error
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.people.answers import AnswerJournal, TaskRecord, read_exports
from culturekit.people.export import HAND_OUT, content_in, page_of
from culturekit.people.importing import read_project
from culturekit.people.scheme import Scheme

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


# A form served to browsers of this machine alone, under an address that nobody guesses.

LOOPBACK = "127.0.0.1"
HERE = (LOOPBACK, "localhost")
MOST_BYTES = 1_000_000


class FormServer(ThreadingHTTPServer):
    """Serves the form of a desk on loopback; `address` has the token without which nothing is told.

    `saved` hears of every answer that was kept.
    """

    daemon_threads = True

    def __init__(self, desk: AnswerDesk, *, port: int = 0) -> None:
        """Listen on a port, or on any that is free."""
        self.saved: Callable[[], None] = lambda: None
        self.desk, self.token = desk, secrets.token_urlsafe(24)
        super().__init__((LOOPBACK, port), FormHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the library has it
        """Pass over browsers that went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the form is."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"


class FormHandler(BaseHTTPRequestHandler):
    """Answers one request: the page and its pictures, who begins, and what is answered."""

    server: FormServer
    timeout = 60
    server_version = "culturekit"
    sys_version = ""

    def do_GET(self) -> None:
        """Give the page or a picture."""
        name = self.asked()
        if name == "":
            self.give(HTTPStatus.OK, self.server.desk.page.encode(), "text/html; charset=utf-8")
        elif name is not None and (picture := self.server.desk.pictures.get(name.removeprefix("pictures/"))):
            self.give(HTTPStatus.OK, picture.read_bytes(), "image/png")
        elif name is not None:
            self.refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self) -> None:
        """Hand out a sheet or take an answer."""
        desk = self.server.desk
        works: Mapping[str | None, Callable[[Any], dict[str, Any]]] = {"begin": desk.begin, "answer": desk.take}
        name = self.asked()
        if name is None:
            return
        length = self.headers.get("Content-Length", "")
        if name not in works or not length.isascii() or not length.isdigit() or int(length) > MOST_BYTES:
            self.refuse(HTTPStatus.BAD_REQUEST, "Nothing is taken here but answers.")
            return
        try:
            said = works[name](orjson.loads(self.rfile.read(int(length))))
        except (CultureKitError, orjson.JSONDecodeError) as error:
            self.refuse(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:
            self.refuse(HTTPStatus.INSUFFICIENT_STORAGE, f"The answer is not saved: {system_error(error) or error}")
        else:
            self.give(HTTPStatus.OK, orjson.dumps(said), "application/json")
            if name == "answer":
                self.server.saved()

    def asked(self) -> str | None:
        """Say what is asked for below the token; without the token, or under another name of this machine, refuse."""
        token, _, name = self.path.partition("?")[0].removeprefix("/").partition("/")
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host in HERE and hmac.compare_digest(token.encode(), self.server.token.encode()):
            return name
        if self.path == "/favicon.ico":
            self.give(HTTPStatus.NO_CONTENT, b"", "image/png")
            return None
        self.refuse(HTTPStatus.FORBIDDEN, "Open the address that `culturekit annotate serve` printed, all of it.")
        return None

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer in words."""
        self.give(status, why.encode(), "text/plain; charset=utf-8")

    def give(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        """Answer with content that no browser keeps, reads as something else or tells others about."""
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
        """Say nothing: the address has the token."""
