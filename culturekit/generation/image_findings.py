"""What was odd about images that were made, counted for the person who runs it."""

import json
from collections import Counter

import polars as pl

__all__ = ["FINDINGS", "findings"]

FINDINGS = "findings"
"""Under this key the `provider_params` of an image list what was odd about it."""


def findings(images: pl.DataFrame) -> list[str]:
    """Count what was odd, the most frequent first."""
    told = images.filter(pl.col("provider_params").str.contains(f'"{FINDINGS}"', literal=True))["provider_params"]
    counts = Counter(name for text in told for name in json.loads(text).get(FINDINGS, []))
    return [f"{count:,} images: {name}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
