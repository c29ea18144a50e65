"""Where each family of scores is; it is imported when somebody asks for it."""

__all__ = ["FAMILIES"]

FAMILIES = {
    "ahead": "culturekit.families.ahead:AHEAD",
    "agreement": "culturekit.families.agreement:AGREEMENT",
    "c3": "culturekit.families.c3:C3",
    "compare": "culturekit.families.compare:COMPARE",
    "dialects": "culturekit.families.dialects:DIALECTS",
    "distribution": "culturekit.families.distribution:DISTRIBUTION",
    "gaps": "culturekit.families.gaps:GAPS",
    "meta": "culturekit.families.meta:META",
    "neutral": "culturekit.families.neutral:NEUTRAL",
    "pairs": "culturekit.families.spread:PAIRS",
    "question-pairs": "culturekit.families.question_pairs:QUESTION_PAIRS",
    "ratings": "culturekit.families.ratings:RATINGS",
    "spread": "culturekit.families.spread:SPREAD",
    "survey": "culturekit.families.survey:SURVEY",
    "task1": "culturekit.families.task1:TASK_1",
    "task2": "culturekit.families.task2:TASK_2",
    "tones": "culturekit.families.tones:TONES",
}
"""The families by the names of their commands."""
