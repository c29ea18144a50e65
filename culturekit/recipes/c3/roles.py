"""What the folders of a run of the kind `c3` are called, besides those that runs of other kinds have too."""

from culturekit.core.roles import Role

PAIRS, OF_MODELS, WEB = "pairs", "images", "web"
"""What stands in the place of a model where pairs of captions and pictures from elsewhere are aligned and rated, where
images of all models are rated, and where pictures are from the web."""

CAPTIONS, STATS = Role("captions", "captions"), Role("stats-{variant}", "caption_stats")
NAMED_OBJECTS = Role("named-{variant}", "objects")
COLLECTION_PROMPTS, COLLECTION = Role("collection-prompts", "prompts"), Role("collection", "images")
ALT_TEXTS, TRANSLATED = Role("alt-texts", "captions"), Role("translated", "translations")
CAPTIONED, SEEN = Role("captioned-{model}", "captions"), Role("seen-{model}", "judgments")
OBJECTS = Role("objects-{model}", "objects")
VECTORS, ALIGNED = Role("vectors-{variant}-{model}"), Role("aligned-{model}", "scores")
SELECTED, RANKED, EXPORTED = Role("selected", "selected"), Role("ranked", "values"), Role("exported-{variant}")
FINETUNED, COMPARED = Role("finetuned-{model}", "training"), Role("compared", "scores")
JUDGED, TRUTH, PAIR_TRUTH = Role("judged-vqascore", "scores"), Role("truth", "scores"), Role("pair-truth", "scores")
PAIR_ITEMS, FORMS, ANSWERS = Role("pairs-to-rate", "pair_items"), Role("to-rate-{model}"), Role("answers-{model}")
IMPORTED, RATINGS = Role("rated-{model}", "annotations"), Role("ratings", "scores")
DIFFICULTY = Role("difficulty", "scores")
PEARSON, WORTH = Role("pearson", "scores"), Role("worth", "scores")
BESIDE_PROMPTS = Role("beside-{variant}-prompts", "prompts")
BESIDE_SAMPLE = Role("beside-{variant}-sample", "audit_sample")
BESIDE_IMAGES = Role("beside-{variant}-by-{model}", "images")
BESIDE_WEIGHED = Role("beside-{variant}-by-{model}-weighed", "judgments")
BESIDE_JUDGED, BESIDE_TRUTH = Role("beside-{variant}-judged", "scores"), Role("beside-{variant}-truth", "scores")
