"""Selling one answer online: quota, fault, answer, damage, delivery, bill."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import orjson

from tests.llm.server.answers import Answer, answer_to
from tests.llm.server.error_replies import fault_reply
from tests.llm.server.made_replies import Question
from tests.llm.server.script import ANSWER_FAULTS, BODY_FAULTS, PLAIN_FAULTS, STATUS_FAULTS, TEXT_FAULTS, Fault
from tests.llm.server.service import Exchange, Service
from tests.llm.server.statistics import Record
from tests.llm.server.wire import Departing

# Writes an answer in a provider's protocol.
Encode: TypeAlias = Callable[[Question, Answer], dict[str, Any]]
_PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
_DEEP = 100_000
_JSON = ("content-type", "application/json")


def sell(exchange: Exchange, question: Question, encode: Encode) -> Departing:
    """Answer a question, or fail to, as the script has it."""
    service, record, script = exchange.service, exchange.record, exchange.service.script
    service.asked(record, question)
    fault = service.schedule.fault(record, exchange.arrived.body)
    if fault is not None and refuses(fault):
        return refuse(service, record, fault)
    answer = answer_to(question, fault, script, service.model)
    whole = encode(question, answer)
    if fault is None or fault.kind not in BODY_FAULTS:
        departing = Departing(200, [_JSON], encoded(whole))
    elif fault.kind in PLAIN_FAULTS:
        departing = damaged(encoded(whole), fault, question.provider)
    else:
        departing = Departing(200, [_JSON], encoded(damaged_value(whole, fault)))
    departing.delay = service.latency(question)
    if fault is not None:
        departing = connection_fault(departing, fault)
    good = is_good(fault)
    departing.on_work = lambda: service.statistics.sold(question, answer, good=good, record=record)
    return service.finish(record, departing, fault.kind if fault is not None else "")


def refuses(fault: Fault) -> bool:
    """Say whether nothing is worked on, nor sold, with a fault."""
    return fault.kind in STATUS_FAULTS or fault.kind == "drop-before"


def refuse(service: Service, record: Record, fault: Fault) -> Departing:
    """Answer with a fault that sells nothing."""
    if fault.kind == "drop-before":
        return service.finish(record, Departing(delay=fault.delay, cut="before"), fault.kind)
    departing = fault_reply(record.provider, fault)
    departing.delay = fault.delay
    return service.finish(record, departing, fault.kind, fault)


def is_good(fault: Fault | None) -> bool:
    """Say whether a client gets something it can use, so that asking again would be buying twice."""
    if fault is None or fault.kind in {"none", "stall", "drip", "no-usage", "says"}:
        return True
    return fault.kind not in ANSWER_FAULTS | BODY_FAULTS | TEXT_FAULTS and not fault.kind.startswith("drop")


def connection_fault(departing: Departing, fault: Fault) -> Departing:
    """Deliver a reply as a fault of the connection has it."""
    if fault.kind == "drip" and fault.delay is not None:
        pieces = departing.pieces or [departing.body[at : at + 64] for at in range(0, len(departing.body), 64)]
        departing.pieces, departing.pace = pieces, fault.delay / max(1, len(pieces))
    else:
        departing.delay = None if fault.delay is None else (departing.delay or 0.0) + fault.delay
    if fault.kind in {"drop-inside", "drop-after"}:
        departing.cut = "inside" if fault.kind == "drop-inside" else "after"
    return departing


def encoded(value: Any) -> bytes:
    """Write JSON, also JSON that a careful encoder refuses to write."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def damaged(body: bytes, fault: Fault, provider: str) -> Departing:
    """Damage a body, whatever it is."""
    match fault.kind:
        case "broken-json":
            return Departing(200, [_JSON], body[: len(body) * 2 // 3])
        case "empty-body":
            return Departing(200, [_JSON], b"")
        case "html-page":
            return Departing(200, [("content-type", "text/html")], _PAGE)
        case "deep-envelope":
            depth = fault.size or _DEEP
            return Departing(200, [_JSON], b'{"choices":' + b"[" * depth + b"]" * depth + b"}")
        case _:
            return replace(fault_reply(provider, Fault("server-error", text=fault.text)), status=200)


def damaged_value(whole: dict[str, Any], fault: Fault) -> dict[str, Any]:
    """Damage the JSON around an answer, leaving it JSON of a kind."""
    match fault.kind:
        case "no-usage":
            whole.pop("usage", None)
            whole.pop("usageMetadata", None)
        case "no-choices":
            for name in {"choices", "candidates", "output", "data"} & whole.keys():
                whole[name] = []
        case "null-content":
            for choice in whole.get("choices") or ():
                choice["message"]["content"] = None
    return whole
