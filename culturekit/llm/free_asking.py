"""Clients that answer in this process for nothing are asked directly, one request after another."""

from collections.abc import Iterable, Iterator

from culturekit.llm.client import Failure, FreeClient, Request
from culturekit.llm.endings import run_ended_by
from culturekit.llm.outcomes import Answered
from culturekit.llm.row_automaton import Row, failed, heard

__all__ = ["ask_free"]


def ask_free(client: FreeClient, requests: Iterable[Request]) -> Iterator[Answered]:
    """Answer requests in their order; one reply that is no answer is repaired, as with any client."""
    for request in requests:
        step: Row | Answered = Row(request)
        while isinstance(step, Row):
            step = ask_once(client, step)
        yield step


def ask_once(client: FreeClient, row: Row) -> Row | Answered:
    """Ask what a row asks now; the same client says the same again, so there is one try."""
    try:
        reply = client.ask(row.request)
    except Failure as failure:
        if failure.kind == "fatal":
            raise run_ended_by(failure, client.model) from failure
        return failed(row, failure, tries=1)
    if reply.stop == "unreadable":
        return Answered("invalid", detail=reply.detail, raw=reply.text)
    return heard(row, reply, tries=1)
