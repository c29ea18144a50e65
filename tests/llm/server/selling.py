"""Selling one answer online: quota, fault, answer, damage, delivery, bill."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from tests.llm.server.answers import Answer, answer_to
from tests.llm.server.error_replies import fault_reply
from tests.llm.server.made_replies import Question
from tests.llm.server.script import ANSWER_FAULTS, BODY_FAULTS, PLAIN_FAULTS, STATUS_FAULTS, TEXT_FAULTS, Fault
from tests.llm.server.service import Service
from tests.llm.server.statistics import Record
from tests.llm.server.wire import Departing

# Writes an answer in a provider's protocol.
Encode = Callable[[Question, Answer], dict[str, Any]]
_PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
_DEEP = 100_000
_JSON = ("content-type", "application/json")


def sell(service: Service, record: Record, question: Question, body: bytes, encode: Encode) -> Departing:
    """Answer a question, or fail to, as script and quota have it."""
    service.asked(record, question)
    fault = service.fault_for(record, body, asks=True)
    if fault is not None and (fault.kind in STATUS_FAULTS or fault.kind == "drop-before"):
        return refuse(service, record, fault)
    answer = answer_to(question, fault, service.script, service.model)
    allowance = service.allowance(question, answer.output_tokens)
    if allowance is not None and not allowance.granted:
        assert service.script.quota is not None
        told = Fault(
            "busy", service.script.quota.hint, allowance.wait, text=f"Rate limit reached for {allowance.kind}."
        )
        if question.provider == "google" and told.hint == "retry-after-ms":
            told = Fault("busy", "retry-info", allowance.wait, text=told.text)
        departing = fault_reply(question.provider, told)
        return service.finish(record, departing, "quota", told)
    departing = _written(service, question, answer, fault, encode)
    good = is_good(fault)
    departing.on_work = lambda: service.statistics.sold(record, question, answer, good=good)
    return service.finish(record, departing, fault.kind if fault is not None else "")


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


def _written(service: Service, question: Question, answer: Answer, fault: Fault | None, encode: Encode) -> Departing:
    whole = encode(question, answer)
    if fault is not None and fault.kind in BODY_FAULTS:
        departing = _damaged_value(whole, fault, question.provider)
    else:
        departing = Departing(200, [_JSON], encoded(whole))
    departing.delay = service.latency(question)
    return departing if fault is None else connection_fault(departing, fault)


def connection_fault(departing: Departing, fault: Fault) -> Departing:
    """Deliver a reply as a fault of the connection has it."""
    if fault.delay is None or fault.kind == "stall":
        departing.delay = None if fault.delay is None else (departing.delay or 0.0) + fault.delay
    elif fault.kind == "drip":
        pieces = departing.pieces or [departing.body[at : at + 64] for at in range(0, len(departing.body), 64)]
        departing.pieces, departing.pace = pieces, fault.delay / max(1, len(pieces))
    else:
        departing.delay = (departing.delay or 0.0) + fault.delay
    if fault.kind == "drop-inside":
        departing.cut = "inside"
    elif fault.kind == "drop-after":
        departing.cut = "after"
    return departing


def encoded(value: Any) -> bytes:
    """Write JSON, also JSON that a careful encoder refuses to write."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def _damaged_value(whole: dict[str, Any], fault: Fault, provider: str) -> Departing:
    if fault.kind in PLAIN_FAULTS:
        return damaged(encoded(whole), fault, provider)
    return Departing(200, [_JSON], encoded(damaged_value(whole, fault)))


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
        case "nan-envelope":
            for choice in whole.get("choices") or whole.get("candidates") or [whole]:
                choice["avgLogprobs"] = float("nan")
        case "null-content":
            _change_text(whole, lambda text: None)
        case "surrogate-envelope":
            _change_text(whole, lambda text: f"{text} \ud83d")
    return whole


def _change_text(whole: dict[str, Any], change: Callable[[str], str | None]) -> None:
    for choice in whole.get("choices") or ():
        choice["message"]["content"] = change(choice["message"]["content"] or "")
    for candidate in whole.get("candidates") or ():
        for part in candidate.get("content", {}).get("parts") or ():
            part["text"] = change(part["text"])
    for item in whole.get("output") or ():
        for part in item.get("content") or ():
            part["text"] = change(part.get("text") or "")
