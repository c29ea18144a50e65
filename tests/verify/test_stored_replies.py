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

from culturekit.builders.completing.completion import complete
from culturekit.builders.filtering.candidate_review import settle
from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.builders.judging.geo_tag import tag
from culturekit.builders.judging.image_judge import ImageQuestion, judge_own, vqascore
from culturekit.builders.judging.question_graph import answer, build
from culturekit.core.schemas import CANDIDATES, KEPT
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import load_concept
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.verify.verify_run import Verification, verify_run
from tests.builders import completing_model
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts, questions
from tests.builders.spaces import rows_of
from tests.conftest import stage_here
from tests.faults.asking_commands import collection, dishes
from tests.faults.seeing_model import sees
from tests.llm.server import Answer, Fault, Question, Rule, RunningServer, Script, When, running_server
from tests.llm.server.script import ANSWER_FAULTS, BODY_FAULTS, TEXT_FAULTS
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
ASKED = (*FILTERS, "settled", "answers", "vqascore", "tags", "judged", "questions")


def says(question: Question) -> Answer | str | None:
    """Complete, tag, judge, see; what is left the server makes up."""
    properties = (question.schema or {}).get("properties", {})
    if "shown" in properties:
        named = [{"name": f"thing {number}", "country": "Japan", "sure": 30 + number} for number in range(2)]
        return json.dumps({"id": question.row, "shown": "yes", "artifacts": named})
    return completing_model.answer(question) or (None if "answers" in question.data else sees(question))


def filtered(candidates: Path, judge: str, llm: LlmOptions = DEFAULTS) -> Stage:
    return filter_candidates.stage(candidates, roots=(load_concept("cuisine"),), judge=judge, llm=llm)


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
    waits = {"verdict": "review", "reason": "judge m-0"}
    waiting = rows_of(KEPT, *(row | waits for row in read_table(candidates, CANDIDATES).iter_rows(named=True)))
    kept = write_table(folder / "dishes", KEPT, waiting)
    yield settle.stage(kept, roots=(load_concept("cuisine"),), judge=specs["chat"], sure=0.5)
    given = collection(folder / "given", 12)
    concepts = (load_concept(str(given / "roots.yaml")),)
    tables = given / "kept.parquet", given / "candidates.parquet", None, given / "graph"
    yield complete.stage(*tables, roots=concepts, proposer=specs["chat"])
    images = table(folder / "pictures", {f"image-{number}": png(f"#{number * 7:03x}") for number in range(9)})
    asked = questions(folder / "asked", {"p1": [f"Is thing {number} shown?" for number in range(1, 5)]})
    yield answer.stage(images, asked, judge=specs["chat"])
    own = prompts(folder / "prompts", {"p1": "A plain square"})
    yield vqascore.stage(images, own, judge=specs["chat"])
    yield replace(tag.stage(images, judge=specs["chat"]), name="tags")
    likert = ImageQuestion("likert", "beauty", "How fair?", answers=("1", "2", "3"))
    likerts = (likert, ImageQuestion("share", "sky", "How much?", between=(0.0, 1.0)))
    yield replace(judge_own.stage(images, questions=likerts, judge=specs["chat"]), name="judged")
    yield build.stage(own, writer=specs["chat"])


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
    assert answer.checked["stages made again"] == 1
    assert answer.checked["replies of journals"] > 1


def copied(asked: Path, name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "copy")) / name


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
    plain = r'(\\"verdict\\": ?\\")(keep|remove|review)(\\")'
    return re.sub(plain, lambda found: found[1] + turned[found[2]] + found[3], reply)


EDITS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys((*FILTERS, "settled"), flipped),
    "answers": lambda reply: reply.replace(r"\"answer\": \"yes\"", r"\"answer\": \"no\""),
    "vqascore": lambda reply: reply.replace('"logprob":-0.', '"logprob":-0.9'),
    "tags": lambda reply: reply.replace(r"\"sure\": 31", r"\"sure\": 91"),
    "questions": lambda reply: reply.replace("Is thing 1 shown?", "Is thing 9 shown?"),
    "judged": lambda reply: re.sub(
        r'(choice\\": ?\\")(\d)', lambda f: f[1] + {"1": "2", "2": "3", "3": "1"}[f[2]], reply
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_replies_are_found(asked: Path, name: str, tmp_path: Path) -> None:
    """Also with checksums that fit: the table that they give is another one."""
    folder = copied(asked, name, tmp_path)
    assert edited(folder, EDITS[name]) > 0
    assert any(".parquet" in line and "when it is made again" in line for line in broken(folder))


def test_a_stage_of_a_root_config_that_no_recipe_names_is_not_verifiable(asked: Path) -> None:
    answer = verify_run(asked / "completion")
    assert answer.exit_code == 1
    assert [str(finding) for finding in answer.findings] == [
        "completion: not verifiable here: neither a recipe nor its options say how it was made"
    ]


VERDICT = pl.col("verdict").replace({"keep": "review", "review": "keep"})


@pytest.mark.parametrize(("name", "table_name", "change"), [
    ("chat", "kept", lambda table: table.with_columns(VERDICT)),
    ("chat", "kept", lambda table: table.head(table.height - 3)),
    ("settled", "kept", lambda table: table.with_columns(VERDICT)),
    ("settled", "removed", lambda table: table.with_columns(pl.col("reason") + "!")),
    ("settled", "drops", lambda table: table.with_columns(pl.col("reason") + "!")),
    ("tags", "judgments", lambda table: table.with_columns(pl.col("value") + 1)),
    ("judged", "judgments", lambda table: table.with_columns(
        pl.col("choice").replace({"1": "2", "2": "3", "3": "1"}))),
    ("questions", "questions", lambda table: table.with_columns(pl.col("text").str.replace("thing 1", "thing 7"))),
])  # fmt: skip
def test_an_edited_table_is_found_though_all_hashes_fit(
    asked: Path, name: str, table_name: str, change: Callable[[pl.DataFrame], pl.DataFrame], tmp_path: Path
) -> None:
    folder = copied(asked, name, tmp_path)
    before = pl.read_parquet(folder / f"{table_name}.parquet").height
    change_table(folder / f"{table_name}.parquet", change)
    after = pl.read_parquet(folder / f"{table_name}.parquet").height
    reseal(folder)
    assert any("has other rows when it is made again" in line for line in broken(folder)) or after == before
    assert broken(folder)


def test_without_its_journal_a_stage_is_not_verifiable_and_nothing_is_sent(asked: Path, tmp_path: Path) -> None:
    folder = copied(asked, "chat", tmp_path)
    shutil.rmtree(folder / "journal")
    answer = verify_run(folder)
    assert answer.exit_code == 1
    assert "chat: not verifiable here: m-1: nothing is sent" in str(answer.findings[0])


def with_another_checksum(journal: Path) -> None:
    with sqlite3.connect(journal) as connection:
        connection.execute("UPDATE replies SET checksum = checksum + 1 WHERE number = 3")
    connection.close()


def with_damaged_pages(journal: Path) -> None:
    content = bytearray(journal.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    journal.write_bytes(content)


@pytest.mark.parametrize(("damage", "said"), [
    (with_another_checksum, "reply 3 is not what came: its checksum differs"),
    (with_damaged_pages, "the file is damaged|cannot be read"),
])  # fmt: skip
def test_a_damaged_journal_is_broken_and_no_crash(
    asked: Path, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    folder = copied(asked, "chat", tmp_path)
    damage(folder / "journal/replies.sqlite")
    assert any(re.search(said, line) for line in broken(folder))


def test_a_judge_that_is_free_is_asked_again(tmp_path: Path) -> None:
    stage = filtered(dishes(tmp_path / "dishes", 20), "rules")
    stage_here(stage, tmp_path / "kept")
    answer = verify_run(tmp_path / "kept")
    assert (answer.exit_code, answer.checked["stages made again"]) == (0, 1)


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
    assert answer.checked["stages made again"] == 1
