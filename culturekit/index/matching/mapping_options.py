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

    All channels of an index count alike, unless `weights` says how much each of them does.
    """

    k: Annotated[int, Field(ge=1, le=1000, description="Artifacts to keep per image.")] = 5
    aggregate: Annotated[Aggregate, Field(description="How an artifact's vectors become its score.")] = "max"
    weights: Annotated[
        Mapping[ChannelName, Weight] | None,
        Typed(read=weights_of, help="How much each channel counts, such as image=0.7,text=0.3. [all alike]"),
    ] = None
    within: Annotated[
        Within | None, Field(description="Compare each image only with artifacts of its own prompt's place.")
    ] = None
    concepts: Annotated[
        tuple[str, ...],
        Field(description="Compare only with artifacts of this concept; may be repeated."),
        Typed("concept"),
    ] = ()
    countries: Annotated[
        tuple[str, ...],
        Field(description="Compare only with artifacts of this country (ISO); may be repeated."),
        Typed("country"),
    ] = ()
    max_error: Annotated[
        float | None,
        Field(gt=0, lt=1, description="Abstain where matches would err more often than this share."),
        Typed("max-error"),
    ] = None


@dataclass(frozen=True, slots=True)
class MappingInputs:
    """What images are mapped with; where the encoder lies now and who searches decide no match."""

    index: Annotated[Path, Field(description="Folder that `index build` wrote.")]
    images: Annotated[Path, Field(description="Images table.")]
    prompts: Annotated[
        Path | None, Field(description="Prompts of the images: concept and country, where their table lacks them.")
    ] = None
    vectors: Annotated[Path | None, Field(description="Folder that `index embed` wrote for these images.")] = None
    calibration: Annotated[
        Path | None, Field(description="Images of known artifacts to calibrate on. [the index's references]")
    ] = None
    adjustment: Adjustment = Adjustment()  # noqa: RUF009 - frozen
    bank: Annotated[
        Path | None, Field(description="Images that --adjust learns from: balanced, and none that is mapped.")
    ] = None
    encoder: Annotated[
        str | None, Field(description="SPEC of the index's own encoder, where its weights lie elsewhere now.")
    ] = None
    search: Annotated[
        str, Field(description="Who searches: auto, numpy, faiss, torch, torch:cuda. The matches are the same.")
    ] = "auto"

    def __post_init__(self) -> None:
        """Take a correction with what it learns from, or neither."""
        if (self.adjustment.name is None) != (self.bank is None):
            raise UsageError("--adjust and --bank go together", expected="both or neither")
