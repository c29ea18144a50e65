"""Answers of people who did not read along count in no score, on any path."""

from collections import Counter
from collections.abc import Callable

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import ANNOTATIONS, VALUES
from culturekit.people.aggregate import careful
from culturekit.scores.agreement import AgreementOptions, score_agreement
from culturekit.scores.answers import CARELESS, FLAGS, careful_answers
from culturekit.scores.family import Scored
from culturekit.scores.judged import JudgedOptions, score_judged
from culturekit.scores.meta import MetaOptions, score_meta
from culturekit.scores.ratings import RatingOptions, score_ratings

ITEMS = 40


def answers(*, careless: bool) -> pl.DataFrame:
    """Three people who know, and, where wanted, two who tick the top of the scale whatever they see."""
    rows = []
    for item in range(ITEMS):
        said = [float(1 + (item + (n == 2 and item % 5 == 0)) % 5) for n in range(3)]
        people: list[tuple[str, float, list[str]]] = [(f"p{n}", value, []) for n, value in enumerate(said)]
        if careless:
            people += [(f"c{n}", 5.0, [FLAGS[n % len(FLAGS)]]) for n in range(2)]
        rows += [
            {"item_id": f"i{item:02}", "annotator": name, "annotator_region": "FR", "in_region": True, "scheme": "s",
             "criterion": "c", "value": value, "choice": None, "text": None, "seconds": 9.0,
             "flags": [*flags, "recruitment:prolific"]}
            for name, value, flags in people
        ]  # fmt: skip
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def values() -> pl.DataFrame:
    """What a judge says of the same items."""
    row = {"metric": "vqascore", "model": "m", "benchmark": "b", "params": "{}"}
    rows = [
        {**row, "item": f"i{item:02}", "prompt_id": f"i{item:02}", "value": (item * 7 % 11) / 10}
        for item in range(ITEMS)
    ]
    return pl.DataFrame([{name: one.get(name) for name in VALUES.schema} for one in rows], schema=VALUES.schema)


SCORES: dict[str, Callable[[pl.DataFrame], Scored]] = {
    "ratings": lambda people: score_ratings(people, options=RatingOptions()),
    "agreement": lambda people: score_agreement(people, options=AgreementOptions(resamples=99)),
    "meta": lambda people: score_meta(values(), annotations=people, options=MetaOptions(resamples=99)),
    "judged": lambda people: score_judged(
        values(), people, None, options=JudgedOptions(criterion="c", lowest=1, highest=5)
    ),
}


@pytest.mark.parametrize("family", SCORES)
def test_careless_answers_change_no_score_and_are_counted(family: str) -> None:
    alone, among = SCORES[family](answers(careless=False)), SCORES[family](answers(careless=True))
    assert among.scores.equals(alone.scores)
    assert among.left_out.get(CARELESS) == 2 * ITEMS
    assert CARELESS not in alone.left_out


@pytest.mark.parametrize("family", SCORES)
def test_scores_of_careless_people_alone_are_refused(family: str) -> None:
    nobody = answers(careless=True).filter(pl.col("annotator").str.starts_with("c"))
    with pytest.raises(UsageError, match=f"no answer counts.*80 {CARELESS}"):
        SCORES[family](nobody)


def test_a_flag_that_does_no_harm_is_taken_away_so_that_answers_count_from_there_on() -> None:
    kept, counts = careful(answers(careless=True), FLAGS[:1])
    assert {why: count for why, count in counts.items() if count} == {f"flagged {FLAGS[1]}": ITEMS}
    left_out: Counter[str] = Counter()
    assert careful_answers(kept, left_out).height == kept.height == 4 * ITEMS
    assert left_out[CARELESS] == 0
    assert kept["flags"].list.contains("recruitment:prolific").all()
