"""The scores of geographic inclusion and of linguistic and cultural biases, run as commands on small files."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.digests import Manifest, digest_file
from culturekit.core.schemas import ANNOTATIONS, DROPS, IMAGES, PROMPTS, QUALITY, SCORES, SURVEY_CODES, TASK1, TASK2
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embedding_encoders import save_vectors
from culturekit.metrics import MONK_TONES
from tests.command_line import culturekit
from tests.metrics.inclusion.task_worlds import drawn_task1, drawn_task2, line, write_csv
from tests.metrics.inclusion.test_survey_themes import VOTES, codes
from tests.recipes.linguistic.score_world import annotations, images, prompts, quality

GROUPS = (None, "Africa", "Europe")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of two dialects and of neutral prompts, their prompts, vectors and what people said of them."""
    root = tmp_path_factory.mktemp("linguistic")
    rows = [(f"{side}-{pair}-{n}", "model", f"{side}-{pair}") for side in ("SAE", "AAE") for pair in range(4)
            for n in range(2)]  # fmt: skip
    rows += [
        (f"{group}-{noun}-{n}", "model", f"{group}-{noun}") for group in GROUPS for noun in range(3) for n in range(2)
    ]
    asked: list[tuple[str, str | None, str]] = [
        (f"{side}-{pair}", side, f"pair {pair}") for side in ("SAE", "AAE") for pair in range(4)
    ]
    asked += [(f"{group}-{noun}", group, f"noun {noun}") for group in GROUPS for noun in range(3)]
    write_table(root, PROMPTS, prompts(asked))
    write_table(root, IMAGES, painted(root, images(rows)))
    ids = [image for image, _, _ in rows]
    save_folder(root / "vectors", ids)
    save_folder(root / "captions", ["old", "new"], seed=1)
    spoken = [image for image in ids if "AE-" in image]
    write_table(root, QUALITY, quality({image: 27.0 if image.startswith("S") else 25.0 for image in spoken}))
    said = [
        annotations([(image, "a", "US", "yes") for image in spoken], criterion="correct", scheme="linguistic_dialect"),
        annotations([(image, "a", "US", 3) for image in spoken], criterion="monk_tone", scheme="linguistic_dialect"),
        annotations([(image, "a", "US", 4.0) for image in spoken], criterion="cleanliness"),
    ]
    write_table(root, ANNOTATIONS, pl.concat(said))
    return root


def save_folder(root: Path, ids: list[str], *, seed: int = 0) -> None:
    root.mkdir()
    save_vectors(root, np.random.default_rng(seed).normal(size=(len(ids), 6)).astype(np.float32), ids)


def painted(root: Path, table: pl.DataFrame) -> pl.DataFrame:
    """Paint a square of a Monk tone on sky: tones 1 to 10 in turn; the last picture is sky only."""
    for number, relative in enumerate(table["path"]):
        pixels = np.full((8, 8, 4), (135, 206, 235, 255), np.uint8)
        if number < table.height - 1:
            pixels[2:5, 2:5, :3] = MONK_TONES[number % 10]
        pixels[7, :, :] = (*MONK_TONES[9].tolist(), 0)
        Image.fromarray(pixels).save(root / relative)
    return table.with_columns(sha256=pl.Series([digest_file(root / path) for path in table["path"]]))


def scored(root: Path, *arguments: str, out: str, in_workers: bool = False) -> tuple[dict[str, object], pl.DataFrame]:
    done = culturekit("score", *arguments, "--out", out, "--json", cwd=root, in_workers=in_workers, ends=0)
    return json.loads(done.stdout), read_table(root / out / "scores.parquet", SCORES)


BOTH = ("--images", "images.parquet", "--prompts", "prompts.parquet")


def test_tones_are_found_in_pictures_and_the_warning_is_written(folder: Path) -> None:
    extra = ("--annotations", "annotations.parquet", "--workers", "1")
    answer, scores = scored(folder, "tones", *BOTH, *extra, out="tones")
    assert answer["drops"] == {"pictures without skin, ita": 1}
    whole = scores.filter(pl.col("group").is_null(), metric="tone_share")
    tones = {json.loads(row["params"])["tone"]: row["value"] for row in whole.iter_rows(named=True)
             if json.loads(row["params"])["detector"] == "ita"}  # fmt: skip
    expected = [4, 4, 4, 3, 3, 3, 3, 3, 3, 3]
    assert [round(tones[tone] * 33) for tone in range(1, 11)] == expected
    assert "people" in {json.loads(params)["detector"] for params in scores["params"]}
    answer, scores = scored(folder, "tones", *BOTH, "--detector", "dall-eval", out="published")
    assert all("cannot see dark skin" in params for params in scores["params"])
    assert answer["drops"] == {"pictures without skin, dall-eval": 22}
    manifest = json.loads((folder / "published/manifest.json").read_bytes())
    assert "cannot see dark skin" in manifest["options"]["warning"]


def test_dialects_are_compared(folder: Path) -> None:
    files = ("--quality", "quality.parquet", "--annotations", "annotations.parquet", "--scale", "100")
    _, scores = scored(folder, "dialects", *BOTH, *files, out="dialects")
    gaps = {json.loads(params)["of"]: value for params, value in
            scores.filter(metric="dialect_gap").select("params", "value").iter_rows()}  # fmt: skip
    assert gaps == {"clip": pytest.approx(0.02), "correct": 0.0}


def test_neutral_pictures_and_question_pairs_are_scored(folder: Path) -> None:
    _, scores = scored(folder, "neutral", *BOTH, "--vectors", "vectors", out="neutral")
    assert set(scores.filter(metric="neutral_similarity")["group"]) == {"Africa", "Europe"}
    options = ("--vectors", "vectors", "--captions", "captions", "--question", "old / new")
    _, scores = scored(folder, "question-pairs", *BOTH, *options, out="questions")
    assert set(scores["metric"]) == {"question_share", "question_sd"}
    done = culturekit(
        "score", "question-pairs", *BOTH, *options[:4], "--question", "old", "--out", "x", cwd=folder, ends=2
    )
    assert "FIRST / SECOND" in done.stderr


def test_ratings_are_scored(folder: Path) -> None:
    options = ("--annotations", "annotations.parquet", "--scheme", "linguistic")
    _, scores = scored(folder, "ratings", *BOTH, *options, out="ratings")
    assert dict(scores.filter(metric="rating_mean").select("group", "value").iter_rows()) == {"SAE": 4.0, "AAE": 4.0}


def test_task2_reads_the_public_layout_and_sets_broken_rows_aside(tmp_path: Path) -> None:
    answer = "{'match': 'ym', 'obj': ['af'], 'geo': ['na']}"
    rows = [line(f"{source}/{n}.jpg", "Africa", k, place, answer) for source in ("geode", "ldm") for n in range(3)
            for k, place in enumerate(("Africa", "Europe"))]  # fmt: skip
    write_csv(tmp_path / "task2.csv", [*rows, line("geode/9.jpg", "Africa", 0, "Africa", "os.system('x')")])
    done = culturekit(
        "score", "task2", "--task2", "task2.csv", "--source", "ldm=ldm/*", "--out", "out", "--json", cwd=tmp_path,
        ends=1,
    )  # fmt: skip
    assert json.loads(done.stdout)["drops"] == {"malformed: the answer is not a dictionary of texts and lists": 1}
    assert read_table(tmp_path / "out/drops.parquet", DROPS)["key"].to_list() == ["line 14"]
    scores = read_table(tmp_path / "out/scores.parquet", SCORES)
    assert set(scores["model"]) == {"real", "ldm"}
    rates = scores.filter(pl.col("params").str.contains('"target":"object"'), metric="in_region_rate")
    assert set(rates["value"]) == {1.0}


def test_a_file_of_which_no_row_can_be_read_says_why(tmp_path: Path) -> None:
    write_csv(tmp_path / "task2.csv", [line("a.jpg", "?", 0, "Africa", "{'match': 'nm'}")])
    done = culturekit("score", "task2", "--task2", "task2.csv", "--out", "out", cwd=tmp_path, ends=2)
    said = " ".join(done.stderr.split())
    assert "task2.csv, line 2: no row can be read" in said
    assert "malformed: region is no name of a region" in said


def test_task2_takes_our_own_table_and_says_who_is_left_out(tmp_path: Path) -> None:
    table = drawn_task2()
    write_table(tmp_path, TASK2, table.with_columns(shown=pl.col("annotator_id") != "af0"))
    answer, _ = scored(tmp_path, "task2", "--task2", "task2.parquet", out="out")
    assert answer["drops"] == {
        "annotations of unreliable annotators": table.filter(annotator_id="af0").height,
        "annotators left out of an object and region": 3,
    }
    done = culturekit(
        "score", "task2", "--task2", "task2.parquet", "--source", "a=b", "--out", "no", cwd=tmp_path, ends=2
    )
    assert "says itself who made an image" in " ".join(done.stderr.split())


def test_task1_is_scored_with_extractors_and_the_manifold(tmp_path: Path) -> None:
    table = drawn_task1()
    write_table(tmp_path, TASK1, table)
    ids = sorted({*table["reference_id"], *table["first_id"], *table["second_id"]})
    for number, name in enumerate(("clip", "inception")):
        save_folder(tmp_path / name, ids, seed=number)
    save_folder(tmp_path / "real", [f"real {n}" for n in range(30)], seed=5)
    options = ("--features", "clip=clip", "--features", "inception=inception", "--real", "clip=real", "--k", "2")
    _, scores = scored(tmp_path, "task1", "--task1", "task1.parquet", *options, "--least", "0", out="out")
    assert set(scores["metric"]) == {
        "appeal_by_distance", "appeal_in_manifold", "appeal_with_similarity", "closer_choice_rate",
        "location_agreement", "location_unanimity",
    }  # fmt: skip
    for name, folder in (("clip", "clip"), ("dino", "real")):
        made = Manifest(
            stage="encode", version=1, key="", sha256="", code={}, packages={}, inputs={}, options={}, seeds={},
            counts={}, drops={}, notes={"identity": {"name": name}}, outputs={},
        )  # fmt: skip
        (tmp_path / folder / "manifest.json").write_bytes(made.encode())
    done = culturekit("score", "task1", "--task1", "task1.parquet", *options, "--out", "no", cwd=tmp_path, ends=2)
    assert "made by different encoders; expected name clip, found name dino" in " ".join(done.stderr.split())
    done = culturekit(
        "score", "task1", "--task1", "task1.parquet", "--real", "real", "--out", "no", cwd=tmp_path, ends=2
    )
    assert "NAME=VALUE" in done.stderr


def test_a_survey_is_scored(tmp_path: Path) -> None:
    write_table(tmp_path, SURVEY_CODES, codes(VOTES))
    answer, scores = scored(tmp_path, "survey", "--codes", "survey_codes.parquet", "--least", "0.5", out="out")
    assert answer["drops"] == {
        "codes that coders do not agree on": 1,
        "codes of which coders say the same of every response, so that kappa is not known": 1,
    }
    assert set(scores["metric"]) == {"theme_kappa", "theme_share"}
