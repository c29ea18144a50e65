"""What the folders of a run of the kind `linguistic` are called, besides those that runs of other kinds have too."""

from culturekit.core.roles import Role

OF_KIND, CAPTIONS = Role("prompts-{variant}", "prompts"), Role("question-captions", "captions")
CLIPSCORE, VECTORS = Role("clipscore-{model}", "quality"), Role("vectors-{variant}-{model}")
QUESTION_VECTORS = Role("vectors-of-questions")
DIALECTS, TONES, NEUTRAL = (
    Role("dialects", "scores"),
    Role("tones-{variant}", "scores"),
    Role("neutral-{model}", "scores"),
)
QUESTIONS, JUDGED, RATINGS = (
    Role("questions-{model}", "scores"),
    Role("judged-modern", "scores"),
    Role("ratings", "scores"),
)
DRAWN, FORMS = Role("drawn-{variant}", "audit_sample"), Role("to-rate-{variant}")
ANSWERS, IMPORTED = Role("answers-{variant}"), Role("rated-{variant}", "annotations")
KNOWN, TRUE_DIALECTS = Role("truth", "annotations"), Role("true-dialects", "scores")
TRUE_TONES, TRUE_RATINGS = Role("true-tones", "scores"), Role("true-ratings", "scores")
NEUTRAL_TRUTH = Role("true-neutral-{model}", "scores")
