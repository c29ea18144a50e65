"""The page about captions, typed."""

import re
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.engines import LocalEngine
from culturekit.core.run import run_stage
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from tests.command_line import culturekit
from tests.typed_pages import ROOT, typed

CAPTIONS = ROOT / "docs/captions.md"
DETECTOR = "owl:owlv2"


@pytest.mark.slow
def test_captions_grow_as_the_page_says(tmp_path: Path) -> None:
    """The simulated model answers in place of the paid ones, letters tell near-duplicates; 60 captions, 20 drawn."""
    (tmp_path / "alt-texts.csv").write_text("id,text\na,sdrows dna spmal\nb,a ravomas\n", encoding="utf-8")
    smaller = {"--size": "20", "expand": "--captions 60"}
    for words in typed(CAPTIONS):
        plain = [re.sub("^openai:.*", "simulated", re.sub("^sentence:.*", "letters", word)) for word in words]
        for flag, value in smaller.items():
            if flag in plain and flag.startswith("--"):
                plain[plain.index(flag) + 1] = value
            elif flag in plain:
                plain += value.split()
        if DETECTOR in plain:  # it needs weights: what it reads is there, and the command asks for these alone
            asked = tmp_path / "sample/prompts.parquet"
            stage = generate_stage(asked, ImagePlan(), backend="simulated-scenes", model="m", seed=1)
            with LocalEngine(1) as engine:
                run_stage(stage, tmp_path / "images", engine=engine)
            (tmp_path / "things.txt").write_text("a samovar\n", encoding="utf-8")
            answer = culturekit(*plain, cwd=tmp_path)
            assert answer.returncode != 0
            assert "owl" in answer.stderr
            continue
        answer = culturekit(*plain, cwd=tmp_path, ends=0)
    assert pl.read_parquet(tmp_path / "captions/captions.parquet").height == 60
    assert pl.read_parquet(tmp_path / "sample/captions.parquet").height == 20
    assert pl.read_parquet(tmp_path / "stats/caption_stats.parquet").filter(category="all")["counted"].item() == 20
    assert pl.read_parquet(tmp_path / "translations/translations.parquet")["text"].to_list() == [
        "swords and lamps", "a samovar",
    ]  # fmt: skip
