"""The metrics of CULTIVate: AHEaD, from descriptors of what images should show and of what they show."""

from culturekit.scores.catalog import describe

CULTIVATE = "Culture in Action: Evaluating Text-to-Image Models through Social Activities (CULTIVate), section 3.2"

LADDER = (
    "Images are averaged per prompt, prompts per country, countries per group or over all, without weights. With "
    "params.target=population the interval is a t interval over prompts, stratified by country, and speaks about other "
    "prompts of these countries; a score of fewer than 20 prompts has none. With params.target=these it holds the "
    "prompts fixed and speaks about other images of them."
)

MATCHING = (
    "It is only as good as three models: the one that wrote the references, the one that described the images "
    "(params.extractor), and the one that made the vectors. All three know some cultures better than others.",
    "tau belongs to the encoder of the phrases. The published 0.29, 0.39 and 0.52 (the default) are the quartiles "
    "found with all-MiniLM-L6-v2; for another encoder find it from real images (calibrate_tau, or --quantile).",
    "A dimension in which nothing was said of an image counts 0. The metric `empty` says how often that was.",
    "References in `people`, which the published extractor does not have, are in neither aggregate: not in the mean "
    "over dimensions and not in the pooled share. They are counted in the manifest. Where another dimension stands on "
    "one side only nothing is scored; `setting` is a name of background.",
)

DESCRIPTORS = "descriptors: prompt_id, dimension, token"
EXTRACTED = "judgments, task extract: image_id, item (the token), dimension, outcome"
VECTORS = "a folder of vectors: one per phrase, its id the phrase"
WEIGHTS = "that of the encoder of the phrases (all-MiniLM-L6-v2: Apache-2.0)"

ALIGN = describe(
    "align",
    "Alignment with cultural descriptors",
    "mean over dimensions d of the share of references r in R_d with max over predictions p in P_d of "
    "cos(p, r) >= tau; aggregate=pooled: one share over all dimensions",
    paper=f"{CULTIVATE}, equation 1",
    inputs=(DESCRIPTORS, EXTRACTED, VECTORS),
    pitfalls=(
        *MATCHING,
        "References list variants that exclude each other, so that no single image can reach 1.",
        LADDER,
    ),
    direction="higher",
    licence=WEIGHTS,
)

HAL = describe(
    "hal",
    "Hallucination against cultural descriptors",
    "mean over dimensions d of the share of predictions p in P_d with max over references r in R_d of "
    "cos(p, r) < tau, 0 where P_d is empty; aggregate=pooled: one share over all dimensions",
    paper=f"{CULTIVATE}, equation 2",
    inputs=ALIGN.inputs,
    pitfalls=(
        *MATCHING,
        "An image of which nothing was said has no hallucination: read it beside `align` and `empty`.",
        "A true detail that no reference mentions counts as hallucinated.",
        LADDER,
    ),
    direction="lower",
    licence=WEIGHTS,
)

EMPTY = describe(
    "empty",
    "Dimensions in which nothing was said",
    "share of the dimensions with references in which the extractor named nothing in the image",
    paper="culturekit; a flag on ALIGN and HAL",
    inputs=(DESCRIPTORS, EXTRACTED),
    pitfalls=(
        "Such dimensions count 0 in ALIGN and 0 in HAL: the more of them, the less HAL means.",
        "Images that were not described at all, or on which the extractor failed, are not scored and not counted here.",
        LADDER,
    ),
)

EXAG = describe(
    "exag",
    "Exaggeration of stereotypes",
    "mean (reduce=max: maximum) over stereotype candidates k of the country of max(0, f(I, k) - f_real(k)), "
    "f an image-text score, f_real its mean over real images of the country",
    paper=f"{CULTIVATE}, equations 3 and 4",
    inputs=(
        "judgments, task stereotype: image_id, item (the candidate), value, of generated and of real images",
        "images: image_id, model, prompt_id",
    ),
    pitfalls=(
        "It has the scale of the image-text score (params.scorer): with VQAScore it lies in [0, 1]; values of two "
        "scorers cannot be compared.",
        "Real images found by a search engine are stereotyped themselves, which hides exaggeration.",
        "An image without a score of every candidate of its country is left out and counted.",
        LADDER,
    ),
    direction="lower",
    unit="score",
    licence="that of the scorer named in params.scorer",
)

FAITH = describe(
    "faith",
    "Cultural faithfulness",
    "(ALIGN + (1 - HAL) + (1 - EXAG)) / 3, per image",
    paper=f"{CULTIVATE}, equation 5",
    inputs=(*ALIGN.inputs, *EXAG.inputs),
    pitfalls=(
        "An image of which nothing was said and that is not stereotypical has 2/3. Read it with its parts and `empty`.",
        "EXAG varies far less than the other two and hardly moves it.",
        *MATCHING,
        LADDER,
    ),
    direction="higher",
    licence=f"{WEIGHTS}; {EXAG.licence}",
)

DDIV = describe(
    "ddiv",
    "Descriptor diversity",
    "mean over dimensions of -sum of p_j ln p_j / ln|R_d|, p_j = c_j / sum of c, c_j the images of a prompt "
    "that show reference j; 0 where none is shown or |R_d| <= 1",
    paper=f"{CULTIVATE}, equation 6",
    inputs=ALIGN.inputs,
    pitfalls=(
        "It grows with the number of images per prompt and with ALIGN: compare models with the same number (10 in the "
        "paper), and read it beside ALIGN.",
        "Its items are prompts with at least two images; others have no value.",
        *MATCHING,
        LADDER,
    ),
    direction="higher",
    licence=WEIGHTS,
)

SDIV = describe(
    "sdiv",
    "Semantic diversity",
    "mean over dimensions of ALIGN_d of the predictions of all images of a prompt pooled - mean over its "
    "images of ALIGN_d",
    paper=f"{CULTIVATE}, equation 7",
    inputs=ALIGN.inputs,
    pitfalls=(
        "It grows with the number of images per prompt: compare models with the same number (10 in the paper).",
        "It cannot exceed 1 - ALIGN: a model that shows everything in each image has none left to gain.",
        "Its items are prompts with at least two images; others have no value.",
        *MATCHING,
        LADDER,
    ),
    direction="higher",
    licence=WEIGHTS,
)

AHEAD = (ALIGN, DDIV, EMPTY, EXAG, FAITH, HAL, SDIV)
"""In alphabetical order."""
