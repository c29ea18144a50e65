"""Tables that were paid for and the journals behind them: what was edited is found, the rest is left alone."""

import json
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.completing.completion import CompletionInputs
from culturekit.builders.judging.geo_tag import TagOptions, TagReads
from culturekit.builders.judging.image_judge import WeighOptions, WeighReads
from culturekit.builders.judging.image_questions import ImageQuestion
from culturekit.builders.judging.question_answers import AnswerOptions, AnswerReads
from culturekit.builders.judging.question_graph import GraphOptions
from culturekit.kg.concepts import load_concept
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.pipeline.steps.filter_stage import (
    CompletionOptions,
    FilterOptions,
    FilterReads,
    complete_stage,
    filter_stage,
)
from culturekit.pipeline.steps.judge_stage import JudgeOptions, JudgeReads, judge_stage, tag_stage
from culturekit.pipeline.steps.question_stages import GraphReads, answers_stage, graphs_stage, vqascore_stage
from culturekit.stages.stage import Stage
from culturekit.verify.verify_run import Verification, verify_run
from tests.builders import completing_model
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_answers import questions
from tests.builders.judging.test_question_graph import prompts
from tests.conftest import stage_here
from tests.faults.asking_kills import collection, dishes
from tests.faults.seeing_model import sees
from tests.llm.server import Answer, Fault, Question, Rule, RunningServer, Script, When, running_server
from tests.llm.server.fault_kinds import ANSWER_FAULTS, BODY_FAULTS, TEXT_FAULTS
from tests.verify.forging import change_table, reseal

pytest.importorskip("openai")
pytest.importorskip("google.genai")

FAULTS = {
    "refusal": 17, "truncated": 21, "wrong-id": 31, "content-filter": 41, "duplicate-key": 51, "code-fence": 3,
    "prose": 5, "prose-around": 8, "not-in-enum": 2, "busy": 9, "no-usage": 61, "white-space": 71,
}  # fmt: skip
ONCE = {"code-fence", "prose", "prose-around", "not-in-enum", "busy", "no-usage"}
OFTEN = 1_000
RULES = tuple(
    Rule(then=Fault(kind), when=When(row_matches=f"^Q[0-9]*{end}$", attempts=(1, 1 if kind in ONCE else OFTEN)))
    for kind, end in FAULTS.items()
)
FILTERS = ("chat", "responses", "google", "batch", "google-batch")
ASKED = (*FILTERS, "completion", "answers", "vqascore", "tags", "judged", "questions")


def says(question: Question) -> Answer | str | None:
    """Complete, tag, judge, see; what is left the server makes up."""
    properties = (question.schema or {}).get("properties", {})
    if "shown" in properties:
        named = [{"name": f"thing {number}", "country": "Japan", "sure": 30 + number} for number in range(2)]
        return json.dumps({"id": question.row, "shown": "yes", "artifacts": named})
    return completing_model.answer(question) or (None if "answers" in question.data else sees(question))


def filtered(candidates: Path, judge: str, llm: LlmOptions = DEFAULTS) -> Stage:
    return filter_stage(FilterReads(candidates), FilterOptions((load_concept("cuisine"),), judge), llm)


def stages(folder: Path, server: RunningServer) -> Iterator[Stage]:
    """All stages that pay for replies."""
    price = "price=0.15/0.60"
    openai, google = f"base_url={server.openai_url}&{price}", f"base_url={server.google_url}&{price}"
    specs = {"chat": f"openai:m-1?{openai}", "responses": f"openai:m-1?{openai}&api=responses",
             "google": f"google:m-2?{google}", "batch": f"openai:m-1?{openai}",
             "google-batch": f"google:m-2?{google}"}  # fmt: skip
    candidates = dishes(folder / "dishes", 80)
    for name, spec in specs.items():
        yield replace(filtered(candidates, spec, LlmOptions(batch="batch" in name)), name=name)
    given = collection(folder / "given", 12)
    inputs = CompletionInputs(given / "kept.parquet", given / "candidates.parquet", None, given / "graph")
    yield complete_stage(inputs, CompletionOptions((load_concept(str(given / "roots.yaml")),), specs["chat"]))
    images = table(folder / "pictures", {f"image-{number}": png(f"#{number * 7:03x}") for number in range(9)})
    asked = questions(folder / "asked", {"p1": [f"Is thing {number} shown?" for number in range(1, 5)]})
    yield answers_stage(AnswerReads(images, asked), AnswerOptions(specs["chat"]))
    own = prompts(folder / "prompts", {"p1": "A plain square"})
    yield vqascore_stage(WeighReads(images, own), WeighOptions(specs["chat"]))
    yield replace(tag_stage(TagReads(images), TagOptions(specs["chat"])), name="tags")
    likert = ImageQuestion("likert", "beauty", "How fair?", answers=("1", "2", "3"))
    likerts = (likert, ImageQuestion("share", "sky", "How much?", between=(0.0, 1.0)))
    yield replace(judge_stage(JudgeReads(images), JudgeOptions(likerts, specs["chat"])), name="judged")
    yield graphs_stage(GraphReads(own), GraphOptions(specs["chat"]))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of every stage, each asked for once."""
    folder = tmp_path_factory.mktemp("asked")
    with pytest.MonkeyPatch.context() as keys, running_server(Script(rules=RULES), model=says) as server:
        for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
            keys.setenv(name, "sk-of-nobody-at-all")
        for stage in stages(folder, server):
            stage_here(stage, folder / stage.name)
    return folder


@pytest.mark.parametrize("name", ASKED)
def test_what_nobody_touched_is_verified(asked: Path, name: str) -> None:
    answer = verify_run(asked / name)
    assert [str(finding) for finding in answer.findings if finding.severity != "note"] == []
    assert answer.exit_code == 0
    assert answer.checked["replies whose cost was reckoned again"] > 1
    assert not [what for what in answer.checked if "not verifiable" in what]
    compared = [count for what, count in answer.checked.items() if "with stored replies" in what]
    rows = {"completion": 80, "questions": 1, "vqascore": 9, "tags": 9, "judged": 15}.get(name, 30)
    assert sum(compared) >= rows


def copied(asked: Path, name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked / name, tmp_path / name))


def edited(folder: Path, change: Callable[[str], str], *, most: int = 50) -> int:
    """Edit replies as a forger would, the last ones first, and make their checksums fit."""
    connection = sqlite3.connect(folder / "journal/replies.sqlite")
    count = 0
    for number, raw in connection.execute("SELECT number, raw FROM replies ORDER BY number DESC").fetchall():
        before = bytes(raw).decode()
        after = change(before)
        if after != before and count < most:
            values = (after.encode(), zlib.crc32(after.encode()), number)
            connection.execute("UPDATE replies SET raw = ?, checksum = ? WHERE number = ?", values)
            count += 1
    connection.commit()
    connection.close()
    return count


def broken(folder: Path) -> list[str]:
    answer: Verification = verify_run(folder)
    found = [str(finding) for finding in answer.findings if finding.severity == "broken"]
    assert (answer.exit_code == 4) == bool(found)
    return found


def flipped(reply: str) -> str:
    """Say the opposite of a plain answer about a row."""
    turned = {"keep": "remove", "remove": "keep", "review": "keep"}
    plain = r'(\\"id\\": ?\\"Q\d+\\", ?\\"verdict\\": ?\\")(keep|remove|review)(\\")'
    return re.sub(plain, lambda found: found[1] + turned[found[2]] + found[3], reply)


@pytest.mark.parametrize("name", FILTERS)
def test_fifty_edited_verdicts_are_found_row_by_row(asked: Path, name: str, tmp_path: Path) -> None:
    folder = copied(asked, name, tmp_path)
    assert edited(folder, flipped) == 50
    found = broken(folder)
    assert len([line for line in found if "the verdict is not what its stored replies say" in line]) >= 40
    assert all(re.search(r"\.parquet \(Q\d+, cuisine\): .*replies \d+", line) for line in found)


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"),
    [
        ("completion", "specialty", "delicacy", "no stored reply proposes this"),
        ("completion", r"\"belongs\": \"yes\"", r"\"belongs\": \"no\"", "the check of it says otherwise"),
        ("answers", r"\"answer\": \"yes\"", r"\"answer\": \"no\"", "its raw reply is none of the stored ones"),
        ("vqascore", '"logprob":-0.', '"logprob":-0.9', "its raw reply is none of the stored ones"),
        ("tags", r"\"sure\": 31", r"\"sure\": 91", "its raw reply is none of the stored ones"),
        ("questions", "Is thing 1 shown?", "Is thing 9 shown?", "its raw reply is none of the stored ones"),
    ],
)
def test_edited_replies_of_other_stages_are_found(
    asked: Path, name: str, before: str, after: str, problem: str, tmp_path: Path
) -> None:
    folder = copied(asked, name, tmp_path)
    assert edited(folder, lambda reply: reply.replace(before, after)) > 0
    assert any(problem in line for line in broken(folder))


def test_edited_judgments_are_found(asked: Path, tmp_path: Path) -> None:
    folder = copied(asked, "judged", tmp_path)
    turned = {"1": "2", "2": "3", "3": "1"}
    changed = edited(folder, lambda reply: re.sub(r'(choice\\": ?\\")(\d)', lambda f: f[1] + turned[f[2]], reply))
    assert changed > 0
    assert len(broken(folder)) == changed


@pytest.mark.parametrize(
    ("name", "table_name", "change"),
    [
        ("chat", "kept", pl.col("verdict").replace({"keep": "review", "review": "keep"})),
        ("tags", "judgments", (pl.col("value") + 1).alias("value")),
        ("judged", "judgments", pl.col("choice").replace({"1": "2", "2": "3", "3": "1"})),
        ("questions", "questions", pl.col("text").str.replace("thing 1", "thing 7")),
        ("completion", "proposals", pl.col("name").str.replace("specialty", "delicacy")),
    ],
)
def test_an_edited_table_is_found_though_all_hashes_fit(
    asked: Path, name: str, table_name: str, change: pl.Expr, tmp_path: Path
) -> None:
    folder = copied(asked, name, tmp_path)
    change_table(folder / f"{table_name}.parquet", lambda frame: frame.with_columns(change))
    reseal(folder)
    assert broken(folder)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE readings SET picodollars = -picodollars", "a negative count or cost"),
        ("UPDATE readings SET output_tokens = -5", "a negative count or cost"),
        ("UPDATE readings SET picodollars = picodollars * 2", "its tokens cost"),
        ("UPDATE readings SET input_tokens = input_tokens + 9", "the reply says"),
        ("UPDATE facts SET value = replace(value, '\"input\":150000', '\"input\":-150000') WHERE name = 'rates'",
         "is negative"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["chat", "batch"])
def test_money_is_tokens_times_prices(asked: Path, name: str, statement: str, problem: str, tmp_path: Path) -> None:
    folder = copied(asked, name, tmp_path)
    with sqlite3.connect(folder / "journal/replies.sqlite") as connection:
        connection.execute(statement)
    connection.close()
    assert any(problem in line for line in broken(folder))


def test_a_journal_that_names_no_price_and_one_that_is_gone_are_said_with_their_counts(
    asked: Path, tmp_path: Path
) -> None:
    folder = copied(asked, "chat", tmp_path)
    with sqlite3.connect(folder / "journal/replies.sqlite") as connection:
        connection.execute("DELETE FROM facts WHERE name = 'rates'")
    connection.close()
    assert broken(folder) == []
    answer = verify_run(folder)
    assert answer.checked["costs of journals that name no price (not verifiable)"] > 80
    shutil.rmtree(folder / "journal")
    assert broken(folder) == []
    answer = verify_run(folder)
    assert any("80 verdicts are not verifiable" in str(finding) for finding in answer.findings)


def test_a_judge_that_is_free_stores_nothing_and_that_is_counted(tmp_path: Path) -> None:
    stage = filtered(dishes(tmp_path / "dishes", 20), "rules")
    stage_here(stage, tmp_path / "kept")
    answer = verify_run(tmp_path / "kept")
    assert answer.exit_code == 0
    assert answer.checked["verdicts of judges that store no reply (not verifiable)"] == 20


def test_a_candidate_without_an_end_is_missed(asked: Path, tmp_path: Path) -> None:
    shutil.copytree(asked / "dishes", tmp_path / "dishes")
    folder = copied(asked, "chat", tmp_path)
    change_table(folder / "kept.parquet", lambda frame: frame.head(frame.height - 3))
    reseal(folder)
    assert any("3 candidates are neither kept nor dropped" in line for line in broken(folder))


def test_a_journal_whose_pages_are_damaged_is_broken_and_no_crash(asked: Path, tmp_path: Path) -> None:
    folder = copied(asked, "chat", tmp_path)
    path = folder / "journal/replies.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    assert any("the file is damaged" in line or "cannot be read" in line for line in broken(folder))


WAITING = ("deep-envelope", "broken-json", "empty-body", "html-page", "error-in-200", "long-string")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chat", "responses", "google", "batch"])
def test_whatever_a_server_said_the_run_it_made_is_verified(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fault inside a reply, once on one row and always on another: more than a run puts up with unasked."""
    for key in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(key, "sk-of-nobody-at-all")
    kinds = [kind for kind in (*BODY_FAULTS, *ANSWER_FAULTS, *TEXT_FAULTS) if kind not in WAITING]
    rules = tuple(
        Rule(
            then=Fault(kind, text='{"id":"{id}","verdict":"keep"}' if kind == "says" else "", size=2_000),
            when=When(row_matches=f"^Q{number + place}$", attempts=(1, last)),
        )
        for number, kind in enumerate(kinds)
        for place, last in ((1, 1), (101, 2 if kind in BODY_FAULTS else OFTEN))
    )
    candidates = dishes(tmp_path / "dishes", 150)
    with running_server(Script(rules=rules)) as server:
        specs = {
            "google": f"google:m-2?base_url={server.google_url}&price=0.15/0.60",
            "responses": f"openai:m-1?base_url={server.openai_url}&price=0.15/0.60&api=responses",
        }
        spec = specs.get(name, f"openai:m-1?base_url={server.openai_url}&price=0.15/0.60")
        stage = filtered(candidates, spec, LlmOptions(batch=name == "batch", go_on=True))
        stage_here(stage, tmp_path / "kept")
    answer = verify_run(tmp_path / "kept")
    assert [str(finding) for finding in answer.findings] == []
    assert answer.checked["verdicts compared with stored replies"] == 150
