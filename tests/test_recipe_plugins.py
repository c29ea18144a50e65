"""Plugins that a recipe brings along: used by it alone, in its keys, in workers, by commands told of it."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.plugins import carrying, digest_of_code, use_plugins
from culturekit.generation.backend import BACKENDS
from culturekit.index.encoder import ENCODERS
from culturekit.scores.listing import all_metrics
from tests.command_line import culturekit
from tests.outside_packages import EXAMPLES, PLUGINS

RECIPE = """
recipe: cube
cspace: dishes.csv
prompts: {kinds: [cube, underspecified]}
images: {kinds: [underspecified], slots: 2, repeats: 2}
scores: {size: 2}
references: {backend: simulated, per_artifact: 1}
plugins: {backend.flags: flags.py:make}
models: [{name: plain, backend: flags}]
"""
SPACE = "name,concept,country\nfeijoada,cuisine,BR\nsushi,cuisine,JP\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "dishes.csv").write_text(SPACE, encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/recipe.yaml").write_text(RECIPE, encoding="utf-8")
    shutil.copy(PLUGINS / "flags.py", tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    use_plugins({})


def ran(*words: str, code: int = 0) -> str:
    answer = culturekit("run", "own/recipe.yaml", "--until", "images", *words)
    assert answer.returncode == code, answer.stderr
    return answer.stderr


def options() -> object:
    return json.loads(Path("runs/recipe/images-plain/manifest.json").read_text(encoding="utf-8"))["options"]


def test_a_recipe_brings_a_backend_from_a_file_beside_it(folder: Path) -> None:
    ran()
    state = {"code": digest_in(folder / "own/flags.py")}
    assert options()["backend_plugin"] == {**state, "says": "flags 1"}  # type: ignore[index]
    assert "5 reused, 0 done" in ran()
    assert not list((folder / "own").glob("__pycache__"))
    with pytest.raises(UsageError, match="there is no backend 'flags'"):
        BACKENDS.make("flags")


def digest_in(path: Path, module: str = "flags") -> str:
    use_plugins({"backend.flags": f"{path}:make"})
    found = digest_of_code(module)
    use_plugins({})
    return found


def test_a_changed_file_is_not_reused_in_silence(folder: Path) -> None:
    ran()
    images = folder / "runs/recipe/images-plain/images.parquet"
    before = pl.read_parquet(images)["sha256"]
    path = folder / "own/flags.py"
    path.write_text(path.read_text(encoding="utf-8").replace("% 251", "% 41 + 7"), encoding="utf-8")
    assert "images-plain is made again and replaces what was finished: option backend_plugin code" in ran()
    assert not set(before) & set(pl.read_parquet(images)["sha256"]), "by the new code, in the process that had the old"


def test_what_runs_and_tools_leave_beside_the_code_is_none_of_it(folder: Path) -> None:
    shutil.copy(EXAMPLES / "evenness/evenness/__init__.py", folder / "own")
    first = digest_in(folder / "own/flags.py", "own.flags")
    for name in ("runs/recipe/manifest.json", ".cache/old.py", "__pycache__/flags.py", "notes.txt"):
        (folder / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "own" / name).write_text("new", encoding="utf-8")
    assert digest_in(folder / "own/flags.py", "own.flags") == first
    (folder / "own/more.py").write_text("", encoding="utf-8")
    assert digest_in(folder / "own/flags.py", "own.flags") != first


def test_code_is_read_anew_within_a_process(folder: Path) -> None:
    path = folder / "own/greys.py"
    text = (PLUGINS / "greys.py").read_text(encoding="utf-8")
    for batch in ("8", "9"):
        path.write_text(text.replace("batch_size = 8", f"batch_size = {batch}"), encoding="utf-8")
        use_plugins({"encoder.greys": "own/greys.py:make"})
        assert ENCODERS.make("greys").batch_size == int(batch)  # type: ignore[attr-defined]
    first = sys.modules["greys"]
    use_plugins({"encoder.greys": "own/greys.py:make"})
    ENCODERS.make("greys")
    assert sys.modules["greys"] is first
    use_plugins({})
    assert "greys" not in sys.modules


@pytest.mark.endtoend
def test_workers_know_it_too(folder: Path) -> None:
    shutil.copy(PLUGINS / "greys.py", folder / "own")
    with LocalEngine(1) as engine:
        use_plugins({"encoder.greys": "own/greys.py:make"})
        assert list(carrying(engine).map(name_of, ["greys"])) == ["greys"]


def name_of(spec: str) -> str:
    name: str = ENCODERS.make(spec).identity.name
    return name


def test_other_commands_are_told_of_it(folder: Path) -> None:
    package = f"{EXAMPLES}/evenness/evenness"
    Path("own/recipe.yaml").write_text(
        f"plugins:\n  metric.evenness: {package}/family.py:evenness\n  check.score-evenness: "
        f"{package}/check.py:check_evenness\n  encoder.greys: own/nothing.py:make\n",
        encoding="utf-8",
    )
    missing = culturekit("--plugins", "own/recipe.yaml", "plugins", ends=2)
    assert "plugins: own/nothing.py: there is no such file" in missing.stderr
    shutil.copy(PLUGINS / "greys.py", folder / "own/nothing.py")
    listed = culturekit("--plugins", "own/recipe.yaml", "plugins").stdout
    assert f"metric   evenness  {package}/family.py" in listed
    kinds = {line.split()[1] for line in listed.splitlines() if line.strip()}
    assert kinds == {"metric", "encoder"}, "a kind of earlier versions is passed over"
    assert culturekit("--plugins", "own/recipe.yaml", "score", "evenness", "--help").returncode == 0
    assert culturekit("score", "evenness", "--help").returncode == 2
    assert culturekit("--plugins", "own/recipe.yaml", "metrics", "show", "evenness_entropy").returncode == 0


OWN_KIND = """
from culturekit.config.kinds import AnyRecipe, RecipeKind
from culturekit.core.stage import Outcome
from culturekit.core.roles import Role
from culturekit.core.stage import Stage

def written(work):
    (work.out / "said.txt").write_text("one")
    return Outcome()

def wire(recipe, run):
    run.add(Stage("said", "said", 1, lambda work: written(work), {}), Role("said", ""))
    run.add(Stage("ours", "ours", 1, print, {}), Role("ours", ""))

OWN = RecipeKind(AnyRecipe, wire)
"""


def test_the_code_of_a_kind_of_recipe_is_in_the_keys_of_its_stages(folder: Path) -> None:
    from culturekit.config.kinds import wired

    path = folder / "own/mine.py"
    path.write_text(OWN_KIND, encoding="utf-8")
    Path("own/recipe.yaml").write_text("recipe: mine\nplugins: {recipe.mine: mine.py:OWN}\n", encoding="utf-8")
    said, ours = (step.stage for step in wired(load_any_recipe(Path("own/recipe.yaml")), folder / "run").steps)
    assert said.options == {"recipe_plugin": {"code": digest_of_code("mine")}}
    assert ours.options == {}, "what is ours is told by its version"
    culturekit("run", "own/recipe.yaml", "--until", "said", "--workdir", "run", ends=0)
    path.write_text(OWN_KIND.replace('"one"', '"two"'), encoding="utf-8")
    again = culturekit("run", "own/recipe.yaml", "--until", "said", "--workdir", "run")
    assert "said is made again and replaces what was finished: option recipe_plugin code" in again.stderr
    assert (folder / "run/said/said.txt").read_text() == "two"


@pytest.mark.parametrize(("error", "said"), [
    ("ValueError", "own/recipe.yaml:1: no seed will do (asks the recipe mine of the file own/mine.py)"),
    ("KeyError", "the recipe mine of the file own/mine.py failed: KeyError"),
])  # fmt: skip
def test_a_check_of_a_plugin_names_it_whatever_it_raises(error: str, said: str, folder: Path) -> None:
    check = f"""
from pydantic import model_validator

class Mine(AnyRecipe):
    @model_validator(mode="after")
    def checked(self):
        raise {error}("no seed will do")

OWN = RecipeKind(Mine, wire)
"""
    (folder / "own/mine.py").write_text(OWN_KIND + check, encoding="utf-8")
    Path("own/recipe.yaml").write_text("recipe: mine\nplugins: {recipe.mine: mine.py:OWN}\n", encoding="utf-8")
    answer = culturekit("plan", "own/recipe.yaml")
    assert (answer.returncode, said in answer.stderr) == (2, True), answer.stderr


@pytest.mark.parametrize(("stated", "said"), [
    ("{encodr.greys: flags.py:make}", "'encodr.greys' names no plugin; expected KIND.NAME, of the kinds encoder, "),
    ("{backend.flags: flags.py}", "'flags.py' names nothing; expected FILE.py:THING or module:THING"),
    ("{backend.flags: flgs.py:make}", "flgs.py: there is no such file; expected a Python file, as FILE.py:THING"),
    ("{backend.flags: json.py:make}", "json.py: another module is called json; expected a name of its own, found "),
    ("{backend.flags: flags.py:mke}", "the backend flags of the file own/flags.py cannot be imported: "
     "AttributeError: module 'flags' has no attribute 'mke'. Mend that file"),
    ("{backend.flags: lacking.py:make}", "the backend flags of the file own/lacking.py needs the package "
     "beside_it, which is not installed. Install it; code of your own belongs into one folder with the file"),
    ("{backend.flags: nowhere_at_all:make}", "the backend flags of the package nowhere_at_all cannot be imported"),
    ("{backend.flags: __main__.py:make}", "__main__.py: Python cannot import a file of this name"),
    ("{backend.flags: '.flags:make'}", "'.flags:make' names nothing; expected FILE.py:THING or module:THING"),
    ("{backend.flags: 'a..b:make'}", "'a..b:make' names nothing; expected FILE.py:THING or module:THING"),
    ("[flags.py]", "input should be a valid dictionary, found list"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(stated: str, said: str, folder: Path) -> None:
    shutil.copy(PLUGINS / "flags.py", folder / "own/json.py")
    shutil.copy(PLUGINS / "flags.py", folder / "own/__main__.py")
    (folder / "own/lacking.py").write_text("import beside_it\n", encoding="utf-8")
    text = RECIPE.replace("{backend.flags: flags.py:make}", stated)
    Path("own/recipe.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_any_recipe(Path("own/recipe.yaml"))
    line = RECIPE.splitlines().index("plugins: {backend.flags: flags.py:make}") + 1
    assert str(caught.value).startswith(f"own/recipe.yaml:{line}: plugins"), caught.value
    assert said in str(caught.value)


def test_a_package_may_be_named_by_its_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "evenness")
    use_plugins({"metric.evenness": "evenness.family:evenness"})
    assert "evenness_entropy" in all_metrics()
    use_plugins({})
    assert "evenness_entropy" not in all_metrics()
