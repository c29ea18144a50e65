"""The probe at the start of a run, whether a server holds its model to the schema: once, journalled and paid for."""

import logging

from culturekit.llm.client import Client, Failure
from culturekit.llm.journal import Journal
from culturekit.llm.journal_entry import Entry, Reading
from culturekit.llm.keys import key_of
from culturekit.llm.purse import Purse
from culturekit.llm.question import Question
from culturekit.llm.row_automaton import Row
from culturekit.llm.schema_probe import needs_probe, probe, probe_request

__all__ = ["is_due", "probe_once"]

LOG = logging.getLogger(__name__)


def is_due(client: Client, journal: Journal, run: str) -> bool:
    """Say whether the server of a client is still to be probed in this run."""
    return needs_probe(client) and journal.recall(fact(client, run)) is None


async def probe_once(client: Client, journal: Journal, purse: Purse, *, run: str) -> None:
    """Probe, keep what came, and warn where the schema was not held; without the money for it, do nothing.

    Raises:
        Failure: of a kind that ends the run.
    """
    question = question_of(client)
    if not purse.reserve(question):
        return
    try:
        outgoing, raw, warning = await probe(client)
    except Failure:
        purse.free(question)
        raise
    except BaseException:
        purse.keep(question)
        raise
    reply = client.read(raw)
    number = await journal.append(
        Entry(question.key, run, 1, "online", 200, "reply", raw, outgoing.body, model=client.model)
    )
    if reply.stop == "unreadable":
        purse.keep(question)
    else:
        purse.settle(question, reply.usage)
    journal.note(number, Reading("invalid" if warning else "ok", reply.usage, purse.cost(reply.usage)))
    journal.remember(fact(client, run), warning.encode())
    if warning:
        LOG.warning(warning)


def question_of(client: Client) -> Question:
    """Make a question of the probe, so that it is paid for like any other."""
    request = probe_request()
    outgoing = client.compose(request)
    return Question(-1, Row(request), outgoing, key_of(client.identity, outgoing))


def fact(client: Client, run: str) -> str:
    """Name the fact that a server was probed."""
    return f"probed:{run}:{client.identity.base_url}:{client.model}"
