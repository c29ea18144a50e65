"""The quality scorers that culturekit knows by name."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.contract import Contract, hold
from culturekit.index.raters.quality import QualityScorer
from culturekit.registry import Entry, Registry

__all__ = ["SCORERS"]


def values(_: object, answer: object, pictures: Sequence[object], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
    """Take one finite number for each picture."""
    del prompts
    kind = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
    fits = isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and answer.shape == (len(pictures),)
    hold(fits, f"float64 ({len(pictures)},)", kind)
    found: NDArray[np.float64] = np.asarray(answer)
    hold(bool(np.isfinite(found).all()), "finite numbers", "numbers that are not finite")
    return found


QUALITY = Contract(
    (QualityScorer,),
    answers={"score_prepared": values, "score": values},
    says=lambda scorer: {"parameters": dict(scorer.parameters)},
)

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
            "culturekit.index.raters.preference_quality:make_clip",
            "CLIPScore by any encoder of pictures and texts: clipscore:SPEC",
        ),
    ],
    point="quality",
    contract=QUALITY,
)
