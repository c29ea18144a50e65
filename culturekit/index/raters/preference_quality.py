"""Scorers by a cosine of picture and prompt: CLIPScore, Human Preference Score 2 and PickScore."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.core.model_files import read_header
from culturekit.core.registry import Spec, parse_spec
from culturekit.core.torch_places import needed_package
from culturekit.index.encoder import ENCODERS, ImageEncoder, Prepared, TextEncoder, TooLong
from culturekit.index.models.open_clip_encoder import OpenClipEncoder, Options, find_source
from culturekit.index.models.torch_device import TorchOptions
from culturekit.index.raters.quality import QualityScorer

_Values: TypeAlias = NDArray[np.float64]


class _PairEncoder(ImageEncoder, TextEncoder, Protocol):
    """Puts pictures and texts into one space."""


@dataclass(frozen=True, slots=True)
class _CosineQuality:
    """Scores by `factor` times the cosine, negative ones as 0 where `floor` says so."""

    name: str  # as it stands in the `quality` table
    encoder: _PairEncoder  # of pictures and texts
    factor: float  # what the cosine is multiplied with
    floor: bool  # whether a negative cosine counts as 0
    caveat: str  # what a reader must know

    @property
    def needs_prompts(self) -> bool:
        return True

    @property
    def batch_size(self) -> int:
        """As many as the encoder encodes at once."""
        return self.encoder.batch_size

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The encoder, and what is done to the cosine."""
        identity = self.encoder.identity.as_options()
        return {**identity, "encoder": identity["name"], "name": self.name, "factor": self.factor, "floor": self.floor}

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        return self.encoder.prepare(picture)

    def score_prepared(self, pictures: Sequence[Prepared], prompts: Sequence[str] = ()) -> _Values:
        """Score each prepared picture beside its prompt; a prompt that several share is encoded once."""
        if len(pictures) != len(prompts):
            raise ValueError(f"a prompt per picture: {len(pictures)} pictures, {len(prompts)} prompts")
        if not pictures:
            return np.empty(0, np.float64)
        different = list(dict.fromkeys(prompts))
        row_of = {text: row for row, text in enumerate(different)}
        texts = self.encoder.encode_texts(different)[[row_of[text] for text in prompts]]
        seen = self.encoder.encode_prepared(pictures)
        cosines: _Values = np.einsum("nd,nd->n", seen.astype(np.float64), texts.astype(np.float64))
        return (cosines.clip(min=0) if self.floor else cosines) * self.factor

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> _Values:
        return self.score_prepared([self.prepare(picture) for picture in pictures], prompts)

    def too_long(self, prompts: Sequence[str]) -> list[TooLong]:
        """List the prompts that the encoder reads only in part."""
        return self.encoder.too_long(prompts)


_WEIGHT = 2.5


def make_clip(spec: Spec) -> QualityScorer:
    """Make the scorer `clipscore:SPEC`, options of the encoder included; `factor` replaces 2.5."""
    if not spec.target:
        raise UsageError(
            "CLIPScore needs an encoder",
            where=str(spec),
            expected="clipscore:SPEC, such as clipscore:transformers:FOLDER",
        )
    options = dict(spec.options)
    given = options.pop("factor", str(_WEIGHT))
    try:
        factor = float(given)
    except ValueError as error:
        raise UsageError("factor is a number", where=str(spec), found=given) from error
    encoder = ENCODERS.make(replace(parse_spec(spec.target), options=options))
    if not isinstance(encoder, ImageEncoder) or not isinstance(encoder, TextEncoder):
        raise UsageError(
            "CLIPScore needs an encoder of pictures and texts", where=spec.target, found=encoder.identity.name
        )
    return _CosineQuality(
        "clipscore",
        cast("_PairEncoder", encoder),
        factor,
        floor=True,
        caveat="CLIPScore says how well a picture goes with its prompt for one model; compare values of one encoder.",
    )


_HPS_MODEL = "ViT-H-14"
# HPS looks at the whole picture, its longer side resized, with black around it; other CLIPs look at the middle
_AS_PUBLISHED = {"resize_mode": "longest", "fill_color": 0, "interpolation": "bicubic"}

_PREFERENCES = (
    "The score was learned from what people preferred among generated pictures, few of whom knew the culture shown: "
    "it rewards the looks that they liked."
)


@dataclass(frozen=True, slots=True)
class HpsOptions(TorchOptions):
    """How the scorer is run.

    Attributes:
        model: of a file of weights, the name of open_clip's model.
        version: 2.0 or 2.1; weights that culturekit converted say it themselves.
    """

    model: str = ""
    version: Literal["", "2.0", "2.1"] = ""


def make_hps(spec: Spec) -> QualityScorer:
    """Make the scorer of a file of weights, or of a folder as open_clip writes it."""
    options = spec.read(HpsOptions)
    package = needed_package("open_clip", kind="quality scorer hpsv2", extra="openclip")
    path = Path(spec.target).expanduser()
    model = options.model or (_HPS_MODEL if path.is_file() else "")
    source = find_source(spec, model=model, pretrained="", revision=options.revision, package=package)
    source = replace(source, preprocessing={**source.preprocessing, **_AS_PUBLISHED})
    settings = Options(options.device, options.dtype, options.batch, options.revision)
    version = _version_of(source.weights, options.version, spec)
    return _CosineQuality(
        f"hpsv2{version}", OpenClipEncoder(source, settings, package=package), 1.0, floor=False, caveat=_PREFERENCES
    )


def _version_of(weights: Path, given: str, spec: Spec) -> str:
    """Name the version, as `.0` or `.1`; nothing where neither the weights nor the SPEC say it."""
    noted = read_header(weights).notes.get("culturekit.kind", "")
    found = noted.removeprefix("hpsv") if noted.startswith("hpsv") else ""
    if found and given and found != given:
        raise UsageError("the weights are of another version", where=str(spec), expected=given, found=found)
    return (found or given).removeprefix("2")


def make_pick(spec: Spec) -> QualityScorer:
    """Make the scorer of a folder of transformers: PickScore is CLIP's own score, scale included."""
    encoder = ENCODERS.make(replace(spec, name="transformers"))
    scale = getattr(encoder, "logit_scale", None)
    if not isinstance(encoder, ImageEncoder) or not isinstance(encoder, TextEncoder) or scale is None:
        raise UsageError(
            "PickScore needs a CLIP", where=str(spec), expected="pickscore:FOLDER with a CLIP of transformers"
        )
    return _CosineQuality("pickscore", cast("_PairEncoder", encoder), scale, floor=False, caveat=_PREFERENCES)
