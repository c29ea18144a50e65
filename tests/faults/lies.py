"""Ways in which a server can lie, hang and break, each with how a run against it may end.

A lie is what goes over the wire in place of an honest reply: bytes to send, and seconds to wait between them. The
connection is closed behind it.
"""

import gzip
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any, TypeAlias

Lie: TypeAlias = Callable[[dict[str, Any]], Iterable[bytes | float]]  # From the honest reply to what is sent instead

# Exit codes: done; done or stopped, and a person must look; the user's to mend; nobody answers; the budget ended
FINE, WAITING, STOPPED, AWAY, POOR = 0, 1, 2, 3, 5

PAID = frozenset({FINE, POOR})
USELESS = frozenset({FINE, WAITING, POOR})
NOTHING = frozenset({AWAY, POOR})  # Nothing that came is a reply; it may have been billed all the same

REFUSED = frozenset({STOPPED, AWAY})
DRIP = 0.3  # Seconds between dripped bytes: each by itself is in time


@dataclass(frozen=True, slots=True)
class Mode:
    """A lie; `codes` are how a run may end while it is told, `after` how it may end once the server is honest.

    `billed` says whether the server charges for such a reply; without `listens` nobody takes the connection.
    """

    name: str
    lie: Lie
    codes: frozenset[int] = PAID
    after: frozenset[int] = frozenset({FINE})
    billed: bool = True
    listens: bool = True


def http(body: bytes, *headers: str, status: str = "200 OK", length: object = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", "connection: close", *headers]
    lines.append(f"content-length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def plain(change: Callable[[dict[str, Any]], object]) -> Lie:
    """Change the reply, in place or to another value, and send it as if nothing were wrong."""

    def lie(reply: dict[str, Any]) -> Iterator[bytes]:
        changed = deepcopy(reply)
        other = change(changed)
        yield http(json.dumps(changed if other is None else other).encode())

    return lie


def usage(**counts: object) -> Lie:
    """State other counts; those of details go by the name of what they are details of."""
    return plain(lambda reply: reply["usage"].update(counts))


def whole_usage(value: object) -> Lie:
    return plain(lambda reply: reply.update(usage=value))


def raw(change: Callable[[bytes], bytes]) -> Lie:
    return lambda reply: [http(change(json.dumps(reply).encode()))]


def text(change: Callable[[str], object]) -> Lie:
    """Say something else; what is said is JSON of an id and a verdict."""

    def changed(reply: dict[str, Any]) -> None:
        message = reply["choices"][0]["message"]
        message["content"] = change(message["content"])

    return plain(changed)


def head(*headers: str, status: str = "200 OK", length: object = None) -> Lie:
    return lambda reply: [http(json.dumps(reply).encode(), *headers, status=status, length=length)]


def bare(*parts: bytes | float) -> Lie:
    """Send these bytes, whatever was asked."""
    return lambda _: parts


def error(status: str, *headers: str, code: str = "rate_limit_exceeded", **more: object) -> Lie:
    body = {"error": {"message": "no", "type": "requests", "code": code, **more}}
    return lambda _: [http(json.dumps(body).encode(), *headers, status=status)]


def moved(status: str, address: str) -> Lie:
    return error(status, f"location: {address}", code="moved")


def dripped(reply: dict[str, Any]) -> Iterator[bytes | float]:
    """Send an honest reply so slowly that it never ends."""
    for byte in http(json.dumps(reply).encode()):
        yield bytes([byte])
        yield DRIP


def dripped_head(_: Mapping[str, Any]) -> Iterator[bytes | float]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"x-more: yes\r\n"
        yield DRIP


def endless_space(_: Mapping[str, Any]) -> Iterator[bytes | float]:
    """Send white space until the other side has had enough."""
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    piece = b" " * 65536
    while True:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
        yield 0.001


@cache
def zipped(times: int) -> bytes:
    """Compress 200 MB of zeros, more than once."""
    body = gzip.compress(b"0" * 200_000_000, 9)
    for _ in range(times - 1):
        body = gzip.compress(body, 9)
    return body


def twice_written(key: str, value: str) -> Lie:
    """Write a key of the outer reply twice, the second time with every letter as an escape."""
    again = "".join(f"\\u{ord(letter):04x}" for letter in key)
    return raw(lambda body: body[:-1] + f',"{again}":{value}}}'.encode())


def escaped_key(words: str) -> str:
    """Echo the key of the client with every character as an escape, in a label that is kept."""
    return words.replace('"id"', '"note":"' + "".join(f"\\u{ord(sign):04x}" for sign in KEY) + '","id"')


KEY = "sk-of-nobody-0123456789"
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1000000000s"}
LONG = "x" * 10_000_000
DEEP = 100_000
HUGE = 10**15
MANY_DIGITS = b'"prompt_tokens": ' + b"9" * 10_000
FIRST = "prompt_tokens_details"
LATER = "completion_tokens_details"

USAGE = (
    Mode("cached above prompt", usage(**{FIRST: {"cached_tokens": 100_000}})),
    Mode("cached 1e18", usage(**{FIRST: {"cached_tokens": 10**18}})),
    Mode("cached negative", usage(**{FIRST: {"cached_tokens": -100_000}})),
    Mode("cached text", usage(**{FIRST: {"cached_tokens": "all"}})),
    Mode("details are a text", usage(**{FIRST: "none", LATER: "none"})),
    Mode("details are lists", usage(**{FIRST: [1], LATER: [[2]]})),
    Mode("counts null", usage(prompt_tokens=None, completion_tokens=None, total_tokens=None)),
    Mode("counts negative", usage(prompt_tokens=-400, completion_tokens=-20, total_tokens=-420)),
    Mode("counts with a point", usage(prompt_tokens=400.0, completion_tokens=20.0, total_tokens=420.0)),
    Mode("counts as texts", usage(prompt_tokens="400", completion_tokens="20", total_tokens="420")),
    Mode("counts true and false", usage(prompt_tokens=True, completion_tokens=False)),
    Mode("counts are objects", usage(prompt_tokens={"n": 4}, completion_tokens=[4])),
    Mode("counts zero", usage(prompt_tokens=0, completion_tokens=0, total_tokens=0)),
    Mode("counts one", usage(prompt_tokens=1, completion_tokens=1, total_tokens=2)),
    Mode("prompt 1e15", usage(prompt_tokens=HUGE)),
    Mode("prompt 1e30", usage(prompt_tokens=10**30)),
    Mode("prompt -1 unsigned", usage(prompt_tokens=2**64 - 1)),
    Mode("completion 1e15", usage(completion_tokens=HUGE)),
    Mode("everything 1e18", usage(prompt_tokens=10**18, completion_tokens=10**18, total_tokens=10**18)),
    Mode("prompt of a million", usage(prompt_tokens=1_000_000)),
    Mode("thought above completion", usage(**{LATER: {"reasoning_tokens": 5_000}})),
    Mode("thought 1e18", usage(**{LATER: {"reasoning_tokens": 10**18}})),
    Mode("total disagrees", usage(total_tokens=1_000_000)),
    Mode("only a total", whole_usage({"total_tokens": 420})),
    Mode("no usage", plain(lambda reply: reply.pop("usage") and None)),
    Mode("usage null", whole_usage(None)),
    Mode("usage empty", whole_usage({})),
    Mode("usage a list", whole_usage([400, 20])),
    Mode("usage a text", whole_usage("free of charge")),
    Mode("usage NaN", usage(prompt_tokens=math.nan), codes=NOTHING),
    Mode("usage infinite", raw(lambda body: body.replace(b'"prompt_tokens": ', b'"prompt_tokens": 1e999')), NOTHING),
    Mode("usage of 10,000 digits", raw(lambda body: body.replace(b'"prompt_tokens": ', MANY_DIGITS)), NOTHING | PAID),
    Mode("usage twice", raw(lambda body: body[:-1] + b',"usage":{"prompt_tokens":1,"completion_tokens":1}}'), NOTHING),
)  # fmt: skip

BODIES = (
    Mode("outer key twice", raw(lambda body: body[:-1] + b',"choices":[]}'), NOTHING),
    Mode("outer key twice, escaped", twice_written("choices", "[]"), NOTHING),
    Mode("empty body", bare(http(b"")), NOTHING),
    Mode("page", bare(http(b"<html>busy</html>")), NOTHING),
    Mode("cut JSON", raw(lambda body: body[: len(body) // 2]), NOTHING),
    Mode("null", bare(http(b"null")), NOTHING),
    Mode("deep envelope", bare(http(b'{"choices":' + b"[" * DEEP + b"]" * DEEP + b"}")), NOTHING),
    Mode("NaN in the envelope", raw(lambda body: body.replace(b'"created": ', b'"created": NaN, "was": ')), NOTHING),
    Mode("half a pair", raw(lambda body: body.replace(b'"model": "', b'"model": "\\ud83d')), NOTHING),
    Mode("not UTF-8", raw(lambda body: body.replace(b'"model": "', b'"model": "\xff\xfe')), NOTHING),
    Mode("choices an object", plain(lambda reply: reply.update(choices={"0": reply["choices"][0]})), NOTHING),
    Mode("message a text", plain(lambda reply: reply["choices"][0].update(message="keep")), NOTHING),
    Mode("model of 10 MB", plain(lambda reply: reply.update(model=LONG)), PAID | NOTHING),
    Mode("error in 200", bare(http(b'{"error":{"message":"later","code":"server_error"}}')), NOTHING),
    Mode("error without end in 200", bare(http(json.dumps({"error": LONG}).encode())), NOTHING),
    Mode("content a number", text(lambda _: 7), USELESS, USELESS),
    Mode("content null", text(lambda _: None), USELESS, USELESS),
    Mode("fences", text(lambda reply: f"```json\n{reply}\n```"), USELESS, USELESS),
    Mode("wrong ids", text(lambda reply: reply.replace('"Q', '"Q9')), USELESS, USELESS),
    Mode("inner key twice", text(lambda reply: reply[:-1] + ',"verdict":"drop"}'), USELESS, USELESS),
    Mode("inner key escaped", text(lambda reply: reply.replace('"verdict"', '"\\u0076erdict"'))),
    Mode("inner NaN", text(lambda reply: reply[:-1] + ',"more":NaN}'), USELESS, USELESS),
    Mode("inner depth", text(lambda _: "[" * DEEP + "]" * DEEP), USELESS, USELESS),
    Mode("string of 10 MB", text(lambda reply: reply[:-1] + f',"why":"{LONG}"}}'), USELESS, USELESS),
    Mode("white space of 1 MB", text(lambda _: "{" + " \n" * 500_000), USELESS, USELESS),
    Mode("prose", text(lambda _: "Surely a dish."), USELESS, USELESS),
    Mode("key of the client, escaped", text(escaped_key), USELESS, USELESS),
)

HEADS = (
    Mode("length too long", head(length=99_999), NOTHING),
    Mode("length too short", head(length=20), NOTHING),
    Mode("length negative", head(length=-5), NOTHING | PAID),
    Mode("length a word", head(length="many"), NOTHING | PAID),
    Mode("two lengths", head("content-length: 7"), NOTHING | PAID),
    Mode("header of 2 MB", head("x-long: " + "y" * 2_000_000), NOTHING | PAID),
    Mode("10,000 headers", head(*(f"x-{number}: y" for number in range(10_000))), NOTHING | PAID),
    Mode("header without a name", head(": nothing"), NOTHING | PAID),
    Mode("no HTTP", bare(b"SSH-2.0-OpenSSH_9.6\r\n"), NOTHING),
    Mode("status 999", head(status="999 Beyond"), NOTHING | USELESS),
    Mode("status of ten digits", bare(b"HTTP/1.1 2000000000 OK\r\n\r\n"), NOTHING),
    Mode("no content", bare(http(b"", status="204 No Content")), NOTHING),
    Mode("continue for ever", lambda _: cycle((b"HTTP/1.1 100 Continue\r\n\r\n", 0.05)), NOTHING),
    Mode("not gzip", head("content-encoding: gzip"), NOTHING),
    Mode("gzip bomb", lambda _: [http(zipped(1), "content-encoding: gzip")], NOTHING),
    Mode("gzip in gzip", lambda _: [http(zipped(2), "content-encoding: gzip, gzip")], NOTHING),
    Mode("unknown encoding", head("content-encoding: zz-top"), NOTHING | PAID),
)

REFUSALS = (
    Mode("Retry-After a day", error("429 Busy", "retry-after: 86400"), NOTHING, billed=False),
    Mode("Retry-After 1e9", error("429 Busy", "retry-after: 1000000000"), NOTHING, billed=False),
    Mode("Retry-After negative", error("429 Busy", "retry-after: -1"), NOTHING, billed=False),
    Mode("Retry-After NaN", error("429 Busy", "retry-after: nan"), NOTHING, billed=False),
    Mode("Retry-After 1e308", error("429 Busy", "retry-after: 1e308"), NOTHING, billed=False),
    Mode("Retry-After in 9999", error("429 Busy", "retry-after: Fri, 31 Dec 9999 23:59:59 GMT"), NOTHING, billed=False),
    Mode("Retry-After no date", error("503 Busy", "retry-after: soon"), NOTHING, billed=False),
    Mode("retry-after-ms 1e15", error("503 Busy", f"retry-after-ms: {HUGE}"), NOTHING, billed=False),
    Mode("RetryInfo of 1e9", error("429 Busy", details=[RETRY_INFO]), NOTHING, billed=False),
    Mode("Retry-After beside a reply", head("retry-after: 86400")),
    Mode("redirect inwards", moved("302 Found", "http://169.254.169.254/"), REFUSED, billed=False),
    Mode("redirect in a circle", moved("307 Again", "/v1/chat/completions"), REFUSED, billed=False),
    Mode("500", error("500 Oops", code="server_error"), NOTHING, billed=False),
    Mode("no credit", error("402 Pay", code="insufficient_quota"), REFUSED, billed=False),
    Mode("wrong key", error("401 Who", code="invalid_api_key"), REFUSED, billed=False),
    Mode("error code 1e30", error("500 Oops", code=10**30), NOTHING, billed=False),  # type: ignore[arg-type]
)  # fmt: skip

CONNECTIONS = (
    Mode("silence", bare(math.inf), NOTHING),
    Mode("dripped", dripped, NOTHING),
    Mode("dripped head", dripped_head, NOTHING),
    Mode("white space without end", endless_space, NOTHING),
    Mode("closed at once", bare(), NOTHING),
    Mode("closed inside", lambda reply: [http(json.dumps(reply).encode())[:-40]], NOTHING),
    Mode("half, then silence", lambda reply: [http(json.dumps(reply).encode())[:-40], math.inf], NOTHING),
    Mode("broken chunks", bare(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n"), NOTHING),
    Mode("nobody listens", bare(), NOTHING, billed=False, listens=False),
)

MODES = {mode.name: mode for mode in (*USAGE, *BODIES, *HEADS, *REFUSALS, *CONNECTIONS)}
