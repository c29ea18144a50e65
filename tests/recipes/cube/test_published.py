from pathlib import Path

import pytest

from culturekit.core.errors import ConfigError
from culturekit.recipes.cube.keys import load_recipe

PLAIN = """recipe: cube
cspace: space.json
prompts: {file: space.json}
references: {backend: "folder:pictures"}
images: {kinds: [cube]}
models: [{name: one, backend: "folder:pictures"}]
scores: {size: 2}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where a space and pictures lie."""
    (tmp_path / "space.json").write_text("[]")
    (tmp_path / "pictures").mkdir()
    monkeypatch.chdir(tmp_path)


def problems(text: str) -> str:
    Path("recipe.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_recipe(Path("recipe.yaml"))
    return str(error.value)


def test_a_published_space_needs_no_dump() -> None:
    Path("recipe.yaml").write_text(PLAIN.replace("[cube]", "[cube], slots: 8"), encoding="utf-8")
    recipe = load_recipe(Path("recipe.yaml"))
    assert (recipe.cspace, recipe.prompts.file, recipe.dump) == ("space.json", "space.json", ())


@pytest.mark.parametrize(
    "key", ["dump: [sample]", "concepts: [art]", "judge: rules", "countries: [NO]", "release: [csv]", "include: review"]
)
def test_what_would_decide_nothing_beside_a_published_space_is_refused(key: str) -> None:
    name = key.partition(":")[0]
    assert f"cspace is taken as it was published, so {name} would decide nothing" in problems(f"{PLAIN}{key}\n")


def test_a_space_has_to_come_from_somewhere() -> None:
    without = PLAIN.replace("cspace: space.json\n", "")
    assert "give dump and concepts to make one, or cspace: FILE, one that was published" in problems(without)
    assert "concepts is missing" in problems(f"{without}dump: [sample]\n")


def test_a_file_of_prompts_stands_alone() -> None:
    said = problems(PLAIN.replace("{file: space.json}", "{file: space.json, kinds: [underspecified], per: 3}"))
    assert "file takes prompts as they are, so kinds, per would decide nothing" in said
    assert "there is no file 'none.json'" in problems(PLAIN.replace("{file: space.json}", "{file: none.json}"))
    assert "beside it are space.json" in problems(PLAIN.replace("{file: space.json}", "{file: none.json}"))


def test_without_references_artifacts_are_known_by_name_or_not_at_all() -> None:
    without = PLAIN.replace('references: {backend: "folder:pictures"}\n', "").replace("[cube]", "[cube], slots: 8")
    assert "references is missing: embedded knows artifacts by pictures only" in problems(without)
    Path("recipe.yaml").write_text(f"{without}encoder: transformers:clip\n", encoding="utf-8")
    assert load_recipe(Path("recipe.yaml")).references is None
    assert "diagnosis looks at how references" in problems(f"{without}encoder: transformers:clip\ndiagnosis: {{}}\n")
    other = "instruments: [{name: two, encoder: transformers:clip, channel: both}]\n"
    assert "the instruments two need references" in problems(f"{without}encoder: transformers:clip\n{other}")
