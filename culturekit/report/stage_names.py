"""What the folders of a run are called that its report reads, besides those that carry the name of a model."""

__all__ = [
    "COMPARISON",
    "CULTURE_FREE",
    "DIAGNOSIS",
    "FAITHFULNESS",
    "FAITHFULNESS_COMPARISON",
    "GAPS",
    "META",
    "RATINGS",
    "REALISM",
    "ROUTES",
    "SHOWN",
    "SPREAD",
    "WITHIN",
]

CULTURE_FREE = "floor-culture-free"
"""The model that pictures of nothing stand under."""

SHOWN, COMPARISON, DIAGNOSIS = "shown", "comparison", "diagnosis"
"""The folders that say which countries models show, how far models are apart, and what the mapping is worth."""

FAITHFULNESS, FAITHFULNESS_COMPARISON = "faithfulness", "faithfulness-comparison"
"""The folders that say whether images show what was asked for, and how far models are apart in that."""

REALISM, SPREAD, WITHIN = "realism", "spread", "within"
"""The folders that say how images look beside real ones, how unlike one another, and how diverse inside a country."""

ROUTES = "routes"
"""The folder that holds nearest artifacts and a model's tags against each other."""

RATINGS, META = "ratings", "meta"
"""The folders that say how people rate the images, and how well metrics follow them."""

GAPS = "gaps"
"""The folder that says how far groups of countries are apart."""
