"""How often corrected intervals hold the truth, with labels, errors and audits of the real instrument.

Four simulated models draw 800 pictures each, which are mapped once. Then an evaluation is repeated: 400 pictures of a
model are drawn again, 50 of them are audited, and the diversity is corrected. What is true is known: the shares of what
the 800 pictures show. With `--full` it is repeated 1,000 times.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from evaluation import MODELS
from recording import record

from culturekit.core.schemas import MATCHES
from culturekit.core.tables import read_table
from culturekit.metrics import vendi_corrected
from culturekit.metrics.corrected.audit_sampling import audit_sample
from culturekit.metrics.corrected.expected_diversity import expected_diversity

ROOT = Path(__file__).parents[1]
IMAGES, AUDITED, SIZE = 400, 50, 8
COUNTRY = (0.0, 1.0, 0.0)


def mapped_models(run: Path) -> dict[str, pl.DataFrame]:
    """Draw and map the pictures of all models; give the nearest match of each, and what it really shows."""
    models = ", ".join(f'{{name: {name}, backend: "{backend}"}}' for name, backend in MODELS.items())
    command = [sys.executable, "-m", "culturekit", "run", "cube", "--workdir", str(run), "--until", "truth"]
    for setting in ("concepts=[cuisine]", "images.repeats=100", f"models=[{models}]", "audit=null", "diagnosis=null"):
        command += ["--set", setting]
    subprocess.run([*command, "--set", "completion=null"], check=True, capture_output=True, env=os.environ)
    found = {}
    for name in MODELS:
        nearest, truth = (read_table(run / f"{kind}-{name}/matches.parquet", MATCHES) for kind in ("matches", "truth"))
        shown = truth.select("image_id", "artifact_id", "country", "continent")
        found[name] = nearest.filter(pl.col("rank") == 1).join(shown, on="image_id", suffix="_true").sort("image_id")
    return found


def true_diversity(images: pl.DataFrame) -> float:
    """Give the mean diversity of batches by the shares of what the pictures show; those of nothing are alike."""
    shares = images["country_true"].fill_null("(none)").value_counts()["count"].to_numpy()
    diversity = expected_diversity(size=SIZE, continent=0.0, country=1.0, q=1.0, parents=[0] * len(shares))
    return float(diversity(shares[None] / shares.sum())[0])


def one_evaluation(images: pl.DataFrame, rng: np.random.Generator) -> tuple[float, float, float]:
    """Draw an evaluation's images, audit some, and correct."""
    drawn = images[rng.integers(0, images.height, IMAGES)].with_columns(
        image_id=pl.format("{}-{}", "image_id", pl.int_range(pl.len()))
    )
    sample = audit_sample(drawn.select(list(MATCHES.schema)), n=AUDITED, rng=rng)
    audit = drawn.join(sample.select("image_id"), on="image_id", how="semi").select(
        "image_id",
        pool=pl.lit("people"),
        annotator=pl.lit("one"),
        artifact_id="artifact_id_true",
        country="country_true",
        continent="continent_true",
        none_of_these=pl.col("artifact_id_true").is_null(),
    )
    answer = vendi_corrected(drawn.select(list(MATCHES.schema)), audit, weights=COUNTRY, size=SIZE, rng=rng)
    return answer.value, answer.low, answer.high


def main() -> None:
    """Measure and record."""
    stated = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--runs=")]
    runs = int(stated[0]) if stated else 1_000 if "--full" in sys.argv else 50
    table = [["model", "accuracy of countries", "true", "mean corrected", "coverage", "mean width"]]
    with tempfile.TemporaryDirectory() as place:
        models = mapped_models(Path(place))
    rng = np.random.default_rng(8)
    everywhere = []
    for name, images in models.items():
        truth = true_diversity(images)
        right = (images["country"] == images["country_true"]).fill_null(False).sum() / images.height
        found = np.array([one_evaluation(images, rng) for _ in range(runs)])
        held = (found[:, 1] <= truth + 1e-9) & (truth - 1e-9 <= found[:, 2])
        everywhere.append(held)
        width = (found[:, 2] - found[:, 1]).mean()
        table.append(
            [name, f"{right:.2f}", f"{truth:.3f}", f"{found[:, 0].mean():.3f}", f"{held.mean():.3f}", f"{width:.3f}"]
        )
    table.append(["all", "", "", "", f"{np.mean(everywhere):.3f}", ""])
    record(
        "evaluation_coverage",
        title=f"Corrected intervals over {runs:,} repeated evaluations of {IMAGES} images, {AUDITED} audited",
        command=f"python benchmarks/evaluation_coverage.py --runs={runs}",
        table=table,
    )


if __name__ == "__main__":
    main()
