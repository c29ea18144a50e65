"""Whatever is killed whenever, and resumed, ends in the bytes of an undisturbed run; little is done or paid twice."""

import io
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.choices import PICTURES_PER_SHARD
from culturekit.core.digests import digest_file
from culturekit.verify.verify_run import verify_run
from tests.builders.picture_tables import pictures_of_one_colour
from tests.conftest import SMALL
from tests.effort import THOROUGH, examples
from tests.faults.asking_commands import (
    COMPLETING,
    PRICE,
    asking_command,
    asking_words,
    collection,
    completion_words,
    dishes,
    expanding_words,
    filter_words,
    tables,
    weighing_words,
)
from tests.faults.kill_and_resume import (
    Due,
    Kills,
    after,
    at_a_request,
    content,
    differences,
    environment,
    kill_and_resume,
    run_command,
    without_journals,
)
from tests.faults.llm_batch_asking import asking_words as batch_words
from tests.generation.diffusion.tiny_pipelines import prompts_of, tiny
from tests.llm.server import Fault, JobPlan, Rule, RunningServer, Script, When
from tests.llm.server.running import kept_port, server_process
from tests.recipes.shipped_recipes import SMALL as SHIPPED

RECIPES = Path(__file__).parents[2] / "recipes"
SEEING = "tests.faults.seeing_model:sees"

# Small, and with every kind of stage of the recipe
INCLUSION = (
    "models=[{name: local, backend: 'simulated-objects?crude=0.1'}]", "images.slots=4", "photographs.each=8",
    "extractors=[{name: captioner, encoder: 'simulated-objects?blur=0.9'}]", "people.images=2", "people.far=0",
)  # fmt: skip


@pytest.fixture
def port() -> Iterator[int]:
    """A port for sellers that come one after the other: it stands in keys and in recipes."""
    pytest.importorskip("openai")
    with kept_port() as kept:
        yield kept


def seen(result: Kills, kills: int) -> Kills:
    assert result.kills >= kills
    assert result.different == []
    assert result.bought_twice <= result.most_twice
    return result


def test_the_comparison_sees_a_single_changed_byte(tmp_path: Path) -> None:
    for name, held in (("stage/table.parquet", b"one"), ("stage/run.json", b"{}")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(held)
    before = content(tmp_path)
    (tmp_path / "stage/table.parquet").write_bytes(b"onf")
    (tmp_path / "stage/run.json").write_bytes(b"other")
    assert differences(before, content(tmp_path), "now") == ["now: stage/table.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "stated", "kills", "longest"), [
    pytest.param(SMALL, (), 3, 3.0, id="small"),
    pytest.param(RECIPES / "cube.yaml", (), 30 if THOROUGH else 4, 5.0, id="cube"),
    *(pytest.param(RECIPES / f"{name}.yaml", SHIPPED[name], 30 if THOROUGH else 3, 6.0, id=name) for name in ("c3",
        "cultivate", "linguistic")),
    pytest.param(RECIPES / "inclusion.yaml", INCLUSION, 6 if THOROUGH else 3, 6.0, id="inclusion"),
])  # fmt: skip
def test_runs_of_recipes(tmp_path: Path, recipe: Path, stated: tuple[str, ...], kills: int, longest: float) -> None:
    command = partial(run_command, recipe, stated=stated)
    seen(kill_and_resume(command, tmp_path, kills=kills, seed=5, longest=longest), kills)


@pytest.mark.slow
def test_the_intake_of_a_folder(tmp_path: Path) -> None:
    """Its pictures are of several kinds, and some are broken."""
    chance = np.random.default_rng(5)
    for number in range(1200):
        pixels = chance.integers(0, 255, (24, 24, 4), dtype=np.uint8)
        form, mode = (("PNG", "RGB"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("WEBP", "RGB"))[number % 4]
        buffer = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(buffer, form)
        path = tmp_path / f"pictures/{number % 7}/dish-{number % 40}_{number}.{form.lower()}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(buffer.getvalue()[: 20 if number % 50 == 49 else None])
    spec = f"folder:{tmp_path / 'pictures'}?pattern={{prompt}}_{{id}}"
    words = [sys.executable, "-m", "culturekit", "generate", "--backend", spec, "--workers", "2", "--out"]
    seen(kill_and_resume(lambda out: [*words, str(out)], tmp_path, kills=3, seed=2, longest=4.0, fine=(1,)), 3)


# Stages whose work on each thing is logged: kills repeat no more of it than was in flight.

EMBED = """
import sys
from culturekit.cli.app import app
from tests.builders.counting_encoder import register
register()
app(sys.argv[1:])
"""
DRAW = """
import sys
from culturekit.cli.app import app
from culturekit.generation.diffusion.diffusers_backend import DiffusersLane
make, log = DiffusersLane.generate, sys.argv.pop()
def logging(self, requests):
    replies = make(self, requests)
    with open(log, "a") as file:
        file.write("".join(f"{one.prompt_id}/{one.repeat}/{one.slot}\\n" for one in requests))
    return replies
DiffusersLane.generate = logging
app(sys.argv[1:])
"""


def kill_logged(script: str, words: list[str], log: Path, *, kills: int, most: int, in_flight: int) -> None:
    """Kill three times in four when more was logged, once at any time; see that little was logged again."""
    logs: list[Counter[str]] = []

    def size() -> int:
        return log.stat().st_size if log.exists() else 0

    def moment(chance: Random, _: RunningServer | None) -> Due:
        until = size() + chance.randint(1, most)
        return (lambda: size() >= until) if chance.random() < 0.75 else after(chance.uniform(0.2, 8.0))

    def ended(_: int) -> None:
        logs.append(Counter(log.read_text(encoding="ascii").split()))
        log.unlink()

    command = [sys.executable, "-c", script, *words, "--out"]
    last = [] if script == EMBED else [str(log)]
    result = kill_and_resume(
        lambda out: [*command, str(out), *last], log.parent, kills=kills, seed=4, moment=moment,
        compared=without_journals, ended=ended,
    )  # fmt: skip
    seen(result, kills)
    once, *rounds = logs
    assert all(created.keys() == once.keys() for created in rounds)
    assert sum(created.total() - once.total() for created in rounds) <= kills * in_flight


@pytest.mark.endtoend
def test_embedding(tmp_path: Path) -> None:
    images, log = pictures_of_one_colour(tmp_path / "images", 700), tmp_path / "log"
    words = ["index", "embed", "--images", str(images), "--encoder", f"counting?batch=32&slow=0.1&log={log}"]
    kill_logged(EMBED, [*words, "--workers", "2"], log, kills=2, most=20_000, in_flight=2 * PICTURES_PER_SHARD)


@pytest.mark.slow
def test_diffusers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    backend = f"diffusers:{tiny(tmp_path)}?steps=2&device=cpu&batch=4"
    words = ["generate", "--backend", backend, "--prompts", str(prompts_of(tmp_path, 60)), "--size", "16x16"]
    # Each of two lanes has a batch at work and one that waits, and one batch is being kept
    kill_logged(DRAW, [*words, "--workers", "2"], tmp_path / "log", kills=3, most=400, in_flight=(2 * 2 + 1) * 4)


# What asks or buys: no kill makes more be bought twice than was under way.

# Some rows need a repair, some are refused, some fail at first; what they end in does not depend on attempts
ODD = Script(
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
BLOCKING = Script(
    rules=(
        Rule(Fault("moderation"), When(share=0.03, salt="blocked")),
        Rule(Fault("server-error"), When(share=0.03, salt="failing", attempts=(1, 1))),
    ),
    latency=0.03,
    jitter=0.03,
)
SLOW = Script(rules=(Rule(Fault("stall", delay=0.02)),))
# Jobs that lose rows, say rows twice and under wrong names, and creations that take their time or are cut off
BATCHES = Script(
    job=JobPlan(polls=2, shuffled=True, missing=0.05, duplicated=0.1, misnamed=0.03, salt="kills"),
    rules=(
        Rule(Fault("stall", delay=0.4), When(operations=("batches.create",), requests=(1, None), every=2)),
        Rule(Fault("drop-after"), When(operations=("batches.create",), every=5)),
        Rule(Fault("prose"), When(modes=("batch",), share=0.15, salt="prose", attempts=(1, 1))),
        Rule(Fault("server-error"), When(modes=("batch",), share=0.1, salt="error", attempts=(1, 1))),
        Rule(Fault("refusal"), When(modes=("batch",), share=0.1, salt="refusal")),
    ),
)


def moment_of_requests(chance: Random, server: RunningServer | None, *, most: int, longest: float = 6.0) -> Due:
    """Draw when to kill: six times in ten after so many more requests, else at any time."""
    assert server is not None
    return at_a_request(chance, server, most) if chance.random() < 0.6 else after(chance.uniform(0.3, longest))


@pytest.mark.parametrize(("name", "script", "model", "kills", "size", "concurrency"), [
    pytest.param("filter", ODD, "", examples(50), 300, 16, marks=pytest.mark.endtoend),
    pytest.param("complete", SLOW, COMPLETING, 30 if THOROUGH else 4, 40, 4, marks=pytest.mark.endtoend),
    *(pytest.param(name, SLOW, model, 20 if THOROUGH else 2, size, 8, marks=pytest.mark.slow) for name, model,
        size in (("ask", SEEING, 60), ("weigh", SEEING, 60), ("expand", "tests.faults.proposing_model:proposes", 300))),
])  # fmt: skip
def test_commands_that_ask(
    tmp_path: Path, port: int, name: str, script: Script, model: str, kills: int, size: int, concurrency: int
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    words = {
        "filter": lambda: filter_words(dishes(given, size)),
        "complete": lambda: completion_words(collection(given, size)),
        "ask": lambda: asking_words(given, size),
        "weigh": lambda: weighing_words(given, size),
        "expand": lambda: expanding_words(size),
    }[name]()
    result = kill_and_resume(
        lambda out: asking_command(words, out, f"http://127.0.0.1:{port}/openai/v1", concurrency=concurrency),
        tmp_path, kills=kills, seed=11, moment=partial(moment_of_requests, most=size), fine=(0, 1), compared=tables,
        seller=partial(server_process, script, model=model, port=port), under_way=concurrency,
    )  # fmt: skip
    seen(result, kills)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["openai:gpt-image-1?quality=low&base_url={}/openai/v1",
                                     "google:gemini-2.5-flash-image?base_url={}/google"])  # fmt: skip
def test_images_that_are_bought(tmp_path: Path, port: int, backend: str) -> None:
    pytest.importorskip("google.genai")
    spec, given = backend.format(f"http://127.0.0.1:{port}"), prompts_of(tmp_path, 120)
    words = [sys.executable, "-m", "culturekit", "generate", "--backend", spec, "--prompts", str(given)]

    def compared(out: Path) -> dict[str, str]:
        rows = pl.read_parquet(out / "images.parquet").drop("requested_at").write_json()
        return {path.name: digest_file(path) for path in out.rglob("*.png")} | {"images": rows}

    result = kill_and_resume(
        lambda out: [*words, "--concurrency", "16", "--go-on", "--out", str(out)], tmp_path, kills=3, seed=3,
        moment=partial(moment_of_requests, most=100), fine=(0, 1), compared=compared,
        seller=partial(server_process, BLOCKING, port=port), under_way=16,
    )  # fmt: skip
    seen(result, 3)


@pytest.mark.endtoend
@pytest.mark.parametrize("provider", ["openai", "google"])
def test_batches_are_never_bought_twice(tmp_path: Path, port: int, provider: str) -> None:
    pytest.importorskip("google.genai")
    kills = 100 if THOROUGH else 8

    def moment(chance: Random, server: RunningServer | None) -> Due:
        """Kill once a job is made and not yet stored, four times in ten."""
        assert server is not None
        created = server.stats()["jobs_made"]
        if chance.random() < 0.4:
            return lambda: server.stats()["jobs_made"] > created
        return at_a_request(chance, server, 14)

    result = kill_and_resume(
        lambda out: batch_words(provider, f"http://127.0.0.1:{port}", out), tmp_path, kills=kills, seed=6,
        moment=moment, compared=without_journals, seller=partial(server_process, BATCHES, port=port),
    )  # fmt: skip
    assert seen(result, kills).sold[0]["lines_made"] > 60
    assert {sold["lines_made"] for sold in result.sold} == {result.sold[0]["lines_made"]}


@pytest.mark.endtoend
def test_a_whole_evaluation_that_asks(tmp_path: Path, port: int) -> None:
    judge = f"openai:judge-1?base_url=http://127.0.0.1:{port}/openai/v1&price={PRICE}"
    stated = (
        f"judge={judge}", f"tags={{judge: '{judge}', images: 16, concurrency: 8}}", "llm={concurrency: 8}",
        f"faithfulness={{questions: '{judge}', answers: '{judge}', vqascore: '{judge}', per_prompt: 2}}",
        "images={kinds: [underspecified], slots: 8, repeats: 2}", "prompts.kinds=[cube, underspecified]",
        "references.per_artifact=1", "diagnosis=null", "include=review",
    )  # fmt: skip
    kills = 30 if THOROUGH else 2
    result = kill_and_resume(
        partial(run_command, SMALL, stated=stated), tmp_path, kills=kills, seed=4, compared=without_journals,
        moment=partial(moment_of_requests, most=60, longest=20.0), fine=(0, 1), under_way=8,
        seller=partial(server_process, SLOW, model=SEEING, port=port),
    )  # fmt: skip
    seen(result, kills)
    with mock.patch.dict("os.environ", environment()):
        verdicts = {one.verdict for one in verify_run(tmp_path / "undisturbed").verdicts if one.folder == "routes"}
    assert verdicts == {"verified"}
    assert "Two routes" in (tmp_path / "undisturbed/report/report.html").read_text(encoding="utf-8")
