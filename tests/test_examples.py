"""The packages under `examples/`: installed, listed, scored, in a recipe, reported and verified."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.plugins import digest_of_code
from culturekit.core.schemas import MATCHES, PROMPTS
from culturekit.core.tables import write_table
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.outside_packages import EXAMPLES, PLUGINS, forget, install, write_metadata
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


RECIPE = """
recipe: geodiv
seed: 7
entities: [house, car]
countries: [IN, JP, US]
images: {slots: 6}
models:
  - {name: first, backend: flags}
  - {name: second, backend: flags}
judge: watcher
"""
JUDGE = '''
"""A vision model that answers by the colour of the image."""

import json

from culturekit.extend import Reply, Request


class Watcher:
    model = "watcher-1"
    caveat = "The watcher sees one number."

    def ask(self, request: Request) -> Reply:
        print("the watcher speaks")
        seen = int(str(request.data["id"])[:6], 16)
        answers = request.data["answers"]
        if isinstance(answers[0], str):
            return Reply(json.dumps({"id": request.data["id"], "choice": answers[seen % len(answers)]}))
        return Reply(json.dumps({"id": request.data["id"], "value": 1 + seen % 5}))


def make(spec):
    return Watcher()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, and one with the package as pip would install it."""
    root = tmp_path_factory.mktemp("outside")
    site = root / "site"
    shutil.copytree(EXAMPLES / "geodiv/geodiv", site / "geodiv")
    shutil.copy(PLUGINS / "flags.py", site)
    (site / "watcher.py").write_text(JUDGE, "utf-8")
    write_metadata(site, "geodiv", "2.0", {"culturekit.plugins": {
        "metric.geodiv": "geodiv.family:geodiv", "recipe.geodiv": "geodiv.recipe:GEODIV",
    }})  # fmt: skip
    write_metadata(site, "flags", "1.0", {"culturekit.plugins": {"backend.flags": "flags:make"}})
    write_metadata(site, "watcher", "1.0", {"culturekit.plugins": {"judge.watcher": "watcher:make"}})
    (root / "geo.yaml").write_text(RECIPE, "utf-8")
    return root


def command(folder: Path, *words: str, code: int = 0, site: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, with the packages or without."""
    paths = [*([str(folder / "site")] if site else []), *filter(None, sys.path)]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    called = [sys.executable, "-m", "culturekit", *words]
    ended = subprocess.run(called, cwd=folder, env=given, capture_output=True, text=True, check=False)
    assert ended.returncode == code, (words, ended.stdout[-2000:], ended.stderr[-2000:])
    return ended


@pytest.mark.endtoend
def test_a_benchmark_of_another_package_is_as_whole_as_ours(folder: Path) -> None:
    planned = json.loads(command(folder, "plan", "geo.yaml", "--json").stdout)
    names = ["prompts", "images-first", "answers-first", "images-second", "answers-second", "geodiv"]
    assert [step["name"] for step in planned] == names
    done = json.loads(command(folder, "run", "geo.yaml", "--json", "--workers", "1").stdout)
    assert [stage["state"] for stage in done["stages"]] == ["built"] * 6, "what the judge prints is no data"
    again = json.loads(command(folder, "run", "geo.yaml", "--json").stdout)
    assert [stage["state"] for stage in again["stages"]] == ["reused"] * 6
    scores = pl.read_parquet(folder / "runs/geo/geodiv/scores.parquet")
    assert scores.height == 4 * 2 * (1 + 3)

    command(folder, "report", "runs/geo", "--out", "page")
    page = (folder / "page/report.html").read_text("utf-8")
    for words in ("Affluence that images show", "Diversity of backgrounds", "India", 'src="thumbnails/'):
        assert words in page
    command(folder, "site", "runs/geo", "--out", "site-of-it")
    assert "Affluence that images show" in "".join(
        path.read_text("utf-8") for path in (folder / "site-of-it/models").glob("*.html")
    )
    assert list((folder / "site-of-it/every-eval-ever").rglob("*.json"))

    walked = command(folder, "trace", "runs/geo?metric=geodiv_entity&model=first&country=IN").stdout
    assert "-IN/" in walked
    assert (
        "no stage of this run maps the images of first" in command(folder, "audit", "plan", "runs/geo", code=2).stderr
    )
    compared = ("score", "compare", "--values", "runs/geo/geodiv/values.parquet", "--out", "compared")
    command(folder, *compared)
    assert pl.read_parquet(folder / "compared/scores.parquet").height

    verdict = json.loads(command(folder, "verify", "runs/geo", "--json").stdout)
    assert verdict["findings"] == []
    missing = command(folder, "verify", "runs/geo", code=1, site=False)
    assert "the package geodiv 2.0 (recipe.geodiv)" in missing.stdout
    command(folder, "report", "runs/geo", "--out", "elsewhere", code=2, site=False)


@pytest.mark.endtoend
def test_the_numbers_are_those_of_the_method(folder: Path) -> None:
    command(folder, "run", "geo.yaml", "--workers", "1")
    root = folder / "runs/geo"
    scores = pl.read_parquet(root / "geodiv/scores.parquet")
    said = pl.read_parquet(root / "answers-first/judgments.parquet").join(
        pl.read_parquet(root / "images-first/images.parquet").select("image_id", "prompt_id", "country"),
        on="image_id", suffix="_made",
    )  # fmt: skip
    of_prompts = said.filter(task="affluence").group_by("prompt_id").agg(pl.col("value").mean())["value"]
    (row,) = scores.filter(pl.col("country").is_null(), metric="geodiv_affluence", model="first").to_dicts()
    assert row["value"] == pytest.approx(of_prompts.mean())
    allowed = {"place": 4, "weather": 5}
    found = []
    for _, cell in said.filter(task="background").group_by("prompt_id", "item"):
        shares = [count / cell.height for count in cell["choice"].value_counts()["count"]]
        product = 1.0
        for share in shares:
            product *= share**-share
        found.append((product - 1) / (allowed[cell["item"][0]] - 1))
    (row,) = scores.filter(pl.col("country").is_null(), metric="geodiv_background", model="first").to_dicts()
    assert row["value"] == pytest.approx(sum(found) / len(found))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield install(EXAMPLES / "evenness", tmp_path / "site", monkeypatch)
    forget("evenness")


def scored_by_evenness(matches: Path, out: Path) -> Path:
    culturekit("score", "evenness", "--matches", matches, "--level", "continent", "--out", out, "--json", ends=0)
    return out


def verdicts_on(folder: Path) -> tuple[int, dict[str, int]]:
    answer = culturekit("verify", folder, "--json")
    return answer.returncode, json.loads(answer.stdout)["verdicts"]


@pytest.mark.usefixtures("package")
def test_it_stands_among_the_metrics_and_the_commands() -> None:
    assert "entropy of the answers" in culturekit("metrics", "show", "evenness_entropy").stdout
    assert "evenness" in culturekit("score", "--help").stdout
    shown = culturekit("score", "evenness", "--help").stdout
    assert "Column of matches that says what is shown." in shown
    assert "Example: culturekit score evenness --matches" in " ".join(shown.split())
    assert culturekit("score", "evenness", "--matches", "m", "--confidence", "7", "--out", "o").returncode == 2


def test_without_a_version_its_code_is_named(small_run: Path, tmp_path: Path, package: Path) -> None:
    (package / "__init__.py").write_text("")
    folder = scored_by_evenness(next(small_run.glob("matches-*/matches.parquet")), tmp_path / "scores")
    options = read_json(folder / "manifest.json")["options"]
    assert options["metric_plugin"] == {"code": digest_of_code("evenness.family")}


def test_where_its_package_is_gone_it_is_not_verifiable(small_run: Path, tmp_path: Path, package: Path) -> None:
    folder = scored_by_evenness(next(small_run.glob("matches-*/matches.parquet")), tmp_path / "scores")
    (package.parent / "evenness-1.0.dist-info/entry_points.txt").write_text("")
    answer = culturekit("verify", folder, ends=1)
    assert "scores: not verifiable here: neither a recipe nor its options say how it was made" in answer.stdout
    assert set(verdicts_on(folder)[1]) == {"not verifiable"}


WRONG = {
    "evenness = 3\n": "is something else than its kind; expected Family, found int",
    "OTHER = 3\n": "cannot be imported: AttributeError",
    "import nowhere_to_be_found\n": "needs the package nowhere_to_be_found, which is not installed",
    "raise RuntimeError('not on this machine')\n": "cannot be imported: RuntimeError: not on this machine",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_package_that_is_wrong_breaks_only_what_names_it(package: Path, text: str) -> None:
    (package / "family.py").write_text(text)
    for words in (("metrics", "list"), ("metrics", "show", "vs"), ("score", "--help")):
        answer = culturekit(*words, ends=0)
        assert "evenness is left out" in answer.stderr
        assert WRONG[text] in " ".join(answer.stderr.split())
    assert "audit-sample" in answer.stdout
    answer = culturekit("score", "evenness", "--help")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert WRONG[text] in " ".join(answer.stderr.split())
    assert "evenness.family:evenness" in answer.stderr
    answer = culturekit("score", "spread", "--help")
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize(("old", "new", "said"), [
    ('Annotated[Files, Field(description="Table of matches; repeat it for more than one.")]', "Files",
     "answers what it reads with something else; "
     "expected Annotated[..., Field(description=...)] of each, found evenness.matches without"),
    ('name="evenness_entropy"', 'name="qvs"', "two metrics have one name"),
])  # fmt: skip
def test_a_metric_without_descriptions_or_of_anothers_name_is_named(
    package: Path, old: str, new: str, said: str
) -> None:
    text = (package / "family.py").read_text()
    assert old in text
    (package / "family.py").write_text(text.replace(old, new))
    for words, code in ((("metrics", "list"), 0), (("score", "evenness", "--help"), 2)):
        answer = culturekit(*words)
        assert (answer.returncode, said in " ".join(answer.stderr.split())) == (code, True), answer.stderr


@pytest.mark.parametrize("spec", ["nowhere:KIND", "evenness.family:NONE", "evenness.family:evenness"])
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_kind_of_recipe_that_is_wrong_is_said_to_be(package: Path, tmp_path: Path, spec: str, command: str) -> None:
    points = package.parent / "evenness-1.0.dist-info/entry_points.txt"
    points.write_text(f"[culturekit.plugins]\nkind of recipe.theirs = {spec}\n")
    (tmp_path / "recipe.yaml").write_text("recipe: theirs\n")
    words = ["--workdir", str(tmp_path / "run")] if command == "run" else []
    assert spec in culturekit(command, tmp_path / "recipe.yaml", *words, ends=2).stderr


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + "metrics:\n  evenness: {level: continent}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("stated", "problem"), [
    ("evenness: {level: city}", "evenness: an option is wrong"),
    ("evenness: {least: 2}", "there is no such option; expected confidence or level, found least"),
    ("evennes: {}", "Did you mean 'evenness'?"),
    ("c3: {}", "c3 cannot be scored in a recipe"),
    ("pairs: {}", "pairs cannot be scored in a recipe"),
    ("gaps: {}", "scheme: Field required"),
    ("within: {q: -1}", "q must be a number above 0"),
    ("within: {confidence: 7}", "confidence must be between 0 and 1"),
    ("within: {size: 1}", "size: Input should be greater than or equal to 2"),
    ("qvs: {size: 1}", "size: Input should be greater than or equal to 2"),
    ("spread: {}", "spread cannot be scored in a recipe: nothing says how unlike the images are"),
    ("meta: {}", "meta cannot be scored in a recipe: quality and matches are held against annotations"),
    ("questions: {by: [[city]]}", "by must be levels of region, country, concept"),
    ("questions: {means: {}}", "expected by or denominator or groups or scheme or target, found means"),
])  # fmt: skip
@pytest.mark.usefixtures("package")
def test_what_a_recipe_cannot_name_is_said_when_it_is_read(recipe: Path, stated: str, problem: str) -> None:
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("evenness: {level: continent}", stated), encoding="utf-8")
    assert problem in " ".join(culturekit("plan", recipe, ends=2).stderr.split())
