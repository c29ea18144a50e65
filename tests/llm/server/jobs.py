"""Batch jobs, whichever protocol they came by: their lines, their plan, how far they are."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tests.llm.server.made_replies import Question, fraction_of
from tests.llm.server.script import JobPlan

JobState: TypeAlias = Literal["running", "completed", "expired", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Line:
    """One request of a job; `problem` says why it cannot be worked on. `name` is its custom id or key."""

    name: str
    question: Question | None
    problem: str = ""
    metadata: Mapping[str, Any] | None = None

    @property
    def row(self) -> str:
        """The row that is asked about; a name may say where the server is, which is drawn anew in each run."""
        return self.name if self.question is None else self.question.row


@dataclass(frozen=True, slots=True)
class LineResult:
    """What came of a line: a response, an error, or neither when it was not reached."""

    line: Line
    status: int
    body: Mapping[str, Any] | None
    name: str


@dataclass(slots=True)
class Job:
    """One job."""

    name: str
    provider: Literal["openai", "google"]
    plan: JobPlan
    created: float
    model: str
    endpoint: str
    source: str
    tag: Any
    lines: list[Line]
    state: JobState = "running"
    looks: int = 0
    ended: float = 0.0
    results: list[LineResult] = field(default_factory=list)
    undone: list[Line] = field(default_factory=list)
    output_file: str = ""
    error_file: str = ""

    def due(self, now: float) -> bool:
        """Count a look at the job, and say whether it ends with it."""
        self.looks += 1
        return self.looks >= self.plan.polls and now - self.created >= self.plan.seconds

    def progress(self) -> float:
        """Say which share of the lines is done by the looks taken."""
        return self.plan.share * min(1.0, self.looks / max(1, self.plan.polls))

    def chosen(self, share: float) -> tuple[list[Line], list[Line]]:
        """Choose the lines that get done, by hash, and those that do not; both in their order."""
        count = min(len(self.lines), math.ceil(share * len(self.lines)))
        drawn = sorted(range(len(self.lines)), key=lambda at: fraction_of(self.plan.salt, "done", self.lines[at].row))
        done = set(drawn[:count])
        return (
            [line for at, line in enumerate(self.lines) if at in done],
            [line for at, line in enumerate(self.lines) if at not in done],
        )


def arranged(results: list[LineResult], plan: JobPlan) -> list[LineResult]:
    """Arrange results as the plan has them: lost, twice, under wrong names, with each other's bodies, shuffled."""
    answered = [result for result in results if result.status == 200]
    swapped = [result for result in answered if _drawn(plan, "swapped", result) < plan.swapped]
    if len(swapped) == 1:
        swapped = (swapped + [result for result in answered if result is not swapped[0]])[:2]
    bodies = {id(result): swapped[at - 1].body for at, result in enumerate(swapped)}
    told = []
    for result in results:
        if _drawn(plan, "missing", result) < plan.missing:
            continue
        name = f"{result.name}-unknown" if _drawn(plan, "misnamed", result) < plan.misnamed else result.name
        body = bodies.get(id(result), result.body)
        told.append(LineResult(result.line, result.status, body, name))
        if _drawn(plan, "duplicated", result) < plan.duplicated:
            told.append(told[-1])
    if plan.shuffled:
        order = sorted(range(len(told)), key=lambda at: fraction_of(plan.salt, "shuffled", told[at].line.row, at))
        told = [told[at] for at in order]
    return told


def _drawn(plan: JobPlan, what: str, result: LineResult) -> float:
    return fraction_of(plan.salt, what, result.line.row)


def reaching(results: list[LineResult], told: list[LineResult]) -> set[str]:
    """Name the lines whose result a client can use: it is told their own body under their own name."""
    bodies = {(one.name, id(one.body)) for one in told}
    return {result.name for result in results if (result.name, id(result.body)) in bodies}


@dataclass(slots=True)
class StoredFile:
    """A file somebody uploaded, or a job wrote."""

    name: str
    provider: str
    filename: str
    purpose: str
    content: bytes
    created: int
    announced: int = 0


@dataclass(slots=True)
class Storage:
    """Files and jobs by name, in the order of their making; names are never given twice."""

    files: dict[str, StoredFile] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    uploads: dict[str, StoredFile] = field(default_factory=dict)
    made: int = 0

    def new_name(self, prefix: str) -> str:
        """Make a name, the same ones in the same order for every server."""
        self.made += 1
        return prefix + hashlib.sha256(f"{prefix}{self.made}".encode()).hexdigest()[:24]

    def keep(
        self, prefix: str, provider: str, content: bytes, *, filename: str, purpose: str, created: int
    ) -> StoredFile:
        """Keep a new file."""
        stored = StoredFile(self.new_name(prefix), provider, filename, purpose, content, created)
        self.files[stored.name] = stored
        return stored
