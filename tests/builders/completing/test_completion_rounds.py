"""Look-up and choice against a walk over everything that compares names one by one."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.completing.completion_names import Found, KnownItem, KnownTables, accents_agree, reconcile
from culturekit.builders.country_names import folded, loose_key_of
from culturekit.core.schemas import CANDIDATES, KEPT
from culturekit.core.tables import slices_of
from tests.builders.completion_world import BRAZIL, DISH, JAPAN, dish, world
from tests.effort import SHARED_FIXTURE

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
