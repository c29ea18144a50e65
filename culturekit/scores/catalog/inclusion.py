"""The metrics of geographic inclusion: what people of three regions see in images, and what distances say of it."""

from culturekit.scores.catalog import describe

PAPER = "Towards Geographic Inclusion in the Evaluation of Text-to-Image Models (Hall et al. 2024)"

TASK1 = "task1: one row per annotation of a triplet"
TASK2 = "task2: img_path, object, region, annotator_id, annotator_loc, annotation_result"

INTERVAL = (
    "The interval is Wilson's for as many independent answers as these are worth: answers about one image, and those "
    "of one annotator, go together (two-way clustered variance). With few annotators it is too narrow all the same."
)

FILTER = (
    "Annotators who see the object in fewer than params.least of the photographs of an object and region are left out "
    "of that cell; those without photographs there cannot be checked and stay."
)


IN_REGION_RATE = describe(
    "in_region_rate",
    "Annotations that see an image's own region",
    "share of all annotations of a side (params.side: annotators in the image's region, or out of it) that name the "
    "image's own region for its object or background (params.target)",
    paper=f"{PAPER}, section 3.1.1 and figure 3a",
    inputs=(TASK2,),
    pitfalls=(
        "A high rate is no praise: out-of-region annotators recognise stereotypes more readily than everyday images.",
        "Annotations that see no object at all stay in the denominator.",
        FILTER,
        INTERVAL,
    ),
)

OBJECT_SEEN = describe(
    "object_seen",
    "Annotations that see the object of the prompt",
    "share of annotations by people of one location (params.pool) that see the object",
    paper=f"{PAPER}, section 3.3.1 and figure 8a",
    inputs=(TASK2,),
    pitfalls=(
        "What counts as a storefront or a cooking pot differs between places; read the pools beside each other.",
        "Photographs are what annotators are filtered by, so their own rate lies above params.least by construction.",
        INTERVAL,
    ),
    direction="higher",
)

AGREEMENT_PITFALLS = (
    "With one annotator per location, pairs `all` compare locations with each other: this is divergence between "
    "pools, not how reliable any of them is.",
    "Two answers agree half the time by chance.",
)

LOCATION_AGREEMENT = describe(
    "location_agreement",
    "Pairs of annotators that agree",
    "mean over items of the share of pairs of annotators who give the same answer (params.criterion); params.pairs: "
    "all, within a location or across its border",
    paper=f"{PAPER}, figures 5c and 7a",
    inputs=(TASK1, TASK2),
    pitfalls=(*AGREEMENT_PITFALLS, INTERVAL),
)

LOCATION_UNANIMITY = describe(
    "location_unanimity",
    "Items on which all annotators agree",
    "share of items on which every pair of annotators gives the same answer",
    paper=f"{PAPER}, figures 5c and 7a",
    inputs=(TASK1, TASK2),
    pitfalls=(*AGREEMENT_PITFALLS, "It falls with every further annotator. The interval is Wilson's over items."),
)

LOCATION_KAPPA = describe(
    "location_kappa",
    "Fleiss' kappa of annotators",
    "(observed - expected pairwise agreement) / (1 - expected), over items with two answers or more",
    paper=f"{PAPER}, the design of Task 2; Fleiss 1971",
    inputs=(TASK2,),
    pitfalls=(
        *AGREEMENT_PITFALLS[:1],
        "Where nearly all answers are yes, kappa is low however well people agree: read it beside location_agreement.",
    ),
    low=-1.0,
    unit="coefficient",
)

CLOSER_CHOICE_RATE = describe(
    "closer_choice_rate",
    "Annotations that choose the closer image",
    "share of annotations whose more similar image is the closer one to the reference in the space of "
    "params.extractor, for triplets whose distance |f(ref) - f(far)|² - |f(ref) - f(close)|², over the extractor's "
    "maximum, lies in params.bin",
    paper=f"{PAPER}, section 3.1.4 and figure 6",
    inputs=(TASK1, "folders of vectors, one per extractor, ids the images of the triplets"),
    pitfalls=(
        "Chance is one half, and triplets at distance 0 have no closer image: they are left out.",
        "Distances of two extractors are comparable only relative to their maxima; bins that one of them does not "
        "reach are left out for all.",
        INTERVAL,
    ),
    direction="higher",
)

APPEAL_WITH_SIMILARITY = describe(
    "appeal_with_similarity",
    "Annotations whose similar image is also the appealing one",
    "share of annotations that choose the same image as more similar and as more appealing",
    paper=f"{PAPER}, figure 7b",
    inputs=(TASK1,),
    pitfalls=("Chance is one half.", INTERVAL),
)

APPEAL_IN_MANIFOLD = describe(
    "appeal_in_manifold",
    "Appealing generated images that lie among real ones",
    "of annotations of combo A triplets with exactly one image inside the manifold of real images, the share whose "
    "more appealing image is the one inside; inside: strictly closer to a real image than its k-th real neighbour",
    paper=f"{PAPER}, section 3.2.2 and figure 7c",
    inputs=(TASK1, "folders of vectors of real and of generated images"),
    pitfalls=(
        "Chance is one half. The real images define what is looked for: here appeal means resemblance to them.",
        "It belongs to params.k, the extractor and the real images; a larger k makes everything lie inside.",
        INTERVAL,
    ),
)
