"""Who gets which sheet of a project, and what becomes of each answer: checked as an import does, and then kept."""

import hmac
import secrets
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.core.atomic import system_error
from culturekit.core.choices import STUDY_KEYS
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.table import folded_name
from culturekit.people.answers import AnswerJournal, TaskRecord, read_exports
from culturekit.people.export import HAND_OUT, KINDS, content_in, page_of
from culturekit.people.importing import TRIAL, passes, read_project
from culturekit.people.scheme import Scheme

LONGEST_NAME, LONGEST_FIELD = 120, 200  # characters of a name, and of any other text that is kept beside answers
FAILED = "Too few of your answers to the trial were right, so there is nothing more to do. Thank you for trying."

PACE_MINUTES = 10  # how far back answers count as the pace


def kept_form(entry: Mapping[str, Any], sheet: str) -> dict[str, Any]:
    """Give an answer as it is kept: what an import reads, and nothing that a browser could add without end."""
    annotation = entry["annotations"][0]
    times = {name: annotation[name] for name in ("created_at", "updated_at") if name in annotation}
    study = {name: entry["meta"][name] for name in STUDY_KEYS if entry["meta"].get(name)}
    long = [name for name, text in {**times, **study}.items() if len(str(text)) > LONGEST_FIELD]
    if long:
        raise UsageError("the answer is not saved", where=long[0], expected=f"at most {LONGEST_FIELD} characters")
    result = [{name: one[name] for name in ("from_name", "to_name", "type", "value")} for one in annotation["result"]]
    kept = {"id": 1, "completed_by": {"email": annotation["completed_by"]["email"]}, "result": result,
            "was_cancelled": False, "lead_time": annotation.get("lead_time"), **times}  # fmt: skip
    return {"id": 1, "annotations": [kept], "data": entry["data"], "meta": {"sheet": sheet, **study}}


@dataclass(slots=True)
class AnswerDesk:
    """Hands out sheets and takes answers, from several people at once.

    Attributes:
        key: what the tasks stand for, a table of one row each.
        sheets: the tasks of each sheet, in the order in which sheets are handed out.
        holders: who was given each sheet.
        counts: how many people answered each task.
        aside: what else those who answer are told of the whole.
        looks: before which look at the answers a task is answered, where there are looks.
        settled: tasks that need no answer any more, as their models are told apart or given up.
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
    spellings: dict[str, str] = field(default_factory=dict)
    recent: deque[float] = field(default_factory=deque)
    looks: Mapping[str, int] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Take up what was answered before, under one spelling of each name."""
        self.journal.answers = {
            (self.known_as(person), task): entry for (person, task), entry in self.journal.answers.items()
        }
        for (person, task), entry in self.journal.answers.items():
            self.note(person, task, entry)

    def note(self, person: str, task: str, entry: Mapping[str, Any]) -> None:
        """Count an answer that is new, and who works on its sheet: the first that has the task, where it says none."""
        self.counts[task] += 1
        meta = entry.get("meta")
        sheet = meta.get("sheet") if isinstance(meta, dict) else None
        if sheet not in self.sheets:
            sheet = next((name for name, tasks in self.sheets.items() if task in tasks), None)
        if sheet is not None:
            self.holders.setdefault(sheet, set()).add(person)

    @property
    def people(self) -> list[str]:
        """Those who have answered something."""
        with self.busy:  # others answer while this is counted
            return sorted({person for person, _ in self.journal.answers})

    def is_trial(self, sheet: str) -> bool:
        """Tell whether a sheet is a trial, which everybody answers, and which fills nothing."""
        return bool((self.key[self.sheets[sheet][0]]["kind"] == TRIAL).all())

    @property
    def to_fill(self) -> dict[str, tuple[str, ...]]:
        """Give the tasks of all sheets but trials that still need answers."""
        sheets = {sheet: tasks for sheet, tasks in self.sheets.items() if not self.is_trial(sheet)}
        left = {sheet: tuple(task for task in tasks if task not in self.settled) for sheet, tasks in sheets.items()}
        return {sheet: tasks for sheet, tasks in left.items() if tasks}

    @property
    def whole_look(self) -> int:
        """Count the looks before which every task is answered by all who are wanted."""
        wanted = Counter(task for tasks in self.to_fill.values() for task in tasks)
        open_looks = [self.looks[task] for task in self.looks if self.counts[task] < wanted[task]]
        return min(open_looks, default=max(self.looks.values(), default=0) + 1) - 1

    def ask_in_looks(self, looks: Mapping[str, int]) -> None:
        """Hand out what is answered before the first look first, and so on; a sheet is for the last of its tasks."""
        self.looks = looks
        last = {sheet: max(looks.get(task, 0) for task in tasks) for sheet, tasks in self.sheets.items()}
        self.sheets = dict(sorted(self.sheets.items(), key=lambda one: last[one[0]]))

    def settle(self, tasks: Iterable[str]) -> None:
        """Ask about some tasks no more, nor about what only stands between them, such as checks."""
        with self.busy:
            self.settled |= frozenset(tasks)
            for sheet in self.sheets.values():
                if all(task in self.settled for task in sheet if task in self.looks):
                    self.settled |= frozenset(task for task in sheet if self.looks) - self.trial_tasks

    @property
    def trial_tasks(self) -> frozenset[str]:
        """Give the tasks of trials."""
        return frozenset(task for sheet in self.sheets if self.is_trial(sheet) for task in self.sheets[sheet])

    def passed(self, person: str, sheet: str) -> bool:
        """Tell whether somebody answered enough of a trial right."""
        tasks = self.sheets[sheet]
        records = [TaskRecord("", 1, self.journal.answers[person, task]) for task in tasks]
        key = pl.concat([self.key[task] for task in tasks])
        return passes(read_exports(records, key, self.project, self.scheme).good, len(tasks), self.scheme)

    @property
    def wanted(self) -> int:
        """Count the answers that fill all sheets."""
        return sum(map(len, self.to_fill.values()))

    @property
    def answered(self) -> int:
        """Count the answers that there are, of each task no more than are wanted."""
        wanted = Counter(task for tasks in self.to_fill.values() for task in tasks)
        return sum(min(self.counts[task], count) for task, count in wanted.items())

    @property
    def size(self) -> str:
        """Say what the number of wanted answers is made of."""
        kinds = {task: row["kind"][0] for task, row in self.key.items()}
        counts = Counter(kinds[task] for tasks in self.to_fill.values() for task in tasks)
        pictures = len({task for tasks in self.to_fill.values() for task in tasks if kinds[task] == "item"})
        each = {"item": "" if counts["item"] == pictures else f" ({pictures:,} items, several people each)"}
        parts = [f"{counts[kind]:,} {words}{each.get(kind, '')}" for kind, words in KINDS.items() if counts[kind]]
        return f"{self.wanted:,} answers in all: {', '.join(parts)}."

    @property
    def pace(self) -> str:
        """Say how many answers a minute come, and how long the others take at that pace; empty until some came."""
        now = time.monotonic()
        with self.busy:
            while self.recent and now - self.recent[0] > 60 * PACE_MINUTES:
                self.recent.popleft()
            if len(self.recent) < 2:
                return ""
            minutes = max(now - self.recent[0], 1) / 60
            rate, left = len(self.recent) / minutes, self.wanted - self.answered
        return f"{rate:.1f} answers a minute, {left / rate / 60:.1f} hours left"

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

    @property
    def progress(self) -> str:
        """Say how far everybody has come, and how long the rest takes."""
        return "; ".join(filter(None, (self.together, self.pace)))

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
            reply = {
                task: self.journal.answers[person, task] for task in tasks if (person, task) in self.journal.answers
            }
            answered = {task: entry["annotations"][0] for task, entry in reply.items()}
            failed = sheet is None and any(self.is_trial(one) and not self.passed(person, one) for one in self.sheets)
            about = {"together": self.progress, "size": self.size, "failed": FAILED if failed else ""}
            settled = [task for task in tasks if task in self.settled]
            return {"annotator": person, "sheet": sheet, "answered": answered, "settled": settled, **about}

    def known_as(self, name: str) -> str:
        """Give a name as it was first written: who writes it in other letters is no other person."""
        return self.spellings.setdefault(folded_name(name), name)

    def sheet_for(self, person: str) -> str | None:
        """Choose a sheet: one that was begun, else one that nobody has, else one that somebody left unfinished.

        Nobody sees an item twice but where it is asked again: two sheets of the same items are for two people.
        """
        for trial in (sheet for sheet in self.sheets if self.is_trial(sheet)):
            if not self.finished(trial, person):
                return trial
            if not self.passed(person, trial):
                return None
        left = [sheet for sheet in self.to_fill if not self.finished(sheet, person)]
        free = [sheet for sheet in left if not any(self.finished(sheet, one) for one in self.holders.get(sheet, ()))]
        begun = [sheet for sheet in left if person in self.holders.get(sheet, ())]
        return min(begun or free, key=lambda sheet: len(self.holders.get(sheet, ())), default=None)

    def finished(self, sheet: str, person: str) -> bool:
        """Tell whether somebody has answered all tasks of a sheet."""
        left = (task for task in self.sheets[sheet] if task not in self.settled)
        return all((person, task) in self.journal.answers for task in left)

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
            given = isinstance(sheet, str) and isinstance(name, str) and name in self.holders.get(sheet, ())
            if not given or task not in self.sheets.get(str(sheet), ()):
                raise UsageError("the answer is not saved", expected="an answer of somebody who was given its sheet")
            new, kept = (name, task) not in self.journal.answers, kept_form(entry, str(sheet))
            self.journal.append(kept)
            if new:
                self.note(str(name), str(task), kept)
                self.recent.append(time.monotonic())
            return {"together": self.progress}


def open_desk(project: Path, journal: AnswerJournal) -> AnswerDesk:
    """Open the desk of a project that was exported; the first sheets of all items come before second ones."""
    name, scheme, key = read_project(project)
    content = content_in((project / HAND_OUT / "form.html").read_text(encoding="utf-8"))
    tasks = [task["task"] for task in content["tasks"]]
    sheets = {sheet["name"]: tuple(tasks[number] for number in sheet["tasks"]) for sheet in content["sheets"]}
    ordered = sorted(sheets, key=lambda sheet: int(sheet.rpartition("-")[2]))
    return AnswerDesk(
        page_of(scheme, content, served=True),
        {path.name: path for path in (project / HAND_OUT / "pictures").iterdir()}, name, scheme,
        {row["task"][0]: row for row in key.partition_by("task")}, {sheet: sheets[sheet] for sheet in ordered},
        journal,
    )  # fmt: skip


# A form served to browsers of this machine alone, under an address that nobody guesses.

LOOPBACK = "127.0.0.1"
HERE = (LOOPBACK, "localhost")
MOST_BYTES = 1_000_000
# How browsers say that a request came from the form itself, or from who typed its address.
FROM_HERE = (None, "same-origin", "none")


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
        elif name is not None:
            picture = self.server.desk.pictures.get(name.removeprefix("pictures/"))
            try:
                content = b"" if picture is None else picture.read_bytes()
            except OSError:
                content = b""
            if content:
                self.give(HTTPStatus.OK, content, "image/png")
            else:
                self.refuse(HTTPStatus.NOT_FOUND, "There is nothing here." if picture is None else "It was removed.")

    def do_POST(self) -> None:
        """Hand out a sheet or take an answer."""
        desk = self.server.desk
        works: Mapping[str | None, Callable[[Any], dict[str, Any]]] = {"begin": desk.begin, "answer": desk.take}
        name = self.asked()
        if name is None:
            return
        length = self.headers.get("Content-Length", "")
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        if origin not in (None, f"http://{self.headers.get('Host')}") or site not in FROM_HERE:
            self.refuse(HTTPStatus.FORBIDDEN, "Answers come from the form itself, and from no other page.")
            return
        digits = length.isascii() and length.isdigit() and len(length) < len(str(MOST_BYTES)) + 1
        if name not in works or not digits or int(length) > MOST_BYTES:
            self.refuse(HTTPStatus.BAD_REQUEST, "Nothing is taken here but answers.")
            return
        try:
            reply = works[name](orjson.loads(self.rfile.read(int(length))))
        except (CultureKitError, orjson.JSONDecodeError) as error:
            self.refuse(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:
            self.refuse(HTTPStatus.INSUFFICIENT_STORAGE, f"The answer is not saved: {system_error(error) or error}")
        else:
            self.give(HTTPStatus.OK, orjson.dumps(reply), "application/json")
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
