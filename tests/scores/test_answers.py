import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.schemas import ANSWER_COUNTS, JUDGMENTS, QUESTION_RATES, QUESTIONS
from culturekit.metrics.questions import dsg_score
from culturekit.scores.faithfulness import answer_counts, question_rates

PARENTS = {"q1": list[str](), "q2": ["q1"], "q3": ["q1", "q2"]}
QUESTIONS_OF = pl.DataFrame(
    [("p", name, above, f"{name}?", "entity") for name, above in PARENTS.items()], schema=QUESTIONS.schema, orient="row"
)


def images(count: int) -> pl.DataFrame:
    rows = {"image_id": [f"i{n}" for n in range(count)]}
    return pl.DataFrame(rows).with_columns(
        model=pl.lit("m"), prompt_id=pl.lit("p"), concept=pl.when(pl.int_range(pl.len()) > 0).then(pl.lit("art"))
    )


def judgments(answers: list[list[str | None]], outcome: str = "ok") -> pl.DataFrame:
    rows = [
        (f"i{number}", "p", "j", "dsg", question, None, None, choice, "", outcome if choice else "refused")
        for number, said in enumerate(answers)
        for question, choice in zip(PARENTS, said, strict=True)
    ]
    return pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row")


def test_how_judgments_ended_is_counted_over_all_and_by_concept() -> None:
    given = judgments([["yes", "no", None], ["yes", "maybe", "yes"]])
    counts = answer_counts(images(2), given)
    assert ANSWER_COUNTS.problems(counts) == []
    over_all = counts.filter(pl.col("concept").is_null()).select("outcome", "judgments", "images")
    assert set(over_all.rows()) == {("ok", 4, 2), ("refused", 1, 1), ("neither yes nor no", 1, 1)}
    assert counts.filter(concept="art")["judgments"].sum() == 3, "the first image has no concept"
    assert answer_counts(images(1), given)["judgments"].sum() == 3, "judgments of unknown images count nowhere"


def test_a_question_fails_where_it_or_a_parent_was_answered_no() -> None:
    given = judgments([["yes", "yes", "yes"], ["no", "yes", "yes"], ["yes", "no", "yes"], ["yes", "yes", None]])
    rates = question_rates(images(4), given, QUESTIONS_OF)
    assert QUESTION_RATES.problems(rates) == []
    columns = ("question_id", "images", "yes", "no", "unanswered", "void", "failed", "rate")
    assert rates.sort("question_id").select(columns).rows() == [
        ("q1", 4, 3, 1, 0, 0, 1, 0.25),
        ("q2", 4, 3, 1, 0, 1, 2, 0.5),
        ("q3", 4, 3, 0, 1, 2, 2, pytest.approx(2 / 3)),
    ]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(st.sampled_from(["yes", "no"]), min_size=3, max_size=3), min_size=1, max_size=8))
def test_where_all_is_answered_rates_and_scores_say_the_same(answers: list[list[str | None]]) -> None:
    rates = question_rates(images(len(answers)), judgments(answers), QUESTIONS_OF)
    scores = dsg_score([[float(one == "yes") for one in said] for said in answers], PARENTS)
    assert 1 - rates["rate"].mean() == pytest.approx(float(scores.value.mean()))  # type: ignore[operator]
