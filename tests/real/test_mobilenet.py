"""A real network in NumPy: against TensorFlow.js, which runs the same package, and on a whole run of real flags."""

import json
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.kg.countries import whole_world
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.metrics.corrected.audits_by_hand import audits_of
from tests.outside_packages import EXAMPLES, install
from tests.real.things import (
    MAKERS,
    MODULES,
    REFERENCES,
    WEIGHTS,
    codes,
    drawings,
    folder,
    keep,
    needs,
    on_paper,
    references,
)

pytestmark = needs(WEIGHTS, MODULES / "@tensorflow/tfjs", MODULES / "nsfwjs", REFERENCES, *map(folder, MAKERS))

SIDE, DIM = 224, 1280
IN_NODE = """
const [modules, pixels, out] = process.argv.slice(1);
const tf = require(modules + '/@tensorflow/tfjs'), fs = require('fs');
const folder = modules + '/nsfwjs/dist/models/mobilenet_v2/';
const { modelTopology, weightsManifest } = require(folder + 'model.min.js');
const bytes = Buffer.from(require(folder + 'group1-shard1of1.min.js'), 'base64');
const weightData = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const kept = tf.io.fromMemory({ modelTopology, weightSpecs: weightsManifest[0].weights, weightData });
tf.loadLayersModel(kept).then((model) => {
  const features = tf.model({ inputs: model.inputs, outputs: model.getLayer('flatten_1').output });
  const numbers = Float32Array.from(fs.readFileSync(pixels), (value) => value / 255);
  const given = tf.tensor4d(numbers, [numbers.length / (224 * 224 * 3), 224, 224, 3]);
  fs.writeFileSync(out, Buffer.from(features.predict(given).dataSync().buffer));
});
"""
REPEATS, SLOTS = 12, 8


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(EXAMPLES / "mobilenet", tmp_path / "site", monkeypatch)


def in_node(pictures: NDArray[np.uint8], folder: Path) -> NDArray[np.float32]:
    """Let TensorFlow.js run the network."""
    pictures.tofile(folder / "pixels")
    command = ["node", "-e", IN_NODE, str(MODULES), str(folder / "pixels"), str(folder / "features")]
    subprocess.run(command, check=True, capture_output=True)
    return np.fromfile(folder / "features", np.float32).reshape(-1, DIM)


def test_features_are_those_of_tensorflow(tmp_path: Path) -> None:
    from culturekit.index.encoder import ENCODERS

    made = ENCODERS.make(f"mobilenet:{WEIGHTS}")
    flags = [np.asarray(Image.fromarray(one).resize((SIDE, SIDE))) for one in references()[:3]]
    noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    pictures = np.stack([*flags, noise])
    expected = in_node(pictures, tmp_path)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(made.encode_images(list(pictures)) - expected).max() < 1e-5  # type: ignore[attr-defined]
    assert (expected @ expected.T)[np.triu_indices(4, 1)].max() < 0.999


# How often each model shows any country's flag; else the second shows one country's, and the third no country's
MODELS = {"worldly": 1.0, "homely": 0.3, "animals": 0.0}


def write_world(folder: Path) -> dict[str, str | None]:
    """Write the space, references and the pictures of three models; give what each picture shows."""
    rng, places = np.random.default_rng(5), [place for place, code in enumerate(codes()) if code in whole_world()][::4]
    rows = [{"name": f"flag of {codes()[place]}", "concept": "flags", "country": codes()[place]} for place in places]
    pl.DataFrame(rows).write_csv(folder / "flags.csv")
    (folder / "words.yaml").write_text(WORDS, encoding="utf-8")
    known, drawn = references(), list(drawings())
    for place in places:
        name = folder / f"references/flag of {codes()[place]}"
        name.mkdir(parents=True)
        flag = Image.fromarray(known[place])
        flag.save(name / "0.png")
        flag.resize((110, 110)).crop((7, 7, 103, 103)).save(name / "1.png")
    truth: dict[str, str | None] = {}
    for model, any_country in MODELS.items():
        at_home = places[20] if any_country else -1
        (folder / "pictures" / model).mkdir(parents=True)
        for number in range(REPEATS * SLOTS):
            label = int(rng.choice(places)) if rng.random() < any_country else at_home
            some = [drawing for place, drawing in drawn if place == label]
            path = folder / f"pictures/{model}/A flag__{number:03d}.png"
            Image.fromarray(on_paper(some[rng.integers(len(some))], rng)).save(path)
            truth[f"{model}/{path.name}"] = codes()[label] if label >= 0 else None
    return truth


WORDS = """
language: en
verified: {by: Ada, on: 2026-11-22}
artifact: {flags: "A photo of {name}, a flag of {country}"}
underspecified: {flags: [A flag]}
"""
RECIPE = """
recipe: cube
seed: 3
cspace: flags.csv
countries_file: world
prompts: {{kinds: [cube, underspecified], languages: [en], translations: [words.yaml]}}
references: {{backend: "folder:references?pattern={{artifact}}/{{_}}"}}
encoder: "mobilenet:{weights}"
images: {{kinds: [underspecified], slots: 8, repeats: 12}}
models:
  - {{name: worldly, backend: "folder:pictures/worldly?pattern={{prompt}}__{{id}}"}}
  - {{name: homely, backend: "folder:pictures/homely?pattern={{prompt}}__{{id}}"}}
  - {{name: animals, backend: "folder:pictures/animals?pattern={{prompt}}__{{id}}"}}
diagnosis: {{floor_repeats: 2, ceiling_repeats: 5}}
scores: {{size: 8, q: 1}}
"""


def ran(*words: str) -> str:
    """Run the recipe; give what it says."""
    done = culturekit("run", "flags.yaml", "--workdir", "run", "--workers", "2", *words)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def true_diversity(labels: list[str | None]) -> float:
    """Score what pictures show: eight of them, none twice, the country kernel, pictures without a culture all alike."""
    counts = np.unique(np.array([label or "-" for label in labels]), return_counts=True)[1]
    kernel = expected_diversity(size=SLOTS, continent=0.0, country=1.0, q=1.0, parents=[0] * len(counts))
    return float(kernel.of_images(counts[np.newaxis])[0])


def plain(params: str) -> dict[str, object]:
    """Read the parameters of a score, lists left out."""
    return {name: value for name, value in json.loads(params).items() if not isinstance(value, list)}


def by_labels(scores: pl.DataFrame, model: str, labels: str) -> dict[str, float]:
    """Give the country kernel of a model at order 1, by mapped or by corrected labels."""
    rows = scores.filter(pl.col("metric") == "vs", pl.col("model") == model, pl.col("concept") == "flags").to_dicts()
    wanted = {"labels": labels, "kernel": "country", "q": 1.0}
    found = [row for row in rows if wanted.items() <= plain(row["params"]).items()]
    assert len(found) == 1, [row["params"] for row in rows]
    return {name: found[0][name] for name in ("value", "ci_low", "ci_high")}


def test_a_whole_run_of_real_pictures_is_scored_corrected_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network knows photographs: it finds a flag in a quarter of the cases, and people put the scores right."""
    (tmp_path / "world").mkdir()
    monkeypatch.chdir(tmp_path / "world")
    truth = write_world(Path())
    Path("flags.yaml").write_text(RECIPE.format(weights=WEIGHTS), encoding="utf-8")
    ran()
    shown: dict[str, str | None] = {}
    for model in MODELS:
        images = pl.read_parquet(f"run/images-{model}/images.parquet")
        assert images["status"].to_list() == ["ok"] * REPEATS * SLOTS
        shown |= {row["image_id"]: truth[f"{model}/{row['source']}"] for row in images.to_dicts()}
    tables = [f"run/matches-{model}/matches.parquet" for model in MODELS]
    nearest = pl.concat([pl.read_parquet(table).filter(rank=1) for table in tables])
    flags = [row for row in nearest.to_dicts() if shown[row["image_id"]] is not None]
    right = float(np.mean([row["country"] == shown[row["image_id"]] for row in flags]))
    assert 5 / 63 < right < 0.9

    matches = [word for table in tables for word in ("--matches", table)]
    drawn = culturekit("score", "audit-sample", *matches, "--n", "60", "--out", "sample")
    assert drawn.returncode == 0, drawn.stderr
    asked = pl.read_parquet("sample/audit_sample.parquet")["image_id"].to_list()
    audits_of({image: shown[image] for image in asked}).write_parquet("audits.parquet")
    with Path("flags.yaml").open("a", encoding="utf-8") as recipe:
        recipe.write("audit: {file: audits.parquet, sample: sample/audit_sample.parquet}\n")
    ran()
    scores = pl.read_parquet("run/scores/scores.parquet")
    assert [str(finding) for finding in verify_run(Path("run")).findings if finding.severity == "broken"] == []
    table = [["model", "shown", "mapped", "corrected"]]
    for model in MODELS:
        true = true_diversity([label for image, label in shown.items() if image in of_model(model)])
        mapped, put_right = (by_labels(scores, model, labels) for labels in ("mapped", "corrected"))
        assert put_right["ci_low"] - 1e-9 <= true <= put_right["ci_high"] + 1e-9, (model, true, put_right)
        table.append([model, f"{true:.3f}", *(
            f"{one['value']:.3f} [{one['ci_low']:.3f}, {one['ci_high']:.3f}]" for one in (mapped, put_right)
        )])  # fmt: skip
    assert by_labels(scores, "animals", "mapped")["ci_low"] > 3 * true_diversity([None] * SLOTS)
    keep(
        "flags", f"Flags of 63 countries by MobileNetV2, right in {right:.0%}; 96 pictures a model, 60 looked at", table
    )


def of_model(model: str) -> set[str]:
    """Name the images of a model."""
    return set(pl.read_parquet(f"run/images-{model}/images.parquet")["image_id"])
