"""`culturekit judge extract|likert`: planned, run and reused, beside `culturekit judge` itself."""

import json
from pathlib import Path

import polars as pl

from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_scene_judge import prompts
from tests.cli.test_question_commands import planned, ran


def replayed(folder: Path, task: str, reply: dict[str, str]) -> str:
    (folder / "said.jsonl").write_text(json.dumps({"task": task, "reply": reply}), encoding="utf-8")
    return f"replay:{folder}/said.jsonl?miss=default"


def test_phrases_are_extracted_planned_and_reused(tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png(), "b": b"broken"})
    spec = replayed(tmp_path, "image.extract", {"descriptors": "samovar, rug"})
    words: list[str | Path] = ["judge", "extract", "--images", images, "--llm", spec, "--out", tmp_path / "extracted"]
    assert planned(*words)["requests"] == 5
    code, said = ran(*words, "--json")
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["drops"] == {"picture format not read": 1}
    assert pl.read_parquet(tmp_path / "extracted/judgments.parquet")["item"].unique().sort().to_list() == [
        "rug",
        "samovar",
    ]
    assert json.loads(ran(*words, "--json")[1].splitlines()[-1])["state"] == "reused"


def test_ratings_that_are_none_leave_a_finding(tmp_path: Path) -> None:
    images, asked = table(tmp_path / "images", {"a": png()}), prompts(tmp_path)
    spec = replayed(tmp_path, "image.likert", {"answer": "four"})
    words: list[str | Path] = ["--images", images, "--prompts", asked, "--llm", spec, "--out", tmp_path / "likert"]
    code, said = ran("judge", "likert", *words)
    assert code == 1, said
    assert "3 rows got no answer" in said
