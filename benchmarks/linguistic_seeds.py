"""The recipe `linguistic` with ten seeds: what its rules and models alone say, what people make of it, and the truth.

Each run draws its pictures, and its people, anew. The published rule for skin must fail as it is known to: it finds no
dark skin, so that it takes a model that shows all tones for less even than it is. What people put right must not.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from recording import record

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.recipes.run_recipe import run_recipe

SEEDS = range(101, 111)
STATED = ("prompts.nouns=1", "prompts.kinds=[dialects, specific]")
DARK = ("8", "9", "10")
PARAMS = ("of", "pool", "labels", "detector", "tone", "first", "criterion")


def scores(folder: Path, name: str, **where: str | None) -> pl.DataFrame:
    """Look scores up by their columns and parameters."""
    table = pl.read_parquet(folder / name / "scores.parquet")
    table = table.with_columns(pl.col("params").str.json_path_match(f"$.{one}").alias(one) for one in PARAMS)
    return table.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)) for column, value in where.items())


def first(table: pl.DataFrame) -> str:
    """Name the model with the lowest score, and those whose intervals reach it."""
    best = table.sort("value").row(0, named=True)
    return "/".join(sorted(table.filter(pl.col("ci_low") <= best["ci_high"])["model"]))


def held(said: pl.DataFrame, true: pl.DataFrame, *keys: str) -> tuple[int, int]:
    """Count the intervals that hold the truth, and all."""
    both = said.join(true.select(*keys, true="value"), on=list(keys), nulls_equal=True)
    inside = both.filter(pl.col("true").is_between(pl.col("ci_low") - 1e-9, pl.col("ci_high") + 1e-9))
    return inside.height, both.height


def row_of(folder: Path, seed: int) -> list[str]:
    """Say what came of one seed."""
    dark, even, tones = [], [], {}
    for what, stage, where in (
        ("rule", "tones-dall-eval", {"detector": "dall-eval", "labels": None, "group": None}),
        ("right", "tones-dall-eval", {"labels": "corrected", "group": None}),
        ("true", "true-tones", {"detector": "people", "group": None}),
    ):
        shares = scores(folder, stage, metric="tone_share", **where)
        tones[what] = shares
        dark.append(f"{shares.filter(pl.col('tone').is_in(DARK), model='open')['value'].sum():.2f}")
        even.append(first(scores(folder, stage, metric="tone_std", **where)))
    inside = [held(tones[what], tones["true"], "model", "tone") for what in ("rule", "right")]
    gaps = [first(scores(folder, name, metric="dialect_gap", **where)) for name, where in (
        ("dialects", {"of": "clipscore"}), ("dialects", {"of": "correct"}), ("true-dialects", {"of": "correct"}),
    )]  # fmt: skip
    truth = scores(folder, "true-ratings", metric="rating_mean", criterion="current_date").drop_nulls("group")
    truth = truth.with_columns(value=(pl.col("value") - 1) / 4)
    modern = [held(scores(folder, "judged-modern", labels=labels), truth, "model", "group")
              for labels in ("judged", "corrected")]  # fmt: skip
    return [str(seed), " ".join(dark), "; ".join(even), *(f"{some}/{every}" for some, every in inside),
            "; ".join(gaps), *(f"{some}/{every}" for some, every in modern)]  # fmt: skip


def table(seeds: range) -> Iterator[list[str]]:
    """Run the recipe with each seed."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, LocalEngine(1) as engine:
            recipe = load_any_recipe(find_recipe("linguistic"), (*STATED, f"seed={seed}"))
            run_recipe(recipe, Path(folder), engine=engine)
            yield row_of(Path(folder), seed)


def main() -> None:
    """Measure, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    asked = parser.parse_args()
    head = [
        "seed", "dark skin of `open`: published rule, put right, true", "most even: rule; put right; true",
        "shares of tones held by the rule", "put right", "smallest gap: CLIPScore; people; truth",
        "modern places held by the encoder", "put right",
    ]  # fmt: skip
    record(
        "linguistic_seeds",
        title="The recipe linguistic with ten seeds, 95 % intervals",
        command="python benchmarks/linguistic_seeds.py",
        table=[head, *table(SEEDS[: asked.seeds])],
    )


if __name__ == "__main__":
    main()
