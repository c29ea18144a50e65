"""The clients culturekit knows by name."""

from culturekit.core.plugins import Contract, hold, shown
from culturekit.core.registry import Entry, Registry
from culturekit.llm.client import Client, Failure, FreeClient, Outgoing, Reply, Request

_OPTIONS = "culturekit.llm.clients.client_options"


def _replied(_: object, answer: object, asked: Request | bytes) -> Reply:
    del asked
    hold(isinstance(answer, Reply), "a Reply", shown(answer))
    reply: Reply = answer  # type: ignore[assignment]
    hold(isinstance(reply.text, str), "a reply with a text", shown(reply.text))
    return reply


def _composed(_: object, answer: object, request: Request) -> Outgoing:
    del request
    whole = isinstance(answer, Outgoing) and isinstance(answer.body, bytes)
    hold(whole, "an Outgoing, with bytes as its body", shown(answer))
    return answer  # type: ignore[return-value]


def _sent(_: object, answer: object, outgoing: Outgoing) -> bytes:
    del outgoing
    hold(isinstance(answer, bytes), "bytes", shown(answer))
    return answer  # type: ignore[return-value]


JUDGE = Contract(
    (Client, FreeClient),
    answers={"ask": _replied, "read": _replied, "compose": _composed, "send": _sent},
    raises=(Failure,),
)

CLIENTS: Registry[Client | FreeClient] = Registry(
    "language model client",
    [
        Entry("rules", "culturekit.llm.clients.rules_client:make", "fixed rules, offline; reads wording only"),
        Entry(
            "simulated",
            "culturekit.builders.simulated.simulated_model:make",
            "a model of the simulated world, offline; it errs as its dials say, and stands for no model",
            options="culturekit.builders.simulated.simulated_model:Options",
        ),
        Entry(
            "openai",
            "culturekit.llm.clients.openai_client:make",
            "OpenAI, or with base_url vLLM, llama.cpp, Ollama and whatever else speaks its protocol",
            options=f"{_OPTIONS}:OpenAIOptions",
            extra="llm",
        ),
        Entry(
            "google",
            "culturekit.llm.clients.google_client:make",
            "Google's Gemini models",
            options=f"{_OPTIONS}:GoogleOptions",
            extra="llm",
        ),
        Entry(
            "replay",
            "culturekit.llm.clients.replay_client:make",
            "recorded or scripted replies, from a JSONL file or the journal of a run",
            options=f"{_OPTIONS}:ReplayOptions",
        ),
        Entry(
            "local",
            "culturekit.llm.clients.local_client:make",
            "a transformers model from a local folder, in this process",
            options=f"{_OPTIONS}:LocalOptions",
            extra="embed",
        ),
    ],
    point="judge",
    contract=JUDGE,
)
