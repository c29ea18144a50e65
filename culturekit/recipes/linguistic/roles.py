"""What the folders of a run of the kind `linguistic` are called, besides those that runs of other kinds have too."""

from culturekit.core.roles import Role

OF_KIND, CAPTIONS = Role("prompts-{variant}", "prompts"), Role("question-captions", "captions")
CLIPSCORE, VECTORS = Role("clipscore-{model}", "quality"), Role("vectors-{variant}-{model}")
QUESTION_VECTORS, NEUTRAL = Role("vectors-of-questions"), Role("neutral-{model}", "scores")
DIALECTS, TONES = Role("dialects", "scores"), Role("tones-{variant}", "scores")
QUESTIONS, JUDGED = Role("questions-{model}", "scores"), Role("judged-modern", "scores")
RATINGS, DRAWN = Role("ratings", "scores"), Role("drawn-{variant}", "audit_sample")
FORMS, ANSWERS, IMPORTED = Role("to-rate-{variant}"), Role("answers-{variant}"), Role("rated-{variant}", "annotations")
KNOWN, TRUE_DIALECTS = Role("truth", "annotations"), Role("true-dialects", "scores")
TRUE_TONES, TRUE_RATINGS = Role("true-tones", "scores"), Role("true-ratings", "scores")
NEUTRAL_TRUTH = Role("true-neutral-{model}", "scores")
