"""The two protocols under `/openai/v1` and `/google/v1beta`, and the paths for whoever runs a test."""

import logging
from typing import Any

import msgspec

from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, answered
from tests.llm.server.picture_addresses import give_picture
from tests.llm.server.routes import find_route
from tests.llm.server.script import script_from_json
from tests.llm.server.selling import encoded
from tests.llm.server.service import Service
from tests.llm.server.wire import Arrived, Departing, json_departing

__all__ = ["Application"]

_logger = logging.getLogger(__name__)


class Application:
    """Finds who answers a request."""

    def __init__(self, service: Service) -> None:
        """Answer for a service."""
        self.service = service

    def handle(self, arrived: Arrived) -> Departing:
        """Answer one request."""
        found = find_route(arrived.method, arrived.path, arrived.query)
        if found is None:
            return self._own(arrived)
        route = found.route
        record = self.service.begin(arrived, route.operation, route.provider)
        exchange = Exchange(self.service, record, arrived, found.groups)
        try:
            return answered(exchange, route.endpoint, sells=route.sells)
        except Exception as error:
            _logger.exception("%s %s", arrived.method, arrived.path)
            self.service.statistics.broken.append(f"{arrived.method} {arrived.path}: {error!r}")
            return self.service.finish(record, json_departing({"error": {"message": "the server is broken"}}, 599))

    def _own(self, arrived: Arrived) -> Departing:
        match arrived.method, arrived.path:
            case "GET", "/stats":
                return json_departing({**self.service.statistics.summary(), "busy": self.service.busy})
            case "GET", "/stats/records":
                since = int(arrived.query.get("since", "0"))
                return _json(msgspec.to_builtins(self.service.statistics.records[since:]))
            case "GET", "/script":
                return _json(msgspec.to_builtins(self.service.script))
            case "GET", path if path.startswith("/pictures/"):
                return give_picture(self.service, arrived)
            case "PUT", "/script":
                return self._follow(arrived.body)
            case _:
                return self._lost(arrived)

    def _follow(self, body: bytes) -> Departing:
        try:
            self.service.follow(script_from_json(body))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            return json_departing({"error": str(error)}, 400)
        return json_departing({})

    def _lost(self, arrived: Arrived) -> Departing:
        """Answer for a path that neither protocol has, in the words of the one it was meant for."""
        provider = "google" if arrived.path.startswith("/google/") else "openai"
        record = self.service.begin(arrived, "unknown", provider)

        def refuse(exchange: Exchange) -> Departing:
            raise Refused("not-found", f"Invalid URL ({arrived.method} {arrived.path})")

        return answered(Exchange(self.service, record, arrived, {}), refuse, sells=True)


def _json(value: Any) -> Departing:
    return Departing(200, [("content-type", "application/json")], encoded(value))
