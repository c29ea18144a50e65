"""The tables of scores, and of what scores are made of."""

from culturekit.records.tables import declare

SCORES = declare(
    "scores",
    key="metric model benchmark concept country group params",
    columns="""
    metric str, model str, benchmark str, concept str?, country str?, group str?, params str,
    value f64, ci_low f64?, ci_high f64?, n u64, unit str
    """,
)

VALUES = declare(
    "values",
    key="metric model benchmark concept country group params item",
    columns="""
    metric str, model str, benchmark str, concept str?, country str?, group str?, params str,
    item str, prompt_id str?, repeat u16?, value f64?
    """,
)
"""What scores are the means of, one row per item (an image, a prompt, a repeat of a prompt); the value is
null where the item could not be scored. `metric` to `params` name the score that the value went into."""

DISTRIBUTIONS = declare(
    "distributions",
    key="model concept level label",
    columns="model str, concept str?, level str, label str?, images u64, share f64, ci_low f64?, ci_high f64?",
)
"""How many images of a model show each label: of the continent, the country, the artifact. The label is null for
images without one; the shares of a level sum to 1. The limits of a share take batches, a repeat of a prompt each, as a
sample; they are null with fewer than 20."""

DISAGREEMENTS = declare(
    "disagreements",
    key="model concept level label_a label_b",
    columns="model str, concept str?, level str, label_a str, label_b str, images u64, share f64",
)
"""How many images of a model two routes label differently: `label_a` by the one, `label_b` by the other, of the
continent, the country or the artifact. The share is of the images for which both name a label of that level."""

DESCRIPTOR_MATCHES = declare(
    "descriptor_matches",
    key="model prompt_id dimension side token",
    columns="""
    model str, prompt_id str, dimension str, side str, token str, images u64, covered f64, similarity f64?
    """,
)
"""How well descriptors of a prompt were met. `side` is `reference`: of so many images, which share shows the
descriptor, and how similar their nearest prediction is on average; or `predicted`: so many images were described with
it, and whether (1 or 0) and how closely a reference asks for it. Tokens are normalised."""

EXAGGERATIONS = declare(
    "exaggerations",
    key="model country token",
    columns="model str, country str, token str, images u64, real_mean f64, excess f64",
)
"""By how much the images of a model score above real ones, on average, on each stereotype of a country."""

SELECTION = declare(
    "selection",
    key="strategy rank",
    columns="item str, strategy str, rank u32, value f64",
)
"""The items that a strategy keeps, best first; equal values stand in order of the items."""

YES_BY_SCORE = declare(
    "yes_by_score",
    key="metric model pool low",
    columns="""
    metric str, model str, pool str, low f64, score f64, rate f64, ci_low f64?, ci_high f64?, images u64, answers u64
    """,
)
"""How often annotators of a pool said yes to images whose score lies in the bucket that begins at `low`."""

ANSWER_COUNTS = declare(
    "answer_counts",
    key="model concept task judge outcome",
    columns="model str, concept str?, task str, judge str, outcome str, judgments u64, images u64",
)
"""How judgments of a model's images ended, task by task; concept null is over all concepts. An answer that is neither
yes nor no has that as its outcome."""

QUESTION_RATES = declare(
    "question_rates",
    key="judge model prompt_id question_id",
    columns="""
    judge str, model str, prompt_id str, question_id str, concept str?, text str, kind str, images u64, yes u64, no u64,
    unanswered u64, void u64, failed u64, rate f64?
    """,
)
"""How often each question was answered yes about a model's images. `void` counts images of which a parent was answered
no, `failed` those that do not count for the question, and `rate` is their share of the images with an answer."""
