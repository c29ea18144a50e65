import itertools

import pytest

from culturekit.verify.tables.check_verdicts import SaidOnce, best_of


def replies(*words: str) -> tuple[list[SaidOnce], dict[int, str]]:
    """One reply to each of several questions about a candidate; "" is no answer."""
    made = [SaidOnce(number, word, True, number) for number, word in enumerate(words)]
    return made, {number: word for number, word in enumerate(words) if word}


@pytest.mark.parametrize(
    ("words", "verdicts"),
    [
        (("keep",), {"keep"}),
        (("remove",), {"remove"}),
        (("remove", "keep"), {"keep"}),
        (("remove", "remove"), {"remove"}),
        (("remove", "review"), {"review"}),
        (("remove", ""), {"remove", "review"}),
        (("",), set()),
    ],
)
def test_a_row_has_the_best_verdict_on_its_countries(words: tuple[str, ...], verdicts: set[str]) -> None:
    for order in itertools.permutations(words):
        assert best_of(*replies(*order)) == verdicts


def test_of_two_answers_to_one_question_any_may_have_been_taken() -> None:
    made, said = [SaidOnce(0, "keep", True, 7), SaidOnce(1, "remove", True, 7)], {0: "keep", 1: "remove"}
    assert best_of(made, said) == {"keep", "remove"}
