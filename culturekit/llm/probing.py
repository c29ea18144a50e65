"""Once per server and model, before the first question: does it hold replies to their schema? The answer only warns."""

import asyncio
import logging
from typing import Literal

import msgspec

from culturekit.llm.client import Client, Failure, Reply, Request, for_storage
from culturekit.llm.dispatch import QUIET, DurableHold, run_ended_by
from culturekit.llm.endpoints import SERVICES, is_elsewhere
from culturekit.llm.journal import Entry, Journal, key_of
from culturekit.llm.purse import Purse
from culturekit.llm.rows import Question, Row
from culturekit.llm.usage import fully_counted

logger = logging.getLogger(__name__)

SECONDS = 30.0  # how long the reply to a probe is waited for; a server that is slower is asked again by the next run
_INSTRUCTIONS = "Judge the candidate. Reply with one JSON object that has one key: verdict, which is keep or remove."
_NOT_ENFORCED = (
    "The server at {address} answers without holding the model {model} to the schema: expect more invalid "
    "replies, each of which costs a repair. See docs/llm-self-hosted.md."
)
_WHITE_SPACE = (
    "The server at {address} lets the model {model} write white space up to the limit of tokens: such rows end "
    "as truncated. See docs/llm-self-hosted.md."
)
_UNKNOWN = "The server at {address} was asked whether it enforces schemas, and gave no reply that tells: {why}."


def probe_once(client: Client, journal: Journal, purse: Purse, hold: DurableHold, *, run: str) -> bool:
    """Ask a server whose habits are not known; what it said is kept in the journal. False when it did not reply.

    Raises:
        UsageError: the server says that the key or the model is wrong.
    """
    fact = f"probed:{client.identity.base_url} {client.model}"
    if not needs_probe(client) or journal.recall(fact) is not None or hold.left() > 0.0:
        return True
    outgoing = client.compose(probe_request())
    question = Question(0, Row(probe_request()), outgoing, key_of(client.identity, outgoing))

    def kept(kind: str, raw: bytes, status: int, *, sold: bool = False) -> int:
        entry = Entry(question.key, run, 1, "online", status, kind, raw, outgoing.body, model=client.model)
        return journal.append_all([entry], purse.came(question, sold=sold))[0]

    entries = journal.found([question.key], run=run).get(question.key, ())
    bought = next((entry for entry in entries if entry.kind == "reply"), None)  # a kill came before it was read
    if bought is not None:
        raw, number = bought.raw, bought.number
    elif not purse.reserve(question):
        return True
    else:
        journal.write_now(purse.leaves(question))
        try:
            raw = asyncio.run(_sent(client, question, min(SECONDS, hold.patience)))
        except Failure as failure:
            (purse.keep if failure.may_be_sold else purse.free)(question)
            if failure.sent:
                kept(failure.kind, failure.raw, failure.status, sold=failure.may_be_sold)
            else:
                journal.write_now(purse.came(question))
            if failure.kind == "fatal":
                raise run_ended_by(failure, client.model) from None
            if failure.wait is not None:
                hold.keep(failure.wait)
            logger.info("%s did not say whether it enforces schemas: %s", client.identity.base_url, failure.detail)
            return False
        number = kept("reply", for_storage(client, raw), 200)
    reply = fully_counted(client.read(raw), outgoing, client.identity)
    if bought is None:
        purse.settle(question, reply.usage)
        journal.write_soon([purse.unsure_fact()])
    journal.note(number, purse.reading("ok", reply.usage))
    warning = probe_warning(client, reply)
    journal.remember(fact, warning.encode())
    if warning:
        logger.warning("%s", warning)
    return True


async def _sent(client: Client, question: Question, seconds: float) -> bytes:
    """Send the probe, and close the connections that belong to this event loop."""
    quiet = f"no reply to a first small question for {QUIET:g} s; waiting for it; Ctrl-C keeps everything"
    soon = asyncio.get_running_loop().call_later(QUIET, logger.warning, "%s: %s", client.model, quiet)
    try:
        async with asyncio.timeout(seconds):
            return await client.send(question.outgoing)
    except TimeoutError:
        raise Failure("timeout", f"no reply in {seconds:g} s") from None
    finally:
        soon.cancel()
        await client.close()


# The name of a reply type is sent with its schema, and so is part of the key of a reply.
class ProbeReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The only reply that the schema allows, and one that no model gives of its own accord."""

    verdict: Literal["zq-7713-lantern"]


def needs_probe(client: Client) -> bool:
    """Check whether it is not known beforehand that a client's server enforces schemas."""
    return client.identity.provider in SERVICES and is_elsewhere(client.identity)


def probe_request() -> Request:
    """Ask for one thing in words and for another by the schema; without an id, so that it is no row of anything."""
    return Request("schema.probe", _INSTRUCTIONS, {"label": "bread"}, ProbeReply, max_tokens=48)


def probe_warning(client: Client, reply: Reply) -> str:
    """Tell what a reply to the probe means; empty where the schema held."""
    text, why = _UNKNOWN, f"{reply.stop} {reply.detail}".strip().rstrip(".")
    if reply.stop == "length" and len(reply.text.strip()) * 2 < len(reply.text):
        text = _WHITE_SPACE
    elif reply.stop in ("end", "length"):
        try:
            msgspec.json.decode(reply.text.encode("utf-8", "replace"), type=ProbeReply)
        except msgspec.DecodeError:
            text = _NOT_ENFORCED
        else:
            return ""
    return text.format(address=client.identity.base_url, model=client.model, why=why)
