"""The page about linguistic and cultural biases, typed."""

import re
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit
from tests.recipes.linguistic.test_wordnet import DEBIAN
from tests.typed_pages import ROOT, typed

PAGE = ROOT / "docs/linguistic.md"


def test_a_proposer_of_the_recipe_is_priced_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    answer = culturekit("plan", str(ROOT / "recipes/linguistic.yaml"), "--set", "prompts.pairs.proposer=openai:gpt-4o",
                        "--set", "people.simulated=null", cwd=tmp_path)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"^prompts-dialects +to do +3 questions +3 +[\d,]+ +0\.07", answer.stdout, re.MULTILINE), (
        answer.stdout
    )


def test_prompts_are_built_as_the_page_says(tmp_path: Path) -> None:
    """The simulated model answers in place of the paid one; without WordNet its lines are left out."""
    for name in ("sae", "aae"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("car whip home crib shoes kicks bread money")
    for words in typed(PAGE)[2:]:
        if words[0] != "prompts" or any("wordnet" in word or "review" in word for word in words):
            continue
        answer = culturekit(*(re.sub("^openai:.*", "simulated", word) for word in words), cwd=tmp_path)
        assert answer.returncode == 0, (words, answer.stderr)
    sizes = {name: pl.read_parquet(tmp_path / name / "prompts.parquet").height for name in ("specific", "neutral")}
    assert sizes == {"specific": 42, "neutral": 210}
    fell = pl.read_parquet(tmp_path / "proposed/dialect_pairs.parquet")
    assert {"kept", "not in the corpus"} <= set(fell["outcome"])


@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="needs Debian's wordnet-base")
def test_nouns_of_wordnet_are_looked_at_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("nltk", reason="needs the extra sources")
    for words in typed(PAGE)[2:]:
        if words[0] == "prompts" and any("wordnet" in word or "review" in word for word in words):
            named = [str(DEBIAN) if word == "/usr/share/wordnet" else word for word in words]
            answer = culturekit(*named, cwd=tmp_path)
            assert answer.returncode == 0, (words, answer.stderr)
            sheet = tmp_path / "candidates/review.csv"
            if sheet.is_file() and "bakery" in (text := sheet.read_text(encoding="utf-8")):
                sheet.write_text(re.sub(r"(?m)^(bakery\.n\.\d+,.*),,$", r"\1,accept,", text), encoding="utf-8")
    assert set(pl.read_parquet(tmp_path / "reviewed/prompts.parquet")["artifact_id"]) == {"bakery"}
