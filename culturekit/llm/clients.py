"""The clients culturekit knows by name."""

from culturekit.llm.client import Client, FreeClient
from culturekit.registry import Entry, Registry

__all__ = ["CLIENTS"]

CLIENTS: Registry[Client | FreeClient] = Registry(
    "language model client",
    [Entry("rules", "culturekit.llm.rules_client:make", "fixed rules, offline; reads wording only")],
)
