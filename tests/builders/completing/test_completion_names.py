import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.completing.completion_names import (
    SLUG,
    accents_agree,
    artifact_slug,
    proposal_problem,
    stripped_name,
)
from culturekit.builders.country_names import case_folds, folded, loose_key, loose_key_of, names_among, without_accents

LETTERS = "aAeEéÉèêëoöøßſsSΣσςıİiIñÑçÇﬁﬀｆＦÅåÅ가ㄱपनकाि्あアｱ゛が　 -–'’.·ŉǰΐᾳĲ①²Ⅳ"
# What this Python's Unicode knows: a name of other characters is malformed
KNOWN = st.characters(exclude_categories=("Cn", "Cs"))

NAMES = st.text(st.sampled_from(LETTERS), max_size=8) | st.text(KNOWN, max_size=8)


def loose_keys(names: list[str]) -> list[str]:
    """Give the keys of names as a column and one by one, which are the same."""
    column = pl.Series("name", names, dtype=pl.String)
    keys: list[str] = column.to_frame().select(loose_key(pl.col("name"))).to_series().to_list()
    assert keys == list(map(loose_key_of, names))
    table = pl.DataFrame({"label": names, "title": names}, schema={"label": pl.String, "title": pl.String})
    rows = table.with_columns(aliases=pl.lit([], dtype=pl.List(pl.String)))
    wanted = pl.Series("key", keys, dtype=pl.String)
    assert names_among(rows, wanted).height == len(names)
    return keys


@given(NAMES)
def test_a_name_in_other_case_form_or_punctuation_shares_its_loose_key(name: str) -> None:
    ways = [name, unicodedata.normalize("NFD", name), unicodedata.normalize("NFKC", name), f" {name}! ", folded(name)]
    assert len(set(loose_keys([*ways, without_accents(folded(name))]))) == 1


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("pate", "pâté", True), ("pâte", "pâté", False), ("creme brûlée", "crème brûlée", True),
        ("acai", "açaí", True), ("мой", "мои", True), ("かき", "がき", False), ("फल", "फ़ल", False),
        ("pate de foie", "pâté foie", False),
    ],
)  # fmt: skip
def test_accents_that_contradict_make_two_names(one: str, other: str, agree: bool) -> None:
    assert accents_agree(folded(one), folded(other)) is agree


@given(st.lists(st.tuples(NAMES.filter(folded), st.sampled_from(["BR", "JP"])), max_size=12))
def test_ids_are_unique_and_the_same_each_time(given_names: list[tuple[str, str]]) -> None:
    def mint() -> list[str]:
        taken: list[str] = []
        for name, country in given_names:
            taken.append(artifact_slug(name, concept="cuisine", country=country, taken=taken))
        return taken

    ids = mint()
    assert ids == mint()
    assert len(set(ids)) == len(ids)
    assert all(own.startswith(SLUG) and " " not in own for own in ids)


def test_another_artifact_of_a_name_says_its_concept_then_its_country_then_a_number() -> None:
    taken: set[str] = set()
    for _ in range(4):
        taken.add(artifact_slug("Maní  con—sal", concept="cuisine", country="BR", taken=taken))
    plain = "LLM:maní-con-sal"
    assert taken == {plain, f"{plain}-cuisine", f"{plain}-cuisine-br", f"{plain}-cuisine-br-2"}


@pytest.mark.parametrize("quoted", ['"moqueca"', "“moqueca”", "  «moqueca» ", "‘moqueca’", "'moqueca'"])
def test_quotation_marks_around_a_name_are_no_part_of_it(quoted: str) -> None:
    assert stripped_name(quoted) == "moqueca"
    assert stripped_name("okra 'n' rice") == "okra 'n' rice"


@given(st.text(max_size=200))
def test_every_text_is_a_name_or_has_a_reason(text: str) -> None:
    name = stripped_name(text)
    problem = proposal_problem(name, languages=("en", "ja"))
    assert problem is not None or (folded(name) and len(name) <= 120 and name.isprintable() and "<" not in name)


@pytest.mark.parametrize(
    "name", ["Ｂ級グルメ", "ʻIolani Palace", "L'Arc-en-Ciel (tower)", "Feijoada à moda, no. 2", "نان‌برنجی"]
)
def test_unusual_names_are_names(name: str) -> None:
    assert proposal_problem(stripped_name(name), languages=("en", "ja", "fa")) is None


def test_rows_are_found_by_label_title_or_any_alias() -> None:
    frame = pl.DataFrame(
        {
            "qid": ["Q1", "Q2", "Q3", "Q4"],
            "label": ["Straße", None, "x", "y"],
            "title": [None, "FEIJOADA", None, None],
            "aliases": [[], [], ["a", "Pão-de-Queijo"], []],
        },
        schema={"qid": pl.String, "label": pl.String, "title": pl.String, "aliases": pl.List(pl.String)},
    )
    keys = pl.Series("key", loose_keys(["STRASSE", "feijoada", "pao de queijo"]), dtype=pl.String)
    assert names_among(frame, keys)["qid"].to_list() == ["Q1", "Q2", "Q3"]


def test_all_letters_that_folding_changes_though_they_are_small_are_known() -> None:
    small = {character.lower() for character in map(chr, range(sys.maxunicode + 1))}
    assert case_folds() == {letter: letter.casefold() for letter in small if letter.casefold() != letter}
