"""Names of artifacts, and which known item one means, against a walk over everything that compares names one by one."""

import sys
import unicodedata
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.completing.completion_names import (
    Found,
    KnownItem,
    KnownTables,
    accents_agree,
    artifact_slug,
    proposal_problem,
    reconcile,
    stripped_name,
)
from culturekit.builders.country_names import case_folds, folded, loose_key, loose_key_of, names_among, without_accents
from culturekit.core.schemas import CANDIDATES, KEPT, OF_A_MODEL
from culturekit.core.tables import slices_of
from tests.builders.completion_world import BRAZIL, DISH, JAPAN, dish, world
from tests.effort import SHARED_FIXTURE

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
    assert all(own.startswith(OF_A_MODEL) and " " not in own for own in ids)


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


WORDS = ("pate", "pâté", "pâte", "PÂTÉ", "Acai", "açaí", "Straße", "strasse", "かき", "がき", "pate pate")


def known(number: int, name: str, *countries: str, concept: str | None = "cuisine", **more: object) -> KnownItem:
    standing = "kept" if concept == "cuisine" else "in the graph"
    fields: dict[str, object] = {"classes": (DISH,), "standing": standing, "description": None, **more}
    return KnownItem(
        f"Q{number}",
        concept,
        name,
        names=frozenset({folded(name)}),
        country_qids=countries,
        **fields,  # type: ignore[arg-type]
    )


def meant(name: str, *items: KnownItem) -> Found:
    return reconcile(name, items, concept="cuisine", classes={DISH}, countries=(BRAZIL,))


def naive(name: str, items: list[KnownItem]) -> str:
    """Say in the plainest way which item is meant, or how it ends."""
    key = folded(name)
    tiers = [
        [item for item in items if fits(item) and near(item)]
        for near, fits in product(
            (lambda item: item.concept == "cuisine" or DISH in item.classes,
             lambda item: item.concept != "cuisine" and DISH not in item.classes),
            (lambda item: key in item.names, lambda item: any(accents_agree(key, own) for own in item.names)),
        )
    ]  # fmt: skip
    for number, tier in enumerate(tiers):
        if not tier:
            continue
        here = [item for item in tier if BRAZIL in item.country_qids]
        if any(item.concept == "cuisine" and item.standing == "kept" for item in here):
            return "there"
        left = here or tier
        for few in (
            [item for item in left if item.concept == "cuisine" and item.standing == "kept"],
            [item for item in left if item.concept == "cuisine"],
            left,
        ):
            if len(few) == 1:
                return few[0].qid
        return "several" if number < 2 else "nothing"
    return "nothing"


ITEMS = st.lists(
    st.builds(
        lambda name, countries, concept, classes, standing: (name, countries, concept, classes, standing),
        st.sampled_from(WORDS),
        st.sampled_from([(), (BRAZIL,), (JAPAN,), (BRAZIL, JAPAN)]),
        st.sampled_from(["cuisine", "art", None]),
        st.sampled_from([(), (DISH,), ("Q515",)]),
        st.sampled_from(["kept", "dropped"]),
    ),
    max_size=7,
)


@settings(max_examples=400, deadline=None)
@given(ITEMS, st.sampled_from(WORDS))
def test_the_choice_is_that_of_a_naive_walk(
    drawn: list[tuple[str, tuple[str, ...], str | None, tuple[str, ...], str]], name: str
) -> None:
    items = [
        known(number, own, *countries, concept=concept, classes=classes, standing=standing)
        for number, (own, countries, concept, classes, standing) in enumerate(drawn, start=1)
    ]
    found = meant(name, *items)
    said = found.item.qid if found.how == "elsewhere" and found.item is not None else found.how
    assert said == naive(name, items)


@settings(max_examples=25, deadline=None, suppress_health_check=SHARED_FIXTURE)
@given(
    kept=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    dropped=st.lists(st.sampled_from(WORDS), max_size=6),
    graph=st.lists(st.sampled_from(WORDS), max_size=6),
    wanted=st.lists(st.sampled_from(WORDS), max_size=3),
)
def test_the_tables_give_what_a_naive_walk_finds(
    tmp_path_factory: pytest.TempPathFactory, kept: list[str], dropped: list[str], graph: list[str], wanted: list[str]
) -> None:
    numbered = [dish(number, name) for number, name in enumerate([*kept, *dropped], start=1)]
    items = [
        {"qid": f"Q{number}", "label": "x", "title": name, "aliases": [], "P31": [DISH], "P495": [JAPAN]}
        for number, name in enumerate(graph, start=100)
    ]
    folder: Path = tmp_path_factory.mktemp("world")
    inputs = world(folder, numbered[: len(kept)], [(row, "judge x") for row in numbered[len(kept) :]], items)
    there, among = (
        slices_of(path, table, scratch=folder) for path, table in zip(inputs[:2], (KEPT, CANDIDATES), strict=True)
    )
    found = KnownTables(there, among, *inputs[2:]).find(wanted)
    for name in wanted:
        key = folded(name)
        tables = ((1, kept, "kept"), (1 + len(kept), dropped, "dropped"), (100, graph, "in the graph"))
        expected = {
            (f"Q{number}", standing)
            for first, names, standing in tables
            for number, own in enumerate(names, start=first)
            if folded(own) == key or accents_agree(folded(own), key)
        }
        called = found.get(loose_key_of(name), [])
        fitting = {(item.qid, item.standing) for item in called if any(accents_agree(key, own) for own in item.names)}
        assert fitting == expected
        for item in called:
            assert item.reason == ("judge x" if item.standing == "dropped" else "")
            assert item.country_qids == ((JAPAN,) if item.standing == "in the graph" else (BRAZIL,))
