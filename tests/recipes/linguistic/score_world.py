"""Small tables of images, prompts and annotations for the scores of linguistic and cultural biases."""

from collections.abc import Iterable
from typing import Any

import polars as pl

from culturekit.core.schemas import ANNOTATIONS, IMAGES, PROMPTS, QUALITY


def images(rows: Iterable[tuple[str, str, str | None]]) -> pl.DataFrame:
    """Make IMAGES from (image, model, prompt)."""
    empty: dict[str, Any] = dict.fromkeys(IMAGES.columns)
    fixed = {"rewriter": "off", "provider_params": "{}", "sha256": "", "width": 8, "height": 8, "status": "ok"}
    return pl.DataFrame(
        [
            {**empty, **fixed, "image_id": image, "path": f"{image}.png", "model": model, "prompt_id": prompt}
            for image, model, prompt in rows
        ],
        schema=IMAGES.schema,
    )


def prompts(rows: Iterable[tuple[str, str | None, str | None]]) -> pl.DataFrame:
    """Make PROMPTS from (prompt, group, pair): the pair stands as artifact and as template."""
    return pl.DataFrame(
        [
            {
                "prompt_id": prompt, "text": prompt, "benchmark": "linguistic", "kind": "neutral", "group": group,
                "artifact_id": pair, "language": "en", "template_id": "t",
            }
            for prompt, group, pair in rows
        ],
        schema=PROMPTS.schema,
    )  # fmt: skip


def quality(values: dict[str, float], scorer: str = "clip") -> pl.DataFrame:
    rows = [{"image_id": image, "scorer": scorer, "value": value} for image, value in values.items()]
    return pl.DataFrame(rows, schema=QUALITY.schema)


def annotations(
    rows: Iterable[tuple[str, str, str, float | str | None]], *, criterion: str, scheme: str = "linguistic"
) -> pl.DataFrame:
    """Make ANNOTATIONS from (item, annotator, pool, answer)."""
    return pl.DataFrame(
        [
            {
                "item_id": item, "annotator": annotator, "annotator_region": pool, "scheme": scheme,
                "criterion": criterion, "value": answer if isinstance(answer, (int, float)) else None,
                "choice": answer if isinstance(answer, str) else None, "flags": [],
            }
            for item, annotator, pool, answer in rows
        ],
        schema=ANNOTATIONS.schema,
    )  # fmt: skip
