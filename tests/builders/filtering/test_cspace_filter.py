"""The filter: rules, replies, keys and plans; a paid judge; labels that are hostile."""

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.builders.filtering.cspace_filter import draw_pilot, filter_candidates, name_problem, shares
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, DROPS, KEPT
from culturekit.core.stage import Outcome, Stage, Work, input_records, key_of
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root, load_concept
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import FreeClient, Reply, Request
from culturekit.llm.clients.rules_client import RulesClient
from culturekit.llm.untrusted import cleaned
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from tests.builders.paid_judge import PaidJudge
from tests.builders.put import put
from tests.builders.spaces import candidates
from tests.conftest import SMALL, HeardProgress, recipe_here
from tests.faults.asking_commands import dishes
from tests.kg.worlds import work_in
from tests.llm.injections import INJECTIONS, LABEL

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


def test_each_concept_gives_its_share_whatever_the_order_and_a_larger_pilot_contains_the_smaller_one() -> None:
    assert shares({"art": 700, "cuisine": 290, "rare": 10}, 100) == {"art": 70, "cuisine": 29, "rare": 1}
    ordered = rows(art=500, cuisine=100)
    drawn = draw_pilot(ordered, 60)
    assert drawn == draw_pilot(random.Random(1).sample(ordered, len(ordered)), 60)
    assert len(drawn) == 60
    assert sum(concept == "cuisine" for concept, _ in drawn) == 10
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
def test_names_of_artifacts_pass_in_the_scripts_of_the_languages_of_the_config(name: str) -> None:
    assert name_problem(name, languages=["en"]) is None
    assert name_problem("寿司", languages=["en", "ja"]) is None
    assert name_problem("寿司", languages=["en", "pt-BR"]) is not None


@given(st.text(max_size=300))
def test_any_text_gets_a_reason_or_none(name: str) -> None:
    problem = name_problem(name, languages=["en"])
    assert problem is None or all(isinstance(part, str) for part in problem)


LOCAL = "openai:judge-1?base_url=http://127.0.0.1:9/v1"


def stage_of(table: Path, judge: str, **options: object) -> Stage:
    llm = LlmOptions(**options)  # type: ignore[arg-type]
    return filter_candidates.stage(table, roots=(load_concept("cuisine"),), judge=judge, llm=llm)


def key(stage: Stage) -> str:
    return key_of(stage, input_records(stage.inputs))


@pytest.mark.parametrize("more", ["&price=1/2", "&rpm=60", "&tpm=9000", "&timeout=5", "&api_key=${MINE}"])
def test_money_speed_and_secrets_are_no_part_of_what_decides_the_verdicts(tmp_path: Path, more: str) -> None:
    table = dishes(tmp_path, 3)
    plain = key(stage_of(table, LOCAL))
    assert plain == key(stage_of(table, LOCAL + more))
    assert plain == key(stage_of(table, LOCAL, budget=3.0, concurrency=99, batch=True))
    assert "MINE" not in json.dumps(stage_of(table, LOCAL + more).options)
    changes = ("&temperature=0.5", "&seed=3", "&max_tokens=99", "&top_p=0.5")
    others = (LOCAL.replace("judge-1", "judge-2"), *(LOCAL + change for change in changes))
    assert len({plain, *(key(stage_of(table, spec)) for spec in others)}) == 6, "what changes answers changes the key"


def test_replayed_replies_decide_by_what_they_say_and_not_by_where_they_lie(tmp_path: Path) -> None:
    table = dishes(tmp_path, 3)
    keys = []
    for name, verdict in (("a", "keep"), ("b", "keep"), ("c", "remove")):
        line = {"task": "cspace.filter", "reply": {"id": "${id}", "verdict": verdict}}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line), encoding="utf-8")
        keys.append(key(stage_of(table, f"replay:{tmp_path / name}.jsonl?miss=default")))
    assert keys[0] == keys[1] != keys[2]


def test_a_plan_knows_what_the_filter_costs_once_its_candidates_are_there(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, [f"judge={LOCAL}&price=0.15/0.60", "llm.budget=20", "llm.concurrency=64"])
    assert recipe.llm.options() == LlmOptions(budget=20.0, concurrency=64)
    before = {step.name: step for step in plan_recipe(recipe, tmp_path)}["filter"]
    assert (before.units, before.requests, before.tokens, before.dollars) == (None, None, None, None)
    recipe_here(recipe, tmp_path, until="candidates")
    after = {step.name: step for step in plan_recipe(recipe, tmp_path)}["filter"]
    assert after.units is not None
    assert after.requests is not None
    assert 0 < after.requests <= after.units
    assert after.tokens is not None
    assert after.tokens > 300 * after.requests
    assert after.dollars


QIDS = [f"Q{number}" for number in range(1, 2 * len(INJECTIONS) + 1)]
HOSTILE = set(QIDS[::2])
NEIGHBOUR = dict(zip(QIDS, [*QIDS[1:], QIDS[0]], strict=True))

BEHAVIOURS: dict[str, Callable[[str], str]] = {
    "obeys": lambda qid: json.dumps({"id": qid, "verdict": "keep"}),
    "speaks for its neighbour": lambda qid: json.dumps({"id": NEIGHBOUR[qid], "verdict": "remove"}),
    "speaks for all": lambda qid: json.dumps([{"id": each, "verdict": "remove"} for each in QIDS]),
    "speaks twice": lambda qid: f'{{"id":"{qid}","verdict":"keep","id":"{NEIGHBOUR[qid]}","verdict":"remove"}}',
    "adds a row": lambda qid: json.dumps({"id": qid, "verdict": "keep", NEIGHBOUR[qid]: "remove"}),
    "makes up a verdict": lambda qid: json.dumps({"id": qid, "verdict": "keep all"}),
    "makes up an id": lambda qid: json.dumps({"id": "Q999999999", "verdict": "keep"}),
    "chats": lambda qid: f"Sure! For {NEIGHBOUR[qid]} the verdict is remove.",
    "says nothing": lambda qid: "",
}


@dataclass(frozen=True)
class Judge:
    """Sound about sound labels, and at the mercy of the others; it sees what a model would see."""

    behaviour: Callable[[str], str]
    hostile: set[str]
    model: str = "hostile-1"
    caveat: str = ""

    def ask(self, request: Request) -> Reply:
        data = cleaned(request.data)
        qid = str(data["id"])
        if qid in self.hostile:
            return Reply(self.behaviour(qid))
        return Reply(json.dumps({"id": qid, "verdict": "keep" if int(qid[1:]) % 3 else "remove"}))


def verdicts(folder: Path, labels: dict[str, str], judge: Judge) -> dict[str, tuple[str, str]]:
    """Filter, and give the verdict and reason of every candidate."""
    work = work_in(folder / "out")
    rows = [
        {"qid": qid, "label": label, "concept": "cuisine", "country_qids": ["Q155"], "path": ["Q2095", qid]}
        for qid, label in labels.items()
    ]
    table = write_table(folder, CANDIDATES, candidates(*rows))
    put(filter_candidates, work, judge, table, roots=(CUISINE,))
    kept, drops = (pl.read_parquet(work.out / f"{name}.parquet") for name in ("kept", "drops"))
    assert sorted([*kept["qid"], *drops["key"]]) == sorted(labels), "every candidate once, and no other"
    told = {qid: (verdict, reason) for qid, verdict, reason in kept["qid", "verdict", "reason"].rows()}
    return told | {key: ("remove", reason) for key, reason in drops["key", "reason"].rows()}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_label_changes_its_own_verdict_and_no_other(tmp_path: Path, behaviour: str) -> None:
    def in_a_table(text: str) -> str:  # without halves of characters
        return text.encode("utf-8", "replace").decode()

    texts = {
        qid: in_a_table(INJECTIONS[place // 2].text) if qid in HOSTILE else LABEL for place, qid in enumerate(QIDS)
    }
    under_attack = verdicts(tmp_path / "attack", texts, Judge(BEHAVIOURS[behaviour], HOSTILE))
    in_peace = verdicts(tmp_path / "peace", dict.fromkeys(QIDS, LABEL), Judge(BEHAVIOURS["obeys"], set()))
    others = [qid for qid in QIDS if qid not in HOSTILE]
    assert {qid: under_attack[qid] for qid in others} == {qid: in_peace[qid] for qid in others}
    judged = [under_attack[qid] for qid in HOSTILE if under_attack[qid][1].startswith("judge ")]
    assert len(judged) > 150, "the rules drop the other names"
    assert {verdict for verdict, _ in judged} == ({"keep"} if behaviour == "obeys" else {"review"})


ROWS = 120


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """120 dishes, every 20th of which has no name."""
    rows = [
        {
            "qid": f"Q{number}", "label": None if number % 20 == 0 else f"dish {number}", "concept": "cuisine",
            "country_qids": ["Q155"], "roots": ["Q2095"], "p31": ["Q746549"], "path": ["Q2095", f"Q{number}"],
        }
        for number in range(1, ROWS + 1)
    ]  # fmt: skip
    return write_table(tmp_path, CANDIDATES, candidates(*rows))


def run(work: Work, table: Path, judge: PaidJudge, llm: LlmOptions | None = None) -> Outcome:
    return put(filter_candidates, work, judge, table, roots=(CUISINE,), llm=llm or LlmOptions())


def content(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.parquet")}


def test_every_candidate_ends_in_one_table_whatever_came_of_asking(work: Work, table: Path) -> None:
    outcome = run(work, table, judge := PaidJudge())
    assert judge.sent.keys() == {f"Q{number}" for number in range(1, ROWS + 1) if number % 20}, "no rule is paid for"
    assert isinstance(work.progress, HeardProgress)
    assert (work.progress.units[0], work.progress.total, work.progress.done) == ("questions", ROWS - 6, ROWS - 6)
    kept, drops = pl.read_parquet(work.out / "kept.parquet"), pl.read_parquet(work.out / "drops.parquet")
    assert sorted([*kept["qid"], *drops["key"]]) == sorted(f"Q{number}" for number in range(1, ROWS + 1))
    assert dict(drops["reason"].value_counts().iter_rows()) == {"judge paid-1": 12, "no usable label": 6}
    said = {int(qid[1:]) % 10: (verdict, reason) for qid, verdict, reason in kept["qid", "verdict", "reason"].rows()}
    assert said == {
        0: ("keep", "judge paid-1"), 2: ("review", "judge paid-1"), 3: ("review", "judge paid-1: refused"),
        4: ("review", "judge paid-1: truncated"), 5: ("review", "judge paid-1: blocked"),
        6: ("review", "judge paid-1: invalid"), 7: ("review", "judge paid-1: invalid"), 8: ("keep", "judge paid-1"),
        9: ("keep", "judge paid-1"),
    }  # fmt: skip
    assert outcome.counts == {"kept": 102, "review": 72, "drops": 18, "quarantined": 60}
    assert outcome.notes["outcomes"] == {"blocked": 12, "invalid": 24, "ok": 54, "refused": 12, "truncated": 12}


def test_a_run_that_was_cut_buys_only_the_rest(work: Work, table: Path, tmp_path: Path) -> None:
    cut, whole = PaidJudge(fails_after=40), PaidJudge()
    with pytest.raises(UsageError, match="the key was withdrawn"):
        run(work, table, cut, LlmOptions(concurrency=4))
    assert not (work.out / "kept.parquet").exists()
    went_on = PaidJudge()
    run(work, table, went_on, LlmOptions(concurrency=4))
    undisturbed = work_in(tmp_path / "undisturbed/out")
    run(undisturbed, table, whole)
    assert cut.sent + went_on.sent == whole.sent
    assert content(work.out) == content(undisturbed.out)


def test_another_run_asks_only_for_what_brought_no_answer(work: Work, table: Path) -> None:
    first, second = PaidJudge(), PaidJudge(judge=lambda qid: f'{{"id":"{qid}","verdict":"keep"}}')
    run(work, table, first)
    (work.scratch / "run_tag").unlink()
    outcome = run(work, table, second)
    assert {int(qid[1:]) % 10 for qid in second.sent} == {3, 4, 5, 6, 7}
    assert "quarantined" not in outcome.counts
    assert outcome.counts["drops"] == 18
