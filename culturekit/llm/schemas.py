"""The shape of a reply as a JSON schema."""

from typing import Any, Literal, TypeAlias

import msgspec

from culturekit.llm.client import Answers

__all__ = ["Target", "schema_of"]

Target: TypeAlias = Literal["openai", "google-json", "google-schema", "vllm", "llamacpp", "ollama"]


def schema_of(reply_type: Answers, target: Target) -> dict[str, Any]:
    """Compile a flat struct for a target."""
    (schema,), definitions = msgspec.json.schema_components([reply_type])
    found: dict[str, Any] = definitions[schema["$ref"].rpartition("/")[2]]
    return {**found, "additionalProperties": False, "required": list(found["properties"])}
