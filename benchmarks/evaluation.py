"""An evaluation from images to the report: time, processor and memory of every stage, and whether the answer is right.

Four simulated models with known biases answer prompts that leave the culture open, eight images each. Every stage runs
in a process of its own, as `culturekit run --until STAGE`. People, who are simulated too, look at 150 images a model.
The table then holds the ranking by corrected diversity against the true one, and what the first screen says. With
`--full` there are 5,000 prompts; with `--folder=DIR` the run stays there, and goes on where it was cut off. How often
corrected intervals hold the truth is in `evaluation_coverage.py`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from recording import record
from scipy.stats import kendalltau

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from culturekit.core.schemas import PROMPTS  # noqa: E402
from culturekit.core.tables import write_table  # noqa: E402

CONCEPTS = {"art": "traditional clothing", "cuisine": "traditional food", "landmarks": "a famous landmark"}
MODELS = {
    "atlas": "simulated?temperature=1",
    "bestseller": "simulated?temperature=6",
    "compatriot": "simulated?temperature=1&favour=US&favour_strength=0.85",
    "mirage": "simulated?noise=1",
}
FULL = 5_000
"""Prompts of the whole evaluation."""

TAKEN = "taken.json"
"""What the stages of a run took, beside them."""

AUDITED = 50
"""Images of each model and concept that people look at: 150 a model."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one stage took."""

    name: str
    seconds: float
    processor: float
    mb: float
    made: str


def culturekit(*command: str) -> tuple[float, float, float]:
    """Run a command, and take its time, its processor and the most memory that one of its processes had."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "culturekit", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment,
    )  # fmt: skip
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 1}:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_prompts(folder: Path, count: int) -> Path:
    """Write so many prompts that leave the culture open, spread over the concepts."""
    rows = [
        {
            "prompt_id": f"open-{concept}-{number:05}",
            "text": f"Image of {shown}, number {number + 1}",
            "benchmark": "cube",
            "kind": "underspecified",
            "concept": concept,
            "language": "en",
            "template_id": "benchmark",
        }
        for place, (concept, shown) in enumerate(CONCEPTS.items())
        for number in range((count + len(CONCEPTS) - 1 - place) // len(CONCEPTS))
    ]
    schema = PROMPTS.schema
    return write_table(
        folder, PROMPTS, pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
    )


def write_recipe(folder: Path, space: Path, prompts: Path) -> Path:
    """Write the recipe: a published space, prompts from a file, four models, a simulated audit."""
    models = "\n".join(f'  - {{name: {name}, backend: "{backend}"}}' for name, backend in MODELS.items())
    recipe = folder / "evaluation.yaml"
    recipe.write_text(
        f"recipe: cube\nseed: 8\ncspace: {space}\nprompts: {{file: {prompts}}}\n"
        f"references: {{backend: simulated, per_artifact: 4}}\n"
        f"images: {{kinds: [underspecified], slots: 8, repeats: 1}}\nmodels:\n{models}\n"
        f"audit: {{images: {AUDITED}}}\nscores: {{target: population}}\n",
        encoding="utf-8",
    )
    return recipe


def stage_by_stage(recipe: Path, run: Path) -> list[Taken]:
    """Run the stages one after the other, each in a process of its own; what was measured before is not done again."""
    plan = [sys.executable, "-m", "culturekit", "plan", str(recipe), "--workdir", str(run), "--json"]
    said = subprocess.run(
        plan, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ).stdout
    before = run / TAKEN
    known = {one["name"]: Taken(**one) for one in json.loads(before.read_text())} if before.is_file() else {}
    taken = []
    for step in json.loads(said):
        if step["state"] == "done" and step["name"] in known:
            taken.append(known[step["name"]])
            continue
        seconds, processor, mb = culturekit("run", str(recipe), "--workdir", str(run), "--until", step["name"])
        counts = json.loads((run / step["name"] / "manifest.json").read_text())["counts"]
        made = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        taken.append(Taken(step["name"], seconds, processor, mb, made))
        before.write_text(json.dumps([asdict(one) for one in {**known, **{one.name: one for one in taken}}.values()]))
        sys.stderr.write(f"{step['name']} {seconds:.1f} s, {processor:.1f} s of processor, {mb:.0f} MB\n")
    return taken


def diversity(run: Path, labels: str) -> dict[str, tuple[float, float | None, float | None]]:
    """Read the diversity of each model over all prompts, country kernel, with its interval."""
    scores = pl.read_parquet(run / "scores/scores.parquet").filter(
        pl.col("metric") == "vs", pl.col("concept").is_null()
    )
    params = pl.col("params").str.json_decode(pl.Struct({"labels": pl.String, "kernel": pl.String}))
    own = scores.with_columns(p=params).unnest("p").filter(pl.col("labels") == labels, pl.col("kernel") == "country")
    return {row["model"]: (row["value"], row["ci_low"], row["ci_high"]) for row in own.to_dicts()}


def answers(run: Path) -> list[list[str]]:
    """Say how the models are ranked, and what the first screen says."""
    corrected, truth, mapped = (diversity(run, labels) for labels in ("corrected", "truth", "mapped"))
    rows = []
    for model in MODELS:
        low, high = corrected[model][1:]
        rows.append(
            [
                f"{model}: mapped, corrected, true",
                f"{mapped[model][0]:.3f}, {corrected[model][0]:.3f} [{low:.3f}, {high:.3f}], {truth[model][0]:.3f}",
            ]
        )
    for name, found in (("corrected", corrected), ("mapped", mapped)):
        tau = kendalltau([found[model][0] for model in MODELS], [truth[model][0] for model in MODELS]).statistic
        rows.append([f"Kendall's tau, {name} against true diversity", f"{tau:.2f}"])
    page = (run / "report/report.html").read_text(encoding="utf-8")
    first = page.partition("</section>")[0]
    rows.append(["the culture-free model is named on the first screen", "yes" if "mirage" in first else "no"])
    return rows


def main() -> None:
    """Measure and record."""
    count = FULL if "--full" in sys.argv else 60
    stated = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--prompts=")]
    count = int(stated[0]) if stated else count
    kept = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--folder=")]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(kept[0] if kept else place)
        culturekit("run", "cube", "--workdir", str(folder / "made"), "--until", "cspace")
        recipe = write_recipe(folder, folder / "made/cspace/cspace.parquet", write_prompts(folder, count))
        busy = os.getloadavg()[0]
        taken = stage_by_stage(recipe, folder / "run")
        busy = max(busy, os.getloadavg()[0])
        told = answers(folder / "run")
    table = [["stage", "seconds", "processor seconds", "most memory", "made"]]
    table += [[one.name, f"{one.seconds:.1f}", f"{one.processor:.1f}", f"{one.mb:,.0f} MB", one.made] for one in taken]
    whole = [sum(one.seconds for one in taken), sum(one.processor for one in taken), max(one.mb for one in taken)]
    images = count * 8 * len(MODELS)
    table.append(["all", f"{whole[0]:.0f}", f"{whole[1]:.0f}", f"{whole[2]:,.0f} MB", f"{images:,} images scored"])
    table += [[what, "", "", "", said] for what, said in told]
    table.append(
        ["load of the machine meanwhile", "", "", "", f"{busy:.1f} processes wanted its {os.cpu_count()} cores"]
    )
    record(
        "evaluation",
        title=f"An evaluation of {count:,} prompts x 8 images x {len(MODELS)} simulated models, stage by stage",
        command=f"python benchmarks/evaluation.py{' --full' if count == FULL else ''}",
        table=table,
    )


if __name__ == "__main__":
    main()
