import random
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.filtering.cspace_filter import draw_pilot, filter_candidates, name_problem, shares
from culturekit.core.schemas import CANDIDATES, DROPS, KEPT
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.llm.client import FreeClient, Reply, Request
from culturekit.llm.clients.rules_client import RulesClient
from tests.builders.put import put
from tests.builders.spaces import candidates

CUISINE = Concept(concept="cuisine", hops=3, roots=(Root(qid="Q2095", label="food"),), countries=("BR", "JP"))


def candidate(qid: str, label: str | None, *countries: str, concept: str = "cuisine") -> dict[str, object]:
    return {"qid": qid, "label": label, "concept": concept, "country_qids": list(countries), "path": ["Q2095", qid]}


@dataclass(frozen=True)
class Scripted:
    """A judge that always says the same."""

    text: str
    model: str = "scripted-1"
    caveat: str = ""

    def ask(self, request: Request) -> Reply:
        return Reply(self.text.replace("ID", str(request.data["id"])))


def judged(
    work: Work, tmp_path: Path, client: FreeClient, *rows: dict[str, object]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    put(filter_candidates, work, client, write_table(tmp_path, CANDIDATES, candidates(*rows)), roots=(CUISINE,))
    return read_table(work.out / "kept.parquet", KEPT), read_table(work.out / "drops.parquet", DROPS)


def test_every_candidate_is_kept_or_dropped_with_a_reason(work: Work, tmp_path: Path) -> None:
    rows = [
        candidate("Q1", "feijoada", "Q155"),
        candidate("Q2", None, "Q155"),
        candidate("Q3", "couscous", "Q1028"),
        candidate("Q4", "Sadia, a food company", "Q155"),
        candidate("Q5", "drawing of a dish", "Q17"),
        candidate("Q6", "capoeira", "Q155", concept="art"),
    ]
    kept, drops = judged(work, tmp_path, RulesClient(), *rows)
    assert dict(kept.select("qid", "verdict").iter_rows()) == {"Q1": "keep", "Q5": "review"}
    assert dict(drops.select("key", "reason").iter_rows()) == {
        "Q2": "no usable label",
        "Q3": "country out of scope",
        "Q4": "judge rules-1",
        "Q6": "concept not in the root configs given",
    }


@pytest.mark.parametrize(
    "text",
    [
        "keep", "", "{}", '{"id":"ID"}', '{"id":"Q999","verdict":"keep"}', '{"id":"ID","verdict":"KEEP"}',
        '{"id":"ID","verdict":"keep","note":"x"}', '[{"id":"ID","verdict":"keep"}]', '{"id":"ID","verdict":true}',
        '{"id":"ID","verdict":"keep"} and more', "\ud800",
    ],
)  # fmt: skip
def test_a_reply_that_is_not_exactly_an_answer_leaves_the_candidate_to_people(
    work: Work, tmp_path: Path, text: str
) -> None:
    kept, drops = judged(work, tmp_path, Scripted(text), candidate("Q1", "feijoada", "Q155"))
    assert kept["verdict"].to_list() == ["review"]
    assert kept["reason"].to_list() == ["judge scripted-1: invalid"]
    assert drops.is_empty()


def rows(**counts: int) -> list[dict[str, str]]:
    return [{"concept": concept, "qid": f"Q{number}"} for concept, count in counts.items() for number in range(count)]


@given(counts=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 300), min_size=1), size=st.integers(1, 250))
def test_every_place_is_given_and_none_twice(counts: dict[str, int], size: int) -> None:
    given_places = shares(counts, size)
    assert sum(given_places.values()) == min(size, sum(counts.values()))
    assert all(0 <= places <= counts[name] for name, places in given_places.items())
    if size >= len(counts):
        assert all(places >= 1 for places in given_places.values())


def test_each_concept_gives_its_share() -> None:
    assert shares({"art": 700, "cuisine": 290, "rare": 10}, 100) == {"art": 70, "cuisine": 29, "rare": 1}


def test_the_draw_depends_on_the_candidates_and_not_on_their_order() -> None:
    ordered = rows(art=500, cuisine=100)
    shuffled = random.Random(1).sample(ordered, len(ordered))
    drawn = draw_pilot(ordered, 60)
    assert drawn == draw_pilot(shuffled, 60)
    assert len(drawn) == 60
    assert sum(concept == "cuisine" for concept, _ in drawn) == 10


def test_a_larger_pilot_contains_the_smaller_one() -> None:
    assert draw_pilot(rows(art=500), 20) < draw_pilot(rows(art=500), 50)


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
