"""Packages of others, working and broken: what is listed, what is refused, and who is named."""

import asyncio
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.builders.filtering.cspace_filter import FilterReply
from culturekit.builders.judging.image_judge import ImageQuestion, JudgeOptions, JudgeReads, judge_stage
from culturekit.builders.popularity import SOURCES
from culturekit.core.engines import engine_for
from culturekit.core.errors import MissingDependency, PluginFailure, UsageError
from culturekit.core.plugins import POINTS, digest_of_code, installed
from culturekit.core.registry import spec_state
from culturekit.core.stage import Stage
from culturekit.generation.backend import BACKENDS, HeldBackend, ImageRequest
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.encoder import ENCODERS, ImageEncoder, TextEncoder
from culturekit.index.raters.picture_spread import PAIR_MEASURES
from culturekit.index.raters.quality import SCORERS, quality_stage
from culturekit.index.search.search import searcher
from culturekit.llm.client import Client, Failure, FreeClient, Request
from culturekit.llm.clients.clients import CLIENTS
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.outside_packages import PLUGINS, forget, write_package

KINDS = {
    "greys": "encoder", "flags": "backend", "echo": "judge", "light": "quality", "apart": "measure",
    "fame": "popularity", "single": "engine", "slow": "search",
}  # fmt: skip
FIRST = list(KINDS)[:4]
POINTS_IN_SPACE = np.eye(3, dtype=np.float32)
PICTURES = [np.full((8, 8, 3), shade, np.uint8) for shade in (10, 200)]
REQUESTS = [
    ImageRequest(f"p{seed}", "a flag", None, seed, 0, 0, None, None, None, width=16, height=8) for seed in (1, 2)
]
QUESTION = Request("judge", "Keep?", {"id": "Q1"}, FilterReply)


def mapped() -> list[int]:
    with engine_for("single", workers=1, folder=Path()) as engine:
        return list(engine.map(abs, [-1, 2]))


ASKED: dict[str, Callable[[], Any]] = {
    "greys": lambda: ENCODERS.make("greys").encode_images(PICTURES),  # type: ignore[attr-defined]
    "flags": lambda: BACKENDS.make("flags").generate(REQUESTS),
    "echo": lambda: CLIENTS.make("echo").ask(QUESTION),  # type: ignore[union-attr]
    "light": lambda: SCORERS.make("light").score(PICTURES),
    "apart": lambda: PAIR_MEASURES.make("apart").distances([np.array(0.0), np.array(3.0)]).tolist(),
    "fame": lambda: SOURCES.make("fame").rate(pl.DataFrame({"artifact_id": ["a", "b"]}), None).values.to_list(),  # type: ignore[arg-type]
    "single": mapped,
    "slow": lambda: searcher(POINTS_IN_SPACE, engine="slow").best(POINTS_IN_SPACE[:2], k=1).rows.tolist(),
}
ANSWERS = {"apart": [[0.0, 3.0], [3.0, 0.0]], "fame": [0.5, 0.5], "single": [1, 2], "slow": [[0], [1]]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "site"
    forget(*KINDS, "theirs")


def write(site: Path, name: str, monkeypatch: pytest.MonkeyPatch, old: str = "", new: str = "", word: str = "") -> Path:
    """Install one of the packages, with a change to its code."""
    text = (PLUGINS / f"{name}.py").read_text(encoding="utf-8")
    assert old in text
    points = {f"{word or KINDS[name]}.{name}": f"{name}:make"}
    return write_package(site, name, points, text.replace(old, new, 1) if old else text, monkeypatch)


@pytest.mark.parametrize("name", KINDS)
def test_a_package_that_keeps_its_promise_is_used(name: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, name, monkeypatch)
    answered = ASKED[name]().text if name == "echo" else ASKED[name]()
    assert len(answered) >= 2
    assert name not in ANSWERS or answered == ANSWERS[name]
    answer = culturekit("plugins", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout) == [
        {
            "kind": KINDS[name], "name": name, "package": name, "version": "1.0", "place": f"{name}:make",
            "problem": "", "file": "",
        }
    ]  # fmt: skip
    assert culturekit("plugins").stdout.split() == ["ok", KINDS[name], name, name, "1.0", f"{name}:make"]


def test_what_is_held_is_still_what_it_was(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FIRST:
        write(site, name, monkeypatch)
    encoder = ENCODERS.make("greys?floor=2")
    assert isinstance(encoder, ImageEncoder)
    assert not isinstance(encoder, TextEncoder)
    assert encoder.identity.revision == f"1, code {digest_of_code('greys')[:16]}", "no index mixes states of a package"
    assert (encoder.identity.name, encoder.floor) == ("greys", 2.0)  # type: ignore[attr-defined]
    assert isinstance(CLIENTS.make("echo"), FreeClient)
    assert BACKENDS.make("flags").version == "flags 1"
    assert [one.name for one in installed()] == ["flags", "greys", "echo", "light"]


ENCODES = "        return self.encode_prepared([self.prepare(picture) for picture in pictures])"
PAINTS = "        return [Picture(self.painted(request), seed_honoured=True) for request in requests]"
KEEPS = """        return Reply(json.dumps({"id": request.data["id"], "verdict": "keep"}))"""
SCORES = "        return np.array(pictures, np.float64)"
UNPICKLABLE = "        class Gone(Exception):\n            pass\n        raise Gone('out of paint')"

# A package, what is changed in it, and what is said
BROKEN = [
    ("greys", '    caveat = ""\n', "", "is no ImageEncoder; expected identity, caveat, batch_size, prepare, "
     "encode_prepared, encode_images, found Greys without caveat"),
    ("greys", "keepdims=True), np.float32)", "keepdims=True), np.float64)",
     "answers encode_images with something else; expected float32 (2, 3), found float64 (2, 3)"),
    ("greys", ENCODES, f"{ENCODES}[:1]",
     "answers encode_images with something else; expected float32 (2, 3), found float32 (1, 3)"),
    ("greys", "np.stack(pictures)", "np.stack(pictures) * np.nan",
     "answers encode_images with something else; expected finite numbers, found numbers that are not finite"),
    ("greys", "bands / np.linalg.norm(bands, axis=1, keepdims=True)", "bands * 0 + 1",
     "answers encode_images with something else; expected vectors of length 1, found one of length 1.732"),
    ("greys", ENCODES, "        raise ValueError('cuda exploded')",
     "failed at encode_images: ValueError: cuda exploded"),
    ("greys", "encode_images(self, pictures: Sequence[NDArray[np.uint8]])", "encode_images(self, pictures, size)",
     "cannot be asked to encode_images: missing a required argument: 'size'; expected encode_images(pictures), "
     "found encode_images(pictures, size)"),
    ("greys", 'EncoderIdentity("greys", "none", "1", "bands", "float32", 3)', '"greys"',
     "has something else as identity; expected EncoderIdentity, found str 'greys'"),
    ("greys", "    return Greys(", "    raise KeyError('weights')\n    return Greys(", "failed: KeyError: 'weights'"),
    ("flags", "def generate(", "def paint(", "is no ImageBackend; expected version, knows_truth, generate, found Flags "
     "without generate"),
    ("flags", PAINTS, f"{PAINTS}[1:]", "answers generate with something else; expected a list of 2 replies, found 1"),
    ("flags", "3), np.uint8)", "3), np.float32)",
     "answers generate with something else; expected uint8 (8, 16, 3), found float32 (8, 16, 3)"),
    ("flags", "request.height or 32, request.width or 32", "32, 32",
     "answers generate with something else; expected uint8 (8, 16, 3), found uint8 (32, 32, 3)"),
    ("flags", PAINTS, UNPICKLABLE, "failed at generate: Gone: out of paint"),
    ("flags", PAINTS, "        return [None for _ in requests]",
     "answers generate with something else; expected a Picture or a Failure, found NoneType None"),
    ("flags", '"flags 1"', "1", "has something else as version; expected str or NoneType, found int 1"),
    ("echo", "def ask(", "def say(", "is no FreeClient; expected model, caveat, ask, found Echo without ask"),
    ("echo", "Reply(json.dumps({", "(json.dumps({",
     """answers ask with something else; expected a Reply, found str '{"id": "Q1", "verdict": "keep"}'"""),
    ("echo", KEEPS, "        raise RuntimeError('no voice')", "failed at ask: RuntimeError: no voice"),
    ("echo", KEEPS, "        raise SystemExit('enough')", "failed at ask: SystemExit: enough"),
    ("echo", '"echo-1"', "None", "has something else as model; expected str, found NoneType None"),
    ("light", SCORES, "        return list(pictures)",
     "answers score with something else; expected float64 (2,), found list"),
    ("light", SCORES, "        return np.array(pictures, np.float64) / 0 * 0",
     "answers score with something else; expected finite numbers, found numbers that are not finite"),
    ("light", SCORES, f"{SCORES}[:1]", "answers score with something else; expected float64 (2,), found float64 (1,)"),
    ("light", "    batch_size = 8\n", "", "is no QualityScorer; expected name, caveat, needs_prompts, parameters, "
     "batch_size, prepare, score_prepared, score, found Light without batch_size"),
    ("light", SCORES, "        raise ValueError('too dark')", "failed at score: ValueError: too dark"),
    ("apart", "    licence = \"CC0\"\n", "", "is no PairMeasure; expected name, caveat, licence, parameters, prepare, "
     "distances, found Apart without licence"),
    ("apart", "np.abs(shades[:, None] - shades)", "np.abs(shades[:, None] - shades)[:1]",
     "answers distances with something else; expected float64 (2, 2), found float64 (1, 2)"),
    ("apart", "np.abs(shades[:, None] - shades)", "shades[:, None] - shades",
     "answers distances with something else; expected finite numbers of at least 0, found others"),
    ("apart", "np.abs(shades[:, None] - shades)", "np.abs(shades[:, None] - shades) + 1",
     "answers distances with something else; expected zeros on the diagonal, found others"),
    ("apart", "np.abs(shades[:, None] - shades)", "np.triu(np.abs(shades[:, None] - shades))",
     "answers distances with something else; expected one distance both ways, found two"),
    ("fame", "[0.5] * artifacts.height", "[0.5]",
     "answers rate with something else; expected numbers, 2, found Float64, 1"),
    ("fame", "[0.5] *", "[7.0] *",
     "answers rate with something else; expected rates above 0 and at most 1, or null, found 7.0"),
    ("fame", "Ratings(pl.Series([0.5] * artifacts.height, dtype=pl.Float64))", "[0.5, 0.5]",
     "answers rate with something else; expected Ratings, with a Series as its values, found list [0.5, 0.5]"),
    ("fame", "        return Ratings", "        raise ValueError('nobody knows')\n        return Ratings",
     "failed at rate: ValueError: nobody knows"),
    ("fame", "def rate(self, artifacts: pl.DataFrame, work: Work)", "def rate(self, artifacts)",
     "cannot be asked to rate: too many positional arguments; expected rate(artifacts, work), found rate(artifacts)"),
    ("single", "    workers = 1\n", "    workers = 0\n", "has something else as workers; expected at least 1, found 0"),
    ("single", "        for item in items:", "        for item in items[1:]:",
     "answers map with something else; expected 2 results, found 1"),
    ("single", "        for item in items:", "        raise RuntimeError('no hands')\n        for item in items:",
     "failed at map: RuntimeError: no hands"),
    ("single", "@contextmanager\n", "", "is no engine; expected a context manager, found generator"),
    ("single", "    yield Single()", "    raise RuntimeError('asleep')\n    yield Single()",
     "failed to begin: RuntimeError: asleep"),
    ("slow", "def best(", "def worst(", "is no Searcher; expected name, best, found Slow without best"),
    ("slow", "k=k,", "k=k + 1,", "answers best with something else; expected (2, 1), found (2, 2), (2, 2)"),
    ("slow", "        return best_by_hand(np.asarray(self.vectors), queries, k=k, order=self.order, slices=slices)",
     "        return [1]", "answers best with something else; expected Found, found list [1]"),
    ("slow", "        return best_by_hand", "        raise IndexError('lost')\n        return best_by_hand",
     "failed at best: IndexError: lost"),
    ("slow", "def make(spec: Spec, *, vectors: Vectors, order: Order | None)", "def make(spec)",
     "failed: TypeError: make() got an unexpected keyword argument 'vectors'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "said"), BROKEN)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_promise_is_named(
    name: str, old: str, new: str, said: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, name, monkeypatch, old, new)
    with pytest.raises(PluginFailure) as caught:
        answer = ASKED[name]()
        _ = BACKENDS.make(name).version if name == "flags" else CLIENTS.make(name).model if name == "echo" else answer
        _ = ENCODERS.make(name).identity if name == "greys" else answer
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"{name}:make: the {KINDS[name]} {name} of the package {name} 1.0 {said}. "
        "Mend that package, or remove it: culturekit itself is not at fault."
    )


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("name", FIRST)
def test_a_package_names_what_it_lacks(name: str, early: bool, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(site, name, monkeypatch)
    head, make, body = path.read_text().partition("def make(")
    path.write_text("import nowhere_to_be_found\n" + head + make + body if early else
                    head + make + body.replace("    return", "    import nowhere_to_be_found\n    return"))  # fmt: skip
    with pytest.raises(MissingDependency) as caught:
        ASKED[name]()
    assert str(caught.value) == (
        f"{name}:make: the {KINDS[name]} {name} of the package {name} 1.0 needs the package nowhere_to_be_found, "
        f"which is not installed. Install it, or see what the installation of {name} says of it."
    )


LISTED = {
    "x = (\n": "cannot be imported: SyntaxError: '(' was never closed (echo.py, line 1)",
    "import nowhere_to_be_found\n": "needs the package nowhere_to_be_found, which is not installed",
    "": "cannot be imported: AttributeError: module 'echo' has no attribute 'make'",
    "make = 3\n": "is something else than its kind; expected a function, found int",
    "raise OSError('no such device')\n": "no such device",
}


@pytest.mark.parametrize("text", LISTED)
def test_what_cannot_be_imported_is_listed_with_why(text: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(site, "echo", {"judge.echo": "echo:make"}, text, monkeypatch)
    answer = culturekit("plugins", ends=1)
    assert "FAILS  judge  echo  echo  1.0  echo:make" in answer.stdout
    assert LISTED[text] in answer.stdout


def test_names_that_nobody_can_use_are_listed_with_the_reason(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"encodr.greys": "greys:make", "encoder.embedded": "greys:make", "quality.light": "light:make"}
    for name in ("greys", "light"):
        write_package(site, name, points, (PLUGINS / f"{name}.py").read_text(), monkeypatch)
    problems = {one["name"]: one["problem"] for one in json.loads(culturekit("plugins", "--json").stdout)}
    assert problems["greys"].startswith("there is no kind 'encodr'; expected KIND.NAME, of the kinds encoder, backend")
    assert problems["light"] == "another package brings the quality light too; remove one of them"
    assert problems["embedded"].startswith("another package")
    with pytest.raises(UsageError, match=r"two packages bring the quality light; found the package greys 1.0 and the"):
        SCORERS.make("light")


def test_a_name_of_ours_stays_ours(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(site, "greys", {"encoder.embedded": "greys:make"}, (PLUGINS / "greys.py").read_text(), monkeypatch)
    (listed,) = json.loads(culturekit("plugins", "--json").stdout)
    assert listed["problem"] == "the encoder embedded of culturekit itself is used; choose another name"
    assert ENCODERS.make("embedded").identity.name == "embedded"


@pytest.mark.parametrize(("name", "word"), [("echo", "client"), ("echo", "language model client"),
                                            ("light", "quality scorer")])  # fmt: skip
def test_earlier_words_of_a_kind_are_read(name: str, word: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, name, monkeypatch, word=word)
    ASKED[name]()
    (listed,) = json.loads(culturekit("plugins", "--json").stdout)
    assert (listed["kind"], listed["problem"]) == (KINDS[name], "")


def test_every_registry_has_its_point() -> None:
    """What `--kinds` says is what there is."""
    for point in POINTS:
        module, _, name = point.registry.partition(":")
        assert getattr(__import__(module, fromlist=[name]), name).point == point.kind
        module, _, names = point.contract.partition(":")
        for each in names.split(", "):
            assert hasattr(__import__(module, fromlist=[each]), each)
    assert [one["kind"] for one in json.loads(culturekit("plugins", "--kinds", "--json").stdout)] == [
        point.kind for point in POINTS
    ]


def images(run: Path) -> Path:
    return run / "images-broad/images.parquet"


def test_options_come_first(site: Path, monkeypatch: pytest.MonkeyPatch, small_run: Path, tmp_path: Path) -> None:
    write(site, "greys", monkeypatch)
    words = ("index", "embed", "--images", images(small_run), "--out", tmp_path / "vectors", "--encoder")
    answer = culturekit(*words, "greys?flor=2", ends=2)
    assert "greys has no option flor; expected floor. Did you mean 'floor'?" in " ".join(answer.stderr.split())
    assert not (tmp_path / "vectors").exists()


LIGHT = ImageQuestion("see", "light", "Is it light?", answers=("yes", "no"))
# In a recipe: what is replaced, by what, and what is said
WRONG_SPECS = {
    "references: {backend: simulated, per_artifact: 3}": (
        "references: {backend: simulated, per_artifact: 3}\nencoder: 'greys?flor=2'",
        "greys has no option flor; expected floor. Did you mean 'floor'?",
    ),
    "{name: broad, backend: simulated}": ("{name: broad, backend: 'flags?shade=2'}",
        "flags takes no target and no options; found shade"),
    "concepts: [art]": ("concepts: [art]\njudge: 'echo:loud'", "echo takes no target and no options; found loud"),
}  # fmt: skip


@pytest.mark.parametrize("old", WRONG_SPECS)
def test_its_options_are_checked_by_plan(old: str, site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in FIRST:
        write(site, name, monkeypatch)
    text, (new, said) = SMALL.read_text(encoding="utf-8"), WRONG_SPECS[old]
    assert old in text
    (tmp_path / "recipe.yaml").write_text(text.replace(old, new), encoding="utf-8")
    answer = culturekit("plan", tmp_path / "recipe.yaml")
    assert (answer.returncode, said in " ".join(answer.stderr.split())) == (2, True), answer.stderr


STAGES: dict[str, Callable[[Path], Stage]] = {
    "greys": lambda run: embed_stage(EmbedSource(images(run)), encoder="greys"),
    "flags": lambda run: generate_stage(run / "prompts/prompts.parquet", ImagePlan(), backend="flags", model="flags",
        seed=0),
    "echo": lambda run: judge_stage(JudgeReads(images(run)), JudgeOptions((LIGHT,), "echo")),
    "light": lambda run: quality_stage(images(run), scorer="light"),
}  # fmt: skip
# What each says of itself, and will say
SAYS = {
    "greys": ('"1", "bands"', '"2", "bands"'), "flags": ('"flags 1"', '"flags 2"'), "echo": ('"echo-1"', '"echo-2"'),
    "light": ('"version": 1', '"version": 2'),
}  # fmt: skip


@pytest.mark.parametrize("name", FIRST)
def test_a_change_is_another_stage(name: str, site: Path, monkeypatch: pytest.MonkeyPatch, small_run: Path) -> None:
    def options(text: str) -> Mapping[str, object]:
        path.write_text(text)
        forget(name)
        importlib.invalidate_caches()
        return STAGES[name](small_run).options

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which is told apart by the second and the size only
    path = write(site, name, monkeypatch)
    text, stated = path.read_text(), "__version__ = '7'\n"
    first = options(text)
    assert options(text) == first
    assert options(f"{text}# another comment\n") != first, "without a version the code is what tells"
    seventh = options(text + stated)
    assert seventh[f"{KINDS[name]}_plugin"]["version"] == "7"  # type: ignore[index]
    assert options(f"{text}{stated}# another comment\n") == seventh
    assert options(text + stated.replace("7", "8")) != seventh
    assert options(text.replace(*SAYS[name]) + stated) != seventh, "what it says of itself tells, too"


def test_ours_leave_the_keys_of_stages_alone(small_run: Path) -> None:
    paths = list(small_run.glob("*/manifest.json"))
    assert paths
    for path in paths:
        assert not [key for key in json.loads(path.read_text())["options"] if key.endswith("_plugin")]
    assert spec_state(ENCODERS, "embedded") == spec_state(SCORERS, "embedded") == {}


@pytest.mark.endtoend
@pytest.mark.parametrize("error", ["ValueError('cuda exploded')", "type('Odd', (Exception,), {})('cuda exploded')"])
def test_what_fails_in_a_worker_is_named_and_costs_no_apology(
    error: str, site: Path, monkeypatch: pytest.MonkeyPatch, small_run: Path, tmp_path: Path
) -> None:
    write(site, "flags", monkeypatch, PAINTS, f"        raise {error}")
    answer = culturekit(
        "generate", "--prompts", small_run / "prompts/prompts.parquet", "--backend", "flags",
        "--out", tmp_path / "images", in_workers=True, ends=2,
    )  # fmt: skip
    said = " ".join(answer.stderr.split())
    assert "the backend flags of the package flags 1.0 failed at generate" in said
    assert "cuda exploded" in said
    assert "mistake in culturekit" not in said


def test_what_an_item_raises_is_not_the_engines(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, "single", monkeypatch)
    with engine_for("single", workers=1, folder=site) as engine, pytest.raises(ZeroDivisionError):
        list(engine.map(lambda item: 1 // item, [0]))


THEIRS = """
from culturekit.config.kinds import AnyRecipe, RecipeKind

def wire(recipe, run):
    raise ValueError("nothing is wired")

THEIRS = RecipeKind(AnyRecipe, wire)
"""


def test_an_unheld_error_is_still_the_packages(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(site, "theirs", {"recipe.theirs": "theirs:THEIRS"}, THEIRS, monkeypatch)
    (tmp_path / "recipe.yaml").write_text("recipe: theirs\n", encoding="utf-8")
    answer = culturekit("plan", tmp_path / "recipe.yaml", ends=2)
    assert "the recipe theirs of the package theirs 1.0 failed: ValueError: nothing is wired" in answer.stderr
    assert "mistake in culturekit" not in answer.stderr


HELD = """
from contextlib import contextmanager

import numpy as np

from culturekit.generation.backend import Picture


class Held:
    version, knows_truth, batch_size = "1", False, 2

    def generate(self, requests):
        return [Picture(np.zeros((4, 4, 3), np.uint8), seed_honoured=True) for _ in requests]

    @contextmanager
    def lanes(self, workers):
        yield [self]

    def release(self):
        pass


def make(spec):
    return Held()
"""


FAR = """
from types import MappingProxyType

from culturekit.llm.client import Failure, Identity, Outgoing, Quota, Reply


class Far:
    identity, model, caveat, rate = Identity("far", "http://far", "chat", "far-1"), "far-1", "", None
    options, quota = MappingProxyType({}), Quota()

    def compose(self, request):
        return Outgoing(b"{}")

    async def send(self, outgoing):
        return b"yes"

    def read(self, raw):
        return Reply(raw.decode())

    async def close(self):
        pass


def make(spec):
    return Far()
"""


def lane_answers() -> list[Any]:
    backend = BACKENDS.make("theirs")
    assert isinstance(backend, HeldBackend)
    with backend.lanes(1) as lanes:
        return list(lanes[0].generate([ImageRequest("p", "t", None, 1, 0, 0, None, None, None)]))


def far_answer() -> str:
    client = CLIENTS.make("theirs")
    assert isinstance(client, Client)
    assert not isinstance(client, FreeClient)
    return client.read(asyncio.run(client.send(client.compose(QUESTION)))).text


# What gives lanes, and what is far away, is held at each step; what is changed, and what is said
AWAY: dict[str, tuple[str, Callable[[], Any], int]] = {
    "backend": (HELD, lane_answers, 1), "judge": (FAR, far_answer, 3),
}  # fmt: skip
AWAY_BROKEN = [
    ("backend", "np.uint8)", "np.int16)", "expected uint8 (height, width, 3), found int16"),
    ("backend", "        return [Picture", "        raise ValueError('cuda exploded')\n        return [Picture",
     "failed at generate: ValueError: cuda exploded"),
    ("backend", "        yield [self]", "        raise RuntimeError('no device')\n        yield [self]",
     "failed at lanes: RuntimeError: no device"),
    ("judge", 'b"yes"', '"yes"', "answers send with something else; expected bytes, found str 'yes'"),
    ("judge", '        return b"yes"', "        raise KeyError('choices')", "failed at send: KeyError: 'choices'"),
    ("judge", 'Outgoing(b"{}")', 'Outgoing("{}")', "answers compose with something else; expected an Outgoing, "),
    ("judge", "Reply(raw.decode())", "raw", "answers read with something else; expected a Reply, found bytes b'yes'"),
]  # fmt: skip


def away(kind: str, site: Path, monkeypatch: pytest.MonkeyPatch, old: str = "", new: str = "") -> Any:
    text, ask, _ = AWAY[kind]
    assert old in text
    write_package(
        site, "theirs", {f"{kind}.theirs": "theirs:make"}, text.replace(old, new) if old else text, monkeypatch
    )
    return ask()


@pytest.mark.parametrize("kind", AWAY)
def test_lanes_and_models_far_away_are_asked(kind: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(away(kind, site, monkeypatch)) == AWAY[kind][2]


@pytest.mark.parametrize(("kind", "old", "new", "said"), AWAY_BROKEN)
def test_lanes_and_models_far_away_that_fail_name_the_package(
    kind: str, old: str, new: str, said: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PluginFailure) as caught:
        away(kind, site, monkeypatch, old, new)
    assert f"the {kind} theirs of the package theirs 1.0 " in str(caught.value)
    assert said in str(caught.value)


def test_what_a_client_and_the_system_may_raise_passes(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match="later"):
        away("judge", site, monkeypatch, '        return b"yes"', '        raise Failure("busy", "later")')
    forget("theirs")
    with pytest.raises(MemoryError):
        away("backend", site / "other", monkeypatch, "        yield [self]", "        raise MemoryError\n        yield")
