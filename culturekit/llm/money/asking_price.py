"""Whether a client is known well enough to begin: what cannot be paid for knowingly is not asked."""

from culturekit.errors import UsageError
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.clients.remote_client import RemoteClient

__all__ = ["check_asking", "check_price"]


def check_asking(client: Client | FreeClient) -> None:
    """Make sure, before any other work, that a client could be asked: its price, its package and its key are there.

    Raises:
        UsageError: one of them is not.
    """
    if isinstance(client, FreeClient):
        return
    check_price(client)
    if isinstance(client, RemoteClient):
        client.ready()


def check_price(client: Client) -> None:
    """Refuse a client whose price is unknown; one that costs nothing says so in its SPEC.

    Raises:
        UsageError: neither the SPEC nor the price list says what the tokens of the model cost.
    """
    if client.rate is None:
        raise UsageError(
            f"the price of {client.model} is not known",
            where=client.identity.base_url or client.model,
            hint="State one in the SPEC, in US dollars per million tokens in/out, such as price=0.15/0.60, or "
            "price=0/0 where nothing is charged.",
        )
