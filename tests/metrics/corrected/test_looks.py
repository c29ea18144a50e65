"""Looks at an audit on the way: published limits, errors over all looks, and draws that each look sees evenly."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample
from culturekit.metrics.corrected.looks import (
    Estimate,
    Goal,
    look_limits,
    open_models,
    planned_looks,
    settled_pairs,
    whole_looks,
)
from tests.metrics.corrected.audits_by_hand import COUNTRIES, matches_of

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
