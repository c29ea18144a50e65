"""Each `score` command on small tables: what it writes and counts, and what it refuses, as typed."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core import schemas
from culturekit.core.digests import Manifest, digest_file
from culturekit.core.errors import IntegrityError
from culturekit.core.table import Table
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embedding import load_vectors, save_vectors
from culturekit.metrics import MONK_TONES
from culturekit.scores.inputs import NamedVectors
from tests.command_line import culturekit
from tests.metrics.inclusion.task_worlds import VOTES, codes, drawn_task1, drawn_task2, line, write_csv
from tests.recipes.cultivate.ahead_world import world as ahead_world
from tests.recipes.linguistic import score_world as spoken
from tests.scores import value_tables as drawn
from tests.scores.test_routes import NEAREST, TAGS, judged

GROUPS = (None, "Africa", "Europe")


def put(folder: Path, table: Table, rows: pl.DataFrame) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder, table, rows.sort(table.key))


def put_vectors(folder: Path, ids: list[str], *, seed: int = 0, width: int = 6) -> None:
    folder.mkdir(parents=True)
    save_vectors(folder, np.random.default_rng(seed).normal(size=(len(ids), width)).astype(np.float32), ids)


def encoded_by(folder: Path, **identity: str) -> None:
    """Say in the manifest of a folder which encoder made its vectors."""
    manifest = Manifest(
        stage="encode", version=1, key="", sha256="", code={}, packages={}, inputs={}, options={}, seeds={}, counts={},
        drops={}, notes={"identity": identity}, outputs={},
    )  # fmt: skip
    (folder / "manifest.json").write_bytes(manifest.encode())


def lay_statistics(root: Path) -> None:
    both = drawn.values()
    for model in ("m1", "m2"):
        put(root / model, schemas.VALUES, both.filter(model=model))
    items = {item: 1 + 3 * min(value, 1.3) for item, value in both.select("item", "value").iter_rows()}
    put(root, schemas.ANNOTATIONS, drawn.annotations(items))
    put(root, schemas.JUDGMENTS, drawn.judgments(items))
    (root / "own.yaml").write_text("own:\n  one: [DE, IN]\n  two: [JP, NG]\n", encoding="utf-8")


def lay_dialects(root: Path) -> None:
    """Squares of Monk tones on sky, asked for in two dialects and neutrally, vectors, and what people said of them."""
    asked: list[tuple[str, str | None, str]] = [
        *((f"{side}-{pair}", side, f"pair {pair}") for side in ("SAE", "AAE") for pair in range(4)),
        *((f"{group}-{noun}", group, f"noun {noun}") for group in GROUPS for noun in range(3)),
    ]
    table = spoken.images([(f"{prompt}-{n}", "model", prompt) for prompt, _, _ in asked for n in range(2)])
    for number, path in enumerate(table["path"]):
        pixels = np.full((8, 8, 4), (135, 206, 235, 255), np.uint8)
        pixels[2:5, 2:5, :3] = MONK_TONES[number % 10] if number < table.height - 1 else (135, 206, 235)
        pixels[7, :, :] = (*MONK_TONES[9].tolist(), 0)
        Image.fromarray(pixels).save(root / path)
    put(root, schemas.PROMPTS, spoken.prompts(asked))
    put(
        root, schemas.IMAGES, table.with_columns(sha256=pl.Series([digest_file(root / path) for path in table["path"]]))
    )
    ids = table["image_id"].to_list()
    put_vectors(root / "vectors", ids)
    put_vectors(root / "captions", ["old", "new"], seed=1)
    heard = [image for image in ids if "AE-" in image]
    put(root, schemas.QUALITY, spoken.quality({image: 27.0 if image.startswith("S") else 25.0 for image in heard}))
    ratings: list[tuple[str, str, str | float]] = [
        ("correct", "linguistic_dialect", "yes"),
        ("monk_tone", "linguistic_dialect", 3.0),
    ]
    people = [
        spoken.annotations([(image, "a", "US", answer) for image in heard], criterion=criterion, scheme=scheme)
        for criterion, scheme, answer in [*ratings, ("cleanliness", "linguistic", 4.0)]
    ]
    put(root, schemas.ANNOTATIONS, pl.concat(people))


def lay_inclusion(root: Path) -> None:
    answer = "{'match': 'ym', 'obj': ['af'], 'geo': ['na']}"
    rows = [line(f"{source}/{n}.jpg", "Africa", k, region, answer) for source in ("geode", "ldm") for n in range(3)
            for k, region in enumerate(("Africa", "Europe"))]  # fmt: skip
    write_csv(root / "public.csv", [*rows, line("geode/9.jpg", "Africa", 0, "Africa", "os.system('x')")])
    write_csv(root / "wrong.csv", [line("a.jpg", "?", 0, "Africa", "{'match': 'nm'}")])
    put(root, schemas.TASK2, drawn_task2().with_columns(shown=pl.col("annotator_id") != "af0"))
    triplets = drawn_task1()
    put(root, schemas.TASK1, triplets)
    put(root, schemas.SURVEY_CODES, codes(VOTES))
    ids = sorted({*triplets["reference_id"], *triplets["first_id"], *triplets["second_id"]})
    for number, (name, images) in enumerate({"clip": ids, "inception": ids, "real": [f"real {n}" for n in range(30)],
                                             "dino": [f"real {n}" for n in range(30)]}.items()):  # fmt: skip
        put_vectors(root / name, images, seed=number)
    encoded_by(root / "dino", name="dino")


def lay_captions(root: Path) -> None:
    ids = [f"caption {number}" for number in range(22)]
    for number, (role, width) in enumerate({"source": 6, "target": 6, "objects": 6, "image": 4, "written": 4}.items()):
        named = [f"{name}#{k}" for name in ids[:20] for k in range(2)] if role == "objects" else ids
        put_vectors(root / role, named, seed=number, width=width)
    for name in ("labse", "minilm"):
        put_vectors(root / name, ids)
        encoded_by(root / name, name=name)


def lay_routes(root: Path) -> None:
    for name, table, rows in (
        ("a", schemas.MATCHES, NEAREST),
        ("b", schemas.MATCHES, TAGS),
        ("said", schemas.JUDGMENTS, judged(TAGS)),
    ):
        put(root / name, table, rows)
    for model in "abcd":
        put(root / f"b-{model}", schemas.MATCHES, TAGS.filter(model=model))


def lay_scenes(root: Path) -> None:
    ahead_world().stored(root)
    put_vectors(root / "few", ["thing 0", "thing 1"])


LAID = {
    "scenes": lay_scenes, "captions": lay_captions, "statistics": lay_statistics, "dialects": lay_dialects,
    "inclusion": lay_inclusion, "routes": lay_routes,
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    for name, lay in LAID.items():
        (folder / name).mkdir()
        lay(folder / name)
    return folder


FILES = "--images images.parquet --prompts prompts.parquet"
AHEAD = "ahead --images made/images.parquet --extracted made/judgments.parquet --prompts prompts.parquet"
AHEAD += " --descriptors descriptors.parquet --phrases"
REAL = "--images real/images.parquet --extracted real/judgments.parquet --stereotypes made/judgments.parquet"
BOTH = "--values m1/values.parquet --values m2/values.parquet"
TASK = "task1 --task1 task1.parquet --features clip=clip --features inception=inception --k 2 --real"
PAIRS = f"question-pairs {FILES} --vectors vectors --captions captions --question"
C3 = "c3 --source source --target target --objects objects --image image --image-target written --keep 4"
ROUTES = "routes --a a/matches.parquet --kernel country --judgments said/judgments.parquet"
KAPPA = "codes of which coders say the same of every response, so that kappa is not known"
TONES = {"mean_tone", "tone_mad", "tone_share", "tone_std"}
SEEN = {"in_region_rate", "location_agreement", "location_unanimity", "object_seen"}

# The world, what is typed, the metrics, and what is left out; 1 is how a command with findings ends
SCORED: dict[str, tuple[str, str, set[str], dict[str, int] | None]] = {
    "ahead": ("scenes", f"{AHEAD} phrases {REAL} --stereotypes real/judgments.parquet --real real",
              {"align", "hal", "empty", "exag", "faith", "ddiv", "sdiv"}, None),
    "c3": ("captions", f"{C3} --strategy clip", {"c3", "c3_text", "c3_image", "c3_object"},
           {"items without the term object": 2}),
    "compare": ("statistics", f"compare {BOTH} --resamples 199", {"model_difference"}, {}),
    "gaps": ("statistics", "gaps --values m1/values.parquet --scheme cultivate", {"group_gap"}, {"in_no_group": 12}),
    "gaps of one's own": ("statistics", "gaps --values m1/values.parquet --scheme own --groups own.yaml --target these",
                          {"group_gap"}, None),
    "meta": ("statistics", f"meta {BOTH} --annotations annotations.parquet --method spearman --scheme cultivate "
             "--resamples 99 --seed 3", {"human_correlation"}, None),
    "meta of values": ("statistics", "meta --values m1/values.parquet --human m1/values.parquet --method kendall "
                       "--resamples 99", {"human_correlation"}, None),
    "agreement": ("statistics", "agreement --annotations annotations.parquet --judgments judgments.parquet "
                  "--resamples 99 --level interval --pools in-region",
                  {"krippendorff_alpha", "fleiss_kappa", "pairwise_agreement", "unanimous_agreement",
                   "pool_difference", "pool_correlation", "judge_bias", "judge_agreement"}, None),
    "tones": ("dialects", f"tones {FILES} --annotations annotations.parquet --workers 1", TONES,
              {"pictures without skin, ita": 1}),
    "published tones": ("dialects", f"tones {FILES} --detector dall-eval", TONES,
                        {"pictures without skin, dall-eval": 22}),
    "dialects": ("dialects", f"dialects {FILES} --quality quality.parquet --annotations annotations.parquet "
                 "--scale 100", {"dialect_gap", "dialect_score"}, None),
    "neutral": ("dialects", f"neutral {FILES} --vectors vectors", {"neutral_mad", "neutral_mad_of_means",
                "neutral_similarity", "neutral_std", "neutral_std_of_means"},
                {"prompts without pictures of every group": 4}),
    "question pairs": ("dialects", f"{PAIRS} 'old / new'", {"question_share", "question_sd"}, None),
    "ratings": ("dialects", f"ratings {FILES} --annotations annotations.parquet --scheme linguistic",
                {"rating_mean", "rating_sd"}, None),
    "public task 2": ("inclusion", "task2 --task2 public.csv --source ldm=ldm/*", SEEN,
                      {"malformed: the answer is not a dictionary of texts and lists": 1}),
    "task 2": ("inclusion", "task2 --task2 task2.parquet", {*SEEN, "location_kappa"},
               {"annotations of unreliable annotators": 12, "annotators left out of an object and region": 3}),
    "task 1": ("inclusion", f"{TASK} clip=real --least 0", {"appeal_by_distance", "appeal_in_manifold",
               "appeal_with_similarity", "closer_choice_rate", "location_agreement", "location_unanimity"}, None),
    "survey": ("inclusion", "survey --codes survey_codes.parquet --least 0.5", {"theme_kappa", "theme_share"},
               {"codes that coders do not agree on": 1, KAPPA: 1}),
    "routes": ("routes", f"{ROUTES} --b b/matches.parquet",
               {"vs", "route_agreement", "route_kappa", "ranking_stability"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORED)
def test_a_family_is_scored_and_says_what_it_left_out(root: Path, tmp_path: Path, name: str) -> None:
    world, words, metrics, drops = SCORED[name]
    ends = 1 if name.startswith("public") else 0
    done = culturekit("score", *shlex.split(words), "--out", tmp_path / "out", "--json", cwd=root / world, ends=ends)
    answer = json.loads(done.stdout)
    assert set(read_table(tmp_path / "out/scores.parquet", schemas.SCORES)["metric"]) == metrics
    assert drops is None or answer["drops"] == drops
    again = culturekit("score", *shlex.split(words), "--out", tmp_path / "out", "--json", cwd=root / world)
    assert json.loads(again.stdout)["state"] == "reused"


def test_a_published_detector_warns_of_what_it_cannot_see(root: Path, tmp_path: Path) -> None:
    words = ["tones", *FILES.split(), "--detector", "dall-eval", "--out", str(tmp_path / "out")]
    culturekit("score", *words, cwd=root / "dialects", ends=0)
    assert "cannot see dark skin" in json.loads((tmp_path / "out/manifest.json").read_bytes())["options"]["warning"]
    params = read_table(tmp_path / "out/scores.parquet", schemas.SCORES)["params"]
    assert all("cannot see dark skin" in text for text in params)


@pytest.mark.parametrize(("once", "parts"), [
    (f"{ROUTES} --b b/matches.parquet", " ".join([ROUTES, *(f"--b b-{model}/matches.parquet" for model in "abcd")])),
    (f"compare {BOTH} --resamples 99",
     "compare --values m2/values.parquet --values m1/values.parquet --resamples 99"),
])  # fmt: skip
def test_one_table_or_several_give_the_same_scores(root: Path, tmp_path: Path, once: str, parts: str) -> None:
    for number, words in enumerate((once, parts)):
        folder = root / ("routes" if words.startswith("routes") else "statistics")
        culturekit("score", *shlex.split(words), "--out", tmp_path / str(number), cwd=folder, ends=0)
    one, several = (read_table(tmp_path / name / "scores.parquet", schemas.SCORES) for name in "01")
    assert one.equals(several)


REFUSED = [
    ("scenes", f"{AHEAD} phrases --tau 0.5 --quantile 0.5", "Give one of the two"),
    ("scenes", f"{AHEAD} phrases --scheme undp?",
     "there is no scheme 'undp?' of country groups; expected cultivate or un-m49-region"),
    ("scenes", f"{AHEAD} phrases --quantile 0.5", "real must be the model whose images are real"),
    ("scenes", f"{AHEAD} few", "38 of 40 phrases have no vector"),
    ("scenes", f"{AHEAD} phrases --images made/images.parquet",
     "made/images.parquet, made/images.parquet: two tables of images have the same rows; found image_id"),
    ("captions", "c3 --source labse --target minilm",
     "made by different encoders; expected name labse, found name minilm"),
    ("statistics", "gaps --values m1/values.parquet --scheme group", "expected values with a group"),
    ("statistics", "meta --values m1/values.parquet --human m1/values.parquet --method cosine",
     "method must be 'spearman' or 'kendall' or 'pearson'; found 'cosine'"),
    ("dialects", f"{PAIRS} old", "FIRST / SECOND"),
    ("inclusion", "task2 --task2 wrong.csv", "wrong.csv, line 2: no row can be read"),
    ("inclusion", "task2 --task2 wrong.csv", "malformed: region is no name of a region"),
    ("inclusion", "task2 --task2 task2.parquet --source a=b", "says itself who made an image"),
    ("inclusion", f"{TASK} real", "NAME=VALUE"),
]  # fmt: skip


@pytest.mark.parametrize(("world", "words", "message"), REFUSED)
def test_a_wrong_question_is_answered(root: Path, tmp_path: Path, world: str, words: str, message: str) -> None:
    done = culturekit("score", *shlex.split(words), "--out", tmp_path / "out", cwd=root / world, ends=2)
    assert message in " ".join(done.stderr.split())


def test_vectors_know_their_encoder_and_their_rows_in_whatever_order_ids_stand(root: Path, tmp_path: Path) -> None:
    assert NamedVectors(root / "scenes/phrases").encoder == ""
    save_vectors(tmp_path, np.eye(3, dtype=np.float32), ["b", "c", "a"])
    encoded_by(tmp_path, name="minilm", revision="abc")
    assert NamedVectors(tmp_path).encoder == "minilm abc"
    ids = tmp_path / "ids.parquet"
    pl.read_parquet(ids).sort("id").write_parquet(ids)  # a table that was sorted by somebody
    assert load_vectors(tmp_path)[1] == ["b", "c", "a"]
    pl.read_parquet(ids).with_columns(row=pl.col("row") + 1).write_parquet(ids)
    with pytest.raises(IntegrityError, match=r"an id says which vector is its own.*counts the vectors from 0"):
        load_vectors(tmp_path)


@pytest.fixture(scope="module")
def vectors(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vectors")
    for name in ("references", "images-broad", "images-narrow"):
        images = small_run / name / "images.parquet"
        culturekit("index", "embed", "--images", images, "--encoder", "embedded", "--out", root / name, ends=0)
    return root


def test_models_in_folders_of_their_own_are_scored_together(small_run: Path, vectors: Path, tmp_path: Path) -> None:
    words: list[str | Path] = [
        "--real", vectors / "references", "--references", small_run / "references/images.parquet", "--balanced",
    ]  # fmt: skip
    for name in ("images-broad", "images-narrow"):
        words += ["--fake", vectors / name, "--images", small_run / name / "images.parquet"]
    culturekit("score", "realism", *words, "--by", "concept", "--fewest", "20", "--out", tmp_path / "scores", ends=0)
    table = pl.read_parquet(tmp_path / "scores/scores.parquet").filter(metric="frechet_distance")
    assert table.select("model", "concept").rows() == [
        ("broad", None), ("broad", "art"), ("narrow", None), ("narrow", "art"),
    ]  # fmt: skip
    assert table["n"].to_list() == [24] * 4


def test_spread_reads_the_vectors_of_several_models(small_run: Path, vectors: Path, tmp_path: Path) -> None:
    words: list[str | Path] = []
    for name in ("images-broad", "images-narrow"):
        words += ["--vectors", vectors / name, "--images", small_run / name / "images.parquet"]
    answer = json.loads(culturekit("score", "spread", *words, "--out", tmp_path / "scores", "--json", ends=0).stdout)
    assert answer["counts"] == {"scores": 2, "values": 6}
    twice = culturekit("score", "spread", *words, *words[2:], "--out", tmp_path / "twice", ends=2)
    assert "same image" in twice.stderr
    assert "how unlike" in culturekit("score", "spread", *words[2:4], "--out", tmp_path / "nothing").stderr


def test_pairs_without_weights_or_torch_say_what_is_missing(small_run: Path, tmp_path: Path) -> None:
    images = small_run / "images-broad/images.parquet"
    words = ("score", "pairs", "--images", images, "--out", tmp_path / "pairs", "--measure")
    for spec, said in (
        ("lpips:nowhere.safetensors", "no such file of weights"), ("lpip:x.safetensors", "Did you mean"),
        ("lpips:x.safetensors?sides=3", "no option"),
    ):  # fmt: skip
        assert said in culturekit(*words, spec, ends=2).stderr
