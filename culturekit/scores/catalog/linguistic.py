"""The metrics of linguistic and cultural biases: tones, dialects, neutral prompts, question pairs, ratings."""

from dataclasses import replace

from culturekit.scores.catalog import Metric, describe

PAPER = "Linguistic and Cultural Biases in Text-to-Image Generative Models (Cheung, Couture and Zhou 2023)"

CLIP = "that of the image-text encoder (CLIP: MIT)"

IMAGES = "images: image_id, path, prompt_id, model"
PROMPTS = "prompts: prompt_id, group, and the columns that pair prompts"
ANNOTATIONS = "annotations: item_id, annotator, annotator_region, scheme, criterion, value, choice"

BY_PROMPT = (
    "The interval is t over prompts where there are at least 20, and speaks about other prompts; with fewer it holds "
    "the prompts fixed and is t over the images of each (params.target)."
)

SKIN = (
    "params.warning must be read with the number. detector=dall-eval, the published rule, cannot see dark skin: only "
    "four of the ten Monk swatches (4 to 7) pass it, so dark-skinned people are skipped, or counted by lighter things "
    "around them. detector=ita sees all ten.",
    "Both rules know colours only: sand, wood, bread and many walls pass as skin. Without a finder of people the tone "
    "is that of whatever in the picture has the colour of skin. Light changes it, too.",
    "params.images_left_out counts the pictures in which no pixel passes; they are in no histogram.",
)


TONE_SHARE = describe(
    "tone_share",
    "Pictures with a skin tone",
    "share of pictures whose skin is nearest to tone params.tone of the Monk scale: mean RGB of the pixels that pass, "
    "nearest swatch by L1, the first on ties",
    paper=f"{PAPER}, section 3.1.2",
    inputs=(IMAGES, ANNOTATIONS),
    pitfalls=(*SKIN, "The interval is Wilson's for pictures that go together by prompt."),
)

TONE_STD = describe(
    "tone_std",
    "Unevenness of skin tones (STD)",
    "population standard deviation over the ten shares of the histogram",
    paper=f"{PAPER}, equation 2 and table 2",
    inputs=(IMAGES, ANNOTATIONS),
    pitfalls=(
        *SKIN,
        "0.3 is one tone only; the paper's table prints that row with STD and MAD swapped.",
        "Few pictures cannot fill ten tones: below 100 or so the number is too high whatever the model does. Compare "
        "equal numbers of pictures. The interval (jackknife over prompts, bias allowed for) holds the truth 93 to 98 "
        "times in 100 in simulation, but 7 in 10 where the truth is exactly even.",
        "An even histogram over tones is no goal in itself: neither prompts nor people are spread evenly over them.",
    ),
    high=0.3,
    direction="lower",
    unit="standard deviation",
)

TONE_MAD = describe(
    "tone_mad",
    "Unevenness of skin tones (MAD)",
    "mean absolute deviation over the ten shares of the histogram",
    paper=f"{PAPER}, equation 3 and table 2",
    inputs=(IMAGES, ANNOTATIONS),
    pitfalls=(
        *TONE_STD.pitfalls[:3],
        "0.18 is the most it can be; one cell of the paper's table (0.1808) lies above.",
        *TONE_STD.pitfalls[4:],
    ),
    high=0.18,
    direction="lower",
    unit="mean absolute deviation",
)

MEAN_TONE = describe(
    "mean_tone",
    "Mean skin tone",
    "mean over prompts, of their pictures' mean, of the tone on the Monk scale, 1 lightest to 10 darkest",
    paper=f"{PAPER}, section 3.1.2 (the scale)",
    inputs=(IMAGES, ANNOTATIONS),
    pitfalls=(
        *SKIN,
        "The tones are ranks: their mean hides whether pictures are all alike or at both ends.",
        BY_PROMPT,
    ),
    low=1.0,
    high=10.0,
    unit="tone",
)

DIALECT_SCORE = describe(
    "dialect_score",
    "Score of a dialect's pictures",
    "mean over prompts of the dialect (group) of the mean of its pictures' params.of",
    paper=f"{PAPER}, section 3.1.2 and table 1",
    inputs=("quality: image_id, scorer, value", IMAGES, PROMPTS, ANNOTATIONS),
    pitfalls=(
        "The scale is the scorer's own: CLIPScore at scale 1, as in the paper's table; its equation has 100.",
        "CLIP has read far more standard English: part of the gap is the judge's own.",
        BY_PROMPT,
    ),
    low=float("-inf"),
    high=float("inf"),
    unit="score",
    licence=CLIP,
)

DIALECT_GAP = describe(
    "dialect_gap",
    "Gap between dialects",
    "mean over pairs of prompts of the standard dialect's score minus the other's (params.of: a scorer, or `correct`, "
    "the share of pictures that people call correct)",
    paper=f"{PAPER}, section 3.1.2 and table 1",
    inputs=DIALECT_SCORE.inputs,
    pitfalls=(
        "Only pairs that both dialects have enter; the interval is t over pairs, p (params.p) that of sign flips.",
        *DIALECT_SCORE.pitfalls[:2],
    ),
    low=float("-inf"),
    high=float("inf"),
    unit="difference",
    licence=CLIP,
)

NEUTRAL_SIMILARITY = describe(
    "neutral_similarity",
    "Likeness of neutral pictures and a group's",
    "mean over prompts of the mean cosine of all pairs of a neutral picture and a picture of the same prompt with the "
    "group named: a row of the heat map",
    paper=f"{PAPER}, section 3.2.3 and figure 4",
    inputs=("folder of vectors of images", IMAGES, PROMPTS),
    pitfalls=(
        "Cosines of an encoder have a narrow range of their own; read groups against each other.",
        "The interval is t over prompts.",
    ),
    low=-1.0,
    unit="cosine",
    licence=CLIP,
)

NEUTRAL_STD = describe(
    "neutral_std",
    "Unevenness of neutral pictures over groups (STD)",
    "mean over prompts of the population standard deviation over groups of neutral similarities",
    paper=f"{PAPER}, table 3 and figure 8",
    inputs=NEUTRAL_SIMILARITY.inputs,
    pitfalls=(
        "neutral_std_of_means, the spread of the heat map itself, averages out what differs between prompts.",
        "The interval is t over prompts.",
    ),
    direction="lower",
    unit="standard deviation",
    licence=CLIP,
)

NEUTRAL_MAD = describe(
    "neutral_mad",
    "Unevenness of neutral pictures over groups (MAD)",
    "mean over prompts of the mean absolute deviation over groups of neutral similarities",
    paper=f"{PAPER}, table 3",
    inputs=NEUTRAL_SIMILARITY.inputs,
    pitfalls=(
        "The paper's MAD column cannot come from the same six values as its STD: MAD is at least 0.577 of STD over "
        "six values, and the table has 0.27 to 0.41.",
        *NEUTRAL_STD.pitfalls,
    ),
    direction="lower",
    unit="mean absolute deviation",
    licence=CLIP,
)

QUESTION_SHARE = describe(
    "question_share",
    "Share of the first of two captions",
    "mean over prompts, of their pictures' mean, of the softmax share of params.first against params.second; cosines "
    "times params.logit_scale",
    paper=f"{PAPER}, section 3.4.2 and table 5",
    inputs=("folders of vectors of images and of captions", IMAGES, PROMPTS),
    pitfalls=(
        "Two wordings of one question give different answers: the paper's own pair (environment, setting) differs by "
        "up to 0.33. Report both.",
        "question_sd, which the paper prints beside it, is how far pictures lie apart, and no interval.",
        BY_PROMPT,
    ),
    licence=CLIP,
)


QUESTION_SD = describe(
    "question_sd",
    "Deviation of the share of the first of two captions",
    "sample standard deviation (ddof = 1) over pictures of question_share",
    paper=f"{PAPER}, table 5",
    inputs=QUESTION_SHARE.inputs,
    pitfalls=("It says how far pictures lie apart, not how certain their mean is.",),
    unit="standard deviation",
    licence=CLIP,
)


def of_means(metric: Metric, name: str, title: str, formula: str) -> Metric:
    """Describe the spread of the heat map itself."""
    pitfalls = (
        "It is never above the mean of the prompts' own spreads, because what differs between prompts averages out.",
        "params.prompts_ranked lists prompts from the lowest STD to the highest.",
    )
    return replace(metric, name=name, title=title, formula=formula, pitfalls=pitfalls)


NEUTRAL_STD_OF_MEANS = of_means(
    NEUTRAL_STD,
    "neutral_std_of_means",
    "Unevenness of the heat map (STD)",
    "population standard deviation over groups of the mean neutral similarity",
)

NEUTRAL_MAD_OF_MEANS = of_means(
    NEUTRAL_MAD,
    "neutral_mad_of_means",
    "Unevenness of the heat map (MAD)",
    "mean absolute deviation over groups of the mean neutral similarity",
)


LINGUISTIC = (
    DIALECT_GAP, DIALECT_SCORE, MEAN_TONE, NEUTRAL_MAD, NEUTRAL_MAD_OF_MEANS, NEUTRAL_SIMILARITY,
    NEUTRAL_STD, NEUTRAL_STD_OF_MEANS, QUESTION_SD, QUESTION_SHARE, TONE_MAD,
    TONE_SHARE, TONE_STD,
)  # fmt: skip
"""In alphabetical order."""
