"""The metrics of realism: neighbourhoods, distances of distributions, classifiers, image and text."""

from functools import partial

from culturekit.scores.catalog import describe

UNBOUNDED = float("inf")

PRDC_PAPER = "Naeem et al. 2020, Reliable Fidelity and Diversity Metrics for Generative Models"
PR_PAPER = "Kynkäänniemi et al. 2019, Improved Precision and Recall Metric for Assessing Generative Models"
INCLUSION = "Hall et al. 2024, Towards Geographic Inclusion in the Evaluation of Text-to-Image Models"
DIG_IN = (
    "Hall et al. 2023, DIG In: Evaluating Disparities in Image Generations with Indicators for Geographic Diversity"
)
HESSEL = "Hessel et al. 2021, CLIPScore: A Reference-free Evaluation Metric for Image Captioning"

EXTRACTOR = "that of the extractor named in params.encoder"

VECTORS = (
    "two folders of vectors of one extractor: real and generated images",
    "images: image_id, model, prompt_id, and concept and country for levels",
)

COMMON = (
    "The extractor decides. Features of Inception, CLIP and DINOv2 give different numbers and different rankings; "
    "params.encoder says which it was, and only scores of one encoder compare.",
    "Real images are no neutral ground: what the reference set lacks counts as unreal. params.n_real and "
    "params.references say what was compared with.",
)

ON_FAKES = (
    "The interval holds the real images fixed. Under the target population it speaks about other prompts and needs 20 "
    "of them; under these, about other images of these prompts.",
)

SIZE = (
    "It depends on how many images there are on both sides (params.n_real, params.n_fake), and on k: compare equal "
    "numbers only.",
)


share = partial(describe, inputs=VECTORS, direction="higher", licence=EXTRACTOR)
"""Describe one of the four numbers of PRDC."""

PRECISION = share(
    "prdc_precision",
    "Precision",
    "share of generated images y with |y - x| < r(x) for some real x; r(x) is the distance from x to its k-th nearest "
    "real neighbour",
    paper=PR_PAPER,
    pitfalls=(
        "One real outlier has a large neighbourhood, and whatever falls into it counts as real: read prdc_density "
        "beside it.",
        "r shrinks as real images are added: compare equal params.n_real only.",
        *ON_FAKES,
        *COMMON,
    ),
)

DENSITY = share(
    "prdc_density",
    "Density",
    "mean over generated images of the number of real neighbourhoods that each lies in, over k",
    paper=PRDC_PAPER,
    pitfalls=("It is no share and may exceed 1: many images of the same common picture raise it.", *ON_FAKES, *COMMON),
    high=UNBOUNDED,
    unit="ratio",
)

RECALL = share(
    "prdc_recall",
    "Recall",
    "share of real images x with |x - y| < r(y) for some generated y; r(y) is the distance from y to its k-th nearest "
    "generated neighbour",
    paper=PR_PAPER,
    pitfalls=(
        "Scattered generated images have large neighbourhoods, so nonsense can have high recall: prdc_coverage cannot "
        "be raised that way.",
        *SIZE,
        "The interval speaks about other real images like these, with the generated ones held fixed. How recall "
        "varies with the generated images it does not say: resampling them makes copies, and copies have radius zero.",
        *COMMON,
    ),
)

COVERAGE = share(
    "prdc_coverage",
    "Coverage of real images",
    "share of real images x with |x - y| < r(x) for some generated y",
    paper=PRDC_PAPER,
    pitfalls=(
        "It is not the mean cosine that some call coverage.",
        *SIZE,
        "The interval is a jackknife over prompts (target population) or images (these), the real images fixed. It is "
        "too wide rather than too narrow. A bootstrap would lie below the truth, since copies cover nothing new.",
        *COMMON,
    ),
)

FRECHET = describe(
    "frechet_distance",
    "Fréchet distance (FID on Inception features)",
    "|mu_a - mu_b|^2 + tr(S_a) + tr(S_b) - 2 tr((S_a S_b)^(1/2)), covariances with ddof = 1",
    paper="Heusel et al. 2017, GANs Trained by a Two Time-Scale Update Rule Converge to a Local Nash Equilibrium",
    inputs=VECTORS,
    pitfalls=(
        "It is biased upwards, by more the fewer images there are and the wider the features: compare equal "
        "params.n_fake and params.n_real only. With fewer images than dimensions most of the number is bias.",
        "There is no interval: the bias depends on n, and the images of a bootstrap resample, of which a third are "
        "missing and others doubled, have more of it. kernel_distance has no bias and has an interval.",
        "FID is the name for pool3 features of one Inception network after one way of resizing; with others this is a "
        "Fréchet distance, and another number.",
        *COMMON,
    ),
    high=UNBOUNDED,
    direction="lower",
    unit="squared distance",
    licence=EXTRACTOR,
)

KERNEL = describe(
    "kernel_distance",
    "Kernel distance (KID on Inception features)",
    "unbiased MMD^2 of the whole sets with k(x, y) = (x.y / dim + 1)^3",
    paper="Bińkowski et al. 2018, Demystifying MMD GANs",
    inputs=VECTORS,
    pitfalls=(
        "Unbiased, it can be a little below 0. Some tables print it times 1,000.",
        "Code that averages over random subsets of 1,000 gives the same number with more noise; its spread over "
        "subsets is no standard error of the score.",
        "The interval is a jackknife over prompts (params.target population) or images, on both sides. Near 0 it is "
        "too wide rather than too narrow.",
        *COMMON,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    direction="lower",
    unit="squared distance",
    licence=EXTRACTOR,
)

INCEPTION = describe(
    "inception_score",
    "Inception score",
    "mean over splits of exp(mean over images of KL(p(y|x) || p(y))); p(y) the mean of the split",
    paper="Salimans et al. 2016, Improved Techniques for Training GANs",
    inputs=("a folder of class probabilities, ids being image ids", "images: image_id, model"),
    pitfalls=(
        "Classes are those of ImageNet: dishes, garments and buildings that it has no class for are scored by what "
        "they are mistaken for.",
        "It grows with the images per split; ten splits of 5,000 are customary. There is no interval: the values "
        "beside the score are its splits, whose standard deviation (ddof = 0) papers print behind a plus-minus sign.",
        "Splits are runs of images in order of their ids. Where ids follow prompts or objects, each split has few of "
        "them, and the score is too low.",
        "It never looks at real images.",
    ),
    low=1.0,
    high=UNBOUNDED,
    direction="higher",
    unit="effective classes",
    licence="that of the classifier named in params.encoder",
)

TEXT_INPUTS = (
    "two folders of vectors of one image-text encoder: images, and texts",
    "images: image_id, model, prompt_id, concept, country",
)

CLIP_INTERVAL = (
    "The interval is t over prompts under the target population, which needs 20 prompts, and over images within "
    "prompts under these.",
)


clip = partial(
    describe,
    inputs=TEXT_INPUTS,
    direction="higher",
    licence="that of the encoder named in params.encoder (CLIP: MIT)",
)
"""Describe a metric on cosines of images and texts."""

CLIP_SCORE = clip(
    "clip_score",
    "CLIPScore of prompts",
    "mean over images of max(100 cos(image, prompt), 0), each pair clamped by itself",
    paper=HESSEL,
    pitfalls=(
        "The paper's scale is 2.5, most code's 100; params.scale says which. Values of two encoders cannot be "
        "compared.",
        "Encoders saw English captions of Western pictures, and read names of places as stereotypes of them.",
        *CLIP_INTERVAL,
    ),
    high=100.0,
    unit="points",
)

REGION = clip(
    "region_clip_score",
    "Region-CLIPScore",
    "mean over images of max(cos(image, name of the region or country), 0)",
    paper=INCLUSION,
    pitfalls=(
        "It follows people's view of a region poorly, worst for South-East Asia, and favours stereotypes over real "
        "photographs: the paper advises against it. More of it is not better.",
        *CLIP_INTERVAL,
    ),
    direction="neither",
    unit="cosine",
)

RECOGNISED = clip(
    "region_recognised",
    "Regions recognised",
    "share of images whose cosine with the name of their own region or country is above those with all others "
    "(params.among)",
    paper=INCLUSION,
    pitfalls=(
        "An encoder recognises clichés more readily than everyday images: hold it against people who live there.",
        "It falls with the number of regions to choose from. The interval is that of object_presence.",
    ),
)

OBJECT = clip(
    "object_clip_score",
    "Object-CLIPScore",
    "mean over images of max(cos(image, name of the object), 0)",
    paper=INCLUSION,
    pitfalls=(
        "Above a threshold it says no more: an image with a higher score shows the object no better. Read "
        "object_presence.",
        *CLIP_INTERVAL,
    ),
    unit="cosine",
)

PRESENCE = clip(
    "object_presence",
    "Objects shown",
    "share of images with cos(image, name of the object) >= params.threshold",
    paper=INCLUSION,
    pitfalls=(
        "The threshold belongs to the encoder and the kind of images: 0.21 for real images of GeoDE and for DM, 0.25 "
        "for LDM 2.1. For others find it from answers of people: yes_by_score.parquet.",
        "The interval is Wilson's at the effective number of images; otherwise as that of object_clip_score.",
    ),
)

CONSISTENCY = clip(
    "object_consistency",
    "Consistency of objects",
    "mean over objects of the 10th percentile of cos(image, name of the object)",
    paper=DIG_IN,
    pitfalls=(
        "It asks about the worst images, so a few failures per object decide it.",
        "The interval takes images as independent and speaks about other images of these objects; objects with fewer "
        "than 50 images leave it open.",
        "Objects differ in what cosine they can reach: compare sets with the same objects.",
    ),
    unit="cosine",
)

REALISM = (
    CLIP_SCORE,
    FRECHET,
    INCEPTION,
    KERNEL,
    OBJECT,
    CONSISTENCY,
    PRESENCE,
    COVERAGE,
    DENSITY,
    PRECISION,
    RECALL,
    REGION,
    RECOGNISED,
)
"""In alphabetical order of their names."""
