"""The metric of C³: how well translated captions fit their originals, images and objects."""

from functools import partial

from culturekit.scores.catalog import describe

PAPER = "On the Cultural Gap in Text-to-Image Generation (C³), section 4.2, equations 3 to 6"

LABSE = "that of the text encoder (LaBSE: Apache-2.0)"
CLIP = "that of the image-text encoder (CLIP: MIT)"

INTERVAL = (
    "The interval is a t interval over items and speaks about captions like these; with fewer than 20 there is none."
)

COSINES = (
    "Cosines of two encoders have different ranges, LaBSE's near 0.6 to 0.9 for translations, CLIP's near 0.2 to 0.35 "
    "for captions: the terms do not weigh the same in the sum.",
)

cosines = partial(describe, low=-1.0, direction="higher", unit="cosine")
"""Describe an alignment that is a cosine."""

TEXT = cosines(
    "c3_text",
    "Text-text alignment of captions",
    "A_ST = mean over tokens s of the original of max over tokens t of the translation of cos(s, t)",
    paper=f"{PAPER}; on sentence vectors of LaBSE it is the baseline of that name",
    inputs=("folders of vectors, ids ITEM or ITEM#k: source, target",),
    pitfalls=(
        "With sentence vectors, as the authors use it, there is one token on each side and the metric is one cosine.",
        INTERVAL,
    ),
    licence=LABSE,
)

IMAGE = cosines(
    "c3_image",
    "Image-text alignment of captions",
    "A_IT = max over tokens t of the translation of cos(image, t)",
    paper=f"{PAPER}; on caption vectors of CLIP it is the baseline of that name",
    inputs=("folders of vectors, ids ITEM or ITEM#k: image, image_target",),
    pitfalls=(
        "CLIP saw English captions of Western pictures; it is weakest where the benchmark is hardest.",
        INTERVAL,
    ),
    licence=CLIP,
)

OBJECT = cosines(
    "c3_object",
    "Object-text alignment of captions",
    "A_OT = mean over detected objects o of max over tokens t of the translation of cos(o, t)",
    paper=PAPER,
    inputs=("folders of vectors, ids ITEM or ITEM#k: objects, target",),
    pitfalls=(
        "Objects are those of a detector above probability 0.5; what it has no word for, such as objects of the "
        "culture in question, is not asked of the caption.",
        "An image without detected objects has no such term: it is missing, not 0.",
        INTERVAL,
    ),
    licence=f"{LABSE}; that of the detector",
)

C3 = describe(
    "c3",
    "Multi-modal alignment of captions",
    "A = A_ST + A_IT + A_OT, the sum of the terms that are present",
    paper=PAPER,
    inputs=(*TEXT.inputs, *IMAGE.inputs, *OBJECT.inputs),
    pitfalls=(
        "A missing term is left out of the sum, so that items without objects stand lower than items with them. The "
        "manifest counts the items that lack each term.",
        *COSINES,
        INTERVAL,
    ),
    low=-3.0,
    high=3.0,
    direction="higher",
    unit="sum of cosines",
    licence=f"{LABSE}; {CLIP}; that of the detector",
)

CAPTIONS = (C3, IMAGE, OBJECT, TEXT)
"""In alphabetical order."""
