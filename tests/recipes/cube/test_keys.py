"""Keys of a recipe `cube`: what is refused, published spaces, and languages of prompts."""

import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.checks import dump_files
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.inputs import manifest_of
from culturekit.kg.concepts import concept_path
from culturekit.llm.answers import LlmOptions
from culturekit.recipes.cube.keys import load_recipe
from tests.command_line import culturekit
from tests.conftest import SMALL, stages_of


def test_tags_say_who_looks_at_how_many_and_what_that_may_cost() -> None:
    recipe = load_recipe(SMALL, ["tags.judge=openai:seer-1?price=1/2", "tags.images=40", "tags.budget=5"])
    assert recipe.tags is not None
    assert (recipe.tags.images, recipe.tags.options()) == (40, LlmOptions(5.0, 16, False))
    assert load_recipe(SMALL, ["tags.judge=openai:seer-1"]).tags.images == "all"  # type: ignore[union-attr]
    assert load_recipe(SMALL).tags is None


def test_a_second_instrument_is_an_input_of_the_scores(tmp_path: Path) -> None:
    two = ["audit.second=two", "instruments=[{name: two, encoder: 'transformers:clip', channel: both}]"]
    scores = next(stage for stage in stages_of(load_recipe(SMALL, two), tmp_path) if stage.name == "scores")
    assert {role for role in scores.inputs if role.startswith("matches-broad")} == {
        "matches-broad", "matches-broad-by-two",
    }  # fmt: skip
    alone = next(
        stage for stage in stages_of(load_recipe(SMALL, ["audit.images=50"]), tmp_path) if stage.name == "scores"
    )
    assert "matches-broad-by-two" not in alone.inputs


def test_gaps_come_after_what_is_scored_within_countries(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["gaps.scheme=cultivate", "within.repeats=2"])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert stages["gaps"].inputs == {"values-0": tmp_path / "within/values.parquet"}
    assert "gaps" in stages["report"].inputs
    assert list(stages).index("within") < list(stages).index("gaps") < list(stages).index("report")
    with pytest.raises(UsageError, match="no scheme 'hemispheres'"):
        stages_of(load_recipe(SMALL, ["gaps.scheme=hemispheres", "within.repeats=2"]), tmp_path)


CANARY = "canary7f3a9d21"
SHAPED = "sk-canary7f3a9d21canary7f3a9d21"
LINES = len(SMALL.read_text(encoding="utf-8").splitlines())


def said(tail: str, tmp_path: Path, *settings: str) -> str:
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + tail, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, settings)
    shown = f"{caught.value}{caught.value!r}{caught.value.problems!r}{caught.value.__context__!r}"
    assert "canary" not in shown
    return str(caught.value).replace(str(path), "recipe.yaml")


WAYS = [
    f"judge: openai:m?api_key={CANARY}\n", f"judge: 'openai:m?temperature=0&api_key={CANARY}'\n",
    f"judge: openai:m?api%5Fkey={SHAPED}\n", f"judge: openai:m?api_key=%63{CANARY}\n", f"judge: openai:{SHAPED}\n",
    f"judge: {SHAPED}\n", f"judge: openai:m?base_url=http://jane:{CANARY}@host/v1\n",
    f"judge: openai:m?base_url=http%3A%2F%2Fjane%3A{CANARY}%40host/v1\n",
    f"judge: openai:m?base_url=https://host/v1?key={CANARY}\n", f"judge: openai:m?token={CANARY}\n",
    f"judge: openai:m?header=Authorization:%20Bearer%20{CANARY}\n", f"judge:\n  api_key: {CANARY}\n",
    f"api_key: {CANARY}\n", f"api_key: [{CANARY}]\n", f"openai_api_key: &key {CANARY}\njudge: *key\n", f"{SHAPED}: 1\n",
    f"judge: >\n  openai:m?api_key={CANARY}\n", f"quality: {SHAPED}\n",
]  # fmt: skip


@pytest.mark.parametrize("tail", WAYS)
def test_a_key_that_is_written_out_is_refused_with_its_line_and_never_repeated(tail: str, tmp_path: Path) -> None:
    message = said(tail, tmp_path)
    assert message.startswith("recipe.yaml:")
    assert "a key is written out here; write api_key=${NAME}" in message
    assert int(message.split(":")[1]) > LINES


def test_a_key_set_on_the_command_line_is_refused_too(tmp_path: Path) -> None:
    assert said("", tmp_path, f"judge=openai:m?api_key={CANARY}").startswith("--set judge: judge: a key is written out")
    assert said("", tmp_path, f"api_key={CANARY}").startswith("--set api_key: api_key: a key is written out")
    assert said("", tmp_path, SHAPED) == "--set: expected key=value, found '[key]'"
    assert "given twice" in said(f"judge: rules\njudge: {SHAPED}\n", tmp_path)


def test_the_name_of_a_key_stays_unexpanded_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + "judge: rules?api_key=${MY_KEY}\n", encoding="utf-8")
    assert load_recipe(path).judge == "rules?api_key=${MY_KEY}"


@pytest.mark.parametrize("judge", ["rules?base_url=${HOME}", "${HOME}", "rules:${HOME}", "rules?api_key=${A}&b=${B}"])
def test_anything_else_from_the_environment_is_a_problem_with_its_line(judge: str, tmp_path: Path) -> None:
    message = said(f"judge: {judge}\n", tmp_path)
    assert f"recipe.yaml:{LINES + 1}: judge: " in message
    assert "only api_key=${NAME}" in message


PLAIN = """recipe: cube
cspace: space.json
prompts: {file: space.json}
references: {backend: "folder:pictures"}
images: {kinds: [cube]}
models: [{name: one, backend: "folder:pictures"}]
scores: {size: 2}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where a space and pictures lie."""
    (tmp_path / "space.json").write_text("[]")
    (tmp_path / "pictures").mkdir()
    monkeypatch.chdir(tmp_path)


def problems(text: str) -> str:
    Path("recipe.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_recipe(Path("recipe.yaml"))
    return str(error.value)


def test_a_published_space_needs_no_dump() -> None:
    Path("recipe.yaml").write_text(PLAIN.replace("[cube]", "[cube], slots: 8"), encoding="utf-8")
    recipe = load_recipe(Path("recipe.yaml"))
    assert (recipe.cspace, recipe.prompts.file, recipe.dump) == ("space.json", "space.json", ())
    without = PLAIN.replace("cspace: space.json\n", "")
    assert "give dump and concepts to make one, or cspace: FILE, one that was published" in problems(without)
    assert "concepts is missing" in problems(f"{without}dump: [sample]\n")


@pytest.mark.parametrize(
    "key", ["dump: [sample]", "concepts: [art]", "judge: rules", "countries: [NO]", "release: [csv]", "include: review"]
)
def test_what_would_decide_nothing_beside_a_published_space_is_refused(key: str) -> None:
    name = key.partition(":")[0]
    assert f"cspace is taken as it was published, so {name} would decide nothing" in problems(f"{PLAIN}{key}\n")


def test_a_file_of_prompts_stands_alone() -> None:
    said = problems(PLAIN.replace("{file: space.json}", "{file: space.json, kinds: [underspecified], per: 3}"))
    assert "file takes prompts as they are, so kinds, per would decide nothing" in said
    assert "there is no file 'none.json'" in problems(PLAIN.replace("{file: space.json}", "{file: none.json}"))
    assert "beside it are space.json" in problems(PLAIN.replace("{file: space.json}", "{file: none.json}"))


def test_without_references_artifacts_are_known_by_name_or_not_at_all() -> None:
    without = PLAIN.replace('references: {backend: "folder:pictures"}\n', "").replace("[cube]", "[cube], slots: 8")
    assert "references is missing: embedded knows artifacts by pictures only" in problems(without)
    Path("recipe.yaml").write_text(f"{without}encoder: transformers:clip\n", encoding="utf-8")
    assert load_recipe(Path("recipe.yaml")).references is None
    assert "diagnosis looks at how references" in problems(f"{without}encoder: transformers:clip\ndiagnosis: {{}}\n")
    other = "instruments: [{name: two, encoder: transformers:clip, channel: both}]\n"
    assert "the instruments two need references" in problems(f"{without}encoder: transformers:clip\n{other}")


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
    artifacts = pl.read_parquet(folder / "cspace/cspace.parquet").height
    assert pl.read_parquet(folder / "references/images.parquet").height == 2 * artifacts, "of one language"


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
