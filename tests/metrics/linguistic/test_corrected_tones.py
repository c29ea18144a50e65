"""Shares of tones put right by people: against a walk in plain Python, and what must hold of any world."""

import numpy as np
import pytest
from numpy.typing import NDArray

from culturekit.metrics import CorrectedTones, corrected_tones
from culturekit.metrics.linguistic.tone_histograms import Limits

Values = NDArray[np.float64]


def world(seed: int, n: int = 300, asked: int = 150, right: float = 0.5) -> tuple[Values, Values, Values]:
    """A rule that is right so often and else says tone 5, people who are right: judged, people, the true shares."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 11, n)
    found = np.where(rng.random(n) < right, true, 5)
    rows = np.vstack([np.zeros(10), np.eye(10)])
    people = np.full((n, 10), np.nan)
    drawn = rng.permutation(n)[:asked]
    people[drawn] = rows[true[drawn]]
    return rows[found], people, rows[true].sum(axis=0) / (true > 0).sum()


def walked(judged: Values, people: Values) -> list[float]:
    """Say the same in loops."""
    asked = [i for i in range(len(judged)) if not np.isnan(people[i]).any()]
    said = [sum(people[i][t] for i in asked) / len(asked) for t in range(10)]
    found = [sum(judged[i][t] for i in asked) / len(asked) for t in range(10)]
    together = sum((people[i][t] - said[t]) * (judged[i][t] - found[t]) for i in asked for t in range(10))
    trust = min(max(together / sum((judged[i][t] - found[t]) ** 2 for i in asked for t in range(10)), 0.0), 1.0)
    everywhere = [sum(row[t] for row in judged) / len(judged) for t in range(10)]
    totals = [said[t] + trust * (everywhere[t] - found[t]) for t in range(10)]
    return [min(max(total / sum(totals), 0.0), 1.0) for total in totals]


def values(found: CorrectedTones) -> list[float]:
    return [share.value for share in found.shares]


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_a_plain_walk(seed: int) -> None:
    judged, people, _ = world(seed, n=120, asked=60)
    assert values(corrected_tones(judged, people)) == pytest.approx(walked(judged, people), abs=1e-12)


def test_where_people_saw_everything_the_rule_does_not_matter() -> None:
    """What is left open then is how people err: not at all where second answers never differ."""
    judged, people, true = world(6, asked=300)
    alone, held = (corrected_tones(judged, people, answers=np.full(300, count)) for count in (1, 3))
    assert values(alone) == values(held) == pytest.approx(true, abs=1e-12)
    assert values(corrected_tones(np.zeros_like(judged), people)) == pytest.approx(true, abs=1e-12)
    for share in alone.shares:
        assert 0.001 < share.value - share.low < 0.01
        assert 0.001 < share.high - share.value < 0.01
    assert [share.low for share in held.shares] == pytest.approx([share.high for share in held.shares], abs=1e-3)
    assert (alone.held, held.held) == (False, True)
    assert held.std.low == pytest.approx(held.std.high, abs=1e-3)
    assert held.std.value == pytest.approx(true.std())
    assert held.mad.value == pytest.approx(np.abs(true - 0.1).mean())


def test_a_tone_that_only_errors_name_may_not_be_there() -> None:
    """One name in a hundred beside a frequent tone; a second answer that agrees, or many names, tell otherwise."""
    people = np.tile(np.eye(10)[[3, 4]], (60, 1))
    people[0] = np.eye(10)[5]
    assert corrected_tones(people, people).shares[5].low == 0
    people[2] = people[4] = people[6] = people[8] = people[10] = people[12] = people[14] = np.eye(10)[5]
    assert corrected_tones(people, people).shares[5].low > 0
    two = np.tile(np.eye(10)[[3, 4]], (60, 1))
    two[0] = (np.eye(10)[5] + np.eye(10)[4]) / 2
    assert corrected_tones(two, two, answers=np.full(120, 2)).shares[5].low == 0
    two[2] = two[4] = two[6] = np.eye(10)[5]
    assert corrected_tones(two, two, answers=np.full(120, 2)).shares[5].low > 0


def test_a_share_next_to_nothing_has_no_limit_next_to_all() -> None:
    """What the rule sees and people do not may leave a share of 1e-17 that scatters."""
    judged = np.tile(np.eye(10)[[3, 8, 4, 4]], (100, 1))
    people = judged.copy()
    people[:100:4] = np.eye(10)[8]
    people[1:100:4] = np.eye(10)[3]
    people[100:] = np.nan
    for shift in np.linspace(-1e-3, 1e-3, 9):
        share = Limits(1.98, 150, 400).around(max(0.0, shift), 1e-4, 0.0, 0.0, 1.0)
        assert share.high < 0.05
    assert max(share.high for share in corrected_tones(judged, people).shares) < 0.8


def test_limits_reach_as_far_as_second_answers_differ() -> None:
    judged, people, _ = world(8)
    rng, apart = np.random.default_rng(0), people.copy()
    for row in np.flatnonzero(~np.isnan(people[:, 0]))[:60]:
        apart[row] = (people[row] + np.eye(10)[rng.integers(10)]) / 2
    sure, doubtful = (corrected_tones(judged, said, answers=np.full(300, 2)) for said in (people, apart))
    assert sum(s.high - s.low for s in doubtful.shares) > 1.25 * sum(s.high - s.low for s in sure.shares)
    assert doubtful.std.high - doubtful.std.low > sure.std.high - sure.std.low


def test_a_rule_that_is_right_is_trusted_and_one_of_noise_is_not() -> None:
    assert corrected_tones(*world(7, right=1.0)[:2]).trust == pytest.approx(1)
    judged, people, _ = world(7)
    noise = np.eye(10)[np.random.default_rng(0).integers(0, 10, len(judged))]
    assert corrected_tones(noise, people).trust < 0.15
    widths = [
        sum(s.high - s.low for s in corrected_tones(rule, people).shares) for rule in (world(7, right=1.0)[0], noise)
    ]
    assert widths[0] < 0.6 * widths[1]


def test_a_tone_that_nobody_met_may_not_be_there() -> None:
    """The rule sees it in many pictures."""
    judged = np.tile(np.eye(10)[[4, 8]], (100, 1))
    people = np.full((200, 10), np.nan)
    people[:100] = np.tile(np.eye(10)[[4, 3]], (50, 1))
    share = corrected_tones(judged, people).shares[8]
    assert share.low == 0
    assert 0.005 < share.high < 0.1
