"""The pages "Publish a release" and "Draw a benchmark", typed: a newcomer's path first, then every choice by hand."""

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from culturekit.core.digests import read_manifest
from culturekit.core.schemas import CSPACE, DECISIONS, QUOTAS, SPACE_SAMPLE
from culturekit.core.tables import read_table
from tests.command_line import culturekit
from tests.people.test_space_check import fill_in as judge_tasks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "publish-a-release.md").read_text(encoding="utf-8")
DRAW = (DOCS / "draw-a-benchmark.md").read_text(encoding="utf-8")
INSTALL, NEEDS_A_KEY, LEAVES_WITH_1 = "pip install culturekit", "export GOOGLE_API_KEY", "leaves with 1"


def typed(text: str) -> Iterator[tuple[list[str], int]]:
    """Read the commands of a part of the page, and the exit code that each is said to leave with."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        if NEEDS_A_KEY in block:
            continue
        for line in block.replace("\\\n", " ").splitlines():
            command, _, comment = line.removeprefix("$ ").partition("  #")
            if command.strip() != INSTALL:
                yield shlex.split(command), int(LEAVES_WITH_1 in comment)


def follow(text: str) -> None:
    for words, expected in typed(text):
        assert words[0] == "culturekit"
        assert culturekit(*words[1:]).returncode == expected, " ".join(words)


def fill_in(sheet: Path, decision: str) -> None:
    """Write one decision into every row, as a person would in a spreadsheet."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([{**row, "decision": decision} for row in rows])


FIRST, _, REST = PAGE.partition("\n## 1. ")
BEFORE_SHEET, _, AFTER_SHEET = FIRST.partition("Open `review.csv`")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("newcomer")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        follow(BEFORE_SHEET)
        fill_in(here / "review.csv", "reject")
        follow(AFTER_SHEET)
    return here


@pytest.mark.endtoend
def test_five_commands_lead_a_newcomer_from_a_dump_to_a_card(newcomer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(newcomer)
    assert len(list(typed(FIRST))) <= 5
    assert "yaml" not in FIRST.lower()
    assert not list(newcomer.glob("*.yaml"))
    run = newcomer / "runs/cube-release"
    assert (run / "card/README.md").is_file()
    assert culturekit("verify", run).returncode == 0
    space = read_table(run / "cspace/cspace.parquet", CSPACE)
    assert set(space["verdict"]) == {"keep"}
    decided = read_table(run / "review/decisions.parquet", DECISIONS)
    assert decided.select("reviewer", "decided_on", "decision").rows() == [("Ada", "2026-11-22", "reject")]
    manifests = {name: read_manifest(run / name) for name in ("cspace", "card")}
    assert "findings" not in manifests["cspace"].notes  # type: ignore[union-attr]
    described = json.loads((run / "card/facts.json").read_bytes())
    assert [stage["stage"] for stage in described["stages"]].count("review") == 1


def test_a_run_without_models_says_that_there_is_nothing_to_report_or_trace(newcomer: Path, tmp_path: Path) -> None:
    run = newcomer / "runs/cube-release"
    assert "evaluated no model" in culturekit("report", run, "--out", tmp_path / "page", ends=2).stderr
    assert "there are no scores" in culturekit("trace", f"{run}#0", ends=2).stderr


@pytest.mark.slow
def test_every_other_command_of_the_pages_works_as_typed(newcomer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(newcomer)
    for language, name, begin in (("yaml", "de.yaml", "language:"), ("csv", "quotas.csv", "concept,"),
                                  ("yaml", "mine.yaml", "recipe:")):  # fmt: skip
        (block,) = (text for text in re.findall(rf"```{language}\n(.*?)```", DRAW, re.DOTALL) if text.startswith(begin))
        Path(name).write_text(block, encoding="utf-8")
    assert len(list(typed(REST.partition("\n## 6. ")[0]))) <= 9  # from candidates to a card that is checked
    judged, by_hand = REST.split("Import the decisions:")
    follow(judged)
    fill_in(Path("sheet.csv"), "reject")
    drawn, scored = by_hand.split("What they answer")
    follow(drawn)
    sample = read_table(Path("to-check/space_sample.parquet"), SPACE_SAMPLE)
    answers = {" ".join(key): "accept" for key in sample.select("concept", "qid", "country").iter_rows()}
    judge_tasks(Path("to-check"), answers, ["Ada", "Bo"])
    follow(scored)
    assert "wrong keeps: 0.0 %" in Path("card/README.md").read_text(encoding="utf-8")
    public = [row for row in json.loads(Path("cspace/cube.json").read_bytes()) if row["country"] == "Brazil"]
    Path("cube_1k.json").write_text(json.dumps(public[:2]), encoding="utf-8")
    follow(DRAW)
    quotas = read_table(Path("cube-1k/quotas.parquet"), QUOTAS)
    assert quotas.filter(concept="landmarks", country="NG").row(0) == ("landmarks", "NG", 10, 0, 0)
