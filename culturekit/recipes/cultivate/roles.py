"""What the folders of a run of the kind `cultivate` are called, besides those that runs of other kinds have too."""

from culturekit.core.roles import Role

PAGES, SOURCES, MENTIONS = Role("pages"), Role("sources", "pages"), Role("mentions", "mentions")
ACTIVITIES, PROPOSALS = Role("activities", "activities"), Role("proposals-{variant}", "proposed_descriptors")
DESCRIPTORS, STEREOTYPES = Role("descriptors", "descriptors"), Role("stereotypes", "stereotypes")
CANDIDATES, CANDIDATE_SCORES = Role("real-candidates", "images"), Role("real-scores")
EXTRACTED, STEREOTYPED = Role("extracted-{model}", "judgments"), Role("stereotyped-{model}", "judgments")
LIKERT, TRUTH = Role("likert-{model}-by-{variant}", "judgments"), Role("truth-{model}", "judgments")
PHRASES, AHEAD, AHEAD_TRUTH = Role("phrases"), Role("ahead", "scores"), Role("ahead-truth", "scores")
BREAKDOWN = Role("breakdown", "scores")
ITEMS, MARKS, BY_GROUP = Role("to-mark-items", "scene_items"), Role("marks", "annotations"), Role("by-group", "values")
JUDGED_BY, CORRECTED_GAPS = Role("judged-{variant}", "scores"), Role("corrected-gaps", "scores")
LEVELS, CURE = Role("level-{variant}", "prompts"), Role("cure-{model}-{variant}", "quality")
CANDIDATE_TOKENS = Role("exag-candidates-{variant}", "stereotypes")
EXAG_BY = Role("exag-{model}-by-{variant}", "judgments")
BASELINE_VALUES = Role("baseline-values", "values")
COMPARED, ABLATIONS = Role("compared", "values"), Role("ablations", "values")
BASELINES = Role("meta-compared", "scores")
RATED_PHOTOGRAPHS = Role("rated-photographs", "audit_sample")
RATERS, OTHERS = Role("raters", "values"), Role("others", "values")
