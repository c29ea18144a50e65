"""Activities from pages to prompts: quotes that stand there, names that mean the same, the whole grid."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from culturekit.builders.activities import extracting as merging
from culturekit.builders.activities.extracting import LOOKED_FOR, extract, find_quote, merge, name_key
from culturekit.core.schemas import ACTIVITIES, DROPS, MENTIONS, PAGES, PROMPTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.countries import countries, country
from tests.builders.judging.test_image_judge import Scripted
from tests.builders.put import beside, do, put
from tests.builders.spaces import rows_of

TEXT = "In Punjab, bhangra is danced at harvest.\nPeople say “namaste” with folded hands; kabaddi is played."
PAGE = {"source": "wikipedia", "country": "IN", "title": "India", "sha256": "0", "section": "Customs", "text": TEXT}
CULTIVATE = sorted(iso for iso, each in countries().items() if "cultivate" in each.groups)


def pages(folder: Path, *changes: Mapping[str, Any]) -> Path:
    rows = [{**PAGE, "page_id": "p", "number": 1, "categories": list(LOOKED_FOR), **each} for each in changes]
    folder.mkdir(exist_ok=True)
    return write_table(folder, PAGES, rows_of(PAGES, *rows))


def found(name: str, category: str, quote: str) -> dict[str, str]:
    return {"name": name, "category": category, "quote": quote}


CATEGORIES = ("dances", "games", "greetings")


def extracted(work: Work, folder: Path, *activities: Mapping[str, str]) -> tuple[Outcome, list[Any]]:
    client = Scripted(lambda request: {"id": request.data["id"], "activities": list(activities)})
    outcome = put(extract, work, client, pages(folder / "pages", {"categories": list(CATEGORIES)}))
    asked = client.seen[0].data
    assert (asked["country"], asked["categories"]) == ("India", list(CATEGORIES))
    table = read_table(work.out / "mentions.parquet", MENTIONS).sort("position")
    return outcome, table.select("name", "outcome").rows()


def test_only_what_the_text_says_is_taken(work: Work, tmp_path: Path) -> None:
    outcome, rows = extracted(
        work,
        tmp_path,
        found("Bhangra", "dances", "bhangra is   danced\nat harvest"),
        found("Namaste", "greetings", "People say “namaste” with folded hands"),
        found("Garba", "dances", "garba is danced for nine nights"),
        found("Garba", "dances", "bhangra is danced"),
        found("Kabaddi", "sports", "kabaddi is played"),
        found("Namaste", "religious", "People say “namaste” with folded hands"),
        found("bhangra", "dances", "bhangra is danced"),
        found("kabaddi", "games", " . "),
        found("the game that everybody in the whole of Punjab plays", "games", "kabaddi is played"),
    )
    assert rows == [
        ("Bhangra", "ok"), ("Namaste", "ok"), ("Garba", "the quote is not in the text"), ("Garba", "ok"),
        ("Kabaddi", "not a category that was asked for"), ("Namaste", "not a category that was asked for"),
        ("bhangra", "repeated"),
        ("kabaddi", "the quote is not in the text"),
        ("the game that everybody in the whole of Punjab plays", "not a name"),
    ]  # fmt: skip
    counts = outcome.notes["mentions"]
    assert isinstance(counts, dict)
    assert counts["ok"] == 3


def test_names_are_compared_by_the_words_that_tell_them_apart() -> None:
    india = country("IN")
    same = ["Bhangra", "the Bhangra dance", "Bhángra", "Indian bhangra dances", "Bhangras"]
    assert len({name_key(name, india) for name in same}) == 1
    assert name_key("Traditional Indian folk dance", india) == frozenset()
    assert name_key("New Year", india) != name_key("Tamil New Year", india)


Mention = tuple[str, str, str]


def merged(
    work: Work, folder: Path, mentions: Sequence[Mention], **options: Any
) -> tuple[Outcome, pl.DataFrame, pl.DataFrame]:
    """Merge mentions, each a country, a category and a name, each on a page of its own."""
    folder.mkdir(exist_ok=True)
    rows = [
        {"country": iso, "category": category, "page_id": f"p{place}", "number": 1, "position": 1, "name": name,
         "quote": f"They know {name}.", "reader": "gpt", "outcome": "ok"}
        for place, (iso, category, name) in enumerate(mentions)
    ]  # fmt: skip
    sources = [{"page_id": row["page_id"], "country": row["country"], "revision": "7"} for row in rows]
    about = pages(folder / "pages", *sources)
    outcome = do(merge, work, write_table(folder, MENTIONS, rows_of(MENTIONS, *rows)), about, **options)
    return (
        outcome,
        read_table(work.out / "activities.parquet", ACTIVITIES),
        read_table(work.out / "drops.parquet", DROPS),
    )


def test_near_duplicates_become_one_activity_with_its_source(work: Work, tmp_path: Path) -> None:
    mentions = [("IN", "dances", name) for name in ("Bhangra dance", "Bhangra", "the Bhangra", "Bhangra", "Garba")]
    mentions += [("IN", "celebrations", "Diwali"), ("IN", "celebrations", "Diwali"), ("IN", "religious", "Diwali")]
    mentions += [("IN", "dances", "Indian folk dance")]
    outcome, table, drops = merged(work, tmp_path, mentions, per_category=2)
    own = table.filter(form="multi-variant")
    assert own.select("category", "activity", "also", "mentions").rows() == [
        ("celebrations", "Diwali", [], 2),
        ("dances", "Bhangra", ["Bhangra dance", "the Bhangra"], 4),
        ("dances", "Garba", [], 1),
    ]
    first = own.filter(activity="Bhangra").to_dicts()[0]
    assert (first["quote"], first["title"], first["revision"]) == ("They know Bhangra dance.", "India", "7")
    assert set(drops.select("key", "reason", "detail").rows()) == {
        ("IN/Diwali", "also in another category", "celebrations"),
        ("IN/Indian folk dance", "no name of its own", None),
    }
    assert outcome.notes["findings"] == [
        "IN games: 0 of 2", "IN religious: 0 of 2", "IN greetings: 0 of 2", "IN celebrations: 1 of 2",
    ]  # fmt: skip


class ByMeaning:
    """An encoder of texts that knows two names of one game."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        same = {"Mancala": 0, "Ayoayo": 0, "Ludo": 1, "Seeds and pits": 2}
        return np.eye(3, dtype=np.float32)[[same[text] for text in texts]]


def test_names_that_an_encoder_holds_to_be_alike_are_one(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "text_encoder_of", lambda spec: ByMeaning())
    mentions = [("NG", "games", name) for name in ("Ayoayo", "Mancala", "Ludo", "Ayoayo")]
    _, table, _ = merged(work, tmp_path, mentions, encoder="embedded", per_category=2)
    assert table.filter(category="games").select("activity", "also", "mentions").rows() == [
        ("Ayoayo", ["Mancala"], 3),
        ("Ludo", [], 1),
    ]


def test_the_whole_grid_is_576_prompts(work: Work, tmp_path: Path) -> None:
    assert len(CULTIVATE) == 16
    mentions = [
        (iso, category, f"{word} {category[:4]}")
        for iso in CULTIVATE
        for category in LOOKED_FOR
        for word in ("alba", "brio", "cima", "duna", "erba", "fiume", "gola")
    ]
    outcome, activities, drops = merged(work, tmp_path / "in", mentions)
    assert "findings" not in outcome.notes
    assert Counter(drops["reason"]) == {"more than 6": 16 * 5}
    inside = beside(work, "prompts")
    assert do(merging.prompts, inside, work.out / "activities.parquet").counts == {"prompts": 576, "countries": 16}
    prompts = read_table(inside.out / "prompts.parquet", PROMPTS)
    assert Counter(prompts["country"]) == dict.fromkeys(CULTIVATE, 36)
    assert Counter(prompts["group"]) == {"GN": 5 * 36, "GS": 11 * 36}
    assert prompts["concept"].n_unique() == 9
    assert activities.group_by("form").len().sort("form").rows() == [
        ("multi-variant", 480), ("setting", 64), ("single", 32),
    ]  # fmt: skip
    texts = set(prompts["text"])
    assert len(texts) == 576
    assert "A photorealistic photo of eating at a restaurant in the Philippines." in texts
    assert "A photorealistic photo of a wedding in Nepal." in texts


SOURCE = "Feijoada  is a\nstew of beans\u00a0with beef, cafe\u0301 and 김치.\nIt\u200b is\u202e Brazilian."


def words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


@pytest.mark.parametrize(
    ("quote", "cited"),
    [
        ("Feijoada is a stew", "Feijoada  is a\nstew"),
        (" stew of beans with\tbeef ", "stew of beans\u00a0with beef"),
        ("café", "cafe\u0301"),
        (unicodedata.normalize("NFD", "김치"), "김치"),
        ("It is Brazilian", "It\u200b is\u202e Brazilian"),
        ("It is\ufeff Braz\u200bilian.", "It\u200b is\u202e Brazilian."),
    ],
)
def test_a_quote_is_found_where_it_stands(quote: str, cited: str) -> None:
    place = find_quote(SOURCE, quote)
    assert place is not None
    assert SOURCE[slice(*place)] == cited


@pytest.mark.parametrize(
    "quote",
    ["feijoada", "Feijoada is stew", "cafe", "Feijoada is a stew ... beef", "chicken", "김ᄎ", "", " ", "...", "—"],
)
def test_what_does_not_stand_there_word_for_word_is_not_found(quote: str) -> None:
    assert find_quote(SOURCE, quote) is None


FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
LETTERS = st.sampled_from("abé\u0301\u0308 \n\u00a0가\u1100\u1161\u11a8क\u094d\u0937日Z\u200b\u200d\ufe0f\u09c7\u09be")


@given(st.text(LETTERS, max_size=30), st.text(LETTERS, max_size=10))
def test_found_means_equal_once_composed(source: str, quote: str) -> None:
    place = find_quote(source, quote)
    if place is not None:
        assert visible(source[slice(*place)]) == visible(quote)


def visible(text: str) -> str:
    return words("".join(character for character in text if character not in "\u200b\u200d\ufe0f"))


@given(st.text(LETTERS, min_size=1, max_size=30), st.data())
def test_whatever_stands_between_two_spaces_is_found_in_any_form(source: str, data: st.DataObject) -> None:
    spans = source.split(" ")
    first = data.draw(st.integers(0, len(spans) - 1))
    last = data.draw(st.integers(first, len(spans) - 1))
    quote = " ".join(spans[first : last + 1])
    assume(any(map(str.isalnum, quote)))
    assume(not unicodedata.category(visible(quote)[0]).startswith("M"))
    form = data.draw(st.sampled_from(FORMS))
    assert find_quote(source, unicodedata.normalize(form, quote)) is not None
    assert find_quote(unicodedata.normalize(form, source), quote) is not None
