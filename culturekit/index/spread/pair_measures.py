"""The measures of pairs of pictures that culturekit knows by name."""

from culturekit.index.spread.pair_measure import PairMeasure
from culturekit.registry import Entry, Registry

__all__ = ["PAIR_MEASURES"]

PAIR_MEASURES: Registry[PairMeasure] = Registry(
    "measure of pairs",
    [
        Entry(
            "lpips",
            "culturekit.index.spread.lpips_measure:make",
            "LPIPS on AlexNet, VGG-16 or SqueezeNet: lpips:FILE, or lpips:HEADS?backbone=FILE, both safetensors",
            options="culturekit.index.spread.lpips_measure:Options",
            extra="embed",
            packages=("torch",),
        ),
    ],
)
