import random

from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.filtering.pilot import draw_pilot, shares


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
