from pathlib import Path

import pytest

from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.builders.prompting.prompts_stage import prompts_stage
from culturekit.config.kinds import wired
from culturekit.core.errors import ConfigError
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Work
from culturekit.kg.concepts import load_concept
from culturekit.kg.exchange.extract_stage import described
from culturekit.recipes.cube.keys import load_recipe
from tests.builders.prompting.test_translations import GERMAN, saved
from tests.builders.spaces import artifact, cspace

INSTRUMENTS = """
concept: instruments
hops: 3
roots:
  - {qid: Q34379, label: musical instrument}
  - {qid: Q11404, label: drum, subconcept: drum}
"""
WORDS = """
prompts:
  en:
    artifact: A photo of {name}, a musical instrument from {country}
    subconcepts: {drum: "A photo of a {adjective} drum, the {name}"}
    underspecified: [A traditional musical instrument]
    within_country: ["A musical instrument from {country}"]
  de:
    artifact: Ein Foto von {name}, einem Musikinstrument aus {country}
    underspecified: [Ein Musikinstrument]
    within_country: ["Ein Musikinstrument aus {country}"]
    verified: {by: Erika Mustermann, on: 2026-11-01}
"""


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "instruments.yaml"
    path.write_text(INSTRUMENTS + text, encoding="utf-8")
    return str(path)


def test_a_concept_brings_the_words_of_its_prompts(work: Work, tmp_path: Path) -> None:
    rows = [
        artifact(5, name="berimbau", concept="instruments"),
        artifact(2, name="atabaque", concept="instruments", subconcept="drum"),
        artifact(3, name="feijoada"),
    ]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    options = PromptOptions(
        ("cube", "underspecified", "within-country"), languages=("en", "de"), translations=(saved(tmp_path, GERMAN),)
    )
    build_prompts(work, space, options, seed=0, concepts=[load_concept(config(tmp_path, WORDS))])
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    assert set(prompts["text"]) == {
        "A photo of berimbau, a musical instrument from Brazil",
        "A photo of a Brazilian drum, the atabaque",
        "A high resolution image of feijoada from Brazilian cuisine, realistic",
        "A traditional musical instrument",
        "Image of traditional food",
        "A musical instrument from Brazil",
        "Image of traditional food from Brazil",
        "Ein Foto von berimbau, einem Musikinstrument aus Brasilien",
        "Ein Foto von atabaque, einem Musikinstrument aus Brasilien",
        "Ein Bild von feijoada aus der brasilianischen Küche",
        "Ein Musikinstrument",
        "Bild von traditionellem Essen",
        "Ein Musikinstrument aus Brasilien",
        "Bild von traditionellem Essen aus Brasilien",
    }


def test_words_decide_prompts_and_nothing_before_them(tmp_path: Path) -> None:
    plain, worded = (load_concept(config(tmp_path, text)) for text in ("", WORDS))
    assert described([plain]) == described([worded])
    space = write_table(tmp_path, CSPACE, cspace(artifact(1, concept="instruments")))
    one, other = (
        prompts_stage(space, PromptOptions(), seed=0, concepts=[load_concept(config(tmp_path, text))])
        for text in (WORDS, WORDS.replace("A photo of {name}, a", "A picture of {name}, a"))
    )
    assert one.options != other.options


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("A photo of {name}, a", "A photo of a", "does not name the artifact"),
        ("{country}", "{place}", "asks for place; accepted: adjective, country, name"),
        ('["A musical instrument from {country}"]', "[A musical instrument]", "does not name the country"),
        ("    verified: {by: Erika Mustermann, on: 2026-11-01}\n", "", "de: nobody has verified this translation"),
        ("  en:", "  English:", "prompts.English"),
    ],
)
def test_words_that_cannot_be_used_name_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WORDS
    with pytest.raises(ConfigError) as told:
        load_concept(config(tmp_path, WORDS.replace(old, new)))
    assert message in str(told.value)
    assert "instruments.yaml:" in str(told.value)


def test_a_concept_without_words_is_refused_before_anything_runs(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    text = Path("recipes/cube.yaml").read_text(encoding="utf-8")
    recipe.write_text(text.replace("[cuisine, landmarks, art]", f"[cuisine, {config(tmp_path, '')}]"), encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        load_recipe(recipe)
    assert str(told.value) == (
        f"{recipe}:5: "
        "no en template for prompts of the kind cube about instruments; expected `prompts: {en: {artifact: ...}}` in "
        "the root config of the concept. Give that config in `concepts` or with --roots, or templates with "
        "--translations or in `prompts: {translations: ...}`."
    )
    config(tmp_path, WORDS)
    assert wired(load_recipe(recipe), tmp_path / "run").steps
