"""Which client has batches, and which."""

from culturekit.errors import UsageError
from culturekit.llm.batches.batch_client import BatchClient
from culturekit.llm.client import Client
from culturekit.llm.clients.google_client import GoogleClient
from culturekit.llm.clients.openai_client import OpenAIClient

__all__ = ["batches_of"]


def batches_of(client: Client) -> BatchClient:
    """Give the batches of a client; no SDK is imported yet.

    Raises:
        UsageError: it has none.
    """
    if isinstance(client, OpenAIClient):
        from culturekit.llm.batches.openai_batches import OpenAIBatches

        return OpenAIBatches(client)
    if isinstance(client, GoogleClient):
        from culturekit.llm.batches.google_batches import GoogleBatches

        return GoogleBatches(client)
    raise UsageError(
        f"{client.model} cannot be asked in batches",
        expected="a model of openai or google",
        hint="Ask it one by one: leave out batch=1.",
    )
