"""Realism, faithfulness and the diagnosis of encoders in runs of `cube`."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import BudgetReached
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.planning import plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from culturekit.verify.verify_run import verify_run
from tests.conftest import SMALL, HeardProgress, recipe_here, stages_of
from tests.faults.seeing_model import sees
from tests.llm.server import RunningServer, running_server
from tests.verify.forging import change_table, reseal_all

FAITHFUL = """
faithfulness:
  questions: "{judge}"
  answers: "{judge}"
  vqascore: "{judge}"
  per_prompt: 6
llm: {{budget: {budget}}}
"""


def judge_of(server: RunningServer) -> str:
    """Name the model of a server."""
    return f"openai:seer-1?base_url={server.openai_url}&price=0.15/0.60"


@contextmanager
def judging_server() -> Iterator[RunningServer]:
    """Serve a model that sees."""
    with running_server(model=sees) as server:
        yield server


def faithful_recipe(folder: Path, judge: str, *, budget: float = 5.0) -> Recipe:
    """Write the small recipe with judges, and load it."""
    path = folder / "faithful.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + FAITHFUL.format(judge=judge, budget=budget), encoding="utf-8")
    return load_recipe(path)


def with_faithfulness(small_run: Path, folder: Path) -> Path:
    """Copy a finished run, to go on from there."""
    return Path(shutil.copytree(small_run, folder))


MORE = ["realism.encoder=embedded", "realism.fewest=20", "within.repeats=1", "diagnosis.floor_repeats=2"]
OWN = ("vectors-real", "vectors-broad", "realism", "spread", "within")


def go_on(root: Path, more: list[str], *, workers: int) -> dict[str, str]:
    with LocalEngine(workers) as engine:
        runs = run_recipe(load_recipe(SMALL, more), root, engine=engine, progress=HeardProgress())
    return {stage.name: stage.state for stage in runs}


@pytest.fixture(scope="module")
def wider(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run with realism and diversity within countries added."""
    root = tmp_path_factory.mktemp("realism") / "small"
    shutil.copytree(small_run, root)
    go_on(root, MORE, workers=2)
    return root


@pytest.fixture
def broken(wider: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(wider, tmp_path / "small"))


def table(root: Path, stage: str) -> pl.DataFrame:
    return pl.read_parquet(root / stage / "scores.parquet")


def told(frame: pl.DataFrame) -> list[dict[str, object]]:
    return [json.loads(text) for text in frame["params"]]


@pytest.mark.endtoend
def test_the_keys_add_folders_and_leave_the_others_as_they_were(small_run: Path, wider: Path) -> None:
    for path in sorted(small_run.glob("*/*.parquet")):
        assert digest_file(path) == digest_file(wider / path.relative_to(small_run)), path
    assert {path.name for path in wider.iterdir()} - {path.name for path in small_run.iterdir()} == {
        *OWN, "vectors-narrow", "vectors-empty",
        *(f"within-{kind}-{model}" for kind in ("images", "matches") for model in ("broad", "narrow", "empty")),
    }  # fmt: skip


def test_models_are_told_apart_by_what_each_number_can_see(wider: Path) -> None:
    realism, spread, within = (table(wider, stage) for stage in ("realism", "spread", "within"))
    whole = realism.filter(pl.col("concept").is_null())
    assert set(whole["model"]) == {"broad", "narrow", "empty"}
    frechet = {row["model"]: row["value"] for row in whole.filter(metric="frechet_distance").to_dicts()}
    assert frechet["broad"] < min(frechet["empty"], frechet["narrow"])
    precision = {row["model"]: row["value"] for row in whole.filter(metric="prdc_precision").to_dicts()}
    assert precision["empty"] < 0.5 < precision["narrow"]
    assert {one["called"] for one in told(whole.filter(metric="frechet_distance"))} == {"Fréchet distance on embedded"}
    cosine = {row["model"]: row["value"] for row in spread.to_dicts()}
    assert cosine["empty"] < cosine["broad"] < cosine["narrow"], "pictures of nothing look the most varied"
    means = {row["model"]: row["value"] for row in within.filter(pl.col("country").is_null()).to_dicts()}
    assert means["narrow"] == pytest.approx(1 / 8)
    assert means["narrow"] < means["broad"]
    assert within.drop_nulls("country").group_by("model").len()["len"].to_list() == [8, 8, 8]
    alike = [(one["n_fake"], one["references"], one["equal_seed"]) for one in told(
        realism.filter(metric="frechet_distance", concept="art"))]  # fmt: skip
    assert set(alike) == {(24, "balanced", 11)}


def test_the_report_has_the_section_with_n_extractor_and_cautions(wider: Path, small_run: Path) -> None:
    assert 'id="realism"' not in (small_run / "report/report.html").read_text(encoding="utf-8")
    page = (wider / "report/report.html").read_text(encoding="utf-8")
    section = page[page.index('<h2 id="realism">') :]
    section = section[: section.index("</section>")]
    for words in (
        "embedded is no Inception", "Fréchet distance on embedded", "24 images of each model", "drawn by seed 11",
        "What variety of looks misses", "mean cosine", "Diversity inside a country", "mean over countries", "Brazil",
        "Licence of the extractor: no weights", "By mean cosine",
    ):  # fmt: skip
        assert words in section, words
    assert "FID" not in section.replace("no FID and no KID", "")


def test_every_score_is_made_again(wider: Path) -> None:
    answer = verify_run(wider)
    assert answer.exit_code == 0, answer.findings
    found: dict[str, set[str]] = {}
    for verdict in answer.verdicts:
        if verdict.folder in OWN:
            found.setdefault(verdict.metric, set()).add(verdict.verdict)
    assert found["frechet_distance"] == found["mean_cosine"] == found["vs"] == {"verified"}
    assert found["prdc_coverage"] == found["kernel_distance"] == {"verified"}


@pytest.mark.slow
def test_one_worker_gives_the_same_bytes(wider: Path, small_run: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(small_run, tmp_path / "small"))
    go_on(root, MORE, workers=1)
    for stage in OWN:
        for path in sorted((wider / stage).iterdir()):
            if path.name != "run.json":
                assert digest_file(path) == digest_file(root / stage / path.name), path
    assert set(go_on(root, MORE, workers=1).values()) == {"reused"}


@pytest.mark.endtoend
def test_real_images_may_be_a_folder_of_pictures(wider: Path, broken: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "photos"
    pictures.mkdir()
    for number, path in enumerate(sorted((wider / "references").rglob("*.png"))[:30]):
        shutil.copyfile(path, pictures / f"{number}.png")
    states = go_on(broken, [*MORE, f"realism.real={pictures}"], workers=1)
    assert {name for name, state in states.items() if state != "reused"} == {
        "real", "vectors-real", "realism", "report",
    }  # fmt: skip
    found = table(broken, "realism")
    assert set(found["concept"]) == {None}
    assert {one["n_real"] for one in told(found)} == {30}
    page = (broken / "report/report.html").read_text(encoding="utf-8")
    assert "all that were given" in page
    same = go_on(broken, [*MORE, f"realism.real={wider / 'references'}"], workers=1)
    assert {name for name, state in same.items() if state != "reused"} == {"vectors-real", "realism", "report"}
    assert digest_file(broken / "realism/scores.parquet") == digest_file(wider / "realism/scores.parquet")


@pytest.mark.parametrize("key", ["within.repeats=1", "scores.within=country"])
def test_images_that_name_a_country_already_are_not_made_again(tmp_path: Path, key: str) -> None:
    recipe = load_recipe(SMALL, ["images.kinds=[underspecified, within-country]", key])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert not any(name.startswith("within-") for name in stages)
    assert stages["within"].inputs["matches-broad"] == tmp_path / "matches-broad/matches.parquet"
    assert stages["scores"].options["within"] == "none"


def test_inception_gives_features_and_its_own_probabilities(tmp_path: Path) -> None:
    weights = tmp_path / "fid.safetensors"
    weights.write_bytes(b"not looked at before it runs")
    recipe = load_recipe(SMALL, [f"realism.encoder=inception:{weights}?device=cpu"])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert "give=features" in str(stages["vectors-broad"].options["encoder"])
    beside = tmp_path / "vectors-broad"
    assert stages["realism"].inputs["probs-broad-vectors"] == beside / "probabilities.npy"
    assert stages["realism"].inputs["probs-broad-ids"] == beside / "ids.parquet"
    other = load_recipe(SMALL, [f"realism.classes=inception:{weights}"])
    apart = {stage.name: stage for stage in stages_of(other, tmp_path)}
    assert "embedded" in str(apart["vectors-broad"].options["encoder"])
    assert apart["realism"].inputs["probs-broad-vectors"] == tmp_path / "classes-broad/probabilities.npy"


def test_a_plan_counts_the_images_made_for_countries(wider: Path) -> None:
    planned = {step.name: step for step in plan_recipe(load_recipe(SMALL, [*MORE, "seed=12"]), wider)}
    assert planned["within-images-broad"].units == 8 * 8
    assert planned["images-broad"].units == 24


MODELS = ("broad", "empty", "narrow")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with judging_server() as running:
        yield running


@pytest.fixture(scope="module")
def run(small_run: Path, server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("faithful")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-of-nobody")
        root = with_faithfulness(small_run, folder / "run")
        recipe_here(faithful_recipe(folder, judge_of(server)), root)
    yield root


def scores(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    rows = pl.read_parquet(run / "faithfulness/scores.parquet").filter(pl.col("concept").is_null())
    return {(row["metric"], row["model"]): row for row in rows.to_dicts()}


def test_dsg_is_what_the_answers_give_by_hand(run: Path) -> None:
    parents: Mapping[str, list[str]] = {"q01": [], "q02": ["q01"], "q03": ["q01", "q02"], "q04": []}
    for model in MODELS:
        answers: dict[str, dict[str, str | None]] = {}
        for row in pl.read_parquet(run / f"answers-{model}/judgments.parquet").to_dicts():
            answers.setdefault(row["image_id"], {})[row["item"]] = row["choice"]
        values = []
        for said in answers.values():
            if None in said.values():
                continue
            counted = [
                said[name] == "yes" and all(said[one] != "no" for one in above) for name, above in parents.items()
            ]
            values.append(sum(counted) / len(parents))
        row = scores(run)["dsg", model]
        assert (row["n"], row["value"]) == (len(values), pytest.approx(sum(values) / len(values)))


def test_judgments_that_brought_no_answer_are_counted_by_how_they_ended(run: Path) -> None:
    counts = pl.read_parquet(run / "faithfulness/answer_counts.parquet").filter(pl.col("concept").is_null())
    ended = counts.filter(task="dsg").group_by("outcome").agg(pl.col("judgments").sum())
    judged = pl.concat([pl.read_parquet(run / f"answers-{model}/judgments.parquet") for model in MODELS])
    assert dict(ended.rows()) == dict(judged.group_by("outcome").len().rows())
    assert {"ok", "refused", "invalid"} <= set(ended["outcome"]), "the test has all three"


def test_rates_of_questions_add_up(run: Path) -> None:
    rates = pl.read_parquet(run / "faithfulness/question_rates.parquet")
    assert rates.height == 4 * len(MODELS)
    assert (rates["images"] == 6).all()
    assert (rates["yes"] + rates["no"] + rates["unanswered"] == rates["images"]).all()
    assert (rates["failed"] >= rates["no"]).all()
    assert (rates.filter(question_id="q04")["void"] == 0).all()
    assert rates.filter(question_id="q03")["void"].sum() > 0


def test_vqascore_is_the_mean_of_what_the_server_listed(run: Path) -> None:
    for model in MODELS:
        judged = pl.read_parquet(run / f"vqascore-{model}/judgments.parquet")
        values = []
        for raw in judged["raw"]:
            listed = {item["token"]: 2.718281828459045 ** item["logprob"] for item in json.loads(raw)["tokens"]}
            values.append(listed["Yes"] / (listed["Yes"] + listed["No"]))
        assert scores(run)["vqascore", model]["value"] == pytest.approx(sum(values) / len(values))


def test_the_report_says_what_was_asked_and_by_whom(run: Path) -> None:
    page = (run / "report/report.html").read_text(encoding="utf-8")
    section = page.partition('<h2 id="faithfulness">')[2].partition("</section>")[0]
    for text in (
        "seer-1",
        "DSG",
        "VQAScore",
        "unparsed",
        "known bias",
        "Is thing 3 shown?",
        "No scorer compared",
        "Differences of two",
    ):
        assert text in section, text
    assert section.count("<svg") == section.count("</svg>") == 3


def test_a_verification_makes_all_of_it_again(run: Path, tmp_path: Path) -> None:
    found = verify_run(run)
    assert [str(finding) for finding in found.findings if finding.severity == "broken"] == []
    own = [verdict for verdict in found.verdicts if verdict.folder.startswith("faithfulness")]
    assert own
    assert {verdict.verdict for verdict in own} == {"verified"}
    broken = Path(shutil.copytree(run, tmp_path / "run"))
    change_table(
        broken / "answers-broad/judgments.parquet",
        lambda t: t.with_columns(choice=pl.when(pl.col("choice") == "no").then(pl.lit("yes")).otherwise("choice")),
    )
    reseal_all(broken)
    problems = [str(finding) for finding in verify_run(broken).findings if finding.severity == "broken"]
    assert any(problem.startswith("answers-broad/judgments.parquet") for problem in problems)
    assert any(problem.startswith("faithfulness/scores.parquet") for problem in problems)


@pytest.mark.endtoend
def test_the_same_bytes_after_the_budget_ran_out_on_the_way(
    run: Path, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with judging_server() as other:
        judge = judge_of(other)
        root = with_faithfulness(small_run, tmp_path / "run")
        planned = {step.name: step for step in plan_recipe(faithful_recipe(tmp_path, judge), root)}
        assert planned["questions"].requests == 1
        assert (planned["questions"].dollars or 0) > 0
        assert planned["vqascore-broad"].requests == 6
        assert other.stats()["requests"] == 0
        for budget in (0.00002, 0.0008, 0.002):
            with pytest.raises(BudgetReached):
                recipe_here(faithful_recipe(tmp_path, judge, budget=budget), root)
            assert other.stats()["usd"] <= budget, "of all stages together"
        recipe_here(faithful_recipe(tmp_path, judge), root)
        stats = other.stats()
        probes = 1 + 2 * len(MODELS) - 1  # every stage asks once for itself whether the server enforces schemas
        assert (stats["broken"], stats["bought_twice"]) == ([], probes)
        assert {step.state for step in plan_recipe(faithful_recipe(tmp_path, judge), root)} == {"done"}
    for name in ("questions", *(f"{judge}-{model}" for judge in ("answers", "vqascore") for model in MODELS)):
        for table in sorted((run / name).glob("*.parquet")):
            assert digest_file(table) == digest_file(root / name / table.name), (name, table.name)
    assert digest_file(run / "faithfulness/scores.parquet") == digest_file(root / "faithfulness/scores.parquet")


SETTINGS = (
    "images.repeats=25",
    "models.0.backend=simulated",
    "models.1.backend=simulated?favour=JP&favour_strength=0.9",
    "models.2.backend=simulated?noise=1",
)


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of an even model, one with a favourite, and one without culture."""
    root = tmp_path_factory.mktemp("diagnosed")
    recipe_here(load_recipe(SMALL, SETTINGS), root, until="scores")
    return root


@pytest.fixture(scope="module")
def hubs(diagnosed: Path) -> pl.DataFrame:
    return pl.read_parquet(diagnosed / "diagnosis/hubs.parquet")


def skew(root: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((root / "diagnosis/manifest.json").read_bytes())["notes"]["neighbour_skew"]
    return found


@pytest.mark.slow
def test_the_hubs_of_a_model_with_a_favourite_are_of_that_country(hubs: pl.DataFrame, diagnosed: Path) -> None:
    own, all_of_them = pl.col("nearest").filter(pl.col("country") == "JP").sum(), pl.col("nearest").sum()
    shares = dict(hubs.group_by("model").agg(own / all_of_them).iter_rows())
    assert shares["narrow"] >= 0.8 > shares["broad"] + 0.3
    assert skew(diagnosed)["narrow"] > skew(diagnosed)["broad"]


@pytest.mark.slow
def test_a_collapsed_model_has_a_few_large_hubs(diagnosed: Path, tmp_path: Path) -> None:
    others = [setting for setting in SETTINGS if not setting.startswith("models.1.")]
    collapsed = load_recipe(SMALL, [*others, "models.1.backend=simulated?collapse=0.9&modes=2"])
    recipe_here(collapsed, tmp_path, until="scores")
    hubs = pl.read_parquet(tmp_path / "diagnosis/hubs.parquet").filter(pl.col("rank") == 1)
    share = dict(hubs.select("model", "share").iter_rows())
    assert share["narrow"] > 2 * share["broad"]
    assert skew(tmp_path)["narrow"] > 1.5 * skew(tmp_path)["broad"]


@pytest.mark.slow
def test_a_model_without_culture_scores_like_the_floor_and_lies_as_far_from_everything(diagnosed: Path) -> None:
    similar = {
        name: json.loads((diagnosed / f"matches-{name}/manifest.json").read_bytes())["notes"]["similarity"]["median"]
        for name in ("broad", "empty", "floor-culture-free")
    }
    assert abs(similar["empty"] - similar["floor-culture-free"]) < 0.1 < similar["broad"] - similar["empty"]
    tables = [
        pl.read_parquet(diagnosed / f"matches-{name}/matches.parquet") for name in ("empty", "floor-culture-free")
    ]
    kernels = QvsOptions(kernels=((0.0, 1.0, 0.0),))
    empty, floor = (score_qvs(table, None, options=kernels).scores["value"][0] for table in tables)
    assert empty == pytest.approx(floor, abs=0.15)
