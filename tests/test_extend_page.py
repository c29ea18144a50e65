"""The page that says how to add a concept, a country and a list of one's own, typed."""

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit

PAGE = Path(__file__).parents[1] / "docs/extend.md"
TYPED = re.compile(r"^\$ culturekit (.*)$", re.MULTILINE)


def blocks() -> list[tuple[str, str, str]]:
    """Give the blocks of the page: the last file that was named before each, its language, its text."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [
        (([""] + re.findall(r"`([\w/]+\.(?:yaml|csv))`", text[: one.start()]))[-1], one[1], one[2]) for one in found
    ]


def type_all(text: str, folder: Path) -> None:
    """Type the commands of a block, with what `>` does, and look at how each ends."""
    for line in TYPED.findall(text.replace("\\\n", " ")):
        words = shlex.split(line)
        into = words.pop() if ">" in words else ""
        words = words[:-1] if into else words
        answer = culturekit(*words, cwd=folder)
        refused = line.startswith("roots validate")  # before the country is there
        assert answer.returncode == (2 if refused else 0), (line, answer.stderr)
        if into:
            (folder / into).write_text(answer.stdout, encoding="utf-8")


@pytest.mark.endtoend
def test_dishes_and_belgium_as_the_page_says(tmp_path: Path, small_run: Path) -> None:
    (tmp_path / "runs/cube").mkdir(parents=True)
    (tmp_path / "runs/cube/graph").symlink_to(small_run / "graph")
    to_list = PAGE.read_text(encoding="utf-8").index("## A list instead")
    commands = [text for _, kind, text in blocks() if kind == "console" and PAGE.read_text().index(text) < to_list]
    words = next(text for _, kind, text in blocks() if kind == "yaml")
    for number, text in enumerate(commands):
        type_all(text, tmp_path)
        if number == 0:
            draft = (tmp_path / "dishes.yaml").read_text(encoding="utf-8")
            (tmp_path / "dishes.yaml").write_text(
                re.sub(r"countries: all.*", "countries: [BE, FR]", draft) + words, encoding="utf-8"
            )
    assert pl.read_parquet(tmp_path / "dishes/candidates.parquet").height == 23


@pytest.mark.endtoend
def test_instruments_and_festivals_from_a_list_to_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, kind, text in blocks():
        if page.index(text) < page.index("## A list instead"):
            continue
        if kind == "console":
            type_all(text, tmp_path)
        else:
            (tmp_path / name).write_text(text, encoding="utf-8")
    texts = pl.read_parquet(tmp_path / "prompts/prompts.parquet")["text"].to_list()
    assert "A photo of charango, an instrument from Bolivia" in texts
    assert "A photo of Carnival of Binche, a festival in Belgium" in texts
    run = tmp_path / "runs/things"
    matches = pl.read_parquet(run / "matches-broad/matches.parquet").filter(rank=1)
    artifacts = dict(pl.read_parquet(run / "cspace/cspace.parquet").select("artifact_id", "concept").iter_rows())
    assert {artifacts[row["artifact_id"]] == row["concept"] for row in matches.to_dicts()} == {True}
    scores = pl.read_parquet(run / "scores/scores.parquet").drop_nulls("concept")
    assert set(scores["concept"]) == {"instruments", "festivals"}
    assert "Festivals" in (run / "report/report.html").read_text(encoding="utf-8").title()
    monkeypatch.chdir(tmp_path)  # the recipe names files from where it was typed
    verified = json.loads(culturekit("verify", run, "--json").stdout)
    assert verified["exit_code"] == 0, "\n".join(f"{each}" for each in verified["findings"])
