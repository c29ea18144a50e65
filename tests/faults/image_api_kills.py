"""Kill a process that buys images, with SIGKILL at random moments, and count what the seller sold twice.

`python -m tests.faults.image_api_kills --kills 200 --images 2000` ends with 0 when the runs that were killed and
resumed made the images of an undisturbed one, no kill cost more images than were under way when it came, and nothing
that lay on disk was bought again. The server is a process of its own; those that buy are forked from this one, which
never uses polars itself: its threads do not outlive a fork.
"""

import argparse
import math
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from culturekit.generation.runner import ImagePlan
from culturekit.generation.services.image_client import IMAGE_SERVICES
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.google_client import google_sdk
from culturekit.llm.clients.openai_client import openai_sdk
from culturekit.llm.journal_file import FILE
from tests.faults.llm_kills import killed_within, sold
from tests.generation.services.paid_images import buy, google, images_of, openai
from tests.llm.server.running import RunningServer, server_process
from tests.llm.server.script import Fault, Pictures, Rule, Script, When

CONCURRENCY = 16
SERVICES = ("openai", "google")  # whose images are bought, round by round
SCRIPT = Script(
    rules=(
        Rule(Fault("moderation"), When(share=0.03, salt="blocked")),
        Rule(Fault("server-error"), When(share=0.03, salt="failing", attempts=(1, 1))),
    ),
    latency=0.03,
    jitter=0.03,
    pictures=Pictures(revised=True),
)


@dataclass
class Result:
    """What came of it; `lost` has, for each kill, how many images were sold that are not on disk."""

    kills: int = 0
    rounds: int = 0
    images: int = 0
    twice: int = 0
    lost: list[int] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def start(server: RunningServer, folder: Path, *, images: int, by: str, concurrency: int = CONCURRENCY) -> int:
    """Fork a process that buys; give its id."""
    process = os.fork()
    if process:
        return process
    try:
        texts = {f"p{number:05d}": f"dish {number} of {folder.name}" for number in range(images)}
        backend = openai(server) if by == "openai" else google(server)
        buy(backend, folder, plan=ImagePlan(), llm=LlmOptions(concurrency=concurrency), texts=texts)
        rows = images_of(folder).drop("requested_at")
        (folder / "made.partial").write_text(rows.write_json(), encoding="utf-8")
        (folder / "made.partial").rename(folder / "made")
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def on_disk(folder: Path) -> int:
    """Count the replies that a killed process left in its journal, finished or not."""
    for path in (folder / ".out.partial/out/journal" / FILE, folder / "out/journal" / FILE):
        if path.exists():
            with closing(sqlite3.connect(path)) as connection:
                try:
                    (count,) = connection.execute("SELECT count(*) FROM replies WHERE kind = 'reply'").fetchone()
                except sqlite3.OperationalError:  # killed before there was a table
                    return 0
            return int(count)
    return 0


def kill_and_count(
    scratch: Path, *, kills: int, images: int, seed: int, longest: float, services: Sequence[str] = SERVICES
) -> Result:
    """Kill and resume until enough kills hit a process at work, and compare each finished run."""
    openai_sdk()
    google_sdk()
    for spec in ("openai:gpt-image-1", "google:gemini-2.5-flash-image"):
        IMAGE_SERVICES.make(spec)
    chance = random.Random(seed)
    result = Result()
    with server_process(SCRIPT) as server, server_process(SCRIPT) as calm_server:
        while result.kills < kills:
            by = services[result.rounds % len(services)]
            folder, calm = (scratch / name / f"round-{result.rounds}" for name in ("killed", "calm"))
            one_round(server, folder, result, chance=chance, kills=kills, images=images, longest=longest, by=by)
            assert not killed_within(start(calm_server, calm, images=images, by=by, concurrency=64), math.inf)
            if (folder / "made").read_bytes() != (calm / "made").read_bytes():
                result.different.append(folder.name)
            result.rounds += 1
            result.images += images
        times = Counter(record.digest for record in server.records() if record.good)
        result.twice = times.total() - len(times)
        result.broken = server.stats()["broken"]
    return result


def one_round(
    server: RunningServer,
    folder: Path,
    result: Result,
    *,
    chance: random.Random,
    kills: int,
    images: int,
    longest: float,
    by: str,
) -> None:
    """Buy a set of images to its end, with kills on the way."""
    before, lost = sold(server), 0
    while True:
        process = start(server, folder, images=images, by=by)
        if not killed_within(process, chance.uniform(0.0, longest) if result.kills < kills else math.inf):
            return
        result.kills += 1
        lost_by_now = sold(server) - before - on_disk(folder)
        result.lost.append(lost_by_now - lost)
        lost = lost_by_now


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=2.5, help="seconds until a kill, at most")
    parser.add_argument("--services", nargs="+", choices=SERVICES, default=SERVICES, help="whose images, by rounds")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(
            Path(folder),
            kills=arguments.kills,
            images=arguments.images,
            seed=arguments.seed,
            longest=arguments.longest,
            services=arguments.services,
        )
    most = max(result.lost, default=0)
    sys.stdout.write(
        f"{result.kills} kills over {result.images} images in {result.rounds} rounds; {CONCURRENCY} at once; "
        f"{time.monotonic() - began:.0f} s\n"
        f"lost by kills: {sum(result.lost)} images, {most} at most by one; bought twice: {result.twice}\n"
        f"{len(result.different)} runs with other images; {len(result.broken)} mistakes of the server\n"
    )
    fair = min(result.lost, default=0) >= 0 and most <= CONCURRENCY and result.twice <= sum(result.lost)
    return 0 if fair and not result.different and not result.broken else 1


if __name__ == "__main__":
    sys.exit(main())
