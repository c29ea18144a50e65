"""From an artifact to the reply that decided it: through a filter, through a completion, or to why there is none."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.completing.completion import complete
from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.stage import Stage
from culturekit.kg.concepts import load_concept
from culturekit.kg.dump.ingest import IngestOptions, ingest_stage
from culturekit.kg.exchange.extract_stage import extract_stage
from culturekit.trail.evidence import EvidenceTables, verdict_lines
from tests.builders import completing_model
from tests.command_line import culturekit
from tests.conftest import stage_here
from tests.llm.server import Answer, Fault, Question, Rule, RunningServer, Script, When, running_server

pytest.importorskip("openai")

SAMPLE = Path(__file__).parents[2] / "culturekit/kg/sample/wikidata-sample.json.gz"
PROSE_ONCE = Rule(then=Fault("prose"), when=When(row_matches="^Q[0-9]*[02468]$", attempts=(1, 1)))


def says(question: Question) -> Answer | str | None:
    if "verdict" in (question.schema or {}).get("properties", {}):
        return json.dumps({"id": question.row, "verdict": "remove" if question.row.endswith("7") else "keep"})
    return completing_model.answer(question)


def stages(folder: Path, server: RunningServer) -> Iterator[Stage]:
    spec = f"openai:judge-1?base_url={server.openai_url}&price=0.15/0.60"
    concepts = (load_concept("cuisine"),)
    candidates = folder / "candidates/candidates.parquet"
    yield ingest_stage([SAMPLE], IngestOptions())
    yield extract_stage(folder / "graph", concepts)
    yield filter_candidates.stage(candidates, folder / "graph", roots=concepts, judge=spec)
    yield complete.stage(folder / "filter/kept.parquet", graph=folder / "graph", roots=concepts, proposer=spec)
    yield release_stage([folder / "completion/completed.parquet"], ReleaseOptions(concepts))


@pytest.fixture(scope="module")
def paid_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From dump to space with a filter and a completion that were paid for."""
    folder = tmp_path_factory.mktemp("paid")
    with pytest.MonkeyPatch.context() as keys, running_server(Script(rules=(PROSE_ONCE,)), model=says) as server:
        keys.setenv("OPENAI_API_KEY", "sk-of-nobody")
        for stage in stages(folder, server):
            stage_here(stage, folder / stage.name)
    return folder


def told(run: Path, artifact_id: str) -> list[str]:
    tables = EvidenceTables(run / "cspace")
    evidence = tables.evidence_of([(artifact_id, "cuisine")])[artifact_id, "cuisine"]
    return list(verdict_lines(tables.verdicts(evidence)))


def test_an_artifact_of_the_dump_is_walked_to_its_verdict_question_and_reply(paid_run: Path) -> None:
    kept = pl.read_parquet(paid_run / "filter/kept.parquet").filter(pl.col("qid").str.contains("[02468]$"))
    qid, label = kept.select("qid", "label").row(0)
    verdict, asked, answered = told(paid_run, qid)[:3]
    assert verdict == "verdict    keep, by filter: judge judge-1"
    assert f'"id":"{qid}"' in asked and json.dumps(label, ensure_ascii=False) in asked
    assert "filter/journal entry" in answered and "(repaired)" in answered and "verdict" in answered


def test_an_artifact_of_the_completion_is_walked_to_who_proposed_it_and_the_check_of_it(paid_run: Path) -> None:
    completed = pl.read_parquet(paid_run / "completion/completed.parquet").filter(source="llm")
    artifact_id = completed["qid"][0]
    proposal = pl.read_parquet(paid_run / "completion/proposals.parquet").filter(
        artifact_id=artifact_id, outcome="added"
    )
    lines = told(paid_run, artifact_id)
    assert lines[0].startswith("verdict    added, by completion: proposed for ")
    assert all("completion/journal entry" in lines[place] for place in (2, 4))
    assert f'"id":"cuisine/{proposal["country"][0]}"' in lines[1]
    assert f'"id":"{proposal["proposal_id"][0]}"' in lines[3]


def test_explain_tells_the_verdict_also_of_what_was_removed(paid_run: Path) -> None:
    dropped = pl.read_parquet(paid_run / "filter/drops.parquet").filter(reason="judge judge-1")
    words = ("kg", "explain", dropped["key"][0], "--graph", paid_run / "graph", "--roots", "cuisine")
    text = culturekit(*words).stdout
    assert "verdict    remove, by filter: judge judge-1" in text
    assert "filter/journal entry" in text
    [data] = json.loads(culturekit(*words, "--json").stdout)
    assert data["judged"][0]["replies"][0]["question"]["id"] == dropped["key"][0]
    assert "verdict    " not in culturekit(*words, "--kept", paid_run / "completion").stdout
    refused = culturekit(*words, "--kept", paid_run / "cspace", ends=2)
    assert "cspace: no stage that judges candidates; expected a folder of filter or" in refused.stderr


def test_the_log_of_one_item_or_artifact(paid_run: Path) -> None:
    drop = pl.read_parquet(paid_run / "filter/drops.parquet").filter(reason="judge judge-1")["key"][0]
    lines = [
        json.loads(line) for line in culturekit("llm", "log", paid_run, "--qid", drop, "--json").stdout.splitlines()
    ]
    assert lines and {line["stage"] for line in lines} == {"filter"}
    assert all(f'\\"id\\":\\"{drop}\\"' in line["request"] for line in lines)
    artifact = pl.read_parquet(paid_run / "completion/completed.parquet").filter(source="llm")["qid"][0]
    text = culturekit("llm", "log", paid_run, "--qid", artifact).stdout
    assert text.count("completion #") >= 2
    assert culturekit("llm", "log", paid_run, "--qid", "Q999999999").stdout == ""


def test_a_free_judge_has_no_reply_and_that_is_said(paid_run: Path, tmp_path: Path) -> None:
    concepts = (load_concept("cuisine"),)
    kept = filter_candidates.stage(paid_run / "candidates/candidates.parquet", roots=concepts, judge="rules")
    stage_here(kept, tmp_path / "kept")
    space = release_stage([tmp_path / "kept/kept.parquet"], ReleaseOptions(concepts))
    stage_here(space, tmp_path / "cspace")
    judged = pl.read_parquet(tmp_path / "kept/kept.parquet").filter(pl.col("reason").str.starts_with("judge "))
    assert "answers for nothing and says the same again: no reply is stored" in told(tmp_path, judged["qid"][0])[1]


def test_trace_leads_from_an_artifact_of_the_dump_to_explain(paid_run: Path) -> None:
    space = pl.read_parquet(paid_run / "cspace/cspace.parquet")
    qid = space.filter(pl.col("artifact_id").str.starts_with("Q"))["artifact_id"][0]
    for place in (paid_run, paid_run / "cspace", paid_run / "cspace/cspace.parquet"):
        traced = culturekit("trace", f"{place}#{qid}", ends=0)
        assert f"({qid}) in cuisine" in traced.stdout
        assert "verdict    keep, by filter: judge judge-1" in traced.stdout
        assert "wikidata-sample.json.gz, line" in traced.stdout
    command = traced.stdout.splitlines()[-1].removeprefix("explain    culturekit ").split()
    assert command[:2] == ["kg", "explain"]
    culturekit(*command, ends=0)
    (judged,) = json.loads(culturekit("trace", f"{paid_run}#{qid}", "--json").stdout)
    assert (judged["artifact_id"], judged["judged"][0]["verdict"]) == (qid, "keep")


def test_trace_leads_from_an_artifact_of_a_model_to_its_proposal(paid_run: Path) -> None:
    space = pl.read_parquet(paid_run / "cspace/cspace.parquet")
    named = space.filter(pl.col("artifact_id").str.starts_with("LLM:"))["artifact_id"][0]
    traced = culturekit("trace", f"{paid_run}#{named}", ends=0)
    assert "verdict    added, by completion: proposed for" in traced.stdout
    assert "answered completion/journal entry" in traced.stdout
    assert "kg explain" not in traced.stdout
    words = ("kg", "explain", named, "--graph", paid_run / "graph", "--roots", "cuisine")
    assert f"trace RUN#{named}` leads to its proposal" in culturekit(*words).stderr


@pytest.mark.parametrize(("words", "says"), [
    (("RUN#Q99999999",), "kg explain Q99999999"),
    (("RUN#LLM:nobody",), "no such artifact"),
    (("Q42",), "RUN#Q42"),
    (("RUN#Q42", "--images", "2"), "belong to a score"),
])  # fmt: skip
def test_an_artifact_that_cannot_be_traced_is_told_why(paid_run: Path, words: tuple[str, ...], says: str) -> None:
    first, *more = words
    assert says in culturekit("trace", first.replace("RUN", str(paid_run)), *more, ends=2).stderr


def test_the_replies_about_each_country_are_told(paid_run: Path) -> None:
    kept = pl.read_parquet(paid_run / "filter/kept.parquet")
    qid = kept.filter(pl.col("country_qids").list.len() > 1)["qid"][0]
    asked = [line for line in told(paid_run, qid) if line.startswith("  asked ")]
    countries = {json.loads(line.removeprefix("  asked    "))["country"] for line in asked}
    assert len(countries) == len(asked) >= 2
