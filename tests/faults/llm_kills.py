"""Kill a process that buys replies, with SIGKILL at random moments, and count what the seller sold twice.

`python -m tests.faults.llm_kills --kills 500` ends with 0 when every run that was killed and resumed gave the answers
of an undisturbed one, and no kill cost more replies than were under way when it came. The server is a process of its
own; the asking processes are forked from this one, which has imported everything, so that kills come thick.
"""

import argparse
import json
import math
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from culturekit.llm.client import Client, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.openai_client import openai_sdk
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import FILE
from tests.llm.questions import Verdict, question
from tests.llm.server.running import RunningServer, server_process
from tests.llm.server.script import Fault, Rule, Script, When

ROWS = 300
CONCURRENCY = 16
RUN = "killed"

# Some rows need a repair, some are refused, some fail at first; what they end in does not depend on attempts.
SCRIPT = Script(
    rules=(
        Rule(Fault("none"), When(contains="could not be used")),
        Rule(Fault("prose"), When(share=0.1, salt="repaired")),
        Rule(Fault("refusal"), When(share=0.05, salt="refused")),
        Rule(Fault("server-error"), When(share=0.03, salt="failing", attempts=(1, 1))),
        Rule(Fault("busy", hint="retry-after-ms", wait=0.05), When(share=0.03, salt="busy", attempts=(1, 1))),
    ),
    latency=0.02,
    jitter=0.02,
)


@dataclass
class Result:
    """What came of it.

    `lost` has, for each kill, how many replies the seller had counted by then that are not on disk; `never_kept`
    counts those of finished rounds, with what reached the seller after a kill was counted. `twice` counts what the
    seller sold a second time, over all kills; `calm_twice` the same without any.
    """

    kills: int = 0
    rounds: int = 0
    twice: int = 0
    never_kept: int = 0
    calm_twice: int = 0
    lost: list[int] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def requests() -> list[Request]:
    """Give the questions, each about a row of its own."""
    return [
        question(data={"id": f"Q{number}", "label": f"dish {number}"}, allowed={"id": (f"Q{number}",)})
        for number in range(ROWS)
    ]


def ask(url: str, folder: Path, *, concurrency: int) -> None:
    """Ask everything through the engine, and leave the answers in a file."""
    client = CLIENTS.make(f"openai:model-{folder.name}?base_url={url}&price=0.15/0.60&timeout=600")
    assert isinstance(client, Client)
    with Journal(folder / "journal") as journal:
        engine = AskEngine(client, journal, AskOptions(concurrency=concurrency), run=RUN)
        lines = [
            json.dumps([answered.outcome, verdict_of(answered.value), answered.detail, answered.raw])
            for answered in engine.ask_all(requests())
        ]
    (folder / "answers.partial").write_text("\n".join(lines), encoding="utf-8")
    (folder / "answers.partial").rename(folder / "answers")


def verdict_of(value: object) -> str | None:
    """Give what was said of a row."""
    return value.verdict if isinstance(value, Verdict) else None


def start(url: str, folder: Path, *, concurrency: int = CONCURRENCY) -> int:
    """Fork a process that asks; give its id."""
    process = os.fork()
    if process:
        return process
    try:
        ask(url, folder, concurrency=concurrency)
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def killed_within(process: int, seconds: float) -> bool:
    """Kill a forked process after some seconds; False when it had ended well before the kill was delivered."""
    until = time.monotonic() + seconds
    while (found := os.waitpid(process, os.WNOHANG)) == (0, 0):
        if time.monotonic() >= until:
            os.kill(process, signal.SIGKILL)
            found = os.waitpid(process, 0)
            break
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(found[1])
    if code not in {0, -signal.SIGKILL}:
        raise RuntimeError(f"the asking process ended with {code}")
    return code != 0


def sold(server: RunningServer) -> int:
    """Count the replies that the seller bills, with those that a killed process had asked for and never read."""
    server.settled()
    return sum(record.billed for record in server.records())


def bought_twice(server: RunningServer) -> int:
    """Count the good replies that the seller sold for a question that had one already."""
    times = Counter(record.digest for record in server.records() if record.good)
    return times.total() - len(times)


def journalled(folder: Path) -> int:
    """Count the replies that a killed process left on disk."""
    path = folder / "journal" / FILE
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        try:
            (count,) = connection.execute("SELECT count(*) FROM replies WHERE kind = 'reply'").fetchone()
        except sqlite3.OperationalError:  # killed before there was a table
            return 0
    return int(count)


def kill_and_count(scratch: Path, *, kills: int, seed: int, longest: float) -> Result:
    """Kill and resume until enough kills hit a process at work, and compare each finished run."""
    openai_sdk()
    chance = random.Random(seed)
    result = Result()
    with server_process(SCRIPT) as server, server_process(SCRIPT) as calm_server:
        while result.kills < kills:
            folder, calm = (scratch / name / f"round-{result.rounds}" for name in ("killed", "calm"))
            folder.mkdir(parents=True)
            calm.mkdir(parents=True)
            one_round(server, folder, result, chance=chance, kills=kills, longest=longest)
            assert not killed_within(start(calm_server.openai_url, calm, concurrency=chance.choice((4, 256))), math.inf)
            if (folder / "answers").read_bytes() != (calm / "answers").read_bytes():
                result.different.append(folder.name)
            result.rounds += 1
        result.twice, result.calm_twice = bought_twice(server), bought_twice(calm_server)
        result.broken = server.stats()["broken"]
    return result


def one_round(
    server: RunningServer, folder: Path, result: Result, *, chance: random.Random, kills: int, longest: float
) -> None:
    """Ask a set of questions to its end, with kills on the way."""
    before, lost = sold(server), 0
    while True:
        process = start(server.openai_url, folder)
        if not killed_within(process, chance.uniform(0.0, longest) if result.kills < kills else math.inf):
            result.never_kept += sold(server) - before - journalled(folder)
            return
        result.kills += 1
        lost_by_now = sold(server) - before - journalled(folder)
        result.lost.append(lost_by_now - lost)
        lost = lost_by_now


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.6, help="seconds until a kill, at most")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(Path(folder), kills=arguments.kills, seed=arguments.seed, longest=arguments.longest)
    most = max(result.lost, default=0)
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds of {ROWS} rows; {CONCURRENCY} at once\n"
        f"lost by kills: {result.never_kept} replies, {most} at most by one; bought twice: {result.twice}\n"
        f"{len(result.different)} runs with other answers; {len(result.broken)} mistakes of the server\n"
    )
    under_way = CONCURRENCY * result.kills
    fair = 0 <= result.twice <= result.never_kept <= under_way and result.calm_twice == 0
    return 0 if fair and not result.different and not result.broken else 1


if __name__ == "__main__":
    sys.exit(main())
