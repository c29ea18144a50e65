import json
import re
from pathlib import Path

import pytest

from culturekit.config.checks import dump_files
from culturekit.config.kinds import RECIPES, AnyRecipe, RecipeKind
from culturekit.config.load import SHIPPED, find_recipe, load_any_recipe, schema_of, shipped_recipes
from culturekit.core.choices import SchemaKind
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.registry import Entry
from culturekit.recipes.cube.keys import load_recipe
from tests.command_line import culturekit
from tests.conftest import SMALL

GOLDEN = Path(__file__).parents[1] / "golden"


def problems(text: str, tmp_path: Path, *settings: str) -> list[str]:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_recipe(path, settings)
    return str(error.value).replace(str(path), "recipe.yaml").splitlines()


def test_six_mistakes_get_six_messages_with_line_key_and_closest_word(tmp_path: Path) -> None:
    broken = (GOLDEN / "six_mistakes.yaml").read_text(encoding="utf-8")
    expected = (GOLDEN / "six_mistakes.txt").read_text(encoding="utf-8").splitlines()
    assert problems(broken, tmp_path) == expected
    assert len(expected) == 6


def test_few_prompts_cannot_speak_about_others_and_that_is_known_before_any_image_is_made() -> None:
    with pytest.raises(ConfigError, match="population, which takes at least 20 prompts of each concept; cuisine has 1"):
        load_recipe(find_recipe("cube"), ["scores.target=population"])
    load_recipe(find_recipe("cube"), ["scores.target=population", "images.kinds=[cube]"])


def test_every_shipped_recipe_is_right() -> None:
    assert shipped_recipes() == ["c3", "cube", "cube-release", "cultivate", "inclusion", "linguistic"]
    for name in shipped_recipes():
        load_any_recipe(find_recipe(name))


def test_every_shipped_yaml_file_names_its_schema_in_its_first_line() -> None:
    package = shipped("kg").parent
    files = sorted([*package.rglob("*.yaml"), *package.glob("recipes/*.yaml")])
    assert len(files) >= 6
    for path in files:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema="), path
        assert (path.parent / first.partition("$schema=")[2]).is_file(), path


@pytest.mark.parametrize("kind", SHIPPED)
def test_a_shipped_schema_is_that_of_the_code(kind: SchemaKind) -> None:
    path = shipped(SHIPPED[kind][1])
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema == schema_of(kind), f"regenerate: culturekit config schema {kind} > culturekit/{SHIPPED[kind][1]}"
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    for later in ("$defs", "prefixItems"):
        assert later not in json.dumps(schema)


class Counted(AnyRecipe):
    """A recipe of another kind."""

    people: int


COUNTED = RecipeKind(Counted, lambda recipe, run: None)


def test_the_schema_of_any_kind_of_recipe_is_printed_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES.entries, "counted", Entry("counted", f"{__name__}:COUNTED", ""))
    schema = json.loads(culturekit("config", "schema", "--recipe", "counted").stdout)
    assert set(schema["properties"]) == {"recipe", "plugins", "countries_file", "seed", "people"}
    usual, named = (culturekit("config", "schema", *given).stdout for given in ((), ("--recipe", "cube")))
    assert json.loads(usual) == json.loads(named) == schema_of("recipe")
    assert "there is no kind of recipe 'cub'" in culturekit("config", "schema", "--recipe", "cub").stderr
    assert culturekit("config", "schema", "prices", "--recipe", "cube").returncode == 2


def test_the_record_of_a_run_is_its_recipe(tmp_path: Path) -> None:
    recipe = load_recipe("cube", ["images.repeats=2"])
    record = json.dumps({**recipe.model_dump(mode="json"), "stages": ["graph"]})
    (tmp_path / "recipe.json").write_text(record)
    assert load_recipe(tmp_path / "recipe.json") == recipe
    (tmp_path / "mine.yaml").write_text(record)
    with pytest.raises(ConfigError, match="stages"):
        load_recipe(tmp_path / "mine.yaml")


def test_a_shipped_recipe_is_printed_to_begin_another_from(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(culturekit("config", "recipe", "cube").stdout, encoding="utf-8")
    assert load_recipe(tmp_path / "mine.yaml") == load_recipe(find_recipe("cube"))
    assert "there is no such recipe" in culturekit("config", "recipe", "cub", cwd=tmp_path).stderr


def test_the_bundled_sample_stands_for_a_dump_unless_a_file_is_called_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dump_files("sample")[0].name == "wikidata-sample.json.gz"
    Path("sample").touch()
    assert dump_files("sample") == [Path("sample")]


def test_settings_go_over_the_file_and_keep_norway(tmp_path: Path) -> None:
    recipe = load_recipe(
        SMALL, ["seed=99", "models.1.backend=simulated?noise=0.5", "countries=[NO]", "images.repeats=2"]
    )
    assert recipe.seed == 99
    assert recipe.models[1].backend == "simulated?noise=0.5"
    assert recipe.models[0].name == "broad"
    assert recipe.countries == ("NO",)
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + "countries: [NO, BR]\n", encoding="utf-8")
    assert load_recipe(path).countries == ("NO", "BR")
    assert (recipe.images.repeats, recipe.images.slots) == (2, 8)


@pytest.mark.parametrize(("setting", "message"), [
    ("seed", "--set: expected key=value, found 'seed'"),
    ("seed=x", "--set seed: seed: input should be a valid integer, unable to parse string as an integer, found 'x'"),
    ("models.7.name=x", "--set models.7.name: there is nothing at 7 to set"),
    ("sead=1", "--set sead: sead: unknown key; did you mean 'seed'?"),
])  # fmt: skip
def test_a_wrong_setting_is_said_by_its_name(tmp_path: Path, setting: str, message: str) -> None:
    said = problems(SMALL.read_text(encoding="utf-8"), tmp_path, setting)
    assert any(line.startswith(message) for line in said), said


@pytest.mark.parametrize(("line", "message"), [
    ("judge: opnai", "there is no language model client 'opnai'"),
    ("encoder: clip", "there is no encoder 'clip'; expected"),
    ("quality: hps", "there is no quality scorer 'hps'"),
    ("popularity: views", "there is no popularity source 'views'"),
    ("scores: {size: 1}", "greater than or equal to 2"),
    ("scores: {confidence: 7}", "confidence must be between 0 and 1"),
    ("scores: {kernels: [[1, 1, 0]]}", "weights must"),
    ("mapping: {aggregate: mean}", "'mean' is not accepted"),
    (("seed: 11", "seed: -1"), "greater than or equal to 0"),
    (("slots: 8", "slots: 3"), "scores.size is 8, but images.slots makes only 3 images a repeat"),
    (("underspecified, within-country]", "within-country]"),
     "images.kinds asks for prompts that prompts.kinds does not build: underspecified"),
])  # fmt: skip
def test_values_are_checked_before_anything_runs(tmp_path: Path, line: str | tuple[str, str], message: str) -> None:
    """A line is added to the recipe, or takes the place of another."""
    text = SMALL.read_text(encoding="utf-8")
    said = problems(f"{text}{line}\n" if isinstance(line, str) else text.replace(*line), tmp_path)
    assert message in said[0]
    assert len(said) == 1


def test_simulated_raters_need_simulated_models_and_people_need_a_file(tmp_path: Path) -> None:
    text = SMALL.read_text(encoding="utf-8")
    assert "there is no file 'nowhere.parquet'" in problems(f"{text}\naudit: {{file: nowhere.parquet}}\n", tmp_path)[0]
    wrong = problems(f"{text}\naudit: {{images: 5, raters: {{accuracy: 2}}}}\n", tmp_path)
    assert len(wrong) == 2
    assert "audit.images" in wrong[0]
    assert "audit.raters.accuracy" in wrong[1]
    (tmp_path / "a.parquet").touch()
    idle = f"{text}\naudit: {{file: {tmp_path / 'a.parquet'}, images: 50}}\n"
    assert "people have answered (file), so images would decide nothing" in problems(idle, tmp_path)[0]


def test_a_recipe_is_found_by_path_or_by_name() -> None:
    assert find_recipe("cube").name == "cube.yaml"
    assert find_recipe(str(SMALL)) == SMALL
    with pytest.raises(UsageError, match="or one of: c3, cube"):
        find_recipe("cub")
    with pytest.raises(UsageError, match="Did you mean 'cube'"):
        find_recipe("elsewhere/cube.yaml")


RELEASE = "recipe: cube\ndump: [sample]\nconcepts: [art]\n"


def test_a_run_that_ends_with_the_release_needs_no_models(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(f"{RELEASE}prompts: {{kinds: [within-country]}}\ninclude: review\n", encoding="utf-8")
    recipe = load_recipe(path)
    assert (recipe.models, recipe.references, recipe.include) == ((), None, "review")


def test_a_review_names_files_that_are_there(tmp_path: Path) -> None:
    said = problems(f"{RELEASE}review: {{files: [no.csv], on: today}}\ncard: nowhere\n", tmp_path)
    assert any("there is no file 'no.csv'" in line for line in said)
    assert any("review.on" in line for line in said)
    assert any("`culturekit card init nowhere` begins one" in line for line in said)
    (said_once,) = problems(f"{RELEASE}quality: embedded\nreferences: {{backend: simulated}}\n", tmp_path)
    assert "models is missing, so references, quality would decide nothing" in said_once


def test_kernels_have_names_in_a_recipe_as_on_the_command_line() -> None:
    scores = load_recipe(SMALL, ["scores.kernels=[country, [0.5, 0.5, 0]]"]).scores
    assert [list(weights) for weights in scores.kernels] == [[0, 1, 0], [0.5, 0.5, 0]]
    with pytest.raises(ConfigError, match=r"scores.kernels\[0\]: weights must be 'continent' or .*; found 'contry'"):
        load_recipe(SMALL, ["scores.kernels=[contry]"])


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[2].glob("recipes/*.yaml")), ids=lambda path: path.stem)
def test_what_the_head_of_a_recipe_says_to_set_can_be_set(path: Path) -> None:
    """The command that the head of `c3` gave for the paper's size failed."""
    head = " ".join(line[2:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    for stated in re.findall(r"--set((?: [a-z_]\w*(?:\.\w+)*=[^\s;]+)+)", head):
        load_any_recipe(path, [word.rstrip(".,;") for word in stated.split()])
    assert head.count("--set") == len(re.findall(r"--set [a-z_.0-9]+=", head))
