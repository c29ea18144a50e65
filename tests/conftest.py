"""What many tests need: hands for a stage, the shared data where it is, one finished small run."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

import pytest
from hypothesis import settings

from culturekit.config.kinds import AnyRecipe, wired
from culturekit.core.engines import LocalEngine
from culturekit.core.run import StageRun, run_stage
from culturekit.core.stage import Stage, Work, hold
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.run_recipe import run_recipe
from tests.effort import PROFILE

Item = TypeVar("Item")
Result = TypeVar("Result")

settings.load_profile(PROFILE)

SMALL = Path(__file__).parent / "fixtures/small.yaml"
SHARED = Path(__file__).resolve().parents[2] / "shared/data"


def pytest_configure() -> None:
    """Look for no garbage while tests are collected, nearly all stays; wait for no disk: no test cuts the power.

    Models are held against a day on which those that tests name were alive, and nobody's own prices are read.
    """
    gc.disable()
    os.fsync = lambda fd: None
    os.environ["CULTUREKIT_TODAY"] = "2026-01-15"
    os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "culturekit-tests-without-configuration")
    os.environ.pop("CULTUREKIT_PRICES", None)


def pytest_collection_finish() -> None:
    """From here on look for garbage in what tests make only."""
    gc.freeze()
    gc.enable()


class HereEngine:
    """Does the items one by one in this process, where nothing is shown about workers."""

    workers = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        return map(function, items)


@dataclass
class HeardProgress:
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


def recipe_here(recipe: AnyRecipe, root: Path, until: str | None = None) -> list[StageRun]:
    return run_recipe(recipe, root, engine=HereEngine(), progress=HeardProgress(), until=until)


def stage_here(stage: Stage, folder: Path) -> StageRun:
    """Run a stage into a folder, in this process."""
    return run_stage(stage, folder, engine=HereEngine(), progress=HeardProgress())


def stages_of(recipe: AnyRecipe, root: Path) -> list[Stage]:
    """Give the stages of a run that is to be."""
    return [step.stage for step in wired(recipe, root).steps]


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
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.getbasetemp()
    return here.parent if "PYTEST_XDIST_WORKER" in os.environ else here


@pytest.fixture(scope="session")
def small_run(small_recipe: Recipe, shared_folder: Path) -> Iterator[Path]:
    """A finished run of the small recipe, made once for all processes; tests read it and change only copies."""
    root, finished = shared_folder / "runs/small", shared_folder / "runs/small.finished"
    with hold(shared_folder / "runs/.lock", wait=True):
        if not finished.exists():
            with LocalEngine(2) as engine:
                run_recipe(small_recipe, root, engine=engine, progress=HeardProgress())
            finished.write_text("\n".join(states(root)), encoding="utf-8")
    yield root
    changed = set(finished.read_text(encoding="utf-8").splitlines()) ^ set(states(root))
    assert not changed, f"a test changed the run that all share; take run_copy: {sorted(changed)}"


def states(root: Path) -> list[str]:
    """Name every file below a folder with its size and the moment of its last change."""
    files = [(path, path.stat()) for path in sorted(root.rglob("*")) if path.is_file()]
    return [f"{path.relative_to(root)} {state.st_size} {state.st_mtime_ns}" for path, state in files]


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


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """Let torch compute in one thread: on a machine that does much else, several wait for each other."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def imputed_in_few_rounds() -> Iterator[None]:
    """Impute in few rounds, where nothing is shown about how near the numbers come."""
    from tests.metrics.corrected.audits_by_hand import few_rounds

    with few_rounds():
        yield
