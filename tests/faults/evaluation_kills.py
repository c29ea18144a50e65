"""Kill a whole evaluation with SIGKILL at random moments while judge and tagger answer over HTTP, and resume it.

Images of the recipe come from folders, its judge and its tagger are models behind a server on loopback. Not compared
are the run records, which say when and how long, and the journals, in which replies stand in the order they came in.
"""

import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from culturekit.builders.shown_images import read_picture
from culturekit.core.digests import digest_file
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.run import run_stage
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.run_recipe import run_recipe
from tests.conftest import HeardProgress, HereEngine, recipe_here
from tests.faults.asking_kills import PRICE, ROOT, environment
from tests.faults.evaluating_model import SEEN
from tests.faults.killing import Kills, killed_after
from tests.llm.server import Fault, Rule, RunningServer, Script
from tests.llm.server.running import kept_port, server_process

CONCURRENCY = 8
POLL = 0.03
# The stages that ask, and those that only read what came of it
ASKED = (
    "filter", "tags-*", "shown", "scores", "comparison", "routes", "questions", "answers-*", "vqascore-*",
    "faithfulness*", "report",
)  # fmt: skip
ASKING = 0.6  # How many of the kills come while questions are asked; the others come at any time
MOST_REQUESTS = 60
MODEL = "tests.faults.evaluating_model:answer"
SLOW = Script(rules=(Rule(then=Fault("stall", delay=0.02)),))

RECIPE = """\
recipe: cube
seed: 11
dump: [sample]
concepts: [art]
judge: "openai:judge-1?base_url={url}&price={price}"
llm: {{concurrency: {concurrency}}}
prompts: {{kinds: [cube, underspecified]}}
references: {{backend: simulated, per_artifact: {references}}}
images: {{kinds: [underspecified], slots: 8, repeats: {repeats}}}
models:
{models}tags:
  judge: "openai:seer-1?base_url={url}&price={price}"
  images: {sample}
  concurrency: {concurrency}
faithfulness:
  questions: "openai:judge-1?base_url={url}&price={price}"
  answers: "openai:seer-1?base_url={url}&price={price}"
  vqascore: "openai:seer-1?base_url={url}&price={price}"
  per_prompt: {per_prompt}
"""

DRAWN = """\
recipe: cube
dump: [sample]
concepts: [art]
references: {backend: simulated}
models: [{name: broad, backend: simulated}]
"""

MODELS = {"broad": "simulated", "narrow": "simulated?collapse=1&modes=1", "empty": "simulated?noise=1"}


@dataclass(frozen=True)
class Evaluation:
    """Folders of images, what they show, and the size of what is made of them."""

    folder: Path
    repeats: int
    references: int
    sample: str

    @property
    def seen(self) -> Path:
        """The file that says what the pictures show."""
        return self.folder / "seen.json"

    def recipe(self, server: RunningServer) -> Path:
        """Write the recipe; the port of the server stands in it."""
        pattern = "{prompt_id}/{repeat}-{slot}"
        models = "".join(
            f'  - {{name: {name}, backend: "folder:{self.folder / name}?pattern={pattern}"}}\n' for name in MODELS
        )
        path = self.folder / "recipe.yaml"
        text = RECIPE.format(
            url=server.openai_url, price=PRICE, concurrency=CONCURRENCY, models=models,
            repeats=self.repeats, references=self.references, sample=self.sample, per_prompt=self.repeats,
        )  # fmt: skip
        path.write_text(text, encoding="utf-8")
        return path


@dataclass
class EvaluationKills(Kills):
    """What came of it, with the stages that kills hit, and how many files were compared."""

    requests: int = 0
    files: int = 0
    at: dict[str, int] = field(default_factory=dict)


def evaluation(folder: Path, *, repeats: int, references: int, sample: str) -> Evaluation:
    """Let simulated models draw, and put their pictures into folders as somebody's own would lie there; some miss."""
    drawn = folder / "drawn"
    (folder / "drawn.yaml").write_text(DRAWN, encoding="utf-8")
    plan = ImagePlan(repeats=repeats, slots=8, kinds=("underspecified",))
    engine, progress = HereEngine(), HeardProgress()
    run_recipe(load_recipe(folder / "drawn.yaml"), drawn, engine=engine, progress=progress, until="prompts")
    for name, backend in MODELS.items():
        stage = generate_stage(
            drawn / "prompts/prompts.parquet", plan, backend=backend, model=name, seed=11,
            cspace=drawn / "cspace/cspace.parquet",
        )  # fmt: skip
        run_stage(stage, drawn / f"images-{name}", engine=engine, progress=progress)
    space = pl.read_parquet(drawn / "cspace/cspace.parquet").unique("artifact_id", keep="first", maintain_order=True)
    names = {row["artifact_id"]: [row["name"], row["country_name"]] for row in space.iter_rows(named=True)}
    shown: dict[str, list[str] | None] = {}
    for name in MODELS:
        for number, row in enumerate(pl.read_parquet(drawn / f"images-{name}/images.parquet").iter_rows(named=True)):
            picture = read_picture(drawn / f"images-{name}", row["path"], sha256=row["sha256"])
            assert not isinstance(picture, NoPicture)
            shown[picture.sha256[:16]] = names.get(row["truth_artifact_id"])
            if name == "narrow" and number % 29 == 5:
                continue
            place = folder / name / row["prompt_id"] / f"{row['repeat']}-{row['slot']}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(drawn / f"images-{name}" / row["path"], place)
    given = Evaluation(folder, repeats, references, sample)
    given.seen.write_text(json.dumps(shown), encoding="utf-8")
    return given


def run_command(recipe: Path, out: Path) -> list[str]:
    """The command that is killed."""
    return [sys.executable, "-m", "culturekit", "run", str(recipe), "--workdir", str(out), "--workers", "1"]


def ended(command: list[str]) -> None:
    """Run to the end; rows that a person has to look at are no failure here."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment(), cwd=ROOT)
    if done.returncode not in {0, 1}:
        raise RuntimeError(done.stderr)


def content(out: Path) -> dict[str, str]:
    """Hash every file of a finished run but run records, journals, and what is kept beside to hash folders faster."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and path.name != "run.json" and "/journal/" not in name and not path.name.startswith("."):
            found[name] = digest_file(path)
    return found


def stage_at_work(out: Path) -> str:
    """Name the stage that a kill hit; empty between two."""
    return ", ".join(sorted(path.name[1:].removesuffix(".partial") for path in out.glob(".*.partial")))


def kill_and_count(
    folder: Path, given: Evaluation, *, kills: int, seed: int, longest: float, only_asking: bool = False
) -> EvaluationKills:
    """Kill and resume until enough kills hit a run at work; a round ends when its run does.

    With `only_asking` the undisturbed run is made in this process, and what is killed begins with all of it that asks
    nobody: a short version of the same.
    """
    os.environ[SEEN] = str(given.seen)
    with kept_port() as port:
        return killed_rounds(folder, given, port, kills=kills, seed=seed, longest=longest, only_asking=only_asking)


def killed_rounds(
    folder: Path, given: Evaluation, port: int, *, kills: int, seed: int, longest: float, only_asking: bool
) -> EvaluationKills:
    """Do it with servers on one port, which stands in the recipe."""
    chance = random.Random(seed)
    whole = folder / "undisturbed"
    with server_process(SLOW, model=MODEL, port=port) as server:
        recipe = given.recipe(server)
        if only_asking:
            recipe_here(load_recipe(recipe), whole)
        else:
            ended(run_command(recipe, whole))
        plain = server.settled()
    expected = content(whole)
    result = EvaluationKills(files=len(expected))
    while result.kills < kills:
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        if only_asking:
            shutil.copytree(whole, out, ignore=shutil.ignore_patterns(*ASKED))
        with server_process(SLOW, model=MODEL, port=port) as server:
            one_round(run_command(recipe, out), out, server, result, chance=chance, kills=kills, longest=longest)
            stats = server.settled()
            result.requests += stats["requests"]
            result.bought_twice += stats["bought_twice"] - plain["bought_twice"]
        found = content(out)
        result.different += [name for name in sorted({*expected, *found}) if expected.get(name) != found.get(name)]
    return result


def one_round(
    command: list[str], out: Path, server: RunningServer, result: EvaluationKills, *, chance: random.Random, kills: int,
    longest: float,
) -> None:  # fmt: skip
    """Run to the end, with kills on the way; when there were enough, without."""
    seen = 0
    while True:
        enough = result.kills >= kills
        seconds = math.inf if enough else chance.uniform(0.3, longest)
        more = chance.randrange(1, MOST_REQUESTS) if not enough and chance.random() < ASKING else sys.maxsize
        if not killed_at(command, server, seconds=seconds if more == sys.maxsize else math.inf, requests=more):
            return
        sold = server.settled()["online"]["replies"]
        result.kills += 1
        result.most_twice += min(CONCURRENCY, sold - seen)
        seen = sold
        stage = stage_at_work(out) or "between stages"
        result.at[stage] = result.at.get(stage, 0) + 1


def killed_at(command: list[str], server: RunningServer, *, seconds: float, requests: int) -> bool:
    """Start a command and kill it after some seconds, or once so many requests came; False when it ended before."""
    quiet, before = subprocess.DEVNULL, server.stats()["requests"]
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment(), cwd=ROOT)
    end = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() >= end or server.stats()["requests"] - before >= requests:
            break
        time.sleep(POLL)
    return killed_after(process, 0, fine=(0, 1))
