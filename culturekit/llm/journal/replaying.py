"""What the journal says of a row: its replies and failures, read again in the order they came."""

from collections.abc import Sequence
from dataclasses import replace

from culturekit.llm.client import Client, Failure, Reply
from culturekit.llm.journal.journal import Journal
from culturekit.llm.journal.journal_entry import Entry, Reading
from culturekit.llm.money.counted_here import fully_counted
from culturekit.llm.money.purse import Purse
from culturekit.llm.outcomes import Answered
from culturekit.llm.question import Question
from culturekit.llm.row_automaton import Row, failed, heard, reading_of
from culturekit.records.choices import ANSWERED

__all__ = ["Replay"]


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
