"""CLIPScore (Hessel and others, 2021): 2.5 times the cosine of picture and prompt, never below 0."""

from dataclasses import replace
from typing import cast

from culturekit.errors import UsageError
from culturekit.index.encoder import ImageEncoder, TextEncoder
from culturekit.index.encoders import ENCODERS
from culturekit.index.raters.cosine_quality import CosineQuality, PairEncoder
from culturekit.index.raters.quality import QualityScorer
from culturekit.registry import Spec, parse_spec

__all__ = ["make"]

WEIGHT = 2.5


def make(spec: Spec) -> QualityScorer:
    """Make the scorer `clipscore:SPEC`, options of the encoder included; `factor` replaces 2.5."""
    if not spec.target:
        raise UsageError(
            "CLIPScore needs an encoder",
            where=str(spec),
            expected="clipscore:SPEC, such as clipscore:transformers:FOLDER",
        )
    options = dict(spec.options)
    given = options.pop("factor", str(WEIGHT))
    try:
        factor = float(given)
    except ValueError as error:
        raise UsageError("factor is a number", where=str(spec), found=given) from error
    encoder = ENCODERS.make(replace(parse_spec(spec.target), options=options))
    if not isinstance(encoder, ImageEncoder) or not isinstance(encoder, TextEncoder):
        raise UsageError(
            "CLIPScore needs an encoder of pictures and texts", where=spec.target, found=encoder.identity.name
        )
    return CosineQuality(
        "clipscore",
        cast("PairEncoder", encoder),
        factor,
        floor=True,
        caveat="CLIPScore says how well a picture goes with its prompt for one model; compare values of one encoder.",
    )
