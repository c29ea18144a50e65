import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.filtering.name_rules import name_problem


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (None, "no usable label"),
        ("  ", "no usable label"),
        ("Q2065278", "label is only a QID"),
        ("x" * 201, "malformed name"),
        ("a\x07b", "malformed name"),
        ("123", "malformed name"),
        ("List of museums in Rome", "list, category, template or disambiguation"),
        ("Category:Tumuli in Norway", "list, category, template or disambiguation"),
        ("Pasta (disambiguation)", "list, category, template or disambiguation"),
        ("寿司", "name in a script of none of the languages"),
    ],
)
def test_a_name_that_gives_itself_away(name: str | None, reason: str) -> None:
    problem = name_problem(name, languages=["en"])
    assert problem is not None
    assert problem[0] == reason


@pytest.mark.parametrize("name", ["Pão de queijo", "açaí", "Q", "Chicken 65", "Ōsaka-jō", "jollof", "Listan negro"])
def test_names_of_artifacts_pass(name: str) -> None:
    assert name_problem(name, languages=["en"]) is None


def test_a_script_that_a_language_of_the_config_uses_is_kept() -> None:
    assert name_problem("寿司", languages=["en", "ja"]) is None
    assert name_problem("寿司", languages=["en", "pt-BR"]) is not None


@given(st.text(max_size=300))
def test_any_text_gets_a_reason_or_none(name: str) -> None:
    problem = name_problem(name, languages=["en"])
    assert problem is None or all(isinstance(part, str) for part in problem)
