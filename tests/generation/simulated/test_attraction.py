import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Pull, Subject, draw
from culturekit.generation.simulated.simulated_backend import Attraction, Options, rows_of, strength
from tests.generation.simulated.simulated_models import asked, model, pictures, portraits, space, wide_space

SPACE = wide_space(80)
IDS = SPACE["artifact_id"].to_list()


def attraction(
    cspace: pl.DataFrame = SPACE, *, hubs: int = 3, drift: float = 0.5, drift_to: tuple[str, ...] = ()
) -> Attraction:
    return Attraction(rows_of(cspace), Options(hub_skew=0.5, hubs=hubs, drift=drift, drift_to=",".join(drift_to)))


def test_zero_knobs_change_no_bit(tmp_path: Path) -> None:
    plain = portraits(model(tmp_path, SPACE), IDS, first_seed=0)
    for options in ("hub_skew=0", "drift=0", "hub_skew=0&drift=0&hubs=7&drift_to=NG"):
        for one, other in zip(plain, portraits(model(tmp_path, SPACE, options), IDS, first_seed=0), strict=True):
            assert np.array_equal(one.pixels, other.pixels)


def test_the_knobs_change_neither_what_is_chosen_nor_what_is_culture_free(tmp_path: Path) -> None:
    options = "noise=0.3&collapse=0.3&temperature=2&size=16"
    requests = [asked(seed) for seed in range(300)]
    plain = pictures(model(tmp_path, SPACE, options).generate(requests))
    drawn = pictures(model(tmp_path, SPACE, f"{options}&hub_skew=0.9&drift=0.9").generate(requests))
    for one, other in zip(plain, drawn, strict=True):
        assert (one.truth_artifact_id, one.truth_country) == (other.truth_artifact_id, other.truth_country)
        if one.truth_artifact_id is None:
            assert np.array_equal(one.pixels, other.pixels)


@pytest.mark.parametrize("knob", ["hub_skew", "drift"])
def test_a_knob_alone_moves_more_pictures_the_higher_it_is(tmp_path: Path, knob: str) -> None:
    plain = portraits(model(tmp_path, SPACE), IDS, first_seed=0)
    moved = []
    for value in (0.1, 0.5, 1.0):
        drawn = portraits(model(tmp_path, SPACE, f"{knob}={value}"), IDS, first_seed=0)
        apart = [
            np.abs(one.pixels.astype(float) - other.pixels).mean() for one, other in zip(plain, drawn, strict=True)
        ]
        moved.append(float(np.mean(apart)))
    assert 0 < moved[0] < moved[1] < moved[2]


def test_hubs_are_the_first_by_their_digest_and_stay_what_they_are() -> None:
    by_digest = sorted(IDS, key=lambda artifact_id: hashlib.sha256(f"hub {artifact_id}".encode()).digest())
    found = attraction()
    assert found.hubs["cuisine"] == tuple(by_digest[:3])
    goals: Counter[str | None] = Counter()
    for row in rows_of(SPACE):
        pulls = [pull for pull in found.pulls(row, 0.6, 0.0) if pull.artifact_id in found.hubs["cuisine"]]
        assert bool(pulls) == (row.artifact_id not in by_digest[:3])
        goals.update(pull.artifact_id for pull in pulls)
        assert all(pull.country is None for pull in pulls)
    assert set(goals) == set(by_digest[:3])
    assert min(goals.values()) > 12


def test_hubs_are_never_more_than_half_of_a_concept() -> None:
    few = space(("Q1", "art", "FR", 1.0), ("Q2", "art", "US", 1.0), ("Q3", "art", "US", 1.0), ("Q4", "food", "US", 1.0))
    found = attraction(few, hubs=10, drift=0.0)
    assert len(found.hubs["art"]) == 1
    assert found.hubs["food"] == ()
    assert all(found.to_hub(row, 0.5) is None for row in rows_of(few) if row.concept == "food")
    assert attraction(hubs=5).hubs["cuisine"][:2] == attraction(hubs=2).hubs["cuisine"], "more add to the fewer"


MANY = space(
    ("Q1", "art", "US", 1.0), ("Q2", "art", "US", 1.0), ("Q3", "art", "FR", 1.0), ("Q3", "art", "BR", 1.0),
    ("Q4", "art", "IT", 1.0), ("Q5", "food", "IT", 1.0), ("Q6", "art", "JP", 1.0), ("Q7", "food", "NG", 1.0),
    ("Q2", "art", "NG", 1.0),
)  # fmt: skip


def test_pictures_drift_to_the_countries_with_the_most_artifacts_or_those_that_are_named() -> None:
    found = attraction(MANY)
    assert found.countries == ("IT", "NG")  # each has two, as US has, which comes later in the alphabet
    for row in rows_of(MANY):
        pull = found.drift(row, 0.5)
        if row.artifact_id in {"Q4", "Q5", "Q7", "Q2"}:
            assert pull is None
        else:
            assert pull is not None
            assert (pull.artifact_id, pull.country) in {("Q4", "IT"), ("Q2", "NG")}
    found = attraction(MANY, drift_to=("FR",))
    goals = {row.artifact_id: found.drift(row, 0.5) for row in rows_of(MANY)}
    assert goals["Q3"] is None
    assert goals["Q1"] == Pull(0.5, "Q3", "FR")
    assert goals["Q7"] == Pull(0.5, None, "FR"), "where the concept has nothing from there, the border alone drifts"


def test_drift_in_a_space_of_one_country_has_nowhere_to_go(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere to draw pictures to; .*two countries or more.*a CSpace of FR alone"):
        model(tmp_path, SPACE.filter(pl.col("country") == "FR"), "drift=0.5")


@given(knob=st.floats(0, 1), number=st.floats(0, 1, exclude_max=True))
def test_a_pull_is_a_share_and_grows_with_the_knob(knob: float, number: float) -> None:
    pull = strength(knob, number)
    assert 0 <= pull <= 1
    assert pull <= strength(min(1.0, knob + 0.05), number) + 1e-12
    if knob in (0, 1) and number > 0.001:
        assert pull == knob


@pytest.mark.parametrize("knob", [0.05, 0.2, 0.6])
def test_the_share_of_pictures_drawn_more_than_half_way_is_the_knob(knob: float) -> None:
    numbers = (np.arange(20_000) + 0.5) / 20_000
    pulls = np.array([strength(knob, number) for number in numbers.tolist()])
    assert (pulls > 0.5).mean() == pytest.approx(knob, abs=1e-4)
    assert ((pulls > 0.2) & (pulls < 0.8)).mean() < 0.25, "few lie in between"


def test_a_full_pull_shows_the_other_emblem_and_border() -> None:
    numbers = np.repeat(np.random.default_rng(0).random((1, DRAWING_NUMBERS)), 3, axis=0)
    pulled = Subject("Q1", "US", (Pull(1.0, "Q2", "IN"),))
    half = Subject("Q1", "US", (Pull(0.5, "Q2", "IN"),))
    there, goal, between = draw([pulled, Subject("Q2", "IN"), half], numbers, size=64)
    assert np.abs(there.astype(int) - goal).max() <= 1
    assert np.abs(between.astype(float) - goal).mean() > 5


def test_pulled_pictures_are_fixed_for_ever(tmp_path: Path) -> None:
    drawn = portraits(model(tmp_path, SPACE, "hub_skew=0.4&drift=0.3"), IDS[:20], first_seed=0)
    digest = hashlib.sha256(b"".join(picture.pixels.tobytes() for picture in drawn)).hexdigest()
    assert digest[:16] == "91ecd384ad303f99", "the pictures of simulated-1 have changed; a new look needs a new version"
