"""Whether a price is known well enough to begin: what cannot be paid for knowingly is not asked."""

import ipaddress
from urllib.parse import urlsplit

from culturekit.errors import UsageError
from culturekit.llm.client import Client

__all__ = ["check_price", "is_nearby"]

STATE_ONE = (
    "State one in the SPEC, in US dollars per million tokens in/out, such as price=0.15/0.60 (price=0/0 if free)."
)

OWN_DOMAINS = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


def check_price(client: Client, *, budget: float | None) -> str:
    """Refuse a client whose price is unknown; a server of one's own may have none. Give what a reader must know."""
    if client.rate is not None:
        return ""
    where = client.identity.base_url or client.model
    if budget is not None:
        raise UsageError(
            f"a budget was given, but the price of {client.model} is not known",
            where=where,
            hint=f"{STATE_ONE} Or leave out the budget.",
        )
    if not is_nearby(client.identity.base_url):
        raise UsageError(f"the price of {client.model} is not known", where=where, hint=STATE_ONE)
    return f"{client.model} at {where} has no price; its cost is counted as 0"


def is_nearby(base_url: str) -> bool:
    """Say whether an address is of this machine or a private network; names are not looked up."""
    host = urlsplit(base_url).hostname if base_url else ""
    if not host:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(OWN_DOMAINS)
    return address.is_loopback or address.is_private or address.is_link_local
