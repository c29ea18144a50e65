"""Captions grow from seeds: every proposal says what became of it, and nothing stands twice."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from culturekit.builders.captions.expanding import ALIKE, KEPT, SAME, TOO_MANY, culture_file, expand, load_culture
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CAPTION_PROPOSALS, CAPTIONS, DROPS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table
from culturekit.index.models.letters_encoder import LettersEncoder
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from tests.builders.judging.test_image_judge import Scripted
from tests.builders.put import put

CHINESE = culture_file("chinese")
SEEDS = [seed.caption for seed in load_culture(CHINESE).seeds]
CATEGORY = "stereotyping"


def expanded(work: Work, client: Any, **options: Any) -> tuple[Outcome, pl.DataFrame, pl.DataFrame]:
    outcome = put(expand, work, client, CHINESE, **options)
    captions = read_table(work.out / "captions.parquet", CAPTIONS)
    return outcome, captions, read_table(work.out / "caption_proposals.parquet", CAPTION_PROPOSALS)


def saying(*rounds: Sequence[str], category: str = CATEGORY) -> Scripted:
    """Answer each question with the next captions, and the last ones for ever."""
    left = list(rounds)

    def answer(request: Request) -> Mapping[str, object]:
        said = left.pop(0) if len(left) > 1 else left[0]
        return {"id": request.data["id"], "captions": [{"caption": each, "category": category} for each in said]}

    return Scripted(answer)


def numbered(*numbers: int) -> list[str]:
    return [f"A street musician plays song number {number}" for number in numbers]


def test_captions_grow_to_the_number_that_is_wanted(work: Work) -> None:
    client = saying(numbered(1, 2, 3, 4, 5), numbered(6, 7, 8, 9, 10))
    outcome, captions, proposals = expanded(work, client, captions=12)
    assert captions["text"].to_list() == SEEDS + numbered(1, 2, 3, 4, 5, 6, 7)
    assert captions["id"].to_list()[-1] == "chinese-00012"
    assert captions["round"].to_list() == [0] * 5 + [1] * 5 + [2] * 2
    assert captions["proposer"].to_list() == [None] * 5 + ["scripted-1"] * 7
    assert proposals["outcome"].to_list() == [KEPT] * 7 + [TOO_MANY] * 3
    assert outcome.notes["ended"] == "12 captions after 2 questions in 2 rounds"
    assert "findings" not in outcome.notes


def test_three_rounds_that_add_nothing_end_it_and_are_told(work: Work) -> None:
    outcome, captions, proposals = expanded(work, saying(numbered(1), numbered(1)), captions=12)
    assert captions.height == 6
    assert outcome.notes["findings"] == [
        "3 rounds in a row added nothing: 6 of 12 captions after 4 questions in 4 rounds"
    ]
    assert proposals["nearest"].to_list() == [None, *["chinese-00006"] * 3]
    assert outcome.drops == {SAME: 3}


def test_every_proposal_says_why_it_is_not_kept(work: Work) -> None:
    (one,) = numbered(1)
    said = [
        f"Example 1: {one}.", one.upper(), "Here are five captions:", "Dance!", "x" * 401, "A sixth caption, unasked",
    ]  # fmt: skip
    client = saying(said, ["Sure, I can help", *numbered(2)])
    outcome, _, proposals = expanded(work, client, captions=7, encoder="letters", similarity=0.8)
    assert proposals.filter(pl.col("round") < 3).select("text", "outcome", "nearest").rows() == [
        (f"{one}.", KEPT, "chinese-00004"), (one.upper(), SAME, "chinese-00006"),
        ("Here are five captions:", "talk about captions", None), ("Dance!", "too short", None),
        ("x" * 401, "too long", None), ("A sixth caption, unasked", "more than the 5 asked for", None),
        ("Sure, I can help", "talk about captions", None), (*numbered(2), ALIKE, "chinese-00006"),
    ]  # fmt: skip
    drop = read_table(work.out / "drops.parquet", DROPS).filter(key="2/1/2").row(0, named=True)
    assert drop["reason"] == ALIKE
    assert drop["detail"].startswith(f"{numbered(2)[0]} | chinese-00006 (0.8")
    assert sum(outcome.drops.values()) == proposals.filter(pl.col("outcome") != KEPT).height


def test_a_round_shows_no_caption_twice_and_only_those_of_earlier_rounds(work: Work) -> None:
    client = CLIENTS.make("simulated?repeats=0.2&prose=0.1")
    _, captions, proposals = expanded(work, client, captions=300, encoder="letters", per_round=4)
    born = dict(captions.select("id", "round").iter_rows())
    questions = proposals.unique(["round", "request"]).sort("round", "request")
    for (number,), asked in questions.group_by("round"):
        shown = asked["examples"].explode()
        assert len(shown) == 5 * asked.height == shown.n_unique()
        assert asked.height <= 4
        assert all(born[each] < number for each in shown)
    assert questions.filter(round=1).height == 1
    assert set(proposals["outcome"]) >= {KEPT, SAME, ALIKE, "talk about captions"}


def test_what_is_kept_is_unlike_all_that_came_before(work: Work) -> None:
    _, captions, proposals = expanded(work, CLIENTS.make("simulated?repeats=0.2"), captions=200, encoder="letters")
    vectors = LettersEncoder().encode_texts(captions["text"].to_list()).astype(np.float64)
    cosines = np.tril(vectors @ vectors.T, -1)
    assert cosines.max() < 0.9
    kept = proposals.filter(outcome=KEPT).select("caption_id", "nearest", "similarity")
    place = {own: number for number, own in enumerate(captions["id"])}
    for own, nearest, similarity in kept.iter_rows():
        assert cosines[place[own]].max() == pytest.approx(similarity, abs=2e-5)
        assert cosines[place[own], place[nearest]] == pytest.approx(similarity, abs=2e-5)


def changed(change: Callable[[dict[str, Any]], None], folder: Path) -> Path:
    value = yaml.safe_load(CHINESE.read_text(encoding="utf-8"))
    change(value)
    path = folder / "changed.yaml"
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value["seeds"].pop(), "at least 5"),
        (lambda value: value["seeds"][0].update(category="stereotypes"), "did you mean 'stereotyping'"),
        (lambda value: value["seeds"][0].update(caption=SEEDS[1].upper()), "the same but for case"),
        (lambda value: value.update(categories={}), "at least one"),
        (lambda value: value.update(langauge="en"), "did you mean 'language'"),
    ],
)
def test_a_culture_that_cannot_be_meant_or_is_nowhere_is_refused(
    change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        load_culture(changed(change, tmp_path))
    with pytest.raises(UsageError, match="chinese"):
        culture_file("klingon")


def test_seeds_may_be_typed_as_a_paper_prints_them(tmp_path: Path) -> None:
    seeds = [*SEEDS, "Fishermen mend nets on a quay before dawn"]
    culture = load_culture(changed(lambda value: value.update(seeds=seeds), tmp_path))
    named = list(culture.categories)
    assert [seed.category for seed in culture.seeds] == [*named, named[0]]


def test_seeds_that_say_the_same_to_the_encoder_are_refused(work: Work) -> None:
    with pytest.raises(UsageError, match="a seed is like an earlier caption") as raised:
        expanded(work, saying(numbered(1)), captions=6, encoder="letters", similarity=-1)
    assert SEEDS[0] in str(raised.value)
