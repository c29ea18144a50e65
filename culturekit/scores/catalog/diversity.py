"""The metrics of CUBE: quality, diversity of labels, and their product."""

from culturekit.scores.catalog import describe

CUBE = "Kannen et al. 2024, Beyond Aesthetics: Cultural Competence in Text-to-Image Models (CUBE), section 5"

MAPPING_PITFALLS = (
    "Labels come from a mapping of images to artifacts, and the mapping errs. A score of mapped labels is called "
    "mapped diversity; only a score adjusted by a human audit is called corrected. A worse encoder can raise the "
    "mapped diversity of a model that always shows the same. params.labels says which labels were used.",
    "VS/N depends on N: compare values of the same size only. The headline is size 8, as in the paper.",
    "A percentile bootstrap over images is broken for VS: resampling makes duplicates, duplicates lower diversity, "
    "and the interval lies below the truth. The intervals here are t intervals over repeats, stratified by prompt, "
    "and speak about these prompts.",
)

QUALITY = describe(
    "quality",
    "Quality",
    "mean of s(x), over the images of a repeat, then repeats, then prompts",
    paper=CUBE,
    inputs=("matches: image_id, model, concept, prompt_id, repeat", "quality: image_id, scorer, value"),
    pitfalls=(
        "The scale is the scorer's own: HPS-v2 lies near 0.2 to 0.35 and is no probability, PickScore near 20. Values "
        "of two scorers cannot be compared.",
        "Scorers judge looks, and prefer what they were trained on; none of them knows whether a picture is right "
        "about a culture.",
    ),
    low=float("-inf"),
    high=float("inf"),
    direction="higher",
    licence="that of the scorer named in params.scorer",
)

VS = describe(
    "vs",
    "Mapped diversity (Vendi score over batch size)",
    "VS/N with N = 8; VS = (sum of L_i^q)^(1/(1-q)), at q = 1 exp(-sum of L_i ln L_i), L_i the eigenvalues of "
    "K/N, k(i,j) = w1*[same continent] + w2*[same country] + w3*[same artifact]",
    paper=CUBE,
    inputs=("matches: image_id, model, concept, prompt_id, repeat, slot, rank, artifact, country, continent, method",),
    pitfalls=(
        *MAPPING_PITFALLS,
        "A picture that shows no culture has no label; under missing=distinct it is unlike every other and counts "
        "as diverse.",
    ),
    direction="higher",
)

QVS = describe(
    "qvs",
    "Quality-weighted mapped diversity",
    "qVS = mean of s(x) * VS/N, per batch of N = 8, then averaged like vs",
    paper=CUBE,
    inputs=(*VS.inputs, "quality: image_id, scorer, value"),
    pitfalls=(
        *MAPPING_PITFALLS,
        "It is a product: a dull model with handsome pictures and a diverse model with poor ones can tie. Read it "
        "beside quality and vs.",
        "It inherits the scale of the scorer: with HPS-v2 it cannot come near 1, with PickScore it lies above.",
    ),
    low=float("-inf"),
    high=float("inf"),
    direction="higher",
    licence=QUALITY.licence,
)

BOUNDS_PITFALLS = (
    *MAPPING_PITFALLS,
    "The bounds know nothing of the images that are missing; they say how far these could move the score, not how far "
    "they do. They hold no sampling error of their own: the interval beside each is that of its mean over prompts.",
    "With several levels of labels the lowest value is the lowest among repeats of what a batch shows; with one level "
    "nothing lower is possible. The highest is exact for every kernel.",
)

VS_BEST = describe(
    "vs_best",
    "Mapped diversity if every unknown image were unlike all others",
    "VS/N of each batch with its unknown images as labels of their own; params: unknown of images",
    paper=CUBE,
    inputs=("matches: as for vs, abstained", "images: image_id, model, prompt_id, concept, repeat, slot, status"),
    pitfalls=BOUNDS_PITFALLS,
)

VS_WORST = describe(
    "vs_worst",
    "Mapped diversity if every unknown image showed what lowers it most",
    "least VS/N of each batch with its unknown images as repeats of one it shows; params: unknown of images",
    paper=CUBE,
    inputs=VS_BEST.inputs,
    pitfalls=BOUNDS_PITFALLS,
)

SPREAD_INPUTS = ("images: image_id, model, prompt_id, repeat, slot, concept",)

SPREAD_PITFALLS = (
    "It knows what images look like, not what they show: eight dishes of one country photographed in eight ways are "
    "varied to it, eight countries drawn in one style are not. Read it beside vs.",
    "Noise looks unlike noise: images that show nothing can be the most varied of all.",
)

MEAN_COSINE = describe(
    "mean_cosine",
    "Mean cosine within a batch (called coverage on CUBE's slides)",
    "(1/N^2) sum over all i, j of cos(x_i, x_j), the diagonal included, per batch of N = 8, averaged like vs",
    paper=CUBE,
    inputs=(*SPREAD_INPUTS, "a folder of vectors of the images"),
    pitfalls=(
        "It has nothing to do with the coverage of PRDC (prdc_coverage). Low values mean varied images.",
        "The diagonal adds 1/N: compare values of the same batch size only. Encoders differ in how near to 1 all "
        "cosines lie: compare values of one encoder only.",
        *SPREAD_PITFALLS,
    ),
    direction="lower",
    unit="cosine",
    licence="that of the encoder named in params.encoder",
)

MEAN_LPIPS = describe(
    "mean_lpips",
    "Mean LPIPS within a batch",
    "mean over the N(N-1)/2 pairs of a batch of N = 8 of LPIPS(x_i, x_j), averaged like vs",
    paper="Zhang et al. 2018, The Unreasonable Effectiveness of Deep Features as a Perceptual Metric",
    inputs=(*SPREAD_INPUTS, "pair_distances: measure, model, prompt_id, repeat, batch, distance"),
    pitfalls=(
        "Networks (AlexNet, VGG-16, SqueezeNet) and the size of the pictures give different numbers: params.measure "
        "says which, and only scores of one measure compare.",
        *SPREAD_PITFALLS,
    ),
    high=float("inf"),
    direction="higher",
    unit="distance",
    licence="that of the weights named in params.measure (published heads: BSD-2-Clause)",
)

DIVERSITY = (MEAN_COSINE, MEAN_LPIPS, QUALITY, QVS, VS, VS_BEST, VS_WORST)
"""In alphabetical order."""
