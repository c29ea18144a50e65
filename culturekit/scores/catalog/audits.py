"""What an audit says by itself, before it corrects anything."""

from functools import partial

from culturekit.scores.catalog import describe

INTERVAL = (
    "The interval is t over prompts under the target population, which needs 20 prompts, and over images within "
    "prompts under these. It does not speak about other judges, and how wrong the judge is stands in no interval."
)

DSG = describe(
    "dsg",
    "Davidsonian scene graph score",
    "mean over images of (questions answered yes whose parents were all answered yes) / (all questions, or "
    "under params.denominator valid those whose parents were all answered yes)",
    paper="Cho et al. 2024, Davidsonian Scene Graph: Improving Reliability in Fine-grained Evaluation for T2I "
    "Generation",
    inputs=(
        "judgments, task dsg: image_id, judge, item (the question), choice (yes or no), outcome",
        "questions: prompt_id, question_id, parents",
        "images: image_id, model, prompt_id",
    ),
    pitfalls=(
        "Two models stand behind it, one that wrote the questions and one that answered them. A judge that does not "
        "know a dish or a garment answers no, and the picture is blamed.",
        "A question whose parent was answered no counts 0, by the parent's own answer: what hangs below a missing "
        "object is lost with it. The valid denominator asks only how well the rest is shown, and rewards leaving much "
        "out.",
        "An image with an unanswered question has no score; the manifest counts them.",
        INTERVAL,
    ),
    direction="higher",
    licence="that of the judge named in params.judge",
)

VQASCORE = describe(
    "vqascore",
    "VQAScore",
    'mean over images of P("Yes" | image, "Does this figure show {text}?")',
    paper="Lin et al. 2024, Evaluating Text-to-Visual Generation with Image-to-Text Generation",
    inputs=("judgments, task vqascore: image_id, judge, value, outcome", "images: image_id, model, prompt_id"),
    pitfalls=(
        'P("Yes") is a model\'s confidence, not the share of people who would say yes; two judges are on two scales.',
        "What the probability is a share of matters: of yes and no alone it is larger than of the whole vocabulary.",
        INTERVAL,
    ),
    direction="higher",
    unit="probability",
    licence=DSG.licence,
)

QUESTIONS = (DSG, VQASCORE)
"""In alphabetical order of their names."""


WILSON = "Wilson 1927; limits over concepts: Zou and Donner 2008"


share = partial(describe, inputs=("matches", "audits"))
"""Describe a share of images; concepts are weighed by their images."""

MAPPING_ACCURACY = share(
    "mapping_accuracy",
    "How often the mapping is right",
    "share of audited images whose nearest artifact is, at params.level, what people saw; one that shows nothing is "
    "never right; concepts weighed by their images",
    paper=WILSON,
    pitfalls=(
        "It speaks of this model's images: another model's may be easier, or harder.",
        "An accurate mapping can rank models wrongly, where it errs towards few countries.",
    ),
    direction="higher",
)

SHARE_WITHOUT_CULTURE = share(
    "share_without_culture",
    "Share of images without culture",
    "share of audited images in which people saw no artifact of any culture; concepts weighed by their images",
    paper=WILSON,
    pitfalls=("People recognise what they know: nothing recognised is not nothing shown.",),
    direction="lower",
)

SHOWN_SHARE = share(
    "shown_share",
    "Share of images that show a country",
    "mean of (said - w mapped) over audited images + w share of all images mapped to it, w = clip(cov / var, 0, 1); "
    "concepts weighed by their images",
    paper="Angelopoulos, Duchi and Zrnic 2023 (PPI++)",
    pitfalls=("Each country is estimated by itself: the shares need not add up to 1.",),
)

AUDITS = (MAPPING_ACCURACY, SHARE_WITHOUT_CULTURE, SHOWN_SHARE)
"""In alphabetical order of their names."""
