"""What an audit says by itself, before it corrects anything."""

from culturekit.metrics.catalog.metric import Direction, Metric

__all__ = ["AUDITS"]

WILSON = "Wilson 1927; limits over concepts: Zou and Donner 2008"


def share(
    name: str, title: str, formula: str, *, paper: str, pitfalls: tuple[str, ...], direction: Direction
) -> Metric:
    """Describe a share of images; concepts are weighed by their images."""
    told = f"{formula}; concepts weighed by their images"
    return Metric(name, title, told, 0.0, 1.0, direction, "share", paper, ("matches", "audits"), pitfalls)


MAPPING_ACCURACY = share(
    "mapping_accuracy",
    "How often the mapping is right",
    "share of audited images whose nearest artifact is, at params.level, what people saw; one that shows nothing is "
    "never right",
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
    "share of audited images in which people saw no artifact of any culture",
    paper=WILSON,
    pitfalls=("People recognise what they know: nothing recognised is not nothing shown.",),
    direction="lower",
)

SHOWN_SHARE = share(
    "shown_share",
    "Share of images that show a country",
    "mean of (said - w mapped) over audited images + w share of all images mapped to it, w = clip(cov / var, 0, 1)",
    paper="Angelopoulos, Duchi and Zrnic 2023 (PPI++)",
    pitfalls=("Each country is estimated by itself: the shares need not add up to 1.",),
    direction="neither",
)

AUDITS = (MAPPING_ACCURACY, SHARE_WITHOUT_CULTURE, SHOWN_SHARE)
"""In alphabetical order of their names."""
