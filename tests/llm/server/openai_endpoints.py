"""OpenAI's endpoints that answer at once: chat completions, responses, models."""

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.made_replies import Question
from tests.llm.server.openai_chat import chat_completion, chat_question
from tests.llm.server.openai_requests import check_chat
from tests.llm.server.openai_response_requests import check_responses
from tests.llm.server.openai_responses import response, responses_question
from tests.llm.server.selling import sell
from tests.llm.server.service import Service
from tests.llm.server.wire import Departing, json_departing


def chat(exchange: Exchange) -> Departing:
    """POST /chat/completions."""
    body = json_body(exchange)
    check_chat(body, exchange.service.script.dialect)
    question = sellable(exchange.service, chat_question(body))
    return sell(exchange.service, exchange.record, question, exchange.arrived.body, chat_completion)


def respond(exchange: Exchange) -> Departing:
    """POST /responses."""
    body = json_body(exchange)
    check_responses(body)
    question = sellable(exchange.service, responses_question(body))
    return sell(exchange.service, exchange.record, question, exchange.arrived.body, response)


def sellable(service: Service, question: Question) -> Question:
    """Refuse what the model is not there for, or has no room for.

    Raises:
        Refused: in the provider's words.
    """
    script = service.script
    if script.models and question.model not in script.models:
        raise Refused("not-found", f"The model `{question.model}` does not exist or you do not have access to it.")
    if question.input_tokens > script.context:
        length = f"This model's maximum context length is {script.context} tokens."
        raise Refused("context-length", f"{length} However, your messages resulted in {question.input_tokens} tokens.")
    return question


def list_models(exchange: Exchange) -> Departing:
    """GET /models."""
    names = exchange.service.script.models or ("loopback-small", "loopback-large")
    return json_departing({"object": "list", "data": [_model(name) for name in names]})


def retrieve_model(exchange: Exchange) -> Departing:
    """GET /models/{name}; any name will do where the script names none."""
    name = exchange.groups["name"]
    if exchange.service.script.models and name not in exchange.service.script.models:
        raise Refused("not-found", f"The model '{name}' does not exist")
    return json_departing(_model(name))


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 1_780_000_000, "owned_by": "loopback"}
