"""The stage that compares models: values of finished scores in, differences out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import polars as pl

from culturekit.families.family_stage import write_scored
from culturekit.families.value_files import read_values, roles
from culturekit.generation.comparability import Traits, differ_in
from culturekit.metrics.scoring.score_comparisons import ComparisonOptions, check_options, score_comparisons
from culturekit.pipeline.scores.made_alike import noted, traits_in
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.digests import canonical_json

__all__ = ["comparison_stage"]


def comparison_stage(
    values: Sequence[Path], options: ComparisonOptions, *, images: Sequence[Path] = (), name: str = "scores"
) -> Stage:
    """Compare every two models on every score that both have.

    With the tables of their `images`, each difference says what the two differ in besides the model, such as a
    rewriter or a size.
    """
    check_options(options)
    settings = asdict(options)
    seed = settings.pop("seed")

    def run(work: Work) -> Outcome:
        found = score_comparisons(read_values(values), options=options)
        if not images:
            return write_scored(work, found)
        traits = traits_in(images)
        scores = found.scores.with_columns(params=with_what_differs(found.scores["params"], traits))
        return noted(write_scored(work, replace(found, scores=scores)), traits)

    return Stage(
        name,
        "score-compare",
        1,
        run,
        {**roles("values", values), **roles("images", images)},
        settings,
        {"permutations": seed},
        packages=("numpy", "polars", "scipy"),
    )


def with_what_differs(params: pl.Series, traits: Mapping[str, Traits]) -> pl.Series:
    """Add to the parameters of each difference what the images of its two models differ in."""
    known: dict[tuple[str, str], list[str]] = {}
    rows = []
    for about in params.str.json_decode(pl.Struct({"a": pl.String, "b": pl.String})).to_list():
        pair = (about["a"], about["b"])
        if pair not in known:
            both = [traits[name] for name in pair if name in traits]
            known[pair] = differ_in(*both) if len(both) == len(pair) else []
        rows.append(known[pair])
    return pl.Series("params", [widened(text, apart) for text, apart in zip(params.to_list(), rows, strict=True)])


def widened(params: str, apart: Sequence[str]) -> str:
    """Add what differs to the parameters of one row; nothing where all is alike."""
    return canonical_json({**msgspec.json.decode(params), "differ_in": apart}).decode() if apart else params
