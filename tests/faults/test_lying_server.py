"""A server that lies, hangs and breaks in every way of `lies`, and the real filter asking it.

Each lie is told to three runs in one folder: one with a budget (*budget*), the same again (*resume*), and one after
which the server is honest (*poison*), which has to judge every row. None may hang or show a traceback or a key, each
ends with an exit code that fits the lie, and what the server sells, by its own count, is never more than the budget and
what was under way.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from culturekit.core.errors import CultureKitError
from culturekit.llm.ledger import journals_below, latest_exchanges, read_ledger
from culturekit.llm.prices import known_prices
from tests.effort import THOROUGH
from tests.faults.asking_commands import dishes
from tests.faults.kill_and_resume import ROOT
from tests.faults.lies import KEY, MODES, Lie, Mode, http
from tests.llm.server.answers import Answer, Question, answer_to
from tests.llm.server.openai_protocol import chat_completion, chat_question
from tests.llm.server.script import Script

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
        """Answer until told to stop."""
        server = await asyncio.start_server(self.answer, sock=listening)
        await stop.wait()
        server.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request, reply to it, and close."""
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
        """Count what a reply costs, and the most that its request could have cost."""
        price = next(known for known in known_prices() if known.model == MODEL)
        self.asked += 1
        self.dearest = max(self.dearest, ((size + 512) * price.input + question.max_tokens * price.output) / 1e6)
        if self.lie is None or self.billed:
            self.usd += (answer.input_tokens * price.input + answer.output_tokens * price.output) / 1e6


@contextmanager
def listening(server: LyingServer) -> Iterator[None]:
    """Let a server listen at its port for a block."""
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
    """Run the filter against a server; give its exit code, None where it hung, and what it wrote."""
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
