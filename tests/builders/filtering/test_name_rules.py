import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.filtering.cspace_filter import draw_pilot, name_problem, shares


def rows(**counts: int) -> list[dict[str, str]]:
    return [{"concept": concept, "qid": f"Q{number}"} for concept, count in counts.items() for number in range(count)]


@given(counts=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 300), min_size=1), size=st.integers(1, 250))
def test_every_place_is_given_and_none_twice(counts: dict[str, int], size: int) -> None:
    given_places = shares(counts, size)
    assert sum(given_places.values()) == min(size, sum(counts.values()))
    assert all(0 <= places <= counts[name] for name, places in given_places.items())
    if size >= len(counts):
        assert all(places >= 1 for places in given_places.values())


def test_each_concept_gives_its_share() -> None:
    assert shares({"art": 700, "cuisine": 290, "rare": 10}, 100) == {"art": 70, "cuisine": 29, "rare": 1}


def test_the_draw_depends_on_the_candidates_and_not_on_their_order() -> None:
    ordered = rows(art=500, cuisine=100)
    shuffled = random.Random(1).sample(ordered, len(ordered))
    drawn = draw_pilot(ordered, 60)
    assert drawn == draw_pilot(shuffled, 60)
    assert len(drawn) == 60
    assert sum(concept == "cuisine" for concept, _ in drawn) == 10


def test_a_larger_pilot_contains_the_smaller_one() -> None:
    assert draw_pilot(rows(art=500), 20) < draw_pilot(rows(art=500), 50)


def test_a_pilot_as_large_as_everything_is_everything() -> None:
    assert len(draw_pilot(rows(art=5, cuisine=3), 200)) == 8


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (None, "no usable label"),
        ("  ", "no usable label"),
        ("Q2065278", "label is only a QID"),
        ("x" * 201, "malformed name"),
        ("a\x07b", "malformed name"),
        ("123", "malformed name"),
        ("List of museums in Rome", "list, category, template or disambiguation"),
        ("Category:Tumuli in Norway", "list, category, template or disambiguation"),
        ("Pasta (disambiguation)", "list, category, template or disambiguation"),
        ("寿司", "name in a script of none of the languages"),
    ],
)
def test_a_name_that_gives_itself_away(name: str | None, reason: str) -> None:
    problem = name_problem(name, languages=["en"])
    assert problem is not None
    assert problem[0] == reason


@pytest.mark.parametrize("name", ["Pão de queijo", "açaí", "Q", "Chicken 65", "Ōsaka-jō", "jollof", "Listan negro"])
def test_names_of_artifacts_pass(name: str) -> None:
    assert name_problem(name, languages=["en"]) is None


def test_a_script_that_a_language_of_the_config_uses_is_kept() -> None:
    assert name_problem("寿司", languages=["en", "ja"]) is None
    assert name_problem("寿司", languages=["en", "pt-BR"]) is not None


@given(st.text(max_size=300))
def test_any_text_gets_a_reason_or_none(name: str) -> None:
    problem = name_problem(name, languages=["en"])
    assert problem is None or all(isinstance(part, str) for part in problem)
