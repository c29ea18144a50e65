"""Whether a price is known well enough to begin: what cannot be paid for knowingly is not asked."""

from culturekit.errors import UsageError
from culturekit.llm.client import Client

__all__ = ["check_price"]


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
