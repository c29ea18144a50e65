"""The clients culturekit knows by name."""

from culturekit.llm.client import Client
from culturekit.registry import Entry, Registry

__all__ = ["CLIENTS"]

CLIENTS: Registry[Client] = Registry(
    "language model client",
    [Entry("rules", "culturekit.llm.rules_client:make", "fixed rules, offline; reads wording only")],
)
