"""What a vision model says of scenes: every question a row, and what is no answer a row with the reason."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl
import pytest

from culturekit.builders.judging.scene_judge import extract, likert, stereotypes_shown
from culturekit.core.errors import UsageError
from culturekit.core.schemas import JUDGMENTS, PROMPTS, STEREOTYPES
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.llm.client import Reply, Request
from culturekit.metrics.ahead.matching import DIMENSIONS
from tests.builders.judging.test_image_judge import Scripted, png, table
from tests.builders.put import put
from tests.builders.spaces import rows_of

PROMPT = {"prompt_id": "p1", "text": "A photorealistic photo of eating at home in Iran.", "benchmark": "cultivate",
          "kind": "activity", "country": "IR", "language": "en", "template_id": "activity"}  # fmt: skip
STEREOTYPED = ({"country": "IR", "token": "carpet"}, {"country": "IR", "token": "camel"},
               {"country": "US", "token": "flag"})  # fmt: skip


def prompts(folder: Path) -> Path:
    return write_table(folder, PROMPTS, rows_of(PROMPTS, PROMPT))


def rows(work: Work) -> pl.DataFrame:
    return read_table(work.out / "judgments.parquet", JUDGMENTS)


def described(dimension: str, said: str) -> Scripted:
    """Say something in one dimension, and nothing in the others."""
    return Scripted(lambda request: {"descriptors": said if request.data["dimension"] == dimension else ""})


@pytest.mark.parametrize(
    ("said", "phrases"),
    [
        ("Samovar, tea glasses", ["samovar", "tea glasses"]),
        (" samovar ,, Samovar,\u200bsamovar.", ["samovar"]),
        ("none", [""]),
        ("", [""]),
        (", ".join(f"thing {number}" for number in range(12)), [f"thing {number}" for number in range(8)]),
    ],
)
def test_phrases_between_commas_become_rows_of_their_dimension(
    work: Work, tmp_path: Path, said: str, phrases: list[str]
) -> None:
    client = described("objects", said)
    put(extract, work, client, table(tmp_path / "images", {"a": png()}))
    found = rows(work).filter(dimension="objects")
    assert found["item"].to_list() == sorted(phrases)
    assert rows(work).filter(pl.col("dimension") != "objects")["item"].to_list() == [""] * 4
    assert {request.data["dimension"] for request in client.seen} == set(DIMENSIONS)
    assert {tuple(request.data) for request in client.seen} == {("id", "dimension")}, "nothing tells what is expected"


def test_a_page_of_prose_is_a_row_without_phrases_and_with_its_reason(work: Work, tmp_path: Path) -> None:
    prose = "The picture shows a family that sits on the floor around a cloth, and they all seem to be happy"
    outcome = put(extract, work, described("spatial", prose), table(tmp_path / "images", {"a": png()}))
    wrong = rows(work).filter(outcome="invalid")
    assert wrong.select("item", "dimension", "choice").rows() == [("", "spatial", "wrong-value")]
    assert prose in wrong["raw"][0]
    assert outcome.notes["outcomes"] == {"invalid": 1, "ok": 4}


RICH = ["samovar", "tea glasses", "sugar bowl", "copper tray", "low table", "fruit", "sweets", "carpet"]
LIST = ", ".join(RICH)


@pytest.mark.parametrize(
    ("said", "stop", "phrases"),
    [
        (f'{{"descriptors": "{LIST}', "length", RICH[:-1]),  # the last one may be half of a phrase
        (f'{{"descriptors": "{LIST}"', "length", RICH),
        (f'{{"descriptors": "{LIST}, and ev\\', "length", RICH),
        (f'```json\n{{"descriptors": "{LIST}"}}\n```', "end", RICH),
        (f'```json\n{{"descriptors": "{LIST}', "length", RICH[:-1]),
        (f'Of course! Here is what I see:\n{{"descriptors": "{LIST}"}}\nAnything else?', "end", RICH),
        ('{"descriptors": ["samovar", "tea glasses", "sug', "length", RICH[:2]),
        ('{"descriptors": [{"token": "samovar", "style": "modern"}, {"token": "tea gl', "length", RICH[:1]),
        (f"Here are the objects:\n{LIST}", "end", RICH),
        (LIST, "length", RICH[:-1]),
        (f'{{"descriptors": "1. samovar\\n2. tea glasses\\n3. {"a very " * 9}long cloth"}}', "end", RICH[:2]),
        ('{"descriptors": "samov', "length", None),
        ("I'm sorry, I can't describe that, as it may be private", "end", None),
        ("A man, who sits on the floor of a large room with his whole family, and tea", "end", None),
    ],
)  # fmt: skip
def test_whatever_is_complete_of_a_reply_is_read(
    work: Work, tmp_path: Path, said: str, stop: Literal["end", "length"], phrases: list[str] | None
) -> None:
    """A list of 8 phrases takes 44 to 68 tokens: with room for 64 the richest pictures had no answer."""

    def replies(request: Request) -> Mapping[str, object] | Reply:
        return Reply(said, stop=stop) if request.data["dimension"] == "objects" else {"descriptors": "none"}

    outcome = put(extract, work, Scripted(replies), table(tmp_path / "images", {"a": png()}))
    found = rows(work).filter(dimension="objects")
    if phrases is None:
        assert found.select("item").rows() == [("",)]
        assert found["outcome"][0] in {"truncated", "invalid"}
        return
    assert sorted(found["item"]) == sorted(phrases)
    assert set(found["outcome"]) <= {"ok", "repaired"}
    notes = outcome.notes
    assert ("read_in_part" in notes or "fenced" in notes) is (said != f'{{"descriptors": "{LIST}"}}')


def test_activity_and_country_go_along_where_the_prompts_are_given(work: Work, tmp_path: Path) -> None:
    client = described("objects", "samovar")
    words = tmp_path / "words.txt"
    words.write_text("Name what you see.", encoding="utf-8")
    images = table(tmp_path / "images", {"a": png()})
    put(extract, work, client, images, prompts(tmp_path), wording=words, reply_tokens=64)
    assert {(request.data["activity"], request.data["country"]) for request in client.seen} == {
        (PROMPT["text"], "Iran")
    }
    assert {(request.instructions, request.max_tokens) for request in client.seen} == {("Name what you see.", 64)}


def test_each_scale_is_a_row_with_its_number(work: Work, tmp_path: Path) -> None:
    numbers = {"alignment": 4, "hallucination": 1, "exaggeration": 2}
    client = Scripted(lambda request: {"answer": f"score is {numbers[str(request.data['criterion'])]}"})
    images = table(tmp_path / "images", {"a": png()})
    put(likert, work, client, images, prompts(tmp_path))
    assert dict(rows(work).select("item", "value").iter_rows()) == numbers
    assert {(request.data["prompt"], request.data["country"]) for request in client.seen} == {(PROMPT["text"], "Iran")}


@pytest.mark.parametrize("said", ["4", "score is 6", "Score is 4", "score is 4.", "score is 4 of 5", "score is 4\n"])
def test_a_rating_in_other_words_is_none(work: Work, tmp_path: Path, said: str) -> None:
    client = Scripted(lambda _: {"answer": said})
    put(likert, work, client, table(tmp_path / "images", {"a": png()}), prompts(tmp_path))
    assert rows(work).select("value", "outcome").unique().rows() == [(None, "invalid")]
    assert all(rows(work)["choice"])
    assert rows(work)["raw"].to_list() == [msgspec.json.encode({"answer": said}).decode()] * 3


def sure(request: Request) -> Mapping[str, object] | Reply:
    likely = "carpet" in str(request.data["question"])
    return Reply("", tokens=(("Yes", -0.1 if likely else -5.0), ("No", -3.0 if likely else -0.01)))


def test_each_stereotype_of_the_country_is_a_row_with_the_probability_of_yes(work: Work, tmp_path: Path) -> None:
    stereotypes = write_table(tmp_path, STEREOTYPES, rows_of(STEREOTYPES, *STEREOTYPED))
    images = table(tmp_path / "images", {"a": png()})
    put(stereotypes_shown, work, Scripted(sure), images, prompts(tmp_path), stereotypes)
    found = dict(rows(work).select("item", "value").iter_rows())
    assert set(found) == {"camel", "carpet"}
    assert found["carpet"] > 0.9
    assert found["camel"] < 0.1


def test_a_country_without_stereotypes_is_told_from_one_that_is_not_known(work: Work, tmp_path: Path) -> None:
    others = prompts(tmp_path), write_table(tmp_path, STEREOTYPES, rows_of(STEREOTYPES, STEREOTYPED[2]))
    known, strange = (table(tmp_path / prompt, {"a": png()}, prompt_id=prompt) for prompt in ("p1", "other"))
    for images, why in ((known, "no stereotype of its country is listed"),
                        (strange, "the country of its prompt is not known")):  # fmt: skip
        outcome = put(stereotypes_shown, replace(work, in_run=True), Scripted(sure), images, *others)
        assert outcome.drops == {why: 1}


def test_an_empty_table_of_stereotypes_is_refused_before_anything_is_asked(work: Work, tmp_path: Path) -> None:
    nothing = write_table(tmp_path, STEREOTYPES, rows_of(STEREOTYPES))
    client = Scripted(sure)
    images = table(tmp_path / "images", {"a": png()})
    with pytest.raises(UsageError, match=r"stereotypes\.parquet: there is no stereotype to ask about; expected rows"):
        put(stereotypes_shown, work, client, images, prompts(tmp_path), nothing)
    assert client.seen == []
