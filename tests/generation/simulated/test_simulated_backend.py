import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from culturekit.generation.backend import BACKENDS, Failure, ImageRequest, Picture, Pixels
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Numbers, Pull, Subject, draw
from culturekit.generation.simulated.simulated_backend import (
    CHOICE_NUMBERS,
    Attraction,
    BiasedChoice,
    Options,
    Pool,
    Row,
    rows_of,
    strength,
)
from tests.generation.simulated.simulated_models import asked, model, pictures, portraits, space, wide_space

SPACE = wide_space(24)

MIXED = [
    asked(1), asked(2, artifact_id="Q7"), asked(3, concept="music"), asked(4, country="FR"), asked(2**63 - 1),
    asked(-5), *map(asked, range(10, 30)),
]  # fmt: skip


def test_a_reply_is_the_same_in_whatever_batch(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE, "noise=0.3&error=0.5&collapse=0.3&size=32")
    together = backend.generate(MIXED)
    backwards = backend.generate(MIXED[::-1])[::-1]
    alone = [backend.generate([request])[0] for request in MIXED]
    assert sum(isinstance(reply, Failure) for reply in together) == 1
    for reply, *others in zip(together, backwards, alone, strict=True):
        for other in others:
            if isinstance(reply, Picture) and isinstance(other, Picture):
                assert np.array_equal(reply.pixels, other.pixels)
                assert reply == replace(other, pixels=reply.pixels)
            else:
                assert reply == other


def test_only_seed_artifact_and_country_matter(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE)
    one = asked(5, artifact_id="Q7")
    other = replace(one, prompt_id="q", text="another", negative_text="no", repeat=4, slot=2)
    first, second, third = pictures(backend.generate([one, other, replace(one, seed=6)]))
    assert np.array_equal(first.pixels, second.pixels)
    assert not np.array_equal(first.pixels, third.pixels)


def test_the_truth_comes_with_the_picture(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE)
    (named,) = pictures(backend.generate([asked(1, artifact_id="Q14")]))
    assert (named.truth_artifact_id, named.truth_country) == ("Q14", "IN")
    assert named.seed_honoured
    assert backend.knows_truth
    countries = dict(SPACE.select("artifact_id", "country").iter_rows())
    for picture in pictures(backend.generate([asked(seed) for seed in range(50)])):
        assert picture.truth_artifact_id
        assert picture.truth_country == countries[picture.truth_artifact_id]


def test_a_picture_shows_its_truth_and_not_what_was_asked_for(tmp_path: Path) -> None:
    (mistaken,) = pictures(model(tmp_path, SPACE, "error=1").generate([asked(1, artifact_id="Q14")]))
    assert mistaken.truth_artifact_id
    assert mistaken.truth_artifact_id != "Q14"
    honest = asked(1, artifact_id=mistaken.truth_artifact_id)
    (same,) = pictures(model(tmp_path, SPACE).generate([honest]))
    assert np.array_equal(mistaken.pixels, same.pixels)


def test_noise_is_the_share_of_pictures_without_truth_and_strikes_independently_of_error(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE, "noise=0.3&size=16")
    requests = [asked(seed, artifact_id="Q7" if seed % 2 else None) for seed in range(1000)]
    free = [picture.truth_artifact_id is None for picture in pictures(backend.generate(requests))]
    assert sum(free) / 1000 == pytest.approx(0.3, abs=0.045)
    assert sum(free[::2]) / 500 == pytest.approx(0.3, abs=0.06)
    backend = model(tmp_path, SPACE, "noise=0.5&error=0.5&size=16")
    drawn = pictures(backend.generate([asked(seed, artifact_id="Q7") for seed in range(1000)]))
    right = sum(picture.truth_artifact_id == "Q7" for picture in drawn)
    assert right / 1000 == pytest.approx(0.25, abs=0.045)


def test_a_culture_free_picture_depends_on_nothing_but_the_seed(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE, "noise=1")
    one, same, other = pictures(
        backend.generate([asked(3, artifact_id="Q7"), asked(3, artifact_id="Q14"), asked(4, artifact_id="Q7")])
    )
    assert np.array_equal(one.pixels, same.pixels)
    assert not np.array_equal(one.pixels, other.pixels)
    assert one.truth_country is None


@pytest.mark.parametrize("options", ["noise=0", "noise=1", "collapse=1"])
@pytest.mark.parametrize(("request_", "words"), [
    (asked(1, concept="music"), "concept 'music'"), (asked(1, country="ZZ"), "country 'ZZ'"),
    (asked(1, artifact_id="Q3"), "artifact 'Q3'"), (asked(1, concept=None), "neither artifact nor concept"),
])  # fmt: skip
def test_what_the_cspace_lacks_is_a_failure(tmp_path: Path, options: str, request_: ImageRequest, words: str) -> None:
    (reply,) = model(tmp_path, SPACE, options).generate([request_])
    assert isinstance(reply, Failure)
    assert reply.status == "failed"
    assert words in reply.reason


def test_the_option_goes_before_the_table_of_the_run_and_without_either_the_hint_helps(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    mine = write_table(tmp_path / "mine", CSPACE, space(("Q5", "art", "US", None)))
    run = write_table(tmp_path, CSPACE, SPACE)
    (picture,) = pictures(BACKENDS.make(f"simulated?cspace={mine}", cspace=run).generate([asked(1, concept="art")]))
    assert picture.truth_artifact_id == "Q5"
    with pytest.raises(UsageError, match="cspace=PATH"):
        BACKENDS.make("simulated?noise=1")
    with pytest.raises(UsageError, match=r"simulated\?cspace=PATH"):
        BACKENDS.make("simulated:cspace.parquet")


@pytest.mark.parametrize(("options", "words"), [
    ("noise=1.5", "noise"), ("temperature=-1", "temperature"), ("modes=0", "modes"), ("collapse=much", "collapse"),
    ("favour_strength=0.5", "favour_strength needs favour"), ("favour=US", "favour needs favour_strength"),
    ("favour=us&favour_strength=1", "favoured country 'us'.*FR or .*US"), ("favor=US", "no option favor"),
    ("drift_to=ZZ,US", "no artifact of ZZ, which drift_to names"), ("hubs=0", "hubs"), ("drift=-0.1", "drift"),
    ("drift=0.5&drift_to=BR,FR,IN,IT,JP,NG,TR,US", "nothing to draw away"), ("hub_skew=1.2", "hub_skew"),
])  # fmt: skip
def test_a_wrong_knob_is_said(tmp_path: Path, options: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        model(tmp_path, SPACE, options)


EVEN = Options(temperature=0)

DISHES = space(
    ("Q1", "cuisine", "FR", 8.0), ("Q2", "cuisine", "FR", 4.0), ("Q3", "cuisine", "JP", 2.0),
    ("Q4", "cuisine", "JP", None), ("Q5", "cuisine", "TR", 1.0), ("Q1", "cuisine", "TR", 8.0),
    ("Q8", "landmarks", "FR", None), ("Q9", "landmarks", "US", None),
)  # fmt: skip

DRAWS = 6000


def drawn(bias: Options, request: ImageRequest, cspace: pl.DataFrame = DISHES) -> Counter[tuple[str, str]]:
    choice = BiasedChoice(cspace, bias)
    numbers = np.random.default_rng(3).random((DRAWS, CHOICE_NUMBERS))
    rows = [choice.choose(request, row) for row in numbers]
    return Counter((row.artifact_id, row.country) for row in rows if row)


def departure(found: Mapping[tuple[str, str], int], weights: Mapping[tuple[str, str], float]) -> float:
    """Chi-square less its mean, in its standard deviations; infinite where something impossible was drawn."""
    if set(found) - set(weights):
        return float("inf")
    total, freedom = sum(weights.values()), len(weights) - 1
    expected = {row: DRAWS * weight / total for row, weight in weights.items()}
    square = sum((found.get(row, 0) - count) ** 2 / count for row, count in expected.items())
    return float((square - freedom) / np.sqrt(2 * freedom))


POPULARITY = {
    ("Q1", "FR"): 8.0, ("Q2", "FR"): 4.0, ("Q3", "JP"): 2.0, ("Q4", "JP"): 1.0, ("Q5", "TR"): 1.0, ("Q1", "TR"): 8.0,
}  # fmt: skip


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_the_distribution_is_popularity_to_the_temperature(temperature: float) -> None:
    found = drawn(replace(EVEN, temperature=temperature), asked(0))
    assert departure(found, {row: weight**temperature for row, weight in POPULARITY.items()}) < 4
    assert departure(found, {row: weight ** (temperature + 0.2) for row, weight in POPULARITY.items()}) > 8


NAMED = asked(0, artifact_id="Q1")

FAVOURED = {row: 0.4 / 6 + 0.6 / 2 * (row[1] == "JP") for row in POPULARITY}

MISTAKEN = {("Q1", "FR"): 0.7} | {row: 0.3 / 4 for row in POPULARITY if row[0] != "Q1"}


@pytest.mark.parametrize(("bias", "request_", "weights"), [
    ({"temperature": 3}, asked(0, concept="landmarks"), {("Q8", "FR"): 1, ("Q9", "US"): 1}),
    ({"temperature": 1}, asked(0, country="TR"), {("Q5", "TR"): 1, ("Q1", "TR"): 8}),
    ({"favour": "JP", "favour_strength": 0.6}, asked(0), FAVOURED),
    ({"favour": "JP", "favour_strength": 1}, asked(0, country="TR"), {("Q5", "TR"): 1, ("Q1", "TR"): 1}),
    ({"error": 0.3}, NAMED, MISTAKEN),
], ids=["no popularity", "a country", "a favourite", "a country that is asked for goes first", "an error"])  # fmt: skip
def test_rows_are_drawn_by_request_and_bias(
    bias: Mapping[str, Any], request_: ImageRequest, weights: Mapping[tuple[str, str], float]
) -> None:
    assert departure(drawn(replace(EVEN, **bias), request_), weights) < 4


def test_collapse_returns_to_the_same_few_rows() -> None:
    bias = replace(EVEN, collapse=0.7, modes=2)
    certain = drawn(replace(bias, collapse=1), asked(0))
    assert len(certain) == 2
    share = sum(drawn(bias, asked(0))[row] for row in certain) / DRAWS
    assert share == pytest.approx(0.7 + 0.3 * 2 / 6, abs=0.02)


def test_collapse_and_favour_strike_independently() -> None:
    bias = replace(EVEN, collapse=0.5, favour="JP", favour_strength=0.5)
    modes = set(drawn(replace(EVEN, collapse=1), asked(0)))
    shares = {row: 0.5 * (row in modes) / 2 + 0.25 / 6 + 0.25 * (row[1] == "JP") / 2 for row in POPULARITY}
    assert departure(drawn(bias, asked(0)), shares) < 4


def test_modes_depend_on_no_order_and_no_popularity_and_more_add_to_the_fewer() -> None:
    bias = replace(EVEN, collapse=1)
    changed = DISHES.reverse().with_columns(popularity=pl.lit(5.0))
    assert set(drawn(bias, asked(0))) == set(drawn(bias, asked(0), changed))
    one, three = (set(drawn(replace(EVEN, collapse=1, modes=modes), asked(0))) for modes in (1, 3))
    assert len(one) == 1
    assert len(three) == 3
    assert one < three


def test_a_named_artifact_is_drawn_in_the_country_of_the_request_and_alone_is_not_mistaken() -> None:
    assert set(drawn(EVEN, asked(0, artifact_id="Q1", country="TR"))) == {("Q1", "TR")}
    assert set(drawn(EVEN, asked(0, artifact_id="Q1", country="US"))) == {("Q1", "FR")}
    assert set(drawn(EVEN, asked(0, artifact_id="Q1", concept=None))) == {("Q1", "FR")}
    found = drawn(replace(EVEN, error=1), asked(0, artifact_id="Q1"), space(("Q1", "cuisine", "FR", 1.0)))
    assert set(found) == {("Q1", "FR")}


@example(popularity=[0.0, 1.0], temperature=1.0, number=0.0)
@example(popularity=[1.0, 0.0], temperature=1.0, number=1 - 2**-53)
@given(
    popularity=st.lists(st.one_of(st.none(), st.floats(0, 1e300)), min_size=1, max_size=8),
    temperature=st.floats(0, 100),
    number=st.floats(0, 1, exclude_max=True),
)
def test_any_popularity_can_be_drawn_from(popularity: list[float | None], temperature: float, number: float) -> None:
    rows = [Row(f"Q{index}", "cuisine", "FR", known, index) for index, known in enumerate(popularity)]
    row = Pool(rows, temperature).draw(number)
    if row.popularity == 0 and temperature > 0:
        assert all(other.popularity in (0, None) for other in rows)


@pytest.mark.parametrize("popularity", [-1.0, float("nan"), float("inf")])
def test_a_popularity_that_cannot_weigh_is_said(popularity: float) -> None:
    with pytest.raises(UsageError, match="popularity of Q2"):
        BiasedChoice(space(("Q1", "cuisine", "FR", 1.0), ("Q2", "cuisine", "FR", popularity)), EVEN)


UNEVEN = wide_space(80)

IDS = UNEVEN["artifact_id"].to_list()


def attraction(
    cspace: pl.DataFrame = UNEVEN, *, hubs: int = 3, drift: float = 0.5, drift_to: tuple[str, ...] = ()
) -> Attraction:
    return Attraction(rows_of(cspace), Options(hub_skew=0.5, hubs=hubs, drift=drift, drift_to=",".join(drift_to)))


def test_zero_knobs_change_no_bit(tmp_path: Path) -> None:
    plain = portraits(model(tmp_path, UNEVEN), IDS, first_seed=0)
    for options in ("hub_skew=0", "drift=0", "hub_skew=0&drift=0&hubs=7&drift_to=NG"):
        for one, other in zip(plain, portraits(model(tmp_path, UNEVEN, options), IDS, first_seed=0), strict=True):
            assert np.array_equal(one.pixels, other.pixels)


def test_the_knobs_change_neither_what_is_chosen_nor_what_is_culture_free(tmp_path: Path) -> None:
    options = "noise=0.3&collapse=0.3&temperature=2&size=16"
    requests = [asked(seed) for seed in range(300)]
    plain = pictures(model(tmp_path, UNEVEN, options).generate(requests))
    drawn = pictures(model(tmp_path, UNEVEN, f"{options}&hub_skew=0.9&drift=0.9").generate(requests))
    for one, other in zip(plain, drawn, strict=True):
        assert (one.truth_artifact_id, one.truth_country) == (other.truth_artifact_id, other.truth_country)
        if one.truth_artifact_id is None:
            assert np.array_equal(one.pixels, other.pixels)


@pytest.mark.parametrize("knob", ["hub_skew", "drift"])
def test_a_knob_alone_moves_more_pictures_the_higher_it_is(tmp_path: Path, knob: str) -> None:
    plain = portraits(model(tmp_path, UNEVEN), IDS, first_seed=0)
    moved = []
    for value in (0.1, 0.5, 1.0):
        drawn = portraits(model(tmp_path, UNEVEN, f"{knob}={value}"), IDS, first_seed=0)
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
    for row in rows_of(UNEVEN):
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
        model(tmp_path, UNEVEN.filter(pl.col("country") == "FR"), "drift=0.5")


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
    drawn = portraits(model(tmp_path, UNEVEN, "hub_skew=0.4&drift=0.3"), IDS[:20], first_seed=0)
    digest = hashlib.sha256(b"".join(picture.pixels.tobytes() for picture in drawn)).hexdigest()
    assert digest[:16] == "91ecd384ad303f99", "the pictures of simulated-1 have changed; a new look needs a new version"


def numbers(count: int, seed: int = 0) -> Numbers:
    return np.random.default_rng(seed).random((count, DRAWING_NUMBERS))


def difference(one: Pixels, other: Pixels) -> float:
    """Mean absolute difference, in levels of 255."""
    return float(np.abs(one.astype(float) - other).mean())


SUBJECTS = [Subject("Q1", "US"), None, Subject("Q2", "IN"), Subject("Q1", "IN"), None, *[Subject("Q9", "JP")] * 20]


def test_a_picture_is_the_same_whatever_is_drawn_beside_it() -> None:
    given = numbers(len(SUBJECTS))
    together = draw(SUBJECTS, given, size=48, confusability=0.3)
    for number, subject in enumerate(SUBJECTS):
        (alone,) = draw([subject], given[number : number + 1], size=48, confusability=0.3)
        assert np.array_equal(alone, together[number])


def test_looks_are_fixed_for_ever() -> None:
    pictures = draw([Subject("Q42", "NG"), None], numbers(2), size=64)
    digests = [hashlib.sha256(pixels.tobytes()).hexdigest()[:16] for pixels in pictures]
    assert digests == ["9469999d604b7da1", "4158838ea8a88fd7"], (
        "the pictures of simulated-1 have changed; a new look needs a new version"
    )


@pytest.mark.parametrize("size", [16, 64, 200])
def test_pictures_have_the_size_asked_for(size: int) -> None:
    for pixels in draw([Subject("Q1", "US"), None], numbers(2), size=size):
        assert pixels.shape == (size, size, 3)
        assert pixels.dtype == np.uint8
        assert pixels.flags.c_contiguous


def test_a_larger_picture_shows_the_same() -> None:
    small, large = (draw([Subject("Q5", "TR")], numbers(1), size=size)[0] for size in (32, 128))
    shrunk = large.reshape(32, 4, 32, 4, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - small).mean() < 8


def test_artifact_country_and_seed_each_change_the_picture() -> None:
    one, other = numbers(1), numbers(1, seed=1)
    (plain,) = draw([Subject("Q1", "US")], one, size=64)
    (artifact,) = draw([Subject("Q2", "US")], one, size=64)
    (country,) = draw([Subject("Q1", "IN")], one, size=64)
    (pose,) = draw([Subject("Q1", "US")], other, size=64)
    middle, edge = np.s_[24:40, 24:40], np.s_[:, :4]
    assert difference(plain[middle], artifact[middle]) > 20
    assert difference(plain[edge], artifact[edge]) == 0
    assert difference(plain[edge], country[edge]) > 20
    assert difference(plain[middle], country[middle]) == 0
    assert 0 < difference(plain, pose) < difference(plain, artifact) + difference(plain, country)


def test_confusion_brings_pictures_of_two_artifacts_steadily_together() -> None:
    given = np.repeat(numbers(1), 2, axis=0)
    pair = [Subject("Q1", "US"), Subject("Q2", "IN")]
    apart = [
        difference(*draw(pair, given, size=64, confusability=confusability)) for confusability in (0, 0.5, 0.8, 0.95, 1)
    ]
    assert all(more > less for more, less in pairwise(apart))
    assert apart[-1] == 0
