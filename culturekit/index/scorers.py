"""The quality scorers that culturekit knows by name."""

from culturekit.index.raters.quality import QualityScorer
from culturekit.registry import Entry, Registry

__all__ = ["SCORERS"]

SCORERS: Registry[QualityScorer] = Registry(
    "quality scorer",
    [
        Entry(
            "embedded",
            "culturekit.index.raters.embedded_quality:make",
            "clarity: sharp edges, contrast, little noise; without weights",
        ),
        Entry(
            "hpsv2",
            "culturekit.index.raters.preference_quality:make_hps",
            "Human Preference Score 2.0 or 2.1: the cosine of picture and prompt, by ViT-H-14 fine-tuned on choices",
            options="culturekit.index.raters.preference_quality:HpsOptions",
            extra="openclip",
            packages=("open_clip",),
        ),
        Entry(
            "pickscore",
            "culturekit.index.raters.preference_quality:make_pick",
            "PickScore: the cosine of picture and prompt times the model's scale, by CLIP fine-tuned on choices",
            options="culturekit.index.models.torch_device:TorchOptions",
            extra="embed",
            packages=("torch", "transformers"),
        ),
        Entry(
            "clipscore",
            "culturekit.index.raters.clip_quality:make",
            "CLIPScore by any encoder of pictures and texts: clipscore:SPEC",
        ),
    ],
)
