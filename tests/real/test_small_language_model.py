"""Recipes whose words come from SmolLM2 behind llama.cpp's server: every question ends, and every run is verified.

A model of 135 million parameters copies what it is shown and knows no culture. Recipes have to end all the same, count
what was of no use, and be the same when they are run again.
"""

import csv
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.generation.diffusion.tiny_pipelines import tiny
from tests.real.things import LLAMA, Llama, keep, needs, running_llama

pytestmark = [
    *needs(LLAMA),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),  # of diffusers
]
# How a recipe may end that got nothing from the model that it needs, before images are drawn
REFUSED = ("there are no prompts of dialects", "names no stereotype of any country")

ART = """
concept: art
hops: 4
roots:
  - {qid: Q11460, label: clothing, subconcept: clothing}
  - {qid: Q107357104, label: type of dance, subconcept: performance}
  - {qid: Q1153484, label: folk art, subconcept: folk art}
countries: [JP, IN]
"""
PAGE = """
<html><head><title>Iran</title></head><body><h1>Iranian Culture</h1>
<h3>Greetings</h3><p>The common greeting is a handshake. Close friends may kiss each other on the cheek.</p>
</body></html>
"""
LISTED = "pages: [{source: cultural-atlas, country: IR, file: iran.html, url: 'https://atlas.example/iran'}]"
SCENES = "models=[{name: plain, backend: 'simulated-scenes?knows=0.5'}]"

RECIPES: Mapping[str, tuple[str, ...]] = {
    "cube": (
        "concepts=[art.yaml]", "judge={model}&max_tokens=120", "completion={{rounds: 1, per_round: 2, shown: 20}}",
        "images={{kinds: [underspecified], slots: 4, repeats: 5}}", "audit=null", "references.per_artifact=2",
        "models=[{{name: even, backend: 'simulated?temperature=0'}}, {{name: mirage, backend: 'simulated?noise=1'}}]",
        "diagnosis={{floor_repeats: 2, ceiling_repeats: 2}}", "scores.size=4",
    ),
    "cultivate": (
        "ground.countries=[IR]", "ground.per_category=1", "ground.pages=pages.yaml", "ground.at_most=4",
        "ground.reader={model}&max_tokens=400", "ground.proposers=['{model}&max_tokens=200']",
        "ground.refiner={model}&max_tokens=200", "ground.stereotypes={model}&max_tokens=200", "images.slots=1",
        "real.per_prompt=2", "real.keep=1", "people=null", SCENES.replace("{", "{{").replace("}", "}}"),
    ),
    "c3": (
        "captions.count=10", "captions.sample=5", "captions.proposer={model}&temperature=0.8&max_tokens=400",
        "pairs.translator={model}&max_tokens=80", "pairs.simulated.each=1", "pairs.keep=4", "people=null",
        "objects.dimensions=[objects]", "images.size=96x96",
        "models=[{{name: tiny, backend: 'diffusers:sdxl?steps=2&device=cpu'}}]",
    ),
    "linguistic": (
        "prompts.nouns=2", "prompts.pairs.proposer={model}&temperature=0.8&max_tokens=500", "prompts.pairs.count=20",
        "images.slots=2", "people=null",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    with running_llama(tmp_path_factory.mktemp("llama")) as server:
        yield server


def ran(name: str, server: Llama) -> Any:
    """Run a recipe with small settings, its words from the server."""
    model = f"openai:smollm2?base_url=http://127.0.0.1:{server.port}/v1&schema=llamacpp&price=0/0&timeout=1800"
    stated = [word for setting in RECIPES[name] for word in ("--set", setting.format(model=model))]
    common = ("--workdir", "run", "--go-on", "--set", "llm.concurrency=2")
    return culturekit("run", name, *common, *stated)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_ends_whatever_a_small_model_says(
    name: str, llama: Llama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, text in {"art.yaml": ART, "iran.html": PAGE, "pages.yaml": LISTED}.items():
        Path(file).write_text(text, encoding="utf-8")
    if name == "c3":  # simulated scenes know no captions but their own
        pytest.importorskip("torch")
        tiny(Path(), "sdxl")
    started = time.monotonic()
    first = ran(name, llama)
    seconds = time.monotonic() - started
    (why,) = [said for said in REFUSED if said in first.stderr] or [""]
    if why:
        assert first.returncode == 2
        assert not list(Path("run").glob("images-*")), "nothing is drawn in vain"
        keep(f"smollm2_{name}", f"SmolLM2 in the recipe {name}: refused", [["why"], [why]])
        return
    assert first.returncode in (0, 1), first.stderr  # 1: rows wait for a person
    again = ran(name, llama)
    assert again.returncode == first.returncode
    assert " 0 done" in again.stderr, again.stderr
    answer = verify_run(Path("run"))
    assert [str(finding) for finding in answer.findings if finding.severity == "broken"] == []
    rows = [["stage", "outcomes of questions", "tokens out"]]
    for manifest in sorted(Path("run").glob("*/manifest.json")):
        outcomes = json.loads(manifest.read_text(encoding="utf-8")).get("notes", {}).get("outcomes")
        if outcomes and any(manifest.parent.rglob("replies.sqlite")):  # a simulated judge keeps none
            assert set(outcomes) <= {"ok", "repaired", "refused", "truncated", "invalid", "exhausted"}
            said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            rows.append([manifest.parent.name, said, str(tokens_of(manifest.parent))])
    assert len(rows) > 1
    keep(f"smollm2_{name}", f"SmolLM2 in the recipe {name}: {seconds / 60:.0f} minutes, verified", rows)


def test_a_third_dialect_is_drafted_mended_on_a_sheet_and_drawn(
    llama: Llama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model this small names no pair that can be used: people write on its sheet what it should have said."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    tiny(tmp_path, "sdxl")
    model = f"openai:smollm2?base_url=http://127.0.0.1:{llama.port}/v1&schema=llamacpp&price=0/0&timeout=1800"
    asked = ("--llm", f"{model}&temperature=0.8&max_tokens=500", "--count", "40", "--concurrency", "2", "--go-on")
    drafted = culturekit("prompts", "dialects", "draft", "--dialect", "Scots", *asked, "--out", "draft")
    assert drafted.returncode in (0, 1), drafted.stderr
    with Path("draft/review.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["proposer"] == "smollm2" and not row["decision"] for row in rows)
    blank = dict.fromkeys(("standard", "other", "frames", "source", "decision"), "")
    mended = {"standard": "church", "other": "kirk", "frames": "a man at the {} / a woman at the {}",
              "source": "Dictionaries of the Scots Language: kirk", "decision": "accept"}  # fmt: skip
    with Path("sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, {**blank, **(rows[0] if rows else {})})
        writer.writeheader()
        writer.writerows([{**(rows[0] if rows else {}), **mended}, *rows[1:]])
    tiny_model = "models=[{name: tiny, backend: 'diffusers:sdxl?steps=2&device=cpu'}]"
    stated = ("prompts.pairs={other: Scots, review: sheet.csv}", "prompts.kinds=[dialects]", tiny_model, "people=null",
              "images.slots=2", "images.size=96x96")  # fmt: skip
    done = culturekit("run", "linguistic", "--workdir", "run", *(word for one in stated for word in ("--set", one)))
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet("run/images-tiny/images.parquet").height == 8
    gap = pl.read_parquet("run/dialects/scores.parquet").filter(metric="dialect_gap")
    assert gap["group"].to_list() == ["SAE - Scots"]
    assert verify_run(Path("run")).findings == ()
    outcomes = Counter(row["outcome"] for row in rows)
    keep("smollm2_dialect", "SmolLM2 drafts pairs of Scots: what became of them", [["outcome", "pairs"],
         *([name, str(count)] for name, count in sorted(outcomes.items()))])  # fmt: skip


def tokens_of(stage: Path) -> int:
    """Add up what a stage's journal says came back."""
    cost = culturekit("llm", "cost", str(stage), "--json")
    assert cost.returncode == 0, cost.stderr
    return int(json.loads(cost.stdout)["total"]["output_tokens"])
