"""Translations and quotas of prompts."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.builders.prompting.quotas import load_quotas, read_quotas
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CSPACE, DROPS, PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from tests.builders.spaces import artifact, cspace

GERMAN = """
language: de
verified: {by: Erika Mustermann, on: 2026-11-01}
artifact:
  cuisine: Ein Bild von {name} aus der {adjective} Küche
underspecified:
  cuisine: [Bild von traditionellem Essen]
within_country:
  cuisine: ["Bild von traditionellem Essen aus {country}"]
countries:
  BR: {name: Brasilien, adjective: brasilianischen}
names: {Q1: Schwarze Bohnen}
"""


def saved(tmp_path: Path, text: str) -> str:
    path = tmp_path / "de.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def built(work: Work, tmp_path: Path, text: str = GERMAN) -> pl.DataFrame:
    rows = [artifact(1, name="feijoada"), artifact(2, name="sushi", country="JP"), artifact(3, concept="landmarks")]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    wanted = PromptOptions(
        ("cube", "underspecified", "within-country"), languages=("en", "de"), translations=(saved(tmp_path, text),)
    )
    build_prompts(work, space, wanted, seed=0)
    return read_table(work.out / "prompts.parquet", PROMPTS)


def test_the_same_artifact_is_paired_across_languages(work: Work, tmp_path: Path) -> None:
    prompts = built(work, tmp_path)
    assert prompts["prompt_id"].is_unique().all()
    german, english = (prompts.filter(language=language) for language in ("de", "en"))
    assert sorted(german["text"]) == [
        "Bild von traditionellem Essen",
        "Bild von traditionellem Essen aus Brasilien",
        "Ein Bild von Schwarze Bohnen aus der brasilianischen Küche",
    ]
    pairs = german.join(english, on="pair_id")
    assert pairs.height == 3
    about = ["kind", "concept", "country", "artifact_id", "template_id"]
    assert all(pairs[name].equals(pairs[f"{name}_right"], null_equal=True) for name in about)
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert set(drops["reason"]) == {"no de template", "no de form of the country"}
    kinds = PromptOptions(("cube", "underspecified", "within-country"))
    build_prompts(work, tmp_path / "cspace.parquet", kinds, seed=0)
    alone = read_table(work.out / "prompts.parquet", PROMPTS)
    assert "pair_id" not in alone.columns
    assert set(alone["prompt_id"]) == set(english["prompt_id"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("verified: {by: Erika Mustermann, on: 2026-11-01}", "", "nobody has verified"),
        ("on: 2026-11-01", "on: soon", "verified.on"),
        ("{name} aus", "aus", "does not name the artifact"),
        ("{adjective} Küche", "{nationality} Küche", "asks for nationality"),
        ("{adjective} Küche", "{adjective!r} Küche", "asks for a format"),
        ("{name} aus", "{name.x} aus", "asks for name.x"),
        ("{name} aus", "{name} {aus", "cannot be filled in"),
        ("aus {country}", "aus dem Land", "does not name the country"),
        ("[Bild von traditionellem Essen]", "[Eins, Zwei]", "go in pairs"),
        ("language: de", "language: en", "come with the space; write templates alone"),
    ],
)
def test_a_translation_that_cannot_be_used_is_refused(
    work: Work, tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(ConfigError) as told:
        built(work, tmp_path, GERMAN.replace(old, new))
    assert message in str(told.value)


def test_a_language_without_a_file_with_other_templates_or_not_asked_for_is_refused(work: Work, tmp_path: Path) -> None:
    space, german = write_table(tmp_path, CSPACE, cspace(artifact(1))), (saved(tmp_path, GERMAN),)
    for options, message in (
        (PromptOptions(languages=("hi",)), "no templates in hi"),
        (PromptOptions(templates="paper", languages=("de",), translations=german), "other templates"),
        (PromptOptions(translations=german), "translation to de, in which no prompt is asked for"),
    ):
        with pytest.raises(UsageError, match=message):
            build_prompts(work, space, options, seed=0)


ENGLISH_FESTIVALS = """
language: en
verified: {by: Ada, on: 2026-11-01}
artifact:
  festivals: A photo of people at {name} in {country}
underspecified:
  festivals: [A traditional festival]
"""


def test_english_words_of_another_concept_may_be_translations(work: Work, tmp_path: Path) -> None:
    space = write_table(tmp_path, CSPACE, cspace(artifact(1, name="Carnival", concept="festivals")))
    wanted = PromptOptions(("cube", "underspecified"), translations=(saved(tmp_path, ENGLISH_FESTIVALS),))
    build_prompts(work, space, wanted, seed=0)
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    assert prompts["text"].to_list() == ["A photo of people at Carnival in Brazil", "A traditional festival"]
    assert "pair_id" not in prompts.columns


def test_without_forms_of_countries_cldr_names_them_where_no_adjective_is_needed(work: Work, tmp_path: Path) -> None:
    words = GERMAN.partition("countries:")[0]
    prompts = built(work, tmp_path, words).filter(language="de", kind="within-country")
    assert prompts.filter(country="JP")["text"].to_list() == ["Bild von traditionellem Essen aus Japan"]
    assert set(prompts["marks"].list.join(",")) == {"country from CLDR"}
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.filter(reason="no de form of the country")["key"].sort().to_list() == ["Q1", "Q2"]


def quota_file(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


YAML = """
quotas:
  - {quota: 1}
  - {concept: art, quota: 2}
  - {country: Japan, quota: 3}
  - {concept: art, country: "NO", quota: 0}
"""
CSV = "\ufeffConcept;Country;Quota\r\n;;1\r\nart;;2\r\n;Japan;3\r\nart;NO;0\r\n;;\r\n"


@pytest.mark.parametrize(("name", "text"), [("q.yaml", YAML), ("q.csv", CSV)])
def test_the_closest_quota_counts(tmp_path: Path, name: str, text: str) -> None:
    quotas = load_quotas(quota_file(tmp_path, name, text))
    groups = [("art", "NO"), ("art", "JP"), ("cuisine", "JP"), ("cuisine", "BR")]
    assert [quotas.quota_of(group) for group in groups] == [0, 2, 3, 1]


def test_a_number_is_for_every_group() -> None:
    assert read_quotas(" 7 ").quota_of(("art", "BR")) == 7
    for wrong in ("0", "-3", "99999999999"):
        with pytest.raises(UsageError, match="a number of artifacts"):
            read_quotas(wrong)


def test_every_mistake_of_a_table_is_said_at_once(tmp_path: Path) -> None:
    text = "quotas:\n  - {concept: art, quota: 1}\n  - {country: Atlantis, quota: 1}\n  - {concept: art, quota: 2}\n"
    with pytest.raises(ConfigError) as told:
        load_quotas(quota_file(tmp_path, "q.yaml", text))
    assert [(problem.line, problem.message) for problem in told.value.problems] == [
        (3, "unknown country 'Atlantis'"),
        (4, "a second quota for art"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.csv", "concept,country\nart,BR\n", "lacks the column quota"),
        ("q.csv", "concept,country,quota\nart,BR,many\n", "q.csv:2: quota: expected a whole number"),
        ("q.csv", "concept,country,quota\n", "has no quota"),
        ("q.yaml", "quotas: []\n", "has no quota"),
        ("q.yaml", "quotas: [{quota: -1}]\n", "greater than or equal to 0"),
        ("q.yaml", "quotas: [{qota: 1}]\n", "did you mean 'quota'"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        load_quotas(quota_file(tmp_path, name, text))
    assert message in str(told.value)
