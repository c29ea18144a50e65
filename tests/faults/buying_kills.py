"""Kill a process that buys replies or images, with SIGKILL at random moments, and count what the seller sold twice.

`python -m tests.faults.buying_kills replies --kills 500` ends with 0 when every run that was killed and resumed gave
the answers of an undisturbed one, and no kill cost more replies than were under way when it came. The server is a
process of its own; those that buy are forked from this one, which has imported everything and never uses polars itself:
its threads do not outlive a fork.
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
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from culturekit.generation.runner import ImagePlan
from culturekit.generation.services.image_client import IMAGE_SERVICES
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Client
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.google_client import google_sdk
from culturekit.llm.clients.openai_client import openai_sdk
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import FILE
from tests.generation.services.paid_images import buy, google, images_of, openai
from tests.llm.questions import Verdict, question
from tests.llm.server.running import RunningServer, server_process
from tests.llm.server.script import Fault, Pictures, Rule, Script, When

CONCURRENCY = 16


def ask(server: RunningServer, folder: Path, rows: int, concurrency: int) -> str:
    """Ask about rows through the engine; give the answers."""
    client = CLIENTS.make(f"openai:model-{folder.name}?base_url={server.openai_url}&price=0.15/0.60&timeout=600")
    assert isinstance(client, Client)
    requests = [
        question(data={"id": f"Q{number}", "label": f"dish {number}"}, allowed={"id": (f"Q{number}",)})
        for number in range(rows)
    ]
    with Journal(folder / "journal") as journal:
        engine = AskEngine(client, journal, AskOptions(concurrency=concurrency), run="killed")
        found = [
            [one.outcome, one.value.verdict if isinstance(one.value, Verdict) else None, one.detail, one.raw]
            for one in engine.ask_all(requests)
        ]
    return json.dumps(found)


def draw(server: RunningServer, folder: Path, images: int, concurrency: int) -> str:
    """Buy images of a service, by turns of both; give their rows."""
    texts = {f"p{number:05d}": f"dish {number} of {folder.name}" for number in range(images)}
    backend = openai(server) if int(folder.name.partition("-")[2]) % 2 == 0 else google(server)
    buy(backend, folder, plan=ImagePlan(), llm=LlmOptions(concurrency=concurrency), texts=texts)
    return images_of(folder).drop("requested_at").write_json()


@dataclass(frozen=True)
class Buying:
    """What is bought, how much of it in a round, from what server, and where the journal may lie."""

    buy: Callable[[RunningServer, Path, int, int], str]
    size: int
    longest: float
    script: Script
    journals: tuple[str, ...]


WAYS = {
    # Some rows need a repair, some are refused, some fail at first; what they end in does not depend on attempts.
    "replies": Buying(
        ask, 300, 0.6,
        Script(
            rules=(
                Rule(Fault("none"), When(contains="could not be used")),
                Rule(Fault("prose"), When(share=0.1, salt="repaired")),
                Rule(Fault("refusal"), When(share=0.05, salt="refused")),
                Rule(Fault("server-error"), When(share=0.03, salt="failing", attempts=(1, 1))),
                Rule(Fault("busy", hint="retry-after-ms", wait=0.05), When(share=0.03, salt="busy", attempts=(1, 1))),
            ),
            latency=0.02,
            jitter=0.02,
        ),
        ("journal",),
    ),
    "images": Buying(
        draw, 200, 2.5,
        Script(
            rules=(
                Rule(Fault("moderation"), When(share=0.03, salt="blocked")),
                Rule(Fault("server-error"), When(share=0.03, salt="failing", attempts=(1, 1))),
            ),
            latency=0.03,
            jitter=0.03,
            pictures=Pictures(revised=True),
        ),
        (".out.partial/out/journal", "out/journal"),
    ),
}  # fmt: skip


@dataclass
class Result:
    """What came of it.

    `lost` has, for each kill, how many replies the seller had counted by then that are not on disk; `never_kept` counts
    those of finished rounds, with what reached the seller after a kill was counted. `twice` counts what the seller sold
    a second time, over all kills; `calm_twice` the same without any.
    """

    kills: int = 0
    rounds: int = 0
    twice: int = 0
    never_kept: int = 0
    calm_twice: int = 0
    lost: list[int] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def start(way: Buying, server: RunningServer, folder: Path, *, concurrency: int = CONCURRENCY) -> int:
    """Fork a process that buys, and leaves what it got in a file; give its id."""
    process = os.fork()
    if process:
        return process
    try:
        (folder / "got.partial").write_text(way.buy(server, folder, way.size, concurrency), encoding="utf-8")
        (folder / "got.partial").rename(folder / "got")
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
        raise RuntimeError(f"the buying process ended with {code}")
    return code != 0


def sold(server: RunningServer) -> int:
    """Count the replies that the seller bills, with those that a killed process had asked for and never read."""
    server.settled()
    return sum(record.billed for record in server.records())


def bought_twice(server: RunningServer) -> int:
    """Count the good replies that the seller sold for a question that had one already."""
    times = Counter(record.digest for record in server.records() if record.good)
    return times.total() - len(times)


def journalled(way: Buying, folder: Path) -> int:
    """Count the replies that a killed process left on disk."""
    for path in (folder / journal / FILE for journal in way.journals):
        if path.exists():
            with closing(sqlite3.connect(path)) as connection:
                try:
                    return int(connection.execute("SELECT count(*) FROM replies WHERE kind = 'reply'").fetchone()[0])
                except sqlite3.OperationalError:  # killed before there was a table
                    return 0
    return 0


def kill_and_count(way: Buying, scratch: Path, *, kills: int, seed: int) -> Result:
    """Kill and resume until enough kills hit a process at work, and compare each finished run."""
    openai_sdk()
    google_sdk()
    for spec in ("openai:gpt-image-1", "google:gemini-2.5-flash-image"):
        IMAGE_SERVICES.make(spec)
    chance, result = random.Random(seed), Result()
    with server_process(way.script) as server, server_process(way.script) as calm_server:
        while result.kills < kills:
            folder, calm = (scratch / name / f"round-{result.rounds}" for name in ("killed", "calm"))
            folder.mkdir(parents=True)
            calm.mkdir(parents=True)
            one_round(way, server, folder, result, chance=chance, kills=kills)
            assert not killed_within(start(way, calm_server, calm, concurrency=chance.choice((4, 256))), math.inf)
            if (folder / "got").read_bytes() != (calm / "got").read_bytes():
                result.different.append(folder.name)
            result.rounds += 1
        result.twice, result.calm_twice = bought_twice(server), bought_twice(calm_server)
        result.broken = server.stats()["broken"]
    return result


def one_round(
    way: Buying, server: RunningServer, folder: Path, result: Result, *, chance: random.Random, kills: int
) -> None:
    """Buy to the end, with kills on the way."""
    before, lost = sold(server), 0
    while True:
        process = start(way, server, folder)
        if not killed_within(process, chance.uniform(0.0, way.longest) if result.kills < kills else math.inf):
            result.never_kept += sold(server) - before - journalled(way, folder)
            return
        result.kills += 1
        lost_by_now = sold(server) - before - journalled(way, folder)
        result.lost.append(lost_by_now - lost)
        lost = lost_by_now


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=WAYS)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    way = WAYS[arguments.what]
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(way, Path(folder), kills=arguments.kills, seed=arguments.seed)
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds of {way.size} {arguments.what}; {CONCURRENCY} at once\n"
        f"lost by kills: {result.never_kept}, {max(result.lost, default=0)} at most by one; "
        f"bought twice: {result.twice}\n"
        f"{len(result.different)} runs with other results; {len(result.broken)} mistakes of the server\n"
    )
    under_way = CONCURRENCY * result.kills
    fair = 0 <= result.twice <= result.never_kept <= under_way and result.calm_twice == 0
    return 0 if fair and not result.different and not result.broken else 1


if __name__ == "__main__":
    sys.exit(main())
