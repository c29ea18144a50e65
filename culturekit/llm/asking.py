"""One pass over many requests: what the journal has is taken from it in bulk, the rest goes to the wire, all in order.

A window bounds what is looked ahead, so that half a million requests never lie in memory.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import msgspec

from culturekit.llm.client import Client, Failure, Outgoing, Reply, Request
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry, Reading, key_of
from culturekit.llm.purse import Purse
from culturekit.llm.reply_watch import ReplyWatch
from culturekit.llm.rows import Answered, Question, Row, failed, heard, reading_of
from culturekit.llm.usage import estimate, fully_counted
from culturekit.records.choices import ANSWERED


class Replay:
    """Takes questions through what is journalled; nothing is sent here."""

    def __init__(self, journal: Journal, purse: Purse, client: Client, *, run: str, tries: int) -> None:
        """Name the run whose every entry counts; of other runs only answers do."""
        self.journal = journal
        self.purse = purse
        self.client = client
        self.run = run
        self.tries = tries

    def take_in(self, question: Question, entries: Sequence[Entry]) -> bool:
        """Read entries; True when the question has changed to its repair, whose key has entries of its own."""
        for entry in entries:
            step = self.step(question, entry)
            if isinstance(step, Answered):
                question.ended = step
                return False
            if step.repairing and not question.row.repairing:
                question.row = step
                return True
            question.row = step
        return False

    def step(self, question: Question, entry: Entry) -> Row | Answered:
        """Read one entry."""
        row = question.row
        if entry.kind != "reply":
            if entry.run != self.run or entry.kind == "fatal":
                return row
            failure = Failure(entry.kind, "", status=entry.status, raw=entry.raw)  # type: ignore[arg-type]
            return failed(replace(row, tries=entry.attempt), failure, tries=self.tries, charged=False)
        reply = self.counted(question, entry)
        if reply.stop == "unreadable":
            row = replace(row, tries=entry.attempt)
        step = heard(row, reply, tries=self.tries, charged=False)
        if entry.run != self.run and not self.serves(entry, step):
            return question.row
        self.note(question, entry, reply, step)
        return step

    def counted(self, question: Question, entry: Entry) -> Reply:
        """Read a reply, and count what its server did not; of a row in a batch the request is composed for that."""
        reply, outgoing = self.client.read(entry.raw), question.outgoing
        if not outgoing.body and not (entry.outcome and reply.usage.counted == "provider"):
            outgoing = self.client.compose(question.row.request)
        return fully_counted(reply, outgoing, self.client.identity)

    def serves(self, entry: Entry, step: Row | Answered) -> bool:
        """Say whether a reply of another run counts: an answer does, and the invalid one before a repaired one."""
        if entry.outcome in ANSWERED:
            return True
        return isinstance(step, Answered) and step.outcome in ANSWERED

    def note(self, question: Question, entry: Entry, reply: Reply, step: Row | Answered) -> None:
        """Note what an entry says, where a kill came before that."""
        outcome = reading_of(step, reply)
        if entry.outcome and not question.row.repairing and outcome != "invalid":
            return
        if entry.outcome:
            reading = Reading(outcome, reply.usage, self.purse.cost(reply.usage, entry.mode))
        else:
            reading = self.purse.reading(outcome, reply.usage, entry.mode)
            self.journal.note(entry.number, reading)
            if reply.usage.counted == "here" and question.outgoing.body:
                self.purse.doubt(max(self.purse.worst(question) - (reading.usd or 0.0), 0.0))
        if entry.outcome != "repaired":
            question.read.append((entry.number, reading))


CHUNK = 256  # requests that are composed and looked up together
WINDOW = 8192
# How far the wire may be ahead of the first row that has not ended, in rows and in bytes that leave.
WINDOW_BYTES = 64 * 2**20
ENDED = Row(Request("", "", {}, msgspec.Struct))
NOTHING = Outgoing(b"")  # what stands in a row that has ended, so that it holds on to nothing


class Asking:
    """The rows between the first that has not been given out and the last that was pulled."""

    def __init__(
        self,
        client: Client,
        journal: Journal,
        replay: Replay,
        requests: Iterable[Request],
        *,
        watch: ReplyWatch | None = None,
    ) -> None:
        """Start with nothing pulled; `watch` says how far to go before replies were looked at."""
        self.client = client
        self.journal = journal
        self.replay = replay
        self.watch = watch
        self.source = iter(requests)
        self.pulled = 0
        self.all_pulled = False
        self.rows: deque[Question] = deque()
        self.asked: dict[bytes, Question] = {}
        self.weight = 0

    def closed(self) -> Iterator[Answered]:
        """Give out the rows at the front that have ended."""
        while self.rows and (answered := self.rows[0].answered) is not None:
            self.rows.popleft()
            yield answered

    def unfinished(self) -> bool:
        """Say whether any row has still to be asked or to end."""
        if not self.rows and not self.all_pulled:
            following = next(self.source, None)
            self.all_pulled = following is None
            self.source = self.source if following is None else chain([following], self.source)
        return bool(self.rows) or not self.all_pulled

    def has_room(self) -> bool:
        """Say whether more may be pulled."""
        return not self.all_pulled and self.chunk() > 0 and len(self.rows) < WINDOW and self.weight < WINDOW_BYTES

    def chunk(self) -> int:
        """Say how many rows may be pulled together: few, until it is known that replies can be used."""
        ahead = None if self.watch is None else self.watch.ahead
        return CHUNK if ahead is None else min(ahead - len(self.rows), CHUNK)

    def pull(self) -> list[Question]:
        """Pull some requests, take what the journal has, and give those that must be sent."""
        chunk = self.chunk()
        requests = list(islice(self.source, chunk))
        self.all_pulled = len(requests) < chunk
        questions = [self.question(place, request) for place, request in enumerate(requests, start=self.pulled)]
        self.pulled += len(requests)
        self.rows.extend(questions)
        return self.look_up(questions)

    def question(self, place: int, request: Request) -> Question:
        """Compose a request and make its key."""
        outgoing = self.client.compose(request)
        return Question(place, Row(request), outgoing, key_of(self.client.identity, outgoing))

    def look_up(self, questions: Sequence[Question]) -> list[Question]:
        """Take questions as far as the journal goes; give those that must be sent."""
        to_send = []
        while questions:
            found = self.journal.found([question.key for question in questions], run=self.replay.run)
            repairs = []
            for question in questions:
                entries = found.get(question.key)
                if entries is not None and self.replay.take_in(question, entries):
                    self.compose_repair(question)
                    repairs.append(question)
                elif question.ended is not None:
                    self.close(question)
                elif self.is_first(question):
                    to_send.append(question)
            questions = repairs
        return to_send

    def compose_repair(self, question: Question) -> None:
        """Compose the question that a row has come to; it has a key of its own."""
        question.outgoing = self.client.compose(question.row.request)
        question.key = key_of(self.client.identity, question.outgoing)
        question.input_bound = question.failures = 0

    def is_first(self, question: Question) -> bool:
        """Say whether nobody else is asking the same; a twin waits for what comes for the first."""
        first = self.asked.setdefault(question.key, question)
        if first is not question:
            first.twins.append(question)
            return False
        question.input_guess = estimate(question.outgoing, self.client.identity)
        self.weight += question.weight()
        return True

    def came_back(self, questions: Sequence[Question]) -> list[Question]:
        """Read what left the wire: rows that ended, and rows whose repair is to be asked; give what must be sent."""
        to_look_up = []
        for question in questions:
            self.weight -= question.weight()
            del self.asked[question.key]
            to_look_up += question.twins
            question.twins = []
            if question.ended is None:
                self.compose_repair(question)
                to_look_up.append(question)
            else:
                self.close(question)
        return self.look_up(to_look_up) if to_look_up else []

    def close(self, question: Question) -> None:
        """Let go of what a row needed while it was asked; the first reply of a repaired row is part of an answer."""
        ended = question.ended
        if ended is not None and ended.outcome == "repaired":
            for number, reading in question.read[:-1]:
                self.journal.note(number, Reading("repaired", reading.usage, reading.usd))
        question.answered = replace(ended, bought=True) if ended is not None and question.bought else ended
        question.read, question.row, question.outgoing = [], ENDED, NOTHING
