"""The packages under `examples/`: installed, listed, scored, in a recipe, reported and verified."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import MATCHES, PROMPTS
from culturekit.core.tables import write_table
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.outside_packages import EXAMPLES, forget, install
from tests.verify.forging import change_table, read_json, reseal

METRICS = {"cure": ["cure_gain", "cure_told"], "evenness": ["evenness_entropy"]}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in METRICS:
        install(EXAMPLES / name, tmp_path / f"site-{name}", monkeypatch)
    yield
    forget(*METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_an_example_is_short(name: str) -> None:
    paths = [path for path in (EXAMPLES / name).rglob("*") if path.suffix in {".py", ".toml"}]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths) <= 200


@pytest.mark.usefixtures("installed")
def test_they_are_listed_and_described() -> None:
    listed = json.loads(culturekit("plugins", "--json").stdout)
    assert [(one["kind"], one["name"], one["version"], one["problem"]) for one in listed] == [
        (kind, name, "1.0", "") for kind, name in [("metric", "cure"), ("metric", "evenness")]
    ]
    assert {metric for names in METRICS.values() for metric in names} <= set(
        json.loads(culturekit("metrics", "list", "--json").stdout)
    )


def matches(path: Path, shown: dict[str, list[list[str]]]) -> Path:
    """Write matches of a model: for each prompt the countries of its images, eight of them or fewer; none is unsure."""
    rows = [
        {
            "image_id": f"{prompt}-{place}", "model": "m", "prompt_id": prompt, "concept": "art", "repeat": place // 2,
            "slot": place % 2, "rank": 1, "artifact_id": "Q1", "artifact": "a", "country": (countries or ["XX"])[0],
            "countries": countries, "continent": "c", "score": 1.0, "margin": 1.0, "country_margin": 1.0,
            "abstained": not countries, "method": "nearest",
        }
        for prompt, images in shown.items()
        for place, countries in enumerate(images)
    ]  # fmt: skip
    path.mkdir()
    return write_table(path, MATCHES, pl.DataFrame(rows, schema=MATCHES.schema))


def scored(folder: Path, *words: str | Path) -> pl.DataFrame:
    """Run a command, and verify what it wrote."""
    culturekit("score", *words, "--out", folder, ends=0)
    rows = pl.read_parquet(folder / "scores.parquet")
    verdicts = culturekit("verify", folder, "--json")
    assert (verdicts.returncode, json.loads(verdicts.stdout)["verdicts"]) == (0, {"verified": rows.height})
    return rows


@pytest.mark.usefixtures("installed")
def test_entropy_by_hand(tmp_path: Path) -> None:
    table = matches(tmp_path / "m", {"p": [["BR"], ["IN"], ["BR"], ["BR"]], "q": [["FR"], ["IN"], ["FR"], []]})
    (row,) = scored(tmp_path / "out", "evenness", "--matches", table).to_dicts()
    assert row["value"] == pytest.approx((math.log(2) / math.log(3) / 2 + math.log(2) / math.log(3) / 2) / 2)
    assert (row["n"], json.loads(row["params"])) == (7, {"labels": 3, "level": "country"})
    manifest = read_json(tmp_path / "out/manifest.json")
    assert manifest["options"]["metric_plugin"] == {"version": "1.0"}
    assert manifest["drops"] == {"images that show nothing for sure": 1}
    one = scored(tmp_path / "one", "evenness", "--matches", table, "--level", "continent")
    assert one["value"].to_list() == [0.0]


@pytest.mark.usefixtures("installed")
def test_gains_by_hand(tmp_path: Path) -> None:
    prompts = {"b": "BR", "i": "IN", "none": None}
    common = {"text": "t", "benchmark": "b", "kind": "k", "concept": "art", "language": "en", "template_id": "t"}
    rows = [{**common, "prompt_id": prompt, "country": country} for prompt, country in prompts.items()]
    listing = write_table(tmp_path, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))
    table = matches(
        tmp_path / "m",
        {"b": [["BR"], ["PT", "BR"], ["IN"], []], "i": [["IN"], ["IN"]], "none": [["IN"], ["FR"], ["BR"], ["IN"]]},
    )
    found = scored(tmp_path / "out", "cure", "--matches", table, "--prompts", listing)
    assert dict(found.select("metric", "value").iter_rows()) == pytest.approx(
        {"cure_told": (0.5 + 1) / 2, "cure_gain": ((0.5 - 0.25) + (1 - 0.5)) / 2}
    )
    change_table(tmp_path / "out/scores.parquet", lambda scores: scores.with_columns(value=pl.col("value") / 2))
    reseal(tmp_path / "out")
    wrong = culturekit("verify", tmp_path / "out", "--json")
    assert (wrong.returncode, json.loads(wrong.stdout)["verdicts"]) == (4, {"wrong": 2})


@pytest.mark.usefixtures("installed")
def test_nothing_to_compare_is_said(tmp_path: Path, small_run: Path) -> None:
    table = next(small_run.glob("matches-*/matches.parquet"))
    words = ("score", "cure", "--matches", table, "--prompts", small_run / "prompts/prompts.parquet")
    answer = culturekit(*words, "--out", tmp_path / "out", ends=2)
    assert "expected images of prompts that name a country, and of some that name none" in " ".join(
        answer.stderr.split()
    )


@pytest.mark.endtoend
@pytest.mark.usefixtures("installed")
def test_a_recipe_scores_reports_and_verifies_them(tmp_path: Path, run_copy: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    kinds, more = "kinds: [underspecified], slots: 8, repeats: 3", "kinds: [underspecified, within-country], slots: 2"
    text = SMALL.read_text(encoding="utf-8")
    assert kinds in text
    text = text.replace(kinds, more)
    recipe.write_text(
        f"{text}scores: {{size: 2}}\nmetrics:\n  evenness: {{level: continent}}\n  cure: {{}}\n", encoding="utf-8"
    )
    culturekit("run", recipe, "--workdir", run_copy, ends=0)
    page = (run_copy / "report/report.html").read_text(encoding="utf-8")
    verdicts = json.loads(culturekit("verify", run_copy, "--json").stdout)
    assert verdicts["exit_code"] == 0, "\n".join(f"{x}" for x in verdicts["findings"])
    for title, folder, count in (
        ("Evenness of what the images of a prompt show", "metric-evenness", 3),
        ("What naming a country adds", "metric-cure", 6),
    ):
        assert title in page
        of_it = [each["verdict"] for each in verdicts["scores"] if each["folder"] == folder]
        assert of_it == ["verified"] * count
    gains = pl.read_parquet(run_copy / "metric-cure/scores.parquet").filter(metric="cure_gain")
    by_model = dict(gains.select("model", "value").iter_rows())
    assert by_model["broad"] > by_model["empty"], "a model that paints nothing gains nothing by a name"
