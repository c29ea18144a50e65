import hashlib
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.llm.answers import LlmOptions
from tests.builders.paid_judge import PaidJudge
from tests.builders.put import put
from tests.builders.spaces import candidates
from tests.conftest import HeardProgress

CUISINE = Concept(concept="cuisine", hops=3, roots=(Root(qid="Q2095", label="food"),), countries=("BR", "JP"))
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


def another(work: Work, folder: Path) -> Work:
    """The hands of a run of its own."""
    for name in ("out", "scratch"):
        (folder / name).mkdir(parents=True)
    return replace(work, out=folder / "out", scratch=folder / "scratch")


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
    undisturbed = another(work, tmp_path / "undisturbed")
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
