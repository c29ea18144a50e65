"""The clients culturekit knows by name."""

from culturekit.llm.client import Client, FreeClient
from culturekit.registry import Entry, Registry

__all__ = ["CLIENTS"]

OPTIONS = "culturekit.llm.clients.client_options"

CLIENTS: Registry[Client | FreeClient] = Registry(
    "language model client",
    [
        Entry("rules", "culturekit.llm.clients.rules_client:make", "fixed rules, offline; reads wording only"),
        Entry(
            "openai",
            "culturekit.llm.clients.openai_client:make",
            "OpenAI, or with base_url vLLM, llama.cpp, Ollama and whatever else speaks its protocol",
            options=f"{OPTIONS}:OpenAIOptions",
            extra="llm",
        ),
        Entry(
            "google",
            "culturekit.llm.clients.google_client:make",
            "Google's Gemini models",
            options=f"{OPTIONS}:GoogleOptions",
            extra="llm",
        ),
        Entry(
            "replay",
            "culturekit.llm.clients.replay_client:make",
            "recorded or scripted replies, from a JSONL file or the journal of a run",
            options=f"{OPTIONS}:ReplayOptions",
        ),
        Entry(
            "local",
            "culturekit.llm.clients.local_client:make",
            "a transformers model from a local folder, in this process",
            options=f"{OPTIONS}:LocalOptions",
            extra="embed",
        ),
    ],
)
