"""The regions of the study, under the names that files use for them."""

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from culturekit.metrics.arguments import argument_error

__all__ = ["NO_REGION", "REGION_CODES", "TICKED", "region_code", "with_region_codes"]

REGION_CODES: Mapping[str, str] = MappingProxyType(
    {"africa": "af", "af": "af", "europe": "eu", "eu": "eu", "southeastasia": "sea", "sea": "sea"}
)
"""Letters of a region's name -> the code that annotators' answers have for it."""

TICKED = frozenset({*REGION_CODES.values(), "na"})
"""What can be ticked; `na` is none, or cannot be determined."""

NO_REGION = ("", "na", "none", "nan", "null")
"""How files say that an image was made without a region in its prompt."""


def region_code(name: str) -> str | None:
    """Give the code of a region, however its words are written and put together; None for no known region."""
    return REGION_CODES.get("".join(letter for letter in name.casefold() if letter.isalpha()))


def with_region_codes(task: pl.DataFrame) -> pl.DataFrame:
    """Add `own` and `home`, the codes of an image's region and of where its annotator is; an image may have none.

    Raises:
        UsageError: a region is none of the study's, or an answer ticks what the form does not have.
    """
    for column in (name for name in ("object_regions", "background_regions") if name in task.columns):
        strange = sorted(set(task[column].explode().drop_nulls()) - TICKED)
        if strange:
            raise argument_error(column, f"lists of {', '.join(sorted(TICKED))}", strange[0])
    codes = {}
    for name in sorted({*task["region"].drop_nulls().unique(), *task["annotator_loc"].unique()}):
        code = region_code(name)
        if code is None:
            raise argument_error("region and annotator_loc", "Africa, Europe or Southeast Asia", name)
        codes[name] = code
    own, home = (pl.col(name).replace_strict(codes, return_dtype=pl.String) for name in ("region", "annotator_loc"))
    return task.with_columns(own=own, home=home)
