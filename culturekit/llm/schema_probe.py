"""Does a server hold its model to the schema of a reply? One small request at the start tells."""

from typing import Literal

import msgspec

from culturekit.llm.client import Client, Reply, Request
from culturekit.llm.clients.endpoints import is_official
from culturekit.llm.clients.gemini_settings import OFFICIAL as GOOGLE
from culturekit.llm.clients.openai_settings import OFFICIAL as OPENAI

__all__ = ["needs_probe", "probe_request", "probe_warning"]


class ProbeReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The only reply that the schema allows, and one that no model gives of its own accord."""

    verdict: Literal["zq-7713-lantern"]


INSTRUCTIONS = "Judge the candidate. Reply with one JSON object that has one key: verdict, which is keep or remove."
OFFICIAL = {"openai": OPENAI, "google": GOOGLE}
ENFORCED = ""
NOT_ENFORCED = (
    "The server at {address} answers without holding the model {model} to the schema: expect more invalid "
    "replies, each of which costs a repair. See docs/llm-self-hosted.md."
)
WHITE_SPACE = (
    "The server at {address} lets the model {model} write white space up to the limit of tokens: such rows end "
    "as truncated. See docs/llm-self-hosted.md."
)
UNKNOWN = "The server at {address} was asked whether it enforces schemas, and gave no reply that tells: {why}."


def needs_probe(client: Client) -> bool:
    """Tell whether it is not known beforehand that a client's server enforces schemas."""
    official = OFFICIAL.get(client.identity.provider)
    return official is not None and not is_official(client.identity.base_url, official)


def probe_request() -> Request:
    """Ask for one thing in words and for another by the schema; without an id, so that it is no row of anything."""
    return Request("schema.probe", INSTRUCTIONS, {"label": "bread"}, ProbeReply, max_tokens=48)


def probe_warning(client: Client, reply: Reply) -> str:
    """Tell what a reply to the probe means; empty where the schema held."""
    if reply.stop == "length" and len(reply.text.strip()) * 2 < len(reply.text):
        return said(client, WHITE_SPACE)
    if reply.stop not in ("end", "length"):
        return said(client, UNKNOWN, f"{reply.stop} {reply.detail}".strip())
    try:
        msgspec.json.decode(reply.text.encode("utf-8", "replace"), type=ProbeReply)
    except msgspec.DecodeError:
        return said(client, NOT_ENFORCED)
    return ENFORCED


def said(client: Client, text: str, why: str = "") -> str:
    """Fill in a warning."""
    return text.format(address=client.identity.base_url, model=client.model, why=why.rstrip("."))
