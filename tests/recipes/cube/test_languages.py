"""Prompts in Chinese and Swahili by a root config alone: labels of Wikidata, names of CLDR, scores by language."""

import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.checks import dump_files
from culturekit.core.inputs import manifest_of
from culturekit.kg.concepts import concept_path
from tests.command_line import culturekit

LABELS = {
    "shabu-shabu": {"zh-hans": "涮涮锅", "sw": "Shabu-shabu"}, "churrasco": {"zh": "巴西烤肉"}, "Pocky": {"zh": "百奇"},
}  # fmt: skip
SCORED = pl.Struct({"metric": pl.String, "of": pl.Struct({"kernel": pl.String, "labels": pl.String})})
WORDS = """
prompts:
  zh:
    verified: {by: Li, on: 2026-11-20}
    artifact: "{name}的照片，一道{country}菜"
    underspecified: [传统食物的图片]
  sw:
    verified: {by: Amani, on: 2026-11-20}
    artifact: "Picha ya {name}, chakula cha {country}"
    underspecified: [Picha ya chakula cha jadi]
"""
RECIPE = """
recipe: cube
dump: [dump.json]
ingest: {languages: [en, zh-hans]}
concepts: [food.yaml]
countries: [BR, IT, JP]
prompts: {kinds: [cube, underspecified], languages: [en, zh, sw]}
references: {backend: simulated, per_artifact: 2}
images: {kinds: [underspecified], slots: 4, repeats: 3}
models: [{name: broad, backend: simulated}]
scores: {size: 4}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose dump has labels of a few dishes in Chinese and Swahili."""
    root, lines = tmp_path_factory.mktemp("languages"), []
    for line in gzip.decompress(dump_files("sample")[0].read_bytes()).decode().splitlines(keepends=True):
        found = re.search(r'"labels":\{"en":\{"language":"en","value":"([^"]+)"\}', line)
        others = LABELS.get(found[1], {}) if found else {}
        more = "".join(f',"{code}":{{"language":"{code}","value":"{name}"}}' for code, name in others.items())
        lines.append(line[: found.end()] + more + line[found.end() :] if found else line)
    (root / "dump.json").write_text("".join(lines), encoding="utf-8")
    (root / "food.yaml").write_text(concept_path("cuisine").read_text("utf-8") + WORDS, "utf-8")
    (root / "run.yaml").write_text(RECIPE, "utf-8")
    ended = culturekit("run", "run.yaml", cwd=root)
    assert ended.returncode == 0, ended.stderr
    return root / "runs/run"


@pytest.mark.endtoend
def test_names_come_from_wikidata_and_cldr_and_fall_back_in_sight(folder: Path) -> None:
    prompts = pl.read_parquet(folder / "prompts/prompts.parquet")
    texts = dict(prompts.filter(kind="cube").select("text", "marks").iter_rows())
    assert texts["涮涮锅的照片，一道日本菜"] == ["name from Wikidata", "country from CLDR"]
    assert texts["巴西烤肉的照片，一道巴西菜"] == ["name from Wikidata", "country from CLDR"]
    assert texts["Picha ya churrasco, chakula cha Brazili"] == ["name in English", "country from CLDR"]
    assert texts["A high resolution image of churrasco from Brazilian cuisine, realistic"] == []
    sizes = dict(prompts.group_by("language").len().iter_rows())
    assert len(set(sizes.values())) == 1, "every artifact is asked for in every language"
    manifest = manifest_of(folder / "prompts")
    unverified = manifest.notes["unverified"]
    assert unverified["zh: name from Wikidata"] + unverified["zh: name in English"] == sizes["zh"] - 1
    assert manifest.counts["name in English, asked in sw"] == unverified["sw: name in English"]
    assert "labels" in pl.read_parquet_schema(folder / "graph/items.parquet")


@pytest.mark.endtoend
def test_references_are_not_multiplied(folder: Path) -> None:
    artifacts = pl.read_parquet(folder / "cspace/cspace.parquet").height
    assert pl.read_parquet(folder / "references/images.parquet").height == 2 * artifacts


@pytest.mark.endtoend
def test_scores_are_by_language_with_their_difference_and_the_report_names_it(folder: Path) -> None:
    rows = pl.read_parquet(folder / "languages/scores.parquet").with_columns(p=pl.col("params").str.json_decode(SCORED))
    own = rows.unnest("p", separator="_").unnest("p_of", separator="_")
    own = own.filter(p_metric="vs", p_of_kernel="country", p_of_labels="mapped")
    means = dict(own.filter(metric="group_mean").select("group", "value").iter_rows())
    gaps = own.filter(metric="group_gap")
    assert set(means) == {"en", "sw", "zh"}
    for pair, value, params in gaps.select("group", "value", "params").iter_rows():
        first, second = pair.split(" - ")
        assert value == pytest.approx(means[first] - means[second])
        assert (json.loads(params)["paired"], json.loads(params)["prompts"]) == (True, 1)
    values = pl.read_parquet(folder / "scores/values.parquet").filter(metric="vs")
    of = pl.read_parquet(folder / "prompts/prompts.parquet").select("prompt_id", "language")
    chinese = values.join(of, on="prompt_id").filter(
        pl.col("params").str.json_path_match("$.kernel") == "country",
        pl.col("params").str.json_path_match("$.labels") == "mapped", language="zh",
    )  # fmt: skip
    assert means["zh"] == pytest.approx(chinese["value"].mean())
    page = (folder / "report/report.html").read_text("utf-8")
    assert "Does the language of the prompt matter?" in page
    assert "Swahili, name in English in" in page
    verified = culturekit("verify", folder, cwd=folder.parents[1])
    assert verified.returncode == 0, verified.stdout
