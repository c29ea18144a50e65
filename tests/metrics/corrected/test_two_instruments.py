"""A second instrument in corrected diversity: it narrows, a copy changes nothing, and errors of both may be tied."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.audited_counts import audited_counts
from tests.metrics.corrected.audits_by_hand import CONTINENT, COUNTRIES, audits_of, mapped_with_error, matches_of

COUNTRY = (0.0, 1.0, 0.0)


class World:
    """Images of three prompts, mapped twice, and an audit of 150 of them."""

    def __init__(self, seed: int, *, right: float = 0.75, copied: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.ones(len(COUNTRIES)))
        truth = [COUNTRIES[label] for label in rng.choice(len(COUNTRIES), p=shares, size=1200)]
        first, second = (mapped_with_error(truth, accuracy=right, rng=rng) for _ in range(2))
        both = zip(first, second, rng.random(len(truth)) < copied, strict=True)
        self.first = matches_of(first, prompts=3)
        self.second = matches_of([one if same else other for one, other, same in both], prompts=3)
        self.truth = dict(zip(self.first["image_id"].to_list(), truth, strict=True))
        drawn = audit_sample(self.first, n=150, rng=rng)["image_id"]
        self.audits = audits_of({image: self.truth[image] for image in drawn})

    def width(self, *, second: bool) -> float:
        """Give the width of the interval, which holds a value between its limits."""
        answer = vendi_corrected(
            self.first, self.audits, weights=COUNTRY, rng=np.random.default_rng(0),
            second=self.second if second else None,
        )  # fmt: skip
        assert answer.low <= answer.value <= answer.high
        return answer.high - answer.low


def test_an_instrument_of_its_own_errors_narrows_the_interval_and_a_copied_one_does_not() -> None:
    def part(copied: float) -> float:
        worlds = [World(seed, copied=copied) for seed in range(12)]
        return sum(one.width(second=True) for one in worlds) / sum(one.width(second=False) for one in worlds)

    assert part(0.0) < 0.9
    assert 0.95 < part(0.9) < 1.15  # nine labels in ten are the first's: taken for its own they would halve it


def test_a_copy_is_left_out_and_so_is_who_is_seldom_right() -> None:
    world = World(3, copied=1.0)
    assert world.width(second=True) == world.width(second=False)
    world.second = matches_of(["FR"] * 1200, prompts=3)
    assert world.width(second=True) == world.width(second=False)


def test_images_are_coded_by_both_labels_and_images_of_the_first_are_all_there() -> None:
    world = World(5)
    counts = audited_counts(world.first, world.audits, weights=COUNTRY, second=world.second)
    assert counts.instruments is not None
    pairs = pl.DataFrame({"a": world.first["country"], "b": world.second["country"], "p": world.first["prompt_id"]})
    named = [(counts.labels[a], counts.labels[b]) for a, b in counts.instruments.T]
    for prompt, row in zip(sorted(set(pairs["p"])), counts.mapped, strict=True):
        rows = pairs.filter(p=prompt)
        assert [rows.filter(a=a, b=b).height for a, b in named] == row.tolist()
    with pytest.raises(UsageError, match="second instrument has not mapped all images"):
        audited_counts(world.first, world.audits, weights=COUNTRY, second=world.second.head(900))


def test_labels_that_only_the_second_knows_are_labels() -> None:
    world = World(6)
    world.second = world.second.with_columns(
        country=pl.when(pl.int_range(pl.len()) % 40 == 0).then(pl.lit("AQ")).otherwise("country"),
        continent=pl.when(pl.int_range(pl.len()) % 40 == 0).then(pl.lit("Antarctica")).otherwise("continent"),
    )
    assert 0 < world.width(second=True) < 0.2


@pytest.mark.slow
def test_intervals_hold_where_errors_are_tied() -> None:
    held, widths = [], []
    for seed in range(60):
        world = World(seed, right=0.7, copied=0.3)
        shown = np.array([COUNTRIES.index(label) for label in world.truth.values()])
        answer = vendi_corrected(
            world.first, world.audits, weights=COUNTRY, rng=np.random.default_rng(0), second=world.second
        )
        every = vendi_corrected(world.first, audits_of(world.truth), weights=COUNTRY, rng=np.random.default_rng(0))
        assert len(shown) == 1200
        held.append(answer.low <= every.value <= answer.high)
        widths.append(answer.high - answer.low)
    assert sum(held) >= 53  # 1 in 2,000 if they hold in 95 of 100
    assert np.mean(widths) < 0.1


def test_continents_have_two_instruments_too() -> None:
    world = World(8)
    one, two = (
        vendi_corrected(world.first, world.audits, weights="continent", rng=np.random.default_rng(0), second=second)
        for second in (None, world.second)
    )
    assert two.high - two.low < one.high - one.low
    assert set(CONTINENT.values())
    assert replace(one, n=0) != replace(two, n=0)
