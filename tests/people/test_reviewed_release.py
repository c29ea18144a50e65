"""A release of known quality: judged on loopback, reviewed in groups in browsers, sampled, released with a card."""

import signal
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import DECISIONS, KEPT, SPACE_CHECK, SPACE_SAMPLE
from culturekit.core.tables import read_table
from culturekit.people.answers import answers_in
from tests.chromium import needs_chromium, somebody
from tests.command_line import culturekit
from tests.llm.server.running import server_process
from tests.people.reviewed_world import WRONG, decide_in_browser, decision_on, replicated, truth_of
from tests.people.test_serve_in_chromium import served
from tests.people.test_space_check import fill_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]

ROOTS = [word for concept in ("art", "cuisine", "landmarks") for word in ("--roots", concept)]


def test_three_people_decide_groups_a_killed_server_keeps_answers_and_the_card_has_the_dialled_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    culturekit("run", "cube-release", "--workdir", "run")
    candidates = replicated(Path("run/candidates/candidates.parquet"), 3000, tmp_path)
    table = truth_of(candidates)
    truth = {(name, iso): known for name, iso, known in table.select("label", "place", "truth").iter_rows()}
    with server_process(model="tests.people.reviewed_world:answer") as server:
        judge = f"openai:judge-1?base_url={server.openai_url}&price=0.15/0.60"
        assert culturekit("cspace", "filter", "--candidates", candidates, *ROOTS, "--llm", judge, "--out", "kept",
                          "--concurrency", "8").returncode == 0  # fmt: skip
    waits = read_table(Path("kept/kept.parquet"), KEPT).filter(verdict="review").height
    assert 200 < waits < 400
    done = culturekit("cspace", "review", "export", "--kept", "kept/kept.parquet", "--groups", "--first", "popularity",
                      "--graph", "run/graph", "--out", "groups")  # fmt: skip
    assert done.returncode == 0, done.stderr
    journal, decided = Path("groups/journal/answers.jsonl"), Counter[str]()

    def decide(shown: str) -> str:
        decided[word := decision_on(shown, truth)] += 1
        return word

    people = []
    for name in ("Ada", "Bo", "Cy"):
        (tmp_path / name).mkdir()
    with somebody(tmp_path / "Ada") as ada, somebody(tmp_path / "Bo") as bo, somebody(tmp_path / "Cy") as cy:
        with served(Path("groups")) as (process, address):
            for page, name in ((ada, "Ada"), (bo, "Bo"), (cy, "Cy")):
                people.append(decide_in_browser(page, address, name, decide, most=3))
            process.kill()
            process.wait()
        assert len(answers_in(journal)) == sum(people)
        with served(Path("groups")) as (process, address):
            for page, name in ((ada, "Ada"), (bo, "Bo"), (cy, "Cy")):
                people.append(decide_in_browser(page, address, name, decide, most=1000))
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
    assert len(answers_in(journal)) == decided.total() == sum(people)
    assert set(decided) >= {"accept", "reject"}
    done = culturekit("cspace", "review", "import", journal, "--project", "groups", "--kept", "kept/kept.parquet",
                      "--out", "reviewed")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert read_table(Path("reviewed/decisions.parquet"), DECISIONS)["comment"].str.contains("in a group of").all()

    assert culturekit("cspace", "check", "sample", "--kept", "reviewed/kept.parquet", "--removed",
                      "kept/removed.parquet", "--out", "to-check").returncode == 0  # fmt: skip
    drawn = read_table(Path("to-check/space_sample.parquet"), SPACE_SAMPLE)
    known = {" ".join(key): word for *key, word in table.select("concept", "qid", "country", "truth").iter_rows()}
    units = map(" ".join, drawn.select("concept", "qid", "country").iter_rows())
    answers = {unit: "accept" if known[unit] else "reject" for unit in units}
    fill_in(Path("to-check"), answers, ["Dan", "Eve"])
    done = culturekit("cspace", "check", "score", "--project", "to-check", "--out", "checked")
    assert done.stdout.count("wrong keeps: ") == 1, done.stderr
    found = read_table(Path("checked/space_check.parquet"), SPACE_CHECK)
    for verdict, share in WRONG.items():
        nowhere = pl.col("concept").is_null() & pl.col("country").is_null()
        (row,) = found.filter(nowhere, measure=f"wrong {verdict}s").to_dicts()
        assert row["ci_low"] - 0.03 < share < row["ci_high"] + 0.03
    culturekit("cspace", "release", "--kept", "reviewed/kept.parquet", *ROOTS, "--checked",
               "checked/space_check.parquet", "--out", "cspace")  # fmt: skip
    culturekit("card", "init", "hand", "--name", "mine")
    assert culturekit("card", "build", "cspace", "--hand", "hand", "--out", "card").returncode == 0
    assert "| wrong keeps | all |" in Path("card/README.md").read_text(encoding="utf-8")
