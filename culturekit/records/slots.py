"""The slots of a repeat: each holds one image, in whose order batches are made."""

import polars as pl

from culturekit.errors import UsageError
from culturekit.records.tables import repeated

__all__ = ["check_slots"]

SLOT = ("model", "concept", "prompt_id", "repeat", "slot")


def check_slots(images: pl.DataFrame) -> None:
    """Refuse two images in one slot, as of two generations put together: half a batch would show what the other does.

    Args:
        images: image_id, model, prompt_id, repeat, slot, and concept where that is known, of images that are there.
    """
    slot = [name for name in SLOT if name in images.columns]
    twice = repeated(images.drop_nulls(["prompt_id", "repeat", "slot"]), slot).sort(*slot, "image_id")
    if twice.height:
        one, other = twice["image_id"].head(2)
        raise UsageError(
            "two images are in one slot of a repeat", where=f"{twice.height:,} images, such as {one!r} and {other!r}",
            expected="one image in each slot of a model's prompt and repeat",
            hint="Score one generation of a model, or name each; where no slots are known leave them empty.",
        )  # fmt: skip
