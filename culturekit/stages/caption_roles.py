"""What the folders of a run of the kind `c3` are called, besides those that runs of other kinds have too."""

from culturekit.stages.roles import Role

__all__ = [
    "ALIGNED",
    "ALT_TEXTS",
    "ANSWERS",
    "CAPTIONED",
    "CAPTIONS",
    "COLLECTION",
    "COLLECTION_PROMPTS",
    "EXPORTED",
    "FINETUNED",
    "FORMS",
    "JUDGED",
    "NAMED_OBJECTS",
    "OBJECTS",
    "PAIRS",
    "PAIR_ITEMS",
    "PAIR_TRUTH",
    "PEARSON",
    "RANKED",
    "RATED",
    "SELECTED",
    "STATS",
    "TRANSLATED",
    "TRUTH",
    "VECTORS",
    "WORTH",
]

PAIRS = "pairs"
"""What stands in the place of a model where pairs of captions and pictures from elsewhere are aligned and rated."""

CAPTIONS, STATS = Role("captions", "captions"), Role("stats-{variant}", "caption_stats")
NAMED_OBJECTS = Role("named-{variant}", "objects")
COLLECTION_PROMPTS, COLLECTION = Role("collection-prompts", "prompts"), Role("collection", "images")
ALT_TEXTS, TRANSLATED = Role("alt-texts", "captions"), Role("translated", "translations")
CAPTIONED, OBJECTS = Role("captioned-{model}", "captions"), Role("objects-{model}", "objects")
VECTORS, ALIGNED = Role("vectors-{variant}-{model}"), Role("aligned-{model}", "scores")
SELECTED, RANKED, EXPORTED = Role("selected", "selected"), Role("ranked", "values"), Role("exported-{variant}")
FINETUNED = Role("finetuned-{variant}")
JUDGED, TRUTH, PAIR_TRUTH = Role("judged-vqascore", "scores"), Role("truth", "scores"), Role("pair-truth", "scores")
PAIR_ITEMS, FORMS, ANSWERS = Role("pairs-to-rate", "pair_items"), Role("to-rate-{model}"), Role("answers-{model}")
RATED, PEARSON, WORTH = Role("rated-{model}", "annotations"), Role("pearson", "scores"), Role("worth", "scores")
