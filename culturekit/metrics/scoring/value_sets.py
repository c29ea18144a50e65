"""The values behind scores, ready to be compared: which belong together, and what was not known."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.score_rows import check_ranges
from culturekit.records.schemas import VALUES
from culturekit.storage.digests import canonical_json, digest

__all__ = ["COUNTS", "PLACE", "known_values", "own_generator", "params_without", "parsed"]

PLACE = ("benchmark", "concept", "country", "group")
"""The columns that say where a value belongs, besides metric, model and params."""

COUNTS = ("images_left_out",)
"""Parameters that count what a score left out; scores that differ in them only are the same score."""


def known_values(values: pl.DataFrame, *, ignore: Sequence[str] = COUNTS) -> tuple[pl.DataFrame, int]:
    """Check values, leave out those that are not known, and count these.

    Of params the keys to ignore are dropped. The column `unit_id` is the prompt of a value, or its item where no
    prompt is stated: what a comparison resamples and pairs.
    """
    table = checked(values, VALUES)
    check_ranges(table)
    known = table.filter(pl.col("value").is_finite().fill_null(value=False))
    texts = known["params"].unique().to_list()
    plain = {text: params_without(text, ignore) for text in texts}
    known = known.with_columns(
        pl.col("params").replace_strict(plain, return_dtype=pl.String) if plain else pl.col("params"),
        unit_id=pl.coalesce("prompt_id", "item"),
    )
    return known.sort(*VALUES.key), table.height - known.height


def params_without(params: str, keys: Sequence[str]) -> str:
    """Drop keys from params."""
    kept = {key: value for key, value in parsed(params).items() if key not in keys}
    return canonical_json(kept).decode()


def parsed(params: str) -> dict[str, Any]:
    """Read params as JSON."""
    try:
        return msgspec.json.decode(params.encode(), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(
            "the params of a score cannot be read", expected='a JSON object such as {"q":1.0}', found=repr(params[:80])
        ) from error


def own_generator(seed: int, *key: object) -> np.random.Generator:
    """Make the generator of one row: it depends on the seed and the row's own key, not on what else is computed."""
    return np.random.default_rng([seed, int(digest([str(part) for part in key])[:16], 16)])
