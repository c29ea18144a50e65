"""Every path the server answers, under `/openai/v1`, `/google/v1beta` and the paths of its own."""

import re

import orjson

from tests.llm.server.google_generate import generate_chunks, generate_question, generate_response
from tests.llm.server.openai_chat import chat_chunks, chat_completion, chat_question
from tests.llm.server.selling import sell
from tests.llm.server.service import Service
from tests.llm.server.wire import Arrived, Departing, json_departing

__all__ = ["Application"]

_GENERATE = re.compile(
    r"/google/(v1|v1beta|v1alpha)/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)"
)


class Application:
    """Finds who answers a request."""

    def __init__(self, service: Service) -> None:
        """Answer for a service."""
        self.service = service

    def handle(self, arrived: Arrived) -> Departing:
        """Answer one request."""
        if arrived.path == "/stats":
            return json_departing(self.service.statistics.summary())
        if arrived.path == "/openai/v1/chat/completions":
            return self._chat(arrived)
        found = _GENERATE.fullmatch(arrived.path)
        if found is not None:
            return self._generate(arrived, found[2], found[3])
        return json_departing({"error": {"message": f"no such path: {arrived.path}"}}, 404)

    def _chat(self, arrived: Arrived) -> Departing:
        record = self.service.begin(arrived, "chat", "openai")
        question = chat_question(orjson.loads(arrived.body))
        encode = chat_chunks if question.stream else chat_completion
        return sell(self.service, record, question, arrived.body, encode)

    def _generate(self, arrived: Arrived, model: str, method: str) -> Departing:
        record = self.service.begin(arrived, "generate", "google")
        body = orjson.loads(arrived.body)
        question = generate_question(body, model)
        encode = generate_chunks if method == "streamGenerateContent" else generate_response
        return sell(self.service, record, question, arrived.body, encode)
