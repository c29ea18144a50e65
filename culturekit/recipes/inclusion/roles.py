"""What the folders of a run of the kind `inclusion` are called, besides those that runs of other kinds have too."""

from culturekit.core.roles import Role

LISTED = Role("listed-{variant}", "prompts")
PLAIN_PROMPTS, PLAIN = Role("plain-prompts", "prompts"), Role("plain-images-{model}", "images")
VECTORS, TEXTS = Role("vectors-{variant}-{model}"), Role("names-of-{variant}")
REALISM, EXTRACTORS = Role("realism-by-{variant}", "scores"), Role("extractors", "scores")
REGIONS, OBJECTS = Role("regions-{model}", "scores"), Role("objects-{model}", "scores")
TRIPLETS, ITEMS = Role("triplets", "triplets"), Role("to-look-at", "audit_sample")
FORMS, ANSWERS, IMPORTED = Role("to-rate-{variant}"), Role("answers-{variant}"), Role("rated-{variant}", "annotations")
PEOPLE, TASKS = Role("tables-{variant}"), Role("scores-{variant}", "scores")
MARKS, JUDGED = Role("marks", "annotations"), Role("judged-{variant}", "scores")
TRUTH, PUBLISHED = Role("truth", "scores"), Role("published", "scores")
