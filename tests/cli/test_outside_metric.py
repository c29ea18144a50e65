"""A metric of another package: listed, run by a command, and recomputed by its own check."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from culturekit.core.plugins import digest_of_code
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.outside_packages import EXAMPLES, forget, install
from tests.verify.forging import read_json


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield install(EXAMPLES / "evenness", tmp_path / "site", monkeypatch)
    forget("evenness")


def scored(matches: Path, out: Path) -> Path:
    culturekit("score", "evenness", "--matches", matches, "--level", "continent", "--out", out, "--json", ends=0)
    return out


def verified(folder: Path) -> tuple[int, dict[str, int]]:
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
    folder = scored(next(small_run.glob("matches-*/matches.parquet")), tmp_path / "scores")
    options = read_json(folder / "manifest.json")["options"]
    assert options["metric_plugin"] == {"code": digest_of_code("evenness.family")}


def test_where_its_package_is_gone_it_is_not_verifiable(small_run: Path, tmp_path: Path, package: Path) -> None:
    folder = scored(next(small_run.glob("matches-*/matches.parquet")), tmp_path / "scores")
    (package.parent / "evenness-1.0.dist-info/entry_points.txt").write_text("")
    answer = culturekit("verify", folder, ends=1)
    assert "scores: not verifiable here: neither a recipe nor its options say how it was made" in answer.stdout
    assert set(verified(folder)[1]) == {"not verifiable"}


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


def test_a_metric_that_does_not_describe_what_it_reads_is_named(package: Path) -> None:
    text, described = (package / "family.py").read_text(), 'Annotated[Files, Field(description="Table of matches; '
    (package / "family.py").write_text(text.replace(f'{described}repeat it for more than one.")]', "Files"))
    answer = culturekit("score", "evenness", "--help")
    assert (answer.returncode, "answers what it reads with something else" in answer.stderr) == (2, True)
    assert "expected Annotated[..., Field(description=...)] of each, found evenness.matches without" in answer.stderr


def test_no_two_metrics_have_one_name(package: Path) -> None:
    text = (package / "family.py").read_text()
    (package / "family.py").write_text(text.replace('name="evenness_entropy"', 'name="qvs"'))
    answer = culturekit("metrics", "list")
    assert (answer.returncode, "two metrics have one name" in answer.stderr) == (0, True)
    answer = culturekit("score", "evenness", "--help")
    assert (answer.returncode, "two metrics have one name" in answer.stderr) == (2, True)


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
