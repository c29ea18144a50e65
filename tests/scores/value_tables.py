"""Tables of values, annotations and judgments, drawn with known differences."""

from typing import Any

import numpy as np
import polars as pl

from culturekit.core.digests import canonical_json
from culturekit.core.schemas import ANNOTATIONS, JUDGMENTS, SCORES, VALUES

# CULTIVate's groups do not have the last one
COUNTRIES = {"DE": 1.0, "FR": 1.0, "IN": 0.4, "NG": 0.4, "BR": 0.4, "JP": 9.0}


def as_values(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Make a table of values that conforms; a column that rows lack is null."""
    frame = pl.DataFrame(rows, schema=VALUES.schema)
    assert VALUES.problems(frame) == []
    return frame


def values(
    *,
    models: dict[str, float] | None = None,
    metric: str = "dialect_score",
    countries: dict[str, float] | None = None,
    concepts: tuple[str | None, ...] = (None,),
    prompts: int = 6,
    images: int = 2,
    seed: int = 0,
    params: dict[str, object] | None = None,
) -> pl.DataFrame:
    """Draw values of models on the same prompts: the mean of the country, what the model adds, and noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for concept in concepts:
        for country, centre in (COUNTRIES if countries is None else countries).items():
            for prompt in range(prompts):
                shared = rng.normal(0, 0.1)
                for model, shift in (models or {"m1": 0.0, "m2": 0.2}).items():
                    for image in range(images):
                        prompt_id = f"{concept}/{country}/{prompt}"
                        rows.append(
                            {
                                "metric": metric, "model": model, "benchmark": "cultivate", "concept": concept,
                                "country": country, "params": canonical_json(params or {"tau": 0.52}).decode(),
                                "item": f"{model}/{prompt_id}/{image}", "prompt_id": prompt_id,
                                "value": centre + shift + shared + rng.normal(0, 0.05),
                            }
                        )  # fmt: skip
    return as_values(rows)


def annotations(
    items: dict[str, float],
    *,
    scheme: str = "cultivate",
    criterion: str = "faithfulness",
    pools: dict[str, float] | None = None,
    raters: int = 3,
    noise: float = 0.4,
    choices: bool = False,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw what the annotators of each pool answer: the item's worth, what the pool adds, noise, rounded to 1..5."""
    rng = np.random.default_rng(seed)
    rows = []
    for pool, shift in (pools or {"IN": 0.0, "DE": -1.0}).items():
        for item, worth in items.items():
            for rater in range(raters):
                rating = float(np.clip(np.rint(worth + shift + rng.normal(0, noise)), 1, 5))
                rows.append(
                    {
                        "item_id": item, "annotator": f"{pool}-{rater}", "annotator_region": pool,
                        "in_region": pool == "IN", "scheme": scheme, "criterion": criterion,
                        "value": None if choices else rating,
                        "choice": ("yes" if rating > 3 else "no") if choices else None,
                        "flags": [f"recruitment:{'panel' if rater else 'street'}"] if pool == "IN" else [],
                    }
                )  # fmt: skip
    frame = pl.DataFrame(rows, schema=ANNOTATIONS.schema)
    assert ANNOTATIONS.problems(frame) == []
    return frame


def judgments(items: dict[str, float], *, criterion: str = "faithfulness", judge: str = "j1") -> pl.DataFrame:
    """Give a judge's verdicts."""
    rows = [
        {
            "image_id": item, "prompt_id": f"p{number // 2}", "judge": judge, "task": "cultivate", "item": criterion,
            "value": verdict, "raw": str(verdict), "outcome": "ok",
        }
        for number, (item, verdict) in enumerate(items.items())
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=JUDGMENTS.schema)


def conforming(scores: pl.DataFrame) -> pl.DataFrame:
    """Hold scores against the declaration of their table, and spread params into a column of dictionaries."""
    assert SCORES.problems(scores) == []
    return scores


def params_of(row: dict[str, Any]) -> dict[str, Any]:
    """Read the params of a score."""
    import json

    return dict(json.loads(row["params"]))


def only_row(scores: pl.DataFrame, **conditions: Any) -> dict[str, Any]:
    """Give the one score that meets all conditions."""
    for column, value in conditions.items():
        scores = scores.filter(pl.col(column).eq_missing(pl.lit(value, scores.schema[column])))
    assert scores.height == 1
    return scores.row(0, named=True)
