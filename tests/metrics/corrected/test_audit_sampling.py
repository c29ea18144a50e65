"""The draw of an audit, the widths it will have, and looks at it on the way."""

from collections.abc import Callable
from functools import cache, partial
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.audit_sampling import (
    assumed_chances,
    audit_forecast,
    evened,
    images_for,
)
from culturekit.metrics.corrected.looks import (
    Estimate,
    Goal,
    look_limits,
    open_models,
    planned_looks,
    settled_pairs,
    whole_looks,
)
from tests.metrics.corrected.audits_by_hand import (
    COUNTRIES,
    audited,
    audits_of,
    few_rounds,
    mapped_with_error,
    matches_of,
    shown_by,
)

LABELS = tuple(f"C{number:02d}" for number in range(24))


def images_of(prompts: int, each: int, seed: int) -> pl.DataFrame:
    """A model whose prompts are all mapped alike, to few labels often and to many seldom."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 25)
    countries = [LABELS[label] for label in rng.choice(24, p=shares / shares.sum(), size=prompts * each)]
    return matches_of(list(countries), prompts=prompts)


def distance(matches: pl.DataFrame, drawn: pl.DataFrame, column: str) -> float:
    """How far the drawn images' shares of a column lie from those of all images, in absolute values."""
    every = matches.group_by(column).agg(share=pl.len() / matches.height)
    some = matches.join(drawn.select("image_id"), on="image_id", how="semi")
    met = some.group_by(column).agg(met=pl.len() / some.height)
    return float(
        every.join(met, on=column, how="left").select((pl.col("share") - pl.col("met").fill_null(0)).abs().sum()).item()
    )


@pytest.mark.parametrize(
    ("prompts", "each", "n"), [(150, 40, 150), (24, 40, 120), (100, 8, 80), (3, 400, 150), (7, 30, 60)]
)
def test_the_draw_is_never_farther_from_all_images_than_a_plain_one(prompts: int, each: int, n: int) -> None:
    matches = images_of(prompts, each, seed=1)
    for column in ("country", "prompt_id"):
        drawn, plain = [], []
        for seed in range(25):
            drawn.append(distance(matches, audit_sample(matches, n=n, rng=np.random.default_rng(seed)), column))
            plain.append(distance(matches, matches.sample(n, seed=seed), column))
        assert np.mean(drawn) <= 1.05 * np.mean(plain)


def test_prompts_of_the_size_of_a_step_meet_every_label() -> None:
    matches = images_of(150, 40, seed=2)
    drawn = audit_sample(matches, n=150, rng=np.random.default_rng(0))
    common = matches["country"].value_counts().filter(pl.col("count") > 200)["country"].to_list()
    assert set(common) <= set(drawn["stratum"])
    assert drawn["prompt_id"].n_unique() > 100  # a plain draw meets 95


@pytest.mark.parametrize(("images", "n"), [(10, 4), (7, 3), (9, 9)])
def test_each_image_is_drawn_as_often_as_its_chance_says(images: int, n: int) -> None:
    matches = images_of(1, images, seed=3).with_columns(prompt_id=pl.Series([f"p{i % 3}" for i in range(images)]))
    times = dict.fromkeys(matches["image_id"].to_list(), 0)
    rng = np.random.default_rng(4)
    for _ in range(400):
        drawn = audit_sample(matches, n=n, rng=rng)
        assert drawn.height == n
        assert drawn["chance"].unique().to_list() == [pytest.approx(n / images)]
        for image in drawn["image_id"]:
            times[image] += 1
    error = (400 * n / images * (1 - n / images)) ** 0.5
    assert max(abs(each - 400 * n / images) for each in times.values()) <= 4 * error


def concepts_of(sizes: dict[str, int]) -> pl.DataFrame:
    """Images of one model, so many of each concept."""
    return pl.concat(
        images_of(1, size, seed=5).with_columns(
            concept=pl.lit(concept), image_id=pl.concat_str(pl.lit(concept), "image_id")
        )
        for concept, size in sizes.items()
    )


@pytest.mark.parametrize(
    ("n", "sizes", "drawn"),
    [
        (150, {"a": 160, "b": 160, "c": 160, "d": 160}, {"a": 38, "b": 38, "c": 37, "d": 37}),
        (150, {"a": 1000, "b": 100}, {"a": 120, "b": 30}),
        (50, {"a": 100, "b": 100, "c": 10}, {"a": 30, "b": 30, "c": 10}),
        (150, {"a": 90}, {"a": 90}),
        (100, {"a": 300, "b": 100}, {"a": 70, "b": 30}),
    ],
)
def test_images_of_a_model_are_shared_among_its_concepts(n: int, sizes: dict[str, int], drawn: dict[str, int]) -> None:
    matches = concepts_of(sizes)
    found = audit_sample(matches, n=n, rng=np.random.default_rng(0), per="model")
    placed = found.join(matches.select("image_id", "concept"), on="image_id")
    assert dict(placed["concept"].value_counts().iter_rows()) == drawn
    for concept, count in drawn.items():
        assert placed.filter(concept=concept)["chance"].unique().to_list() == [pytest.approx(count / sizes[concept])]


def test_of_each_concept_so_many_are_drawn_when_asked() -> None:
    matches = concepts_of({"a": 160, "b": 160, "c": 160, "d": 160})
    assert audit_sample(matches, n=150, rng=np.random.default_rng(0)).height == 600
    with pytest.raises(UsageError, match="per"):
        audit_sample(matches, n=150, rng=np.random.default_rng(0), per="cell")  # type: ignore[arg-type]


COUNTRY = (0.0, 1.0, 0.0)
WORLDS = {
    "3 prompts of 200": (3, 600, [0.5, 0.2, 0.1, 0.1, 0.06, 0.04], 0.8),
    "24 prompts of 40": (24, 960, [0.3, 0.2, 0.2, 0.1, 0.1, 0.1], 0.85),
    "1 prompt of 400, few labels": (1, 400, [0.7, 0.1, 0.1, 0.1, 0.0, 0.0], 0.75),
}


def world(name: str) -> tuple[pl.DataFrame, dict[str, str | None], float]:
    prompts, images, shares, accuracy = WORLDS[name]
    rng = np.random.default_rng(1)
    truth: list[str | None] = [COUNTRIES[c] for c in rng.choice(6, p=shares, size=images)]
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=rng), prompts=prompts)
    return matches, shown_by(matches, truth), accuracy


def audit(matches: pl.DataFrame, truth: dict[str, str | None], n: int, seed: int) -> pl.DataFrame:
    return audited(matches, truth, n=n, rng=np.random.default_rng([n, seed]))


def seen(matches: pl.DataFrame, truth: dict[str, str | None], n: int, times: int) -> float:
    """The width of intervals that audits really have, the root of their mean square."""
    squares = []
    for seed in range(times):
        answer = vendi_corrected(
            matches, audit(matches, truth, n, seed), weights=COUNTRY, rng=np.random.default_rng(seed)
        )
        squares.append((answer.high - answer.low) ** 2)
    return float(np.sqrt(np.mean(squares)))


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_a_forecast_from_a_first_audit_is_within_15_percent_of_the_widths_then_seen(name: str) -> None:
    matches, truth, _ = world(name)
    found = {n: seen(matches, truth, n, 10) for n in (60, 200)}
    for n, width in found.items():
        said = [
            audit_forecast(
                matches, weights=COUNTRY, pilot=audit(matches, truth, 60, 100 + seed), rng=np.random.default_rng(seed)
            ).width(n)
            for seed in range(8)  # single first audits lie a tenth apart
        ]
        assert np.mean(said) == pytest.approx(width, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_a_forecast_from_the_accuracy_is_near_the_widths_then_seen(name: str) -> None:
    matches, truth, stated = world(name)
    accuracy = stated + (1 - stated) / len(COUNTRIES)  # a guess is right now and then
    width = seen(matches, truth, 150, 10)
    said = audit_forecast(matches, weights=COUNTRY, accuracy=accuracy, rng=np.random.default_rng(0)).width(150)
    assert said == pytest.approx(width, rel=0.25)  # where errors fall is assumed: a first audit knows it


def test_twice_as_many_labels_give_a_narrower_interval_and_concepts_share_them() -> None:
    matches, *_ = world("3 prompts of 200")
    other = matches.with_columns(concept=pl.lit("other"), image_id=pl.lit("x") + pl.col("image_id"))
    both = audit_forecast(pl.concat([matches, other]), weights=COUNTRY, accuracy=0.8, rng=np.random.default_rng(0))
    assert (both.images, both.least()) == (1200, 60)
    with few_rounds():
        assert both.width(240) < both.width(60)


def test_what_a_first_audit_leaves_open_of_its_raters_is_forecast_in_all_concepts_alike() -> None:
    parts = [world("3 prompts of 200")[:2] for _ in range(2)]
    matches = pl.concat(
        table.with_columns(concept=pl.lit(name), image_id=pl.lit(name) + pl.col("image_id"))
        for name, (table, _) in zip("ab", parts, strict=True)
    )
    shown = {
        f"{name}{image}": country for name, (_, own) in zip("ab", parts, strict=True) for image, country in own.items()
    }
    sure = audit(matches, shown, 80, 1)
    gold = pl.concat([audits_of({f"gold-{n}": "JP" if n < 9 else "FR"}) for n in range(10)]).with_columns(
        gold=pl.lit(value=True), known_country=pl.lit("JP"), known_continent=pl.lit("Asia"), known_artifact_id=None
    )
    told = partial(audit_forecast, matches, weights=COUNTRY)
    with few_rounds():
        known, rated = (
            told(pilot=pilot, rng=np.random.default_rng(0)) for pilot in (sure, pl.concat([sure, gold], how="diagonal"))
        )
        one, both = rated.concepts[0].width(100, confidence=0.95, rng=np.random.default_rng(1)), rated.width(200)
        assert one[0] > 1.3 * one[1]
        assert both > 0.85 * one[0]  # in squares it would be .71 of that
        assert both > 1.3 * known.width(200)


def falling(n: int) -> float:
    return float(2 / np.sqrt(n))


@pytest.mark.parametrize(("width", "images"), [(2 / 20, 400), (0.5, 30), (0.01, 900)])
def test_the_number_of_images_for_a_width_is_found_within_what_there_is(width: float, images: int) -> None:
    ask: Callable[[int], float] = falling
    assert images_for(ask, width, least=30, most=900) == pytest.approx(images, rel=0.03)


def test_widths_that_scatter_are_asked_for_more_images_until_they_are_reached() -> None:
    rng = np.random.default_rng(3)
    scattering = cache(lambda n: falling(n) * float(rng.uniform(0.7, 1.4)))
    found = [images_for(scattering, width, least=30, most=5000) for width in np.linspace(0.05, 0.3, 40)]
    assert all(scattering(n) <= 1.1 * width for n, width in zip(found, np.linspace(0.05, 0.3, 40), strict=True))


def test_shares_that_scatter_by_chance_become_even_and_labels_that_nothing_speaks_for_absent() -> None:
    mapped = np.array([[26, 34, 2, 31, 4], [32, 28, 1, 28, 0]])
    chances = assumed_chances(mapped, np.array([0, 0, 1, 1, 2]), 4, 0.85)
    even = np.einsum("km,kml->kl", mapped, evened(chances, mapped, 4)).sum(axis=0)
    known = np.einsum("km,kml->kl", mapped, chances).sum(axis=0)
    assert even.sum() == pytest.approx(known.sum())
    assert even[[0, 1, 3]].std() < 0.9 * known[[0, 1, 3]].std()
    assert even[2] < known[2] / 2
    assert even[4] == known[4]  # pictures of nothing


def test_shares_that_many_images_tell_stay() -> None:
    mapped = np.array([[2600, 340, 120, 310, 400]])
    chances = assumed_chances(mapped, np.array([0, 0, 1, 1, 2]), 4, 0.85)
    assert evened(chances, mapped, 4) == pytest.approx(chances, abs=0.05)


@given(arrays(np.int64, st.tuples(st.integers(1, 3), st.just(5)), elements=st.integers(0, 50)), st.floats(0.05, 1.0))
def test_evened_chances_are_chances(mapped: NDArray[np.int64], accuracy: float) -> None:
    assume(mapped.sum() > 0)
    chances = evened(assumed_chances(mapped, np.array([0, 0, 1, 1, 2]), 4, accuracy), mapped, 4)
    assert chances.min() >= 0
    assert chances.sum(axis=2) == pytest.approx(np.ones((len(mapped), 5)))


@pytest.mark.slow
def test_a_model_of_even_labels_is_forecast_as_wide_as_it_is() -> None:
    """Estimated shares scatter and look less even, where an even model has the narrowest interval."""
    widths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth: list[str | None] = [COUNTRIES[c] for c in rng.integers(6, size=400)]
        matches = matches_of(mapped_with_error(truth, accuracy=0.85, rng=rng), prompts=1)
        known = shown_by(matches, truth)
        told = audit_forecast(matches, weights=COUNTRY, accuracy=0.875, rng=np.random.default_rng(seed)).width(150)
        widths.append((told, seen(matches, known, 150, 3)))
    said, found = np.sqrt(np.square(widths).mean(axis=0))
    assert said == pytest.approx(found, rel=0.15)


def test_errors_are_assumed_to_stay_on_a_continent_more_often() -> None:
    chances = assumed_chances(np.full((1, 4), 25), np.array([0, 0, 1, 1]), 9, 0.7)[0]
    assert chances[0, 0] == pytest.approx(0.7)
    assert chances[0, 1:] == pytest.approx([0.3 * (0.5 + 0.5 / 3), 0.3 * 0.5 / 3, 0.3 * 0.5 / 3])


def test_an_accuracy_or_a_first_audit_is_needed() -> None:
    matches, truth, _ = world("3 prompts of 200")
    with pytest.raises(UsageError, match="accuracy"):
        audit_forecast(matches, weights=COUNTRY, rng=np.random.default_rng(0))
    with pytest.raises(UsageError, match="at least 30"):
        audit_forecast(matches, weights=COUNTRY, pilot=audit(matches, truth, 20, 1), rng=np.random.default_rng(0))


FIVE = [0.2, 0.4, 0.6, 0.8, 1.0]
LOOKS = (50, 75, 100, 125, 150)


def test_limits_are_those_that_are_published() -> None:
    """Lan and DeMets' O'Brien-Fleming spending at five equal looks, two-sided .05, as tables and ldbounds print it."""
    assert look_limits(FIVE, alpha=0.05) == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("times", [FIVE, [1 / 3, 1 / 2, 2 / 3, 5 / 6, 1.0], [0.1, 1.0], [1.0]])
def test_walks_without_drift_cross_as_often_as_is_said(times: list[float], two_sided: bool) -> None:
    limits = look_limits(times, alpha=0.1, two_sided=two_sided)
    steps = np.random.default_rng(4).standard_normal((200_000, len(times))) * np.sqrt(np.diff(times, prepend=0))
    walks = np.cumsum(steps, axis=1) / np.sqrt(times)
    crossed = ((np.abs(walks) if two_sided else walks) > limits).any(axis=1).mean()
    assert crossed == pytest.approx(0.1, abs=0.004)


@pytest.mark.parametrize("times", [[], [0.5], [0.5, 0.4, 1], [0, 1], [[0.5, 1]]])
def test_times_that_are_none_are_refused(times: list[float]) -> None:
    with pytest.raises(UsageError, match="information"):
        look_limits(times, alpha=0.05)


def studies(means: list[float], *, number: int, seed: int) -> list[list[dict[str, Estimate]]]:
    """Draw what looks say of models, each with errors of its own that shrink as labels come."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        labels = rng.standard_normal((len(means), LOOKS[-1])) + np.array(means)[:, None]
        looks = []
        for n in LOOKS:
            errors = labels[:, :n].std(axis=1, ddof=1) / np.sqrt(n)
            values = zip(labels[:, :n].mean(axis=1), errors, strict=True)
            looks.append({f"m{place}": Estimate(float(v), float(e), n) for place, (v, e) in enumerate(values)})
        found.append(looks)
    return found


@pytest.mark.parametrize("goal", ["order", "top"])
def test_equal_models_are_seldom_settled_and_are_given_up(goal: Goal) -> None:
    ends = [settled_pairs(looks, LOOKS, goal=goal) for looks in studies([0.0] * 5, number=600, seed=1)]
    falsely = np.mean([any(pair.state == "settled" for pair in pairs) for pairs in ends])
    assert falsely <= (0.05 if goal == "order" else 0.02)
    assert not any(open_models(pairs, [f"m{place}" for place in range(5)], goal) for pairs in ends)


def test_models_far_apart_are_settled_rightly_with_fewer_labels() -> None:
    wrong, used = 0, []
    for looks in studies([0.0, 0.5, 1.0, 1.5, 2.0], number=200, seed=2):
        asked, seen, labels = sorted(looks[0]), [], 0
        for place, n in enumerate(LOOKS):
            labels += len(asked) * (n - (LOOKS[place - 1] if place else 0))
            seen.append({model: looks[place][model] for model in asked})
            pairs = settled_pairs(seen, LOOKS, goal="order")
            asked = open_models(pairs, sorted(looks[0]), "order")
        wrong += any(one.state == "settled" and one.difference > 0 for one in pairs)
        used.append(labels / 5)
    assert wrong <= 2
    assert np.mean(used) < 0.85 * LOOKS[-1]


def test_names_and_signs_of_models_decide_nothing() -> None:
    (looks,) = studies([0.0, 0.4, 0.9], number=1, seed=3)
    first = settled_pairs(looks, LOOKS, goal="order")
    for order in permutations(range(3)):
        renamed = [{f"m{order[int(name[1:])]}": one for name, one in each.items()} for each in looks]
        other = settled_pairs(renamed, LOOKS, goal="order")
        assert sorted(abs(one.difference) for one in other) == sorted(abs(one.difference) for one in first)
        assert sorted(one.state for one in other) == sorted(one.state for one in first)
    turned = [{name: Estimate(-one.value, one.error, one.n) for name, one in each.items()} for each in looks]
    assert [(-one.difference, -one.high, -one.low) for one in settled_pairs(turned, LOOKS, goal="order")] == [
        (one.difference, one.low, one.high) for one in first
    ]


def test_what_is_settled_stays_settled_whatever_comes_later() -> None:
    for looks in studies([0.0, 0.6, 0.6], number=50, seed=5):
        known: dict[tuple[str, str], int] = {}
        for reached in range(1, len(LOOKS) + 1):
            found = {(one.first, one.second): one for one in settled_pairs(looks[:reached], LOOKS, goal="order")}
            assert all(found[pair].look == look for pair, look in known.items())
            known |= {pair: one.look for pair, one in found.items() if one.state != "open"}
        assert len(known) == 3


def test_a_model_that_could_not_be_corrected_is_left_open() -> None:
    looks = [{"a": Estimate(0.9, 0.01, 50), "b": Estimate(0.1, 0.01, 50)}, {}]
    assert [(one.state, one.look) for one in settled_pairs(looks, LOOKS, goal="order")] == [("settled", 1)]
    assert settled_pairs([{}, {}], LOOKS, goal="order") == []


@pytest.mark.parametrize("planned", [(40, 80), (75, 50), (50, 50), ()])
def test_looks_too_early_or_out_of_order_are_refused(planned: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="looks"):
        settled_pairs([], planned, goal="order")


def mapped(images: int = 400) -> pl.DataFrame:
    return matches_of([COUNTRIES[place % 5] for place in range(images)], prompts=8)


def test_every_image_has_the_same_chance_at_every_look() -> None:
    times = np.zeros(400)
    for seed in range(400):
        drawn = audit_sample(mapped(), n=150, rng=np.random.default_rng(seed), per="model", looks=LOOKS)
        first = drawn.filter(pl.col("look") == 1)["image_id"]
        times[first.cast(pl.String).str.extract(r"(\d+)").cast(pl.Int64).to_numpy() % 400] += 1
        assert drawn["look"].value_counts().sort("look")["count"].to_list() == [50, 25, 25, 25, 25]
    assert abs(times - 50).max() < 5 * np.sqrt(50)


def test_the_first_look_meets_prompts_evenly() -> None:
    """Each of eight prompts has 50 of 400 images: 6.25 of the first 50 drawn, and none has 4 more or fewer."""
    for seed in range(40):
        drawn = audit_sample(mapped(), n=150, rng=np.random.default_rng(seed), per="model", looks=LOOKS)
        met = drawn.filter(pl.col("look") == 1)["prompt_id"].value_counts()["count"]
        assert met.len() == 8
        assert (met.min(), met.max()) >= (3, 7)
        assert int(str(met.max())) <= 10


@pytest.mark.parametrize("wrong", [{"n": 160}, {"per": "concept"}, {"drawing": "batches"}, {"goal": "best"}])
def test_looks_that_nobody_could_keep_are_refused(wrong: dict[str, object]) -> None:
    how = {"n": 150, "per": "model", "looks": LOOKS, **wrong}
    with pytest.raises(UsageError):
        audit_sample(mapped(), rng=np.random.default_rng(0), **how)  # type: ignore[arg-type]


def test_two_looks_at_the_same_images_are_refused() -> None:
    """Two concepts of 30 images each are 60 images: a look at 50 sees no fewer."""
    two = pl.concat([mapped().with_columns(concept=pl.lit(one), image_id=one + pl.col("image_id")) for one in "ab"])
    with pytest.raises(UsageError, match="same images"):
        audit_sample(two, n=100, rng=np.random.default_rng(0), per="model", looks=(50, 60, 100))


def test_looks_are_read_from_the_sample_and_count_as_far_as_they_are_answered() -> None:
    drawn = audit_sample(mapped(), n=150, rng=np.random.default_rng(0), per="model", looks=LOOKS, goal="top")
    assert planned_looks(drawn) == ([50, 75, 100, 125, 150], "top")
    assert planned_looks(drawn.drop("look")) is None
    answered = drawn.filter((pl.col("look") <= 2) | (pl.col("look") == 4))["image_id"]
    assert whole_looks(drawn, answered) == {"m": 2}
