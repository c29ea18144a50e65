"""Sentences of one's own: typed into a CSV file, or read off the names of pictures."""

from pathlib import Path

import pytest

from culturekit.builders.space.space_files import concept_of, read_prompts, sentences_in
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import PROMPTS
from culturekit.core.tables import write_table

SENTENCES = """prompt,concept,country,note
A plate of food,Cuisine,,mine
A wedding dress,art,Japan,
A wedding dress,art,JP,
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "sentences.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_sentences_with_their_concepts_are_prompts(tmp_path: Path) -> None:
    prompts, drops = read_prompts(written(tmp_path, SENTENCES))
    assert prompts.select("text", "concept", "country", "kind").rows() == [
        ("A plate of food", "cuisine", None, "underspecified"),
        ("A wedding dress", "art", "JP", "within-country"),
    ]
    assert dict(drops.select("reason", "key").rows()) == {"column not read": "note", "duplicate": "line 4"}
    write_table(tmp_path, PROMPTS, prompts)
    _, drops = read_prompts(written(tmp_path, "prompt,concept,country\nA plate,cuisine,Korea\nA bowl,cuisine,Korea\n"))
    assert drops["key"].to_list() == ["Korea is read as South Korea (KR): write North Korea or KP for the other"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prompt,concept\nA plate of food,\n", "there is no concept"),
        ("prompt,concept\n,cuisine\n", "there is no prompt"),
        ("prompt,concept,country\nA plate,cuisine,Atlantis\n", "unknown country 'Atlantis'"),
        ("prompt,concept,country\nA plate,cuisine,Japan; Italy\n", "several countries"),
        ("id,prompt,concept\na,A plate,cuisine\na,A dish,cuisine\n", "stands for another prompt"),
        ("prompt,concept\n", "there is no prompt"),
        ("text,concept\nA plate,cuisine\n", "lacks the column prompt"),
    ],
)
def test_what_is_no_prompt_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises((ConfigError, UsageError)) as error:
        read_prompts(written(tmp_path, text))
    assert words in str(error.value)


def test_names_of_pictures_are_sentences() -> None:
    names = [
        "Image_of_traditional_food__0.png", "Image of traditional food (3).jpg", "A wedding in 1920 - 4.png",
        "A famous landmark/0001.png", "IMG_0001.png", "cover.png",
    ]  # fmt: skip
    assert sentences_in(names) == ["A famous landmark", "A wedding in 1920", "Image of traditional food"]


@pytest.mark.parametrize(
    ("text", "concepts", "concept"),
    [
        ("Image of traditional food", ("art", "cuisine"), "cuisine"),
        ("a photo of FOOD at a feast", ("art", "cuisine", "landmarks"), "cuisine"),
        ("a work of art", ("art", "cuisine"), "art"),
        ("a departure", ("art", "cuisine"), None),
        ("a wedding", ("art", "cuisine"), None),
        ("a wedding", ("music",), "music"),
    ],
)
def test_a_sentence_tells_its_concept_or_nothing(text: str, concepts: tuple[str, ...], concept: str | None) -> None:
    assert concept_of(text, concepts) == concept
