"""What the numbers of an extractor may be called, what they may not be made from, and whose weights they are."""

from collections.abc import Mapping
from typing import Any

from culturekit.errors import UsageError

__all__ = ["called", "check_extractor", "licence_of"]

POOL3 = "inception features"
"""How the encoder is called that gives pool3 of InceptionV3 as it is."""

NOT_FEATURES: Mapping[str, str] = {
    "inception": "pool3 of unit length: FID and KID are defined on pool3 as it is",
    "inception probabilities": "class probabilities, which are no features",
}
"""Other vectors that the same network gives."""

PORTED = "TensorFlow"
"""How the revision of the weights begins that published FIDs were measured with."""

SHORT: Mapping[str, str] = {"frechet_distance": "FID", "kernel_distance": "KID"}
LONG: Mapping[str, str] = {"frechet_distance": "Fréchet distance", "kernel_distance": "Kernel distance"}

LICENCES: Mapping[str, str] = {
    "embedded": "no weights",
    "inception/TensorFlow": "published weights (TensorFlow's InceptionV3 of 2015-12-05): Apache-2.0",
    "inception/torchvision": "published weights (torchvision): BSD-3-Clause, trained on ImageNet",
}

UNKNOWN_LICENCE = "that of the weights, which say nothing of it"


def called(metric: str, encoder: Mapping[str, Any]) -> str:
    """Name a distance of distributions: FID and KID are those of pool3, anything else says on what it is."""
    name = str(encoder.get("name", "unknown"))
    if name != POOL3:
        return f"{LONG[metric]} on {name}"
    ported = str(encoder.get("revision", "")).startswith(PORTED)
    return SHORT[metric] if ported else f"{SHORT[metric]} with torchvision's weights, not the published one"


def check_extractor(encoder: Mapping[str, Any], *, where: str) -> None:
    """Refuse what InceptionV3 gives besides its features."""
    problem = NOT_FEATURES.get(str(encoder.get("name", "")))
    if problem is not None:
        raise UsageError(
            f"these vectors are {problem}",
            where=where,
            expected=f"vectors of {POOL3}",
            found=str(encoder["name"]),
            hint="Embed the pictures with inception:FILE?give=features.",
        )


def licence_of(encoder: Mapping[str, Any]) -> str:
    """Say under which licence the weights of an extractor are, where that is known."""
    name = str(encoder.get("name", "unknown"))
    if name.startswith("inception"):
        ported = str(encoder.get("revision", "")).startswith(PORTED)
        return LICENCES[f"inception/{PORTED if ported else 'torchvision'}"]
    return LICENCES.get(name, UNKNOWN_LICENCE)
