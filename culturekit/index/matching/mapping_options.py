"""How images are mapped, and what with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.matching.mapping_scopes import Within
from culturekit.index.search.adjustment import Adjustment
from culturekit.records.choices import Aggregate, ChannelName
from culturekit.stages.stage_command import Typed

__all__ = ["MappingInputs", "MappingOptions", "weights_of"]

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def weights_of(text: str) -> dict[ChannelName, float]:
    """Read weights such as `image=0.7,text=0.3`."""
    found: dict[ChannelName, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if name not in {"image", "text"} or name in found or not 0 <= weight < float("inf"):
            raise UsageError(
                "weights cannot be read", where="--weights", expected="such as image=0.7,text=0.3", found=repr(text)
            )
        found[cast("ChannelName", name)] = weight
    return found


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How images are mapped.

    Attributes:
        k: artifacts to keep per image.
        aggregate: how an artifact's vectors of a channel become one score.
        weights: how much each channel counts; all of an index's count alike when None.
        within: compare an image only with artifacts of its prompt's concept, country, or both.
        concepts: compare all images only with artifacts of these; with all when empty.
        countries: the same.
        max_error: abstain where the margin is too small for an error of at most this; never when None.
    """

    k: Annotated[int, Field(ge=1, le=1000)] = 5
    aggregate: Annotated[Aggregate, Typed(help="How an artifact's vectors become its score.")] = "max"
    weights: Annotated[
        Mapping[ChannelName, Weight] | None,
        Typed(read=weights_of, help="How much each channel counts, such as image=0.7,text=0.3. [all alike]"),
    ] = None
    within: Within | None = None
    concepts: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    max_error: Annotated[float, Field(gt=0, lt=1)] | None = None


@dataclass(frozen=True, slots=True)
class MappingInputs:
    """What images are mapped with.

    Attributes:
        index: folder of the index.
        images: their table.
        prompts: says the concept and country of an image's prompt where its table does not.
        vectors: folder of the images' vectors, where they are embedded already.
        calibration: table of images that show known artifacts, on which abstention is calibrated; the references of
            the index are when None.
        adjustment: a correction for hubs.
        bank: table of the images that it learns from.
        encoder: SPEC of the index's encoder, where it lies somewhere else now.
        search: who searches; it decides no match.
    """

    index: Path
    images: Path
    prompts: Path | None = None
    vectors: Path | None = None
    calibration: Path | None = None
    adjustment: Adjustment | None = None
    bank: Path | None = None
    encoder: str | None = None
    search: str = "auto"
