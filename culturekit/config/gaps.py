"""The part of a recipe that says between which groups of countries gaps are scored."""

from typing import Annotated

from pydantic import AfterValidator, Field

from culturekit.config.checks import existing_file
from culturekit.storage.yaml_model import StrictModel

__all__ = ["Gaps"]


class Gaps(StrictModel):
    """Gaps between groups of countries, over the scores of prompts that name countries.

    `scheme` is a grouping that comes with culturekit, such as `cultivate` (Global North and South), or one of `file`:
    YAML (scheme: group: [countries]) or CSV (scheme,group,country).
    """

    scheme: Annotated[str, Field(min_length=1)] = "cultivate"
    file: Annotated[str, AfterValidator(existing_file)] | None = None
