"""Tables of images and of what they are mapped to, and vectors of them, drawn with a seed."""

from typing import Any

import numpy as np
import polars as pl

from culturekit.core.schemas import IMAGES, MATCHES
from culturekit.scores.inputs import LabelledVectors

PLAIN: dict[str, Any] = {
    "model_version": None, "seed": None, "seed_honoured": None, "prompt_sent": None, "prompt_revised": None,
    "rewriter": "none", "safety": None, "requested_at": None, "provider_params": "{}", "width": 8, "height": 8,
    "status": "ok", "reason": None,
}  # fmt: skip


def image_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Make a table of images that conforms; rows say id, model, prompt, repeat, slot, concept and country."""
    full = [
        {**PLAIN, "path": f"{row['image_id']}.png", "sha256": row["image_id"], "prompt_id": None, "repeat": None,
         "slot": None, **row}
        for row in rows
    ]  # fmt: skip
    schema = {**IMAGES.schema, **{name: IMAGES.optional[name].dtype for name in ("concept", "country")}}
    frame = pl.DataFrame(full, schema=schema)
    assert IMAGES.problems(frame) == []
    return frame


def match_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Make nearest matches that conform; rows say what is not as usual."""
    usual = {"rank": 1, "countries": [], "score": 0.5, "margin": 0.1, "country_margin": 0.1, "abstained": False,
             "method": "nearest"}  # fmt: skip
    frame = pl.DataFrame([{**usual, **row} for row in rows], schema=MATCHES.schema)
    assert MATCHES.problems(frame) == []
    return frame


def pictured(
    counts: dict[str, dict[str, int]], *, seed: int = 0, dim: int = 6, slots: int = 4, concept: str | None = "art"
) -> tuple[pl.DataFrame, LabelledVectors]:
    """Draw images of models, so many of each prompt, and a vector of each."""
    rows = [
        {"image_id": f"{model}-{prompt}-{number}", "model": model, "prompt_id": prompt, "repeat": number // slots,
         "slot": number % slots, "concept": concept, "country": None}
        for model, prompts in counts.items()
        for prompt, count in prompts.items()
        for number in range(count)
    ]  # fmt: skip
    table = image_table(rows)
    vectors = np.random.default_rng(seed).normal(size=(table.height, dim)).astype(np.float32)
    return table, LabelledVectors(vectors, table["image_id"].to_list())
