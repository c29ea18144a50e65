"""One request on its way through the server, and the checks that every endpoint begins with."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from tests.llm.server.error_replies import Refused, error_reply
from tests.llm.server.script import BODY_FAULTS, STATUS_FAULTS
from tests.llm.server.selling import connection_fault, damaged, refuse
from tests.llm.server.service import Service
from tests.llm.server.statistics import Record
from tests.llm.server.wire import Arrived, Departing


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with what the server knows about it. `groups` are the named parts of its path."""

    service: Service
    record: Record
    arrived: Arrived
    groups: dict[str, str]


Endpoint: TypeAlias = Callable[[Exchange], Departing]


def answered(exchange: Exchange, endpoint: Endpoint, *, sells: bool) -> Departing:
    """Let an endpoint answer; what it refuses becomes an error of the provider's.

    Endpoints that sell know the row before they ask for a fault; all others can fail at once.
    """
    service, record = exchange.service, exchange.record
    try:
        _check_key(exchange)
        if sells:
            return endpoint(exchange)
        record.digest = hashlib.sha256(exchange.arrived.body).hexdigest()
        fault = service.fault_for(record, exchange.arrived.body, asks=False)
        if fault is not None and (fault.kind in STATUS_FAULTS or fault.kind == "drop-before"):
            return refuse(service, record, fault)
        departing = endpoint(exchange)
    except Refused as refused:
        record.problem = str(refused)
        record.digest = record.digest or hashlib.sha256(exchange.arrived.body).hexdigest()
        return service.finish(record, error_reply(record.provider, refused))
    if fault is not None:
        if fault.kind in BODY_FAULTS:
            departing = damaged(departing.body, fault, record.provider)
        departing = connection_fault(departing, fault)
    return service.finish(record, departing, fault.kind if fault is not None else "")


def _check_key(exchange: Exchange) -> None:
    if exchange.record.operation == "files.upload":  # the place to send a file to was told to somebody with a key
        return
    headers, query = exchange.arrived.headers, exchange.arrived.query
    if exchange.record.provider == "google":
        key = headers.get("x-goog-api-key") or query.get("key", "")
    else:
        key = headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not key:
        kind = "forbidden" if exchange.record.provider == "google" else "unauthorized"
        raise Refused(kind, "You didn't provide an API key.")
    keys = exchange.service.script.keys
    if keys and key not in keys:
        raise Refused("key-invalid" if exchange.record.provider == "google" else "unauthorized")


def json_body(exchange: Exchange) -> Any:
    """Read the body as JSON.

    Raises:
        Refused: it is none.
    """
    try:
        return orjson.loads(exchange.arrived.body or b"{}")
    except ValueError:
        raise Refused("bad-request", "Invalid JSON payload received.") from None
