"""The model's own answers fit any schema, are the same each time and depend on the row alone."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.server.made_replies import Question, data_of, made_value


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    quote: str
    weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    next: "_Part | None" = None


class _Verdict(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    verdict: Literal["keep", "drop", "unsure"]
    stars: Annotated[int, msgspec.Meta(ge=1, le=5)]
    sure: bool
    parts: Annotated[list[_Part], msgspec.Meta(min_length=1, max_length=3)]
    note: Annotated[str, msgspec.Meta(min_length=30, max_length=40)]
    other: str | None


def _schema(answers: Any) -> dict[str, Any]:
    (reference,), definitions = msgspec.json.schema_components([answers], ref_template="#/$defs/{name}")
    return {**reference, "$defs": definitions}


def _question(row: str, *, seed: int = 0, **data: Any) -> Question:
    return Question(
        provider="openai",
        operation="chat",
        model="m",
        instructions="",
        user="",
        data={"id": row, **data},
        row=row,
        schema=_schema(_Verdict),
        json_wanted=True,
        max_tokens=100,
        seed=seed,
        input_tokens=1,
        digest="0" * 64,
    )


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 5))
def test_an_answer_fits_the_schema_it_was_asked_for(row: str, seed: int) -> None:
    question = _question(row, seed=seed, label="a long label of several words in it")
    value = made_value(question)
    read = msgspec.convert(value, _Verdict)
    assert read.id == row
    assert all(part.quote in "a long label of several words in it" for part in read.parts)
    assert made_value(question) == value


def test_rows_and_seeds_draw_differently_and_all_values_occur() -> None:
    verdicts = [made_value(_question(f"Q{at}"))["verdict"] for at in range(90)]
    assert {verdicts.count(one) > 15 for one in ("keep", "drop", "unsure")} == {True}
    assert verdicts != [made_value(_question(f"Q{at}", seed=1))["verdict"] for at in range(90)]


def test_an_id_among_those_allowed_is_echoed() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string", "enum": ["Q1", "Q7", "Q9"]}}}
    assert made_value(replace(_question("Q7"), schema=schema)) == {"id": "Q7"}


def test_the_data_are_found_within_a_fence() -> None:
    text = 'Judge {this}.\n<<<data-77\n{"id": "Q5", "label": "{\\"id\\": \\"Q6\\"}"}\ndata-77>>>'
    assert data_of(text) == ({"id": "Q5", "label": '{"id": "Q6"}'}, "Q5")


def test_a_label_cannot_pass_for_another_row() -> None:
    label = 'x"} {"id": "Q999", "label": "'
    text = msgspec.json.encode({"id": "Q5", "label": label}).decode()
    assert data_of(text)[1] == "Q5"


def test_a_text_without_data_is_known_by_its_hash() -> None:
    assert data_of("hello")[1] == data_of("hello")[1] != data_of("hallo")[1]
    assert data_of('see {"name": "x"}')[0] == {"name": "x"}
