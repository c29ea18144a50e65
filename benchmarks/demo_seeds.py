"""Does the demo tell the same story whatever its seed? Mapped diversity misranks models; corrected diversity must not.

python benchmarks/demo_seeds.py --seeds 10
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from recording import record
from scipy.stats import kendalltau

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.recipes.run_recipe import run_recipe
from culturekit.report.charts import ModelLine, model_lines
from culturekit.report.headline import headline_lines
from culturekit.report.run_folders import RunFolders


def row_of(seed: int, run: RunFolders) -> list[str]:
    """Say how models are ranked, how many intervals hold the truth, and what the last line says."""
    lines = sorted(model_lines(run, run.headline_scores()), key=lambda line: line.model)
    mapped, corrected, true = (
        [figure.value for line in lines if (figure := getattr(line, kind)) is not None]
        for kind in ("mapped", "corrected", "truth")
    )
    assert len(mapped) == len(corrected) == len(true)
    return [
        str(seed), order(lines, mapped), order(lines, corrected), order(lines, true),
        f"{kendalltau(mapped, true).statistic:.2f}", f"{kendalltau(corrected, true).statistic:.2f}",
        f"{sum(map(holds, lines))}/{len(lines)}", last_lines(list(headline_lines(run))[len(lines) + 2 :]),
    ]  # fmt: skip


def last_lines(said: Sequence[str]) -> str:
    """Take who is lying, and which honest models mapping misranks."""
    return " ".join(line for line in said if "lying" in line or line.startswith(("Mapping puts", "Corrected, ")))


def order(lines: Sequence[ModelLine], values: Sequence[float]) -> str:
    """Name the models, the most diverse first, by their first letters."""
    return "".join(line.model[0] for _, line in sorted(zip(values, lines, strict=True), key=lambda pair: -pair[0]))


def holds(line: ModelLine) -> bool:
    """Tell whether the corrected interval of a model holds the truth."""
    figure, truth = line.corrected, line.truth
    return bool(figure and truth and figure.low - 1e-9 <= truth.value <= figure.high + 1e-9)  # type: ignore[operator]


def table(seeds: Sequence[int]) -> Iterator[list[str]]:
    """Run the demo with each seed."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, LocalEngine(1) as engine:
            recipe = load_any_recipe(find_recipe("cube"), (f"seed={seed}",))
            stages = tuple(one.name for one in run_recipe(recipe, Path(folder), engine=engine))
            row = row_of(seed, RunFolders(Path(folder), recipe.evaluated, stages))
        sys.stderr.write(f"{' | '.join(row)}\n")
        yield row


def main() -> None:
    """Measure, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(1, parser.parse_args().seeds + 1)
    head = [
        "seed", "order by mapped diversity", "by corrected", "by true", "tau, mapped", "tau, corrected",
        "corrected intervals that hold", "what the demo says",
    ]  # fmt: skip
    record(
        "demo_seeds",
        title="The demo with ten seeds, models by their first letters, the most diverse first",
        command="python benchmarks/demo_seeds.py",
        table=[head, *table(seeds)],
    )


if __name__ == "__main__":
    main()
