"""`culturekit score compare | gaps | meta | agreement`, run on small tables from end to end."""

import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.lineage import manifest_of
from culturekit.core.schemas import ANNOTATIONS, JUDGMENTS, SCORES, VALUES
from culturekit.core.tables import read_table, write_table
from tests.command_line import culturekit
from tests.scores.value_tables import annotations, judgments, values


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Values of two models in a file each, ratings of their items, and a judge's verdicts."""
    folder = tmp_path_factory.mktemp("tables")
    both = values()
    for model in ("m1", "m2"):
        (folder / model).mkdir()
        write_table(folder / model, VALUES, both.filter(pl.col("model") == model))
    items = {item: 1 + 3 * min(value, 1.3) for item, value in both.select("item", "value").iter_rows()}
    write_table(folder, ANNOTATIONS, annotations(items))
    write_table(folder, JUDGMENTS, judgments(items))
    return folder


def run(*words: str) -> dict[str, object]:
    return dict(json.loads(culturekit("score", *words, "--json", ends=0).stdout))


def test_compare_reads_a_file_per_model(tables: Path, tmp_path: Path) -> None:
    words = ["--values", str(tables / "m1/values.parquet"), "--values", str(tables / "m2/values.parquet")]
    told = run("compare", *words, "--resamples", "199", "--out", str(tmp_path / "out"))
    scores = read_table(tmp_path / "out/scores.parquet", SCORES)
    assert told["counts"] == {"scores": 7, "values": 72}
    assert set(scores["metric"]) == {"model_difference"}
    assert read_table(tmp_path / "out/values.parquet", VALUES).height == 72
    manifest = manifest_of(tmp_path / "out")
    assert manifest.seeds == {"permutations": 0}
    assert run("compare", *words, "--resamples", "199", "--out", str(tmp_path / "out"))["state"] == "reused"
    again = run("compare", *reversed_pairs(words), "--resamples", "199", "--out", str(tmp_path / "again"))
    assert again["counts"] == told["counts"]
    assert read_table(tmp_path / "again/scores.parquet", SCORES).equals(scores)


def reversed_pairs(words: list[str]) -> list[str]:
    return [*words[2:], *words[:2]]


def test_gaps_by_a_shipped_scheme_and_by_ones_own(tables: Path, tmp_path: Path) -> None:
    file = str(tables / "m1/values.parquet")
    told = run("gaps", "--values", file, "--scheme", "cultivate", "--out", str(tmp_path / "out"))
    scores = read_table(tmp_path / "out/scores.parquet", SCORES)
    assert told["drops"] == {"in_no_group": 12}
    assert scores["group"].to_list() == ["GN - GS"]
    assert scores["value"][0] == pytest.approx(0.6, abs=0.1)
    (tmp_path / "own.yaml").write_text("own:\n  one: [DE, IN]\n  two: [JP, NG]\n", encoding="utf-8")
    words = ["--scheme", "own", "--groups", str(tmp_path / "own.yaml"), "--target", "these"]
    run("gaps", "--values", file, *words, "--out", str(tmp_path / "own"))
    own = read_table(tmp_path / "own/scores.parquet", SCORES)
    assert own["group"].to_list() == ["one - two"]
    assert json.loads(own["params"][0])["scheme"] == "own"
    refused = culturekit("score", "gaps", "--values", file, "--scheme", "group", "--out", tmp_path / "group", ends=2)
    assert "expected values with a group" in refused.stderr


def test_agreement_with_a_judge(tables: Path, tmp_path: Path) -> None:
    words = ["--annotations", str(tables / "annotations.parquet"), "--judgments", str(tables / "judgments.parquet")]
    run("agreement", *words, "--resamples", "99", "--level", "interval", "--out", str(tmp_path / "out"))
    scores = read_table(tmp_path / "out/scores.parquet", SCORES)
    assert set(scores["metric"]) == {
        "krippendorff_alpha", "fleiss_kappa", "pairwise_agreement", "unanimous_agreement", "pool_difference",
        "pool_correlation", "judge_bias", "judge_agreement",
    }  # fmt: skip
    assert set(scores.filter(pl.col("metric") == "fleiss_kappa")["group"]) == {"IN", "DE"}
    run("agreement", *words[:2], "--resamples", "99", "--pools", "in-region", "--out", str(tmp_path / "place"))
    place = read_table(tmp_path / "place/scores.parquet", SCORES)
    assert "in-region - out-of-region" in place["group"].to_list()


def test_meta_against_people(tables: Path, tmp_path: Path) -> None:
    words = ["--values", str(tables / "m1/values.parquet"), "--values", str(tables / "m2/values.parquet")]
    people = ["--annotations", str(tables / "annotations.parquet")]
    options = ["--method", "spearman", "--scheme", "cultivate", "--resamples", "99", "--seed", "3"]
    run("meta", *words, *people, *options, "--out", str(tmp_path / "out"))
    scores = read_table(tmp_path / "out/scores.parquet", SCORES)
    assert set(scores["model"]) == {"m1", "m2", "all"}
    assert set(scores["group"]) == {None, "GN", "GS"}
    assert scores.filter(pl.col("group").is_null())["value"].min() > 0.3  # type: ignore[operator]
    human = ["--human", str(tables / "m1/values.parquet")]
    run("meta", *words[:2], *human, "--method", "kendall", "--resamples", "99", "--out", str(tmp_path / "same"))
    same = read_table(tmp_path / "same/scores.parquet", SCORES)
    assert same["value"].to_list() == pytest.approx([1.0])
    refused = culturekit("score", "meta", *words[:2], *human, "--method", "cosine", "--out", tmp_path / "no", ends=2)
    assert "method must be 'spearman' or 'kendall' or 'pearson'; found 'cosine'" in refused.stderr
