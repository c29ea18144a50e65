"""A server that lies, hangs and breaks in every way of `lies`, and the real filter asking it.

Each lie is told to three runs in one folder: one with a budget (*budget*), the same again (*resume*), and one after
which the server is honest (*poison*), which has to judge every row. None may hang (each ends within its patience
+ 10 s, beyond what a run takes that is told no lie) or show a traceback or a key, each ends with an exit code that
fits the lie, and what the server sells, by its own count, is never more than the budget and what was under way.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from culturekit.core.errors import CultureKitError
from culturekit.llm.ledger import journals_below, latest_exchanges, read_ledger
from culturekit.llm.prices import known_prices
from tests.faults.asking_kills import ROOT
from tests.faults.lies import KEY, Lie, Mode, http
from tests.llm.server.answers import Answer, answer_to
from tests.llm.server.made_replies import Question
from tests.llm.server.openai_chat import chat_completion, chat_question
from tests.llm.server.script import Script

MODEL = "gpt-4o-mini"  # Of which the list knows what cached tokens cost

# US dollars: what pays about half of the rows, and what pays them all, whatever was claimed before
BUDGET, ENOUGH = 0.003, 50.0

ROWS, AT_ONCE = 60, 4
# Seconds for which a server may bring nothing, and those that a run may take on top of it
PATIENCE, HONEST_PATIENCE, ALLOWED = 4.0, 90.0, 10.0

SECONDS = " s"
TIMEOUT = 2.0
TOO_LONG = 180.0  # Seconds after which a run is killed


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
    """Find a port at which nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; the code is None where it had to be killed."""

    code: int | None
    seconds: float
    written: str


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one lie: how each run ended, and what is wrong with that."""

    mode: str
    runs: Sequence[Ended]
    usd: float
    wrong: tuple[str, ...]

    @property
    def only_slow(self) -> bool:
        """Say whether nothing is wrong but the time, as it may be on a machine that is at work on something else."""
        return bool(self.wrong) and all(each.endswith(SECONDS) for each in self.wrong)


def run_command(*arguments: str) -> Ended:
    """Run the command line."""
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT), "NO_PROXY": "*"}
    command = [sys.executable, "-m", "culturekit", *arguments]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, env=environment, cwd=ROOT, timeout=TOO_LONG)
    except subprocess.TimeoutExpired as error:
        return Ended(None, time.monotonic() - began, (error.stderr or b"").decode("utf-8", "replace"))
    written = (done.stdout + done.stderr).decode("utf-8", "replace")
    return Ended(done.returncode, time.monotonic() - began, written)


def filter_by(server: LyingServer, table: Path, out: Path, budget: float, *more: str, patience: float) -> Ended:
    """Run the filter against a server."""
    spec = f"openai:{MODEL}?base_url=http://127.0.0.1:{server.port}/v1&timeout={TIMEOUT:g}&patience={patience:g}"
    command = ["cspace", "filter", "--candidates", str(table), "--roots", "cuisine", "--llm", spec, "--out", str(out)]
    return run_command(*command, "--concurrency", str(AT_ONCE), "--budget", f"{budget:g}", *more)


def undisturbed(table: Path, out: Path) -> float:
    """Give the seconds of a run that is told no lie."""
    server = LyingServer(free_port())
    with listening(server):
        return filter_by(server, table, out, ENOUGH, patience=HONEST_PATIENCE).seconds


def lied_to(mode: Mode, folder: Path, table: Path, *, usual: float, patience: float = PATIENCE) -> Found:
    """Tell one lie to the filter, again, and then the truth; `usual` is how long it takes without lies.

    The truth is asked for whatever came before: replies of no use that are stored would stop a run.
    """
    server = LyingServer(free_port(), mode.lie, mode.billed)
    out = folder / "kept"
    runs: list[Ended] = []
    wrong: list[str] = []
    spent = 0.0
    more: tuple[str, ...] = ()
    for name, budget in (("budget", BUDGET), ("resume", BUDGET), ("poison", ENOUGH)):
        if name == "poison":
            server.lie, spent, patience, more = None, server.usd, HONEST_PATIENCE, ("--go-on",)
        if server.lie is None or mode.listens:
            with listening(server):
                runs.append(filter_by(server, table, out, budget, *more, patience=patience))
        else:
            runs.append(filter_by(server, table, out, budget, *more, patience=patience))
        codes = mode.after if name == "poison" else mode.codes
        wrong += problems(name, runs[-1], codes, longest=usual + patience + ALLOWED)
    if spent > BUDGET + AT_ONCE * server.dearest:
        wrong.append(f"budget: sold for ${spent:.4f}")
    wrong += [] if out.is_dir() else ["poison: no table"]
    wrong += unreadable(out if out.is_dir() else folder) + keys_in(folder)
    return Found(mode.name, runs, spent, tuple(wrong))


def problems(name: str, run: Ended, codes: frozenset[int], *, longest: float) -> Iterator[str]:
    """Say what is wrong with how a run ended."""
    if run.code is None:
        yield f"{name}: hung"
    elif run.seconds > longest:
        yield f"{name}: {run.seconds:.0f}{SECONDS}"
    if run.code is not None and run.code not in codes:
        yield f"{name}: exit {run.code}, not {'/'.join(map(str, sorted(codes)))}"
    if "Traceback" in run.written:
        yield f"{name}: traceback"
    if KEY in run.written:
        yield f"{name}: key shown"


def unreadable(folder: Path) -> list[str]:
    """Make sure that the journal can be looked into, as `llm cost` and `llm log` do."""
    try:
        places = journals_below([folder])
        total = read_ledger(places).total
        logged = sum(1 for place in places for _ in latest_exchanges(place.path, limit=10_000))
    except CultureKitError as error:
        return [f"journal: {error}"]
    return [] if logged == total.requests and total.usd >= 0.0 else ["journal: the sums are not those of the log"]


def keys_in(folder: Path) -> list[str]:
    """Look for the key in all that was written, as it is and in escapes, however often they were escaped again."""
    forms = KEY.encode(), b"".join(b"u%04x" % sign for sign in KEY.encode()), KEY.encode()[:12]
    files = [(path, path.read_bytes().replace(b"\\", b"").lower()) for path in folder.rglob("*") if path.is_file()]
    return [f"key in {path.name}" for path, content in files if any(form in content for form in forms)]
