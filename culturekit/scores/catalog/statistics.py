"""What is said of scores: differences, gaps, correlations, agreement; none of it is a score of a model's pictures."""

from functools import partial

from culturekit.scores.catalog import CORRECTION, UNBOUNDED, VALUES_READ, Metric, describe

ANNOTATIONS = "annotations: item_id, annotator, annotator_region, in_region, scheme, criterion, value, choice, flags"

POOLS = (
    "It belongs to one pool of annotators (params.pool). Pools are never merged: people of two regions see different "
    "things in one picture, and their mean is the view of neither.",
)


coefficient = partial(describe, low=-1.0, unit="coefficient")
"""Describe a coefficient, unless said otherwise."""


def agreement(name: str, title: str, formula: str, *, paper: str, low: float, pitfalls: tuple[str, ...]) -> Metric:
    """Describe a measure of agreement; more of it is better, whatever is agreed on."""
    return coefficient(
        name, title, formula, paper=paper, low=low, inputs=(ANNOTATIONS,), pitfalls=(*POOLS, *pitfalls),
        direction="higher",
    )  # fmt: skip


MODEL_DIFFERENCE = coefficient(
    "model_difference",
    "Difference of two models",
    "mean over common prompts of (a's mean on the prompt - b's); over several countries, of the countries' means; "
    "p by sign flips of the prompts' differences",
    paper="paired permutation test: Fisher 1935; Holm 1979; Benjamini and Hochberg 1995",
    inputs=(VALUES_READ,),
    pitfalls=(
        "params.metric and params.of say which score is compared; its own direction says which sign is good.",
        "Only common prompts enter. params.left_out counts the others; where it is large, the two models answered "
        "different questions.",
        "With k common prompts no p value can be below 2/2^k: five prompts never show a difference at 0.05. "
        "target=these asks about other images of these prompts instead.",
        CORRECTION,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)

MODEL_RANK = coefficient(
    "model_rank",
    "Rank of a model",
    "1 + models with a higher value; from 1 + models surely above it to models - models surely below it, where surely "
    "is a corrected p value of their difference below 1 - confidence",
    paper="Holm 1979; limits of differences: Zou and Donner 2008; ranks: Mohamad, Goeman and van Zwet 2022",
    inputs=("scores whose labels are corrected, with intervals",),
    pitfalls=(
        "All ranks of a score hold the truth together, as often as the intervals of the scores do.",
        "Models whose ranks overlap cannot be told apart with these audits; more labels may tell them apart.",
        "Audits that share the errors of their raters are not independent, and no difference knows of that.",
    ),
    low=1.0,
    high=UNBOUNDED,
    direction="lower",
    unit="rank",
)

HUMAN_CORRELATION = coefficient(
    "human_correlation",
    "Correlation of a metric with people",
    "Spearman's rho, Kendall's tau-b or Pearson's r (params.method) of a metric and the mean rating, over items; BCa "
    "limits, prompts resampled whole",
    paper="Spearman 1904; Kendall 1945; Efron 1987",
    inputs=(VALUES_READ, ANNOTATIONS),
    pitfalls=(
        *POOLS,
        "It cannot exceed what the people agree on among themselves: read it beside krippendorff_alpha.",
        "Over all models together, models that differ in everything lift it. Read the row of each model too.",
        "A metric for which lower is better follows people when the coefficient is negative.",
        "With fewer than ten prompts there is no interval, and params.no_interval says so.",
    ),
)

METRIC_CORRELATION = coefficient(
    "metric_correlation",
    "Correlation of two metrics",
    "as human_correlation, of two metrics on the same items",
    paper=HUMAN_CORRELATION.paper,
    inputs=(VALUES_READ,),
    pitfalls=(
        "Two metrics from one encoder share its errors, and agree about them.",
        *HUMAN_CORRELATION.pitfalls[2:],
    ),
)

ALPHA = agreement(
    "krippendorff_alpha",
    "Krippendorff's alpha",
    "1 - observed / expected disagreement; by sameness, rank or squared distance (params.level)",
    paper="Krippendorff 2004, Content Analysis",
    pitfalls=(
        "It is low where nearly all answers are the same, however much annotators agree: read pairwise_agreement "
        "beside it. Below 0 there is less agreement than chance would give.",
    ),
    low=-1.0,
)

COHEN = agreement(
    "cohen_kappa",
    "Cohen's kappa",
    "(observed - expected agreement) / (1 - expected), of two annotators on the items both answered",
    paper="Cohen 1960",
    pitfalls=("Only where a pool has two annotators. Answers count as same or not, whatever their distance.",),
    low=-1.0,
)

FLEISS = agreement(
    "fleiss_kappa",
    "Fleiss' kappa",
    "(P - Pe) / (1 - Pe): P the mean over items of the share of agreeing pairs, Pe the sum of squared shares of "
    "answers",
    paper="Fleiss 1971",
    pitfalls=(
        "Items may have different numbers of annotators; each item counts the same.",
        "Answers count as same or not: for ratings on a scale krippendorff_alpha with level ordinal says more.",
    ),
    low=-1.0,
)

PAIRWISE = agreement(
    "pairwise_agreement",
    "Pairwise agreement",
    "mean over items of the share of pairs of annotators with the same answer",
    paper="Hall et al. 2024, Towards Geographic Inclusion in the Evaluation of Text-to-Image Models",
    pitfalls=("It is not corrected for chance: two annotators who guess between two answers agree half the time.",),
    low=0.0,
)

UNANIMOUS = agreement(
    "unanimous_agreement",
    "Unanimous agreement",
    "share of items on which all annotators gave the same answer",
    paper=PAIRWISE.paper,
    pitfalls=("It falls with the number of annotators; compare items with equally many.",),
    low=0.0,
)

POOL_DIFFERENCE = coefficient(
    "pool_difference",
    "Difference of two pools of annotators",
    "mean over items judged by both of (mean of pool a - mean of pool b); for a choice, of the shares that chose it",
    paper="paired permutation test: Fisher 1935",
    inputs=(ANNOTATIONS,),
    pitfalls=(
        "Only items that both pools judged enter; params.left_out counts the others.",
        "Pools that differ in region may differ in how they were recruited as well.",
        CORRECTION,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)

POOL_CORRELATION = coefficient(
    "pool_correlation",
    "Correlation of two pools of annotators",
    "Spearman's rho of the item means of two pools",
    paper="Spearman 1904; Efron 1987",
    inputs=(ANNOTATIONS,),
    pitfalls=("Few annotators per item make it low, even where the pools agree: their means are noisy.",),
    direction="higher",
)

JUDGE_BIAS = coefficient(
    "judge_bias",
    "Bias of a judge model",
    "mean over items of (the judge's verdict - the mean of the pool's annotators)",
    paper="paired t interval",
    inputs=(ANNOTATIONS, "judgments: image_id, prompt_id, judge, task, item, value"),
    pitfalls=(
        *POOLS,
        "A bias near 0 is compatible with a judge that is wrong about every item: read judge_agreement beside it.",
        "It holds for the kind of items judged here, and for no others.",
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)

JUDGE_AGREEMENT = agreement(
    "judge_agreement",
    "Agreement of a judge model with people",
    "Krippendorff's alpha of the judge's verdicts and the pool's item means, as two annotators",
    paper=ALPHA.paper,
    pitfalls=("People's means are compared, so it exceeds the agreement of the judge with a single person.",),
    low=-1.0,
)

ROUTES = ("matches: image_id, model, concept, rank, continent, country, artifact, abstained, of two routes",)
ROUTE_PITFALLS = (
    "Two routes that agree can be wrong in the same way: agreement is no accuracy. Only an audit by people tells.",
    "n are the images for which both routes name a label of the level; params count those of which a route abstained, "
    "said that nothing is shown, or got no answer, and the images that both routes have (common).",
)

ROUTE_AGREEMENT = coefficient(
    "route_agreement",
    "Agreement of two routes",
    "share of images to which two routes (params.between) give the same label of params.level; Wilson's interval for "
    "as many independent images as scatter like the batches",
    paper="Wilson 1927; Cameron, Gelbach and Miller 2011",
    inputs=ROUTES,
    pitfalls=(*ROUTE_PITFALLS, "Where a model shows mostly one country, routes agree by chance: read route_kappa."),
    low=0.0,
    direction="higher",
    unit="share",
)

ROUTE_KAPPA = coefficient(
    "route_kappa",
    "Agreement of two routes beyond chance",
    "Cohen's kappa of the labels of params.level by two routes (params.between); t interval from the jackknife over "
    "batches",
    paper="Cohen 1960; Efron and Stein 1981",
    inputs=ROUTES,
    pitfalls=(*ROUTE_PITFALLS, "It is low where nearly all labels are the same: read route_agreement beside it."),
    direction="higher",
)

STATISTICS = (
    COHEN, FLEISS, HUMAN_CORRELATION, JUDGE_AGREEMENT, JUDGE_BIAS, ALPHA, METRIC_CORRELATION,
    MODEL_DIFFERENCE, MODEL_RANK, PAIRWISE, POOL_CORRELATION, POOL_DIFFERENCE, ROUTE_AGREEMENT,
    ROUTE_KAPPA, UNANIMOUS,
)  # fmt: skip
"""In alphabetical order of their names."""
