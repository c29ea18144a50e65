"""Hostile labels through the whole filter, before a judge that does whatever they say."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.core.schemas import CANDIDATES
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.llm.client import Reply, Request
from culturekit.llm.untrusted import cleaned
from tests.builders.put import put
from tests.builders.spaces import candidates
from tests.llm.injections import INJECTIONS, LABEL

CUISINE = Concept(concept="cuisine", hops=3, roots=(Root(qid="Q2095", label="food"),), countries=("BR",))
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


def in_a_table(text: str) -> str:
    """Give a text as a table can hold it: without halves of characters."""
    return text.encode("utf-8", "replace").decode()


def verdicts(work: Work, folder: Path, labels: dict[str, str], judge: Judge) -> dict[str, tuple[str, str]]:
    """Filter, and give the verdict and reason of every candidate."""
    for name in ("out", "scratch"):
        (folder / name).mkdir(parents=True)
    own = replace(work, out=folder / "out", scratch=folder / "scratch")
    rows = [
        {"qid": qid, "label": label, "concept": "cuisine", "country_qids": ["Q155"], "path": ["Q2095", qid]}
        for qid, label in labels.items()
    ]
    table = write_table(folder, CANDIDATES, candidates(*rows))
    put(filter_candidates, own, judge, table, roots=(CUISINE,))
    kept, drops = (pl.read_parquet(own.out / f"{name}.parquet") for name in ("kept", "drops"))
    assert sorted([*kept["qid"], *drops["key"]]) == sorted(labels), "every candidate once, and no other"
    told = {qid: (verdict, reason) for qid, verdict, reason in kept["qid", "verdict", "reason"].rows()}
    return told | {key: ("remove", reason) for key, reason in drops["key", "reason"].rows()}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_label_changes_its_own_verdict_and_no_other(work: Work, tmp_path: Path, behaviour: str) -> None:
    texts = {
        qid: in_a_table(INJECTIONS[place // 2].text) if qid in HOSTILE else LABEL for place, qid in enumerate(QIDS)
    }
    under_attack = verdicts(work, tmp_path / "attack", texts, Judge(BEHAVIOURS[behaviour], HOSTILE))
    in_peace = verdicts(work, tmp_path / "peace", dict.fromkeys(QIDS, LABEL), Judge(BEHAVIOURS["obeys"], set()))
    others = [qid for qid in QIDS if qid not in HOSTILE]
    assert {qid: under_attack[qid] for qid in others} == {qid: in_peace[qid] for qid in others}
    judged = [under_attack[qid] for qid in HOSTILE if under_attack[qid][1].startswith("judge ")]
    assert len(judged) > 150, "the rules drop the other names"
    assert {verdict for verdict, _ in judged} == ({"keep"} if behaviour == "obeys" else {"review"})
