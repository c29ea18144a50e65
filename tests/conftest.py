"""What many tests need: hands for a stage, the shared data where it is, one finished small run."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from culturekit.config.load import load_recipe
from culturekit.config.recipe import Recipe
from culturekit.pipeline.local_engine import LocalEngine
from culturekit.pipeline.run_recipe import run_recipe
from culturekit.records.work import Work
from tests.effort import PROFILE

Item = TypeVar("Item")
Result = TypeVar("Result")

settings.load_profile(PROFILE)

SMALL = Path(__file__).parent / "fixtures/small.yaml"
SHARED = Path(__file__).resolve().parents[2] / "shared/data"


class HereEngine:
    """Does the items one by one in this process."""

    workers = 1

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        return map(function, items)


@dataclass
class HeardProgress:
    """Remembers what it was told."""

    total: int = 0
    done: int = 0
    units: list[str] = field(default_factory=list)

    def begin(self, total: int, unit: str) -> None:
        self.total += total
        self.units.append(unit)

    def advance(self, done: int) -> None:
        self.done += done

    def tell(self, totals: str) -> None:
        self.units.append(totals)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Hands for a stage function that is called without the pipeline around it."""
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    return Work({}, out, scratch, HereEngine(), HeardProgress())


@pytest.fixture(scope="session")
def small_recipe() -> Recipe:
    """The cube recipe at a size that a test can run."""
    return load_recipe(SMALL)


@pytest.fixture(scope="session")
def small_run(small_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the small recipe; tests read it and change only copies."""
    root = tmp_path_factory.mktemp("runs") / "small"
    with LocalEngine(2) as engine:
        run_recipe(small_recipe, root, engine=engine, progress=HeardProgress())
    return root


@pytest.fixture
def run_copy(small_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, to break."""
    return Path(shutil.copytree(small_run, tmp_path / "small"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The data beside the checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the shared test data at {SHARED}")
    return SHARED
