"""Results of a job become entries of the journal: by name, each once; what is missing is a failure that may pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import msgspec

from culturekit.errors import UpstreamUnavailable
from culturekit.llm.batches.batch_client import BatchClient, BatchResult, Job
from culturekit.llm.batches.jobs import BatchRecord, JobBook, Planned
from culturekit.llm.batches.waiting import Caller
from culturekit.llm.client import Client, Failure, FailureKind, Outgoing, Usage
from culturekit.llm.clients.remote_client import for_storage
from culturekit.llm.endings import run_ended_by
from culturekit.llm.journal.journal import Journal
from culturekit.llm.journal.journal_entry import Entry
from culturekit.llm.money.counted_here import MOST_TOKENS, fully_counted
from culturekit.llm.money.purse import Purse

__all__ = ["Collector", "Gathered", "closed_results", "gather"]

Pair: TypeAlias = tuple[tuple[Planned, BatchResult], bytes]
"""A row with its result, and the body of its request."""

AT_ONCE = 500
"""Results in one commit."""

SUSPICIOUS = 10
"""So many lines of which none can be read are not the fault of the lines."""

READINGS = 3
"""How often the results are read when there are fewer of them than the provider counted."""

MISSING: Mapping[str, FailureKind] = {"expired": "timeout", "cancelled": "timeout", "failed": "server"}


@dataclass(slots=True)
class Gathered:
    """The results of one job by name; a name that came twice with different contents is in `conflicting`."""

    results: dict[str, BatchResult] = field(default_factory=dict)
    conflicting: dict[str, list[BatchResult]] = field(default_factory=dict)
    unknown: int = 0
    unreadable: int = 0

    def take(self, result: BatchResult, client: Client) -> None:
        """Add a result, or see that it is there already."""
        known = self.results.get(result.name)
        if known is None:
            self.results[result.name] = result
        elif not same(known, result, client):
            self.conflicting.setdefault(result.name, [known]).append(result)


def same(one: BatchResult, other: BatchResult, client: Client) -> bool:
    """Tell whether two results of a row say the same; numbers of the provider's own may differ."""
    if (one.kind, one.status, one.raw) == (other.kind, other.status, other.raw):
        return True
    if one.kind != "reply" or other.kind != "reply":
        return False
    first, second = client.read(one.raw), client.read(other.raw)
    return first.stop != "unreadable" and (first.text, first.stop) == (second.text, second.stop)


async def gather(batches: BatchClient, client: Client, job: Job, names: frozenset[str]) -> Gathered:
    """Read the results of a job, again if there are fewer than the provider says."""
    for _ in range(READINGS):
        gathered = Gathered()
        async for result in batches.results(job):
            if result is None:
                gathered.unreadable += 1
            elif result.name in names:
                gathered.take(result, client)
            else:
                gathered.unknown += 1
        if job.counted is None or len(gathered.results) + gathered.unknown >= min(job.counted, len(names)):
            break
    if not gathered.results and gathered.unreadable >= SUSPICIOUS:
        raise strange(job, gathered)
    return gathered


def strange(job: Job, gathered: Gathered) -> UpstreamUnavailable:
    """Say that nothing of what came can be used: asking again would buy all of it a second time."""
    return UpstreamUnavailable(
        "the results of a batch cannot be read",
        where=job.number,
        expected="lines that name our rows",
        found=f"{gathered.unreadable:,} that cannot be read",
        hint="They are kept with the provider; run the same command again, or with a newer culturekit.",
    )


def closed_results(gathered: Gathered, job: Job, rows: Iterable[Planned]) -> Iterator[tuple[Planned, BatchResult]]:
    """Give each row of a job exactly one result.

    Of a row with conflicting results none is believed: it counts as a failure that may pass, as does a missing one.
    """
    rejected = dict(job.rejected)
    for line, row in enumerate(rows, start=1):
        name = row.key.hex()
        result = gathered.results.get(name)
        if name in gathered.conflicting:
            yield row, conflict(name, gathered.conflicting[name])
        elif result is not None:
            yield row, result
        elif line in rejected:
            yield row, BatchResult(name, "rejected", 400, noted("rejected", rejected[line]), rejected[line])
        else:
            kind = job.kind if job.state == "failed" else MISSING.get(job.state, "server")
            yield row, BatchResult(name, kind, 0, noted("missing", job.state), f"no result in a job that {job.state}")


def conflict(name: str, results: list[BatchResult]) -> BatchResult:
    """Keep results that contradict each other together, as a failure."""
    raws = [result.raw.decode("utf-8", "replace") for result in results]
    together = msgspec.json.encode({"conflicting": raws})
    return BatchResult(name, "server", 200, together, "results that contradict", paid=results[0].billed)


def noted(what: str, why: str) -> bytes:
    """Write down why there is no result."""
    return msgspec.json.encode({what: why})


@dataclass(frozen=True, slots=True)
class Collector:
    """Brings the results of jobs into the journal."""

    batches: BatchClient
    client: Client
    caller: Caller
    book: JobBook
    journal: Journal
    purse: Purse

    async def collect(self, record: BatchRecord, job: Job) -> float:
        """Put the results of a job into the journal, those that are not there yet, and give what they cost.

        Raises:
            CultureKitError: a result says that no request of ours is welcome.
        """
        rows = self.book.rows(record)
        names = frozenset(row.key.hex() for row in rows)
        gathered = await self.caller.call(lambda: gather(self.batches, self.client, job, names))
        spent, ending = 0.0, None
        pairs = zip(closed_results(gathered, job, rows), self.book.bodies(record), strict=True)
        while some := list(islice(pairs, AT_ONCE)):
            fresh = self.fresh(record, some)
            ending = ending or next((result for _, result, _ in fresh if result.kind == "fatal"), None)
            spent += self.keep(record, fresh, share=record.reserved / len(rows))
        self.book.move(record, "collected")
        if ending is not None:
            detail = for_storage(self.client, ending.detail.encode()).decode()
            raise run_ended_by(Failure("fatal", detail, status=ending.status), self.caller.model)
        return spent

    def fresh(self, record: BatchRecord, some: Sequence[Pair]) -> list[tuple[Planned, BatchResult, bytes]]:
        """Leave out what an earlier collection, cut short, has put into the journal."""
        found = self.journal.found([row.key for (row, _), _ in some], run=record.run)
        known = {
            (entry.key, entry.attempt) for entries in found.values() for entry in entries if entry.run == record.run
        }
        return [(row, result, body) for (row, result), body in some if (row.key, row.attempt) not in known]

    def keep(self, record: BatchRecord, fresh: Sequence[tuple[Planned, BatchResult, bytes]], *, share: float) -> float:
        """Write results down in one commit; only then look into them for what they cost."""
        kept = [(row, result, body) for row, result, body in fresh if result.kind != "fatal"]
        model = self.client.model
        entries = [
            Entry(row.key, record.run, row.attempt, "batch", result.status, result.kind, stored, body, model=model)
            for row, result, body in kept
            for stored in [for_storage(self.client, result.raw)]
        ]
        numbers = self.journal.append_all(entries) if entries else []
        return sum(
            self.spent_on(number, result, body, share) for number, (_, result, body) in zip(numbers, kept, strict=True)
        )

    def spent_on(self, number: int, result: BatchResult, body: bytes, share: float) -> float:
        """Give what a result cost, or its share of what the job can cost at most where the counts are in doubt."""
        usage = Usage()
        if result.billed:
            usage = fully_counted(
                self.client.read(result.billed), Outgoing(body, max_tokens=MOST_TOKENS), self.client.identity
            ).usage
        if result.kind != "reply":
            self.journal.note(number, self.purse.reading(result.kind, usage, "batch"))
        usd = self.purse.cost(usage, "batch") or 0.0
        if usage.doubt:
            self.purse.warn_of_doubt(usage.doubt)
        most = usd if usage.counted == "provider" else max(usd, share)
        if most > usd:
            self.purse.doubt(most - usd)
            self.journal.write_soon([self.purse.unsure_fact()])
        return most
