"""Ways in which a server can lie, hang and break, each with how a run against it may end.

A lie is what goes over the wire in place of an honest reply: bytes to send, and seconds to wait between them. The
connection is closed behind it.
"""

import asyncio
import gzip
import json
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from culturekit.core.errors import CultureKitError
from culturekit.llm.ledger import journals_below, latest_exchanges, read_ledger
from culturekit.llm.prices import known_prices
from tests.effort import THOROUGH
from tests.faults.asking_commands import dishes
from tests.faults.kill_and_resume import ROOT
from tests.llm.server.answers import Answer, Question, answer_to
from tests.llm.server.openai_protocol import chat_completion, chat_question
from tests.llm.server.script import Script

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
    return lambda _: parts


def error(status: str, *headers: str, code: str = "rate_limit_exceeded", **more: object) -> Lie:
    body = {"error": {"message": "no", "type": "requests", "code": code, **more}}
    return lambda _: [http(json.dumps(body).encode(), *headers, status=status)]


def moved(status: str, address: str) -> Lie:
    return error(status, f"location: {address}", code="moved")


def dripped(reply: dict[str, Any]) -> Iterator[bytes | float]:
    for byte in http(json.dumps(reply).encode()):
        yield bytes([byte])
        yield DRIP


def dripped_head(_: Mapping[str, Any]) -> Iterator[bytes | float]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"x-more: yes\r\n"
        yield DRIP


def endless_space(_: Mapping[str, Any]) -> Iterator[bytes | float]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    piece = b" " * 65536
    while True:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
        yield 0.001


@cache
def zipped(times: int) -> bytes:
    body = gzip.compress(b"0" * 200_000_000, 9)
    for _ in range(times - 1):
        body = gzip.compress(body, 9)
    return body


def twice_written(key: str, value: str) -> Lie:
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


MODEL = "gpt-4o-mini"  # Of which the list knows what cached tokens cost

# US dollars: what pays about half of the rows, and what pays them all, whatever was claimed before
BUDGET, ENOUGH = 0.003, 50.0

ROWS, AT_ONCE = 60, 4
# Seconds for which a server may bring nothing, at all and to one request
PATIENCE, HONEST_PATIENCE, TIMEOUT = 30.0, 90.0, 2.0
TOO_LONG = 180.0  # Seconds after which a run hangs, and is killed


@dataclass
class LyingServer:
    """Tells a lie for as long as it has one; `usd` is what it sold, counted honestly, `dearest` one request's worst."""

    port: int
    lie: Lie | None = None
    billed: bool = True
    usd: float = 0.0
    dearest: float = 0.0
    asked: int = 0
    held: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self.answer, sock=listening)
        await stop.wait()
        server.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            size = int(head.split("content-length:")[1].split("\r\n")[0])
            question = chat_question(json.loads(await reader.readexactly(size)))
            answer = answer_to(question, None, Script(), None)
            self.sell(question, answer, size)
            reply = chat_completion(question, answer)
            parts = [http(json.dumps(reply).encode())] if self.lie is None else self.lie(reply)
            for part in parts:
                if isinstance(part, bytes):
                    writer.write(part)
                    await writer.drain()
                else:
                    await asyncio.sleep(min(part, TOO_LONG))
        writer.close()

    def sell(self, question: Question, answer: Answer, size: int) -> None:
        price = next(known for known in known_prices() if known.model == MODEL)
        self.asked += 1
        self.dearest = max(self.dearest, ((size + 512) * price.input + question.max_tokens * price.output) / 1e6)
        if self.lie is None or self.billed:
            self.usd += (answer.input_tokens * price.input + answer.output_tokens * price.output) / 1e6


@contextmanager
def listening(server: LyingServer) -> Iterator[None]:
    taken = socket.create_server(("127.0.0.1", server.port), backlog=64)
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        loop.run_until_complete(server.serve(taken, stop))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


def filter_by(server: LyingServer, table: Path, out: Path, budget: float, *more: str) -> tuple[int | None, str]:
    patience = PATIENCE if server.lie else HONEST_PATIENCE
    spec = f"openai:{MODEL}?base_url=http://127.0.0.1:{server.port}/v1&timeout={TIMEOUT:g}&patience={patience:g}"
    command = [
        sys.executable, "-m", "culturekit", "cspace", "filter", "--candidates", str(table), "--roots", "cuisine",
        "--llm", spec, "--out", str(out), "--concurrency", str(AT_ONCE), "--budget", f"{budget:g}", *more,
    ]  # fmt: skip
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT), "NO_PROXY": "*"}
    try:
        done = subprocess.run(command, capture_output=True, env=environment, cwd=ROOT, timeout=TOO_LONG)
    except subprocess.TimeoutExpired as error:
        return None, (error.stderr or b"").decode("utf-8", "replace")
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def wrong_with(mode: Mode, folder: Path) -> list[str]:
    """Tell one lie to the filter, again, and then the truth; say what is wrong with what came of it.

    The truth is asked for whatever came before: replies of no use that are stored would stop a run.
    """
    table, kept = dishes(folder / "candidates", ROWS), folder / "told/kept"
    server = LyingServer(free_port(), mode.lie, mode.billed)
    wrong: list[str] = []
    for name in ("budget", "resume"):
        with listening(server) if mode.listens else nullcontext():
            wrong += problems(name, *filter_by(server, table, kept, BUDGET), mode.codes)
    if server.usd > BUDGET + AT_ONCE * server.dearest:
        wrong.append(f"budget: sold for ${server.usd:.4f}")
    server.lie = None
    with listening(server):
        wrong += problems("poison", *filter_by(server, table, kept, ENOUGH, "--go-on"), mode.after)
    wrong += [] if kept.is_dir() else ["poison: no table"]
    return wrong + unreadable(kept if kept.is_dir() else kept.parent) + keys_in(kept.parent)


def problems(name: str, code: int | None, written: str, codes: frozenset[int]) -> Iterator[str]:
    if code is None:
        yield f"{name}: hung"
    elif code not in codes:
        yield f"{name}: exit {code}, not {'/'.join(map(str, sorted(codes)))}"
    if "Traceback" in written:
        yield f"{name}: traceback"
    if KEY in written:
        yield f"{name}: key shown"


def unreadable(folder: Path) -> list[str]:
    """Make sure that the journal can be looked into, as `llm cost` and `llm log` do."""
    try:
        places = journals_below([folder])
        total = read_ledger(places).total
        logged = sum(1 for position in places for _ in latest_exchanges(position.path, limit=10_000))
    except CultureKitError as error:
        return [f"journal: {error}"]
    return [] if logged == total.requests and total.usd >= 0.0 else ["journal: the sums are not those of the log"]


def keys_in(folder: Path) -> list[str]:
    """Look for the key in all that was written, as it is and in escapes, however often they were escaped again."""
    forms = KEY.encode(), b"".join(b"u%04x" % sign for sign in KEY.encode()), KEY.encode()[:12]
    files = [(path, path.read_bytes().replace(b"\\", b"").lower()) for path in folder.rglob("*") if path.is_file()]
    return [f"key in {path.name}" for path, content in files if any(form in content for form in forms)]


# One that believed numbers made cheaper than nothing, and one that no journal could hold; a thorough run tells all
QUICK = ["cached 1e18", "prompt 1e15"]
OTHERS = [name for name in MODES if name not in QUICK]


@pytest.mark.parametrize(("code", "written", "shown"), [
    (0, "done", []), (None, "", ["budget: hung"]),
    (1, "Traceback (most recent call last)", ["budget: exit 1, not 0/5", "budget: traceback"]),
    (5, f"the key {KEY} was refused", ["budget: key shown"]),
])  # fmt: skip
def test_what_is_wrong_with_the_end_of_a_run_is_told(code: int | None, written: str, shown: list[str]) -> None:
    assert list(problems("budget", code, written, frozenset({0, 5}))) == shown


def escaped(form: str) -> str:
    return "".join(form.format(ord(sign)) for sign in KEY)


@pytest.mark.parametrize("form", [KEY, KEY[:20], escaped("\\u{:04x}"), escaped("\\\\u{:04X}")])
def test_a_key_that_was_written_is_found(form: str, tmp_path: Path) -> None:
    (tmp_path / "harmless.txt").write_text("done", encoding="utf-8")
    assert keys_in(tmp_path) == []
    (tmp_path / "log.txt").write_text(f"asked with {form}", encoding="utf-8")
    assert keys_in(tmp_path) == ["key in log.txt"]


@pytest.mark.parametrize("name", [
    *(pytest.param(name, marks=pytest.mark.endtoend) for name in QUICK),
    *(pytest.param(name, marks=pytest.mark.slow) for name in (OTHERS if THOROUGH else OTHERS[::24])),
])  # fmt: skip
def test_a_lie_costs_no_more_than_the_budget_and_poisons_nothing(name: str, tmp_path: Path) -> None:
    assert len(MODES) >= 100
    assert wrong_with(MODES[name], tmp_path) == []
