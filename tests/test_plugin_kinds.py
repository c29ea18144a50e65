"""Packages that bring a measure, a source of popularity, an engine, a search or a kind of recipe, and break them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.builders.filtering.cspace_filter import FilterReply
from culturekit.builders.popularity import SOURCES
from culturekit.core.engines import engine_for
from culturekit.core.errors import PluginFailure
from culturekit.generation.backend import BACKENDS, HeldBackend, ImageRequest
from culturekit.index.raters.picture_spread import PAIR_MEASURES
from culturekit.index.search.search import searcher
from culturekit.llm.client import Client, Failure, FreeClient, Request
from culturekit.llm.clients.clients import CLIENTS
from tests.command_line import culturekit
from tests.outside_packages import PLUGINS, forget, write_package

KINDS = {"apart": "measure", "fame": "popularity", "single": "engine", "slow": "search"}
SHADES = [np.array(0.0), np.array(3.0)]
POINTS = np.eye(3, dtype=np.float32)


def mapped() -> list[int]:
    with engine_for("single", workers=1, folder=Path()) as engine:
        return list(engine.map(abs, [-1, 2]))


ASKED: dict[str, Callable[[], Any]] = {
    "apart": lambda: PAIR_MEASURES.make("apart").distances(SHADES).tolist(),
    "fame": lambda: SOURCES.make("fame").rate(pl.DataFrame({"artifact_id": ["a", "b"]}), None).values.to_list(),  # type: ignore[arg-type]
    "single": mapped,
    "slow": lambda: searcher(POINTS, engine="slow").best(POINTS[:2], k=1).rows.tolist(),
}
ANSWERS = {"apart": [[0.0, 3.0], [3.0, 0.0]], "fame": [0.5, 0.5], "single": [1, 2], "slow": [[0], [1]]}

# A package, what is changed in it, and what is said
BROKEN = [
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


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "site"
    forget(*KINDS, "theirs")


def write(site: Path, name: str, monkeypatch: pytest.MonkeyPatch, old: str = "", new: str = "") -> None:
    text = (PLUGINS / f"{name}.py").read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new, 1) if old else text
    write_package(site, name, {f"{KINDS[name]}.{name}": f"{name}:make"}, text, monkeypatch)


@pytest.mark.parametrize("name", KINDS)
def test_a_package_that_keeps_its_promise_is_used(name: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, name, monkeypatch)
    assert ASKED[name]() == ANSWERS[name]


@pytest.mark.parametrize(("name", "old", "new", "said"), BROKEN)
def test_a_package_that_breaks_its_promise_is_named(
    name: str, old: str, new: str, said: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, name, monkeypatch, old, new)
    with pytest.raises(PluginFailure) as caught:
        ASKED[name]()
    assert str(caught.value) == (
        f"{name}:make: the {KINDS[name]} {name} of the package {name} 1.0 {said}. "
        "Mend that package, or remove it: culturekit itself is not at fault."
    )


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


def test_an_error_that_nothing_held_is_still_the_packages(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package(site, "theirs", {"recipe.theirs": "theirs:THEIRS"}, THEIRS, monkeypatch)
    (tmp_path / "recipe.yaml").write_text("recipe: theirs\n", encoding="utf-8")
    answer = culturekit("plan", tmp_path / "recipe.yaml")
    assert answer.returncode == 2
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


def lane_answers(text: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    write_package(site, "theirs", {"backend.theirs": "theirs:make"}, text, monkeypatch)
    backend = BACKENDS.make("theirs")
    assert isinstance(backend, HeldBackend)
    with backend.lanes(1) as lanes:
        return list(lanes[0].generate([ImageRequest("p", "t", None, 1, 0, 0, None, None, None)]))


def test_each_lane_of_a_backend_is_held(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(lane_answers(HELD, site, monkeypatch)) == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("np.uint8)", "np.int16)", "generate with something else; expected uint8 (height, width, 3), found int16"),
        ("        return [Picture", "        raise ValueError('cuda exploded')\n        return [Picture",
         "failed at generate: ValueError: cuda exploded"),
        ("        yield [self]", "        raise MemoryError", None),
        ("        yield [self]", "        raise RuntimeError('no device')\n        yield [self]",
         "failed at lanes: RuntimeError: no device"),
    ],
)  # fmt: skip
def test_a_lane_that_fails_names_the_package(
    old: str, new: str, said: str | None, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in HELD
    with pytest.raises(MemoryError if said is None else PluginFailure) as caught:
        lane_answers(HELD.replace(old, new + "\n        yield" if said is None else new), site, monkeypatch)
    assert said is None or "the backend theirs of the package theirs 1.0 " in str(caught.value)
    assert said is None or said in str(caught.value)


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


def far_answer(text: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_package(site, "theirs", {"judge.theirs": "theirs:make"}, text, monkeypatch)
    client = CLIENTS.make("theirs")
    assert isinstance(client, Client)
    assert not isinstance(client, FreeClient)
    request = Request("judge", "Keep?", {"id": "Q1"}, FilterReply)
    return client.read(asyncio.run(client.send(client.compose(request)))).text


def test_a_model_far_away_is_asked(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert far_answer(FAR, site, monkeypatch) == "yes"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('b"yes"', '"yes"', "answers send with something else; expected bytes, found str 'yes'"),
        ('        return b"yes"', "        raise KeyError('choices')", "failed at send: KeyError: 'choices'"),
        ('Outgoing(b"{}")', 'Outgoing("{}")', "answers compose with something else; expected an Outgoing, with bytes"),
        ("Reply(raw.decode())", "raw", "answers read with something else; expected a Reply, found bytes b'yes'"),
    ],
)
def test_a_model_far_away_that_fails_names_the_package(
    old: str, new: str, said: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in FAR
    with pytest.raises(PluginFailure) as caught:
        far_answer(FAR.replace(old, new), site, monkeypatch)
    assert f"the judge theirs of the package theirs 1.0 {said}" in str(caught.value)


def test_what_a_client_may_raise_passes(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match="later"):
        far_answer(FAR.replace('        return b"yes"', '        raise Failure("busy", "later")'), site, monkeypatch)
