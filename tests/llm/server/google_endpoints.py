"""Gemini's endpoints that answer at once: generateContent, countTokens, models."""

from typing import Any

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.google_generate import counted_tokens, generate_question, pick
from tests.llm.server.google_image_making import writes_generated
from tests.llm.server.google_requests import check_count, check_generate
from tests.llm.server.selling import sell
from tests.llm.server.service import Service
from tests.llm.server.wire import Departing, json_departing


def generate(exchange: Exchange) -> Departing:
    """POST /models/{name}:generateContent."""
    service, model = exchange.service, exchange.groups["name"]
    body = json_body(exchange)
    check_model(service, model)
    check_generate(body, size=len(exchange.arrived.body))
    question = generate_question(body, model)
    if question.input_tokens > service.script.context:
        counts = f"({question.input_tokens}) exceeds the maximum number of tokens allowed ({service.script.context})."
        raise Refused("context-length", f"The input token count {counts}")
    return sell(service, exchange.record, question, exchange.arrived.body, writes_generated(service.script))


def check_model(service: Service, model: str) -> None:
    """Refuse a model that is not there."""
    if service.script.models and model not in service.script.models:
        raise Refused("not-found", f"models/{model} is not found for API version v1beta.")


def count_tokens(exchange: Exchange) -> Departing:
    """POST /models/{name}:countTokens; free of charge."""
    body = json_body(exchange)
    check_model(exchange.service, exchange.groups["name"])
    check_count(body)
    tokens = counted_tokens(pick(body, "generateContentRequest") or body)
    return json_departing({"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]})


def list_models(exchange: Exchange) -> Departing:
    """GET /models."""
    names = exchange.service.script.models or ("loopback-small", "loopback-large")
    return json_departing({"models": [_model(exchange.service, name) for name in names]})


def get_model(exchange: Exchange) -> Departing:
    """GET /models/{name}; any name will do where the script names none."""
    check_model(exchange.service, exchange.groups["name"])
    return json_departing(_model(exchange.service, exchange.groups["name"]))


def _model(service: Service, name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": service.script.context,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens", "batchGenerateContent"],
    }
